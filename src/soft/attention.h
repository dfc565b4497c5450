// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the service thread of an engine attends to: its connections and listeners, those that ask
 * for it, and those whose deadline has passed. It serves each with a reference.
 *
 * Events of epoll point to the object. Whoever ends them asks for the thread, so that the object
 * lives until the batch of events is handled that may still name it.
 */
#ifndef SOFT_ATTENTION_H
#define SOFT_ATTENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/lock.h"
#include "core/base/service.h"

/* Part of a connection, or of a listener. */
struct soft_attended {
	_Atomic uint32_t refs;
	bool is_listener;	      /* constant */
	_Atomic bool is_watched;      /* events of epoll may name it: they have a reference */
	_Atomic uint64_t deadline_ns; /* when the service thread serves it; 0: never */
	/* the lock of the attention */
	struct soft_attended *next; /* of all */
	struct soft_attended *prev;
	struct soft_attended *next_asking;
	bool is_asking;
};

/* Part of an engine. */
struct soft_attention {
	struct core_service *service;
	_Atomic uint64_t deadline_ns; /* the earliest of all, or earlier; UINT64_MAX: none */
	struct core_lock lock;	      /* leaf; guards the rest */
	struct soft_attended *first;  /* all objects; holds no references */
	struct soft_attended *asking; /* holds references */
};

void soft_attention_init(struct soft_attention *attention, struct core_service *service);
/* An object begins with one reference, and is removed when none is left. */
void soft_attention_add(struct soft_attention *attention, struct soft_attended *object);
void soft_attention_remove(struct soft_attention *attention, struct soft_attended *object);

/*
 * Has epoll report those events of a socket of the object, which is not in the set
 * (EPOLL_CTL_ADD), or is (EPOLL_CTL_MOD): 0 or -errno.
 */
int soft_attention_watch(struct soft_attention *attention, struct soft_attended *object, int op,
			 int fd, uint32_t events);
/* Removes the socket from the set; more calls do nothing. The thread serves the object once. */
void soft_attention_unwatch(struct soft_attention *attention, struct soft_attended *object, int fd);

static inline void soft_attended_get(struct soft_attended *object)
{
	/* relaxed: the caller holds a reference, or the lock of a list that holds one */
	atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
}

/* False: none is left, because the object is being destroyed. */
bool soft_attended_get_unless_dead(struct soft_attended *object);

/* True: it was the last one, and the caller destroys the object. */
static inline bool soft_attended_put(struct soft_attended *object)
{
	/* acq_rel: the thread that destroys it sees what all others did */
	return atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1;
}

/* Has the service thread serve the object soon. Any lock but this one may be held. */
void soft_attention_ask(struct soft_attention *attention, struct soft_attended *object);
/* Sets the time at which the service thread serves the object; 0: never. */
void soft_attention_set(struct soft_attention *attention, struct soft_attended *object,
			uint64_t deadline_ns);
/* The same, unless an earlier time is set. */
void soft_attention_lower(struct soft_attention *attention, struct soft_attended *object,
			  uint64_t deadline_ns);
/* Has the service thread look at the deadlines at that time or earlier. */
void soft_attention_look(struct soft_attention *attention, uint64_t deadline_ns);

/*
 * The first connection after that object (NULL: of all) for which the function returns true, with a
 * reference, or NULL. It runs with the attention locked. The caller has a reference to `after`.
 */
struct soft_attended *soft_attention_find(struct soft_attention *attention,
					  const struct soft_attended *after,
					  bool (*is_it)(struct soft_attended *, void *),
					  void *argument);

/*
 * Service thread. `serve` drops the reference. Those that ask are served once each: one that asks
 * again and again must not keep the thread from the others. A deadline fires once, too.
 */
typedef void soft_attention_serve(struct soft_attended *object, void *argument);
void soft_attention_serve_asking(struct soft_attention *attention, soft_attention_serve *serve,
				 void *argument);
void soft_attention_serve_due(struct soft_attention *attention, uint64_t now_ns,
			      soft_attention_serve *serve, void *argument);

#endif
