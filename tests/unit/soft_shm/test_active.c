// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of active connections: whichever connections are added and removed, each of the others
 * gets its turn. Uses the lab's engine, with connections that have no work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "lab.h"
#include "soft/shm/state.h"

#define CONNS 150u /* more than the first table holds */
#define STEPS 200000u

struct scene {
	struct lab *lab;
	struct shm_conn *conns[CONNS];
	bool is_active[CONNS];
	uint32_t count;
};

static int open_scene(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->lab = lab_open_alone(&(struct lab_form){.copy = CORE_COPY_MAP});
	for (unsigned i = 0; i < CONNS; i++)
		assert_int_equal(shm_conn_create(scene->lab->engine, -1, &scene->conns[i]), 0);
	*state = scene;
	return 0;
}

static void set_active(struct scene *scene, unsigned i, bool is_active)
{
	if (is_active)
		shm_engine_activate(scene->lab->engine, scene->conns[i]);
	else
		shm_engine_deactivate(scene->lab->engine, scene->conns[i]);
	if (scene->is_active[i] != is_active)
		scene->count += is_active ? 1 : -1u;
	scene->is_active[i] = is_active;
}

static int close_scene(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < CONNS; i++) {
		set_active(scene, i, false);
		shm_conn_put(scene->conns[i]);
	}
	lab_close(scene->lab);
	free(scene);
	return 0;
}

/* Returns the one whose turn it is. */
static unsigned turn(struct scene *scene)
{
	struct shm_conn *conn = shm_engine_rotate(scene->lab->engine);
	unsigned i = 0;

	assert_non_null(conn);
	while (i < CONNS && scene->conns[i] != conn)
		i++;
	assert_true(i < CONNS);
	shm_conn_put(conn);
	return i;
}

/* Pseudo-random, the same in every run. */
static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

/* In one round each active connection has its turn once, and no other has. */
static void check_round(struct scene *scene)
{
	bool had[CONNS] = {false};

	assert_int_equal(shm_active_count(scene->lab->engine), scene->count);
	for (uint32_t n = 0; n < scene->count; n++) {
		unsigned i = turn(scene);

		assert_true(scene->is_active[i]);
		assert_false(had[i]);
		had[i] = true;
	}
}

static void rotate__connections_come_and_go__each_in_turn(void **state)
{
	struct scene *scene = *state;
	uint64_t seed = 1;

	assert_null(shm_engine_rotate(scene->lab->engine));
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t what = next_random(&seed);
		unsigned i = next_random(&seed) % CONNS;

		if (what % 4 == 3 && scene->count)
			turn(scene);
		else
			set_active(scene, i, what % 4 > 0);
		/* many and few in turn */
		if (step % 5000 < 2000)
			set_active(scene, next_random(&seed) % CONNS, false);
		if (step % 64 == 0)
			check_round(scene);
	}
}

/* Connections that are removed in their turn, as when all go to sleep. */
static void rotate__some_leave_in_their_turn__none_passed_over(void **state)
{
	struct scene *scene = *state;
	uint64_t seed = 2;

	for (uint32_t round = 0; round < 2000; round++) {
		bool had[CONNS] = {false};
		uint32_t count;

		for (unsigned i = 0; i < CONNS; i++)
			set_active(scene, i, next_random(&seed) % 2);
		count = scene->count;
		for (uint32_t n = 0; n < count; n++) {
			unsigned i = turn(scene);

			assert_false(had[i]);
			had[i] = true;
			if (next_random(&seed) % 2)
				set_active(scene, i, false);
		}
		for (unsigned i = 0; i < CONNS; i++)
			assert_true(had[i] || !scene->is_active[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rotate__connections_come_and_go__each_in_turn,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(rotate__some_leave_in_their_turn__none_passed_over,
						open_scene, close_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
