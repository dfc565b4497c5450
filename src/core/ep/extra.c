// SPDX-License-Identifier: BSD-2-Clause
/* The note of a completion, and immediate data, for programs of DAT 1.2. */
#include "core/ep/extra.h"

#include "core/base/cancel.h"
#include "core/base/transport_param.h"
#include "core/ep/ep.h"
#include "core/ep/ep_counts.h"
#include "core/ep/ep_state.h"
#include "core/event/evd.h"

_Static_assert(CORE_MEM_PRIV_REMOTE_ATOMIC == DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC,
	       "one bit in both generations");

DAT_RETURN core_ep_take_immediate(DAT_EP_HANDLE ep_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ep *ep = core_handle_lock(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return core_bad_handle(CORE_ARG(opendat_ep_take_immediate, 1, ep_handle),
				       DAT_INVALID_HANDLE_EP, ep_handle);
	if (core_ep_check_call(ep, CORE_CALL_MODIFY) == CORE_EP_OK)
		ep->takes |= TRANSPORT_TAKES_IMMEDIATE;
	else
		ret = core_ep_bad_state(ep);
	core_handle_unlock(ep->cell);
	return ret;
}

DAT_RETURN core_dto_data(const DAT_EVENT *event, DAT_OPENDAT_DTO_DATA *data)
{
	static const uint8_t operations[] = {
		[CORE_OP_SEND] = DAT_OPENDAT_OP_SEND,
		[CORE_OP_RDMA_WRITE] = DAT_OPENDAT_OP_RDMA_WRITE,
		[CORE_OP_RDMA_READ] = DAT_OPENDAT_OP_RDMA_READ,
		[CORE_OP_SEND_INVALIDATE] = DAT_OPENDAT_OP_SEND_INVALIDATE,
		[CORE_OP_WRITE_IMMEDIATE] = DAT_OPENDAT_OP_RDMA_WRITE_IMMED,
		[CORE_OP_FETCH_ADD] = DAT_OPENDAT_OP_FETCH_AND_ADD,
		[CORE_OP_COMPARE_SWAP] = DAT_OPENDAT_OP_CMP_AND_SWAP,
		[CORE_RECEIVED] = DAT_OPENDAT_OP_RECEIVE,
		[CORE_RECEIVED_IMMEDIATE] = DAT_OPENDAT_OP_RECEIVE_IMMED,
		[CORE_RECEIVED_INVALIDATE] = DAT_OPENDAT_OP_RECEIVE_INVALIDATE,
	};
	const struct core_note *note = (const struct core_note *)event;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT || note->op >= sizeof(operations) ||
	    !operations[note->op])
		return core_bad_arg(CORE_ARG(opendat_dto_data, 1, event),
				    "event_number 0x%x, which the library has not filled in as "
				    "DAT_DTO_COMPLETION_EVENT",
				    (unsigned int)event->event_number);
	if (!data)
		return core_bad_null(CORE_ARG(opendat_dto_data, 2, data));
	if (data->size < sizeof(*data))
		return core_bad_arg(CORE_ARG(opendat_dto_data, 2, data), "size %u is less than %zu",
				    data->size, sizeof(*data));
	data->operation = operations[note->op];
	data->value = note->op == CORE_RECEIVED_IMMEDIATE || note->op == CORE_RECEIVED_INVALIDATE
			      ? note->value
			      : 0;
	return DAT_SUCCESS;
}
