// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the tests of notification objects and agents; see the header. */
#include "cno_util.h"

/* --- objects --- */

DAT_CNO_HANDLE cno_create(struct dt_ia *ia)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;

	dt_ok(dat_cno_create(ia->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	return cno;
}

DAT_EVD_HANDLE cno_evd(struct dt_ia *ia, DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	dt_ok(dat_evd_create(ia->ia, 64, cno,
			     DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG |
				     DAT_EVD_CONNECTION_FLAG,
			     &evd));
	return evd;
}

DAT_CNO_PARAM cno_query(DAT_CNO_HANDLE cno)
{
	DAT_CNO_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	return param;
}

/* --- notifications --- */

void cno_expect(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd)
{
	DAT_EVD_HANDLE named = DAT_HANDLE_NULL;

	dt_ok(dat_cno_wait(cno, DT_WAIT_US, &named));
	assert_ptr_equal(named, evd);
}

void cno_empty_for(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout)
{
	DAT_EVD_HANDLE named = (DAT_EVD_HANDLE)&named;

	assert_int_equal(dat_cno_wait(cno, timeout, &named), DAT_QUEUE_EMPTY);
	assert_ptr_equal(named, DAT_HANDLE_NULL);
}

void cno_is_quiet(DAT_CNO_HANDLE cno)
{
	cno_empty_for(cno, 0);
}

void cno_stays_quiet(DAT_CNO_HANDLE cno)
{
	cno_empty_for(cno, DT_QUIET_US);
}

void cno_send(struct dt_pair *pair, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_recv(pair->b.ep, 0, NULL, dt_cookie(cookie),
			       DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_send(pair->a.ep, 0, NULL, dt_cookie(cookie), flags));
}

/* --- a blocked thread --- */

static void *cno_waiter_run(void *arg)
{
	struct cno_waiter *waiter = arg;
	int old;

	if (waiter->is_protected)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_setcanceltype(waiter->cancel_type, &old);
	atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
	pthread_cleanup_push(dt_stack_left, NULL);
	waiter->ret = dat_cno_wait(waiter->cno, waiter->timeout, &waiter->evd);
	pthread_cleanup_pop(0);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	atomic_store(&waiter->is_done, true);
	return NULL;
}

/* Is the thread blocked, or done? */
static bool cno_waiter_is_settled(void *arg)
{
	struct cno_waiter *waiter = arg;
	const int tid = atomic_load(&waiter->tid);

	return atomic_load(&waiter->is_done) || (tid && dt_thread_is_blocked(tid));
}

static bool cno_waiter_is_done(void *arg)
{
	struct cno_waiter *waiter = arg;

	return atomic_load(&waiter->is_done);
}

void cno_waiter_launch(struct cno_waiter *waiter, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout)
{
	waiter->cno = cno;
	waiter->timeout = timeout;
	waiter->evd = (DAT_EVD_HANDLE)waiter;
	waiter->ret = DAT_INTERNAL_ERROR;
	waiter->is_cancelled = false;
	atomic_init(&waiter->tid, 0);
	atomic_init(&waiter->is_done, false);
	assert_int_equal(pthread_create(&waiter->thread, NULL, cno_waiter_run, waiter), 0);
}

void cno_waiter_start(struct cno_waiter *waiter, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout)
{
	cno_waiter_launch(waiter, cno, timeout);
	dt_until(cno_waiter_is_settled, waiter);
	assert_false(atomic_load(&waiter->is_done));
}

DAT_RETURN cno_waiter_join(struct cno_waiter *waiter)
{
	dt_until(cno_waiter_is_done, waiter);
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	return waiter->ret;
}

void cno_waiter_gets(struct cno_waiter *waiter, DAT_EVD_HANDLE evd)
{
	dt_ok(cno_waiter_join(waiter));
	assert_ptr_equal(waiter->evd, evd);
}

void cno_waiter_cancel(struct cno_waiter *waiter)
{
	struct timespec end;
	void *result;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &end), 0);
	end.tv_sec += DT_WAIT_US / 1000000;
	assert_int_equal(pthread_cancel(waiter->thread), 0);
	assert_int_equal(pthread_timedjoin_np(waiter->thread, &result, &end), 0);
	waiter->is_cancelled = result == PTHREAD_CANCELED;
}

void cno_waiter_stays(struct cno_waiter *waiter)
{
	uint64_t end = dt_now_us() + DT_QUIET_US;

	do {
		assert_false(atomic_load(&waiter->is_done));
		usleep(1000);
	} while (dt_now_us() < end);
}

/* --- agents --- */

static void cno_agent_run(DAT_PVOID instance_data, DAT_EVD_HANDLE evd)
{
	struct cno_agent *agent = instance_data;

	atomic_store(&agent->evd, evd);
	atomic_fetch_add(&agent->calls, 1);
	if (agent->body)
		agent->body(agent, evd);
	atomic_fetch_add(&agent->returned, 1);
}

DAT_OS_WAIT_PROXY_AGENT cno_agent_of(struct cno_agent *agent)
{
	return (DAT_OS_WAIT_PROXY_AGENT){agent, cno_agent_run};
}

DAT_CNO_HANDLE cno_agent_create(struct dt_ia *ia, struct cno_agent *agent)
{
	atomic_store(&agent->calls, 0);
	atomic_store(&agent->returned, 0);
	dt_ok(dat_cno_create(ia->ia, cno_agent_of(agent), &agent->cno));
	return agent->cno;
}

void cno_agent_arm(struct cno_agent *agent)
{
	dt_ok(dat_cno_modify_agent(agent->cno, cno_agent_of(agent)));
}

bool cno_agent_has_returned(void *arg)
{
	struct cno_agent *agent = arg;

	return atomic_load(&agent->returned) >= agent->expected;
}

void cno_agent_disarm(struct cno_agent *agent)
{
	dt_ok(dat_cno_modify_agent(agent->cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
}

void cno_agent_called(struct cno_agent *agent, int calls, DAT_EVD_HANDLE evd)
{
	agent->expected = calls;
	dt_until(cno_agent_has_returned, agent);
	assert_int_equal(atomic_load(&agent->calls), calls);
	assert_ptr_equal(atomic_load(&agent->evd), evd);
}

void cno_agent_fence(struct dt_ia *ia)
{
	struct cno_agent fence = {0};
	DAT_EVD_HANDLE evd = cno_evd(ia, cno_agent_create(ia, &fence));

	evd_post(evd, 0);
	cno_agent_called(&fence, 1, evd);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_cno_free(fence.cno));
	usleep(2000);
}

void cno_agent_do(struct dt_ia *ia, void (*body)(struct cno_agent *agent, DAT_EVD_HANDLE evd),
		  void *arg)
{
	struct cno_agent agent = {.body = body, .arg = arg};
	DAT_EVD_HANDLE evd = cno_evd(ia, cno_agent_create(ia, &agent));

	evd_post(evd, 0);
	cno_agent_called(&agent, 1, evd);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_cno_free(agent.cno));
}
