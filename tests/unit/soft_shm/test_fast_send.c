// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: Sends, their acknowledgements, and memory that is not valid any
 * more.
 */
#include <stdlib.h>

#include "fast_entry.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"

/* --- Sends --- */

/* EP-SEND-23 DTO-23 */
static void send__small__one_whole_entry_at_once(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 32, 33, 1023, 1024, SHM_REQUEST_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 9; i++) {
		struct shm_entry entry;
		bool is_solicited = i & 1;

		/* room for the longest without a filler */
		atomic_store(&lab->peer->done, lab->conn->sent);
		lab_pass(lab);
		fill(lab->memory, lengths[i], i);
		post_send(lab, 0, lengths[i],
			  is_solicited ? DAT_COMPLETION_SOLICITED_WAIT_FLAG
				       : DAT_COMPLETION_DEFAULT_FLAG);
		entry = expect_entry(lengths[i], i);
		assert_int_equal(!!(entry.flags & SHM_FLAG_SOLICITED), is_solicited);
		/* its key, so that the peer may ask for a mapping */
		assert_int_equal(entry.key, lengths[i] < SHM_MAP_SEND ? 0 : lab->rkey);
		expect_no_entry();
	}
	assert_int_equal(lab->lookups, 0);
	assert_int_equal(lab->fast_posts, 9);
	assert_int_equal(lab->done, 8);
	assert_int_equal(counted(lab, SHM_COUNT_SEND_INLINE), 9);
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

/* A poll for its completion finds the connection. */
static void send__connection_was_quiet__polled_again(void **state)
{
	struct lab *lab = *state;

	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
}

/* Sent in pieces, or fetched by the peer. */
static void send__longer_than_an_entry__by_the_slow_path(void **state)
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

/* The peer has mapped the memory and fetches the message. */
static void send__memory_given_to_the_peer__by_the_slow_path(void **state)
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

/* DTO-52: an entry acknowledges what is done, so the word need not. */
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

/* DTO-117: a peer that waits for a Receive reads no entry. */
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

/* A peer that always answers does not update its word: that hides nothing else. */
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
	/* nor rare work */
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

/* Reads the next entry as the peer: 1: there is one; 0: none. Gives back honestly what it takes. */
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

/* A Send that finds no room waits, and no later one overtakes it. */
static void send__ring_full__rest_follows_in_order(void **state)
{
	static const uint32_t lengths[] = {4096, 4096, 4096, 1023, 1023, 1023, 1023, 8};
	struct lab *lab = *state;
	uint32_t taken = 0;

	/* from the middle of the ring, where only a filler breaks the sequence */
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
		assert_int_equal(lab->fast_posts, 1); /* the Read */
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

/* A request without the fence is sent at once, and completes after the Read. */
static void unfenced__read_in_flight__goes_at_once(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	post_send(lab, 8, 4, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 2);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
}

/* --- memory of ours that is gone, or another's --- */

/* Posts a Send whose region is no longer good. Closes the lab. */
static void send_fails(struct lab *lab)
{
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_no_entry();
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, BROKEN);
	close_lab(lab);
}

/* The key that the endpoint has cached is dead, or belongs to another region now. */
static void send__memory_gone__protection_error_and_nothing_sent(void **state)
{
	(void)state;
	for (uint32_t key = 0; key < 2 * LAB_LOCAL_KEY; key += LAB_LOCAL_KEY + 1) {
		struct lab *lab = open_lab(false);

		atomic_store(&lab->lmr->key, key);
		send_fails(lab);
	}
}

/* LMR-FREE-06 DTO-96: another thread frees the region after the post has checked it. */
static void send__memory_freed_meanwhile__protection_error_and_nothing_sent(void **state)
{
	struct lab *lab = open_lab(false);

	(void)state;
	lab->is_freeing = true;
	send_fails(lab);
}

/* The key belongs to another region now, and was issued again: the cached region is not used. */
static void send__key_issued_again__not_on_the_fast_path(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	atomic_fetch_add(&lab->lmr->changes, 2);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->fast_posts, 1);
	core_mem_cache_fill(&lab->mem, LAB_LOCAL_KEY, &lab->ep.cached_source);
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
		if (i == 0) {
			atomic_store(&lab->lmr->key, 0);
		} else if (i == 1) {
			atomic_store(&lab->lmr->key, LAB_LOCAL_KEY + CORE_MEM_MAX);
		} else if (i == 2) { /* as dat_ep_modify changes it */
			lab->ep.pz = &other;
			lab->ep.cached_target = CORE_MEM_CACHE_EMPTY;
		} else { /* where the table is empty */
			lab->receives[1].first.lmr_context = LAB_LOCAL_KEY + CORE_MEM_CHUNK;
		}
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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		TEST(send__small__one_whole_entry_at_once),
		TEST(send__peer_sleeps__wakes_it),
		TEST(send__connection_was_quiet__polled_again),
		cmocka_unit_test(send__longer_than_an_entry__by_the_slow_path),
		TEST(send__memory_given_to_the_peer__by_the_slow_path),
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
		cmocka_unit_test(send__memory_freed_meanwhile__protection_error_and_nothing_sent),
		TEST(send__key_issued_again__not_on_the_fast_path),
		cmocka_unit_test(message__receive_no_longer_good__protection_error_and_untouched),
	};

	return cmocka_run_group_tests_name("shm fast", tests, NULL, NULL);
}
