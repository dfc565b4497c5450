// SPDX-License-Identifier: BSD-2-Clause
/* The Terminate message (RFC 5040 section 4.8): payload, and what it says about a request. */
#ifndef IWARP_TERMINATE_H
#define IWARP_TERMINATE_H

#include "soft/iwarp/wire/ddp.h"

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
