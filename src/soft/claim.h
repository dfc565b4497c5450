// SPDX-License-Identifier: BSD-2-Clause
/*
 * Claims of qualifiers: names in this network namespace that a process has while a service point of
 * its listens. Other users see them, too. Anybody can have such a name, and no claim is a proof.
 */
#ifndef SOFT_CLAIM_H
#define SOFT_CLAIM_H

#include <stdbool.h>

#include <dat/udat.h>

#include "core/base/netaddr.h"

enum soft_claim {
	SOFT_CLAIM_TCP,	 /* the service point is reached over TCP; no other one has the qualifier */
	SOFT_CLAIM_USER, /* it has no peers but those of its user (peers=user); says so to others */
};

/* A listed descriptor, which holds the claim; -EADDRINUSE; -EBUSY: it may soon be free. */
int soft_claim_take(enum soft_claim kind, const union core_sockaddr *address, DAT_CONN_QUAL qual);
/* Gives the claim back, also if a child has a copy of the descriptor. Ignores -errno. */
void soft_claim_give(int fd);
/* Does any process hold that claim? */
bool soft_claim_exists(enum soft_claim kind, const union core_sockaddr *address,
		       DAT_CONN_QUAL qual);

#endif
