// SPDX-License-Identifier: BSD-2-Clause
/* Remote memory regions: dat_rmr_create, dat_rmr_query, dat_rmr_free. */
#include "core/mem/rmr.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/mem/pz.h"

/* --- create, query --- */

static DAT_RETURN rmr_new(struct core_ia *ia, struct core_pz *pz, struct core_rmr **rmr_out)
{
	struct core_rmr *rmr = calloc(1, sizeof(*rmr));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_MEMORY_REGION);

	if (!rmr)
		return ret;
	rmr->ia = ia;
	rmr->pz = pz;
	rmr->cell = core_handle_alloc(&ia->adapter->provider, ia, rmr);
	if (!rmr->cell)
		goto free_rmr;
	ret = core_ia_add(ia, rmr->cell, DAT_HANDLE_TYPE_RMR);
	if (ret != DAT_SUCCESS)
		goto release_cell;
	*rmr_out = rmr;
	return DAT_SUCCESS;

release_cell:
	core_handle_release(rmr->cell);
free_rmr:
	free(rmr);
	return ret;
}

/* Enters the instance of a zone, so that it is not closed meanwhile. NULL: the zone is invalid. */
static struct core_ia *rmr_enter_ia(DAT_PZ_HANDLE pz_handle)
{
	struct core_pz *pz = core_handle_lock(pz_handle, DAT_HANDLE_TYPE_PZ);
	struct core_handle *cell;

	if (!pz)
		return NULL;
	cell = pz->ia->cell; /* cells stay readable; core_ia_enter checks that it is live */
	core_handle_unlock(pz->cell);
	return core_ia_enter(cell);
}

DAT_RETURN core_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = rmr_enter_ia(pz_handle);
	struct core_pz *pz = ia ? core_pz_use(pz_handle, ia) : NULL;
	struct core_rmr *rmr = NULL;
	DAT_RETURN ret;

	if (!pz) {
		ret = core_bad_handle(CORE_ARG(rmr_create, 1, pz_handle), DAT_INVALID_HANDLE_PZ,
				      pz_handle);
		goto leave;
	}
	ret = rmr_handle ? rmr_new(ia, pz, &rmr)
			 : core_bad_null(CORE_ARG(rmr_create, 2, rmr_handle));
	if (ret == DAT_SUCCESS)
		*rmr_handle = rmr->cell;
	else
		core_pz_unuse(pz);
leave:
	if (ia)
		core_ia_leave(ia);
	return ret;
}

DAT_RETURN core_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_rmr *rmr = core_handle_lock(rmr_handle, DAT_HANDLE_TYPE_RMR);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!rmr)
		return core_bad_handle(CORE_ARG(rmr_query, 1, rmr_handle), DAT_INVALID_HANDLE_RMR,
				       rmr_handle);
	if (mask & ~DAT_RMR_FIELD_ALL) {
		ret = core_bad_bits(CORE_ARG(rmr_query, 2, rmr_param_mask), mask,
				    DAT_RMR_FIELD_ALL);
	} else if ((mask & DAT_RMR_FIELD_LMR_TRIPLET) && !rmr->current) {
		ret = core_bad_arg(
			CORE_ARG(rmr_query, 2, rmr_param_mask),
			"DAT_RMR_FIELD_LMR_TRIPLET, but nothing is bound"); /* RMR-QUERY-08 */
	} else if (!param) {
		ret = core_bad_null(CORE_ARG(rmr_query, 3, rmr_param));
	} else {
		param->ia_handle = rmr->ia->cell;
		param->pz_handle = rmr->pz->cell;
		memset(&param->lmr_triplet, 0, sizeof(param->lmr_triplet));
		param->mem_priv = DAT_MEM_PRIV_NONE_FLAG;
		param->rmr_context = 0;
		if (rmr->current) {
			param->lmr_triplet = rmr->current->triplet;
			param->mem_priv = rmr->current->priv;
			param->rmr_context = rmr->current->rkey;
		}
	}
	core_handle_unlock(rmr->cell);
	return ret;
}

void core_binding_free(struct core_ia *ia, struct core_binding *binding)
{
	if (!binding)
		return;
	if (binding->key)
		transport_this->rmr_key_destroy(ia, binding->key);
	if (binding->lmr)
		atomic_fetch_sub(&binding->lmr->bound, 1);
	free(binding);
}

/* --- free --- */

/* Waits as dat_lmr_free does (RMR-FREE-14). The transport bounds the wait. No lock held. */
static void rmr_unbind(struct core_ia *ia, struct core_binding *binding)
{
	unsigned int turns = 0;

	while (!transport_this->rmr_key_revoke(ia, binding->key))
		if (transport_this->progress(ia) <= 0)
			core_wait_turn(&turns);
	core_binding_free(ia, binding);
}

void core_rmr_destroy_locked(struct core_rmr *rmr)
{
	struct core_handle *cell = rmr->cell;
	struct core_ia *ia = rmr->ia;

	core_handle_kill_locked(cell);
	core_handle_unlock(cell);
	if (rmr->current)
		rmr_unbind(ia, rmr->current);
	core_pz_unuse(rmr->pz);
	free(rmr);
	core_ia_remove(ia, cell, DAT_HANDLE_TYPE_RMR);
	core_handle_release(cell);
}

DAT_RETURN core_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	CORE_NO_CANCELLATION;
	struct core_rmr *rmr = core_handle_lock(rmr_handle, DAT_HANDLE_TYPE_RMR);

	if (!rmr)
		return core_bad_handle(CORE_ARG(rmr_free, 1, rmr_handle), DAT_INVALID_HANDLE_RMR,
				       rmr_handle);
	core_rmr_destroy_locked(rmr);
	return DAT_SUCCESS;
}
