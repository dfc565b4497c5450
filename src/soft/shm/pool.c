// SPDX-License-Identifier: BSD-2-Clause
/* Pools of large pieces: see pool.h. */
#include "soft/shm/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "core/base/cancel.h"
#include "core/base/slab.h"
#include "soft/fds.h"
#include "soft/shm/conn.h"

#define POOL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define LOST_MOST (SHM_PIECES / 4)

struct shm_pool {
	/* constant after creation */
	uint64_t number;
	uint8_t proof[SHM_TOKEN_SIZE];
	pid_t pid;		      /* of the process at the other end, as the kernel says */
	uint8_t peer[SHM_TOKEN_SIZE]; /* ours: the token of the peer's engine */
	bool is_ours;
	uint8_t *memory;

	/* engine lock */
	struct shm_pool *next;
	uint32_t refs;	/* connections */
	uint32_t lost;	/* ours: pieces that are not given back any more */
	bool is_proven; /* ours: the peer has shown the proof, so it has the pool */
	/* ours: the pieces that nobody holds, the one that was used last on top; its lines may
	 * still be in a cache */
	uint32_t free_count;
	uint8_t free[SHM_PIECES];
};

/* --- the pools of an engine --- */

static void *map_pool(int fd, int prot, int flags)
{
	void *memory = mmap(NULL, SHM_POOL_SIZE, prot, MAP_SHARED | flags, fd, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* GEN-34: a child must not keep it */
	if (madvise(memory, SHM_POOL_SIZE, MADV_DONTFORK) < 0) {
		munmap(memory, SHM_POOL_SIZE);
		return NULL;
	}
	return memory;
}

static void pool_free(struct shm_pool *pool)
{
	if (pool->memory)
		munmap(pool->memory, SHM_POOL_SIZE);
	core_slab_free(pool, sizeof(*pool));
}

/* Puts it on the engine's list with one reference; false: there are too many. */
static bool pool_list(struct shm_engine *engine, struct shm_pool *pool)
{
	bool is_room;

	core_lock_acquire(&engine->lock);
	is_room = engine->pool_count < SHM_POOLS;
	if (is_room) {
		pool->refs = 1;
		pool->next = engine->pools;
		engine->pools = pool;
		engine->pool_count++;
	}
	core_lock_release(&engine->lock);
	return is_room;
}

static void pool_put(struct shm_engine *engine, struct shm_pool *pool)
{
	struct shm_pool **at;
	bool is_last;

	if (!pool)
		return;
	core_lock_acquire(&engine->lock);
	is_last = --pool->refs == 0;
	if (is_last) {
		for (at = &engine->pools; *at != pool; at = &(*at)->next)
			;
		*at = pool->next;
		engine->pool_count--;
	}
	core_lock_release(&engine->lock);
	if (is_last)
		pool_free(pool);
}

/* Is that pool for, or of, the process at the other end? One in another name space of process
 * numbers cannot be told from others. */
static bool is_same_process(const struct shm_pool *pool, const struct shm_conn *conn)
{
	return pool->pid > 0 && pool->pid == conn->remote.pid;
}

/* Ours for the peer of that connection, with a reference; NULL: none that can be shared. */
static struct shm_pool *find_ours(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;
	struct shm_pool *pool;

	core_lock_acquire(&engine->lock);
	for (pool = engine->pools; pool; pool = pool->next)
		if (pool->is_ours && pool->lost < LOST_MOST && is_same_process(pool, conn) &&
		    memcmp(pool->peer, conn->remote.token, sizeof(pool->peer)) == 0)
			break;
	if (pool)
		pool->refs++;
	core_lock_release(&engine->lock);
	return pool;
}

/* The peer's pool of that number if it is mapped here already, with a reference, or NULL. */
static struct shm_pool *find_theirs(struct shm_conn *conn, uint64_t number)
{
	struct shm_engine *engine = conn->engine;
	struct shm_pool *pool;

	core_lock_acquire(&engine->lock);
	for (pool = engine->pools; pool; pool = pool->next)
		if (!pool->is_ours && pool->number == number && is_same_process(pool, conn))
			break;
	if (pool)
		pool->refs++;
	core_lock_release(&engine->lock);
	return pool;
}

/* Has the peer shown, here or on another connection, that it has that pool of ours? */
static bool is_proven(struct shm_engine *engine, const struct shm_pool *pool)
{
	bool is_so;

	core_lock_acquire(&engine->lock);
	is_so = pool->is_proven;
	core_lock_release(&engine->lock);
	return is_so;
}

/* Has it lost so many pieces that another one is better? */
static bool is_worn(struct shm_engine *engine, const struct shm_pool *pool)
{
	bool is_so;

	core_lock_acquire(&engine->lock);
	is_so = pool->lost >= LOST_MOST;
	core_lock_release(&engine->lock);
	return is_so;
}

/* Of ours, for the peer of that connection; the descriptor is the caller's to close. */
static struct shm_pool *pool_create(struct shm_conn *conn, int *fd_out)
{
	struct shm_pool *pool = core_slab_alloc(sizeof(*pool));
	uint32_t i;
	int fd = -1;

	if (!pool)
		return NULL;
	pool->is_ours = true;
	pool->pid = conn->remote.pid;
	memcpy(pool->peer, conn->remote.token, sizeof(pool->peer));
	if (getrandom(&pool->number, sizeof(pool->number), 0) != sizeof(pool->number) ||
	    getrandom(pool->proof, sizeof(pool->proof), 0) != sizeof(pool->proof))
		goto err;
	for (i = 0; i < SHM_PIECES; i++)
		pool->free[pool->free_count++] = (uint8_t)(SHM_PIECES - 1 - i);
	fd = soft_fd_memfd("opendat-pool", SHM_POOL_SIZE);
	if (fd < 0)
		goto err;
	pool->memory = map_pool(fd, PROT_READ | PROT_WRITE, MAP_POPULATE);
	/* ours is the only mapping that may write */
	if (!pool->memory || fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | POOL_SEALS) < 0 ||
	    !pool_list(conn->engine, pool))
		goto err;
	*fd_out = fd;
	return pool;
err:
	soft_fd_close(fd);
	pool_free(pool);
	return NULL;
}

/* A peer's, mapped from what it has sent. */
static struct shm_pool *pool_map(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd)
{
	struct shm_pool *pool = core_slab_alloc(sizeof(*pool));
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat info;

	if (!pool)
		return NULL;
	pool->number = wire->number;
	pool->pid = conn->remote.pid;
	memcpy(pool->proof, wire->proof, sizeof(pool->proof));
	/* sealed, or the peer could cut the file under us (SIGBUS) */
	if (seals >= 0 && (seals & POOL_SEALS) == POOL_SEALS && fstat(fd, &info) == 0 &&
	    S_ISREG(info.st_mode) && info.st_size == (off_t)SHM_POOL_SIZE)
		pool->memory = map_pool(fd, PROT_READ, 0);
	if (pool->memory && pool_list(conn->engine, pool))
		return pool;
	pool_free(pool);
	return NULL;
}

/* --- pieces --- */

static int piece_take(struct shm_engine *engine, struct shm_pool *pool)
{
	int piece = -1;

	core_lock_acquire(&engine->lock);
	if (pool->free_count)
		piece = pool->free[--pool->free_count];
	core_lock_release(&engine->lock);
	return piece;
}

static void piece_put(struct shm_engine *engine, struct shm_pool *pool, uint32_t piece)
{
	core_lock_acquire(&engine->lock);
	pool->free[pool->free_count++] = (uint8_t)piece;
	core_lock_release(&engine->lock);
}

/* Takes back what the peer has given back; -EPROTO. */
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
		piece_put(conn->engine, conn->bulk.out, oldest->piece);
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

/* What the ring holds when the connection is gone. */
static void settle(struct shm_conn *conn, struct shm_loans *loans, bool is_safe)
{
	struct shm_pool *pool = conn->bulk.out;
	struct shm_engine *engine = conn->engine;

	for (; loans->count; loans->first++, loans->count--) {
		if (is_safe) {
			piece_put(engine, pool, loans->loan[loans->first % SHM_LOANS].piece);
			continue;
		}
		core_lock_acquire(&engine->lock);
		pool->lost++;
		core_lock_release(&engine->lock);
	}
}

void shm_pool_forget(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;

	if (bulk->requests.count || bulk->responses.count) {
		/* acquire: pairs with the release in shm_conn_close; what it took is taken */
		bool is_safe = conn->is_peer_gone ||
			       atomic_load_explicit(&conn->theirs->is_over, memory_order_acquire);

		(void)shm_pool_reclaim(conn);
		settle(conn, &bulk->requests, is_safe);
		settle(conn, &bulk->responses, is_safe);
	}
	pool_put(conn->engine, bulk->out);
	pool_put(conn->engine, bulk->in);
}

/* --- entries --- */

/* Asks the peer whether it has our pool, or gives it one. */
static void offer(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;
	/* a post comes here: see cancel.h */
	int cancel = core_cancel_off();
	union shm_wire wire;
	int fd = -1;

	/* the first time one that other connections use, then, when the peer does not know it, a
	 * new one */
	if (bulk->state == SHM_BULK_NONE)
		bulk->out = find_ours(conn);
	shm_wire_prepare(&wire, bulk->out ? SHM_WIRE_POOL_NAME : SHM_WIRE_POOL_GIVE);
	bulk->state = bulk->out ? SHM_BULK_NAMED : SHM_BULK_GIVEN;
	if (!bulk->out) {
		bulk->out = pool_create(conn, &fd);
		if (bulk->out)
			memcpy(wire.pool.proof, bulk->out->proof, sizeof(wire.pool.proof));
	}
	if (bulk->out)
		wire.pool.number = bulk->out->number;
	if (!bulk->out || shm_conn_send(conn, &wire, &fd, fd >= 0) < 0)
		bulk->state = SHM_BULK_REFUSED;
	soft_fd_close(fd);
	core_cancel_restore(cancel);
}

/*
 * Lets go of a pool that has lost many pieces, so that another one is offered. No entry names it
 * any more, and the peer takes what we offer next in its place.
 */
static void leave_worn(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;

	if (bulk->state != SHM_BULK_READY || bulk->requests.count || bulk->responses.count ||
	    !is_worn(conn->engine, bulk->out))
		return;
	pool_put(conn->engine, bulk->out);
	bulk->out = NULL;
	bulk->state = SHM_BULK_NONE;
}

/* A piece for that ring, or -1; *is_coming: one will be given back. */
static int take_piece(struct shm_conn *conn, const struct shm_loans *loans, bool *is_coming)
{
	struct shm_bulk *bulk = &conn->bulk;
	int piece = -1;

	*is_coming = false;
	leave_worn(conn);
	if (bulk->state == SHM_BULK_NONE)
		offer(conn);
	if (bulk->state != SHM_BULK_READY)
		return -1;
	if (loans->count < SHM_LOANS)
		piece = piece_take(conn->engine, bulk->out);
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
		shm_room_leave(conn, room);
		return rc;
	}
	room->to = room->piece >= 0 ? conn->bulk.out->memory + (size_t)room->piece * SHM_PIECE
				    : room->payload;
	return 1;
}

void shm_room_leave(struct shm_conn *conn, const struct shm_room *room)
{
	if (room->piece >= 0)
		piece_put(conn->engine, conn->bulk.out, (uint32_t)room->piece);
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

int shm_bytes_of(const struct shm_conn *conn, const struct shm_entry *entry, const uint8_t *payload,
		 struct shm_bytes *bytes)
{
	struct shm_piece piece;

	*bytes = (struct shm_bytes){payload, entry->payload};
	if (!(entry->flags & SHM_FLAG_PIECE))
		return 0;
	if (entry->payload != sizeof(piece) || !conn->bulk.in)
		return -EPROTO;
	memcpy(&piece, payload, sizeof(piece));
	if (piece.index >= SHM_PIECES || !piece.bytes || piece.bytes > SHM_PIECE)
		return -EPROTO;
	*bytes = (struct shm_bytes){conn->bulk.in->memory + (size_t)piece.index * SHM_PIECE,
				    piece.bytes};
	return 0;
}

void shm_bytes_taken(struct shm_conn *conn, struct shm_consumer *ring,
		     const struct shm_entry *entry)
{
	if (!(entry->flags & SHM_FLAG_PIECE))
		return;
	shm_consumer_give_back(ring);
	conn->bulk.is_giving = true;
}

/* --- packets --- */

/* Has it, or not (zeros). */
static void answer(struct shm_conn *conn, const struct shm_wire_pool *wire,
		   const struct shm_pool *pool)
{
	union shm_wire reply;

	shm_wire_prepare(&reply, SHM_WIRE_POOL_HAVE);
	reply.pool.number = wire->number;
	if (pool)
		memcpy(reply.pool.proof, pool->proof, sizeof(reply.pool.proof));
	/* one that is lost leaves the peer with what the ring itself takes */
	(void)shm_conn_send(conn, &reply, NULL, 0);
}

/* The peer's pool from now on; what it sent before has no piece in another one. */
static void use_theirs(struct shm_conn *conn, const struct shm_wire_pool *wire,
		       struct shm_pool *pool)
{
	pool_put(conn->engine, conn->bulk.in);
	conn->bulk.in = pool;
	answer(conn, wire, pool);
}

void shm_pool_named(struct shm_conn *conn, const struct shm_wire_pool *wire)
{
	use_theirs(conn, wire, find_theirs(conn, wire->number));
}

void shm_pool_given(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd)
{
	use_theirs(conn, wire, pool_map(conn, wire, fd));
}

/* It is no pool of the peer's, so far. */
static void denied(struct shm_conn *conn)
{
	struct shm_bulk *bulk = &conn->bulk;
	bool is_in_use = is_proven(conn->engine, bulk->out);

	pool_put(conn->engine, bulk->out);
	bulk->out = NULL;
	if (bulk->state == SHM_BULK_GIVEN)
		bulk->state = SHM_BULK_REFUSED;
	else if (is_in_use)
		offer(conn);
	else /* the packet that gives it is under way: ask again with the next large piece */
		bulk->state = SHM_BULK_NONE;
}

void shm_pool_answered(struct shm_conn *conn, const struct shm_wire_pool *wire)
{
	struct shm_bulk *bulk = &conn->bulk;

	if ((bulk->state != SHM_BULK_NAMED && bulk->state != SHM_BULK_GIVEN) ||
	    wire->number != bulk->out->number)
		return;
	if (memcmp(wire->proof, bulk->out->proof, sizeof(wire->proof)) != 0) {
		denied(conn);
		return;
	}
	core_lock_acquire(&conn->engine->lock);
	bulk->out->is_proven = true;
	core_lock_release(&conn->engine->lock);
	bulk->state = SHM_BULK_READY;
}
