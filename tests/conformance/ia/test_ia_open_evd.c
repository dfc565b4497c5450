// SPDX-License-Identifier: BSD-2-Clause
/*
 * The asynchronous EVD of dat_ia_open: one that it creates, and one of another instance.
 */
#include "ia_open.h"

static DAT_EVD_PARAM query_evd(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	dt_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param;
}

static void expect_overflow(DAT_EVD_HANDLE async, DAT_EVD_HANDLE evd)
{
	const DAT_EVENT event = dt_event(async);

	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, evd);
}

/* --- an asynchronous EVD of its own --- */

/* IA-OPEN-04 IA-OPEN-05 IA-OPEN-06 IA-OPEN-09 EVD-QUERY-07 */
static void ia_open__null_evd__makes_one(void **state)
{
	static const DAT_COUNT lengths[] = {1, 2, 17, 1000};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
		DAT_HANDLE_TYPE type;

		dt_ok(try_open(dt_adapter(), lengths[i], &async, &ia));
		dt_ok(dat_get_handle_type(async, &type));
		assert_int_equal(type, DAT_HANDLE_TYPE_EVD);
		const DAT_EVD_PARAM param = query_evd(async);

		assert_true(param.evd_flags & DAT_EVD_ASYNC_FLAG);
		assert_true(param.evd_qlen >= lengths[i]);
		assert_null(param.cno_handle);
		assert_ptr_equal(param.ia_handle, ia);
		assert_int_equal(param.evd_state & 0xf,
				 DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
		dt_no_event(async);
		close_ok(ia);
	}
}

/* IA-OPEN-08 EVD-RESIZE-12 */
static void ia_open__evd_it_made__can_be_resized(void **state)
{
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_ok(dat_evd_resize(ia.async, 100));
	assert_true(query_evd(ia.async).evd_qlen >= 100);
	dt_ok(dat_evd_resize(ia.async, 3));
	assert_true(query_evd(ia.async).evd_qlen >= 3);
	dt_ia_close(&ia);
}

/* IA-OPEN-07 EVD-MODIFY-CNO-11 */
static void ia_open__evd_it_made__takes_a_cno(void **state)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_CNO_HANDLE cno;
	struct dt_ia ia;
	struct dt_ep ep;

	(void)state;
	dt_ia_open(&ia);
	dt_ok(dat_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(ia.async, cno));
	assert_ptr_equal(query_evd(ia.async).cno_handle, cno);
	const DAT_EVD_HANDLE full = overflow(&ia, &ep);

	dt_ok(dat_cno_wait(cno, DT_WAIT_US, &evd));
	assert_ptr_equal(evd, ia.async);
	expect_overflow(ia.async, full);
	dt_ok(dat_evd_modify_cno(ia.async, DAT_HANDLE_NULL));
	assert_null(query_evd(ia.async).cno_handle);
	dt_ok(dat_cno_free(cno));
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

/* IA-OPEN-10 IA-OPEN-34 */
static void ia_open__queue_length_not_positive__invalid_parameter(void **state)
{
	static const DAT_COUNT lengths[] = {0, -1, INT32_MIN};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

		dt_fails_with(try_open(dt_adapter(), lengths[i], &async, &ia),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		assert_null(ia);
	}
}

/* IA-OPEN-11 IA-OPEN-34 */
static void ia_open__queue_length_above_the_limit__insufficient_resources(void **state)
{
	struct dt_ia probe;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

	(void)state;
	dt_ia_open(&probe);
	const DAT_COUNT max = probe.attr.max_evd_qlen;

	dt_ia_close(&probe);
	assert_true(max > 0);
	if (max == INT32_MAX)
		skip();
	dt_fails_with(try_open(dt_adapter(), max + 1, &async, &ia), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEVD);
	assert_null(ia);
	async = DAT_HANDLE_NULL;
	dt_fails_with(try_open(dt_adapter(), INT32_MAX, &async, &ia), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEVD);
}

/* --- an asynchronous EVD of another instance --- */

/* IA-OPEN-12 IA-OPEN-13 IA-QUERY-01 */
static void ia_open__evd_passed_in__used_whatever_the_length(void **state)
{
	static const DAT_COUNT lengths[] = {0, -1, 5, INT32_MAX};
	struct dt_ia owner;

	(void)state;
	dt_ia_open(&owner);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = owner.async, queried = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		dt_ok(try_open(dt_adapter(), lengths[i], &async, &ia));
		assert_ptr_equal(async, owner.async);
		dt_ok(dat_ia_query(ia, &queried, 0, NULL, 0, NULL));
		assert_ptr_equal(queried, owner.async);
		close_ok(ia); /* no EVD of its own */
		dt_ok(dat_ia_query(owner.ia, &queried, 0, NULL, 0, NULL));
		assert_ptr_equal(queried, owner.async);
	}
	dt_ia_close(&owner);
}

/* IA-OPEN-14 IA-OPEN-23 EVD-CREATE-25 CONN-EVT-42 */
static void ia_open__consumers_evd_passed_in__gets_the_events(void **state)
{
	struct dt_ia owner, borrower;
	struct dt_ep ep;
	DAT_EVD_HANDLE mine;

	(void)state;
	dt_ia_open(&owner);
	mine = dt_evd_create(&owner, 8, DAT_EVD_ASYNC_FLAG);
	dt_ia_open(&borrower);
	const DAT_EVD_HANDLE unused = borrower.async;
	struct dt_ia second = {.async = mine};

	dt_ok(try_open(dt_adapter(), 0, &second.async, &second.ia));
	dt_ok(dat_ia_query(second.ia, NULL, DAT_IA_FIELD_ALL, &second.attr, 0, NULL));
	dt_ok(dat_pz_create(second.ia, &second.pz));
	expect_overflow(mine, overflow(&second, &ep));
	dt_stays_empty(owner.async);
	dt_no_event(unused);
	dt_no_event(mine);
	dt_ep_free(&ep);
	dt_ia_close(&second);
	/* An event of the other instance does not arrive there. */
	expect_overflow(borrower.async, overflow(&borrower, &ep));
	dt_stays_empty(mine);
	dt_no_event(owner.async);
	dt_ep_free(&ep);
	dt_ia_close(&borrower);
	dt_ok(dat_evd_free(mine));
	dt_ia_close(&owner);
}

static void check_refused_evd(DAT_EVD_HANDLE passed)
{
	DAT_EVD_HANDLE async = passed;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

	dt_fails_with(try_open(dt_adapter(), 8, &async, &ia), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_ASYNC);
	assert_ptr_equal(async, passed);
	assert_null(ia);
}

/* IA-OPEN-15 IA-OPEN-16 IA-OPEN-18 IA-OPEN-22 IA-OPEN-34 */
static void ia_open__no_asynchronous_evd__invalid_handle(void **state)
{
	struct dt_ia ia, gone;
	uint64_t memory[32] = {0};

	(void)state;
	dt_ia_open(&ia);
	dt_ia_open(&gone);
	const DAT_EVD_HANDLE dead = gone.async;

	dt_ia_close(&gone);
	const DAT_EVD_HANDLE dto = dt_evd_create(&ia, 4, DAT_EVD_DTO_FLAG);
	const DAT_EVD_HANDLE others =
		dt_evd_create(&ia, 4, DAT_EVD_DEFAULT_FLAG & ~DAT_EVD_ASYNC_FLAG);

	check_refused_evd(dead);
	check_refused_evd(ia.pz);
	if (ia.ia != DAT_EVD_ASYNC_EXISTS)
		check_refused_evd(ia.ia);
	check_refused_evd(DAT_EVD_OUT_OF_SCOPE);
	check_refused_evd(memory + 16);
	check_refused_evd((char *)ia.async + 1);
	check_refused_evd(dto);
	check_refused_evd(others);
	dt_ok(dat_evd_free(dto));
	dt_ok(dat_evd_free(others));
	dt_ia_close(&ia);
}

/* Opens another adapter of the registry, if there is one. */
static bool open_another(struct dt_ia *ia)
{
	static DAT_PROVIDER_INFO info[8];
	DAT_PROVIDER_INFO *list[8];
	DAT_COUNT count = 0;

	for (int i = 0; i < 8; i++)
		list[i] = &info[i];
	if (dat_registry_list_providers(8, &count, list) != DAT_SUCCESS)
		return false;
	for (DAT_COUNT i = 0; i < count; i++) {
		memset(ia, 0, sizeof(*ia));
		if (strcmp(info[i].ia_name, dt_adapter()) != 0 &&
		    try_open(info[i].ia_name, 4, &ia->async, &ia->ia) == DAT_SUCCESS)
			return true;
	}
	return false;
}

/* IA-OPEN-17 IA-OPEN-18 */
static void ia_open__evd_of_another_adapter__invalid_handle(void **state)
{
	struct dt_ia other;

	(void)state;
	if (!open_another(&other))
		skip(); /* this host has one adapter only */
	check_refused_evd(other.async);
	close_ok(other.ia);
}

/* IA-OPEN-19 IA-OPEN-20 IA-OPEN-21 IA-QUERY-02 */
static void ia_open__evd_exists_elsewhere__out_of_scope(void **state)
{
	static const DAT_COUNT lengths[] = {0, -5, 8};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS, queried = DAT_HANDLE_NULL;
		struct dt_ia ia;
		struct dt_ep ep;

		memset(&ia, 0, sizeof(ia));
		dt_ok(try_open(dt_adapter(), lengths[i], &async, &ia.ia));
		assert_ptr_equal(async, DAT_EVD_OUT_OF_SCOPE);
		dt_ok(dat_ia_query(ia.ia, &queried, DAT_IA_FIELD_ALL, &ia.attr, 0, NULL));
		assert_ptr_equal(queried, DAT_EVD_OUT_OF_SCOPE);
		/* An asynchronous event without an EVD is dropped. */
		dt_ok(dat_pz_create(ia.ia, &ia.pz));
		overflow(&ia, &ep);
		dt_ep_free(&ep);
		dt_ia_close(&ia);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__null_evd__makes_one),
		cmocka_unit_test(ia_open__evd_it_made__can_be_resized),
		cmocka_unit_test(ia_open__evd_it_made__takes_a_cno),
		cmocka_unit_test(ia_open__queue_length_not_positive__invalid_parameter),
		cmocka_unit_test(ia_open__queue_length_above_the_limit__insufficient_resources),
		cmocka_unit_test(ia_open__evd_passed_in__used_whatever_the_length),
		cmocka_unit_test(ia_open__consumers_evd_passed_in__gets_the_events),
		cmocka_unit_test(ia_open__no_asynchronous_evd__invalid_handle),
		cmocka_unit_test(ia_open__evd_of_another_adapter__invalid_handle),
		cmocka_unit_test(ia_open__evd_exists_elsewhere__out_of_scope),
	};

	return cmocka_run_group_tests_name("ia open evd", tests, NULL, NULL);
}
