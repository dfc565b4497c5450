// SPDX-License-Identifier: BSD-2-Clause
/* Numbers in network byte order, at any address. */
#ifndef SHARED_BYTES_H
#define SHARED_BYTES_H

#include <stdint.h>

static inline void be_put16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static inline void be_put32(uint8_t *to, uint32_t value)
{
	be_put16(to, (uint16_t)(value >> 16));
	be_put16(to + 2, (uint16_t)value);
}

static inline void be_put64(uint8_t *to, uint64_t value)
{
	be_put32(to, (uint32_t)(value >> 32));
	be_put32(to + 4, (uint32_t)value);
}

static inline uint16_t be_get16(const uint8_t *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

static inline uint32_t be_get32(const uint8_t *from)
{
	return (uint32_t)be_get16(from) << 16 | be_get16(from + 2);
}

static inline uint64_t be_get64(const uint8_t *from)
{
	return (uint64_t)be_get32(from) << 32 | be_get32(from + 4);
}

#endif
