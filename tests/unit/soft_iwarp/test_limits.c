// SPDX-License-Identifier: BSD-2-Clause
/* Limits: the time that a message waits, the work for one connection, buffers of a shared queue. */
#include "flow_stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* --- memory for messages that wait --- */

static _Atomic bool is_short;

void *__real_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (size == IW_SPILL_SIZE && atomic_load(&is_short))
		return MAP_FAILED;
	return __real_mmap64(address, size, protection, flags, fd, offset);
}

/* --- the time that a message waits --- */

static int open_impatient(void **state)
{
	(void)state;
	return open_flow_with("impatient", "127.0.0.1 transport=tcp rnr_timeout_ms=200");
}

/* DDP-16 DTO-106 TERM-27 */
static void limit__no_receive_in_time__terminate(void **state)
{
	uint64_t begin;
	struct taken taken;

	(void)state;
	be_called(0);
	/* a Receive in time: the next message has its own time */
	peer_send("first", 5);
	post_recv_at(0, 5);
	expect_dto(0, DAT_DTO_SUCCESS, 5);
	begin = now_ms();
	peer_send("second", 6);
	peer_send("third", 5);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	assert_true(now_ms() - begin >= 200);
	expect_terminate(IW_ERROR(1, 2, 2), &taken);
	/* it names the second one */
	assert_int_equal(taken.payload[2], 0xc0);
	assert_int_equal(be_get32(taken.payload + 4 + 2 + 10), 2);
	end_flow();
}

/* DTO-106: likewise if there was no memory to keep the first one, which was left in the stream */
static void limit__no_memory_for_the_first__next_has_its_own_time(void **state)
{
	uint64_t begin;

	(void)state;
	be_called(0);
	atomic_store(&is_short, true);
	peer_send("first", 5);
	expect_served();
	atomic_store(&is_short, false);
	post_recv_at(0, 5);
	expect_dto(0, DAT_DTO_SUCCESS, 5);
	/* until the time of the first one would be over */
	assert_int_equal(poll(NULL, 0, 200), 0);
	begin = now_ms();
	peer_send("second", 6);
	peer_send("third", 5);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	assert_true(now_ms() - begin >= 200);
	expect_terminate(IW_ERROR(1, 2, 2), NULL);
	end_flow();
}

/* --- the work for one connection --- */

static struct {
	int fd;
	_Atomic bool is_over;
	uint8_t bytes[3200 * 20]; /* FPDUs of 20 bytes */
} flood;

static void *put_without_end(void *argument)
{
	while (!flood.is_over)
		if (send(flood.fd, flood.bytes, sizeof(flood.bytes), MSG_NOSIGNAL) <= 0)
			break;
	return argument;
}

#define ROUNDS 50u

/* IWCM-46: the smallest FPDUs without end on one connection, Sends on another */
static void flood__another_connection__goes_on(void **state)
{
	const struct iw_ddp ddp = {.is_tagged = true, .opcode = IW_OP_WRITE, .is_last = true};
	pthread_t thread;
	struct fpdu fpdu;

	(void)state;
	be_called(0);
	make_fpdu(&fpdu, &ddp, NULL, 0);
	/* a send that is cut goes on in the middle of an FPDU: their size divides that of a piece
	 */
	for (size_t at = 0; at + fpdu.size <= sizeof(flood.bytes); at += fpdu.size)
		memcpy(flood.bytes + at, fpdu.bytes, fpdu.size);
	flood.fd = flow.fd;
	flood.is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, put_without_end, NULL), 0);
	be_calling_with(0, 4, 4);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_recv_at(0, 4);
		peer_send("ping", 4);
		expect_dto(0, DAT_DTO_SUCCESS, 4);
	}
	hang_up();
	flood.is_over = true;
	assert_int_equal(shutdown(flood.fd, SHUT_RDWR), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(flood.fd);
	flow.ep = stage.b;
	(void)next_of(stage.evd);
	ok(core_ep_reset(stage.b));
}

/* --- a shared receive queue --- */

/* IWCM-43: headers that are not whole, or not valid, take no buffer */
static void srq__unfinished_segments__take_no_buffer(void **state)
{
	static const uint8_t bytes[20000];
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	begin_shared();
	post_shared(sizeof(bytes));
	for (unsigned is_bad = 0; is_bad < 2; is_bad++) {
		be_called(0);
		ddp = send_header(0, true);
		ddp.msn += is_bad;
		make_fpdu(&fpdu, &ddp, bytes, sizeof(bytes));
		/* an invalid one may be judged before all of it is there */
		put(flow.fd, fpdu.bytes, is_bad ? 1000 : 19);
		expect_served();
		expect_available(1);
		close(flow.fd);
		(void)next_of(stage.evd);
		ok(core_ep_reset(flow.ep));
	}
	be_called(0);
	peer_send("good", 4);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	/* one that waits is served when a buffer comes */
	peer_send("waits", 5);
	expect_served();
	expect_quiet(stage.evd);
	post_shared(sizeof(bytes));
	expect_dto(0, DAT_DTO_SUCCESS, 5);
	hang_up();
	end_shared();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limit__no_receive_in_time__terminate,
						open_impatient, close_stage),
		cmocka_unit_test_setup_teardown(
			limit__no_memory_for_the_first__next_has_its_own_time, open_impatient,
			close_stage),
		TEST(flood__another_connection__goes_on),
		TEST(srq__unfinished_segments__take_no_buffer),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
