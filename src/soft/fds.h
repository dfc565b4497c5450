// SPDX-License-Identifier: BSD-2-Clause
/*
 * The descriptors of the software RNIC, process-wide. A forked child closes its copies at once, so
 * that a child that lives on does not hide the parent's death from the parent's peers (GEN-34).
 * Every socket, event and memory descriptor of src/soft is in this list from its creation on. Safe
 * from any thread; the lock is a leaf.
 */
#ifndef SOFT_FDS_H
#define SOFT_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * Creates a descriptor so that no fork happens between its creation and its entry in the list:
 *
 *	soft_fd_begin();
 *	fd = soft_fd_end(accept4(...));
 *
 * The call between the two must not block. soft_fd_end() takes the result of that call (-1: errno
 * is set) and returns the descriptor, or -errno; it closes the descriptor if it cannot be listed.
 */
void soft_fd_begin(void);
int soft_fd_end(int fd);
/* The same for a socket, which an exec closes; the type may contain SOCK_NONBLOCK. */
int soft_fd_socket(int domain, int type);

/*
 * Is the name in use by a local socket of that type which does not listen? Between fork and exec a
 * child has copies of our sockets, also of those that we have closed, and their names must be free
 * nevertheless (PSP-FREE-06).
 */
bool soft_fd_is_stale(int type, const struct sockaddr_un *name, socklen_t size);

/* Lists a descriptor that exists already: 0, or -errno (then it is still open and the caller's). */
int soft_fd_add(int fd);
/*
 * Closes a listed descriptor and removes it from the list, in one step as seen by fork. If the file
 * takes long to close, only the caller waits. Ignores a descriptor that is not listed (-1; or any
 * in a forked child, where another file may have its number).
 */
void soft_fd_close(int fd);

/*
 * Closes a listed descriptor whose last close may block, so that no child of a fork makes the last
 * close. Waits for the children that have copies, but not longer than about a second. Children of
 * vfork and posix_spawn are not waited for: their exec may make the last close, and wait. If the
 * kernel refuses to put the file into the queue of a socket (too many descriptors of the user are
 * in such queues), this tries for a second. If that does not help, a fork meanwhile may wait.
 */
void soft_fd_close_last(int fd);

bool soft_fd_is_listed(int fd);

/*
 * Creates a listed memory file of that size, which can be sealed; -errno. -EFBIG: the size exceeds
 * RLIMIT_FSIZE.
 */
int soft_fd_memfd(const char *name, size_t size);

#endif
