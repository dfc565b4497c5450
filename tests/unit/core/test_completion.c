// SPDX-License-Identifier: BSD-2-Clause
/* Completions are reported in posting order, also if a transport finishes requests in another
 * order. */
#include "mock.h"

struct fixture {
	struct mock_ia ia;
	DAT_EP_HANDLE handle;
	struct core_ep *ep;
};

static int setup(void **state)
{
	static struct fixture fixture;

	mock_open(&fixture.ia);
	fixture.handle = mock_connected(&fixture.ia);
	fixture.ep = mock.ep;
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	mock_close(&fixture->ia);
	return 0;
}

static struct core_req *post(struct fixture *fixture, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_send(fixture->handle, 0, NULL, user, flags), DAT_SUCCESS);
	return mock.req;
}

static void done(struct fixture *fixture, struct core_req *req, DAT_DTO_COMPLETION_STATUS status)
{
	core_lock_acquire(&fixture->ep->cell->lock);
	core_req_done(fixture->ep, req, status, 0);
	core_ep_leave(fixture->ep);
}

static void expect(struct fixture *fixture, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = mock_event(fixture->ia.evd);

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	assert_int_equal(event.event_data.dto_completion_event_data.status, status);
}

/* DTO-37: requests finish in reverse order and are reported in posting order. */
static void req_done__reverse_order__posting_order(void **state)
{
	struct fixture *fixture = *state;
	struct core_req *req[3];

	for (uint64_t i = 0; i < 3; i++)
		req[i] = post(fixture, i, DAT_COMPLETION_DEFAULT_FLAG);
	done(fixture, req[2], DAT_DTO_SUCCESS);
	done(fixture, req[1], DAT_DTO_SUCCESS);
	mock_no_event(fixture->ia.evd);
	done(fixture, req[0], DAT_DTO_SUCCESS);
	for (uint64_t i = 0; i < 3; i++)
		expect(fixture, i, DAT_DTO_SUCCESS);
	mock_no_event(fixture->ia.evd);
}

/* DTO-48: a success after a failed request is reported as flushed. */
static void req_done__success_after_failure__flushed(void **state)
{
	struct fixture *fixture = *state;
	struct core_req *first = post(fixture, 1, DAT_COMPLETION_DEFAULT_FLAG);
	struct core_req *second = post(fixture, 2, DAT_COMPLETION_DEFAULT_FLAG);

	done(fixture, second, DAT_DTO_SUCCESS);
	done(fixture, first, DAT_DTO_ERR_REMOTE_ACCESS);
	expect(fixture, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect(fixture, 2, DAT_DTO_ERR_FLUSHED);
}

/* DTO-13 DTO-14: a suppressed request raises an event only if it fails. */
static void req_done__suppressed__only_failures_are_raised(void **state)
{
	struct fixture *fixture = *state;
	struct core_req *first = post(fixture, 1, DAT_COMPLETION_SUPPRESS_FLAG);
	struct core_req *second = post(fixture, 2, DAT_COMPLETION_SUPPRESS_FLAG);

	done(fixture, first, DAT_DTO_SUCCESS);
	mock_no_event(fixture->ia.evd);
	done(fixture, second, DAT_DTO_ERR_TRANSPORT);
	expect(fixture, 2, DAT_DTO_ERR_TRANSPORT);
}

static struct core_req *oldest;
static DAT_EP_HANDLE to_free;

static void finish_oldest(void)
{
	core_lock_acquire(&mock.ep->cell->lock);
	core_req_done(mock.ep, oldest, DAT_DTO_SUCCESS, 0);
	core_ep_leave(mock.ep);
}

static void free_endpoint(void)
{
	mock.on_progress = NULL;
	assert_int_equal(core_ep_free(to_free), DAT_SUCCESS);
}

/* Another thread frees the endpoint while the transport is driven. */
static void free_meanwhile(const struct fixture *fixture)
{
	to_free = fixture->handle;
	mock.on_progress = free_endpoint;
}

/* Fills the request queue with Sends whose completions are suppressed. */
static void fill(struct fixture *fixture)
{
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(fixture->handle, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	oldest = post(fixture, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	for (DAT_COUNT i = 1; i < param.ep_attr.max_request_dtos; i++)
		(void)post(fixture, (uint64_t)i, DAT_COMPLETION_SUPPRESS_FLAG);
}

/* DTO-16: a post to a full queue drives the transport and finds a slot that became free. */
static void post__queue_full_of_completed_requests__succeeds(void **state)
{
	struct fixture *fixture = *state;

	fill(fixture);
	mock.on_progress = finish_oldest;
	(void)post(fixture, 99, DAT_COMPLETION_SUPPRESS_FLAG);
	mock.on_progress = NULL;
	assert_int_equal(mock.req->cookie.as_64, 99);
}

static void finish_receive(void)
{
	core_lock_acquire(&mock.ep->cell->lock);
	if (core_recv_next(mock.ep))
		core_recv_done(mock.ep, DAT_DTO_SUCCESS, 0, false);
	core_ep_leave(mock.ep);
}

/* DTO-16: the same for a Receive whose message has arrived, and nobody has polled for it */
static void post_recv__queue_full_of_completed_receives__succeeds(void **state)
{
	struct fixture *fixture = *state;
	DAT_DTO_COOKIE user = {.as_64 = 99};
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(fixture->handle, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	for (DAT_COUNT i = 0; i < param.ep_attr.max_recv_dtos; i++)
		assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0), DAT_SUCCESS);
	assert_int_equal(mock_code(core_ep_post_recv(fixture->handle, 0, NULL, user, 0)),
			 DAT_INSUFFICIENT_RESOURCES);
	mock.on_progress = finish_receive;
	assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0), DAT_SUCCESS);
	free_meanwhile(fixture);
	assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
}

static void finish_receive_locked(struct core_ep *ep)
{
	if (core_recv_next(ep))
		core_recv_done(ep, DAT_DTO_SUCCESS, 0, false);
}

/* EP-RECVQ-04 EP-STATUS-02: the transport has left this endpoint to a later poll */
static void recv_query__message_has_arrived__not_counted(void **state)
{
	struct fixture *fixture = *state;
	DAT_DTO_COOKIE user = {.as_64 = 99};
	DAT_COUNT buffers, span;
	DAT_BOOLEAN is_idle;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0), DAT_SUCCESS);
	mock.on_progress_ep = finish_receive_locked;
	assert_int_equal(core_ep_recv_query(fixture->handle, &buffers, &span), DAT_SUCCESS);
	assert_int_equal(buffers, 1);
	assert_int_equal(span, 1);
	assert_int_equal(core_ep_get_status(fixture->handle, NULL, &is_idle, NULL), DAT_SUCCESS);
	assert_int_equal(is_idle, DAT_TRUE);
	mock.on_progress_ep = NULL;
}

/* EP-WMARK-06: a Receive whose message has arrived does not count, polled for or not */
static void set_watermark__message_has_arrived__not_counted(void **state)
{
	struct fixture *fixture = *state;
	DAT_DTO_COOKIE user = {.as_64 = 99};

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0), DAT_SUCCESS);
	mock.on_progress = finish_receive;
	assert_int_equal(core_ep_set_watermark(fixture->handle, DAT_WATERMARK_INFINITE, 3),
			 DAT_SUCCESS);
	assert_int_equal(mock.aborts, 0);
	assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0), DAT_SUCCESS);
	assert_int_equal(mock.aborts, 0);
	mock.on_progress = NULL;
	assert_int_equal(core_ep_post_recv(fixture->handle, 0, NULL, user, 0), DAT_SUCCESS);
	assert_int_equal(mock.aborts, 1);
}

/* Unbinds a new RMR. */
static DAT_RETURN unbind(struct fixture *fixture)
{
	const DAT_LMR_TRIPLET nothing = {0};
	DAT_RMR_COOKIE user = {.as_64 = 99};
	DAT_RMR_HANDLE rmr;
	DAT_RETURN ret;

	assert_int_equal(core_rmr_create(fixture->ia.pz, &rmr), DAT_SUCCESS);
	ret = core_rmr_bind(rmr, &nothing, DAT_MEM_PRIV_NONE_FLAG, fixture->handle, user,
			    DAT_COMPLETION_SUPPRESS_FLAG, NULL);
	assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
	return ret;
}

/* DTO-16 RMR-BIND-49: the same for a bind; without a slot it is refused */
static void bind__queue_full_of_completed_requests__succeeds(void **state)
{
	struct fixture *fixture = *state;

	fill(fixture);
	assert_int_equal(mock_code(unbind(fixture)), DAT_INSUFFICIENT_RESOURCES);
	mock.on_progress = finish_oldest;
	assert_int_equal(unbind(fixture), DAT_SUCCESS);
	mock.on_progress = NULL;
	assert_int_equal(mock.req->cookie.as_64, 99);
}

static void bind__queue_full_and_endpoint_freed_meanwhile__invalid_handle(void **state)
{
	struct fixture *fixture = *state;

	fill(fixture);
	free_meanwhile(fixture);
	assert_int_equal(unbind(fixture),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
}

static void post__queue_full_and_endpoint_freed_meanwhile__invalid_handle(void **state)
{
	struct fixture *fixture = *state;
	DAT_DTO_COOKIE user = {.as_64 = 99};

	fill(fixture);
	free_meanwhile(fixture);
	assert_int_equal(core_ep_post_send(fixture->handle, 0, NULL, user, 0),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(req_done__reverse_order__posting_order),
		T(req_done__success_after_failure__flushed),
		T(req_done__suppressed__only_failures_are_raised),
		T(post__queue_full_of_completed_requests__succeeds),
		T(recv_query__message_has_arrived__not_counted),
		T(set_watermark__message_has_arrived__not_counted),
		T(post_recv__queue_full_of_completed_receives__succeeds),
		T(post__queue_full_and_endpoint_freed_meanwhile__invalid_handle),
		T(bind__queue_full_of_completed_requests__succeeds),
		T(bind__queue_full_and_endpoint_freed_meanwhile__invalid_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
