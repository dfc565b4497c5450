// SPDX-License-Identifier: BSD-2-Clause
/*
 * The pools of an engine (pool.h).
 */
#include "soft/shm/transfer/pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/region.h"
#include "soft/shm/conn.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/wire.h"

#define POOL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define LOST_MAX (SHM_PIECES / 4)

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

/* Adds it to the engine's list with one reference; false: there are too many. */
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

void shm_pool_put(struct shm_engine *engine, struct shm_pool *pool)
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

/*
 * Is that pool for, or of, the process at the other end? Processes of another PID namespace have no
 * number, so they cannot be distinguished.
 */
static bool is_same_process(const struct shm_pool *pool, const struct shm_conn *conn)
{
	return pool->pid > 0 && pool->pid == conn->remote.pid;
}

struct shm_pool *shm_pool_find_ours(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;
	struct shm_pool *pool;

	core_lock_acquire(&engine->lock);
	for (pool = engine->pools; pool; pool = pool->next)
		if (pool->is_ours && pool->lost < LOST_MAX && is_same_process(pool, conn) &&
		    memcmp(pool->peer, conn->remote.token, sizeof(pool->peer)) == 0)
			break;
	if (pool)
		pool->refs++;
	core_lock_release(&engine->lock);
	return pool;
}

struct shm_pool *shm_pool_find_theirs(struct shm_conn *conn, uint64_t number)
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

bool shm_pool_is_verified(struct shm_engine *engine, const struct shm_pool *pool)
{
	bool is_so;

	core_lock_acquire(&engine->lock);
	is_so = pool->is_verified;
	core_lock_release(&engine->lock);
	return is_so;
}

bool shm_pool_is_depleted(struct shm_engine *engine, const struct shm_pool *pool)
{
	bool is_so;

	core_lock_acquire(&engine->lock);
	is_so = pool->lost >= LOST_MAX;
	core_lock_release(&engine->lock);
	return is_so;
}

void shm_pool_set_verified(struct shm_engine *engine, struct shm_pool *pool)
{
	core_lock_acquire(&engine->lock);
	pool->is_verified = true;
	core_lock_release(&engine->lock);
}

struct shm_pool *shm_pool_create(struct shm_conn *conn, int *fd_out)
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
	    getrandom(pool->secret, sizeof(pool->secret), 0) != sizeof(pool->secret))
		goto err;
	for (i = 0; i < SHM_PIECES; i++)
		pool->free[pool->free_count++] = (uint8_t)i;
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

struct shm_pool *shm_pool_map(struct shm_conn *conn, const struct shm_wire_pool *wire, int fd)
{
	struct shm_pool *pool = core_slab_alloc(sizeof(*pool));
	struct stat info;

	if (!pool)
		return NULL;
	pool->number = wire->number;
	pool->pid = conn->remote.pid;
	memcpy(pool->secret, wire->secret, sizeof(pool->secret));
	/* else the peer could truncate the file under us, or take its pages away (SIGBUS) */
	if (soft_region_is_safe(fd, POOL_SEALS) && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
	    info.st_size == (off_t)SHM_POOL_SIZE)
		pool->memory = map_pool(fd, PROT_READ, 0);
	if (pool->memory && pool_list(conn->engine, pool))
		return pool;
	pool_free(pool);
	return NULL;
}

/* --- pieces --- */

int shm_pool_take_piece(struct shm_engine *engine, struct shm_pool *pool)
{
	int piece = -1;

	core_lock_acquire(&engine->lock);
	if (pool->free_count) {
		piece = pool->free[pool->free_first++ % SHM_PIECES];
		pool->free_count--;
	}
	core_lock_release(&engine->lock);
	return piece;
}

void shm_pool_put_piece(struct shm_engine *engine, struct shm_pool *pool, uint32_t piece)
{
	core_lock_acquire(&engine->lock);
	pool->free[(pool->free_first + pool->free_count++) % SHM_PIECES] = (uint8_t)piece;
	core_lock_release(&engine->lock);
}

void shm_pool_lose_piece(struct shm_engine *engine, struct shm_pool *pool)
{
	core_lock_acquire(&engine->lock);
	pool->lost++;
	core_lock_release(&engine->lock);
}
