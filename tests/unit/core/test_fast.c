// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a dequeue, with poll functions of the tests: the result for each result of poll,
 * and the cases in which poll is not called.
 */
#include "core/ep/ep_fast.h"
#include "core/event/evd_queue.h"
#include "fast_use.h"

/* --- results of poll --- */

static enum transport_poll poll_empty(struct core_evd *polled, DAT_EVENT *event)
{
	assert_ptr_equal(polled, evd);
	assert_non_null(event);
	return TRANSPORT_POLL_EMPTY;
}

static enum transport_poll poll_needs_slow_path(struct core_evd *polled, DAT_EVENT *event)
{
	(void)polled;
	(void)event;
	return TRANSPORT_POLL_SLOW;
}

static enum transport_poll poll_found(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event};

	assert_true(give(&found, polled, COOKIE(1), 11));
	assert_true(found.is_filled);
	return TRANSPORT_POLL_FOUND;
}

/* EVD-DEQUEUE-02 EVD-DEQUEUE-03 */
static void dequeue__poll_empty__queue_empty(void **state)
{
	DAT_EVENT event;

	(void)state;
	assert_int_equal(dequeue(&event, poll_empty), DAT_QUEUE_EMPTY);
	expect_untouched(&event);
	assert_int_equal(mock.polls, 1);
	assert_int_equal(mock.progresses, 0);
}

/* EVD-DEQUEUE-01 */
static void dequeue__poll_found__event_and_nothing_queued(void **state)
{
	uint64_t tail = evd->tail;
	DAT_EVENT event;

	(void)state;
	assert_int_equal(dequeue(&event, poll_found), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(1), 11);
	assert_int_equal(mock.polls, 1);
	assert_int_equal(mock.progresses, 0);
	assert_int_equal(evd->tail, tail);
	assert_int_equal(evd->head, tail);
}

static void complete_request(void)
{
	core_lock_acquire(&ep->cell->lock);
	core_req_done(ep, core_req_at(&ep->req, ep->req.head), DAT_DTO_SUCCESS, 0);
	core_ep_leave(ep);
}

static void dequeue__poll_needs_slow_path__progress_once_and_event_taken(void **state)
{
	DAT_EVENT event;

	(void)state;
	post_send(COOKIE(2));
	mock.on_progress = complete_request;
	assert_int_equal(dequeue(&event, poll_needs_slow_path), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(2), 0);
	assert_int_equal(mock.polls, 1);
	assert_int_equal(mock.progresses, 1);
	mock.on_progress = NULL;
	assert_int_equal(dequeue(&event, poll_needs_slow_path), DAT_QUEUE_EMPTY);
	expect_untouched(&event);
	assert_int_equal(mock.progresses, 2);
}

/* Queues a completion and then asks for the slow path, which takes it without progress. */
static enum transport_poll poll_queues_then_declines(struct core_evd *polled, DAT_EVENT *event)
{
	struct core_dequeue found = {.cell = polled->cell, .event = event, .is_filled = true};

	assert_true(give(&found, polled, COOKIE(3), 3));
	return TRANSPORT_POLL_SLOW;
}

static void dequeue__poll_queues_and_declines__queued_event_taken(void **state)
{
	DAT_EVENT event;

	(void)state;
	assert_int_equal(dequeue(&event, poll_queues_then_declines), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(3), 3);
	assert_int_equal(mock.progresses, 0);
}

/* EVD-STREAM-02 */
static void dequeue__events_queued__no_poll(void **state)
{
	DAT_EVENT event;

	(void)state;
	post_send(COOKIE(1));
	post_send(COOKIE(2));
	complete_request();
	complete_request();
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(dequeue(&event, poll_found), DAT_SUCCESS);
		expect_completion(&event, ia.evd, COOKIE(i), 0);
	}
	assert_int_equal(mock.polls, 0);
	assert_int_equal(mock.progresses, 0);
}

/* --- no fast path --- */

/* EVD-DEQUEUE-12: with and without a queued event; the lock is released. */
static void dequeue__no_event_pointer__invalid_parameter(void **state)
{
	DAT_EVENT event;

	(void)state;
	mock.on_poll = poll_found;
	assert_int_equal(core_evd_dequeue(ia.evd, NULL),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	post_software_event(ia.evd);
	assert_int_equal(core_evd_dequeue(ia.evd, NULL),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	assert_int_equal(mock.polls, 0);
	assert_int_equal(mock.progresses, 0);
	assert_int_equal(dequeue(&event, poll_found), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
	assert_int_equal(dequeue(&event, poll_found), DAT_SUCCESS);
	expect_completion(&event, ia.evd, COOKIE(1), 11);
}

static void expect_bad_evd(DAT_EVD_HANDLE bad)
{
	DAT_EVENT event;

	memset(&event, 0x5a, sizeof(event));
	mock.on_poll = poll_found;
	assert_int_equal(core_evd_dequeue(bad, &event), DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
	mock.on_poll = NULL;
	expect_unlocked((struct core_handle *)bad);
	expect_untouched(&event);
	assert_int_equal(mock.polls, 0);
	assert_int_equal(mock.progresses, 0);
}

static void expect_bad_ep(DAT_EP_HANDLE bad)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	DAT_LMR_TRIPLET iov = {0};
	DAT_RMR_TRIPLET remote = {0};
	const DAT_RETURN error = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP;

	assert_int_equal(core_ep_post_send(bad, 1, &iov, cookie, 0), error);
	assert_int_equal(core_ep_post_recv(bad, 1, &iov, cookie, 0), error);
	assert_int_equal(core_ep_post_rdma_write(bad, 1, &iov, cookie, &remote, 0), error);
	assert_int_equal(mock.fast_posts + mock.fast_recvs, 0);
	expect_unlocked((struct core_handle *)bad);
}

/* EVD-DEQUEUE-11 */
static void calls__handle_of_another_type__invalid_handle(void **state)
{
	(void)state;
	expect_bad_evd((DAT_EVD_HANDLE)handle);
	expect_bad_ep((DAT_EP_HANDLE)ia.evd);
}

static void calls__object_freed__invalid_handle(void **state)
{
	(void)state;
	assert_int_equal(core_ep_free(handle), DAT_SUCCESS);
	expect_bad_ep(handle);
	assert_int_equal(core_evd_free(ia.evd), DAT_SUCCESS);
	expect_bad_evd(ia.evd);
}

/* As dat_ia_close does before it destroys the objects. */
static void calls__object_doomed__invalid_handle(void **state)
{
	(void)state;
	core_handle_doom(ep->cell);
	core_handle_doom(evd->cell);
	expect_bad_evd(ia.evd);
	expect_bad_ep(handle);
	core_handle_publish(ep->cell, DAT_HANDLE_TYPE_EP);
	core_handle_publish(evd->cell, DAT_HANDLE_TYPE_EVD);
}

/* --- locks that other threads hold --- */

static void dequeue__lock_held_by_another__slow_path(void **state)
{
	DAT_EVENT event;

	(void)state;
	post_send(COOKIE(1));
	mock.on_progress = complete_request;
	start_holder(ia.evd, 50000000);
	assert_int_equal(dequeue(&event, poll_needs_slow_path), DAT_SUCCESS);
	stop_holder();
	expect_completion(&event, ia.evd, COOKIE(1), 0);
	assert_int_equal(mock.progresses, 1);
	assert_int_equal(mock.polls, 0);
}

static void post__lock_held_by_another__slow_path(void **state)
{
	(void)state;
	start_holder(handle, 50000000);
	post_send(COOKIE(1));
	stop_holder();
	assert_int_equal(mock.fast_posts, 0);
	assert_int_equal(mock.posts, 1);
	assert_true(mock.req->cookie.as_64 == COOKIE(1));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(dequeue__poll_empty__queue_empty),
		T(dequeue__poll_found__event_and_nothing_queued),
		T(dequeue__poll_needs_slow_path__progress_once_and_event_taken),
		T(dequeue__poll_queues_and_declines__queued_event_taken),
		T(dequeue__events_queued__no_poll),
		T(dequeue__no_event_pointer__invalid_parameter),
		T(calls__handle_of_another_type__invalid_handle),
		T(calls__object_freed__invalid_handle),
		T(calls__object_doomed__invalid_handle),
		T(dequeue__lock_held_by_another__slow_path),
		T(post__lock_held_by_another__slow_path),
	};

	return cmocka_run_group_tests_name("core fast", tests, NULL, NULL);
}
