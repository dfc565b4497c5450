// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two hosts and the link between them, which goes down in the middle of transfers: what comes back
 * in time loses nothing, and what does not ends both sides.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream.h"

enum { FOLLOWER, LEADER, HOSTS };

#define DOWN_US 1500000u   /* how long the link is down, at least */
#define PATIENT_MS "12000" /* link_timeout_ms of connections that outlive that */
#define HASTY_MS 4000u	   /* of those that do not */
/* in which an end must be noticed, after HASTY_MS; a sanitizer adds to it */
#define SLACK_US (HASTY_MS * 1000u / 5 + (DT_SLOW ? 5000000u : 0))

struct sides {
	struct dt_ia ia;
	struct dt_listener listener;
	struct stream busy, idle;
};

/* --- the hosts --- */

static void meet_one(const struct net_host *host, struct sides *sides, struct stream *stream,
		     DAT_CONN_QUAL qual)
{
	struct sockaddr_storage address;

	if (host->index == LEADER) {
		net_address(host->family, FOLLOWER, &address);
		stream_connect(stream, &address, qual);
	} else {
		stream_accept(stream, dt_request(&sides->listener));
	}
	dt_expect_conn(stream->ep.conn, stream->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(stream)); /* IWCM-01 IWCM-04 */
	stream_greet(stream);
}

static void meet(const struct net_host *host, struct sides *sides)
{
	uint64_t quals[NET_MAX];

	memset(sides, 0, sizeof(*sides));
	dt_ia_open(&sides->ia);
	if (host->index == FOLLOWER)
		dt_listen(&sides->ia, &sides->listener);
	net_exchange(host, sides->listener.qual, quals);
	stream_create(&sides->busy, &sides->ia, 1);
	stream_create(&sides->idle, &sides->ia, 2);
	meet_one(host, sides, &sides->busy, quals[FOLLOWER]);
	meet_one(host, sides, &sides->idle, quals[FOLLOWER]);
}

static void part_company(struct sides *sides)
{
	stream_free(&sides->busy);
	stream_free(&sides->idle);
	dt_unlisten(&sides->listener);
	dt_ia_close(&sides->ia);
}

static void transfer(const struct net_host *host, struct stream *stream)
{
	if (host->index == LEADER) {
		while (!host->shared->is_over && stream_lead(stream))
			host->shared->rounds[LEADER]++;
	} else {
		while (stream_follow(stream))
			host->shared->rounds[FOLLOWER]++;
	}
}

static void end(struct stream *stream, bool is_leader)
{
	if (is_leader)
		dt_ok(dat_ep_disconnect(stream->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(stream->ep.conn, stream->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Transfers until the test says so; nothing may fail. */
static void be_patient(const struct net_host *host)
{
	struct sides sides;

	setenv("DAT_LINK_TIMEOUT_MS", PATIENT_MS, 1);
	meet(host, &sides);
	transfer(host, &sides.busy);
	end(&sides.busy, host->index == LEADER);
	end(&sides.idle, host->index == LEADER);
	part_company(&sides);
}

static void expect_broken(const struct net_host *host, const struct stream *stream)
{
	dt_expect_conn(stream->ep.conn, stream->ep.ep, DAT_CONNECTION_EVENT_BROKEN);
	assert_true(dt_now_us() - host->shared->down_us < HASTY_MS * 1000u + SLACK_US);
}

static void meet_hastily(const struct net_host *host, struct sides *sides)
{
	char limit[16];

	snprintf(limit, sizeof(limit), "%u", HASTY_MS);
	setenv("DAT_LINK_TIMEOUT_MS", limit, 1);
	meet(host, sides);
}

static void expect_both_broken(const struct net_host *host, struct sides *sides)
{
	expect_broken(host, &sides->busy);
	expect_broken(host, &sides->idle);
	part_company(sides);
}

/* Transfers until the connection breaks, and waits until the other one does. */
static void be_hasty(const struct net_host *host)
{
	struct sides sides;

	meet_hastily(host, &sides);
	transfer(host, &sides.busy);
	expect_both_broken(host, &sides);
}

/* Likewise, with bytes under way at any time. */
static void be_in_a_rush(const struct net_host *host)
{
	struct sides sides;

	meet_hastily(host, &sides);
	if (host->index == LEADER)
		stream_rush(&sides.busy, &host->shared->rounds[LEADER]);
	expect_both_broken(host, &sides);
}

/* --- the test --- */

struct wait {
	const struct net *net;
	uint64_t rounds;
};

static bool has_rounds(void *arg)
{
	const struct wait *wait = arg;

	usleep(1000);
	return wait->net->shared->rounds[LEADER] >= wait->rounds;
}

static void wait_for_rounds(const struct net *net, uint64_t more)
{
	struct wait wait = {net, net->shared->rounds[LEADER] + more};

	dt_until(has_rounds, &wait);
}

/* The link is down: no round ends any more, for that long. */
static void watch_stall(const struct net *net)
{
	uint64_t rounds = net->shared->rounds[LEADER];
	uint64_t since = dt_now_us();

	while (dt_now_us() - since < DOWN_US) {
		usleep(10000);
		if (net->shared->rounds[LEADER] != rounds) {
			rounds = net->shared->rounds[LEADER]; /* what was on its way */
			since = dt_now_us();
		}
	}
}

static void go_down_and_back(enum net_family family)
{
	struct net net;

	net_start(&net, HOSTS, family, be_patient);
	net_pass_on(&net);
	for (unsigned host = 0; host < HOSTS; host++) {
		wait_for_rounds(&net, 20);
		net_link_up(host, false);
		watch_stall(&net);
		net_link_up(host, true);
	}
	wait_for_rounds(&net, 20);
	net.shared->is_over = true;
	net_join(&net);
}

/* IWCM-36 IWCM-59: bytes of all operations are verified, before and after */
static void link__down_and_back__nothing_lost(void **state)
{
	(void)state;
	go_down_and_back(NET_IPV4);
}

/* IWCM-36 IWCM-55: likewise */
static void link_ipv6__down_and_back__nothing_lost(void **state)
{
	(void)state;
	go_down_and_back(NET_IPV6);
}

/* IWCM-36 IWCM-56: likewise; the addresses are link-local, without a scope */
static void link_local__down_and_back__nothing_lost(void **state)
{
	(void)state;
	go_down_and_back(NET_LINK_LOCAL);
}

static void stay_down(enum net_family family, net_fn fn, void (*cut)(const struct net *net))
{
	struct net net;

	net_start(&net, HOSTS, family, fn);
	net_pass_on(&net);
	wait_for_rounds(&net, 5);
	net.shared->down_us = dt_now_us();
	cut(&net);
	net_join(&net);
}

static void cut_cable(const struct net *net)
{
	(void)net;
	net_link_up(FOLLOWER, false);
}

static void cut_follower(const struct net *net)
{
	net_interface_down(net, FOLLOWER);
}

static void cut_leader(const struct net *net)
{
	net_interface_down(net, LEADER);
}

/* IWCM-34 CONN-EVT-59: both ends of a busy connection and of an idle one */
static void link__stays_down__both_ends_broken(void **state)
{
	(void)state;
	stay_down(NET_IPV4, be_hasty, cut_cable);
	stay_down(NET_IPV4, be_in_a_rush, cut_cable);
}

/* IWCM-34 IWCM-55 */
static void link_ipv6__stays_down__both_ends_broken(void **state)
{
	(void)state;
	stay_down(NET_IPV6, be_hasty, cut_cable);
}

/* IWCM-34: the host whose interface it is has no route any more, and its kernel sends nothing */
static void interface__goes_down__both_ends_broken(void **state)
{
	(void)state;
	stay_down(NET_IPV4, be_hasty, cut_follower);
	stay_down(NET_IPV4, be_hasty, cut_leader);
	stay_down(NET_IPV4, be_in_a_rush, cut_leader);
}

/* IWCM-34 IWCM-55: likewise; the interface loses its address, too */
static void interface_ipv6__goes_down__both_ends_broken(void **state)
{
	(void)state;
	stay_down(NET_IPV6, be_hasty, cut_follower);
	stay_down(NET_IPV6, be_hasty, cut_leader);
	stay_down(NET_IPV6, be_in_a_rush, cut_leader);
}

/* --- scopes --- */

static void connect_with_scope(struct dt_ia *ia, DAT_CONN_QUAL qual, uint32_t scope)
{
	struct sockaddr_storage address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	struct stream stream;

	net_address(NET_LINK_LOCAL, FOLLOWER, &address);
	in6->sin6_scope_id = scope;
	stream_create(&stream, ia, scope);
	stream_connect(&stream, &address, qual);
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(&stream));
	dt_ok(dat_ep_disconnect(stream.ep.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	stream_free(&stream);
}

static void try_scopes(const struct net_host *host)
{
	uint64_t quals[NET_MAX];
	struct dt_listener listener = {.qual = 0};
	struct sockaddr_storage address;
	struct stream stream;
	struct dt_ia ia;

	dt_ia_open(&ia);
	if (host->index == FOLLOWER)
		dt_listen(&ia, &listener);
	net_exchange(host, listener.qual, quals);
	if (host->index == LEADER) {
		connect_with_scope(&ia, quals[FOLLOWER], 0);
		connect_with_scope(&ia, quals[FOLLOWER], if_nametoindex("eth0"));
		net_address(NET_LINK_LOCAL, FOLLOWER, &address);
		((struct sockaddr_in6 *)&address)->sin6_scope_id = if_nametoindex("lo");
		stream_create(&stream, &ia, 0);
		dt_fails(dat_ep_connect(stream.ep.ep, (DAT_IA_ADDRESS_PTR)&address, quals[FOLLOWER],
					DT_WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
					DAT_CONNECT_DEFAULT_FLAG),
			 DAT_INVALID_ADDRESS);
		stream_free(&stream);
		dt_ia_close(&ia);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		stream_create(&stream, &ia, 0);
		stream_accept(&stream, dt_request(&listener));
		dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		stream_free(&stream);
	}
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* IWCM-56: none and the right one reach the peer, another one is refused */
static void link_local__scopes__none_and_the_right_one(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, HOSTS, NET_LINK_LOCAL, try_scopes);
	net_pass_on(&net);
	net_join(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link__down_and_back__nothing_lost),
		cmocka_unit_test(link_ipv6__down_and_back__nothing_lost),
		cmocka_unit_test(link_local__down_and_back__nothing_lost),
		cmocka_unit_test(link__stays_down__both_ends_broken),
		cmocka_unit_test(link_ipv6__stays_down__both_ends_broken),
		cmocka_unit_test(interface__goes_down__both_ends_broken),
		cmocka_unit_test(interface_ipv6__goes_down__both_ends_broken),
		cmocka_unit_test(link_local__scopes__none_and_the_right_one),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
