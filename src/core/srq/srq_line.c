// SPDX-License-Identifier: BSD-2-Clause
/* The endpoints that wait for a buffer of a shared receive queue, in line (srq.h). */
#include "core/base/hooks.h"
#include "core/base/transport_ops.h"
#include "core/srq/srq.h"

/* How many endpoints come before this one; those not in line come last. */
static uint32_t srq_place_locked(const struct core_srq *srq, const struct core_srq_user *user)
{
	uint32_t place = 0;

	if (!user->is_waiting)
		return srq->waiting;
	for (const struct core_srq_user *i = srq->first_waiting; i != user; i = i->next)
		place++;
	return place;
}

static void srq_join_line_locked(struct core_srq *srq, struct core_srq_user *user)
{
	user->is_called = false;
	if (user->is_waiting)
		return;
	user->is_waiting = true;
	user->next = NULL;
	if (srq->last_waiting)
		srq->last_waiting->next = user;
	else
		srq->first_waiting = user;
	srq->last_waiting = user;
	srq->waiting++;
}

static void srq_leave_line_locked(struct core_srq *srq, struct core_srq_user *user)
{
	struct core_srq_user *previous = NULL;

	if (!user->is_waiting)
		return;
	for (struct core_srq_user *i = srq->first_waiting; i != user; i = i->next)
		previous = i;
	if (previous)
		previous->next = user->next;
	else
		srq->first_waiting = user->next;
	if (srq->last_waiting == user)
		srq->last_waiting = previous;
	user->is_waiting = false;
	srq->waiting--;
}

/* The next endpoint that a buffer waits for and that was not called yet. */
static struct core_ref srq_call_next_locked(struct core_srq *srq)
{
	uint32_t entitled = core_srq_available_locked(srq);
	struct core_ref none = {NULL, 0};

	for (struct core_srq_user *i = srq->first_waiting; i && entitled; i = i->next, entitled--) {
		if (i->is_called)
			continue;
		i->is_called = true;
		return core_handle_ref(i->cell);
	}
	return none;
}

void core_srq_pass_over(struct core_srq *srq, struct core_srq_user *user)
{
	core_lock_acquire(&srq->cell->lock);
	if (user->is_called)
		srq_leave_line_locked(srq, user);
	core_lock_release(&srq->cell->lock);
}

void core_srq_serve(struct core_ref srq_ref)
{
	struct core_srq *srq;
	struct core_ref user;

	while ((srq = core_handle_lock_ref(srq_ref, DAT_HANDLE_TYPE_SRQ))) {
		user = srq_call_next_locked(srq);
		core_handle_unlock(srq_ref.cell);
		if (!user.cell)
			return;
		core_hooks.srq_offer(user);
	}
}

void core_srq_serve_all(struct core_ia *ia)
{
	struct core_ref ref;
	uint32_t removed;

	do { /* again, if one was freed meanwhile: the one behind it was passed over */
		removed = core_ia_removed(ia, DAT_HANDLE_TYPE_SRQ);
		for (uint32_t i = 0; core_ia_nth(ia, DAT_HANDLE_TYPE_SRQ, i, &ref); i++)
			core_srq_serve(ref);
	} while (core_ia_removed(ia, DAT_HANDLE_TYPE_SRQ) != removed);
}

bool core_srq_take(struct core_srq *srq, struct core_srq_user *user)
{
	bool is_entitled;

	core_lock_acquire(&srq->cell->lock);
	is_entitled = srq_place_locked(srq, user) < core_srq_available_locked(srq);
	if (is_entitled) {
		srq_leave_line_locked(srq, user);
		core_srq_hand_over_locked(user,
					  &srq->queue.slots[srq->queue.head++ & srq->queue.mask]);
		core_srq_watch_locked(srq);
	} else {
		srq_join_line_locked(srq, user);
	}
	core_lock_release(&srq->cell->lock);
	return is_entitled;
}

void core_srq_leave_line(struct core_srq *srq, struct core_srq_user *user)
{
	bool is_next_entitled;

	core_lock_acquire(&srq->cell->lock);
	is_next_entitled = user->is_waiting && core_srq_available_locked(srq);
	srq_leave_line_locked(srq, user);
	core_lock_release(&srq->cell->lock);
	if (is_next_entitled) /* another one moves up, and cannot be locked from here */
		srq->ia->ops->kick(srq->ia);
}
