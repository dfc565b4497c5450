// SPDX-License-Identifier: BSD-2-Clause
/*
 * Acknowledgements in entries behind a message that waits for a Receive. The post that brings the
 * Receive takes them, and what waits for them goes on without another word of the peer.
 */
#include <string.h>

#include "slow.h"
#include "soft/shm/connect/ep.h"

/* Two messages wait; the second one says that our first request is done. */
static void block_with_ack_behind(struct lab *lab)
{
	struct shm_entry entry = lab_send_entry(4);

	ask(lab, entry, "one");
	assert_true(lab->conn->arrival.is_blocked);
	entry.done = 1;
	ask(lab, entry, "two");
	assert_int_equal(lab->done, 0);
}

/* What the service thread does, if the connection has asked for it. */
static void serve_pending(struct lab *lab)
{
	struct shm_conn *conn = shm_engine_next_pending(&lab->engine);

	assert_ptr_equal(conn, lab->conn);
	lab_library_pass(lab);
	shm_conn_put(conn);
}

/* EP-DISC-13 DTO-104 */
static void disconnect__last_request_acknowledged_at_a_post__ends(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	block_with_ack_behind(lab);
	shm_ep_disconnect(&lab->ep, true);
	assert_true(lab_is_open(lab));
	assert_true(lab_post_receive(lab, 64, 4));
	assert_int_equal(lab->done, 1);
	serve_pending(lab);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* DTO-40 DTO-41: the second Write does not go through the ring. */
static void write__earlier_one_acknowledged_at_a_post__starts(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	lab->conn->remote.has_cma = false;
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	lab->conn->remote.has_cma = true;
	memset(lab->memory, 'w', 8);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 8, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	block_with_ack_behind(lab);
	assert_true(lab_post_receive(lab, 64, 4));
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->peer_memory[0], 0xa5);
	serve_pending(lab);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->peer_memory[7], 'w');
}

/* The service thread stays asleep. */
static void post_recv__nothing_waits__no_pass(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	block_with_ack_behind(lab);
	assert_true(lab_post_receive(lab, 64, 4));
	assert_int_equal(lab->done, 1);
	assert_null(shm_engine_next_pending(&lab->engine));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			disconnect__last_request_acknowledged_at_a_post__ends, setup_ring,
			teardown),
		cmocka_unit_test_setup_teardown(write__earlier_one_acknowledged_at_a_post__starts,
						setup_cma, teardown),
		cmocka_unit_test_setup_teardown(post_recv__nothing_waits__no_pass, setup_ring,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
