// SPDX-License-Identifier: BSD-2-Clause
/*
 * An instance of the provider over the stand-in, with two endpoints. It also stands in for libdat's
 * registration. No function asserts success that a test's own fault may prevent.
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
#include "core/base/status.h"
#include "fake.h"

#define RIG_LEN 65536u
#define RIG_WAIT_US 5000000u

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

/* Each returns the first code that is not success. */
DAT_RETURN rig_open(struct rig *rig);
/* Makes zone, memory, EVDs, endpoints, and a listener on rig->qual (0: any). */
DAT_RETURN rig_make(struct rig *rig);
/* a starts to connect to the listener, with private data. */
DAT_RETURN rig_ask(struct rig *rig, DAT_TIMEOUT timeout, const void *private_data, DAT_COUNT size);
/* Waits for the request, for RIG_WAIT_US at most. */
DAT_CR_HANDLE rig_request(struct rig *rig);
/* a starts to connect to the listener, and b accepts, both with the same private data. */
DAT_RETURN rig_connect(struct rig *rig, const void *private_data, DAT_COUNT size);
/* Closes abruptly, and checks that nothing is left. */
void rig_close(struct rig *rig);

/* The next event within RIG_WAIT_US; event_number 0: there was none. */
DAT_EVENT rig_event(DAT_EVD_HANDLE evd);
void rig_expect_conn(const struct rig_ep *ep, DAT_EVENT_NUMBER number);
void rig_expect_dto(const struct rig_ep *ep, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status);
void rig_no_event(DAT_EVD_HANDLE evd);

/* All of the above with success; then both are connected. */
void rig_begin(struct rig *rig);
/* Resets both after an end, and connects them again. */
void rig_again(struct rig *rig);
/* a disconnects abruptly, and both get the event. */
void rig_part(struct rig *rig);
/*
 * Connects again, both as foreign peers that send more private data than an OpenDAT. The request
 * and the answer show that many bytes, all that the connection managers deliver.
 */
void rig_expect_foreign(struct rig *rig, DAT_COUNT asked, DAT_COUNT answered);
/* Resets both endpoints, so that they can connect again. */
void rig_reset(struct rig *rig);

DAT_LMR_TRIPLET rig_seg(struct rig *rig, size_t offset, size_t len);
DAT_RETURN rig_send(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags);
DAT_RETURN rig_recv(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie);
/* Sends a message from b to a. Over iWARP, this ends the empty Writes of a (verbs/connect/setup.c).
 */
void rig_answer(struct rig *rig);
DAT_RETURN rig_write(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie,
		     DAT_COMPLETION_FLAGS flags);
/* RDMA Read between two offsets of the memory. */
DAT_RETURN rig_read(struct rig *rig, struct rig_ep *ep, size_t to, size_t from, size_t len,
		    uint64_t cookie, DAT_COMPLETION_FLAGS flags);
/* Sets how many RDMA Reads the endpoint serves and starts at a time; before it is connected. */
DAT_RETURN rig_limit_reads(const struct rig_ep *ep, DAT_COUNT in, DAT_COUNT out);

#endif
