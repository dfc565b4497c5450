// SPDX-License-Identifier: BSD-2-Clause
/* Larger request rings (grow.h). */
#include "soft/shm/transfer/grow.h"

#include <errno.h>
#include <sys/mman.h>

#include "soft/shm/conn.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/progress.h"

static bool can_map(const struct shm_grow *grow)
{
	return !grow->is_small && !grow->is_refused;
}

/*
 * Maps the whole file, by way of the mapping of its first part: an old size of 0 makes a second
 * mapping and leaves the first one. Like that one, it does not go to children (MADV_DONTFORK).
 * False: there is no place now, or the kernel has refused it.
 */
static bool map_file(struct shm_conn *conn)
{
	_Atomic uint32_t *count = &conn->engine->grown_count;
	uint32_t most = conn->remote.is_trusted ? SHM_GROWN_MAX : SHM_GROWN_STRANGERS;
	struct shm_grow *grow = &conn->grow;
	void *memory;

	if (grow->file)
		return true;
	/* relaxed: only the count matters */
	if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < most) {
		memory = mremap(conn->segment, 0, sizeof(*grow->file), MREMAP_MAYMOVE);
		if (memory != MAP_FAILED) {
			grow->file = memory;
			return true;
		}
		grow->is_refused = true;
	}
	atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
	return false;
}

/*
 * Takes the memory now: later, a shortage would end the process by SIGBUS. Kernels before 5.14
 * cannot.
 */
static bool take_memory(struct shm_conn *conn)
{
	struct shm_grow *grow = &conn->grow;

	grow->is_refused =
		madvise(grow->file->large[conn->self], SHM_LARGE_RING, MADV_POPULATE_WRITE) < 0 &&
		errno != EINVAL;
	return !grow->is_refused;
}

/* Sets a bit of the word that only this side writes. */
static void set_large(struct shm_conn *conn, enum shm_large bit)
{
	_Atomic uint32_t *word = &conn->mine->large;

	/* relaxed: nothing else is read because of it */
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) | bit,
			      memory_order_relaxed);
}

static bool has_peer_set(const struct shm_conn *conn, enum shm_large bit)
{
	return atomic_load_explicit(&conn->theirs->large, memory_order_relaxed) & bit;
}

void shm_grow_in(struct shm_conn *conn)
{
	struct shm_grow *grow = &conn->grow;

	if (grow->is_in || !can_map(grow) || !has_peer_set(conn, SHM_LARGE_WANTED) ||
	    !map_file(conn))
		return;
	grow->is_in = true;
	conn->request_in.large = grow->file->large[1 - conn->self];
	set_large(conn, SHM_LARGE_MAPPED);
}

/* A request may also wait for a piece of the pool. */
static bool is_ring_full(const struct shm_producer *ring)
{
	return ring->produced - ring->consumed > ring->size / 2;
}

void shm_grow_out(struct shm_conn *conn)
{
	struct shm_grow *grow = &conn->grow;

	if (grow->is_out || !can_map(grow))
		return;
	if (grow->full < SHM_GROW_AFTER) {
		if (is_ring_full(&conn->request_out) && ++grow->full == SHM_GROW_AFTER)
			set_large(conn, SHM_LARGE_WANTED);
		return;
	}
	if (!has_peer_set(conn, SHM_LARGE_MAPPED) || !map_file(conn) || !take_memory(conn) ||
	    !shm_producer_grow(&conn->request_out, grow->file->large[conn->self]))
		return;
	grow->is_out = true;
	shm_conn_wake(conn);
}

void shm_grow_end(struct shm_conn *conn)
{
	if (!conn->grow.file)
		return;
	munmap(conn->grow.file, sizeof(*conn->grow.file));
	atomic_fetch_sub_explicit(&conn->engine->grown_count, 1, memory_order_relaxed);
}
