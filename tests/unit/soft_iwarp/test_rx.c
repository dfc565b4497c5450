// SPDX-License-Identifier: BSD-2-Clause
/* What the library does with what arrives. */
#include "flow_stage.h"

#include <pthread.h>

/* TERM-21: of an opcode that is not known, and one that does not fit */
static void send__begun_and_then_wrong_opcode__receive_gets_bad_response(void **state)
{
	static const uint8_t opcodes[] = {8, 11, 15, IW_OP_WRITE, IW_OP_SEND_SOLICITED};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct iw_ddp ddp;
		struct fpdu fpdu;

		be_called(0);
		post_recv_at(0, 100);
		post_recv_at(1000, 100);
		ddp = send_header(0, false);
		put_segment(&ddp, "abcd", 4);
		ddp = send_header(4, true);
		make_fpdu(&fpdu, &ddp, "efgh", 4);
		fpdu.bytes[3] = (uint8_t)(0x40 | opcodes[i]);
		put_fpdu(&fpdu);
		expect_dto(0, DAT_DTO_ERR_BAD_RESPONSE, 0);
		expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(0, 2, 6), NULL);
		end_flow();
	}
}

/* --- streams in any pieces --- */

/* A stream with everything that a peer may send, and what it does. */
struct recorded {
	uint8_t bytes[40000];
	size_t size;
	size_t fpdu_ends[16];
	unsigned fpdus;
};

static void record(struct recorded *stream, const struct iw_ddp *ddp, const void *payload,
		   size_t size)
{
	struct fpdu fpdu;

	make_fpdu(&fpdu, ddp, payload, size);
	assert_true(stream->size + fpdu.size <= sizeof(stream->bytes));
	memcpy(stream->bytes + stream->size, fpdu.bytes, fpdu.size);
	stream->size += fpdu.size;
	stream->fpdu_ends[stream->fpdus++] = stream->size;
}

static struct iw_ddp write_to(size_t offset, bool is_last)
{
	return (struct iw_ddp){.is_tagged = true,
			       .is_last = is_last,
			       .opcode = IW_OP_WRITE,
			       .stag = flow.rkey,
			       .offset = address_of(flow.region + offset)};
}

#define SMALL 50u
#define LARGE 9001u

/* A Send of two segments with a Write between them, an empty Send, a large Send, a Write. */
static void record_all(struct recorded *stream, bool has_large)
{
	static uint8_t bytes[LARGE];
	struct iw_ddp ddp;

	stream->size = 0;
	stream->fpdus = 0;
	make_pattern(bytes, sizeof(bytes));
	ddp = send_header(0, false);
	record(stream, &ddp, bytes, 21);
	ddp = write_to(100000, false);
	record(stream, &ddp, bytes, 13);
	ddp = send_header(21, true);
	record(stream, &ddp, bytes + 21, SMALL - 21);
	ddp = write_to(100013, true);
	record(stream, &ddp, bytes + 13, 7);
	ddp = send_header(0, true);
	record(stream, &ddp, NULL, 0);
	if (!has_large)
		return;
	ddp = send_header(0, true);
	record(stream, &ddp, bytes, LARGE);
	ddp = write_to(120000, true);
	record(stream, &ddp, bytes, LARGE);
}

static void post_for_all(bool has_large)
{
	post_recv_at(0, SMALL + 3);
	post_recv_at(1000, 0);
	if (has_large)
		post_recv_at(2000, LARGE);
}

static void expect_all(bool has_large)
{
	expect_dto(0, DAT_DTO_SUCCESS, SMALL);
	expect_dto(1000, DAT_DTO_SUCCESS, 0);
	expect_pattern(flow.region, SMALL);
	expect_untouched(flow.region + SMALL, 2000 - SMALL);
	expect_pattern(flow.region + 100000, 20);
	expect_untouched(flow.region + 100020, 120000 - 100020);
	if (!has_large)
		return;
	expect_dto(2000, DAT_DTO_SUCCESS, LARGE);
	expect_pattern(flow.region + 2000, LARGE);
}

/* MPA-53 MPA-25 DDP-11 DDP-28 RDMAP-39: cut at each byte, and all in one piece */
static void stream__cut_at_each_byte__the_same(void **state)
{
	static struct recorded stream;
	size_t cut;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_called(has_crc ? FLAG_C : 0);
		flow.msn[0] = 1;
		record_all(&stream, false);
		for (cut = 0; cut < stream.size; cut++) {
			fill_memory();
			post_for_all(false);
			put(flow.fd, stream.bytes, cut);
			if (cut)
				expect_served();
			put(flow.fd, stream.bytes + cut, stream.size - cut);
			expect_all(false);
			record_all(&stream, false); /* with the next numbers */
		}
		hang_up();
	}
}

/* MPA-53: large segments, byte by byte around what the library reads at once */
static void stream__large_segments_in_pieces__the_same(void **state)
{
	static const size_t steps[] = {1, 7, 100, 4096, 8191, 8192, 8193, 20000, 40000};
	static struct recorded stream;

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(steps); i++) {
		size_t step = steps[i / 2];
		size_t at, size;

		be_called(i & 1 ? FLAG_C : 0);
		record_all(&stream, true);
		post_for_all(true);
		for (at = 0; at < stream.size; at += size) {
			size = stream.size - at < step ? stream.size - at : step;
			put(flow.fd, stream.bytes + at, size);
		}
		expect_all(true);
		peer_send(NULL, 0); /* the Write before it is placed then */
		post_recv_at(0, 0);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		expect_pattern(flow.region + 120000, LARGE);
		hang_up();
	}
}

/* MPA-25 MPA-47 DDP-03 RDMAP-02 RDMAP-08: what is not looked at */
static void fpdu__reserved_bits_pad_and_crc_field__ignored(void **state)
{
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	be_called(0);
	for (size_t size = 0; size < 9; size++) {
		uint8_t bytes[8];

		make_pattern(bytes, sizeof(bytes));
		ddp = send_header(0, true);
		make_fpdu(&fpdu, &ddp, bytes, size);
		memset(fpdu.bytes + 2 + 18 + size, 0xff, fpdu.size - 20 - size);
		fpdu.bytes[2] |= 0x3c;
		fpdu.bytes[3] |= 0x30;
		memset(fpdu.bytes + 4, 0xee, 4); /* the STag to invalidate */
		post_recv_at(0, 16);
		put_fpdu(&fpdu);
		expect_dto(0, DAT_DTO_SUCCESS, size);
		expect_pattern(flow.region, size);
	}
	hang_up();
	/* with the CRC the pad is part of it */
	be_called(FLAG_C);
	ddp = send_header(0, true);
	make_fpdu(&fpdu, &ddp, "x", 1);
	memset(fpdu.bytes + 2 + 19, 0xff, 3);
	iw_crc_put(iw_crc32c(0, fpdu.bytes, 24), fpdu.bytes + 24);
	post_recv_at(0, 16);
	put_fpdu(&fpdu);
	expect_dto(0, DAT_DTO_SUCCESS, 1);
	hang_up();
}

/* MPA-54 DDP-25 */
static void fpdu__largest_and_empty_ones__taken(void **state)
{
	static uint8_t bytes[65535];
	struct iw_ddp ddp;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_called(has_crc ? FLAG_C : 0);
		post_recv_at(0, 65535 - 18);
		ddp = send_header(0, true);
		put_segment(&ddp, bytes, 65535 - 18);
		expect_dto(0, DAT_DTO_SUCCESS, 65535 - 18);
		expect_pattern(flow.region, 65535 - 18);
		/* any STag, any TO, also in the middle of a message */
		peer_write(0xdeadbeef, UINT64_MAX, NULL, 0);
		ddp = write_to(100000, false);
		put_segment(&ddp, bytes, 10);
		ddp.stag = 2;
		put_segment(&ddp, NULL, 0);
		ddp = write_to(100010, true);
		put_segment(&ddp, bytes + 10, 65535 - 14);
		post_recv_at(0, 0);
		peer_send(NULL, 0);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		expect_pattern(flow.region + 100000, 65535 - 14);
		hang_up();
	}
}

/* MPA-51 TERM-30 DDP-28: one bit of each byte of a Send and of a Write */
static void crc__each_byte_damaged__nothing_delivered(void **state)
{
	struct fpdu fpdu;

	(void)state;
	for (size_t at = 2; at < 52; at++) {
		const struct iw_ddp ddp =
			at & 1 ? write_to(0, true)
			       : (struct iw_ddp){.opcode = IW_OP_SEND, .is_last = true, .msn = 1};

		be_called(FLAG_C);
		make_fpdu(&fpdu, &ddp, "0123456789abcdefghijklmnopq", 27);
		/* not the length: the library waits for what it says */
		fpdu.bytes[at < fpdu.size ? at : fpdu.size - 1] ^= 0x10;
		post_recv_at(0, 50);
		put_fpdu(&fpdu);
		put_fpdu(&fpdu);
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(2, 0, 2), NULL);
		expect_untouched(flow.region, REGION);
		end_flow();
	}
}

/* TERM-30 MPA-51: the Receive and the Read that are being filled */
static void crc__damaged_second_segment__transport_error(void **state)
{
	struct taken taken;
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	be_calling_with(FLAG_C, 4, 4);
	get_fpdu(&taken);
	post_recv_at(0, 50);
	post_read_at(1000, 100, 7, 0, 0);
	get_fpdu(&taken);
	ddp = send_header(0, false);
	put_segment(&ddp, "01234567", 8);
	peer_respond(be_get32(taken.payload), 0, "01234567", 8, false);
	ddp = send_header(8, true);
	make_fpdu(&fpdu, &ddp, "01234567", 8);
	fpdu.bytes[fpdu.size - 1] ^= 1;
	put_fpdu(&fpdu);
	expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
	expect_dto(1000, DAT_DTO_ERR_TRANSPORT, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(2, 0, 2), NULL);
	end_flow();
}

/* DDP-28 RDMAP-39: the last byte of the CRC is missing */
static void message__last_byte_missing__no_completion(void **state)
{
	static uint8_t bytes[LARGE];
	struct taken taken;
	struct fpdu fpdu;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		size_t size = i & 1 ? LARGE : 5;
		bool is_read = i & 2;
		struct iw_ddp ddp;

		be_calling_with(i & 4 ? FLAG_C : 0, 4, 4);
		get_fpdu(&taken);
		if (is_read) {
			post_read_at(0, size, 7, 0, 0);
			get_fpdu(&taken);
			ddp = (struct iw_ddp){.is_tagged = true,
					      .is_last = true,
					      .opcode = IW_OP_READ_RESPONSE,
					      .stag = be_get32(taken.payload)};
		} else {
			post_recv_at(0, size);
			ddp = send_header(0, true);
		}
		make_fpdu(&fpdu, &ddp, bytes, size);
		put(flow.fd, fpdu.bytes, fpdu.size - 1);
		expect_served();
		expect_quiet(stage.evd);
		put(flow.fd, fpdu.bytes + fpdu.size - 1, 1);
		expect_dto(0, DAT_DTO_SUCCESS, size);
		hang_up();
	}
}

/* --- messages that wait --- */

/* DTO-117 DTO-104 DTO-105 DDP-17 RDMAP-27: a Read Request behind it is answered */
static void send__waits_for_a_receive__the_rest_goes_on(void **state)
{
	const struct iw_read_request request = {.sink_stag = 5, .source_stag = 99};
	uint8_t bytes[1024];
	struct taken taken;

	(void)state;
	be_called(0);
	make_pattern(bytes, sizeof(bytes));
	peer_send(bytes, sizeof(bytes));
	peer_write(flow.rkey, address_of(flow.region + 50000), bytes, sizeof(bytes));
	peer_send("second", 6);
	peer_read(&request);
	get_fpdu(&taken); /* the answer: all before it is carried out */
	assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
	expect_quiet(stage.evd);
	expect_pattern(flow.region + 50000, sizeof(bytes));
	post_recv_at(0, sizeof(bytes));
	expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
	expect_pattern(flow.region, sizeof(bytes));
	expect_quiet(stage.evd);
	post_recv_at(2000, 10);
	expect_dto(2000, DAT_DTO_SUCCESS, 6);
	hang_up();
}

/* Sends from a thread, because TCP does not take all of it at once. */
static struct {
	uint8_t bytes[4u * 1024u * 1024u];
	size_t size;
} flood;

static void *put_flood(void *argument)
{
	size_t at = 0;

	while (at < flood.size) {
		ssize_t count = send(flow.fd, flood.bytes + at, flood.size - at, MSG_NOSIGNAL);

		if (count <= 0)
			return NULL;
		at += (size_t)count;
	}
	return argument;
}

#define FLOOD 60u      /* messages, */
#define MESSAGE 65000u /* each so long: much more than the spill space */

static void make_flood(void)
{
	static uint8_t bytes[MESSAGE];
	struct fpdu fpdu;

	make_pattern(bytes, sizeof(bytes));
	flood.size = 0;
	for (unsigned i = 0; i < FLOOD; i++) {
		struct iw_ddp ddp = send_header(0, true);

		bytes[0] = (uint8_t)i;
		make_fpdu(&fpdu, &ddp, bytes, MESSAGE);
		assert_true(flood.size + fpdu.size <= sizeof(flood.bytes));
		memcpy(flood.bytes + flood.size, fpdu.bytes, fpdu.size);
		flood.size += fpdu.size;
	}
}

/* DDP-17 IWCM-42 DTO-104: when the space is full the socket is not read; others go on */
static void sends__more_than_the_spill_space__all_delivered_later(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_called(has_crc ? FLAG_C : 0);
		make_flood();
		assert_int_equal(pthread_create(&thread, NULL, put_flood, &flood), 0);
		expect_served();
		expect_quiet(stage.evd);
		for (unsigned i = 0; i < FLOOD; i++) {
			post_recv_at(0, MESSAGE);
			expect_dto(0, DAT_DTO_SUCCESS, MESSAGE);
			assert_int_equal(flow.region[0], i);
			flow.region[0] = 0;
			expect_pattern(flow.region, MESSAGE);
		}
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, &flood);
		hang_up();
	}
}

/* DDP-17 DTO-117: behind a message that does not fit into the space are an answer and a Read
 * Request; they are looked at as soon as there is room, though no Receive is left */
static void sends__spill_space_full__the_rest_when_there_is_room(void **state)
{
	enum { TOO_MANY = 18 }; /* for the spill space of 1 MiB */
	static uint8_t bytes[60000];
	const struct iw_read_request request = {.sink_stag = 5, .source_stag = 99};
	struct taken taken;

	(void)state;
	be_called(0);
	for (unsigned i = 0; i < TOO_MANY; i++)
		peer_send(bytes, sizeof(bytes));
	peer_read(&request);
	expect_served();
	expect_silence(flow.fd);
	post_recv_at(0, sizeof(bytes));
	expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_READ_RESPONSE);
	for (unsigned i = 1; i < TOO_MANY; i++) {
		post_recv_at(0, sizeof(bytes));
		expect_dto(0, DAT_DTO_SUCCESS, sizeof(bytes));
	}
	hang_up();
}

/* IWCM-41 IWCM-42: an FPDU that is never finished takes one Receive, and a disconnect is at once */
static void fpdu__never_finished__disconnect_is_at_once(void **state)
{
	static const size_t parts[] = {1, 2, 19, 20, 1000, 9000};
	static uint8_t bytes[60000];
	struct fpdu fpdu;
	struct iw_ddp ddp;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		be_called(0);
		post_recv_at(0, sizeof(bytes));
		post_recv_at(100000, sizeof(bytes));
		ddp = send_header(0, true);
		make_fpdu(&fpdu, &ddp, bytes, sizeof(bytes));
		put(flow.fd, fpdu.bytes, parts[i]);
		expect_served();
		expect_quiet(stage.evd);
		ok(core_ep_disconnect(flow.ep, DAT_CLOSE_GRACEFUL_FLAG));
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		expect_dto(100000, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_end(flow.fd);
		end_flow();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(send__begun_and_then_wrong_opcode__receive_gets_bad_response),
		TEST(stream__cut_at_each_byte__the_same),
		TEST(stream__large_segments_in_pieces__the_same),
		TEST(fpdu__reserved_bits_pad_and_crc_field__ignored),
		TEST(fpdu__largest_and_empty_ones__taken),
		TEST(crc__each_byte_damaged__nothing_delivered),
		TEST(crc__damaged_second_segment__transport_error),
		TEST(message__last_byte_missing__no_completion),
		TEST(send__waits_for_a_receive__the_rest_goes_on),
		TEST(sends__more_than_the_spill_space__all_delivered_later),
		TEST(sends__spill_space_full__the_rest_when_there_is_room),
		TEST(fpdu__never_finished__disconnect_is_at_once),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
