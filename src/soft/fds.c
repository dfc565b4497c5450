// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of descriptors that a forked child closes. It is a bitmap by descriptor number: adding
 * and removing is cheap with thousands of connections, and the child may do nothing but system
 * calls.
 *
 * No lock is held while a file is closed for good, because that can block: the last close of a
 * socket closes the descriptors in its queue, too. A lock would pass that on to every fork of the
 * process. But a fork between the removal from the list and the close must not leave an open copy
 * in the child. So dup3(2) first replaces the file by the placeholder, an event descriptor, whose
 * close never blocks. The number is listed all the time, and in the child it stands for the file or
 * for the placeholder.
 *
 * A child's close should not be the last one of such a file either. So a closer (closer.h) sends
 * the file through a socket pair. The queue of the pair holds the file open while the closer closes
 * the descriptor and waits for the children of earlier forks. Taking the message out makes the last
 * close. Each child has a word in memory that it shares with its parent, and clears it when it has
 * closed its copies.
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

#include "core/base/log.h"
#include "core/base/slab.h"
#include "shared/fd.h"
#include "shared/file_size.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define WORD_BITS 64u
#define CHILDREN_MS 1000u  /* for so long a closer waits for children */
#define QUEUE_MS 1000u	   /* for so long a closer tries to send a file */
#define CHILDREN_MAX 1024u /* a child is not waited for any more after so many later forks */

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
static size_t fds_count;	 /* descriptors listed, and files in the queue */
static int fds_placeholder = -1; /* open while fds_count is not 0 */
static struct identity fds_placeholder_identity;
static int fds_pair[2] = {-1, -1}; /* listed; open while anything else is counted */
static uint32_t fds_forks;	   /* the number of the last fork */
/*
 * The numbers of forks whose children have not closed their copies yet, each in the word of its
 * number; shared with the children. NULL: they are not waited for.
 */
static _Atomic uint32_t *fds_children;

/* Held while a file is sent and its descriptor closed. Before fds_lock; not taken by forks. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;

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

static void map_children(void *place)
{
	void *memory = mmap(place, CHILDREN_MAX * sizeof(*fds_children), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | (place ? MAP_FIXED : 0), -1, 0);

	fds_children = memory == MAP_FAILED ? NULL : memory;
}

static _Atomic uint32_t *child_word(uint32_t number)
{
	return &fds_children[number % CHILDREN_MAX];
}

static void fds_prepare(void)
{
	pthread_mutex_lock(&fds_lock);
	if (!fds_count || !fds_children)
		return;
	if (++fds_forks == 0)
		fds_forks = 1;
	atomic_store(child_word(fds_forks), fds_forks);
}

/* The child of that fork has closed its copies, or is not waited for any more. */
static void child_is_done(uint32_t number)
{
	(void)atomic_compare_exchange_strong(child_word(number), &number, 0);
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
	fds_placeholder = fds_pair[0] = fds_pair[1] = -1;
	if (fds_count && fds_children)
		child_is_done(fds_forks);
	fds_count = 0;
	queue_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
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

static int open_pair_locked(void)
{
	int rc, pair[2]; /* socketpair() may change it and fail */

	if (fds_pair[0] >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pair[0] = opendat_fd_move(pair[0]);
	pair[1] = opendat_fd_move(pair[1]);
	if (pair[0] < 0 || pair[1] < 0)
		rc = -EMFILE;
	else
		rc = grow_locked((size_t)(pair[0] > pair[1] ? pair[0] : pair[1]) / WORD_BITS);
	for (int i = 0; i < 2; i++) {
		if (rc)
			close(pair[i]);
		else
			(void)list_locked(fds_pair[i] = pair[i]); /* there is room */
	}
	return rc;
}

static int fds_add_locked(int fd)
{
	int rc = list_locked(fd);

	if (rc)
		return rc;
	rc = open_pair_locked();
	if (rc) {
		forget_locked(fd);
		uncount_locked();
	}
	return rc;
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
	rc = fd < 0 ? -errno : fds_add_locked(fd);
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

static void close_listed(int fd)
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

static bool take_idle_pair(int pair[2])
{
	bool is_idle;

	pthread_mutex_lock(&fds_lock);
	is_idle = fds_pair[0] >= 0 && fds_count == 2;
	for (int i = 0; i < 2 && is_idle; i++) {
		pair[i] = fds_pair[i];
		fds_pair[i] = -1;
	}
	pthread_mutex_unlock(&fds_lock);
	return is_idle;
}

/* Closes the pair if nothing else is counted. Others may open and leave a new one meanwhile. */
static void close_idle_pair(void)
{
	int pair[2];

	while (take_idle_pair(pair)) {
		close_listed(pair[0]);
		close_listed(pair[1]);
	}
}

void soft_fd_close(int fd)
{
	close_listed(fd);
	close_idle_pair();
}

bool soft_fd_is_listed(int fd)
{
	bool is_listed;

	pthread_mutex_lock(&fds_lock);
	is_listed = is_ours_locked(fd);
	pthread_mutex_unlock(&fds_lock);
	return is_listed;
}

/* Has any child of a fork up to that number copies? Clears its word, if it should. */
static bool any_child(uint32_t last, bool should_clear)
{
	bool is_any = false;

	for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
		uint32_t number = atomic_load(&fds_children[i]);

		if (!number || (int32_t)(last - number) < 0)
			continue;
		is_any = true;
		if (should_clear)
			child_is_done(number);
	}
	return is_any;
}

/* Waits until the children of all forks up to that number have closed their copies. */
static void await_children(uint32_t last)
{
	unsigned waits;

	if (!fds_children)
		return;
	for (waits = 0; waits < CHILDREN_MS && any_child(last, false); waits++)
		poll(NULL, 0, 1);
	/* the fork failed, or the child was killed or is stopped */
	if (waits == CHILDREN_MS)
		(void)any_child(last, true);
}

static bool send_file(int sender, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (char[]){0}, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(sender, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/*
 * Puts the file of a listed descriptor into the queue and closes the descriptor. No child of a fork
 * after *last has a copy.
 */
static bool put_file(int fd, uint32_t *last)
{
	bool is_sent;
	int sender;

	pthread_mutex_lock(&queue_lock);
	pthread_mutex_lock(&fds_lock);
	sender = is_ours_locked(fd) && is_ours_locked(fds_pair[0]) ? fds_pair[0] : -1;
	pthread_mutex_unlock(&fds_lock);
	is_sent = sender >= 0 && send_file(sender, fd);
	if (is_sent) {
		pthread_mutex_lock(&fds_lock);
		forget_locked(fd); /* but still counted */
		close(fd);	   /* not the last one */
		*last = fds_forks;
		pthread_mutex_unlock(&fds_lock);
	}
	pthread_mutex_unlock(&queue_lock);
	return is_sent;
}

/*
 * Makes the last close of the oldest file in the queue, which another closer may have put there.
 * When k closers have waited, one of them has put in the k-th file or a later one, so the children
 * that had copies of the first k files have been waited for.
 */
static void take_file(void)
{
	char byte;

	(void)!recv(fds_pair[1], &byte, 1, MSG_DONTWAIT); /* open, because the file is counted */
	pthread_mutex_lock(&fds_lock);
	uncount_locked();
	pthread_mutex_unlock(&fds_lock);
	close_idle_pair();
}

void soft_fd_close_last(int fd)
{
	uint32_t last;

	for (unsigned tries = 0; tries < QUEUE_MS; tries++) {
		if (put_file(fd, &last)) {
			await_children(last);
			take_file();
			return;
		}
		poll(NULL, 0, 1);
	}
	soft_fd_close(fd);
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
