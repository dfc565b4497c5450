// SPDX-License-Identifier: BSD-2-Clause
/* What the service thread of an engine attends to: who asks, and whose deadline has passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "soft/attention.h"

#define CONNS 100u

static struct soft_attention attention;
static struct core_service service;
static struct soft_attended conns[CONNS];
static unsigned kicks, served[CONNS];
static uint64_t next_ns[CONNS]; /* the deadline that its service sets; 0: none */
static bool asks_again;

/* The service thread's side, which is not linked. */
void core_service_kick(struct core_service *kicked)
{
	assert_ptr_equal(kicked, &service);
	kicks++;
}

static void serve(struct soft_attended *conn, void *argument)
{
	unsigned i = (unsigned)(conn - conns);

	assert_ptr_equal(argument, &service);
	served[i]++;
	if (asks_again)
		soft_attention_ask(&attention, conn);
	if (next_ns[i])
		soft_attention_set(&attention, conn, next_ns[i]);
	assert_false(soft_attended_put(conn));
}

static int begin(void **state)
{
	(void)state;
	attention = (struct soft_attention){.first = NULL};
	soft_attention_init(&attention, &service);
	for (unsigned i = 0; i < CONNS; i++) {
		conns[i] = (struct soft_attended){.next = NULL};
		soft_attention_add(&attention, &conns[i]);
		served[i] = 0;
		next_ns[i] = 0;
	}
	kicks = 0;
	asks_again = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CONNS; i++) {
		assert_true(soft_attended_put(&conns[i]));
		soft_attention_remove(&attention, &conns[i]);
	}
	assert_null(attention.first);
	core_lock_destroy(&attention.lock);
	return 0;
}

static void serve_due(uint64_t now)
{
	soft_attention_serve_due(&attention, now, serve, &service);
}

static void expect_served(unsigned i, unsigned count)
{
	assert_int_equal(served[i], count);
}

static void asking__twice__served_once(void **state)
{
	(void)state;
	soft_attention_ask(&attention, &conns[3]);
	soft_attention_ask(&attention, &conns[3]);
	soft_attention_ask(&attention, &conns[5]);
	assert_int_equal(kicks, 3);
	soft_attention_serve_asking(&attention, serve, &service);
	soft_attention_serve_asking(&attention, serve, &service);
	expect_served(3, 1);
	expect_served(5, 1);
	expect_served(4, 0);
}

/* IWCM-46 */
static void asking__again_and_again__once_in_each_turn(void **state)
{
	(void)state;
	asks_again = true;
	soft_attention_ask(&attention, &conns[0]);
	soft_attention_serve_asking(&attention, serve, &service);
	expect_served(0, 1);
	asks_again = false;
	soft_attention_serve_asking(&attention, serve, &service);
	expect_served(0, 2);
}

static void deadline__passed__fires_once(void **state)
{
	(void)state;
	soft_attention_set(&attention, &conns[1], 100);
	soft_attention_lower(&attention, &conns[1], 200); /* not earlier */
	soft_attention_set(&attention, &conns[2], 300);
	soft_attention_lower(&attention, &conns[2], 250);
	assert_int_equal(kicks, 1); /* for the earliest */
	serve_due(99);
	expect_served(1, 0);
	serve_due(100);
	expect_served(1, 1);
	serve_due(249);
	expect_served(1, 1);
	expect_served(2, 0);
	assert_int_equal(atomic_load(&attention.deadline_ns), 250);
	soft_attention_set(&attention, &conns[2], 0);
	serve_due(1000);
	expect_served(2, 0);
	assert_true(atomic_load(&attention.deadline_ns) == UINT64_MAX);
}

static void deadline__set_by_its_service__kept(void **state)
{
	(void)state;
	next_ns[7] = 500;
	soft_attention_set(&attention, &conns[7], 100);
	serve_due(100);
	expect_served(7, 1);
	assert_int_equal(atomic_load(&attention.deadline_ns), 500);
	serve_due(500);
	expect_served(7, 2);
}

static void deadlines__of_all_at_once__each_served(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CONNS; i++)
		soft_attention_set(&attention, &conns[i], 10 + i);
	for (unsigned turn = 0; turn < 2; turn++)
		serve_due(10 + CONNS);
	for (unsigned i = 0; i < CONNS; i++)
		expect_served(i, 1);
}

static bool is_it(struct soft_attended *conn, void *argument)
{
	return conn == argument;
}

static void find__one_that_is_being_destroyed__not_found(void **state)
{
	(void)state;
	assert_ptr_equal(soft_attention_find(&attention, NULL, is_it, &conns[9]), &conns[9]);
	assert_false(soft_attended_put(&conns[9]));
	soft_attention_set(&attention, &conns[9], 1);
	assert_true(soft_attended_put(&conns[9]));
	assert_null(soft_attention_find(&attention, NULL, is_it, &conns[9]));
	serve_due(10);
	expect_served(9, 0);
	atomic_store(&conns[9].refs, 1); /* for end() */
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		one(asking__twice__served_once),
		one(asking__again_and_again__once_in_each_turn),
		one(deadline__passed__fires_once),
		one(deadline__set_by_its_service__kept),
		one(deadlines__of_all_at_once__each_served),
		one(find__one_that_is_being_destroyed__not_found),
	};

	return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
