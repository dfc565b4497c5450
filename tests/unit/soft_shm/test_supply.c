// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages that the receiver cannot fetch, because the kernel refuses: the sender supplies their
 * bytes in the response ring (SHM_WAITS_BYTES).
 */
#include <string.h>

#include "slow.h"
#include "soft/shm/transfer/progress.h"

#define LEN 40000u /* several times what the response ring holds */

static uint32_t waits(const struct lab *lab)
{
	return atomic_load(&lab->conn->mine->waits);
}

/* --- this side receives --- */

/* The peer sends a message of that length, which cannot be fetched. */
static void get_message(struct lab *lab, uint32_t len)
{
	struct shm_source source = {
		.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = len};

	lab->conn->remote.has_pull = true;
	lab->conn->remote.pid = 0; /* the kernel finds no such process */
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(source),
			       .length = len},
	    &source);
}

static void give_bytes(struct lab *lab, uint32_t count, uint8_t flags)
{
	static const uint8_t bytes[SHM_RESPONSE_PAYLOAD] = {'a', 'b', 'c'};
	struct shm_entry entry = {
		.type = SHM_ENTRY_BYTES, .flags = flags, .payload = (uint16_t)count};

	assert_true(lab_peer_entry(&lab->peer_answers, &entry, bytes));
	lab_pass(lab);
}

/* DTO-123: the second one is not even tried */
static void message__cannot_be_fetched__completed_by_supplied_bytes(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 2; i++) {
		memset(lab->memory, 0, 8000);
		assert_true(lab_post_receive(lab, 0, 8000));
		get_message(lab, 4099);
		assert_int_equal(lab->received, i);
		assert_int_equal(waits(lab), SHM_WAITS_FOR(i));
		assert_int_equal(done(lab), i);
		shm_conn_disarm(lab->conn);
		assert_true(shm_conn_arm(lab->conn));
		give_bytes(lab, 2048, 0);
		give_bytes(lab, 2048, 0);
		assert_int_equal(lab->received, i);
		assert_int_equal(waits(lab), SHM_WAITS_FOR(i));
		give_bytes(lab, 3, SHM_FLAG_LAST);
		assert_int_equal(lab->received, i + 1);
		assert_int_equal(lab->receive_len, 4099);
		assert_int_equal(waits(lab), 0);
		assert_int_equal(done(lab), i + 1);
		assert_memory_equal(lab->memory, "abc", 4);
		assert_memory_equal(lab->memory + 2048, "abc", 4);
		assert_memory_equal(lab->memory + 4096, "abc", 4);
	}
	assert_true(lab_is_open(lab));
}

/* DTO-105: what is behind it in the ring waits */
static void message__behind_one_that_is_supplied__after_it(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 0, 8000));
	assert_true(lab_post_receive(lab, 8000, 10));
	get_message(lab, 2000);
	ask(lab, lab_send_entry(5), "later");
	assert_int_equal(lab->received, 0);
	give_bytes(lab, 2000, SHM_FLAG_LAST);
	assert_int_equal(lab->received, 2);
	assert_int_equal(lab->receive_len, 5);
	assert_int_equal(done(lab), 2);
}

/* Bytes that no honest peer puts there break the connection. */
static void bytes__not_those_that_were_asked_for__broken(void **state)
{
	static const struct {
		bool is_asked;
		uint32_t count;
		uint8_t flags;
	} bad[] = {
		{false, 100, SHM_FLAG_LAST}, {true, 0, 0},   {true, 101, SHM_FLAG_LAST},
		{true, 99, SHM_FLAG_LAST},   {true, 100, 0},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct lab *lab = *state;

		assert_true(lab_post_receive(lab, 0, 8000));
		if (bad[i].is_asked)
			get_message(lab, 100);
		give_bytes(lab, bad[i].count, bad[i].flags);
		assert_int_equal(lab->received, 0);
		expect_broken(lab);
		lab_close(lab);
		*state = lab_open(CORE_COPY_AUTO, true);
	}
}

/* --- this side sends --- */

/* Posts a Send that the peer cannot fetch. */
static void send_message(struct lab *lab)
{
	lab->conn->remote.is_pulling = true;
	for (uint32_t i = 0; i < LEN; i++)
		lab->memory[i] = (uint8_t)(i * 7);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, LEN, 0, 0));
}

/* The peer takes everything in the response ring: how many bytes of each kind. */
struct taken {
	uint64_t bytes;
	uint64_t data;
	unsigned last; /* entries with SHM_FLAG_LAST */
};

static void take_responses(struct lab *lab, struct taken *taken)
{
	struct shm_consumer in;
	const uint8_t *payload;
	struct shm_entry entry;

	shm_consumer_init(&in, lab->conn->segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &lab->peer->response_consumed);
	while (shm_consumer_peek(&in, &entry, &payload) == 1) {
		taken->last += !!(entry.flags & SHM_FLAG_LAST);
		if (entry.type == SHM_ENTRY_DATA)
			taken->data += entry.payload;
		for (uint32_t i = 0; entry.type == SHM_ENTRY_BYTES && i < entry.payload; i++)
			assert_int_equal(payload[i], (uint8_t)(taken->bytes++ * 7));
		shm_consumer_pop(&in);
	}
	shm_consumer_give_back(&in);
}

/* DTO-123: all bytes are supplied as the ring has room; later Sends are not to be fetched. */
static void send__peer_cannot_fetch_it__supplied(void **state)
{
	const struct shm_entry *entries;
	struct lab *lab = *state;
	struct taken taken = {0};

	entries = (const void *)lab->conn->segment->request[SHM_PASSIVE];
	send_message(lab);
	assert_int_equal(entries[0].type, SHM_ENTRY_PULL);
	atomic_store(&lab->peer->waits, SHM_WAITS_FOR(0u));
	assert_true(shm_conn_has_work(lab->conn));
	while (taken.bytes < LEN) {
		lab_pass(lab);
		shm_conn_disarm(lab->conn);
		assert_true(shm_conn_arm(lab->conn));
		take_responses(lab, &taken);
		assert_true(taken.bytes == LEN || shm_conn_has_work(lab->conn));
	}
	assert_int_equal(taken.last, 1);
	lab_pass(lab);
	take_responses(lab, &taken);
	assert_int_equal(taken.bytes, LEN);
	assert_int_equal(lab->done, 0);
	atomic_store(&lab->peer->done, 1);
	atomic_store(&lab->peer->waits, 0);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 5000, 0, 0));
	assert_int_equal(entries[2].type, SHM_ENTRY_SEND);
}

/* DTO-117: RDMA Reads of the peer are answered meanwhile; both take the same ring. */
static void send__supplied_while_a_read_is_answered__both_complete(void **state)
{
	struct lab *lab = *state;
	struct taken taken = {0};

	send_message(lab);
	atomic_store(&lab->peer->waits, SHM_WAITS_FOR(0u));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_READ,
			       .key = lab->read_only,
			       .address = (uintptr_t)lab->memory,
			       .length = LEN / 2},
	    NULL);
	while (taken.last < 2) {
		take_responses(lab, &taken);
		if (taken.last < 2)
			assert_true(shm_conn_has_work(lab->conn));
		lab_pass(lab);
	}
	assert_int_equal(taken.bytes, LEN);
	assert_int_equal(taken.data, LEN / 2);
}

/* The word may be older than what the peer has reported since. */
static void send__asked_for_the_bytes_of_another_one__not_supplied(void **state)
{
	struct lab *lab = *state;
	struct taken taken = {0};

	send_message(lab);
	atomic_store(&lab->peer->waits, SHM_WAITS_FOR(1u));
	lab_pass(lab);
	take_responses(lab, &taken);
	assert_int_equal(taken.bytes, 0);
	assert_true(lab_is_open(lab));
}

/* A peer that asks for the bytes of a message that it has in its ring breaks the rules. */
static void send__asked_for_bytes_that_are_in_the_ring__broken(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 100, 0, 0));
	atomic_store(&lab->peer->waits, SHM_WAITS_FOR(0u));
	lab_pass(lab);
	expect_broken(lab);
}

/* DTO-96: the region is freed before the bytes are supplied */
static void send__freed_before_it_is_supplied__local_protection(void **state)
{
	struct lab *lab = *state;

	send_message(lab);
	atomic_store(&lab->lmr->key, 0);
	atomic_store(&lab->peer->waits, SHM_WAITS_FOR(0u));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_broken(lab);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_cma, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(message__cannot_be_fetched__completed_by_supplied_bytes),
		TEST(message__behind_one_that_is_supplied__after_it),
		TEST(bytes__not_those_that_were_asked_for__broken),
		TEST(send__peer_cannot_fetch_it__supplied),
		TEST(send__supplied_while_a_read_is_answered__both_complete),
		TEST(send__asked_for_the_bytes_of_another_one__not_supplied),
		TEST(send__asked_for_bytes_that_are_in_the_ring__broken),
		TEST(send__freed_before_it_is_supplied__local_protection),
	};

	return cmocka_run_group_tests_name("shm supply", tests, NULL, NULL);
}
