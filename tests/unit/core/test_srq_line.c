// SPDX-License-Identifier: BSD-2-Clause
/*
 * The endpoints of an SRQ that have a message and no buffer. Each buffer is for the one that has
 * waited longest, whoever asks meanwhile (SRQ-USE-09), and when that one goes, for the next.
 */
#include "mock.h"

#define EPS 4u

static struct mock_ia ia;
static DAT_SRQ_HANDLE srq;
static DAT_EP_HANDLE handles[EPS];
static struct core_ep *eps[EPS];
static unsigned int called[16], calls; /* endpoints, in the order of their turns */
static bool is_greedy[EPS];	       /* asks whenever another one has its turn */
static bool is_robbed;		       /* another one got the buffer of the one that had its turn */
static DAT_EP_HANDLE leaving;	       /* its connection ends when it has its turn */

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
	calls = 0;
	is_robbed = false;
	leaving = DAT_HANDLE_NULL;
	memset(is_greedy, 0, sizeof(is_greedy));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock.receiving = NULL;
	mock_close(&ia);
	return 0;
}

/* A message has come on that endpoint (locked): true if there is a buffer for it. */
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

static unsigned int number_of(const struct core_ep *ep)
{
	unsigned int i = 0;

	while (i < EPS && eps[i] != ep)
		i++;
	return i;
}

/* The endpoint has its turn. */
static void have_turn(struct core_ep *ep)
{
	unsigned int number = number_of(ep);

	called[calls++ % 16] = number;
	for (unsigned int i = 0; i < EPS; i++) {
		if (i != number && is_greedy[i] && take(i))
			is_robbed = true; /* a lock is held: the test fails afterwards */
	}
	if (number < EPS && handles[number] == leaving)
		core_ep_ended(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	else
		take_locked(ep);
}

static void give(uint64_t cookie)
{
	const DAT_DTO_COOKIE user = {.as_64 = cookie};

	assert_int_equal(core_srq_post_recv(srq, 0, NULL, user), DAT_SUCCESS);
	assert_false(is_robbed);
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
static void srq__several_wait__served_in_the_order_in_which_they_came(void **state)
{
	static const unsigned int order[] = {2, 0, 3, 1};

	(void)state;
	for (unsigned int i = 0; i < EPS; i++) {
		assert_false(take(order[i]));
		/* to ask again does not move it */
		assert_false(take(order[0]));
	}
	mock.receiving = have_turn;
	for (unsigned int i = 0; i < EPS; i++) {
		give(i);
		assert_int_equal(calls, i + 1);
		assert_int_equal(called[i], order[i]);
		expect_received(order[i], i);
	}
	mock_no_event(ia.evd);
}

/* SRQ-USE-09: those behind it, and one that has not waited at all */
static void srq__others_ask_during_a_turn__buffer_is_kept_for_it(void **state)
{
	(void)state;
	assert_false(take(1));
	assert_false(take(2));
	mock.receiving = have_turn;
	is_greedy[2] = true;
	is_greedy[3] = true;
	give(1);
	assert_int_equal(calls, 1);
	expect_received(1, 1);
	is_greedy[2] = false;
	is_greedy[3] = false;
	give(2);
	expect_received(2, 2);
	give(3); /* the one that asked during another's turn is in line, too */
	expect_received(3, 3);
	assert_int_equal(calls, 3);
	mock_no_event(ia.evd);
}

/* SRQ-USE-09: one that is served and wants more comes behind all others */
static void srq__served_one_asks_again__last(void **state)
{
	(void)state;
	mock.receiving = have_turn;
	for (unsigned int i = 0; i < 3; i++)
		assert_false(take(i));
	for (unsigned int i = 0; i < 9; i++) {
		give(i);
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

/* SRQ-USE-09 SRQ-USE-10: the transport is asked to serve those behind it */
static void srq__first_in_line_ends_with_a_buffer_there__next_is_served(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		assert_false(take(i));
	mock.receiving = have_turn;
	leaving = handles[0];
	give(5);
	assert_int_equal(mock.kicks, 1);
	expect_disconnected(0);
	expect_received(1, 5);
	give(6);
	expect_received(2, 6);
	assert_int_equal(calls, 3);
	mock_no_event(ia.evd);
}

/* SRQ-USE-09 SRQ-USE-10: wherever it stands, and those that come later stand behind the rest */
static void srq__one_ends_with_no_buffer_there__line_is_whole(void **state)
{
	(void)state;
	for (unsigned int gone = 0; gone < 3; gone++) {
		calls = 0;
		for (unsigned int i = 0; i < 3; i++)
			assert_false(take(i));
		core_lock_acquire(&eps[gone]->cell->lock);
		core_ep_ended(eps[gone], DAT_CONNECTION_EVENT_DISCONNECTED);
		core_ep_leave(eps[gone]);
		expect_disconnected(gone);
		assert_false(take(3));
		mock.receiving = have_turn;
		for (unsigned int i = 0; i < EPS; i++) {
			if (i == gone)
				continue;
			give(i);
			expect_received(i, i);
		}
		assert_int_equal(calls, 3);
		mock_no_event(ia.evd);
		mock.receiving = NULL;
		assert_int_equal(core_ep_free(handles[gone]), DAT_SUCCESS);
		make_ep(gone);
	}
	assert_int_equal(mock.kicks, 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(srq__several_wait__served_in_the_order_in_which_they_came),
		T(srq__others_ask_during_a_turn__buffer_is_kept_for_it),
		T(srq__served_one_asks_again__last),
		T(srq__first_in_line_ends_with_a_buffer_there__next_is_served),
		T(srq__one_ends_with_no_buffer_there__line_is_whole),
	};

	return cmocka_run_group_tests_name("core srq line", tests, NULL, NULL);
}
