// SPDX-License-Identifier: BSD-2-Clause
/* The process at the other end (dat/opendat.h), an extension. */
#include <string.h>

#include <dat/opendat.h>

#include "conn_remote.h"

static bool has_processes(void)
{
	return strncmp(dt_adapter(), "soft", 4) == 0;
}

/* The other process is `pid`, and of the user and group of this one. */
static void check_peer(DAT_HANDLE handle, pid_t pid)
{
	const DAT_UINT32 known = DAT_OPENDAT_PEER_USER | DAT_OPENDAT_PEER_PROCESS;
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};

	if (!has_processes()) {
		dt_fails_with(dat_opendat_peer(handle, &peer), DAT_MODEL_NOT_SUPPORTED,
			      DAT_NO_SUBTYPE);
		return;
	}
	dt_ok(dat_opendat_peer(handle, &peer));
	assert_int_equal(peer.size, sizeof(peer));
	if (dt_is_iwarp()) { /* IWCM-04 */
		assert_int_equal(peer.flags, DAT_OPENDAT_PEER_TCP);
		assert_int_equal(peer.uid, UINT32_MAX);
		assert_int_equal(peer.gid, UINT32_MAX);
		assert_int_equal(peer.pid, 0);
		return;
	}
	assert_int_equal(peer.flags & known, known);
	assert_int_equal(peer.uid, getuid());
	assert_int_equal(peer.gid, getgid());
	assert_int_equal(peer.pid, pid);
	if (getuid() != 65534) /* it may stand for any user */
		assert_int_equal(peer.flags, known | DAT_OPENDAT_PEER_PROVEN);
}

static void conn_peer__both_sides_and_the_request__the_other_process(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	DAT_CR_HANDLE cr;

	remote_connect(&r->peer, f->listener.qual);
	cr = dt_request(&f->listener);
	check_peer(cr, r->peer.pid);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
	check_peer(f->b.ep, r->peer.pid);
}

static void conn_peer__service_point_of_the_other_process__that_process(void **state)
{
	struct remote_fixture *r = *state;

	remote_link_active(r);
	check_peer(r->f->b.ep, r->peer.pid);
}

/* Also on a socket that was used before. */
static void conn_peer__this_process__itself(void **state)
{
	struct conn_fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		conn_link(f, &f->a, &f->b);
		check_peer(f->a.ep, getpid());
		check_peer(f->b.ep, getpid());
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
}

static void fails_in_state(DAT_EP_HANDLE ep, DAT_EP_STATE state, DAT_RETURN_SUBTYPE subtype)
{
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer), .flags = 5};

	assert_int_equal(dt_ep_state(ep), state);
	dt_fails_with(dat_opendat_peer(ep, &peer), DAT_INVALID_STATE, subtype);
	assert_int_equal(peer.flags, 5);
}

static void conn_peer__not_connected__invalid_state(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CR_HANDLE cr;

	fails_in_state(f->a.ep, DAT_EP_STATE_UNCONNECTED, DAT_INVALID_STATE_EP_UNCONNECTED);
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	fails_in_state(f->a.ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
		       DAT_INVALID_STATE_EP_ACTCONNPENDING);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	fails_in_state(f->b.ep, DAT_EP_STATE_DISCONNECTED, DAT_INVALID_STATE_EP_DISCONNECTED);
}

static void conn_peer__bad_arguments__refused(void **state)
{
	struct conn_fixture *f = *state;
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	dt_fails_with(dat_opendat_peer(DAT_HANDLE_NULL, &peer), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_opendat_peer(f->ia.ia, &peer), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_opendat_peer(f->listener.evd, &peer), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_opendat_peer(cr, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_opendat_peer(f->a.ep, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	peer.size--;
	dt_fails_with(dat_opendat_peer(cr, &peer), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	peer.size = 0;
	dt_fails_with(dat_opendat_peer(cr, &peer), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_ok(dat_cr_reject(cr));
	peer.size = sizeof(peer);
	dt_fails_with(dat_opendat_peer(cr, &peer), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* A consumer of a later version may pass a larger structure: nothing behind is written. */
static void conn_peer__larger_structure__rest_untouched(void **state)
{
	struct conn_fixture *f = *state;
	struct {
		DAT_OPENDAT_PEER peer;
		uint8_t more[32];
	} large;
	uint8_t before[32];

	if (!has_processes())
		skip();
	memset(&large, 0xa5, sizeof(large));
	memcpy(before, large.more, sizeof(before));
	large.peer.size = sizeof(large);
	conn_link(f, &f->a, &f->b);
	dt_ok(dat_opendat_peer(f->a.ep, &large.peer));
	assert_memory_equal(large.more, before, sizeof(before));
	assert_int_equal(large.peer.pid, dt_is_iwarp() ? 0 : getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		remote_test(conn_peer__both_sides_and_the_request__the_other_process),
		remote_test(conn_peer__service_point_of_the_other_process__that_process),
		conn_test(conn_peer__this_process__itself),
		conn_test(conn_peer__not_connected__invalid_state),
		conn_test(conn_peer__bad_arguments__refused),
		conn_test(conn_peer__larger_structure__rest_untouched),
	};

	return cmocka_run_group_tests_name("conn_peer", tests, NULL, NULL);
}
