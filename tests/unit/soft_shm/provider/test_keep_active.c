// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a connection leaves to the next one (connect/keep.c): the active side.
 */
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "keep_peer.h"
#include "keep_stage.h"

/* A service point of the peer. */
static int peer_listen(DAT_CONN_QUAL qual)
{
	struct sockaddr_un name;
	socklen_t len = service_name(qual, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void peer_accept(struct peer *peer, int listener)
{
	struct pollfd ready = {.fd = listener, .events = POLLIN};

	*peer = (struct peer){.fd = -1};
	assert_int_equal(poll(&ready, 1, (int)(WAIT_US / 1000)), 1);
	peer->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(peer->fd >= 0);
	assert_int_equal(peer_receive(peer), SHM_WIRE_REQUEST);
	/* the peer is of our user: it may try to read our memory */
	assert_int_not_equal(peer->wire.request.side.token_address, 0);
}

/* A segment as the passive side makes it. */
static int segment_file(void)
{
	int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct shm_file)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

/* Without a key table. */
static void peer_answers_with(struct peer *peer, enum shm_wire_type type, uint32_t ability)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	wire.accept.side.ability = ability;
	if (type == SHM_WIRE_ACCEPT)
		peer->segment_fd = segment_file();
	peer_send(peer, &wire, &peer->segment_fd, type == SHM_WIRE_ACCEPT);
	if (type == SHM_WIRE_ACCEPT)
		peer_map(peer);
	assert_int_equal(peer_receive(peer), SHM_WIRE_READY);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static uint32_t first_ability; /* of a peer that answers on a new socket */

static void peer_answers(struct peer *peer, enum shm_wire_type type)
{
	peer_answers_with(peer, type, type == SHM_WIRE_ACCEPT ? first_ability : 0);
}

/* Our endpoint connects to the peer and disconnects. */
static void visit_peer(struct peer *peer, int listener, DAT_CONN_QUAL qual)
{
	connect_to(qual);
	peer_accept(peer, listener);
	peer_answers(peer, SHM_WIRE_ACCEPT);
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_GRACEFUL_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(peer_receive(peer), SHM_WIRE_CLOSE);
	ok(core_ep_reset(stage.a));
}

#define STRANGE_QUAL 0x123456789u
#define FEW 256 /* descriptors */

/*
 * The peer sends IDLE, and our endpoint requests again; unless the socket was kept for too short a
 * time.
 */
static bool try_to_ask_again(struct peer *peer, int listener)
{
	struct peer late;

	visit_peer(peer, listener, STRANGE_QUAL);
	memset(&peer->segment->side[SHM_PASSIVE], 0x5a, sizeof(struct shm_side));
	peer_word(peer, SHM_WIRE_CLOSE,
		  SHM_WHY_DISCONNECT); /* as if it had ended the connection, too */
	peer_word(peer, SHM_WIRE_IDLE, 0);
	connect_to(STRANGE_QUAL);
	if (peer_receive(peer) == SHM_WIRE_REQUEST_KEPT)
		return true;
	peer_close(peer);
	peer_accept(&late, listener);
	peer_answers(&late, SHM_WIRE_ACCEPT);
	peer_close(&late);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	ok(core_ep_reset(stage.a));
	return false;
}

static void ask_again(struct peer *peer, int listener)
{
	unsigned tries = 0;

	while (!try_to_ask_again(peer, listener))
		assert_true(++tries < 100);
}

/* --- the active side --- */

static void connect__peer_not_idle_yet__new_socket(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer first, second;

	(void)state;
	visit_peer(&first, listener, STRANGE_QUAL);
	visit_peer(&second, listener, STRANGE_QUAL);
	peer_close(&first);
	peer_close(&second);
	close(listener);
}

static void connect__peer_idle__asks_in_an_empty_segment(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct shm_side empty = {.armed = 0};
	struct peer peer;

	(void)state;
	ask_again(&peer, listener);
	assert_memory_equal(&peer.segment->side[SHM_PASSIVE], &empty, sizeof(empty));
	assert_int_equal(peer.segment->side[SHM_ACTIVE].revoked, 0);
	assert_int_equal(peer.segment->side[SHM_ACTIVE].is_over, 0);
	peer_answers(&peer, SHM_WIRE_ACCEPT_KEPT);
	peer_close(&peer);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	close(listener);
}

/* The consumer there may have seen the request: it is not sent twice. */
static void connect__peer_answers_by_the_end__rejected(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer;

	(void)state;
	ask_again(&peer, listener);
	peer_close(&peer);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	close(listener);
}

static void connect__first_request_refused_as_kept__rejected(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer;

	(void)state;
	connect_to(STRANGE_QUAL);
	peer_accept(&peer, listener);
	peer_word(&peer, SHM_WIRE_REJECT, SHM_WHY_KEPT);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	peer_close(&peer);
	close(listener);
}

static void connect__kept_socket_refused__requests_again_in_another_segment(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer, next;

	(void)state;
	ask_again(&peer, listener);
	peer_word(&peer, SHM_WIRE_REJECT, SHM_WHY_KEPT);
	close(peer.fd);
	peer_accept(&next, listener);
	memset(peer.segment, 0x5a, sizeof(*peer.segment));
	peer_answers(&next, SHM_WIRE_ACCEPT);
	assert_int_equal(next.segment->side[SHM_ACTIVE].revoked, 0);
	peer_close(&next);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	munmap(peer.segment, sizeof(*peer.segment));
	close(listener);
}

/* Registers a page of a file that a peer can map. */
static DAT_RMR_CONTEXT register_file(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	int fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	region.for_va = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(region.for_va, MAP_FAILED);
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &rkey, NULL, NULL));
	return rkey; /* the descriptor stays open: it is what the peer gets */
}

/* PZ-CREATE-04: the new connection knows the zone of the endpoint. */
static void connect__kept_socket_refused__peer_may_map_our_memory(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer, next;
	DAT_RMR_CONTEXT rkey = register_file();

	(void)state;
	ask_again(&peer, listener);
	peer_word(&peer, SHM_WIRE_REJECT, SHM_WHY_KEPT);
	peer_close(&peer);
	peer_accept(&next, listener);
	peer_answers_with(&next, SHM_WIRE_ACCEPT, SHM_ABLE_TRUST);
	peer_word(&next, SHM_WIRE_MAP_ASK, rkey);
	assert_int_equal(peer_receive(&next), SHM_WIRE_MAP_GIVE);
	peer_close(&next);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	close(listener);
}

/* Before Linux 6.16 the kernel cannot refuse descriptors of the peer. */
static bool is_kernel_old;

bool __real_shm_socket_refuse_fds(int fd, bool is_refusing);
bool __wrap_shm_socket_refuse_fds(int fd, bool is_refusing);
bool __wrap_shm_socket_refuse_fds(int fd, bool is_refusing)
{
	return !is_kernel_old && __real_shm_socket_refuse_fds(fd, is_refusing);
}

/* The peer sends a segment, as on a new socket. */
static void answer_as_if_new(void)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer;
	union shm_wire wire;
	int fd;

	ask_again(&peer, listener);
	shm_wire_prepare(&wire, SHM_WIRE_ACCEPT);
	fd = segment_file();
	peer_send(&peer, &wire, &fd, 1);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	close(fd);
	peer_close(&peer);
	close(listener);
}

/* CONN-GEN-09 */
static void connect__stranger_brings_descriptors_with_a_kept_answer__rejected(void **state)
{
	(void)state;
	is_kernel_old = true;
	answer_as_if_new();
	is_kernel_old = false;
}

/* CONN-GEN-09: it may send descriptors, but not another segment */
static void connect__trusted_peer_answers_as_if_new__rejected(void **state)
{
	(void)state;
	first_ability = SHM_ABLE_TRUST;
	answer_as_if_new();
	first_ability = 0;
}

static void disconnect__no_connection_follows__nothing_is_kept_for_long(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer;

	(void)state;
	visit_peer(&peer, listener, STRANGE_QUAL);
	peer_word(&peer, SHM_WIRE_IDLE, 0);
	assert_int_equal(peer_receive(&peer), 0);
	peer_close(&peer);
	close(listener);
}

/* With no descriptor left where one is needed, which the kept connection holds. */
static DAT_RETURN connect_with_few_descriptors(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rlimit old, low;
	int spare[FEW], count = 0;
	DAT_RETURN ret;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = FEW;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while ((spare[count] = dup(0)) >= 0)
		count++;
	ret = core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, STRANGE_QUAL + 1, WAIT_US, 0,
			      NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	while (count)
		close(spare[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	return ret;
}

/* EP-CONNECT-42 */
static void connect__no_descriptor_left__what_is_kept_makes_room(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	DAT_RETURN ret = DAT_SUCCESS;
	struct peer peer;

	(void)state;
	/* on a busy machine it may not be kept any more */
	for (unsigned tries = 0; tries < 20; tries++) {
		visit_peer(&peer, listener, STRANGE_QUAL);
		ret = connect_with_few_descriptors();
		peer_close(&peer);
		if (ret == DAT_SUCCESS)
			break;
	}
	ok(ret);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	close(listener);
}

/*
 * What the peer does at the moment when the service thread may see the socket, called in the thread
 * that keeps it.
 */
static void (*when_watched)(void);

int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	int rc = __real_epoll_ctl(epoll_fd, op, fd, event);
	void (*now)(void) = pthread_equal(pthread_self(), stage.thread) ? when_watched : NULL;

	if (op == EPOLL_CTL_ADD && now) {
		when_watched = NULL;
		now();
	}
	return rc;
}

static struct peer quick;

/*
 * The thread is inside a call that holds the endpoint's lock. It must not serve the socket, as a
 * wait would do, so it dequeues and leaves the request to the service thread.
 */
static void ask_at_once(void)
{
	DAT_EVENT event;

	while (peer_receive(&quick) != SHM_WIRE_IDLE)
		continue;
	peer_ask(&quick, SHM_WIRE_REQUEST_KEPT, NULL);
	while (core_evd_dequeue(stage.request_evd, &event) != DAT_SUCCESS)
		sched_yield();
	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
}

/* The peer asks, unless the service thread still used the connection and kept its socket. */
static bool is_asked_at_once(void)
{
	bool is_asked;

	peer_is_here(&quick);
	when_watched = ask_at_once;
	ok(core_ep_disconnect(stage.b, DAT_CLOSE_ABRUPT_FLAG));
	is_asked = !when_watched;
	when_watched = NULL;
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.b));
	return is_asked;
}

static void peer__asks_at_once__accepted(void **state)
{
	unsigned tries = 0;

	(void)state;
	while (!is_asked_at_once()) {
		peer_close(&quick);
		assert_true(++tries < 100);
	}
	ok(core_cr_accept(stage.cr, stage.b, 0, NULL));
	assert_int_equal(peer_receive(&quick), SHM_WIRE_ACCEPT_KEPT);
	peer_close(&quick);
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(connect__peer_not_idle_yet__new_socket),
		TEST(connect__peer_idle__asks_in_an_empty_segment),
		TEST(connect__peer_answers_by_the_end__rejected),
		TEST(connect__first_request_refused_as_kept__rejected),
		TEST(connect__kept_socket_refused__requests_again_in_another_segment),
		TEST(connect__kept_socket_refused__peer_may_map_our_memory),
		TEST(connect__no_descriptor_left__what_is_kept_makes_room),
		TEST(peer__asks_at_once__accepted),
		TEST(connect__stranger_brings_descriptors_with_a_kept_answer__rejected),
		TEST(connect__trusted_peer_answers_as_if_new__rejected),
		TEST(disconnect__no_connection_follows__nothing_is_kept_for_long),
	};

	return cmocka_run_group_tests_name("shm keep", tests, provide, NULL);
}
