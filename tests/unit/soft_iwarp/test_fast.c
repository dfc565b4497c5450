// SPDX-License-Identifier: BSD-2-Clause
/*
 * Small messages between two of ours, which both have a fast path (transfer/pass.h): posts of the
 * consumer, and polls of a thread of the consumer, which alone reads the socket here.
 */
#include "flow_stage.h"

#include <stdatomic.h>

#include "soft/copy.h"
#include "soft/iwarp/transfer/frame.h"

#define SIZE 64u

/* --- the socket --- */

#define NO_LIMIT SIZE_MAX
static _Atomic size_t send_limit = NO_LIMIT; /* of one call; those behind it take nothing */
static _Atomic bool is_library_deaf;	     /* its threads find nothing in the socket */
static _Atomic bool is_recording;	     /* what is sent goes to `recorded` alone */
static struct {
	uint8_t bytes[2u * 1024u * 1024u];
	_Atomic size_t size;
} recorded;		       /* by a thread that holds the connection's lock */
static _Atomic int recv_errno; /* of the next call of another thread; 0: none */

static ssize_t record(const struct msghdr *message)
{
	const size_t before = recorded.size;
	size_t size = before;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *iov = &message->msg_iov[i];

		assert_true(iov->iov_len <= sizeof(recorded.bytes) - size);
		memcpy(recorded.bytes + size, iov->iov_base, iov->iov_len);
		size += iov->iov_len;
	}
	recorded.size = size;
	return (ssize_t)(size - before);
}

ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t limit = atomic_load(&send_limit);
	struct iovec first = message->msg_iov[0];
	const struct msghdr beginning = {.msg_iov = &first, .msg_iovlen = 1};

	if (atomic_load(&is_recording))
		return record(message);
	if (limit == NO_LIMIT)
		return __real_iw_socket_sendmsg(fd, message, flags);
	if (!limit) {
		errno = EAGAIN;
		return -1;
	}
	atomic_store(&send_limit, 0);
	if (first.iov_len > limit)
		first.iov_len = limit;
	return __real_iw_socket_sendmsg(fd, &beginning, flags);
}

ssize_t __real_iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
	bool is_deaf = soft_is_library_thread && atomic_load(&is_library_deaf);
	int error = is_deaf ? EAGAIN : 0;

	if (!soft_is_library_thread)
		error = atomic_exchange(&recv_errno, 0);
	if (!error)
		return __real_iw_socket_recv(fd, buffer, size, flags);
	if (is_deaf) /* epoll reports the socket at once again: leave the processor to the poller */
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	errno = error;
	return -1;
}

/* --- the stage --- */

static int open_fast(void **state)
{
	atomic_store(&send_limit, NO_LIMIT);
	atomic_store(&is_library_deaf, false);
	atomic_store(&recv_errno, 0);
	atomic_store(&is_recording, false);
	recorded.size = 0;
	return open_sleepy(state);
}

/* An established connection to a peer of ours, on which the endpoint has sent once. */
static void begin_fast(uint8_t flags)
{
	struct taken taken;

	be_called_by_own(flags);
	peer_write(1, 0, NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	make_pattern(flow.region, REGION);
	post_send_at(0, SIZE, 0);
	get_fpdu(&taken);
	peer_counts(1, 0);
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
}

static void end_fast(void)
{
	atomic_store(&is_library_deaf, false);
	fill_memory();
	hang_up();
}

static void end_broken(void)
{
	atomic_store(&is_library_deaf, false);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	fill_memory();
	end_flow();
}

/* --- posts --- */

/* The fast path of the core is for the thread that the endpoint's lock is biased to. */
static void post_fast(size_t offset, size_t size, DAT_COMPLETION_FLAGS flags)
{
	struct core_lock *lock = &((struct core_handle *)flow.ep)->lock;

	for (unsigned i = 0; i < 1000000 && !core_lock_try(lock); i++) {
		core_lock_acquire(lock);
		core_lock_release(lock);
	}
	core_lock_leave(lock);
	post_send_at(offset, size, flags);
}

/* Takes a Send off the wire, and counts it. */
static void get_send(size_t offset, size_t size, uint8_t opcode, uint32_t msn)
{
	struct taken taken;

	get_fpdu(&taken);
	assert_false(taken.ddp.is_tagged);
	assert_true(taken.ddp.is_last);
	assert_int_equal(taken.ddp.opcode, opcode);
	assert_int_equal(taken.ddp.queue, IW_QUEUE_SEND);
	assert_int_equal(taken.ddp.msn, msn);
	assert_int_equal(taken.ddp.mo, 0);
	assert_int_equal(taken.size, size);
	assert_memory_equal(taken.payload, flow.region + offset, size);
	peer_counts(1, 0);
}

/* MPA-47 DDP-08 RDMAP-11 EP-SEND-22: with and without a CRC, up to the largest and one more, and
 * more of them than the buffer has room for */
static void post__small_sends__right(void **state)
{
	const size_t large = IW_DIRECT_MIN - 1;

	(void)state;
	for (unsigned has_crc = 0; has_crc < 2; has_crc++) {
		uint32_t msn = 2;

		begin_fast(has_crc ? FLAG_C : 0);
		post_fast(1, 1, 0);
		get_send(1, 1, IW_OP_SEND, msn++);
		expect_dto(1, DAT_DTO_SUCCESS, 1);
		post_fast(7, SIZE, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
		get_send(7, SIZE, IW_OP_SEND_SOLICITED, msn++);
		expect_dto(7, DAT_DTO_SUCCESS, SIZE);
		for (unsigned i = 0; i < 2 * IW_TX_SIZE / IW_DIRECT_MIN; i++) {
			post_fast(9, large, DAT_COMPLETION_SUPPRESS_FLAG);
			get_send(9, large, IW_OP_SEND, msn++);
		}
		post_fast(11, IW_DIRECT_MIN, 0);
		get_send(11, IW_DIRECT_MIN, IW_OP_SEND, msn);
		expect_dto(11, DAT_DTO_SUCCESS, IW_DIRECT_MIN);
		end_fast();
	}
}

/* DTO-30 DTO-37: behind a Read in flight a fenced Send waits, and so does what follows it */
static void post__fence_behind_a_read__waits(void **state)
{
	struct iw_read_request request;

	(void)state;
	begin_fast(0);
	post_read_at(4096, SIZE, 77, 0, 0);
	request = get_read_request();
	post_fast(1, SIZE, 0);
	get_send(1, SIZE, IW_OP_SEND, 2);
	post_fast(2, SIZE, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	post_fast(3, SIZE, 0);
	expect_served();
	expect_quiet(stage.evd);
	expect_silence(flow.fd);
	peer_respond(request.sink_stag, 0, flow.region + 4096, SIZE, true);
	get_send(2, SIZE, IW_OP_SEND, 3);
	get_send(3, SIZE, IW_OP_SEND, 4);
	expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
	for (size_t i = 1; i <= 3; i++)
		expect_dto(i, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/* MPA-59 DTO-34 DTO-37: TCP takes nothing, or a part; the rest goes on by itself */
static void post__tcp_takes_a_part__rest_follows(void **state)
{
	static const size_t limits[] = {0, 1, 30, SIZE};

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(limits); i++) {
		const bool is_alone = i & 1;

		begin_fast(0);
		atomic_store(&send_limit, limits[i / 2]);
		post_fast(1, SIZE, 0);
		if (!is_alone)
			post_fast(2, SIZE, 0);
		expect_quiet(stage.evd);
		atomic_store(&send_limit, NO_LIMIT);
		get_send(1, SIZE, IW_OP_SEND, 2);
		expect_dto(1, DAT_DTO_SUCCESS, SIZE);
		if (!is_alone) {
			get_send(2, SIZE, IW_OP_SEND, 3);
			expect_dto(2, DAT_DTO_SUCCESS, SIZE);
		}
		end_fast();
	}
}

/* --- polls --- */

/* The next completion of this thread's polls is that of a Receive. */
static void poll_dto(size_t offset, DAT_DTO_COMPLETION_STATUS status, size_t size)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	uint64_t give_up = now_ms() + WAIT_MS;
	DAT_EVENT event;

	while (core_evd_dequeue(stage.evd, &event) != DAT_SUCCESS)
		assert_true(now_ms() < give_up);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	assert_int_equal(dto->user_cookie.as_64, offset);
	assert_int_equal(dto->status, status);
	if (status == DAT_DTO_SUCCESS)
		assert_int_equal(dto->transfered_length, size);
}

/* From now on only this thread reads, when it polls. */
static void begin_polls(uint8_t flags)
{
	begin_fast(flags);
	atomic_store(&is_library_deaf, true);
	/* the connection is left to it before it can take this message */
	post_recv_at(0, SIZE);
	peer_send(flow.region, SIZE);
	poll_dto(0, DAT_DTO_SUCCESS, SIZE);
}

/*
 * DDP-10: no Send comes between the segments of a Read Response. A pass that answers Reads has used
 * up what it may send, in the middle of the fifth Response, and TCP has taken all of it.
 */
static void post__response_has_begun__follows_it(void **state)
{
	const struct iw_read_request request = {.size = REGION - 7,
						.source_stag = flow.rkey,
						.source_offset = address_of(flow.region)};
	uint32_t offset = 0, sends = 0;
	struct iw_ddp ddp;

	(void)state;
	begin_polls(0);
	atomic_store(&is_recording, true);
	for (unsigned i = 0; i < 5; i++)
		peer_read(&request);
	expect_served();
	while (recorded.size < 4 * REGION)
		expect_quiet(stage.evd);
	post_fast(1, SIZE, DAT_COMPLETION_SUPPRESS_FLAG);
	while (recorded.size < 5 * (REGION - 7))
		expect_quiet(stage.evd);
	for (size_t at = 0; at < recorded.size; at += iw_fpdu_size(be_get16(recorded.bytes + at))) {
		const uint8_t *fpdu = recorded.bytes + at;

		assert_int_equal(iw_ddp_get(fpdu + 2, be_get16(fpdu), &ddp), IW_NO_ERROR);
		assert_true(ddp.opcode == IW_OP_READ_RESPONSE || !offset);
		sends += ddp.opcode == IW_OP_SEND;
		if (ddp.opcode == IW_OP_READ_RESPONSE)
			offset = ddp.is_last ? 0 : 1;
	}
	assert_int_equal(sends, 1);
	atomic_store(&is_recording, false);
	peer_counts(1, 0);
	end_fast();
}

/* RDMAP-37 MPA-53 DDP-28 DTO-35: one message, and several that one call reads; then they are counted */
static void poll__whole_messages__delivered(void **state)
{
	(void)state;
	for (unsigned has_crc = 0; has_crc < 2; has_crc++) {
		begin_polls(has_crc ? FLAG_C : 0);
		for (unsigned round = 1; round <= 4; round++) {
			for (size_t n = 0; n < round; n++) {
				memset(flow.region + 8192 + n * SIZE, 0, SIZE);
				post_recv_at(8192 + n * SIZE, SIZE);
			}
			for (size_t n = 0; n < round; n++)
				peer_send(flow.region, SIZE);
			for (size_t n = 0; n < round; n++) {
				poll_dto(8192 + n * SIZE, DAT_DTO_SUCCESS, SIZE);
				expect_pattern(flow.region + 8192 + n * SIZE, SIZE);
			}
		}
		for (uint64_t give_up = now_ms() + WAIT_MS; flow.counts >> 32 < 11;) {
			struct pollfd ready = {.fd = flow.fd, .events = POLLIN};
			struct taken taken;

			assert_true(now_ms() < give_up);
			expect_quiet(stage.evd);
			if (!poll(&ready, 1, 0))
				continue;
			get_any_fpdu(&taken);
			assert_int_equal(taken.ddp.stag, COUNTS);
			flow.counts = taken.ddp.offset;
		}
		end_fast();
	}
}

/* DDP-13 DDP-14 DDP-15 RDMAP-06 MPA-51 DTO-79: the number, the offset, the queue, the length, the
 * CRC; nothing is placed */
static void poll__invalid_message__refused(void **state)
{
	static const struct {
		struct iw_ddp ddp;
		bool is_long, is_damaged;
		DAT_DTO_COMPLETION_STATUS status;
		iw_error error;
	} odds[] = {
		{{.is_last = true, .msn = 3}, false, false, DAT_DTO_ERR_FLUSHED, 0x1203},
		{{.is_last = true, .msn = 2, .mo = 4}, false, false, DAT_DTO_ERR_FLUSHED, 0x1204},
		{{.is_last = true, .msn = 2, .queue = 1},
		 false,
		 false,
		 DAT_DTO_ERR_FLUSHED,
		 0x1201},
		{{.is_last = true, .msn = 2}, true, false, DAT_DTO_ERR_LOCAL_LENGTH, 0x1205},
		{{.is_last = true, .msn = 2}, false, true, DAT_DTO_ERR_FLUSHED, 0x2002},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(odds); i++) {
		struct iw_ddp ddp = odds[i].ddp;
		struct fpdu fpdu;

		begin_polls(odds[i].is_damaged ? FLAG_C : 0);
		post_recv_at(0, SIZE);
		ddp.opcode = IW_OP_SEND;
		make_fpdu(&fpdu, &ddp, flow.region + 1, SIZE + odds[i].is_long);
		fpdu.bytes[fpdu.size - 1] ^= odds[i].is_damaged;
		put_fpdu(&fpdu);
		poll_dto(0, odds[i].status, 0);
		expect_pattern(flow.region, 2 * SIZE);
		expect_terminate(odds[i].error, NULL);
		end_broken();
	}
}

/* DDP-14: a message of two segments, of which the second has the offset of a whole one */
static void poll__second_segment__not_taken_for_a_message(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 2};

	(void)state;
	begin_polls(0);
	post_recv_at(0, 2 * SIZE);
	put_segment(&ddp, flow.region, SIZE);
	expect_quiet(stage.evd);
	ddp.is_last = true;
	put_segment(&ddp, flow.region, SIZE);
	poll_dto(0, DAT_DTO_ERR_BAD_RESPONSE, 0);
	expect_terminate(IW_ERROR(1, 2, 4), NULL);
	end_broken();
}

/* EP-SEND-03 EP-RECV-03 DTO-104 SRQ-USE-02: an empty message; one into several segments; one
 * without a Receive */
static void poll__what_needs_the_slow_path__delivered(void **state)
{
	DAT_LMR_TRIPLET segments[] = {segment_at(4096, 10), segment_at(8192, SIZE - 10)};

	(void)state;
	begin_polls(0);
	post_recv_at(0, SIZE);
	peer_send(NULL, 0);
	poll_dto(0, DAT_DTO_SUCCESS, 0);
	memset(flow.region + 8192, 0, SIZE);
	ok(core_ep_post_recv(flow.ep, 2, segments, (DAT_DTO_COOKIE){.as_64 = 3}, 0));
	peer_send(flow.region, SIZE);
	poll_dto(3, DAT_DTO_SUCCESS, SIZE);
	assert_memory_equal(flow.region + 8192, flow.region + 10, SIZE - 10);
	/* the queue has old Receives in all slots */
	for (unsigned i = 0; i < 16; i++) {
		post_recv_at(4096, SIZE);
		peer_send(flow.region, SIZE);
		poll_dto(4096, DAT_DTO_SUCCESS, SIZE);
	}
	peer_send(flow.region, SIZE);
	expect_quiet(stage.evd);
	post_recv_at(8192, SIZE);
	poll_dto(8192, DAT_DTO_SUCCESS, SIZE);
	expect_pattern(flow.region + 8192, SIZE);
	end_fast();
}

static void poll__shared_receives__delivered(void **state)
{
	(void)state;
	begin_shared();
	begin_fast(0);
	atomic_store(&is_library_deaf, true);
	for (unsigned i = 0; i < 3; i++) {
		post_shared(SIZE);
		peer_send(flow.region, SIZE);
		poll_dto(0, DAT_DTO_SUCCESS, SIZE);
	}
	end_fast();
	end_shared();
}

/* MPA-53: one message is there, and a part of the next one */
static void poll__part_of_an_fpdu__rest_follows(void **state)
{
	const size_t size = IW_FPDU_HEAD + IW_UNTAGGED_HEAD + SIZE + IW_FPDU_CRC;

	(void)state;
	begin_polls(0);
	for (size_t part = 1; part < size; part++) {
		struct iw_ddp ddp;
		struct fpdu fpdu;

		post_recv_at(4096, SIZE);
		post_recv_at(8192, SIZE);
		memset(flow.region + 8192, 0, SIZE);
		peer_send(flow.region, SIZE);
		ddp = send_header(0, true);
		make_fpdu(&fpdu, &ddp, flow.region, SIZE);
		put(flow.fd, fpdu.bytes, part);
		poll_dto(4096, DAT_DTO_SUCCESS, SIZE);
		expect_quiet(stage.evd);
		put(flow.fd, fpdu.bytes + part, size - part);
		poll_dto(8192, DAT_DTO_SUCCESS, SIZE);
		expect_pattern(flow.region + 8192, SIZE);
	}
	end_fast();
}

/* IWCM-30 IWCM-32 IWCM-37: a signal, no memory for a while, then what has come; at last an error,
 * which the kernel tells once, or the end */
static void poll__reads_that_fail__each_in_its_way(void **state)
{
	static const int harmless[] = {EINTR, ENOMEM, ENOBUFS};

	(void)state;
	for (unsigned is_error = 0; is_error < 2; is_error++) {
		uint64_t give_up = now_ms() + WAIT_MS;
		DAT_EVENT event;

		begin_polls(0);
		for (size_t i = 0; i < COUNT_OF(harmless); i++) {
			post_recv_at(0, SIZE);
			atomic_store(&recv_errno, harmless[i]);
			peer_send(flow.region, SIZE);
			poll_dto(0, DAT_DTO_SUCCESS, SIZE);
			assert_int_equal(atomic_load(&recv_errno), 0);
		}
		if (is_error) {
			atomic_store(&recv_errno, EIO);
			peer_send(flow.region, SIZE); /* an event, if the polls had paused */
		} else {
			assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		}
		while (core_evd_dequeue(stage.evd, &event) != DAT_SUCCESS)
			assert_true(now_ms() < give_up);
		assert_int_equal(event.event_number, is_error ? DAT_CONNECTION_EVENT_BROKEN
							      : DAT_CONNECTION_EVENT_DISCONNECTED);
		atomic_store(&is_library_deaf, false);
		fill_memory();
		end_flow();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fast, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(post__small_sends__right),
		TEST(post__fence_behind_a_read__waits),
		TEST(post__tcp_takes_a_part__rest_follows),
		TEST(post__response_has_begun__follows_it),
		TEST(poll__whole_messages__delivered),
		TEST(poll__invalid_message__refused),
		TEST(poll__second_segment__not_taken_for_a_message),
		TEST(poll__what_needs_the_slow_path__delivered),
		TEST(poll__shared_receives__delivered),
		TEST(poll__part_of_an_fpdu__rest_follows),
		TEST(poll__reads_that_fail__each_in_its_way),
	};

	return cmocka_run_group_tests_name("iwarp fast", tests, provide, NULL);
}
