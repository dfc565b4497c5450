// SPDX-License-Identifier: BSD-2-Clause
/* Protection zones. */
#include "check/object.h"

DAT_RETURN check_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	struct check_call call;
	struct check_object *ia =
		check_begin(&call, CHECK_CALL_pz_create, ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = dat_pz_create(check_inner(ia_handle), pz_handle);

	if (ret == DAT_SUCCESS)
		*pz_handle = check_wrap(call.name, ia, DAT_HANDLE_TYPE_PZ, *pz_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			  DAT_PZ_PARAM *pz_param)
{
	struct check_call call;
	struct check_object *pz =
		check_begin(&call, CHECK_CALL_pz_query, pz_handle, DAT_HANDLE_TYPE_PZ);
	DAT_RETURN ret = dat_pz_query(check_inner(pz_handle), pz_param_mask, pz_param);

	if (ret == DAT_SUCCESS && pz && (pz_param_mask & DAT_PZ_FIELD_IA_HANDLE))
		pz_param->ia_handle = pz->ia;
	return check_end(&call, ret);
}

DAT_RETURN check_pz_free(DAT_PZ_HANDLE pz_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_pz_free, pz_handle, DAT_HANDLE_TYPE_PZ);
	return check_end_free(&call, dat_pz_free(check_inner(pz_handle)));
}
