// SPDX-License-Identifier: BSD-2-Clause
/* CNOs: create, query, free, and the refusals of these calls. */
#include <sys/resource.h>

#include "cno_util.h"

static void some_function(DAT_PVOID instance_data, DAT_EVD_HANDLE evd)
{
	(void)instance_data;
	(void)evd;
}

/* --- dat_cno_create --- */

/* CNO-CREATE-01 CNO-CREATE-02 CNO-CREATE-04 CNO-QUERY-03 CNO-WAIT-19 CNO-FREE-01 */
static void cno_create__no_agent__quiet_object_without_users(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	DAT_HANDLE_TYPE type;
	DAT_CNO_PARAM param;

	dt_ok(dat_cno_create(f->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_get_handle_type(cno, &type));
	assert_int_equal(type, DAT_HANDLE_TYPE_CNO);
	cno_is_quiet(cno);
	cno_stays_quiet(cno);
	param = cno_query(cno);
	assert_null(param.agent.instance_data);
	assert_true(param.agent.proxy_agent_func == NULL);
	dt_ok(dat_cno_free(cno));
}

/* CNO-CREATE-03 */
static void wait_proxy_agent__of_the_header__layout(void **state)
{
	const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;

	(void)state;
	assert_int_equal(offsetof(DAT_OS_WAIT_PROXY_AGENT, instance_data), 0);
	assert_int_equal(offsetof(DAT_OS_WAIT_PROXY_AGENT, proxy_agent_func), sizeof(void *));
	assert_int_equal(sizeof(DAT_OS_WAIT_PROXY_AGENT), 2 * sizeof(void *));
	assert_null(none.instance_data);
	assert_true(none.proxy_agent_func == NULL);
}

/* CNO-CREATE-09 CNO-MODIFY-AGENT-07: Nothing is created or changed. */
static void agent__data_without_function__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;
	const DAT_OS_WAIT_PROXY_AGENT bad = {f, NULL};
	const DAT_OS_WAIT_PROXY_AGENT good = {NULL, some_function};
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;

	dt_fails_with(dat_cno_create(f->ia.ia, bad, &cno), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_ok(dat_evd_free(f->evd));
	dt_ia_close(&f->ia); /* graceful: it would be refused if a CNO existed */
	dt_ia_open(&f->ia);
	dt_ok(dat_cno_create(f->ia.ia, good, &cno));
	dt_fails_with(dat_cno_modify_agent(cno, bad), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	assert_null(cno_query(cno).agent.instance_data);
	assert_true(cno_query(cno).agent.proxy_agent_func == some_function);
	dt_ok(dat_cno_free(cno));
}

/* CNO-CREATE-10 CNO-CREATE-11 */
static void cno_create__bad_handle_or_pointer__refused(void **state)
{
	struct evd_fixture *f = *state;
	const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
	DAT_CNO_HANDLE cno = cno_create(&f->ia), made;
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, f->evd, cno, f->ia.pz, DT_NEVER_A_HANDLE};

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		dt_fails_with(dat_cno_create(bad[i], none, &made), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_cno_create(DAT_HANDLE_NULL, none, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	dt_fails_with(dat_cno_create(f->ia.ia, none, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_cno_free(cno));
	dt_ok(dat_evd_free(f->evd));
	dt_ia_close(&f->ia);
	f->is_open = false;
}

static void *create_and_free(void *arg)
{
	struct dt_ia *ia = arg;
	const DAT_OS_WAIT_PROXY_AGENT agent = {NULL, some_function};
	const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;

	for (int round = 0; round < 300; round++) {
		DAT_CNO_HANDLE cno[3];

		for (int i = 0; i < 3; i++)
			conf_try(dat_cno_create(ia->ia, i % 2 ? agent : none, &cno[i]));
		for (int i = 0; i < 3; i++)
			conf_try(dat_cno_free(cno[i]));
	}
	return NULL;
}

/* CNO-CREATE-14: The first agents of an instance are created at the same time. */
static void cno_create__many_threads__all_succeed(void **state)
{
	struct evd_fixture *f = *state;

	for (int round = 0; round < 5; round++) {
		struct dt_ia ia;

		dt_ia_open(&ia);
		conf_parallel(create_and_free, &ia);
		dt_ia_close(&ia);
	}
	dt_ok(dat_evd_free(f->evd));
}

/* --- out of memory --- */

#define CNO_MANY 200000

/* Limits the address space to what is in use. */
static void limit_memory(bool is_limited)
{
	static rlim_t before;
	struct rlimit limit;

	cno_check(!getrlimit(RLIMIT_AS, &limit));
	if (is_limited)
		before = limit.rlim_cur;
	limit.rlim_cur = is_limited ? 1 : before;
	cno_check(!setrlimit(RLIMIT_AS, &limit));
}

static void create_without_memory(struct dt_peer *peer, void *arg)
{
	static DAT_CNO_HANDLE cno[CNO_MANY];
	const DAT_OS_WAIT_PROXY_AGENT agent = {NULL, some_function};
	const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
	DAT_RETURN with_agent, ret = DAT_SUCCESS;
	struct dt_ia ia;
	int count = 0;

	(void)peer;
	(void)arg;
	memset(cno, 0, sizeof(cno));
	dt_ia_open(&ia);
	limit_memory(true);
	with_agent = dat_cno_create(ia.ia, agent, &cno[0]); /* needs a thread */
	while (count < CNO_MANY && ret == DAT_SUCCESS) {
		ret = dat_cno_create(ia.ia, none, &cno[count]);
		count += ret == DAT_SUCCESS;
	}
	limit_memory(false);
	dt_fails_with(with_agent, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	dt_ok(dat_cno_create(ia.ia, agent, &cno[count++]));
	while (count--)
		dt_ok(dat_cno_free(cno[count]));
	dt_ia_close(&ia); /* graceful: no partly created object remains */
}

/* CNO-CREATE-12 */
static void cno_create__no_memory__insufficient_resources(void **state)
{
	struct dt_peer peer;

	(void)state;
	if (DT_SLOW)
		skip(); /* sanitizers need address space of their own */
	dt_peer_start(&peer, create_without_memory, NULL);
	dt_peer_join(&peer);
}

/* --- dat_cno_query --- */

/* CNO-QUERY-01 CNO-QUERY-02 CNO-QUERY-03 */
static void cno_query__each_field__as_created_or_armed(void **state)
{
	struct evd_fixture *f = *state;
	const DAT_OS_WAIT_PROXY_AGENT agent = {f, some_function};
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;

	dt_ok(dat_cno_create(f->ia.ia, agent, &cno));
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_IA_HANDLE, &param));
	assert_ptr_equal(param.ia_handle, f->ia.ia);
	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_AGENT, &param));
	assert_ptr_equal(param.agent.instance_data, f);
	assert_true(param.agent.proxy_agent_func == some_function);
	dt_ok(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	param = cno_query(cno);
	assert_ptr_equal(param.ia_handle, f->ia.ia);
	assert_null(param.agent.instance_data);
	assert_true(param.agent.proxy_agent_func == NULL);
	dt_ok(dat_cno_free(cno));
}

/* CNO-QUERY-04 CNO-QUERY-05 */
static void cno_query__bad_mask_or_pointer__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_CNO_PARAM param;

	assert_int_equal(DAT_CNO_FIELD_IA_HANDLE, 1);
	assert_int_equal(DAT_CNO_FIELD_AGENT, 2);
	assert_int_equal(DAT_CNO_FIELD_ALL, 3);
	for (unsigned int bit = 2; bit < 31; bit++) {
		dt_fails_with(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)(1u << bit), &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		dt_fails_with(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)(3u | 1u << bit), &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
	dt_ok(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)0, &param));
	dt_fails_with(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_cno_free(cno));
}

/* --- handles --- */

static void refuse_everywhere(DAT_HANDLE handle)
{
	const DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
	DAT_EVD_HANDLE evd;
	DAT_CNO_PARAM param;

	dt_fails_with(dat_cno_modify_agent(handle, none), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_cno_query(handle, DAT_CNO_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_cno_wait(handle, 0, &evd), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	dt_fails_with(dat_cno_free(handle), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
}

/* CNO-MODIFY-AGENT-08 CNO-QUERY-06 CNO-WAIT-24 CNO-FREE-08 */
static void cno_calls__no_cno__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	struct conf_bad bad;

	conf_bad_make(&f->ia, &bad);
	for (size_t i = 0; i < CONF_BAD_COUNT; i++)
		refuse_everywhere(bad.handle[i]);
	refuse_everywhere(f->ia.pz);
	refuse_everywhere(DT_NEVER_A_HANDLE);
}

/* CNO-FREE-07 CNO-MODIFY-AGENT-08 CNO-QUERY-06 CNO-WAIT-24 CNO-FREE-08 */
static void cno_calls__freed_cno__invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia), other;

	dt_ok(dat_cno_free(cno));
	refuse_everywhere(cno);
	for (int i = 0; i < 1000; i++) {
		other = cno_create(&f->ia);
		assert_ptr_not_equal(other, cno);
		dt_ok(dat_cno_free(other));
	}
	refuse_everywhere(cno);
}

/* CNO-WAIT-23 */
static void cno_wait__null_pointer__invalid_parameter_and_trigger_kept(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	dt_fails_with(dat_cno_wait(cno, 0, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	evd_post(evd, 1);
	dt_fails_with(dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	cno_expect(cno, evd);
}

/* --- dat_cno_free --- */

static void refuse_free(DAT_CNO_HANDLE cno)
{
	dt_fails_with(dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
}

/* CNO-FREE-02 CNO-FREE-04: Each of several users counts, however it was attached to the CNO. */
static void cno_free__dispatchers_refer_to_it__invalid_state(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	refuse_free(cno);
	dt_ok(dat_evd_modify_cno(f->evd, cno));
	refuse_free(cno);
	dt_ok(dat_evd_free(evd));
	refuse_free(cno);
	evd_post(f->evd, 1);
	cno_expect(cno, f->evd);
	dt_ok(dat_evd_modify_cno(f->evd, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
}

/* CNO-FREE-03 CNO-FREE-04 CNO-FREE-05 */
static void cno_free__thread_blocked__invalid_state_until_released(void **state)
{
	struct evd_fixture *f = *state;
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	struct cno_waiter waiter = {0};

	cno_waiter_start(&waiter, cno, DAT_TIMEOUT_INFINITE);
	refuse_free(cno);
	cno_waiter_stays(&waiter);
	dt_ok(dat_evd_modify_cno(f->evd, cno));
	evd_post(f->evd, 1);
	cno_waiter_gets(&waiter, f->evd);
	refuse_free(cno);
	dt_ok(dat_evd_modify_cno(f->evd, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
}

/* CNO-FREE-06: The trigger of an EVD that was moved to another CNO, and an agent set after it. */
static void cno_free__trigger_and_agent_left__success_without_call(void **state)
{
	struct evd_fixture *f = *state;
	struct cno_agent agent = {0};
	DAT_CNO_HANDLE cno = cno_create(&f->ia);
	DAT_EVD_HANDLE evd = cno_evd(&f->ia, cno);

	agent.cno = cno;
	evd_post(evd, 1);
	cno_agent_arm(&agent);
	dt_ok(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
	evd_post(evd, 2);
	cno_agent_fence(&f->ia);
	assert_int_equal(atomic_load(&agent.calls), 0);
	evd_take_range(evd, 1, 2);
	dt_ok(dat_evd_free(evd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: the agents' thread could reuse the stack of an ended thread */
		cmocka_unit_test(cno_create__no_memory__insufficient_resources),
		evd_test(cno_create__no_agent__quiet_object_without_users),
		evd_test(wait_proxy_agent__of_the_header__layout),
		evd_test(agent__data_without_function__invalid_parameter),
		evd_test(cno_create__bad_handle_or_pointer__refused),
		evd_test(cno_create__many_threads__all_succeed),
		evd_test(cno_query__each_field__as_created_or_armed),
		evd_test(cno_query__bad_mask_or_pointer__invalid_parameter),
		evd_test(cno_calls__no_cno__invalid_handle),
		evd_test(cno_calls__freed_cno__invalid_handle),
		evd_test(cno_wait__null_pointer__invalid_parameter_and_trigger_kept),
		evd_test(cno_free__dispatchers_refer_to_it__invalid_state),
		evd_test(cno_free__thread_blocked__invalid_state_until_released),
		evd_test(cno_free__trigger_and_agent_left__success_without_call),
	};

	return cmocka_run_group_tests_name("cno_create", tests, NULL, NULL);
}
