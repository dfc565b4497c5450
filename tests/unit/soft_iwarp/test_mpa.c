// SPDX-License-Identifier: BSD-2-Clause
/* The frames of the MPA set-up, and the lengths of FPDUs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "edge.h"
#include "soft/iwarp/wire/formats.h"

#define FLAGS 16
#define REVISION 17
#define LENGTH 18

/* A request of ours: CRC, S; A, C, D; IRD 17, ORD 5; private data "hi". */
static const uint8_t our_request[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x71, 0x20, 0x46, 0x72,
	0x61, 0x6d, 0x65, 0x50, 2,    0,    6,	  0x80, 0x11, 0xc0, 0x05, 'h',	'i',
};

/* A reply to it with R: S; A, C; IRD 0x3ffe, ORD 0; no private data. */
static const uint8_t our_reply[] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52, 0x65, 0x70, 0x20, 0x46,
	0x72, 0x61, 0x6d, 0x65, 0x30, 2,    0,	  4,	0xbf, 0xfe, 0x80, 0,
};

static const char *const keys[] = {"MPA ID Req Frame", "MPA ID Rep Frame"};

/* A frame without enhanced data whose private data are 0, 1, 2, ... Returns its size. */
static size_t make_frame(uint8_t *out, bool is_reply, uint8_t flags, uint8_t revision,
			 uint16_t length)
{
	memcpy(out, keys[is_reply], 16);
	out[FLAGS] = flags;
	out[REVISION] = revision;
	out[LENGTH] = (uint8_t)(length >> 8);
	out[LENGTH + 1] = (uint8_t)length;
	for (unsigned i = 0; i < length; i++)
		out[IW_MPA_HEAD + i] = (uint8_t)i;
	return IW_MPA_HEAD + length;
}

static int get(const uint8_t *bytes, size_t size, bool is_reply, struct iw_mpa *mpa)
{
	memset(mpa, 0xee, sizeof(*mpa));
	return iw_mpa_get(edge_copy(bytes, size), size, is_reply, mpa);
}

static int verdict(const uint8_t *bytes, size_t size, bool is_reply)
{
	struct iw_mpa mpa;

	return get(bytes, size, is_reply, &mpa);
}

/* MPA-01 MPA-02 MPA-03 MPA-26 MPA-27 */
static void frame__of_ours__known_bytes(void **state)
{
	const struct iw_mpa request = {
		.has_crc = true,
		.revision = 2,
		.is_enhanced = true,
		.is_peer_to_peer = true,
		.rtr = IW_RTR_WRITE | IW_RTR_READ,
		.ird = 17,
		.ord = 5,
		.private_data = (const uint8_t *)"hi",
		.private_size = 2,
	};
	const struct iw_mpa reply = {
		.is_reply = true,
		.is_rejected = true,
		.revision = 2,
		.is_enhanced = true,
		.is_peer_to_peer = true,
		.rtr = IW_RTR_WRITE,
		.ird = IW_MPA_DEPTH_MAX,
	};
	uint8_t out[IW_MPA_FRAME_MAX];

	(void)state;
	assert_int_equal(iw_mpa_put(&request, out), sizeof(our_request));
	assert_memory_equal(out, our_request, sizeof(our_request));
	assert_int_equal(iw_mpa_put(&reply, out), sizeof(our_reply));
	assert_memory_equal(out, our_reply, sizeof(our_reply));
}

/* MPA-01: also in a reply with R the private data begin behind 4 enhanced bytes */
static void frame__known_bytes__understood(void **state)
{
	struct iw_mpa mpa;

	(void)state;
	assert_int_equal(get(our_request, sizeof(our_request), false, &mpa), sizeof(our_request));
	assert_true(!mpa.is_reply && !mpa.is_rejected && !mpa.has_markers && mpa.has_crc);
	assert_true(mpa.is_enhanced && mpa.is_peer_to_peer);
	assert_int_equal(mpa.revision, 2);
	assert_int_equal(mpa.rtr, IW_RTR_WRITE | IW_RTR_READ);
	assert_int_equal(mpa.ird, 17);
	assert_int_equal(mpa.ord, 5);
	assert_int_equal(mpa.private_size, 2);
	assert_memory_equal(mpa.private_data, "hi", 2);

	assert_int_equal(get(our_reply, sizeof(our_reply), true, &mpa), sizeof(our_reply));
	assert_true(mpa.is_reply && mpa.is_rejected && !mpa.has_markers && !mpa.has_crc);
	assert_true(mpa.is_enhanced && mpa.is_peer_to_peer);
	assert_int_equal(mpa.rtr, IW_RTR_WRITE);
	assert_int_equal(mpa.ird, IW_MPA_DEPTH_MAX);
	assert_int_equal(mpa.ord, 0);
	assert_int_equal(mpa.private_size, 0);
}

/* MPA-03 MPA-04 MPA-05 MPA-12: all flags of both frames and revisions */
static void flags__each_combination__known_ones_told(void **state)
{
	uint8_t bytes[IW_MPA_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < 1024; i++) {
		uint8_t flags = (uint8_t)i;
		bool is_reply = i & 0x100;
		uint8_t revision = i & 0x200 ? 2 : 1;
		bool is_enhanced = revision == 2 && (flags & 0x10);
		size_t size = make_frame(bytes, is_reply, flags, revision, 7);
		struct iw_mpa mpa;

		assert_int_equal(get(bytes, size, is_reply, &mpa), size);
		assert_int_equal(mpa.is_reply, is_reply);
		assert_int_equal(mpa.has_markers, (flags & 0x80) != 0);
		assert_int_equal(mpa.has_crc, (flags & 0x40) != 0);
		assert_int_equal(mpa.is_rejected, is_reply && (flags & 0x20));
		assert_int_equal(mpa.is_enhanced, is_enhanced);
		assert_int_equal(mpa.revision, revision);
		assert_int_equal(mpa.private_size, is_enhanced ? 3 : 7);
		assert_int_equal(mpa.private_data[0], is_enhanced ? 4 : 0);
	}
}

/* MPA-04 MPA-05: reserved flags, R of a request and M that was not asked for are sent as 0 */
static void flags__sent__no_other(void **state)
{
	uint8_t out[IW_MPA_FRAME_MAX];
	struct iw_mpa mpa = {.revision = 1, .is_rejected = true};

	(void)state;
	iw_mpa_put(&mpa, out);
	assert_int_equal(out[FLAGS], 0);
	mpa.is_reply = true;
	iw_mpa_put(&mpa, out);
	assert_int_equal(out[FLAGS], 0x20);
	mpa = (struct iw_mpa){.revision = 1, .has_markers = true};
	iw_mpa_put(&mpa, out);
	assert_int_equal(out[FLAGS], 0x80);
}

/* MPA-10: of both frames, known as soon as its byte is there */
static void revision__each__only_1_and_2(void **state)
{
	uint8_t bytes[IW_MPA_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < 512; i++) {
		uint8_t revision = (uint8_t)i;
		bool is_reply = i & 0x100;
		bool is_valid = revision == 1 || revision == 2;
		size_t size = make_frame(bytes, is_reply, 0, revision, 0);

		assert_int_equal(verdict(bytes, REVISION, is_reply), 0);
		assert_int_equal(verdict(bytes, LENGTH, is_reply), is_valid ? 0 : -EPROTO);
		assert_int_equal(verdict(bytes, size, is_reply), is_valid ? (int)size : -EPROTO);
	}
}

/* MPA-07 MPA-08: refused without waiting for the bytes */
static void length__each__at_most_512(void **state)
{
	uint8_t bytes[IW_MPA_HEAD];

	(void)state;
	make_frame(bytes, true, 0, 1, 0);
	for (unsigned length = 0; length < 65536; length++) {
		bool is_valid = length <= 512;

		bytes[LENGTH] = (uint8_t)(length >> 8);
		bytes[LENGTH + 1] = (uint8_t)length;
		assert_int_equal(verdict(bytes, LENGTH + 1, true), length >> 8 > 2 ? -EPROTO : 0);
		if (length)
			assert_int_equal(verdict(bytes, sizeof(bytes), true),
					 is_valid ? 0 : -EPROTO);
	}
}

/* MPA-09: each byte of the key, as soon as it is there; the other frame's key; HTTP */
static void key__wrong__refused_at_once(void **state)
{
	uint8_t bytes[16];

	(void)state;
	for (int is_reply = 0; is_reply < 2; is_reply++) {
		for (size_t at = 0; at < 16; at++) {
			memcpy(bytes, keys[is_reply], 16);
			bytes[at] ^= 0x01;
			assert_int_equal(verdict(bytes, at, is_reply), 0);
			assert_int_equal(verdict(bytes, at + 1, is_reply), -EPROTO);
			assert_int_equal(verdict(bytes, 16, is_reply), -EPROTO);
		}
		memcpy(bytes, keys[!is_reply], 16);
		assert_int_equal(verdict(bytes, 9, is_reply), 0);
		assert_int_equal(verdict(bytes, 10, is_reply), -EPROTO);
		assert_int_equal(verdict((const uint8_t *)"GET / HTTP/1.1", 14, is_reply), -EPROTO);
	}
	assert_int_equal(verdict(bytes, 0, false), 0);
}

/* MPA-15: any piece from the front asks for more; what follows the frame is not part of it */
static void frame__in_pieces__whole_one_taken(void **state)
{
	uint8_t bytes[IW_MPA_FRAME_MAX + 9];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint16_t length = i & 2 ? 512 : 5;
		size_t size = make_frame(bytes, i & 1, 0x10, 2, length);
		struct iw_mpa mpa;

		for (size_t piece = 0; piece < size; piece++)
			assert_int_equal(verdict(bytes, piece, i & 1), 0);
		assert_int_equal(get(bytes, size, i & 1, &mpa), size);
		assert_int_equal(mpa.private_size, length - 4);
		assert_int_equal(mpa.private_data[0], 4);
		assert_int_equal(get(bytes, size + 9, i & 1, &mpa), size);
		assert_int_equal(mpa.private_size, length - 4);
	}
}

/* MPA-12: all of the private data, from byte 20 on */
static void private_data__without_enhanced_set_up__from_byte_20(void **state)
{
	uint8_t bytes[IW_MPA_FRAME_MAX];

	(void)state;
	for (unsigned length = 0; length <= 512; length++) {
		bool is_first = length % 2;
		size_t size = make_frame(bytes, false, is_first ? 0x10 : 0, is_first ? 1 : 2,
					 (uint16_t)length);
		struct iw_mpa mpa;

		assert_int_equal(get(bytes, size, false, &mpa), size);
		assert_false(mpa.is_enhanced);
		assert_int_equal(mpa.ird + mpa.ord + mpa.rtr + mpa.is_peer_to_peer, 0);
		assert_int_equal(mpa.private_size, length);
		assert_memory_equal(mpa.private_data, bytes + IW_MPA_HEAD, length);
	}
}

/* MPA-13: told when the frame is complete */
static void enhanced__too_short__refused(void **state)
{
	uint8_t bytes[IW_MPA_FRAME_MAX];
	struct iw_mpa mpa;

	(void)state;
	for (uint16_t length = 0; length < 4; length++) {
		for (int is_reply = 0; is_reply < 2; is_reply++) {
			size_t size = make_frame(bytes, is_reply, 0x50, 2, length);

			if (length)
				assert_int_equal(verdict(bytes, size - 1, is_reply), 0);
			assert_int_equal(get(bytes, size, is_reply, &mpa), -EMSGSIZE);
			assert_true(mpa.is_enhanced && mpa.has_crc);
			assert_int_equal(mpa.revision, 2);
		}
	}
	assert_int_equal(get(bytes, make_frame(bytes, false, 0x10, 2, 4), false, &mpa), 24);
	assert_int_equal(mpa.private_size, 0);
}

/* MPA-26 MPA-27 MPA-30: all bits of both words; B, C and D count with A only */
static void enhanced__each_value__comes_back(void **state)
{
	uint8_t bytes[24], out[IW_MPA_FRAME_MAX];

	(void)state;
	make_frame(bytes, false, 0x10, 2, 4);
	for (unsigned i = 0; i < 0x40000; i++) {
		uint16_t first = (uint16_t)(i < 0x20000 ? i : i * 40503u);
		uint16_t second = (uint16_t)(i < 0x20000 ? i * 30011u : i);
		unsigned rtr = (first & 0x4000 ? IW_RTR_SEND : 0) |
			       (second & 0x8000 ? IW_RTR_WRITE : 0) |
			       (second & 0x4000 ? IW_RTR_READ : 0);
		bool has_a = first & 0x8000;
		struct iw_mpa mpa;

		bytes[20] = (uint8_t)(first >> 8);
		bytes[21] = (uint8_t)first;
		bytes[22] = (uint8_t)(second >> 8);
		bytes[23] = (uint8_t)second;
		assert_int_equal(iw_mpa_get(bytes, 24, false, &mpa), 24);
		assert_int_equal(mpa.is_peer_to_peer, has_a);
		assert_int_equal(mpa.rtr, has_a ? rtr : 0);
		assert_int_equal(mpa.ird, first & 0x3fff);
		assert_int_equal(mpa.ord, second & 0x3fff);
		mpa.rtr = (uint8_t)rtr;
		assert_int_equal(iw_mpa_put(&mpa, out), 24);
		assert_memory_equal(out, bytes, 24);
	}
}

/* MPA-29: each of the eight offers */
static void rtr__each_offer__write_then_read_then_send(void **state)
{
	static const enum iw_rtr expected[8] = {
		[IW_RTR_NONE] = IW_RTR_WRITE,
		[IW_RTR_SEND] = IW_RTR_SEND,
		[IW_RTR_READ] = IW_RTR_READ,
		[IW_RTR_READ | IW_RTR_SEND] = IW_RTR_READ,
		[IW_RTR_WRITE] = IW_RTR_WRITE,
		[IW_RTR_WRITE | IW_RTR_SEND] = IW_RTR_WRITE,
		[IW_RTR_WRITE | IW_RTR_READ] = IW_RTR_WRITE,
		[IW_RTR_WRITE | IW_RTR_READ | IW_RTR_SEND] = IW_RTR_WRITE,
	};

	(void)state;
	for (uint8_t offer = 0; offer < 8; offer++)
		assert_int_equal(iw_mpa_choose_rtr(offer), expected[offer]);
}

/* MPA-47 MPA-48 */
static void fpdu__each_length__padded_to_4(void **state)
{
	(void)state;
	assert_int_equal(iw_fpdu_size(0), 8);
	assert_int_equal(iw_fpdu_size(14), 20); /* a Write of length 0 */
	assert_int_equal(iw_fpdu_size(18), 24); /* a Send of length 0 */
	assert_int_equal(iw_fpdu_size(46), 52); /* a Read Request */
	assert_int_equal(iw_fpdu_size(15), 24);
	for (uint32_t ulpdu = 0; ulpdu <= IW_ULPDU_MAX; ulpdu++) {
		uint32_t size = iw_fpdu_size(ulpdu);

		assert_int_equal(size % 4, 0);
		assert_in_range(iw_fpdu_pad(ulpdu), 0, 3);
		assert_int_equal(size, 2 + ulpdu + iw_fpdu_pad(ulpdu) + 4);
	}
}

/* MPA-56: the longest FPDU that fits into a segment */
static void mulpdu__each_segment_size__fits(void **state)
{
	(void)state;
	assert_int_equal(iw_fpdu_mulpdu(1460), 1454);
	assert_int_equal(iw_fpdu_mulpdu(1448), 1442);
	assert_int_equal(iw_fpdu_mulpdu(8949), 8942);
	for (uint32_t emss = 0; emss < 12; emss++)
		assert_int_equal(iw_fpdu_mulpdu(emss), emss < 8 ? 0 : 2);
	for (uint32_t emss = 8; emss < 65544; emss++) {
		uint32_t ulpdu = iw_fpdu_mulpdu(emss);

		assert_int_equal(ulpdu, emss - (6 + emss % 4));
		assert_true(iw_fpdu_size(ulpdu) <= emss);
		assert_true(iw_fpdu_size(ulpdu + 1) > emss);
	}
	assert_int_equal(iw_fpdu_mulpdu(65544), IW_ULPDU_MAX);
	assert_int_equal(iw_fpdu_mulpdu(UINT32_MAX), IW_ULPDU_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__of_ours__known_bytes),
		cmocka_unit_test(frame__known_bytes__understood),
		cmocka_unit_test(flags__each_combination__known_ones_told),
		cmocka_unit_test(flags__sent__no_other),
		cmocka_unit_test(revision__each__only_1_and_2),
		cmocka_unit_test(length__each__at_most_512),
		cmocka_unit_test(key__wrong__refused_at_once),
		cmocka_unit_test(frame__in_pieces__whole_one_taken),
		cmocka_unit_test(private_data__without_enhanced_set_up__from_byte_20),
		cmocka_unit_test(enhanced__too_short__refused),
		cmocka_unit_test(enhanced__each_value__comes_back),
		cmocka_unit_test(rtr__each_offer__write_then_read_then_send),
		cmocka_unit_test(fpdu__each_length__padded_to_4),
		cmocka_unit_test(mulpdu__each_segment_size__fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
