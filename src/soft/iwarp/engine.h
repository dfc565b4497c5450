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
#include "soft/attention.h"
#include "soft/callers.h"
#include "soft/driven.h"
#include "soft/thread.h"

struct core_ep;
struct iw_conn;
struct soft_adapter;

#define IW_EVENTS 64 /* handled in one batch */

struct iw_engine {
	/* constant after creation */
	struct core_ia *ia; /* must not be dereferenced once `is_stopping` is set */
	struct soft_adapter *adapter;
	struct core_settings settings;
	bool is_loopback; /* the address of the adapter */
	/* constant once is_started is set */
	struct core_service service;
	pthread_mutex_t start_lock; /* held while the thread is started */

	_Atomic uint32_t refs; /* adapter, thread, connections, listeners */
	_Atomic bool is_started;
	_Atomic bool is_stopping;
	struct soft_attention attention;
	_Atomic uint32_t polled_count;
	_Atomic uint32_t held_count;
	_Atomic uint64_t posts;	   /* relaxed: a hint, and posts at the same time may be lost */
	struct soft_driven driven; /* by passes of threads that poll (service.c) */
	struct soft_callers callers;

	struct core_lock lock;	      /* leaf; guards the rest */
	struct iw_conn *polled_first; /* with a reference each; the next one to poll */
	struct iw_conn *held_first;   /* with a reference each; transfer/tx.h */
};

int iw_engine_create(struct soft_adapter *adapter, struct iw_engine **engine_out);
/* Ends the service thread and drops the adapter; see transport_ops.ia_close. */
void iw_engine_close(struct iw_engine *engine);
void iw_engine_get(struct iw_engine *engine);
void iw_engine_put(struct iw_engine *engine);

/* The list of connections that threads of the consumer poll, with a reference to each. EP locked.
 */
void iw_engine_add_polled(struct iw_engine *engine, struct iw_conn *conn);
/* True: it was on the list, and its reference is the caller's. */
bool iw_engine_remove_polled(struct iw_engine *engine, struct iw_conn *conn);
/* The connection whose turn it is, with a reference; NULL: there is none. */
struct iw_conn *iw_engine_next_polled(struct iw_engine *engine);
/* A thread of the consumer has made a pass over a connection that moved so many bytes. */
void iw_engine_count_pass(struct iw_engine *engine, uint32_t moved);

/* The same for those whose last messages wait for more (transfer/tx.h): a thread that polls or is
 * about to sleep sends them. */
void iw_engine_add_held(struct iw_engine *engine, struct iw_conn *conn);
bool iw_engine_remove_held(struct iw_engine *engine, struct iw_conn *conn);
/* Removes the first, with its reference; NULL: there is none. */
struct iw_conn *iw_engine_take_held(struct iw_engine *engine);

/* Does a thread place or fetch bytes through that key of ours, which is dead already? */
bool iw_engine_is_key_in_use(struct iw_engine *engine, uint32_t key);
/* Waits until none does. */
void iw_engine_wait_key(struct iw_engine *engine, uint32_t key);

#endif
