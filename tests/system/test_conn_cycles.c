// SPDX-License-Identifier: BSD-2-Clause
/*
 * Thousands of connections one after the other, with data: afterwards the process has as many
 * descriptors and mappings as before.
 */
#include "conn_remote.h"
#include "descriptors.h"

#define WARM_UP 100
#define CYCLES 2500 /* of each kind */
#define FEW 40	    /* mappings that the C library and the sanitizers may add meanwhile */

static unsigned int count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	int c;

	assert_non_null(file);
	while ((c = getc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

static bool has_descriptors(void *arg)
{
	return count_descriptors() <= *(unsigned int *)arg;
}

static void check_leaves_nothing(void (*cycle)(void *arg, unsigned int i), void *arg)
{
	unsigned int descriptors, mappings;

	for (unsigned int i = 0; i < WARM_UP; i++)
		cycle(arg, i);
	descriptors = count_descriptors();
	mappings = count_mappings();
	for (unsigned int i = 0; i < CYCLES; i++)
		cycle(arg, i);
	/* the library's thread may still be closing the last one */
	dt_until(has_descriptors, &descriptors);
	assert_true(count_mappings() <= mappings + FEW);
}

static void end(struct dt_ep *a, struct dt_ep *b)
{
	dt_ok(dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(a->conn, a->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(b->conn, b->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Within one process; a new endpoint now and then. RDMA in both directions makes it map memory. */
static void cycle_here(void *arg, unsigned int i)
{
	struct conn_fixture *f = arg;
	DAT_LMR_TRIPLET seg = dt_seg(&f->buf, CONN_A_SENDS_AT, CONN_BUF_LEN);
	const DAT_RMR_TRIPLET there = dt_rseg(&f->buf, CONN_B_RECEIVES_AT, CONN_BUF_LEN);

	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
	dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &seg, dt_cookie(1), &there,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(f->a.request, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_ok(dat_ep_post_rdma_read(f->b.ep, 1, &seg, dt_cookie(2), &there,
				    DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(f->b.request, f->b.ep, 2, DAT_DTO_SUCCESS, DT_ANY_LEN);
	if (i % 8) {
		end(i & 1 ? &f->a : &f->b, i & 1 ? &f->b : &f->a);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
		return;
	}
	dt_ep_free(&f->a);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->b.ep));
	dt_ep_create(&f->ia, f->ia.pz, NULL, &f->a);
}

/* EP-RESET-12 EP-RESET-13 EP-CREATE-79 COMPAT-16 */
static void connect__thousands_in_one_process__nothing_left(void **state)
{
	check_leaves_nothing(cycle_here, *state);
}

struct far {
	struct remote_fixture *r;
	struct remote_msg big;
	struct dt_buf local;
};

/* To another process; every third attempt is refused. */
static void cycle_there(void *arg, unsigned int i)
{
	struct far *far = arg;
	struct conn_fixture *f = far->r->f;
	struct dt_peer *peer = &far->r->peer;
	DAT_LMR_TRIPLET seg = dt_seg(&far->local, 0, far->local.len);
	const DAT_RMR_TRIPLET there = {.rmr_context = (DAT_RMR_CONTEXT)far->big.b,
				       .target_address = far->big.a,
				       .segment_length = far->local.len};

	if (i % 3 == 0) {
		remote_connect(peer, f->listener.qual);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		remote_expect(peer, DAT_CONNECTION_EVENT_PEER_REJECTED);
		remote_do(peer, REMOTE_RESET, 0, 0);
		return;
	}
	remote_link_passive(far->r);
	dt_ok(dat_ep_post_rdma_write(f->b.ep, 1, &seg, dt_cookie(1), &there,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(f->b.request, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	remote_expect(peer, DAT_CONNECTION_EVENT_DISCONNECTED);
	remote_do(peer, REMOTE_RESET, 0, 0);
	dt_ok(dat_ep_reset(f->b.ep));
}

/* EP-RESET-12 EP-RESET-13 */
static void connect__thousands_between_processes__nothing_left(void **state)
{
	struct far far = {.r = *state};
	struct conn_fixture *f = far.r->f;

	dt_buf_create(&f->ia, f->ia.pz, &far.local, 65536, DAT_MEM_PRIV_ALL_FLAG);
	far.big = remote_ask(&far.r->peer, REMOTE_BIG, 65536, 0);
	check_leaves_nothing(cycle_there, &far);
	dt_buf_free(&far.local);
}

/* Failed attempts of every kind leave nothing behind. */
static void cycle_failing(void *arg, unsigned int i)
{
	struct conn_fixture *f = arg;
	DAT_CR_HANDLE cr;

	switch (i % 4) {
	case 0: /* no listener */
		dt_connect(&f->ia, f->a.ep, ~f->listener.qual);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case 1: /* rejected */
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		break;
	case 2: /* aborted, then accepted */
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		cr = dt_request(&f->listener);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		dt_ok(dat_ep_reset(f->b.ep));
		break;
	default: /* timed out, then rejected; the time must let the request arrive, so it is rare */
		if (i % 64 != 3)
			return;
		conn_start_timed(f, f->a.ep, 50000);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_TIMED_OUT);
		dt_ok(dat_cr_reject(dt_request(&f->listener)));
	}
	dt_ok(dat_ep_reset(f->a.ep));
}

/* EP-RESET-13 EP-CONNECT-44 CR-REJECT-07 */
static void connect__thousands_of_failures__nothing_left(void **state)
{
	check_leaves_nothing(cycle_failing, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(connect__thousands_in_one_process__nothing_left),
		remote_test(connect__thousands_between_processes__nothing_left),
		conn_test(connect__thousands_of_failures__nothing_left),
	};

	return cmocka_run_group_tests_name("conn_cycles", tests, NULL, NULL);
}
