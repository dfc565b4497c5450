// SPDX-License-Identifier: BSD-2-Clause
/*
 * A random sequence of calls on both ends of up to three connections. Two processes, side A and
 * side B, carry it out: each makes the calls of its side in order, and both meet at each settle
 * step. There they take the events that must have come by then. Between two settle steps the calls
 * of the two sides run at the same time, so the sequence contains only calls whose results do not
 * depend on that.
 */
#ifndef DIFFERENTIAL_SEQUENCE_H
#define DIFFERENTIAL_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <dat/udat.h>

#define SIDES 2
#define EPS 3	  /* connections of a sequence, at most */
#define STREAMS 3 /* of an endpoint: enum stream */
#define EVDS (EPS * STREAMS)
#define SEGMENTS 4		  /* of a request or a Receive, at most */
#define QUEUE 8			  /* requests, or Receives, of an endpoint at once, at most */
#define SRQ_QUEUE 24		  /* Receives of a shared queue */
#define SRQ_LEN 16500u		  /* length of each of them */
#define MESSAGE 100000u		  /* longest message */
#define SEGMENT 26624u		  /* longest segment where a request has several */
#define SLOT (SEGMENTS * SEGMENT) /* local memory of one request or Receive */
#define AREA 131072u		  /* memory that the peer of one endpoint may reach */
#define WAITING 49152u /* bytes that wait for Receives at an endpoint, at most: DTO-117 */
#define STEPS 512
#define SETTLES 96

enum stream { STREAM_CONN, STREAM_RECV, STREAM_REQUEST };

/* Which EVD of its side an event comes to. */
enum layout {
	LAYOUT_SEPARATE, /* each stream of each endpoint has its own */
	LAYOUT_RECV,	 /* one for all Receives, one for all connections, one each for requests */
	LAYOUT_ONE,	 /* one for everything */
};

enum region { REGION_SOURCE, REGION_SINK, REGION_TARGET, REGION_WINDOW, REGIONS };
enum area { AREA_TARGET, AREA_WINDOW, AREAS }; /* the parts of an endpoint in the last two */

enum op {
	OP_SEND,
	OP_WRITE,
	OP_READ,
	OP_BIND,
	OP_RECV,
	OP_SRQ_RECV,
	OP_DISCONNECT,
	OP_EP_CREATE,
	OP_EP_FREE,
	OP_EP_RESET,
	OP_CONNECT, /* by `side`; the other accepts */
	OP_LMR_FREE,
	OP_LMR_CREATE,
	OP_TAKE,   /* takes `count` events of requests */
	OP_SETTLE, /* both sides */
};

/* Why a post is refused. */
enum mistake {
	MISTAKE_NONE,
	MISTAKE_BOUNDS,
	MISTAKE_SEGMENTS,
	MISTAKE_FLAGS,
	MISTAKE_LENGTH, /* the local side of an RDMA Read is too short, that of a Write too long */
	MISTAKE_FREED,	/* the region is freed */
	MISTAKE_FULL,	/* no mistake: the queue is full */
	MISTAKE_STATE,	/* no mistake: a disconnect is under way */
};
#define MISTAKES 8

/* Keys other than those that a step has made: by its number. */
#define KEY_FIRST (-1)	 /* of the first target region */
#define KEY_ZERO (-2)	 /* 0 */
#define KEY_UNKNOWN (-3) /* of nothing */

struct step {
	enum op op;
	int side, ep;
	int segments;
	uint32_t len[SEGMENTS];
	int slot; /* of the local memory */
	DAT_COMPLETION_FLAGS flags;
	enum mistake mistake;
	int source;	 /* a Read whose target this request sends or writes; -1: none */
	enum area area;	 /* of RDMA */
	int key;	 /* of RDMA: the step that made it, or KEY_ */
	uint32_t offset; /* in the area, of RDMA and binds */
	uint32_t range;	 /* length of the remote range, of RDMA and binds */
	DAT_MEM_PRIV_FLAGS privileges; /* of binds */
	enum region region;
	bool is_graceful;
	bool is_racy; /* a disconnect right after requests, which may be done or flushed */
	int count;    /* of OP_TAKE; of OP_SETTLE: its number */
};

/* What a settle step waits for. */
struct settle {
	int take[SIDES][EVDS];
	bool has_order[SIDES];	      /* COMPAT-48: the events come in the order of the Sends */
	unsigned observe[SIDES][EPS]; /* areas whose content is known: 1 << enum area */
};

struct shape_side {
	enum layout layout;
	bool has_srq;
	bool is_unsignalled; /* its endpoints permit unsignalled requests */
	bool is_solicited;   /* Receives notify if the Send asks for that */
	bool waits;	     /* by dat_evd_wait, else it polls */
};

struct sequence {
	uint64_t seed;
	unsigned number;
	int eps;
	int requests, recvs; /* of an endpoint at once */
	struct shape_side shape[SIDES];
	int steps, settles;
	struct step step[STEPS];
	struct settle settle[SETTLES];
};

int sequence_evd(const struct sequence *sequence, int side, int ep, enum stream stream);
uint32_t step_len(const struct step *step); /* of all its segments */
void sequence_generate(struct sequence *sequence, uint64_t seed, unsigned number);
void step_print(FILE *file, const struct sequence *sequence, int number);
void sequence_print(FILE *file, const struct sequence *sequence);

#endif
