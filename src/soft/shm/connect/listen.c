// SPDX-License-Identifier: BSD-2-Clause
/*
 * Listening on a connection qualifier: an abstract local socket whose name consists of the
 * adapter's address and the whole qualifier, so that different qualifiers never collide
 * (CONN-GEN-08) and the kernel frees the name when the process dies. With the setting socket_dir
 * there is a second socket, with a name in that directory (dir.h), for callers in other network
 * namespaces. A qualifier that we choose is a TCP port that we hold, which makes it unique on the
 * host.
 */
#include "soft/shm/connect/listen.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/base/clock.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/callers.h"
#include "soft/closer.h"
#include "soft/fds.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/name.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/engine/service.h"
#include "soft/shm/segment.h"
#include "soft/shm/state.h"

#define ACCEPT_MAX 64u /* per event, so that other sockets get their turn */
#define CHOOSE_MAX 64u /* ports to try per call for a qualifier of ours */
#define FIRST_FREE_PORT 1024u
#define PAUSE_NS 20000000u

struct shm_listener {
	struct shm_engine *engine;
	_Atomic uint32_t refs;
	uint64_t id;
	struct core_ref sp;
	DAT_CONN_QUAL qual;
	pthread_mutex_t lock; /* leaf; guards fd and file_fd */
	int fd;
	int file_fd; /* the second socket; -1: none */
	struct shm_dir_file file;
	bool is_refusing; /* the kernel refuses descriptors that callers send */
	int port_fd;	  /* holds the port that is the qualifier; -1: the consumer chose */
	bool is_counted;  /* among the engine's callers.listeners */
	/* service thread only */
	bool is_paused; /* callers have their share of descriptors, or these are short */
	struct shm_listener *next_paused;
};

void shm_listener_get(struct shm_listener *listener)
{
	/* relaxed: the caller holds a reference, or the lock of the table */
	atomic_fetch_add_explicit(&listener->refs, 1, memory_order_relaxed);
}

void shm_listener_put(struct shm_listener *listener)
{
	if (atomic_fetch_sub_explicit(&listener->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&listener->lock);
	shm_engine_put(listener->engine);
	core_slab_free(listener, sizeof(*listener));
}

struct core_ref shm_listener_sp(const struct shm_listener *listener)
{
	return listener->sp;
}

DAT_CONN_QUAL shm_listener_qual(const struct shm_listener *listener)
{
	return listener->qual;
}

/* --- closing --- */

static int accept_next(int fd)
{
	soft_fd_begin();
	return soft_fd_end(accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

/*
 * Closes a listening socket. That closes the callers in its backlog, too, and what they have sent.
 * So they are taken out first, if they can send descriptors and unless descriptors or memory are
 * short. The name must be free when this returns (PSP-FREE-06).
 */
static void close_listening(int fd, bool is_refusing)
{
	int caller;

	shutdown(fd, SHUT_RDWR); /* refuses callers even if a child has a copy */
	if (is_refusing) {
		soft_fd_close(fd);
		return;
	}
	do {
		caller = accept_next(fd);
		if (caller >= 0)
			shm_socket_close(caller);
	} while (caller >= 0 || caller == -EINTR || caller == -ECONNABORTED);
	if (caller == -EINVAL || caller == -EAGAIN) /* none is left */
		soft_fd_close(fd);
	else
		soft_closer_close_listed(fd);
}

/* Takes a socket from the listener, so that the service thread leaves it alone. */
static int take_socket(struct shm_listener *listener, int *place)
{
	int fd;

	pthread_mutex_lock(&listener->lock);
	fd = *place;
	if (fd >= 0)
		epoll_ctl(listener->engine->service.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	*place = -1;
	pthread_mutex_unlock(&listener->lock);
	return fd;
}

static void close_sockets(struct shm_listener *listener)
{
	int fd = take_socket(listener, &listener->fd);
	int file_fd = take_socket(listener, &listener->file_fd);

	/* first: who finds the other name free must find this one free, too */
	if (file_fd >= 0) {
		shm_dir_remove(listener->engine->dir, &listener->file);
		close_listening(file_fd, listener->is_refusing);
	}
	if (fd >= 0)
		close_listening(fd, listener->is_refusing);
}

/* --- listening --- */

/* A socket that has no name yet; -errno. */
static int new_socket(struct shm_listener *listener)
{
	int fd = soft_fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (fd < 0)
		return fd;
	/* callers send none with their requests, and strangers shall not either */
	listener->is_refusing = shm_socket_refuse_fds(fd, true);
	(void)shm_socket_name_senders(fd);
	return fd;
}

/* Creates a listening socket of the abstract name; -errno, or -EBUSY: the name may soon be free. */
static int listen_abstract(struct shm_listener *listener, const union core_sockaddr *address,
			   DAT_CONN_QUAL qual)
{
	struct sockaddr_un name;
	socklen_t len = shm_name_abstract(address, qual, &name);
	int fd = new_socket(listener);
	int rc;

	if (fd < 0)
		return fd;
	if (!bind(fd, (struct sockaddr *)&name, len) && !listen(fd, SOMAXCONN))
		return fd;
	rc = -errno;
	soft_fd_close(fd);
	if (rc == -EADDRINUSE && soft_fd_is_stale(SOCK_SEQPACKET, &name, len))
		rc = -EBUSY;
	return rc;
}

/* Creates the one with a name in the directory, if there is a directory; -errno. */
static int listen_in_dir(struct shm_listener *listener, const union core_sockaddr *address,
			 DAT_CONN_QUAL qual)
{
	int dir = listener->engine->dir;
	struct sockaddr_un name;
	int fd, rc;

	if (dir < 0)
		return 0;
	fd = new_socket(listener);
	if (fd < 0)
		return fd;
	shm_name_file(address, qual, &name);
	rc = shm_dir_listen(dir, fd, name.sun_path, &listener->file);
	if (rc == 0) {
		listener->file_fd = fd;
		return 0;
	}
	close_listening(fd, listener->is_refusing); /* it may listen */
	/* others find us over TCP */
	return rc == -EACCES ? 0 : rc;
}

/* Listens on a qualifier; -errno. -EBUSY: its name may soon be free. */
static int listen_on(struct shm_listener *listener, const union core_sockaddr *address,
		     DAT_CONN_QUAL qual)
{
	int rc = listen_abstract(listener, address, qual);

	if (rc < 0)
		return rc;
	listener->fd = rc;
	rc = listen_in_dir(listener, address, qual);
	if (rc < 0)
		close_sockets(listener);
	return rc;
}

/* Binds a free TCP port; returns its number, or -errno. */
static int hold_port(int *fd_out)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(any);
	int fd = soft_fd_socket(AF_INET, SOCK_STREAM);
	int rc;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&any, &len) < 0) {
		rc = errno == EADDRINUSE ? -EADDRNOTAVAIL : -errno;
		soft_fd_close(fd);
		return rc;
	}
	*fd_out = fd;
	return ntohs(any.sin_port);
}

/*
 * Chooses a qualifier: a TCP port that is free on the host and whose local names are free as well.
 * Anyone may have bound the names of many ports. So one call tries a few: -EBUSY.
 */
static int choose_qual(struct shm_listener *listener, const union core_sockaddr *address)
{
	unsigned tries;

	for (tries = 0; tries < CHOOSE_MAX; tries++) {
		int port_fd = -1;
		int port = hold_port(&port_fd);
		int rc;

		if (port < 0)
			return port;
		rc = port >= (int)FIRST_FREE_PORT
			     ? listen_on(listener, address, (DAT_CONN_QUAL)port)
			     : -EADDRINUSE;
		if (rc == 0) {
			listener->qual = (DAT_CONN_QUAL)port;
			listener->port_fd = port_fd;
			return 0;
		}
		soft_fd_close(port_fd);
		if (rc != -EADDRINUSE && rc != -EBUSY)
			return rc;
	}
	return -EBUSY;
}

static struct shm_listener *new_listener(struct shm_engine *engine, struct core_ref sp)
{
	struct shm_listener *listener = core_slab_alloc(sizeof(*listener));

	if (!listener)
		return NULL;
	listener->engine = engine;
	shm_engine_get(engine);
	atomic_init(&listener->refs, 1);
	pthread_mutex_init(&listener->lock, NULL);
	listener->sp = sp;
	listener->fd = -1;
	listener->file_fd = -1;
	listener->port_fd = -1;
	return listener;
}

/* Adds a socket of the listener to the set, or changes what is waited for: EPOLLIN, or 0. */
static int watch(const struct shm_listener *listener, int fd, int op, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = listener->id};
	int epoll_fd = listener->engine->service.epoll_fd;

	return fd >= 0 && epoll_ctl(epoll_fd, op, fd, &event) < 0 ? -errno : 0;
}

int shm_listen(struct shm_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	       void **listener_out)
{
	const union core_sockaddr *address = &engine->ia->address;
	struct shm_listener *listener = new_listener(engine, sp);
	int rc;

	if (!listener)
		return -ENOMEM;
	listener->qual = *qual;
	rc = *qual ? listen_on(listener, address, *qual) : choose_qual(listener, address);
	if (rc < 0)
		goto err;
	rc = shm_engine_add(engine, SHM_SLOT_LISTENER, listener, &listener->id);
	if (rc < 0)
		goto err;
	soft_callers_listen(&engine->callers);
	listener->is_counted = true;
	/* requests may be reported from here on */
	rc = watch(listener, listener->fd, EPOLL_CTL_ADD, EPOLLIN);
	if (rc == 0)
		rc = watch(listener, listener->file_fd, EPOLL_CTL_ADD, EPOLLIN);
	if (rc < 0)
		goto err;
	*qual = listener->qual;
	*listener_out = listener;
	return 0;
err:
	shm_unlisten(engine, listener);
	return rc;
}

void shm_unlisten(struct shm_engine *engine, void *object)
{
	struct shm_listener *listener = object;

	if (listener->id)
		shm_engine_remove(engine, listener->id);
	if (listener->is_counted)
		soft_callers_unlisten(&engine->callers);
	close_sockets(listener);
	soft_fd_close(listener->port_fd);
	listener->port_fd = -1;
	shm_listener_put(listener);
}

/* --- pauses: callers stay in the backlog --- */

static void set_events(struct shm_listener *listener, uint32_t events)
{
	pthread_mutex_lock(&listener->lock);
	(void)watch(listener, listener->fd, EPOLL_CTL_MOD, events);
	(void)watch(listener, listener->file_fd, EPOLL_CTL_MOD, events);
	pthread_mutex_unlock(&listener->lock);
}

static void pause_accept(struct shm_listener *listener)
{
	struct shm_engine *engine = listener->engine;
	uint64_t end_ns = core_now_ns() + PAUSE_NS;

	if (listener->is_paused)
		return;
	listener->is_paused = true;
	shm_listener_get(listener);
	listener->next_paused = engine->paused_first;
	engine->paused_first = listener;
	set_events(listener, 0);
	atomic_store(&engine->resume_ns, end_ns);
	shm_engine_lower_deadline(engine, end_ns);
}

void shm_listener_resume_all(struct shm_engine *engine)
{
	struct shm_listener *listener;

	atomic_store(&engine->resume_ns, UINT64_MAX);
	while ((listener = engine->paused_first) != NULL) {
		engine->paused_first = listener->next_paused;
		listener->is_paused = false;
		set_events(listener, EPOLLIN);
		shm_listener_put(listener);
	}
}

void shm_listener_forget(struct shm_conn *conn)
{
	struct shm_engine *engine = conn->engine;

	if (!conn->listener)
		return;
	soft_callers_set(&engine->callers, &conn->caller, SOFT_CALLER_NONE);
	if (atomic_load(&engine->resume_ns) != UINT64_MAX) {
		atomic_store(&engine->resume_ns, 1); /* at once: there is room */
		shm_engine_lower_deadline(engine, 1);
	}
}

/* --- arriving connections, in the service thread --- */

static bool get_conn(void *conn)
{
	return shm_conn_get_unless_dead(conn);
}

/* Closes the caller that gives way first, unless its request has come (CONN-GEN-09). False: there
 * is none. */
static bool give_way(struct shm_engine *engine)
{
	struct shm_conn *conn = soft_callers_first(&engine->callers, get_conn);

	if (!conn)
		return false;
	shm_service_conn(conn);
	if (soft_callers_is(&engine->callers, &conn->caller, SOFT_CALLER_SILENT))
		shm_setup_drop_silent(conn);
	shm_conn_put(conn);
	return true;
}

static bool make_room(struct shm_engine *engine)
{
	while (!soft_callers_has_room(&engine->callers))
		if (!give_way(engine))
			return false;
	return true;
}

static void accept_caller(struct shm_listener *listener, int fd)
{
	struct shm_engine *engine = listener->engine;
	struct shm_conn *conn;

	if (shm_conn_create(engine, fd, SHM_PASSIVE, &conn) < 0) {
		shm_socket_close(fd);
		return;
	}
	shm_conn_set_state(conn, SHM_ARRIVING);
	shm_listener_get(listener);
	conn->listener = listener;
	conn->is_refusing = listener->is_refusing;
	soft_callers_set(&engine->callers, &conn->caller, SOFT_CALLER_SILENT);
	if (shm_engine_add(engine, SHM_SLOT_CONN, conn, &conn->id) < 0 ||
	    shm_conn_epoll_add(conn) < 0) {
		shm_setup_drop_silent(conn);
		return;
	}
	conn->give_up_ns = core_now_ns() + engine->settings.setup_timeout_ms * 1000000u;
	shm_conn_set_deadline(conn, conn->give_up_ns);
}

/* A caller; -errno. */
static int accept_locked(struct shm_listener *listener, const int *place)
{
	int fd = -EBADF;

	pthread_mutex_lock(&listener->lock);
	if (*place >= 0)
		fd = accept_next(*place);
	pthread_mutex_unlock(&listener->lock);
	return fd;
}

static void accept_callers(struct shm_listener *listener, const int *place)
{
	struct shm_engine *engine = listener->engine;
	int fd = -EMFILE;

	/* once for each event, because then there is a caller */
	if (make_room(engine))
		fd = accept_locked(listener, place);
	if (shm_is_shortage(fd) && !give_way(engine))
		pause_accept(listener);
	for (unsigned i = 1; fd >= 0; i++) {
		accept_caller(listener, fd);
		if (i == ACCEPT_MAX || !soft_callers_has_room(&engine->callers))
			return;
		fd = accept_locked(listener, place);
	}
}

void shm_listener_event(struct shm_listener *listener)
{
	accept_callers(listener, &listener->fd);
	if (listener->engine->dir >= 0)
		accept_callers(listener, &listener->file_fd);
}
