// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared memory is for processes of one user. All others meet over TCP: they do not get at the
 * local sockets, and who has become another user is no peer there any more. Mappings and copies by
 * the kernel need a process that the kernel does not protect.
 */
#include <sys/prctl.h>

#include "identity.h"

#define NOBODY 65534u

/* --- strangers --- */

/* Calls, then is called; transfers a message each time. */
static void meet(struct conn_fixture *f, struct dt_peer *peer, bool is_first)
{
	struct call call;

	for (int turn = 0; turn < 2; turn++) {
		if ((turn == 0) == is_first) {
			dt_peer_recv(peer, &call, sizeof(call));
			dt_connect(&f->ia, f->a.ep, call.qual);
		} else {
			DAT_CR_HANDLE cr;

			tell_call(peer, f);
			cr = dt_request(&f->listener);
			assert_int_equal(peer_flags(cr), DAT_OPENDAT_PEER_TCP);
			dt_ok(dat_cr_accept(cr, f->a.ep, 0, NULL));
		}
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_int_equal(peer_flags(f->a.ep), DAT_OPENDAT_PEER_TCP);
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
		dt_peer_sync(peer);
		conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, 2);
		dt_expect_dto(f->a.request, f->a.ep, 2, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_expect_dto(f->a.recv, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_peer_sync(peer);
		if (is_first)
			dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

static void meet_as_stranger(struct dt_peer *peer, void *arg)
{
	void *fixture;

	(void)arg;
	become(STRANGER);
	conn_setup(&fixture);
	meet(fixture, peer, true);
	conn_teardown(&fixture);
}

/* IWCM-01 IWCM-03: the loopback adapter, too */
static void connect__strangers__each_other_over_tcp(void **state)
{
	struct dt_peer peer;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, meet_as_stranger, NULL);
	conn_setup(&fixture);
	meet(fixture, &peer, false);
	dt_peer_join(&peer);
	conn_teardown(&fixture);
	remove_folder(STRANGER);
}

static void knock(struct dt_peer *peer, void *arg)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	struct call call;

	(void)arg;
	dt_peer_recv(peer, &call, sizeof(call));
	hostile_name((const struct sockaddr *)&call.address, call.qual, &name);
	become(STRANGER);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), -1);
	assert_int_equal(errno, EACCES);
	close(fd);
}

/* IWCM-65: nothing of a stranger arrives there, not even a descriptor */
static void listener__stranger__does_not_get_at_the_socket(void **state)
{
	struct dt_peer peer;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, knock, NULL);
	conn_setup(&fixture);
	tell_call(&peer, fixture);
	dt_peer_join(&peer);
	conn_teardown(&fixture);
}

/* --- processes that have become another user --- */

static void ask_as_stranger(struct dt_peer *peer, void *arg)
{
	struct shm_wire_request packet = {.side = {.port = 1}, .family = AF_INET};
	struct hostile h = {.fd = -1};
	union shm_wire answer;
	struct call call;

	(void)arg;
	dt_peer_recv(peer, &call, sizeof(call));
	hostile_dial(&h, &call.address, call.qual);
	become(STRANGER);
	packet.qual = call.qual;
	put_head(&packet.head, SHM_WIRE_REQUEST);
	hostile_send(&h, &packet, offsetof(struct shm_wire_request, private_data), NULL, 0);
	hostile_await(&h, SHM_WIRE_REJECT, &answer);
	assert_int_equal(answer.word.word, SHM_WHY_STRANGER);
	close(h.fd);
}

/* CONN-GEN-09: the request counts as that of a stranger, who has to come over TCP */
static void listener__caller_changed_before_its_request__sent_away(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, ask_as_stranger, NULL);
	conn_setup(&fixture);
	f = fixture;
	tell_call(&peer, f);
	dt_peer_join(&peer);
	dt_no_event(f->listener.evd);
	check_others_work(f);
	conn_teardown(&fixture);
}

/* EP-CONNECT-22: its answer does not count, and nothing listens on TCP */
static void ep_connect__listener_changed_before_its_answer__no_peer(void **state)
{
	struct dt_peer peer;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, accept_as_stranger, NULL);
	conn_setup(&fixture);
	expect_no_peer(fixture, &peer);
	conn_teardown(&fixture);
}

/* Listens as root and serves as another user. */
static void serve_as_stranger(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f;
	void *fixture;

	(void)arg;
	conn_setup(&fixture);
	f = fixture;
	become(STRANGER);
	tell_call(peer, f);
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_dto(f->a.recv, f->a.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* EP-CONNECT-18 IWCM-01: it is found by the user that it was, and goes on over TCP */
static void ep_connect__listener_has_changed_its_user__over_tcp(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	struct call call;
	void *fixture;

	(void)state;
	need_root();
	for (int is_root = 0; is_root < 2; is_root++) {
		dt_peer_start(&peer, serve_as_stranger, NULL);
		dt_peer_recv(&peer, &call, sizeof(call));
		if (!is_root)
			assert_int_equal(seteuid(STRANGER), 0);
		conn_setup(&fixture);
		f = fixture;
		dt_connect(&f->ia, f->b.ep, call.qual);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_int_equal(peer_flags(f->b.ep), DAT_OPENDAT_PEER_TCP);
		conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
		dt_expect_dto(f->b.request, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
		dt_peer_sync(&peer);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
		dt_peer_kill(&peer);
		conn_teardown(&fixture);
	}
	remove_folder(STRANGER);
}

/* Asks for the memory behind a key; returns a descriptor of its file, -1 if that is refused. */
static int ask_for_memory(struct hostile *h, uint32_t key)
{
	int fds[SHM_WIRE_FDS_MAX];
	size_t count;

	hostile_word(h, SHM_WIRE_MAP_ASK, key);
	do {
		count = hostile_receive(h, fds);
	} while (h->answer.head.type == SHM_WIRE_WAKE);
	if (h->answer.head.type == SHM_WIRE_MAP_GIVE) {
		assert_int_equal(count, 1);
		return fds[0];
	}
	assert_int_equal(h->answer.head.type, SHM_WIRE_MAP_REFUSE);
	assert_int_equal(count, 0);
	return -1;
}

static void call_and_ask_for_memory(struct dt_peer *peer, void *arg)
{
	struct hostile h = {.fd = -1};
	struct call call;
	uint32_t key;
	int fd;

	(void)arg;
	dt_peer_recv(peer, &call, sizeof(call));
	hostile_ask(&h, &call.address, call.qual);
	hostile_ready(&h);
	dt_peer_recv(peer, &key, sizeof(key));
	fd = ask_for_memory(&h, key);
	assert_int_not_equal(fd, -1);
	close(fd);
	become(STRANGER);
	assert_int_equal(ask_for_memory(&h, key), -1);
	hostile_close(&h);
}

static void need_map(void)
{
	if (!getenv("DAT_COPY") || strcmp(getenv("DAT_COPY"), "map") != 0)
		skip(); /* the memory is in no file */
}

/* LMR-USE-06 CONN-GEN-09: a long time after the set-up */
static void map_ask__peer_changed_after_the_set_up__refused(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	void *fixture;

	(void)state;
	need_root();
	need_map();
	dt_peer_start(&peer, call_and_ask_for_memory, NULL);
	conn_setup(&fixture);
	f = fixture;
	tell_call(&peer, f);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_send(&peer, &f->buf.rkey, sizeof(f->buf.rkey));
	dt_peer_join(&peer);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	conn_teardown(&fixture);
}

/* LMR-USE-06 LMR-USE-07: a peer gets memory with the rights of the key */
static void map_ask__key__memory_with_its_rights(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_buf fixed, other;
	DAT_PZ_HANDLE other_zone;
	struct hostile h;
	int fd;

	need_map();
	dt_ok(dat_pz_create(f->ia.ia, &other_zone));
	dt_buf_create(&f->ia, f->ia.pz, &fixed, 4096, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	dt_buf_create(&f->ia, other_zone, &other, 4096, DAT_MEM_PRIV_ALL_FLAG);
	hostile_connect(&h, f, &f->a);
	fd = ask_for_memory(&h, f->buf.rkey);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	close(fd);
	fd = ask_for_memory(&h, fixed.rkey);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	assert_int_equal(ask_for_memory(&h, other.rkey), -1);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0); /* after the peer was accepted */
	assert_int_equal(ask_for_memory(&h, f->buf.rkey), -1);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_buf_free(&fixed);
	dt_buf_free(&other);
	dt_ok(dat_pz_free(other_zone));
}

/* --- no proof is possible --- */

/* Both ends are in this process. */
static void connect_both_over_tcp(void)
{
	struct conn_fixture *f;
	void *fixture;

	conn_setup(&fixture);
	f = fixture;
	conn_link(f, &f->a, &f->b);
	assert_int_equal(peer_flags(f->a.ep), DAT_OPENDAT_PEER_TCP);
	conn_transfer(f, &f->a, &f->b);
	conn_teardown(&fixture);
}

static void connect_as_nobody(struct dt_peer *peer, void *arg)
{
	(void)peer;
	(void)arg;
	become(NOBODY);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0); /* setresuid clears it */
	connect_both_over_tcp();
}

/* CR-ACCEPT-01: users that a user namespace does not map all look like this one */
static void connect__both_have_the_overflow_user__over_tcp(void **state)
{
	struct dt_peer peer;

	(void)state;
	need_root();
	dt_peer_start(&peer, connect_as_nobody, NULL);
	dt_peer_join(&peer);
	remove_folder(NOBODY);
}

static void connect_without_proc(struct dt_peer *peer, void *arg)
{
	(void)peer;
	(void)arg;
	hide_proc();
	connect_both_over_tcp();
}

/* CR-ACCEPT-01: there are no names without it */
static void connect__proc_is_hidden__over_tcp(void **state)
{
	struct dt_peer peer;

	(void)state;
	need_root();
	dt_peer_start(&peer, connect_without_proc, NULL);
	dt_peer_join(&peer);
}

static void connect_undumpable(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f;
	struct hostile h;
	void *fixture;

	(void)peer;
	(void)arg;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	conn_setup(&fixture);
	f = fixture;
	hostile_connect(&h, f, &f->a);
	assert_int_equal(h.answer_fds, 1); /* the segment, and no key table */
	assert_true(h.answer.accept.side.token_address == 0);
	assert_int_equal(peer_flags(f->a.ep) & DAT_OPENDAT_PEER_TCP, 0);
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_ok(dat_ep_reset(f->a.ep));
	check_others_work(f);
	conn_teardown(&fixture);
}

/* CR-ACCEPT-01: a process that the kernel protects from others of its user uses the rings */
static void cr_accept__process_is_not_dumpable__shares_nothing(void **state)
{
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, connect_undumpable, NULL);
	dt_peer_join(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect__strangers__each_other_over_tcp),
		cmocka_unit_test(listener__stranger__does_not_get_at_the_socket),
		cmocka_unit_test(listener__caller_changed_before_its_request__sent_away),
		cmocka_unit_test(ep_connect__listener_changed_before_its_answer__no_peer),
		cmocka_unit_test(ep_connect__listener_has_changed_its_user__over_tcp),
		cmocka_unit_test(map_ask__peer_changed_after_the_set_up__refused),
		conn_test(map_ask__key__memory_with_its_rights),
		cmocka_unit_test(connect__both_have_the_overflow_user__over_tcp),
		cmocka_unit_test(connect__proc_is_hidden__over_tcp),
		cmocka_unit_test(cr_accept__process_is_not_dumpable__shares_nothing),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
