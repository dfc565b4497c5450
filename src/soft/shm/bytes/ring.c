// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ring of ring.h. The producer writes entries, then the stamp of the first (release); the
 * consumer reads the stamp (acquire), then the entry; and the other way round for space.
 * models/litmus/protocols.py has these orders.
 */
#include "soft/shm/bytes/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/shm/bytes/segment.h"

#ifndef MADV_POPULATE_WRITE /* older headers */
#define MADV_POPULATE_WRITE 23
#endif

#ifdef CORE_HAS_TSAN
uint64_t shm_tsan_orders[SHM_TSAN_ORDERS];
#endif

/*
 * The largest entry must fit behind the longest filler and before the next header, in addition to
 * what the consumer holds back. Else a ring could block although everything is taken.
 */
#define FITS(size, payload)                                                                        \
	(2 * SHM_ENTRY_MAX(payload) + SHM_ENTRY_ALIGN + SHM_RELEASE_AT(size) <= (size))
static_assert(FITS(SHM_REQUEST_RING, SHM_REQUEST_PAYLOAD), "request entries fit");
static_assert(FITS(SHM_RESPONSE_RING, SHM_RESPONSE_PAYLOAD), "response entries fit");
static_assert(FITS(SHM_LARGE_RING, SHM_LARGE_PAYLOAD), "both fit in the large ring");
static_assert(SHM_REQUEST_RING / 4 == SHM_REQUEST_PAYLOAD, "shm_payload_max");
static_assert(SHM_RESPONSE_RING / 4 == SHM_RESPONSE_PAYLOAD, "shm_payload_max");

/* A multiple of the alignment, whatever the side that made the segment has put there. */
static uint32_t first_index(const _Atomic uint32_t *consumed_word)
{
	return atomic_load_explicit(consumed_word, memory_order_relaxed) & ~(SHM_ENTRY_ALIGN - 1);
}

/* --- producer --- */

/* The last valid value of the consumer's word. Relaxed: written by the owner alone. */
static uint32_t known_of(const struct shm_producer *ring)
{
	return atomic_load_explicit(&ring->consumed, memory_order_relaxed);
}

static uint32_t free_in(const struct shm_producer *ring)
{
	return ring->mask + 1 - (ring->produced - known_of(ring));
}

static uint32_t to_end_of(const struct shm_producer *ring)
{
	return ring->mask + 1 - (ring->produced & ring->mask);
}

/* The place of the next header stays free. */
static void set_limit(struct shm_producer *ring)
{
	uint32_t free = free_in(ring) - SHM_ENTRY_ALIGN;
	uint32_t to_end = to_end_of(ring);

	ring->limit = ring->produced + (free < to_end ? free : to_end);
}

void shm_producer_init(struct shm_producer *ring, uint8_t *bytes, uint32_t size,
		       const _Atomic uint32_t *consumed_word)
{
	ring->bytes = bytes;
	ring->mask = size - 1;
	ring->full = 0;
	ring->consumed_word = consumed_word;
	ring->produced = first_index(consumed_word);
	atomic_init(&ring->consumed, ring->produced);
	set_limit(ring);
}

/* Reads the consumer's word; -EPROTO if it claims bytes that were never written. */
int shm_producer_refresh(struct shm_producer *ring)
{
	/*
	 * acquire: pairs with the release in shm_consumer_give_back; else unread bytes are
	 * overwritten
	 */
	uint32_t consumed = atomic_load_explicit(ring->consumed_word, memory_order_acquire);

	if (ring->produced - consumed > ring->produced - known_of(ring) ||
	    consumed % SHM_ENTRY_ALIGN != known_of(ring) % SHM_ENTRY_ALIGN)
		return -EPROTO;
	atomic_store_explicit(&ring->consumed, consumed, memory_order_relaxed);
	set_limit(ring);
	return 0;
}

void shm_producer_commit(struct shm_producer *ring, const struct shm_entry *entry)
{
	shm_producer_put(ring, shm_entry_at(ring, ring->produced) + SHM_ENTRY_ALIGN, entry);
}

/*
 * Takes the memory of the large ring now: later, a shortage would end the process by SIGBUS.
 * Kernels before 5.14 cannot.
 */
static bool take_memory(uint8_t *large)
{
	return madvise(large, SHM_LARGE_RING, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

/* There was no room. True: now there is, in the large ring. */
static bool grow_if_due(struct shm_producer *ring)
{
	const struct shm_entry entry = {.type = SHM_ENTRY_GROW};
	uint8_t *large = ring->bytes + ring->mask + 1;

	if (ring->full == SHM_GROW_AFTER || ++ring->full < SHM_GROW_AFTER || !take_memory(large))
		return false;
	/* GROW takes the place that is always left free for the next header */
	shm_producer_commit(ring, &entry);
	ring->bytes = large;
	ring->mask = SHM_LARGE_RING - 1;
	set_limit(ring);
	return true;
}

int shm_producer_reserve(struct shm_producer *ring, uint32_t payload, uint8_t **payload_out)
{
	uint32_t need = shm_entry_size(payload);
	uint32_t to_end = to_end_of(ring);
	uint32_t filler = need > to_end ? to_end : 0;
	uint32_t all = need + filler + SHM_ENTRY_ALIGN;

	if (free_in(ring) < all) {
		int rc = shm_producer_refresh(ring);

		if (rc < 0)
			return rc;
		if (free_in(ring) < all)
			return grow_if_due(ring) ? shm_producer_reserve(ring, payload, payload_out)
						 : 0;
	}
	if (filler) {
		const struct shm_entry entry = {.type = SHM_ENTRY_FILLER,
						.payload = (uint16_t)(filler - SHM_ENTRY_ALIGN)};

		shm_producer_commit(ring, &entry);
	}
	set_limit(ring); /* the old one may be the end of the ring, where we were */
	*payload_out = shm_entry_at(ring, ring->produced) + SHM_ENTRY_ALIGN;
	return 1;
}

/* --- consumer --- */

void shm_consumer_init(struct shm_consumer *ring, const uint8_t *bytes, uint32_t size,
		       _Atomic uint32_t *consumed_word)
{
	ring->bytes = bytes;
	ring->mask = size - 1;
	ring->consumed_word = consumed_word;
	atomic_init(&ring->consumed, first_index(consumed_word));
}

/* The next entry is there. A thread that reads the ring without a lock may see the new place with
 * the old mask, but not the other way round. */
static void use_large(struct shm_consumer *ring)
{
	__atomic_store_n(&ring->bytes, ring->bytes + ring->mask + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->mask, SHM_LARGE_RING - 1, __ATOMIC_RELEASE);
}

int shm_consumer_peek(struct shm_consumer *ring, struct shm_entry *entry_out,
		      const uint8_t **payload_out)
{
	for (;;) {
		uint32_t index = shm_consumer_index(ring);
		const uint8_t *at = ring->bytes + (index & ring->mask);
		/* acquire: pairs with the release in shm_producer_put */
		uint32_t stamp =
			__atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);

		if (stamp != SHM_STAMP(index))
			return 0;
		SHM_TSAN_ACQUIRE(stamp);
		shm_read_once(entry_out, at, sizeof(*entry_out));
		if (!shm_entry_is_valid(ring, entry_out))
			return -EPROTO;
		if (entry_out->type != SHM_ENTRY_FILLER && entry_out->type != SHM_ENTRY_GROW) {
			*payload_out = at + SHM_ENTRY_ALIGN;
			return 1;
		}
		shm_consumer_advance(ring, shm_entry_size(entry_out->payload));
		if (entry_out->type == SHM_ENTRY_GROW)
			use_large(ring);
	}
}

void shm_consumer_give_back(struct shm_consumer *ring)
{
	/* release: pairs with the acquire in shm_producer_refresh */
	atomic_store_explicit(ring->consumed_word, shm_consumer_index(ring), memory_order_release);
}

bool shm_consumer_release(struct shm_consumer *ring)
{
	if (!shm_consumer_is_due(ring))
		return false;
	shm_consumer_give_back(ring);
	return true;
}
