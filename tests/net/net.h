// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hosts of the test: child processes in network namespaces of their own, joined by a bridge in that
 * of the test program. Everything goes away with the processes. The adapter is soft-eth0, with the
 * default settings.
 */
#ifndef TESTS_NET_NET_H
#define TESTS_NET_NET_H

#include "dt.h"

#define NET_MAX 8u
#define NET_ADAPTER "soft-eth0"

enum net_family { NET_IPV4, NET_IPV6, NET_LINK_LOCAL };

/* What the program and the hosts share. */
struct net_shared {
	_Atomic uint64_t rounds[NET_MAX]; /* of transfers that are verified, per host */
	_Atomic bool is_over;		  /* the hosts are to end */
	_Atomic bool is_done;		  /* one of them has made its last connection */
	_Atomic uint64_t down_us;	  /* when the link went down */
};

struct net {
	enum net_family family;
	unsigned count;
	struct dt_peer host[NET_MAX];
	struct net_shared *shared;
};

/* What a host's function gets. */
struct net_host {
	struct dt_peer *test; /* the way to the test program */
	unsigned index;
	unsigned count;
	enum net_family family;
	struct net_shared *shared;
};

typedef void (*net_fn)(const struct net_host *host);

/*
 * For main: enters a network namespace with the bridge. False, and the reason is printed: this
 * machine does not allow it, or has no ip(8).
 */
bool net_enter(void);
/* Starts that many hosts, each of which runs the function when all have addresses. */
void net_start(struct net *net, unsigned count, enum net_family family, net_fn fn);
/* All must end with success. */
void net_join(struct net *net);
/* Switches the link of a host, without its help. */
void net_link_up(unsigned index, bool is_up);
/* Switches the interface of a host off, at the host's end of the link: its routes vanish. */
void net_interface_down(const struct net *net, unsigned index);
/* Runs a command; false: it failed. */
__attribute__((format(printf, 1, 2))) bool net_run(const char *format, ...);

/* --- for the hosts --- */

/* The address of a host, by its index. */
void net_address(enum net_family family, unsigned index, struct sockaddr_storage *address_out);
/* Every host sends a value; each gets those of all. */
void net_exchange(const struct net_host *host, uint64_t mine, uint64_t all_out[NET_MAX]);
/* The test program's part of that. */
void net_pass_on(struct net *net);

#endif
