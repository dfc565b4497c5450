// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues. */
#include "check/limits.h"
#include "check/object.h"
#include "check/report.h"

DAT_RETURN check_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			    DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
{
	struct check_call call;
	struct check_object *srq = NULL, *ia = check_begin(&call, CHECK_CALL_srq_create, ia_handle,
							   DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = dat_srq_create(check_inner(ia_handle), check_inner(pz_handle), srq_attr,
					srq_handle);

	if (ret == DAT_SUCCESS && ia)
		srq = check_object_make(call.name, ia, DAT_HANDLE_TYPE_SRQ, *srq_handle);
	if (srq) {
		*srq_handle = srq;
		check_limit(&call, srq, CHECK_LIMIT_SRQ_BUFFERS, "max_recv_dtos",
			    srq_attr->max_recv_dtos);
		check_limit(&call, srq, CHECK_LIMIT_SEGMENTS, "max_recv_iov",
			    srq_attr->max_recv_iov);
	}
	return check_end(&call, ret);
}

DAT_RETURN check_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			   DAT_SRQ_PARAM *srq_param)
{
	struct check_call call;
	struct check_object *srq =
		check_begin(&call, CHECK_CALL_srq_query, srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret = dat_srq_query(check_inner(srq_handle), srq_param_mask, srq_param);

	if (ret == DAT_SUCCESS && srq && (srq_param_mask & DAT_SRQ_FIELD_IA_HANDLE))
		srq_param->ia_handle = srq->ia;
	if (ret == DAT_SUCCESS && srq && (srq_param_mask & DAT_SRQ_FIELD_PZ_HANDLE))
		srq_param->pz_handle = check_outer(srq_param->pz_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_srq_resize, srq_handle, DAT_HANDLE_TYPE_SRQ);
	check_limit(&call, call.object, CHECK_LIMIT_SRQ_BUFFERS, "srq_max_recv_dto",
		    srq_max_recv_dto);
	return check_end(&call, dat_srq_resize(check_inner(srq_handle), srq_max_recv_dto));
}

DAT_RETURN check_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_srq_set_lw, srq_handle, DAT_HANDLE_TYPE_SRQ);
	return check_end(&call, dat_srq_set_lw(check_inner(srq_handle), low_watermark));
}

DAT_RETURN check_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			       DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	struct check_call call;
	struct check_object *srq =
		check_begin(&call, CHECK_CALL_srq_post_recv, srq_handle, DAT_HANDLE_TYPE_SRQ);
	const struct check_post post = {.call = &call,
					.kind = CHECK_RECV,
					.segment_count = num_segments,
					.segments = local_iov,
					.cookie = user_cookie,
					.posted_at = CHECK_CALLER};
	DAT_RETURN ret;

	if (srq)
		user_cookie = check_request_begin(srq, &post);
	ret = dat_srq_post_recv(check_inner(srq_handle), num_segments, local_iov, user_cookie);
	if (srq)
		check_request_posted(srq, &post, user_cookie, ret);
	return check_end(&call, ret);
}

DAT_RETURN check_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	struct check_call call;
	struct check_object *srq =
		check_begin(&call, CHECK_CALL_srq_free, srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret = dat_srq_free(check_inner(srq_handle));

	if (ret == DAT_SUCCESS && srq) {
		check_lock();
		check_srq_orphan_locked(srq);
		check_unlock();
	}
	return check_end_free(&call, ret);
}
