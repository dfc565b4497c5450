// SPDX-License-Identifier: BSD-2-Clause
#include "dat2/convert.h"

#include <string.h>

#include "core/event/evd.h"
#include "core/ep/ep_counts.h"
#include "shared/opendat.h"

/* --- return codes --- */

DAT_RETURN dat2_status_of_failure(DAT_RETURN ret)
{
	uint32_t subtype = ret & 0xffff;

	/* DAT 2.0 has put in DAT_INVALID_HANDLE_CSP and DAT_INVALID_STATE_SRQ_SHUTDOWN */
	if (subtype >= DAT_PRIVILEGES_READ)
		return ret + 2;
	return subtype >= DAT_INVALID_HANDLE1 ? ret + 1 : ret;
}

DAT_RETURN dat2_shift_arg(DAT_RETURN ret, unsigned int first, unsigned int count)
{
	DAT_RETURN arg = ret - core_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);

	return arg <= DAT_INVALID_ARG10 - DAT_INVALID_ARG1 && arg + 1 >= first ? ret + count : ret;
}

DAT_IA_HANDLE dat2_consumer_ia(DAT_IA_HANDLE ia_handle)
{
	struct core_handle *cell = (struct core_handle *)ia_handle;
	DAT_IA_HANDLE consumer = DAT_HANDLE_NULL;
	struct core_ia *ia;

	if (!core_handle_is_cell(ia_handle))
		return ia_handle;
	consumer = atomic_load(&cell->consumer);
	if (consumer)
		return consumer;
	/* the reference registry does not tell the handle; it has to be asked */
	ia = core_ia_enter(ia_handle);
	if (ia && ia->adapter->registry_ia_handle &&
	    ia->adapter->registry_ia_handle((unsigned long)ia_handle, &consumer) == DAT_SUCCESS)
		atomic_store(&cell->consumer, consumer);
	if (ia)
		core_ia_leave(ia);
	return consumer ? consumer : ia_handle;
}

/* --- attributes of endpoints --- */

#define EP_ATTR_SAME(TAKE)                                                                         \
	TAKE(service_type)                                                                         \
	TAKE(qos)                                                                                  \
	TAKE(recv_completion_flags)                                                                \
	TAKE(request_completion_flags)                                                             \
	TAKE(max_recv_dtos)                                                                        \
	TAKE(max_request_dtos)                                                                     \
	TAKE(max_recv_iov)                                                                         \
	TAKE(max_request_iov)                                                                      \
	TAKE(max_rdma_read_in)                                                                     \
	TAKE(max_rdma_read_out)                                                                    \
	TAKE(srq_soft_hw)                                                                          \
	TAKE(max_rdma_read_iov)                                                                    \
	TAKE(max_rdma_write_iov)                                                                   \
	TAKE(ep_transport_specific_count)                                                          \
	TAKE(ep_transport_specific)                                                                \
	TAKE(ep_provider_specific_count)                                                           \
	TAKE(ep_provider_specific)
#define TAKE(member) to->member = from->member;

void dat2_ep_attr_in(const struct dat2_ep_attr *from, DAT_EP_ATTR *to)
{
	EP_ATTR_SAME(TAKE)
	to->max_message_size = from->max_message_size;
	to->max_rdma_size = from->max_rdma_size;
}

void dat2_ep_attr_out(const DAT_EP_ATTR *from, struct dat2_ep_attr *to)
{
	EP_ATTR_SAME(TAKE)
	to->max_message_size = dat2_length(from->max_message_size);
	to->max_rdma_size = dat2_length(from->max_rdma_size);
}

/* --- events --- */

const struct dat2_kind dat2_kinds[] = {
	[CORE_OP_SEND] = {DAT2_SEND, false, 0},
	[CORE_OP_RDMA_WRITE] = {DAT2_RDMA_WRITE, false, 0},
	[CORE_OP_RDMA_READ] = {DAT2_RDMA_READ, false, 0},
	[CORE_OP_SEND_INVALIDATE] = {DAT2_SEND, false, 0},
	[CORE_RECEIVED] = {DAT2_RECEIVE, false, 0},
	[CORE_RECEIVED_INVALIDATE] = {DAT2_RECEIVE_WITH_INVALIDATE, true, 0},
	[CORE_OP_WRITE_IMMEDIATE] = {DAT2_IB_RDMA_WRITE_IMMED, true, DAT2_IB_TYPE_WRITE_IMMED},
	[CORE_RECEIVED_IMMEDIATE] = {DAT2_IB_RECV_IMMED, true, DAT2_IB_TYPE_WRITE_IMMED_DATA},
	[CORE_OP_FETCH_ADD] = {DAT2_IB_FETCH_ADD, true, DAT2_IB_TYPE_FETCH_ADD},
	[CORE_OP_COMPARE_SWAP] = {DAT2_IB_CMP_SWAP, true, DAT2_IB_TYPE_CMP_SWAP},
};

/* D2-DTO-10, D2-EXT-08 to D2-EXT-14 */
void dat2_value_out(const struct core_note *from, struct dat2_event *to)
{
	if (from->op == CORE_RECEIVED_INVALIDATE) {
		to->data.dto.rmr_context = from->value;
		return;
	}
	to->event_number = DAT2_IB_DTO_EVENT;
	memset(&to->extension, 0, sizeof(to->extension));
	to->extension.ib.type = dat2_kinds[from->op].type;
	to->extension.ib.status = from->status != DAT_DTO_SUCCESS; /* DAT_IB_OP_ERR */
	if (from->op == CORE_RECEIVED_IMMEDIATE)
		to->extension.ib.immediate = from->value;
}

static void cr_arrival_out(const DAT_CR_ARRIVAL_EVENT_DATA *from, struct dat2_cr_arrival_data *to)
{
	to->sp_handle = from->sp_handle;
	to->local_ia_address_ptr = from->local_ia_address_ptr;
	to->conn_qual = from->conn_qual;
	to->cr_handle = from->cr_handle;
	to->truncate_flag = DAT_FALSE;
}

void dat2_event_out_other(DAT_EVENT *from, struct dat2_event *to)
{
	const DAT_EVENT_DATA *data = &from->event_data;

	to->event_number = from->event_number;
	to->evd_handle = from->evd_handle;
	switch (from->event_number) {
	case DAT_RMR_BIND_COMPLETION_EVENT:
		to->data.bind = data->rmr_completion_event_data;
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		cr_arrival_out(&data->cr_arrival_event_data, &to->data.cr_arrival);
		break;
	case DAT_SOFTWARE_EVENT:
		to->data.software = data->software_event_data;
		break;
	default:
		if (opendat_event_is_async(from->event_number))
			to->data.asynch = data->asynch_error_event_data;
		else
			to->data.connection = data->connect_event_data;
	}
}
