// SPDX-License-Identifier: BSD-2-Clause
/* Records in a ring (spill.h). */
#include "soft/iwarp/transfer/spill.h"

#include <string.h>

/* Finds room that is one piece, and sets `end` to it. */
static bool find_room(struct iw_spill *spill, uint32_t size)
{
	if (spill->is_wrapped)
		return size <= spill->first - spill->end;
	if (size <= spill->size - spill->end)
		return true;
	if (size > spill->first)
		return false;
	spill->wrap = spill->end;
	spill->end = 0;
	spill->is_wrapped = true;
	return true;
}

/* Joins the room at both ends. Only a record that is longer than older ones needs that. */
static void move_down(struct iw_spill *spill)
{
	memmove(spill->data, spill->data + spill->first, spill->end - spill->first);
	spill->end -= spill->first;
	spill->first = 0;
}

uint8_t *iw_spill_add(struct iw_spill *spill, uint32_t size)
{
	uint8_t *at;

	if (!find_room(spill, size)) {
		if (spill->is_wrapped || size > spill->size - (spill->end - spill->first))
			return NULL;
		move_down(spill);
	}
	at = spill->data + spill->end;
	spill->end += size;
	spill->records++;
	return at;
}

void iw_spill_remove(struct iw_spill *spill, uint32_t size)
{
	spill->first += size;
	spill->records--;
	if (spill->is_wrapped && spill->first == spill->wrap) {
		spill->first = 0;
		spill->is_wrapped = false;
	}
	if (!spill->records)
		spill->first = spill->end = 0;
}
