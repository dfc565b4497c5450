// SPDX-License-Identifier: BSD-2-Clause
/*
 * Small messages that are posted in quick succession wait for each other, so that one system call
 * sends several. The wait ends with enough posts or bytes, a post that comes later, a poll that
 * finds its EVD empty, a thread that is about to sleep in a call for the same instance, or a
 * deadline of the connection. Nothing waits if a completion of the endpoint wakes a thread or a
 * CNO: the thread that posts may wait for that one, outside the library.
 *
 * A thread that polls its memory for an answer calls nothing (COMPAT-46). So after a deadline no
 * message waits for some time, unless the thread that posted has lost its processor. EP locked.
 */
#ifndef IWARP_HOLD_H
#define IWARP_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "soft/poller.h"

#define IW_HOLD_GAP_NS 8000u	 /* between the end of a post and the next one of a stream */
#define IW_HOLD_AFTER 16u	 /* so many posts of a stream are sent at once */
#define IW_HOLD_POSTS 16u	 /* so many of the next ones are sent together, */
#define IW_HOLD_BYTES 8192u	 /* or so many bytes, */
#define IW_HOLD_POSTS_NS 20000u	 /* or those of so much time */
#define IW_HOLD_NS 200000u	 /* the deadline */
#define IW_HOLD_STORE_NS 100000u /* how often the thread that posts is stored */
#define IW_HOLD_PAUSE_LEAST_NS UINT64_C(10000000) /* no waits; twice as long each further time */
#define IW_HOLD_PAUSE_MOST_NS UINT64_C(1000000000)

struct core_ep;
struct iw_conn;

struct iw_hold {
	uint64_t post_ns;  /* when the last post ended */
	uint64_t first_ns; /* when the first one was that waits */
	uint32_t run;	   /* posts that came soon after the one before, without an idle pass */
	uint32_t count;	   /* posts that wait */
	uint64_t stored_ns;
	struct soft_poller poster;
	uint64_t pause_ns;
	uint64_t pause_end_ns;
};

/* A request was posted at that time. May it wait for the next one? If not, all are sent now. */
bool iw_hold_may(struct iw_conn *conn, struct core_ep *ep, uint64_t now);
/* A pass has found nothing to do: the next post may be an answer, and does not continue a stream.
 */
static inline void iw_hold_break(struct iw_hold *hold)
{
	hold->post_ns = 0; /* long ago */
}
/* Has a pass found nothing to do since the last post? */
static inline bool iw_hold_is_broken(const struct iw_hold *hold)
{
	return !hold->post_ns;
}
/* The first post after such a pass. Its time is not needed: one post is no stream. */
#define IW_HOLD_UNTIMED 1u
static inline void iw_hold_begin(struct iw_hold *hold)
{
	hold->post_ns = IW_HOLD_UNTIMED;
}
/* Those that wait are about to be sent because a deadline of the connection has come. */
void iw_hold_due(struct iw_hold *hold);

#endif
