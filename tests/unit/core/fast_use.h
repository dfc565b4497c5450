// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connected endpoint of the mock transport whose requests and Receives complete on two EVDs, and
 * poll functions of the tests.
 */
#ifndef TESTS_FAST_USE_H
#define TESTS_FAST_USE_H

#include <pthread.h>
#include <time.h>

#include "core/ep/ep_fast.h"
#include "core/event/evd_queue.h"
#include "mock.h"
#include "core/ep/ep_state.h"

#define COOKIE(n) (0xfedcba9800000000u + ((uint64_t)(n) << 60) + (n))
#define OTHER_LENGTH 5

static struct mock_ia ia;
static DAT_EVD_HANDLE other_handle; /* the EVD of Receives */
static DAT_EP_HANDLE handle;
static struct core_evd *evd; /* of requests; the polled one */
static struct core_evd *other;
static struct core_ep *ep;

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
	(void)state;
	mock.on_poll = NULL;
	mock.on_progress = NULL;
	mock_close(&ia);
	return 0;
}

static inline void post_send_flags(uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_ep_post_send(handle, 0, NULL, user, flags), DAT_SUCCESS);
}

static inline void post_send(uint64_t cookie)
{
	post_send_flags(cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static inline void post_software_event(DAT_EVD_HANDLE to)
{
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	assert_int_equal(core_evd_post_se(to, &event), DAT_SUCCESS);
}

static inline void expect_completion(const DAT_EVENT *event, DAT_EVD_HANDLE from, uint64_t cookie,
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
static inline void expect_untouched(const DAT_EVENT *event)
{
	DAT_EVENT pattern;

	memset(&pattern, 0x5a, sizeof(pattern));
	assert_memory_equal(event, &pattern, sizeof(pattern));
}

/* Checked here, as a thread that owns a lock can enter it again. */
static inline void expect_unlocked(const struct core_handle *cell)
{
	assert_int_equal(atomic_load(&cell->lock.inside), 0);
}

static inline DAT_RETURN dequeue(DAT_EVENT *event, enum transport_poll (*poll)(struct core_evd *evd,
									       DAT_EVENT *event))
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

static inline bool give(struct core_dequeue *to, struct core_evd *of, uint64_t cookie, DAT_VLEN len)
{
	return core_evd_deliver_dto(of, to, (DAT_HANDLE)ep->cell, CORE_DONE(CORE_OP_SEND),
				    (DAT_DTO_COOKIE){.as_64 = cookie}, len);
}

static struct core_handle *held;
static pthread_t holder;
static _Atomic bool is_held;
static _Atomic bool may_release;
static long hold_ns; /* 0: until may_release is set */

static inline void *hold(void *arg)
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

static inline void start_holder(DAT_HANDLE object, long ns)
{
	held = object;
	hold_ns = ns;
	atomic_store(&is_held, false);
	atomic_store(&may_release, false);
	assert_int_equal(pthread_create(&holder, NULL, hold, NULL), 0);
	while (!atomic_load(&is_held))
		;
}

static inline void stop_holder(void)
{
	atomic_store(&may_release, true);
	assert_int_equal(pthread_join(holder, NULL), 0);
	atomic_store(&is_held, false);
}

#endif
