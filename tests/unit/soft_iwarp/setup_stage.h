// SPDX-License-Identifier: BSD-2-Clause
/* The whole provider, linked into the test: an adapter over TCP with a service point. */
#ifndef TESTS_SOFT_IWARP_SETUP_STAGE_H
#define TESTS_SOFT_IWARP_SETUP_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/calls.h"

#define WAIT_US 20000000u
#define WAIT_MS ((int)(WAIT_US / 1000))
#define HASTY_MS 400u /* setup_timeout_ms of the adapter "hasty" */

#define ok(call) assert_int_equal((call), DAT_SUCCESS)

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

/* --- an adapter with a service point and two endpoints --- */

static struct stage {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	DAT_EVD_HANDLE request_evd;
	DAT_CONN_QUAL qual; /* of the service point: its TCP port */
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE a, b; /* a connects, b accepts */
	DAT_CR_HANDLE cr;
	uint8_t memory[64];
	DAT_LMR_CONTEXT lkey;
} stage;

static inline void add_adapter(const char *name, const char *instance_data)
{
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = 1, .dapl_version_minor = 2, .is_thread_safe = DAT_TRUE};

	strcpy(info.ia_name, name);
	dat_provider_init(&info, instance_data);
}

static inline int provide(void **state)
{
	(void)state;
	add_adapter("tcp", "127.0.0.1 transport=tcp");
	add_adapter("six", "::1 transport=tcp");
	add_adapter("hasty", "127.0.0.1 transport=tcp setup_timeout_ms=400");
	return 0;
}

static inline int open_adapter(const char *name)
{
	DAT_REGION_DESCRIPTION region = {.for_va = stage.memory};
	DAT_LMR_HANDLE lmr;

	stage = (struct stage){.qual = 0};
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

static inline int open_stage(void **state)
{
	(void)state;
	return open_adapter("tcp");
}

static inline int open_hasty(void **state)
{
	(void)state;
	return open_adapter("hasty");
}

static inline int open_six(void **state)
{
	(void)state;
	return open_adapter("six");
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

static inline DAT_CONNECTION_EVENT_DATA expect(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next_of(stage.evd);

	assert_int_equal(event.event_number, number);
	return event.event_data.connect_event_data;
}

static inline void expect_quiet(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_int_equal(DAT_GET_TYPE(core_evd_dequeue(evd, &event)), DAT_QUEUE_EMPTY);
}

static inline DAT_CR_PARAM take_request(void)
{
	DAT_EVENT event = next_of(stage.request_evd);
	DAT_CR_PARAM param;

	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
	ok(core_cr_query(stage.cr, DAT_CR_FIELD_ALL, &param));
	return param;
}

static inline void accept_with(const void *data, size_t size)
{
	ok(core_cr_accept(stage.cr, stage.b, (DAT_COUNT)size, (DAT_PVOID)(uintptr_t)data));
}

static inline DAT_EP_STATE state_of(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	ok(core_ep_get_status(ep, &state, &recv_idle, &request_idle));
	return state;
}

static inline struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Listens at a qualifier of the test, beside that of the stage. */
static inline DAT_PSP_HANDLE listen_for(DAT_CONN_QUAL qual)
{
	DAT_PSP_HANDLE psp;

	ok(core_psp_create(stage.ia, qual, stage.request_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

static inline void connect_with(DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us, const void *data,
				size_t size)
{
	struct sockaddr_in address = loopback(0);

	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, qual, timeout_us, (DAT_COUNT)size,
			   (DAT_PVOID)(uintptr_t)data, DAT_QOS_BEST_EFFORT,
			   DAT_CONNECT_DEFAULT_FLAG));
}

static inline uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
