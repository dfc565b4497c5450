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

#include "core/base/instance.h"
#include "core/ep/ep.h"
#include "shared/cm.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"

struct vrb_pz;
struct vrb_srq;
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

/* What threads that read the list know about a connection. Written with adapter->lock held. */
enum vrb_mark {
	VRB_UNMARKED,
	VRB_REPORTED, /* a request: reported to the consumer, which has not answered */
	VRB_ANSWERED, /* a request: accepted or rejected */
	/* it has ended, and the service thread releases it (engine/poll.c) */
	VRB_LINGERING, /* at its deadline */
	VRB_OFFLINE,   /* when the port is up; the queue pair is gone */
};

/* The work requests of the fast path. Their constant fields are filled once (connect/setup.c). */
struct vrb_fast {
	struct ibv_send_wr send_wr;
	struct ibv_send_wr write_wr;
	struct ibv_sge sge;
	struct ibv_recv_wr recv_wr;
	struct ibv_sge recv_sge;
	struct ibv_send_wr *bad; /* output of ibv_post_send, never read */
	struct ibv_recv_wr *recv_bad;
};

/* The send queue, in work requests; queue.h defines positions. */
struct vrb_sq {
	uint32_t size;
	uint32_t unsignalled; /* unsignalled requests that are posted and not known to be done */
	uint64_t next;	      /* sequence of the next request to post */
	uint64_t extra;	      /* work requests posted beyond one for each request */
	uint64_t extra_done;  /* the part of `extra` before the first one that may not be done */
	uint64_t seen;	      /* last position whose completion the slow path has seen */
	uint32_t reads_now;   /* siw: RDMA Reads posted and not done, verifying ones too */
};

/* The work request that shows that unsignalled ones are done. */
struct vrb_marker {
	bool is_out;
	uint64_t posted; /* the position behind it */
	uint64_t next;	 /* it completes the requests before this one */
};

/* Binds of RMRs (bind.c). */
struct vrb_binds {
	uint32_t out;		     /* binds of windows that are posted and not completed */
	bool is_running;	     /* the oldest request is a bind that has begun */
	_Atomic bool is_blocked;     /* that bind waits for one of another endpoint */
	struct vrb_window *retiring; /* the window that the bind's second work request unbinds */
	uint64_t retire_end;	     /* the position behind that work request */
};

/* The receive queue. */
struct vrb_rq {
	bool is_open;  /* Receives can be posted to the queue pair */
	int32_t extra; /* the provider's own Receives, less those that never complete */
	uint64_t next; /* the next Receive to post */
};

/*
 * iWARP, active side: messages that arrived before the connection manager's event, which carries
 * the private data. There is room for as many as there are Receives.
 */
struct vrb_early {
	struct ibv_wc *wc;
	uint32_t count;
	uint32_t room;
};

/* What only siw needs. */
struct vrb_siw {
	uint8_t scratch;    /* target of the RDMA Reads that verify Writes */
	uint8_t pipe_posts; /* posts until SIGPIPE's action is read again */
	struct ibv_mr *scratch_mr;
};

/* The set-up, of both sides. */
struct vrb_setup {
	struct cm_request request;
	struct cm_accept answer;   /* of the passive side; both sides have it */
	_Atomic bool is_peer_gone; /* the active side has given up (VRB_REQUESTED) */
	DAT_EVENT_NUMBER failure;  /* it has failed: reported at the deadline; 0: it has not */
	uint64_t give_up_ns;	   /* when it times out */
	uint8_t peer_read_in;
	uint8_t peer_read_out;
	uint8_t peer_takes;	 /* enum transport_takes */
	bool is_unconfirmed;	 /* iWARP, passive side: the first Receive is the provider's */
	uint8_t confirm_retries; /* iWARP, active side: retries of the confirmation left */
};

/* The active side of a set-up (connect/active.c). */
struct vrb_attempt {
	union core_sockaddr address;
	unsigned port;	     /* which port of the qualifier: cm_port */
	unsigned refused_at; /* the port where a peer has rejected without a header; CM_PORTS: none
			      */
	bool is_continued;   /* the peer has the first part of the private data */
	bool had_timeout;    /* a port did not answer in the current round */
	uint8_t local_ports; /* iWARP: requests made anew because TCP uses the local port */
};

/* The end of an established connection. */
struct vrb_end {
	DAT_EVENT_NUMBER why;	   /* from VRB_CLOSING on */
	bool is_graceful;	   /* it closes when no request is left */
	bool has_failed;	   /* the device has reported an error */
	bool is_peer_notified;	   /* it was disconnected */
	_Atomic bool has_left_srq; /* the device has completed all SRQ buffers that it held */
	/* the device flushes for a reason not known yet, which becomes a break then; VRB_NEVER: it
	 * does not */
	uint64_t flush_ns;
};

struct vrb_conn {
	struct vrb_peer peer; /* first */
	_Atomic uint32_t refs;
	struct vrb_adapter *adapter;
	uint32_t key;	     /* of its slot in the table; changed with the endpoint locked */
	bool has_fast_path;  /* vrb_has_fast_path */
	uint64_t inline_max; /* the adapter's limit */

	/*
	 * guarded by the endpoint's lock; without an endpoint only the service thread uses them.
	 * That thread replaces `id` of an unanswered request with adapter->lock held
	 * (connect/passive.c)
	 */
	enum vrb_state state;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct vrb_pz *pz; /* those of the queue pair, with references, as long as it exists */
	struct vrb_srq *srq;
	struct vrb_cq *cq;
	uint32_t cq_entries;
	bool is_opendat;  /* the peer is an OpenDAT */
	uint8_t read_in;  /* concurrent RDMA Reads that this side serves */
	uint8_t read_out; /* those that it starts */
	uint8_t takes;	  /* enum transport_takes of our endpoint */
	struct vrb_fast fast;
	struct vrb_sq sq;
	struct vrb_rq rq;
	struct vrb_marker marker;
	struct vrb_binds binds;
	struct vrb_siw siw;
	struct vrb_early early;
	struct vrb_setup setup;
	struct vrb_attempt attempt;
	struct vrb_end end;

	/* guarded by adapter->lock */
	struct core_ref ep;	/* no cell: none */
	uint64_t deadline_ns;	/* VRB_NEVER: none */
	struct vrb_conn *next;	/* in the adapter's list */
	struct vrb_conn **link; /* to this one in that list; NULL: not in it */
	struct vrb_conn *qpn_next;
	struct vrb_conn **qpn_link; /* the same for the numbers of queue pairs */
	enum vrb_mark mark;
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

/* --- life --- */

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
/* Has the service thread look at it at that time; 0: at once. */
void vrb_conn_set_deadline(struct vrb_conn *conn, uint64_t when_ns);
/* Returns a connection that is due, with a reference, or NULL. */
struct vrb_conn *vrb_conn_next_due(struct vrb_adapter *adapter, uint64_t now_ns);
/* Makes every connection due now. */
void vrb_conn_all_due(struct vrb_adapter *adapter);

/* --- queue pairs by number, for completions of SRQ buffers --- */

void vrb_qpn_add(struct vrb_conn *conn);
void vrb_qpn_remove(struct vrb_conn *conn);
/* The connection of that queue pair, with a reference; NULL: there is none. */
struct vrb_conn *vrb_qpn_find(struct vrb_adapter *adapter, uint32_t qp_num);

/* --- the start of the end; engine/poll.c finishes it --- */

/* Starts to end an established connection. EP locked. */
void vrb_conn_close(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER why);
/* Handles a flush that this side did not cause: the device flushes the queue pair, or accepts
 * nothing more. EP locked. */
void vrb_conn_flushed(struct vrb_conn *conn, struct core_ep *ep);
/* Is nothing posted any more that may complete? EP locked. */
bool vrb_conn_is_drained(const struct vrb_conn *conn, const struct core_ep *ep);
/* When a closing connection ends, drained or not. EP locked. */
uint64_t vrb_conn_drain_deadline(const struct vrb_conn *conn, const struct core_ep *ep);
/*
 * When the device has completed the SRQ buffers of the queue pair, which is in the error state. The
 * queues have to be polled then.
 */
uint64_t vrb_conn_srq_deadline(const struct vrb_conn *conn);
/* Disconnects, once. */
void vrb_conn_notify_peer(struct vrb_conn *conn);
/* Can a message reach the peers? */
bool vrb_can_notify_peers(struct vrb_adapter *adapter);
void vrb_qp_to_error(struct vrb_conn *conn);
/* Is the queue pair in the error state, or has the device reported an error? */
bool vrb_conn_is_broken(const struct vrb_conn *conn);

#endif
