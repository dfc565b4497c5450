// SPDX-License-Identifier: BSD-2-Clause
/*
 * A qualifier whose name is in use by a socket that does not listen (-EBUSY of the transport): of a
 * child between fork and exec, which soon frees it, or of a stranger, who never does. The clock is
 * the test's.
 */
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "core/conn/sp.h"
#include "mock.h"

#define MS UINT64_C(1000000)

static struct mock_ia ia;
static uint64_t now_ns;		/* 0: the clock is the system's */
static uint64_t asleep_ns;	/* in poll */
static unsigned int polls_left; /* the name is free after so many polls; 0: never */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!now_ns)
		return __real_clock_gettime(clock, now);
	now->tv_sec = (time_t)(now_ns / (1000 * MS));
	now->tv_nsec = (long)(now_ns % (1000 * MS));
	return 0;
}

static void *lock_and_release(void *lock)
{
	core_lock_acquire(lock);
	core_lock_release(lock);
	return NULL;
}

/* Waits for ever if the calling thread holds the lock. */
static void expect_free(struct core_lock *lock)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, lock_and_release, lock), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (!now_ns)
		return __real_poll(fds, count, timeout_ms);
	if (!asleep_ns)
		expect_free(&mock.sp.cell->lock);
	now_ns += (uint64_t)timeout_ms * MS;
	asleep_ns += (uint64_t)timeout_ms * MS;
	if (polls_left && !--polls_left)
		mock.failing = NULL;
	return 0;
}

static void begin(unsigned int polls)
{
	mock.failing = "listen";
	mock.error = -EBUSY;
	polls_left = polls;
	asleep_ns = 0;
	now_ns = 1000 * MS;
}

static uint64_t passed_ms(void)
{
	uint64_t passed = (now_ns - 1000 * MS) / MS;

	now_ns = 0;
	return passed;
}

static int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	now_ns = 0;
	mock_close(&ia);
	return 0;
}

/* PSP-CREATE-16: a second at most, and the service point is not locked meanwhile */
static void psp_create__name_never_free__in_use_within_a_second(void **state)
{
	DAT_PSP_HANDLE psp;

	(void)state;
	begin(0);
	assert_int_equal(mock_code(core_psp_create(ia.ia, 77, ia.evd, DAT_PSP_CONSUMER_FLAG, &psp)),
			 DAT_CONN_QUAL_IN_USE);
	assert_in_range(passed_ms(), 100, 1000);
}

/* PSP-CRANY-05 */
static void psp_create_any__names_never_free__unavailable_within_a_second(void **state)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	(void)state;
	begin(0);
	assert_int_equal(
		mock_code(core_psp_create_any(ia.ia, &qual, ia.evd, DAT_PSP_CONSUMER_FLAG, &psp)),
		DAT_CONN_QUAL_UNAVAILABLE);
	assert_in_range(passed_ms(), 100, 1000);
}

/* PSP-FREE-06: a child that has a copy of the socket closes it when it executes a program */
static void psp_create__name_soon_free__succeeds(void **state)
{
	DAT_PSP_HANDLE psp;

	(void)state;
	begin(20);
	assert_int_equal(core_psp_create(ia.ia, 77, ia.evd, DAT_PSP_CONSUMER_FLAG, &psp),
			 DAT_SUCCESS);
	assert_in_range(passed_ms(), 20, 30);
	assert_int_equal(core_psp_free(psp), DAT_SUCCESS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(psp_create__name_never_free__in_use_within_a_second),
		TEST(psp_create_any__names_never_free__unavailable_within_a_second),
		TEST(psp_create__name_soon_free__succeeds),
	};

	return cmocka_run_group_tests_name("core sp busy", tests, NULL, NULL);
}
