// SPDX-License-Identifier: BSD-2-Clause
#include "shared/names.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAMED(value) [value] = #value

static const char unknown[] = "unknown";

static const char *const dto_statuses[] = {
	NAMED(DAT_DTO_SUCCESS),
	NAMED(DAT_DTO_ERR_FLUSHED),
	NAMED(DAT_DTO_ERR_LOCAL_LENGTH),
	NAMED(DAT_DTO_ERR_LOCAL_EP),
	NAMED(DAT_DTO_ERR_LOCAL_PROTECTION),
	NAMED(DAT_DTO_ERR_BAD_RESPONSE),
	NAMED(DAT_DTO_ERR_REMOTE_ACCESS),
	NAMED(DAT_DTO_ERR_REMOTE_RESPONDER),
	NAMED(DAT_DTO_ERR_TRANSPORT),
	NAMED(DAT_DTO_ERR_RECEIVER_NOT_READY),
	NAMED(DAT_DTO_ERR_PARTIAL_PACKET),
	NAMED(DAT_RMR_OPERATION_FAILED),
#ifdef DAT_EXTENSIONS /* the headers are those of DAT 2.0 */
	NAMED(DAT_DTO_ERR_LOCAL_MM_ERROR),
#endif
};

static const char *const ep_states[] = {
	NAMED(DAT_EP_STATE_UNCONNECTED),
	NAMED(DAT_EP_STATE_UNCONFIGURED_UNCONNECTED),
	NAMED(DAT_EP_STATE_RESERVED),
	NAMED(DAT_EP_STATE_UNCONFIGURED_RESERVED),
	NAMED(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING),
	NAMED(DAT_EP_STATE_UNCONFIGURED_PASSIVE),
	NAMED(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING),
	NAMED(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING),
	NAMED(DAT_EP_STATE_UNCONFIGURED_TENTATIVE),
	NAMED(DAT_EP_STATE_CONNECTED),
	NAMED(DAT_EP_STATE_DISCONNECT_PENDING),
	NAMED(DAT_EP_STATE_DISCONNECTED),
	NAMED(DAT_EP_STATE_COMPLETION_PENDING),
#ifdef DAT_EXTENSIONS
	NAMED(DAT_EP_STATE_CONNECTED_SINGLE_PATH),
	NAMED(DAT_EP_STATE_CONNECTED_MULTI_PATH),
#endif
};

static const char *const srq_states[] = {
	NAMED(DAT_SRQ_STATE_OPERATIONAL),
	NAMED(DAT_SRQ_STATE_ERROR),
#ifdef DAT_EXTENSIONS
	NAMED(DAT_SRQ_STATE_SHUTDOWN),
#endif
};

static const char *const objects[] = {
	[DAT_HANDLE_TYPE_CR] = "cr",   [DAT_HANDLE_TYPE_EP] = "ep",   [DAT_HANDLE_TYPE_EVD] = "evd",
	[DAT_HANDLE_TYPE_IA] = "ia",   [DAT_HANDLE_TYPE_LMR] = "lmr", [DAT_HANDLE_TYPE_PSP] = "psp",
	[DAT_HANDLE_TYPE_PZ] = "pz",   [DAT_HANDLE_TYPE_RMR] = "rmr", [DAT_HANDLE_TYPE_RSP] = "rsp",
	[DAT_HANDLE_TYPE_CNO] = "cno", [DAT_HANDLE_TYPE_SRQ] = "srq",
};

static const char *name_at(const char *const *names, size_t count, unsigned int value)
{
	return value < count && names[value] ? names[value] : unknown;
}

const char *opendat_event_name(DAT_EVENT_NUMBER number)
{
#define CASE(value)                                                                                \
	case value:                                                                                \
		return #value
	switch (number) {
		CASE(DAT_DTO_COMPLETION_EVENT);
		CASE(DAT_RMR_BIND_COMPLETION_EVENT);
		CASE(DAT_CONNECTION_REQUEST_EVENT);
		CASE(DAT_CONNECTION_EVENT_ESTABLISHED);
		CASE(DAT_CONNECTION_EVENT_PEER_REJECTED);
		CASE(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		CASE(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		CASE(DAT_CONNECTION_EVENT_DISCONNECTED);
		CASE(DAT_CONNECTION_EVENT_BROKEN);
		CASE(DAT_CONNECTION_EVENT_TIMED_OUT);
		CASE(DAT_CONNECTION_EVENT_UNREACHABLE);
		CASE(DAT_ASYNC_ERROR_EVD_OVERFLOW);
		CASE(DAT_ASYNC_ERROR_IA_CATASTROPHIC);
		CASE(DAT_ASYNC_ERROR_EP_BROKEN);
		CASE(DAT_ASYNC_ERROR_TIMED_OUT);
		CASE(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
		CASE(DAT_SOFTWARE_EVENT);
#ifdef DAT_EXTENSIONS
		CASE(DAT_HA_DOWN_TO_1);
		CASE(DAT_HA_UP_TO_MULTI_PATH);
		CASE(DAT_EXTENSION_EVENT);
		CASE(DAT_IB_EXTENSION_RANGE_BASE);
		CASE(DAT_IW_EXTENSION_RANGE_BASE);
#endif
	}
#undef CASE
	return unknown;
}

const char *opendat_dto_status_name(DAT_DTO_COMPLETION_STATUS status)
{
	return name_at(dto_statuses, COUNT(dto_statuses), (unsigned int)status);
}

const char *opendat_ep_state_name(DAT_EP_STATE state)
{
	return name_at(ep_states, COUNT(ep_states), (unsigned int)state);
}

const char *opendat_srq_state_name(DAT_SRQ_STATE state)
{
	return name_at(srq_states, COUNT(srq_states), (unsigned int)state);
}

const char *opendat_object_name(DAT_HANDLE_TYPE type)
{
	return name_at(objects, COUNT(objects), (unsigned int)type);
}
