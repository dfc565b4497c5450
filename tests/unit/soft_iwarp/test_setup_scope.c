// SPDX-License-Identifier: BSD-2-Clause
/*
 * Link-local addresses, in a network namespace of the test's own with four interfaces. Skipped
 * where that cannot be made.
 */
#include "setup_peer.h"

#include <net/if.h>
#include <sched.h>
#include <stdlib.h>

static bool has_links;

/* Before any thread exists. */
static bool make_links(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	return !system("ip link add v0 type veth peer name v1 2>/dev/null &&"
		       "ip link set v0 up && ip link set v1 up &&"
		       "ip -6 address add fe80::1/64 dev v0 nodad &&"
		       "ip -6 address add fe80::2/64 dev v1 nodad &&"
		       "ip link add v2 type veth peer name v3 && ip link set v2 up &&"
		       "ip -6 address add fe80::3/64 dev v2 nodad &&"
		       "ip -6 address add fe80::3/64 dev v3 nodad");
}

static int open_link(const char *name)
{
	return has_links ? open_adapter(name) : 0;
}

static int open_interface(void **state)
{
	(void)state;
	return open_link("interface");
}

static int open_address(void **state)
{
	(void)state;
	return open_link("address");
}

static int open_whole_address(void **state)
{
	(void)state;
	return open_link("whole address");
}

static int close_links(void **state)
{
	return has_links ? close_stage(state) : 0;
}

/* Connects to that address with that scope, at the port of a listener of the test. */
static DAT_RETURN connect_scoped(const char *text, uint32_t scope, uint16_t port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_scope_id = scope};

	assert_int_equal(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
	return core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, port, WAIT_US, 0, NULL,
			       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static int listen_scoped(uint32_t scope, uint16_t *port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_scope_id = scope};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET6, "fe80::2", &address.sin6_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*port = ntohs(address.sin6_port);
	return fd;
}

/* IWCM-56 IWCM-58 IWCM-67: no scope is that of the adapter; a wrong one is refused at once */
static void connect__link_local__scope_of_the_adapter(void **state)
{
	const uint32_t right = if_nametoindex("v0"), wrong = if_nametoindex("v1");
	struct frame frame = make_enhanced(REPLY, 0, WORDS(WORD_A | WORD_C, 4, 4), NULL, 0);
	uint16_t port;
	int listener;

	(void)state;
	if (!has_links) {
		print_message("no network namespace with two interfaces can be made here\n");
		skip();
	}
	listener = listen_scoped(wrong, &port);
	assert_int_equal(DAT_GET_TYPE(connect_scoped("fe80::2", wrong, port)), DAT_INVALID_ADDRESS);
	assert_int_equal(state_of(stage.a), DAT_EP_STATE_UNCONNECTED);
	for (unsigned is_given = 0; is_given < 2; is_given++) {
		struct sockaddr_in6 from;
		socklen_t size = sizeof(from);
		int fd;

		ok(connect_scoped("fe80::2", is_given ? right : 0, port));
		fd = answer_call(listener);
		assert_int_equal(getpeername(fd, (struct sockaddr *)&from, &size), 0);
		assert_int_equal(from.sin6_addr.s6_addr[15], 1);
		get_frame(fd, REQUEST);
		put_frame(fd, &frame);
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		close(fd);
		(void)next_of(stage.evd);
		ok(core_ep_reset(stage.a));
	}
	close(listener);
}

/* IWCM-67: the peer calls the address with its interface; a socket without would not be bound */
static void listen__link_local__at_its_interface(void **state)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6,
				       .sin6_port = htons((uint16_t)stage.qual),
				       .sin6_scope_id = if_nametoindex("v1")};
	struct frame frame = make_frame(REQUEST, 0, 1, NULL, 0);
	int fd;

	(void)state;
	if (!has_links)
		skip();
	assert_int_equal(inet_pton(AF_INET6, "fe80::1", &address.sin6_addr), 1);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	get_frame(fd, REPLY);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	close(fd);
	(void)next_of(stage.evd);
}

static void expect_no_adapter(const char *name)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	assert_int_not_equal(core_ia_open_safe((DAT_NAME_PTR)(uintptr_t)name, 8, &async, &ia),
			     DAT_SUCCESS);
}

/* IWCM-67: an interface that does not have the address, or is none, and two that have it */
static void ia_open__link_local__interface_is_not_known(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)state;
	if (!has_links)
		skip();
	expect_no_adapter("other interface");
	expect_no_adapter("no interface");
	expect_no_adapter("needs none");
	expect_no_adapter("foreign");
	expect_no_adapter("two");
	ok(core_ia_open_safe((DAT_NAME_PTR)(uintptr_t) "one of two", 8, &async, &ia));
	ok(core_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

#define SCOPE_TEST(f, open) cmocka_unit_test_setup_teardown(f, open, close_links)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCOPE_TEST(connect__link_local__scope_of_the_adapter, open_interface),
		SCOPE_TEST(connect__link_local__scope_of_the_adapter, open_address),
		SCOPE_TEST(connect__link_local__scope_of_the_adapter, open_whole_address),
		SCOPE_TEST(listen__link_local__at_its_interface, open_address),
		SCOPE_TEST(listen__link_local__at_its_interface, open_whole_address),
		cmocka_unit_test(ia_open__link_local__interface_is_not_known),
	};

	has_links = make_links();
	add_adapter("interface", "v0 transport=tcp");
	add_adapter("address", "fe80::1 transport=tcp");
	add_adapter("whole address", "fe80::1%v0 transport=tcp");
	add_adapter("other interface", "fe80::1%v1");
	add_adapter("no interface", "fe80::1%absent0");
	add_adapter("needs none", "::1%lo");
	add_adapter("foreign", "fe80::9");
	add_adapter("two", "fe80::3");
	add_adapter("one of two", "fe80::3%v2");
	return cmocka_run_group_tests_name("setup_scope", tests, NULL, NULL);
}
