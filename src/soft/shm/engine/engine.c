// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine object: its life, its service thread, and how others wake that thread.
 */
#include "soft/shm/engine/engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/shm/engine/service.h"
#include "soft/soft.h"

#define STACK_SIZE (256u * 1024u) /* of the service thread, which needs less than 64 KiB */

uint64_t shm_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * A stack of the default size takes 8 MiB of address space, and agents of the consumer do not run
 * on this one. The stack also holds the thread-local variables, whose size depends on the program:
 * if they do not fit (EINVAL), the system chooses the size.
 */
static int create_thread(struct shm_engine *engine)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	rc = pthread_create(&engine->thread, &attr, shm_service_run, engine);
	if (rc == EINVAL)
		rc = pthread_create(&engine->thread, NULL, shm_service_run, engine);
	pthread_attr_destroy(&attr);
	return rc;
}

static int start_thread(struct shm_engine *engine)
{
	sigset_t all, old;
	int rc;

	/* GEN-36: signals belong to the consumer; the thread inherits the full mask */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	shm_engine_get(engine);
	rc = create_thread(engine);
	if (rc)
		shm_engine_put(engine);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static int open_fds(struct shm_engine *engine)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = SHM_ID_KICK};

	soft_fd_begin();
	engine->epoll_fd = soft_fd_end(epoll_create1(EPOLL_CLOEXEC));
	if (engine->epoll_fd < 0)
		return engine->epoll_fd;
	soft_fd_begin();
	engine->kick_fd = soft_fd_end(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (engine->kick_fd < 0)
		return engine->kick_fd;
	if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->kick_fd, &event) < 0)
		return -errno;
	return 0;
}

int shm_engine_create(struct soft_adapter *adapter, struct shm_engine **engine_out)
{
	struct shm_engine *engine = core_slab_alloc(sizeof(*engine));
	int rc;

	if (!engine)
		return -ENOMEM;
	engine->ia = adapter->ia;
	engine->adapter = adapter;
	engine->settings = adapter->ia->settings;
	engine->epoll_fd = -1;
	engine->kick_fd = -1;
	atomic_init(&engine->refs, 1);
	atomic_init(&engine->deadline_ns, UINT64_MAX);
	core_lock_init(&engine->lock);
	if (getrandom(engine->token, sizeof(engine->token), 0) != sizeof(engine->token)) {
		rc = -EIO;
		goto err;
	}
	rc = open_fds(engine);
	if (rc < 0)
		goto err;
	rc = start_thread(engine);
	if (rc < 0)
		goto err;
	*engine_out = engine;
	return 0;
err:
	shm_engine_put(engine);
	return rc;
}

void shm_engine_get(struct shm_engine *engine)
{
	/* relaxed: the caller holds a reference already */
	atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

void shm_engine_put(struct shm_engine *engine)
{
	if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) != 1)
		return;
	soft_fd_close(engine->kick_fd);
	soft_fd_close(engine->epoll_fd);
	core_lock_destroy(&engine->lock);
	shm_engine_free_slots(engine);
	core_slab_free(engine, sizeof(*engine));
}

static void write_kick(struct shm_engine *engine)
{
	uint64_t one = 1;
	int state = core_cancel_off();
	ssize_t written;

	do
		written = write(engine->kick_fd, &one, sizeof(one));
	while (written < 0 && errno == EINTR);
	/* a full counter (EAGAIN) wakes the thread as well */
	core_cancel_restore(state);
}

void shm_engine_close(struct shm_engine *engine)
{
	atomic_store(&engine->is_stopping, true);
	write_kick(engine);
	if (pthread_equal(engine->thread, pthread_self()))
		pthread_detach(engine->thread);
	else
		pthread_join(engine->thread, NULL);
	shm_engine_put(engine);
}

void shm_engine_kick(struct shm_engine *engine)
{
	/* sequentially consistent: the caller has stored its request before; see service_kicked */
	if (!atomic_exchange(&engine->is_kicked, true))
		write_kick(engine);
}

void shm_engine_serve_srqs(struct shm_engine *engine)
{
	atomic_store(&engine->is_serving, true);
	shm_engine_kick(engine);
}

void shm_engine_lower_deadline(struct shm_engine *engine, uint64_t deadline_ns)
{
	uint64_t old = atomic_load(&engine->deadline_ns);

	while (deadline_ns < old) {
		if (atomic_compare_exchange_weak(&engine->deadline_ns, &old, deadline_ns)) {
			shm_engine_kick(engine);
			return;
		}
	}
}
