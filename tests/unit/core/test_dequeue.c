// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slow path of dat_evd_dequeue: a dequeue from an empty EVD drives the transport once, without
 * the lock of the EVD. Events that arrive meanwhile keep their order. test_fast.c tests the fast
 * path.
 */
#include "core/event/cno.h"
#include "core/event/evd.h"
#include "dequeue_use.h"
#include "core/ep/ep_state.h"

static DAT_CNO_HANDLE cno;

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

/* EVD-MODIFY-CNO-02: requests that are under way trigger it, so the transport has to tell of them.
 */
static void modify_cno__attached__transport_armed(void **state)
{
	(void)state;
	make_cno();
	mock.arms = 0;
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	assert_int_equal(mock.arms, 1);
	assert_int_equal(core_evd_modify_cno(ia.evd, DAT_HANDLE_NULL), DAT_SUCCESS);
	assert_int_equal(mock.arms, 1);
	/* new work each time: a later dequeue of a program with a descriptor arms it */
	mock.arm_finds = 100;
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	assert_in_range(mock.arms, 2, 100);
	mock.arm_finds = 0;
	/* so does a poll that finds work of other objects each time */
	assert_int_equal(core_evd_modify_cno(ia.evd, DAT_HANDLE_NULL), DAT_SUCCESS);
	mock.arms = 0;
	mock.progress_finds = 1;
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	mock.progress_finds = 0;
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
		T(modify_cno__attached__transport_armed),
		T(dequeue__losses_meanwhile__next_loss_is_reported),
	};

	return cmocka_run_group_tests_name("core dequeue", tests, NULL, NULL);
}
