// SPDX-License-Identifier: BSD-2-Clause
/*
 * A second process for a test: a fork that runs a function and exits with its result. The two
 * processes signal each other "go on" by single bytes. An alarm ends a peer that hangs.
 */
#ifndef UNIT_SOFT_PEER_H
#define UNIT_SOFT_PEER_H

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/ability.h"

#define PEER_LIMIT_S 30

struct peer {
	pid_t pid;
	int channel;
};

/* In the peer: ends it with a code that names the line, unless the condition holds. */
#define PEER_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__ % 250 + 1;                                                 \
	} while (0)

static inline int peer_signal(int channel)
{
	return send(channel, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static inline int peer_await(int channel)
{
	char byte;

	return recv(channel, &byte, 1, 0) == 1 ? 0 : -1;
}

/*
 * Called between two polls of shared memory with their number: yields to other threads when it
 * takes long.
 */
static inline void peer_pause(unsigned int polls)
{
	if (polls % 1000 == 999)
		sched_yield();
}

/* Starts a process that runs body(channel, argument) and exits with its result. */
static inline struct peer peer_start(int (*body)(int channel, void *argument), void *argument)
{
	struct peer peer;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer.pid = fork();
	assert_true(peer.pid >= 0);
	if (peer.pid == 0) {
		alarm(PEER_LIMIT_S);
		close(pair[0]);
		_exit(body(pair[1], argument));
	}
	close(pair[1]);
	peer.channel = pair[0];
	return peer;
}

/* False if the peer has ended (peer_finish() returns how). */
static inline bool peer_is_running(const struct peer *peer)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)peer->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

/* Waits for the peer, which must return 0. */
static inline void peer_finish(struct peer *peer)
{
	int status = -1;

	close(peer->channel);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
