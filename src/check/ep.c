// SPDX-License-Identifier: BSD-2-Clause
/* Endpoints, and what is posted to them. */
#include "check/ep.h"

#include "check/limits.h"
#include "check/object.h"
#include "check/report.h"
#include "check/trace.h"

/* Notes what completions and the size of the queue depend on. */
static void learn(struct check_object *ep)
{
	DAT_EP_PARAM param;
	struct check_object *recv_evd, *request_evd;

	if (dat_ep_query(ep->inner,
			 DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			 &param) != DAT_SUCCESS)
		return;
	recv_evd = check_outer_object(param.recv_evd_handle);
	request_evd = check_outer_object(param.request_evd_handle);
	check_lock();
	ep->life->ep.recv_evd = recv_evd;
	ep->life->ep.request_evd = request_evd;
	ep->life->ep.max_requests = param.ep_attr.max_request_dtos;
	check_unlock();
}

struct check_object *check_ep_make(const char *maker, struct check_object *ia, DAT_EP_HANDLE inner)
{
	struct check_object *ep = check_object_make(maker, ia, DAT_HANDLE_TYPE_EP, inner);

	if (ep)
		learn(ep);
	return ep;
}

void check_ep_kill(struct check_object *ep)
{
	check_lock();
	trace_wire_close_locked(ep);
	check_requests_orphan_locked(ep);
	check_object_kill_locked(ep);
	check_unlock();
}

/* ---- creation ---- */

static DAT_RETURN end_create(struct check_call *call, struct check_object *ia, DAT_RETURN ret,
			     const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep_handle)
{
	struct check_object *ep = NULL;

	if (ret == DAT_SUCCESS && ia)
		ep = check_ep_make(call->name, ia, *ep_handle);
	if (ep) {
		*ep_handle = ep;
		if (attr)
			check_limit_ep(call, ep, attr, DAT_EP_FIELD_EP_ATTR_ALL);
	}
	return check_end(call, ret);
}

DAT_RETURN check_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			   DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
			   DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			   DAT_EP_HANDLE *ep_handle)
{
	struct check_call call;
	struct check_object *ia =
		check_begin(&call, CHECK_CALL_ep_create, ia_handle, DAT_HANDLE_TYPE_IA);

	return end_create(&call, ia,
			  dat_ep_create(check_inner(ia_handle), check_inner(pz_handle),
					check_inner(recv_evd_handle),
					check_inner(request_evd_handle),
					check_inner(connect_evd_handle), ep_attributes, ep_handle),
			  ep_attributes, ep_handle);
}

DAT_RETURN check_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				    DAT_EVD_HANDLE recv_evd_handle,
				    DAT_EVD_HANDLE request_evd_handle,
				    DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				    const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	struct check_call call;
	struct check_object *ia =
		check_begin(&call, CHECK_CALL_ep_create_with_srq, ia_handle, DAT_HANDLE_TYPE_IA);

	return end_create(&call, ia,
			  dat_ep_create_with_srq(check_inner(ia_handle), check_inner(pz_handle),
						 check_inner(recv_evd_handle),
						 check_inner(request_evd_handle),
						 check_inner(connect_evd_handle),
						 check_inner(srq_handle), ep_attributes, ep_handle),
			  ep_attributes, ep_handle);
}

/* ---- queries and changes ---- */

DAT_RETURN check_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			  DAT_EP_PARAM *ep_param)
{
	struct check_call call;
	struct check_object *ep =
		check_begin(&call, CHECK_CALL_ep_query, ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = dat_ep_query(check_inner(ep_handle), ep_param_mask, ep_param);

	if (ret == DAT_SUCCESS && ep) {
		if (ep_param_mask & DAT_EP_FIELD_IA_HANDLE)
			ep_param->ia_handle = ep->ia;
		if (ep_param_mask & DAT_EP_FIELD_PZ_HANDLE)
			ep_param->pz_handle = check_outer(ep_param->pz_handle);
		if (ep_param_mask & DAT_EP_FIELD_RECV_EVD_HANDLE)
			ep_param->recv_evd_handle = check_outer(ep_param->recv_evd_handle);
		if (ep_param_mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE)
			ep_param->request_evd_handle = check_outer(ep_param->request_evd_handle);
		if (ep_param_mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE)
			ep_param->connect_evd_handle = check_outer(ep_param->connect_evd_handle);
		if (ep_param_mask & DAT_EP_FIELD_SRQ_HANDLE)
			ep_param->srq_handle = check_outer(ep_param->srq_handle);
	}
	return check_end(&call, ret);
}

DAT_RETURN check_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			   const DAT_EP_PARAM *ep_param)
{
	struct check_call call;
	struct check_object *ep =
		check_begin(&call, CHECK_CALL_ep_modify, ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_EP_PARAM inner;
	DAT_RETURN ret;

	if (ep_param) {
		inner = *ep_param;
		inner.pz_handle = check_inner(ep_param->pz_handle);
		inner.recv_evd_handle = check_inner(ep_param->recv_evd_handle);
		inner.request_evd_handle = check_inner(ep_param->request_evd_handle);
		inner.connect_evd_handle = check_inner(ep_param->connect_evd_handle);
		inner.srq_handle = check_inner(ep_param->srq_handle);
	}
	ret = dat_ep_modify(check_inner(ep_handle), ep_param_mask, ep_param ? &inner : NULL);
	if (ret == DAT_SUCCESS && ep) {
		learn(ep);
		if (ep_param) /* NULL is allowed if nothing is to be changed */
			check_limit_ep(&call, ep, &ep_param->ep_attr, ep_param_mask);
	}
	return check_end(&call, ret);
}

DAT_RETURN check_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			       DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_get_status, ep_handle, DAT_HANDLE_TYPE_EP);
	return check_end(&call, dat_ep_get_status(check_inner(ep_handle), ep_state, recv_idle,
						  request_idle));
}

DAT_RETURN check_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			       DAT_COUNT *bufs_alloc_span)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_recv_query, ep_handle, DAT_HANDLE_TYPE_EP);
	return check_end(
		&call, dat_ep_recv_query(check_inner(ep_handle), nbufs_allocated, bufs_alloc_span));
}

DAT_RETURN check_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				  DAT_COUNT hard_high_watermark)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_set_watermark, ep_handle, DAT_HANDLE_TYPE_EP);
	return check_end(&call, dat_ep_set_watermark(check_inner(ep_handle), soft_high_watermark,
						     hard_high_watermark));
}

/* ---- connections ---- */

/* Ends a call that belongs to the history of the endpoint. */
static DAT_RETURN end_step(struct check_call *call, DAT_RETURN ret)
{
	if (call->object) {
		check_lock();
		check_step_locked(call->object, call->name, ret);
		check_unlock();
	}
	return check_end(call, ret);
}

DAT_RETURN check_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			    DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			    DAT_COUNT private_data_size, const DAT_PVOID private_data,
			    DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_connect, ep_handle, DAT_HANDLE_TYPE_EP);
	check_limit(&call, call.object, CHECK_LIMIT_PRIVATE_DATA, "private_data_size",
		    private_data_size);
	return end_step(&call, dat_ep_connect(check_inner(ep_handle), remote_ia_address,
					      remote_conn_qual, timeout, private_data_size,
					      private_data, quality_of_service, connect_flags));
}

DAT_RETURN check_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
				DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_dup_connect, ep_handle, DAT_HANDLE_TYPE_EP);
	check_limit(&call, call.object, CHECK_LIMIT_PRIVATE_DATA, "private_data_size",
		    private_data_size);
	return end_step(&call, dat_ep_dup_connect(
				       check_inner(ep_handle), check_inner(ep_dup_handle), timeout,
				       private_data_size, private_data, quality_of_service));
}

DAT_RETURN check_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_disconnect, ep_handle, DAT_HANDLE_TYPE_EP);
	return end_step(&call, dat_ep_disconnect(check_inner(ep_handle), close_flags));
}

DAT_RETURN check_ep_reset(DAT_EP_HANDLE ep_handle)
{
	struct check_call call;

	struct check_object *ep =
		check_begin(&call, CHECK_CALL_ep_reset, ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = dat_ep_reset(check_inner(ep_handle));

	if (ret == DAT_SUCCESS && ep) {
		check_lock();
		trace_wire_close_locked(ep);
		ep->life->ep.flow.is_passive = false;
		ep->life->ep.empty_ns = 0;
		check_unlock();
	}
	return end_step(&call, ret);
}

DAT_RETURN check_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct check_call call;
	struct check_object *ep =
		check_begin(&call, CHECK_CALL_ep_free, ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
	DAT_RETURN ret;

	if (ep && check_rule_is_on(CHECK_CONNECTED))
		(void)dat_ep_get_status(ep->inner, &state, NULL, NULL);
	ret = dat_ep_free(check_inner(ep_handle));
	if (ret == DAT_SUCCESS && state == DAT_EP_STATE_CONNECTED)
		check_report(&call, CHECK_CONNECTED, ep, "%s is connected", check_name(ep).text);
	if (ret == DAT_SUCCESS && ep)
		check_ep_kill(ep);
	return check_end_free(&call, ret);
}

/* ---- posting ---- */

/* Calls the provider below. */
static DAT_RETURN post_down(DAT_EP_HANDLE ep_handle, const struct check_post *post,
			    DAT_DTO_COOKIE cookie)
{
	DAT_LMR_TRIPLET *segments = (DAT_LMR_TRIPLET *)post->segments;

	if (post->post_down)
		return post->post_down(ep_handle, post, cookie);
	switch (post->kind) {
	case CHECK_SEND:
		return dat_ep_post_send(ep_handle, post->segment_count, segments, cookie,
					post->flags);
	case CHECK_RECV:
		return dat_ep_post_recv(ep_handle, post->segment_count, segments, cookie,
					post->flags);
	case CHECK_READ:
		return dat_ep_post_rdma_read(ep_handle, post->segment_count, segments, cookie,
					     post->remote, post->flags);
	default:
		return dat_ep_post_rdma_write(ep_handle, post->segment_count, segments, cookie,
					      post->remote, post->flags);
	}
}

static DAT_RETURN post_request(struct check_call *call, DAT_EP_HANDLE ep_handle,
			       struct check_post *post)
{
	struct check_object *ep = call->object;
	DAT_DTO_COOKIE cookie = post->cookie;
	DAT_RETURN ret;

	post->call = call;
	if (ep)
		cookie = check_request_begin(ep, post);
	ret = post_down(check_inner(ep_handle), post, cookie);
	if (ep)
		check_request_posted(ep, post, cookie, ret);
	return check_end(call, ret);
}

DAT_RETURN check_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_SEND,
				  .segment_count = num_segments,
				  .segments = local_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER};
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_post_send, ep_handle, DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

DAT_RETURN check_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_RECV,
				  .segment_count = num_segments,
				  .segments = local_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER};
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_post_recv, ep_handle, DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

DAT_RETURN check_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_READ,
				  .segment_count = num_segments,
				  .segments = local_iov,
				  .remote = remote_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER};
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_post_rdma_read, ep_handle, DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

DAT_RETURN check_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				    const DAT_RMR_TRIPLET *remote_iov,
				    DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_WRITE,
				  .segment_count = num_segments,
				  .segments = local_iov,
				  .remote = remote_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER};
	struct check_call call;

	check_begin(&call, CHECK_CALL_ep_post_rdma_write, ep_handle, DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

/* ---- posting by <dat/opendat.h>: checked as the call of DAT 1.2 that is most like it ---- */

DAT_RETURN check_take_immediate(DAT_EP_HANDLE ep_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_opendat_ep_take_immediate, ep_handle, DAT_HANDLE_TYPE_EP);
	return check_end(&call, dat_opendat_ep_take_immediate(check_inner(ep_handle)));
}

static DAT_RETURN write_immediate_down(DAT_EP_HANDLE ep_handle, const struct check_post *post,
				       DAT_DTO_COOKIE cookie)
{
	return dat_opendat_ep_post_rdma_write_immed(ep_handle, post->segment_count, post->segments,
						    cookie, post->remote,
						    (DAT_UINT32)post->values[0], post->flags);
}

DAT_RETURN check_write_immediate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov, DAT_UINT32 immediate_data,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_WRITE,
				  .segment_count = num_segments,
				  .segments = local_iov,
				  .remote = remote_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER,
				  .post_down = write_immediate_down,
				  .values = {immediate_data}};
	struct check_call call;

	check_begin(&call, CHECK_CALL_opendat_ep_post_rdma_write_immed, ep_handle,
		    DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

static DAT_RETURN fetch_add_down(DAT_EP_HANDLE ep_handle, const struct check_post *post,
				 DAT_DTO_COOKIE cookie)
{
	return dat_opendat_ep_post_fetch_and_add(ep_handle, post->values[0], post->segments, cookie,
						 post->remote, post->flags);
}

DAT_RETURN check_fetch_add(DAT_EP_HANDLE ep_handle, DAT_UINT64 add_value,
			   const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			   const DAT_RMR_TRIPLET *remote_iov, DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_READ,
				  .segment_count = 1,
				  .segments = local_iov,
				  .remote = remote_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER,
				  .post_down = fetch_add_down,
				  .values = {add_value}};
	struct check_call call;

	check_begin(&call, CHECK_CALL_opendat_ep_post_fetch_and_add, ep_handle, DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

static DAT_RETURN compare_swap_down(DAT_EP_HANDLE ep_handle, const struct check_post *post,
				    DAT_DTO_COOKIE cookie)
{
	return dat_opendat_ep_post_cmp_and_swap(ep_handle, post->values[0], post->values[1],
						post->segments, cookie, post->remote, post->flags);
}

DAT_RETURN check_compare_swap(DAT_EP_HANDLE ep_handle, DAT_UINT64 compare_value,
			      DAT_UINT64 swap_value, const DAT_LMR_TRIPLET *local_iov,
			      DAT_DTO_COOKIE user_cookie, const DAT_RMR_TRIPLET *remote_iov,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	struct check_post post = {.kind = CHECK_READ,
				  .segment_count = 1,
				  .segments = local_iov,
				  .remote = remote_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER,
				  .post_down = compare_swap_down,
				  .values = {compare_value, swap_value}};
	struct check_call call;

	check_begin(&call, CHECK_CALL_opendat_ep_post_cmp_and_swap, ep_handle, DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}

static DAT_RETURN send_invalidate_down(DAT_EP_HANDLE ep_handle, const struct check_post *post,
				       DAT_DTO_COOKIE cookie)
{
	return dat_opendat_ep_post_send_invalidate(ep_handle, post->segment_count, post->segments,
						   cookie, post->flags,
						   (DAT_RMR_CONTEXT)post->values[0]);
}

DAT_RETURN check_send_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT rmr_context)
{
	struct check_post post = {.kind = CHECK_SEND,
				  .segment_count = num_segments,
				  .segments = local_iov,
				  .cookie = user_cookie,
				  .flags = completion_flags,
				  .posted_at = CHECK_CALLER,
				  .post_down = send_invalidate_down,
				  .values = {rmr_context}};
	struct check_call call;

	check_begin(&call, CHECK_CALL_opendat_ep_post_send_invalidate, ep_handle,
		    DAT_HANDLE_TYPE_EP);
	return post_request(&call, ep_handle, &post);
}
