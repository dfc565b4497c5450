// SPDX-License-Identifier: BSD-2-Clause
/* The names of events, statuses and states, for consumers. */
#include "api.h"
#include "shared/names.h"

const char *dat_opendat_event_name(DAT_EVENT_NUMBER event_number)
{
	return opendat_event_name(event_number);
}

const char *dat_opendat_dto_status_name(DAT_DTO_COMPLETION_STATUS status)
{
	return opendat_dto_status_name(status);
}

const char *dat_opendat_ep_state_name(DAT_EP_STATE ep_state)
{
	return opendat_ep_state_name(ep_state);
}

const char *dat_opendat_srq_state_name(DAT_SRQ_STATE srq_state)
{
	return opendat_srq_state_name(srq_state);
}
