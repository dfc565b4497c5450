// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of service points: sockets in the folder opendat-UID of a directory. Only our user can
 * enter the folder, so no other one can call there, or answer in place of another.
 *
 * The directory is /dev/shm. A name there ends with the number of the network namespace, because
 * other containers may have the same address. With the setting socket_dir, containers share a
 * directory in order to find each other; only addresses that each of them has, such as the loopback
 * address, have the number there.
 *
 * A socket listens before it gets its name, and loses its name before it stops listening. So the
 * name of a socket that refuses callers was left by a process that died. Such a name is deleted,
 * with the folder locked (flock).
 *
 * Somebody may delete the folder: systemd does so in /dev/shm when the user logs out (RemoveIPC).
 * Then the next listen or connect makes or finds a new one. Names that were in the old one are lost.
 */
#ifndef SHM_DIR_H
#define SHM_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dat/udat.h>

#include "core/base/netaddr.h"
#include "soft/shm/instance.h"

/*
 * Opens the folder of our user for the names of that address, and makes it if need be. given: the
 * setting socket_dir, or "", which the result refers to. dir_out->fd is -1 if no folder can be used.
 * -ENODEV: others could exchange what is in the given directory. The reason is logged in both cases.
 */
int shm_dir_open(const char *given, const union core_sockaddr *address, struct shm_dir *dir_out);

/* The name of a service point: "opendat.1-192.0.2.1-1f90", "opendat.1-127.0.0.1@f0000098-1f90". */
void shm_dir_name(const struct shm_dir *dir, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		  char name_out[SHM_DIR_NAME_MAX]);

/*
 * Lets a new socket listen under that name. -EADDRINUSE: another one does, or something is there
 * that is no socket; -EBUSY: the folder is locked; -EACCES: it is not that of our user any more, or is
 * deleted and cannot be made again.
 */
int shm_dir_listen(const struct shm_dir *dir, int fd, const char *name,
		   struct shm_dir_file *file_out);
/* Deletes the name, unless it is that of another socket now. The socket listens still. */
void shm_dir_remove(const struct shm_dir *dir, const struct shm_dir_file *file);
/* Connects to the socket of that name; -errno. */
int shm_dir_connect(const struct shm_dir *dir, int fd, const char *name);

/* Is it the user that stands for all that a user namespace does not map? */
bool shm_is_nobody(uid_t uid);

#endif
