// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts of one segment: the checks of its memory, and the remembered region.
 */
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "post_use.h"

/* DTO-84 LMR-USE-01 */
static void post__at_the_edges_of_the_region__refused_outside(void **state)
{
	static const struct {
		int64_t offset;
		DAT_VLEN length;
		bool is_good;
	} cases[] = {
		{0, LENGTH, true},
		{LENGTH - 1, 1, true},
		{LENGTH - 8, 8, true},
		{LENGTH - 8, 9, false},
		{LENGTH, 1, false},
		{0, LENGTH + 1, false},
		{1, LENGTH, false},
		{-1, 1, false},
		{-1, 2, false},
		{0, UINT64_MAX, false},
		{1, UINT64_MAX, false},
		{LENGTH - 1, UINT64_MAX, false},
		{-8, (DAT_VLEN)-8, false},
		{INT64_MIN, 8, false},
		/* empty segments are always accepted */
		{0, 0, true},
		{LENGTH, 0, true},
		{-1, 0, true},
	};

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		remember_region(kind);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			DAT_LMR_TRIPLET iov = segment(key, cases[i].offset, cases[i].length);

			expect(kind, &iov, 0,
			       cases[i].is_good ? DAT_SUCCESS
						: error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
		}
	}
}

/* LMR-USE-09 EP-RECV-04 EP-RDMAR-06 EP-RDMAW-07: of any context. The next post works. */
static void post__empty_segment__left_out(void **state)
{
	DAT_LMR_TRIPLET good = segment(key, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		remember_region(kind);
		for (unsigned is_own = 0; is_own < 2; is_own++) {
			complete_all();
			assert_int_equal(post(kind, segment(is_own ? key : CORE_MEM_MAX - 1, 0, 0)),
					 DAT_SUCCESS);
			if (kind == RECEIVE)
				assert_int_equal(core_recv_next(ep)->segments, 0);
			else
				assert_int_equal(mock.req->segments, 0);
			assert_int_equal(post(kind, good), DAT_SUCCESS);
		}
	}
}

/* LMR-USE-04 LMR-USE-05 */
static void post__another_context__privileges_violation(void **state)
{
	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		DAT_LMR_TRIPLET none = segment(0, 0, 8), other = segment(key + 1, 0, 8);

		remember_region(kind);
		expect(kind, &none, 0, privileges_error(kind));
		expect(kind, &other, 0, privileges_error(kind));
	}
}

/* DTO-95 */
static void post__region_freed__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8), none = segment(0, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		expect(kind, &iov, 0, privileges_error(kind));
		/* the slot has key 0 now, which no region has */
		expect(kind, &none, 0, privileges_error(kind));
	}
}

/* Frees the region, and makes regions until one has the same slot. */
static DAT_LMR_CONTEXT reuse_slot(DAT_MEM_PRIV_FLAGS privileges)
{
	const struct core_lmr *slot = core_mem_slot(ep->ia->mem, key);
	DAT_LMR_CONTEXT next;

	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	while (lmr = new_lmr(privileges, &next), core_mem_slot(ep->ia->mem, next) != slot)
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	return next;
}

static void post__slot_reused__old_key_refused_and_new_one_accepted(void **state)
{
	DAT_LMR_TRIPLET old = segment(key, 0, 8), new;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	new = segment(reuse_slot(DAT_MEM_PRIV_ALL_FLAG), 0, 8);
	assert_int_not_equal(new.lmr_context, old.lmr_context);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		expect(kind, &old, 0, privileges_error(kind));
		expect(kind, &new, 0, DAT_SUCCESS);
	}
}

/* DTO-86 DTO-87; the privilege to write includes the one to read (LMR-CREATE-39). */
static void post__slot_reused_with_other_privileges__new_ones_apply(void **state)
{
	DAT_LMR_TRIPLET iov;

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	iov = segment(reuse_slot(DAT_MEM_PRIV_LOCAL_READ_FLAG), 0, 8);
	expect(SEND, &iov, 0, DAT_SUCCESS);
	expect(WRITE, &iov, 0, DAT_SUCCESS);
	expect(RECEIVE, &iov, 0, privileges_error(RECEIVE));
	key = iov.lmr_context;
	iov = segment(reuse_slot(DAT_MEM_PRIV_LOCAL_WRITE_FLAG), 0, 8);
	expect(SEND, &iov, 0, DAT_SUCCESS);
	expect(RECEIVE, &iov, 0, DAT_SUCCESS);
	key = iov.lmr_context;
	iov = segment(reuse_slot(DAT_MEM_PRIV_REMOTE_READ_FLAG), 0, 8);
	expect(SEND, &iov, 0, privileges_error(SEND));
	expect(RECEIVE, &iov, 0, privileges_error(RECEIVE));
}

/* When all keys of a slot were used, the first one is issued again. */
static void post__key_issued_again__new_region_applies(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	for (enum kind kind = 0; kind < KINDS; kind++)
		remember_region(kind);
	core_mem_slot(ep->ia->mem, key)->generation--;
	assert_int_equal(reuse_slot(DAT_MEM_PRIV_REMOTE_READ_FLAG), key);
	for (enum kind kind = 0; kind < KINDS; kind++)
		expect(kind, &iov, 0, privileges_error(kind));
}

/* Of a large region only a part around the address is remembered. */
static void core_mem_know_around__each_address__part_of_that_size(void **state)
{
	static const struct {
		DAT_VADDR at, from;
		DAT_VLEN most, length;
	} cases[] = {
		{1050, 1000, UINT64_MAX, 100}, {1050, 1000, 100, 100}, {1099, 1000, 101, 100},
		{1000, 1000, 10, 10},	       {1005, 1000, 10, 10},   {1006, 1001, 10, 10},
		{1050, 1045, 10, 10},	       {1094, 1089, 10, 10},   {1095, 1090, 10, 10},
		{1099, 1090, 10, 10},	       {1099, 1001, 99, 99},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_mem_cache region = {.address = 1000, .length = 100};

		core_mem_cache_shrink(&region, cases[i].at, cases[i].most);
		assert_int_equal(region.address, cases[i].from);
		assert_int_equal(region.length, cases[i].length);
	}
}

/* The upper half of the name counts publish and revoke; it is odd while the slot has a key. */
static void core_mem_publish__each_use__another_name(void **state)
{
	struct core_lmr *slot = core_mem_slot(ep->ia->mem, key);
	uint64_t name = atomic_load(&slot->name), next;

	(void)state;
	assert_int_equal((uint32_t)name, key);
	assert_int_equal(name >> 32 & 1, 1);
	for (int i = 0; i < 3; i++) {
		slot->generation--; /* issues the same key again */
		core_mem_revoke(ep->ia->mem, slot);
		next = atomic_load(&slot->name);
		assert_int_equal(next, ((name >> 32) + 1) << 32);
		assert_int_equal(core_mem_publish(ep->ia->mem, slot), key);
		next = atomic_load(&slot->name);
		assert_int_equal(next, name + (UINT64_C(2) << 32));
		name = next;
	}
}

static void move_to_zone(DAT_EP_HANDLE endpoint, DAT_PZ_HANDLE zone)
{
	DAT_EP_PARAM param = {.pz_handle = zone};

	assert_int_equal(core_ep_modify(endpoint, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
}

/* DTO-85 LMR-USE-02: the remembered region is checked again for the new zone. */
static void post_recv__zone_of_the_endpoint_changed__protection_violation(void **state)
{
	DAT_EP_HANDLE endpoint = mock_ep(&ia);
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 99};
	DAT_PZ_HANDLE other;

	(void)state;
	assert_int_equal(core_pz_create(ia.ia, &other), DAT_SUCCESS);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0), DAT_SUCCESS);
	move_to_zone(endpoint, other);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0),
			 error(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE));
	move_to_zone(endpoint, ia.pz);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0), DAT_SUCCESS);
	assert_int_equal(core_ep_free(endpoint), DAT_SUCCESS);
	assert_int_equal(core_pz_free(other), DAT_SUCCESS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(post__at_the_edges_of_the_region__refused_outside),
		T(post__empty_segment__left_out),
		T(post__another_context__privileges_violation),
		T(post__region_freed__refused),
		T(post__slot_reused__old_key_refused_and_new_one_accepted),
		T(post__slot_reused_with_other_privileges__new_ones_apply),
		T(post__key_issued_again__new_region_applies),
		T(core_mem_know_around__each_address__part_of_that_size),
		T(core_mem_publish__each_use__another_name),
		T(post_recv__zone_of_the_endpoint_changed__protection_violation),
	};

	return cmocka_run_group_tests_name("core post memory", tests, NULL, NULL);
}
