// SPDX-License-Identifier: BSD-2-Clause
/* How the express way (src/verbs/express.c) ends: closes, refusals, errors, a second queue. */
#include "rig.h"

#include <pthread.h>
#include <time.h>

#include "verbs/verbs.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	fake_be_vendor(0x0002c9);
	rig.qual = 0;
	rig_begin(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	fake_be_vendor(0);
	return 0;
}

static struct vrb_adapter *adapter_of_rig(void)
{
	return vrb_adapter_of(((struct core_handle *)rig.ia)->object);
}

static void *reserve(void *argument)
{
	struct vrb_cq *cq;

	assert_int_equal(vrb_cq_reserve(argument, 60000, &cq), 0);
	return NULL;
}

/*
 * Whoever needs one more completion queue holds locks that the thread may want which polls the
 * first one: he does not wait for it, but nobody polls that one alone from then on.
 */
static void cq_reserve__first_queue_is_being_polled__waits_for_nobody(void **state)
{
	struct vrb_adapter *adapter = adapter_of_rig();
	struct vrb_cq *cq = atomic_load(&adapter->cqs);
	struct timespec until;
	pthread_t thread;

	(void)state;
	while (!vrb_cq_own(cq)) /* the service thread may be at it */
		;
	assert_int_equal(pthread_create(&thread, NULL, reserve, adapter), 0);
	while (atomic_load(&adapter->cqs) == cq) {
		/* as for the completion of an SRQ's buffer */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 5;
		assert_int_equal(pthread_mutex_timedlock(&adapter->lock, &until), 0);
		pthread_mutex_unlock(&adapter->lock);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	vrb_cq_disown(cq);
	assert_null(atomic_load(&adapter->ia->express));
	assert_false(((struct core_handle *)rig.a.dto)->express);
}

static DAT_RETURN dequeue(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	return vrb_calls.evd_dequeue(evd, &event);
}

/* Until they are on the express way, and their locks this thread's own. */
static void go_express(void)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	for (int i = 0; i < 500; i++) {
		assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
		assert_int_equal(vrb_calls.ep_post_send(rig.a.ep, 1, &seg, cookie, 0), DAT_SUCCESS);
		while (dequeue(rig.a.dto) != DAT_SUCCESS)
			;
		while (dequeue(rig.b.dto) != DAT_SUCCESS)
			;
	}
	assert_true(((struct core_handle *)rig.a.ep)->express);
	assert_true(((struct core_handle *)rig.a.dto)->express);
}

/* IA-CLOSE-27: what a close is about to destroy is refused from then on. */
static void ia_close__under_way__endpoint_and_dispatcher_refused(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	go_express();
	core_handle_doom(rig.a.ep);
	core_handle_doom(rig.a.dto);
	assert_int_equal(DAT_GET_TYPE(vrb_calls.ep_post_send(rig.a.ep, 1, &seg, cookie, 0)),
			 DAT_INVALID_HANDLE);
	assert_int_equal(DAT_GET_TYPE(vrb_calls.ep_post_recv(rig.a.ep, 1, &seg, cookie, 0)),
			 DAT_INVALID_HANDLE);
	assert_int_equal(DAT_GET_TYPE(dequeue(rig.a.dto)), DAT_INVALID_HANDLE);
}

/* Three Sends that wait for a Receive; the queues are known to nobody but the endpoint. */
static void post_three(void)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	for (uint64_t i = 10; i < 13; i++) {
		assert_int_equal(vrb_calls.ep_post_recv(rig.a.ep, 1, &seg,
							(DAT_DTO_COOKIE){.as_64 = i + 10}, 0),
				 DAT_SUCCESS);
		assert_int_equal(
			vrb_calls.ep_post_send(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = i}, 0),
			DAT_SUCCESS);
	}
}

/* In the order of their posts. */
static void expect_flushed(uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		rig_expect_dto(&rig.a, i, DAT_DTO_ERR_FLUSHED);
}

/* DTO-55 GEN-20: one event, and a new connection works. */
static void expect_broken_and_anew(void)
{
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.a.dto);
	rig_again(&rig);
	go_express();
}

static void post_send__refused_by_the_device__all_flushed_in_order(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	(void)state;
	go_express();
	post_three();
	assert_true(((struct core_handle *)rig.a.ep)->express);
	fake_fail_next("ibv_post_send");
	assert_int_equal(
		vrb_calls.ep_post_send(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = 13}, 0),
		DAT_SUCCESS);
	assert_string_equal(fake_failed(), "ibv_post_send");
	fake_fail_at(0);
	expect_flushed(10, 14);
	expect_flushed(20, 23);
	expect_broken_and_anew();
}

static void post_recv__refused_by_the_device__all_flushed_in_order(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	(void)state;
	go_express();
	post_three();
	assert_true(((struct core_handle *)rig.a.ep)->express);
	fake_fail_next("ibv_post_recv");
	assert_int_equal(
		vrb_calls.ep_post_recv(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = 23}, 0),
		DAT_SUCCESS);
	assert_string_equal(fake_failed(), "ibv_post_recv");
	fake_fail_at(0);
	expect_flushed(10, 13);
	expect_flushed(20, 24);
	expect_broken_and_anew();
}

/* DTO-48: the oldest fails, those behind it are flushed. */
static void post_send__fails_in_the_device__told_once_and_the_rest_flushed(void **state)
{
	(void)state;
	go_express();
	post_three();
	fake_status(IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 10, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_flushed(11, 13);
	expect_flushed(20, 23);
	rig_expect_dto(&rig.b, 2, DAT_DTO_ERR_FLUSHED);
	expect_broken_and_anew();
}

/* No message of ours, and its length says nothing of the buffer. */
static void recv__taken_by_a_write_with_immediate_data__broken(void **state)
{
	(void)state;
	go_express();
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 1), DAT_SUCCESS);
	fake_write_next();
	assert_int_equal(rig_send(&rig, &rig.a, 8, 3, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_BAD_RESPONSE);
	rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(cq_reserve__first_queue_is_being_polled__waits_for_nobody),
		RIG_TEST(ia_close__under_way__endpoint_and_dispatcher_refused),
		RIG_TEST(post_send__refused_by_the_device__all_flushed_in_order),
		RIG_TEST(post_recv__refused_by_the_device__all_flushed_in_order),
		RIG_TEST(post_send__fails_in_the_device__told_once_and_the_rest_flushed),
		RIG_TEST(recv__taken_by_a_write_with_immediate_data__broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
