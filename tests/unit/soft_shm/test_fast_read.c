// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: RDMA Reads through the ring, where neither process can access the
 * memory of the other. First our own, then those of the peer.
 */
#include "fast_entry.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/segment.h"

#define TARGET 100u /* offset of the bytes that a Read fetches */

/* The peer's end of our response ring. */
static struct shm_consumer peer_data_in;

static struct lab *open_for_reads(bool has_cma)
{
	struct lab *lab = open_without_map(has_cma);

	lab->conn->read_limit = LAB_REQUESTS;
	memset(lab->memory, UNTOUCHED, LAB_MEMORY);
	shm_consumer_init(&peer_data_in, lab->conn->segment->response[SHM_PASSIVE],
			  SHM_RESPONSE_RING, SHM_RESPONSE_PAYLOAD, &lab->peer->response_consumed);
	return lab;
}

static int setup_for_reads(void **state)
{
	*state = open_for_reads(false);
	return 0;
}

static uint32_t watched(const struct lab *lab)
{
	return atomic_load(&lab->conn->watch) & SHM_WATCH_RESPONSES;
}

/* --- our Reads --- */

static void post_read(struct lab *lab, uint32_t len, uint32_t offset)
{
	assert_true(lab_post(lab, CORE_OP_RDMA_READ, TARGET, len, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory + offset));
}

/* The peer takes our next entry, which must ask for these bytes. */
static void expect_read(const struct lab *lab, uint32_t len, uint32_t offset)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 1);
	assert_int_equal(entry.type, SHM_ENTRY_READ);
	assert_int_equal(entry.flags, SHM_FLAG_FIRST | SHM_FLAG_LAST);
	assert_int_equal(entry.key, lab->peer_rkey);
	assert_int_equal(entry.address, (uintptr_t)lab->peer_memory + offset);
	assert_int_equal(entry.length, len);
	assert_int_equal(entry.payload, 0);
	shm_consumer_pop(&peer_in);
	(void)shm_consumer_release(&peer_in);
}

/* The peer answers with one entry; it has carried out `done` of our messages. */
static void peer_answers(struct lab *lab, uint32_t len, uint32_t seed, uint32_t done)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA,
				 .flags = SHM_FLAG_LAST,
				 .payload = (uint16_t)len,
				 .done = done};
	uint8_t bytes[SHM_RESPONSE_PAYLOAD];

	fill(bytes, len, seed);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, bytes));
}

/* EP-RDMAR-01 EP-RDMAR-02 */
static void read__up_to_one_answer__placed_and_completed(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 256, 257, 1024, SHM_RESPONSE_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t len = lengths[i];

		memset(lab->memory, UNTOUCHED, LAB_MEMORY);
		post_read(lab, len, i);
		assert_int_equal(lab->fast_posts, i + 1);
		assert_int_equal(lab->ep.path, OPENDAT_PATH_RING);
		assert_int_equal(counted(lab, SHM_COUNT_RING), i + 1);
		expect_read(lab, len, i);
		assert_int_equal(lab->conn->reads, 1);
		assert_false(shm_conn_has_work(lab->conn));
		peer_answers(lab, len, i, 0);
		assert_true(shm_conn_has_work(lab->conn));
		lab_pass(lab);
		assert_int_equal(lab->fast_polls, i + 1);
		assert_int_equal(lab->done, i + 1);
		assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
		assert_int_equal(lab->conn->reads, 0);
		assert_int_equal(watched(lab), 0);
		expect_untouched(lab->memory, TARGET);
		expect_bytes(lab->memory + TARGET, len, i);
		expect_untouched(lab->memory + TARGET + len, 1024);
	}
	assert_int_equal(lab->lookups, 0);
	expect_no_entry();
	expect_untouched(lab->peer_memory, LAB_MEMORY);
}

/* The answer is too long for one entry. */
static void read__two_answers__completes_with_the_second(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .payload = SHM_RESPONSE_PAYLOAD};
	uint8_t bytes[SHM_RESPONSE_PAYLOAD + 8];
	struct lab *lab = *state;

	fill(bytes, sizeof(bytes), 3);
	post_read(lab, sizeof(bytes), 0);
	assert_int_equal(lab->fast_posts, 1);
	expect_read(lab, sizeof(bytes), 0);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, bytes));
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	data = (struct shm_entry){.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 8};
	assert_true(lab_peer_entry(&lab->peer_answers, &data, bytes + SHM_RESPONSE_PAYLOAD));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->fast_polls, 0);
	expect_bytes(lab->memory + TARGET, sizeof(bytes), 3);
	expect_untouched(lab->memory + TARGET + sizeof(bytes), 1024);
}

/* EP-RDMAR-36: so many are in flight, the others wait. */
static void read__limit_reached__waits_for_an_earlier_one(void **state)
{
	struct lab *lab = *state;

	lab->conn->read_limit = 2;
	for (uint32_t i = 0; i < 3; i++)
		post_read(lab, 8, i);
	assert_int_equal(lab->fast_posts, 2);
	assert_int_equal(lab->conn->reads, 2);
	expect_read(lab, 8, 0);
	expect_read(lab, 8, 1);
	expect_no_entry();
	peer_answers(lab, 8, 1, 0);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	expect_read(lab, 8, 2);
	peer_answers(lab, 8, 2, 0);
	peer_answers(lab, 8, 3, 0);
	for (uint32_t i = 0; i < 3 && lab->done < 3; i++)
		lab_pass(lab);
	assert_int_equal(lab->done, 3);
	assert_int_equal(lab->conn->reads, 0);
}

/* More answers than the ring has room for: their space is given back. */
static void reads__many__space_of_their_answers_is_given_back(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 100; i++) {
		post_read(lab, SHM_RESPONSE_PAYLOAD, 0);
		expect_read(lab, SHM_RESPONSE_PAYLOAD, 0);
		(void)shm_producer_refresh(&lab->peer_answers);
		peer_answers(lab, SHM_RESPONSE_PAYLOAD, i, 0);
		lab_pass(lab);
		assert_int_equal(lab->done, i + 1);
		expect_bytes(lab->memory + TARGET, SHM_RESPONSE_PAYLOAD, i);
	}
	assert_true(lab->fast_polls > 90);
}

/* A poll in a stream, by a dequeue from the EVD of the requests. */
static void poll_stream(struct lab *lab)
{
	(void)lab_poll(lab, lab->ep.request_evd, SHM_BATCH);
	lab_take_events(lab);
}

/*
 * The peer has no room for the fourth answer and publishes a filler. It is no work for the poll
 * that finds it behind the answers, so no pass follows; the space of the answers is given back.
 */
static void reads__answers_and_a_filler__space_is_given_back(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 3; i++) {
		post_read(lab, SHM_RESPONSE_PAYLOAD, 0);
		peer_answers(lab, SHM_RESPONSE_PAYLOAD, i, 0);
	}
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	post_read(lab, SHM_RESPONSE_PAYLOAD, 0);
	assert_null(shm_producer_make_room(&lab->peer_answers, SHM_RESPONSE_PAYLOAD));
	poll_stream(lab);
	assert_int_equal(lab->done, 3);
	assert_false(shm_conn_has_work(lab->conn));
	assert_non_null(shm_producer_make_room(&lab->peer_answers, SHM_RESPONSE_PAYLOAD));
	peer_answers(lab, SHM_RESPONSE_PAYLOAD, 4, 0);
	lab_pass(lab);
	assert_int_equal(lab->done, 4);
	expect_bytes(lab->memory + TARGET, SHM_RESPONSE_PAYLOAD, 4);
}

/* The same with a Read of the peer and its messages, in the request ring. */
static void peer_read__message_and_a_filler__space_is_given_back(void **state)
{
	struct lab *lab = *state;
	uint32_t sent = 0, len = SHM_REQUEST_PAYLOAD;

	while (shm_producer_at_once(&lab->peer_out, len) || sent < 3) {
		assert_true(lab_post_receive(lab, 8192, len));
		peer_sends(lab, lab_send_entry(len), sent++);
	}
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	peer_sends(lab,
		   (struct shm_entry){.type = SHM_ENTRY_READ,
				      .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
				      .key = lab->rkey,
				      .address = (uintptr_t)lab->memory,
				      .length = 8},
		   0);
	assert_null(shm_producer_make_room(&lab->peer_out, len));
	poll_stream(lab);
	assert_int_equal(lab->received, sent);
	assert_true(shm_consumer_has_entry(&peer_data_in));
	assert_false(shm_conn_has_work(lab->conn));
	assert_non_null(shm_producer_make_room(&lab->peer_out, len));
}

/* A poll for one message takes no second one. */
static void data__and_a_message__one_in_each_poll(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 8192, 8));
	post_read(lab, 8, 0);
	peer_answers(lab, 8, 1, 0);
	peer_sends(lab, lab_send_entry(8), 2);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->received, 0);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory + TARGET, 8, 1);
	expect_bytes(lab->memory + 8192, 8, 2);
}

/* In a stream a poll takes all that has arrived. */
static void reads__several__all_placed_in_order(void **state)
{
	struct lab *lab = *state;

	for (uint32_t round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < LAB_REQUESTS; i++)
			assert_true(lab_post(lab, CORE_OP_RDMA_READ, i * 64, 8, lab->peer_rkey,
					     (uintptr_t)lab->peer_memory));
		for (uint32_t i = 0; i < LAB_REQUESTS; i++)
			peer_answers(lab, 8, round + i, 0);
		for (uint32_t i = 0; i < LAB_REQUESTS && lab->conn->reads; i++)
			lab_pass(lab);
		assert_int_equal(lab->done, (round + 1) * LAB_REQUESTS);
		for (uint32_t i = 0; i < LAB_REQUESTS; i++) {
			peer_skips_entry();
			expect_bytes(lab->memory + i * 64, 8, round + i);
			expect_untouched(lab->memory + i * 64 + 8, 56);
		}
	}
	assert_true(lab->fast_polls >= 9 * LAB_REQUESTS);
}

/* The ring is full: the Read waits, and is not lost. */
static void read__ring_full__asked_later(void **state)
{
	struct lab *lab = *state;
	uint32_t sends = 0;

	fill(lab->memory, SHM_REQUEST_PAYLOAD, 1);
	for (uint32_t len = SHM_REQUEST_PAYLOAD; len; len -= SHM_ENTRY_ALIGN) {
		while (shm_producer_at_once(&lab->conn->request_out, len)) {
			post_send(lab, 0, len, DAT_COMPLETION_DEFAULT_FLAG);
			sends++;
		}
	}
	post_read(lab, 8, 5);
	assert_int_equal(lab->fast_posts, sends);
	assert_int_equal(lab->conn->reads, 0);
	for (uint32_t i = 0; i < sends; i++)
		peer_skips_entry();
	shm_consumer_give_back(&peer_in);
	atomic_store(&lab->peer->done, sends);
	lab_pass(lab);
	expect_read(lab, 8, 5);
	peer_answers(lab, 8, 4, 0);
	lab_pass(lab);
	assert_int_equal(lab->done, sends + 1);
	expect_bytes(lab->memory + TARGET, 8, 4);
}

/* The kernel can copy: the Read does not wait for the peer. */
static void read__kernel_copies_allowed__not_through_the_ring(void **state)
{
	struct lab *lab;

	(void)state;
	ABILITY_NEED_VM_CALLS();
	lab = open_for_reads(true);
	fill(lab->peer_memory, 8, 1);
	post_read(lab, 8, 0);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 1);
	assert_int_equal(lab->done, 1);
	expect_bytes(lab->memory + TARGET, 8, 1);
	close_lab(lab);
}

/* DTO-13 */
static void read__suppressed__no_completion(void **state)
{
	struct lab *lab = *state;

	lab->next_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	post_read(lab, 8, 0);
	assert_int_equal(lab->fast_posts, 1);
	peer_answers(lab, 8, 1, 0);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 1);
	assert_int_equal(lab->done, 0);
	expect_bytes(lab->memory + TARGET, 8, 1);
}

/* DTO-30 */
static void read__fenced__behind_the_read_before(void **state)
{
	struct lab *lab = *state;

	post_read(lab, 8, 0);
	expect_read(lab, 8, 0);
	lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	post_read(lab, 8, 1);
	expect_no_entry();
	peer_answers(lab, 8, 1, 0);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	expect_read(lab, 8, 1);
}

/* DTO-37 */
static void data__before_an_earlier_send_is_done__completes_after_it(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_read(lab, 8, 0);
	assert_int_equal(lab->fast_posts, 2);
	lab->requests[0].transport.word[1] = 0; /* a Send leaves it as it was */
	peer_answers(lab, 8, 1, 0);
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	expect_bytes(lab->memory + TARGET, 8, 1);
}

static void data__acknowledges_earlier_sends__all_completed(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_read(lab, 8, 0);
	peer_answers(lab, 8, 1, 2);
	lab_pass(lab);
	assert_int_equal(lab->fast_polls, 1);
	assert_int_equal(lab->done, 3);
	assert_int_equal(lab->conn->reads, 0);
}

/* DTO-37: a Send that finishes first waits for the Read before it. */
static void data__before_a_finished_send__both_completed(void **state)
{
	struct lab *lab = *state;

	post_read(lab, 8, 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	peer_answers(lab, 8, 1, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	expect_bytes(lab->memory + TARGET, 8, 1);
}

/* DTO-56 DTO-96: the target is no longer valid when the data arrive. */
static void data__target_not_good__protection_error(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct lab *lab = open_for_reads(false);
		struct core_pz other = lab->pz;

		post_read(lab, 8, 0);
		assert_int_equal(lab->fast_posts, 1);
		if (i == 0)
			atomic_store(&lab->lmr->key, 0); /* freed */
		else if (i == 1)
			lab->lmr->pz = &other;
		else if (i == 2)
			lab->lmr->priv &= ~(DAT_MEM_PRIV_FLAGS)DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		else
			lab->lmr->length = TARGET + 7;
		atomic_fetch_add(&lab->lmr->changes, 2);
		peer_answers(lab, 8, 1, 0);
		lab_pass(lab);
		assert_int_equal(lab->done, 1);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
		expect_untouched(lab->memory, LAB_MEMORY);
		shm_conn_finish(lab->conn, &lab->ep);
		assert_int_equal(lab->end, BROKEN);
		close_lab(lab);
	}
}

/* Too short, too long, without the end, of another type, or in a piece that there is not. */
static void data__odd__connection_broken(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct lab *lab = open_for_reads(false);
		struct shm_entry data = {
			.type = i == 3 ? SHM_ENTRY_SEND : SHM_ENTRY_DATA,
			.flags = i == 2	  ? 0
				 : i == 4 ? SHM_FLAG_LAST | SHM_FLAG_PIECE
					  : SHM_FLAG_LAST,
			.payload = i == 0   ? 7
				   : i == 1 ? 9
					    : 8,
		};

		post_read(lab, 8, 0);
		assert_true(lab_peer_entry(&lab->peer_answers, &data, "123456789"));
		lab_pass(lab);
		shm_conn_finish(lab->conn, &lab->ep);
		assert_int_equal(lab->end, BROKEN);
		expect_untouched(lab->memory, LAB_MEMORY);
		close_lab(lab);
	}
}

/* The parts of an answer are longer together than what was asked for. */
static void data__whole_after_a_part__connection_broken(void **state)
{
	struct shm_entry part = {.type = SHM_ENTRY_DATA, .payload = 4};
	struct lab *lab = *state;

	post_read(lab, 8, 0);
	assert_true(lab_peer_entry(&lab->peer_answers, &part, "data"));
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
	peer_answers(lab, 8, 1, 0);
	lab_pass(lab);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, BROKEN);
	assert_memory_equal(lab->memory + TARGET, "data", 4);
	expect_untouched(lab->memory + TARGET + 4, 1024);
}

/* Nobody has asked for it, so nobody looks at it. */
static void data__unasked__not_placed(void **state)
{
	struct lab *lab = *state;

	peer_answers(lab, 8, 1, 0);
	lab_pass(lab);
	expect_untouched(lab->memory, LAB_MEMORY);
	assert_int_equal(lab->done, 0);
}

/* --- the peer's Reads --- */

static void peer_reads(struct lab *lab, uint32_t key, uint64_t address, uint64_t len)
{
	peer_sends(lab,
		   (struct shm_entry){
			   .type = SHM_ENTRY_READ,
			   .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			   .key = key,
			   .address = address,
			   .length = len,
		   },
		   0);
}

/* The peer takes our next answer; returns its length, 0 if there is none. */
static uint32_t take_answer(uint32_t seed, bool is_last)
{
	const uint8_t *payload;
	struct shm_entry entry;

	if (!shm_consumer_peek(&peer_data_in, &entry, &payload))
		return 0;
	assert_int_equal(entry.type, SHM_ENTRY_DATA);
	assert_int_equal(entry.flags, is_last ? SHM_FLAG_LAST : 0);
	expect_bytes(payload, entry.payload, seed);
	shm_consumer_pop(&peer_data_in);
	return entry.payload;
}

/* EP-RDMAR-01 EP-RDMAR-20 */
static void peer_read__one_answer__answered(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 256, 257, 1024, SHM_RESPONSE_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 8; i++) {
		fill(lab->memory + TARGET + i, lengths[i], i);
		peer_reads(lab, i & 1 ? lab->rkey : lab->read_only,
			   (uintptr_t)lab->memory + TARGET + i, lengths[i]);
		lab_pass(lab);
		assert_int_equal(lab->fast_polls, i + 1);
		assert_int_equal(take_answer(i, true), lengths[i]);
		assert_int_equal(take_answer(i, true), 0);
		(void)shm_consumer_release(&peer_data_in);
		assert_int_equal(atomic_load(&lab->conn->local_announce), 0);
	}
	assert_int_equal(lab->conn->done, 0); /* which counts messages and Writes */
	assert_int_equal(lab->received, 0);
}

/* DTO-41: a Read fetches what the Write before it has placed. */
static void peer_read__after_a_write__fetches_its_bytes(void **state)
{
	struct lab *lab = *state;
	const struct shm_entry write = {
		.type = SHM_ENTRY_WRITE,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = 8,
		.key = lab->rkey,
		.address = (uintptr_t)lab->memory + TARGET,
		.length = 8,
	};

	peer_sends(lab, write, 6);
	peer_reads(lab, lab->rkey, (uintptr_t)lab->memory + TARGET, 8);
	lab_pass(lab);
	lab_pass(lab);
	assert_int_equal(take_answer(6, true), 8);
	lab_pass(lab);
	assert_int_equal(done_word(lab), 1);
}

/* An answer reports what is done, as every entry does. */
static void peer_read__after_a_message__answer_reports_it(void **state)
{
	struct lab *lab = *state;
	const uint8_t *payload;
	struct shm_entry entry;

	assert_true(lab_post_receive(lab, 8192, 8));
	peer_sends(lab, lab_send_entry(8), 1);
	peer_reads(lab, lab->rkey, (uintptr_t)lab->memory, 8);
	lab_pass(lab);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(shm_consumer_peek(&peer_data_in, &entry, &payload), 1);
	assert_int_equal(entry.done, 1);
	assert_int_equal(atomic_load(&lab->conn->watch) & SHM_WATCH_UNREPORTED, 0);
}

static void peer_read__longer_than_one_answer__in_parts(void **state)
{
	struct lab *lab = *state;
	uint32_t len = SHM_RESPONSE_PAYLOAD + 8;
	uint8_t *source = lab->memory + TARGET;
	const uint8_t *payload;
	struct shm_entry entry;

	fill(source, len, 2);
	peer_reads(lab, lab->rkey, (uintptr_t)source, len);
	lab_pass(lab);
	assert_int_equal(lab->fast_polls, 0);
	assert_int_equal(take_answer(2, false), SHM_RESPONSE_PAYLOAD);
	assert_int_equal(shm_consumer_peek(&peer_data_in, &entry, &payload), 1);
	assert_int_equal(entry.payload, 8);
	assert_int_equal(entry.flags, SHM_FLAG_LAST);
	assert_memory_equal(payload, source + SHM_RESPONSE_PAYLOAD, 8);
}

/* The response ring is full: the Read waits, and those behind it. */
static void peer_reads__ring_full__all_answered_later(void **state)
{
	struct lab *lab = *state;
	uint32_t asked = 0, answered = 0;

	fill(lab->memory, SHM_RESPONSE_PAYLOAD, 1);
	while (asked < 40) {
		peer_reads(lab, lab->rkey, (uintptr_t)lab->memory, SHM_RESPONSE_PAYLOAD);
		asked++;
		lab_pass(lab);
	}
	assert_true(lab->conn->is_response_wanted);
	for (uint32_t i = 0; i < asked && answered < asked; i++) {
		while (take_answer(1, true))
			answered++;
		shm_consumer_give_back(&peer_data_in);
		lab_pass(lab);
	}
	assert_int_equal(answered, asked);
}

/* A key of our memory that lets the peer write only. */
static uint32_t write_only_key(const struct lab *lab)
{
	uint32_t key;

	assert_int_equal(soft_keys_reserve(lab->adapter.keys, (uintptr_t)lab->memory, LAB_MEMORY,
					   SOFT_RIGHT_REMOTE_WRITE, lab->pz.id, &key),
			 0);
	soft_keys_activate(lab->adapter.keys, key);
	return key;
}

/* DTO-90 DTO-91 DTO-92 DTO-93 DTO-94 DTO-97: the peer gets no byte. */
static void peer_read__key_not_good__refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BAD_KEYS; i++) {
		struct lab *lab = open_for_reads(false);
		uint32_t write_only = write_only_key(lab);
		uint64_t address;
		uint32_t key = bad_key(lab, i, write_only, &address);

		peer_reads(lab, key, address, 8);
		lab_pass(lab);
		expect_refused(lab, SHM_FAILED_READ);
		assert_false(shm_consumer_has_entry(&peer_data_in));
		assert_int_equal(atomic_load(&lab->conn->local_announce), 0);
		soft_keys_invalidate(lab->adapter.keys, write_only);
		soft_keys_release(lab->adapter.keys, write_only);
		close_lab(lab);
	}
}

/* Empty, or between the parts of a message. */
static void peer_read__odd__connection_broken(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct lab *lab = open_for_reads(false);
		struct shm_entry begun = lab_send_entry(8);

		if (i) {
			begun.flags = SHM_FLAG_FIRST;
			begun.length = 16;
			assert_true(lab_post_receive(lab, 8192, 16));
			peer_sends(lab, begun, 1);
			lab_pass(lab);
		}
		peer_reads(lab, lab->rkey, (uintptr_t)lab->memory, i ? 8 : 0);
		lab_pass(lab);
		assert_int_equal(lab->end, BROKEN);
		assert_false(shm_consumer_has_entry(&peer_data_in));
		close_lab(lab);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_for_reads, teardown)
	const struct CMUnitTest tests[] = {
		TEST(read__up_to_one_answer__placed_and_completed),
		TEST(read__two_answers__completes_with_the_second),
		TEST(read__limit_reached__waits_for_an_earlier_one),
		TEST(reads__many__space_of_their_answers_is_given_back),
		TEST(reads__answers_and_a_filler__space_is_given_back),
		TEST(peer_read__message_and_a_filler__space_is_given_back),
		TEST(data__and_a_message__one_in_each_poll),
		TEST(reads__several__all_placed_in_order),
		TEST(read__ring_full__asked_later),
		cmocka_unit_test(read__kernel_copies_allowed__not_through_the_ring),
		TEST(read__suppressed__no_completion),
		TEST(read__fenced__behind_the_read_before),
		TEST(data__before_an_earlier_send_is_done__completes_after_it),
		TEST(data__acknowledges_earlier_sends__all_completed),
		TEST(data__before_a_finished_send__both_completed),
		cmocka_unit_test(data__target_not_good__protection_error),
		cmocka_unit_test(data__odd__connection_broken),
		TEST(data__whole_after_a_part__connection_broken),
		TEST(data__unasked__not_placed),
		TEST(peer_read__one_answer__answered),
		TEST(peer_read__after_a_write__fetches_its_bytes),
		TEST(peer_read__after_a_message__answer_reports_it),
		TEST(peer_read__longer_than_one_answer__in_parts),
		TEST(peer_reads__ring_full__all_answered_later),
		cmocka_unit_test(peer_read__key_not_good__refused),
		cmocka_unit_test(peer_read__odd__connection_broken),
	};

	return cmocka_run_group_tests_name("shm fast read", tests, NULL, NULL);
}
