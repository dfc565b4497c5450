// SPDX-License-Identifier: BSD-2-Clause
/* Headers of DDP segments and RDMAP messages: what is built, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "edge.h"
#include "soft/iwarp/wire/formats.h"

#define OPCODES 16

/* The queue of each opcode; -1: it is tagged; -2: there is none. */
static const int queues[OPCODES] = {-1, 1, -1, 0, 0, 0, 0, 2, -2, -2, -2, -2, -2, -2, -2, -2};

/* An untagged header: opcode and queue, MSN 0x01020304, MO 0x05060708, 4 bytes in front of them. */
static void make_untagged(uint8_t out[IW_UNTAGGED_HEAD], unsigned opcode, uint32_t queue)
{
	static const uint8_t tail[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	out[0] = 0x41;
	out[1] = (uint8_t)(0x40 | opcode);
	memset(out + 2, 0xdd, 4);
	for (int i = 0; i < 4; i++)
		out[6 + i] = (uint8_t)(queue >> (24 - 8 * i));
	memcpy(out + 10, tail, 8);
}

static iw_error get(const uint8_t *bytes, uint32_t ulpdu, struct iw_ddp *ddp)
{
	uint32_t there = ulpdu < IW_UNTAGGED_HEAD ? ulpdu : IW_UNTAGGED_HEAD;

	return iw_ddp_get(edge_copy(bytes, there), ulpdu, ddp);
}

/* What the two control bytes are worth, if the rest is right. */
static iw_error expected_verdict(unsigned ddp, unsigned rdmap)
{
	bool is_tagged = ddp >= 0x80;
	unsigned opcode = rdmap % 16;

	if (ddp % 4 != 1)
		return is_tagged ? IW_ERROR(1, 1, 0x04) : IW_ERROR(1, 2, 0x06);
	if (rdmap >> 6 != 1)
		return IW_ERROR(0, 2, 0x05);
	if (opcode >= 8 || is_tagged != (queues[opcode] == -1))
		return IW_ERROR(0, 2, 0x06);
	return IW_NO_ERROR;
}

/* DDP-01 DDP-02 DDP-03 RDMAP-01 RDMAP-02 RDMAP-03 RDMAP-04 RDMAP-05: all values of both bytes */
static void control__each_value__as_in_the_tables(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 65536; i++) {
		unsigned ddp = i >> 8, rdmap = i & 0xff;
		int queue = queues[rdmap % 16];
		uint8_t bytes[IW_UNTAGGED_HEAD];
		struct iw_ddp header;
		iw_error error;

		make_untagged(bytes, 0, queue > 0 ? (uint32_t)queue : 0);
		bytes[0] = (uint8_t)ddp;
		bytes[1] = (uint8_t)rdmap;
		error = get(bytes, IW_UNTAGGED_HEAD, &header);
		assert_int_equal(error, expected_verdict(ddp, rdmap));
		if (error != IW_NO_ERROR)
			continue;
		assert_int_equal(header.is_tagged, (ddp & 0x80) != 0);
		assert_int_equal(header.is_last, (ddp & 0x40) != 0);
		assert_int_equal(header.opcode, rdmap % 16);
	}
}

/* DDP-05 RDMAP-06: all pairs of opcode and queue, and queues that are not in use */
static void queue__of_each_opcode__no_other(void **state)
{
	static const uint32_t tried[] = {0,	1,	  2,	      3,	  4,
					 0x100, 0x010000, 0x01000000, 0x80000000, 0xffffffff};

	(void)state;
	for (unsigned opcode = 0; opcode < 8; opcode++) {
		if (queues[opcode] < 0)
			continue;
		for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
			uint8_t bytes[IW_UNTAGGED_HEAD];
			struct iw_ddp header;
			bool is_valid = tried[i] == (uint32_t)queues[opcode];

			make_untagged(bytes, opcode, tried[i]);
			assert_int_equal(get(bytes, IW_UNTAGGED_HEAD, &header),
					 is_valid ? IW_NO_ERROR : IW_ERROR(1, 2, 0x01));
		}
	}
}

/* MPA-60: a ULPDU that ends before its header does, whatever the bytes that are there */
static void length__below_header__refused(void **state)
{
	uint8_t bytes[IW_UNTAGGED_HEAD];
	struct iw_ddp header;

	(void)state;
	for (unsigned first = 0; first < 256; first++) {
		uint32_t head = first & 0x80 ? 14 : 18;

		make_untagged(bytes, IW_OP_SEND, 0);
		bytes[0] = (uint8_t)first;
		bytes[1] = first & 0x80 ? 0x40 : 0x43;
		assert_int_equal(iw_ddp_head_size((uint8_t)first), head);
		for (uint32_t ulpdu = 0; ulpdu < head; ulpdu++)
			assert_int_equal(get(bytes, ulpdu, &header), IW_ERROR(1, 0, 0x00));
		if (first % 4 == 1) {
			assert_int_equal(get(bytes, head, &header), IW_NO_ERROR);
			assert_int_equal(get(bytes, IW_ULPDU_MAX, &header), IW_NO_ERROR);
		}
	}
}

/* DDP-04: a Read Response's last segment */
static void tagged__known_bytes__both_ways(void **state)
{
	static const uint8_t expected[] = {0xc1, 0x42, 0x12, 0x34, 0x56, 0x78, 0x01,
					   0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
	const struct iw_ddp ddp = {
		.is_tagged = true,
		.is_last = true,
		.opcode = IW_OP_READ_RESPONSE,
		.stag = 0x12345678,
		.offset = UINT64_C(0x0123456789abcdef),
		.invalidate = 0xeeeeeeee,
		.queue = 0xeeeeeeee,
	};
	uint8_t out[IW_UNTAGGED_HEAD];
	struct iw_ddp back;

	(void)state;
	assert_int_equal(iw_ddp_put(&ddp, out), sizeof(expected));
	assert_memory_equal(out, expected, sizeof(expected));
	memset(&back, 0xee, sizeof(back));
	assert_int_equal(get(expected, sizeof(expected), &back), IW_NO_ERROR);
	assert_true(back.is_tagged && back.is_last && back.opcode == IW_OP_READ_RESPONSE);
	assert_int_equal(back.stag, ddp.stag);
	assert_true(back.offset == ddp.offset);
	assert_int_equal(back.invalidate | back.queue | back.msn | back.mo, 0);
}

/* DDP-04 DDP-05 RDMAP-03 RDMAP-08: each untagged opcode, the STag in those that invalidate only */
static void untagged__known_bytes__both_ways(void **state)
{
	(void)state;
	for (unsigned opcode = 0; opcode < 8; opcode++) {
		bool has_stag = opcode == 4 || opcode == 6;
		struct iw_ddp ddp = {
			.opcode = (uint8_t)opcode,
			.is_last = true,
			.stag = 0xeeeeeeee,
			.offset = UINT64_MAX,
			.invalidate = 0xdddddddd,
			.msn = 0x01020304,
			.mo = 0x05060708,
		};
		uint8_t expected[IW_UNTAGGED_HEAD], out[IW_UNTAGGED_HEAD];
		struct iw_ddp back;

		if (queues[opcode] < 0)
			continue;
		ddp.queue = (uint32_t)queues[opcode];
		make_untagged(expected, opcode, ddp.queue);
		memset(&back, 0xee, sizeof(back));
		assert_int_equal(get(expected, IW_UNTAGGED_HEAD, &back), IW_NO_ERROR);
		assert_true(!back.is_tagged && back.is_last && back.opcode == opcode);
		assert_int_equal(back.invalidate, has_stag ? 0xdddddddd : 0);
		assert_int_equal(back.queue, ddp.queue);
		assert_int_equal(back.msn, 0x01020304);
		assert_int_equal(back.mo, 0x05060708);
		assert_int_equal(back.stag | back.offset, 0);

		if (!has_stag)
			memset(expected + 2, 0, 4);
		assert_int_equal(iw_ddp_put(&ddp, out), IW_UNTAGGED_HEAD);
		assert_memory_equal(out, expected, IW_UNTAGGED_HEAD);
		ddp.is_last = false;
		iw_ddp_put(&ddp, out);
		assert_int_equal(out[0], 0x01);
	}
}

/* RDMAP-09 MPA-48 */
static void read_request__known_bytes__both_ways(void **state)
{
	static const uint8_t expected[IW_READ_REQUEST_SIZE] = {
		0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32,
		0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
	};
	const struct iw_read_request read = {
		.sink_stag = 0x11121314,
		.sink_offset = UINT64_C(0x2122232425262728),
		.size = 0x31323334,
		.source_stag = 0x41424344,
		.source_offset = UINT64_C(0x5152535455565758),
	};
	uint8_t out[IW_READ_REQUEST_SIZE];
	struct iw_read_request back;

	(void)state;
	iw_read_request_put(&read, out);
	assert_memory_equal(out, expected, sizeof(expected));
	iw_read_request_get(edge_copy(expected, sizeof(expected)), &back);
	assert_int_equal(back.sink_stag, read.sink_stag);
	assert_true(back.sink_offset == read.sink_offset);
	assert_int_equal(back.size, read.size);
	assert_int_equal(back.source_stag, read.source_stag);
	assert_true(back.source_offset == read.source_offset);
	assert_int_equal(IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE, 46);
}

/* RDMAP-10 */
static void read_request__not_one_segment__refused(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_READ_REQUEST, .queue = 1, .is_last = true};

	(void)state;
	for (uint32_t payload = 0; payload < 70; payload++) {
		iw_error expected = payload > 28   ? IW_ERROR(1, 2, 0x05)
				    : payload < 28 ? IW_ERROR(1, 2, 0x04)
						   : IW_NO_ERROR;

		assert_int_equal(iw_read_request_check(&ddp, 18 + payload), expected);
	}
	assert_int_equal(iw_read_request_check(&ddp, IW_ULPDU_MAX), IW_ERROR(1, 2, 0x05));
	ddp.mo = 4;
	assert_int_equal(iw_read_request_check(&ddp, 46), IW_ERROR(1, 2, 0x04));
	ddp.mo = 0;
	ddp.is_last = false;
	assert_int_equal(iw_read_request_check(&ddp, 46), IW_ERROR(1, 2, 0x04));
	assert_int_equal(iw_read_request_check(&ddp, 47), IW_ERROR(1, 2, 0x05));
}

/* DDP-03 DDP-13 DDP-14 RDMAP-02 RDMAP-06 RDMAP-08: any other bit, but the 4 reserved bytes */
static void whole_send__one_bit_changed__no_more(void **state)
{
	const struct iw_ddp send = {.is_last = true, .opcode = IW_OP_SEND, .msn = 0x01020304};
	uint8_t bytes[IW_UNTAGGED_HEAD];
	bool is_solicited = true;

	(void)state;
	(void)iw_ddp_put(&send, bytes);
	assert_true(iw_ddp_is_whole_send(edge_copy(bytes, sizeof(bytes)), send.msn, &is_solicited));
	assert_false(is_solicited);
	for (unsigned bit = 0; bit < 8 * IW_UNTAGGED_HEAD; bit++) {
		bool is_reserved = bit / 8 >= 2 && bit / 8 < 6;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(iw_ddp_is_whole_send(bytes, send.msn, &is_solicited), is_reserved);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	bytes[1] ^= IW_OP_SEND ^ IW_OP_SEND_SOLICITED;
	assert_true(iw_ddp_is_whole_send(bytes, send.msn, &is_solicited));
	assert_true(is_solicited);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__each_value__as_in_the_tables),
		cmocka_unit_test(queue__of_each_opcode__no_other),
		cmocka_unit_test(length__below_header__refused),
		cmocka_unit_test(tagged__known_bytes__both_ways),
		cmocka_unit_test(untagged__known_bytes__both_ways),
		cmocka_unit_test(read_request__known_bytes__both_ways),
		cmocka_unit_test(read_request__not_one_segment__refused),
		cmocka_unit_test(whole_send__one_bit_changed__no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
