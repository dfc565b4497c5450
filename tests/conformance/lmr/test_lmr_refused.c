// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_lmr_create: refusals. A refused call must leave nothing behind: the fixture's graceful close
 * would fail.
 */
#include "lmr_create.h"

#include <dat/opendat.h>

#include <sys/mman.h>

/* LMR-CREATE-20 */
static void lmr_create__length_zero__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(PAGE);
	DAT_LMR_HANDLE lmr;

	for (size_t t = 0; t < COUNT_OF(range_types); t++)
		dt_fails_with(create(ia, range_types[t], p, 0, CONF_LOCAL, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	munmap(p, PAGE);
}

/* LMR-CREATE-21 IA-QUERY-26 */
static void lmr_create__above_max_block_size__insufficient_resources(void **state)
{
	struct dt_ia *ia = *state;
	const DAT_VLEN max = ia->attr.max_lmr_block_size;
	DAT_LMR_HANDLE lmr;

	assert_true(max > 0);
	if (max > (1ull << 47))
		skip(); /* one region may cover the whole address space */
	void *p = map_huge(max + PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	if (p == MAP_FAILED)
		skip(); /* the kernel does not give that much address space */
	dt_fails_with(
		create(ia, DAT_MEM_TYPE_VIRTUAL, p, max + 1, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	dt_ok(create(ia, DAT_MEM_TYPE_VIRTUAL, p, max, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr));
	dt_ok(dat_lmr_free(lmr));
	munmap(p, max + PAGE);
}

/* LMR-CREATE-22 */
static void lmr_create__null_or_wrapping_range__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(PAGE);
	DAT_LMR_HANDLE lmr;

	for (size_t t = 0; t < COUNT_OF(range_types); t++) {
		dt_fails_with(create(ia, range_types[t], NULL, PAGE, CONF_LOCAL, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		dt_fails_with(create(ia, range_types[t], (void *)(UINTPTR_MAX - 0xfff), 2 * PAGE,
				     CONF_LOCAL, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		/* GEN-19: it is also too long, but that is checked later */
		dt_fails_with(create(ia, range_types[t], p, UINT64_MAX - 5, CONF_LOCAL, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	munmap(p, PAGE);
}

/*
 * Pages far below all others: the kernel places no mapping of another thread in a hole between them
 * while there is room above.
 */
static unsigned char *map_far_below(size_t len)
{
	const uintptr_t distance = (uintptr_t)64 << 30;
	unsigned char *near = map_shared(len);
	unsigned char *p = mmap((void *)((uintptr_t)near - distance), len, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	munmap(near, len);
	return p;
}

/* LMR-CREATE-23 */
static void lmr_create__range_with_a_hole__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_far_below(5 * PAGE);
	DAT_LMR_HANDLE lmr;

	assert_int_equal(munmap(p + 2 * PAGE, PAGE), 0);
	for (size_t t = 0; t < COUNT_OF(range_types); t++) {
		const DAT_MEM_TYPE type = range_types[t];
		const DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_LOCAL_READ_FLAG;

		dt_fails_with(create(ia, type, p, 5 * PAGE, priv, &lmr), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
		dt_fails_with(create(ia, type, p + PAGE, PAGE + 1, priv, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		dt_fails_with(create(ia, type, p + 3 * PAGE - 1, PAGE, priv, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		dt_fails_with(create(ia, type, p + 2 * PAGE + 8, 8, priv, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		dt_ok(create(ia, type, p, 2 * PAGE, priv, &lmr));
		dt_ok(dat_lmr_free(lmr));
		dt_ok(create(ia, type, p + 3 * PAGE, 2 * PAGE, priv, &lmr));
		dt_ok(dat_lmr_free(lmr));
	}
	munmap(p, 5 * PAGE);
}

static void ok_or_refused(DAT_RETURN ret, const DAT_LMR_HANDLE *lmr)
{
	if (ret == DAT_SUCCESS)
		dt_ok(dat_lmr_free(*lmr));
	else
		dt_fails_with(ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

/* LMR-CREATE-23: refused here, or when it is used (test_lmr_gone.c) */
static void lmr_create__read_only_memory__refused_at_once_or_not_at_all(void **state)
{
	static const DAT_MEM_PRIV_FLAGS writing[] = {
		DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
		DAT_MEM_PRIV_ALL_FLAG, DAT_MEM_PRIV_WRITE_FLAG};
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(3 * PAGE);
	DAT_LMR_HANDLE lmr;

	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	for (size_t t = 0; t < COUNT_OF(range_types); t++) {
		for (size_t i = 0; i < COUNT_OF(writing); i++) {
			ok_or_refused(create(ia, range_types[t], p + PAGE, PAGE, writing[i], &lmr),
				      &lmr);
			ok_or_refused(create(ia, range_types[t], p, 3 * PAGE, writing[i], &lmr),
				      &lmr);
			dt_ok(create(ia, range_types[t], p, PAGE, writing[i], &lmr));
			dt_ok(dat_lmr_free(lmr));
		}
	}
	munmap(p, 3 * PAGE);
}

/* LMR-CREATE-23 */
static void lmr_create__shared_read_only_memory__may_be_read(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(3 * PAGE);
	DAT_LMR_HANDLE lmr;

	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	for (size_t t = 0; t < COUNT_OF(range_types); t++) {
		dt_ok(create(ia, range_types[t], p, 3 * PAGE, DAT_MEM_PRIV_READ_FLAG, &lmr));
		dt_ok(dat_lmr_free(lmr));
	}
	munmap(p, 3 * PAGE);
}

/* LMR-CREATE-24 LMR-CREATE-25 */
static void lmr_create__memory_type__only_the_four(void **state)
{
	static const int undefined[] = {4, 5, 7, 8, 0x10, 0x55, 0x40000000, -1};
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(PAGE);
	DAT_LMR_HANDLE lmr, copy;
	DAT_REGION_DESCRIPTION from;

	for (size_t i = 0; i < COUNT_OF(undefined); i++)
		dt_fails_with(create(ia, (DAT_MEM_TYPE)undefined[i], p, PAGE, CONF_LOCAL, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	for (size_t t = 0; t < COUNT_OF(range_types); t++) {
		dt_ok(create(ia, range_types[t], p, PAGE, CONF_LOCAL, &lmr));
		from.for_lmr_handle = lmr;
		dt_ok(dat_lmr_create(ia->ia, DAT_MEM_TYPE_LMR, from, 0, ia->pz, CONF_LOCAL, &copy,
				     NULL, NULL, NULL, NULL));
		dt_ok(dat_lmr_free(copy));
		dt_ok(dat_lmr_free(lmr));
	}
	munmap(p, PAGE);
}

/* LMR-CREATE-36 */
static void lmr_create__undefined_privilege__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(PAGE);
	DAT_LMR_HANDLE lmr;

	for (unsigned bit = 0; bit < 31; bit++) {
		const unsigned flag = 1u << bit;

		if (flag & (DAT_MEM_PRIV_ALL_FLAG | DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC))
			continue;
		for (size_t t = 0; t < COUNT_OF(range_types); t++) {
			dt_fails_with(
				create(ia, range_types[t], p, PAGE, (DAT_MEM_PRIV_FLAGS)flag, &lmr),
				DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
			dt_fails_with(create(ia, range_types[t], p, PAGE,
					     (DAT_MEM_PRIV_FLAGS)(flag | DAT_MEM_PRIV_ALL_FLAG),
					     &lmr),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
		}
	}
	munmap(p, PAGE);
}

/* LMR-CREATE-53 LMR-CREATE-54 */
static void lmr_create__no_ia_or_zone__invalid_handle(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ia closed;
	struct conf_bad bad;
	unsigned char *p = dt_mem_alloc(PAGE);
	const DAT_REGION_DESCRIPTION region = {.for_va = p};
	DAT_LMR_HANDLE lmr;

	dt_ia_open(&closed);
	const DAT_IA_HANDLE no_ia[] = {DAT_HANDLE_NULL, ia->pz, ia->async, closed.ia};

	dt_ia_close(&closed);
	for (size_t i = 0; i < COUNT_OF(no_ia); i++)
		dt_fails_with(dat_lmr_create(no_ia[i], DAT_MEM_TYPE_VIRTUAL, region, PAGE, ia->pz,
					     CONF_LOCAL, &lmr, NULL, NULL, NULL, NULL),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	conf_bad_make(ia, &bad);
	conf_refuses(&bad, pz, DAT_INVALID_HANDLE_PZ,
		     dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE, pz, CONF_LOCAL,
				    &lmr, NULL, NULL, NULL, NULL));
	dt_mem_free(p, PAGE);
}

/* LMR-CREATE-55 LMR-CREATE-09 GEN-17 */
static void lmr_create__objects_of_another_instance__invalid_handle(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ia other;
	struct dt_buf theirs;
	unsigned char *p = dt_mem_alloc(PAGE);
	DAT_REGION_DESCRIPTION region = {.for_va = p};
	DAT_LMR_HANDLE lmr;

	dt_ia_open(&other);
	dt_buf_create(&other, other.pz, &theirs, PAGE, CONF_LOCAL);
	dt_fails_with(dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE, other.pz,
				     CONF_LOCAL, &lmr, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	region.for_lmr_handle = theirs.lmr;
	dt_fails_with(dat_lmr_create(ia->ia, DAT_MEM_TYPE_LMR, region, PAGE, ia->pz, CONF_LOCAL,
				     &lmr, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_buf_free(&theirs);
	dt_ia_close(&other); /* the refused calls left no user of its objects */
	dt_mem_free(p, PAGE);
}

/* LMR-CREATE-56 */
static void lmr_create__null_handle_pointer__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(PAGE);
	DAT_LMR_CONTEXT lkey;

	for (size_t t = 0; t < COUNT_OF(range_types); t++)
		dt_fails_with(dat_lmr_create(ia->ia, range_types[t], describe(range_types[t], p),
					     PAGE, ia->pz, CONF_LOCAL, NULL, &lkey, NULL, NULL,
					     NULL),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	munmap(p, PAGE);
}

/* GEN-19 */
static void lmr_create__two_faults__handle_before_parameter_before_state(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *private = dt_mem_alloc(PAGE);
	const DAT_REGION_DESCRIPTION region = {.for_va = private};
	DAT_LMR_HANDLE lmr;
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	dt_fails_with(dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, 0, DAT_HANDLE_NULL,
				     (DAT_MEM_PRIV_FLAGS)0x80, NULL, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	/* Private memory is an invalid state (LMR-CREATE-16); the privilege is an invalid
	 * parameter. */
	dt_fails_with(
		create(ia, DAT_MEM_TYPE_SHARED_VIRTUAL, p, PAGE, (DAT_MEM_PRIV_FLAGS)0x80, &lmr),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	munmap(p, PAGE);
	dt_mem_free(private, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(lmr_create__length_zero__invalid_parameter),
		dt_ia_test(lmr_create__above_max_block_size__insufficient_resources),
		dt_ia_test(lmr_create__null_or_wrapping_range__invalid_parameter),
		dt_ia_test(lmr_create__range_with_a_hole__invalid_parameter),
		dt_ia_test(lmr_create__read_only_memory__refused_at_once_or_not_at_all),
		dt_ia_test(lmr_create__shared_read_only_memory__may_be_read),
		dt_ia_test(lmr_create__memory_type__only_the_four),
		dt_ia_test(lmr_create__undefined_privilege__invalid_parameter),
		dt_ia_test(lmr_create__no_ia_or_zone__invalid_handle),
		dt_ia_test(lmr_create__objects_of_another_instance__invalid_handle),
		dt_ia_test(lmr_create__null_handle_pointer__invalid_parameter),
		dt_ia_test(lmr_create__two_faults__handle_before_parameter_before_state),
	};

	return cmocka_run_group_tests_name("lmr refused", tests, NULL, NULL);
}
