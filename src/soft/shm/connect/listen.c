// SPDX-License-Identifier: BSD-2-Clause
/*
 * Listening on a connection qualifier: a local socket with a name in the folder of our user
 * (dir.h). The name consists of the adapter's address and the whole qualifier, so that different
 * qualifiers never collide (CONN-GEN-08). A qualifier that we choose is a TCP port that we hold,
 * which makes it unique on the host.
 */
#include "soft/shm/connect/listen.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "soft/fds.h"
#include "soft/shm/instance.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/setup.h"

#define ACCEPT_MAX 64u /* per event, so that other sockets get their turn */
#define CHOOSE_MAX 64u /* ports to try per call for a qualifier of ours */
#define FIRST_FREE_PORT 1024u
#define PAUSE_NS 20000000u

/* --- listening --- */

/* Listens on a qualifier; -errno. -EBUSY: its name may soon be free. */
static int listen_on(struct shm_listener *listener, DAT_CONN_QUAL qual)
{
	struct shm_engine *engine = listener->engine;
	char name[SHM_DIR_NAME_MAX];
	int fd = soft_fd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);
	int rc;

	if (fd < 0)
		return fd;
	shm_socket_name_senders(fd);
	shm_dir_name(&engine->dir, &engine->ia->address, qual, name);
	rc = shm_dir_listen(&engine->dir, fd, name, &listener->file);
	if (rc < 0)
		soft_fd_close_socket(fd);
	else
		listener->fd = fd;
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
 * Chooses a qualifier: a TCP port that is free on the host and whose name is free as well. Other
 * programs may hold the names of many ports. So one call tries a few: -EBUSY.
 */
static int choose_qual(struct shm_listener *listener)
{
	unsigned tries;

	for (tries = 0; tries < CHOOSE_MAX; tries++) {
		int port_fd = -1;
		int port = hold_port(&port_fd);
		int rc;

		if (port < 0)
			return port;
		rc = port >= (int)FIRST_FREE_PORT ? listen_on(listener, (DAT_CONN_QUAL)port)
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
	listener->attended.is_listener = true;
	soft_attention_add(&engine->attention, &listener->attended);
	pthread_mutex_init(&listener->lock, NULL);
	listener->sp = sp;
	listener->fd = -1;
	listener->port_fd = -1;
	return listener;
}

/* Adds the socket to the set, or changes what is waited for: EPOLLIN, or 0. */
static int watch(struct shm_listener *listener, int op, uint32_t events)
{
	return soft_attention_watch(&listener->engine->attention, &listener->attended, op,
				    listener->fd, events);
}

int shm_listen(struct shm_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	       struct shm_listener **listener_out)
{
	struct shm_listener *listener;
	int rc;

	if (engine->dir.fd < 0)
		return -EACCES;
	listener = new_listener(engine, sp);
	if (!listener)
		return -ENOMEM;
	listener->qual = *qual;
	rc = *qual ? listen_on(listener, *qual) : choose_qual(listener);
	/* requests may be reported from here on */
	if (rc == 0)
		rc = watch(listener, EPOLL_CTL_ADD, EPOLLIN);
	if (rc < 0) {
		shm_unlisten(engine, listener);
		return rc;
	}
	*qual = listener->qual;
	*listener_out = listener;
	return 0;
}

/* Takes the socket from the listener, so that the service thread leaves it alone. */
static int take_socket(struct shm_listener *listener)
{
	int fd;

	pthread_mutex_lock(&listener->lock);
	fd = listener->fd;
	listener->fd = -1;
	pthread_mutex_unlock(&listener->lock);
	soft_attention_unwatch(&listener->engine->attention, &listener->attended, fd);
	return fd;
}

void shm_unlisten(struct shm_engine *engine, struct shm_listener *listener)
{
	int fd = take_socket(listener);

	if (fd >= 0)
		shm_dir_remove(&engine->dir, &listener->file);
	soft_fd_close_socket(fd);
	soft_fd_close(listener->port_fd);
	listener->port_fd = -1;
	shm_listener_put(listener);
}

/* --- pauses: callers stay in the backlog --- */

static void set_events(struct shm_listener *listener, uint32_t events)
{
	pthread_mutex_lock(&listener->lock);
	if (listener->fd >= 0)
		(void)watch(listener, EPOLL_CTL_MOD, events);
	pthread_mutex_unlock(&listener->lock);
}

static void pause_accept(struct shm_listener *listener)
{
	set_events(listener, 0);
	soft_attention_set(&listener->engine->attention, &listener->attended,
			   core_now_ns() + PAUSE_NS);
}

void shm_listener_resume(struct shm_listener *listener)
{
	set_events(listener, EPOLLIN);
	shm_listener_put(listener);
}

/* --- arriving connections, in the service thread --- */

static void take_caller(struct shm_listener *listener, int fd)
{
	struct shm_engine *engine = listener->engine;
	struct shm_conn *conn;

	if (shm_conn_create(engine, fd, &conn) < 0) {
		soft_fd_close_socket(fd);
		return;
	}
	shm_conn_set_state(conn, SHM_ARRIVING);
	soft_attended_get(&listener->attended);
	conn->setup->listener = listener;
	if (shm_conn_epoll_add(conn) < 0) {
		shm_setup_drop_silent(conn);
		return;
	}
	conn->setup->give_up_ns = core_now_ns() + engine->settings.setup_timeout_ms * 1000000u;
	shm_conn_set_deadline(conn, conn->setup->give_up_ns);
}

void shm_listener_event(struct shm_listener *listener)
{
	int fd = 0;

	for (unsigned i = 0; i < ACCEPT_MAX && fd >= 0; i++) {
		fd = soft_fd_accept(&listener->lock, &listener->fd);
		if (fd >= 0)
			take_caller(listener, fd);
	}
	if (shm_is_shortage(fd))
		pause_accept(listener);
}
