// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a frame of the MPA set-up: the first byte says whether it is a reply, the rest is
 * what came. What is parsed must lie within the frame, mean the same when it is built again, and
 * not depend on the pieces in which it arrives.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "soft/iwarp/wire/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_equal(const struct iw_mpa *a, const struct iw_mpa *b)
{
	assert(a->is_reply == b->is_reply && a->has_markers == b->has_markers);
	assert(a->has_crc == b->has_crc && a->is_rejected == b->is_rejected);
	assert(a->revision == b->revision && a->is_enhanced == b->is_enhanced);
	assert(a->is_peer_to_peer == b->is_peer_to_peer && a->rtr == b->rtr);
	assert(a->ird == b->ird && a->ord == b->ord);
	assert(a->private_size == b->private_size);
	assert(!memcmp(a->private_data, b->private_data, a->private_size));
}

static void check_frame(const uint8_t *bytes, int size, const struct iw_mpa *mpa)
{
	uint8_t built[IW_MPA_FRAME_MAX];
	struct iw_mpa again;

	assert(size >= (int)IW_MPA_HEAD && size <= (int)IW_MPA_FRAME_MAX);
	assert(mpa->private_data >= bytes + IW_MPA_HEAD);
	assert(mpa->private_data + mpa->private_size == bytes + size);
	assert(mpa->is_enhanced || !(mpa->rtr | mpa->ird | mpa->ord));
	assert(iw_mpa_put(mpa, built) == (size_t)size);
	assert(iw_mpa_get(built, (size_t)size, mpa->is_reply, &again) == size);
	check_equal(mpa, &again);
}

/* A verdict other than "more bytes are needed" stays the same however many bytes follow. */
static void check_pieces(const uint8_t *bytes, size_t size, bool is_reply, int whole)
{
	for (size_t piece = 0; piece < size; piece++) {
		struct iw_mpa mpa;
		int rc = iw_mpa_get(bytes, piece, is_reply, &mpa);

		assert(rc == 0 || rc == whole);
		assert(rc <= (int)piece);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iw_mpa mpa;
	bool is_reply;
	int rc;

	if (size < 1)
		return 0;
	is_reply = data[0] & 1;
	data++;
	size--;
	rc = iw_mpa_get(data, size, is_reply, &mpa);
	assert(rc >= 0 || rc == -EPROTO || rc == -EMSGSIZE);
	assert(rc <= (int)size);
	if (rc > 0)
		check_frame(data, rc, &mpa);
	check_pieces(data, size < IW_MPA_FRAME_MAX ? size : IW_MPA_FRAME_MAX, is_reply, rc);
	return 0;
}
