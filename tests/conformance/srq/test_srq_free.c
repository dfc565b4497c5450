// SPDX-License-Identifier: BSD-2-Clause
/* dat_srq_free: when it is refused, and what becomes of buffers and completions. */
#include "ep_lab.h"
#include "srq_util.h"

#define CREATIONS 1000

/* SRQ-FREE-01 SRQ-FREE-07 SRQ-FREE-08 SRQ-RECV-32 SRQ-QUERY-17 SRQ-RESIZE-10 SRQ-LW-16 GEN-15 */
static void srq_calls__no_live_srq__invalid_handle(void **state)
{
	struct bench *bench = *state;
	const DAT_SRQ_HANDLE freed = srq_make(&bench->ia, 4, 1);
	DAT_SRQ_PARAM param;
	struct conf_bad bad;

	dt_ok(dat_srq_free(freed));
	conf_bad_make(&bench->ia, &bad);
	bad.handle[0] = freed;
	for (int round = 0; round < 2; round++) {
		conf_refuses(&bad, h, DAT_INVALID_HANDLE_SRQ, dat_srq_free(h));
		conf_refuses(&bad, h, DAT_INVALID_HANDLE_SRQ, srq_post_empty(h, 1));
		conf_refuses(&bad, h, DAT_INVALID_HANDLE_SRQ,
			     dat_srq_query(h, DAT_SRQ_FIELD_ALL, &param));
		conf_refuses(&bad, h, DAT_INVALID_HANDLE_SRQ, dat_srq_resize(h, 8));
		conf_refuses(&bad, h, DAT_INVALID_HANDLE_SRQ, dat_srq_set_lw(h, 0));
		bad.handle[0] = DAT_HANDLE_NULL;
	}
}

/* SRQ-GEN-03 GEN-16 */
static void srq_create__thousand_times_after_a_free__handle_not_reissued(void **state)
{
	struct bench *bench = *state;
	const DAT_SRQ_HANDLE dead = srq_make(&bench->ia, 1, 1);

	dt_ok(dat_srq_free(dead));
	for (int i = 0; i < CREATIONS; i++) {
		const DAT_SRQ_HANDLE srq = srq_make(&bench->ia, 1, 1);

		assert_ptr_not_equal(srq, dead);
		dt_ok(dat_srq_free(srq));
	}
	dt_fails_with(dat_srq_free(dead), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
}

/* The endpoint under test gives way to one of the SRQ. */
static void lab_use_srq(struct ep_lab *lab, DAT_SRQ_HANDLE srq)
{
	DAT_EP_ATTR attr;

	srq_ep_attr(&lab->ia, &attr);
	dt_ep_free(&lab->ep);
	srq_ep_make(&lab->ia, lab->ia.pz, srq, &attr, &lab->ep);
}

/*
 * SRQ-FREE-02 EP-CRSRQ-40 SRQ-USE-01 EP-STATUS-09 EP-RECVQ-03 EP-RECVQ-14 EP-RECVQ-16 EP-STATE-66:
 * in every state that such an endpoint can have
 */
static void srq_free__endpoint_in_each_state__refused_without_effect(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		/* over iWARP, a stopped peer does not delay the connection */
		const bool may_advance =
			dt_is_iwarp() && ep_states[i] == DAT_EP_STATE_COMPLETION_PENDING;
		DAT_SRQ_HANDLE srq;

		if (!ep_lasts(ep_states[i]))
			continue;
		if (ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			continue; /* the Provider's own have no SRQ */
		ep_lab_prepare(lab, ep_states[i], NULL);
		srq = srq_make(&lab->ia, 4, 1);
		dt_ok(srq_post_empty(srq, 1));
		lab_use_srq(lab, srq);
		dt_ok(srq_post_empty(srq, 1));
		ep_lab_drive(lab, ep_states[i]);
		if (!may_advance)
			assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		dt_fails_with(dat_srq_free(srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
		srq_counts(srq, 2, 2);
		assert_true(ep_is_recv_idle(lab->ep.ep));
		srq_expect_held(&lab->ia, lab->ep.ep, 0);
		if (!may_advance)
			assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		dt_no_event(lab->ep.recv);
		ep_lab_close(lab);
	}
}

/* SRQ-FREE-03 EP-FREE-26 */
static void srq_free__after_the_last_endpoint__success(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 2);
	bench_works(bench);
	dt_ep_free(&bench->to[0]);
	dt_fails_with(dat_srq_free(bench->srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	bench_give(bench, 5);
	bench_send(bench, 1, 6);
	bench_receive(bench, 1, 6);
	dt_ep_free(&bench->to[1]);
	dt_ok(dat_srq_free(bench->srq));
}

/* SRQ-FREE-04 SRQ-USE-07 */
static void srq_free__buffers_posted__dropped_in_silence(void **state)
{
	struct bench *bench = *state;
	struct dt_buf buf;

	dt_buf_create(&bench->ia, bench->ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	memset(buf.p, RIG_FILL, 4096);
	bench_add(bench, 1);
	for (uint64_t i = 0; i < 3; i++)
		dt_ok(srq_post(bench->srq, dt_seg(&buf, i * 100, 100), i));
	bench_cut(bench, 0);
	srq_counts(bench->srq, 3, 3);
	dt_ok(dat_ep_free(bench->to[0].ep));
	srq_counts(bench->srq, 3, 3);
	dt_ok(dat_srq_free(bench->srq));
	dt_stays_empty(bench->to[0].recv);
	dt_check_bytes(buf.p, 4096, RIG_FILL);
	dt_buf_free(&buf);
}

/* SRQ-FREE-05 EP-FREE-21 */
static void srq_free__completions_queued__stay(void **state)
{
	struct bench *bench = *state;
	DAT_EP_HANDLE ep;

	bench_add(bench, 1);
	ep = bench->to[0].ep;
	bench_give_many(bench, 0, 3);
	bench_send(bench, 0, 50);
	bench_send(bench, 0, 51);
	srq_until(bench->srq, 1);
	dt_ok(dat_ep_free(ep));
	dt_ok(dat_srq_free(bench->srq));
	for (uint64_t i = 50; i < 52; i++) {
		const DAT_EVENT event = dt_event(bench->to[0].recv);

		assert_true(bench_read(bench, bench_check_event(&event, ep)) == i);
	}
	dt_no_event(bench->to[0].recv);
}

/* SRQ-FREE-05: and its entries do not come back to a newer queue */
static void evd_dequeue__srq_gone__harmless(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_HANDLE srq[40];

	bench_add(bench, 1);
	bench_give(bench, 0);
	bench_send(bench, 0, 50);
	srq_until(bench->srq, 0);
	dt_ok(dat_ep_free(bench->to[0].ep));
	dt_ok(dat_srq_free(bench->srq));
	for (size_t i = 0; i < COUNT_OF(srq); i++) {
		srq[i] = srq_make(&bench->ia, 2, 1);
		dt_ok(srq_post_empty(srq[i], 1));
	}
	dt_event(bench->to[0].recv);
	for (size_t i = 0; i < COUNT_OF(srq); i++)
		srq_counts(srq[i], 1, 1);
}

/* SRQ-FREE-05 SRQ-RECV-34: an EVD that is freed with completions gives their entries back */
static void evd_free__completions_of_an_srq__entries_free_again(void **state)
{
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 16);
	for (uint64_t i = 0; i < 4; i++)
		bench_send(bench, 0, i);
	srq_until(bench->srq, 12);
	srq_counts(bench->srq, 12, 16);
	dt_ok(dat_ep_free(bench->to[0].ep));
	srq_counts(bench->srq, 12, 16);
	dt_ok(dat_evd_free(bench->to[0].recv));
	srq_counts(bench->srq, 12, 12);
	bench_give_many(bench, 20, 4);
	dt_fails_with(srq_post_empty(bench->srq, 1), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
}

/* SRQ-GEN-06 IA-CLOSE-07: with endpoints, buffers and messages in every place */
static void ia_close__abrupt_with_srqs_in_use__handles_invalid(void **state)
{
	struct bench *bench = *state;
	DAT_SRQ_HANDLE srq = bench->srq, second;
	DAT_SRQ_PARAM param;

	bench_add(bench, 4);
	second = srq_make(&bench->ia, 4, 1);
	dt_ok(srq_post_empty(second, 1));
	bench_give_many(bench, 0, 2);
	for (unsigned i = 0; i < 4; i++)
		bench_send(bench, i, i);
	srq_until(srq, 0);
	dt_ia_abort(&bench->ia);
	dt_mem_free(bench->x.p, bench->x.mapped);
	dt_mem_free(bench->y.p, bench->y.mapped);
	dt_fails_with(dat_srq_free(srq), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	dt_fails_with(dat_srq_query(second, DAT_SRQ_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_SRQ);
	dt_fails_with(srq_post_empty(srq, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	bench_begin(bench, 16); /* for the teardown */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_calls__no_live_srq__invalid_handle),
		bench_test(srq_create__thousand_times_after_a_free__handle_not_reissued),
		ep_test(srq_free__endpoint_in_each_state__refused_without_effect),
		bench_test(srq_free__after_the_last_endpoint__success),
		bench_test(srq_free__buffers_posted__dropped_in_silence),
		bench_test(srq_free__completions_queued__stay),
		bench_test(evd_dequeue__srq_gone__harmless),
		bench_test(evd_free__completions_of_an_srq__entries_free_again),
		bench_test(ia_close__abrupt_with_srqs_in_use__handles_invalid),
	};

	return cmocka_run_group_tests_name("srq_free", tests, NULL, NULL);
}
