// SPDX-License-Identifier: BSD-2-Clause
/* The service thread of an instance (service.c). */
#ifndef VERBS_SERVICE_H
#define VERBS_SERVICE_H

#include <stdint.h>

#include "verbs/adapter.h"

int vrb_service_start(struct vrb_adapter *adapter);
void vrb_service_stop(struct vrb_adapter *adapter);
/* Wakes the thread. */
void vrb_service_wake(struct vrb_adapter *adapter);

#endif
