// SPDX-License-Identifier: BSD-2-Clause
/* Evaluates the histogram of stats.h. */
#include "stats.h"

#include <string.h>

void stats_reset(struct stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->min = UINT64_MAX;
}

void stats_merge(struct stats *stats, const struct stats *other)
{
	stats->count += other->count;
	stats->sum += other->sum;
	if (other->min < stats->min)
		stats->min = other->min;
	if (other->max > stats->max)
		stats->max = other->max;
	for (unsigned i = 0; i < STATS_BUCKETS; i++)
		stats->buckets[i] += other->buckets[i];
}

double stats_average(const struct stats *stats)
{
	return stats->count ? (double)stats->sum / (double)stats->count : 0;
}

static unsigned stats_shift(unsigned bucket)
{
	return bucket < 2u << STATS_FRACTION_BITS ? 0 : (bucket >> STATS_FRACTION_BITS) - 1;
}

uint64_t stats_first(unsigned bucket)
{
	unsigned shift = stats_shift(bucket);

	return (uint64_t)(bucket - (shift << STATS_FRACTION_BITS)) << shift;
}

/* The mean of the values that a bucket counts. */
static uint64_t stats_middle(unsigned bucket)
{
	return stats_first(bucket) + ((UINT64_C(1) << stats_shift(bucket)) >> 1);
}

uint64_t stats_percentile(const struct stats *stats, unsigned permille)
{
	uint64_t rank = (stats->count * permille + 999) / 1000;
	uint64_t seen = 0;
	uint64_t value;

	if (stats->count == 0)
		return 0;
	for (unsigned i = 0; i < STATS_BUCKETS; i++) {
		seen += stats->buckets[i];
		if (seen < rank || seen == 0)
			continue;
		value = stats_middle(i);
		if (value < stats->min)
			return stats->min;
		return value > stats->max ? stats->max : value;
	}
	return stats->max;
}
