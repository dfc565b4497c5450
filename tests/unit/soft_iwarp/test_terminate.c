// SPDX-License-Identifier: BSD-2-Clause
/* The Terminate message: which headers it carries, and both orders in which it may arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "edge.h"
#include "soft/iwarp/wire/formats.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum carries {
	NOTHING,
	SEGMENT, /* M and D */
	REQUEST, /* M and D, and R if the offender is a Read Request */
};

/* The registry of RFC 6580, and what TERM-04 says about each. */
static const struct {
	iw_error error;
	enum carries carries;
} known[] = {
	{IW_ERROR(0, 0, 0x00), NOTHING}, {IW_ERROR(0, 1, 0x00), REQUEST},
	{IW_ERROR(0, 1, 0x01), REQUEST}, {IW_ERROR(0, 1, 0x02), REQUEST},
	{IW_ERROR(0, 1, 0x03), REQUEST}, {IW_ERROR(0, 1, 0x04), REQUEST},
	{IW_ERROR(0, 1, 0x09), REQUEST}, {IW_ERROR(0, 1, 0xff), REQUEST},
	{IW_ERROR(0, 2, 0x05), NOTHING}, {IW_ERROR(0, 2, 0x06), NOTHING},
	{IW_ERROR(0, 2, 0x07), SEGMENT}, {IW_ERROR(0, 2, 0x08), NOTHING},
	{IW_ERROR(0, 2, 0x09), SEGMENT}, {IW_ERROR(0, 2, 0xff), NOTHING},
	{IW_ERROR(1, 0, 0x00), NOTHING}, {IW_ERROR(1, 1, 0x00), SEGMENT},
	{IW_ERROR(1, 1, 0x01), SEGMENT}, {IW_ERROR(1, 1, 0x02), SEGMENT},
	{IW_ERROR(1, 1, 0x03), SEGMENT}, {IW_ERROR(1, 1, 0x04), NOTHING},
	{IW_ERROR(1, 2, 0x01), SEGMENT}, {IW_ERROR(1, 2, 0x02), SEGMENT},
	{IW_ERROR(1, 2, 0x03), SEGMENT}, {IW_ERROR(1, 2, 0x04), SEGMENT},
	{IW_ERROR(1, 2, 0x05), SEGMENT}, {IW_ERROR(1, 2, 0x06), NOTHING},
	{IW_ERROR(2, 0, 0x01), NOTHING}, {IW_ERROR(2, 0, 0x02), NOTHING},
	{IW_ERROR(2, 0, 0x03), NOTHING}, {IW_ERROR(2, 0, 0x04), NOTHING},
	{IW_ERROR(2, 0, 0x05), NOTHING}, {IW_ERROR(2, 0, 0x06), NOTHING},
	{IW_ERROR(2, 0, 0x07), NOTHING},
};

static bool is_in_registry(iw_error error)
{
	for (size_t i = 0; i < COUNT(known); i++) {
		if (known[i].error == error)
			return true;
	}
	return false;
}

/* Headers of segments with reserved bits set, which have to come back as they were. */
static const struct iw_offender write_offender = {
	.ulpdu = 0x0203,
	.head = {0xfd, 0x70, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xee, 0xee, 0xee, 0xee},
};
static const struct iw_offender read_offender = {
	.ulpdu = 46,
	.head = {0x7d, 0x71, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0},
	.request = {1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14,
		    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
	.has_request = true,
};

static bool get(const uint8_t *bytes, uint32_t size, struct iw_terminate *out)
{
	memset(out, 0xee, sizeof(*out));
	return iw_terminate_get(edge_copy(bytes, size), size, out);
}

static void check_segment(const struct iw_terminate *got, const struct iw_offender *offender)
{
	const struct iw_read_request *request = &got->request;

	assert_true(got->has_segment);
	assert_true(got->segment.is_last);
	if (offender == &write_offender) {
		assert_int_equal(got->segment.opcode, IW_OP_WRITE);
		assert_int_equal(got->segment.stag, 0x01020304);
		assert_true(got->segment.offset == UINT64_C(0x05060708090a0b0c));
		return;
	}
	assert_int_equal(got->segment.opcode, IW_OP_READ_REQUEST);
	assert_int_equal(got->segment.msn, 9);
	if (!got->has_request)
		return;
	assert_int_equal(request->sink_stag, 0x01020304);
	assert_true(request->sink_offset == UINT64_C(0x05060708090a0b0c));
	assert_int_equal(request->size, 0x0d0e0f10);
	assert_int_equal(request->source_stag, 0x11121314);
	assert_true(request->source_offset == UINT64_C(0x15161718191a1b1c));
}

/* TERM-02 TERM-03 TERM-05: byte by byte, the headers as they came */
static void put__known_errors__known_bytes(void **state)
{
	static const uint8_t wrong_write[4 + 2] = {0x11, 0x01, 0xc0, 0, 0x02, 0x03};
	static const uint8_t wrong_read[4 + 2] = {0x01, 0x02, 0xe0, 0, 0, 46};
	static const uint8_t wrong_crc[4] = {0x20, 0x02, 0, 0};
	uint8_t out[IW_TERMINATE_MAX];

	(void)state;
	assert_int_equal(iw_terminate_put(IW_ERROR(1, 1, 0x01), &write_offender, out), 6 + 14);
	assert_memory_equal(out, wrong_write, 6);
	assert_memory_equal(out + 6, write_offender.head, 14);
	assert_int_equal(iw_terminate_put(IW_ERROR(0, 1, 0x02), &read_offender, out), 6 + 18 + 28);
	assert_memory_equal(out, wrong_read, 6);
	assert_memory_equal(out + 6, read_offender.head, 18);
	assert_memory_equal(out + 24, read_offender.request, 28);
	assert_int_equal(iw_terminate_put(IW_ERROR(2, 0, 0x02), &write_offender, out), 4);
	assert_memory_equal(out, wrong_crc, 4);
	assert_int_equal(iw_terminate_put(IW_ERROR(1, 1, 0x01), NULL, out), 4);
	assert_int_equal(out[2], 0);
}

/* TERM-02 TERM-04: each error of the registry, with either offender, and back */
static void put__each_error__headers_of_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * COUNT(known); i++) {
		const struct iw_offender *offender = i % 2 ? &read_offender : &write_offender;
		uint32_t head = offender == &write_offender ? 14 : 18;
		iw_error error = known[i / 2].error;
		enum carries carries = known[i / 2].carries;
		bool has_request = carries == REQUEST && offender->has_request;
		uint32_t expected = 4 + (carries ? 2 + head : 0) + (has_request ? 28 : 0);
		uint8_t out[IW_TERMINATE_MAX];
		struct iw_terminate got;

		memset(out, 0xee, sizeof(out));
		assert_int_equal(iw_terminate_put(error, offender, out), expected);
		assert_int_equal(out[0] << 8 | out[1], error);
		assert_int_equal(out[2], has_request ? 0xe0 : carries ? 0xc0 : 0);
		assert_int_equal(out[3], 0);
		assert_true(get(out, expected, &got));
		assert_int_equal(got.error, error);
		assert_int_equal(got.has_segment, carries != NOTHING);
		assert_int_equal(got.has_request, has_request);
		if (carries)
			check_segment(&got, offender);
	}
}

/* Turns a Terminate into what siw sends on a little-endian host. */
static void turn_to_siw(uint8_t *bytes)
{
	uint8_t flags = bytes[2];

	bytes[0] = (uint8_t)(bytes[0] << 4 | bytes[0] >> 4);
	bytes[2] =
		(uint8_t)((flags & 0x80 ? 1 : 0) | (flags & 0x40 ? 2 : 0) | (flags & 0x20 ? 4 : 0));
}

/* TERM-14: the bytes that the row names, with the headers that their flags announce */
static void get__bytes_of_siw__understood(void **state)
{
	uint8_t bytes[IW_TERMINATE_MAX] = {0x10, 0x00, 0x07, 0x00, 0, 46};
	static const uint8_t wrong_crc[4] = {0x02, 0x02, 0x00, 0x00};
	struct iw_terminate got;

	(void)state;
	memcpy(bytes + 6, read_offender.head, 18);
	memcpy(bytes + 24, read_offender.request, 28);
	assert_true(get(bytes, 52, &got));
	assert_int_equal(got.error, IW_ERROR(0, 1, 0x00));
	assert_true(got.has_request);
	check_segment(&got, &read_offender);

	memcpy(bytes, (const uint8_t[]){0x11, 0x00, 0x03, 0x00, 0, 14}, 6);
	memcpy(bytes + 6, write_offender.head, 14);
	assert_true(get(bytes, 20, &got));
	assert_int_equal(got.error, IW_ERROR(1, 1, 0x00));
	assert_false(got.has_request);
	check_segment(&got, &write_offender);

	assert_true(get(wrong_crc, 4, &got));
	assert_int_equal(got.error, IW_ERROR(2, 0, 0x02));
	assert_false(got.has_segment || got.has_request);
}

/* TERM-14: each error in the order of siw; without headers, as far as the two can be told apart */
static void get__each_error_of_siw__understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * COUNT(known); i++) {
		const struct iw_offender *offender = i % 2 ? &read_offender : &write_offender;
		iw_error error = known[i / 2].error;
		uint8_t out[IW_TERMINATE_MAX];
		uint32_t size = iw_terminate_put(error, offender, out);
		struct iw_terminate got;
		iw_error direct;

		turn_to_siw(out);
		direct = (iw_error)(out[0] << 8 | out[1]);
		assert_true(get(out, size, &got));
		assert_int_equal(got.error, size == 4 && is_in_registry(direct) ? direct : error);
		assert_int_equal(got.has_segment, known[i / 2].carries != NOTHING);
		if (got.has_segment)
			check_segment(&got, offender);
	}
}

/* TERM-13 TERM-14: every pair of first bytes without headers; a known error is never turned */
static void get__each_code__right_order_first(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 65536; i++) {
		const uint8_t bytes[4] = {(uint8_t)(i >> 8), (uint8_t)i, 0x18, 0xff};
		iw_error direct = (iw_error)i;
		iw_error swapped = IW_ERROR(bytes[0] & 15, bytes[0] >> 4, bytes[1]);
		bool is_turned = !is_in_registry(direct) && is_in_registry(swapped);
		struct iw_terminate got;

		assert_int_equal(get(bytes, 4, &got), direct != IW_NO_ERROR);
		assert_int_equal(got.error, is_turned ? swapped : direct);
		assert_false(got.has_segment || got.has_request);
	}
}

/* TERM-13: every cut and every excess of each form; nothing is read behind the end */
static void get__wrong_size__malformed(void **state)
{
	static const iw_error errors[] = {IW_ERROR(0, 1, 0x00), IW_ERROR(1, 2, 0x03),
					  IW_ERROR(2, 0, 0x02)};

	(void)state;
	for (size_t i = 0; i < 4 * COUNT(errors); i++) {
		const struct iw_offender *offender = i & 1 ? &read_offender : &write_offender;
		uint8_t bytes[IW_TERMINATE_MAX + 1] = {0};
		uint32_t size = iw_terminate_put(errors[i / 4], offender, bytes);
		struct iw_terminate got;

		if (i & 2)
			turn_to_siw(bytes);
		for (uint32_t cut = 0; cut < size; cut++) {
			assert_false(get(bytes, cut, &got));
			assert_int_equal(got.error == IW_NO_ERROR, cut < 4);
			assert_false(got.has_request);
		}
		assert_true(get(bytes, size, &got));
		assert_false(get(bytes, size + 1, &got));
	}
}

/* TERM-13: headers that no segment of ours has, and a Read Request without one */
static void get__foreign_headers__malformed(void **state)
{
	uint8_t bytes[IW_TERMINATE_MAX];
	struct iw_terminate got;

	(void)state;
	assert_int_equal(iw_terminate_put(IW_ERROR(0, 1, 0x00), &read_offender, bytes), 52);
	bytes[6] ^= 0x02; /* the version of DDP */
	assert_false(get(bytes, 52, &got));
	bytes[6] ^= 0x02;
	bytes[7] = 0x47; /* no Read Request */
	bytes[15] = 2;
	assert_false(get(bytes, 52, &got));
	assert_false(got.has_request);
	bytes[2] = 0xc0;
	assert_true(get(bytes, 24, &got));

	memcpy(bytes, (const uint8_t[]){0x01, 0x00, 0xa0, 0}, 4); /* R without D */
	assert_false(get(bytes, 4 + 28, &got));
	assert_false(get(bytes, 4 + 2 + 28, &got));
	assert_false(got.has_request);
}

/* TERM-03: a header whose length is not valid names no segment */
static void get__segment_without_length__not_named(void **state)
{
	uint8_t bytes[IW_TERMINATE_MAX];
	struct iw_terminate got;

	(void)state;
	assert_int_equal(iw_terminate_put(IW_ERROR(1, 1, 0x00), &write_offender, bytes), 20);
	bytes[2] = 0x40;
	assert_true(get(bytes, 20, &got));
	assert_false(got.has_segment);
	bytes[2] = 0xc7; /* the reserved bits mean nothing if M, D or R stand in their places */
	assert_true(get(bytes, 20, &got));
	assert_int_equal(got.error, IW_ERROR(1, 1, 0x00));
	assert_true(got.has_segment);
	assert_false(got.has_request);
}

/* Each code of the registry has a name of its own, except 0xff, which is "unspecified" there. */
static void error_text__each_code__named(void **state)
{
	(void)state;
	assert_string_equal(iw_error_text(IW_ERROR(1, 2, 5)),
			    "DDP: message too long for its buffer");
	assert_string_equal(iw_error_text(IW_ERROR(2, 0, 6)), "MPA: insufficient IRD");
	for (unsigned int error = 0; error < 0x4000; error++) {
		bool is_named = strcmp(iw_error_text((iw_error)error), "unspecified") != 0;

		assert_int_equal(is_named,
				 iw_error_is_known((iw_error)error) && (error & 0xff) != 0xff);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__known_errors__known_bytes),
		cmocka_unit_test(put__each_error__headers_of_the_table),
		cmocka_unit_test(get__bytes_of_siw__understood),
		cmocka_unit_test(get__each_error_of_siw__understood),
		cmocka_unit_test(get__each_code__right_order_first),
		cmocka_unit_test(get__wrong_size__malformed),
		cmocka_unit_test(get__foreign_headers__malformed),
		cmocka_unit_test(get__segment_without_length__not_named),
		cmocka_unit_test(error_text__each_code__named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
