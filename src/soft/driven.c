// SPDX-License-Identifier: BSD-2-Clause
/* Does a thread of the consumer drive the connections? (driven.h) */
#include "soft/driven.h"

#include "core/base/clock.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define SET(word, value) atomic_store_explicit(&(word), value, memory_order_relaxed)

void soft_driven_end_group(struct soft_driven *driven, uint64_t polls)
{
	uint64_t now = core_now_ns();

	if (now - GET(driven->began_ns) <= SOFT_DRIVEN_GROUP) {
		soft_poller_note(&driven->poller);
		SET(driven->last_ns, now);
	}
	SET(driven->began_ns, now);
	SET(driven->group, polls);
}

void soft_driven_begin(struct soft_driven *driven, uint64_t now)
{
	SET(driven->last_ns, now);
	SET(driven->began_ns, now);
	SET(driven->group, GET(driven->polls));
}

bool soft_is_driven(const struct soft_driven *driven, struct soft_driven_view *view, uint64_t now)
{
	uint64_t last = GET(driven->last_ns);
	uint64_t time = now > last ? now - last : 0; /* `last` may be newer than `now` */

	if (!last)
		return false;
	if (last != view->last_ns) {
		view->last_ns = last;
		view->spent = soft_poller_time(&driven->poller);
	}
	return time < SOFT_DRIVEN_AFTER ||
	       (time < SOFT_DRIVEN_PREEMPTED &&
		soft_poller_is_preempted(&view->spent, SOFT_DRIVEN_GROUP));
}
