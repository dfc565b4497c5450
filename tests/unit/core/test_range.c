// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queries about mappings: on a kernel with the ioctl, on one where the file of mappings must be
 * parsed, and without /proc. The first two give the same answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/main_ended.h"
#include "core/base/range.h"

static bool is_old_kernel, has_no_proc, has_no_memory, is_empty;
static unsigned opened;

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_open(const char *path, int flags, int mode);
int __wrap_open(const char *path, int flags, int mode);
int __real_open64(const char *path, int flags, int mode);
int __wrap_open64(const char *path, int flags, int mode);
FILE *__real_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (!is_old_kernel)
		return __real_ioctl(fd, request, arg);
	errno = ENOTTY;
	return -1;
}

static bool is_missing(void)
{
	if (has_no_proc)
		errno = ENOENT;
	return has_no_proc;
}

int __wrap_open(const char *path, int flags, int mode)
{
	opened++;
	return is_missing() ? -1 : __real_open(is_empty ? "/dev/null" : path, flags, mode);
}

int __wrap_open64(const char *path, int flags, int mode)
{
	opened++;
	return is_missing() ? -1 : __real_open64(is_empty ? "/dev/null" : path, flags, mode);
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
	if (!has_no_memory)
		return __real_fdopen(fd, mode);
	errno = ENOMEM;
	return NULL;
}

/* Six pages: two private, one read-only, one shared, one hole, one private. */
static uint8_t *pages;
static size_t page;

enum { PRIVATE = 0, READ_ONLY = 2, SHARED = 3, HOLE = 4, LAST = 5, PAGES = 6 };

static uint8_t *at(unsigned number)
{
	return pages + number * page;
}

static int setup(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(at(READ_ONLY), page, PROT_READ), 0);
	assert_ptr_equal(mmap(at(SHARED), page, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at(SHARED));
	assert_int_equal(munmap(at(HOLE), page), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	is_old_kernel = has_no_proc = has_no_memory = is_empty = false;
	munmap(pages, PAGES * page);
	return 0;
}

static int descriptors(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void check_answers(void)
{
	int before = descriptors();

	assert_true(core_range_is_writable(at(PRIVATE) + 1, 2 * page - 1));
	assert_false(core_range_is_writable(at(PRIVATE), 3 * page));
	assert_false(core_range_is_writable(at(READ_ONLY) + page - 1, 1));
	assert_true(core_range_is_writable(at(SHARED), page));
	assert_false(core_range_is_writable(at(SHARED) + page - 1, 2));
	assert_true(core_range_is_writable(at(LAST) + page - 1, 1));
	assert_true(core_range_is_shared(at(SHARED), page));
	assert_false(core_range_is_shared(at(READ_ONLY), 2 * page));
	assert_false(core_range_is_shared(at(SHARED), page + 1));
	assert_false(core_range_is_shared(at(LAST), 1));
	assert_int_equal(descriptors(), before);
}

/* LMR-CREATE-23 COMPAT-47: holes are found anywhere in the range, without opening a file. */
static void range__is_mapped__answers_without_a_file(void **state)
{
	(void)state;
	opened = 0;
	assert_true(core_range_is_mapped(at(PRIVATE) + 1, 2 * page - 1));
	assert_true(core_range_is_mapped(at(PRIVATE), 4 * page));
	assert_true(core_range_is_mapped(at(READ_ONLY) + page - 1, 2));
	assert_false(core_range_is_mapped(at(SHARED), page + 1));
	assert_false(core_range_is_mapped(at(HOLE), 1));
	assert_false(core_range_is_mapped(at(HOLE) + page - 1, 2));
	assert_false(core_range_is_mapped(at(PRIVATE), PAGES * page));
	assert_true(core_range_is_mapped(at(LAST) + page - 1, 1));
	assert_int_equal(opened, 0);
}

static void range__kernel_has_the_ioctl__answers(void **state)
{
	(void)state;
	check_answers();
}

static void range__maps_must_be_parsed__same_answers(void **state)
{
	(void)state;
	is_old_kernel = true;
	check_answers();
}

/* Without an answer the range is accepted: an error shows when the memory is used. */
static void range__no_answer_available__accepted(void **state)
{
	int before = descriptors();

	(void)state;
	has_no_proc = true;
	assert_true(core_range_is_writable(at(READ_ONLY), page));
	has_no_proc = false;
	is_old_kernel = has_no_memory = true;
	assert_true(core_range_is_writable(at(READ_ONLY), page));
	has_no_memory = false;
	is_empty = true;
	assert_true(core_range_is_writable(at(READ_ONLY), page));
	assert_int_equal(descriptors(), before);
}

static bool has_answers(void)
{
	return core_range_is_shared(at(SHARED), page) && !core_range_is_shared(at(LAST), page) &&
	       core_range_is_writable(at(PRIVATE), page) &&
	       !core_range_is_writable(at(READ_ONLY), page);
}

/* LMR-CREATE-10 LMR-CREATE-11: another thread registers memory after main has called pthread_exit.
 */
static void range__main_thread_has_ended__same_answers(void **state)
{
	(void)state;
	assert_true(main_ended_check(has_answers));
	is_old_kernel = true;
	assert_true(main_ended_check(has_answers));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(range__is_mapped__answers_without_a_file),
		T(range__kernel_has_the_ioctl__answers),
		T(range__maps_must_be_parsed__same_answers),
		T(range__no_answer_available__accepted),
		T(range__main_thread_has_ended__same_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
