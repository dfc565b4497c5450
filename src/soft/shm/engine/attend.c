// SPDX-License-Identifier: BSD-2-Clause
/* See attend.h. */
#include "soft/shm/engine/attend.h"

#include <sched.h>
#include <sys/epoll.h>

#include "core/base/clock.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/engine/service.h"

#define RECENT_NS 1000000u  /* after a connection has changed, the next change is near */
#define LOST_NS 500000u	    /* a yield that takes so long ran a thread that computes */
#define PAUSE_NS 100000000u /* after that */
#define WATCH_NS 5000000u   /* for so long a thread that attends may have no processor */

static void tell_service(struct shm_engine *engine, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = SHM_ID_SOCKETS};

	/* cannot fail: both descriptors are open, and one is in the set of the other */
	(void)epoll_ctl(engine->service.epoll_fd, EPOLL_CTL_MOD, engine->sockets_fd, &event);
}

static bool is_likely(const struct shm_engine *engine, uint64_t now)
{
	/* it may be newer than `now` */
	return atomic_load_explicit(&engine->changed_ns, memory_order_relaxed) + RECENT_NS > now;
}

bool shm_attend_begin(struct shm_engine *engine)
{
	uint64_t now = core_now_ns();

	if (!is_likely(engine, now) ||
	    now < atomic_load_explicit(&engine->pause_end_ns, memory_order_relaxed) ||
	    atomic_exchange(&engine->is_attended, true))
		return false;
	/* sequentially consistent: see shm_attend_limit */
	if (!atomic_load(&engine->is_watched))
		shm_engine_kick(engine);
	tell_service(engine, 0);
	return true;
}

uint64_t shm_attend_limit(struct shm_engine *engine, uint64_t ns)
{
	bool is_watched = is_likely(engine, core_now_ns());

	/*
	 * Sequentially consistent, like shm_attend_begin: a thread that begins to attend finds that
	 * it is not watched, or is found here.
	 */
	atomic_store(&engine->is_watched, is_watched);
	if (!is_watched && atomic_load(&engine->is_attended)) {
		is_watched = true;
		atomic_store(&engine->is_watched, true);
	}
	return is_watched && ns > WATCH_NS ? WATCH_NS : ns;
}

/*
 * The peer may share the processor. If another thread does, one that computes, it keeps the
 * processor until the end of its slice: -1. A thread that sleeps gets it back at once.
 */
static int yield(struct shm_engine *engine)
{
	uint64_t begin = core_now_ns();
	uint64_t end;

	sched_yield();
	end = core_now_ns();
	if (end - begin < LOST_NS)
		return 0;
	atomic_store_explicit(&engine->pause_end_ns, end + PAUSE_NS, memory_order_relaxed);
	return -1;
}

int shm_attend(struct shm_engine *engine)
{
	int count = 0;

	/* if the service thread is at work, this thread does not wait for it */
	if (!pthread_mutex_trylock(&engine->service_lock)) {
		if (!atomic_load(&engine->is_stopping))
			count = shm_service_sockets(engine);
		pthread_mutex_unlock(&engine->service_lock);
	}
	return count > 0 ? count : yield(engine);
}

void shm_attend_end(struct shm_engine *engine)
{
	/* epoll reports at once what is ready by now */
	tell_service(engine, EPOLLIN);
	atomic_store(&engine->is_attended, false);
}
