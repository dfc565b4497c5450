// SPDX-License-Identifier: BSD-2-Clause
/* Headers of DDP segments and RDMAP messages (ddp.h). */
#include "soft/iwarp/wire/ddp.h"

#include "shared/bytes.h"

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
	if (opcode == IW_OP_READ_REQUEST)
		return IW_QUEUE_READ;
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

/* Checks the two control bytes, in the order of ddp.h. */
static iw_error check_control(uint8_t ddp, uint8_t rdmap)
{
	bool is_tagged = ddp & DDP_TAGGED;
	uint8_t opcode = rdmap & RDMAP_OPCODE_MASK;

	if ((ddp & DDP_VERSION_MASK) != DDP_VERSION)
		return is_tagged ? BAD_TAGGED_VERSION : BAD_UNTAGGED_VERSION;
	if ((rdmap & RDMAP_VERSION_MASK) != RDMAP_VERSION)
		return BAD_RDMAP_VERSION;
	if (opcode > IW_OP_TERMINATE || is_tagged != is_tagged_opcode(opcode))
		return BAD_OPCODE;
	return IW_NO_ERROR;
}

iw_error iw_ddp_get(const uint8_t *bytes, uint32_t ulpdu, struct iw_ddp *ddp)
{
	iw_error error;

	if (!ulpdu || ulpdu < iw_ddp_head_size(bytes[0]))
		return BAD_LENGTH;
	error = check_control(bytes[0], bytes[1]);
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
