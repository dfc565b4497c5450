// SPDX-License-Identifier: BSD-2-Clause
/*
 * Most of the ports that a connection may come from are in use by plain TCP sockets, which the
 * connection manager does not know of. Every connection is established all the same. For the
 * virtual machine: it needs root, and changes the machine's range of ports.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dto_util.h"

#define FIRST_PORT 50000
#define PORTS 200
#define TAKEN 150
#define CONNECTIONS 20

static int sockets[TAKEN];

static void set_port_range(unsigned first, unsigned last)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");

	assert_non_null(file);
	assert_true(fprintf(file, "%u %u\n", first, last) > 0);
	assert_int_equal(fclose(file), 0);
}

static void take_ports(void)
{
	for (size_t i = 0; i < TAKEN; i++) {
		struct sockaddr_in address = {.sin_family = AF_INET,
					      .sin_port = htons((uint16_t)(FIRST_PORT + i))};

		sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(sockets[i] >= 0);
		/* in use: by a stream in TIME_WAIT, which serves as well */
		if (bind(sockets[i], (struct sockaddr *)&address, sizeof(address)))
			assert_int_equal(errno, EADDRINUSE);
	}
}

/* EP-CONNECT-01 */
static void ep_connect__local_ports_taken_by_tcp__established(void **state)
{
	struct rig *rig = *state;

	set_port_range(FIRST_PORT, FIRST_PORT + PORTS - 1);
	take_ports();
	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
		rig_link(rig);
	}
	rig_works(rig);
	for (size_t i = 0; i < TAKEN; i++)
		close(sockets[i]);
	set_port_range(32768, 60999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(ep_connect__local_ports_taken_by_tcp__established),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
