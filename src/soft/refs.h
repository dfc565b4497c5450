// SPDX-License-Identifier: BSD-2-Clause
/* References to a connection from a list that does not hold one. */
#ifndef SOFT_REFS_H
#define SOFT_REFS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Takes a reference unless none is left, because the connection is being destroyed. */
static inline bool soft_get_unless_dead(_Atomic uint32_t *refs)
{
	/* relaxed: the lock of the list that the connection is on orders its destruction */
	uint32_t seen = atomic_load_explicit(refs, memory_order_relaxed);

	while (seen)
		if (atomic_compare_exchange_weak_explicit(
			    refs, &seen, seen + 1, memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

#endif
