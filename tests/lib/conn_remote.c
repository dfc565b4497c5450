// SPDX-License-Identifier: BSD-2-Clause
/* The second process that executes connection calls on request, and the side that asks; see the
 * header. */
#include "conn_remote.h"

#include <sys/syscall.h>
#include <unistd.h>

/* --- the other side --- */

struct remote_self {
	struct conn_fixture *f;
	struct dt_listener listener;
	DAT_CR_HANDLE cr;
	struct dt_buf big;
};

static void remote_self_listen(struct remote_self *self, struct remote_msg *msg)
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

static void remote_self_try_listen(struct remote_self *self, struct remote_msg *msg)
{
	DAT_PSP_HANDLE psp;

	msg->ret = dat_psp_create(self->f->ia.ia, msg->a, self->f->listener.evd,
				  DAT_PSP_CONSUMER_FLAG, &psp);
	if (msg->ret == DAT_SUCCESS)
		dt_ok(dat_psp_free(psp));
}

static void remote_self_dto(DAT_EVD_HANDLE evd, struct remote_msg *msg)
{
	const DAT_EVENT event = dt_event(evd);

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	msg->a = event.event_data.dto_completion_event_data.status;
	msg->b = event.event_data.dto_completion_event_data.user_cookie.as_64;
}

static void remote_self_big(struct remote_self *self, struct remote_msg *msg)
{
	dt_buf_create(&self->f->ia, self->f->ia.pz, &self->big, msg->a, DAT_MEM_PRIV_ALL_FLAG);
	msg->a = (uintptr_t)self->big.p;
	msg->b = self->big.rkey;
}

/* The grandchild outlives this process; the test must kill it. It runs when this returns. */
static void remote_self_fork(struct remote_msg *msg)
{
	char byte = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = msg->b ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
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

static void remote_self_data(struct remote_self *self, struct remote_msg *msg)
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

static void remote_self_connection(struct remote_self *self, struct remote_msg *msg)
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

static void remote_self_stream(struct remote_self *self, const struct remote_msg *msg)
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

static void remote_self_end(struct remote_self *self, enum remote_op op)
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

static void remote_self_run(struct dt_peer *peer, void *arg)
{
	struct remote_self self = {0};
	struct remote_msg msg;
	void *state;

	if (arg) {
		const uid_t user = *(const uid_t *)arg;

		assert_int_equal(setresgid(user, user, user), 0);
		assert_int_equal(setresuid(user, user, user), 0);
	}
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

struct remote_msg remote_ask(struct dt_peer *peer, enum remote_op op, uint64_t a, uint64_t b)
{
	struct remote_msg msg = {.op = op, .a = a, .b = b};

	dt_peer_send(peer, &msg, sizeof(msg));
	dt_peer_recv(peer, &msg, sizeof(msg));
	assert_int_equal(msg.op, op);
	return msg;
}

uint64_t remote_do(struct dt_peer *peer, enum remote_op op, uint64_t a, uint64_t b)
{
	const struct remote_msg msg = remote_ask(peer, op, a, b);

	dt_ok(msg.ret);
	return msg.a;
}

void remote_connect(struct dt_peer *peer, DAT_CONN_QUAL qual)
{
	remote_do(peer, REMOTE_CONNECT, qual, DAT_TIMEOUT_INFINITE);
}

void remote_expect(struct dt_peer *peer, DAT_EVENT_NUMBER number)
{
	assert_int_equal(remote_do(peer, REMOTE_EVENT, 0, 0), number);
}

void remote_start(struct dt_peer *peer)
{
	dt_peer_start(peer, remote_self_run, NULL);
}

void remote_start_as(struct dt_peer *peer, uid_t user)
{
	dt_peer_start(peer, remote_self_run, &user);
}

int remote_setup(void **state)
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

int remote_teardown(void **state)
{
	struct remote_fixture *r = *state;
	void *f = r->f;

	if (r->peer.pid > 0)
		dt_peer_kill(&r->peer);
	return conn_teardown(&f);
}

void remote_link_passive(struct remote_fixture *r)
{
	struct conn_fixture *f = r->f;

	remote_connect(&r->peer, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void remote_link_active(struct remote_fixture *r)
{
	struct conn_fixture *f = r->f;

	dt_connect(&f->ia, f->b.ep, remote_do(&r->peer, REMOTE_LISTEN, 0, 0));
	remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
	remote_do(&r->peer, REMOTE_ACCEPT, 0, 0);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static bool remote_has_let_go(void *arg)
{
	struct dt_peer *peer = arg;
	char byte;

	return recv(peer->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/*
 * Has the process executed its new program, and does that program sleep? The end of the channel
 * does not show it: exec closes the descriptors one by one, and may close the channel long before
 * the last one.
 */
static bool remote_is_asleep(void *arg)
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

void remote_go(struct dt_peer *peer, enum remote_op op)
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
