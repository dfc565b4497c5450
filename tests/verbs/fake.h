// SPDX-License-Identifier: BSD-2-Clause
/*
 * A stand-in for libibverbs and librdmacm: one device inside the process, whose queue pairs reach
 * one another and nothing else. Transfers are carried out when they are posted, as far as order and
 * posted Receives allow; keys, bounds, domains and privileges are checked as a device does. The
 * provider is linked with it in place of the real libraries. Memory windows are bound as soon as
 * that is posted, in front of what waits, and completed in order, as fast devices do it.
 *
 * Faults: each call that can fail counts; fake_fail_at(n) makes the n-th from now fail.
 */
#ifndef TESTS_VERBS_FAKE_H
#define TESTS_VERBS_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Size of the largest message: of port 1 half of this, of port 2 a quarter. */
#define FAKE_MESSAGE_MOST (1u << 31)

/* 0: none. */
void fake_fail_at(unsigned call);
/* The next of that name fails, whatever others are made before. */
void fake_fail_next(const char *call);
/* The error that the next one fails with; 0: its usual one. */
void fake_fail_with(int error);
/* The name of the call that failed since; NULL: none. */
const char *fake_failed(void);
/* Objects of all kinds that exist. */
int fake_live(void);

/* The device as iWARP: no receiver-not-ready, no connection response. Before it is first used. */
void fake_be_iwarp(bool is_iwarp);
/* Raises an event of the device or of the queue pair. */
void fake_async(enum ibv_event_type type, struct ibv_qp *qp);
/* The port goes down, and comes again; each raises its event. What is posted moves all the same. */
void fake_port(bool is_up);
/* From the return on nobody hears of the device's events, and who asks for one waits. That is the
 * provider's own thread: it does nothing any more, whatever there is to do, until it is let go. */
void fake_hold(bool is_holding);
/* The device goes away: every connection is told. */
void fake_remove(void);
/* The connection manager of whoever asks for a connection now has waited long enough. */
void fake_time_out(void);
/* One side of the newest connection hears a reject, as when the accepting side destroys its
 * identifier before the asking one's third message has come. */
void fake_reject_late(void);
/* Connection requests that a listener was told of so far. */
unsigned fake_requests(void);
/* The next completion of an outgoing request carries that status instead of success. */
void fake_status(enum ibv_wc_status status);
/* The next message comes as an RDMA Write with immediate data, as only a foreign peer sends one. */
void fake_write_next(void);
/* The same as fake_status for the next work request that unbinds a window. */
void fake_unbind_status(enum ibv_wc_status status);
/* The device has memory windows of type 1, as it does unless told otherwise, and may be of a kind
 * that does not check their bounds. Before it is opened. */
void fake_windows(bool has_windows, bool is_rxe);
/* The device has shared receive queues, as it does by default. Before it is opened. */
void fake_srqs(bool has_srqs);
/* Windows that exist, those of them that are bound, and work requests that bound or unbound one so
 * far. */
unsigned fake_mws(void);
unsigned fake_bound(void);
unsigned fake_binds(void);
/* The oldest queue pair that is connected, for fake_async. */
struct ibv_qp *fake_qp(void);
/* Sends the connection manager's event to the id that has that queue pair's number. */
unsigned fake_posts(void);     /* work requests posted to send queues so far */
unsigned fake_doorbells(void); /* calls that posted them */
unsigned fake_fences(void);    /* work requests posted with a fence so far */
/* From now on RDMA Reads start but move no data until they are let go. What is not fenced is
 * carried out behind them and completes after them. A fenced request waits, and so do those behind
 * it. */
void fake_hold_reads(bool is_holding);
/* RDMA Reads that have started and are held. */
unsigned fake_reads(void);
/* How many of this thread's calls that post or poll came with thread cancellation on. */
unsigned fake_cancellable(void);
/* What the device calls itself, from the next query on; 0: what nobody knows. */
void fake_be_vendor(uint32_t vendor);
/* From now on each post of requests raises SIGPIPE in its thread, as siw's can. */
void fake_raise_pipe(bool is_raising);

#endif
