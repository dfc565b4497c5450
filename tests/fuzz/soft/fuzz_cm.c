// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the header in private data. The first byte chooses the room for a request's private
 * data, the rest is what came. It is at most one of request, accept and reject, and what is parsed
 * must mean the same when it is built again.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "shared/cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool try_request(const uint8_t *data, size_t size, size_t room)
{
	struct cm_request first, second;
	uint8_t built[CM_MAX];
	size_t built_size;

	if (cm_get_request(data, size, room, &first) != 1)
		return false;
	assert(first.size <= CM_PRIVATE_MAX && first.data_size <= first.size);
	assert(CM_REQUEST_HEAD + first.data_size <= size);
	built_size = cm_put_request(&first, built);
	assert(!memcmp(built, data, built_size));
	assert(cm_get_request(built, built_size, room, &second) == 1);
	assert(second.data_size == first.data_size);
	return true;
}

static bool try_accept(const uint8_t *data, size_t size)
{
	struct cm_accept first, second;
	uint8_t built[CM_MAX];
	size_t built_size;

	if (cm_get_accept(data, size, &first) != 1)
		return false;
	assert(first.size <= CM_PRIVATE_MAX && CM_ACCEPT_HEAD + first.size <= size);
	built_size = cm_put_accept(&first, built);
	assert(built_size <= size && !memcmp(built, data, built_size));
	assert(cm_get_accept(built, built_size, &second) == 1);
	assert(second.flags == first.flags);
	assert(second.wants_confirmation == first.wants_confirmation);
	return true;
}

static bool try_reject(const uint8_t *data, size_t size)
{
	unsigned reason = cm_get_reject(data, size);
	uint8_t built[CM_REJECT_MAX];

	if (!reason)
		return false;
	assert(cm_put_reject((enum cm_reason)reason, NULL, 0, built) <= size);
	assert(!memcmp(built, data, CM_REJECT_HEAD - 1));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* InfiniBand, iWARP by the kernel, MPA with and without the enhanced data */
	static const size_t rooms[] = {56, 196, 508, 512};
	int matches;

	if (size < 1)
		return 0;
	matches = try_request(data + 1, size - 1, rooms[data[0] % 4]);
	matches += try_accept(data + 1, size - 1);
	matches += try_reject(data + 1, size - 1);
	assert(matches <= 1);
	return 0;
}
