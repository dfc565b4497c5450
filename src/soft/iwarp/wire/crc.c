// SPDX-License-Identifier: BSD-2-Clause
/*
 * CRC32C as RFC 5044 section 4.4 uses it: reflected, start value all ones, result inverted. The
 * functions below work on the state, which is the CRC before the inversion.
 */
#include "soft/iwarp/wire/crc.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */

typedef uint32_t (*crc_fn)(uint32_t state, const uint8_t *bytes, size_t size);

/* Eight bytes as the CRC takes them, the first in the low bits. */
static uint64_t load(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

/* --- by table --- */

/* table[n][b]: the state after byte b and n zero bytes, from state 0. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t state = byte;

		for (int bit = 0; bit < 8; bit++)
			state = state >> 1 ^ (state & 1 ? POLYNOMIAL : 0);
		table[0][byte] = state;
	}
	for (int n = 1; n < 8; n++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t state = table[n - 1][byte];

			table[n][byte] = state >> 8 ^ table[0][state & 0xff];
		}
	}
}

static uint32_t by_table(uint32_t state, const uint8_t *bytes, size_t size)
{
	pthread_once(&table_once, fill_table);
	for (; size >= 8; size -= 8, bytes += 8) {
		uint64_t word = load(bytes) ^ state;

		state = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^
			table[5][word >> 16 & 0xff] ^ table[4][word >> 24 & 0xff] ^
			table[3][word >> 32 & 0xff] ^ table[2][word >> 40 & 0xff] ^
			table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
	}
	for (; size; size--, bytes++)
		state = state >> 8 ^ table[0][(state ^ *bytes) & 0xff];
	return state;
}

/* --- by the processor's instruction --- */

#ifdef __x86_64__
#define CACHE_LINE 64u
#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))

/*
 * Payloads are often farther away than the second-level cache. The processor does not foresee three
 * blocks that move on together, and stops at the end of a page. So each loop prefetches the bytes
 * that are this far ahead of those that it works on.
 */
#define AHEAD 4096u

/* They may lie behind the payload, where the next one begins. No prefetch faults. */
static inline void fetch_ahead(const uint8_t *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size; i += CACHE_LINE)
		__builtin_prefetch((const void *)((uintptr_t)bytes + AHEAD + i));
}

/*
 * The instruction takes three cycles, but one can begin in each cycle. So three blocks are worked
 * on at a time, and their states joined.
 */
#define BLOCK 480u /* three are most of an FPDU in a segment of 1448 bytes */
/* x^(8 * size - 33) modulo the polynomial, reflected: moves a state over that many zero bytes. */
#define OVER_ONE_BLOCK 0xb3e32c28
#define OVER_TWO_BLOCKS 0x3771e98f

CRC_TARGET
static uint64_t move_over(uint64_t state, long long distance)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state),
					       _mm_cvtsi64_si128(distance), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

CRC_TARGET
static uint32_t by_instruction(uint32_t state, const uint8_t *bytes, size_t size)
{
	uint64_t first = state;

	for (; size >= 3 * BLOCK; size -= 3 * BLOCK, bytes += 3 * BLOCK) {
		uint64_t second = 0;
		uint64_t third = 0;

		fetch_ahead(bytes, 3 * BLOCK);
		for (uint32_t i = 0; i < BLOCK; i += 8) {
			first = _mm_crc32_u64(first, load(bytes + i));
			second = _mm_crc32_u64(second, load(bytes + BLOCK + i));
			third = _mm_crc32_u64(third, load(bytes + 2 * BLOCK + i));
		}
		first = move_over(first, OVER_TWO_BLOCKS) ^ move_over(second, OVER_ONE_BLOCK) ^
			third;
	}
	for (; size >= 8; size -= 8, bytes += 8)
		first = _mm_crc32_u64(first, load(bytes));
	state = (uint32_t)first;
	for (; size; size--, bytes++)
		state = _mm_crc32_u8(state, *bytes);
	return state;
}

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/* --- by multiplication in vectors --- */

#define VECTOR_TARGET __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))

#define VECTOR 64u
/* A multiplication takes several cycles: four are under way at a time. */
#define ROUND (4 * VECTOR)
#define VECTOR_MIN (2 * ROUND) /* below, the instruction is as fast */
#define XOR_OF_THREE 0x96      /* a truth table */

/*
 * Each lane of 16 bytes is moved over a distance by two multiplications, of its last and of its
 * first eight bytes: by x^(8 * distance - 32) and by x^(8 * distance + 32), modulo the polynomial,
 * reflected, and shifted by one bit because the product of reflected numbers is.
 */
#define OVER_ONE_VECTOR 0x9e4addf8, 0x740eef02
#define OVER_ONE_ROUND 0xb9e02b86, 0xdcb17aa4

VECTOR_TARGET
static inline __m512i distance(long long last, long long first)
{
	return _mm512_set4_epi64(last, first, last, first);
}

/* Moves the lanes of `sum` over that distance, to those of `next`, and adds these. */
VECTOR_TARGET
static inline __m512i fold(__m512i sum, __m512i over, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, over, 0x00),
					 _mm512_clmulepi64_epi128(sum, over, 0x11), next,
					 XOR_OF_THREE);
}

/* The first bytes, as many as are a multiple of VECTOR, at least ROUND, become 64. */
VECTOR_TARGET
static __m512i fold_all(uint32_t state, const uint8_t *bytes, size_t size)
{
	const __m512i over_vector = distance(OVER_ONE_VECTOR);
	const __m512i over_round = distance(OVER_ONE_ROUND);
	const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state));
	__m512i a = _mm512_xor_si512(_mm512_loadu_si512(bytes), start);
	__m512i b = _mm512_loadu_si512(bytes + VECTOR);
	__m512i c = _mm512_loadu_si512(bytes + 2 * VECTOR);
	__m512i d = _mm512_loadu_si512(bytes + 3 * VECTOR);

	for (size -= ROUND, bytes += ROUND; size >= ROUND; size -= ROUND, bytes += ROUND) {
		fetch_ahead(bytes, ROUND);
		a = fold(a, over_round, _mm512_loadu_si512(bytes));
		b = fold(b, over_round, _mm512_loadu_si512(bytes + VECTOR));
		c = fold(c, over_round, _mm512_loadu_si512(bytes + 2 * VECTOR));
		d = fold(d, over_round, _mm512_loadu_si512(bytes + 3 * VECTOR));
	}
	a = fold(fold(fold(a, over_vector, b), over_vector, c), over_vector, d);
	for (; size >= VECTOR; size -= VECTOR, bytes += VECTOR)
		a = fold(a, over_vector, _mm512_loadu_si512(bytes));
	return a;
}

VECTOR_TARGET
static uint32_t by_vector(uint32_t state, const uint8_t *bytes, size_t size)
{
	uint8_t folded[VECTOR];

	if (size >= VECTOR_MIN) {
		_mm512_storeu_si512(folded, fold_all(state, bytes, size));
		state = by_instruction(0, folded, sizeof(folded));
		bytes += size & ~(size_t)(VECTOR - 1);
		size &= VECTOR - 1;
	}
	return by_instruction(state, bytes, size);
}

static bool has_vector(void)
{
	return has_instruction() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

#elif defined(__aarch64__)
/* Assembler, because compilers differ in how they let one function use the instruction. */
static uint32_t by_instruction(uint32_t state, const uint8_t *bytes, size_t size)
{
	for (; size >= 8; size -= 8, bytes += 8)
		__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1"
			: "+r"(state)
			: "r"(load(bytes)));
	for (; size; size--, bytes++)
		__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(*bytes));
	return state;
}

static bool has_instruction(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

#else
#define by_instruction by_table

static bool has_instruction(void)
{
	return false;
}
#endif

#ifndef __x86_64__
#define by_vector by_instruction

static bool has_vector(void)
{
	return false;
}
#endif

/* --- the choice --- */

static const crc_fn ways[] = {
	[IW_CRC_TABLE] = by_table,
	[IW_CRC_INSTRUCTION] = by_instruction,
	[IW_CRC_VECTOR] = by_vector,
};

bool iw_crc_has(enum iw_crc_way way)
{
	return way == IW_CRC_TABLE || (way == IW_CRC_INSTRUCTION && has_instruction()) ||
	       (way == IW_CRC_VECTOR && has_vector());
}

static uint32_t choose(uint32_t state, const uint8_t *bytes, size_t size);

/* Each function gives the same result, so it does not matter when a thread sees the choice. */
static _Atomic(crc_fn) chosen = choose;

static uint32_t choose(uint32_t state, const uint8_t *bytes, size_t size)
{
	enum iw_crc_way best = IW_CRC_VECTOR;

	while (!iw_crc_has(best))
		best--;
	atomic_store_explicit(&chosen, ways[best], memory_order_relaxed);
	return ways[best](state, bytes, size);
}

uint32_t iw_crc32c(uint32_t crc, const void *bytes, size_t size)
{
	return ~atomic_load_explicit(&chosen, memory_order_relaxed)(~crc, bytes, size);
}

uint32_t iw_crc32c_by(enum iw_crc_way way, uint32_t crc, const void *bytes, size_t size)
{
	return ~ways[way](~crc, bytes, size);
}

void iw_crc_put(uint32_t crc, uint8_t out[4])
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(crc >> 8 * i);
}

uint32_t iw_crc_get(const uint8_t in[4])
{
	uint32_t crc = 0;

	for (int i = 0; i < 4; i++)
		crc |= (uint32_t)in[i] << 8 * i;
	return crc;
}
