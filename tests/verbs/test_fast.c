// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path (src/verbs/fast.c) on a device whose posts and polls make no system calls: plain
 * transfers as the consumer and the device see them, with full rings that wrap around, several
 * endpoints and several EVDs. Other devices have the slow path alone. The provider's own thread is
 * held, so that only the test's calls do anything.
 */
#include "fast_lab.h"

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

static void check_request(uint64_t sequence, size_t offset, uint32_t len, enum ibv_wr_opcode opcode)
{
	uint32_t most = conn_of(&rig.a)->adapter->limits.inline_max;

	assert_int_equal(device.send.wr_id,
			 vrb_work_id(VRB_WORK_REQUEST, conn_of(&rig.a)->key, (uint32_t)sequence));
	assert_null(device.send.next);
	assert_int_equal(device.send.num_sge, 1);
	assert_int_equal(device.send.opcode, opcode);
	assert_int_equal(device.send.send_flags,
			 IBV_SEND_SIGNALED | (len <= most ? IBV_SEND_INLINE : 0));
	assert_int_equal(device.send_sge.addr, (uintptr_t)rig.memory + offset);
	assert_int_equal(device.send_sge.length, len);
	assert_int_equal(device.send_sge.lkey,
			 core_mem_slot(inner(&rig.a)->ia->mem, rig.lkey)->local_keys[0]);
}

/* DTO-81: the work request that the device gets; data is inline if it fits */
static void post__plain__work_request_exact(void **state)
{
	uint32_t most = conn_of(&rig.a)->adapter->limits.inline_max;
	const uint32_t lens[] = {1, most - 1, most, most + 1, 4096, MESSAGE_MAX};

	(void)state;
	assert_in_range(most, 8, 256);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint64_t sequence = inner(&rig.a)->req.tail;
		DAT_LMR_TRIPLET seg = rig_seg(&rig, i, lens[i]);
		DAT_RMR_TRIPLET to = remote_seg(HALF + i, lens[i] + 7);

		memset(rig.memory, (int)i + 1, HALF);
		assert_int_equal(write_iov(&rig.a, 1, &seg, i, &to, 0), DAT_SUCCESS);
		check_request(sequence, i, lens[i], IBV_WR_RDMA_WRITE);
		assert_int_equal(device.send.wr.rdma.remote_addr, (uintptr_t)rig.memory + HALF + i);
		assert_int_equal(device.send.wr.rdma.rkey, rig.rkey);
		expect_at_once(&rig.a, i, lens[i]);
		assert_memory_equal(rig.memory, rig.memory + HALF + i, lens[i]);
		assert_int_equal(recv_len(&rig.b, MESSAGE_MAX, 7), DAT_SUCCESS);
		assert_int_equal(send_iov(&rig.a, 1, &seg, i, 0), DAT_SUCCESS);
		check_request(sequence + 1, i, lens[i], IBV_WR_SEND);
		expect(&rig.b, 7, lens[i]);
		expect(&rig.a, i, lens[i]);
	}
}

static void post_recv__plain__work_request_exact(void **state)
{
	struct core_recv_queue *queue = &inner(&rig.a)->recv;

	(void)state;
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		uint32_t number = (uint32_t)queue->tail;
		DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF + i, 64 + i);

		assert_int_equal(recv_iov(&rig.a, 1, &seg, i, 0), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(device.recv.wr_id,
				 vrb_work_id(VRB_WORK_RECV, conn_of(&rig.a)->key, number));
		assert_null(device.recv.next);
		assert_int_equal(device.recv.num_sge, 1);
		assert_int_equal(device.recv_sge.addr, seg.virtual_address);
		assert_int_equal(device.recv_sge.length, 64 + i);
		assert_int_equal(device.recv_sge.lkey,
				 core_mem_slot(inner(&rig.a)->ia->mem, rig.lkey)->local_keys[0]);
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
		expect_at_once(&rig.a, i, 8);
		expect_at_once(&rig.b, i, 8);
	}
}

/* DTO-37: several at a time, in order, while the rings wrap around */
static void post__several_outstanding__in_order_over_the_rings_end(void **state)
{
	uint64_t next = 100;

	(void)state;
	for (unsigned count = 1; count <= ROOM; count++) {
		for (unsigned round = 0; round < 2 * SLOTS; round++) {
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(recv_len(&rig.a, 64, next + i), DAT_SUCCESS);
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(write_len(&rig.a, 32 + i, next + i), DAT_SUCCESS);
			for (unsigned i = 0; i < count; i++)
				expect_at_once(&rig.a, next + i, 32 + i);
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(send_len(&rig.b, 1 + i, next + i), DAT_SUCCESS);
			for (unsigned i = 0; i < count; i++) {
				expect_at_once(&rig.a, next + i, 1 + i);
				expect_at_once(&rig.b, next + i, 1 + i);
			}
			next += count;
		}
	}
	assert_true(is_fast(rig.a.ep) && is_fast(rig.b.ep));
}

/* DTO-114: a full queue refuses, and has room as soon as a completion is taken */
static void post__queue_full__refused_until_a_completion_is_taken(void **state)
{
	(void)state;
	for (unsigned round = 0; round < SLOTS; round++) {
		for (unsigned i = 0; i < ROOM; i++) {
			assert_int_equal(recv_len(&rig.a, 64, i), DAT_SUCCESS);
			assert_int_equal(send_len(&rig.a, 8, i), DAT_SUCCESS);
		}
		assert_int_equal(send_len(&rig.a, 8, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_int_equal(write_len(&rig.a, 8, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_int_equal(recv_len(&rig.a, 64, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_true(is_fast(rig.a.ep));
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(recv_len(&rig.b, 64, i), DAT_SUCCESS);
		for (unsigned i = 0; i < ROOM; i++) {
			expect(&rig.b, i, 8);
			expect(&rig.a, i, 8);
		}
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
		expect(&rig.a, 0, 8);
		assert_int_equal(recv_len(&rig.a, 64, ROOM), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.a, 64, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_int_equal(send_len(&rig.b, 8, ROOM), DAT_SUCCESS);
		for (unsigned i = 1; i <= ROOM; i++)
			expect(&rig.a, i, 8);
		for (unsigned i = 0; i <= ROOM; i++)
			expect(&rig.b, i, 8);
		assert_true(is_fast(rig.a.ep) && is_fast(rig.b.ep));
	}
}

/* A dequeue of another EVD finds the completions, one by one and several at once; the entries
 * become free. */
static void evd_dequeue__of_another_evd__found_and_kept(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3 * SLOTS; round++) {
		device.most = round % 3 ? VRB_POLL_BATCH : 1;
		for (unsigned i = 0; i < ROOM; i++) {
			assert_int_equal(write_len(&rig.a, 10 + i, 100 + i), DAT_SUCCESS);
			assert_int_equal(recv_len(&rig.a, 64, 200 + i), DAT_SUCCESS);
		}
		expect_none(rig.b.dto); /* dispatches the completions of a */
		assert_int_equal(kept(), 0);
		assert_true(is_fast(rig.a.ep));
		for (unsigned i = 0; i < ROOM; i++)
			expect(&rig.a, 100 + i, 10 + i);
		assert_true(is_fast(rig.a.dto));
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(send_len(&rig.b, 20 + i, 300 + i), DAT_SUCCESS);
		for (unsigned i = 0; i < ROOM; i++)
			expect(&rig.b, 300 + i, 20 + i);
		for (unsigned i = 0; i < ROOM; i++)
			expect(&rig.a, 200 + i, 20 + i);
	}
	assert_true(is_fast(rig.a.ep) && is_fast(rig.b.ep));
}

/* --- EVDs of other kinds --- */

/* DTO-04 DTO-78: one EVD for requests and one for Receives; each gets its own completions */
static void evd_dequeue__separate_evds__each_its_own(void **state)
{
	DAT_EVD_HANDLE recv;

	(void)state;
	open_rig();
	recv = make_evd(64, DAT_HANDLE_NULL);
	remake(&rig.a, recv, rig.a.dto, small);
	join();
	settle_on(recv, rig.b.dto);
	own(recv);
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(recv_len(&rig.a, 64, 100 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 5, 200 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 6, 300 + i), DAT_SUCCESS);
		if (i % 2) {
			expect(&rig.a, 300 + i, 6);
			expect_on(recv, &rig.a, 100 + i, 5);
		} else {
			expect_on(recv, &rig.a, 100 + i, 5);
			expect(&rig.a, 300 + i, 6);
		}
		expect(&rig.b, 200 + i, 5);
		assert_true(is_fast(rig.a.ep));
		expect_none(recv);
		expect_none(rig.a.dto);
	}
	teardown(state);
}

/* Two endpoints with one EVD: the event names the endpoint. */
static void evd_dequeue__two_endpoints__kept_apart(void **state)
{
	(void)state;
	open_rig();
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	remake(&rig.b, rig.a.dto, rig.a.dto, small);
	rig.b.dto = rig.a.dto;
	join();
	settle();
	for (uint64_t i = 0; i < 3 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 3, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.b, 4, 100 + i), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.b, 64, 200 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.a, 5, 300 + i), DAT_SUCCESS);
		expect_at_once(&rig.a, 100 + i, 3);
		expect_at_once(&rig.b, 100 + i, 4);
		expect_at_once(&rig.b, 200 + i, 5);
		expect_at_once(&rig.a, 300 + i, 5);
	}
	rig_no_event(rig.a.dto);
	teardown(state);
}

/* --- the service thread, and other devices --- */

/* The provider's thread notices that another thread posts and polls. */
static void calls__fast__seen_by_the_service_thread(void **state)
{
	struct vrb_adapter *adapter = conn_of(&rig.a)->adapter;
	struct vrb_cq *cq = conn_of(&rig.a)->cq;

	(void)state;
	atomic_store(&adapter->has_posted, false);
	atomic_store(&cq->has_polled, false);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_true(atomic_load(&adapter->has_posted));
	assert_false(atomic_load(&cq->has_polled));
	expect_at_once(&rig.a, 1, 8);
	assert_true(atomic_load(&cq->has_polled));
}

/* A device whose posts and polls may make system calls has the slow path alone. */
static void calls__unknown_device__slow_path(void **state)
{
	static const uint32_t vendors[] = {0, VRB_VENDOR_RXE, VRB_VENDOR_SIW};

	(void)state;
	for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
		open_rig();
		rig_close(&rig);
		fake_be_vendor(vendors[i]);
		rig.qual = 0;
		assert_int_equal(rig_open(&rig), DAT_SUCCESS);
		assert_int_equal(rig_make(&rig), DAT_SUCCESS);
		remake(&rig.a, rig.a.dto, rig.a.dto, small);
		join();
		settle();
		for (uint64_t j = 0; j < SLOTS; j++) {
			unsigned cancellable = fake_cancellable();

			assert_int_equal(write_len(&rig.a, 8, j), DAT_SUCCESS);
			assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_CONN);
			expect(&rig.a, j, 8);
			if (!vendors[i])
				assert_int_equal(fake_cancellable(), cancellable);
		}
		teardown(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(post__plain__completed_at_once),
		RIG_TEST(post__plain__work_request_exact),
		RIG_TEST(post_recv__plain__work_request_exact),
		RIG_TEST(post__several_outstanding__in_order_over_the_rings_end),
		RIG_TEST(post__queue_full__refused_until_a_completion_is_taken),
		RIG_TEST(evd_dequeue__of_another_evd__found_and_kept),
		cmocka_unit_test(evd_dequeue__separate_evds__each_its_own),
		cmocka_unit_test(evd_dequeue__two_endpoints__kept_apart),
		RIG_TEST(calls__fast__seen_by_the_service_thread),
		cmocka_unit_test(calls__unknown_device__slow_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
