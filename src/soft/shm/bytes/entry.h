// SPDX-License-Identifier: BSD-2-Clause
/*
 * The entries of a ring (ring.h): what the two sides of a connection tell each other in it.
 */
#ifndef SHM_ENTRY_H
#define SHM_ENTRY_H

#include <assert.h>
#include <stdint.h>

#include "soft/shm/bytes/segment.h"

#define SHM_ENTRY_ALIGN 32u

enum shm_entry_type {
	SHM_ENTRY_FILLER = 1,
	/* request ring */
	/* bytes of a message; length: of all that is left of it; the last may name a key */
	SHM_ENTRY_SEND,
	SHM_ENTRY_WRITE, /* bytes for key and address; length: of all that is left of the Write */
	SHM_ENTRY_READ,	 /* asks for length bytes at key and address */
	/* response ring */
	SHM_ENTRY_DATA, /* bytes of the oldest unanswered RDMA Read or atomic operation */
	/* both: no payload; the next entry is in the large ring */
	SHM_ENTRY_GROW,
	/* request ring, again */
	SHM_ENTRY_IMMEDIATE, /* key: the immediate data of an RDMA Write of that length */
	SHM_ENTRY_ATOMIC,    /* payload: struct shm_atomic, for key and address */
};

enum shm_entry_flag {
	SHM_FLAG_FIRST = 1,
	SHM_FLAG_LAST = 2,
	SHM_FLAG_SOLICITED = 4,
	SHM_FLAG_NOTICE = 8, /* of a Write: immediate data follow, which are reported for both */
	SHM_FLAG_INVALIDATE = 16, /* of a message: the peer's key is dead before it completes */
};

struct shm_atomic {
	uint64_t is_swap; /* else an addition */
	uint64_t operand; /* is added, or stored */
	uint64_t compare;
};

struct shm_entry {
	uint32_t stamp; /* SHM_STAMP() of its index; written by the ring */
	uint8_t type;
	uint8_t flags;
	uint16_t payload; /* bytes behind the header */
	uint32_t done;	  /* the producer's `done` (segment.h) at that time */
	uint32_t key;
	uint64_t address;
	uint64_t length;
};
static_assert(sizeof(struct shm_entry) == SHM_ENTRY_ALIGN, "a header fits any remainder");
static_assert(SHM_LARGE_PAYLOAD <= UINT16_MAX, "the payload's length fits");

/* Not 0: indexes are multiples of SHM_ENTRY_ALIGN. */
#define SHM_STAMP(index) ((index) + 1u)

/* Bytes that an entry takes. */
static inline uint32_t shm_entry_size(uint32_t payload)
{
	return SHM_ENTRY_ALIGN + ((payload + SHM_ENTRY_ALIGN - 1) & ~(SHM_ENTRY_ALIGN - 1));
}

/* The largest entry with that payload. */
#define SHM_ENTRY_MAX(payload) (SHM_ENTRY_ALIGN + (payload))

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the order of members in the first word");

static inline uint64_t shm_entry_first(const struct shm_entry *entry, uint32_t stamp)
{
	return stamp | (uint64_t)entry->type << 32 | (uint64_t)entry->flags << 40 |
	       (uint64_t)entry->payload << 48;
}

/* The type and the flags of a whole message, in the second half of the first word. */
#define SHM_WHOLE_MESSAGE (SHM_ENTRY_SEND | (SHM_FLAG_FIRST | SHM_FLAG_LAST) << 8)
#define SHM_WHOLE_MASK (0xffffu & ~(SHM_FLAG_SOLICITED << 8))

#endif
