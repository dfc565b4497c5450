// SPDX-License-Identifier: BSD-2-Clause
/* What the library sends: requests of the consumer, answers to the peer. */
#include "flow_stage.h"

#include <netinet/tcp.h>

#include "core/base/clock.h"
#include "core/base/log.h"

/* How far the clock of the library is ahead of the real one. Linked with --wrap=clock_gettime. */
static _Atomic uint64_t ahead_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	uint64_t ns = clock == CLOCK_MONOTONIC ? ahead_ns : 0;

	ns += (uint64_t)now->tv_sec * UINT64_C(1000000000) + (uint64_t)now->tv_nsec;
	*now = core_timespec(ns);
	return rc;
}

/* How often the log of the library had that text. Linked with --wrap=core_log. */
#define WAIT_TEXT "requests wait for the first message of the peer"
static _Atomic unsigned waits_logged;

void __wrap_core_log(unsigned int kinds, const char *format, ...);

void __wrap_core_log(unsigned int kinds, const char *format, ...)
{
	if (strstr(format, WAIT_TEXT)) {
		assert_int_equal(kinds, CORE_LOG_CONN | CORE_LOG_ERROR | CORE_LOG_WARNING);
		waits_logged++;
	}
}

/* Posts an unbind, which is a request without bytes on the wire. */
static void post_bind(DAT_RMR_HANDLE rmr)
{
	DAT_LMR_TRIPLET triplet = segment_at(0, 64);
	DAT_RMR_COOKIE cookie = {.as_64 = 77};
	DAT_RMR_CONTEXT context;

	ok(core_rmr_bind(rmr, &triplet, DAT_MEM_PRIV_REMOTE_READ_FLAG, flow.ep, cookie,
			 DAT_COMPLETION_DEFAULT_FLAG, &context));
}

/* MPA-18 RDMAP-31: what waits for the first FPDU; a bind behind a Send is not forgotten */
static void responder__silent_initiator__all_waits_for_the_first_fpdu(void **state)
{
	struct taken taken;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	(void)state;
	be_called(0);
	ok(core_rmr_create(stage.pz, &rmr));
	for (size_t i = 0; i < 10; i++)
		post_send_at(i * 10, 10, 0);
	post_bind(rmr);
	expect_served();
	expect_silence(flow.fd);
	peer_write(0, 0, NULL, 0);
	for (size_t i = 0; i < 10; i++) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
		assert_int_equal(taken.ddp.msn, i + 1);
		expect_dto(i * 10, DAT_DTO_SUCCESS, 10);
	}
	event = next_of(stage.evd);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	hang_up();
	ok(core_rmr_free(rmr));
}

#define SECOND_NS UINT64_C(1000000000)

/* The service thread makes a pass so much later, because the peer has sent a byte of an FPDU. */
static void pass_after(uint64_t ns, uint8_t byte)
{
	ahead_ns += ns;
	put(flow.fd, &byte, 1);
	expect_served();
}

/* MPA-61: one line for each connection, also without a pass for another reason */
static void responder__waits_for_the_first_fpdu__logged_after_a_second(void **state)
{
	(void)state;
	for (unsigned is_woken = 0; is_woken < 2; is_woken++) {
		uint64_t begin;
		unsigned polls = 0;

		waits_logged = 0;
		be_called(0);
		pass_after(2 * SECOND_NS, rtr_write[0]); /* nothing waits */
		begin = core_now_ns();
		post_send_at(0, 10, 0);
		pass_after(SECOND_NS / 2, rtr_write[1]);
		assert_true(!waits_logged || core_now_ns() - begin >= SECOND_NS);
		if (is_woken)
			pass_after(SECOND_NS / 2, rtr_write[2]);
		else
			put(flow.fd, &rtr_write[2], 1);
		while (!is_woken && !waits_logged && polls++ < WAIT_MS)
			poll(NULL, 0, 1);
		assert_int_equal(waits_logged, 1);
		post_send_at(100, 10, 0);
		pass_after(2 * SECOND_NS, rtr_write[3]);
		put(flow.fd, rtr_write + 4, sizeof(rtr_write) - 4);
		expect_dto(0, DAT_DTO_SUCCESS, 10);
		expect_dto(100, DAT_DTO_SUCCESS, 10);
		assert_int_equal(waits_logged, 1);
		hang_up();
	}
}

/* MPA-18: the first FPDU is a large one, whose payload is placed as it comes */
static void responder__large_first_fpdu__sends_after_it(void **state)
{
	static uint8_t bytes[20000];
	struct taken taken;
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	be_called(0);
	post_recv_at(0, sizeof(bytes));
	post_send_at(100000, 10, 0);
	make_pattern(bytes, sizeof(bytes));
	ddp = send_header(0, true);
	make_fpdu(&fpdu, &ddp, bytes, sizeof(bytes));
	put(flow.fd, fpdu.bytes, 1000);
	expect_served();
	expect_silence(flow.fd);
	put(flow.fd, fpdu.bytes + 1000, fpdu.size - 1001);
	expect_served();
	expect_silence(flow.fd);
	put(flow.fd, fpdu.bytes + fpdu.size - 1, 1);
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
	expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
	expect_pattern(flow.region, sizeof(bytes));
	expect_dto(100000, DAT_DTO_SUCCESS, 10);
	hang_up();
}

/* --- what is on the wire --- */

/* Takes a message of the library: its segments in order, each but the last filled. */
static size_t take_message(enum iw_opcode opcode, uint32_t most, uint8_t *bytes)
{
	struct taken taken;
	size_t size = 0;
	uint64_t from = 0;

	do {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, opcode);
		if (!size)
			from = taken.ddp.offset;
		if (taken.ddp.is_tagged)
			assert_true(taken.ddp.offset == from + size);
		else
			assert_int_equal(taken.ddp.mo, size);
		assert_true(taken.ulpdu + 6 <= most);
		if (!taken.ddp.is_last) {
			assert_int_equal(taken.size % 4, 0);
			assert_int_equal(taken.ulpdu + 6, most);
		}
		memcpy(bytes + size, taken.payload, taken.size);
		size += taken.size;
	} while (!taken.ddp.is_last);
	return size;
}

/* A peer that takes no Reads, so that there are no proofs. */
static void be_calling(uint8_t flags)
{
	struct taken rtr;

	be_calling_with(flags, 0, 0);
	get_fpdu(&rtr);
}

/* MPA-47 MPA-48 DDP-03 DDP-04 DDP-07 DDP-08 RDMAP-11 RDMAP-15 RDMAP-38 */
static void request__small_sizes__one_segment_with_pad(void **state)
{
	struct taken taken;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_calling(has_crc ? FLAG_C : 0);
		make_pattern(flow.region, 16);
		for (size_t size = 0; size < 9; size++) {
			bool is_solicited = size & 1;

			post_send_at(0, size,
				     is_solicited ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0);
			get_fpdu(&taken); /* checks pad and CRC */
			assert_int_equal(taken.ulpdu, 18 + size);
			assert_int_equal(taken.bytes[0], 0x41);
			assert_int_equal(taken.bytes[1], is_solicited ? 0x45 : 0x43);
			assert_int_equal(be_get32(taken.bytes + 2), 0);
			assert_int_equal(taken.ddp.queue, 0);
			assert_int_equal(taken.ddp.msn, size + 1);
			assert_int_equal(taken.ddp.mo, 0);
			expect_pattern(taken.payload, size);
			expect_dto(0, DAT_DTO_SUCCESS, size);
			post_write_at(0, size, 0x1234, 0x1122334455667788, 0);
			get_fpdu(&taken);
			assert_int_equal(taken.ulpdu, 14 + size);
			assert_int_equal(taken.bytes[0], 0xc1);
			assert_int_equal(taken.bytes[1], 0x40);
			assert_int_equal(taken.ddp.stag, 0x1234);
			assert_true(taken.ddp.offset == 0x1122334455667788);
			expect_pattern(taken.payload, size);
			expect_dto(0, DAT_DTO_SUCCESS, size);
		}
		hang_up();
	}
}

#define MSS 1460 /* as the peer announces it; time stamps take 12 of it */
#define EMSS 1448

/* A foreign responder that takes segments of that size, and no Reads. */
static void be_calling_small(uint8_t flags)
{
	int mss = MSS;
	uint16_t port;
	int listener = listen_at(0, &port);
	struct frame frame = make_enhanced(REPLY, flags, WORD_A | WORD_C, NULL, 0);
	struct taken rtr;
	int fd;

	assert_int_equal(setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
	connect_with(port, WAIT_US, NULL, 0);
	fd = answer_call(listener);
	close(listener);
	get_frame(fd, REQUEST);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.a, flags & FLAG_C);
	speak();
	get_fpdu(&rtr);
}

/* MPA-55 DDP-07 DDP-08 DDP-09 DDP-10: no FPDU is longer than a segment of TCP */
static void request__large__cut_into_segments(void **state)
{
	static const size_t sizes[] = {8191, 8192, 65000, 65535, 200000};
	static uint8_t bytes[REGION];

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_calling_small(has_crc ? FLAG_C : 0);
		make_pattern(flow.region, REGION);
		for (size_t i = 0; i < COUNT_OF(sizes); i++) {
			post_send_at(0, sizes[i], 0);
			post_write_at(0, sizes[i], 3, 5, 0);
			assert_int_equal(take_message(IW_OP_SEND, EMSS, bytes), sizes[i]);
			expect_pattern(bytes, sizes[i]);
			assert_int_equal(take_message(IW_OP_WRITE, EMSS, bytes), sizes[i]);
			expect_pattern(bytes, sizes[i]);
			expect_dto(0, DAT_DTO_SUCCESS, sizes[i]);
			expect_dto(0, DAT_DTO_SUCCESS, sizes[i]);
		}
		hang_up();
	}
}

/* RDMAP-15 RDMAP-18: bytes of several segments are joined, and a Response is spread over them */
static void request__several_segments__one_message(void **state)
{
	DAT_LMR_TRIPLET list[4] = {segment_at(0, 3), segment_at(100, 0), segment_at(200, 5),
				   segment_at(300, 9000)};
	static uint8_t bytes[9008];
	const DAT_RMR_TRIPLET remote = {.rmr_context = 7, .segment_length = sizeof(bytes)};
	DAT_DTO_COOKIE cookie = {.as_64 = 0};
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	make_pattern(bytes, sizeof(bytes));
	ok(core_ep_post_rdma_read(flow.ep, 4, list, cookie, &remote, 0));
	request = get_read_request();
	assert_int_equal(request.size, sizeof(bytes));
	assert_int_equal(request.source_stag, 7);
	peer_respond(request.sink_stag, request.sink_offset, bytes, 5, false);
	peer_respond(request.sink_stag, request.sink_offset + 5, bytes + 5, sizeof(bytes) - 5,
		     true);
	expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
	assert_memory_equal(flow.region, bytes, 3);
	expect_untouched(flow.region + 3, 197);
	assert_memory_equal(flow.region + 200, bytes + 3, 5);
	expect_untouched(flow.region + 205, 95);
	assert_memory_equal(flow.region + 300, bytes + 8, 9000);
	expect_untouched(flow.region + 9300, REGION - 9300);
	ok(core_ep_post_send(flow.ep, 4, list, cookie, 0));
	get_fpdu(&taken);
	assert_int_equal(taken.size, sizeof(bytes));
	expect_pattern(taken.payload, sizeof(bytes));
	expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
	hang_up();
}

/* --- Reads --- */

/* RDMAP-25 MPA-42 RDMAP-09: never more in flight than the peer serves */
static void reads__more_than_the_depth__as_many_in_flight(void **state)
{
	struct iw_read_request requests[8];
	struct taken taken;

	(void)state;
	for (size_t ird = 1; ird < 4; ird++) {
		size_t asked = 0;

		be_calling_with(0, (uint32_t)ird, 4);
		get_fpdu(&taken);
		for (size_t i = 0; i < 8; i++)
			post_read_at(i * 10, 4, 7, i, 0);
		for (size_t i = 0; i < 8; i++) {
			for (; asked < 8 && asked < i + ird; asked++) {
				requests[asked] = get_read_request();
				assert_true(requests[asked].source_offset == asked);
			}
			expect_served();
			expect_silence(flow.fd);
			peer_respond(requests[i].sink_stag, 0, "abcd", 4, true);
			expect_dto(i * 10, DAT_DTO_SUCCESS, 4);
		}
		hang_up();
	}
}

/* RDMAP-28 RDMAP-29 DTO-30: a fence waits for Reads, others do not */
static void send__behind_a_read__waits_with_a_fence_only(void **state)
{
	struct iw_read_request request;
	struct taken taken;

	(void)state;
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	post_read_at(0, 4, 7, 0, 0);
	post_send_at(100, 5, 0);
	post_send_at(200, 6, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	post_send_at(300, 7, 0);
	request = get_read_request();
	get_fpdu(&taken);
	assert_int_equal(taken.size, 5);
	expect_served();
	expect_silence(flow.fd);
	peer_respond(request.sink_stag, 0, "abcd", 4, true);
	get_fpdu(&taken);
	assert_int_equal(taken.size, 6);
	get_fpdu(&taken);
	assert_int_equal(taken.size, 7);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	expect_dto(100, DAT_DTO_SUCCESS, 5);
	expect_dto(200, DAT_DTO_SUCCESS, 6);
	expect_dto(300, DAT_DTO_SUCCESS, 7);
	hang_up();
}

/* --- completions --- */

/* RDMAP-32 DTO-09: a Send that has completed needs the buffer no longer, also if nobody reads it */
static void send__completed__buffer_may_change(void **state)
{
	static const size_t sizes[] = {100, 8191, 8192, 60000};
	struct taken taken;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_calling(has_crc ? FLAG_C : 0);
		for (size_t i = 0; i < COUNT_OF(sizes); i++) {
			size_t size = 0;

			make_pattern(flow.region, sizes[i]);
			post_send_at(0, sizes[i], 0);
			expect_dto(0, DAT_DTO_SUCCESS, sizes[i]);
			memset(flow.region, 0xee, REGION);
			do {
				get_fpdu(&taken);
				for (size_t k = 0; k < taken.size; k++)
					assert_int_equal(taken.payload[k], pattern(size + k));
				size += taken.size;
			} while (!taken.ddp.is_last);
			assert_int_equal(size, sizes[i]);
		}
		fill_memory();
		hang_up();
	}
}

#define ROUNDS 40u
#define TIMER_US 20000u /* half of the shortest delay of an acknowledgement */

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The shortest time of a Write between the two endpoints. */
static uint64_t time_writes(size_t size)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t begin = now_us();

		post_write_at(0, size, flow.rkey, address_of(flow.region + REGION / 2), 0);
		expect_dto(0, DAT_DTO_SUCCESS, size);
		if (now_us() - begin < best)
			best = now_us() - begin;
	}
	return best;
}

/* RDMAP-40: with the proof, and in both ways of sending */
static void write__completion__waits_for_no_timer(void **state)
{
	static const size_t sizes[] = {8, 9000, 100000};

	(void)state;
	connect_with(stage.qual, WAIT_US, NULL, 0);
	take_request();
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(-1, stage.a, false);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		assert_true(time_writes(sizes[i]) < TIMER_US);
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(responder__silent_initiator__all_waits_for_the_first_fpdu),
		TEST(responder__waits_for_the_first_fpdu__logged_after_a_second),
		TEST(responder__large_first_fpdu__sends_after_it),
		TEST(request__small_sizes__one_segment_with_pad),
		TEST(request__large__cut_into_segments),
		TEST(request__several_segments__one_message),
		TEST(reads__more_than_the_depth__as_many_in_flight),
		TEST(send__behind_a_read__waits_with_a_fence_only),
		TEST(send__completed__buffer_may_change),
		TEST(write__completion__waits_for_no_timer),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
