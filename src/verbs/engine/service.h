// SPDX-License-Identifier: BSD-2-Clause
/* The service thread of an instance. */
#ifndef VERBS_SERVICE_H
#define VERBS_SERVICE_H

#include <stdint.h>

#include "verbs/device/adapter.h"

int vrb_service_start(struct vrb_adapter *adapter);
void vrb_service_stop(struct vrb_adapter *adapter);

#endif
