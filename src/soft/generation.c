// SPDX-License-Identifier: BSD-2-Clause
/*
 * A permutation of the generations for each index: a Feistel network, whose rounds are SipHash-2-4
 * with the secret as its key.
 */
#include "soft/generation.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define HALF_BITS (SOFT_GENERATION_BITS / 2)
#define HALF_MASK ((1u << HALF_BITS) - 1)
#define ROUNDS 4u

void soft_secret_init(struct soft_secret *secret)
{
	struct timespec now;

	if (getrandom(secret, sizeof(*secret), GRND_NONBLOCK) == (ssize_t)sizeof(*secret))
		return;
	/* only while a machine boots, before the kernel has collected any randomness */
	clock_gettime(CLOCK_REALTIME, &now);
	secret->word[0] = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
	secret->word[1] = (uint64_t)getpid() << 40 ^ (uint64_t)(uintptr_t)secret;
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], unsigned count)
{
	while (count--) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void sip_block(uint64_t v[4], uint64_t block)
{
	v[3] ^= block;
	sip_rounds(v, 2);
	v[0] ^= block;
}

/* SipHash-2-4 of eight bytes. */
static uint64_t sip_hash(const struct soft_secret *secret, uint64_t message)
{
	uint64_t v[4] = {
		secret->word[0] ^ UINT64_C(0x736f6d6570736575),
		secret->word[1] ^ UINT64_C(0x646f72616e646f6d),
		secret->word[0] ^ UINT64_C(0x6c7967656e657261),
		secret->word[1] ^ UINT64_C(0x7465646279746573),
	};

	sip_block(v, message);
	sip_block(v, UINT64_C(8) << 56); /* the length */
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint16_t soft_generation(const struct soft_secret *secret, uint32_t index, uint32_t use)
{
	uint32_t left = use >> HALF_BITS & HALF_MASK;
	uint32_t right = use & HALF_MASK;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t message = (uint64_t)index << 32 | round << HALF_BITS | right;
		uint32_t mixed = left ^ ((uint32_t)sip_hash(secret, message) & HALF_MASK);

		left = right;
		right = mixed;
	}
	return (uint16_t)(left << HALF_BITS | right);
}
