// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of mpi: mpi.c starts the processes and prints, mpi_jobs.c has the tests, mpi_packet.c
 * exchanges messages by packets and fragments, over mpi_dat.c or mpi_memory.c. mpi_sockets.c sends
 * them over sockets.
 *
 * For each peer a process has a box of slots that the peer writes to. A packet is at the end of its
 * slot: header, data, footer. The last byte of the footer is the flag, which the receiver polls and
 * clears. When half of the slots have been taken, the receiver returns credits for them.
 */
#ifndef BENCH_MPI_H
#define BENCH_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crew.h"

#define MPI_EAGER_MAX (8u << 10) /* larger messages are sent in fragments */
#define MPI_SLOTS 32u
#define MPI_SLOT_LEN (MPI_EAGER_MAX + 64u)
#define MPI_BOX_LEN (MPI_SLOTS * MPI_SLOT_LEN)
#define MPI_FRAGMENT (128u << 10)
#define MPI_DEPTH 4u   /* fragments under way in each direction */
#define MPI_PASSES 16u /* looks at memory for each look at the event dispatchers */
#define MPI_SIZE_MAX (4u << 20)
#define MPI_WINDOW 64u /* small messages in one direction before an answer */
#define MPI_WINDOW_LARGE 8u
#define MPI_BURST 16u /* small messages to each peer in a round of all to all */
#define MPI_ANSWER 8u /* bytes that answer a window */

enum mpi_test { MPI_PINGPONG, MPI_STREAM, MPI_ALLTOALL, MPI_COMPUTE, MPI_TESTS };

enum mpi_kind {
	MPI_DATA,  /* a small message */
	MPI_READY, /* a large message may be fetched */
	MPI_GRANT, /* a fragment of it may be written */
	MPI_FIN,   /* it was written */
};

struct mpi_header {
	uint64_t address; /* MPI_GRANT */
	uint64_t posted;  /* ticks */
	uint32_t key;	  /* MPI_GRANT */
	uint32_t kind;	  /* enum mpi_kind */
};

struct mpi_footer {
	uint32_t len; /* of the data */
	unsigned char reserved[3];
	unsigned char flag; /* 1: the packet is there */
};
_Static_assert(sizeof(struct mpi_footer) == 8, "no padding");

struct mpi_grant {
	uint64_t address;
	uint32_t key;
};

/* The packets of a peer; the counts are of all jobs. */
struct mpi_link {
	unsigned char *in;  /* our box for the peer */
	unsigned char *out; /* where packets to the peer are made */
	uint64_t posted, completed, credited;
	uint64_t taken, reported;
};

/* The messages of a peer in this job. */
struct mpi_peer {
	struct mpi_link link;
	unsigned char *in_data; /* the message that arrives */
	unsigned char *out_data;
	uint64_t in_size, out_size;
	uint64_t to_send, sent;
	uint64_t to_recv, received;
	/* large ones as sender: messages announced, then fragments */
	uint64_t announced, grants, written, placed, finished;
	struct mpi_grant grant[MPI_DEPTH];
	/* as receiver */
	uint64_t ready, granted, arrived;
	/* sockets: bytes of the message that is under way, its header included */
	uint64_t in_done, out_done;
	uint64_t in_header;
};

struct mpi;

/* What packets and fragments travel over. All calls return 0 or a negative errno. */
struct mpi_wire {
	/* sets what mpi_link and mpi_peer begin with */
	int (*open)(struct mpi *mpi);
	void (*close)(struct mpi *mpi);
	/* 1: something was moved for this peer */
	int (*step)(struct mpi *mpi, unsigned rank);
	/* looks for completions and credits; NULL: there are none */
	int (*progress)(struct mpi *mpi);
	/* sends a packet of that length that was made at the end of the next slot */
	int (*post)(struct mpi *mpi, unsigned rank, uint64_t len);
	int (*credit)(struct mpi *mpi, unsigned rank);
	/* the target of a fragment, with its number modulo MPI_DEPTH; until it is hidden */
	int (*expose)(struct mpi *mpi, unsigned rank, unsigned index, unsigned char *data,
		      uint64_t len, struct mpi_grant *grant_out);
	int (*hide)(struct mpi *mpi, unsigned rank, unsigned index);
	/* writes a fragment, and counts it as `placed` when that is done */
	int (*put)(struct mpi *mpi, unsigned rank, unsigned index, unsigned char *data,
		   uint64_t len, struct mpi_grant grant);
};

extern const struct mpi_wire mpi_dat, mpi_memory, mpi_sockets;

/* What the parent tells the members of a crew. */
struct mpi_setup {
	const struct mpi_wire *wire;
	bool is_shared; /* memory that peers can map */
	bool is_checked;
	uint64_t size_max;
	unsigned char *memory; /* mpi_memory: of all members */
	int sockets[CREW_MAX][CREW_MAX];
};

struct mpi_dat; /* mpi_dat.c */

struct mpi {
	struct crew_member *member;
	const struct mpi_setup *setup;
	struct mpi_dat *dat;
	uint64_t passes;
	uint64_t wrong;
	unsigned idle;	       /* passes without a movement */
	unsigned participants; /* the first of the ranks; the others have nothing to do */
	struct stats *seen;    /* MPI_COMPUTE: the time until a message is seen; else NULL */
	bool is_seen;	       /* the next one */
	struct mpi_peer peers[CREW_MAX]; /* our own entry is not used */
};

static inline bool mpi_has_slot(const struct mpi_link *link)
{
	return link->posted - link->credited < MPI_SLOTS &&
	       link->posted - link->completed < MPI_SLOTS;
}

/* Can this peer go on only after a completion or credits? */
static inline bool mpi_is_blocked(const struct mpi_peer *peer)
{
	return peer->placed < peer->written || !mpi_has_slot(&peer->link);
}

/* --- mpi_packet.c --- */

int mpi_packet_step(struct mpi *mpi, unsigned rank);
/* Looks whether the next packet is there, and takes note of the time. */
void mpi_packet_look(struct mpi *mpi, unsigned rank);

/* --- mpi_jobs.c --- */

crew_body mpi_member;

/* Messages in one direction before an answer. */
static inline uint64_t mpi_window(uint64_t size)
{
	return size > MPI_EAGER_MAX ? MPI_WINDOW_LARGE : MPI_WINDOW;
}

/* Messages to each peer in a round of all to all. */
static inline uint64_t mpi_burst(uint64_t size)
{
	return size > MPI_EAGER_MAX ? 1 : MPI_BURST;
}

/* Fills a message that is sent, if the setup says so. */
void mpi_fill(struct mpi *mpi, unsigned rank, uint64_t number);
/* Reads a message that has arrived, and verifies it if the setup says so. */
void mpi_verify(struct mpi *mpi, unsigned rank, uint64_t number);

static inline uint64_t mpi_memory_len(unsigned processes, uint64_t size_max)
{
	return (uint64_t)processes * processes * (MPI_BOX_LEN + CREW_LINE + size_max);
}

#endif
