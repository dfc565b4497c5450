// SPDX-License-Identifier: BSD-2-Clause
/* CRC32C, by the processor's instruction where it has one, else by a table. */
#ifndef IWARP_CRC_H
#define IWARP_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues a CRC over more bytes. The CRC of no bytes is 0; the result is final at any point. */
uint32_t iw_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The ways to compute it. */
enum iw_crc_way {
	IW_CRC_TABLE,
	IW_CRC_INSTRUCTION, /* of the processor, for a CRC32C of eight bytes */
	IW_CRC_WAYS,
};

/* For tests: does the processor have this way; and iw_crc32c in this way, which it must have. */
bool iw_crc_has(enum iw_crc_way way);
uint32_t iw_crc32c_by(enum iw_crc_way way, uint32_t crc, const void *bytes, size_t size);

/* Stores a CRC as it stands on the wire, low byte first, and loads it. */
void iw_crc_put(uint32_t crc, uint8_t out[4]);
uint32_t iw_crc_get(const uint8_t in[4]);

#endif
