// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies into memory that another process reads next, and the choice between two ways.
 *
 * Through the cache: the faster way if both processors share a cache. But the lines are in the
 * cache of the processor that has read them last. If that is far, on another socket or in another
 * group of cores, each store first fetches its line from there.
 *
 * Past the cache, by non-temporal stores: nothing is fetched, and the reader gets the bytes from
 * memory. That is twice as fast where the caches are far, and slower where they are shared.
 *
 * How far the processors are cannot be known: threads move. So now and then some copies try both
 * ways and take the time.
 */
#ifndef SOFT_STREAM_H
#define SOFT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOFT_STREAM_MIN 8192u /* shorter copies go through the cache */

/* What is known about the copies to one process. All zero: nothing. The owner's lock guards it. */
struct soft_stream {
	uint32_t copies;
	/* ns for 64 KiB in the shortest of the last trials: through the cache, and past it */
	uint64_t cost[2];
};

/* Is the way past the cache the better one? Always false where there is none. */
bool soft_stream_is_past_cache(const struct soft_stream *stream);
/* Copies at least SOFT_STREAM_MIN bytes. A store after it becomes visible after the bytes. */
void soft_stream_copy(struct soft_stream *stream, void *dst, const void *src, size_t len);

#endif
