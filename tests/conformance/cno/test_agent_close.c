// SPDX-License-Identifier: BSD-2-Clause
/* An abrupt close with threads that wait on CNOs and with agents, and a close from inside an
 * agent. */
#include "cno_util.h"

/* IA-CLOSE-10 CNO-WAIT-17: With and without EVDs, with and without a time limit. */
static void ia_close__threads_wait_on_cnos__get_the_null_handle(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct cno_waiter waiter[3];
		DAT_CNO_HANDLE cno[2];
		struct dt_ia ia;

		memset(waiter, 0, sizeof(waiter));
		dt_ia_open(&ia);
		cno[0] = cno_create(&ia);
		cno[1] = cno_create(&ia);
		(void)cno_evd(&ia, cno[0]);
		cno_waiter_start(&waiter[0], cno[0], DAT_TIMEOUT_INFINITE);
		cno_waiter_start(&waiter[1], cno[0], DT_WAIT_US);
		cno_waiter_start(&waiter[2], cno[1], DAT_TIMEOUT_INFINITE);
		dt_ia_abort(&ia);
		for (int j = 0; j < 3; j++)
			cno_waiter_gets(&waiter[j], DAT_HANDLE_NULL);
	}
}

/* IA-CLOSE-10 CNO-WAIT-17: The close happens at any point of the call. */
static void ia_close__while_threads_begin_to_wait__all_return(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct cno_waiter waiter[3];
		DAT_CNO_HANDLE cno;
		struct dt_ia ia;

		memset(waiter, 0, sizeof(waiter));
		dt_ia_open(&ia);
		cno = cno_create(&ia);
		for (int j = 0; j < 3; j++)
			cno_waiter_launch(&waiter[j], cno, DAT_TIMEOUT_INFINITE);
		for (int j = 0; j < i; j++)
			sched_yield();
		dt_ia_abort(&ia);
		for (int j = 0; j < 3; j++) {
			if (cno_waiter_join(&waiter[j]) == DAT_SUCCESS)
				assert_ptr_equal(waiter[j].evd, DAT_HANDLE_NULL);
			else
				dt_fails_with(waiter[j].ret, DAT_INVALID_HANDLE,
					      DAT_INVALID_HANDLE_CNO);
		}
	}
}

/* IA-CLOSE-11 CNO-WAIT-18: Each armed agent is called once, and no other. */
static void ia_close__agents_armed__called_with_the_null_handle(void **state)
{
	struct cno_agent lonely = {0}, user = {0}, removed = {0}, used = {0};
	DAT_EVD_HANDLE evd;
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	cno_agent_create(&ia, &lonely);
	(void)cno_evd(&ia, cno_agent_create(&ia, &user));
	(void)cno_evd(&ia, user.cno);
	(void)cno_evd(&ia, cno_agent_create(&ia, &removed));
	cno_agent_disarm(&removed);
	evd = cno_evd(&ia, cno_agent_create(&ia, &used));
	evd_post(evd, 1);
	cno_agent_called(&used, 1, evd);
	dt_ia_abort(&ia);
	assert_int_equal(atomic_load(&lonely.returned), 1);
	assert_ptr_equal(atomic_load(&lonely.evd), DAT_HANDLE_NULL);
	assert_int_equal(atomic_load(&user.returned), 1);
	assert_ptr_equal(atomic_load(&user.evd), DAT_HANDLE_NULL);
	assert_int_equal(atomic_load(&removed.calls), 0);
	assert_int_equal(atomic_load(&used.calls), 1);
}

struct closing {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
};

static void use_what_is_closed(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	const struct closing *closing = agent->arg;
	DAT_EVD_HANDLE made;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	DAT_IA_ATTR attr;

	cno_check(evd == DAT_HANDLE_NULL);
	dt_fails_with(dat_cno_modify_agent(agent->cno, cno_agent_of(agent)), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails(dat_evd_dequeue(closing->evd, &event), DAT_INVALID_HANDLE);
	dt_fails(dat_evd_free(closing->evd), DAT_INVALID_HANDLE);
	dt_fails_with(dat_cno_wait(agent->cno, DAT_TIMEOUT_INFINITE, &made), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_cno_free(agent->cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	dt_fails_with(
		dat_ep_post_recv(closing->ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_ep_free(closing->ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_ia_query(closing->ia, NULL, DAT_IA_FIELD_ALL, &attr,
				   DAT_PROVIDER_FIELD_NONE, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_cno_create(closing->ia, cno_agent_of(agent), &cno), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_evd_create(closing->ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &made),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_ia_close(closing->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	usleep(20000); /* the close would return first if it did not wait */
}

static void open_closing(struct dt_ia *ia, struct closing *closing, DAT_CNO_HANDLE cno)
{
	closing->ia = ia->ia;
	closing->evd = cno_evd(ia, cno);
	dt_ok(dat_ep_create(ia->ia, ia->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, closing->evd, NULL,
			    &closing->ep));
}

/* IA-CLOSE-27 IA-CLOSE-11: Agents of CNOs with and without an EVD. */
static void ia_close__agents_use_the_instance__refused_and_waited_for(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct closing closing;
		struct cno_agent agent[3];
		struct dt_ia ia;

		memset(agent, 0, sizeof(agent));
		dt_ia_open(&ia);
		for (int j = 0; j < 3; j++) {
			agent[j].body = use_what_is_closed;
			agent[j].arg = &closing;
			cno_agent_create(&ia, &agent[j]);
		}
		open_closing(&ia, &closing, agent[0].cno);
		(void)cno_evd(&ia, agent[1].cno);
		dt_ia_abort(&ia);
		for (int j = 0; j < 3; j++) {
			assert_int_equal(atomic_load(&agent[j].calls), 1);
			assert_int_equal(atomic_load(&agent[j].returned), 1);
		}
	}
}

static void rearm_for_ever(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	const DAT_RETURN ret = dat_cno_modify_agent(agent->cno, cno_agent_of(agent));
	DAT_EVENT event;

	if (evd == DAT_HANDLE_NULL) {
		dt_fails_with(ret, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
		return;
	}
	/* refused when the close has begun since the trigger */
	cno_check(ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE);
	(void)dat_evd_dequeue(evd, &event);
}

static atomic_bool must_stop;

static void *post_until_closed(void *arg)
{
	const DAT_EVD_HANDLE evd = arg;

	while (!atomic_load(&must_stop))
		(void)evd_try_post(evd, 1);
	return NULL;
}

/* IA-CLOSE-27 IA-CLOSE-11: The close happens while events keep calling the agent. */
static void ia_close__agent_rearms_under_load__nothing_called_afterwards(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		struct cno_agent agent = {.body = rearm_for_ever};
		DAT_EVD_HANDLE evd;
		struct dt_ia ia;
		pthread_t thread;
		int calls;

		dt_ia_open(&ia);
		evd = cno_evd(&ia, cno_agent_create(&ia, &agent));
		atomic_store(&must_stop, false);
		assert_int_equal(pthread_create(&thread, NULL, post_until_closed, evd), 0);
		while (atomic_load(&agent.calls) < i)
			sched_yield();
		dt_ia_abort(&ia);
		calls = atomic_load(&agent.calls);
		assert_int_equal(atomic_load(&agent.returned), calls);
		atomic_store(&must_stop, true);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(atomic_load(&agent.calls), calls);
	}
}

/* --- an agent that closes --- */

static void close_the_instance(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct closing *closing = agent->arg;
	DAT_EVENT event;

	cno_agent_arm(agent); /* its own close does not call it */
	dt_ok(dat_ia_close(closing->ia, DAT_CLOSE_ABRUPT_FLAG));
	dt_fails(dat_evd_dequeue(evd, &event), DAT_INVALID_HANDLE);
	dt_fails_with(dat_cno_free(agent->cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_ia_close(closing->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
}

/* IA-CLOSE-27 CNO-CREATE-15 IA-CLOSE-10 IA-CLOSE-11 */
static void ia_close__from_inside_an_agent__the_others_are_called(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct closing closing;
		struct cno_agent closer = {.body = close_the_instance, .arg = &closing};
		struct cno_agent other = {.body = use_what_is_closed, .arg = &closing};
		struct cno_waiter waiter = {0};
		struct dt_ia ia;

		dt_ia_open(&ia);
		open_closing(&ia, &closing, cno_agent_create(&ia, &other));
		closing.evd = cno_evd(&ia, cno_agent_create(&ia, &closer));
		if (i < 5)
			cno_waiter_start(&waiter, cno_create(&ia), DAT_TIMEOUT_INFINITE);
		evd_post(closing.evd, 1);
		cno_agent_called(&closer, 1, closing.evd);
		assert_int_equal(atomic_load(&other.calls), 1);
		assert_int_equal(atomic_load(&other.returned), 1);
		assert_ptr_equal(atomic_load(&other.evd), DAT_HANDLE_NULL);
		if (i < 5)
			cno_waiter_gets(&waiter, DAT_HANDLE_NULL);
		dt_fails_with(dat_ia_close(closing.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
	}
}

static void close_gracefully(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct dt_ia *ia = agent->arg;

	dt_fails_with(dat_ia_close(ia->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_IA_IN_USE);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_cno_free(agent->cno));
	dt_ok(dat_pz_free(ia->pz));
	dt_ok(dat_ia_close(ia->ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* CNO-CREATE-15 */
static void ia_close__graceful_from_inside_an_agent__as_elsewhere(void **state)
{
	struct cno_agent agent = {.body = close_gracefully};
	DAT_EVD_HANDLE evd;
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	agent.arg = &ia;
	evd = cno_evd(&ia, cno_agent_create(&ia, &agent));
	evd_post(evd, 1);
	cno_agent_called(&agent, 1, evd);
	dt_fails_with(dat_ia_close(ia.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
}

/* --- a CNO freed while its agent runs --- */

static bool cno_is_being_freed(void *arg)
{
	const struct cno_agent *agent = arg;
	DAT_CNO_PARAM param;

	return DAT_GET_TYPE(dat_cno_query(agent->cno, DAT_CNO_FIELD_ALL, &param)) ==
	       DAT_INVALID_HANDLE;
}

static void close_while_freed(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct closing *closing = agent->arg;

	(void)evd;
	dt_until(cno_is_being_freed, agent); /* a close before that would refuse the free */
	dt_ok(dat_ia_close(closing->ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* CNO-CREATE-15 CNO-FREE-09: Neither waits for the other. */
static void cno_free__its_agent_closes_the_instance__both_return(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct closing closing;
		struct cno_agent agent = {.body = close_while_freed, .arg = &closing};
		struct dt_ia ia;

		dt_ia_open(&ia);
		closing.ia = ia.ia;
		closing.evd = cno_evd(&ia, cno_agent_create(&ia, &agent));
		evd_post(closing.evd, 1);
		dt_ok(dat_evd_modify_cno(closing.evd, DAT_HANDLE_NULL));
		while (!atomic_load(&agent.calls))
			sched_yield();
		dt_ok(dat_cno_free(agent.cno));
		cno_agent_called(&agent, 1, closing.evd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_close__threads_wait_on_cnos__get_the_null_handle),
		cmocka_unit_test(ia_close__while_threads_begin_to_wait__all_return),
		cmocka_unit_test(ia_close__agents_armed__called_with_the_null_handle),
		cmocka_unit_test(ia_close__agents_use_the_instance__refused_and_waited_for),
		cmocka_unit_test(ia_close__agent_rearms_under_load__nothing_called_afterwards),
		cmocka_unit_test(ia_close__from_inside_an_agent__the_others_are_called),
		cmocka_unit_test(ia_close__graceful_from_inside_an_agent__as_elsewhere),
		cmocka_unit_test(cno_free__its_agent_closes_the_instance__both_return),
	};

	return cmocka_run_group_tests_name("agent_close", tests, NULL, NULL);
}
