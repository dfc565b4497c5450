// SPDX-License-Identifier: BSD-2-Clause
/*
 * The directory of the setting socket_dir. Abstract names belong to a network namespace; a socket
 * file is found by every process that sees the directory. So containers of one host that share it
 * reach each other over shared memory.
 *
 * A socket listens before it gets its name, and loses its name before it stops listening. So the
 * name of a socket that refuses callers was left by a process that died. Such a name is deleted,
 * with the directory locked (flock), and only if it is of our user. A living socket can lose its
 * name to nobody but its owner, the owner of the directory, and root.
 */
#ifndef SHM_DIR_H
#define SHM_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/netaddr.h"

#define SHM_DIR_NAME_MAX 80u /* including the terminating null */

struct shm_dir {
	int fd;
	bool is_user_only; /* do we connect to sockets of root and our user alone? */
};

/* The name of a listening socket. */
struct shm_dir_file {
	char name[SHM_DIR_NAME_MAX];
	dev_t device;
	ino_t inode;
};

/*
 * Opens the directory if its owner and mode show that only root, our user and the owners of the
 * sockets can delete or replace one. Else -ENODEV, and the reason is logged.
 */
int shm_dir_open(const char *path, bool is_user_only, struct shm_dir **dir_out);
/* NULL: none. */
void shm_dir_close(struct shm_dir *dir);
/* Can an address name a service point there? Other containers have the same loopback address. */
bool shm_dir_can_name(const union core_sockaddr *address);

/*
 * Lets a new socket listen under that name. -EADDRINUSE: another one does, or something is there
 * that is not ours; -EBUSY: the directory is locked.
 */
int shm_dir_listen(const struct shm_dir *dir, int fd, const char *name,
		   struct shm_dir_file *file_out);
/* Deletes the name, unless it is that of another socket now. The socket listens still. */
void shm_dir_remove(const struct shm_dir *dir, const struct shm_dir_file *file);
/*
 * Connects to the socket of that name; -errno. -ENOENT, -ECONNREFUSED: nobody listens; -EACCES: or
 * somebody whom we do not call.
 */
int shm_dir_connect(const struct shm_dir *dir, int fd, const char *name);

#endif
