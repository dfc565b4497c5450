// SPDX-License-Identifier: BSD-2-Clause
/*
 * The other process goes without a word: killed, by exit, by exec, at every step of a connection's
 * life and in the middle of every kind of transfer. The survivor is told once, in time, has all its
 * operations back, and connects to the next one.
 */
#include <pthread.h>

#include "conn_remote.h"

#define IN_TIME_US 5000000u

struct fixture {
	struct conn_fixture *f;
	struct dt_peer victim;
	struct dt_peer next; /* to show that the survivor can connect again */
};

static int setup(void **state)
{
	static struct fixture fixture;
	void *f;

	memset(&fixture, 0, sizeof(fixture));
	remote_start(&fixture.victim);
	remote_start(&fixture.next);
	conn_setup(&f);
	fixture.f = f;
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;
	void *f = x->f;

	if (x->victim.pid > 0)
		dt_peer_kill(&x->victim);
	if (x->next.pid > 0)
		dt_peer_kill(&x->next);
	return conn_teardown(&f);
}

/* --- ways to go --- */

enum way { BY_KILL, BY_EXIT, BY_EXIT_NOW, BY_EXEC, WAYS };

static const char *const way_names[] = {"kill", "exit", "_exit", "exec"};

static void victim_goes(struct fixture *x, enum way way)
{
	static const enum remote_op ops[] = {
		[BY_EXIT] = REMOTE_EXIT, [BY_EXIT_NOW] = REMOTE_EXIT_NOW, [BY_EXEC] = REMOTE_EXEC};

	if (way == BY_KILL)
		dt_peer_kill(&x->victim);
	else
		remote_go(&x->victim, ops[way]);
}

/* --- what the survivor sees --- */

/* On one host nobody can mistake a death for a farewell (EP-STATE-44). */
static void check_end_of_connection(DAT_EVENT_NUMBER number)
{
	if (strcmp(dt_adapter(), "soft-lo") != 0 && number == DAT_CONNECTION_EVENT_DISCONNECTED)
		return;
	assert_int_equal(number, DAT_CONNECTION_EVENT_BROKEN);
}

/* One event in time, the state that belongs to it, nothing after it. Returns its number. */
static DAT_EVENT_NUMBER take_end(struct dt_ep *ep, uint64_t since)
{
	const DAT_EVENT event = dt_event(ep->conn);

	assert_true(dt_now_us() - since < IN_TIME_US);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep->ep);
	assert_int_equal(dt_ep_state(ep->ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(ep->conn);
	return event.event_number;
}

/* Whatever b went through: reset, connected to the next process from either side, data pass. */
static void check_next_one(struct fixture *x)
{
	struct conn_fixture *f = x->f;

	dt_ok(dat_ep_reset(f->b.ep));
	remote_do(&x->next, REMOTE_POST_RECV, 1, 0);
	remote_connect(&x->next, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&x->next, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
	dt_expect_dto(f->b.request, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	assert_int_equal(remote_do(&x->next, REMOTE_RECEIVED, 0, 0), DAT_DTO_SUCCESS);
	conn_stays_quiet(&f->b);
	dt_no_event(f->ia.async);
}

/* --- steps of a set-up --- */

/* The request waits here; the victim goes; then it is answered. */
static void request_waits(struct fixture *x, enum way way, bool is_accept)
{
	struct conn_fixture *f = x->f;
	DAT_CR_HANDLE cr;
	uint64_t since;

	remote_connect(&x->victim, f->listener.qual);
	cr = dt_request(&f->listener);
	victim_goes(x, way);
	conn_stays_quiet(&f->b);
	assert_int_equal(conn_cr_query(cr).private_data_size, 0);
	if (!is_accept) {
		dt_ok(dat_cr_reject(cr));
		return;
	}
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	since = dt_now_us();
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	assert_int_equal(take_end(&f->b, since), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	conn_expect_flushes(&f->b, 1, 1);
}

static void step_request_then_accept(struct fixture *x, enum way way)
{
	request_waits(x, way, true);
}

static void step_request_then_reject(struct fixture *x, enum way way)
{
	request_waits(x, way, false);
}

/* Accepted, but the victim cannot say that it is ready. */
static void step_completion_pending(struct fixture *x, enum way way)
{
	struct conn_fixture *f = x->f;
	DAT_CR_HANDLE cr;
	uint64_t since;

	(void)way; /* a stopped process can only be killed */
	remote_connect(&x->victim, f->listener.qual);
	cr = dt_request(&f->listener);
	dt_peer_stop(&x->victim);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_COMPLETION_PENDING);
	since = dt_now_us();
	dt_peer_kill(&x->victim);
	assert_int_equal(take_end(&f->b, since), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	conn_expect_flushes(&f->b, 1, 1);
}

/* The victim listens; it has not even looked at the request, or it has. */
static void victim_is_asked(struct fixture *x, enum way way, bool has_looked)
{
	struct conn_fixture *f = x->f;
	const DAT_CONN_QUAL qual = remote_do(&x->victim, REMOTE_LISTEN, 0, 0);
	uint64_t since;

	if (!has_looked && way == BY_KILL)
		dt_peer_stop(&x->victim);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	dt_connect(&f->ia, f->b.ep, qual);
	if (has_looked)
		remote_do(&x->victim, REMOTE_REQUEST, 0, 0);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	since = dt_now_us();
	victim_goes(x, way);
	assert_int_equal(take_end(&f->b, since), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	conn_expect_flushes(&f->b, 1, 1);
}

static void step_asking(struct fixture *x, enum way way)
{
	victim_is_asked(x, way, false);
}

static void step_asked(struct fixture *x, enum way way)
{
	victim_is_asked(x, way, true);
}

/* --- steps of a connection --- */

static void link_passive(struct fixture *x)
{
	struct remote_fixture r = {.f = x->f, .peer = x->victim};

	remote_link_passive(&r);
}

static void link_active(struct fixture *x)
{
	struct remote_fixture r = {.f = x->f, .peer = x->victim};

	remote_link_active(&r);
}

static void expect_broken_with_flushes(struct fixture *x, enum way way, uint64_t recvs)
{
	const uint64_t since = dt_now_us();

	victim_goes(x, way);
	check_end_of_connection(take_end(&x->f->b, since));
	conn_expect_flushes(&x->f->b, 1, recvs);
}

static void step_idle_passive(struct fixture *x, enum way way)
{
	link_passive(x);
	expect_broken_with_flushes(x, way, 0);
}

static void step_idle_active_with_receives(struct fixture *x, enum way way)
{
	link_active(x);
	for (uint64_t i = 1; i <= 5; i++)
		conn_post_recv(x->f->b.ep, &x->f->buf, CONN_B_RECEIVES_AT, i);
	expect_broken_with_flushes(x, way, 5);
}

/* Sends that no Receive takes: none can have succeeded. */
static void step_sends_wait(struct fixture *x, enum way way)
{
	struct conn_fixture *f = x->f;

	link_passive(x);
	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	for (uint64_t i = 1; i <= 10; i++)
		conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, i);
	expect_broken_with_flushes(x, way, 1);
	for (uint64_t i = 1; i <= 10; i++) {
		const DAT_EVENT event = dt_event(f->b.request);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		assert_true(dto->user_cookie.as_64 == i);
		assert_int_not_equal(dto->status, DAT_DTO_SUCCESS);
	}
	dt_no_event(f->b.request);
}

/* The victim sent before it went: what was complete is received, or lost, but never twice. */
static void step_victim_had_sent(struct fixture *x, enum way way)
{
	struct conn_fixture *f = x->f;
	const uint64_t since = dt_now_us();

	link_active(x);
	remote_do(&x->victim, REMOTE_POST_SEND, 4, 0);
	victim_goes(x, way);
	check_end_of_connection(take_end(&f->b, since));
	conn_stays_quiet(&f->b);
	dt_ok(dat_ep_reset(f->b.ep));
	for (uint64_t i = 1; i <= 6; i++)
		conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, i);
	dt_connect(&f->ia, f->b.ep, dt_unused_qual());
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	/* nothing of the old connection came to the new attempt */
	for (uint64_t i = 1; i <= 6; i++) {
		const DAT_EVENT event = dt_event(f->b.recv);

		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_FLUSHED);
	}
}

/* The survivor disconnects gracefully and cannot finish. */
static void step_survivor_disconnecting(struct fixture *x, enum way way)
{
	struct conn_fixture *f = x->f;
	uint64_t since;

	link_passive(x);
	conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
	dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	since = dt_now_us();
	victim_goes(x, way);
	assert_int_equal(take_end(&f->b, since), DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_not_equal(dt_event(f->b.request).event_data.dto_completion_event_data.status,
			     DAT_DTO_SUCCESS);
	conn_no_events(&f->b);
}

/* The victim was disconnecting gracefully and had not finished. */
static void step_victim_disconnecting(struct fixture *x, enum way way)
{
	struct conn_fixture *f = x->f;

	link_passive(x);
	remote_do(&x->victim, REMOTE_POST_SEND, 3, 0);
	remote_do(&x->victim, REMOTE_DISCONNECT, DAT_CLOSE_GRACEFUL_FLAG, 0);
	assert_int_equal(remote_do(&x->victim, REMOTE_STATE, 0, 0),
			 DAT_EP_STATE_DISCONNECT_PENDING);
	conn_stays_quiet(&f->b);
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_CONNECTED);
	expect_broken_with_flushes(x, way, 0);
}

/* --- the tests: every step, every way --- */

struct step {
	const char *name;
	void (*run)(struct fixture *x, enum way way);
	bool is_kill_only;
};

static void run_steps(const struct step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (int way = 0; way < WAYS; way++) {
			void *state;

			if (steps[i].is_kill_only && way != BY_KILL)
				continue;
			print_message("  %s, %s\n", steps[i].name, way_names[way]);
			setup(&state);
			steps[i].run(state, (enum way)way);
			check_next_one(state);
			teardown(&state);
		}
	}
}

/* COMPAT-19 CONN-EVT-26 CONN-EVT-28 CR-ACCEPT-19 CR-ACCEPT-20 CR-ACCEPT-21 CR-REJECT-07
 * EP-CONNECT-22 EP-STATE-48 */
static void peer_dies__during_set_up__survivor_told_and_sound(void **state)
{
	static const struct step steps[] = {
		{.name = "request waits, then accept", .run = step_request_then_accept},
		{.name = "request waits, then reject", .run = step_request_then_reject},
		{.name = "completion pending",
		 .run = step_completion_pending,
		 .is_kill_only = true},
		{.name = "asking", .run = step_asking},
		{.name = "asked", .run = step_asked},
	};

	(void)state;
	run_steps(steps, COUNT_OF(steps));
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-44 EP-STATE-52 EP-STATE-72 EP-STATE-73 EP-STATE-74 EP-STATE-80
 * EP-DISC-36 EP-DISC-41 IA-CLOSE-28 */
static void peer_dies__when_connected__survivor_told_and_sound(void **state)
{
	static const struct step steps[] = {
		{.name = "idle, passive", .run = step_idle_passive},
		{.name = "idle, active", .run = step_idle_active_with_receives},
		{.name = "sends wait", .run = step_sends_wait},
		{.name = "victim had sent", .run = step_victim_had_sent},
		{.name = "survivor disconnecting", .run = step_survivor_disconnecting},
		{.name = "victim disconnecting", .run = step_victim_disconnecting},
	};

	(void)state;
	run_steps(steps, COUNT_OF(steps));
}

/* GEN-34 CONN-EVT-39: a sleeping child of the dead process does not keep the connection alive */
static void peer_dies__its_child_lives_on__survivor_told(void **state)
{
	struct fixture *x = *state;
	pid_t grandchild;

	link_passive(x);
	grandchild = (pid_t)remote_do(&x->victim, REMOTE_FORK, 0, 0);
	expect_broken_with_flushes(x, BY_KILL, 0);
	assert_int_equal(kill(grandchild, SIGKILL), 0);
	check_next_one(x);
}

/* --- transfers under way --- */

#define ROUNDS 6
#define BIG (256u * 1024u)

struct killer {
	pthread_t thread;
	pid_t pid;
	useconds_t delay;
};

static void *kill_later(void *arg)
{
	const struct killer *killer = arg;

	usleep(killer->delay);
	kill(killer->pid, SIGKILL);
	return NULL;
}

/* Dies at another moment each round. */
static void killer_start(struct killer *killer, const struct dt_peer *victim, unsigned int round)
{
	*killer = (struct killer){.pid = victim->pid, .delay = 500 + round * 1300};
	assert_int_equal(pthread_create(&killer->thread, NULL, kill_later, killer), 0);
}

/* Transfers to the dying process until the connection has ended. */
static void stream_until_broken(struct conn_stream *stream)
{
	const uint64_t limit = dt_now_us() + DT_WAIT_US;
	DAT_EVENT event;

	do {
		conn_stream_step(stream);
		assert_true(dt_now_us() < limit);
	} while (dat_evd_dequeue(stream->ep->conn, &event) != DAT_SUCCESS);
	check_end_of_connection(event.event_number);
	assert_int_equal(dt_ep_state(stream->ep->ep), DAT_EP_STATE_DISCONNECTED);
	conn_stream_reap(stream);
	assert_true(stream->completed == stream->posted);
	dt_no_event(stream->ep->conn);
}

static void survivor_transfers(enum conn_stream_kind kind, size_t len, bool has_receives,
			       unsigned int round)
{
	struct conn_stream stream = {.kind = kind};
	struct killer killer;
	struct fixture *x;
	struct remote_msg big;
	struct dt_buf local;
	void *state;

	setup(&state);
	x = state;
	dt_buf_create(&x->f->ia, x->f->ia.pz, &local, len, DAT_MEM_PRIV_ALL_FLAG);
	link_passive(x);
	big = remote_ask(&x->victim, REMOTE_BIG, BIG, 0);
	if (has_receives)
		remote_do(&x->victim, REMOTE_POST_RECV, 16, 0);
	conn_post_recv(x->f->b.ep, &x->f->buf, CONN_B_RECEIVES_AT, 1);
	stream.ep = &x->f->b;
	stream.local = &local;
	stream.remote = (DAT_RMR_TRIPLET){.rmr_context = (DAT_RMR_CONTEXT)big.b,
					  .target_address = big.a,
					  .segment_length = len};
	killer_start(&killer, &x->victim, round);
	stream_until_broken(&stream);
	assert_int_equal(pthread_join(killer.thread, NULL), 0);
	conn_expect_flushes(&x->f->b, 1, 1);
	dt_peer_kill(&x->victim); /* reaps it */
	dt_ok(dat_lmr_free(local.lmr));
	check_next_one(x);
	dt_mem_free(local.p, local.mapped);
	teardown(&state);
}

static void survivor_transfers_often(enum conn_stream_kind kind, size_t len, bool has_receives)
{
	for (unsigned int round = 0; round < ROUNDS; round++)
		survivor_transfers(kind, len, has_receives, round);
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-53 EP-STATE-74 GEN-36 */
static void peer_dies__survivor_sends__all_come_back(void **state)
{
	(void)state;
	survivor_transfers_often(CONN_STREAM_SEND, CONN_BUF_LEN, true);
	survivor_transfers_often(CONN_STREAM_SEND, CONN_BUF_LEN, false);
	survivor_transfers_often(CONN_STREAM_SEND, BIG, false);
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-53 EP-STATE-74 */
static void peer_dies__survivor_writes__all_come_back(void **state)
{
	(void)state;
	survivor_transfers_often(CONN_STREAM_WRITE, 64, true);
	survivor_transfers_often(CONN_STREAM_WRITE, BIG, false);
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-53 EP-STATE-74 */
static void peer_dies__survivor_reads__all_come_back(void **state)
{
	(void)state;
	survivor_transfers_often(CONN_STREAM_READ, 64, true);
	survivor_transfers_often(CONN_STREAM_READ, BIG, false);
}

/* --- transfers of the victim --- */

/* Takes Receive completions and posts new ones, so that the victim's Sends find room. */
static void receive_until_broken(struct fixture *x, const struct dt_buf *into, uint64_t posted)
{
	const uint64_t limit = dt_now_us() + DT_WAIT_US;
	DAT_LMR_TRIPLET seg = dt_seg(into, 0, into->len);
	uint64_t completed = 0;
	bool has_failed = false, has_ended = false;
	DAT_EVENT event;

	while (!has_ended) {
		/* looked at first: what is on the recv EVD then, is all (EP-STATE-53) */
		has_ended = dat_evd_dequeue(x->f->b.conn, &event) == DAT_SUCCESS;
		if (has_ended)
			check_end_of_connection(event.event_number);
		while (dat_evd_dequeue(x->f->b.recv, &event) == DAT_SUCCESS) {
			const DAT_DTO_COMPLETION_EVENT_DATA *dto =
				&event.event_data.dto_completion_event_data;

			assert_true(dto->user_cookie.as_64 == completed++);
			has_failed |= dto->status != DAT_DTO_SUCCESS;
			assert_true(has_failed == (dto->status != DAT_DTO_SUCCESS));
			if (!has_failed && !has_ended)
				dt_ok(dat_ep_post_recv(x->f->b.ep, 1, &seg, dt_cookie(posted++),
						       DAT_COMPLETION_DEFAULT_FLAG));
		}
		assert_true(dt_now_us() < limit);
	}
	assert_true(completed == posted);
	dt_no_event(x->f->b.conn);
}

static void victim_transfers(enum conn_stream_kind kind, size_t len, unsigned int round)
{
	struct killer killer;
	struct fixture *x;
	struct dt_buf local;
	void *state;

	setup(&state);
	x = state;
	dt_buf_create(&x->f->ia, x->f->ia.pz, &local, len, DAT_MEM_PRIV_ALL_FLAG);
	link_active(x);
	remote_do(&x->victim, REMOTE_BIG, len, 0);
	for (uint64_t i = 0; i < 8; i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&local, 0, len);

		dt_ok(dat_ep_post_recv(x->f->b.ep, 1, &seg, dt_cookie(i),
				       DAT_COMPLETION_DEFAULT_FLAG));
	}
	remote_do(&x->victim, REMOTE_STREAM, (uintptr_t)local.p, (uint64_t)kind << 32 | local.rkey);
	killer_start(&killer, &x->victim, round);
	receive_until_broken(x, &local, 8);
	assert_int_equal(pthread_join(killer.thread, NULL), 0);
	dt_peer_kill(&x->victim); /* reaps it */
	dt_ok(dat_lmr_free(local.lmr));
	check_next_one(x);
	dt_mem_free(local.p, local.mapped);
	teardown(&state);
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-53 EP-STATE-74 */
static void peer_dies__while_it_transfers__receives_come_back(void **state)
{
	(void)state;
	for (int kind = 0; kind < CONN_STREAM_KINDS; kind++) {
		for (unsigned int round = 0; round < ROUNDS; round++) {
			victim_transfers((enum conn_stream_kind)kind, CONN_BUF_LEN, round);
			victim_transfers((enum conn_stream_kind)kind, BIG, round);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_dies__during_set_up__survivor_told_and_sound),
		cmocka_unit_test(peer_dies__when_connected__survivor_told_and_sound),
		cmocka_unit_test_setup_teardown(peer_dies__its_child_lives_on__survivor_told, setup,
						teardown),
		cmocka_unit_test(peer_dies__survivor_sends__all_come_back),
		cmocka_unit_test(peer_dies__survivor_writes__all_come_back),
		cmocka_unit_test(peer_dies__survivor_reads__all_come_back),
		cmocka_unit_test(peer_dies__while_it_transfers__receives_come_back),
	};

	return cmocka_run_group_tests_name("peer_death", tests, NULL, NULL);
}
