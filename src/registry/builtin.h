// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapters that need no dat.conf (CONF-41): soft-lo, soft-<netdev> for each network interface
 * that is up and has an address, and verbs-<netdev> for each RDMA device. DAT 2.0 has ofa-v2-<netdev>
 * for either (D2-CONF-16). An adapter exists only if its provider library is installed. Nothing is
 * cached, because interfaces change.
 *
 * check:NAME is the adapter NAME behind the provider that checks (CHECK-GEN-01). It is not listed.
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
	char data[DAT_NAME_MAX_LENGTH]; /* the instance data of its provider: the interface */
	char library[PATH_MAX];
};

/* Stores the adapters to list, in order, and returns their number. */
int registry_builtin_list(struct registry_builtin list_out[REGISTRY_BUILTIN_LISTED_MAX]);

/* Is it the name of an adapter behind the provider that checks? */
bool registry_builtin_is_check(const char *name);

bool registry_builtin_find(const char *name, struct registry_builtin *builtin_out);

/*
 * Stores the library of ours that can use a device: the provider over rdma-core for an RDMA device,
 * and for an interface that has one, an address of it, or a name of this host for such an address;
 * the soft provider for other interfaces that are up, their addresses and their names.
 */
bool registry_builtin_library_for(const char *device, char library_out[PATH_MAX]);

/*
 * Logs why registry_builtin_find has not found the adapter, if the name is one of a built-in one.
 * registry_catalog_explain() calls it unless there are no built-in adapters.
 */
void registry_builtin_explain(const char *name);

/*
 * Stores the names of the network interfaces of RDMA devices, as found in the sysfs at the given
 * root, and returns their number: at most max, each once. Tests pass a root of their own.
 */
int registry_builtin_rdma_netdevs(const char *sysfs, char netdevs_out[][IFNAMSIZ], int max);

#endif
