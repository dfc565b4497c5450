// SPDX-License-Identifier: BSD-2-Clause
/* Event streams: event numbers, order, connection events and their private data, overflow. */
#include <stdlib.h>

#include "evd_util.h"

/* EVD-STREAM-10 EVD-STREAM-07 */
static void event_numbers__values__those_of_the_header(void **state)
{
	static const struct {
		unsigned int number, value;
	} numbers[] = {
		{DAT_DTO_COMPLETION_EVENT, 0x00001},
		{DAT_RMR_BIND_COMPLETION_EVENT, 0x01001},
		{DAT_CONNECTION_REQUEST_EVENT, 0x02001},
		{DAT_CONNECTION_EVENT_ESTABLISHED, 0x04001},
		{DAT_CONNECTION_EVENT_PEER_REJECTED, 0x04002},
		{DAT_CONNECTION_EVENT_NON_PEER_REJECTED, 0x04003},
		{DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, 0x04004},
		{DAT_CONNECTION_EVENT_DISCONNECTED, 0x04005},
		{DAT_CONNECTION_EVENT_BROKEN, 0x04006},
		{DAT_CONNECTION_EVENT_TIMED_OUT, 0x04007},
		{DAT_CONNECTION_EVENT_UNREACHABLE, 0x04008},
		{DAT_ASYNC_ERROR_EVD_OVERFLOW, 0x08001},
		{DAT_ASYNC_ERROR_IA_CATASTROPHIC, 0x08002},
		{DAT_ASYNC_ERROR_EP_BROKEN, 0x08003},
		{DAT_ASYNC_ERROR_TIMED_OUT, 0x08004},
		{DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, 0x08005},
		{DAT_SOFTWARE_EVENT, 0x10001},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(numbers[i].number, numbers[i].value);
}

/* --- provider events on demand: an endpoint whose Receives are flushed --- */

struct overflow {
	DAT_EVD_HANDLE recv, conn;
	DAT_EP_HANDLE ep;
};

static void overflow_open(struct dt_ia *ia, struct overflow *o, DAT_COUNT qlen)
{
	o->recv = dt_evd_create(ia, qlen, DAT_EVD_DTO_FLAG);
	o->conn = dt_evd_create(ia, 8, DAT_EVD_CONNECTION_FLAG);
	o->ep = evd_flusher(ia, o->recv, o->conn, NULL);
}

static void flush_range(DAT_EP_HANDLE ep, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		evd_flush(ep, first + i);
}

static void take_flushed(struct overflow *o, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		dt_expect_dto(o->recv, o->ep, first + i, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
}

static void expect_overflow(DAT_EVD_HANDLE async, DAT_EVD_HANDLE of)
{
	DAT_EVENT event = dt_event(async);

	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_ptr_equal(event.evd_handle, async);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, of);
	assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	assert_int_equal(DAT_EVD_OVERFLOW_ERROR, 0);
}

/* EVD-STREAM-24 EVD-STREAM-25 EVD-STREAM-26 EVD-STREAM-30 */
static void evd__provider_event_on_full_queue__overflow_event(void **state)
{
	struct evd_fixture *f = *state;
	struct overflow o;

	overflow_open(&f->ia, &o, 3);
	flush_range(o.ep, 1, 3);
	dt_no_event(f->ia.async);
	evd_flush(o.ep, 4);
	expect_overflow(f->ia.async, o.recv);
	dt_no_event(f->ia.async);
	take_flushed(&o, 1, 3);
	dt_no_event(o.recv);
	/* it continues as before */
	evd_flush(o.ep, 5);
	take_flushed(&o, 5, 1);
}

/* EVD-STREAM-31 */
static void evd__many_losses_in_a_row__one_overflow_event(void **state)
{
	struct evd_fixture *f = *state;
	struct overflow o;

	overflow_open(&f->ia, &o, 2);
	flush_range(o.ep, 1, 2 + 100);
	expect_overflow(f->ia.async, o.recv);
	dt_stays_empty(f->ia.async);
	/* one taken, filled again, lost again: a second one */
	take_flushed(&o, 1, 1);
	flush_range(o.ep, 200, 1);
	dt_no_event(f->ia.async);
	flush_range(o.ep, 201, 100);
	expect_overflow(f->ia.async, o.recv);
	dt_stays_empty(f->ia.async);
	take_flushed(&o, 2, 1);
	take_flushed(&o, 200, 1);
	dt_no_event(o.recv);
}

/* EVD-STREAM-31: each EVD has its own run of losses */
static void evd__losses_on_two_evds__one_event_each(void **state)
{
	struct evd_fixture *f = *state;
	struct overflow a, b;

	overflow_open(&f->ia, &a, 1);
	overflow_open(&f->ia, &b, 1);
	flush_range(a.ep, 1, 3);
	flush_range(b.ep, 1, 3);
	flush_range(a.ep, 1, 3);
	expect_overflow(f->ia.async, a.recv);
	expect_overflow(f->ia.async, b.recv);
	dt_no_event(f->ia.async);
}

/* EVD-STREAM-27: The loss is not reported, and the queued event stays. */
static void evd__asynchronous_evd_full__dropped_silently(void **state)
{
	struct evd_fixture *f = *state;
	struct overflow a, b;

	dt_ok(dat_evd_resize(f->ia.async, 1));
	overflow_open(&f->ia, &a, 1);
	overflow_open(&f->ia, &b, 1);
	flush_range(a.ep, 1, 3);
	flush_range(b.ep, 1, 3);
	expect_overflow(f->ia.async, a.recv);
	dt_stays_empty(f->ia.async);
	take_flushed(&b, 1, 1);
	flush_range(b.ep, 5, 2);
	expect_overflow(f->ia.async, b.recv);
}

/* EVD-STREAM-24: A connection event that finds no room. The state still changes. */
static void evd__connection_event_on_full_queue__overflow_event(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE conn =
		dt_evd_create(&f->ia, 1, DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG);
	struct dt_listener listener;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	dt_ep_attr(&f->ia, &attr);
	attr.max_recv_dtos = 0;
	attr.max_request_dtos = 0;
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, conn, &attr,
			    &ep));
	evd_post(conn, 1);
	dt_listen(&f->ia, &listener);
	dt_connect(&f->ia, ep, listener.qual);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	expect_overflow(f->ia.async, conn);
	assert_int_equal(dt_ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	evd_take(conn, 1);
	dt_no_event(conn);
}

/* EVD-STREAM-24: A connection request is refused. */
static void evd__connection_request_on_full_queue__no_overflow(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct dt_ep ep;

	dt_ok(dat_psp_create_any(f->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	evd_post(evd, 1);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &ep);
	dt_connect(&f->ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_stays_empty(f->ia.async);
	evd_take(evd, 1);
	dt_no_event(evd);
}

/* --- order --- */

/* EVD-STREAM-01 EVD-STREAM-02 EVD-STREAM-08 EVD-STREAM-09: three streams on one EVD, each in order
 */
static void evd__streams_share_an_evd__each_in_its_order(void **state)
{
	struct evd_fixture *f = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 64, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep[2];
	uint64_t next[3] = {0, 0, 0};

	for (int i = 0; i < 2; i++)
		ep[i] = evd_flusher(&f->ia, evd, conn, NULL);
	for (uint64_t i = 0; i < 20; i++) {
		evd_flush(ep[0], i);
		evd_post(evd, i);
		evd_flush(ep[1], i);
	}
	for (int i = 0; i < 60; i++) {
		DAT_EVENT event;

		memset(&event, i, sizeof(event));
		dt_ok(dat_evd_dequeue(evd, &event));
		assert_ptr_equal(event.evd_handle, evd);
		if (event.event_number == DAT_SOFTWARE_EVENT) {
			evd_check_soft(&event, evd, next[2]++);
			continue;
		}
		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		int which = event.event_data.dto_completion_event_data.ep_handle == ep[1];

		assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, ep[which]);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64,
				 next[which]++);
	}
	dt_no_event(evd);
}

/* --- connection requests and private data --- */

static DAT_CR_HANDLE request_from(struct dt_ia *ia, struct dt_listener *listener, struct dt_ep *ep,
				  const void *data, DAT_COUNT size)
{
	dt_ok(dat_ep_connect(ep->ep, ia->attr.ia_address_ptr, listener->qual, DAT_TIMEOUT_INFINITE,
			     size, (DAT_PVOID)(uintptr_t)data, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG));
	return dt_request(listener);
}

/* EVD-STREAM-11 EVD-STREAM-12 */
static void connection_request__answered__object_gone(void **state)
{
	struct evd_fixture *f = *state;
	DAT_HANDLE_TYPE type;
	struct dt_listener listener;
	DAT_CR_PARAM param;
	struct dt_ep active[3], passive;

	dt_listen(&f->ia, &listener);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &passive);
	for (int i = 0; i < 3; i++) {
		DAT_CR_HANDLE cr;

		dt_ep_create(&f->ia, f->ia.pz, NULL, &active[i]);
		cr = request_from(&f->ia, &listener, &active[i], "x", 1);
		dt_ok(dat_get_handle_type(cr, &type));
		assert_int_equal(type, DAT_HANDLE_TYPE_CR);
		dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		if (i == 0)
			dt_ok(dat_cr_accept(cr, passive.ep, 0, NULL));
		else if (i == 1)
			dt_ok(dat_cr_reject(cr));
		else
			dt_ok(dat_cr_handoff(cr, listener.qual));
		dt_fails_with(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		dt_fails_with(dat_cr_reject(cr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	}
	/* the request that was handed off arrived again with its data */
	dt_ok(dat_cr_query(dt_request(&listener), DAT_CR_FIELD_ALL, &param));
	assert_int_equal(param.private_data_size, 1);
	assert_memory_equal(param.private_data, "x", 1);
}

static void check_data(const void *data, DAT_COUNT size, DAT_COUNT expected, uint32_t seed)
{
	assert_int_equal(size, expected);
	if (size > 0)
		dt_check_pattern(data, (size_t)size, seed);
}

/* Connects with `size` bytes each way; checks them at both ends. */
static void exchange(struct dt_ia *ia, struct dt_listener *listener, DAT_COUNT size)
{
	unsigned char *ask = calloc(2, (size_t)size + 1), *answer = ask + size + 1;
	struct dt_ep active, passive;
	DAT_CONNECTION_EVENT_DATA data;
	DAT_CR_HANDLE cr;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	assert_non_null(ask);
	dt_fill(ask, (size_t)size, 1);
	dt_fill(answer, (size_t)size, 2);
	dt_ep_create(ia, ia->pz, NULL, &active);
	dt_ep_create(ia, ia->pz, NULL, &passive);
	cr = request_from(ia, listener, &active, ask, size);
	memset(ask, 0, (size_t)size);
	dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data, param.private_data_size, size, 1);
	dt_ok(dat_cr_accept(cr, passive.ep, size, answer));
	memset(answer, 0, (size_t)size);
	event = dt_expect_conn(active.conn, active.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	data = event.event_data.connect_event_data;
	check_data(data.private_data, data.private_data_size, size, 2);
	event = dt_expect_conn(passive.conn, passive.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(event.event_data.connect_event_data.private_data_size, 0);
	/* it outlives the connection */
	dt_ok(dat_ep_disconnect(active.ep, DAT_CLOSE_GRACEFUL_FLAG));
	check_data(data.private_data, data.private_data_size, size, 2);
	dt_expect_conn(active.conn, active.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(passive.conn, passive.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	check_data(data.private_data, data.private_data_size, size, 2);
	dt_ep_free(&active);
	dt_ep_free(&passive);
	free(ask);
}

/* EVD-STREAM-13 EVD-STREAM-14 EVD-STREAM-15 EVD-STREAM-16 EVD-STREAM-18 */
static void private_data__every_size__complete_and_lasting(void **state)
{
	struct evd_fixture *f = *state;
	struct dt_listener listener;

	dt_listen(&f->ia, &listener);
	exchange(&f->ia, &listener, 0);
	exchange(&f->ia, &listener, 1);
	exchange(&f->ia, &listener, 64);
	exchange(&f->ia, &listener, f->ia.provider.max_private_data_size);
}

/* EVD-STREAM-18: The request of a duplicated connection carries its own data. */
static void private_data__dup_connect__complete(void **state)
{
	struct evd_fixture *f = *state;
	DAT_COUNT size = f->ia.provider.max_private_data_size;
	unsigned char *ask = malloc((size_t)size);
	struct dt_ep active[2], passive;
	struct dt_listener listener;
	DAT_CR_PARAM param;

	assert_non_null(ask);
	dt_fill(ask, (size_t)size, 3);
	dt_listen(&f->ia, &listener);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &active[0]);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &active[1]);
	dt_ep_create(&f->ia, f->ia.pz, NULL, &passive);
	dt_ok(dat_cr_accept(request_from(&f->ia, &listener, &active[0], NULL, 0), passive.ep, 0,
			    NULL));
	dt_expect_conn(active[0].conn, active[0].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_dup_connect(active[1].ep, active[0].ep, DAT_TIMEOUT_INFINITE, size, ask,
				 DAT_QOS_BEST_EFFORT));
	dt_ok(dat_cr_query(dt_request(&listener), DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data, param.private_data_size, size, 3);
	free(ask);
}

/* EVD-STREAM-19 */
static void private_data__above_the_limit__invalid_parameter(void **state)
{
	struct evd_fixture *f = *state;
	DAT_COUNT size = f->ia.provider.max_private_data_size + 1;
	unsigned char *data = calloc(1, (size_t)size);
	struct dt_listener listener;
	struct dt_ep ep[3];
	DAT_CR_HANDLE cr;

	assert_non_null(data);
	dt_listen(&f->ia, &listener);
	for (int i = 0; i < 3; i++)
		dt_ep_create(&f->ia, f->ia.pz, NULL, &ep[i]);
	dt_fails_with(dat_ep_connect(ep[0].ep, f->ia.attr.ia_address_ptr, listener.qual,
				     DAT_TIMEOUT_INFINITE, size, data, DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	cr = request_from(&f->ia, &listener, &ep[0], data, size - 1);
	dt_fails_with(dat_cr_accept(cr, ep[1].ep, size, data), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_ok(dat_cr_accept(cr, ep[1].ep, size - 1, data));
	dt_expect_conn(ep[0].conn, ep[0].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_fails_with(dat_ep_dup_connect(ep[2].ep, ep[0].ep, DAT_TIMEOUT_INFINITE, size, data,
					 DAT_QOS_BEST_EFFORT),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	assert_int_equal(dt_ep_state(ep[2].ep), DAT_EP_STATE_UNCONNECTED);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_numbers__values__those_of_the_header),
		evd_test(evd__provider_event_on_full_queue__overflow_event),
		evd_test(evd__many_losses_in_a_row__one_overflow_event),
		evd_test(evd__losses_on_two_evds__one_event_each),
		evd_test(evd__asynchronous_evd_full__dropped_silently),
		evd_test(evd__connection_event_on_full_queue__overflow_event),
		evd_test(evd__connection_request_on_full_queue__no_overflow),
		evd_test(evd__streams_share_an_evd__each_in_its_order),
		evd_test(connection_request__answered__object_gone),
		evd_test(private_data__every_size__complete_and_lasting),
		evd_test(private_data__dup_connect__complete),
		evd_test(private_data__above_the_limit__invalid_parameter),
	};

	return cmocka_run_group_tests_name("evd_stream", tests, NULL, NULL);
}
