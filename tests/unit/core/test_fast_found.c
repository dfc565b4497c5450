// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completions that poll finds on the fast path of a dequeue: the first one of the polled EVD goes
 * to the caller, all others go into queues.
 */
#include "core/ep/ep_fast.h"
#include "core/event/evd_queue.h"
#include "fast_use.h"

/* Takes an event that is already in the queue, without a poll. */
static void expect_queued(DAT_EVD_HANDLE from, uint64_t cookie, DAT_VLEN len)
{
	unsigned int before = mock.polls + mock.progresses;
	DAT_EVENT event;

	assert_int_equal(core_evd_dequeue(from, &event), DAT_SUCCESS);
	assert_int_equal(mock.polls + mock.progresses, before);
	expect_completion(&event, from, cookie, len);
}

/* --- what poll finds --- */

static enum transport_poll poll_four(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};

	assert_true(give(&found, other, COOKIE(1), 1));
	assert_false(found.is_filled);
	for (uint64_t i = 2; i <= 4; i++)
		assert_true(give(&found, polled, COOKIE(i), i));
	assert_true(give(&found, other, COOKIE(5), 5));
	return TRANSPORT_POLL_FOUND;
}

/* EVD-STREAM-01 EVD-STREAM-02 EP-SEND-10 EP-RECV-08: with cookies of 64 bits. */
static void give__several__first_to_the_caller_and_the_rest_in_order(void **state)
{
	DAT_EVENT event;

	(void)state;
	assert_int_equal(dequeue(&event, poll_four), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(2), 2);
	assert_int_equal(mock.progresses, 0);
	expect_queued(ia.evd, COOKIE(3), 3);
	expect_queued(ia.evd, COOKIE(4), 4);
	expect_queued(other_handle, COOKIE(1), 1);
	expect_queued(other_handle, COOKIE(5), 5);
	assert_int_equal(evd->head, evd->tail);
	assert_int_equal(other->head, other->tail);
}

static struct core_evd *refusing;

/* A refused completion changes nothing. */
static void expect_refused(struct core_dequeue *found)
{
	uint64_t head = refusing->head, tail = refusing->tail;
	bool is_filled = found->is_filled;
	DAT_EVENT before = *found->event;

	assert_false(give(found, refusing, COOKIE(6), 6));
	assert_int_equal(refusing->head, head);
	assert_int_equal(refusing->tail, tail);
	assert_false(refusing->is_overflowed);
	assert_int_equal(found->is_filled, is_filled);
	assert_memory_equal(found->event, &before, sizeof(before));
}

static enum transport_poll poll_is_refused(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};

	expect_refused(&found);
	assert_true(give(&found, polled, COOKIE(1), 1)); /* the caller's event is still free */
	expect_refused(&found);
	return TRANSPORT_POLL_FOUND;
}

static void expect_other_refuses(void)
{
	DAT_EVENT event;

	refusing = other;
	assert_int_equal(dequeue(&event, poll_is_refused), DAT_SUCCESS);
	if (!atomic_load(&is_held))
		expect_unlocked(other->cell);
	expect_completion(&event, ia.evd, COOKIE(1), 1);
}

static enum transport_poll poll_gives_to_other(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};

	assert_true(give(&found, other, COOKIE(7), 7));
	return TRANSPORT_POLL_EMPTY;
}

/* The EVD was unlocked after each refusal, and accepts a completion now. */
static void expect_other_accepts(void)
{
	DAT_EVENT event;

	assert_int_equal(dequeue(&event, poll_gives_to_other), DAT_QUEUE_EMPTY);
	expect_unlocked(other->cell);
	expect_queued(other_handle, COOKIE(7), 7);
}

static void give__other_evd_with_a_slow_reason__refused(void **state)
{
	(void)state;
	for (uint16_t reason = CORE_EVD_SLOW_WAITER; reason <= CORE_EVD_SLOW_CNO; reason++) {
		core_handle_set_slow(other->cell, reason);
		expect_other_refuses();
		core_handle_clear_slow(other->cell, reason);
		expect_other_accepts();
	}
}

static void give__other_evd_dead_or_doomed__refused(void **state)
{
	(void)state;
	core_handle_doom(other->cell);
	expect_other_refuses();
	core_handle_publish(other->cell, DAT_HANDLE_TYPE_EVD);
	expect_other_accepts();
}

static void give__other_evd_locked_by_another_thread__refused(void **state)
{
	(void)state;
	start_holder(other_handle, 0);
	expect_other_refuses();
	stop_holder();
	while (!mock_own(other_handle))
		;
	expect_other_accepts();
}

/* DTO-06 CONN-EVT-47: the fast path raises no overflow; it leaves that to the slow path */
static void give__other_evd_full__refused(void **state)
{
	DAT_EVENT event;

	(void)state;
	for (int i = 0; i < OTHER_LENGTH; i++)
		post_software_event(other_handle);
	expect_other_refuses();
	assert_int_equal(core_evd_count_locked(other), OTHER_LENGTH);
	assert_int_equal(core_evd_dequeue(other_handle, &event), DAT_SUCCESS);
	assert_int_equal(dequeue(&event, poll_gives_to_other), DAT_QUEUE_EMPTY);
	assert_int_equal(core_evd_count_locked(other), OTHER_LENGTH);
	mock_no_event(ia.async);
}

static enum transport_poll poll_fills_polled_evd(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};

	for (uint64_t i = 0; i <= polled->capacity; i++)
		assert_true(give(&found, polled, COOKIE(i), i));
	refusing = polled;
	expect_refused(&found);
	return TRANSPORT_POLL_FOUND;
}

/* DTO-06 CONN-EVT-47 */
static void give__polled_evd_full__refused(void **state)
{
	DAT_EVENT event;

	(void)state;
	assert_int_equal(dequeue(&event, poll_fills_polled_evd), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(0), 0);
	for (uint64_t i = 1; i <= evd->capacity; i++)
		expect_queued(ia.evd, COOKIE(i), i);
	assert_int_equal(evd->head, evd->tail);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(give__several__first_to_the_caller_and_the_rest_in_order),
		T(give__other_evd_with_a_slow_reason__refused),
		T(give__other_evd_dead_or_doomed__refused),
		T(give__other_evd_locked_by_another_thread__refused),
		T(give__other_evd_full__refused),
		T(give__polled_evd_full__refused),
	};

	return cmocka_run_group_tests_name("core fast found", tests, NULL, NULL);
}
