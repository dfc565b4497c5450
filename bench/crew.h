// SPDX-License-Identifier: BSD-2-Clause
/*
 * A crew: some processes that are connected to each other and carry out one job after another, each
 * when the parent says so. In between they sleep. So crews with different settings can be measured
 * in turn, a few milliseconds each, and all of them meet the same states of the machine.
 *
 * The parent and the members share a board. A member is killed when its parent ends; all are killed
 * after the time limit. The processes are distributed over the processors that the program may use.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "session.h"
#include "stats.h"

#define CREW_MAX 16u
#define CREW_TIMEOUT_MS 20000u
#define CREW_LINE 128
#define CREW_VALUES_MAX 96u

struct crew_job {
	unsigned kind; /* this and the members below mean what the caller says */
	unsigned op;
	unsigned state;
	uint64_t size;
	uint64_t count;
	uint64_t pause_ns;
	bool is_end;
};

/* A word in a cache line pair of its own. */
struct crew_word {
	_Alignas(CREW_LINE) _Atomic uint64_t value;
};

struct crew_board {
	_Atomic uint32_t turn; /* number of jobs so far; a futex */
	_Atomic uint32_t done; /* members that have finished it; a futex */
	atomic_uint arrived;   /* arrivals at barriers so far */
	struct crew_job job;
	_Atomic uint64_t qualifier[CREW_MAX];
	struct crew_word words[4]; /* for the jobs */
	uint64_t elapsed_ns[CREW_MAX];
	uint64_t wrong[CREW_MAX];
	struct stats stats; /* ticks; added by one member in each job */
};

struct crew {
	const char *name;
	unsigned processes;
	pid_t pids[CREW_MAX];
	struct crew_board *board;
};

/* What a member knows of its crew. */
struct crew_member {
	struct crew_board *board;
	unsigned processes;
	unsigned rank;
	unsigned barriers; /* that it has passed */
	uint32_t turn;
	const void *context;
};

/* A member's private data in the request or the answer: where the peer may write. */
struct crew_hello {
	uint32_t magic;
	uint32_t rank;
	uint64_t address;
	DAT_RMR_CONTEXT rmr_context;
};

typedef int crew_body(struct crew_member *member);

/* --- the parent --- */

/* Memory that a crew shares, filled with zeroes; NULL: a message was printed. */
void *crew_share(uint64_t len);

/*
 * Starts the members, which call `body` with the variable set in their environment ("NAME=value",
 * or NULL) and end with its result. 0, or a negative errno after a message.
 */
int crew_start(struct crew *crew, unsigned processes, const char *variable, crew_body *body,
	       const void *context);
/* Has all members do a job: 0, or a negative errno when one of them has ended. */
int crew_run(struct crew *crew, const struct crew_job *job);
/* Finds out which count fills a slice of time, up to `max`. The trials also warm up. */
int crew_calibrate(struct crew *crew, const struct crew_job *job, uint64_t slice_ns, uint64_t max,
		   uint64_t *count_out);
/* Ends the members. Returns 0 if all were successful. */
int crew_end(struct crew *crew);
/* The time of the last job: of the member that took longest. */
uint64_t crew_elapsed_ns(const struct crew *crew);

/* Of at most CREW_VALUES_MAX values. */
double crew_median(const double *values, unsigned count);

/* --- a member --- */

/* The next job, or NULL when there is none. The member calls crew_done() after it. */
const struct crew_job *crew_next(struct crew_member *member);
void crew_done(struct crew_member *member);
/* Returns when all members have arrived. */
void crew_barrier(struct crew_member *member);

/*
 * Connects a member to all others. endpoints, ours, theirs: one for each rank; our own entry is not
 * used. `ours` is what each peer gets, with address and rmr_context filled in.
 */
int crew_connect(struct crew_member *member, struct session *session,
		 const DAT_EP_HANDLE *endpoints, struct crew_hello *ours,
		 struct crew_hello *theirs);
/* An endpoint that takes so many requests and Receives. */
int crew_endpoint(struct session *session, DAT_COUNT requests, DAT_COUNT recvs,
		  DAT_EP_HANDLE *endpoint_out);

/* Called between two looks at memory: leaves execution units to the core's other thread. */
static inline void crew_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
