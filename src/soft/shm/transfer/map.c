// SPDX-License-Identifier: BSD-2-Clause
/* Memory of the peer that is mapped here, and memory of ours that peers map (map.h). */
#include "soft/shm/transfer/map.h"

#include <errno.h>
#include <unistd.h>

#include "core/transport.h"
#include "soft/key.h"
#include "soft/region.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/wire.h"

#define USES_BEFORE_ASKING 4u

/* The slot number `way` of those where a key may be: a few neighbours, chosen by its bits. */
static struct shm_map *slot_at(struct shm_conn *conn, uint32_t key, unsigned way)
{
	uint32_t hash = key * 2654435761u >> 24;

	return &conn->remote.maps[(hash + way) % SHM_MAPS];
}

static struct shm_map *find_map(struct shm_conn *conn, uint32_t key)
{
	unsigned way;

	for (way = 0; way < SHM_MAP_WAYS; way++) {
		struct shm_map *map = slot_at(conn, key, way);

		if (map->state != SHM_MAP_FREE && map->key == key)
			return map;
	}
	return NULL;
}

/*
 * Finds a slot for a new key; mappings and pending questions are not replaced. A refused key is the
 * last choice, because it would be asked for again. Keys that are used once replace each other.
 */
static struct shm_map *new_slot(struct shm_conn *conn, uint32_t key)
{
	struct shm_map *unused = NULL;
	unsigned way;

	for (way = 0; way < SHM_MAP_WAYS; way++) {
		struct shm_map *map = slot_at(conn, key, way);

		if (map->state == SHM_MAP_FREE)
			return map;
		if (map->state == SHM_MAP_SEEN || (map->state == SHM_MAP_REFUSED && !unused))
			unused = map;
	}
	return unused;
}

/* Uses of a region before we ask for a mapping of it. */
static unsigned uses_before_asking(const struct shm_conn *conn)
{
	/* asking costs more than a few copies, and many regions are registered for one message */
	return conn->engine->settings.copy == CORE_COPY_MAP ? 1 : USES_BEFORE_ASKING;
}

struct shm_map *shm_map_find(struct shm_conn *conn, uint32_t key)
{
	struct shm_map *map;

	if (!key)
		return NULL;
	map = find_map(conn, key);
	if (!map) {
		map = new_slot(conn, key);
		if (!map)
			return NULL;
		*map = (struct shm_map){.key = key, .state = SHM_MAP_SEEN};
	}
	conn->remote.last_map = map;
	return map->state == SHM_MAP_READY ? map : NULL;
}

void shm_map_count_use(struct shm_conn *conn, uint32_t key)
{
	struct shm_map *map = conn->remote.last_map;

	if (map && map->key == key && map->state == SHM_MAP_SEEN &&
	    ++map->uses >= uses_before_asking(conn) &&
	    shm_conn_send_word(conn, SHM_WIRE_MAP_ASK, key) == 0)
		map->state = SHM_MAP_ASKED;
}

/* --- owner: in the service thread, no lock held --- */

static bool remember_given(struct shm_conn *conn, uint32_t key)
{
	bool is_room = false;
	unsigned i;

	core_lock_acquire(&conn->engine->lock);
	for (i = 0; i < SHM_MAPS && !is_room; i++) {
		if (conn->given[i] && conn->given[i] != key)
			continue;
		conn->given[i] = key;
		is_room = true;
	}
	core_lock_release(&conn->engine->lock);
	return is_room;
}

static void forget_given(struct shm_conn *conn, uint32_t key)
{
	unsigned i;

	core_lock_acquire(&conn->engine->lock);
	for (i = 0; i < SHM_MAPS; i++)
		if (conn->given[i] == key)
			conn->given[i] = 0;
	core_lock_release(&conn->engine->lock);
}

/* What a key of ours grants. */
struct grant {
	uint64_t address;
	uint64_t length;
	uint32_t rights;
};

/* Is the key live, and does it grant the peer anything? */
static bool find_grant(struct shm_conn *conn, uint32_t key, struct grant *grant_out)
{
	const struct soft_key_entry *entry =
		&soft_keys_entries(conn->engine->adapter->keys)[soft_key_index(key)];
	/* cast, because atomic loads of older compilers refuse const */
	_Atomic uint32_t *live = (_Atomic uint32_t *)(uintptr_t)&entry->key;
	uint32_t zone;

	/* acquire throughout, and the key is read again last: so all fields belong to this key */
	if (atomic_load_explicit(live, memory_order_acquire) != key)
		return false;
	zone = __atomic_load_n(&entry->pz, __ATOMIC_ACQUIRE);
	grant_out->rights = __atomic_load_n(&entry->rights, __ATOMIC_ACQUIRE);
	grant_out->address = __atomic_load_n(&entry->address, __ATOMIC_ACQUIRE);
	grant_out->length = __atomic_load_n(&entry->length, __ATOMIC_ACQUIRE);
	return atomic_load_explicit(live, memory_order_relaxed) == key && zone == conn->pz &&
	       (grant_out->rights & (SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE));
}

/* The file behind the memory, with no more rights than the key has; -1: it cannot be mapped. */
static int open_granted(const struct grant *grant, uint64_t *offset_out)
{
	int fd;

	if (!grant->length || soft_region_find(grant->address, grant->length, &fd, offset_out) < 0)
		return -1;
	return grant->rights & SOFT_RIGHT_REMOTE_WRITE ? fd : soft_region_read_only(fd);
}

/*
 * Sends the file. The key is marked first and checked then. So a thread that frees the key either
 * sees the mark, and expects copies without a fence; or we see that the key is dead, and the peer
 * gets nothing. models/keys.pml models this.
 */
static bool send_file(struct shm_conn *conn, const union shm_wire *wire, int fd)
{
	uint32_t key = wire->give.key;
	struct grant grant;

	if (!remember_given(conn, key))
		return false;
	if (soft_keys_give(conn->engine->adapter->keys, key) && find_grant(conn, key, &grant))
		return shm_conn_send(conn, wire, &fd, 1) >= 0;
	forget_given(conn, key);
	return false;
}

void shm_map_asked(struct shm_conn *conn, uint32_t key)
{
	union shm_wire wire;
	struct grant grant;
	int fd = -1;

	shm_wire_prepare(&wire, SHM_WIRE_MAP_GIVE);
	if (shm_conn_reach(conn) >= SHM_REACH_DIRECT && find_grant(conn, key, &grant))
		fd = open_granted(&grant, &wire.give.offset);
	if (fd < 0) {
		shm_conn_send_word(conn, SHM_WIRE_MAP_REFUSE, key);
		return;
	}
	wire.give.key = key;
	wire.give.address = grant.address;
	wire.give.length = grant.length;
	if (!send_file(conn, &wire, fd))
		shm_conn_send_word(conn, SHM_WIRE_MAP_REFUSE, key);
	close(fd);
}

bool shm_map_is_given(const struct shm_conn *conn, uint64_t key)
{
	unsigned i;

	/* relaxed: without the lock it is a hint, and the peer handles a wrong one */
	for (i = 0; i < SHM_MAPS; i++)
		if (atomic_load_explicit(&conn->given[i], memory_order_relaxed) == key)
			return true;
	return false;
}

void shm_map_key_dead(struct shm_engine *engine, uint32_t key)
{
	struct shm_conn *conn = NULL;

	/* a memory file that is sent at this moment stays mapped until the connection ends */
	if (!soft_keys_is_given(engine->adapter->keys, key))
		return;
	while ((conn = shm_engine_next_conn(engine, conn, shm_map_is_given, key)) != NULL) {
		forget_given(conn, key);
		shm_conn_send_word(conn, SHM_WIRE_KEY_GONE, key);
	}
}

/* --- initiator: in the service thread, endpoint locked --- */

void shm_map_given(struct shm_conn *conn, const struct shm_wire_give *give, int fd)
{
	struct shm_map *map = conn->remote.maps ? find_map(conn, give->key) : NULL;
	bool is_writable = true;
	int rc;

	if (!map || map->state != SHM_MAP_ASKED)
		return;
	rc = soft_region_map(fd, give->offset, give->length, true, &map->region);
	if (rc == -EACCES) {
		is_writable = false;
		rc = soft_region_map(fd, give->offset, give->length, false, &map->region);
	}
	map->address = give->address;
	map->is_writable = is_writable;
	map->state = rc < 0 ? SHM_MAP_REFUSED : SHM_MAP_READY;
}

void shm_map_refused(struct shm_conn *conn, uint32_t key)
{
	struct shm_map *map = conn->remote.maps ? find_map(conn, key) : NULL;

	if (map && map->state == SHM_MAP_ASKED)
		map->state = SHM_MAP_REFUSED;
}

void shm_map_gone(struct shm_conn *conn, uint32_t key)
{
	struct shm_map *map = conn->remote.maps ? find_map(conn, key) : NULL;

	if (map)
		shm_map_release(map);
}
