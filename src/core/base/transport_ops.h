// SPDX-License-Identifier: BSD-2-Clause
/*
 * The interface between the uDAPL objects (src/core) and the transports that move the bytes
 * (src/soft, src/verbs): one table of operations down, one set of calls up (core/transport.h).
 * docs/transports.md says, slot by slot, what each transport does.
 *
 * Conventions. Operations return 0 or a negative errno, which core_status_from_errno() translates.
 * Unless a slot says otherwise an operation does not block, and buffers passed to it belong to the
 * caller again when it returns. "EP locked" means that the caller holds the endpoint's lock (that
 * of ep->cell) and keeps it. A transport's own locks are leaves (rank 9 of lock.h): it holds none
 * of them when it calls up.
 *
 * The core calls progress and the slots of the data path without disabling thread cancellation.
 * They must protect every system call that may be a cancellation point (cancel.h).
 *
 * Data takes the fast path (data_path.h), which handles the common case in straight code, or the
 * slow path, through the slots here. Both update the same counters. A transport sets slow_reasons
 * of an endpoint (ep.h) while its fast path must not be entered.
 *
 * A transport's thread that has work for an endpoint locks it by core_ep_enter() with the reference
 * it was given. NULL: the endpoint was freed.
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
	 * Opens the adapter ia->device with ia->settings. Fills ia->address, ia->attr (all limits
	 * and names but adapter_name), ia->provider_attr where it differs from the core's defaults,
	 * and ia->transport. If ia->is_query, starts no thread, and nothing but ia_close follows.
	 * May block. -ENODEV: no such device; -ENOMEM, -EMFILE.
	 */
	int (*ia_open)(struct core_ia *ia);
	/* Closes the adapter. Every object has been destroyed. Joins the transport's threads,
	 * unless one of them is the caller. After the return the transport does not access `ia`.
	 * May block. */
	void (*ia_close)(struct core_ia *ia);
	/*
	 * Makes progress on the connections of this adapter without waiting. A polling thread
	 * drives its own connections this way. No core lock held. Returns > 0 if there was work.
	 */
	int (*progress)(struct core_ia *ia);
	/*
	 * The calling thread is about to stop polling and sleep. From now on the transport's own
	 * thread (or the device) must notice what arrives, and call up. Returns > 0 if something
	 * arrived meanwhile; the caller should then call progress() again. No core lock held. Also
	 * called on behalf of a consumer that is notified by an agent or a descriptor, when it has
	 * dequeued all events: it sleeps outside the library.
	 */
	int (*arm)(struct core_ia *ia);
	/*
	 * For a thread that has armed: lends it a bell, a futex word that a peer can ring to wake
	 * this thread directly (waker.h). sleep_begin sets sleep->bell, and sleep->seen to the
	 * value of the bell before the last check for work; or it leaves the bell NULL, and the
	 * thread sleeps on a semaphore. The thread sleeps while the bell has the value `seen`.
	 * Other threads of this process ring the bell to wake it, too. If there is a bell,
	 * sleep_end is always called, and processes what has arrived. No core lock held.
	 */
	void (*sleep_begin)(struct core_ia *ia, struct core_sleep *sleep);
	void (*sleep_end)(struct core_ia *ia, struct core_sleep *sleep);

	/* --- memory --- */

	/* pz->transport belongs to the transport (verbs: the protection domain). */
	int (*pz_create)(struct core_ia *ia, struct core_pz *pz);
	void (*pz_destroy)(struct core_ia *ia, struct core_pz *pz);
	/*
	 * Registers address/length/priv/pz of the LMR. Sets lmr->transport and lmr->rkey. The rkey
	 * is not 0 and not that of another live region, and a stale rkey is not reused soon. Peers
	 * must be able to use the region when the call returns. priv also contains the local bits:
	 * if peers fetch large Sends themselves, the transport checks LOCAL_READ for them. The
	 * range is mapped. If priv requires write access and the memory is not writable, this call
	 * fails with -EFAULT or the access fails later (LMR-CREATE-23). -ENOMEM, -ENOSPC. On the
	 * soft transports the cost does not depend on the length (LMR-CREATE-63).
	 */
	int (*lmr_create)(struct core_ia *ia, struct core_lmr *lmr);
	/*
	 * Ends all access by peers through lmr->rkey. After the return no peer reads or writes any
	 * byte of the region; later accesses fail with REMOTE_ACCESS. No lock held. May block for
	 * settings.peer_timeout_ms if a peer is stopped during a copy, and then breaks that
	 * connection. Local use by posted operations is up to the core (core_mem_revoke).
	 */
	void (*lmr_destroy)(struct core_ia *ia, struct core_lmr *lmr);

	/* --- endpoint --- */

	/* Size of the transport's data behind each struct core_ep. Zeroed, freed with it. */
	size_t ep_size;
	/* Creates the transport's part of a new endpoint. Its state is UNCONNECTED; dat_ep_modify
	 * may change attributes and EVDs until it connects. Sets ep->transport. */
	int (*ep_create)(struct core_ep *ep);
	/*
	 * First half of dat_ep_free and of an abrupt dat_ia_close. EP locked, any state. After the
	 * return the transport reports nothing for this endpoint. Starts to end the connection as
	 * an abrupt disconnect does: the peer gets DISCONNECTED, or its set-up fails. May be called
	 * again.
	 */
	void (*ep_detach)(struct core_ep *ep);
	/*
	 * Second half. No lock held, the handle is dead. After the return neither this process nor
	 * the peer accesses memory through the endpoint. Frees ep->transport. Blocks only for a
	 * peer that is stopped during a direct copy, for at most settings.peer_timeout_ms.
	 */
	void (*ep_destroy)(struct core_ep *ep);

	/* --- service points --- */

	/*
	 * Listens on *qual. If it is 0, chooses a free one in 1024..65535 that is unique on the
	 * host, and stores it. Requests are reported by core_sp_request(sp, ...), possibly before
	 * this call returns. The SP is locked, so this call must not wait. -EADDRINUSE: another
	 * listener has the qualifier; -EADDRNOTAVAIL: none is free (0 only); -EBUSY: one may be
	 * free soon, and the core calls again for at most half a second.
	 */
	int (*listen)(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual,
		      void **listener_out);
	/* Stops listening. The qualifier is free at return. Requests that were not yet reported by
	 * core_sp_request() are rejected as if there were no listener. The SP may be locked. */
	void (*unlisten)(struct core_ia *ia, void *listener);

	/* --- connection --- */

	/*
	 * EP locked, state ACTIVE_CONNECTION_PENDING. Starts to connect to (address, qualifier);
	 * the port in the address is ignored. Sets ep->local_port (not 0). Exactly one of
	 * core_ep_established and core_ep_connect_failed reports the result, also when the timeout
	 * (microseconds; DAT_TIMEOUT_INFINITE: none) expires. Never calls up from inside the call.
	 * No attempt is made for -EAFNOSUPPORT (unknown family), -EADDRNOTAVAIL (broadcast,
	 * multicast), and -EDOM (a qualifier that cannot be asked for).
	 */
	int (*connect)(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		       DAT_TIMEOUT timeout_us, const struct transport_conn_param *param);
	/*
	 * EP locked, state COMPLETION_PENDING. Accepts the request. Takes ownership of the request
	 * object on success only. Either core_ep_established or core_ep_accept_failed reports the
	 * result; the latter also when the peer has given up, or after settings.setup_timeout_ms.
	 * Sets ep->local_port.
	 */
	int (*accept)(void *request, struct core_ep *ep, const struct transport_conn_param *param);
	/* Rejects the request and destroys its object. The private data, of size 0 unless the
	 * consumer rejects, go to a peer that can take them. Any lock may be held. */
	void (*reject)(void *request, enum transport_reject why, const void *private_data,
		       uint32_t size);
	/*
	 * EP locked, state ACTIVE_CONNECTION_PENDING, COMPLETION_PENDING, CONNECTED or
	 * DISCONNECT_PENDING. Abrupt: ends the attempt or connection now; core_ep_ended flushes the
	 * requests that were not started. Graceful (CONNECTED only): first finishes all posted
	 * requests; an abrupt call may follow. core_ep_ended(DISCONNECTED) reports the end, from
	 * inside this call or later, once the peer cannot access memory any more. An abrupt end is
	 * reported within 1 s whatever the peer does, or within settings.peer_timeout_ms if the
	 * peer is stopped during a direct copy. The transport has released the connection when it
	 * reports the end: the EP may connect at once after dat_ep_reset.
	 */
	void (*disconnect)(struct core_ep *ep, bool is_graceful);
	/*
	 * Which process is at the other end of a connection (EP locked, state CONNECTED or
	 * DISCONNECT_PENDING), or of a request (ep NULL, CR locked)? Fills every member. May read
	 * files of the system. -ENOTCONN: the connection has just ended; -EOPNOTSUPP (stub below).
	 */
	int (*peer)(struct core_ep *ep, void *request, struct transport_peer *peer_out);

	/* --- data --- */

	/*
	 * EP locked, state CONNECTED. A request was appended to ep->req. Executes it, now or later,
	 * under the ordering rules of docs/spec/transfers.md, without needing further calls by the
	 * consumer. Completes it by core_req_done(), from inside the call or later. Never fails:
	 * the completion reports errors. Allocates nothing. Copies at most 1 MiB inside the call.
	 */
	void (*post_request)(struct core_ep *ep, struct core_req *req);
	/* EP locked, any state but DISCONNECTED. Called after a Receive was appended to ep->recv,
	 * and when the SRQ has a buffer for a message of the endpoint that waits for one. */
	void (*post_recv)(struct core_ep *ep);
	/*
	 * EP locked, any state. Finds what has finished for this endpoint, where progress() may
	 * leave that to a later call. May report the end of the connection.
	 */
	void (*progress_ep)(struct core_ep *ep);
	/*
	 * EP locked, state CONNECTED or DISCONNECT_PENDING. Breaks the connection as an error does.
	 * core_ep_ended(BROKEN) reports the end, later. May be called from inside core_recv_next().
	 */
	void (*abort)(struct core_ep *ep);
	/* Has core_srq_serve_all() called soon, by a thread that holds no lock. Any lock may be
	 * held. */
	void (*kick)(struct core_ia *ia);

	/* --- shared receive queues: stubs (transport_stubs.h) if the core gives out the buffers --- */

	/*
	 * Creates the device's queue for the SRQ and sets srq->transport. A transport that leaves
	 * it NULL has the core hand out the buffers one by one (core_recv_next). -ENOMEM,
	 * -EOPNOTSUPP.
	 */
	int (*srq_create)(struct core_srq *srq);
	/* No endpoint uses it any more. No lock held. */
	void (*srq_destroy)(struct core_srq *srq);
	/*
	 * SRQ locked. Posts the buffer to the device: a message of any endpoint of the SRQ may fill
	 * it. Not 0: the device's queue is full; the core tries again when a buffer was consumed.
	 * core_srq_filled() and then core_recv_done() report a message in the buffer.
	 */
	int (*srq_post)(struct core_srq *srq, uint32_t index, const struct core_wqe *wqe);

	/* --- memory windows: stubs (transport_stubs.h) if the transport has none --- */

	/*
	 * None of these slots blocks; locks of rank 3 and 6 may be held. A transport that has them
	 * executes each request of CORE_OP_BIND by core_bind_run().
	 */
	/*
	 * Makes an inactive key for part of an LMR, in its zone. EP locked. The endpoint's next
	 * request is the bind, so the transport may already post what the bind needs.
	 */
	int (*rmr_key_create)(struct core_ep *ep, const struct transport_window *window,
			      void **key_out, uint32_t *rkey_out);
	/*
	 * Starts to make a key stale, ordered after the requests that the endpoint has posted and
	 * before its next one. revoke() returns true when that is done. False: not started; the
	 * core uses revoke() alone. EP locked.
	 */
	bool (*rmr_key_retire)(struct core_ep *ep, void *key);
	/* Makes the key live, also after a revoke. */
	void (*rmr_key_activate)(struct core_ia *ia, void *key);
	/*
	 * Makes the key stale. Returns true once no peer accesses memory through it; the core calls
	 * it again until then. A peer that is stopped during a copy for settings.peer_timeout_ms
	 * loses its connection and is no longer waited for.
	 */
	bool (*rmr_key_revoke)(struct core_ia *ia, void *key);
	/* Frees a key that was never live, or for which revoke returned true. */
	void (*rmr_key_destroy)(struct core_ia *ia, void *key);
};

/* Defined once in each provider library: its transport. */
extern const struct transport_ops *const transport_this;

#endif
