// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the endpoint tests; see the header. */
#include "ep_util.h"

/* --- posts --- */

DAT_RETURN ep_recv_empty(DAT_EP_HANDLE ep, uint64_t cookie)
{
	return dat_ep_post_recv(ep, 0, NULL, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN ep_send_empty(DAT_EP_HANDLE ep, uint64_t cookie)
{
	return dat_ep_post_send(ep, 0, NULL, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN ep_recv(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t offset, size_t len,
		   uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, offset, len);

	return dat_ep_post_recv(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN ep_send(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t offset, size_t len,
		   uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, offset, len);

	return dat_ep_post_send(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN ep_write(DAT_EP_HANDLE ep, const struct dt_buf *from, size_t offset,
		    const struct dt_buf *to, size_t target, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(from, offset, len);
	DAT_RMR_TRIPLET remote = dt_rseg(to, target, len);

	return dat_ep_post_rdma_write(ep, 1, &seg, dt_cookie(cookie), &remote,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN ep_read(DAT_EP_HANDLE ep, const struct dt_buf *to, size_t offset,
		   const struct dt_buf *from, size_t source, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(to, offset, len);
	DAT_RMR_TRIPLET remote = dt_rseg(from, source, len);

	return dat_ep_post_rdma_read(ep, 1, &seg, dt_cookie(cookie), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG);
}

void ep_check_traffic(struct dt_ep *a, struct dt_ep *b, const struct dt_buf *buf)
{
	buf->p[0] = 0x5a;
	buf->p[1] = 0;
	dt_ok(ep_recv(b->ep, buf, 1, 1, 0xbeef));
	dt_ok(ep_send(a->ep, buf, 0, 1, 0xfeed));
	dt_expect_dto(b->recv, b->ep, 0xbeef, DAT_DTO_SUCCESS, 1);
	dt_expect_dto(a->request, a->ep, 0xfeed, DAT_DTO_SUCCESS, 1);
	assert_int_equal(buf->p[1], 0x5a);
}

/* --- queries --- */

DAT_EP_PARAM ep_query(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param;
}

bool ep_is_recv_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN idle;

	dt_ok(dat_ep_get_status(ep, NULL, &idle, NULL));
	return idle != DAT_FALSE;
}

bool ep_is_request_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN idle;

	dt_ok(dat_ep_get_status(ep, NULL, NULL, &idle));
	return idle != DAT_FALSE;
}

void ep_check_same_config(const DAT_EP_PARAM *a, const DAT_EP_PARAM *b)
{
	assert_ptr_equal(a->ia_handle, b->ia_handle);
	assert_ptr_equal(a->pz_handle, b->pz_handle);
	assert_ptr_equal(a->recv_evd_handle, b->recv_evd_handle);
	assert_ptr_equal(a->request_evd_handle, b->request_evd_handle);
	assert_ptr_equal(a->connect_evd_handle, b->connect_evd_handle);
	assert_ptr_equal(a->srq_handle, b->srq_handle);
	assert_int_equal(a->ep_attr.service_type, b->ep_attr.service_type);
	assert_int_equal(a->ep_attr.max_message_size, b->ep_attr.max_message_size);
	assert_int_equal(a->ep_attr.max_rdma_size, b->ep_attr.max_rdma_size);
	assert_int_equal(a->ep_attr.qos, b->ep_attr.qos);
	assert_int_equal(a->ep_attr.recv_completion_flags, b->ep_attr.recv_completion_flags);
	assert_int_equal(a->ep_attr.request_completion_flags, b->ep_attr.request_completion_flags);
	assert_int_equal(a->ep_attr.max_recv_dtos, b->ep_attr.max_recv_dtos);
	assert_int_equal(a->ep_attr.max_request_dtos, b->ep_attr.max_request_dtos);
	assert_int_equal(a->ep_attr.max_recv_iov, b->ep_attr.max_recv_iov);
	assert_int_equal(a->ep_attr.max_request_iov, b->ep_attr.max_request_iov);
	assert_int_equal(a->ep_attr.max_rdma_read_in, b->ep_attr.max_rdma_read_in);
	assert_int_equal(a->ep_attr.max_rdma_read_out, b->ep_attr.max_rdma_read_out);
	assert_int_equal(a->ep_attr.srq_soft_hw, b->ep_attr.srq_soft_hw);
	assert_int_equal(a->ep_attr.max_rdma_read_iov, b->ep_attr.max_rdma_read_iov);
	assert_int_equal(a->ep_attr.max_rdma_write_iov, b->ep_attr.max_rdma_write_iov);
	assert_int_equal(a->ep_attr.ep_transport_specific_count,
			 b->ep_attr.ep_transport_specific_count);
	assert_int_equal(a->ep_attr.ep_provider_specific_count,
			 b->ep_attr.ep_provider_specific_count);
}

bool ep_is_disconnected(void *arg)
{
	return dt_ep_state(arg) == DAT_EP_STATE_DISCONNECTED;
}

/* --- service points --- */

DAT_CONN_QUAL ep_free_qual(struct dt_ia *ia)
{
	struct dt_listener listener;
	DAT_CONN_QUAL qual;

	dt_listen(ia, &listener);
	qual = listener.qual;
	dt_unlisten(&listener);
	return qual;
}

DAT_CONN_QUAL ep_reserve(struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
			 DAT_RSP_HANDLE *rsp)
{
	for (int tries = 0; tries < 100; tries++) {
		DAT_CONN_QUAL qual = ep_free_qual(ia);
		DAT_RETURN ret = dat_rsp_create(ia->ia, qual, ep, evd, rsp);

		if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
			continue; /* another process took it */
		dt_ok(ret);
		return qual;
	}
	fail();
	return 0;
}

DAT_CR_HANDLE ep_next_request(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = dt_event(evd);

	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

void ep_fail(struct dt_ia *ia, struct dt_ep *ep)
{
	struct dt_listener listener;

	dt_listen(ia, &listener);
	dt_connect(ia, ep->ep, listener.qual);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_unlisten(&listener);
}

void ep_unlink(struct dt_ep *a, struct dt_ep *b)
{
	dt_ok(dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(a->conn, a->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(b->conn, b->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}
