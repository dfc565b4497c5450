// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the tests of data transfer: a rig (two connected endpoints with a buffer each), posts
 * that must be accepted, one function that posts any of the four kinds of DTO, and a thread that
 * waits on an EVD.
 */
#ifndef TESTS_DTO_UTIL_H
#define TESTS_DTO_UTIL_H

#include <pthread.h>
#include <sched.h>

#include "dt.h"

#define RIG_LEN 65536u
#define RIG_SEED 1u   /* pattern of x, the buffer of the posting side */
#define RIG_FILL 0xEE /* content of y, the buffer of the other side */

/* --- the rig --- */

struct rig {
	struct dt_ia ia;
	DAT_EP_ATTR attr_a, attr_b; /* change them between rig_begin and rig_link */
	struct dt_ep a, b;	    /* a posts, b is its peer */
	struct dt_buf x, y;	    /* x is used by a, y by b; all privileges */
};

void rig_begin(struct rig *rig);
void rig_link(struct rig *rig);
/* Ends all connections that are left; ordinary operation must have raised no asynchronous event. */
void rig_end(struct rig *rig);

extern struct rig rig_of_test; /* the state of every test of a rig */

int rig_setup(void **state);
/* Without endpoints. */
int rig_setup_bare(void **state);
int rig_teardown(void **state);

#define rig_test(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
#define rig_test_bare(f) cmocka_unit_test_setup_teardown(f, rig_setup_bare, rig_teardown)

/* --- posts that must be accepted --- */

void post_send(struct dt_ep *ep, DAT_LMR_TRIPLET seg, uint64_t cookie, DAT_COMPLETION_FLAGS flags);
void post_recv(struct dt_ep *ep, DAT_LMR_TRIPLET seg, uint64_t cookie);
void post_write(struct dt_ep *ep, DAT_LMR_TRIPLET seg, DAT_RMR_TRIPLET remote, uint64_t cookie,
		DAT_COMPLETION_FLAGS flags);
void post_read(struct dt_ep *ep, DAT_LMR_TRIPLET seg, DAT_RMR_TRIPLET remote, uint64_t cookie,
	       DAT_COMPLETION_FLAGS flags);

/* --- expected completions --- */

void expect_sent(struct dt_ep *ep, uint64_t cookie, DAT_VLEN len);
void expect_received(struct dt_ep *ep, uint64_t cookie, DAT_VLEN len);
void expect_request(struct dt_ep *ep, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status);
void expect_recv_flushed(struct dt_ep *ep, uint64_t cookie);
/* The connection of that endpoint has ended with that event, once. */
void expect_ended(struct dt_ep *ep, DAT_EVENT_NUMBER number);
void expect_broken(struct rig *rig);
void expect_quiet(struct dt_ep *ep);
void rig_disconnect(struct rig *rig, DAT_CLOSE_FLAGS flags);
/* The connection works: one message, one RDMA Write, one RDMA Read, and no other event. */
void rig_works(struct rig *rig);
/* Has this byte changed since the rig filled it? For dt_until. */
DT_UNORDERED bool dto_is_written(void *byte);

/* --- any kind of DTO --- */

enum dto_kind { DTO_SEND, DTO_RECV, DTO_READ, DTO_WRITE };
#define DTO_KINDS 4

bool dto_is_source(enum dto_kind kind);
DAT_EVD_HANDLE dto_evd(const struct dt_ep *ep, enum dto_kind kind);
/* `remote` is used by RDMA only, and may be NULL. */
DAT_RETURN dto_post(enum dto_kind kind, DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
		    uint64_t cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
/* One byte: from (or to) x[0], RDMA to (or from) y[0]. */
DAT_RETURN dto_post_byte(struct rig *rig, enum dto_kind kind, uint64_t cookie,
			 DAT_COMPLETION_FLAGS flags);
/* The code of a post of that kind with wrong flags, a region of another zone, or of no privilege.
 */
DAT_RETURN dto_bad_flags(enum dto_kind kind);
DAT_RETURN dto_bad_zone(enum dto_kind kind);
DAT_RETURN dto_bad_privilege(enum dto_kind kind);
/* The post on a must return this code, take nothing and raise nothing. */
void dto_refused(struct rig *rig, enum dto_kind kind, DAT_RETURN code, DAT_COUNT n,
		 DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);

/* --- a thread that waits on an EVD --- */

struct dto_waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_COUNT threshold;
	DAT_TIMEOUT timeout_us;
	DAT_EVENT event;
	DAT_COUNT nmore;
	DAT_RETURN ret;
	_Atomic int has_returned;
	_Atomic int tid;
};

/* Returns when the thread is blocked on the EVD, which must be empty. */
void dto_waiter_start(struct dto_waiter *waiter, DAT_EVD_HANDLE evd, DAT_COUNT threshold);
/* Returns when the thread sleeps. dto_waiter_start may return while it still polls. */
void dto_waiter_falls_asleep(struct dto_waiter *waiter);
/* The waiter stays blocked for a while. */
void dto_waiter_sleeps(struct dto_waiter *waiter);
/* The waiter wakes, with that cookie first and that many events after it. */
void dto_waiter_wakes(struct dto_waiter *waiter, uint64_t cookie, DAT_COUNT nmore);

#endif
