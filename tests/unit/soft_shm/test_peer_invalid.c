// SPDX-License-Identifier: BSD-2-Clause
/* Requests of the peer that the specification refuses, and entries and words that only a peer that
 * breaks the rules writes: the connection breaks, and nothing else changes. */
#include "slow.h"
#include "soft/key.h"

/* --- refused, by the rules of the specification --- */

/* DTO-79 DTO-80 */
static void message__longer_than_the_receive__length_error_here_responder_there(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	assert_true(lab_post_receive(lab, 0, 4));
	ask(lab, lab_send_entry(5), "hello");
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(lab->memory[4], 0xa5);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

static void refused_write(struct lab *lab, struct shm_entry entry)
{
	hold(lab);
	ask(lab, entry, "evil");
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS));
	assert_int_equal(done(lab), 0);
	assert_int_equal(lab->memory[0], 0xa5);
	assert_int_equal(lab->memory[LAB_MEMORY - 1], 0xa5);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

/* DTO-90 DTO-94 */
static void write__unknown_key__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, 0, 4);

	entry.key ^= 1u << SOFT_KEY_INDEX_BITS;
	refused_write(lab, entry);
}

/* DTO-92 */
static void write__read_only_key__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, 0, 4);

	entry.key = lab->read_only;
	refused_write(lab, entry);
}

/* DTO-91 DTO-94: the whole range is checked before the first piece is placed */
static void write__last_byte_outside__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, LAB_MEMORY - 4, 4);

	entry.flags = SHM_FLAG_FIRST;
	entry.length = 5;
	refused_write(lab, entry);
}

static void write__range_wraps__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, 0, 4);

	entry.flags = SHM_FLAG_FIRST;
	entry.length = UINT64_MAX;
	refused_write(lab, entry);
}

static void read__unknown_key__access_error(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	ask(lab, (struct shm_entry){.type = SHM_ENTRY_READ, .key = 1, .length = 4}, NULL);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS));
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

/* DTO-96: the sender freed the region before we fetched the message */
static void message__source_freed__protection_error_there(void **state)
{
	struct lab *lab = *state;
	struct shm_source source = {
		.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = 10};

	hold(lab);
	soft_keys_invalidate(lab->peer_keys, lab->peer_rkey);
	assert_true(lab_post_receive(lab, 0, 100));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(source),
			       .length = 10},
	    &source);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_LOCAL_PROTECTION));
	assert_int_equal(lab->memory[0], 0xa5);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

/* --- invalid entries and words --- */

static void entry__against_the_rules__connection_breaks(void **state)
{
	struct shm_entry forged[] = {
		{.type = 0},
		{.type = SHM_ENTRY_DATA, .payload = 4},
		{.type = UINT8_MAX},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_LAST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 2, .length = 1},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 1, .length = 2},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 0, .length = 2},
		{.type = SHM_ENTRY_PULL, .flags = 3, .payload = 24, .length = 1},
		{.type = SHM_ENTRY_WRITE, .flags = SHM_FLAG_LAST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 0, .length = 0},
		{.type = SHM_ENTRY_WRITE, .flags = SHM_FLAG_FIRST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 1, .length = 2},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 2, .length = 1},
		{.type = SHM_ENTRY_READ, .length = 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = lab_open(CORE_COPY_RING, false);

		forged[i].key = lab->rkey;
		forged[i].address = (uintptr_t)lab->memory;
		assert_true(lab_post_receive(lab, 0, 100));
		ask(lab, forged[i], NULL);
		expect_broken(lab);
		lab_close(lab);
	}
}

static void sources__against_the_rules__connection_breaks(void **state)
{
	const struct {
		uint32_t payload;
		uint64_t length; /* of the message */
		uint64_t first, second;
	} forged[] = {
		{0, 0, 0, 0},  {24, 0, 0, 0}, {23, 1, 1, 0},
		{24, 2, 1, 0}, {24, 1, 2, 0}, {48, 10, UINT64_MAX, 11},
		{48, 1, 1, 0}, {48, 5, 2, 4}, {33 * 24, 33, 1, 1},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = lab_open(CORE_COPY_AUTO, true);
		struct shm_source sources[34] = {{0}};
		unsigned n;

		for (n = 0; n < 34; n++)
			sources[n] = (struct shm_source){.key = lab->peer_rkey,
							 .address = (uintptr_t)lab->peer_memory,
							 .length = 1};
		sources[0].length = forged[i].first;
		sources[1].length = forged[i].second;
		assert_true(lab_post_receive(lab, 0, 1000));
		ask(lab,
		    (struct shm_entry){.type = SHM_ENTRY_PULL,
				       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
				       .payload = forged[i].payload,
				       .length = forged[i].length},
		    sources);
		expect_broken(lab);
		assert_int_equal(lab->received, 0);
		lab_close(lab);
	}
}

/* No other entry may come between the first and the last piece. */
static void pieces__something_else_between__connection_breaks(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct lab *lab = lab_open(CORE_COPY_RING, false);
		struct shm_entry entry = write_entry(lab, 0, 4);

		assert_true(lab_post_receive(lab, 0, 100));
		entry.flags = SHM_FLAG_FIRST;
		entry.length = 8;
		ask(lab, entry, "good");
		assert_true(lab_is_open(lab));
		entry.flags = SHM_FLAG_LAST;
		if (i == 0)
			entry = lab_send_entry(4);
		else if (i == 1)
			entry.key = lab->read_only;
		else
			entry.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST;
		ask(lab, entry, "evil");
		expect_broken(lab);
		lab_close(lab);
	}
}

static void done__more_than_was_sent__connection_breaks(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 10, 0, 0));
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	expect_broken(lab);
}

static void failed__nothing_in_flight__connection_breaks(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->peer->failed, SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS));
	lab_pass(lab);
	expect_broken(lab);
}

/* DTO-57 */
static void failed__status_of_the_sender_only__bad_response(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 10, 0, 0));
	atomic_store(&lab->peer->failed, SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_SUCCESS));
	lab_pass(lab);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
	expect_broken(lab);
}

static void data__unasked__connection_breaks(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};

	assert_true(lab_peer_entry(&lab->peer_answers, &entry, "data"));
	lab_pass(lab);
	expect_broken(lab);
}

/* DTO-57 */
static void data__more_or_less_than_asked__bad_response(void **state)
{
	const struct {
		uint32_t payload;
		uint16_t flags;
	} forged[] = {{11, SHM_FLAG_LAST}, {10, 0}, {9, SHM_FLAG_LAST}, {0, SHM_FLAG_LAST}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = lab_open(CORE_COPY_RING, false);
		struct shm_entry entry = {.type = SHM_ENTRY_DATA,
					  .flags = forged[i].flags,
					  .payload = forged[i].payload};

		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 100, 10, 5, 5));
		assert_true(lab_peer_entry(&lab->peer_answers, &entry, NULL));
		lab_pass(lab);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
		assert_int_equal(lab->memory[110], 0xa5);
		expect_broken(lab);
		lab_close(lab);
	}
}

int main(void)
{
#define RING(name) cmocka_unit_test_setup_teardown(name, setup_ring, teardown)
#define CMA(name) cmocka_unit_test_setup_teardown(name, setup_cma, teardown)
	const struct CMUnitTest tests[] = {
		RING(message__longer_than_the_receive__length_error_here_responder_there),
		RING(write__unknown_key__access_error_and_unchanged),
		RING(write__read_only_key__access_error_and_unchanged),
		RING(write__last_byte_outside__access_error_and_unchanged),
		RING(write__range_wraps__access_error_and_unchanged),
		RING(read__unknown_key__access_error),
		CMA(message__source_freed__protection_error_there),
		cmocka_unit_test(entry__against_the_rules__connection_breaks),
		cmocka_unit_test(sources__against_the_rules__connection_breaks),
		cmocka_unit_test(pieces__something_else_between__connection_breaks),
		RING(done__more_than_was_sent__connection_breaks),
		RING(failed__nothing_in_flight__connection_breaks),
		RING(failed__status_of_the_sender_only__bad_response),
		RING(data__unasked__connection_breaks),
		cmocka_unit_test(data__more_or_less_than_asked__bad_response),
	};

	return cmocka_run_group_tests_name("shm peer", tests, NULL, NULL);
}
