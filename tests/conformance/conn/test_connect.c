// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_connect: arguments, refusals and direct effects. How an attempt ends is in
 * test_conn_result.c.
 */
#include "conn_util.h"

/* --- what a successful call does --- */

/* EP-CONNECT-01 EP-CONNECT-02 EP-CONNECT-06 EP-CONNECT-27 EP-CONNECT-28 EP-CONNECT-16 */
static void ep_connect__plain__pending_then_one_event(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	cr = dt_request(&f->listener);
	assert_int_equal(conn_cr_query(cr).private_data_size, 0);
	/* nobody answered: with an infinite time-out it stays pending */
	conn_stays_quiet(&f->a);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(dt_ep_state(f->a.ep), DAT_EP_STATE_CONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_stays_quiet(&f->a);
	conn_transfer(f, &f->a, &f->b);
}

/* EP-CONNECT-03 EP-CONNECT-04 */
static void ep_connect__pending__local_port_known_to_both(void **state)
{
	struct conn_fixture *f = *state;
	DAT_PORT_QUAL port;
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	port = conn_ep_query(f->a.ep).local_port_qual;
	assert_true(port != 0);
	cr = dt_request(&f->listener);
	assert_true(conn_cr_query(cr).remote_port_qual == port);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(conn_ep_query(f->a.ep).local_port_qual == port);
	assert_true(conn_ep_query(f->b.ep).remote_port_qual == port);
}

/* EP-CONNECT-35 EP-CONNECT-36 COMPAT-07 */
static void ep_connect__address__port_ignored_and_not_kept(void **state)
{
	static const uint16_t ports[] = {0, 1, 7, 65535};
	struct conn_fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(ports); i++) {
		union conn_address address = conn_own_address(&f->ia);
		struct conn_args args = conn_args_of(f);

		address.in.sin_port = htons(ports[i]);
		args.address = conn_dat_address(&address);
		dt_ok(conn_try(f->a.ep, &args));
		memset(&address, 0xff, sizeof(address));
		dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn_check_same_address(
			(struct sockaddr *)conn_ep_query(f->a.ep).remote_ia_address_ptr,
			(struct sockaddr *)f->ia.attr.ia_address_ptr);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

/* EP-CONNECT-40 */
static void ep_connect__no_recv_and_request_evd__connects(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep bare = {.conn = dt_evd_create(&f->ia, 8, DAT_EVD_CONNECTION_FLAG)};

	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, bare.conn, NULL,
			    &bare.ep));
	conn_link(f, &bare, &f->b);
	assert_int_equal(dt_ep_state(bare.ep), DAT_EP_STATE_CONNECTED);
	dt_ep_free(&bare);
}

/* EP-CONNECT-47 CONN-GEN-06 */
static void ep_connect__many_listeners__qualifier_selects(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_listener listeners[4];
	struct dt_ep eps[COUNT_OF(listeners)];

	for (size_t i = 0; i < COUNT_OF(listeners); i++) {
		dt_listen(&f->ia, &listeners[i]);
		dt_ep_create(&f->ia, f->ia.pz, NULL, &eps[i]);
	}
	/* all set-ups are in progress at once and are answered in reverse order */
	for (size_t i = COUNT_OF(listeners); i-- > 0;)
		dt_connect(&f->ia, eps[i].ep, listeners[i].qual);
	for (size_t i = 0; i < COUNT_OF(listeners); i++) {
		const DAT_EVENT event = conn_request_event(listeners[i].evd);
		const DAT_CR_ARRIVAL_EVENT_DATA *data = &event.event_data.cr_arrival_event_data;

		assert_true(data->conn_qual == listeners[i].qual);
		assert_ptr_equal(data->sp_handle.psp_handle, listeners[i].psp);
		assert_true(conn_cr_query(data->cr_handle).remote_port_qual ==
			    conn_ep_query(eps[i].ep).local_port_qual);
		dt_no_event(listeners[i].evd);
		dt_ok(dat_cr_reject(data->cr_handle));
	}
	for (size_t i = 0; i < COUNT_OF(listeners); i++) {
		dt_expect_conn(eps[i].conn, eps[i].ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_unlisten(&listeners[i]);
	}
	dt_no_event(f->listener.evd);
}

/* --- refusals --- */

static const unsigned char some_data[65536] = {1, 2, 3};

struct refusal {
	const char *what;
	void (*change)(struct conn_fixture *f, struct conn_args *args);
	DAT_RETURN code;
};

static void negative_size(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	args->size = -1;
	args->data = some_data;
}

static void size_without_data(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	args->size = 4;
	args->data = NULL;
}

static void size_above_the_limit(struct conn_fixture *f, struct conn_args *args)
{
	args->size = f->ia.provider.max_private_data_size + 1;
	args->data = some_data;
}

static void no_time(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	args->timeout = 0;
}

static void no_address(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	args->address = NULL;
}

static void undefined_flags(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	args->flags = (DAT_CONNECT_FLAGS)0x02;
}

static void undefined_high_flags(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	args->flags = (DAT_CONNECT_FLAGS)0x40000000;
}

static union conn_address odd_address;

static void unknown_family(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	memset(&odd_address, 0, sizeof(odd_address));
	odd_address.any.sa_family = 250;
	args->address = conn_dat_address(&odd_address);
}

static void ip4_address(struct conn_args *args, uint32_t ip)
{
	memset(&odd_address, 0, sizeof(odd_address));
	odd_address.in.sin_family = AF_INET;
	odd_address.in.sin_addr.s_addr = htonl(ip);
	args->address = conn_dat_address(&odd_address);
}

static void broadcast_address(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	ip4_address(args, 0xffffffff);
}

static void multicast_address(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	ip4_address(args, 0xe0000001);
}

static void multicast_address6(struct conn_fixture *f, struct conn_args *args)
{
	(void)f;
	memset(&odd_address, 0, sizeof(odd_address));
	odd_address.in6.sin6_family = AF_INET6;
	odd_address.in6.sin6_addr.s6_addr[0] = 0xff;
	odd_address.in6.sin6_addr.s6_addr[1] = 0x02;
	odd_address.in6.sin6_addr.s6_addr[15] = 1;
	args->address = conn_dat_address(&odd_address);
}

/* The endpoint has not changed, and its Receive is used by the next connection. */
static void check_no_effect(struct conn_fixture *f, const struct conn_snapshot *before)
{
	conn_check_unchanged(&f->a, before);
	dt_no_event(f->listener.evd);
}

/* EP-CONNECT-07 EP-CONNECT-08 EP-CONNECT-09 EP-CONNECT-11 EP-CONNECT-30 EP-CONNECT-31
 * EP-CONNECT-33 EP-CONNECT-43 */
static void ep_connect__bad_argument__refused_without_effect(void **state)
{
	static const struct refusal refusals[] = {
		{"negative size", negative_size, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5)},
		{"size without data", size_without_data,
		 DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6)},
		{"size above the limit", size_above_the_limit,
		 DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5)},
		{"time-out 0", no_time, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4)},
		{"no address", no_address, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2)},
		{"undefined flags", undefined_flags,
		 DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8)},
		{"undefined high flags", undefined_high_flags,
		 DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8)},
		{"unknown family", unknown_family,
		 DT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)},
		{"broadcast", broadcast_address,
		 DT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)},
		{"multicast", multicast_address,
		 DT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)},
		{"multicast, IPv6", multicast_address6,
		 DT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)},
	};
	struct conn_fixture *f = *state;
	struct conn_snapshot before;

	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 77);
	before = conn_snapshot(f->a.ep);
	assert_false(before.recv_idle);
	for (size_t i = 0; i < COUNT_OF(refusals); i++) {
		struct conn_args args = conn_args_of(f);
		DAT_RETURN ret;

		refusals[i].change(f, &args);
		ret = conn_try(f->a.ep, &args);
		if (ret != refusals[i].code)
			print_error("%s\n", refusals[i].what);
		dt_returns(ret, refusals[i].code);
		check_no_effect(f, &before);
	}
	conn_stays_quiet(&f->a);
	dt_no_event(f->listener.evd);
	/* the Receive is still posted for the first message */
	conn_link(f, &f->a, &f->b);
	conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
	dt_expect_dto(f->a.recv, f->a.ep, 77, DAT_DTO_SUCCESS, CONN_BUF_LEN);
}

/* EP-CONNECT-26 EP-CONNECT-43 */
static void ep_connect__qos_not_supported__model_not_supported(void **state)
{
	static const DAT_QOS kinds[] = {DAT_QOS_HIGH_THROUGHPUT, DAT_QOS_LOW_LATENCY,
					DAT_QOS_ECONOMY, DAT_QOS_PREMIUM};
	struct conn_fixture *f = *state;
	const struct conn_snapshot before = conn_snapshot(f->a.ep);
	size_t refused = 0;

	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		struct conn_args args = conn_args_of(f);

		if (f->ia.provider.dat_qos_supported & kinds[i])
			continue;
		args.qos = kinds[i];
		dt_fails(conn_try(f->a.ep, &args), DAT_MODEL_NOT_SUPPORTED);
		check_no_effect(f, &before);
		refused++;
	}
	if (!refused)
		skip();
}

/* EP-CONNECT-29 EP-CONNECT-43 */
static void ep_connect__multipath__as_the_provider_reports(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_snapshot before = conn_snapshot(f->a.ep);
	struct conn_args args = conn_args_of(f);

	args.flags = DAT_CONNECT_MULTIPATH_FLAG;
	if (f->ia.provider.supports_multipath) {
		dt_ok(conn_try(f->a.ep, &args));
		return;
	}
	dt_fails(conn_try(f->a.ep, &args), DAT_MODEL_NOT_SUPPORTED);
	check_no_effect(f, &before);
}

static DAT_RETURN connect_with(DAT_HANDLE handle, void *arg)
{
	const struct conn_args args = conn_args_of(arg);

	return conn_try(handle, &args);
}

/* EP-CONNECT-41 */
static void ep_connect__bad_handle__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;

	conn_refuses_handles(connect_with, f, f->a.conn, conn_freed_ep(&f->ia),
			     DAT_INVALID_HANDLE_EP);
	conn_stays_quiet(&f->a);
	dt_no_event(f->listener.evd);
}

/* EP-CONNECT-38 */
static void ep_connect__no_zone__invalid_state(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_args args = conn_args_of(f);
	struct dt_ep ep;

	dt_ep_create(&f->ia, DAT_HANDLE_NULL, NULL, &ep);
	dt_fails_with(conn_try(ep.ep, &args), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	assert_int_equal(dt_ep_state(ep.ep), DAT_EP_STATE_UNCONNECTED);
	conn_stays_quiet(&ep);
	dt_no_event(f->listener.evd);
	dt_ep_free(&ep);
}

/* EP-CONNECT-39 */
static void ep_connect__no_connect_evd__invalid_handle(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_args args = conn_args_of(f);
	DAT_EP_HANDLE ep;

	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, f->a.recv, f->a.request, DAT_HANDLE_NULL, NULL,
			    &ep));
	dt_fails_with(conn_try(ep, &args), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	assert_int_equal(dt_ep_state(ep), DAT_EP_STATE_UNCONNECTED);
	dt_stays_empty(f->listener.evd);
	dt_ok(dat_ep_free(ep));
}

/* EP-CONNECT-42 EP-CONNECT-43 */
static void ep_connect__no_descriptors__insufficient_resources(void **state)
{
	struct conn_fixture *f = *state;
	const struct conn_args args = conn_args_of(f);
	struct conn_snapshot before;
	struct rlimit limit;
	DAT_RETURN ret;

	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 5);
	before = conn_snapshot(f->a.ep);
	limit = conn_descriptors_take();
	ret = conn_try(f->a.ep, &args);
	conn_descriptors_give(&limit);
	dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	conn_check_unchanged(&f->a, &before);
	conn_stays_quiet(&f->a);
	conn_link(f, &f->a, &f->b);
}

/* --- states --- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ep_connect__plain__pending_then_one_event),
		conn_test(ep_connect__pending__local_port_known_to_both),
		conn_test(ep_connect__address__port_ignored_and_not_kept),
		conn_test(ep_connect__no_recv_and_request_evd__connects),
		conn_test(ep_connect__many_listeners__qualifier_selects),
		conn_test(ep_connect__bad_argument__refused_without_effect),
		conn_test(ep_connect__qos_not_supported__model_not_supported),
		conn_test(ep_connect__multipath__as_the_provider_reports),
		conn_test(ep_connect__bad_handle__invalid_handle),
		conn_test(ep_connect__no_zone__invalid_state),
		conn_test(ep_connect__no_connect_evd__invalid_handle),
		conn_test(ep_connect__no_descriptors__insufficient_resources),
	};

	return cmocka_run_group_tests_name("ep_connect", tests, NULL, NULL);
}
