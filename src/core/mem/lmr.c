// SPDX-License-Identifier: BSD-2-Clause
/* Local memory regions: dat_lmr_create, dat_lmr_free, dat_lmr_query, dat_lmr_sync_*. */
#include "core/mem/lmr.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/instance.h"
#include "core/base/memcheck.h"
#include "core/base/probe.h"
#include "core/base/range.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/mem/pz.h"

#define LMR_REMOTE                                                                                 \
	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG |                          \
	 CORE_MEM_PRIV_REMOTE_ATOMIC)
#define LMR_WRITTEN                                                                                \
	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG |                          \
	 CORE_MEM_PRIV_REMOTE_ATOMIC)

/* The parameters of a registration. */
struct lmr_args {
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION description;
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv;
	struct core_pz *pz;
};

static const struct core_arg lmr_region = CORE_ARG_INIT(lmr_create, 3, region_description);

static DAT_RETURN lmr_bad_source(DAT_LMR_HANDLE handle)
{
	return core_bad_handle(&lmr_region, DAT_INVALID_HANDLE_LMR, handle);
}

/* DAT_MEM_TYPE_LMR: takes the range of the source region. */
static DAT_RETURN lmr_from_source(struct core_ia *ia, struct lmr_args *args)
{
	DAT_LMR_HANDLE handle = args->description.for_lmr_handle;
	struct core_lmr *source = core_handle_lock_in(handle, DAT_HANDLE_TYPE_LMR, ia);

	if (!source)
		return lmr_bad_source(handle);
	args->address = source->address;
	args->length = source->length;
	core_handle_unlock(source->cell);
	return DAT_SUCCESS;
}

static DAT_RETURN lmr_too_long(DAT_VLEN length, DAT_VLEN max)
{
	(void)core_bad_range(CORE_ARG(lmr_create, 4, length), (int64_t)length, 1, (int64_t)max);
	return core_no_resources(DAT_RESOURCE_MEMORY_REGION);
}

static DAT_RETURN lmr_not_shared(const void *start)
{
	(void)core_bad_arg(&lmr_region, "%p: not mapped as shared memory", start);
	return core_error(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
}

/* All other types: checks the range of the address space. */
static DAT_RETURN lmr_from_range(struct core_ia *ia, struct lmr_args *args)
{
	bool is_shared = args->mem_type == DAT_MEM_TYPE_SHARED_VIRTUAL;
	const void *start = is_shared ? args->description.for_shared_memory.virtual_address
				      : args->description.for_va;

	args->address = (DAT_VADDR)(uintptr_t)start;
	if (is_shared && !args->description.for_shared_memory.shared_memory_id)
		return core_bad_arg(&lmr_region, "shared_memory_id: NULL");
	if (!start || args->length > UINT64_MAX - args->address)
		return core_bad_arg(&lmr_region,
				    "%p and %" PRIu64 " bytes: NULL, or beyond the address space",
				    start, args->length);
	if (!args->length)
		return core_bad_arg(CORE_ARG(lmr_create, 4, length), "0");
	if (args->length > ia->attr.max_lmr_block_size)
		return lmr_too_long(args->length, ia->attr.max_lmr_block_size);
	if (!core_range_is_mapped(start, args->length))
		return core_bad_arg(&lmr_region,
				    "%p and %" PRIu64 " bytes: not all of it is mapped", start,
				    args->length);
	if (is_shared && !core_range_is_shared(start, args->length))
		return lmr_not_shared(start);
	return DAT_SUCCESS;
}

static void lmr_fill(struct core_lmr *lmr, const struct lmr_args *args)
{
	core_mem_describe(lmr, args->address, args->length, args->priv, args->pz);
	lmr->transport = NULL;
	lmr->mem_type = args->mem_type;
	lmr->description = args->description;
	if (args->mem_type != DAT_MEM_TYPE_SHARED_VIRTUAL)
		return;
	memcpy(lmr->cookie, args->description.for_shared_memory.shared_memory_id,
	       sizeof(lmr->cookie));
	lmr->description.for_shared_memory.shared_memory_id = (DAT_LMR_COOKIE)lmr->cookie;
}

/* Creates the region. The caller has counted the use of args->pz. */
static DAT_RETURN lmr_new(struct core_ia *ia, const struct lmr_args *args,
			  struct core_lmr **lmr_out)
{
	struct core_lmr *lmr = core_mem_alloc(ia->mem);
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_MEMORY_REGION);
	int rc;

	if (!lmr)
		return ret;
	lmr_fill(lmr, args);
	lmr->cell = core_handle_alloc(&ia->adapter->provider, ia, lmr);
	if (!lmr->cell)
		goto free_slot;
	rc = transport_this->lmr_create(ia, lmr);
	ret = rc == -EFAULT
		      ? core_bad_arg(
				&lmr_region,
				"0x%" PRIx64 " and %" PRIu64
				" bytes: the memory cannot be accessed as the privileges require",
				args->address, args->length)
		      : core_status_from_errno(rc);
	if (ret != DAT_SUCCESS)
		goto release_cell;
	lmr->rmr_context = args->priv & LMR_REMOTE ? lmr->rkey : 0;
	(void)core_mem_publish(ia->mem, lmr);
	ret = core_ia_add(ia, lmr->cell, DAT_HANDLE_TYPE_LMR);
	if (ret != DAT_SUCCESS)
		goto revoke;
	if (args->priv & LMR_WRITTEN)
		core_memcheck_written(args->address, args->length);
	*lmr_out = lmr;
	return DAT_SUCCESS;

revoke:
	core_mem_revoke(ia->mem, lmr);
	transport_this->lmr_destroy(ia, lmr);
release_cell:
	core_handle_release(lmr->cell);
free_slot:
	core_mem_free(ia->mem, lmr);
	return ret;
}

static DAT_RETURN lmr_check(struct core_ia *ia, struct lmr_args *args, const DAT_LMR_HANDLE *handle)
{
	DAT_MEM_PRIV_FLAGS all = ia->adapter->front->mem_priv;
	bool has_source = args->mem_type == DAT_MEM_TYPE_LMR;
	DAT_RETURN ret = has_source ? lmr_from_source(ia, args) : DAT_SUCCESS;

	if (ret != DAT_SUCCESS)
		return ret; /* GEN-19: handles first */
	if (args->mem_type > DAT_MEM_TYPE_SO_VIRTUAL)
		return core_bad_arg(CORE_ARG(lmr_create, 2, mem_type), "%u is no DAT_MEM_TYPE",
				    (unsigned int)args->mem_type);
	if (args->priv & ~all)
		return core_bad_bits(CORE_ARG(lmr_create, 6, privileges), args->priv, all);
	if (!handle)
		return core_bad_null(CORE_ARG(lmr_create, 7, lmr_handle));
	return has_source ? DAT_SUCCESS : lmr_from_range(ia, args);
}

static DAT_RETURN lmr_create_on(struct core_ia *ia, struct lmr_args *args, DAT_PZ_HANDLE pz_handle,
				const DAT_LMR_HANDLE *handle, struct core_lmr **lmr_out)
{
	DAT_RETURN ret;

	args->pz = core_pz_use(pz_handle, ia);
	if (!args->pz)
		return core_bad_handle(CORE_ARG(lmr_create, 5, pz_handle), DAT_INVALID_HANDLE_PZ,
				       pz_handle);
	ret = lmr_check(ia, args, handle);
	if (ret == DAT_SUCCESS)
		ret = lmr_new(ia, args, lmr_out);
	if (ret != DAT_SUCCESS)
		core_pz_unuse(args->pz);
	return ret;
}

DAT_RETURN core_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			   DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address)
{
	CORE_NO_CANCELLATION;
	struct lmr_args args = {.mem_type = mem_type,
				.description = region_description,
				.length = length,
				.priv = privileges};
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_lmr *lmr = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(CORE_ARG(lmr_create, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	ret = lmr_create_on(ia, &args, pz_handle, lmr_handle, &lmr);
	if (ret == DAT_SUCCESS) {
		CORE_PROBE4(lmr_create, lmr->cell, core_handle_number(lmr->cell), lmr->address,
			    lmr->length);
		*lmr_handle = lmr->cell;
		if (lmr_context)
			*lmr_context = lmr->key;
		if (rmr_context)
			*rmr_context = lmr->rmr_context;
		if (registered_length)
			*registered_length = lmr->length;
		if (registered_address)
			*registered_address = lmr->address;
	}
	core_ia_leave(ia);
	return ret;
}

void core_lmr_destroy_locked(struct core_lmr *lmr)
{
	struct core_handle *cell = lmr->cell;
	struct core_ia *ia = cell->ia;
	struct core_pz *pz = lmr->pz;

	CORE_PROBE4(lmr_free, cell, core_handle_number(cell), lmr->address, lmr->length);
	core_handle_kill_locked(cell);
	core_handle_unlock(cell);
	core_mem_revoke(ia->mem, lmr);
	transport_this->lmr_destroy(ia, lmr);
	core_pz_unuse(pz);
	core_mem_free(ia->mem, lmr);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_LMR);
	core_handle_release(cell);
}

DAT_RETURN core_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	CORE_NO_CANCELLATION;
	struct core_lmr *lmr = core_handle_lock(lmr_handle, DAT_HANDLE_TYPE_LMR);

	if (!lmr)
		return core_bad_handle(CORE_ARG(lmr_free, 1, lmr_handle), DAT_INVALID_HANDLE_LMR,
				       lmr_handle);
	if (atomic_load(&lmr->bound)) {
		core_handle_unlock(lmr->cell);
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	}
	core_lmr_destroy_locked(lmr);
	return DAT_SUCCESS;
}

DAT_RETURN core_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_lmr *lmr = core_handle_lock(lmr_handle, DAT_HANDLE_TYPE_LMR);
	DAT_RETURN ret;
	struct core_handle *cell;

	if (!lmr)
		return core_bad_handle(CORE_ARG(lmr_query, 1, lmr_handle), DAT_INVALID_HANDLE_LMR,
				       lmr_handle);
	cell = lmr->cell;
	ret = core_check_query(CORE_ARG(lmr_query, 2, lmr_param_mask), mask, DAT_LMR_FIELD_ALL,
			       CORE_ARG(lmr_query, 3, lmr_param), param);
	if (ret == DAT_SUCCESS) {
		param->ia_handle = cell->ia->cell;
		param->mem_type = lmr->mem_type;
		param->region_desc = lmr->description;
		param->length = lmr->length;
		param->pz_handle = lmr->pz->cell;
		param->mem_priv = lmr->priv;
		param->lmr_context = lmr->key;
		param->rmr_context = lmr->rmr_context;
		param->registered_size = lmr->length;
		param->registered_address = lmr->address;
	}
	core_handle_unlock(cell);
	return ret;
}

/* For both directions. Caches are coherent, so a full fence and the checks are enough. */
static DAT_RETURN lmr_sync(const char *call, DAT_IA_HANDLE ia_handle,
			   const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	const struct core_arg ia_arg = {call, "ia_handle", 1},
			      segments_arg = {call, "local_segments", 2};
	struct core_ia *ia = core_ia_enter(ia_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return core_bad_handle(&ia_arg, DAT_INVALID_HANDLE_IA, ia_handle);
	if (count && !segments)
		ret = core_bad_null(&segments_arg);
	for (DAT_VLEN i = 0; ret == DAT_SUCCESS && i < count; i++)
		if (!core_mem_is_registered(ia->mem, &segments[i]))
			ret = core_bad_arg(&segments_arg,
					   "segment %" PRIu64 " is not inside a region", i);
	/* sequentially consistent: orders the caller's accesses with those of peers, which other
	 * threads, processes or the device make */
	atomic_thread_fence(memory_order_seq_cst);
	core_ia_leave(ia);
	return ret;
}

DAT_RETURN core_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	CORE_NO_CANCELLATION;

	return lmr_sync("dat_lmr_sync_rdma_read", ia_handle, local_segments, num_segments);
}

DAT_RETURN core_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				    DAT_VLEN num_segments)
{
	CORE_NO_CANCELLATION;

	return lmr_sync("dat_lmr_sync_rdma_write", ia_handle, local_segments, num_segments);
}
