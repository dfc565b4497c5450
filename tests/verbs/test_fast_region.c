// SPDX-License-Identifier: BSD-2-Clause
/*
 * The region that an endpoint has last posted from or into, which the fast path (src/verbs/fast.c)
 * knows: its key and bounds are used while it exists and belongs to the endpoint's zone, and no
 * longer. The provider's own thread is held, so that only the test's calls do anything.
 */
#include "fast_lab.h"

/* After a post from another region, the fast path knows that one. */
static void post__another_region__known_from_then_on(void **state)
{
	(void)state;
	make_odd();
	for (int call = 1; call <= 2; call++) {
		assert_int_equal(post_other(call), DAT_SUCCESS);
		if (call == 2)
			assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 32);
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(post_other(call), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(
			(call == 2 ? device.recv_sge : device.send_sge).lkey,
			core_mem_slot(inner(&rig.a)->ia->mem, odd.other_key)->local_keys[0]);
		if (call == 2) {
			expect(&rig.b, 1, 8);
			assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		}
		expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 32);
	}
}

/* LMR-FREE-06: the region of the last posts is gone */
static void post__known_region_freed__refused(void **state)
{
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_seg(1, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		expect(&rig.b, 1, 8);
		assert_true(is_fast(rig.a.ep));
	}
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (int call = 0; call <= 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 8),
				 DAT_CLASS_ERROR | (call == 2 ? NO_KEY(WRITE) : NO_KEY(READ)));
	assert_int_equal(write_len(&rig.a, 8, 3), DAT_SUCCESS);
	expect(&rig.a, 3, 8);
}

/*
 * A slot has a limited number of keys, after which a key names another region. Then the fast path
 * must not use the device key and the bounds of the old region.
 */
static void post__known_key_issued_again__other_region_counts(void **state)
{
	struct core_mem *mem = inner(&rig.a)->ia->mem;
	DAT_LMR_CONTEXT first, key;
	uint32_t old_key;
	DAT_LMR_HANDLE lmr;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &first);
	for (int call = 1; call <= 2; call++)
		assert_int_equal(post_seg(call, first, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	for (int i = 0; i < 2; i++)
		expect(&rig.a, ODD_COOKIE, 8);
	expect(&rig.b, 1, 8);
	assert_ptr_equal(inner(&rig.a)->cached_source.lmr, core_mem_slot(mem, first));
	assert_ptr_equal(inner(&rig.a)->cached_target.lmr, core_mem_slot(mem, first));
	old_key = core_mem_slot(mem, first)->local_keys[0];
	core_mem_slot(mem, first)->generation--;
	do {
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		lmr = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &key);
	} while (core_mem_slot(mem, key) != core_mem_slot(mem, first));
	assert_int_equal(key, first);
	for (int call = 0; call <= 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 65),
				 DAT_CLASS_ERROR | BAD_ARG(3));
	for (int call = 1; call <= 2; call++) {
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_not_equal((call == 2 ? device.recv_sge : device.send_sge).lkey, old_key);
	}
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	for (int i = 0; i < 2; i++)
		expect(&rig.a, ODD_COOKIE, 8);
	expect(&rig.b, 1, 8);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
}

/* Requests from one region, Receives into another, small one: no byte behind it is accepted. */
static void post__regions_of_their_own__each_with_its_key_and_end(void **state)
{
	struct core_mem *mem = inner(&rig.a)->ia->mem;

	(void)state;
	make_odd();
	for (int call = 0; call <= 2; call++) {
		DAT_LMR_CONTEXT other = call == 2 ? rig.lkey : odd.other_key;
		DAT_LMR_CONTEXT little = odd.little_key;

		for (int i = 0; i < 3; i++) {
			/* the last post to the other queue was in another region */
			assert_int_equal(
				post_seg(call == 2 ? 1 : 2, other, (uintptr_t)rig.memory, 8),
				DAT_SUCCESS);
			if (call != 2)
				assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
			expect(&rig.a, ODD_COOKIE, 8);
			if (call != 1)
				assert_int_equal(call ? send_len(&rig.b, 8, 2)
						      : recv_len(&rig.b, 64, 2),
						 DAT_SUCCESS);
			assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory, 64),
					 DAT_SUCCESS);
			assert_true(is_fast(rig.a.ep));
			assert_int_equal((call == 2 ? device.recv_sge : device.send_sge).lkey,
					 core_mem_slot(mem, little)->local_keys[0]);
			expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 64);
			assert_true(is_fast(rig.a.ep));
			for (DAT_VLEN len = 65; len < MESSAGE_MAX; len *= 2)
				assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory, len),
						 DAT_CLASS_ERROR | BAD_ARG(3));
			assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory + 1, 64),
					 DAT_CLASS_ERROR | BAD_ARG(3));
			expect_none(rig.a.dto);
			(void)drain(rig.b.dto);
		}
	}
}

/* Another region in the slot of the known one: only the new bounds count. */
static void post__place_of_the_known_region_used_again__its_own_bounds(void **state)
{
	const uint32_t mask = CORE_MEM_MAX - 1;
	DAT_LMR_CONTEXT known, key = 0;
	DAT_LMR_HANDLE lmr;
	unsigned tries = 0;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &known);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_seg(1, known, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
	}
	do {
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		lmr = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &key);
	} while ((key & mask) != (known & mask) && ++tries < 1000);
	assert_int_equal(key & mask, known & mask);
	assert_true(is_fast(rig.a.ep));
	for (int call = 0; call < 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 65),
				 DAT_CLASS_ERROR | BAD_ARG(3));
	assert_true(is_fast(rig.a.ep));
}

/* DTO-85: a region of the former zone is checked again */
static void ep_modify__another_zone__known_region_refused(void **state)
{
	DAT_EP_PARAM param;

	(void)state;
	let_go();
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(core_pz_create(rig.ia, &param.pz_handle), DAT_SUCCESS);
	assert_int_equal(core_ep_modify(rig.a.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
	join();
	fake_hold(true);
	own_all();
	assert_int_equal(send_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_READ);
	assert_int_equal(write_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_READ);
	assert_int_equal(recv_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_WRITE);
}

/* The region of a Receive that was refused for lack of room is known from then on. */
static void post_recv__region_of_a_refused_one__in_order(void **state)
{
	const struct vrb_conn *conn = conn_of(&rig.a);

	(void)state;
	make_odd();
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(recv_len(&rig.a, 64, 10 + i), DAT_SUCCESS);
	assert_int_equal(post_other(2),
			 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 10, 8);
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(post_other(2), DAT_SUCCESS);
	assert_int_equal(vrb_recv_out(conn, inner(&rig.a)), ROOM);
	assert_int_equal(conn->recv_next, inner(&rig.a)->recv.tail);
	assert_int_equal(device.recv_sge.length, 32);
	for (uint64_t i = 1; i <= ROOM; i++)
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
	for (uint64_t i = 1; i < ROOM; i++)
		expect(&rig.a, 10 + i, 8);
	expect(&rig.a, ODD_COOKIE, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(post__another_region__known_from_then_on),
		RIG_TEST(post__known_region_freed__refused),
		RIG_TEST(post__known_key_issued_again__other_region_counts),
		RIG_TEST(post__regions_of_their_own__each_with_its_key_and_end),
		RIG_TEST(post__place_of_the_known_region_used_again__its_own_bounds),
		RIG_TEST(ep_modify__another_zone__known_region_refused),
		RIG_TEST(post_recv__region_of_a_refused_one__in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
