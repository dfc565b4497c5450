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

/* --- by table: processors without the instruction are rare --- */

/* The state after that byte, from state 0. */
static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t state = byte;

		for (int bit = 0; bit < 8; bit++)
			state = state >> 1 ^ (state & 1 ? POLYNOMIAL : 0);
		table[byte] = state;
	}
}

static uint32_t by_table(uint32_t state, const uint8_t *bytes, size_t size)
{
	pthread_once(&table_once, fill_table);
	for (; size; size--, bytes++)
		state = state >> 8 ^ table[(state ^ *bytes) & 0xff];
	return state;
}

/* --- by the processor's instruction --- */

#if defined(__x86_64__) || defined(__aarch64__)
/* Eight bytes as the CRC takes them, the first in the low bits. */
static uint64_t load(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}
#endif

#ifdef __x86_64__
#define CACHE_LINE 64u
#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))

/*
 * Payloads are often farther away than the second-level cache. The processor does not foresee three
 * blocks that move on together, and stops at the end of a page. So the loop prefetches the
 * bytes that are this far ahead of those that it works on.
 */
#define AHEAD 4096u

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

		/* they may lie behind the payload, where the next one begins; no prefetch faults */
		for (uint32_t i = 0; i < 3 * BLOCK; i += CACHE_LINE)
			__builtin_prefetch((const void *)((uintptr_t)bytes + AHEAD + i));
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

/* --- the choice --- */

static const crc_fn ways[] = {
	[IW_CRC_TABLE] = by_table,
	[IW_CRC_INSTRUCTION] = by_instruction,
};

bool iw_crc_has(enum iw_crc_way way)
{
	return way == IW_CRC_TABLE || (way == IW_CRC_INSTRUCTION && has_instruction());
}

static uint32_t choose(uint32_t state, const uint8_t *bytes, size_t size);

/* Each function gives the same result, so it does not matter when a thread sees the choice. */
static _Atomic(crc_fn) chosen = choose;

static uint32_t choose(uint32_t state, const uint8_t *bytes, size_t size)
{
	crc_fn best = has_instruction() ? by_instruction : by_table;

	atomic_store_explicit(&chosen, best, memory_order_relaxed);
	return best(state, bytes, size);
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
