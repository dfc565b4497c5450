// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_registry_add_provider and dat_registry_remove_provider.
 */
#include "list_use.h"

#include <dlfcn.h>
#include <pthread.h>

struct mock mock;

static const DAT_PROVIDER_INFO mine = {"mine", DAT_VERSION_MAJOR, 2, DAT_FALSE};
static pthread_barrier_t barrier;

static const DAT_PROVIDER *provider_get(void)
{
	conf_set("");
	must(dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW) != NULL);
	return mock.provider;
}

static void add_and_open(void)
{
	const DAT_PROVIDER *provider = provider_get();
	DAT_PROVIDER_INFO info = mine;

	must(dat_registry_add_provider(provider, &info) == DAT_SUCCESS);
	memset(&info, 0xff, sizeof(info));
	must(list(ROOM) == DAT_SUCCESS && count == 0);
	must(open_simply("mine") == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "mine") == 0);
	must_fail(dat_ia_openv((DAT_NAME_PTR) "mine", 8, &(DAT_EVD_HANDLE){0}, &(DAT_IA_HANDLE){0},
			       OTHER_MAJOR, 0, DAT_FALSE),
		  DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
}

/* REG-ADD-01 REG-ADD-05 REG-ADD-10 REG-LIST-18 IA-OPEN-37 */
static void registry_add__new_name__opens_and_is_not_listed(void **state)
{
	(void)state;
	child_run(add_and_open);
}

static void add_without_file(void)
{
	const DAT_PROVIDER *provider = provider_get();

	must(setenv("DAT_OVERRIDE", "/nonexistent/dat.conf", 1) == 0);
	must(dat_registry_add_provider(provider, &mine) == DAT_SUCCESS);
	must(open_simply("mine") == DAT_SUCCESS);
}

/* CONF-35 */
static void ia_open__no_file_but_registered__opens(void **state)
{
	(void)state;
	child_run(add_without_file);
}

static void add_twice(void)
{
	const DAT_PROVIDER *provider = provider_get();
	static const DAT_PROVIDER_INFO other = {"mine", DAT_VERSION_MAJOR, 2, DAT_TRUE},
				       minor = {"mine", DAT_VERSION_MAJOR, 3, DAT_FALSE};

	must(dat_registry_add_provider(provider, &mine) == DAT_SUCCESS);
	must(dat_registry_add_provider(provider, &mine) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_ALREADY_REGISTERED));
	must(dat_registry_add_provider(provider, &other) == DAT_SUCCESS);
	must(dat_registry_add_provider(provider, &minor) == DAT_SUCCESS);
	must(open_simply("mine") == DAT_SUCCESS);
}

/* REG-ADD-03 REG-ADD-04 */
static void registry_add__same_key__already_registered(void **state)
{
	(void)state;
	child_run(add_twice);
}

static void add_bad(void)
{
	const DAT_PROVIDER *provider = provider_get();
	DAT_PROVIDER_INFO info = mine;

	must(dat_registry_add_provider(NULL, &mine) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1));
	must(dat_registry_add_provider(provider, NULL) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	info.ia_name[0] = '\0';
	must_fail(dat_registry_add_provider(provider, &info), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG2);
	memset(info.ia_name, 'n', sizeof(info.ia_name));
	must_fail(dat_registry_add_provider(provider, &info), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG2);
	info.ia_name[255] = '\0';
	must(dat_registry_add_provider(provider, &info) == DAT_SUCCESS);
	must(open_simply(info.ia_name) == DAT_SUCCESS);
}

/* REG-ADD-06 REG-ADD-07 REG-ADD-08 */
static void registry_add__bad_arguments__invalid_parameter(void **state)
{
	(void)state;
	child_run(add_bad);
}

static void remove_and_add(void)
{
	const DAT_PROVIDER *provider = provider_get();
	DAT_PROVIDER copy = *provider;

	must_fail(dat_registry_remove_provider(provider, &mine), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG2);
	must(dat_registry_add_provider(provider, &mine) == DAT_SUCCESS);
	must(dat_registry_remove_provider(NULL, &mine) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1));
	must(dat_registry_remove_provider(provider, NULL) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	must_fail(dat_registry_remove_provider(&copy, &mine), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG1);
	must(open_simply("mine") == DAT_SUCCESS);
}

/* REG-REMOVE-05 REG-REMOVE-06 REG-REMOVE-07 */
static void registry_remove__not_what_was_added__invalid_parameter(void **state)
{
	(void)state;
	child_run(remove_and_add);
}

static void remove_after_close(void)
{
	const DAT_PROVIDER *provider = provider_get();
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	must(dat_registry_add_provider(provider, &mine) == DAT_SUCCESS);
	must(dat_ia_openv((DAT_NAME_PTR) "mine", 8, &evd, &ia, DAT_VERSION_MAJOR, 2, DAT_FALSE) ==
	     DAT_SUCCESS);
	must_fail(dat_registry_remove_provider(provider, &mine), DAT_PROVIDER_IN_USE,
		  DAT_NO_SUBTYPE);
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
	must(dat_registry_remove_provider(provider, &mine) == DAT_SUCCESS);
	must_fail(open_simply("mine"), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must(dat_registry_add_provider(provider, &mine) == DAT_SUCCESS);
	must(open_simply("mine") == DAT_SUCCESS);
}

/* REG-REMOVE-01 REG-REMOVE-02 REG-REMOVE-04 REG-REMOVE-08 */
static void registry_remove__after_the_last_close__success(void **state)
{
	(void)state;
	child_run(remove_after_close);
}

static void *thread_register(void *index)
{
	DAT_PROVIDER_INFO info = mine;
	int i;

	info.ia_name[0] = (char)('A' + (uintptr_t)index);
	pthread_barrier_wait(&barrier);
	for (i = 0; i < 500; i++) {
		must(dat_registry_add_provider(mock.provider, &info) == DAT_SUCCESS);
		must(dat_registry_remove_provider(mock.provider, &info) == DAT_SUCCESS);
	}
	return NULL;
}

static void parallel_register(void)
{
	pthread_t threads[4];
	uintptr_t i;

	provider_get();
	pthread_barrier_init(&barrier, NULL, 4);
	for (i = 0; i < 4; i++)
		must(pthread_create(&threads[i], NULL, thread_register, (void *)i) == 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* REG-ADD-12 REG-REMOVE-10 */
static void registry_add_and_remove__parallel__all_succeed(void **state)
{
	(void)state;
	child_run(parallel_register);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(registry_add__new_name__opens_and_is_not_listed),
		cmocka_unit_test(ia_open__no_file_but_registered__opens),
		cmocka_unit_test(registry_add__same_key__already_registered),
		cmocka_unit_test(registry_add__bad_arguments__invalid_parameter),
		cmocka_unit_test(registry_remove__not_what_was_added__invalid_parameter),
		cmocka_unit_test(registry_remove__after_the_last_close__success),
		cmocka_unit_test(registry_add_and_remove__parallel__all_succeed),
	};

	return cmocka_run_group_tests_name("registry registrations", tests, NULL, NULL);
}
