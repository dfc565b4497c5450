// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of the fast path share: a lab whose endpoint may use it, and patterns of bytes. */
#ifndef TESTS_SOFT_SHM_FAST_H
#define TESTS_SOFT_SHM_FAST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab.h"
#include "soft/key.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/progress.h"

#define BROKEN DAT_CONNECTION_EVENT_BROKEN
#define FAST_POLLS 64u /* in a row, as in fast.c */
#define UNTOUCHED 0xa5

/* The peer's end of our request ring. */
static struct shm_consumer peer_in;

static inline struct lab *open_lab(bool has_cma)
{
	struct lab *lab = lab_open(CORE_COPY_AUTO, has_cma);

	lab_go_fast(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
	shm_conn_get(lab->conn); /* its words are read after its end */
	shm_conn_disarm(lab->conn);
	shm_consumer_init(&peer_in, lab->conn->segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &lab->peer->request_consumed);
	return lab;
}

static inline void close_lab(struct lab *lab)
{
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
	shm_conn_put(lab->conn);
	lab_close(lab);
}

/* Two labs: if the fast path declines RDMA, the kernel copies it, or it goes through the ring. */
static inline int setup(void **state)
{
	*state = open_lab(true);
	return 0;
}

static inline int setup_ring(void **state)
{
	*state = open_lab(false);
	return 0;
}

/* RDMA goes through the ring, unless the kernel may copy. */
static inline struct lab *open_without_map(bool has_cma)
{
	struct lab *lab = open_lab(has_cma);

	lab->conn->remote.last_map = NULL;
	return lab;
}

/* Ways in which a key and an address of our memory are not good for 8 bytes of RDMA. */
#define BAD_KEYS 6u

/* `other` is a key without the right. Changes the zone or the key itself where that is the way. */
static inline uint32_t bad_key(struct lab *lab, unsigned way, uint32_t other, uint64_t *address_out)
{
	uint32_t key = way == 1 ? other : lab->rkey;

	*address_out = (uintptr_t)lab->memory;
	if (way == 0)
		key ^= 1u << 31;
	else if (way == 2)
		*address_out += LAB_MEMORY - 7;
	else if (way == 3)
		--*address_out;
	else if (way == 4)
		lab->pz.id++;
	else if (way == 5)
		soft_keys_invalidate(lab->adapter.keys, key);
	return key;
}

/* The peer's RDMA was refused, and the connection broken. */
static inline void expect_refused(struct lab *lab, enum shm_failed_kind kind)
{
	assert_int_equal(lab->end, BROKEN);
	assert_int_equal(atomic_load(&lab->conn->mine->failed),
			 SHM_FAILED(kind, DAT_DTO_ERR_REMOTE_ACCESS));
}

static inline int teardown(void **state)
{
	close_lab(*state);
	return 0;
}

static inline uint32_t done_word(const struct lab *lab)
{
	return atomic_load(&lab->conn->mine->done);
}

static inline uint64_t counted(struct lab *lab, enum shm_counter counter)
{
	return shm_engine_count(&lab->engine, counter);
}

/* A different pattern for each message. */
static inline void fill(uint8_t *bytes, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 31 + seed * 7 + 1);
}

static inline void expect_bytes(const uint8_t *bytes, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], (uint8_t)(i * 31 + seed * 7 + 1));
}

static inline void expect_untouched(const uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], UNTOUCHED);
}

static inline void post_send(struct lab *lab, uint32_t offset, uint32_t len,
			     DAT_COMPLETION_FLAGS flags)
{
	lab->next_flags = flags;
	assert_true(lab_post(lab, CORE_OP_SEND, offset, len, 0, 0));
}

/* The peer sends a message, whether a Receive is posted or not. */
static inline void peer_sends(struct lab *lab, struct shm_entry entry, uint32_t seed)
{
	uint8_t bytes[SHM_REQUEST_PAYLOAD];

	fill(bytes, entry.payload, seed);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, bytes));
}

/* The same with a Receive for it; checks what is placed. */
static inline void exchange(struct lab *lab, uint32_t len, uint32_t done)
{
	struct shm_entry entry = lab_send_entry(len);
	uint32_t seed = lab->received;

	entry.done = done;
	memset(lab->memory + 8192, UNTOUCHED, len + 64);
	assert_true(lab_post_receive(lab, 8192, len));
	peer_sends(lab, entry, seed);
	lab_pass(lab);
	assert_int_equal(lab->received, seed + 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->receive_len, len);
	expect_bytes(lab->memory + 8192, len, seed);
	expect_untouched(lab->memory + 8192 + len, 64);
}

static inline void post_write(struct lab *lab, uint32_t len, uint32_t key, uint32_t offset)
{
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, len, key,
			     (uintptr_t)lab->peer_memory + offset));
}

#endif
