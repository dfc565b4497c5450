// SPDX-License-Identifier: BSD-2-Clause
/* CNOs under load: no notification is lost, and many threads can call at the same time. */
#include "cno_util.h"

#define PING_PONGS (DT_SLOW ? 10000 : 50000) /* of two posts and two waits */

/* --- one post, one wait --- */

struct ping {
	DAT_CNO_HANDLE cno[2];
	DAT_EVD_HANDLE evd[2];
};

static void *answer(void *arg)
{
	const struct ping *ping = arg;

	for (int i = 0; i < PING_PONGS; i++) {
		DAT_EVD_HANDLE named;
		DAT_EVENT event;

		conf_try(dat_cno_wait(ping->cno[1], DT_WAIT_US, &named));
		conf_try(dat_evd_dequeue(named, &event));
		conf_try(evd_try_post(ping->evd[0], (uintptr_t)i));
	}
	return NULL;
}

/* CNO-WAIT-25 CNO-WAIT-01 */
static void cno_wait__post_and_wait_in_turn__none_lost(void **state)
{
	struct evd_fixture *f = *state;
	struct ping ping = {.cno = {cno_create(&f->ia), cno_create(&f->ia)}};
	pthread_t thread;
	void *failed;

	for (int i = 0; i < 2; i++)
		ping.evd[i] = cno_evd(&f->ia, ping.cno[i]);
	assert_int_equal(pthread_create(&thread, NULL, answer, &ping), 0);
	for (int i = 0; i < PING_PONGS; i++) {
		DAT_EVD_HANDLE named = DAT_HANDLE_NULL;
		DAT_EVENT event;

		dt_ok(evd_try_post(ping.evd[1], (uintptr_t)i));
		dt_ok(dat_cno_wait(ping.cno[0], DT_WAIT_US, &named));
		assert_ptr_equal(named, ping.evd[0]);
		dt_ok(dat_evd_dequeue(named, &event));
		evd_check_soft(&event, ping.evd[0], (uintptr_t)i);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

/* --- several EVDs on one CNO --- */

#define EVDS 5
#define EACH 20000
#define POSTERS 3

struct stress {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd[EVDS];
	atomic_int next_poster;
	_Atomic unsigned int posted[EVDS];
	_Atomic unsigned int taken[EVDS];
	_Atomic unsigned int total;
};

static void *post_at_random(void *arg)
{
	struct stress *stress = arg;
	uint32_t random = (uint32_t)atomic_fetch_add(&stress->next_poster, 1) * 7919 + 1;

	for (int i = 0; i < EACH / POSTERS;) {
		DAT_RETURN ret;
		unsigned int which;

		random = random * 1664525 + 1013904223;
		which = (random >> 16) % EVDS;
		ret = evd_try_post(stress->evd[which], which);
		if (DAT_GET_TYPE(ret) == DAT_QUEUE_FULL) {
			sched_yield();
			continue;
		}
		conf_try(ret);
		atomic_fetch_add(&stress->posted[which], 1);
		i++;
		if (random >> 28 == 0) /* so that the others fall asleep at times */
			usleep(1);
	}
	return NULL;
}

/* Empties the reported EVD and waits again. */
static void *take_what_is_named(void *arg)
{
	struct stress *stress = arg;

	while (atomic_load(&stress->total) < EACH / POSTERS * POSTERS) {
		DAT_EVD_HANDLE named = DAT_HANDLE_NULL;
		DAT_RETURN ret = dat_cno_wait(stress->cno, 200000, &named);
		DAT_EVENT event;
		unsigned int which = 0;

		if (ret == DAT_QUEUE_EMPTY) {
			for (which = 0; which < EVDS; which++)
				if (dat_evd_dequeue(stress->evd[which], &event) != DAT_QUEUE_EMPTY)
					return "an event without a notification";
			continue;
		}
		conf_try(ret);
		while (which < EVDS && stress->evd[which] != named)
			which++;
		if (which == EVDS)
			return "a dispatcher that is none";
		while (dat_evd_dequeue(named, &event) == DAT_SUCCESS) {
			atomic_fetch_add(&stress->taken[which], 1);
			atomic_fetch_add(&stress->total, 1);
		}
	}
	return NULL;
}

static void run_stress(struct evd_fixture *f, int takers)
{
	static struct stress stress;
	pthread_t thread[POSTERS + CONF_THREADS];
	void *failed[POSTERS + CONF_THREADS];

	memset(&stress, 0, sizeof(stress));
	stress.cno = cno_create(&f->ia);
	for (int i = 0; i < EVDS; i++)
		stress.evd[i] = cno_evd(&f->ia, stress.cno);
	for (int i = 0; i < POSTERS + takers; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < POSTERS ? post_at_random : take_what_is_named,
						&stress),
				 0);
	for (int i = 0; i < POSTERS + takers; i++)
		assert_int_equal(pthread_join(thread[i], &failed[i]), 0);
	for (int i = 0; i < POSTERS + takers; i++)
		if (failed[i])
			fail_msg("a thread saw: %s", (const char *)failed[i]);
	for (int i = 0; i < EVDS; i++) {
		assert_int_equal(atomic_load(&stress.taken[i]), atomic_load(&stress.posted[i]));
		dt_no_event(stress.evd[i]);
	}
	assert_int_equal(atomic_load(&stress.total), EACH / POSTERS * POSTERS);
}

/* COMPAT-33 CNO-WAIT-25 CNO-WAIT-04 */
static void cno_wait__several_evds_one_taker__no_wake_up_lost(void **state)
{
	run_stress(*state, 1);
}

/* COMPAT-33 CNO-WAIT-26 CNO-WAIT-20 */
static void cno_wait__several_evds_and_takers__no_wake_up_lost(void **state)
{
	run_stress(*state, CONF_THREADS);
}

/* --- calls on one object from many threads --- */

static void nothing(DAT_PVOID instance_data, DAT_EVD_HANDLE evd)
{
	(void)instance_data;
	(void)evd;
}

struct crowd {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	atomic_int turn;
	atomic_int freed;
	atomic_bool is_over;
	int rounds;
};

static bool is_fine(DAT_RETURN ret)
{
	return ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE;
}

/* One call on the shared CNO and EVD; `which` counts up. Late in the round no call delays the
 * free. */
static const char *use_cno(struct crowd *crowd, int which)
{
	const bool is_late = which >= 3 * crowd->rounds;

	const DAT_OS_WAIT_PROXY_AGENT agent = {crowd, nothing};
	DAT_EVD_HANDLE named;
	DAT_CNO_PARAM param;
	DAT_RETURN ret;

	switch (which % 6) {
	case 0:
		return is_fine(dat_cno_query(crowd->cno, DAT_CNO_FIELD_ALL, &param)) ? NULL
										     : "query";
	case 1:
		return is_fine(dat_cno_modify_agent(crowd->cno, agent)) ? NULL : "modify_agent";
	case 2:
		ret = dat_evd_modify_cno(crowd->evd,
					 which % 12 < 6 && !is_late ? crowd->cno : DAT_HANDLE_NULL);
		return is_fine(ret) ? NULL : "evd_modify_cno";
	case 3:
		ret = dat_cno_wait(crowd->cno, is_late ? 0 : which % 4 * 100u, &named);
		return ret == DAT_QUEUE_EMPTY || is_fine(ret) ? NULL : "wait";
	case 4:
		(void)evd_try_post(crowd->evd, 1);
		return NULL;
	default:
		return is_fine(dat_cno_modify_agent(crowd->cno, DAT_OS_WAIT_PROXY_AGENT_NULL))
			       ? NULL
			       : "modify_agent";
	}
}

static void *use_until_freed(void *arg)
{
	struct crowd *crowd = arg;
	const bool is_freer = atomic_fetch_add(&crowd->turn, 1) % 2;
	DAT_CNO_PARAM param;

	for (int i = 0;; i++) {
		const char *failed = use_cno(crowd, i);

		if (failed)
			return (void *)(uintptr_t)failed;
		if (is_freer && i >= crowd->rounds) {
			DAT_RETURN ret = dat_cno_free(crowd->cno);

			if (ret == DAT_SUCCESS)
				atomic_fetch_add(&crowd->freed, 1);
			else if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE && !is_fine(ret))
				return "free";
		}
		if (dat_cno_query(crowd->cno, DAT_CNO_FIELD_ALL, &param) != DAT_SUCCESS)
			return NULL;
	}
}

/* CNO-FREE-09 CNO-QUERY-07 CNO-MODIFY-AGENT-10 CNO-WAIT-26 EVD-MODIFY-CNO-16 CNO-FREE-07 */
static void cno_calls__many_threads_until_freed__one_free_succeeds(void **state)
{
	struct evd_fixture *f = *state;

	for (int i = 0; i < 60; i++) {
		struct crowd crowd = {.evd = f->evd, .rounds = i, .cno = cno_create(&f->ia)};

		conf_parallel(use_until_freed, &crowd);
		assert_int_equal(atomic_load(&crowd.freed), 1);
		assert_ptr_equal(evd_query(f->evd).cno_handle, DAT_HANDLE_NULL);
		dt_drain(f->evd);
	}
}

/* --- enabling under load --- */

static void *toggle(void *arg)
{
	struct crowd *crowd = arg;

	while (!atomic_load(&crowd->is_over)) {
		conf_try(dat_evd_disable(crowd->evd));
		conf_try(dat_evd_enable(crowd->evd));
	}
	return NULL;
}

/* EVD-ENABLE-09 EVD-DISABLE-08 EVD-ENABLE-01 */
static void evd_enable__and_disable_under_load__works_afterwards(void **state)
{
	struct evd_fixture *f = *state;
	struct crowd crowd = {.cno = cno_create(&f->ia)};
	DAT_EVD_HANDLE named;
	pthread_t thread[2];
	void *failed;

	crowd.evd = cno_evd(&f->ia, crowd.cno);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, toggle, &crowd), 0);
	for (uintptr_t i = 0; i < 20000; i++) {
		evd_post(crowd.evd, i);
		if (dat_cno_wait(crowd.cno, 0, &named) == DAT_SUCCESS)
			assert_ptr_equal(named, crowd.evd);
		evd_take(crowd.evd, i);
	}
	atomic_store(&crowd.is_over, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	cno_is_quiet(crowd.cno);
	evd_post(crowd.evd, 1);
	cno_expect(crowd.cno, crowd.evd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(cno_wait__post_and_wait_in_turn__none_lost),
		evd_test(cno_wait__several_evds_one_taker__no_wake_up_lost),
		evd_test(cno_wait__several_evds_and_takers__no_wake_up_lost),
		evd_test(cno_calls__many_threads_until_freed__one_free_succeeds),
		evd_test(evd_enable__and_disable_under_load__works_afterwards),
	};

	return cmocka_run_group_tests_name("cno_threads", tests, NULL, NULL);
}
