// SPDX-License-Identifier: BSD-2-Clause
/*
 * A large transfer by consumers that register each fragment, have the peer write to it once and
 * free it: thousands of short registrations in a row, some of them at the same time. No byte is
 * lost, and each registration ends when it is freed.
 */
#include "dto_peer.h"

#define FRAGMENT 4096u
#define PLACES 64u /* fragments of the target; each is registered repeatedly */
#define WINDOW 8u  /* registered at a time */
#define FRAGMENTS (DT_SLOW ? 400u : 1500u) /* per connection */

/* A request of the target for one Write. */
struct order {
	DAT_RMR_TRIPLET target;
	uint32_t seed;
	bool must_fail; /* the registration is freed: the Write must fail */
};

/* --- the writer --- */

#define ORDERS 16u

/* Posts the Receive for an order; ORDERS of them are posted at any time. */
static void post_order_recv(struct far_end *far, uint64_t i)
{
	post_recv(&far->ep,
		  dt_seg(&far->buf, i % ORDERS * sizeof(struct order), sizeof(struct order)), i);
}

/* Carries out the orders until one of them must fail. */
static void writing_child(struct dt_peer *peer, void *arg)
{
	const unsigned connections = *(unsigned *)arg;

	for (unsigned connection = 0; connection < connections; connection++) {
		const size_t at = ORDERS * sizeof(struct order);
		struct far_end far;
		struct order order;

		far_end_open(peer, &far, at + ORDERS * FRAGMENT);
		for (uint64_t i = 0; i < ORDERS; i++)
			post_order_recv(&far, i);
		dt_peer_sync(peer);
		for (uint64_t i = 0;; i++) {
			const size_t from = at + i % ORDERS * FRAGMENT;

			expect_received(&far.ep, i, sizeof(order));
			memcpy(&order, far.buf.p + i % ORDERS * sizeof(order), sizeof(order));
			post_order_recv(&far, i + ORDERS);
			dt_fill(far.buf.p + from, FRAGMENT, order.seed);
			post_write(&far.ep, dt_seg(&far.buf, from, FRAGMENT), order.target, i, 0);
			if (order.must_fail) {
				expect_request(&far.ep, i, DAT_DTO_ERR_REMOTE_ACCESS);
				break;
			}
			expect_sent(&far.ep, i, FRAGMENT);
			post_send(&far.ep, dt_seg(&far.buf, 0, 0), i, 0);
			expect_sent(&far.ep, i, 0);
		}
		dt_expect_conn(far.ep.conn, far.ep.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_ia_abort(&far.ia);
		dt_mem_free(far.buf.p, far.buf.mapped);
	}
}

/* --- the target --- */

struct transfer {
	struct rig *rig;
	unsigned char *target; /* PLACES fragments */
	struct dt_buf orders;
	struct dt_buf fragment[WINDOW];
};

static unsigned char *place_of(const struct transfer *transfer, uint64_t i)
{
	return transfer->target + i % PLACES * FRAGMENT;
}

static void send_order(struct transfer *transfer, uint64_t i, const struct order *order)
{
	struct rig *rig = transfer->rig;
	const size_t at = i % ORDERS * sizeof(*order);

	memcpy(transfer->orders.p + at, order, sizeof(*order));
	post_send(&rig->a, dt_seg(&transfer->orders, at, sizeof(*order)), i,
		  DAT_COMPLETION_SUPPRESS_FLAG);
}

static void fragment_begin(struct transfer *transfer, uint64_t i)
{
	struct dt_buf *fragment = &transfer->fragment[i % WINDOW];
	struct rig *rig = transfer->rig;
	struct order order = {.seed = (uint32_t)i};

	memset(place_of(transfer, i), RIG_FILL, FRAGMENT);
	dt_lmr_create(&rig->ia, rig->ia.pz, place_of(transfer, i), FRAGMENT, DAT_MEM_PRIV_ALL_FLAG,
		      fragment);
	order.target = dt_rseg(fragment, 0, FRAGMENT);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 0), i);
	send_order(transfer, i, &order);
}

/* Frees the registration. Returns the triplet that the peer used, which is invalid now. */
static DAT_RMR_TRIPLET fragment_end(struct transfer *transfer, uint64_t i)
{
	struct dt_buf *fragment = &transfer->fragment[i % WINDOW];
	const DAT_RMR_TRIPLET freed = dt_rseg(fragment, 0, FRAGMENT);

	expect_received(&transfer->rig->a, i, 0);
	dt_check_pattern(fragment->p, FRAGMENT, (uint32_t)i);
	dt_ok(dat_lmr_free(fragment->lmr));
	return freed;
}

/* Transfers all fragments. Then the writer writes once more to one that has been freed. */
static void transfer_run(struct transfer *transfer, uint64_t count, uint64_t retried)
{
	struct rig *rig = transfer->rig;
	struct order order = {.must_fail = true};
	struct dt_buf again = {0};

	for (uint64_t i = 0; i < count + WINDOW; i++) {
		if (i >= WINDOW) {
			const DAT_RMR_TRIPLET freed = fragment_end(transfer, i - WINDOW);

			if (i - WINDOW == retried)
				order.target = freed;
		}
		if (i < count)
			fragment_begin(transfer, i);
	}
	memset(transfer->target, RIG_FILL, PLACES * FRAGMENT);
	/* registered again with another context; a device may reuse a context: LMR-FREE-19 */
	if (!dt_is_verbs())
		dt_lmr_create(&rig->ia, rig->ia.pz, transfer->target, PLACES * FRAGMENT,
			      DAT_MEM_PRIV_ALL_FLAG, &again);
	send_order(transfer, count, &order);
	dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_check_bytes(transfer->target, PLACES * FRAGMENT, RIG_FILL);
	if (again.lmr)
		dt_ok(dat_lmr_free(again.lmr));
}

/* COMPAT-47 LMR-FREE-07 LMR-FREE-08 */
static void lmr_free__thousands_of_fragments__each_written_once(void **state)
{
	unsigned connections = 2;
	struct rig *rig = *state;
	struct transfer transfer;
	struct dt_peer peer;

	memset(&transfer, 0, sizeof(transfer));
	transfer.rig = rig;
	dt_peer_start(&peer, writing_child, &connections);
	rig_begin(rig);
	dt_buf_create(&rig->ia, rig->ia.pz, &transfer.orders, ORDERS * sizeof(struct order),
		      DAT_MEM_PRIV_LOCAL_READ_FLAG);
	transfer.target = dt_mem_alloc(PLACES * FRAGMENT);
	for (unsigned i = 0; i < connections; i++) {
		far_connect(rig, &peer);
		dt_peer_sync(&peer);
		/* the device has reused the first context by now */
		transfer_run(&transfer, FRAGMENTS, i || dt_is_verbs() ? FRAGMENTS - 1 : 0);
		dt_ep_free(&rig->a);
	}
	dt_peer_join(&peer);
	dt_buf_free(&transfer.orders);
	dt_mem_free(transfer.target, PLACES * FRAGMENT);
	rig_end(rig);
}

static int only_state(void **state)
{
	*state = &rig_of_test;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lmr_free__thousands_of_fragments__each_written_once,
				       only_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
