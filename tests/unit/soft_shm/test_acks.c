// SPDX-License-Identifier: BSD-2-Clause
/*
 * Acknowledgements, by entries and by the word, and space that is given back: what the peer sees of
 * what our side has taken, and when.
 */
#include "play.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/transfer/publish.h"

/* --- of messages of the peer --- */

/* While a thread polls: by the next entry, or by the next poll. */
static void message__polled__acknowledged_with_the_answer_or_later(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_either(is_fast);

		shm_conn_disarm(lab->conn);
		exchange(lab, 3, 0);
		assert_int_equal(done_word(lab), 0);
		assert_true(has_work(lab));
		lab_pass(lab);
		assert_int_equal(done_word(lab), 1);
		assert_false(has_work(lab));
		exchange(lab, 3, 0);
		fill(lab->memory, 3, 5);
		post_send(lab, 0, 3);
		assert_int_equal(done_word(lab), 1);
		assert_false(has_work(lab));
		assert_int_equal(expect_entry(lab, SHM_ENTRY_SEND, 3, 5).done, 2);
		lab_close(lab);
	}
}

/* Without an answer some reports may wait, but not for long. */
static void messages__unanswered__word_acknowledges_before_long(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_either(is_fast);

		shm_conn_disarm(lab->conn);
		/* also after so many that they are not counted any more */
		for (uint32_t i = 1; i <= 700; i++) {
			exchange(lab, 8, 0);
			assert_in_range(i - done_word(lab), 0, SHM_UNREPORTED_MAX - 1);
		}
		assert_int_equal(lab->fast_polls, is_fast ? 700 : 0);
		lab_close(lab);
	}
}

/* DTO-52: no other poll may follow soon if the connection is armed. */
static void message__connection_is_armed__word_acknowledges_it(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_either(is_fast);

		if (is_fast)
			assert_true(shm_conn_arm(lab->conn));
		exchange(lab, 8, 0);
		assert_int_equal(done_word(lab), 1);
		lab_close(lab);
	}
}

/* A message was taken and an answer posted at once, which reports it to the peer. */
static void answer_one(struct lab *lab)
{
	exchange(lab, 3, 0);
	post_send(lab, 0, 3);
}

/* DTO-117: the peer does not read the answer behind a message that waits there. */
static void message__answer_held_up_at_the_peer__acknowledged_by_the_word(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_either(is_fast);

		shm_conn_disarm(lab->conn);
		answer_one(lab);
		assert_int_equal(done_word(lab), 0);
		atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
		assert_true(has_work(lab));
		shm_drive(lab->conn, &lab->ep);
		assert_int_equal(done_word(lab), 1);
		answer_one(lab);
		assert_int_equal(done_word(lab), 2);
		lab_close(lab);
	}
}

/* DTO-117: nor does a stream of messages hide that the peer has begun to wait. */
static void waits__under_a_stream_of_messages__word_acknowledges_each(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	for (unsigned i = 0; i < 100; i++)
		exchange(lab, 8, 0);
	for (unsigned i = 0; i < 5; i++) {
		exchange(lab, 8, 0);
		assert_int_equal(done_word(lab), lab->received);
	}
	atomic_store(&lab->peer->waits, 0);
	lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons, 0);
}

/* DTO-52: the peer reads `failed` before it reads entries. */
static void message__answered__acknowledged_by_the_word_before_one_is_refused(void **state)
{
	struct lab *lab = *state;

	answer_one(lab);
	assert_int_equal(done_word(lab), 0);
	assert_true(lab_post_receive(lab, 0, 2));
	ask(lab, lab_send_entry(3), 0);
	expect_refused(lab, SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER);
	assert_int_equal(done_word(lab), 1);
}

/* The same for a connection that ends while the peer has no Receive for the answer. */
static void message__answered__acknowledged_by_the_word_before_the_end(void **state)
{
	struct lab *lab = *state;

	answer_one(lab);
	assert_int_equal(done_word(lab), 0);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(done_word(lab), 1);
}

/* --- of RDMA of the peer --- */

/* It frees memory of the peer: at once. */
static void write__placed__reported_at_once(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_either(is_fast);

		shm_conn_disarm(lab->conn);
		for (uint32_t i = 0; i < 8; i++) {
			ask(lab, write_entry(lab, i * 64, 8), i);
			expect_bytes(lab->memory + i * 64, 8, i);
			assert_int_equal(done_word(lab), i + 1);
		}
		assert_int_equal(lab->fast_polls, is_fast ? 8 : 0);
		lab_close(lab);
	}
}

/* The poll returns an event, so no pass follows; the report is still due. */
static void write__behind_an_acknowledgement__reported_by_the_next_poll(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8);
	peer_puts(lab, write_entry(lab, 100, 8), 1);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_true(done_word(lab) == 1 || has_work(lab));
	lab_pass(lab);
	assert_int_equal(done_word(lab), 1);
	expect_bytes(lab->memory + 100, 8, 1);
}

/* An answer reports what is done, as every entry does, and counts no message itself. */
static void read__after_a_message__answer_reports_it(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 8192, 8));
	peer_puts(lab, lab_send_entry(8), 1);
	peer_puts(lab, read_entry(lab, 8192, 8), 0);
	lab_pass(lab);
	lab_pass(lab);
	assert_int_equal(expect_entry(lab, SHM_ENTRY_DATA, 8, 1).done, 1);
	assert_int_equal(lab->fast_polls, 2);
	lab_pass(lab);
	assert_false(has_work(lab));
}

/* --- of our requests --- */

/* An entry completes our Sends as the word does; the older of the two has no effect. */
static void done__by_entries_and_by_the_word__completes_each_once(void **state)
{
	(void)state;
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		struct lab *lab = open_either(is_fast);

		post_send(lab, 0, 3);
		post_send(lab, 0, 3);
		post_send(lab, 0, 3);
		exchange(lab, 8, 1);
		assert_int_equal(lab->done, 1);
		atomic_store(&lab->peer->done, 2);
		assert_true(has_work(lab));
		lab_pass(lab);
		assert_int_equal(lab->done, 2);
		exchange(lab, 8, 1);
		atomic_store(&lab->peer->done, 1);
		lab_pass(lab);
		assert_int_equal(lab->done, 2);
		exchange(lab, 8, 3);
		assert_int_equal(lab->done, 3);
		lab_pass(lab);
		assert_false(has_work(lab));
		assert_true(lab_is_open(lab));
		lab_close(lab);
	}
}

/* DTO-37: the data of a Read acknowledge, too; they complete behind an earlier Send. */
static void data__with_and_before_acknowledgements__in_order(void **state)
{
	struct shm_entry data = data_entry(8);
	struct lab *lab = *state;

	post_send(lab, 0, 8);
	post_rdma(lab, CORE_OP_RDMA_READ, 100, 8);
	post_send(lab, 0, 8);
	post_rdma(lab, CORE_OP_RDMA_READ, 200, 8);
	assert_int_equal(lab->fast_posts, 2);
	ask(lab, data, 1);
	assert_int_equal(lab->done, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	expect_bytes(lab->memory + 100, 8, 1);
	data.done = 2;
	ask(lab, data, 2);
	assert_int_equal(lab->done, 4);
	expect_bytes(lab->memory + 200, 8, 2);
	assert_false(has_work(lab));
}

/* --- in entries behind a message that waits for a Receive: the post of that takes them --- */

/* Two messages wait; the second one says that our first request is done. */
static void block_with_ack_behind(struct lab *lab)
{
	struct shm_entry entry = lab_send_entry(4);

	ask(lab, entry, 0);
	assert_true(is_blocked(lab));
	entry.done = 1;
	ask(lab, entry, 0);
	assert_int_equal(lab->done, 0);
}

/* EP-DISC-13 DTO-104 */
static void disconnect__last_request_acknowledged_at_a_post__ends(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 4);
	block_with_ack_behind(lab);
	shm_ep_disconnect(&lab->ep, true);
	assert_true(lab_is_open(lab));
	assert_true(lab_post_receive(lab, 64, 4));
	assert_int_equal(lab->done, 1);
	lab_serve_pending(lab);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* DTO-30: the Read that is over lets the fenced request go. */
static void fenced__earlier_ones_acknowledged_at_a_post__starts(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 4);
	for (unsigned i = 0; i < 5; i++) /* more than the ring has room for */
		post_send(lab, 0, SHM_REQUEST_PAYLOAD);
	block_with_ack_behind(lab);
	while (lab_peer_takes_all(lab))
		continue;
	assert_true(lab_post_receive(lab, 64, 4));
	assert_int_equal(lab->done, 1);
	lab_serve_pending(lab);
	assert_true(shm_consumer_has_entry(&lab->peer_in));
}

/* The service thread stays asleep. */
static void post_recv__nothing_waits__no_pass(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 4);
	block_with_ack_behind(lab);
	assert_true(lab_post_receive(lab, 64, 4));
	assert_int_equal(lab->done, 1);
	assert_null(lab->engine->attention.asking);
}

/* --- space --- */

/* The word acknowledges nothing, and no pass is made: several laps with fillers. */
static void messages__all_answered__space_given_back(void **state)
{
	static const uint32_t lengths[] = {8, 700, 1023, 1500, 33, 1000, 1, 4096};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 200; i++) {
		exchange(lab, lengths[i % 8], i);
		fill(lab->memory, 8, i);
		post_send(lab, 0, 8);
		assert_int_equal(expect_entry(lab, SHM_ENTRY_SEND, 8, i).done, i + 1);
	}
	assert_true(lab->peer_out.produced > 5 * SHM_REQUEST_RING);
	assert_int_equal(lab->lookups, 0);
	assert_int_equal(lab->done, 199);
}

/* Much space is given back at once, so that a peer that waits for it goes on. */
static void message__long_entry_taken__space_given_back_and_peer_woken(void **state)
{
	const struct shm_entry first = {.type = SHM_ENTRY_SEND,
					.flags = SHM_FLAG_FIRST,
					.payload = SHM_REQUEST_PAYLOAD,
					.length = 2 * SHM_REQUEST_PAYLOAD};
	struct lab *lab = *state;
	union shm_wire wire;

	exchange(lab, 8, 0);
	assert_int_equal(atomic_load(&lab->own->request_consumed), 0);
	assert_true(lab_post_receive(lab, 0, 2 * SHM_REQUEST_PAYLOAD));
	atomic_store(&lab->peer->armed, 1);
	ask(lab, first, 0);
	assert_int_equal(atomic_load(&lab->own->request_consumed), lab->peer_out.produced);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_WAKE);
}

/* A poll in a stream, by a dequeue from the EVD of the requests. */
static void poll_stream(struct lab *lab)
{
	(void)lab_poll(lab, lab->ep.request_evd, SHM_BATCH);
	lab_take_events(lab);
}

/* The peer puts the filler at the end of its ring, and the entry behind it is not there yet. */
static void peer_fills_up(struct shm_producer *ring)
{
	const uint32_t left = ring->mask + 1 - (ring->produced & ring->mask);
	const struct shm_entry filler = {.type = SHM_ENTRY_FILLER,
					 .payload = (uint16_t)(left - SHM_ENTRY_ALIGN)};

	shm_producer_commit(ring, &filler);
}

/* The poll that finds a filler behind answers gives the space of these back, before a pass does. */
static void reads__answers_and_a_filler__space_is_given_back(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 3; i++) {
		post_rdma(lab, CORE_OP_RDMA_READ, 0, SHM_RESPONSE_PAYLOAD);
		peer_puts(lab, data_entry(SHM_RESPONSE_PAYLOAD), i);
	}
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	post_rdma(lab, CORE_OP_RDMA_READ, 0, SHM_RESPONSE_PAYLOAD);
	peer_fills_up(&lab->peer_answers);
	poll_stream(lab);
	assert_int_equal(lab->done, 3);
	ask(lab, data_entry(SHM_RESPONSE_PAYLOAD), 4);
	assert_int_equal(lab->done, 4);
	expect_bytes(lab->memory, SHM_RESPONSE_PAYLOAD, 4);
}

/* The same with a Read of the peer and its messages, in the request ring. */
static void peer_read__message_and_a_filler__space_is_given_back(void **state)
{
	struct lab *lab = *state;
	uint32_t sent = 0, len = SHM_REQUEST_PAYLOAD;
	uint8_t *room;

	while (shm_producer_at_once(&lab->peer_out, len) || sent < 3) {
		assert_true(lab_post_receive(lab, 8192, len));
		peer_puts(lab, lab_send_entry(len), sent++);
	}
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	peer_puts(lab, read_entry(lab, 0, 8), 0);
	peer_fills_up(&lab->peer_out);
	poll_stream(lab);
	assert_int_equal(lab->received, sent);
	assert_true(shm_consumer_has_entry(&lab->peer_answers_in));
	assert_int_equal(shm_producer_reserve(&lab->peer_out, len, &room), 1);
}

/* The response ring is full: the Read waits, and those behind it. */
static void peer_reads__ring_full__all_answered_later(void **state)
{
	struct lab *lab = *state;
	uint32_t answered = 0;

	fill(lab->memory, SHM_RESPONSE_PAYLOAD, 1);
	for (uint32_t asked = 0; asked < 40; asked++)
		ask(lab, read_entry(lab, 0, SHM_RESPONSE_PAYLOAD), 0);
	assert_false(has_work(lab));
	while (answered < 40) {
		for (; shm_consumer_has_entry(&lab->peer_answers_in); answered++)
			(void)expect_entry(lab, SHM_ENTRY_DATA, SHM_RESPONSE_PAYLOAD, 1);
		assert_true(answered == 40 || has_work(lab));
		lab_pass(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__polled__acknowledged_with_the_answer_or_later),
		cmocka_unit_test(messages__unanswered__word_acknowledges_before_long),
		cmocka_unit_test(message__connection_is_armed__word_acknowledges_it),
		cmocka_unit_test(message__answer_held_up_at_the_peer__acknowledged_by_the_word),
		FAST(waits__under_a_stream_of_messages__word_acknowledges_each),
		FAST(message__answered__acknowledged_by_the_word_before_one_is_refused),
		FAST(message__answered__acknowledged_by_the_word_before_the_end),
		cmocka_unit_test(write__placed__reported_at_once),
		FAST(write__behind_an_acknowledgement__reported_by_the_next_poll),
		FAST(read__after_a_message__answer_reports_it),
		cmocka_unit_test(done__by_entries_and_by_the_word__completes_each_once),
		FAST(data__with_and_before_acknowledgements__in_order),
		SLOW(disconnect__last_request_acknowledged_at_a_post__ends),
		SLOW(fenced__earlier_ones_acknowledged_at_a_post__starts),
		SLOW(post_recv__nothing_waits__no_pass),
		FAST(messages__all_answered__space_given_back),
		SLOW(message__long_entry_taken__space_given_back_and_peer_woken),
		FAST(reads__answers_and_a_filler__space_is_given_back),
		FAST(peer_read__message_and_a_filler__space_is_given_back),
		FAST(peer_reads__ring_full__all_answered_later),
	};

	return cmocka_run_group_tests_name("shm acks", tests, NULL, NULL);
}
