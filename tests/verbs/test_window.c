// SPDX-License-Identifier: BSD-2-Clause
/*
 * RMRs with memory windows of the device: which binds use one, what happens when one of their work
 * requests or calls fails, and that the consumer notices none of it.
 */
#include "window_lab.h"

#include <stdlib.h>
#include <sys/mman.h>

/* The value of a named attribute of dat_ia_query. */
static const char *attribute(const char *name)
{
	static DAT_IA_ATTR attr;

	assert_int_equal(
		core_ia_query(rig.ia, NULL,
			      DAT_IA_FIELD_IA_TRANSPORT_ATTR | DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR,
			      &attr, 0, NULL),
		DAT_SUCCESS);
	for (DAT_COUNT i = 0; i < attr.num_transport_attr; i++)
		if (!strcmp(attr.transport_attr[i].name, name))
			return attr.transport_attr[i].value;
	return "";
}

/* RMR-BIND-55: what a bind uses, by device and setting; the effect is the same */
static void rmr_bind__device_and_setting__window_or_registration(void **state)
{
	static const struct {
		const char *setting;
		bool has_windows, is_rxe, uses_windows;
		const char *text;
	} cases[] = {
		{"", true, false, true, "type 1"},
		{"auto", true, false, true, "type 1"},
		{"auto", true, true, false, "type 1, bounds unchecked"},
		{"auto", false, false, false, "none"},
		{"window", true, true, true, "type 1, bounds unchecked"},
		{"window", false, false, false, "none"},
		{"registration", true, false, false, "type 1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool uses = cases[i].uses_windows;
		unsigned before = fake_binds();
		DAT_RMR_CONTEXT context;

		assert_int_equal(setenv("DAT_RMR_BIND", cases[i].setting, 1), 0);
		fake_windows(cases[i].has_windows, cases[i].is_rxe);
		window_setup(state);
		assert_string_equal(attribute("rmr_bind"), uses ? "window" : "registration");
		assert_string_equal(attribute("memory_windows"), cases[i].text);
		context = bound(HALF, 64);
		assert_int_equal(fake_binds() - before, uses);
		assert_int_equal(fake_mws(), uses);
		check_write(context, HALF, true);
		check_write(context, HALF + 57, false);
		window_teardown(state);
	}
	assert_int_equal(unsetenv("DAT_RMR_BIND"), 0);
	fake_windows(true, false);
}

/* RMR-BIND-55: a library without windows, even if its device reports them */
static void ia_open__no_window_can_be_made__registration(void **state)
{
	rig.qual = 0;
	fake_fail_next("ibv_alloc_mw");
	window_setup(state);
	assert_string_equal(fake_failed(), "ibv_alloc_mw");
	fake_fail_at(0);
	assert_string_equal(attribute("rmr_bind"), "registration");
	check_write(bound(HALF, 64), HALF, true);
	assert_int_equal(fake_mws(), 0);
	window_teardown(state);
}

/*
 * RMR-BIND-10 RMR-BIND-27: two work requests for each bind, and no more windows than are bound at a
 * time
 */
static void rmr_bind__again_and_again__windows_used_again(void **state)
{
	const unsigned before = fake_binds();
	DAT_RMR_CONTEXT context = 0, old = bound(HALF, 64);

	(void)state;
	for (unsigned i = 1; i <= 30; i++) {
		context = bound(HALF + 64 * i, 64);
		assert_int_equal(fake_binds() - before, 1 + 2 * i);
		assert_int_equal(fake_mws(), 2);
		check_write(context, HALF + 64 * i, true);
		if (i % 10 == 0)
			check_write(old, HALF + 64 * (i - 1), false);
		old = context;
	}
	unbound();
	assert_int_equal(fake_binds() - before, 62);
	assert_int_equal(fake_mws(), 2);
	check_write(context, HALF + 64 * 30, false);
	check_write(bound(HALF, 8), HALF, true);
}

/* RMR-BIND-08: although a window's keys are counted in 8 bits */
static void rmr_bind__more_often_than_a_window_has_keys__no_key_twice(void **state)
{
	static DAT_RMR_CONTEXT contexts[600];

	(void)state;
	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		contexts[i] = bound(HALF, 64);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(contexts[i], contexts[j]);
		assert_in_range(fake_mws(), 1, 2);
	}
}

/*
 * RMR-BIND-12 RMR-BIND-13: a request behind a bind is posted without a thread that takes
 * completions
 */
static void rmr_bind__request_behind_it__posted_at_once(void **state)
{
	unsigned before;

	(void)state;
	(void)bound(HALF, 64);
	assert_int_equal(rig_recv(&rig, &rig.a, 64, 1), DAT_SUCCESS);
	before = fake_posts();
	(void)bind_range(HALF + 64, 64, 2);
	assert_int_equal(rig_send(&rig, &rig.b, 64, 3, 0), DAT_SUCCESS);
	assert_int_equal(fake_posts() - before, 3); /* bind, unbind, Send */
	expect_bind(2, DAT_RMR_BIND_SUCCESS);
	rig_expect_dto(&rig.b, 3, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
}

/*
 * RMR-BIND-20 RMR-BIND-22: memory that is not writable takes no windows, and is registered instead
 */
static void rmr_bind__region_not_writable__registration(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	const unsigned before = fake_binds();
	DAT_LMR_TRIPLET seg, into = rig_seg(&rig, HALF, 8);
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_TRIPLET from = {.target_address = (uintptr_t)rig.memory + 512, .segment_length = 8};

	(void)state;
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, rig.pz,
					 DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	seg = rig_seg(&rig, 512, 8);
	seg.lmr_context = context;
	assert_int_equal(core_rmr_bind(rmr, &seg, DAT_MEM_PRIV_REMOTE_READ_FLAG, rig.b.ep,
				       (DAT_RMR_COOKIE){.as_64 = 1}, 0, &from.rmr_context),
			 DAT_SUCCESS);
	expect_bind(1, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(fake_binds(), before);
	memset(rig.memory + 512, 0x3c, 8);
	assert_int_equal(
		core_ep_post_rdma_read(rig.a.ep, 1, &into, (DAT_DTO_COOKIE){.as_64 = 2}, &from, 0),
		DAT_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	assert_memory_equal(rig.memory + 512, rig.memory + HALF, 8);
	/* then with a window, and back */
	check_write(bound(HALF, 64), HALF, true);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	check_write(from.rmr_context, 512, false);
}

/* --- calls that fail --- */

/* RMR-BIND-55 GEN-20: each call of a rebind fails in turn; it succeeds by other means */
static void rmr_bind__a_call_fails__other_means(void **state)
{
	static const char *const names[] = {"ibv_alloc_mw", "ibv_bind_mw",
					    "ibv_bind_mw of nothing"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		DAT_RMR_CONTEXT old, context;
		DAT_RMR_HANDLE spare;

		old = bound(HALF, 64);
		if (i == 0) { /* the zone has no window left */
			assert_int_equal(core_rmr_create(rig.pz, &spare), DAT_SUCCESS);
			assert_int_equal(bind_seg(spare, rig_seg(&rig, 0, 8), 3, 0, &context),
					 DAT_SUCCESS);
			expect_bind(3, DAT_RMR_BIND_SUCCESS);
		}
		fake_fail_next(names[i]);
		context = bound(HALF + 512, 64);
		assert_string_equal(fake_failed(), names[i]);
		fake_fail_at(0);
		check_write(context, HALF + 512, true);
		check_write(old, HALF, false);
		rig_no_event(rig.b.dto);
	}
}

/* RMR-FREE-02 RMR-FREE-06 RMR-FREE-03: with each way to bind the RMR */
static void rmr_free__bound_by_either__context_refused(void **state)
{
	for (int i = 0; i < 2; i++) {
		DAT_RMR_CONTEXT context;

		(void)state;
		if (i == 1)
			fake_fail_next("ibv_bind_mw");
		context = bound(HALF, 64);
		fake_fail_at(0);
		check_write(context, HALF, true);
		assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
		check_write(context, HALF, false);
		assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	}
	assert_int_equal(core_lmr_free(rig.lmr), DAT_SUCCESS);
}

/* RMR-BIND-55: a window of such a device is no longer than 2 GiB */
static void rmr_bind__longer_than_a_window__registration(void **state)
{
	const size_t length = ((size_t)1 << 31) + 4096;
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_LMR_TRIPLET seg = {.virtual_address = (uintptr_t)memory, .segment_length = length};
	DAT_LMR_TRIPLET from = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = {.target_address = (uintptr_t)memory + length - 8,
			      .segment_length = 8};
	const unsigned before = fake_binds();
	DAT_LMR_HANDLE lmr;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, length, rig.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &lmr, &seg.lmr_context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	assert_int_equal(bind_seg(rmr, seg, 1, 0, &to.rmr_context), DAT_SUCCESS);
	expect_bind(1, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(fake_binds(), before);
	memset(rig.memory, 0x42, 8);
	assert_int_equal(
		core_ep_post_rdma_write(rig.a.ep, 1, &from, (DAT_DTO_COOKIE){.as_64 = 2}, &to, 0),
		DAT_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	assert_memory_equal((unsigned char *)memory + length - 8, rig.memory, 8);
	assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	assert_int_equal(munmap(memory, length), 0);
}

/* --- work requests that fail --- */

/* The events after a work request of b has failed. */
static void expect_broken(void)
{
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/* RMR-BIND-14 RMR-BIND-39 RMR-BIND-43: the device refuses the bind */
static void rmr_bind__fails_in_the_device__broken_and_as_it_was(void **state)
{
	DAT_RMR_CONTEXT old, never;

	(void)state;
	old = bound(HALF, 64);
	fake_status(IBV_WC_MW_BIND_ERR);
	assert_int_equal(bind_seg(rmr, rig_seg(&rig, HALF + 512, 64), 9,
				  DAT_COMPLETION_SUPPRESS_FLAG, &never),
			 DAT_SUCCESS);
	expect_bind(9, DAT_RMR_OPERATION_FAILED);
	expect_broken();
	check_write(never, HALF + 512, false);
	check_write(old, HALF, true);
	check_write(bound(HALF + 512, 64), HALF + 512, true);
	check_write(old, HALF, false);
}

/*
 * RMR-BIND-07 RMR-BIND-10: the bind is done, and the work request that unbinds the old window fails
 */
static void rmr_bind__unbind_fails_in_the_device__old_context_ends(void **state)
{
	static const enum ibv_wc_status statuses[] = {IBV_WC_MW_BIND_ERR, IBV_WC_WR_FLUSH_ERR};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		DAT_RMR_CONTEXT old, context;

		old = bound(HALF, 64);
		fake_unbind_status(statuses[i]);
		context = bind_range(HALF + 512, 64, 4);
		expect_bind(4, DAT_RMR_BIND_SUCCESS);
		expect_broken();
		check_write(old, HALF, false);
		check_write(context, HALF + 512, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rmr_bind__device_and_setting__window_or_registration),
		cmocka_unit_test(ia_open__no_window_can_be_made__registration),
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, window_setup, window_teardown)
		RIG_TEST(rmr_bind__again_and_again__windows_used_again),
		RIG_TEST(rmr_bind__more_often_than_a_window_has_keys__no_key_twice),
		RIG_TEST(rmr_bind__request_behind_it__posted_at_once),
		RIG_TEST(rmr_bind__region_not_writable__registration),
		RIG_TEST(rmr_bind__a_call_fails__other_means),
		RIG_TEST(rmr_free__bound_by_either__context_refused),
		RIG_TEST(rmr_bind__longer_than_a_window__registration),
		RIG_TEST(rmr_bind__fails_in_the_device__broken_and_as_it_was),
		RIG_TEST(rmr_bind__unbind_fails_in_the_device__old_context_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
