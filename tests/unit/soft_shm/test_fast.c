// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: that it is taken, when it is not, and where its completions go if
 * EVDs are full, locked or waited for. Conformance tests show what the bytes and the events are.
 */
#include <pthread.h>

#include "../soft/peer.h"
#include "play.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/transfer/fast.h"

/* --- taken --- */

static const uint32_t lengths[] = {1, 7, 8, 9, 256, 257, 1024, SHM_RESPONSE_PAYLOAD};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* All through the ring, each in one entry. Only the post of a Read takes the slow path. */
static void transfers__of_one_entry__take_the_fast_path(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < LENGTHS; i++) {
		uint32_t len = lengths[i];

		fill(lab->memory, len, i);
		post_send(lab, 0, len);
		post_rdma(lab, CORE_OP_RDMA_WRITE, 0, len);
		post_rdma(lab, CORE_OP_RDMA_READ, 50000, len);
		assert_int_equal(lab->fast_posts, 2 * (i + 1));
		(void)expect_entry(lab, SHM_ENTRY_SEND, len, i);
		assert_int_equal(expect_entry(lab, SHM_ENTRY_WRITE, len, i).address,
				 (uintptr_t)lab->peer_memory);
		assert_int_equal(expect_entry(lab, SHM_ENTRY_READ, len, i).address,
				 (uintptr_t)lab->peer_memory + 50000);
		atomic_store(&lab->peer->done, 2 * (i + 1));
		peer_puts(lab, data_entry(len), i);
		lab_pass(lab);
		assert_int_equal(lab->done, 3 * (i + 1));
		expect_bytes(lab->memory + 50000, len, i);
		exchange(lab, len, 0);
		ask(lab, write_entry(lab, 0, len), i);
		ask(lab, read_entry(lab, 0, len), 0);
		(void)expect_entry(lab, SHM_ENTRY_DATA, len, i);
		assert_false(has_work(lab));
	}
	assert_int_equal(lab->lookups, 0);
	assert_int_equal(lab->fast_polls, 4 * LENGTHS);
	assert_int_equal(lab->ep.path, OPENDAT_PATH_RING);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 2 * LENGTHS);
}

static void requests__of_several_entries__take_the_slow_path(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, SHM_REQUEST_PAYLOAD + 1);
	lab_peer_done(lab, 1);
	lab_pass(lab);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, SHM_REQUEST_PAYLOAD + 1);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 1);
	assert_int_equal(lab->fast_posts, 0);
	assert_int_equal(lab->cell.slow_reasons, 0);
}

/* A Send that finds no room waits, and no later one overtakes it. */
static void sends__ring_full__rest_follows_in_order(void **state)
{
	static const uint32_t sizes[] = {4096, 4096, 4096, 1023, 1023, 1023, 1023, 8};
	struct lab *lab = *state;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < 8; i++) {
		fill(lab->memory + 1024 * i, sizes[i], i);
		post_send(lab, 1024 * i, sizes[i]);
	}
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
	/* one post has found the ring full, and the fast path does not count it again */
	assert_int_equal(lab->conn->request_out.full, 1);
	while (taken < 8) {
		assert_true(shm_consumer_has_entry(&lab->peer_in));
		(void)expect_entry(lab, SHM_ENTRY_SEND, sizes[taken], taken);
		atomic_store(&lab->peer->done, ++taken);
		assert_true(has_work(lab));
		lab_pass(lab);
	}
	assert_int_equal(lab->done, 8);
	assert_int_equal(lab->cell.slow_reasons, 0);
}

/* A poll for its completion finds the connection. */
static void send__connection_was_quiet__polled_again(void **state)
{
	struct lab *lab = *state;

	assert_true(shm_conn_arm(lab->conn));
	assert_null(shm_engine_rotate(lab->engine));
	post_send(lab, 0, 8);
	assert_int_equal(lab->fast_posts, 1);
	shm_conn_put(shm_engine_rotate(lab->engine));
}

/* LMR-FREE-06 DTO-96: another thread frees the region after the post has checked it. */
static void request__memory_freed_meanwhile__protection_error_and_nothing_sent(void **state)
{
	static const enum core_op ops[] = {CORE_OP_SEND, CORE_OP_RDMA_WRITE};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct lab *lab = open_fast();

		lab->is_freeing = true;
		post_rdma(lab, ops[i], 0, 8);
		lab_serve_pending(lab);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
		assert_int_equal(lab->end, BROKEN);
		assert_int_equal(lab_peer_takes_all(lab), 0);
		lab_close(lab);
	}
}

/* --- reasons against it --- */

static void reasons__pieces__peer_until_the_last(void **state)
{
	struct lab *lab = *state;
	struct shm_entry piece = lab_send_entry(4);

	assert_true(lab_post_receive(lab, 0, 100));
	piece.length = 8;
	piece.flags = SHM_FLAG_FIRST;
	ask(lab, piece, 0);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
	piece.length = 4;
	piece.flags = SHM_FLAG_LAST;
	ask(lab, piece, 1);
	assert_int_equal(lab->cell.slow_reasons, 0);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory, 4, 0);
	expect_bytes(lab->memory + 4, 4, 1);
}

/* Each piece of a Write says what it is: nothing is half done between them. */
static void write__pieces_of_the_peer__each_placed_and_the_last_counted(void **state)
{
	struct lab *lab = *state;
	struct shm_entry piece = write_entry(lab, 0, 4);

	piece.length = 8;
	piece.flags = SHM_FLAG_FIRST;
	ask(lab, piece, 0);
	assert_int_equal(lab->cell.slow_reasons, 0);
	assert_int_equal(done_word(lab), 0);
	piece = write_entry(lab, 4, 4);
	piece.flags = SHM_FLAG_LAST;
	ask(lab, piece, 1);
	shm_drive(lab->conn, &lab->ep);
	assert_int_equal(done_word(lab), 1);
	expect_bytes(lab->memory, 4, 0);
	expect_bytes(lab->memory + 4, 4, 1);
}

/* The response ring is full. */
static void reasons__read_half_answered__peer_until_the_rest(void **state)
{
	struct lab *lab = *state;
	const uint8_t *payload;
	struct shm_entry entry;
	uint32_t taken = 0;

	ask(lab, read_entry(lab, 0, LAB_MEMORY), 0);
	while (taken < LAB_MEMORY) {
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_PEER);
		assert_false(has_work(lab));
		while (lab_peer_takes(&lab->peer_answers_in, &entry, &payload))
			taken += entry.payload;
		assert_true(has_work(lab));
		lab_pass(lab);
		if (lab->cell.slow_reasons == 0)
			break;
	}
	while (lab_peer_takes(&lab->peer_answers_in, &entry, &payload))
		taken += entry.payload;
	assert_int_equal(taken, LAB_MEMORY);
	assert_int_equal(lab->cell.slow_reasons, 0);
}

/* A request has failed, and waits for the one before it; a graceful disconnect waits, too. */
static void reasons__end_waits_for_a_request__queue(void **state)
{
	(void)state;
	for (unsigned is_disconnected = 0; is_disconnected < 2; is_disconnected++) {
		struct lab *lab = open_fast();

		post_send(lab, 0, 8);
		if (is_disconnected) {
			shm_ep_disconnect(&lab->ep, true);
		} else {
			lab->is_freeing = true;
			post_send(lab, 0, 8);
		}
		assert_true(lab_is_open(lab));
		assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_QUEUE);
		atomic_store(&lab->peer->done, 1);
		lab_pass(lab);
		assert_int_equal(lab->end,
				 is_disconnected ? DAT_CONNECTION_EVENT_DISCONNECTED : BROKEN);
		assert_int_equal(lab->done, is_disconnected ? 1 : 2);
		assert_true(lab->cell.slow_reasons & CORE_EP_SLOW_CONN);
		lab_close(lab);
	}
}

/* The core's reasons do not change. */
static void reasons__reviewed__only_those_of_the_transport_change(void **state)
{
	struct lab *lab = *state;

	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_CORE | CORE_EP_SLOW_TRANSPORT);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_CORE);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_CORE);
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

/* Such a dequeue takes a completion for its caller. */
static void take_from(struct lab *lab, struct lab_evd *mine)
{
	DAT_EVENT event;
	bool is_filled;

	assert_true(poll_from(lab, mine, &event, &is_filled));
	assert_true(is_filled);
	assert_ptr_equal(event.evd_handle, &mine->cell);
	lab_take_event(lab, &event);
}

/* A Send that the peer acknowledges with a message. */
static void send_and_be_answered(struct lab *lab)
{
	struct shm_entry entry = lab_send_entry(8);

	post_send(lab, 0, 8);
	assert_true(lab_post_receive(lab, 1000, 8));
	entry.done = (uint32_t)lab->ep.req.tail;
	peer_puts(lab, entry, entry.done);
}

static void expect_answered(struct lab *lab, uint32_t count)
{
	lab_take_events(lab); /* checks the order of each kind */
	assert_int_equal(lab->received, count);
	assert_int_equal(lab->done, count);
	expect_bytes(lab->memory + 1000, 8, count);
}

static void poll__completions_of_two_evds__each_in_its_own(void **state)
{
	struct lab *lab = *state;

	send_and_be_answered(lab);
	take_from(lab, &lab->recv_evd);
	assert_int_equal(core_evd_count_locked(&lab->request_evd.evd), 1);
	expect_answered(lab, 1);
	send_and_be_answered(lab);
	take_from(lab, &lab->request_evd);
	assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 1);
	expect_answered(lab, 2);
	assert_int_equal(lab->recv_evd.notified + lab->request_evd.notified, 0);
}

/* EVD-STREAM-31: a message acknowledges a request of the same EVD: one completion a poll. */
static void poll__message_acknowledges_for_its_evd__one_after_the_other(void **state)
{
	struct lab *lab = *state;

	lab->ep.request_evd = lab->ep.recv_evd;
	send_and_be_answered(lab);
	for (uint32_t i = 0; i < 2; i++) {
		take_from(lab, &lab->recv_evd);
		assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 0);
		assert_int_equal(lab->received, i);
	}
	expect_answered(lab, 1);
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
		post_send(lab, 0, 8);
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

/* EP-CREATE-83: an endpoint without an EVD for Receives, which can have none. */
static void poll__message_for_an_endpoint_without_receives__left_to_the_slow_path(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	lab->ep.recv_evd = NULL;
	peer_puts(lab, lab_send_entry(8), 0);
	assert_false(poll_from(lab, &lab->request_evd, &event, &is_filled));
	assert_false(is_filled);
	lab->ep.recv_evd = &lab->recv_evd.evd;
}

/* The fast path declines and changes nothing. */
static void expect_declined(struct lab *lab)
{
	uint64_t receives = lab->ep.recv.head, requests = lab->ep.req.head;
	DAT_EVENT event;
	bool is_filled;

	assert_false(poll_from(lab, &lab->recv_evd, &event, &is_filled));
	assert_false(is_filled);
	assert_int_equal(lab->ep.recv.head, receives);
	assert_int_equal(lab->ep.req.head, requests);
	assert_true(has_work(lab));
}

static void poll__other_evd_has_a_waiter__left_to_the_slow_path(void **state)
{
	struct lab *lab = *state;

	send_and_be_answered(lab);
	core_handle_set_slow(&lab->request_evd.cell, CORE_EVD_SLOW_WAITER);
	expect_declined(lab);
	lab_pass(lab);
	assert_int_equal(lab->request_evd.notified, 1);
	expect_answered(lab, 1);
}

static void poll__other_evd_full__declined_until_there_is_room(void **state)
{
	struct lab *lab = *state;

	send_and_be_answered(lab);
	lab->request_evd.evd.capacity = 0;
	expect_declined(lab);
	lab->request_evd.evd.capacity = 1;
	take_from(lab, &lab->recv_evd);
	expect_answered(lab, 1);
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
	assert_int_equal(lab->ep.recv.head, 0);
	lab->recv_evd.evd.capacity = 1;
	assert_true(poll_from(lab, &lab->request_evd, &event, &is_filled));
	assert_false(is_filled);
	expect_answered(lab, 1);
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
	expect_answered(lab, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAST(transfers__of_one_entry__take_the_fast_path),
		FAST(requests__of_several_entries__take_the_slow_path),
		FAST(sends__ring_full__rest_follows_in_order),
		FAST(send__connection_was_quiet__polled_again),
		cmocka_unit_test(
			request__memory_freed_meanwhile__protection_error_and_nothing_sent),
		FAST(reasons__pieces__peer_until_the_last),
		FAST(write__pieces_of_the_peer__each_placed_and_the_last_counted),
		FAST(reasons__read_half_answered__peer_until_the_rest),
		cmocka_unit_test(reasons__end_waits_for_a_request__queue),
		FAST(reasons__reviewed__only_those_of_the_transport_change),
		FAST(poll__completions_of_two_evds__each_in_its_own),
		FAST(poll__message_acknowledges_for_its_evd__one_after_the_other),
		FAST(poll__more_completions_than_room__rest_follows),
		FAST(poll__message_for_an_endpoint_without_receives__left_to_the_slow_path),
		FAST(poll__other_evd_has_a_waiter__left_to_the_slow_path),
		FAST(poll__other_evd_full__declined_until_there_is_room),
		FAST(poll__receive_evd_full__message_kept),
		FAST(poll__other_evd_locked__left_to_the_slow_path),
	};

	return cmocka_run_group_tests_name("shm fast", tests, NULL, NULL);
}
