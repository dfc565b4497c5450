// SPDX-License-Identifier: BSD-2-Clause
/*
 * Binds of memory windows that wait for requests in front of them, and binds of one RMR by several
 * endpoints.
 */
#include "window_lab.h"

/* b posts a Send that finds no Receive. */
static void hold_up(void)
{
	assert_int_equal(rig_send(&rig, &rig.b, 64, 1, 0), DAT_SUCCESS);
}

static void release_waiting(void)
{
	assert_int_equal(rig_recv(&rig, &rig.a, 64, 2), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
}

/* RMR-BIND-39 RMR-BIND-38: flushed, although the device has bound the window already */
static void rmr_bind__waiting_at_the_end__as_it_was(void **state)
{
	DAT_RMR_CONTEXT old, never;

	(void)state;
	old = bound(HALF, 64);
	hold_up();
	never = bind_range(HALF + 512, 64, 6);
	rig_part(&rig);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_FLUSHED);
	expect_bind(6, DAT_DTO_ERR_FLUSHED);
	rig_reset(&rig);
	rig_again(&rig);
	check_write(old, HALF, true);
	check_write(never, HALF + 512, false);
	check_write(bound(HALF + 512, 64), HALF + 512, true);
	check_write(old, HALF, false);
}

/* RMR-BIND-01 RMR-BIND-52 RMR-BIND-12: several, of two RMRs, with requests between them */
static void rmr_bind__several_waiting__in_order(void **state)
{
	DAT_RMR_CONTEXT first, second, other, context;
	DAT_RMR_HANDLE more;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &more), DAT_SUCCESS);
	context = bound(HALF, 64);
	hold_up();
	first = bind_range(HALF + 512, 64, 11);
	assert_int_equal(bind_seg(more, rig_seg(&rig, HALF + 2048, 64), 12, 0, &other),
			 DAT_SUCCESS);
	assert_int_equal(rig_write(&rig, &rig.b, 64, 13, 0), DAT_SUCCESS);
	second = bind_range(HALF + 1024, 64, 14);
	assert_int_equal(rig_write(&rig, &rig.b, 64, 15, DAT_COMPLETION_SUPPRESS_FLAG),
			 DAT_SUCCESS);
	rig_no_event(rig.b.dto);
	release_waiting();
	expect_bind(11, DAT_RMR_BIND_SUCCESS);
	expect_bind(12, DAT_RMR_BIND_SUCCESS);
	rig_expect_dto(&rig.b, 13, DAT_DTO_SUCCESS);
	expect_bind(14, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(rig_write(&rig, &rig.b, 64, 16, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 16, DAT_DTO_SUCCESS);
	check_write(second, HALF + 1024, true);
	check_write(other, HALF + 2048, true);
	check_write(first, HALF + 512, false);
	check_write(context, HALF, false);
}

/* RMR-FREE-12 RMR-FREE-06 RMR-FREE-03: behind a request, and with its work requests under way */
static void rmr_free__bind_under_way__both_contexts_end(void **state)
{
	(void)state;
	for (int is_held = 0; is_held < 2; is_held++) {
		DAT_RMR_CONTEXT old, never;

		old = bound(HALF, 64);
		if (is_held)
			hold_up();
		never = bind_range(HALF + 512, 64, 6);
		assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
		check_write(old, HALF, false); /* which flushes the requests that wait */
		while (rig_event(rig.b.dto).event_number == DAT_RMR_BIND_COMPLETION_EVENT)
			;
		check_write(never, HALF + 512, false);
		assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	}
	assert_int_equal(core_lmr_free(rig.lmr), DAT_SUCCESS);
}

/*
 * RMR-BIND-28 RMR-BIND-29: possible when the device has unbound the window; before, it would refuse
 */
static void lmr_free__window_bound_elsewhere__after_the_event(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	int before;

	(void)state;
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, RIG_LEN, rig.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &lmr, &seg.lmr_context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	assert_int_equal(bind_seg(rmr, seg, 1, 0, &context), DAT_SUCCESS);
	expect_bind(1, DAT_RMR_BIND_SUCCESS);
	hold_up();
	(void)bind_range(HALF, 64, 2);
	assert_int_equal(core_lmr_free(lmr),
			 core_error(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE));
	release_waiting();
	expect_bind(2, DAT_RMR_BIND_SUCCESS);
	before = fake_live();
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	assert_int_equal(fake_live(), before - 1);
}

/* RMR-BIND-39 RMR-BIND-53 EP-FREE-10: the endpoint is freed while its bind is under way */
static void ep_free__bind_under_way__as_it_was(void **state)
{
	DAT_RMR_CONTEXT old;

	(void)state;
	old = bound(HALF, 64);
	hold_up();
	(void)bind_range(HALF + 512, 64, 6);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(
		core_ep_create(rig.ia, rig.pz, rig.b.dto, rig.b.dto, rig.b.conn, NULL, &rig.b.ep),
		DAT_SUCCESS);
	rig_again(&rig);
	check_write(old, HALF, true);
	assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
	check_write(old, HALF, false);
}

/*
 * RMR-BIND-53 RMR-BIND-10: binds by two endpoints at once, in either order; the later one remains
 */
static void rmr_bind__over_two_endpoints__one_binding_left(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF + 512, 64);
	DAT_RMR_CONTEXT old, on_b, on_a;
	DAT_EVENT event;

	(void)state;
	old = bound(HALF, 64);
	hold_up();
	on_b = bind_range(HALF + 1024, 64, 3);
	assert_int_equal(core_rmr_bind(rmr, &seg, BIND_REMOTE, rig.a.ep,
				       (DAT_RMR_COOKIE){.as_64 = 4}, 0, &on_a),
			 DAT_SUCCESS);
	event = rig_event(rig.a.dto);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
	release_waiting();
	expect_bind(3, DAT_RMR_BIND_SUCCESS);
	check_write(on_b, HALF + 1024, true);
	check_write(on_a, HALF + 512, false);
	check_write(old, HALF, false);
}

/* RMR-BIND-42 RMR-BIND-49 DTO-16: entries become free, those of the second work requests too */
static void rmr_bind__many_suppressed__places_come_back(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);
	DAT_RMR_CONTEXT context = 0;
	unsigned posted = 0;

	(void)state;
	while (posted < 1000) {
		DAT_RETURN ret = bind_seg(rmr, seg, posted, DAT_COMPLETION_SUPPRESS_FLAG, &context);

		if (ret == DAT_SUCCESS)
			posted++;
		else
			assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
		rig_no_event(rig.b.dto);
	}
	assert_int_equal(rig_write(&rig, &rig.b, 8, 5, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 5, DAT_DTO_SUCCESS);
	check_write(context, HALF, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WINDOW_TEST(name) cmocka_unit_test_setup_teardown(name, window_setup, window_teardown)
		WINDOW_TEST(rmr_bind__waiting_at_the_end__as_it_was),
		WINDOW_TEST(rmr_bind__several_waiting__in_order),
		WINDOW_TEST(rmr_free__bind_under_way__both_contexts_end),
		WINDOW_TEST(lmr_free__window_bound_elsewhere__after_the_event),
		WINDOW_TEST(ep_free__bind_under_way__as_it_was),
		WINDOW_TEST(rmr_bind__over_two_endpoints__one_binding_left),
		WINDOW_TEST(rmr_bind__many_suppressed__places_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
