// SPDX-License-Identifier: BSD-2-Clause
/*
 * Transfers between two processes, from and to memory that was never written before, for valgrind:
 * its memcheck must report nothing. It reports a branch on a byte that it takes for uninitialised.
 */
#include <stdlib.h>

#include "dt.h"

#define LEN 70000u /* more than an entry of a ring holds */
#define SENT 0
#define WRITTEN LEN
#define READ (2 * LEN)
#define ROOM (3 * LEN)

enum { COOKIE_SEND = 1, COOKIE_WRITE, COOKIE_READ, COOKIE_RECV };

struct side {
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf in, out;
	void *in_memory, *out_memory; /* NULL: the harness has made it */
};

/* Memory from malloc has no values for memcheck; for the mapped path it must be a memory file. */
static void *make_buffer(struct side *side, struct dt_buf *buf)
{
	const char *copy = getenv("DAT_COPY");
	void *memory = NULL;

	if (copy && !strcmp(copy, "map")) {
		dt_buf_create(&side->ia, side->ia.pz, buf, ROOM, DAT_MEM_PRIV_ALL_FLAG);
		return NULL;
	}
	memory = malloc(ROOM);
	assert_non_null(memory);
	dt_lmr_create(&side->ia, side->ia.pz, memory, ROOM, DAT_MEM_PRIV_ALL_FLAG, buf);
	return memory;
}

static void open_side(struct side *side)
{
	DAT_LMR_TRIPLET segment;

	memset(side, 0, sizeof(*side));
	dt_ia_open(&side->ia);
	side->in_memory = make_buffer(side, &side->in);
	side->out_memory = make_buffer(side, &side->out);
	dt_fill(side->out.p, ROOM, 1);
	dt_ep_create(&side->ia, side->ia.pz, NULL, &side->ep);
	segment = dt_seg(&side->in, SENT, LEN);
	dt_ok(dat_ep_post_recv(side->ep.ep, 1, &segment, dt_cookie(COOKIE_RECV), 0));
}

static void close_side(struct side *side)
{
	dt_ep_free(&side->ep);
	dt_buf_free(&side->in);
	dt_buf_free(&side->out);
	free(side->in_memory);
	free(side->out_memory);
	dt_ia_close(&side->ia);
}

static void send_all(struct side *side)
{
	DAT_LMR_TRIPLET segment = dt_seg(&side->out, SENT, LEN);

	dt_ok(dat_ep_post_send(side->ep.ep, 1, &segment, dt_cookie(COOKIE_SEND), 0));
	dt_expect_dto(side->ep.request, side->ep.ep, COOKIE_SEND, DAT_DTO_SUCCESS, LEN);
	dt_expect_dto(side->ep.recv, side->ep.ep, COOKIE_RECV, DAT_DTO_SUCCESS, LEN);
	dt_check_pattern(side->in.p + SENT, LEN, 1);
}

struct keys {
	DAT_CONN_QUAL qual;
	DAT_RMR_TRIPLET in, out;
};

static void passive(struct dt_peer *peer, void *unused)
{
	struct dt_listener listener;
	struct side side;
	struct keys keys;

	(void)unused;
	open_side(&side);
	dt_listen(&side.ia, &listener);
	keys = (struct keys){listener.qual, dt_rseg(&side.in, WRITTEN, LEN),
			     dt_rseg(&side.out, SENT, LEN)};
	dt_peer_send(peer, &keys, sizeof(keys));
	dt_ok(dat_cr_accept(dt_request(&listener), side.ep.ep, 0, NULL));
	dt_expect_conn(side.ep.conn, side.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	send_all(&side);
	dt_peer_sync(peer); /* the Write has completed */
	dt_check_pattern(side.in.p + WRITTEN, LEN, 1);
	dt_expect_conn(side.ep.conn, side.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_unlisten(&listener);
	close_side(&side);
}

/* Sends, RDMA Writes and RDMA Reads; several, so that the mapped path maps the regions. */
static void transfer__memory_never_written__no_report(void **state)
{
	struct dt_peer peer;
	struct side side;
	struct keys keys;

	(void)state;
	dt_peer_start(&peer, passive, NULL);
	open_side(&side);
	dt_peer_recv(&peer, &keys, sizeof(keys));
	dt_connect(&side.ia, side.ep.ep, keys.qual);
	dt_expect_conn(side.ep.conn, side.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	send_all(&side);
	for (int i = 0; i < 8; i++) {
		DAT_LMR_TRIPLET from = dt_seg(&side.out, SENT, LEN);
		DAT_LMR_TRIPLET to = dt_seg(&side.in, READ, LEN);

		dt_ok(dat_ep_post_rdma_write(side.ep.ep, 1, &from, dt_cookie(COOKIE_WRITE),
					     &keys.in, 0));
		dt_expect_dto(side.ep.request, side.ep.ep, COOKIE_WRITE, DAT_DTO_SUCCESS, LEN);
		dt_ok(dat_ep_post_rdma_read(side.ep.ep, 1, &to, dt_cookie(COOKIE_READ), &keys.out,
					    0));
		dt_expect_dto(side.ep.request, side.ep.ep, COOKIE_READ, DAT_DTO_SUCCESS, LEN);
		dt_check_pattern(side.in.p + READ, LEN, 1);
	}
	dt_peer_sync(&peer);
	dt_ok(dat_ep_disconnect(side.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(side.ep.conn, side.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_peer_join(&peer);
	close_side(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfer__memory_never_written__no_report),
	};

	return cmocka_run_group_tests_name("memcheck", tests, NULL, NULL);
}
