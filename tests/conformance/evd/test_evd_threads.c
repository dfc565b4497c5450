// SPDX-License-Identifier: BSD-2-Clause
/* Many threads on one EVD: each event reaches exactly one of them, and none is lost. */
#include "evd_util.h"

#define TAKERS 4
#define EVENTS 20000u

struct crowd {
	DAT_EVD_HANDLE evd;
	uint64_t end;
	bool use_wait;
	bool is_serialized;
	pthread_mutex_t turn;
	_Atomic unsigned int taken;
	atomic_uchar seen[EVENTS];
	uintptr_t last; /* under turn */
	_Atomic unsigned int failures, disorder;
};

/* Takes at most one event. Returns false if a call returned a wrong code. */
static bool take_one(struct crowd *crowd)
{
	DAT_EVENT event;
	DAT_COUNT nmore;
	DAT_RETURN ret;
	uintptr_t number;

	if (crowd->use_wait)
		ret = dat_evd_wait(crowd->evd, 1000, 1, &event, &nmore);
	else
		ret = dat_evd_dequeue(crowd->evd, &event);
	if (ret != DAT_SUCCESS) {
		sched_yield();
		/* empty, or another thread is the waiter */
		return crowd->use_wait ? DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED ||
						 DAT_GET_TYPE(ret) == DAT_INVALID_STATE
				       : ret == DAT_QUEUE_EMPTY;
	}
	number = (uintptr_t)event.event_data.software_event_data.pointer;
	if (event.event_number != DAT_SOFTWARE_EVENT || number >= EVENTS)
		return false;
	if (crowd->is_serialized && crowd->last++ != number)
		atomic_fetch_add(&crowd->disorder, 1);
	atomic_fetch_add(&crowd->seen[number], 1);
	atomic_fetch_add(&crowd->taken, 1);
	return true;
}

static void *take_all(void *arg)
{
	struct crowd *crowd = arg;

	while (atomic_load(&crowd->taken) < EVENTS && dt_now_us() < crowd->end) {
		bool is_good;

		if (crowd->is_serialized)
			pthread_mutex_lock(&crowd->turn);
		is_good = take_one(crowd);
		if (crowd->is_serialized)
			pthread_mutex_unlock(&crowd->turn);
		if (!is_good)
			atomic_fetch_add(&crowd->failures, 1);
	}
	return NULL;
}

static void run_crowd(struct evd_fixture *f, bool use_wait, bool is_serialized)
{
	static struct crowd crowd;
	pthread_t threads[TAKERS];

	memset(&crowd, 0, sizeof(crowd));
	crowd.evd = dt_evd_create(&f->ia, 64, DAT_EVD_SOFTWARE_FLAG);
	crowd.end = dt_now_us() + 3 * (uint64_t)DT_WAIT_US;
	crowd.use_wait = use_wait;
	crowd.is_serialized = is_serialized;
	pthread_mutex_init(&crowd.turn, NULL);
	for (int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_all, &crowd), 0);
	for (uintptr_t i = 0; i < EVENTS && dt_now_us() < crowd.end;) {
		DAT_RETURN ret = evd_try_post(crowd.evd, i);

		if (ret == DAT_SUCCESS)
			i++;
		else if (DAT_GET_TYPE(ret) == DAT_QUEUE_FULL)
			sched_yield();
		else
			atomic_fetch_add(&crowd.failures, 1);
	}
	for (int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_mutex_destroy(&crowd.turn);
	assert_int_equal(crowd.failures, 0);
	assert_int_equal(crowd.disorder, 0);
	assert_int_equal(crowd.taken, EVENTS);
	for (unsigned int i = 0; i < EVENTS; i++)
		assert_int_equal(crowd.seen[i], 1);
	dt_no_event(crowd.evd);
}

/* EVD-STREAM-04 EVD-DEQUEUE-10 EVD-DEQUEUE-14 */
static void evd_dequeue__many_threads__each_event_once(void **state)
{
	run_crowd(*state, false, false);
}

/* EVD-STREAM-04 EVD-WAIT-38 EVD-WAIT-37 EVD-WAIT-16 */
static void evd_wait__many_threads__one_owner_each_event_once(void **state)
{
	run_crowd(*state, true, false);
}

/* EVD-STREAM-06 */
static void evd_dequeue__threads_take_turns__in_order(void **state)
{
	run_crowd(*state, false, true);
}

/* EVD-STREAM-06 */
static void evd_wait__threads_take_turns__in_order(void **state)
{
	run_crowd(*state, true, true);
}

/* --- two producers --- */

#define MIXED 4000u

struct producer {
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep; /* its flushes are events of the provider */
	DAT_RETURN ret;
};

static void *post_software(void *arg)
{
	struct producer *producer = arg;

	for (uintptr_t i = 0; i < MIXED && producer->ret == DAT_SUCCESS; i++)
		producer->ret = evd_try_post(producer->evd, i);
	return NULL;
}

static void *post_receives(void *arg)
{
	struct producer *producer = arg;

	for (uint64_t i = 0; i < MIXED && producer->ret == DAT_SUCCESS; i++)
		producer->ret = dat_ep_post_recv(producer->ep, 0, NULL, dt_cookie(i),
						 DAT_COMPLETION_DEFAULT_FLAG);
	return NULL;
}

/* EVD-POST-SE-14 EVD-STREAM-01 EVD-STREAM-02 EVD-WAIT-37 */
static void evd_post_se__provider_events_at_the_same_time__both_in_order(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	struct producer producer = {
		.evd = dt_evd_create(&f->ia, 2 * MIXED, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG),
	};
	struct producer other = producer;
	uint64_t software = 0, receives = 0;
	pthread_t threads[2];

	other.ep = evd_flusher(&f->ia, producer.evd, conn, NULL);
	assert_int_equal(pthread_create(&threads[0], NULL, post_software, &producer), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, post_receives, &other), 0);
	while (software + receives < 2 * MIXED) {
		DAT_EVENT event = dt_event(producer.evd);

		if (event.event_number == DAT_SOFTWARE_EVENT) {
			evd_check_soft(&event, producer.evd, software++);
			continue;
		}
		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64,
				 receives++);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	dt_ok(producer.ret);
	dt_ok(other.ret);
	assert_int_equal(software, MIXED);
	dt_no_event(producer.evd);
	dt_no_event(f->ia.async);
}

/* --- free against everything --- */

struct meddler {
	_Atomic(DAT_EVD_HANDLE) evd;
	atomic_bool stop;
	_Atomic unsigned int failures;
};

static bool is_one_of(DAT_RETURN ret, DAT_RETURN a, DAT_RETURN b, DAT_RETURN c)
{
	return ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == a || DAT_GET_TYPE(ret) == b ||
	       DAT_GET_TYPE(ret) == c || DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE;
}

static void *meddle(void *arg)
{
	struct meddler *meddler = arg;

	while (!atomic_load(&meddler->stop)) {
		DAT_EVD_HANDLE evd = atomic_load(&meddler->evd);
		DAT_EVD_PARAM param;
		DAT_EVENT event;
		DAT_COUNT nmore;
		bool is_good = true;

		is_good &= is_one_of(evd_try_post(evd, 1), DAT_QUEUE_FULL, 0, 0);
		is_good &= is_one_of(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY,
				     DAT_INVALID_STATE, 0);
		is_good &= is_one_of(dat_evd_wait(evd, 100, 1, &event, &nmore), DAT_TIMEOUT_EXPIRED,
				     DAT_INVALID_STATE, DAT_ABORT);
		is_good &= is_one_of(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param), 0, 0, 0);
		is_good &= is_one_of(dat_evd_resize(evd, 5), DAT_INVALID_STATE, 0, 0);
		is_good &= is_one_of(dat_evd_disable(evd), 0, 0, 0);
		is_good &= is_one_of(dat_evd_enable(evd), 0, 0, 0);
		if (!is_good)
			atomic_fetch_add(&meddler->failures, 1);
	}
	return NULL;
}

/* EVD-FREE-14 EVD-FREE-08 EVD-QUERY-12 EVD-RESIZE-15 EVD-POST-SE-16: Calls that race with a free
 * take effect before it or are refused. */
static void evd_free__other_threads_use_it__before_it_or_invalid_handle(void **state)
{
	struct evd_fixture *f = *state;
	static struct meddler meddler;
	pthread_t threads[2];

	atomic_store(&meddler.evd, dt_evd_create(&f->ia, 8, DAT_EVD_SOFTWARE_FLAG));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, meddle, &meddler), 0);
	for (int i = 0; i < 500; i++) {
		DAT_EVD_HANDLE fresh = dt_evd_create(&f->ia, 8, DAT_EVD_SOFTWARE_FLAG);

		dt_ok(dat_evd_free(atomic_exchange(&meddler.evd, fresh)));
	}
	atomic_store(&meddler.stop, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(meddler.failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		evd_test(evd_dequeue__many_threads__each_event_once),
		evd_test(evd_wait__many_threads__one_owner_each_event_once),
		evd_test(evd_dequeue__threads_take_turns__in_order),
		evd_test(evd_wait__threads_take_turns__in_order),
		evd_test(evd_post_se__provider_events_at_the_same_time__both_in_order),
		evd_test(evd_free__other_threads_use_it__before_it_or_invalid_handle),
	};

	return cmocka_run_group_tests_name("evd_threads", tests, NULL, NULL);
}
