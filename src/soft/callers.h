// SPDX-License-Identifier: BSD-2-Clause
/*
 * A bound on the descriptors that strangers make this process hold. A connection to a service point
 * is a caller of its engine until it is accepted, and again when that has failed. Half of
 * RLIMIT_NOFILE is for callers; all engines with service points have equal shares. An engine whose
 * share is used up takes no more callers before others have given way: first those that the
 * decision has gone against, then those that have said nothing for 100 ms, the oldest first. A
 * request that the consumer has not answered never gives way.
 */
#ifndef SOFT_CALLERS_H
#define SOFT_CALLERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum soft_caller_kind {
	SOFT_CALLER_NONE,    /* it is not counted */
	SOFT_CALLER_REFUSED, /* rejected, or failed: open only so that the peer learns of it */
	SOFT_CALLER_SILENT,  /* it has sent no whole request */
	SOFT_CALLER_OFFERED, /* the consumer has its request */
	SOFT_CALLER_KINDS,
};

/* Part of a connection. */
struct soft_caller {
	void *conn; /* the connection; constant */
	/* the lock of the callers */
	enum soft_caller_kind kind;
	uint64_t since_ns; /* when it became of that kind */
	struct soft_caller *next;
	struct soft_caller *prev;
};

/* Part of an engine. */
struct soft_callers {
	pthread_mutex_t lock; /* a leaf; guards the rest */
	uint32_t listeners;
	struct soft_caller_list {
		struct soft_caller *first; /* the oldest */
		struct soft_caller *last;
		uint32_t count;
	} lists[SOFT_CALLER_KINDS];
};

void soft_callers_init(struct soft_callers *callers);
void soft_callers_destroy(struct soft_callers *callers);
/* A service point of the engine begins to listen, and ends. */
void soft_callers_listen(struct soft_callers *callers);
void soft_callers_unlisten(struct soft_callers *callers);

/* The caller is of that kind from now on. */
void soft_callers_set(struct soft_callers *callers, struct soft_caller *caller,
		      enum soft_caller_kind kind);
bool soft_callers_is(struct soft_callers *callers, const struct soft_caller *caller,
		     enum soft_caller_kind kind);
/* May one more be taken? */
bool soft_callers_has_room(struct soft_callers *callers);
/*
 * The connection that gives way first. `get` takes a reference to it, with the lock held; false: it
 * is being destroyed. NULL: none gives way.
 */
void *soft_callers_first(struct soft_callers *callers, bool (*get)(void *conn));
/*
 * Calls the function for the connections whose requests the consumer has not answered, oldest
 * first, until it returns true; with the lock held, so that none of them is answered meanwhile.
 */
bool soft_callers_find_offered(struct soft_callers *callers,
			       bool (*is_it)(void *conn, void *argument), void *argument);

#endif
