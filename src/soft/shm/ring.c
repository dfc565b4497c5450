// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ring of ring.h. The producer writes an entry, then its index (release); the consumer reads
 * the index (acquire), then the entry; and the same in the other direction for space.
 */
#include "soft/shm/ring.h"

#include <errno.h>
#include <string.h>

#ifdef SHM_TELLS_TSAN
char shm_tsan_order;
#endif

/* The largest entry must fit behind the longest filler, or a ring could block although empty. */
#define ENTRY_MAX(payload) (SHM_ENTRY_ALIGN + (payload))
static_assert(2 * ENTRY_MAX(SHM_REQUEST_PAYLOAD) <= SHM_REQUEST_RING, "request entries fit");
static_assert(2 * ENTRY_MAX(SHM_RESPONSE_PAYLOAD) <= SHM_RESPONSE_RING, "response entries fit");

static uint32_t entry_size(uint32_t payload)
{
	return SHM_ENTRY_ALIGN + ((payload + SHM_ENTRY_ALIGN - 1) & ~(SHM_ENTRY_ALIGN - 1));
}

void shm_producer_init(struct shm_producer *ring, uint8_t *bytes, uint32_t size,
		       _Atomic uint32_t *produced_word, const _Atomic uint32_t *consumed_word)
{
	ring->bytes = bytes;
	ring->size = size;
	ring->produced_word = produced_word;
	ring->consumed_word = consumed_word;
	ring->produced = atomic_load_explicit(produced_word, memory_order_relaxed);
	ring->published = ring->produced;
	/* an empty ring: a peer whose word says otherwise is found out by the next look */
	ring->consumed = ring->produced;
}

/* Reads the consumer's word; -EPROTO when it claims bytes that were never published. */
static int refresh_space(struct shm_producer *ring)
{
	/* acquire: pairs with the release in shm_consumer_release; else we overwrite unread bytes
	 */
	uint32_t consumed = atomic_load_explicit(ring->consumed_word, memory_order_acquire);

	if (ring->published - consumed > ring->published - ring->consumed ||
	    consumed % SHM_ENTRY_ALIGN != ring->consumed % SHM_ENTRY_ALIGN)
		return -EPROTO;
	ring->consumed = consumed;
	return 0;
}

int shm_producer_reserve(struct shm_producer *ring, uint32_t payload, uint8_t **payload_out)
{
	uint32_t need = entry_size(payload);
	uint32_t to_end = ring->size - (ring->produced & (ring->size - 1));
	uint32_t filler = need > to_end ? to_end : 0;

	if (ring->size - (ring->produced - ring->consumed) < need + filler) {
		int rc = refresh_space(ring);

		if (rc < 0)
			return rc;
		if (ring->size - (ring->produced - ring->consumed) < need + filler)
			return 0;
	}
	if (filler) {
		struct shm_entry entry = {.size = filler, .type = SHM_ENTRY_FILLER};

		memcpy(ring->bytes + (ring->produced & (ring->size - 1)), &entry, sizeof(entry));
		ring->produced += filler;
	}
	*payload_out = ring->bytes + (ring->produced & (ring->size - 1)) + SHM_ENTRY_ALIGN;
	return 1;
}

void shm_producer_commit(struct shm_producer *ring, struct shm_entry *entry)
{
	entry->size = entry_size(entry->payload);
	memcpy(ring->bytes + (ring->produced & (ring->size - 1)), entry, sizeof(*entry));
	ring->produced += entry->size;
}

bool shm_producer_publish(struct shm_producer *ring)
{
	if (ring->published == ring->produced)
		return false;
	ring->published = ring->produced;
	/* release: pairs with the acquire in shm_consumer_peek; else entries are read half written
	 */
	SHM_TELL();
	atomic_store_explicit(ring->produced_word, ring->produced, memory_order_release);
	return true;
}

void shm_consumer_init(struct shm_consumer *ring, const uint8_t *bytes, uint32_t size,
		       uint32_t payload_max, _Atomic uint32_t *consumed_word,
		       const _Atomic uint32_t *produced_word)
{
	ring->bytes = bytes;
	ring->size = size;
	ring->payload_max = payload_max;
	ring->consumed_word = consumed_word;
	ring->produced_word = produced_word;
	ring->consumed = atomic_load_explicit(consumed_word, memory_order_relaxed);
	ring->released = ring->consumed;
	ring->produced = ring->consumed;
	ring->entry_size = 0;
}

static int refresh_entries(struct shm_consumer *ring)
{
	/* acquire: pairs with the release in shm_producer_publish */
	uint32_t produced = atomic_load_explicit(ring->produced_word, memory_order_acquire);

	SHM_SEEN();
	/* measured from `released`, because that is the space that the producer may fill */
	if (produced - ring->released > ring->size ||
	    produced - ring->released < ring->produced - ring->released ||
	    (produced - ring->consumed) % SHM_ENTRY_ALIGN != 0)
		return -EPROTO;
	ring->produced = produced;
	return 0;
}

static int check_entry(const struct shm_consumer *ring, const struct shm_entry *entry)
{
	uint32_t to_end = ring->size - (ring->consumed & (ring->size - 1));
	uint32_t available = ring->produced - ring->consumed;

	if (entry->type == SHM_ENTRY_FILLER)
		return entry->size == to_end && entry->size <= available ? 0 : -EPROTO;
	if (entry->payload > ring->payload_max || entry->size != entry_size(entry->payload) ||
	    entry->size > to_end || entry->size > available)
		return -EPROTO;
	return 0;
}

int shm_consumer_peek(struct shm_consumer *ring, struct shm_entry *entry_out,
		      const uint8_t **payload_out)
{
	for (;;) {
		const uint8_t *at = ring->bytes + (ring->consumed & (ring->size - 1));
		int rc;

		if (ring->produced == ring->consumed) {
			rc = refresh_entries(ring);
			if (rc < 0)
				return rc;
			if (ring->produced == ring->consumed)
				return 0;
		}
		memcpy(entry_out, at, sizeof(*entry_out));
		rc = check_entry(ring, entry_out);
		if (rc < 0)
			return rc;
		if (entry_out->type != SHM_ENTRY_FILLER) {
			ring->entry_size = entry_out->size;
			*payload_out = at + SHM_ENTRY_ALIGN;
			return 1;
		}
		ring->consumed += entry_out->size;
	}
}

void shm_consumer_pop(struct shm_consumer *ring)
{
	ring->consumed += ring->entry_size;
	ring->entry_size = 0;
}

bool shm_consumer_release(struct shm_consumer *ring)
{
	if (ring->released == ring->consumed)
		return false;
	ring->released = ring->consumed;
	/* release: pairs with the acquire in refresh_space */
	atomic_store_explicit(ring->consumed_word, ring->consumed, memory_order_release);
	return true;
}
