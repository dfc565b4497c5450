// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles: types, and values that are not the expected handle. A wrong value must not crash a call
 * or change a live object.
 */
#include "world.h"

#include <dat/dat_registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* --- types --- */

/* HANDLE-TYPE-01 HANDLE-TYPE-02 HANDLE-TYPE-03 HANDLE-TYPE-04 HANDLE-TYPE-05 HANDLE-TYPE-06
 * HANDLE-TYPE-07 HANDLE-TYPE-08 HANDLE-TYPE-09 HANDLE-TYPE-10 HANDLE-TYPE-11 CONN-GEN-07 EP-GEN-11
 */
static void get_handle_type__each_object__its_type(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < WORLD_COUNT; i++) {
		DAT_HANDLE_TYPE type = (DAT_HANDLE_TYPE)99;

		dt_ok(dat_get_handle_type(world->object[i].handle, &type));
		assert_int_equal(type, world->object[i].type);
	}
}

/* HANDLE-TYPE-12 GEN-27 GEN-28 */
static void handle_constants__of_the_header__values(void **state)
{
	(void)state;
	assert_int_equal(DAT_HANDLE_TYPE_CR, 0);
	assert_int_equal(DAT_HANDLE_TYPE_EP, 1);
	assert_int_equal(DAT_HANDLE_TYPE_EVD, 2);
	assert_int_equal(DAT_HANDLE_TYPE_IA, 3);
	assert_int_equal(DAT_HANDLE_TYPE_LMR, 4);
	assert_int_equal(DAT_HANDLE_TYPE_PSP, 5);
	assert_int_equal(DAT_HANDLE_TYPE_PZ, 6);
	assert_int_equal(DAT_HANDLE_TYPE_RMR, 7);
	assert_int_equal(DAT_HANDLE_TYPE_RSP, 8);
	assert_int_equal(DAT_HANDLE_TYPE_CNO, 9);
	assert_int_equal(DAT_HANDLE_TYPE_SRQ, 10);
	assert_true(DAT_TIMEOUT_INFINITE == UINT32_MAX);
	assert_int_equal(sizeof(DAT_TIMEOUT), 4);
	assert_null(DAT_HANDLE_NULL);
	assert_int_equal(DAT_NAME_MAX_LENGTH, 256);
}

/* HANDLE-TYPE-14 */
static void get_handle_type__null_pointer__invalid_parameter(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < WORLD_COUNT; i++)
		dt_fails_with(dat_get_handle_type(world->object[i].handle, NULL),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void *ask_types(void *arg)
{
	struct world *world = arg;
	DAT_HANDLE_TYPE type;

	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < WORLD_COUNT; i++) {
			conf_try(dat_get_handle_type(world->object[i].handle, &type));
			if (type != world->object[i].type)
				return (void *)(uintptr_t) "another type";
		}
	}
	return NULL;
}

/* HANDLE-TYPE-15 */
static void get_handle_type__in_parallel__same_answer(void **state)
{
	conf_parallel(ask_types, *state);
}

/* --- handles of the wrong object --- */

/* GEN-14 HANDLE-TYPE-13 EP-GEN-01 */
static void each_call__null_handle__invalid_handle(void **state)
{
	world_check_dead(DAT_HANDLE_NULL);
	world_check_alive(*state);
}

/* GEN-15 EP-GEN-02 GEN-13 */
static void each_call__handle_of_another_type__invalid_handle(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < WORLD_CALLS; i++)
		for (size_t j = 0; j < WORLD_COUNT; j++)
			if (world_calls[i].type != world->object[j].type)
				world_check_refused(&world_calls[i], world->object[j].handle);
	world_check_alive(world);
}

/* --- values that are no handles --- */

/* GEN-33 */
static void each_call__small_integer__invalid_handle(void **state)
{
	struct world *world = *state;

	/* IA handles are small integers too: those in use are left out. */
	for (uintptr_t value = 0; value < 4096; value++) {
		const DAT_HANDLE handle = (DAT_HANDLE)value;
		DAT_HANDLE_TYPE type;

		if (handle == world->ia.ia)
			continue;
		dt_fails_with(dat_get_handle_type(handle, &type), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		if (value < 16 || value % 251 == 0)
			world_check_dead(handle);
	}
	world_check_dead(DAT_EVD_ASYNC_EXISTS);
	world_check_dead(DAT_EVD_OUT_OF_SCOPE);
	world_check_alive(world);
}

/* GEN-33 */
static void each_call__value_beside_a_live_handle__invalid_handle(void **state)
{
	static const int offsets[] = {1, 2, 3, 4, 7, 8, 16, 64, -1, -4, -8};
	struct world *world = *state;

	for (size_t i = 1; i < WORLD_COUNT; i++) /* not next to the integer of the IA */
		for (size_t j = 0; j < COUNT_OF(offsets); j++)
			world_check_dead((char *)world->object[i].handle + offsets[j]);
	world_check_alive(world);
}

#define ROOM (1024u * 1024 * 1024) /* more than all handles take */

/* GEN-33: values where handles of later objects will be, or would be */
static void each_call__value_far_behind_a_live_handle__invalid_handle(void **state)
{
	struct world *world = *state;
	const uintptr_t live = (uintptr_t)world->object[1].handle;

	for (uintptr_t offset = 65536; offset < ROOM; offset += 65536) {
		const DAT_HANDLE handle = (DAT_HANDLE)(live + offset);
		DAT_HANDLE_TYPE type;
		DAT_EVENT event;

		dt_fails_with(dat_get_handle_type(handle, &type), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		dt_fails(dat_evd_dequeue(handle, &event), DAT_INVALID_HANDLE);
	}
	world_check_alive(world);
}

/* GEN-33 EP-GEN-04 */
static void each_call__any_bit_pattern__invalid_handle(void **state)
{
	struct world *world = *state;
	uint64_t on_stack[8] = {0};
	void *on_heap = calloc(16, 64);
	void *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const DAT_HANDLE fixed[] = {
		on_stack,
		on_heap,
		forbidden,
		(DAT_HANDLE)(uintptr_t)world_check_dead,
		(DAT_HANDLE)UINTPTR_MAX,
		(DAT_HANDLE)(UINTPTR_MAX << 12),
		(DAT_HANDLE)(uintptr_t)0x8000000000000000ull,
		(DAT_HANDLE)(uintptr_t)0xdeadbeefdeadbeefull,
		(DAT_HANDLE)(uintptr_t)0x00007ffffffff000ull,
	};
	uint64_t x = 88172645463325252ull;

	for (size_t i = 0; i < COUNT_OF(fixed); i++)
		world_check_dead(fixed[i]);
	for (int i = 0; i < 2000; i++) {
		DAT_HANDLE_TYPE type;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		/* 47 bits are an address of this process, aligned or not. */
		const uint64_t value = i % 2 ? x : (x & 0x00007ffffffffff8ull);

		dt_fails_with(dat_get_handle_type((DAT_HANDLE)(uintptr_t)value, &type),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
		dt_fails_with(dat_pz_free((DAT_HANDLE)(uintptr_t)value), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_PZ);
	}
	world_check_alive(world);
	munmap(forbidden, 4096);
	free(on_heap);
}

/* --- the provider of a handle --- */

/* GEN-29 */
static void each_object__first_word__provider_table(void **state)
{
	struct world *world = *state;
	const DAT_PROVIDER *first = NULL;

	for (size_t i = 0; i < WORLD_COUNT; i++) {
		if (world->object[i].type == DAT_HANDLE_TYPE_IA)
			continue;
		const DAT_PROVIDER *provider =
			*(const DAT_PROVIDER *const *)world->object[i].handle;

		assert_non_null(provider);
		assert_non_null(provider->device_name);
		assert_non_null((void *)(uintptr_t)provider->pz_query_func);
		assert_true(!first || provider == first);
		first = provider;
	}
	DAT_PZ_PARAM param;

	/* The provider returns its own IA handle; libdat translates it to the consumer's. */
	dt_ok(first->pz_query_func(world->ia.pz, DAT_PZ_FIELD_ALL, &param));
}

/* --- rules for all calls --- */

/* That call of a list has refused that argument. */
static void check_refused(size_t index, DAT_RETURN ret, DAT_RETURN_SUBTYPE argument)
{
	if (ret != DT_ERROR(DAT_INVALID_PARAMETER, argument))
		print_error("call %zu of the list\n", index);
	dt_fails_with(ret, DAT_INVALID_PARAMETER, argument);
}

/* GEN-18 GEN-20 */
static void each_call__null_output__invalid_parameter(void **state)
{
	struct world *world = *state;
	const DAT_IA_HANDLE ia = world->ia.ia;
	const DAT_EVD_HANDLE evd = world->listener.evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_COUNT more;
	const struct {
		DAT_RETURN ret;
		DAT_RETURN_SUBTYPE argument;
	} calls[] = {
		{dat_pz_create(ia, NULL), DAT_INVALID_ARG2},
		{dat_evd_create(ia, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL), DAT_INVALID_ARG5},
		{dat_ep_create(ia, world->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
			       NULL, NULL),
		 DAT_INVALID_ARG7},
		{dat_psp_create(ia, 1ull << 61 | (uint64_t)getpid(), evd, DAT_PSP_CONSUMER_FLAG,
				NULL),
		 DAT_INVALID_ARG5},
		{dat_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, NULL), DAT_INVALID_ARG5},
		{dat_psp_create_any(ia, NULL, evd, DAT_PSP_CONSUMER_FLAG, &psp), DAT_INVALID_ARG2},
		{dat_rsp_create(ia, 1ull << 61 | (uint64_t)getpid(), DAT_HANDLE_NULL, evd, NULL),
		 DAT_INVALID_ARG5},
		{dat_evd_dequeue(world->active.conn, NULL), DAT_INVALID_ARG2},
		{dat_evd_wait(world->active.conn, 0, 1, NULL, &more), DAT_INVALID_ARG4},
		{dat_evd_wait(world->active.conn, 0, 1, &event, NULL), DAT_INVALID_ARG5},
	};

	for (size_t i = 0; i < COUNT_OF(calls); i++)
		check_refused(i, calls[i].ret, calls[i].argument);
	world_check_alive(world); /* nothing was created: the graceful close succeeds */
}

/*
 * GEN-18 GEN-20 EP-QUERY-05 EVD-QUERY-09 CNO-QUERY-05 PSP-QUERY-05 RSP-QUERY-04 CR-QUERY-10
 * PZ-QUERY-03 LMR-QUERY-12 RMR-QUERY-11 SRQ-QUERY-16: also if no field is wanted
 */
static void each_query__null_output__invalid_parameter(void **state)
{
	struct world *w = *state;
	const DAT_RETURN calls[] = {
		dat_ep_query(w->active.ep, 0, NULL),
		dat_ep_query(w->active.ep, DAT_EP_FIELD_ALL, NULL),
		dat_ep_query(w->active.ep, UINT64_MAX, NULL),
		dat_evd_query(w->listener.evd, 0, NULL),
		dat_evd_query(w->listener.evd, DAT_EVD_FIELD_ALL, NULL),
		dat_cno_query(w->cno, (DAT_CNO_PARAM_MASK)0, NULL),
		dat_cno_query(w->cno, DAT_CNO_FIELD_ALL, NULL),
		dat_psp_query(w->listener.psp, 0, NULL),
		dat_psp_query(w->listener.psp, DAT_PSP_FIELD_ALL, NULL),
		dat_rsp_query(w->rsp, 0, NULL),
		dat_rsp_query(w->rsp, DAT_RSP_FIELD_ALL, NULL),
		dat_cr_query(w->cr, 0, NULL),
		dat_cr_query(w->cr, DAT_CR_FIELD_ALL, NULL),
		dat_pz_query(w->ia.pz, 0, NULL),
		dat_pz_query(w->ia.pz, DAT_PZ_FIELD_ALL, NULL),
		dat_lmr_query(w->buf.lmr, 0, NULL),
		dat_lmr_query(w->buf.lmr, DAT_LMR_FIELD_ALL, NULL),
		dat_rmr_query(w->rmr, 0, NULL),
		dat_rmr_query(w->rmr, DAT_RMR_FIELD_PZ_HANDLE, NULL),
		dat_srq_query(w->srq, 0, NULL),
		dat_srq_query(w->srq, DAT_SRQ_FIELD_ALL, NULL),
	};

	for (size_t i = 0; i < COUNT_OF(calls); i++)
		check_refused(i, calls[i], DAT_INVALID_ARG3);
}

/* GEN-06 GEN-07 */
static void return_code__success_and_empty_queue__bare_values(void **state)
{
	struct world *world = *state;
	DAT_EVENT event;
	DAT_HANDLE_TYPE type;

	assert_true(dat_get_handle_type(world->ia.ia, &type) == 0);
	assert_true(dat_evd_dequeue(world->active.conn, &event) == 0x000d0000);
	assert_true(dat_get_handle_type(DAT_HANDLE_NULL, &type) & 0x80000000u);
}

/* --- output --- */

static void print_nothing(struct dt_peer *peer, void *arg)
{
	FILE *captured = arg;
	struct dt_pair pair;

	(void)peer;
	assert_int_equal(dup2(fileno(captured), 1), 1);
	assert_int_equal(dup2(fileno(captured), 2), 2);
	dt_pair_open(&pair);
	dt_pair_close(&pair);
	for (size_t i = 0; i < WORLD_CALLS; i++)
		world_calls[i].fn(DAT_HANDLE_NULL);
}

/* GEN-30 */
static void each_call__good_and_refused__prints_nothing(void **state)
{
	FILE *captured = tmpfile();
	struct dt_peer peer;

	(void)state;
	assert_non_null(captured);
	dt_peer_start(&peer, print_nothing, captured);
	dt_peer_join(&peer);
	assert_int_equal(lseek(fileno(captured), 0, SEEK_END), 0);
	fclose(captured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handle_constants__of_the_header__values),
		world_test(get_handle_type__each_object__its_type),
		world_test(get_handle_type__null_pointer__invalid_parameter),
		world_test(get_handle_type__in_parallel__same_answer),
		world_test(each_call__null_handle__invalid_handle),
		world_test(each_call__handle_of_another_type__invalid_handle),
		world_test(each_call__small_integer__invalid_handle),
		world_test(each_call__value_beside_a_live_handle__invalid_handle),
		world_test(each_call__value_far_behind_a_live_handle__invalid_handle),
		world_test(each_call__any_bit_pattern__invalid_handle),
		world_test(each_object__first_word__provider_table),
		world_test(each_call__null_output__invalid_parameter),
		world_test(each_query__null_output__invalid_parameter),
		world_test(return_code__success_and_empty_queue__bare_values),
		cmocka_unit_test(each_call__good_and_refused__prints_nothing),
	};

	return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}
