// SPDX-License-Identifier: BSD-2-Clause
/* Flags, refusals and windows of the operations that DAT 2.0 adds. */
#include <stdarg.h>
#include <string.h>

#include <dat2/dat_ib_extensions.h>

#include "dto_util.h"

#undef dat_rmr_bind

enum kind { IMMEDIATE, FETCH_ADD, COMPARE_SWAP, KINDS };

#define ATOMIC_PRIVILEGES                                                                          \
	((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC))

static DAT_RETURN post(DAT_EP_HANDLE ep, enum kind kind, DAT_LMR_TRIPLET seg,
		       DAT_RMR_TRIPLET remote, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	switch (kind) {
	case IMMEDIATE:
		return dat_ib_post_rdma_write_immed(ep, 1, &seg, dt_cookie(cookie), &remote,
						    (DAT_UINT32)cookie, flags);
	case FETCH_ADD:
		return dat_ib_post_fetch_and_add(ep, 1, &seg, dt_cookie(cookie), &remote, flags);
	default:
		return dat_ib_post_cmp_and_swap(ep, 1, 2, &seg, dt_cookie(cookie), &remote, flags);
	}
}

/* The next completion, and it is a success of that request. */
static void expect_next(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event = dt_event(evd);

	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* Two connected endpoints, and memory of b that a may change by every operation. */
static void link_with(struct rig *rig, DAT_COMPLETION_FLAGS request_flags, struct dt_buf *target)
{
	rig->attr_a.request_completion_flags = request_flags;
	dt_buf_create(&rig->ia, rig->ia.pz, target, 4096, ATOMIC_PRIVILEGES);
	rig_link(rig);
}

/* D2-EXT-15: each flag that needs no attribute with each operation */
static void extended__each_flag__its_effect(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote;
	struct dt_buf target;

	if (dt_is_verbs())
		skip();
	link_with(rig, DAT_COMPLETION_DEFAULT_FLAG, &target);
	remote = dt_rseg(&target, 0, 8);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < 3 && kind == IMMEDIATE; i++)
			dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(9), 0));
		dt_ok(post(rig->a.ep, kind, seg, remote, 1, DAT_COMPLETION_SUPPRESS_FLAG));
		dt_ok(post(rig->a.ep, kind, seg, remote, 2, DAT_COMPLETION_BARRIER_FENCE_FLAG));
		dt_ok(post(rig->a.ep, kind, seg, remote, 3, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
		expect_next(rig->a.request, 2);
		expect_next(rig->a.request, 3);
		dt_no_event(rig->a.request);
		for (int i = 0; i < 3 && kind == IMMEDIATE; i++)
			expect_next(rig->b.recv, 9);
		dt_no_event(rig->b.recv);
		/* it needs an attribute */
		dt_fails_with(
			post(rig->a.ep, kind, seg, remote, 4, DAT_COMPLETION_UNSIGNALLED_FLAG),
			DAT_INVALID_PARAMETER,
			kind == FETCH_ADD ? DAT_INVALID_ARG6 : DAT_INVALID_ARG7);
	}
	dt_buf_free(&target);
}

/* D2-EXT-15: the waiter sleeps on; the completion is there */
static void extended__unsignalled__no_notification(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	struct dto_waiter waiter;
	DAT_RMR_TRIPLET remote;
	struct dt_buf target;

	if (dt_is_verbs())
		skip();
	link_with(rig, DAT_COMPLETION_UNSIGNALLED_FLAG, &target);
	remote = dt_rseg(&target, 0, 8);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < 2 && kind == IMMEDIATE; i++)
			dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(9), 0));
		dto_waiter_start(&waiter, rig->a.request, 1);
		dt_ok(post(rig->a.ep, kind, seg, remote, 1, DAT_COMPLETION_UNSIGNALLED_FLAG));
		dto_waiter_sleeps(&waiter);
		dt_ok(post(rig->a.ep, kind, seg, remote, 2, DAT_COMPLETION_DEFAULT_FLAG));
		assert_int_equal(pthread_join(waiter.thread, NULL), 0);
		dt_ok(waiter.ret);
		assert_int_equal(
			waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
		expect_next(rig->a.request, 2);
		dt_drain(rig->b.recv);
	}
	dt_buf_free(&target);
}

/* D2-IMM-02: what a Write is refused for, with the numbers of the macro */
static void write_immediate__refused_as_a_write__numbers_of_the_macro(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 64), wrong = seg, many[64] = {{0}};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 64), brief = dt_rseg(&rig->y, 0, 63);
	const DAT_DTO_COOKIE cookie = dt_cookie(1);
	DAT_EP_HANDLE ep;
	struct dt_buf alien;
	DAT_PZ_HANDLE pz;

	if (dt_is_verbs() && dt_is_iwarp())
		skip();
	rig_link(rig);
	ep = rig->a.ep;
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, -1, &seg, cookie, &remote, 1, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	assert_true(rig->attr_a.max_rdma_write_iov < (DAT_COUNT)COUNT_OF(many));
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, rig->attr_a.max_rdma_write_iov + 1, many,
						   cookie, &remote, 1, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, 1, NULL, cookie, &remote, 1, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, 1, &seg, cookie, NULL, 1, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, 1, &seg, cookie, &remote, 1,
						   DAT_COMPLETION_EVD_THRESHOLD_FLAG),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	dt_fails(dat_ib_post_rdma_write_immed(ep, 1, &seg, cookie, &brief, 1, 0), DAT_LENGTH_ERROR);
	wrong.lmr_context ^= 0x40000000;
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, 1, &wrong, cookie, &remote, 1, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	wrong = seg;
	wrong.virtual_address += RIG_LEN;
	dt_fails(dat_ib_post_rdma_write_immed(ep, 1, &wrong, cookie, &remote, 1, 0),
		 DAT_INVALID_PARAMETER);
	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_buf_create(&rig->ia, pz, &alien, 64, DAT_MEM_PRIV_ALL_FLAG);
	wrong = dt_seg(&alien, 0, 64);
	dt_fails_with(dat_ib_post_rdma_write_immed(ep, 1, &wrong, cookie, &remote, 1, 0),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	dt_buf_free(&alien);
	dt_ok(dat_pz_free(pz));
	expect_quiet(&rig->a);
	dt_check_bytes(rig->y.p, 64, RIG_FILL);
	rig_works(rig);
}

/* D2-DTO-06: both arrays are overwritten when the post has returned; nothing else of the
 * library is called until then */
static void posts__arrays_overwritten__data_and_events_as_posted(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg[2];
	DAT_RMR_TRIPLET remote;

	rig_link(rig);
	seg[0] = dt_seg(&rig->y, 0, 8);
	seg[1] = dt_seg(&rig->y, 1000, 8);
	dt_ok(dat_ep_post_recv(rig->b.ep, 2, seg, dt_cookie(9), 0));
	memset(seg, 0x5a, sizeof(seg));
	seg[0] = dt_seg(&rig->x, 100, 8);
	seg[1] = dt_seg(&rig->x, 200, 8);
	dt_ok(dat_ep_post_send(rig->a.ep, 2, seg, dt_cookie(1), 0));
	memset(seg, 0x5a, sizeof(seg));
	expect_received(&rig->b, 9, 16);
	expect_sent(&rig->a, 1, 16);
	assert_memory_equal(rig->y.p, rig->x.p + 100, 8);
	assert_memory_equal(rig->y.p + 1000, rig->x.p + 200, 8);
	seg[0] = dt_seg(&rig->x, 300, 8);
	seg[1] = dt_seg(&rig->x, 400, 8);
	remote = dt_rseg(&rig->y, 2000, 16);
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 2, seg, dt_cookie(2), &remote, 0));
	memset(seg, 0x5a, sizeof(seg));
	memset(&remote, 0x5a, sizeof(remote));
	expect_sent(&rig->a, 2, 16);
	seg[0] = dt_seg(&rig->x, 3000, 16);
	remote = dt_rseg(&rig->y, 2000, 16);
	dt_ok(dat_ep_post_rdma_read(rig->a.ep, 1, seg, dt_cookie(3), &remote, 0));
	memset(seg, 0x5a, sizeof(seg));
	memset(&remote, 0x5a, sizeof(remote));
	expect_sent(&rig->a, 3, 16);
	assert_memory_equal(rig->x.p + 3000, rig->x.p + 300, 8);
	assert_memory_equal(rig->x.p + 3008, rig->x.p + 400, 8);
}

/* D2-RMR-16 D2-LMR-10: through a window, if the region has the privilege, too */
static void rmr_bind__remote_atomic__if_the_region_has_it(void **state)
{
	const DAT_RMR_COOKIE cookie = {.as_64 = 7};
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8), piece = dt_seg(&rig->y, 0, 64);
	DAT_RMR_TRIPLET remote;
	struct dt_buf target;
	DAT_RMR_CONTEXT key;
	DAT_RMR_HANDLE rmr;

	if (dt_is_verbs())
		skip();
	link_with(rig, DAT_COMPLETION_DEFAULT_FLAG, &target);
	dt_ok(dat_rmr_create(rig->ia.pz, &rmr));
	dt_fails(dat_rmr_bind(rmr, rig->y.lmr, &piece,
			      (DAT_MEM_PRIV_FLAGS)DAT_IB_MEM_PRIV_REMOTE_ATOMIC, DAT_VA_TYPE_VA,
			      rig->b.ep, cookie, 0, &key),
		 DAT_PRIVILEGES_VIOLATION);
	piece = dt_seg(&target, 0, 64);
	dt_ok(dat_rmr_bind(rmr, target.lmr, &piece,
			   (DAT_MEM_PRIV_FLAGS)DAT_IB_MEM_PRIV_REMOTE_ATOMIC, DAT_VA_TYPE_VA,
			   rig->b.ep, cookie, 0, &key));
	assert_int_equal(dt_event(rig->b.request).event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	remote = dt_rseg(&target, 0, 8);
	remote.rmr_context = key;
	dt_ok(post(rig->a.ep, FETCH_ADD, seg, remote, 1, 0));
	expect_next(rig->a.request, 1);
	assert_int_equal(*(uint64_t *)target.p, 1);
	dt_ok(dat_rmr_free(rmr));
	dt_buf_free(&target);
}

/* D2-INV-09: a message without the flag wakes no waiter for solicited events, one with it does */
static void send_with_invalidate__solicited__kills_and_wakes(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;
	struct dt_buf first, second;

	if (dt_is_verbs())
		skip();
	rig->attr_b.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	dt_buf_create(&rig->ia, rig->ia.pz, &first, 64, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &second, 64, DAT_MEM_PRIV_ALL_FLAG);
	rig_link(rig);
	for (uint64_t i = 1; i <= 2; i++)
		dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(i), 0));
	dto_waiter_start(&waiter, rig->b.recv, 1);
	dt_ok(dat_ep_post_send_with_invalidate(rig->a.ep, 0, NULL, dt_cookie(11), 0, DAT_TRUE,
					       first.rkey));
	expect_next(rig->a.request, 11);
	dto_waiter_sleeps(&waiter);
	dt_ok(dat_ep_post_send_with_invalidate(rig->a.ep, 0, NULL, dt_cookie(12),
					       DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_TRUE,
					       second.rkey));
	assert_int_equal(pthread_join(waiter.thread, NULL), 0);
	dt_ok(waiter.ret);
	assert_int_equal(waiter.event.event_data.dto_completion_event_data.rmr_context, first.rkey);
	assert_int_equal(dt_event(rig->b.recv).event_data.dto_completion_event_data.rmr_context,
			 second.rkey);
	expect_next(rig->a.request, 12);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&second, 0, 8), 13, 0);
	expect_request(&rig->a, 13, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
	dt_buf_free(&first);
	dt_buf_free(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(extended__each_flag__its_effect),
		rig_test_bare(extended__unsignalled__no_notification),
		rig_test_bare(write_immediate__refused_as_a_write__numbers_of_the_macro),
		rig_test_bare(posts__arrays_overwritten__data_and_events_as_posted),
		rig_test_bare(rmr_bind__remote_atomic__if_the_region_has_it),
		rig_test_bare(send_with_invalidate__solicited__kills_and_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
