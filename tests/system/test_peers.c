// SPDX-License-Identifier: BSD-2-Clause
/*
 * peers=user: no process of another user is a peer, neither as a caller nor as the holder of a
 * service point.
 */
#include <sys/prctl.h>

#include "identity.h"

static int user_setup(void **state)
{
	setenv("DAT_PEERS", "user", 1);
	return conn_setup(state);
}

static int user_teardown(void **state)
{
	int rc = conn_teardown(state);

	unsetenv("DAT_PEERS");
	return rc;
}

/* CONN-GEN-09 */
static void peers_user__own_user__connects(void **state)
{
	check_others_work(*state);
}

/* A stranger that takes any peer calls, and is called. */
static void be_stranger(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f;
	struct call call;
	void *fixture;

	(void)arg;
	become(STRANGER);
	conn_setup(&fixture);
	f = fixture;
	dt_peer_recv(peer, &call, sizeof(call));
	dt_connect(&f->ia, f->a.ep, call.qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	tell_call(peer, f);
	dt_peer_sync(peer);
	dt_no_event(f->listener.evd);
	conn_teardown(&fixture);
}

/* CONN-GEN-09 CONN-EVT-13 EP-CONNECT-22: neither side sees a request */
static void peers_user__strangers__no_peers(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	struct call call;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, be_stranger, NULL);
	user_setup(&fixture);
	f = fixture;
	tell_call(&peer, f);
	dt_peer_recv(&peer, &call, sizeof(call));
	dt_no_event(f->listener.evd);
	dt_connect(&f->ia, f->a.ep, call.qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	user_teardown(&fixture);
	remove_folder(STRANGER);
}

/* EP-CONNECT-22 CONN-GEN-09: its answer does not count */
static void peers_user__listener_changed_before_its_answer__rejected(void **state)
{
	struct dt_peer peer;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, accept_as_stranger, NULL);
	user_setup(&fixture);
	expect_no_peer(fixture, &peer);
	user_teardown(&fixture);
}

static void open_without_proc(struct dt_peer *peer, void *arg)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)peer;
	(void)arg;
	hide_proc();
	setenv("DAT_PEERS", "user", 1);
	dt_fails(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia),
		 DAT_INSUFFICIENT_RESOURCES);
}

/* IWCM-62: there are no names, and so no peers */
static void peers_user__proc_is_hidden__open_fails(void **state)
{
	struct dt_peer peer;

	(void)state;
	need_root();
	dt_peer_start(&peer, open_without_proc, NULL);
	dt_peer_join(&peer);
}

static void connect_undumpable(struct dt_peer *peer, void *arg)
{
	void *fixture;

	(void)peer;
	(void)arg;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	user_setup(&fixture);
	check_others_work(fixture);
	user_teardown(&fixture);
}

/* CONN-GEN-09: that it shares no memory is another matter */
static void peers_user__process_is_not_dumpable__connects(void **state)
{
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, connect_undumpable, NULL);
	dt_peer_join(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(peers_user__own_user__connects, user_setup,
						user_teardown),
		cmocka_unit_test(peers_user__strangers__no_peers),
		cmocka_unit_test(peers_user__listener_changed_before_its_answer__rejected),
		cmocka_unit_test(peers_user__proc_is_hidden__open_fails),
		cmocka_unit_test(peers_user__process_is_not_dumpable__connects),
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
