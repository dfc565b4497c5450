// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the tests of EVDs; see the header. */
#include "evd_util.h"

/* --- fixture: an adapter, and the tests' own EVD --- */

int evd_setup(void **state)
{
	static struct evd_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	dt_ia_open(&fixture.ia);
	fixture.is_open = true;
	fixture.evd = dt_evd_create(&fixture.ia, EVD_QLEN, DAT_EVD_SOFTWARE_FLAG);
	*state = &fixture;
	return 0;
}

int evd_teardown(void **state)
{
	struct evd_fixture *fixture = *state;

	if (fixture->is_open)
		dt_ia_abort(&fixture->ia);
	return 0;
}

/* --- software events --- */

DAT_RETURN evd_try_post(DAT_EVD_HANDLE evd, uintptr_t number)
{
	DAT_EVENT event;

	memset(&event, 0x5a, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = (DAT_PVOID)number;
	return dat_evd_post_se(evd, &event);
}

void evd_post(DAT_EVD_HANDLE evd, uintptr_t number)
{
	dt_ok(evd_try_post(evd, number));
}

void evd_post_range(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t count)
{
	for (uintptr_t i = 0; i < count; i++)
		evd_post(evd, first + i);
}

void evd_check_soft(const DAT_EVENT *event, DAT_EVD_HANDLE evd, uintptr_t number)
{
	assert_int_equal(event->event_number, DAT_SOFTWARE_EVENT);
	assert_ptr_equal(event->evd_handle, evd);
	assert_int_equal((uintptr_t)event->event_data.software_event_data.pointer, number);
}

void evd_take(DAT_EVD_HANDLE evd, uintptr_t number)
{
	DAT_EVENT event;

	dt_ok(dat_evd_dequeue(evd, &event));
	evd_check_soft(&event, evd, number);
}

void evd_take_range(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t count)
{
	for (uintptr_t i = 0; i < count; i++)
		evd_take(evd, first + i);
}

/* --- state --- */

DAT_EVD_PARAM evd_query(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param;
}

void evd_check_state(DAT_EVD_HANDLE evd, DAT_EVD_STATE expected)
{
	assert_int_equal(evd_query(evd).evd_state & 0x0f, expected);
}

/* --- provider events on demand --- */

DAT_EP_HANDLE evd_flusher(struct dt_ia *ia, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE conn,
			  const DAT_EP_ATTR *attr)
{
	struct dt_listener listener;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR own;

	if (!attr) {
		dt_ep_attr(ia, &own);
		own.max_request_dtos = 0;
		attr = &own;
	}
	dt_ok(dat_ep_create(ia->ia, ia->pz, recv, DAT_HANDLE_NULL, conn, attr, &ep));
	dt_listen(ia, &listener);
	dt_connect(ia, ep, listener.qual);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	dt_unlisten(&listener);
	dt_expect_conn(conn, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	return ep;
}

void evd_flush(DAT_EP_HANDLE ep, uint64_t cookie)
{
	dt_ok(dat_ep_post_recv(ep, 0, NULL, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

/* --- a blocked thread --- */

static void *evd_waiter_run(void *arg)
{
	struct evd_waiter *waiter = arg;
	int old;

	if (waiter->is_protected)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_setcanceltype(waiter->cancel_type, &old);
	pthread_cleanup_push(dt_stack_left, NULL);
	waiter->ret = dat_evd_wait(waiter->evd, waiter->timeout, waiter->threshold, &waiter->event,
				   &waiter->nmore);
	pthread_cleanup_pop(0);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	atomic_store(&waiter->is_done, true);
	return NULL;
}

bool evd_is_waited(DAT_EVD_HANDLE evd)
{
	return DAT_GET_TYPE(dat_evd_resize(evd, evd_query(evd).evd_qlen)) == DAT_INVALID_STATE;
}

static bool evd_waiter_is_settled(void *arg)
{
	struct evd_waiter *waiter = arg;

	return atomic_load(&waiter->is_done) || evd_is_waited(waiter->evd);
}

static bool evd_waiter_is_done(void *arg)
{
	struct evd_waiter *waiter = arg;

	return atomic_load(&waiter->is_done);
}

void evd_waiter_launch(struct evd_waiter *waiter, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
		       DAT_COUNT threshold)
{
	waiter->evd = evd;
	waiter->timeout = timeout;
	waiter->threshold = threshold;
	waiter->nmore = -1;
	waiter->is_cancelled = false;
	atomic_init(&waiter->is_done, false);
	assert_int_equal(pthread_create(&waiter->thread, NULL, evd_waiter_run, waiter), 0);
}

void evd_waiter_start(struct evd_waiter *waiter, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
		      DAT_COUNT threshold)
{
	evd_waiter_launch(waiter, evd, timeout, threshold);
	dt_until(evd_waiter_is_settled, waiter);
	assert_false(atomic_load(&waiter->is_done));
}

DAT_RETURN evd_waiter_join(struct evd_waiter *waiter)
{
	dt_until(evd_waiter_is_done, waiter);
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	return waiter->ret;
}

void evd_waiter_cancel(struct evd_waiter *waiter)
{
	struct timespec end;
	void *result;

	assert_int_equal(pthread_cancel(waiter->thread), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += DT_WAIT_US / 1000000;
	assert_int_equal(pthread_timedjoin_np(waiter->thread, &result, &end), 0);
	waiter->is_cancelled = result == PTHREAD_CANCELED;
}

void evd_waiter_stays(struct evd_waiter *waiter)
{
	uint64_t end = dt_now_us() + DT_QUIET_US;

	do {
		assert_false(atomic_load(&waiter->is_done));
		usleep(1000);
	} while (dt_now_us() < end);
	assert_true(evd_is_waited(waiter->evd));
}
