// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any text as /proc/self/maps. The first three bytes choose a range relative to one of the lines;
 * the rest is the text. The result of the search must follow from the lines, as a second, simpler
 * search shows: byte by byte at the places where lines meet.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "soft/region.h"

#define LINES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses a copy of the exact size; the address sanitizer guards its ends. */
static bool parse_exact(const char *text, size_t len, struct soft_region_line *line)
{
	char *exact = malloc(len ? len : 1);
	bool is_valid;

	if (!exact)
		abort();
	memcpy(exact, text, len);
	is_valid = soft_region_parse(exact, len, line);
	free(exact);
	return is_valid;
}

static size_t parse_text(const char *text, size_t size, struct soft_region_line lines[LINES_MAX])
{
	size_t count = 0;

	while (size && count < LINES_MAX) {
		const char *feed = memchr(text, '\n', size);
		size_t len = feed ? (size_t)(feed - text) : size;

		if (parse_exact(text, len, &lines[count])) {
			assert(lines[count].start < lines[count].end);
			count++;
		}
		len += feed != NULL;
		text += len;
		size -= len;
	}
	return count;
}

/* The first line, in order, whose end is behind the address: the search must have used it. */
static const struct soft_region_line *line_at(const struct soft_region_line *lines, size_t count,
					      uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		if (lines[i].end > address)
			return lines[i].start <= address ? &lines[i] : NULL;
	}
	return NULL;
}

static void check_byte(const struct soft_region_scan *scan, const struct soft_region_line *lines,
		       size_t count, uint64_t start, uint64_t address)
{
	const struct soft_region_line *line = line_at(lines, count, address);

	assert(line && line->is_shared && line->is_readable && line->inode == scan->first.inode);
	assert(line->major == scan->first.major && line->minor == scan->first.minor);
	assert(line->offset + (address - line->start) == scan->offset + (address - start));
	assert(line->is_writable || !scan->is_writable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct soft_region_line lines[LINES_MAX];
	struct soft_region_scan scan;
	uint64_t start, length;
	size_t count;

	if (size < 3)
		return 0;
	count = parse_text((const char *)data + 3, size - 3, lines);
	if (count == 0)
		return 0;
	start = lines[data[0] % count].start + (int8_t)data[1];
	length = (uint64_t)data[2] << (data[2] % 5 * 8);

	soft_region_scan_begin(&scan, start, length);
	for (size_t i = 0; i < count && soft_region_scan_line(&scan, &lines[i]); i++)
		;
	assert(!(scan.is_done && scan.is_failed));
	if (!scan.is_done)
		return 0;
	assert(length > 0 && length - 1 <= UINT64_MAX - start);
	check_byte(&scan, lines, count, start, start);
	check_byte(&scan, lines, count, start, start + (length - 1));
	for (size_t i = 0; i < count; i++) {
		if (lines[i].start - start < length)
			check_byte(&scan, lines, count, start, lines[i].start);
	}
	return 0;
}
