// SPDX-License-Identifier: BSD-2-Clause
#ifndef TESTS_NET_MEET_H
#define TESTS_NET_MEET_H

#include "net.h"

/* What a host does: it connects to each other one, and transfers and verifies over all connections
 * at once. */
void meet_all(const struct net_host *host);

#endif
