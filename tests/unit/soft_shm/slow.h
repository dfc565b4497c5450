// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of the slow path share: a lab for each copy path, and the peer's words. */
#ifndef TESTS_SOFT_SHM_SLOW_H
#define TESTS_SOFT_SHM_SLOW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/state.h"

#define BROKEN DAT_CONNECTION_EVENT_BROKEN

static inline int setup_ring(void **state)
{
	*state = lab_open(CORE_COPY_RING, false);
	return 0;
}

static inline int setup_cma(void **state)
{
	*state = lab_open(CORE_COPY_AUTO, true);
	return 0;
}

static inline int teardown(void **state)
{
	lab_close(*state);
	return 0;
}

/* Publishes the entry and makes a pass on our side. */
static inline void ask(struct lab *lab, struct shm_entry entry, const void *payload)
{
	assert_true(lab_peer_entry(&lab->peer_out, &entry, payload));
	lab_pass(lab);
}

static inline struct shm_entry write_entry(const struct lab *lab, uint32_t offset, uint32_t payload)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_WRITE,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = lab->rkey,
		.address = (uintptr_t)lab->memory + offset,
		.payload = payload,
		.length = payload,
	};
}

static inline uint32_t failed(const struct lab *lab)
{
	return atomic_load(&lab->conn->segment->side[SHM_PASSIVE].failed);
}

static inline uint32_t done(const struct lab *lab)
{
	return atomic_load(&lab->conn->segment->side[SHM_PASSIVE].done);
}

/* The connection broke; reads the words of our side that report why. */
static inline void expect_broken(const struct lab *lab)
{
	assert_int_equal(lab->end, BROKEN);
}

/* Keeps the connection object alive, so that its segment can be read after the end. */
static inline void hold(struct lab *lab)
{
	shm_conn_get(lab->conn);
}

#endif
