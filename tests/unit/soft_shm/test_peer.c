// SPDX-License-Identifier: BSD-2-Clause
/*
 * One end of a connection against a peer that writes what it likes: what an honest peer asks for is
 * done, whatever breaks the rules breaks the connection, and nothing outside of the
 * registered memory changes (lab.c checks guards on every close).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"

#define BROKEN DAT_CONNECTION_EVENT_BROKEN

static int setup_ring(void **state)
{
	*state = lab_open(CORE_COPY_RING, false);
	return 0;
}

static int setup_cma(void **state)
{
	*state = lab_open(CORE_COPY_AUTO, true);
	return 0;
}

static int teardown(void **state)
{
	lab_close(*state);
	return 0;
}

/* Publishes the entry, lets our side look. */
static void ask(struct lab *lab, struct shm_entry entry, const void *payload)
{
	assert_true(lab_peer_entry(&lab->peer_out, &entry, payload));
	lab_pass(lab);
}

static struct shm_entry write_entry(const struct lab *lab, uint32_t offset, uint32_t payload)
{
	return (struct shm_entry){
		.type = SHM_ENTRY_WRITE,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.key = lab->rkey,
		.address = (uintptr_t)lab->memory + offset,
		.payload = payload,
		.length = payload,
	};
}

static uint32_t failed(const struct lab *lab)
{
	return atomic_load(&lab->conn->segment->side[SHM_PASSIVE].failed);
}

static uint32_t done(const struct lab *lab)
{
	return atomic_load(&lab->conn->segment->side[SHM_PASSIVE].done);
}

/* The connection broke; the words that say why are read before it does. */
static void expect_broken(const struct lab *lab)
{
	assert_int_equal(lab->end, BROKEN);
}

/* Keeps the connection object alive, so that its segment can be looked at after the end. */
static void hold(struct lab *lab)
{
	shm_conn_get(lab->conn);
}

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

/* While somebody polls: by the next entry, or the next pass, or when there are many. */
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

/* A message was taken and an answer posted at once, which tells the peer that it was. */
static void answer_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "one");
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
}

/* DTO-117: the peer does not see the answer, which is behind a message that waits there. */
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

/* DTO-52: the peer looks at what failed before it looks at entries. */
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

/* The same for a connection that ends, at a peer that has no Receive for the answer. */
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

/* A word that lags by half of what it can count would look like news, and be a lie. */
static void message__always_answered_at_once__word_does_not_lag_too_far(void **state)
{
	const uint32_t told_by_entries = 0x7ffffff0u;
	struct lab *lab = *state;
	unsigned i;

	shm_conn_disarm(lab->conn);
	lab->conn->done = told_by_entries;
	lab->conn->reported = told_by_entries;
	for (i = 1; i <= 32; i++) {
		answer_one(lab);
		assert_true((int32_t)(told_by_entries + i - done(lab)) >= 0);
		/* the answer is taken */
		atomic_store(&lab->peer->done, i);
		assert_int_equal(shm_tx_read_done(lab->conn, &lab->ep), 1);
	}
}

/* A peer's entry completes our Sends as its word does; whichever is behind says nothing. */
static void message__tells_what_is_done__completes_our_sends(void **state)
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

/* --- refused, by the rules of the specification --- */

/* DTO-79 DTO-80 */
static void message__longer_than_the_receive__length_error_here_responder_there(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	assert_true(lab_post_receive(lab, 0, 4));
	ask(lab, lab_send_entry(5), "hello");
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(lab->memory[4], 0xa5);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

static void refused_write(struct lab *lab, struct shm_entry entry)
{
	hold(lab);
	ask(lab, entry, "evil");
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS));
	assert_int_equal(done(lab), 0);
	assert_int_equal(lab->memory[0], 0xa5);
	assert_int_equal(lab->memory[LAB_MEMORY - 1], 0xa5);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

/* DTO-90 DTO-94 */
static void write__unknown_key__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, 0, 4);

	entry.key ^= 1u << SOFT_KEY_INDEX_BITS;
	refused_write(lab, entry);
}

/* DTO-92 */
static void write__read_only_key__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, 0, 4);

	entry.key = lab->read_only;
	refused_write(lab, entry);
}

/* DTO-91 DTO-94: the whole range is looked at before the first piece is placed */
static void write__last_byte_outside__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, LAB_MEMORY - 4, 4);

	entry.flags = SHM_FLAG_FIRST;
	entry.length = 5;
	refused_write(lab, entry);
}

static void write__range_wraps__access_error_and_unchanged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = write_entry(lab, 0, 4);

	entry.flags = SHM_FLAG_FIRST;
	entry.length = UINT64_MAX;
	refused_write(lab, entry);
}

static void read__unknown_key__access_error(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	ask(lab, (struct shm_entry){.type = SHM_ENTRY_READ, .key = 1, .length = 4}, NULL);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS));
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

/* DTO-96: the sender freed the region before we fetched the message */
static void message__source_freed__protection_error_there(void **state)
{
	struct lab *lab = *state;
	struct shm_source source = {
		.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = 10};

	hold(lab);
	soft_keys_invalidate(lab->peer_keys, lab->peer_rkey);
	assert_true(lab_post_receive(lab, 0, 100));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(source),
			       .length = 10},
	    &source);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_LOCAL_PROTECTION));
	assert_int_equal(lab->memory[0], 0xa5);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

/* --- nonsense --- */

static void entry__against_the_rules__connection_breaks(void **state)
{
	struct shm_entry forged[] = {
		{.type = 0},
		{.type = SHM_ENTRY_DATA, .payload = 4},
		{.type = UINT8_MAX},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_LAST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 2, .length = 1},
		{.type = SHM_ENTRY_SEND, .flags = 3, .payload = 1, .length = 2},
		{.type = SHM_ENTRY_SEND, .flags = SHM_FLAG_FIRST, .payload = 0, .length = 2},
		{.type = SHM_ENTRY_PULL, .flags = 3, .payload = 24, .length = 1},
		{.type = SHM_ENTRY_WRITE, .flags = SHM_FLAG_LAST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 0, .length = 0},
		{.type = SHM_ENTRY_WRITE, .flags = SHM_FLAG_FIRST, .payload = 1, .length = 1},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 1, .length = 2},
		{.type = SHM_ENTRY_WRITE, .flags = 3, .payload = 2, .length = 1},
		{.type = SHM_ENTRY_READ, .length = 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = lab_open(CORE_COPY_RING, false);

		forged[i].key = lab->rkey;
		forged[i].address = (uintptr_t)lab->memory;
		assert_true(lab_post_receive(lab, 0, 100));
		ask(lab, forged[i], NULL);
		expect_broken(lab);
		lab_close(lab);
	}
}

static void sources__against_the_rules__connection_breaks(void **state)
{
	const struct {
		uint32_t payload;
		uint64_t length; /* of the message */
		uint64_t first, second;
	} forged[] = {
		{0, 0, 0, 0},  {24, 0, 0, 0}, {23, 1, 1, 0},
		{24, 2, 1, 0}, {24, 1, 2, 0}, {48, 10, UINT64_MAX, 11},
		{48, 1, 1, 0}, {48, 5, 2, 4}, {33 * 24, 33, 1, 1},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = lab_open(CORE_COPY_AUTO, true);
		struct shm_source sources[34] = {{0}};
		unsigned n;

		for (n = 0; n < 34; n++)
			sources[n] = (struct shm_source){.key = lab->peer_rkey,
							 .address = (uintptr_t)lab->peer_memory,
							 .length = 1};
		sources[0].length = forged[i].first;
		sources[1].length = forged[i].second;
		assert_true(lab_post_receive(lab, 0, 1000));
		ask(lab,
		    (struct shm_entry){.type = SHM_ENTRY_PULL,
				       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
				       .payload = forged[i].payload,
				       .length = forged[i].length},
		    sources);
		expect_broken(lab);
		assert_int_equal(lab->received, 0);
		lab_close(lab);
	}
}

/* Between the first and the last piece of something nothing else may come. */
static void pieces__something_else_between__connection_breaks(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct lab *lab = lab_open(CORE_COPY_RING, false);
		struct shm_entry entry = write_entry(lab, 0, 4);

		assert_true(lab_post_receive(lab, 0, 100));
		entry.flags = SHM_FLAG_FIRST;
		entry.length = 8;
		ask(lab, entry, "good");
		assert_true(lab_is_open(lab));
		entry.flags = SHM_FLAG_LAST;
		if (i == 0)
			entry = lab_send_entry(4);
		else if (i == 1)
			entry.key = lab->read_only;
		else
			entry.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST;
		ask(lab, entry, "evil");
		expect_broken(lab);
		lab_close(lab);
	}
}

static void done__more_than_was_sent__connection_breaks(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 10, 0, 0));
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(lab->done, 0);
	expect_broken(lab);
}

static void failed__nothing_in_flight__connection_breaks(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->peer->failed, SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_ACCESS));
	lab_pass(lab);
	expect_broken(lab);
}

/* DTO-57 */
static void failed__status_of_the_sender_only__bad_response(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 10, 0, 0));
	atomic_store(&lab->peer->failed, SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_SUCCESS));
	lab_pass(lab);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
	expect_broken(lab);
}

static void data__unasked__connection_breaks(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};

	assert_true(lab_peer_entry(&lab->peer_answers, &entry, "data"));
	lab_pass(lab);
	expect_broken(lab);
}

/* DTO-57 */
static void data__more_or_less_than_asked__bad_response(void **state)
{
	const struct {
		uint32_t payload;
		uint16_t flags;
	} forged[] = {{11, SHM_FLAG_LAST}, {10, 0}, {9, SHM_FLAG_LAST}, {0, SHM_FLAG_LAST}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct lab *lab = lab_open(CORE_COPY_RING, false);
		struct shm_entry entry = {.type = SHM_ENTRY_DATA,
					  .flags = forged[i].flags,
					  .payload = forged[i].payload};

		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 100, 10, 5, 5));
		assert_true(lab_peer_entry(&lab->peer_answers, &entry, NULL));
		lab_pass(lab);
		assert_int_equal(lab->done_status, DAT_DTO_ERR_BAD_RESPONSE);
		assert_int_equal(lab->memory[110], 0xa5);
		expect_broken(lab);
		lab_close(lab);
	}
}

/* --- our own requests --- */

/* DTO-108: the peer serves two at once */
static void read__more_than_the_peer_serves__the_rest_waits(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	unsigned i;

	for (i = 0; i < 4; i++)
		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 8 * i, 4, 5, 5));
	assert_int_equal(lab->conn->request_out.published, 2 * SHM_ENTRY_ALIGN);
	assert_true(lab_peer_entry(&lab->peer_answers, &entry, "data"));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->conn->request_out.published, 3 * SHM_ENTRY_ALIGN);
}

/* DTO-30 */
static void fenced_send__read_in_flight__waits_for_its_data(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	uint32_t after_read;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	after_read = lab->conn->request_out.published;
	lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab->conn->request_out.published, after_read);
	assert_true(lab_peer_entry(&lab->peer_answers, &entry, "data"));
	lab_pass(lab);
	assert_int_not_equal(lab->conn->request_out.published, after_read);
	assert_memory_equal(lab->conn->segment->request[SHM_PASSIVE] + after_read + SHM_ENTRY_ALIGN,
			    "data", 4);
}

static void send__ring_full__goes_on_when_there_is_space(void **state)
{
	struct lab *lab = *state;
	unsigned i;

	for (i = 0; i < 8; i++)
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 4096, 0, 0));
	assert_true(lab->conn->tx_next < 8);
	assert_false(shm_conn_has_work(lab->conn));
	while (lab->done < 8) {
		/* the peer takes everything that is there */
		atomic_store(&lab->peer->request_consumed, lab->conn->request_out.published);
		atomic_store(&lab->peer->done, lab->conn->sent);
		assert_true(shm_conn_has_work(lab->conn));
		lab_pass(lab);
	}
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_true(lab_is_open(lab));
}

static void write__by_the_kernel__checked_in_the_table_of_the_peer(void **state)
{
	struct lab *lab = *state;

	memset(lab->memory, 'w', 100);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->peer_memory[99], 'w');
	assert_int_equal(lab->peer_memory[100], 0xa5);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory + LAB_MEMORY - 99));
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(lab->peer_memory[LAB_MEMORY - 1], 0xa5);
	assert_false(lab_is_open(lab));
	lab->end = BROKEN;
}

/* A peer that has revoked is not written to, whatever its table says. */
static void write__peer_has_revoked__touches_nothing(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->peer->revoked, 1);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(lab->done, 0);
	assert_int_equal(lab->peer_memory[0], 0xa5);
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
}

/* The next packet that our side sent; 0: none. */
static unsigned packet(struct lab *lab, union shm_wire *wire)
{
	uint8_t bytes[sizeof(*wire)];
	ssize_t size = recv(lab->peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (size <= 0)
		return 0;
	assert_int_equal(shm_wire_decode(bytes, (size_t)size, 0, wire), 0);
	return wire->head.type;
}

static uint64_t counted(struct lab *lab, enum shm_counter counter)
{
	return shm_engine_count(&lab->engine, counter);
}

/* The memory behind a key is asked for once, and copied to directly when it has come. */
static void write__memory_file_given__mapped_and_checked_by_key(void **state)
{
	struct lab *lab = *state;
	struct shm_wire_give give = {.address = 1u << 20, .length = 8192};
	union shm_wire wire;
	uint8_t bytes[4];
	uint32_t key;
	int fd = soft_fd_memfd("test", 8192);

	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(soft_keys_add(lab->peer_keys, give.address, give.length,
				       SOFT_RIGHT_REMOTE_WRITE, 9, &key),
			 0);
	/* through the ring until the answer has come, and one question only */
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address));
	assert_int_equal(packet(lab, &wire), SHM_WIRE_MAP_ASK);
	assert_int_equal(wire.word.word, key);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address));
	assert_int_equal(packet(lab, &wire), 0);
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 2);

	give.key = key;
	shm_map_given(lab->conn, &give, fd);
	memcpy(lab->memory, "maps", 4);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address + 8188));
	assert_int_equal(lab->done, 3);
	assert_int_equal(counted(lab, SHM_COUNT_MAP), 1);
	assert_int_equal(pread(fd, bytes, 4, 8188), 4);
	assert_memory_equal(bytes, "maps", 4);
	/* the key decides, not the mapping */
	soft_keys_invalidate(lab->peer_keys, key);
	memcpy(lab->memory, "evil", 4);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address + 8188));
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(pread(fd, bytes, 4, 8188), 4);
	assert_memory_equal(bytes, "maps", 4);
	soft_keys_release(lab->peer_keys, key);
	soft_fd_close(fd);
}

static int setup_map(void **state)
{
	*state = lab_open(CORE_COPY_MAP, false);
	(*(struct lab **)state)->conn->remote.maps = calloc(SHM_MAPS, sizeof(struct shm_map));
	return 0;
}

/* A message tells where it comes from; once that is mapped here, the next one is fetched from it.
 */
static void message__from_mapped_memory__fetched_by_the_mapping(void **state)
{
	struct lab *lab = *state;
	struct shm_source source = {.key = lab->peer_rkey, .length = 2000};
	struct shm_entry entry = lab_send_entry(2000);
	struct shm_map *map;
	union shm_wire wire;
	uint8_t *other;
	int fd;

	lab->conn->remote.has_pull = true;
	lab->conn->remote.pid = 0; /* no kernel finds it */
	entry.key = lab->peer_rkey;
	assert_true(lab_post_receive(lab, 0, 2000));
	ask(lab, entry, lab->peer_memory);
	assert_int_equal(packet(lab, &wire), SHM_WIRE_MAP_ASK);
	assert_int_equal(wire.word.word, lab->peer_rkey);

	/* other bytes than those in peer_memory, to see where they are taken from */
	fd = memfd_create("lab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, LAB_MEMORY), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	other = mmap(NULL, LAB_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(other, 'm', LAB_MEMORY);
	wire.give = (struct shm_wire_give){.key = lab->peer_rkey,
					   .address = (uintptr_t)lab->peer_memory,
					   .length = LAB_MEMORY};
	shm_map_given(lab->conn, &wire.give, fd);
	map = shm_map_find(lab->conn, lab->peer_rkey);
	assert_non_null(map);
	assert_non_null(shm_map_at(map, source.address + (uintptr_t)lab->peer_memory, 1));

	source.address = (uintptr_t)lab->peer_memory + 5;
	assert_true(lab_post_receive(lab, 3000, 2000));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(source),
			       .length = 2000},
	    &source);
	assert_int_equal(lab->receive_len, 2000);
	assert_int_equal(lab->memory[3000], 'm');
	assert_int_equal(lab->memory[4999], 'm');
	assert_int_equal(lab->memory[5000], 0xa5);
	munmap(other, LAB_MEMORY);
	close(fd);
}

/* Our own Sends of some length are not copied into the ring when the peer has mapped them. */
static void send__memory_given_to_the_peer__named_and_not_copied(void **state)
{
	struct lab *lab = *state;
	const struct shm_entry *entries = (const void *)lab->conn->segment->request[SHM_PASSIVE];

	lab->conn->remote.is_pulling = true;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1024, 0, 0));
	assert_int_equal(entries[0].type, SHM_ENTRY_SEND);
	assert_int_equal(entries[0].key, lab->lmr->rkey);
	lab->conn->given[7] = lab->lmr->rkey;
	lab->engine.given_count = 1;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1023, 0, 0));
	assert_int_equal(entries[33].type, SHM_ENTRY_SEND);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1024, 0, 0));
	assert_int_equal(entries[66].type, SHM_ENTRY_PULL);
	lab->conn->given[7] = 0;
	lab->engine.given_count = 0;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1024, 0, 0));
	assert_int_equal(entries[68].type, SHM_ENTRY_SEND);
}

/* --- sleeping and waking --- */

static void publish__peer_sleeps__one_packet_per_number(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), 0); /* awake */
	atomic_store(&lab->peer->armed, 1);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), SHM_WIRE_WAKE);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), 0); /* one is under way */
	atomic_store(&lab->peer->armed, 3);	 /* woke, and went to sleep again */
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), SHM_WIRE_WAKE);
}

/* A peer that says it polls is not looked after; one that took that back is. */
static void publish__peer_has_polled_for_long__no_packet_until_it_ends_that(void **state)
{
	struct lab *lab = *state;
	union shm_wire wire;

	lab->conn->can_skip_fence = true;
	atomic_store(&lab->peer->is_polled, 1);
	atomic_store(&lab->peer->armed, 1); /* which no honest one does at that time */
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), 0);
	atomic_store(&lab->peer->is_polled, 0);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), SHM_WIRE_WAKE);
	/* where the kernel cannot run a fence on us, we look each time */
	lab->conn->can_skip_fence = false;
	atomic_store(&lab->peer->is_polled, 1);
	atomic_store(&lab->peer->armed, 3);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(packet(lab, &wire), SHM_WIRE_WAKE);
}

/* Takes one message while somebody polls. */
static void take_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(2), "hi");
}

/* After many messages without a sleep this side says that it polls, and no more when it sleeps. */
static void pass__many_messages_polled__says_so_until_it_sleeps(void **state)
{
	struct lab *lab = *state;
	unsigned taken;

	if (!core_fence_can(CORE_FENCE_HOST))
		skip(); /* a kernel or a sandbox without membarrier, or the thread sanitizer */
	for (unsigned round = 0; round < 2; round++) {
		shm_conn_disarm(lab->conn);
		for (taken = 0; !atomic_load(&lab->conn->mine->is_polled); taken++) {
			assert_true(taken < 1000);
			take_one(lab);
		}
		assert_true(taken > 100); /* not for a few: to end it is dear */
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
	assert_int_equal(packet(lab, &wire), SHM_WIRE_WAKE); /* it waits for a Receive: news too */
	atomic_store(&lab->peer->armed, 3);
	assert_true(lab_post_receive(lab, 0, 10));
	assert_int_equal(packet(lab, &wire), SHM_WIRE_WAKE);
}

static void arm__news_since_the_last_look__stays_awake(void **state)
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

/* The endpoint lets go of its connection between the look and its lock. */
static void let_go(struct lab *lab)
{
	((struct shm_ep *)lab->ep.transport)->conn = NULL;
}

/* The same, and what is on the list by then is another endpoint's. */
static void let_go_and_come_again(struct lab *lab)
{
	let_go(lab);
	lab->conn->ep_ref.generation++;
}

static void look__endpoint_has_let_go__connection_leaves_the_list(void **state)
{
	struct lab *lab = *state;
	struct shm_conn *conn = lab->conn;
	struct shm_entry entry = lab_send_entry(8);

	shm_conn_disarm(conn);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, NULL));
	lab->entering = let_go_and_come_again;
	assert_int_equal(shm_engine_poll_all(&lab->engine), 0);
	assert_int_equal(atomic_load(&lab->engine.active_count), 1);
	conn->ep_ref.generation--;
	lab->entering = let_go;
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

/* --- ends --- */

/* DTO-120 EP-DISC-40: the end is told when the peer's copy is over, or at the time-out */
static void disconnect__peer_in_the_middle_of_a_copy__told_when_it_is_over(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	atomic_store(&lab->peer->announce, lab->rkey);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(lab->end, 0);
	assert_int_equal(atomic_load(&lab->conn->mine->revoked), 1);
	atomic_store(&lab->peer->announce, 0);
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
	shm_conn_put(lab->conn);
}

static void disconnect__peer_never_ends_its_copy__told_at_the_time_out(void **state)
{
	struct lab *lab = *state;
	uint64_t start = shm_now_ns();

	hold(lab);
	atomic_store(&lab->peer->announce, lab->rkey);
	shm_ep_disconnect(&lab->ep, false);
	while (lab->end == 0)
		shm_conn_finish(lab->conn, &lab->ep);
	assert_true(shm_now_ns() - start >= 50u * 1000000u);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
	shm_conn_put(lab->conn);
}

/* Who only sends polls as well: its acknowledgements count as they do on the general path. */
static void pass__many_acknowledgements_polled__says_so(void **state)
{
	struct lab *lab = *state;
	unsigned sent = 0;

	if (!core_fence_can(CORE_FENCE_HOST))
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
#define CMA(name) cmocka_unit_test_setup_teardown(name, setup_cma, teardown)
	const struct CMUnitTest tests[] = {
		RING(message__receive_posted__placed_and_acknowledged),
		RING(message__polled__acknowledged_with_the_answer_or_later),
		RING(message__answer_held_up_at_the_peer__acknowledged_by_the_word),
		RING(message__answered__acknowledged_by_the_word_before_one_is_refused),
		RING(message__answered__acknowledged_by_the_word_before_the_end),
		RING(message__always_answered_at_once__word_does_not_lag_too_far),
		RING(message__tells_what_is_done__completes_our_sends),
		RING(message__no_receive__waits_and_fills_the_late_one),
		RING(message__in_pieces__placed_one_after_the_other),
		RING(write__through_the_ring__placed_at_its_address),
		RING(read__through_the_ring__answered_in_pieces),
		CMA(message__fetched__placed_from_two_sources),
		RING(message__longer_than_the_receive__length_error_here_responder_there),
		RING(write__unknown_key__access_error_and_unchanged),
		RING(write__read_only_key__access_error_and_unchanged),
		RING(write__last_byte_outside__access_error_and_unchanged),
		RING(write__range_wraps__access_error_and_unchanged),
		RING(read__unknown_key__access_error),
		CMA(message__source_freed__protection_error_there),
		cmocka_unit_test(entry__against_the_rules__connection_breaks),
		cmocka_unit_test(sources__against_the_rules__connection_breaks),
		cmocka_unit_test(pieces__something_else_between__connection_breaks),
		RING(done__more_than_was_sent__connection_breaks),
		RING(failed__nothing_in_flight__connection_breaks),
		RING(failed__status_of_the_sender_only__bad_response),
		RING(data__unasked__connection_breaks),
		cmocka_unit_test(data__more_or_less_than_asked__bad_response),
		RING(read__more_than_the_peer_serves__the_rest_waits),
		RING(fenced_send__read_in_flight__waits_for_its_data),
		RING(send__ring_full__goes_on_when_there_is_space),
		CMA(write__by_the_kernel__checked_in_the_table_of_the_peer),
		CMA(write__peer_has_revoked__touches_nothing),
		cmocka_unit_test_setup_teardown(write__memory_file_given__mapped_and_checked_by_key,
						setup_map, teardown),
		cmocka_unit_test_setup_teardown(message__from_mapped_memory__fetched_by_the_mapping,
						setup_map, teardown),
		cmocka_unit_test_setup_teardown(
			send__memory_given_to_the_peer__named_and_not_copied, setup_map, teardown),
		RING(publish__peer_sleeps__one_packet_per_number),
		RING(publish__peer_has_polled_for_long__no_packet_until_it_ends_that),
		RING(publish__done_for_a_sleeping_peer__wakes_it),
		RING(pass__many_messages_polled__says_so_until_it_sleeps),
		RING(pass__many_acknowledgements_polled__says_so),
		RING(arm__news_since_the_last_look__stays_awake),
		RING(look__endpoint_has_let_go__connection_leaves_the_list),
		RING(disarm__each_time__number_changes),
		RING(disconnect__peer_in_the_middle_of_a_copy__told_when_it_is_over),
		RING(disconnect__peer_never_ends_its_copy__told_at_the_time_out),
	};

	return cmocka_run_group_tests_name("shm peer", tests, NULL, NULL);
}
