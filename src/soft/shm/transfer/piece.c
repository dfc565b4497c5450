// SPDX-License-Identifier: BSD-2-Clause
/*
 * Large pieces of one connection: offers of pools, loans, and the entries that name pieces
 * (piece.h).
 */
#include "soft/shm/transfer/piece.h"

#include <errno.h>
#include <string.h>

#include "core/base/cancel.h"
#include "soft/fds.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/transfer/pool.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

/* --- loans --- */

/* Takes back the pieces of one ring that the peer has given back; -EPROTO. */
static int reclaim(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans)
{
	int rc;

	if (!loans->count)
		return 0;
	rc = shm_producer_refresh(ring);
	if (rc < 0)
		return rc;
	while (loans->count) {
		const struct shm_loan *oldest = &loans->loan[loans->first % SHM_LOANS];

		if ((int32_t)(ring->consumed - oldest->end) < 0)
			break;
		shm_pool_put_piece(conn->engine, conn->bulk.out, oldest->piece);
		loans->first++;
		loans->count--;
	}
	return 0;
}

int shm_pool_reclaim(struct shm_conn *conn)
{
	int rc = reclaim(conn, &conn->request_out, &conn->bulk.requests);

	return rc < 0 ? rc : reclaim(conn, &conn->response_out, &conn->bulk.responses);
}

/* Returns the pieces that the ring holds when the connection is destroyed. is_safe: the peer does
 * not read them any more. */
static void return_loans(struct shm_conn *conn, struct shm_loans *loans, bool is_safe)
{
	struct shm_pool *pool = conn->bulk.out;
	struct shm_engine *engine = conn->engine;

	for (; loans->count; loans->first++, loans->count--) {
		if (is_safe) {
			shm_pool_put_piece(engine, pool,
					   loans->loan[loans->first % SHM_LOANS].piece);
			continue;
		}
		shm_pool_lose_piece(engine, pool);
	}
}

void shm_pool_release(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;

	if (bulk->requests.count || bulk->responses.count) {
		/*
		 * acquire: pairs with the release in shm_conn_close; the peer has copied out all
		 * that it took
		 */
		bool is_safe = conn->is_peer_gone ||
			       atomic_load_explicit(&conn->theirs->is_over, memory_order_acquire);

		(void)shm_pool_reclaim(conn);
		return_loans(conn, &bulk->requests, is_safe);
		return_loans(conn, &bulk->responses, is_safe);
	}
	shm_pool_put(conn->engine, bulk->out);
	shm_pool_put(conn->engine, bulk->in);
}

/* --- entries --- */

/* Asks the peer whether it has our pool, or sends it one. */
static void offer_pool(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;
	int cancel;
	union shm_wire wire;
	int fd = -1;

	/* only processes that trust each other exchange descriptors after the set-up */
	if (!conn->remote.is_trusted) {
		bulk->state = SHM_BULK_REFUSED;
		return;
	}
	cancel = core_cancel_off(); /* a post can call this: see cancel.h */
	/* first a pool that other connections use; if the peer does not know it, a new one */
	if (bulk->state == SHM_BULK_NONE)
		bulk->out = shm_pool_find_ours(conn);
	bulk->was_verified = bulk->out && shm_pool_is_verified(conn->engine, bulk->out);
	shm_wire_prepare(&wire, bulk->out ? SHM_WIRE_POOL_NAME : SHM_WIRE_POOL_GIVE);
	bulk->state = bulk->out ? SHM_BULK_NAMED : SHM_BULK_GIVEN;
	if (!bulk->out) {
		bulk->out = shm_pool_create(conn, &fd);
		if (bulk->out)
			memcpy(wire.pool.secret, bulk->out->secret, sizeof(wire.pool.secret));
	}
	if (bulk->out)
		wire.pool.number = bulk->out->number;
	if (!bulk->out || shm_conn_send(conn, &wire, &fd, fd >= 0) < 0)
		bulk->state = SHM_BULK_REFUSED;
	soft_fd_close(fd);
	core_cancel_restore(cancel);
}

/*
 * Leaves a pool that has lost many pieces, so that another one is offered. No entry names it any
 * more, and the peer replaces it by the next one that we offer.
 */
static void leave_depleted(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;

	if (bulk->state != SHM_BULK_READY || bulk->requests.count || bulk->responses.count ||
	    !shm_pool_is_depleted(conn->engine, bulk->out))
		return;
	shm_pool_put(conn->engine, bulk->out);
	bulk->out = NULL;
	bulk->state = SHM_BULK_NONE;
}

/* Takes a piece for that ring, or -1; *is_coming: the peer will give one back. */
static int take_piece(struct shm_conn *conn, const struct shm_loans *loans, bool *is_coming)
{
	struct shm_bulk *bulk = &conn->bulk;
	int piece = -1;

	*is_coming = false;
	leave_depleted(conn);
	if (bulk->state == SHM_BULK_NONE)
		offer_pool(conn);
	if (bulk->state != SHM_BULK_READY)
		return -1;
	if (loans->count < SHM_LOANS)
		piece = shm_pool_take_piece(conn->engine, bulk->out);
	*is_coming = piece < 0 && loans->count;
	return piece;
}

int shm_room_reserve(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans,
		     uint64_t left, uint32_t inline_max, struct shm_room *room)
{
	bool is_coming = false;
	int rc;

	room->piece = -1;
	if (left > inline_max) {
		rc = reclaim(conn, ring, loans);
		if (rc < 0)
			return rc;
		room->piece = take_piece(conn, loans, &is_coming);
		if (is_coming)
			return 0;
	}
	room->bytes = room->piece >= 0 ? SHM_PIECE : inline_max;
	if (left < room->bytes)
		room->bytes = (uint32_t)left;
	rc = shm_producer_reserve(
		ring, room->piece >= 0 ? (uint32_t)sizeof(struct shm_piece) : room->bytes,
		&room->payload);
	if (rc <= 0) {
		shm_room_cancel(conn, room);
		return rc;
	}
	room->to = room->piece >= 0 ? conn->bulk.out->memory + (size_t)room->piece * SHM_PIECE
				    : room->payload;
	return 1;
}

void shm_room_cancel(struct shm_conn *conn, const struct shm_room *room)
{
	if (room->piece >= 0)
		shm_pool_put_piece(conn->engine, conn->bulk.out, (uint32_t)room->piece);
}

void shm_room_commit(struct shm_conn *conn, struct shm_producer *ring, struct shm_loans *loans,
		     struct shm_entry *entry, const struct shm_room *room)
{
	struct shm_piece piece = {.index = (uint32_t)room->piece, .bytes = room->bytes};

	if (room->piece < 0) {
		entry->payload = (uint16_t)room->bytes;
		shm_conn_commit(conn, ring, entry);
		return;
	}
	memcpy(room->payload, &piece, sizeof(piece));
	entry->payload = sizeof(piece);
	entry->flags |= SHM_FLAG_PIECE;
	shm_conn_commit(conn, ring, entry);
	loans->loan[(loans->first + loans->count++) % SHM_LOANS] =
		(struct shm_loan){.end = ring->produced, .piece = piece.index};
	/* the peer copies it out while we fill the next one */
	shm_producer_publish(ring);
	shm_conn_wake(conn);
}

int shm_bytes_find(const struct shm_conn *conn, const struct shm_entry *entry,
		   const uint8_t *payload, struct shm_bytes *bytes)
{
	struct shm_piece piece;

	*bytes = (struct shm_bytes){payload, entry->payload};
	if (!(entry->flags & SHM_FLAG_PIECE))
		return 0;
	if (entry->payload != sizeof(piece) || !conn->bulk.in)
		return -EPROTO;
	shm_read_once(&piece, payload, sizeof(piece));
	if (piece.index >= SHM_PIECES || !piece.bytes || piece.bytes > SHM_PIECE)
		return -EPROTO;
	*bytes = (struct shm_bytes){conn->bulk.in->memory + (size_t)piece.index * SHM_PIECE,
				    piece.bytes};
	return 0;
}

void shm_bytes_release(struct shm_conn *conn, struct shm_consumer *ring,
		       const struct shm_entry *entry)
{
	if (!(entry->flags & SHM_FLAG_PIECE))
		return;
	shm_consumer_give_back(ring);
	conn->bulk.is_space_returned = true;
}

/* --- packets --- */

/* Answers whether this side has the pool: with its secret, or with zeros. */
static void answer_pool(struct shm_conn *conn, const struct shm_wire_pool *wire,
			const struct shm_pool *pool)
{
	union shm_wire reply;

	shm_wire_prepare(&reply, SHM_WIRE_POOL_HAVE);
	reply.pool.number = wire->number;
	if (pool)
		memcpy(reply.pool.secret, pool->secret, sizeof(reply.pool.secret));
	/* if it cannot be sent, the peer continues with what the ring itself holds */
	(void)shm_conn_send(conn, &reply, NULL, 0);
}

/* Uses the peer's pool from now on; no earlier entry names a piece of another one. */
static void use_theirs(struct shm_conn *conn, const struct shm_wire_pool *wire,
		       struct shm_pool *pool)
{
	shm_pool_put(conn->engine, conn->bulk.in);
	conn->bulk.in = pool;
	answer_pool(conn, wire, pool);
}

void shm_pool_named(struct shm_conn *conn, const struct shm_wire_pool *wire)
{
	use_theirs(conn, wire, shm_pool_find_theirs(conn, wire->number));
}

void shm_pool_given(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd)
{
	use_theirs(conn, wire, shm_pool_map(conn, wire, fd));
}

/* The peer says that it does not have our pool. */
static void offer_denied(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;

	shm_pool_put(conn->engine, bulk->out);
	bulk->out = NULL;
	if (bulk->state == SHM_BULK_GIVEN)
		bulk->state = SHM_BULK_REFUSED;
	else if (bulk->was_verified)
		offer_pool(conn);
	else /* the packet that sends it may be on the way: ask again with the next large piece */
		bulk->state = SHM_BULK_NONE;
}

void shm_pool_answered(struct shm_conn *conn, const struct shm_wire_pool *wire)
{
	struct shm_bulk *bulk = &conn->bulk;

	if ((bulk->state != SHM_BULK_NAMED && bulk->state != SHM_BULK_GIVEN) ||
	    wire->number != bulk->out->number)
		return;
	if (memcmp(wire->secret, bulk->out->secret, sizeof(wire->secret)) != 0) {
		offer_denied(conn);
		return;
	}
	shm_pool_set_verified(conn->engine, bulk->out);
	bulk->state = SHM_BULK_READY;
}
