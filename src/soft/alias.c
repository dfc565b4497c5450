// SPDX-License-Identifier: BSD-2-Clause
/* Mappings of our own of registered memory (alias.h). */
#include "soft/alias.h"

#include <unistd.h>

bool soft_alias_is_worth(const struct core_lmr *lmr, uint32_t uses)
{
	struct soft_lmr *mine = lmr->transport;

	/* relaxed: one of them is the one, whichever */
	if (!mine || atomic_load_explicit(&mine->uses, memory_order_relaxed) >= uses)
		return false;
	return atomic_fetch_add_explicit(&mine->uses, 1, memory_order_relaxed) + 1 == uses;
}

void soft_alias_make(struct core_lmr *lmr)
{
	struct soft_lmr *mine = lmr->transport;
	uint64_t offset;
	int fd;

	if (soft_region_find(lmr->address, lmr->length, &fd, &offset) < 0)
		return;
	/* release: pairs with the acquire in soft_alias */
	if (soft_region_map(fd, offset, lmr->length, true, &mine->region) == 0)
		atomic_store_explicit(&mine->base, mine->region.base, memory_order_release);
	close(fd);
}

void soft_alias_drop(struct core_lmr *lmr)
{
	struct soft_lmr *mine = lmr->transport;

	if (atomic_load_explicit(&mine->base, memory_order_acquire))
		soft_region_unmap(&mine->region);
}
