// SPDX-License-Identifier: BSD-2-Clause
/* Memory regions. */
#include "check/object.h"
#include "check/report.h"

/* Notes the keys and the range that requests name. */
static void learn_region(struct check_object *lmr, const DAT_REGION_DESCRIPTION *description)
{
	struct check_lmr *own = &lmr->life->lmr;
	struct check_object **bucket;
	DAT_LMR_PARAM param;

	if (dat_lmr_query(lmr->inner, DAT_LMR_FIELD_ALL, &param) != DAT_SUCCESS)
		return;
	check_lock();
	own->description = *description;
	own->key = param.lmr_context;
	own->remote_key = param.rmr_context;
	own->length = param.registered_size;
	own->address = param.registered_address;
	bucket = &lmr->ia->life->ia.keys[own->key % CHECK_KEYS];
	own->next_key = *bucket;
	*bucket = lmr;
	check_unlock();
}

DAT_RETURN check_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			    DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			    DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			    DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			    DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			    DAT_VADDR *registered_address)
{
	DAT_REGION_DESCRIPTION inner = region_description;
	struct check_object *ia, *lmr = NULL;
	struct check_call call;
	DAT_RETURN ret;

	ia = check_begin(&call, CHECK_CALL_lmr_create, ia_handle, DAT_HANDLE_TYPE_IA);
	if (mem_type == DAT_MEM_TYPE_LMR)
		inner.for_lmr_handle = check_inner(region_description.for_lmr_handle);
	ret = dat_lmr_create(check_inner(ia_handle), mem_type, inner, length,
			     check_inner(pz_handle), privileges, lmr_handle, lmr_context,
			     rmr_context, registered_length, registered_address);
	if (!length && mem_type != DAT_MEM_TYPE_LMR)
		check_report(
			&call, CHECK_ZERO_LENGTH, ia,
			"a region of 0 bytes, which some providers register and others refuse");
	if (ret == DAT_SUCCESS && ia)
		lmr = check_object_make(call.name, ia, DAT_HANDLE_TYPE_LMR, *lmr_handle);
	if (lmr) {
		learn_region(lmr, &region_description);
		*lmr_handle = lmr;
	}
	return check_end(&call, ret);
}

DAT_RETURN check_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			   DAT_LMR_PARAM *lmr_param)
{
	struct check_call call;
	struct check_object *lmr =
		check_begin(&call, CHECK_CALL_lmr_query, lmr_handle, DAT_HANDLE_TYPE_LMR);
	DAT_RETURN ret = dat_lmr_query(check_inner(lmr_handle), lmr_param_mask, lmr_param);

	if (ret == DAT_SUCCESS && lmr && (lmr_param_mask & DAT_LMR_FIELD_IA_HANDLE))
		lmr_param->ia_handle = lmr->ia;
	if (ret == DAT_SUCCESS && lmr && (lmr_param_mask & DAT_LMR_FIELD_PZ_HANDLE))
		lmr_param->pz_handle = check_outer(lmr_param->pz_handle);
	if (ret == DAT_SUCCESS && lmr && (lmr_param_mask & DAT_LMR_FIELD_REGION_DESC) &&
	    lmr_param->region_desc.for_lmr_handle ==
		    check_inner(lmr->life->lmr.description.for_lmr_handle))
		lmr_param->region_desc.for_lmr_handle = lmr->life->lmr.description.for_lmr_handle;
	return check_end(&call, ret);
}

/* ---- free ---- */

/* An endpoint or SRQ with such a request which uses the region; NULL: none. Locked. */
static struct check_object *user_locked(const struct check_object *lmr, bool is_suppressed)
{
	struct check_object *object = lmr->ia->life->ia.objects[CHECK_POSTERS];
	DAT_LMR_CONTEXT key = lmr->life->lmr.key;

	for (; object; object = object->next) {
		const struct check_ep *ep = &object->life->ep;

		if (object->type == DAT_HANDLE_TYPE_EP && !ep->has_ended &&
		    (check_requests_use_locked(&ep->requests, key, is_suppressed) ||
		     check_requests_use_locked(&ep->receives, key, is_suppressed)))
			return object;
		if (object->type == DAT_HANDLE_TYPE_SRQ &&
		    check_requests_use_locked(&object->life->srq.receives, key, is_suppressed))
			return object;
	}
	return NULL;
}

/* After the end of a connection everything is flushed, whether the program knows it or not. */
static bool is_flushed(const struct check_object *user)
{
	DAT_EP_STATE state;

	return user->type == DAT_HANDLE_TYPE_EP &&
	       dat_ep_get_status(user->inner, &state, NULL, NULL) == DAT_SUCCESS &&
	       state == DAT_EP_STATE_DISCONNECTED;
}

DAT_RETURN check_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	struct check_call call;
	struct check_object *lmr, *user = NULL, *silent = NULL;
	bool is_mapped = true;
	DAT_RETURN ret;

	lmr = check_begin(&call, CHECK_CALL_lmr_free, lmr_handle, DAT_HANDLE_TYPE_LMR);
	if (lmr) {
		check_lock();
		user = user_locked(lmr, false);
		silent = user_locked(lmr, true);
		check_unlock();
		is_mapped = !check_rule_is_on(CHECK_LMR_UNMAPPED) ||
			    check_is_readable(lmr->life->lmr.address, lmr->life->lmr.length);
		if (user && is_flushed(user))
			user = NULL;
		if (silent && is_flushed(silent))
			silent = NULL;
	}
	ret = dat_lmr_free(check_inner(lmr_handle));
	if (ret == DAT_SUCCESS && user)
		check_report(&call, CHECK_LMR_IN_USE, lmr,
			     "a request of %s that uses %s is not completed, or its completion was "
			     "not taken",
			     check_name(user).text, check_name(lmr).text);
	if (ret == DAT_SUCCESS && silent)
		check_report(&call, CHECK_SUPPRESSED_USED, lmr,
			     "a request of %s that uses %s gives no event, and no later one has "
			     "completed",
			     check_name(silent).text, check_name(lmr).text);
	if (ret == DAT_SUCCESS && !is_mapped)
		check_report(&call, CHECK_LMR_UNMAPPED, lmr,
			     "the memory of %s, %llu bytes at 0x%llx, is not mapped any more",
			     check_name(lmr).text, (unsigned long long)lmr->life->lmr.length,
			     (unsigned long long)lmr->life->lmr.address);
	return check_end_free(&call, ret);
}

/* ---- synchronization ---- */

DAT_RETURN check_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				    DAT_VLEN num_segments)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_lmr_sync_rdma_read, ia_handle, DAT_HANDLE_TYPE_IA);
	return check_end(&call, dat_lmr_sync_rdma_read(check_inner(ia_handle), local_segments,
						       num_segments));
}

DAT_RETURN check_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				     DAT_VLEN num_segments)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_lmr_sync_rdma_write, ia_handle, DAT_HANDLE_TYPE_IA);
	return check_end(&call, dat_lmr_sync_rdma_write(check_inner(ia_handle), local_segments,
							num_segments));
}
