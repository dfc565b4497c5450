// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path (src/verbs/fast.c) and where its completions go: dispatchers with events of
 * other kinds, with CNOs and waiters, too small ones; completion queues that others poll, or that
 * are several; shared receive queues; a thread that posts and one that dequeues.
 */
#include "fast_lab.h"
#include "verbs/window.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* --- dispatchers --- */

static DAT_EVENT software_event(void *pointer)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = pointer;
	return event;
}

static void use_software_evd(DAT_COUNT qlen)
{
	open_rig();
	rig.a.dto = make_evd(qlen, DAT_HANDLE_NULL);
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	join();
	settle();
}

/* An event that was queued comes before a completion that the device has. */
static void evd_post_se__before_a_completion__first(void **state)
{
	DAT_EVENT event, told;

	(void)state;
	use_software_evd(16);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		told = software_event(&rig.memory[i]);
		assert_int_equal(core_evd_post_se(rig.a.dto, &told), DAT_SUCCESS);
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
		assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
		assert_ptr_equal(event.event_data.software_event_data.pointer, &rig.memory[i]);
		assert_true(is_fast(rig.a.dto));
		expect_at_once(&rig.a, i, 8);
	}
	teardown(state);
}

/* EVD-STREAM-24 EVD-STREAM-26: more than the dispatcher holds; one loss is told, and it goes on */
static void evd__overflow__told_once_and_on_again(void **state)
{
	DAT_EVENT event;
	unsigned count = 0;

	(void)state;
	use_software_evd(2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	expect_none(rig.b.dto); /* hands them on: two are lost */
	while (take(rig.a.dto, &event))
		check_event(&event, rig.a.dto, rig.a.ep, count++, DAT_DTO_SUCCESS, 8);
	assert_int_equal(count, 2);
	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	rig_no_event(rig.async);
	assert_true(is_fast(rig.a.dto));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		expect_at_once(&rig.a, i, 8);
	teardown(state);
}

/* EVD-MODIFY-CNO-01 EVD-MODIFY-CNO-04: with a CNO each completion is told to it; without it again
 * the dispatcher is as before. */
static void evd_modify_cno__set_and_removed__told_meanwhile(void **state)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	(void)state;
	assert_int_equal(core_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(core_evd_modify_cno(rig.a.dto, cno), DAT_SUCCESS);
		assert_false(is_fast(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		expect_none(rig.b.dto);
		assert_int_equal(core_cno_wait(cno, RIG_WAIT_US, &evd), DAT_SUCCESS);
		assert_ptr_equal(evd, rig.a.dto);
		expect(&rig.a, i, 8);
		expect_none(rig.a.dto);
		assert_false(is_fast(rig.a.dto));
		assert_int_equal(core_evd_modify_cno(rig.a.dto, DAT_HANDLE_NULL), DAT_SUCCESS);
		assert_true(is_fast(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		expect_at_once(&rig.a, i, 8);
	}
	/* taken away with an event queued */
	assert_int_equal(core_evd_modify_cno(rig.a.dto, cno), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 5), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 6), DAT_SUCCESS);
	device.polls = 0;
	expect_none(rig.b.dto);
	assert_int_equal(core_evd_modify_cno(rig.a.dto, DAT_HANDLE_NULL), DAT_SUCCESS);
	expect(&rig.a, 5, 8);
	expect(&rig.a, 6, 8);
	assert_true(is_fast(rig.a.dto));
}

/* EVD-RESIZE-02 */
static void evd_resize__in_between__nothing_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
		if (i % 2)
			expect_none(rig.b.dto);
		assert_int_equal(core_evd_resize(rig.a.dto, (DAT_COUNT)(2 + i)), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		expect(&rig.a, 2, 9);
		assert_true(is_fast(rig.a.dto));
	}
}

/* EVD-DEQUEUE-02: nowhere to, or nothing; the completion is not lost */
static void evd_dequeue__null_or_empty__told_so(void **state)
{
	DAT_EVENT event, before;
	unsigned polls;

	(void)state;
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	polls = device.polls;
	assert_int_equal(dequeue(rig.a.dto, NULL),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	assert_int_equal(device.polls, polls);
	assert_true(is_fast(rig.a.dto));
	expect_at_once(&rig.a, 1, 8);
	memset(&event, 0x3c, sizeof(event));
	before = event;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
		assert_true(is_fast(rig.a.dto));
		assert_memory_equal(&event, &before, sizeof(event));
	}
	assert_int_equal(device.polls, polls + 4);
}

/* Several found by one poll: one by one they are the caller's, in order. */
static void evd_dequeue__several_at_once__in_order(void **state)
{
	unsigned polls;

	(void)state;
	device.most = VRB_POLL_BATCH;
	for (unsigned round = 0; round < 2 * SLOTS; round++) {
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(write_len(&rig.a, 8 + i, 100 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.dto));
		for (unsigned i = 0; i < ROOM; i++) {
			DAT_EVENT event;

			assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
			check_event(&event, rig.a.dto, rig.a.ep, 100 + i, DAT_DTO_SUCCESS, 8 + i);
			assert_int_equal(kept(), ROOM - 1 - i);
		}
		assert_true(is_fast(rig.a.ep));
	}
	/* one poll gives a batch */
	for (unsigned i = 0; i < VRB_POLL_BATCH; i++)
		assert_int_equal(write_len(&rig.b, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < ROOM; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	polls = device.polls;
	expect(&rig.b, 0, 8);
	assert_int_equal(device.polls - polls, 1);
	for (unsigned i = 1; i < VRB_POLL_BATCH; i++)
		expect(&rig.b, i, 8);
	for (unsigned i = 0; i < ROOM; i++)
		expect(&rig.a, i, 8);
	/* more than one poll gives, and than the queue has room for */
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(write_len(&rig.b, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < 30; i++)
		expect(&rig.b, i, 8);
	assert_true(is_fast(rig.b.ep) && is_fast(rig.b.dto));
}

/* Another thread polls the completion queue: there is nothing to be found, and nothing is lost. */
static void evd_dequeue__queue_polled_by_another__empty(void **state)
{
	struct vrb_cq *cq = conn_of(&rig.a)->cq;
	unsigned polls = device.polls;
	DAT_EVENT event;

	(void)state;
	assert_int_equal(core_evd_dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(device.polls, ++polls);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_true(vrb_cq_own(cq));
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(device.polls, polls);
	vrb_cq_disown(cq);
	expect_at_once(&rig.a, 1, 8);
	assert_false(atomic_load(&cq->is_owned));
}

/* A bind that is held up goes on when somebody dequeues, even if there is no event. */
static void evd_dequeue__empty__binds_held_up_go_on(void **state)
{
	DAT_EVENT event;

	(void)state;
	vrb_window_set_blocked(conn_of(&rig.b), true);
	core_handle_set_slow(rig.b.ep, CORE_EP_SLOW_QUEUE);
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_true(is_fast(rig.b.ep)); /* it was looked after, and reviewed */
	vrb_window_set_blocked(conn_of(&rig.b), false);
}

static _Atomic bool is_told;

static void *wait_for_one(void *argument)
{
	DAT_EVENT *event = argument;

	*event = rig_event(rig.a.dto);
	atomic_store(&is_told, true);
	return NULL;
}

/* Hands on what there is, whoever polled last. */
static void until_told(void)
{
	while (!atomic_load(&is_told)) {
		rig_no_event(rig.b.conn);
		sched_yield();
	}
}

/* Until a thread waits for it. */
static void until_waited_for(void)
{
	struct core_evd *evd = cell(rig.a.dto)->object;
	bool has_waiter = false;

	while (!has_waiter) {
		core_lock_acquire(&evd->cell->lock);
		has_waiter = evd->has_waiter;
		core_lock_release(&evd->cell->lock);
		sched_yield();
	}
}

/* EVD-DEQUEUE-04 EVD-DEQUEUE-05: a thread waits while another one dequeues, which is refused, and
 * gets the completion. */
static void evd_wait__while_another_dequeues__gets_it(void **state)
{
	DAT_EVENT event, other;
	pthread_t thread;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		atomic_store(&is_told, false);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &event), 0);
		until_waited_for();
		assert_int_equal(slow(rig.a.dto), CORE_EVD_SLOW_WAITER);
		assert_int_equal(dequeue(rig.a.dto, &other), DAT_CLASS_ERROR | DAT_INVALID_STATE |
								     DAT_INVALID_STATE_EVD_WAITER);
		assert_false(is_fast(rig.a.dto));
		if (i % 2) {
			assert_int_equal(recv_len(&rig.a, 64, i), DAT_SUCCESS);
			assert_int_equal(send_len(&rig.b, 8, 9), DAT_SUCCESS);
		} else {
			assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		}
		until_told();
		assert_int_equal(pthread_join(thread, NULL), 0);
		check_event(&event, rig.a.dto, rig.a.ep, i, DAT_DTO_SUCCESS, 8);
		if (i % 2)
			expect(&rig.b, 9, 8);
		own_all();
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		assert_true(is_fast(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect_at_once(&rig.a, 1, 8);
	}
}

static void *wait_for_end(void *argument)
{
	DAT_EVENT event;
	DAT_COUNT more;

	assert_int_equal(DAT_GET_TYPE(core_evd_wait(*(DAT_EVD_HANDLE *)argument,
						    DAT_TIMEOUT_INFINITE, 1, &event, &more)),
			 DAT_ABORT);
	return NULL;
}

/* EVD-FREE-08 EVD-FREE-11: the waiter that leaves does not bring the handle back. */
static void evd_free__while_a_thread_waits__handle_dead(void **state)
{
	DAT_EVD_HANDLE mine = rig.a.dto, evd = make_evd(8, DAT_HANDLE_NULL);
	const DAT_PROVIDER *calls = CALLS(evd);
	DAT_EVENT event;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &evd), 0);
	rig.a.dto = evd;
	until_waited_for();
	rig.a.dto = mine;
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(calls->evd_dequeue_func(evd, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
}

/* --- several completion queues --- */

static void large(DAT_EP_ATTR *attr)
{
	attr->max_request_dtos = 5000; /* more than the first queue has room for */
	attr->max_recv_dtos = 5000;
}

/* The first is not polled alone any more when there is a second one, and neither is starved. */
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

/* The endpoint's requests take the fast path while its Receives come from the SRQ. */
static void srq__receives_between_requests__both_told(void **state)
{
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;

	(void)state;
	open_rig();
	srq = make_with_srq(&rig.a);
	join();
	fake_hold(true);
	device.is_off = false;
	own_all();
	assert_int_equal(recv_len(&rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	expect(&rig.b, 1, 8);
	for (uint64_t i = 0; i < 3 * SLOTS; i++) {
		assert_true(is_fast(rig.a.ep));
		device.most = i % 2 ? VRB_POLL_BATCH : 1;
		srq_recv(srq, 100 + i);
		assert_int_equal(write_len(&rig.a, 8, 200 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 9, 300 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 10, 400 + i), DAT_SUCCESS);
		expect(&rig.a, 200 + i, 8);
		expect(&rig.a, 100 + i, 9);
		expect(&rig.a, 400 + i, 10);
		expect(&rig.b, 300 + i, 9);
		assert_int_equal(recv_len(&rig.a, 8, 1) & ~DAT_CLASS_ERROR, BAD_ARG(1));
	}
	assert_true(is_fast(rig.a.ep));
	/* one that comes while requests are outstanding */
	assert_int_equal(send_len(&rig.a, 8, 7), DAT_SUCCESS);
	srq_recv(srq, 8);
	assert_int_equal(send_len(&rig.b, 9, 9), DAT_SUCCESS);
	expect(&rig.a, 8, 9);
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(recv_len(&rig.b, 64, 1), DAT_SUCCESS);
	expect(&rig.a, 7, 8);
	/* and the end, with some of each outstanding */
	srq_recv(srq, 1);
	assert_int_equal(send_len(&rig.a, 8, 201), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.a, 8, 202), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	let_go();
	expect_flushed(&rig.a, 201);
	expect_flushed(&rig.a, 202);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	while (take(rig.a.dto, &event))
		;
	teardown(state);
}

/* --- threads --- */

#define THREAD_ROUNDS 20000u
#define THREAD_AHEAD 200u /* what the dispatcher has room for, and less */

static _Atomic uint64_t taken;

/* Dequeues until all have come, each in its turn. */
static void *take_in_order(void *argument)
{
	DAT_EVENT event;
	uint64_t next = 0;

	while (next < THREAD_ROUNDS) {
		DAT_RETURN ret = dequeue(rig.a.dto, &event);
		const DAT_DTO_COMPLETION_EVENT_DATA *data =
			&event.event_data.dto_completion_event_data;

		if (ret == DAT_QUEUE_EMPTY) {
			sched_yield();
			continue;
		}
		if (ret != DAT_SUCCESS || event.event_number != DAT_DTO_COMPLETION_EVENT ||
		    data->user_cookie.as_64 != next || data->status != DAT_DTO_SUCCESS ||
		    data->transfered_length != 1 + next % 100 || data->ep_handle != rig.a.ep)
			break;
		atomic_store(&taken, ++next);
	}
	*(bool *)argument = next == THREAD_ROUNDS;
	atomic_store(&taken, UINT64_MAX / 2); /* or it has failed: nobody need wait */
	return NULL;
}

/* EVD-STREAM-04: one posts, and posts again while the queue is full; the other one takes. */
static void threads__one_posts_one_dequeues__each_completion_once(void **state)
{
	bool is_good = false;
	pthread_t thread;

	(void)state;
	let_go();
	device.most = VRB_POLL_BATCH;
	atomic_store(&taken, 0);
	assert_int_equal(pthread_create(&thread, NULL, take_in_order, &is_good), 0);
	for (uint64_t i = 0; i < THREAD_ROUNDS;) {
		DAT_RETURN ret;

		if (i >= atomic_load(&taken) + THREAD_AHEAD) {
			sched_yield();
			continue;
		}
		ret = write_len(&rig.a, 1 + i % 100, i);
		if (ret == DAT_SUCCESS)
			i++;
		else
			assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_good);
	rig_no_event(rig.a.dto);
	assert_int_equal(inner(&rig.a)->req.head, inner(&rig.a)->req.tail);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(evd_post_se__before_a_completion__first),
		cmocka_unit_test(evd__overflow__told_once_and_on_again),
		RIG_TEST(evd_modify_cno__set_and_removed__told_meanwhile),
		RIG_TEST(evd_resize__in_between__nothing_lost),
		RIG_TEST(evd_dequeue__null_or_empty__told_so),
		RIG_TEST(evd_dequeue__several_at_once__in_order),
		RIG_TEST(evd_dequeue__queue_polled_by_another__empty),
		RIG_TEST(evd_dequeue__empty__binds_held_up_go_on),
		RIG_TEST(evd_wait__while_another_dequeues__gets_it),
		RIG_TEST(evd_free__while_a_thread_waits__handle_dead),
		RIG_TEST(vrb_cq__a_second_one__both_polled),
		cmocka_unit_test_setup_teardown(
			cq_reserve__first_queue_is_being_polled__waits_for_nobody, setup_at_work,
			teardown_at_work),
		cmocka_unit_test(srq__receives_between_requests__both_told),
		RIG_TEST(threads__one_posts_one_dequeues__each_completion_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
