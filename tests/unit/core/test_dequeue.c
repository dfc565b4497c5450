// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slow path of dat_evd_dequeue: a dequeue from an empty EVD drives the transport once, without
 * the lock of the EVD. Whatever happens meanwhile, events keep their order and each goes to one
 * caller. test_fast.c tests the fast path.
 */
#include <pthread.h>
#include <sched.h>

#include "core/event/cno.h"
#include "core/event/evd.h"
#include "mock.h"

static struct mock_ia ia;
static DAT_EP_HANDLE handle;
static struct core_ep *ep;
static struct core_evd *evd; /* for all events */
static pthread_t caller;     /* the thread whose dequeue is tested */
static pthread_t other;
static DAT_RETURN other_ret;
static DAT_EVENT other_event;
static DAT_EVD_HANDLE other_evd;
static DAT_CNO_HANDLE cno;

static int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	handle = mock_connected(&ia);
	ep = mock.ep;
	evd = ((struct core_handle *)ia.evd)->object;
	(void)mock_own(ia.evd);
	caller = pthread_self();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock.on_progress = NULL;
	mock_close(&ia);
	return 0;
}

static void post(uint64_t cookie)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_send(handle, 0, NULL, user, 0), DAT_SUCCESS);
}

/* The transport completes the oldest request. */
static void finish(void)
{
	core_lock_acquire(&ep->cell->lock);
	core_req_done(ep, core_req_at(&ep->req, ep->req.head), DAT_DTO_SUCCESS, 0);
	core_ep_leave(ep);
}

static void post_software_event(DAT_EVD_HANDLE to)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	assert_int_equal(core_evd_post_se(to, &event), DAT_SUCCESS);
}

static void expect_completion(const DAT_EVENT *event, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(event->evd_handle, ia.evd);
	assert_ptr_equal(data->ep_handle, handle);
	assert_int_equal(data->user_cookie.as_64, cookie);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
	assert_int_equal(data->transfered_length, 0);
}

/* Dequeues; the transport calls `happening` when it is driven. */
static DAT_EVENT dequeue_during(void (*happening)(void))
{
	DAT_EVENT event;

	memset(&event, 0x5a, sizeof(event));
	mock.on_progress = happening;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_SUCCESS);
	mock.on_progress = NULL;
	return event;
}

static DAT_EVENT next(void)
{
	unsigned int before = mock.progresses;
	DAT_EVENT event = dequeue_during(NULL);

	assert_int_equal(mock.progresses, before); /* the event was queued */
	return event;
}

/* --- one thread --- */

static void dequeue__completion_found__returned(void **state)
{
	unsigned int before = mock.progresses;
	DAT_EVENT event;

	(void)state;
	post(1);
	event = dequeue_during(finish);
	expect_completion(&event, 1);
	assert_int_equal(mock.progresses, before + 1);
	mock_no_event(ia.evd);
}

static void finish_two(void)
{
	finish();
	finish();
}

static void dequeue__two_completions_found__the_second_is_queued(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	post(2);
	event = dequeue_during(finish_two);
	expect_completion(&event, 1);
	event = next();
	expect_completion(&event, 2);
	mock_no_event(ia.evd);
}

static void software_event_then_finish(void)
{
	post_software_event(ia.evd);
	finish();
}

/* EVD-STREAM-01: completions and software events on one EVD keep their order. */
static void dequeue__other_event_before_the_completion__keeps_its_place(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	assert_int_equal(dequeue_during(software_event_then_finish).event_number,
			 DAT_SOFTWARE_EVENT);
	event = next();
	expect_completion(&event, 1);
	mock_no_event(ia.evd);
}

static void finish_then_software_event(void)
{
	finish();
	post_software_event(ia.evd);
}

static void dequeue__other_event_after_the_completion__keeps_its_place(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	event = dequeue_during(finish_then_software_event);
	expect_completion(&event, 1);
	assert_int_equal(next().event_number, DAT_SOFTWARE_EVENT);
	mock_no_event(ia.evd);
}

static void break_connection(void)
{
	core_lock_acquire(&ep->cell->lock);
	core_ep_ended(ep, DAT_CONNECTION_EVENT_BROKEN);
	core_ep_leave(ep);
}

/* EP-STATE-53: the flushes precede the event. */
static void dequeue__connection_ends__flushes_before_its_event(void **state)
{
	(void)state;
	post(1);
	post(2);
	for (uint64_t i = 1; i <= 2; i++) {
		DAT_EVENT event = dequeue_during(i == 1 ? break_connection : NULL);

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_FLUSHED);
	}
	assert_int_equal(next().event_number, DAT_CONNECTION_EVENT_BROKEN);
}

/* A completion after the call is not written to the event of that call. */
static void dequeue__returned__later_completions_are_queued(void **state)
{
	DAT_EVENT event, untouched;

	(void)state;
	post(1);
	post(2);
	post(3);
	memset(&event, 0x5a, sizeof(event));
	untouched = event;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_QUEUE_EMPTY);
	finish();
	assert_memory_equal(&event, &untouched, sizeof(event));
	untouched = next();
	expect_completion(&untouched, 1);

	mock.on_progress = finish;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_SUCCESS);
	mock.on_progress = NULL;
	finish();
	expect_completion(&event, 2);
	event = next();
	expect_completion(&event, 3);
}

static void dequeue_within(void)
{
	mock.on_progress = finish;
	other_ret = core_evd_dequeue(ia.evd, &other_event);
	mock.on_progress = NULL;
}

/* A dequeue inside progress(), such as in an agent. */
static void dequeue__nested_in_progress__event_to_one(void **state)
{
	DAT_EVENT event;

	(void)state;
	post(1);
	mock.on_progress = dequeue_within;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(other_ret, DAT_SUCCESS);
	expect_completion(&other_event, 1);
	assert_int_equal(evd->busy, 0);
}

/* --- notifications --- */

static DAT_RETURN cno_triggered(DAT_EVD_HANDLE *named)
{
	return core_cno_wait(cno, 0, named);
}

static void make_cno(void)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = {NULL, NULL};

	assert_int_equal(core_cno_create(ia.ia, proxy, &cno), DAT_SUCCESS);
}

/* EVD-STREAM-21 */
static void dequeue__evd_with_cno__completion_triggers_it(void **state)
{
	DAT_EVD_HANDLE named;
	DAT_EVENT event;

	(void)state;
	make_cno();
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	assert_int_equal(cno_triggered(&named), DAT_QUEUE_EMPTY);
	post(1);
	event = dequeue_during(finish);
	expect_completion(&event, 1);
	assert_int_equal(cno_triggered(&named), DAT_SUCCESS);
	assert_ptr_equal(named, ia.evd);
}

static void get_cno_then_finish(void)
{
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	finish();
}

static void dequeue__cno_set_meanwhile__completion_triggers_it(void **state)
{
	DAT_EVD_HANDLE named;
	DAT_EVENT event;

	(void)state;
	make_cno();
	post(1);
	event = dequeue_during(get_cno_then_finish);
	expect_completion(&event, 1);
	assert_int_equal(cno_triggered(&named), DAT_SUCCESS);
	assert_ptr_equal(named, ia.evd);
}

/* A consumer with a descriptor may sleep once the EVD is empty: the dequeue arms the transport. */
static void dequeue__empty_with_descriptor__transport_armed(void **state)
{
	DAT_EVENT event;
	int fd;

	(void)state;
	make_cno();
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	assert_int_equal(core_cno_fd(cno, &fd), DAT_SUCCESS);
	(void)mock_own(ia.evd);
	mock.arms = 0;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(mock.arms, 1);
}

/* --- losses --- */

static void finish_three(void)
{
	finish_two();
	finish();
}

/* EVD-STREAM-31: consecutive losses raise one event. A dequeue ends the run. */
static void dequeue__losses_meanwhile__next_loss_is_reported(void **state)
{
	DAT_EVD_HANDLE everything = ia.evd;
	DAT_EVENT event;

	(void)state;
	assert_int_equal(core_evd_create(ia.ia, 1, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &ia.evd),
			 DAT_SUCCESS);
	assert_int_equal(core_ep_create(ia.ia, ia.pz, ia.evd, ia.evd, everything, NULL, &handle),
			 DAT_SUCCESS);
	ep = ((struct core_handle *)handle)->object;
	core_lock_acquire(&ep->cell->lock);
	ep->state = DAT_EP_STATE_CONNECTED;
	core_ep_update_slow_reasons(ep);
	core_ep_leave(ep);
	(void)mock_own(ia.evd);
	for (uint64_t i = 1; i <= 5; i++)
		post(i);
	event = dequeue_during(finish_three); /* one queued and two lost, then one taken */
	expect_completion(&event, 1);
	assert_int_equal(mock_event(ia.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	mock_no_event(ia.async);
	finish();
	mock_no_event(ia.async);
	finish();
	assert_int_equal(mock_event(ia.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	event = next();
	expect_completion(&event, 4);
	ia.evd = everything;
}

/* --- two threads --- */

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
		T(dequeue__completion_found__returned),
		T(dequeue__two_completions_found__the_second_is_queued),
		T(dequeue__other_event_before_the_completion__keeps_its_place),
		T(dequeue__other_event_after_the_completion__keeps_its_place),
		T(dequeue__connection_ends__flushes_before_its_event),
		T(dequeue__returned__later_completions_are_queued),
		T(dequeue__nested_in_progress__event_to_one),
		T(dequeue__evd_with_cno__completion_triggers_it),
		T(dequeue__cno_set_meanwhile__completion_triggers_it),
		T(dequeue__empty_with_descriptor__transport_armed),
		T(dequeue__losses_meanwhile__next_loss_is_reported),
		T(dequeue__other_thread_waits_meanwhile__waiter_gets_the_event),
		T(dequeue__other_thread_waits_afterwards__event_to_one),
		T(dequeue__other_thread_finds_the_event__returned_to_one),
		T(dequeue__other_thread_finds_two_events__one_for_each),
		T(dequeue__other_thread_dequeued_meanwhile__still_served),
		T(dequeue__freed_meanwhile__invalid_handle),
	};

	return cmocka_run_group_tests_name("core dequeue", tests, NULL, NULL);
}
