// SPDX-License-Identifier: BSD-2-Clause
/* Endpoint attributes: defaults, and the checks that dat_ep_create and dat_ep_modify share. */
#include "core/ep/ep.h"
#include "core/ep/ep_attr.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/status.h"

#define ATTR_DTOS 16 /* defaults: EP-CREATE-31 */
#define ATTR_IOV 4
#define ATTR_READS 8

#define ATTR_QOS_ALL                                                                               \
	(DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY | DAT_QOS_PREMIUM)
/* EP-CREATE-63: flags that every request supports are accepted in the request flags. */
#define ATTR_REQUEST_FREE                                                                          \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |                       \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)

static DAT_COUNT at_most(DAT_COUNT value, DAT_COUNT limit)
{
	return value < limit ? value : limit;
}

void core_ep_attr_defaults(struct core_ia *ia, bool has_recv, bool has_request, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *limit = &ia->attr;

	memset(attr, 0, sizeof(*attr));
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr->request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr->max_recv_dtos = has_recv ? at_most(ATTR_DTOS, limit->max_dto_per_ep) : 0;
	attr->max_request_dtos = has_request ? at_most(ATTR_DTOS, limit->max_dto_per_ep) : 0;
	attr->max_recv_iov = at_most(ATTR_IOV, limit->max_iov_segments_per_dto);
	attr->max_request_iov = at_most(ATTR_IOV, limit->max_iov_segments_per_dto);
	attr->max_rdma_read_in = at_most(ATTR_READS, limit->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out = at_most(ATTR_READS, limit->max_rdma_read_per_ep_out);
	attr->srq_soft_hw = DAT_HW_DEFAULT;
	core_ep_attr_fill(ia, attr);
}

void core_ep_attr_fill(struct core_ia *ia, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *limit = &ia->attr;

	if (!attr->max_message_size)
		attr->max_message_size = limit->max_message_size;
	if (!attr->max_rdma_size)
		attr->max_rdma_size = limit->max_rdma_size;
	if (!attr->max_rdma_read_iov)
		attr->max_rdma_read_iov = at_most(ATTR_IOV, limit->max_iov_segments_per_rdma_read);
	if (!attr->max_rdma_write_iov)
		attr->max_rdma_write_iov =
			at_most(ATTR_IOV, limit->max_iov_segments_per_rdma_write);
}

static DAT_RETURN attr_check_counts(const DAT_IA_ATTR *limit, const DAT_EP_ATTR *attr, bool has_srq,
				    const struct core_arg *arg)
{
#define COUNT(member, min, limit)                                                                  \
	{                                                                                          \
		attr->member, min, limit, #member                                                  \
	}
	const struct {
		DAT_COUNT value, min, max;
		const char *name;
	} counts[] = {
		COUNT(max_request_dtos, 0, limit->max_dto_per_ep),
		COUNT(max_request_iov, 1, limit->max_iov_segments_per_dto),
		COUNT(max_rdma_read_in, 0, limit->max_rdma_read_per_ep_in),
		COUNT(max_rdma_read_out, 0, limit->max_rdma_read_per_ep_out),
		COUNT(max_rdma_read_iov, 0, limit->max_iov_segments_per_rdma_read),
		COUNT(max_rdma_write_iov, 0, limit->max_iov_segments_per_rdma_write),
		/* no named attribute is supported */
		COUNT(ep_transport_specific_count, 0, 0),
		COUNT(ep_provider_specific_count, 0, 0),
		/* the last two: EP-CRSRQ-26: with an SRQ, max_recv_dtos is a watermark */
		COUNT(max_recv_dtos, 0, limit->max_dto_per_ep),
		COUNT(max_recv_iov, 0, limit->max_iov_segments_per_dto),
	};
#undef COUNT
	size_t checked = sizeof(counts) / sizeof(counts[0]) - (has_srq ? 2 : 0);

	for (size_t i = 0; i < checked; i++)
		if (counts[i].value < counts[i].min || counts[i].value > counts[i].max)
			return core_bad_arg(arg, "%s %d is not from %d to %d", counts[i].name,
					    (int)counts[i].value, (int)counts[i].min,
					    (int)counts[i].max);
	return DAT_SUCCESS;
}

static DAT_RETURN attr_check_sizes(const DAT_IA_ATTR *limit, const DAT_EP_ATTR *attr,
				   const struct core_arg *arg)
{
	if (attr->max_message_size > limit->max_message_size)
		return core_bad_arg(arg, "max_message_size %" PRIu64 " exceeds %" PRIu64,
				    attr->max_message_size, limit->max_message_size);
	if (attr->max_rdma_size > limit->max_rdma_size)
		return core_bad_arg(arg, "max_rdma_size %" PRIu64 " exceeds %" PRIu64,
				    attr->max_rdma_size, limit->max_rdma_size);
	return DAT_SUCCESS;
}

static DAT_RETURN attr_check_flags(const DAT_EP_ATTR *attr, const struct core_arg *arg)
{
	DAT_COMPLETION_FLAGS recv = attr->recv_completion_flags;
	DAT_COMPLETION_FLAGS request = attr->request_completion_flags;

	if (recv != DAT_COMPLETION_DEFAULT_FLAG && recv != DAT_COMPLETION_UNSIGNALLED_FLAG &&
	    recv != DAT_COMPLETION_SOLICITED_WAIT_FLAG && recv != DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		return core_bad_arg(arg,
				    "recv_completion_flags 0x%x are not one of the flags for it",
				    (unsigned int)recv);
	request &= ~(DAT_COMPLETION_FLAGS)ATTR_REQUEST_FREE;
	if (request != DAT_COMPLETION_DEFAULT_FLAG && request != DAT_COMPLETION_UNSIGNALLED_FLAG &&
	    request != DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		return core_bad_arg(arg,
				    "request_completion_flags 0x%x are not one of the flags for it",
				    (unsigned int)attr->request_completion_flags);
	return DAT_SUCCESS;
}

static DAT_RETURN attr_check_kind(const DAT_EP_ATTR *attr, bool has_srq, const struct core_arg *arg)
{
	if (attr->service_type != DAT_SERVICE_TYPE_RC)
		return core_bad_arg(arg, "service_type %d is not DAT_SERVICE_TYPE_RC",
				    (int)attr->service_type);
	if (attr->qos & ~ATTR_QOS_ALL)
		return core_bad_arg(arg, "qos 0x%x is no DAT_QOS", (unsigned int)attr->qos);
	if (has_srq && (attr->max_recv_dtos < DAT_HW_DEFAULT || attr->srq_soft_hw < DAT_HW_DEFAULT))
		return core_bad_arg(arg, "max_recv_dtos %d or srq_soft_hw %d is negative",
				    (int)attr->max_recv_dtos, (int)attr->srq_soft_hw);
	return DAT_SUCCESS;
}

DAT_RETURN core_ep_attr_check(struct core_ia *ia, const DAT_EP_ATTR *attr, bool has_srq,
			      const struct core_arg *arg)
{
	DAT_RETURN ret = attr_check_kind(attr, has_srq, arg);

	if (ret == DAT_SUCCESS)
		ret = attr_check_counts(&ia->attr, attr, has_srq, arg);
	if (ret == DAT_SUCCESS)
		ret = attr_check_sizes(&ia->attr, attr, arg);
	if (ret == DAT_SUCCESS)
		ret = attr_check_flags(attr, arg);
	if (ret == DAT_SUCCESS && attr->qos != DAT_QOS_BEST_EFFORT)
		ret = core_unsupported(arg, "qos is not DAT_QOS_BEST_EFFORT");
	return ret;
}

DAT_RETURN core_ep_attr_check_requests(const DAT_EP_ATTR *attr, bool has_request,
				       const struct core_arg *arg)
{
	if (has_request == (attr->max_request_dtos > 0))
		return DAT_SUCCESS;
	return core_bad_arg(arg, "max_request_dtos is %d, %s an EVD for requests",
			    (int)attr->max_request_dtos, has_request ? "with" : "without");
}

DAT_RETURN core_ep_attr_check_pairs(const DAT_EP_ATTR *attr, bool has_recv, bool has_request,
				    const struct core_arg *arg)
{
	if (has_recv != (attr->max_recv_dtos > 0))
		return core_bad_arg(arg, "max_recv_dtos is %d, %s an EVD for receives",
				    (int)attr->max_recv_dtos, has_recv ? "with" : "without");
	if (has_recv && !attr->max_recv_iov)
		return core_bad_arg(arg, "max_recv_iov is 0, with an EVD for receives");
	return core_ep_attr_check_requests(attr, has_request, arg);
}

DAT_RETURN core_ep_attr_default(DAT_IA_HANDLE ia_handle, DAT_EP_ATTR *ep_attr)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);

	if (!ia)
		return core_bad_handle(CORE_ARG(opendat_ep_attr_default, 1, ia_handle),
				       DAT_INVALID_HANDLE_IA, ia_handle);
	if (ep_attr)
		core_ep_attr_defaults(ia, true, true, ep_attr);
	core_ia_leave(ia);
	return ep_attr ? DAT_SUCCESS : core_bad_null(CORE_ARG(opendat_ep_attr_default, 2, ep_attr));
}
