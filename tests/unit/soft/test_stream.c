// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies through the cache or past it: both move the same bytes, and the choice follows the times
 * of the trials. The test sets the clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <time.h>

#include "soft/stream.h"

#define PERIOD 129u
#define TRIALS 4u
#define EDGE 64u
#define LEN 8192u

#ifdef __SSE2__
#define HAS_TWO_WAYS true
#else
#define HAS_TWO_WAYS false
#endif

/* The clock advances by this much in each trial; `asked` counts the calls. */
static uint64_t now, trial_ns[TRIALS];
static unsigned asked;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	if (asked++ % 2)
		now += trial_ns[asked / 2 - 1];
	time->tv_sec = 0;
	time->tv_nsec = (long)now;
	return 0;
}

/* The next copies of a period take the time of the trials. */
static void set_trials(uint64_t through, uint64_t past)
{
	asked = 0;
	trial_ns[0] = through * 3; /* a disturbed one does not count */
	trial_ns[1] = past;
	trial_ns[2] = past * 3;
	trial_ns[3] = through;
}

static void copy_and_check(struct soft_stream *stream, size_t to, size_t from, size_t len)
{
	static unsigned char source[LEN * 3 + EDGE * 3], target[sizeof(source)];
	static unsigned char fill;

	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (unsigned char)(i * 7 + i / 251 + fill);
	memset(target, 0xa5, sizeof(target));
	fill++;
	soft_stream_copy(stream, target + EDGE + to, source + from, len);
	for (size_t i = 0; i < EDGE + to; i++)
		assert_int_equal(target[i], 0xa5);
	assert_memory_equal(target + EDGE + to, source + from, len);
	for (size_t i = EDGE + to + len; i < sizeof(target); i++)
		assert_int_equal(target[i], 0xa5);
}

static void copy__any_alignment_and_length__exactly_these_bytes(void **state)
{
	struct soft_stream stream = {0};

	(void)state;
	set_trials(1000, 100); /* past the cache where there are two ways */
	for (unsigned i = 0; i < TRIALS; i++)
		copy_and_check(&stream, i, 0, LEN);
	assert_true(soft_stream_is_past_cache(&stream) == HAS_TWO_WAYS);
	for (size_t i = 0; i < EDGE; i++)
		copy_and_check(&stream, i, i * 5 % EDGE, LEN + i * 67);
	set_trials(100, 100); /* through it */
	for (size_t i = TRIALS + EDGE; i < PERIOD; i++)
		copy_and_check(&stream, 0, 0, LEN);
	for (size_t i = 0; i < EDGE; i++)
		copy_and_check(&stream, i, i * 3 % EDGE, LEN + i * 61);
	assert_false(soft_stream_is_past_cache(&stream));
}

static void run_period(struct soft_stream *stream, uint64_t through, uint64_t past)
{
	static unsigned char source[LEN], target[LEN];

	set_trials(through, past);
	for (unsigned i = 0; i < PERIOD; i++)
		soft_stream_copy(stream, target, source, LEN);
	/* only the trials took the time */
	assert_int_equal(asked, HAS_TWO_WAYS ? 2 * TRIALS : 0);
}

static void choice__times_of_trials__past_only_if_twice_as_fast(void **state)
{
	struct soft_stream stream = {0};

	(void)state;
	run_period(&stream, 1000, 1000);
	assert_false(soft_stream_is_past_cache(&stream));
	run_period(&stream, 1000, 600);
	assert_false(soft_stream_is_past_cache(&stream));
	run_period(&stream, 1000, 400);
	assert_true(soft_stream_is_past_cache(&stream) == HAS_TWO_WAYS);
	/* the threads have moved: what was known before does not count */
	run_period(&stream, 300, 400);
	assert_false(soft_stream_is_past_cache(&stream));
}

/* Trials of different lengths are compared by the time for as many bytes. */
static void choice__different_lengths__time_for_each_byte(void **state)
{
	static unsigned char source[4 * LEN], target[4 * LEN];
	struct soft_stream stream = {0};

	(void)state;
	asked = 0;
	trial_ns[0] = trial_ns[3] = 4000;
	trial_ns[1] = trial_ns[2] = 1500;
	for (unsigned i = 0; i < TRIALS; i++)
		soft_stream_copy(&stream, target, source, i == 1 || i == 2 ? LEN : 4 * LEN);
	assert_false(soft_stream_is_past_cache(&stream));
	stream = (struct soft_stream){0};
	asked = 0;
	for (unsigned i = 0; i < TRIALS; i++)
		soft_stream_copy(&stream, target, source, 4 * LEN);
	assert_true(soft_stream_is_past_cache(&stream) == HAS_TWO_WAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__any_alignment_and_length__exactly_these_bytes),
		cmocka_unit_test(choice__times_of_trials__past_only_if_twice_as_fast),
		cmocka_unit_test(choice__different_lengths__time_for_each_byte),
	};

	return cmocka_run_group_tests_name("soft stream", tests, NULL, NULL);
}
