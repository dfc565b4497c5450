// SPDX-License-Identifier: BSD-2-Clause
/*
 * Several small messages that one system call puts into their Receives: what is among them, what
 * becomes of them when a Receive cannot be filled, and when the kernel does not let us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab.h"

#define PAGE 4096u
#define STEP 100u /* between the Receives */

static unsigned calls; /* of preadv */
static bool is_refused;

/* Only system calls of six arguments at most come this way. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long args[6];
	va_list list;

	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_preadv) {
		calls++;
		if (is_refused) {
			errno = EPERM;
			return -1;
		}
	}
	return __real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* Small messages come by the system call from the second on. */
static int setup(void **state)
{
	struct lab *lab = lab_open(CORE_COPY_RING, false);

	lab_take_bursts(lab);
	shm_conn_get(lab->conn); /* to be looked at behind its end */
	calls = 0;
	is_refused = false;
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	struct lab *lab = *state;

	shm_conn_put(lab->conn);
	lab_close(lab);
	return 0;
}

/* Message i of len bytes, and a Receive for it. */
static void send_one(struct lab *lab, unsigned i, uint32_t len, uint32_t room, bool is_solicited)
{
	struct shm_entry entry = lab_send_entry(len);
	uint8_t bytes[PAGE];

	if (is_solicited)
		entry.flags |= SHM_FLAG_SOLICITED;
	memset(bytes, (int)('a' + i), sizeof(bytes));
	assert_true(lab_post_receive(lab, i * STEP, room));
	assert_true(lab_peer_entry(&lab->peer_out, &entry, bytes));
}

/* The first len bytes of Receive i are the message's, the next one is as before. */
static void expect_message(const struct lab *lab, unsigned i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		assert_int_equal(lab->memory[i * STEP + k], 'a' + i);
	assert_int_equal(lab->memory[i * STEP + len], 0xa5);
}

static void expect_nothing(const struct lab *lab, unsigned i)
{
	for (uint32_t k = 0; k < STEP; k++)
		assert_int_equal(lab->memory[i * STEP + k], 0xa5);
}

static void messages__several_in_a_row__each_in_its_receive(void **state)
{
	static const uint32_t lengths[] = {1, 8, 99, 64, 7};
	struct lab *lab = *state;

	for (unsigned i = 0; i < 5; i++)
		send_one(lab, i, lengths[i], STEP, i == 4);
	lab_pass(lab);
	assert_int_equal(calls, 1);
	assert_int_equal(lab->received, 5);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->receive_len, 7);
	assert_true(lab->receive_solicited);
	for (unsigned i = 0; i < 5; i++)
		expect_message(lab, i, lengths[i]);
	assert_int_equal(atomic_load(&lab->conn->mine->done), 5);
	assert_true(lab_is_open(lab));
}

/* DTO-52: what an entry tells is done completes our Sends. */
static void messages__tell_what_is_done__complete_our_sends(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(3);

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	for (entry.done = 1; entry.done <= 2; entry.done++) {
		assert_true(lab_post_receive(lab, entry.done * STEP, STEP));
		assert_true(lab_peer_entry(&lab->peer_out, &entry, "abc"));
	}
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	entry.done = 3;
	assert_true(lab_post_receive(lab, 0, STEP));
	assert_true(lab_peer_entry(&lab->peer_out, &entry, "lie"));
	lab_pass(lab);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
}

static void messages__a_long_one_between__all_in_order(void **state)
{
	struct lab *lab = *state;

	send_one(lab, 0, 8, STEP, false);
	send_one(lab, 1, 8, STEP, false);
	send_one(lab, 10, 2048, 2048, false);
	send_one(lab, 2, 8, STEP, false);
	send_one(lab, 3, 8, STEP, false);
	lab_pass(lab);
	assert_int_equal(calls, 2);
	assert_int_equal(lab->received, 5);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		expect_message(lab, i, 8);
	expect_message(lab, 10, 2048);
}

/* DTO-79: those before it arrive. */
static void messages__one_too_long_for_its_receive__length_error(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 5; i++)
		send_one(lab, i, 8, i == 3 ? 7 : STEP, false);
	lab_pass(lab);
	assert_int_equal(lab->received, 4);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_LENGTH);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
	for (unsigned i = 0; i < 3; i++)
		expect_message(lab, i, 8);
	expect_nothing(lab, 3);
	expect_nothing(lab, 4);
}

/* LMR-USE-14: memory of the third is gone. */
static void messages__memory_of_one_gone__those_before_arrive(void **state)
{
	struct lab *lab = *state;
	uintptr_t page = ((uintptr_t)lab->memory + 3 * PAGE) & ~(uintptr_t)(PAGE - 1);
	uint32_t gone = (uint32_t)(page - (uintptr_t)lab->memory);
	struct shm_entry entry = lab_send_entry(5);

	assert_int_equal(mprotect((void *)page, PAGE, PROT_NONE), 0);
	send_one(lab, 0, 8, STEP, false);
	send_one(lab, 1, 8, STEP, false);
	assert_true(lab_post_receive(lab, gone, STEP));
	assert_true(lab_peer_entry(&lab->peer_out, &entry, "third"));
	send_one(lab, 2, 8, STEP, false);
	lab_pass(lab);
	assert_int_equal(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(lab->received, 3);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(atomic_load(&lab->conn->mine->failed),
			 SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(atomic_load(&lab->conn->mine->done), 2);
	expect_message(lab, 0, 8);
	expect_message(lab, 1, 8);
	expect_nothing(lab, 2);
}

/* DTO-104: messages without a Receive wait, as long as they may. */
static void messages__fewer_receives__the_rest_waits(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(4);
	uint64_t since;

	lab->engine.settings.rnr_timeout_ms = 1000000;
	send_one(lab, 0, 8, STEP, false);
	send_one(lab, 1, 8, STEP, false);
	assert_true(lab_peer_entry(&lab->peer_out, &entry, "late"));
	lab_pass(lab);
	assert_int_equal(lab->received, 2);
	assert_true(lab->conn->arrival.is_blocked);
	since = lab->conn->arrival.blocked_ns;
	lab_pass(lab);
	assert_true(lab->conn->arrival.is_blocked);
	assert_int_equal(lab->conn->arrival.blocked_ns, since);
	assert_true(lab_post_receive(lab, 2 * STEP, STEP));
	lab_pass(lab);
	assert_int_equal(lab->received, 3);
	assert_memory_equal(lab->memory + 2 * STEP, "late\xa5", 5);
}

/* A sandbox: the bytes get there another way, now and later. Comes last: the refusal stays. */
static void messages__the_kernel_refuses__arrive_nevertheless(void **state)
{
	struct lab *lab = *state;

	is_refused = true;
	for (unsigned i = 0; i < 4; i++)
		send_one(lab, i, 8, STEP, false);
	lab_pass(lab);
	assert_int_equal(lab->received, 4);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	for (unsigned i = 4; i < 6; i++)
		send_one(lab, i, 8, STEP, false);
	lab_pass(lab);
	assert_int_equal(calls, 1);
	assert_int_equal(lab->received, 6);
	for (unsigned i = 0; i < 6; i++)
		expect_message(lab, i, 8);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(messages__several_in_a_row__each_in_its_receive),
		TEST(messages__tell_what_is_done__complete_our_sends),
		TEST(messages__a_long_one_between__all_in_order),
		TEST(messages__one_too_long_for_its_receive__length_error),
		TEST(messages__memory_of_one_gone__those_before_arrive),
		TEST(messages__fewer_receives__the_rest_waits),
		TEST(messages__the_kernel_refuses__arrive_nevertheless),
	};

	return cmocka_run_group_tests_name("shm burst", tests, NULL, NULL);
}
