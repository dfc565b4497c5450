// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_create: the state of a new endpoint, defaults, given attributes, and which objects are in
 * use.
 */
#include "ep_lab.h"

static void open_unconnected(struct ep_lab *lab)
{
	ep_lab_open(lab, DAT_EP_STATE_UNCONNECTED);
}

/* EP-CREATE-01 EP-CREATE-02 EP-CREATE-03 EP-CREATE-04 EP-CREATE-05 EP-CREATE-06 EP-GEN-11 */
static void ep_create__zone_and_evds__unconnected_idle_without_events(void **state)
{
	struct ep_lab *lab = *state;
	DAT_BOOLEAN recv_idle = DAT_FALSE, request_idle = DAT_FALSE;
	DAT_CONTEXT context = {.as_64 = 1};
	DAT_HANDLE_TYPE type;
	DAT_EP_STATE ep_state;
	DAT_EP_PARAM param;

	open_unconnected(lab);
	dt_ok(dat_ep_get_status(lab->ep.ep, &ep_state, &recv_idle, &request_idle));
	assert_int_equal(ep_state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(recv_idle, DAT_TRUE);
	assert_int_equal(request_idle, DAT_TRUE);
	ep_lab_no_events(lab);
	param = ep_query(lab->ep.ep);
	assert_ptr_equal(param.ia_handle, lab->ia.ia);
	assert_ptr_equal(param.pz_handle, lab->ia.pz);
	assert_ptr_equal(param.recv_evd_handle, lab->ep.recv);
	assert_ptr_equal(param.request_evd_handle, lab->ep.request);
	assert_ptr_equal(param.connect_evd_handle, lab->ep.conn);
	assert_ptr_equal(param.srq_handle, DAT_HANDLE_NULL);
	dt_ok(dat_get_handle_type(lab->ep.ep, &type));
	assert_int_equal(type, DAT_HANDLE_TYPE_EP);
	dt_ok(dat_get_consumer_context(lab->ep.ep, &context));
	assert_int_equal(context.as_64, 0);
}

static void check_defaults(struct ep_lab *lab, const DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *limit = &lab->ia.attr;

	assert_int_equal(attr->service_type, DAT_SERVICE_TYPE_RC);
	assert_int_equal(attr->qos, DAT_QOS_BEST_EFFORT);
	assert_true(attr->max_message_size == limit->max_message_size);
	assert_true(attr->max_rdma_size == limit->max_rdma_size);
	assert_int_equal(attr->recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	assert_int_equal(attr->request_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	assert_int_equal(attr->ep_transport_specific_count, 0);
	assert_int_equal(attr->ep_provider_specific_count, 0);
	assert_in_range(attr->max_recv_iov, 4, limit->max_iov_segments_per_dto);
	assert_in_range(attr->max_request_iov, 4, limit->max_iov_segments_per_dto);
	assert_in_range(attr->max_rdma_read_in, 8, limit->max_rdma_read_per_ep_in);
	assert_in_range(attr->max_rdma_read_out, 8, limit->max_rdma_read_per_ep_out);
	assert_in_range(attr->max_rdma_read_iov, 1, limit->max_iov_segments_per_rdma_read);
	assert_in_range(attr->max_rdma_write_iov, 1, limit->max_iov_segments_per_rdma_write);
	assert_int_equal(attr->srq_soft_hw, DAT_HW_DEFAULT);
}

/* EP-CREATE-29 EP-CREATE-30 EP-CREATE-31 EP-CREATE-32 EP-CREATE-33 EP-CREATE-34 EP-CREATE-81 */
static void ep_create__no_attributes__defaults(void **state)
{
	struct ep_lab *lab = *state;

	open_unconnected(lab);
	for (int bits = 0; bits < 4; bits++) {
		DAT_EVD_HANDLE recv = bits & 1 ? lab->ep.recv : DAT_HANDLE_NULL;
		DAT_EVD_HANDLE request = bits & 2 ? lab->ep.request : DAT_HANDLE_NULL;
		DAT_EP_HANDLE ep;
		DAT_EP_ATTR attr;

		dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, recv, request, lab->ep.conn, NULL,
				    &ep));
		attr = ep_query(ep).ep_attr;
		check_defaults(lab, &attr);
		if (recv)
			assert_in_range(attr.max_recv_dtos, 16, lab->ia.attr.max_dto_per_ep);
		else
			assert_int_equal(attr.max_recv_dtos, 0);
		if (request)
			assert_in_range(attr.max_request_dtos, 16, lab->ia.attr.max_dto_per_ep);
		else
			assert_int_equal(attr.max_request_dtos, 0);
	}
}

/* EP-CREATE-07 EP-CREATE-13 EP-CREATE-14 EP-CREATE-15 EP-CREATE-78: with each of them missing */
static void ep_create__zone_or_evd_missing__accepted(void **state)
{
	struct ep_lab *lab = *state;

	open_unconnected(lab);
	for (int bits = 0; bits < 16; bits++) {
		DAT_PZ_HANDLE pz = bits & 1 ? lab->ia.pz : DAT_HANDLE_NULL;
		DAT_EVD_HANDLE recv = bits & 2 ? lab->ep.recv : DAT_HANDLE_NULL;
		DAT_EVD_HANDLE request = bits & 4 ? lab->ep.request : DAT_HANDLE_NULL;
		DAT_EVD_HANDLE conn = bits & 8 ? lab->ep.conn : DAT_HANDLE_NULL;
		DAT_EP_HANDLE ep;
		DAT_EP_PARAM param;

		dt_ok(dat_ep_create(lab->ia.ia, pz, recv, request, conn, NULL, &ep));
		param = ep_query(ep);
		assert_ptr_equal(param.pz_handle, pz);
		assert_ptr_equal(param.recv_evd_handle, recv);
		assert_ptr_equal(param.request_evd_handle, request);
		assert_ptr_equal(param.connect_evd_handle, conn);
		assert_int_equal(dt_ep_state(ep), DAT_EP_STATE_UNCONNECTED);
		dt_ok(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
		dt_ok(dat_ep_free(ep));
	}
}

/* EP-CREATE-15 EP-CREATE-07: set later; then the endpoint connects */
static void ep_create__zone_and_connect_evd_set_later__connects(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_PARAM param;

	open_unconnected(lab);
	dt_ok(dat_ep_free(lab->ep.ep));
	dt_ok(dat_ep_create(lab->ia.ia, DAT_HANDLE_NULL, lab->ep.recv, lab->ep.request,
			    DAT_HANDLE_NULL, NULL, &lab->ep.ep));
	memset(&param, 0, sizeof(param));
	param.pz_handle = lab->ia.pz;
	param.connect_evd_handle = lab->ep.conn;
	dt_ok(dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			    &param));
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
	ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
}

/* EP-CREATE-09 EP-CREATE-10 EP-CREATE-12 EP-CREATE-35: all four kinds, each reported on its EVD */
static void ep_create__default_endpoint__every_transfer_on_its_evd(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	dt_fill(lab->buf.p, 256, 1);
	dt_ok(ep_recv(lab->peer.ep, &lab->buf, 1024, 256, 1));
	dt_ok(ep_recv(lab->ep.ep, &lab->buf, 2048, 256, 2));
	dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 256, 3));
	dt_ok(ep_write(lab->ep.ep, &lab->buf, 0, &lab->buf, 3072, 256, 4));
	dt_ok(ep_read(lab->ep.ep, &lab->buf, 4096, &lab->buf, 0, 256, 5));
	dt_ok(ep_send(lab->peer.ep, &lab->buf, 0, 256, 6));
	for (uint64_t cookie = 3; cookie <= 5; cookie++)
		dt_expect_dto(lab->ep.request, lab->ep.ep, cookie, DAT_DTO_SUCCESS, 256);
	dt_expect_dto(lab->ep.recv, lab->ep.ep, 2, DAT_DTO_SUCCESS, 256);
	dt_expect_dto(lab->peer.recv, lab->peer.ep, 1, DAT_DTO_SUCCESS, 256);
	dt_expect_dto(lab->peer.request, lab->peer.ep, 6, DAT_DTO_SUCCESS, 256);
	for (size_t offset = 1024; offset <= 4096; offset += 1024)
		dt_check_pattern(lab->buf.p + offset, 256, 1);
	ep_unlink(&lab->ep, &lab->peer);
	ep_lab_no_events(lab);
}

/* EP-CREATE-16 EP-CREATE-17 EP-CREATE-18: two endpoints, one EVD for all streams */
static void ep_create__one_evd_for_all__events_name_their_endpoint(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EVD_HANDLE evd;
	struct dt_ep a, b;
	int seen[2][2] = {{0, 0}, {0, 0}};

	open_unconnected(lab);
	evd = dt_evd_create(&lab->ia, 64, DAT_EVD_DTO_FLAG);
	a = (struct dt_ep){.recv = evd, .request = evd, .conn = lab->ep.conn};
	b = (struct dt_ep){.recv = evd, .request = evd, .conn = lab->peer.conn};
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, evd, evd, a.conn, NULL, &a.ep));
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, evd, evd, b.conn, NULL, &b.ep));
	dt_ep_link(&lab->ia, &a, &b);
	dt_ok(ep_recv_empty(a.ep, 0));
	dt_ok(ep_recv_empty(b.ep, 0));
	dt_ok(ep_send_empty(a.ep, 1));
	dt_ok(ep_send_empty(b.ep, 1));
	for (int i = 0; i < 4; i++) {
		DAT_EVENT event = dt_event(evd);
		DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(dto->status, DAT_DTO_SUCCESS);
		assert_true(dto->ep_handle == a.ep || dto->ep_handle == b.ep);
		assert_in_range(dto->user_cookie.as_64, 0, 1);
		seen[dto->ep_handle == b.ep][dto->user_cookie.as_64]++;
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(seen[i / 2][i % 2], 1);
	dt_no_event(evd);
}

/* EP-CREATE-36 EP-CREATE-37 EP-CREATE-39 EP-CREATE-47 EP-CREATE-81 */
static void ep_create__attributes_given__stored_unchanged(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR given, requested, got;
	struct dt_ep ep;

	open_unconnected(lab);
	dt_ep_attr(&lab->ia, &given);
	given.max_message_size = 12345;
	given.max_rdma_size = 54321;
	given.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	given.request_completion_flags =
		DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SUPPRESS_FLAG;
	given.max_recv_dtos = 17;
	given.max_request_dtos = 23;
	given.max_recv_iov = 3;
	given.max_request_iov = 2;
	given.max_rdma_read_in = 0;
	given.max_rdma_read_out = 0;
	given.max_rdma_read_iov = 1;
	given.max_rdma_write_iov = 2;
	given.srq_soft_hw = 5;
	requested = given;
	dt_ep_create(&lab->ia, lab->ia.pz, &given, &ep);
	memset(&given, 0xff, sizeof(given));
	got = ep_query(ep.ep).ep_attr;
	assert_true(got.max_message_size == requested.max_message_size);
	assert_true(got.max_rdma_size == requested.max_rdma_size);
	assert_int_equal(got.service_type, requested.service_type);
	assert_int_equal(got.qos, requested.qos);
	assert_int_equal(got.recv_completion_flags, requested.recv_completion_flags);
	assert_int_equal(got.request_completion_flags, requested.request_completion_flags);
	assert_int_equal(got.max_recv_dtos, 17);
	assert_int_equal(got.max_request_dtos, 23);
	assert_int_equal(got.max_recv_iov, 3);
	assert_int_equal(got.max_request_iov, 2);
	assert_int_equal(got.max_rdma_read_in, 0);
	assert_int_equal(got.max_rdma_read_out, 0);
	assert_int_equal(got.max_rdma_read_iov, 1);
	assert_int_equal(got.max_rdma_write_iov, 2);
	assert_int_equal(got.srq_soft_hw, DAT_HW_DEFAULT);
}

/* EP-CREATE-81: any value of the field, which has no meaning here */
static void ep_create__srq_soft_hw__ignored(void **state)
{
	static const DAT_COUNT values[] = {0, -1, 1, INT32_MAX, INT32_MIN, -7};
	struct ep_lab *lab = *state;
	struct dt_ep ep;

	open_unconnected(lab);
	for (size_t i = 0; i < COUNT_OF(values); i++) {
		DAT_EP_ATTR attr;

		dt_ep_attr(&lab->ia, &attr);
		attr.srq_soft_hw = values[i];
		dt_ep_create(&lab->ia, lab->ia.pz, &attr, &ep);
		assert_int_equal(ep_query(ep.ep).ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
		dt_ep_free(&ep);
	}
}

/* EP-CREATE-38: the zeros of dtest; writes of two segments work too */
static void ep_create__zero_sizes_and_rdma_iov__defaults_apply(void **state)
{
	struct ep_lab *lab = *state;
	DAT_LMR_TRIPLET segs[2];
	DAT_RMR_TRIPLET remote;
	DAT_EP_ATTR attr, got;
	struct dt_ia probe;

	dt_ia_open(&probe);
	dt_ep_attr(&probe, &attr);
	dt_ia_close(&probe);
	attr.max_message_size = 0;
	attr.max_rdma_size = 0;
	attr.max_rdma_read_iov = 0;
	attr.max_rdma_write_iov = 0;
	ep_lab_open_with(lab, DAT_EP_STATE_CONNECTED, &attr);
	got = ep_query(lab->ep.ep).ep_attr;
	assert_true(got.max_message_size == lab->ia.attr.max_message_size);
	assert_true(got.max_rdma_size == lab->ia.attr.max_rdma_size);
	assert_true(got.max_rdma_read_iov > 0);
	assert_true(got.max_rdma_write_iov > 1);
	dt_fill(lab->buf.p, 512, 3);
	segs[0] = dt_seg(&lab->buf, 0, 256);
	segs[1] = dt_seg(&lab->buf, 256, 256);
	remote = dt_rseg(&lab->buf, 8192, 512);
	dt_ok(dat_ep_post_rdma_write(lab->ep.ep, 2, segs, dt_cookie(1), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(lab->ep.request, lab->ep.ep, 1, DAT_DTO_SUCCESS, 512);
	dt_check_pattern(lab->buf.p + 8192, 512, 3);
	dt_ok(ep_read(lab->ep.ep, &lab->buf, 16384, &lab->buf, 0, 512, 2));
	dt_expect_dto(lab->ep.request, lab->ep.ep, 2, DAT_DTO_SUCCESS, 512);
	dt_check_pattern(lab->buf.p + 16384, 512, 3);
	ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
}

/* EP-CREATE-39: an endpoint without outgoing RDMA Reads cannot post one */
static void ep_create__zero_rdma_reads__explicit(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_ia probe;
	DAT_EP_ATTR attr;

	dt_ia_open(&probe);
	dt_ep_attr(&probe, &attr);
	dt_ia_close(&probe);
	attr.max_rdma_read_in = 0;
	attr.max_rdma_read_out = 0;
	ep_lab_open_with(lab, DAT_EP_STATE_CONNECTED, &attr);
	assert_int_equal(ep_query(lab->ep.ep).ep_attr.max_rdma_read_in, 0);
	assert_int_equal(ep_query(lab->ep.ep).ep_attr.max_rdma_read_out, 0);
	dt_fails_with(ep_read(lab->ep.ep, &lab->buf, 0, &lab->buf, 4096, 64, 1),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS);
	ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
}

/* EP-CREATE-68 */
static void ep_create__no_named_attributes__pointer_ignored(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr;
	struct dt_ep ep;

	open_unconnected(lab);
	dt_ep_attr(&lab->ia, &attr);
	attr.ep_transport_specific = (DAT_NAMED_ATTR *)(uintptr_t)0x11;
	attr.ep_provider_specific = (DAT_NAMED_ATTR *)(uintptr_t)0x13;
	dt_ep_create(&lab->ia, lab->ia.pz, &attr, &ep);
	dt_ok(dat_ep_free(ep.ep));
}

/* EP-CREATE-82: the attributes that NetPIPE requests */
static void ep_create__huge_sizes_and_20000_dtos__accepted(void **state)
{
	struct ep_lab *lab = *state;
	DAT_EP_ATTR attr;
	struct dt_ep ep;

	open_unconnected(lab);
	assert_true(lab->ia.attr.max_message_size >= 2147483648u);
	assert_true(lab->ia.attr.max_rdma_size >= 2147483648u);
	assert_true(lab->ia.attr.max_dto_per_ep >= 20000);
	dt_ep_attr(&lab->ia, &attr);
	attr.max_message_size = 2147483648u;
	attr.max_rdma_size = 2147483648u;
	attr.max_recv_dtos = 20000;
	attr.max_request_dtos = 20000;
	dt_ep_create(&lab->ia, lab->ia.pz, &attr, &ep);
	for (uint64_t i = 0; i < 20000; i++)
		dt_ok(ep_recv_empty(ep.ep, i));
	dt_fails_with(ep_recv_empty(ep.ep, 0), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
}

/* EP-CREATE-76 EP-FREE-24 EP-FREE-25 */
static void ep_create__objects_of_an_endpoint__in_use_until_it_is_freed(void **state)
{
	struct ep_lab *lab = *state;
	DAT_PZ_HANDLE pz;
	struct dt_ep ep;

	open_unconnected(lab);
	dt_ok(dat_pz_create(lab->ia.ia, &pz));
	dt_ep_create(&lab->ia, pz, NULL, &ep);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	dt_fails_with(dat_evd_free(ep.recv), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_fails_with(dat_evd_free(ep.request), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_fails_with(dat_evd_free(ep.conn), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	dt_ok(dat_ep_free(ep.ep));
	dt_ok(dat_pz_free(pz));
	dt_ok(dat_evd_free(ep.recv));
	dt_ok(dat_evd_free(ep.request));
	dt_ok(dat_evd_free(ep.conn));
}

/* EP-CREATE-77 EP-CREATE-79: connect, duplicate, accept and reserve, each of a new endpoint */
static void ep_create__each_use__reaches_connected(void **state)
{
	struct ep_lab *lab = *state;
	struct dt_listener listener;
	struct dt_ep ep[4];

	open_unconnected(lab);
	for (int i = 0; i < 4; i++)
		dt_ep_create(&lab->ia, lab->ia.pz, NULL, &ep[i]);
	dt_listen(&lab->ia, &listener);
	dt_connect(&lab->ia, ep[0].ep, listener.qual);
	dt_ok(dat_cr_accept(dt_request(&listener), ep[1].ep, 0, NULL));
	dt_expect_conn(ep[0].conn, ep[0].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(ep[1].conn, ep[1].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_dup_connect(ep[2].ep, ep[0].ep, DAT_TIMEOUT_INFINITE, 0, NULL,
				 DAT_QOS_BEST_EFFORT));
	dt_ok(dat_cr_accept(dt_request(&listener), ep[3].ep, 0, NULL));
	dt_expect_conn(ep[2].conn, ep[2].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(ep[3].conn, ep[3].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	lab->qual = ep_reserve(&lab->ia, lab->ep.ep, lab->sp_evd, &lab->rsp);
	dt_connect(&lab->ia, lab->peer.ep, lab->qual);
	dt_ok(dat_cr_accept(ep_next_request(lab->sp_evd), DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	ep_check_traffic(&ep[0], &ep[1], &lab->buf);
	ep_check_traffic(&ep[2], &ep[3], &lab->buf);
	ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
}

/* EP-CREATE-79: an endpoint that reuses the resources of a freed, connected one */
static void ep_create__after_a_connected_one_was_freed__connects(void **state)
{
	struct ep_lab *lab = *state;

	ep_lab_open(lab, DAT_EP_STATE_CONNECTED);
	for (int i = 0; i < 10; i++) {
		dt_ep_free(&lab->ep);
		dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ep_free(&lab->peer);
		dt_ep_create(&lab->ia, lab->ia.pz, NULL, &lab->ep);
		dt_ep_create(&lab->ia, lab->ia.pz, NULL, &lab->peer);
		dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
		ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
	}
}

#define THREADS 4

static void *create_many(void *arg)
{
	struct ep_lab *lab = arg;

	for (int i = 0; i < 50; i++) {
		DAT_EP_HANDLE ep;

		if (dat_ep_create(lab->ia.ia, lab->ia.pz, lab->ep.recv, lab->ep.request,
				  lab->ep.conn, NULL, &ep) ||
		    dat_ep_free(ep))
			return lab;
	}
	return NULL;
}

/* EP-CREATE-80 EP-FREE-27 */
static void ep_create__several_threads__all_succeed(void **state)
{
	struct ep_lab *lab = *state;
	pthread_t threads[THREADS];

	open_unconnected(lab);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create_many, lab), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	dt_ep_free(&lab->ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ep_test(ep_create__zone_and_evds__unconnected_idle_without_events),
		ep_test(ep_create__no_attributes__defaults),
		ep_test(ep_create__zone_or_evd_missing__accepted),
		ep_test(ep_create__zone_and_connect_evd_set_later__connects),
		ep_test(ep_create__default_endpoint__every_transfer_on_its_evd),
		ep_test(ep_create__one_evd_for_all__events_name_their_endpoint),
		ep_test(ep_create__attributes_given__stored_unchanged),
		ep_test(ep_create__srq_soft_hw__ignored),
		ep_test(ep_create__zero_sizes_and_rdma_iov__defaults_apply),
		ep_test(ep_create__zero_rdma_reads__explicit),
		ep_test(ep_create__no_named_attributes__pointer_ignored),
		ep_test(ep_create__huge_sizes_and_20000_dtos__accepted),
		ep_test(ep_create__objects_of_an_endpoint__in_use_until_it_is_freed),
		ep_test(ep_create__each_use__reaches_connected),
		ep_test(ep_create__after_a_connected_one_was_freed__connects),
		ep_test(ep_create__several_threads__all_succeed),
	};

	return cmocka_run_group_tests_name("ep_create", tests, NULL, NULL);
}
