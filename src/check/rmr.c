// SPDX-License-Identifier: BSD-2-Clause
/* Remote memory regions: windows. */
#include "check/object.h"
#include "check/report.h"
#include "check/request.h"

DAT_RETURN check_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	struct check_call call;
	struct check_object *pz =
		check_begin(&call, CHECK_CALL_rmr_create, pz_handle, DAT_HANDLE_TYPE_PZ);
	DAT_RETURN ret = dat_rmr_create(check_inner(pz_handle), rmr_handle);

	if (ret == DAT_SUCCESS)
		*rmr_handle =
			check_wrap(call.name, pz ? pz->ia : NULL, DAT_HANDLE_TYPE_RMR, *rmr_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			   DAT_RMR_PARAM *rmr_param)
{
	struct check_call call;
	struct check_object *rmr =
		check_begin(&call, CHECK_CALL_rmr_query, rmr_handle, DAT_HANDLE_TYPE_RMR);
	DAT_RETURN ret = dat_rmr_query(check_inner(rmr_handle), rmr_param_mask, rmr_param);

	if (ret == DAT_SUCCESS && rmr && (rmr_param_mask & DAT_RMR_FIELD_IA_HANDLE))
		rmr_param->ia_handle = rmr->ia;
	if (ret == DAT_SUCCESS && rmr && (rmr_param_mask & DAT_RMR_FIELD_PZ_HANDLE))
		rmr_param->pz_handle = check_outer(rmr_param->pz_handle);
	return check_end(&call, ret);
}

static void check_binds(struct check_call *call, struct check_object *rmr)
{
	unsigned binds, silent;

	check_lock();
	binds = rmr->life->rmr.binds;
	silent = rmr->life->rmr.silent_binds;
	check_unlock();
	if (silent)
		check_report(call, CHECK_SUPPRESSED_USED, rmr,
			     "a bind of %s gives no event, and no later request has completed",
			     check_name(rmr).text);
	if (binds)
		check_report(call, CHECK_RMR_IN_USE, rmr,
			     "a bind of %s has not completed, or its completion was not taken",
			     check_name(rmr).text);
}

/* Notes the key that a bind has given. */
static void learn_key(struct check_object *rmr, DAT_RMR_COOKIE number, DAT_RMR_CONTEXT key)
{
	check_lock();
	rmr->life->rmr.keys[1] = rmr->life->rmr.keys[0];
	rmr->life->rmr.keys[0] = key;
	check_request_set_key_locked(number, rmr, key);
	check_unlock();
}

DAT_RETURN check_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			  DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			  DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			  DAT_RMR_CONTEXT *context)
{
	struct check_call call;
	struct check_object *rmr =
		check_begin(&call, CHECK_CALL_rmr_bind, rmr_handle, DAT_HANDLE_TYPE_RMR);
	struct check_object *ep = check_find(ep_handle);
	const struct check_post post = {.call = &call,
					.kind = CHECK_BIND,
					.segment_count = lmr_triplet ? 1 : 0,
					.segments = lmr_triplet,
					.cookie = user_cookie,
					.flags = completion_flags,
					.rmr = rmr,
					.posted_at = CHECK_CALLER};
	bool is_checked = rmr && ep && ep->type == DAT_HANDLE_TYPE_EP;
	DAT_RETURN ret;

	if (is_checked) {
		check_binds(&call, rmr);
		user_cookie = check_request_begin(ep, &post);
	}
	ret = dat_rmr_bind(check_inner(rmr_handle), lmr_triplet, mem_priv, check_inner(ep_handle),
			   user_cookie, completion_flags, context);
	if (is_checked)
		check_request_posted(ep, &post, user_cookie, ret);
	if (ret == DAT_SUCCESS && rmr)
		learn_key(rmr, user_cookie, lmr_triplet->segment_length ? *context : 0);
	return check_end(&call, ret);
}

DAT_RETURN check_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	struct check_call call;
	struct check_object *rmr =
		check_begin(&call, CHECK_CALL_rmr_free, rmr_handle, DAT_HANDLE_TYPE_RMR);

	if (rmr)
		check_binds(&call, rmr);
	return check_end_free(&call, dat_rmr_free(check_inner(rmr_handle)));
}
