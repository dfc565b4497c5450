// SPDX-License-Identifier: BSD-2-Clause
/*
 * What programs of DAT 1.2 need beside the posts of dto.h for the operations that it lacks:
 * <dat/opendat.h> describes the calls.
 */
#ifndef CORE_EXTRA_H
#define CORE_EXTRA_H

#include <dat/opendat.h>

/* dat_opendat_ep_take_immediate */
DAT_RETURN core_ep_take_immediate(DAT_EP_HANDLE ep_handle);

/* dat_opendat_dto_data */
DAT_RETURN core_dto_data(const DAT_EVENT *event, DAT_OPENDAT_DTO_DATA *data);

#endif
