// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory of the peer that is mapped here. On the first uses of a key we ask the peer's service
 * thread for the memory file behind it, and take another path until the answer arrives. A mapping
 * is only a faster way to the bytes: every copy still announces and checks the key. So a mapping
 * whose key is dead is harmless; it is removed when the owner reports that, or with the connection.
 */
#ifndef SHM_MAP_H
#define SHM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/shm/conn.h"

/* --- initiator; EP locked --- */

/* The mapping of that key, or NULL. */
struct shm_map *shm_map_find(struct shm_conn *conn, uint32_t key);
/* A request has used that key, which was found last, without a mapping: asks for one when it is
 * time. */
void shm_map_count_use(struct shm_conn *conn, uint32_t key);
/* The local address of `length` bytes of the peer's memory; NULL: they are not all in the map. */
static inline uint8_t *shm_map_at(const struct shm_map *map, uint64_t address, uint64_t length)
{
	uint64_t offset = address - map->address;

	if (offset > map->region.length || length > map->region.length - offset)
		return NULL;
	return map->region.base + offset;
}
/* Packets of the service thread. */
void shm_map_given(struct shm_conn *conn, const struct shm_wire_give *give, int fd);
void shm_map_refused(struct shm_conn *conn, uint32_t key);
void shm_map_gone(struct shm_conn *conn, uint32_t key);

/* --- owner --- */

/* A peer that may share our memory asks for that behind a key; service thread, no lock held. */
void shm_map_asked(struct shm_conn *conn, uint32_t key);
/* Did the peer get the memory behind a key of ours? */
bool shm_map_is_given(const struct shm_conn *conn, uint64_t key);
/* A key of ours is dead: notifies the peers that got the memory. */
void shm_map_key_dead(struct shm_engine *engine, uint32_t key);

#endif
