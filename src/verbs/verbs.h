// SPDX-License-Identifier: BSD-2-Clause
/*
 * The provider over rdma-core: one adapter instance, its completion queues and its connections.
 *
 * Threads. Whoever polls an event dispatcher polls the completion queues of the instance; a service
 * thread (service.c) does so for what nobody polls, and follows the connection manager and the
 * device. A completion queue is polled by one thread at a time, which keeps the order of what it
 * finds; others do not wait for it. Events of librdmacm and of the device are copied and
 * acknowledged before anything is locked, because rdma_destroy_id and ibv_destroy_qp wait for that.
 *
 * Locks. The endpoint's lock guards its connection; adapter->lock is a leaf. Connections are
 * counted: the table of the adapter, the endpoint or the request, and each thread at work hold one
 * reference.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <pthread.h>
#include <stdatomic.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core/ep/ep.h"
#include "core/base/instance.h"
#include "core/mem/pz.h"
#include "core/srq/srq.h"
#include "core/transport.h"
#include "verbs/wire.h"

#define VRB_SEGMENTS_MAX 32u /* of one operation: scatter lists are on the stack */
#define VRB_SEGMENT_MAX 0x7fffffffu
#define VRB_POLL_BATCH 16 /* completions that one call of the device gives at most */
#define VRB_NS_PER_MS UINT64_C(1000000)
#define VRB_NEVER UINT64_MAX
#define VRB_VENDOR_RXE 0xffffffu /* what the software devices call themselves */
#define VRB_VENDOR_SIW 0x626d74u
#define VRB_QPN_BUCKETS 1024u
#define VRB_READS_MAX 254u    /* 255 means "as many as there are" to librdmacm */
#define VRB_PRIVATE_ROOM 255u /* what any connection manager hands us at most */

/* --- the adapter --- */

/* One completion queue; never taken away before the instance is closed. */
struct vrb_cq {
	_Atomic bool is_owned;	 /* by a thread that polls it */
	_Atomic bool has_polled; /* a thread of the consumer has, since the service thread looked */
	/* set when it is made */
	struct ibv_cq *cq;
	struct vrb_adapter *adapter;
	struct core_handle *_Atomic *ep_cells; /* the adapter's */
	/*
	 * What the last poll gave and nobody has handed on yet: so many entries, from `kept` on.
	 * The owner's; entries may stay here between two owners.
	 */
	uint8_t kept_count;
	struct ibv_wc *kept;
	struct ibv_wc wc[VRB_POLL_BATCH];
	uint32_t capacity;
	uint32_t reserved; /* entries promised to queue pairs; adapter->lock */
	struct vrb_cq *_Atomic next;
};

/* False: another thread owns it. */
CORE_INLINE bool vrb_cq_own(struct vrb_cq *cq)
{
	/* acquire and release: the next owner sees what was handed on before */
	return !atomic_exchange_explicit(&cq->is_owned, true, memory_order_acquire);
}

CORE_INLINE void vrb_cq_disown(struct vrb_cq *cq)
{
	atomic_store_explicit(&cq->is_owned, false, memory_order_release);
}

/* Asks the device for completions, when none is kept: how many it gave. Owned. */
CORE_INLINE int vrb_cq_fill(struct vrb_cq *cq)
{
	int count;

	cq->kept = cq->wc; /* before the call: else it is kept in a register meanwhile */
	count = ibv_poll_cq(cq->cq, VRB_POLL_BATCH, cq->wc);
	if (count <= 0)
		return 0;
	cq->kept_count = (uint8_t)count;
	return count;
}

struct vrb_conn;

enum vrb_kind {
	VRB_KIND_CONN,
	VRB_KIND_LISTENER,
	VRB_KIND_SRQ,
};

/* What the context of an rdma_cm_id, or a place in the table, points to. */
struct vrb_peer {
	enum vrb_kind kind;
};

/* A place in the table of connections and shared queues, by which completions find them. */
struct vrb_slot {
	uint32_t generation;	 /* counts the uses */
	uint32_t next_free;	 /* index + 1; 0: none */
	struct vrb_peer *object; /* NULL while free */
};

struct vrb_limits {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_sge_rd;
	uint32_t max_cqe;
	uint32_t inline_max; /* bytes that may be copied into a request */
	uint32_t reads_in;
	uint32_t reads_out;
	uint32_t request_room; /* bytes of private data in a request, and in an answer */
	uint32_t answer_room;
};

struct vrb_adapter {
	_Atomic uint32_t refs; /* the instance, each connection, each listener */
	/* set at creation */
	struct core_ia *ia;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *anchor; /* bound to our address: keeps the device open */
	struct ibv_context *context;
	struct ibv_comp_channel *completions;
	struct vrb_limits limits;
	bool is_iwarp;
	bool is_siw;	      /* the software one */
	bool has_windows;     /* RMRs are bound by memory windows */
	bool posts_in_kernel; /* a post may be a system call that a thread may be cancelled in, */
	bool polls_in_kernel; /* and so may a poll, or the post of a Receive */
	int epoll_fd;
	int kick_fd;
	pthread_t thread;
	char device_text[64]; /* for dat_ia_query */
	char inline_text[16];
	DAT_NAMED_ATTR named[8];

	struct vrb_cq *_Atomic cqs;
	/* the first one: for the fast path, while it is the only one, and a poll of it is no
	 * system call (core_ia_refuse_polls) */
	struct vrb_cq *_Atomic fast_cq;
	_Atomic bool has_posted; /* as vrb_cq.has_polled */
	_Atomic bool is_dead;	 /* the device is gone or has failed */
	_Atomic bool is_stopping;
	_Atomic bool is_kicked;
	_Atomic uint32_t blocked;     /* connections with a bind that another one holds up */
	_Atomic bool is_serving;      /* core_srq_serve_all is asked for */
	_Atomic uint32_t troubles;    /* what the device told about itself: bits, by event */
	_Atomic uint64_t deadline_ns; /* no connection has an earlier one */

	pthread_mutex_t lock;  /* guards what follows; a leaf */
	pthread_cond_t reaped; /* reapers fell to 0 */
	uint32_t reapers;      /* threads that destroy attempts which librdmacm holds on to */
	struct vrb_slot *slots;
	/*
	 * The cells of the endpoints of the connections in `slots`, for whoever takes completions:
	 * never moved, and read without the lock. A slot that was never used has NULL, one that is
	 * no connection's a cell that is nobody's.
	 */
	struct core_handle *_Atomic *ep_cells;
	uint32_t slot_count; /* those that were used */
	uint32_t slot_free;
	struct vrb_conn *first;			  /* all connections */
	struct vrb_conn *by_qpn[VRB_QPN_BUCKETS]; /* those of endpoints with an SRQ */
	struct vrb_adapter *next; /* all instances of the process: guarded by their own lock */
};

/* One of those. Relaxed: sooner or later it is seen. */
static inline void vrb_show(_Atomic bool *has)
{
	atomic_store_explicit(has, true, memory_order_relaxed);
}

/* Is no more than a post needed for a request, and is neither that nor a poll a system call? */
static inline bool vrb_is_direct(const struct vrb_adapter *adapter)
{
	return !adapter->is_iwarp && !adapter->posts_in_kernel && !adapter->polls_in_kernel;
}

static inline struct vrb_adapter *vrb_adapter_of(const struct core_ia *ia)
{
	return ia->transport;
}

void vrb_adapter_get(struct vrb_adapter *adapter);
void vrb_adapter_put(struct vrb_adapter *adapter);

uint64_t vrb_now_ns(void);

/* device.c: names, addresses, limits, and what the device tells on its own. */
int vrb_address_of_device(const char *device, uint32_t port, union core_sockaddr *address_out);
int vrb_address_check(const union core_sockaddr *address);
int vrb_device_open(struct vrb_adapter *adapter);
void vrb_device_close(struct vrb_adapter *adapter);
int vrb_device_limits(struct vrb_adapter *adapter);
/* Is the port's link up? */
bool vrb_device_is_up(struct vrb_adapter *adapter);
/* Reads what the device has told; service thread. */
void vrb_device_events(struct vrb_adapter *adapter);
/* Acts on what was told to the whole device. */
void vrb_device_troubles(struct vrb_adapter *adapter);

/* mem.c */
struct vrb_window;

/* core_pz.transport */
struct vrb_pz {
	struct ibv_pd *pd;
	struct vrb_window *windows; /* not bound, for the next binds; adapter->lock */
};

static inline struct ibv_pd *vrb_pd(const struct core_pz *pz)
{
	return ((const struct vrb_pz *)pz->transport)->pd;
}

/* core_lmr.transport */
struct vrb_lmr {
	struct ibv_mr *mr;
	struct ibv_mr *sink; /* for the data of RDMA Reads: LMR-USE-15; may be `mr` */
};

int vrb_pz_create(struct core_ia *ia, struct core_pz *pz);
void vrb_pz_destroy(struct core_ia *ia, struct core_pz *pz);
int vrb_lmr_create(struct core_ia *ia, struct core_lmr *lmr);
void vrb_lmr_destroy(struct core_ia *ia, struct core_lmr *lmr);
/* Can memory windows be bound to it? */
bool vrb_lmr_takes_windows(const struct vrb_adapter *adapter, const struct core_lmr *lmr);
/* A registration of its own. */
int vrb_mr_create(struct core_pz *pz, DAT_VADDR address, DAT_VLEN length, DAT_MEM_PRIV_FLAGS priv,
		  struct ibv_mr **mr_out);
void vrb_mr_destroy(struct ibv_mr *mr);

/* core_lmr.local_keys */
enum vrb_local_key {
	VRB_KEY_SOURCE,
	VRB_KEY_SINK, /* of the data of RDMA Reads */
};

/* A Receive may be larger than any message: devices count in 31 bits. */
static inline uint32_t vrb_length(DAT_VLEN length)
{
	return length < VRB_SEGMENT_MAX ? (uint32_t)length : VRB_SEGMENT_MAX;
}

/* Fills an entry of a scatter list; false: the segment is no longer good. */
CORE_INLINE bool vrb_segment(struct core_ia *ia, const DAT_LMR_TRIPLET *segment, bool is_sink,
			     struct ibv_sge *sge)
{
	enum vrb_local_key key = is_sink ? VRB_KEY_SINK : VRB_KEY_SOURCE;

	sge->addr = segment->virtual_address;
	sge->length = vrb_length(segment->segment_length);
	sge->lkey = 0;
	/* that it is inside was checked when it was posted, and stays */
	return core_mem_local_key(ia->mem, segment->lmr_context, key, &sge->lkey);
}
/* The same for several. */
bool vrb_segments(struct core_ia *ia, const DAT_LMR_TRIPLET *iov, uint32_t count, bool is_sink,
		  struct ibv_sge *sge);
/* The same for a Receive, for which a bad segment matters when a message comes; the number. */
int vrb_recv_segments(struct core_ia *ia, const struct core_wqe *wqe, struct ibv_sge *sge);

/* --- completions (cq.c) --- */

int vrb_cq_create(struct vrb_adapter *adapter);
void vrb_cq_destroy_all(struct vrb_adapter *adapter);
/* A queue with room for that many entries, which are then promised. */
int vrb_cq_reserve(struct vrb_adapter *adapter, uint32_t entries, struct vrb_cq **cq_out);
void vrb_cq_release(struct vrb_adapter *adapter, struct vrb_cq *cq, uint32_t entries);
/* transport_ops.progress */
int vrb_drive(struct core_ia *ia);
/* Has a thread of the consumer polled since this was asked last? */
bool vrb_cq_was_polled(struct vrb_adapter *adapter);
/* Hands on what is kept, polls all queues, and hands that on: > 0 when there was something; -EBUSY
 * when another thread polls one of them. Cancellation is off. */
int vrb_cq_progress(struct vrb_adapter *adapter);
/* A queue pair is about to go: kept completions of an SRQ's buffers are nobody's any more. */
void vrb_cq_forget(struct vrb_cq *cq, uint32_t qp_num);
/* Asks for a wake-up by the next completion, and looks once more. > 0: ask again. */
int vrb_cq_arm(struct vrb_adapter *adapter);

/* --- connections (conn.c) --- */

enum vrb_state {
	VRB_ASKED,     /* arrived; belongs to the core as a request */
	VRB_RESOLVING, /* active: address and route */
	VRB_CALLING,   /* active: request sent */
	VRB_ACCEPTED,  /* passive: accepted, not confirmed */
	VRB_ESTABLISHED,
	VRB_CLOSING, /* nothing is posted any more; the queues are being flushed */
	VRB_ENDED,   /* the core was told */
};

struct vrb_conn {
	struct vrb_peer peer; /* first */
	_Atomic uint32_t refs;
	struct vrb_adapter *adapter;
	uint32_t key;	     /* its place in the table */
	bool is_direct;	     /* vrb_is_direct */
	uint64_t inline_max; /* the adapter's limit */

	/* adapter->lock */
	bool has_ep;
	struct core_ref ep;
	uint64_t deadline_ns; /* VRB_NEVER: none */
	struct vrb_conn *next;
	struct vrb_conn *prev;
	bool is_listed;
	bool is_lingering; /* over, but for the identifier: the port is down */
	struct vrb_conn *qpn_next;
	bool has_qpn;
	bool is_told;	  /* the consumer knows of the request, */
	bool is_answered; /* and has accepted or rejected it */

	/* the endpoint's lock; before there is one, the service thread's */
	enum vrb_state state;
	struct rdma_cm_id *id;
	_Atomic bool is_gone;	  /* the asking side has given up (VRB_ASKED) */
	DAT_EVENT_NUMBER failure; /* of a set-up: told at the deadline; 0: none */
	uint64_t give_up_ns;	  /* when a set-up has failed, or a flush (is_flushed) is a break */
	struct ibv_qp *qp;
	uint8_t scratch;    /* siw: what the proof of a Write reads goes here (post.c) */
	uint8_t pipe_posts; /* siw: posts that need not look whether SIGPIPE is ignored (iwarp.c) */
	struct ibv_mr *scratch_mr;
	bool is_receiving; /* the queue pair takes Receives */
	struct vrb_cq *cq;
	uint32_t cq_entries;
	bool is_ours;	 /* the peer is an OpenDAT */
	uint8_t read_in; /* what we serve, and want */
	uint8_t read_out;
	uint8_t peer_read_in;
	uint8_t peer_read_out;
	struct vrb_wire_accept answer; /* what the acceptor says, either way */
	bool is_unconfirmed;	       /* iWARP, passive side: the first Receive is ours */
	uint8_t nudges;		       /* iWARP, active side: to send until the peer is heard */

	/* active side */
	union core_sockaddr address;
	struct vrb_wire_request request;
	unsigned place;		/* of the qualifier: vrb_wire_port */
	bool is_continued;	/* the first part of the private data was taken */
	bool was_refused;	/* by a peer without header, */
	unsigned refused_place; /* at that place last */
	bool was_silent;	/* one place at least, since all were asked */

	/* the fast path's (fast.c): what is the same in each work request stays here */
	struct ibv_send_wr fast_send_wr;
	struct ibv_send_wr fast_write_wr;
	struct ibv_sge fast_sge;
	struct ibv_recv_wr fast_recv_wr;
	struct ibv_sge fast_recv_sge;
	struct ibv_send_wr *fast_bad; /* for ibv_post_send: nobody looks at it */
	struct ibv_recv_wr *fast_recv_bad;

	/* the send queue, in work requests: work.h says what its positions are */
	uint32_t sq_size;
	uint64_t post_next;  /* sequence of the next request to post */
	uint64_t extra;	     /* work requests posted beyond one for each request, */
	uint64_t extra_done; /* and those of them before the first that is not known to be done */
	uint64_t sq_seen;    /* position of the last whose completion the general path saw */
	uint32_t silent;     /* requests posted without a completion to come, and not done */
	uint32_t binds_out;  /* windows' binds that were posted and not completed */
	bool has_marker;
	uint64_t marker_posted;	     /* the position behind the marker */
	uint64_t marker_next;	     /* requests before it are done with it */
	bool is_binding;	     /* the oldest request is a bind, under way */
	_Atomic bool is_blocked;     /* it is held up by a bind of another endpoint */
	struct vrb_window *retiring; /* the window that its second work request unbinds */
	uint64_t retire_end;	     /* the position behind that */
	uint32_t reads_now;	     /* siw: posted and not done, those of proofs with them */
	/* the receive queue */
	uint64_t recv_next; /* the next Receive to post */
	int32_t recv_extra; /* our own in the device's queue, less those that never complete */
	/*
	 * iWARP, active side: messages that came before the connection manager's word, which has
	 * the private data; as many as there are Receives
	 */
	struct ibv_wc *early;
	uint32_t early_count;
	uint32_t early_room;

	/* the end */
	bool is_graceful;
	bool is_flushed; /* the device flushes, and nobody said why yet */
	bool has_failed; /* the device told of an error */
	bool is_peer_told;
	DAT_EVENT_NUMBER why;
};

/* ep->transport, which is behind the endpoint */
struct vrb_ep {
	struct vrb_conn *conn;	/* NULL, or the attempt or connection. EP locked */
	struct vrb_conn *dying; /* detached, for ep_destroy */
};

static inline struct vrb_conn *vrb_conn_of(const struct core_ep *ep)
{
	return ((const struct vrb_ep *)(ep + 1))->conn; /* where ep->transport points */
}

int vrb_slots_create(struct vrb_adapter *adapter);
int vrb_slot_take(struct vrb_adapter *adapter, struct vrb_peer *object, uint32_t *key_out);
void vrb_slot_free_locked(struct vrb_adapter *adapter, uint32_t key);

/* A new one, with one reference for the caller and one for the table. */
int vrb_conn_create(struct vrb_adapter *adapter, enum vrb_state state, struct vrb_conn **conn_out);
void vrb_conn_get(struct vrb_conn *conn);
void vrb_conn_put(struct vrb_conn *conn);
/* The endpoint, locked, if the connection still is its connection. */
struct core_ep *vrb_conn_enter(struct vrb_conn *conn);
/* Unlocks it; whatever was done to its connection, which may be gone. */
void vrb_conn_leave(struct core_ep *ep);
/*
 * Sets or clears the provider's reasons against the fast path (enum core_ep_slow): at the end of
 * whatever may change what they follow from. EP locked.
 */
void vrb_review(struct core_ep *ep);
/* Ties it to the endpoint, which takes the caller's reference over; EP locked. */
void vrb_conn_attach(struct vrb_conn *conn, struct core_ep *ep);
/* Takes it off the endpoint: nobody finds the one by the other any more. EP locked. */
void vrb_conn_detach(struct vrb_conn *conn, struct core_ep *ep);
/* Waits for attempts whose end is under way; before the instance is closed. */
void vrb_conn_wait_reapers(struct vrb_adapter *adapter);
/* Ends what is left of it with the device, and drops the reference of its owner. */
void vrb_conn_destroy(struct vrb_conn *conn);
/* Ends those whose peers could not be told while the port was down; when it is up, and at the end.
 */
void vrb_conn_end_lingering(struct vrb_adapter *adapter);
/* attend() will be called for it at that time; 0: at once. */
void vrb_conn_at(struct vrb_conn *conn, uint64_t when_ns);
/* The connections that are due, one after the other, each with a reference; NULL: no more. */
struct vrb_conn *vrb_conn_next_due(struct vrb_adapter *adapter, uint64_t now_ns);
/* Every connection, to be looked at now. */
void vrb_conn_all_due(struct vrb_adapter *adapter);

/* Queue pair: made for the attributes of the endpoint (EP locked). */
int vrb_qp_create(struct vrb_conn *conn, struct core_ep *ep);
/* Another one, under another key, after a failed attempt. */
int vrb_qp_renew(struct vrb_conn *conn, struct core_ep *ep);
int vrb_qp_to_init(struct vrb_conn *conn, struct core_ep *ep);
int vrb_qp_to_send(struct vrb_conn *conn, uint32_t read_in, uint32_t read_out);

/* The connection stands. */
void vrb_conn_established(struct vrb_conn *conn, struct core_ep *ep);
/* The set-up failed: everything is given back, then the core is told. */
void vrb_conn_fail(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);
/* Starts to end an established connection. */
void vrb_conn_close(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER why);
/* The device flushes the queue pair, or takes nothing any more, and nobody has asked for it. */
void vrb_conn_flushed(struct vrb_conn *conn, struct core_ep *ep);
/* Tells the core when nothing is left in the queues, or is_forced. */
void vrb_conn_try_finish(struct vrb_conn *conn, struct core_ep *ep, bool is_forced);
/* Something happened without a word why: asks the queue pair. */
bool vrb_conn_is_broken(const struct vrb_conn *conn);

/* --- the fast path (fast.c): that of core/ep/data_path.h --- */

/* The queue pair is made, and the key is the connection's. */
void vrb_fast_prepare(struct vrb_conn *conn);

/* --- the general path (post.c); EP locked, cancellation is off unless said otherwise --- */

/* A post was refused: the connection fails. */
void vrb_refused(struct vrb_conn *conn, struct core_ep *ep, int rc);
void vrb_recv_refused(struct vrb_conn *conn, struct core_ep *ep, int rc);

void vrb_post_send(struct vrb_conn *conn, struct core_ep *ep);
void vrb_post_recv(struct vrb_conn *conn, struct core_ep *ep);
/* transport_ops: with cancellation as it is, and whether or not there is a connection. */
void vrb_post_request(struct core_ep *ep, struct core_req *req);
void vrb_posted_recv(struct core_ep *ep);
/* What a completion of the connection's queue pair means. */
void vrb_completion(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);
/* What was kept until the connection stands. */
void vrb_completions_early(struct vrb_conn *conn, struct core_ep *ep);
DAT_DTO_COMPLETION_STATUS vrb_status(enum ibv_wc_status status);

/* Work of our own, which costs a place: everything before it is done when it is. */
void vrb_post_marker(struct vrb_conn *conn, struct core_ep *ep, enum ibv_wr_opcode opcode);

/* --- memory windows (window.c) --- */

/* Are they to be used, by what the device has and what was set? */
void vrb_windows_choose(struct vrb_adapter *adapter, const struct ibv_device_attr *device);
const char *vrb_windows_text(const struct vrb_adapter *adapter,
			     const struct ibv_device_attr *device);
/* Those that wait for a bind; the zone goes. */
void vrb_windows_free(struct vrb_pz *pz);
int vrb_rmr_key_create(struct core_ep *ep, const struct transport_window *asked, void **key_out,
		       uint32_t *rkey_out);
bool vrb_rmr_key_retire(struct core_ep *ep, void *key);
void vrb_rmr_key_activate(struct core_ia *ia, void *key);
bool vrb_rmr_key_revoke(struct core_ia *ia, void *key);
void vrb_rmr_key_destroy(struct core_ia *ia, void *key);
/* Is nothing of its bind under way? */
bool vrb_window_is_ready(const struct vrb_window *window);
/* The position behind its bind; 0: it needed no work request. */
uint64_t vrb_window_end(const struct vrb_window *window);
/* Its bind has succeeded. EP locked. */
void vrb_window_bound(struct vrb_window *window);
/* Another endpoint's bind holds up this one's, or not any more. EP locked, or gone. */
void vrb_window_blocked(struct vrb_conn *conn, bool is_blocked);
/* Tries again those that are held up. No lock held. */
void vrb_windows_again(struct vrb_adapter *adapter);
/* What the connection was unbinding, if anything, is unbound, or not known to be. EP locked, or
 * gone. */
void vrb_window_retired(struct vrb_conn *conn, bool is_good);

/* --- what only iWARP needs (iwarp.c); EP locked --- */

/* ibv_post_send, without the signal that it may raise. */
int vrb_siw_post(struct vrb_conn *conn, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* Passive side: has the peer to confirm? */
bool vrb_confirm_is_needed(const struct vrb_conn *conn, const struct core_ep *ep);
/* Posts the Receive for it, before any other. */
int vrb_confirm_expect(struct vrb_conn *conn);
/* Active side: the message, and what may be needed behind it; when the connection stands, and due.
 */
void vrb_confirm(struct vrb_conn *conn, struct core_ep *ep);
void vrb_confirm_again(struct vrb_conn *conn, struct core_ep *ep);
/* The completion of the Receive. */
void vrb_confirm_came(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc);

/* --- shared receive queues (srq.c) --- */

/* core_srq.transport */
struct vrb_srq {
	struct vrb_peer peer; /* first */
	struct core_ref ref;
	uint32_t key;
	struct ibv_srq *srq;
	uint32_t size;
	uint32_t posted; /* in the device's queue. SRQ locked */
};

int vrb_srq_create(struct core_srq *srq);
void vrb_srq_destroy(struct core_srq *srq);
int vrb_srq_post(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe);
/* Is it the key of a live SRQ? */
bool vrb_srq_is_key(struct vrb_adapter *adapter, uint32_t key, struct core_ref *ref_out);
/* The device has one buffer less. */
void vrb_srq_taken(struct core_ref ref);
/* Connections by the number of their queue pair. */
void vrb_qpn_add(struct vrb_conn *conn);
void vrb_qpn_remove(struct vrb_conn *conn);
struct vrb_conn *vrb_qpn_find(struct vrb_adapter *adapter, uint32_t qp_num);

/* --- set-up (setup.c, listen.c) --- */

int vrb_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener_out);
void vrb_unlisten(struct core_ia *ia, void *listener);
int vrb_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		DAT_TIMEOUT timeout_us, const struct transport_conn_param *param);
/* From now on the request keeps its identifier; before it is answered. */
void vrb_answered(struct vrb_conn *conn);
int vrb_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void vrb_reject(void *request, enum transport_reject why);

/* A copy of what librdmacm told. */
struct vrb_cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[VRB_PRIVATE_ROOM + 1];
	uint32_t size;
};

/* What it means to the connection; no lock held. */
void vrb_setup_event(struct vrb_conn *conn, const struct vrb_cm_event *event);
/* Its deadline has passed; EP locked. */
void vrb_setup_due(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns);
struct vrb_listener;
void vrb_listener_get(struct vrb_listener *listener);
void vrb_listener_put(struct vrb_listener *listener);
/* A request; `conn` is new, with one reference for the core or for nobody. */
void vrb_listener_event(struct vrb_listener *listener, const struct vrb_cm_event *event,
			struct vrb_conn *conn);

/* --- the service thread (service.c) --- */

int vrb_service_start(struct vrb_adapter *adapter);
void vrb_service_stop(struct vrb_adapter *adapter);
void vrb_kick(struct vrb_adapter *adapter);

#endif
