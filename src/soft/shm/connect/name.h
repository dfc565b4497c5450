// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of a service point, made of its address and its qualifier: an abstract one, which the
 * processes of its network namespace find, and that of a file (dir.h).
 */
#ifndef SHM_NAME_H
#define SHM_NAME_H

#include <dat/udat.h>

#include "core/base/netaddr.h"

struct sockaddr_un;

/* "opendat.1/192.0.2.1/1f90" behind a null byte; returns the length of the address. */
socklen_t shm_name_abstract(const union core_sockaddr *address, DAT_CONN_QUAL qual,
			    struct sockaddr_un *name_out);
/* "opendat.1-192.0.2.1-1f90", without a folder. */
void shm_name_file(const union core_sockaddr *address, DAT_CONN_QUAL qual,
		   struct sockaddr_un *name_out);

#endif
