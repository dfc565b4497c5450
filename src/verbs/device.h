// SPDX-License-Identifier: BSD-2-Clause
/* Devices: their addresses (address.c), limits (limits.c), life and events (device.c). */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/instance.h"
#include "verbs/adapter.h"

#define VRB_READS_MAX 254u /* 255 means "as many as the device has" to librdmacm */

/* The address of the device with that name, that netdev, or that address. */
int vrb_address_of_device(const char *device, uint32_t port, union core_sockaddr *address_out);
/* Returns 0 if a peer can have that address, else a negative errno. */
int vrb_address_check(const union core_sockaddr *address);

int vrb_device_open(struct vrb_adapter *adapter);
void vrb_device_close(struct vrb_adapter *adapter);
/* Is the port's link up? */
bool vrb_device_is_up(struct vrb_adapter *adapter);
/* Reads the device's events and handles those of single queue pairs; service thread. */
void vrb_device_read_events(struct vrb_adapter *adapter);
/* Handles the events of the whole device that were read; service thread. */
void vrb_device_handle_events(struct vrb_adapter *adapter);

/* Fills the adapter's limits and the IA's attributes. */
int vrb_device_limits(struct vrb_adapter *adapter);

#endif
