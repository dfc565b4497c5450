// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_openv in the registry: the choice of entry and library, and the arguments of the provider.
 */
#include "mock_use.h"

struct mock mock;

/* --- the arguments of the provider --- */

static void open_plain(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	single_conf();
	must(dat_ia_open((DAT_NAME_PTR) "mock", 17, &evd, &ia) == DAT_SUCCESS);
	must(ia != DAT_HANDLE_NULL && evd != DAT_HANDLE_NULL);
	must(strcmp(mock.opened_name, "mock") == 0);
	must(mock.opened_qlen == 17);
	must(mock.opened_evd == DAT_HANDLE_NULL);
	/* Loaded, initialised, opened, in this order. */
	must(strcmp(mock.notes, "LIO") == 0);
	must(mock.inits == 1);
	must(strcmp(mock.init_info.ia_name, "mock") == 0);
	must(mock.init_info.dapl_version_major == DAT_VERSION_MAJOR &&
	     mock.init_info.dapl_version_minor == 2);
	must(mock.init_info.is_thread_safe == DAT_FALSE);
	must(strcmp(mock.instance_data, "data") == 0);
}

/* IA-OPEN-01 IA-OPEN-36 PROV-INIT-02 PROV-INIT-06 CONF-27 */
static void ia_open__first__loads_and_initialises(void **state)
{
	(void)state;
	child_run(open_plain);
}

static void open_with_data(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf("seven " U "2 nonthreadsafe default %s mock.1 \"the seventh\" \"eight\"\n"
		     "empty " U "2 nonthreadsafe default %s mock.1 \"\" \"eight\"\n");
	must(open_simply("seven", &ia) == DAT_SUCCESS);
	must(strcmp(mock.instance_data, "the seventh") == 0);
	must(open_simply("empty", &ia) == DAT_SUCCESS);
	must(mock.instance_data && strcmp(mock.instance_data, "") == 0);
}

/* PROV-INIT-07 D2-REG-23 */
static void ia_open__seventh_field_given_or_empty__passed_to_the_provider(void **state)
{
	(void)state;
	child_run(open_with_data);
}

static void open_twice(void)
{
	DAT_IA_HANDLE first, second;

	single_conf();
	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(open_simply("mock", &second) == DAT_SUCCESS);
	must(first != second);
	must(strcmp(mock.notes, "LIOO") == 0);
	close_must(first);
	/* The other instance keeps the library, and works. */
	must(strcmp(mock.notes, "LIOOC") == 0);
	must(is_loaded("MOCK_FOREIGN"));
	must(dat_pz_create(second, NULL) == DAT_SUCCESS);
	must_fail(dat_pz_create(first, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	close_must(second);
	must(strcmp(mock.notes, "LIOOCCFU") == 0);
	must(memcmp(&mock.fini_info, &mock.init_info, sizeof(mock.fini_info)) == 0);
	must(!is_loaded("MOCK_FOREIGN"));
	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOOCCFULIO") == 0);
}

/* IA-OPEN-02 IA-OPEN-38 PROV-INIT-03 PROV-INIT-04 PROV-FINI-02 PROV-FINI-03 PROV-FINI-04 */
static void ia_open__twice__one_init_and_one_fini(void **state)
{
	(void)state;
	child_run(open_twice);
}

static void open_passes_evd(void)
{
	static const uintptr_t values[] = {1, 2, 0x12340};
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE evd;
	size_t i;

	single_conf();
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		evd = (DAT_EVD_HANDLE)values[i];
		must(dat_ia_open((DAT_NAME_PTR) "mock", 0, &evd, &ia) == DAT_SUCCESS);
		must(mock.opened_evd == (DAT_EVD_HANDLE)values[i]);
	}
}

static void ia_open__async_evd_values__reach_the_provider(void **state)
{
	(void)state;
	child_run(open_passes_evd);
}

static void open_ro_aware(void)
{
	DAT_IA_HANDLE ia;
	char name[300];

	foreign_conf(LINE("mock", U "2", "nonthreadsafe"));
	must(open_simply("RO_AWARE_mock", &ia) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "mock") == 0);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "mock") == 0);
	must_fail(open_simply("RO_AWARE_", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	/* The limit applies to the name as given. */
	memset(name, 'n', sizeof(name));
	memcpy(name, "RO_AWARE_", 9);
	name[256] = '\0';
	must_fail(open_simply(name, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
}

/* IA-OPEN-39 IA-OPEN-42 */
static void ia_open__ro_aware_prefix__removed(void **state)
{
	(void)state;
	child_run(open_ro_aware);
}

/* --- which entry --- */

static void open_unmatched(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf(LINE("mock", U "2", "nonthreadsafe")
			     LINE("two", OTHER_U "0", "nonthreadsafe"));
	must(open_simply("other", &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED));
	must(open_simply("two", &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_MAJOR_NOT_FOUND));
	must(open_as("two", OTHER_MAJOR, 0, DAT_FALSE, &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_MAJOR_NOT_FOUND));
	must(open_as("mock", OTHER_MAJOR, 0, DAT_FALSE, &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_MAJOR_NOT_FOUND));
	must(open_as("mock", DAT_VERSION_MAJOR, 2, DAT_TRUE, &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_THREAD_SAFETY_NOT_FOUND));
	must(open_as("mock", DAT_VERSION_MAJOR, 3, DAT_FALSE, &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_MINOR_NOT_FOUND));
	must(mock.notes[0] == '\0');
	must(ia == DAT_HANDLE_NULL);
}

/* IA-OPEN-24 IA-OPEN-25 IA-OPEN-26 IA-OPEN-27 IA-OPEN-34 CONF-21 D2-CONF-02 D2-OPEN-02 D2-OPEN-03 */
static void ia_open__nothing_matches__says_what(void **state)
{
	(void)state;
	child_run(open_unmatched);
}

static void open_minor(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf(LINE("mock", U "5", "nonthreadsafe") LINE("mock", U "2", "nonthreadsafe")
			     LINE("mock", U "0", "nonthreadsafe"));
	must(open_as("mock", DAT_VERSION_MAJOR, 2, DAT_FALSE, &ia) == DAT_SUCCESS);
	must(mock.init_info.dapl_version_minor == 2);
	must(open_as("mock", DAT_VERSION_MAJOR, 5, DAT_FALSE, &ia) == DAT_SUCCESS);
	must(mock.init_info.dapl_version_minor == 5);
	must(open_as("mock", DAT_VERSION_MAJOR, 1, DAT_FALSE, &ia) == DAT_SUCCESS);
	must(mock.inits == 2); /* 1.2 again, which is registered already */
	must(open_as("mock", DAT_VERSION_MAJOR, 0, DAT_FALSE, &ia) == DAT_SUCCESS);
	must(mock.init_info.dapl_version_minor == 0);
	must_fail(open_as("mock", DAT_VERSION_MAJOR, 6, DAT_FALSE, &ia), DAT_PROVIDER_NOT_FOUND,
		  DAT_MINOR_NOT_FOUND);
}

/* IA-OPEN-28 CONF-33 D2-CONF-01 D2-OPEN-01 */
static void ia_open__minor_versions__exact_then_larger(void **state)
{
	(void)state;
	child_run(open_minor);
}

static void open_both_safeties(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf(LINE("mock", U "2", "nonthreadsafe") LINE("mock", U "2", "threadsafe"));
	must(open_as("mock", DAT_VERSION_MAJOR, 2, DAT_TRUE, &ia) == DAT_SUCCESS);
	must(mock.init_info.is_thread_safe == DAT_TRUE);
	must(open_as("mock", DAT_VERSION_MAJOR, 2, DAT_FALSE, &ia) == DAT_SUCCESS);
	must(mock.init_info.is_thread_safe == DAT_FALSE);
	must(mock.inits == 2);
}

/* CONF-22 CONF-33 IA-OPEN-26 REG-ADD-04 */
static void ia_open__entries_of_both_safeties__the_one_asked_for(void **state)
{
	(void)state;
	child_run(open_both_safeties);
}

static void open_nondefault(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf("mock " U "2 nonthreadsafe nondefault %s v \"\" \"\"\n");
	must_fail(open_simply("mock", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must(mock.notes[0] == '\0');
}

/* CONF-24 */
static void ia_open__nondefault_entry__not_used(void **state)
{
	(void)state;
	child_run(open_nondefault);
}

static void open_fallback(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf("mock " U "2 nonthreadsafe default /nonexistent/lib.so v \"1\" \"\"\n"
		     "other " U "2 nonthreadsafe default /nonexistent/lib.so v \"1\" \"\"\n"
		     "mock " U "2 nonthreadsafe default libm.so.6 v \"2\" \"\"\n"
		     "mock " U "2 nonthreadsafe default %s v \"3\" \"\"\n"
		     "mock " U "2 nonthreadsafe default %s v \"4\" \"\"\n");
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(strcmp(mock.instance_data, "3") == 0);
	must(mock.inits == 1);
	close_must(ia);
	must_fail(open_simply("other", &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* CONF-31 CONF-37 D2-OPEN-07: libm has no dat_provider_init. */
static void ia_open__first_libraries_unusable__next_one(void **state)
{
	(void)state;
	child_run(open_fallback);
}

static void open_by_search(void)
{
	char command[4200], path[4096];
	char *slash;

	/* The loader's search path is read at program start: run the search in a new program. */
	snprintf(path, sizeof(path), "%s", library_get("MOCK_FOREIGN"));
	slash = strrchr(path, '/');
	*slash = '\0';
	snprintf(command, sizeof(command), "%s:%s", path, getenv("LD_LIBRARY_PATH"));
	setenv("LD_LIBRARY_PATH", command, 1);
	setenv("OPEN_BY_SEARCH", slash + 1, 1);
	execl("/proc/self/exe", "test-registry-open", (char *)NULL);
	child_exec_failed();
}

static int open_by_search_child(const char *library)
{
	DAT_IA_HANDLE ia;

	conf_set_library(LINE("mock", U "2", "nonthreadsafe"), library);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	_exit(0);
}

/* CONF-25: without a slash the loader searches; with one, as everywhere else here, it is a path. */
static void ia_open__library_without_slash__is_searched(void **state)
{
	(void)state;
	child_run(open_by_search);
}

static void open_constructor(void)
{
	DAT_IA_HANDLE ia;

	conf_set_library(LINE("mock-self", U "2", "nonthreadsafe"),
			 library_get("MOCK_CONSTRUCTOR"));
	must(open_simply("mock-self", &ia) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LO") == 0);
	close_must(ia);
	must(strcmp(mock.notes, "LOCU") == 0);
	must(open_simply("mock-self", &ia) == DAT_SUCCESS);
}

/* REG-ADD-11 CONF-37: registered by its constructor, while the registry loads it. */
static void ia_open__library_registers_itself__opens(void **state)
{
	(void)state;
	child_run(open_constructor);
}

/* --- arguments and failures --- */

static void open_bad_arguments(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)(uintptr_t)77;
	char name[257];

	single_conf();
	must(dat_ia_open(NULL, 8, &evd, &ia) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1));
	must(ia == DAT_HANDLE_NULL);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	must(dat_ia_open(name, 8, &evd, &ia) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1));
	name[255] = '\0';
	must_fail(dat_ia_open(name, 8, &evd, &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must(dat_ia_open((DAT_NAME_PTR) "mock", 8, NULL, &ia) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3));
	must(dat_ia_open((DAT_NAME_PTR) "mock", 8, &evd, NULL) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG4));
	must(mock.notes[0] == '\0');
}

/* IA-OPEN-29 IA-OPEN-30 IA-OPEN-31 IA-OPEN-32 IA-OPEN-34 D2-OPEN-04 */
static void ia_open__bad_arguments__invalid_parameter(void **state)
{
	(void)state;
	child_run(open_bad_arguments);
}

static void open_fails(void)
{
	static const DAT_PROVIDER_INFO info = {"mine", DAT_VERSION_MAJOR, 2, DAT_FALSE};
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)&mock;
	DAT_IA_HANDLE ia = (DAT_IA_HANDLE)&mock;
	const DAT_PROVIDER *provider;

	single_conf();
	mock.open_result = DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY;
	must(dat_ia_open((DAT_NAME_PTR) "mock", 8, &evd, &ia) == mock.open_result);
	must(ia == DAT_HANDLE_NULL);
	must(evd == (DAT_EVD_HANDLE)&mock);
	must(strcmp(mock.notes, "LIOFU") == 0);
	/* No reference is left to a provider that the process registered, either. */
	must(dlopen(library_get("MOCK_SECOND"), RTLD_NOW) != NULL);
	provider = mock.provider;
	must(dat_registry_add_provider(provider, &info) == DAT_SUCCESS);
	must(open_simply("mine", &ia) == mock.open_result);
	must(dat_registry_remove_provider(provider, &info) == DAT_SUCCESS);
}

/* IA-OPEN-18 IA-OPEN-34 IA-OPEN-35 */
static void ia_open__provider_fails__nothing_is_left(void **state)
{
	(void)state;
	child_run(open_fails);
}

static void init_fails(void)
{
	const DAT_PROVIDER_INFO info = {"mock", DAT_VERSION_MAJOR, 2, DAT_FALSE};
	DAT_IA_HANDLE ia;

	single_conf();
	mock.init_is_idle = true;
	must(open_simply("mock", &ia) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED));
	must(strcmp(mock.notes, "LIU") == 0);
	must(dlopen(library_get("MOCK_SECOND"), RTLD_NOW) != NULL);
	must(dat_registry_add_provider(mock.provider, &info) == DAT_SUCCESS);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
}

/* PROV-INIT-11 CONF-37 */
static void ia_open__init_registers_nothing__provider_not_found(void **state)
{
	(void)state;
	child_run(init_fails);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__first__loads_and_initialises),
		cmocka_unit_test(ia_open__seventh_field_given_or_empty__passed_to_the_provider),
		cmocka_unit_test(ia_open__twice__one_init_and_one_fini),
		cmocka_unit_test(ia_open__async_evd_values__reach_the_provider),
		cmocka_unit_test(ia_open__ro_aware_prefix__removed),
		cmocka_unit_test(ia_open__nothing_matches__says_what),
		cmocka_unit_test(ia_open__minor_versions__exact_then_larger),
		cmocka_unit_test(ia_open__entries_of_both_safeties__the_one_asked_for),
		cmocka_unit_test(ia_open__nondefault_entry__not_used),
		cmocka_unit_test(ia_open__first_libraries_unusable__next_one),
		cmocka_unit_test(ia_open__library_without_slash__is_searched),
		cmocka_unit_test(ia_open__library_registers_itself__opens),
		cmocka_unit_test(ia_open__bad_arguments__invalid_parameter),
		cmocka_unit_test(ia_open__provider_fails__nothing_is_left),
		cmocka_unit_test(ia_open__init_registers_nothing__provider_not_found),
	};
	const char *library = getenv("OPEN_BY_SEARCH");

	if (library)
		return open_by_search_child(library);
	return cmocka_run_group_tests_name("registry open", tests, NULL, NULL);
}
