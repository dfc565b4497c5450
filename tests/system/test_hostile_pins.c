// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that announces uses of regions and never withdraws them: calls that wait for it end after
 * one time-out.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hostile.h"

#define MANY 6
#define LIMIT_US 400000u /* the peer time-out of these tests */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lmr_free__many_peers_hold_the_key__one_time_out,
						limit_setup, limit_teardown),
		conn_test(lmr_free__peer_holds_the_key__others_go_on),
		cmocka_unit_test_setup_teardown(ia_close__many_peers_hold_keys__one_time_out,
						limit_setup, limit_teardown),
	};

	if (is_ring()) /* nobody copies, and nobody is waited for */
		return 77;
	return cmocka_run_group_tests_name("hostile_pins", tests, NULL, NULL);
}
