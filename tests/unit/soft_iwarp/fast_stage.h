// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stage for the fast path over TCP (transfer/fast.h): what it takes, what it leaves to the slow
 * path, and that both do the same. The peer is another engine of ours, which the test plays. The
 * test calls the two functions itself, with the endpoint locked, so that no other thread serves the
 * connection. Linked with --wrap of the functions below.
 */
#ifndef TESTS_SOFT_IWARP_FAST_STAGE_H
#define TESTS_SOFT_IWARP_FAST_STAGE_H

#include "flow_stage.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "core/ep/ep_fast.h"
#include "soft/iwarp/connect/ep.h"
#include "soft/iwarp/transfer/fast.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/hold.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/rx.h"
#include "soft/iwarp/transfer/socket.h"

#define SIZE 64u

/* --- what the engine calls --- */

static bool was_solicited; /* the last Receive that has completed */

void __real_core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
			   bool is_solicited);
void __wrap_core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
			   bool is_solicited);
void __wrap_core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
			   bool is_solicited)
{
	was_solicited = is_solicited;
	__real_core_recv_done(ep, status, len, is_solicited);
}

#define NO_LIMIT SIZE_MAX
static _Atomic size_t send_limit = NO_LIMIT; /* of the next calls; 0: TCP takes nothing */
static _Atomic bool is_swallowing;	     /* TCP takes everything, and sends nothing */
static _Atomic int recv_errno;		     /* of the next call; 0: none */

ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t limit = atomic_load(&send_limit);
	struct iovec first = message->msg_iov[0];
	const struct msghdr beginning = {.msg_iov = &first, .msg_iovlen = 1};

	if (atomic_load(&is_swallowing))
		return (ssize_t)size_of(message);
	if (limit == NO_LIMIT)
		return __real_iw_socket_sendmsg(fd, message, flags);
	if (!limit) {
		errno = EAGAIN;
		return -1;
	}
	atomic_store(&send_limit, 0);
	if (first.iov_len > limit)
		first.iov_len = limit;
	return __real_iw_socket_sendmsg(fd, &beginning, flags);
}

ssize_t __real_iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_iw_socket_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
	int error = atomic_exchange(&recv_errno, 0);

	if (!error)
		return __real_iw_socket_recv(fd, buffer, size, flags);
	errno = error;
	return -1;
}

/* --- the stage --- */

static struct core_ep *locked; /* by the thread of the test */

static inline void lock_flow(void)
{
	locked = iw_conn_enter(conn_of_flow());
	assert_non_null(locked);
}

static inline void unlock_flow(void)
{
	struct core_ep *ep = locked;

	locked = NULL;
	core_ep_leave(ep);
}

static inline int open_fast(void **state)
{
	atomic_store(&send_limit, NO_LIMIT);
	atomic_store(&is_swallowing, false);
	atomic_store(&recv_errno, 0);
	return open_sleepy(state);
}

static inline int close_fast(void **state)
{
	if (locked) /* the test has failed */
		unlock_flow();
	return close_stage(state);
}

/* Takes a Send off the wire; a peer of ours tells that it has carried it out. */
static inline void get_send(size_t offset, size_t size, uint8_t opcode, uint32_t msn)
{
	struct taken taken;

	get_fpdu(&taken);
	assert_false(taken.ddp.is_tagged);
	assert_true(taken.ddp.is_last);
	assert_int_equal(taken.ddp.opcode, opcode);
	assert_int_equal(taken.ddp.queue, IW_QUEUE_SEND);
	assert_int_equal(taken.ddp.msn, msn);
	assert_int_equal(taken.ddp.mo, 0);
	assert_int_equal(taken.size, size);
	assert_memory_equal(taken.payload, flow.region + offset, size);
	if (flow.is_own)
		peer_counts(1, 0);
}

/* The first Send, on the slow path. From then on the endpoint knows the region. */
static inline void begin_sends(void)
{
	make_pattern(flow.region, REGION);
	post_send_at(0, SIZE, DAT_COMPLETION_DEFAULT_FLAG);
	get_send(0, SIZE, IW_OP_SEND, 1);
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
}

/* An established connection to a peer of ours. */
static inline void begin_fast(uint8_t flags)
{
	be_called_by_own(flags);
	peer_write(1, 0, NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_sends();
}

static inline void end_fast(void)
{
	fill_memory();
	hang_up();
}

/* A request of the endpoint (locked), as the core fills it. */
static inline struct core_req *take_slot(DAT_LMR_TRIPLET segment, DAT_COMPLETION_FLAGS flags)
{
	struct core_req *req = core_req_take(locked, CORE_OP_SEND, flags);

	req->first = segment;
	req->iov = &req->first;
	req->segments = 1;
	req->len = segment.segment_length;
	req->cookie.as_64 = segment.virtual_address - address_of(flow.region);
	return req;
}

/* The endpoint (locked) posts a Send as the core does: true if the fast path took it. */
static inline bool post_locked(DAT_LMR_TRIPLET segment, DAT_COMPLETION_FLAGS flags)
{
	struct core_req *req = take_slot(segment, flags);

	if (iw_post_fast(conn_of_flow(), locked, req))
		return true;
	core_req_clear_transport(req);
	iw_ep_post_request(conn_of_flow(), locked, req);
	return false;
}

/* Posts a Send, after an idle poll. */
static inline bool post_fast(size_t offset, size_t size, DAT_COMPLETION_FLAGS flags)
{
	bool is_taken;

	lock_flow();
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	is_taken = post_locked(segment_at(offset, size), flags);
	unlock_flow();
	return is_taken;
}

/* Waits until the socket of the library has so many bytes. EP locked, so that nobody reads it. */
static inline void await_bytes(size_t size)
{
	uint64_t give_up = now_ms() + WAIT_MS;
	int count = 0;

	while ((size_t)count < size) {
		assert_true(now_ms() < give_up);
		assert_int_equal(ioctl(conn_of_flow()->fd, FIONREAD, &count), 0);
	}
	assert_int_equal(count, size);
}

/* The connection (locked) is polled, and a pass is made over it. */
static inline bool poll_locked(int *handled)
{
	return iw_poll_fast(conn_of_flow(), locked, handled);
}

static inline void pass_locked(void)
{
	(void)iw_pass(conn_of_flow(), locked);
}

/* The end of a test whose connection has ended. */
static inline void end_broken(void)
{
	fill_memory();
	end_flow();
}

#endif
