// SPDX-License-Identifier: BSD-2-Clause
/* CRC32C, by the processor's instruction where it has one. */
#ifndef IWARP_CRC_H
#define IWARP_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues a CRC over more bytes. The CRC of no bytes is 0; the result is final at any point. */
uint32_t iw_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The same by the table alone, for tests. */
uint32_t iw_crc32c_table(uint32_t crc, const void *bytes, size_t size);

/* Stores a CRC as it stands on the wire, low byte first, and loads it. */
void iw_crc_put(uint32_t crc, uint8_t out[4]);
uint32_t iw_crc_get(const uint8_t in[4]);

#endif
