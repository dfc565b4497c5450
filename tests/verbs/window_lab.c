// SPDX-License-Identifier: BSD-2-Clause
/* What the programs about memory windows share (window_lab.h). */
#include "window_lab.h"

struct rig rig;
DAT_RMR_HANDLE rmr;

int window_setup(void **state)
{
	(void)state;
	rig.qual = 0;
	rig_begin(&rig);
	assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	return 0;
}

int window_teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

DAT_RETURN bind_seg(DAT_RMR_HANDLE handle, DAT_LMR_TRIPLET seg, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	return core_rmr_bind(handle, &seg, BIND_REMOTE, rig.b.ep, (DAT_RMR_COOKIE){.as_64 = cookie},
			     flags, context);
}

DAT_RMR_CONTEXT bind_range(size_t offset, size_t len, uint64_t cookie)
{
	DAT_RMR_CONTEXT context = 0;

	assert_int_equal(bind_seg(rmr, rig_seg(&rig, offset, len), cookie, 0, &context),
			 DAT_SUCCESS);
	return context;
}

void expect_bind(uint64_t cookie, DAT_RMR_BIND_COMPLETION_STATUS status)
{
	const DAT_EVENT event = rig_event(rig.b.dto);
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data =
		&event.event_data.rmr_completion_event_data;

	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(data->user_cookie.as_64, cookie);
	assert_int_equal(data->status, status);
}

DAT_RMR_CONTEXT bound(size_t offset, size_t len)
{
	const DAT_RMR_CONTEXT context = bind_range(offset, len, 77);

	expect_bind(77, DAT_RMR_BIND_SUCCESS);
	return context;
}

void unbound(void)
{
	const DAT_LMR_TRIPLET nothing = {.segment_length = 0};

	assert_int_equal(bind_seg(rmr, nothing, 78, 0, NULL), DAT_SUCCESS);
	expect_bind(78, DAT_RMR_BIND_SUCCESS);
}

void check_write(DAT_RMR_CONTEXT context, size_t offset, bool is_good)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = {.rmr_context = context,
			      .target_address = (uintptr_t)rig.memory + offset,
			      .segment_length = 8};
	DAT_EVENT event;

	memset(rig.memory, is_good ? 0x5a : 0xa5, 8);
	memset(rig.memory + offset, 0, 8);
	assert_int_equal(core_ep_post_rdma_write(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = 5},
						 &to, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	rig_expect_dto(&rig.a, 5, is_good ? DAT_DTO_SUCCESS : DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(memcmp(rig.memory, rig.memory + offset, 8) == 0, is_good);
	if (is_good)
		return;
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	event = rig_event(rig.b.conn);
	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}
