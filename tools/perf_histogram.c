// SPDX-License-Identifier: BSD-2-Clause
/*
 * Histograms of dat_perf: how often which time was measured. Eight classes for each power of two
 * are enough to see the shape. They start and end at bounds of the buckets of stats.h.
 */
#include <inttypes.h>
#include <stdio.h>

#include "perf_output.h"

#define HISTOGRAM_STEP (1u << (STATS_FRACTION_BITS - 3))
#define HISTOGRAM_WIDTH 50u

/* The times of one class, from `first` up to `end`, in ticks. */
struct histogram_class {
	uint64_t first;
	uint64_t end;
	uint64_t count;
};

/* The class that begins with a bucket. */
static struct histogram_class histogram_class(const struct stats *stats, unsigned bucket)
{
	struct histogram_class class = {.first = stats_first(bucket),
					.end = stats_first(bucket + HISTOGRAM_STEP)};

	for (unsigned i = bucket; i < bucket + HISTOGRAM_STEP; i++)
		class.count += stats->buckets[i];
	return class;
}

void perf_histogram_print(const struct perf_result *result)
{
	const struct stats *stats = result->stats;
	double us = perf_result_us(result->test);
	uint64_t most = 1;

	for (unsigned i = 0; i < STATS_BUCKETS; i += HISTOGRAM_STEP) {
		struct histogram_class class = histogram_class(stats, i);

		most = class.count > most ? class.count : most;
	}
	for (unsigned i = 0; i < STATS_BUCKETS; i += HISTOGRAM_STEP) {
		struct histogram_class class = histogram_class(stats, i);
		unsigned width = (unsigned)((double)class.count * HISTOGRAM_WIDTH / (double)most);

		if (class.count == 0)
			continue;
		printf("  %12.3f to %12.3f us %12" PRIu64 " ", (double)class.first * us,
		       (double)class.end * us, class.count);
		for (unsigned j = 0; j < width; j++)
			putchar('#');
		putchar('\n');
	}
}

void perf_histogram_print_json(const struct perf_result *result)
{
	double us = perf_result_us(result->test);
	bool is_first = true;

	printf(", \"histogram\": [");
	for (unsigned i = 0; i < STATS_BUCKETS; i += HISTOGRAM_STEP) {
		struct histogram_class class = histogram_class(result->stats, i);

		if (class.count == 0)
			continue;
		printf("%s{\"from\": %.4f, \"to\": %.4f, \"count\": %" PRIu64 "}",
		       is_first ? "" : ", ", (double)class.first * us, (double)class.end * us,
		       class.count);
		is_first = false;
	}
	printf("]");
}
