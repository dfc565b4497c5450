// SPDX-License-Identifier: BSD-2-Clause
/*
 * The other process ends without a disconnect (killed, by exit, by exec) at every step of a
 * connection's life. The survivor gets one event in time and all its operations back, and can
 * connect to the next process.
 */
#include "peer_death.h"

#define IN_TIME_US 5000000u

/* --- ways to die --- */

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

/* --- the survivor --- */

/* Takes the one event, which arrives in time, and checks the state. Returns its number. */
static DAT_EVENT_NUMBER take_end(struct dt_ep *ep, uint64_t since)
{
	const DAT_EVENT event = dt_event(ep->conn);

	assert_true(dt_now_us() - since < IN_TIME_US);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep->ep);
	assert_int_equal(dt_ep_state(ep->ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(ep->conn);
	return event.event_number;
}

/* --- steps of a set-up --- */

/* The victim dies while its request waits; then the request is answered. */
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

/* The request is accepted, but the victim cannot complete the connection. */
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

/* The victim listens and dies before or after it has read the request. */
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

/* Sends without a Receive at the victim fail. */
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

/* The victim dies after its Sends: each message arrives once at most. */
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
	/* the old connection does not affect the new attempt */
	for (uint64_t i = 1; i <= 6; i++) {
		const DAT_EVENT event = dt_event(f->b.recv);

		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_FLUSHED);
	}
}

/* The survivor's graceful disconnect cannot finish. */
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

/* The victim dies during its graceful disconnect. */
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

/* --- each step with each way to die --- */

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
static void peer_dies__during_set_up__survivor_notified_and_usable(void **state)
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
static void peer_dies__when_connected__survivor_notified_and_usable(void **state)
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
static void peer_dies__its_child_survives__survivor_notified(void **state)
{
	struct fixture *x = *state;
	pid_t grandchild;

	link_passive(x);
	grandchild = (pid_t)remote_do(&x->victim, REMOTE_FORK, 0, 0);
	expect_broken_with_flushes(x, BY_KILL, 0);
	assert_int_equal(kill(grandchild, SIGKILL), 0);
	check_next_one(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_dies__during_set_up__survivor_notified_and_usable),
		cmocka_unit_test(peer_dies__when_connected__survivor_notified_and_usable),
		cmocka_unit_test_setup_teardown(peer_dies__its_child_survives__survivor_notified,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("peer_death", tests, NULL, NULL);
}
