// SPDX-License-Identifier: BSD-2-Clause
/*
 * How existing consumers use EVDs: one for all streams, one that is shorter than the queues that
 * feed it, one that many endpoints share and that is resized in use, and waiters that are cancelled
 * or that free the EVD when they wake.
 */
#include "dto_util.h"

/* --- one EVD for all streams --- */

#define ALL_EVENTS                                                                                 \
	(DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG |    \
	 DAT_EVD_SOFTWARE_FLAG)

/*
 * Creates both endpoints of the rig with that EVD for all streams and posts five Receives on each.
 */
static void create_on(struct rig *rig, DAT_EVD_HANDLE evd)
{
	rig->a = rig->b = (struct dt_ep){.recv = evd, .request = evd, .conn = evd};
	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, evd, evd, evd, &rig->attr_a, &rig->a.ep));
	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, evd, evd, evd, &rig->attr_b, &rig->b.ep));
	for (uint64_t i = 0; i < 5; i++) {
		post_recv(&rig->a, dt_seg(&rig->x, 100, 10), 100 + i);
		post_recv(&rig->b, dt_seg(&rig->y, 100, 10), 100 + i);
	}
}

/*
 * Takes the requests, connections, completions and software events of two endpoints from one EVD.
 */
static void check_one_evd(struct rig *rig)
{
	const DAT_EVD_HANDLE evd = dt_evd_create(&rig->ia, 64, ALL_EVENTS);
	const DAT_EVENT mine = {.event_number = DAT_SOFTWARE_EVENT,
				.event_data.software_event_data.pointer = rig};
	unsigned established = 0, received = 0, sent = 0, software = 0, requests = 0;
	DAT_EP_HANDLE a, b;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	create_on(rig, evd);
	a = rig->a.ep;
	b = rig->b.ep;
	dt_ok(dat_psp_create_any(rig->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_connect(&rig->ia, a, qual);
	dt_ok(dat_evd_post_se(evd, &mine));
	while (established < 2 || received < 10 || sent < 10 || software < 1) {
		const DAT_EVENT event = dt_event(evd);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		switch (event.event_number) {
		case DAT_CONNECTION_REQUEST_EVENT:
			requests++;
			dt_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b, 0,
					    NULL));
			break;
		case DAT_CONNECTION_EVENT_ESTABLISHED:
			established++;
			for (uint64_t i = 0; i < 5; i++)
				post_send(event.event_data.connect_event_data.ep_handle == a
						  ? &rig->a
						  : &rig->b,
					  dt_seg(&rig->x, 0, 10), i, 0);
			break;
		case DAT_DTO_COMPLETION_EVENT:
			assert_int_equal(dto->status, DAT_DTO_SUCCESS);
			assert_true(dto->ep_handle == a || dto->ep_handle == b);
			if (dto->user_cookie.as_64 >= 100)
				received++;
			else
				sent++;
			break;
		case DAT_SOFTWARE_EVENT:
			assert_ptr_equal(event.event_data.software_event_data.pointer, rig);
			software++;
			break;
		default:
			print_error("event 0x%05x\n", (unsigned)event.event_number);
			fail();
		}
	}
	assert_int_equal(requests, 1);
	assert_int_equal(software, 1);
	dt_stays_empty(evd);
}

/* COMPAT-08 COMPAT-43 EP-CREATE-72: the endpoints allow unsignalled requests, but no post uses the flag */
static void evd__default_receives_and_unsignalled_requests__all_events_arrive(void **state)
{
	struct rig *rig = *state;

	rig->attr_a.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	rig->attr_a.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig->attr_b.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	rig->attr_b.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	check_one_evd(rig);
}

/* --- a short EVD --- */

/* Creates an endpoint with EVDs of these lengths. */
static void create_short(struct rig *rig, const DAT_EP_ATTR *attr, DAT_COUNT recv,
			 DAT_COUNT request, struct dt_ep *ep_out)
{
	ep_out->recv = dt_evd_create(&rig->ia, recv, DAT_EVD_DTO_FLAG);
	ep_out->request = dt_evd_create(&rig->ia, request, DAT_EVD_DTO_FLAG);
	ep_out->conn = dt_evd_create(&rig->ia, 1, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, ep_out->recv, ep_out->request, ep_out->conn,
			    attr, &ep_out->ep));
}

/* COMPAT-09 DTO-115: 33 Receives feed an EVD of length 3; the consumer dequeues fast enough */
static void evd__shorter_than_its_queue__does_not_overflow(void **state)
{
	struct rig *rig = *state;

	rig->attr_b.max_recv_dtos = 33;
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	create_short(rig, &rig->attr_b, 3, 1, &rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	for (uint64_t i = 0; i < 33; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
	for (uint64_t i = 0; i < 200; i++) {
		if (i % 3 == 0) /* as many as the EVD holds are outstanding at once */
			for (uint64_t n = i; n < i + 3; n++)
				post_send(&rig->a, dt_seg(&rig->x, 0, 8), n, 0);
		expect_received(&rig->b, i, 8);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i + 33);
		expect_sent(&rig->a, i, 8);
	}
	dt_no_event(rig->ia.async);
}

#define PIPELINE 8u

/*
 * COMPAT-09: an EVD as long as the number of outstanding requests; taking an event frees its slot
 */
static void evd__as_long_as_the_pipeline__does_not_overflow(void **state)
{
	struct rig *rig = *state;
	uint64_t posted = 0;

	rig->attr_a.max_request_dtos = PIPELINE;
	create_short(rig, &rig->attr_a, 1, PIPELINE, &rig->a);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	for (; posted < PIPELINE; posted++)
		dt_ok(dto_post_byte(rig, DTO_WRITE, posted, 0));
	for (uint64_t i = 0; i < 2000; i++, posted++) {
		expect_sent(&rig->a, i, 1);
		dt_ok(dto_post_byte(rig, DTO_WRITE, posted, 0));
	}
	dt_no_event(rig->ia.async);
}

/* --- many endpoints --- */

#define FAN_PAIRS 32u
#define FAN_EPS (2 * FAN_PAIRS)
#define FAN_MESSAGES 20u

struct fan {
	struct dt_ep ep[FAN_EPS];
	DAT_EVD_HANDLE recv, request, conn;
	uint64_t received[FAN_EPS], done[FAN_EPS], sent[FAN_EPS];
};

static void fan_open(struct rig *rig, struct fan *fan)
{
	struct dt_listener listener;
	DAT_EP_ATTR attr = rig->attr_a;

	attr.max_recv_dtos = attr.max_request_dtos = 8;
	fan->recv = dt_evd_create(&rig->ia, FAN_EPS * 8, DAT_EVD_DTO_FLAG);
	fan->request = dt_evd_create(&rig->ia, FAN_EPS * 8, DAT_EVD_DTO_FLAG);
	fan->conn = dt_evd_create(&rig->ia, FAN_EPS, DAT_EVD_CONNECTION_FLAG);
	dt_listen(&rig->ia, &listener);
	for (unsigned i = 0; i < FAN_EPS; i++) {
		fan->ep[i] = (struct dt_ep){
			.recv = fan->recv, .request = fan->request, .conn = fan->conn};
		dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, fan->recv, fan->request, fan->conn,
				    &attr, &fan->ep[i].ep));
		for (uint64_t n = 0; n < 4; n++)
			post_recv(&fan->ep[i], dt_seg(&rig->y, 1024 * i, 1024), i);
	}
	for (unsigned i = 0; i < FAN_EPS; i += 2) {
		dt_connect(&rig->ia, fan->ep[i].ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), fan->ep[i + 1].ep, 0, NULL));
	}
	for (unsigned i = 0; i < FAN_EPS; i++)
		assert_int_equal(dt_event(fan->conn).event_number,
				 DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_unlisten(&listener);
}

/* Takes the events that are queued. Each received message is replaced by a new Receive. */
static void fan_progress(struct rig *rig, struct fan *fan)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	while (dat_evd_dequeue(fan->request, &event) == DAT_SUCCESS) {
		assert_int_equal(dto->status, DAT_DTO_SUCCESS);
		assert_true(dto->user_cookie.as_64 < FAN_EPS);
		assert_ptr_equal(dto->ep_handle, fan->ep[dto->user_cookie.as_64].ep);
		fan->done[dto->user_cookie.as_64]++;
	}
	while (dat_evd_dequeue(fan->recv, &event) == DAT_SUCCESS) {
		const uint64_t i = dto->user_cookie.as_64;

		assert_int_equal(dto->status, DAT_DTO_SUCCESS);
		assert_true(i < FAN_EPS && dto->transfered_length == 100 + fan->received[i] * 3);
		assert_ptr_equal(dto->ep_handle, fan->ep[i].ep);
		fan->received[i]++;
		post_recv(&fan->ep[i], dt_seg(&rig->y, 1024 * i, 1024), i);
	}
}

/* COMPAT-32 COMPAT-08 EVD-RESIZE-02 EVD-RESIZE-04 DTO-06 */
static void evd_resize__sixty_four_endpoints_under_load__nothing_lost(void **state)
{
	struct rig *rig = *state;
	static struct fan fan;
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	unsigned busy = FAN_EPS;

	memset(&fan, 0, sizeof(fan));
	fan_open(rig, &fan);
	for (unsigned round = 0; busy; round++) {
		assert_true(dt_now_us() < end);
		busy = 0;
		for (unsigned i = 0; i < FAN_EPS; i++) {
			if (fan.sent[i] < FAN_MESSAGES && fan.sent[i] - fan.done[i] < 4) {
				post_send(&fan.ep[i], dt_seg(&rig->x, 0, 100 + fan.sent[i] * 3), i,
					  0);
				fan.sent[i]++;
			}
			busy += fan.received[i] < FAN_MESSAGES || fan.done[i] < FAN_MESSAGES;
		}
		dt_ok(dat_evd_resize(fan.recv, (DAT_COUNT)(FAN_EPS * 8 + round % 7 * 100)));
		if (round % 3)
			dt_ok(dat_evd_resize(fan.request,
					     (DAT_COUNT)(FAN_EPS * 8 + round % 5 * 64)));
		fan_progress(rig, &fan);
	}
	dt_stays_empty(fan.recv);
	dt_no_event(fan.request);
	for (unsigned i = 0; i < FAN_EPS; i++) {
		assert_int_equal(fan.received[i], FAN_MESSAGES);
		assert_int_equal(fan.done[i], FAN_MESSAGES);
	}
}

/* --- waiters --- */

struct cancelled {
	DAT_EVD_HANDLE evd;
	int type;
	_Atomic unsigned taken;
};

static void *cancelled_run(void *arg)
{
	struct cancelled *cancelled = arg;
	DAT_COUNT nmore;
	DAT_EVENT event;
	int before;

	pthread_setcanceltype(cancelled->type, &before);
	for (;;)
		if (dat_evd_wait(cancelled->evd, DAT_TIMEOUT_INFINITE, 1, &event, &nmore) ==
		    DAT_SUCCESS)
			cancelled->taken++;
	return NULL;
}

static bool evd_has_waiter(void *arg)
{
	DAT_EVENT event;

	return DAT_GET_TYPE(dat_evd_dequeue(arg, &event)) == DAT_INVALID_STATE;
}

static void *protected_run(void *arg)
{
	struct cancelled *cancelled = arg;
	DAT_COUNT nmore;
	DAT_EVENT event;
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (dat_evd_wait(cancelled->evd, DAT_TIMEOUT_INFINITE, 1, &event, &nmore) == DAT_SUCCESS)
		cancelled->taken++;
	return NULL;
}

/* EVD-WAIT-39: a thread that has disabled cancellation waits on for its message */
static void evd_wait__cancellation_disabled__message_taken(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 20; round++) {
		struct cancelled cancelled = {.evd = rig->a.recv};
		pthread_t thread;
		void *result;

		dt_ok(dto_post_byte(rig, DTO_RECV, round, 0));
		assert_int_equal(pthread_create(&thread, NULL, protected_run, &cancelled), 0);
		dt_until(evd_has_waiter, rig->a.recv);
		assert_int_equal(pthread_cancel(thread), 0);
		post_send(&rig->b, dt_seg(&rig->y, 0, 1), round, 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_null(result);
		assert_int_equal(cancelled.taken, 1);
		expect_sent(&rig->b, round, 1);
	}
}

/*
 * COMPAT-24: the thread is cancelled while events arrive: each event was taken or is still queued
 */
static void evd_wait__cancelled_under_traffic__no_event_lost(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 30; round++) {
		struct cancelled cancelled = {.evd = rig->a.recv, .type = PTHREAD_CANCEL_DEFERRED};
		pthread_t thread;

		dt_ok(dto_post_byte(rig, DTO_RECV, round, 0));
		assert_int_equal(pthread_create(&thread, NULL, cancelled_run, &cancelled), 0);
		dt_until(evd_has_waiter, rig->a.recv);
		assert_int_equal(pthread_cancel(thread), 0);
		post_send(&rig->b, dt_seg(&rig->y, 0, 1), round, 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		expect_sent(&rig->b, round, 1);
		if (!cancelled.taken)
			expect_received(&rig->a, round, 1);
		dt_no_event(rig->a.recv);
	}
}

struct freeing {
	DAT_EVD_HANDLE evd;
	DAT_RETURN wait, free;
	void *pointer;
};

static void *freeing_run(void *arg)
{
	struct freeing *freeing = arg;
	DAT_COUNT nmore;
	DAT_EVENT event;

	freeing->wait = dat_evd_wait(freeing->evd, DT_WAIT_US, 1, &event, &nmore);
	freeing->free = dat_evd_free(freeing->evd);
	freeing->pointer = event.event_data.software_event_data.pointer;
	return NULL;
}

/* COMPAT-25 EVD-FREE-01 EVD-POST-SE-10 */
static void evd_post_se__waiter_frees_the_evd__safe(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 200; round++) {
		struct freeing freeing = {.evd = dt_evd_create(&rig->ia, 4, DAT_EVD_SOFTWARE_FLAG)};
		const DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT,
					 .event_data.software_event_data.pointer = &freeing};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, freeing_run, &freeing), 0);
		if (round % 2)
			dt_until(evd_has_waiter, freeing.evd);
		dt_ok(dat_evd_post_se(freeing.evd, &event));
		assert_int_equal(pthread_join(thread, NULL), 0);
		dt_ok(freeing.wait);
		dt_ok(freeing.free);
		assert_ptr_equal(freeing.pointer, &freeing);
		dt_fails(dat_evd_post_se(freeing.evd, &event), DAT_INVALID_HANDLE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(evd__default_receives_and_unsignalled_requests__all_events_arrive),
		rig_test_bare(evd__shorter_than_its_queue__does_not_overflow),
		rig_test_bare(evd__as_long_as_the_pipeline__does_not_overflow),
		rig_test_bare(evd_resize__sixty_four_endpoints_under_load__nothing_lost),
		rig_test(evd_wait__cancellation_disabled__message_taken),
		rig_test(evd_wait__cancelled_under_traffic__no_event_lost),
		rig_test_bare(evd_post_se__waiter_frees_the_evd__safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
