// SPDX-License-Identifier: BSD-2-Clause
/*
 * The size of a new memory file. libdat and the provider libraries make such files, each in the
 * consumer's process, so none of them may raise a signal there.
 */
#ifndef SHARED_FILE_SIZE_H
#define SHARED_FILE_SIZE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/*
 * ftruncate without SIGXFSZ, which the kernel sends to a thread that exceeds RLIMIT_FSIZE and which
 * ends the program by default: the signal is blocked, and taken if it was not pending before.
 * Returns 0 or -errno; -EFBIG: more than that limit.
 */
static inline int opendat_file_set_size(int fd, size_t size)
{
	const struct timespec at_once = {0};
	sigset_t xfsz, pending, old;
	int rc, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* for sigtimedwait */
	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	sigemptyset(&pending);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &xfsz, &old);
	rc = ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
	if (rc == -EFBIG && !sigismember(&pending, SIGXFSZ))
		(void)sigtimedwait(&xfsz, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_setcancelstate(state, NULL);
	return rc;
}

#endif
