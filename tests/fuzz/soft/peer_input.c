// SPDX-License-Identifier: BSD-2-Clause
/* Actions of a peer and of our consumer, read from an input (peer_input.h). */
#include "peer_input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_fetch.h"
#include "soft/copy.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/pool.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

uint64_t peer_address(struct peer_input *in, const uint8_t *memory)
{
	uint8_t kind = peer_byte(in);

	if (kind < 240)
		return (uintptr_t)memory + (uint64_t)(int64_t)(int16_t)peer_word(in);
	return (uint64_t)peer_word(in) << 32 | peer_word(in);
}

uint64_t peer_length(struct peer_input *in)
{
	uint8_t kind = peer_byte(in);

	return kind < 240 ? (kind & 3 ? kind : kind * 64u)
			  : (uint64_t)peer_word(in) << 32 | peer_word(in);
}

/* One of the peer's words. */
static void set_word(struct lab *lab, struct peer_input *in)
{
	_Atomic uint32_t *words[] = {
		&lab->peer->request_consumed,
		&lab->peer->response_consumed,
		&lab->peer->done,
		&lab->peer->failed,
		&lab->peer->waits,
		&lab->peer->armed,
		&lab->peer->revoked,
		&lab->peer->announce,
		&lab->peer->is_polled,
		&lab->peer->is_unfenced,
		&lab->peer->sleeps,
		&lab->peer->is_over,
	};
	_Atomic uint32_t *target = words[peer_byte(in) % (sizeof(words) / sizeof(words[0]))];
	uint8_t kind = peer_byte(in);

	if (kind < 128)
		atomic_fetch_add(target, kind % 64 * (kind < 64 ? 1u : SHM_ENTRY_ALIGN));
	else
		atomic_store(target, peer_word(in));
}

/* A packet about pools. */
static void pool_packet(struct lab *lab, struct peer_input *in)
{
	union shm_wire wire = {.pool.number = peer_byte(in)};
	uint8_t kind = peer_byte(in);
	int fd;

	memset(wire.pool.secret, kind >> 4, sizeof(wire.pool.secret));
	switch (kind & 7) {
	case 0:
		shm_pool_named(lab->conn, &wire.pool);
		break;
	case 1:
		fd = lab_pool_file(peer_byte(in) & 7 ? SHM_POOL_SIZE : peer_byte(in),
				   F_SEAL_SHRINK | F_SEAL_GROW | (peer_byte(in) ? F_SEAL_SEAL : 0));
		shm_pool_given(lab->conn, &wire.pool, fd);
		close(fd);
		break;
	case 2:
		wire.pool.number = lab->offer.number;
		/* fall through */
	case 3:
		shm_pool_answered(lab->conn, &wire.pool);
		break;
	case 4:
		(void)lab_peer_packet(lab, &wire);
		break;
	default:
		lab_peer_takes_pool(lab);
	}
}

/* The peer's word about larger rings, and changes to one that we have offered or not. */
static void grow(struct lab *lab, struct peer_input *in)
{
	static uint8_t own[SHM_LARGE_RING];
	uint8_t what = peer_byte(in);
	struct shm_grow *grow = &lab->conn->grow;

	atomic_store(&lab->peer->large, what & 3);
	if (what & 4) /* as after many passes */
		grow->full = SHM_GROW_AFTER;
	if (!(what & 8) || lab->peer_out.size == SHM_LARGE_RING)
		return;
	if (shm_producer_grow(&lab->peer_out, grow->file ? grow->file->large[SHM_ACTIVE] : own))
		lab->peer_requests = lab->peer_out.bytes;
}

/* Bytes of the peer's rings, or one of the rarer actions. */
static void raw_bytes(struct lab *lab, struct peer_input *in)
{
	uint8_t which = peer_byte(in);
	uint32_t at = peer_word(in), count = peer_byte(in);
	uint8_t *ring = which & 1 ? lab->peer_requests : lab->peer_responses;
	uint32_t ring_size = which & 1 ? lab->peer_out.size : SHM_RESPONSE_RING;

	if (which >= 192)
		pool_packet(lab, in);
	else if (which >= 176)
		peer_supply(lab, in);
	else if (which >= 160)
		peer_change_fetch(lab, in);
	else if (which >= 144)
		(void)shm_conn_arm(lab->conn);
	else if (which >= 128)
		grow(lab, in);
	else
		while (count--)
			ring[at++ % ring_size] = peer_byte(in);
}

/* Puts the bytes of the entry into a piece, mostly one that exists. */
static void into_piece(struct lab *lab, struct peer_input *in, struct shm_entry *entry,
		       uint8_t *payload)
{
	struct shm_piece piece = {.index = peer_byte(in), .bytes = peer_word(in)};

	if (piece.index < 240)
		piece.index %= SHM_PIECES;
	if (peer_byte(in) & 7)
		piece.bytes %= SHM_PIECE + 1;
	entry->flags |= SHM_FLAG_PIECE;
	if (peer_byte(in) & 7)
		entry->payload = sizeof(piece);
	if (peer_byte(in) & 1)
		entry->length = piece.bytes;
	if (lab->peer_pool)
		lab->peer_pool[piece.index % SHM_PIECES * SHM_PIECE] = peer_byte(in);
	memcpy(payload, &piece, sizeof(piece));
}

/* An entry that the ring accepts, with any content. */
static void good_entry(struct lab *lab, struct peer_input *in)
{
	uint8_t bytes[SHM_REQUEST_PAYLOAD];
	struct shm_entry entry = {.type = peer_byte(in) % 9};
	bool is_data = entry.type == SHM_ENTRY_DATA || entry.type == SHM_ENTRY_BYTES;
	uint8_t flags = peer_byte(in), key = peer_byte(in);

	entry.flags = flags & 7;
	if (flags & 8)
		entry.done = flags >> 4;

	entry.payload =
		peer_word(in) % ((is_data ? SHM_RESPONSE_PAYLOAD : SHM_REQUEST_PAYLOAD) + 1);
	if (peer_byte(in) & 3)
		entry.payload %= 200;
	entry.key = key < 128 ? lab->rkey : key < 192 ? lab->read_only : peer_word(in);
	entry.address = peer_address(in, lab->memory);
	entry.length = peer_byte(in) & 1 ? entry.payload : peer_length(in);
	memset(bytes, 'p', sizeof(bytes));
	if (entry.type == SHM_ENTRY_PULL)
		peer_sources(lab, in, &entry, bytes);
	else if (flags & 0x80)
		into_piece(lab, in, &entry, bytes);
	lab_peer_entry(is_data ? &lab->peer_answers : &lab->peer_out, &entry, bytes);
}

static void post(struct lab *lab, struct peer_input *in)
{
	uint8_t what = peer_byte(in);
	uint32_t offset = peer_word(in);
	/* one by one: compilers evaluate arguments in different orders */
	uint32_t len = peer_word(in) % LAB_MEMORY;
	uint32_t key = what & 16 ? peer_word(in) : lab->peer_rkey;

	if (what & 8)
		lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	if (what & 32)
		lab->next_flags |= DAT_COMPLETION_SUPPRESS_FLAG;
	if (what & 64)
		lab->next_flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	lab_post(lab, (enum core_op)(what % 3), offset, len, key,
		 peer_address(in, lab->peer_memory));
}

static void post_receive(struct lab *lab, struct peer_input *in)
{
	uint32_t offset = peer_word(in);

	lab->next_segments = 1 + (offset >> 27); /* more room than one pass fetches */
	lab_post_receive(lab, offset, peer_word(in) % LAB_MEMORY);
}

static void one_action(struct lab *lab, struct peer_input *in, bool has_service)
{
	switch (peer_byte(in) % 8) {
	case 0:
		set_word(lab, in);
		break;
	case 1:
		raw_bytes(lab, in);
		break;
	case 2:
	case 3:
		good_entry(lab, in);
		break;
	case 4:
		post(lab, in);
		break;
	case 5:
		post_receive(lab, in);
		break;
	case 6:
		lab_pass(lab);
		break;
	default:
		if (has_service)
			lab_library_pass(lab);
		else
			lab_pass(lab);
	}
}

/* The peer takes all entries and gives them back. */
static void take_all(struct lab *lab)
{
	struct shm_consumer ring;
	const uint8_t *payload;
	struct shm_entry entry;

	shm_consumer_init(&ring, lab->conn->segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &lab->peer->request_consumed);
	while (shm_consumer_peek(&ring, &entry, &payload) == 1)
		shm_consumer_pop(&ring);
	shm_consumer_give_back(&ring);
}

/* In both directions; ours is offered with the first large Send. */
static void have_pools(struct lab *lab)
{
	union shm_wire wire;

	lab_peer_gives_pool(lab);
	lab_post(lab, CORE_OP_SEND, 0, SHM_REQUEST_PAYLOAD + 1, 0, 0);
	if (lab_peer_packet(lab, &wire) == SHM_WIRE_POOL_GIVE)
		lab_peer_takes_pool(lab);
	take_all(lab);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
}

struct lab *peer_open_lab(uint8_t path)
{
	enum core_copy_path direct = path & 8 ? CORE_COPY_AUTO : CORE_COPY_CMA;
	struct lab *lab = lab_open(path & 1 ? CORE_COPY_RING : direct, !(path & 1));

	peer_fetch_open(lab);
	if (path & 4)
		lab_go_fast(lab);
	if (path & 8)
		lab->conn->remote.maps = calloc(SHM_MAPS, sizeof(struct shm_map));
	if (path & 16)
		lab->ep.request_evd = lab->ep.recv_evd;
	if (path & 32)
		shm_conn_disarm(lab->conn);
	if (path & 64)
		have_pools(lab);
	else if (!(path & 128)) /* creating one costs more than all the rest */
		lab->conn->bulk.state = SHM_BULK_REFUSED;
	return lab;
}

void peer_run(struct lab *lab, struct peer_input *in, uint8_t path)
{
	while (in->left && lab_is_open(lab))
		one_action(lab, in, path & 2);
}

void peer_close_lab(struct lab *lab)
{
	lab_pass(lab);
	peer_fetch_close(lab);
	/* no waiting for an announcement that is never withdrawn */
	if (lab->end == 0)
		atomic_store(&lab->peer->announce, 0);
	lab_close(lab);
}
