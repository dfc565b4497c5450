// SPDX-License-Identifier: BSD-2-Clause
/*
 * What of this host is in the way of a connect: no local TCP port is free, or a route forbids it.
 * In a network namespace of the test's own; skipped where that cannot be made.
 */
#include "setup_peer.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/log.h"

#define LISTENER 7000u
#define PORTS 8 /* that the kernel chooses from */
#define SHORT_US 300000u

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

static bool has_network;
static char logged[4096]; /* the errors */

void __wrap_core_log(unsigned int kinds, const char *format, ...);

void __wrap_core_log(unsigned int kinds, const char *format, ...)
{
	size_t len = strlen(logged);
	va_list list;

	if (!(kinds & CORE_LOG_ERROR))
		return;
	va_start(list, format);
	vsnprintf(logged + len, sizeof(logged) - len, format, list);
	va_end(list);
}

/* False: the kernel's settings cannot be written, as in many containers. */
static bool write_ports(unsigned first, unsigned last)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");

	if (!file)
		return false;
	fprintf(file, "%u %u", first, last);
	return fclose(file) == 0;
}

static void set_ports(unsigned first, unsigned last)
{
	assert_true(write_ports(first, last));
}

/* Else a bind to an address takes a port. An emulator of user programs may not know the option. */
static bool has_bind_without_port(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1;
	bool has = !setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));

	close(fd);
	return has;
}

/* Before any thread exists. The ports of the range serve connects alone: listeners have others. */
static bool make_network(void)
{
	if (!has_bind_without_port() ||
	    (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)))
		return false;
	return write_ports(32768, 60999) &&
	       !system("ip link set lo up && ip link add v0 type veth peer name v1 2>/dev/null && "
		       "ip addr add 10.9.8.1/24 dev v0 && ip link set v0 up && "
		       "ip link set v1 up && ip route add prohibit 203.0.113.0/24 && "
		       "ip route add unreachable 198.51.100.0/24");
}

static int open_loopback(void **state)
{
	if (!has_network)
		return 0;
	logged[0] = '\0';
	open_stage(state);
	set_ports(50000, 50000 + PORTS - 1);
	return 0;
}

static int open_veth(void **state)
{
	(void)state;
	logged[0] = '\0';
	return has_network ? open_adapter("veth") : 0;
}

static int close_network(void **state)
{
	if (!has_network)
		return 0;
	set_ports(32768, 60999);
	return close_stage(state);
}

/* A plain connection to the listener; -1: there is no port for it. */
static int take_port(void)
{
	struct sockaddr_in own = loopback(0), to = loopback(LISTENER);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1;

	assert_true(fd >= 0);
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	assert_int_equal(errno, EADDRNOTAVAIL);
	close(fd);
	return -1;
}

/* Closes it without a state that keeps the port. */
static void give_port(int fd)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(fd);
}

struct ports {
	int listener;
	int fds[PORTS];
};

static void take_ports(struct ports *ports)
{
	uint16_t port;

	ports->listener = listen_at(LISTENER, &port);
	for (unsigned i = 0; i < PORTS; i++) {
		ports->fds[i] = take_port();
		assert_true(ports->fds[i] >= 0);
		close(answer_call(ports->listener)); /* this end keeps the port */
	}
	assert_int_equal(take_port(), -1);
}

static void give_ports(struct ports *ports)
{
	for (unsigned i = 0; i < PORTS; i++)
		if (ports->fds[i] >= 0)
			give_port(ports->fds[i]);
	close(ports->listener);
}

static void expect_log(const char *words)
{
	if (!strstr(logged, words))
		fail_msg("\"%s\" was not logged, but: %s", words, logged);
}

/* --- ports --- */

/* IWCM-68: the attempt goes on when a port has become free */
static void connect__no_local_port__until_one_is_free(void **state)
{
	struct frame frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 4, 4), NULL, 0);
	struct ports ports;
	int fd;

	(void)state;
	if (!has_network)
		skip();
	take_ports(&ports);
	connect_with(LISTENER, DAT_TIMEOUT_INFINITE, NULL, 0);
	expect_quiet(stage.evd);
	give_port(ports.fds[0]);
	fd = answer_call(ports.listener);
	ports.fds[0] = -1;
	get_frame(fd, REQUEST);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_log("no local TCP port is free");
	close(fd);
	(void)next_of(stage.evd);
	give_ports(&ports);
}

/* IWCM-68 EP-CONNECT-13 EP-CONNECT-14 */
static void connect__no_local_port__timed_out(void **state)
{
	uint64_t begin;
	struct ports ports;

	(void)state;
	if (!has_network)
		skip();
	take_ports(&ports);
	begin = now_ms();
	connect_with(LISTENER, SHORT_US, NULL, 0);
	expect(DAT_CONNECTION_EVENT_TIMED_OUT);
	assert_true(now_ms() - begin >= SHORT_US / 1000);
	expect_log("127.0.0.1:7000: no local TCP port is free");
	/* said once */
	assert_null(strstr(strstr(logged, "no local TCP port") + 1, "no local TCP port"));
	give_ports(&ports);
}

/* IWCM-68: while it waits for a port */
static void disconnect__no_local_port__at_once(void **state)
{
	struct ports ports;

	(void)state;
	if (!has_network)
		skip();
	take_ports(&ports);
	connect_with(LISTENER, DAT_TIMEOUT_INFINITE, NULL, 0);
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	give_ports(&ports);
}

/* --- routes --- */

static void expect_unreachable(const char *text, const char *reason)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, LISTENER, WAIT_US, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	expect(DAT_CONNECTION_EVENT_UNREACHABLE);
	expect_log(reason);
	ok(core_ep_reset(stage.a));
}

/* IWCM-24 EP-CONNECT-24: a route that forbids it is like one that leads nowhere */
static void connect__route_forbids__unreachable(void **state)
{
	struct sockaddr_in broadcast = {.sin_family = AF_INET};

	(void)state;
	if (!has_network)
		skip();
	expect_unreachable("203.0.113.1", "203.0.113.1:7000: Permission denied");
	expect_unreachable("198.51.100.1", "198.51.100.1:7000: No route to host");
	/* the kernel forbids this with the same error, but no peer can have it */
	broadcast.sin_addr.s_addr = htonl(0x0a0908ff);
	assert_int_equal(DAT_GET_TYPE(core_ep_connect(
				 stage.a, (DAT_IA_ADDRESS_PTR)&broadcast, LISTENER, WAIT_US, 0,
				 NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)),
			 DAT_INVALID_ADDRESS);
}

#define NETWORK_TEST(f, open) cmocka_unit_test_setup_teardown(f, open, close_network)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NETWORK_TEST(connect__no_local_port__until_one_is_free, open_loopback),
		NETWORK_TEST(connect__no_local_port__timed_out, open_loopback),
		NETWORK_TEST(disconnect__no_local_port__at_once, open_loopback),
		NETWORK_TEST(connect__route_forbids__unreachable, open_veth),
	};

	has_network = make_network();
	if (!has_network)
		print_message("no network namespace can be made here\n");
	add_adapter("veth", "v0 transport=tcp");
	return cmocka_run_group_tests_name("setup_ports", tests, provide, NULL);
}
