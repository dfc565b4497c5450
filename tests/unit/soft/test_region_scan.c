// SPDX-License-Identifier: BSD-2-Clause
/*
 * The reader of /proc/self/maps: lines, and the search for a range.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>

#include "peer.h"
#include "soft/region.h"

/* --- lines --- */

static bool parse(const char *text, struct soft_region_line *line)
{
	/* a copy of the exact size: the address sanitizer detects a read behind the end */
	size_t len = strlen(text);
	char *exact = malloc(len ? len : 1);
	bool is_valid;

	assert_non_null(exact);
	memcpy(exact, text, len);
	is_valid = soft_region_parse(exact, len, line);
	free(exact);
	return is_valid;
}

static void parse__line_of_a_memory_file__all_fields(void **state)
{
	struct soft_region_line line;

	(void)state;
	assert_true(parse("7f75d7c74000-7f75d8c74000 rw-s 00012000 1b:10a 1025                  "
			  "     /memfd:x (deleted)",
			  &line));
	assert_int_equal(line.start, 0x7f75d7c74000);
	assert_int_equal(line.end, 0x7f75d8c74000);
	assert_int_equal(line.offset, 0x12000);
	assert_int_equal(line.major, 0x1b);
	assert_int_equal(line.minor, 0x10a);
	assert_int_equal(line.inode, 1025);
	assert_true(line.is_readable && line.is_writable && line.is_shared);

	/* without a name, as the kernel writes it, and truncated */
	assert_true(parse("7f75d8e64000-7f75d8e66000 -w-p 00000000 00:00 0 ", &line));
	assert_true(!line.is_readable && line.is_writable && !line.is_shared);
	assert_true(parse("0-ffffffffffffffff r--s 00000000 00:00 18446744073709551615", &line));
	assert_true(line.inode == UINT64_MAX && !line.is_writable);
}

static void parse__anything_else__refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"-",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 rw-s",
		"1000-2000 rw-s ",
		"1000-2000 rw-s 0",
		"1000-2000 rw-s 0 ",
		"1000-2000 rw-s 0 0",
		"1000-2000 rw-s 0 0:",
		"1000-2000 rw-s 0 0:0",
		"1000-2000 rw-s 0 0:0 ",
		"1000-2000 rw-s 0 0:0 x",
		"1000-2000 rw-s 0 0:0 12a ",
		"1000-2000 rw-x 0 0:0 12",
		"1000-2000 rws 0 0:0 12",
		"1000-2000  rw-s 0 0:0 12",
		"1000 2000 rw-s 0 0:0 12",
		"2000-1000 rw-s 0 0:0 12",
		"1000-1000 rw-s 0 0:0 12",
		"0x1000-2000 rw-s 0 0:0 12",
		"1000-10000000000000000 rw-s 0 0:0 12",
		"1000-2000 rw-s 0 100000000:0 12",
		"1000-2000 rw-s 0 0:100000000 12",
		"1000-2000 rw-s 0 0:0 18446744073709551616",
		"1000-3001 rw-s ffffffffffffe000 0:0 12",
		"-1000-2000 rw-s 0 0:0 12",
		"VmFlags: rd wr sh",
	};
	struct soft_region_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i], &line))
			fail_msg("accepted: %s", bad[i]);
	}
}

/* --- searches --- */

static struct soft_region_scan scan_text(uint64_t address, uint64_t length, const char *const *text)
{
	struct soft_region_scan scan;

	soft_region_scan_begin(&scan, address, length);
	for (; *text; text++) {
		struct soft_region_line line;

		assert_true(parse(*text, &line));
		if (!soft_region_scan_line(&scan, &line))
			break;
	}
	assert_false(scan.is_done && scan.is_failed);
	return scan;
}

static const char *const neighbours[] = {
	"1000-2000 rw-p 00000000 00:01 7",
	"3000-5000 rw-s 00010000 00:01 7", /* offsets continue in the next line */
	"5000-8000 r--s 00012000 00:01 7",
	"8000-9000 rw-s 00020000 00:01 7", /* a jump */
	"9000-a000 rw-s 00021000 00:01 8", /* another file */
	"a000-b000 rw-s 00022000 00:02 8", /* another device */
	"b000-c000 -w-s 00023000 00:02 8", /* not readable */
	"d000-e000 rw-s 00025000 00:02 8", /* after a gap */
	NULL,
};

static bool found(uint64_t address, uint64_t length, uint64_t offset)
{
	struct soft_region_scan scan = scan_text(address, length, neighbours);

	return scan.is_done && scan.offset == offset;
}

static bool not_found(uint64_t address, uint64_t length)
{
	return !scan_text(address, length, neighbours).is_done;
}

static void scan__one_mapping__offset(void **state)
{
	(void)state;
	assert_true(found(0x3000, 0x2000, 0x10000));
	assert_true(found(0x3001, 1, 0x10001));
	assert_true(found(0x4fff, 1, 0x11fff));
	assert_true(found(0x9000, 0x1000, 0x21000));
	assert_true(found(0xd000, 0x1000, 0x25000));
	assert_int_equal(scan_text(0x9000, 1, neighbours).first.inode, 8);
	assert_true(scan_text(0x3000, 0x2000, neighbours).is_writable);
	assert_false(scan_text(0x6000, 0x10, neighbours).is_writable);
}

static void scan__neighbouring_mappings__only_of_one_file_in_sequence(void **state)
{
	(void)state;
	assert_true(found(0x3000, 0x5000, 0x10000));
	assert_true(found(0x4ffe, 4, 0x11ffe));
	assert_false(scan_text(0x4ffe, 4, neighbours).is_writable);
	assert_true(not_found(0x3000, 0x5001)); /* the offset jumps */
	assert_true(not_found(0x7fff, 2));
	assert_true(not_found(0x8000, 0x1001)); /* the inode differs */
	assert_true(not_found(0x9fff, 2));	/* the device differs */
	assert_true(not_found(0xafff, 2));	/* not readable */
}

static void scan__private_or_not_there__not_found(void **state)
{
	(void)state;
	assert_true(not_found(0x1000, 1));
	assert_true(not_found(0x1000, 0x3000));
	assert_true(not_found(0, 1));
	assert_true(not_found(0x2fff, 2));
	assert_true(not_found(0x2000, 1));
	assert_true(not_found(0xb000, 1));
	assert_true(not_found(0xc000, 1));
	assert_true(not_found(0xd800, 0x801));
	assert_true(not_found(0xe000, 1));
	assert_true(not_found(0x3000, 0));
	assert_true(not_found(0x3000, UINT64_MAX));
	assert_true(not_found(UINT64_MAX, 2));
}

static void scan__end_of_the_address_space__found(void **state)
{
	static const char *const top[] = {"fffffffffffff000-ffffffffffffffff rw-s 0 00:01 7", NULL};
	struct soft_region_scan scan = scan_text(UINT64_MAX - 9, 9, top);

	(void)state;
	assert_true(scan.is_done);
	assert_int_equal(scan.offset, 0xff6);
	assert_false(scan_text(UINT64_MAX - 9, 10, top).is_done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__line_of_a_memory_file__all_fields),
		cmocka_unit_test(parse__anything_else__refused),
		cmocka_unit_test(scan__one_mapping__offset),
		cmocka_unit_test(scan__neighbouring_mappings__only_of_one_file_in_sequence),
		cmocka_unit_test(scan__private_or_not_there__not_found),
		cmocka_unit_test(scan__end_of_the_address_space__found),
	};

	return cmocka_run_group_tests_name("soft region", tests, NULL, NULL);
}
