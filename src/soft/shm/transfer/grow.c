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

#ifndef MADV_POPULATE_WRITE /* older headers */
#define MADV_POPULATE_WRITE 23
#endif

/*
 * The whole file, by way of the mapping of its first part: an old size of 0 makes a second mapping
 * and leaves the first one. Like that one, it does not go to children (MADV_DONTFORK).
 */
static struct shm_file *map_file(struct shm_segment *segment)
{
	void *memory = mremap(segment, 0, sizeof(struct shm_file), MREMAP_MAYMOVE);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool can_map(const struct shm_grow *grow)
{
	return !grow->is_small && !grow->is_refused;
}

static bool is_mapped(struct shm_conn *conn)
{
	struct shm_grow *grow = &conn->grow;
	_Atomic uint32_t *count = &conn->engine->grown_count;
	uint32_t most = conn->remote.is_trusted ? SHM_GROWN_MAX : SHM_GROWN_STRANGERS;

	if (grow->file || !can_map(grow))
		return grow->file;
	/* relaxed: only the count matters */
	if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < most) {
		grow->file = map_file(conn->segment);
		grow->is_refused = !grow->file;
	}
	if (!grow->file)
		atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
	return grow->file;
}

/*
 * Takes the memory now: later, a shortage would end the process by SIGBUS. Kernels before 5.14
 * cannot.
 */
static bool has_memory(struct shm_conn *conn)
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
	    !is_mapped(conn))
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
	if (!has_peer_set(conn, SHM_LARGE_MAPPED) || !is_mapped(conn) || !has_memory(conn) ||
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
