// SPDX-License-Identifier: BSD-2-Clause
/* Pins on registered regions, a set for each thread (pins.h). */
#include "core/base/pins.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define SPINS 100u

__thread struct core_pins core_pins_own __attribute__((tls_model("initial-exec")));

/*
 * A leaf lock, never held while anything is waited for, but from our first handler of a fork to the
 * last: handlers of the consumer run in between, in the forking thread, and may come by here.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uintptr_t forking; /* the thread that holds it for a fork, the same in the child */
static struct core_pins *sets;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end; /* takes the set of a thread that ends off the list */
static bool is_ready;

static void sets_lock(void)
{
	/* relaxed: no thread but the forking one stores its own number */
	if (atomic_load_explicit(&forking, memory_order_relaxed) != core_lock_self())
		pthread_mutex_lock(&lock);
}

static void sets_unlock(void)
{
	if (atomic_load_explicit(&forking, memory_order_relaxed) != core_lock_self())
		pthread_mutex_unlock(&lock);
}

/* Once and for all: destructors that the consumer has may still come, and no other one of ours. */
static void list_out(void *argument)
{
	struct core_pins *pins = argument;
	struct core_pins **link = &sets;

	sets_lock();
	while (*link != pins)
		link = &(*link)->next;
	*link = pins->next;
	sets_unlock();
	pins->is_listed = false;
	pins->is_over = true;
}

static void list_in(struct core_pins *pins)
{
	if (!is_ready || pthread_setspecific(at_end, pins))
		return;
	pins->is_listed = true;
	sets_lock();
	pins->next = sets;
	sets = pins;
	sets_unlock();
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	atomic_store_explicit(&forking, core_lock_self(), memory_order_relaxed);
}

static void after_fork(void)
{
	atomic_store_explicit(&forking, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

/* There are no other threads here, and what they have noted is nobody's. */
static void pins_in_child(void)
{
	sets = core_pins_own.is_listed ? &core_pins_own : NULL;
	core_pins_own.next = NULL;
	after_fork();
}

static void pins_watch_forks(void)
{
	is_ready = pthread_key_create(&at_end, list_out) == 0 &&
		   pthread_atfork(before_fork, after_fork, pins_in_child) == 0;
}

void core_pins_begin(struct core_pinned *region)
{
	/* relaxed: the key is set behind them, by a release. The pins that are counted stay:
	 * somebody may be about to find out that his key is stale */
	atomic_store_explicit(&region->fenced, 0, memory_order_relaxed);
	atomic_store_explicit(&region->is_light, false, memory_order_relaxed);
}

/* Marks a region that is pinned often. */
static void pins_count(struct core_pinned *region)
{
	/* relaxed: threads that overwrite each other's count only delay the mark */
	uint32_t fenced = atomic_load_explicit(&region->fenced, memory_order_relaxed) + 1;

	atomic_store_explicit(&region->fenced, fenced, memory_order_relaxed);
	/* sequentially consistent: see core_pin */
	if (fenced >= CORE_PINS_OFTEN && core_fence_can(CORE_FENCE_PROCESS))
		atomic_store(&region->is_light, true);
}

void core_pin_slow(struct core_pinned *region)
{
	struct core_pins *pins = &core_pins_own;

	if (!pins->is_listed && !pins->is_over) {
		pthread_once(&once, pins_watch_forks);
		list_in(pins);
	}
	if (!pins->is_listed || pins->used == CORE_PINS_MOST) {
		atomic_fetch_add(&region->others, 1);
		return;
	}
	/* sequentially consistent, and a full fence: see pins.h */
	atomic_exchange(&pins->regions[pins->used++], region);
	pins_count(region);
}

void core_unpin_slow(struct core_pinned *region)
{
	struct core_pins *pins = &core_pins_own;

	for (uint32_t i = pins->used; i; i--) {
		if (atomic_load_explicit(&pins->regions[i - 1], memory_order_relaxed) != region)
			continue;
		/* release: as in core_unpin */
		atomic_store_explicit(&pins->regions[i - 1], NULL, memory_order_release);
		while (pins->used &&
		       !atomic_load_explicit(&pins->regions[pins->used - 1], memory_order_relaxed))
			pins->used--;
		return;
	}
	/* release: likewise */
	atomic_fetch_sub_explicit(&region->others, 1, memory_order_release);
}

static bool is_pinned(struct core_pinned *region)
{
	bool is_found = false;

	sets_lock();
	/* sequentially consistent: meets core_pin; its acquire pairs with the release in
	 * core_unpin */
	for (struct core_pins *pins = sets; pins; pins = pins->next)
		for (uint32_t i = 0; i < CORE_PINS_MOST; i++)
			is_found |= atomic_load(&pins->regions[i]) == region;
	sets_unlock();
	return is_found || atomic_load(&region->others);
}

void core_pins_wait(struct core_pinned *region)
{
	const struct timespec pause = {0, 20000};
	unsigned int spins = 0;

	/* full fence: the key is cleared before the mark is read, and the notes */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&region->is_light))
		core_fence_everywhere(CORE_FENCE_PROCESS);
	while (is_pinned(region)) {
		if (++spins < SPINS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
}
