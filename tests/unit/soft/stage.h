// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole provider, linked into the test: an adapter with a service point, two endpoints and
 * memory. The transport is that of the adapter.
 */
#ifndef UNIT_SOFT_STAGE_H
#define UNIT_SOFT_STAGE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/calls.h"

#define WAIT_US 20000000u

#define ok(call) assert_int_equal((call), DAT_SUCCESS)

/* libdat's part */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

static struct stage {
	pthread_t thread; /* of the test */
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE request_evd;
	DAT_CONN_QUAL qual; /* of the service point */
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE a, b; /* a connects, b accepts */
	DAT_CR_HANDLE cr;
	uint8_t memory[128];
	DAT_LMR_CONTEXT lkey;
} stage;

static inline void add_adapter(const char *name, const char *instance_data)
{
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = 1, .dapl_version_minor = 2, .is_thread_safe = DAT_TRUE};

	strcpy(info.ia_name, name);
	dat_provider_init(&info, instance_data);
}

static inline int open_adapter(const char *name)
{
	DAT_REGION_DESCRIPTION region = {.for_va = stage.memory};
	DAT_LMR_HANDLE lmr;

	stage = (struct stage){.thread = pthread_self()};
	ok(core_ia_open_safe((DAT_NAME_PTR)(uintptr_t)name, 8, &stage.async, &stage.ia));
	ok(core_pz_create(stage.ia, &stage.pz));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL,
			   DAT_EVD_DEFAULT_FLAG | DAT_EVD_RMR_BIND_FLAG, &stage.evd));
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
	DAT_RETURN ret;

	do /* libFuzzer's timer may interrupt it */
		ret = core_evd_wait(evd, WAIT_US, 1, &event, &more);
	while (DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL);
	ok(ret);
	return event;
}

static inline DAT_CONNECTION_EVENT_DATA expect(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next_of(stage.evd);

	assert_int_equal(event.event_number, number);
	return event.event_data.connect_event_data;
}

#endif
