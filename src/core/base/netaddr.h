// SPDX-License-Identifier: BSD-2-Clause
/* Network addresses, as far as every transport understands them the same way. */
#ifndef CORE_NETADDR_H
#define CORE_NETADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

union core_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

/* What the system's calls want to know beside the address, which is of either family. */
socklen_t core_address_size(const union core_sockaddr *address);

/* Can no endpoint be there: multicast, unspecified, or broadcast on every network? */
bool core_address_is_nobody(const union core_sockaddr *address);

/* The best address of an interface that is up: IPv4, then IPv6 beyond the link, then any. -ENODEV.
 */
int core_address_of_netdev(const char *name, union core_sockaddr *address_out);

#endif
