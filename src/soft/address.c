// SPDX-License-Identifier: BSD-2-Clause
/*
 * Addresses. The kernel knows which addresses are local and which are broadcast addresses: binding
 * and connecting a datagram socket, which sends nothing, shows it. With the option
 * net.ipv4.ip_nonlocal_bind (or that of ipv6) it binds to any address. Then those of the interfaces
 * are local.
 */
#include "soft/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netpacket/packet.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/netaddr.h"
#include "soft/fds.h"

/* Copies family, address and scope, and sets the port. */
static void with_port(const union core_sockaddr *address, uint16_t port,
		      union core_sockaddr *copy_source)
{
	memset(copy_source, 0, sizeof(*copy_source));
	copy_source->sa.sa_family = address->sa.sa_family;
	if (address->sa.sa_family == AF_INET) {
		copy_source->in.sin_addr = address->in.sin_addr;
		copy_source->in.sin_port = htons(port);
	} else {
		copy_source->in6.sin6_addr = address->in6.sin6_addr;
		copy_source->in6.sin6_scope_id = address->in6.sin6_scope_id;
		copy_source->in6.sin6_port = htons(port);
	}
}

/* Tries to bind a socket to it: 0 or -errno. */
static int try_bind(const union core_sockaddr *address)
{
	union core_sockaddr copy;
	int fd = soft_fd_socket(address->sa.sa_family, SOCK_DGRAM);
	int rc;

	if (fd < 0)
		return fd;
	with_port(address, 0, &copy);
	rc = bind(fd, &copy.sa, core_address_size(&copy)) < 0 ? -errno : 0;
	soft_fd_close(fd);
	return rc;
}

static bool is_broadcast(const union core_sockaddr *address)
{
	union core_sockaddr copy;
	int fd = soft_fd_socket(address->sa.sa_family, SOCK_DGRAM);
	bool is_one;

	if (fd < 0)
		return false;
	with_port(address, 9, &copy);
	is_one = core_address_is_broadcast(fd, &copy);
	soft_fd_close(fd);
	return is_one;
}

bool soft_address_is_same(const union core_sockaddr *a, const union core_sockaddr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return a->sa.sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr) &&
	       a->in6.sin6_scope_id == b->in6.sin6_scope_id;
}

bool soft_address_is_loopback(const union core_sockaddr *address)
{
	if (address->sa.sa_family == AF_INET)
		return ntohl(address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

/* Does the kernel bind to an address that is for documents, and of no interface? */
static bool binds_any(sa_family_t family)
{
	union core_sockaddr unused = {.sa.sa_family = family};

	if (family == AF_INET)
		(void)inet_pton(family, "192.0.2.1", &unused.in.sin_addr);
	else
		(void)inet_pton(family, "2001:db8::1", &unused.in6.sin6_addr);
	return try_bind(&unused) == 0;
}

/* The entry of the interface that has the address, or NULL. */
static const struct ifaddrs *find_interface(const struct ifaddrs *list,
					    const union core_sockaddr *address)
{
	while (list &&
	       (!list->ifa_addr || !soft_address_is_same(address, (const void *)list->ifa_addr)))
		list = list->ifa_next;
	return list;
}

static bool is_of_interface(const union core_sockaddr *address)
{
	struct ifaddrs *list;
	bool is_one;

	if (getifaddrs(&list) < 0)
		return false;
	is_one = find_interface(list, address);
	freeifaddrs(list);
	return is_one;
}

/* The MAC address of the interface with that name. False: it has none, or only zeros. */
static bool find_mac(const struct ifaddrs *list, const char *name, uint8_t mac[6])
{
	static const uint8_t zeros[6];

	for (; list; list = list->ifa_next) {
		const struct sockaddr_ll *link = (const void *)list->ifa_addr;

		if (!link || link->sll_family != AF_PACKET || strcmp(list->ifa_name, name) != 0)
			continue;
		memcpy(mac, link->sll_addr, 6);
		return link->sll_halen == 6 && memcmp(mac, zeros, 6) != 0;
	}
	return false;
}

/* As in an IPv6 address: the bit of global addresses is inverted, and ff:fe is in the middle. */
void soft_address_guid(const union core_sockaddr *address, uint8_t guid[8])
{
	const struct ifaddrs *interface;
	struct ifaddrs *list;
	uint8_t mac[6];

	memset(guid, 0, 8);
	if (getifaddrs(&list) < 0)
		return;
	interface = find_interface(list, address);
	if (interface && find_mac(list, interface->ifa_name, mac)) {
		memcpy(guid, mac, 3);
		guid[0] ^= 2;
		guid[3] = 0xff;
		guid[4] = 0xfe;
		memcpy(guid + 5, mac + 3, 3);
	}
	freeifaddrs(list);
}

int soft_address_find(const union core_sockaddr *address)
{
	int rc;

	if (address->sa.sa_family != AF_INET && address->sa.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (core_address_is_unusable(address) || is_broadcast(address))
		return -EADDRNOTAVAIL;
	rc = try_bind(address);
	if (rc == 0 && !soft_address_is_loopback(address) && binds_any(address->sa.sa_family) &&
	    !is_of_interface(address))
		return -EHOSTUNREACH;
	if (rc == 0 || rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		return rc;
	return -EHOSTUNREACH;
}

int soft_address_of_device(const char *device, union core_sockaddr *address_out)
{
	int rc = core_address_parse(device, address_out);

	if (rc == -EINVAL)
		return core_address_of_netdev(device, address_out);
	if (rc < 0)
		return rc;
	if (soft_address_find(address_out) == 0)
		return 0;
	core_log(CORE_LOG_ERROR, "address %s: no interface of this host has it", device);
	return -ENODEV;
}
