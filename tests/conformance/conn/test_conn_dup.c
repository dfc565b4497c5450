// SPDX-License-Identifier: BSD-2-Clause
/* dat_ep_dup_connect: a second connection to where an existing one leads. */
#include "conn_util.h"

/* The fixture's a and b are connected; c is the endpoint that duplicates the connection. */
struct dup_fixture {
	struct conn_fixture *f;
	struct dt_ep c, d;
};

static void dup_open(struct dup_fixture *dup, void **state)
{
	dup->f = *state;
	conn_link(dup->f, &dup->f->a, &dup->f->b);
	dt_ep_create(&dup->f->ia, dup->f->ia.pz, NULL, &dup->c);
	dt_ep_create(&dup->f->ia, dup->f->ia.pz, NULL, &dup->d);
}

static DAT_RETURN dup_try(DAT_EP_HANDLE ep, DAT_EP_HANDLE like, DAT_TIMEOUT timeout, DAT_COUNT size,
			  const void *data, DAT_QOS qos)
{
	return dat_ep_dup_connect(ep, like, timeout, size, (DAT_PVOID)(uintptr_t)data, qos);
}

static DAT_RETURN dup_plain(DAT_EP_HANDLE ep, DAT_EP_HANDLE like)
{
	return dup_try(ep, like, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT);
}

static void dup_accept(struct dup_fixture *dup)
{
	dt_ok(dat_cr_accept(dt_request(&dup->f->listener), dup->d.ep, 0, NULL));
	dt_expect_conn(dup->c.conn, dup->c.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(dup->d.conn, dup->d.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* EP-DUPCONN-01 EP-DUPCONN-02 EP-DUPCONN-03 EP-DUPCONN-13 EP-DUPCONN-16 EP-DUPCONN-20 */
static void ep_dup_connect__connected__reaches_the_same_listener(void **state)
{
	struct dup_fixture dup;
	DAT_EP_PARAM param;

	dup_open(&dup, state);
	dt_ok(dup_plain(dup.c.ep, dup.f->a.ep));
	assert_int_equal(dt_ep_state(dup.c.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	conn_stays_quiet(&dup.c);
	conn_transfer(dup.f, &dup.f->a, &dup.f->b);
	dup_accept(&dup);
	assert_int_equal(dt_ep_state(dup.c.ep), DAT_EP_STATE_CONNECTED);
	param = conn_ep_query(dup.c.ep);
	assert_true(param.remote_port_qual == dup.f->listener.qual);
	conn_check_same_address((struct sockaddr *)param.remote_ia_address_ptr,
				(struct sockaddr *)dup.f->ia.attr.ia_address_ptr);
	conn_transfer(dup.f, &dup.c, &dup.d);
	conn_transfer(dup.f, &dup.f->a, &dup.f->b);
	conn_stays_quiet(&dup.f->a);
	conn_stays_quiet(&dup.f->b);
}

/* EP-DUPCONN-04 EP-DUPCONN-05 */
static void ep_dup_connect__private_data_and_port__in_the_request(void **state)
{
	struct dup_fixture dup;
	unsigned char data[64];
	DAT_PORT_QUAL port;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	dup_open(&dup, state);
	dt_fill(data, sizeof(data), 9);
	dt_ok(dup_try(dup.c.ep, dup.f->a.ep, DAT_TIMEOUT_INFINITE, sizeof(data), data,
		      DAT_QOS_BEST_EFFORT));
	memset(data, 0, sizeof(data));
	port = conn_ep_query(dup.c.ep).local_port_qual;
	assert_true(port != 0);
	cr = dt_request(&dup.f->listener);
	param = conn_cr_query(cr);
	assert_int_equal(param.private_data_size, sizeof(data));
	dt_check_pattern(param.private_data, sizeof(data), 9);
	assert_true(param.remote_port_qual == port);
	assert_true(port != conn_ep_query(dup.f->a.ep).local_port_qual);
	dt_ok(dat_cr_reject(cr));
	conn_expect_failure(&dup.c, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* EP-DUPCONN-03 EP-DUPCONN-20 */
static void ep_dup_connect__fails__event_and_old_connection_unaffected(void **state)
{
	struct dup_fixture dup;

	dup_open(&dup, state);
	dt_ok(dup_plain(dup.c.ep, dup.f->a.ep));
	dt_ok(dat_cr_reject(dt_request(&dup.f->listener)));
	conn_expect_failure(&dup.c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(dup.c.ep));
	dt_ok(dup_try(dup.c.ep, dup.f->a.ep, CONN_SHORT_US, 0, NULL, DAT_QOS_BEST_EFFORT));
	conn_expect_failure(&dup.c, DAT_CONNECTION_EVENT_TIMED_OUT);
	dt_ok(dat_cr_reject(dt_request(&dup.f->listener)));
	dt_ok(dat_ep_reset(dup.c.ep));
	dt_unlisten(&dup.f->listener);
	dt_ok(dup_plain(dup.c.ep, dup.f->a.ep));
	conn_expect_failure(&dup.c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	conn_transfer(dup.f, &dup.f->a, &dup.f->b);
}

/* EP-DUPCONN-21 */
static void ep_dup_connect__old_one_ends__attempt_continues(void **state)
{
	struct conn_fixture *f = *state;

	for (int is_free = 0; is_free < 2; is_free++) {
		struct dup_fixture dup;

		dup_open(&dup, state);
		dt_ok(dup_plain(dup.c.ep, f->a.ep));
		if (is_free) {
			dt_ep_free(&f->a);
			dt_ep_create(&f->ia, f->ia.pz, NULL, &f->a);
		} else {
			dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
			dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
			dt_ok(dat_ep_reset(f->a.ep));
		}
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->b.ep));
		dup_accept(&dup);
		conn_transfer(f, &dup.c, &dup.d);
		dt_ep_free(&dup.c);
		dt_ep_free(&dup.d);
	}
}

/* EP-DUPCONN-22 */
static void ep_dup_connect__like_a_passive_one__non_peer_rejected(void **state)
{
	struct dup_fixture dup;

	dup_open(&dup, state);
	dt_ok(dup_plain(dup.c.ep, dup.f->b.ep));
	conn_expect_failure(&dup.c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_no_event(dup.f->listener.evd);
	conn_transfer(dup.f, &dup.f->a, &dup.f->b);
}

/* --- refusals --- */

static void check_refused(struct dup_fixture *dup, DAT_RETURN ret, DAT_RETURN code)
{
	dt_returns(ret, code);
	assert_int_equal(dt_ep_state(dup->c.ep), DAT_EP_STATE_UNCONNECTED);
	conn_no_events(&dup->c);
	dt_no_event(dup->f->listener.evd);
}

/* EP-DUPCONN-12 EP-DUPCONN-14 EP-DUPCONN-15 EP-DUPCONN-17 */
static void ep_dup_connect__bad_argument__refused_without_effect(void **state)
{
	static const unsigned char data[65536];
	const DAT_TIMEOUT forever = DAT_TIMEOUT_INFINITE;
	struct dup_fixture dup;
	DAT_EP_HANDLE like;
	DAT_COUNT most;

	dup_open(&dup, state);
	like = dup.f->a.ep;
	most = dup.f->ia.provider.max_private_data_size;
	check_refused(&dup, dup_try(dup.c.ep, like, 0, 0, NULL, DAT_QOS_BEST_EFFORT),
		      DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	check_refused(&dup, dup_try(dup.c.ep, like, forever, -1, data, DAT_QOS_BEST_EFFORT),
		      DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
	check_refused(&dup, dup_try(dup.c.ep, like, forever, most + 1, data, DAT_QOS_BEST_EFFORT),
		      DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
	check_refused(&dup, dup_try(dup.c.ep, like, forever, 4, NULL, DAT_QOS_BEST_EFFORT),
		      DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	if (!(dup.f->ia.provider.dat_qos_supported & DAT_QOS_PREMIUM))
		check_refused(&dup, dup_try(dup.c.ep, like, forever, 0, NULL, DAT_QOS_PREMIUM),
			      DT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE));
	conn_stays_quiet(&dup.c);
	dt_no_event(dup.f->listener.evd);
	/* the largest size is accepted */
	dt_ok(dup_try(dup.c.ep, like, forever, most, data, DAT_QOS_BEST_EFFORT));
	assert_int_equal(conn_cr_query(dt_request(&dup.f->listener)).private_data_size, most);
}

static DAT_RETURN dup_first(DAT_HANDLE handle, void *arg)
{
	struct dup_fixture *dup = arg;

	return dup_plain(handle, dup->f->a.ep);
}

static DAT_RETURN dup_second(DAT_HANDLE handle, void *arg)
{
	struct dup_fixture *dup = arg;

	return dup_plain(dup->c.ep, handle);
}

/* EP-DUPCONN-10 EP-DUPCONN-11 */
static void ep_dup_connect__bad_handle__invalid_handle(void **state)
{
	struct dup_fixture dup;
	DAT_EP_HANDLE freed;

	dup_open(&dup, state);
	freed = conn_freed_ep(&dup.f->ia);
	conn_refuses_handles(dup_first, &dup, dup.c.conn, freed, DAT_INVALID_HANDLE_EP);
	conn_refuses_handles(dup_second, &dup, dup.c.conn, freed, DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(dup.c.ep), DAT_EP_STATE_UNCONNECTED);
	conn_stays_quiet(&dup.c);
	dt_no_event(dup.f->listener.evd);
}

/* EP-DUPCONN-07 EP-DUPCONN-09 */
static void ep_dup_connect__like_one_not_connected__invalid_state(void **state)
{
	struct dup_fixture dup;

	dup_open(&dup, state);
	check_refused(&dup, dup_plain(dup.c.ep, dup.d.ep),
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED));
	check_refused(&dup, dup_plain(dup.c.ep, dup.c.ep),
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED));
	dt_fails_with(dup_plain(dup.f->a.ep, dup.f->a.ep), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_CONNECTED);
	assert_int_equal(dt_ep_state(dup.f->a.ep), DAT_EP_STATE_CONNECTED);
	/* pending */
	dt_connect(&dup.f->ia, dup.d.ep, dup.f->listener.qual);
	dt_ok(dat_cr_reject(dt_request(&dup.f->listener)));
	dt_expect_conn(dup.d.conn, dup.d.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	check_refused(&dup, dup_plain(dup.c.ep, dup.d.ep),
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED));
	dt_ok(dat_ep_reset(dup.d.ep));
	dt_connect(&dup.f->ia, dup.d.ep, dup.f->listener.qual);
	dt_request(&dup.f->listener);
	check_refused(&dup, dup_plain(dup.c.ep, dup.d.ep),
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING));
	/* disconnecting, disconnected */
	conn_post_send(dup.f->a.ep, &dup.f->buf, CONN_A_SENDS_AT, 1);
	dt_ok(dat_ep_disconnect(dup.f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	check_refused(&dup, dup_plain(dup.c.ep, dup.f->a.ep),
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCPENDING));
	dt_ok(dat_ep_disconnect(dup.f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(dup.f->a.conn, dup.f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	check_refused(&dup, dup_plain(dup.c.ep, dup.f->a.ep),
		      DT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED));
}

/* EP-DUPCONN-18 */
static void ep_dup_connect__no_zone_or_evd__refused(void **state)
{
	struct dup_fixture dup;
	struct dt_ep bare;
	DAT_EP_HANDLE mute;

	dup_open(&dup, state);
	dt_ep_create(&dup.f->ia, DAT_HANDLE_NULL, NULL, &bare);
	dt_fails_with(dup_plain(bare.ep, dup.f->a.ep), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_NOTREADY);
	assert_int_equal(dt_ep_state(bare.ep), DAT_EP_STATE_UNCONNECTED);
	dt_ep_free(&bare);
	dt_ok(dat_ep_create(dup.f->ia.ia, dup.f->ia.pz, dup.c.recv, dup.c.request, DAT_HANDLE_NULL,
			    NULL, &mute));
	dt_fails_with(dup_plain(mute, dup.f->a.ep), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_CONN);
	assert_int_equal(dt_ep_state(mute), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_free(mute));
	dt_stays_empty(dup.f->listener.evd);
}

/* EP-DUPCONN-19 */
static void ep_dup_connect__no_descriptors__insufficient_resources(void **state)
{
	struct dup_fixture dup;
	struct rlimit limit;
	DAT_RETURN ret;

	dup_open(&dup, state);
	limit = conn_descriptors_take();
	ret = dup_plain(dup.c.ep, dup.f->a.ep);
	conn_descriptors_give(&limit);
	check_refused(&dup, ret, DT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE));
	conn_stays_quiet(&dup.c);
	dt_ok(dup_plain(dup.c.ep, dup.f->a.ep));
	dup_accept(&dup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(ep_dup_connect__connected__reaches_the_same_listener),
		conn_test(ep_dup_connect__private_data_and_port__in_the_request),
		conn_test(ep_dup_connect__fails__event_and_old_connection_unaffected),
		conn_test(ep_dup_connect__old_one_ends__attempt_continues),
		conn_test(ep_dup_connect__like_a_passive_one__non_peer_rejected),
		conn_test(ep_dup_connect__bad_argument__refused_without_effect),
		conn_test(ep_dup_connect__bad_handle__invalid_handle),
		conn_test(ep_dup_connect__like_one_not_connected__invalid_state),
		conn_test(ep_dup_connect__no_zone_or_evd__refused),
		conn_test(ep_dup_connect__no_descriptors__insufficient_resources),
	};

	return cmocka_run_group_tests_name("ep_dup_connect", tests, NULL, NULL);
}
