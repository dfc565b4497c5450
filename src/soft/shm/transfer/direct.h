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
#define SHM_PULL_PIECE (1024u * 1024u) /* of a Send that is fetched: 80 us on a machine of 2024 */
#define SHM_MAP_SEND 1024u /* Sends of that length are fetched if their memory is mapped */

/* --- announcements --- */

/*
 * Announces the key, then checks it: 0, -EACCES, or -EAGAIN (the peer is ending the connection).
 * After 0 the copy may be made. shm_announce_end() follows in every case. map: the mapping of that
 * key, or NULL.
 */
int shm_announce(struct shm_conn *conn, const struct shm_map *map, uint32_t key,
		 enum soft_right right, uint64_t address, uint64_t length);
void shm_announce_end(struct shm_conn *conn);
/* Does the peer's process number still belong to the peer? */
bool shm_is_peer_alive(struct shm_conn *conn);

/*
 * Copies len bytes between pinned segments of ours and the memory of the peer, whose key is
 * announced: as soft_copy_to_process and soft_copy_from_process, or -EAGAIN: the peer is dead.
 */
int shm_copy_by_kernel(struct shm_conn *conn, uint64_t address, const struct soft_pins *pins,
		       uint64_t len, bool is_write);
/*
 * Was that the result of a copy that the kernel refuses, though the peer lives and its memory is
 * valid? The ring can take the bytes. The first time, the log says why.
 */
bool shm_is_refused(struct shm_conn *conn, int rc);

/* --- RDMA --- */

enum shm_path {
	SHM_PATH_MAP,
	SHM_PATH_CMA,
	SHM_PATH_RING,
};
/* Does every RDMA request of the connection take the ring? */
bool shm_path_is_ring(const struct shm_conn *conn);
enum shm_path shm_path_choose(struct shm_conn *conn, const struct core_req *req,
			      struct shm_map **map_out);
/*
 * Moves the next bytes of an RDMA request directly: > 0 finished, 0 the budget is used up,
 * -EAGAIN (wait for the peer's end), -ENOLINK (use the ring instead), -EFAULT (our memory), or
 * -EACCES (the peer's memory).
 */
int shm_direct_run(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		   struct shm_map *map, uint64_t *budget);

#endif
