// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets of a hostile peer: one that is accepted must be exactly what was sent, and within its
 * limits. The first byte chooses how many descriptors come with it. fuzz_calls plays set-ups.
 */
#include <assert.h>
#include <string.h>

#include "soft/shm/bytes/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union shm_wire wire;
	unsigned fd_count;

	if (!size)
		return 0;
	fd_count = data[0] & 3;
	data++;
	size--;
	if (shm_wire_decode(data, size, fd_count, &wire) < 0)
		return 0;
	assert(shm_wire_size(&wire) == size);
	assert(memcmp(&wire, data, size) == 0);
	if (wire.head.type == SHM_WIRE_REQUEST)
		assert(wire.request.private_size <= SHM_PRIVATE_MAX);
	return 0;
}
