// SPDX-License-Identifier: BSD-2-Clause
/*
 * A provider library of a third party, for tests of the registry. It only counts and records. Its
 * memory, `mock`, is in the test program, so that it outlives the library. meson.build builds
 * several variants of it with different macros, and all of them for each generation of the API.
 */
#ifndef TESTS_REGISTRY_MOCK_H
#define TESTS_REGISTRY_MOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <dat/udat.h>
#include <dat/dat_registry.h>

/*
 * The generation under test. U and OTHER_U begin the version in a line of dat.conf, of this one and
 * of the other; IN_2 has what only DAT 2.0 has.
 */
#if DAT_VERSION_MAJOR == 2
#define U "u2."
#define OTHER_U "u1."
#define IN_2(...) __VA_ARGS__
#else
#define U "u1."
#define OTHER_U "u2."
#define IN_2(...)
#endif
#define OTHER_MAJOR (3 - DAT_VERSION_MAJOR)

#define MOCK_NOTES_MAX 64
#define MOCK_ARGS_MAX 128
#define MOCK_NAMES_MAX 8

/* A call of a slot, with its arguments one after another. */
struct mock_call {
	size_t slot; /* offset in DAT_PROVIDER */
	size_t len;
	unsigned char args[MOCK_ARGS_MAX];
};

struct mock {
	pthread_mutex_t
		lock; /* guards what happened, as far as several threads may open and close */

	/* what happened, one letter each: I init, F fini, O open, C close, L load, U unload */
	char notes[MOCK_NOTES_MAX];
	unsigned int inits;
	unsigned int finis;
	DAT_PROVIDER_INFO init_info; /* of the last dat_provider_init */
	DAT_PROVIDER_INFO fini_info;
	char *instance_data;
	const char *library; /* MOCK_LIBRARY of the last dat_provider_init, or "" */
	char opened_name[DAT_NAME_MAX_LENGTH]; /* the name that ia_open_func received */
	DAT_COUNT opened_qlen;
	DAT_EVD_HANDLE opened_evd;
	DAT_IA_HANDLE ia;	      /* the provider's handle of the last instance opened */
	const DAT_PROVIDER *provider; /* the table of the library loaded last */
	struct mock_call call;
	unsigned int calls;

	/* what it is to do */
	DAT_RETURN result; /* of every slot but open and close */
	DAT_RETURN open_result;
	DAT_RETURN close_result;
	unsigned int extensions;   /* DAT_EXTENSION of an instance of DAT 2.0 */
	DAT_RETURN query_result;   /* of the query of its registry */
	char query;		   /* its address is the handle that an operation opens */
	bool init_is_idle;	   /* dat_provider_init registers nothing */
	bool fini_is_idle;	   /* dat_provider_fini leaves the registration */
	const char *second_name;   /* registered by dat_provider_init, too */
	void (*in_init)(void);	   /* called from dat_provider_init, before it registers */
	void (*in_close)(void);	   /* called from ia_close_func */
	void (*fill)(void *param); /* called by queries and by calls that return an event */
};

extern __attribute__((visibility("default"))) struct mock mock;

/* An object of the mock; its handle is its address. */
struct mock_object {
	const DAT_PROVIDER *provider;
	unsigned char rest[120];
};

static inline void mock_put(struct mock_call *call, const void *arg, size_t size)
{
	memcpy(call->args + call->len, arg, size);
	call->len += size;
}

/* Append variables of up to twelve names, one by one, without padding. */
#define MOCK_PUT_1(call, a) mock_put(call, &(a), sizeof(a))
#define MOCK_PUT_2(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_1(call, __VA_ARGS__))
#define MOCK_PUT_3(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_2(call, __VA_ARGS__))
#define MOCK_PUT_4(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_3(call, __VA_ARGS__))
#define MOCK_PUT_5(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_4(call, __VA_ARGS__))
#define MOCK_PUT_6(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_5(call, __VA_ARGS__))
#define MOCK_PUT_7(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_6(call, __VA_ARGS__))
#define MOCK_PUT_8(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_7(call, __VA_ARGS__))
#define MOCK_PUT_9(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_8(call, __VA_ARGS__))
#define MOCK_PUT_10(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_9(call, __VA_ARGS__))
#define MOCK_PUT_11(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_10(call, __VA_ARGS__))
#define MOCK_PUT_12(call, a, ...) (MOCK_PUT_1(call, a), MOCK_PUT_11(call, __VA_ARGS__))
#define MOCK_PICK(a, b, c, d, e, f, g, h, i, j, k, l, name, ...) name
#define MOCK_PUT(call, ...)                                                                        \
	MOCK_PICK(__VA_ARGS__, MOCK_PUT_12, MOCK_PUT_11, MOCK_PUT_10, MOCK_PUT_9, MOCK_PUT_8,      \
		  MOCK_PUT_7, MOCK_PUT_6, MOCK_PUT_5, MOCK_PUT_4, MOCK_PUT_3, MOCK_PUT_2,          \
		  MOCK_PUT_1, 0)                                                                   \
	(call, __VA_ARGS__)

#endif
