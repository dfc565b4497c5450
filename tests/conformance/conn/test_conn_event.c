// SPDX-License-Identifier: BSD-2-Clause
/*
 * Connection events: numbers, fields, the EVD that they go to, one end event per connection with
 * its cause, and full EVDs. Asynchronous events as far as a test can cause them.
 */
#include <pthread.h>

#include "conn_util.h"

/* CONN-EVT-10 CONN-EVT-19 CONN-EVT-24 CONN-EVT-25 CONN-EVT-27 CONN-EVT-29 CONN-EVT-30 CONN-EVT-32
 * CONN-EVT-35 CONN-EVT-47 */
static void event_numbers__values__those_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_CONNECTION_REQUEST_EVENT, 0x02001);
	assert_int_equal(DAT_CONNECTION_EVENT_ESTABLISHED, 0x04001);
	assert_int_equal(DAT_CONNECTION_EVENT_PEER_REJECTED, 0x04002);
	assert_int_equal(DAT_CONNECTION_EVENT_NON_PEER_REJECTED, 0x04003);
	assert_int_equal(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, 0x04004);
	assert_int_equal(DAT_CONNECTION_EVENT_DISCONNECTED, 0x04005);
	assert_int_equal(DAT_CONNECTION_EVENT_BROKEN, 0x04006);
	assert_int_equal(DAT_CONNECTION_EVENT_TIMED_OUT, 0x04007);
	assert_int_equal(DAT_CONNECTION_EVENT_UNREACHABLE, 0x04008);
	assert_int_equal(DAT_ASYNC_ERROR_EVD_OVERFLOW, 0x08001);
	assert_int_equal(DAT_EVD_OVERFLOW_ERROR, 0);
}

/* CONN-EVT-48 CONN-EVT-49 CONN-EVT-51 CONN-EVT-52 CONN-EVT-55: the numbers only */
static void async_event_numbers__values__those_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(DAT_ASYNC_ERROR_IA_CATASTROPHIC, 0x08002);
	assert_int_equal(DAT_IA_CATASTROPHIC_ERROR, 0);
	assert_int_equal(DAT_ASYNC_ERROR_EP_BROKEN, 0x08003);
	assert_int_equal(DAT_EP_OTHER_ERROR, 1);
	assert_int_equal(DAT_ASYNC_ERROR_TIMED_OUT, 0x08004);
	assert_int_equal(DAT_EP_TRANSFER_TO_ERROR, 0);
	assert_int_equal(DAT_SRQ_TRANSFER_TO_ERROR, 0);
	assert_int_equal(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, 0x08005);
	assert_int_equal(DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT, 2);
	assert_int_equal(DAT_SRQ_LOW_WATERMARK_EVENT, 2);
}

/*
 * CONN-EVT-01 CONN-EVT-02 CONN-EVT-03 CONN-EVT-05: one EVD for two endpoints, and an EVD that is
 * changed later
 */
static void connection_events__each_ep__on_its_connect_evd_with_its_handle(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EP_PARAM param = {.connect_evd_handle = f->a.conn};
	bool seen_a = false, seen_b = false;

	/* b was created with another EVD */
	dt_ok(dat_ep_modify(f->b.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	for (unsigned int i = 0; i < 2; i++) {
		const DAT_EVENT event = dt_event(f->a.conn);
		const DAT_EP_HANDLE ep = event.event_data.connect_event_data.ep_handle;

		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_ptr_equal(event.evd_handle, f->a.conn);
		seen_a |= ep == f->a.ep;
		seen_b |= ep == f->b.ep;
	}
	assert_true(seen_a && seen_b);
	dt_stays_empty(f->b.conn);
	dt_no_event(f->a.conn);
}

/* CONN-EVT-04: the private data of an earlier connection do not reappear */
static void connection_events__after_private_data__size_0(void **state)
{
	static const unsigned char data[32] = {1};
	struct conn_fixture *f = *state;
	struct conn_args args = conn_args_of(f);
	DAT_EVENT event;

	args.data = data;
	args.size = sizeof(data);
	dt_ok(conn_try(f->a.ep, &args));
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, sizeof(data),
			    (DAT_PVOID)(uintptr_t)data));
	event = dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(event.event_data.connect_event_data.private_data_size, sizeof(data));
	event = dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(event.event_data.connect_event_data.private_data_size, 0);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED); /* checks the size */
	conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	dt_ok(conn_try(f->a.ep, &args));
	dt_ok(dat_cr_reject(dt_request(&f->listener)));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* --- notification --- */

struct waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	DAT_EVENT event;
};

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	DAT_COUNT more;

	waiter->ret = dat_evd_wait(waiter->evd, DT_WAIT_US, 1, &waiter->event, &more);
	return NULL;
}

static void waiter_start(struct waiter *waiter, DAT_EVD_HANDLE evd)
{
	*waiter = (struct waiter){.evd = evd};
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_event, waiter), 0);
}

static void waiter_expect(struct waiter *waiter, DAT_EVENT_NUMBER number)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	dt_ok(waiter->ret);
	assert_int_equal(waiter->event.event_number, number);
}

/* CONN-EVT-09: without polling: each event wakes its waiter */
static void connection_events__thread_waits__woken(void **state)
{
	struct conn_fixture *f = *state;
	struct waiter request, active, passive;

	waiter_start(&request, f->listener.evd);
	waiter_start(&active, f->a.conn);
	waiter_start(&passive, f->b.conn);
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	waiter_expect(&request, DAT_CONNECTION_REQUEST_EVENT);
	dt_ok(dat_cr_accept(request.event.event_data.cr_arrival_event_data.cr_handle, f->b.ep, 0,
			    NULL));
	waiter_expect(&active, DAT_CONNECTION_EVENT_ESTABLISHED);
	waiter_expect(&passive, DAT_CONNECTION_EVENT_ESTABLISHED);
	waiter_start(&active, f->a.conn);
	waiter_start(&passive, f->b.conn);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	waiter_expect(&active, DAT_CONNECTION_EVENT_DISCONNECTED);
	waiter_expect(&passive, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* --- the end --- */

static void end_by_free(struct conn_fixture *f)
{
	dt_ok(dat_ep_free(f->a.ep));
	f->a.ep = DAT_HANDLE_NULL;
}

static void end_by_disconnect(struct conn_fixture *f)
{
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->a.ep));
}

/* CONN-EVT-32 CONN-EVT-33 EP-FREE-19 EP-STATE-39 CONN-EVT-07 */
static void connection_end__peer_disconnects_or_frees__disconnected(void **state)
{
	void (*const ways[])(struct conn_fixture * f) = {end_by_disconnect, end_by_free};
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		conn_link(f, &f->a, &f->b);
		conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
		ways[i](f);
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		conn_expect_flushes(&f->b, 1, 1);
		conn_stays_quiet(&f->b);
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

static DAT_RETURN post_write(struct conn_fixture *f, const DAT_RMR_TRIPLET *to)
{
	DAT_LMR_TRIPLET seg = dt_seg(&f->buf, CONN_A_SENDS_AT, 8);

	return dat_ep_post_rdma_write(f->a.ep, 1, &seg, dt_cookie(1), to,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static void break_bounds(struct conn_fixture *f)
{
	DAT_RMR_TRIPLET to = dt_rseg(&f->buf, f->buf.len - 4, 8);

	dt_ok(post_write(f, &to));
}

/* CONN-EVT-41 CONN-EVT-06: on one EVD the failed completion precedes BROKEN */
static void connection_end__error_on_one_evd__completion_first(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd =
		dt_evd_create(&f->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);

	dt_ok(dat_ep_free(f->a.ep));
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, evd, evd, evd, NULL, &f->a.ep));
	for (unsigned int round = 0; round < 20; round++) {
		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
		dt_expect_conn(evd, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		break_bounds(f);
		dt_expect_dto(evd, f->a.ep, 1, DAT_DTO_ERR_REMOTE_ACCESS, DT_ANY_LEN);
		dt_expect_conn(evd, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_no_event(evd);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_BROKEN);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* --- overflow --- */

/* There is one overflow event, and it names that EVD. */
static void expect_overflow(struct conn_fixture *f, DAT_EVD_HANDLE evd)
{
	const DAT_EVENT event = dt_event(f->ia.async);
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event.event_data.asynch_error_event_data;
	DAT_HANDLE_TYPE type;

	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_ptr_equal(event.evd_handle, f->ia.async);
	assert_ptr_equal(data->dat_handle, evd);
	assert_int_equal(data->reason, DAT_EVD_OVERFLOW_ERROR);
	dt_ok(dat_get_handle_type(data->dat_handle, &type));
	assert_int_equal(type, DAT_HANDLE_TYPE_EVD);
	dt_no_event(f->ia.async);
}

/* CONN-EVT-08 CONN-EVT-42 CONN-EVT-44 CONN-EVT-45 CONN-EVT-46 CONN-EVT-47 CONN-EVT-43 EVD-STREAM-24
 * EVD-STREAM-25 */
static void connection_event__evd_full__overflow_and_state_changes(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep tight = f->b;
	struct dt_ia other; /* another instance of the adapter gets no event */

	dt_ia_open(&other);
	tight.conn = dt_evd_create(&f->ia, 1, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, tight.recv, tight.request, tight.conn, NULL,
			    &tight.ep));
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), tight.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_await_state(tight.ep, DAT_EP_STATE_CONNECTED);
	dt_no_event(f->ia.async);
	/* ESTABLISHED fills the queue: this event is lost */
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	conn_await_state(tight.ep, DAT_EP_STATE_DISCONNECTED);
	expect_overflow(f, tight.conn);
	dt_expect_conn(tight.conn, tight.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_stays_empty(tight.conn);
	dt_stays_empty(other.async);
	dt_ia_abort(&other);
	/* both endpoints are usable */
	dt_ok(dat_ep_reset(tight.ep));
	dt_ok(dat_ep_reset(f->a.ep));
	conn_link(f, &f->a, &tight);
	conn_transfer(f, &f->a, &tight);
	dt_no_event(f->ia.async);
}

/* CONN-EVT-47 CONN-EVT-42: completions overflow in the same way, behind as many as the EVD was
 * created for (DTO-115) */
static void completion_event__evd_full__overflow(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep tight = f->b;

	tight.recv = dt_evd_create(&f->ia, 3, DAT_EVD_DTO_FLAG);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, tight.recv, tight.request, tight.conn, NULL,
			    &tight.ep));
	for (uint64_t i = 1; i <= 5; i++)
		conn_post_recv(tight.ep, &f->buf, CONN_B_RECEIVES_AT, i);
	conn_link(f, &f->a, &tight);
	for (uint64_t i = 1; i <= 5; i++) {
		conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, i);
		dt_expect_dto(f->a.request, f->a.ep, i, DAT_DTO_SUCCESS, DT_ANY_LEN);
	}
	expect_overflow(f, tight.recv);
	for (uint64_t i = 1; i <= 3; i++)
		dt_expect_dto(tight.recv, tight.ep, i, DAT_DTO_SUCCESS, CONN_BUF_LEN);
	dt_no_event(tight.recv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_numbers__values__those_of_the_header),
		cmocka_unit_test(async_event_numbers__values__those_of_the_header),
		conn_test(connection_events__each_ep__on_its_connect_evd_with_its_handle),
		conn_test(connection_events__after_private_data__size_0),
		conn_test(connection_events__thread_waits__woken),
		conn_test(connection_end__peer_disconnects_or_frees__disconnected),
		conn_test(connection_end__error_on_one_evd__completion_first),
		conn_test(connection_event__evd_full__overflow_and_state_changes),
		conn_test(completion_event__evd_full__overflow),
	};

	return cmocka_run_group_tests_name("conn_event", tests, NULL, NULL);
}
