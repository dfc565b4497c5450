// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pieces that are lent: how they come back, and what happens to them at the end of a connection.
 */
#include "pool_lab.h"
#include "pool_pieces.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/progress.h"

/* The same for an answer. */
static int put_answer(struct line *line, uint32_t seed)
{
	struct shm_entry entry = {.type = SHM_ENTRY_DATA};
	struct shm_room room;

	if (shm_room_reserve(line->conn, &line->conn->response_out, &line->conn->bulk.responses,
			     LARGE, SHM_RESPONSE_PAYLOAD, &room) != 1)
		return -2;
	fill(room.to, room.bytes, seed);
	shm_room_commit(line->conn, &line->conn->response_out, &line->conn->bulk.responses, &entry,
			&room);
	return room.piece;
}

/* How many pieces a connection gets that holds none. */
static int take_pieces(struct line *line)
{
	int count = 0;

	while (put(line, 1) >= 0)
		count++;
	while (put_answer(line, 1) >= 0)
		count++;
	return count;
}

/* The same for a new one. */
static int pieces_to_be_had(struct lab *lab)
{
	struct line line;
	int count;

	line_open(lab, &line);
	line_ready(lab, &line);
	count = take_pieces(&line);
	atomic_store(&line.conn->theirs->is_over, 1);
	line_close(&line);
	return count;
}

/* --- loans --- */

static void loans__half_the_pool__ring_waits_until_a_piece_comes_back(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};
	uint32_t i;

	line_ready(lab, &line);
	for (i = 0; i < SHM_LOANS; i++)
		assert_true(put(&line, i) >= 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(put(&line, 100), -2);
	/* taken, but not given back */
	assert_true(take(lab, &line.requests, &bytes, &entry));
	assert_int_equal(put(&line, 100), -2);
	shm_consumer_give_back(&line.requests);
	assert_true(put(&line, SHM_LOANS) >= 0);
	assert_int_equal(put(&line, 100), -2);
	for (i = 1; i <= SHM_LOANS; i++) {
		assert_true(take(lab, &line.requests, &bytes, &entry));
		check(bytes.at, 0, SHM_PIECE, i);
	}
	/* the answers have their own half */
	for (i = 0; i < SHM_LOANS; i++)
		assert_true(put_answer(&line, i) >= 0);
	assert_int_equal(put_answer(&line, i), -2);
}

/* DTO-105: a blocked connection blocks no other. */
static void loans__pool_is_empty__ring_itself_unless_a_piece_of_its_own_comes_back(void **state)
{
	struct lab *lab = *state;
	struct line held[2], late, early;
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};
	int i;

	line_open(lab, &early);
	line_open(lab, &late);
	line_ready(lab, &early);
	line_ready(lab, &late);
	for (i = 0; i < 2; i++) {
		line_open(lab, &held[i]);
		line_ready(lab, &held[i]);
	}
	assert_true(put(&early, 1) >= 0);
	while (put(&held[0], 1) >= 0)
		;
	while (put(&held[1], 1) >= 0)
		;
	assert_int_equal(put(&late, 5), -1);
	assert_true(shm_producer_publish(&late.conn->request_out));
	assert_true(take(lab, &late.requests, &bytes, &entry));
	check(bytes.at, 0, SHM_REQUEST_PAYLOAD, 5);
	assert_int_equal(put_answer(&late, 5), -1);
	assert_int_equal(put(&early, 2), -2);
	assert_true(take(lab, &early.requests, &bytes, &entry));
	shm_consumer_give_back(&early.requests);
	assert_true(put(&early, 2) >= 0);
	line_close(&early);
	line_close(&late);
	line_close(&held[0]);
	line_close(&held[1]);
}

/* An idle connection gets its pieces back as soon as possible. */
static void loans__given_back__found_by_the_next_poll(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};

	line_ready(lab, &line);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, LARGE, 0, 0));
	lab_pass(lab);
	assert_false(shm_conn_has_work(lab->conn));
	assert_true(lab->cell.slow_reasons & CORE_EP_SLOW_QUEUE);
	assert_true(take(lab, &line.requests, &bytes, &entry));
	shm_consumer_give_back(&line.requests);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_false(shm_conn_has_work(lab->conn));
	assert_false(lab->cell.slow_reasons & CORE_EP_SLOW_QUEUE);
}

/* A piece that is reserved and not used is free again. */
static void room__left__piece_is_not_lost(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_room room;

	line_ready(lab, &line);
	for (uint32_t i = 0; i < 3 * SHM_PIECES; i++) {
		assert_int_equal(reserve(&line, &room), 1);
		assert_true(room.piece >= 0);
		shm_room_cancel(line.conn, &room);
	}
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
}

/* The same for a ring that is full while there are pieces. */
static void room__ring_is_full__piece_is_not_lost(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_entry entry = {.type = SHM_ENTRY_SEND};
	uint8_t *payload;

	line_ready(lab, &line);
	while (shm_producer_reserve(&line.conn->request_out, 0, &payload) == 1)
		shm_producer_commit(&line.conn->request_out, &entry);
	for (uint32_t i = 0; i < 2 * SHM_PIECES; i++)
		assert_int_equal(put(&line, 1), -2);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
}

#define LINES 3

/* What the peer holds of one ring. */
struct held {
	struct shm_consumer *ring;
	uint32_t put, taken;	  /* entries; the seed is the number of the entry */
	bool is_lent[SHM_PIECES]; /* pieces that were put and not given back */
	int order[4 * SHM_REQUEST_RING / SHM_ENTRY_ALIGN]; /* the piece of each entry, or -1 */
	uint32_t given;
};

#define ORDER(held, i) (held)->order[(i) % COUNT((held)->order)]

static void put_next(struct held *held, struct held *all, struct line *line, bool is_answer)
{
	uint32_t seed = held->put * 5 + (is_answer ? 1 : 0);
	int piece = is_answer ? put_answer(line, seed) : put(line, seed);

	if (piece == -2)
		return;
	shm_producer_publish(is_answer ? &line->conn->response_out : &line->conn->request_out);
	for (uint32_t i = 0; piece >= 0 && i < 2 * LINES; i++)
		assert_false(all[i].is_lent[piece]);
	if (piece >= 0)
		held->is_lent[piece] = true;
	ORDER(held, held->put++) = piece;
}

static void take_next(const struct lab *lab, struct held *held, bool is_answer)
{
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};

	if (!take(lab, held->ring, &bytes, &entry)) {
		assert_int_equal(held->taken, held->put);
		return;
	}
	check(bytes.at, 0, bytes.count, held->taken * 5 + (is_answer ? 1 : 0));
	held->taken++;
}

static void give_back(struct held *held)
{
	shm_consumer_give_back(held->ring);
	for (; held->given < held->taken; held->given++)
		if (ORDER(held, held->given) >= 0)
			held->is_lent[ORDER(held, held->given)] = false;
}

/* Three connections, both rings each, in random order: no piece is lent twice. */
static void loans__any_pattern__no_piece_is_lent_twice_and_all_come_back(void **state)
{
	static struct held held[2 * LINES];
	struct lab *lab = *state;
	struct line lines[LINES];
	uint32_t chance = 1, i;

	memset(held, 0, sizeof(held));
	for (i = 0; i < LINES; i++) {
		line_open(lab, &lines[i]);
		line_ready(lab, &lines[i]);
		held[2 * i].ring = &lines[i].requests;
		held[2 * i + 1].ring = &lines[i].responses;
	}
	for (i = 0; i < 6000; i++) {
		struct held *one;

		chance = chance * 1664525u + 1013904223u;
		one = &held[(chance >> 8) % (2 * LINES)];
		switch ((chance >> 20) % 8) {
		case 0:
		case 1:
		case 2:
			put_next(one, held, &lines[(one - held) / 2], (one - held) % 2);
			break;
		case 3:
			give_back(one);
			break;
		case 4:
			assert_int_equal(shm_pool_reclaim(lines[(one - held) / 2].conn), 0);
			break;
		default:
			take_next(lab, one, (one - held) % 2);
		}
	}
	for (i = 0; i < 2 * LINES; i++) {
		assert_true(held[i].put > 100);
		while (held[i].taken < held[i].put)
			take_next(lab, &held[i], i % 2);
		give_back(&held[i]);
	}
	for (i = 0; i < LINES; i++)
		line_close(&lines[i]);
	assert_int_equal(lab->engine.pool_count, 0);
}

/* A peer that gives back what it never got, or withdraws that. */
static void loans__consumed_word_makes_no_sense__broken(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);

	line_ready(lab, &line);
	assert_true(put(&line, 1) >= 0);
	atomic_fetch_add(&lab->peer->request_consumed, 32 * SHM_ENTRY_ALIGN);
	lab_pass(lab);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
}

/* An RDMA Read of the peer is answered in pieces; one that is refused keeps none. */
static void read__large__answered_in_pieces(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab), other;
	struct shm_entry entry = {.type = SHM_ENTRY_READ,
				  .key = lab->read_only,
				  .address = (uintptr_t)lab->memory,
				  .length = LAB_MEMORY};
	struct shm_bytes bytes = {0};
	uint32_t offset = 0;

	line_open(lab, &other); /* keeps the pool */
	line_ready(lab, &other);
	line_ready(lab, &line);
	fill(lab->memory, LAB_MEMORY, 3);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
	lab_pass(lab);
	while (take(lab, &line.responses, &bytes, &entry)) {
		assert_true(entry.flags & SHM_FLAG_PIECE);
		check(bytes.at, offset, bytes.count, 3);
		offset += bytes.count;
		assert_int_equal(!!(entry.flags & LAST), offset == LAB_MEMORY);
	}
	assert_int_equal(offset, LAB_MEMORY);
	shm_consumer_give_back(&line.responses);
	entry = (struct shm_entry){
		.type = SHM_ENTRY_READ, .key = 0x1234, .address = 1, .length = LAB_MEMORY};
	assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
	lab_pass(lab);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(take_pieces(&other), SHM_PIECES);
	line_close(&other);
}

/* Both directions share a pass: a peer that always has more for us does not block our requests. */
static void pass__peer_fills_it_with_large_pieces__our_requests_go_on(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_entry entry = piece_entry(lab, SHM_ENTRY_WRITE, SHM_PIECE);
	const struct shm_piece piece = {0, SHM_PIECE};
	uint64_t offset = 0;
	unsigned passes, i;

	lab_peer_gives_pool(lab);
	memset(lab->peer_pool, 0x11, SHM_PIECE);
	memset(lab->memory, 0x11, LAB_MEMORY);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, LAB_MEMORY, 0, 0));
	for (passes = 0; offset < LAB_MEMORY; passes++) {
		struct shm_bytes bytes = {0};
		struct shm_entry sent;

		assert_true(passes < LAB_MEMORY / SHM_REQUEST_PAYLOAD);
		for (i = 0; i < SHM_BATCH; i++)
			assert_true(lab_peer_entry(&lab->peer_out, &entry, &piece));
		while (take(lab, &line.requests, &bytes, &sent))
			offset += bytes.count;
		shm_consumer_give_back(&line.requests);
		lab_pass(lab);
	}
}

/* --- the end of a connection --- */

/* A connection that ends with that many pieces lent, of which the peer has given back some. */
static void end_with_loans(struct lab *lab, uint32_t lent, uint32_t returned, bool is_over,
			   bool is_gone)
{
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};
	struct line line;

	line_open(lab, &line);
	line_ready(lab, &line);
	while (lent--)
		assert_true(put(&line, lent) >= 0);
	while (returned--)
		assert_true(take(lab, &line.requests, &bytes, &entry));
	shm_consumer_give_back(&line.requests);
	atomic_store(&line.conn->theirs->is_over, is_over);
	line.conn->is_peer_gone = is_gone;
	line_close(&line);
}

static void end__peer_takes_nothing_more__pieces_are_free_again(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);

	line_ready(lab, &line);
	end_with_loans(lab, SHM_LOANS, 0, true, false);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
	end_with_loans(lab, SHM_LOANS, 3, true, false);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
	/* too few for the pool to be left if they were lost */
	end_with_loans(lab, 3, 0, false, true);
	end_with_loans(lab, 3, 0, true, false);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
	assert_int_equal(lab->engine.pool_count, 1);
}

/* The peer may still read them: they are never written again. */
static void end__peer_may_still_read__pieces_are_lost(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);

	line_ready(lab, &line);
	end_with_loans(lab, 5, 3, false, false);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES - 2);
	end_with_loans(lab, 1, 0, false, false);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES - 3);
	assert_int_equal(lab->engine.pool_count, 1);
}

/*
 * A pool has lost a quarter: other connections get a new one, and finally so do those that had it.
 */
static void end__many_pieces_lost__pool_is_left(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab), other;
	struct shm_pool *worn;
	uint64_t number;

	line_ready(lab, &line);
	worn = lab->conn->bulk.out;
	number = lab->offer.number;
	line_open(lab, &other);
	line_ready(lab, &other);
	assert_true(put(&other, 1) >= 0);
	end_with_loans(lab, SHM_PIECES / 4, 0, false, false);
	/* it stays while pieces of it are lent */
	assert_true(put(&other, 2) >= 0);
	assert_ptr_equal(other.conn->bulk.out, worn);
	/* the lab's connection holds nothing */
	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	assert_int_not_equal(lab->offer.number, number);
	answer(lab, lab->conn, true);
	assert_int_equal(send_whole(lab, &line, LAB_MEMORY, 2), LAB_MEMORY);
	assert_int_equal(lab->engine.pool_count, 2);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
	line_close(&other);
	assert_int_equal(lab->engine.pool_count, 1);
}

/* Our side sets is_over when it takes nothing more. */
static void end__of_our_side__reported_to_the_peer(void **state)
{
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;

	shm_conn_get(conn);
	assert_int_equal(atomic_load(&conn->mine->is_over), 0);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(atomic_load(&conn->mine->is_over), 1);
	shm_conn_put(conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(loans__half_the_pool__ring_waits_until_a_piece_comes_back),
		test(loans__pool_is_empty__ring_itself_unless_a_piece_of_its_own_comes_back),
		test(loans__given_back__found_by_the_next_poll),
		test(room__left__piece_is_not_lost),
		test(room__ring_is_full__piece_is_not_lost),
		test(loans__any_pattern__no_piece_is_lent_twice_and_all_come_back),
		test(loans__consumed_word_makes_no_sense__broken),
		test(read__large__answered_in_pieces),
		test(pass__peer_fills_it_with_large_pieces__our_requests_go_on),
		test(end__peer_takes_nothing_more__pieces_are_free_again),
		test(end__peer_may_still_read__pieces_are_lost),
		test(end__many_pieces_lost__pool_is_left),
		test(end__of_our_side__reported_to_the_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
