// SPDX-License-Identifier: BSD-2-Clause
/* Endpoint attributes: defaults, and the checks that dat_ep_create and dat_ep_modify share. */
#include "core/ep/ep.h"

#include <string.h>

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

static bool attr_counts_fit(const DAT_IA_ATTR *limit, const DAT_EP_ATTR *attr, bool has_srq)
{
	const struct {
		DAT_COUNT value;
		DAT_COUNT max;
	} counts[] = {
		/* EP-CRSRQ-26: with an SRQ, max_recv_dtos is a watermark */
		{has_srq ? 0 : attr->max_recv_dtos, limit->max_dto_per_ep},
		{attr->max_request_dtos, limit->max_dto_per_ep},
		{has_srq ? 0 : attr->max_recv_iov, limit->max_iov_segments_per_dto},
		{attr->max_request_iov, limit->max_iov_segments_per_dto},
		{attr->max_rdma_read_in, limit->max_rdma_read_per_ep_in},
		{attr->max_rdma_read_out, limit->max_rdma_read_per_ep_out},
		{attr->max_rdma_read_iov, limit->max_iov_segments_per_rdma_read},
		{attr->max_rdma_write_iov, limit->max_iov_segments_per_rdma_write},
		/* no named attribute is supported */
		{attr->ep_transport_specific_count, 0},
		{attr->ep_provider_specific_count, 0},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].value < 0 || counts[i].value > counts[i].max)
			return false;
	return attr->max_request_iov > 0 && attr->max_message_size <= limit->max_message_size &&
	       attr->max_rdma_size <= limit->max_rdma_size;
}

static bool attr_flags_are_good(const DAT_EP_ATTR *attr)
{
	DAT_COMPLETION_FLAGS recv = attr->recv_completion_flags;
	DAT_COMPLETION_FLAGS request = attr->request_completion_flags;

	if (recv != DAT_COMPLETION_DEFAULT_FLAG && recv != DAT_COMPLETION_UNSIGNALLED_FLAG &&
	    recv != DAT_COMPLETION_SOLICITED_WAIT_FLAG && recv != DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		return false;
	request &= ~(DAT_COMPLETION_FLAGS)ATTR_REQUEST_FREE;
	return request == DAT_COMPLETION_DEFAULT_FLAG ||
	       request == DAT_COMPLETION_UNSIGNALLED_FLAG ||
	       request == DAT_COMPLETION_EVD_THRESHOLD_FLAG;
}

DAT_RETURN core_ep_attr_check(struct core_ia *ia, const DAT_EP_ATTR *attr, bool has_srq,
			      unsigned int arg)
{
	if (attr->service_type != DAT_SERVICE_TYPE_RC || (attr->qos & ~ATTR_QOS_ALL))
		return core_bad_arg(arg);
	if (has_srq && (attr->max_recv_dtos < DAT_HW_DEFAULT || attr->srq_soft_hw < DAT_HW_DEFAULT))
		return core_bad_arg(arg);
	if (!attr_counts_fit(&ia->attr, attr, has_srq) || !attr_flags_are_good(attr))
		return core_bad_arg(arg);
	if (attr->qos != DAT_QOS_BEST_EFFORT)
		return core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

DAT_RETURN core_ep_attr_check_requests(const DAT_EP_ATTR *attr, bool has_request, unsigned int arg)
{
	return has_request == (attr->max_request_dtos > 0) ? DAT_SUCCESS : core_bad_arg(arg);
}

DAT_RETURN core_ep_attr_check_pairs(const DAT_EP_ATTR *attr, bool has_recv, bool has_request,
				    unsigned int arg)
{
	if (has_recv != (attr->max_recv_dtos > 0))
		return core_bad_arg(arg);
	if (has_recv && !attr->max_recv_iov)
		return core_bad_arg(arg);
	return core_ep_attr_check_requests(attr, has_request, arg);
}
