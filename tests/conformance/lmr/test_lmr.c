// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_lmr_create: its results. test_lmr_refused.c tests refusals; test_lmr_use.c, what regions
 * permit in transfers.
 */
#include "lmr_create.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MANY 1000

/* --- results --- */

/* LMR-CREATE-01 LMR-CREATE-02 LMR-CREATE-10 LMR-CREATE-18 LMR-CREATE-26 LMR-CREATE-49
 * LMR-CREATE-50 */
static void lmr_create__any_start_and_length__exact_range(void **state)
{
	static const struct {
		size_t offset, len;
	} ranges[] = {{0, PAGE}, {0, 1}, {1, 1}, {PAGE - 1, 2}, {3, 3 * PAGE - 5}, {777, 4099}};
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(4 * PAGE);

	for (size_t t = 0; t < COUNT_OF(range_types); t++) {
		for (size_t i = 0; i < COUNT_OF(ranges); i++) {
			unsigned char *start = p + ranges[i].offset;
			DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
			DAT_LMR_CONTEXT lkey = 0xdeadbeef;
			DAT_RMR_CONTEXT rkey = 0xdeadbeef;
			DAT_VLEN size = 0;
			DAT_VADDR address = 0;
			DAT_HANDLE_TYPE type;

			dt_ok(dat_lmr_create(ia->ia, range_types[t],
					     describe(range_types[t], start), ranges[i].len, ia->pz,
					     DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &rkey, &size,
					     &address));
			dt_ok(dat_get_handle_type(lmr, &type));
			assert_int_equal(type, DAT_HANDLE_TYPE_LMR);
			assert_int_not_equal(lkey, 0xdeadbeef);
			assert_int_not_equal(rkey, 0xdeadbeef);
			assert_true(address == (uintptr_t)start);
			assert_true(size == ranges[i].len);
			dt_ok(dat_lmr_free(lmr));
		}
	}
	munmap(p, 4 * PAGE);
}

/* LMR-CREATE-29 LMR-CREATE-40 LMR-CREATE-41 */
static void lmr_create__each_privilege_set__remote_key_when_asked_for(void **state)
{
	static const unsigned bits[] = {DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
					DAT_MEM_PRIV_REMOTE_READ_FLAG,
					DAT_MEM_PRIV_REMOTE_WRITE_FLAG};
	struct dt_ia *ia = *state;
	unsigned char *p = dt_mem_alloc(PAGE);

	for (unsigned set = 0; set < 16; set++) {
		const bool remote = (set & 0xc) != 0;
		struct dt_buf buf;
		unsigned priv = DAT_MEM_PRIV_NONE_FLAG;

		for (unsigned i = 0; i < 4; i++)
			priv |= set & 1u << i ? bits[i] : 0;
		dt_lmr_create(ia, ia->pz, p, PAGE, (DAT_MEM_PRIV_FLAGS)priv, &buf);
		assert_int_equal(buf.rkey != 0, remote);
		dt_buf_free(&buf);
	}
	dt_mem_free(p, PAGE);
}

/* LMR-CREATE-29 LMR-CREATE-30 LMR-CREATE-31 LMR-CREATE-32 LMR-CREATE-33 LMR-CREATE-34
 * LMR-CREATE-35 LMR-CREATE-12 */
static void lmr_constants__of_the_header__values(void **state)
{
	(void)state;
	assert_int_equal(DAT_MEM_PRIV_NONE_FLAG, 0x00);
	assert_int_equal(DAT_MEM_PRIV_LOCAL_READ_FLAG, 0x01);
	assert_int_equal(DAT_MEM_PRIV_LOCAL_WRITE_FLAG, 0x10);
	assert_int_equal(DAT_MEM_PRIV_REMOTE_READ_FLAG, 0x02);
	assert_int_equal(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0x20);
	assert_int_equal(DAT_MEM_PRIV_ALL_FLAG, 0x33);
	assert_int_equal(DAT_MEM_PRIV_READ_FLAG, 0x03);
	assert_int_equal(DAT_MEM_PRIV_WRITE_FLAG, 0x30);
	assert_int_equal(DAT_MEM_TYPE_VIRTUAL, 0);
	assert_int_equal(DAT_MEM_TYPE_LMR, 1);
	assert_int_equal(DAT_MEM_TYPE_SHARED_VIRTUAL, 2);
	assert_int_equal(DAT_MEM_TYPE_SO_VIRTUAL, 3);
	assert_int_equal(DAT_LMR_COOKIE_SIZE, 40);
}

static int compare_keys(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a;
	const uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void check_distinct(uint32_t *keys, size_t count)
{
	qsort(keys, count, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < count; i++)
		assert_int_not_equal(keys[i - 1], keys[i]);
}

/* LMR-CREATE-48 LMR-CREATE-52 */
static void lmr_create__same_memory_many_times__distinct_keys(void **state)
{
	static struct dt_buf buf[MANY];
	static uint32_t lkeys[MANY], rkeys[MANY];
	struct dt_ia *ia = *state;
	unsigned char *p = dt_mem_alloc(PAGE);

	for (size_t i = 0; i < MANY; i++) {
		dt_lmr_create(ia, ia->pz, p + i % 7, PAGE - i % 100 - 7, DAT_MEM_PRIV_ALL_FLAG,
			      &buf[i]);
		lkeys[i] = buf[i].lkey;
		rkeys[i] = buf[i].rkey;
	}
	check_distinct(lkeys, MANY);
	check_distinct(rkeys, MANY);
	for (size_t i = 0; i < MANY; i++)
		dt_buf_free(&buf[i]);
	dt_mem_free(p, PAGE);
}

/* LMR-CREATE-57 COMPAT-13 */
static void lmr_create__unwanted_outputs__may_be_null(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = dt_mem_alloc(PAGE);

	for (unsigned unwanted = 0; unwanted < 16; unwanted++) {
		DAT_LMR_HANDLE lmr;
		DAT_LMR_CONTEXT lkey = 0;
		DAT_RMR_CONTEXT rkey = 0;
		DAT_VLEN size = 0;
		DAT_VADDR address = 0;
		DAT_LMR_PARAM param;

		dt_ok(dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL,
				     describe(DAT_MEM_TYPE_VIRTUAL, p), PAGE, ia->pz,
				     DAT_MEM_PRIV_ALL_FLAG, &lmr, unwanted & 1 ? NULL : &lkey,
				     unwanted & 2 ? NULL : &rkey, unwanted & 4 ? NULL : &size,
				     unwanted & 8 ? NULL : &address));
		dt_ok(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
		assert_true(unwanted & 1 || lkey == param.lmr_context);
		assert_true(unwanted & 2 || rkey == param.rmr_context);
		assert_true(unwanted & 4 || size == PAGE);
		assert_true(unwanted & 8 || address == (uintptr_t)p);
		dt_ok(dat_lmr_free(lmr));
	}
	dt_mem_free(p, PAGE);
}

/* LMR-CREATE-60 LMR-FREE-11 */
static void lmr_create__and_free__content_unchanged(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = dt_mem_alloc(8 * PAGE);
	struct dt_buf buf;

	dt_fill(p, 8 * PAGE, 60);
	dt_lmr_create(ia, ia->pz, p + 5, 8 * PAGE - 9, DAT_MEM_PRIV_ALL_FLAG, &buf);
	dt_check_pattern(p, 8 * PAGE, 60);
	dt_buf_free(&buf);
	dt_check_pattern(p, 8 * PAGE, 60);
	dt_fill(p, 8 * PAGE, 61);
	dt_check_pattern(p, 8 * PAGE, 61);
	dt_mem_free(p, 8 * PAGE);
}

static long resident_pages(void)
{
	long size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident;
}

/* LMR-CREATE-63 LMR-CREATE-27 COMPAT-39 */
static void lmr_create__untouched_gigabyte__not_faulted_in(void **state)
{
	const size_t len = 1ul << 30;
	const int fd = memfd_create("lmr", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct dt_ia *ia = *state;
	struct stat before, after;
	struct dt_buf private, shared;

	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	void *p = map_huge(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1);
	void *q = map_huge(len, PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_ptr_not_equal(q, MAP_FAILED);
	assert_int_equal(fstat(fd, &before), 0);
	const long pages = resident_pages();

	dt_lmr_create(ia, ia->pz, p, len, DAT_MEM_PRIV_ALL_FLAG, &private);
	dt_lmr_create(ia, ia->pz, q, len, DAT_MEM_PRIV_ALL_FLAG, &shared);
	assert_true(resident_pages() - pages < (long)(len / PAGE / 16));
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(before.st_blocks, after.st_blocks);
	dt_buf_free(&private);
	dt_buf_free(&shared);
	assert_int_equal(munmap(p, len) | munmap(q, len) | close(fd), 0);
}

/* --- refusals --- */

static void *register_often(void *arg)
{
	static _Thread_local unsigned char bytes[PAGE];
	struct dt_ia *ia = arg;
	DAT_LMR_HANDLE lmr[20];

	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < COUNT_OF(lmr); i++)
			conf_try(create(ia, DAT_MEM_TYPE_VIRTUAL, bytes + i, PAGE - i,
					DAT_MEM_PRIV_ALL_FLAG, &lmr[i]));
		for (size_t i = 0; i < COUNT_OF(lmr); i++) {
			DAT_LMR_PARAM param;

			conf_try(dat_lmr_query(lmr[i], DAT_LMR_FIELD_ALL, &param));
			if (param.registered_address != (uintptr_t)(bytes + i))
				return (void *)(uintptr_t) "a region of another thread";
			conf_try(dat_lmr_free(lmr[i]));
		}
	}
	return NULL;
}

/* LMR-CREATE-62 */
static void lmr_create__in_parallel__all_distinct(void **state)
{
	conf_parallel(register_often, *state);
}

/*
 * LMR-CREATE-47: a context of one instance is not likely to be good in another one. All four are
 * equal in one of 2^42 runs at most.
 */
static void lmr_create__first_of_each_instance__contexts_differ(void **state)
{
	unsigned char *p = dt_mem_alloc(PAGE);
	struct dt_buf buf[4];
	struct dt_ia ia[4];
	bool is_any_different = false;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ia); i++) {
		dt_ia_open(&ia[i]);
		dt_lmr_create(&ia[i], ia[i].pz, p, PAGE, DAT_MEM_PRIV_ALL_FLAG, &buf[i]);
		is_any_different |= buf[i].lkey != buf[0].lkey;
	}
	assert_true(is_any_different);
	for (size_t i = 0; i < COUNT_OF(ia); i++) {
		dt_ok(dat_lmr_free(buf[i].lmr));
		dt_ia_close(&ia[i]);
	}
	dt_mem_free(p, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lmr_constants__of_the_header__values),
		dt_ia_test(lmr_create__any_start_and_length__exact_range),
		dt_ia_test(lmr_create__each_privilege_set__remote_key_when_asked_for),
		dt_ia_test(lmr_create__same_memory_many_times__distinct_keys),
		dt_ia_test(lmr_create__unwanted_outputs__may_be_null),
		dt_ia_test(lmr_create__and_free__content_unchanged),
		dt_ia_test(lmr_create__untouched_gigabyte__not_faulted_in),
		dt_ia_test(lmr_create__in_parallel__all_distinct),
		cmocka_unit_test(lmr_create__first_of_each_instance__contexts_differ),
	};

	return cmocka_run_group_tests_name("lmr", tests, NULL, NULL);
}
