// SPDX-License-Identifier: BSD-2-Clause
/*
 * Long messages that one engine of ours announces to another: several payloads are read in one
 * system call, before their headers are known. A peer may also break its word.
 */
#include "flow_stage.h"

#include <pthread.h>
#include <stdatomic.h>

#define LONG 4u
#define SIZE 4096u     /* of a segment, the smallest that is read straight into its target */
#define CRC_SIZE 16384 /* the same with the CRC on */
#define FIRST 100u     /* bytes of the first FPDU that come before the rest */
#define STREAM (REGION + 8192u)

static const struct iw_ddp rtr = {
	.is_tagged = true, .is_last = true, .opcode = IW_OP_WRITE, .stag = 1};

/* --- one system call at a time --- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: nothing is read */
static _Atomic size_t largest; /* bytes that one call has read into the region */

ssize_t __real_iw_socket_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_recvmsg(int fd, struct msghdr *message, int flags);

static size_t part_in_region(const struct iovec *iov, size_t left)
{
	const uint8_t *at = iov->iov_base;
	size_t part = iov->iov_len < left ? iov->iov_len : left;

	return at >= flow.bytes && at < flow.bytes + sizeof(flow.bytes) ? part : 0;
}

ssize_t __wrap_iw_socket_recvmsg(int fd, struct msghdr *message, int flags)
{
	size_t sum = 0, left;
	ssize_t count;

	assert_int_equal(pthread_mutex_lock(&gate), 0);
	count = __real_iw_socket_recvmsg(fd, message, flags);
	left = count > 0 ? (size_t)count : 0;
	for (size_t i = 0; i < message->msg_iovlen && left; i++) {
		const struct iovec *iov = &message->msg_iov[i];

		sum += part_in_region(iov, left);
		left -= iov->iov_len < left ? iov->iov_len : left;
	}
	if (sum > atomic_load(&largest))
		atomic_store(&largest, sum);
	assert_int_equal(pthread_mutex_unlock(&gate), 0);
	return count;
}

/* --- the stream of the peer --- */

static uint8_t payload[REGION];

static struct stream {
	uint8_t bytes[STREAM];
	size_t size;
	size_t first;	   /* where the FPDU behind the announcement begins */
	size_t border[64]; /* the ends of the FPDUs */
	unsigned count;
} stream;

static void add_fpdu(const struct fpdu *fpdu)
{
	assert_true(stream.size + fpdu->size <= sizeof(stream.bytes));
	memcpy(stream.bytes + stream.size, fpdu->bytes, fpdu->size);
	stream.size += fpdu->size;
	stream.border[stream.count++] = stream.size;
}

static void add_segment(const struct iw_ddp *ddp, const void *bytes, size_t size)
{
	struct fpdu fpdu;

	make_fpdu(&fpdu, ddp, bytes, size);
	add_fpdu(&fpdu);
}

static void announce(uint64_t count)
{
	const struct iw_ddp ddp = {.is_tagged = true,
				   .is_last = true,
				   .opcode = IW_OP_WRITE,
				   .stag = LONG,
				   .offset = count};

	stream.size = stream.count = 0;
	add_segment(&ddp, payload, 0);
	stream.first = stream.size;
}

static struct iw_ddp header(bool is_write, size_t at, bool is_last)
{
	if (!is_write)
		return send_header((uint32_t)at, is_last);
	return (struct iw_ddp){.is_tagged = true,
			       .is_last = is_last,
			       .opcode = IW_OP_WRITE,
			       .stag = flow.rkey,
			       .offset = address_of(flow.region) + at};
}

/* Segments of `size` bytes, as many as were announced, then the last one, and an empty Send. */
static void add_message(bool is_write, unsigned count, uint32_t size, size_t last)
{
	struct iw_ddp ddp;

	for (unsigned i = 0; i < count; i++) {
		ddp = header(is_write, i * size, false);
		add_segment(&ddp, payload + i * size, size);
	}
	ddp = header(is_write, count * size, true);
	add_segment(&ddp, payload + count * size, last);
	ddp = send_header(0, true);
	add_segment(&ddp, payload, 0);
}

static void be_established(uint8_t flags)
{
	make_pattern(payload, sizeof(payload));
	be_called_by_own(flags);
	put_segment(&rtr, NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	atomic_store(&largest, 0);
}

/* Sends the bytes up to `end`, which are read by one call if there is room for them. */
static void put_until(size_t *at, size_t end)
{
	if (end <= *at)
		return;
	assert_int_equal(pthread_mutex_lock(&gate), 0);
	put(flow.fd, stream.bytes + *at, end - *at);
	assert_int_equal(pthread_mutex_unlock(&gate), 0);
	expect_served();
	*at = end;
}

/* An FPDU begins alone, so that the rest of its payload is read straight into its target. With the
 * CRC on it is the second one: the first of a message is not. */
static size_t put_first(void)
{
	size_t at = 0;

	put_until(&at, (flow.has_crc ? stream.border[1] : stream.first) + FIRST);
	return at;
}

static void put_all(void)
{
	size_t at = put_first();

	put_until(&at, stream.size);
}

static void expect_message(bool is_write, size_t size)
{
	if (!is_write)
		expect_dto(0, DAT_DTO_SUCCESS, size);
	expect_dto(REGION, DAT_DTO_SUCCESS, 0);
	expect_pattern(flow.region, size);
	expect_untouched(flow.region + size, REGION - size);
	expect_guards();
	fill_memory();
}

static void post_receives(bool is_write, size_t size)
{
	if (!is_write)
		post_recv_at(0, size);
	post_recv_at(REGION, 0);
}

/* --- as announced --- */

/* DDP-18: one system call takes the payloads of four segments to their places */
static void announced__all_there__read_by_few_calls(void **state)
{
	(void)state;
	be_established(0);
	for (int is_write = 0; is_write < 2; is_write++) {
		post_receives(is_write, 9 * SIZE + 5);
		announce(9);
		add_message(is_write, 9, SIZE, 5);
		atomic_store(&largest, 0);
		put_all();
		expect_message(is_write, 9 * SIZE + 5);
		assert_true(atomic_load(&largest) > 3 * SIZE + SIZE / 2);
	}
	hang_up();
}

/* Sends the message in two parts: the second begins `shift` bytes behind the end of an FPDU. */
static void try_cut(bool is_write, uint32_t size, unsigned fpdu, int shift)
{
	const size_t whole = 5 * size + 1000;
	size_t at;

	post_receives(is_write, whole);
	announce(5);
	add_message(is_write, 5, size, 1000);
	at = put_first();
	put_until(&at, stream.border[fpdu] + (size_t)shift);
	put_until(&at, stream.size);
	expect_message(is_write, whole);
}

/* MPA-53 DDP-18: the stream may be cut anywhere around a header */
static void announced__cut_around_each_header__the_same(void **state)
{
	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_established(has_crc ? FLAG_C : 0);
		for (unsigned fpdu = 1; fpdu < 5; fpdu++)
			for (int shift = -9; shift < 24; shift++)
				for (int is_write = 0; is_write < 2; is_write++)
					try_cut(is_write, has_crc ? CRC_SIZE : SIZE, fpdu, shift);
		hang_up();
	}
}

/* DDP-18: the Receive has several segments, so that each payload goes to several places */
static void announced__receive_in_pieces__the_same(void **state)
{
	DAT_LMR_TRIPLET segments[3] = {segment_at(0, 5000), segment_at(5000, 3000),
				       segment_at(8000, 20000)};
	DAT_DTO_COOKIE cookie = {.as_64 = 0};

	(void)state;
	be_established(0);
	ok(core_ep_post_recv(flow.ep, 3, segments, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	post_recv_at(REGION, 0);
	announce(5);
	add_message(false, 5, SIZE, 700);
	put_all();
	expect_message(false, 5 * SIZE + 700);
	hang_up();
}

/* DTO-117: the message waits for its Receive, and is complete when that comes */
static void announced__no_receive_yet__placed_later(void **state)
{
	(void)state;
	be_established(0);
	announce(3);
	add_message(false, 3, SIZE, 1);
	put_all();
	post_receives(false, REGION);
	expect_message(false, 3 * SIZE + 1);
	hang_up();
}

/* Polls until a message has come. */
static void poll_for_message(void)
{
	DAT_EVENT event;

	while (core_evd_dequeue(stage.evd, &event) != DAT_SUCCESS)
		;
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* --- a peer that breaks its word --- */

/* The peer gives up behind some segments of what it has announced. */
static void give_up(bool is_write, unsigned after, size_t cut)
{
	static const uint8_t terminate[] = {0x10, 0x00, 0x00, 0x00};
	const uint32_t size = flow.has_crc ? CRC_SIZE : SIZE;
	const struct iw_ddp last = {
		.is_last = true, .opcode = IW_OP_TERMINATE, .queue = IW_QUEUE_TERMINATE, .msn = 1};
	size_t at;

	announce(8);
	for (unsigned i = 0; i < after; i++) {
		struct iw_ddp ddp = header(is_write, i * size, false);

		add_segment(&ddp, payload + i * size, size);
	}
	add_segment(&last, terminate, sizeof(terminate));
	at = put_first();
	put_until(&at, stream.size - cut);
	put_until(&at, stream.size);
}

/* TERM-12 DDP-10: a peer that gives up sends a Terminate in place of a segment */
static void announced__terminate_in_between__judged(void **state)
{
	static const uint8_t flags[] = {0, FLAG_C};
	const size_t terminate = 2 + 18 + 4 + 4;

	(void)state;
	for (unsigned i = 0; i < 2 * COUNT_OF(flags); i++) {
		for (unsigned after = 2; after < 5; after++) {
			for (size_t cut = 0; cut < terminate; cut += 3) {
				be_established(flags[i / 2]);
				post_recv_at(0, REGION);
				give_up(i & 1, after, cut);
				expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
				expect(DAT_CONNECTION_EVENT_BROKEN);
				end_flow();
				fill_memory();
			}
		}
	}
}

/* DDP-26 LMR-FREE-07: the region is freed between two calls that read the message */
static void announced__region_freed__later_bytes_refused(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT plain = flow.rkey;
	DAT_LMR_HANDLE lmr;
	size_t at;

	(void)state;
	be_established(0);
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &flow.rkey, NULL, NULL));
	announce(8);
	add_message(true, 8, SIZE, 100);
	at = put_first();
	put_until(&at, stream.border[2] + SIZE / 2);
	ok(core_lmr_free(lmr));
	put_until(&at, stream.size);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 1, 0), NULL);
	expect_untouched(flow.region + 3 * SIZE, REGION - 3 * SIZE);
	flow.rkey = plain;
	end_flow();
}

/* A thread of the consumer that polls reads the messages itself. */
static void announced__thread_polls__the_same(void **state)
{
	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		const uint32_t size = has_crc ? CRC_SIZE : SIZE;

		be_established(has_crc ? FLAG_C : 0);
		for (int is_write = 0; is_write < 2; is_write++) {
			size_t whole = 5 * size + 1000;

			for (unsigned i = 0; i < 50; i++) {
				post_receives(is_write, whole);
				announce(5);
				add_message(is_write, 5, size, 1000);
				put(flow.fd, stream.bytes, stream.size);
				if (!is_write)
					poll_for_message();
				poll_for_message();
				expect_pattern(flow.region, whole);
				expect_untouched(flow.region + whole, REGION - whole);
				expect_guards();
				fill_memory();
			}
		}
		hang_up();
	}
}

/* IWCM-31: the peer ends its direction between two announced segments, or within one */
static void announced__end_of_stream__as_without(void **state)
{
	(void)state;
	for (int within = 0; within < 2; within++) {
		size_t at;

		be_established(0);
		post_recv_at(0, REGION);
		announce(8);
		add_message(false, 8, SIZE, 100);
		at = put_first();
		assert_int_equal(pthread_mutex_lock(&gate), 0);
		put(flow.fd, stream.bytes + at, stream.border[3] - at + (within ? 30 : 0));
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		assert_int_equal(pthread_mutex_unlock(&gate), 0);
		expect_dto(0, within ? DAT_DTO_ERR_TRANSPORT : DAT_DTO_ERR_FLUSHED, 0);
		expect(within ? DAT_CONNECTION_EVENT_BROKEN : DAT_CONNECTION_EVENT_DISCONNECTED);
		end_flow();
	}
}

/* The message ends, or goes on in another way, before it should: nothing is lost. */
static void announced__another_segment__judged(void **state)
{
	(void)state;
	be_established(0);
	for (uint32_t last = 1; last < SIZE; last += 1021) {
		struct iw_ddp ddp;

		post_recv_at(0, REGION);
		announce(8);
		ddp = send_header(0, false);
		add_segment(&ddp, payload, SIZE);
		ddp = send_header(SIZE, true);
		add_segment(&ddp, payload + SIZE, last);
		put_all();
		expect_dto(0, DAT_DTO_SUCCESS, SIZE + last);
		expect_pattern(flow.region, SIZE + last);
		expect_guards();
	}
	/* the next message is no longer announced, or not in this way */
	post_receives(false, REGION);
	announce(0);
	add_message(false, 4, SIZE, 9);
	put_all();
	expect_dto(0, DAT_DTO_SUCCESS, 4 * SIZE + 9);
	expect_dto(REGION, DAT_DTO_SUCCESS, 0);
	expect_pattern(flow.region, 4 * SIZE + 9);
	hang_up();
}

/* More follows than can be put in order: the connection ends, and nothing else is touched. */
static void announced__much_behind_another_segment__breaks(void **state)
{
	struct iw_ddp ddp;

	(void)state;
	be_established(0);
	post_recv_at(0, REGION);
	announce(8);
	ddp = send_header(0, false);
	add_segment(&ddp, payload, SIZE);
	for (unsigned i = 0; i < 3; i++) {
		ddp = send_header(SIZE + i * (SIZE - 4), false);
		add_segment(&ddp, payload, SIZE - 4);
	}
	put_all();
	expect_dto(0, DAT_DTO_ERR_BAD_RESPONSE, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 0, 0), NULL);
	expect_guards();
	end_flow();
}

/* DDP-21 TERM-24: the region ends within what was announced */
static void announced__region_ends__refused_there(void **state)
{
	struct iw_ddp ddp = {.is_tagged = true,
			     .opcode = IW_OP_WRITE,
			     .stag = flow.rkey,
			     .offset = address_of(flow.region) + REGION - 2 * SIZE};

	(void)state;
	be_established(0);
	announce(3);
	for (unsigned i = 0; i < 3; i++) {
		add_segment(&ddp, payload, SIZE);
		ddp.offset += SIZE;
	}
	put_all();
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 1, 1), NULL);
	expect_untouched(flow.region, REGION - 2 * SIZE);
	expect_guards();
	end_flow();
}

/* DDP-15 DTO-79: the Receive ends within what was announced */
static void announced__receive_ends__local_length(void **state)
{
	(void)state;
	be_established(0);
	post_recv_at(0, 3 * SIZE - 1);
	announce(7);
	add_message(false, 7, SIZE, 1);
	put_all();
	expect_dto(0, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 2, 5), NULL);
	expect_untouched(flow.region + 3 * SIZE - 1, REGION - 3 * SIZE + 1);
	expect_guards();
	end_flow();
}

/* MPA-51: each CRC is verified, and the Receive does not complete */
static void announced__byte_damaged__crc_error(void **state)
{
	static const size_t where[] = {5, CRC_SIZE / 2, CRC_SIZE + 21, CRC_SIZE + 50};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(where); i++) {
		be_established(FLAG_C);
		post_receives(false, REGION);
		announce(4);
		add_message(false, 4, CRC_SIZE, 10);
		/* in the third or the fourth FPDU, which are read with the second */
		stream.bytes[stream.border[2] + where[i]] ^= 0x10;
		put_all();
		expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
		expect_dto(REGION, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(2, 0, 2), NULL);
		expect_guards();
		end_flow();
	}
}

/* Any number may be announced, and any message may follow. */
static void announced__nonsense__no_harm(void **state)
{
	static const uint64_t counts[] = {0, 1, UINT32_MAX, UINT64_MAX, (uint64_t)1 << 52};

	(void)state;
	be_established(0);
	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		for (int is_write = 0; is_write < 2; is_write++) {
			post_receives(is_write, 2 * SIZE + 1);
			announce(counts[i]);
			add_message(is_write, 2, SIZE, 1);
			put_first();
			put(flow.fd, stream.bytes + stream.first + FIRST,
			    stream.border[2] - stream.first - FIRST);
			expect_served();
			put(flow.fd, stream.bytes + stream.border[2],
			    stream.size - stream.border[2]);
			expect_message(is_write, 2 * SIZE + 1);
		}
	}
	hang_up();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(announced__all_there__read_by_few_calls),
		TEST(announced__cut_around_each_header__the_same),
		TEST(announced__receive_in_pieces__the_same),
		TEST(announced__no_receive_yet__placed_later),
		TEST(announced__terminate_in_between__judged),
		TEST(announced__region_freed__later_bytes_refused),
		TEST(announced__thread_polls__the_same),
		TEST(announced__end_of_stream__as_without),
		TEST(announced__another_segment__judged),
		TEST(announced__much_behind_another_segment__breaks),
		TEST(announced__region_ends__refused_there),
		TEST(announced__receive_ends__local_length),
		TEST(announced__byte_damaged__crc_error),
		TEST(announced__nonsense__no_harm),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
