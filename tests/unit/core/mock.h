// SPDX-License-Identifier: BSD-2-Clause
/*
 * A mock transport that moves no bytes. It records the calls of the core, and a test makes the
 * calls from the transport. A test can make one slot at a time fail.
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
#include "core/base/status.h"
#include "core/ep/ep.h"
#include "core/transport.h"

#define MOCK_OBJECTS 5 /* the limit of SRQs, of EPs of one SRQ, and of RMRs */

struct mock {
	const char *failing; /* name of the slot that returns `error` */
	int error;
	struct core_ep *ep;   /* of the last connect or accept */
	struct core_req *req; /* of the last post_request, or of the last accepted post_fast */
	struct core_ref sp;   /* of the last listen */
	void (*on_listen)(struct core_ref sp); /* called at the end of listen; or NULL */
	unsigned int rejects;		       /* calls of reject */
	enum transport_reject why;	       /* of the last reject */
	unsigned int registered;	       /* existing LMRs */
	unsigned int zones;
	unsigned int endpoints;
	unsigned int listeners;
	unsigned int adapters;
	_Atomic unsigned int progresses;	    /* calls of progress */
	void (*on_progress)(void);		    /* called by progress; or NULL */
	int progress_finds;			    /* the result of progress */
	void (*on_progress_ep)(struct core_ep *ep); /* called by progress_ep; or NULL */
	/* called by poll, which returns its result; NULL: poll asks for the slow path */
	enum transport_poll (*on_poll)(struct core_evd *evd, DAT_EVENT *event);
	unsigned int polls;	 /* calls of poll */
	bool takes_fast;	 /* post_fast and recv_fast accept each post; else they decline */
	unsigned int fast_posts; /* calls of post_fast */
	unsigned int fast_recvs; /* calls of recv_fast */
	unsigned int posts;	 /* calls of post_request */
	unsigned int recvs;	 /* calls of post_recv */
	unsigned int kicks;	 /* calls of kick */
	void (*on_post_recv)(struct core_ep *ep); /* called by post_recv; or NULL */
	unsigned int aborts;			  /* calls of abort */
	_Atomic unsigned int arms;		  /* calls of arm */
	void (*on_arm)(void);			  /* called by arm; or NULL */
	_Atomic unsigned int sleepers_armed;	  /* ia->sleepers at the last arm */
	struct core_ia *ia;			  /* the open instance */
	unsigned int arm_finds; /* the next calls of arm that report pending work */
};

extern struct mock mock;

/* An instance of the mock adapter, with a zone and an EVD for all kinds of events. */
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
DAT_EP_HANDLE mock_ep_with(struct mock_ia *ia, const DAT_EP_ATTR *attr);
/* Connects it, and takes its slow_reasons of the transport away. */
void mock_link(struct mock_ia *ia, DAT_EP_HANDLE ep);
/* An endpoint that is connected, without slow_reasons. */
DAT_EP_HANDLE mock_connected(struct mock_ia *ia);
/* Dequeues an event. Fails the test if there is none. */
DAT_EVENT mock_event(DAT_EVD_HANDLE evd);
/* Fails the test if there is an event. */
void mock_no_event(DAT_EVD_HANDLE evd);

/* Biases the lock of the object to this thread, which the fast paths need (lock.h). Returns false
 * if this system does not support that. */
bool mock_own(DAT_HANDLE handle);

#define mock_code(ret) DAT_GET_TYPE(ret)

#endif
