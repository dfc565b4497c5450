// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path (src/verbs/engine/fast.c) with several completion queues, and with an owner of a
 * queue that stalls.
 */
#include "fast_lab.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* --- several completion queues --- */

static void large(DAT_EP_ATTR *attr)
{
	attr->max_request_dtos = 5000; /* more than the first queue has room for */
	attr->max_recv_dtos = 5000;
}

/* With a second queue both are polled by each dequeue. */
static void vrb_cq__a_second_one__both_polled(void **state)
{
	struct rig_ep a = rig.a, b = rig.b;
	struct vrb_cq *first = conn_of(&rig.a)->cq;
	DAT_EVENT event;

	(void)state;
	let_go();
	for (int i = 0; i < 2; i++) {
		struct rig_ep *ep = i ? &rig.b : &rig.a;

		assert_int_equal(
			core_ep_create(rig.ia, rig.pz, ep->dto, ep->dto, ep->conn, NULL, &ep->ep),
			DAT_SUCCESS);
		remake(ep, ep->dto, ep->dto, large);
	}
	join();
	settle();
	own(a.ep);
	own(b.ep);
	assert_ptr_not_equal(conn_of(&rig.a)->cq, first);
	for (uint64_t i = 0; i < 4 * SLOTS; i++) {
		unsigned polls = device.polls;

		assert_int_equal(write_len(&a, 5, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 6, 200 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.b, 7, 300 + i), DAT_SUCCESS);
		assert_true(take(rig.a.dto, &event)); /* each dequeue polls each queue */
		assert_in_range(device.polls - polls, 2, 3);
		assert_true(event.event_data.dto_completion_event_data.ep_handle == a.ep ||
			    event.event_data.dto_completion_event_data.ep_handle == rig.a.ep);
		assert_true(take(rig.a.dto, &event));
		expect(&rig.b, 300 + i, 7);
		expect_none(rig.a.dto);
		assert_true(is_fast(a.ep) && is_fast(rig.a.ep));
	}
	let_go();
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	rig.a = a;
	rig.b = b;
	fake_hold(true);
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
 * A thread that makes another completion queue may hold locks that the owner of the first queue is
 * waiting for. So it does not wait for the owner, but from then on no dequeue polls the first queue
 * alone.
 */
static void cq_reserve__first_queue_is_being_polled__does_not_wait(void **state)
{
	struct vrb_adapter *adapter = adapter_of_rig();
	struct vrb_cq *cq = atomic_load(&adapter->cqs);
	struct timespec until;
	pthread_t thread;

	(void)state;
	while (!vrb_cq_own(cq)) /* the service thread may own it */
		;
	assert_int_equal(pthread_create(&thread, NULL, reserve, adapter), 0);
	while (atomic_load(&adapter->cqs) == cq) {
		/* as the completion of an SRQ buffer does */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 5;
		assert_int_equal(pthread_mutex_timedlock(&adapter->lock, &until), 0);
		pthread_mutex_unlock(&adapter->lock);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	vrb_cq_disown(cq);
}

/* --- shared receive queues --- */

static DAT_SRQ_HANDLE make_with_srq(struct rig_ep *ep)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE srq;

	assert_int_equal(core_ep_query(ep->ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(ep->ep), DAT_SUCCESS);
	assert_int_equal(core_srq_create(rig.ia, rig.pz, &attr, &srq), DAT_SUCCESS);
	small(&param.ep_attr);
	param.ep_attr.max_recv_dtos = 0;
	param.ep_attr.max_recv_iov = 0;
	assert_int_equal(core_ep_create_with_srq(rig.ia, rig.pz, ep->dto, ep->dto, ep->conn, srq,
						 &param.ep_attr, &ep->ep),
			 DAT_SUCCESS);
	return srq;
}

static void srq_recv(DAT_SRQ_HANDLE srq, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	assert_int_equal(core_srq_post_recv(srq, 1, &seg, cookie_of(cookie)), DAT_SUCCESS);
}

/*
 * SRQ-USE-05: the thread that owns the queue stalls before it dispatches the completion of a buffer
 * of the SRQ. The end of the connection waits for it.
 */
static void srq__owner_of_the_queue_stalls__end_waits_for_the_completion(void **state)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	struct vrb_cq *cq;

	(void)state;
	open_rig();
	srq = make_with_srq(&rig.a);
	join();
	cq = conn_of(&rig.a)->cq;
	while (!vrb_cq_own(cq))
		sched_yield();
	srq_recv(srq, 55);
	assert_int_equal(send_len(&rig.b, 9, 300), DAT_SUCCESS); /* placed into the buffer */
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	for (int i = 0; i < 50; i++) { /* much longer than the end waits for completions */
		expect_none(rig.a.conn);
		nanosleep(&pause, NULL);
	}
	vrb_cq_disown(cq);
	assert_int_equal(rig_event(rig.a.conn).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(take(rig.a.dto, &event));
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 55);
	teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(vrb_cq__a_second_one__both_polled),
		cmocka_unit_test_setup_teardown(
			cq_reserve__first_queue_is_being_polled__does_not_wait, setup_at_work,
			teardown_at_work),
		cmocka_unit_test(srq__owner_of_the_queue_stalls__end_waits_for_the_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
