// SPDX-License-Identifier: BSD-2-Clause
/*
 * The life of a connection object, its endpoint, and its shared segment, which the passive side
 * creates, and the active side checks and maps.
 */
#include "soft/shm/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/transport.h"
#include "core/base/cancel.h"
#include "core/base/fence.h"
#include "core/base/slab.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/bytes/ring.h"

#define SEGMENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int shm_conn_create(struct shm_engine *engine, int fd, struct shm_conn **conn_out)
{
	struct shm_conn *conn = core_slab_alloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->setup = core_slab_alloc(sizeof(*conn->setup));
	if (!conn->setup)
		goto err;
	conn->engine = engine;
	conn->fd = fd;
	conn->setup->segment_fd = -1;
	conn->setup->give_up_ns = UINT64_MAX;
	conn->setup->retry_ns = UINT64_MAX;
	conn->wake.can_skip_fence = core_fence_is_supported(CORE_FENCE_HOST);
	if (shm_engine_add(engine, conn) < 0)
		goto err;
	shm_engine_get(engine);
	*conn_out = conn;
	return 0;
err:
	core_slab_free(conn->setup, sizeof(*conn->setup));
	core_slab_free(conn, sizeof(*conn));
	return -ENOMEM;
}

void shm_conn_get(struct shm_conn *conn)
{
	soft_attended_get(&conn->attended);
}

void shm_map_release(struct shm_map *map)
{
	if (map->state == SHM_MAP_READY)
		soft_region_unmap(&map->region);
	*map = (struct shm_map){.state = SHM_MAP_FREE};
}

static void drop_maps(struct shm_conn *conn)
{
	unsigned i;

	if (!conn->remote.maps)
		return;
	for (i = 0; i < SHM_MAPS; i++)
		shm_map_release(&conn->remote.maps[i]);
	core_slab_free(conn->remote.maps, SHM_MAPS * sizeof(*conn->remote.maps));
	conn->remote.maps = NULL;
}

void shm_conn_end_setup(struct shm_conn *conn)
{
	struct shm_setup *setup = conn->setup;

	if (!setup)
		return;
	soft_fd_close(setup->segment_fd);
	if (setup->listener)
		shm_listener_put(setup->listener);
	core_slab_free(setup, sizeof(*setup));
	conn->setup = NULL;
}

static void conn_destroy(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;
	int state = core_cancel_off();

	shm_engine_remove(engine, conn);
	drop_maps(conn);
	soft_fd_close_socket(conn->fd);
	shm_conn_end_setup(conn);
	if (conn->remote.view)
		soft_view_put(conn->remote.view);
	if (shm_conn_has_segment(conn))
		munmap(conn->segment, sizeof(struct shm_segment));
	core_slab_free(conn, sizeof(*conn));
	shm_engine_put(engine);
	core_cancel_restore(state);
}

void shm_conn_put(struct shm_conn *conn)
{
	if (soft_attended_put(&conn->attended))
		conn_destroy(conn);
}

/* --- endpoint --- */

void shm_conn_attach(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;
	const struct core_ref ref = core_handle_ref(ep->cell);

	conn->ep_ref.generation = ref.generation;
	mine->conn = conn;
	/* release: pairs with the acquire in shm_conn_ep */
	__atomic_store_n(&conn->ep_ref.cell, ref.cell, __ATOMIC_RELEASE);
}

void shm_conn_unattach(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	mine->conn = NULL;
	__atomic_store_n(&conn->ep_ref.cell, NULL, __ATOMIC_RELEASE);
}

struct core_ep *shm_conn_enter(struct shm_conn *conn)
{
	struct core_ep *ep = core_ep_enter(shm_conn_ep(conn));

	if (!ep || shm_conn_belongs_to(conn, ep))
		return ep;
	core_ep_leave(ep);
	return NULL;
}

void shm_conn_drop(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	mine->conn = NULL;
	shm_conn_set_state(conn, SHM_ENDED);
	shm_conn_epoll_remove(conn);
	shm_conn_put(conn);
}

/* --- pending work --- */

bool shm_conn_has_rare_work(const struct shm_conn *conn, uint32_t watch)
{
	const struct shm_side *theirs = conn->theirs;

	/* relaxed throughout: see shm_conn_has_work */
#define WORD(word) atomic_load_explicit(&(word), memory_order_relaxed)
	return (watch & (SHM_WATCH_UNREPORTED | SHM_WATCH_MORE)) ||
	       ((watch & SHM_WATCH_RESPONSES) && shm_consumer_has_entry(&conn->response_in)) ||
	       ((watch & SHM_WATCH_REQUEST_SPACE) &&
		WORD(theirs->request_consumed) != WORD(conn->request_out.consumed)) ||
	       ((watch & SHM_WATCH_RESPONSE_SPACE) &&
		WORD(theirs->response_consumed) != WORD(conn->response_out.consumed));
#undef WORD
}

/* --- its segment --- */

static void make_rings(struct shm_conn *conn, struct shm_segment *segment, enum shm_index self)
{
	const unsigned peer = 1 - self;

	conn->mine = &segment->side[self];
	conn->theirs = &segment->side[peer];
	shm_producer_init(&conn->request_out, segment->request[self], SHM_REQUEST_RING,
			  &conn->theirs->request_consumed);
	shm_producer_init(&conn->response_out, segment->response[self], SHM_RESPONSE_RING,
			  &conn->theirs->response_consumed);
	shm_consumer_init(&conn->request_in, segment->request[peer], SHM_REQUEST_RING,
			  &conn->mine->request_consumed);
	shm_consumer_init(&conn->response_in, segment->response[peer], SHM_RESPONSE_RING,
			  &conn->mine->response_consumed);
	/* armed from the start: the first event wakes the service thread */
	atomic_store_explicit(&conn->mine->armed, 1, memory_order_relaxed);
}

static int map_segment(struct shm_conn *conn, int fd, enum shm_index self)
{
	void *memory =
		mmap(NULL, sizeof(struct shm_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	/* GEN-34: a child must not keep the segment */
	if (madvise(memory, sizeof(struct shm_segment), MADV_DONTFORK) < 0) {
		munmap(memory, sizeof(struct shm_segment));
		return -ENOMEM;
	}
	make_rings(conn, memory, self);
	/* release: pairs with the acquire in shm_conn_has_segment */
	atomic_store_explicit(&conn->segment, memory, memory_order_release);
	return 0;
}

int shm_conn_make_segment(struct shm_conn *conn, int *fd_out)
{
	int fd = soft_fd_memfd("opendat-conn", sizeof(struct shm_segment));
	int rc;

	if (fd < 0)
		return fd;
	if (fcntl(fd, F_ADD_SEALS, SEGMENT_SEALS) < 0) {
		rc = -errno;
		goto err;
	}
	rc = map_segment(conn, fd, SHM_PASSIVE);
	if (rc < 0)
		goto err;
	*fd_out = fd;
	return 0;
err:
	soft_fd_close(fd);
	return rc;
}

int shm_conn_map_segment(struct shm_conn *conn, int fd)
{
	struct stat info;
	int seals = fcntl(fd, F_GET_SEALS);

	/* it must be sealed, or the peer could truncate the file under us (SIGBUS) */
	if (seals < 0 || (seals & SEGMENT_SEALS) != SEGMENT_SEALS)
		return -EPROTO;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
	    info.st_size != sizeof(struct shm_segment))
		return -EPROTO;
	return map_segment(conn, fd, SHM_ACTIVE);
}
