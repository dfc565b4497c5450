// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_create: wrong handles, wrong attributes one at a time, and accepted completion flags. */
#include "ep_lab.h"

static DAT_RETURN create(struct ep_lab *lab, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			 DAT_EVD_HANDLE request, DAT_EVD_HANDLE conn, const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep;
	DAT_RETURN ret = dat_ep_create(lab->ia.ia, pz, recv, request, conn, attr, &ep);

	if (ret == DAT_SUCCESS)
		dt_ok(dat_ep_free(ep));
	return ret;
}

static DAT_RETURN create_with(struct ep_lab *lab, const DAT_EP_ATTR *attr)
{
	return create(lab, lab->ia.pz, lab->ep.recv, lab->ep.request, lab->ep.conn, attr);
}

enum place { ZONE, RECV_EVD, REQUEST_EVD, CONNECT_EVD, PLACES };

/* Creates an endpoint with a bad handle in that place; the subtype must name the place. */
static void check_bad_handle(struct ep_lab *lab, enum place place, DAT_HANDLE bad)
{
	static const DAT_RETURN_SUBTYPE subtypes[] = {
		[ZONE] = DAT_INVALID_HANDLE_PZ,
		[RECV_EVD] = DAT_INVALID_HANDLE_EVD_RECV,
		[REQUEST_EVD] = DAT_INVALID_HANDLE_EVD_REQUEST,
		[CONNECT_EVD] = DAT_INVALID_HANDLE_EVD_CONN,
	};
	DAT_HANDLE in[] = {lab->ia.pz, lab->ep.recv, lab->ep.request, lab->ep.conn};

	in[place] = bad;
	dt_fails_with(create(lab, in[0], in[1], in[2], in[3], NULL), DAT_INVALID_HANDLE,
		      subtypes[place]);
}

/* EP-CREATE-20 EP-CREATE-21 EP-CREATE-22 EP-CREATE-23 EP-GEN-02 EP-GEN-03 EP-GEN-04 */
static void ep_create__bad_handle_in_each_place__invalid_handle(void **state)
{
	struct ep_lab *lab = *state;
	DAT_PZ_HANDLE dead_pz;
	DAT_EVD_HANDLE dead_evd;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_pz_create(lab->ia.ia, &dead_pz));
	dt_ok(dat_pz_free(dead_pz));
	dead_evd = dt_evd_create(&lab->ia, 4, DAT_EVD_DEFAULT_FLAG);
	dt_ok(dat_evd_free(dead_evd));

	const DAT_HANDLE bad[] = {dead_evd,	 dead_pz,    DT_NEVER_A_HANDLE,
				  (DAT_HANDLE)1, lab->ia.ia, lab->ep.ep};

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		for (enum place place = ZONE; place < PLACES; place++)
			check_bad_handle(lab, place, bad[i]);
	check_bad_handle(lab, ZONE, lab->ep.recv);
	check_bad_handle(lab, RECV_EVD, lab->ia.pz);
	/* the refused calls keep no reference */
	dt_ep_free(&lab->ep);
}

/* EP-CREATE-19 EP-CREATE-28 */
static void ep_create__bad_ia_or_output__refused(void **state)
{
	struct ep_lab *lab = *state;
	DAT_IA_HANDLE closed;
	DAT_EP_HANDLE ep;
	struct dt_ia other;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ia_open(&other);
	closed = other.ia;
	dt_ia_close(&other);

	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, closed, lab->ia.pz, lab->ep.recv,
				  DT_NEVER_A_HANDLE};

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		dt_fails_with(dat_ep_create(bad[i], lab->ia.pz, lab->ep.recv, lab->ep.request,
					    lab->ep.conn, NULL, &ep),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_ep_create(lab->ia.ia, lab->ia.pz, lab->ep.recv, lab->ep.request,
				    lab->ep.conn, NULL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
}

/* EP-CREATE-24 EP-CREATE-25 EP-CREATE-26: each EVD lacks only the flag in question */
static void ep_create__evd_without_stream_flag__invalid_handle(void **state)
{
	struct ep_lab *lab = *state;
	const unsigned int all = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	DAT_EVD_HANDLE no_dto, no_conn;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	no_dto = dt_evd_create(&lab->ia, 8, all & ~(unsigned int)DAT_EVD_DTO_FLAG);
	no_conn = dt_evd_create(&lab->ia, 8, all & ~(unsigned int)DAT_EVD_CONNECTION_FLAG);
	check_bad_handle(lab, RECV_EVD, no_dto);
	check_bad_handle(lab, REQUEST_EVD, no_dto);
	check_bad_handle(lab, CONNECT_EVD, no_conn);
}

/* EP-CREATE-27 */
static void ep_create__object_of_another_instance__invalid_handle(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EVD_HANDLE evd;
	struct dt_ia other;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ia_open(&other);
	evd = dt_evd_create(&other, 64, DAT_EVD_DEFAULT_FLAG);
	for (enum place place = ZONE; place < PLACES; place++)
		check_bad_handle(lab, place, place == ZONE ? other.pz : evd);
	dt_ok(dat_evd_free(evd));
	dt_ia_close(&other);
}

/* --- counts and sizes --- */

#define FIELD(name) offsetof(DAT_EP_ATTR, name)

struct count_field {
	size_t attr;
	size_t limit; /* in DAT_IA_ATTR */
	bool is_zero_refused;
};

static const struct count_field counts[] = {
	{FIELD(max_recv_dtos), offsetof(DAT_IA_ATTR, max_dto_per_ep), true},
	{FIELD(max_request_dtos), offsetof(DAT_IA_ATTR, max_dto_per_ep), true},
	{FIELD(max_recv_iov), offsetof(DAT_IA_ATTR, max_iov_segments_per_dto), true},
	{FIELD(max_request_iov), offsetof(DAT_IA_ATTR, max_iov_segments_per_dto), true},
	{FIELD(max_rdma_read_in), offsetof(DAT_IA_ATTR, max_rdma_read_per_ep_in), false},
	{FIELD(max_rdma_read_out), offsetof(DAT_IA_ATTR, max_rdma_read_per_ep_out), false},
	{FIELD(max_rdma_read_iov), offsetof(DAT_IA_ATTR, max_iov_segments_per_rdma_read), false},
	{FIELD(max_rdma_write_iov), offsetof(DAT_IA_ATTR, max_iov_segments_per_rdma_write), false},
};

static DAT_RETURN create_with_count(struct ep_lab *lab, size_t field, DAT_COUNT value)
{
	DAT_EP_ATTR attr;

	dt_ep_attr(&lab->ia, &attr);
	memcpy((char *)&attr + field, &value, sizeof(value));
	return create_with(lab, &attr);
}

/* EP-CREATE-42 EP-CREATE-43 EP-CREATE-45 EP-CREATE-46 EP-CREATE-47 EP-CREATE-50 EP-CREATE-51
 * EP-CREATE-52 EP-CREATE-53 EP-CREATE-54 EP-CREATE-55 EP-CREATE-56 EP-CREATE-57 EP-CREATE-39 */
static void ep_create__counts_at_and_beyond_their_limits__accepted_or_refused(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		DAT_COUNT limit;

		memcpy(&limit, (char *)&lab->ia.attr + counts[i].limit, sizeof(limit));
		dt_ok(create_with_count(lab, counts[i].attr, 1));
		dt_ok(create_with_count(lab, counts[i].attr, limit));
		if (limit < INT32_MAX)
			dt_fails_with(create_with_count(lab, counts[i].attr, limit + 1),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
		dt_fails_with(create_with_count(lab, counts[i].attr, -1), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG6);
		dt_fails_with(create_with_count(lab, counts[i].attr, INT32_MIN),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
		if (counts[i].is_zero_refused)
			dt_fails_with(create_with_count(lab, counts[i].attr, 0),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
		else
			dt_ok(create_with_count(lab, counts[i].attr, 0));
	}
	dt_fails_with(create_with_count(lab, FIELD(ep_transport_specific_count), -1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(create_with_count(lab, FIELD(ep_provider_specific_count), -1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
}

/* EP-CREATE-48 EP-CREATE-49 */
static void ep_create__sizes_beyond_their_limits__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ep_attr(&lab->ia, &attr);
	attr.max_message_size = lab->ia.attr.max_message_size;
	attr.max_rdma_size = lab->ia.attr.max_rdma_size;
	dt_ok(create_with(lab, &attr));
	if (lab->ia.attr.max_message_size < UINT64_MAX) {
		attr.max_message_size++;
		dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
		attr.max_message_size--;
	}
	if (lab->ia.attr.max_rdma_size < UINT64_MAX) {
		attr.max_rdma_size++;
		dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
}

/*
 * EP-CREATE-41 EP-CREATE-42 EP-CREATE-44 EP-CREATE-45: an EVD and the size of its queue must match
 */
static void ep_create__queue_without_evd_or_reverse__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr, no_recv, no_request;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ep_attr(&lab->ia, &attr);
	no_recv = attr;
	no_recv.max_recv_dtos = 0;
	no_request = attr;
	no_request.max_request_dtos = 0;
	dt_fails_with(
		create(lab, lab->ia.pz, DAT_HANDLE_NULL, lab->ep.request, lab->ep.conn, &attr),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(create(lab, lab->ia.pz, lab->ep.recv, DAT_HANDLE_NULL, lab->ep.conn, &attr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(create_with(lab, &no_recv), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(create_with(lab, &no_request), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_ok(create(lab, lab->ia.pz, DAT_HANDLE_NULL, lab->ep.request, lab->ep.conn, &no_recv));
	dt_ok(create(lab, lab->ia.pz, lab->ep.recv, DAT_HANDLE_NULL, lab->ep.conn, &no_request));
}

/* --- service type, qos, named attributes --- */

/* EP-CREATE-40 EP-CREATE-58 EP-CREATE-59 EP-CREATE-70 */
static void ep_create__service_type_and_qos__accepted_or_refused(void **state)
{
	static const unsigned int bad_qos[] = {0x10, 0x11, 0x80000000, 0x20};
	static const DAT_QOS qos[] = {DAT_QOS_HIGH_THROUGHPUT, DAT_QOS_LOW_LATENCY, DAT_QOS_ECONOMY,
				      DAT_QOS_PREMIUM};
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ep_attr(&lab->ia, &attr);
	attr.service_type = (DAT_SERVICE_TYPE)1;
	dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_ep_attr(&lab->ia, &attr);
	for (size_t i = 0; i < COUNT_OF(bad_qos); i++) {
		attr.qos = (DAT_QOS)bad_qos[i];
		dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
	for (size_t i = 0; i < COUNT_OF(qos); i++) {
		attr.qos = qos[i];
		if (lab->ia.provider.dat_qos_supported & qos[i])
			dt_ok(create_with(lab, &attr));
		else
			dt_fails(create_with(lab, &attr), DAT_MODEL_NOT_SUPPORTED);
	}
}

/* EP-CREATE-67 */
static void ep_create__unknown_named_attributes__invalid_parameter(void **state)
{
	struct ep_lab *lab = *state;
	DAT_NAMED_ATTR named = {"no_such_attribute", "1"};
	DAT_EP_ATTR attr;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	for (int is_null = 0; is_null < 2; is_null++) {
		dt_ep_attr(&lab->ia, &attr);
		attr.ep_transport_specific_count = 1;
		attr.ep_transport_specific = is_null ? NULL : &named;
		dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
		dt_ep_attr(&lab->ia, &attr);
		attr.ep_provider_specific_count = 1;
		attr.ep_provider_specific = is_null ? NULL : &named;
		dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
}

/* --- completion flags --- */

#define SUPPRESS DAT_COMPLETION_SUPPRESS_FLAG
#define SOLICITED DAT_COMPLETION_SOLICITED_WAIT_FLAG
#define UNSIGNALLED DAT_COMPLETION_UNSIGNALLED_FLAG
#define FENCE DAT_COMPLETION_BARRIER_FENCE_FLAG
#define THRESHOLD DAT_COMPLETION_EVD_THRESHOLD_FLAG

/* EP-CREATE-60 EP-CREATE-61 EP-CREATE-62: every combination of five bits, and an undefined one */
static void ep_create__recv_completion_flags__exactly_one_of_four(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_free(lab->ep.ep)); /* its flags would restrict the EVDs */
	dt_ep_attr(&lab->ia, &attr);
	for (unsigned int flags = 0; flags < 0x40; flags++) {
		bool is_good = flags == 0 || flags == UNSIGNALLED || flags == SOLICITED ||
			       flags == THRESHOLD;

		attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)flags;
		if (is_good)
			dt_ok(create_with(lab, &attr));
		else
			dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER,
				      DAT_INVALID_ARG6);
	}
}

/* EP-CREATE-63 EP-CREATE-65 */
static void ep_create__request_completion_flags__one_class_and_optional_bits(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr;

	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_ep_attr(&lab->ia, &attr);
	for (unsigned int flags = 0; flags < 0x40; flags++) {
		bool is_good = flags < 0x20 &&
			       (flags & (UNSIGNALLED | THRESHOLD)) != (UNSIGNALLED | THRESHOLD);

		attr.request_completion_flags = (DAT_COMPLETION_FLAGS)flags;
		if (is_good)
			dt_ok(create_with(lab, &attr));
		else
			dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER,
				      DAT_INVALID_ARG6);
	}
	attr.request_completion_flags = (DAT_COMPLETION_FLAGS)0x80000000u;
	dt_fails_with(create_with(lab, &attr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
}

/* EP-CREATE-66: a threshold above one, as with the threshold flag */
static void ep_create__default_flags__threshold_class(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_ia probe;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ia_open(&probe);
	dt_ep_attr(&probe, &attr);
	dt_ia_close(&probe);
	attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	ep_lab_open_with(lab, DAT_EP_STATE_CONNECTED, &attr);
	for (uint64_t i = 0; i < 2; i++) {
		dt_ok(ep_recv_empty(lab->ep.ep, i));
		dt_ok(ep_recv_empty(lab->peer.ep, i));
		dt_ok(ep_send_empty(lab->ep.ep, i));
		dt_ok(ep_send_empty(lab->peer.ep, i));
	}
	dt_ok(dat_evd_wait(lab->ep.recv, DT_WAIT_US, 2, &event, &nmore));
	dt_ok(dat_evd_wait(lab->ep.request, DT_WAIT_US, 2, &event, &nmore));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_create__bad_handle_in_each_place__invalid_handle),
		ep_test(ep_create__bad_ia_or_output__refused),
		ep_test(ep_create__evd_without_stream_flag__invalid_handle),
		ep_test(ep_create__object_of_another_instance__invalid_handle),
		ep_test(ep_create__counts_at_and_beyond_their_limits__accepted_or_refused),
		ep_test(ep_create__sizes_beyond_their_limits__invalid_parameter),
		ep_test(ep_create__queue_without_evd_or_reverse__invalid_parameter),
		ep_test(ep_create__service_type_and_qos__accepted_or_refused),
		ep_test(ep_create__unknown_named_attributes__invalid_parameter),
		ep_test(ep_create__recv_completion_flags__exactly_one_of_four),
		ep_test(ep_create__request_completion_flags__one_class_and_optional_bits),
		ep_test(ep_create__default_flags__threshold_class),
	};

	return cmocka_run_group_tests_name("ep_create_refused", tests, NULL, NULL);
}
