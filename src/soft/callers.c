// SPDX-License-Identifier: BSD-2-Clause
/* A bound on the descriptors that strangers make this process hold (callers.h). */
#include "soft/callers.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>

#include "core/base/clock.h"

#define WAITING_MAX 256u /* silent and refused callers of an engine: they take memory, too */
/* a request may come later than its connection: nobody is dropped before that time (IWCM-39) */
#define SILENT_NS UINT64_C(100000000)

/* Engines of this process that have service points. */
static _Atomic uint32_t listening;
static pthread_once_t listening_once = PTHREAD_ONCE_INIT;

/* The engines of the parent are not closed in a forked child (GEN-35). */
static void listening_child(void)
{
	atomic_store(&listening, 0);
}

static void listening_init(void)
{
	(void)pthread_atfork(NULL, NULL, listening_child);
}

void soft_callers_init(struct soft_callers *callers)
{
	pthread_mutex_init(&callers->lock, NULL);
}

void soft_callers_destroy(struct soft_callers *callers)
{
	pthread_mutex_destroy(&callers->lock);
}

void soft_callers_listen(struct soft_callers *callers)
{
	pthread_once(&listening_once, listening_init);
	pthread_mutex_lock(&callers->lock);
	if (callers->listeners++ == 0)
		atomic_fetch_add(&listening, 1);
	pthread_mutex_unlock(&callers->lock);
}

void soft_callers_unlisten(struct soft_callers *callers)
{
	pthread_mutex_lock(&callers->lock);
	if (--callers->listeners == 0)
		atomic_fetch_sub(&listening, 1);
	pthread_mutex_unlock(&callers->lock);
}

static void remove_locked(struct soft_caller_list *list, struct soft_caller *caller)
{
	if (caller->prev)
		caller->prev->next = caller->next;
	else
		list->first = caller->next;
	if (caller->next)
		caller->next->prev = caller->prev;
	else
		list->last = caller->prev;
	list->count--;
}

static void append_locked(struct soft_caller_list *list, struct soft_caller *caller)
{
	caller->next = NULL;
	caller->prev = list->last;
	if (list->last)
		list->last->next = caller;
	else
		list->first = caller;
	list->last = caller;
	list->count++;
}

void soft_callers_set(struct soft_callers *callers, struct soft_caller *caller,
		      enum soft_caller_kind kind)
{
	pthread_mutex_lock(&callers->lock);
	if (caller->kind != SOFT_CALLER_NONE)
		remove_locked(&callers->lists[caller->kind], caller);
	caller->kind = kind;
	if (kind != SOFT_CALLER_NONE) {
		caller->since_ns = core_now_ns();
		append_locked(&callers->lists[kind], caller);
	}
	pthread_mutex_unlock(&callers->lock);
}

bool soft_callers_is(struct soft_callers *callers, const struct soft_caller *caller,
		     enum soft_caller_kind kind)
{
	bool is;

	pthread_mutex_lock(&callers->lock);
	is = caller->kind == kind;
	pthread_mutex_unlock(&callers->lock);
	return is;
}

/* Descriptors that callers of one engine may hold. The limit of the process may change. */
static uint64_t share(void)
{
	uint32_t engines = atomic_load(&listening);
	struct rlimit limit = {.rlim_cur = 0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur / 2 / (engines ? engines : 1);
}

bool soft_callers_has_room(struct soft_callers *callers)
{
	uint64_t held;
	uint32_t waiting;

	pthread_mutex_lock(&callers->lock);
	waiting = callers->lists[SOFT_CALLER_REFUSED].count +
		  callers->lists[SOFT_CALLER_SILENT].count;
	held = waiting + callers->lists[SOFT_CALLER_OFFERED].count;
	pthread_mutex_unlock(&callers->lock);
	/* one, whatever the limit */
	return waiting < WAITING_MAX && (!held || held < share());
}

void *soft_callers_first(struct soft_callers *callers, bool (*get)(void *conn))
{
	uint64_t now = core_now_ns();
	const struct soft_caller *caller;

	pthread_mutex_lock(&callers->lock);
	caller = callers->lists[SOFT_CALLER_REFUSED].first;
	while (caller && !get(caller->conn))
		caller = caller->next;
	if (!caller) {
		caller = callers->lists[SOFT_CALLER_SILENT].first;
		if (caller && (now - caller->since_ns < SILENT_NS || !get(caller->conn)))
			caller = NULL;
	}
	pthread_mutex_unlock(&callers->lock);
	return caller ? caller->conn : NULL;
}

bool soft_callers_find_offered(struct soft_callers *callers,
			       bool (*is_it)(void *conn, void *argument), void *argument)
{
	const struct soft_caller *caller;

	pthread_mutex_lock(&callers->lock);
	caller = callers->lists[SOFT_CALLER_OFFERED].first;
	while (caller && !is_it(caller->conn, argument))
		caller = caller->next;
	pthread_mutex_unlock(&callers->lock);
	return caller != NULL;
}
