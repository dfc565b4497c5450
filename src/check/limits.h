// SPDX-License-Identifier: BSD-2-Clause
/*
 * What common RDMA devices have, in one table; docs/checking.md prints it. A number above a limit is
 * advice: it works with the provider below, or is refused there, and fails on many devices.
 *
 * LIMIT(identifier, the greatest number, who has no more)
 */
#ifndef CHECK_LIMITS_H
#define CHECK_LIMITS_H

#include "check/object.h"

#define CHECK_LIMITS(LIMIT)                                                                        \
	LIMIT(REQUESTS, 16384, "soft RoCE, later ConnectX adapters have 32768")                    \
	LIMIT(SEGMENTS, 16, "many adapters have fewer, ConnectX adapters 30")                      \
	LIMIT(READS, 16, "ConnectX adapters")                                                      \
	LIMIT(EVENTS, 32767, "soft RoCE")                                                          \
	LIMIT(SRQ_BUFFERS, 16384, "soft RoCE, later ConnectX adapters have 32767")                 \
	LIMIT(PRIVATE_DATA, 64, "every provider has as many bytes, few have more")

#define CHECK_LIMIT_IDENTIFIER(identifier, most, who) CHECK_LIMIT_##identifier,
enum check_limit { CHECK_LIMITS(CHECK_LIMIT_IDENTIFIER) CHECK_LIMIT_COUNT };
#undef CHECK_LIMIT_IDENTIFIER

/* Reports a number of the program that is above the limit, by its name. No lock is held. */
void check_limit(const struct check_call *call, struct check_object *object, enum check_limit limit,
		 const char *name, DAT_COUNT number);
/* The same for the attributes of an endpoint that the mask names. */
void check_limit_ep(const struct check_call *call, struct check_object *ep, const DAT_EP_ATTR *attr,
		    DAT_EP_PARAM_MASK mask);

#endif
