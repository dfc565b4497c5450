// SPDX-License-Identifier: BSD-2-Clause
/* Network addresses (netaddr.h). */
#include "core/base/netaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/log.h"
#include "shared/host.h"

socklen_t core_address_size(const union core_sockaddr *address)
{
	return address->sa.sa_family == AF_INET ? sizeof(address->in) : sizeof(address->in6);
}

struct core_address_text core_address_text(const union core_sockaddr *address, uint64_t port)
{
	char number[INET6_ADDRSTRLEN] = "?";
	struct core_address_text text;

	if (address->sa.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &address->in6.sin6_addr, number, sizeof(number));
		snprintf(text.text, sizeof(text.text), "[%s]:%" PRIu64, number, port);
		return text;
	}
	if (address->sa.sa_family == AF_INET)
		(void)inet_ntop(AF_INET, &address->in.sin_addr, number, sizeof(number));
	snprintf(text.text, sizeof(text.text), "%s:%" PRIu64, number, port);
	return text;
}

bool core_address_is_unusable(const union core_sockaddr *address)
{
	if (address->sa.sa_family == AF_INET) {
		uint32_t value = ntohl(address->in.sin_addr.s_addr);

		return IN_MULTICAST(value) || value == INADDR_ANY || value == INADDR_BROADCAST;
	}
	return IN6_IS_ADDR_MULTICAST(&address->in6.sin6_addr) ||
	       IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr);
}

static bool is_forbidden(int fd, const union core_sockaddr *address)
{
	return connect(fd, &address->sa, core_address_size(address)) < 0 && errno == EACCES;
}

/*
 * The kernel refuses to connect a socket to a broadcast address unless the socket has an option for
 * that. A route of type prohibit refuses either.
 */
bool core_address_is_broadcast(int fd, const union core_sockaddr *address)
{
	const int yes = 1;

	return is_forbidden(fd, address) &&
	       !setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes)) &&
	       !is_forbidden(fd, address);
}

/* The interface with that link-local address; 0: there is none, or there are several. */
static uint32_t scope_of(const struct in6_addr *address, const char *text)
{
	struct ifaddrs *list, *entry;
	const char *name = NULL;
	uint32_t scope = 0;
	int count = 0;

	if (getifaddrs(&list) < 0)
		return 0;
	for (entry = list; entry; entry = entry->ifa_next) {
		const struct sockaddr_in6 *in6 = (const void *)entry->ifa_addr;

		if (!in6 || in6->sin6_family != AF_INET6 ||
		    !IN6_ARE_ADDR_EQUAL(&in6->sin6_addr, address))
			continue;
		name = entry->ifa_name;
		scope = in6->sin6_scope_id;
		count++;
	}
	if (!count)
		core_log(CORE_LOG_ERROR, "address %s: no interface of this host has it", text);
	else if (count > 1)
		core_log(CORE_LOG_ERROR, "address %s: %d interfaces have it; name one: %s%%%s",
			 text, count, text, name);
	freeifaddrs(list);
	return count == 1 ? scope : 0;
}

/* The interface that is named behind an IPv6 address; 0: there is none, or it needs none. */
static uint32_t named_scope(const struct in6_addr *address, const char *text, const char *name)
{
	uint32_t scope = if_nametoindex(name);

	if (!scope)
		core_log(CORE_LOG_ERROR, "address %s: interface %s: %s", text, name,
			 strerror(errno));
	if (IN6_IS_ADDR_LINKLOCAL(address))
		return scope;
	core_log(CORE_LOG_ERROR, "address %s: only a link-local address has an interface", text);
	return 0;
}

int core_address_parse(const char *text, union core_sockaddr *address_out)
{
	struct sockaddr_in6 *in6 = &address_out->in6;
	const size_t len = strcspn(text, "%");
	const char *interface = text[len] ? text + len + 1 : NULL;
	char number[INET6_ADDRSTRLEN];

	memset(address_out, 0, sizeof(*address_out));
	if (inet_pton(AF_INET, text, &address_out->in.sin_addr) == 1) {
		address_out->sa.sa_family = AF_INET;
		return 0;
	}
	if (len >= sizeof(number))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)len, text);
	if (inet_pton(AF_INET6, number, &in6->sin6_addr) != 1)
		return -EINVAL;
	in6->sin6_family = AF_INET6;
	if (!interface && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		return 0;
	in6->sin6_scope_id = interface ? named_scope(&in6->sin6_addr, text, interface)
				       : scope_of(&in6->sin6_addr, text);
	return in6->sin6_scope_id ? 0 : -ENODEV;
}

/* The preferred address of an interface is the one of the highest rank; 0: not usable. */
static int rank(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return 3;
	if (address->sa_family != AF_INET6)
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr) ? 1 : 2;
}

static void explain_missing(const char *netdev)
{
	if (!core_log_has(CORE_LOG_ERROR))
		return;
	if (!if_nametoindex(netdev))
		core_log(CORE_LOG_ERROR, "interface %s: %s", netdev, strerror(errno));
	else
		core_log(CORE_LOG_ERROR, "interface %s: is down or has no address", netdev);
}

int core_address_of_netdev(const char *name, union core_sockaddr *address_out)
{
	struct ifaddrs *list, *entry;
	char netdev[IFNAMSIZ];
	int best = 0;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (entry = list; entry; entry = entry->ifa_next) {
		if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP) ||
		    strcmp(entry->ifa_name, name) != 0 || rank(entry->ifa_addr) <= best)
			continue;
		best = rank(entry->ifa_addr);
		memset(address_out, 0, sizeof(*address_out));
		memcpy(address_out, entry->ifa_addr,
		       best == 3 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	}
	freeifaddrs(list);
	if (best || (!if_nametoindex(name) && opendat_host_find(name, netdev, &address_out->in6)))
		return 0;
	explain_missing(name);
	return -ENODEV;
}
