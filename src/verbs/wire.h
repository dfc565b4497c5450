// SPDX-License-Identifier: BSD-2-Clause
/*
 * What two OpenDAT adapters write into the private data of the connection manager, in network byte
 * order, in front of the consumer's bytes; and the ports that a qualifier is looked for on.
 *
 *   request  magic 4, version 1, type 1, flags 1, size 1, qualifier 8, nonce 4, port 2,
 *            RDMA Reads served 1, RDMA Reads wanted 1, data
 *   accept   magic 4, version 1, type 1, RDMA Reads served 1, size 1, data; of one type, or of
 *            another when it wants to be confirmed (iwarp.c)
 *   reject   magic 4, version 1, type 1, reason 1, zero 1
 *
 * The connection manager of InfiniBand and RoCE leaves 56 bytes in a request. Data that do not fit
 * are sent ahead: a request with VRB_WIRE_MORE brings the first part and is rejected with
 * VRB_REASON_MORE; the next one, with the same nonce and VRB_WIRE_CONTINUED, brings the rest. A
 * peer that is no OpenDAT sends no header and gets what it sent, padded as its manager pads.
 */
#ifndef VERBS_WIRE_H
#define VERBS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VRB_WIRE_VERSION 1
#define VRB_PRIVATE_MAX 64u /* bytes of the consumer's: CONN-GEN-01 */
#define VRB_REQUEST_HEAD 24u
#define VRB_ACCEPT_HEAD 8u
#define VRB_REJECT_SIZE 8u
#define VRB_WIRE_MAX (VRB_REQUEST_HEAD + VRB_PRIVATE_MAX)

enum vrb_wire_flag {
	VRB_WIRE_MORE = 1,	/* a first part only */
	VRB_WIRE_CONTINUED = 2, /* the first part came before */
};

enum vrb_reason {
	VRB_REASON_CONSUMER = 1, /* dat_cr_reject */
	VRB_REASON_PROVIDER = 2, /* backlog, service point freed, ... */
	VRB_REASON_NOT_HERE = 3, /* this port serves another qualifier */
	VRB_REASON_MORE = 4,	 /* the first part is taken, send the rest */
};

struct vrb_wire_request {
	uint8_t flags;
	uint8_t size; /* of all the private data */
	uint64_t qual;
	uint32_t nonce;	   /* names the attempt */
	uint16_t port;	   /* local_port of the asking endpoint */
	uint8_t read_in;   /* RDMA Reads that the sender serves at once */
	uint8_t read_out;  /* and wants in flight at once */
	uint8_t data_size; /* bytes in this part */
	uint8_t data[VRB_PRIVATE_MAX];
};

struct vrb_wire_accept {
	bool wants_confirmation; /* by a message of length 0 */
	uint8_t read_in;
	uint8_t size;
	uint8_t data[VRB_PRIVATE_MAX];
};

/* Each returns the number of bytes written. */
size_t vrb_wire_put_request(const struct vrb_wire_request *request, uint8_t out[VRB_WIRE_MAX]);
size_t vrb_wire_put_accept(const struct vrb_wire_accept *accept, uint8_t out[VRB_WIRE_MAX]);
size_t vrb_wire_put_reject(enum vrb_reason reason, uint8_t out[VRB_REJECT_SIZE]);

/*
 * What came, which may be anything. 1: one of ours, decoded. 0: no header of ours. -1: a header of
 * ours that makes no sense, or of another version. `room` is what a request may carry on this
 * device: it tells how the data were divided.
 */
int vrb_wire_get_request(const void *bytes, size_t size, size_t room,
			 struct vrb_wire_request *request_out);
int vrb_wire_get_accept(const void *bytes, size_t size, struct vrb_wire_accept *accept_out);
/* The reason, or 0. */
unsigned vrb_wire_get_reject(const void *bytes, size_t size);

#define VRB_PORTS 5u /* places that a qualifier may be found at */
/* The port to try at that place; 0: none there. The first one is the qualifier itself. */
uint16_t vrb_wire_port(uint64_t qual, unsigned place);

#endif
