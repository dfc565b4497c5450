// SPDX-License-Identifier: BSD-2-Clause
/*
 * Generations of memory keys. Each index goes through all generations before one returns, so that a
 * stale key stays stale. The order depends on a secret: whoever knows some keys cannot tell another
 * one (IWCM-44). docs/security.md says how long guesses take.
 */
#ifndef SOFT_GENERATION_H
#define SOFT_GENERATION_H

#include <stdint.h>

#define SOFT_GENERATION_BITS 14u
#define SOFT_GENERATION_MASK ((1u << SOFT_GENERATION_BITS) - 1)

struct soft_secret {
	uint64_t word[2];
};

/* From the kernel's random source. */
void soft_secret_init(struct soft_secret *secret);

/* The generation of the use with that number, of which the lowest SOFT_GENERATION_BITS count. */
uint16_t soft_generation(const struct soft_secret *secret, uint32_t index, uint32_t use);

#endif
