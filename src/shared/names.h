// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of events, statuses and states, as the public headers write them. libdat exports them
 * (dat/opendat.h); the provider libraries log them; dat_stat shows types of objects. A value
 * without a name has the text "unknown".
 */
#ifndef SHARED_NAMES_H
#define SHARED_NAMES_H

#include <dat/udat.h>

const char *opendat_event_name(DAT_EVENT_NUMBER number);
const char *opendat_dto_status_name(DAT_DTO_COMPLETION_STATUS status);
const char *opendat_ep_state_name(DAT_EP_STATE state);
const char *opendat_srq_state_name(DAT_SRQ_STATE state);
/* The short name of a type of object: "ep". */
const char *opendat_object_name(DAT_HANDLE_TYPE type);

#endif
