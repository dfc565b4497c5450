// SPDX-License-Identifier: BSD-2-Clause
/*
 * Handles of dead objects: each call refuses them, also in a race with the free, and they are not
 * reissued soon.
 */
#include "world.h"

#define CREATIONS 1000 /* during which a dead handle is not reissued */

/* --- handles of dead objects --- */

/* GEN-16 EP-GEN-03 COMPAT-18 IA-CLOSE-21 */
static void each_call__objects_freed_and_instance_closed__invalid_handle(void **state)
{
	struct world gone;

	(void)state;
	world_open(&gone);
	const struct world copy = gone;

	world_close(&gone);
	for (size_t i = 0; i < WORLD_COUNT; i++)
		world_check_dead(copy.object[i].handle);
}

/* GEN-16 IA-CLOSE-07 EP-GEN-12 */
static void each_call__instance_closed_abruptly__invalid_handle(void **state)
{
	struct world gone;

	(void)state;
	world_open(&gone);
	dt_ia_abort(&gone.ia);
	for (size_t i = 0; i < WORLD_COUNT; i++)
		world_check_dead(gone.object[i].handle);
	dt_mem_free(gone.buf.p, gone.buf.mapped);
}

/* Creates an object of that type and returns its handle. */
static DAT_HANDLE make(struct world *world, DAT_HANDLE_TYPE type)
{
	DAT_SRQ_ATTR srq_attr = {1, 1, DAT_SRQ_LW_DEFAULT};
	DAT_HANDLE handle = DAT_HANDLE_NULL;
	struct dt_buf buf;

	switch (type) {
	case DAT_HANDLE_TYPE_EP:
		dt_ok(dat_ep_create(world->ia.ia, world->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				    DAT_HANDLE_NULL, NULL, &handle));
		return handle;
	case DAT_HANDLE_TYPE_EVD:
		return dt_evd_create(&world->ia, 1, DAT_EVD_DTO_FLAG);
	case DAT_HANDLE_TYPE_SRQ:
		dt_ok(dat_srq_create(world->ia.ia, world->ia.pz, &srq_attr, &handle));
		return handle;
	case DAT_HANDLE_TYPE_LMR:
		dt_lmr_create(&world->ia, world->ia.pz, world->buf.p, 64, CONF_LOCAL, &buf);
		return buf.lmr;
	default:
		dt_ok(dat_pz_create(world->ia.ia, &handle));
		return handle;
	}
}

static void unmake(DAT_HANDLE_TYPE type, DAT_HANDLE handle)
{
	switch (type) {
	case DAT_HANDLE_TYPE_EP:
		dt_ok(dat_ep_free(handle));
		break;
	case DAT_HANDLE_TYPE_EVD:
		dt_ok(dat_evd_free(handle));
		break;
	case DAT_HANDLE_TYPE_SRQ:
		dt_ok(dat_srq_free(handle));
		break;
	case DAT_HANDLE_TYPE_LMR:
		dt_ok(dat_lmr_free(handle));
		break;
	default:
		dt_ok(dat_pz_free(handle));
		break;
	}
}

static const DAT_HANDLE_TYPE made[] = {DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_EVD,
				       DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_SRQ};

/* GEN-16 */
static void create__thousand_times_after_a_free__handle_not_reissued(void **state)
{
	struct world *world = *state;

	for (size_t t = 0; t < COUNT_OF(made); t++) {
		const DAT_HANDLE dead = make(world, made[t]);

		unmake(made[t], dead);
		for (int i = 0; i < CREATIONS; i++) {
			const DAT_HANDLE handle = make(world, made[t]);

			assert_ptr_not_equal(handle, dead);
			unmake(made[t], handle);
		}
		world_check_dead(dead);
	}
}

/* GEN-16 */
static void create__many_that_live__none_has_a_dead_handle(void **state)
{
	static DAT_HANDLE live[CREATIONS];
	struct world *world = *state;
	const DAT_HANDLE dead = make(world, DAT_HANDLE_TYPE_PZ);

	unmake(DAT_HANDLE_TYPE_PZ, dead);
	for (int i = 0; i < CREATIONS; i++) {
		live[i] = make(world, made[i % 2]); /* of another kind too */
		assert_ptr_not_equal(live[i], dead);
	}
	world_check_dead(dead);
	for (int i = 0; i < CREATIONS; i++)
		unmake(made[i % 2], live[i]);
}

/* --- races with a free --- */

struct race {
	struct world *world;
	_Atomic(DAT_HANDLE) handle[COUNT_OF(made)];
	atomic_int rounds;
	atomic_int unexpected;
};

static bool is_expected(DAT_RETURN ret)
{
	return ret == DAT_SUCCESS || ret == DAT_QUEUE_EMPTY ||
	       DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE;
}

/* Calls on objects that another thread frees at the same time. */
static void *use_them(void *arg)
{
	static const DAT_HANDLE_TYPE queried[] = {DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_LMR,
						  DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_EP};
	struct race *race = arg;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	DAT_EVENT event;

	while (atomic_load(&race->rounds) > 0) {
		for (size_t t = 0; t < COUNT_OF(made); t++) {
			const DAT_HANDLE h = atomic_load(&race->handle[t]);

			if (!is_expected(dat_get_handle_type(h, &type)) ||
			    !is_expected(dat_get_consumer_context(h, &context)) ||
			    !is_expected(dat_evd_dequeue(h, &event)) ||
			    !is_expected(dat_ep_get_status(h, NULL, NULL, NULL)))
				atomic_fetch_add(&race->unexpected, 1);
			for (size_t i = 0; i < COUNT_OF(queried); i++)
				if (!is_expected(world_query(queried[i], h)))
					atomic_fetch_add(&race->unexpected, 1);
		}
	}
	return NULL;
}

/* GEN-26 EP-GEN-10 EP-FREE-28 */
static void each_call__races_with_the_free__acts_or_is_refused(void **state)
{
	struct race race = {.world = *state, .rounds = DT_SLOW ? 200 : 1000};
	pthread_t thread[2];

	for (size_t t = 0; t < COUNT_OF(made); t++)
		atomic_store(&race.handle[t], make(race.world, made[t]));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, use_them, &race), 0);
	while (atomic_fetch_sub(&race.rounds, 1) > 0) {
		for (size_t t = 0; t < COUNT_OF(made); t++) {
			unmake(made[t], atomic_load(&race.handle[t]));
			atomic_store(&race.handle[t], make(race.world, made[t]));
		}
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (size_t t = 0; t < COUNT_OF(made); t++)
		unmake(made[t], atomic_load(&race.handle[t]));
	assert_int_equal(race.unexpected, 0);
	world_check_alive(race.world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(each_call__objects_freed_and_instance_closed__invalid_handle),
		world_test(each_call__instance_closed_abruptly__invalid_handle),
		world_test(create__thousand_times_after_a_free__handle_not_reissued),
		world_test(create__many_that_live__none_has_a_dead_handle),
		world_test(each_call__races_with_the_free__acts_or_is_refused),
	};

	return cmocka_run_group_tests_name("handle dead", tests, NULL, NULL);
}
