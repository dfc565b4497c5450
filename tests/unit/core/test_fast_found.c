// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completions that poll finds on the fast path of a dequeue: the first one of the polled EVD goes
 * to the caller, all others go into queues.
 */
#include "core/ep/ep_fast.h"
#include "core/event/evd.h"
#include "fast_use.h"

static void post_recv(uint64_t cookie)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_recv(handle, 0, NULL, user, 0), DAT_SUCCESS);
}

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

/* --- requests and Receives --- */

static bool request_done(struct core_dequeue *found)
{
	struct core_req *req = core_req_at(&ep->req, ep->req.head);

	assert_non_null(core_handle_enter_fast(handle, DAT_HANDLE_TYPE_EP));
	assert_false(core_req_is_next_done(ep));
	req->len = 21;
	if (!core_req_done_fast(ep->cell, ep, req, found)) {
		core_lock_leave(&ep->cell->lock);
		return false;
	}
	core_lock_leave(&ep->cell->lock);
	return true;
}

static bool receive_done(struct core_dequeue *found)
{
	bool is_done;

	assert_non_null(core_handle_enter_fast(handle, DAT_HANDLE_TYPE_EP));
	assert_true(core_recv_is_posted(ep));
	is_done = core_recv_done_fast(ep->cell, ep, core_recv_oldest(ep), 31, found);
	core_lock_leave(&ep->cell->lock);
	return is_done;
}

static enum transport_poll poll_request_then_receive(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};

	assert_true(request_done(&found));
	assert_true(receive_done(&found));
	assert_int_equal(ep->req.head, ep->req.tail);
	assert_int_equal(ep->recv.head, ep->recv.tail);
	assert_false(core_recv_is_posted(ep));
	return TRANSPORT_POLL_FOUND;
}

static void done_fast__found_by_a_dequeue__each_to_its_evd(void **state)
{
	DAT_EVENT event;

	(void)state;
	post_send(COOKIE(1));
	post_recv(COOKIE(2));
	assert_int_equal(dequeue(&event, poll_request_then_receive), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(1), 21);
	expect_queued(other_handle, COOKIE(2), 31);
}

static void done_fast__no_dequeue__queued(void **state)
{
	(void)state;
	post_send(COOKIE(1));
	post_recv(COOKIE(2));
	assert_true(request_done(NULL));
	assert_true(receive_done(NULL));
	expect_queued(ia.evd, COOKIE(1), 21);
	expect_queued(other_handle, COOKIE(2), 31);
}

/* A completion that no dequeue found triggers the CNO. */
static void done_fast__no_dequeue_and_a_cno__triggered(void **state)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = {NULL, NULL};
	DAT_EVD_HANDLE named;
	DAT_CNO_HANDLE cno;

	(void)state;
	assert_int_equal(core_cno_create(ia.ia, proxy, &cno), DAT_SUCCESS);
	assert_int_equal(core_evd_modify_cno(ia.evd, cno), DAT_SUCCESS);
	post_send(COOKIE(1));
	assert_true(request_done(NULL));
	assert_int_equal(core_cno_wait(cno, 0, &named), DAT_SUCCESS);
	assert_ptr_equal(named, ia.evd);
}

static enum transport_poll poll_both_refused(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event, .is_filled = true};
	uint64_t tail = polled->tail;

	polled->tail = polled->head + polled->capacity;
	assert_false(request_done(&found));
	polled->tail = tail;
	assert_int_equal(ep->req.head + 1, ep->req.tail);
	core_handle_set_slow(other->cell, CORE_EVD_SLOW_CNO);
	assert_false(receive_done(&found));
	core_handle_clear_slow(other->cell, CORE_EVD_SLOW_CNO);
	assert_int_equal(ep->recv.head + 1, ep->recv.tail);
	return TRANSPORT_POLL_EMPTY;
}

/* DTO-06: the request and the Receive stay posted, and complete later. */
static void done_fast__evd_refuses__nothing_changed(void **state)
{
	DAT_EVENT event;

	(void)state;
	post_send(COOKIE(1));
	post_recv(COOKIE(2));
	assert_int_equal(dequeue(&event, poll_both_refused), DAT_QUEUE_EMPTY);
	assert_int_equal(dequeue(&event, poll_request_then_receive), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(1), 21);
	expect_queued(other_handle, COOKIE(2), 31);
}

static enum transport_poll poll_suppressed(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};
	uint64_t head = ep->req.head;

	assert_true(request_done(&found));
	assert_false(found.is_filled);
	assert_int_equal(ep->req.head, head + 1);
	return TRANSPORT_POLL_EMPTY;
}

/* DTO-13 DTO-111 DTO-114: with and without a dequeue. */
static void done_fast__suppressed__no_event_and_slot_free(void **state)
{
	DAT_DTO_COOKIE user = {.as_64 = 99};
	DAT_EVENT event;

	(void)state;
	for (uint32_t i = 0; i < ep->req.capacity; i++)
		post_send_flags(i, DAT_COMPLETION_SUPPRESS_FLAG);
	assert_int_equal(mock_code(core_ep_post_send(handle, 0, NULL, user, 0)),
			 DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(dequeue(&event, poll_suppressed), DAT_QUEUE_EMPTY);
	expect_untouched(&event);
	post_send(COOKIE(1));
	assert_int_equal(mock_code(core_ep_post_send(handle, 0, NULL, user, 0)),
			 DAT_INSUFFICIENT_RESOURCES);
	for (uint32_t i = 1; i < ep->req.capacity; i++)
		assert_true(request_done(NULL));
	mock_no_event(ia.evd);
	assert_true(request_done(NULL));
	expect_queued(ia.evd, COOKIE(1), 21);
}

/* DTO-37 */
static void req_is_next_done__each_case__true_if_second_oldest_done(void **state)
{
	DAT_EVENT event;

	(void)state;
	assert_false(core_req_is_next_done(ep));
	for (uint64_t i = 0; i < 3; i++) {
		post_send(COOKIE(i));
		assert_false(core_req_is_next_done(ep));
	}
	core_req_done(ep, core_req_at(&ep->req, ep->req.head + 2), DAT_DTO_SUCCESS, 0);
	assert_false(core_req_is_next_done(ep));
	core_req_done(ep, core_req_at(&ep->req, ep->req.head + 1), DAT_DTO_SUCCESS, 0);
	assert_true(core_req_is_next_done(ep));
	core_req_done(ep, core_req_at(&ep->req, ep->req.head), DAT_DTO_SUCCESS, 0);
	assert_false(core_req_is_next_done(ep));
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_SUCCESS);
	/* the slot after the newest request is free and is ignored */
	post_send(COOKIE(3));
	core_req_at(&ep->req, ep->req.tail)->is_done = true;
	assert_false(core_req_is_next_done(ep));
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
		T(done_fast__found_by_a_dequeue__each_to_its_evd),
		T(done_fast__no_dequeue__queued),
		T(done_fast__no_dequeue_and_a_cno__triggered),
		T(done_fast__evd_refuses__nothing_changed),
		T(done_fast__suppressed__no_event_and_slot_free),
		T(req_is_next_done__each_case__true_if_second_oldest_done),
	};

	return cmocka_run_group_tests_name("core fast found", tests, NULL, NULL);
}
