// SPDX-License-Identifier: BSD-2-Clause
/* Public service points: dat_psp_create, dat_psp_create_any, dat_psp_free, dat_psp_query. */
#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/conn/sp.h"

/* GEN-19: handles are checked before parameters. */
static DAT_RETURN psp_check(struct core_ia *ia, DAT_EVD_HANDLE evd_handle, const void *qual,
			    DAT_PSP_FLAGS flags, const DAT_PSP_HANDLE *psp_handle)
{
	if (!core_evd_suits(evd_handle, ia, DAT_EVD_CR_FLAG))
		return core_bad_handle(DAT_INVALID_HANDLE_EVD_CR);
	if (!qual)
		return core_bad_arg(2);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return core_bad_arg(4);
	return psp_handle ? DAT_SUCCESS : core_bad_arg(5);
}

static DAT_RETURN psp_create(DAT_IA_HANDLE ia_handle, const struct core_sp_args *args,
			     DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd_handle,
			     DAT_PSP_HANDLE *psp_handle)
{
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_sp *sp = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(DAT_INVALID_HANDLE_IA);
	ret = psp_check(ia, evd_handle, qual, args->flags, psp_handle);
	if (ret == DAT_SUCCESS && !args->is_any && !args->qual)
		ret = core_bad_arg(2);
	if (ret == DAT_SUCCESS)
		ret = core_sp_new(ia, evd_handle, args, &sp);
	if (ret == DAT_SUCCESS) {
		*psp_handle = sp->cell;
		*qual = sp->conn_qual;
	}
	core_ia_leave(ia);
	return ret;
}

DAT_RETURN core_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			   DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			   DAT_PSP_HANDLE *psp_handle)
{
	CORE_NO_CANCELLATION;
	const struct core_sp_args args = {.qual = conn_qual, .flags = psp_flags};

	return psp_create(ia_handle, &args, &conn_qual, evd_handle, psp_handle);
}

DAT_RETURN core_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			       DAT_PSP_HANDLE *psp_handle)
{
	CORE_NO_CANCELLATION;
	const struct core_sp_args args = {.is_any = true, .flags = psp_flags};

	return psp_create(ia_handle, &args, conn_qual, evd_handle, psp_handle);
}

DAT_RETURN core_psp_free(DAT_PSP_HANDLE psp_handle)
{
	CORE_NO_CANCELLATION;

	return core_sp_free(psp_handle, DAT_HANDLE_TYPE_PSP, DAT_INVALID_HANDLE_PSP);
}

DAT_RETURN core_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_sp *sp = core_handle_lock(psp_handle, DAT_HANDLE_TYPE_PSP);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!sp)
		return core_bad_handle(DAT_INVALID_HANDLE_PSP);
	if (mask & ~DAT_PSP_FIELD_ALL) {
		ret = core_bad_arg(2);
	} else if (!param) {
		ret = core_bad_arg(3);
	} else {
		param->ia_handle = sp->ia->cell;
		param->conn_qual = sp->conn_qual;
		param->evd_handle = sp->evd->cell;
		param->psp_flags = sp->flags;
	}
	core_handle_unlock(sp->cell);
	return ret;
}
