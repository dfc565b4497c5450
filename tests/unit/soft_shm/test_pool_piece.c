// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pieces that entries of a peer name: valid ones are placed, others break the connection.
 */
#include "pool_lab.h"
#include "pool_pieces.h"

static void check_untouched(const struct lab *lab)
{
	for (size_t i = 0; i < LAB_MEMORY; i++)
		assert_int_equal(lab->memory[i], 0xa5);
}

/* The peer publishes the entry, our side makes a pass. */
static void ask(struct lab *lab, struct shm_entry entry, uint32_t index, uint32_t bytes)
{
	struct shm_piece piece[2] = {{index, bytes}, {0, 0}};
	struct shm_producer *ring =
		entry.type == SHM_ENTRY_DATA ? &lab->peer_answers : &lab->peer_out;

	assert_true(lab_peer_entry(ring, &entry, piece));
	lab_pass(lab);
}

static const enum shm_entry_type kinds[] = {SHM_ENTRY_SEND, SHM_ENTRY_WRITE, SHM_ENTRY_DATA};

/* A Receive for the Send, and an RDMA Read for the data. */
static void expect(struct lab *lab, enum shm_entry_type kind, uint32_t len)
{
	if (kind == SHM_ENTRY_SEND)
		assert_true(lab_post_receive(lab, 0, len));
	else if (kind == SHM_ENTRY_DATA)
		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, len, lab->peer_rkey,
				     (uintptr_t)lab->peer_memory));
}

static void piece__named_wrongly__breaks_and_changes_nothing(void **state)
{
	static const struct {
		uint32_t index, bytes, payload;
		bool has_pool;
	} bad[] = {
		{SHM_PIECES, 100, 8, true},  {UINT32_MAX, 100, 8, true}, {0, 0, 8, true},
		{0, SHM_PIECE + 1, 8, true}, {0, UINT32_MAX, 8, true},	 {0, 100, 7, true},
		{0, 100, 9, true},	     {0, 100, 0, true},		 {0, 100, 8, false},
	};

	(void)state;
	for (size_t kind = 0; kind < COUNT(kinds); kind++)
		for (size_t i = 0; i < COUNT(bad); i++) {
			struct lab *lab = lab_open(CORE_COPY_RING, false);
			struct shm_entry entry = piece_entry(lab, kinds[kind], bad[i].bytes);

			if (bad[i].has_pool)
				lab_peer_gives_pool(lab);
			expect(lab, kinds[kind], 100);
			entry.payload = (uint16_t)bad[i].payload;
			ask(lab, entry, bad[i].index, bad[i].bytes);
			assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
			assert_int_equal(lab->received + lab->done, 0);
			check_untouched(lab);
			lab_close(lab);
		}
}

/* Pieces are read up to the last byte of the pool, and no byte behind the message changes. */
static void piece__named_well__placed_and_given_back_at_once(void **state)
{
	struct lab *lab = *state;
	uint32_t sent = SHM_PIECE - 1, seed = 1;

	lab_peer_gives_pool(lab);
	for (size_t kind = 0; kind < COUNT(kinds); kind++)
		for (uint32_t index = 0; index < SHM_PIECES; index += SHM_PIECES - 1, seed++) {
			bool is_data = kinds[kind] == SHM_ENTRY_DATA;
			struct shm_side *mine = lab->conn->mine;
			const uint32_t before =
				is_data ? mine->response_consumed : mine->request_consumed;

			expect(lab, kinds[kind], sent);
			memset(lab->memory, 0xa5, LAB_MEMORY);
			fill(lab->peer_pool + index * SHM_PIECE, SHM_PIECE, seed);
			ask(lab, piece_entry(lab, kinds[kind], sent), index, sent);
			assert_true(lab_is_open(lab));
			check(lab->memory, 0, sent, seed);
			assert_int_equal(lab->memory[sent], 0xa5);
			assert_int_equal(
				(is_data ? mine->response_consumed : mine->request_consumed) -
					before,
				2 * SHM_ENTRY_ALIGN);
		}
	assert_int_equal(lab->received, 2);
	assert_int_equal(lab->receive_len, sent);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
}

/* Messages of pieces and inline bytes in any mixture. */
static void pieces__mixed_with_entries_of_the_ring__one_message(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = piece_entry(lab, SHM_ENTRY_SEND, SHM_PIECE + 200);
	uint8_t bytes[100];

	lab_peer_gives_pool(lab);
	fill(lab->peer_pool, SHM_PIECE, 6);
	assert_true(lab_post_receive(lab, 0, LAB_MEMORY));
	entry.flags = FIRST | SHM_FLAG_PIECE;
	ask(lab, entry, 0, SHM_PIECE);
	memset(bytes, 'r', sizeof(bytes));
	entry.flags = 0;
	entry.payload = sizeof(bytes);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, bytes));
	entry.flags = LAST | SHM_FLAG_PIECE;
	entry.payload = sizeof(struct shm_piece);
	fill(lab->peer_pool + SHM_PIECE, 100, 8);
	ask(lab, entry, 1, 100);
	assert_int_equal(lab->receive_len, SHM_PIECE + 200);
	check(lab->memory, 0, SHM_PIECE, 6);
	assert_memory_equal(lab->memory + SHM_PIECE, bytes, sizeof(bytes));
	check(lab->memory + SHM_PIECE + 100, 0, 100, 8);
}

/* DTO-104: the piece stays lent until there is a Receive. */
static void piece__no_receive__not_given_back_before_it_is_placed(void **state)
{
	struct lab *lab = *state;

	lab_peer_gives_pool(lab);
	fill(lab->peer_pool, 5000, 9);
	ask(lab, piece_entry(lab, SHM_ENTRY_SEND, 5000), 0, 5000);
	assert_int_equal(lab->conn->mine->request_consumed, 0);
	assert_true(lab_post_receive(lab, 0, 5000));
	check(lab->memory, 0, 5000, 9);
	assert_int_equal(lab->conn->mine->request_consumed, 2 * SHM_ENTRY_ALIGN);
}

/* The owner waits for the piece, not for the end of the message: giving it back wakes the owner. */
static void piece__owner_sleeps__woken_when_it_is_given_back(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = piece_entry(lab, SHM_ENTRY_WRITE, SHM_PIECE + 1);
	union shm_wire wire;

	lab_peer_gives_pool(lab);
	atomic_store(&lab->peer->armed, 1);
	entry.flags = FIRST | SHM_FLAG_PIECE;
	ask(lab, entry, 0, SHM_PIECE);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* DTO-94: the whole range is checked before the first piece is placed. */
static void piece__write_leaves_the_region__refused_and_no_byte_changed(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = piece_entry(lab, SHM_ENTRY_WRITE, LAB_MEMORY + 1);
	struct shm_conn *conn = lab->conn;

	shm_conn_get(conn);
	lab_peer_gives_pool(lab);
	entry.flags = FIRST | SHM_FLAG_PIECE;
	ask(lab, entry, 0, SHM_PIECE);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(conn->mine->failed,
			 SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS));
	check_untouched(lab);
	shm_conn_put(conn);
}

/* A peer that fills a piece while it is read, or names one twice, harms only itself. */
static void piece__pool_is_replaced_under_a_message__the_new_one_is_read(void **state)
{
	struct lab *lab = *state;

	lab_peer_gives_pool(lab);
	fill(lab->peer_pool, 5000, 1);
	ask(lab, piece_entry(lab, SHM_ENTRY_SEND, 5000), 0, 5000);
	assert_true(give(lab, lab->conn, 1, lab_pool_file(SHM_POOL_SIZE, SEALS)));
	assert_true(lab_post_receive(lab, 0, 5000));
	assert_int_equal(lab->received, 1);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(lab->memory[i], 0);
	ask(lab, piece_entry(lab, SHM_ENTRY_SEND, 5000), 0, 5000);
	assert_false(give(lab, lab->conn, 2, lab_pool_file(SHM_POOL_SIZE, 0)));
	assert_true(lab_post_receive(lab, 0, 5000));
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(shm_conn_state(lab->conn), SHM_CLOSING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(piece__named_wrongly__breaks_and_changes_nothing),
		test(piece__named_well__placed_and_given_back_at_once),
		test(pieces__mixed_with_entries_of_the_ring__one_message),
		test(piece__no_receive__not_given_back_before_it_is_placed),
		test(piece__owner_sleeps__woken_when_it_is_given_back),
		test(piece__write_leaves_the_region__refused_and_no_byte_changed),
		test(piece__pool_is_replaced_under_a_message__the_new_one_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
