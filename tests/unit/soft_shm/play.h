// SPDX-License-Identifier: BSD-2-Clause
/* What the tests in the lab share: ways to open it, patterns of bytes, and what the peer does. */
#ifndef TESTS_SOFT_SHM_PLAY_H
#define TESTS_SOFT_SHM_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab.h"
#include "soft/key.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/engine/engine.h"

#define BROKEN DAT_CONNECTION_EVENT_BROKEN
#define UNTOUCHED 0xa5

/* --- labs --- */

/* RDMA goes through the ring, each on the slow path. */
static inline struct lab *open_slow(void)
{
	return lab_open(&(struct lab_form){.copy = CORE_COPY_RING});
}

/* The same on the fast path, where a thread polls. */
static inline struct lab *open_fast(void)
{
	struct lab *lab = lab_open(&(struct lab_form){.copy = CORE_COPY_RING, .reads = 8});

	lab_go_fast(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
	return lab;
}

static inline struct lab *open_either(bool is_fast)
{
	return is_fast ? open_fast() : open_slow();
}

static inline int setup_slow(void **state)
{
	*state = open_slow();
	return 0;
}

static inline int setup_fast(void **state)
{
	*state = open_fast();
	return 0;
}

/* The kernel copies. */
static inline struct lab *open_cma(void)
{
	return lab_open(&(struct lab_form){.copy = CORE_COPY_AUTO, .has_cma = true});
}

static inline int setup_cma(void **state)
{
	*state = open_cma();
	return 0;
}

static inline int teardown(void **state)
{
	lab_close(*state);
	return 0;
}

#define SLOW(f) cmocka_unit_test_setup_teardown(f, setup_slow, teardown)
#define FAST(f) cmocka_unit_test_setup_teardown(f, setup_fast, teardown)
#define CMA(f) cmocka_unit_test_setup_teardown(f, setup_cma, teardown)

/* --- bytes --- */

static inline uint8_t pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)(i * 31 + i / 256 + seed * 7 + 1);
}

static inline void fill(uint8_t *bytes, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = pattern(seed, i);
}

static inline void expect_bytes(const uint8_t *bytes, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], pattern(seed, i));
}

static inline void expect_untouched(const uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], UNTOUCHED);
}

/* --- what our side says --- */

static inline uint32_t done_word(const struct lab *lab)
{
	return atomic_load(&lab->own->done);
}

static inline uint32_t failed_word(const struct lab *lab)
{
	return atomic_load(&lab->own->failed);
}

static inline bool is_armed(const struct lab *lab)
{
	return atomic_load(&lab->own->armed) & 1;
}

static inline bool has_work(const struct lab *lab)
{
	return shm_conn_has_work(lab->conn);
}

static inline uint64_t counted(struct lab *lab, enum shm_counter counter)
{
	return atomic_load(&lab->engine->counters[counter]);
}

/* A message waits for a Receive. */
static inline bool is_blocked(const struct lab *lab)
{
	return atomic_load(&lab->own->waits) & SHM_WAITS_RECEIVE;
}

/* --- requests --- */

static inline void post_send(struct lab *lab, uint32_t offset, uint32_t len)
{
	assert_true(lab_post(lab, CORE_OP_SEND, offset, len, 0, 0));
}

static inline void post_rdma(struct lab *lab, enum core_op op, uint32_t offset, uint32_t len)
{
	assert_true(lab_post(lab, op, offset, len, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory + offset));
}

/* --- the peer --- */

static inline struct shm_entry write_entry(const struct lab *lab, uint32_t offset, uint32_t len)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_WRITE,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = lab->rkey,
		.address = (uintptr_t)lab->memory + offset,
		.payload = (uint16_t)len,
		.length = len,
	};
}

static inline struct shm_entry read_entry(const struct lab *lab, uint32_t offset, uint32_t len)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_READ,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = lab->rkey,
		.address = (uintptr_t)lab->memory + offset,
		.length = len,
	};
}

/* One entry that answers a Read of ours. */
static inline struct shm_entry data_entry(uint32_t len)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = (uint16_t)len};
}

/* The peer puts that entry into its request ring, or answers; with the bytes of that pattern. */
static inline void peer_puts(struct lab *lab, struct shm_entry entry, uint32_t seed)
{
	uint8_t bytes[SHM_REQUEST_PAYLOAD] = {0};

	fill(bytes, entry.payload, seed);
	assert_true(lab_peer_entry(
		entry.type == SHM_ENTRY_DATA ? &lab->peer_answers : &lab->peer_out, &entry, bytes));
}

/* The same, and a poll of ours. */
static inline void ask(struct lab *lab, struct shm_entry entry, uint32_t seed)
{
	peer_puts(lab, entry, seed);
	lab_pass(lab);
}

/* A message of that length with a Receive for it, which reports `done`; checks what is placed. */
static inline void exchange(struct lab *lab, uint32_t len, uint32_t done)
{
	struct shm_entry entry = lab_send_entry(len);
	uint32_t seed = lab->received;

	entry.done = done;
	memset(lab->memory + 8192, UNTOUCHED, len + 64);
	assert_true(lab_post_receive(lab, 8192, len));
	ask(lab, entry, seed);
	assert_int_equal(lab->received, seed + 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->receive_len, len);
	expect_bytes(lab->memory + 8192, len, seed);
	expect_untouched(lab->memory + 8192 + len, 64);
}

/* The peer takes our next entry, which has that type, length and pattern. */
static inline struct shm_entry expect_entry(struct lab *lab, enum shm_entry_type type, uint32_t len,
					    uint32_t seed)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_true(lab_peer_takes(type == SHM_ENTRY_DATA ? &lab->peer_answers_in : &lab->peer_in,
				   &entry, &payload));
	assert_int_equal(entry.type, type);
	assert_int_equal(entry.length, type == SHM_ENTRY_DATA ? 0 : len);
	assert_int_equal(entry.payload, type == SHM_ENTRY_READ ? 0 : len);
	expect_bytes(payload, entry.payload, seed);
	return entry;
}

/* The connection broke, and our side has told why. */
static inline void expect_refused(const struct lab *lab, enum shm_failed_kind kind,
				  DAT_DTO_COMPLETION_STATUS status)
{
	assert_int_equal(lab->end, BROKEN);
	assert_int_equal(failed_word(lab), SHM_FAILED(kind, status));
}

#endif
