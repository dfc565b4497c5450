// SPDX-License-Identifier: BSD-2-Clause
/* Pins on registered regions: one set per thread (pins.h). */
#include "core/base/pins.h"

#include <pthread.h>

#include "core/base/clock.h"

__thread struct core_pins core_pins_own CORE_TLS_FAST;

/*
 * Guards the list of sets. A leaf lock: no thread blocks while it holds it. The exception is a
 * fork: the lock is held from our prepare handler to our parent or child handler. Handlers of the
 * consumer may run in between, in the same thread, and may call in here.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uintptr_t forking; /* the thread that holds the lock for a fork, also in the child */
static struct core_pins *sets;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key; /* its destructor removes the set of an exiting thread */
static bool is_ready;

static void sets_lock(void)
{
	if (!core_lock_is_self(&forking))
		pthread_mutex_lock(&lock);
}

static void sets_unlock(void)
{
	if (!core_lock_is_self(&forking))
		pthread_mutex_unlock(&lock);
}

/*
 * The destructor of the key. The set is not added again: destructors of the consumer may still pin
 * regions in this thread, but this one would not run again.
 */
static void set_remove(void *argument)
{
	struct core_pins *pins = argument;
	struct core_pins **link = &sets;

	sets_lock();
	while (*link != pins)
		link = &(*link)->next;
	*link = pins->next;
	sets_unlock();
	pins->is_listed = false;
	pins->has_exited = true;
}

static void set_add(struct core_pins *pins)
{
	if (!is_ready || pthread_setspecific(exit_key, pins))
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

/* The child has one thread. The sets of the other threads are dropped with their pins. */
static void pins_in_child(void)
{
	sets = core_pins_own.is_listed ? &core_pins_own : NULL;
	core_pins_own.next = NULL;
	after_fork();
}

static void pins_init(void)
{
	is_ready = pthread_key_create(&exit_key, set_remove) == 0 &&
		   pthread_atfork(before_fork, after_fork, pins_in_child) == 0;
}

void core_pins_begin(struct core_pinned *region)
{
	/*
	 * relaxed: the key is stored after them, with release. `others` is not reset: a thread
	 * with a stale key may have one pin counted there at this moment; it removes the pin once
	 * it has checked the key.
	 */
	atomic_store_explicit(&region->fenced, 0, memory_order_relaxed);
	atomic_store_explicit(&region->is_light, false, memory_order_relaxed);
}

/* Counts a pin with a full fence. Makes pins light once the region has had many of them. */
static void pins_count_fenced(struct core_pinned *region)
{
	/* relaxed, and not atomic as a whole: a lost increment only delays the switch */
	uint32_t fenced = atomic_load_explicit(&region->fenced, memory_order_relaxed) + 1;

	atomic_store_explicit(&region->fenced, fenced, memory_order_relaxed);
	/* sequentially consistent: pairs with the load in core_pin_one, as explained there */
	if (fenced >= CORE_FENCE_AFTER_PINS && core_fence_is_supported(CORE_FENCE_PROCESS))
		atomic_store(&region->is_light, true);
}

void core_pin(struct core_pinned *region)
{
	struct core_pins *pins = &core_pins_own;

	if (!pins->is_listed && !pins->has_exited) {
		pthread_once(&once, pins_init);
		set_add(pins);
	}
	if (!pins->is_listed || pins->used == CORE_PINS_MAX) {
		atomic_fetch_add(&region->others, 1);
		return;
	}
	/* light: see core_pin_one */
	if (atomic_load(&region->is_light)) {
		atomic_store_explicit(&pins->regions[pins->used++], region, memory_order_release);
		atomic_signal_fence(memory_order_seq_cst);
		return;
	}
	/* sequentially consistent, hence a full fence before the key is read: see pins.h */
	atomic_exchange(&pins->regions[pins->used++], region);
	pins_count_fenced(region);
}

void core_unpin(struct core_pinned *region)
{
	struct core_pins *pins = &core_pins_own;

	for (uint32_t i = pins->used; i; i--) {
		if (atomic_load_explicit(&pins->regions[i - 1], memory_order_relaxed) != region)
			continue;
		/* release: as in core_unpin_one */
		atomic_store_explicit(&pins->regions[i - 1], NULL, memory_order_release);
		while (pins->used &&
		       !atomic_load_explicit(&pins->regions[pins->used - 1], memory_order_relaxed))
			pins->used--;
		return;
	}
	/* release: as in core_unpin_one */
	atomic_fetch_sub_explicit(&region->others, 1, memory_order_release);
}

static bool is_pinned(struct core_pinned *region)
{
	bool is_found = false;

	sets_lock();
	/*
	 * sequentially consistent: with the fence in core_pins_wait, either these loads see a pin
	 * or core_mem_pin sees that the key is stale. The acquire pairs with the release in
	 * core_unpin and core_unpin_one, else the copy under the pin could still be running.
	 */
	for (struct core_pins *pins = sets; pins; pins = pins->next) {
		is_found |= atomic_load(&pins->one) == region;
		for (uint32_t i = 0; i < CORE_PINS_MAX; i++)
			is_found |= atomic_load(&pins->regions[i]) == region;
	}
	sets_unlock();
	return is_found || atomic_load(&region->others);
}

void core_pins_wait(struct core_pinned *region)
{
	unsigned int turns = 0;

	/*
	 * full fence between the store to the key and the loads of is_light and of the sets: the
	 * other half of the fence in core_pin
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&region->is_light))
		core_fence_heavy(CORE_FENCE_PROCESS);
	while (is_pinned(region))
		core_wait_turn(&turns);
}
