// SPDX-License-Identifier: BSD-2-Clause
/*
 * An idle process costs nothing, in whatever state its connections are: the threads of the library
 * sleep, and nothing wakes them. Over shared memory and over TCP.
 */
#include <pthread.h>
#include <stdlib.h>

#include "conn_remote.h"
#include "quiet.h"

#define IDLE_US 100000u /* no thread may run for so long */
#define LARGE (1u << 20)
#define SENDS 16u /* of LARGE bytes: more than sockets, rings and pools hold */

/* --- two endpoints of this process --- */

/* More than the peer takes, because it has posted no Receive. */
static void post_sends(struct dt_ep *ep, const struct dt_buf *buf)
{
	const DAT_LMR_TRIPLET segment = dt_seg(buf, 0, LARGE);

	for (uint64_t i = 0; i < SENDS; i++) {
		DAT_LMR_TRIPLET copy = segment;

		dt_ok(dat_ep_post_send(ep->ep, 1, &copy, dt_cookie(i),
				       DAT_COMPLETION_DEFAULT_FLAG));
	}
}

static void check_last_send_waits(struct dt_ep *ep)
{
	DAT_BOOLEAN is_idle = DAT_TRUE;

	dt_ok(dat_ep_get_status(ep->ep, NULL, NULL, &is_idle));
	assert_int_equal(is_idle, DAT_FALSE);
}

/* GEN-38 */
static void connected__nothing_posted__idle(void **state)
{
	struct remote_fixture *r = *state;

	quiet_await(IDLE_US); /* a listener only */
	conn_link(r->f, &r->f->a, &r->f->b);
	quiet_await(IDLE_US);
	conn_transfer(r->f, &r->f->a, &r->f->b);
	quiet_await(IDLE_US);
	conn_post_recv(r->f->b.ep, &r->f->buf, CONN_B_RECEIVES_AT, 1);
	quiet_await(IDLE_US);
	dt_ok(dat_ep_disconnect(r->f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(r->f->a.conn, r->f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(r->f->b.conn, r->f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	quiet_await(IDLE_US);
}

/* GEN-38 */
static void send__no_receive__idle(void **state)
{
	struct remote_fixture *r = *state;

	conn_link(r->f, &r->f->a, &r->f->b);
	conn_post_send(r->f->a.ep, &r->f->buf, CONN_A_SENDS_AT, 1);
	conn_post_send(r->f->b.ep, &r->f->buf, CONN_B_SENDS_AT, 1);
	quiet_await(IDLE_US);
}

/* GEN-38 */
static void sends__flow_controlled_and_draining__idle(void **state)
{
	struct remote_fixture *r = *state;
	struct dt_buf large;

	dt_buf_create(&r->f->ia, r->f->ia.pz, &large, LARGE, DAT_MEM_PRIV_ALL_FLAG);
	conn_link(r->f, &r->f->a, &r->f->b);
	post_sends(&r->f->a, &large);
	quiet_await(IDLE_US);
	check_last_send_waits(&r->f->a);
	post_sends(&r->f->b, &large);
	quiet_await(IDLE_US);
	check_last_send_waits(&r->f->a);
	check_last_send_waits(&r->f->b);
	dt_ok(dat_ep_disconnect(r->f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	assert_int_equal(dt_ep_state(r->f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	quiet_await(IDLE_US);
	assert_int_equal(dt_ep_state(r->f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	dt_ok(dat_ep_disconnect(r->f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(r->f->a.conn, r->f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_buf_free(&large);
}

/* GEN-38 */
static void request__not_answered__idle(void **state)
{
	struct remote_fixture *r = *state;
	DAT_CR_HANDLE cr;

	dt_connect(&r->f->ia, r->f->a.ep, r->f->listener.qual);
	cr = dt_request(&r->f->listener);
	quiet_await(IDLE_US);
	dt_ok(dat_cr_reject(cr));
	dt_expect_conn(r->f->a.conn, r->f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	quiet_await(IDLE_US);
}

/* --- a peer that is stopped --- */

/* GEN-38 */
static void connect__listener_stopped__idle(void **state)
{
	struct remote_fixture *r = *state;
	const DAT_CONN_QUAL qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);

	dt_peer_stop(&r->peer);
	dt_connect(&r->f->ia, r->f->a.ep, qual);
	quiet_await(IDLE_US);
}

/* GEN-38 */
static void accepted__asker_stopped__idle(void **state)
{
	struct remote_fixture *r = *state;
	DAT_CR_HANDLE cr;

	remote_connect(&r->peer, r->f->listener.qual);
	cr = dt_request(&r->f->listener);
	dt_peer_stop(&r->peer);
	dt_ok(dat_cr_accept(cr, r->f->b.ep, 0, NULL));
	quiet_await(IDLE_US);
}

/* GEN-38 */
static void connected__peer_stopped__idle_and_after_the_end(void **state)
{
	struct remote_fixture *r = *state;
	struct dt_buf large;

	dt_buf_create(&r->f->ia, r->f->ia.pz, &large, LARGE, DAT_MEM_PRIV_ALL_FLAG);
	remote_link_passive(r);
	dt_peer_stop(&r->peer);
	post_sends(&r->f->b, &large);
	quiet_await(IDLE_US);
	check_last_send_waits(&r->f->b);
	dt_ok(dat_ep_disconnect(r->f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(r->f->b.conn, r->f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	quiet_await(IDLE_US);
	dt_buf_free(&large);
}

/* GEN-38 */
static void disconnected__peer_stopped__idle(void **state)
{
	struct remote_fixture *r = *state;

	remote_link_passive(r);
	dt_peer_stop(&r->peer);
	dt_ok(dat_ep_disconnect(r->f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(r->f->b.conn, r->f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	quiet_await(IDLE_US);
}

/* --- both transports --- */

static void *nothing(void *arg)
{
	return arg;
}

/* TSan starts a thread of its own, which runs every 100 ms, when the program starts its first. */
static int start_sanitizers_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return 0;
}

static int setup(void **state, const char *transport)
{
	setenv("DAT_TRANSPORT", transport, 1);
	/* longer than that: the state must be idle, not its end */
	setenv("DAT_PEER_TIMEOUT_MS", "60000", 1);
	quiet_begin();
	return remote_setup(state);
}

static int setup_shm(void **state)
{
	return setup(state, "shm");
}

static int setup_tcp(void **state)
{
	return setup(state, "tcp");
}

static int teardown(void **state)
{
	unsetenv("DAT_TRANSPORT");
	unsetenv("DAT_PEER_TIMEOUT_MS");
	return remote_teardown(state);
}

int main(void)
{
#define SHM(f)                                                                                     \
	{                                                                                          \
#f " (shm)", f, setup_shm, teardown, NULL                                          \
	}
#define TCP(f)                                                                                     \
	{                                                                                          \
#f " (tcp)", f, setup_tcp, teardown, NULL                                          \
	}
	const struct CMUnitTest tests[] = {
		SHM(connected__nothing_posted__idle),
		SHM(send__no_receive__idle),
		SHM(sends__flow_controlled_and_draining__idle),
		SHM(request__not_answered__idle),
		SHM(connect__listener_stopped__idle),
		SHM(accepted__asker_stopped__idle),
		SHM(connected__peer_stopped__idle_and_after_the_end),
		SHM(disconnected__peer_stopped__idle),
		TCP(connected__nothing_posted__idle),
		TCP(send__no_receive__idle),
		TCP(sends__flow_controlled_and_draining__idle),
		TCP(request__not_answered__idle),
		TCP(connect__listener_stopped__idle),
		TCP(accepted__asker_stopped__idle),
		TCP(connected__peer_stopped__idle_and_after_the_end),
		TCP(disconnected__peer_stopped__idle),
	};

	return cmocka_run_group_tests_name("idle", tests, start_sanitizers_thread, NULL);
}
