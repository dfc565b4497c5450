// SPDX-License-Identifier: BSD-2-Clause
/*
 * What several conformance programs share beyond the harness: handles that must be refused,
 * threads, and single transfers between the two endpoints of a pair (always from a to b).
 */
#ifndef CONF_H
#define CONF_H

#include "dt.h"

#include <pthread.h>
#include <stdatomic.h>

#define CONF_LOCAL (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/* --- handles that are none --- */

#define CONF_BAD_COUNT 8

struct conf_bad {
	DAT_HANDLE handle[CONF_BAD_COUNT];
};

/*
 * Values that no call may take for an object, unless it takes an EVD or an IA: NULL, the two
 * constants, the IA, a dead zone, an EVD, memory of the consumer that is no object, and the
 * same misaligned.
 */
void conf_bad_make(struct dt_ia *ia, struct conf_bad *bad);

/* Makes the call with each of them as `h`. */
#define conf_refuses(bad, h, subtype, call)                                                        \
	do {                                                                                       \
		for (size_t conf_i = 0; conf_i < CONF_BAD_COUNT; conf_i++) {                       \
			DAT_HANDLE h = (bad)->handle[conf_i];                                      \
			dt_fails_with(call, DAT_INVALID_HANDLE, subtype);                          \
		}                                                                                  \
	} while (0)

/* --- threads --- */

#define CONF_THREADS 4

/* Runs fn(arg) in CONF_THREADS threads that begin together; each returns NULL for success. */
void conf_parallel(void *(*fn)(void *arg), void *arg);

/* For such a thread: the text of the first call that did not succeed. */
#define conf_try(call)                                                                             \
	do {                                                                                       \
		if ((call) != DAT_SUCCESS)                                                         \
			return (void *)(uintptr_t) #call;                                          \
	} while (0)

/* --- single transfers from a to b --- */

DAT_RETURN conf_post_write(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_RMR_TRIPLET to,
			   uint64_t cookie);
DAT_RETURN conf_post_read(struct dt_pair *pair, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from,
			  uint64_t cookie);
DAT_RETURN conf_post_send(struct dt_pair *pair, DAT_LMR_TRIPLET from, uint64_t cookie);
DAT_RETURN conf_post_recv(struct dt_pair *pair, DAT_LMR_TRIPLET to, uint64_t cookie);
void conf_write(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_RMR_TRIPLET to);
void conf_read(struct dt_pair *pair, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from);
void conf_send(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_LMR_TRIPLET to);
/* Both sides learn that the connection broke. */
void conf_expect_broken(struct dt_pair *pair);
/* An operation posted with that cookie is refused at the target and breaks the connection. */
void conf_expect_refused(struct dt_pair *pair, uint64_t cookie);
/* After a break: a new connection of the same endpoints. */
void conf_relink(struct dt_pair *pair);

#endif
