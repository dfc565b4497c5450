// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connection between two hosts, and rounds of transfers over it. In each round the leader writes,
 * reads and sends, and the follower answers with a Send. Both verify every byte.
 */
#ifndef TESTS_NET_STREAM_H
#define TESTS_NET_STREAM_H

#include "net.h"

#define STREAM_MOST (256u * 1024u) /* bytes of one transfer */

struct stream {
	struct dt_ia *ia;
	struct dt_ep ep;
	struct dt_buf buf;
	DAT_RMR_TRIPLET remote; /* the peer's buffer */
	uint32_t seed;		/* differs between connections */
	uint64_t round;
	bool is_random; /* lengths and operations follow from the seed and the round */
};

/* A number that follows from both. */
uint32_t stream_random(uint32_t seed, uint64_t number);

/* An endpoint and its buffer; both sides use the same seed. */
void stream_create(struct stream *stream, struct dt_ia *ia, uint32_t seed);
void stream_free(struct stream *stream);
/* Starts a Write and a Send of all that the buffer has, and does not wait for them. */
void stream_leave_work(struct stream *stream);
void stream_connect(struct stream *stream, const struct sockaddr_storage *address,
		    DAT_CONN_QUAL qual);
void stream_accept(struct stream *stream, DAT_CR_HANDLE cr);
/* Both sides, when they are established: tells the peer its buffer. */
void stream_greet(struct stream *stream);
/* One round; false: a transfer has failed, or was flushed, since the connection has ended. */
bool stream_lead(struct stream *stream);
bool stream_follow(struct stream *stream);
/* Writes without a pause, several at a time, until one fails; counts those that are done. */
void stream_rush(struct stream *stream, _Atomic uint64_t *done);
/* Goes over TCP, and not over shared memory? */
bool stream_is_over_tcp(const struct stream *stream);

#endif
