// SPDX-License-Identifier: BSD-2-Clause
/*
 * What OpenDAT adapters write into the private data of the connection manager, in network byte
 * order, in front of the consumer's data; and the ports of a qualifier.
 *
 *   request  magic 4, version 1, type 1, flags 1, size 1, qualifier 8, nonce 4, port 2,
 *            RDMA Reads served 1, RDMA Reads wanted 1, data
 *   accept   magic 4, version 1, type 1, RDMA Reads served 1, size 1, data; the type says whether
 *            a confirmation is wanted (iwarp.c)
 *   reject   magic 4, version 1, type 1, reason 1, zero 1
 *
 * The connection manager of InfiniBand and RoCE leaves 56 bytes in a request. Data that does not
 * fit is sent in two requests. The first has VRB_WIRE_MORE and the first part; it is rejected with
 * VRB_REASON_MORE. The second has the same nonce, VRB_WIRE_CONTINUED, and the rest. A foreign peer
 * sends no header, and gets the consumer's data alone, padded as its connection manager does.
 */
#ifndef VERBS_WIRE_H
#define VERBS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VRB_WIRE_VERSION 1
#define VRB_PRIVATE_MAX 64u /* of the consumer's data: CONN-GEN-01 */
#define VRB_REQUEST_HEAD 24u
#define VRB_ACCEPT_HEAD 8u
#define VRB_REJECT_SIZE 8u
#define VRB_WIRE_MAX (VRB_REQUEST_HEAD + VRB_PRIVATE_MAX)

enum vrb_wire_flag {
	VRB_WIRE_MORE = 1,	/* this is the first part */
	VRB_WIRE_CONTINUED = 2, /* the first part was sent before */
};

enum vrb_reason {
	VRB_REASON_CONSUMER = 1, /* dat_cr_reject */
	VRB_REASON_PROVIDER = 2, /* backlog, service point freed, ... */
	VRB_REASON_NOT_HERE = 3, /* this port serves another qualifier */
	VRB_REASON_MORE = 4,	 /* the first part was stored; send the rest */
};

struct vrb_wire_request {
	uint8_t flags;
	uint8_t size; /* of all private data */
	uint64_t qual;
	uint32_t nonce;	   /* the same in all requests of an attempt */
	uint16_t port;	   /* local_port of the active endpoint */
	uint8_t read_in;   /* RDMA Reads that the sender serves at a time */
	uint8_t read_out;  /* and starts at a time */
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
 * Decode what a peer has sent, which may be anything. 1: decoded. 0: no header of OpenDAT. -1: an
 * invalid header, or one of another version. `room` is the size of a request's private data on this
 * device, which determines how the data was divided.
 */
int vrb_wire_get_request(const void *bytes, size_t size, size_t room,
			 struct vrb_wire_request *request_out);
int vrb_wire_get_accept(const void *bytes, size_t size, struct vrb_wire_accept *accept_out);
/* Returns the reason, or 0. */
unsigned vrb_wire_get_reject(const void *bytes, size_t size);

#define VRB_PORTS 5u /* that a qualifier may be found at */
/* The port with that index; 0: there is none. Index 0 is the qualifier itself. */
uint16_t vrb_wire_port(uint64_t qual, unsigned index);

#endif
