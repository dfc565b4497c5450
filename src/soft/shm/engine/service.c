// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loop of the service thread (service.h).
 */
#include "soft/shm/engine/service.h"

#include <sys/epoll.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/process.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"

#define EVENTS 64
#define ARM_NS 1000000u /* until connections that could not be armed are tried again */

static uint64_t driven_left(const struct shm_engine *engine, uint64_t now)
{
	return atomic_load(&engine->is_unattended) ? 0 : soft_driven_left(&engine->driven, now);
}

bool shm_service_is_driven(struct shm_engine *engine)
{
	return driven_left(engine, core_now_ns()) > 0;
}

static void service_event(struct shm_engine *engine, uint64_t id)
{
	enum shm_slot_kind kind;
	void *object = shm_engine_find(engine, id, &kind);

	if (!object)
		return;
	if (kind == SHM_SLOT_LISTENER) {
		shm_listener_event(object);
		shm_listener_put(object);
		return;
	}
	if (kind == SHM_SLOT_PROCESS) {
		shm_process_event(engine, object);
		shm_process_put(engine, object);
		return;
	}
	shm_service_conn(object);
	shm_conn_put(object);
}

/* No thread polls: arms every connection that has no work. */
static void arm_all(struct shm_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->active_count, memory_order_relaxed);

	for (; count; count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);

		if (!conn)
			return;
		if (!shm_engine_arm_one(engine, conn))
			atomic_store_explicit(&engine->has_more, true, memory_order_relaxed);
		shm_conn_put(conn);
	}
}

/* Polls the active connections unless a thread of the consumer does. */
static void service_progress(struct shm_engine *engine)
{
	if (shm_service_is_driven(engine))
		return;
	atomic_store_explicit(&engine->has_more, false, memory_order_relaxed);
	shm_engine_poll_all(engine);
	arm_all(engine);
}

static bool has_more(struct shm_engine *engine)
{
	return atomic_load_explicit(&engine->has_more, memory_order_relaxed);
}

/* Are there connections that someone must poll? */
static bool has_active(struct shm_engine *engine)
{
	return has_more(engine) || atomic_load(&engine->disarmed) > 0;
}

static int wait_for_events(struct shm_engine *engine, struct epoll_event *events)
{
	uint64_t now = core_now_ns();
	uint64_t left = soft_wait_until(atomic_load(&engine->deadline_ns), now);
	uint64_t late = SOFT_WAIT_NO_LIMIT;

	if (has_active(engine)) {
		uint64_t driven = driven_left(engine, now);

		if (driven)
			late = driven;
		else if (has_more(engine))
			left = 0;
		else if (left > ARM_NS)
			left = ARM_NS;
	}
	return soft_thread_wait(&engine->service, events, EVENTS, left, late);
}

static bool is_arriving(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return shm_conn_state(conn) == SHM_ARRIVING;
}

static void drop_arriving(struct shm_engine *engine)
{
	struct shm_conn *conn;
	uint32_t index = 0;

	while ((conn = shm_engine_next_conn(engine, &index, is_arriving, 0)) != NULL) {
		shm_setup_drop_silent(conn);
		shm_conn_put(conn);
	}
	while ((conn = shm_engine_next_pending(engine)) != NULL)
		shm_conn_put(conn);
}

/* Something was reported, or the time is over. */
static void service_turn(struct shm_engine *engine)
{
	if (atomic_exchange(&engine->is_serving, false))
		core_srq_serve_all(engine->ia);
	shm_service_pending(engine);
	shm_service_deadlines(engine);
	if (has_active(engine))
		service_progress(engine);
}

static void serve_events(struct shm_engine *engine)
{
	struct epoll_event events[EVENTS];
	int count = wait_for_events(engine, events);
	int i;

	for (i = 0; i < count && !atomic_load(&engine->is_stopping); i++) {
		if (events[i].data.u64 == SHM_ID_KICK)
			soft_thread_kicked(&engine->service);
		else
			service_event(engine, events[i].data.u64);
	}
	if (!atomic_load(&engine->is_stopping))
		service_turn(engine);
}

struct service {
	struct shm_engine *engine;
	struct soft_guard guard;
};

/* Of the thread, which may have been cancelled (soft_thread_stop). */
static void service_end(void *argument)
{
	struct service *service = argument;

	soft_thread_ends(&service->engine->service);
	drop_arriving(service->engine);
	shm_listener_resume_all(service->engine);
	soft_guard_end(&service->guard);
	shm_engine_put(service->engine);
}

void *shm_service_run(void *argument)
{
	struct service service = {.engine = argument};

	(void)core_cancel_off();
	soft_is_library_thread = true;
	soft_guard_begin(&service.guard, service.engine->adapter->keys);
	pthread_cleanup_push(service_end, &service);
	while (!atomic_load(&service.engine->is_stopping))
		serve_events(service.engine);
	pthread_cleanup_pop(true);
	return NULL;
}
