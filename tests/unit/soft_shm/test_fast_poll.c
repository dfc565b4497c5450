// SPDX-License-Identifier: BSD-2-Clause
/*
 * When the fast path of a connection may be entered, what a poll on it does with the completions
 * that it finds, and how bytes are placed by the threads that do so.
 */
#include "fast.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "../soft/peer.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
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

/* Those of the core stay as they are. */
static void reasons__reviewed__only_those_of_the_transport_change(void **state)
{
	struct lab *lab = *state;

	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_CORE | CORE_EP_SLOW_TRANSPORT);
	shm_conn_update_reasons(lab->conn, &lab->ep);
	assert_int_equal(lab->cell.slow_reasons, CORE_EP_SLOW_CORE);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_CORE);
}

/* One has failed, and waits for one before it. */
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

/* --- dispatchers --- */

/* A dequeue from that dispatcher, on its fast path. */
static bool poll_from(struct lab *lab, struct lab_evd *mine, DAT_EVENT *event, bool *is_filled)
{
	struct core_dequeue dequeue = {.cell = mine->evd.cell, .event = event};
	bool is_done;

	assert_non_null(core_handle_enter_fast(&mine->cell, DAT_HANDLE_TYPE_EVD));
	is_done = shm_poll_fast(lab->conn, &lab->ep, 1, &dequeue);
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

static void poll__completions_of_two_dispatchers__each_in_its_own(void **state)
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

/* The first for the caller, the rest behind it. */
static void poll__one_dispatcher_for_all__in_order(void **state)
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
	lab_take_events(lab); /* asserts the order of each kind */
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->received, 1);
}

/* What the dispatcher has no room for comes with the next polls, and nothing is lost. */
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
		bool is_done = poll_from(lab, &lab->recv_evd, &event, &is_filled);

		assert_true(is_filled);
		lab_take_event(lab, &event);
		lab_take_events(lab);
		assert_int_equal(lab->done, i < 2 ? 2 * i + 2 : 4);
		assert_int_equal(lab->received, i == 2);
		assert_int_equal(is_done, i == 2);
	}
	expect_bytes(lab->memory + 1000, 8, 4);
}

/* The fast path declines, and has changed nothing. */
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

static void poll__other_dispatcher_has_a_waiter__left_to_the_general_path(void **state)
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

static void poll__other_dispatcher_full__declined_until_there_is_room(void **state)
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

/* The message is placed before its dispatcher is found full: it stays in the ring. */
static void poll__receive_dispatcher_full__message_kept(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;
	bool is_filled;

	send_and_be_answered(lab);
	lab->recv_evd.evd.capacity = 0;
	/* the Send is done, and the message is not taken */
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

static void poll__other_dispatcher_locked__left_to_the_general_path(void **state)
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

/* --- a dequeue over all connections --- */

static enum transport_poll engine_poll(struct lab *lab, DAT_EVENT *event)
{
	enum transport_poll found;

	assert_non_null(core_handle_enter_fast(&lab->recv_evd.cell, DAT_HANDLE_TYPE_EVD));
	found = shm_poll(&lab->engine, &lab->recv_evd.cell, event);
	core_lock_leave(&lab->recv_evd.cell.lock);
	return found;
}

static void dequeue__message__found_and_then_empty(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	lab_take_event(lab, &event);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory, 8, 0);
	assert_int_equal(done_word(lab), 0);
	/* acknowledges it */
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
	assert_int_equal(done_word(lab), 1);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
}

/* Behind an empty poll one message is taken, and in a stream those that have come together. */
static void dequeue__messages_in_a_row__together_from_the_second_poll_on(void **state)
{
	struct lab *lab = *state;
	struct core_evd *evd = &lab->recv_evd.evd;
	DAT_EVENT event;

	for (uint32_t i = 0; i < 5; i++)
		assert_true(lab_post_receive(lab, i * 64, 8));
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
	for (uint32_t i = 0; i < 5; i++)
		peer_sends(lab, lab_send_entry(8), i);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	assert_int_equal(core_evd_count_locked(evd), 0);
	lab_take_event(lab, &event);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	assert_int_equal(core_evd_count_locked(evd), 3);
	lab_take_event(lab, &event);
	lab_take_events(lab); /* asserts the order */
	assert_int_equal(lab->received, 5);
	for (uint32_t i = 0; i < 5; i++)
		expect_bytes(lab->memory + i * 64, 8, i);
}

/* A stream that finds no room in the queue goes on when there is some, and loses nothing. */
static void dequeue__messages_in_a_row_and_queue_full__rest_waits(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	lab->recv_evd.evd.capacity = 2;
	for (uint32_t i = 0; i < 6; i++) {
		assert_true(lab_post_receive(lab, i * 64, 8));
		peer_sends(lab, lab_send_entry(8), i);
	}
	for (uint32_t i = 0; i < 2; i++) {
		/* one for the caller, two in the queue */
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
		lab_take_event(lab, &event);
		lab_take_events(lab);
		assert_int_equal(lab->received, 3 * (i + 1));
	}
	for (uint32_t i = 0; i < 6; i++)
		expect_bytes(lab->memory + i * 64, 8, i);
}

static void dequeue__endpoint_not_on_its_fast_path__general(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	for (uint32_t i = 0; i < 16; i++) {
		core_handle_set_slow(&lab->cell, (uint16_t)(1u << i));
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_GENERAL);
		core_handle_clear_slow(&lab->cell, (uint16_t)(1u << i));
	}
	assert_int_equal(lab->ep.recv.head, 0);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	lab_take_event(lab, &event);
}

/* The connection is still on the list, but the endpoint has let go of it, and may have another. */
static void dequeue__endpoint_has_let_go__general(void **state)
{
	struct lab *lab = *state;
	struct shm_ep *mine = lab->ep.transport;
	DAT_EVENT event;

	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	mine->conn = NULL;
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_GENERAL);
	assert_int_equal(lab->ep.recv.head, 0);
	mine->conn = lab->conn;
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	lab_take_event(lab, &event);
}

/* The general path then lets it sleep. */
static void dequeue__nothing_for_long__general(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	for (uint32_t i = 1; i < SHM_IDLE_POLLS; i++)
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_GENERAL);
}

/* What the fast path declines behind a completion waits for the next dequeue. */
static void dequeue__completion_and_something_rare__found_first(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	lab->ep.request_evd = lab->ep.recv_evd;
	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	atomic_store(&lab->peer->done, 1);
	peer_sends(lab, lab_send_entry(8), 0); /* no Receive */
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	lab_take_event(lab, &event);
	assert_int_equal(lab->done, 1);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_GENERAL);
}

/* --- how the bytes are placed --- */

#define PAGE 4096u
#define ORDER_LEN 256u
#define ORDER_ROUNDS 2000u

struct order {
	_Atomic uint32_t round; /* that the watcher is ready for */
	uint32_t len;
	const uint8_t *target;
};

/* Polls the last byte of the Receive; then all the others must be there. */
static int watch_order(int channel, void *argument)
{
	struct order *order = argument;
	const uint8_t *last = order->target + order->len - 1;

	(void)channel;
	for (uint32_t round = 1; round <= ORDER_ROUNDS; round++) {
		uint8_t value = (uint8_t)(round % 255 + 1);

		atomic_store(&order->round, round);
		for (uint32_t i = 0; __atomic_load_n(last, __ATOMIC_ACQUIRE) != value; i++)
			peer_pause(i);
		for (const uint8_t *byte = last - 1; byte >= order->target; byte--)
			PEER_CHECK(__atomic_load_n(byte, __ATOMIC_RELAXED) == value);
	}
	return 0;
}

/* COMPAT-46 */
static void message__last_byte_polled__rest_is_complete(void **state)
{
	static const uint32_t cases[][2] = {{0, 256}, {3, 61}, {5, 24}, {0, 33}};
	struct order *order = mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct lab *lab = *state;
	uint8_t bytes[ORDER_LEN];

	assert_ptr_not_equal(order, MAP_FAILED);
	/* another process sees what is placed in this page */
	assert_ptr_equal(mmap(lab->memory, PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 lab->memory);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shm_entry entry = lab_send_entry(cases[i][1]);
		struct peer peer;

		memset(lab->memory, 0, PAGE);
		order->target = lab->memory + cases[i][0];
		order->len = cases[i][1];
		atomic_store(&order->round, 0);
		peer = peer_start(watch_order, order);
		for (uint32_t round = 1; round <= ORDER_ROUNDS; round++) {
			for (uint32_t polls = 0; atomic_load(&order->round) < round; polls++) {
				if (polls % 1000 == 999 && !peer_is_running(&peer))
					break;
				peer_pause(polls);
			}
			assert_true(lab_post_receive(lab, cases[i][0], ORDER_LEN));
			memset(bytes, (int)(round % 255 + 1), entry.payload);
			assert_true(lab_peer_entry(&lab->peer_out, &entry, bytes));
			lab_pass(lab);
		}
		peer_finish(&peer);
	}
	assert_true(lab->fast_polls > 3 * ORDER_ROUNDS);
	munmap(order, sizeof(*order));
}

static uint8_t *gone; /* a page of the lab's memory */

static void repair(int number)
{
	(void)number;
	(void)mprotect(gone, PAGE, PROT_READ | PROT_WRITE);
}

/* Where a page of our memory begins that is not the first. */
static uint32_t gone_offset(const struct lab *lab)
{
	gone = lab->memory + 2 * PAGE;
	assert_int_equal((uintptr_t)gone % PAGE, 0);
	assert_int_equal(mprotect(gone, PAGE, PROT_NONE), 0);
	return (uint32_t)(gone - lab->memory);
}

/* LMR-USE-14: a thread of the consumer faults there like any code of the consumer. */
static void message__memory_gone__handler_of_the_consumer_repairs_it(void **state)
{
	struct sigaction before, handler = {.sa_handler = repair};
	struct lab *lab = *state;
	uint32_t offset;

	if (sysconf(_SC_PAGESIZE) != PAGE)
		skip();
	assert_int_equal(sigaction(SIGSEGV, &handler, &before), 0);
	for (uint32_t i = 0; i < 2; i++) {
		offset = gone_offset(lab);
		/* on the general path, the last Receive is used up before */
		if (i)
			core_handle_set_slow(&lab->cell, CORE_EP_SLOW_PEER);
		assert_true(lab_post_receive(lab, offset - 10, 100));
		peer_sends(lab, lab_send_entry(100), i);
		lab_pass(lab);
		assert_int_equal(lab->received, i + 1);
		assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
		expect_bytes(lab->memory + offset - 10, 100, i);
		assert_int_equal(lab->fast_polls, 1);
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* LMR-USE-14: a thread of the library does not; those before it arrive. */
static void messages__memory_of_one_gone_library_thread__those_before_arrive(void **state)
{
	struct lab *lab = *state;
	uint32_t offset;

	if (sysconf(_SC_PAGESIZE) != PAGE)
		skip();
	offset = gone_offset(lab);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(lab_post_receive(lab, i == 2 ? offset : i * 100, 50));
		peer_sends(lab, lab_send_entry(8), i);
	}
	lab_library_pass(lab);
	repair(0);
	assert_int_equal(lab->received, 3);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(lab->end, BROKEN);
	assert_int_equal(atomic_load(&lab->conn->mine->failed),
			 SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(done_word(lab), 2);
	expect_bytes(lab->memory, 8, 0);
	expect_bytes(lab->memory + 100, 8, 1);
	expect_untouched(lab->memory + offset, 50);
	expect_untouched(lab->memory + 300, 50);
}

/* A Send whose memory is gone when the service thread comes to it. */
static void send__memory_gone_library_thread__protection_error(void **state)
{
	struct lab *lab = *state;
	uint32_t waiting = 0;

	if (sysconf(_SC_PAGESIZE) != PAGE)
		skip();
	while (!lab->cell.slow_reasons) {
		post_send(lab, 2 * PAGE, SHM_REQUEST_PAYLOAD, DAT_COMPLETION_DEFAULT_FLAG);
		waiting++;
	}
	assert_int_equal(lab->conn->tx_next, waiting - 1);
	(void)gone_offset(lab);
	atomic_store(&lab->peer->request_consumed, lab->conn->request_out.produced);
	atomic_store(&lab->peer->done, lab->conn->sent);
	lab_library_pass(lab);
	repair(0);
	assert_int_equal(lab->done, waiting);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(lab->end, BROKEN);
}

/* Several small messages, by either thread: in order, and one of some length between. */
static void messages__general_path__each_in_its_receive(void **state)
{
	static const uint32_t lengths[] = {1, 8, 2048, 99, 64, 7};

	(void)state;
	for (unsigned is_library = 0; is_library < 2; is_library++) {
		struct lab *lab = open_lab(false);

		for (uint32_t i = 0; i < 6; i++) {
			assert_true(lab_post_receive(lab, i * 2100, 2048));
			peer_sends(lab, lab_send_entry(lengths[i]), i);
		}
		if (is_library)
			lab_library_pass(lab);
		else
			shm_conn_pass(lab->conn, &lab->ep);
		lab_take_events(lab);
		assert_int_equal(lab->received, 6);
		assert_int_equal(lab->fast_polls, 0);
		for (uint32_t i = 0; i < 6; i++) {
			expect_bytes(lab->memory + i * 2100, lengths[i], i);
			expect_untouched(lab->memory + i * 2100 + lengths[i], 52);
		}
		close_lab(lab);
	}
}

/* DTO-104: messages without a Receive wait, as long as they may. */
static void messages__fewer_receives__rest_waits(void **state)
{
	struct lab *lab = *state;
	uint64_t since;

	lab->engine.settings.rnr_timeout_ms = 1000000;
	exchange(lab, 8, 0);
	peer_sends(lab, lab_send_entry(4), 1);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_true(lab->conn->arrival.is_blocked);
	since = lab->conn->arrival.blocked_ns;
	lab_pass(lab);
	assert_true(lab->conn->arrival.is_blocked);
	assert_int_equal(lab->conn->arrival.blocked_ns, since);
	assert_true(lab_post_receive(lab, 0, 8));
	assert_int_equal(lab->received, 2);
	expect_bytes(lab->memory, 4, 1);
	assert_int_equal(lab->cell.slow_reasons, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		TEST(reasons__connection_not_established__conn),
		TEST(reasons__reviewed__only_those_of_the_transport_change),
		TEST(reasons__request_failed_behind_another__queue),
		TEST(reasons__message_in_pieces__peer_until_the_last),
		TEST(reasons__write_in_pieces__peer_until_the_last),
		TEST(reasons__read_half_answered__peer_until_the_rest),
		TEST(poll__completions_of_two_dispatchers__each_in_its_own),
		TEST(poll__one_dispatcher_for_all__in_order),
		TEST(poll__more_completions_than_room__rest_follows),
		TEST(poll__other_dispatcher_has_a_waiter__left_to_the_general_path),
		TEST(poll__other_dispatcher_full__declined_until_there_is_room),
		TEST(poll__receive_dispatcher_full__message_kept),
		TEST(poll__other_dispatcher_locked__left_to_the_general_path),
		TEST(dequeue__message__found_and_then_empty),
		TEST(dequeue__messages_in_a_row__together_from_the_second_poll_on),
		TEST(dequeue__messages_in_a_row_and_queue_full__rest_waits),
		TEST(dequeue__endpoint_not_on_its_fast_path__general),
		TEST(dequeue__endpoint_has_let_go__general),
		TEST(dequeue__nothing_for_long__general),
		TEST(dequeue__completion_and_something_rare__found_first),
		TEST(message__last_byte_polled__rest_is_complete),
		TEST(message__memory_gone__handler_of_the_consumer_repairs_it),
		RING_TEST(messages__memory_of_one_gone_library_thread__those_before_arrive),
		RING_TEST(send__memory_gone_library_thread__protection_error),
		cmocka_unit_test(messages__general_path__each_in_its_receive),
		TEST(messages__fewer_receives__rest_waits),
	};

	return cmocka_run_group_tests_name("shm fast poll", tests, NULL, NULL);
}
