// SPDX-License-Identifier: BSD-2-Clause
/*
 * What OpenDAT adapters write into the private data of the connection manager, in network byte
 * order, in front of the consumer's data; and the ports of a qualifier. The verbs provider and the
 * TCP transport use the same, because each reaches the other (IWCM-06, IWCM-10).
 *
 *   request  magic 4, version 1, type 1, flags 1, size 1, qualifier 8, nonce 4, port 2,
 *            RDMA Reads served 1, RDMA Reads wanted 1, data
 *   accept   magic 4, version 1, type 1, RDMA Reads served 1, size 1, data, flags 1; the type says
 *            whether a confirmation is wanted (verbs/iwarp.c); no byte of flags is sent if they are
 * 0 reject   magic 4, version 1, type 1, reason 1, size 1, data
 *
 * The connection manager of InfiniBand and RoCE leaves 56 bytes in a request. Data that does not
 * fit is sent in two requests. The first has CM_MORE and the first part; it is rejected with
 * CM_REASON_MORE. The second has the same nonce, CM_CONTINUED, and the rest. A foreign peer
 * sends no header, and gets the consumer's data alone, padded as its connection manager does.
 *
 * Flags that a receiver does not know are ignored, and so is what follows the data and flags of an
 * accept. So two engines can agree on more than others understand (IWCM-14).
 */
#ifndef SHARED_CM_H
#define SHARED_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CM_VERSION 1
#define CM_PRIVATE_MAX 64u /* of the consumer's data: CONN-GEN-01 */
#define CM_REQUEST_HEAD 24u
#define CM_ACCEPT_HEAD 8u
#define CM_REJECT_HEAD 8u
#define CM_REJECT_MAX (CM_REJECT_HEAD + CM_PRIVATE_MAX)
#define CM_MAX (CM_REQUEST_HEAD + CM_PRIVATE_MAX)

enum cm_flag {
	CM_MORE = 1,	  /* this is the first part */
	CM_CONTINUED = 2, /* the first part was sent before */
	/*
	 * In a request and in an accept: the sender's engine is OpenDAT's own over TCP. It accepts
	 * FPDUs of any size, and counts the messages and RDMA Writes that it has carried out
	 * (IWCM-14). The verbs provider neither sends nor reads it. The value 4 was an earlier
	 * agreement, without counts.
	 */
	CM_COUNTS = 8,
	/*
	 * What the sender's endpoint takes (D2-TCP-01). Over TCP it counts with CM_COUNTS only; the
	 * verbs provider reads it where the device has these operations.
	 */
	CM_IMMEDIATE = 0x10,
	CM_ATOMICS = 0x20,
	CM_INVALIDATE = 0x40, /* as immediate data of a Send; TCP needs no agreement */
};

/* enum transport_takes of the core as flags, and back. */
#define CM_TAKES_SHIFT 4u
#define CM_TAKES (CM_IMMEDIATE | CM_ATOMICS | CM_INVALIDATE)
static inline uint8_t cm_flags_of(uint32_t takes)
{
	return (uint8_t)(takes << CM_TAKES_SHIFT & CM_TAKES);
}

static inline uint32_t cm_takes_of(uint8_t flags)
{
	return (flags & (uint32_t)CM_TAKES) >> CM_TAKES_SHIFT;
}

enum cm_reason {
	CM_REASON_CONSUMER = 1, /* dat_cr_reject */
	CM_REASON_PROVIDER = 2, /* backlog, service point freed, ... */
	CM_REASON_NOT_HERE = 3, /* this port serves another qualifier */
	CM_REASON_MORE = 4,	/* the first part was stored; send the rest */
};

struct cm_request {
	uint8_t flags; /* of enum cm_flag */
	uint8_t size;  /* of all private data */
	uint64_t qual;
	uint32_t nonce;	   /* the same in all requests of an attempt */
	uint16_t port;	   /* local_port of the active endpoint */
	uint8_t read_in;   /* RDMA Reads that the sender serves at a time */
	uint8_t read_out;  /* those that it starts at a time */
	uint8_t data_size; /* bytes in this part */
	uint8_t data[CM_PRIVATE_MAX];
};

struct cm_accept {
	bool wants_confirmation; /* by a message of length 0 */
	uint8_t read_in;
	uint8_t size;
	uint8_t data[CM_PRIVATE_MAX];
	uint8_t flags; /* CM_COUNTS and what depends on it, or 0 */
};

/* Each returns the number of bytes written. */
size_t cm_put_request(const struct cm_request *request, uint8_t out[CM_MAX]);
size_t cm_put_accept(const struct cm_accept *accept, uint8_t out[CM_MAX]);
/* More than CM_PRIVATE_MAX bytes of data are left out. */
size_t cm_put_reject(enum cm_reason reason, const void *data, size_t size,
		     uint8_t out[CM_REJECT_MAX]);

/*
 * Decode what a peer has sent, which may be anything. 1: decoded. 0: no header of OpenDAT. -1: an
 * invalid header, or one of another version. `room` is the size of a request's private data on this
 * device, which determines how the data was divided.
 */
int cm_get_request(const void *bytes, size_t size, size_t room, struct cm_request *request_out);
int cm_get_accept(const void *bytes, size_t size, struct cm_accept *accept_out);
/* Returns the reason, or 0. */
unsigned cm_get_reject(const void *bytes, size_t size);
/* The consumer's data behind the header of a rejection: returns their size. Older software sends
 * none. */
uint32_t cm_reject_data(const void *bytes, size_t size, const void **data_out);

#define CM_PORTS 5u /* that a qualifier may be found at */
/* The port with that index; 0: there is none. Index 0 is the qualifier itself. */
uint16_t cm_port(uint64_t qual, unsigned index);

#endif
