// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: messages of the peer, invalid entries, and what a poll leaves to
 * the slow path.
 */
#include <stdlib.h>

#include "fast_entry.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/direct.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/progress.h"

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
		/* with room to spare, and with none */
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

/* Several laps, with fillers; each message is answered, so only ring space has to be given back. */
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

/* The word acknowledges nothing, and no pass is made. */
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

/* The data of an RDMA Read come through the other ring. */
static void message__while_a_read_is_in_flight__data_not_held_up(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	assert_int_equal(lab->conn->reads, 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(lab_post_receive(lab, 8192 + i * 64, 8));
		peer_sends(lab, lab_send_entry(8), i);
	}
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_memory_equal(lab->memory, "data", 4);
	for (uint32_t i = 0; i < 3; i++)
		lab_pass(lab);
	assert_int_equal(lab->received, 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_bytes(lab->memory + 8192 + i * 64, 8, i);
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
	assert_int_equal(lab->fast_polls, 1);
}

/* Messages from known memory count its uses; after enough uses we ask for a mapping. */
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

/* We do not ask if the peer's memory cannot be fetched. */
static void message__peer_cannot_be_fetched_from__its_use_is_not_counted(void **state)
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

/* The slots of the last Receives hold nothing valid any more. */
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
	iov[0] = lab->receives[0].first;
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

/* The Receive is posted while the message waits for it. */
static void message__no_receive__waits(void **state)
{
	struct lab *lab = *state;

	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_RECV);
	assert_false(shm_conn_has_work(lab->conn)); /* no work for a poll */
	assert_int_equal(atomic_load(&lab->conn->mine->waits), SHM_WAITS_RECEIVE);
	assert_true(lab_post_receive(lab, 0, 8));
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->cell.slow_reasons, 0);
	expect_bytes(lab->memory, 8, 0);
	lab_pass(lab);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), 0);
}

static void expect_not_placed(struct lab *lab)
{
	peer_sends(lab, lab_send_entry(8), 1);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(lab->end, BROKEN);
	expect_untouched(lab->memory, 64);
}

/* LMR-FREE-06: the key of a freed region may come to another one, which is somewhere else. */
static void message__key_of_its_receive_names_another_region__untouched(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 0, 8));
	atomic_fetch_add(&lab->lmr->changes, 2);
	lab->lmr->address += 4;
	expect_not_placed(lab);
}

/* LMR-FREE-06: and a Receive was posted there since. */
static void message__key_of_its_receive_names_the_cached_region__untouched(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 0, 8));
	atomic_fetch_add(&lab->lmr->changes, 2);
	lab->lmr->address += 4;
	core_mem_cache_fill(&lab->mem, LAB_LOCAL_KEY, &lab->ep.cached_target);
	expect_not_placed(lab);
}

/* LMR-FREE-06 LMR-USE-05: or to one that may not be written. */
static void message__key_of_its_receive_names_a_region_to_read__untouched(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 0, 8));
	atomic_fetch_add(&lab->lmr->changes, 2);
	lab->lmr->priv = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	expect_not_placed(lab);
}

/* LMR-USE-01: a later Receive was posted into another region, which is the cached one now. */
static void message__region_is_not_the_cached_one__in_its_receive(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 0, 8));
	lab->ep.cached_target = CORE_MEM_CACHE_EMPTY;
	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	assert_int_equal(lab->fast_polls, 1);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory, 8, 0);
}

/* --- invalid entries --- */

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

/* An entry never wraps: payload behind the end of the ring would be our own bytes. */
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

/* No other entry may come between the pieces of a message or RDMA. */
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

/* --- what a fast poll leaves to the slow path --- */

/* A steady stream of messages does not hide that one of ours has failed. */
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

/* DTO-117: nor that the peer waits for a Receive, and so reads the word only. */
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

/* While nothing else happens, no pass is made. */
static void messages__nothing_else__no_pass(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 1; i <= 10 * FAST_POLLS; i++) {
		exchange(lab, 8, 0);
		assert_int_equal(lab->fast_polls, i);
	}
	assert_int_equal(lab->cell.slow_reasons, 0);
}

enum rare_work {
	WORK_LEFT, /* by a pass that has used up its budget */
	WORK_TCP,  /* the slow path polls connections over TCP */
	WORK_END,
};

static void put_work(struct lab *lab, enum rare_work work)
{
	if (work == WORK_LEFT)
		atomic_store(&lab->conn->has_more, true);
	else
		core_ia_set_slow_poll(&lab->ia, true);
}

/* A stream of messages does not hide other work. */
static void rare_work__under_a_stream_of_messages__pass(void **state)
{
	(void)state;
	for (enum rare_work work = 0; work < WORK_END; work++) {
		struct lab *lab = open_lab(true);

		put_work(lab, work);
		for (uint32_t i = 0; i < FAST_POLLS; i++)
			exchange(lab, 8, 0);
		assert_int_equal(lab->fast_polls, FAST_POLLS);
		exchange(lab, 8, 0);
		assert_int_equal(lab->fast_polls, FAST_POLLS);
		assert_false(atomic_load(&lab->conn->has_more));
		for (uint32_t i = 0; i < FAST_POLLS; i++)
			exchange(lab, 8, 0);
		assert_int_equal(lab->fast_polls, 2 * FAST_POLLS);
		/* connections over TCP remain */
		exchange(lab, 8, 0);
		assert_int_equal(lab->fast_polls, 2 * FAST_POLLS + (work != WORK_TCP));
		close_lab(lab);
	}
}

/* Data of Reads, which are taken first, do not hide a message. */
static void message__data_of_a_read_at_the_check__both_taken(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < FAST_POLLS; i++)
		exchange(lab, 8, 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
		assert_true(lab_peer_entry(&lab->peer_answers, &data, "data"));
	}
	assert_true(lab_post_receive(lab, 8192, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	lab_pass(lab);
	assert_int_equal(lab->fast_polls, FAST_POLLS);
	assert_int_equal(lab->received, FAST_POLLS + 1);
	assert_int_equal(lab->done, 2);
}

/* Without a sleep some reports may wait for an entry of ours, but not for long. */
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

static void poll_a_message(struct lab *lab, uint32_t number)
{
	assert_true(lab_post_receive(lab, number * 64, 8));
	peer_sends(lab, lab_send_entry(8), number);
	lab_pass(lab);
	assert_int_equal(lab->received, number + 1);
}

/* DTO-52: The same if the connection was polled for long, so that messages are not counted. */
static void messages__unanswered_after_long__word_acknowledges_eight(void **state)
{
	struct lab *lab = *state;

	lab->conn->taken = SHM_POLLED_AFTER;
	for (uint32_t i = 0; i < SHM_UNREPORTED_MAX; i++) {
		assert_int_equal(done_word(lab), 0);
		poll_a_message(lab, i);
	}
	assert_int_equal(done_word(lab), SHM_UNREPORTED_MAX);
	assert_int_equal(lab->lookups, 0);
}

/* DTO-52: No other poll may follow soon if the connection is armed. */
static void message__connection_is_armed__word_acknowledges_it(void **state)
{
	struct lab *lab = *state;

	lab->conn->taken = SHM_POLLED_AFTER;
	atomic_store(&lab->conn->is_disarmed, false);
	poll_a_message(lab, 0);
	assert_int_equal(done_word(lab), 1);
	atomic_store(&lab->conn->is_disarmed, true);
}

/* Messages are counted until the peer may omit the fence (progress.h). */
static void messages__until_polled_for_long__counted(void **state)
{
	struct lab *lab = *state;

	lab->conn->taken = SHM_POLLED_AFTER - 2;
	poll_a_message(lab, 0);
	assert_int_equal(lab->conn->taken, SHM_POLLED_AFTER - 1);
	poll_a_message(lab, 1);
	assert_int_equal(lab->conn->taken, SHM_POLLED_AFTER);
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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		TEST(message__small__in_its_receive),
		TEST(messages__several_at_once__one_a_poll_each_in_its_receive),
		TEST(messages__many_of_all_lengths__in_order_and_space_given_back),
		TEST(messages__all_small_and_answered__space_given_back),
		RING_TEST(message__while_a_read_is_in_flight__data_not_held_up),
		RING_TEST(read__data_arrive__completes_at_once),
		TEST(message__from_known_memory__its_use_is_counted),
		TEST(message__peer_cannot_be_fetched_from__its_use_is_not_counted),
		TEST(message__empty__fills_a_receive_without_touching_it),
		TEST(message__receives_used_up__waits_and_touches_nothing),
		TEST(message__receive_of_two_segments__in_both),
		TEST(message__no_receive__waits),
		TEST(message__key_of_its_receive_names_another_region__untouched),
		TEST(message__key_of_its_receive_names_the_cached_region__untouched),
		TEST(message__region_is_not_the_cached_one__in_its_receive),
		TEST(message__key_of_its_receive_names_a_region_to_read__untouched),
		cmocka_unit_test(entry__against_the_rules__connection_breaks),
		TEST(message__longer_than_its_receive__length_error_and_untouched),
		TEST(message__payload_past_the_end_of_the_ring__connection_breaks),
		cmocka_unit_test(message__between_pieces__connection_breaks),
		TEST(failed__under_a_stream_of_messages__seen_in_time),
		TEST(waits__under_a_stream_of_messages__word_acknowledges_each),
		TEST(messages__nothing_else__no_pass),
		cmocka_unit_test(rare_work__under_a_stream_of_messages__pass),
		RING_TEST(message__data_of_a_read_at_the_check__both_taken),
		TEST(messages__unanswered__word_acknowledges_before_long),
		TEST(messages__unanswered_after_long__word_acknowledges_eight),
		TEST(message__connection_is_armed__word_acknowledges_it),
		TEST(messages__until_polled_for_long__counted),
		TEST(disconnect__last_send_done__ends_at_once),
	};

	return cmocka_run_group_tests_name("shm fast", tests, NULL, NULL);
}
