// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends of ours to a Receive that a patient peer offers (COMPAT-46): several segments, completion
 * flags, and what is posted before them.
 */
#include "place.h"

#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/progress.h"

static int setup(void **state)
{
	*state = lab_open(CORE_COPY_AUTO, true);
	return 0;
}

/* RDMA through the ring, so that it takes time. Messages may still be placed. */
static int setup_slow_rdma(void **state)
{
	*state = lab_open(CORE_COPY_RING, true);
	return 0;
}

static void send_all(struct lab *lab)
{
	assert_true(lab_post(lab, CORE_OP_SEND, 0, SIZE, 0, 0));
}

static void expect_message(const struct lab *lab, const uint8_t *message)
{
	assert_memory_equal(lab->peer_memory + AT, message, SIZE);
}

/* EP-SEND-02 DTO-52: the segments are gathered in the Receive. */
static void send__several_segments__placed_one_after_the_other(void **state)
{
	static const uint32_t offsets[] = {30, 0, 40};
	static const uint32_t lengths[] = {10, 30, 10};
	DAT_LMR_TRIPLET segments[3];
	struct lab *lab = *state;
	uint8_t message[SIZE];
	struct core_req *req;
	uint32_t at = 0;

	ABILITY_NEED_VM_CALLS();
	fill(lab);
	for (uint32_t i = 0; i < 3; i++) {
		segments[i] = (DAT_LMR_TRIPLET){
			.lmr_context = LAB_LOCAL_KEY,
			.virtual_address = (uintptr_t)lab->memory + offsets[i],
			.segment_length = lengths[i],
		};
		memcpy(message + at, lab->memory + offsets[i], lengths[i]);
		at += lengths[i];
	}
	peer_offers(lab, 0, AT, SIZE);
	req = core_req_take(&lab->ep, CORE_OP_SEND, 0);
	req->iov = segments;
	req->segments = 3;
	req->len = SIZE;
	core_req_clear_transport(req);
	shm_ep_post_request(&lab->ep, req);
	assert_int_equal(placed(lab), 1);
	assert_int_equal(lab->done, 1);
	expect_message(lab, message);
}

/* DTO-13 DTO-16 DTO-17: no event, and the slot is free at once. */
static void send__suppressed__no_event_and_slot_free(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	lab_go_fast(lab);
	for (uint32_t i = 0; i < 2 * LAB_REQUESTS; i++) {
		peer_offers(lab, i, AT, SIZE);
		shm_conn_update_reasons(lab->conn, &lab->ep);
		lab->next_flags = DAT_COMPLETION_SUPPRESS_FLAG;
		send_all(lab);
	}
	assert_int_equal(placed(lab), 2 * LAB_REQUESTS);
	assert_int_equal(lab->done, 0);
	assert_int_equal(lab->ep.req.head, lab->ep.req.tail);
	peer_offers(lab, 2 * LAB_REQUESTS, AT, SIZE);
	send_all(lab);
	assert_int_equal(lab->done, 1);
}

static void post_read(struct lab *lab)
{
	memset(lab->peer_memory + AT, 0, SIZE);
	fill(lab);
	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, SIZE, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(lab->conn->reads, 1);
	peer_offers(lab, 0, AT, SIZE); /* Reads do not count as messages */
}

/* DTO-30: the message is what the Read before it has fetched. */
static void send__fenced_behind_a_read__placed_behind_its_data(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = SIZE};
	struct lab *lab = *state;
	uint8_t fetched[SIZE];

	ABILITY_NEED_VM_CALLS();
	post_read(lab);
	lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	send_all(lab);
	lab_pass(lab);
	assert_int_equal(placed(lab), 0);
	assert_int_equal(lab->peer_memory[AT], 0);
	memset(fetched, 0x77, SIZE);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, fetched));
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	assert_int_equal(placed(lab), 1);
	expect_message(lab, fetched);
}

/* DTO-42 DTO-37: without a fence it does not wait for the data, but its completion does. */
static void send__not_fenced_behind_a_read__placed_and_completes_behind_it(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = SIZE};
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	post_read(lab);
	send_all(lab);
	assert_int_equal(placed(lab), 1);
	expect_message(lab, lab->memory);
	assert_int_equal(lab->ep.req.head, 0);
	assert_true(lab_peer_entry(&lab->peer_answers, &data, NULL));
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 2);
}

/* DTO-39: an offer from before the Write is not for the message behind it. */
static void send__behind_a_write_in_the_ring__not_placed_before_it(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	fill(lab);
	for (uint32_t is_written = 0; is_written < 2; is_written++) {
		memset(lab->peer_memory + AT, 0, SIZE);
		assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, SIZE, lab->peer_rkey,
				     (uintptr_t)lab->peer_memory));
		/* all before the Write, and the second time the Write, too */
		peer_offers(lab, lab->conn->sent - !is_written, AT, SIZE);
		send_all(lab);
		assert_int_equal(placed(lab), is_written);
		assert_int_equal(lab->peer_memory[AT], is_written ? lab->memory[0] : 0);
	}
	assert_int_equal(lab->done, 4);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SLOW_RDMA(name) cmocka_unit_test_setup_teardown(name, setup_slow_rdma, teardown)
	const struct CMUnitTest tests[] = {
		T(send__several_segments__placed_one_after_the_other),
		T(send__suppressed__no_event_and_slot_free),
		SLOW_RDMA(send__fenced_behind_a_read__placed_behind_its_data),
		SLOW_RDMA(send__not_fenced_behind_a_read__placed_and_completes_behind_it),
		SLOW_RDMA(send__behind_a_write_in_the_ring__not_placed_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
