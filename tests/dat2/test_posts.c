// SPDX-License-Identifier: BSD-2-Clause
/* Posts of DAT 2.0, and the events that they raise. */
#include <stdarg.h>
#include <string.h>

#include <dat2/dat_ib_extensions.h>

#include "dto_util.h"

#define POISON 0x5a

/* --- events --- */

struct guarded {
	DAT_EVENT event;
	unsigned char guard[64];
};

/* Waits for the next event, and takes it into poisoned memory. */
static void take(DAT_EVD_HANDLE evd, struct guarded *into)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	memset(into, POISON, sizeof(*into));
	while (dat_evd_dequeue(evd, &into->event) != DAT_SUCCESS)
		assert_true(dt_now_us() < end);
	dt_check_bytes(into->guard, sizeof(into->guard), POISON);
	assert_ptr_equal(into->event.evd_handle, evd);
}

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const struct guarded *found)
{
	return (const DAT_IB_EXTENSION_EVENT_DATA *)found->event.event_extension_data;
}

/* D2-EVT-01 D2-EVT-02 D2-EVT-04 D2-EVT-05 D2-EXT-08 D2-EXT-14 D2-EXT-18 D2-EXT-20 D2-IMM-20 D2-EXT-21:
 * plain and extended completions of one queue */
static void events__plain_and_extended__what_belongs_to_them_written(void **state)
{
	const DAT_DTO_COOKIE cookie = {.as_64 = 0x8877665544332211u};
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	struct guarded found;

	assert_int_equal(offsetof(DAT_EVENT, event_data), 16);
	assert_int_equal(offsetof(DAT_EVENT, event_extension_data), 56);
	assert_int_equal(sizeof(DAT_EVENT), 120);
	if (dt_is_iwarp())
		skip();
	rig_link(rig);
	for (int i = 0; i < 4; i++) {
		dt_ok(dat_ep_post_recv(rig->b.ep, 1, &(DAT_LMR_TRIPLET){0}, cookie, 0));
		if (i % 2)
			dt_ok(dat_ib_post_rdma_write_immed(rig->a.ep, 1, &seg, cookie, &remote,
							   0x7777, 0));
		else
			dt_ok(dat_ep_post_send(rig->a.ep, 0, NULL, cookie, 0));
	}
	for (int i = 0; i < 4; i++) {
		const bool is_extended = i % 2;

		take(rig->b.recv, &found);
		assert_int_equal(found.event.event_number, is_extended ? 0x40000 : 1);
		assert_int_equal(found.event.event_data.dto_completion_event_data.user_cookie.as_64,
				 cookie.as_64);
		if (is_extended) {
			assert_int_equal(extension(&found)->val.immed.data, 0x7777);
			dt_check_bytes((const unsigned char *)extension(&found) + 16, 48, 0);
		} else {
			dt_check_bytes(found.event.event_extension_data, 64, POISON);
		}
		take(rig->a.request, &found);
		assert_int_equal(found.event.event_number, is_extended ? 0x40000 : 1);
		if (is_extended) {
			assert_int_equal(extension(&found)->status, DAT_OP_SUCCESS);
			dt_check_bytes((const unsigned char *)extension(&found) + 8, 56, 0);
		}
	}
}

/* --- posts --- */

/* D2-DTO-01 D2-DTO-04 D2-DTO-15 */
static void post__segments_of_length_0_and_flag_of_kernels__skipped_and_refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET segs[3] = {dt_seg(&rig->x, 0, 8), {0}, dt_seg(&rig->x, 100, 8)};

	rig_link(rig);
	memset(&segs[1], POISON, sizeof(segs[1]));
	segs[1].segment_length = 0;
	dt_fails_with(dat_ep_post_send(rig->a.ep, 1, segs, dt_cookie(1),
				       DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 64), 9);
	dt_ok(dat_ep_post_send(rig->a.ep, 3, segs, dt_cookie(1), 0));
	expect_received(&rig->b, 9, 16);
	expect_sent(&rig->a, 1, 16);
	assert_memory_equal(rig->y.p, rig->x.p, 8);
	assert_memory_equal(rig->y.p + 8, rig->x.p + 100, 8);
}

/* D2-IMM-09 */
static void write_immediate__no_segments__remote_is_not_looked_at(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_TRIPLET remote;
	struct guarded found;

	if (dt_is_iwarp())
		skip();
	memset(&remote, POISON, sizeof(remote));
	remote.segment_length = 0;
	rig_link(rig);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(7), 0));
	dt_ok(dat_ib_post_rdma_write_immed(rig->a.ep, 0, NULL, dt_cookie(5), &remote, 99, 0));
	take(rig->b.recv, &found);
	assert_int_equal(found.event.event_data.dto_completion_event_data.transfered_length, 0);
	assert_int_equal(extension(&found)->val.immed.data, 99);
	take(rig->a.request, &found);
	assert_int_equal(found.event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* D2-IMM-11: the peer's completion comes, and of the requester's the next one alone */
static void write_immediate__suppressed__completes_at_the_peer(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	struct guarded found;

	if (dt_is_iwarp())
		skip();
	rig_link(rig);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(7), 0));
	dt_ok(dat_ib_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(5), &remote, 99,
					   DAT_COMPLETION_SUPPRESS_FLAG));
	post_write(&rig->a, seg, remote, 6, 0);
	take(rig->b.recv, &found);
	assert_int_equal(extension(&found)->val.immed.data, 99);
	expect_sent(&rig->a, 6, 8);
	dt_no_event(rig->a.request);
}

/* D2-EXT-17 D2-IMM-14 D2-ATOM-24 D2-EXT-10 */
static void extended__after_a_disconnect__flushed_with_operation_and_type(void **state)
{
	static const unsigned int operations[] = {8, 10, 11}, types[] = {2, 0, 1};
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	DAT_DTO_COMPLETION_EVENT_DATA data;
	struct guarded found;
	DAT_EP_HANDLE ep;

	if (dt_is_iwarp())
		skip();
	rig_link(rig);
	ep = rig->a.ep;
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	dt_ok(dat_ib_post_rdma_write_immed(ep, 1, &seg, dt_cookie(0), &remote, 1, 0));
	dt_ok(dat_ib_post_fetch_and_add(ep, 1, &seg, dt_cookie(1), &remote, 0));
	dt_ok(dat_ib_post_cmp_and_swap(ep, 1, 2, &seg, dt_cookie(2), &remote, 0));
	for (unsigned int i = 0; i < COUNT_OF(operations); i++) {
		take(rig->a.request, &found);
		data = found.event.event_data.dto_completion_event_data;
		assert_int_equal(found.event.event_number, 0x40000);
		assert_int_equal(data.user_cookie.as_64, i);
		assert_int_equal(data.status, DAT_DTO_ERR_FLUSHED);
		assert_int_equal(data.operation, operations[i]);
		assert_int_equal(extension(&found)->type, types[i]);
		assert_int_equal(extension(&found)->status, DAT_IB_OP_ERR);
	}
	dt_check_bytes(rig->y.p, 8, RIG_FILL);
}

/* D2-ATOM-10 D2-EXT-07 */
static void atomics__local_buffer_or_none__checked_as_of_a_read(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	struct dt_buf source;
	DAT_LMR_TRIPLET seg;

	if (dt_is_verbs())
		skip();
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG, &source);
	rig_link(rig);
	seg = dt_seg(&source, 0, 8);
	dt_fails_with(dat_ib_post_fetch_and_add(rig->a.ep, 1, &seg, dt_cookie(1), &remote, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	seg = dt_seg(&rig->x, 0, 8);
	dt_fails_with(dat_ib_post_fetch_and_add(rig->a.ep, 1, &seg, dt_cookie(1), NULL, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	expect_quiet(&rig->a);
	dt_ok(dat_lmr_free(source.lmr));
}

/* D2-ATOM-12 */
static void atomics__unknown_context__connection_breaks(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	struct guarded found;

	if (dt_is_verbs())
		skip();
	rig_link(rig);
	remote.rmr_context ^= 0x40000000;
	dt_ok(dat_ib_post_cmp_and_swap(rig->a.ep, 1, 2, &seg, dt_cookie(1), &remote, 0));
	take(rig->a.request, &found);
	assert_int_equal(found.event.event_data.dto_completion_event_data.status,
			 DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
	dt_check_bytes(rig->y.p, 8, RIG_FILL);
}

/* --- extended operations as any other request --- */

enum extended { IMMEDIATE, FETCH_ADD, COMPARE_SWAP, EXTENDED };

/* Memory of b that atomic operations may change; y is not. */
static void target_create(struct rig *rig, struct dt_buf *target)
{
	dt_buf_create(
		&rig->ia, rig->ia.pz, target, 64,
		(DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC));
}

static DAT_RETURN post_extended(struct rig *rig, const struct dt_buf *target, enum extended kind,
				uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(target, 0, 8);

	switch (kind) {
	case IMMEDIATE:
		return dat_ib_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(cookie), &remote,
						    (DAT_UINT32)cookie, flags);
	case FETCH_ADD:
		return dat_ib_post_fetch_and_add(rig->a.ep, 1, &seg, dt_cookie(cookie), &remote,
						 flags);
	default:
		return dat_ib_post_cmp_and_swap(rig->a.ep, 1, 2, &seg, dt_cookie(cookie), &remote,
						flags);
	}
}

static void expect_done(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	struct guarded found;

	take(evd, &found);
	assert_int_equal(found.event.event_data.dto_completion_event_data.user_cookie.as_64,
			 cookie);
	assert_int_equal(found.event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

#define SLOTS 4u

/* D2-EXT-16: the first request waits for a Receive, and all completions after it wait, too */
static void extended__queue_full__refused_and_usable(void **state)
{
	struct rig *rig = *state;
	struct dt_buf target;

	if (dt_is_verbs())
		skip();
	rig->attr_a.max_request_dtos = SLOTS;
	target_create(rig, &target);
	rig_link(rig);
	for (int round = 0; round < 2; round++) {
		dt_ok(post_extended(rig, &target, IMMEDIATE, 0, 0));
		for (unsigned int i = 1; i < SLOTS; i++)
			dt_ok(post_extended(rig, &target, i % EXTENDED, i, 0));
		for (int kind = 0; kind < EXTENDED; kind++)
			dt_fails_with(post_extended(rig, &target, kind, 0xBAD, 0),
				      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
		dt_stays_empty(rig->a.request);
		for (int i = 0; i < 2; i++) /* one for each with immediate data */
			dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(7), 0));
		for (unsigned int i = 0; i < SLOTS; i++)
			expect_done(rig->a.request, i);
		dt_no_event(rig->a.request);
		dt_drain(rig->b.recv);
	}
	dt_buf_free(&target);
}

/* D2-IMM-10: it waits as a Send does, and the Receive that comes later has the value */
static void write_immediate__no_receive__waits_for_one(void **state)
{
	struct rig *rig = *state;
	struct guarded found;

	if (dt_is_verbs())
		skip();
	rig_link(rig);
	dt_ok(post_extended(rig, &rig->y, IMMEDIATE, 5, 0));
	dt_stays_empty(rig->a.request);
	dt_no_event(rig->b.recv);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(7), 0));
	take(rig->b.recv, &found);
	assert_int_equal(found.event.event_data.dto_completion_event_data.user_cookie.as_64, 7);
	assert_int_equal(extension(&found)->val.immed.data, 5);
	assert_memory_equal(rig->y.p, rig->x.p, 8);
	expect_done(rig->a.request, 5);
}

#define ROUNDS 5 /* of six requests: the queue has room for 32 */

/* D2-EXT-19 */
static void extended__among_others__completed_in_the_order_of_posting(void **state)
{
	struct rig *rig = *state;
	struct dt_buf target;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 8, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 8, 8);
	uint64_t cookie = 0;

	if (dt_is_iwarp())
		skip();
	target_create(rig, &target);
	rig_link(rig);
	for (int round = 0; round < ROUNDS; round++) {
		dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(2 * round), 0));
		dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(2 * round + 1), 0));
		post_write(&rig->a, seg, remote, cookie++, 0);
		dt_ok(post_extended(rig, &target, IMMEDIATE, cookie++, 0));
		dt_ok(post_extended(rig, &target, FETCH_ADD, cookie++, 0));
		post_send(&rig->a, dt_seg(&rig->x, 0, 0), cookie++, 0);
		dt_ok(post_extended(rig, &target, COMPARE_SWAP, cookie++, 0));
		post_read(&rig->a, seg, remote, cookie++, 0);
	}
	for (uint64_t i = 0; i < cookie; i++)
		expect_done(rig->a.request, i);
	for (uint64_t i = 0; i < 2 * ROUNDS; i++)
		expect_done(rig->b.recv, i);
	dt_buf_free(&target);
}

/* D2-ATOM-14 */
static void atomics__no_reads_allowed__refused(void **state)
{
	struct rig *rig = *state;

	if (dt_is_verbs())
		skip();
	rig->attr_a.max_rdma_read_out = 0;
	rig_link(rig);
	for (int kind = FETCH_ADD; kind < EXTENDED; kind++)
		dt_fails_with(post_extended(rig, &rig->y, kind, 1, 0), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_CREDITS);
	expect_quiet(&rig->a);
	dt_check_bytes(rig->y.p, 8, RIG_FILL);
}

/* D2-IMM-12 D2-EVT-08: a waiter for solicited events */
static void write_immediate__solicited__wakes_the_waiter(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;

	if (dt_is_verbs())
		skip();
	rig->attr_b.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	rig_link(rig);
	for (uint64_t i = 1; i <= 2; i++)
		dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(i), 0));
	dto_waiter_start(&waiter, rig->b.recv, 1);
	dt_ok(post_extended(rig, &rig->y, IMMEDIATE, 11, 0));
	expect_done(rig->a.request, 11);
	dto_waiter_sleeps(&waiter);
	dt_ok(post_extended(rig, &rig->y, IMMEDIATE, 12, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	assert_int_equal(pthread_join(waiter.thread, NULL), 0);
	dt_ok(waiter.ret);
	assert_int_equal(waiter.event.event_number, DAT_IB_DTO_EVENT);
	assert_int_equal(waiter.event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	assert_int_equal(waiter.nmore, 1); /* D2-EVT-07 */
	expect_done(rig->b.recv, 2);
	expect_done(rig->a.request, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(events__plain_and_extended__what_belongs_to_them_written),
		rig_test(post__segments_of_length_0_and_flag_of_kernels__skipped_and_refused),
		rig_test(write_immediate__no_segments__remote_is_not_looked_at),
		rig_test(write_immediate__suppressed__completes_at_the_peer),
		rig_test(extended__after_a_disconnect__flushed_with_operation_and_type),
		rig_test(atomics__local_buffer_or_none__checked_as_of_a_read),
		rig_test(atomics__unknown_context__connection_breaks),
		rig_test(extended__queue_full__refused_and_usable),
		rig_test(write_immediate__no_receive__waits_for_one),
		rig_test(extended__among_others__completed_in_the_order_of_posting),
		rig_test(atomics__no_reads_allowed__refused),
		rig_test(write_immediate__solicited__wakes_the_waiter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
