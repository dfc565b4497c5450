// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine object: its life, its service thread, and how others wake that thread.
 */
#include "soft/shm/engine/engine.h"

#include <errno.h>
#include <sys/random.h>

#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/engine/service.h"
#include "soft/soft.h"

static int start_thread(struct shm_engine *engine)
{
	int rc = soft_thread_open(&engine->service, (epoll_data_t){.u64 = SHM_ID_KICK});

	if (rc < 0)
		return rc;
	shm_engine_get(engine); /* the thread's */
	rc = soft_thread_start(&engine->service, engine->ia, "dat-shm", shm_service_run, engine);
	if (rc < 0)
		shm_engine_put(engine);
	return rc;
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
	engine->private_max = (uint32_t)adapter->ia->provider_attr.max_private_data_size;
	soft_thread_init(&engine->service);
	engine->dir = -1;
	atomic_init(&engine->refs, 1);
	atomic_init(&engine->deadline_ns, UINT64_MAX);
	atomic_init(&engine->resume_ns, UINT64_MAX);
	core_lock_init(&engine->lock);
	/* a socket, and perhaps a descriptor of the process (connect/process.h) */
	soft_callers_init(&engine->callers, 2);
	if (getrandom(engine->token, sizeof(engine->token), 0) != sizeof(engine->token)) {
		rc = -EIO;
		goto err;
	}
	/* a directory that cannot be used is an error, also where it would not be used */
	if (engine->settings.socket_dir[0]) {
		rc = shm_dir_open(engine->settings.socket_dir, &engine->ia->address, &engine->dir);
		if (rc < 0)
			goto err;
	}
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
	soft_thread_close(&engine->service);
	soft_fd_close(engine->dir);
	core_lock_destroy(&engine->lock);
	soft_callers_destroy(&engine->callers);
	shm_engine_free_slots(engine);
	core_slab_free(engine, sizeof(*engine));
}

void shm_engine_close(struct shm_engine *engine)
{
	atomic_store(&engine->is_stopping, true);
	soft_thread_stop(&engine->service);
	shm_engine_put(engine);
}

void shm_engine_kick(struct shm_engine *engine)
{
	soft_thread_kick(&engine->service);
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
