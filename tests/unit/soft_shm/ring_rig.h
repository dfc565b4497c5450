// SPDX-License-Identifier: BSD-2-Clause
/* A ring alone, with both ends in one process. */
#ifndef TESTS_SOFT_SHM_RING_RIG_H
#define TESTS_SOFT_SHM_RING_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"

#define SIZE SHM_RESPONSE_RING
#define PAYLOAD SHM_RESPONSE_PAYLOAD

struct rig {
	_Atomic uint32_t consumed;
	alignas(SHM_PAGE) uint8_t bytes[SIZE];
	uint8_t large[SHM_LARGE_RING]; /* behind it */
	struct shm_producer out;
	struct shm_consumer in;
};

/* Both indexes start just below the wrap-around of 32 bits. */
static inline int setup(void **state)
{
	struct rig *rig = aligned_alloc(SHM_PAGE, sizeof(*rig));
	const uint32_t start =
		UINT32_MAX - 95; /* the fourth entry of the smallest size crosses zero */

	assert_non_null(rig);
	memset(rig, 0, sizeof(*rig));
	atomic_init(&rig->consumed, start);
	shm_producer_init(&rig->out, rig->bytes, SIZE, &rig->consumed);
	shm_consumer_init(&rig->in, rig->bytes, SIZE, &rig->consumed);
	*state = rig;
	return 0;
}

static inline int teardown(void **state)
{
	free(*state);
	return 0;
}

/* 1: written, 0: full. */
static inline int put(struct rig *rig, uint64_t number, uint32_t payload)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_DATA, .payload = payload, .address = number, .length = ~number};
	uint8_t *room;
	int rc = shm_producer_reserve(&rig->out, payload, &room);

	if (rc == 1) {
		memset(room, (int)(number & 0xff), payload);
		shm_producer_commit(&rig->out, &entry);
	}
	return rc;
}

static inline void take(struct rig *rig, uint64_t number, uint32_t payload)
{
	const uint8_t *bytes;
	struct shm_entry entry;
	uint32_t i;

	assert_int_equal(shm_consumer_peek(&rig->in, &entry, &bytes), 1);
	assert_true(entry.address == number && entry.length == ~number);
	assert_int_equal(entry.payload, payload);
	for (i = 0; i < payload; i++)
		assert_int_equal(bytes[i], number & 0xff);
	shm_consumer_take(&rig->in, payload);
}

static inline int peek(struct rig *rig)
{
	const uint8_t *bytes;
	struct shm_entry entry;

	return shm_consumer_peek(&rig->in, &entry, &bytes);
}

#endif
