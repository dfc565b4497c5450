// SPDX-License-Identifier: BSD-2-Clause
/* The frames of the MPA set-up (mpa.h). */
#include "soft/iwarp/wire/mpa.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "shared/bytes.h"

#define KEY_SIZE 16u
static const char request_key[KEY_SIZE + 1] = "MPA ID Req Frame";
static const char reply_key[KEY_SIZE + 1] = "MPA ID Rep Frame";

/* Places of the fields behind the key. */
enum {
	AT_FLAGS = 16,
	AT_REVISION = 17,
	AT_SIZE = 18, /* PD_Length */
};

enum flag {
	FLAG_MARKERS = 0x80,
	FLAG_CRC = 0x40,
	FLAG_REJECT = 0x20,
	FLAG_ENHANCED = 0x10,
};

/* The enhanced data: two words, each with two bits in front of a depth. */
#define FIRST_PEER_TO_PEER 0x8000u /* A */
#define FIRST_SEND 0x4000u	   /* B */
#define SECOND_WRITE 0x8000u	   /* C */
#define SECOND_READ 0x4000u	   /* D */
#define DEPTH_MASK 0x3fffu

static void put_enhanced(const struct iw_mpa *mpa, uint8_t out[IW_MPA_ENHANCED])
{
	be_put16(out,
		 (uint16_t)((mpa->is_peer_to_peer ? FIRST_PEER_TO_PEER : 0) |
			    (mpa->rtr & IW_RTR_SEND ? FIRST_SEND : 0) | (mpa->ird & DEPTH_MASK)));
	be_put16(out + 2,
		 (uint16_t)((mpa->rtr & IW_RTR_WRITE ? SECOND_WRITE : 0) |
			    (mpa->rtr & IW_RTR_READ ? SECOND_READ : 0) | (mpa->ord & DEPTH_MASK)));
}

static void get_enhanced(const uint8_t *bytes, struct iw_mpa *mpa)
{
	uint16_t first = be_get16(bytes);
	uint16_t second = be_get16(bytes + 2);

	mpa->is_peer_to_peer = first & FIRST_PEER_TO_PEER;
	if (mpa->is_peer_to_peer) /* MPA-30 */
		mpa->rtr = (uint8_t)((first & FIRST_SEND ? IW_RTR_SEND : 0) |
				     (second & SECOND_WRITE ? IW_RTR_WRITE : 0) |
				     (second & SECOND_READ ? IW_RTR_READ : 0));
	mpa->ird = first & DEPTH_MASK;
	mpa->ord = second & DEPTH_MASK;
}

size_t iw_mpa_put(const struct iw_mpa *mpa, uint8_t out[IW_MPA_FRAME_MAX])
{
	uint32_t enhanced = mpa->is_enhanced ? IW_MPA_ENHANCED : 0;

	assert(mpa->private_size + enhanced <= IW_MPA_PRIVATE_MAX);
	memcpy(out, mpa->is_reply ? reply_key : request_key, KEY_SIZE);
	out[AT_FLAGS] =
		(uint8_t)((mpa->has_markers ? FLAG_MARKERS : 0) | (mpa->has_crc ? FLAG_CRC : 0) |
			  (mpa->is_reply && mpa->is_rejected ? FLAG_REJECT : 0) |
			  (mpa->is_enhanced ? FLAG_ENHANCED : 0));
	out[AT_REVISION] = mpa->revision;
	be_put16(out + AT_SIZE, (uint16_t)(mpa->private_size + enhanced));
	if (enhanced)
		put_enhanced(mpa, out + IW_MPA_HEAD);
	if (mpa->private_size)
		memcpy(out + IW_MPA_HEAD + enhanced, mpa->private_data, mpa->private_size);
	return IW_MPA_HEAD + enhanced + mpa->private_size;
}

/* Can the bytes, of which there may be few, still become a valid frame? */
static bool is_possible(const uint8_t *bytes, size_t size, bool is_reply)
{
	const char *key = is_reply ? reply_key : request_key;

	if (memcmp(bytes, key, size < KEY_SIZE ? size : KEY_SIZE) != 0)
		return false;
	if (size > AT_REVISION && bytes[AT_REVISION] != 1 && bytes[AT_REVISION] != 2)
		return false;
	if (size > AT_SIZE && bytes[AT_SIZE] > IW_MPA_PRIVATE_MAX >> 8)
		return false;
	return size < IW_MPA_HEAD || be_get16(bytes + AT_SIZE) <= IW_MPA_PRIVATE_MAX;
}

int iw_mpa_get(const uint8_t *bytes, size_t size, bool is_reply, struct iw_mpa *mpa)
{
	uint16_t private_size;
	uint8_t flags;

	if (!is_possible(bytes, size, is_reply))
		return -EPROTO;
	if (size < IW_MPA_HEAD)
		return 0;
	private_size = be_get16(bytes + AT_SIZE);
	if (size - IW_MPA_HEAD < private_size)
		return 0;

	flags = bytes[AT_FLAGS];
	*mpa = (struct iw_mpa){
		.is_reply = is_reply,
		.has_markers = flags & FLAG_MARKERS,
		.has_crc = flags & FLAG_CRC,
		.is_rejected = is_reply && (flags & FLAG_REJECT), /* MPA-05 */
		.revision = bytes[AT_REVISION],
		.is_enhanced = bytes[AT_REVISION] == 2 && (flags & FLAG_ENHANCED), /* MPA-12 */
	};
	if (mpa->is_enhanced) {
		if (private_size < IW_MPA_ENHANCED)
			return -EMSGSIZE;
		get_enhanced(bytes + IW_MPA_HEAD, mpa);
	}
	mpa->private_size = private_size - (mpa->is_enhanced ? IW_MPA_ENHANCED : 0);
	mpa->private_data = bytes + IW_MPA_HEAD + private_size - mpa->private_size;
	return (int)(IW_MPA_HEAD + private_size);
}

enum iw_rtr iw_mpa_choose_rtr(uint8_t offered)
{
	if (!(offered & IW_RTR_WRITE)) {
		if (offered & IW_RTR_READ)
			return IW_RTR_READ;
		if (offered & IW_RTR_SEND)
			return IW_RTR_SEND;
	}
	return IW_RTR_WRITE; /* also if none was offered, as siw does */
}

uint32_t iw_fpdu_mulpdu(uint32_t emss)
{
	uint32_t around = IW_FPDU_HEAD + IW_FPDU_CRC + emss % 4;

	if (emss <= around)
		return 0;
	return emss - around < IW_ULPDU_MAX ? emss - around : IW_ULPDU_MAX;
}
