// SPDX-License-Identifier: BSD-2-Clause
/* Threads that close what peers have passed: with files whose close blocks, and with many. */
#include "soft/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "descriptors.h"
#include "peer.h"
#include "lingering.h"
#include "soft/fds.h"

#define LINGER_S 60
#define CHILD_MS 10000 /* a child that waits for no close ends earlier */
#define MB 1048576

/* --- which thread closes, and threads that cannot be created --- */

static _Atomic int watched = -1;
/* set before watched is cleared */
static pthread_t watched_by;
static char watched_name[16];
static _Atomic int creations_that_fail;

/* a descriptor that a child closes when it may; the flag is shared with the children */
static _Atomic int held = -1;
static _Atomic bool *child_has_copy;
static int child_may[2];
static _Atomic pid_t parent;

/* pauses of a closer that waits do not end while this is set */
static _Atomic bool holds_pauses;
static _Atomic bool is_pausing;

/* a closer waits before that system call, for a limited time, until the process has forked */
static _Atomic int steps_left = -1;
static _Atomic bool is_stepping, has_forked;
static pthread_t main_thread;

static _Atomic bool does_queue_refuse;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	if (count || pthread_equal(pthread_self(), main_thread) ||
	    !(atomic_load(&holds_pauses) || atomic_load(&does_queue_refuse)))
		return __real_poll(fds, count, timeout);
	atomic_store(&is_pausing, true);
	for (unsigned int polls = 0; atomic_load(&holds_pauses); polls++)
		peer_pause(polls);
	return 0; /* at once, so that a closer soon stops trying */
}

static void step(void)
{
	if (pthread_equal(pthread_self(), main_thread) || atomic_load(&steps_left) < 0 ||
	    atomic_fetch_sub(&steps_left, 1) > 0)
		return;
	atomic_store(&is_stepping, true);
	for (int i = 0; i < 50 && !atomic_load(&has_forked); i++)
		__real_poll(NULL, 0, 1);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	step();
	if (atomic_load(&does_queue_refuse)) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return __real_sendmsg(fd, message, flags);
}

ssize_t __real_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags)
{
	step();
	return __real_recv(fd, bytes, len, flags);
}

int __real_dup3(int from, int to, int flags);
int __wrap_dup3(int from, int to, int flags);
int __wrap_dup3(int from, int to, int flags)
{
	step();
	return __real_dup3(from, to, flags);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	char byte;

	step();
	if (fd == atomic_load(&held) && getpid() != atomic_load(&parent)) {
		atomic_store(child_has_copy, true);
		alarm(PEER_LIMIT_S); /* should the test fail meanwhile */
		(void)!read(child_may[0], &byte, 1);
	}
	if (fd == atomic_load(&watched)) {
		watched_by = pthread_self();
		(void)pthread_getname_np(watched_by, watched_name, sizeof(watched_name));
		atomic_store(&watched, -1);
	}
	return __real_close(fd);
}

/* threads that are to run, and have not ended */
static _Atomic unsigned int threads;

struct thread_start {
	void *(*run)(void *);
	void *argument;
};

static void *run_counted(void *argument)
{
	struct thread_start start = *(struct thread_start *)argument;
	void *result;

	free(argument);
	result = start.run(start.argument);
	atomic_fetch_sub(&threads, 1);
	return result;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *argument)
{
	struct thread_start *start;
	int rc;

	if (atomic_load(&creations_that_fail) > 0) {
		atomic_fetch_sub(&creations_that_fail, 1);
		return EAGAIN;
	}
	start = malloc(sizeof(*start));
	assert_non_null(start);
	*start = (struct thread_start){.run = run, .argument = argument};
	atomic_fetch_add(&threads, 1);
	rc = __real_pthread_create(thread, attr, run_counted, start);
	if (rc) {
		atomic_fetch_sub(&threads, 1);
		free(start);
	}
	return rc;
}

static void await_no_threads(void)
{
	for (unsigned int polls = 0; atomic_load(&threads); polls++)
		peer_pause(polls);
}

/* Is it closed by the calling thread? Returns when it is closed. */
static bool is_closed_here(int fd, bool is_peer_trusted)
{
	atomic_store(&watched, fd);
	soft_closer_close_passed(fd, is_peer_trusted);
	for (unsigned int polls = 0; atomic_load(&watched) >= 0; polls++)
		peer_pause(polls);
	return pthread_equal(watched_by, pthread_self());
}

/* One end of a pipe; *end_out sees when the other end is closed. */
static int make_pipe(int *end_out)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	*end_out = ends[0];
	return ends[1];
}

/* Waits, for a limited time, until the other end is closed. */
static void await_end(int end)
{
	struct pollfd poll_fd = {.fd = end};

	assert_int_equal(poll(&poll_fd, 1, PEER_LIMIT_S * 1000), 1);
	assert_true(poll_fd.revents & POLLHUP);
	close(end);
}

/* --- */

/* GEN-34 CONN-GEN-09: neither the caller nor other descriptors nor a fork waits for it */
static void close__blocks__nothing_waits(void **state)
{
	struct lingering slow[3];
	int ends[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		lingering_open_nested(&slow[i], LINGER_S);
		if (i)
			soft_closer_close(slow[i].fd);
		else
			assert_false(is_closed_here(slow[i].fd, true));
		soft_closer_close(make_pipe(&ends[i]));
	}
	for (int i = 0; i < 3; i++)
		await_end(ends[i]);
	for (int i = 0; i < 3; i++) { /* the closes still block: the connections are open */
		struct pollfd other = {.fd = slow[i].other};

		assert_int_equal(poll(&other, 1, 0), 0);
		lingering_release(&slow[i]);
	}
}

static void close__many__all_closed(void **state)
{
	int ends[200];

	(void)state;
	for (int i = 0; i < 200; i++)
		soft_closer_close(make_pipe(&ends[i]));
	for (int i = 0; i < 200; i++)
		await_end(ends[i]);
	soft_closer_close(-1);
}

static void close__no_thread__closed_with_the_next_one(void **state)
{
	int ends[3];

	(void)state;
	await_no_threads(); /* one that is about to end would close them */
	atomic_store(&creations_that_fail, 2);
	for (int i = 0; i < 2; i++) {
		soft_closer_close(make_pipe(&ends[i]));
		assert_int_equal(poll(&(struct pollfd){.fd = ends[i]}, 1, 0), 0);
	}
	soft_closer_close(make_pipe(&ends[2]));
	for (int i = 0; i < 3; i++)
		await_end(ends[i]);
}

static void close_listed__listed__removed_and_closed(void **state)
{
	int end, fd = make_pipe(&end);

	(void)state;
	assert_int_equal(soft_fd_add(fd), 0);
	soft_closer_close_listed(fd);
	await_end(end);
	fd = make_pipe(&end);
	soft_closer_close_listed(fd); /* not listed */
	soft_closer_close_listed(-1);
	assert_true(is_open(fd));
	close(fd);
	close(end);
}

static bool is_hung_up(int sender, int timeout_ms)
{
	return poll(&(struct pollfd){.fd = sender}, 1, timeout_ms) == 1;
}

/* A socket whose last close blocks; *sender_out hangs up when that begins. */
static void open_held(struct lingering *slow, int *sender_out)
{
	await_no_threads();
	lingering_open_watched(slow, LINGER_S, sender_out);
	assert_int_equal(soft_fd_add(slow->fd), 0);
	assert_int_equal(pipe2(child_may, O_CLOEXEC), 0);
	atomic_store(child_has_copy, false);
	atomic_store(&parent, getpid());
	atomic_store(&held, slow->fd);
	atomic_store(&is_pausing, false);
	atomic_store(&holds_pauses, true);
}

static pid_t fork_child(void)
{
	const pid_t child = fork();

	assert_int_not_equal(child, -1);
	if (!child)
		_exit(0);
	return child;
}

static bool has_ended(pid_t child)
{
	siginfo_t info = {.si_pid = 0};

	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == child;
}

/* The child closes its copies, and ends although the last close blocks. */
static void release_child(pid_t child)
{
	assert_int_equal(write(child_may[1], "", 1), 1);
	for (int i = 0; waitpid(child, NULL, WNOHANG) == 0; i++) {
		assert_true(i < CHILD_MS);
		poll(NULL, 0, 1);
	}
}

static void finish_held(struct lingering *slow, int sender)
{
	atomic_store(&holds_pauses, false);
	await_end(sender);
	atomic_store(&held, -1);
	close(child_may[0]);
	close(child_may[1]);
	lingering_release(slow);
}

/* After a test that failed, too. */
static int let_go(void **state)
{
	(void)state;
	atomic_store(&steps_left, -1);
	atomic_store(&does_queue_refuse, false);
	atomic_store(&held, -1);
	atomic_store(&holds_pauses, false);
	return 0;
}

/*
 * CONN-GEN-09: the child of a fork closes its copies of what is listed, which must not be the last
 * ones: its fork would wait.
 */
static void close_listed__child_has_a_copy__closed_after_it(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct lingering slow;
		int sender;
		pid_t child;

		open_held(&slow, &sender);
		atomic_store(&does_queue_refuse, i == 1);
		child = fork_child();
		soft_closer_close_listed(slow.fd);
		for (unsigned int polls = 0; !atomic_load(&is_pausing) && atomic_load(&threads);
		     polls++)
			peer_pause(polls);
		assert_false(is_hung_up(sender, 0));
		release_child(child);
		finish_held(&slow, sender);
		atomic_store(&does_queue_refuse, false);
	}
}

/* Forks before that system call of the closer. Returns false if it makes none or is blocked. */
static bool fork_at_step(int n)
{
	struct lingering slow;
	bool is_at_step;
	int sender;

	open_held(&slow, &sender);
	atomic_store(&is_stepping, false);
	atomic_store(&has_forked, false);
	atomic_store(&steps_left, n);
	soft_closer_close_listed(slow.fd);
	for (unsigned int polls = 0; !atomic_load(&is_stepping) && !is_hung_up(sender, 0); polls++)
		peer_pause(polls);
	is_at_step = atomic_load(&is_stepping);
	if (is_at_step) {
		const pid_t child = fork_child();

		atomic_store(&has_forked, true);
		/* a child that does not close the socket has no copy */
		while (!atomic_load(child_has_copy) && !has_ended(child))
			sched_yield();
		if (atomic_load(child_has_copy)) /* time for a closer that does not wait */
			assert_false(is_hung_up(sender, 20));
		release_child(child);
	}
	atomic_store(&steps_left, -1);
	finish_held(&slow, sender);
	return is_at_step;
}

/* CONN-GEN-09: ... of a fork at any moment */
static void close_listed__fork_at_each_step__closed_after_the_child(void **state)
{
	int before, steps = 0;

	(void)state;
	await_no_threads();
	before = count_open();
	while (fork_at_step(steps))
		steps++;
	assert_in_range(steps, 3, 20);
	await_no_threads();
	assert_int_equal(count_open(), before);
}

static int memory_file(size_t size, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void close_passed__memory_file__closed_at_once(void **state)
{
	(void)state;
	assert_true(is_closed_here(memory_file(4096, F_SEAL_GROW), false));
	assert_true(is_closed_here(memory_file(16 * MB, F_SEAL_GROW), false));
	assert_true(is_closed_here(memory_file(4096, 0), true));
	assert_true(is_closed_here(memory_file(16 * MB + 1, 0), true));
}

/* A stranger's memory file may be large, now or when it is closed. */
static void close_passed__anything_else__closed_by_another_thread(void **state)
{
	int end, fd;

	(void)state;
	assert_false(is_closed_here(memory_file(4096, 0), false));
	assert_string_equal(watched_name, "dat-closer");
	assert_false(is_closed_here(memory_file(16 * MB + 1, F_SEAL_GROW), false));
	fd = memory_file(4096, 0);
	/* pages behind its end */
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 16 * MB + 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_false(is_closed_here(fd, false));
	assert_false(is_closed_here(open("/dev/null", O_RDONLY | O_CLOEXEC), true));
	assert_false(is_closed_here(make_pipe(&end), true));
	close(end);
}

static int child_body(int channel, void *argument)
{
	struct pollfd poll_fd;
	int ends[2];

	(void)channel;
	(void)argument;
	PEER_CHECK(pipe2(ends, O_CLOEXEC) == 0);
	soft_closer_close(ends[1]);
	poll_fd = (struct pollfd){.fd = ends[0]};
	PEER_CHECK(poll(&poll_fd, 1, PEER_LIMIT_S * 1000) == 1);
	return 0;
}

#define CLOSERS 8 /* threads of a process at most */

/* Waits until that many closes are about to block. */
static void await_closes(const int *senders, int count, int wanted)
{
	for (unsigned int polls = 0;; polls++) {
		int blocked = 0;

		for (int i = 0; i < count; i++) {
			struct pollfd hangup = {.fd = senders[i]};

			blocked += poll(&hangup, 1, 0) == 1;
		}
		if (blocked >= wanted)
			return;
		peer_pause(polls);
	}
}

/*
 * GEN-34: all threads of the parent are blocked; the child has its own. The fork waits until they
 * are: while a thread starts, it may hold a lock of a sanitizer, which the child would inherit.
 */
static void close__in_a_child__closed(void **state)
{
	struct lingering slow[10];
	struct peer child;
	int senders[10];

	(void)state;
	ABILITY_NEED(ability_threads_in_child(),
		     "no threads in the child of a process with threads");
	for (int i = 0; i < 10; i++) {
		lingering_open_watched(&slow[i], LINGER_S, &senders[i]);
		soft_closer_close(slow[i].fd);
	}
	await_closes(senders, 10, CLOSERS);
	child = peer_start(child_body, NULL);
	peer_finish(&child);
	for (int i = 0; i < 10; i++) {
		lingering_release(&slow[i]);
		close(senders[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close__blocks__nothing_waits),
		cmocka_unit_test(close__many__all_closed),
		cmocka_unit_test(close__no_thread__closed_with_the_next_one),
		cmocka_unit_test(close_listed__listed__removed_and_closed),
		cmocka_unit_test_teardown(close_listed__child_has_a_copy__closed_after_it, let_go),
		cmocka_unit_test_teardown(close_listed__fork_at_each_step__closed_after_the_child,
					  let_go),
		cmocka_unit_test(close_passed__memory_file__closed_at_once),
		cmocka_unit_test(close_passed__anything_else__closed_by_another_thread),
		cmocka_unit_test(close__in_a_child__closed),
	};

	main_thread = pthread_self();
	child_has_copy = mmap(NULL, sizeof(*child_has_copy), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(child_has_copy, MAP_FAILED);
	return cmocka_run_group_tests_name("soft closer", tests, NULL, NULL);
}
