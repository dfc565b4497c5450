// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_modify: what can be changed, in which states, and the effect on posted Receives. */
#include "ep_lab.h"

#define ATTR(name) DAT_EP_FIELD_EP_ATTR_##name
#define EVDS                                                                                       \
	(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |                          \
	 DAT_EP_FIELD_CONNECT_EVD_HANDLE)

/* Each attribute that may be set in the four open states, with its requirement. */
static const DAT_EP_PARAM_MASK open_fields[] = {
	DAT_EP_FIELD_RECV_EVD_HANDLE,	 /* EP-MODIFY-18 */
	DAT_EP_FIELD_REQUEST_EVD_HANDLE, /* EP-MODIFY-19 */
	DAT_EP_FIELD_CONNECT_EVD_HANDLE, /* EP-MODIFY-20 */
	ATTR(SERVICE_TYPE),		 /* EP-MODIFY-21 */
	ATTR(MAX_MESSAGE_SIZE),		 /* EP-MODIFY-22 */
	ATTR(MAX_RDMA_SIZE),		 /* EP-MODIFY-23 */
	ATTR(QOS),			 /* EP-MODIFY-24 */
	ATTR(RECV_COMPLETION_FLAGS),	 /* EP-MODIFY-25 */
	ATTR(REQUEST_COMPLETION_FLAGS),	 /* EP-MODIFY-27 */
	ATTR(MAX_RECV_DTOS),		 /* EP-MODIFY-28 */
	ATTR(MAX_REQUEST_DTOS),		 /* EP-MODIFY-29 */
	ATTR(MAX_RECV_IOV),		 /* EP-MODIFY-30 */
	ATTR(MAX_REQUEST_IOV),		 /* EP-MODIFY-31 */
	ATTR(MAX_RDMA_READ_IN),		 /* EP-MODIFY-32 */
	ATTR(MAX_RDMA_READ_OUT),	 /* EP-MODIFY-33 */
	ATTR(MAX_RDMA_READ_IOV),	 /* EP-MODIFY-34 */
	ATTR(MAX_RDMA_WRITE_IOV),	 /* EP-MODIFY-34 */
};

/* Values that differ from all defaults, and new EVDs. */
static DAT_EP_PARAM other_values(struct ep_lab *lab)
{
	DAT_EP_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	param.recv_evd_handle = dt_evd_create(&lab->ia, 32, DAT_EVD_DTO_FLAG);
	param.request_evd_handle = dt_evd_create(&lab->ia, 32, DAT_EVD_DTO_FLAG);
	param.connect_evd_handle = dt_evd_create(&lab->ia, 32, DAT_EVD_CONNECTION_FLAG);
	param.ep_attr.service_type = DAT_SERVICE_TYPE_RC;
	param.ep_attr.max_message_size = 4321;
	param.ep_attr.max_rdma_size = 8765;
	param.ep_attr.qos = DAT_QOS_BEST_EFFORT;
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	param.ep_attr.max_recv_dtos = 21;
	param.ep_attr.max_request_dtos = 22;
	param.ep_attr.max_recv_iov = 3;
	param.ep_attr.max_request_iov = 2;
	param.ep_attr.max_rdma_read_in = 5;
	param.ep_attr.max_rdma_read_out = 6;
	param.ep_attr.max_rdma_read_iov = 1;
	param.ep_attr.max_rdma_write_iov = 1;
	return param;
}

/* Returns the configuration `before`, with the selected members taken from `with`. */
static DAT_EP_PARAM merged(const DAT_EP_PARAM *before, const DAT_EP_PARAM *with,
			   DAT_EP_PARAM_MASK mask)
{
	DAT_EP_PARAM result = *before;

#define TAKE(bit, member)                                                                          \
	do {                                                                                       \
		if (mask & (bit))                                                                  \
			result.member = with->member;                                              \
	} while (0)
	TAKE(DAT_EP_FIELD_RECV_EVD_HANDLE, recv_evd_handle);
	TAKE(DAT_EP_FIELD_REQUEST_EVD_HANDLE, request_evd_handle);
	TAKE(DAT_EP_FIELD_CONNECT_EVD_HANDLE, connect_evd_handle);
	TAKE(ATTR(SERVICE_TYPE), ep_attr.service_type);
	TAKE(ATTR(MAX_MESSAGE_SIZE), ep_attr.max_message_size);
	TAKE(ATTR(MAX_RDMA_SIZE), ep_attr.max_rdma_size);
	TAKE(ATTR(QOS), ep_attr.qos);
	TAKE(ATTR(RECV_COMPLETION_FLAGS), ep_attr.recv_completion_flags);
	TAKE(ATTR(REQUEST_COMPLETION_FLAGS), ep_attr.request_completion_flags);
	TAKE(ATTR(MAX_RECV_DTOS), ep_attr.max_recv_dtos);
	TAKE(ATTR(MAX_REQUEST_DTOS), ep_attr.max_request_dtos);
	TAKE(ATTR(MAX_RECV_IOV), ep_attr.max_recv_iov);
	TAKE(ATTR(MAX_REQUEST_IOV), ep_attr.max_request_iov);
	TAKE(ATTR(MAX_RDMA_READ_IN), ep_attr.max_rdma_read_in);
	TAKE(ATTR(MAX_RDMA_READ_OUT), ep_attr.max_rdma_read_out);
	TAKE(ATTR(MAX_RDMA_READ_IOV), ep_attr.max_rdma_read_iov);
	TAKE(ATTR(MAX_RDMA_WRITE_IOV), ep_attr.max_rdma_write_iov);
#undef TAKE
	return result;
}

static bool is_open_state(DAT_EP_STATE state)
{
	return state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_RESERVED ||
	       state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
	       state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
}

/*
 * EP-MODIFY-01 EP-MODIFY-02 EP-MODIFY-18 EP-MODIFY-19 EP-MODIFY-20 EP-MODIFY-21 EP-MODIFY-22
 * EP-MODIFY-23 EP-MODIFY-24 EP-MODIFY-25 EP-MODIFY-27 EP-MODIFY-28 EP-MODIFY-29 EP-MODIFY-30
 * EP-MODIFY-31 EP-MODIFY-32 EP-MODIFY-33 EP-MODIFY-34: each field alone in each state; the rest of
 * the structure is garbage and has no effect
 */
static void ep_modify__each_field_in_each_state__changed_or_invalid_state(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		DAT_EP_PARAM with;

		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		if (ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			ep_lab_equip(lab);
		with = other_values(lab);
		for (size_t k = 0; k < COUNT_OF(open_fields); k++) {
			DAT_EP_PARAM before = ep_query(lab->ep.ep), expected, after;
			DAT_RETURN ret = dat_ep_modify(lab->ep.ep, open_fields[k], &with);

			expected = before;
			if (is_open_state(ep_states[i])) {
				dt_ok(ret);
				expected = merged(&before, &with, open_fields[k]);
			} else {
				dt_returns(ret, dt_state_error(ep_states[i]));
			}
			after = ep_query(lab->ep.ep);
			ep_check_same_config(&after, &expected);
			assert_int_equal(after.ep_state, ep_states[i]);
		}
		ep_lab_close(lab);
	}
}

/* EP-MODIFY-01 EP-MODIFY-41: all fields in one call */
static void ep_modify__all_fields_together__changed(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM before, with, expected, after;
	DAT_EP_PARAM_MASK mask = 0;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (size_t k = 0; k < COUNT_OF(open_fields); k++)
		mask |= open_fields[k];
	before = ep_query(lab->ep.ep);
	with = other_values(lab);
	expected = merged(&before, &with, mask);
	dt_ok(dat_ep_modify(lab->ep.ep, mask, &with));
	memset(&with, 0, sizeof(with));
	after = ep_query(lab->ep.ep);
	ep_check_same_config(&after, &expected);
}

/* EP-MODIFY-04 */
static void ep_modify__mask_zero__nothing_changes(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM before, garbage, after;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	before = ep_query(lab->ep.ep);
	memset(&garbage, 0xff, sizeof(garbage));
	dt_ok(dat_ep_modify(lab->ep.ep, 0, &garbage));
	dt_ok(dat_ep_modify(lab->ep.ep, 0, NULL));
	after = ep_query(lab->ep.ep);
	ep_check_same_config(&after, &before);
}

static DAT_RETURN set_pz(DAT_EP_HANDLE ep, DAT_PZ_HANDLE pz)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.pz_handle = pz;
	return dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param);
}

/* EP-MODIFY-15 EP-MODIFY-16 EP-MODIFY-44 EP-MODIFY-48: set, replaced, and removed */
static void ep_modify__zone_in_each_state__changed_or_invalid_state(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		bool is_legal = ep_states[i] == DAT_EP_STATE_UNCONNECTED ||
				ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
		DAT_PZ_HANDLE pz, before;

		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		dt_ok(dat_pz_create(lab->ia.ia, &pz));
		before = ep_query(lab->ep.ep).pz_handle;
		if (is_legal) {
			dt_ok(set_pz(lab->ep.ep, pz));
			assert_ptr_equal(ep_query(lab->ep.ep).pz_handle, pz);
			dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE,
				      DAT_INVALID_STATE_PZ_IN_USE);
			dt_ok(set_pz(lab->ep.ep, DAT_HANDLE_NULL));
			assert_ptr_equal(ep_query(lab->ep.ep).pz_handle, DAT_HANDLE_NULL);
		} else {
			dt_returns(set_pz(lab->ep.ep, pz), dt_state_error(ep_states[i]));
			dt_returns(set_pz(lab->ep.ep, DAT_HANDLE_NULL),
				   dt_state_error(ep_states[i]));
			assert_ptr_equal(ep_query(lab->ep.ep).pz_handle, before);
		}
		dt_ok(dat_pz_free(pz));
		ep_lab_close(lab);
	}
}

/* EP-MODIFY-48 */
static void ep_modify__evds_replaced__old_ones_free_new_ones_in_use(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM with;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	with = other_values(lab);
	dt_ok(dat_ep_modify(lab->ep.ep, EVDS, &with));
	dt_ok(dat_evd_free(lab->ep.recv));
	dt_ok(dat_evd_free(lab->ep.request));
	dt_ok(dat_evd_free(lab->ep.conn));
	dt_fails_with(dat_evd_free(with.recv_evd_handle), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_IN_USE);
	dt_fails_with(dat_evd_free(with.request_evd_handle), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_IN_USE);
	dt_fails_with(dat_evd_free(with.connect_evd_handle), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_IN_USE);
	/* setting the same EVD again counts it once */
	dt_ok(dat_ep_modify(lab->ep.ep, EVDS, &with));
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_ok(dat_evd_free(with.recv_evd_handle));
	dt_ok(dat_evd_free(with.request_evd_handle));
	dt_ok(dat_evd_free(with.connect_evd_handle));
}

/* EP-MODIFY-44 EP-MODIFY-45: an EVD and its queue are removed together */
static void ep_modify__evds_removed__with_their_queues(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM none, param;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	memset(&none, 0, sizeof(none));
	dt_ok(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | ATTR(MAX_RECV_DTOS), &none));
	dt_ok(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE | ATTR(MAX_REQUEST_DTOS),
			    &none));
	dt_ok(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &none));
	param = ep_query(lab->ep.ep);
	assert_ptr_equal(param.recv_evd_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.request_evd_handle, DAT_HANDLE_NULL);
	assert_ptr_equal(param.connect_evd_handle, DAT_HANDLE_NULL);
	assert_int_equal(param.ep_attr.max_recv_dtos, 0);
	assert_int_equal(param.ep_attr.max_request_dtos, 0);
	dt_fails_with(ep_recv_empty(lab->ep.ep, 1), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	dt_ok(dat_evd_free(lab->ep.recv));
	dt_ok(dat_evd_free(lab->ep.request));
	dt_ok(dat_evd_free(lab->ep.conn));
}

/* EP-MODIFY-36 EP-MODIFY-37 EP-MODIFY-38 */
static void ep_modify__named_attributes__none_or_refused(void **state)
{
	static const DAT_EP_PARAM_MASK transport =
		ATTR(NUM_TRANSPORT_ATTR) | ATTR(TRANSPORT_SPECIFIC_ATTR);
	static const DAT_EP_PARAM_MASK provider =
		ATTR(NUM_PROVIDER_ATTR) | ATTR(PROVIDER_SPECIFIC_ATTR);
	struct ep_lab *lab = *state;
	DAT_NAMED_ATTR named = {"no_such_attribute", "1"};

	for (size_t i = 0; i < EP_STATES; i++) {
		DAT_EP_PARAM param;

		if (!ep_lasts(ep_states[i]))
			continue;
		memset(&param, 0, sizeof(param));
		ep_lab_open(lab, ep_states[i]);
		if (ep_states[i] == DAT_EP_STATE_UNCONNECTED) {
			dt_ok(dat_ep_modify(lab->ep.ep, transport, &param));
			dt_ok(dat_ep_modify(lab->ep.ep, provider, &param));
		} else {
			dt_returns(dat_ep_modify(lab->ep.ep, transport, &param),
				   dt_state_error(ep_states[i]));
			dt_returns(dat_ep_modify(lab->ep.ep, provider, &param),
				   dt_state_error(ep_states[i]));
		}
		param.ep_attr.ep_transport_specific_count = 1;
		param.ep_attr.ep_transport_specific = &named;
		param.ep_attr.ep_provider_specific_count = 1;
		param.ep_attr.ep_provider_specific = &named;
		if (ep_states[i] == DAT_EP_STATE_UNCONNECTED) {
			dt_fails_with(dat_ep_modify(lab->ep.ep, transport, &param),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
			dt_fails_with(dat_ep_modify(lab->ep.ep, provider, &param),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		}
		ep_lab_close(lab);
	}
}

/* --- posted Receives --- */

/* EP-MODIFY-17 */
static void ep_modify__zone_changed_under_a_receive__local_protection(void **state)
{
	struct ep_lab *lab = *state;
	DAT_PZ_HANDLE pz;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_pz_create(lab->ia.ia, &pz));
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1));
	dt_ok(set_pz(lab->ep.ep, pz));
	assert_false(ep_is_recv_idle(lab->ep.ep));
	dt_ep_link(&lab->ia, &lab->peer, &lab->ep);
	memset(lab->buf.p + 64, 7, 64);
	dt_ok(ep_send(lab->peer.ep, &lab->buf, 64, 64, 2));
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION, DT_ANY_LEN);
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_check_bytes(lab->buf.p, 64, 0);
}

/* EP-MODIFY-49 EP-MODIFY-50: after each change that is allowed with Receives posted */
static void ep_modify__receives_posted__stay_and_use_the_new_evd(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM with;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (uint64_t i = 0; i < 3; i++)
		dt_ok(ep_recv(lab->ep.ep, &lab->buf, 64 * i, 64, i));
	with = other_values(lab);
	with.ep_attr.max_recv_iov = 7;
	with.ep_attr.max_recv_dtos = 100;
	with.ep_attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	dt_ok(dat_ep_modify(lab->ep.ep, ATTR(MAX_RECV_DTOS), &with));
	dt_ok(dat_ep_modify(lab->ep.ep, ATTR(MAX_RECV_IOV) | EVDS | ATTR(MAX_REQUEST_DTOS), &with));
	lab->ep.recv = with.recv_evd_handle;
	lab->ep.request = with.request_evd_handle;
	lab->ep.conn = with.connect_evd_handle;
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
	for (uint64_t i = 0; i < 3; i++) {
		memset(lab->buf.p + 4096, (int)i + 1, 64);
		dt_ok(ep_send(lab->peer.ep, &lab->buf, 4096, 64, i));
		dt_expect_dto(lab->peer.request, lab->peer.ep, i, DAT_DTO_SUCCESS, 64);
		dt_expect_dto(lab->ep.recv, lab->ep.ep, i, DAT_DTO_SUCCESS, 64);
		dt_check_bytes(lab->buf.p + 64 * i, 64, (unsigned char)(i + 1));
	}
}

/* EP-MODIFY-26 */
static void ep_modify__recv_flags_with_receives_posted__invalid_state(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(ep_recv_empty(lab->ep.ep, 1));
	memset(&param, 0, sizeof(param));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	dt_fails_with(dat_ep_modify(lab->ep.ep, ATTR(RECV_COMPLETION_FLAGS), &param),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_RECV);
	assert_int_not_equal(ep_query(lab->ep.ep).ep_attr.recv_completion_flags,
			     DAT_COMPLETION_UNSIGNALLED_FLAG);
	/* this rule does not apply to request flags */
	param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	dt_ok(dat_ep_modify(lab->ep.ep, ATTR(REQUEST_COMPLETION_FLAGS), &param));
}

static DAT_RETURN set_recv_dtos(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.ep_attr.max_recv_dtos = count;
	return dat_ep_modify(ep, ATTR(MAX_RECV_DTOS), &param);
}

/* EP-MODIFY-46 EP-MODIFY-51 EP-MODIFY-03 */
static void ep_modify__receive_queue_size__counts_at_once(void **state)
{
	struct ep_lab *lab = *state;
	DAT_COUNT size;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	size = ep_query(lab->ep.ep).ep_attr.max_recv_dtos;
	for (DAT_COUNT i = 0; i < size; i++)
		dt_ok(ep_recv_empty(lab->ep.ep, (uint64_t)i));
	dt_fails_with(ep_recv_empty(lab->ep.ep, 0), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	dt_ok(set_recv_dtos(lab->ep.ep, size + 5));
	for (DAT_COUNT i = 0; i < 5; i++)
		dt_ok(ep_recv_empty(lab->ep.ep, (uint64_t)(size + i)));
	dt_fails_with(ep_recv_empty(lab->ep.ep, 0), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	dt_fails_with(set_recv_dtos(lab->ep.ep, size + 4), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	assert_int_equal(ep_query(lab->ep.ep).ep_attr.max_recv_dtos, size + 5);
	dt_ok(set_recv_dtos(lab->ep.ep, size + 5));
	/* all completions are queued, in order */
	ep_fail(&lab->ia, &lab->ep);
	for (DAT_COUNT i = 0; i < size + 5; i++)
		dt_expect_dto(lab->ep.recv, lab->ep.ep, (uint64_t)i, DAT_DTO_ERR_FLUSHED,
			      DT_ANY_LEN);
}

/* EP-MODIFY-51: the request queue */
static void ep_modify__request_queue_size__counts_at_once(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	memset(&param, 0, sizeof(param));
	param.ep_attr.max_request_dtos = 50;
	dt_ok(dat_ep_modify(lab->ep.ep, ATTR(MAX_REQUEST_DTOS), &param));
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
	for (uint64_t i = 0; i < 50; i++)
		dt_ok(ep_send_empty(lab->ep.ep, i));
	dt_fails_with(ep_send_empty(lab->ep.ep, 50), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
}

/* EP-MODIFY-52 */
static void ep_modify__then_reset__parameters_kept(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM with, before, after;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	with = other_values(lab);
	dt_ok(dat_ep_modify(lab->ep.ep,
			    EVDS | ATTR(MAX_RECV_DTOS) | ATTR(MAX_MESSAGE_SIZE) |
				    ATTR(MAX_RDMA_READ_OUT) | ATTR(REQUEST_COMPLETION_FLAGS),
			    &with));
	lab->ep.conn = with.connect_evd_handle;
	before = ep_query(lab->ep.ep);
	ep_fail(&lab->ia, &lab->ep);
	dt_ok(dat_ep_reset(lab->ep.ep));
	after = ep_query(lab->ep.ep);
	ep_check_same_config(&after, &before);
}

/* EP-MODIFY-53 */
static void ep_modify__provider_made__configured_and_accepted(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	ep_lab_open(lab, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	ep_lab_equip(lab);
	memset(&param, 0, sizeof(param));
	param.ep_attr.max_recv_dtos = 3;
	param.ep_attr.max_message_size = 64;
	dt_ok(dat_ep_modify(lab->ep.ep, ATTR(MAX_RECV_DTOS) | ATTR(MAX_MESSAGE_SIZE), &param));
	for (uint64_t i = 0; i < 3; i++)
		dt_ok(ep_recv_empty(lab->ep.ep, i));
	dt_fails_with(ep_recv_empty(lab->ep.ep, 3), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	dt_ok(dat_cr_accept(lab->cr, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(ep_send_empty(lab->peer.ep, 9));
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 0, DAT_DTO_SUCCESS, 0);
	dt_fails_with(ep_send(lab->ep.ep, &lab->buf, 0, 65, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_modify__each_field_in_each_state__changed_or_invalid_state),
		ep_test(ep_modify__all_fields_together__changed),
		ep_test(ep_modify__mask_zero__nothing_changes),
		ep_test(ep_modify__zone_in_each_state__changed_or_invalid_state),
		ep_test(ep_modify__evds_replaced__old_ones_free_new_ones_in_use),
		ep_test(ep_modify__evds_removed__with_their_queues),
		ep_test(ep_modify__named_attributes__none_or_refused),
		ep_test(ep_modify__zone_changed_under_a_receive__local_protection),
		ep_test(ep_modify__receives_posted__stay_and_use_the_new_evd),
		ep_test(ep_modify__recv_flags_with_receives_posted__invalid_state),
		ep_test(ep_modify__receive_queue_size__counts_at_once),
		ep_test(ep_modify__request_queue_size__counts_at_once),
		ep_test(ep_modify__then_reset__parameters_kept),
		ep_test(ep_modify__provider_made__configured_and_accepted),
	};

	return cmocka_run_group_tests_name("ep_modify", tests, NULL, NULL);
}
