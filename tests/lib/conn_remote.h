// SPDX-License-Identifier: BSD-2-Clause
/*
 * A second process that executes calls on its endpoint one by one, as the test requests them. The
 * whole test is one function, and it can stop or kill the other process at any step.
 */
#ifndef TESTS_CONN_REMOTE_H
#define TESTS_CONN_REMOTE_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "conn_stream.h"
#include "conn_util.h"

enum remote_op {
	REMOTE_CONNECT, /* a: qualifier, b: time-out */
	REMOTE_LISTEN,	/* a: qualifier, 0: any. Reply a: the qualifier */
	REMOTE_UNLISTEN,
	REMOTE_REQUEST, /* waits for a connection request */
	REMOTE_ACCEPT,
	REMOTE_REJECT,
	REMOTE_EVENT,	   /* waits for a connection event. Reply a: its number */
	REMOTE_STATE,	   /* Reply a */
	REMOTE_POST_RECV,  /* a: how many (cookies from 1) */
	REMOTE_POST_SEND,  /* a: how many (cookies from 1) */
	REMOTE_RECEIVED,   /* waits for a Receive completion. Reply a: status, b: cookie */
	REMOTE_SENT,	   /* waits for a request completion. Reply a: status, b: cookie */
	REMOTE_DISCONNECT, /* a: flags */
	REMOTE_RESET,
	REMOTE_TRY_LISTEN, /* a: qualifier. Reply ret only; the point is freed again */
	REMOTE_FREE,	   /* frees the endpoint */
	REMOTE_BIG,	   /* makes a buffer of a bytes. Reply a: address, b: key */
	REMOTE_STREAM,	   /* replies, then transfers until it is killed; a: address there,
			    * b: key there and, in the high half, enum conn_stream_kind */
	REMOTE_FORK,	   /* makes a child that only sleeps; b: by a raw clone, which runs no fork
			    * handlers. Reply a: its process number */
	REMOTE_QUIET,	   /* nothing arrives on any EVD */
	/* requests that end the process; they have no reply */
	REMOTE_END,	 /* frees and closes everything, exits */
	REMOTE_EXIT,	 /* exit() with everything open */
	REMOTE_EXIT_NOW, /* _exit() with everything open */
	REMOTE_EXEC,	 /* becomes another program with everything open */
};

struct remote_msg {
	uint32_t op;
	DAT_RETURN ret;
	uint64_t a, b;
};

/* --- this side --- */

struct remote_fixture {
	struct conn_fixture *f;
	struct dt_peer peer;
};

struct remote_msg remote_ask(struct dt_peer *peer, enum remote_op op, uint64_t a, uint64_t b);
/* Requests a call, which must succeed. Returns `a` of the reply. */
uint64_t remote_do(struct dt_peer *peer, enum remote_op op, uint64_t a, uint64_t b);
void remote_connect(struct dt_peer *peer, DAT_CONN_QUAL qual);
void remote_expect(struct dt_peer *peer, DAT_EVENT_NUMBER number);
void remote_start(struct dt_peer *peer);
/* remote_start as another user and group. */
void remote_start_as(struct dt_peer *peer, uid_t user);
/* Starts the other process before this one opens its adapter, so that it inherits nothing. */
int remote_setup(void **state);
int remote_teardown(void **state);

#define remote_test(name) cmocka_unit_test_setup_teardown(name, remote_setup, remote_teardown)

/* The other side connects to the fixture's listener; b accepts. */
void remote_link_passive(struct remote_fixture *r);
/* b connects to a listener of the other side, which accepts. */
void remote_link_active(struct remote_fixture *r);
/* Requests one of the ways to end; returns when the process has ended. */
void remote_go(struct dt_peer *peer, enum remote_op op);

#endif
