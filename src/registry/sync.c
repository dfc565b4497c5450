// SPDX-License-Identifier: BSD-2-Clause
/*
 * The registry's lock, its serializer, and the fork handlers that keep both usable in a child. The
 * serializer is a flag guarded by the lock, not a mutex, because a child must be able to release it
 * when its owner exists in the parent only.
 */
#include "sync.h"
#include "dynamic.h"
#include "ia.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Guarded by the lock. */
static int lock_cancel_state; /* of the thread that holds the lock */
static struct {
	bool is_busy;
	pthread_t owner;
	unsigned int depth;
	int cancel_state;
} serializer;

void registry_lock(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	lock_cancel_state = state;
}

void registry_unlock(void)
{
	int state = lock_cancel_state;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

void registry_wait_locked(void)
{
	int state = lock_cancel_state;

	pthread_cond_wait(&changed, &lock);
	lock_cancel_state = state;
}

void registry_changed_locked(void)
{
	pthread_cond_broadcast(&changed);
}

void registry_serializer_enter(void)
{
	pthread_t self = pthread_self();
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	registry_lock();
	while (serializer.is_busy && !pthread_equal(serializer.owner, self))
		registry_wait_locked();
	if (serializer.depth++ == 0) {
		serializer.is_busy = true;
		serializer.owner = self;
		serializer.cancel_state = state;
	}
	registry_unlock();
}

void registry_serializer_exit(void)
{
	int state = PTHREAD_CANCEL_DISABLE;

	registry_lock();
	assert(serializer.is_busy && pthread_equal(serializer.owner, pthread_self()));
	if (--serializer.depth == 0) {
		state = serializer.cancel_state;
		serializer.is_busy = false;
		registry_changed_locked();
	}
	registry_unlock();
	pthread_setcancelstate(state, NULL);
}

static void fork_prepare(void)
{
	registry_lock();
}

static void fork_parent(void)
{
	registry_unlock();
}

/* A child has none of the parent's instances (GEN-35). It has none of the parent's other threads
 * either, including those that waited on the condition variable. */
static void fork_child(void)
{
	pthread_cond_init(&changed, NULL);
	if (serializer.is_busy && !pthread_equal(serializer.owner, pthread_self())) {
		serializer.is_busy = false;
		serializer.depth = 0;
	}
	registry_ia_forget_all();
	registry_dynamic_forget_users();
	registry_unlock();
}

__attribute__((constructor)) static void fork_handlers_install(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}
