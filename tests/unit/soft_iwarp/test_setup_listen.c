// SPDX-License-Identifier: BSD-2-Clause
/* Service points: the ports at which a qualifier is served, and peers that stay silent. */
#include "frozen_clock.h"
#include "setup_peer.h"
#include "setup_stage.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "soft/copy.h"

/* --- system calls that fail once, with that errno; 0: none does --- */

static _Atomic int bind_errno;	/* of this thread */
static _Atomic int watch_errno; /* of the service thread, for that operation */
static int watch_op;

int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	int error = address->sa_family == AF_INET ? atomic_exchange(&bind_errno, 0) : 0;

	if (!error)
		return __real_bind(fd, address, size);
	errno = error;
	return -1;
}

int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	int error = 0;

	if (soft_is_library_thread && op == watch_op)
		error = atomic_exchange(&watch_errno, 0);
	if (!error)
		return __real_epoll_ctl(epoll_fd, op, fd, event);
	errno = error;
	return -1;
}

static void fail_watch(int op)
{
	watch_op = op;
	atomic_store(&watch_errno, ENOSPC);
}

/* --- ports --- */

/* A request for that qualifier is offered to the consumer at that port. */
static void expect_offered(uint16_t port, DAT_CONN_QUAL qual)
{
	const struct cm_request request = {.qual = qual};
	uint8_t bytes[CM_MAX];
	struct frame frame = make_frame(REQUEST, 0, 1, bytes, cm_put_request(&request, bytes));
	int fd = dial(port);

	put_frame(fd, &frame);
	take_request();
	ok(core_cr_reject(stage.cr));
	get_frame(fd, REPLY);
	expect_closed(fd);
}

/* Can that port be listened at by another program? */
static bool is_free(uint16_t port)
{
	struct sockaddr_in address = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int yes = 1;
	bool is_bound;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
	is_bound = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return is_bound;
}

/* IWCM-05 CONN-GEN-10 PSP-FREE-06 */
static void psp_create__port_free_or_not__own_number_or_derived_port(void **state)
{
	const DAT_CONN_QUAL wide = (DAT_CONN_QUAL)getpid() << 32 | 5;
	uint16_t port;
	int alien = listen_at(0, &port);
	DAT_PSP_HANDLE psp;

	(void)state;
	/* of an ordinary server */
	psp = listen_for(port);
	assert_false(is_free(cm_port(port, 1)));
	expect_offered(cm_port(port, 1), port);
	ok(core_psp_free(psp));
	assert_true(is_free(cm_port(port, 1)));
	/* free */
	close(alien);
	psp = listen_for(port);
	assert_false(is_free(port));
	assert_true(is_free(cm_port(port, 1)));
	expect_offered(port, port);
	ok(core_psp_free(psp));
	assert_true(is_free(port));
	/* above 65535 */
	psp = listen_for(wide);
	assert_false(is_free(cm_port(wide, 1)));
	expect_offered(cm_port(wide, 1), wide);
	ok(core_psp_free(psp));
}

/* IWCM-05: not available to this process, for whatever reason */
static void psp_create__port_cannot_be_bound__derived_port(void **state)
{
	static const int errors[] = {EADDRINUSE, EACCES, EADDRNOTAVAIL, EPERM};
	uint16_t port;

	(void)state;
	close(listen_at(0, &port));
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		DAT_PSP_HANDLE psp;

		atomic_store(&bind_errno, errors[i]);
		psp = listen_for(port);
		assert_true(is_free(port));
		expect_offered(cm_port(port, 1), port);
		ok(core_psp_free(psp));
	}
}

/* IWCM-09 PSP-CREATE-16 */
static void psp_create__twice__in_use_and_only_at_the_address(void **state)
{
	struct sockaddr_in address = loopback((uint16_t)stage.qual);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	DAT_PSP_HANDLE psp;

	(void)state;
	assert_int_equal(DAT_GET_TYPE(core_psp_create(stage.ia, stage.qual, stage.request_evd,
						      DAT_PSP_CONSUMER_FLAG, &psp)),
			 DAT_CONN_QUAL_IN_USE);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
}

/* IWCM-18 MPA-11 */
static void request__without_header_at_a_derived_port__refused(void **state)
{
	uint16_t port;
	int alien = listen_at(0, &port);
	DAT_PSP_HANDLE psp = listen_for(port);
	struct frame frame = make_frame(REQUEST, 0, 1, "hello", 5);
	int fd = dial(cm_port(port, 1));

	(void)state;
	put_frame(fd, &frame);
	frame = get_frame(fd, REPLY);
	assert_int_equal(frame.head[16], FLAG_R);
	assert_int_equal(frame_size(&frame), IW_MPA_HEAD);
	expect_closed(fd);
	expect_quiet(stage.request_evd);
	ok(core_psp_free(psp));
	close(alien);
}

/* --- silent peers --- */

#define SILENT_MS 100u /* nobody is dropped before */

/* IWCM-39: the requests come later than all connections, but within the time that they have. */
static void listener__many_late_requests__nobody_dropped(void **state)
{
	enum { COUNT = 300 };
	struct frame frame = make_frame(REQUEST, 0, 1, "late", 4);
	int fds[COUNT];

	(void)state;
	atomic_store(&frozen_ns, now_ms() * 1000000);
	for (int i = 0; i < COUNT; i++)
		fds[i] = dial(stage.qual);
	for (int i = 0; i < COUNT; i++) {
		put_frame(fds[i], &frame);
		assert_int_equal(take_request().private_data_size, 4);
		ok(core_cr_reject(stage.cr));
		get_frame(fds[i], REPLY);
		close(fds[i]);
	}
}

static int go_on(void **state)
{
	atomic_store(&frozen_ns, 0);
	return close_stage(state);
}

/* IWCM-39 CONN-GEN-09 */
static void listener__many_silent_peers__oldest_make_room(void **state)
{
	enum { COUNT = 300, KEPT = 256 };
	struct frame frame = make_frame(REQUEST, 0, 1, "first", 5);
	uint64_t begin = now_ms();
	int fds[COUNT], fd;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		fds[i] = dial(stage.qual);
		if (i % 2)
			put(fds[i], "MPA", 3);
	}
	fd = dial(stage.qual);
	put_frame(fd, &frame);
	assert_int_equal(take_request().private_data_size, 5);
	assert_true(now_ms() - begin >= SILENT_MS);
	for (int i = 0; i < COUNT - KEPT + 1; i++)
		expect_closed(fds[i]);
	for (int i = COUNT - KEPT + 1; i < COUNT; i++) {
		expect_silence(fds[i]);
		close(fds[i]);
	}
	ok(core_cr_reject(stage.cr));
	close(fd);
}

/* IWCM-25 CONN-GEN-09 */
static void listener__a_byte_now_and_then__closed_after_the_setup_timeout(void **state)
{
	struct frame frame = make_frame(REQUEST, 0, 1, NULL, 0);
	uint64_t begin = now_ms();
	int fd = dial(stage.qual);

	(void)state;
	assert_in_range(put_slowly(fd, &frame, IW_MPA_HEAD - 1, (int)HASTY_MS / 4), 0,
			IW_MPA_HEAD - 2);
	assert_true(now_ms() - begin >= HASTY_MS);
	expect_closed(fd);
}

static uint64_t used_ms(void)
{
	struct rusage used;

	assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

/* IWCM-40 */
static void listener__no_descriptors__idle_and_works_again(void **state)
{
	struct frame frame = make_frame(REQUEST, 0, 1, "first", 5);
	struct sockaddr_in address = loopback((uint16_t)stage.qual);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rlimit limit, low;
	uint64_t used;

	(void)state;
	expect_served(); /* nothing is opened or closed from now on */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)dup(fd);
	close((int)low.rlim_cur);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	put_frame(fd, &frame);
	used = used_ms();
	assert_int_equal(poll(NULL, 0, 400), 0);
	assert_true(used_ms() - used < 100);
	expect_quiet(stage.request_evd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(take_request().private_data_size, 5);
	ok(core_cr_reject(stage.cr));
	close(fd);
}

/* IWCM-37: the peer learns of it at once, not after the time that a silent one has */
static void listener__caller_cannot_be_watched__closed(void **state)
{
	int fd;

	(void)state;
	fail_watch(EPOLL_CTL_ADD);
	fd = dial(stage.qual);
	expect_closed(fd);
	expect_served();
}

/* IWCM-37 EP-CONNECT-22: the reply could not be waited for */
static void connect__reply_cannot_be_watched__rejected(void **state)
{
	uint16_t port;
	int listener = listen_at(0, &port);
	int fd;

	(void)state;
	fail_watch(EPOLL_CTL_MOD);
	connect_with(port, WAIT_US, NULL, 0);
	fd = answer_call(listener);
	get_frame(fd, REQUEST);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_closed(fd);
	close(listener);
}

/* IWCM-70: an adapter whose last service point has gone takes no share from this one */
static void listener__other_adapter_listens_no_more__whole_share(void **state)
{
	enum { LIMIT = 112, COUNT = LIMIT / 4 + 8 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	struct rlimit limit, low;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_IA_HANDLE ia;
	int fds[COUNT];

	(void)state;
	ok(core_ia_open_safe((DAT_NAME_PTR)(uintptr_t) "hasty", 8, &async, &ia));
	ok(core_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
	ok(core_psp_create_any(ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	ok(core_psp_free(psp));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < COUNT; i++)
		fds[i] = dial(stage.qual);
	expect_served();
	for (int i = 0; i < COUNT; i++) {
		expect_silence(fds[i]);
		close(fds[i]);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ok(core_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Silent peers are dropped with the service point. */
static void psp_free__silent_peers__closed(void **state)
{
	int fd = dial(stage.qual);

	(void)state;
	expect_served();
	ok(core_psp_free(stage.psp));
	expect_closed(fd);
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
#define hasty(name) cmocka_unit_test_setup_teardown(name, open_hasty, close_stage)
	const struct CMUnitTest tests[] = {
		one(psp_create__port_free_or_not__own_number_or_derived_port),
		one(psp_create__port_cannot_be_bound__derived_port),
		one(listener__caller_cannot_be_watched__closed),
		one(connect__reply_cannot_be_watched__rejected),
		one(listener__other_adapter_listens_no_more__whole_share),
		one(psp_create__twice__in_use_and_only_at_the_address),
		one(request__without_header_at_a_derived_port__refused),
		cmocka_unit_test_setup_teardown(listener__many_late_requests__nobody_dropped,
						open_stage, go_on),
		one(listener__many_silent_peers__oldest_make_room),
		hasty(listener__a_byte_now_and_then__closed_after_the_setup_timeout),
		one(listener__no_descriptors__idle_and_works_again),
		one(psp_free__silent_peers__closed),
	};

	return cmocka_run_group_tests_name("setup_listen", tests, provide, NULL);
}
