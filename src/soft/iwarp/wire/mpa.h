// SPDX-License-Identifier: BSD-2-Clause
/*
 * The frames of the MPA set-up (RFC 5044 section 7.1.1, RFC 6581), and the lengths of FPDUs. Pure
 * functions of bytes.
 */
#ifndef IWARP_MPA_H
#define IWARP_MPA_H

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

#endif
