// SPDX-License-Identifier: BSD-2-Clause
/*
 * One end of a connection and an honest peer: messages and RDMA on the slow path (transfer/rx.c).
 */
#include <string.h>

#include "slow.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"

/* --- honest peers --- */

static void message__receive_posted__placed_and_acknowledged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(5);

	assert_true(lab_post_receive(lab, 100, 50));
	entry.flags |= SHM_FLAG_SOLICITED;
	ask(lab, entry, "hello");
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->receive_len, 5);
	assert_true(lab->receive_solicited);
	assert_memory_equal(lab->memory + 100, "hello\xa5", 6);
	assert_int_equal(done(lab), 1);
}

/* While a thread polls: by the next entry, by the next pass, or when there are many. */
static void message__polled__acknowledged_with_the_answer_or_later(void **state)
{
	struct lab *lab = *state;
	struct shm_consumer in;
	const uint8_t *bytes;
	struct shm_entry entry;
	unsigned i;

	shm_conn_disarm(lab->conn);
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "one");
	assert_int_equal(lab->received, 1);
	assert_int_equal(done(lab), 0);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(done(lab), 1);
	assert_false(shm_conn_has_work(lab->conn));

	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "two");
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_int_equal(done(lab), 1);
	assert_false(shm_conn_has_work(lab->conn));
	shm_consumer_init(&in, lab->conn->segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &lab->peer->request_consumed);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	assert_int_equal(entry.done, 2);

	for (i = 0; i < 8; i++) {
		assert_int_equal(done(lab), 1);
		assert_true(lab_post_receive(lab, 0, 10));
		entry = lab_send_entry(3);
		assert_true(lab_peer_entry(&lab->peer_out, &entry, "and"));
		assert_int_equal(shm_rx_run(lab->conn, &lab->ep, &(uint64_t){100}), 1);
		shm_conn_flush(lab->conn, true);
	}
	assert_int_equal(done(lab), 2 + 8);
}

/* A message was taken and an answer posted at once, which reports it to the peer. */
static void answer_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "one");
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
}

/* DTO-117: the peer does not read the answer behind a message that waits there. */
static void message__answer_held_up_at_the_peer__acknowledged_by_the_word(void **state)
{
	struct lab *lab = *state;

	shm_conn_disarm(lab->conn);
	answer_one(lab);
	assert_int_equal(done(lab), 0);
	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(done(lab), 1);
	answer_one(lab);
	assert_int_equal(done(lab), 2);
	assert_true(lab_is_open(lab));
}

/* DTO-52: the peer reads `failed` before it reads entries. */
static void message__answered__acknowledged_by_the_word_before_one_is_refused(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	shm_conn_disarm(lab->conn);
	answer_one(lab);
	assert_int_equal(done(lab), 0);
	assert_true(lab_post_receive(lab, 0, 2));
	ask(lab, lab_send_entry(3), "two");
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(done(lab), 1);
	shm_conn_put(lab->conn);
}

/* The same for a connection that ends while the peer has no Receive for the answer. */
static void message__answered__acknowledged_by_the_word_before_the_end(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	shm_conn_disarm(lab->conn);
	answer_one(lab);
	assert_int_equal(done(lab), 0);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(done(lab), 1);
	shm_conn_put(lab->conn);
}

/* A word that lags by half of its range would look like a newer, false value. */
static void message__always_answered_at_once__word_does_not_lag_too_far(void **state)
{
	const uint32_t reported_by_entries = 0x7ffffff0u;
	struct lab *lab = *state;
	unsigned i;

	shm_conn_disarm(lab->conn);
	lab->conn->done = reported_by_entries;
	lab->conn->reported = reported_by_entries;
	for (i = 1; i <= 32; i++) {
		answer_one(lab);
		assert_true((int32_t)(reported_by_entries + i - done(lab)) >= 0);
		/* the answer is taken */
		atomic_store(&lab->peer->done, i);
		assert_int_equal(shm_tx_read_done(lab->conn, &lab->ep), 1);
	}
}

/* An entry of the peer completes our Sends as its word does; the older of the two has no effect. */
static void message__reports_what_is_done__completes_our_sends(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(3);

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_true(lab_post_receive(lab, 0, 10));
	assert_true(lab_post_receive(lab, 0, 10));
	entry.done = 1;
	ask(lab, entry, "one");
	assert_int_equal(lab->done, 1);
	atomic_store(&lab->peer->done, 2);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	ask(lab, entry, "two");
	assert_int_equal(lab->received, 2);
	assert_int_equal(lab->done, 2);
	assert_true(lab_is_open(lab));
	entry.done = 3;
	ask(lab, entry, "lie");
	expect_broken(lab);
}

/* DTO-104 */
static void message__no_receive__waits_and_fills_the_late_one(void **state)
{
	struct lab *lab = *state;

	ask(lab, lab_send_entry(3), "one");
	ask(lab, lab_send_entry(3), "two");
	assert_int_equal(lab->received, 0);
	assert_int_equal(done(lab), 0);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), SHM_WAITS_RECEIVE);
	assert_false(shm_conn_has_work(lab->conn));
	assert_true(lab_post_receive(lab, 0, 10));
	assert_int_equal(lab->received, 1);
	assert_memory_equal(lab->memory, "one", 3);
	assert_int_equal(done(lab), 1);
	assert_true(lab_post_receive(lab, 0, 10));
	assert_memory_equal(lab->memory, "two", 3);
	assert_int_equal(done(lab), 2);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), 0);
}

static void message__in_pieces__placed_one_after_the_other(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_SEND, .payload = 2, .length = 5};

	assert_true(lab_post_receive(lab, 0, 10));
	entry.flags = SHM_FLAG_FIRST;
	ask(lab, entry, "ab");
	entry.flags = 0;
	ask(lab, entry, "cd");
	assert_int_equal(lab->received, 0);
	entry.flags = SHM_FLAG_LAST;
	entry.payload = 1;
	ask(lab, entry, "e");
	assert_int_equal(lab->receive_len, 5);
	assert_memory_equal(lab->memory, "abcde", 5);
}

static void write__through_the_ring__placed_at_its_address(void **state)
{
	struct lab *lab = *state;

	ask(lab, write_entry(lab, LAB_MEMORY - 4, 4), "tail");
	assert_memory_equal(lab->memory + LAB_MEMORY - 4, "tail", 4);
	assert_int_equal(done(lab), 1);
	assert_true(lab_is_open(lab));
}

static void read__through_the_ring__answered_in_pieces(void **state)
{
	struct lab *lab = *state;
	struct shm_consumer in;
	const uint8_t *bytes;
	struct shm_entry entry;

	memset(lab->memory, 'r', 5000);
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_READ,
			       .key = lab->read_only,
			       .address = (uintptr_t)lab->memory,
			       .length = 5000},
	    NULL);
	shm_consumer_init(&in, lab->conn->segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &lab->peer->response_consumed);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	assert_int_equal(entry.payload, SHM_RESPONSE_PAYLOAD);
	assert_int_equal(bytes[0], 'r');
	shm_consumer_pop(&in);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	shm_consumer_pop(&in);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	assert_int_equal(entry.payload, 5000 - 2 * SHM_RESPONSE_PAYLOAD);
	assert_int_equal(entry.flags, SHM_FLAG_LAST);
}

static void message__fetched__placed_from_two_sources(void **state)
{
	struct lab *lab = *state;
	struct shm_source sources[2] = {
		{.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = 6000},
		{.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory + 7000, .length = 1},
	};

	ABILITY_NEED_VM_CALLS();
	memset(lab->peer_memory, 'p', 6000);
	lab->peer_memory[7000] = 'q';
	assert_true(lab_post_receive(lab, 1, 8000));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(sources),
			       .length = 6001},
	    sources);
	assert_int_equal(lab->receive_len, 6001);
	assert_int_equal(lab->memory[6000], 'p');
	assert_int_equal(lab->memory[6001], 'q');
	assert_int_equal(done(lab), 1);
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
}

int main(void)
{
#define RING(name) cmocka_unit_test_setup_teardown(name, setup_ring, teardown)
#define CMA(name) cmocka_unit_test_setup_teardown(name, setup_cma, teardown)
	const struct CMUnitTest tests[] = {
		RING(message__receive_posted__placed_and_acknowledged),
		RING(message__polled__acknowledged_with_the_answer_or_later),
		RING(message__answer_held_up_at_the_peer__acknowledged_by_the_word),
		RING(message__answered__acknowledged_by_the_word_before_one_is_refused),
		RING(message__answered__acknowledged_by_the_word_before_the_end),
		RING(message__always_answered_at_once__word_does_not_lag_too_far),
		RING(message__reports_what_is_done__completes_our_sends),
		RING(message__no_receive__waits_and_fills_the_late_one),
		RING(message__in_pieces__placed_one_after_the_other),
		RING(write__through_the_ring__placed_at_its_address),
		RING(read__through_the_ring__answered_in_pieces),
		CMA(message__fetched__placed_from_two_sources),
	};

	return cmocka_run_group_tests_name("shm peer", tests, NULL, NULL);
}
