// SPDX-License-Identifier: BSD-2-Clause
/* Protection zones: dat_pz_create, dat_pz_free, dat_pz_query. */
#include "core/mem/pz.h"

#include <stdlib.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"

static _Atomic uint32_t pz_last_id;

static uint32_t pz_next_id(void)
{
	uint32_t id = atomic_fetch_add_explicit(&pz_last_id, 1, memory_order_relaxed) + 1;

	return id ? id : atomic_fetch_add_explicit(&pz_last_id, 1, memory_order_relaxed) + 1;
}

static DAT_RETURN pz_new(struct core_ia *ia, struct core_pz **pz_out)
{
	struct core_pz *pz = calloc(1, sizeof(*pz));
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_PROTECTION_DOMAIN);

	if (!pz)
		return ret;
	pz->ia = ia;
	pz->id = pz_next_id();
	pz->cell = core_handle_alloc(&ia->adapter->provider, ia, pz);
	if (!pz->cell)
		goto free_pz;
	ret = core_status_from_errno(transport_this->pz_create(ia, pz));
	if (ret != DAT_SUCCESS)
		goto release_cell;
	ret = core_ia_add(ia, pz->cell, DAT_HANDLE_TYPE_PZ);
	if (ret != DAT_SUCCESS)
		goto destroy_transport;
	*pz_out = pz;
	return DAT_SUCCESS;

destroy_transport:
	transport_this->pz_destroy(ia, pz);
release_cell:
	core_handle_release(pz->cell);
free_pz:
	free(pz);
	return ret;
}

DAT_RETURN core_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_pz *pz = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(CORE_ARG(pz_create, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	ret = pz_handle ? pz_new(ia, &pz) : core_bad_null(CORE_ARG(pz_create, 2, pz_handle));
	if (ret == DAT_SUCCESS)
		*pz_handle = pz->cell;
	core_ia_leave(ia);
	return ret;
}

void core_pz_destroy_locked(struct core_pz *pz)
{
	struct core_handle *cell = pz->cell;

	core_handle_kill_locked(cell);
	core_handle_unlock(cell);
	transport_this->pz_destroy(pz->ia, pz);
	core_ia_remove(pz->ia, cell, DAT_HANDLE_TYPE_PZ);
	core_handle_release(cell);
	free(pz);
}

DAT_RETURN core_pz_free(DAT_PZ_HANDLE pz_handle)
{
	CORE_NO_CANCELLATION;
	struct core_pz *pz = core_handle_lock(pz_handle, DAT_HANDLE_TYPE_PZ);

	if (!pz)
		return core_bad_handle(CORE_ARG(pz_free, 1, pz_handle), DAT_INVALID_HANDLE_PZ,
				       pz_handle);
	if (pz->users) {
		core_handle_unlock(pz->cell);
		return core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	}
	core_pz_destroy_locked(pz);
	return DAT_SUCCESS;
}

DAT_RETURN core_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_pz *pz = core_handle_lock(pz_handle, DAT_HANDLE_TYPE_PZ);
	DAT_RETURN ret;

	if (!pz)
		return core_bad_handle(CORE_ARG(pz_query, 1, pz_handle), DAT_INVALID_HANDLE_PZ,
				       pz_handle);
	ret = core_check_query(CORE_ARG(pz_query, 2, pz_param_mask), mask, DAT_PZ_FIELD_ALL,
			       CORE_ARG(pz_query, 3, pz_param), param);
	if (ret == DAT_SUCCESS)
		param->ia_handle = pz->ia->cell;
	core_handle_unlock(pz->cell);
	return ret;
}

struct core_pz *core_pz_use(DAT_PZ_HANDLE handle, struct core_ia *ia)
{
	struct core_pz *pz = core_handle_lock_in(handle, DAT_HANDLE_TYPE_PZ, ia);

	if (!pz)
		return NULL;
	pz->users++;
	core_handle_unlock(pz->cell);
	return pz;
}

void core_pz_unuse(struct core_pz *pz)
{
	core_lock_acquire(&pz->cell->lock);
	assert(pz->users > 0);
	pz->users--;
	core_lock_release(&pz->cell->lock);
}
