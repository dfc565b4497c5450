// SPDX-License-Identifier: BSD-2-Clause
/*
 * Protection zones: creation, use by other objects, release and query. test_lmr_use.c and
 * ../dto/test_dto_segments.c test zones in transfers.
 */
#include "conf.h"

#define PZ_MANY 200

static void check_alive(struct dt_ia *ia, DAT_PZ_HANDLE pz)
{
	DAT_PZ_PARAM param;

	dt_ok(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	assert_ptr_equal(param.ia_handle, ia->ia);
}

/* PZ-CREATE-01 PZ-CREATE-02 PZ-FREE-01 */
static void pz_create__several__distinct_zones(void **state)
{
	struct dt_ia *ia = *state;
	DAT_PZ_HANDLE pz[PZ_MANY];
	DAT_HANDLE_TYPE type;

	for (size_t i = 0; i < PZ_MANY; i++) {
		pz[i] = DAT_HANDLE_NULL;
		dt_ok(dat_pz_create(ia->ia, &pz[i]));
		dt_ok(dat_get_handle_type(pz[i], &type));
		assert_int_equal(type, DAT_HANDLE_TYPE_PZ);
		assert_ptr_not_equal(pz[i], ia->pz);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(pz[i], pz[j]);
	}
	for (size_t i = 0; i < PZ_MANY; i++) {
		check_alive(ia, pz[i]);
		dt_ok(dat_pz_free(pz[i]));
	}
}

/* PZ-CREATE-05 */
static void pz_create__no_ia__invalid_handle(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ia closed;
	DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

	dt_ia_open(&closed);
	const DAT_IA_HANDLE gone = closed.ia;

	dt_ia_close(&closed);
	dt_fails_with(dat_pz_create(gone, &pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_pz_create(DAT_HANDLE_NULL, &pz), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_pz_create(ia->pz, &pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_pz_create(ia->async, &pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_pz_create((DAT_IA_HANDLE)(uintptr_t)0x7ffffff1, &pz), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
}

/* PZ-CREATE-06 */
static void pz_create__null_out__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;

	dt_fails_with(dat_pz_create(ia->ia, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void *create_query_free(void *arg)
{
	struct dt_ia *ia = arg;
	DAT_PZ_HANDLE pz[PZ_MANY];
	DAT_PZ_PARAM param;

	for (size_t i = 0; i < PZ_MANY; i++)
		conf_try(dat_pz_create(ia->ia, &pz[i]));
	for (size_t i = 0; i < PZ_MANY; i++) {
		conf_try(dat_pz_query(pz[i], DAT_PZ_FIELD_ALL, &param));
		if (param.ia_handle != ia->ia)
			return (void *)(uintptr_t) "another IA";
		/* If two threads got the same zone, it would be freed twice. */
		conf_try(dat_pz_free(pz[i]));
	}
	return NULL;
}

/* PZ-CREATE-08 PZ-FREE-11 GEN-25 */
static void pz_create__in_parallel__all_distinct(void **state)
{
	conf_parallel(create_query_free, *state);
}

struct one_zone {
	DAT_PZ_HANDLE pz;
	atomic_int freed;
	atomic_int unexpected;
};

static void *free_it(void *arg)
{
	struct one_zone *zone = arg;
	const DAT_RETURN ret = dat_pz_free(zone->pz);

	if (ret == DAT_SUCCESS)
		atomic_fetch_add(&zone->freed, 1);
	else if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&zone->unexpected, 1);
	return NULL;
}

/* PZ-FREE-11 GEN-26 */
static void pz_free__same_zone_in_parallel__freed_once(void **state)
{
	struct dt_ia *ia = *state;

	for (int round = 0; round < 50; round++) {
		struct one_zone zone = {.freed = 0};

		dt_ok(dat_pz_create(ia->ia, &zone.pz));
		conf_parallel(free_it, &zone);
		assert_int_equal(zone.freed, 1);
		assert_int_equal(zone.unexpected, 0);
	}
}

/* PZ-FREE-02 PZ-FREE-06 PZ-FREE-07 */
static void pz_free__zone_of_an_endpoint__invalid_state(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ep ep, second;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(ia->ia, &pz));
	dt_ep_create(ia, pz, NULL, &ep);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	check_alive(ia, pz);
	dt_ep_create(ia, pz, NULL, &second);
	dt_ep_free(&ep);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	dt_ep_free(&second);
	dt_ok(dat_pz_free(pz));
}

/* PZ-FREE-03 PZ-FREE-06 PZ-FREE-07 LMR-CREATE-61 LMR-FREE-18 */
static void pz_free__zone_of_a_region__invalid_state(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_buf buf, second;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(ia->ia, &pz));
	dt_buf_create(ia, pz, &buf, 64, CONF_LOCAL);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	check_alive(ia, pz);
	dt_buf_create(ia, pz, &second, 64, CONF_LOCAL);
	dt_buf_free(&buf);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	dt_buf_free(&second);
	dt_ok(dat_pz_free(pz));
}

/* PZ-FREE-04 PZ-FREE-06 PZ-FREE-07 RMR-CREATE-04 RMR-FREE-04 */
static void pz_free__zone_of_a_window__invalid_state(void **state)
{
	struct dt_ia *ia = *state;
	DAT_RMR_HANDLE rmr, second;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(ia->ia, &pz));
	dt_ok(dat_rmr_create(pz, &rmr));
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	check_alive(ia, pz);
	dt_ok(dat_rmr_create(pz, &second));
	dt_ok(dat_rmr_free(rmr));
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	dt_ok(dat_rmr_free(second));
	dt_ok(dat_pz_free(pz));
}

/* PZ-FREE-08 PZ-FREE-09 */
static void pz_free__used_afterwards__invalid_handle(void **state)
{
	struct dt_ia *ia = *state;
	static unsigned char bytes[64];
	const DAT_REGION_DESCRIPTION region = {.for_va = bytes};
	DAT_PZ_HANDLE pz;
	DAT_PZ_PARAM param;
	DAT_LMR_HANDLE lmr;
	DAT_EP_HANDLE ep;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context = {.as_64 = 1};

	dt_ok(dat_pz_create(ia->ia, &pz));
	dt_ok(dat_pz_free(pz));
	dt_fails_with(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(bytes), pz,
				     CONF_LOCAL, &lmr, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_ep_create(ia->ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				    NULL, &ep),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_get_handle_type(pz, &type), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_get_consumer_context(pz, &context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_set_consumer_context(pz, context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
}

/* PZ-FREE-10 PZ-QUERY-04 */
static void pz_free__no_zone__invalid_handle(void **state)
{
	struct dt_ia *ia = *state;
	struct conf_bad bad;
	DAT_PZ_PARAM param;

	conf_bad_make(ia, &bad);
	conf_refuses(&bad, h, DAT_INVALID_HANDLE_PZ, dat_pz_free(h));
	conf_refuses(&bad, h, DAT_INVALID_HANDLE_PZ, dat_pz_query(h, DAT_PZ_FIELD_ALL, &param));
	check_alive(ia, ia->pz);
}

/* PZ-QUERY-01 GEN-24 */
static void pz_query__ia_handle__owner(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ia second;
	DAT_PZ_PARAM param = {.ia_handle = DAT_HANDLE_NULL};

	assert_int_equal(DAT_PZ_FIELD_ALL, DAT_PZ_FIELD_IA_HANDLE);
	assert_int_equal(DAT_PZ_FIELD_IA_HANDLE, 0x01);
	dt_ok(dat_pz_query(ia->pz, DAT_PZ_FIELD_IA_HANDLE, &param));
	assert_ptr_equal(param.ia_handle, ia->ia);
	dt_ia_open(&second);
	check_alive(&second, second.pz);
	check_alive(ia, ia->pz);
	dt_ia_close(&second);
}

/* PZ-QUERY-02 GEN-21 GEN-23 */
static void pz_query__masks__only_defined_bits(void **state)
{
	struct dt_ia *ia = *state;
	DAT_PZ_PARAM param;

	for (unsigned bit = 1; bit < 31; bit++)
		dt_fails_with(dat_pz_query(ia->pz, (DAT_PZ_PARAM_MASK)(1u << bit), &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_pz_query(ia->pz, (DAT_PZ_PARAM_MASK)3, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_ok(dat_pz_query(ia->pz, (DAT_PZ_PARAM_MASK)0, &param));
}

/* PZ-QUERY-03 */
static void pz_query__null_param__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;

	dt_fails_with(dat_pz_query(ia->pz, DAT_PZ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

static void *query_often(void *arg)
{
	struct dt_ia *ia = arg;
	DAT_PZ_PARAM param;

	for (int i = 0; i < 2000; i++) {
		conf_try(dat_pz_query(ia->pz, DAT_PZ_FIELD_ALL, &param));
		if (param.ia_handle != ia->ia)
			return (void *)(uintptr_t) "another IA";
	}
	return NULL;
}

/* PZ-QUERY-05 GEN-25 */
static void pz_query__in_parallel__same_answer(void **state)
{
	conf_parallel(query_often, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(pz_create__several__distinct_zones),
		dt_ia_test(pz_create__no_ia__invalid_handle),
		dt_ia_test(pz_create__null_out__invalid_parameter),
		dt_ia_test(pz_create__in_parallel__all_distinct),
		dt_ia_test(pz_free__same_zone_in_parallel__freed_once),
		dt_ia_test(pz_free__zone_of_an_endpoint__invalid_state),
		dt_ia_test(pz_free__zone_of_a_region__invalid_state),
		dt_ia_test(pz_free__zone_of_a_window__invalid_state),
		dt_ia_test(pz_free__used_afterwards__invalid_handle),
		dt_ia_test(pz_free__no_zone__invalid_handle),
		dt_ia_test(pz_query__ia_handle__owner),
		dt_ia_test(pz_query__masks__only_defined_bits),
		dt_ia_test(pz_query__null_param__invalid_parameter),
		dt_ia_test(pz_query__in_parallel__same_answer),
	};

	return cmocka_run_group_tests_name("pz", tests, NULL, NULL);
}
