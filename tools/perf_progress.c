// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shows the intervals of a run, or on a terminal a bar with the time that is left. A separate thread
 * reads the workers' counters, so that the timed loops do nothing for it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "options.h"
#include "perf_client.h"
#include "perf_output.h"

#define PROGRESS_WIDTH 40 /* of the bar */

struct perf_progress {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct perf_peer *peer;
	const struct perf_run *run;
	const struct perf_options *options;
	uint64_t start_ns;
	uint64_t last_ns; /* of the last interval, with what was done until then */
	uint64_t last_done;
	bool is_row;  /* prints rows, not the bar */
	bool is_over; /* guarded by lock */
};

/* Transfers of all workers so far. */
static uint64_t progress_done(const struct perf_progress *progress)
{
	bool is_rounds = perf_tests[progress->run->test].kind == PERF_LATENCY;
	uint64_t done = 0;

	for (uint32_t i = 0; i < progress->peer->plan.threads; i++) {
		struct perf_worker *worker = &progress->peer->workers[i];

		done += atomic_load_explicit(&worker->progress, memory_order_relaxed) *
			(is_rounds ? worker->endpoint_count : 1);
	}
	return done;
}

/* The part of the run that is done, from 0 to 1. The warm-up counts, too. */
static double progress_part(const struct perf_progress *progress, double elapsed_s)
{
	const struct perf_run *run = progress->run;
	double whole = run->count ? (double)run->count * progress->peer->plan.endpoints
				  : (double)run->duration_ns / 1e9;
	double part = (run->count ? (double)progress_done(progress) : elapsed_s) / whole;

	return part < 1 ? part : 1;
}

/* A line for a person who waits: "send-bw of 8 bytes [#####     ]  50 %, 2 s left". */
static void progress_print(const struct perf_progress *progress)
{
	const struct perf_run *run = progress->run;
	double elapsed_s = (double)(tool_now_ns() - progress->start_ns) / 1e9;
	double part = progress_part(progress, elapsed_s);
	int filled = (int)(part * PROGRESS_WIDTH);

	fprintf(stderr, "\r%s of %" PRIu64 " bytes [%.*s%*s] %3.0f %%", perf_tests[run->test].name,
		run->size, filled, "########################################",
		PROGRESS_WIDTH - filled, "", part * 100);
	if (part > 0)
		fprintf(stderr, ", %.0f s left", elapsed_s / part * (1 - part));
	fputs("\033[K", stderr);
}

/* A row of the table of intervals. */
static void progress_interval(struct perf_progress *progress)
{
	const struct perf_test_info *info = &perf_tests[progress->run->test];
	uint64_t done = progress_done(progress);
	uint64_t now = tool_now_ns();
	unsigned ways = info->is_halved ? 2 : 1;
	struct perf_interval interval = {
		.test = progress->run->test,
		.size = progress->run->size,
		.at_s = (double)(now - progress->start_ns) / 1e9,
		.elapsed_s = (double)(now - progress->last_ns) / 1e9,
		.in_turns = progress->peer->plan.threads,
	};

	/* the counter starts again after the warm-up */
	if (done < progress->last_done)
		progress->last_done = 0;
	tool_time_text(interval.time);
	interval.count = (done - progress->last_done) * ways;
	progress->last_done = done;
	progress->last_ns = now;
	perf_output_interval(progress->options, &interval);
}

static void progress_step(struct timespec *until, double seconds)
{
	uint64_t ns = (uint64_t)until->tv_nsec + (uint64_t)(seconds * 1e9);

	until->tv_sec += (time_t)(ns / 1000000000u);
	until->tv_nsec = (long)(ns % 1000000000u);
}

static void *progress_main(void *arg)
{
	struct perf_progress *progress = arg;
	struct timespec until;
	bool has_printed = false;

	pthread_mutex_lock(&progress->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	while (!progress->is_over) {
		progress_step(&until, progress->is_row ? progress->options->interval_s : 1);
		while (!progress->is_over &&
		       pthread_cond_timedwait(&progress->changed, &progress->lock, &until) == 0)
			continue;
		if (progress->is_over)
			break;
		if (progress->is_row) {
			progress_interval(progress);
			continue;
		}
		progress_print(progress);
		has_printed = true;
	}
	pthread_mutex_unlock(&progress->lock);
	if (has_printed)
		fputs("\r\033[K", stderr);
	return NULL;
}

struct perf_progress *perf_progress_start(struct perf_peer *peer, const struct perf_run *run,
					  const struct perf_options *options)
{
	struct perf_progress *progress;

	if (options->interval_s <= 0 && (!isatty(STDERR_FILENO) || tool_is_quiet))
		return NULL;
	progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	progress->peer = peer;
	progress->run = run;
	progress->options = options;
	progress->is_row = options->interval_s > 0;
	progress->start_ns = tool_now_ns();
	progress->last_ns = progress->start_ns;
	pthread_mutex_init(&progress->lock, NULL);
	pthread_cond_init(&progress->changed, NULL);
	if (pthread_create(&progress->thread, NULL, progress_main, progress) != 0) {
		free(progress);
		return NULL;
	}
	return progress;
}

void perf_progress_stop(struct perf_progress *progress)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->is_over = true;
	pthread_cond_signal(&progress->changed);
	pthread_mutex_unlock(&progress->lock);
	pthread_join(progress->thread, NULL);
	pthread_mutex_destroy(&progress->lock);
	pthread_cond_destroy(&progress->changed);
	free(progress);
}
