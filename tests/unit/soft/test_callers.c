// SPDX-License-Identifier: BSD-2-Clause
/* Who gives way when callers have their share of descriptors, and how large a share is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soft_iwarp/frozen_clock.h"
#include "soft/callers.h"

#define LIMIT 64u
#define HALF (LIMIT / 2)
#define START_NS UINT64_C(1000000000)
#define SILENT_NS UINT64_C(100000000)

static struct soft_callers callers, others;
static struct soft_caller caller[LIMIT];
static struct rlimit old;
static const void *dying; /* this connection cannot be had any more */

static bool get(void *conn)
{
	return conn != dying;
}

static struct soft_caller *first(void)
{
	return soft_callers_first(&callers, get);
}

static void set(unsigned i, enum soft_caller_kind kind)
{
	soft_callers_set(&callers, &caller[i], kind);
}

static int open_callers(void **state)
{
	struct rlimit low;

	(void)state;
	dying = NULL;
	atomic_store(&frozen_ns, START_NS);
	callers = others = (struct soft_callers){.listeners = 0};
	soft_callers_init(&callers);
	soft_callers_init(&others);
	for (unsigned i = 0; i < LIMIT; i++)
		caller[i] = (struct soft_caller){.conn = &caller[i]};
	soft_callers_listen(&callers);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = LIMIT;
	return setrlimit(RLIMIT_NOFILE, &low);
}

static int close_callers(void **state)
{
	(void)state;
	soft_callers_unlisten(&callers);
	soft_callers_destroy(&callers);
	soft_callers_destroy(&others);
	return setrlimit(RLIMIT_NOFILE, &old);
}

/* So many callers of that kind can be added, one by one. */
static void expect_room(unsigned count, enum soft_caller_kind kind)
{
	unsigned i;

	for (i = 0; i < LIMIT && soft_callers_has_room(&callers); i++)
		set(i, kind);
	assert_int_equal(i, count);
	while (i--)
		set(i, SOFT_CALLER_NONE);
}

/* IWCM-70 */
static void callers__each_kind__half_of_the_limit(void **state)
{
	(void)state;
	expect_room(HALF, SOFT_CALLER_SILENT);
	expect_room(HALF, SOFT_CALLER_OFFERED);
	expect_room(HALF, SOFT_CALLER_REFUSED);
}

/* IWCM-70 */
static void callers__another_engine_listens__half_of_that(void **state)
{
	(void)state;
	soft_callers_listen(&others);
	soft_callers_listen(&others);
	expect_room(HALF / 2, SOFT_CALLER_OFFERED);
	soft_callers_unlisten(&others);
	expect_room(HALF / 2, SOFT_CALLER_OFFERED);
	soft_callers_unlisten(&others);
	expect_room(HALF, SOFT_CALLER_OFFERED);
}

static unsigned room_of_others(void)
{
	unsigned i;

	soft_callers_listen(&others);
	for (i = 0; i < LIMIT && soft_callers_has_room(&others); i++)
		soft_callers_set(&others, &caller[i], SOFT_CALLER_OFFERED);
	return i;
}

/* IWCM-70 GEN-35: nobody closes the engines of the parent in a child */
static void callers__forked_child__shares_of_its_own_engines(void **state)
{
	const pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(room_of_others() == HALF ? EXIT_SUCCESS : EXIT_FAILURE);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	expect_room(HALF, SOFT_CALLER_OFFERED);
}

/* IWCM-70: also where the limit leaves no share */
static void callers__tiny_limit__one_at_a_time(void **state)
{
	struct rlimit none = old;

	(void)state;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_room(1, SOFT_CALLER_SILENT);
}

/* IWCM-70 IWCM-71 IWCM-39 */
static void callers__each_kind__refused_then_silent_give_way(void **state)
{
	(void)state;
	set(0, SOFT_CALLER_SILENT);
	set(1, SOFT_CALLER_OFFERED);
	set(2, SOFT_CALLER_SILENT);
	assert_null(first());
	atomic_store(&frozen_ns, START_NS + SILENT_NS - 1);
	assert_null(first());
	set(3, SOFT_CALLER_SILENT);
	atomic_store(&frozen_ns, START_NS + SILENT_NS);
	assert_ptr_equal(first(), &caller[0]);
	set(4, SOFT_CALLER_REFUSED);
	set(1, SOFT_CALLER_REFUSED);
	assert_ptr_equal(first(), &caller[4]);
	dying = &caller[4];
	assert_ptr_equal(first(), &caller[1]);
	set(1, SOFT_CALLER_NONE);
	set(4, SOFT_CALLER_NONE);
	set(0, SOFT_CALLER_OFFERED);
	assert_ptr_equal(first(), &caller[2]);
	set(2, SOFT_CALLER_NONE);
	assert_null(first());
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_callers, close_callers)
	const struct CMUnitTest tests[] = {
		one(callers__each_kind__half_of_the_limit),
		one(callers__another_engine_listens__half_of_that),
		one(callers__forked_child__shares_of_its_own_engines),
		one(callers__tiny_limit__one_at_a_time),
		one(callers__each_kind__refused_then_silent_give_way),
	};

	return cmocka_run_group_tests_name("callers", tests, NULL, NULL);
}
