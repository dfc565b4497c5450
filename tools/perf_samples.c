// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every time that dat_perf has measured, for --samples. The workers keep them in memory, and they
 * are written between two runs, so that only growing memory can disturb a measurement.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "perf_output.h"

/* 8 MiB; the pages are written when it is made */
#define SAMPLES_ROOM ((size_t)1 << 20)

static FILE *samples_file;
static const char *samples_path;

static void samples_make_room(struct perf_samples *samples, size_t room)
{
	uint64_t *ticks = reallocarray(samples->ticks, room, sizeof(*ticks));

	if (!ticks) {
		tool_complain("--samples: no memory for %zu times", room);
		exit(TOOL_EXIT_FAILED);
	}
	memset(ticks + samples->room, 0, (room - samples->room) * sizeof(*ticks));
	samples->ticks = ticks;
	samples->room = room;
}

void perf_samples_grow(struct perf_samples *samples)
{
	samples_make_room(samples, samples->room * 2);
}

int perf_samples_open(const char *path)
{
	samples_path = path;
	samples_file = fopen(path, "w");
	if (!samples_file) {
		tool_complain("--samples %s: %s", path, strerror(errno));
		return -EIO;
	}
	fputs("test,bytes,thread,number,us\n", samples_file);
	return 0;
}

void perf_samples_begin(struct perf_peer *peer)
{
	for (uint32_t i = 0; samples_file && i < peer->plan.threads; i++) {
		struct perf_samples *samples = calloc(1, sizeof(*samples));

		if (!samples)
			abort();
		samples_make_room(samples, SAMPLES_ROOM);
		peer->workers[i].samples = samples;
	}
}

/* The times of one worker, and frees them. */
static void samples_write(const struct perf_run *run, uint32_t thread, struct perf_samples *samples)
{
	double us = perf_result_us(run->test);

	for (size_t i = 0; i < samples->count; i++)
		fprintf(samples_file, "%s,%" PRIu64 ",%" PRIu32 ",%zu,%.4f\n",
			perf_tests[run->test].name, run->size, thread, i,
			(double)samples->ticks[i] * us);
	free(samples->ticks);
	free(samples);
}

void perf_samples_end(struct perf_peer *peer, const struct perf_run *run)
{
	for (uint32_t i = 0; samples_file && i < peer->plan.threads; i++) {
		samples_write(run, i, peer->workers[i].samples);
		peer->workers[i].samples = NULL;
	}
}

int perf_samples_close(void)
{
	bool is_bad = ferror(samples_file);

	if (fclose(samples_file) != 0 || is_bad) {
		tool_complain("--samples %s: cannot write", samples_path);
		return -EIO;
	}
	return 0;
}
