// SPDX-License-Identifier: BSD-2-Clause
/* Does a thread of the consumer drive the connections? (driven.h) */
#include "soft/driven.h"

#include "core/base/clock.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define SET(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)

static void begin_group(struct soft_driven *driven, uint64_t polls, uint64_t now)
{
	SET(driven->began_ns, now);
	SET(driven->group, polls);
}

/* The group ended in time. Moving the mark costs system calls, so not each time. */
static void note_thread(struct soft_driven *driven, uint64_t now)
{
	uint64_t used_ns;

	SET(driven->last_ns, now);
	if (now - GET(driven->marked_ns) < SOFT_DRIVEN_GROUP / 4)
		return;
	SET(driven->marked_ns, now);
	(void)soft_mark_move(&driven->mark, &used_ns);
}

/*
 * Did the group take no longer than `limit`? The mark may be older than the group by a quarter of
 * SOFT_DRIVEN_GROUP: then the answer is no too often.
 */
static bool is_in_time(struct soft_driven *driven, uint64_t now, uint64_t limit)
{
	uint64_t used_ns;

	return now - GET(driven->began_ns) <= limit ||
	       (soft_mark_move(&driven->mark, &used_ns) && used_ns <= limit);
}

void soft_driven_end_group(struct soft_driven *driven, uint64_t polls, uint32_t least)
{
	uint64_t now = core_now_ns();
	int64_t count = (int64_t)(polls - GET(driven->group)); /* negative: stepped back */

	/* a few polls may count for many, and take as long */
	if (count > 0 && least &&
	    is_in_time(driven, now, SOFT_DRIVEN_GROUP * (uint64_t)count / least))
		note_thread(driven, now);
	begin_group(driven, polls, now);
}

void soft_driven_begin(struct soft_driven *driven, uint64_t now)
{
	SET(driven->last_ns, now);
	SET(driven->marked_ns, 0);
	begin_group(driven, GET(driven->polls), now);
}

uint64_t soft_driven_left(const struct soft_driven *driven, uint64_t now)
{
	uint64_t last = GET(driven->last_ns);
	uint64_t time = now > last ? now - last : 0; /* `last` may be newer than `now` */

	return last && time < SOFT_DRIVEN_AFTER ? SOFT_DRIVEN_AFTER - time : 0;
}
