// SPDX-License-Identifier: BSD-2-Clause
/* The operations of an endpoint, and what is counted of each (ep.h). */
#ifndef CORE_EP_COUNTS_H
#define CORE_EP_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

enum core_op {
	CORE_OP_SEND,
	CORE_OP_RDMA_WRITE,
	CORE_OP_RDMA_READ,
	CORE_OP_BIND,
	/* operations of later generations, which are counted as a Write and as Reads, too */
	CORE_OP_WRITE_IMMEDIATE,
	CORE_OP_FETCH_ADD,
	CORE_OP_COMPARE_SWAP,
	CORE_OP_SEND_INVALIDATE, /* counted as a Send */
};
#define CORE_OPS (CORE_OP_BIND + 1) /* below 8: enum core_received */
/* Operations that are counted apart, from CORE_OP_WRITE_IMMEDIATE on. */
#define CORE_OPS_APART (CORE_OP_COMPARE_SWAP - CORE_OP_BIND)

static inline bool core_op_is_atomic(enum core_op op)
{
	return op == CORE_OP_FETCH_ADD || op == CORE_OP_COMPARE_SWAP;
}

/* Does it wait for an answer with data, so that it takes a place of the Reads? */
static inline bool core_op_is_read(enum core_op op)
{
	return op == CORE_OP_RDMA_READ || core_op_is_atomic(op);
}

static inline bool core_op_is_write(enum core_op op)
{
	return op == CORE_OP_RDMA_WRITE || op == CORE_OP_WRITE_IMMEDIATE;
}

static inline bool core_op_is_send(enum core_op op)
{
	return op == CORE_OP_SEND || op == CORE_OP_SEND_INVALIDATE;
}

/* Does it take a Receive of the peer? */
static inline bool core_op_takes_receive(enum core_op op)
{
	return core_op_is_send(op) || op == CORE_OP_WRITE_IMMEDIATE;
}

/* The operation that it is counted as. */
static inline enum core_op core_op_counted(enum core_op op)
{
	if (core_op_is_write(op))
		return CORE_OP_RDMA_WRITE;
	if (core_op_is_send(op))
		return CORE_OP_SEND;
	return core_op_is_read(op) ? CORE_OP_RDMA_READ : op;
}

/*
 * What dat_stat shows beside the counters of the queues, and what DAT 2.0 counts beyond that. A
 * counter never decreases while the endpoint exists. The fast path adds one instruction to a post,
 * and one to the completion of a Receive.
 */
struct core_ep_counts {
	uint64_t recv_bytes;	   /* of the messages received */
	uint64_t bytes[CORE_OPS];  /* of the posted requests, by operation */
	uint64_t posted[CORE_OPS]; /* requests, by operation; Sends are not counted here: all other
				    * requests of the queue are Sends */
	uint64_t srq_recvs;	   /* messages received in buffers of the SRQ */
	uint64_t failed;	   /* requests and Receives that completed with an error */
	uint64_t flushed;	   /* those that were flushed, which is not an error */
	uint64_t wakeups;	   /* times that the transport woke a sleeping peer */
	uint64_t connections;	   /* times that it was connected */
	/* what the queues had counted when dat_ep_modify replaced them */
	uint64_t old_requests, old_recvs;
	uint64_t recv_room;	/* bytes of the Receives that were posted */
	uint64_t recv_failures; /* the Receives in `failed` and `flushed` */
	uint64_t connects;	/* successful calls of dat_ep_connect and dat_ep_dup_connect */
	uint64_t disconnects;	/* of dat_ep_disconnect */
	uint64_t apart[CORE_OPS_APART];
	uint64_t immediate_bytes;      /* of the Writes with immediate data */
	uint64_t recv_immediates;      /* Receives of such a Write */
	uint64_t recv_immediate_bytes; /* that these Writes have written */
};

#endif
