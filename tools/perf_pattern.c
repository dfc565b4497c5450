// SPDX-License-Identifier: BSD-2-Clause
/* The pattern of perf_pattern.h, eight bytes at a time. */
#include "perf_pattern.h"

#include <string.h>

struct word {
	uint64_t value;
} __attribute__((packed, may_alias));

static uint64_t pattern_word(uint64_t number, uint64_t word)
{
	/* odd multipliers with well mixed bits; the shift moves the high bits down */
	uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
			 (word + 1) * UINT64_C(0xd6e8feb86659fd93);

	return mixed ^ mixed >> 29;
}

void perf_pattern_fill(unsigned char *data, uint64_t size, uint64_t number)
{
	for (uint64_t at = 0; at < size; at += 8) {
		uint64_t word = pattern_word(number, at / 8);

		memcpy(data + at, &word, size - at < 8 ? size - at : 8);
	}
}

/* Calls no function, because the sanitizer would check it. */
PERF_NO_TSAN bool perf_pattern_is(const unsigned char *data, uint64_t size, uint64_t number)
{
	uint64_t at;

	for (at = 0; size - at >= 8; at += 8)
		if (((const struct word *)(data + at))->value != pattern_word(number, at / 8))
			return false;
	for (uint64_t word = pattern_word(number, at / 8); at < size; at++)
		if (data[at] != ((const unsigned char *)&word)[at % 8])
			return false;
	return true;
}
