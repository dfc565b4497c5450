// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that is killed or stopped at each step. Two processes run a scenario: the victim, which is
 * traced, and the survivor. The driver ends or stops the victim at one moment: at its n-th system
 * call, or a number of instructions after it begins one of its calls of the API. The survivor then
 * has to be told within the time that opendat(7) gives, get each of its completions once, find the
 * bytes that it was promised, and be able to free everything.
 *
 *   stops.c   the driver: which moments there are
 *   trace.c   takes the victim to its moment
 *   peer.c    what both processes do
 *   check.c   what the survivor has to find
 */
#ifndef TESTS_STOPS_H
#define TESTS_STOPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dat/udat.h>

#define STOPS_HANG_MS 20000u	    /* longer than anything may take */
#define STOPS_QUIET_MS 60u	    /* without progress: the stopped victim does no more */
#define STOPS_PEER_TIMEOUT_MS "300" /* the setting peer_timeout_ms of both */

enum stops_state { STOPS_RUNS, STOPS_STOPPED, STOPS_KILLED };

/* In memory that all three processes share. */
struct stops_shared {
	_Atomic uint64_t qual;	 /* of the service point; written by the passive side */
	atomic_int state;	 /* enum stops_state; written by the driver */
	atomic_bool is_watched;	 /* the driver traces the victim */
	atomic_bool is_over;	 /* the survivor has freed its region; written by it */
	atomic_bool is_finished; /* the victim does nothing any more; written by the driver */
	atomic_int line;	 /* of the survivor's step, for reports */
	char message[256];	 /* what is wrong, or empty; written by the survivor */
};
extern struct stops_shared *stops;

struct stops_scenario {
	const char *name;
	const char *copy, *transport; /* the settings of these names */
	bool is_victim_active;
};

/* When the victim ends or stops. */
struct stops_moment {
	unsigned call;	/* its n-th system call, from 1, or after it (trace.c); or, if 0: */
	unsigned mark;	/* its n-th call of the API, from 1 */
	unsigned steps; /* so many instructions of that thread later */
	bool is_kill;
};

/* --- peer.c --- */

#define STOPS_LARGE 32768u
#define STOPS_SMALL 64u
#define STOPS_OLD 0x11 /* bytes that nobody has written */

/* Places in the memory of a process. */
enum stops_place {
	STOPS_SOURCE = 0,
	STOPS_RECV_SMALL = 1 * STOPS_LARGE,
	STOPS_RECV_LARGE = 2 * STOPS_LARGE,
	STOPS_TARGET_SMALL = 3 * STOPS_LARGE,
	STOPS_TARGET_LARGE = 4 * STOPS_LARGE,
	STOPS_READ = 5 * STOPS_LARGE,
	STOPS_MEMORY = 6 * STOPS_LARGE,
};

enum stops_cookie {
	STOPS_SEND_SMALL,
	STOPS_SEND_LARGE,
	STOPS_WRITE_SMALL,
	STOPS_WRITE_LARGE,
	STOPS_READ_LARGE,
	STOPS_GOT_SMALL,
	STOPS_GOT_LARGE,
	STOPS_COOKIES,
};

struct stops_peer {
	bool is_victim, is_active;
	uint8_t *memory;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, dto, conn;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	bool has_request, is_established, has_ended;
	DAT_EVENT_NUMBER end; /* how the connection ended */
	bool is_posted[STOPS_COOKIES];
	bool is_done[STOPS_COOKIES]; /* with any status */
	bool is_successful[STOPS_COOKIES];
	struct stops_address {
		uint64_t address;
		uint32_t rkey;
	} remote;
};

/* Runs the scenario in this process, and exits. */
void stops_run(const struct stops_scenario *scenario, bool is_victim);
/* Something is wrong in the survivor: reports it. The victim just gives up. */
void stops_wrong(const struct stops_peer *peer, const char *what, long value);
uint64_t stops_now_ms(void);

/* --- check.c --- */

/* The bytes that a process sends. */
uint8_t stops_pattern(bool is_victim);
void stops_fill(const struct stops_peer *peer);
/* A completion with success: its length and its bytes. */
void stops_check_completion(const struct stops_peer *peer, enum stops_cookie cookie, DAT_VLEN len);
void stops_check_memory(const struct stops_peer *peer);
void stops_check_end(const struct stops_peer *peer);
/* The region is freed: no byte of it changes, although a stopped victim continues. */
void stops_check_freed(const struct stops_peer *peer);

/* --- trace.c --- */

enum stops_traced {
	STOPS_REACHED,	   /* the victim is stopped or killed at its moment */
	STOPS_NOT_REACHED, /* it has ended before */
	STOPS_IMPOSSIBLE,  /* tracing is not allowed here */
};

/* The victim waits for stops->is_watched. */
enum stops_traced trace_until(pid_t victim, const struct stops_moment *moment);
/* Lets a stopped victim run on, untraced. */
void trace_release(void);
/* In the victim: marks the beginning of a call of the API by a system call that nothing else makes.
 */
void trace_mark(void);

#endif
