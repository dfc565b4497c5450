// SPDX-License-Identifier: BSD-2-Clause
/*
 * What dat_trace and libdat-check.so.1 agree on. dat_trace starts a program with these variables:
 *
 *   DAT_TRACE           text, json or count; empty or 0: no call is traced
 *   DAT_TRACE_FILE      where the lines go; not set: to standard error
 *   DAT_TRACE_CALLS     names and patterns of calls, separated by commas; not set: all
 *   DAT_TRACE_EPS       numbers of endpoints, separated by commas; not set: all calls
 *   DAT_TRACE_ADAPTER   the name of an adapter; not set: all
 *   DAT_TRACE_WIRE      the file for what was transferred; not set: none
 *   DAT_TRACE_COUNTS    the file with the counts, which every process maps
 */
#ifndef SHARED_TRACE_H
#define SHARED_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

#define OPENDAT_TRACE_MAGIC 0x0da77ace00000001u /* the number at the end is that of the layout */
#define OPENDAT_TRACE_CALLS 128u
#define OPENDAT_TRACE_EPS 1024u

struct opendat_trace_call {
	_Atomic uint64_t count, failed, ns;
};

struct opendat_trace_ep {
	_Atomic uint64_t key; /* the process << 32 | the number of the endpoint; 0: free */
	_Atomic uint64_t sends, writes, reads, binds, receives, failed;
	_Atomic uint64_t bytes_out, bytes_in;
};

/* The counts of all processes of one dat_trace: calls in the order of check/calls.h, and endpoints. */
struct opendat_trace_counts {
	uint64_t magic;
	struct opendat_trace_call calls[OPENDAT_TRACE_CALLS];
	struct opendat_trace_ep eps[OPENDAT_TRACE_EPS];
};

#endif
