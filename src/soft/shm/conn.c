// SPDX-License-Identifier: BSD-2-Clause
/*
 * The life of a connection object, its segment and its socket.
 */
#include "soft/shm/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/fence.h"
#include "core/base/slab.h"
#include "soft/fds.h"

#define SEGMENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int shm_conn_create(struct shm_engine *engine, int fd, enum shm_index self,
		    struct shm_conn **conn_out)
{
	struct shm_conn *conn = core_slab_alloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	conn->engine = engine;
	shm_engine_get(engine);
	atomic_init(&conn->refs, 1);
	conn->fd = fd;
	conn->segment_fd = -1;
	conn->self = (uint8_t)self;
	conn->give_up_ns = UINT64_MAX;
	conn->retry_ns = UINT64_MAX;
	conn->can_be_light = core_fence_can(CORE_FENCE_HOST);
	*conn_out = conn;
	return 0;
}

void shm_conn_get(struct shm_conn *conn)
{
	/* relaxed: the caller holds a reference, or the lock of the list that holds one */
	atomic_fetch_add_explicit(&conn->refs, 1, memory_order_relaxed);
}

bool shm_conn_get_unless_dead(struct shm_conn *conn)
{
	uint32_t refs = atomic_load_explicit(&conn->refs, memory_order_relaxed);

	while (refs)
		if (atomic_compare_exchange_weak_explicit(&conn->refs, &refs, refs + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

/* What it has counted goes on counting. */
static void keep_counters(struct shm_conn *conn)
{
	uint32_t i;

	for (i = 0; i < SHM_COUNT_END; i++)
		atomic_fetch_add_explicit(
			&conn->engine->counters[i],
			atomic_load_explicit(&conn->counters[i], memory_order_relaxed),
			memory_order_relaxed);
}

static void conn_destroy(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;
	int state = core_cancel_off();

	keep_counters(conn);
	if (conn->id)
		shm_engine_remove(engine, conn->id);
	shm_listener_forget(conn);
	shm_keep_claim(conn);
	shm_conn_unwatch(conn);
	shm_map_drop_all(conn);
	shm_pool_forget(conn);
	shm_keep(conn);
	if (conn->fd >= 0) {
		/* the end reaches the peer even if a child that is about to exec holds a copy */
		shutdown(conn->fd, SHUT_RDWR);
		shm_conn_discard(conn);
		soft_fd_close(conn->fd);
	}
	soft_fd_close(conn->segment_fd);
	if (conn->remote.view)
		soft_view_put(conn->remote.view);
	if (conn->segment)
		munmap(conn->segment, sizeof(*conn->segment));
	if (conn->listener)
		shm_listener_put(conn->listener);
	core_slab_free(conn->request, sizeof(*conn->request));
	core_slab_free(conn->peer_name, sizeof(struct sockaddr_un));
	core_slab_free(conn, sizeof(*conn));
	shm_engine_put(engine);
	core_cancel_restore(state);
}

void shm_conn_put(struct shm_conn *conn)
{
	/* acq_rel: whoever destroys it sees what all others did */
	if (atomic_fetch_sub_explicit(&conn->refs, 1, memory_order_acq_rel) == 1)
		conn_destroy(conn);
}

/* --- segment --- */

void shm_conn_make_rings(struct shm_conn *conn)
{
	struct shm_segment *segment = conn->segment;
	unsigned self = conn->self, peer = 1 - self;

	conn->mine = &segment->side[self];
	conn->theirs = &segment->side[peer];
	shm_producer_init(&conn->request_out, segment->request[self], SHM_REQUEST_RING,
			  &conn->theirs->request_consumed);
	shm_producer_init(&conn->response_out, segment->response[self], SHM_RESPONSE_RING,
			  &conn->theirs->response_consumed);
	shm_consumer_init(&conn->request_in, segment->request[peer], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &conn->mine->request_consumed);
	shm_consumer_init(&conn->response_in, segment->response[peer], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &conn->mine->response_consumed);
	/* armed from the start: whatever comes first wakes the service thread */
	atomic_store_explicit(&conn->mine->armed, 1, memory_order_relaxed);
}

static int map_segment(struct shm_conn *conn, int fd)
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
	conn->segment = memory;
	shm_conn_make_rings(conn);
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
	rc = map_segment(conn, fd);
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

	/* sealed, or the peer could cut the file under us (SIGBUS) */
	if (seals < 0 || (seals & SEGMENT_SEALS) != SEGMENT_SEALS)
		return -EPROTO;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
	    info.st_size != sizeof(struct shm_segment))
		return -EPROTO;
	return map_segment(conn, fd);
}

/* --- socket --- */

int shm_conn_watch(struct shm_conn *conn)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = conn->id};

	/* before: the service thread may take it back, or destroy an arriving one, at once */
	atomic_store_explicit(&conn->is_in_epoll, true, memory_order_relaxed);
	if (!epoll_ctl(conn->engine->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event))
		return 0;
	atomic_store_explicit(&conn->is_in_epoll, false, memory_order_relaxed);
	return -errno;
}

void shm_conn_unwatch(struct shm_conn *conn)
{
	/* explicitly: a child that holds a copy of the socket would keep the entry alive */
	if (atomic_exchange_explicit(&conn->is_in_epoll, false, memory_order_relaxed))
		epoll_ctl(conn->engine->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
}

void shm_conn_identify(struct shm_conn *conn)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	conn->remote.pid = 0;
	conn->remote.own_uid = geteuid();
	conn->remote.is_same_user = false;
	if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	conn->remote.pid = peer.pid; /* 0: in another process name space */
	conn->remote.is_same_user = peer.pid > 0 && peer.uid == conn->remote.own_uid;
}

int shm_conn_send(struct shm_conn *conn, const union shm_wire *wire, const int *fds, unsigned count)
{
	struct iovec iov = {(void *)wire, shm_wire_size(wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SHM_WIRE_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	int state, rc;

	if (count) {
		struct cmsghdr *header;

		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	state = core_cancel_off();
	do
		rc = sendmsg(conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	while (rc == -EINTR);
	core_cancel_restore(state);
	return rc;
}

int shm_conn_send_word(struct shm_conn *conn, enum shm_wire_type type, uint32_t word)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	if (type != SHM_WIRE_WAKE)
		wire.word.word = word;
	return shm_conn_send(conn, &wire, NULL, 0);
}

/* --- endpoint --- */

void shm_conn_attach(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	conn->ep_ref = core_handle_ref(ep->cell);
	mine->conn = conn;
	/* release: pairs with the acquire in shm_conn_ep */
	atomic_store_explicit(&conn->has_ep, true, memory_order_release);
}

struct core_ep *shm_conn_enter(struct shm_conn *conn)
{
	struct core_ep *ep = core_ep_enter(shm_conn_ep(conn));

	if (!ep || shm_conn_is_of(conn, ep))
		return ep;
	core_ep_leave(ep);
	return NULL;
}

void shm_conn_drop(struct shm_conn *conn, struct core_ep *ep)
{
	struct shm_ep *mine = ep->transport;

	mine->conn = NULL;
	shm_conn_set_state(conn, SHM_ENDED);
	shm_conn_unwatch(conn);
	shm_conn_put(conn);
}

/* --- the service thread's attention --- */

void shm_conn_later(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;

	core_lock_acquire(&engine->lock);
	if (!conn->is_todo) {
		conn->is_todo = true;
		shm_conn_get(conn);
		conn->next_todo = atomic_load(&engine->todo_first);
		atomic_store(&engine->todo_first, conn);
	}
	core_lock_release(&engine->lock);
	shm_engine_kick(engine);
}

void shm_conn_at(struct shm_conn *conn, uint64_t deadline_ns)
{
	/* sequentially consistent, and before the engine's: see take_due in service.c */
	atomic_store(&conn->deadline_ns, deadline_ns);
	if (deadline_ns)
		shm_engine_at(conn->engine, deadline_ns);
}

void shm_conn_by(struct shm_conn *conn, uint64_t deadline_ns)
{
	uint64_t now_set = atomic_load(&conn->deadline_ns);

	if (!now_set || deadline_ns < now_set)
		shm_conn_at(conn, deadline_ns);
}
