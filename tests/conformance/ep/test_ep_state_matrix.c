// SPDX-License-Identifier: BSD-2-Clause
/*
 * The legality matrix of the endpoint state machine: each call in each state. Refused calls are
 * tried in a row on one endpoint, which they must not change; each legal call that changes
 * something gets an endpoint of its own.
 */
#include "ep_lab.h"

/* Objects that a call needs beside the endpoint under test. */
struct extras {
	DAT_CONN_QUAL listening; /* a service point whose requests are not answered */
	struct dt_ep a, b;	 /* connected to each other */
	struct dt_ep idle;	 /* UNCONNECTED */
	DAT_EVD_HANDLE evd;	 /* for connection requests */
	DAT_CR_HANDLE cr;	 /* not answered yet, without an endpoint */
	DAT_PZ_HANDLE pz;
};

static void extras_open(struct ep_lab *lab, struct extras *x)
{
	struct dt_ep active;
	DAT_PSP_HANDLE psp;

	x->evd = dt_evd_create(&lab->ia, 16, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(lab->ia.ia, &x->listening, x->evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &x->a);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &x->b);
	dt_ep_link(&lab->ia, &x->a, &x->b);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &x->idle);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &active);
	dt_connect(&lab->ia, active.ep, x->listening);
	x->cr = ep_next_request(x->evd);
	dt_ok(dat_pz_create(lab->ia.ia, &x->pz));
}

/* --- the calls --- */

typedef DAT_RETURN (*call_fn)(struct ep_lab *lab, struct extras *x);

static DAT_RETURN do_connect(struct ep_lab *lab, struct extras *x)
{
	return dat_ep_connect(lab->ep.ep, lab->ia.attr.ia_address_ptr, x->listening,
			      DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN do_dup_connect(struct ep_lab *lab, struct extras *x)
{
	return dat_ep_dup_connect(lab->ep.ep, x->a.ep, DAT_TIMEOUT_INFINITE, 0, NULL,
				  DAT_QOS_BEST_EFFORT);
}

static DAT_RETURN do_dup_source(struct ep_lab *lab, struct extras *x)
{
	return dat_ep_dup_connect(x->idle.ep, lab->ep.ep, DAT_TIMEOUT_INFINITE, 0, NULL,
				  DAT_QOS_BEST_EFFORT);
}

static DAT_RETURN do_rsp_create(struct ep_lab *lab, struct extras *x)
{
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(lab->ia.ia, ep_free_qual(&lab->ia), lab->ep.ep, x->evd, &rsp);
}

static DAT_RETURN do_accept_named(struct ep_lab *lab, struct extras *x)
{
	return dat_cr_accept(x->cr, lab->ep.ep, 0, NULL);
}

static DAT_RETURN do_abrupt(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN do_graceful(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN do_reset(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return dat_ep_reset(lab->ep.ep);
}

static DAT_RETURN do_free(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return dat_ep_free(lab->ep.ep);
}

static DAT_RETURN do_recv(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return ep_recv(lab->ep.ep, &lab->buf, 0, 64, 1);
}

static DAT_RETURN do_send(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return ep_send(lab->ep.ep, &lab->buf, 0, 64, 2);
}

static DAT_RETURN do_write(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return ep_write(lab->ep.ep, &lab->buf, 0, &lab->buf, 4096, 64, 3);
}

static DAT_RETURN do_read(struct ep_lab *lab, struct extras *x)
{
	(void)x;
	return ep_read(lab->ep.ep, &lab->buf, 4096, &lab->buf, 0, 64, 4);
}

static DAT_RETURN do_modify_pz(struct ep_lab *lab, struct extras *x)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.pz_handle = x->pz;
	return dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_PZ_HANDLE, &param);
}

/* Sets the EVDs and attributes to their current values. */
static DAT_RETURN do_modify(struct ep_lab *lab, struct extras *x)
{
	DAT_EP_PARAM param = ep_query(lab->ep.ep);

	(void)x;
	return dat_ep_modify(lab->ep.ep,
			     DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV,
			     &param);
}

static DAT_RETURN do_modify_named(struct ep_lab *lab, struct extras *x)
{
	DAT_EP_PARAM param;

	(void)x;
	memset(&param, 0, sizeof(param));
	return dat_ep_modify(lab->ep.ep, DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, &param);
}

static DAT_RETURN do_query(struct ep_lab *lab, struct extras *x)
{
	DAT_EP_PARAM param;

	(void)x;
	return dat_ep_query(lab->ep.ep, DAT_EP_FIELD_ALL, &param);
}

static DAT_RETURN do_get_status(struct ep_lab *lab, struct extras *x)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	(void)x;
	return dat_ep_get_status(lab->ep.ep, &state, &recv_idle, &request_idle);
}

static DAT_RETURN do_recv_query(struct ep_lab *lab, struct extras *x)
{
	DAT_COUNT nbufs, span;

	(void)x;
	return dat_ep_recv_query(lab->ep.ep, &nbufs, &span);
}

/* One letter per state in the order of ep_states: o legal, n no effect, f flushed, - refused. */
static const struct {
	const char *verdicts;
	const char *name;
	call_fn call;
} matrix[] = {
	{"o--------", "connect", do_connect},
	{"o--------", "dup_connect", do_dup_connect},
	{"o--------", "rsp_create", do_rsp_create},
	{"------o--", "dup_connect of it", do_dup_source},
	{"o--------", "cr_accept naming it", do_accept_named},
	{"----oooon", "disconnect abrupt", do_abrupt},
	{"----ooonn", "disconnect graceful", do_graceful},
	{"n-------o", "reset", do_reset},
	{"o---ooooo", "free", do_free},
	{"oooooooof", "post_recv", do_recv},
	{"------o-f", "post_send", do_send},
	{"------o-f", "post_rdma_write", do_write},
	{"------o-f", "post_rdma_read", do_read},
	{"o--o-----", "modify PZ", do_modify_pz},
	{"oooo-----", "modify EVDs, attributes", do_modify},
	{"o--------", "modify named attributes", do_modify_named},
	{"ooooooooo", "query", do_query},
	{"ooooooooo", "get_status", do_get_status},
	{"ooooooooo", "recv_query", do_recv_query},
};

static void open_state(struct ep_lab *lab, struct extras *x, size_t index)
{
	ep_lab_open(lab, ep_states[index]);
	/* so that a call is refused for the state and not for a missing zone or EVD */
	if (ep_states[index] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
		ep_lab_equip(lab);
	extras_open(lab, x);
}

/* Checks that all refused calls fail with their subtype and have no effect. */
static void check_refused(struct ep_lab *lab, size_t index)
{
	DAT_EP_PARAM before, after;
	struct extras x;

	open_state(lab, &x, index);
	before = ep_query(lab->ep.ep);
	for (size_t i = 0; i < COUNT_OF(matrix); i++) {
		DAT_RETURN ret;

		if (matrix[i].verdicts[index] != '-')
			continue;
		ret = matrix[i].call(lab, &x);
		if (ret != dt_state_error(ep_states[index]))
			print_error("%s:\n", matrix[i].name);
		dt_returns(ret, dt_state_error(ep_states[index]));
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[index]);
	}
	after = ep_query(lab->ep.ep);
	ep_check_same_config(&before, &after);
	assert_true(ep_is_recv_idle(lab->ep.ep));
	assert_int_equal(ep_is_request_idle(lab->ep.ep),
			 ep_states[index] != DAT_EP_STATE_DISCONNECT_PENDING);
	ep_lab_no_events(lab);
	/* no effect on the other objects named in the calls either */
	assert_int_equal(dt_ep_state(x.idle.ep), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_cr_accept(x.cr, x.idle.ep, 0, NULL));
	dt_ok(dat_pz_free(x.pz));
	ep_lab_close(lab);
}

/* Checks that the legal call `name` had its effect, had none, or was flushed. */
static void check_effect(struct ep_lab *lab, char verdict, DAT_EP_STATE before, call_fn call)
{
	if (verdict == 'f') {
		DAT_EVD_HANDLE evd = call == do_recv ? lab->ep.recv : lab->ep.request;
		DAT_EVENT event;

		dt_ok(dat_evd_dequeue(evd, &event));
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_FLUSHED);
	}
	if (verdict == 'f' || verdict == 'n') {
		assert_int_equal(dt_ep_state(lab->ep.ep), before);
		dt_stays_empty(lab->ep.conn);
		ep_lab_no_events(lab);
	} else if (call == do_free) {
		dt_fails_with(dat_ep_get_status(lab->ep.ep, NULL, NULL, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
	} else if (call == do_reset) {
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_UNCONNECTED);
	} else if (call == do_abrupt ||
		   (call == do_graceful && before != DAT_EP_STATE_DISCONNECT_PENDING)) {
		dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		assert_int_equal(dt_ep_state(lab->ep.ep), DAT_EP_STATE_DISCONNECTED);
	} else if (call == do_recv) {
		assert_false(ep_is_recv_idle(lab->ep.ep));
		assert_int_equal(dt_ep_state(lab->ep.ep), before);
	}
}

static void check_legal(struct ep_lab *lab, size_t index)
{
	for (size_t i = 0; i < COUNT_OF(matrix); i++) {
		char verdict = matrix[i].verdicts[index];
		struct extras x;
		DAT_RETURN ret;

		if (verdict == '-')
			continue;
		open_state(lab, &x, index);
		ret = matrix[i].call(lab, &x);
		if (ret != DAT_SUCCESS) {
			print_error("%s: %s\n", matrix[i].name, dt_strerror(ret));
			fail();
		}
		check_effect(lab, verdict, ep_states[index], matrix[i].call);
		ep_lab_close(lab);
	}
}

/*
 * Each of these tests, for its state: EP-STATE-56 EP-STATE-57 EP-STATE-58 EP-STATE-59 EP-STATE-60
 * EP-STATE-61 EP-STATE-62 EP-STATE-63 EP-STATE-64 EP-STATE-65 EP-STATE-66 EP-STATE-67 EP-GEN-05
 * EP-CONNECT-37 EP-DUPCONN-08 EP-RESET-02 EP-RESET-04 EP-FREE-04 EP-FREE-05 EP-FREE-06 EP-FREE-07 EP-FREE-08 EP-FREE-09
 * EP-FREE-10 EP-FREE-11 EP-FREE-12 EP-MODIFY-15 EP-MODIFY-16 EP-MODIFY-36 EP-STATUS-10 EP-RECVQ-16
 */
#define state_tests(name, index)                                                                   \
	static void calls__refused_in_##name##__invalid_state_without_effect(void **state)         \
	{                                                                                          \
		check_refused(*state, index);                                                      \
	}                                                                                          \
	static void calls__legal_in_##name##__succeed(void **state)                                \
	{                                                                                          \
		check_legal(*state, index);                                                        \
	}

state_tests(unconnected, 0) state_tests(reserved, 1) state_tests(passive_connection_pending, 2)
	state_tests(tentative_connection_pending, 3) state_tests(active_connection_pending, 4)
		state_tests(completion_pending, 5) state_tests(connected, 6)
			state_tests(disconnect_pending, 7) state_tests(disconnected, 8)

	/* EP-STATE-26 EP-STATE-29: the row of the matrix that only two states have. */
	static void cr_accept__endpoint_of_the_cr__connects_it(void **state)
{
	static const DAT_EP_STATE with_cr[] = {DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
					       DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING};
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < COUNT_OF(with_cr); i++) {
		ep_lab_open(lab, with_cr[i]);
		if (with_cr[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			ep_lab_equip(lab);
		dt_ok(dat_cr_accept(lab->cr, DAT_HANDLE_NULL, 0, NULL));
		dt_expect_conn(lab->ep.conn, lab->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(lab->peer.conn, lab->peer.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		ep_check_traffic(&lab->ep, &lab->peer, &lab->buf);
		ep_check_traffic(&lab->peer, &lab->ep, &lab->buf);
		ep_lab_close(lab);
	}
}

#define state_entries(name)                                                                        \
	ep_test(calls__refused_in_##name##__invalid_state_without_effect),                         \
		ep_test(calls__legal_in_##name##__succeed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		state_entries(unconnected),
		state_entries(reserved),
		state_entries(passive_connection_pending),
		state_entries(tentative_connection_pending),
		state_entries(active_connection_pending),
		state_entries(completion_pending),
		state_entries(connected),
		state_entries(disconnect_pending),
		state_entries(disconnected),
		ep_test(cr_accept__endpoint_of_the_cr__connects_it),
	};

	return cmocka_run_group_tests_name("ep_state_matrix", tests, NULL, NULL);
}
