// SPDX-License-Identifier: BSD-2-Clause
/*
 * The mark in the key table that shows peers that its owner is dead (src/soft/key.h). It is set
 * before the descriptors of an owner that calls exec are closed, so that no peer copies into the
 * next program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/ability.h"
#include "soft/key.h"

enum end { END_EXEC, END_EXIT, END_KILL, END_NONE };

struct owner {
	struct soft_keys *keys;
	int go[2];
	enum end end;
};

/* The thread that serves the table. */
static void *serve(void *arg)
{
	struct owner *owner = arg;
	struct soft_guard guard;
	char byte = 0;

	soft_guard_begin(&guard, owner->keys);
	if (write(owner->go[1], &byte, 1) != 1)
		_exit(1);
	if (owner->end != END_NONE)
		for (;;)
			pause();
	soft_guard_end(&guard);
	return NULL;
}

/* The child: sends the number of its table's descriptor, then ends as requested. */
static void own(int fd, enum end end)
{
	struct owner owner = {.end = end};
	pthread_t thread;
	char byte;
	int table;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (soft_keys_create(&owner.keys) || pipe2(owner.go, O_CLOEXEC) ||
	    pthread_create(&thread, NULL, serve, &owner) || read(owner.go[0], &byte, 1) != 1)
		_exit(1);
	if (end == END_NONE)
		pthread_join(thread, NULL);
	table = soft_keys_fd(owner.keys);
	if (write(fd, &table, sizeof(table)) != sizeof(table) || read(fd, &byte, 1) != 1)
		_exit(1);
	if (end == END_EXEC)
		execlp("sleep", "sleep", "100", (char *)NULL);
	if (end == END_KILL)
		raise(SIGKILL);
	_exit(0);
}

static struct soft_view *view_of(pid_t pid, int number)
{
	struct soft_view *view = NULL;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_not_equal(fd, -1);
	assert_int_equal(soft_view_get(fd, &view), 0);
	close(fd);
	return view;
}

/* The guard is held by a thread of the owner that is not its main thread. */
static void check_thread(pid_t pid, pid_t thread)
{
	assert_int_not_equal(thread, pid);
	assert_int_equal(syscall(SYS_tgkill, pid, thread, 0), 0);
}

static void check_end(enum end end)
{
	struct soft_view *view;
	int fds[2], number;
	char byte = 0;
	pid_t pid;

	ABILITY_NEED(ability_robust_list(), "no robust futexes");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (!pid) {
		close(fds[0]);
		own(fds[1], end);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &number, sizeof(number)), sizeof(number));
	view = view_of(pid, number);
	assert_false(soft_view_is_orphan(view));
	if (end != END_NONE)
		check_thread(pid, soft_view_thread(view));
	assert_int_equal(write(fds[0], &byte, 1), 1);
	/* the end of the socket: the mark was set before */
	assert_int_equal(read(fds[0], &byte, 1), 0);
	assert_int_equal(soft_view_is_orphan(view), end != END_NONE);
	if (end != END_NONE)
		assert_int_equal(soft_view_thread(view), 0);
	soft_view_put(view);
	close(fds[0]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void guard__owner_calls_exec__orphan(void **state)
{
	(void)state;
	check_end(END_EXEC);
}

static void guard__owner_ends__orphan(void **state)
{
	(void)state;
	check_end(END_EXIT);
	check_end(END_KILL);
}

/* A closed adapter has no connections that could ask. */
static void guard__given_up__no_orphan(void **state)
{
	(void)state;
	check_end(END_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guard__owner_calls_exec__orphan),
		cmocka_unit_test(guard__owner_ends__orphan),
		cmocka_unit_test(guard__given_up__no_orphan),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
