// SPDX-License-Identifier: BSD-2-Clause
/*
 * The order of messages of several endpoints whose Receives use one EVD: a Send that is posted when
 * another one has completed comes behind it.
 */
#include "dto_peer.h"

#define ORDER_EPS 8u
#define ORDER_ROUNDS (DT_SLOW ? 10u : 40u)
#define ORDER_LEN 64u
#define ORDER_TURNS 2u /* on each endpoint, one after the completions of the other */

/* How the receiver gets its events. */
enum order_style {
	ORDER_AWAY, /* makes no call until all Sends have completed */
	ORDER_POLLS,
	ORDER_WAITS,
	ORDER_STYLES,
};

struct order_side {
	struct dt_ia ia;
	struct dt_buf buf;
	struct dt_ep ep[ORDER_EPS]; /* they share their EVDs */
};

static void order_open(struct order_side *side)
{
	struct dt_ep evds;

	dt_ia_open(&side->ia);
	dt_buf_create(&side->ia, side->ia.pz, &side->buf, ORDER_EPS * ORDER_TURNS * ORDER_LEN,
		      DAT_MEM_PRIV_ALL_FLAG);
	evds.recv = dt_evd_create(&side->ia, ORDER_EPS * ORDER_TURNS, DAT_EVD_DTO_FLAG);
	evds.request = dt_evd_create(&side->ia, ORDER_EPS * ORDER_TURNS, DAT_EVD_DTO_FLAG);
	evds.conn = dt_evd_create(&side->ia, ORDER_EPS, DAT_EVD_CONNECTION_FLAG);
	for (unsigned i = 0; i < ORDER_EPS; i++) {
		side->ep[i] = evds;
		dt_ok(dat_ep_create(side->ia.ia, side->ia.pz, evds.recv, evds.request, evds.conn,
				    NULL, &side->ep[i].ep));
	}
}

static void order_close(struct order_side *side)
{
	dt_ia_abort(&side->ia);
	dt_mem_free(side->buf.p, side->buf.mapped);
}

static DAT_LMR_TRIPLET order_seg(const struct order_side *side, unsigned turn, unsigned ep)
{
	return dt_seg(&side->buf, (turn * ORDER_EPS + ep) * ORDER_LEN, ORDER_LEN);
}

/* --- the receiver, in the child --- */

static void order_accept(struct dt_peer *peer, struct order_side *side)
{
	struct dt_listener listener;

	dt_listen(&side->ia, &listener);
	dt_peer_send(peer, &listener.qual, sizeof(listener.qual));
	for (unsigned i = 0; i < ORDER_EPS; i++) {
		dt_ok(dat_cr_accept(dt_request(&listener), side->ep[i].ep, 0, NULL));
		dt_expect_conn(side->ep[i].conn, side->ep[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	dt_unlisten(&listener);
}

/* The turn of the next message. */
static unsigned order_next(const struct order_side *side, enum order_style style)
{
	const DAT_EVD_HANDLE evd = side->ep[0].recv;
	const DAT_EVENT event = style == ORDER_WAITS ? dt_event(evd) : dt_event_poll(evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	return (unsigned)dto->user_cookie.as_64;
}

static void order_receive(struct dt_peer *peer, struct order_side *side, enum order_style style)
{
	for (unsigned turn = 0; turn < ORDER_TURNS; turn++)
		for (unsigned i = 0; i < ORDER_EPS; i++)
			post_recv(&side->ep[i], order_seg(side, turn, i), turn);
	dt_peer_sync(peer);
	if (style == ORDER_AWAY)
		dt_peer_sync(peer);
	for (unsigned i = 0; i < ORDER_EPS * ORDER_TURNS; i++)
		assert_int_equal(order_next(side, style), i / ORDER_EPS);
	if (style != ORDER_AWAY)
		dt_peer_sync(peer);
}

static void order_receiver(struct dt_peer *peer, void *unused)
{
	static struct order_side side;

	(void)unused;
	order_open(&side);
	order_accept(peer, &side);
	for (enum order_style style = 0; style < ORDER_STYLES; style++)
		for (unsigned round = 0; round < ORDER_ROUNDS; round++)
			order_receive(peer, &side, style);
	dt_peer_sync(peer);
	order_close(&side);
}

/* --- the sender --- */

static void order_connect(struct dt_peer *peer, struct order_side *side)
{
	DAT_CONN_QUAL qual;

	dt_peer_recv(peer, &qual, sizeof(qual));
	for (unsigned i = 0; i < ORDER_EPS; i++) {
		dt_connect(&side->ia, side->ep[i].ep, qual);
		dt_expect_conn(side->ep[i].conn, side->ep[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
}

/* A Send on each endpoint, and its completion. */
static void order_send(struct order_side *side, unsigned turn)
{
	for (unsigned i = 0; i < ORDER_EPS; i++)
		post_send(&side->ep[i], order_seg(side, turn, i), i, 0);
	for (unsigned i = 0; i < ORDER_EPS; i++) {
		const DAT_EVENT event = dt_event(side->ep[0].request);

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
}

/* COMPAT-48 */
static void post_send__behind_a_completed_one__received_behind_it(void **state)
{
	static struct order_side side;
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, order_receiver, NULL);
	order_open(&side);
	order_connect(&peer, &side);
	for (unsigned round = 0; round < ORDER_STYLES * ORDER_ROUNDS; round++) {
		dt_peer_sync(&peer); /* the Receives are posted */
		for (unsigned turn = 0; turn < ORDER_TURNS; turn++)
			order_send(&side, turn);
		dt_peer_sync(&peer);
	}
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	order_close(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(post_send__behind_a_completed_one__received_behind_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
