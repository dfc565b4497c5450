// SPDX-License-Identifier: BSD-2-Clause
/* What the service thread of an engine attends to (attention.h). */
#include "soft/attention.h"

#include <stddef.h>

#define DUE_MAX 64u /* served in one go */

void soft_attention_init(struct soft_attention *attention, struct core_service *service)
{
	attention->service = service;
	atomic_init(&attention->deadline_ns, UINT64_MAX);
	core_lock_init(&attention->lock);
}

void soft_attention_add(struct soft_attention *attention, struct soft_attended *conn)
{
	atomic_init(&conn->refs, 1);
	core_lock_acquire(&attention->lock);
	conn->next = attention->first;
	if (conn->next)
		conn->next->prev = conn;
	attention->first = conn;
	core_lock_release(&attention->lock);
}

void soft_attention_remove(struct soft_attention *attention, struct soft_attended *conn)
{
	core_lock_acquire(&attention->lock);
	if (conn->next)
		conn->next->prev = conn->prev;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		attention->first = conn->next;
	core_lock_release(&attention->lock);
}

bool soft_attended_get_unless_dead(struct soft_attended *conn)
{
	/* relaxed: the lock of the list that the connection is on orders its destruction */
	uint32_t seen = atomic_load_explicit(&conn->refs, memory_order_relaxed);

	while (seen)
		if (atomic_compare_exchange_weak_explicit(&conn->refs, &seen, seen + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

struct soft_attended *soft_attention_find(struct soft_attention *attention,
					  bool (*is_it)(struct soft_attended *, void *),
					  void *argument)
{
	struct soft_attended *conn;

	core_lock_acquire(&attention->lock);
	for (conn = attention->first; conn; conn = conn->next)
		if (is_it(conn, argument) && soft_attended_get_unless_dead(conn))
			break;
	core_lock_release(&attention->lock);
	return conn;
}

/* --- those that ask --- */

void soft_attention_ask(struct soft_attention *attention, struct soft_attended *conn)
{
	core_lock_acquire(&attention->lock);
	if (!conn->is_asking) {
		conn->is_asking = true;
		soft_attended_get(conn);
		conn->next_asking = attention->asking;
		attention->asking = conn;
	}
	core_lock_release(&attention->lock);
	core_service_kick(attention->service);
}

void soft_attention_serve_asking(struct soft_attention *attention, soft_attention_serve *serve,
				 void *argument)
{
	struct soft_attended *conn, *next;

	core_lock_acquire(&attention->lock);
	next = attention->asking;
	attention->asking = NULL;
	while ((conn = next) != NULL) {
		next = conn->next_asking;
		conn->is_asking = false; /* it may ask again */
		core_lock_release(&attention->lock);
		serve(conn, argument);
		core_lock_acquire(&attention->lock);
	}
	core_lock_release(&attention->lock);
}

/* --- deadlines --- */

/* False: the earliest is as early already. */
static bool lower_earliest(struct soft_attention *attention, uint64_t deadline_ns)
{
	uint64_t old = atomic_load(&attention->deadline_ns);

	while (deadline_ns < old)
		if (atomic_compare_exchange_weak(&attention->deadline_ns, &old, deadline_ns))
			return true;
	return false;
}

void soft_attention_look(struct soft_attention *attention, uint64_t deadline_ns)
{
	if (lower_earliest(attention, deadline_ns))
		core_service_kick(attention->service);
}

void soft_attention_set(struct soft_attention *attention, struct soft_attended *conn,
			uint64_t deadline_ns)
{
	/* sequentially consistent, and before the earliest: see soft_attention_serve_due */
	atomic_store(&conn->deadline_ns, deadline_ns);
	if (deadline_ns)
		soft_attention_look(attention, deadline_ns);
}

void soft_attention_lower(struct soft_attention *attention, struct soft_attended *conn,
			  uint64_t deadline_ns)
{
	uint64_t now_set = atomic_load(&conn->deadline_ns);

	if (!now_set || deadline_ns < now_set)
		soft_attention_set(attention, conn, deadline_ns);
}

/* Up to DUE_MAX connections whose deadline has passed, with a reference each. Lowers the earliest
 * deadline to that of the others. */
static unsigned find_due(struct soft_attention *attention, uint64_t now,
			 struct soft_attended *due[DUE_MAX])
{
	uint64_t earliest = UINT64_MAX;
	struct soft_attended *conn;
	unsigned count = 0;

	core_lock_acquire(&attention->lock);
	for (conn = attention->first; conn; conn = conn->next) {
		uint64_t deadline = atomic_load(&conn->deadline_ns);

		if (!deadline)
			continue;
		if (deadline > now || count == DUE_MAX) {
			earliest = deadline < earliest ? deadline : earliest;
		} else if (soft_attended_get_unless_dead(conn)) {
			/* a deadline that another thread has set meanwhile stays */
			atomic_compare_exchange_strong(&conn->deadline_ns, &deadline, 0);
			due[count++] = conn;
		}
	}
	core_lock_release(&attention->lock);
	(void)lower_earliest(attention, earliest);
	return count;
}

void soft_attention_serve_due(struct soft_attention *attention, uint64_t now,
			      soft_attention_serve *serve, void *argument)
{
	struct soft_attended *due[DUE_MAX];
	unsigned count, i;

	if (now < atomic_load(&attention->deadline_ns))
		return;
	/* before the scan: a thread that sets a deadline stores it in the connection first */
	atomic_store(&attention->deadline_ns, UINT64_MAX);
	count = find_due(attention, now, due);
	for (i = 0; i < count; i++)
		serve(due[i], argument);
}
