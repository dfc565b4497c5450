// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs of our user that connect to the local socket of a listener, or that listen in place of a
 * peer, and do not speak the protocol. They raise no request, block no other connection and leave
 * nothing behind.
 */
#include "descriptors.h"
#include "hostile.h"

#define STRANGERS 100
#define AT_ONCE_US 4000000u /* less than any time-out of the library */

static int stranger_open(struct conn_fixture *f)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name;
	int rc;

	hostile_name((const struct sockaddr *)f->ia.attr.ia_address_ptr, f->listener.qual, &name);
	assert_int_not_equal(fd, -1);
	do { /* the kernel's queue may be full for a moment */
		rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	} while (rc == -1 && errno == EAGAIN && dt_now_us() < end);
	assert_int_equal(rc, 0);
	return fd;
}

static bool has_descriptors(void *arg)
{
	return count_descriptors() <= *(unsigned int *)arg;
}

/* A real request gets through without delay (the best of three: the machine may be busy), and it is
 * the only one. */
static void check_real_ones_work(struct conn_fixture *f)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i < 3 && best > AT_ONCE_US; i++) {
		const uint64_t start = dt_now_us();
		uint64_t took;

		conn_link(f, &f->a, &f->b);
		took = dt_now_us() - start;
		best = took < best ? took : best;
		conn_transfer(f, &f->a, &f->b);
		dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_ep_reset(f->b.ep));
	}
	assert_true(best <= AT_ONCE_US);
	dt_stays_empty(f->listener.evd);
	dt_no_event(f->ia.async);
}

/* --- silence --- */

static void check_silent(struct conn_fixture *f, int *fds, size_t count)
{
	unsigned int before;

	check_real_ones_work(f);
	before = count_descriptors();
	for (size_t i = 0; i < count; i++)
		fds[i] = stranger_open(f);
	check_real_ones_work(f);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	dt_until(has_descriptors, &before);
	check_real_ones_work(f);
}

/* CONN-GEN-09 */
static void listener__silent_strangers__real_ones_at_once(void **state)
{
	int fds[STRANGERS];

	check_silent(*state, fds, STRANGERS);
}

/* CONN-GEN-09: More connections than a listener keeps. */
static void listener__very_many_silent_strangers__real_ones_at_once(void **state)
{
	static int fds[700];
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2048)
		skip();
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_silent(*state, fds, COUNT_OF(fds));
}

static int short_limit_setup(void **state)
{
	setenv("DAT_SETUP_TIMEOUT_MS", "400", 1);
	return conn_setup(state);
}

static int short_limit_teardown(void **state)
{
	unsetenv("DAT_SETUP_TIMEOUT_MS");
	return conn_teardown(state);
}

static bool is_hung_up(void *arg)
{
	char byte;

	return recv(*(int *)arg, &byte, 1, MSG_DONTWAIT) == 0;
}

/* CONN-GEN-09: dropped within the limit, not before */
static void listener__silent_stranger__dropped_at_the_limit(void **state)
{
	struct conn_fixture *f = *state;
	const uint64_t start = dt_now_us();
	int fd = stranger_open(f);

	dt_until(is_hung_up, &fd);
	assert_true(dt_now_us() - start >= 350000);
	close(fd);
	check_real_ones_work(f);
}

/* CONN-GEN-09 CR-ACCEPT-22: The limit does not apply to a request that waits for its consumer. */
static void listener__request_waits_longer_than_the_limit__accepted(void **state)
{
	struct conn_fixture *f = *state;
	const uint64_t start = dt_now_us();
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	while (dt_now_us() - start < 700000)
		conn_stays_quiet(&f->a);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	while (dt_now_us() - start < 1500000)
		conn_stays_quiet(&f->b);
	conn_transfer(f, &f->a, &f->b);
}

/* --- garbage --- */

/* Reproducible random numbers. */
static uint32_t noise(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

/* Sends with up to two descriptors attached. */
static void stranger_send(int fd, const void *data, size_t len, const int *fds, size_t fd_count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd_count) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	/* the listener may have closed the connection */
	sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void talk_nonsense(struct conn_fixture *f, const int *fds)
{
	_Alignas(8) unsigned char data[2048];
	const int fd = stranger_open(f);
	const unsigned int packets = 1 + noise() % 3;

	for (unsigned int i = 0; i < packets; i++) {
		/* sizes around those of real packets, and others */
		static const size_t sizes[] = {0,  1,  7,  8,  15,  16,	 40,
					       60, 91, 92, 93, 108, 604, 2048};
		const size_t len = sizes[noise() % COUNT_OF(sizes)];

		for (size_t j = 0; j < sizeof(data); j++)
			data[j] = noise() & 3 ? (unsigned char)noise() : 0;
		if (noise() & 3)
			put_head((struct shm_wire_head *)(void *)data,
				 (enum shm_wire_type)(noise() % 12));
		stranger_send(fd, data, len, fds, noise() % 3);
	}
	close(fd);
}

/* CONN-GEN-09: with descriptors of every unfit kind attached */
static void listener__nonsense__ignored(void **state)
{
	struct conn_fixture *f = *state;
	unsigned int before;
	int fds[2];

	check_real_ones_work(f);
	before = count_descriptors();
	for (unsigned int i = 0; i < 1500; i++) {
		fds[0] = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		fds[1] = i & 1 ? open("/dev/null", O_RDWR | O_CLOEXEC)
			       : memfd_create("stranger", MFD_CLOEXEC);
		assert_true(fds[0] >= 0 && fds[1] >= 0);
		if (i & 2)
			assert_int_equal(ftruncate(fds[0], 65536), 0);
		if (i & 4)
			assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
					 0);
		talk_nonsense(f, fds);
		close(fds[0]);
		close(fds[1]);
	}
	check_real_ones_work(f);
	dt_until(has_descriptors, &before);
}

/* CONN-GEN-09: Other programs connect and close all the time while endpoints connect. */
static void talk_until_killed(struct dt_peer *peer, void *arg)
{
	struct conn_fixture *f = arg;
	int fds[2];

	fds[0] = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fds[1] = memfd_create("stranger", MFD_CLOEXEC);
	dt_peer_sync(peer);
	for (;;)
		talk_nonsense(f, fds);
}

static void listener__nonsense_all_the_time__real_ones_at_once(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_peer peer;

	dt_peer_start(&peer, talk_until_killed, f);
	dt_peer_sync(&peer);
	for (unsigned int i = 0; i < 20; i++)
		check_real_ones_work(f);
	dt_peer_kill(&peer);
	check_real_ones_work(f);
}

/* --- another program in place of a peer --- */

static int stranger_listen(struct conn_fixture *f, DAT_CONN_QUAL qual, struct sockaddr_un *name)
{
	return hostile_listen((const struct sockaddr *)f->ia.attr.ia_address_ptr, qual, name);
}

/* EP-CONNECT-22 CONN-EVT-25 CONN-EVT-26 */
static void ep_connect__listener_answers_nonsense__non_peer_rejected(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid();
	struct sockaddr_un name;
	const int server = stranger_listen(f, qual, &name);

	for (unsigned int i = 0; i < 100; i++) {
		_Alignas(8) unsigned char data[604];
		int fd;

		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 1);
		dt_connect(&f->ia, f->a.ep, qual);
		fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		assert_int_not_equal(fd, -1);
		memset(data, (int)i, sizeof(data));
		if (i & 1)
			put_head((struct shm_wire_head *)(void *)data,
				 (enum shm_wire_type)(4 + i % 9)); /* an unexpected packet */
		if (i % 5)
			stranger_send(fd, data, 1 + i * 6, NULL, 0);
		close(fd); /* sometimes it is the only one */
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		conn_expect_flushes(&f->a, 1, 1);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	close(server);
	assert_int_equal(unlink(name.sun_path), 0);
	check_real_ones_work(f);
}

/* EP-CONNECT-13 EP-CONNECT-25 */
static void ep_connect__listener_says_nothing__timed_out(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid();
	struct sockaddr_un name;
	const int server = stranger_listen(f, qual, &name);
	struct conn_args args = conn_args_of(f);

	args.qual = qual;
	args.timeout = CONN_SHORT_US;
	dt_ok(conn_try(f->a.ep, &args));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	close(server);
	assert_int_equal(unlink(name.sun_path), 0);
	conn_stays_quiet(&f->a);
}

/* EP-CONNECT-13 EP-CONNECT-20: A listener with a full queue, then no listener. */
static void ep_connect__queue_of_the_listener_full__retried_until_it_goes(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_CONN_QUAL qual = UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid();
	struct sockaddr_un name;
	const int server = stranger_listen(f, qual, &name);
	struct conn_args args = conn_args_of(f);
	struct dt_ep many[16];

	for (size_t i = 0; i < COUNT_OF(many); i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &many[i]);
		dt_connect(&f->ia, many[i].ep, qual);
	}
	args.qual = qual;
	args.timeout = CONN_SHORT_US;
	dt_ok(conn_try(f->a.ep, &args));
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_TIMED_OUT);
	for (size_t i = 0; i < COUNT_OF(many); i++)
		assert_int_equal(dt_ep_state(many[i].ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	close(server);
	assert_int_equal(unlink(name.sun_path), 0);
	for (size_t i = 0; i < COUNT_OF(many); i++)
		conn_expect_failure(&many[i], DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(listener__silent_strangers__real_ones_at_once),
		conn_test(listener__very_many_silent_strangers__real_ones_at_once),
		cmocka_unit_test_setup_teardown(listener__silent_stranger__dropped_at_the_limit,
						short_limit_setup, short_limit_teardown),
		cmocka_unit_test_setup_teardown(
			listener__request_waits_longer_than_the_limit__accepted, short_limit_setup,
			short_limit_teardown),
		conn_test(listener__nonsense__ignored),
		conn_test(listener__nonsense_all_the_time__real_ones_at_once),
		conn_test(ep_connect__listener_answers_nonsense__non_peer_rejected),
		conn_test(ep_connect__listener_says_nothing__timed_out),
		conn_test(ep_connect__queue_of_the_listener_full__retried_until_it_goes),
	};

	return cmocka_run_group_tests_name("conn_garbage", tests, NULL, NULL);
}
