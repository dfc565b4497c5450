// SPDX-License-Identifier: BSD-2-Clause
/*
 * A side that sleeps and waits for messages only (COMPAT-46), and what its peer does: no packet for
 * a report alone.
 */
#include "slow.h"
#include "core/base/clock.h"
#include "soft/copy.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/patience.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

static bool is_patient(const struct lab *lab)
{
	return atomic_load(&lab->conn->mine->is_patient);
}

/* --- our side sleeps --- */

static void arm__nothing_waits__patient_until_disarmed(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_sleep(lab, true));
	assert_true(is_patient(lab));
	shm_conn_disarm(lab->conn);
	assert_false(is_patient(lab));
}

/* A thread of the consumer sleeps because it waits for an event. */
static void arm__by_consumer__not_patient(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_sleep(lab, false));
	assert_false(is_patient(lab));
	/* nor is one that the service thread has armed before */
	assert_true(lab_sleep(lab, true));
	assert_true(is_patient(lab));
	assert_true(shm_conn_arm(lab->conn, &lab->ep));
	assert_false(is_patient(lab));
}

/* It is not on the list any more, where polls and threads that begin to wait would find it. */
static void arm__again_after_a_thread_that_sleeps__not_patient(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(lab_sleep(lab, false));
	soft_is_library_thread = true;
	assert_true(shm_conn_arm(lab->conn, &lab->ep));
	soft_is_library_thread = false;
	assert_false(is_patient(lab));
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
}

/* A thread that goes to sleep tries again if it has missed one. */
static void engine_arm__patient_connection_left__busy(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(lab_sleep(lab, true));
	assert_true(is_patient(lab));
	/* another thread has turned the list */
	atomic_store(&lab->engine.active_count, 0);
	assert_int_equal(shm_engine_arm(&lab->engine), 1);
	atomic_store(&lab->engine.active_count, 1);
	assert_int_equal(shm_engine_arm(&lab->engine), 0);
	assert_false(is_patient(lab));
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
}

static void arm__thread_waits_for_completions__not_patient(void **state)
{
	struct lab *lab = *state;

	lab->is_watched = true;
	assert_true(lab_sleep(lab, true));
	assert_false(is_patient(lab));
}

static void arm__something_waits_for_the_end_of_a_request__not_patient(void **state)
{
	struct lab *lab = *state;
	bool *const reasons[] = {&lab->conn->is_draining, &lab->conn->is_failing};

	for (unsigned i = 0; i < 2; i++) {
		*reasons[i] = true;
		assert_true(lab_sleep(lab, true));
		assert_false(is_patient(lab));
		*reasons[i] = false;
	}
	lab->conn->tx_next--; /* a request that has not been started */
	assert_true(lab_sleep(lab, true));
	assert_false(is_patient(lab));
	lab->conn->tx_next++;
	lab->conn->bulk.requests.count++; /* a piece that the peer reads */
	assert_true(lab_sleep(lab, true));
	assert_false(is_patient(lab));
	lab->conn->bulk.requests.count--;
}

/* Threads that go to sleep, and polls, look at each connection of the list. */
static void arm__many_on_the_list__not_patient(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->engine.active_count, 65);
	soft_is_library_thread = true;
	assert_false(shm_patience_is_possible(lab->conn, &lab->ep));
	atomic_store(&lab->engine.active_count, 64);
	assert_true(shm_patience_is_possible(lab->conn, &lab->ep));
	soft_is_library_thread = false;
	atomic_store(&lab->engine.active_count, 0);
}

/* It is awake, and the peer need not ask how patient it is. */
static void arm__work_arrived__awake_and_not_patient(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(2);

	assert_true(lab_peer_entry(&lab->peer_out, &entry, "hi"));
	assert_false(lab_sleep(lab, true));
	assert_int_equal(atomic_load(&lab->conn->mine->armed) & 1, 0);
	assert_false(is_patient(lab));
}

/* A poll, and a thread that goes to sleep, look at what is reported without a packet. */
static void arm__patient_with_requests__stays_on_the_list(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_sleep(lab, true));
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(lab_sleep(lab, true));
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	assert_int_equal(atomic_load(&lab->engine.disarmed), 0);
	assert_true(shm_conn_arm(lab->conn, &lab->ep)); /* the thread that goes to sleep */
	assert_int_equal(atomic_load(&lab->engine.active_count), 0);
}

/* The thread waits already when another one posts. */
static void post__thread_waits__patience_ends(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_sleep(lab, true));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(is_patient(lab));
	lab->is_watched = true;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_false(is_patient(lab));
}

/* Posts need the slots of requests whose end was reported without a packet. */
static void post__queue_nearly_full__patience_ends(void **state)
{
	struct lab *lab = *state;
	const struct core_req_queue *queue = &lab->ep.req;

	lab_go_fast(lab);
	while (queue->tail - queue->head + 3 < queue->capacity)
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(lab_sleep(lab, true));
	assert_true(is_patient(lab));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_false(is_patient(lab));
	assert_int_equal(lab->fast_posts, queue->tail);
	assert_true(lab_sleep(lab, true));
	assert_false(is_patient(lab));
}

static void post_fast__thread_waits__patience_ends(void **state)
{
	struct lab *lab = *state;

	lab_go_fast(lab);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(lab_sleep(lab, true));
		lab->is_watched = i;
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
		assert_int_equal(lab->fast_posts, i + 1);
		assert_int_equal(is_patient(lab), !i);
	}
}

/* What was reported without a packet before is not left until the next packet. */
static void patience_ends__reported_before__served_soon(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_true(lab_sleep(lab, true));
	lab->is_watched = true;
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_false(is_patient(lab));
	assert_false(lab->conn->is_pending);
	lab->is_watched = false;
	assert_true(lab_sleep(lab, true));
	atomic_store(&lab->peer->done, 1);
	lab->is_watched = true;
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_true(lab->conn->is_pending);
	assert_ptr_equal(shm_engine_next_pending(&lab->engine), lab->conn);
	shm_conn_put(lab->conn);
}

/* --- the peer sleeps --- */

/* A message that the service thread takes while the peer sleeps. */
static void take_message(struct lab *lab, uint32_t peer_is_patient)
{
	struct shm_entry entry = lab_send_entry(2);

	assert_true(lab_post_receive(lab, 0, 10));
	atomic_store(&lab->peer->armed, atomic_load(&lab->peer->armed) + 2);
	atomic_store(&lab->peer->is_patient, peer_is_patient);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, "hi"));
}

static uint32_t reported(const struct lab *lab)
{
	return atomic_load(&lab->conn->mine->done);
}

static int setup(void **state)
{
	struct lab *lab = lab_open(CORE_COPY_RING, false);

	atomic_store(&lab->peer->armed, 1);
	*state = lab;
	return 0;
}

static void report__peer_not_patient__packet(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	take_message(lab, 0);
	lab_library_pass(lab);
	assert_int_equal(reported(lab), 1);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* COMPAT-46: no packet for what is done, until the peer has waited long. */
static void report__peer_patient__packet_after_a_while(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;
	uint64_t due;

	take_message(lab, 1);
	lab_library_pass(lab);
	assert_int_equal(reported(lab), 1);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	due = atomic_load(&lab->conn->deadline_ns);
	assert_in_range(due, core_now_ns(), core_now_ns() + 20000000);
	/* an earlier deadline of another reason does not hide this one */
	shm_conn_set_deadline(lab->conn, 0);
	lab_library_pass(lab);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(atomic_load(&lab->conn->deadline_ns), due);
	lab->conn->quiet_end_ns = core_now_ns();
	lab_library_pass(lab);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	assert_false(lab->conn->is_report_quiet);
}

/* The time counts from the first report. */
static void report__again_to_patient_peer__same_end(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;
	uint64_t due;

	take_message(lab, 1);
	lab_library_pass(lab);
	due = lab->conn->quiet_end_ns;
	assert_int_not_equal(due, 0);
	take_message(lab, 1);
	lab_library_pass(lab);
	assert_int_equal(reported(lab), 2);
	assert_int_equal(lab->conn->quiet_end_ns, due);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
}

/* A queue of requests that have finished unnoticed must not become full. */
static void report__several_to_patient_peer__packet(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 2; i++) {
			take_message(lab, 1);
			lab_library_pass(lab);
			assert_int_equal(lab_peer_packet(lab, &wire), 0);
		}
		take_message(lab, 1);
		lab_library_pass(lab);
		assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	}
}

static void report__patience_over__packet_with_the_next_pass(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	take_message(lab, 1);
	lab_library_pass(lab);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	atomic_store(&lab->peer->is_patient, 0);
	lab_library_pass(lab);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* A peer that polls reads the word soon. */
static void report__peer_polls_by_now__no_packet_is_owed(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	take_message(lab, 1);
	lab_library_pass(lab);
	assert_true(lab->conn->is_report_quiet);
	lab->conn->can_skip_fence = true;
	atomic_store(&lab->peer->is_polled, 1);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_false(lab->conn->is_report_quiet);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	atomic_store(&lab->peer->is_polled, 0);
}

static void report__by_consumer__packet(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	take_message(lab, 1);
	shm_conn_pass(lab->conn, &lab->ep);
	assert_int_equal(reported(lab), 1);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* The packet for the next message serves for both. */
static void report__then_message__one_packet(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	take_message(lab, 1);
	lab_library_pass(lab);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	assert_false(lab->conn->is_report_quiet);
	lab_library_pass(lab);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(arm__nothing_waits__patient_until_disarmed),
		T(arm__by_consumer__not_patient),
		T(arm__again_after_a_thread_that_sleeps__not_patient),
		T(engine_arm__patient_connection_left__busy),
		T(arm__thread_waits_for_completions__not_patient),
		T(arm__something_waits_for_the_end_of_a_request__not_patient),
		T(arm__many_on_the_list__not_patient),
		T(arm__work_arrived__awake_and_not_patient),
		T(arm__patient_with_requests__stays_on_the_list),
		T(post__thread_waits__patience_ends),
		T(post__queue_nearly_full__patience_ends),
		T(post_fast__thread_waits__patience_ends),
		T(patience_ends__reported_before__served_soon),
		T(report__peer_not_patient__packet),
		T(report__peer_patient__packet_after_a_while),
		T(report__again_to_patient_peer__same_end),
		T(report__several_to_patient_peer__packet),
		T(report__patience_over__packet_with_the_next_pass),
		T(report__peer_polls_by_now__no_packet_is_owed),
		T(report__by_consumer__packet),
		T(report__then_message__one_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
