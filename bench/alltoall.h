// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of alltoall: alltoall.c starts the processes and connects them, alltoall_rounds.c
 * exchanges messages.
 *
 * For each peer a process has a box that the peer writes to, and one of the same layout from which
 * it writes to the peer. A box contains a note that grants a fragment, a note that reports that the
 * fragment was written, and the slots for the small messages of two rounds.
 */
#ifndef BENCH_ALLTOALL_H
#define BENCH_ALLTOALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

#define ALL_PROCESSES_MAX 16u
#define ALL_EAGER_MAX 4096u /* larger messages are sent in fragments */
#define ALL_BURST 16u	    /* small messages to each peer in a round */
#define ALL_FRAGMENT (128u << 10)
#define ALL_NOTE_ROOM 64u
#define ALL_NOTES (2 * ALL_NOTE_ROOM)

/* The receiver polls the last byte, which is different in each note. */
struct all_note {
	uint64_t address; /* of a fragment that the peer may write; not used in a report */
	uint32_t rmr_context;
	unsigned char reserved[3];
	unsigned char flag;
};
_Static_assert(sizeof(struct all_note) == 16, "no padding");

struct all_peer {
	DAT_EP_HANDLE endpoint;
	DAT_RMR_TRIPLET remote; /* the peer's box for us */
	unsigned char *in;	/* our box for the peer */
	unsigned char *out;	/* the source of our Writes to its box */
	unsigned char *large_in;
	unsigned char *large_out;
	unsigned busy;	   /* requests that have not completed */
	unsigned received; /* small messages of this round */
	/* one message in fragments each way; these count from the first round on */
	uint32_t granted;
	uint32_t arrived;
	uint32_t written; /* posted */
	uint32_t reported;
	DAT_LMR_HANDLE target; /* of the fragment that was granted */
	DAT_LMR_HANDLE source; /* of the one that is being written */
	bool is_note_busy[2];  /* its last Write is not complete */
};

struct all {
	unsigned processes;
	unsigned rank;
	uint64_t size;
	uint64_t rounds;
	bool is_shared; /* buffers in sealed memory files */
	bool is_checked;
	struct session session;
	struct session_buffer in, out, large_in, large_out;
	uint64_t slot_len;
	uint64_t wrong;
	struct all_peer peers[ALL_PROCESSES_MAX]; /* our own entry is not used */
};

/* One message (or ALL_BURST small ones) from each process to each: 0 or a negative errno. */
int all_round(struct all *all, uint64_t number);

#endif
