// SPDX-License-Identifier: BSD-2-Clause
/* What is on the wire (formats.h): the frames of the MPA set-up, and FPDUs. */
#include "soft/iwarp/wire/formats.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
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

/* ==== the headers of DDP and RDMAP (RFC 5041, RFC 5040), and the Terminate message ==== */

/* The first byte, of DDP. Its reserved bits, 0x3c, are sent as 0 and ignored (DDP-03). */
#define DDP_TAGGED 0x80u
#define DDP_LAST 0x40u
#define DDP_VERSION_MASK 0x03u
#define DDP_VERSION 1u

/* The second byte, of RDMAP. Its reserved bits, 0x30, are sent as 0 and ignored (RDMAP-02). */
#define RDMAP_VERSION_MASK 0xc0u
#define RDMAP_VERSION 0x40u
#define RDMAP_OPCODE_MASK 0x0fu

/* Errors that a header shows alone. */
#define BAD_LENGTH IW_ERROR(1, 0, 0x00)
#define BAD_TAGGED_VERSION IW_ERROR(1, 1, 0x04)
#define BAD_UNTAGGED_VERSION IW_ERROR(1, 2, 0x06)
#define BAD_QUEUE IW_ERROR(1, 2, 0x01)
#define BAD_OFFSET IW_ERROR(1, 2, 0x04)
#define TOO_LONG IW_ERROR(1, 2, 0x05)
#define BAD_RDMAP_VERSION IW_ERROR(0, 2, 0x05)
#define BAD_OPCODE IW_ERROR(0, 2, 0x06)

static bool is_tagged_opcode(uint8_t opcode)
{
	return opcode == IW_OP_WRITE || opcode == IW_OP_READ_RESPONSE;
}

static bool has_invalidate(uint8_t opcode)
{
	return opcode == IW_OP_SEND_INVALIDATE || opcode == IW_OP_SEND_BOTH;
}

/* The queue of an untagged opcode (RDMAP-06). */
static enum iw_queue queue_of(uint8_t opcode)
{
	if (opcode == IW_OP_READ_REQUEST || opcode == IW_OP_ATOMIC_REQUEST)
		return IW_QUEUE_READ;
	if (opcode == IW_OP_ATOMIC_RESPONSE)
		return IW_QUEUE_ATOMIC;
	return opcode == IW_OP_TERMINATE ? IW_QUEUE_TERMINATE : IW_QUEUE_SEND;
}

uint32_t iw_ddp_put(const struct iw_ddp *ddp, uint8_t out[IW_UNTAGGED_HEAD])
{
	out[0] = (uint8_t)(DDP_VERSION | (ddp->is_tagged ? DDP_TAGGED : 0) |
			   (ddp->is_last ? DDP_LAST : 0));
	out[1] = (uint8_t)(RDMAP_VERSION | (ddp->opcode & RDMAP_OPCODE_MASK));
	if (ddp->is_tagged) {
		be_put32(out + 2, ddp->stag);
		be_put64(out + 6, ddp->offset);
		return IW_TAGGED_HEAD;
	}
	be_put32(out + 2, has_invalidate(ddp->opcode) ? ddp->invalidate : 0);
	be_put32(out + 6, ddp->queue);
	be_put32(out + 10, ddp->msn);
	be_put32(out + 14, ddp->mo);
	return IW_UNTAGGED_HEAD;
}

/* Checks the two control bytes, in the order of formats.h. */
static iw_error check_control(uint8_t ddp, uint8_t rdmap, uint32_t later)
{
	bool is_tagged = ddp & DDP_TAGGED;
	uint8_t opcode = rdmap & RDMAP_OPCODE_MASK;

	if ((ddp & DDP_VERSION_MASK) != DDP_VERSION)
		return is_tagged ? BAD_TAGGED_VERSION : BAD_UNTAGGED_VERSION;
	if ((rdmap & RDMAP_VERSION_MASK) != RDMAP_VERSION)
		return BAD_RDMAP_VERSION;
	if ((opcode > IW_OP_TERMINATE && !(later & 1u << opcode)) ||
	    is_tagged != is_tagged_opcode(opcode))
		return BAD_OPCODE;
	return IW_NO_ERROR;
}

iw_error iw_ddp_get(const uint8_t *bytes, uint32_t ulpdu, struct iw_ddp *ddp)
{
	return iw_ddp_get_later(bytes, ulpdu, 0, ddp);
}

iw_error iw_ddp_get_later(const uint8_t *bytes, uint32_t ulpdu, uint32_t later, struct iw_ddp *ddp)
{
	iw_error error;

	if (!ulpdu || ulpdu < iw_ddp_head_size(bytes[0]))
		return BAD_LENGTH;
	error = check_control(bytes[0], bytes[1], later);
	if (error != IW_NO_ERROR)
		return error;
	*ddp = (struct iw_ddp){
		.is_tagged = bytes[0] & DDP_TAGGED,
		.is_last = bytes[0] & DDP_LAST,
		.opcode = bytes[1] & RDMAP_OPCODE_MASK,
	};
	if (ddp->is_tagged) {
		ddp->stag = be_get32(bytes + 2);
		ddp->offset = be_get64(bytes + 6);
		return IW_NO_ERROR;
	}
	if (has_invalidate(ddp->opcode))
		ddp->invalidate = be_get32(bytes + 2);
	ddp->queue = be_get32(bytes + 6);
	ddp->msn = be_get32(bytes + 10);
	ddp->mo = be_get32(bytes + 14);
	return ddp->queue == queue_of(ddp->opcode) ? IW_NO_ERROR : BAD_QUEUE;
}

bool iw_ddp_is_whole_send(const uint8_t *bytes, uint32_t msn, bool *is_solicited_out)
{
	*is_solicited_out = bytes[1] == (RDMAP_VERSION | IW_OP_SEND_SOLICITED);
	return bytes[0] == (DDP_VERSION | DDP_LAST) &&
	       (*is_solicited_out || bytes[1] == (RDMAP_VERSION | IW_OP_SEND)) &&
	       be_get32(bytes + 6) == IW_QUEUE_SEND && be_get32(bytes + 10) == msn &&
	       !be_get32(bytes + 14);
}

bool iw_ddp_is_whole_write(const uint8_t *bytes, uint32_t stag)
{
	return bytes[0] == (DDP_VERSION | DDP_TAGGED | DDP_LAST) &&
	       bytes[1] == (RDMAP_VERSION | IW_OP_WRITE) && be_get32(bytes + 2) == stag;
}

iw_error iw_read_request_check(const struct iw_ddp *ddp, uint32_t ulpdu)
{
	uint32_t payload = ulpdu - IW_UNTAGGED_HEAD;

	if (payload > IW_READ_REQUEST_SIZE)
		return TOO_LONG;
	return payload == IW_READ_REQUEST_SIZE && ddp->is_last && !ddp->mo ? IW_NO_ERROR
									   : BAD_OFFSET;
}

void iw_read_request_put(const struct iw_read_request *read, uint8_t out[IW_READ_REQUEST_SIZE])
{
	be_put32(out, read->sink_stag);
	be_put64(out + 4, read->sink_offset);
	be_put32(out + 12, read->size);
	be_put32(out + 16, read->source_stag);
	be_put64(out + 20, read->source_offset);
}

void iw_read_request_get(const uint8_t in[IW_READ_REQUEST_SIZE], struct iw_read_request *read)
{
	read->sink_stag = be_get32(in);
	read->sink_offset = be_get64(in + 4);
	read->size = be_get32(in + 12);
	read->source_stag = be_get32(in + 16);
	read->source_offset = be_get64(in + 20);
}

/* --- RFC 7306 --- */

#define ATOMIC_FETCH_ADD 0u
#define ATOMIC_COMPARE_SWAP 2u

iw_error iw_whole_check(const struct iw_ddp *ddp, uint32_t payload, uint32_t size)
{
	if (payload > size)
		return TOO_LONG;
	return payload == size && ddp->is_last && !ddp->mo ? IW_NO_ERROR : BAD_OFFSET;
}

void iw_immediate_put(const struct iw_immediate *immediate, uint8_t out[IW_IMMEDIATE_SIZE])
{
	be_put32(out, immediate->value);
	be_put32(out + 4, immediate->length);
}

void iw_immediate_get(const uint8_t in[IW_IMMEDIATE_SIZE], struct iw_immediate *immediate)
{
	immediate->value = be_get32(in);
	immediate->length = be_get32(in + 4);
}

/* D2-TCP-13: operation, identifier, STag, TO, operand and its mask, comparand and its mask. */
void iw_atomic_put(const struct iw_atomic *atomic, uint8_t out[IW_ATOMIC_REQUEST_SIZE])
{
	const uint64_t mask = atomic->is_swap ? UINT64_MAX : 0;

	be_put32(out, atomic->is_swap ? ATOMIC_COMPARE_SWAP : ATOMIC_FETCH_ADD);
	be_put32(out + 4, atomic->id);
	be_put32(out + 8, atomic->stag);
	be_put64(out + 12, atomic->offset);
	be_put64(out + 20, atomic->operand);
	be_put64(out + 28, mask);
	be_put64(out + 36, atomic->compare);
	be_put64(out + 44, mask);
}

bool iw_atomic_get(const uint8_t in[IW_ATOMIC_REQUEST_SIZE], struct iw_atomic *atomic)
{
	const uint32_t operation = be_get32(in);

	*atomic = (struct iw_atomic){
		.is_swap = operation == ATOMIC_COMPARE_SWAP,
		.id = be_get32(in + 4),
		.stag = be_get32(in + 8),
		.offset = be_get64(in + 12),
		.operand = be_get64(in + 20),
		.compare = be_get64(in + 36),
	};
	if (atomic->is_swap)
		return be_get64(in + 28) == UINT64_MAX && be_get64(in + 44) == UINT64_MAX;
	return operation == ATOMIC_FETCH_ADD && !be_get64(in + 28);
}

/* --- Terminate --- */

#define CONTROL_SIZE 4u
#define LENGTH_SIZE 2u

enum layer {
	LAYER_RDMAP = 0,
	LAYER_DDP = 1,
	LAYER_MPA = 2,
};

/* What follows the control: the flags of its third byte. */
enum header {
	HEADER_LENGTH = 0x80,  /* M: the segment's length is valid */
	HEADER_DDP = 0x40,     /* D */
	HEADER_REQUEST = 0x20, /* R */
	HEADER_ALL = 0xe0,
};

/* The same flags, in that order, as siw puts them on little-endian hosts. */
enum siw_header {
	SIW_LENGTH = 0x01,
	SIW_DDP = 0x02,
	SIW_REQUEST = 0x04,
	SIW_ALL = 0x07,
};

static unsigned layer_of(iw_error error)
{
	return error >> 12;
}

static unsigned type_of(iw_error error)
{
	return error >> 8 & 0x0f;
}

static unsigned code_of(iw_error error)
{
	return error & 0xff;
}

/* --- sending --- */

/* The headers that a Terminate for the error carries (TERM-04). */
static uint8_t headers_of(iw_error error, bool has_request)
{
	const uint8_t segment = HEADER_LENGTH | HEADER_DDP;
	unsigned type = type_of(error);

	switch (layer_of(error)) {
	case LAYER_RDMAP:
		if (type == 1)
			return has_request ? segment | HEADER_REQUEST : segment;
		return type == 2 && (code_of(error) == 0x07 || code_of(error) == 0x09) ? segment
										       : 0;
	case LAYER_DDP:
		/* The layout of a header of another version is not known. */
		if (error == IW_ERROR(1, 1, 0x04) || error == IW_ERROR(1, 2, 0x06))
			return 0;
		return type == 1 || type == 2 ? segment : 0;
	default:
		return 0;
	}
}

uint32_t iw_terminate_put(iw_error error, const struct iw_offender *offender,
			  uint8_t out[IW_TERMINATE_MAX])
{
	uint8_t headers = offender ? headers_of(error, offender->has_request) : 0;
	uint32_t at = CONTROL_SIZE;

	be_put16(out, error); /* layer and type in the first byte, the code in the second */
	out[2] = headers;
	out[3] = 0;
	if (headers & HEADER_DDP) {
		uint32_t head = iw_ddp_head_size(offender->head[0]);

		be_put16(out + at, offender->ulpdu);
		memcpy(out + at + LENGTH_SIZE, offender->head, head);
		at += LENGTH_SIZE + head;
	}
	if (headers & HEADER_REQUEST) {
		memcpy(out + at, offender->request, IW_READ_REQUEST_SIZE);
		at += IW_READ_REQUEST_SIZE;
	}
	return at;
}

/* --- receiving --- */

const char *iw_error_text(iw_error error)
{
	static const struct {
		iw_error error;
		const char *text;
	} texts[] = {
		{IW_ERROR(0, 0, 0), "RDMAP: local catastrophic error"},
		{IW_ERROR(0, 1, 0), "RDMAP: invalid STag"},
		{IW_ERROR(0, 1, 1), "RDMAP: base or bounds violation"},
		{IW_ERROR(0, 1, 2), "RDMAP: access rights violation"},
		{IW_ERROR(0, 1, 3), "RDMAP: STag of another stream"},
		{IW_ERROR(0, 1, 4), "RDMAP: tagged offset wraps"},
		{IW_ERROR(0, 1, 9), "RDMAP: STag cannot be invalidated"},
		{IW_ERROR(0, 2, 5), "RDMAP: invalid version"},
		{IW_ERROR(0, 2, 6), "RDMAP: unexpected operation"},
		{IW_ERROR(0, 2, 7), "RDMAP: catastrophic error of the stream"},
		{IW_ERROR(0, 2, 8), "RDMAP: catastrophic error of the device"},
		{IW_ERROR(0, 2, 9), "RDMAP: STag cannot be invalidated"},
		{IW_ERROR(1, 0, 0), "DDP: local catastrophic error"},
		{IW_ERROR(1, 1, 0), "DDP: invalid STag"},
		{IW_ERROR(1, 1, 1), "DDP: base or bounds violation"},
		{IW_ERROR(1, 1, 2), "DDP: STag of another stream"},
		{IW_ERROR(1, 1, 3), "DDP: tagged offset wraps"},
		{IW_ERROR(1, 1, 4), "DDP: invalid version of a tagged segment"},
		{IW_ERROR(1, 2, 1), "DDP: invalid queue number"},
		{IW_ERROR(1, 2, 2), "DDP: no buffer"},
		{IW_ERROR(1, 2, 3), "DDP: message sequence number out of range"},
		{IW_ERROR(1, 2, 4), "DDP: invalid message offset"},
		{IW_ERROR(1, 2, 5), "DDP: message too long for its buffer"},
		{IW_ERROR(1, 2, 6), "DDP: invalid version of an untagged segment"},
		{IW_ERROR(2, 0, 1), "MPA: TCP connection lost"},
		{IW_ERROR(2, 0, 2), "MPA: CRC error"},
		{IW_ERROR(2, 0, 3), "MPA: marker and length do not match"},
		{IW_ERROR(2, 0, 4), "MPA: invalid request or reply"},
		{IW_ERROR(2, 0, 5), "MPA: local catastrophic error"},
		{IW_ERROR(2, 0, 6), "MPA: insufficient IRD"},
		{IW_ERROR(2, 0, 7), "MPA: no matching RTR option"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].error == error)
			return texts[i].text;
	return "unspecified";
}

bool iw_error_is_known(iw_error error)
{
	unsigned code = code_of(error);

	switch (error & 0xff00) {
	case IW_ERROR(LAYER_RDMAP, 0, 0):
	case IW_ERROR(LAYER_DDP, 0, 0):
		return code == 0;
	case IW_ERROR(LAYER_RDMAP, 1, 0):
		return code <= 0x04 || code == 0x09 || code == 0xff;
	case IW_ERROR(LAYER_RDMAP, 2, 0):
		return (code >= 0x05 && code <= 0x09) || code == 0xff;
	case IW_ERROR(LAYER_DDP, 1, 0):
		return code <= 0x04;
	case IW_ERROR(LAYER_DDP, 2, 0):
		return code >= 0x01 && code <= 0x06;
	case IW_ERROR(LAYER_MPA, 0, 0):
		return code >= 0x01 && code <= 0x07;
	default:
		return false;
	}
}

/* Reads the control in either order (TERM-14). Returns the headers that follow it. */
static uint8_t get_control(const uint8_t *bytes, iw_error *error)
{
	iw_error swapped = IW_ERROR(bytes[0] & 0x0f, bytes[0] >> 4, bytes[1]);
	uint8_t flags = bytes[2];

	*error = be_get16(bytes);
	if (flags & HEADER_ALL)
		return flags & HEADER_ALL;
	if (!(flags & SIW_ALL)) {
		if (!iw_error_is_known(*error) && iw_error_is_known(swapped))
			*error = swapped;
		return 0;
	}
	*error = swapped;
	return (uint8_t)((flags & SIW_LENGTH ? HEADER_LENGTH : 0) |
			 (flags & SIW_DDP ? HEADER_DDP : 0) |
			 (flags & SIW_REQUEST ? HEADER_REQUEST : 0));
}

/*
 * Reads the length and the header of the segment. Returns their size; 0: it is no header of ours,
 * or not there.
 */
static uint32_t get_segment(const uint8_t *bytes, uint32_t size, struct iw_ddp *segment)
{
	uint32_t head;

	if (size <= LENGTH_SIZE)
		return 0;
	bytes += LENGTH_SIZE;
	size -= LENGTH_SIZE;
	head = iw_ddp_head_size(bytes[0]);
	if (size < head || iw_ddp_get_later(bytes, head, IW_OPS_LATER, segment) != IW_NO_ERROR)
		return 0;
	return LENGTH_SIZE + head;
}

bool iw_terminate_get(const uint8_t *bytes, uint32_t size, struct iw_terminate *out)
{
	uint32_t at = CONTROL_SIZE;
	uint8_t headers;

	*out = (struct iw_terminate){.error = IW_NO_ERROR};
	if (size < CONTROL_SIZE)
		return false;
	headers = get_control(bytes, &out->error);
	if (out->error == IW_NO_ERROR) /* a peer can send it, but it says nothing */
		return false;
	if (headers & HEADER_DDP) {
		uint32_t taken = get_segment(bytes + at, size - at, &out->segment);

		if (!taken)
			return false;
		at += taken;
		out->has_segment = headers & HEADER_LENGTH;
	}
	if (headers & HEADER_REQUEST) {
		/* what was asked is known only with the header of the Read Request */
		if (!(headers & HEADER_DDP) || out->segment.opcode != IW_OP_READ_REQUEST ||
		    size - at < IW_READ_REQUEST_SIZE)
			return false;
		iw_read_request_get(bytes + at, &out->request);
		at += IW_READ_REQUEST_SIZE;
		out->has_request = true;
	}
	return at == size;
}
