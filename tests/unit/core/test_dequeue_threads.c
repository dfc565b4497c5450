// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slow path of dat_evd_dequeue while other threads wait, dequeue or free the EVD: each event
 * goes to one caller.
 */
#include <pthread.h>
#include <sched.h>

#include "core/event/evd.h"
#include "dequeue_use.h"

static pthread_t other;

static DAT_EVD_HANDLE other_evd;

static void *run_wait(void *arg)
{
	DAT_COUNT more;

	other_ret = core_evd_wait(ia.evd, DAT_TIMEOUT_INFINITE, 1, &other_event, &more);
	return arg;
}

static void await_waiter(void)
{
	bool has_waiter;

	do {
		core_lock_acquire(&evd->cell->lock);
		has_waiter = evd->has_waiter;
		core_lock_release(&evd->cell->lock);
		sched_yield();
	} while (!has_waiter);
}

static void wait_in_other_thread_then_finish(void)
{
	if (!pthread_equal(pthread_self(), caller))
		return;
	mock.on_progress = NULL;
	assert_int_equal(pthread_create(&other, NULL, run_wait, NULL), 0);
	await_waiter();
	finish();
	pthread_join(other, NULL);
}

/* EVD-WAIT-17: a waiter owns the EVD. */
static void dequeue__other_thread_waits_meanwhile__waiter_gets_the_event(void **state)
{
	DAT_EVENT event, untouched;

	(void)state;
	post(1);
	memset(&event, 0x5a, sizeof(event));
	untouched = event;
	mock.on_progress = wait_in_other_thread_then_finish;
	/* the waiter has returned before the dequeue does */
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_QUEUE_EMPTY);
	assert_memory_equal(&event, &untouched, sizeof(event));
	assert_int_equal(other_ret, DAT_SUCCESS);
	expect_completion(&other_event, 1);
}

static void finish_then_wait_in_other_thread(void)
{
	if (!pthread_equal(pthread_self(), caller))
		return;
	mock.on_progress = NULL;
	finish();
	assert_int_equal(pthread_create(&other, NULL, run_wait, NULL), 0);
	pthread_join(other, NULL);
}

/* The event was queued before the wait: the first thread to lock the EVD takes it. */
static void dequeue__other_thread_waits_afterwards__event_to_one(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	mock.on_progress = finish_then_wait_in_other_thread;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(other_ret, DAT_SUCCESS);
	expect_completion(&other_event, 1);
}

static void *run_dequeue(void *arg)
{
	other_ret = core_evd_dequeue(ia.evd, &other_event);
	return arg;
}

static unsigned int found_by_other;

static void dequeue_in_other_thread(void)
{
	if (pthread_equal(pthread_self(), caller)) {
		assert_int_equal(pthread_create(&other, NULL, run_dequeue, NULL), 0);
		pthread_join(other, NULL);
		return;
	}
	for (unsigned int i = 0; i < found_by_other; i++)
		finish();
}

static void dequeue__other_thread_finds_the_event__returned_to_one(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	found_by_other = 1;
	mock.on_progress = dequeue_in_other_thread;
	if (core_evd_dequeue(ia.evd, &event) == DAT_SUCCESS) {
		assert_int_equal(other_ret, DAT_QUEUE_EMPTY);
	} else {
		assert_int_equal(other_ret, DAT_SUCCESS);
		event = other_event;
	}
	mock.on_progress = NULL;
	expect_completion(&event, 1);
	mock_no_event(ia.evd);
}

/* EVD-DEQUEUE-10 EVD-STREAM-04: each event is returned once, to one thread. */
static void dequeue__other_thread_finds_two_events__one_for_each(void **state)
{
	DAT_EVENT event;
	uint64_t cookie;

	(void)state;
	post(1);
	post(2);
	found_by_other = 2;
	event = dequeue_during(dequeue_in_other_thread);
	assert_int_equal(other_ret, DAT_SUCCESS);
	cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
	assert_true(cookie == 1 || cookie == 2);
	expect_completion(&event, cookie);
	expect_completion(&other_event, 3 - cookie);
	mock_no_event(ia.evd);
}

static void dequeue_in_other_thread_then_finish(void)
{
	if (!pthread_equal(pthread_self(), caller))
		return;
	found_by_other = 0;
	dequeue_in_other_thread();
	finish();
}

/* The end of the second dequeue does not affect the first one. */
static void dequeue__other_thread_dequeued_meanwhile__still_served(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	event = dequeue_during(dequeue_in_other_thread_then_finish);
	expect_completion(&event, 1);
	assert_int_equal(other_ret, DAT_QUEUE_EMPTY);
	assert_int_equal(evd->busy, 0);
}

static void *run_free(void *arg)
{
	other_ret = core_evd_free(other_evd);
	return arg;
}

static void free_in_other_thread(void)
{
	struct core_evd *dying = ((struct core_handle *)other_evd)->object;
	struct core_handle *cell = other_evd;
	bool is_dying;

	post_software_event(other_evd);
	assert_int_equal(pthread_create(&other, NULL, run_free, NULL), 0);
	do {
		core_lock_acquire(&cell->lock);
		is_dying = dying->is_dying;
		core_lock_release(&cell->lock);
		sched_yield();
	} while (!is_dying);
}

/* EVD-FREE-02: the free waits for the dequeue, which returns no event. */
static void dequeue__freed_meanwhile__invalid_handle(void **state)
{
	DAT_EVENT event;

	(void)state;
	assert_int_equal(core_evd_create(ia.ia, 8, DAT_HANDLE_NULL,
					 DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG, &other_evd),
			 DAT_SUCCESS);
	mock.on_progress = free_in_other_thread;
	assert_int_equal(core_evd_dequeue(other_evd, &event), DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
	mock.on_progress = NULL;
	pthread_join(other, NULL);
	assert_int_equal(other_ret, DAT_SUCCESS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(dequeue__other_thread_waits_meanwhile__waiter_gets_the_event),
		T(dequeue__other_thread_waits_afterwards__event_to_one),
		T(dequeue__other_thread_finds_the_event__returned_to_one),
		T(dequeue__other_thread_finds_two_events__one_for_each),
		T(dequeue__other_thread_dequeued_meanwhile__still_served),
		T(dequeue__freed_meanwhile__invalid_handle),
	};

	return cmocka_run_group_tests_name("core dequeue threads", tests, NULL, NULL);
}
