// SPDX-License-Identifier: BSD-2-Clause
/* Sleeping and waking: when a connection asks for a packet, and when it sends one to its peer. */
#include <stdlib.h>
#include <string.h>

#include "slow.h"
#include "core/base/clock.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

static void publish__peer_sleeps__one_packet_per_number(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), 0); /* awake */
	atomic_store(&lab->peer->armed, 1);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), 0); /* one WAKE is on the way */
	atomic_store(&lab->peer->armed, 3); /* the peer woke and went to sleep again */
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* A peer that sets is_polled gets no packet; one that clears it does. */
static void publish__peer_has_polled_for_long__no_packet_until_it_ends_that(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	lab->conn->can_skip_fence = true;
	atomic_store(&lab->peer->is_polled, 1);
	atomic_store(&lab->peer->armed, 1); /* which no honest peer does at that time */
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	atomic_store(&lab->peer->is_polled, 0);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	/* where the kernel cannot run fences for us, we always read `armed` */
	lab->conn->can_skip_fence = false;
	atomic_store(&lab->peer->is_polled, 1);
	atomic_store(&lab->peer->armed, 3);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* Takes one message while a thread polls. */
static void take_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(2), "hi");
}

/* After many messages without a sleep this side sets is_polled, and clears it before it sleeps. */
static void pass__many_messages_polled__says_so_until_it_sleeps(void **state)
{
	struct lab *lab = *state;
	unsigned taken;

	if (!core_fence_is_supported(CORE_FENCE_HOST))
		skip(); /* a kernel or a sandbox without membarrier */
	for (unsigned round = 0; round < 2; round++) {
		shm_conn_disarm(lab->conn);
		for (taken = 0; !atomic_load(&lab->conn->mine->is_polled); taken++) {
			assert_true(taken < 1000);
			take_one(lab);
		}
		assert_true(taken > 100); /* not for a few: ending it is expensive */
		while (shm_conn_has_work(lab->conn))
			lab_pass(lab);
		assert_true(shm_conn_arm(lab->conn));
		assert_int_equal(atomic_load(&lab->conn->mine->is_polled), 0);
		assert_int_equal(atomic_load(&lab->conn->mine->armed) & 1, 1);
		take_one(lab);
		assert_int_equal(atomic_load(&lab->conn->mine->is_polled), 0);
	}
}

static void publish__done_for_a_sleeping_peer__wakes_it(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	atomic_store(&lab->peer->armed, 1);
	ask(lab, lab_send_entry(2), "hi");
	assert_int_equal(lab_peer_packet(lab, &wire),
			 SHM_WIRE_WAKE); /* that it waits for a Receive is published, too */
	atomic_store(&lab->peer->armed, 3);
	assert_true(lab_post_receive(lab, 0, 10));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

static void arm__work_since_the_last_poll__stays_awake(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(2);

	shm_conn_disarm(lab->conn);
	lab_pass(lab);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, "hi"));
	assert_false(shm_conn_arm(lab->conn));
	assert_int_equal(atomic_load(&lab->conn->mine->armed) & 1, 0);
	assert_int_equal(atomic_load(&lab->engine.disarmed), 1);
	lab_pass(lab);
	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(atomic_load(&lab->conn->mine->armed) & 1, 1);
	assert_int_equal(atomic_load(&lab->engine.disarmed), 0);
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
}

/*
 * The request ring is full, and the peer has taken responses that no pass has a reason to read:
 * nothing is to be done, and an idle process uses no CPU.
 */
static void arm__one_ring_full_and_the_other_taken__sleeps(void **state)
{
	struct lab *lab = *state;

	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_READ,
			       .key = lab->read_only,
			       .address = (uintptr_t)lab->memory,
			       .length = 8},
	    NULL);
	assert_int_not_equal(lab->conn->response_out.published, 0);
	for (unsigned i = 0; i < 8; i++)
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 4096, 0, 0));
	assert_true(lab->conn->tx_next < 8);
	atomic_store(&lab->peer->response_consumed, lab->conn->response_out.published);
	lab_pass(lab);
	assert_false(shm_conn_has_work(lab->conn));
	assert_true(shm_conn_arm(lab->conn));
	/* space in the ring that is full is work */
	atomic_store(&lab->peer->request_consumed, lab->conn->request_out.published);
	assert_true(shm_conn_has_work(lab->conn));
}

/* The same the other way around: a response waits for space, the peer has taken requests. */
static void arm__responses_full_and_requests_taken__sleeps(void **state)
{
	struct lab *lab = *state;
	struct shm_entry read = {.type = SHM_ENTRY_READ,
				 .key = lab->read_only,
				 .address = (uintptr_t)lab->memory,
				 .length = 5000};

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 8, 0, 0));
	for (unsigned i = 0; i < 8 && !lab->conn->is_response_wanted; i++)
		ask(lab, read, NULL);
	assert_true(lab->conn->is_response_wanted);
	atomic_store(&lab->peer->request_consumed, lab->conn->request_out.published);
	lab_pass(lab);
	assert_false(shm_conn_has_work(lab->conn));
	assert_true(shm_conn_arm(lab->conn));
	atomic_store(&lab->peer->response_consumed, lab->conn->response_out.published);
	assert_true(shm_conn_has_work(lab->conn));
}

/*
 * The wake-up packet does not fit into the socket: it is sent again later, and a deadline that
 * comes before that stays where it is.
 */
static void wake__socket_full__earlier_deadline_stays(void **state)
{
	const uint64_t second = 1000000000, now = core_now_ns();
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;

	while (!shm_conn_send_word(conn, SHM_WIRE_KEY_GONE, 0))
		continue;
	atomic_store(&lab->peer->armed, 1);
	shm_conn_set_deadline(conn, now + 3600 * second);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 8, 0, 0));
	assert_true(conn->is_wake_pending);
	assert_true(atomic_load(&conn->deadline_ns) < now + 1800 * second);
	shm_conn_set_deadline(conn, now + 1);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 8, 0, 0));
	assert_true(conn->is_wake_pending);
	assert_int_equal(atomic_load(&conn->deadline_ns), now + 1);
}

/* The endpoint releases its connection between the poll and its lock. */
static void release_conn(struct lab *lab)
{
	((struct shm_ep *)lab->ep.transport)->conn = NULL;
}

/* The same, and the connection on the list belongs to another endpoint by then. */
static void release_and_reuse(struct lab *lab)
{
	release_conn(lab);
	lab->conn->ep_ref.generation++;
}

static void poll__endpoint_has_released_it__connection_leaves_the_list(void **state)
{
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;
	struct shm_entry entry = lab_send_entry(8);

	shm_conn_disarm(conn);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
	lab->entering = release_and_reuse;
	assert_int_equal(shm_engine_poll_all(&lab->engine), 0);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	conn->ep_ref.generation--;
	lab->entering = release_conn;
	assert_int_equal(shm_engine_poll_all(&lab->engine), 0);
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
	((struct shm_ep *)lab->ep.transport)->conn = conn;
}

static void disarm__each_time__number_changes(void **state)
{
	struct lab *lab = *state;
	uint32_t before = atomic_load(&lab->conn->mine->armed);

	shm_conn_disarm(lab->conn);
	assert_int_equal(atomic_load(&lab->conn->mine->armed), before + 1);
	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(atomic_load(&lab->conn->mine->armed), before + 2);
}

/* A thread that only sends polls as well: acknowledgements count as on the slow path. */
static void pass__many_acknowledgements_polled__says_so(void **state)
{
	struct lab *lab = *state;
	unsigned sent = 0;

	if (!core_fence_is_supported(CORE_FENCE_HOST))
		skip();
	lab_go_fast(lab);
	shm_conn_disarm(lab->conn);
	while (!atomic_load(&lab->conn->mine->is_polled)) {
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 8, 0, 0));
		sent++;
		assert_in_range(sent, 1, 600);
		atomic_store(&lab->peer->request_consumed, lab->conn->request_out.produced);
		atomic_store(&lab->peer->done, sent);
		lab_pass(lab);
		assert_int_equal(lab->done, sent);
	}
}

int main(void)
{
#define RING(name) cmocka_unit_test_setup_teardown(name, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		RING(publish__peer_sleeps__one_packet_per_number),
		RING(publish__peer_has_polled_for_long__no_packet_until_it_ends_that),
		RING(publish__done_for_a_sleeping_peer__wakes_it),
		RING(pass__many_messages_polled__says_so_until_it_sleeps),
		RING(pass__many_acknowledgements_polled__says_so),
		RING(arm__work_since_the_last_poll__stays_awake),
		RING(arm__one_ring_full_and_the_other_taken__sleeps),
		RING(arm__responses_full_and_requests_taken__sleeps),
		RING(wake__socket_full__earlier_deadline_stays),
		RING(poll__endpoint_has_released_it__connection_leaves_the_list),
		RING(disarm__each_time__number_changes),
	};

	return cmocka_run_group_tests_name("shm peer sleep", tests, NULL, NULL);
}
