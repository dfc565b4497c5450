// SPDX-License-Identifier: BSD-2-Clause
/*
 * The protocol of dat_perf. All numbers on the wire are big-endian.
 *
 * The client controls the run. Its hello carries the whole plan. One control connection carries
 * requests and answers; the other connections are measured and carry nothing else. For each test
 * and size the client sends
 *
 *   RUN       -> the server posts its Receives -> ANSWER
 *   (both sides transfer warm_up + count times per endpoint; without a count the client decides
 *   when it is over)
 *   STOP      for each worker, with the number of its transfers per endpoint -> ANSWER with the
 *             number of the server's own transfers and their time, if the run is bidirectional
 *   END       -> ANSWER with the number of wrong transfers that the server found, and the processor
 *             time that it used
 *
 * In a bidirectional run of Sends each side ends its own Sends by an empty message.
 *
 * IDLE and CYCLES announce connection requests; USAGE and SLEEP ask for figures. In the tests reg
 * and reg-kept the client sends the server the target of each Write, a struct perf_fragment, over
 * the measured connection.
 *
 * The welcome of a server for several clients names another qualifier. The client ends that
 * connection, and begins again there.
 */
#ifndef TOOLS_PERF_WIRE_H
#define TOOLS_PERF_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "session.h"

#define PERF_MAGIC 0x44505246u /* "DPRF" */
#define PERF_VERSION 4u

struct perf_peer;
struct perf_plan;

/* The purpose of a connection. */
enum perf_role {
	PERF_ROLE_CONTROL = 1,
	PERF_ROLE_DATA = 2,
	PERF_ROLE_IDLE = 3,
	PERF_ROLE_CYCLE = 4,
};

enum perf_flag {
	PERF_FLAG_WAITING = 1,
	PERF_FLAG_SHARED = 2,
	PERF_FLAG_CHECKED = 4,
	PERF_FLAG_TARGET_POLLS = 8,
	PERF_FLAG_BIDIRECTIONAL = 16,
	PERF_FLAG_HUGE = 32,
	PERF_FLAG_SRQ = 64,
	PERF_FLAG_SEGMENTS_SHIFT = 8, /* the number of segments, in 8 bits */
};

/* Private data of a request: the plan on the control connection, a target on the others. */
struct perf_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t role;
	uint32_t index; /* of the endpoint; of a cycle: 1 for the last one */
	uint64_t nonce;
	union {
		struct {
			uint64_t size_max;
			uint32_t window;
			uint32_t signal;
			uint32_t endpoints;
			uint32_t threads;
			uint32_t idle;
			uint32_t flags;
		} plan;
		struct {
			uint64_t address;
			uint32_t rmr_context;
		} target;
	};
};

/* Private data of the answer. */
struct perf_welcome {
	uint32_t magic;
	uint32_t version;
	uint64_t address;
	uint32_t rmr_context;
	uint32_t is_redirect; /* of a control connection: `address` is the qualifier to use */
};

enum perf_control_type {
	PERF_CONTROL_RUN = 1,
	PERF_CONTROL_END = 2,
	PERF_CONTROL_IDLE = 3,	 /* count connections follow; 0: close them all */
	PERF_CONTROL_CYCLES = 4, /* connections follow; the client ends each */
	PERF_CONTROL_USAGE = 5,	 /* answer: struct perf_usage of the server */
	PERF_CONTROL_SLEEP = 6,	 /* two answers: at once; after count us the processor time used */
	PERF_CONTROL_ANSWER = 7,
	PERF_CONTROL_STOP = 8, /* worker `test` has made count transfers per endpoint */
};

struct perf_control {
	uint32_t magic;
	uint32_t type;
	uint32_t test;
	uint32_t reserved;
	uint64_t size;
	uint64_t count;	    /* per endpoint; 0: until STOP, or for the duration */
	uint64_t warm_up;   /* per endpoint */
	uint64_t values[3]; /* RUN: the duration in ns */
};

/* The target of the peer's Write: a message of the tests reg and reg-kept. */
struct perf_fragment {
	uint64_t address;
	uint32_t rmr_context;
	uint32_t reserved;
};

_Static_assert(sizeof(struct perf_hello) == 56, "layout on the wire");
_Static_assert(sizeof(struct perf_welcome) == 24, "layout on the wire");
_Static_assert(sizeof(struct perf_control) == 64, "layout on the wire");
_Static_assert(sizeof(struct perf_fragment) == 16, "layout on the wire");

/* perf_hello.c: private data. */
void perf_hello_plan(struct perf_hello *hello_out, const struct perf_plan *plan);
void perf_hello_target(struct perf_hello *hello_out, enum perf_role role,
		       const struct perf_peer *peer, uint32_t index, uint64_t address,
		       DAT_RMR_CONTEXT context);
/* Checks a hello and converts it to host order: 0, or -EPROTO without a message. */
int perf_hello_read(const struct session_private *data, struct perf_hello *hello_out);
/* Are all numbers of a plan within their limits? */
bool perf_plan_is_good(const struct perf_plan *plan);
void perf_plan_read(const struct perf_hello *hello, struct perf_plan *plan_out);
void perf_welcome_make(struct perf_welcome *welcome_out, uint64_t address, DAT_RMR_CONTEXT context);
void perf_welcome_redirect(struct perf_welcome *welcome_out, DAT_CONN_QUAL qualifier);
/* Is the client to connect to another qualifier? */
bool perf_welcome_is_redirect(const struct session_private *data, DAT_CONN_QUAL *qualifier_out);
int perf_welcome_read(const struct session_private *data, DAT_RMR_TRIPLET *remote_out);

#endif
