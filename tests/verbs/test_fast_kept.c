// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completions that a poll on the fast path (src/verbs/engine/fast.c) has returned and that are not
 * dispatched yet. Each is dispatched once and in order, by the next dequeue, by one of another EVD,
 * by the slow path, by a thread that goes to sleep, or by the provider's own thread.
 */
#include "fast_lab.h"

#include <sched.h>

#include "verbs/engine/poll.h"

/*
 * Completes requests of a, from `first` on. One poll returns all of them, and the first is taken.
 */
static void keep(uint64_t first, unsigned count)
{
	DAT_EVENT event;

	device.most = VRB_POLL_BATCH;
	assert_int_equal(kept(), 0);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(write_len(&rig.a, 8 + i, first + i), DAT_SUCCESS);
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
	check_event(&event, rig.a.dto, rig.a.ep, first, DAT_DTO_SUCCESS, 8);
	assert_int_equal(kept(), count - 1);
}

static void expect_range(uint64_t first, unsigned from, unsigned count)
{
	for (unsigned i = from; i < count; i++)
		expect(&rig.a, first + i, 8 + i);
}

/* The device is polled again when none is left. */
static void evd_dequeue__kept__before_the_device_is_asked(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		unsigned polls;

		keep(10 * i, ROOM);
		polls = device.polls;
		for (unsigned j = 1; j < ROOM; j++)
			expect_at_once(&rig.a, 10 * i + j, 8 + j);
		assert_int_equal(device.polls, polls);
		expect_none(rig.a.dto);
		assert_in_range(device.polls, polls + 1, UINT32_MAX);
	}
}

/* Completions of later posts come behind the kept ones. */
static void post__while_some_are_kept__behind_them(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		keep(10, 3);
		assert_int_equal(write_len(&rig.a, 11, 13), DAT_SUCCESS);
		expect_range(10, 1, 4);
		expect_none(rig.a.dto);
	}
}

/* Completions of both endpoints in one batch: each EVD gets its own, in order. */
static void evd_dequeue__several_endpoints_in_one_batch__each_its_own(void **state)
{
	DAT_EVENT event;

	(void)state;
	device.most = VRB_POLL_BATCH;
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(recv_len(&rig.b, 64, 50), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.b, 5, 51), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 6, 52), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.a, 7, 53), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.b, 8, 54), DAT_SUCCESS);
		/* the first of b is queued on the way to the first of a; the rest is kept */
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
		check_event(&event, rig.a.dto, rig.a.ep, 52, DAT_DTO_SUCCESS, 6);
		assert_int_equal(kept(), 3);
		expect(&rig.b, 51, 5);
		expect(&rig.b, 50, 7);
		expect(&rig.b, 54, 8);
		expect(&rig.a, 53, 7);
		expect_none(rig.a.dto);
		expect_none(rig.b.dto);
	}
}

/* Another thread owns the queue: nothing is lost. */
static void evd_dequeue__queue_owned_by_another__kept_stay(void **state)
{
	struct vrb_cq *cq = conn_of(&rig.a)->cq;
	DAT_EVENT event;

	(void)state;
	keep(10, 3);
	assert_true(vrb_cq_own(cq));
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(kept(), 2);
	vrb_cq_disown(cq);
	expect_range(10, 1, 3);
}

/* EVD-STREAM-24: more than the EVD holds; the slow path reports the loss */
static void evd__overflow_by_kept__reported_once(void **state)
{
	DAT_EVENT event;
	unsigned count = 1;

	(void)state;
	open_rig();
	rig.a.dto = make_evd(2, DAT_HANDLE_NULL);
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	join();
	settle();
	keep(0, ROOM);
	expect_none(rig.b.dto); /* dispatches them: two of four are lost */
	assert_int_equal(kept(), 0);
	while (take(rig.a.dto, &event)) {
		check_event(&event, rig.a.dto, rig.a.ep, count, DAT_DTO_SUCCESS, 8 + count);
		count++;
	}
	assert_int_equal(count, 3);
	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	rig_no_event(rig.async);
	keep(0, ROOM); /* the caller takes them one by one, so no queue is full */
	expect_range(0, 1, ROOM);
	teardown(state);
}

/* Arming dispatches the kept completions and has to be repeated; then there are none. */
static void arm__kept__there_is_something(void **state)
{
	struct vrb_adapter *adapter = conn_of(&rig.a)->adapter;

	(void)state;
	keep(10, 3);
	assert_int_equal(vrb_poll_arm(adapter), 1);
	assert_int_equal(kept(), 0);
	assert_int_equal(vrb_poll_arm(adapter), 0);
	expect_range(10, 1, 3);
}

/* When no thread polls, the provider's own thread dispatches them. */
static void service_thread__no_thread_polls__dispatches_them(void **state)
{
	struct vrb_cq *cq = conn_of(&rig.a)->cq;
	struct core_evd *evd = cell(rig.a.dto)->object;
	uint64_t queued = 0;

	(void)state;
	keep(10, 4);
	let_go();
	while (queued != 3) {
		core_lock_acquire(&evd->cell->lock);
		queued = evd->tail - evd->head;
		core_lock_release(&evd->cell->lock);
		sched_yield();
	}
	while (!vrb_cq_own(cq))
		;
	assert_int_equal(kept(), 0);
	vrb_cq_disown(cq);
	expect_range(10, 1, 4);
}

/* A waiter takes the kept completions before it sleeps. */
static void evd_wait__kept__at_once(void **state)
{
	DAT_EVENT event;
	DAT_COUNT more;

	(void)state;
	keep(10, 3);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(core_evd_wait(rig.a.dto, RIG_WAIT_US, 1, &event, &more),
				 DAT_SUCCESS);
		check_event(&event, rig.a.dto, rig.a.ep, 10 + i, DAT_DTO_SUCCESS, 8 + i);
	}
}

/* EP-DISC-09: requests that are done succeed, then the end is reported */
static void ep_disconnect__kept__completed_before_the_end(void **state)
{
	(void)state;
	keep(10, 3);
	assert_int_equal(recv_len(&rig.a, 64, 20), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	let_go();
	expect_range(10, 1, 3);
	expect_flushed(&rig.a, 20);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_reset(&rig);
	join();
	settle();
	keep(30, 2);
	expect_range(30, 1, 2);
}

/* EP-FREE-19: kept completions of a freed endpoint are ignored; those of others are not */
static void ep_free__kept__ignored(void **state)
{
	DAT_EVENT event;

	(void)state;
	device.most = VRB_POLL_BATCH;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(i % 2 ? &rig.b : &rig.a, 8, 10 + i), DAT_SUCCESS);
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
	assert_int_equal(kept(), 3);
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	expect_none(rig.a.dto);
	expect(&rig.b, 11, 8);
	expect(&rig.b, 13, 8);
	let_go();
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* A full batch, all for other EVDs: the device may have more. */
static void evd_dequeue__full_batch_of_others__device_asked_again(void **state)
{
	DAT_EVENT event;

	(void)state;
	device.most = VRB_POLL_BATCH;
	for (unsigned i = 0; i < VRB_POLL_BATCH; i++)
		assert_int_equal(write_len(&rig.b, 8, 100 + i), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 9, 5), DAT_SUCCESS);
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
	check_event(&event, rig.a.dto, rig.a.ep, 5, DAT_DTO_SUCCESS, 9);
	for (unsigned i = 0; i < VRB_POLL_BATCH; i++)
		expect(&rig.b, 100 + i, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(evd_dequeue__kept__before_the_device_is_asked),
		RIG_TEST(post__while_some_are_kept__behind_them),
		RIG_TEST(evd_dequeue__several_endpoints_in_one_batch__each_its_own),
		RIG_TEST(evd_dequeue__queue_owned_by_another__kept_stay),
		cmocka_unit_test(evd__overflow_by_kept__reported_once),
		RIG_TEST(arm__kept__there_is_something),
		RIG_TEST(service_thread__no_thread_polls__dispatches_them),
		RIG_TEST(evd_wait__kept__at_once),
		RIG_TEST(ep_disconnect__kept__completed_before_the_end),
		RIG_TEST(ep_free__kept__ignored),
		RIG_TEST(evd_dequeue__full_batch_of_others__device_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
