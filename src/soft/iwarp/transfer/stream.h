// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of the two byte streams of an established connection; the endpoint's lock guards it.
 * After iw_conn_drop it belongs to the service thread.
 *
 *   access.c    system calls, is the peer still there? Memory: keys, where bytes go, the CRC over it
 *   frame.c     building FPDUs, giving bytes to TCP
 *   tx.c        requests of the consumer become messages, and what completes them
 *   answer.c    what the peer is owed: Read Responses, counts, a Terminate; what its own one means
 *   segment.c   payloads are placed; Sends of the peer, and those that wait for a Receive
 *   rx.c        bytes become FPDUs
 *   pass.c      beginning and end; both streams in turn; small messages without the above
 */
#ifndef IWARP_STREAM_H
#define IWARP_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/iwarp/wire/formats.h"

#define IW_READS 66u /* Read Requests in flight each way: those of an endpoint, proof and RTR */

/* --- buffers: from the system, kept by the engine for the next connection --- */

#define IW_RX_SIZE (80u * 1024u) /* one FPDU of any length, and a part of the next */
#define IW_TX_SIZE (48u * 1024u)
#define IW_LISTS_SIZE (12u * 1024u) /* struct iw_lists */
#define IW_BUFFER_SIZE (IW_RX_SIZE + IW_TX_SIZE + IW_LISTS_SIZE)

/* Bytes [start, end) of `data` wait. */
struct iw_buffer {
	uint8_t *data;
	uint32_t size;
	uint32_t start;
	uint32_t end;
};

static inline uint32_t iw_buffer_count(const struct iw_buffer *buffer)
{
	return buffer->end - buffer->start;
}

/* --- sending --- */

/* What a request waits for: core_req.transport.word[0]. word[1] depends on it. */
enum iw_req_state {
	IW_REQ_NEW,	   /* not completely queued yet */
	IW_REQ_WAIT_COUNT, /* peer of ours. word[1]: its number among the Sends, or the Writes */
	IW_REQ_WAIT_SENT,  /* others. word[1]: the position in the stream behind its last byte */
	IW_REQ_WAIT_PROOF, /* others, RDMA Write: until the peer proves that it is placed */
	IW_REQ_WAIT_DATA,  /* RDMA Read; word[1]: bytes that have come */
	IW_REQ_FINISHED,
};

/* A Read Request of ours that is in flight. */
struct iw_read {
	enum iw_read_kind {
		IW_READ_CONSUMER,
		IW_READ_PROOF,
		IW_READ_RTR,
		IW_READ_ATOMIC, /* an atomic operation of the consumer, of 8 bytes */
	} kind;
	uint32_t stag; /* atomic: the request identifier */
	uint32_t msn;  /* atomic: of its Atomic Request */
	uint32_t size;
	uint64_t sequence; /* consumer: of the request. Proof: it proves all before this one */
	uint64_t offset;   /* consumer: in the request */
	uint32_t taken;	   /* bytes of the response that have come */
};

/* A Read Request or Atomic Request of the peer that waits for its response. */
struct iw_served {
	bool is_atomic;
	bool is_done; /* atomic: it has been carried out, */
	union {
		struct iw_read_request request;
		struct iw_atomic atomic;
	};
	uint64_t before; /* and the value was this */
	uint32_t offset; /* bytes of the response that are queued */
	struct iw_offender offender;
};

/* Sends and RDMA Writes of a connection, by messages of the stream, modulo 2^32. */
struct iw_counts {
	uint32_t sends;
	uint32_t writes;
};

#define IW_FRAMES 17u /* FPDUs of the largest size in 1 MiB, and the rest */

/* What surrounds a payload that is not copied. */
struct iw_frame {
	uint32_t len; /* of the payload */
	uint8_t head_size;
	uint8_t tail_size;
	uint8_t head[IW_FPDU_HEAD + IW_UNTAGGED_HEAD];
	uint8_t tail[3 + IW_FPDU_CRC]; /* pad and CRC */
};

/* Behind the bytes in the buffer, so that a connection that is being set up is small (IWCM-39). */
struct iw_lists {
	struct iw_read read[IW_READS];
	struct iw_served served[IW_READS];
	struct iw_frame frame[IW_FRAMES];
};
_Static_assert(sizeof(struct iw_lists) <= IW_LISTS_SIZE, "there is room for the lists");

struct iw_tx {
	struct iw_buffer out; /* whole FPDUs */
	/* behind `out`: FPDUs of one request, whose payload goes to TCP straight from the
	 * consumer's memory */
	struct iw_direct {
		struct iw_frame *frame; /* of struct iw_lists */
		uint32_t count;
		uint32_t first;	   /* the first that TCP has not taken all of; `count`: none */
		uint32_t done;	   /* bytes of it that TCP has taken */
		uint64_t sequence; /* of the request */
		uint64_t offset;   /* in it, of the payload of the first */
	} direct;
	uint64_t position;	 /* bytes of the stream that were put above */
	uint64_t sent;		 /* bytes that TCP has taken */
	uint32_t held;		 /* posts that wait for more (tx.h) */
	uint32_t msn[IW_QUEUES]; /* of the next message */
	uint32_t mulpdu;
	bool is_blocked;    /* TCP takes nothing now */
	bool may_send;	    /* MPA-18 */
	uint64_t wait_ns;   /* when the log gets it that requests wait for that; 0: none has waited,
			   * UINT64_MAX: it has it */
	uint8_t repeats;    /* of the RTR (IWCM-52) */
	uint64_t repeat_ns; /* when the next one is due; 0: none */
	bool is_over;	    /* nothing more is queued: the connection ends */
	bool is_cut;	    /* rx.in has the rest of the FPDU that had begun */
	iw_error error;	    /* of the Terminate that ends the stream; IW_NO_ERROR: none */
	struct iw_offender offender; /* what it names */
	/* the message that has begun, and has to be finished before another one does (DDP-10) */
	enum iw_under_way {
		IW_NO_MESSAGE,
		IW_IN_REQUEST,	/* of the request `next` */
		IW_IN_RESPONSE, /* to the oldest Read that we serve */
	} under_way;
	uint64_t next;	 /* sequence of the first request that is not completely queued */
	uint64_t offset; /* bytes of it that are queued */
	uint64_t unsent; /* no request before it waits for its bytes to be sent */
	/* Read Requests in flight, oldest first */
	struct iw_read *read;
	uint32_t read_first;
	uint32_t read_count;
	uint32_t consumer_reads; /* of these, RDMA Reads of the consumer */
	uint32_t stag;		 /* of the sink of the newest one */
	bool is_response_next;	 /* requests and responses take turns */
	/* between two of ours (tx.h) */
	struct iw_counts queued;  /* completely */
	struct iw_counts counted; /* carried out, as the peer says */
	bool peer_drains;	  /* and the next Send waits there (tx.h) */
	/* proofs of placement by a foreign peer (COMPAT-41) */
	uint64_t wants_proof; /* requests before it wait for a proof */
	uint64_t asked;	      /* requests before it are covered by a proof that was asked for */
	uint64_t proven;      /* requests before it are proven */
	uint32_t proof_stag;  /* of the newest Write that has bytes; 0: there was none */
	uint64_t proof_offset;
	/* owed to the peer */
	struct iw_served *served;
	uint32_t served_first;
	uint32_t served_count;
};

/* --- receiving --- */

/* Records: the oldest is taken first (segment.h). */
#define IW_SPILL_SIZE (1024u * 1024u)
#define IW_SPILL_KEPT (64u * 1024u) /* what an empty space may have been filled to, and stay */
#define IW_SPILL_MOVES 32u /* records are moved so often at most for each space that is filled */

struct iw_spill {
	uint8_t *data; /* NULL: it was not needed */
	uint32_t size;
	uint32_t peak;	/* how far it was filled */
	uint32_t first; /* where the oldest record begins */
	uint32_t end;	/* behind the newest; equal to `first`: there is none */
};

/* A segment that is being received. */
struct iw_segment {
	struct iw_ddp ddp;
	uint32_t size;	 /* of its payload */
	uint32_t placed; /* bytes of it that are placed */
	struct iw_offender offender;
};

/* The message that arrives in queue 0. */
struct iw_arrival {
	bool is_begun; /* its first segment has come, its last has not */
	uint8_t opcode;
	uint32_t offset; /* bytes that have come */
};

/* The Receive that is being filled. */
struct iw_filling {
	bool is_begun;
	uint64_t offset;
};

struct iw_rx {
	struct iw_buffer in;
	struct iw_spill spill; /* segments of messages that wait for a Receive */
	bool is_open;	       /* the payload of `segment` is placed in pieces */
	struct iw_segment segment;
	uint32_t tail; /* bytes of pad and CRC behind it */
	bool is_dry;   /* the last read did not fill its memory: nothing is left */
	bool is_fresh; /* iw_poll_fast has just read what is in `in`, and nothing is left */
	uint32_t msn[IW_QUEUES]; /* expected */
	struct iw_arrival arrival;
	struct iw_filling filling;
	struct iw_counts done; /* carried out here */
	struct iw_counts told; /* of these, the peer knows */
	struct iw_counts seen; /* carried out at the last poll */
	uint32_t vain_polls;   /* so many have carried out nothing since */
	bool has_told_drain;   /* the peer knows that we drain (tx.h), */
	uint32_t drain_told;   /* and that the message after so many Sends waits */
	bool is_any;	       /* a valid FPDU has come */
	bool is_blocked;       /* a message waits for a Receive and the spill space is full */
	uint64_t waiting_ns;   /* until when a message may wait for a Receive; 0: none waits,
			      * UINT64_MAX: for ever */
	uint64_t end_ns;       /* a foreign peer has ended its direction while messages wait: until
				* when they do; else 0 */
};

struct iw_stream {
	struct iw_tx tx;
	struct iw_rx rx;
};

#endif
