// SPDX-License-Identifier: BSD-2-Clause
/*
 * The seam between the uDAPL objects (src/core) and what moves the bytes (src/soft, src/verbs):
 * one table of operations down, one set of calls up. docs/transports.md shows, slot by slot, what
 * each transport does there.
 *
 * Conventions. Operations return 0 or a negative errno; the core translates (one place:
 * core_status_from_errno). Unless a slot says otherwise an operation does not block, and buffers
 * passed to it belong to the caller again when it returns. "EP locked" means that the caller holds
 * the endpoint's lock (that of ep->cell) and keeps it. A transport's own locks are leaves (rank 9
 * of lock.h): it calls up with none of them held.
 *
 * progress and the slots of the data path come with thread cancellation as the consumer has it: a
 * system call that may be a cancellation point is kept from being one (cancel.h).
 *
 * Two tiers carry data: the fast path (data_path.h) does what takes no more than straight code, and
 * what it declines goes the general path, by the slots here. Both keep the same counters. A
 * transport says by the endpoint's slow_reasons (ep.h) when its fast path must not be entered.
 *
 * A transport's thread that has something for an endpoint locks it by core_ep_enter() with the
 * reference it was given, and must expect NULL: the endpoint is gone.
 */
#ifndef CORE_TRANSPORT_OPS_H
#define CORE_TRANSPORT_OPS_H

#include "core/base/handle.h"
#include "core/base/instance.h"
#include "core/base/transport_param.h"
#include "core/base/waker.h"

struct core_ep;
struct core_lmr;
struct core_pz;
struct core_req;
struct core_srq;
struct core_wqe;

struct transport_ops {
	const char *name; /* "soft", "verbs" */

	/* --- adapter --- */

	/*
	 * Opens the adapter ia->device with ia->settings: fills ia->address, ia->attr (all limits
	 * and names but adapter_name), ia->provider_attr as far as it differs from the core's
	 * defaults, objects[].max, and ia->transport. May block. -ENODEV: no such device; -ENOMEM,
	 * -EMFILE.
	 */
	int (*ia_open)(struct core_ia *ia);
	/* Closes it: every object is destroyed already. Joins the transport's threads (unless
	 * called from one of them). Nothing of the transport touches `ia` after the return. May
	 * block. */
	void (*ia_close)(struct core_ia *ia);
	/*
	 * Does what can be done now for the connections of this adapter (a polling thread drives
	 * its own connections). No core lock held. Returns > 0 when something happened.
	 */
	int (*progress)(struct core_ia *ia);
	/*
	 * The calling thread stops polling and goes to sleep: from now on the transport's own
	 * thread (or the device) must notice whatever arrives, and call up. Returns > 0 when
	 * something arrived meanwhile and progress() should be called again. No core lock held.
	 * Also called for a consumer who was told of events by an agent or a descriptor and has
	 * taken them all: it sleeps somewhere else.
	 */
	int (*arm)(struct core_ia *ia);
	/*
	 * For a thread that has armed: a word that a peer rings, so that it can wake this thread
	 * itself. sleep_begin sets sleep->bell and ->seen, its value before
	 * the last look, or leaves the bell NULL: sleep elsewhere. The thread then sleeps while the
	 * bell has that value, and other threads of ours that have something for it ring, too
	 * (waker.h). sleep_end comes in any case where there is a bell, and does what has arrived.
	 * No core lock held.
	 */
	void (*sleep_begin)(struct core_ia *ia, struct core_sleep *sleep);
	void (*sleep_end)(struct core_ia *ia, struct core_sleep *sleep);

	/* --- memory --- */

	/* pz->transport is the transport's (verbs: the protection domain). */
	int (*pz_create)(struct core_ia *ia, struct core_pz *pz);
	void (*pz_destroy)(struct core_ia *ia, struct core_pz *pz);
	/*
	 * Registers address/length/priv/pz of the LMR; sets lmr->transport and lmr->rkey (not 0; in
	 * use by no other live region; a stale one does not become valid again soon). The region
	 * must be known to peers when the call returns. priv has local bits too: a transport whose
	 * peers fetch large Sends themselves checks LOCAL_READ there. The range is mapped; memory
	 * that is not writable as priv wants it is refused here (-EFAULT) or when it is used
	 * (LMR-CREATE-23). -ENOMEM, -ENOSPC.
	 * Work does not grow with the length on the soft transports (LMR-CREATE-63).
	 */
	int (*lmr_create)(struct core_ia *ia, struct core_lmr *lmr);
	/*
	 * Ends all access by peers through lmr->rkey. When it returns no byte of the region is read
	 * or written by a peer any more; later arrivals fail with REMOTE_ACCESS. No lock held; may
	 * block for settings.peer_timeout_ms when a peer is stopped in the middle of a copy, and
	 * then breaks that connection. (Local use by posted operations is the core's business:
	 * core_mem_revoke.)
	 */
	void (*lmr_destroy)(struct core_ia *ia, struct core_lmr *lmr);

	/* --- endpoint --- */

	/* Bytes that the transport has behind each struct core_ep: zeroes, freed with it. */
	size_t ep_size;
	/* Makes the transport's side of a new endpoint (state UNCONNECTED; attributes and EVDs may
	 * still be changed by dat_ep_modify until it connects). Sets ep->transport. */
	int (*ep_create)(struct core_ep *ep);
	/*
	 * First half of dat_ep_free (and of an abrupt dat_ia_close), EP locked, any state: from the
	 * return on the transport raises nothing for this endpoint. Starts to end the connection as
	 * an abrupt disconnect does: the peer gets DISCONNECTED (or its set-up fails). May be
	 * called again.
	 */
	void (*ep_detach)(struct core_ep *ep);
	/*
	 * Second half, no lock held, the handle is dead: when it returns neither this process nor
	 * the peer touches memory through the endpoint. Frees ep->transport. May block only for a
	 * peer that is stopped in the middle of a direct copy, settings.peer_timeout_ms at most.
	 */
	void (*ep_destroy)(struct core_ep *ep);

	/* --- service points --- */

	/*
	 * Listens on *qual (0: choose a free one in 1024..65535 that is unique on the host and
	 * store it). Requests are told by core_sp_request(sp, ...), possibly before the call
	 * returns. May block briefly. -EADDRINUSE: somebody listens there; -EADDRNOTAVAIL: none is
	 * left (0 only).
	 */
	int (*listen)(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual,
		      void **listener_out);
	/* Stops listening; the qualifier is free again at return. Requests whose core_sp_request()
	 * was not called yet are refused as if nobody listened. May be called with the SP locked.
	 */
	void (*unlisten)(struct core_ia *ia, void *listener);

	/* --- connection --- */

	/*
	 * EP locked, state ACTIVE_CONNECTION_PENDING. Starts to connect to (address, qualifier);
	 * the port in the address is ignored. Sets ep->local_port (not 0). The result comes by
	 * core_ep_established or core_ep_connect_failed, exactly one, also when the timeout
	 * (microseconds, DAT_TIMEOUT_INFINITE: none) ends. Never calls up from inside the call.
	 * -EAFNOSUPPORT (unknown family), -EADDRNOTAVAIL (broadcast, multicast): no attempt is
	 * made.
	 */
	int (*connect)(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		       DAT_TIMEOUT timeout_us, const struct transport_conn_param *param);
	/*
	 * EP locked, state COMPLETION_PENDING. Accepts the request. Takes the request object over
	 * on success only. Ends in core_ep_established or core_ep_accept_failed (also when the
	 * other side has given up, and at settings.setup_timeout_ms). Sets ep->local_port.
	 */
	int (*accept)(void *request, struct core_ep *ep, const struct transport_conn_param *param);
	/* Refuses the request and destroys its object. Any locks may be held. */
	void (*reject)(void *request, enum transport_reject why);
	/*
	 * EP locked, state ACTIVE_CONNECTION_PENDING, COMPLETION_PENDING, CONNECTED or
	 * DISCONNECT_PENDING. Abrupt: ends the attempt or connection now; requests not started are
	 * left for core_ep_ended to flush. Graceful (CONNECTED only): first finishes all posted
	 * requests; an abrupt call may follow. The end is told by core_ep_ended(DISCONNECTED), from
	 * inside this call or later, within 1 s when abrupt, whatever the peer does (peer stopped
	 * in the middle of a direct copy: settings.peer_timeout_ms), and only when no access by the
	 * peer is left.
	 */
	void (*disconnect)(struct core_ep *ep, bool is_graceful);
	/* EP locked, state DISCONNECTED: forgets the old connection; the EP may connect at once. */
	void (*reset)(struct core_ep *ep);

	/* --- data --- */

	/*
	 * EP locked, state CONNECTED. A request was added to ep->req (the last one). Carries it
	 * out, now or later, in the order rules of docs/spec/transfers.md, without further calls of
	 * the consumer. Ends by core_req_done(), from inside the call or later. Never fails: errors
	 * show in the completion. No allocation. Copying inside the call is bounded (1 MiB).
	 */
	void (*post_request)(struct core_ep *ep, struct core_req *req);
	/* EP locked, any state but DISCONNECTED. A Receive was added to ep->recv, or the SRQ of an
	 * endpoint whose message waits has a buffer for it. */
	void (*post_recv)(struct core_ep *ep);
	/*
	 * EP locked, state CONNECTED or DISCONNECT_PENDING. Breaks the connection as an error does;
	 * the end is told by core_ep_ended(BROKEN), later. May be called from inside
	 * core_recv_next().
	 */
	void (*abort)(struct core_ep *ep);
	/* Calls core_srq_serve_all() soon, in a thread that holds no lock. Any locks may be held.
	 */
	void (*kick)(struct core_ia *ia);

	/* --- shared receive queues: stubs below where the core hands the buffers out --- */

	/*
	 * Makes the device's queue for the SRQ and sets srq->transport; or leaves that NULL, and
	 * the core hands buffers out one by one (core_recv_next). -ENOMEM, -EOPNOTSUPP.
	 */
	int (*srq_create)(struct core_srq *srq);
	/* No endpoint is tied to it any more. No lock held. */
	void (*srq_destroy)(struct core_srq *srq);
	/*
	 * SRQ locked: the buffer may be filled by a message of any of its endpoints. Not 0: the
	 * device's queue is full, asked again when a buffer was taken. A message in it is told by
	 * core_srq_taken() and then core_recv_done().
	 */
	int (*srq_post)(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe);

	/* --- memory windows: stubs below where a transport lacks them --- */

	/*
	 * Keys of memory windows. create: for part of an LMR, in its zone, inactive; EP locked,
	 * whose next request is the bind, so that what the bind needs may be posted already.
	 * activate: live, also after a revoke. revoke: stale from now on; true when no peer touches
	 * memory through it any more (asked again until then; a peer that is stopped in the middle
	 * of a copy for settings.peer_timeout_ms loses its connection and does not count). destroy:
	 * frees a key that was never live or for which revoke was true. None of them blocks; locks
	 * of rank 3 and 6 may be held. A transport that has these carries out each request of
	 * CORE_OP_BIND by core_bind_run().
	 */
	int (*rmr_key_create)(struct core_ep *ep, const struct transport_window *window,
			      void **key_out, uint32_t *rkey_out);
	/*
	 * Starts to make a key stale, behind what the endpoint has posted and before what
	 * it posts next; revoke() is then true when that is done. False: left to revoke() alone.
	 * EP locked.
	 */
	bool (*rmr_key_retire)(struct core_ep *ep, void *key);
	void (*rmr_key_activate)(struct core_ia *ia, void *key);
	bool (*rmr_key_revoke)(struct core_ia *ia, void *key);
	void (*rmr_key_destroy)(struct core_ia *ia, void *key);
};

/* Stubs for what a transport lacks: -EOPNOTSUPP, or nothing to do. */
void transport_no_sleep_begin(struct core_ia *ia, struct core_sleep *sleep);
void transport_no_sleep_end(struct core_ia *ia, struct core_sleep *sleep);
bool transport_no_rmr_key_retire(struct core_ep *ep, void *key);
int transport_no_rmr_key_create(struct core_ep *ep, const struct transport_window *window,
				void **key_out, uint32_t *rkey_out);
void transport_no_rmr_key(struct core_ia *ia, void *key);
bool transport_no_rmr_key_revoke(struct core_ia *ia, void *key);

int transport_no_srq_create(struct core_srq *srq);
void transport_no_srq_destroy(struct core_srq *srq);
int transport_no_srq_post(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe);

/* What a provider library defines once: its transport, used by src/core/ia/provider.c. */
extern const struct transport_ops *const transport_this;

#endif
