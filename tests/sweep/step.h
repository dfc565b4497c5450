// SPDX-License-Identifier: BSD-2-Clause
/*
 * The steps of a scenario: calls of the public API, each with a check of what it returns. With a
 * fault a call may fail for lack of a resource; a call that frees must succeed in any case.
 */
#ifndef TESTS_SWEEP_STEP_H
#define TESTS_SWEEP_STEP_H

#include "sweep.h"

#include <dat/udat.h>

#define SWEEP_LEN 65536u /* bytes of memory of each side */

enum side { A, B, SIDES }; /* A connects */

struct end {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	bool is_established, has_ended;
};

struct run {
	const struct sweep_scenario *scenario;
	bool has_fault;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, dto, conn;
	DAT_CNO_HANDLE cno;
	DAT_PZ_HANDLE pz;
	DAT_SRQ_HANDLE srq;
	DAT_RMR_HANDLE rmr;
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	struct end ends[SIDES];
};

extern unsigned char *step_memory[SIDES]; /* sealed, so that it can be mapped by the peer */

void step_at(const char *function, int line);
/* Something is wrong at the present step; the first report counts. */
void step_wrong(const char *what, DAT_RETURN ret);
/* True if the call succeeded. With a fault it may have failed for lack of a resource. */
bool step_check(const struct run *run, DAT_RETURN ret, const char *call);
/* A call that must succeed under any fault. */
void step_must(DAT_RETURN ret, const char *call);
/* Waits for an event. False: a fault prevented it, or none came in time. */
bool step_event(struct run *run, DAT_EVD_HANDLE evd, DAT_EVENT *event_out);
uint64_t step_now_us(void);

#define STEP(call) (step_at(__func__, __LINE__), step_check(run, call, #call))
#define MUST(call) (step_at(__func__, __LINE__), step_must(call, #call))
#define EVENT(evd, event) (step_at(__func__, __LINE__), step_event(run, evd, event))

/* --- transfer.c --- */

/* Each kind of transfer, a few times, from A to B. */
bool step_transfer(struct run *run);

#endif
