// SPDX-License-Identifier: BSD-2-Clause
/* Threads that close what peers have passed (closer.h). */
#include "soft/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/slab.h"
#include "core/base/thread.h"
#include "soft/fds.h"

#define THREADS_MAX 8u
#define STACK_SIZE (64u * 1024u)
#define SMALL_FILE (16u * 1024u * 1024u) /* as large as a key table */
#define BLOCK 512			 /* bytes in the unit of stat.st_blocks */

struct closing {
	struct closing *next;
	int fd;
	bool is_listed; /* in the list of fds.h, until it is closed */
};

static pthread_once_t closer_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t closer_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
/* guarded by closer_lock */
static struct closing *closing_first;
static struct closing **closing_end = &closing_first;
static unsigned thread_count;

static _Atomic uint32_t open_count;

static void closer_prepare(void)
{
	pthread_mutex_lock(&closer_lock);
}

static void closer_parent(void)
{
	pthread_mutex_unlock(&closer_lock);
}

/* The child has none of the threads, and must not close what could block it. */
static void closer_child(void)
{
	closing_first = NULL;
	closing_end = &closing_first;
	thread_count = 0;
	atomic_store(&open_count, 0);
	pthread_mutex_unlock(&closer_lock);
}

static void closer_init(void)
{
	pthread_atfork(closer_prepare, closer_parent, closer_child);
}

/* The oldest one, or NULL: then the calling thread ends. */
static struct closing *take_oldest(void)
{
	struct closing *oldest;

	pthread_mutex_lock(&closer_lock);
	oldest = closing_first;
	if (!oldest)
		thread_count--;
	else
		closing_first = oldest->next;
	if (!closing_first)
		closing_end = &closing_first;
	pthread_mutex_unlock(&closer_lock);
	return oldest;
}

static void *closer_run(void *unused)
{
	static const struct linger at_once;
	struct closing *closing;

	(void)unused;
	while ((closing = take_oldest()) != NULL) {
		int fd = closing->fd;
		bool is_listed = closing->is_listed;

		core_slab_free(closing, sizeof(*closing));
		/* the threads are few: they need not wait where waiting can be avoided */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		if (is_listed)
			soft_fd_close_last(fd);
		else
			close(fd);
		atomic_fetch_sub(&open_count, 1);
	}
	return NULL;
}

static int create_thread(void)
{
	const struct core_thread_form form = {.name = "dat-closer",
					      .stack_size = STACK_SIZE,
					      .is_detached = true,
					      .sched = core_sched_above_caller()};
	pthread_t thread;

	return core_thread_create(&thread, &form, closer_run, NULL);
}

/* Adds it to the list; true: one more thread is needed. */
static bool append(struct closing *closing)
{
	bool is_needed;

	pthread_mutex_lock(&closer_lock);
	*closing_end = closing;
	closing_end = &closing->next;
	/* all that run may be blocked */
	is_needed = thread_count < THREADS_MAX;
	thread_count += is_needed;
	pthread_mutex_unlock(&closer_lock);
	return is_needed;
}

static void close_later(int fd, bool is_listed)
{
	struct closing *closing;

	pthread_once(&closer_once, closer_init);
	closing = core_slab_alloc(sizeof(*closing));
	if (!closing) {
		core_log(CORE_LOG_ERROR, "no memory to close descriptor %d; it stays open", fd);
		return;
	}
	*closing = (struct closing){.fd = fd, .is_listed = is_listed};
	atomic_fetch_add(&open_count, 1);
	if (!append(closing) || create_thread() == 0)
		return;
	/* the next one tries again */
	core_log(CORE_LOG_ERROR, "no thread to close descriptor %d; it stays open", fd);
	pthread_mutex_lock(&closer_lock);
	thread_count--;
	pthread_mutex_unlock(&closer_lock);
}

void soft_closer_close(int fd)
{
	if (fd >= 0)
		close_later(fd, false);
}

void soft_closer_close_listed(int fd)
{
	if (soft_fd_is_listed(fd))
		close_later(fd, true);
}

uint32_t soft_closer_count(void)
{
	return atomic_load(&open_count);
}

static bool is_quickly_closed(int fd, bool is_peer_trusted)
{
	int seals = fcntl(fd, F_GET_SEALS); /* fails for all but memory files */
	struct stat st;

	if (seals < 0 || is_peer_trusted)
		return seals >= 0;
	/* the seal keeps it small; a file of another kind could block fstat */
	return (seals & F_SEAL_GROW) && fstat(fd, &st) == 0 && st.st_size <= SMALL_FILE &&
	       st.st_blocks <= SMALL_FILE / BLOCK;
}

void soft_closer_close_passed(int fd, bool is_peer_trusted)
{
	if (fd < 0)
		return;
	if (is_quickly_closed(fd, is_peer_trusted))
		close(fd);
	else
		soft_closer_close(fd);
}
