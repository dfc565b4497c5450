// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pools of large pieces on the bench of lab.h: how they are offered, what a peer may and may not
 * name, how pieces are lent and come back, and what becomes of them at the end of a connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab.h"
#include "soft/fds.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/progress.h"

#define LARGE (SHM_PIECE + 1000u) /* two pieces */
#define LAST SHM_FLAG_LAST
#define FIRST SHM_FLAG_FIRST
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int setup(void **state)
{
	*state = lab_open(CORE_COPY_RING, false);
	return 0;
}

static int teardown(void **state)
{
	lab_close(*state);
	return 0;
}

/* --- bytes --- */

static uint8_t byte_at(uint32_t seed, size_t i)
{
	return (uint8_t)(seed * 37 + i * 11 + (i >> 8) * 3);
}

static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_at(seed, i);
}

/* `at`: the place of the first of them in the pattern. */
static void check(const uint8_t *p, size_t at, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], byte_at(seed, at + i));
}

static void check_untouched(const struct lab *lab)
{
	for (size_t i = 0; i < LAB_MEMORY; i++)
		assert_int_equal(lab->memory[i], 0xa5);
}

/* --- connections without an endpoint, beside the one of the bench --- */

struct line {
	struct shm_conn *conn;
	struct shm_consumer requests, responses; /* the peer's */
};

static void peer_consumers(struct line *line)
{
	struct shm_segment *segment = line->conn->segment;
	struct shm_side *peer = line->conn->theirs;

	shm_consumer_init(&line->requests, segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &peer->request_consumed);
	shm_consumer_init(&line->responses, segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &peer->response_consumed);
}

/* That of the bench. */
static struct line lab_line(struct lab *lab)
{
	struct line line = {.conn = lab->conn};

	peer_consumers(&line);
	return line;
}

/* What it sends to the peer is read by lab_peer_packet. */
static void line_open(struct lab *lab, struct line *line)
{
	int fd = fcntl(lab->conn->fd, F_DUPFD_CLOEXEC, 0), segment_fd;

	assert_true(fd >= 0);
	assert_int_equal(soft_fd_add(fd), 0);
	assert_int_equal(shm_conn_create(&lab->engine, fd, SHM_PASSIVE, &line->conn), 0);
	assert_int_equal(shm_conn_make_segment(line->conn, &segment_fd), 0);
	line->conn->segment_fd = segment_fd;
	line->conn->remote.pid = lab->conn->remote.pid;
	peer_consumers(line);
}

/* The packets of the bench's connection go on: its socket is the same. */
static void line_close(struct line *line)
{
	soft_fd_close(line->conn->fd);
	line->conn->fd = -1;
	shm_conn_put(line->conn);
	line->conn = NULL;
}

static int reserve(struct line *line, struct shm_room *room)
{
	return shm_room_reserve(line->conn, &line->conn->request_out, &line->conn->bulk.requests,
				LARGE, SHM_REQUEST_PAYLOAD, room);
}

/* Puts one piece of a message; the piece that it lies in, -1: the ring itself, -2: no room now. */
static int put(struct line *line, uint32_t seed)
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

/* The peer takes the next entry: false when there is none. Its space is not given back yet. */
static bool take(const struct lab *lab, struct shm_consumer *ring, struct shm_bytes *bytes,
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

/* An answer to what is in lab->offer. */
static void answer(const struct lab *lab, struct shm_conn *conn, bool has_it)
{
	struct shm_wire_pool have = lab->offer;

	if (!has_it)
		memset(have.secret, 0, sizeof(have.secret));
	shm_pool_answered(conn, &have);
}

/* The proof comes with the pool; its name alone leaves that as it was. */
static enum shm_wire_type next_offer(struct lab *lab)
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

/* Has our pool given to the peer on that connection, and takes what was put into the ring for it.
 */
static void line_ready(struct lab *lab, struct line *line)
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

/* How many pieces a connection gets that has none. */
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

/* --- offer and answer --- */

/* An honest peer takes what is there and gives it back; how many bytes lay in pieces. */
static uint64_t take_all(struct lab *lab, struct line *line, uint64_t *offset, uint32_t seed)
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

/* A whole Send, taken by the peer; how many of its bytes lay in pieces. */
static uint64_t send_whole(struct lab *lab, struct line *line, uint32_t len, uint32_t seed)
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

static void send__first_large_one__pool_offered_and_ring_used_until_it_is_known(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	assert_int_equal(send_whole(lab, &line, SHM_REQUEST_PAYLOAD, 1), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(send_whole(lab, &line, LAB_MEMORY, 2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_POOL_GIVE);
	lab_peer_takes_pool(lab);
	assert_int_equal(send_whole(lab, &line, LAB_MEMORY, 3), LAB_MEMORY);
	/* what the ring takes at once has no piece, neither has the rest of something large */
	assert_int_equal(send_whole(lab, &line, SHM_REQUEST_PAYLOAD, 4), 0);
	assert_int_equal(send_whole(lab, &line, SHM_PIECE + 100, 5), SHM_PIECE);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(lab->done, 5);
	assert_true(lab_is_open(lab));
}

static void answer__peer_has_it_not__ring_only_and_no_other_offer(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_POOL_GIVE);
	answer(lab, lab->conn, false);
	assert_int_equal(lab->engine.pool_count, 0);
	/* too late */
	lab_peer_takes_pool(lab);
	assert_int_equal(send_whole(lab, &line, LARGE, 2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_true(lab_is_open(lab));
}

/* Whatever a peer answers and when: what was not asked is not listened to. */
static void answer__unasked_or_of_another_pool__nothing_changes(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_wire_pool other;

	answer(lab, lab->conn, true);
	assert_int_equal(lab->conn->bulk.state, SHM_BULK_NONE);
	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	other = lab->offer;
	other.number++;
	shm_pool_answered(lab->conn, &other);
	assert_int_equal(lab->conn->bulk.state, SHM_BULK_GIVEN);
	answer(lab, lab->conn, true);
	answer(lab, lab->conn, false);
	answer(lab, lab->conn, true);
	assert_int_equal(lab->conn->bulk.state, SHM_BULK_READY);
	assert_int_equal(send_whole(lab, &line, LARGE, 2), SHM_PIECE);
}

static void offer__second_connection_to_the_process__shares_the_pool(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;
	struct shm_wire_pool given;
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};
	union shm_wire wire;

	line_ready(lab, &first);
	given = lab->offer;
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_POOL_NAME);
	assert_int_equal(wire.pool.number, given.number);
	/* the name is no help to somebody who was not given the pool */
	for (size_t i = 0; i < sizeof(wire.pool.secret); i++)
		assert_int_equal(wire.pool.secret[i], 0);
	lab->offer = given;
	answer(lab, second.conn, true);
	assert_int_equal(lab->engine.pool_count, 1);
	assert_true(put(&second, 7) >= 0);
	assert_true(take(lab, &second.requests, &bytes, &entry)); /* that of the ring */
	assert_true(take(lab, &second.requests, &bytes, &entry));
	assert_int_equal(bytes.count, SHM_PIECE);
	check(bytes.at, 0, SHM_PIECE, 7);
	line_close(&second);
}

/* One that only claims to be that process gets a pool of its own. */
static void answer__wrong_proof_for_a_pool_that_is_in_use__another_pool_is_given(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;
	uint64_t number;

	line_ready(lab, &first);
	number = lab->offer.number;
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	lab->offer.secret[SHM_TOKEN_SIZE - 1] ^= 1;
	answer(lab, second.conn, true);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_GIVEN);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	assert_int_not_equal(lab->offer.number, number);
	assert_int_equal(put(&second, 0), -1);
	answer(lab, second.conn, true);
	assert_ptr_not_equal(second.conn->bulk.out, first.conn->bulk.out);
	assert_true(put(&second, 0) >= 0);
	assert_int_equal(lab->engine.pool_count, 2);
	line_close(&second);
	assert_int_equal(lab->engine.pool_count, 1);
}

/* The packets of two connections overtake each other: still there is one pool. */
static void answer__pool_has_not_arrived_yet__asked_again_later(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;

	assert_int_equal(put(&first, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	answer(lab, second.conn, false);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_NONE);
	answer(lab, first.conn, true);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	answer(lab, second.conn, true);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_READY);
	assert_int_equal(lab->engine.pool_count, 1);
	line_close(&second);
}

/* By its number as the kernel knows it, and by the engine that it says it is. */
static void offer__other_process_or_engine__pool_of_its_own(void **state)
{
	static const struct {
		pid_t pid;
		uint8_t token;
	} others[] = {{1, 0}, {0, 0}, {0, 0}, {-1, 1}};
	struct lab *lab = *state;
	struct line first = lab_line(lab), lines[COUNT(others)];
	uint32_t i;

	line_ready(lab, &first);
	for (i = 0; i < COUNT(others); i++) {
		line_open(lab, &lines[i]);
		if (others[i].pid >= 0)
			lines[i].conn->remote.pid = others[i].pid;
		lines[i].conn->remote.token[3] = others[i].token;
		assert_int_equal(put(&lines[i], 0), -1);
		assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
		answer(lab, lines[i].conn, true);
		assert_int_equal(lab->engine.pool_count, 2 + i);
	}
	for (i = 0; i < COUNT(others); i++)
		line_close(&lines[i]);
}

static void offer__too_many_pools__ring_only(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	lab->engine.pool_count = SHM_POOLS;
	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(send_whole(lab, &line, LARGE, 2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(lab->engine.pool_count, SHM_POOLS);
	lab->engine.pool_count = 0;
}

/* GEN-26: a thread that is cancelled in its post leaves only when that is over. */
static void *post_cancelled(void *arg)
{
	static bool is_over;
	struct lab *lab = arg;

	pthread_cancel(pthread_self());
	lab_post(lab, CORE_OP_SEND, 0, LARGE, 0, 0);
	is_over = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return &is_over;
}

static void offer__thread_is_cancelled__post_is_finished(void **state)
{
	struct lab *lab = *state;
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, post_cancelled, lab), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_not_equal(result, PTHREAD_CANCELED);
	assert_true(*(bool *)result);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
}

/* --- the peer's pool --- */

/* Sends the packet to our side, and returns the answer: had it the proof? */
static bool give(struct lab *lab, struct shm_conn *conn, uint64_t number, int fd)
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

static void give__bad_file__refused(void **state)
{
	static const struct {
		size_t size;
		int seals;
	} bad[] = {
		{SHM_POOL_SIZE, 0},
		{SHM_POOL_SIZE, F_SEAL_GROW | F_SEAL_SEAL},
		{SHM_POOL_SIZE, F_SEAL_SHRINK | F_SEAL_SEAL},
		{SHM_POOL_SIZE, F_SEAL_SHRINK | F_SEAL_GROW},
		{SHM_POOL_SIZE - 1, SEALS},
		{SHM_POOL_SIZE + 4096, SEALS},
		{0, SEALS},
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_true(give(lab, lab->conn, 1, lab_pool_file(SHM_POOL_SIZE, SEALS)));
		assert_false(give(lab, lab->conn, 2, lab_pool_file(bad[i].size, bad[i].seals)));
	}
	assert_false(give(lab, lab->conn, 3, eventfd(0, EFD_CLOEXEC)));
	assert_int_equal(lab->engine.pool_count, 0);
}

static void give__again_and_again__the_last_one_counts(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 100; i++) {
		assert_true(give(lab, lab->conn, i, lab_pool_file(SHM_POOL_SIZE, SEALS)));
		assert_int_equal(lab->engine.pool_count, 1);
	}
	assert_true(give(lab, lab->conn, 99, -1));
	assert_false(give(lab, lab->conn, 98, -1));
	assert_int_equal(lab->engine.pool_count, 0);
	lab->engine.pool_count = SHM_POOLS;
	assert_false(give(lab, lab->conn, 1, lab_pool_file(SHM_POOL_SIZE, SEALS)));
	lab->engine.pool_count = 0;
}

/*
 * A process that has learnt the number of another one's pool must not have its bytes placed for it,
 * nor the proof told.
 */
static void name__pool_of_another_process__denied(void **state)
{
	struct lab *lab = *state;
	struct line same, other, unknown;

	assert_true(give(lab, lab->conn, 5, lab_pool_file(SHM_POOL_SIZE, SEALS)));
	line_open(lab, &same);
	line_open(lab, &other);
	line_open(lab, &unknown);
	other.conn->remote.pid = 1;
	unknown.conn->remote.pid = 0;
	assert_true(give(lab, same.conn, 5, -1));
	assert_false(give(lab, other.conn, 5, -1));
	assert_false(give(lab, unknown.conn, 5, -1));
	assert_int_equal(lab->engine.pool_count, 1);
	/* neither is our own pool one of a peer's */
	line_ready(lab, &same);
	assert_false(give(lab, other.conn, lab->offer.number, -1));
	assert_false(give(lab, same.conn, lab->offer.number, -1));
	line_close(&same);
	line_close(&other);
	line_close(&unknown);
}

/* --- what the peer names --- */

static struct shm_entry piece_entry(const struct lab *lab, enum shm_entry_type type,
				    uint64_t length)
{
	return (struct shm_entry){.type = (uint8_t)type,
				  .flags = SHM_FLAG_PIECE | FIRST | LAST,
				  .payload = sizeof(struct shm_piece),
				  .key = lab->rkey,
				  .address = (uintptr_t)lab->memory,
				  .length = length};
}

/* The peer publishes it; our side looks. */
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

/* All of it is read within the pool, to its last byte, and nothing behind the bytes is changed. */
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

/* Of several pieces and bytes of the ring, in any mixture. */
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

/* The owner waits for the piece, not for the end of the message: it is woken for it. */
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

/* DTO-94: the whole range is looked at before the first piece is placed. */
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

/* A peer that fills a piece again while it is read, or names one twice, harms itself alone. */
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
	/* taken is not given back */
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

/* DTO-105: what is held up on one connection holds up no other. */
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

/* A connection with nothing else to do has its pieces back as soon as it can. */
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

/* What is reserved and then not used is there again. */
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

/* A ring that is full though there are pieces: likewise. */
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

/* What the peer has of one ring. */
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

/* Three connections, both rings each, in an order of chance: no piece is in two hands. */
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

/* A peer that claims to have given back what it never got, or takes that back again. */
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

/* Both ways share a pass: a peer that always has more for us does not hold up what we have for it.
 */
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

/* A connection that ends with that many pieces lent, of which the peer has given some back. */
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
	/* not so many that the pool would be left if they were lost */
	end_with_loans(lab, 3, 0, false, true);
	end_with_loans(lab, 3, 0, true, false);
	assert_int_equal(pieces_to_be_had(lab), SHM_PIECES);
	assert_int_equal(lab->engine.pool_count, 1);
}

/* It may be reading them at this moment: nobody else writes there any more. */
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

/* A pool that has lost a quarter: others get a new one, and in the end so do those that had it. */
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
	/* while something of it is lent it stays */
	assert_true(put(&other, 2) >= 0);
	assert_ptr_equal(other.conn->bulk.out, worn);
	/* the bench's connection has nothing lent */
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

/* Our side says that it takes nothing more, when it takes nothing more. */
static void end__of_our_side__told_to_the_peer(void **state)
{
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;

	shm_conn_get(conn);
	assert_int_equal(atomic_load(&conn->mine->is_over), 0);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(atomic_load(&conn->mine->is_over), 1);
	shm_conn_put(conn);
}

/* --- */

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(send__first_large_one__pool_offered_and_ring_used_until_it_is_known),
		test(answer__peer_has_it_not__ring_only_and_no_other_offer),
		test(answer__unasked_or_of_another_pool__nothing_changes),
		test(offer__second_connection_to_the_process__shares_the_pool),
		test(answer__wrong_proof_for_a_pool_that_is_in_use__another_pool_is_given),
		test(answer__pool_has_not_arrived_yet__asked_again_later),
		test(offer__other_process_or_engine__pool_of_its_own),
		test(offer__too_many_pools__ring_only),
		test(offer__thread_is_cancelled__post_is_finished),
		test(give__bad_file__refused),
		test(give__again_and_again__the_last_one_counts),
		test(name__pool_of_another_process__denied),
		cmocka_unit_test(piece__named_wrongly__breaks_and_changes_nothing),
		test(piece__named_well__placed_and_given_back_at_once),
		test(pieces__mixed_with_entries_of_the_ring__one_message),
		test(piece__no_receive__not_given_back_before_it_is_placed),
		test(piece__owner_sleeps__woken_when_it_is_given_back),
		test(piece__write_leaves_the_region__refused_and_no_byte_changed),
		test(piece__pool_is_replaced_under_a_message__the_new_one_is_read),
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
		test(end__of_our_side__told_to_the_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
