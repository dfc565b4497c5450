// SPDX-License-Identifier: BSD-2-Clause
/*
 * The structure of a connection over TCP, and accessors. The folders next to this file, lowest
 * first; a file calls others of its folder and of lower ones, and conn.c:
 *
 *   wire/      frames and headers as functions of bytes; knows no socket
 *   transfer/  sending requests, receiving segments, placing their bytes
 *   connect/   service points, set-up, the life and the end of a connection
 *   engine/    the service thread, and the threads of the consumer that poll
 *
 * Who may access a connection: before it has an endpoint, the service thread alone (ARRIVING), or
 * the owner of the connection request (OFFERED). From iw_conn_attach to iw_conn_drop, whoever has
 * locked the endpoint. After that the service thread alone (LINGERING). Only the service thread
 * removes a socket from epoll and closes it. Fields that are marked otherwise are exempt.
 */
#ifndef IWARP_CONN_H
#define IWARP_CONN_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/transport.h"
#include "soft/callers.h"
#include "soft/iwarp/engine.h"
#include "soft/iwarp/transfer/stream.h"

struct iw_listener;
struct iw_setup;

enum iw_state {
	IW_CONNECTING,	/* active: TCP connects, or waits for another try */
	IW_REQUESTED,	/* active: waits for the reply */
	IW_ARRIVING,	/* passive: waits for the request */
	IW_OFFERED,	/* passive: the core has it, as a connection request */
	IW_ACCEPTED,	/* passive: sends the reply; waits for the first FPDU if that is agreed */
	IW_ESTABLISHED, /* data flow */
	IW_CLOSING,	/* ends: the end has still to be reported to the core */
	IW_LINGERING,	/* released: sends what was begun, then waits for the peer's end */
};

struct iw_conn {
	struct iw_engine *engine;
	struct soft_attended attended; /* references, events, deadline */
	_Atomic uint32_t state;	       /* written by those who may access it; read by any */
	int fd;
	uint32_t events; /* what epoll waits for on the socket, if it is in epoll */
	bool is_in_epoll;
	struct core_ref ep_ref;
	_Atomic bool has_ep; /* release after ep_ref is set */

	/* what the set-up has agreed; D2-TCP-04: a Send with Invalidate needs no agreement */
#define IW_AGREED (TRANSPORT_TAKES_IMMEDIATE | TRANSPORT_TAKES_ATOMICS)
	bool is_active;	    /* we are the initiator */
	uint8_t takes;	    /* enum transport_takes of our endpoint, */
	uint8_t peer_takes; /* and of the peer's */
	bool is_own_peer;   /* the peer is another OpenDAT over TCP: large FPDUs, counts (tx.h) */
	bool has_crc;
	uint8_t rtr;		/* enum iw_rtr: the form that was agreed */
	uint32_t ird;		/* Read Requests of the peer that we serve at a time */
	uint32_t ord;		/* Read Requests that we may have in flight, proofs included */
	uint32_t read_max;	/* of these, RDMA Reads of the consumer (DTO-108) */
	struct iw_setup *setup; /* until it is established; connect/setup.h */
	struct iw_listener *listener; /* passive: where it arrived, with a reference */
	struct soft_caller caller;    /* passive */

	struct iw_stream stream; /* transfer/ */
	struct iw_alive {
		uint64_t look_ns;  /* when we look at the peer's answers again; 0: all answered */
		uint64_t since_ns; /* of the look that found the peer silent, or before that one */
	} alive;

	DAT_EVENT_NUMBER end; /* CLOSING: the event number for the core */
	bool is_draining;     /* graceful disconnect: ends when all requests are done */
	bool is_lost;	      /* TCP has failed: nothing can be sent any more */
	int error;	      /* the errno with which it failed; 0: none */
	bool has_more;	      /* the budget has ended the last pass */
	uint32_t moved; /* bytes, by the last poll, with those of requests that it has completed */
	uint64_t retry_ns; /* the kernel lacked memory: no call for the socket before; 0: none */
	bool is_hung_up;   /* epoll has reported an error or the end of both directions */
	bool has_fin_sent;
	bool has_fin_come;   /* CLOSING, LINGERING: the peer may still read what we have sent */
	uint64_t give_up_ns; /* set-up: fails then. LINGERING: the socket is closed then */

	/* engine lock */
	bool is_polled; /* on the list of those that polling threads drive */
	struct iw_conn *next_polled;
	struct iw_conn *prev_polled;
	uint32_t idle_polls;
	_Atomic bool is_held; /* on the list of held ones; read with the endpoint locked, too */
	struct iw_conn *next_held;

	/* a key of our own table that is in use for the peer; 0: none. Written with the endpoint
	 * locked, read by dat_lmr_free */
	_Atomic uint32_t announced;
};

static inline enum iw_state iw_conn_state(const struct iw_conn *conn)
{
	/* acquire: pairs with the release in iw_conn_set_state */
	return (enum iw_state)atomic_load_explicit(&conn->state, memory_order_acquire);
}

static inline void iw_conn_set_state(struct iw_conn *conn, enum iw_state state)
{
	atomic_store_explicit(&conn->state, (uint32_t)state, memory_order_release);
}

/* A call for the socket has failed with that error. The kernel tells it once: after a reset the
 * next call finds the end of the stream, as behind a FIN. */
static inline void iw_conn_lose(struct iw_conn *conn, int error)
{
	conn->is_lost = true;
	if (!conn->error || conn->error == EPIPE)
		conn->error = -error;
}

/* Has TCP failed, and not because the peer had ended its direction before? */
static inline bool iw_conn_is_reset(const struct iw_conn *conn)
{
	return conn->error && conn->error != EPIPE; /* which comes after a FIN, too */
}

/* Does a message wait for a Receive, so that later ones wait behind it? */
static inline bool iw_message_is_waiting(const struct iw_conn *conn)
{
	return conn->stream.rx.spill.first < conn->stream.rx.spill.end;
}

static inline struct iw_conn *iw_conn_of_attended(struct soft_attended *attended)
{
	return (struct iw_conn *)((char *)attended - offsetof(struct iw_conn, attended));
}

static inline void iw_conn_get(struct iw_conn *conn)
{
	soft_attended_get(&conn->attended);
}

static inline bool iw_conn_get_unless_dead(struct iw_conn *conn)
{
	return soft_attended_get_unless_dead(&conn->attended);
}

/* --- conn.c: its socket in epoll --- */

/*
 * Has epoll report those events (EPOLLIN, EPOLLOUT) of the socket; 0: errors only. Adds the socket
 * if it is not in epoll, the first time with a reference: 0 or -errno.
 */
int iw_conn_watch(struct iw_conn *conn, uint32_t events);
/*
 * Removes the socket from epoll until the next iw_conn_watch: 0 or -errno. For no events at all,
 * too, epoll has the kernel call it for each segment that arrives.
 */
int iw_conn_pause_watch(struct iw_conn *conn);
/* Service thread only: removes the socket from epoll for good; more calls do nothing. */
void iw_conn_unwatch(struct iw_conn *conn);
/* Service thread only: the same, and closes it. */
void iw_conn_close_socket(struct iw_conn *conn);

/* --- conn.c: the kernel lacks memory --- */

#define IW_RETRY_NS 10000000u

/* Does the error of a call for the socket mean that? If so, no more calls for 10 ms. */
bool iw_conn_note_shortage(struct iw_conn *conn, int error);
/*
 * Is it too early for the next try? If so, the caller sets a deadline at `retry_ns`. epoll must not
 * wait for what the socket has ready, which it would report again and again. It reports a hang-up
 * all the same, but only once.
 */
#define IW_EVENTS_SHORT EPOLLONESHOT
bool iw_conn_is_short(struct iw_conn *conn);

/* --- conn.c: its endpoint --- */

/* Gives the connection to the endpoint (locked), together with the caller's reference. */
void iw_conn_attach(struct iw_conn *conn, struct core_ep *ep);
/* Locks the endpoint of the connection; NULL if the endpoint has released it. */
struct core_ep *iw_conn_enter(struct iw_conn *conn);
/* Takes the connection from the endpoint (locked); the reference is the caller's. */
void iw_conn_detach(struct iw_conn *conn, struct core_ep *ep);
/* The connection of an endpoint (locked), or NULL. */
struct iw_conn *iw_conn_of(const struct core_ep *ep);

/* Its endpoint for messages: "ep 3", or "no endpoint". */
struct core_name iw_conn_name(const struct iw_conn *conn);

/* --- attention of the service thread (soft/attention.h) --- */

static inline void iw_conn_serve_later(struct iw_conn *conn)
{
	soft_attention_ask(&conn->engine->attention, &conn->attended);
}

static inline void iw_conn_set_deadline(struct iw_conn *conn, uint64_t deadline_ns)
{
	soft_attention_set(&conn->engine->attention, &conn->attended, deadline_ns);
}

static inline void iw_conn_lower_deadline(struct iw_conn *conn, uint64_t deadline_ns)
{
	soft_attention_lower(&conn->engine->attention, &conn->attended, deadline_ns);
}

/* --- conn.c: the end --- */

/*
 * Ends the connection: nothing more is begun or delivered, and that event is reported to the
 * consumer (DISCONNECTED, BROKEN) by iw_conn_run (connect/ep.h). EP locked.
 */
void iw_conn_close(struct iw_conn *conn, DAT_EVENT_NUMBER end);

#endif
