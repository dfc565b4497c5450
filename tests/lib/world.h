// SPDX-License-Identifier: BSD-2-Clause
/*
 * One object of each kind on one adapter instance, and a table of all calls that take a handle, for
 * tests that treat all kinds alike: handles, contexts, fork.
 */
#ifndef WORLD_H
#define WORLD_H

#include "conf.h"

#include <unistd.h>

#define WORLD_COUNT 11

struct world_object {
	DAT_HANDLE_TYPE type;
	DAT_HANDLE handle;
};

struct world {
	struct dt_ia ia;
	struct dt_buf buf;
	struct dt_listener listener;
	struct dt_ep active;   /* waits for an answer */
	struct dt_ep reserved; /* by the RSP */
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	DAT_RMR_HANDLE rmr;
	DAT_CNO_HANDLE cno;
	DAT_SRQ_HANDLE srq;
	struct world_object object[WORLD_COUNT];
};

void world_open(struct world *world);
void world_close(struct world *world);
int world_setup(void **state);
int world_teardown(void **state);
/* A test whose state is an open struct world. */
#define world_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

/* --- calls --- */

struct world_call {
	const char *name;
	DAT_HANDLE_TYPE type; /* the only one that the call takes */
	DAT_RETURN (*fn)(DAT_HANDLE handle);
	bool harmless; /* a query: may be made on a live object of its type */
};

#define WORLD_CALLS 58

extern const struct world_call world_calls[WORLD_CALLS];

/* The query of all fields that objects of that type have. */
DAT_RETURN world_query(DAT_HANDLE_TYPE type, DAT_HANDLE handle);

void world_check_refused(const struct world_call *call, DAT_HANDLE handle);
/* Every call refuses that handle, and so do the three calls that take any object. */
void world_check_dead(DAT_HANDLE handle);
/* Every object still answers its queries. */
void world_check_alive(const struct world *world);

#endif
