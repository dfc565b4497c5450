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

#include "core/base/log.h"

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
	if (!best)
		explain_missing(name);
	return best ? 0 : -ENODEV;
}
