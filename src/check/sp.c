// SPDX-License-Identifier: BSD-2-Clause
/* Service points, public and reserved. */
#include "check/object.h"

DAT_RETURN check_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			    DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			    DAT_PSP_HANDLE *psp_handle)
{
	struct check_call call;
	struct check_object *ia =
		check_begin(&call, CHECK_CALL_psp_create, ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = dat_psp_create(check_inner(ia_handle), conn_qual, check_inner(evd_handle),
					psp_flags, psp_handle);

	if (ret == DAT_SUCCESS)
		*psp_handle = check_wrap(call.name, ia, DAT_HANDLE_TYPE_PSP, *psp_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
				DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				DAT_PSP_HANDLE *psp_handle)
{
	struct check_call call;
	struct check_object *ia =
		check_begin(&call, CHECK_CALL_psp_create_any, ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = dat_psp_create_any(check_inner(ia_handle), conn_qual,
					    check_inner(evd_handle), psp_flags, psp_handle);

	if (ret == DAT_SUCCESS)
		*psp_handle = check_wrap(call.name, ia, DAT_HANDLE_TYPE_PSP, *psp_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			   DAT_PSP_PARAM *psp_param)
{
	struct check_call call;
	struct check_object *psp =
		check_begin(&call, CHECK_CALL_psp_query, psp_handle, DAT_HANDLE_TYPE_PSP);
	DAT_RETURN ret = dat_psp_query(check_inner(psp_handle), psp_param_mask, psp_param);

	if (ret == DAT_SUCCESS && psp && (psp_param_mask & DAT_PSP_FIELD_IA_HANDLE))
		psp_param->ia_handle = psp->ia;
	if (ret == DAT_SUCCESS && psp && (psp_param_mask & DAT_PSP_FIELD_EVD_HANDLE))
		psp_param->evd_handle = check_outer(psp_param->evd_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_psp_free(DAT_PSP_HANDLE psp_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_psp_free, psp_handle, DAT_HANDLE_TYPE_PSP);
	return check_end_free(&call, dat_psp_free(check_inner(psp_handle)));
}

DAT_RETURN check_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			    DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			    DAT_RSP_HANDLE *rsp_handle)
{
	struct check_call call;
	struct check_object *ia =
		check_begin(&call, CHECK_CALL_rsp_create, ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = dat_rsp_create(check_inner(ia_handle), conn_qual, check_inner(ep_handle),
					check_inner(evd_handle), rsp_handle);

	if (ret == DAT_SUCCESS)
		*rsp_handle = check_wrap(call.name, ia, DAT_HANDLE_TYPE_RSP, *rsp_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			   DAT_RSP_PARAM *rsp_param)
{
	struct check_call call;
	struct check_object *rsp =
		check_begin(&call, CHECK_CALL_rsp_query, rsp_handle, DAT_HANDLE_TYPE_RSP);
	DAT_RETURN ret = dat_rsp_query(check_inner(rsp_handle), rsp_param_mask, rsp_param);

	if (ret == DAT_SUCCESS && rsp && (rsp_param_mask & DAT_RSP_FIELD_IA_HANDLE))
		rsp_param->ia_handle = rsp->ia;
	if (ret == DAT_SUCCESS && rsp && (rsp_param_mask & DAT_RSP_FIELD_EVD_HANDLE))
		rsp_param->evd_handle = check_outer(rsp_param->evd_handle);
	if (ret == DAT_SUCCESS && rsp && (rsp_param_mask & DAT_RSP_FIELD_EP_HANDLE))
		rsp_param->ep_handle = check_outer(rsp_param->ep_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_rsp_free, rsp_handle, DAT_HANDLE_TYPE_RSP);
	return check_end_free(&call, dat_rsp_free(check_inner(rsp_handle)));
}
