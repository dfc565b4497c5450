// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the tests of the fast path (src/verbs/engine/fast.c) share: an instance whose device makes
 * no system call to post or poll, a record of the device's calls, and posts as consumers make them.
 *
 * A program has one each of rig, device and odd. open_rig starts anew with rig and device,
 * setup_at_work with rig, make_odd with odd. A test may change them. teardown closes the instance
 * with everything that was made of it, so a test frees only what it is about. A test that runs
 * without setup and teardown calls open_rig and teardown itself.
 *
 * Between settle and let_go the provider's own thread is held, so only the test's calls do
 * anything. The device's calls are counted during that time.
 */
#ifndef TESTS_VERBS_FAST_LAB_H
#define TESTS_VERBS_FAST_LAB_H

#include "rig.h"

#include "core/event/evd.h"
#include "core/transport.h"
#include "verbs/device/cq.h"
#include "verbs/transfer/queue.h"

#define HALF (RIG_LEN / 2)
#define ROOM 5u	 /* requests of a, and Receives; the rings have 8 slots */
#define SLOTS 8u /* of either */
#define POLLS 64
#define MESSAGE_MAX 8192u
#define RDMA_MAX 16384u
#define CALLS(handle) (*(const DAT_PROVIDER *const *)(handle))

extern struct rig rig;

/* --- calls of the device --- */

extern struct device {
	struct ibv_context_ops real;
	unsigned sends, recvs, polls; /* number of calls */
	struct ibv_send_wr send;      /* the last work request of each kind */
	struct ibv_sge send_sge;
	struct ibv_recv_wr recv;
	struct ibv_sge recv_sge;
	int most;	       /* completions that a poll returns at most */
	struct ibv_wc more[4]; /* completions that polls return first, one by one */
	unsigned more_count;
	_Atomic bool is_off; /* calls are counted while it is false */
} device;

/* --- inside --- */

struct core_handle *cell(DAT_HANDLE handle);
struct core_ep *inner(const struct rig_ep *ep);
struct vrb_conn *conn_of(const struct rig_ep *ep);
/* The slow reasons of an endpoint or an EVD, and whether there is none. */
uint16_t slow(DAT_HANDLE handle);
bool is_fast(DAT_HANDLE handle);
/* Takes the lock of the object until it is biased to this thread. Fails if its owner has ended. */
void own(DAT_HANDLE handle);
void own_all(void);
/* The endpoint takes the slow path from now on, as on a device whose posts make system calls. */
void go_slow(const struct rig_ep *ep);
/* The number of completions that were polled and not dispatched. */
int kept(void);

/* --- calls, as consumers make them --- */

DAT_DTO_COOKIE cookie_of(uint64_t value);
DAT_RETURN send_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags);
DAT_RETURN recv_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags);
DAT_RETURN write_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
		     uint64_t cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
DAT_RMR_TRIPLET remote_seg(size_t offset, size_t len);
/* Send and Write from the first half of the memory; Receive into the second half. */
DAT_RETURN send_len(const struct rig_ep *ep, size_t len, uint64_t cookie);
DAT_RETURN write_len(const struct rig_ep *ep, size_t len, uint64_t cookie);
DAT_RETURN recv_len(const struct rig_ep *ep, size_t len, uint64_t cookie);

DAT_RETURN dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event);
/*
 * Takes the next event of the EVD. A dequeue may find a completion for another EVD, so it is
 * repeated. False: there is none.
 */
bool take(DAT_EVD_HANDLE evd, DAT_EVENT *event);
void check_event(const DAT_EVENT *event, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		 DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len);
void expect_on(DAT_EVD_HANDLE evd, const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len);
void expect(const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len);
/* Expects the completion from the first dequeue, without the EVD's ring. */
void expect_at_once(const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len);
void expect_none(DAT_EVD_HANDLE evd);
/* Expects the completion within RIG_WAIT_US. */
void expect_flushed(const struct rig_ep *ep, uint64_t cookie);

/* --- begin and end --- */

/* Replaces an endpoint by one with other attributes or EVDs; before it is connected. */
void remake(struct rig_ep *ep, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
	    void (*change)(DAT_EP_ATTR *attr));
/* The attributes of a after setup: ROOM, MESSAGE_MAX, RDMA_MAX. */
void small(DAT_EP_ATTR *attr);
/* Opens without connecting, and holds no thread; calls of the device are counted from settle on. */
void open_rig(void);
void join(void);
/* Holds the provider's thread; both endpoints have posted one request of each kind. */
void settle(void);
/* settle with separate EVDs for Receives. */
void settle_on(DAT_EVD_HANDLE a_recv, DAT_EVD_HANDLE b_recv);
void let_go(void);

/* Opens, connects both endpoints, and puts them on the fast path. */
int setup(void **state);
int teardown(void **state);
/* As consumers run: the provider's own thread is not held, and no calls are counted. */
int setup_at_work(void **state);
int teardown_at_work(void **state);

/* --- other EVDs and regions --- */

#define ODD_COOKIE 777u
#define BAD_ARG(number) (DAT_INVALID_PARAMETER | DAT_INVALID_ARG##number)
#define NO_KEY(what) (DAT_PRIVILEGES_VIOLATION | DAT_PRIVILEGES_##what)

/* What make_odd makes: another region, one of 64 bytes, the key of a freed one, an RMR. */
extern struct odd {
	DAT_LMR_HANDLE other, little;
	DAT_LMR_CONTEXT other_key, little_key, freed_key;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT bound;
} odd;

DAT_EVD_HANDLE make_evd(DAT_COUNT qlen, DAT_CNO_HANDLE cno);
/* Starts where the memory starts. */
DAT_LMR_HANDLE make_region(size_t len, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *key);
void make_odd(void);
/* Posts one segment; call 0: Send, 1: Write, 2: Receive. */
DAT_RETURN post_seg(int call, DAT_LMR_CONTEXT key, DAT_VADDR address, DAT_VLEN len);

/* Posts that the fast path declines, with ODD_COOKIE: an RDMA Write with flags; two segments, or
 * one from the other region, by the call that post_seg takes; a bind of the RMR. */
DAT_RETURN write_flags(DAT_COMPLETION_FLAGS flags);
DAT_RETURN post_two(int call);
DAT_RETURN post_other(int call);
DAT_RETURN post_bind(int arg);
/* Takes all events and returns their number. */
unsigned drain(DAT_EVD_HANDLE evd);

#endif
