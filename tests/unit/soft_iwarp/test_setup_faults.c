// SPDX-License-Identifier: BSD-2-Clause
/*
 * The set-up over TCP on a system whose calls fail: each call fails once in turn. The attempt is
 * reported once, and nothing is left.
 */
#include <errno.h>
#include <sys/socket.h>

#include "../soft_shm/provider/faults_set_up.h"

#define WRAP(type, name, parameters, arguments)                                                    \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fault_hits(#name) ? -1 : __real_##name arguments;                           \
	}

WRAP(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
WRAP(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags))
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size))
WRAP(int, getpeername, (int fd, struct sockaddr *address, socklen_t *size), (fd, address, size))

/* PSP-CRANY-13 IWCM-37 */
static void psp_create__a_system_call_fails__nothing_left(void **state)
{
	static const struct fault faults[] = {
		{"core_slab_alloc", ENOMEM}, {"socket", EMFILE},       {"socket", ENFILE},
		{"setsockopt", ENOMEM},	     {"bind", ENOMEM},	       {"bind", EADDRINUSE},
		{"listen", ENOBUFS},	     {"getsockname", ENOBUFS}, {"epoll_create1", EMFILE},
		{"epoll_ctl", ENOSPC},	     {"eventfd", EMFILE},      {"pthread_create", EAGAIN},
	};

	(void)state;
	play_all(&scene_listen, faults, COUNT(faults));
}

static const struct fault call_faults[] = {
	{"core_slab_alloc", ENOMEM},
	{"mmap64", ENOMEM},
	{"socket", EMFILE},
	{"setsockopt", ENOMEM},
	{"bind", EADDRNOTAVAIL},
	{"bind", EADDRINUSE},
	{"bind", ENOMEM},
	{"connect", EAGAIN},
	{"connect", EADDRNOTAVAIL},
	{"connect", EHOSTUNREACH},
	{"connect", ECONNREFUSED},
	{"connect", ETIMEDOUT},
	{"connect", ENOBUFS},
	{"getsockname", ENOBUFS},
	{"getsockopt", EINVAL},
	{"epoll_ctl", ENOSPC},
	{"recv", ECONNRESET},
	{"recv", EINTR},
	{"send", EPIPE},
	{"send", EINTR},
	{"send", EAGAIN},
	{"send", ENOBUFS},
};

/* EP-CONNECT-22 EP-CONNECT-42 EP-CONNECT-43 IWCM-37 */
static void ep_connect__a_system_call_fails__reported_once(void **state)
{
	(void)state;
	play_all(&scene_connect, call_faults, COUNT(call_faults));
}

/* CR-ACCEPT-28 IWCM-37 */
static void cr_accept__a_system_call_fails__reported_once(void **state)
{
	(void)state;
	play_all(&scene_accept, call_faults, COUNT(call_faults));
	play_all(&scene_accept_other, call_faults, COUNT(call_faults));
}

/* EP-CONNECT-22 IWCM-37 */
static void attempt__a_system_call_of_the_service_fails__ends(void **state)
{
	static const struct fault faults[] = {
		{"core_slab_alloc", ENOMEM},
		{"mmap64", ENOMEM},
		{"accept4", EMFILE},
		{"accept4", ECONNABORTED},
		{"socket", EMFILE},
		{"setsockopt", ENOMEM},
		{"getsockopt", EINVAL},
		{"epoll_ctl", ENOSPC},
		{"getpeername", ENOTCONN},
		{"recv", ECONNRESET},
		{"recv", ETIMEDOUT},
		{"recv", EHOSTUNREACH},
		{"recv", EINTR},
		{"recv", ENOBUFS},
		{"send", EPIPE},
		{"send", ECONNRESET},
		{"send", ETIMEDOUT},
		{"send", ENOBUFS},
		{"send", EAGAIN},
		{"send", EINTR},
		{"sendmsg", EPIPE},
		{"sendmsg", EAGAIN},
	};

	(void)state;
	play_some(&scene_service, faults, COUNT(faults), 6);
}

/* IWCM-24 EP-CONNECT-25: the kernel gives up before the consumer does */
static void connect__tcp_times_out__begun_anew(void **state)
{
	(void)state;
	stage_listen();
	fault_arm("getsockopt", 1, ETIMEDOUT, FAULT_OTHERS);
	ok(connect_a());
	assert_true(attempt_ends());
	assert_true(fault_disarm());
	stage_close();
}

/* IWCM-24 EP-CONNECT-24 */
static void connect__no_route__unreachable(void **state)
{
	static const int errors[] = {EHOSTUNREACH, ENETUNREACH};

	(void)state;
	for (size_t i = 0; i < COUNT(errors); i++) {
		stage_listen();
		fault_arm("getsockopt", 1, errors[i], FAULT_OTHERS);
		ok(connect_a());
		assert_int_equal(next_event().event_number, DAT_CONNECTION_EVENT_UNREACHABLE);
		assert_true(fault_disarm());
		stage_close();
	}
}

/* Allocates what is created once and stays. */
static int warm_up_tcp(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "faulty",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};

	(void)state;
	/* the other side of a set-up that ends without notice notices that soon */
	dat_provider_init(&info, "127.0.0.1 transport=tcp setup_timeout_ms=300");
	for (int i = 0; i < 2; i++) {
		stage_connected();
		stage_close();
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psp_create__a_system_call_fails__nothing_left),
		cmocka_unit_test(ep_connect__a_system_call_fails__reported_once),
		cmocka_unit_test(cr_accept__a_system_call_fails__reported_once),
		cmocka_unit_test(attempt__a_system_call_of_the_service_fails__ends),
		cmocka_unit_test(connect__tcp_times_out__begun_anew),
		cmocka_unit_test(connect__no_route__unreachable),
	};

	return cmocka_run_group_tests_name("setup_faults", tests, warm_up_tcp, NULL);
}
