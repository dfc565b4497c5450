// SPDX-License-Identifier: BSD-2-Clause
/* Network addresses: what all transports have in common. */
#ifndef CORE_NETADDR_H
#define CORE_NETADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union core_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

/* The address length for system calls. The address is AF_INET or AF_INET6. */
socklen_t core_address_size(const union core_sockaddr *address);

/* An address for messages: "192.0.2.1:4000", "[2001:db8::1]:4000". */
struct core_address_text {
	char text[INET6_ADDRSTRLEN + 24];
};

struct core_address_text core_address_text(const union core_sockaddr *address, uint64_t port);

/* Is the address multicast, unspecified or the limited broadcast address? No peer can have one. */
bool core_address_is_unusable(const union core_sockaddr *address);

/*
 * Is it a broadcast address? Connects an unused datagram socket to it, which sends nothing; the
 * port is not 0.
 */
bool core_address_is_broadcast(int fd, const union core_sockaddr *address);

/*
 * Reads an address of this host: "192.0.2.1", "2001:db8::1", "fe80::1%eth0". A link-local address
 * without an interface is that of the only interface that has it. -EINVAL: it is no address;
 * -ENODEV: its interface is not known; the reason is logged.
 */
int core_address_parse(const char *text, union core_sockaddr *address_out);

/*
 * The preferred address of an interface that is up: IPv4, else global IPv6, else link-local IPv6. The
 * name may be one of this host as well (shared/host.h). -ENODEV: there is none.
 */
int core_address_of_netdev(const char *name, union core_sockaddr *address_out);

#endif
