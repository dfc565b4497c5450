// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies between the memory of the peer and ours without the peer's help. Each piece of a copy is
 * announced in the shared segment, then the key is checked in the peer's table, then the bytes
 * move. The owner invalidates a key, then waits for announcements of it, so nothing moves through
 * the key after dat_lmr_free has returned there. Pieces are small to keep that wait short.
 */
#ifndef SHM_DIRECT_H
#define SHM_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/transport.h"
#include "soft/key.h"
#include "soft/pins.h"
#include "soft/shm/transfer/rx.h"

struct shm_conn;
struct shm_map;

#define SHM_MAP_PIECE (64u * 1024u) /* bytes that one announcement covers */
#define SHM_CMA_PIECE (256u * 1024u)

/* --- announcements --- */

/*
 * Announces the key, then checks it: 0, -EACCES, or -EAGAIN (the peer is ending the connection).
 * After 0 the copy may be made. shm_announce_end() follows in every case. map: the mapping of that
 * key, or NULL.
 */
int shm_announce(struct shm_conn *conn, const struct shm_map *map, uint32_t key,
		 enum soft_right right, uint64_t address, uint64_t length);
void shm_announce_end(struct shm_conn *conn);

/* --- RDMA --- */

/* A thread of the peer that polled so recently polls now. */
#define SHM_POLLED_NS 10000u
/* One that polled so recently may be placing large RDMA. */
#define SHM_PLACING_NS 500000u

enum shm_path {
	SHM_PATH_MAP,
	SHM_PATH_CMA,
	SHM_PATH_RING,
};
/* Does every RDMA request of the connection take the ring? */
bool shm_path_is_ring(const struct shm_conn *conn);
/*
 * May RDMA of that length to memory that is not mapped take the ring, because threads of the peer
 * poll now? Then the peer's poll places the bytes, sooner than the kernel would copy them.
 */
bool shm_path_is_polled(const struct shm_conn *conn, uint64_t len);
enum shm_path shm_path_choose(struct shm_conn *conn, const struct core_req *req,
			      struct shm_map **map_out);
/*
 * Before we go to sleep: gives a peer that polls now the time to carry out RDMA of ours in the
 * ring. Its thread may do something else next. EP locked.
 */
void shm_direct_await(const struct shm_conn *conn);
/*
 * If RDMA of ours in the ring has made no progress since the last call, and no thread of the peer
 * polls, has the peer's service thread carry it out. is_last: no other call follows soon, so neither
 * progress nor polls matter. EP locked.
 */
void shm_direct_hurry(struct shm_conn *conn, bool is_last);
/*
 * Moves the next bytes of an RDMA request directly: > 0 finished, 0 the budget is used up,
 * -EAGAIN (wait for the peer's end), -ENOLINK (use the ring instead), -EFAULT (our memory), or
 * -EACCES (the peer's memory).
 */
int shm_direct_run(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		   struct shm_map *map, uint64_t *budget);

#endif
