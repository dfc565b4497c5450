// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several clients of dat_perf at once (--clients). The server divides itself into as many
 * processes, its seats, each of which is a server with a qualifier of its own, before it opens the
 * adapter. Then it listens, and sends each client to a free seat. The runs of all clients begin
 * together.
 */
#ifndef TOOLS_PERF_CROWD_H
#define TOOLS_PERF_CROWD_H

#include "perf.h"

#define PERF_CLIENTS_LIMIT 64u

/* The seat of this process; NULL: it serves alone. */
struct perf_seat;

/* Serves up to options->clients clients at a time. Returns the exit status. */
int perf_crowd_run(const struct perf_options *options);

/* The seat listens there. */
void perf_seat_open(struct perf_seat *seat, DAT_CONN_QUAL qualifier);
/* A client has come to the seat, or has gone. */
void perf_seat_take(struct perf_seat *seat);
void perf_seat_leave(struct perf_seat *seat);
/*
 * Waits until all clients that are expected have asked for a run: as many as there are seats, after
 * the first run those that are still there. -EINTR, or -ETIMEDOUT after a message.
 */
int perf_seat_wait(struct perf_seat *seat, uint32_t timeout_ms);
/* Adds what the client has transferred in the run. The last one prints the sum. */
void perf_seat_report(struct perf_seat *seat, const struct perf_run *run, uint64_t count);

#endif
