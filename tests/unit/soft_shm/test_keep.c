// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole provider, linked into the test: what a connection leaves to the next one (keep.c), with
 * peers that are played by the test on the socket and in the segment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/calls.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/segment.h"
#include "soft/shm/wire.h"
#include "soft/soft.h"

#define WAIT_US 20000000u
#define LENGTH 64u

#define ok(call) assert_int_equal((call), DAT_SUCCESS)

/* --- libdat's part --- */

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

/* --- an adapter with two endpoints --- */

static struct stage {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE request_evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE a, b; /* a connects, b accepts */
	DAT_CR_HANDLE cr;
	uint8_t memory[2 * LENGTH];
	DAT_LMR_CONTEXT lkey;
	pthread_t thread; /* the test's */
} stage;

static int open_stage(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = stage.memory};
	DAT_LMR_HANDLE lmr;

	(void)state;
	stage = (struct stage){.qual = 0, .thread = pthread_self()};
	ok(core_ia_open_safe((DAT_NAME_PTR) "keep", 8, &stage.async, &stage.ia));
	ok(core_pz_create(stage.ia, &stage.pz));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &stage.evd));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &stage.request_evd));
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.a));
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.b));
	ok(core_psp_create_any(stage.ia, &stage.qual, stage.request_evd, DAT_PSP_CONSUMER_FLAG,
			       &stage.psp));
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(stage.memory), stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &stage.lkey, NULL, NULL, NULL));
	return 0;
}

static int close_stage(void **state)
{
	(void)state;
	ok(core_ia_close(stage.ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}

static DAT_EVENT next_of(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	ok(core_evd_wait(evd, WAIT_US, 1, &event, &more));
	return event;
}

static void expect(DAT_EVENT_NUMBER number)
{
	assert_int_equal(next_of(stage.evd).event_number, number);
}

static void connect_to(DAT_CONN_QUAL qual)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, qual, WAIT_US, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void take_request(void)
{
	DAT_EVENT event = next_of(stage.request_evd);

	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
}

static void accept_request(void)
{
	take_request();
	ok(core_cr_accept(stage.cr, stage.b, 0, NULL));
}

static void set_up(void)
{
	connect_to(stage.qual);
	accept_request();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void end(DAT_EP_HANDLE ep)
{
	ok(core_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a));
	ok(core_ep_reset(stage.b));
}

static void send_one(DAT_EP_HANDLE from, DAT_EP_HANDLE to, uint8_t byte)
{
	DAT_LMR_TRIPLET source = {stage.lkey, 0, (uintptr_t)stage.memory, LENGTH};
	DAT_LMR_TRIPLET target = {stage.lkey, 0, (uintptr_t)stage.memory + LENGTH, LENGTH};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	memset(stage.memory, byte, LENGTH);
	ok(core_ep_post_recv(to, 1, &target, cookie, 0));
	ok(core_ep_post_send(from, 1, &source, cookie, 0));
	for (int i = 0; i < 2; i++) {
		DAT_EVENT event = next_of(stage.evd);

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
	assert_memory_equal(stage.memory, stage.memory + LENGTH, LENGTH);
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void expect_descriptors(int count)
{
	for (int i = 0; i < 200 && open_descriptors() != count; i++)
		poll(NULL, 0, 10);
	assert_int_equal(open_descriptors(), count);
}

/* --- a peer that the test plays --- */

struct peer {
	int fd;
	int segment_fd;
	struct shm_segment *segment;
	union shm_wire wire; /* the packet that came last */
};

static socklen_t service_name(DAT_CONN_QUAL qual, struct sockaddr_un *name)
{
	const union core_sockaddr address = {
		.in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};

	return shm_listen_name(&address, qual, name);
}

static void peer_send(const struct peer *peer, const union shm_wire *wire, const int *fds,
		      unsigned count)
{
	struct iovec iov = {(void *)(uintptr_t)wire, shm_wire_size(wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {.bytes = ""};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *header;

		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	assert_true(sendmsg(peer->fd, &message, MSG_NOSIGNAL) > 0);
}

static void peer_word(const struct peer *peer, enum shm_wire_type type, uint32_t word)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	if (type != SHM_WIRE_WAKE)
		wire.word.word = word;
	peer_send(peer, &wire, NULL, 0);
}

/* The type of the next packet, 0 at the end of the socket. Of its descriptors the segment is kept.
 */
static unsigned peer_receive(struct peer *peer)
{
	struct iovec iov = {&peer->wire, sizeof(peer->wire)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {.bytes = ""};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct pollfd news = {.fd = peer->fd, .events = POLLIN};
	struct cmsghdr *header;
	int fds[2];

	assert_int_equal(poll(&news, 1, (int)(WAIT_US / 1000)), 1);
	if (recvmsg(peer->fd, &message, MSG_CMSG_CLOEXEC) <= 0)
		return 0;
	header = CMSG_FIRSTHDR(&message);
	if (header) {
		size_t size = header->cmsg_len - CMSG_LEN(0);

		memcpy(fds, CMSG_DATA(header), size);
		for (size_t i = 1; i < size / sizeof(int); i++)
			close(fds[i]);
		if (peer->wire.head.type == SHM_WIRE_REQUEST)
			peer->segment_fd = fds[0];
		else
			close(fds[0]);
	}
	return peer->wire.head.type;
}

static void peer_map(struct peer *peer)
{
	peer->segment = mmap(NULL, sizeof(*peer->segment), PROT_READ | PROT_WRITE, MAP_SHARED,
			     peer->segment_fd, 0);
	assert_ptr_not_equal(peer->segment, MAP_FAILED);
	close(peer->segment_fd);
}

static void peer_close(struct peer *peer)
{
	close(peer->fd);
	if (peer->segment)
		munmap(peer->segment, sizeof(*peer->segment));
}

static void peer_ask(const struct peer *peer, enum shm_wire_type type, const int *fds)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	wire.request.family = AF_INET;
	wire.request.qual = stage.qual;
	wire.request.side.port = 1;
	peer_send(peer, &wire, fds, fds ? 2 : 0);
}

/* A stranger, which shows no key table, calls our service point, and is accepted. */
static void peer_is_here(struct peer *peer)
{
	struct sockaddr_un name;
	socklen_t len = service_name(stage.qual, &name);
	int fds[2] = {memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING),
		      open("/dev/null", O_RDONLY | O_CLOEXEC)};

	*peer = (struct peer){.segment_fd = fds[0]};
	peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(peer->fd >= 0 && fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(ftruncate(fds[0], sizeof(struct shm_segment)), 0);
	assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	assert_int_equal(connect(peer->fd, (struct sockaddr *)&name, len), 0);
	peer_ask(peer, SHM_WIRE_REQUEST, fds);
	close(fds[1]);
	peer_map(peer);
	accept_request();
	assert_int_equal(peer_receive(peer), SHM_WIRE_ACCEPT);
	peer_word(peer, SHM_WIRE_READY, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* ... and ends the connection. */
static void peer_has_been_here(struct peer *peer)
{
	peer_is_here(peer);
	peer_word(peer, SHM_WIRE_CLOSE, SHM_WHY_DISCONNECT);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.b));
}

/* A service point of a stranger. */
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
	struct pollfd news = {.fd = listener, .events = POLLIN};

	*peer = (struct peer){.fd = -1};
	assert_int_equal(poll(&news, 1, (int)(WAIT_US / 1000)), 1);
	peer->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(peer->fd >= 0);
	assert_int_equal(peer_receive(peer), SHM_WIRE_REQUEST);
	peer_map(peer);
}

static void peer_answers(struct peer *peer, enum shm_wire_type type)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	peer_send(peer, &wire, &fd, type == SHM_WIRE_ACCEPT);
	close(fd);
	assert_int_equal(peer_receive(peer), SHM_WIRE_READY);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Our endpoint connects to the stranger and disconnects. */
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

/* The stranger is idle, and our endpoint asks it again; unless it was kept for too short a time. */
static bool try_to_ask_again(struct peer *peer, int listener)
{
	struct peer late;

	visit_peer(peer, listener, STRANGE_QUAL);
	memset(&peer->segment->side[SHM_PASSIVE], 0x5a, sizeof(struct shm_side));
	peer_word(peer, SHM_WIRE_CLOSE, SHM_WHY_DISCONNECT); /* as one that has ended it, too */
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

/* --- the two sides together --- */

static void connect__again_and_again__bytes_move_both_ways(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		set_up();
		/* the rings end at another place each time, some behind their first lap */
		for (int j = 0; j < i * 8; j++)
			send_one(stage.a, stage.b, (uint8_t)(i + j));
		send_one(stage.b, stage.a, (uint8_t)i);
		end(i & 1 ? stage.a : stage.b);
	}
}

static void connect__again__takes_the_socket_of_the_last_one(void **state)
{
	int descriptors;

	(void)state;
	set_up();
	descriptors = open_descriptors();
	for (int i = 0; i < 20; i++) {
		end(stage.a);
		set_up();
	}
	/* some more while IDLE was late */
	assert_in_range(open_descriptors(), descriptors, descriptors + 8);
	end(stage.a);
	expect_descriptors(descriptors - 2);
}

static void connect__service_point_gone__rejected_and_found_when_it_is_back(void **state)
{
	(void)state;
	set_up();
	end(stage.a);
	ok(core_psp_free(stage.psp));
	connect_to(stage.qual);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	ok(core_ep_reset(stage.a));
	for (int i = 0; i < 2; i++) { /* the second time, what the first one has left is kept */
		ok(core_psp_create(stage.ia, stage.qual, stage.request_evd, DAT_PSP_CONSUMER_FLAG,
				   &stage.psp));
		set_up();
		end(stage.a);
		ok(core_psp_free(stage.psp));
	}
}

/* --- the passive side --- */

static void peer__asks_again__segment_is_as_new(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	assert_int_equal(peer.segment->side[SHM_PASSIVE].revoked, 1);
	/* what it sent late belongs to the connection before */
	peer_word(&peer, SHM_WIRE_WAKE, 0);
	peer_word(&peer, SHM_WIRE_KEY_GONE, 5);
	memset(peer.segment->side, 0, sizeof(peer.segment->side));
	peer_ask(&peer, SHM_WIRE_REQUEST_KEPT, NULL);
	accept_request();
	assert_int_equal(peer_receive(&peer), SHM_WIRE_ACCEPT_KEPT);
	peer_word(&peer, SHM_WIRE_READY, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(peer.segment->side[SHM_PASSIVE].revoked, 0);
	peer_close(&peer);
	expect(DAT_CONNECTION_EVENT_BROKEN);
}

/* It leaves all words and rings as they are, or worse. */
static void peer__asks_again_in_a_dirty_segment__breaks_its_own_connection(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	memset(peer.segment, 0x5a, sizeof(*peer.segment));
	peer_ask(&peer, SHM_WIRE_REQUEST_KEPT, NULL);
	accept_request();
	assert_int_equal(peer_receive(&peer), SHM_WIRE_ACCEPT_KEPT);
	peer_word(&peer, SHM_WIRE_READY, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	peer_close(&peer);
}

static void peer__asks_with_descriptors_or_nonsense__dropped(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int descriptors;

	(void)state;
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 3; i++) {
		int fds[2] = {null, null};
		struct peer peer;

		peer_has_been_here(&peer);
		assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
		if (i == 0)
			assert_true(send(peer.fd, "nonsense", 8, MSG_NOSIGNAL) == 8);
		else if (i == 1)
			shutdown(peer.fd, SHUT_WR);
		else /* ignored as one of before, and nothing of it stays */
			peer_ask(&peer, SHM_WIRE_REQUEST, fds);
		if (i < 2)
			assert_int_equal(peer_receive(&peer), 0);
		peer_close(&peer);
		expect_descriptors(descriptors);
	}
	close(null);
}

static void peer__many_that_ask_no_more__few_are_kept(void **state)
{
	struct peer peers[24];
	unsigned kept = 0;

	(void)state;
	for (unsigned i = 0; i < 24; i++) {
		peer_has_been_here(&peers[i]);
		kept += peer_receive(&peers[i]) == SHM_WIRE_IDLE;
	}
	assert_int_equal(kept, 16);
	for (unsigned i = 0; i < 24; i++)
		peer_close(&peers[i]);
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

/* The consumer there may have seen the request: it is not made twice. */
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

static void connect__kept_socket_refused__calls_anew_in_another_segment(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer, next;

	(void)state;
	ask_again(&peer, listener);
	peer_word(&peer, SHM_WIRE_REJECT, SHM_WHY_KEPT);
	close(peer.fd);
	peer_accept(&next, listener);
	memset(peer.segment, 0x5a, sizeof(*peer.segment));
	assert_int_equal(next.segment->side[SHM_PASSIVE].revoked, 0);
	peer_answers(&next, SHM_WIRE_ACCEPT);
	peer_close(&next);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	munmap(peer.segment, sizeof(*peer.segment));
	close(listener);
}

static void connect__peer_brings_descriptors_with_a_kept_answer__rejected(void **state)
{
	int listener = peer_listen(STRANGE_QUAL);
	struct peer peer;
	union shm_wire wire;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	ask_again(&peer, listener);
	shm_wire_prepare(&wire, SHM_WIRE_ACCEPT);
	peer_send(&peer, &wire, &fd, 1);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	close(fd);
	peer_close(&peer);
	close(listener);
}

static void disconnect__nobody_connects_again__nothing_is_kept_for_long(void **state)
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

/* With one descriptor left where two are needed; the third is that of the connection before. */
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
	close(spare[--count]);
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
	/* on a busy machine it may be kept no more */
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

/* What a stranger does the moment that the service thread may see it, in the thread that keeps. */
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

static void ask_at_once(void)
{
	while (peer_receive(&quick) != SHM_WIRE_IDLE)
		continue;
	peer_ask(&quick, SHM_WIRE_REQUEST_KEPT, NULL);
	take_request();
}

static void peer__asks_at_once__accepted(void **state)
{
	(void)state;
	peer_is_here(&quick);
	when_watched = ask_at_once;
	ok(core_ep_disconnect(stage.b, DAT_CLOSE_ABRUPT_FLAG));
	assert_null(when_watched);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.b));
	ok(core_cr_accept(stage.cr, stage.b, 0, NULL));
	assert_int_equal(peer_receive(&quick), SHM_WIRE_ACCEPT_KEPT);
	peer_close(&quick);
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

/* It is not asked by mistake where another process has the service point by then. */
static void peer__kept_when_the_service_point_goes__its_socket_ends(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	ok(core_psp_free(stage.psp));
	assert_int_equal(peer_receive(&peer), 0);
	peer_close(&peer);
}

static void peer__asks_no_more__not_kept_for_ever(void **state)
{
	struct peer peer;

	(void)state;
	peer_has_been_here(&peer);
	assert_int_equal(peer_receive(&peer), SHM_WIRE_IDLE);
	assert_int_equal(peer_receive(&peer), 0);
	peer_close(&peer);
}

static int provide(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "keep",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};

	(void)state;
	dat_provider_init(&info, "127.0.0.1");
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(connect__again_and_again__bytes_move_both_ways),
		TEST(connect__again__takes_the_socket_of_the_last_one),
		TEST(connect__service_point_gone__rejected_and_found_when_it_is_back),
		TEST(peer__asks_again__segment_is_as_new),
		TEST(peer__asks_again_in_a_dirty_segment__breaks_its_own_connection),
		TEST(peer__asks_with_descriptors_or_nonsense__dropped),
		TEST(peer__many_that_ask_no_more__few_are_kept),
		TEST(connect__peer_not_idle_yet__new_socket),
		TEST(connect__peer_idle__asks_in_an_empty_segment),
		TEST(connect__peer_answers_by_the_end__rejected),
		TEST(connect__first_request_refused_as_kept__rejected),
		TEST(connect__kept_socket_refused__calls_anew_in_another_segment),
		TEST(connect__no_descriptor_left__what_is_kept_makes_room),
		TEST(peer__asks_at_once__accepted),
		TEST(peer__kept_when_the_service_point_goes__its_socket_ends),
		TEST(peer__asks_no_more__not_kept_for_ever),
		TEST(connect__peer_brings_descriptors_with_a_kept_answer__rejected),
		TEST(disconnect__nobody_connects_again__nothing_is_kept_for_long),
	};

	return cmocka_run_group_tests_name("shm keep", tests, provide, NULL);
}
