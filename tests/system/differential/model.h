// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the generator knows about the endpoints while it writes a sequence: which Receive takes
 * which message, what is outstanding, and so how many events must have come at each settle step.
 * It predicts no results: those of the two runs are compared with each other.
 */
#ifndef DIFFERENTIAL_MODEL_H
#define DIFFERENTIAL_MODEL_H

#include "sequence.h"

struct request {
	int step;
	bool is_silent;	 /* suppressed: no event if it succeeds */
	bool is_matched; /* a message that has a Receive */
	bool fails;
};

struct posted_recv {
	uint32_t len;
	bool is_doomed; /* its region is freed */
};

enum end_state { END_NONE, END_FRESH, END_CONNECTED, END_DRAINING, END_OVER };

/* One side of a connection. */
struct end {
	enum end_state state;
	struct request request[QUEUE];
	struct posted_recv recv[QUEUE];
	int requests, recvs;
	int busy; /* Receives with a message, before their events are taken */
	int request_posts, recv_posts;
	int bound;		/* the bind that is in force; -1: none */
	int old_bind;		/* one whose key is no longer valid; else KEY_ZERO */
	bool is_unknown[AREAS]; /* requests of the peer may have written there, or not */
	bool is_dirty[AREAS];	/* written since it was compared */
};

struct model {
	struct sequence *sequence;
	uint64_t random;
	struct end end[SIDES][EPS];
	int srq[SIDES], srq_busy[SIDES]; /* Receives of the shared queue, like recvs and busy */
	int target[SIDES], old_target[SIDES]; /* keys of the target region: steps, or KEY_ */
	/* endpoints whose messages for that side waited at the last settle, or were sent since */
	unsigned senders[SIDES];
	bool is_ending[EPS]; /* the connection ends before the next settle */
	bool is_racy[EPS];   /* what is posted may be done before that, or not */
	bool may_hide;	     /* all that waits for a Receive now will be flushed */
};

void model_start(struct model *model, struct sequence *sequence);
uint32_t model_random(struct model *model, uint32_t n); /* below n */
struct step *model_step(struct model *model, enum op op, int side, int ep);
int model_number(const struct model *model, const struct step *step);
struct settle *model_now(struct model *model);
void model_count(struct model *model, int side, int ep, enum stream stream);

bool model_is_connected(const struct model *model, int ep);	  /* at neither end draining */
bool model_has_room(const struct model *model, int side, int ep); /* for a request */
bool model_has_recv_room(const struct model *model, int side, int ep);
uint32_t model_waiting(const struct model *model, int side, int ep); /* bytes that wait */
/* The oldest message of the side that waits; NULL: none. */
const struct step *model_first_waiting(const struct model *model, int side, int ep);
/* The Receive that the next message of `side` takes; NULL: none. */
const struct posted_recv *model_next_recv(const struct model *model, int side, int ep);

/* The step was posted. A request with `fails` ends the connection when its turn comes. */
void model_request(struct model *model, struct step *step, bool fails);
void model_recv(struct model *model, struct step *step);
/* All requests of the end that can complete do, and a step takes their events. */
void model_take(struct model *model, int side, int ep);
void model_free(struct model *model, int side, int ep);
void model_settle(struct model *model);

#endif
