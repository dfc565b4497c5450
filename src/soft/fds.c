// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of descriptors that a forked child closes. It is a bitmap by descriptor number: adding
 * and removing is cheap with thousands of connections, and the child may do nothing but close(2).
 */
#include "soft/fds.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/slab.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define WORD_BITS 64u

static pthread_once_t fds_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *fds_words;   /* guarded by fds_lock */
static size_t fds_word_count; /* guarded by fds_lock */

static void fds_prepare(void)
{
	pthread_mutex_lock(&fds_lock);
}

static void fds_parent(void)
{
	pthread_mutex_unlock(&fds_lock);
}

static void fds_child(void)
{
	for (size_t i = 0; i < fds_word_count; i++) {
		while (fds_words[i]) {
			unsigned int bit = (unsigned int)__builtin_ctzll(fds_words[i]);

			fds_words[i] &= fds_words[i] - 1;
			close((int)(i * WORD_BITS + bit));
		}
	}
	pthread_mutex_unlock(&fds_lock);
}

static void fds_init(void)
{
	pthread_atfork(fds_prepare, fds_parent, fds_child);
}

static int fds_add_locked(int fd)
{
	size_t index = (size_t)fd / WORD_BITS;

	if (index >= fds_word_count) {
		size_t count = index + 1 > 2 * fds_word_count ? index + 1 : 2 * fds_word_count;
		uint64_t *words = core_slab_alloc(count * sizeof(*words));

		if (!words)
			return -ENOMEM;
		for (size_t i = 0; i < fds_word_count; i++)
			words[i] = fds_words[i];
		core_slab_free(fds_words, fds_word_count * sizeof(*words));
		fds_words = words;
		fds_word_count = count;
	}
	fds_words[index] |= UINT64_C(1) << ((size_t)fd % WORD_BITS);
	return 0;
}

void soft_fd_begin(void)
{
	pthread_once(&fds_once, fds_init);
	pthread_mutex_lock(&fds_lock);
}

int soft_fd_end(int fd)
{
	int rc = fd < 0 ? -errno : fds_add_locked(fd);

	if (fd >= 0 && rc)
		close(fd);
	pthread_mutex_unlock(&fds_lock);
	return rc ? rc : fd;
}

int soft_fd_add(int fd)
{
	int rc;

	soft_fd_begin();
	rc = fds_add_locked(fd);
	pthread_mutex_unlock(&fds_lock);
	return rc;
}

void soft_fd_close(int fd)
{
	size_t index = (size_t)fd / WORD_BITS;
	uint64_t bit = UINT64_C(1) << ((size_t)fd % WORD_BITS);

	if (fd < 0)
		return;
	pthread_mutex_lock(&fds_lock);
	if (index < fds_word_count && (fds_words[index] & bit)) {
		fds_words[index] &= ~bit;
		/* under the lock: a fork in between would leave an open copy in the child */
		close(fd);
	}
	pthread_mutex_unlock(&fds_lock);
}

/*
 * ftruncate without SIGXFSZ, which the kernel sends to a thread that exceeds RLIMIT_FSIZE and which
 * ends the program by default: the signal is blocked, and taken if it was not pending before.
 */
static int set_size(int fd, size_t size)
{
	const struct timespec at_once = {0};
	int rc, state = core_cancel_off(); /* sigtimedwait is a cancellation point */
	sigset_t xfsz, pending, old;

	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	sigemptyset(&pending);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &xfsz, &old);
	rc = ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
	if (rc == -EFBIG && !sigismember(&pending, SIGXFSZ))
		(void)sigtimedwait(&xfsz, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	core_cancel_restore(state);
	return rc;
}

int soft_fd_memfd(const char *name, size_t size)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd, rc;

	soft_fd_begin();
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
		fd = memfd_create(name, flags);
	fd = soft_fd_end(fd);
	if (fd < 0)
		return fd;
	rc = set_size(fd, size);
	if (rc == 0)
		return fd;
	if (rc == -EFBIG)
		core_log(CORE_LOG_ERROR, "%s: a memory file of %zu bytes exceeds RLIMIT_FSIZE",
			 name, size);
	soft_fd_close(fd);
	return rc;
}
