// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of descriptors that a forked child closes, tested with real sockets and real forks, also
 * with forks in the middle of other threads' work.
 */
#include "soft/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "descriptors.h"
#include "peer.h"
#include "lingering.h"

/* Waits, for a limited time, for the end of the stream. */
static bool is_ended(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char byte;

	return poll(&poll_fd, 1, PEER_LIMIT_S * 1000) == 1 && recv(fd, &byte, 1, 0) == 0;
}

/* Lists a descriptor; false: it has got another number. */
static bool list(int fd)
{
	soft_fd_begin();
	return soft_fd_end(fd) == fd;
}

struct pair {
	int listed[2];
	int other;
};

/* Keeps what it inherited open until the test is over. */
static int survivor_body(int channel, void *argument)
{
	struct pair *pair = argument;

	PEER_CHECK(!is_open(pair->listed[0]) && !is_open(pair->listed[1]));
	PEER_CHECK(is_open(pair->other));
	/* the child may reuse the numbers, and the library does not close them */
	PEER_CHECK(dup2(pair->other, pair->listed[0]) == pair->listed[0]);
	soft_fd_close(pair->listed[0]);
	PEER_CHECK(is_open(pair->listed[0]));
	/* the child can use the list itself */
	PEER_CHECK(list(pair->listed[0]));
	soft_fd_close(pair->listed[0]);
	PEER_CHECK(!is_open(pair->listed[0]));
	PEER_CHECK(peer_signal(channel) == 0);
	peer_await(channel); /* returns when the parent is done */
	return 0;
}

/* GEN-34: the peer sees the end although a child lives on */
static void fd_end__child_lives_on__peer_sees_the_end(void **state)
{
	struct pair pair;
	struct peer child;
	int sockets[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pair.listed[0] = sockets[0];
	pair.listed[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pair.other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(list(pair.listed[0]));
	assert_true(list(pair.listed[1]));
	child = peer_start(survivor_body, &pair);
	assert_int_equal(peer_await(child.channel), 0);
	/* the parent's own descriptors are unchanged */
	assert_true(is_open(pair.listed[0]) && is_open(pair.listed[1]));
	soft_fd_close(pair.listed[0]);
	assert_true(is_ended(sockets[1]));
	assert_true(peer_is_running(&child));
	peer_finish(&child);
	soft_fd_close(pair.listed[1]);
	close(pair.other);
	close(sockets[1]);
}

static void fd_close__not_listed__untouched(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	soft_fd_close(fd);
	assert_true(is_open(fd));
	soft_fd_close(-1);
	soft_fd_close(1 << 20);
	assert_true(list(fd));
	soft_fd_close(fd);
	assert_false(is_open(fd));
	soft_fd_close(fd);
}

static ino_t file_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static int closed_body(int channel, void *argument)
{
	PEER_CHECK(!is_open(*(int *)argument));
	PEER_CHECK(peer_signal(channel) == 0);
	return 0;
}

/* GEN-34: it stays listed, with its new file */
static void fd_replace__listed__has_the_other_file_and_is_closed(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	const ino_t wanted = file_of(other);
	struct peer child;

	(void)state;
	assert_true(list(fd));
	assert_int_equal(soft_fd_replace(fd, other), 0);
	assert_false(is_open(other));
	assert_int_equal(file_of(fd), wanted);
	child = peer_start(closed_body, &fd);
	assert_int_equal(peer_await(child.channel), 0);
	peer_finish(&child);
	soft_fd_close(fd);
	assert_false(is_open(fd));
}

/* GEN-41: the consumer has closed it and uses the number */
static void fd_replace__number_of_the_consumer__untouched(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other;
	ino_t file;

	(void)state;
	assert_true(list(fd));
	close(fd);
	assert_int_equal(open("/dev/zero", O_RDONLY | O_CLOEXEC), fd);
	file = file_of(fd);
	other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(soft_fd_replace(fd, other), -EBADF);
	assert_false(is_open(other));
	assert_int_equal(file_of(fd), file);
	close(fd);
}

static void fd_end__failed_call__its_errno(void **state)
{
	int fd;

	(void)state;
	soft_fd_begin();
	fd = soft_fd_end(socket(-1, SOCK_STREAM, 0));
	assert_int_equal(fd, -EAFNOSUPPORT);
	soft_fd_begin();
	fd = soft_fd_end(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	assert_true(is_open(fd));
	soft_fd_close(fd);
	assert_false(is_open(fd));
}

/* GEN-41: the consumer has closed a descriptor, and its owner does not know it yet */
static void fd_end__number_still_listed__left_to_its_owner(void **state)
{
	int before = count_open(), first, second;

	(void)state;
	first = soft_fd_socket(AF_UNIX, SOCK_STREAM);
	assert_true(is_open(first));
	close(first);
	second = soft_fd_socket(AF_UNIX, SOCK_STREAM);
	assert_true(is_open(second));
	assert_int_not_equal(second, first);
	assert_false(is_open(first));
	soft_fd_close(first);
	assert_true(is_open(second));
	soft_fd_close(second);
	assert_false(is_open(second));
	assert_int_equal(count_open(), before);
}

static int all_closed_body(int channel, void *argument)
{
	const int *before = argument;

	PEER_CHECK(is_open(channel));
	PEER_CHECK(count_open() == *before + 1);
	return 0;
}

static void fd_end__many__all_closed_in_the_child(void **state)
{
	struct peer child;
	int fds[200], before = count_open();

	(void)state;
	for (int i = 0; i < 200; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
		assert_true(list(fds[i]));
	}
	child = peer_start(all_closed_body, &before);
	peer_finish(&child);
	for (int i = 0; i < 200; i++) {
		assert_true(is_open(fds[i]));
		soft_fd_close(fds[i]);
	}
	assert_int_equal(count_open(), before);
}

static void fd_memfd__made__sealable_and_of_that_size(void **state)
{
	int fd = soft_fd_memfd("test", 12345);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 12345);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
	soft_fd_close(fd);
	assert_false(is_open(fd));
	assert_true(soft_fd_memfd("test", SIZE_MAX) < 0);
}

/* --- forks in the middle of it --- */

#define CHURNERS 2
#define FORKS 40

static atomic_bool churn_stop;

static void *churn(void *argument)
{
	(void)argument;
	while (!atomic_load(&churn_stop)) {
		int fd;

		soft_fd_begin();
		fd = soft_fd_end(open("/dev/zero", O_RDONLY | O_CLOEXEC));
		soft_fd_close(fd);
	}
	return NULL;
}

/* The child must not have inherited any descriptor of the other threads. */
static int no_leak_body(int channel, void *argument)
{
	const bool *was_open = argument;

	for (int fd = 0; fd < WATCHED; fd++)
		PEER_CHECK(fd == channel || was_open[fd] || !is_open(fd));
	return 0;
}

/* GEN-34 */
static void fd_begin__fork_at_any_time__nothing_inherited(void **state)
{
	pthread_t threads[CHURNERS];
	bool was_open[WATCHED];

	(void)state;
	for (int fd = 0; fd < WATCHED; fd++)
		was_open[fd] = is_open(fd);
	atomic_store(&churn_stop, false);
	for (int i = 0; i < CHURNERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		struct peer child = peer_start(no_leak_body, was_open);

		peer_finish(&child);
	}
	atomic_store(&churn_stop, true);
	for (int i = 0; i < CHURNERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* --- a file that takes long to close --- */

#define LINGER_S 10

static struct {
	int fd;
	atomic_bool is_closed;
} slow;

static void *close_slow(void *argument)
{
	(void)argument;
	soft_fd_close(slow.fd);
	atomic_store(&slow.is_closed, true);
	return NULL;
}

/*
 * Returns when the last close of the socket at the other end has begun. A system call on that
 * socket itself could not tell: while it runs it holds the file open, so it may be the one that
 * closes the file and blocks.
 */
static void await_hangup(int fd)
{
	struct pollfd poll_fd = {.fd = fd};

	assert_int_equal(poll(&poll_fd, 1, PEER_LIMIT_S * 1000), 1);
	assert_true(poll_fd.revents & POLLHUP);
	close(fd);
}

static int slow_closed_body(int channel, void *argument)
{
	(void)channel;
	(void)argument;
	PEER_CHECK(!is_open(slow.fd));
	return 0;
}

/* GEN-34: the close is under way while the process forks and lists another descriptor */
static void fd_close__takes_long__no_other_thread_waits(void **state)
{
	struct lingering lingering;
	struct peer child;
	pthread_t thread;
	int fd, sender;

	(void)state;
	lingering_open_watched(&lingering, LINGER_S, &sender);
	slow.fd = lingering.fd;
	assert_true(list(slow.fd));
	assert_int_equal(pthread_create(&thread, NULL, close_slow, NULL), 0);
	await_hangup(sender);
	child = peer_start(slow_closed_body, NULL);
	peer_finish(&child);
	soft_fd_begin();
	fd = soft_fd_end(open("/dev/null", O_RDONLY | O_CLOEXEC));
	assert_int_not_equal(fd, slow.fd);
	soft_fd_close(fd);
	assert_false(atomic_load(&slow.is_closed));
	lingering_release(&lingering);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(is_open(slow.fd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fd_end__child_lives_on__peer_sees_the_end),
		cmocka_unit_test(fd_close__not_listed__untouched),
		cmocka_unit_test(fd_replace__listed__has_the_other_file_and_is_closed),
		cmocka_unit_test(fd_replace__number_of_the_consumer__untouched),
		cmocka_unit_test(fd_end__failed_call__its_errno),
		cmocka_unit_test(fd_end__number_still_listed__left_to_its_owner),
		cmocka_unit_test(fd_end__many__all_closed_in_the_child),
		cmocka_unit_test(fd_memfd__made__sealable_and_of_that_size),
		cmocka_unit_test(fd_begin__fork_at_any_time__nothing_inherited),
		cmocka_unit_test(fd_close__takes_long__no_other_thread_waits),
	};

	return cmocka_run_group_tests_name("soft fds", tests, NULL, NULL);
}
