// SPDX-License-Identifier: BSD-2-Clause
/* The CRC over memory of the consumer. */
#ifndef IWARP_CHECKSUM_H
#define IWARP_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "soft/pins.h"

/* Continues a CRC over memory, or the first `len` bytes of pinned memory, which may have been
 * unmapped: 0 or -EFAULT. */
int iw_checksum(const void *at, size_t len, uint32_t *crc);
int iw_checksum_pins(const struct soft_pins *pins, size_t len, uint32_t *crc);

#endif
