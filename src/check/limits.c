// SPDX-License-Identifier: BSD-2-Clause
/* Numbers above what common RDMA devices have. */
#include "check/limits.h"

#include "check/report.h"

struct limit {
	DAT_COUNT most;
	const char *who;
};

#define LIMIT_ENTRY(identifier, most, who) [CHECK_LIMIT_##identifier] = {most, who},
static const struct limit limits[CHECK_LIMIT_COUNT] = {CHECK_LIMITS(LIMIT_ENTRY)};

void check_limit(const struct check_call *call, struct check_object *object, enum check_limit limit,
		 const char *name, DAT_COUNT number)
{
	if (number > limits[limit].most)
		check_report(call, CHECK_LARGE_COUNT, object,
			     "%s %d: common devices have at most %d (%s)", name, number,
			     limits[limit].most, limits[limit].who);
}

void check_limit_ep(const struct check_call *call, struct check_object *ep, const DAT_EP_ATTR *attr,
		    DAT_EP_PARAM_MASK mask)
{
#define ATTRIBUTE(FIELD, member, LIMIT)                                                            \
	{                                                                                          \
		DAT_EP_FIELD_EP_ATTR_##FIELD, CHECK_LIMIT_##LIMIT, #member, attr->member           \
	}
	const struct {
		DAT_EP_PARAM_MASK field;
		enum check_limit limit;
		const char *name;
		DAT_COUNT number;
	} numbers[] = {
		ATTRIBUTE(MAX_RECV_DTOS, max_recv_dtos, REQUESTS),
		ATTRIBUTE(MAX_REQUEST_DTOS, max_request_dtos, REQUESTS),
		ATTRIBUTE(MAX_RECV_IOV, max_recv_iov, SEGMENTS),
		ATTRIBUTE(MAX_REQUEST_IOV, max_request_iov, SEGMENTS),
		ATTRIBUTE(MAX_RDMA_READ_IOV, max_rdma_read_iov, SEGMENTS),
		ATTRIBUTE(MAX_RDMA_WRITE_IOV, max_rdma_write_iov, SEGMENTS),
		ATTRIBUTE(MAX_RDMA_READ_IN, max_rdma_read_in, READS),
		ATTRIBUTE(MAX_RDMA_READ_OUT, max_rdma_read_out, READS),
	};
#undef ATTRIBUTE

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (mask & numbers[i].field)
			check_limit(call, ep, numbers[i].limit, numbers[i].name, numbers[i].number);
}
