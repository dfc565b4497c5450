// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection (fast.c): it does what the general path does, it is entered where
 * it should be and nowhere else, and a peer that lies gains nothing by it.
 */
#include "fast.h"

#include <stdlib.h>
#include <sys/socket.h>
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/wire.h"

/* The peer takes the next entry of ours, which is such a message. */
static struct shm_entry expect_entry(uint32_t len, uint32_t seed)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 1);
	assert_int_equal(entry.type, SHM_ENTRY_SEND);
	assert_int_equal(entry.flags & ~SHM_FLAG_SOLICITED, SHM_FLAG_FIRST | SHM_FLAG_LAST);
	assert_int_equal(entry.payload, len);
	assert_int_equal(entry.length, len);
	expect_bytes(payload, len, seed);
	shm_consumer_pop(&peer_in);
	return entry;
}

static void expect_no_entry(void)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 0);
}

/* --- Sends --- */

static void send__small__one_whole_entry_at_once(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 32, 33, 1023, 1024, SHM_REQUEST_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 9; i++) {
		struct shm_entry entry;
		bool is_solicited = i & 1;

		/* room for the largest without a filler */
		atomic_store(&lab->peer->done, lab->conn->sent);
		lab_pass(lab);
		fill(lab->memory, lengths[i], i);
		post_send(lab, 0, lengths[i],
			  is_solicited ? DAT_COMPLETION_SOLICITED_WAIT_FLAG
				       : DAT_COMPLETION_DEFAULT_FLAG);
		entry = expect_entry(lengths[i], i);
		assert_int_equal(!!(entry.flags & SHM_FLAG_SOLICITED), is_solicited);
		/* where it is, so that the peer may ask for a mapping of it */
		assert_int_equal(entry.key, lengths[i] < SHM_MAP_SEND ? 0 : lab->rkey);
		expect_no_entry();
	}
	assert_int_equal(lab->lookups, 0);
	assert_int_equal(lab->fast_posts, 9);
	assert_int_equal(lab->done, 8);
	assert_int_equal(counted(lab, SHM_COUNT_SEND_INLINE), 9);
}

static bool was_packet_sent(const struct lab *lab)
{
	uint8_t bytes[sizeof(union shm_wire)];

	return recv(lab->peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0;
}

static void send__peer_sleeps__wakes_it(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_false(was_packet_sent(lab));
	atomic_store(&lab->peer->armed, 1);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_true(was_packet_sent(lab));
	assert_int_equal(lab->fast_posts, 2);
}

/* Who polls for its completion finds the connection. */
static void send__connection_was_quiet__polled_again(void **state)
{
	struct lab *lab = *state;

	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
}

/* In pieces, or fetched by the peer. */
static void send__longer_than_an_entry__by_the_general_path(void **state)
{
	(void)state;
	for (unsigned has_cma = 0; has_cma < 2; has_cma++) {
		struct lab *lab = open_lab(has_cma);

		post_send(lab, 0, SHM_REQUEST_PAYLOAD + 1, DAT_COMPLETION_DEFAULT_FLAG);
		assert_int_equal(lab->fast_posts, 0);
		assert_int_equal(counted(lab, SHM_COUNT_SEND_PIECES), !has_cma);
		assert_int_equal(counted(lab, SHM_COUNT_SEND_PULL), has_cma);
		assert_int_equal(lab->cell.slow_reasons, 0);
		close_lab(lab);
	}
}

/* The peer has mapped it: it fetches it from there. */
static void send__memory_given_to_the_peer__by_the_general_path(void **state)
{
	struct lab *lab = *state;

	lab->conn->remote.maps = calloc(SHM_MAPS, sizeof(struct shm_map));
	post_send(lab, 0, SHM_MAP_SEND, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	lab->conn->given[7] = lab->rkey;
	lab->engine.given_count = 1;
	post_send(lab, 0, SHM_MAP_SEND, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(counted(lab, SHM_COUNT_SEND_PULL), 1);
	post_send(lab, 0, SHM_MAP_SEND - 1, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 2);
	lab->conn->given[7] = 0;
	lab->engine.given_count = 0;
}

/* DTO-52: an entry acknowledges what is done, and so no word has to. */
static void send__messages_done__acknowledges_them(void **state)
{
	struct lab *lab = *state;

	exchange(lab, 5, 0);
	exchange(lab, 5, 0);
	assert_int_equal(done_word(lab), 0);
	assert_true(shm_conn_has_work(lab->conn)); /* an acknowledgement */
	fill(lab->memory, 8, 9);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(expect_entry(8, 9).done, 2);
	assert_false(shm_conn_has_work(lab->conn));
	assert_int_equal(done_word(lab), 0);
	assert_int_equal(lab->lookups, 0);
}

/* DTO-117: a peer that waits for a Receive sees no entry. */
static void send__peer_waits_for_a_receive__word_acknowledges(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(5);

	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
	assert_true(lab_post_receive(lab, 8192, 5));
	peer_sends(lab, entry, 0);
	assert_int_equal(shm_rx_run(lab->conn, &lab->ep, &(uint64_t){100}), 1);
	assert_int_equal(done_word(lab), 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(done_word(lab), 1);
}

static void send__acknowledged_by_the_word__completes_in_order(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_SUPPRESS_FLAG);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 1);
	assert_int_equal(lab->done, 0); /* DTO-13 */
	atomic_store(&lab->peer->done, 3);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 3);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->fast_polls, 2);
	assert_false(shm_conn_has_work(lab->conn));
}

static void send__acknowledged_by_an_entry__completes_with_the_message(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	exchange(lab, 8, 1);
	assert_int_equal(lab->done, 1);
	exchange(lab, 8, 2);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->fast_polls, 2);
}

/* A peer that always answers leaves its word behind: that hides nothing else. */
static void done__word_behind_the_entries__next_poll_acknowledges(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	exchange(lab, 8, 1);
	assert_int_equal(lab->done, 1);
	assert_int_equal(done_word(lab), 0);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(done_word(lab), 1);
	assert_false(shm_conn_has_work(lab->conn));
	/* nor something rare */
	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
}

static void done__older_than_known__ignored(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	exchange(lab, 8, 2);
	assert_int_equal(lab->done, 2);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	exchange(lab, 8, 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	exchange(lab, 8, 1);
	assert_int_equal(lab->done, 2);
	exchange(lab, 8, 3);
	assert_int_equal(lab->done, 3);
	assert_true(lab_is_open(lab));
}

static void done__more_than_was_sent__connection_breaks(void **state)
{
	(void)state;
	for (unsigned by_entry = 0; by_entry < 2; by_entry++) {
		struct lab *lab = open_lab(false);
		struct shm_entry entry = lab_send_entry(8);

		assert_true(lab_post_receive(lab, 0, 8));
		post_send(lab, 100, 8, DAT_COMPLETION_DEFAULT_FLAG);
		entry.done = 2;
		if (by_entry)
			peer_sends(lab, entry, 0);
		else
			atomic_store(&lab->peer->done, 2);
		lab_pass(lab);
		assert_int_equal(lab->end, BROKEN);
		assert_in_range(lab->done, 0, 1);
		assert_int_equal(lab->received, 0);
		expect_untouched(lab->memory, 64);
		close_lab(lab);
	}
}

/* Of the peer's next entry: 1: it is there; 0: none. Honest about what it takes. */
static int peer_takes(uint32_t len, uint32_t seed)
{
	const uint8_t *payload;
	struct shm_entry entry;
	int rc = shm_consumer_peek(&peer_in, &entry, &payload);

	if (rc == 1) {
		(void)expect_entry(len, seed);
		(void)shm_consumer_release(&peer_in);
	}
	return rc;
}

static void peer_skips_entry(void)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 1);
	shm_consumer_pop(&peer_in);
	(void)shm_consumer_release(&peer_in);
}

/* Several laps, with fillers, all on the fast path. */
static void send__many_of_all_lengths__in_order(void **state)
{
	static const uint32_t lengths[] = {8, 700, 1023, 1500, 33, 4000, 1, 999};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 200; i++) {
		uint32_t len = lengths[i % 8];

		fill(lab->memory, len, i);
		post_send(lab, 0, len, DAT_COMPLETION_DEFAULT_FLAG);
		assert_int_equal(peer_takes(len, i), 1);
		atomic_store(&lab->peer->done, i + 1);
		lab_pass(lab);
		assert_int_equal(lab->done, i + 1);
	}
	assert_true(lab->conn->request_out.produced > 10 * SHM_REQUEST_RING);
	assert_int_equal(lab->fast_posts, 200);
	assert_int_equal(lab->lookups, 0);
}

/* What finds no room waits, and nothing overtakes it. */
static void send__ring_full__rest_follows_in_order(void **state)
{
	static const uint32_t lengths[] = {4096, 4096, 4096, 1023, 1023, 1023, 1023, 8};
	struct lab *lab = *state;
	uint32_t taken = 0;

	/* from the middle of the ring: what is missing is not a piece without a break */
	for (uint32_t i = 0; i < 6; i++) {
		post_send(lab, 0, 1500, DAT_COMPLETION_DEFAULT_FLAG);
		peer_skips_entry();
		atomic_store(&lab->peer->done, i + 1);
		lab_pass(lab);
	}
	assert_int_equal(lab->done, 6);
	for (uint32_t i = 0; i < 8; i++) {
		fill(lab->memory + 1024 * i, lengths[i], i);
		post_send(lab, 1024 * i, lengths[i], DAT_COMPLETION_DEFAULT_FLAG);
	}
	assert_true(lab->conn->tx_next < 6 + 7);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
	for (; peer_takes(lengths[taken], taken) == 1; taken++)
		assert_true(6 + taken < lab->conn->tx_next);
	assert_int_equal(6 + taken, lab->conn->tx_next);
	atomic_store(&lab->peer->done, 6 + taken);
	lab_pass(lab);
	for (; taken < 8; taken++)
		assert_int_equal(peer_takes(lengths[taken], taken), 1);
	expect_no_entry();
	assert_int_equal(lab->cell.slow_reasons, 0);
}

/* DTO-30: a fenced request waits for the RDMA Reads before it. */
static void fenced__read_in_flight__waits_for_its_data(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};

	(void)state;
	for (unsigned is_write = 0; is_write < 2; is_write++) {
		struct lab *lab = open_lab(false);

		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
		assert_int_equal(lab->cell.slow_reasons, 0);
		lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
		assert_true(lab_post(lab, is_write ? CORE_OP_RDMA_WRITE : CORE_OP_SEND, 8, 4,
				     lab->peer_rkey, (uintptr_t)lab->peer_memory));
		assert_int_equal(lab->fast_posts, 0);
		assert_int_equal(lab->conn->tx_next, 1);
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
		expect_untouched(lab->peer_memory, 8);
		lab_pass(lab);
		assert_int_equal(lab->conn->tx_next, 1);
		assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
		lab_pass(lab);
		assert_int_equal(lab->conn->tx_next, 2);
		assert_int_equal(lab->cell.slow_reasons, 0);
		close_lab(lab);
	}
}

/* One without the fence goes at once, and is completed behind the Read. */
static void unfenced__read_in_flight__goes_at_once(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	post_send(lab, 8, 4, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
}

/* --- memory of ours that is gone, or another's --- */

/* The key that the endpoint knew is that of nothing, or of another region, by now. */
static void send__memory_gone__protection_error_and_nothing_sent(void **state)
{
	(void)state;
	for (uint32_t key = 0; key < 2 * LAB_LOCAL_KEY; key += LAB_LOCAL_KEY + 1) {
		struct lab *lab = open_lab(false);

		atomic_store(&lab->lmr->key, key);
		post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
		expect_no_entry();
		shm_conn_finish(lab->conn, &lab->ep);
		assert_int_equal(lab->end, BROKEN);
		close_lab(lab);
	}
}

/* The key is that of another region by now, and has come back: what was known of it is not asked.
 */
static void send__key_issued_again__not_on_the_fast_path(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	atomic_fetch_add(&lab->lmr->changes, 2);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	core_mem_know(&lab->mem, LAB_LOCAL_KEY, &lab->ep.known_source);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 2);
}

/* DTO-96: freed, or of another zone, since the Receive was posted. */
static void message__receive_no_longer_good__protection_error_and_untouched(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct lab *lab = open_lab(false);
		struct core_pz other = {.id = 8};

		exchange(lab, 8, 0);
		assert_true(lab_post_receive(lab, 0, 8));
		if (i == 0)
			atomic_store(&lab->lmr->key, 0);
		else if (i == 1)
			atomic_store(&lab->lmr->key, LAB_LOCAL_KEY + CORE_MEM_MAX);
		else if (i == 2)
			lab->ep.pz = &other;
		else /* where the table has nothing */
			lab->receive_iov[1].lmr_context = LAB_LOCAL_KEY + CORE_MEM_CHUNK;
		peer_sends(lab, lab_send_entry(8), 1);
		lab_pass(lab);
		lab_pass(lab);
		assert_int_equal(lab->fast_polls, 1);
		assert_int_equal(lab->received, 2);
		assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
		assert_int_equal(lab->end, BROKEN);
		expect_untouched(lab->memory, 64);
		lab->ep.pz = &lab->pz;
		close_lab(lab);
	}
}

/* --- messages --- */

static void message__small__in_its_receive(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 1000, 1023, 1024, SHM_REQUEST_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 8; i++) {
		struct shm_entry entry = lab_send_entry(lengths[i]);

		memset(lab->memory, UNTOUCHED, LAB_MEMORY);
		if (i & 1)
			entry.flags |= SHM_FLAG_SOLICITED;
		/* room to spare, or none */
		assert_true(lab_post_receive(lab, 100, i % 3 ? 5000 : lengths[i]));
		peer_sends(lab, entry, i);
		lab_pass(lab);
		assert_int_equal(lab->received, i + 1);
		assert_int_equal(lab->receive_len, lengths[i]);
		expect_untouched(lab->memory, 100);
		expect_bytes(lab->memory + 100, lengths[i], i);
		expect_untouched(lab->memory + 100 + lengths[i], 1024);
		assert_int_equal(lab->fast_polls, i + 1);
	}
	assert_int_equal(lab->lookups, 0);
}

static void messages__several_at_once__one_a_poll_each_in_its_receive(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 5; i++) {
		assert_true(lab_post_receive(lab, i * 100, 50));
		peer_sends(lab, lab_send_entry(10 + i), i);
	}
	for (uint32_t i = 0; i < 5; i++) {
		lab_pass(lab);
		assert_int_equal(lab->received, i + 1);
		assert_int_equal(lab->receive_len, 10 + i);
		expect_bytes(lab->memory + i * 100, 10 + i, i);
		expect_untouched(lab->memory + i * 100 + 10 + i, 50);
	}
	assert_int_equal(lab->lookups, 0);
	lab_pass(lab);
	assert_int_equal(done_word(lab), 5);
	assert_int_equal(lab->fast_polls, 6);
}

/* Several laps, with fillers; each is answered, so only space of the ring is to be given back. */
static void messages__many_of_all_lengths__in_order_and_space_given_back(void **state)
{
	static const uint32_t lengths[] = {8, 700, 1023, 1500, 33, 1000, 1, 999};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 200; i++) {
		exchange(lab, lengths[i % 8], i);
		fill(lab->memory, 8, i);
		post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
		assert_int_equal(expect_entry(8, i).done, i + 1);
		(void)shm_consumer_release(&peer_in);
	}
	assert_true(lab->peer_out.produced > 5 * SHM_REQUEST_RING);
}

/* With no acknowledgement by the word, and no general pass. */
static void messages__all_small_and_answered__space_given_back(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < FAST_POLLS; i++) {
		exchange(lab, 1000, i);
		post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
		peer_skips_entry();
	}
	assert_int_equal(lab->lookups, 0); /* not even behind a filler */
	assert_int_equal(done_word(lab), 0);
}

/* Data of an RDMA Read come by another ring. */
static void message__while_a_read_is_in_flight__data_not_held_up(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	assert_int_equal(lab->conn->reads, 1);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
	assert_true(shm_conn_has_work(lab->conn));
	for (uint32_t i = 0; i <= FAST_POLLS; i++)
		exchange(lab, 8, 0);
	assert_int_equal(lab->done, 1);
	assert_memory_equal(lab->memory, "data", 4);
}

/* The same when no message comes. */
static void read__data_arrive__completes_at_once(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	assert_false(shm_conn_has_work(lab->conn));
	assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->fast_polls, 0);
}

/* It would be fetched from a mapping; often enough, and the peer is asked for that. */
static void message__from_known_memory__its_use_is_counted(void **state)
{
	struct lab *lab = *state;
	struct shm_map *maps = calloc(SHM_MAPS, sizeof(*maps));
	struct shm_entry entry;
	uint32_t i;

	assert_non_null(maps);
	lab->conn->remote.maps = maps;
	for (i = 0; i < 2 * shm_map_uses(lab->conn); i++) {
		entry = lab_send_entry(SHM_MAP_SEND - 1);
		entry.key = lab->peer_rkey;
		assert_true(lab_post_receive(lab, 0, SHM_MAP_SEND));
		peer_sends(lab, entry, i);
		lab_pass(lab);
	}
	assert_false(was_packet_sent(lab));
	for (i = 0; i < shm_map_uses(lab->conn); i++) {
		assert_false(was_packet_sent(lab));
		entry = lab_send_entry(i & 1 ? SHM_MAP_SEND : SHM_REQUEST_PAYLOAD);
		entry.key = lab->peer_rkey;
		assert_true(lab_post_receive(lab, 0, SHM_REQUEST_PAYLOAD));
		peer_sends(lab, entry, i);
		while (shm_conn_has_work(lab->conn))
			lab_pass(lab);
	}
	assert_true(was_packet_sent(lab));
	assert_int_equal(lab->received, 3 * shm_map_uses(lab->conn));
}

/* One that nobody can fetch is not asked for. */
static void message__peer_lets_nobody_fetch__its_use_is_not_counted(void **state)
{
	struct lab *lab = *state;

	lab->conn->remote.maps = calloc(SHM_MAPS, sizeof(struct shm_map));
	lab->conn->remote.has_pull = false;
	for (uint32_t i = 0; i < 8; i++) {
		struct shm_entry entry = lab_send_entry(SHM_MAP_SEND);

		entry.key = lab->peer_rkey;
		assert_true(lab_post_receive(lab, 0, SHM_MAP_SEND));
		peer_sends(lab, entry, i);
		lab_pass(lab);
	}
	assert_true(lab->fast_polls > 4);
	assert_false(was_packet_sent(lab));
}

static void message__empty__fills_a_receive_without_touching_it(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 2; i++) {
		assert_true(lab_post_receive(lab, 0, 8 * i));
		peer_sends(lab, lab_send_entry(0), 0);
		lab_pass(lab);
		assert_int_equal(lab->received, i + 1);
		assert_int_equal(lab->receive_len, 0);
		lab_pass(lab); /* acknowledges it */
	}
	expect_untouched(lab->memory, 64);
	assert_true(lab_is_open(lab));
}

/* Where the last Receives stood there is nothing any more. */
static void message__receives_used_up__waits_and_touches_nothing(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < LAB_RECEIVES; i++)
		exchange(lab, 8, 0);
	memset(lab->memory, UNTOUCHED, LAB_MEMORY);
	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	lab_pass(lab);
	assert_int_equal(lab->received, LAB_RECEIVES);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_RECV);
	expect_untouched(lab->memory, LAB_MEMORY);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), SHM_WAITS_RECEIVE);
}

static void message__receive_of_two_segments__in_both(void **state)
{
	struct lab *lab = *state;
	DAT_LMR_TRIPLET iov[2];
	uint8_t bytes[8];

	assert_true(lab_post_receive(lab, 100, 4));
	iov[0] = lab->receive_iov[0];
	iov[1] = iov[0];
	iov[1].virtual_address += 100;
	lab->receives[0].iov = iov;
	lab->receives[0].segments = 2;
	lab->receives[0].len = 8;
	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	memcpy(bytes, lab->memory + 100, 4);
	memcpy(bytes + 4, lab->memory + 200, 4);
	expect_bytes(bytes, 8, 0);
	expect_untouched(lab->memory + 104, 96);
}

/* The Receive is there when the message has waited for it. */
static void message__no_receive__waits(void **state)
{
	struct lab *lab = *state;

	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_RECV);
	assert_false(shm_conn_has_work(lab->conn)); /* for a poll */
	assert_int_equal(atomic_load(&lab->conn->mine->waits), SHM_WAITS_RECEIVE);
	assert_true(lab_post_receive(lab, 0, 8));
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->cell.slow_reasons, 0);
	expect_bytes(lab->memory, 8, 0);
	lab_pass(lab);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), 0);
}

/* --- lies --- */

static void entry__against_the_rules__connection_breaks(void **state)
{
	static const struct shm_entry forged[] = {
		{.type = 0, .flags = 3, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_DATA, .flags = 3, .payload = 8, .length = 8},
		{.type = UINT8_MAX, .flags = 3, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 0, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_LAST, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 9, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 8, .length = 9},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 0, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 8, .length = 8 + (1ull << 32)},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 8, .length = 8 + (1u << 16)},
		{.type = SHM_ENTRY_PULL, .flags = 3, .payload = 8, .length = 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = open_lab(false);

		exchange(lab, 8, 0);
		memset(lab->memory, UNTOUCHED, LAB_MEMORY);
		assert_true(lab_post_receive(lab, 0, 64));
		peer_sends(lab, forged[i], 0);
		lab_pass(lab);
		lab_pass(lab);
		assert_int_equal(lab->end, BROKEN);
		assert_true(lab->received == 1 || lab->receive_status != DAT_DTO_SUCCESS);
		expect_untouched(lab->memory, LAB_MEMORY);
		close_lab(lab);
	}
}

/* DTO-79 */
static void message__longer_than_its_receive__length_error_and_untouched(void **state)
{
	struct lab *lab = *state;

	exchange(lab, 8, 0);
	memset(lab->memory, UNTOUCHED, LAB_MEMORY);
	assert_true(lab_post_receive(lab, 0, 7));
	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	lab_pass(lab);
	assert_int_equal(lab->received, 2);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
	assert_int_equal(lab->end, BROKEN);
	assert_int_equal(atomic_load(&lab->conn->mine->failed),
			 SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	expect_untouched(lab->memory, LAB_MEMORY);
}

/* An entry never wraps: the one behind the last place of the ring would be our own bytes. */
static void message__payload_past_the_end_of_the_ring__connection_breaks(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(100);
	uint32_t at;

	while (SHM_REQUEST_RING - (lab->peer_out.produced & (SHM_REQUEST_RING - 1)) > 64)
		exchange(lab, 32, 0);
	memset(lab->memory, UNTOUCHED, LAB_MEMORY);
	at = lab->peer_out.produced;
	entry.stamp = SHM_STAMP(at);
	memcpy(lab->peer_requests + (at & (SHM_REQUEST_RING - 1)), &entry, sizeof(entry));
	assert_true(lab_post_receive(lab, 0, 1000));
	lab_pass(lab);
	lab_pass(lab);
	assert_int_equal(lab->end, BROKEN);
	expect_untouched(lab->memory, LAB_MEMORY);
}

/* Between the pieces of something nothing else may come, small as it is. */
static void message__between_pieces__connection_breaks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct lab *lab = open_lab(false);
		struct shm_entry piece = lab_send_entry(4);

		piece.flags = SHM_FLAG_FIRST;
		piece.length = 8;
		if (i) {
			piece.type = SHM_ENTRY_WRITE;
			piece.key = lab->rkey;
			piece.address = (uintptr_t)lab->memory + 1000;
		}
		assert_true(lab_post_receive(lab, 0, 8));
		assert_true(lab_post_receive(lab, 100, 8));
		peer_sends(lab, piece, 0);
		lab_pass(lab);
		assert_true(lab_is_open(lab));
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
		peer_sends(lab, lab_send_entry(8), 1);
		lab_pass(lab);
		lab_pass(lab);
		assert_int_equal(lab->end, BROKEN);
		assert_int_equal(lab->received, 0);
		expect_untouched(lab->memory + 100, 64);
		close_lab(lab);
	}
}

/* --- what a fast poll leaves to the general path --- */

/* Messages that come all the time do not hide that one of ours has failed. */
static void failed__under_a_stream_of_messages__seen_in_time(void **state)
{
	struct lab *lab = *state;
	uint32_t i;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	exchange(lab, 8, 0);
	atomic_store(&lab->peer->failed,
		     SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	for (i = 0; i <= FAST_POLLS && lab_is_open(lab); i++) {
		assert_true(lab_post_receive(lab, 8192, 8));
		peer_sends(lab, lab_send_entry(8), i);
		lab_pass(lab);
	}
	assert_int_equal(lab->end, BROKEN);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_RESPONDER);
}

/* DTO-117: nor that the peer waits for a Receive, and so sees the word only. */
static void waits__under_a_stream_of_messages__word_acknowledges_each(void **state)
{
	struct lab *lab = *state;
	uint32_t i;

	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	for (i = 0; i < FAST_POLLS; i++)
		exchange(lab, 8, 0);
	assert_int_equal(lab->fast_polls, FAST_POLLS);
	for (i = 0; i < 5; i++) {
		exchange(lab, 8, 0);
		assert_int_equal(done_word(lab), lab->received);
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
	}
	assert_int_equal(lab->fast_polls, FAST_POLLS);
	atomic_store(&lab->peer->waits, 0);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
	exchange(lab, 8, 0);
	assert_int_equal(lab->fast_polls, FAST_POLLS + 1);
}

/* While nobody sleeps some of it may wait for an entry of ours, but not for long. */
static void messages__unanswered__word_acknowledges_before_long(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 1; i <= 40; i++) {
		exchange(lab, 8, 0);
		assert_true(i - done_word(lab) < 8);
	}
	lab_pass(lab);
	assert_int_equal(done_word(lab), 40);
	assert_false(shm_conn_has_work(lab->conn));
}

/* A graceful disconnect ends with the last of our requests. */
static void disconnect__last_send_done__ends_at_once(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	shm_ep_disconnect(&lab->ep, true);
	assert_true(lab_is_open(lab));
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_not_equal(shm_conn_state(lab->conn), SHM_ESTABLISHED);
	assert_true(lab->cell.slow_reasons & CORE_EP_SLOW_CONN);
}

/* --- RDMA Writes --- */

static void write__small__whole_at_its_address(void **state)
{
	static const struct {
		uint32_t len, offset;
	} writes[] = {{8, 0},
		      {8, 4096},
		      {8, 3},
		      {1, 0},
		      {2, 1},
		      {3, 5},
		      {7, 0},
		      {9, 0},
		      {16, 8},
		      {17, 1},
		      {64, 0},
		      {100, 1},
		      {255, 7},
		      {256, 0},
		      {256, LAB_MEMORY - 256},
		      {8, LAB_MEMORY - 8}};
	uint32_t count = sizeof(writes) / sizeof(writes[0]);
	struct lab *lab = *state;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t len = writes[i].len, offset = writes[i].offset;

		memset(lab->peer_memory, UNTOUCHED, LAB_MEMORY);
		fill(lab->memory, len, i);
		post_write(lab, len, lab->peer_rkey, offset);
		assert_int_equal(lab->done, i + 1);
		assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
		expect_untouched(lab->peer_memory, offset);
		expect_bytes(lab->peer_memory + offset, len, i);
		expect_untouched(lab->peer_memory + offset + len, LAB_MEMORY - offset - len);
		assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
		assert_int_equal(counted(lab, SHM_COUNT_MAP), i + 1);
	}
	assert_int_equal(lab->lookups, 0);
	assert_int_equal(lab->fast_posts, count);
	expect_no_entry();
}

/* That many bytes are stored while the endpoint is locked; more are not worth the fast path. */
static void write__257_bytes__by_the_general_path(void **state)
{
	struct lab *lab = *state;

	fill(lab->memory, 257, 3);
	post_write(lab, 256, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	post_write(lab, 257, lab->peer_rkey, 1000);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 1);
	expect_bytes(lab->peer_memory, 256, 3);
	expect_untouched(lab->peer_memory + 256, 744);
	expect_bytes(lab->peer_memory + 1000, 257, 3);
	assert_int_equal(lab->done, 2);
}

static void write__suppressed__no_completion(void **state)
{
	struct lab *lab = *state;

	lab->next_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(lab->ep.req.head, 1);
	assert_int_equal(lab->done, 0); /* DTO-13 */
}

/* LMR-FREE-21: the owner of the key can see that it is in use, while the bytes are copied. */
static void write__while_it_copies__key_is_announced(void **state)
{
	struct lab *lab = *state;
	uint8_t *memory = lab->memory;

	/* the bytes that are written are the announcement itself */
	lab->memory = (uint8_t *)&lab->conn->mine->announce;
	lab->lmr->address = (uintptr_t)lab->memory;
	core_mem_know(&lab->mem, LAB_LOCAL_KEY, &lab->ep.known_source);
	post_write(lab, sizeof(uint32_t), lab->peer_rkey, 0);
	lab->memory = memory;
	assert_int_equal(lab->fast_posts, 1);
	assert_memory_equal(lab->peer_memory, &lab->peer_rkey, sizeof(uint32_t));
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
}

/* The region that the endpoint knew is gone between the check of the post and the copy. */
static void write__memory_gone__protection_error_and_nothing_stored(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->lmr->key, 0);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 0);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_untouched(lab->peer_memory, 8);
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, BROKEN);
}

/* DTO-91 DTO-92 DTO-93 DTO-94 DTO-97: the key decides, not the mapping, and nothing changes. */
static void write__key_not_good__access_error_and_nothing_stored(void **state)
{
	static const struct {
		uint32_t right, zone, length, len, offset;
		bool is_dead;
	} cases[] = {
		{SOFT_RIGHT_REMOTE_WRITE, 9, LAB_MEMORY, 8, 0, true},
		{SOFT_RIGHT_REMOTE_READ, 9, LAB_MEMORY, 8, 0, false},
		{SOFT_RIGHT_REMOTE_WRITE, 8, LAB_MEMORY, 8, 0, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, 64, 8, 57, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, 64, 100, 0, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, LAB_MEMORY, 8, LAB_MEMORY - 7, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, LAB_MEMORY, 8, (uint32_t)-8, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lab *lab = open_lab(true);
		uint32_t key;

		assert_int_equal(soft_keys_add(lab->peer_keys, (uintptr_t)lab->peer_memory,
					       cases[i].length, cases[i].right, cases[i].zone,
					       &key),
				 0);
		if (cases[i].is_dead)
			soft_keys_invalidate(lab->peer_keys, key);
		lab->map.key = key;
		fill(lab->memory, 200, 1);
		post_write(lab, cases[i].len, key, cases[i].offset);
		assert_int_equal(lab->done, 1);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
		assert_int_equal(counted(lab, SHM_COUNT_MAP), 0);
		assert_int_equal(lab->fast_posts, 0);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		soft_keys_invalidate(lab->peer_keys, key);
		soft_keys_release(lab->peer_keys, key);
		shm_conn_finish(lab->conn, &lab->ep);
		assert_int_equal(lab->end, BROKEN);
		close_lab(lab);
	}
}

/* A peer that has ended it all is not written to, whatever its table says. */
static void write__gate_closed__nothing_stored(void **state)
{
	static const uint32_t lengths[] = {8, 3, 100};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct lab *lab = open_lab(true);

		memset(lab->memory, 1, 200);
		atomic_store(&lab->peer->revoked, 1);
		post_write(lab, lengths[i], lab->peer_rkey, 0);
		assert_int_equal(lab->done, 0);
		assert_int_equal(lab->fast_posts, 0);
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
		assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		close_lab(lab);
	}
}

/* DTO-40 DTO-41: what is still in the ring comes first. */
static void write__another_in_the_ring__behind_it(void **state)
{
	struct lab *lab = *state;

	lab->map.key = 1;
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->conn->ring_writes, 1);
	lab->map.key = lab->peer_rkey;
	fill(lab->memory, 8, 1);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->done, 0);
	expect_untouched(lab->peer_memory, 64);
	assert_int_equal(lab->conn->ring_writes, 2);
	assert_int_equal(lab->fast_posts, 0);
	atomic_store(&lab->peer->done, lab->conn->sent);
	lab_pass(lab);
	assert_int_equal(lab->fast_polls, 1);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->conn->ring_writes, 0);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	expect_bytes(lab->peer_memory, 8, 1);
}

/* Where the mapping is not for that, it is not used. */
static void write__mapping_not_usable__by_the_general_path(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct lab *lab = open_lab(false);

		if (i == 0)
			lab->map.key++;
		else if (i == 1)
			lab->map.is_writable = false;
		else if (i == 2)
			lab->map = (struct shm_map){.state = SHM_MAP_FREE};
		else if (i == 3)
			lab->map.region.length = 7;
		else if (i == 4)
			lab->conn->remote.last_map = NULL;
		else
			lab->conn->is_unfenced = false; /* it would have to pass a fence */
		fill(lab->memory, 8, 1);
		post_write(lab, 8, lab->peer_rkey, 0);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		assert_int_equal(lab->conn->ring_writes, 1);
		close_lab(lab);
	}
}

/* A Write is finished before the Send in front of it, and both are raised in order. */
static void write__behind_a_send__raised_behind_it(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_write(lab, 8, lab->peer_rkey, 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->ep.req.head, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 2);
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 3);
	assert_int_equal(lab->done, 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		TEST(send__small__one_whole_entry_at_once),
		TEST(send__peer_sleeps__wakes_it),
		TEST(send__connection_was_quiet__polled_again),
		cmocka_unit_test(send__longer_than_an_entry__by_the_general_path),
		TEST(send__memory_given_to_the_peer__by_the_general_path),
		TEST(send__messages_done__acknowledges_them),
		TEST(send__peer_waits_for_a_receive__word_acknowledges),
		TEST(send__acknowledged_by_the_word__completes_in_order),
		TEST(send__acknowledged_by_an_entry__completes_with_the_message),
		TEST(done__word_behind_the_entries__next_poll_acknowledges),
		TEST(done__older_than_known__ignored),
		cmocka_unit_test(done__more_than_was_sent__connection_breaks),
		TEST(send__many_of_all_lengths__in_order),
		TEST(send__ring_full__rest_follows_in_order),
		cmocka_unit_test(fenced__read_in_flight__waits_for_its_data),
		RING_TEST(unfenced__read_in_flight__goes_at_once),
		cmocka_unit_test(send__memory_gone__protection_error_and_nothing_sent),
		TEST(send__key_issued_again__not_on_the_fast_path),
		cmocka_unit_test(message__receive_no_longer_good__protection_error_and_untouched),
		TEST(message__small__in_its_receive),
		TEST(messages__several_at_once__one_a_poll_each_in_its_receive),
		TEST(messages__many_of_all_lengths__in_order_and_space_given_back),
		TEST(messages__all_small_and_answered__space_given_back),
		RING_TEST(message__while_a_read_is_in_flight__data_not_held_up),
		RING_TEST(read__data_arrive__completes_at_once),
		TEST(message__from_known_memory__its_use_is_counted),
		TEST(message__peer_lets_nobody_fetch__its_use_is_not_counted),
		TEST(message__empty__fills_a_receive_without_touching_it),
		TEST(message__receives_used_up__waits_and_touches_nothing),
		TEST(message__receive_of_two_segments__in_both),
		TEST(message__no_receive__waits),
		cmocka_unit_test(entry__against_the_rules__connection_breaks),
		TEST(message__longer_than_its_receive__length_error_and_untouched),
		TEST(message__payload_past_the_end_of_the_ring__connection_breaks),
		cmocka_unit_test(message__between_pieces__connection_breaks),
		TEST(failed__under_a_stream_of_messages__seen_in_time),
		TEST(waits__under_a_stream_of_messages__word_acknowledges_each),
		TEST(messages__unanswered__word_acknowledges_before_long),
		TEST(disconnect__last_send_done__ends_at_once),
		TEST(write__small__whole_at_its_address),
		TEST(write__257_bytes__by_the_general_path),
		TEST(write__suppressed__no_completion),
		TEST(write__while_it_copies__key_is_announced),
		TEST(write__memory_gone__protection_error_and_nothing_stored),
		cmocka_unit_test(write__key_not_good__access_error_and_nothing_stored),
		cmocka_unit_test(write__gate_closed__nothing_stored),
		RING_TEST(write__another_in_the_ring__behind_it),
		cmocka_unit_test(write__mapping_not_usable__by_the_general_path),
		TEST(write__behind_a_send__raised_behind_it),
	};

	return cmocka_run_group_tests_name("shm fast", tests, NULL, NULL);
}
