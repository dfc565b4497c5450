// SPDX-License-Identifier: BSD-2-Clause
/*
 * The test harness, part three: a second process. The child is a fork that must not return into
 * cmocka, so that a failing check there aborts the child; the parent sees that as a failed join.
 */
#include "dt.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void dt_peer_run(struct dt_peer *peer, void (*fn)(struct dt_peer *peer, void *arg),
			void *arg, pid_t parent)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
	const struct rlimit no_core = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* the parent died before prctl */
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i],
		       SIG_DFL); /* cmocka's handlers would jump into the parent's test */
	setrlimit(RLIMIT_CORE, &no_core);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	fn(peer, arg);
	fflush(NULL);
	_exit(0);
}

/* Are all other threads of this process blocked? */
static bool others_are_blocked(void *unused)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	bool are_blocked = true;

	(void)unused;
	assert_non_null(tasks);
	while (are_blocked && (entry = readdir(tasks)) != NULL) {
		const int tid = atoi(entry->d_name); /* 0: "." or ".." */

		are_blocked = !tid || tid == gettid() || dt_thread_is_blocked(tid);
	}
	closedir(tasks);
	return are_blocked;
}

void dt_peer_start(struct dt_peer *peer, void (*fn)(struct dt_peer *peer, void *arg), void *arg)
{
	const pid_t parent = getpid();
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fflush(NULL);
	/* A lock of its allocator that another thread holds would stay locked in the child. */
	if (DT_ASAN)
		dt_until(others_are_blocked, NULL);
	peer->pid = fork();
	assert_int_not_equal(peer->pid, -1);
	if (peer->pid == 0) {
		close(fds[0]);
		peer->fd = fds[1];
		dt_peer_run(peer, fn, arg, parent);
	}
	close(fds[1]);
	peer->fd = fds[0];
}

void dt_peer_send(struct dt_peer *peer, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		const ssize_t n = send(peer->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			print_error("the other process has ended (%d)\n", errno);
			fail();
		}
		p += n;
		len -= (size_t)n;
	}
}

void dt_peer_recv(struct dt_peer *peer, void *data, size_t len)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	char *p = data;

	while (len) {
		struct pollfd pollfd = {.fd = peer->fd, .events = POLLIN};
		const uint64_t now = dt_now_us();

		if (now > end) {
			print_error("no message from the other process\n");
			fail();
		}
		if (poll(&pollfd, 1, (int)((end - now) / 1000) + 1) <= 0)
			continue;
		const ssize_t n = recv(peer->fd, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			print_error("the other process has ended\n");
			fail();
		}
		p += n;
		len -= (size_t)n;
	}
}

void dt_peer_sync(struct dt_peer *peer)
{
	const char mine = 's';
	char theirs = 0;

	dt_peer_send(peer, &mine, 1);
	dt_peer_recv(peer, &theirs, 1);
	assert_int_equal(theirs, mine);
}

/* --- signals and the end --- */

static void dt_peer_reap(struct dt_peer *peer)
{
	close(peer->fd);
	peer->pid = 0;
	peer->fd = -1;
}

void dt_peer_kill(struct dt_peer *peer)
{
	int status;

	assert_true(peer->pid > 0);
	assert_int_equal(kill(peer->pid, SIGKILL), 0);
	while (waitpid(peer->pid, &status, 0) == -1)
		assert_int_equal(errno, EINTR);
	dt_peer_reap(peer);
}

void dt_peer_stop(struct dt_peer *peer)
{
	int status;

	assert_int_equal(kill(peer->pid, SIGSTOP), 0);
	while (waitpid(peer->pid, &status, WUNTRACED) == -1)
		assert_int_equal(errno, EINTR);
	assert_true(WIFSTOPPED(status));
}

void dt_peer_continue(struct dt_peer *peer)
{
	assert_int_equal(kill(peer->pid, SIGCONT), 0);
}

struct dt_peer_end {
	pid_t pid;
	int status;
};

static bool dt_peer_has_ended(void *arg)
{
	struct dt_peer_end *end = arg;
	pid_t pid;

	do {
		pid = waitpid(end->pid, &end->status, WNOHANG);
	} while (pid == -1 && errno == EINTR);
	assert_int_not_equal(pid, -1);
	return pid == end->pid;
}

void dt_peer_join(struct dt_peer *peer)
{
	struct dt_peer_end end = {.pid = peer->pid};

	assert_true(peer->pid > 0);
	dt_until(dt_peer_has_ended, &end);
	dt_peer_reap(peer);
	if (WIFSIGNALED(end.status)) {
		print_error("the other process died of signal %d\n", WTERMSIG(end.status));
		fail();
	}
	assert_int_equal(WEXITSTATUS(end.status), 0);
}
