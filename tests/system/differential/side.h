// SPDX-License-Identifier: BSD-2-Clause
/*
 * One of the two processes that carry out a sequence. It writes what it observes as lines of text:
 * return codes, events, and the content of memory as a hash.
 */
#ifndef DIFFERENTIAL_SIDE_H
#define DIFFERENTIAL_SIDE_H

#include "dt.h"
#include "sequence.h"

#define TRACE_LEN (1u << 18)
#define EVENTS 256		     /* between two settle steps, at most */
#define SLOTS (QUEUE + 2)	     /* of local memory of an endpoint: requests, or Receives */
#define COOKIE_SRQ UINT64_C(0x10000) /* plus the slot of the shared queue */

/* What both processes and their parent share. */
struct shared {
	_Atomic bool is_stopped; /* a side has given up */
	DAT_CONN_QUAL qual[SIDES];
	DAT_VADDR area[SIDES][AREAS]; /* of endpoint 0 */
	DAT_RMR_CONTEXT first_key[SIDES], key[STEPS];
	/* of connections that ended with requests under way: messages that were sent and received
	 */
	unsigned sent[SIDES][EPS], received[SIDES][EPS];
	size_t trace_len[SIDES];
	char trace[SIDES][TRACE_LEN];
};

struct memory {
	unsigned char *p;
	size_t len;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
};

struct side_ep {
	DAT_EP_HANDLE ep;
	DAT_RMR_HANDLE rmr;
	bool is_racy;		  /* requests may be done or flushed */
	bool is_over;		  /* the event of the end was taken */
	bool has_failed[STREAMS]; /* since it was connected */
};

struct line {
	int stream; /* the order of lines: that of the streams, and of each stream */
	char text[120];
};

struct side {
	struct shared *shared;
	int me, socket; /* to the other side */
	uint64_t wait_us;
	struct dt_ia ia;
	struct memory region[REGIONS]; /* the memory is the same in all sequences */
	struct sequence *sequence;
	/* of one sequence, from here on */
	struct dt_listener listener;
	DAT_EVD_HANDLE evd[EVDS];
	bool was_empty[EVDS]; /* in this take */
	DAT_SRQ_HANDLE srq;
	bool is_srq_slot_used[SRQ_QUEUE + 1];
	struct side_ep ep[EPS];
	struct line line[EVENTS];
	int lines;
};

/* side.c */
/*
 * Carries out one sequence after the other: each number that comes from the parent, which gets a
 * byte when it is done. Returns when there are no more.
 */
void side_serve(struct side *side, int parent, uint64_t seed);
void side_trace(struct side *side, const char *format, ...) __attribute__((format(printf, 2, 3)));
void side_stop(struct side *side) __attribute__((noreturn));
void side_meet(struct side *side);
const char *side_code(DAT_RETURN ret);

/* memory.c */
void memory_start(struct side *side); /* makes all regions with their first content */
void memory_create(struct side *side, enum region region, DAT_RMR_CONTEXT *rkey_out);
unsigned char *memory_slot(const struct side *side, const struct step *step);
unsigned char *memory_srq_slot(const struct side *side, int slot);
/* The segments of a step, into iov; BAD_SEGMENTS is their number if there are too many. */
#define BAD_SEGMENTS 99
DAT_COUNT memory_segments(const struct side *side, const struct step *step,
			  DAT_LMR_TRIPLET iov[BAD_SEGMENTS]);
void memory_fill(void *p, size_t len, uint64_t seed);
uint64_t memory_hash(const void *p, size_t len, uint64_t hash);
uint64_t memory_hash_step(const struct side *side, const struct step *step);
void memory_fill_step(const struct side *side, const struct step *step, uint64_t seed);

/* calls.c */
DAT_RETURN call_run(struct side *side, int number);
void call_connect(struct side *side, int number); /* both sides */

/* events.c */
void events_take(struct side *side, int evd, int count);
void events_settle(struct side *side, const struct settle *settle);

#endif
