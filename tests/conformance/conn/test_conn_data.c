// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data of a connection set-up: private data in both directions, addresses and ports, and all 64
 * bits of the connection qualifier.
 */
#include <sys/socket.h>

#include "conn_util.h"

/* --- private data --- */

#define LARGEST 65536

static unsigned char sent[LARGEST];

/* Fills `sent` with a pattern and returns the size of test case i, or -1 after the last one. */
static DAT_COUNT size_number(struct conn_fixture *f, size_t i)
{
	const DAT_COUNT sizes[] = {
		0, 1, 4, 30, 32, 36, 63, 64, f->ia.provider.max_private_data_size};

	if (i >= COUNT_OF(sizes))
		return -1;
	dt_fill(sent, sizeof(sent), (uint32_t)i + 1);
	return sizes[i];
}

static void disconnect_and_reset(struct dt_ep *a, struct dt_ep *b)
{
	dt_ok(dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(a->conn, a->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(b->conn, b->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(a->ep));
	dt_ok(dat_ep_reset(b->ep));
}

/* CONN-GEN-01 */
static void ia_query__max_private_data__at_least_64(void **state)
{
	struct conn_fixture *f = *state;

	assert_true(f->ia.provider.max_private_data_size >= 64);
	assert_true(f->ia.provider.max_private_data_size <= LARGEST);
}

/* CONN-GEN-02 CONN-GEN-03 CONN-GEN-04 EP-CONNECT-05 EP-CONNECT-10 CR-QUERY-04 CR-QUERY-06
 * COMPAT-21 */
static void ep_connect__private_data__arrive_exactly(void **state)
{
	struct conn_fixture *f = *state;
	DAT_COUNT size;

	for (size_t i = 0; (size = size_number(f, i)) >= 0; i++) {
		struct conn_args args = conn_args_of(f);
		DAT_CR_PARAM param;
		DAT_CR_HANDLE cr;

		args.size = size;
		args.data = size ? sent : NULL;
		dt_ok(conn_try(f->a.ep, &args));
		memset(sent, 0xee, sizeof(sent));
		cr = dt_request(&f->listener);
		param = conn_cr_query(cr);
		assert_int_equal(param.private_data_size, size);
		if (size)
			dt_check_pattern(param.private_data, (size_t)size, (uint32_t)i + 1);
		dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		disconnect_and_reset(&f->a, &f->b);
	}
}

/*
 * The active ESTABLISHED event carries the acceptor's data, and they stay valid as long as
 * specified.
 */
static void check_accepted_data(struct conn_fixture *f, const DAT_EVENT *event, DAT_COUNT size,
				uint32_t seed)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;

	assert_int_equal(data->private_data_size, size);
	if (!size)
		return;
	dt_check_pattern(data->private_data, (size_t)size, seed);
	/* they stay valid while messages pass and until the reset */
	conn_transfer(f, &f->a, &f->b);
	dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_check_pattern(data->private_data, (size_t)size, seed);
}

/* CONN-GEN-02 CONN-GEN-03 CONN-GEN-04 CR-ACCEPT-12 CR-ACCEPT-13 CONN-EVT-20 CONN-EVT-21 CONN-EVT-22
 * EP-CONNECT-18 COMPAT-21 */
static void cr_accept__private_data__arrive_exactly(void **state)
{
	struct conn_fixture *f = *state;
	DAT_COUNT size;

	for (size_t i = 0; (size = size_number(f, i)) >= 0; i++) {
		struct dt_ep *const sides[] = {&f->a, &f->b};
		DAT_EVENT event;

		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, size, size ? sent : NULL));
		memset(sent, 0xee, sizeof(sent));
		event = dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_int_equal(event.event_data.connect_event_data.private_data_size, 0);
		event = dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		check_accepted_data(f, &event, size, (uint32_t)i + 1);
		for (size_t side = 0; side < COUNT_OF(sides); side++) {
			dt_ok(dat_ep_disconnect(sides[side]->ep, DAT_CLOSE_ABRUPT_FLAG));
			conn_await_state(sides[side]->ep, DAT_EP_STATE_DISCONNECTED);
			dt_drain(sides[side]->conn);
			dt_ok(dat_ep_reset(sides[side]->ep));
		}
	}
}

/* --- handles, addresses --- */

static void check_type(DAT_HANDLE handle, DAT_HANDLE_TYPE expected)
{
	DAT_HANDLE_TYPE type = (DAT_HANDLE_TYPE)-1;

	dt_ok(dat_get_handle_type(handle, &type));
	assert_int_equal(type, expected);
}

/* CONN-GEN-07 CONN-GEN-05 */
static void get_handle_type__psp_rsp_cr__own_types(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = dt_unused_qual();
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	check_type(f->listener.psp, DAT_HANDLE_TYPE_PSP);
	dt_ok(dat_rsp_create(f->ia.ia, qual, f->b.ep, f->listener.evd, &rsp));
	check_type(rsp, DAT_HANDLE_TYPE_RSP);
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	check_type(cr, DAT_HANDLE_TYPE_CR);
	dt_ok(dat_cr_reject(cr));
	dt_ok(dat_rsp_free(rsp));
}

/* COMPAT-22 CR-QUERY-02 CR-QUERY-03 */
static void ia_query__address__connectable_and_seen_by_both(void **state)
{
	struct conn_fixture *f = *state;
	const struct sockaddr *own = (const struct sockaddr *)f->ia.attr.ia_address_ptr;
	DAT_EP_PARAM a, b;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	assert_true(own->sa_family == AF_INET || own->sa_family == AF_INET6);
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	param = conn_cr_query(cr);
	conn_check_same_address((struct sockaddr *)param.remote_ia_address_ptr, own);
	assert_true(param.remote_port_qual == conn_ep_query(f->a.ep).local_port_qual);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	a = conn_ep_query(f->a.ep);
	b = conn_ep_query(f->b.ep);
	conn_check_same_address((struct sockaddr *)a.local_ia_address_ptr, own);
	conn_check_same_address((struct sockaddr *)a.remote_ia_address_ptr, own);
	conn_check_same_address((struct sockaddr *)b.local_ia_address_ptr, own);
	conn_check_same_address((struct sockaddr *)b.remote_ia_address_ptr, own);
	assert_true(a.remote_port_qual == f->listener.qual);
	assert_true(b.remote_port_qual == a.local_port_qual);
	assert_true(b.local_port_qual != 0);
}

/* --- qualifiers --- */

/* Another program on this host may use a fixed value for a while. */
static void listen_on(struct conn_fixture *f, DAT_CONN_QUAL qual, DAT_PSP_HANDLE *psp_out)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_RETURN ret;

	do {
		ret = dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
				     psp_out);
		if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
			usleep(1000);
	} while (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE && dt_now_us() < end);
	dt_ok(ret);
}

/* A connect to the qualifier arrives at that PSP and at no other. */
static void check_reaches(struct conn_fixture *f, DAT_CONN_QUAL qual, DAT_PSP_HANDLE psp)
{
	DAT_EVENT event;

	dt_connect(&f->ia, f->a.ep, qual);
	event = conn_request_event(f->listener.evd);
	assert_true(event.event_data.cr_arrival_event_data.conn_qual == qual);
	assert_ptr_equal(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
	dt_no_event(f->listener.evd);
	dt_ok(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->a.ep));
}

/* Bits that no other process that runs these tests uses. */
static DAT_CONN_QUAL own_bits(void)
{
	return (DAT_CONN_QUAL)getpid() & 0x3fffff;
}

/* CONN-GEN-08 COMPAT-05 EP-CONNECT-20 */
static void psp_create__wide_qualifiers__never_truncated(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL own = own_bits();
	/* equal in their low 16, 32 or 35 bits, in their high bits, or in 63 of 64 */
	const DAT_CONN_QUAL quals[] = {
		own << 16 | 0x1234,
		own << 35,
		own << 36,
		own << 40 | own << 16 | 0x1234,
		~(own << 35),
		~(own << 35) ^ 1,
		(own << 35) ^ UINT64_C(1) << 63,
		(own << 35) | 0x1234,
	};
	const DAT_CONN_QUAL nobody[] = {
		(own << 35) ^ UINT64_C(1) << 62,
		(own << 35) | 1,
		(own << 16 | 0x1234) ^ UINT64_C(1) << 63,
		(own << 16 | 0x1234) | UINT64_C(1) << 48,
	};
	DAT_PSP_HANDLE psps[COUNT_OF(quals)];

	for (size_t i = 0; i < COUNT_OF(quals); i++)
		dt_ok(dat_psp_create(f->ia.ia, quals[i], f->listener.evd, DAT_PSP_CONSUMER_FLAG,
				     &psps[i]));
	for (size_t i = 0; i < COUNT_OF(quals); i++)
		check_reaches(f, quals[i], psps[i]);
	for (size_t i = 0; i < COUNT_OF(nobody); i++) {
		dt_connect(&f->ia, f->a.ep, nobody[i]);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	dt_no_event(f->listener.evd);
}

/* CONN-GEN-08 CONN-GEN-10 */
static void psp_create__small_and_limit_qualifiers__work(void **state)
{
	static const DAT_CONN_QUAL quals[] = {1, 7, 22, 1023, 1024, 65535, 65536, UINT64_MAX};
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(quals); i++) {
		DAT_PSP_HANDLE psp;

		listen_on(f, quals[i], &psp);
		check_reaches(f, quals[i], psp);
		dt_ok(dat_psp_free(psp));
	}
}

/* As user nobody, without capabilities. */
static void listen_unprivileged(struct dt_peer *peer, void *arg)
{
	static const DAT_CONN_QUAL quals[] = {1, 7, 22};
	struct conn_fixture *f;
	void *state;

	(void)arg;
	(void)peer;
	if (geteuid() == 0) {
		assert_int_equal(setgid(65534), 0);
		assert_int_equal(setuid(65534), 0);
	}
	conn_setup(&state);
	f = state;
	for (size_t i = 0; i < COUNT_OF(quals); i++) {
		DAT_PSP_HANDLE psp;

		listen_on(f, quals[i], &psp);
		check_reaches(f, quals[i], psp);
		dt_ok(dat_psp_free(psp));
	}
	conn_teardown(&state);
}

/* CONN-GEN-10 COMPAT-05 */
static void psp_create__privileged_number_as_nobody__works(void **state)
{
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, listen_unprivileged, NULL);
	dt_peer_join(&peer);
}

/* CONN-GEN-10 */
static void psp_create__port_of_a_tcp_server__works(void **state)
{
	struct conn_fixture *f = *state;
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t len = sizeof(address);
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	DAT_PSP_HANDLE psp;

	assert_int_not_equal(server, -1);
	assert_int_equal(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&address, &len), 0);
	dt_ok(dat_psp_create(f->ia.ia, ntohs(address.sin_port), f->listener.evd,
			     DAT_PSP_CONSUMER_FLAG, &psp));
	check_reaches(f, ntohs(address.sin_port), psp);
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ia_query__max_private_data__at_least_64),
		conn_test(ep_connect__private_data__arrive_exactly),
		conn_test(cr_accept__private_data__arrive_exactly),
		conn_test(get_handle_type__psp_rsp_cr__own_types),
		conn_test(ia_query__address__connectable_and_seen_by_both),
		conn_test(psp_create__wide_qualifiers__never_truncated),
		conn_test(psp_create__small_and_limit_qualifiers__work),
		cmocka_unit_test(psp_create__privileged_number_as_nobody__works),
		conn_test(psp_create__port_of_a_tcp_server__works),
	};

	return cmocka_run_group_tests_name("conn_data", tests, NULL, NULL);
}
