// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers that several conformance programs use: handles that every call must refuse, threads, and
 * single transfers from endpoint a of a pair to endpoint b.
 */
#ifndef CONF_H
#define CONF_H

#include "dt.h"

#include <pthread.h>
#include <stdatomic.h>

#define CONF_LOCAL (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/* --- invalid handles --- */

#define CONF_BAD_COUNT 8

struct conf_bad {
	DAT_HANDLE handle[CONF_BAD_COUNT];
};

/*
 * Handles that calls must refuse unless they take an EVD or an IA: NULL, the two constants, the IA,
 * a freed zone, an EVD, a pointer to other memory of the consumer, and a misaligned one.
 */
void conf_bad_make(struct dt_ia *ia, struct conf_bad *bad);

/* Makes the call with each of these handles as `h`; all must fail with that subtype. */
#define conf_refuses(bad, h, subtype, call)                                                        \
	do {                                                                                       \
		for (size_t conf_i = 0; conf_i < CONF_BAD_COUNT; conf_i++) {                       \
			DAT_HANDLE h = (bad)->handle[conf_i];                                      \
			dt_fails_with(call, DAT_INVALID_HANDLE, subtype);                          \
		}                                                                                  \
	} while (0)

/* --- threads --- */

#define CONF_THREADS 4

/* Runs fn(arg) in CONF_THREADS threads that start together. fn returns NULL or an error text. */
void conf_parallel(void *(*fn)(void *arg), void *arg);

/* For fn: returns the text of the call if it fails. */
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
/* Both sides must get the event BROKEN. */
void conf_expect_broken(struct dt_pair *pair);
/* An operation posted with that cookie is refused at the target and breaks the connection. */
void conf_expect_refused(struct dt_pair *pair, uint64_t cookie);
/* Connects the same endpoints again after the connection broke. */
void conf_relink(struct dt_pair *pair);

#endif
