// SPDX-License-Identifier: BSD-2-Clause
/*
 * A second process that is told, call by call, what to do with its endpoint. So that a test reads
 * from top to bottom in one place, and can stop or kill the other side at any step.
 */
#ifndef TESTS_CONN_REMOTE_H
#define TESTS_CONN_REMOTE_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

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
	REMOTE_FORK,	   /* makes a child that only sleeps. Reply a: its process number */
	REMOTE_QUIET,	   /* nothing arrives on any EVD */
	/* ways to end: no reply */
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

/* --- transfers without end --- */

#define CONN_STREAM_DEPTH 8

enum conn_stream_kind { CONN_STREAM_SEND, CONN_STREAM_WRITE, CONN_STREAM_READ, CONN_STREAM_KINDS };

struct conn_stream {
	enum conn_stream_kind kind;
	struct dt_ep *ep;
	const struct dt_buf *local; /* whole */
	DAT_RMR_TRIPLET remote;
	uint64_t posted, completed; /* cookies count from 0 */
	bool has_failed;
};

static inline void conn_stream_post(struct conn_stream *stream)
{
	DAT_LMR_TRIPLET seg = dt_seg(stream->local, 0, stream->local->len);
	const DAT_DTO_COOKIE cookie = dt_cookie(stream->posted++);
	const DAT_EP_HANDLE ep = stream->ep->ep;

	if (stream->kind == CONN_STREAM_SEND)
		dt_ok(dat_ep_post_send(ep, 1, &seg, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	else if (stream->kind == CONN_STREAM_WRITE)
		dt_ok(dat_ep_post_rdma_write(ep, 1, &seg, cookie, &stream->remote,
					     DAT_COMPLETION_DEFAULT_FLAG));
	else
		dt_ok(dat_ep_post_rdma_read(ep, 1, &seg, cookie, &stream->remote,
					    DAT_COMPLETION_DEFAULT_FLAG));
}

/* Takes what has completed: in posting order, and nothing succeeds behind a failure. */
static inline void conn_stream_reap(struct conn_stream *stream)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(stream->ep->request, &event) == DAT_SUCCESS) {
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_true(dto->user_cookie.as_64 == stream->completed);
		stream->completed++;
		if (dto->status != DAT_DTO_SUCCESS)
			stream->has_failed = true;
		else
			assert_false(stream->has_failed);
	}
}

/* Keeps CONN_STREAM_DEPTH transfers under way, until one has failed. */
static inline void conn_stream_step(struct conn_stream *stream)
{
	while (!stream->has_failed && stream->posted - stream->completed < CONN_STREAM_DEPTH)
		conn_stream_post(stream);
	conn_stream_reap(stream);
}

/* --- the other side --- */

struct remote_self {
	struct conn_fixture *f;
	struct dt_listener listener;
	DAT_CR_HANDLE cr;
	struct dt_buf big;
};

static inline void remote_self_listen(struct remote_self *self, struct remote_msg *msg)
{
	struct dt_ia *ia = &self->f->ia;

	if (!msg->a) {
		dt_listen(ia, &self->listener);
		msg->a = self->listener.qual;
		return;
	}
	self->listener.evd = dt_evd_create(ia, 8, DAT_EVD_CR_FLAG);
	self->listener.qual = msg->a;
	msg->ret = dat_psp_create(ia->ia, msg->a, self->listener.evd, DAT_PSP_CONSUMER_FLAG,
				  &self->listener.psp);
}

static inline void remote_self_try_listen(struct remote_self *self, struct remote_msg *msg)
{
	DAT_PSP_HANDLE psp;

	msg->ret = dat_psp_create(self->f->ia.ia, msg->a, self->f->listener.evd,
				  DAT_PSP_CONSUMER_FLAG, &psp);
	if (msg->ret == DAT_SUCCESS)
		dt_ok(dat_psp_free(psp));
}

static inline void remote_self_dto(DAT_EVD_HANDLE evd, struct remote_msg *msg)
{
	const DAT_EVENT event = dt_event(evd);

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	msg->a = event.event_data.dto_completion_event_data.status;
	msg->b = event.event_data.dto_completion_event_data.user_cookie.as_64;
}

static inline void remote_self_big(struct remote_self *self, struct remote_msg *msg)
{
	dt_buf_create(&self->f->ia, self->f->ia.pz, &self->big, msg->a, DAT_MEM_PRIV_ALL_FLAG);
	msg->a = (uintptr_t)self->big.p;
	msg->b = self->big.rkey;
}

/* The grandchild outlives this process; whoever asked for it ends it. It runs when this returns. */
static inline void remote_self_fork(struct remote_msg *msg)
{
	char byte = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (!pid) {
		if (write(fds[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	msg->a = (uint64_t)pid;
}

static inline void remote_self_data(struct remote_self *self, struct remote_msg *msg)
{
	struct conn_fixture *f = self->f;

	switch (msg->op) {
	case REMOTE_POST_RECV:
		for (uint64_t i = 1; i <= msg->a; i++)
			conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, i);
		break;
	case REMOTE_POST_SEND:
		for (uint64_t i = 1; i <= msg->a; i++)
			conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, i);
		break;
	case REMOTE_RECEIVED:
		remote_self_dto(f->a.recv, msg);
		break;
	case REMOTE_SENT:
		remote_self_dto(f->a.request, msg);
		break;
	case REMOTE_BIG:
		remote_self_big(self, msg);
		break;
	case REMOTE_FORK:
		remote_self_fork(msg);
		break;
	case REMOTE_STREAM:
		break; /* when the reply is sent */
	default:
		fail();
	}
}

static inline void remote_self_connection(struct remote_self *self, struct remote_msg *msg)
{
	struct conn_fixture *f = self->f;
	struct conn_args args = conn_args_of(f);

	switch (msg->op) {
	case REMOTE_CONNECT:
		args.qual = msg->a;
		args.timeout = (DAT_TIMEOUT)msg->b;
		msg->ret = conn_try(f->a.ep, &args);
		break;
	case REMOTE_LISTEN:
		remote_self_listen(self, msg);
		break;
	case REMOTE_TRY_LISTEN:
		remote_self_try_listen(self, msg);
		break;
	case REMOTE_UNLISTEN:
		dt_unlisten(&self->listener);
		break;
	case REMOTE_REQUEST:
		self->cr = dt_request(&self->listener);
		break;
	case REMOTE_ACCEPT:
		msg->ret = dat_cr_accept(self->cr, f->a.ep, 0, NULL);
		break;
	case REMOTE_REJECT:
		msg->ret = dat_cr_reject(self->cr);
		break;
	case REMOTE_EVENT:
		msg->a = dt_event(f->a.conn).event_number;
		break;
	case REMOTE_STATE:
		msg->a = dt_ep_state(f->a.ep);
		break;
	case REMOTE_DISCONNECT:
		msg->ret = dat_ep_disconnect(f->a.ep, (DAT_CLOSE_FLAGS)msg->a);
		break;
	case REMOTE_RESET:
		msg->ret = dat_ep_reset(f->a.ep);
		break;
	case REMOTE_FREE:
		msg->ret = dat_ep_free(f->a.ep);
		f->a.ep = DAT_HANDLE_NULL;
		break;
	case REMOTE_QUIET:
		conn_stays_quiet(&f->a);
		break;
	default:
		remote_self_data(self, msg);
	}
}

static inline void remote_self_stream(struct remote_self *self, const struct remote_msg *msg)
{
	struct conn_stream stream = {
		.kind = (enum conn_stream_kind)(msg->b >> 32),
		.ep = &self->f->a,
		.local = &self->big,
		.remote = {.rmr_context = (DAT_RMR_CONTEXT)msg->b,
			   .target_address = msg->a,
			   .segment_length = self->big.len},
	};

	for (;;)
		conn_stream_step(&stream);
}

static inline void remote_self_end(struct remote_self *self, enum remote_op op)
{
	void *state = self->f;

	switch (op) {
	case REMOTE_EXIT:
		exit(0);
	case REMOTE_EXIT_NOW:
		_exit(0);
	case REMOTE_EXEC:
		execlp("sleep", "sleep", "100", (char *)NULL);
		fail();
		break;
	default:
		conn_teardown(&state);
	}
}

static inline void remote_self_run(struct dt_peer *peer, void *arg)
{
	struct remote_self self = {0};
	struct remote_msg msg;
	void *state;

	(void)arg;
	conn_setup(&state);
	self.f = state;
	for (;;) {
		dt_peer_recv(peer, &msg, sizeof(msg));
		if (msg.op >= REMOTE_END)
			break;
		msg.ret = DAT_SUCCESS;
		remote_self_connection(&self, &msg);
		dt_peer_send(peer, &msg, sizeof(msg));
		if (msg.op == REMOTE_STREAM)
			remote_self_stream(&self, &msg);
	}
	remote_self_end(&self, (enum remote_op)msg.op);
}

/* --- this side --- */

struct remote_fixture {
	struct conn_fixture *f;
	struct dt_peer peer;
};

static inline struct remote_msg remote_ask(struct dt_peer *peer, enum remote_op op, uint64_t a,
					   uint64_t b)
{
	struct remote_msg msg = {.op = op, .a = a, .b = b};

	dt_peer_send(peer, &msg, sizeof(msg));
	dt_peer_recv(peer, &msg, sizeof(msg));
	assert_int_equal(msg.op, op);
	return msg;
}

/* The call must succeed there. Returns the reply's a. */
static inline uint64_t remote_do(struct dt_peer *peer, enum remote_op op, uint64_t a, uint64_t b)
{
	const struct remote_msg msg = remote_ask(peer, op, a, b);

	dt_ok(msg.ret);
	return msg.a;
}

static inline void remote_connect(struct dt_peer *peer, DAT_CONN_QUAL qual)
{
	remote_do(peer, REMOTE_CONNECT, qual, DAT_TIMEOUT_INFINITE);
}

static inline void remote_expect(struct dt_peer *peer, DAT_EVENT_NUMBER number)
{
	assert_int_equal(remote_do(peer, REMOTE_EVENT, 0, 0), number);
}

static inline void remote_start(struct dt_peer *peer)
{
	dt_peer_start(peer, remote_self_run, NULL);
}

/* Both sides are gone through before this side opens its adapter: the child inherits nothing. */
static inline int remote_setup(void **state)
{
	static struct remote_fixture fixture;
	void *f;

	memset(&fixture, 0, sizeof(fixture));
	remote_start(&fixture.peer);
	conn_setup(&f);
	fixture.f = f;
	*state = &fixture;
	return 0;
}

static inline int remote_teardown(void **state)
{
	struct remote_fixture *r = *state;
	void *f = r->f;

	if (r->peer.pid > 0)
		dt_peer_kill(&r->peer);
	return conn_teardown(&f);
}

#define remote_test(name) cmocka_unit_test_setup_teardown(name, remote_setup, remote_teardown)

/* The other side connects to the fixture's listener; b accepts. */
static inline void remote_link_passive(struct remote_fixture *r)
{
	struct conn_fixture *f = r->f;

	remote_connect(&r->peer, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* b connects to a listener of the other side, which accepts. */
static inline void remote_link_active(struct remote_fixture *r)
{
	struct conn_fixture *f = r->f;

	dt_connect(&f->ia, f->b.ep, remote_do(&r->peer, REMOTE_LISTEN, 0, 0));
	remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
	remote_do(&r->peer, REMOTE_ACCEPT, 0, 0);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static inline bool remote_has_let_go(void *arg)
{
	struct dt_peer *peer = arg;
	char byte;

	return recv(peer->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/*
 * Is it the program that it becomes by exec, and has that begun to sleep? Its descriptors are
 * closed one after the other on the way there, that of the channel perhaps long before the last
 * one.
 */
static inline bool remote_is_asleep(void *arg)
{
	const struct dt_peer *peer = arg;
	char path[40], text[256];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)peer->pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	return strstr(text, "(sleep) S") != NULL;
}

/* Tells it to go in one of the ways without farewell; returns when it did. */
static inline void remote_go(struct dt_peer *peer, enum remote_op op)
{
	const struct remote_msg msg = {.op = op};

	dt_peer_send(peer, &msg, sizeof(msg));
	dt_until(remote_has_let_go, peer);
	if (op == REMOTE_END)
		dt_peer_join(peer);
	else if (op == REMOTE_EXEC)
		dt_until(remote_is_asleep, peer);
	else
		dt_peer_kill(peer); /* reaps it */
}

#endif
