// SPDX-License-Identifier: BSD-2-Clause
/*
 * A dequeue over all connections of an engine, and how the bytes of a message are placed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>

#include "../soft/peer.h"
#include "fast.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/progress.h"

/* --- a dequeue over all connections --- */

static enum transport_poll engine_poll(struct lab *lab, DAT_EVENT *event)
{
	return lab_dequeue(lab, &lab->recv_evd, event);
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

static void peer_sends_five(struct lab *lab)
{
	DAT_EVENT event;

	for (uint32_t i = 0; i < 5; i++)
		assert_true(lab_post_receive(lab, i * 64, 8));
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
	for (uint32_t i = 0; i < 5; i++)
		peer_sends(lab, lab_send_entry(8), i);
}

static void expect_five(const struct lab *lab)
{
	assert_int_equal(lab->received, 5);
	for (uint32_t i = 0; i < 5; i++)
		expect_bytes(lab->memory + i * 64, 8, i);
}

/* From the connection that is checked first, one message is taken. */
static void dequeue__messages_in_a_row__one_each(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	peer_sends_five(lab);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
		assert_int_equal(core_evd_count_locked(&lab->recv_evd.evd), 0);
		lab_take_event(lab, &event);
		assert_int_equal(lab->received, i + 1);
	}
	expect_five(lab);
}

/* From a connection of the list, one after an empty poll; in a stream, all that have arrived. */
static void dequeue_by_list__messages_in_a_row__together_from_the_second_poll_on(void **state)
{
	struct lab *lab = *state;
	struct core_evd *evd = &lab->recv_evd.evd;
	DAT_EVENT event;

	peer_sends_five(lab);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	assert_int_equal(core_evd_count_locked(evd), 0);
	lab_take_event(lab, &event);
	evd->is_last_repeated = true; /* as if another connection were active */
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	assert_int_equal(core_evd_count_locked(evd), 3);
	lab_take_event(lab, &event);
	lab_take_events(lab); /* checks the order */
	expect_five(lab);
}

/* A stream that finds the queue full continues when there is room, and loses nothing. */
static void dequeue_by_list__messages_in_a_row_and_queue_full__rest_waits(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	lab->recv_evd.evd.capacity = 2;
	for (uint32_t i = 0; i < 6; i++) {
		assert_true(lab_post_receive(lab, i * 64, 8));
		peer_sends(lab, lab_send_entry(8), i);
	}
	for (uint32_t i = 0; i < 2; i++) {
		lab->recv_evd.evd.is_last_repeated = true;
		/* one for the caller, two in the queue */
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
		lab_take_event(lab, &event);
		lab_take_events(lab);
		assert_int_equal(lab->received, 3 * (i + 1));
	}
	for (uint32_t i = 0; i < 6; i++)
		expect_bytes(lab->memory + i * 64, 8, i);
}

static void dequeue__endpoint_not_on_its_fast_path__slow_path(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	for (uint32_t i = 0; i < 16; i++) {
		core_handle_set_slow(&lab->cell, (uint16_t)(1u << i));
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_SLOW);
		core_handle_clear_slow(&lab->cell, (uint16_t)(1u << i));
	}
	assert_int_equal(lab->ep.recv.head, 0);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	lab_take_event(lab, &event);
}

/*
 * The connection is still on the list, but its endpoint has released it, and may own another one.
 */
static void dequeue__endpoint_has_released_it__slow_path(void **state)
{
	struct lab *lab = *state;
	struct shm_ep *mine = lab->ep.transport;
	DAT_EVENT event;

	assert_true(lab_post_receive(lab, 0, 8));
	peer_sends(lab, lab_send_entry(8), 0);
	mine->conn = NULL;
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_SLOW);
	assert_int_equal(lab->ep.recv.head, 0);
	mine->conn = lab->conn;
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_FOUND);
	lab_take_event(lab, &event);
}

/* A check of the list counts too many checks in vain, and leaves it to the slow path. */
static void dequeue__nothing_for_long__slow_path(void **state)
{
	struct lab *lab = *state;
	DAT_EVENT event;

	for (uint32_t i = 1; i < SHM_IDLE_POLLS; i++)
		assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_EMPTY);
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_SLOW);
}

/* Work that the fast path declines after a completion waits for the next dequeue. */
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
	assert_int_equal(engine_poll(lab, &event), TRANSPORT_POLL_SLOW);
}

/* Such work is done before long, even if each dequeue finds another completion. */
static void dequeue__completions_and_something_rare__slow_path_in_time(void **state)
{
	enum transport_poll found = TRANSPORT_POLL_FOUND;
	struct lab *lab = *state;
	DAT_EVENT event;
	uint32_t i;

	lab->ep.request_evd = lab->ep.recv_evd;
	peer_sends(lab, lab_send_entry(8), 0); /* no Receive */
	for (i = 0; i <= FAST_POLLS && found == TRANSPORT_POLL_FOUND; i++) {
		post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
		atomic_store(&lab->peer->request_consumed, lab->conn->request_out.produced);
		atomic_store(&lab->peer->done, i + 1);
		found = engine_poll(lab, &event);
		if (found == TRANSPORT_POLL_FOUND)
			lab_take_event(lab, &event);
	}
	assert_int_equal(found, TRANSPORT_POLL_SLOW);
	assert_int_equal(lab->done, i - 1);
	assert_true(lab->conn->has_declined);
	shm_conn_pass(lab->conn, &lab->ep);
	assert_false(lab->conn->has_declined);
	lab_take_events(lab);
	assert_int_equal(lab->done, i);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), SHM_WAITS_RECEIVE);
}

/* --- how the bytes are placed --- */

#define PAGE 4096u
#define ORDER_LEN 256u
#define ORDER_ROUNDS 2000u

struct order {
	_Atomic uint32_t round; /* for which the watcher is ready */
	uint32_t len;
	const uint8_t *target;
};

/* Polls the last byte of the Receive; all other bytes must be there then. */
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
	/* another process sees the bytes that are placed in this page */
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

/* The offset of a page of our memory, not the first. */
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
		/* on the slow path; the last Receive is used up before */
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

/* LMR-USE-14: a thread of the library does not fault; earlier messages arrive. */
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

/* A Send whose memory is unmapped when the service thread starts it. */
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

/* Several small messages and a longer one between them, taken by either thread: in order. */
static void messages__slow_path__each_in_its_receive(void **state)
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

/* DTO-104: messages without a Receive wait. */
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

/* The peer sends so many messages; one poll takes all of them, or a pass of the service thread. */
static uint64_t polls_counted(struct lab *lab, uint32_t messages, bool is_library)
{
	uint64_t before = atomic_load(&lab->engine.driven.polls);
	uint32_t received = lab->received;

	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_STATE);
	for (uint32_t i = 0; i < messages; i++) {
		assert_true(lab_post_receive(lab, 8192, 8));
		peer_sends(lab, lab_send_entry(8), i);
	}
	if (is_library)
		lab_library_pass(lab);
	else
		lab_pass(lab);
	assert_int_equal(lab->received, received + messages);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_STATE);
	return atomic_load(&lab->engine.driven.polls) - before;
}

/*
 * COMPAT-46: a poll that takes many messages counts for more, because it lasts longer; but not one
 * that takes a message or two, and none by the service thread.
 */
static void poll__takes_several_messages__counts_for_more(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(polls_counted(lab, 1, false), 0);
	assert_int_equal(polls_counted(lab, 3, false), 0);
	assert_int_equal(polls_counted(lab, 4, false), 1);
	assert_int_equal(polls_counted(lab, LAB_RECEIVES, false), LAB_RECEIVES / 4);
	assert_int_equal(polls_counted(lab, LAB_RECEIVES, true), 0);
}

/* COMPAT-46: nor does one that takes many acknowledgements, of a thread that dequeues rarely. */
static void poll__takes_acknowledgements__does_not_count_for_more(void **state)
{
	struct lab *lab = *state;
	uint64_t before = atomic_load(&lab->engine.driven.polls);

	for (unsigned slow = 0; slow < 2; slow++) {
		for (uint32_t i = 0; i < LAB_REQUESTS; i++)
			post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
		if (slow)
			core_handle_set_slow(&lab->cell, CORE_EP_SLOW_STATE);
		atomic_store(&lab->peer->done, (slow + 1) * LAB_REQUESTS);
		lab_pass(lab);
		assert_int_equal(lab->done, (slow + 1) * LAB_REQUESTS);
	}
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_STATE);
	assert_int_equal(atomic_load(&lab->engine.driven.polls), before);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, setup_ring, teardown)
	const struct CMUnitTest tests[] = {
		TEST(dequeue__message__found_and_then_empty),
		TEST(dequeue__messages_in_a_row__one_each),
		TEST(dequeue_by_list__messages_in_a_row__together_from_the_second_poll_on),
		TEST(dequeue_by_list__messages_in_a_row_and_queue_full__rest_waits),
		TEST(dequeue__endpoint_not_on_its_fast_path__slow_path),
		TEST(dequeue__endpoint_has_released_it__slow_path),
		TEST(dequeue__nothing_for_long__slow_path),
		TEST(dequeue__completion_and_something_rare__found_first),
		TEST(dequeue__completions_and_something_rare__slow_path_in_time),
		TEST(message__last_byte_polled__rest_is_complete),
		TEST(message__memory_gone__handler_of_the_consumer_repairs_it),
		RING_TEST(messages__memory_of_one_gone_library_thread__those_before_arrive),
		RING_TEST(send__memory_gone_library_thread__protection_error),
		cmocka_unit_test(messages__slow_path__each_in_its_receive),
		TEST(messages__fewer_receives__rest_waits),
		TEST(poll__takes_several_messages__counts_for_more),
		TEST(poll__takes_acknowledgements__does_not_count_for_more),
	};

	return cmocka_run_group_tests_name("shm fast poll", tests, NULL, NULL);
}
