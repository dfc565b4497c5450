// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_modify: fields that cannot be changed, wrong values, and that a refused call changes
 * nothing.
 */
#include "ep_lab.h"

#define ATTR(name) DAT_EP_FIELD_EP_ATTR_##name

/*
 * The call is refused for its parameters and changes nothing, alone or together with a valid field.
 */
static void check_refused_for(struct ep_lab *lab, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param,
			      DAT_RETURN_SUBTYPE argument)
{
	static const DAT_EP_PARAM_MASK good[] = {0, ATTR(MAX_RDMA_SIZE), ATTR(MAX_RECV_IOV),
						 DAT_EP_FIELD_CONNECT_EVD_HANDLE,
						 DAT_EP_FIELD_PZ_HANDLE};
	DAT_EP_PARAM before = ep_query(lab->ep.ep), with = *param, after;

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		if (good[i] & mask)
			continue;
		if (good[i] == ATTR(MAX_RDMA_SIZE))
			with.ep_attr.max_rdma_size = 99;
		if (good[i] == ATTR(MAX_RECV_IOV))
			with.ep_attr.max_recv_iov = 1;
		if (good[i] == DAT_EP_FIELD_CONNECT_EVD_HANDLE)
			with.connect_evd_handle = lab->peer.conn;
		if (good[i] == DAT_EP_FIELD_PZ_HANDLE)
			with.pz_handle = DAT_HANDLE_NULL;
		dt_fails_with(dat_ep_modify(lab->ep.ep, mask | good[i], &with),
			      DAT_INVALID_PARAMETER, argument);
		after = ep_query(lab->ep.ep);
		ep_check_same_config(&before, &after);
	}
	/* no reference count has changed either */
	dt_fails_with(dat_evd_free(lab->ep.conn), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
}

static void check_refused(struct ep_lab *lab, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	check_refused_for(lab, mask, param, DAT_INVALID_ARG3);
}

/*
 * EP-MODIFY-08 EP-MODIFY-09 EP-MODIFY-10 EP-MODIFY-11 EP-MODIFY-12 EP-MODIFY-13 EP-MODIFY-14
 * EP-MODIFY-05 EP-MODIFY-03: even when the value is the current one
 */
static void ep_modify__field_that_cannot_change__invalid_parameter(void **state)
{
	static const DAT_EP_PARAM_MASK bad[] = {
		DAT_EP_FIELD_IA_HANDLE,
		DAT_EP_FIELD_EP_STATE,
		DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
		DAT_EP_FIELD_LOCAL_PORT_QUAL,
		DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR,
		DAT_EP_FIELD_REMOTE_PORT_QUAL,
		DAT_EP_FIELD_SRQ_HANDLE,
		0x800,
		0x80000000,
		UINT64_C(1) << 40,
	};
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	param = ep_query(lab->ep.ep);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_refused_for(lab, bad[i], &param, DAT_INVALID_ARG2);
}

/* EP-MODIFY-06 */
static void ep_modify__null_parameter__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_fails_with(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_PZ_HANDLE, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_ep_modify(lab->ep.ep, ATTR(QOS), NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

/* --- values --- */

struct count_field {
	DAT_EP_PARAM_MASK mask;
	size_t attr;
	size_t limit; /* in DAT_IA_ATTR */
	bool is_zero_refused;
};

#define COUNT(mask, name, limit, is_zero_refused)                                                  \
	{                                                                                          \
		ATTR(mask), offsetof(DAT_EP_PARAM, ep_attr.name), offsetof(DAT_IA_ATTR, limit),    \
			is_zero_refused                                                            \
	}

static const struct count_field counts[] = {
	COUNT(MAX_RECV_DTOS, max_recv_dtos, max_dto_per_ep, true),
	COUNT(MAX_REQUEST_DTOS, max_request_dtos, max_dto_per_ep, true),
	COUNT(MAX_RECV_IOV, max_recv_iov, max_iov_segments_per_dto, true),
	COUNT(MAX_REQUEST_IOV, max_request_iov, max_iov_segments_per_dto, true),
	COUNT(MAX_RDMA_READ_IN, max_rdma_read_in, max_rdma_read_per_ep_in, false),
	COUNT(MAX_RDMA_READ_OUT, max_rdma_read_out, max_rdma_read_per_ep_out, false),
	COUNT(MAX_RDMA_READ_IOV, max_rdma_read_iov, max_iov_segments_per_rdma_read, false),
	COUNT(MAX_RDMA_WRITE_IOV, max_rdma_write_iov, max_iov_segments_per_rdma_write, false),
};

static void check_count(struct ep_lab *lab, const struct count_field *field, DAT_COUNT value)
{
	DAT_EP_PARAM param = ep_query(lab->ep.ep);

	memcpy((char *)&param + field->attr, &value, sizeof(value));
	check_refused(lab, field->mask, &param);
}

/* EP-MODIFY-39 EP-MODIFY-45 EP-MODIFY-03 */
static void ep_modify__counts_beyond_their_limits__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		DAT_COUNT limit;

		memcpy(&limit, (char *)&lab->ia.attr + counts[i].limit, sizeof(limit));
		if (limit < INT32_MAX)
			check_count(lab, &counts[i], limit + 1);
		check_count(lab, &counts[i], -1);
		if (counts[i].is_zero_refused)
			check_count(lab, &counts[i], 0);
	}
}

/* EP-MODIFY-39 EP-MODIFY-42 EP-MODIFY-03 */
static void ep_modify__sizes_service_qos__invalid_parameter(void **state)
{
	static const unsigned int qos[] = {0x10,
					   DAT_QOS_HIGH_THROUGHPUT,
					   DAT_QOS_LOW_LATENCY,
					   DAT_QOS_ECONOMY,
					   DAT_QOS_PREMIUM,
					   0x80000000};
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	param = ep_query(lab->ep.ep);
	if (lab->ia.attr.max_message_size < UINT64_MAX) {
		param.ep_attr.max_message_size = lab->ia.attr.max_message_size + 1;
		check_refused(lab, ATTR(MAX_MESSAGE_SIZE), &param);
	}
	if (lab->ia.attr.max_rdma_size < UINT64_MAX) {
		param.ep_attr.max_rdma_size = lab->ia.attr.max_rdma_size + 1;
		check_refused(lab, ATTR(MAX_RDMA_SIZE), &param);
	}
	param.ep_attr.service_type = (DAT_SERVICE_TYPE)1;
	check_refused(lab, ATTR(SERVICE_TYPE), &param);
	for (size_t i = 0; i < COUNT_OF(qos); i++) {
		if (lab->ia.provider.dat_qos_supported & qos[i])
			continue;
		param.ep_attr.qos = (DAT_QOS)qos[i];
		check_refused(lab, ATTR(QOS), &param);
	}
}

/* EP-MODIFY-40 EP-MODIFY-41 EP-MODIFY-39: all combinations of the bits, as at creation */
static void ep_modify__completion_flags__same_rules_as_at_creation(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (unsigned int flags = 0; flags < 0x40; flags++) {
		const unsigned int unsignalled = DAT_COMPLETION_UNSIGNALLED_FLAG;
		const unsigned int threshold = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
		DAT_EP_PARAM param = ep_query(lab->ep.ep);

		param.ep_attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)flags;
		param.ep_attr.request_completion_flags = (DAT_COMPLETION_FLAGS)flags;
		if (flags == 0 || flags == unsignalled || flags == threshold ||
		    flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG) {
			dt_ok(dat_ep_modify(lab->ep.ep, ATTR(RECV_COMPLETION_FLAGS), &param));
			assert_int_equal(ep_query(lab->ep.ep).ep_attr.recv_completion_flags, flags);
		} else {
			check_refused(lab, ATTR(RECV_COMPLETION_FLAGS), &param);
		}
		if (flags < 0x20 &&
		    (flags & (unsignalled | threshold)) != (unsignalled | threshold)) {
			dt_ok(dat_ep_modify(lab->ep.ep, ATTR(REQUEST_COMPLETION_FLAGS), &param));
			assert_int_equal(ep_query(lab->ep.ep).ep_attr.request_completion_flags,
					 flags);
		} else {
			check_refused(lab, ATTR(REQUEST_COMPLETION_FLAGS), &param);
		}
	}
}

/*
 * EP-MODIFY-45: an EVD without a queue or a queue without an EVD; unselected fields do not matter
 */
static void ep_modify__evd_and_queue_do_not_match__invalid_parameter(void **state)
{
	static const DAT_EP_PARAM_MASK masks[] = {DAT_EP_FIELD_RECV_EVD_HANDLE,
						  DAT_EP_FIELD_REQUEST_EVD_HANDLE,
						  ATTR(MAX_RECV_DTOS), ATTR(MAX_REQUEST_DTOS)};
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;
	struct dt_ep bare;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	memset(&param, 0, sizeof(param));
	for (size_t i = 0; i < COUNT_OF(masks); i++)
		check_refused(lab, masks[i], &param);
	/* the reverse */
	bare = lab->ep;
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, bare.conn,
			    NULL, &lab->ep.ep));
	param.recv_evd_handle = lab->ep.recv;
	param.request_evd_handle = lab->ep.request;
	param.ep_attr.max_recv_dtos = 5;
	param.ep_attr.max_request_dtos = 5;
	for (size_t i = 0; i < COUNT_OF(masks); i++)
		check_refused(lab, masks[i], &param);
	dt_ok(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | ATTR(MAX_RECV_DTOS),
			    &param));
	dt_ok(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE | ATTR(MAX_REQUEST_DTOS),
			    &param));
}

/* EP-MODIFY-43 EP-MODIFY-03 */
static void ep_modify__bad_handles_inside__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;
	const unsigned int all = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	struct dt_ia other;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ia_open(&other);

	const DAT_HANDLE no_dto = dt_evd_create(&lab->ia, 8, all & ~(unsigned int)DAT_EVD_DTO_FLAG);
	const DAT_HANDLE no_conn =
		dt_evd_create(&lab->ia, 8, all & ~(unsigned int)DAT_EVD_CONNECTION_FLAG);
	const DAT_HANDLE foreign = dt_evd_create(&other, 64, all);
	const DAT_HANDLE freed = dt_evd_create(&lab->ia, 8, all);
	const DAT_HANDLE bad[] = {lab->ep.ep, DT_NEVER_A_HANDLE, (DAT_HANDLE)1, foreign, freed,
				  no_dto};
	DAT_EP_PARAM param = ep_query(lab->ep.ep);

	dt_ok(dat_evd_free(freed));
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		param.pz_handle = bad[i];
		param.recv_evd_handle = bad[i];
		param.request_evd_handle = bad[i];
		param.connect_evd_handle = bad[i] == no_dto ? no_conn : bad[i];
		check_refused(lab, DAT_EP_FIELD_PZ_HANDLE, &param);
		check_refused(lab, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
		check_refused(lab, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
		check_refused(lab, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param);
	}
	param.pz_handle = other.pz;
	check_refused(lab, DAT_EP_FIELD_PZ_HANDLE, &param);
	/* none of the refused EVDs is in use */
	dt_ok(dat_evd_free(no_dto));
	dt_ok(dat_evd_free(no_conn));
	dt_ok(dat_evd_free(foreign));
	dt_ia_close(&other);
}

/* EP-MODIFY-47: the rules for shared EVDs, when flags change and when the EVD changes */
static void ep_modify__streams_would_not_match__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EVD_HANDLE evd;
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	struct dt_ep ep;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	evd = dt_evd_create(&lab->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	memset(&param, 0, sizeof(param));
	param.recv_evd_handle = evd;
	param.request_evd_handle = evd;
	param.connect_evd_handle = evd;
	dt_ok(dat_ep_modify(lab->ep.ep,
			    DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE,
			    &param));
	/* unsignalled completions may share it, solicited ones may not */
	param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	dt_ok(dat_ep_modify(lab->ep.ep, ATTR(REQUEST_COMPLETION_FLAGS), &param));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	check_refused(lab, ATTR(RECV_COMPLETION_FLAGS), &param);
	/* when the same call moves the requests away, the EVD is not shared */
	param.request_evd_handle = lab->ep.request;
	dt_ok(dat_ep_modify(lab->ep.ep,
			    DAT_EP_FIELD_REQUEST_EVD_HANDLE | ATTR(RECV_COMPLETION_FLAGS), &param));
	param.request_evd_handle = evd;
	check_refused(lab, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
	check_refused(lab, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param);
	/* streams of another endpoint */
	dt_ep_attr(&lab->ia, &attr);
	dt_ep_create(&lab->ia, lab->ia.pz, &attr, &ep);
	dt_fails_with(dat_ep_modify(ep.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_ep_modify(ep.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	assert_ptr_equal(ep_query(ep.ep).recv_evd_handle, ep.recv);
	dt_ok(dat_ep_modify(ep.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | ATTR(RECV_COMPLETION_FLAGS),
			    &param));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_modify__field_that_cannot_change__invalid_parameter),
		ep_test(ep_modify__null_parameter__invalid_parameter),
		ep_test(ep_modify__counts_beyond_their_limits__invalid_parameter),
		ep_test(ep_modify__sizes_service_qos__invalid_parameter),
		ep_test(ep_modify__completion_flags__same_rules_as_at_creation),
		ep_test(ep_modify__evd_and_queue_do_not_match__invalid_parameter),
		ep_test(ep_modify__bad_handles_inside__invalid_parameter),
		ep_test(ep_modify__streams_would_not_match__invalid_parameter),
	};

	return cmocka_run_group_tests_name("ep_modify_refused", tests, NULL, NULL);
}
