// SPDX-License-Identifier: BSD-2-Clause
/* The CRC of FPDUs: known values, and the same result however it is computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../lib/random.h"
#include "edge.h"
#include "soft/iwarp/wire/crc.h"

#define SIZE_MAX_TRIED 65541u

static uint8_t noise[SIZE_MAX_TRIED + 8];

/* The definition, bit by bit. */
static uint32_t by_bits(uint32_t crc, const uint8_t *bytes, size_t size)
{
	uint32_t state = ~crc;

	for (size_t i = 0; i < size; i++) {
		state ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			state = state & 1 ? state >> 1 ^ 0x82f63b78u : state >> 1;
	}
	return ~state;
}

static int fill_noise(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(next_random() >> 11);
	return 0;
}

/* The next way that this processor has, or IW_CRC_WAYS. */
static enum iw_crc_way next_way(enum iw_crc_way way)
{
	while (way < IW_CRC_WAYS && !iw_crc_has(way))
		way++;
	return way;
}

/* Each way gives the CRC, and so does the one that is used. */
static void check(uint32_t start, const uint8_t *bytes, size_t size, uint32_t expected)
{
	for (enum iw_crc_way way = next_way(0); way < IW_CRC_WAYS; way = next_way(way + 1))
		assert_int_equal(iw_crc32c_by(way, start, bytes, size), expected);
	assert_int_equal(iw_crc32c(start, bytes, size), expected);
}

static void check_known(const uint8_t *bytes, size_t size, const uint8_t expected[4])
{
	uint8_t out[4];

	check(0, bytes, size, iw_crc_get(expected));
	iw_crc_put(iw_crc32c(0, bytes, size), out);
	assert_memory_equal(out, expected, 4);
	assert_int_equal(iw_crc_get(out), by_bits(0, bytes, size));
}

/* MPA-49 */
static void crc__known_bytes__as_on_the_wire(void **state)
{
	uint8_t bytes[32];

	(void)state;
	memset(bytes, 0, 32);
	check_known(bytes, 32, (const uint8_t[]){0xaa, 0x36, 0x91, 0x8a});
	memset(bytes, 0xff, 32);
	check_known(bytes, 32, (const uint8_t[]){0x43, 0xab, 0xa8, 0x62});
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	check_known(bytes, 32, (const uint8_t[]){0x4e, 0x79, 0xdd, 0x46});
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	check_known(bytes, 32, (const uint8_t[]){0x5c, 0xdb, 0x3f, 0x11});
	check_known((const uint8_t *)"123456789", 9, (const uint8_t[]){0x83, 0x92, 0x06, 0xe3});
	check_known(bytes, 0, (const uint8_t[]){0, 0, 0, 0});
}

/* MPA-50: every length up to three FPDUs of an Ethernet segment, at every alignment */
static void crc__each_length_and_offset__equal(void **state)
{
	(void)state;
	for (size_t size = 0; size < 5000; size++) {
		const uint8_t *bytes = noise + size % 8;
		uint32_t start = size % 3 ? next_random() : 0;

		check(start, bytes, size, by_bits(start, bytes, size));
	}
}

/* MPA-50: not a byte behind the last one is read */
static void crc__at_the_end_of_memory__no_byte_more(void **state)
{
	(void)state;
	for (size_t size = 0; size < 40; size++)
		check(0, edge_copy(noise, size), size, by_bits(0, noise, size));
	for (size_t size = 500; size < 1500; size += 47)
		check(0, edge_copy(noise, size), size, by_bits(0, noise, size));
}

/* The CRC in pieces, each in one of the ways. */
static uint32_t in_pieces(const uint8_t *bytes, size_t size, size_t limit)
{
	enum iw_crc_way way = IW_CRC_TABLE;
	uint32_t crc = 0;

	while (size) {
		size_t piece = next_random() % limit;

		if (piece > size)
			piece = size;
		crc = iw_crc32c_by(way, crc, bytes, piece);
		bytes += piece;
		size -= piece;
		way = next_way(way + 1) % IW_CRC_WAYS;
	}
	return crc;
}

/* MPA-50 */
static void crc__any_split__equal(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		size_t size = next_random() % SIZE_MAX_TRIED;
		const uint8_t *bytes = noise + next_random() % 8;
		uint32_t whole = by_bits(0, bytes, size);

		check(0, bytes, size, whole);
		assert_int_equal(in_pieces(bytes, size, round % 2 ? 50 : 5000), whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc__known_bytes__as_on_the_wire),
		cmocka_unit_test(crc__each_length_and_offset__equal),
		cmocka_unit_test(crc__at_the_end_of_memory__no_byte_more),
		cmocka_unit_test(crc__any_split__equal),
	};

	return cmocka_run_group_tests(tests, fill_noise, NULL);
}
