// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows as objects: dat_rmr_create, dat_rmr_query, and what dat_rmr_free refuses. */
#include "bind_util.h"
#include "conf.h"

#include <stdlib.h>

#define MANY 200

/* --- create --- */

/* RMR-CREATE-01 RMR-CREATE-02 RMR-QUERY-01 RMR-QUERY-02 RMR-QUERY-07 RMR-QUERY-09 HANDLE-TYPE-09 */
static void rmr_create__zone__unbound_window_of_that_zone(void **state)
{
	const DAT_RMR_PARAM_MASK all_but_triplet = (DAT_RMR_PARAM_MASK)0x1b;
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr, other;
	DAT_HANDLE_TYPE type;
	DAT_RMR_PARAM param;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	rmr = rmr_create(rig);
	dt_ok(dat_rmr_create(pz, &other));
	dt_ok(dat_get_handle_type(rmr, &type));
	assert_int_equal(type, DAT_HANDLE_TYPE_RMR);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_rmr_query(rmr, all_but_triplet, &param));
	assert_ptr_equal(param.ia_handle, rig->ia.ia);
	assert_ptr_equal(param.pz_handle, rig->ia.pz);
	assert_int_equal(param.mem_priv, DAT_MEM_PRIV_NONE_FLAG);
	assert_int_equal(param.rmr_context, 0);
	dt_ok(dat_rmr_query(other, all_but_triplet, &param));
	assert_ptr_equal(param.pz_handle, pz);
}

/* RMR-CREATE-05 RMR-FREE-01 */
static void rmr_create__many_in_a_zone__distinct(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr[MANY];

	for (int i = 0; i < MANY; i++) {
		rmr[i] = rmr_create(rig);
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(rmr[i], rmr[j]);
	}
	for (int i = 0; i < MANY; i++)
		dt_ok(dat_rmr_free(rmr[i]));
}

/* RMR-CREATE-07 */
static void rmr_create__no_zone__invalid_handle(void **state)
{
	struct rig *rig = *state;
	struct conf_bad bad;
	DAT_RMR_HANDLE rmr;

	conf_bad_make(&rig->ia, &bad);
	conf_refuses(&bad, pz, DAT_INVALID_HANDLE_PZ, dat_rmr_create(pz, &rmr));
	dt_fails_with(dat_rmr_create(rig->x.lmr, &rmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_rmr_create(rmr_create(rig), &rmr), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
}

/* RMR-CREATE-08 GEN-20: A failed create does not count as a user of the zone. */
static void rmr_create__no_place_for_the_handle__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_fails_with(dat_rmr_create(pz, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_ok(dat_pz_free(pz));
}

/* RMR-CREATE-09 IA-QUERY-31 */
static void rmr_create__all_that_there_are__insufficient_resources(void **state)
{
	struct rig *rig = *state;
	const size_t max = (size_t)rig->ia.attr.max_rmrs;
	DAT_RMR_HANDLE *rmr = calloc(max, sizeof(*rmr));
	DAT_RMR_HANDLE surplus;

	assert_true(rig->ia.attr.max_rmrs > 0);
	assert_non_null(rmr);
	for (size_t i = 0; i < max; i++)
		dt_ok(dat_rmr_create(rig->ia.pz, &rmr[i]));
	dt_fails(dat_rmr_create(rig->ia.pz, &surplus), DAT_INSUFFICIENT_RESOURCES);
	dt_ok(dat_rmr_free(rmr[0]));
	dt_ok(dat_rmr_create(rig->ia.pz, &rmr[0]));
	for (size_t i = 0; i < max; i++)
		dt_ok(dat_rmr_free(rmr[i]));
	free(rmr);
}

static void *live_and_die(void *arg)
{
	const DAT_PZ_HANDLE pz = arg;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	for (int i = 0; i < MANY; i++) {
		conf_try(dat_rmr_create(pz, &rmr));
		conf_try(dat_rmr_query(rmr, DAT_RMR_FIELD_PZ_HANDLE, &param));
		if (param.pz_handle != pz)
			return (void *)(uintptr_t) "another zone";
		conf_try(dat_rmr_free(rmr));
	}
	return NULL;
}

/* RMR-CREATE-10 */
static void rmr_create__several_threads__all_succeed(void **state)
{
	struct rig *rig = *state;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	conf_parallel(live_and_die, pz);
	dt_ok(dat_pz_free(pz)); /* each window is counted once */
}

/* --- the zone --- */

/* --- query --- */

/* RMR-QUERY-03 RMR-QUERY-04 RMR-QUERY-05 RMR-QUERY-10 RMR-QUERY-14 RMR-QUERY-08 RMR-QUERY-09 */
static void rmr_query__bound_and_unbound_in_turn__reports_the_last_binding(void **state)
{
	static const DAT_MEM_PRIV_FLAGS privs[] = {0x00, 0x02, 0x20, 0x22, 0x33, 0x01, 0x10};
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);

	rmr_check_unbound(rmr);
	for (size_t i = 0; i < COUNT_OF(privs); i++) {
		const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 100 * i + 1, 50 + i);
		const DAT_RMR_CONTEXT context = bind_now(&rig->b, rmr, range, privs[i]);

		rmr_check_bound(rmr, &range, privs[i], context);
		if (i % 2)
			continue; /* bound again without an unbind */
		unbind_now(&rig->b, rmr);
		rmr_check_unbound(rmr);
	}
	rmr_check_unbound(rmr_create(rig)); /* the binding is one window's */
}

/* RMR-QUERY-06 RMR-QUERY-08 GEN-21 GEN-23 */
static void rmr_query__mask__only_defined_bits(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_RMR_PARAM param;

	assert_int_equal(DAT_RMR_FIELD_IA_HANDLE, 0x01);
	assert_int_equal(DAT_RMR_FIELD_PZ_HANDLE, 0x02);
	assert_int_equal(DAT_RMR_FIELD_LMR_TRIPLET, 0x04);
	assert_int_equal(DAT_RMR_FIELD_MEM_PRIV, 0x08);
	assert_int_equal(DAT_RMR_FIELD_RMR_CONTEXT, 0x10);
	assert_int_equal(DAT_RMR_FIELD_ALL, 0x1f);
	dt_ok(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)0, &param));
	for (unsigned bit = 5; bit < 31; bit++)
		dt_fails_with(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(1u << bit), &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(0x1b | 0x20), &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	for (unsigned mask = 0; mask < 0x20; mask++) {
		const DAT_RETURN ret = dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)mask, &param);

		if (mask & DAT_RMR_FIELD_LMR_TRIPLET)
			dt_fails_with(ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		else
			dt_ok(ret);
	}
	(void)bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE);
	dt_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	dt_fails_with(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)0x3f, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
}

/* --- handles --- */

/* RMR-QUERY-12 RMR-FREE-10 */
static void rmr_query__no_window__invalid_handle(void **state)
{
	struct rig *rig = *state;
	struct conf_bad bad;
	DAT_RMR_PARAM param;

	conf_bad_make(&rig->ia, &bad);
	conf_refuses(&bad, rmr, DAT_INVALID_HANDLE_RMR,
		     dat_rmr_query(rmr, DAT_RMR_FIELD_PZ_HANDLE, &param));
	conf_refuses(&bad, rmr, DAT_INVALID_HANDLE_RMR, dat_rmr_free(rmr));
	dt_fails_with(dat_rmr_query(rig->x.lmr, DAT_RMR_FIELD_PZ_HANDLE, &param),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	dt_fails_with(dat_rmr_free(rig->x.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	dt_fails_with(dat_rmr_free(rig->ia.pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
}

/* RMR-FREE-05 RMR-FREE-11 GEN-16 */
static void rmr_free__used_again__invalid_handle(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 0, 64);
	const DAT_CONTEXT mine = {.as_64 = 1};
	DAT_RMR_CONTEXT context;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT consumer;
	DAT_RMR_PARAM param;

	(void)bind_now(&rig->b, rmr, range, BIND_REMOTE);
	dt_ok(dat_rmr_free(rmr));
	for (int round = 0; round < 2; round++) {
		dt_fails_with(dat_rmr_query(rmr, DAT_RMR_FIELD_PZ_HANDLE, &param),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
		dt_fails_with(dat_rmr_bind(rmr, &range, BIND_REMOTE, rig->b.ep, rmr_cookie(0),
					   DAT_COMPLETION_DEFAULT_FLAG, &context),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
		dt_fails_with(dat_get_handle_type(rmr, &type), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		dt_fails_with(dat_get_consumer_context(rmr, &consumer), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		dt_fails_with(dat_set_consumer_context(rmr, mine), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		dt_fails_with(dat_rmr_free(rmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
		for (int i = 0; i < 1000; i++) {
			const DAT_RMR_HANDLE other = rmr_create(rig);

			assert_ptr_not_equal(other, rmr);
			dt_ok(dat_rmr_free(other));
		}
	}
	dt_no_event(rig->b.request);
	rig_works(rig);
}

/* --- threads --- */

#define STRESS_ROUNDS 300

struct stress {
	struct rig *rig;
	_Atomic(DAT_RMR_HANDLE) rmr; /* replaced by the thread that frees it */
	atomic_int number;
};

static bool is_known(DAT_RETURN ret)
{
	return ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE ||
	       DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES;
}

static void *use_one_window(void *arg)
{
	struct stress *stress = arg;
	struct rig *rig = stress->rig;
	const int me = atomic_fetch_add(&stress->number, 1);
	struct dt_ep *const ep = me % 2 ? &rig->a : &rig->b;
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, (size_t)me, 64);
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;
	DAT_EVENT event;

	for (int i = 0; i < STRESS_ROUNDS; i++) {
		DAT_RMR_HANDLE rmr = atomic_load(&stress->rmr);

		if (!is_known(dat_rmr_bind(rmr, &range, BIND_REMOTE, ep->ep, rmr_cookie(1),
					   DAT_COMPLETION_DEFAULT_FLAG, &context)))
			return (void *)(uintptr_t) "dat_rmr_bind";
		if (!is_known(dat_rmr_query(rmr, DAT_RMR_FIELD_MEM_PRIV, &param)))
			return (void *)(uintptr_t) "dat_rmr_query";
		while (dat_evd_dequeue(ep->request, &event) == DAT_SUCCESS)
			if (event.event_data.rmr_completion_event_data.status != DAT_DTO_SUCCESS)
				return (void *)(uintptr_t) "a bind that failed";
		if (me == 0 && i % 4 == 0) {
			conf_try(dat_rmr_free(rmr));
			conf_try(dat_rmr_create(rig->ia.pz, &rmr));
			atomic_store(&stress->rmr, rmr);
		}
	}
	return NULL;
}

/* Takes events until no bind is outstanding. A single poll may find nothing while another thread
 * of the provider processes them. */
static void drain_until_idle(const struct dt_ep *ep)
{
	DAT_BOOLEAN is_idle = DAT_FALSE;

	while (!is_idle) {
		dt_drain(ep->request);
		dt_ok(dat_ep_get_status(ep->ep, NULL, NULL, &is_idle));
	}
	dt_drain(ep->request);
}

/* RMR-BIND-54 RMR-FREE-13 RMR-QUERY-13 GEN-26: one window, two endpoints, four threads */
static void rmr__used_and_freed_by_several_threads__no_harm(void **state)
{
	struct rig *rig = *state;
	struct stress stress = {.rig = rig};
	struct dt_buf region;

	atomic_init(&stress.rmr, rmr_create(rig));
	conf_parallel(use_one_window, &stress);
	dt_ok(dat_rmr_free(atomic_load(&stress.rmr)));
	/* no window or bind uses the region any more */
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &region);
	drain_until_idle(&rig->a);
	drain_until_idle(&rig->b);
	dt_ok(dat_lmr_free(rig->y.lmr));
	rig->y.lkey = region.lkey;
	rig->y.rkey = region.rkey;
	rig->y.lmr = region.lmr;
	rig_works(rig);
}

struct closing {
	DAT_PZ_HANDLE pz;
	atomic_bool has_begun;
};

static void *create_until_closed(void *arg)
{
	struct closing *closing = arg;
	DAT_RMR_HANDLE rmr;
	DAT_RETURN ret;

	do {
		ret = dat_rmr_create(closing->pz, &rmr);
		atomic_store(&closing->has_begun, true);
	} while (ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES);
	return DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE ? NULL : (void *)(uintptr_t) "another code";
}

static bool has_begun(void *arg)
{
	return atomic_load(&((struct closing *)arg)->has_begun);
}

/* GEN-26 IA-CLOSE-25 IA-CLOSE-07: Windows are created while the instance is closed. */
static void ia_close__windows_being_made__no_harm(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct closing closing = {.has_begun = false};
		pthread_t thread;
		struct dt_ia ia;
		void *failed;

		dt_ia_open(&ia);
		closing.pz = ia.pz;
		assert_int_equal(pthread_create(&thread, NULL, create_until_closed, &closing), 0);
		dt_until(has_begun, &closing);
		dt_ia_abort(&ia);
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(rmr_create__zone__unbound_window_of_that_zone),
		rig_test_bare(rmr_create__many_in_a_zone__distinct),
		rig_test_bare(rmr_create__no_zone__invalid_handle),
		rig_test_bare(rmr_create__no_place_for_the_handle__invalid_parameter),
		rig_test_bare(rmr_create__all_that_there_are__insufficient_resources),
		rig_test_bare(rmr_create__several_threads__all_succeed),
		rig_test(rmr_query__bound_and_unbound_in_turn__reports_the_last_binding),
		rig_test(rmr_query__mask__only_defined_bits),
		rig_test_bare(rmr_query__no_window__invalid_handle),
		rig_test(rmr_free__used_again__invalid_handle),
		rig_test(rmr__used_and_freed_by_several_threads__no_harm),
		cmocka_unit_test(ia_close__windows_being_made__no_harm),
	};

	return cmocka_run_group_tests_name("rmr", tests, NULL, NULL);
}
