// SPDX-License-Identifier: BSD-2-Clause
/*
 * How dat_stat(1) finds the state of a running process. It reads the memory of the process from
 * outside, with the permission that a debugger needs. So the process does nothing: it has no
 * thread, socket or copy for this, and a process that hangs can be read, too.
 *
 * Each provider library contains a note (an ELF note in a loaded segment) that says where its
 * `struct opendat_stat` is. That describes the layout of the objects: where a member is, and how
 * wide. So a reader of another version understands it. The index of the objects is the arena of
 * handle cells: an array of cells of one size, each with a tag and the address of its object.
 *
 * The reader takes no lock. A value may be a moment older than its neighbour, and an object may
 * be freed while it is read: then the tag or the generation of its cell has changed.
 *
 * A member keeps its number and its meaning forever. New ones are added at the end.
 */
#ifndef SHARED_STAT_H
#define SHARED_STAT_H

#include <stdint.h>

#define OPENDAT_STAT_MAGIC 0x5441545354414430u /* "0DATSTAT" in memory */
#define OPENDAT_STAT_NOTE_NAME "OpenDAT"
/* Descriptor of the note: 64 bits, the distance from itself to the table. */
#define OPENDAT_STAT_NOTE_TYPE 0x0da7u

/* How the bytes of a connection move. RDMA: what the last operation used. */
enum opendat_stat_path {
	OPENDAT_PATH_NONE,
	OPENDAT_PATH_MAP,
	OPENDAT_PATH_CMA,
	OPENDAT_PATH_RING,
	OPENDAT_PATH_TCP,
	OPENDAT_PATH_VERBS,
	OPENDAT_PATHS,
};

/* The structures that hold members. */
enum opendat_stat_kind {
	OPENDAT_STAT_CELL,
	OPENDAT_STAT_IA,
	OPENDAT_STAT_EP,
	OPENDAT_STAT_EVD,
	OPENDAT_STAT_SRQ,
	OPENDAT_STAT_LMR,
	OPENDAT_STAT_SP,
	OPENDAT_STAT_KINDS,
};

/*
 * The members: X(kind, NAME). dat_stat reads numbers of up to 8 bytes, except where a comment says
 * otherwise. A pointer identifies an object of the process and is not shown.
 */
#define OPENDAT_STAT_MEMBERS(X)                                                                    \
	X(CELL, TAG) /* 0: free; else the type of the handle + 1 */                                \
	X(CELL, GENERATION)                                                                        \
	X(CELL, OBJECT)	  /* pointer */                                                            \
	X(CELL, INSTANCE) /* pointer to the IA */                                                  \
	X(IA, NAME)	  /* text */                                                               \
	X(IA, DEVICE)	  /* text */                                                               \
	X(IA, ADDRESS)	  /* socket address */                                                     \
	X(EP, STATE)	  /* DAT_EP_STATE */                                                       \
	X(EP, PATH)	  /* enum opendat_stat_path */                                             \
	X(EP, PEER)	  /* socket address */                                                     \
	X(EP, PEER_PORT)                                                                           \
	X(EP, LOCAL_PORT)                                                                          \
	X(EP, CONNECTIONS)                                                                         \
	X(EP, RECV_EVD) /* pointers */                                                             \
	X(EP, REQUEST_EVD)                                                                         \
	X(EP, CONNECT_EVD)                                                                         \
	X(EP, SRQ)                                                                                 \
	X(EP, REQUEST_ROOM)                                                                        \
	X(EP, REQUEST_HEAD) /* completed */                                                        \
	X(EP, REQUEST_TAIL) /* posted */                                                           \
	X(EP, RECV_ROOM)                                                                           \
	X(EP, RECV_HEAD)                                                                           \
	X(EP, RECV_TAIL)                                                                           \
	X(EP, OLD_REQUESTS) /* to be added to both ends of the queue */                            \
	X(EP, OLD_RECVS)                                                                           \
	X(EP, WRITES) /* posted; the requests that are none of these three are Sends */            \
	X(EP, READS)                                                                               \
	X(EP, BINDS)                                                                               \
	X(EP, SEND_BYTES) /* posted */                                                             \
	X(EP, WRITE_BYTES)                                                                         \
	X(EP, READ_BYTES)                                                                          \
	X(EP, RECV_BYTES)                                                                          \
	X(EP, SRQ_RECVS)                                                                           \
	X(EP, FAILED)                                                                              \
	X(EP, FLUSHED)                                                                             \
	X(EP, WAKEUPS)                                                                             \
	X(EVD, ROOM)                                                                               \
	X(EVD, HEAD)                                                                               \
	X(EVD, TAIL)                                                                               \
	X(EVD, FLAGS) /* DAT_EVD_FLAGS */                                                          \
	X(EVD, HAS_WAITER)                                                                         \
	X(EVD, OVERFLOWED)                                                                         \
	X(EVD, WAKEUPS)                                                                            \
	X(SRQ, ROOM)                                                                               \
	X(SRQ, HEAD) /* the available buffers, if DEVICE is 0 */                                   \
	X(SRQ, TAIL)                                                                               \
	X(SRQ, DEVICE)		 /* not 0: the queue of a device */                                \
	X(SRQ, DEVICE_AVAILABLE) /* the available buffers of that queue */                         \
	X(SRQ, OUTSTANDING)                                                                        \
	X(SRQ, LOW_WATERMARK)                                                                      \
	X(SRQ, ENDPOINTS)                                                                          \
	X(SRQ, WAITING)                                                                            \
	X(LMR, LENGTH)                                                                             \
	X(LMR, PRIVILEGES) /* DAT_MEM_PRIV_FLAGS */                                                \
	X(LMR, BOUND)                                                                              \
	X(SP, QUALIFIER)

#define OPENDAT_STAT_NUMBER(kind, name) OPENDAT_STAT_##kind##_##name,
enum opendat_stat_number { OPENDAT_STAT_MEMBERS(OPENDAT_STAT_NUMBER) OPENDAT_STAT_COUNT };

/* Where a member is in its structure. size 0: the library has no such member. */
struct opendat_stat_member {
	uint16_t offset;
	uint16_t size;
};

struct opendat_stat {
	uint64_t magic;
	uint32_t size;	    /* bytes of this structure: later versions have more members */
	uint32_t cell_size; /* bytes, a power of two */
	char release[16];   /* of OpenDAT: "0.1.0" */
	const void *arena;  /* a pointer to the first cell; that is 0 before the first use */
	const void *cells;  /* the 32-bit number of cells that were ever used */
	struct opendat_stat_member members[OPENDAT_STAT_COUNT];
};

#endif
