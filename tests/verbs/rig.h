// SPDX-License-Identifier: BSD-2-Clause
/*
 * An adapter instance of the provider over the stand-in, and two endpoints of it. Stands in for
 * libdat's registration too. Nothing here asserts success where a fault may be the test's own.
 */
#ifndef TESTS_VERBS_RIG_H
#define TESTS_VERBS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/calls.h"
#include "fake.h"

#define RIG_LEN 65536u
#define RIG_WAIT_US 5000000u
#define RIG_REQUEST_US 500000u /* for a request, which a failed attempt does not make */

struct rig_ep {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE dto;
	DAT_EVD_HANDLE conn;
};

struct rig {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	DAT_EVD_HANDLE requests;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct rig_ep a, b;
	unsigned char memory[RIG_LEN];
};

/* Each step returns the first code that is no success. */
DAT_RETURN rig_open(struct rig *rig);
/* Zone, memory, dispatchers, endpoints, and a listener on rig->qual (0: any). */
DAT_RETURN rig_make(struct rig *rig);
/* Starts to connect a to the listener with that private data. */
DAT_RETURN rig_ask(struct rig *rig, DAT_TIMEOUT timeout, const void *private_data, DAT_COUNT size);
/* The request that comes of it, within RIG_WAIT_US. */
DAT_CR_HANDLE rig_request(struct rig *rig);
/* Starts to connect a to the listener with that private data, and accepts on b with the same. */
DAT_RETURN rig_connect(struct rig *rig, const void *private_data, DAT_COUNT size);
/* Closes abruptly; nothing is left of the instance. */
void rig_close(struct rig *rig);

/* The next event within RIG_WAIT_US; event_number 0: none came. */
DAT_EVENT rig_event(DAT_EVD_HANDLE evd);
void rig_expect_conn(const struct rig_ep *ep, DAT_EVENT_NUMBER number);
void rig_expect_dto(const struct rig_ep *ep, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status);
void rig_no_event(DAT_EVD_HANDLE evd);

/* Everything above with success, and both connected. */
void rig_begin(struct rig *rig);
/* After an end: both reset, and connected again. */
void rig_again(struct rig *rig);
/* a ends it, abruptly; both are told. */
void rig_part(struct rig *rig);
/* Both endpoints can connect again. */
void rig_reset(struct rig *rig);

DAT_LMR_TRIPLET rig_seg(struct rig *rig, size_t offset, size_t len);
DAT_RETURN rig_send(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags);
DAT_RETURN rig_recv(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie);
DAT_RETURN rig_write(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie,
		     DAT_COMPLETION_FLAGS flags);
/* Reads from `from` on into `to` on, offsets of the memory. */
DAT_RETURN rig_read(struct rig *rig, struct rig_ep *ep, size_t to, size_t from, size_t len,
		    uint64_t cookie, DAT_COMPLETION_FLAGS flags);
/* How many RDMA Reads the endpoint serves and starts at a time; before it is connected. */
DAT_RETURN rig_limit_reads(const struct rig_ep *ep, DAT_COUNT in, DAT_COUNT out);

#endif
