// SPDX-License-Identifier: BSD-2-Clause
/* The whole provider, linked into the test: an adapter with two endpoints. */
#ifndef TESTS_SOFT_SHM_KEEP_STAGE_H
#define TESTS_SOFT_SHM_KEEP_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>

#include "core/base/calls.h"

#define WAIT_US 20000000u
#define LENGTH 64u

#define ok(call) assert_int_equal((call), DAT_SUCCESS)

/* --- libdat's part --- */

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

/* --- an adapter with two endpoints --- */

static struct stage {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE request_evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE a, b; /* a connects, b accepts */
	DAT_CR_HANDLE cr;
	uint8_t memory[2 * LENGTH];
	DAT_LMR_CONTEXT lkey;
	pthread_t thread; /* of the test */
} stage;

static inline int open_stage(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = stage.memory};
	DAT_LMR_HANDLE lmr;

	(void)state;
	stage = (struct stage){.qual = 0, .thread = pthread_self()};
	ok(core_ia_open_safe((DAT_NAME_PTR) "keep", 8, &stage.async, &stage.ia));
	ok(core_pz_create(stage.ia, &stage.pz));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &stage.evd));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &stage.request_evd));
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.a));
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.b));
	ok(core_psp_create_any(stage.ia, &stage.qual, stage.request_evd, DAT_PSP_CONSUMER_FLAG,
			       &stage.psp));
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(stage.memory), stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &stage.lkey, NULL, NULL, NULL));
	return 0;
}

static inline int close_stage(void **state)
{
	(void)state;
	ok(core_ia_close(stage.ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}

static inline DAT_EVENT next_of(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	ok(core_evd_wait(evd, WAIT_US, 1, &event, &more));
	return event;
}

static inline void expect(DAT_EVENT_NUMBER number)
{
	assert_int_equal(next_of(stage.evd).event_number, number);
}

static inline void connect_to(DAT_CONN_QUAL qual)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, qual, WAIT_US, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static inline void take_request(void)
{
	DAT_EVENT event = next_of(stage.request_evd);

	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
}

static inline void accept_request(void)
{
	take_request();
	ok(core_cr_accept(stage.cr, stage.b, 0, NULL));
}

#endif
