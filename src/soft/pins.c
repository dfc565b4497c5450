// SPDX-License-Identifier: BSD-2-Clause
/* Pinned segments of the consumer's memory (pins.h). */
#include "soft/pins.h"

#include <errno.h>

#include "soft/copy.h"

#define SOFT_PAGE 4096u /* or a part of one */

/* What to pin, beside the range. */
struct pin_what {
	const DAT_LMR_TRIPLET *list;
	uint32_t segments;
	enum core_mem_use use;
	const struct core_pz *pz;
};

static int pin_range(struct core_ep *ep, const struct pin_what *what, uint64_t offset, uint64_t len,
		     struct soft_pins *pins)
{
	uint32_t i;

	pins->count = 0;
	for (i = 0; i < what->segments && len; i++) {
		const DAT_LMR_TRIPLET *whole = &what->list[i];
		DAT_LMR_TRIPLET part;
		struct core_lmr *lmr;

		if (offset >= whole->segment_length) {
			offset -= whole->segment_length;
			continue;
		}
		/*
		 * member by member: a copy of the struct would wait for the stores that have just
		 * written it, see data_copy_local
		 */
		part.lmr_context = whole->lmr_context;
		part.virtual_address = whole->virtual_address + offset;
		part.segment_length = whole->segment_length - offset;
		offset = 0;
		if (part.segment_length > len)
			part.segment_length = len;
		len -= part.segment_length;
		lmr = pins->count < SOFT_IOV_MAX
			      ? core_mem_get(ep->ia->mem, &part, what->pz, what->use)
			      : NULL;
		if (!lmr) {
			soft_unpin(pins);
			return -EACCES;
		}
		pins->lmr[pins->count] = lmr;
		pins->iov[pins->count].iov_base = (void *)(uintptr_t)part.virtual_address;
		pins->iov[pins->count].iov_len = part.segment_length;
		pins->count++;
	}
	return 0;
}

int soft_pin(struct core_ep *ep, const DAT_LMR_TRIPLET *list, uint32_t segments, uint64_t offset,
	     uint64_t len, enum core_mem_use use, struct soft_pins *pins)
{
	const struct pin_what what = {list, segments, use, ep->pz};

	return pin_range(ep, &what, offset, len, pins);
}

int soft_pin_receive(struct core_ep *ep, const struct core_wqe *receive, uint64_t offset,
		     uint64_t len, struct soft_pins *pins)
{
	const struct pin_what what = {receive->iov, receive->segments, CORE_MEM_TARGET,
				      core_recv_pz(ep)};

	return pin_range(ep, &what, offset, len, pins);
}

void soft_unpin(struct soft_pins *pins)
{
	while (pins->count)
		core_mem_put(pins->lmr[--pins->count]);
}

int soft_gather(uint8_t *to, const struct soft_pins *pins)
{
	uint32_t i;

	for (i = 0; i < pins->count; i++) {
		const struct iovec *iov = &pins->iov[i];

		if (soft_copy_from_consumer(to, iov->iov_base, iov->iov_len) < 0)
			return -EFAULT;
		to += iov->iov_len;
	}
	return 0;
}

int soft_scatter(const struct soft_pins *pins, const uint8_t *from)
{
	uint32_t i;

	for (i = 0; i < pins->count; i++) {
		const struct iovec *iov = &pins->iov[i];

		if (soft_copy_to_consumer(iov->iov_base, from, iov->iov_len) < 0)
			return -EFAULT;
		from += iov->iov_len;
	}
	return 0;
}

/* A page that is written to is copied onto itself. */
static bool is_page_gone(uintptr_t at, enum core_mem_use use)
{
	uint8_t byte;
	void *to = use == CORE_MEM_TARGET ? (void *)at : &byte;

	return soft_copy_safe_unordered(to, (const void *)at, 1) == -EFAULT;
}

bool soft_is_gone(const struct soft_pins *pins, enum core_mem_use use)
{
	uint32_t i;

	for (i = 0; i < pins->count; i++) {
		uintptr_t at = (uintptr_t)pins->iov[i].iov_base;
		uintptr_t end = at + pins->iov[i].iov_len;

		for (; at < end; at = (at | (SOFT_PAGE - 1)) + 1)
			if (is_page_gone(at, use))
				return true;
	}
	return false;
}

bool soft_fetch_any(struct core_ep *ep, DAT_LMR_CONTEXT key, DAT_VADDR address, void *to,
		    size_t len)
{
	const DAT_LMR_TRIPLET segment = {
		.lmr_context = key, .virtual_address = address, .segment_length = len};
	struct core_lmr *lmr = core_mem_get(ep->ia->mem, &segment, ep->pz, CORE_MEM_SOURCE);

	if (!lmr)
		return false;
	memcpy(to, (const void *)(uintptr_t)address, len);
	core_mem_put(lmr);
	return true;
}

bool soft_place_any(struct core_ep *ep, const DAT_LMR_TRIPLET *segment, const void *from,
		    size_t len)
{
	struct core_lmr *lmr = core_mem_get(ep->ia->mem, segment, ep->pz, CORE_MEM_TARGET);

	if (!lmr)
		return false;
	soft_copy_ordered((void *)(uintptr_t)segment->virtual_address, from, len);
	core_mem_put(lmr);
	return true;
}
