// SPDX-License-Identifier: BSD-2-Clause
/*
 * The other process is killed in the middle of every kind of transfer. The survivor gets all its
 * operations back and can connect to the next process.
 */
#include <pthread.h>

#include "peer_death.h"

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

/* Kills the victim at a different time in each round. */
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
static void peer_dies__survivor_sends__all_complete(void **state)
{
	(void)state;
	survivor_transfers_often(CONN_STREAM_SEND, CONN_BUF_LEN, true);
	survivor_transfers_often(CONN_STREAM_SEND, CONN_BUF_LEN, false);
	survivor_transfers_often(CONN_STREAM_SEND, BIG, false);
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-53 EP-STATE-74 */
static void peer_dies__survivor_writes__all_complete(void **state)
{
	(void)state;
	survivor_transfers_often(CONN_STREAM_WRITE, 64, true);
	survivor_transfers_often(CONN_STREAM_WRITE, BIG, false);
}

/* COMPAT-19 CONN-EVT-39 EP-STATE-53 EP-STATE-74 */
static void peer_dies__survivor_reads__all_complete(void **state)
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
		/* checked first: the recv EVD is complete after the event (EP-STATE-53) */
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
static void peer_dies__while_it_transfers__receives_complete(void **state)
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
		cmocka_unit_test(peer_dies__survivor_sends__all_complete),
		cmocka_unit_test(peer_dies__survivor_writes__all_complete),
		cmocka_unit_test(peer_dies__survivor_reads__all_complete),
		cmocka_unit_test(peer_dies__while_it_transfers__receives_complete),
	};

	return cmocka_run_group_tests_name("peer_death_data", tests, NULL, NULL);
}
