// SPDX-License-Identifier: BSD-2-Clause
/*
 * The descriptors of the software RNIC, process-wide. A forked child closes its copies at once, so
 * that a child that lives on does not hide the parent's death from the parent's peers (GEN-34).
 * Every socket, event and memory descriptor of src/soft is in this list from its creation on. Safe
 * from any thread; the lock is a leaf.
 */
#ifndef SOFT_FDS_H
#define SOFT_FDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

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
/* Makes and lists a socket, which an exec closes; the type may contain SOCK_NONBLOCK. */
int soft_fd_socket(int domain, int type);

/*
 * Closes a listed descriptor and removes it from the list, in one step as seen by fork. If the file
 * takes long to close, only the caller waits. Ignores a descriptor that is not listed (-1; or any
 * in a forked child, where another file may have its number).
 */
void soft_fd_close(int fd);

/* The next connection of a listening socket, which the lock guards; -errno. -EBADF: it is closed. */
int soft_fd_accept(pthread_mutex_t *lock, const int *listening);
/* Shuts a socket down and closes it. So it ends although a child that is about to exec has a copy. */
void soft_fd_close_socket(int fd);

/*
 * Gives a listed descriptor, which other threads may be using, the file of another one, which is
 * not listed, and closes that: 0, or -errno. -EBADF: the number is not ours any more.
 */
int soft_fd_replace(int fd, int other);

/*
 * Creates a listed memory file of that size, which can be sealed; -errno. -EFBIG: the size exceeds
 * RLIMIT_FSIZE.
 */
int soft_fd_memfd(const char *name, size_t size);

#endif
