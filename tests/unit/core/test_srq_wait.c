// SPDX-License-Identifier: BSD-2-Clause
/*
 * The wait list of an SRQ: endpoints that have a message and no buffer. Each buffer goes to the
 * endpoint that has waited longest, even if another one tries to take it (SRQ-USE-09). If that
 * endpoint disconnects, the next one gets the buffer.
 */
#include "mock.h"

#include <pthread.h>
#include <sched.h>

#define EPS 4u

static struct mock_ia ia;
static DAT_SRQ_HANDLE srq;
static DAT_EP_HANDLE handles[EPS];
static struct core_ep *eps[EPS];
static unsigned int offered[16], offers; /* endpoints, in the order of the offers */
static bool is_rival[EPS];		 /* tries to take the buffers offered to others */
static bool has_rival_won;		 /* a rival got a buffer that was offered to another one */
static DAT_EP_HANDLE leaving;		 /* disconnects when it is offered a buffer */
static DAT_EP_HANDLE idle;		 /* takes no buffer that it is offered */

static void make_srq(void)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 16, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};

	assert_int_equal(core_srq_create(ia.ia, ia.pz, &attr, &srq), DAT_SUCCESS);
}

static void make_ep(unsigned int i)
{
	const struct transport_conn_param peer = {.read_in = 8, .read_out = 8};
	struct sockaddr_in address = {.sin_family = AF_INET};
	DAT_EP_PARAM param;
	DAT_EP_HANDLE plain = mock_ep(&ia);

	assert_int_equal(core_ep_query(plain, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(plain), DAT_SUCCESS);
	param.ep_attr.max_recv_dtos = DAT_HW_DEFAULT;
	param.ep_attr.srq_soft_hw = DAT_HW_DEFAULT;
	assert_int_equal(core_ep_create_with_srq(ia.ia, ia.pz, ia.evd, ia.evd, ia.evd, srq,
						 &param.ep_attr, &handles[i]),
			 DAT_SUCCESS);
	assert_int_equal(core_ep_connect(handles[i], (DAT_IA_ADDRESS_PTR)&address, 7 + i,
					 DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
					 DAT_CONNECT_DEFAULT_FLAG),
			 DAT_SUCCESS);
	eps[i] = mock.ep;
	core_lock_acquire(&eps[i]->cell->lock);
	core_ep_established(eps[i], &peer);
	core_ep_leave(eps[i]);
	assert_int_equal(mock_event(ia.evd).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	make_srq();
	for (unsigned int i = 0; i < EPS; i++)
		make_ep(i);
	offers = 0;
	has_rival_won = false;
	leaving = DAT_HANDLE_NULL;
	idle = DAT_HANDLE_NULL;
	memset(is_rival, 0, sizeof(is_rival));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock.on_post_recv = NULL;
	mock_close(&ia);
	return 0;
}

/* A message arrives on the endpoint. Returns true if it gets a buffer. EP locked. */
static bool take_locked(struct core_ep *ep)
{
	if (!core_recv_next(ep))
		return false;
	core_recv_done(ep, DAT_DTO_SUCCESS, 0, false);
	return true;
}

static bool take(unsigned int i)
{
	bool is_taken;

	core_lock_acquire(&eps[i]->cell->lock);
	is_taken = take_locked(eps[i]);
	core_ep_leave(eps[i]);
	return is_taken;
}

static unsigned int index_of(const struct core_ep *ep)
{
	unsigned int i = 0;

	while (i < EPS && eps[i] != ep)
		i++;
	return i;
}

/* post_recv: the endpoint is offered a buffer. */
static void on_offer(struct core_ep *ep)
{
	unsigned int index = index_of(ep);

	offered[offers++ % 16] = index;
	for (unsigned int i = 0; i < EPS; i++) {
		if (i != index && is_rival[i] && take(i))
			has_rival_won = true; /* checked later: a lock is held here */
	}
	if (index < EPS && handles[index] == leaving)
		core_ep_ended(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	else if (index >= EPS || handles[index] != idle)
		take_locked(ep);
}

static void post_buffer(uint64_t cookie)
{
	const DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_srq_post_recv(srq, 0, NULL, user), DAT_SUCCESS);
	assert_false(has_rival_won);
}

static void expect_received(unsigned int i, uint64_t cookie)
{
	const DAT_EVENT event = mock_event(ia.evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(data->ep_handle, handles[i]);
	assert_true(data->user_cookie.as_64 == cookie);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
}

/* SRQ-USE-09 */
static void srq__several_endpoints_wait__served_in_order(void **state)
{
	static const unsigned int order[] = {2, 0, 3, 1};

	(void)state;
	for (unsigned int i = 0; i < EPS; i++) {
		assert_false(take(order[i]));
		/* a second try does not change the order */
		assert_false(take(order[0]));
	}
	mock.on_post_recv = on_offer;
	for (unsigned int i = 0; i < EPS; i++) {
		post_buffer(i);
		assert_int_equal(offers, i + 1);
		assert_int_equal(offered[i], order[i]);
		expect_received(order[i], i);
	}
	mock_no_event(ia.evd);
}

/* SRQ-USE-09: the rivals are a later waiter and an endpoint that did not wait */
static void srq__rivals_during_an_offer__buffer_kept_for_the_waiter(void **state)
{
	(void)state;
	assert_false(take(1));
	assert_false(take(2));
	mock.on_post_recv = on_offer;
	is_rival[2] = true;
	is_rival[3] = true;
	post_buffer(1);
	assert_int_equal(offers, 1);
	expect_received(1, 1);
	is_rival[2] = false;
	is_rival[3] = false;
	post_buffer(2);
	expect_received(2, 2);
	post_buffer(3); /* the rival that had not waited is on the list now */
	expect_received(3, 3);
	assert_int_equal(offers, 3);
	mock_no_event(ia.evd);
}

/* SRQ-USE-09 */
static void srq__served_endpoint_waits_again__last(void **state)
{
	(void)state;
	mock.on_post_recv = on_offer;
	for (unsigned int i = 0; i < 3; i++)
		assert_false(take(i));
	for (unsigned int i = 0; i < 9; i++) {
		post_buffer(i);
		expect_received(i % 3, i);
		assert_false(take(i % 3));
	}
}

static void expect_disconnected(unsigned int i)
{
	const DAT_EVENT event = mock_event(ia.evd);

	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, handles[i]);
}

/* SRQ-USE-09 SRQ-USE-10: by the slot kick */
static void srq__first_waiter_disconnects_during_an_offer__next_served(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		assert_false(take(i));
	mock.on_post_recv = on_offer;
	leaving = handles[0];
	post_buffer(5);
	assert_int_equal(mock.kicks, 1);
	expect_disconnected(0);
	expect_received(1, 5);
	post_buffer(6);
	expect_received(2, 6);
	assert_int_equal(offers, 3);
	mock_no_event(ia.evd);
}

/* SRQ-USE-09 SRQ-USE-10: for each position in the list */
static void srq__a_waiter_disconnects_without_offer__others_keep_their_order(void **state)
{
	(void)state;
	for (unsigned int gone = 0; gone < 3; gone++) {
		offers = 0;
		for (unsigned int i = 0; i < 3; i++)
			assert_false(take(i));
		core_lock_acquire(&eps[gone]->cell->lock);
		core_ep_ended(eps[gone], DAT_CONNECTION_EVENT_DISCONNECTED);
		core_ep_leave(eps[gone]);
		expect_disconnected(gone);
		assert_false(take(3));
		mock.on_post_recv = on_offer;
		for (unsigned int i = 0; i < EPS; i++) {
			if (i == gone)
				continue;
			post_buffer(i);
			expect_received(i, i);
		}
		assert_int_equal(offers, 3);
		mock_no_event(ia.evd);
		mock.on_post_recv = NULL;
		assert_int_equal(core_ep_free(handles[gone]), DAT_SUCCESS);
		make_ep(gone);
	}
	assert_int_equal(mock.kicks, 0);
}

/* SRQ-USE-09: as an endpoint whose connection is ending */
static void srq__first_waiter_takes_nothing__next_served(void **state)
{
	(void)state;
	assert_false(take(0));
	assert_false(take(1));
	mock.on_post_recv = on_offer;
	idle = handles[0];
	post_buffer(7);
	assert_int_equal(offers, 2);
	expect_received(1, 7);
	mock_no_event(ia.evd);
}

static void *post_next(void *cookie)
{
	static DAT_RETURN ret;

	ret = core_srq_post_recv(srq, 0, NULL, *(DAT_DTO_COOKIE *)cookie);
	return &ret;
}

static bool is_offered(unsigned int i)
{
	struct core_lock *lock = &eps[i]->srq->cell->lock;
	bool is_offered;

	core_lock_acquire(lock);
	is_offered = eps[i]->srq_user.is_offered;
	core_lock_release(lock);
	return is_offered;
}

static DAT_DTO_COOKIE next_cookie = {.as_64 = 2};
static pthread_t next_poster;
static bool was_taken, was_taken_again, has_later_taken;

/*
 * The first offer: the endpoint takes the buffer, waits again, and another one begins to wait. Then
 * another thread posts a buffer and offers it to the first endpoint, before this offer ends.
 */
static void on_overlapping_offer(struct core_ep *ep)
{
	if (offers++) {
		take_locked(ep);
		return;
	}
	was_taken = take_locked(ep);
	was_taken_again = take_locked(ep);
	has_later_taken = take(1);
	pthread_create(&next_poster, NULL, post_next, &next_cookie);
	while (!is_offered(0))
		sched_yield();
}

/* SRQ-USE-09 */
static void srq__next_offer_before_the_end_of_an_offer__order_kept(void **state)
{
	void *ret;

	(void)state;
	assert_false(take(0));
	mock.on_post_recv = on_overlapping_offer;
	post_buffer(1);
	assert_int_equal(pthread_join(next_poster, &ret), 0);
	assert_int_equal(*(DAT_RETURN *)ret, DAT_SUCCESS);
	assert_true(was_taken);
	assert_false(was_taken_again);
	assert_false(has_later_taken);
	expect_received(0, 1);
	expect_received(0, 2);
	post_buffer(3);
	expect_received(1, 3);
	mock_no_event(ia.evd);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(srq__several_endpoints_wait__served_in_order),
		T(srq__rivals_during_an_offer__buffer_kept_for_the_waiter),
		T(srq__served_endpoint_waits_again__last),
		T(srq__first_waiter_disconnects_during_an_offer__next_served),
		T(srq__a_waiter_disconnects_without_offer__others_keep_their_order),
		T(srq__first_waiter_takes_nothing__next_served),
		T(srq__next_offer_before_the_end_of_an_offer__order_kept),
	};

	return cmocka_run_group_tests_name("core srq wait", tests, NULL, NULL);
}
