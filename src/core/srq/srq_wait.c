// SPDX-License-Identifier: BSD-2-Clause
/* The wait list of a shared receive queue (srq.h). */
#include "core/base/hooks.h"
#include "core/base/transport_ops.h"
#include "core/srq/srq.h"

/* The number of waiting endpoints ahead of this one: all of them, if it is not on the list. */
static uint32_t srq_place_locked(const struct core_srq *srq, const struct core_srq_user *user)
{
	uint32_t place = 0;

	if (!user->is_waiting)
		return srq->waiting;
	for (const struct core_srq_user *i = srq->first_waiting; i != user; i = i->next)
		place++;
	return place;
}

static void srq_add_waiter_locked(struct core_srq *srq, struct core_srq_user *user)
{
	user->is_offered = false;
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

static void srq_remove_waiter_locked(struct core_srq *srq, struct core_srq_user *user)
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

/* The first endpoint that may take a buffer and was not offered one yet. */
static struct core_ref srq_offer_next_locked(struct core_srq *srq)
{
	uint32_t entitled = core_srq_available_locked(srq);
	struct core_ref none = {NULL, 0};

	for (struct core_srq_user *i = srq->first_waiting; i && entitled; i = i->next, entitled--) {
		if (i->is_offered)
			continue;
		i->is_offered = true;
		return core_handle_ref(i->cell);
	}
	return none;
}

void core_srq_end_offer(struct core_srq *srq, struct core_srq_user *user)
{
	/* it waits again: is_offered may belong to the next offer, of another thread */
	if (user->has_asked)
		return;
	core_lock_acquire(&srq->cell->lock);
	if (user->is_offered)
		srq_remove_waiter_locked(srq, user);
	core_lock_release(&srq->cell->lock);
}

void core_srq_serve(struct core_ref srq_ref)
{
	struct core_srq *srq;
	struct core_ref user;

	while ((srq = core_handle_lock_ref(srq_ref, DAT_HANDLE_TYPE_SRQ))) {
		user = srq_offer_next_locked(srq);
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

	do { /* repeats if an SRQ was freed meanwhile, because the next one may have been skipped */
		removed = core_ia_removed(ia, DAT_HANDLE_TYPE_SRQ);
		for (uint32_t i = 0; core_ia_nth(ia, DAT_HANDLE_TYPE_SRQ, i, &ref); i++)
			core_srq_serve(ref);
	} while (core_ia_removed(ia, DAT_HANDLE_TYPE_SRQ) != removed);
}

bool core_srq_take(struct core_srq *srq, struct core_srq_user *user)
{
	bool is_entitled;

	user->has_asked = true;
	core_lock_acquire(&srq->cell->lock);
	is_entitled = srq_place_locked(srq, user) < core_srq_available_locked(srq);
	if (is_entitled) {
		srq_remove_waiter_locked(srq, user);
		core_srq_copy_buffer_locked(user,
					    &srq->queue.slots[srq->queue.head++ & srq->queue.mask]);
		core_srq_check_watermark_locked(srq);
	} else {
		srq_add_waiter_locked(srq, user);
	}
	core_lock_release(&srq->cell->lock);
	return is_entitled;
}

void core_srq_cancel_wait(struct core_srq *srq, struct core_srq_user *user)
{
	bool is_next_entitled;

	core_lock_acquire(&srq->cell->lock);
	is_next_entitled = user->is_waiting && core_srq_available_locked(srq);
	srq_remove_waiter_locked(srq, user);
	core_lock_release(&srq->cell->lock);
	if (is_next_entitled) /* no endpoint can be locked here, so ops->kick serves the next one */
		srq->ia->ops->kick(srq->ia);
}
