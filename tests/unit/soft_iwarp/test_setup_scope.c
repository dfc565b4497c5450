// SPDX-License-Identifier: BSD-2-Clause
/*
 * Link-local addresses, in a network namespace of the test's own with two interfaces. Skipped where
 * that cannot be made.
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
		       "ip -6 address add fe80::2/64 dev v1 nodad");
}

static int open_links(void **state)
{
	if (has_links)
		return open_adapter("link");
	(void)state;
	return 0;
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

/* IWCM-56 IWCM-58: no scope is that of the adapter; a wrong one is refused at once */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(connect__link_local__scope_of_the_adapter,
						open_links, close_links),
	};

	has_links = make_links();
	add_adapter("link", "v0 transport=tcp");
	return cmocka_run_group_tests_name("setup_scope", tests, NULL, NULL);
}
