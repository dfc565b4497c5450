// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records in a ring: the oldest is taken first. Each is one piece, so one that does not fit at the
 * end of the ring goes to its beginning. Records are moved only if a new one would find no room.
 *
 * The ring is mapped when it is first needed, and takes memory as it is filled. When it is empty
 * again, it goes back to the system if it was filled far.
 */
#ifndef IWARP_SPILL_H
#define IWARP_SPILL_H

#include <stdbool.h>
#include <stdint.h>

#define IW_SPILL_SIZE (1024u * 1024u)
#define IW_SPILL_KEPT (64u * 1024u) /* what an empty ring may have been filled to, and stay */

struct iw_spill {
	uint8_t *data; /* NULL: it was not needed */
	uint32_t size;
	uint32_t peak;	 /* how far it was filled */
	uint32_t first;	 /* where the oldest record begins */
	uint32_t end;	 /* behind the newest */
	uint32_t wrap;	 /* behind the last record before the end of the ring, if is_wrapped */
	bool is_wrapped; /* the newest is before the oldest */
	uint32_t records;
};

/* Maps the ring, unless it is; false: there is no memory. */
bool iw_spill_open(struct iw_spill *spill);
void iw_spill_close(struct iw_spill *spill);

/* Adds a record of that size and returns where it is; NULL: there is no room. */
uint8_t *iw_spill_add(struct iw_spill *spill, uint32_t size);
/* The oldest record; there is one. */
static inline const uint8_t *iw_spill_first(const struct iw_spill *spill)
{
	return spill->data + spill->first;
}
/* Removes the oldest record, which has that size. Without records the ring may be closed. */
void iw_spill_remove(struct iw_spill *spill, uint32_t size);

#endif
