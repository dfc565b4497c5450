// SPDX-License-Identifier: BSD-2-Clause
/* Where bytes are placed, when they may be, in which order, and who learns of them. */
#include "flow_stage.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "../../lib/ability.h"
#include "soft/copy.h"

#define LARGE 60000u

/* --- straight from the socket --- */

static _Atomic size_t received_there; /* bytes that recvmsg has put into the region */
static _Atomic uint64_t received_end; /* the end of the last of them */

ssize_t __real_iw_socket_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_recvmsg(int fd, struct msghdr *message, int flags);

static bool is_in_region(const struct iovec *iov)
{
	const uint8_t *at = iov->iov_base;

	return at >= flow.bytes && at < flow.bytes + sizeof(flow.bytes);
}

ssize_t __wrap_iw_socket_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t count = __real_iw_socket_recvmsg(fd, message, flags);
	size_t left = count > 0 ? (size_t)count : 0;

	for (size_t i = 0; i < message->msg_iovlen && left; i++) {
		const struct iovec *iov = &message->msg_iov[i];
		size_t part = iov->iov_len < left ? iov->iov_len : left;

		if (is_in_region(iov)) {
			atomic_fetch_add(&received_there, part);
			atomic_store(&received_end, address_of(iov->iov_base) + part);
		}
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

/* The header of the first segment of the Response to the Read Request that the library sends. */
static struct iw_ddp take_response_header(void)
{
	struct iw_ddp ddp = header_of(IW_OP_READ_RESPONSE, false);
	struct taken taken;

	get_fpdu(&taken);
	ddp.stag = be_get32(taken.payload);
	ddp.offset = be_get64(taken.payload + 4);
	return ddp;
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
		{IW_OP_SEND, false, 65535 - IW_UNTAGGED_HEAD},
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
		if (is_send) {
			ddp = send_header((uint32_t)size, true);
			if (!segments[which].is_last)
				put_segment(&ddp, NULL, 0);
			expect_dto(0, DAT_DTO_SUCCESS, size);
		} else {
			post_recv_at(REGION, 0);
			peer_send(NULL, 0);
			expect_dto(REGION, DAT_DTO_SUCCESS, 0);
		}
		expect_pattern(flow.region, size);
		hang_up();
	}
}

/*
 * A message of three segments from the peer: FIRST, LARGE and LAST bytes. It is a Send, or
 * the Response to an RDMA Read.
 */
#define FIRST 100u
#define LAST 8u

struct message {
	bool is_read;
	struct iw_ddp ddp;
	uint8_t bytes[FIRST + LARGE + LAST];
};

/* A connection with a Receive or an RDMA Read for the message, whose first segment has come. */
static void begin_message(struct message *message, bool is_read)
{
	struct taken taken;
	struct fpdu fpdu;

	be_calling_with(FLAG_C, 4, 4);
	get_fpdu(&taken);
	message->is_read = is_read;
	make_pattern(message->bytes, sizeof(message->bytes));
	if (is_read) {
		post_read_at(0, sizeof(message->bytes), 7, 0, 0);
		message->ddp = take_response_header();
	} else {
		post_recv_at(0, sizeof(message->bytes));
		message->ddp = header_of(IW_OP_SEND, false);
	}
	make_fpdu(&fpdu, &message->ddp, message->bytes, FIRST);
	put_fpdu(&fpdu);
	expect_served();
	message->ddp.offset += FIRST;
	message->ddp.mo = is_read ? 0 : FIRST;
}

static void end_message(struct message *message)
{
	message->ddp.is_last = true;
	message->ddp.offset += LARGE;
	message->ddp.mo += message->is_read ? 0 : LARGE;
	put_segment(&message->ddp, message->bytes + FIRST + LARGE, LAST);
	expect_dto(0, DAT_DTO_SUCCESS, sizeof(message->bytes));
	expect_pattern(flow.region, sizeof(message->bytes));
	hang_up();
}

/* MPA-52 MPA-51 TERM-30 DDP-28 */
static void crc__of_the_middle_of_a_message__judged_before_it_is_placed(void **state)
{
	static struct message message;
	struct fpdu fpdu;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const bool is_bad = i & 1;

		begin_message(&message, i & 2);
		make_fpdu(&fpdu, &message.ddp, message.bytes + FIRST, LARGE);
		fpdu.bytes[fpdu.size - 1] ^= (uint8_t)is_bad;
		put_but_last(&fpdu);
		for (size_t at = 0; at < FIRST; at++)
			assert_int_equal(peek(flow.region + at), pattern(at));
		expect_untouched(flow.region + FIRST, REGION - FIRST);
		expect_quiet(stage.evd);
		put_last(&fpdu);
		if (!is_bad) {
			end_message(&message);
			continue;
		}
		expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(2, 0, 2), NULL);
		expect_untouched(flow.region + FIRST, REGION - FIRST);
		end_flow();
	}
}

/* MPA-51 IWCM-43: a segment without its CRC takes no buffer of an SRQ, and a bad one none at all */
static void crc__begin_of_a_message__takes_no_shared_receive(void **state)
{
	static const struct {
		uint32_t size;
		bool is_last;
	} segments[] = {{5000, true}, {LARGE, true}, {LARGE, false}};
	static uint8_t bytes[LARGE];
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	begin_shared();
	post_shared(LARGE);
	for (size_t i = 0; i < COUNT_OF(segments); i++) {
		be_called(FLAG_C);
		ddp = header_of(IW_OP_SEND, segments[i].is_last);
		make_fpdu(&fpdu, &ddp, bytes, segments[i].size);
		fpdu.bytes[fpdu.size - 1] ^= 1;
		put_but_last(&fpdu);
		expect_available(1);
		put_last(&fpdu);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(2, 0, 2), NULL);
		end_flow();
		expect_available(1);
	}
	end_shared();
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

static _Atomic bool is_library_deaf; /* its threads find nothing in a socket */

ssize_t __real_iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_iw_socket_recv(int fd, void *buffer, size_t size, int flags);

ssize_t __wrap_iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
	if (atomic_load(&is_library_deaf) && soft_is_library_thread) {
		errno = EAGAIN;
		return -1;
	}
	return __real_iw_socket_recv(fd, buffer, size, flags);
}

#define PAGE 4096u

/* The target of a Write is in two pages, of which one is closed. */
static struct closed_page {
	uint8_t *second;	 /* the begin of the second page */
	uint32_t before, behind; /* bytes of the target in each */
	volatile sig_atomic_t faults, is_in_order;
} closed;

/* The part in the first page is complete. */
static bool is_front_new(void)
{
	for (uint32_t i = 0; i < closed.before; i++)
		if (closed.second[(int)i - (int)closed.before] != pattern(i))
			return false;
	return true;
}

/* The part in the second page, which belongs to the last 8 bytes, has not changed. */
static bool is_tail_old(void)
{
	for (uint32_t i = 0; i < closed.behind; i++)
		if (closed.second[i] != FILL)
			return false;
	return true;
}

static void on_store(int number, siginfo_t *info, void *context)
{
	const uint8_t *address = info->si_addr;

	(void)context;
	if (address < closed.second - PAGE || address >= closed.second + PAGE || closed.faults) {
		signal(number, SIG_DFL); /* another fault */
		return;
	}
	mprotect(closed.second - PAGE, (size_t)2 * PAGE, PROT_READ | PROT_WRITE);
	closed.is_in_order = address >= closed.second ? is_front_new() : is_tail_old();
	closed.faults = 1;
}

/* The store into the page that is closed, by this thread, tells what was there before. */
static void check_stores(uint32_t before, uint32_t behind, bool is_second_closed)
{
	const uint64_t give_up = now_ms() + WAIT_MS;
	uint8_t bytes[PAGE], *second = flow.region + PAGE;

	second += PAGE - (uintptr_t)second % PAGE;
	closed = (struct closed_page){.second = second, .before = before, .behind = behind};
	make_pattern(bytes, sizeof(bytes));
	fill_memory();
	assert_int_equal(mprotect(is_second_closed ? second : second - PAGE, PAGE, PROT_READ), 0);
	peer_write(flow.rkey, address_of(second - before), bytes, before + behind);
	while (!closed.faults) {
		assert_true(now_ms() < give_up);
		expect_quiet(stage.evd);
	}
	assert_true(closed.is_in_order);
	expect_pattern(second - before, before + behind);
	expect_untouched(second + behind, PAGE);
}

/* DDP-27 EP-RDMAW-44 COMPAT-46: within one segment, by a thread of the consumer that polls */
static void write__page_of_target_closed__last_bytes_last(void **state)
{
	static const uint32_t fronts[] = {1, 8, 9, 64, 1000}, tails[] = {1, 5, 8};
	struct sigaction action = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO}, old, old_bus;

	(void)state;
	ABILITY_NEED(sysconf(_SC_PAGESIZE) == PAGE, "pages of another size");
	be_called(0);
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	assert_int_equal(sigaction(SIGBUS, &action, &old_bus), 0);
	atomic_store(&is_library_deaf, true);
	for (size_t i = 0; i < COUNT_OF(fronts); i++) {
		for (size_t k = 0; k < COUNT_OF(tails); k++) {
			check_stores(fronts[i], tails[k], false);
			check_stores(fronts[i], tails[k], true);
		}
	}
	atomic_store(&is_library_deaf, false);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, &old_bus, NULL), 0);
	hang_up();
}

/*
 * EP-RDMAW-44 COMPAT-02 COMPAT-46: recvmsg may store the bytes of an element in any order, so that
 * it must not place the last word of a message together with others. All before it is read there.
 */
static void payload__large__last_word_is_placed_apart(void **state)
{
	static const uint8_t opcodes[] = {IW_OP_WRITE, IW_OP_SEND, IW_OP_READ_RESPONSE};
	static uint8_t bytes[LARGE];
	struct taken taken;
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
		be_calling_with(0, 4, 4);
		get_fpdu(&taken);
		ddp = header_of(opcodes[i], true);
		if (opcodes[i] == IW_OP_SEND) {
			post_recv_at(0, LARGE);
		} else if (opcodes[i] == IW_OP_READ_RESPONSE) {
			post_read_at(0, LARGE, 7, 0, 0);
			ddp = take_response_header();
			ddp.is_last = true;
		}
		make_fpdu(&fpdu, &ddp, bytes, LARGE);
		put(flow.fd, fpdu.bytes, 100);
		expect_served();
		put(flow.fd, fpdu.bytes + 100, fpdu.size - 100);
		expect_served();
		assert_int_equal(atomic_load(&received_end), address_of(flow.region + LARGE - 8));
		for (size_t at = 0; at < LARGE; at++)
			assert_int_equal(peek(flow.region + at), pattern(at));
		if (opcodes[i] != IW_OP_WRITE)
			expect_dto(0, DAT_DTO_SUCCESS, LARGE);
		hang_up();
	}
}

/* EP-RDMAW-44 DDP-27: the last word comes byte by byte, with and without what is before it */
static void payload__large__last_bytes_come_one_by_one(void **state)
{
	static uint8_t bytes[LARGE];
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	for (size_t pieces = 1; pieces < 20; pieces++) {
		be_called(0);
		post_recv_at(0, 0);
		ddp = header_of(IW_OP_WRITE, true);
		make_fpdu(&fpdu, &ddp, bytes, LARGE);
		put(flow.fd, fpdu.bytes, 100);
		expect_served();
		put(flow.fd, fpdu.bytes + 100, fpdu.size - 100 - pieces);
		for (size_t at = fpdu.size - pieces; at < fpdu.size; at++) {
			expect_served();
			put(flow.fd, fpdu.bytes + at, 1);
		}
		peer_send(NULL, 0);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		expect_pattern(flow.region, LARGE);
		expect_untouched(flow.region + LARGE, REGION - LARGE);
		hang_up();
	}
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
		TEST(crc__of_the_middle_of_a_message__judged_before_it_is_placed),
		TEST(crc__begin_of_a_message__takes_no_shared_receive),
		TEST(write__many_segments__visible_in_order),
		TEST(payload__large__last_word_is_placed_apart),
		TEST(payload__large__last_bytes_come_one_by_one),
		TEST(send__each_opcode__notifies_if_solicited),
		TEST(write__page_of_target_closed__last_bytes_last),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
