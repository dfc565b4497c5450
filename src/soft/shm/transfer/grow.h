// SPDX-License-Identifier: BSD-2-Clause
/*
 * Larger request rings. A ring of 16 KiB holds a few messages of some KiB. In a stream of them it
 * is full most of the time, and both sides move the same few cache lines back and forth. So a ring
 * that was full several times is replaced by a larger one. That one is in the file of the segment,
 * too, behind the part that every connection maps. Neither side needs a descriptor for it, nor has
 * to trust the other one more than before.
 *
 * The producer sets SHM_LARGE_WANTED. The consumer reads it when it gives space back, maps the
 * larger rings, and sets SHM_LARGE_MAPPED. The producer maps them, too, puts an entry GROW into the
 * ring, and continues in the larger one at the next index. A side that cannot map them keeps the
 * first ring in use.
 *
 * The larger rings of at most SHM_GROWN_MAX connections of an engine are mapped at a time; a
 * connection that finds no place asks again. They go with their connection.
 */
#ifndef SHM_GROW_H
#define SHM_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE /* older headers */
#define MADV_POPULATE_WRITE 23
#endif

struct shm_conn;
struct shm_file;

#define SHM_GROWN_MAX 64u
#define SHM_GROWN_STRANGERS 16u /* no more with a peer that is not trusted */
#define SHM_GROW_AFTER 64u	/* passes that found the ring full */

/* EP locked. */
struct shm_grow {
	struct shm_file *file; /* mapped as a whole; NULL: not */
	bool is_small;	       /* the file has no larger rings */
	bool is_refused;       /* the kernel has refused the mapping or its memory */
	bool is_in;	       /* the peer may put its requests into the larger ring, */
	bool is_out;	       /* and ours go through it */
	uint8_t full;	       /* passes so far; stops at the limit */
};

/* Space of the peer's requests was given back: maps the peer's larger ring if it is wanted. */
void shm_grow_in(struct shm_conn *conn);
/* Our requests wait for space: changes to the larger ring if possible. */
void shm_grow_out(struct shm_conn *conn);
/* The connection is destroyed. */
void shm_grow_end(struct shm_conn *conn);

#endif
