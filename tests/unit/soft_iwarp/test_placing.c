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

/* MPA-52: with the CRC nothing is placed before it was verified, also of the largest FPDU */
static void crc__not_there_yet__nothing_is_placed(void **state)
{
	static const uint32_t sizes[] = {100, 4096, 20000, 65535 - IW_TAGGED_HEAD};
	static uint8_t bytes[65535];
	struct fpdu fpdu;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		be_called(FLAG_C);
		for (unsigned is_bad = 0; is_bad < 2; is_bad++) {
			const struct iw_ddp ddp = {.is_tagged = true,
						   .is_last = true,
						   .opcode = IW_OP_WRITE,
						   .stag = flow.rkey,
						   .offset = address_of(flow.region)};

			fill_memory();
			make_fpdu(&fpdu, &ddp, bytes, sizes[i]);
			put(flow.fd, fpdu.bytes, fpdu.size - 1);
			expect_served();
			expect_untouched(flow.region, REGION);
			fpdu.bytes[fpdu.size - 1] ^= (uint8_t)is_bad;
			put(flow.fd, fpdu.bytes + fpdu.size - 1, 1);
			if (is_bad)
				break;
			post_recv_at(REGION, 0);
			peer_send(NULL, 0);
			expect_dto(REGION, DAT_DTO_SUCCESS, 0);
			expect_pattern(flow.region, sizes[i]);
		}
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_untouched(flow.region, REGION);
		expect_terminate(IW_ERROR(2, 0, 2), NULL);
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
		TEST(write__many_segments__visible_in_order),
		TEST(send__each_opcode__notifies_if_solicited),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
