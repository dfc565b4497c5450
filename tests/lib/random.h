// SPDX-License-Identifier: BSD-2-Clause
/* Numbers that look random and are the same in each run. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

static inline uint32_t next_random(void)
{
	static uint32_t word = 2463534242u;

	word ^= word << 13;
	word ^= word >> 17;
	word ^= word << 5;
	return word;
}

#endif
