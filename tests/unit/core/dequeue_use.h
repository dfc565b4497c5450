// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connected endpoint of the mock transport, and dequeues during which the transport calls a
 * function of the test.
 */
#ifndef TESTS_DEQUEUE_USE_H
#define TESTS_DEQUEUE_USE_H

#include <pthread.h>

#include "core/event/evd.h"
#include "mock.h"

static struct mock_ia ia;
static DAT_EP_HANDLE handle;
static struct core_ep *ep;
static struct core_evd *evd; /* for all events */
static pthread_t caller;     /* the thread whose dequeue is tested */

static DAT_RETURN other_ret;
static DAT_EVENT other_event;

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
	(void)state;
	mock.on_progress = NULL;
	mock_close(&ia);
	return 0;
}

static inline void post(uint64_t cookie)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_send(handle, 0, NULL, user, 0), DAT_SUCCESS);
}

/* The transport completes the oldest request. */
static inline void finish(void)
{
	core_lock_acquire(&ep->cell->lock);
	core_req_done(ep, core_req_at(&ep->req, ep->req.head), DAT_DTO_SUCCESS, 0);
	core_ep_leave(ep);
}

static inline void post_software_event(DAT_EVD_HANDLE to)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	assert_int_equal(core_evd_post_se(to, &event), DAT_SUCCESS);
}

static inline void expect_completion(const DAT_EVENT *event, uint64_t cookie)
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
static inline DAT_EVENT dequeue_during(void (*happening)(void))
{
	DAT_EVENT event;

	memset(&event, 0x5a, sizeof(event));
	mock.on_progress = happening;
	assert_int_equal(core_evd_dequeue(ia.evd, &event), DAT_SUCCESS);
	mock.on_progress = NULL;
	return event;
}

#endif
