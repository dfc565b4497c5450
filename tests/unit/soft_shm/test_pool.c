// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pools of large pieces in the lab of lab.h: how they are offered and answered.
 */
#include <pthread.h>
#include <sys/eventfd.h>

#include "pool_lab.h"
#include "pool_pieces.h"

static void send__first_large_one__pool_offered_and_ring_used_until_it_is_known(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	assert_int_equal(send_whole(lab, &line, SHM_REQUEST_PAYLOAD, 1), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(send_whole(lab, &line, LAB_MEMORY, 2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_POOL_GIVE);
	lab_peer_takes_pool(lab);
	assert_int_equal(send_whole(lab, &line, LAB_MEMORY, 3), LAB_MEMORY);
	/* neither small entries nor the last bytes of a large one get a piece */
	assert_int_equal(send_whole(lab, &line, SHM_REQUEST_PAYLOAD, 4), 0);
	assert_int_equal(send_whole(lab, &line, SHM_PIECE + 100, 5), SHM_PIECE);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(lab->done, 5);
	assert_true(lab_is_open(lab));
}

static void answer__peer_has_it_not__ring_only_and_no_other_offer(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_POOL_GIVE);
	answer(lab, lab->conn, false);
	assert_int_equal(lab->engine.pool_count, 0);
	/* too late */
	lab_peer_takes_pool(lab);
	assert_int_equal(send_whole(lab, &line, LARGE, 2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_true(lab_is_open(lab));
}

/* The key table is missing: the peer is not of our user, and takes no descriptors. */
static void offer__another_user__ring_only(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	lab->conn->remote.is_trusted = false;
	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(lab->engine.pool_count, 0);
	assert_true(lab_is_open(lab));
}

/* Answers that were not requested are ignored, whatever they are. */
static void answer__unasked_or_of_another_pool__nothing_changes(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	struct shm_wire_pool other;

	answer(lab, lab->conn, true);
	assert_int_equal(lab->conn->bulk.state, SHM_BULK_NONE);
	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	other = lab->offer;
	other.number++;
	shm_pool_answered(lab->conn, &other);
	assert_int_equal(lab->conn->bulk.state, SHM_BULK_GIVEN);
	answer(lab, lab->conn, true);
	answer(lab, lab->conn, false);
	answer(lab, lab->conn, true);
	assert_int_equal(lab->conn->bulk.state, SHM_BULK_READY);
	assert_int_equal(send_whole(lab, &line, LARGE, 2), SHM_PIECE);
}

static void offer__second_connection_to_the_process__shares_the_pool(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;
	struct shm_wire_pool given;
	struct shm_bytes bytes = {0};
	struct shm_entry entry = {0};
	union shm_wire wire;

	line_ready(lab, &first);
	given = lab->offer;
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_POOL_NAME);
	assert_int_equal(wire.pool.number, given.number);
	/* the name alone does not help a process that did not get the pool */
	for (size_t i = 0; i < sizeof(wire.pool.secret); i++)
		assert_int_equal(wire.pool.secret[i], 0);
	lab->offer = given;
	answer(lab, second.conn, true);
	assert_int_equal(lab->engine.pool_count, 1);
	assert_true(put(&second, 7) >= 0);
	assert_true(take(lab, &second.requests, &bytes, &entry)); /* in the ring itself */
	assert_true(take(lab, &second.requests, &bytes, &entry));
	assert_int_equal(bytes.count, SHM_PIECE);
	check(bytes.at, 0, SHM_PIECE, 7);
	line_close(&second);
}

/* A process that only claims to be that one gets a pool of its own. */
static void answer__wrong_secret_for_a_pool_that_is_in_use__another_pool_is_given(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;
	uint64_t number;

	line_ready(lab, &first);
	number = lab->offer.number;
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	lab->offer.secret[SHM_TOKEN_SIZE - 1] ^= 1;
	answer(lab, second.conn, true);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_GIVEN);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	assert_int_not_equal(lab->offer.number, number);
	assert_int_equal(put(&second, 0), -1);
	answer(lab, second.conn, true);
	assert_ptr_not_equal(second.conn->bulk.out, first.conn->bulk.out);
	assert_true(put(&second, 0) >= 0);
	assert_int_equal(lab->engine.pool_count, 2);
	line_close(&second);
	assert_int_equal(lab->engine.pool_count, 1);
}

/* The packets of two connections overtake each other: there is still one pool. */
static void answer__pool_has_not_arrived_yet__asked_again_later(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;

	assert_int_equal(put(&first, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	answer(lab, second.conn, false);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_NONE);
	answer(lab, first.conn, true);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	answer(lab, second.conn, true);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_READY);
	assert_int_equal(lab->engine.pool_count, 1);
	line_close(&second);
}

/* ... even if the other connection learns that it has arrived before the old answer comes. */
static void answer__pool_arrives_after_the_question__asked_again_later(void **state)
{
	struct lab *lab = *state;
	struct line first = lab_line(lab), second;
	struct shm_wire_pool given;

	assert_int_equal(put(&first, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
	given = lab->offer;
	line_open(lab, &second);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	lab->offer = given;
	answer(lab, first.conn, true);
	answer(lab, second.conn, false);
	assert_int_equal(lab->engine.pool_count, 1);
	assert_int_equal(second.conn->bulk.state, SHM_BULK_NONE);
	assert_int_equal(put(&second, 0), -1);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_NAME);
	lab->offer = given;
	answer(lab, second.conn, true);
	assert_ptr_equal(second.conn->bulk.out, first.conn->bulk.out);
	line_close(&second);
}

/* The process ID and the token of the engine identify the owner of a pool. */
static void offer__other_process_or_engine__pool_of_its_own(void **state)
{
	static const struct {
		pid_t pid;
		uint8_t token;
	} others[] = {{1, 0}, {0, 0}, {0, 0}, {-1, 1}};
	struct lab *lab = *state;
	struct line first = lab_line(lab), lines[COUNT(others)];
	uint32_t i;

	line_ready(lab, &first);
	for (i = 0; i < COUNT(others); i++) {
		line_open(lab, &lines[i]);
		if (others[i].pid >= 0)
			lines[i].conn->remote.pid = others[i].pid;
		lines[i].conn->remote.token[3] = others[i].token;
		assert_int_equal(put(&lines[i], 0), -1);
		assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
		answer(lab, lines[i].conn, true);
		assert_int_equal(lab->engine.pool_count, 2 + i);
	}
	for (i = 0; i < COUNT(others); i++)
		line_close(&lines[i]);
}

static void offer__too_many_pools__ring_only(void **state)
{
	struct lab *lab = *state;
	struct line line = lab_line(lab);
	union shm_wire wire;

	lab->engine.pool_count = SHM_POOLS;
	assert_int_equal(send_whole(lab, &line, LARGE, 1), 0);
	assert_int_equal(send_whole(lab, &line, LARGE, 2), 0);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	assert_int_equal(lab->engine.pool_count, SHM_POOLS);
	lab->engine.pool_count = 0;
}

/* GEN-26: a thread that is cancelled during a post ends when the post is over. */
static void *post_cancelled(void *arg)
{
	static bool is_over;
	struct lab *lab = arg;

	pthread_cancel(pthread_self());
	lab_post(lab, CORE_OP_SEND, 0, LARGE, 0, 0);
	is_over = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return &is_over;
}

static void offer__thread_is_cancelled__post_is_finished(void **state)
{
	struct lab *lab = *state;
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, post_cancelled, lab), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_not_equal(result, PTHREAD_CANCELED);
	assert_true(*(bool *)result);
	assert_int_equal(next_offer(lab), SHM_WIRE_POOL_GIVE);
}

static void give__bad_file__refused(void **state)
{
	static const struct {
		size_t size;
		int seals;
	} bad[] = {
		{SHM_POOL_SIZE, 0},
		{SHM_POOL_SIZE, F_SEAL_GROW | F_SEAL_SEAL},
		{SHM_POOL_SIZE, F_SEAL_SHRINK | F_SEAL_SEAL},
		{SHM_POOL_SIZE, F_SEAL_SHRINK | F_SEAL_GROW},
		{SHM_POOL_SIZE - 1, SEALS},
		{SHM_POOL_SIZE + 4096, SEALS},
		{0, SEALS},
	};
	struct lab *lab = *state;

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_true(give(lab, lab->conn, 1, lab_pool_file(SHM_POOL_SIZE, SEALS)));
		assert_false(give(lab, lab->conn, 2, lab_pool_file(bad[i].size, bad[i].seals)));
	}
	assert_false(give(lab, lab->conn, 3, eventfd(0, EFD_CLOEXEC)));
	assert_int_equal(lab->engine.pool_count, 0);
}

static void give__again_and_again__the_last_one_counts(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 100; i++) {
		assert_true(give(lab, lab->conn, i, lab_pool_file(SHM_POOL_SIZE, SEALS)));
		assert_int_equal(lab->engine.pool_count, 1);
	}
	assert_true(give(lab, lab->conn, 99, -1));
	assert_false(give(lab, lab->conn, 98, -1));
	assert_int_equal(lab->engine.pool_count, 0);
	lab->engine.pool_count = SHM_POOLS;
	assert_false(give(lab, lab->conn, 1, lab_pool_file(SHM_POOL_SIZE, SEALS)));
	lab->engine.pool_count = 0;
}

/* A process that knows the number of another one's pool must not get that process's bytes placed in
 * its own memory, nor the secret. */
static void name__pool_of_another_process__denied(void **state)
{
	struct lab *lab = *state;
	struct line same, other, unknown;

	assert_true(give(lab, lab->conn, 5, lab_pool_file(SHM_POOL_SIZE, SEALS)));
	line_open(lab, &same);
	line_open(lab, &other);
	line_open(lab, &unknown);
	other.conn->remote.pid = 1;
	unknown.conn->remote.pid = 0;
	assert_true(give(lab, same.conn, 5, -1));
	assert_false(give(lab, other.conn, 5, -1));
	assert_false(give(lab, unknown.conn, 5, -1));
	assert_int_equal(lab->engine.pool_count, 1);
	/* our own pool is no pool of a peer either */
	line_ready(lab, &same);
	assert_false(give(lab, other.conn, lab->offer.number, -1));
	assert_false(give(lab, same.conn, lab->offer.number, -1));
	line_close(&same);
	line_close(&other);
	line_close(&unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(send__first_large_one__pool_offered_and_ring_used_until_it_is_known),
		test(answer__peer_has_it_not__ring_only_and_no_other_offer),
		test(offer__another_user__ring_only),
		test(answer__unasked_or_of_another_pool__nothing_changes),
		test(offer__second_connection_to_the_process__shares_the_pool),
		test(answer__wrong_secret_for_a_pool_that_is_in_use__another_pool_is_given),
		test(answer__pool_has_not_arrived_yet__asked_again_later),
		test(answer__pool_arrives_after_the_question__asked_again_later),
		test(offer__other_process_or_engine__pool_of_its_own),
		test(offer__too_many_pools__ring_only),
		test(offer__thread_is_cancelled__post_is_finished),
		test(give__bad_file__refused),
		test(give__again_and_again__the_last_one_counts),
		test(name__pool_of_another_process__denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
