// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that announces uses of regions and never withdraws them, and a peer with another user ID:
 * calls that wait for the peer end after one time-out.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hostile.h"

#define MANY 6
#define LIMIT_US 400000u /* the peer time-out of these tests */

#define OTHER_USER 65534

/* LMR-FREE-21: One time-out for any number of peers. */
static void lmr_free__many_peers_hold_the_key__one_time_out(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h[MANY];
	struct dt_ep ep[MANY];
	struct dt_buf buf;
	uint64_t start, took;

	dt_buf_create(&f->ia, f->ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	for (int i = 0; i < MANY; i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &ep[i]);
		hostile_connect(&h[i], f, &ep[i]);
		atomic_store(&h[i].mine->announce, buf.rkey);
	}
	start = dt_now_us();
	dt_ok(dat_lmr_free(buf.lmr));
	took = dt_now_us() - start;
	assert_true(took >= LIMIT_US - LIMIT_US / 10);
	assert_true(took < MANY * LIMIT_US / 2);
	for (int i = 0; i < MANY; i++) {
		dt_expect_conn(ep[i].conn, ep[i].ep, DAT_CONNECTION_EVENT_BROKEN);
		hostile_close(&h[i]);
	}
	dt_mem_free(buf.p, buf.mapped);
	check_others_work(f);
}

/* A dat_lmr_free that a peer holds up. */
struct held_free {
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;
	_Atomic bool has_returned;
};

static void *free_held(void *arg)
{
	struct held_free *held = arg;

	held->ret = dat_lmr_free(held->lmr);
	atomic_store(&held->has_returned, true);
	return NULL;
}

static bool has_begun(void *arg)
{
	const struct held_free *held = arg;
	DAT_LMR_PARAM param;

	return dat_lmr_query(held->lmr, DAT_LMR_FIELD_ALL, &param) != DAT_SUCCESS;
}

/* Other calls end before it, as often as it takes to be in the middle of it. */
static void check_not_held_up(struct conn_fixture *f, struct held_free *held)
{
	static unsigned char memory[4096];
	struct dt_buf buf;

	for (int i = 0; i < 100; i++) {
		dt_lmr_create(&f->ia, f->ia.pz, memory, sizeof(memory), DAT_MEM_PRIV_ALL_FLAG,
			      &buf);
		dt_ok(dat_lmr_free(buf.lmr));
		conn_transfer(f, &f->a, &f->b);
		assert_false(atomic_load(&held->has_returned));
	}
}

/* LMR-FREE-21: other calls on the instance go on while a peer holds up a free. */
static void lmr_free__peer_holds_the_key__others_go_on(void **state)
{
	struct conn_fixture *f = *state;
	struct held_free held = {.lmr = NULL};
	struct hostile h;
	struct dt_ep ep;
	struct dt_buf buf;
	pthread_t thread;

	dt_buf_create(&f->ia, f->ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	conn_link(f, &f->a, &f->b);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &ep);
	hostile_connect(&h, f, &ep);
	atomic_store(&h.mine->announce, buf.rkey);
	held.lmr = buf.lmr;
	assert_int_equal(pthread_create(&thread, NULL, free_held, &held), 0);
	dt_until(has_begun, &held);
	check_not_held_up(f, &held);
	atomic_store(&h.mine->announce, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(held.ret, DAT_SUCCESS);
	hostile_close(&h);
	dt_mem_free(buf.p, buf.mapped);
}

/* IA-CLOSE-13 */
static void ia_close__many_peers_hold_keys__one_time_out(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h[MANY];
	struct dt_ep ep[MANY];
	uint64_t start, took;

	for (int i = 0; i < MANY; i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &ep[i]);
		hostile_connect(&h[i], f, &ep[i]);
		atomic_store(&h[i].mine->announce, 0x1234);
	}
	start = dt_now_us();
	dt_ia_abort(&f->ia);
	took = dt_now_us() - start;
	f->is_open = false;
	assert_true(took < MANY * LIMIT_US / 2);
	for (int i = 0; i < MANY; i++)
		hostile_close(&h[i]);
	dt_mem_free(f->buf.p, f->buf.mapped);
}

struct other_user {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
	uint32_t key;
};

/* Announces the key as another user, until it is killed. */
static void announce_as_other_user(struct dt_peer *peer, void *arg)
{
	struct other_user what;
	struct hostile h;

	(void)arg;
	dt_peer_recv(peer, &what, sizeof(what));
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	hostile_ask(&h, &what.address, what.qual);
	hostile_ready(&h);
	atomic_store(&h.mine->announce, what.key);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* EP-FREE-29 LMR-FREE-21: A peer that cannot copy is not waited for. */
static void ep_free__other_user_announces__does_not_wait(void **state)
{
	struct other_user what;
	struct conn_fixture *f;
	struct dt_peer peer;
	uint64_t start;
	void *fixture;

	(void)state;
	if (geteuid() != 0)
		skip();
	dt_peer_start(&peer, announce_as_other_user, NULL);
	conn_setup(&fixture); /* with the default time-out of 5 s */
	f = fixture;
	what = (struct other_user){*own_address(f), f->listener.qual, f->buf.rkey};
	dt_peer_send(&peer, &what, sizeof(what));
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(&peer);
	start = dt_now_us();
	dt_buf_free(&f->buf);
	f->buf.mapped = 0;
	dt_ep_free(&f->a);
	assert_true(dt_now_us() - start < 2500000);
	dt_peer_kill(&peer);
	conn_teardown(&fixture);
}

/* Listens as root and serves as another user. */
static void serve_as_other_user(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f;
	void *fixture;

	(void)arg;
	conn_setup(&fixture);
	f = fixture;
	dt_peer_send(peer, &f->listener.qual, sizeof(f->listener.qual));
	assert_int_equal(setresuid(OTHER_USER, OTHER_USER, OTHER_USER), 0);
	dt_peer_sync(peer);
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_dto(f->a.recv, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* EP-CONNECT-18: The sides disagree on whether they are one user. Both use the rings. */
static void ep_connect__listener_has_changed_its_user__established(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	DAT_CONN_QUAL qual;
	void *fixture;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (int is_root = 0; is_root < 2; is_root++) {
		dt_peer_start(&peer, serve_as_other_user, NULL);
		dt_peer_recv(&peer, &qual, sizeof(qual));
		dt_peer_sync(&peer);
		if (!is_root)
			assert_int_equal(seteuid(OTHER_USER), 0);
		conn_setup(&fixture);
		f = fixture;
		dt_connect(&f->ia, f->b.ep, qual);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
		dt_expect_dto(f->b.request, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_peer_sync(&peer);
		assert_int_equal(seteuid(0), 0);
		dt_peer_kill(&peer);
		conn_teardown(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lmr_free__many_peers_hold_the_key__one_time_out,
						limit_setup, limit_teardown),
		conn_test(lmr_free__peer_holds_the_key__others_go_on),
		cmocka_unit_test_setup_teardown(ia_close__many_peers_hold_keys__one_time_out,
						limit_setup, limit_teardown),
		cmocka_unit_test(ep_free__other_user_announces__does_not_wait),
		cmocka_unit_test(ep_connect__listener_has_changed_its_user__established),
	};

	return cmocka_run_group_tests_name("hostile_pins", tests, NULL, NULL);
}
