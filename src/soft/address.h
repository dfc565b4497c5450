// SPDX-License-Identifier: BSD-2-Clause
/*
 * The address of the adapter (a network interface or an address), and whether an address is on this
 * host.
 */
#ifndef SOFT_ADDRESS_H
#define SOFT_ADDRESS_H

#include "core/base/instance.h"

/* The address of a device: an interface that is up, or an address of this host. -ENODEV. */
int soft_address_of_device(const char *device, union core_sockaddr *address_out);

/* A GUID made from the MAC address of the interface that has the address; zeros if it has none. */
void soft_address_guid(const union core_sockaddr *address, uint8_t guid[8]);

/* Are they equal apart from their ports? */
bool soft_address_is_same(const union core_sockaddr *a, const union core_sockaddr *b);

/* Is it a loopback address, which no other host and no other network namespace can reach? */
bool soft_address_is_loopback(const union core_sockaddr *address);

/*
 * Where is that address? 0: on this host; -EHOSTUNREACH: elsewhere; -EAFNOSUPPORT; -EADDRNOTAVAIL:
 * no endpoint can have it (broadcast, multicast, unspecified). Ignores the port.
 */
int soft_address_find(const union core_sockaddr *address);

#endif
