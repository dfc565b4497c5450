// SPDX-License-Identifier: BSD-2-Clause
/* What the service thread of an engine attends to (attention.h). */
#include "soft/attention.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#define DUE_MAX 64u /* served in one go */

void soft_attention_init(struct soft_attention *attention, struct core_service *service)
{
	attention->service = service;
	atomic_init(&attention->deadline_ns, UINT64_MAX);
	core_lock_init(&attention->lock);
}

void soft_attention_add(struct soft_attention *attention, struct soft_attended *object)
{
	atomic_init(&object->refs, 1);
	core_lock_acquire(&attention->lock);
	object->next = attention->first;
	if (object->next)
		object->next->prev = object;
	attention->first = object;
	core_lock_release(&attention->lock);
}

void soft_attention_remove(struct soft_attention *attention, struct soft_attended *object)
{
	core_lock_acquire(&attention->lock);
	if (object->next)
		object->next->prev = object->prev;
	if (object->prev)
		object->prev->next = object->next;
	else
		attention->first = object->next;
	core_lock_release(&attention->lock);
}

bool soft_attended_get_unless_dead(struct soft_attended *object)
{
	/* relaxed: the lock of the list that the object is on orders its destruction */
	uint32_t seen = atomic_load_explicit(&object->refs, memory_order_relaxed);

	while (seen)
		if (atomic_compare_exchange_weak_explicit(&object->refs, &seen, seen + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

struct soft_attended *soft_attention_find(struct soft_attention *attention,
					  const struct soft_attended *after,
					  bool (*is_it)(struct soft_attended *, void *),
					  void *argument)
{
	struct soft_attended *object;

	core_lock_acquire(&attention->lock);
	for (object = after ? after->next : attention->first; object; object = object->next)
		if (!object->is_listener && is_it(object, argument) &&
		    soft_attended_get_unless_dead(object))
			break;
	core_lock_release(&attention->lock);
	return object;
}

/* --- events --- */

int soft_attention_watch(struct soft_attention *attention, struct soft_attended *object, int op,
			 int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = object};
	bool is_new = !atomic_exchange(&object->is_watched, true);
	int rc;

	if (is_new) /* before the first event */
		soft_attended_get(object);
	if (!epoll_ctl(attention->service->epoll_fd, op, fd, &event))
		return 0;
	rc = -errno;
	if (is_new) {
		atomic_store(&object->is_watched, false);
		(void)soft_attended_put(object); /* not the last one: the caller has it */
	}
	return rc;
}

void soft_attention_unwatch(struct soft_attention *attention, struct soft_attended *object, int fd)
{
	if (!atomic_exchange(&object->is_watched, false))
		return;
	/* explicitly: a copy of the socket in a child would keep the entry alive */
	(void)epoll_ctl(attention->service->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	soft_attention_ask(attention, object);
	(void)soft_attended_put(object); /* not the last one: the list has it */
}

/* --- those that ask --- */

void soft_attention_ask(struct soft_attention *attention, struct soft_attended *object)
{
	core_lock_acquire(&attention->lock);
	if (!object->is_asking) {
		object->is_asking = true;
		soft_attended_get(object);
		object->next_asking = attention->asking;
		attention->asking = object;
	}
	core_lock_release(&attention->lock);
	core_service_kick(attention->service);
}

void soft_attention_serve_asking(struct soft_attention *attention, soft_attention_serve *serve,
				 void *argument)
{
	struct soft_attended *object, *next;

	core_lock_acquire(&attention->lock);
	next = attention->asking;
	attention->asking = NULL;
	while ((object = next) != NULL) {
		next = object->next_asking;
		object->is_asking = false; /* it may ask again */
		core_lock_release(&attention->lock);
		serve(object, argument);
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

void soft_attention_set(struct soft_attention *attention, struct soft_attended *object,
			uint64_t deadline_ns)
{
	/* sequentially consistent, and before the earliest: see soft_attention_serve_due */
	atomic_store(&object->deadline_ns, deadline_ns);
	if (deadline_ns)
		soft_attention_look(attention, deadline_ns);
}

void soft_attention_lower(struct soft_attention *attention, struct soft_attended *object,
			  uint64_t deadline_ns)
{
	uint64_t now_set = atomic_load(&object->deadline_ns);

	if (!now_set || deadline_ns < now_set)
		soft_attention_set(attention, object, deadline_ns);
}

/* Up to DUE_MAX objects whose deadline has passed, with a reference each. Lowers the earliest
 * deadline to that of the others. */
static unsigned find_due(struct soft_attention *attention, uint64_t now,
			 struct soft_attended *due[DUE_MAX])
{
	uint64_t earliest = UINT64_MAX;
	struct soft_attended *object;
	unsigned count = 0;

	core_lock_acquire(&attention->lock);
	for (object = attention->first; object; object = object->next) {
		uint64_t deadline = atomic_load(&object->deadline_ns);

		if (!deadline)
			continue;
		if (deadline > now || count == DUE_MAX) {
			earliest = deadline < earliest ? deadline : earliest;
		} else if (soft_attended_get_unless_dead(object)) {
			/* a deadline that another thread has set meanwhile stays */
			atomic_compare_exchange_strong(&object->deadline_ns, &deadline, 0);
			due[count++] = object;
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
	/* before the scan: a thread that sets a deadline stores it in the object first */
	atomic_store(&attention->deadline_ns, UINT64_MAX);
	count = find_due(attention, now, due);
	for (i = 0; i < count; i++)
		serve(due[i], argument);
}
