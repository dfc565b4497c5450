// SPDX-License-Identifier: BSD-2-Clause
/*
 * When the fast path of a connection is entered, and where its completions go: reasons for the slow
 * path, and EVDs that are full, locked or waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "../soft/peer.h"
#include "fast.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/ring.h"
#include "soft/shm/transfer/fast.h"
#include "soft/shm/transfer/progress.h"

/* --- reasons against the fast path --- */

static void reasons__connection_not_established__conn(void **state)
{
	struct lab *lab = *state;

	shm_conn_set_state(lab->conn, SHM_ACCEPTED);
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_CONN);
	shm_conn_set_state(lab->conn, SHM_ESTABLISHED);
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_int_equal(lab->cell.slow_reasons, 0);
	shm_ep_abort(&lab->ep);
	assert_true(lab->cell.slow_reasons & CORE_EP_SLOW_CONN);
}

/* The core's reasons do not change. */
static void reasons__reviewed__only_those_of_the_transport_change(void **state)
{
	struct lab *lab = *state;

	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_CORE | CORE_EP_SLOW_TRANSPORT);
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_CORE);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_CORE);
}

/* A request has failed, and waits for the one before it. */
static void reasons__request_failed_behind_another__queue(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	post_write(lab, 8, lab->peer_rkey + 1, 0);
	assert_true(lab_is_open(lab));
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->end, BROKEN);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
}

static void reasons__message_in_pieces__peer_until_the_last(void **state)
{
	struct lab *lab = *state;
	struct shm_entry piece = lab_send_entry(4);

	assert_true(lab_post_receive(lab, 0, 100));
	piece.length = 8;
	piece.flags = SHM_FLAG_FIRST;
	peer_sends(lab, piece, 0);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
	piece.flags = SHM_FLAG_LAST;
	peer_sends(lab, piece, 1);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory, 4, 0);
	expect_bytes(lab->memory + 4, 4, 1);
}

static void reasons__write_in_pieces__peer_until_the_last(void **state)
{
	struct lab *lab = *state;
	struct shm_entry piece = lab_send_entry(4);

	piece.type = SHM_ENTRY_WRITE;
	piece.key = lab->rkey;
	piece.address = (uintptr_t)lab->memory;
	piece.length = 8;
	piece.flags = SHM_FLAG_FIRST;
	peer_sends(lab, piece, 0);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
	piece.flags = SHM_FLAG_LAST;
	peer_sends(lab, piece, 1);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
	expect_bytes(lab->memory + 4, 4, 1);
}

/* The response ring is full. */
static void reasons__read_half_answered__peer_until_the_rest(void **state)
{
	struct lab *lab = *state;
	struct shm_entry ask = {.type = SHM_ENTRY_READ,
				.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
				.key = lab->rkey,
				.address = (uintptr_t)lab->memory,
				.length = LAB_MEMORY};

	assert_true(lab_peer_entry(&lab->peer_out, &ask, NULL));
	lab_pass(lab);
	assert_true(lab->conn->read.is_begun);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
	assert_false(shm_conn_has_work(lab->conn));
	for (unsigned i = 0; lab->conn->read.is_begun; i++) {
		assert_true(i < 100);
		atomic_store(&lab->peer->response_consumed, lab->conn->response_out.produced);
		assert_true(shm_conn_has_work(lab->conn));
		lab_pass(lab);
	}
	assert_int_equal(lab->cell.slow_reasons, 0);
}

/* --- EVDs --- */

/* A dequeue from that EVD, on its fast path. */
static bool poll_from(struct lab *lab, struct lab_evd *mine, DAT_EVENT *event, bool *is_filled)
{
	struct core_dequeue dequeue = {.cell = mine->evd.cell, .event = event};
	bool is_done;

	assert_non_null(core_handle_enter_fast(&mine->cell, DAT_HANDLE_TYPE_EVD));
	is_done = lab_poll_as(lab, &dequeue, 1);
	core_lock_leave(&mine->cell.lock);
	*is_filled = dequeue.is_filled;
	return is_done;
}

/* A Send that the peer acknowledges with a message. */
static void send_and_be_answered(struct lab *lab)
{
	struct shm_entry entry = lab_send_entry(8);

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	assert_true(lab_post_receive(lab, 1000, 8));
	entry.done = lab->conn->sent;
	peer_sends(lab, entry, lab->conn->sent);
}

static void poll__completions_of_two_evds__each_in_its_own(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	send_and_be_answered(lab);
	assert_true(poll_from(lab, &lab->recv_evd, &event, &is_filled));
	assert_true(is_filled);
	assert_ptr_equal(event.evd_handle, &lab->recv_evd.cell);
	lab_take_event(lab, &event);
	assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 0);
	assert_int_equal(core_evd_count_locked(&lab->request_evd.evd), 1);
	lab_take_events(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->done, 1);

	send_and_be_answered(lab);
	assert_true(poll_from(lab, &lab->request_evd, &event, &is_filled));
	assert_true(is_filled);
	assert_ptr_equal(event.evd_handle, &lab->request_evd.cell);
	assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 1);
	lab_take_event(lab, &event);
	lab_take_events(lab);
	assert_int_equal(lab->received, 2);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->recv_evd.notified + lab->request_evd.notified, 0);
}

/* The first completion for the caller, the rest queued behind it. */
static void poll__one_evd_for_all__in_order(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	lab->ep.request_evd = lab->ep.recv_evd;
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	send_and_be_answered(lab);
	assert_true(poll_from(lab, &lab->recv_evd, &event, &is_filled));
	assert_true(is_filled);
	assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 2);
	lab_take_event(lab, &event);
	assert_int_equal(lab->next_done, 1);
	lab_take_events(lab); /* checks the order of each kind */
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->received, 1);
}

/* EVD-STREAM-31: A message acknowledges a request of the same EVD: one completion a poll. */
static void poll__message_acknowledges_for_its_evd__one_after_the_other(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	lab->ep.request_evd = lab->ep.recv_evd;
	send_and_be_answered(lab);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(poll_from(lab, &lab->recv_evd, &event, &is_filled));
		assert_true(is_filled);
		assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 0);
		lab_take_event(lab, &event);
		assert_int_equal(lab->done, 1);
		assert_int_equal(lab->received, i);
	}
	expect_bytes(lab->memory + 1000, 8, 1);
}

/* Completions for which the EVD has no room come with the next polls, and none is lost. */
static void poll__more_completions_than_room__rest_follows(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	lab->ep.request_evd = lab->ep.recv_evd;
	lab->recv_evd.evd.capacity = 1;
	for (uint32_t i = 0; i < 3; i++)
		post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	send_and_be_answered(lab);
	for (uint32_t i = 0; i < 3; i++) {
		/* a poll that gives the caller a completion is over, whatever it has left */
		assert_int_equal(poll_from(lab, &lab->recv_evd, &event, &is_filled), i == 2);
		assert_true(is_filled);
		lab_take_event(lab, &event);
		lab_take_events(lab);
		assert_int_equal(lab->done, i < 2 ? 2 * i + 2 : 4);
		assert_int_equal(lab->received, i == 2);
	}
	expect_bytes(lab->memory + 1000, 8, 4);
}

/* EP-CREATE-83: An endpoint without an EVD for Receives, which can have none. */
static void poll__message_for_an_endpoint_without_receives__left_to_the_slow_path(void **state)
{
	struct lab *lab = *state;
	struct core_dequeue dequeue = {.cell = &lab->request_evd.cell};

	lab->ep.recv_evd = NULL;
	peer_sends(lab, lab_send_entry(8), 0);
	assert_int_equal(shm_poll_message(lab->conn, &lab->ep, dequeue.cell, NULL),
			 SHM_POLL_DECLINED);
	assert_int_equal(shm_poll_fast(lab->conn, &lab->ep, &dequeue), SHM_POLL_DECLINED);
	assert_false(dequeue.is_filled);
	lab->ep.recv_evd = &lab->recv_evd.evd;
}

/* The fast path declines and changes nothing. */
static void expect_declined(struct lab *lab)
{
	uint32_t taken = shm_consumer_index(&lab->conn->request_in);
	uint64_t receives = lab->ep.recv.head, requests = lab->ep.req.head;
	uint32_t acked = shm_conn_acked(lab->conn), done = lab->conn->done;
	DAT_EVENT event;
	bool is_filled;

	assert_false(poll_from(lab, &lab->recv_evd, &event, &is_filled));
	assert_false(is_filled);
	assert_int_equal(shm_consumer_index(&lab->conn->request_in), taken);
	assert_int_equal(lab->ep.recv.head, receives);
	assert_int_equal(lab->ep.req.head, requests);
	assert_int_equal(shm_conn_acked(lab->conn), acked);
	assert_int_equal(lab->conn->done, done);
}

static void poll__other_evd_has_a_waiter__left_to_the_slow_path(void **state)
{
	struct lab *lab = *state;

	send_and_be_answered(lab);
	core_handle_set_slow(&lab->request_evd.cell, CORE_EVD_SLOW_WAITER);
	expect_declined(lab);
	lab_pass(lab);
	assert_int_equal(lab->request_evd.notified, 1);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory + 1000, 8, 1);
}

static void poll__other_evd_full__declined_until_there_is_room(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	send_and_be_answered(lab);
	lab->request_evd.evd.capacity = 0;
	expect_declined(lab);
	lab->request_evd.evd.capacity = 1;
	assert_true(poll_from(lab, &lab->recv_evd, &event, &is_filled));
	assert_true(is_filled);
	lab_take_event(lab, &event);
	lab_take_events(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->received, 1);
}

/* The message is placed before its EVD is found full: it stays in the ring. */
static void poll__receive_evd_full__message_kept(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	send_and_be_answered(lab);
	lab->recv_evd.evd.capacity = 0;
	/* the Send is completed, the message not taken */
	assert_false(poll_from(lab, &lab->request_evd, &event, &is_filled));
	assert_true(is_filled);
	lab_take_event(lab, &event);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->ep.recv.head, 0);
	lab->recv_evd.evd.capacity = 1;
	assert_true(poll_from(lab, &lab->request_evd, &event, &is_filled));
	assert_false(is_filled);
	lab_take_events(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->done, 1);
	expect_bytes(lab->memory + 1000, 8, 1);
}

struct holder {
	struct core_lock *lock;
	pthread_barrier_t barrier;
};

static void *hold_lock(void *argument)
{
	struct holder *holder = argument;

	core_lock_acquire(holder->lock);
	pthread_barrier_wait(&holder->barrier);
	pthread_barrier_wait(&holder->barrier);
	core_lock_release(holder->lock);
	return NULL;
}

static void poll__other_evd_locked__left_to_the_slow_path(void **state)
{
	struct lab *lab = *state;
	struct holder holder = {.lock = &lab->request_evd.cell.lock};
	pthread_t thread;

	send_and_be_answered(lab);
	assert_int_equal(pthread_barrier_init(&holder.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_lock, &holder), 0);
	pthread_barrier_wait(&holder.barrier);
	expect_declined(lab);
	pthread_barrier_wait(&holder.barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&holder.barrier);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->received, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(reasons__connection_not_established__conn),
		TEST(reasons__reviewed__only_those_of_the_transport_change),
		TEST(reasons__request_failed_behind_another__queue),
		TEST(reasons__message_in_pieces__peer_until_the_last),
		TEST(reasons__write_in_pieces__peer_until_the_last),
		TEST(reasons__read_half_answered__peer_until_the_rest),
		TEST(poll__completions_of_two_evds__each_in_its_own),
		TEST(poll__one_evd_for_all__in_order),
		TEST(poll__message_acknowledges_for_its_evd__one_after_the_other),
		TEST(poll__more_completions_than_room__rest_follows),
		TEST(poll__message_for_an_endpoint_without_receives__left_to_the_slow_path),
		TEST(poll__other_evd_has_a_waiter__left_to_the_slow_path),
		TEST(poll__other_evd_full__declined_until_there_is_room),
		TEST(poll__receive_evd_full__message_kept),
		TEST(poll__other_evd_locked__left_to_the_slow_path),
	};

	return cmocka_run_group_tests_name("shm fast poll", tests, NULL, NULL);
}
