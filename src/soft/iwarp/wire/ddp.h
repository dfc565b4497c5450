// SPDX-License-Identifier: BSD-2-Clause
/*
 * Headers of DDP segments (RFC 5041) and RDMAP messages (RFC 5040), and what is checked about each
 * one alone. Pure functions of bytes.
 */
#ifndef IWARP_DDP_H
#define IWARP_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IW_TAGGED_HEAD 14u
#define IW_UNTAGGED_HEAD 18u
#define IW_READ_REQUEST_SIZE 28u

enum iw_opcode {
	IW_OP_WRITE = 0,
	IW_OP_READ_REQUEST = 1,
	IW_OP_READ_RESPONSE = 2,
	IW_OP_SEND = 3,
	IW_OP_SEND_INVALIDATE = 4,
	IW_OP_SEND_SOLICITED = 5,
	IW_OP_SEND_BOTH = 6, /* solicited, with invalidate */
	IW_OP_TERMINATE = 7,
};

enum iw_queue {
	IW_QUEUE_SEND = 0,
	IW_QUEUE_READ = 1,
	IW_QUEUE_TERMINATE = 2,
	IW_QUEUES = 3,
};

/* One segment's header. */
struct iw_ddp {
	bool is_tagged;
	bool is_last;
	uint8_t opcode; /* enum iw_opcode */
	/* tagged */
	uint32_t stag;
	uint64_t offset; /* TO */
	/* untagged */
	uint32_t invalidate; /* STag of opcodes 4 and 6, else 0 */
	uint32_t queue;	     /* QN */
	uint32_t msn;
	uint32_t mo;
};

struct iw_read_request {
	uint32_t sink_stag;
	uint64_t sink_offset;
	uint32_t size;
	uint32_t source_stag;
	uint64_t source_offset;
};

/* An error as a Terminate names it: layer << 12 | type << 8 | code. 0x0000 is 0/0/00. */
typedef uint16_t iw_error;
#define IW_ERROR(layer, type, code) ((iw_error)((layer) << 12 | (type) << 8 | (code)))
#define IW_NO_ERROR ((iw_error)0xffff)

/* Is the header of the segment that begins with that byte tagged? The size of the header. */
static inline uint32_t iw_ddp_head_size(uint8_t control)
{
	return control & 0x80 ? IW_TAGGED_HEAD : IW_UNTAGGED_HEAD;
}

/* The same for a header that is to be built. */
static inline uint32_t iw_ddp_size(const struct iw_ddp *ddp)
{
	return ddp->is_tagged ? IW_TAGGED_HEAD : IW_UNTAGGED_HEAD;
}

/* Writes the header and returns its size. */
uint32_t iw_ddp_put(const struct iw_ddp *ddp, uint8_t out[IW_UNTAGGED_HEAD]);

/*
 * Parses the header of a ULPDU of `ulpdu` bytes, of which the header is there. Checks all that the
 * header shows alone: the length (MPA-60), versions, opcode, T bit, queue, in the order of DDP-24.
 * Returns IW_NO_ERROR, or the error to terminate with.
 */
iw_error iw_ddp_get(const uint8_t *bytes, uint32_t ulpdu, struct iw_ddp *ddp_out);

/*
 * Is that the header of a Send of one segment, which is the message `msn` of its queue, solicited
 * or not, without any reserved bit? All of the header is there. Such a header has no error.
 */
bool iw_ddp_is_whole_send(const uint8_t *bytes, uint32_t msn, bool *is_solicited_out);

/* Is that the header of an RDMA Write of one segment to that STag? */
bool iw_ddp_is_whole_write(const uint8_t *bytes, uint32_t stag);

/*
 * Is the Read Request whose header that is, in a ULPDU of that size, whole in this one segment
 * (RDMAP-10)? Returns IW_NO_ERROR, or the error to terminate with.
 */
iw_error iw_read_request_check(const struct iw_ddp *ddp, uint32_t ulpdu);

void iw_read_request_put(const struct iw_read_request *read, uint8_t out[IW_READ_REQUEST_SIZE]);
void iw_read_request_get(const uint8_t in[IW_READ_REQUEST_SIZE], struct iw_read_request *read_out);

#endif
