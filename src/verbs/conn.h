// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connections: one attempt to connect, or one connection, of an endpoint. References to a
 * connection are held by the adapter's list, by the endpoint or the request, and by each thread
 * that works on it.
 */
#ifndef VERBS_CONN_H
#define VERBS_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/ep/ep.h"
#include "core/base/instance.h"
#include "shared/cm.h"
#include "verbs/adapter.h"
#include "verbs/table.h"

struct vrb_window;

enum vrb_state {
	VRB_REQUESTED,	/* passive: a request that the consumer has not answered */
	VRB_RESOLVING,	/* active: address and route */
	VRB_CONNECTING, /* active: request sent */
	VRB_ACCEPTED,	/* passive: accepted, not confirmed */
	VRB_ESTABLISHED,
	VRB_CLOSING, /* nothing more is posted; the queues are being flushed */
	VRB_ENDED,   /* the core was notified */
};

struct vrb_conn {
	struct vrb_peer peer; /* first */
	_Atomic uint32_t refs;
	struct vrb_adapter *adapter;
	uint32_t key;	     /* of its slot in the table; changed with the endpoint locked */
	bool has_fast_path;  /* vrb_has_fast_path */
	uint64_t inline_max; /* the adapter's limit */

	/* guarded by adapter->lock */
	bool has_ep;
	struct core_ref ep;
	uint64_t deadline_ns; /* VRB_NEVER: none */
	struct vrb_conn *next;
	struct vrb_conn *prev;
	bool is_listed;
	bool is_lingering; /* ended; the identifier stays until the port is up */
	struct vrb_conn *qpn_next;
	bool has_qpn;
	bool is_reported; /* the request was reported to the consumer; service thread only */
	bool is_answered; /* the consumer has accepted or rejected the request */

	/*
	 * guarded by the endpoint's lock; without an endpoint only the service thread uses them.
	 * That thread replaces `id` of an unanswered request with adapter->lock held (listen.c)
	 */
	enum vrb_state state;
	struct rdma_cm_id *id;
	_Atomic bool is_peer_gone; /* the active side has given up (VRB_REQUESTED) */
	DAT_EVENT_NUMBER failure;  /* the set-up failed: reported at the deadline; 0: it did not */
	uint64_t give_up_ns; /* when a set-up times out, or a flush becomes a break (is_flushed) */
	struct ibv_qp *qp;
	uint8_t scratch;    /* siw: target of the RDMA Reads that verify Writes (post.c) */
	uint8_t pipe_posts; /* siw: posts until SIGPIPE's action is read again (iwarp.c) */
	struct ibv_mr *scratch_mr;
	bool is_receiving; /* Receives can be posted to the queue pair */
	struct vrb_cq *cq;
	uint32_t cq_entries;
	bool is_opendat;  /* the peer is an OpenDAT */
	uint8_t read_in;  /* concurrent RDMA Reads that this side serves */
	uint8_t read_out; /* and that it starts */
	uint8_t peer_read_in;
	uint8_t peer_read_out;
	struct cm_accept answer; /* the answer of the passive side; both sides have it */
	bool is_unconfirmed;	 /* iWARP, passive side: the first Receive is the provider's */
	uint8_t confirm_retries; /* iWARP, active side: retries of the confirmation left */

	/* active side */
	union core_sockaddr address;
	struct cm_request request;
	unsigned port_index;	     /* which port of the qualifier: cm_port */
	bool is_continued;	     /* the peer has the first part of the private data */
	bool was_refused;	     /* a peer rejected the request without a header */
	unsigned refused_port_index; /* the port of the last such reject */
	bool had_timeout;	     /* a port did not answer in the current round */
	uint8_t local_ports;	     /* iWARP: requests made anew because TCP uses the local port */

	/* fast path (fast.c): work requests whose constant fields are filled once */
	struct ibv_send_wr fast_send_wr;
	struct ibv_send_wr fast_write_wr;
	struct ibv_sge fast_sge;
	struct ibv_recv_wr fast_recv_wr;
	struct ibv_sge fast_recv_sge;
	struct ibv_send_wr *fast_bad; /* output of ibv_post_send, never read */
	struct ibv_recv_wr *fast_recv_bad;

	/* the send queue, in work requests; work.h defines positions */
	uint32_t sq_size;
	uint64_t post_next;   /* sequence of the next request to post */
	uint64_t extra;	      /* work requests posted beyond one for each request */
	uint64_t extra_done;  /* the part of `extra` before the first one that may not be done */
	uint64_t sq_seen;     /* last position whose completion the slow path has seen */
	uint32_t unsignalled; /* unsignalled requests that are posted and not known to be done */
	uint32_t binds_out;   /* binds of windows that are posted and not completed */
	bool has_marker;
	uint64_t marker_posted;	     /* the position behind the marker */
	uint64_t marker_next;	     /* the marker completes the requests before this one */
	bool is_binding;	     /* the oldest request is a bind that has begun */
	_Atomic bool is_blocked;     /* that bind waits for one of another endpoint */
	struct vrb_window *retiring; /* the window that the bind's second work request unbinds */
	uint64_t retire_end;	     /* the position behind that work request */
	uint32_t reads_now;	     /* siw: RDMA Reads posted and not done, verifying ones too */

	/* the receive queue */
	uint64_t recv_next; /* the next Receive to post */
	int32_t recv_extra; /* the provider's own Receives, less those that never complete */
	/*
	 * iWARP, active side: messages that arrived before the connection manager's event, which
	 * carries the private data. There is room for as many as there are Receives.
	 */
	struct ibv_wc *early;
	uint32_t early_count;
	uint32_t early_room;

	/* the end */
	bool is_graceful;
	bool is_flushed; /* the device flushes, for a reason not known yet */
	bool has_failed; /* the device has reported an error */
	/* the device has completed all SRQ buffers that the queue pair held; set with
	 * adapter->lock held */
	_Atomic bool has_left_srq;
	bool is_peer_notified;
	DAT_EVENT_NUMBER why;
};

/* ep->transport, which is allocated behind the endpoint */
struct vrb_ep {
	struct vrb_conn *conn;	/* the attempt or connection, or NULL. EP locked */
	struct vrb_conn *dying; /* detached; ep_destroy destroys it */
};

static inline struct vrb_conn *vrb_conn_of(const struct core_ep *ep)
{
	return ((const struct vrb_ep *)(ep + 1))->conn; /* where ep->transport points */
}

/* --- life (conn.c) --- */

/* Returns one reference to the caller; the adapter's list has another. */
int vrb_conn_create(struct vrb_adapter *adapter, enum vrb_state state, struct vrb_conn **conn_out);
void vrb_conn_get(struct vrb_conn *conn);
void vrb_conn_put(struct vrb_conn *conn);
/* Removes it from the table and the list, and drops the list's reference. */
void vrb_conn_forget(struct vrb_conn *conn);
/* Locks and returns the endpoint; NULL if this is not its connection any more. */
struct core_ep *vrb_conn_enter(struct vrb_conn *conn);
/* Updates the slow reasons and unlocks the endpoint, whose connection may be gone. */
void vrb_conn_leave(struct core_ep *ep);
/*
 * Sets or clears the provider's reasons against the fast path (enum core_ep_slow). Called after
 * anything that they depend on may have changed. EP locked.
 */
void vrb_update_slow_reasons(struct core_ep *ep);
/* Makes it the endpoint's connection, with the caller's reference. EP locked. */
void vrb_conn_attach(struct vrb_conn *conn, struct core_ep *ep);
/* Detaches it from the endpoint: neither refers to the other any more. EP locked. */
void vrb_conn_detach(struct vrb_conn *conn, struct core_ep *ep);
/* Has the service thread call vrb_setup_due for it at that time; 0: at once. */
void vrb_conn_set_deadline(struct vrb_conn *conn, uint64_t when_ns);
/* Returns a connection that is due, with a reference, or NULL. */
struct vrb_conn *vrb_conn_next_due(struct vrb_adapter *adapter, uint64_t now_ns);
/* Makes every connection due now. */
void vrb_conn_all_due(struct vrb_adapter *adapter);

/* --- the end (teardown.c) --- */

/* Waits for the threads that destroy attempts; before the instance is closed. */
void vrb_conn_wait_reapers(struct vrb_adapter *adapter);
/* Destroys identifier and queue pair, and drops the owner's reference. What takes long is left to
 * another thread. */
void vrb_conn_destroy(struct vrb_conn *conn);
/* The same for an endpoint that is freed: waits until no buffer of an SRQ is held. No lock held. */
void vrb_conn_destroy_freed(struct vrb_conn *conn);
/* Destroys the identifiers that were kept while the port was down. */
void vrb_conn_end_lingering(struct vrb_adapter *adapter);
/* Starts to end an established connection. EP locked. */
void vrb_conn_close(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER why);
/* Handles a flush that this side did not cause: the device flushes the queue pair, or accepts
 * nothing more. EP locked. */
void vrb_conn_flushed(struct vrb_conn *conn, struct core_ep *ep);
/* The device reports that the queue pair, in the error state, holds no buffer of its SRQ. */
void vrb_conn_left_srq(struct vrb_conn *conn);
/* Ends a closing connection when its queues are empty, or is_forced. EP locked. */
void vrb_conn_try_finish(struct vrb_conn *conn, struct core_ep *ep, bool is_forced);

#endif
