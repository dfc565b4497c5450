// SPDX-License-Identifier: BSD-2-Clause
/*
 * Statistics over many times in constant memory: count, sum, extremes, and a histogram for the
 * percentiles. Each value below 512 has its own bucket. Above that each power of two has 256
 * buckets, so that a percentile is exact to 0.2 %. Adding a value does not allocate, so timed loops
 * may do it.
 */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include <stdint.h>

#define STATS_FRACTION_BITS 8u
/* values from 2^40 on share the last bucket: 18 minutes in nanoseconds */
#define STATS_SHIFT_MAX 31u
#define STATS_BUCKETS ((STATS_SHIFT_MAX << STATS_FRACTION_BITS) + (2u << STATS_FRACTION_BITS))

struct stats {
	uint64_t count;
	uint64_t sum;
	uint64_t min;
	uint64_t max;
	uint64_t buckets[STATS_BUCKETS];
};

static inline unsigned stats_bucket(uint64_t value)
{
	unsigned top = 63u - (unsigned)__builtin_clzll(value | 1u);
	unsigned shift = top > STATS_FRACTION_BITS ? top - STATS_FRACTION_BITS : 0;

	if (shift > STATS_SHIFT_MAX)
		return STATS_BUCKETS - 1;
	return (shift << STATS_FRACTION_BITS) + (unsigned)(value >> shift);
}

static inline void stats_add(struct stats *stats, uint64_t value)
{
	stats->count++;
	stats->sum += value;
	if (value < stats->min)
		stats->min = value;
	if (value > stats->max)
		stats->max = value;
	stats->buckets[stats_bucket(value)]++;
}

/* The smallest value that a bucket counts. */
uint64_t stats_first(unsigned bucket);
void stats_reset(struct stats *stats);
/* Adds all values of `other`. */
void stats_merge(struct stats *stats, const struct stats *other);
double stats_average(const struct stats *stats);
/* The nearest-rank percentile: the smallest value that `permille` thousandths of all values do not
 * exceed. 0 when empty. */
uint64_t stats_percentile(const struct stats *stats, unsigned permille);

#endif
