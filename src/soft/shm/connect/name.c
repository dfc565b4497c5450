// SPDX-License-Identifier: BSD-2-Clause
/* Names of service points (name.h). */
#include "soft/shm/connect/name.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

socklen_t shm_name_abstract(const union core_sockaddr *address, DAT_CONN_QUAL qual,
			    struct sockaddr_un *name_out)
{
	char text[INET6_ADDRSTRLEN] = "";
	int len;

	if (address->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->in.sin_addr, text, sizeof(text));
	else if (IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr))
		inet_ntop(AF_INET, &address->in6.sin6_addr.s6_addr[12], text, sizeof(text));
	else
		inet_ntop(AF_INET6, &address->in6.sin6_addr, text, sizeof(text));
	memset(name_out, 0, sizeof(*name_out));
	name_out->sun_family = AF_UNIX;
	/* a leading zero makes the name abstract; the terminating one is not part of it */
	len = snprintf(name_out->sun_path + 1, sizeof(name_out->sun_path) - 1,
		       "opendat.1/%s/%" PRIx64, text, (uint64_t)qual);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

void shm_name_file(const union core_sockaddr *address, DAT_CONN_QUAL qual,
		   struct sockaddr_un *name_out)
{
	char *slash = name_out->sun_path;

	(void)shm_name_abstract(address, qual, name_out);
	memmove(name_out->sun_path, name_out->sun_path + 1, sizeof(name_out->sun_path) - 1);
	while ((slash = strchr(slash, '/')) != NULL)
		*slash = '-';
}
