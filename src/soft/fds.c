// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of descriptors that a forked child closes. It is a bitmap by descriptor number: adding
 * and removing is cheap with thousands of connections, and the child may do nothing but system
 * calls.
 *
 * No lock is held while a file is closed for good, because that can take long. But a fork between
 * the removal from the list and the close must not leave an open copy in the child. So dup3(2)
 * first replaces the file by the placeholder, an event descriptor, whose close is quick. The number
 * is listed all the time, and in the child it stands for the file or for the placeholder.
 *
 * The consumer may close all descriptors of the process and open files that get their numbers. So
 * the list holds which file each descriptor was, as fstat tells it, and a number that is another
 * file by now is left alone. Event descriptors cannot be distinguished from each other, nor can
 * epoll sets.
 */
#include "soft/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/slab.h"
#include "shared/fd.h"
#include "shared/file_size.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define WORD_BITS 64u

struct identity {
	dev_t dev;
	ino_t ino; /* 0: unknown */
};

static pthread_once_t fds_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;
/* guarded by fds_lock */
static uint64_t *fds_words;
static struct identity *fds_identities; /* of as many descriptors as there are bits */
static size_t fds_word_count;
static size_t fds_count;	 /* descriptors listed */
static int fds_placeholder = -1; /* open while fds_count is not 0 */
static struct identity fds_placeholder_identity;

static struct identity identify(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return (struct identity){0};
	return (struct identity){.dev = st.st_dev, .ino = st.st_ino};
}

/* True also if that is unknown. */
static bool is_same_file(int fd, const struct identity *identity)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno != EBADF;
	return !identity->ino || (st.st_dev == identity->dev && st.st_ino == identity->ino);
}

static void close_same(int fd, const struct identity *identity)
{
	if (fd >= 0 && is_same_file(fd, identity))
		close(fd);
}

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
			int fd = (int)(i * WORD_BITS + bit);

			fds_words[i] &= fds_words[i] - 1;
			/* or the placeholder: it was about to be closed */
			if (is_same_file(fd, &fds_identities[fd]) ||
			    is_same_file(fd, &fds_placeholder_identity))
				close(fd);
		}
	}
	close_same(fds_placeholder, &fds_placeholder_identity);
	fds_placeholder = -1;
	fds_count = 0;
	pthread_mutex_unlock(&fds_lock);
}

static void fds_init(void)
{
	pthread_atfork(fds_prepare, fds_parent, fds_child);
}

/* Makes room for that number. */
static int grow_locked(size_t index)
{
	size_t count = index + 1 > 2 * fds_word_count ? index + 1 : 2 * fds_word_count;
	size_t old = fds_word_count;
	struct identity *identities;
	uint64_t *words;

	if (index < old)
		return 0;
	words = core_slab_alloc(count * sizeof(*words));
	if (!words)
		return -ENOMEM;
	identities = core_slab_alloc(count * WORD_BITS * sizeof(*identities));
	if (!identities) {
		core_slab_free(words, count * sizeof(*words));
		return -ENOMEM;
	}
	if (old) {
		memcpy(words, fds_words, old * sizeof(*words));
		memcpy(identities, fds_identities, old * WORD_BITS * sizeof(*identities));
	}
	core_slab_free(fds_words, old * sizeof(*words));
	core_slab_free(fds_identities, old * WORD_BITS * sizeof(*identities));
	fds_words = words;
	fds_identities = identities;
	fds_word_count = count;
	return 0;
}

static uint64_t bit_of(int fd)
{
	return UINT64_C(1) << ((size_t)fd % WORD_BITS);
}

static bool is_listed_locked(int fd)
{
	size_t index = (size_t)fd / WORD_BITS;

	return fd >= 0 && index < fds_word_count && (fds_words[index] & bit_of(fd));
}

/* Lists a descriptor; for the first one, opens the placeholder. */
static int list_locked(int fd)
{
	int rc = grow_locked((size_t)fd / WORD_BITS);

	if (rc)
		return rc;
	if (fds_placeholder < 0) {
		fds_placeholder = opendat_fd_move(eventfd(0, EFD_CLOEXEC));
		if (fds_placeholder < 0)
			return -errno;
		fds_placeholder_identity = identify(fds_placeholder);
	}
	fds_count += !is_listed_locked(fd);
	fds_words[(size_t)fd / WORD_BITS] |= bit_of(fd);
	fds_identities[fd] = identify(fd);
	return 0;
}

static void forget_locked(int fd)
{
	fds_words[(size_t)fd / WORD_BITS] &= ~bit_of(fd);
}

static void uncount_locked(void)
{
	if (--fds_count)
		return;
	close_same(fds_placeholder, &fds_placeholder_identity);
	fds_placeholder = -1;
}

/* Is it listed and still the same file? Else removes it from the list. */
static bool is_ours_locked(int fd)
{
	if (!is_listed_locked(fd))
		return false;
	if (is_same_file(fd, &fds_identities[fd]))
		return true;
	forget_locked(fd);
	uncount_locked();
	return false;
}

void soft_fd_begin(void)
{
	pthread_once(&fds_once, fds_init);
	pthread_mutex_lock(&fds_lock);
}

/* A number in the list: the consumer has closed the descriptor that still belongs to another. */
static int leave_listed_locked(int fd)
{
	while (is_listed_locked(fd))
		fd = opendat_fd_renumber(fd, fd + 1);
	return fd;
}

int soft_fd_end(int fd)
{
	int rc;

	fd = leave_listed_locked(opendat_fd_move(fd));
	rc = fd < 0 ? -errno : list_locked(fd);
	if (fd >= 0 && rc)
		close(fd);
	pthread_mutex_unlock(&fds_lock);
	return rc ? rc : fd;
}

int soft_fd_socket(int domain, int type)
{
	soft_fd_begin();
	return soft_fd_end(socket(domain, type | SOCK_CLOEXEC, 0));
}

void soft_fd_close(int fd)
{
	bool is_replaced;
	int placeholder;

	pthread_mutex_lock(&fds_lock);
	placeholder = is_ours_locked(fd) ? fds_placeholder : -1;
	pthread_mutex_unlock(&fds_lock);
	if (placeholder < 0)
		return;
	/* it stays open: a descriptor is listed */
	is_replaced = dup3(placeholder, fd, O_CLOEXEC) >= 0;
	pthread_mutex_lock(&fds_lock);
	forget_locked(fd);
	if (is_replaced)
		close(fd); /* the placeholder's copy, which must not be left in a child */
	uncount_locked();
	pthread_mutex_unlock(&fds_lock);
	/* the number is above a limit that was lowered: here a fork can leave a copy */
	if (!is_replaced)
		close(fd);
}

int soft_fd_accept(pthread_mutex_t *lock, const int *listening)
{
	int fd = -EBADF;

	pthread_mutex_lock(lock);
	if (*listening >= 0) {
		soft_fd_begin();
		fd = soft_fd_end(accept4(*listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	}
	pthread_mutex_unlock(lock);
	return fd;
}

void soft_fd_close_socket(int fd)
{
	int state = core_cancel_off();

	if (fd >= 0)
		(void)shutdown(fd, SHUT_RDWR);
	soft_fd_close(fd);
	core_cancel_restore(state);
}

int soft_fd_replace(int fd, int other)
{
	int rc = -EBADF;

	pthread_mutex_lock(&fds_lock);
	if (is_ours_locked(fd)) {
		rc = dup3(other, fd, O_CLOEXEC) < 0 ? -errno : 0;
		fds_identities[fd] = identify(fd);
	}
	pthread_mutex_unlock(&fds_lock);
	close(other);
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
	rc = opendat_file_set_size(fd, size);
	if (rc == 0)
		return fd;
	if (rc == -EFBIG)
		core_log(CORE_LOG_ERROR, "%s: a memory file of %zu bytes exceeds RLIMIT_FSIZE",
			 name, size);
	soft_fd_close(fd);
	return rc;
}
