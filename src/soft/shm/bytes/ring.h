// SPDX-License-Identifier: BSD-2-Clause
/*
 * A byte ring between one producer and one consumer in different processes. Indexes run freely and
 * are compared by unsigned difference. An entry is a header of 32 bytes and its payload, padded to
 * 32 bytes. It never wraps: a filler takes the rest of the ring when an entry does not fit there.
 *
 * The stamp in the header shows that the entry is present. So a small message is one cache line,
 * and the consumer polls no other. The stamp contains the index of the entry, which differs from
 * that of every earlier lap. Payload of an earlier lap is never taken for a header: if the place
 * behind an entry looks like the next one, it is cleared before the entry is published. That place
 * is never used for anything else.
 *
 * Space is given back in batches, at the latest when a quarter of the ring is taken. So the
 * producer rarely reads the consumer's word.
 *
 * A ring begins small. When it was full often, the producer puts an entry GROW into it and
 * continues in the large ring at the next index. So a small ring, whose few lines both sides move
 * back and forth, does not slow a stream down, and large requests go in large pieces.
 *
 * Neither end trusts the other: an invalid index or header is -EPROTO, and the connection breaks.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/same.h"
#include "soft/shm/bytes/entry.h"

/* So many bytes behind the entry that is taken. Less than 512 help little. */
#define SHM_FETCH_AHEAD 512u

/*
 * So many bytes ahead of the producer it fetches the lines of an entry like the last one for
 * writing: all of them up to that payload, and only the first of a larger one, which the processor
 * recognizes as a stream.
 */
#define SHM_WRITE_AHEAD 256u
#define SHM_FETCH_MAX 2048u

/* Less than this is taken and not given back. */
#define SHM_RELEASE_AT(size) ((size) / 4)

/* A ring that was full so often is replaced by the large one. */
#define SHM_GROW_AFTER 64u

struct shm_producer {
	uint8_t *bytes;
	uint32_t mask;		   /* the size, a power of two, less one */
	uint32_t produced;	   /* entries up to here are written, and the consumer sees them */
	_Atomic uint32_t consumed; /* last valid value of the consumer's word; a hint for others */
	uint32_t limit;		   /* there is room up to here, without a filler */
	uint16_t full;		   /* times that there was no room; stops at SHM_GROW_AFTER */
	const _Atomic uint32_t *consumed_word;
};

struct shm_consumer {
	/* both also read without a lock, as hints; written by the owner, `mask` last */
	const uint8_t *bytes;
	uint32_t mask;		   /* the size - 1 */
	_Atomic uint32_t consumed; /* written by the owner, relaxed; a hint for others */
	_Atomic uint32_t *consumed_word;
};

/* Longest payload of one entry in a ring of that mask. */
static inline uint32_t shm_payload_max(uint32_t mask)
{
	return mask == SHM_LARGE_RING - 1 ? SHM_LARGE_PAYLOAD : (mask + 1) / 4;
}

/* Both start at the index in the consumer's word. The large ring is behind the first one. */
void shm_producer_init(struct shm_producer *ring, uint8_t *bytes, uint32_t size,
		       const _Atomic uint32_t *consumed_word);

/*
 * Finds room for one entry with that payload: 1 and the address of the payload, 0 if the ring is
 * full, -EPROTO. Reads what the consumer has given back if need be, and puts a filler. If the ring
 * was full often, the large ring follows.
 */
int shm_producer_reserve(struct shm_producer *ring, uint32_t payload, uint8_t **payload_out);
/* Puts an entry into the room that was found last: shm_producer_put, not inline. */
void shm_producer_commit(struct shm_producer *ring, const struct shm_entry *entry);
/* Reads how much the consumer has given back: 0, or -EPROTO. */
int shm_producer_refresh(struct shm_producer *ring);

/* The index of the next entry. */
static inline uint32_t shm_consumer_index(const struct shm_consumer *ring)
{
	return atomic_load_explicit(&ring->consumed, memory_order_relaxed);
}

static inline void shm_consumer_advance(struct shm_consumer *ring, uint32_t size)
{
	atomic_store_explicit(&ring->consumed, shm_consumer_index(ring) + size,
			      memory_order_relaxed);
}

/* Can a producer that follows the rules have put this entry where the consumer stands? */
static inline bool shm_entry_is_valid(const struct shm_consumer *ring,
				      const struct shm_entry *entry)
{
	uint32_t to_end = ring->mask + 1 - (shm_consumer_index(ring) & ring->mask);
	uint32_t size = shm_entry_size(entry->payload);
	uint32_t payload_max = shm_payload_max(ring->mask);

	/*
	 * no filler is longer than that: so no filler follows another in the same ring, and GROW
	 * comes once, so the search for an entry ends
	 */
	if (entry->type == SHM_ENTRY_FILLER)
		return size == to_end && size <= SHM_ENTRY_MAX(payload_max);
	if (entry->type == SHM_ENTRY_GROW)
		return ring->mask != SHM_LARGE_RING - 1 && !entry->payload;
	return entry->payload <= payload_max && size <= to_end;
}

/* shm_producer_reserve where there is room that needs nothing else. NULL: call that. */
CORE_INLINE uint8_t *shm_producer_at_once(const struct shm_producer *ring, uint32_t payload)
{
	uint32_t index = ring->produced, end = index + shm_entry_size(payload);

	if ((int32_t)(ring->limit - end) < 0)
		return NULL;
	return ring->bytes + (index & ring->mask) + SHM_ENTRY_ALIGN;
}

static inline uint8_t *shm_entry_at(const struct shm_producer *ring, uint32_t index)
{
	return ring->bytes + (index & ring->mask);
}

/*
 * What __builtin_prefetch does for newer machines. A prefetch for reading would fetch the line
 * twice.
 */
static inline void shm_fetch_for_writing(uint8_t *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/*
 * Makes sure that the place of the next entry does not look like one. Payload of an earlier lap
 * rarely does, so this mostly only reads: the consumer's processor may have fetched that line ahead
 * of time, and a store would wait for it, with all that follow.
 */
static inline void shm_clear_stamp(uint8_t *place, uint32_t index)
{
	uint32_t *stamp = (void *)place;

	if (__atomic_load_n(stamp, __ATOMIC_RELAXED) == SHM_STAMP(index))
		__atomic_store_n(stamp, 0, __ATOMIC_RELAXED);
}

/*
 * Writes the entry at `produced` except its first word, and makes sure that no stamp is behind it.
 * It stores word by word from registers. A copy from memory, whose members were stored one by one
 * just before, would wait until those stores and all before them have left the processor, and some
 * of them go to lines that the consumer holds.
 */
static inline void shm_producer_begin(struct shm_producer *ring, uint64_t *words, uint32_t end,
				      const struct shm_entry *entry)
{
	ring->produced = end;
	shm_clear_stamp(shm_entry_at(ring, end), end);
	__atomic_store_n(&words[1], entry->done | (uint64_t)entry->key << 32, __ATOMIC_RELAXED);
	__atomic_store_n(&words[2], entry->address, __ATOMIC_RELAXED);
	__atomic_store_n(&words[3], entry->length, __ATOMIC_RELAXED);
}

/*
 * Writes the entry whose room shm_producer_at_once or shm_producer_reserve has found, and makes it
 * visible. Inline, so that the members of the entry stay in registers.
 */
CORE_INLINE void shm_producer_put(struct shm_producer *ring, uint8_t *payload,
				  const struct shm_entry *entry)
{
	uint32_t index = ring->produced, end = index + shm_entry_size(entry->payload);
	uint32_t fetched = entry->payload <= SHM_FETCH_MAX ? end - index : 1;
	uint64_t *words = (uint64_t *)(void *)(payload - SHM_ENTRY_ALIGN);

	shm_producer_begin(ring, words, end, entry);
	/*
	 * release: pairs with the acquire in shm_consumer_peek; else entries are read half written
	 */
	SHM_TSAN_RELEASE(SHM_STAMP(index));
	__atomic_store_n(&words[0], shm_entry_first(entry, SHM_STAMP(index)), __ATOMIC_RELEASE);
	for (uint32_t at = 0; at < fetched; at += SHM_LINE)
		shm_fetch_for_writing(shm_entry_at(ring, end + SHM_WRITE_AHEAD + at));
}

void shm_consumer_init(struct shm_consumer *ring, const uint8_t *bytes, uint32_t size,
		       _Atomic uint32_t *consumed_word);

/* Is there an entry? Needs no lock. The answer is certain for the owner, and a hint for other
 * threads. */
static inline bool shm_consumer_has_entry(const struct shm_consumer *ring)
{
	uint32_t index = shm_consumer_index(ring);
	/* acquire: who sees the mask of the larger ring sees its place, too */
	uint32_t mask = __atomic_load_n(&ring->mask, __ATOMIC_ACQUIRE);
	const uint8_t *bytes = __atomic_load_n(&ring->bytes, __ATOMIC_RELAXED);
	const uint32_t *stamp = (const void *)(bytes + (index & mask));

	/* relaxed: a caller that acts on it reads the stamp again */
	return __atomic_load_n(stamp, __ATOMIC_RELAXED) == SHM_STAMP(index);
}

/*
 * The oldest entry: 1, a checked private copy of its header, and the address of its payload (which
 * the peer can still change: read each byte once). 0 if there is none, -EPROTO.
 */
int shm_consumer_peek(struct shm_consumer *ring, struct shm_entry *entry_out,
		      const uint8_t **payload_out);
/* A whole message at the head of the ring, in one entry. */
struct shm_message {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t done;
};

enum shm_head {
	SHM_HEAD_EMPTY,
	SHM_HEAD_MESSAGE,
	SHM_HEAD_OTHER, /* anything else, valid or not: call shm_consumer_peek */
};

/*
 * shm_consumer_peek for the fast path. Reads word by word, so that the header stays in registers,
 * and each word once: the producer may be about to write that line.
 */
CORE_INLINE enum shm_head shm_consumer_peek_message(const struct shm_consumer *ring,
						    struct shm_message *message_out)
{
	uint32_t index = shm_consumer_index(ring);
	uint32_t offset = index & ring->mask;
	const uint64_t *words = (const void *)(ring->bytes + offset);
	/* acquire: as in shm_consumer_peek */
	uint64_t second, first = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);
	uint32_t len = (uint32_t)(first >> 48);

	if ((uint32_t)first != SHM_STAMP(index))
		return SHM_HEAD_EMPTY;
	SHM_TSAN_ACQUIRE((uint32_t)first);
	if ((first >> 32 & SHM_WHOLE_MASK) != SHM_WHOLE_MESSAGE || !len ||
	    len > ring->mask + 1 - SHM_ENTRY_ALIGN - offset ||
	    __atomic_load_n(&words[3], __ATOMIC_RELAXED) != len)
		return SHM_HEAD_OTHER;
	second = __atomic_load_n(&words[1], __ATOMIC_RELAXED);
	message_out->bytes = (const uint8_t *)words + SHM_ENTRY_ALIGN;
	message_out->len = len;
	message_out->done = (uint32_t)second;
	return SHM_HEAD_MESSAGE;
}
/* Takes the entry that peek returned, which has that payload, or that message. */
static inline void shm_consumer_take(struct shm_consumer *ring, uint32_t payload)
{
	shm_consumer_advance(ring, shm_entry_size(payload));
}
/*
 * Fetches a line ahead while entries are there: the producer has mostly written it already. A line
 * that it has not written yet would be taken from it.
 */
static inline void shm_consumer_fetch_ahead(const struct shm_consumer *ring)
{
	uint32_t index = shm_consumer_index(ring) + SHM_FETCH_AHEAD;

	__builtin_prefetch(ring->bytes + (index & ring->mask));
}
/* Is there enough space to give back? */
static inline bool shm_consumer_is_due(const struct shm_consumer *ring)
{
	/*
	 * relaxed: our own word, unless the peer has changed it, which then gets its space too
	 * early or too late
	 */
	uint32_t released = atomic_load_explicit(ring->consumed_word, memory_order_relaxed);

	return shm_consumer_index(ring) - released >= SHM_RELEASE_AT(ring->mask + 1);
}
/* Gives the space of all taken entries back. */
void shm_consumer_give_back(struct shm_consumer *ring);
/* Gives it back if there is enough; false if not. */
bool shm_consumer_release(struct shm_consumer *ring);

#endif
