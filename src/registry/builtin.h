// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapters that need no dat.conf (CONF-41): soft-lo, soft-<netdev> for each network interface
 * that is up and has an address, and verbs-<netdev> for each RDMA device. An adapter exists only if
 * its provider library is installed. Nothing is cached, because interfaces change.
 */
#ifndef REGISTRY_BUILTIN_H
#define REGISTRY_BUILTIN_H

#include "api.h"

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>

/* The list is limited because consumers provide room for 8 entries (CONF-43). */
#define REGISTRY_BUILTIN_LISTED_MAX 8

struct registry_builtin {
	char name[DAT_NAME_MAX_LENGTH]; /* of the adapter */
	char netdev[IFNAMSIZ];		/* the instance data of its provider */
	char library[PATH_MAX];
};

/* Stores the adapters to list, in order, and returns their number. */
int registry_builtin_list(struct registry_builtin list_out[REGISTRY_BUILTIN_LISTED_MAX]);

bool registry_builtin_find(const char *name, struct registry_builtin *builtin_out);

/* Logs why registry_builtin_find has not found the adapter, if the name is one of a built-in one.
 */
void registry_builtin_explain(const char *name);

/*
 * Stores the names of the network interfaces of RDMA devices, as found in the sysfs at the given
 * root, and returns their number: at most max, each once. Tests pass a root of their own.
 */
int registry_builtin_rdma_netdevs(const char *sysfs, char netdevs_out[][IFNAMSIZ], int max);

#endif
