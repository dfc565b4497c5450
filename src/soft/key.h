// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory keys of the software RNIC. Each adapter instance publishes a table of its registered
 * regions in a memory file that peers map read-only. A key (rmr_context) is an index of the table
 * and a generation, so a stale key never finds a new region. An initiator on the same host checks a
 * key in the target's table itself (after it has announced the key, see shm/bytes/segment.h). For bytes
 * that come through a ring, the owner checks the key in the same table.
 */
#ifndef SOFT_KEY_H
#define SOFT_KEY_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOFT_KEY_INDEX_BITS 18u
#define SOFT_KEY_MAX (1u << SOFT_KEY_INDEX_BITS)
#define SOFT_KEY_QUARANTINE 1024u /* freed indexes that wait before one is used again */

enum soft_right {
	SOFT_RIGHT_REMOTE_READ = 1,
	SOFT_RIGHT_REMOTE_WRITE = 2,
	SOFT_RIGHT_REMOTE_ATOMIC = 4,
};

/* One region, in memory shared read-only with peers. */
struct soft_key_entry {
	_Atomic uint32_t key; /* 0: dead; written last at creation, first at destruction */
	uint32_t rights;      /* enum soft_right */
	uint32_t pz;	      /* struct core_pz.id */
	uint32_t guard;	      /* in entry 0, which is no key: see struct soft_guard */
	uint64_t address;
	uint64_t length;
	_Atomic uint64_t pulse; /* in entry 1, which is no key: see soft_keys_pulse */
	uint64_t pad[3];
};
_Static_assert(sizeof(struct soft_key_entry) == 64, "one cache line");

/* The first index of a key. Entry 0 is the guard's, so 0 is no key, and entry 1 the pulse's. */
#define SOFT_KEY_FIRST 2u

static inline uint32_t soft_key_index(uint32_t key)
{
	return key & (SOFT_KEY_MAX - 1);
}

struct soft_keys; /* the owner's table */

/*
 * A mark in the owner's table that the kernel sets when the owner ends. It also sets it before exec
 * gives the owner's process number to another program, while the descriptors are still open. The
 * mark is a robust futex that the calling thread holds from begin to end. That thread calls both
 * functions and uses no robust mutex in between.
 */
struct soft_guard {
	struct robust_list_head head;
	struct robust_list node;
	struct robust_list_head *old;
};
void soft_guard_begin(struct soft_guard *guard, struct soft_keys *keys);
void soft_guard_end(struct soft_guard *guard);

/*
 * Creates the table. The descriptor (owned by the table, listed in soft/fds.h) is sent to peers.
 * All keys must be dead when the table is destroyed. Calls for one table may come from any thread;
 * calls for one key must not overlap, except for checks.
 */
int soft_keys_create(struct soft_keys **keys_out);
void soft_keys_destroy(struct soft_keys *keys);
int soft_keys_fd(const struct soft_keys *keys);
/* The owner's own view, for checks of bytes that arrive through rings. */
const struct soft_key_entry *soft_keys_entries(const struct soft_keys *keys);

/*
 * The pulse: when a thread of the owner's program last polled in vain, by core_now_ns, to within a
 * few polls; 0: the last poll has found a completion. It has a line of its own, which the owner
 * writes and peers read.
 */
_Atomic uint64_t *soft_keys_pulse(struct soft_keys *keys);

/* Creates a live key. -ENOSPC: all are in use. */
int soft_keys_add(struct soft_keys *keys, uint64_t address, uint64_t length, uint32_t rights,
		  uint32_t pz, uint32_t *key_out);
/* Like soft_keys_add, but the key is dead until soft_keys_activate (memory windows). */
int soft_keys_reserve(struct soft_keys *keys, uint64_t address, uint64_t length, uint32_t rights,
		      uint32_t pz, uint32_t *key_out);
void soft_keys_activate(struct soft_keys *keys, uint32_t key);
/*
 * Makes the key dead (sequentially consistent store and fence). The caller then waits for
 * announcements, and returns the index by soft_keys_release(). Valid for reserved keys too.
 */
void soft_keys_invalidate(struct soft_keys *keys, uint32_t key);
void soft_keys_release(struct soft_keys *keys, uint32_t key);
/*
 * Takes the rights from a live key, with the order of soft_keys_invalidate. Several threads may do
 * that for one key.
 */
void soft_keys_end_remote(struct soft_keys *keys, uint32_t key);
/*
 * The same on behalf of a peer, if it is a live key of that zone with a remote right; else returns
 * false. The caller has announced the key, so that nobody else releases it meanwhile.
 */
bool soft_keys_kill(struct soft_keys *keys, uint32_t key, uint32_t pz);

/* Has the key a remote right? Another thread may take it away (soft_keys_end_remote). */
static inline bool soft_key_is_remote(const struct soft_key_entry *entry)
{
	return __atomic_load_n(&entry->rights, __ATOMIC_RELAXED) &
	       (SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE | SOFT_RIGHT_REMOTE_ATOMIC);
}

/*
 * Marks a key whose memory a peer is about to get, so that the peer may announce copies without a
 * fence (shm/transfer/direct.c, models/keys.pml); a full fence follows. False: the key is not in
 * use. The next use of the entry begins without the mark.
 */
bool soft_keys_give(struct soft_keys *keys, uint32_t key);
/*
 * Is the key marked? The key is in use, or dead and not released. A key that is marked after
 * soft_keys_invalidate() is never found live by the peer.
 */
bool soft_keys_is_given(const struct soft_keys *keys, uint32_t key);

/* A peer's table, mapped read-only; one per peer instance, shared by its connections. */
struct soft_view;
/*
 * Maps the table behind fd. -EINVAL: wrong type, seals or size. fd stays the caller's. Views are
 * found by the inode of fd: the second call for the same table adds a reference.
 */
int soft_view_get(int fd, struct soft_view **view_out);
void soft_view_put(struct soft_view *view);
const struct soft_key_entry *soft_view_entries(const struct soft_view *view);
/* The owner's pulse, as the owner claims. */
uint64_t soft_view_pulse(const struct soft_view *view);
/* Has the kernel marked the owner as dead? */
bool soft_view_is_orphan(const struct soft_view *view);
/* The thread of the owner that holds the guard, as the owner claims; 0: none does. */
pid_t soft_view_thread(const struct soft_view *view);

/*
 * Is [address, address+length) inside the live region `key`, with that right (or all rights of a
 * set) and zone? 0, or -EACCES. Reads each field of the (untrusted, changing) entry once. The
 * caller has announced the key and executed a full fence; the result then holds until the
 * announcement is withdrawn.
 */
static inline int soft_key_check(const struct soft_key_entry *entries, uint32_t key, uint32_t right,
				 uint32_t pz, uint64_t address, uint64_t length)
{
	/* cast, because atomic loads of older compilers refuse const */
	struct soft_key_entry *entry =
		(struct soft_key_entry *)(uintptr_t)&entries[soft_key_index(key)];
	uint64_t start, size;
	uint32_t rights, zone;

	/* acquire: pairs with the store in soft_keys_activate, else older fields could be read */
	if (key == 0 || atomic_load_explicit(&entry->key, memory_order_acquire) != key)
		return -EACCES;
	/* acquire: pairs with the releases in soft_keys_reserve (the key is read again below) */
	rights = __atomic_load_n(&entry->rights, __ATOMIC_ACQUIRE);
	zone = __atomic_load_n(&entry->pz, __ATOMIC_ACQUIRE);
	start = __atomic_load_n(&entry->address, __ATOMIC_ACQUIRE);
	size = __atomic_load_n(&entry->length, __ATOMIC_ACQUIRE);
	/* a check without announcement may have read fields of the entry's next key */
	if (atomic_load_explicit(&entry->key, memory_order_relaxed) != key)
		return -EACCES;
	if ((rights & right) != right || zone != pz)
		return -EACCES;
	if (address < start || length > size || address - start > size - length)
		return -EACCES;
	return 0;
}

#endif
