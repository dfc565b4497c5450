// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several small messages in a row into memory that only the kernel may copy to for us
 * (LMR-USE-14): their bytes are collected, and one system call puts them into their Receives. What
 * is not of that kind, or the first of its kind, goes by rx.c.
 */
#include "soft/shm/conn.h"

#include <errno.h>
#include <string.h>

#include "soft/bounce.h"

#define BURST_PAYLOAD 512u /* longest message */
#define BURST_REGIONS 8u   /* regions that are pinned at once */

struct burst {
	uint8_t *memory; /* where the bytes are collected */
	uint32_t bytes;
	unsigned count;
	struct iovec places[SHM_BATCH];
	bool is_solicited[SHM_BATCH];
	unsigned regions;
	struct core_lmr *pinned[BURST_REGIONS];
};

/* One whole message of that kind? */
static bool is_small(const struct shm_entry *entry)
{
	return entry->type == SHM_ENTRY_SEND && (entry->flags & SHM_FLAG_FIRST) &&
	       (entry->flags & SHM_FLAG_LAST) && entry->payload == entry->length &&
	       entry->payload && entry->payload <= BURST_PAYLOAD;
}

/* The region of the segment, pinned for this burst; NULL: it takes the other way. */
static struct core_lmr *region_of(struct burst *burst, struct core_ep *ep,
				  const DAT_LMR_TRIPLET *segment)
{
	struct core_lmr *last = burst->regions ? burst->pinned[burst->regions - 1] : NULL;
	struct core_lmr *lmr;

	/* mostly all are in one; relaxed: it is pinned, so that nothing but its key may change */
	if (last &&
	    atomic_load_explicit(&last->key, memory_order_relaxed) == segment->lmr_context &&
	    core_mem_is_inside(last->address, last->length, segment))
		return last;
	if (burst->regions == BURST_REGIONS)
		return NULL;
	lmr = core_mem_get(&ep->ia->mem, segment, core_recv_pz(ep), CORE_MEM_TARGET);
	if (lmr)
		burst->pinned[burst->regions++] = lmr;
	return lmr;
}

/* Has that message a Receive of its own, of one segment, that only the kernel can fill? */
static bool find_place(struct burst *burst, struct shm_conn *conn, struct core_ep *ep,
		       uint32_t length)
{
	const struct core_wqe *receive = core_recv_at(ep, burst->count);
	struct core_lmr *lmr;
	void *address;

	if (!receive || receive->segments != 1 || receive->len < length)
		return false;
	lmr = region_of(burst, ep, &receive->iov[0]);
	address = (void *)(uintptr_t)receive->iov[0].virtual_address;
	if (!lmr || shm_alias(conn, lmr, address))
		return false;
	burst->places[burst->count] = (struct iovec){address, length};
	return true;
}

/* Takes the messages out of the ring. 0, or -EPROTO. */
static int collect(struct burst *burst, struct shm_conn *conn, struct core_ep *ep, uint64_t budget,
		   unsigned most)
{
	const uint8_t *payload;
	struct shm_entry entry;

	while (burst->count < most) {
		int rc = shm_consumer_peek(&conn->request_in, &entry, &payload);

		if (rc < 0)
			return rc;
		if (!rc || !is_small(&entry) || burst->bytes + entry.payload > SOFT_BOUNCE_MAX ||
		    burst->bytes + entry.payload > budget ||
		    !find_place(burst, conn, ep, entry.payload))
			return 0;
		rc = shm_tx_told(conn, ep, entry.done);
		if (rc < 0)
			return rc;
		memcpy(burst->memory + burst->bytes, payload, entry.payload);
		burst->is_solicited[burst->count++] = entry.flags & SHM_FLAG_SOLICITED;
		burst->bytes += entry.payload;
		shm_consumer_pop(&conn->request_in);
	}
	return 0;
}

/* How many of the messages have got to their places. */
static unsigned place_all(struct burst *burst, struct shm_conn *conn)
{
	ssize_t placed = soft_bounce_place(conn->engine->bounce, burst->places, burst->count);
	const uint8_t *from = burst->memory;
	unsigned i;

	for (i = 0; i < burst->count; i++) {
		const struct iovec *place = &burst->places[i];

		if (placed == -EAGAIN) {
			if (soft_copy_safe_unordered(place->iov_base, from, place->iov_len) < 0)
				break;
			from += place->iov_len;
		} else if (placed < (ssize_t)place->iov_len) {
			break;
		} else {
			placed -= (ssize_t)place->iov_len;
		}
	}
	return i;
}

static void complete(struct burst *burst, struct shm_conn *conn, struct core_ep *ep, unsigned count)
{
	unsigned i;

	if (count)
		conn->arrival.is_blocked = false;
	conn->done += count;
	for (i = 0; i < count; i++)
		core_recv_done(ep, DAT_DTO_SUCCESS, burst->places[i].iov_len,
			       burst->is_solicited[i]);
}

int shm_burst(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget, unsigned most,
	      unsigned *taken_out)
{
	struct burst burst;
	unsigned placed = 0;
	int rc;

	*taken_out = 0;
	burst.memory = soft_bounce_begin(conn->engine->bounce);
	if (!burst.memory)
		return 0;
	burst.bytes = 0;
	burst.count = 0;
	burst.regions = 0;
	rc = collect(&burst, conn, ep, *budget, most);
	if (burst.count)
		placed = place_all(&burst, conn);
	while (burst.regions)
		core_mem_put(burst.pinned[--burst.regions]);
	soft_bounce_end(conn->engine->bounce);
	complete(&burst, conn, ep, placed);
	*budget -= burst.bytes;
	*taken_out = placed;
	if (placed < burst.count)
		return -EFAULT;
	return rc;
}
