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

#define SOFT_IOV_MAX 32u /* segments of one request or Receive */

struct soft_pins {
	uint32_t count;
	struct core_lmr *lmr[SOFT_IOV_MAX];
	struct iovec iov[SOFT_IOV_MAX];
};
/* Pins bytes [offset, offset+len) of the list. -EACCES: a region is not valid any more. */
int soft_pin(struct core_ep *ep, const DAT_LMR_TRIPLET *list, uint32_t segments, uint64_t offset,
	     uint64_t len, enum core_mem_use use, struct soft_pins *pins);
/* soft_pin for the Receive at the head, whose zone may be that of an SRQ. */
int soft_pin_receive(struct core_ep *ep, const struct core_wqe *receive, uint64_t offset,
		     uint64_t len, struct soft_pins *pins);
void soft_unpin(struct soft_pins *pins);
/* Copies between pinned segments of the consumer and memory of ours (copy.h). */
int soft_gather(uint8_t *to, const struct soft_pins *pins);
int soft_scatter(const struct soft_pins *pins, const uint8_t *from);

/*
 * Can a page of it not be accessed in that way any more? After a copy that has failed: the kernel
 * does not say whose memory it was.
 */
bool soft_is_gone(const struct soft_pins *pins, enum core_mem_use use);

/* --- for the fast paths, in threads of the consumer --- */

/*
 * Pins the region of the segment that was posted last, which is that of ep->cached_source and has
 * that key, by core_pin_one. False: that is not possible, or the region is not valid any more.
 */
CORE_INLINE bool soft_pin_posted(struct core_ep *ep, DAT_LMR_CONTEXT key)
{
	struct core_lmr *lmr = ep->cached_source.lmr;

	if (!core_pin_one(&lmr->pinned))
		return false;
	/* sequentially consistent: as in core_mem_pin */
	if (atomic_load(&lmr->key) == key)
		return true;
	core_unpin_one();
	return false;
}

/* Copies from a posted segment, to a posted segment: in any case. */
__attribute__((noinline)) bool soft_fetch_any(struct core_ep *ep, DAT_LMR_CONTEXT key,
					      DAT_VADDR address, void *to, size_t len);
__attribute__((noinline)) bool soft_place_any(struct core_ep *ep, const DAT_LMR_TRIPLET *segment,
					      const void *from, size_t len);

/* Copies the segment that was posted last, which is in the region of ep->cached_source. False: it
 * is not valid any more. */
CORE_INLINE bool soft_fetch(struct core_ep *ep, DAT_LMR_CONTEXT key, DAT_VADDR address, void *to,
			    size_t len)
{
	const void *from = (const void *)(uintptr_t)address;

	if (!soft_pin_posted(ep, key))
		return soft_fetch_any(ep, key, address, to, len);
	/* most copies are one word */
	if (__builtin_expect(len == sizeof(uint64_t), true))
		memcpy(to, from, sizeof(uint64_t));
	else
		memcpy(to, from, len);
	core_unpin_one();
	return true;
}

/*
 * Copies bytes to a posted segment that has room for them; mostly it is in the region of
 * ep->cached_target. False: it is not valid any more.
 */
CORE_INLINE bool soft_place(struct core_ep *ep, const DAT_LMR_TRIPLET *segment,
			    const uint8_t *bytes, uint32_t len)
{
	const struct core_mem_cache *known = &ep->cached_target;
	struct core_lmr *lmr = known->lmr;
	bool is_inside;

	if (!core_pin_one(&lmr->pinned))
		return soft_place_any(ep, segment, bytes, len);
	/* sequentially consistent: as in core_mem_pin */
	is_inside = atomic_load(&lmr->name) == (known->use | segment->lmr_context) &&
		    core_mem_is_inside(known->address, known->length, segment);
	if (__builtin_expect(is_inside, true))
		soft_copy_ordered((void *)(uintptr_t)segment->virtual_address, bytes, len);
	core_unpin_one();
	return __builtin_expect(is_inside, true) || soft_place_any(ep, segment, bytes, len);
}

/* Places a message in a Receive. False, too, if it has no segment or several, or is too short. */
CORE_INLINE bool soft_place_in_receive(struct core_ep *ep, const struct core_wqe *wqe,
				       const uint8_t *bytes, uint32_t len)
{
	return wqe->segments == 1 && wqe->len >= len && soft_place(ep, wqe->iov, bytes, len);
}

#endif
