// SPDX-License-Identifier: BSD-2-Clause
/* Direct copies between the memory of the peer and ours (direct.h). */
#include "soft/shm/transfer/direct.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/fence.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/gate.h"
#include "soft/key.h"
#include "soft/shm/conn.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/rx.h"

/* announcements of mapped memory after which the owner is asked to run the fences */
#define UNFENCED_AFTER 64u
/* how long we trust that the peer's process number still belongs to the peer */
#define ALIVE_NS 100000000u

/* --- announcing (models/keys.pml, models/close.pml) --- */

/* Omits the fences from now on. The owner must see `is_unfenced` before the next announcement. */
static void omit_fences(struct shm_conn *conn)
{
	if (!conn->can_skip_fence)
		return;
	atomic_store_explicit(&conn->mine->is_unfenced, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	conn->is_unfenced = true;
}

int shm_announce(struct shm_conn *conn, const struct shm_map *map, uint32_t key,
		 enum soft_right right, uint64_t address, uint64_t length)
{
	if (map && !conn->is_unfenced && ++conn->announced >= UNFENCED_AFTER)
		omit_fences(conn);
	atomic_store_explicit(&conn->mine->announce, key, memory_order_relaxed);
	/*
	 * full fence: pairs with those of soft_keys_invalidate and shm_conn_close; else the owner
	 * could miss the announcement while we miss the dead key. It is omitted only for mapped
	 * memory, whose key the owner has marked before it gave us the memory (map.c)
	 */
	core_fence_light(map && conn->is_unfenced);
	if (atomic_load_explicit(&conn->theirs->revoked, memory_order_acquire))
		return -EAGAIN;
	return soft_key_check(soft_view_entries(conn->remote.view), key, right, conn->remote.pz,
			      address, length);
}

void shm_announce_end(struct shm_conn *conn)
{
	/* release: the copy is over before the owner sees this */
	atomic_store_explicit(&conn->mine->announce, 0, memory_order_release);
}

bool shm_is_peer_alive(struct shm_conn *conn)
{
	uint64_t now = core_now_ns();

	/* checked before each piece: after an exec the number belongs to another program */
	if (soft_view_is_orphan(conn->remote.view))
		return false;
	/* without that mark a recent check is enough: the kernel reuses a number only long after
	 * the socket has ended */
	if (now - conn->remote.alive_ns < ALIVE_NS)
		return true;
	if (conn->is_peer_gone || shm_conn_has_hung_up(conn))
		return false;
	conn->remote.alive_ns = now;
	return true;
}

/* --- copies by the kernel --- */

static int copy_once(struct shm_conn *conn, uint64_t address, const struct soft_pins *pins,
		     uint64_t len, bool is_write)
{
	pid_t id = conn->remote.thread ? conn->remote.thread : conn->remote.pid;

	if (is_write)
		return soft_copy_to_process(&conn->theirs->revoked, id, address, pins->iov,
					    (int)pins->count, len);
	return soft_copy_from_process(id, address, pins->iov, (int)pins->count, len);
}

/*
 * The number of a process is that of its main thread, and the kernel finds no memory by it when
 * that thread has ended. Takes the number of the thread that holds the guard, which lasts as long
 * as the engine. False: the kernel finds the peer's memory by no number that we know.
 */
static bool find_thread(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;
	pid_t thread = soft_view_thread(remote->view);

	if (!thread || !soft_copy_probe(thread, remote->token_address, remote->token))
		return false;
	remote->thread = thread;
	return true;
}

int shm_copy_by_kernel(struct shm_conn *conn, uint64_t address, const struct soft_pins *pins,
		       uint64_t len, bool is_write)
{
	int rc;

	if (!shm_is_peer_alive(conn))
		return -EAGAIN;
	rc = copy_once(conn, address, pins, len, is_write);
	if (rc == -ESRCH && find_thread(conn))
		rc = copy_once(conn, address, pins, len, is_write);
	/* the mark of a process that ends is set before its memory is gone */
	if (rc == -ESRCH && !shm_is_peer_alive(conn))
		rc = -EAGAIN;
	return rc;
}

bool shm_is_refused(struct shm_conn *conn, int rc)
{
	/* not permitted; no number leads to the memory of the peer any more; no memory for it */
	if (rc != -EPERM && rc != -ESRCH && rc != -ENOMEM)
		return false;
	if (!conn->remote.is_refusal_logged)
		core_log(CORE_LOG_MEMORY,
			 "process %d: the kernel does not copy (%s), the ring takes the bytes",
			 (int)conn->remote.pid, strerror(-rc));
	conn->remote.is_refusal_logged = true;
	return true;
}

/* --- RDMA --- */

bool shm_path_is_ring(const struct shm_conn *conn)
{
	return conn->engine->settings.copy == CORE_COPY_RING ||
	       !(conn->remote.has_cma || conn->remote.maps);
}

enum shm_path shm_path_choose(struct shm_conn *conn, const struct core_req *req,
			      struct shm_map **map_out)
{
	*map_out = NULL;
	if (shm_path_is_ring(conn))
		return SHM_PATH_RING;
	if (conn->engine->settings.copy != CORE_COPY_CMA && conn->remote.maps) {
		struct shm_map *map = shm_map_find(conn, req->remote.rmr_context);

		if (map && (map->is_writable || req->op == CORE_OP_RDMA_READ)) {
			*map_out = map;
			return SHM_PATH_MAP;
		}
	}
	return conn->remote.has_cma ? SHM_PATH_CMA : SHM_PATH_RING;
}

/* Between pinned segments and the mapped memory of the peer. */
static int copy_mapped(struct shm_conn *conn, uint8_t *memory, const struct soft_pins *pins,
		       bool is_write)
{
	soft_gate *gate = &conn->theirs->revoked;
	uint32_t i;

	for (i = 0; i < pins->count; i++) {
		const struct iovec *iov = &pins->iov[i];
		int rc;

		if (!is_write)
			rc = soft_copy_to_consumer(iov->iov_base, memory, iov->iov_len);
		else if (soft_is_library_thread)
			rc = soft_copy_safe(gate, memory, iov->iov_base, iov->iov_len);
		else
			rc = soft_copy_gated(gate, memory, iov->iov_base, iov->iov_len);
		if (rc < 0)
			return rc;
		memory += iov->iov_len;
	}
	return 0;
}

/* Copies one announced piece of an RDMA request: 0, or -errno as shm_direct_run. */
static int direct_piece(struct shm_conn *conn, const struct core_req *req, struct shm_map *map,
			const struct soft_pins *pins, uint64_t offset, uint64_t len)
{
	bool is_write = req->op == CORE_OP_RDMA_WRITE;
	uint64_t target = req->remote.target_address;
	uint8_t *memory;
	int rc;

	/* checks the whole range each time: a refused request changes no byte (DTO-94) */
	rc = shm_announce(conn, map, req->remote.rmr_context,
			  is_write ? SOFT_RIGHT_REMOTE_WRITE : SOFT_RIGHT_REMOTE_READ, target,
			  req->len);
	if (rc < 0)
		goto out;
	memory = map ? shm_map_at(map, target, req->len) : NULL;
	if (memory)
		rc = copy_mapped(conn, memory + offset, pins, is_write);
	else if (conn->remote.has_cma)
		rc = shm_copy_by_kernel(conn, target + offset, pins, len, is_write);
	else
		rc = -ENOLINK;
	if (shm_is_refused(conn, rc)) {
		/* a lack of memory may be over with the next request */
		conn->remote.has_cma &= rc == -ENOMEM;
		rc = -ENOLINK;
	}
out:
	shm_announce_end(conn);
	return rc;
}

int shm_direct_run(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		   struct shm_map *map, uint64_t *budget)
{
	uint64_t *offset = &req->transport.word[1];
	uint64_t piece = map ? SHM_MAP_PIECE : SHM_CMA_PIECE;
	enum core_mem_use use = req->op == CORE_OP_RDMA_WRITE ? CORE_MEM_SOURCE : CORE_MEM_TARGET;

	while (*offset < req->len) {
		uint64_t len = req->len - *offset;
		struct soft_pins pins;
		int rc;

		if (!*budget)
			return 0;
		if (len > piece)
			len = piece;
		if (len > *budget)
			len = *budget;
		if (soft_pin(ep, req->iov, req->segments, *offset, len, use, &pins) < 0)
			return -EFAULT;
		rc = direct_piece(conn, req, map, &pins, *offset, len);
		/* a mapping is never gone: then the kernel cannot access our memory, but we can */
		if (rc == -EFAULT && !soft_is_gone(&pins, use))
			rc = map ? -ENOLINK : -EACCES;
		soft_unpin(&pins);
		if (rc < 0)
			return rc;
		*offset += len;
		*budget -= len;
	}
	return 1;
}
