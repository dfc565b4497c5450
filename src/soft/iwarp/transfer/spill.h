// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records in a ring: the oldest is taken first. Each is one piece, so one that does not fit at the
 * end of the ring goes to its beginning. Records are moved only if a new one would find no room.
 */
#ifndef IWARP_SPILL_H
#define IWARP_SPILL_H

#include <stdbool.h>
#include <stdint.h>

struct iw_spill {
	uint8_t *data; /* NULL: nothing waits */
	uint32_t size;
	uint32_t first;	 /* where the oldest record begins */
	uint32_t end;	 /* behind the newest */
	uint32_t wrap;	 /* behind the last record before the end of the ring, if is_wrapped */
	bool is_wrapped; /* the newest is before the oldest */
	uint32_t records;
};

/* Adds a record of that size and returns where it is; NULL: there is no room. */
uint8_t *iw_spill_add(struct iw_spill *spill, uint32_t size);
/* The oldest record; there is one. */
static inline const uint8_t *iw_spill_first(const struct iw_spill *spill)
{
	return spill->data + spill->first;
}
/* Removes the oldest record, which has that size. */
void iw_spill_remove(struct iw_spill *spill, uint32_t size);

#endif
