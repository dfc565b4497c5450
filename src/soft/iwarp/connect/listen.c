// SPDX-License-Identifier: BSD-2-Clause
/*
 * Listening. A service point claims its qualifier. Its TCP port is the qualifier itself
 * or, if that is not available, one of a short sequence (cm_port). The header of a request has the
 * qualifier; without a header it is the port.
 */
#include "soft/iwarp/connect/listen.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/slab.h"
#include "soft/address.h"
#include "soft/callers.h"
#include "soft/claim.h"
#include "soft/fds.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/connect/ep.h"

#define ACCEPT_MAX 64u /* per event, so that other sockets get their turn */
#define CHOOSE_MAX 64u /* ports to try per call for a qualifier of ours */
#define PAUSE_NS (20 * IW_NS_PER_MS)

struct iw_listener {
	struct soft_attended attended; /* references, events, deadline; first */
	struct iw_engine *engine;
	struct core_ref sp;
	DAT_CONN_QUAL qual;
	uint16_t port;
	int claim_fd;
	pthread_mutex_t lock; /* leaf, but taken before the engine's; guards the rest */
	int fd;
	bool is_closed;
	bool is_paused; /* descriptors are short, or callers have their share (callers.h) */
};

/* Of an event of epoll, or a deadline. */
static struct iw_listener *listener_of(struct soft_attended *attended)
{
	return (struct iw_listener *)attended;
}

void iw_listener_put(struct iw_listener *listener)
{
	if (!soft_attended_put(&listener->attended))
		return;
	soft_attention_remove(&listener->engine->attention, &listener->attended);
	pthread_mutex_destroy(&listener->lock);
	iw_engine_put(listener->engine);
	core_slab_free(listener, sizeof(*listener));
}

struct core_ref iw_listener_sp(const struct iw_listener *listener)
{
	return listener->sp;
}

DAT_CONN_QUAL iw_listener_qual(const struct iw_listener *listener)
{
	return listener->qual;
}

uint16_t iw_listener_port(const struct iw_listener *listener)
{
	return listener->port;
}

/* --- pauses: the connections stay in the backlog --- */

static int set_events(struct iw_listener *listener, uint32_t events)
{
	return soft_attention_watch(&listener->engine->attention, &listener->attended,
				    EPOLL_CTL_MOD, listener->fd, events);
}

static void look_again(struct iw_listener *listener)
{
	soft_attention_set(&listener->engine->attention, &listener->attended,
			   core_now_ns() + PAUSE_NS);
}

static void pause_accept(struct iw_listener *listener)
{
	pthread_mutex_lock(&listener->lock);
	if (listener->fd >= 0 && !set_events(listener, 0))
		listener->is_paused = true;
	pthread_mutex_unlock(&listener->lock);
	look_again(listener);
}

/* False: it is closed, or still paused. */
static bool resume_accept(struct iw_listener *listener)
{
	bool is_open;

	pthread_mutex_lock(&listener->lock);
	if (listener->is_paused && !listener->is_closed)
		listener->is_paused = set_events(listener, EPOLLIN) < 0;
	is_open = !listener->is_closed && !listener->is_paused;
	pthread_mutex_unlock(&listener->lock);
	return is_open;
}

/* --- callers without an owner --- */

void iw_setup_drop(struct iw_conn *conn)
{
	iw_conn_set_deadline(conn, 0);
	iw_conn_close_socket(conn);
	(void)resume_accept(conn->listener); /* it has given way */
	/* nobody serves it any more; it is no longer ARRIVING, so that it is not dropped twice */
	iw_conn_set_state(conn, IW_CLOSING);
	iw_conn_put(conn);
}

static bool is_arriving_at(struct soft_attended *attended, void *listener)
{
	const struct iw_conn *conn = iw_conn_of_attended(attended);

	return iw_conn_state(conn) == IW_ARRIVING && (!listener || conn->listener == listener);
}

void iw_setup_drop_all(struct iw_engine *engine, struct iw_listener *listener)
{
	struct soft_attended *found;

	while ((found = soft_attention_find(&engine->attention, NULL, is_arriving_at, listener)) !=
	       NULL) {
		struct iw_conn *conn = iw_conn_of_attended(found);

		iw_setup_drop(conn);
		iw_conn_put(conn);
	}
}

/* --- requests that the consumer has not answered --- */

void iw_listener_add_offered(struct iw_conn *conn)
{
	soft_callers_set(&conn->engine->callers, &conn->caller, SOFT_CALLER_OFFERED);
	(void)resume_accept(conn->listener);
}

void iw_listener_remove_offered(struct iw_conn *conn)
{
	soft_callers_set(&conn->engine->callers, &conn->caller, SOFT_CALLER_NONE);
	(void)resume_accept(conn->listener);
}

/* --- the TCP port --- */

/* Listens on a port of the adapter's address (IWCM-09); 0: any. Sets listener->port. */
static int listen_on(struct iw_listener *listener, uint16_t port)
{
	union core_sockaddr address = listener->engine->ia->address;
	socklen_t size = core_address_size(&address);
	const int yes = 1;
	int fd = soft_fd_socket(address.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK);
	int rc;

	if (fd < 0)
		return fd;
	iw_set_port(&address, port);
	iw_setup_congestion_control(fd, listener->engine);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, &address.sa, size) < 0 || listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, &address.sa, &size) < 0) {
		rc = -errno;
		soft_fd_close(fd);
		return rc;
	}
	listener->fd = fd;
	listener->port = iw_get_port(&address);
	return 0;
}

/* Is the port in use, reserved or privileged, so that another one has to be tried? */
static bool is_port_unavailable(int rc)
{
	return rc == -EADDRINUSE || rc == -EACCES || rc == -EADDRNOTAVAIL || rc == -EPERM;
}

static int listen_given(struct iw_listener *listener)
{
	int rc = -EADDRINUSE;

	listener->claim_fd =
		soft_claim_take(SOFT_CLAIM_TCP, &listener->engine->ia->address, listener->qual);
	if (listener->claim_fd < 0)
		return listener->claim_fd;
	for (unsigned i = 0; i < CM_PORTS && is_port_unavailable(rc); i++) {
		uint16_t port = cm_port(listener->qual, i);

		if (port)
			rc = listen_on(listener, port);
	}
	return is_port_unavailable(rc) ? -ENOSPC : rc;
}

/*
 * Uses a port that the kernel chooses. Its number may be the qualifier of a service point that
 * listens on another port.
 */
static int listen_any(struct iw_listener *listener)
{
	for (unsigned i = 0; i < CHOOSE_MAX; i++) {
		int rc = listen_on(listener, 0);

		if (rc)
			return is_port_unavailable(rc) ? -EADDRNOTAVAIL : rc;
		listener->qual = listener->port;
		listener->claim_fd = soft_claim_take(SOFT_CLAIM_TCP, &listener->engine->ia->address,
						     listener->qual);
		if (listener->claim_fd >= 0)
			return 0;
		soft_fd_close_socket(listener->fd);
		listener->fd = -1;
		if (listener->claim_fd != -EADDRINUSE && listener->claim_fd != -EBUSY)
			return listener->claim_fd;
	}
	return -EBUSY;
}

/* --- transport slots --- */

static struct iw_listener *new_listener(struct iw_engine *engine, struct core_ref sp)
{
	struct iw_listener *listener = core_slab_alloc(sizeof(*listener));

	if (!listener)
		return NULL;
	listener->engine = engine;
	iw_engine_get(engine);
	listener->attended.is_listener = true;
	soft_attention_add(&engine->attention, &listener->attended);
	soft_callers_listen(&engine->callers);
	pthread_mutex_init(&listener->lock, NULL);
	listener->sp = sp;
	listener->fd = -1;
	listener->claim_fd = -1;
	return listener;
}

int iw_listen(struct iw_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	      struct iw_listener **listener_out)
{
	struct iw_listener *listener = new_listener(engine, sp);
	int rc;

	if (!listener)
		return -ENOMEM;
	listener->qual = *qual;
	rc = *qual ? listen_given(listener) : listen_any(listener);
	/* requests may be reported from here on; the core handles them when the SP is unlocked */
	if (!rc)
		rc = soft_attention_watch(&engine->attention, &listener->attended, EPOLL_CTL_ADD,
					  listener->fd, EPOLLIN);
	if (rc < 0) {
		iw_unlisten(engine, listener);
		return rc;
	}
	*qual = listener->qual;
	*listener_out = listener;
	return 0;
}

void iw_unlisten(struct iw_engine *engine, struct iw_listener *listener)
{
	pthread_mutex_lock(&listener->lock);
	listener->is_closed = true;
	/* the service thread then drops those who have arrived here */
	soft_attention_unwatch(&engine->attention, &listener->attended, listener->fd);
	soft_fd_close_socket(listener->fd);
	listener->fd = -1;
	pthread_mutex_unlock(&listener->lock);
	soft_claim_give(listener->claim_fd);
	listener->claim_fd = -1;
	soft_callers_unlisten(&engine->callers);
	iw_listener_put(listener);
}

/* --- service thread --- */

static void take_caller(struct iw_listener *listener, int fd)
{
	struct iw_engine *engine = listener->engine;
	struct iw_conn *conn;

	if (iw_conn_create(engine, fd, &conn) < 0) {
		soft_fd_close(fd);
		return;
	}
	soft_attended_get(&listener->attended);
	conn->listener = listener;
	iw_conn_set_state(conn, IW_ARRIVING);
	if (iw_setup_create(conn) < 0 || iw_setup_socket_options(fd, &engine->settings) < 0 ||
	    iw_conn_watch(conn, EPOLLIN) < 0) {
		iw_setup_drop(conn);
		return;
	}
	soft_callers_set(&engine->callers, &conn->caller, SOFT_CALLER_SILENT);
	conn->give_up_ns = core_now_ns() + engine->settings.setup_timeout_ms * IW_NS_PER_MS;
	iw_conn_set_deadline(conn, conn->give_up_ns);
}

static bool get_conn(void *conn)
{
	return iw_conn_get_unless_dead(conn);
}

/* Closes the caller that gives way first, unless its request has come. False: there is none. */
static bool give_way(struct iw_engine *engine)
{
	struct iw_conn *conn = soft_callers_first(&engine->callers, get_conn);

	if (!conn)
		return false;
	if (soft_callers_is(&engine->callers, &conn->caller, SOFT_CALLER_REFUSED))
		iw_linger_end(conn);
	else
		iw_arriving_event(conn);
	if (soft_callers_is(&engine->callers, &conn->caller, SOFT_CALLER_SILENT))
		iw_setup_drop(conn);
	iw_conn_put(conn);
	return true;
}

static bool make_room(struct iw_engine *engine)
{
	while (!soft_callers_has_room(&engine->callers))
		if (!give_way(engine))
			return false;
	return true;
}

void iw_listener_event(struct soft_attended *attended)
{
	struct iw_listener *listener = listener_of(attended);
	struct iw_engine *engine = listener->engine;
	int fd = -EMFILE;

	/* once for each event, because then there is a caller */
	if (make_room(engine))
		fd = soft_fd_accept(&listener->lock, &listener->fd);
	if (iw_setup_is_shortage(fd) && !give_way(engine)) /* IWCM-40 */
		pause_accept(listener);
	for (unsigned i = 1; fd >= 0; i++) {
		take_caller(listener, fd);
		if (i == ACCEPT_MAX || !soft_callers_has_room(&engine->callers))
			return;
		fd = soft_fd_accept(&listener->lock, &listener->fd);
	}
}

void iw_listener_serve(struct soft_attended *attended)
{
	struct iw_listener *listener = listener_of(attended);
	bool is_closed;

	pthread_mutex_lock(&listener->lock);
	is_closed = listener->is_closed;
	pthread_mutex_unlock(&listener->lock);
	if (is_closed)
		iw_setup_drop_all(listener->engine, listener);
	else if (!resume_accept(listener))
		look_again(listener);
	iw_listener_put(listener);
}

static bool is_repetition(const struct iw_passive *first, const struct iw_passive *second)
{
	return first->has_header && first->nonce == second->nonce &&
	       soft_address_is_same(&first->from, &second->from);
}

/* Gives the first request the socket of the second one, if that is the first one again. */
static bool take_over(void *first_caller, void *second_caller)
{
	struct iw_conn *first = first_caller, *second = second_caller;
	int fd = first->fd;

	if (first->listener != second->listener ||
	    !is_repetition(&first->setup->passive, &second->setup->passive))
		return false;
	first->fd = second->fd;
	second->fd = fd;
	/* the second try may have another revision */
	first->setup->passive.request = second->setup->passive.request;
	return true;
}

bool iw_listener_take_over(struct iw_conn *conn)
{
	iw_conn_unwatch(conn);
	return soft_callers_find_offered(&conn->engine->callers, take_over, conn);
}
