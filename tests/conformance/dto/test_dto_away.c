// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages to a receiver that makes no call while they arrive (away.h): Sends of each kind, what
 * queries report, and threads and CNOs that begin to wait then.
 */
#include "away.h"

#include "cno_util.h"

/* --- kinds of Sends --- */

struct kind {
	size_t receive, send;
	DAT_COUNT segments;
	DAT_COMPLETION_FLAGS flags;
};

/* the last one is not suppressed: so all before it succeeded */
static const struct kind kinds[] = {
	{200, 200, 1, 0},
	{200, 199, 1, 0},
	{200, 200, 4, 0},
	{200, 7, 3, 0},
	{200, 1, 1, 0},
	{200, 0, 1, 0},
	{0, 0, 1, 0},
	{1000, 1000, 2, DAT_COMPLETION_SOLICITED_WAIT_FLAG},
	{200, 200, 1, DAT_COMPLETION_BARRIER_FENCE_FLAG},
	{200, 200, 2, DAT_COMPLETION_SUPPRESS_FLAG},
	{200, 200, 1, DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG},
	{200, 200, 1, 0},
};

/* EP-SEND-02 EP-SEND-03 DTO-04 DTO-13 DTO-17 DTO-25 DTO-32 DTO-35 DTO-50 */
static void send__receiver_makes_no_call__each_kind_arrives(void **state)
{
	struct rig *rig = &rig_of_test;
	struct away away;

	(void)state;
	away_open(&away, rig, 1);
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const struct kind *kind = &kinds[i];
		const struct away_order order = {
			.len = kind->send, .segments = kind->segments, .flags = kind->flags};

		(void)away_post(&away, 0, kind->receive);
		assert_int_equal(away_send_as(&away, 0, order), DAT_DTO_SUCCESS);
		away_take(&away, 0, kind->send);
	}
	expect_quiet(&away.ep[0]);
	away_close(&away);
}

/* DTO-30: the message is what the RDMA Read before it has fetched. */
static void send__fenced_behind_a_read__carries_its_bytes(void **state)
{
	struct rig *rig = &rig_of_test;
	struct away away;
	DAT_DTO_COMPLETION_STATUS status;
	uint64_t number;

	(void)state;
	away_open(&away, rig, 1);
	memset(rig->y.p, 0x5a, AWAY_LEN);
	number = away_post(&away, 0, AWAY_LEN);
	status = away_tell(&away, 0,
			   &(struct away_order){.what = AWAY_READ_AND_SEND,
						.len = AWAY_LEN,
						.remote = dt_rseg(&rig->y, 0, AWAY_LEN)});
	assert_int_equal(status, DAT_DTO_SUCCESS);
	expect_received(&away.ep[0], away_cookie(0, number), AWAY_LEN);
	dt_check_bytes(away_at(&away, 0, number), AWAY_LEN, 0x5a);
	away_close(&away);
}

/* DTO-44 RMR-BIND-12: the context in the message is good. */
static void send__behind_a_bind__context_is_good(void **state)
{
	struct rig *rig = &rig_of_test;
	DAT_DTO_COMPLETION_STATUS status;
	struct away away;
	DAT_RMR_TRIPLET window;
	uint64_t number;

	(void)state;
	away_open(&away, rig, 1);
	number = away_post(&away, 0, sizeof(window));
	status = away_tell(&away, 0,
			   &(struct away_order){.what = AWAY_BIND_AND_SEND, .value = 0x42});
	assert_int_equal(status, DAT_DTO_SUCCESS);
	expect_received(&away.ep[0], away_cookie(0, number), sizeof(window));
	memcpy(&window, away_at(&away, 0, number), sizeof(window));
	post_read(&away.ep[0], dt_seg(&rig->y, 0, window.segment_length), window, 1, 0);
	expect_sent(&away.ep[0], 1, window.segment_length);
	dt_check_bytes(rig->y.p, window.segment_length, 0x42);
	away_close(&away);
}

/* --- queries --- */

struct held {
	const struct away *away;
	DAT_COUNT count;
};

static bool is_held(void *arg)
{
	const struct held *held = arg;
	DAT_EP_HANDLE ep = held->away->ep[0].ep;
	DAT_COUNT buffers, span;
	DAT_BOOLEAN is_idle;

	dt_ok(dat_ep_recv_query(ep, &buffers, &span));
	assert_int_equal(span, buffers);
	dt_ok(dat_ep_get_status(ep, NULL, &is_idle, NULL));
	return buffers == held->count && is_idle == (held->count ? DAT_FALSE : DAT_TRUE);
}

/* EP-RECVQ-01 EP-RECVQ-04 EP-RECVQ-05 EP-RECVQ-08: without a dequeue or a wait */
static void ep_recv_query__messages_arrived_without_a_call__counts_are_right(void **state)
{
	struct rig *rig = &rig_of_test;
	struct away away;
	struct held held = {.away = &away, .count = 3};

	(void)state;
	away_open(&away, rig, 1);
	for (DAT_COUNT i = 0; i < held.count; i++)
		(void)away_post(&away, 0, AWAY_LEN);
	away_send(&away, 0, AWAY_LEN, 0);
	while (held.count--) {
		dt_until(is_held, &held);
		if (held.count)
			away_send(&away, 0, AWAY_LEN, 0);
	}
	for (unsigned i = 0; i < 3; i++)
		away_take(&away, 0, AWAY_LEN);
	expect_quiet(&away.ep[0]);
	away_close(&away);
}

/* --- waiters --- */

/* Threads that wait sleep at once: a message that came while they still poll would be found. */
static int omit_spin(void **state)
{
	(void)state;
	return setenv("DAT_SPIN_US", "0", 1);
}

static int restore_spin(void **state)
{
	(void)state;
	return unsetenv("DAT_SPIN_US");
}

/* On each connection. */
static void post_all(struct away *away)
{
	for (unsigned i = 0; i < away->conns; i++)
		(void)away_post(away, i, AWAY_LEN);
}

/* The waiter gets the oldest message of that connection; nmore others are there. */
static void expect_woken(struct away *away, struct dto_waiter *waiter, unsigned conn,
			 DAT_COUNT nmore)
{
	const uint64_t number = away->taken[conn]++;

	dto_waiter_wakes(waiter, away_cookie(conn, number), nmore);
	away_check(away, conn, number, AWAY_LEN);
}

/* A thread waits for threshold messages, and sleeps. */
static void begin_wait(struct away *away, struct dto_waiter *waiter, DAT_COUNT threshold)
{
	dto_waiter_start(waiter, away->ep[0].recv, threshold);
	dto_waiter_falls_asleep(waiter);
}

/* Threads begin to wait while Receives of all connections are posted. */
static void wake_waiters(struct away *away, unsigned conn)
{
	const unsigned other = away->conns - 1 - conn;
	struct dto_waiter waiter;

	post_all(away);
	begin_wait(away, &waiter, 1);
	away_send(away, conn, AWAY_LEN, 0);
	expect_woken(away, &waiter, conn, 0);
	/* the other one has no message yet; with one connection it needs a Receive again */
	if (other == conn)
		(void)away_post(away, conn, AWAY_LEN);
	begin_wait(away, &waiter, 1);
	away_send(away, other, AWAY_LEN, 0);
	expect_woken(away, &waiter, other, 0);
}

/* The first message does not wake the thread, and the second one must. */
static void wake_waiter_for_two(struct away *away, unsigned conn)
{
	struct dto_waiter waiter;

	post_all(away);
	(void)away_post(away, conn, AWAY_LEN);
	begin_wait(away, &waiter, 2);
	away_send(away, conn, AWAY_LEN, 0);
	away_send(away, conn, AWAY_LEN, 0);
	expect_woken(away, &waiter, conn, 1);
	away_take(away, conn, AWAY_LEN);
	/* leaves no Receive of another connection */
	for (unsigned other = 0; other < away->conns; other++) {
		if (other == conn)
			continue;
		away_send(away, other, AWAY_LEN, 0);
		away_take(away, other, AWAY_LEN);
	}
}

/* A message that has arrived before the call, or arrives in the middle of it. */
static void wait_for_arrived(struct away *away, unsigned conn)
{
	const uint64_t number = away_post(away, conn, AWAY_LEN);

	away_send(away, conn, AWAY_LEN, 0);
	expect_received(&away->ep[conn], away_cookie(conn, number), AWAY_LEN);
	away_check(away, conn, number, AWAY_LEN);
	away->taken[conn]++;
}

/* EVD-WAIT-01 EVD-WAIT-15 EVD-WAIT-30 EVD-WAIT-37 DTO-10 */
static void wait_for_messages(unsigned conns)
{
	struct away away;

	away_open(&away, &rig_of_test, conns);
	for (unsigned conn = 0; conn < conns; conn++) {
		wait_for_arrived(&away, conn);
		wake_waiters(&away, conn);
		wake_waiter_for_two(&away, conn);
	}
	away_close(&away);
}

static void evd_wait__begins_between_messages__wakes_for_each(void **state)
{
	(void)state;
	wait_for_messages(1);
	wait_for_messages(2);
}

/* EVD-MODIFY-CNO-02 EVD-MODIFY-CNO-03 CNO-WAIT-02 */
static void attach_cno(unsigned conns)
{
	struct rig *rig = &rig_of_test;
	struct away away;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	away_open(&away, &rig_of_test, conns);
	evd = away.ep[0].recv;
	cno = cno_create(&rig->ia);
	for (unsigned conn = 0; conn < conns; conn++) {
		struct cno_waiter waiter = {0};
		DAT_EVD_HANDLE notified;

		post_all(&away);
		away_send(&away, conn, AWAY_LEN, 0);
		dt_ok(dat_evd_modify_cno(evd, cno));
		away_take(&away, conn, AWAY_LEN);
		(void)dat_cno_wait(cno, 0, &notified); /* on iWARP it may not be queued before */
		/* the next ones */
		(void)away_post(&away, conn, AWAY_LEN);
		for (unsigned other = 0; other < conns; other++) {
			cno_waiter_start(&waiter, cno, DT_WAIT_US);
			away_send(&away, other, AWAY_LEN, 0);
			cno_waiter_gets(&waiter, evd);
			away_take(&away, other, AWAY_LEN);
		}
		dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	}
	away_close(&away);
}

static void evd_modify_cno__between_messages__notified_of_each(void **state)
{
	(void)state;
	attach_cno(1);
	attach_cno(2);
}

/* EVD-MODIFY-CNO-02 DTO-10: An agent is called although the consumer makes no call any more. */
static void evd_modify_cno__with_an_agent__called_for_the_message(void **state)
{
	struct rig *rig = &rig_of_test;
	struct cno_agent agent = {0};
	struct away away;

	(void)state;
	away_open(&away, rig, 1);
	(void)cno_agent_create(&rig->ia, &agent);
	dt_ok(dat_evd_modify_cno(away.ep[0].recv, agent.cno));
	for (int calls = 1; calls < 5; calls++) {
		if (calls > 1)
			cno_agent_arm(&agent);
		(void)away_post(&away, 0, AWAY_LEN);
		away_send(&away, 0, AWAY_LEN, 0);
		cno_agent_called(&agent, calls, away.ep[0].recv);
		away_take(&away, 0, AWAY_LEN);
	}
	dt_ok(dat_evd_modify_cno(away.ep[0].recv, DAT_HANDLE_NULL));
	cno_agent_disarm(&agent);
	away_close(&away);
}

/* DTO-23 DTO-24 EVD-WAIT-28 EVD-WAIT-29 EVD-WAIT-30 */
static void evd_wait__solicited_receives__only_solicited_message_wakes(void **state)
{
	struct rig *rig = &rig_of_test;
	struct dto_waiter waiter;
	struct away away;

	(void)state;
	away_open_with(&away, rig, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	/* an event that does not notify is there when the call begins */
	(void)away_post(&away, 0, AWAY_LEN);
	away_send(&away, 0, AWAY_LEN, 0);
	away_take(&away, 0, AWAY_LEN);
	/* one of either kind comes later */
	(void)away_post(&away, 0, AWAY_LEN);
	(void)away_post(&away, 0, AWAY_LEN);
	begin_wait(&away, &waiter, 1);
	away_send(&away, 0, AWAY_LEN, 0);
	dto_waiter_sleeps(&waiter);
	away_send(&away, 0, AWAY_LEN, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dto_waiter_wakes(&waiter, away_cookie(0, away.taken[0]++), 1);
	away_take(&away, 0, AWAY_LEN);
	expect_quiet(&away.ep[0]);
	away_close(&away);
}

#define waiter_test(f) cmocka_unit_test_setup_teardown(f, omit_spin, restore_spin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__receiver_makes_no_call__each_kind_arrives),
		cmocka_unit_test(send__fenced_behind_a_read__carries_its_bytes),
		cmocka_unit_test(send__behind_a_bind__context_is_good),
		cmocka_unit_test(ep_recv_query__messages_arrived_without_a_call__counts_are_right),
		waiter_test(evd_wait__begins_between_messages__wakes_for_each),
		waiter_test(evd_modify_cno__between_messages__notified_of_each),
		waiter_test(evd_modify_cno__with_an_agent__called_for_the_message),
		waiter_test(evd_wait__solicited_receives__only_solicited_message_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
