// SPDX-License-Identifier: BSD-2-Clause
/* The Terminate message (terminate.h). */
#include "soft/iwarp/wire/terminate.h"

#include <stddef.h>
#include <string.h>

#include "shared/bytes.h"

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
	if (size < head || iw_ddp_get(bytes, head, segment) != IW_NO_ERROR)
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
