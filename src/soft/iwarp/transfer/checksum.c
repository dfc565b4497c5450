// SPDX-License-Identifier: BSD-2-Clause
/* The CRC over memory of the consumer (checksum.h). */
#include "soft/iwarp/transfer/checksum.h"

#include <errno.h>

#include "soft/copy.h"
#include "soft/iwarp/wire/crc.h"

#define PIECE 32768u /* two system calls for most payloads; on the stack of a service thread */

/* A thread of the library must not fault: the kernel copies the bytes. */
static __attribute__((noinline)) int checksum_copy(const uint8_t *at, size_t left, uint32_t *crc)
{
	uint8_t piece[PIECE];

	while (left) {
		size_t part = left < sizeof(piece) ? left : sizeof(piece);

		if (soft_copy_from_consumer(piece, at, part, NULL) < 0)
			return -EFAULT;
		*crc = iw_crc32c(*crc, piece, part);
		at += part;
		left -= part;
	}
	return 0;
}

int iw_checksum(const void *at, size_t len, uint32_t *crc)
{
	if (soft_is_library_thread)
		return checksum_copy(at, len, crc);
	*crc = iw_crc32c(*crc, at, len);
	return 0;
}

int iw_checksum_pins(const struct soft_pins *pins, size_t len, uint32_t *crc)
{
	int rc = 0;
	uint32_t i;

	for (i = 0; len && !rc; i++) {
		size_t part = pins->iov[i].iov_len < len ? pins->iov[i].iov_len : len;

		rc = iw_checksum(pins->iov[i].iov_base, part, crc);
		len -= part;
	}
	return rc;
}
