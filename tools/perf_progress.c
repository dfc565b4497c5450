// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shows the progress of a long run on a terminal, or the intervals of one without an end. A
 * separate thread reads the workers' counters once a second, so that the timed loops do nothing for
 * it.
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

/* A line for a person who waits. */
static void progress_print(const struct perf_progress *progress)
{
	const struct perf_run *run = progress->run;

	fprintf(stderr, "\r%s of %" PRIu64 " bytes: %" PRIu64, perf_tests[run->test].name,
		run->size, progress_done(progress));
	if (run->count != 0)
		fprintf(stderr, " of %" PRIu64, run->count * progress->peer->plan.endpoints);
	fputs("\033[K", stderr);
}

/* A row of the table of a run without an end. */
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
	interval.count = (done - progress->last_done) * ways;
	progress->last_done = done;
	progress->last_ns = now;
	perf_output_interval(progress->options, &interval);
}

static void *progress_main(void *arg)
{
	struct perf_progress *progress = arg;
	struct timespec until;
	bool has_printed = false;

	pthread_mutex_lock(&progress->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	while (!progress->is_over) {
		until.tv_sec++;
		while (!progress->is_over &&
		       pthread_cond_timedwait(&progress->changed, &progress->lock, &until) == 0)
			continue;
		if (progress->is_over)
			break;
		if (progress->options->is_infinite) {
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

	if (!options->is_infinite && (!isatty(STDERR_FILENO) || tool_is_quiet))
		return NULL;
	progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	progress->peer = peer;
	progress->run = run;
	progress->options = options;
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
