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

#include "soft/region.h"
#include "soft/shm/wire.h"

struct shm_conn;
struct shm_engine;

enum shm_map_state {
	SHM_MAP_FREE,
	SHM_MAP_SEEN, /* used, but not often enough to ask for it */
	SHM_MAP_ASKED,
	SHM_MAP_REFUSED,
	SHM_MAP_READY,
};
/* A region of the peer that is mapped here, or may be. */
struct shm_map {
	uint32_t key;
	uint8_t state; /* enum shm_map_state */
	uint8_t uses;
	bool is_writable;
	uint64_t address;	   /* of the region at the owner */
	struct soft_region region; /* the same bytes here */
};
#define SHM_MAPS 64u
#define SHM_MAP_WAYS 4u

/* --- initiator; EP locked --- */

/* Uses of a region before we ask for a mapping of it. */
unsigned shm_map_uses(const struct shm_conn *conn);
/* The mapping of that key, or NULL; counts the use and asks for a mapping when it is time. */
struct shm_map *shm_map_find(struct shm_conn *conn, uint32_t key);
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
/* The connection is destroyed. */
void shm_map_drop_all(struct shm_conn *conn);

/* --- owner --- */

/* The peer asks for the memory behind a key; in the service thread, no lock held. */
void shm_map_asked(struct shm_conn *conn, uint32_t key);
/* Did the peer get the memory behind a key of ours? */
bool shm_map_is_given(const struct shm_conn *conn, uint64_t key);
/* A key of ours is dead: notifies the peers that got the memory. */
void shm_map_key_dead(struct shm_engine *engine, uint32_t key);

#endif
