// SPDX-License-Identifier: BSD-2-Clause
/*
 * A transport without bytes: it remembers what the core asked and lets a test call up. One slot at
 * a time can be made to fail. Also stands in for libdat's registration calls.
 */
#ifndef TESTS_MOCK_H
#define TESTS_MOCK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/calls.h"
#include "core/ep/ep.h"
#include "core/transport.h"

#define MOCK_OBJECTS 5 /* the adapter's limit of SRQs, of EPs of one SRQ, and of RMRs */

struct mock {
	const char *failing; /* name of the slot that returns `error` */
	int error;
	struct core_ep *ep;		       /* of the last connect or accept */
	struct core_req *req;		       /* of the last post_request, or taken post_fast */
	struct core_ref sp;		       /* of the last listen */
	void (*listening)(struct core_ref sp); /* called by listen, as the last thing; or NULL */
	unsigned int rejects;		       /* requests refused */
	enum transport_reject why;
	unsigned int registered; /* LMRs known to the transport */
	unsigned int zones;
	unsigned int endpoints;
	unsigned int listeners;
	unsigned int adapters;
	unsigned int progresses;   /* calls of progress */
	void (*on_progress)(void); /* called by it, or NULL */
	/* called by poll, whose result it makes; NULL: always the general path */
	enum transport_poll (*on_poll)(struct core_evd *evd, DAT_EVENT *event);
	unsigned int polls;	 /* calls of poll */
	bool takes_fast;	 /* post_fast and recv_fast do all, else they decline */
	unsigned int fast_posts; /* calls of post_fast */
	unsigned int fast_recvs; /* calls of recv_fast */
	unsigned int posts;	 /* calls of post_request */
	unsigned int recvs;	 /* calls of post_recv */
	unsigned int kicks;	 /* calls of kick */
	void (*receiving)(struct core_ep *ep); /* called by post_recv, or NULL */
	unsigned int aborts;		       /* of connections that the core breaks */
	unsigned int arms;
	unsigned int sleepers_armed; /* when arm was called last */
	struct core_ia *ia;	     /* that is open */
	unsigned int arm_finds;	     /* something, that often */
};

extern struct mock mock;

/* An opened mock adapter with a zone and an EVD for everything. */
struct mock_ia {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
};

void mock_open(struct mock_ia *ia);
void mock_close(struct mock_ia *ia);
/* An endpoint whose three EVDs are ia->evd. */
DAT_EP_HANDLE mock_ep(struct mock_ia *ia);
/* The same, connected, and nothing is against its fast path. */
DAT_EP_HANDLE mock_connected(struct mock_ia *ia);
/* The next event of the EVD; fails the test when there is none. */
DAT_EVENT mock_event(DAT_EVD_HANDLE evd);
void mock_no_event(DAT_EVD_HANDLE evd);

/* Makes the lock of the object behind the handle this thread's own, which the fast paths ask for
 * (lock.h). False: they cannot be entered here. */
bool mock_own(DAT_HANDLE handle);

#define mock_code(ret) DAT_GET_TYPE(ret)

#endif
