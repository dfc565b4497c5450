// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path (src/verbs/fast.c) and EVDs: with events of other kinds, with CNOs and waiters, too
 * small ones, and completion queues that another thread polls.
 */
#include "fast_lab.h"
#include "verbs/window.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* --- EVDs --- */

static DAT_EVENT software_event(void *pointer)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = pointer;
	return event;
}

static void use_software_evd(DAT_COUNT qlen)
{
	open_rig();
	rig.a.dto = make_evd(qlen, DAT_HANDLE_NULL);
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	join();
	settle();
}

/* A queued event comes before a completion that the device has. */
static void evd_post_se__before_a_completion__first(void **state)
{
	DAT_EVENT event, record;

	(void)state;
	use_software_evd(16);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		record = software_event(&rig.memory[i]);
		assert_int_equal(core_evd_post_se(rig.a.dto, &record), DAT_SUCCESS);
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
		assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
		assert_ptr_equal(event.event_data.software_event_data.pointer, &rig.memory[i]);
		assert_true(is_fast(rig.a.dto));
		expect_at_once(&rig.a, i, 8);
	}
	teardown(state);
}

/* EVD-STREAM-24 EVD-STREAM-26: more than the EVD holds; one loss is reported, and it works again */
static void evd__overflow__reported_once_and_on_again(void **state)
{
	DAT_EVENT event;
	unsigned count = 0;

	(void)state;
	use_software_evd(2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	expect_none(rig.b.dto); /* dispatches them: two are lost */
	while (take(rig.a.dto, &event))
		check_event(&event, rig.a.dto, rig.a.ep, count++, DAT_DTO_SUCCESS, 8);
	assert_int_equal(count, 2);
	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	rig_no_event(rig.async);
	assert_true(is_fast(rig.a.dto));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		expect_at_once(&rig.a, i, 8);
	teardown(state);
}

/*
 * EVD-MODIFY-CNO-01 EVD-MODIFY-CNO-04: with a CNO each completion notifies it; without it the EVD
 * is as before
 */
static void evd_modify_cno__set_and_removed__notified_meanwhile(void **state)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	(void)state;
	assert_int_equal(core_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(core_evd_modify_cno(rig.a.dto, cno), DAT_SUCCESS);
		assert_false(is_fast(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		expect_none(rig.b.dto);
		assert_int_equal(core_cno_wait(cno, RIG_WAIT_US, &evd), DAT_SUCCESS);
		assert_ptr_equal(evd, rig.a.dto);
		expect(&rig.a, i, 8);
		expect_none(rig.a.dto);
		assert_false(is_fast(rig.a.dto));
		assert_int_equal(core_evd_modify_cno(rig.a.dto, DAT_HANDLE_NULL), DAT_SUCCESS);
		assert_true(is_fast(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		expect_at_once(&rig.a, i, 8);
	}
	/* removed with an event queued */
	assert_int_equal(core_evd_modify_cno(rig.a.dto, cno), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 5), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 6), DAT_SUCCESS);
	device.polls = 0;
	expect_none(rig.b.dto);
	assert_int_equal(core_evd_modify_cno(rig.a.dto, DAT_HANDLE_NULL), DAT_SUCCESS);
	expect(&rig.a, 5, 8);
	expect(&rig.a, 6, 8);
	assert_true(is_fast(rig.a.dto));
}

/* EVD-RESIZE-02 */
static void evd_resize__in_between__nothing_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
		if (i % 2)
			expect_none(rig.b.dto);
		assert_int_equal(core_evd_resize(rig.a.dto, (DAT_COUNT)(2 + i)), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		expect(&rig.a, 2, 9);
		assert_true(is_fast(rig.a.dto));
	}
}

/* EVD-DEQUEUE-02: a NULL pointer, and an empty EVD; no completion is lost */
static void evd_dequeue__null_or_empty__error(void **state)
{
	DAT_EVENT event, before;
	unsigned polls;

	(void)state;
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	polls = device.polls;
	assert_int_equal(dequeue(rig.a.dto, NULL),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	assert_int_equal(device.polls, polls);
	assert_true(is_fast(rig.a.dto));
	expect_at_once(&rig.a, 1, 8);
	memset(&event, 0x3c, sizeof(event));
	before = event;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
		assert_true(is_fast(rig.a.dto));
		assert_memory_equal(&event, &before, sizeof(event));
	}
	assert_int_equal(device.polls, polls + 4);
}

/* Several completions of one poll: dequeues return them one by one, in order. */
static void evd_dequeue__several_at_once__in_order(void **state)
{
	unsigned polls;

	(void)state;
	device.most = VRB_POLL_BATCH;
	for (unsigned round = 0; round < 2 * SLOTS; round++) {
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(write_len(&rig.a, 8 + i, 100 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.dto));
		for (unsigned i = 0; i < ROOM; i++) {
			DAT_EVENT event;

			assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
			check_event(&event, rig.a.dto, rig.a.ep, 100 + i, DAT_DTO_SUCCESS, 8 + i);
			assert_int_equal(kept(), ROOM - 1 - i);
		}
		assert_true(is_fast(rig.a.ep));
	}
	/* a poll returns a batch */
	for (unsigned i = 0; i < VRB_POLL_BATCH; i++)
		assert_int_equal(write_len(&rig.b, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < ROOM; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	polls = device.polls;
	expect(&rig.b, 0, 8);
	assert_int_equal(device.polls - polls, 1);
	for (unsigned i = 1; i < VRB_POLL_BATCH; i++)
		expect(&rig.b, i, 8);
	for (unsigned i = 0; i < ROOM; i++)
		expect(&rig.a, i, 8);
	/* more than one poll returns, and than the queue has room for */
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(write_len(&rig.b, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < 30; i++)
		expect(&rig.b, i, 8);
	assert_true(is_fast(rig.b.ep) && is_fast(rig.b.dto));
}

/* Another thread owns the completion queue: a dequeue finds nothing, and nothing is lost. */
static void evd_dequeue__queue_polled_by_another__empty(void **state)
{
	struct vrb_cq *cq = conn_of(&rig.a)->cq;
	unsigned polls = device.polls;
	DAT_EVENT event;

	(void)state;
	assert_int_equal(core_evd_dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(device.polls, ++polls);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_true(vrb_cq_own(cq));
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(device.polls, polls);
	vrb_cq_disown(cq);
	expect_at_once(&rig.a, 1, 8);
	assert_false(atomic_load(&cq->is_owned));
}

/* A dequeue tries a bind again that another one holds up, even if there is no event. */
static void evd_dequeue__empty__binds_held_up_go_on(void **state)
{
	DAT_EVENT event;

	(void)state;
	vrb_window_set_blocked(conn_of(&rig.b), true);
	core_handle_set_slow(rig.b.ep, CORE_EP_SLOW_QUEUE);
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_true(is_fast(rig.b.ep)); /* it was tried again, and its slow reasons were updated */
	vrb_window_set_blocked(conn_of(&rig.b), false);
}

static _Atomic bool is_reported;

static void *wait_for_one(void *argument)
{
	DAT_EVENT *event = argument;

	*event = rig_event(rig.a.dto);
	atomic_store(&is_reported, true);
	return NULL;
}

/* Dispatches completions until the waiter has its event. */
static void until_reported(void)
{
	while (!atomic_load(&is_reported)) {
		rig_no_event(rig.b.conn);
		sched_yield();
	}
}

/* Waits until a thread waits for the EVD. */
static void until_waited_for(void)
{
	struct core_evd *evd = cell(rig.a.dto)->object;
	bool has_waiter = false;

	while (!has_waiter) {
		core_lock_acquire(&evd->cell->lock);
		has_waiter = evd->has_waiter;
		core_lock_release(&evd->cell->lock);
		sched_yield();
	}
}

/*
 * EVD-DEQUEUE-04 EVD-DEQUEUE-05: while a thread waits, a dequeue is refused, and the waiter gets
 * the completion
 */
static void evd_wait__while_another_dequeues__gets_it(void **state)
{
	DAT_EVENT event, other;
	pthread_t thread;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		atomic_store(&is_reported, false);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &event), 0);
		until_waited_for();
		assert_int_equal(slow(rig.a.dto), CORE_EVD_SLOW_WAITER);
		assert_int_equal(dequeue(rig.a.dto, &other), DAT_CLASS_ERROR | DAT_INVALID_STATE |
								     DAT_INVALID_STATE_EVD_WAITER);
		assert_false(is_fast(rig.a.dto));
		if (i % 2) {
			assert_int_equal(recv_len(&rig.a, 64, i), DAT_SUCCESS);
			assert_int_equal(send_len(&rig.b, 8, 9), DAT_SUCCESS);
		} else {
			assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		}
		until_reported();
		assert_int_equal(pthread_join(thread, NULL), 0);
		check_event(&event, rig.a.dto, rig.a.ep, i, DAT_DTO_SUCCESS, 8);
		if (i % 2)
			expect(&rig.b, 9, 8);
		own_all();
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		assert_true(is_fast(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect_at_once(&rig.a, 1, 8);
	}
}

static void *wait_for_end(void *argument)
{
	DAT_EVENT event;
	DAT_COUNT more;

	assert_int_equal(DAT_GET_TYPE(core_evd_wait(*(DAT_EVD_HANDLE *)argument,
						    DAT_TIMEOUT_INFINITE, 1, &event, &more)),
			 DAT_ABORT);
	return NULL;
}

/* EVD-FREE-08 EVD-FREE-11: the handle stays dead after the waiter has left */
static void evd_free__while_a_thread_waits__handle_dead(void **state)
{
	DAT_EVD_HANDLE mine = rig.a.dto, evd = make_evd(8, DAT_HANDLE_NULL);
	const DAT_PROVIDER *calls = CALLS(evd);
	DAT_EVENT event;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &evd), 0);
	rig.a.dto = evd;
	until_waited_for();
	rig.a.dto = mine;
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(calls->evd_dequeue_func(evd, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(evd_post_se__before_a_completion__first),
		cmocka_unit_test(evd__overflow__reported_once_and_on_again),
		RIG_TEST(evd_modify_cno__set_and_removed__notified_meanwhile),
		RIG_TEST(evd_resize__in_between__nothing_lost),
		RIG_TEST(evd_dequeue__null_or_empty__error),
		RIG_TEST(evd_dequeue__several_at_once__in_order),
		RIG_TEST(evd_dequeue__queue_polled_by_another__empty),
		RIG_TEST(evd_dequeue__empty__binds_held_up_go_on),
		RIG_TEST(evd_wait__while_another_dequeues__gets_it),
		RIG_TEST(evd_free__while_a_thread_waits__handle_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
