// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine of the TCP connections of one adapter instance: a service thread around epoll, the
 * list of connections, and the list of those that threads of the consumer poll.
 *
 * A connection is either armed (epoll waits for it, and the service thread drives it) or polled
 * (threads of the consumer drive it while they poll for completions). The service thread hands an
 * armed connection to the pollers when it finds that a thread polls in a loop; it arms those of a
 * thread that has stopped. A thread arms all of them before it sleeps. epoll is level-triggered, so
 * arming loses nothing that has arrived before.
 *
 * The thread, its epoll and its event descriptor are made by the first listen or connect over TCP.
 */
#ifndef IWARP_ENGINE_H
#define IWARP_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/instance.h"
#include "core/base/lock.h"
#include "soft/callers.h"
#include "soft/driven.h"
#include "soft/thread.h"

struct core_ep;
struct iw_conn;
struct soft_adapter;

#define IW_EVENTS 64 /* handled in one batch */

/* What an event of epoll belongs to; the first member of it. */
struct iw_watch {
	enum iw_kind { IW_KIND_KICK, IW_KIND_LISTENER, IW_KIND_CONN } kind;
};

struct iw_engine {
	/* constant after creation */
	struct core_ia *ia; /* must not be dereferenced once `is_stopping` is set */
	struct soft_adapter *adapter;
	struct core_settings settings;
	bool is_loopback; /* the address of the adapter */
	/* constant once is_started is set */
	struct iw_watch kick_watch;
	struct soft_thread service;
	pthread_mutex_t start_lock; /* held while the thread is started */

	_Atomic uint32_t refs; /* adapter, thread, connections, listeners */
	_Atomic bool is_started;
	_Atomic bool is_stopping;
	_Atomic uint64_t deadline_ns; /* earliest deadline of any connection; UINT64_MAX: none */
	_Atomic uint32_t polled_count;
	_Atomic uint32_t held_count;
	_Atomic uint64_t posts;	   /* relaxed: a hint, and posts at the same time may be lost */
	struct soft_driven driven; /* by passes of threads that poll (poll.c) */
	struct soft_callers callers;

	struct core_lock lock;	       /* leaf; guards the rest */
	struct iw_conn *first;	       /* all connections */
	struct iw_conn *pending_first; /* with a reference each */
	struct iw_conn *polled_first;  /* with a reference each; the next one to poll */
	struct iw_conn *held_first;    /* with a reference each; transfer/hold.c */
	uint8_t *buffers; /* kept for new connections; each begins with a pointer to the next */
	uint32_t buffer_count;

	/* service thread only: references to drop when a batch of events is handled */
	struct iw_conn *gone_first;
};

/* --- engine.c --- */

int iw_engine_create(struct soft_adapter *adapter, struct iw_engine **engine_out);
/* Ends the service thread and drops the adapter; see transport_ops.ia_close. */
void iw_engine_close(struct iw_engine *engine);
/* Starts the service thread unless it runs: 0 or -errno. */
int iw_engine_start(struct iw_engine *engine);
void iw_engine_get(struct iw_engine *engine);
void iw_engine_put(struct iw_engine *engine);
/* Wakes the service thread. */
void iw_engine_kick(struct iw_engine *engine);
void iw_engine_lower_deadline(struct iw_engine *engine, uint64_t deadline_ns);
/* Adds a listening socket to epoll, or changes what it waits for; EPOLLIN or 0. */
int iw_engine_watch(struct iw_engine *engine, int fd, struct iw_watch *watch, uint32_t events);
/* Service thread: drops a reference when all events of this batch are handled. */
void iw_engine_put_later(struct iw_engine *engine, struct iw_conn *conn);
void iw_engine_put_gone(struct iw_engine *engine);
/* The loop of the service thread (service.c). */
void *iw_service_run(void *argument);

/* --- poll.c --- */

int iw_engine_progress(struct iw_engine *engine);
/* A thread of the consumer has made a pass over a connection that moved so many bytes. */
void iw_engine_count_pass(struct iw_engine *engine, uint32_t moved);
void iw_engine_arm(struct iw_engine *engine);
/* The thread that has armed them goes to sleep. If a connection was left to it meanwhile, the
 * service thread takes it back. */
void iw_engine_unattended(struct iw_engine *engine);
/* Hands a connection to the polling threads, and takes it back. EP locked. */
void iw_engine_add_polled(struct iw_engine *engine, struct iw_conn *conn);
void iw_engine_remove_polled(struct iw_engine *engine, struct iw_conn *conn);
/* The same for one whose last messages wait for more (transfer/hold.h): a thread that polls or is
 * about to sleep sends them. */
void iw_engine_add_held(struct iw_engine *engine, struct iw_conn *conn);
void iw_engine_remove_held(struct iw_engine *engine, struct iw_conn *conn);

/* --- keys.c --- */

/* Does a thread place or fetch bytes through that key of ours, which is dead already? */
bool iw_engine_is_key_in_use(struct iw_engine *engine, uint32_t key);
/* Waits until none does. */
void iw_engine_wait_key(struct iw_engine *engine, uint32_t key);

#endif
