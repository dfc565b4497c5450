// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapters that exist without any dat.conf (CONF-41): soft-lo, a soft-<netdev> for each
 * network interface that is up and has an address, and a verbs-<netdev> for each RDMA device; each
 * only if its provider library is installed. They are looked up afresh each time, since interfaces
 * come and go.
 */
#ifndef REGISTRY_BUILTIN_H
#define REGISTRY_BUILTIN_H

#include "api.h"

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>

/* More are never listed (CONF-43): consumers read the list into 8 places. */
#define REGISTRY_BUILTIN_LISTED_MAX 8

struct registry_builtin {
	char name[DAT_NAME_MAX_LENGTH]; /* of the adapter */
	char netdev[IFNAMSIZ];		/* the instance data of its provider */
	char library[PATH_MAX];
};

/* The adapters to list, in order; the number of them. */
int registry_builtin_list(struct registry_builtin list_out[REGISTRY_BUILTIN_LISTED_MAX]);

bool registry_builtin_find(const char *name, struct registry_builtin *builtin_out);

/*
 * Names of the network interfaces that RDMA devices sit on, as far as sysfs at the given root
 * tells; at most max of them, each once. For registry_builtin_list, and for tests.
 */
int registry_builtin_rdma_netdevs(const char *sysfs, char netdevs_out[][IFNAMSIZ], int max);

#endif
