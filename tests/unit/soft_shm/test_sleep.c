// SPDX-License-Identifier: BSD-2-Clause
/* Sleeping and waking: when a connection asks for a packet, and when it sends one to its peer. */
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/fence.h"
#include "play.h"
#include "soft/copy.h"
#include "soft/shm/socket.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/engine/drive.h"

static void publish__peer_sleeps__one_packet_per_number(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_packet(lab, &wire), 0); /* awake */
	atomic_store(&lab->peer->armed, 1);
	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_packet(lab, &wire), 0); /* one WAKE is on the way */
	atomic_store(&lab->peer->armed, 3); /* the peer woke and went to sleep again */
	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* A peer that sets is_polled gets no packet, if the kernel can run fences for us; one that clears it does. */
static void publish__peer_has_polled_for_long__no_packet_until_it_ends_that(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	atomic_store(&lab->peer->is_polled, 1);
	atomic_store(&lab->peer->armed, 1); /* which no honest peer does at that time */
	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_packet(lab, &wire),
			 core_fence_is_supported(CORE_FENCE_HOST) ? 0 : SHM_WIRE_WAKE);
	atomic_store(&lab->peer->armed, 3);
	atomic_store(&lab->peer->is_polled, 0);
	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* The answer to a Read lets Sends go; the last of them makes the ring grow, and its memory is gone. */
static void publish__ring_grows_for_a_request_that_fails__earlier_ones_wake(void **state)
{
	struct lab *lab = *state;
	uint8_t *gone = lab->memory + 8192;
	union shm_wire wire;
	uint32_t done;

	ABILITY_NEED_VM_CALLS();
	ABILITY_NEED(sysconf(_SC_PAGESIZE) == 4096, "pages are larger than the lab thinks");
	/* the ring is full so often that it grows when it is full next */
	for (done = 0; done < 4; done++)
		post_send(lab, 0, SHM_REQUEST_PAYLOAD);
	for (unsigned i = 1; i < SHM_GROW_AFTER - 1; i++)
		lab_library_pass(lab);
	lab_peer_done(lab, done - 1);
	lab_pass(lab);
	lab_peer_done(lab, done);
	lab_pass(lab);
	assert_int_equal(lab->done, done);
	post_rdma(lab, CORE_OP_RDMA_READ, 0, 8);
	(void)lab_peer_takes_all(lab);
	for (unsigned i = 0; i < 4; i++) {
		lab->next_flags = i ? 0 : DAT_COMPLETION_BARRIER_FENCE_FLAG;
		post_send(lab, i == 3 ? 8192 : 0, SHM_REQUEST_PAYLOAD);
	}
	atomic_store(&lab->peer->armed, 1);
	peer_puts(lab, data_entry(8), 0);
	assert_int_equal(mprotect(gone, 4096, PROT_NONE), 0);
	lab_library_pass(lab);
	assert_int_equal(mprotect(gone, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
	assert_int_equal(lab_peer_takes_all(lab), 3);
	assert_int_equal(lab->peer_in.mask, SHM_LARGE_RING - 1);
	atomic_store(&lab->peer->done, done + 3);
	lab_pass(lab);
	assert_int_equal(lab->done, done + 5);
	assert_int_equal(lab->end, BROKEN);
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
		for (taken = 0; !atomic_load(&lab->own->is_polled); taken++) {
			assert_true(taken < 1000);
			exchange(lab, 2, 0);
		}
		assert_true(taken > 100); /* not for a few: ending it is expensive */
		while (has_work(lab))
			lab_pass(lab);
		assert_true(shm_conn_arm(lab->conn));
		assert_int_equal(atomic_load(&lab->own->is_polled), 0);
		assert_true(is_armed(lab));
		exchange(lab, 2, 0);
		assert_int_equal(atomic_load(&lab->own->is_polled), 0);
	}
}

static void publish__done_for_a_sleeping_peer__wakes_it(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	atomic_store(&lab->peer->armed, 1);
	ask(lab, lab_send_entry(2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire),
			 SHM_WIRE_WAKE); /* that it waits for a Receive is published, too */
	atomic_store(&lab->peer->armed, 3);
	assert_true(lab_post_receive(lab, 0, 10));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

static void arm__work_since_the_last_poll__stays_awake(void **state)
{
	struct lab *lab = *state;
	const uint32_t before = atomic_load(&lab->own->armed);

	assert_true(is_armed(lab));
	shm_conn_disarm(lab->conn);
	assert_int_equal(atomic_load(&lab->own->armed), before + 1);
	lab_pass(lab);
	peer_puts(lab, lab_send_entry(2), 0);
	assert_false(shm_conn_arm(lab->conn));
	assert_false(is_armed(lab));
	assert_int_equal(shm_active_count(lab->engine), 1);
	lab_pass(lab);
	assert_true(shm_conn_arm(lab->conn));
	assert_true(is_armed(lab));
	assert_true(atomic_load(&lab->own->armed) > before);
	assert_int_equal(shm_active_count(lab->engine), 0);
}

/*
 * The request ring is full, and the peer has taken responses that no pass has a reason to read:
 * nothing is to be done, and an idle process uses no CPU.
 */
static void arm__one_ring_full_and_the_other_taken__sleeps(void **state)
{
	struct lab *lab = *state;

	fill(lab->memory, 8, 0);
	ask(lab, read_entry(lab, 0, 8), 0);
	for (unsigned i = 0; i < 8; i++)
		post_send(lab, 0, 4096);
	assert_int_equal(lab->cell.slow_reasons & CORE_EP_SLOW_QUEUE, CORE_EP_SLOW_QUEUE);
	(void)expect_entry(lab, SHM_ENTRY_DATA, 8, 0);
	lab_pass(lab);
	assert_false(has_work(lab));
	assert_true(shm_conn_arm(lab->conn));
	/* space in the ring that is full is work */
	assert_int_equal(lab_peer_takes_all(lab), 3);
	assert_true(has_work(lab));
}

/* The same the other way around: a response waits for space, the peer has taken requests. */
static void arm__responses_full_and_requests_taken__sleeps(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8);
	ask(lab, read_entry(lab, 0, 4 * SHM_RESPONSE_RING), 0);
	assert_int_equal(lab_peer_takes_all(lab), 1);
	lab_pass(lab);
	assert_false(has_work(lab));
	assert_true(shm_conn_arm(lab->conn));
	assert_true(lab_peer_takes(&lab->peer_answers_in, &(struct shm_entry){0},
				   &(const uint8_t *){NULL}));
	assert_true(has_work(lab));
}

/* The wake-up packet does not fit into the socket: it is sent again later. */
static void wake__socket_full__sent_again_in_time(void **state)
{
	struct lab *lab = *state;
	enum shm_wire_type type = 0;
	union shm_wire wire;

	while (!shm_conn_send_word(lab->conn, SHM_WIRE_KEY_GONE, 7))
		continue;
	atomic_store(&lab->peer->armed, 1);
	post_send(lab, 0, 8);
	while (lab_peer_packet(lab, &wire) == SHM_WIRE_KEY_GONE)
		continue;
	while (type != SHM_WIRE_WAKE) { /* the test has a time limit */
		lab_serve_pending(lab);
		type = lab_peer_packet(lab, &wire);
	}
}

/* The endpoint releases its connection between the poll and its lock. */
static void release_conn(struct lab *lab)
{
	((struct shm_ep *)lab->ep.transport)->conn = NULL;
}

static void poll__endpoint_has_released_it__connection_leaves_the_list(void **state)
{
	struct lab *lab = *state;

	shm_conn_disarm(lab->conn);
	assert_int_equal(shm_active_count(lab->engine), 1);
	peer_puts(lab, lab_send_entry(8), 0);
	lab->entering = release_conn;
	assert_int_equal(shm_engine_poll_all(lab->engine), 0);
	assert_int_equal(shm_active_count(lab->engine), 0);
	((struct shm_ep *)lab->ep.transport)->conn = lab->conn;
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
	while (!atomic_load(&lab->own->is_polled)) {
		post_send(lab, 0, 8);
		sent++;
		assert_in_range(sent, 1, 600);
		lab_peer_done(lab, sent);
		lab_pass(lab);
		assert_int_equal(lab->done, sent);
	}
}

/* --- RDMA in the ring, and a peer that does not poll any more --- */

static void post_while_polled(struct lab *lab, enum core_op op, uint32_t len)
{
	lab_peer_polls(lab);
	post_rdma(lab, op, 0, len);
	lab_peer_polled_at(lab, 0);
	assert_int_equal(lab->peer_memory[0], 0xa5);
}

/* A group of polls of ours, all in vain; how many times the peer was told to hurry. */
static unsigned poll_group(struct lab *lab)
{
	union shm_wire wire;
	unsigned hurries = 0;

	for (unsigned i = 0; i < SHM_DRIVEN_POLLS; i++)
		assert_int_equal(shm_engine_progress(lab->engine), 0);
	for (enum shm_wire_type type; (type = lab_peer_packet(lab, &wire)) != 0;)
		if (type != SHM_WIRE_MAP_ASK) {
			assert_int_equal(type, SHM_WIRE_HURRY);
			hurries++;
		}
	return hurries;
}

/* RDMA of ours was carried out through the ring, then some more was posted. */
static void start_late_rdma(struct lab *lab, enum core_op op)
{
	shm_conn_disarm(lab->conn);
	post_while_polled(lab, CORE_OP_RDMA_WRITE, 8);
	lab_peer_done(lab, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	post_while_polled(lab, op, 8);
	assert_int_equal(poll_group(lab), 0); /* the progress since the beginning */
}

/* COMPAT-01: one packet, until there is progress. */
static void rdma__late__peer_told_to_hurry_once(void **state)
{
	static const enum core_op ops[] = {CORE_OP_RDMA_WRITE, CORE_OP_RDMA_READ};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct lab *lab = open_cma();

		start_late_rdma(lab, ops[i]);
		assert_int_equal(poll_group(lab), 1);
		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(poll_group(lab), 0);
		/* it takes the entry, and carries it out later */
		(void)lab_peer_takes_all(lab);
		assert_int_equal(poll_group(lab), 0);
		assert_int_equal(poll_group(lab), 1);
		assert_int_equal(poll_group(lab), 0);
		lab_close(lab);
	}
}

/* COMPAT-01: the first RDMA of a connection. */
static void rdma__first_and_late__peer_told_to_hurry(void **state)
{
	struct lab *lab = *state;

	shm_conn_disarm(lab->conn);
	post_while_polled(lab, CORE_OP_RDMA_WRITE, 8);
	assert_int_equal(poll_group(lab) + poll_group(lab), 1);
	assert_int_equal(poll_group(lab), 0);
}

/* COMPAT-01: a Write that fills the ring, so that no part of it is handed out as a whole. */
static void write__ring_full_and_late__peer_told_to_hurry(void **state)
{
	struct lab *lab = *state;

	start_late_rdma(lab, CORE_OP_RDMA_WRITE);
	lab_peer_done(lab, 2);
	lab_pass(lab);
	post_while_polled(lab, CORE_OP_RDMA_WRITE, 2 * SHM_REQUEST_RING);
	assert_int_equal(lab->cell.slow_reasons & CORE_EP_SLOW_QUEUE, CORE_EP_SLOW_QUEUE);
	assert_int_equal(poll_group(lab) + poll_group(lab), 1);
	assert_int_equal(poll_group(lab), 0);
}

static void rdma__late_when_we_go_to_sleep__peer_told_to_hurry(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	start_late_rdma(lab, CORE_OP_RDMA_WRITE);
	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_HURRY);
	shm_conn_disarm(lab->conn);
	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
}

/* COMPAT-01: its thread may poll no more, and nobody here would notice. */
static void rdma__peer_polls_when_we_go_to_sleep__told_to_hurry(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	start_late_rdma(lab, CORE_OP_RDMA_WRITE);
	lab_peer_polls(lab);
	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_HURRY);
	/* not for messages, which wait for Receives */
	atomic_store(&lab->peer->done, 2);
	shm_conn_disarm(lab->conn);
	lab_pass(lab);
	post_send(lab, 0, 8);
	assert_true(shm_conn_arm(lab->conn));
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
}

enum calm { POLLS, SLEEPS, DONE, CALMS };

/* A peer that polls will find it, and one that sleeps gets a packet anyway. */
static void rdma__peer_polls_or_sleeps_or_is_done__not_told_to_hurry(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CALMS; i++) {
		struct lab *lab = open_cma();

		start_late_rdma(lab, CORE_OP_RDMA_WRITE);
		if (i == POLLS)
			lab_peer_polls(lab);
		else if (i == SLEEPS)
			atomic_store(&lab->peer->armed, 1);
		else
			atomic_store(&lab->peer->done, 2);
		lab_pass(lab);
		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(poll_group(lab), 0);
		assert_int_equal(lab->done, i == DONE ? 2 : 1);
		lab_close(lab);
	}
}

/* Slowly, but it does. */
static void rdma__some_done_in_each_group__not_told_to_hurry(void **state)
{
	struct lab *lab = *state;

	shm_conn_disarm(lab->conn);
	for (unsigned i = 0; i < LAB_REQUESTS; i++)
		post_while_polled(lab, CORE_OP_RDMA_WRITE, 8);
	for (unsigned i = 1; i < LAB_REQUESTS; i++) {
		atomic_store(&lab->peer->done, i);
		lab_pass(lab);
		assert_int_equal(lab->done, i);
		assert_int_equal(poll_group(lab), 0);
	}
	assert_int_equal(poll_group(lab), 1);
}

/* Messages are not for polls of the peer's engine alone: they wait for its Receives. */
static void send__late__peer_not_told_to_hurry(void **state)
{
	struct lab *lab = *state;

	shm_conn_disarm(lab->conn);
	post_send(lab, 0, 8);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(poll_group(lab), 0);
}

/* Dequeues on the fast path leave the end of a group to the slow path. */
static void rdma__late_and_we_dequeue__peer_told_to_hurry(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;
	unsigned slow = 0;
	DAT_EVENT event;

	lab_go_fast(lab);
	start_late_rdma(lab, CORE_OP_RDMA_WRITE);
	for (unsigned i = 0; i < 2 * SHM_DRIVEN_POLLS; i++) {
		enum transport_poll found = lab_dequeue(lab, &lab->recv_evd, &event);

		assert_int_not_equal(found, TRANSPORT_POLL_FOUND);
		if (found == TRANSPORT_POLL_SLOW) {
			slow++;
			assert_int_equal(shm_engine_progress(lab->engine), 0);
		}
	}
	assert_in_range(slow, 1, SHM_DRIVEN_POLLS / 4);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_HURRY);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
}

/* Dequeues until a group ends. */
static unsigned dequeue_group(struct lab *lab)
{
	unsigned count = 1;
	DAT_EVENT event;

	for (; lab_dequeue(lab, &lab->recv_evd, &event) != TRANSPORT_POLL_SLOW; count++)
		assert_in_range(count, 1, SHM_DRIVEN_POLLS);
	assert_int_equal(shm_engine_progress(lab->engine), 0);
	return count;
}

/* A thread that moves much polls as steadily as one that polls in vain, but not as often. */
static void dequeue__polls_move_much__fewer_end_a_group(void **state)
{
	struct lab *lab = *state;
	unsigned moved = 0;

	lab_go_fast(lab);
	(void)dequeue_group(lab);
	assert_int_equal(dequeue_group(lab), SHM_DRIVEN_POLLS);
	post_send(lab, 0, LAB_MEMORY);
	(void)lab_peer_takes_all(lab);
	for (unsigned taken = 1; taken; moved += taken) {
		lab_pass(lab);
		taken = lab_peer_takes_all(lab);
	}
	assert_in_range(moved, LAB_MEMORY / SHM_REQUEST_PAYLOAD / 2, SHM_DRIVEN_POLLS);
	lab_peer_done(lab, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(dequeue_group(lab), SHM_DRIVEN_POLLS - moved);
}

/* --- the peer tells us to hurry --- */

static void peer_sends_packet(struct lab *lab, enum shm_wire_type type)
{
	union shm_wire wire;

	shm_wire_prepare(&wire, type);
	wire.word.word = 1;
	lab_peer_send(lab, &wire, NULL, 0);
	lab_serve_socket(lab);
}

/* COMPAT-01: also while a thread is expected to poll, which has not done so. */
static void hurry__thread_has_polled__ring_served_and_armed(void **state)
{
	struct lab *lab = *state;

	soft_driven_begin(&lab->engine->driven, core_now_ns() + UINT64_C(60000000000));
	shm_conn_disarm(lab->conn);
	peer_sends_packet(lab, SHM_WIRE_KEY_GONE); /* which changes nothing */
	assert_false(is_armed(lab));
	for (unsigned i = 0; i < 3; i++) {
		shm_conn_disarm(lab->conn);
		peer_puts(lab, write_entry(lab, 8 * i, 4), i);
		peer_sends_packet(lab, SHM_WIRE_HURRY);
		expect_bytes(lab->memory + 8 * i, 4, i);
		assert_int_equal(done_word(lab), i + 1);
		assert_true(is_armed(lab));
		assert_int_equal(shm_active_count(lab->engine), 0);
	}
	assert_true(lab_is_open(lab));
}

/* The peer may send it at any time. */
static void hurry__nothing_to_do__armed(void **state)
{
	struct lab *lab = *state;

	peer_sends_packet(lab, SHM_WIRE_HURRY);
	assert_true(is_armed(lab));
	peer_sends_packet(lab, SHM_WIRE_HURRY);
	assert_true(is_armed(lab));
	assert_true(lab_is_open(lab));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLOW(publish__peer_sleeps__one_packet_per_number),
		SLOW(publish__peer_has_polled_for_long__no_packet_until_it_ends_that),
		SLOW(publish__ring_grows_for_a_request_that_fails__earlier_ones_wake),
		SLOW(publish__done_for_a_sleeping_peer__wakes_it),
		SLOW(pass__many_messages_polled__says_so_until_it_sleeps),
		SLOW(pass__many_acknowledgements_polled__says_so),
		SLOW(arm__work_since_the_last_poll__stays_awake),
		SLOW(arm__one_ring_full_and_the_other_taken__sleeps),
		SLOW(arm__responses_full_and_requests_taken__sleeps),
		SLOW(wake__socket_full__sent_again_in_time),
		SLOW(poll__endpoint_has_released_it__connection_leaves_the_list),
		cmocka_unit_test(rdma__late__peer_told_to_hurry_once),
		CMA(rdma__first_and_late__peer_told_to_hurry),
		CMA(write__ring_full_and_late__peer_told_to_hurry),
		CMA(rdma__late_when_we_go_to_sleep__peer_told_to_hurry),
		CMA(rdma__peer_polls_when_we_go_to_sleep__told_to_hurry),
		cmocka_unit_test(rdma__peer_polls_or_sleeps_or_is_done__not_told_to_hurry),
		CMA(rdma__some_done_in_each_group__not_told_to_hurry),
		CMA(send__late__peer_not_told_to_hurry),
		CMA(rdma__late_and_we_dequeue__peer_told_to_hurry),
		FAST(dequeue__polls_move_much__fewer_end_a_group),
		SLOW(hurry__thread_has_polled__ring_served_and_armed),
		SLOW(hurry__nothing_to_do__armed),
	};

	return cmocka_run_group_tests_name("shm peer sleep", tests, NULL, NULL);
}
