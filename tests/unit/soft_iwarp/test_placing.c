// SPDX-License-Identifier: BSD-2-Clause
/* Where bytes are placed, when they may be, in which order, and who learns of them. */
#include "flow_stage.h"

#include <stdatomic.h>

#ifdef __SANITIZE_THREAD__
#define HAS_TSAN true
#else
#define HAS_TSAN false
#endif

#define LARGE 60000u

/* --- straight from the socket --- */

static _Atomic size_t received_there; /* bytes that recvmsg has put into the region */

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);

static bool is_in_region(const struct iovec *iov)
{
	const uint8_t *at = iov->iov_base;

	return at >= flow.bytes && at < flow.bytes + sizeof(flow.bytes);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t count = __real_recvmsg(fd, message, flags);
	size_t left = count > 0 ? (size_t)count : 0;

	for (size_t i = 0; i < message->msg_iovlen && left; i++) {
		const struct iovec *iov = &message->msg_iov[i];
		size_t part = iov->iov_len < left ? iov->iov_len : left;

		if (is_in_region(iov))
			atomic_fetch_add(&received_there, part);
		left -= part;
	}
	return count;
}

/* The peer sends an FPDU, of which the first part is read alone, and an empty Send behind it. */
static void put_in_two(const struct fpdu *fpdu, size_t first)
{
	atomic_store(&received_there, 0);
	put(flow.fd, fpdu->bytes, first);
	expect_served();
	put(flow.fd, fpdu->bytes + first, fpdu->size - first);
	peer_send(NULL, 0);
}

/* DDP-18: what is not in the buffer with the header already is not copied */
static void payload__large__read_into_the_target(void **state)
{
	static const uint32_t sizes[] = {4096, 8192, LARGE};
	static uint8_t bytes[LARGE];
	struct taken taken;
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	/* the engine receives by a bare system call then */
	if (HAS_TSAN) {
		print_message("the thread sanitizer hides the call that is watched\n");
		skip();
	}
	make_pattern(bytes, sizeof(bytes));
	be_calling_with(0, 4, 4);
	get_fpdu(&taken);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		uint32_t size = sizes[i];

		post_recv_at(0, size);
		post_recv_at(1, 0);
		ddp = send_header(0, true);
		make_fpdu(&fpdu, &ddp, bytes, size);
		put_in_two(&fpdu, 100);
		expect_dto(0, DAT_DTO_SUCCESS, size);
		expect_pattern(flow.region, size);
		expect_dto(1, DAT_DTO_SUCCESS, 0);
		assert_true(atomic_load(&received_there) >= size - 100);

		fill_memory();
		post_recv_at(1, 0);
		ddp = (struct iw_ddp){.is_tagged = true,
				      .is_last = true,
				      .opcode = IW_OP_WRITE,
				      .stag = flow.rkey,
				      .offset = address_of(flow.region + 7)};
		make_fpdu(&fpdu, &ddp, bytes, size);
		put_in_two(&fpdu, 100);
		expect_dto(1, DAT_DTO_SUCCESS, 0);
		expect_pattern(flow.region + 7, size);
		assert_true(atomic_load(&received_there) >= size - 100);
		fill_memory();
	}
	hang_up();
}

/* --- not before the CRC --- */

#define UNVERIFIED 16384u /* from that size on MPA-52 allows it for some */

/* What the peer sends; the Receive is at the begin of the region. */
static struct iw_ddp header_of(uint8_t opcode, bool is_last)
{
	if (opcode == IW_OP_SEND)
		return (struct iw_ddp){.opcode = opcode, .is_last = is_last, .msn = 1};
	return (struct iw_ddp){.is_tagged = true,
			       .is_last = is_last,
			       .opcode = opcode,
			       .stag = flow.rkey,
			       .offset = address_of(flow.region)};
}

/* Sends all but the last byte of the FPDU, then that. */
static void put_but_last(const struct fpdu *fpdu)
{
	put(flow.fd, fpdu->bytes, fpdu->size - 1);
	expect_served();
}

static void put_last(const struct fpdu *fpdu)
{
	put(flow.fd, fpdu->bytes + fpdu->size - 1, 1);
}

/* MPA-52: with the CRC nothing is placed before it was verified, also of the largest FPDU */
static void crc__not_there_yet__nothing_is_placed(void **state)
{
	static const struct {
		uint8_t opcode;
		bool is_last;
		uint32_t size;
	} segments[] = {
		{IW_OP_WRITE, true, 100},
		{IW_OP_WRITE, true, 4096},
		{IW_OP_WRITE, true, 20000},
		{IW_OP_WRITE, true, 65535 - IW_TAGGED_HEAD},
		{IW_OP_WRITE, false, 65535 - IW_TAGGED_HEAD},
		{IW_OP_SEND, true, 65535 - IW_UNTAGGED_HEAD},
		{IW_OP_SEND, false, UNVERIFIED - 1},
	};
	static uint8_t bytes[65535];
	struct iw_ddp ddp;
	struct fpdu fpdu;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	for (size_t i = 0; i < 2 * COUNT_OF(segments); i++) {
		const size_t which = i / 2, size = segments[which].size;
		const bool is_bad = i % 2, is_send = segments[which].opcode == IW_OP_SEND;

		be_called(FLAG_C);
		if (is_send)
			post_recv_at(0, REGION);
		ddp = header_of(segments[which].opcode, segments[which].is_last);
		make_fpdu(&fpdu, &ddp, bytes, size);
		put_but_last(&fpdu);
		expect_untouched(flow.region, REGION);
		fpdu.bytes[fpdu.size - 1] ^= (uint8_t)is_bad;
		put_last(&fpdu);
		if (is_bad) {
			if (is_send)
				expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
			expect(DAT_CONNECTION_EVENT_BROKEN);
			expect_untouched(flow.region, REGION);
			expect_terminate(IW_ERROR(2, 0, 2), NULL);
			end_flow();
			continue;
		}
		expect_served();
		expect_pattern(flow.region, size);
		if (is_send) {
			ddp = send_header((uint32_t)size, true);
			if (!segments[which].is_last)
				put_segment(&ddp, NULL, 0);
			expect_dto(0, DAT_DTO_SUCCESS, size);
		}
		hang_up();
	}
}

/* MPA-52 MPA-51 TERM-30 DDP-28: a large segment that is not the last of its message is placed, but
 * not reported, before its CRC is there */
static void crc__behind_a_large_segment__judged_all_the_same(void **state)
{
	static uint8_t bytes[LARGE + 8];
	struct taken taken;
	struct fpdu fpdu;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	for (unsigned i = 0; i < 4; i++) {
		const bool is_bad = i & 1, is_read = i & 2;
		struct iw_ddp ddp;

		be_calling_with(FLAG_C, 4, 4);
		get_fpdu(&taken);
		if (is_read) {
			post_read_at(0, LARGE + 8, 7, 0, 0);
			get_fpdu(&taken);
			ddp = header_of(IW_OP_READ_RESPONSE, false);
			ddp.stag = be_get32(taken.payload);
			ddp.offset = be_get64(taken.payload + 4);
		} else {
			post_recv_at(0, LARGE + 8);
			ddp = header_of(IW_OP_SEND, false);
		}
		make_fpdu(&fpdu, &ddp, bytes, LARGE);
		fpdu.bytes[fpdu.size - 1] ^= (uint8_t)is_bad;
		/* a part of it in one read, with the header, the rest straight from the socket */
		put(flow.fd, fpdu.bytes, 1000);
		expect_served();
		put(flow.fd, fpdu.bytes + 1000, fpdu.size - 1001);
		expect_served();
		expect_pattern(flow.region, LARGE);
		expect_untouched(flow.region + LARGE, REGION - LARGE);
		expect_quiet(stage.evd);
		put_last(&fpdu);
		if (is_bad) {
			expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
			expect(DAT_CONNECTION_EVENT_BROKEN);
			expect_terminate(IW_ERROR(2, 0, 2), NULL);
			end_flow();
			continue;
		}
		if (is_read) {
			peer_respond(ddp.stag, ddp.offset + LARGE, bytes + LARGE, 8, true);
		} else {
			ddp = send_header(LARGE, true);
			put_segment(&ddp, bytes + LARGE, 8);
		}
		expect_dto(0, DAT_DTO_SUCCESS, LARGE + 8);
		expect_pattern(flow.region, LARGE + 8);
		hang_up();
	}
}

/* The Receive or the Read is flushed, or was being filled. */
static void expect_failed(void)
{
	DAT_EVENT event = next_of(stage.evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_true(dto->status == DAT_DTO_ERR_FLUSHED || dto->status == DAT_DTO_ERR_TRANSPORT);
}

/* MPA-52 MPA-51: whatever is damaged in its header, only the memory that it fills may change, and
 * the error is that of the CRC */
static void crc__header_of_a_large_segment_damaged__memory_around_is_untouched(void **state)
{
	static uint8_t bytes[UNVERIFIED];
	const size_t receive = 1000, room = UNVERIFIED + 8;
	struct taken taken;
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	for (unsigned bit = 0; bit < 8 * (IW_UNTAGGED_HEAD + IW_TAGGED_HEAD); bit++) {
		const bool is_read = bit >= 8 * IW_UNTAGGED_HEAD;
		const unsigned at = is_read ? bit - 8 * IW_UNTAGGED_HEAD : bit;

		be_calling_with(FLAG_C, 4, 4);
		get_fpdu(&taken);
		if (is_read) {
			post_read_at(receive, room, 7, 0, 0);
			get_fpdu(&taken);
			ddp = header_of(IW_OP_READ_RESPONSE, false);
			ddp.stag = be_get32(taken.payload);
			ddp.offset = be_get64(taken.payload + 4);
		} else {
			post_recv_at(receive, room);
			ddp = header_of(IW_OP_SEND, false);
		}
		make_fpdu(&fpdu, &ddp, bytes, UNVERIFIED);
		fpdu.bytes[2 + at / 8] ^= (uint8_t)(1u << at % 8);
		put_but_last(&fpdu);
		expect_untouched(flow.region, receive);
		expect_untouched(flow.region + receive + UNVERIFIED, REGION - receive - UNVERIFIED);
		put_last(&fpdu);
		expect_failed();
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(2, 0, 2), NULL);
		expect_untouched(flow.region, receive);
		expect_untouched(flow.region + receive + UNVERIFIED, REGION - receive - UNVERIFIED);
		end_flow();
	}
}

/* --- in order --- */

#define SEGMENT 1400u
#define TOTAL (40u * SEGMENT)

/* The Write as segments for a network of 1,500 bytes, in one piece. */
static size_t make_segments(uint8_t *to, const uint8_t *bytes)
{
	struct fpdu fpdu;
	size_t size = 0;

	for (uint32_t at = 0; at < TOTAL; at += SEGMENT) {
		const struct iw_ddp ddp = {.is_tagged = true,
					   .is_last = at + SEGMENT == TOTAL,
					   .opcode = IW_OP_WRITE,
					   .stag = flow.rkey,
					   .offset = address_of(flow.region + at)};

		make_fpdu(&fpdu, &ddp, bytes + at, SEGMENT);
		memcpy(to + size, fpdu.bytes, fpdu.size);
		size += fpdu.size;
	}
	return size;
}

/* DDP-27 COMPAT-02: who sees the last byte of a Write sees all before it */
static void write__many_segments__visible_in_order(void **state)
{
	static uint8_t bytes[TOTAL], stream[2 * TOTAL];
	uint64_t give_up;
	size_t size;

	(void)state;
	be_called(0);
	for (unsigned round = 0; round < 50; round++) {
		memset(bytes, (int)round, sizeof(bytes));
		size = make_segments(stream, bytes);
		put(flow.fd, stream, size);
		give_up = now_ms() + WAIT_MS;
		while (peek(flow.region + TOTAL - 1) != (uint8_t)round)
			assert_true(now_ms() < give_up);
		for (size_t at = 0; at < TOTAL; at += 50)
			assert_int_equal(peek(flow.region + at), round);
	}
	hang_up();
}

/* --- solicited --- */

/* An endpoint whose Receives notify only if the peer wants that; the CNO of its EVD. */
static DAT_CNO_HANDLE take_solicited_ep(DAT_EVD_HANDLE *evd)
{
	DAT_CNO_HANDLE cno;
	DAT_EP_PARAM param;

	ok(core_ep_query(stage.b, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	ok(core_cno_create(stage.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	ok(core_evd_create(stage.ia, 16, cno, DAT_EVD_DTO_FLAG, evd));
	ok(core_ep_create(stage.ia, stage.pz, *evd, stage.evd, stage.evd, &param.ep_attr,
			  &stage.b));
	return cno;
}

/* RDMAP-12 DTO-23: opcodes 5 and 6 are Sends with the flag, 3 and 4 are without */
static void send__each_opcode__notifies_if_solicited(void **state)
{
	static const uint8_t opcodes[] = {IW_OP_SEND, IW_OP_SEND_INVALIDATE, IW_OP_SEND_SOLICITED,
					  IW_OP_SEND_BOTH};
	DAT_EP_HANDLE plain = stage.b;
	DAT_EVD_HANDLE evd, triggered;
	DAT_CNO_HANDLE cno = take_solicited_ep(&evd);

	(void)state;
	be_called(0);
	for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
		bool is_solicited = opcodes[i] & 1 ? opcodes[i] == IW_OP_SEND_SOLICITED
						   : opcodes[i] == IW_OP_SEND_BOTH;
		struct iw_ddp ddp = send_header(0, true);
		DAT_REGION_DESCRIPTION region = {.for_va = stage.memory};
		DAT_LMR_HANDLE lmr;
		DAT_LMR_CONTEXT lkey;
		DAT_RMR_CONTEXT rkey;
		DAT_EVENT event;
		DAT_RETURN ret;

		ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, 8, stage.pz,
				   DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &rkey, NULL, NULL));
		ddp.opcode = opcodes[i];
		ddp.invalidate = rkey;
		post_recv_at(0, 8);
		put_segment(&ddp, "bytes", 5);
		expect_served();
		ret = core_cno_wait(cno, is_solicited ? WAIT_US : 0, &triggered);
		if (is_solicited)
			assert_int_equal(ret, DAT_SUCCESS);
		else
			assert_int_equal(DAT_GET_TYPE(ret), DAT_QUEUE_EMPTY);
		ok(core_evd_dequeue(evd, &event));
		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		ok(core_lmr_free(lmr));
	}
	hang_up();
	ok(core_ep_free(stage.b));
	stage.b = plain;
	ok(core_evd_free(evd));
	ok(core_cno_free(cno));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(payload__large__read_into_the_target),
		TEST(crc__not_there_yet__nothing_is_placed),
		TEST(crc__behind_a_large_segment__judged_all_the_same),
		TEST(crc__header_of_a_large_segment_damaged__memory_around_is_untouched),
		TEST(write__many_segments__visible_in_order),
		TEST(send__each_opcode__notifies_if_solicited),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
