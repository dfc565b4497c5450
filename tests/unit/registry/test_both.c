// SPDX-License-Identifier: BSD-2-Clause
/*
 * The registries of both generations in one process. The program is linked with libdat, and loads a
 * module that needs libdat2. One dat.conf names the mock of each generation.
 */
#include "both.h"
#include "mock_use.h"

struct mock mock;

DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

static const struct both_calls *both_load(void)
{
	const struct both_calls *calls;
	char text[4096];

	snprintf(text, sizeof(text),
		 "mock u1.2 nonthreadsafe default %s v \"\" \"\"\n"
		 "mock u2.0 nonthreadsafe default %s v \"\" \"\"\n",
		 library_get("MOCK_FOREIGN"), library_get("MOCK2_FOREIGN"));
	conf_set(text);
	calls = dlsym(dlopen(library_get("BOTH_2"), RTLD_NOW | RTLD_LOCAL), "both_2");
	must(calls != NULL);
	return calls;
}

static void open_both(void)
{
	const struct both_calls *two = both_load();
	DAT_IA_HANDLE first, second, third, theirs;

	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(mock.init_info.dapl_version_major == 1);
	must(two->open("mock", &second) == DAT_SUCCESS);
	must(mock.init_info.dapl_version_major == 2);
	theirs = mock.ia;
	must(open_simply("mock", &third) == DAT_SUCCESS);
	must((uintptr_t)first == 1 && (uintptr_t)second == 2 && (uintptr_t)third == 3);
	/* a provider's import may be bound to the other registry */
	must(dats_get_ia_handle((unsigned long)second, &first) == DAT_SUCCESS && first == theirs);
	must(dats_get_ia_handle((unsigned long)theirs, &first) == DAT_SUCCESS && first == second);
	must_fail(dats_get_ia_handle(4, &first), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	must_fail(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
	must(two->close(second) == DAT_SUCCESS);
	close_must(third);
}

/* D2-CONF-08 D2-CONF-15 D2-COEX-01 D2-COEX-02 D2-COEX-10 D2-OPEN-05 D2-REG-20 */
static void ia_open__both_registries__each_its_entry_and_own_numbers(void **state)
{
	(void)state;
	child_run(open_both);
}

static void register_by_other(void)
{
	static const DAT_PROVIDER_INFO info = {"theirs", 2, 0, DAT_FALSE};
	const struct both_calls *two = both_load();
	void *ia;

	must(dlopen(library_get("MOCK2_FOREIGN"), RTLD_NOW) != NULL);
	must(dat_registry_add_provider(mock.provider, &info) == DAT_SUCCESS);
	must(two->open("theirs", &ia) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "theirs") == 0);
	must_fail(dat_registry_remove_provider(mock.provider, &info), DAT_PROVIDER_IN_USE,
		  DAT_NO_SUBTYPE);
	must(two->close(ia) == DAT_SUCCESS);
	must(dat_registry_remove_provider(mock.provider, &info) == DAT_SUCCESS);
	must(two->open("theirs", &ia) != DAT_SUCCESS);
}

/* D2-REG-19 */
static void registry_add__of_the_other_generation__passed_on(void **state)
{
	(void)state;
	child_run(register_by_other);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__both_registries__each_its_entry_and_own_numbers),
		cmocka_unit_test(registry_add__of_the_other_generation__passed_on),
	};

	return cmocka_run_group_tests_name("registry both", tests, NULL, NULL);
}
