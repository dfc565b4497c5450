// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shows the progress of a long run on a terminal. A separate thread reads the workers' counters
 * once a second, so that the timed loops do nothing for it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "perf.h"

struct perf_progress {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct perf_peer *peer;
	const struct perf_run *run;
	bool is_over; /* guarded by lock */
};

static void progress_print(const struct perf_progress *progress)
{
	const struct perf_run *run = progress->run;
	uint64_t done = 0;

	for (uint32_t i = 0; i < progress->peer->plan.threads; i++)
		done += atomic_load_explicit(&progress->peer->workers[i].progress,
					     memory_order_relaxed);
	fprintf(stderr, "\r%s of %" PRIu64 " bytes: %" PRIu64 " of %" PRIu64 "\033[K",
		perf_tests[run->test].name, run->size, done,
		run->count * (perf_tests[run->test].kind == PERF_LATENCY
				      ? progress->peer->plan.threads
				      : progress->peer->plan.endpoints));
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
		progress_print(progress);
		has_printed = true;
	}
	pthread_mutex_unlock(&progress->lock);
	if (has_printed)
		fputs("\r\033[K", stderr);
	return NULL;
}

struct perf_progress *perf_progress_start(struct perf_peer *peer, const struct perf_run *run)
{
	struct perf_progress *progress;

	if (!isatty(STDERR_FILENO))
		return NULL;
	progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	progress->peer = peer;
	progress->run = run;
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
