// SPDX-License-Identifier: BSD-2-Clause
/*
 * The protocol of dat_ping: the hello in the private data, the control messages between transfers,
 * and the pattern of every byte. All numbers on the wire are big-endian.
 *
 * The client controls the run. For each operation and size it sends BEGIN, makes `count` transfers,
 * and sends END. The server answers both; its second answer is the number of wrong transfers.
 *   send:  the client sends, the server sends back; each side verifies what it received
 *   write: the client writes to the server's buffer, then CHECK makes the server verify it
 *   read:  CHECK makes the server fill its buffer, then the client reads and verifies it
 */
#ifndef TOOLS_PING_H
#define TOOLS_PING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"
#include "side.h"

#define PING_MAGIC 0x44504e47u /* "DPNG" */
#define PING_VERSION 1u
#define PING_SIZE_LIMIT (UINT64_C(1) << 30)
#define PING_COUNT_LIMIT 100000000u

/* Bytes after each transfer that must not change. */
#define PING_GUARD 64u

enum ping_op {
	PING_SEND,
	PING_WRITE,
	PING_READ,
	PING_OPS,
};

enum ping_control_type {
	PING_BEGIN = 1,
	PING_CHECK = 2,
	PING_END = 3,
	PING_ANSWER = 4,
};

/* Private data of the request. */
struct ping_hello {
	uint32_t magic;
	uint32_t version;
	uint64_t size_max; /* of all transfers */
	uint64_t nonce;	   /* part of the pattern, so that old bytes are detected */
};

/* Private data of the answer: the target of RDMA. */
struct ping_welcome {
	uint32_t magic;
	uint32_t version;
	uint64_t address;
	uint64_t size;
	uint32_t rmr_context;
	uint32_t reserved;
};

struct ping_control {
	uint32_t magic;
	uint32_t type;
	uint32_t op;
	uint32_t count; /* BEGIN: number of transfers; ANSWER: wrong transfers */
	uint64_t size;
	uint64_t index; /* CHECK: number of the transfer */
};

_Static_assert(sizeof(struct ping_hello) == 24, "layout on the wire");
_Static_assert(sizeof(struct ping_welcome) == 32, "layout on the wire");
_Static_assert(sizeof(struct ping_control) == 32, "layout on the wire");

/* A transfer. Its pattern depends on these members and the offset. */
struct ping_transfer {
	enum ping_op op;
	bool is_reply;
	uint64_t nonce;
	uint64_t size;
	uint64_t index;
};

struct ping_options {
	struct tool_side side; /* the first member, see tool_side_host() */
	uint64_t size_min;
	uint64_t size_max;
	uint64_t count; /* 0: depends on the size */
	bool is_op[PING_OPS];
	bool is_polling;
	bool is_json;
};

/* One side of a connection. */
struct ping_peer {
	struct session session;
	DAT_EP_HANDLE endpoint;
	struct session_buffer message; /* two Receives, see ping_peer_receive() */
	struct session_buffer control; /* source of control messages */
	struct session_buffer out;     /* source of Sends and RDMA Writes; sink of RDMA Reads */
	struct session_buffer target;  /* server: target of the client's RDMA */
	size_t message_size;	       /* size of one Receive */
	uint64_t nonce;
};

extern const char *const ping_op_names[PING_OPS];

void ping_fill(unsigned char *data, const struct ping_transfer *transfer);
/* Offset of the first wrong byte, guard bytes included; -1: none. */
int64_t ping_verify(const unsigned char *data, const struct ping_transfer *transfer);
void ping_guard(unsigned char *data, uint64_t size);

/* Makes buffers for transfers up to size_max and posts two Receives. */
int ping_peer_prepare(struct ping_peer *peer, uint64_t size_max, bool is_server);
void ping_peer_release(struct ping_peer *peer);

/*
 * Takes one message. Its bytes are valid until ping_peer_repost() with the same cookie. Two
 * Receives suffice, because a side sends its next message only after an answer.
 */
int ping_peer_receive(struct ping_peer *peer, uint64_t *cookie_out, unsigned char **data_out,
		      size_t *len_out);
int ping_peer_repost(struct ping_peer *peer, uint64_t cookie);

int ping_control_send(struct ping_peer *peer, const struct ping_control *control);
/* Takes one message, which must be a control message of that type (0: any). */
int ping_control_receive(struct ping_peer *peer, uint32_t type, struct ping_control *control_out);

int ping_client_run(const struct ping_options *options);
int ping_server_run(const struct ping_options *options);

#endif
