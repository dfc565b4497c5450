// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_recv_query on endpoints without a shared receive queue. */
#include "ep_lab.h"

static void check_counts(DAT_EP_HANDLE ep, DAT_COUNT nbufs, DAT_COUNT span)
{
	DAT_COUNT got_nbufs = -9, got_span = -9;

	dt_ok(dat_ep_recv_query(ep, &got_nbufs, &got_span));
	assert_int_equal(got_nbufs, nbufs);
	assert_int_equal(got_span, span);
}

/* EP-RECVQ-01 EP-RECVQ-02 EP-RECVQ-05 EP-RECVQ-08 EP-RECVQ-14: a posted Receive is allocated */
static void ep_recv_query__receives_posted__counted_from_the_post(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(lab->ia.provider.ep_recv_info_supported, 0x11);
	for (DAT_COUNT i = 0; i < 3; i++) {
		check_counts(lab->ep.ep, i, i);
		dt_ok(ep_recv_empty(lab->ep.ep, (uint64_t)i));
	}
	check_counts(lab->ep.ep, 3, 3);
	ep_lab_no_events(lab);
}

static bool has_one_left(void *arg)
{
	DAT_COUNT nbufs;

	dt_ok(dat_ep_recv_query(arg, &nbufs, NULL));
	return nbufs == 1;
}

/* EP-RECVQ-01 EP-RECVQ-04 EP-RECVQ-15: a completed Receive no longer counts, dequeued or not */
static void ep_recv_query__messages_arrived__no_longer_counted(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (uint64_t i = 0; i < 3; i++)
		dt_ok(ep_recv_empty(lab->ep.ep, i));
	check_counts(lab->ep.ep, 3, 3);
	dt_ok(ep_send_empty(lab->peer.ep, 0));
	dt_ok(ep_send_empty(lab->peer.ep, 1));
	dt_until(has_one_left, lab->ep.ep);
	check_counts(lab->ep.ep, 1, 1);
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 0, DAT_DTO_SUCCESS, 0);
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 1, DAT_DTO_SUCCESS, 0);
	check_counts(lab->ep.ep, 1, 1);
	/* the rest is flushed */
	ep_unlink(&lab->ep, &lab->peer);
	check_counts(lab->ep.ep, 0, 0);
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 2, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_no_event(lab->ep.recv);
}

/* EP-RECVQ-07: RDMA in both directions, from either side */
static void ep_recv_query__rdma_traffic__changes_nothing(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_ok(ep_recv_empty(lab->ep.ep, 1));
	dt_ok(ep_recv_empty(lab->ep.ep, 2));
	dt_ok(ep_write(lab->peer.ep, &lab->buf, 0, &lab->buf, 4096, 1024, 3));
	dt_ok(ep_read(lab->peer.ep, &lab->buf, 8192, &lab->buf, 0, 1024, 4));
	dt_ok(ep_write(lab->ep.ep, &lab->buf, 0, &lab->buf, 12288, 1024, 5));
	dt_expect_dto(lab->peer.request, lab->peer.ep, 3, DAT_DTO_SUCCESS, 1024);
	dt_expect_dto(lab->peer.request, lab->peer.ep, 4, DAT_DTO_SUCCESS, 1024);
	dt_expect_dto(lab->ep.request, lab->ep.ep, 5, DAT_DTO_SUCCESS, 1024);
	check_counts(lab->ep.ep, 2, 2);
}

/* EP-RECVQ-10 EP-RECVQ-11 */
static void ep_recv_query__outputs_null__others_filled(void **state)
{
	struct ep_lab *lab = *state;
	DAT_COUNT nbufs = -9, span = -9;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(ep_recv_empty(lab->ep.ep, 1));
	dt_ok(dat_ep_recv_query(lab->ep.ep, &nbufs, NULL));
	assert_int_equal(nbufs, 1);
	dt_ok(dat_ep_recv_query(lab->ep.ep, NULL, &span));
	assert_int_equal(span, 1);
	dt_ok(dat_ep_recv_query(lab->ep.ep, NULL, NULL));
}

/* EP-RECVQ-16: with a Receive posted in the states where it stays posted */
static void ep_recv_query__each_state__works(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		if (ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			ep_lab_equip(lab);
		check_counts(lab->ep.ep, 0, 0);
		dt_ok(ep_recv_empty(lab->ep.ep, 1));
		if (ep_states[i] == DAT_EP_STATE_DISCONNECTED)
			check_counts(lab->ep.ep, 0, 0);
		else
			check_counts(lab->ep.ep, 1, 1);
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		ep_lab_close(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_recv_query__receives_posted__counted_from_the_post),
		ep_test(ep_recv_query__messages_arrived__no_longer_counted),
		ep_test(ep_recv_query__rdma_traffic__changes_nothing),
		ep_test(ep_recv_query__outputs_null__others_filled),
		ep_test(ep_recv_query__each_state__works),
	};

	return cmocka_run_group_tests_name("ep_recv_query", tests, NULL, NULL);
}
