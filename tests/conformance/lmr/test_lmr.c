// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_lmr_create: arguments, results and refusals. Whatever is refused must leave nothing behind:
 * the fixture's graceful close would fail. What regions permit in transfers is in test_lmr_use.c.
 */
#include "conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE 4096u
#define MANY 1000

static const DAT_MEM_TYPE range_types[] = {DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_SO_VIRTUAL,
					   DAT_MEM_TYPE_SHARED_VIRTUAL};

static int setup(void **state)
{
	static struct dt_ia ia;

	dt_ia_open(&ia);
	*state = &ia;
	return 0;
}

static int teardown(void **state)
{
	dt_ia_close(*state);
	return 0;
}

static void *map_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* A range of one of the three types; the cookie is the same for all. */
static DAT_REGION_DESCRIPTION describe(DAT_MEM_TYPE type, void *p)
{
	static char cookie[DAT_LMR_COOKIE_SIZE] = "test_lmr";
	DAT_REGION_DESCRIPTION region = {.for_va = p};

	if (type == DAT_MEM_TYPE_SHARED_VIRTUAL)
		region.for_shared_memory =
			(DAT_SHARED_MEMORY){.virtual_address = p, .shared_memory_id = &cookie};
	return region;
}

static DAT_RETURN create(struct dt_ia *ia, DAT_MEM_TYPE type, void *p, DAT_VLEN len,
			 DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr_out)
{
	return dat_lmr_create(ia->ia, type, describe(type, p), len, ia->pz, priv, lmr_out, NULL,
			      NULL, NULL, NULL);
}

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

/* By the plain system call, so that sanitizers do not prepare shadow memory for all of it. */
static void *map_huge(size_t len, int prot, int flags, int fd)
{
	return (void *)syscall(SYS_mmap, NULL, len, prot, flags, fd, 0);
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
		skip(); /* no process has more address space than one region may cover */
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
		if (UINT64_MAX - (uintptr_t)p < ia->attr.max_lmr_block_size)
			dt_fails(create(ia, range_types[t], p, UINT64_MAX - 5, CONF_LOCAL, &lmr),
				 DAT_INVALID_PARAMETER);
	}
	munmap(p, PAGE);
}

/* LMR-CREATE-23 */
static void lmr_create__range_with_a_hole__invalid_parameter(void **state)
{
	struct dt_ia *ia = *state;
	unsigned char *p = map_shared(5 * PAGE);
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
		dt_fails(ret, DAT_INVALID_PARAMETER);
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

		if (flag & DAT_MEM_PRIV_ALL_FLAG)
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
	dt_ia_close(&other); /* nothing of ours counts there */
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
				     (DAT_MEM_PRIV_FLAGS)0x40, NULL, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	/* Private memory is a wrong state (LMR-CREATE-16), the privilege a wrong parameter. */
	dt_fails_with(
		create(ia, DAT_MEM_TYPE_SHARED_VIRTUAL, p, PAGE, (DAT_MEM_PRIV_FLAGS)0x40, &lmr),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	munmap(p, PAGE);
	dt_mem_free(private, PAGE);
}

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

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lmr_constants__of_the_header__values),
		T(lmr_create__any_start_and_length__exact_range),
		T(lmr_create__each_privilege_set__remote_key_when_asked_for),
		T(lmr_create__same_memory_many_times__distinct_keys),
		T(lmr_create__unwanted_outputs__may_be_null),
		T(lmr_create__and_free__content_unchanged),
		T(lmr_create__untouched_gigabyte__not_faulted_in),
		T(lmr_create__length_zero__invalid_parameter),
		T(lmr_create__above_max_block_size__insufficient_resources),
		T(lmr_create__null_or_wrapping_range__invalid_parameter),
		T(lmr_create__range_with_a_hole__invalid_parameter),
		T(lmr_create__read_only_memory__refused_at_once_or_not_at_all),
		T(lmr_create__shared_read_only_memory__may_be_read),
		T(lmr_create__memory_type__only_the_four),
		T(lmr_create__undefined_privilege__invalid_parameter),
		T(lmr_create__no_ia_or_zone__invalid_handle),
		T(lmr_create__objects_of_another_instance__invalid_handle),
		T(lmr_create__null_handle_pointer__invalid_parameter),
		T(lmr_create__two_faults__handle_before_parameter_before_state),
		T(lmr_create__in_parallel__all_distinct),
	};

	return cmocka_run_group_tests_name("lmr", tests, NULL, NULL);
}
