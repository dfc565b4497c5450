// SPDX-License-Identifier: BSD-2-Clause
/* Public service points: dat_psp_create, dat_psp_create_any, dat_psp_free, dat_psp_query. */
#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/status.h"
#include "core/conn/sp.h"

/* The parameters of dat_psp_create and dat_psp_create_any. */
struct psp_names {
	struct core_arg ia, qual, evd, flags, result;
};

#define PSP_NAMES(call)                                                                            \
	{                                                                                          \
		CORE_ARG_INIT(call, 1, ia_handle), CORE_ARG_INIT(call, 2, conn_qual),              \
			CORE_ARG_INIT(call, 3, evd_handle), CORE_ARG_INIT(call, 4, psp_flags),     \
			CORE_ARG_INIT(call, 5, psp_handle)                                         \
	}

/* GEN-19: handles are checked before parameters. */
static DAT_RETURN psp_check(const struct psp_names *names, struct core_ia *ia,
			    DAT_EVD_HANDLE evd_handle, const void *qual, DAT_PSP_FLAGS flags,
			    const DAT_PSP_HANDLE *psp_handle)
{
	if (!core_evd_suits(evd_handle, ia, DAT_EVD_CR_FLAG))
		return core_bad_handle(&names->evd, DAT_INVALID_HANDLE_EVD_CR, evd_handle);
	if (!qual)
		return core_bad_null(&names->qual);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return core_bad_arg(
			&names->flags,
			"0x%x is neither DAT_PSP_CONSUMER_FLAG nor DAT_PSP_PROVIDER_FLAG",
			(unsigned int)flags);
	return psp_handle ? DAT_SUCCESS : core_bad_null(&names->result);
}

static DAT_RETURN psp_create(const struct psp_names *names, DAT_IA_HANDLE ia_handle,
			     const struct core_sp_args *args, DAT_CONN_QUAL *qual,
			     DAT_EVD_HANDLE evd_handle, DAT_PSP_HANDLE *psp_handle)
{
	struct core_ia *ia = core_ia_enter(ia_handle);
	struct core_sp *sp = NULL;
	DAT_RETURN ret;

	if (!ia)
		return core_bad_handle(&names->ia, DAT_INVALID_HANDLE_IA, ia_handle);
	ret = psp_check(names, ia, evd_handle, qual, args->flags, psp_handle);
	if (ret == DAT_SUCCESS && !args->is_any && !args->qual)
		ret = core_bad_arg(&names->qual, "0");
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
	static const struct psp_names names = PSP_NAMES(psp_create);
	const struct core_sp_args args = {
		.evd_name = &names.evd, .qual = conn_qual, .flags = psp_flags};

	return psp_create(&names, ia_handle, &args, &conn_qual, evd_handle, psp_handle);
}

DAT_RETURN core_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			       DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			       DAT_PSP_HANDLE *psp_handle)
{
	CORE_NO_CANCELLATION;
	static const struct psp_names names = PSP_NAMES(psp_create_any);
	const struct core_sp_args args = {
		.evd_name = &names.evd, .is_any = true, .flags = psp_flags};

	return psp_create(&names, ia_handle, &args, conn_qual, evd_handle, psp_handle);
}

DAT_RETURN core_psp_free(DAT_PSP_HANDLE psp_handle)
{
	CORE_NO_CANCELLATION;

	return core_sp_free(CORE_ARG(psp_free, 1, psp_handle), psp_handle, DAT_HANDLE_TYPE_PSP,
			    DAT_INVALID_HANDLE_PSP);
}

DAT_RETURN core_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	CORE_NO_CANCELLATION;
	struct core_sp *sp = core_handle_lock(psp_handle, DAT_HANDLE_TYPE_PSP);
	DAT_RETURN ret;

	if (!sp)
		return core_bad_handle(CORE_ARG(psp_query, 1, psp_handle), DAT_INVALID_HANDLE_PSP,
				       psp_handle);
	ret = core_check_query(CORE_ARG(psp_query, 2, psp_param_mask), mask, DAT_PSP_FIELD_ALL,
			       CORE_ARG(psp_query, 3, psp_param), param);
	if (ret == DAT_SUCCESS) {
		param->ia_handle = sp->ia->cell;
		param->conn_qual = sp->conn_qual;
		param->evd_handle = sp->evd->cell;
		param->psp_flags = sp->flags;
	}
	core_handle_unlock(sp->cell);
	return ret;
}
