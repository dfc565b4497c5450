// SPDX-License-Identifier: BSD-2-Clause
/*
 * Life cycles: a provider library from its first instance to its last, and an instance until
 * exactly one close.
 */
#include "mock_use.h"

struct mock mock;

/* --- initialisation and its end --- */

static void fini_keeps_registration(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	mock.fini_is_idle = true;
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	close_must(ia);
	must(strcmp(mock.notes, "LIOCFU") == 0);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOCFULIO") == 0);
	close_must(ia);
	must(mock.finis == 2);
}

/* PROV-FINI-05 PROV-FINI-07 */
static void ia_close__fini_forgets_to_unregister__the_registry_does_it(void **state)
{
	(void)state;
	child_run(fini_keeps_registration);
}

static void remove_in_use(void)
{
	DAT_IA_HANDLE first, second;

	single_conf();
	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(dat_registry_remove_provider(mock.provider, &mock.init_info) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_IN_USE));
	must(open_simply("mock", &second) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOO") == 0);
}

/* REG-REMOVE-02 REG-REMOVE-03 */
static void registry_remove__instance_open__in_use(void **state)
{
	(void)state;
	child_run(remove_in_use);
}

static void two_names(void)
{
	DAT_IA_HANDLE first, second;

	foreign_conf(LINE("a", U "2", "nonthreadsafe") LINE("b", U "2", "nonthreadsafe"));
	must(open_simply("a", &first) == DAT_SUCCESS);
	must(strcmp(mock.init_info.ia_name, "a") == 0);
	must(open_simply("b", &second) == DAT_SUCCESS);
	must(strcmp(mock.init_info.ia_name, "b") == 0);
	must(strcmp(mock.notes, "LIOIO") == 0);
	close_must(first);
	must(strcmp(mock.fini_info.ia_name, "a") == 0);
	must(strcmp(mock.notes, "LIOIOCF") == 0);
	must(dat_pz_create(second, NULL) == DAT_SUCCESS);
	close_must(second);
	must(strcmp(mock.notes, "LIOIOCFCFU") == 0);
}

/* PROV-INIT-13 PROV-FINI-08 IA-OPEN-38 */
static void ia_open__two_names_of_one_library__one_init_each(void **state)
{
	(void)state;
	child_run(two_names);
}

static void second_name(void)
{
	DAT_IA_HANDLE first, second;

	single_conf();
	mock.second_name = "extra";
	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(open_simply("extra", &second) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "extra") == 0);
	close_must(first);
	/* The name that the library registered still works. */
	must(dat_pz_create(second, NULL) == DAT_SUCCESS);
	close_must(second);
	must(open_simply("extra", &second) == DAT_SUCCESS);
}

/* REG-ADD-02 PROV-FINI-08 */
static void ia_close__library_registered_another_name__it_still_opens(void **state)
{
	(void)state;
	child_run(second_name);
}

static void init_after_removal(void)
{
	DAT_PROVIDER_INIT_FUNC init;
	DAT_IA_HANDLE ia;
	void *library;

	single_conf();
	library = dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW);
	must(library != NULL);
	*(void **)&init = dlsym(library, DAT_PROVIDER_INIT_FUNC_STR);
	init(&(DAT_PROVIDER_INFO){"mock", DAT_VERSION_MAJOR, 2, DAT_FALSE}, "");
	must(dat_registry_remove_provider(mock.provider, &mock.init_info) == DAT_SUCCESS);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(mock.inits == 2);
}

/* PROV-INIT-05 */
static void ia_open__registration_was_removed__init_again(void **state)
{
	(void)state;
	child_run(init_after_removal);
}

static void init_by_hand(void)
{
	const DAT_PROVIDER_INFO info = {"mine", DAT_VERSION_MAJOR, 2, DAT_TRUE};
	DAT_PROVIDER_INIT_FUNC init;
	DAT_IA_HANDLE ia;
	void *library;

	conf_set("");
	library = dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW);
	must(library != NULL);
	*(void **)&init = dlsym(library, DAT_PROVIDER_INIT_FUNC_STR);
	init(&info, "");
	must(open_as("mine", DAT_VERSION_MAJOR, 2, DAT_TRUE, &ia) == DAT_SUCCESS);
	close_must(ia);
	/* The registry did not initialise the library, so it does not finish it. */
	must(strcmp(mock.notes, "LIOC") == 0);
	must(open_as("mine", DAT_VERSION_MAJOR, 2, DAT_TRUE, &ia) == DAT_SUCCESS);
}

/* PROV-INIT-12 IA-OPEN-37 */
static void ia_open__program_initialised_the_library__opens(void **state)
{
	(void)state;
	child_run(init_by_hand);
}

static void library_let_go(void)
{
	const DAT_PROVIDER_INFO info = {"mine", DAT_VERSION_MAJOR, 2, DAT_FALSE};
	DAT_IA_HANDLE ia;
	void *library;

	conf_set("");
	library = dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW);
	must(library != NULL);
	must(dat_registry_add_provider(mock.provider, &info) == DAT_SUCCESS);
	must(open_simply("mine", &ia) == DAT_SUCCESS);
	must(dlclose(library) == 0);
	must(strcmp(mock.notes, "LO") == 0);
	must(dat_pz_create(ia, NULL) == DAT_SUCCESS);
	must(dat_registry_remove_provider(mock.provider, &info) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_IN_USE));
}

/* IA-OPEN-38 */
static void ia_open__program_lets_the_library_go__instance_keeps_it(void **state)
{
	(void)state;
	child_run(library_let_go);
}

static void open_in_init(void)
{
	static bool is_inside;
	DAT_COUNT count;
	DAT_IA_HANDLE ia;

	if (is_inside)
		return;
	is_inside = true;
	/* A provider on top of another one: both may use the registry from here. */
	must(open_simply("b", &ia) == DAT_SUCCESS);
	must_fail(dat_registry_list_providers(0, &count, NULL), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG1);
	must(count == 2);
}

static void nested_init(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf(LINE("a", U "2", "nonthreadsafe") LINE("b", U "2", "nonthreadsafe"));
	mock.in_init = open_in_init;
	must(open_simply("a", &ia) == DAT_SUCCESS);
}

static void ia_open__from_inside_init__no_deadlock(void **state)
{
	(void)state;
	child_run(nested_init);
}

/* --- closing --- */

static void close_bad(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	must_fail(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(dat_ia_close(ia, (DAT_CLOSE_FLAGS)2) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	must(strcmp(mock.notes, "LIO") == 0);
	close_must(ia);
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA));
}

/* IA-CLOSE-17 IA-CLOSE-18 */
static void ia_close__bad_arguments__refused(void **state)
{
	(void)state;
	child_run(close_bad);
}

static void close_refused(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	mock.close_result = DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE;
	must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == mock.close_result);
	must(strcmp(mock.notes, "LIOc") == 0);
	must(dat_pz_create(ia, NULL) == DAT_SUCCESS);
	mock.close_result = DAT_SUCCESS;
	must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOccFU") == 0);
}

/* IA-CLOSE-05 */
static void ia_close__refused_by_the_provider__still_open(void **state)
{
	(void)state;
	child_run(close_refused);
}

static void numbers(void)
{
	DAT_IA_HANDLE stale, ia, keep;
	int i;

	single_conf();
	must(open_simply("mock", &keep) == DAT_SUCCESS);
	must(open_simply("mock", &stale) == DAT_SUCCESS);
	must((uintptr_t)stale < 0x10000);
	close_must(stale);
	for (i = 0; i < 1000; i++) {
		must(open_simply("mock", &ia) == DAT_SUCCESS);
		must(ia != stale);
		close_must(ia);
	}
	must_fail(dat_pz_create(stale, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
}

/* GEN-16: For adapters' handles. */
static void ia_open__a_thousand_times__old_number_is_not_reissued(void **state)
{
	(void)state;
	child_run(numbers);
}

static DAT_IA_HANDLE closing_ia;

static void close_again(void)
{
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
	must_fail(dat_pz_create(closing_ia, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
}

static void close_from_agent(void)
{
	single_conf();
	must(open_simply("mock", &closing_ia) == DAT_SUCCESS);
	mock.in_close = close_again;
	close_must(closing_ia);
	must(strcmp(mock.notes, "LIOCFU") == 0);
}

static void close_gracefully_again(void)
{
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
}

static void close_from_graceful(void)
{
	single_conf();
	must(open_simply("mock", &closing_ia) == DAT_SUCCESS);
	mock.in_close = close_gracefully_again;
	must(dat_ia_close(closing_ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOcFU") == 0);
}

static void ia_close__from_inside_a_graceful_close__invalid_handle(void **state)
{
	(void)state;
	child_run(close_from_graceful);
}

/* IA-CLOSE-27: For adapters' handles. */
static void ia_close__used_from_inside_an_abrupt_close__invalid_handle(void **state)
{
	(void)state;
	child_run(close_from_agent);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_close__fini_forgets_to_unregister__the_registry_does_it),
		cmocka_unit_test(registry_remove__instance_open__in_use),
		cmocka_unit_test(ia_open__two_names_of_one_library__one_init_each),
		cmocka_unit_test(ia_close__library_registered_another_name__it_still_opens),
		cmocka_unit_test(ia_open__registration_was_removed__init_again),
		cmocka_unit_test(ia_open__program_initialised_the_library__opens),
		cmocka_unit_test(ia_open__program_lets_the_library_go__instance_keeps_it),
		cmocka_unit_test(ia_open__from_inside_init__no_deadlock),
		cmocka_unit_test(ia_close__bad_arguments__refused),
		cmocka_unit_test(ia_close__refused_by_the_provider__still_open),
		cmocka_unit_test(ia_open__a_thousand_times__old_number_is_not_reissued),
		cmocka_unit_test(ia_close__from_inside_a_graceful_close__invalid_handle),
		cmocka_unit_test(ia_close__used_from_inside_an_abrupt_close__invalid_handle),
	};

	return cmocka_run_group_tests_name("registry life", tests, NULL, NULL);
}
