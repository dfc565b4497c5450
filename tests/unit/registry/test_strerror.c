// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_strerror: every type and subtype of the header has its own name as text, and everything else
 * is refused with texts that can be printed.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dat/udat.h>

#define NAMED(value)                                                                               \
	{                                                                                          \
		value, #value                                                                      \
	}

static const struct named {
	DAT_RETURN value;
	const char *name;
} types[] = {
	NAMED(DAT_SUCCESS),
	NAMED(DAT_ABORT),
	NAMED(DAT_CONN_QUAL_IN_USE),
	NAMED(DAT_INSUFFICIENT_RESOURCES),
	NAMED(DAT_INTERNAL_ERROR),
	NAMED(DAT_INVALID_HANDLE),
	NAMED(DAT_INVALID_PARAMETER),
	NAMED(DAT_INVALID_STATE),
	NAMED(DAT_LENGTH_ERROR),
	NAMED(DAT_MODEL_NOT_SUPPORTED),
	NAMED(DAT_PROVIDER_NOT_FOUND),
	NAMED(DAT_PRIVILEGES_VIOLATION),
	NAMED(DAT_PROTECTION_VIOLATION),
	NAMED(DAT_QUEUE_EMPTY),
	NAMED(DAT_QUEUE_FULL),
	NAMED(DAT_TIMEOUT_EXPIRED),
	NAMED(DAT_PROVIDER_ALREADY_REGISTERED),
	NAMED(DAT_PROVIDER_IN_USE),
	NAMED(DAT_INVALID_ADDRESS),
	NAMED(DAT_INTERRUPTED_CALL),
	NAMED(DAT_CONN_QUAL_UNAVAILABLE),
#if DAT_VERSION_MAJOR == 2
	NAMED(DAT_RESERVED_LMR),
	NAMED(DAT_PORT_IN_USE),
	NAMED(DAT_COMM_NOT_SUPPORTED),
	NAMED(DAT_EXTENSION_BASE),
#endif
};

static const struct named subtypes[] = {
	{DAT_NO_SUBTYPE, ""},
	NAMED(DAT_SUB_INTERRUPTED),
	NAMED(DAT_RESOURCE_MEMORY),
	NAMED(DAT_RESOURCE_DEVICE),
	NAMED(DAT_RESOURCE_TEP),
	NAMED(DAT_RESOURCE_TEVD),
	NAMED(DAT_RESOURCE_PROTECTION_DOMAIN),
	NAMED(DAT_RESOURCE_MEMORY_REGION),
	NAMED(DAT_RESOURCE_ERROR_HANDLER),
	NAMED(DAT_RESOURCE_CREDITS),
	NAMED(DAT_RESOURCE_SRQ),
	NAMED(DAT_INVALID_HANDLE_IA),
	NAMED(DAT_INVALID_HANDLE_EP),
	NAMED(DAT_INVALID_HANDLE_LMR),
	NAMED(DAT_INVALID_HANDLE_RMR),
	NAMED(DAT_INVALID_HANDLE_PZ),
	NAMED(DAT_INVALID_HANDLE_PSP),
	NAMED(DAT_INVALID_HANDLE_RSP),
	NAMED(DAT_INVALID_HANDLE_CR),
	NAMED(DAT_INVALID_HANDLE_CNO),
	NAMED(DAT_INVALID_HANDLE_EVD_CR),
	NAMED(DAT_INVALID_HANDLE_EVD_REQUEST),
	NAMED(DAT_INVALID_HANDLE_EVD_RECV),
	NAMED(DAT_INVALID_HANDLE_EVD_CONN),
	NAMED(DAT_INVALID_HANDLE_EVD_ASYNC),
	NAMED(DAT_INVALID_HANDLE_SRQ),
	NAMED(DAT_INVALID_HANDLE1),
	NAMED(DAT_INVALID_HANDLE2),
	NAMED(DAT_INVALID_HANDLE3),
	NAMED(DAT_INVALID_HANDLE4),
	NAMED(DAT_INVALID_HANDLE5),
	NAMED(DAT_INVALID_HANDLE6),
	NAMED(DAT_INVALID_HANDLE7),
	NAMED(DAT_INVALID_HANDLE8),
	NAMED(DAT_INVALID_HANDLE9),
	NAMED(DAT_INVALID_HANDLE10),
	NAMED(DAT_INVALID_ARG1),
	NAMED(DAT_INVALID_ARG2),
	NAMED(DAT_INVALID_ARG3),
	NAMED(DAT_INVALID_ARG4),
	NAMED(DAT_INVALID_ARG5),
	NAMED(DAT_INVALID_ARG6),
	NAMED(DAT_INVALID_ARG7),
	NAMED(DAT_INVALID_ARG8),
	NAMED(DAT_INVALID_ARG9),
	NAMED(DAT_INVALID_ARG10),
	NAMED(DAT_INVALID_STATE_EP_UNCONNECTED),
	NAMED(DAT_INVALID_STATE_EP_ACTCONNPENDING),
	NAMED(DAT_INVALID_STATE_EP_PASSCONNPENDING),
	NAMED(DAT_INVALID_STATE_EP_TENTCONNPENDING),
	NAMED(DAT_INVALID_STATE_EP_CONNECTED),
	NAMED(DAT_INVALID_STATE_EP_DISCONNECTED),
	NAMED(DAT_INVALID_STATE_EP_RESERVED),
	NAMED(DAT_INVALID_STATE_EP_COMPLPENDING),
	NAMED(DAT_INVALID_STATE_EP_DISCPENDING),
	NAMED(DAT_INVALID_STATE_EP_PROVIDERCONTROL),
	NAMED(DAT_INVALID_STATE_EP_NOTREADY),
	NAMED(DAT_INVALID_STATE_EP_RECV_WATERMARK),
	NAMED(DAT_INVALID_STATE_EP_PZ),
	NAMED(DAT_INVALID_STATE_EP_EVD_REQUEST),
	NAMED(DAT_INVALID_STATE_EP_EVD_RECV),
	NAMED(DAT_INVALID_STATE_EP_EVD_CONNECT),
	NAMED(DAT_INVALID_STATE_EP_UNCONFIGURED),
	NAMED(DAT_INVALID_STATE_EP_UNCONFRESERVED),
	NAMED(DAT_INVALID_STATE_EP_UNCONFPASSIVE),
	NAMED(DAT_INVALID_STATE_EP_UNCONFTENTATIVE),
	NAMED(DAT_INVALID_STATE_CNO_IN_USE),
	NAMED(DAT_INVALID_STATE_CNO_DEAD),
	NAMED(DAT_INVALID_STATE_EVD_OPEN),
	NAMED(DAT_INVALID_STATE_EVD_ENABLED),
	NAMED(DAT_INVALID_STATE_EVD_DISABLED),
	NAMED(DAT_INVALID_STATE_EVD_WAITABLE),
	NAMED(DAT_INVALID_STATE_EVD_UNWAITABLE),
	NAMED(DAT_INVALID_STATE_EVD_IN_USE),
	NAMED(DAT_INVALID_STATE_EVD_CONFIG_NOTIFY),
	NAMED(DAT_INVALID_STATE_EVD_CONFIG_SOLICITED),
	NAMED(DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD),
	NAMED(DAT_INVALID_STATE_EVD_WAITER),
	NAMED(DAT_INVALID_STATE_EVD_ASYNC),
	NAMED(DAT_INVALID_STATE_IA_IN_USE),
	NAMED(DAT_INVALID_STATE_LMR_IN_USE),
	NAMED(DAT_INVALID_STATE_LMR_FREE),
	NAMED(DAT_INVALID_STATE_PZ_IN_USE),
	NAMED(DAT_INVALID_STATE_PZ_FREE),
	NAMED(DAT_INVALID_STATE_SRQ_OPERATIONAL),
	NAMED(DAT_INVALID_STATE_SRQ_ERROR),
	NAMED(DAT_INVALID_STATE_SRQ_IN_USE),
	NAMED(DAT_PRIVILEGES_READ),
	NAMED(DAT_PRIVILEGES_WRITE),
	NAMED(DAT_PRIVILEGES_RDMA_READ),
	NAMED(DAT_PRIVILEGES_RDMA_WRITE),
	NAMED(DAT_PROTECTION_READ),
	NAMED(DAT_PROTECTION_WRITE),
	NAMED(DAT_PROTECTION_RDMA_READ),
	NAMED(DAT_PROTECTION_RDMA_WRITE),
	NAMED(DAT_INVALID_ADDRESS_UNSUPPORTED),
	NAMED(DAT_INVALID_ADDRESS_UNREACHABLE),
	NAMED(DAT_INVALID_ADDRESS_MALFORMED),
	NAMED(DAT_NAME_NOT_REGISTERED),
	NAMED(DAT_MAJOR_NOT_FOUND),
	NAMED(DAT_MINOR_NOT_FOUND),
	NAMED(DAT_THREAD_SAFETY_NOT_FOUND),
#if DAT_VERSION_MAJOR == 2
	NAMED(DAT_INVALID_HANDLE_CSP),
	NAMED(DAT_INVALID_STATE_SRQ_SHUTDOWN),
#define LAST_SUBTYPE DAT_THREAD_SAFETY_NOT_FOUND
#else
	NAMED(DAT_INVALID_RO_COOKIE),
#define LAST_SUBTYPE DAT_INVALID_RO_COOKIE
#endif
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* STRERROR-01 STRERROR-15: the first call of the program, and no adapter is open. */
static void strerror__success__empty_minor(void **state)
{
	const char *major, *minor;

	(void)state;
	assert_int_equal(dat_strerror(DAT_SUCCESS, &major, &minor), DAT_SUCCESS);
	assert_string_equal(major, "DAT_SUCCESS");
	assert_string_equal(minor, "");
}

/* STRERROR-02 STRERROR-03 STRERROR-04 STRERROR-05 STRERROR-08 STRERROR-09 COMPAT-37 D2-ERR-04
 * D2-ERR-05 */
static void strerror__every_type_and_subtype__names_of_both(void **state)
{
	static const DAT_RETURN classes[] = {0, DAT_CLASS_WARNING, DAT_CLASS_ERROR};
	const char *major, *minor;
	size_t i, j, k;

	(void)state;
	for (i = 0; i < COUNT(types); i++)
		for (j = 0; j < COUNT(subtypes); j++)
			for (k = 0; k < COUNT(classes); k++) {
				DAT_RETURN ret = classes[k] | types[i].value | subtypes[j].value;

				assert_int_equal(dat_strerror(ret, &major, &minor), DAT_SUCCESS);
				assert_string_equal(major, types[i].name);
				assert_string_equal(minor, subtypes[j].name);
			}
}

static void must_be_invalid(DAT_RETURN ret)
{
	const char *major = NULL, *minor = NULL;
	DAT_RETURN result = dat_strerror(ret, &major, &minor);

	assert_int_equal(result, DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
	/* Consumers print them without checking the result. */
	assert_non_null(major);
	assert_non_null(minor);
	assert_true(strlen(major) < 100 && strlen(minor) < 100);
}

/* STRERROR-06 STRERROR-13 D2-ERR-06 D2-ERR-07 */
static void strerror__undefined_type__invalid_parameter(void **state)
{
	(void)state;
	must_be_invalid(DAT_CLASS_ERROR | 0x00180000);
	must_be_invalid(DAT_CLASS_ERROR | 0x0ffe0000);
#if DAT_VERSION_MAJOR == 1
	must_be_invalid(DAT_CLASS_ERROR | 0x00150000);
	must_be_invalid(DAT_CLASS_ERROR | 0x10000000);
	must_be_invalid(0x3ffe0000);
#endif
}

/* STRERROR-07 STRERROR-13 */
static void strerror__undefined_subtype__invalid_parameter(void **state)
{
	(void)state;
	must_be_invalid(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | (LAST_SUBTYPE + 1));
	must_be_invalid(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | 0xffff);
}

/* STRERROR-10 */
static void strerror__not_implemented__in_each_value(void **state)
{
	static const DAT_RETURN values[] = {
#if DAT_VERSION_MAJOR == 1
		0x0fff0000,
		0x8fff0000,
#endif
		0xffff0000,
		0x3fff0000,
		0x7fff0000,
		0xbfff0000
	};
	const char *major, *minor;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(values); i++) {
		assert_int_equal(dat_strerror(values[i], &major, &minor), DAT_SUCCESS);
		assert_string_equal(major, "DAT_NOT_IMPLEMENTED");
	}
}

/* STRERROR-11 GEN-18 */
static void strerror__null_major__invalid_parameter(void **state)
{
	const char *minor;
	DAT_RETURN ret = dat_strerror(DAT_SUCCESS, NULL, &minor);

	(void)state;
	assert_int_equal(ret, DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

/* STRERROR-12 */
static void strerror__null_minor__success(void **state)
{
	const char *major;

	(void)state;
	assert_int_equal(dat_strerror(DAT_CLASS_ERROR | DAT_ABORT, &major, NULL), DAT_SUCCESS);
	assert_string_equal(major, "DAT_ABORT");
}

/* STRERROR-14 */
static void strerror__twice__the_same_texts(void **state)
{
	const char *major[2], *minor[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++)
		assert_int_equal(
			dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP,
				     &major[i], &minor[i]),
			DAT_SUCCESS);
	assert_ptr_equal(major[0], major[1]);
	assert_ptr_equal(minor[0], minor[1]);
}

static void *strerror_often(void *result)
{
	const char *major, *minor;
	int i;

	for (i = 0; i < 10000; i++)
		if (dat_strerror(types[i % COUNT(types)].value, &major, &minor) != DAT_SUCCESS ||
		    strcmp(major, types[i % COUNT(types)].name) != 0)
			*(int *)result = 1;
	return NULL;
}

/* STRERROR-16 */
static void strerror__parallel__right_texts(void **state)
{
	pthread_t threads[4];
	int results[4] = {0};
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, strerror_often, &results[i]), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(results[i], 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(strerror__success__empty_minor),
		cmocka_unit_test(strerror__every_type_and_subtype__names_of_both),
		cmocka_unit_test(strerror__undefined_type__invalid_parameter),
		cmocka_unit_test(strerror__undefined_subtype__invalid_parameter),
		cmocka_unit_test(strerror__not_implemented__in_each_value),
		cmocka_unit_test(strerror__null_major__invalid_parameter),
		cmocka_unit_test(strerror__null_minor__success),
		cmocka_unit_test(strerror__twice__the_same_texts),
		cmocka_unit_test(strerror__parallel__right_texts),
	};

	return cmocka_run_group_tests_name("registry strerror", tests, NULL, NULL);
}
