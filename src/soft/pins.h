// SPDX-License-Identifier: BSD-2-Clause
/*
 * Segments of the consumer's memory, pinned for one piece of copying: dat_lmr_free waits until they
 * are unpinned. Both engines use them.
 */
#ifndef SOFT_PINS_H
#define SOFT_PINS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/ep/ep_fast.h"
#include "core/mem/pz.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/stream.h"

#define SOFT_IOV_MAX 32u /* segments of one request or Receive */

struct soft_pins {
	uint32_t count;
	struct core_lmr *lmr[SOFT_IOV_MAX];
	struct iovec iov[SOFT_IOV_MAX];
};
/* Pins bytes [offset, offset+len) of the list. -EACCES: a region is not valid any more. */
int soft_pin(struct core_ep *ep, const DAT_LMR_TRIPLET *list, uint32_t segments, uint64_t offset,
	     uint64_t len, enum core_mem_use use, struct soft_pins *pins);
/* The same for the Receive at the head, whose zone may be that of an SRQ. */
int soft_pin_receive(struct core_ep *ep, const struct core_wqe *receive, uint64_t offset,
		     uint64_t len, struct soft_pins *pins);
void soft_unpin(struct soft_pins *pins);
/* Copies between pinned segments of the consumer and memory of ours (copy.h). */
int soft_gather(uint8_t *to, const struct soft_pins *pins, struct soft_stream *stream);
int soft_scatter(const struct soft_pins *pins, const uint8_t *from);

/*
 * Can a page of it not be accessed in that way any more? After a copy that has failed: the kernel
 * does not say whose memory it was.
 */
bool soft_is_gone(const struct soft_pins *pins, enum core_mem_use use);

/* --- for the fast paths, in threads of the consumer --- */

/*
 * Pins the region of the segment that was posted last, which is that of ep->cached_source; false:
 * it is not valid any more.
 */
CORE_INLINE bool soft_pin_posted(struct core_ep *ep, const DAT_LMR_TRIPLET *segment)
{
	struct core_lmr *lmr = ep->cached_source.lmr;

	core_pin(&lmr->pinned);
	/* sequentially consistent: as in core_mem_pin */
	if (atomic_load(&lmr->key) == segment->lmr_context)
		return true;
	core_unpin(&lmr->pinned);
	return false;
}

CORE_INLINE void soft_unpin_posted(struct core_ep *ep)
{
	core_unpin(&ep->cached_source.lmr->pinned);
}

/*
 * Pins the region of a segment that was posted for writing, mostly that of ep->cached_target. NULL:
 * the segment is not valid any more.
 */
CORE_INLINE struct core_lmr *soft_pin_target(struct core_ep *ep, const DAT_LMR_TRIPLET *segment)
{
	const struct core_mem_cache *known = &ep->cached_target;
	struct core_lmr *lmr = known->lmr;

	core_pin(&lmr->pinned);
	/* sequentially consistent: as in core_mem_pin */
	if (atomic_load(&lmr->name) == (known->use | segment->lmr_context) &&
	    core_mem_is_inside(known->address, known->length, segment))
		return lmr;
	core_unpin(&lmr->pinned);
	return core_mem_get(ep->ia->mem, segment, ep->pz, CORE_MEM_TARGET);
}

/* Copies bytes to a posted segment that has room for them. False: it is not valid any more. */
CORE_INLINE bool soft_place(struct core_ep *ep, const DAT_LMR_TRIPLET *segment,
			    const uint8_t *bytes, uint32_t len)
{
	struct core_lmr *lmr = soft_pin_target(ep, segment);

	if (!lmr)
		return false;
	soft_copy_ordered((void *)(uintptr_t)segment->virtual_address, bytes, len);
	core_unpin(&lmr->pinned);
	return true;
}

/* The same for the oldest Receive of the endpoint, which has no SRQ. False, too, if it has no
 * segment or several, or is too short. */
CORE_INLINE bool soft_place_in_receive(struct core_ep *ep, const uint8_t *bytes, uint32_t len)
{
	const struct core_wqe *wqe = core_recv_oldest(ep);

	return wqe->segments == 1 && wqe->len >= len && soft_place(ep, wqe->iov, bytes, len);
}

#endif
