// SPDX-License-Identifier: BSD-2-Clause
/* Records in a ring (spill.h). */
#include "soft/iwarp/transfer/spill.h"

#include <string.h>
#include <sys/mman.h>

bool iw_spill_open(struct iw_spill *spill)
{
	void *data;

	if (spill->data)
		return true;
	data = mmap(NULL, IW_SPILL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (data == MAP_FAILED)
		return false;
	*spill = (struct iw_spill){.data = data, .size = IW_SPILL_SIZE};
	return true;
}

void iw_spill_close(struct iw_spill *spill)
{
	if (spill->data)
		(void)munmap(spill->data, spill->size);
	spill->data = NULL;
}

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

static uint32_t used(const struct iw_spill *spill)
{
	return spill->is_wrapped ? spill->wrap - spill->first + spill->end
				 : spill->end - spill->first;
}

/*
 * Makes all the room one piece: moves the oldest records to the end of the ring if it is wrapped,
 * else to its beginning. That is rare: at most once in a round of the ring each, because of a
 * record that is longer than older ones.
 */
static void join_room(struct iw_spill *spill)
{
	uint32_t behind = spill->is_wrapped ? spill->wrap : spill->end;
	uint32_t to = spill->is_wrapped ? spill->size - (behind - spill->first) : 0;

	memmove(spill->data + to, spill->data + spill->first, behind - spill->first);
	if (spill->is_wrapped)
		spill->wrap = spill->size;
	else
		spill->end -= spill->first;
	spill->first = to;
}

uint8_t *iw_spill_add(struct iw_spill *spill, uint32_t size)
{
	uint8_t *at;

	if (!find_room(spill, size)) {
		if (size > spill->size - used(spill))
			return NULL;
		join_room(spill);
	}
	at = spill->data + spill->end;
	spill->end += size;
	if (spill->end > spill->peak)
		spill->peak = spill->end;
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
	if (spill->records)
		return;
	spill->first = spill->end = 0;
	if (spill->peak > IW_SPILL_KEPT)
		iw_spill_close(spill);
}
