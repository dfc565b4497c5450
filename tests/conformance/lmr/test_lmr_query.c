// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_lmr_query, and the two calls that make memory consistent with RDMA: dat_lmr_sync_rdma_read
 * and dat_lmr_sync_rdma_write. The latter have the same rules and are tested by the same functions.
 */
#include "conf.h"

#define PAGE 4096u

/* --- query --- */

/* Asks for one field at a time and for all, from a poisoned structure. */
static void check_query(DAT_LMR_HANDLE lmr, const DAT_LMR_PARAM *want)
{
	static const unsigned masks[] = {0x001, 0x002, 0x004, 0x008, 0x010, 0x020,
					 0x040, 0x080, 0x100, 0x200, 0x3ff};

	for (size_t i = 0; i < COUNT_OF(masks); i++) {
		const unsigned m = masks[i];
		DAT_LMR_PARAM got;

		memset(&got, 0xee, sizeof(got));
		dt_ok(dat_lmr_query(lmr, (DAT_LMR_PARAM_MASK)m, &got));
		assert_true(!(m & DAT_LMR_FIELD_IA_HANDLE) || got.ia_handle == want->ia_handle);
		assert_true(!(m & DAT_LMR_FIELD_MEM_TYPE) || got.mem_type == want->mem_type);
		assert_true(!(m & DAT_LMR_FIELD_REGION_DESC) ||
			    got.region_desc.for_va == want->region_desc.for_va);
		assert_true(!(m & DAT_LMR_FIELD_LENGTH) || got.length == want->length);
		assert_true(!(m & DAT_LMR_FIELD_PZ_HANDLE) || got.pz_handle == want->pz_handle);
		assert_true(!(m & DAT_LMR_FIELD_MEM_PRIV) || got.mem_priv == want->mem_priv);
		assert_true(!(m & DAT_LMR_FIELD_LMR_CONTEXT) ||
			    got.lmr_context == want->lmr_context);
		assert_true(!(m & DAT_LMR_FIELD_RMR_CONTEXT) ||
			    got.rmr_context == want->rmr_context);
		assert_true(!(m & DAT_LMR_FIELD_REGISTERED_SIZE) ||
			    got.registered_size == want->registered_size);
		assert_true(!(m & DAT_LMR_FIELD_REGISTERED_ADDRESS) ||
			    got.registered_address == want->registered_address);
	}
}

/* LMR-QUERY-01 LMR-QUERY-02 LMR-QUERY-03 LMR-QUERY-04 LMR-QUERY-05 LMR-QUERY-06 LMR-QUERY-07
 * LMR-QUERY-08 LMR-QUERY-09 LMR-QUERY-10 GEN-22 GEN-24 */
static void lmr_query__each_field__as_created(void **state)
{
	static const DAT_MEM_PRIV_FLAGS privileges[] = {
		DAT_MEM_PRIV_NONE_FLAG,	      DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		DAT_MEM_PRIV_READ_FLAG,	      DAT_MEM_PRIV_ALL_FLAG,
		DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG};
	static const DAT_MEM_TYPE types[] = {DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_SO_VIRTUAL};
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(2 * PAGE);
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(pair->ia.ia, &pz));
	for (size_t i = 0; i < COUNT_OF(privileges) * 2; i++) {
		DAT_LMR_PARAM want = {.ia_handle = pair->ia.ia,
				      .mem_type = types[i % 2],
				      .region_desc = {.for_va = p + 3},
				      .length = PAGE + 1,
				      .pz_handle = pz,
				      .mem_priv = privileges[i / 2]};
		DAT_LMR_HANDLE lmr;

		dt_ok(dat_lmr_create(want.ia_handle, want.mem_type, want.region_desc, want.length,
				     pz, want.mem_priv, &lmr, &want.lmr_context, &want.rmr_context,
				     &want.registered_size, &want.registered_address));
		check_query(lmr, &want);
		dt_ok(dat_lmr_free(lmr));
	}
	dt_ok(dat_pz_free(pz));
	dt_mem_free(p, 2 * PAGE);
}

/* LMR-QUERY-02 LMR-QUERY-03 LMR-QUERY-04 LMR-QUERY-14 */
static void lmr_query__region_made_from_a_region__length_of_the_source(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf source;
	DAT_LMR_HANDLE lmr;

	dt_buf_create(&pair->ia, pair->ia.pz, &source, PAGE + 100, CONF_LOCAL);
	DAT_LMR_PARAM want = {.ia_handle = pair->ia.ia,
			      .mem_type = DAT_MEM_TYPE_LMR,
			      .region_desc = {.for_lmr_handle = source.lmr},
			      .length = PAGE + 100,
			      .pz_handle = pair->ia.pz,
			      .mem_priv = DAT_MEM_PRIV_ALL_FLAG};

	dt_ok(dat_lmr_create(want.ia_handle, want.mem_type, want.region_desc, 17, pair->ia.pz,
			     want.mem_priv, &lmr, &want.lmr_context, &want.rmr_context,
			     &want.registered_size, &want.registered_address));
	check_query(lmr, &want);
	dt_ok(dat_lmr_free(source.lmr));
	source.lmr = DAT_HANDLE_NULL;
	check_query(lmr, &want);
	dt_ok(dat_lmr_free(lmr));
	dt_buf_free(&source);
}

/* LMR-QUERY-11 LMR-QUERY-12 GEN-21 GEN-23 */
static void lmr_query__mask_or_pointer_wrong__invalid_parameter(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf;
	DAT_LMR_PARAM param;

	assert_int_equal(DAT_LMR_FIELD_ALL, 0x3ff);
	dt_buf_create(&pair->ia, pair->ia.pz, &buf, PAGE, CONF_LOCAL);
	for (unsigned bit = 10; bit < 31; bit++)
		dt_fails_with(
			dat_lmr_query(buf.lmr, (DAT_LMR_PARAM_MASK)(0x3ffu | 1u << bit), &param),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_lmr_query(buf.lmr, (DAT_LMR_PARAM_MASK)0x400, &param),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_lmr_query(buf.lmr, DAT_LMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_lmr_query(buf.lmr, (DAT_LMR_PARAM_MASK)0, &param));
	dt_buf_free(&buf);
}

/* --- synchronisation --- */

typedef DAT_RETURN (*sync_fn)(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count);

static const sync_fn syncs[] = {dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write};

/* LMR-SYNC-READ-03 LMR-SYNC-READ-04 LMR-SYNC-READ-05 LMR-SYNC-READ-06 LMR-SYNC-READ-07
 * LMR-SYNC-READ-17 LMR-SYNC-WRITE-05 LMR-SYNC-WRITE-06 LMR-SYNC-WRITE-07 LMR-SYNC-WRITE-08
 * LMR-SYNC-WRITE-09 */
static void lmr_sync__ranges_of_several_regions_and_zones__no_effect(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf first, second;
	DAT_PZ_HANDLE other;

	dt_ok(dat_pz_create(pair->ia.ia, &other));
	dt_buf_create(&pair->ia, pair->ia.pz, &first, PAGE, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&pair->ia, other, &second, PAGE, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(first.p, PAGE, 1);
	dt_fill(second.p, PAGE, 2);
	const DAT_LMR_TRIPLET segments[] = {
		dt_seg(&first, 0, PAGE),   dt_seg(&second, 0, PAGE),	dt_seg(&first, 7, 9),
		dt_seg(&second, 100, 300), dt_seg(&first, PAGE - 1, 1),
	};
	DAT_LMR_TRIPLET copy[COUNT_OF(segments)];

	memcpy(copy, segments, sizeof(copy));
	for (size_t i = 0; i < COUNT_OF(syncs); i++)
		dt_ok(syncs[i](pair->ia.ia, copy, COUNT_OF(copy)));
	assert_memory_equal(copy, segments, sizeof(copy));
	dt_check_pattern(first.p, PAGE, 1);
	dt_check_pattern(second.p, PAGE, 2);
	dt_no_event(pair->a.request);
	dt_no_event(pair->b.recv);
	dt_stays_empty(pair->ia.async);
	dt_buf_free(&first);
	dt_buf_free(&second);
	dt_ok(dat_pz_free(other));
}

/* LMR-SYNC-READ-01 LMR-SYNC-READ-02 LMR-SYNC-WRITE-01 LMR-SYNC-WRITE-02 LMR-SYNC-WRITE-03
 * LMR-SYNC-WRITE-04 IA-QUERY-56 */
static void lmr_sync__around_rdma__data_is_the_newest(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf local, target;
	DAT_LMR_TRIPLET range;

	assert_int_equal(pair->ia.provider.lmr_sync_req, DAT_FALSE);
	dt_buf_create(&pair->ia, pair->ia.pz, &local, PAGE, CONF_LOCAL);
	dt_buf_create(&pair->ia, pair->ia.pz, &target, PAGE, DAT_MEM_PRIV_ALL_FLAG);
	range = dt_seg(&target, 0, PAGE);
	for (uint32_t round = 0; round < 8; round++) {
		const bool with_sync = round % 2;

		dt_fill(target.p, PAGE, round);
		if (with_sync)
			dt_ok(dat_lmr_sync_rdma_read(pair->ia.ia, &range, 1));
		conf_read(pair, dt_seg(&local, 0, PAGE), dt_rseg(&target, 0, PAGE));
		dt_check_pattern(local.p, PAGE, round);
		dt_fill(local.p, PAGE, round + 100);
		if (with_sync)
			dt_ok(dat_lmr_sync_rdma_write(pair->ia.ia, &range, 1));
		conf_write(pair, dt_seg(&local, 0, PAGE), dt_rseg(&target, 0, PAGE));
		if (with_sync)
			dt_ok(dat_lmr_sync_rdma_write(pair->ia.ia, &range, 1));
		dt_check_pattern(target.p, PAGE, round + 100);
	}
	dt_buf_free(&local);
	dt_buf_free(&target);
}

/* LMR-SYNC-READ-10 LMR-SYNC-WRITE-11 */
static void lmr_sync__no_ia__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf;

	dt_buf_create(&pair->ia, pair->ia.pz, &buf, PAGE, CONF_LOCAL);
	const DAT_LMR_TRIPLET segment = dt_seg(&buf, 0, 8);

	for (size_t i = 0; i < COUNT_OF(syncs); i++) {
		dt_fails_with(syncs[i](DAT_HANDLE_NULL, &segment, 1), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
		dt_fails_with(syncs[i](pair->ia.pz, &segment, 1), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
		dt_fails_with(syncs[i](buf.lmr, &segment, 1), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
		dt_fails_with(syncs[i]((DAT_IA_HANDLE)(uintptr_t)0x7ffffff1, &segment, 1),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	}
	dt_buf_free(&buf);
}

/* LMR-SYNC-READ-11 LMR-SYNC-READ-12 LMR-SYNC-READ-13 LMR-SYNC-READ-14 LMR-SYNC-WRITE-12
 * LMR-SYNC-WRITE-13 LMR-SYNC-WRITE-14 LMR-SYNC-WRITE-15 */
static void lmr_sync__bad_segment__invalid_parameter(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf, freed;

	dt_buf_create(&pair->ia, pair->ia.pz, &buf, PAGE, CONF_LOCAL);
	dt_buf_create(&pair->ia, pair->ia.pz, &freed, PAGE, CONF_LOCAL);
	DAT_LMR_TRIPLET bad[] = {
		dt_seg(&buf, 0, PAGE + 1), dt_seg(&buf, PAGE, 1),     dt_seg(&buf, PAGE - 1, 2),
		dt_seg(&buf, 0, 1),	   dt_seg(&buf, 0, SIZE_MAX), dt_seg(&buf, 1, SIZE_MAX),
		dt_seg(&freed, 0, 8),	   dt_seg(&buf, 0, 8),	      dt_seg(&buf, 0, 8),
	};

	bad[3].virtual_address -= 1;
	bad[7].lmr_context = 0;
	bad[8].lmr_context ^= 0x80000000u;
	dt_buf_free(&freed);
	for (size_t i = 0; i < COUNT_OF(syncs); i++) {
		for (size_t j = 0; j < COUNT_OF(bad); j++) {
			DAT_LMR_TRIPLET three[] = {dt_seg(&buf, 0, 8), dt_seg(&buf, 8, 8), bad[j]};
			DAT_LMR_TRIPLET first[] = {bad[j], three[0], three[1]};

			dt_fails_with(syncs[i](pair->ia.ia, &bad[j], 1), DAT_INVALID_PARAMETER,
				      DAT_INVALID_ARG2);
			dt_fails_with(syncs[i](pair->ia.ia, three, 3), DAT_INVALID_PARAMETER,
				      DAT_INVALID_ARG2);
			dt_ok(syncs[i](pair->ia.ia, three, 2));
			dt_fails_with(syncs[i](pair->ia.ia, first, 3), DAT_INVALID_PARAMETER,
				      DAT_INVALID_ARG2);
		}
		dt_fails_with(syncs[i](pair->ia.ia, NULL, 1), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	}
	dt_buf_free(&buf);
}

/* LMR-SYNC-READ-15 LMR-SYNC-READ-16 LMR-SYNC-WRITE-16 LMR-SYNC-WRITE-17 */
static void lmr_sync__nothing_to_do__success(void **state)
{
	struct dt_pair *pair = *state;
	const DAT_LMR_TRIPLET empty[] = {
		{.lmr_context = 0xdeadbeef, .virtual_address = 3, .segment_length = 0},
		{.lmr_context = 0, .virtual_address = UINT64_MAX, .segment_length = 0},
	};

	for (size_t i = 0; i < COUNT_OF(syncs); i++) {
		dt_ok(syncs[i](pair->ia.ia, NULL, 0));
		dt_ok(syncs[i](pair->ia.ia, empty, 0));
		dt_ok(syncs[i](pair->ia.ia, empty, 2));
	}
}

static void *sync_often(void *arg)
{
	struct dt_pair *pair = arg;
	struct dt_buf buf = {.p = dt_mem_alloc(PAGE)};
	const DAT_REGION_DESCRIPTION region = {.for_va = buf.p};

	for (int i = 0; i < 100; i++) {
		conf_try(dat_lmr_create(pair->ia.ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE,
					pair->ia.pz, CONF_LOCAL, &buf.lmr, &buf.lkey, NULL, NULL,
					NULL));
		DAT_LMR_TRIPLET segment = dt_seg(&buf, 0, PAGE);

		for (size_t j = 0; j < COUNT_OF(syncs); j++)
			conf_try(syncs[j](pair->ia.ia, &segment, 1));
		conf_try(dat_lmr_free(buf.lmr));
	}
	dt_mem_free(buf.p, PAGE);
	return NULL;
}

/* LMR-SYNC-READ-18 LMR-SYNC-WRITE-18 GEN-26 */
static void lmr_sync__in_parallel_with_create_and_free__success(void **state)
{
	conf_parallel(sync_often, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(lmr_query__each_field__as_created),
		dt_pair_test(lmr_query__region_made_from_a_region__length_of_the_source),
		dt_pair_test(lmr_query__mask_or_pointer_wrong__invalid_parameter),
		dt_pair_test(lmr_sync__ranges_of_several_regions_and_zones__no_effect),
		dt_pair_test(lmr_sync__around_rdma__data_is_the_newest),
		dt_pair_test(lmr_sync__no_ia__invalid_handle),
		dt_pair_test(lmr_sync__bad_segment__invalid_parameter),
		dt_pair_test(lmr_sync__nothing_to_do__success),
		dt_pair_test(lmr_sync__in_parallel_with_create_and_free__success),
	};

	return cmocka_run_group_tests_name("lmr query", tests, NULL, NULL);
}
