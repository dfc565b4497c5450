// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: RDMA Writes into mapped memory.
 */
#include "fast_entry.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/map.h"

/* --- RDMA Writes --- */

static void write__small__whole_at_its_address(void **state)
{
	static const struct {
		uint32_t len, offset;
	} writes[] = {{8, 0},
		      {8, 4096},
		      {8, 3},
		      {1, 0},
		      {2, 1},
		      {3, 5},
		      {7, 0},
		      {9, 0},
		      {16, 8},
		      {17, 1},
		      {64, 0},
		      {100, 1},
		      {255, 7},
		      {256, 0},
		      {256, LAB_MEMORY - 256},
		      {8, LAB_MEMORY - 8}};
	uint32_t count = sizeof(writes) / sizeof(writes[0]);
	struct lab *lab = *state;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t len = writes[i].len, offset = writes[i].offset;

		memset(lab->peer_memory, UNTOUCHED, LAB_MEMORY);
		fill(lab->memory, len, i);
		post_write(lab, len, lab->peer_rkey, offset);
		assert_int_equal(lab->done, i + 1);
		assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
		assert_int_equal(lab->done_len, len);
		expect_untouched(lab->peer_memory, offset);
		expect_bytes(lab->peer_memory + offset, len, i);
		expect_untouched(lab->peer_memory + offset + len, LAB_MEMORY - offset - len);
		assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
		assert_int_equal(counted(lab, SHM_COUNT_MAP), i + 1);
		bytes += len;
		assert_int_equal(lab->ep.counts.bytes[CORE_OP_RDMA_WRITE], bytes);
		assert_int_equal(lab->ep.counts.posted[CORE_OP_RDMA_WRITE], i + 1);
	}
	assert_int_equal(lab->lookups, 0);
	assert_int_equal(lab->fast_posts, count);
	expect_no_entry();
}

/* Longer Writes are not stored with the endpoint locked, so they take the slow path. */
static void write__257_bytes__by_the_slow_path(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	fill(lab->memory, 257, 3);
	post_write(lab, 256, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	post_write(lab, 257, lab->peer_rkey, 1000);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 1);
	expect_bytes(lab->peer_memory, 256, 3);
	expect_untouched(lab->peer_memory + 256, 744);
	expect_bytes(lab->peer_memory + 1000, 257, 3);
	assert_int_equal(lab->done, 2);
}

static void write__suppressed__no_completion(void **state)
{
	struct lab *lab = *state;

	lab->next_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(lab->ep.req.head, 1);
	assert_int_equal(lab->done, 0); /* DTO-13 */
}

/* LMR-FREE-21: while bytes are copied, the owner can see that the key is in use. */
static void write__while_it_copies__key_is_announced(void **state)
{
	struct lab *lab = *state;
	uint8_t *memory = lab->memory;

	/* the bytes that are written are the announcement itself */
	lab->memory = (uint8_t *)&lab->conn->mine->announce;
	lab->lmr->address = (uintptr_t)lab->memory;
	core_mem_cache_fill(&lab->mem, LAB_LOCAL_KEY, &lab->ep.cached_source);
	post_write(lab, sizeof(uint32_t), lab->peer_rkey, 0);
	lab->memory = memory;
	assert_int_equal(lab->fast_posts, 1);
	assert_memory_equal(lab->peer_memory, &lab->peer_rkey, sizeof(uint32_t));
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
}

/* The region that the endpoint has cached is freed between the check of the post and the copy. */
static void write__memory_gone__protection_error_and_nothing_stored(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->lmr->key, 0);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 0);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_untouched(lab->peer_memory, 8);
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, BROKEN);
}

/* DTO-91 DTO-92 DTO-93 DTO-94 DTO-97: the key decides, not the mapping, and no byte changes. */
static void write__key_not_good__access_error_and_nothing_stored(void **state)
{
	static const struct {
		uint32_t right, zone, length, len, offset;
		bool is_dead;
	} cases[] = {
		{SOFT_RIGHT_REMOTE_WRITE, 9, LAB_MEMORY, 8, 0, true},
		{SOFT_RIGHT_REMOTE_READ, 9, LAB_MEMORY, 8, 0, false},
		{SOFT_RIGHT_REMOTE_WRITE, 8, LAB_MEMORY, 8, 0, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, 64, 8, 57, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, 64, 100, 0, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, LAB_MEMORY, 8, LAB_MEMORY - 7, false},
		{SOFT_RIGHT_REMOTE_WRITE, 9, LAB_MEMORY, 8, (uint32_t)-8, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lab *lab = open_lab(true);
		uint32_t key;

		assert_int_equal(soft_keys_add(lab->peer_keys, (uintptr_t)lab->peer_memory,
					       cases[i].length, cases[i].right, cases[i].zone,
					       &key),
				 0);
		if (cases[i].is_dead)
			soft_keys_invalidate(lab->peer_keys, key);
		lab->map.key = key;
		fill(lab->memory, 200, 1);
		post_write(lab, cases[i].len, key, cases[i].offset);
		assert_int_equal(lab->done, 1);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
		assert_int_equal(counted(lab, SHM_COUNT_MAP), 0);
		assert_int_equal(lab->fast_posts, 0);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		soft_keys_invalidate(lab->peer_keys, key);
		soft_keys_release(lab->peer_keys, key);
		shm_conn_finish(lab->conn, &lab->ep);
		assert_int_equal(lab->end, BROKEN);
		close_lab(lab);
	}
}

/* Nothing is written to a peer that has ended the connection, whatever its table says. */
static void write__gate_closed__nothing_stored(void **state)
{
	static const uint32_t lengths[] = {8, 3, 100};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct lab *lab = open_lab(true);

		memset(lab->memory, 1, 200);
		atomic_store(&lab->peer->revoked, 1);
		post_write(lab, lengths[i], lab->peer_rkey, 0);
		assert_int_equal(lab->done, 0);
		assert_int_equal(lab->fast_posts, 0);
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
		assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		close_lab(lab);
	}
}

/* DTO-40 DTO-41: ring writes come first. */
static void write__another_in_the_ring__behind_it(void **state)
{
	struct lab *lab = *state;

	lab->map.key = 1;
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->conn->ring_writes, 1);
	lab->map.key = lab->peer_rkey;
	fill(lab->memory, 8, 1);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->done, 0);
	expect_untouched(lab->peer_memory, 64);
	assert_int_equal(lab->conn->ring_writes, 2);
	assert_int_equal(lab->fast_posts, 0);
	atomic_store(&lab->peer->done, lab->conn->sent);
	lab_pass(lab);
	assert_int_equal(lab->fast_polls, 1);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->conn->ring_writes, 0);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	expect_bytes(lab->peer_memory, 8, 1);
}

/* A mapping that does not allow the Write is not used. */
static void write__mapping_not_usable__by_the_slow_path(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct lab *lab = open_lab(false);

		if (i == 0)
			lab->map.key++;
		else if (i == 1)
			lab->map.is_writable = false;
		else if (i == 2)
			lab->map = (struct shm_map){.state = SHM_MAP_FREE};
		else if (i == 3)
			lab->map.region.length = 7;
		else if (i == 4)
			lab->conn->remote.last_map = NULL;
		else
			lab->conn->is_unfenced = false; /* it would need a fence */
		fill(lab->memory, 8, 1);
		post_write(lab, 8, lab->peer_rkey, 0);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		assert_int_equal(lab->conn->ring_writes, 1);
		close_lab(lab);
	}
}

/* A Write finishes before the earlier Send, and both completions are raised in order. */
static void write__behind_a_send__raised_behind_it(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_write(lab, 8, lab->peer_rkey, 0);
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_int_equal(lab->ep.req.head, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 2);
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 3);
	assert_int_equal(lab->done, 3);
}

/*
 * A Write that is alone takes no slot. So the next request finds what an earlier lap has left in
 * its slot.
 */
static void write__laps_without_a_slot__requests_behind_it_complete(void **state)
{
	struct lab *lab = *state;
	uint32_t laps = 2 * (uint32_t)(lab->ep.req.mask + 1) + 1, done = 0;

	for (uint32_t i = 0; i < laps; i++) {
		const uint64_t head = lab->ep.req.head;

		post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
		post_write(lab, 8, lab->peer_rkey, 0);
		lab->next_flags = DAT_COMPLETION_SUPPRESS_FLAG;
		post_write(lab, 8, lab->peer_rkey, 0);
		assert_int_equal(lab->ep.req.head, head);
		assert_int_equal(lab->done, done);
		atomic_store(&lab->peer->done, lab->conn->sent);
		lab_pass(lab);
		done += 2;
		assert_int_equal(lab->ep.req.head, head + 3);
		assert_int_equal(lab->done, done);
		for (uint32_t j = 0; j < laps; j++)
			post_write(lab, 8, lab->peer_rkey, 0);
		done += laps;
		assert_int_equal(lab->done, done);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		TEST(write__small__whole_at_its_address),
		TEST(write__257_bytes__by_the_slow_path),
		TEST(write__suppressed__no_completion),
		TEST(write__while_it_copies__key_is_announced),
		TEST(write__memory_gone__protection_error_and_nothing_stored),
		cmocka_unit_test(write__key_not_good__access_error_and_nothing_stored),
		cmocka_unit_test(write__gate_closed__nothing_stored),
		RING_TEST(write__another_in_the_ring__behind_it),
		cmocka_unit_test(write__mapping_not_usable__by_the_slow_path),
		TEST(write__behind_a_send__raised_behind_it),
		TEST(write__laps_without_a_slot__requests_behind_it_complete),
	};

	return cmocka_run_group_tests_name("shm fast", tests, NULL, NULL);
}
