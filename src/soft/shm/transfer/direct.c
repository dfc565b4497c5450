// SPDX-License-Identifier: BSD-2-Clause
/* Direct copies between the memory of the peer and ours (direct.h). */
#include "soft/shm/transfer/direct.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/fence.h"
#include "core/base/log.h"
#include "core/base/same.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/gate.h"
#include "soft/key.h"
#include "soft/shm/conn.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/publish.h"
#include "soft/shm/transfer/rx.h"

/* --- announcing (models/keys.pml, models/close.pml) --- */

/* Omits the fences from now on. The owner must see that before the next announcement. */
static void omit_fences(struct shm_conn *conn)
{
	if (!conn->wake.can_skip_fence)
		return;
	atomic_store_explicit(&conn->mine->is_unfenced, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

int shm_announce(struct shm_conn *conn, const struct shm_map *map, uint32_t key,
		 enum soft_right right, uint64_t address, uint64_t length)
{
	if (map && !shm_fence_is_unfenced(conn))
		omit_fences(conn);
	atomic_store_explicit(&conn->mine->announce, key, memory_order_relaxed);
	/*
	 * full fence: pairs with those of soft_keys_invalidate and shm_conn_close; else the owner
	 * could miss the announcement while we miss the dead key. It is omitted only for mapped
	 * memory, whose key the owner has marked before it gave us the memory (map.c)
	 */
	core_fence_light(map && shm_fence_is_unfenced(conn));
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

/* --- copies by the kernel --- */

/*
 * Copies len bytes between pinned segments of ours and the memory of the peer, whose key is
 * announced: as soft_copy_to_process and soft_copy_from_process, or -EAGAIN: the peer is dead.
 */
static int copy_by_kernel(struct shm_conn *conn, uint64_t address, const struct soft_pins *pins,
			  uint64_t len, bool is_write)
{
	pid_t thread = conn->remote.thread;
	int rc;

	/* checked before each piece: after the end or an exec the number belongs to another program */
	if (soft_view_is_orphan(conn->remote.view))
		return -EAGAIN;
	if (is_write)
		rc = soft_copy_to_process(&conn->theirs->revoked, thread, address, pins->iov,
					  (int)pins->count, len);
	else
		rc = soft_copy_from_process(thread, address, pins->iov, (int)pins->count, len);
	/* the mark of a process that ends is set before its memory is gone */
	return rc == -ESRCH && soft_view_is_orphan(conn->remote.view) ? -EAGAIN : rc;
}

/*
 * Was that the result of a copy that the kernel refuses, though the peer lives and its memory is
 * valid? The ring can take the bytes. The first time, the log says why.
 */
static bool is_refused(struct shm_conn *conn, int rc)
{
	/* not permitted; the number does not lead to the memory of the peer any more; no memory */
	if (rc != -EPERM && rc != -ESRCH && rc != -ENOMEM)
		return false;
	if (!conn->remote.is_refusal_logged)
		core_log(CORE_LOG_MEMORY,
			 "process %d: the kernel does not copy (%s), the ring takes the bytes",
			 (int)conn->remote.sender.pid, strerror(-rc));
	conn->remote.is_refusal_logged = true;
	return true;
}

/* --- RDMA --- */

bool shm_path_is_ring(const struct shm_conn *conn)
{
	return conn->engine->settings.copy == CORE_COPY_RING ||
	       (shm_conn_reach(conn) < SHM_REACH_KERNEL && !conn->remote.maps);
}

static bool is_peer_armed(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->theirs->armed, memory_order_relaxed) & 1;
}

/* Has a thread of the peer polled in the last `ns` nanoseconds? */
static bool has_peer_polled(const struct shm_conn *conn, uint64_t ns)
{
	uint64_t pulse = conn->remote.view ? soft_view_pulse(conn->remote.view) : 0;

	/* signed: the pulse may be newer than our time */
	return pulse && (int64_t)(core_now_ns() - pulse) < (int64_t)ns;
}

static bool is_peer_polling(const struct shm_conn *conn)
{
	return has_peer_polled(conn, SHM_POLLED_NS);
}

static bool has_rdma_in_ring(const struct shm_conn *conn)
{
	return conn->tx.ring_writes || conn->tx.reads;
}

bool shm_path_is_polled(const struct shm_conn *conn, uint64_t len)
{
	uint64_t limit = SHM_POLLED_NS;

	if (conn->engine->settings.copy != CORE_COPY_AUTO)
		return false;
	if (has_rdma_in_ring(conn) && !is_peer_armed(conn)) {
		/* as those in flight; a peer that stops polling arms the connection
		 * (shm_direct_hurry) */
		if (len <= SHM_LARGE_PAYLOAD)
			return true;
		/*
		 * A stream of large ones keeps a peer that sleeps from that: its service thread
		 * always has work, and copies more slowly than the kernel.
		 */
		limit = SHM_PLACING_NS;
	}
	return has_peer_polled(conn, limit);
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
	if (shm_conn_reach(conn) < SHM_REACH_KERNEL || shm_path_is_polled(conn, req->len))
		return SHM_PATH_RING;
	return SHM_PATH_CMA;
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
	bool is_write = core_op_is_write(req->op);
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
	else if (shm_conn_reach(conn) == SHM_REACH_KERNEL)
		rc = copy_by_kernel(conn, target + offset, pins, len, is_write);
	else
		rc = -ENOLINK;
	if (is_refused(conn, rc)) {
		/* a lack of memory may be over with the next request */
		if (rc != -ENOMEM)
			shm_conn_set_reach(conn, SHM_REACH_DIRECT);
		rc = -ENOLINK;
	}
out:
	shm_announce_end(conn);
	return rc;
}

void shm_direct_await(const struct shm_conn *conn)
{
	uint64_t end;

	if (!has_rdma_in_ring(conn) || is_peer_armed(conn))
		return;
	end = core_now_ns() + SHM_POLLED_NS;
	while (is_peer_polling(conn) && !shm_conn_has_work(conn) && core_now_ns() < end)
		core_spin_pause();
}

void shm_direct_hurry(struct shm_conn *conn, bool is_last)
{
	uint32_t progress =
		shm_conn_acked(conn) + shm_consumer_index(&conn->response_in) +
		atomic_load_explicit(&conn->theirs->request_consumed, memory_order_relaxed);
	bool has_none = conn->wake.progress == progress;

	conn->wake.progress = progress;
	conn->wake.is_hurried &= has_none;
	if (!(has_rdma_in_ring(conn) || shm_conn_watches(conn, SHM_WATCH_REQUEST_SPACE)) ||
	    !(has_none || is_last) || conn->wake.is_hurried || is_peer_armed(conn))
		return;
	/* the last call comes after shm_direct_await: such a peer has had its time */
	if (is_peer_polling(conn) && !(is_last && has_rdma_in_ring(conn)))
		return;
	if (shm_conn_send_word(conn, SHM_WIRE_HURRY, 0) == 0)
		conn->wake.is_hurried = true;
}

int shm_direct_run(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		   struct shm_map *map, uint64_t *budget)
{
	uint64_t *offset = &req->transport.word[1];
	uint64_t piece = map ? SHM_MAP_PIECE : SHM_CMA_PIECE;
	enum core_mem_use use = core_op_is_write(req->op) ? CORE_MEM_SOURCE : CORE_MEM_TARGET;

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
