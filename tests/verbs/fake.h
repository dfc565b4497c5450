// SPDX-License-Identifier: BSD-2-Clause
/*
 * A stand-in for libibverbs and librdmacm, which the provider is linked with in place of the real
 * libraries. It is one device inside the process, whose queue pairs reach one another and nothing
 * else. Transfers are carried out when they are posted, as far as their order and posted Receives
 * allow. Keys, bounds, domains and privileges are checked as a device does. A memory window is
 * bound as soon as the bind is posted, in front of requests that wait, and completes in order, as
 * on fast devices.
 *
 * Faults: calls that can fail are counted. fake_fail_at(n) makes the n-th one from now on fail.
 */
#ifndef TESTS_VERBS_FAKE_H
#define TESTS_VERBS_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Size of the largest message: of port 1 half of this, of port 2 a quarter. */
#define FAKE_MESSAGE_MAX (1u << 31)

/* 0: none. */
void fake_fail_at(unsigned call);
/* The next call of that name fails. */
void fake_fail_next(const char *call);
/* The error that the next call fails with; 0: the default of that call. */
void fake_fail_with(int error);
/* The name of the call that has failed since; NULL: none. */
const char *fake_failed(void);
/* The number of objects of all kinds that exist. */
int fake_live(void);

/*
 * The device is iWARP: messages cannot wait for Receives, and there is no connection response.
 * Before it is first opened.
 */
void fake_be_iwarp(bool is_iwarp);
/*
 * Requests and answers carry these bytes, as those of a foreign peer do, as far as the connection
 * manager has room for them; NULL: what the provider gives. The bytes stay the caller's.
 */
void fake_be_foreign(const void *data, uint8_t size);
/* Raises an event of the device or of the queue pair. */
void fake_async(enum ibv_event_type type, struct ibv_qp *qp);
/* The port goes down or comes up, with an event. Transfers go on all the same. */
void fake_port(bool is_up);
/*
 * After the return no event of the device is delivered, and a thread that asks for one waits. That
 * is the provider's own thread: it does nothing until it is released.
 */
void fake_hold(bool is_holding);
/* The device is removed: every connection gets an event. */
void fake_remove(void);
/* The connection manager of every active side that waits times out. */
void fake_time_out(void);
/*
 * One side of the newest connection gets a reject, as when the passive side destroys its identifier
 * before the third message has arrived.
 */
void fake_reject_late(void);
/*
 * The next side that posts a request ends its connection right after it: the other side's event is
 * there before the post returns.
 */
void fake_leave_next(void);
/* Connection requests that were reported to a listener so far. */
unsigned fake_requests(void);
/* The next completion of an outgoing request carries that status instead of success. */
void fake_status(enum ibv_wc_status status);
/*
 * The next message arrives as an RDMA Write with immediate data, which only a foreign peer sends.
 */
void fake_write_next(void);
/* Like fake_status, for the next work request that unbinds a window. */
void fake_unbind_status(enum ibv_wc_status status);
/*
 * The device has memory windows of type 1, as it does by default, or not; is_rxe: it does not check
 * their bounds. Before it is opened.
 */
void fake_windows(bool has_windows, bool is_rxe);
/* The device has shared receive queues, as it does by default. Before it is opened. */
void fake_srqs(bool has_srqs);
/*
 * The oldest queue pair with an SRQ takes a buffer, as it does for the first packet of a message.
 * When the queue pair gets into the error state, the device flushes the buffer late: when it
 * reports that it has done so. It may take several.
 */
void fake_take_buffer(void);
/* The device does not report that, and flushes the buffer at once. */
void fake_silent_srqs(bool is_silent);
/* The same queue pair takes buffers for messages of length 8, which arrive at once. */
void fake_fill_buffers(unsigned count);
/* The device reports that the SRQ of that queue pair has failed. */
void fake_fail_srq(void);
/* Events of the device that the provider has not read. */
unsigned fake_unread_events(void);
/* Windows that exist; windows that are bound; work requests that have bound or unbound one. */
unsigned fake_mws(void);
unsigned fake_bound(void);
unsigned fake_binds(void);
/* The oldest queue pair that is connected, for fake_async. */
struct ibv_qp *fake_qp(void);
unsigned fake_posts(void);     /* work requests posted to send queues so far */
unsigned fake_doorbells(void); /* calls that posted them */
unsigned fake_fences(void);    /* work requests posted with a fence so far */
unsigned fake_inlines(void);   /* work requests posted with their data */
unsigned fake_solicited(void); /* those that ask for an event at the receiver */
/*
 * RDMA Reads start but move no data until they are released. Requests without fence are carried out
 * behind them, and complete after them. A fenced request waits, and so do those behind it.
 */
void fake_hold_reads(bool is_holding);
/* RDMA Reads that have started and are held back. */
unsigned fake_reads(void);
/* Posts and polls of this thread that were made with thread cancellation on. */
unsigned fake_cancellable(void);
/* The vendor ID of the device, from the next query on; 0: an unknown one. */
void fake_be_vendor(uint32_t vendor);
/* Posts of requests raise SIGPIPE in their thread, as siw's can. */
void fake_raise_pipe(bool is_raising);

#endif
