// SPDX-License-Identifier: BSD-2-Clause
/* Devices: addresses, life, limits. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/instance.h"
#include "verbs/device/adapter.h"

/* The address of the device with that name, that netdev, or that address. */
int vrb_address_of_device(const char *device, uint32_t port, union core_sockaddr *address_out);
/* Returns 0 if a peer can have that address, else a negative errno. */
int vrb_address_check(const union core_sockaddr *address);

/* Makes an instance without a device; the caller has one reference. */
int vrb_adapter_create(struct core_ia *ia, struct vrb_adapter **adapter_out);

/*
 * Between these two, no library makes a descriptor 0, 1 or 2 (shared/fd.h). Threads may open
 * devices at the same time: what one has opened stays until the last one is done.
 */
void vrb_fds_fill(void);
void vrb_fds_unfill(void);

int vrb_device_open(struct vrb_adapter *adapter);
void vrb_device_close(struct vrb_adapter *adapter);
/* Is the port's link up? */
bool vrb_device_is_up(struct vrb_adapter *adapter);

/* Fills the adapter's limits and the IA's attributes. */
int vrb_device_limits(struct vrb_adapter *adapter);

#endif
