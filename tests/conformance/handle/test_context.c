// SPDX-License-Identifier: BSD-2-Clause
/* The consumer context that each object carries. */
#include "world.h"

static uint64_t get(DAT_HANDLE handle)
{
	DAT_CONTEXT context = {.as_64 = 0x1234567890abcdefull};

	dt_ok(dat_get_consumer_context(handle, &context));
	return context.as_64;
}

static void set(DAT_HANDLE handle, uint64_t value)
{
	const DAT_CONTEXT context = {.as_64 = value};

	dt_ok(dat_set_consumer_context(handle, context));
}

/* CTX-GET-04 CTX-GET-02 CTX-GET-03 EP-GEN-11 SRQ-GEN-04 */
static void get_consumer_context__new_object__zero(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < WORLD_COUNT; i++)
		assert_true(get(world->object[i].handle) == 0);
}

/* CTX-GET-04 */
static void get_consumer_context__cell_of_a_dead_object_with_one__zero(void **state)
{
	struct world *world = *state;
	DAT_PZ_HANDLE pz;

	for (int i = 0; i < 3000; i++) {
		dt_ok(dat_pz_create(world->ia.ia, &pz));
		assert_true(get(pz) == 0);
		set(pz, UINT64_MAX);
		dt_ok(dat_pz_free(pz));
	}
}

/* CTX-GET-01 CTX-GET-02 CTX-GET-03 CTX-SET-06 CTX-SET-01 CTX-SET-02 CTX-SET-04 CTX-SET-05
 * CTX-SET-08 */
static void set_consumer_context__any_pattern__read_back(void **state)
{
	static const uint64_t patterns[] = {1,
					    UINT64_MAX,
					    0x8000000000000000ull,
					    0x00000000ffffffffull,
					    0xffffffff00000000ull,
					    0x0123456789abcdefull,
					    0xdeadbeefdeadbee1ull};
	struct world *world = *state;

	for (size_t i = 0; i < WORLD_COUNT; i++) {
		for (size_t j = 0; j < COUNT_OF(patterns); j++) {
			set(world->object[i].handle, patterns[j]);
			assert_true(get(world->object[i].handle) == patterns[j]);
			assert_true(get(world->object[i].handle) == patterns[j]);
		}
	}
	world_check_alive(world);
}

/* CTX-SET-03 */
static void set_consumer_context__null__cleared(void **state)
{
	struct world *world = *state;
	const DAT_CONTEXT none = {.as_ptr = NULL};

	for (size_t i = 0; i < WORLD_COUNT; i++) {
		set(world->object[i].handle, 0x77);
		dt_ok(dat_set_consumer_context(world->object[i].handle, none));
		assert_true(get(world->object[i].handle) == 0);
	}
}

/* CTX-SET-10 */
static void set_consumer_context__several_objects__independent(void **state)
{
	struct world *world = *state;
	struct dt_ia second;

	dt_ia_open(&second);
	for (size_t i = 0; i < WORLD_COUNT; i++)
		set(world->object[i].handle, 1000 + i);
	set(second.ia, 2000);
	set(second.pz, 2001);
	set(second.async, 2002);
	for (size_t i = 0; i < WORLD_COUNT; i++)
		assert_true(get(world->object[i].handle) == 1000 + i);
	assert_true(get(second.ia) == 2000);
	assert_true(get(second.pz) == 2001);
	assert_true(get(second.async) == 2002);
	dt_ia_close(&second);
	assert_true(get(world->ia.ia) == 1000);
}

/* CTX-GET-05 CTX-SET-07 */
static void consumer_context__no_object__invalid_handle(void **state)
{
	struct world *world = *state;
	DAT_CONTEXT context = {.as_64 = 3};
	struct dt_ia closed;
	struct conf_bad bad;

	dt_ia_open(&closed);
	const DAT_IA_HANDLE gone = closed.ia;

	dt_ia_close(&closed);
	conf_bad_make(&world->ia, &bad);
	for (size_t i = 0; i < CONF_BAD_COUNT; i++) {
		if (bad.handle[i] == world->ia.ia || bad.handle[i] == world->ia.async)
			continue;
		dt_fails_with(dat_get_consumer_context(bad.handle[i], &context), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		dt_fails_with(dat_set_consumer_context(bad.handle[i], context), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
	}
	dt_fails_with(dat_get_consumer_context(gone, &context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_set_consumer_context(gone, context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
}

/* CTX-GET-06 */
static void get_consumer_context__null_pointer__invalid_parameter(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < WORLD_COUNT; i++)
		dt_fails_with(dat_get_consumer_context(world->object[i].handle, NULL),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void *set_and_get(void *arg)
{
	struct world *world = arg;
	DAT_CONTEXT context = {.as_64 = 0};

	/* Both halves of each value are equal, so a torn value is detected. */
	for (uint64_t i = 1; i < 2000; i++) {
		for (size_t j = 0; j < WORLD_COUNT; j++) {
			context.as_64 = i << 32 | i;
			conf_try(dat_set_consumer_context(world->object[j].handle, context));
			conf_try(dat_get_consumer_context(world->object[j].handle, &context));
			if (context.as_64 >> 32 != (context.as_64 & 0xffffffffu))
				return (void *)(uintptr_t) "a torn context";
		}
	}
	return NULL;
}

/* CTX-GET-07 CTX-SET-11 GEN-26 */
static void consumer_context__in_parallel__never_torn(void **state)
{
	conf_parallel(set_and_get, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(get_consumer_context__new_object__zero),
		world_test(get_consumer_context__cell_of_a_dead_object_with_one__zero),
		world_test(set_consumer_context__any_pattern__read_back),
		world_test(set_consumer_context__null__cleared),
		world_test(set_consumer_context__several_objects__independent),
		world_test(consumer_context__no_object__invalid_handle),
		world_test(get_consumer_context__null_pointer__invalid_parameter),
		world_test(consumer_context__in_parallel__never_torn),
	};

	return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
