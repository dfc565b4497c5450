// SPDX-License-Identifier: BSD-2-Clause
/* The stage for adapters over TCP. */
#ifndef TESTS_SOFT_IWARP_SETUP_STAGE_H
#define TESTS_SOFT_IWARP_SETUP_STAGE_H

#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../soft/stage.h"

#define WAIT_MS ((int)(WAIT_US / 1000))
#define HASTY_MS 400u /* setup_timeout_ms of the adapter "hasty" */

static inline int provide(void **state)
{
	(void)state;
	add_adapter("tcp", "127.0.0.1 transport=tcp");
	add_adapter("six", "::1 transport=tcp");
	add_adapter("sleepy", "127.0.0.1 transport=tcp spin_us=0 link_timeout_ms=600000");
	add_adapter("hasty", "127.0.0.1 transport=tcp setup_timeout_ms=400");
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
