// SPDX-License-Identifier: BSD-2-Clause
/* Agents of CNOs: when they are called, their arguments, and the calls that they may make. */
#include <signal.h>

#include "cno_util.h"

/* --- calls --- */

/* CNO-CREATE-05 CNO-CREATE-06 CNO-CREATE-07 */
static void agent__trigger__called_once_and_detached(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
	DAT_EVD_HANDLE evd[2] = {cno_evd(&f->ia, cno), cno_evd(&f->ia, cno)};

	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	evd_post(evd[1], 1);
	cno_agent_called(&agent, 1, evd[1]);
	assert_null(cno_query(cno).agent.instance_data);
	assert_true(cno_query(cno).agent.proxy_agent_func == NULL);
	evd_post(evd[0], 1);
	evd_post(evd[1], 2);
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 1);
}

/* CNO-MODIFY-AGENT-01 CNO-MODIFY-AGENT-06: not for earlier events */
static void cno_modify_agent__none_before__next_trigger_calls_it(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {.cno = cno_create(&f->ia)};
	DAT_EVD_HANDLE evd[2] = {cno_evd(&f->ia, agent.cno), cno_evd(&f->ia, agent.cno)};

	evd_post(evd[0], 1);
	cno_agent_arm(&agent);
	assert_ptr_equal(cno_query(agent.cno).agent.instance_data, &agent);
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	cno_expect(agent.cno, evd[0]); /* nor for a trigger that a wait takes */
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	evd_post(evd[1], 1);
	cno_agent_called(&agent, 1, evd[1]);
}

/* CNO-MODIFY-AGENT-02 CNO-CREATE-08 */
static void cno_modify_agent__one_before__only_the_new_is_called(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent old = {0}, new = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &old);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	new.cno = cno;
	cno_agent_arm(&new);
	assert_ptr_equal(cno_query(cno).agent.instance_data, &new);
	evd_post(evd, 1);
	cno_agent_called(&new, 1, evd);
	evd_post(evd, 2);
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&new.calls), 1);
	assert_int_equal(atomic_load(&old.calls), 0);
}

/* CNO-MODIFY-AGENT-03 */
static void cno_modify_agent__null__never_called(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	for (int i = 0; i < 2; i++) { /* twice: the second time there is none */
		dt_ok(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
		assert_true(cno_query(cno).agent.proxy_agent_func == NULL);
	}
	evd_post(evd, 1);
	dt_ok(dat_evd_free(evd)); /* the last one: CNO-WAIT-15 */
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
}

/* CNO-MODIFY-AGENT-04: With a waiting thread, and with a kept trigger. */
static void agent__thread_waits_too__both_notified(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	struct cno_waiter waiter = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	cno_waiter_start(&waiter, cno, DAT_TIMEOUT_INFINITE);
	evd_post(evd, 1);
	cno_waiter_gets(&waiter, evd);
	cno_agent_called(&agent, 1, evd);
	cno_is_quiet(cno);
	cno_agent_arm(&agent);
	evd_post(evd, 2);
	cno_agent_called(&agent, 2, evd);
	cno_expect(cno, evd);
	evd_take_range(evd, 1, 2);
}

/* CNO-MODIFY-AGENT-05: No thread waits or takes the events. */
static void agent__armed_again__called_again(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	for (int i = 1; i <= 20; i++) {
		evd_post(evd, 1);
		cno_agent_called(&agent, i, evd);
		cno_agent_arm(&agent);
	}
	cno_expect(cno, evd);
	cno_is_quiet(cno);
	cno_agent_disarm(&agent);
}

/* CNO-WAIT-12 CNO-WAIT-13 EVD-STREAM-22: Events that do not notify the CNO do not call the
 * agent. */
static void agent__disabled_or_waited_on__not_called(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	struct evd_waiter direct = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
	DAT_EVD_HANDLE evd[2] = {cno_evd(&f->ia, cno), cno_evd(&f->ia, cno)};

	dt_ok(dat_evd_disable(evd[0]));
	evd_post(evd[0], 1);
	evd_waiter_start(&direct, evd[1], DAT_TIMEOUT_INFINITE, 1);
	evd_post(evd[1], 1);
	dt_ok(evd_waiter_join(&direct));
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	evd_post(evd[1], 1);
	cno_agent_called(&agent, 1, evd[1]);
}

/* CNO-WAIT-15 CNO-WAIT-16 EVD-FREE-10: Not when an EVD is removed without an event. */
static void agent__last_evd_freed__called_with_the_null_handle(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
	DAT_EVD_HANDLE evd[2] = {cno_evd(&f->ia, cno), cno_evd(&f->ia, cno)};

	dt_ok(dat_evd_modify_cno(evd[0], DAT_HANDLE_NULL));
	dt_ok(dat_evd_modify_cno(evd[1], DAT_HANDLE_NULL));
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	dt_ok(dat_evd_modify_cno(evd[0], cno));
	dt_ok(dat_evd_modify_cno(evd[1], cno));
	dt_ok(dat_evd_free(evd[0]));
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	dt_ok(dat_evd_free(evd[1]));
	cno_agent_called(&agent, 1, DAT_HANDLE_NULL);
	cno_agent_arm(&agent);
	evd[0] = cno_evd(&f->ia, cno);
	evd_post(evd[0], 1);
	cno_agent_called(&agent, 2, evd[0]);
}

/* --- calls from inside an agent --- */

static void rearm_and_dequeue(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	cno_agent_arm(agent);
	dt_ok(dat_evd_dequeue(evd, &event));
	dt_ok(evd_try_post(*(DAT_EVD_HANDLE *)agent->arg,
			   (uintptr_t)event.event_data.software_event_data.pointer));
	cno_check(cno_query(agent->cno).agent.instance_data == agent);
}

/* CNO-CREATE-13 CNO-MODIFY-AGENT-09 CNO-MODIFY-AGENT-05 */
static void agent__arms_itself_and_dequeues__called_each_time(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {.body = rearm_and_dequeue, .arg = &f->evd};
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno_agent_create(&f->ia, &agent));

	for (int i = 1; i <= 200; i++) {
		evd_post(evd, (uintptr_t)i);
		cno_agent_called(&agent, i, evd);
		evd_take(f->evd, (uintptr_t)i);
	}
	dt_no_event(evd);
	cno_agent_disarm(&agent);
}

static atomic_int depth, deepest;

static void post_to_itself(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	const int level = atomic_fetch_add(&depth, 1) + 1;
	DAT_EVENT event;

	if (level > atomic_load(&deepest))
		atomic_store(&deepest, level);
	dt_ok(dat_evd_dequeue(evd, &event));
	cno_agent_arm(agent);
	if (atomic_load(&agent->calls) <= 100)
		dt_ok(evd_try_post(evd, 1));
	atomic_fetch_sub(&depth, 1);
}

/* CNO-CREATE-16 */
static void agent__triggers_itself__called_after_it_returned(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {.body = post_to_itself};
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno_agent_create(&f->ia, &agent));

	atomic_store(&depth, 0);
	atomic_store(&deepest, 0);
	evd_post(evd, 1);
	cno_agent_called(&agent, 101, evd);
	assert_int_equal(atomic_load(&deepest), 1);
	cno_agent_disarm(&agent);
}

static atomic_bool may_return;

static bool is_set(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

static void stay_inside(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	(void)evd;
	cno_check(atomic_fetch_add(&depth, 1) == 0);
	if (atomic_load(&agent->calls) == 1) {
		cno_agent_arm(agent);
		dt_until(is_set, &may_return);
	}
	atomic_fetch_sub(&depth, 1);
}

static bool is_inside(void *arg)
{
	(void)arg;
	return atomic_load(&depth) == 1;
}

static bool is_armed(void *arg)
{
	struct cno_agent *agent = arg;

	return cno_query(agent->cno).agent.proxy_agent_func != NULL;
}

/* CNO-CREATE-16: the trigger comes from another thread while the agent runs */
static void agent__triggered_while_it_runs__called_after_it_returned(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {.body = stay_inside};
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno_agent_create(&f->ia, &agent));

	atomic_store(&depth, 0);
	atomic_store(&may_return, false);
	evd_post(evd, 1);
	dt_until(is_inside, NULL);
	dt_until(is_armed, &agent);
	evd_post(evd, 2);
	usleep(DT_QUIET_US);
	assert_int_equal(atomic_load(&agent.calls), 1);
	atomic_store(&may_return, true);
	cno_agent_called(&agent, 2, evd);
}

static void use_stack(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	volatile unsigned char room[1 << 20];
	pthread_attr_t mine, defaults;
	size_t my_size, default_size;

	(void)evd;
	(void)agent;
	for (size_t i = 0; i < sizeof(room); i += 512)
		room[i] = (unsigned char)i;
	cno_check(room[512] == 0);
	cno_check(!pthread_getattr_np(pthread_self(), &mine));
	cno_check(!pthread_attr_getstacksize(&mine, &my_size));
	cno_check(!pthread_attr_init(&defaults));
	cno_check(!pthread_attr_getstacksize(&defaults, &default_size));
	cno_check(my_size >= default_size);
	pthread_attr_destroy(&mine);
	pthread_attr_destroy(&defaults);
}

/* CNO-CREATE-17 */
static void agent__needs_much_stack__has_the_usual(void **state)
{
	struct evd_fixture *f = *state;

	cno_agent_do(&f->ia, use_stack, NULL);
}

static void check_signals(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	sigset_t blocked;

	(void)agent;
	(void)evd;
	cno_check(!pthread_sigmask(SIG_BLOCK, NULL, &blocked));
	for (int i = 1; i < 32; i++)
		cno_check(i == SIGKILL || i == SIGSTOP || sigismember(&blocked, i));
}

/* GEN-36 */
static void agent__runs_in_a_thread_of_the_library__signals_blocked(void **state)
{
	struct evd_fixture *f = *state;

	cno_agent_do(&f->ia, check_signals, NULL);
}

/* --- every call --- */

static void call_memory(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct dt_ia *ia = agent->arg;
	DAT_LMR_PARAM lmr;
	DAT_PZ_PARAM pz_param;
	DAT_PZ_HANDLE pz;
	DAT_IA_ATTR attr;
	struct dt_buf buf;

	(void)evd;
	dt_ok(dat_ia_query(ia->ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_NONE, NULL));
	dt_ok(dat_pz_create(ia->ia, &pz));
	dt_ok(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &pz_param));
	dt_buf_create(ia, pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	dt_ok(dat_lmr_query(buf.lmr, DAT_LMR_FIELD_ALL, &lmr));
	dt_buf_free(&buf);
	dt_ok(dat_pz_free(pz));
}

static void call_events(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct dt_ia *ia = agent->arg;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE own, named;
	DAT_CNO_PARAM param;
	DAT_EVENT event;
	DAT_COUNT nmore;

	dt_ok(dat_cno_create(ia->ia, cno_agent_of(agent), &cno));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	dt_ok(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	dt_ok(dat_evd_create(ia->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &own));
	dt_ok(evd_try_post(own, 1));
	dt_ok(dat_cno_wait(cno, 0, &named));
	cno_check(named == own);
	cno_check(dat_cno_wait(cno, 0, &named) == DAT_QUEUE_EMPTY);
	dt_ok(dat_evd_wait(own, 0, 1, &event, &nmore));
	dt_fails(dat_evd_wait(own, 0, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED);
	dt_ok(dat_evd_resize(own, 16));
	dt_ok(dat_evd_disable(own));
	dt_ok(dat_evd_enable(own));
	dt_ok(dat_evd_set_unwaitable(own));
	dt_ok(dat_evd_clear_unwaitable(own));
	dt_ok(dat_evd_modify_cno(own, DAT_HANDLE_NULL));
	dt_ok(dat_evd_free(own));
	dt_ok(dat_cno_free(cno));
	dt_ok(dat_evd_dequeue(evd, &event));
}

static void call_instance(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct cno_agent inner = {0};
	struct dt_ia ia;

	(void)agent;
	(void)evd;
	dt_ia_open(&ia);
	evd = cno_evd(&ia, cno_agent_create(&ia, &inner));
	dt_ok(evd_try_post(evd, 1));
	inner.expected = 1;
	dt_until(cno_agent_has_returned, &inner);
	dt_ia_abort(&ia);
}

/* CNO-CREATE-15 CNO-CREATE-13 */
static void agent__makes_and_frees_objects__as_elsewhere(void **state)
{
	struct evd_fixture *f = *state;

	cno_agent_do(&f->ia, call_memory, &f->ia);
	cno_agent_do(&f->ia, call_events, &f->ia);
	cno_agent_do(&f->ia, call_instance, NULL);
}

static void free_itself(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	DAT_CNO_PARAM param;

	dt_ok(dat_evd_free(evd));
	dt_ok(dat_cno_free(agent->cno));
	dt_fails_with(dat_cno_query(agent->cno, DAT_CNO_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_cno_modify_agent(agent->cno, cno_agent_of(agent)), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
}

/* CNO-CREATE-15: The objects that triggered the agent. Later agents run as before. */
static void agent__frees_its_evd_and_cno__success(void **state)
{
	struct evd_fixture *f = *state;

	for (int i = 0; i < 20; i++) {
		struct cno_agent agent = {.body = free_itself};
		DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno_agent_create(&f->ia, &agent));

		evd_post(evd, 1);
		cno_agent_called(&agent, 1, evd);
	}
	cno_agent_fence(&f->ia);
}

/* CNO-FREE-06: Not even an agent that was triggered already starts after the free. */
static void cno_free__agent_triggered__not_called_afterwards(void **state)
{
	struct evd_fixture *f = *state;

	for (int i = 0; i < 100; i++) {
		struct cno_agent agent = {0};
		DAT_CNO_HANDLE cno = cno_agent_create(&f->ia, &agent);
		DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);
		int calls;

		evd_post(evd, 1);
		dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
		dt_ok(dat_cno_free(cno));
		calls = atomic_load(&agent.calls);
		assert_int_equal(atomic_load(&agent.returned), calls);
		if (i % 10 == 0)
			cno_agent_fence(&f->ia);
		assert_int_equal(atomic_load(&agent.calls), calls);
		dt_ok(dat_evd_free(evd));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(agent__trigger__called_once_and_detached),
		evd_test(cno_modify_agent__none_before__next_trigger_calls_it),
		evd_test(cno_modify_agent__one_before__only_the_new_is_called),
		evd_test(cno_modify_agent__null__never_called),
		evd_test(agent__thread_waits_too__both_notified),
		evd_test(agent__armed_again__called_again),
		evd_test(agent__disabled_or_waited_on__not_called),
		evd_test(agent__last_evd_freed__called_with_the_null_handle),
		evd_test(agent__arms_itself_and_dequeues__called_each_time),
		evd_test(agent__triggers_itself__called_after_it_returned),
		evd_test(agent__triggered_while_it_runs__called_after_it_returned),
		evd_test(agent__needs_much_stack__has_the_usual),
		evd_test(agent__runs_in_a_thread_of_the_library__signals_blocked),
		evd_test(agent__makes_and_frees_objects__as_elsewhere),
		evd_test(agent__frees_its_evd_and_cno__success),
		evd_test(cno_free__agent_triggered__not_called_afterwards),
	};

	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
