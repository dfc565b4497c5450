// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a dequeue, with poll functions of the tests: the result for each result of poll,
 * the cases in which poll is not called, and the delivery of completions that poll finds. The first
 * one of the polled EVD goes to the caller, all others go into queues.
 */
#include <pthread.h>
#include <time.h>

#include "core/ep/ep_fast.h"
#include "core/event/evd.h"
#include "mock.h"

#define COOKIE(n) (0xfedcba9800000000u + ((uint64_t)(n) << 60) + (n))
#define OTHER_LENGTH 4

static struct mock_ia ia;
static DAT_EVD_HANDLE other_handle; /* the EVD of Receives */
static DAT_EP_HANDLE handle;
static struct core_evd *evd; /* of requests; the polled one */
static struct core_evd *other;
static struct core_ep *ep;

static int setup(void **state)
{
	DAT_EP_PARAM param;

	(void)state;
	mock_open(&ia);
	assert_int_equal(core_evd_create(ia.ia, OTHER_LENGTH, DAT_HANDLE_NULL,
					 DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG,
					 &other_handle),
			 DAT_SUCCESS);
	handle = mock_connected(&ia);
	ep = mock.ep;
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	(void)mock_event(ia.evd);
	param.recv_evd_handle = other_handle;
	assert_int_equal(core_ep_modify(handle, DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_SUCCESS);
	ep->state = DAT_EP_STATE_CONNECTED;
	core_ep_update_slow_reasons(ep);
	assert_int_equal(ep->cell->slow_reasons, 0);
	evd = ((struct core_handle *)ia.evd)->object;
	other = ((struct core_handle *)other_handle)->object;
	/* without membarrier there are no fast paths */
	if (!mock_own(ia.evd) || !mock_own(other_handle) || !mock_own(handle))
		skip();
	mock.polls = 0;
	mock.progresses = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock.on_poll = NULL;
	mock.on_progress = NULL;
	mock_close(&ia);
	return 0;
}

static void post_send_flags(uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_send(handle, 0, NULL, user, flags), DAT_SUCCESS);
}

static void post_send(uint64_t cookie)
{
	post_send_flags(cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static void post_recv(uint64_t cookie)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_recv(handle, 0, NULL, user, 0), DAT_SUCCESS);
}

static void post_software_event(DAT_EVD_HANDLE to)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	assert_int_equal(core_evd_post_se(to, &event), DAT_SUCCESS);
}

static void expect_completion(const DAT_EVENT *event, DAT_EVD_HANDLE from, uint64_t cookie,
			      DAT_VLEN len)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(event->evd_handle, from);
	assert_ptr_equal(data->ep_handle, handle);
	assert_true(data->user_cookie.as_64 == cookie);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
	assert_int_equal(data->transfered_length, len);
}

/* Checks that the event still has the pattern that dequeue() filled in. */
static void expect_untouched(const DAT_EVENT *event)
{
	DAT_EVENT pattern;

	memset(&pattern, 0x5a, sizeof(pattern));
	assert_memory_equal(event, &pattern, sizeof(pattern));
}

/* Checked here, as a thread that owns a lock can enter it again. */
static void expect_unlocked(const struct core_handle *cell)
{
	assert_int_equal(atomic_load(&cell->lock.inside), 0);
}

static DAT_RETURN dequeue(DAT_EVENT *event,
			  enum transport_poll (*poll)(struct core_evd *evd, DAT_EVENT *event))
{
	DAT_RETURN ret;

	memset(event, 0x5a, sizeof(*event));
	mock.on_poll = poll;
	ret = core_evd_dequeue(ia.evd, event);
	mock.on_poll = NULL;
	expect_unlocked(evd->cell);
	expect_unlocked(ep->cell);
	return ret;
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

static bool give(struct core_dequeue *to, struct core_evd *of, uint64_t cookie, DAT_VLEN len)
{
	return core_evd_deliver_dto(of, to, (DAT_HANDLE)ep->cell, (DAT_DTO_COOKIE){.as_64 = cookie},
				    len);
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

static struct core_handle *held;
static pthread_t holder;
static _Atomic bool is_held;
static _Atomic bool may_release;
static long hold_ns; /* 0: until may_release is set */

static void *hold(void *arg)
{
	const struct timespec pause = {0, hold_ns ? hold_ns : 100000};

	core_lock_acquire(&held->lock);
	atomic_store(&is_held, true);
	do
		nanosleep(&pause, NULL);
	while (!hold_ns && !atomic_load(&may_release));
	core_lock_release(&held->lock);
	return arg;
}

static void start_holder(DAT_HANDLE object, long ns)
{
	held = object;
	hold_ns = ns;
	atomic_store(&is_held, false);
	atomic_store(&may_release, false);
	assert_int_equal(pthread_create(&holder, NULL, hold, NULL), 0);
	while (!atomic_load(&is_held))
		;
}

static void stop_holder(void)
{
	atomic_store(&may_release, true);
	assert_int_equal(pthread_join(holder, NULL), 0);
	atomic_store(&is_held, false);
}

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
	/* with TSan the lock is a mutex, and may be free again by now */
	if (!CORE_UNDER_TSAN)
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

/* The fast path raises no overflow; it leaves that to the slow path. */
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
	is_done = core_recv_done_fast(ep->cell, ep, 31, found);
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

/* The request and the Receive stay posted, and complete later. */
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

	return cmocka_run_group_tests_name("core fast", tests, NULL, NULL);
}
