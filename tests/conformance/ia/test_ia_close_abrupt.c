// SPDX-License-Identifier: BSD-2-Clause
/*
 * The abrupt dat_ia_close: it destroys all objects, ends all waits and notifies the peers.
 */
#include "waiter.h"

/* --- abrupt --- */

/* IA-CLOSE-07 IA-CLOSE-08 IA-CLOSE-23 */
static void ia_close__abrupt_with_everything__destroys_all(void **state)
{
	struct dt_pair pair;
	struct dt_buf buf;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE evd;

	(void)state;
	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	evd = dt_evd_create(&pair.ia, 4, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(pair.ia.ia, &qual, evd, DAT_PSP_PROVIDER_FLAG, &psp));
	/* Queued events, Receives and Sends that wait. */
	dt_fill(buf.p, 4096, 7);
	dt_ok(conf_post_recv(&pair, dt_seg(&buf, 0, 64), 1));
	dt_ok(conf_post_write(&pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 0, 64), 2));
	for (int i = 0; i < 5; i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&buf, 128, 64);

		dt_ok(dat_ep_post_send(pair.b.ep, 1, &seg, dt_cookie(3), 0));
	}
	const DAT_HANDLE handle[] = {pair.a.ep,	 pair.a.recv,	pair.a.request, pair.a.conn,
				     pair.b.ep,	 pair.b.recv,	pair.b.request, pair.b.conn,
				     pair.ia.pz, pair.ia.async, buf.lmr,	evd,
				     psp,	 pair.ia.ia};

	dt_ia_abort(&pair.ia);
	for (size_t i = 0; i < COUNT_OF(handle); i++)
		world_check_dead(handle[i]);
	dt_check_pattern(buf.p, 4096, 7);
	dt_mem_free(buf.p, buf.mapped);
}

/* IA-CLOSE-12 CONN-EVT-33 */
static void ia_close__abrupt_with_connections__peers_notified(void **state)
{
	struct dt_ia passive, active;
	struct dt_listener listener;
	struct dt_ep a[3], b[3];

	(void)state;
	dt_ia_open(&passive);
	dt_ia_open(&active);
	dt_listen(&passive, &listener);
	for (size_t i = 0; i < COUNT_OF(a); i++) {
		dt_ep_create(&active, active.pz, NULL, &a[i]);
		dt_ep_create(&passive, passive.pz, NULL, &b[i]);
		dt_connect(&active, a[i].ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), b[i].ep, 0, NULL));
		dt_expect_conn(a[i].conn, a[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	dt_ia_abort(&passive);
	for (size_t i = 0; i < COUNT_OF(a); i++) {
		const DAT_EVENT event = dt_event(a[i].conn);

		assert_true(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			    event.event_number == DAT_CONNECTION_EVENT_BROKEN);
		assert_int_equal(dt_ep_state(a[i].ep), DAT_EP_STATE_DISCONNECTED);
		dt_ep_free(&a[i]);
	}
	dt_ia_close(&active);
}

/* IA-CLOSE-09 IA-CLOSE-25 EVD-WAIT-22 */
static void ia_close__abrupt_with_waiters__each_aborts(void **state)
{
	struct dt_ia ia;
	struct waiter waiter[4];

	(void)state;
	for (int round = 0; round < 10; round++) {
		dt_ia_open(&ia);
		start_waiter(&waiter[0], ia.async);
		for (size_t i = 1; i < COUNT_OF(waiter); i++)
			start_waiter(&waiter[i], dt_evd_create(&ia, 4, DAT_EVD_DEFAULT_FLAG));
		dt_ia_abort(&ia);
		for (size_t i = 0; i < COUNT_OF(waiter); i++) {
			assert_int_equal(pthread_join(waiter[i].thread, NULL), 0);
			dt_fails(waiter[i].ret, DAT_ABORT);
		}
	}
}

/* --- a peer that is stopped --- */

static void connect_and_idle(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_CONN_QUAL qual;

	(void)arg;
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(peer);
	dt_event(ep.conn);
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

/* IA-CLOSE-13 */
static void ia_close__abrupt_with_a_stopped_idle_peer__returns_at_once(void **state)
{
	struct dt_listener listener;
	struct dt_peer peer;
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;

	(void)state;
	dt_peer_start(&peer, connect_and_idle, NULL);
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, 1u << 20, CONF_LOCAL);
	dt_listen(&ia, &listener);
	dt_peer_send(&peer, &listener.qual, sizeof(listener.qual));
	dt_ok(dat_cr_accept(dt_request(&listener), ep.ep, 0, NULL));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(&peer);
	dt_peer_stop(&peer);
	for (int i = 0; i < 4; i++) { /* never received */
		DAT_LMR_TRIPLET seg = dt_seg(&buf, 0, buf.len);

		dt_ok(dat_ep_post_send(ep.ep, 1, &seg, dt_cookie(1), 0));
	}
	const uint64_t before = dt_now_us();

	dt_ia_abort(&ia);
	assert_true(dt_now_us() - before < 4000000); /* the peer time-out is 5 s */
	dt_peer_continue(&peer);
	dt_peer_join(&peer);
	dt_mem_free(buf.p, buf.mapped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_close__abrupt_with_everything__destroys_all),
		cmocka_unit_test(ia_close__abrupt_with_connections__peers_notified),
		cmocka_unit_test(ia_close__abrupt_with_waiters__each_aborts),
		cmocka_unit_test(ia_close__abrupt_with_a_stopped_idle_peer__returns_at_once),
	};

	return cmocka_run_group_tests_name("ia close abrupt", tests, NULL, NULL);
}
