// SPDX-License-Identifier: BSD-2-Clause
/*
 * The directory of the setting socket_dir. Abstract names belong to a network namespace; a socket
 * file is found by every process that sees the directory. So containers of one host that share it
 * reach each other over shared memory.
 *
 * Any user may write there. So the names are in a folder of it that is our user's own,
 * opendat-UID, and we look at nobody else's. Who is of another user is not found, and is reached
 * over TCP.
 *
 * A socket listens before it gets its name, and loses its name before it stops listening. So the
 * name of a socket that refuses callers was left by a process that died. Such a name is deleted,
 * with the folder locked (flock).
 */
#ifndef SHM_DIR_H
#define SHM_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/netaddr.h"

#define SHM_DIR_NAME_MAX 80u /* including the terminating null */

/* The name of a listening socket. */
struct shm_dir_file {
	char name[SHM_DIR_NAME_MAX];
	dev_t device;
	ino_t inode;
};

/*
 * Opens the folder of our user in the directory of that path, for the names of an address, and
 * makes it if need be. *fd_out is a listed descriptor. It is -1 if the address has no names there,
 * or if the folder cannot be used; then the reason is logged.
 * -ENODEV: others could exchange what is in the directory; the reason is logged.
 */
int shm_dir_open(const char *path, const union core_sockaddr *address, int *fd_out);
/* Can an address name a service point there? Other containers have the same loopback address. */
bool shm_dir_can_name(const union core_sockaddr *address);

/*
 * Lets a new socket listen under that name in the folder `dir`. -EADDRINUSE: another one does, or
 * something is there that is no socket; -EBUSY: the folder is locked; -EACCES: it is not that of
 * our user any more.
 */
int shm_dir_listen(int dir, int fd, const char *name, struct shm_dir_file *file_out);
/* Deletes the name, unless it is that of another socket now. The socket listens still. */
void shm_dir_remove(int dir, const struct shm_dir_file *file);
/* Connects to the socket of that name; -errno. -ENOENT, -ECONNREFUSED: nobody listens. */
int shm_dir_connect(int dir, int fd, const char *name);

#endif
