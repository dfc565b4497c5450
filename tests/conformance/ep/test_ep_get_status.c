// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_get_status: outputs, and when the queues of an endpoint are idle. */
#include "ep_lab.h"

/* EP-STATUS-06 */
static void ep_get_status__some_outputs_null__others_filled(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_ok(ep_recv_empty(lab->ep.ep, 1));
	for (int bits = 0; bits < 8; bits++) {
		DAT_BOOLEAN recv_idle = (DAT_BOOLEAN)7, request_idle = (DAT_BOOLEAN)7;
		DAT_EP_STATE ep_state = (DAT_EP_STATE)99;

		dt_ok(dat_ep_get_status(lab->ep.ep, bits & 1 ? &ep_state : NULL,
					bits & 2 ? &recv_idle : NULL,
					bits & 4 ? &request_idle : NULL));
		assert_int_equal(ep_state, bits & 1 ? DAT_EP_STATE_CONNECTED : 99);
		assert_int_equal(recv_idle, bits & 2 ? DAT_FALSE : 7);
		assert_int_equal(request_idle, bits & 4 ? DAT_TRUE : 7);
	}
}

/* EP-STATUS-02 EP-STATUS-04 */
static void ep_get_status__receives__idle_again_when_dequeued(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (uint64_t i = 0; i < 2; i++)
		dt_ok(ep_recv_empty(lab->ep.ep, i));
	for (uint64_t i = 0; i < 2; i++) {
		assert_false(ep_is_recv_idle(lab->ep.ep));
		assert_true(ep_is_request_idle(lab->ep.ep));
		dt_ok(ep_send_empty(lab->peer.ep, i));
		dt_expect_dto(lab->ep.recv, lab->ep.ep, i, DAT_DTO_SUCCESS, 0);
	}
	assert_true(ep_is_recv_idle(lab->ep.ep));
}

static DAT_RETURN post_request(struct ep_lab *lab, int kind)
{
	if (kind == 0)
		return ep_send(lab->ep.ep, &lab->buf, 0, 64, 9);
	if (kind == 1)
		return ep_write(lab->ep.ep, &lab->buf, 0, &lab->buf, 4096, 64, 9);
	return ep_read(lab->ep.ep, &lab->buf, 4096, &lab->buf, 0, 64, 9);
}

/*
 * EP-STATUS-03 EP-STATUS-04 EP-STATUS-08: each kind of request waits after a delayed Send; the call
 * does not wait
 */
static void ep_get_status__requests__idle_again_when_dequeued(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (int kind = 0; kind < 3; kind++) {
		assert_true(ep_is_request_idle(lab->ep.ep));
		dt_ok(ep_send_empty(lab->ep.ep, 8));
		assert_false(ep_is_request_idle(lab->ep.ep));
		dt_ok(post_request(lab, kind));
		assert_false(ep_is_request_idle(lab->ep.ep));
		assert_true(ep_is_recv_idle(lab->ep.ep));
		dt_ok(ep_recv_empty(lab->peer.ep, 0));
		if (kind == 0)
			dt_ok(ep_recv(lab->peer.ep, &lab->buf, 8192, 64, 0));
		dt_expect_dto(lab->ep.request, lab->ep.ep, 8, DAT_DTO_SUCCESS, 0);
		dt_expect_dto(lab->ep.request, lab->ep.ep, 9, DAT_DTO_SUCCESS, 64);
	}
	assert_true(ep_is_request_idle(lab->ep.ep));
}

static bool request_is_idle(void *arg)
{
	return ep_is_request_idle(arg);
}

/* EP-STATUS-05 DTO-16: there is no event to dequeue */
static void ep_get_status__suppressed_request__idle_when_completed(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_ok(dat_ep_post_send(lab->ep.ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_SUPPRESS_FLAG));
	assert_false(ep_is_request_idle(lab->ep.ep));
	dt_ok(ep_recv_empty(lab->peer.ep, 2));
	dt_expect_dto(lab->peer.recv, lab->peer.ep, 2, DAT_DTO_SUCCESS, 0);
	dt_until(request_is_idle, lab->ep.ep);
	dt_stays_empty(lab->ep.request);
}

static bool recv_is_idle(void *arg)
{
	return ep_is_recv_idle(arg);
}

/* EP-STATUS-02 EP-STATUS-03: no other call is made meanwhile */
static void ep_get_status__message_arrived__idle_without_a_poll(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (uint64_t i = 0; i < 16; i++) {
		dt_ok(ep_recv(lab->peer.ep, &lab->buf, 0, 64, i));
		dt_ok(ep_send(lab->ep.ep, &lab->buf, 4096, 64, i));
		dt_until(recv_is_idle, lab->peer.ep);
		dt_until(request_is_idle, lab->ep.ep);
	}
}

struct reader {
	DAT_EP_HANDLE ep;
	atomic_bool stop;
	bool has_failed;
};

static void *read_status(void *arg)
{
	struct reader *reader = arg;

	while (!atomic_load(&reader->stop)) {
		DAT_BOOLEAN recv_idle, request_idle;
		DAT_EP_STATE ep_state;
		DAT_EP_PARAM param;
		DAT_COUNT nbufs, span;

		if (dat_ep_get_status(reader->ep, &ep_state, &recv_idle, &request_idle) ||
		    ep_state != DAT_EP_STATE_CONNECTED ||
		    dat_ep_query(reader->ep, DAT_EP_FIELD_ALL, &param) ||
		    dat_ep_recv_query(reader->ep, &nbufs, &span) || span < nbufs || nbufs < 0)
			reader->has_failed = true;
	}
	return NULL;
}

/*
 * EP-STATUS-12 EP-STATUS-08 EP-GEN-10 EP-QUERY-22 EP-RECVQ-09 EP-RECVQ-19: calls of other threads
 * do not disturb the traffic, and return correct results
 */
static void ep_get_status__several_threads_under_traffic__works(void **state)
{
	struct ep_lab *lab = *state;
	struct reader readers[2];
	pthread_t threads[2];

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (int i = 0; i < 2; i++) {
		readers[i] = (struct reader){.ep = i ? lab->ep.ep : lab->peer.ep};
		assert_int_equal(pthread_create(&threads[i], NULL, read_status, &readers[i]), 0);
	}
	for (int i = 0; i < 1000; i++)
		ep_check_traffic(i & 1 ? &lab->ep : &lab->peer, i & 1 ? &lab->peer : &lab->ep,
				 &lab->buf);
	for (int i = 0; i < 2; i++) {
		atomic_store(&readers[i].stop, true);
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_false(readers[i].has_failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_get_status__some_outputs_null__others_filled),
		ep_test(ep_get_status__receives__idle_again_when_dequeued),
		ep_test(ep_get_status__requests__idle_again_when_dequeued),
		ep_test(ep_get_status__suppressed_request__idle_when_completed),
		ep_test(ep_get_status__message_arrived__idle_without_a_poll),
		ep_test(ep_get_status__several_threads_under_traffic__works),
	};

	return cmocka_run_group_tests_name("ep_get_status", tests, NULL, NULL);
}
