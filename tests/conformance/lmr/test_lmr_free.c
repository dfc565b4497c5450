// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_lmr_free within one process: refusals, what ends with the region and what keeps working.
 * test_lmr_revoke.c tests it while other processes write.
 */
#include "conf.h"

#include <stdio.h>
#include <sys/mman.h>

#define PAGE 4096u
#define CYCLES 1000

static void create(struct dt_pair *pair, struct dt_buf *buf, unsigned priv)
{
	dt_buf_create(&pair->ia, pair->ia.pz, buf, PAGE, (DAT_MEM_PRIV_FLAGS)priv);
}

/* Frees the region but keeps its memory, keys and dead handle. */
static void revoke(const struct dt_buf *buf)
{
	dt_ok(dat_lmr_free(buf->lmr));
}

static void forget(struct dt_buf *buf)
{
	buf->lmr = DAT_HANDLE_NULL;
	dt_buf_free(buf);
}

/* LMR-FREE-01 LMR-FREE-05 LMR-FREE-16 GEN-16 */
static void lmr_free__used_afterwards__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_PARAM param;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	DAT_LMR_HANDLE copy;
	struct dt_buf buf;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	revoke(&buf);
	region.for_lmr_handle = buf.lmr;
	dt_fails_with(dat_lmr_query(buf.lmr, DAT_LMR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_create(pair->ia.ia, DAT_MEM_TYPE_LMR, region, PAGE, pair->ia.pz,
				     CONF_LOCAL, &copy, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_get_handle_type(buf.lmr, &type), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_get_consumer_context(buf.lmr, &context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_lmr_free(buf.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_free(buf.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	forget(&buf);
}

/* LMR-FREE-15 LMR-QUERY-13 */
static void lmr_free__no_region__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	DAT_LMR_PARAM param;
	struct conf_bad bad;
	struct dt_buf buf;

	create(pair, &buf, CONF_LOCAL);
	conf_bad_make(&pair->ia, &bad);
	conf_refuses(&bad, h, DAT_INVALID_HANDLE_LMR, dat_lmr_free(h));
	conf_refuses(&bad, h, DAT_INVALID_HANDLE_LMR, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &param));
	dt_fails_with(dat_lmr_free(pair->ia.pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_free(pair->a.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_query(pair->a.ep, DAT_LMR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_LMR);
	dt_buf_free(&buf);
}

/* --- windows --- */

/* --- after the return --- */

/* --- what keeps working --- */

static long locked_kib(const char *field)
{
	const size_t len = strlen(field);
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/status", "re");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, field, len) == 0)
			assert_int_equal(sscanf(line + len, "%ld", &kib), 1);
	fclose(file);
	assert_true(kib >= 0);
	return kib;
}

/* LMR-FREE-12 LMR-FREE-13 */
static void lmr_free__memory_locked_by_the_consumer__stays_locked(void **state)
{
	struct dt_pair *pair = *state;
	const long locked = locked_kib("VmLck:"), pinned = locked_kib("VmPin:");
	struct dt_buf buf;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_free(&buf);
	assert_int_equal(locked_kib("VmLck:"), locked);
	assert_int_equal(locked_kib("VmPin:"), pinned);
	unsigned char *p = dt_mem_alloc(PAGE);

	if (mlock(p, PAGE) == 0) {
		const long with_ours = locked_kib("VmLck:");

		dt_lmr_create(&pair->ia, pair->ia.pz, p, PAGE, DAT_MEM_PRIV_ALL_FLAG, &buf);
		dt_buf_free(&buf);
		assert_int_equal(locked_kib("VmLck:"), with_ours);
		assert_int_equal(locked_kib("VmPin:"), pinned);
	}
	dt_mem_free(p, PAGE);
}

/* LMR-FREE-19 */
static void lmr_free__create_again__keys_not_reissued_at_once(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(PAGE);
	struct dt_buf buf, first = {.lkey = 0}, last = {.lkey = 0};

	/* more often than there are free slots, so that the slots are used again */
	for (int i = 0; i < 3 * CYCLES; i++) {
		dt_lmr_create(&pair->ia, pair->ia.pz, p, PAGE, DAT_MEM_PRIV_ALL_FLAG, &buf);
		if (!i) {
			first = buf;
		} else {
			assert_int_not_equal(buf.lkey, first.lkey);
			assert_int_not_equal(buf.lkey, last.lkey);
			assert_int_not_equal(buf.rkey, last.rkey);
			assert_ptr_not_equal(buf.lmr, last.lmr);
		}
		last = buf;
		dt_buf_free(&buf);
	}
	dt_mem_free(p, PAGE);
}

struct one_region {
	DAT_LMR_HANDLE lmr;
	atomic_int freed;
	atomic_int unexpected;
};

static void *query_and_free(void *arg)
{
	struct one_region *region = arg;
	DAT_LMR_PARAM param;
	DAT_RETURN ret = dat_lmr_query(region->lmr, DAT_LMR_FIELD_ALL, &param);

	if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&region->unexpected, 1);
	ret = dat_lmr_free(region->lmr);
	if (ret == DAT_SUCCESS)
		atomic_fetch_add(&region->freed, 1);
	else if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&region->unexpected, 1);
	return NULL;
}

/* LMR-FREE-20 LMR-QUERY-15 GEN-26 */
static void lmr_free__same_region_in_parallel__freed_once(void **state)
{
	struct dt_pair *pair = *state;

	for (int round = 0; round < 50; round++) {
		struct one_region region = {.freed = 0};
		struct dt_buf buf;

		create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
		region.lmr = buf.lmr;
		conf_parallel(query_and_free, &region);
		assert_int_equal(region.freed, 1);
		assert_int_equal(region.unexpected, 0);
		forget(&buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(lmr_free__used_afterwards__invalid_handle),
		dt_pair_test(lmr_free__no_region__invalid_handle),
		dt_pair_test(lmr_free__memory_locked_by_the_consumer__stays_locked),
		dt_pair_test(lmr_free__create_again__keys_not_reissued_at_once),
		dt_pair_test(lmr_free__same_region_in_parallel__freed_once),
	};

	return cmocka_run_group_tests_name("lmr free", tests, NULL, NULL);
}
