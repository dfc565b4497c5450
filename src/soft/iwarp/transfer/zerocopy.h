// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sending large payloads without a copy (MSG_ZEROCOPY). The kernel takes the bytes from the
 * consumer's memory while it transmits them, and again if they have to be sent again, and tells on
 * the error queue of the socket when it needs them no more. Until then:
 *
 * - A request does not complete (RDMAP-32), so the consumer leaves the memory alone.
 * - The headers and trailers between the payloads stay as they are. They are in one of several
 *   lists, which is free again when all its calls are done.
 * - dat_lmr_free waits for requests that use the region.
 * - Requests that fail must not complete either, because their memory could be used for something
 *   else, and its new content be sent.
 *
 * Whoever ends the connection waits for a limited time. Then TCP is reset, which makes the kernel
 * drop its queue. Packets that a device or a queueing discipline has already are sent all the same.
 * So there is a second wait for these notices. Each takes up to peer_timeout_ms, or less where the
 * program ends the connection. A request that fails at once, before its connection ends, waits for
 * a moment only.
 *
 * A call of sendmsg has the number by which the kernel counts it. The notices name ranges of these
 * numbers, and may come in any order. EP locked throughout.
 *
 * The kernel copies a packet that does not leave the host, but later than usual, which is slower.
 * So connections over the loopback interface do not use MSG_ZEROCOPY. On a veth pair the first
 * notice says that the kernel has copied, and the connection stops using it. zerocopy=on always
 * uses it.
 */
#ifndef IWARP_ZEROCOPY_H
#define IWARP_ZEROCOPY_H

#include "soft/iwarp/conn.h"

#define IW_ZEROCOPY_LEAST 65536u	   /* bytes of one message; fewer are copied as fast */
#define IW_ZEROCOPY_REFUSED_NS 1000000000u /* no further try, after the kernel has refused */
#define IW_ZEROCOPY_FAIL_NS 20000000u	   /* wait of a call whose request fails */
#define IW_ZEROCOPY_RELEASE_NS 100000000u  /* wait of a call that releases an endpoint */
#define IW_ZEROCOPY_ABRUPT_NS 400000000u   /* each wait of an abrupt disconnect: EP-DISC-40 */
#define IW_ZEROCOPY_LOOK_NS 1000000u	   /* from one look to the next, after the reset */

/* Does the kernel use memory of the consumer? */
static inline bool iw_zerocopy_is_pending(const struct iw_tx *tx)
{
	return tx->zerocopy.first != tx->zerocopy.next;
}

/* The position in the stream before which it uses none. */
static inline uint64_t iw_zerocopy_released(const struct iw_tx *tx)
{
	return iw_zerocopy_is_pending(tx)
		       ? tx->zerocopy.calls[tx->zerocopy.first % IW_ZEROCOPY_CALLS].begin
		       : tx->sent;
}

/* A stream begins; room for IW_ZEROCOPY_CALLS calls. */
void iw_zerocopy_init(struct iw_conn *conn, struct iw_zerocopy_call *calls);

/* --- sending (frame.c) --- */

/* FPDUs of a message of which so many bytes are left begin to wait: chooses their list, and whether
 * they are copied. */
void iw_zerocopy_begin(struct iw_conn *conn, uint64_t left);
/* May the next call of sendmsg for them do without the copy? */
bool iw_zerocopy_may_send(struct iw_conn *conn);
/* It did, from that position in the stream on. */
void iw_zerocopy_sent(struct iw_conn *conn, uint64_t begin);
/* The kernel has refused that call, and not the copy. */
void iw_zerocopy_refused(struct iw_conn *conn);

/* --- notices --- */

/* Takes the notices that have come. The caller then completes requests. */
void iw_zerocopy_read(struct iw_conn *conn);
/* May EPOLLERR mean that some have come? An error of a connection shows EPOLLHUP as well. */
static inline bool iw_zerocopy_is_on(const struct iw_conn *conn)
{
	return conn->stream.tx.zerocopy.is_on;
}

/* Waits for them until all have come, or that time. `is_end`: nothing that the peer sends is
 * needed. */
void iw_zerocopy_wait(struct iw_conn *conn, uint64_t end_ns, bool is_end);

/* --- the end --- */

/* An abrupt disconnect: the waits of the end are short from now on. */
void iw_zerocopy_hurry(struct iw_conn *conn);
/*
 * CLOSING: must the end of the connection wait? If so, an event of the socket or a deadline goes
 * on; `events`: what to wait for beside the notices.
 */
bool iw_zerocopy_must_wait(struct iw_conn *conn, uint32_t events);
/* A call of the consumer releases the connection: waits. */
void iw_zerocopy_release(struct iw_conn *conn);
/* Nothing more is sent: resets TCP if the kernel uses memory yet. The connection is lost then. */
void iw_zerocopy_end(struct iw_conn *conn);
/* The connection leaves its endpoint: no notice is expected any more. */
void iw_zerocopy_forget(struct iw_conn *conn);

/* The longest of these waits. */
static inline uint64_t iw_zerocopy_limit_ns(const struct iw_engine *engine)
{
	return engine->settings.peer_timeout_ms * UINT64_C(1000000);
}
/* The oldest request by which the kernel may send from the region of that local key; NULL: there is
 * none. */
struct core_req *iw_zerocopy_find(const struct iw_conn *conn, struct core_ep *ep, uint32_t key);

#endif
