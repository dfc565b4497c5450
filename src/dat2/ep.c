// SPDX-License-Identifier: BSD-2-Clause
/* Endpoints and connections. */
#include "core/ep/ep.h"

#include <netinet/in.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/conn/cr.h"
#include "dat2/convert.h"
#include "dat2/front.h"

/* DAT 2.0, but not DAT 1.2. */
#define TYPE_COMM_NOT_SUPPORTED ((DAT_RETURN_TYPE)0x170000)

static DAT_RETURN ud_unsupported(void)
{
	return core_unsupported(CORE_ARG(ep_create, 6, ep_attributes),
				"service_type is that of datagrams");
}

DAT_RETURN dat2_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
			  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			  const struct dat2_ep_attr *attr, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR converted;

	if (attr && attr->service_type == DAT2_SERVICE_TYPE_UD)
		return ud_unsupported();
	if (attr)
		dat2_ep_attr_in(attr, &converted);
	return dat2_status(core_ep_create(ia, pz, recv_evd, request_evd, connect_evd,
					  attr ? &converted : NULL, ep));
}

/* 0x100 of srq_watermarks_supported */
static bool has_hard_watermark(DAT_IA_HANDLE handle)
{
	struct core_ia *ia = core_ia_enter(handle);
	bool has = true; /* a handle that is no instance is refused later */

	if (ia) {
		has = ia->provider_attr.srq_watermarks_supported & 0x100;
		core_ia_leave(ia);
	}
	return has;
}

DAT_RETURN dat2_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
				   DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
				   DAT_SRQ_HANDLE srq, const struct dat2_ep_attr *attr,
				   DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR converted;

	if (attr && attr->service_type == DAT2_SERVICE_TYPE_UD)
		return ud_unsupported();
	if (attr)
		dat2_ep_attr_in(attr, &converted);
	if (attr && attr->max_recv_dtos > 0 && !has_hard_watermark(ia)) /* D2-SRQ-09 */
		converted.max_recv_dtos = DAT_HW_DEFAULT;
	return dat2_status(core_ep_create_with_srq(ia, pz, recv_evd, request_evd, connect_evd, srq,
						   attr ? &converted : NULL, ep));
}

/* D2-EP-03: the communicator of the instance, by its address. */
static struct dat2_comm comm_of(const struct sockaddr *address)
{
	return (struct dat2_comm){address->sa_family, SOCK_STREAM, IPPROTO_TCP};
}

DAT_RETURN dat2_ep_query(DAT_EP_HANDLE ep, uint64_t mask, struct dat2_ep_param *param)
{
	DAT_EP_PARAM found;
	DAT_RETURN ret = core_ep_query(ep, DAT_EP_FIELD_ALL, param ? &found : NULL);

	(void)mask;
	if (ret != DAT_SUCCESS)
		return dat2_status_of_failure(ret);
	param->ia_handle = dat2_consumer_ia(found.ia_handle);
	param->ep_state = found.ep_state;
	param->comm = comm_of((const struct sockaddr *)found.local_ia_address_ptr);
	param->local_ia_address_ptr = found.local_ia_address_ptr;
	param->local_port_qual = found.local_port_qual;
	param->remote_ia_address_ptr = found.remote_ia_address_ptr;
	param->remote_port_qual = found.remote_port_qual;
	param->pz_handle = found.pz_handle;
	param->recv_evd_handle = found.recv_evd_handle;
	param->request_evd_handle = found.request_evd_handle;
	param->connect_evd_handle = found.connect_evd_handle;
	param->srq_handle = found.srq_handle;
	dat2_ep_attr_out(&found.ep_attr, &param->ep_attr);
	return DAT_SUCCESS;
}

/* D2-EP-04 */
static DAT_RETURN check_comm(DAT_EP_HANDLE ep, const struct dat2_comm *comm)
{
	const struct dat2_comm none = {0};
	struct dat2_ep_param param;
	DAT_RETURN ret = dat2_ep_query(ep, DAT2_EP_FIELD_COMM, &param);

	if (ret != DAT_SUCCESS || !memcmp(comm, &none, sizeof(none)) ||
	    !memcmp(comm, &param.comm, sizeof(param.comm)))
		return ret;
	return core_error(TYPE_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

/* An unknown bit becomes one that the core does not know either. */
static DAT_EP_PARAM_MASK ep_mask_in(uint64_t mask)
{
	if (mask & ~DAT2_EP_FIELD_ALL)
		return ~(DAT_EP_PARAM_MASK)0;
	return (mask & ~(DAT2_EP_FIELD_COMM | DAT2_EP_FIELD_MOVED)) |
	       (mask & DAT2_EP_FIELD_MOVED) >> 1;
}

DAT_RETURN dat2_ep_modify(DAT_EP_HANDLE ep, uint64_t mask, const struct dat2_ep_param *param)
{
	DAT_EP_PARAM converted = {0};
	DAT_RETURN ret;

	if (!param)
		return dat2_status(core_ep_modify(
			ep, mask == DAT2_EP_FIELD_COMM ? DAT_EP_FIELD_PZ_HANDLE : ep_mask_in(mask),
			NULL));
	if ((mask & DAT2_EP_FIELD_COMM) && !(mask & ~DAT2_EP_FIELD_ALL)) {
		ret = check_comm(ep, &param->comm);
		if (ret != DAT_SUCCESS)
			return ret;
	}
	converted.pz_handle = param->pz_handle;
	converted.recv_evd_handle = param->recv_evd_handle;
	converted.request_evd_handle = param->request_evd_handle;
	converted.connect_evd_handle = param->connect_evd_handle;
	dat2_ep_attr_in(&param->ep_attr, &converted.ep_attr);
	return dat2_status(core_ep_modify(ep, ep_mask_in(mask), &converted));
}

DAT_RETURN dat2_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags)
{
	if (flags == DAT2_CONNECT_MULTIPATH_REQUIRED)
		return core_unsupported(CORE_ARG(ep_connect, 8, connect_flags),
					"no adapter has multipath");
	flags &= ~(DAT_CONNECT_FLAGS)DAT2_CONNECT_MULTIPATH_REQUESTED; /* D2-EP-14 */
	return dat2_status(core_ep_connect(ep, address, qual, timeout, size, data, qos, flags));
}

DAT_RETURN dat2_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data)
{
	return dat2_status(core_cr_reject_with(cr, size, data));
}
