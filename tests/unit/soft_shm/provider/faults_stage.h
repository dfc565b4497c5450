// SPDX-License-Identifier: BSD-2-Clause
/* The whole provider, linked into the test: an adapter, two endpoints and memory. */
#ifndef TESTS_SOFT_SHM_FAULTS_STAGE_H
#define TESTS_SOFT_SHM_FAULTS_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"
#include "core/base/calls.h"
#include "core/base/handle.h"
#include "core/base/instance.h"

#define WAIT_US 20000000u
#define NTH_MAX 200 /* calls of one kind that one action is expected to make */
#define LENGTH 65536u

/* --- libdat's part --- */

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

/* --- what an action starts from --- */

struct side {
	DAT_EP_HANDLE ep;
	bool is_established;
	bool has_failed;
};

static struct stage {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd; /* for all events */
	DAT_CONN_QUAL qual; /* of the service point */
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct side a, b;
	unsigned char *memory; /* in a sealed file: first half the source, second half the target */
	int memory_fd;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	uint32_t seed;
} stage;

#define ok(call) assert_int_equal((call), DAT_SUCCESS)

static const char *adapter = "faulty";

static inline void stage_open(void)
{
	memset(&stage, 0, sizeof(stage));
	ok(core_ia_open_safe((DAT_NAME_PTR)(uintptr_t)adapter, 8, &stage.async, &stage.ia));
	ok(core_pz_create(stage.ia, &stage.pz));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &stage.evd));
}

static inline void stage_endpoints(void)
{
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.a.ep));
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.b.ep));
}

static inline void stage_listen(void)
{
	stage_open();
	stage_endpoints();
	ok(core_psp_create_any(stage.ia, &stage.qual, stage.evd, DAT_PSP_CONSUMER_FLAG,
			       &stage.psp));
}

static inline DAT_RETURN connect_a_to(DAT_IA_ADDRESS_PTR address)
{
	return core_ep_connect(stage.a.ep, address, stage.qual, WAIT_US, 0, NULL,
			       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static inline DAT_RETURN connect_a(void)
{
	DAT_IA_ATTR attr;

	ok(core_ia_query(stage.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	return connect_a_to(attr.ia_address_ptr);
}

static inline DAT_EVENT next_event(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	ok(core_evd_wait(stage.evd, WAIT_US, 1, &event, &more));
	return event;
}

static inline void stage_request(void)
{
	DAT_EVENT event;

	stage_listen();
	ok(connect_a());
	event = next_event();
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
}

static inline DAT_RETURN accept_b(void)
{
	return core_cr_accept(stage.cr, stage.b.ep, 0, NULL);
}

static inline void take_event(const DAT_EVENT *event)
{
	struct side *side;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		stage.cr = event->event_data.cr_arrival_event_data.cr_handle;
		ok(accept_b());
		return;
	}
	side = event->event_data.connect_event_data.ep_handle == stage.a.ep ? &stage.a : &stage.b;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		side->is_established = true;
	else
		side->has_failed = true;
}

/* Waits for the end of the attempt. True: both are connected. */
static inline bool attempt_ends(void)
{
	while (!stage.a.is_established && !stage.a.has_failed) {
		DAT_EVENT event = next_event();

		take_event(&event);
	}
	while (stage.a.is_established && !stage.a.has_failed && !stage.b.is_established) {
		DAT_EVENT event = next_event();

		take_event(&event);
	}
	return !stage.a.has_failed && !stage.b.has_failed;
}

static inline void stage_close(void)
{
	ok(core_ia_close(stage.ia, DAT_CLOSE_ABRUPT_FLAG));
	if (!stage.memory)
		return;
	munmap(stage.memory, 2 * LENGTH);
	close(stage.memory_fd);
}

/* --- memory and data --- */

static inline void stage_memory(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	int fd = memfd_create("faults", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * LENGTH), 0);
	stage.memory = mmap(NULL, 2 * LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(stage.memory, MAP_FAILED);
	region.for_va = stage.memory;
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * LENGTH, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &stage.lkey, &stage.rkey, NULL, NULL));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	stage.memory_fd = fd; /* from which a peer can map the memory */
}

static inline void stage_connected(void)
{
	stage_request();
	ok(accept_b());
	assert_true(attempt_ends());
	stage_memory();
}

static inline DAT_LMR_TRIPLET half(unsigned which)
{
	return (DAT_LMR_TRIPLET){.lmr_context = stage.lkey,
				 .virtual_address = (uintptr_t)stage.memory + which * LENGTH,
				 .segment_length = LENGTH};
}

static inline void fill_source(void)
{
	stage.seed++;
	for (uint32_t i = 0; i < LENGTH; i++)
		stage.memory[i] = (unsigned char)(i * 7 + stage.seed);
}

static inline void check_target(void)
{
	assert_memory_equal(stage.memory, stage.memory + LENGTH, LENGTH);
}

static inline void expect_completions(int count)
{
	while (count--) {
		DAT_EVENT event = next_event();

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
}

static inline void rdma_once(bool is_write)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = stage.rkey,
				  .target_address =
					  (uintptr_t)stage.memory + (is_write ? LENGTH : 0),
				  .segment_length = LENGTH};
	DAT_LMR_TRIPLET local = half(is_write ? 0 : 1);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	fill_source();
	if (is_write)
		ok(core_ep_post_rdma_write(stage.a.ep, 1, &local, cookie, &remote, 0));
	else
		ok(core_ep_post_rdma_read(stage.a.ep, 1, &local, cookie, &remote, 0));
	expect_completions(1);
	check_target();
}

static inline void send_once(void)
{
	DAT_LMR_TRIPLET from = half(0), to = half(1);
	DAT_DTO_COOKIE cookie = {.as_64 = 2};

	fill_source();
	ok(core_ep_post_recv(stage.b.ep, 1, &to, cookie, 0));
	ok(core_ep_post_send(stage.a.ep, 1, &from, cookie, 0));
	expect_completions(2);
	check_target();
}

#endif
