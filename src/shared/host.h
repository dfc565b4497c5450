// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of hosts in the place of an interface, as lines of dat.conf of other libraries have them.
 * Only a name that this host knows by itself is looked up: its own one, or one in /etc/hosts. A word
 * that means nothing here must not cost the time-outs of name servers.
 */
#ifndef SHARED_HOST_H
#define SHARED_HOST_H

#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shared/fd.h"

/* Is it a name in that line of /etc/hosts, behind the address? */
static inline bool opendat_host_line_has(char *line, const char *name)
{
	const char *blanks = " \t\n", *word;
	char *rest;

	line[strcspn(line, "#")] = '\0';
	if (!strtok_r(line, blanks, &rest))
		return false;
	while ((word = strtok_r(NULL, blanks, &rest)) != NULL)
		if (strcasecmp(word, name) == 0)
			return true;
	return false;
}

static inline bool opendat_host_is_known(const char *name)
{
	char own[HOST_NAME_MAX + 1], line[1024];
	bool is_found = false;
	FILE *file;

	if (gethostname(own, sizeof(own)) == 0 && strcasecmp(own, name) == 0)
		return true;
	file = fopen("/etc/hosts", "re");
	while (file && !is_found && fgets(line, sizeof(line), file))
		is_found = opendat_host_line_has(line, name);
	if (file)
		fclose(file);
	return is_found;
}

/* Are they one address, or both of the loopback network, which has one interface? */
static inline bool opendat_host_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr ||
	       (ntohl(a4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET &&
		ntohl(b4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET);
}

/*
 * Stores the interface that has an address of the host, if it is up, and that address, which is of
 * AF_INET or AF_INET6. False: the name is not known here, or is that of another host.
 */
static inline bool opendat_host_find(const char *name, char netdev_out[IFNAMSIZ],
				     struct sockaddr_in6 *address_out)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL, *item;
	struct ifaddrs *list = NULL, *own;
	bool is_found = false;
	unsigned filled;

	if (!opendat_host_is_known(name))
		return false;
	filled = opendat_fd_fill();
	if (getaddrinfo(name, NULL, &hints, &found) != 0)
		found = NULL;
	if (getifaddrs(&list) != 0)
		list = NULL;
	opendat_fd_unfill(filled);
	for (item = found; item && !is_found; item = item->ai_next)
		for (own = list; own && !is_found; own = own->ifa_next) {
			if (!own->ifa_addr || !(own->ifa_flags & IFF_UP) ||
			    !opendat_host_is_same(item->ai_addr, own->ifa_addr))
				continue;
			snprintf(netdev_out, IFNAMSIZ, "%s", own->ifa_name);
			memcpy(address_out, own->ifa_addr, item->ai_addrlen);
			is_found = true;
		}
	if (list)
		freeifaddrs(list);
	if (found)
		freeaddrinfo(found);
	return is_found;
}

#endif
