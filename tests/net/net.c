// SPDX-License-Identifier: BSD-2-Clause
/* Hosts in network namespaces of their own (net.h). */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BRIDGE "hub"

bool net_run(const char *format, ...)
{
	char command[256];
	va_list list;
	int len;

	va_start(list, format);
	len = vsnprintf(command, sizeof(command), format, list);
	va_end(list);
	assert_true(len > 0 && (size_t)len < sizeof(command));
	return system(command) == 0;
}

bool net_enter(void)
{
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
		printf("skipped: no network namespace can be made: %s\n", strerror(errno));
		return false;
	}
	if (!net_run("ip link add " BRIDGE " type bridge && ip link set " BRIDGE " up")) {
		printf("skipped: ip(8) or the kernel cannot make a bridge\n");
		return false;
	}
	if (!net_run("ip link add probe type veth peer name probe2 && ip link del probe")) {
		printf("skipped: the kernel has no veth\n");
		return false;
	}
	setenv("DAT_TEST_ADAPTER", NET_ADAPTER, 1);
	return true;
}

/* --- a host --- */

void net_address(enum net_family family, unsigned index, struct sockaddr_storage *address_out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address_out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address_out;
	char text[64];

	memset(address_out, 0, sizeof(*address_out));
	if (family == NET_IPV4) {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(0x0a090001u + index);
		return;
	}
	in6->sin6_family = AF_INET6;
	snprintf(text, sizeof(text), "%s::%x", family == NET_IPV6 ? "fd09" : "fe80", index + 1);
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
}

static void configure(const struct net_host *host)
{
	/* no address but the one of the test: the adapter chooses the best of all */
	assert_true(net_run("ip link set lo up && ip link set eth0 addrgenmode none"));
	if (host->family == NET_IPV4)
		assert_true(net_run("ip addr add 10.9.0.%u/24 dev eth0", host->index + 1));
	else
		assert_true(net_run("ip -6 addr add %s::%x/64 dev eth0 nodad",
				    host->family == NET_IPV6 ? "fd09" : "fe80", host->index + 1));
	assert_true(net_run("ip link set eth0 up"));
}

struct start {
	struct net_host host;
	net_fn fn;
};

static void run_host(struct dt_peer *test, void *arg)
{
	const struct start *start = arg;
	struct net_host host = start->host;

	host.test = test;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	dt_peer_sync(test); /* the test moves an end of a veth into it */
	dt_peer_sync(test);
	configure(&host);
	dt_peer_sync(test); /* all have addresses */
	start->fn(&host);
}

/* --- the test program --- */

void net_start(struct net *net, unsigned count, enum net_family family, net_fn fn)
{
	*net = (struct net){.family = family, .count = count};
	net->shared = mmap(NULL, sizeof(*net->shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(net->shared, MAP_FAILED);
	for (unsigned i = 0; i < count; i++) {
		struct start start = {
			.host = {.index = i,
				 .count = count,
				 .family = family,
				 .shared = net->shared},
			.fn = fn,
		};

		dt_peer_start(&net->host[i], run_host, &start);
		dt_peer_sync(&net->host[i]);
		assert_true(net_run("ip link add p%u type veth peer name eth0 netns %d && "
				    "ip link set p%u master " BRIDGE " up",
				    i, (int)net->host[i].pid, i));
		dt_peer_sync(&net->host[i]);
	}
	for (unsigned i = 0; i < count; i++)
		dt_peer_sync(&net->host[i]);
}

void net_join(struct net *net)
{
	for (unsigned i = 0; i < net->count; i++)
		dt_peer_join(&net->host[i]);
	/* the kernel removes the ends of a namespace a little later */
	for (unsigned i = 0; i < net->count; i++)
		(void)net_run("ip link del p%u 2>/dev/null", i);
	munmap(net->shared, sizeof(*net->shared));
}

void net_link_up(unsigned index, bool is_up)
{
	assert_true(net_run("ip link set p%u %s", index, is_up ? "up" : "down"));
}

void net_interface_down(const struct net *net, unsigned index)
{
	assert_true(net_run("nsenter --net=/proc/%d/ns/net ip link set eth0 down",
			    (int)net->host[index].pid));
}

void net_pass_on(struct net *net)
{
	uint64_t all[NET_MAX] = {0};

	for (unsigned i = 0; i < net->count; i++)
		dt_peer_recv(&net->host[i], &all[i], sizeof(all[i]));
	for (unsigned i = 0; i < net->count; i++)
		dt_peer_send(&net->host[i], all, sizeof(all));
}

void net_exchange(const struct net_host *host, uint64_t mine, uint64_t all_out[NET_MAX])
{
	dt_peer_send(host->test, &mine, sizeof(mine));
	dt_peer_recv(host->test, all_out, NET_MAX * sizeof(*all_out));
}
