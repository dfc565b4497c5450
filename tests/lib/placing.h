// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receivers that make no call while a message arrives, so that a sender on the same host may place
 * it (COMPAT-46). Each connection leads to a process of its own, which carries out the test's
 * orders.
 *
 * A message is only placed if the receiver's service thread has put the connection to sleep before.
 * placing_warm() sends messages until one is placed; then the next one is, if its Receive is posted
 * and nothing waits. Where the other process cannot place messages (over TCP, with DAT_COPY=ring),
 * the tests hold as well.
 */
#ifndef TESTS_PLACING_H
#define TESTS_PLACING_H

#include "dto_peer.h"

#define PLACING_CONNS 2u
#define PLACING_LEN 200u       /* of most messages */
#define PLACING_SLOT 1024u     /* a Receive begins at each multiple */
#define PLACING_ROUNDS_MAX 10u /* of a test whose message is rarely placed */
#define PLACING_FILL RIG_FILL  /* bytes that no message has written */

enum placing_what {
	PLACING_SEND,
	PLACING_READ_AND_SEND, /* an RDMA Read from `remote`, a fenced Send of its bytes */
	PLACING_BIND_AND_SEND, /* a bind, a Send of the new context */
	PLACING_DISCONNECT,
	PLACING_FREE_EP,
	PLACING_BROKEN, /* waits until the connection has ended with BROKEN, */
	PLACING_ENDED,	/* or with DISCONNECTED */
	PLACING_POST,	/* posts a Receive */
	PLACING_TAKE,	/* takes its message */
	PLACING_EXIT,
};

struct placing_order {
	enum placing_what what;
	size_t len; /* of the message; all its bytes have that value */
	unsigned char value;
	DAT_COUNT segments; /* 0: one */
	DAT_COMPLETION_FLAGS flags;
	DAT_CLOSE_FLAGS how;
	DAT_RMR_TRIPLET remote;
};

struct placing_reply {
	DAT_DTO_COMPLETION_STATUS status; /* of the Send; of a suppressed one: success */
	bool is_placed;
};

struct placing {
	struct rig *rig; /* x is the memory of the Receives */
	unsigned conns;
	struct dt_peer peer[PLACING_CONNS];
	struct dt_ep ep[PLACING_CONNS];
	/* so far; the numbers are those of the Receives and of their slots */
	uint64_t posted[PLACING_CONNS];
	uint64_t sent[PLACING_CONNS];
	uint64_t taken[PLACING_CONNS];
};

/* Connects to as many processes; all Receives complete on one EVD. */
void placing_open(struct placing *placing, struct rig *rig, unsigned conns);
/* The same, with these flags for the Receives of the first. */
void placing_open_with(struct placing *placing, struct rig *rig, unsigned conns,
		       DAT_COMPLETION_FLAGS recv_flags);
/* Ends the processes that are left, and closes the instance. */
void placing_close(struct placing *placing);

/* The cookie, and the slot of that Receive. */
uint64_t placing_cookie(unsigned conn, uint64_t number);
unsigned char *placing_at(const struct placing *placing, unsigned conn, uint64_t number);
/* Posts a Receive of that length into its slot, which is filled with PLACING_FILL. Its number. */
uint64_t placing_post(struct placing *placing, unsigned conn, size_t len);
/* Has the other process do something, and returns when it has. No call into the library. */
struct placing_reply placing_tell(const struct placing *placing, unsigned conn,
				  const struct placing_order *order);
/* The same for an order with a Send, whose bytes get the value that placing_check expects. */
struct placing_reply placing_send_as(struct placing *placing, unsigned conn,
				     struct placing_order order);
/* A Send of len bytes, which must succeed. Is it placed? */
bool placing_send(struct placing *placing, unsigned conn, size_t len, DAT_COMPLETION_FLAGS flags);
/* Waits, without a call into the library, until the last byte of that Receive has arrived. */
void placing_spin(const struct placing *placing, unsigned conn, uint64_t number, size_t len);
/* Takes the oldest Receive of that connection, with a whole message of placing_send. */
void placing_take(struct placing *placing, unsigned conn, size_t len);
void placing_check(const struct placing *placing, unsigned conn, uint64_t number, size_t len);
/* Sends messages until one is placed, or until it is clear that none will be. */
void placing_warm(struct placing *placing, unsigned conn);
/* Messages that were placed by this process. */
uint64_t placing_count(DAT_HANDLE handle);

/* A test that has to meet a placed message. It returns false if the message was not placed. */
void placing_repeat(bool (*test)(struct rig *rig, const void *arg), const void *arg);

#endif
