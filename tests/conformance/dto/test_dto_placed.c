// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages to a receiver that makes no call while they arrive (placing.h): Sends of each kind, what
 * queries report, and threads and CNOs that begin to wait then.
 */
#include "placing.h"

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
static bool send_each_kind(struct rig *rig, const void *unused)
{
	struct placing placing;
	bool is_placed = true;

	(void)unused;
	placing_open(&placing, rig, 1);
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const struct kind *kind = &kinds[i];
		const struct placing_order order = {
			.len = kind->send, .segments = kind->segments, .flags = kind->flags};
		struct placing_reply reply;

		placing_warm(&placing, 0);
		(void)placing_post(&placing, 0, kind->receive);
		reply = placing_send_as(&placing, 0, order);
		assert_int_equal(reply.status, DAT_DTO_SUCCESS);
		is_placed &= reply.is_placed || !kind->send;
		placing_take(&placing, 0, kind->send);
	}
	expect_quiet(&placing.ep[0]);
	placing_close(&placing);
	return is_placed;
}

static void send__receiver_makes_no_call__each_kind_arrives(void **state)
{
	(void)state;
	placing_repeat(send_each_kind, NULL);
}

/* DTO-30: the message is what the RDMA Read before it has fetched. */
static bool send_what_was_read(struct rig *rig, const void *unused)
{
	struct placing placing;
	struct placing_reply reply;
	uint64_t number;

	(void)unused;
	placing_open(&placing, rig, 1);
	placing_warm(&placing, 0);
	memset(rig->y.p, 0x5a, PLACING_LEN);
	number = placing_post(&placing, 0, PLACING_LEN);
	reply = placing_tell(&placing, 0,
			     &(struct placing_order){.what = PLACING_READ_AND_SEND,
						     .len = PLACING_LEN,
						     .remote = dt_rseg(&rig->y, 0, PLACING_LEN)});
	assert_int_equal(reply.status, DAT_DTO_SUCCESS);
	expect_received(&placing.ep[0], placing_cookie(0, number), PLACING_LEN);
	dt_check_bytes(placing_at(&placing, 0, number), PLACING_LEN, 0x5a);
	placing_close(&placing);
	return reply.is_placed;
}

static void send__fenced_behind_a_read__carries_its_bytes(void **state)
{
	(void)state;
	placing_repeat(send_what_was_read, NULL);
}

/* DTO-44 RMR-BIND-12: the context in the message is good. */
static bool send_context(struct rig *rig, const void *unused)
{
	struct placing_reply reply;
	struct placing placing;
	DAT_RMR_TRIPLET window;
	uint64_t number;

	(void)unused;
	placing_open(&placing, rig, 1);
	placing_warm(&placing, 0);
	number = placing_post(&placing, 0, sizeof(window));
	reply = placing_tell(&placing, 0,
			     &(struct placing_order){.what = PLACING_BIND_AND_SEND, .value = 0x42});
	assert_int_equal(reply.status, DAT_DTO_SUCCESS);
	expect_received(&placing.ep[0], placing_cookie(0, number), sizeof(window));
	memcpy(&window, placing_at(&placing, 0, number), sizeof(window));
	post_read(&placing.ep[0], dt_seg(&rig->y, 0, window.segment_length), window, 1, 0);
	expect_sent(&placing.ep[0], 1, window.segment_length);
	dt_check_bytes(rig->y.p, window.segment_length, 0x42);
	placing_close(&placing);
	return reply.is_placed;
}

static void send__behind_a_bind__context_is_good(void **state)
{
	(void)state;
	placing_repeat(send_context, NULL);
}

/* --- queries --- */

struct held {
	const struct placing *placing;
	DAT_COUNT count;
};

static bool is_held(void *arg)
{
	const struct held *held = arg;
	DAT_EP_HANDLE ep = held->placing->ep[0].ep;
	DAT_COUNT buffers, span;
	DAT_BOOLEAN is_idle;

	dt_ok(dat_ep_recv_query(ep, &buffers, &span));
	assert_int_equal(span, buffers);
	dt_ok(dat_ep_get_status(ep, NULL, &is_idle, NULL));
	return buffers == held->count && is_idle == (held->count ? DAT_FALSE : DAT_TRUE);
}

/* EP-RECVQ-01 EP-RECVQ-04 EP-RECVQ-05 EP-RECVQ-08: without a dequeue or a wait */
static bool query_receives(struct rig *rig, const void *unused)
{
	struct placing placing;
	struct held held = {.placing = &placing, .count = 3};
	bool is_placed;

	(void)unused;
	placing_open(&placing, rig, 1);
	placing_warm(&placing, 0);
	for (DAT_COUNT i = 0; i < held.count; i++)
		(void)placing_post(&placing, 0, PLACING_LEN);
	is_placed = placing_send(&placing, 0, PLACING_LEN, 0);
	while (held.count--) {
		if (is_placed) /* it is in the buffer already (DTO-52) */
			assert_true(is_held(&held));
		else
			dt_until(is_held, &held);
		if (held.count)
			is_placed &= placing_send(&placing, 0, PLACING_LEN, 0);
	}
	for (unsigned i = 0; i < 3; i++)
		placing_take(&placing, 0, PLACING_LEN);
	expect_quiet(&placing.ep[0]);
	placing_close(&placing);
	return is_placed;
}

static void ep_recv_query__messages_arrived_without_a_call__counts_are_right(void **state)
{
	(void)state;
	placing_repeat(query_receives, NULL);
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

static void warm_all(struct placing *placing)
{
	for (unsigned i = 0; i < placing->conns; i++)
		placing_warm(placing, i);
}

/* On each connection; the Receive of the last message that was warmed up is taken. */
static void post_all(struct placing *placing)
{
	for (unsigned i = 0; i < placing->conns; i++)
		(void)placing_post(placing, i, PLACING_LEN);
}

/* The waiter gets the oldest message of that connection; nmore others are there. */
static void expect_woken(struct placing *placing, struct dto_waiter *waiter, unsigned conn,
			 DAT_COUNT nmore)
{
	const uint64_t number = placing->taken[conn]++;

	dto_waiter_wakes(waiter, placing_cookie(conn, number), nmore);
	placing_check(placing, conn, number, PLACING_LEN);
}

/*
 * A thread waits for threshold messages, and sleeps: a sender that placed one would wake nobody.
 * Polls between two sleeps hide that, so the tests look at how the message came.
 */
static void begin_wait(struct placing *placing, struct dto_waiter *waiter, DAT_COUNT threshold)
{
	dto_waiter_start(waiter, placing->ep[0].recv, threshold);
	dto_waiter_falls_asleep(waiter);
}

static void send_to_waiter(struct placing *placing, unsigned conn)
{
	assert_false(placing_send(placing, conn, PLACING_LEN, 0));
}

/* Threads begin to wait while Receives of all connections are offered. */
static void wake_waiters(struct placing *placing, unsigned conn)
{
	const unsigned other = placing->conns - 1 - conn;
	struct dto_waiter waiter;

	warm_all(placing);
	post_all(placing);
	begin_wait(placing, &waiter, 1);
	send_to_waiter(placing, conn);
	expect_woken(placing, &waiter, conn, 0);
	/* the other one has no message yet; with one connection it needs a Receive again */
	if (other == conn)
		(void)placing_post(placing, conn, PLACING_LEN);
	begin_wait(placing, &waiter, 1);
	send_to_waiter(placing, other);
	expect_woken(placing, &waiter, other, 0);
}

/* The first message does not wake the thread, and the second one must. */
static void wake_waiter_for_two(struct placing *placing, unsigned conn)
{
	struct dto_waiter waiter;

	warm_all(placing);
	post_all(placing);
	(void)placing_post(placing, conn, PLACING_LEN);
	begin_wait(placing, &waiter, 2);
	send_to_waiter(placing, conn);
	send_to_waiter(placing, conn);
	expect_woken(placing, &waiter, conn, 1);
	placing_take(placing, conn, PLACING_LEN);
	/* leaves no Receive of another connection */
	for (unsigned other = 0; other < placing->conns; other++) {
		if (other == conn)
			continue;
		(void)placing_send(placing, other, PLACING_LEN, 0);
		placing_take(placing, other, PLACING_LEN);
	}
}

/* A message that has arrived before the call, or arrives in the middle of it. */
static bool wait_for_arrived(struct placing *placing, unsigned conn)
{
	const uint64_t number = placing_post(placing, conn, PLACING_LEN);
	const bool is_placed = placing_send(placing, conn, PLACING_LEN, 0);

	expect_received(&placing->ep[conn], placing_cookie(conn, number), PLACING_LEN);
	placing_check(placing, conn, number, PLACING_LEN);
	placing->taken[conn]++;
	return is_placed;
}

/* EVD-WAIT-01 EVD-WAIT-15 EVD-WAIT-30 EVD-WAIT-37 DTO-10 */
static bool wait_for_messages(struct rig *rig, const void *arg)
{
	const unsigned conns = *(const unsigned *)arg;
	struct placing placing;
	bool is_placed = true;

	placing_open(&placing, rig, conns);
	for (unsigned conn = 0; conn < conns; conn++) {
		warm_all(&placing);
		is_placed &= wait_for_arrived(&placing, conn);
		wake_waiters(&placing, conn);
		wake_waiter_for_two(&placing, conn);
	}
	placing_close(&placing);
	return is_placed;
}

static const unsigned one = 1, two = 2;

static void evd_wait__begins_between_messages__wakes_for_each(void **state)
{
	(void)state;
	placing_repeat(wait_for_messages, &one);
	placing_repeat(wait_for_messages, &two);
}

/* EVD-MODIFY-CNO-02 EVD-MODIFY-CNO-03 CNO-WAIT-02: and for a message that is not an event yet */
static bool attach_cno(struct rig *rig, const void *arg)
{
	const unsigned conns = *(const unsigned *)arg;
	struct placing placing;
	bool is_placed = true;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	placing_open(&placing, rig, conns);
	evd = placing.ep[0].recv;
	cno = cno_create(&rig->ia);
	for (unsigned conn = 0; conn < conns; conn++) {
		struct cno_waiter waiter = {0};
		DAT_EVD_HANDLE notified;

		warm_all(&placing);
		post_all(&placing);
		if (placing_send(&placing, conn, PLACING_LEN, 0)) {
			dt_ok(dat_evd_modify_cno(evd, cno));
			cno_expect(cno, evd);
		} else { /* it may be queued already (EVD-MODIFY-CNO-10) */
			is_placed = false;
			dt_ok(dat_evd_modify_cno(evd, cno));
		}
		placing_take(&placing, conn, PLACING_LEN);
		(void)dat_cno_wait(cno, 0, &notified); /* of a queued event, too, maybe */
		/* the next ones */
		(void)placing_post(&placing, conn, PLACING_LEN);
		for (unsigned other = 0; other < conns; other++) {
			cno_waiter_start(&waiter, cno, DT_WAIT_US);
			send_to_waiter(&placing, other);
			cno_waiter_gets(&waiter, evd);
			placing_take(&placing, other, PLACING_LEN);
		}
		dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	}
	placing_close(&placing);
	return is_placed;
}

static void evd_modify_cno__between_messages__notified_of_each(void **state)
{
	(void)state;
	placing_repeat(attach_cno, &one);
	placing_repeat(attach_cno, &two);
}

/*
 * EVD-MODIFY-CNO-02 DTO-10: An agent is called although the consumer makes no call any more.
 * has_arrived: the message comes before the CNO.
 */
static bool attach_agent(struct rig *rig, const void *arg)
{
	const bool has_arrived = *(const bool *)arg;
	struct cno_agent agent = {0};
	struct placing placing;
	bool is_placed = true;

	placing_open(&placing, rig, 1);
	(void)cno_agent_create(&rig->ia, &agent);
	placing_warm(&placing, 0);
	(void)placing_post(&placing, 0, PLACING_LEN);
	if (has_arrived)
		is_placed = placing_send(&placing, 0, PLACING_LEN, 0);
	dt_ok(dat_evd_modify_cno(placing.ep[0].recv, agent.cno));
	if (!has_arrived)
		send_to_waiter(&placing, 0);
	/* one that was not placed may have been queued before (EVD-MODIFY-CNO-10) */
	if (is_placed)
		cno_agent_called(&agent, 1, placing.ep[0].recv);
	placing_take(&placing, 0, PLACING_LEN);
	for (int calls = 1; is_placed && calls < 4; calls++) {
		cno_agent_arm(&agent);
		(void)placing_post(&placing, 0, PLACING_LEN);
		send_to_waiter(&placing, 0);
		cno_agent_called(&agent, calls + 1, placing.ep[0].recv);
		placing_take(&placing, 0, PLACING_LEN);
	}
	dt_ok(dat_evd_modify_cno(placing.ep[0].recv, DAT_HANDLE_NULL));
	cno_agent_disarm(&agent);
	placing_close(&placing);
	return is_placed;
}

static void evd_modify_cno__with_an_agent__called_for_the_message(void **state)
{
	static const bool no = false, yes = true;

	(void)state;
	placing_repeat(attach_agent, &no);
	placing_repeat(attach_agent, &yes);
}

/* DTO-23 DTO-24 EVD-WAIT-28 EVD-WAIT-29 EVD-WAIT-30 */
static bool wait_for_solicited(struct rig *rig, const void *unused)
{
	struct dto_waiter waiter;
	struct placing placing;
	bool is_placed;

	(void)unused;
	placing_open_with(&placing, rig, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	/* an event that does not notify is there when the call begins */
	placing_warm(&placing, 0);
	(void)placing_post(&placing, 0, PLACING_LEN);
	is_placed = placing_send(&placing, 0, PLACING_LEN, 0);
	placing_take(&placing, 0, PLACING_LEN);
	/* one of either kind comes later */
	placing_warm(&placing, 0);
	(void)placing_post(&placing, 0, PLACING_LEN);
	(void)placing_post(&placing, 0, PLACING_LEN);
	begin_wait(&placing, &waiter, 1);
	send_to_waiter(&placing, 0);
	dto_waiter_sleeps(&waiter);
	assert_false(placing_send(&placing, 0, PLACING_LEN, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	dto_waiter_wakes(&waiter, placing_cookie(0, placing.taken[0]++), 1);
	placing_take(&placing, 0, PLACING_LEN);
	expect_quiet(&placing.ep[0]);
	placing_close(&placing);
	return is_placed;
}

static void evd_wait__solicited_receives__only_solicited_message_wakes(void **state)
{
	(void)state;
	placing_repeat(wait_for_solicited, NULL);
}

/* DTO-23 DTO-24 EVD-MODIFY-CNO-02: a message that is not an event yet when the CNO comes */
static bool notify_of_solicited(struct rig *rig, const void *arg)
{
	const DAT_COMPLETION_FLAGS flags = *(const DAT_COMPLETION_FLAGS *)arg;
	struct placing placing;
	DAT_CNO_HANDLE cno;
	bool is_placed;

	placing_open_with(&placing, rig, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	cno = cno_create(&rig->ia);
	placing_warm(&placing, 0);
	(void)placing_post(&placing, 0, PLACING_LEN);
	is_placed = placing_send(&placing, 0, PLACING_LEN, flags);
	dt_ok(dat_evd_modify_cno(placing.ep[0].recv, cno));
	if (is_placed && flags)
		cno_expect(cno, placing.ep[0].recv);
	else if (is_placed)
		cno_is_quiet(cno);
	placing_take(&placing, 0, PLACING_LEN);
	placing_close(&placing);
	return is_placed;
}

static void evd_modify_cno__solicited_receives__notified_of_solicited_message(void **state)
{
	static const DAT_COMPLETION_FLAGS none, solicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;

	(void)state;
	placing_repeat(notify_of_solicited, &none);
	placing_repeat(notify_of_solicited, &solicited);
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
		waiter_test(evd_modify_cno__solicited_receives__notified_of_solicited_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
