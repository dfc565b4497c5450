// SPDX-License-Identifier: BSD-2-Clause
/*
 * peers=user: no process of another user is a peer, neither as a caller nor as the holder of a
 * service point.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "identity.h"

#define SECRET "private data"

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

/* The other side says nothing but that it closes the socket. */
static void expect_silence(int fd)
{
	union shm_wire packet;

	while (recv(fd, &packet, sizeof(packet), 0) > 0)
		assert_int_equal(packet.head.type, SHM_WIRE_CLOSE);
}

/* --- callers --- */

struct call {
	struct sockaddr_in address;
	DAT_CONN_QUAL qual;
};

static void call_as(struct dt_peer *peer, void *arg)
{
	union shm_wire answer;
	struct hostile h;
	struct call call;

	dt_peer_recv(peer, &call, sizeof(call));
	become(arg);
	hostile_ask(&h, &call.address, call.qual);
	hostile_await(&h, SHM_WIRE_REJECT, &answer);
	assert_int_equal(answer.word.word, SHM_WHY_PROVIDER);
	hostile_close(&h);
}

/* CONN-GEN-09 CONN-EVT-13: the consumer does not even see the request */
static void peers_user__caller_of_another_user__rejected_unseen(void **state)
{
	(void)state;
	need_root();
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		struct conn_fixture *f;
		struct dt_peer peer;
		struct call call;
		void *fixture;

		print_message("  changed: %s\n", changes[i].name);
		dt_peer_start(&peer, call_as, (void *)(uintptr_t)&changes[i]);
		user_setup(&fixture);
		f = fixture;
		call = (struct call){.address = *own_address(f), .qual = f->listener.qual};
		dt_peer_send(&peer, &call, sizeof(call));
		dt_peer_join(&peer);
		dt_no_event(f->listener.evd);
		user_teardown(&fixture);
	}
}

static void call_then_become(struct dt_peer *peer, void *arg)
{
	struct hostile h;
	struct call call;

	dt_peer_recv(peer, &call, sizeof(call));
	hostile_ask(&h, &call.address, call.qual);
	dt_peer_sync(peer);
	become(arg);
	dt_peer_sync(peer);
	expect_silence(h.fd);
	hostile_close(&h);
}

/* CR-ACCEPT-20: it has changed its user since */
static void cr_accept__caller_is_of_another_user_by_now__fails(void **state)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	struct call call;
	DAT_CR_HANDLE cr;
	void *fixture;

	(void)state;
	need_root();
	dt_peer_start(&peer, call_then_become, (void *)(uintptr_t)&whole_change);
	user_setup(&fixture);
	f = fixture;
	call = (struct call){.address = *own_address(f), .qual = f->listener.qual};
	dt_peer_send(&peer, &call, sizeof(call));
	cr = dt_request(&f->listener);
	dt_peer_sync(&peer);
	dt_peer_sync(&peer);
	dt_ok(dat_cr_accept(cr, f->a.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	dt_peer_join(&peer);
	user_teardown(&fixture);
}

/* --- holders of a service point --- */

static void connect_with_data(struct conn_fixture *f, DAT_CONN_QUAL qual)
{
	struct conn_args args = conn_args_of(f);

	args.qual = qual;
	args.size = sizeof(SECRET);
	args.data = SECRET;
	dt_ok(conn_try(f->a.ep, &args));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* Connects to a process that runs `fn`. */
static void connect_to(void (*fn)(struct dt_peer *peer, void *arg), const struct change *change)
{
	struct conn_fixture *f;
	struct dt_peer peer;
	DAT_CONN_QUAL qual;
	void *fixture;

	dt_peer_start(&peer, fn, (void *)(uintptr_t)change);
	user_setup(&fixture);
	f = fixture;
	dt_peer_send(&peer, own_address(f), sizeof(*own_address(f)));
	dt_peer_recv(&peer, &qual, sizeof(qual));
	connect_with_data(f, qual);
	dt_peer_join(&peer);
	user_teardown(&fixture);
}

/* The whole change comes before listen, the others after it. */
static void squat(struct dt_peer *peer, void *arg)
{
	const struct change *change = arg;
	struct service service;
	int fd;

	if (change == &whole_change)
		become(change);
	service_open(&service, peer, change);
	fd = accept4(service.server, NULL, NULL, SOCK_CLOEXEC);
	assert_int_not_equal(fd, -1);
	expect_silence(fd);
	close(fd);
	close(service.server);
}

/* EP-CONNECT-22 CONN-GEN-09: before anything is sent to it */
static void peers_user__service_point_of_another_user__told_nothing(void **state)
{
	(void)state;
	need_root();
	connect_to(squat, &whole_change);
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		print_message("  changed after listen: %s\n", changes[i].name);
		connect_to(squat, &changes[i]);
	}
}

static void accept_as(struct dt_peer *peer, void *arg)
{
	const struct change *change = arg;
	struct service service;

	service_open(&service, peer, &no_change);
	service_take(&service);
	become(change);
	service_accept(&service, change->is_forging);
	expect_silence(service.h.fd);
	service_drop(&service);
	close(service.server);
}

/* EP-CONNECT-22 CONN-GEN-09: its answer does not count */
static void peers_user__listener_changed_before_its_answer__rejected(void **state)
{
	(void)state;
	need_root();
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		print_message("  changed: %s\n", changes[i].name);
		connect_to(accept_as, &changes[i]);
	}
}

/* --- without a proof, and without trust --- */

static void connect_to_itself(struct dt_peer *peer, void *arg)
{
	const bool is_hidden = arg != NULL;
	void *fixture;

	(void)peer;
	if (is_hidden) {
		assert_int_equal(unshare(CLONE_NEWNS), 0);
		assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
		assert_int_equal(mount("none", "/proc", "tmpfs", 0, NULL), 0);
	} else {
		assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	}
	user_setup(&fixture);
	if (is_hidden)
		connect_with_data(fixture, ((struct conn_fixture *)fixture)->listener.qual);
	else
		check_others_work(fixture);
	user_teardown(&fixture);
}

/* EP-CONNECT-22: nobody can prove anything */
static void peers_user__proc_is_hidden__rejected(void **state)
{
	struct dt_peer peer;

	(void)state;
	need_root();
	dt_peer_start(&peer, connect_to_itself, &peer);
	dt_peer_join(&peer);
}

/* CONN-GEN-09: that it shares no memory is another matter */
static void peers_user__process_is_not_dumpable__connects(void **state)
{
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, connect_to_itself, NULL);
	dt_peer_join(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(peers_user__own_user__connects, user_setup,
						user_teardown),
		cmocka_unit_test(peers_user__caller_of_another_user__rejected_unseen),
		cmocka_unit_test(cr_accept__caller_is_of_another_user_by_now__fails),
		cmocka_unit_test(peers_user__service_point_of_another_user__told_nothing),
		cmocka_unit_test(peers_user__listener_changed_before_its_answer__rejected),
		cmocka_unit_test(peers_user__proc_is_hidden__rejected),
		cmocka_unit_test(peers_user__process_is_not_dumpable__connects),
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
