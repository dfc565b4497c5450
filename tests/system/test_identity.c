// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who a peer is now counts, not who it was when it called listen or connect. A process that has
 * become another user, in part or altogether, gets no address, no key table and no memory.
 */
#include <sys/mount.h>
#include <sched.h>

#include <dat/opendat.h>

#include "identity.h"
#include "old_kernel.h"

/* What this process has told a peer. */
struct told {
	uint64_t token_address;
	uint32_t ability;
	size_t tables;
};

/* What dat_opendat_peer says about a process that was root and has changed. */
static void check_peer(DAT_HANDLE handle, const struct change *change)
{
	const bool is_whole = change->real == change->effective && change->real == change->saved;
	const DAT_UINT32 known = DAT_OPENDAT_PEER_USER | DAT_OPENDAT_PEER_PROCESS;
	DAT_OPENDAT_PEER peer = {.size = sizeof(peer)};

	dt_ok(dat_opendat_peer(handle, &peer));
	assert_int_equal(peer.flags, known | (is_whole ? DAT_OPENDAT_PEER_PROVEN : 0));
	assert_int_equal(peer.uid, is_whole ? change->real : 0);
	assert_int_equal(peer.gid, is_whole ? change->group : 0);
}

/* --- a process that listens --- */

static void listen_and_change(struct dt_peer *peer, void *arg)
{
	const struct change *change = arg;
	int fds[SHM_WIRE_FDS_MAX];
	struct service service;
	struct told told;

	service_open(&service, peer, change);
	service_take(&service);
	told.token_address = service.h.answer.request.side.token_address;
	service_accept(&service, change->is_forging);
	told.tables = hostile_receive(&service.h, fds);
	assert_int_equal(service.h.answer.head.type, SHM_WIRE_READY);
	told.ability = service.h.answer.word.word;
	dt_peer_send(peer, &told, sizeof(told));
	dt_peer_sync(peer);
	service_drop(&service);
}

static struct told tell_listener(const struct change *change)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	DAT_CONN_QUAL qual;
	struct told told;
	void *fixture;

	dt_peer_start(&peer, listen_and_change, (void *)(uintptr_t)change);
	conn_setup(&fixture);
	f = fixture;
	dt_peer_send(&peer, own_address(f), sizeof(*own_address(f)));
	dt_peer_recv(&peer, &qual, sizeof(qual));
	dt_connect(&f->ia, f->a.ep, qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_recv(&peer, &told, sizeof(told));
	check_peer(f->a.ep, change);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	conn_teardown(&fixture);
	return told;
}

/* EP-CONNECT-22 CONN-GEN-09 */
static void ep_connect__listener_changed_after_listen__told_nothing(void **state)
{
	struct told told;

	(void)state;
	need_root();
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		print_message("  changed: %s\n", changes[i].name);
		told = tell_listener(&changes[i]);
		assert_true(told.token_address == 0);
		assert_int_equal(told.tables, 0);
		assert_int_equal(told.ability, 0);
	}
	told = tell_listener(&no_change);
	assert_int_equal(told.token_address == 0, is_ring());
	assert_int_equal(told.tables, !is_ring());
	assert_int_equal(told.ability & SHM_ABLE_TRUST, SHM_ABLE_TRUST);
}

/* --- a process that calls --- */

struct call {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
};

static void take_call(struct dt_peer *peer, struct hostile *h)
{
	struct call call;

	dt_peer_recv(peer, &call, sizeof(call));
	h->produced = 0;
	hostile_ask(h, &call.address, call.qual);
	dt_peer_sync(peer);
}

static void call_and_change(struct dt_peer *peer, void *arg)
{
	struct hostile h;
	struct told told;

	take_call(peer, &h);
	become(arg);
	dt_peer_sync(peer);
	hostile_take_answer(&h);
	told.token_address = h.answer.accept.side.token_address;
	told.ability = h.answer.accept.side.ability;
	told.tables = h.answer_fds - 1;
	dt_peer_send(peer, &told, sizeof(told));
	hostile_word(&h, SHM_WIRE_READY, SHM_ABLE_TRUST);
	dt_peer_sync(peer);
	hostile_close(&h);
}

/* Starts a process that calls this one; returns its request. */
static DAT_CR_HANDLE be_called(struct dt_peer *peer, void (*fn)(struct dt_peer *peer, void *arg),
			       const struct change *change, void **fixture)
{
	struct conn_fixture *f;
	struct call call;
	DAT_CR_HANDLE cr;

	dt_peer_start(peer, fn, (void *)(uintptr_t)change);
	conn_setup(fixture);
	f = *fixture;
	call = (struct call){.address = *own_address(f), .qual = f->listener.qual};
	dt_peer_send(peer, &call, sizeof(call));
	cr = dt_request(&f->listener);
	check_peer(cr, &no_change);
	dt_peer_sync(peer);
	return cr;
}

/* CR-ACCEPT-01 CONN-GEN-09: while the consumer decides */
static void cr_accept__caller_changed_after_its_request__told_nothing(void **state)
{
	(void)state;
	need_root();
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		struct conn_fixture *f;
		struct dt_peer peer;
		struct told told;
		DAT_CR_HANDLE cr;
		void *fixture;

		print_message("  changed: %s\n", changes[i].name);
		cr = be_called(&peer, call_and_change, &changes[i], &fixture);
		f = fixture;
		dt_peer_sync(&peer);
		dt_ok(dat_cr_accept(cr, f->a.ep, 0, NULL));
		dt_peer_recv(&peer, &told, sizeof(told));
		assert_true(told.token_address == 0);
		assert_int_equal(told.tables, 0);
		assert_int_equal(told.ability, 0);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		check_peer(f->a.ep, &changes[i]);
		dt_peer_sync(&peer);
		dt_peer_join(&peer);
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
		conn_teardown(&fixture);
	}
}

static void call_and_ask_for_memory(struct dt_peer *peer, void *arg)
{
	int fds[SHM_WIRE_FDS_MAX];
	struct hostile h;
	size_t count;
	uint32_t key;

	take_call(peer, &h);
	hostile_ready(&h);
	dt_peer_recv(peer, &key, sizeof(key));
	for (int i = 0; i < 2; i++) {
		hostile_word(&h, SHM_WIRE_MAP_ASK, key);
		do
			count = hostile_receive(&h, fds);
		while (h.answer.head.type == SHM_WIRE_WAKE);
		assert_int_equal(h.answer.head.type, i ? SHM_WIRE_MAP_REFUSE : SHM_WIRE_MAP_GIVE);
		assert_int_equal(count, !i);
		if (!i)
			become(arg);
	}
	close(fds[0]);
	hostile_close(&h);
}

/* LMR-USE-06 CONN-GEN-09: a long time after the set-up */
static void map_ask__peer_changed_after_the_set_up__refused(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	void *fixture;
	DAT_CR_HANDLE cr;

	(void)state;
	need_root();
	if (!getenv("DAT_COPY") || strcmp(getenv("DAT_COPY"), "map") != 0)
		skip(); /* the memory is in no file */
	cr = be_called(&peer, call_and_ask_for_memory, &changes[0], &fixture);
	f = fixture;
	dt_ok(dat_cr_accept(cr, f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_send(&peer, &f->buf.rkey, sizeof(f->buf.rkey));
	dt_peer_join(&peer);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	conn_teardown(&fixture);
}

/* --- no proof is possible --- */

/* Both sides are in this process, which sees no /proc. */
static void connect_without_proc(struct dt_peer *peer, void *arg)
{
	int fds[SHM_WIRE_FDS_MAX];
	struct conn_fixture *f;
	struct hostile h;
	void *fixture;

	(void)peer;
	(void)arg;
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/proc", "tmpfs", 0, NULL), 0);
	conn_setup(&fixture);
	f = fixture;
	hostile_ask(&h, own_address(f), f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->a.ep, 0, NULL));
	assert_int_equal(hostile_receive(&h, fds), 1);
	assert_true(h.answer.accept.side.token_address == 0);
	assert_int_equal(h.answer.accept.side.ability, 0);
	close(fds[0]);
	hostile_word(&h, SHM_WIRE_READY, SHM_ABLE_TRUST);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_ok(dat_ep_reset(f->a.ep));
	check_others_work(f);
	conn_teardown(&fixture);
}

/* CR-ACCEPT-01: what cannot be read proves nothing; the connection works all the same */
static void cr_accept__proc_is_hidden__shares_nothing(void **state)
{
	struct dt_peer peer;

	(void)state;
	need_root();
	dt_peer_start(&peer, connect_without_proc, NULL);
	dt_peer_join(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_connect__listener_changed_after_listen__told_nothing),
		cmocka_unit_test(cr_accept__caller_changed_after_its_request__told_nothing),
		cmocka_unit_test(map_ask__peer_changed_after_the_set_up__refused),
		cmocka_unit_test(cr_accept__proc_is_hidden__shares_nothing),
	};

	int failed = cmocka_run_group_tests_name("identity", tests, NULL, NULL);

	old_kernel_names_no_process();
	failed += cmocka_run_group_tests_name("identity, before 6.5", tests, NULL, NULL);
	old_kernel_has_no_process();
	return failed + cmocka_run_group_tests_name("identity, before 5.3", tests, NULL, NULL);
}
