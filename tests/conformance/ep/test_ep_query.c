// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_query: masks, addresses, qualifiers; wrong arguments of all calls of the chapter. Idle
 * flags are in test_ep_get_status.c.
 */
#include "ep_lab.h"

/* --- query: masks and arguments --- */

/*
 * EP-QUERY-01 EP-QUERY-03 EP-QUERY-07 EP-QUERY-08 EP-QUERY-10 EP-QUERY-11 EP-QUERY-12: each bit
 * alone fills its field
 */
static void ep_query__one_field_at_a_time__its_value(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM all, one;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	all = ep_query(lab->ep.ep);
	assert_int_equal(DAT_EP_FIELD_ALL, 0x7ffff7ff);
	dt_ok(dat_ep_query(lab->ep.ep, 0, &one));
	for (int bit = 0; bit < 31; bit++) {
		const DAT_EP_PARAM_MASK mask = UINT64_C(1) << bit;

		if (!(mask & DAT_EP_FIELD_ALL))
			continue;
		memset(&one, 0x3c, sizeof(one));
		dt_ok(dat_ep_query(lab->ep.ep, mask, &one));
		if (mask == DAT_EP_FIELD_IA_HANDLE)
			assert_ptr_equal(one.ia_handle, lab->ia.ia);
		else if (mask == DAT_EP_FIELD_EP_STATE)
			assert_int_equal(one.ep_state, DAT_EP_STATE_CONNECTED);
		else if (mask == DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR)
			assert_ptr_equal(one.local_ia_address_ptr, all.local_ia_address_ptr);
		else if (mask == DAT_EP_FIELD_LOCAL_PORT_QUAL)
			assert_true(one.local_port_qual == all.local_port_qual);
		else if (mask == DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR)
			assert_ptr_equal(one.remote_ia_address_ptr, all.remote_ia_address_ptr);
		else if (mask == DAT_EP_FIELD_REMOTE_PORT_QUAL)
			assert_true(one.remote_port_qual == all.remote_port_qual);
		else if (mask == DAT_EP_FIELD_PZ_HANDLE)
			assert_ptr_equal(one.pz_handle, lab->ia.pz);
		else if (mask == DAT_EP_FIELD_RECV_EVD_HANDLE)
			assert_ptr_equal(one.recv_evd_handle, lab->ep.recv);
		else if (mask == DAT_EP_FIELD_REQUEST_EVD_HANDLE)
			assert_ptr_equal(one.request_evd_handle, lab->ep.request);
		else if (mask == DAT_EP_FIELD_CONNECT_EVD_HANDLE)
			assert_ptr_equal(one.connect_evd_handle, lab->ep.conn);
		else if (mask == DAT_EP_FIELD_SRQ_HANDLE)
			assert_ptr_equal(one.srq_handle, DAT_HANDLE_NULL);
		else if (mask == DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)
			assert_int_equal(one.ep_attr.max_recv_dtos, all.ep_attr.max_recv_dtos);
		else if (mask == DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE)
			assert_true(one.ep_attr.max_message_size == all.ep_attr.max_message_size);
	}
}

/* EP-QUERY-04 GEN-21: unknown bits have no effect */
static void ep_query__unknown_mask_bits__ignored(void **state)
{
	static const DAT_EP_PARAM_MASK masks[] = {
		DAT_EP_FIELD_ALL | 0x800,
		0xFFFF,
		0xFFFFFFFF,
		UINT64_MAX,
		DAT_EP_FIELD_ALL | UINT64_C(1) << 63,
	};
	static const DAT_EP_PARAM_MASK unknown[] = {
		0x800,
		0x80000000,
		UINT64_C(1) << 32,
		UINT64_C(1) << 63,
	};
	struct ep_lab *lab = *state;
	DAT_EP_PARAM all, got;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	all = ep_query(lab->ep.ep);
	for (size_t i = 0; i < COUNT_OF(masks); i++) {
		memset(&got, 0xa5, sizeof(got));
		dt_ok(dat_ep_query(lab->ep.ep, masks[i], &got));
		assert_int_equal(got.ep_state, DAT_EP_STATE_UNCONNECTED);
		if ((masks[i] & DAT_EP_FIELD_ALL) == DAT_EP_FIELD_ALL) {
			ep_check_same_config(&all, &got);
			continue;
		}
		/* 0xFFFF: the handles, and the attributes from the service type to the flags */
		assert_ptr_equal(got.ia_handle, lab->ia.ia);
		assert_ptr_equal(got.pz_handle, lab->ia.pz);
		assert_ptr_equal(got.recv_evd_handle, lab->ep.recv);
		assert_ptr_equal(got.request_evd_handle, lab->ep.request);
		assert_ptr_equal(got.connect_evd_handle, lab->ep.conn);
		assert_ptr_equal(got.srq_handle, DAT_HANDLE_NULL);
		assert_int_equal(got.ep_attr.service_type, DAT_SERVICE_TYPE_RC);
		assert_true(got.ep_attr.max_message_size == all.ep_attr.max_message_size);
		assert_true(got.ep_attr.max_rdma_size == all.ep_attr.max_rdma_size);
	}
	for (size_t i = 0; i < COUNT_OF(unknown); i++)
		dt_ok(dat_ep_query(lab->ep.ep, unknown[i], &got));
}

/* The masks of existing consumers, which read the result and ignore the return code. */
static const DAT_EP_PARAM_MASK consumer_masks[] = {0xFFFF, 0xFFFFFFFF};

/* COMPAT-44 EP-QUERY-04: state and handles */
static void ep_query__consumer_masks_in_each_state__state_and_handles(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		for (size_t n = 0; n < COUNT_OF(consumer_masks); n++) {
			const DAT_EP_PARAM all = ep_query(lab->ep.ep);
			DAT_EP_PARAM param;

			memset(&param, 0xa5, sizeof(param));
			(void)dat_ep_query(lab->ep.ep, consumer_masks[n], &param);
			assert_int_equal(param.ep_state, ep_states[i]);
			assert_ptr_equal(param.ia_handle, all.ia_handle);
			assert_ptr_equal(param.pz_handle, all.pz_handle);
			assert_ptr_equal(param.recv_evd_handle, all.recv_evd_handle);
			assert_ptr_equal(param.request_evd_handle, all.request_evd_handle);
			assert_ptr_equal(param.connect_evd_handle, all.connect_evd_handle);
			assert_ptr_equal(param.srq_handle, all.srq_handle);
		}
		ep_lab_close(lab);
	}
}

struct masked_query {
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM_MASK mask;
};

static bool is_connected_by_query(void *arg)
{
	const struct masked_query *masked_query = arg;
	DAT_EP_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	(void)dat_ep_query(masked_query->ep, masked_query->mask, &param);
	if (param.ep_state != DAT_EP_STATE_CONNECTED)
		assert_int_equal(param.ep_state, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	return param.ep_state == DAT_EP_STATE_CONNECTED;
}

/* COMPAT-44: the consumer waits for the connection by queries only */
static void ep_query__consumer_masks_while_connecting__state_reported(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(consumer_masks); i++) {
		struct masked_query masked_query = {.mask = consumer_masks[i]};

		ep_lab_open(lab, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		masked_query.ep = lab->ep.ep;
		assert_false(is_connected_by_query(&masked_query));
		dt_ok(dat_cr_accept(lab->cr, lab->peer.ep, 0, NULL));
		dt_until(is_connected_by_query, &masked_query);
		dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		ep_lab_close(lab);
	}
}

/*
 * EP-QUERY-08 EP-QUERY-14 EP-QUERY-19 EP-QUERY-21 EP-STATUS-01: in each state, without effect, and
 * with pointers that stay valid until the endpoint is freed
 */
static void ep_query__each_state__works_and_changes_nothing(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		DAT_EP_PARAM first, second;
		volatile unsigned int sum = 0;

		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		first = ep_query(lab->ep.ep);
		second = ep_query(lab->ep.ep);
		assert_int_equal(first.ep_state, ep_states[i]);
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		ep_check_same_config(&first, &second);
		assert_non_null(first.remote_ia_address_ptr);
		for (size_t k = 0; k < sizeof(struct sockaddr); k++)
			sum += ((const unsigned char *)first.remote_ia_address_ptr)[k];
		(void)sum;
		ep_lab_no_events(lab);
		ep_lab_close(lab);
	}
}

/* EP-QUERY-20 */
static void ep_query__provider_made__no_zone_and_no_evds(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	ep_lab_open(lab, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	param = ep_query(lab->ep.ep);
	assert_ptr_equal(param.pz_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.recv_evd_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.request_evd_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.connect_evd_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.ia_handle, lab->ia.ia);
}

/* --- query: addresses and qualifiers --- */

static void check_address(DAT_IA_ADDRESS_PTR a, DAT_IA_ADDRESS_PTR b)
{
	assert_int_equal(a->sa_family, b->sa_family);
	if (a->sa_family == AF_INET)
		assert_memory_equal(&((struct sockaddr_in *)a)->sin_addr,
				    &((struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr));
	else
		assert_memory_equal(&((struct sockaddr_in6 *)a)->sin6_addr,
				    &((struct sockaddr_in6 *)b)->sin6_addr,
				    sizeof(struct in6_addr));
}

/* EP-QUERY-09 EP-QUERY-13: the peer is on the same adapter */
static void ep_query__states_with_a_peer__addresses(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		DAT_EP_PARAM param;

		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		param = ep_query(lab->ep.ep);
		check_address(param.local_ia_address_ptr, lab->ia.attr.ia_address_ptr);
		if (ep_states[i] != DAT_EP_STATE_UNCONNECTED &&
		    ep_states[i] != DAT_EP_STATE_RESERVED &&
		    ep_states[i] != DAT_EP_STATE_DISCONNECTED)
			check_address(param.remote_ia_address_ptr, lab->ia.attr.ia_address_ptr);
		ep_lab_close(lab);
	}
}

/*
 * EP-QUERY-15 EP-QUERY-16 EP-QUERY-17 EP-QUERY-13: active side, passive side, and the request
 * between them
 */
static void ep_query__both_ends__qualifiers_match(void **state)
{
	struct ep_lab *lab = *state;
	DAT_PORT_QUAL local, passive_local;
	DAT_EP_PARAM param;
	DAT_CR_PARAM cr;

	ep_lab_open(lab, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	param = ep_query(lab->ep.ep);
	assert_true(param.remote_port_qual == lab->qual);
	local = param.local_port_qual;
	assert_true(local != 0);
	dt_ok(dat_cr_query(lab->cr, DAT_CR_FIELD_ALL, &cr));
	assert_true(cr.remote_port_qual == local);
	dt_ok(dat_cr_accept(lab->cr, lab->peer.ep, 0, NULL));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	param = ep_query(lab->ep.ep);
	assert_true(param.local_port_qual == local);
	assert_true(param.remote_port_qual == lab->qual);
	param = ep_query(lab->peer.ep);
	assert_true(param.remote_port_qual == local);
	passive_local = param.local_port_qual;
	assert_true(passive_local != 0);
	/* they stay valid while the disconnect is delayed */
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 64, 1));
	dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	param = ep_query(lab->ep.ep);
	assert_int_equal(param.ep_state, DAT_EP_STATE_DISCONNECT_PENDING);
	assert_true(param.local_port_qual == local);
	assert_true(param.remote_port_qual == lab->qual);
	assert_true(ep_query(lab->peer.ep).local_port_qual == passive_local);
}

/* EP-QUERY-16 EP-QUERY-17: PASSIVE_ and COMPLETION_PENDING, across processes in the latter */
static void ep_query__passive_side_before_connected__qualifiers(void **state)
{
	static const DAT_EP_STATE passive[] = {DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
					       DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
					       DAT_EP_STATE_COMPLETION_PENDING};
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(passive); i++) {
		DAT_EP_PARAM param;
		DAT_CR_PARAM cr;

		ep_lab_open(lab, passive[i]);
		param = ep_query(lab->ep.ep);
		assert_true(param.remote_port_qual != 0);
		if (passive[i] != DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			assert_true(param.local_port_qual != 0);
		if (passive[i] != DAT_EP_STATE_COMPLETION_PENDING) {
			dt_ok(dat_cr_query(lab->cr, DAT_CR_FIELD_ALL, &cr));
			assert_true(param.remote_port_qual == cr.remote_port_qual);
			assert_true(param.remote_port_qual ==
				    ep_query(lab->peer.ep).local_port_qual);
		}
		ep_lab_close(lab);
	}
}

/* EP-QUERY-17: two endpoints of one adapter never have the same qualifier */
static void ep_query__two_connections__qualifiers_differ(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_ep a, b;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &a);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &b);
	dt_ep_link(&lab->ia, &a, &b);
	assert_true(ep_query(a.ep).local_port_qual != ep_query(lab->ep.ep).local_port_qual);
}

/* --- wrong arguments of all calls of the chapter --- */

/* EP-GEN-01 EP-GEN-02 EP-GEN-03 EP-GEN-04 EP-GEN-08 EP-GEN-09 EP-QUERY-06 EP-MODIFY-07
 * EP-STATUS-11 EP-RESET-05 EP-FREE-01 EP-FREE-02 EP-FREE-03 EP-RECVQ-17 EP-RECVQ-18 */
static void ep_calls__bad_handle__invalid_handle(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;
	DAT_EP_STATE ep_state;
	DAT_COUNT nbufs, span;
	struct dt_ep freed;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &freed);
	param = ep_query(freed.ep);
	dt_ok(dat_ep_free(freed.ep));

	const DAT_HANDLE bad[] = {
		DAT_HANDLE_NULL, lab->ep.recv,
		lab->ia.pz,	 lab->ia.ia,
		lab->buf.lmr,	 DT_NEVER_A_HANDLE,
		(DAT_HANDLE)1,	 (DAT_HANDLE)(uintptr_t)((uintptr_t)lab->ep.ep + 1),
		freed.ep};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		dt_fails_with(dat_ep_query(bad[i], DAT_EP_FIELD_ALL, &param), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_modify(bad[i], DAT_EP_FIELD_PZ_HANDLE, &param),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_get_status(bad[i], &ep_state, NULL, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_reset(bad[i]), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_free(bad[i]), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_recv_query(bad[i], &nbufs, &span), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_disconnect(bad[i], DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		dt_fails_with(ep_recv_empty(bad[i], 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_fails_with(ep_send_empty(bad[i], 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		dt_fails_with(dat_ep_connect(bad[i], lab->ia.attr.ia_address_ptr, 1,
					     DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
					     DAT_CONNECT_DEFAULT_FLAG),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_UNCONNECTED);
}

/* EP-GEN-07: handles before parameters, parameters before the state, the state before resources */
static void ep_calls__several_faults__first_in_order_is_reported(void **state)
{
	struct ep_lab *lab = *state;
	DAT_LMR_TRIPLET seg;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	memset(&param, 0, sizeof(param));
	seg = dt_seg(&lab->buf, 0, 64);
	/* handle and parameter */
	dt_fails_with(dat_ep_create(lab->ia.ia, lab->ep.recv, lab->ep.recv, lab->ep.request,
				    lab->ep.conn, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_ep_query(DAT_HANDLE_NULL, 0x800, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_ep_modify(lab->ep.recv, 0x800, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_fails_with(
		dat_ep_post_send(lab->ep.recv, -1, NULL, dt_cookie(0), (DAT_COMPLETION_FLAGS)0x80),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	/* parameter and state */
	param.ep_attr.max_recv_iov = -1;
	dt_fails_with(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_IA_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_ep_connect(lab->ep.ep, lab->ia.attr.ia_address_ptr, 1, 0, 0, NULL,
				     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	ep_unlink(&lab->ep, &lab->peer);
	dt_ok(dat_ep_reset(lab->ep.ep));
	dt_fails_with(dat_ep_disconnect(lab->ep.ep, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_fails_with(
		dat_ep_post_send(lab->ep.ep, 1, &seg, dt_cookie(0), (DAT_COMPLETION_FLAGS)0x80),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	/* state and resources: the queue does not exist */
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, lab->ep.conn,
			    NULL, &ep));
	dt_fails_with(ep_send_empty(ep, 1), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	/* parameter and resources */
	dt_fails_with(dat_ep_post_recv(ep, -1, NULL, dt_cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_query__one_field_at_a_time__its_value),
		ep_test(ep_query__unknown_mask_bits__ignored),
		ep_test(ep_query__consumer_masks_in_each_state__state_and_handles),
		ep_test(ep_query__consumer_masks_while_connecting__state_reported),
		ep_test(ep_query__each_state__works_and_changes_nothing),
		ep_test(ep_query__provider_made__no_zone_and_no_evds),
		ep_test(ep_query__states_with_a_peer__addresses),
		ep_test(ep_query__both_ends__qualifiers_match),
		ep_test(ep_query__passive_side_before_connected__qualifiers),
		ep_test(ep_query__two_connections__qualifiers_differ),
		ep_test(ep_calls__bad_handle__invalid_handle),
		ep_test(ep_calls__several_faults__first_in_order_is_reported),
	};

	return cmocka_run_group_tests_name("ep_query", tests, NULL, NULL);
}
