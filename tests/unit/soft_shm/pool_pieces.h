// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of pools share: pieces that are put, taken and counted. */
#ifndef TESTS_SOFT_SHM_POOL_PIECES_H
#define TESTS_SOFT_SHM_POOL_PIECES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool_lab.h"

#include <string.h>
#include <unistd.h>

#include "soft/shm/conn.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/wire.h"

static inline int reserve(struct line *line, struct shm_room *room)
{
	return shm_room_reserve(line->conn, &line->conn->request_out, &line->conn->bulk.requests,
				LARGE, SHM_REQUEST_PAYLOAD, room);
}

/*
 * Puts one piece of a message. Returns the piece that holds it, -1: the ring itself, -2: there is
 * no room.
 */
static inline int put(struct line *line, uint32_t seed)
{
	struct shm_entry entry = {.type = SHM_ENTRY_SEND, .flags = FIRST, .length = LARGE};
	struct shm_room room;

	if (reserve(line, &room) != 1)
		return -2;
	fill(room.to, room.bytes, seed);
	shm_room_commit(line->conn, &line->conn->request_out, &line->conn->bulk.requests, &entry,
			&room);
	return room.piece;
}

/* The peer takes the next entry: false if there is none. Does not give its space back. */
static inline bool take(const struct lab *lab, struct shm_consumer *ring, struct shm_bytes *bytes,
			struct shm_entry *entry)
{
	const uint8_t *payload;
	struct shm_piece piece;

	if (shm_consumer_peek(ring, entry, &payload) != 1)
		return false;
	shm_consumer_pop(ring);
	*bytes = (struct shm_bytes){payload, entry->payload};
	if (entry->flags & SHM_FLAG_PIECE) {
		assert_int_equal(entry->payload, sizeof(piece));
		memcpy(&piece, payload, sizeof(piece));
		assert_true(piece.index < SHM_PIECES && piece.bytes <= SHM_PIECE);
		*bytes = (struct shm_bytes){lab->our_pool + (size_t)piece.index * SHM_PIECE,
					    piece.bytes};
	}
	return true;
}

/* Answers lab->offer for that connection. */
static inline void answer(const struct lab *lab, struct shm_conn *conn, bool has_it)
{
	struct shm_wire_pool have = lab->offer;

	if (!has_it)
		memset(have.secret, 0, sizeof(have.secret));
	shm_pool_answered(conn, &have);
}

/* The secret comes with the pool; POOL_NAME does not change it. */
static inline enum shm_wire_type next_offer(struct lab *lab)
{
	uint8_t secret[SHM_TOKEN_SIZE];
	enum shm_wire_type type;
	union shm_wire wire;

	memcpy(secret, lab->offer.secret, sizeof(secret));
	type = lab_peer_packet(lab, &wire);
	if (type == SHM_WIRE_POOL_NAME)
		memcpy(lab->offer.secret, secret, sizeof(secret));
	return type;
}

/* Gives our pool to the peer on that connection, and takes what was put into the ring meanwhile. */
static inline void line_ready(struct lab *lab, struct line *line)
{
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};

	assert_int_equal(put(line, 0), -1);
	assert_int_not_equal(next_offer(lab), 0);
	answer(lab, line->conn, true);
	assert_int_equal(line->conn->bulk.state, SHM_BULK_READY);
	assert_true(shm_producer_publish(&line->conn->request_out));
	assert_true(take(lab, &line->requests, &bytes, &entry));
	check(bytes.at, 0, SHM_REQUEST_PAYLOAD, 0);
	shm_consumer_give_back(&line->requests);
}

/* --- offer and answer --- */

/* An honest peer takes all entries and gives them back; returns how many bytes were in pieces. */
static inline uint64_t take_all(struct lab *lab, struct line *line, uint64_t *offset, uint32_t seed)
{
	uint64_t in_pieces = 0;
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};

	while (take(lab, &line->requests, &bytes, &entry)) {
		check(bytes.at, *offset, bytes.count, seed);
		*offset += bytes.count;
		if (entry.flags & SHM_FLAG_PIECE)
			in_pieces += bytes.count;
		shm_consumer_give_back(&line->requests);
	}
	lab_pass(lab);
	return in_pieces;
}

/* Sends a whole message, which the peer takes; returns how many of its bytes were in pieces. */
static inline uint64_t send_whole(struct lab *lab, struct line *line, uint32_t len, uint32_t seed)
{
	uint64_t offset = 0, in_pieces = 0, before;

	fill(lab->memory, len, seed);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, len, 0, 0));
	do {
		before = offset;
		in_pieces += take_all(lab, line, &offset, seed);
	} while (offset != before);
	assert_int_equal(offset, len);
	atomic_fetch_add(&lab->peer->done, 1);
	lab_pass(lab);
	return in_pieces;
}

/* --- the peer's pool --- */

/* Passes the packet to our side and returns whether the answer contains the secret. */
static inline bool give(struct lab *lab, struct shm_conn *conn, uint64_t number, int fd)
{
	union shm_wire wire, reply;

	shm_wire_prepare(&wire, fd < 0 ? SHM_WIRE_POOL_NAME : SHM_WIRE_POOL_GIVE);
	wire.pool.number = number;
	if (fd < 0) {
		shm_pool_named(conn, &wire.pool);
	} else {
		memset(wire.pool.secret, 'z', sizeof(wire.pool.secret));
		shm_pool_given(conn, &wire.pool, fd);
		close(fd);
	}
	assert_int_equal(lab_peer_packet(lab, &reply), SHM_WIRE_POOL_HAVE);
	assert_int_equal(reply.pool.number, number);
	assert_true(reply.pool.secret[0] == 0 || reply.pool.secret[0] == 'z');
	for (size_t i = 1; i < sizeof(reply.pool.secret); i++)
		assert_int_equal(reply.pool.secret[i], reply.pool.secret[0]);
	assert_int_equal(reply.pool.secret[0] != 0, conn->bulk.in != NULL);
	return conn->bulk.in != NULL;
}

/* --- what the peer names --- */

static inline struct shm_entry piece_entry(const struct lab *lab, enum shm_entry_type type,
					   uint64_t length)
{
	return (struct shm_entry){.type = (uint8_t)type,
				  .flags = SHM_FLAG_PIECE | FIRST | LAST,
				  .payload = sizeof(struct shm_piece),
				  .key = lab->rkey,
				  .address = (uintptr_t)lab->memory,
				  .length = length};
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
