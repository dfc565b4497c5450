// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of descriptors that a forked child closes. It is a bitmap by descriptor number: adding
 * and removing is cheap with thousands of connections, and the child may do nothing but system
 * calls.
 *
 * No lock is held while a file is closed, because that can block: the last close of a socket closes
 * the descriptors in its queue, too. A lock would pass that on to every fork of the process. But a
 * fork between the removal from the list and the close must not leave an open copy in the child. So
 * dup3(2) first replaces the file by the placeholder, an event descriptor, whose close never
 * blocks. The number is listed all the time, and in the child it stands for the file or for the
 * placeholder.
 *
 * A child's close should not be the last one of such a file either. So parent and child share a
 * count of the children that still have copies, and a closer (closer.h) waits for them.
 */
#include "soft/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/slab.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define WORD_BITS 64u
#define CHILDREN_MS 1000u /* for so long a closer waits for children */

static pthread_once_t fds_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;
/* guarded by fds_lock */
static uint64_t *fds_words;
static size_t fds_word_count;
static size_t fds_count;	 /* listed descriptors */
static int fds_placeholder = -1; /* open while any is listed */
/* Children that have not closed their copies yet; shared with them. NULL: not counted. */
static _Atomic uint32_t *fds_children;

static void map_children(void *place)
{
	void *memory = mmap(place, sizeof(*fds_children), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | (place ? MAP_FIXED : 0), -1, 0);

	fds_children = memory == MAP_FAILED ? NULL : memory;
}

static void fds_prepare(void)
{
	pthread_mutex_lock(&fds_lock);
	if (fds_count && fds_children)
		atomic_fetch_add(fds_children, 1);
}

/* A parent that has waited for too long sets the count to 0. */
static void child_has_closed(void)
{
	uint32_t count = atomic_load(fds_children);

	while (count && !atomic_compare_exchange_weak(fds_children, &count, count - 1))
		;
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
	if (fds_placeholder >= 0)
		close(fds_placeholder);
	fds_placeholder = -1;
	if (fds_count && fds_children)
		child_has_closed();
	fds_count = 0;
	map_children(fds_children); /* its own, for its children */
	pthread_mutex_unlock(&fds_lock);
}

static void fds_init(void)
{
	map_children(NULL);
	pthread_atfork(fds_prepare, fds_parent, fds_child);
}

/* Makes room for that number. */
static int grow_locked(size_t index)
{
	size_t count = index + 1 > 2 * fds_word_count ? index + 1 : 2 * fds_word_count;
	uint64_t *words;

	if (index < fds_word_count)
		return 0;
	words = core_slab_alloc(count * sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (size_t i = 0; i < fds_word_count; i++)
		words[i] = fds_words[i];
	core_slab_free(fds_words, fds_word_count * sizeof(*words));
	fds_words = words;
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

static int fds_add_locked(int fd)
{
	int rc = grow_locked((size_t)fd / WORD_BITS);

	if (rc)
		return rc;
	if (fds_placeholder < 0)
		fds_placeholder = eventfd(0, EFD_CLOEXEC);
	if (fds_placeholder < 0)
		return -errno;
	fds_count += !is_listed_locked(fd);
	fds_words[(size_t)fd / WORD_BITS] |= bit_of(fd);
	return 0;
}

static void fds_remove_locked(int fd)
{
	fds_words[(size_t)fd / WORD_BITS] &= ~bit_of(fd);
	if (--fds_count)
		return;
	close(fds_placeholder);
	fds_placeholder = -1;
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

int soft_fd_socket(int domain, int type)
{
	soft_fd_begin();
	return soft_fd_end(socket(domain, type | SOCK_CLOEXEC, 0));
}

bool soft_fd_is_stale(int type, const struct sockaddr_un *name, socklen_t size)
{
	int fd = soft_fd_socket(AF_UNIX, type | SOCK_NONBLOCK);
	bool is_refused;

	if (fd < 0)
		return false;
	is_refused = connect(fd, (const struct sockaddr *)name, size) < 0 && errno == ECONNREFUSED;
	soft_fd_close(fd);
	return is_refused;
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
	bool is_replaced;
	int placeholder;

	pthread_mutex_lock(&fds_lock);
	placeholder = is_listed_locked(fd) ? fds_placeholder : -1;
	pthread_mutex_unlock(&fds_lock);
	if (placeholder < 0)
		return;
	/* it stays open: a descriptor is listed */
	is_replaced = dup3(placeholder, fd, O_CLOEXEC) >= 0;
	pthread_mutex_lock(&fds_lock);
	fds_remove_locked(fd);
	if (is_replaced)
		close(fd); /* the placeholder's copy, which must not be left in a child */
	pthread_mutex_unlock(&fds_lock);
	/* the number is above a limit that was lowered: here a fork can leave a copy */
	if (!is_replaced)
		close(fd);
}

bool soft_fd_is_listed(int fd)
{
	bool is_listed;

	pthread_mutex_lock(&fds_lock);
	is_listed = is_listed_locked(fd);
	pthread_mutex_unlock(&fds_lock);
	return is_listed;
}

void soft_fd_await_children(void)
{
	unsigned waits;

	if (!fds_children)
		return;
	for (waits = 0; waits < CHILDREN_MS && atomic_load(fds_children); waits++)
		poll(NULL, 0, 1);
	/* the fork failed, or the child was killed or is stopped */
	if (waits == CHILDREN_MS)
		atomic_store(fds_children, 0);
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
