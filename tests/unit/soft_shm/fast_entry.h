// SPDX-License-Identifier: BSD-2-Clause
/* Entries that the fast path has put into our request ring, read by the peer. */
#ifndef TESTS_SOFT_SHM_FAST_ENTRY_H
#define TESTS_SOFT_SHM_FAST_ENTRY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>

#include "fast.h"
#include "soft/shm/ring.h"
#include "soft/shm/wire.h"

/* The peer takes our next entry, which must be a whole message with these bytes. */
static inline struct shm_entry expect_entry(uint32_t len, uint32_t seed)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 1);
	assert_int_equal(entry.type, SHM_ENTRY_SEND);
	assert_int_equal(entry.flags & ~SHM_FLAG_SOLICITED, SHM_FLAG_FIRST | SHM_FLAG_LAST);
	assert_int_equal(entry.payload, len);
	assert_int_equal(entry.length, len);
	expect_bytes(payload, len, seed);
	shm_consumer_pop(&peer_in);
	return entry;
}

static inline void expect_no_entry(void)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 0);
}

static inline bool was_packet_sent(const struct lab *lab)
{
	uint8_t bytes[sizeof(union shm_wire)];

	return recv(lab->peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0;
}

static inline void peer_skips_entry(void)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 1);
	shm_consumer_pop(&peer_in);
	(void)shm_consumer_release(&peer_in);
}

#endif
