// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ring of ring.h. The producer writes entries, then the stamp of the first (release); the
 * consumer reads the stamp (acquire), then the entry; and the other way round for space.
 * models/litmus/protocols.py has these orders.
 */
#include "soft/shm/ring.h"

#include <errno.h>
#include <string.h>

#include "soft/shm/segment.h"

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
static_assert(FITS(SHM_LARGE_RING, SHM_REQUEST_PAYLOAD), "and in the larger ring");
static_assert(FITS(SHM_RESPONSE_RING, SHM_RESPONSE_PAYLOAD), "response entries fit");
static_assert(SHM_ENTRY_MAX(SHM_REQUEST_PAYLOAD) <= UINT16_MAX, "shm_consumer.entry_size");

/* A multiple of the alignment, whatever the side that made the segment has put there. */
static uint32_t first_index(const _Atomic uint32_t *consumed_word)
{
	return atomic_load_explicit(consumed_word, memory_order_relaxed) & ~(SHM_ENTRY_ALIGN - 1);
}

/* --- producer --- */

/* The place of the next header stays free. */
static void set_limit(struct shm_producer *ring)
{
	uint32_t free = ring->size - (ring->produced - ring->consumed) - SHM_ENTRY_ALIGN;
	uint32_t to_end = ring->size - (ring->produced & ring->mask);

	ring->limit = ring->produced + (free < to_end ? free : to_end);
}

void shm_producer_init(struct shm_producer *ring, uint8_t *bytes, uint32_t size,
		       const _Atomic uint32_t *consumed_word)
{
	ring->bytes = bytes;
	ring->size = size;
	ring->mask = size - 1;
	ring->consumed_word = consumed_word;
	ring->consumed = first_index(consumed_word);
	ring->produced = ring->consumed;
	ring->published = ring->consumed;
	set_limit(ring);
}

/* Reads the consumer's word; -EPROTO if it claims bytes that were never published. */
int shm_producer_refresh(struct shm_producer *ring)
{
	/*
	 * acquire: pairs with the release in shm_consumer_give_back; else unread bytes are
	 * overwritten
	 */
	uint32_t consumed = atomic_load_explicit(ring->consumed_word, memory_order_acquire);

	if (ring->published - consumed > ring->published - ring->consumed ||
	    consumed % SHM_ENTRY_ALIGN != ring->consumed % SHM_ENTRY_ALIGN)
		return -EPROTO;
	ring->consumed = consumed;
	set_limit(ring);
	return 0;
}

/* Writes the whole entry. */
static void write_entry(struct shm_producer *ring, const struct shm_entry *entry)
{
	uint32_t index = ring->produced;
	bool is_first = index == ring->published;
	uint64_t *words = (uint64_t *)(void *)shm_entry_at(ring, index);

	shm_producer_begin(ring, words, index + shm_entry_size(entry->payload), entry);
	/* the first entry gets its stamp from publish, which makes all of them visible */
	__atomic_store_n(&words[0], shm_entry_first(entry, is_first ? 0 : SHM_STAMP(index)),
			 __ATOMIC_RELAXED);
}

int shm_producer_reserve(struct shm_producer *ring, uint32_t payload, uint8_t **payload_out)
{
	uint32_t need = shm_entry_size(payload);
	uint32_t to_end = ring->size - (ring->produced & ring->mask);
	uint32_t filler = need > to_end ? to_end : 0;
	uint32_t all = need + filler + SHM_ENTRY_ALIGN;

	if (ring->size - (ring->produced - ring->consumed) < all) {
		int rc = shm_producer_refresh(ring);

		if (rc < 0)
			return rc;
		if (ring->size - (ring->produced - ring->consumed) < all)
			return 0;
	}
	if (filler) {
		struct shm_entry entry = {.type = SHM_ENTRY_FILLER,
					  .payload = (uint16_t)(filler - SHM_ENTRY_ALIGN)};

		write_entry(ring, &entry);
	}
	*payload_out = shm_entry_at(ring, ring->produced) + SHM_ENTRY_ALIGN;
	return 1;
}

void shm_producer_commit(struct shm_producer *ring, const struct shm_entry *entry)
{
	write_entry(ring, entry);
	/* the consumer held that line one lap ago */
	shm_fetch_for_writing(shm_entry_at(ring, ring->produced + SHM_WRITE_AHEAD));
}

void shm_producer_fetch_next(const struct shm_producer *ring, uint32_t payload)
{
	uint32_t next = ring->produced;

	if (ring->size - (next & ring->mask) < shm_entry_size(payload))
		next += ring->size - (next & ring->mask);
	for (uint32_t i = 0; i < payload; i += 64)
		shm_fetch_for_writing(shm_entry_at(ring, next + i));
}

uint8_t *shm_producer_make_room(struct shm_producer *ring, uint32_t payload)
{
	uint32_t to_end = ring->size - (ring->produced & ring->mask);
	struct shm_entry filler = {.type = SHM_ENTRY_FILLER,
				   .payload = (uint16_t)(to_end - SHM_ENTRY_ALIGN)};

	if (ring->published != ring->produced || shm_producer_refresh(ring) < 0)
		return NULL;
	if (shm_entry_size(payload) > to_end &&
	    ring->size - (ring->produced - ring->consumed) >= to_end + SHM_ENTRY_ALIGN) {
		shm_producer_put(ring, shm_entry_at(ring, ring->produced) + SHM_ENTRY_ALIGN,
				 &filler);
		set_limit(ring); /* the filler ends at the old one */
	}
	return shm_producer_at_once(ring, payload);
}

bool shm_producer_grow(struct shm_producer *ring, uint8_t *large)
{
	const struct shm_entry entry = {.type = SHM_ENTRY_GROW};
	uint32_t end = ring->produced + shm_entry_size(0);
	uint8_t *payload = shm_producer_make_room(ring, 0);

	if (!payload)
		return false;
	shm_clear_stamp(large + (end & (SHM_LARGE_RING - 1)), end);
	shm_producer_put(ring, payload, &entry);
	ring->bytes = large;
	ring->size = SHM_LARGE_RING;
	ring->mask = SHM_LARGE_RING - 1;
	set_limit(ring);
	return true;
}

bool shm_producer_publish(struct shm_producer *ring)
{
	uint32_t index = ring->published;

	if (index == ring->produced)
		return false;
	ring->published = ring->produced;
	/*
	 * release: pairs with the acquire in shm_consumer_peek; else entries are read half written
	 */
	SHM_TSAN_RELEASE(SHM_STAMP(index));
	__atomic_store_n((uint32_t *)(void *)shm_entry_at(ring, index), SHM_STAMP(index),
			 __ATOMIC_RELEASE);
	return true;
}

/* --- consumer --- */

void shm_consumer_init(struct shm_consumer *ring, const uint8_t *bytes, uint32_t size,
		       uint32_t payload_max, _Atomic uint32_t *consumed_word)
{
	ring->bytes = bytes;
	ring->mask = size - 1;
	ring->payload_max = (uint16_t)payload_max;
	ring->large = NULL;
	ring->consumed_word = consumed_word;
	ring->released = first_index(consumed_word);
	atomic_init(&ring->consumed, ring->released);
	ring->entry_size = 0;
}

/* The next entry is there. A thread that reads the ring without a lock may see the new place with
 * the old mask, but not the other way round. */
static void use_large(struct shm_consumer *ring)
{
	__atomic_store_n(&ring->bytes, ring->large, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->mask, SHM_LARGE_RING - 1, __ATOMIC_RELEASE);
	ring->large = NULL;
}

int shm_consumer_peek(struct shm_consumer *ring, struct shm_entry *entry_out,
		      const uint8_t **payload_out)
{
	for (;;) {
		uint32_t index = shm_consumer_index(ring);
		const uint8_t *at = ring->bytes + (index & ring->mask);
		/* acquire: pairs with the release in shm_producer_publish */
		uint32_t stamp =
			__atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);

		if (stamp != SHM_STAMP(index))
			return 0;
		SHM_TSAN_ACQUIRE(stamp);
		shm_read_once(entry_out, at, sizeof(*entry_out));
		if (!shm_entry_is_valid(ring, entry_out))
			return -EPROTO;
		if (entry_out->type != SHM_ENTRY_FILLER && entry_out->type != SHM_ENTRY_GROW) {
			ring->entry_size = (uint16_t)shm_entry_size(entry_out->payload);
			*payload_out = at + SHM_ENTRY_ALIGN;
			return 1;
		}
		shm_consumer_advance(ring, shm_entry_size(entry_out->payload));
		if (entry_out->type == SHM_ENTRY_GROW)
			use_large(ring);
	}
}

void shm_consumer_pop(struct shm_consumer *ring)
{
	shm_consumer_advance(ring, ring->entry_size);
	ring->entry_size = 0;
}

void shm_consumer_give_back(struct shm_consumer *ring)
{
	ring->released = shm_consumer_index(ring);
	/* release: pairs with the acquire in shm_producer_refresh */
	atomic_store_explicit(ring->consumed_word, ring->released, memory_order_release);
}

bool shm_consumer_release(struct shm_consumer *ring)
{
	if (!shm_consumer_is_due(ring))
		return false;
	shm_consumer_give_back(ring);
	return true;
}
