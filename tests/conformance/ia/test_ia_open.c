// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_open in the provider: instances, arguments and resources. test_ia_open_evd.c tests the
 * asynchronous EVD; the tests of the registry, how it finds an adapter.
 */
#include "ia_open.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

/* --- instances --- */

/* KiB: 18 MiB for the table of keys, 1 MiB for the asynchronous events of DAT 2.0, the rest for
 * everything else */
#define SPACE_MOST 21504u

static unsigned long address_space_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long size = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmSize: %lu", &size) != 1)
		;
	fclose(file);
	assert_true(size > 0);
	return size;
}

/*
 * IA-OPEN-01: Instances after the first, which reserves the handles of all. A program may limit its
 * address space. This test runs first: later a thread may reuse the stack of one that has ended.
 */
static void ia_open__another_instance__little_address_space(void **state)
{
	struct dt_ia first, second;
	unsigned long before;

	(void)state;
	if (DT_SLOW || dt_is_verbs())
		skip();
	dt_ia_open(&first);
	before = address_space_kib();
	dt_ia_open(&second);
	assert_in_range(address_space_kib() - before, 1, SPACE_MOST);
	dt_ia_close(&second);
	dt_ia_close(&first);
}

/* IA-OPEN-01 IA-OPEN-02 */
static void ia_open__several_times__distinct_instances(void **state)
{
	struct dt_ia ia[8];
	DAT_HANDLE_TYPE type;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ia); i++) {
		dt_ia_open(&ia[i]);
		assert_non_null(ia[i].ia);
		dt_ok(dat_get_handle_type(ia[i].ia, &type));
		assert_int_equal(type, DAT_HANDLE_TYPE_IA);
		for (size_t j = 0; j < i; j++) {
			assert_ptr_not_equal(ia[i].ia, ia[j].ia);
			assert_ptr_not_equal(ia[i].async, ia[j].async);
		}
	}
	for (size_t i = 0; i < COUNT_OF(ia); i++)
		dt_ia_close(&ia[i]);
}

/* IA-OPEN-03 IA-OPEN-38 IA-CLOSE-22 */
static void ia_open__one_closed__objects_of_the_other_work(void **state)
{
	struct dt_pair pair;
	struct dt_ia other;
	struct dt_buf buf;

	(void)state;
	for (int abrupt = 0; abrupt < 2; abrupt++) {
		dt_ia_open(&other);
		dt_pair_open(&pair);
		dt_buf_create(&pair.ia, pair.ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
		if (abrupt)
			dt_ia_abort(&other);
		else
			dt_ia_close(&other);
		conf_write(&pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 64, 64));
		conf_send(&pair, dt_seg(&buf, 0, 64), dt_seg(&buf, 64, 64));
		dt_no_event(pair.a.conn);
		dt_buf_free(&buf);
		dt_pair_close(&pair);
	}
}

/* --- names and pointers --- */

/* IA-OPEN-24 IA-OPEN-29 IA-OPEN-30 IA-OPEN-34 */
static void ia_open__bad_name__refused(void **state)
{
	char name[600];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)99;

	(void)state;
	dt_fails_with(try_open(NULL, 8, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	assert_null(ia);
	memset(name, 'x', sizeof(name));
	name[599] = '\0';
	dt_fails_with(try_open(name, 8, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	name[256] = '\0';
	dt_fails_with(try_open(name, 8, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	name[255] = '\0';
	ia = (DAT_IA_HANDLE)(uintptr_t)99;
	dt_fails_with(try_open(name, 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	assert_null(ia);
	dt_fails_with(try_open("no-such-adapter", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	dt_fails_with(try_open("", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	assert_null(async);
}

/* IA-OPEN-31 IA-OPEN-32 */
static void ia_open__null_pointers__invalid_parameter(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	(void)state;
	dt_fails_with(try_open(dt_adapter(), 8, NULL, &ia), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_fails_with(try_open(dt_adapter(), 8, &async, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG4);
}

/* IA-OPEN-39 IA-OPEN-40 IA-OPEN-42 */
static void ia_open__ordering_prefix__optional_and_removed(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	DAT_IA_HANDLE ia;
	char name[300];

	(void)state;
	snprintf(name, sizeof(name), "RO_AWARE_%s", dt_adapter());
	dt_ok(try_open(name, 8, &async, &ia));
	dt_ok(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	assert_string_equal(attr.adapter_name, dt_adapter());
	close_ok(ia);
	async = DAT_HANDLE_NULL;
	dt_ok(try_open(dt_adapter(), 8, &async, &ia));
	close_ok(ia);
}

/* --- resources --- */

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

/* IA-OPEN-33 IA-OPEN-34 GEN-20 */
static void ia_open__descriptors_run_out__insufficient_resources(void **state)
{
	struct rlimit limit, few;
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = DAT_INSUFFICIENT_RESOURCES;
	int failures = 0;

	(void)state;
	/* Descriptors that stay open after the first use are open now. */
	async = DAT_HANDLE_NULL;
	dt_ok(try_open(dt_adapter(), 8, &async, &ia));
	close_ok(ia);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	const int before = count_descriptors();

	/* One more descriptor in each round, until the call succeeds. */
	for (few = limit; ret != DAT_SUCCESS && failures < 100; failures++) {
		few.rlim_cur = (rlim_t)(before + failures);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		async = DAT_HANDLE_NULL;
		ia = (DAT_IA_HANDLE)(uintptr_t)99;
		ret = try_open(dt_adapter(), 8, &async, &ia);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (ret == DAT_SUCCESS)
			break;
		dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
		assert_null(ia);
		assert_int_equal(count_descriptors(), before);
	}
	dt_ok(ret);
	assert_true(failures > 0);
	close_ok(ia);
	assert_int_equal(count_descriptors(), before);
}

/* IA-OPEN-33 GEN-20: RLIMIT_FSIZE limits memory files, too; its signal would end the program. */
static void ia_open__small_files_only__insufficient_resources(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct rlimit limit, small;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	(void)state;
	if (dt_is_verbs())
		skip();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ret = try_open(dt_adapter(), 8, &async, &ia);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	async = DAT_HANDLE_NULL;
	dt_ok(try_open(dt_adapter(), 8, &async, &ia));
	close_ok(ia);
}

/* IA-OPEN-43 */
static void ia_open__events_never_taken__closes_without_residue(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct dt_ia ia;
		struct dt_ep ep;

		dt_ia_open(&ia);
		overflow(&ia, &ep);
		dt_ep_free(&ep);
		dt_ia_close(&ia);
	}
}

static void *open_and_close(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;
		DAT_PZ_HANDLE pz;

		conf_try(try_open(dt_adapter(), 8, &async, &ia));
		conf_try(dat_pz_create(ia, &pz));
		conf_try(dat_pz_free(pz));
		conf_try(dat_ia_close(ia, i % 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
	}
	return NULL;
}

/* IA-OPEN-44 IA-CLOSE-25 */
static void ia_open__in_parallel__each_gets_its_own(void **state)
{
	conf_parallel(open_and_close, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__another_instance__little_address_space),
		cmocka_unit_test(ia_open__several_times__distinct_instances),
		cmocka_unit_test(ia_open__one_closed__objects_of_the_other_work),
		cmocka_unit_test(ia_open__bad_name__refused),
		cmocka_unit_test(ia_open__null_pointers__invalid_parameter),
		cmocka_unit_test(ia_open__ordering_prefix__optional_and_removed),
		cmocka_unit_test(ia_open__descriptors_run_out__insufficient_resources),
		cmocka_unit_test(ia_open__small_files_only__insufficient_resources),
		cmocka_unit_test(ia_open__events_never_taken__closes_without_residue),
		cmocka_unit_test(ia_open__in_parallel__each_gets_its_own),
	};

	return cmocka_run_group_tests_name("ia open", tests, NULL, NULL);
}
