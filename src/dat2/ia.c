// SPDX-License-Identifier: BSD-2-Clause
/* Opening and querying an instance. */
#include "core/ia/ia.h"

#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "dat2/convert.h"
#include "dat2/front.h"
#include "dat2/table.h"

DAT_RETURN dat2_ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			     DAT_IA_HANDLE *ia_handle)
{
	return dat2_status(core_ia_open(&dat2_front, name, DAT_TRUE, qlen, async_evd, ia_handle));
}

DAT_RETURN dat2_ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			       DAT_IA_HANDLE *ia_handle)
{
	return dat2_status(core_ia_open(&dat2_front, name, DAT_FALSE, qlen, async_evd, ia_handle));
}

/* --- query --- */

#define SAME_PLACE(member)                                                                         \
	_Static_assert(offsetof(struct dat2_ia_attr, member) == offsetof(DAT_IA_ATTR, member),     \
		       "up to here both have one layout");
SAME_PLACE(ia_address_ptr)
SAME_PLACE(max_lmrs)
SAME_PLACE(max_lmr_block_size)

_Static_assert(offsetof(DAT_PROVIDER_ATTR, num_provider_specific_attr) ==
		       sizeof(((struct dat2_provider_attr *)0)->same),
	       "what both have");

#define TAKE(member) to->member = from->member;

static void ia_attr_out(const DAT_IA_ATTR *from, struct dat2_ia_attr *to)
{
	memcpy(to, from, offsetof(struct dat2_ia_attr, max_lmr_block_size));
	to->max_lmr_block_size = dat2_length(from->max_lmr_block_size);
	TAKE(max_lmr_virtual_address)
	TAKE(max_pzs)
	to->max_message_size = dat2_length(from->max_message_size);
	to->max_rdma_size = dat2_length(from->max_rdma_size);
	TAKE(max_rmrs)
	TAKE(max_rmr_target_address)
	TAKE(max_srqs)
	TAKE(max_ep_per_srq)
	TAKE(max_recv_per_srq)
	TAKE(max_iov_segments_per_rdma_read)
	TAKE(max_iov_segments_per_rdma_write)
	TAKE(max_rdma_read_in)
	TAKE(max_rdma_read_out)
	TAKE(max_rdma_read_per_ep_in_guaranteed)
	TAKE(max_rdma_read_per_ep_out_guaranteed)
	to->zb_supported = DAT_FALSE;
	to->extension_supported = DAT2_EXTENSION_IB; /* D2-IA-08 */
	to->extension_version = DAT2_IB_EXTENSION_VERSION;
	TAKE(num_transport_attr)
	TAKE(transport_attr)
	TAKE(num_vendor_attr)
	TAKE(vendor_attr)
}

static void provider_attr_out(struct core_ia *ia, struct dat2_provider_attr *to)
{
	DAT_PROVIDER_ATTR from;

	memcpy((void *)&from, &ia->provider_attr, sizeof(from)); /* a member is declared const */
	from.dapl_version_major = DAT2_VERSION_MAJOR;
	from.dapl_version_minor = DAT2_VERSION_MINOR;
	memcpy(to->same, &from, sizeof(to->same));
	to->rdma_read_lmr_rmr_context_exposure = DAT_FALSE;
	to->rmr_scope_supported = DAT2_RMR_SCOPE_PZ;
	to->is_signal_safe = DAT_FALSE;
	to->ha_supported = DAT_FALSE;
	to->ha_loadbalancing = 0;
	to->provider_specific_attr = dat2_named(ia, &to->num_provider_specific_attr);
}

/* D2-IA-01: an unknown bit becomes one that the core does not know either. */
static uint64_t ia_mask_in(uint64_t mask, uint64_t all, uint64_t core_all)
{
	return mask & ~all ? UINT64_MAX : mask ? core_all : 0;
}

DAT_RETURN dat2_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd, uint64_t ia_mask,
			 struct dat2_ia_attr *ia_attr, uint64_t provider_mask,
			 struct dat2_provider_attr *provider_attr)
{
	DAT_PROVIDER_ATTR provider;
	struct core_ia *ia = core_ia_enter(ia_handle);
	DAT_IA_ATTR attr;
	DAT_RETURN ret = core_ia_query(
		ia_handle, async_evd, ia_mask_in(ia_mask, DAT2_IA_FIELD_ALL, DAT_IA_FIELD_ALL),
		ia_attr ? &attr : NULL,
		ia_mask_in(provider_mask, DAT2_PROVIDER_FIELD_ALL, DAT_PROVIDER_FIELD_ALL),
		provider_attr ? &provider : NULL);

	if (ret == DAT_SUCCESS && ia_mask)
		ia_attr_out(&attr, ia_attr);
	if (ret == DAT_SUCCESS && ia && provider_mask)
		provider_attr_out(ia, provider_attr);
	if (ia)
		core_ia_leave(ia);
	return dat2_status(ret);
}

/* --- query of an adapter that is not open --- */

static DAT_RETURN open_query_check(const char *name, const DAT_HANDLE *handle_out, uint64_t ia_mask,
				   const struct dat2_ia_attr *ia_attr, uint64_t provider_mask,
				   const struct dat2_provider_attr *provider_attr)
{
	if (!name)
		return core_bad_null(CORE_ARG(ib_open_query, 1, name));
	if (!handle_out)
		return core_bad_null(CORE_ARG(ib_open_query, 2, ia_handle));
	if (ia_mask & ~DAT2_IA_FIELD_ALL)
		return core_bad_bits(CORE_ARG(ib_open_query, 3, ia_mask), ia_mask,
				     DAT2_IA_FIELD_ALL);
	if (ia_mask && !ia_attr)
		return core_bad_null(CORE_ARG(ib_open_query, 4, ia_attr));
	if (provider_mask & ~DAT2_PROVIDER_FIELD_ALL)
		return core_bad_bits(CORE_ARG(ib_open_query, 5, prov_mask), provider_mask,
				     DAT2_PROVIDER_FIELD_ALL);
	if (provider_mask && !provider_attr)
		return core_bad_null(CORE_ARG(ib_open_query, 6, prov_attr));
	return DAT_SUCCESS;
}

DAT_RETURN dat2_open_query(const char *name, DAT_HANDLE *handle_out, uint64_t ia_mask,
			   struct dat2_ia_attr *ia_attr, uint64_t provider_mask,
			   struct dat2_provider_attr *provider_attr)
{
	CORE_NO_CANCELLATION;
	DAT_RETURN ret =
		open_query_check(name, handle_out, ia_mask, ia_attr, provider_mask, provider_attr);
	struct core_ia *ia = NULL;

	if (ret == DAT_SUCCESS)
		ret = core_ia_open_query(&dat2_front, name, &ia);
	if (ia && ia_mask)
		ia_attr_out(&ia->attr, ia_attr);
	if (ia && provider_mask)
		provider_attr_out(ia, provider_attr);
	if (handle_out)
		*handle_out = ia ? ia->cell : DAT_HANDLE_NULL;
	return dat2_status(ret);
}

DAT_RETURN dat2_close_query(DAT_HANDLE handle)
{
	CORE_NO_CANCELLATION;

	if (core_ia_close_query(handle))
		return DAT_SUCCESS;
	return dat2_status(core_bad_handle(CORE_ARG(ib_close_query, 1, ia_handle),
					   DAT_INVALID_HANDLE_IA, handle));
}
