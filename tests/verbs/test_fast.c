// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path (src/verbs/engine/fast.c) on a device whose posts and polls make no system calls:
 * plain transfers as the device sees them, and completions that it declines. The conformance
 * programs that run on such a device show the rest ("verbs known" in meson.build). The provider's
 * own thread is held, so that only the test's calls do anything.
 */
#include "fast_lab.h"

#include <stdlib.h>

/* --- plain transfers --- */

/* EVD-DEQUEUE-01 EVD-STREAM-09: cookie, length, status and handles, by the first dequeue */
static void post__plain__completed_at_once(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 100 + i, 10 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		expect_at_once(&rig.a, 10 + i, 100 + i);
		assert_int_equal(recv_len(&rig.a, 300, 20 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 200 + i, 30 + i), DAT_SUCCESS);
		expect_at_once(&rig.a, 20 + i, 200 + i);
		expect_at_once(&rig.b, 30 + i, 200 + i);
		assert_int_equal(recv_len(&rig.b, 300, 40 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.a, 50 + i, 50 + i), DAT_SUCCESS);
		expect_at_once(&rig.b, 40 + i, 50 + i);
		expect_at_once(&rig.a, 50 + i, 50 + i);
	}
	rig_no_event(rig.a.dto);
	rig_no_event(rig.b.dto);
}

/* The bytes that fit into a work request. */
static uint32_t inline_bytes(void)
{
	DAT_IA_ATTR attr;

	assert_int_equal(core_ia_query(rig.ia, NULL, DAT_IA_ALL, &attr, 0, NULL), DAT_SUCCESS);
	for (DAT_COUNT i = 0; i < attr.num_transport_attr; i++)
		if (!strcmp(attr.transport_attr[i].name, "inline_bytes"))
			return (uint32_t)strtoul(attr.transport_attr[i].value, NULL, 10);
	return 0;
}

static void check_request(size_t offset, uint32_t len, enum ibv_wr_opcode opcode)
{
	assert_null(device.send.next);
	assert_int_equal(device.send.num_sge, 1);
	assert_int_equal(device.send.opcode, opcode);
	assert_int_equal(device.send.send_flags,
			 IBV_SEND_SIGNALED | (len <= inline_bytes() ? IBV_SEND_INLINE : 0));
	assert_int_equal(device.send_sge.addr, (uintptr_t)rig.memory + offset);
	assert_int_equal(device.send_sge.length, len);
}

/* DTO-81: the work request that the device gets; data is inline if it fits */
static void post__plain__work_request_exact(void **state)
{
	const uint32_t most = inline_bytes();
	const uint32_t lens[] = {1, most - 1, most, most + 1, 4096, MESSAGE_MAX};

	(void)state;
	assert_in_range(most, 8, 256);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		DAT_LMR_TRIPLET seg = rig_seg(&rig, i, lens[i]);
		DAT_RMR_TRIPLET to = remote_seg(HALF + i, lens[i] + 7);

		memset(rig.memory, (int)i + 1, HALF);
		assert_int_equal(write_iov(&rig.a, 1, &seg, i, &to, 0), DAT_SUCCESS);
		check_request(i, lens[i], IBV_WR_RDMA_WRITE);
		assert_int_equal(device.send.wr.rdma.remote_addr, (uintptr_t)rig.memory + HALF + i);
		assert_int_equal(device.send.wr.rdma.rkey, rig.rkey);
		expect_at_once(&rig.a, i, lens[i]);
		assert_memory_equal(rig.memory, rig.memory + HALF + i, lens[i]);
		assert_int_equal(recv_len(&rig.b, MESSAGE_MAX, 7), DAT_SUCCESS);
		assert_int_equal(send_iov(&rig.a, 1, &seg, i, 0), DAT_SUCCESS);
		check_request(i, lens[i], IBV_WR_SEND);
		expect(&rig.b, 7, lens[i]);
		expect(&rig.a, i, lens[i]);
	}
}

static void post_recv__plain__work_request_exact(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF + i, 64 + i);

		assert_int_equal(recv_iov(&rig.a, 1, &seg, i, 0), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_null(device.recv.next);
		assert_int_equal(device.recv.num_sge, 1);
		assert_int_equal(device.recv_sge.addr, seg.virtual_address);
		assert_int_equal(device.recv_sge.length, 64 + i);
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
		expect_at_once(&rig.a, i, 8);
		expect_at_once(&rig.b, i, 8);
	}
}

/* --- errors --- */

/* Posts two Receives and that many Sends, which find no Receive, on a. */
static void outstanding(unsigned sends)
{
	assert_int_equal(recv_len(&rig.a, 64, 101), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.a, 64, 102), DAT_SUCCESS);
	for (unsigned i = 0; i < sends; i++)
		assert_int_equal(send_len(&rig.a, 8, 201 + i), DAT_SUCCESS);
	assert_true(is_fast(rig.a.ep));
}

static void expect_end(DAT_EVENT_NUMBER a, DAT_EVENT_NUMBER b)
{
	rig_expect_conn(&rig.a, a);
	rig_expect_conn(&rig.b, b);
	rig_no_event(rig.a.dto);
	rig_no_event(rig.a.conn);
	rig_no_event(rig.b.conn);
	assert_false(is_fast(rig.a.ep));
}

static void again(void)
{
	rig_reset(&rig);
	join();
	settle();
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect_at_once(&rig.a, 1, 8);
}

/* DTO-56: an unspecific status; the core knows whether the memory was freed */
static void completion__is_unspecific__memory_is_checked(void **state)
{
	(void)state;
	for (int is_freed = 0; is_freed < 2; is_freed++) {
		DAT_LMR_CONTEXT key;
		DAT_LMR_HANDLE lmr;
		DAT_EVENT event;

		lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
		assert_int_equal(post_seg(1, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		assert_int_equal(post_seg(0, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		if (is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		fake_status(IBV_WC_LOC_QP_OP_ERR);
		assert_int_equal(recv_len(&rig.b, 64, 9), DAT_SUCCESS);
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, ODD_COOKIE,
			    is_freed ? DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_LOCAL_EP, 0);
		let_go();
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_flushed(&rig.b, 9);
		if (!is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		again();
	}
}

/* DTO-56: an unspecific status of a Receive */
static void completion__of_a_receive_is_unspecific__memory_is_checked(void **state)
{
	(void)state;
	for (int is_freed = 0; is_freed < 2; is_freed++) {
		DAT_LMR_CONTEXT key;
		DAT_LMR_HANDLE lmr;
		DAT_EVENT event;

		lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		expect(&rig.b, 1, 8);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
		device.more[0] =
			(struct ibv_wc){.wr_id = device.recv.wr_id, .status = IBV_WC_GENERAL_ERR};
		assert_int_equal(write_len(&rig.b, 8, 3), DAT_SUCCESS);
		expect(&rig.b, 3, 8);
		if (is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		device.more_count = 1;
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, ODD_COOKIE,
			    is_freed ? DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_TRANSPORT, 0);
		let_go();
		expect_flushed(&rig.a, 5);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		if (!is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		again();
	}
}

/* The device completes the second request first: the first one is reported first all the same. */
static void completion__of_a_later_request_first__in_order(void **state)
{
	struct ibv_wc wc[2];

	(void)state;
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 9, 200 + i), DAT_SUCCESS);
		assert_int_equal(device.real.poll_cq(conn_of(&rig.a)->cq->cq, 2, wc), 2);
		device.more[0] = wc[1];
		device.more[1] = wc[0];
		device.more_count = 1;
		expect_none(rig.a.dto);
		device.more[0] = wc[0];
		device.more_count = 1;
		expect(&rig.a, 100 + i, 8);
		expect(&rig.a, 200 + i, 9);
		assert_int_equal(write_len(&rig.a, 10, 300 + i), DAT_SUCCESS);
		expect(&rig.a, 300 + i, 10);
		assert_true(is_fast(rig.a.ep));
	}
}

/* A completion of an earlier connection that had the same slot in the table is ignored. */
static void completion__of_an_old_connection__ignored(void **state)
{
	struct core_ep *ep = inner(&rig.a);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	uint32_t old = conn_of(&rig.a)->key ^ (1u << VRB_KEY_INDEX_BITS);

	(void)state;
	outstanding(2);
	for (int i = 0; i < 2; i++) {
		wc.wr_id = i ? vrb_work_id(VRB_WORK_RECV, old, ep->recv.head)
			     : vrb_work_id(VRB_WORK_REQUEST, old, (uint32_t)ep->req.head);
		device.more[0] = wc;
		device.more_count = 1;
		expect_none(rig.a.dto);
		assert_int_equal(ep->req.tail - ep->req.head, 2);
		assert_int_equal(ep->recv.tail - ep->recv.head, 2);
		/* the lock is free */
		assert_int_equal(atomic_load(&cell(rig.a.ep)->lock.inside), 0);
		assert_int_equal(atomic_load(&cell(rig.a.dto)->lock.inside), 0);
	}
	assert_true(is_fast(rig.a.ep));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(post__plain__completed_at_once),
		RIG_TEST(post__plain__work_request_exact),
		RIG_TEST(post_recv__plain__work_request_exact),
		RIG_TEST(completion__is_unspecific__memory_is_checked),
		RIG_TEST(completion__of_a_receive_is_unspecific__memory_is_checked),
		RIG_TEST(completion__of_a_later_request_first__in_order),
		RIG_TEST(completion__of_an_old_connection__ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
