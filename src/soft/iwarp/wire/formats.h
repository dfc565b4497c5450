// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is on the wire, as pure functions of bytes: the frames of the MPA set-up (RFC 5044 section
 * 7.1.1, RFC 6581) and the lengths of FPDUs; the headers of DDP and RDMAP.
 */
#ifndef IWARP_FORMATS_H
#define IWARP_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IW_MPA_HEAD 20u
#define IW_MPA_PRIVATE_MAX 512u /* with the enhanced data */
#define IW_MPA_ENHANCED 4u
#define IW_PRIVATE_MAX (IW_MPA_PRIVATE_MAX - IW_MPA_ENHANCED) /* of the consumer */
#define IW_MPA_FRAME_MAX (IW_MPA_HEAD + IW_MPA_PRIVATE_MAX)
#define IW_MPA_DEPTH_MAX 0x3ffeu     /* of RDMA Reads */
#define IW_MPA_DEPTH_UNKNOWN 0x3fffu /* not negotiated */

/* Forms of the ready-to-receive message. */
enum iw_rtr {
	IW_RTR_NONE = 0,
	IW_RTR_SEND = 1,  /* B: a zero-length FPDU or Send */
	IW_RTR_WRITE = 2, /* C: a zero-length RDMA Write */
	IW_RTR_READ = 4,  /* D: a zero-length RDMA Read */
};

struct iw_mpa {
	bool is_reply;
	bool has_markers; /* M */
	bool has_crc;	  /* C */
	bool is_rejected; /* R, replies only */
	uint8_t revision;
	bool is_enhanced; /* revision 2 with S */
	/* enhanced only */
	bool is_peer_to_peer; /* A */
	uint8_t rtr;	      /* bits of enum iw_rtr; received without A: none (MPA-30) */
	uint16_t ird;
	uint16_t ord;
	/* without the enhanced data; points into the frame that was parsed */
	const uint8_t *private_data;
	uint16_t private_size;
};

/* Builds a frame; returns its size. `private_size` is at most 512, less 4 if enhanced. */
size_t iw_mpa_put(const struct iw_mpa *mpa, uint8_t out[IW_MPA_FRAME_MAX]);

/*
 * Parses the first `size` bytes of a frame. Returns the size of the whole frame; 0: more bytes are
 * needed; -EPROTO: invalid (as soon as the first wrong byte is there: MPA-08, MPA-09, MPA-10);
 * -EMSGSIZE: enhanced with less than 4 bytes of private data (MPA-13), and the frame is complete;
 * mpa_out then has the fields up to is_enhanced. Otherwise mpa_out is written with the frame only.
 */
int iw_mpa_get(const uint8_t *bytes, size_t size, bool is_reply, struct iw_mpa *mpa_out);

/* The form of ready-to-receive message that a reply to this request chooses (MPA-29). */
enum iw_rtr iw_mpa_choose_rtr(uint8_t offered);

/* --- FPDUs --- */

#define IW_FPDU_HEAD 2u
#define IW_FPDU_CRC 4u
#define IW_ULPDU_MAX 65535u

/* Bytes of pad behind a ULPDU of that size (0 to 3), and the size of the whole FPDU. */
static inline uint32_t iw_fpdu_pad(uint32_t ulpdu)
{
	return -(IW_FPDU_HEAD + ulpdu) & 3u;
}
static inline uint32_t iw_fpdu_size(uint32_t ulpdu)
{
	return IW_FPDU_HEAD + ulpdu + iw_fpdu_pad(ulpdu) + IW_FPDU_CRC;
}

/* The largest ULPDU in one TCP segment of `emss` bytes (MPA-56); 0: none fits. */
uint32_t iw_fpdu_mulpdu(uint32_t emss);

/*
 * ==== DDP and RDMAP ====
 *
 * Headers of DDP segments (RFC 5041) and RDMAP messages (RFC 5040), and what is checked about each
 * one alone. Pure functions of bytes.
 */

#define IW_TAGGED_HEAD 14u
#define IW_UNTAGGED_HEAD 18u
#define IW_READ_REQUEST_SIZE 28u
#define IW_IMMEDIATE_SIZE 8u
#define IW_ATOMIC_REQUEST_SIZE 52u
#define IW_ATOMIC_RESPONSE_SIZE 12u

enum iw_opcode {
	IW_OP_WRITE = 0,
	IW_OP_READ_REQUEST = 1,
	IW_OP_READ_RESPONSE = 2,
	IW_OP_SEND = 3,
	IW_OP_SEND_INVALIDATE = 4,
	IW_OP_SEND_SOLICITED = 5,
	IW_OP_SEND_BOTH = 6, /* solicited, with invalidate */
	IW_OP_TERMINATE = 7,
	/* RFC 7306 */
	IW_OP_IMMEDIATE = 8,
	IW_OP_IMMEDIATE_SOLICITED = 9,
	IW_OP_ATOMIC_REQUEST = 10,
	IW_OP_ATOMIC_RESPONSE = 11,
};
#define IW_OPS_IMMEDIATE (1u << IW_OP_IMMEDIATE | 1u << IW_OP_IMMEDIATE_SOLICITED)
#define IW_OPS_LATER (IW_OPS_IMMEDIATE | 1u << IW_OP_ATOMIC_REQUEST | 1u << IW_OP_ATOMIC_RESPONSE)

enum iw_queue {
	IW_QUEUE_SEND = 0,
	IW_QUEUE_READ = 1,
	IW_QUEUE_TERMINATE = 2,
	IW_QUEUE_ATOMIC = 3, /* responses */
	IW_QUEUES = 4,
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

/* Does it carry immediate data? */
static inline bool iw_is_immediate(const struct iw_ddp *ddp)
{
	return ddp->opcode == IW_OP_IMMEDIATE || ddp->opcode == IW_OP_IMMEDIATE_SOLICITED;
}

/* Writes the header and returns its size. */
uint32_t iw_ddp_put(const struct iw_ddp *ddp, uint8_t out[IW_UNTAGGED_HEAD]);

/*
 * Parses the header of a ULPDU of `ulpdu` bytes, of which the header is there. Checks all that the
 * header shows alone: the length (MPA-60), versions, opcode, T bit, queue, in the order of DDP-24.
 * Returns IW_NO_ERROR, or the error to terminate with.
 */
iw_error iw_ddp_get(const uint8_t *bytes, uint32_t ulpdu, struct iw_ddp *ddp_out);
/* The same where these opcodes of RFC 7306 are agreed: bits 1 << enum iw_opcode. */
iw_error iw_ddp_get_later(const uint8_t *bytes, uint32_t ulpdu, uint32_t later,
			  struct iw_ddp *ddp_out);

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

/* --- RFC 7306 --- */

/* Is the message whose segment that is, with a payload of that size, whole in it, and as long as
 * its kind is? IW_NO_ERROR, or the error to terminate with (D2-TCP-11). */
iw_error iw_whole_check(const struct iw_ddp *ddp, uint32_t payload, uint32_t size);

/* Immediate data, and the length of the Write that they belong to (D2-TCP-08). */
struct iw_immediate {
	uint32_t value;
	uint32_t length;
};

struct iw_atomic {
	bool is_swap; /* else an addition */
	uint32_t id;
	uint32_t stag;
	uint64_t offset;
	uint64_t operand; /* is added, or stored */
	uint64_t compare;
};

void iw_immediate_put(const struct iw_immediate *immediate, uint8_t out[IW_IMMEDIATE_SIZE]);
void iw_immediate_get(const uint8_t in[IW_IMMEDIATE_SIZE], struct iw_immediate *immediate_out);
void iw_atomic_put(const struct iw_atomic *atomic, uint8_t out[IW_ATOMIC_REQUEST_SIZE]);
/* False: another operation, or masks that are not served (D2-TCP-14). */
bool iw_atomic_get(const uint8_t in[IW_ATOMIC_REQUEST_SIZE], struct iw_atomic *atomic_out);

/* --- Terminate --- */

/* control 4, segment length 2, DDP header 18, Read Request 28 */
#define IW_TERMINATE_MAX (4u + 2u + IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE)

/* The segment that was at fault, as it came. */
struct iw_offender {
	uint16_t ulpdu;			       /* ULPDU_Length of its FPDU */
	uint8_t head[IW_UNTAGGED_HEAD];	       /* 14 or 18 bytes, as its first byte says */
	uint8_t request[IW_READ_REQUEST_SIZE]; /* if it is a Read Request */
	bool has_request;
};

/*
 * Builds the payload with the headers that TERM-04 wants for the error; returns its size.
 * `offender` may be NULL if no segment is at fault.
 */
uint32_t iw_terminate_put(iw_error error, const struct iw_offender *offender,
			  uint8_t out[IW_TERMINATE_MAX]);

/* Is the error one of the registry of RFC 6580? */
bool iw_error_is_known(iw_error error);

/* Its name in the RFCs; "unspecified" for a code that they do not have. */
const char *iw_error_text(iw_error error);

/* What a received Terminate says. */
struct iw_terminate {
	iw_error error;
	bool has_segment; /* D and M: `segment` is the header of our segment that was at fault */
	struct iw_ddp segment;
	bool has_request; /* R */
	struct iw_read_request request;
};

/*
 * Parses the payload, in the order of the RFC or of siw on little-endian hosts (TERM-14). False: it
 * is malformed (too short, too long, with a header that is none of ours); the connection breaks in
 * both cases. `error` is set if the payload is long enough to contain it, else to IW_NO_ERROR.
 */
bool iw_terminate_get(const uint8_t *bytes, uint32_t size, struct iw_terminate *out);

#endif
