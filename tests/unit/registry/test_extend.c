// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_extension_op, slots that a provider lacks, and what else only the registry of DAT 2.0 does.
 */
#include "mock_open.h"

#include <dlfcn.h>

#include "shared/opendat.h"

struct mock mock;

#define NOT_IMPLEMENTED (DAT_CLASS_ERROR | (DAT_RETURN)DAT_NOT_IMPLEMENTED)
#define OPERATION 3
#define FIRST ((DAT_UINT64)0x1122334455667788)

DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

static void without_extensions(void)
{
	mock.extensions = DAT_EXTENSION_NONE;
	mock_open("MOCK_FOREIGN");
	mock.calls = 0;
	must(dat_extension_op(ia, OPERATION, FIRST) == NOT_IMPLEMENTED);
	must(dat_extension_op(&object, OPERATION, FIRST) == NOT_IMPLEMENTED);
	must(mock.calls == 0);
}

/* D2-REG-10 D2-EXT-03 */
static void extension_op__provider_has_none__not_implemented(void **state)
{
	(void)state;
	child_run(without_extensions);
}

static void with_extensions(void)
{
	mock.extensions = DAT_EXTENSION_IB;
	mock_open("MOCK_FOREIGN");
	mock.result = DAT_CLASS_ERROR | DAT_ABORT;
	must(dat_extension_op(&object, OPERATION, FIRST) == mock.result);
	must(mock.calls == 1);
	must_fail(dat_extension_op(DAT_HANDLE_NULL, OPERATION, FIRST), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE1);
	must_fail(dat_extension_op((DAT_HANDLE)9, OPERATION, FIRST), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE1);
	must(dat_extension_op(ia, DAT_OPEN_EXTENSION_BASE + 1, FIRST) == NOT_IMPLEMENTED);
	must(dat_extension_op(ia, DAT_CLOSE_EXTENSION_BASE + 1) == NOT_IMPLEMENTED);
	must(mock.calls == 1);
}

/* D2-EXT-03 D2-EXT-04 */
static void extension_op__bad_handle_or_number__refused(void **state)
{
	(void)state;
	child_run(with_extensions);
}

static void query_fails(void)
{
	mock.query_result = DAT_CLASS_ERROR | DAT_INTERNAL_ERROR;
	mock_open("MOCK_FOREIGN");
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
}

/* D2-REG-24 */
static void ia_open__registrys_query_fails__opens(void **state)
{
	(void)state;
	child_run(query_fails);
}

static void open_query(void)
{
	char name[] = "mock", unknown[] = "none";
	DAT_HANDLE query = DAT_HANDLE_NULL;
	int round;

	conf_set_library("mock u2.0 nonthreadsafe default %s mock.1 \"\" \"\"\n",
			 library_get("MOCK_FOREIGN"));
	for (round = 0; round < 2; round++) {
		must(dat_extension_op(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, name, &query) ==
		     DAT_SUCCESS);
		must(query == &mock.query);
		must(mock.init_info.dapl_version_major == 2 && !mock.init_info.is_thread_safe);
		/* the name stands in place of the handle */
		must(memcmp(mock.call.args, &(char *){name}, sizeof(char *)) == 0);
		must(mock.finis == (unsigned int)round);
		must(dat_extension_op(query, DAT_CLOSE_EXTENSION_BASE) == DAT_SUCCESS);
		must(memcmp(mock.call.args, &query, sizeof(query)) == 0);
		must(mock.finis == (unsigned int)round + 1);
		must_fail(dat_extension_op(query, DAT_CLOSE_EXTENSION_BASE), DAT_INVALID_HANDLE,
			  DAT_INVALID_HANDLE_IA);
	}
	must_fail(dat_extension_op(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, unknown, &query),
		  DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must_fail(dat_extension_op(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, NULL, &query),
		  DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	mock.result = DAT_CLASS_ERROR | DAT_ABORT;
	must(dat_extension_op(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, name, &query) ==
	     mock.result);
	must(mock.finis == 3);
}

/* D2-REG-27 D2-REG-28 D2-QRY-04 D2-QRY-05 D2-QRY-09 */
static void extension_op__open_and_close__loads_and_releases(void **state)
{
	(void)state;
	child_run(open_query);
}

static void missing_slots(void)
{
	DAT_PROVIDER few = {.device_name = "few"};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	mock_open("MOCK_FOREIGN");
	object.provider = &few;
	must_fail(dat_csp_free(&object), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	must_fail(dat_ep_free(&object), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	must_fail(dat_ep_post_send(&object, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG),
		  DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	must(dat_extension_op(&object, OPERATION, FIRST) == NOT_IMPLEMENTED);
}

/* D2-REG-25 */
static void every_call__provider_lacks_the_slot__model_not_supported(void **state)
{
	(void)state;
	child_run(missing_slots);
}

static void translation(void)
{
	DAT_IA_HANDLE other;

	mock_open("MOCK_FOREIGN");
	must(dats_get_ia_handle((unsigned long)ia, &other) == DAT_SUCCESS && other == mock.ia);
	must(dats_get_ia_handle((unsigned long)mock.ia, &other) == DAT_SUCCESS && other == ia);
	must_fail(dats_get_ia_handle(0, &other), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	must_fail(dats_get_ia_handle(77, &other), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	must_fail(dats_get_ia_handle((unsigned long)&object, &other), DAT_INVALID_HANDLE,
		  DAT_INVALID_HANDLE_IA);
}

/* D2-REG-17 */
static void dats_get_ia_handle__either_handle__the_other(void **state)
{
	(void)state;
	child_run(translation);
}

static void small_integer_fill(void *param)
{
	memcpy(param, &ia, sizeof(ia));
}

static void translated_by_provider(void)
{
	DAT_CSP_PARAM param;

	mock_open("MOCK_FOREIGN");
	mock.fill = small_integer_fill;
	must(dat_csp_query(&object, DAT_CSP_FIELD_ALL, &param) == DAT_SUCCESS);
	must(param.ia_handle == ia);
}

/* D2-REG-16 */
static void query__provider_gives_consumers_handle__unchanged(void **state)
{
	(void)state;
	child_run(translated_by_provider);
}

static void scope(void)
{
	mock_open("MOCK_FOREIGN");
	must(dlsym(RTLD_DEFAULT, "dat_provider_fini") != NULL);
}

/* D2-REG-22 */
static void provider__loaded__symbols_are_global(void **state)
{
	(void)state;
	child_run(scope);
}

static void other_front(void)
{
	static const DAT_PROVIDER_INFO info = {"theirs", 2, 0, DAT_FALSE};
	struct opendat_extension extension = {.magic = OPENDAT_EXTENSION_MAGIC,
					      .size = sizeof(extension)};
	DAT_PROVIDER table;

	mock_open("MOCK_OURS");
	table = *mock.provider;
	table.extension = &extension;
	must_fail(dat_registry_add_provider(&table, &info), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG1);
	extension.magic = OPENDAT_EXTENSION_2_MAGIC;
	must(dat_registry_add_provider(&table, &info) == DAT_SUCCESS);
}

/* D2-REG-08 */
static void registry_add__table_of_dat_1__refused(void **state)
{
	(void)state;
	child_run(other_front);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(extension_op__provider_has_none__not_implemented),
		cmocka_unit_test(extension_op__bad_handle_or_number__refused),
		cmocka_unit_test(ia_open__registrys_query_fails__opens),
		cmocka_unit_test(extension_op__open_and_close__loads_and_releases),
		cmocka_unit_test(every_call__provider_lacks_the_slot__model_not_supported),
		cmocka_unit_test(dats_get_ia_handle__either_handle__the_other),
		cmocka_unit_test(query__provider_gives_consumers_handle__unchanged),
		cmocka_unit_test(provider__loaded__symbols_are_global),
		cmocka_unit_test(registry_add__table_of_dat_1__refused),
	};

	return cmocka_run_group_tests_name("registry extend", tests, NULL, NULL);
}
