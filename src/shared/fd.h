// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors 0, 1 and 2 belong to the consumer, also if it has closed them: what it prints must
 * not reach a descriptor of the library (GEN-40).
 */
#ifndef SHARED_FD_H
#define SHARED_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Gives the descriptor the lowest free number from `least` on; -1 with errno: it is closed. */
static inline int opendat_fd_renumber(int fd, int least)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, least);
	int error = errno;

	close(fd);
	errno = error;
	return moved;
}

/*
 * Takes the result of a call that has made a descriptor, which an exec closes. Returns it, moved
 * behind 2 if need be, or -1 with errno, as that call does.
 */
static inline int opendat_fd_move(int fd)
{
	return fd < 0 || fd > STDERR_FILENO ? fd : opendat_fd_renumber(fd, STDERR_FILENO + 1);
}

/*
 * For calls of other libraries, which make descriptors and keep them: opens those of 0, 1 and 2
 * that are closed, so that nothing can be written or read there. Returns what the other function
 * closes again.
 */
static inline unsigned opendat_fd_fill(void)
{
	unsigned filled = 0;
	int fd;

	while ((fd = open("/", O_PATH | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
		filled |= 1u << fd;
	if (fd >= 0)
		close(fd);
	return filled;
}

static inline void opendat_fd_unfill(unsigned filled)
{
	/* the consumer may have put another file there meanwhile */
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if ((filled & (1u << fd)) && (fcntl(fd, F_GETFL) & O_PATH))
			close(fd);
}

#endif
