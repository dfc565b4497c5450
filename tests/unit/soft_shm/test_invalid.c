// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests of the peer that the specification refuses, and entries and words that only a peer that
 * breaks the rules writes, on the slow path and on the fast one: the connection breaks, and nothing
 * else changes.
 */
#include "play.h"

/* Opens a lab whose memory shows each change. */
static struct lab *open_marked(bool is_fast)
{
	struct lab *lab = open_either(is_fast);

	exchange(lab, 8, 0);
	memset(lab->memory, UNTOUCHED, LAB_MEMORY);
	return lab;
}

static void close_broken(struct lab *lab)
{
	assert_int_equal(lab->end, BROKEN);
	expect_untouched(lab->memory, LAB_MEMORY);
	lab_close(lab);
}

/* --- refused, by the rules of the specification --- */

/* DTO-79 DTO-80 */
static void message__longer_than_the_receive__length_error_here_responder_there(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_marked(is_fast);

		assert_true(lab_post_receive(lab, 0, 4));
		ask(lab, lab_send_entry(5), 1);
		assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
		expect_refused(lab, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER);
		assert_int_equal(done_word(lab), 1);
		close_broken(lab);
	}
}

#define BAD_KEYS 8u

/* Makes the request bad: its key, its range or its zone; DTO-90 to DTO-94. */
static void spoil(struct lab *lab, unsigned way, struct shm_entry *entry)
{
	switch (way) {
	case 0:
		entry->key ^= 1u << SOFT_KEY_INDEX_BITS;
		break;
	case 1:
		entry->address = (uintptr_t)lab->memory + LAB_MEMORY - 7;
		break;
	case 2:
		entry->address--;
		break;
	case 3:
		lab->pz.id++;
		break;
	case 4:
		soft_keys_invalidate(lab->adapter.keys, entry->key);
		break;
	case 5: /* the whole range is checked before the first piece is placed */
		entry->flags = SHM_FLAG_FIRST;
		entry->address = (uintptr_t)lab->memory + LAB_MEMORY - 8;
		entry->length = 9;
		break;
	case 6:
		entry->flags = SHM_FLAG_FIRST;
		entry->length = UINT64_MAX;
		break;
	default: /* a key without the right */
		entry->key = lab->read_only;
	}
}

/* DTO-90 DTO-91 DTO-92 DTO-93 DTO-94 DTO-97 */
static void write__key_not_good__access_error_and_unchanged(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * BAD_KEYS; i++) {
		struct lab *lab = open_marked(i % 2);
		struct shm_entry entry = write_entry(lab, 0, 8);

		spoil(lab, i / 2, &entry);
		ask(lab, entry, 1);
		expect_refused(lab, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS);
		assert_int_equal(done_word(lab), 1);
		close_broken(lab);
	}
}

/* DTO-90 DTO-91 DTO-93 DTO-97 */
static void read__key_not_good__access_error_and_no_data(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * BAD_KEYS; i++) {
		struct lab *lab = open_marked(i % 2);
		struct shm_entry entry = read_entry(lab, 0, 8);
		uint32_t write_only;

		assert_int_equal(soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory, 8,
					       SOFT_RIGHT_REMOTE_WRITE, lab->pz.id, &write_only),
				 0);
		spoil(lab, i / 2, &entry);
		if (entry.key == lab->read_only)
			entry.key = write_only;
		ask(lab, entry, 0);
		expect_refused(lab, SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS);
		assert_false(shm_consumer_has_entry(&lab->peer_answers_in));
		soft_keys_invalidate(lab->adapter.keys, write_only);
		soft_keys_release(lab->adapter.keys, write_only);
		close_broken(lab);
	}
}

/* LMR-FREE-21 DTO-98: no byte of the region that was freed before the rest is answered */
static void read__freed_before_the_rest__refused(void **state)
{
	struct lab *lab = open_slow();
	const uint8_t *payload;
	struct shm_entry entry;

	(void)state;
	ask(lab, read_entry(lab, 0, 4 * SHM_RESPONSE_RING), 0);
	soft_keys_invalidate(lab->adapter.keys, lab->rkey);
	memset(lab->memory, 'x', LAB_MEMORY);
	while (lab_peer_takes(&lab->peer_answers_in, &entry, &payload))
		expect_untouched(payload, entry.payload);
	lab_pass(lab);
	expect_refused(lab, SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_false(lab_peer_takes(&lab->peer_answers_in, &entry, &payload));
	lab_close(lab);
}

/* --- entries against the rules --- */

static void entry__against_the_rules__connection_breaks(void **state)
{
	static const struct shm_entry forged[] = {
		{.type = 0, .flags = 3, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_DATA, .flags = 3, .payload = 8, .length = 8},
		{.type = UINT8_MAX, .flags = 3, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_GROW, .payload = 1},
		{.type = SHM_ENTRY_SEND, .flags = 0, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_LAST, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 0, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 9, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 8, .length = 9},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 0, .length = 8},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 8, .length = 8 + (1ull << 32)},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 8, .length = 8 + (1u << 16)},
		{.type = SHM_ENTRY_WRITE, .flags = SHM_FLAG_FIRST, .payload = 0, .length = 8},
		{.type = SHM_ENTRY_WRITE, .flags = SHM_FLAG_FIRST, .payload = 8, .length = 8},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 0, .length = 0},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 8, .length = 9},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 8, .length = 7},
		{.type = SHM_ENTRY_READ, .flags = 3, .length = 0},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = open_marked(i % 2);
		struct shm_entry entry = forged[i / 2];

		entry.key = lab->rkey;
		entry.address = (uintptr_t)lab->memory;
		assert_true(lab_post_receive(lab, 0, 64));
		assert_true(lab_peer_entry(&lab->peer_out, &entry, "evil evil"));
		lab_pass(lab);
		lab_pass(lab);
		assert_true(lab->received == 1 || lab->receive_status != DAT_DTO_SUCCESS);
		close_broken(lab);
	}
}

/* An entry never wraps: payload behind the end of the ring would be our own bytes. */
static void message__payload_past_the_end_of_the_ring__connection_breaks(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_marked(is_fast);
		struct shm_entry entry = lab_send_entry(100);
		uint32_t at;

		while (SHM_REQUEST_RING - (lab->peer_out.produced & (SHM_REQUEST_RING - 1)) > 64)
			exchange(lab, 32, 0);
		memset(lab->memory, UNTOUCHED, LAB_MEMORY);
		at = lab->peer_out.produced;
		entry.stamp = SHM_STAMP(at);
		memcpy(lab->segment->request[SHM_ACTIVE] + (at & (SHM_REQUEST_RING - 1)), &entry,
		       sizeof(entry));
		assert_true(lab_post_receive(lab, 0, 1000));
		lab_pass(lab);
		close_broken(lab);
	}
}

#define INTRUDERS 4u

/* No other entry may come between the first and the last piece of a message. */
static void pieces__something_else_between__connection_breaks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * INTRUDERS; i++) {
		struct lab *lab = open_marked(i % 2);
		struct shm_entry intruders[INTRUDERS] = {
			write_entry(lab, 0, 4), read_entry(lab, 0, 4),
			lab_send_entry(4), /* FIRST again */
			lab_send_entry(4), /* more than is left */
		};
		struct shm_entry piece = lab_send_entry(4);

		intruders[3].flags = 0;
		intruders[3].payload = 5;
		piece.flags = SHM_FLAG_FIRST;
		piece.length = 8;
		assert_true(lab_post_receive(lab, 8192, 100));
		ask(lab, piece, 1);
		assert_true(lab_is_open(lab));
		ask(lab, intruders[i / 2], 2);
		assert_int_equal(lab->received, 1);
		expect_bytes(lab->memory + 8192, 4, 1);
		memset(lab->memory + 8192, UNTOUCHED, 4);
		close_broken(lab);
	}
}

/* A message that becomes longer than its Receive is refused as one that was so from the start. */
static void pieces__more_than_the_receive_holds__length_error(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_marked(is_fast);
		struct shm_entry piece = lab_send_entry(4);

		piece.flags = SHM_FLAG_FIRST;
		piece.length = 8;
		assert_true(lab_post_receive(lab, 8192, 8));
		ask(lab, piece, 1);
		piece = lab_send_entry(5);
		piece.flags = SHM_FLAG_LAST;
		ask(lab, piece, 2);
		assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
		expect_bytes(lab->memory + 8192, 4, 1);
		memset(lab->memory + 8192, UNTOUCHED, 4);
		close_broken(lab);
	}
}

/* --- words and answers against the rules --- */

static void done__more_than_was_sent__connection_breaks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct lab *lab = open_marked(i % 2);
		struct shm_entry entry = lab_send_entry(8);

		assert_true(lab_post_receive(lab, 0, 8));
		post_send(lab, 100, 8);
		entry.done = 2;
		if (i / 2)
			peer_puts(lab, entry, 0);
		else
			atomic_store(&lab->peer->done, 2);
		lab_pass(lab);
		assert_in_range(lab->done, 0, 1);
		assert_int_equal(lab->received, 1);
		close_broken(lab);
	}
}

/* DTO-57: a kind or a status that no peer may report, or a request that was not made. */
static void failed__against_the_rules__bad_response_or_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct lab *lab = open_marked(i % 2);
		const uint32_t words[] = {
			SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_SUCCESS),
			SHM_FAILED(SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS),
			SHM_FAILED(7, DAT_DTO_ERR_REMOTE_ACCESS),
			SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS),
		};
		const bool is_posted = i / 2 < 3;

		if (is_posted)
			post_send(lab, 0, 8);
		atomic_store(&lab->peer->failed, words[i / 2]);
		shm_drive(lab->conn, &lab->ep);
		lab_take_events(lab);
		assert_int_equal(lab->done, i / 2 == 0);
		if (i / 2 == 0)
			assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
		close_broken(lab);
	}
}

/* A failure is found in time, also while messages arrive all the time. */
static void failed__under_a_stream_of_messages__seen_in_time(void **state)
{
	struct lab *lab = open_fast();
	unsigned polls = 0;

	(void)state;
	post_send(lab, 0, 8);
	atomic_store(&lab->peer->failed,
		     SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	while (lab_is_open(lab)) {
		assert_in_range(polls++, 0, 100);
		assert_true(lab_post_receive(lab, 0, 8));
		ask(lab, lab_send_entry(8), 0);
	}
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_RESPONDER);
	assert_true(polls > 1);
	lab_close(lab);
}

static void data__unasked__not_placed(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_marked(is_fast);

		peer_puts(lab, data_entry(4), 1);
		shm_drive(lab->conn, &lab->ep);
		close_broken(lab);
	}
}

/* DTO-57 */
static void data__more_or_less_than_asked__bad_response(void **state)
{
	static const struct {
		uint16_t payload, flags, before;
	} forged[] = {{11, SHM_FLAG_LAST, 0},
		      {10, 0, 0},
		      {9, SHM_FLAG_LAST, 0},
		      {0, SHM_FLAG_LAST, 0},
		      {7, SHM_FLAG_LAST, 4}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = open_marked(i % 2);
		struct shm_entry part = data_entry(forged[i / 2].before);

		post_rdma(lab, CORE_OP_RDMA_READ, 100, 10);
		if (part.payload) {
			part.flags = 0;
			ask(lab, part, 1);
			memset(lab->memory + 100, UNTOUCHED, part.payload);
		}
		part = data_entry(forged[i / 2].payload);
		part.flags = (uint8_t)forged[i / 2].flags;
		ask(lab, part, 2);
		lab_serve_pending(lab);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
		close_broken(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			message__longer_than_the_receive__length_error_here_responder_there),
		cmocka_unit_test(write__key_not_good__access_error_and_unchanged),
		cmocka_unit_test(read__key_not_good__access_error_and_no_data),
		cmocka_unit_test(read__freed_before_the_rest__refused),
		cmocka_unit_test(entry__against_the_rules__connection_breaks),
		cmocka_unit_test(message__payload_past_the_end_of_the_ring__connection_breaks),
		cmocka_unit_test(pieces__something_else_between__connection_breaks),
		cmocka_unit_test(pieces__more_than_the_receive_holds__length_error),
		cmocka_unit_test(done__more_than_was_sent__connection_breaks),
		cmocka_unit_test(failed__against_the_rules__bad_response_or_nothing),
		cmocka_unit_test(failed__under_a_stream_of_messages__seen_in_time),
		cmocka_unit_test(data__unasked__not_placed),
		cmocka_unit_test(data__more_or_less_than_asked__bad_response),
	};

	return cmocka_run_group_tests_name("shm invalid", tests, NULL, NULL);
}
