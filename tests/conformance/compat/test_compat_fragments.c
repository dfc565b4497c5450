// SPDX-License-Identifier: BSD-2-Clause
/*
 * A large transfer by consumers that register each fragment, have the peer write to it once and
 * free it: thousands of short registrations in a row, some of them at the same time. Neither the
 * data nor the end of a registration suffers from the pace.
 */
#include "dto_peer.h"

#define FRAGMENT 4096u
#define PLACES 64u /* fragments of the target, each registered again and again */
#define WINDOW 8u  /* registered at a time */
#define FRAGMENTS (DT_SLOW ? 400u : 1500u) /* per connection */

/* What the target asks the writer for. */
struct wish {
	DAT_RMR_TRIPLET target;
	uint32_t seed;
	bool must_fail; /* the registration has ended: the Write must not be carried out */
};

/* --- the writer --- */

#define WISHES 16u

/* Posts the Receive for a wish; WISHES of them are posted at any time. */
static void wish_expect(struct far_end *far, uint64_t i)
{
	post_recv(&far->ep,
		  dt_seg(&far->buf, i % WISHES * sizeof(struct wish), sizeof(struct wish)), i);
}

/* Writes what is wished for until a Write must fail. */
static void writing_child(struct dt_peer *peer, void *arg)
{
	const unsigned connections = *(unsigned *)arg;

	for (unsigned connection = 0; connection < connections; connection++) {
		const size_t at = WISHES * sizeof(struct wish);
		struct far_end far;
		struct wish wish;

		far_end_open(peer, &far, at + WISHES * FRAGMENT);
		for (uint64_t i = 0; i < WISHES; i++)
			wish_expect(&far, i);
		dt_peer_sync(peer);
		for (uint64_t i = 0;; i++) {
			const size_t from = at + i % WISHES * FRAGMENT;

			expect_received(&far.ep, i, sizeof(wish));
			memcpy(&wish, far.buf.p + i % WISHES * sizeof(wish), sizeof(wish));
			wish_expect(&far, i + WISHES);
			dt_fill(far.buf.p + from, FRAGMENT, wish.seed);
			post_write(&far.ep, dt_seg(&far.buf, from, FRAGMENT), wish.target, i, 0);
			if (wish.must_fail) {
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
	struct dt_buf wishes;
	struct dt_buf fragment[WINDOW];
};

static unsigned char *place_of(const struct transfer *transfer, uint64_t i)
{
	return transfer->target + i % PLACES * FRAGMENT;
}

static void ask(struct transfer *transfer, uint64_t i, const struct wish *wish)
{
	struct rig *rig = transfer->rig;
	const size_t at = i % WISHES * sizeof(*wish);

	memcpy(transfer->wishes.p + at, wish, sizeof(*wish));
	post_send(&rig->a, dt_seg(&transfer->wishes, at, sizeof(*wish)), i,
		  DAT_COMPLETION_SUPPRESS_FLAG);
}

static void fragment_begin(struct transfer *transfer, uint64_t i)
{
	struct dt_buf *fragment = &transfer->fragment[i % WINDOW];
	struct rig *rig = transfer->rig;
	struct wish wish = {.seed = (uint32_t)i};

	memset(place_of(transfer, i), RIG_FILL, FRAGMENT);
	dt_lmr_create(&rig->ia, rig->ia.pz, place_of(transfer, i), FRAGMENT, DAT_MEM_PRIV_ALL_FLAG,
		      fragment);
	wish.target = dt_rseg(fragment, 0, FRAGMENT);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 0), i);
	ask(transfer, i, &wish);
}

/* Returns what the region was for the peer, which is nothing any more. */
static DAT_RMR_TRIPLET fragment_end(struct transfer *transfer, uint64_t i)
{
	struct dt_buf *fragment = &transfer->fragment[i % WINDOW];
	const DAT_RMR_TRIPLET freed = dt_rseg(fragment, 0, FRAGMENT);

	expect_received(&transfer->rig->a, i, 0);
	dt_check_pattern(fragment->p, FRAGMENT, (uint32_t)i);
	dt_ok(dat_lmr_free(fragment->lmr));
	return freed;
}

/* All fragments; then the writer tries once more what it was given for one of them. */
static void transfer_run(struct transfer *transfer, uint64_t count, uint64_t tried_again)
{
	struct rig *rig = transfer->rig;
	struct wish wish = {.must_fail = true};
	struct dt_buf again = {0};

	for (uint64_t i = 0; i < count + WINDOW; i++) {
		if (i >= WINDOW) {
			const DAT_RMR_TRIPLET freed = fragment_end(transfer, i - WINDOW);

			if (i - WINDOW == tried_again)
				wish.target = freed;
		}
		if (i < count)
			fragment_begin(transfer, i);
	}
	memset(transfer->target, RIG_FILL, PLACES * FRAGMENT);
	/* registered again, under another key; a device may use its keys again: LMR-FREE-19 */
	if (!dt_is_verbs())
		dt_lmr_create(&rig->ia, rig->ia.pz, transfer->target, PLACES * FRAGMENT,
			      DAT_MEM_PRIV_ALL_FLAG, &again);
	ask(transfer, count, &wish);
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
	dt_buf_create(&rig->ia, rig->ia.pz, &transfer.wishes, WISHES * sizeof(struct wish),
		      DAT_MEM_PRIV_LOCAL_READ_FLAG);
	transfer.target = dt_mem_alloc(PLACES * FRAGMENT);
	for (unsigned i = 0; i < connections; i++) {
		far_connect(rig, &peer);
		dt_peer_sync(&peer);
		/* a device has given the key of the first one to others by now */
		transfer_run(&transfer, FRAGMENTS, i || dt_is_verbs() ? FRAGMENTS - 1 : 0);
		dt_ep_free(&rig->a);
	}
	dt_peer_join(&peer);
	dt_buf_free(&transfer.wishes);
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
