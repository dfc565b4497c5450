// SPDX-License-Identifier: BSD-2-Clause
/*
 * A receiver that makes no call while a message arrives, so that the service thread has to place
 * it. Each connection leads to a process of its own, which carries out the test's orders.
 */
#ifndef TESTS_AWAY_H
#define TESTS_AWAY_H

#include "dto_peer.h"

#define AWAY_CONNS 2u
#define AWAY_LEN 200u	   /* of most messages */
#define AWAY_SLOT 1024u	   /* a Receive begins at each multiple */
#define AWAY_FILL RIG_FILL /* bytes that no message has written */

enum away_what {
	AWAY_SEND,
	AWAY_READ_AND_SEND, /* an RDMA Read from `remote`, a fenced Send of its bytes */
	AWAY_BIND_AND_SEND, /* a bind, a Send of the new context */
	AWAY_DISCONNECT,
	AWAY_FREE_EP,
	AWAY_BROKEN, /* waits until the connection has ended with BROKEN */
	AWAY_ENDED,  /* waits until it has ended with DISCONNECTED */
	AWAY_POST,   /* posts a Receive */
	AWAY_EXIT,
};

struct away_order {
	enum away_what what;
	size_t len; /* of the message; all its bytes have that value */
	unsigned char value;
	DAT_COUNT segments; /* 0: one */
	DAT_COMPLETION_FLAGS flags;
	DAT_CLOSE_FLAGS how;
	DAT_RMR_TRIPLET remote;
};

struct away {
	struct rig *rig; /* x is the memory of the Receives */
	unsigned conns;
	struct dt_peer peer[AWAY_CONNS];
	struct dt_ep ep[AWAY_CONNS];
	/* so far; the numbers are those of the Receives and of their slots */
	uint64_t posted[AWAY_CONNS];
	uint64_t sent[AWAY_CONNS];
	uint64_t taken[AWAY_CONNS];
};

/* Connects to as many processes; all Receives complete on one EVD. */
void away_open(struct away *away, struct rig *rig, unsigned conns);
/* away_open with these flags for the Receives of the first. */
void away_open_with(struct away *away, struct rig *rig, unsigned conns,
		    DAT_COMPLETION_FLAGS recv_flags);
/* Ends the processes that are left, and closes the instance. */
void away_close(struct away *away);

/* The cookie, and the slot of that Receive. */
uint64_t away_cookie(unsigned conn, uint64_t number);
unsigned char *away_at(const struct away *away, unsigned conn, uint64_t number);
/* Posts a Receive of that length into its slot, which is filled with AWAY_FILL. Its number. */
uint64_t away_post(struct away *away, unsigned conn, size_t len);
/*
 * Has the other process do something, and returns when it has. No call into the library. The status
 * is that of the Send; of a suppressed one: success.
 */
DAT_DTO_COMPLETION_STATUS away_tell(const struct away *away, unsigned conn,
				    const struct away_order *order);
/* away_tell for an order with a Send, whose bytes get the value that away_check expects. */
DAT_DTO_COMPLETION_STATUS away_send_as(struct away *away, unsigned conn, struct away_order order);
/* A Send of len bytes, which must succeed. */
void away_send(struct away *away, unsigned conn, size_t len, DAT_COMPLETION_FLAGS flags);
/* Waits, without a call into the library, until the last byte of that Receive has arrived. */
void away_spin(const struct away *away, unsigned conn, uint64_t number, size_t len);
/* Takes the oldest Receive of that connection, with a whole message of away_send. */
void away_take(struct away *away, unsigned conn, size_t len);
void away_check(const struct away *away, unsigned conn, uint64_t number, size_t len);

#endif
