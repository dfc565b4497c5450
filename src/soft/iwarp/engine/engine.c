// SPDX-License-Identifier: BSD-2-Clause
/* The engine object: its life, its service thread, and how others wake that thread. */
#include "soft/iwarp/engine/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "core/base/slab.h"
#include "soft/address.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/transfer/stream.h"
#include "soft/soft.h"

#define BUFFERS_KEPT 16u

int iw_engine_create(struct soft_adapter *adapter, struct iw_engine **engine_out)
{
	struct iw_engine *engine = core_slab_alloc(sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	engine->ia = adapter->ia;
	engine->adapter = adapter;
	engine->settings = adapter->ia->settings;
	engine->is_loopback = soft_address_is_loopback(&adapter->ia->address);
	engine->kick_watch.kind = IW_KIND_KICK;
	soft_thread_init(&engine->service);
	atomic_init(&engine->refs, 1);
	atomic_init(&engine->deadline_ns, UINT64_MAX);
	core_lock_init(&engine->lock);
	soft_callers_init(&engine->callers, 1);
	pthread_mutex_init(&engine->start_lock, NULL);
	*engine_out = engine;
	return 0;
}

/* --- the service thread --- */

static int start_locked(struct iw_engine *engine)
{
	int rc = soft_thread_open(&engine->service, (epoll_data_t){.ptr = &engine->kick_watch});

	if (rc < 0) {
		soft_thread_close(&engine->service);
		return rc;
	}
	iw_engine_get(engine); /* the thread's */
	rc = soft_thread_start(&engine->service, engine->ia, "dat-tcp", iw_service_run, engine);
	if (rc < 0) {
		iw_engine_put(engine);
		soft_thread_close(&engine->service);
		return rc;
	}
	atomic_store(&engine->is_started, true);
	return 0;
}

int iw_engine_start(struct iw_engine *engine)
{
	int rc = 0;

	if (atomic_load(&engine->is_started))
		return 0;
	pthread_mutex_lock(&engine->start_lock);
	if (!atomic_load(&engine->is_started))
		rc = start_locked(engine);
	pthread_mutex_unlock(&engine->start_lock);
	return rc;
}

void iw_engine_kick(struct iw_engine *engine)
{
	soft_thread_kick(&engine->service);
}

void iw_engine_close(struct iw_engine *engine)
{
	atomic_store(&engine->is_stopping, true);
	if (atomic_load(&engine->is_started))
		soft_thread_stop(&engine->service);
	iw_engine_put(engine);
}

void iw_engine_get(struct iw_engine *engine)
{
	/* relaxed: the caller holds a reference already */
	atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

void iw_engine_put(struct iw_engine *engine)
{
	/* acq_rel: the thread that destroys it sees what all others did */
	if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) != 1)
		return;
	soft_thread_close(&engine->service);
	while (engine->buffers) {
		uint8_t *buffer = engine->buffers;

		memcpy(&engine->buffers, buffer, sizeof(engine->buffers));
		munmap(buffer, IW_BUFFER_SIZE);
	}
	pthread_mutex_destroy(&engine->start_lock);
	soft_callers_destroy(&engine->callers);
	core_lock_destroy(&engine->lock);
	core_slab_free(engine, sizeof(*engine));
}

int iw_engine_watch(struct iw_engine *engine, int fd, struct iw_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (!epoll_ctl(engine->service.epoll_fd, EPOLL_CTL_MOD, fd, &event))
		return 0;
	if (errno == ENOENT && !epoll_ctl(engine->service.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return 0;
	return -errno;
}

void iw_engine_lower_deadline(struct iw_engine *engine, uint64_t deadline_ns)
{
	uint64_t old = atomic_load(&engine->deadline_ns);

	while (deadline_ns < old) {
		if (atomic_compare_exchange_weak(&engine->deadline_ns, &old, deadline_ns)) {
			iw_engine_kick(engine);
			return;
		}
	}
}

/* --- references that events of the current batch may use --- */

void iw_engine_put_later(struct iw_engine *engine, struct iw_conn *conn)
{
	if (!conn->gone++) {
		conn->next_gone = engine->gone_first;
		engine->gone_first = conn;
	}
}

void iw_engine_put_gone(struct iw_engine *engine)
{
	struct iw_conn *conn;

	while ((conn = engine->gone_first) != NULL) {
		uint32_t count = conn->gone;

		engine->gone_first = conn->next_gone;
		conn->gone = 0;
		while (count--)
			iw_conn_put(conn);
	}
}

/* --- buffers --- */

/* Takes a kept one; its first word is the pointer to the next. */
static uint8_t *take_kept(struct iw_engine *engine)
{
	uint8_t *buffer;

	core_lock_acquire(&engine->lock);
	buffer = engine->buffers;
	if (buffer) {
		memcpy(&engine->buffers, buffer, sizeof(engine->buffers));
		engine->buffer_count--;
	}
	core_lock_release(&engine->lock);
	return buffer;
}

uint8_t *iw_buffer_get(struct iw_engine *engine)
{
	uint8_t *buffer = take_kept(engine);

	if (buffer)
		return buffer;
	buffer = mmap(NULL, IW_BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	return buffer == MAP_FAILED ? NULL : buffer;
}

void iw_buffer_put(struct iw_engine *engine, uint8_t *buffer)
{
	bool is_kept;

	if (!buffer)
		return;
	core_lock_acquire(&engine->lock);
	is_kept = engine->buffer_count < BUFFERS_KEPT;
	if (is_kept) {
		memcpy(buffer, &engine->buffers, sizeof(engine->buffers));
		engine->buffers = buffer;
		engine->buffer_count++;
	}
	core_lock_release(&engine->lock);
	if (!is_kept)
		munmap(buffer, IW_BUFFER_SIZE);
}
