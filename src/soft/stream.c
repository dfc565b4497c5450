// SPDX-License-Identifier: BSD-2-Clause
/* Copies through the cache or past it (stream.h). */
#include "soft/stream.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/line.h"

/*
 * Copies; the first TRIALS of them are trials. Odd, so that a pattern of lengths does not meet the
 * same ones each time.
 */
#define PERIOD 129u
#define TRIALS 4u /* through the cache, past it, past it, through it */
/*
 * The way past the cache must be faster by this factor for the writer, because it is slower for a
 * reader that shares the cache: with equal times, the bytes arrive a third later.
 */
#define FACTOR 2u

#ifdef __SSE2__
#include <emmintrin.h>

/* Whole lines, so that each is written in one transfer; `to` is at the start of one. */
static void copy_lines(uint8_t *to, const uint8_t *from, size_t lines)
{
	for (; lines; lines--, to += CORE_LINE, from += CORE_LINE) {
		const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)from);
		const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
		const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
		const __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(from + 48));

		_mm_stream_si128((__m128i *)(void *)to, a);
		_mm_stream_si128((__m128i *)(void *)(to + 16), b);
		_mm_stream_si128((__m128i *)(void *)(to + 32), c);
		_mm_stream_si128((__m128i *)(void *)(to + 48), d);
	}
	/* later stores would not be ordered behind these otherwise */
	_mm_sfence();
}

static void copy_past_cache(uint8_t *to, const uint8_t *from, size_t len)
{
	const size_t head = -(uintptr_t)to % CORE_LINE;
	const size_t lines = (len - head) / CORE_LINE;
	const size_t tail = head + lines * CORE_LINE;

	memcpy(to, from, head);
	memcpy(to + tail, from + tail, len - tail);
	copy_lines(to + head, from + head, lines);
}

/* The time for 64 KiB, if a copy of that length took so long. */
static uint64_t cost_of(uint64_t ns, size_t len)
{
	return ns * 65536u / len;
}

/* Copies, and notes how long it took until the stores were done. */
static void try_way(struct soft_stream *stream, bool is_past, uint8_t *to, const uint8_t *from,
		    size_t len)
{
	uint64_t start = core_now_ns();
	uint64_t cost;

	if (is_past)
		copy_past_cache(to, from, len);
	else
		memcpy(to, from, len);
	atomic_thread_fence(memory_order_seq_cst);
	cost = cost_of(core_now_ns() - start, len);
	if (cost < stream->cost[is_past])
		stream->cost[is_past] = cost;
}

bool soft_stream_is_past_cache(const struct soft_stream *stream)
{
	return stream->cost[false] / FACTOR > stream->cost[true];
}

void soft_stream_copy(struct soft_stream *stream, void *dst, const void *src, size_t len)
{
	uint32_t at = stream->copies++ % PERIOD;

	if (at == 0)
		stream->cost[false] = stream->cost[true] = UINT64_MAX;
	if (at < TRIALS)
		try_way(stream, at == 1 || at == 2, dst, src, len);
	else if (soft_stream_is_past_cache(stream))
		copy_past_cache(dst, src, len);
	else
		memcpy(dst, src, len);
}
#else
bool soft_stream_is_past_cache(const struct soft_stream *stream)
{
	(void)stream;
	return false;
}

void soft_stream_copy(struct soft_stream *stream, void *dst, const void *src, size_t len)
{
	(void)stream;
	memcpy(dst, src, len);
}
#endif
