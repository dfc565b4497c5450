// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path over TCP (transfer/fast.h): what it takes, what it leaves to the slow path, and
 * that both do the same. The peer is another engine of ours, which the test plays.
 */
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

static struct core_ep *lock_flow(void)
{
	locked = iw_conn_enter(conn_of_flow());
	assert_non_null(locked);
	return locked;
}

static void unlock_flow(void)
{
	struct core_ep *ep = locked;

	locked = NULL;
	core_ep_leave(ep);
}

static int open_fast(void **state)
{
	atomic_store(&send_limit, NO_LIMIT);
	atomic_store(&is_swallowing, false);
	atomic_store(&recv_errno, 0);
	return open_sleepy(state);
}

static int close_fast(void **state)
{
	if (locked) /* the test has failed */
		unlock_flow();
	return close_stage(state);
}

/* Takes a Send off the wire. */
static void get_send(size_t offset, size_t size, uint8_t opcode, uint32_t msn)
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
}

/* The first Send, on the slow path. From then on the endpoint knows the region. */
static void begin_sends(void)
{
	make_pattern(flow.region, REGION);
	post_send_at(0, SIZE, DAT_COMPLETION_SUPPRESS_FLAG);
	get_send(0, SIZE, IW_OP_SEND, 1);
}

/* An established connection to a peer of ours. */
static void begin_fast(uint8_t flags)
{
	be_called_by_own(flags);
	peer_write(1, 0, NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_sends();
}

static void end_fast(void)
{
	fill_memory();
	hang_up();
}

/* A request of the endpoint (locked), as the core fills it. */
static struct core_req *take_slot(struct core_ep *ep, DAT_LMR_TRIPLET segment,
				  DAT_COMPLETION_FLAGS flags)
{
	struct core_req *req = core_req_take(ep, CORE_OP_SEND, flags);

	req->first = segment;
	req->iov = &req->first;
	req->segments = 1;
	req->len = segment.segment_length;
	req->cookie.as_64 = segment.virtual_address - address_of(flow.region);
	return req;
}

/* The endpoint (locked) posts a Send as the core does: true if the fast path took it. */
static bool post_locked(struct core_ep *ep, DAT_LMR_TRIPLET segment, DAT_COMPLETION_FLAGS flags)
{
	struct core_req *req = take_slot(ep, segment, flags);

	if (iw_post_fast(conn_of_flow(), ep, req))
		return true;
	core_req_clear_transport(req);
	iw_ep_post_request(conn_of_flow(), ep, req);
	return false;
}

/* Posts a Send, after an idle poll. */
static bool post_fast(size_t offset, size_t size, DAT_COMPLETION_FLAGS flags)
{
	struct core_ep *ep = lock_flow();
	bool is_taken;

	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	is_taken = post_locked(ep, segment_at(offset, size), flags);
	unlock_flow();
	return is_taken;
}

/* Waits until the socket of the library has so many bytes. EP locked, so that nobody reads it. */
static void await_bytes(size_t size)
{
	uint64_t give_up = now_ms() + WAIT_MS;
	int count = 0;

	while ((size_t)count < size) {
		assert_true(now_ms() < give_up);
		assert_int_equal(ioctl(conn_of_flow()->fd, FIONREAD, &count), 0);
	}
	assert_int_equal(count, size);
}

/* --- posts --- */

/* MPA-47 DDP-08 RDMAP-11 EP-SEND-22: with and without a CRC, up to the largest */
static void post__small_send__fast_and_right(void **state)
{
	static const uint8_t flags[] = {0, FLAG_C};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		begin_fast(flags[i]);
		assert_true(post_fast(1, 1, DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(1, DAT_DTO_SUCCESS, 1);
		get_send(1, 1, IW_OP_SEND, 2);
		assert_true(post_fast(7, SIZE, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
		expect_dto(7, DAT_DTO_SUCCESS, SIZE);
		get_send(7, SIZE, IW_OP_SEND_SOLICITED, 3);
		assert_true(post_fast(9, IW_DIRECT_MIN - 1, DAT_COMPLETION_SUPPRESS_FLAG));
		get_send(9, IW_DIRECT_MIN - 1, IW_OP_SEND, 4);
		assert_false(post_fast(11, IW_DIRECT_MIN, DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(11, DAT_DTO_SUCCESS, IW_DIRECT_MIN);
		get_send(11, IW_DIRECT_MIN, IW_OP_SEND, 5);
		end_fast();
	}
}

/* MPA-55: the FPDUs of a foreign peer follow the segment size of TCP */
static void post__foreign_peer__slow(void **state)
{
	struct taken rtr;

	(void)state;
	be_calling_with(0, 0, 0);
	get_fpdu(&rtr);
	begin_sends();
	assert_false(post_fast(0, SIZE, DAT_COMPLETION_SUPPRESS_FLAG));
	get_send(0, SIZE, IW_OP_SEND, 2);
	end_fast();
}

/* A post right behind another one may begin a stream (hold.h). */
static void post__follows_another__slow(void **state)
{
	struct core_ep *ep;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	assert_true(post_locked(ep, segment_at(1, SIZE), DAT_COMPLETION_DEFAULT_FLAG));
	assert_false(post_locked(ep, segment_at(2, SIZE), DAT_COMPLETION_DEFAULT_FLAG));
	unlock_flow();
	expect_dto(1, DAT_DTO_SUCCESS, SIZE);
	expect_dto(2, DAT_DTO_SUCCESS, SIZE);
	get_send(1, SIZE, IW_OP_SEND, 2);
	get_send(2, SIZE, IW_OP_SEND, 3);
	end_fast();
}

/* DTO-30 DTO-37: behind a Read in flight a fenced Send waits, and so does what follows it */
static void post__fence_behind_a_read__waits(void **state)
{
	struct iw_read_request request;

	(void)state;
	begin_fast(0);
	post_read_at(4096, SIZE, 77, 0, DAT_COMPLETION_DEFAULT_FLAG);
	request = get_read_request();
	assert_true(post_fast(1, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
	get_send(1, SIZE, IW_OP_SEND, 2);
	assert_false(post_fast(2, SIZE, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	assert_false(post_fast(3, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
	expect_quiet(stage.evd);
	peer_respond(request.sink_stag, 0, flow.region + 4096, SIZE, true);
	expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
	expect_dto(1, DAT_DTO_SUCCESS, SIZE);
	expect_dto(2, DAT_DTO_SUCCESS, SIZE);
	expect_dto(3, DAT_DTO_SUCCESS, SIZE);
	get_send(2, SIZE, IW_OP_SEND, 3);
	get_send(3, SIZE, IW_OP_SEND, 4);
	end_fast();
}

/* MPA-59 DTO-34 DTO-37: TCP takes nothing, or a part, and the rest later */
static void post__tcp_takes_a_part__rest_follows(void **state)
{
	static const size_t limits[] = {0, 1, 30, SIZE};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		begin_fast(0);
		atomic_store(&send_limit, limits[i]);
		assert_true(post_fast(1, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
		assert_false(post_fast(2, SIZE, DAT_COMPLETION_DEFAULT_FLAG));
		expect_quiet(stage.evd);
		atomic_store(&send_limit, NO_LIMIT);
		expect_dto(1, DAT_DTO_SUCCESS, SIZE);
		expect_dto(2, DAT_DTO_SUCCESS, SIZE);
		get_send(1, SIZE, IW_OP_SEND, 2);
		get_send(2, SIZE, IW_OP_SEND, 3);
		end_fast();
	}
}

/* Does the fast path decline a Send of that region? */
static bool is_declined(struct core_ep *ep, DAT_LMR_CONTEXT context)
{
	DAT_LMR_TRIPLET segment = segment_at(0, SIZE);
	struct core_req *req;
	bool is_taken;

	segment.lmr_context = context;
	req = take_slot(ep, segment, DAT_COMPLETION_SUPPRESS_FLAG);
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	is_taken = iw_post_fast(conn_of_flow(), ep, req);
	if (!is_taken)
		ep->req.tail--;
	return !is_taken;
}

/* LMR-FREE-06: the region is checked when it is read */
static void post__region_is_gone__declined(void **state)
{
	struct core_ep *ep;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	assert_true(is_declined(ep, flow.lkey + 1));
	assert_false(is_declined(ep, flow.lkey));
	unlock_flow();
	get_send(0, SIZE, IW_OP_SEND, 2);
	end_fast();
}

/* TERM-06: nothing is sent behind a Terminate */
static void post__connection_ends__declined(void **state)
{
	struct core_ep *ep;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	iw_conn_set_state(conn_of_flow(), IW_CLOSING);
	assert_true(is_declined(ep, flow.lkey));
	iw_conn_set_state(conn_of_flow(), IW_ESTABLISHED);
	unlock_flow();
	end_fast();
}

/* MPA-18: a responder sends nothing before it has received an FPDU */
static void post__may_not_send_yet__declined(void **state)
{
	struct iw_tx *tx;
	struct core_ep *ep;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	tx = &conn_of_flow()->stream.tx;
	tx->may_send = false;
	assert_true(is_declined(ep, flow.lkey));
	tx->may_send = true;
	unlock_flow();
	end_fast();
}

/* DDP-10: a pass has ended in the middle of a Read Response */
static void post__response_has_begun__declined(void **state)
{
	struct iw_conn *conn;
	struct core_ep *ep;
	uint64_t give_up = now_ms() + WAIT_MS;

	(void)state;
	begin_fast(0);
	conn = conn_of_flow();
	ep = lock_flow();
	atomic_store(&is_swallowing, true);
	for (unsigned i = 0; i < 5; i++) {
		const struct iw_read_request request = {.size = REGION - 7,
							.source_stag = flow.rkey,
							.source_offset = address_of(flow.region)};

		peer_read(&request);
	}
	await_bytes(5 * (IW_FPDU_HEAD + IW_UNTAGGED_HEAD + IW_READ_REQUEST_SIZE + IW_FPDU_CRC));
	while (!conn->stream.tx.is_in_response && now_ms() < give_up)
		(void)iw_pass(conn, ep);
	assert_true(conn->stream.tx.is_in_response);
	assert_false(iw_frame_has_unsent(conn));
	assert_true(is_declined(ep, flow.lkey));
	unlock_flow();
	expect_served();
	atomic_store(&is_swallowing, false);
	end_fast();
}

/* RDMAP-33 RDMAP-34: an RDMA Write completes by its proof */
static void post__rdma_write__declined(void **state)
{
	struct core_ep *ep;
	struct core_req *req;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	req = take_slot(ep, segment_at(0, SIZE), DAT_COMPLETION_SUPPRESS_FLAG);
	req->op = CORE_OP_RDMA_WRITE;
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	assert_false(iw_post_fast(conn_of_flow(), ep, req));
	ep->req.tail--;
	unlock_flow();
	end_fast();
}

/* More bytes than the buffer has room for, one after the other. */
static void post__many__buffer_is_used_again(void **state)
{
	(void)state;
	begin_fast(0);
	for (uint32_t i = 0; i < 2 * IW_TX_SIZE / IW_DIRECT_MIN; i++) {
		assert_true(post_fast(9, IW_DIRECT_MIN - 1, DAT_COMPLETION_SUPPRESS_FLAG));
		get_send(9, IW_DIRECT_MIN - 1, IW_OP_SEND, 2 + i);
	}
	end_fast();
}

/* MPA-59: nothing but room in TCP makes the rest go on */
static void post__tcp_takes_a_part__goes_on_by_itself(void **state)
{
	static const size_t limits[] = {0, 30};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		begin_fast(0);
		atomic_store(&send_limit, limits[i]);
		assert_true(post_fast(1, SIZE, DAT_COMPLETION_SUPPRESS_FLAG));
		assert_true(conn_of_flow()->events & EPOLLOUT);
		atomic_store(&send_limit, NO_LIMIT);
		get_send(1, SIZE, IW_OP_SEND, 2);
		end_fast();
	}
}

/* IWCM-32: TCP has failed, and nobody has noticed it yet */
static void post__connection_is_lost__fails_as_on_the_slow_path(void **state)
{
	(void)state;
	for (int is_slow = 0; is_slow < 2; is_slow++) {
		struct core_ep *ep;

		begin_fast(0);
		ep = lock_flow();
		iw_conn_lose(conn_of_flow(), -ECONNRESET);
		if (!is_slow)
			iw_hold_break(&conn_of_flow()->stream.tx.hold);
		(void)post_locked(ep, segment_at(1, SIZE), DAT_COMPLETION_DEFAULT_FLAG);
		(void)post_locked(ep, segment_at(2, SIZE), DAT_COMPLETION_SUPPRESS_FLAG);
		unlock_flow();
		expect_dto(1, DAT_DTO_ERR_TRANSPORT, 0);
		expect_dto(2, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		fill_memory();
		end_flow();
	}
}

/* IWCM-37: no call for the socket before it is time */
static void post__kernel_lacks_memory__sent_later(void **state)
{
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	atomic_store(&recv_errno, ENOMEM);
	assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
	iw_hold_break(&conn_of_flow()->stream.tx.hold);
	assert_true(post_locked(ep, segment_at(1, SIZE), DAT_COMPLETION_DEFAULT_FLAG));
	assert_true(iw_frame_has_unsent(conn_of_flow()));
	unlock_flow();
	expect_dto(1, DAT_DTO_SUCCESS, SIZE);
	get_send(1, SIZE, IW_OP_SEND, 2);
	end_fast();
}

/* --- polls --- */

static const size_t send_size = IW_FPDU_HEAD + IW_UNTAGGED_HEAD + SIZE + IW_FPDU_CRC;

/* MPA-53 DDP-28 DTO-35: one message, and several that one call reads */
static void poll__whole_messages__fast(void **state)
{
	static const uint8_t flags[] = {0, FLAG_C};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		uint8_t bytes[SIZE];
		struct core_ep *ep;
		int handled = 0;

		begin_fast(flags[i]);
		make_pattern(bytes, SIZE);
		for (size_t n = 0; n < 3; n++) {
			memset(flow.region + n * SIZE, 0, SIZE);
			post_recv_at(n * SIZE, SIZE);
		}
		ep = lock_flow();
		peer_send(bytes, SIZE);
		await_bytes(send_size);
		conn_of_flow()->moved = 0;
		assert_true(iw_poll_fast(conn_of_flow(), ep, &handled));
		assert_int_equal(handled, 1);
		assert_int_equal(conn_of_flow()->moved, send_size);
		assert_false(was_solicited);
		peer_send(bytes, SIZE);
		peer_send(bytes, SIZE);
		await_bytes(2 * send_size);
		assert_true(iw_poll_fast(conn_of_flow(), ep, &handled));
		assert_int_equal(handled, 3);
		unlock_flow();
		for (size_t n = 0; n < 3; n++) {
			expect_dto(n * SIZE, DAT_DTO_SUCCESS, SIZE);
			expect_pattern(flow.region + n * SIZE, SIZE);
		}
		end_fast();
	}
}

/* RDMAP-12 DTO-23 */
static void poll__solicited__so_is_the_receive(void **state)
{
	struct iw_ddp ddp;
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE);
	ep = lock_flow();
	ddp = send_header(0, true);
	ddp.opcode = IW_OP_SEND_SOLICITED;
	put_segment(&ddp, flow.region, SIZE);
	await_bytes(send_size);
	assert_true(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_true(was_solicited);
	unlock_flow();
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/* An idle poll breaks a stream. */
static void poll__nothing__fast_and_idle(void **state)
{
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	iw_hold_begin(&conn_of_flow()->stream.tx.hold);
	conn_of_flow()->has_more = true;
	assert_true(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_int_equal(handled, 0);
	assert_true(iw_hold_is_broken(&conn_of_flow()->stream.tx.hold));
	assert_false(conn_of_flow()->has_more);
	unlock_flow();
	end_fast();
}

/* IWCM-32 IWCM-37: the kernel tells an error once */
static void poll__read_fails__left_to_a_pass(void **state)
{
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_fast(0);
	ep = lock_flow();
	atomic_store(&recv_errno, EINTR);
	assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_false(conn_of_flow()->is_lost);
	atomic_store(&recv_errno, ENOMEM);
	assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_true(conn_of_flow()->retry_ns > 0);
	/* no call before it is time */
	atomic_store(&recv_errno, EIO);
	assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_int_equal(atomic_load(&recv_errno), EIO);
	conn_of_flow()->retry_ns = 0;
	assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_true(conn_of_flow()->is_lost);
	assert_int_equal(handled, 0);
	(void)iw_pass(conn_of_flow(), ep);
	unlock_flow();
	expect(DAT_CONNECTION_EVENT_BROKEN);
	fill_memory();
	end_flow();
}

/* IWCM-30 */
static void poll__end_of_stream__left_to_a_pass(void **state)
{
	uint64_t give_up = now_ms() + WAIT_MS;
	struct iw_conn *conn;
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_fast(0);
	conn = conn_of_flow();
	ep = lock_flow();
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	while (iw_poll_fast(conn, ep, &handled))
		assert_true(now_ms() < give_up);
	(void)iw_pass(conn, ep);
	unlock_flow();
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	fill_memory();
	end_flow();
}

/* What the endpoint or the connection is in the middle of. Each function makes it so, or undoes it.
 */
static void wait_for_retry(struct core_ep *ep, bool is_set)
{
	(void)ep;
	conn_of_flow()->retry_ns = is_set;
}

static void have_reason(struct core_ep *ep, bool is_set)
{
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_WATERMARK, is_set ? CORE_EP_SLOW_WATERMARK : 0);
}

static void expect_first(struct core_ep *ep, bool is_set)
{
	(void)ep;
	conn_of_flow()->stream.rx.is_any = !is_set;
}

static void open_payload(struct core_ep *ep, bool is_set)
{
	(void)ep;
	conn_of_flow()->stream.rx.is_open = is_set;
}

static void keep_bytes(struct core_ep *ep, bool is_set)
{
	struct iw_buffer *in = &conn_of_flow()->stream.rx.in;

	(void)ep;
	in->end = is_set ? in->start + 1 : in->start;
}

static void keep_unsent(struct core_ep *ep, bool is_set)
{
	struct iw_buffer *out = &conn_of_flow()->stream.tx.out;

	(void)ep;
	out->end = is_set ? out->start + 1 : out->start;
}

static void owe_answer(struct core_ep *ep, bool is_set)
{
	(void)ep;
	conn_of_flow()->stream.tx.is_answer_due = is_set;
}

static void poll__other_work__socket_is_not_read(void **state)
{
	static void (*const works[])(struct core_ep * ep, bool is_set) = {
		wait_for_retry, have_reason, expect_first, open_payload,
		keep_bytes,	keep_unsent, owe_answer};
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE);
	ep = lock_flow();
	peer_send(flow.region, SIZE);
	await_bytes(send_size);
	for (size_t i = 0; i < COUNT_OF(works); i++) {
		works[i](ep, true);
		assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
		works[i](ep, false);
		await_bytes(send_size);
	}
	assert_true(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_int_equal(handled, 1);
	unlock_flow();
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
	end_fast();
}

/*
 * The peer sends these bytes, of which the fast path takes nothing. The pass that follows reads no
 * more than was read.
 */
static void decline(const struct fpdu *fpdu)
{
	struct iw_conn *conn = conn_of_flow();
	struct core_ep *ep = lock_flow();
	int handled = 0;

	put_fpdu(fpdu);
	await_bytes(fpdu->size);
	assert_false(iw_poll_fast(conn, ep, &handled));
	assert_int_equal(handled, 0);
	assert_int_equal(iw_buffer_count(&conn->stream.rx.in), fpdu->size);
	atomic_store(&recv_errno, EIO);
	(void)iw_pass(conn, ep);
	assert_int_equal(atomic_exchange(&recv_errno, 0), EIO);
	unlock_flow();
}

/* A message of the peer with a field of its header changed; how it ends. */
struct odd {
	struct iw_ddp ddp; /* beside opcode, MSN and `is_last` */
	iw_error error;
	DAT_DTO_COMPLETION_STATUS status; /* of the Receive */
};

/* DDP-13 DDP-14 RDMAP-06 */
static void poll__wrong_header__terminate(void **state)
{
	static const struct odd odds[] = {
		{{.msn = 2}, IW_ERROR(1, 2, 3), DAT_DTO_ERR_FLUSHED},
		{{.mo = 4}, IW_ERROR(1, 2, 4), DAT_DTO_ERR_FLUSHED},
		{{.queue = 1}, IW_ERROR(1, 2, 1), DAT_DTO_ERR_FLUSHED},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(odds); i++) {
		struct iw_ddp ddp = odds[i].ddp;
		struct fpdu fpdu;

		begin_fast(0);
		post_recv_at(0, SIZE);
		ddp.opcode = IW_OP_SEND;
		ddp.is_last = true;
		if (!ddp.msn)
			ddp.msn = 1;
		make_fpdu(&fpdu, &ddp, flow.region, SIZE);
		decline(&fpdu);
		expect_dto(0, odds[i].status, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(odds[i].error, NULL);
		fill_memory();
		end_flow();
	}
}

/* MPA-51 */
static void poll__wrong_crc__terminate(void **state)
{
	const struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
	struct fpdu fpdu;

	(void)state;
	begin_fast(FLAG_C);
	post_recv_at(0, SIZE);
	make_fpdu(&fpdu, &ddp, flow.region + 1, SIZE);
	fpdu.bytes[fpdu.size - 1] ^= 1;
	decline(&fpdu);
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect_pattern(flow.region, SIZE); /* nothing was placed */
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(2, 0, 2), NULL);
	fill_memory();
	end_flow();
}

/* DTO-79 DDP-15 */
static void poll__longer_than_its_receive__length_error(void **state)
{
	const struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE - 1);
	make_fpdu(&fpdu, &ddp, flow.region + 1, SIZE);
	decline(&fpdu);
	expect_dto(0, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	expect_pattern(flow.region, SIZE);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 2, 5), NULL);
	fill_memory();
	end_flow();
}

/* DDP-14: a message of two segments, of which the second has the offset of a whole one */
static void poll__second_segment__not_taken_for_a_message(void **state)
{
	const struct iw_ddp first = {.opcode = IW_OP_SEND, .msn = 1};
	const struct iw_ddp second = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	post_recv_at(0, 2 * SIZE);
	make_fpdu(&fpdu, &first, flow.region, SIZE);
	decline(&fpdu);
	expect_quiet(stage.evd);
	make_fpdu(&fpdu, &second, flow.region, SIZE);
	decline(&fpdu);
	expect_dto(0, DAT_DTO_ERR_BAD_RESPONSE, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 2, 4), NULL);
	fill_memory();
	end_flow();
}

/* EP-SEND-03 EP-RECV-03: an empty message, and one into several segments */
static void poll__what_needs_the_slow_path__delivered(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
	DAT_LMR_TRIPLET segments[2];
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	post_recv_at(0, SIZE);
	make_fpdu(&fpdu, &ddp, NULL, 0);
	decline(&fpdu);
	expect_dto(0, DAT_DTO_SUCCESS, 0);

	ddp.msn++;
	segments[0] = segment_at(4096, 10);
	segments[1] = segment_at(8192, SIZE - 10);
	memset(flow.region + 8192, 0, SIZE);
	ok(core_ep_post_recv(flow.ep, 2, segments, (DAT_DTO_COOKIE){.as_64 = 3},
			     DAT_COMPLETION_DEFAULT_FLAG));
	make_fpdu(&fpdu, &ddp, flow.region, SIZE);
	decline(&fpdu);
	expect_dto(3, DAT_DTO_SUCCESS, SIZE);
	assert_memory_equal(flow.region + 8192, flow.region + 10, SIZE - 10);
	end_fast();
}

/* DTO-104: no Receive is posted, and the queue has old ones in all slots */
static void poll__no_receive__message_waits(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_SEND, .is_last = true};
	uint32_t slots, i;
	struct fpdu fpdu;

	(void)state;
	begin_fast(0);
	slots = lock_flow()->recv.mask + 1;
	unlock_flow();
	for (i = 0; i < slots; i++) {
		post_recv_at(4096, SIZE);
		peer_send(flow.region, SIZE);
		expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
	}
	ddp.msn = slots + 1;
	make_fpdu(&fpdu, &ddp, flow.region, SIZE);
	decline(&fpdu);
	expect_quiet(stage.evd);
	post_recv_at(8192, SIZE);
	expect_dto(8192, DAT_DTO_SUCCESS, SIZE);
	assert_memory_equal(flow.region + 8192, flow.region, SIZE);
	end_fast();
}

/* MPA-53: one message is there, and a part of the next one */
static void poll__part_of_an_fpdu__rest_follows(void **state)
{
	struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 2, .is_last = true};
	struct core_ep *ep;
	struct fpdu fpdu;

	(void)state;
	make_fpdu(&fpdu, &ddp, flow.region, SIZE);
	for (size_t part = 1; part < fpdu.size; part++) {
		int handled = 0;

		begin_fast(0);
		make_fpdu(&fpdu, &ddp, flow.region, SIZE);
		post_recv_at(4096, SIZE);
		post_recv_at(8192, SIZE);
		memset(flow.region + 8192, 0, SIZE);
		ep = lock_flow();
		peer_send(flow.region, SIZE);
		put(flow.fd, fpdu.bytes, part);
		await_bytes(send_size + part);
		assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
		assert_int_equal(handled, 1);
		(void)iw_pass(conn_of_flow(), ep);
		unlock_flow();
		put(flow.fd, fpdu.bytes + part, fpdu.size - part);
		expect_dto(4096, DAT_DTO_SUCCESS, SIZE);
		expect_dto(8192, DAT_DTO_SUCCESS, SIZE);
		expect_pattern(flow.region + 8192, SIZE);
		end_fast();
	}
}

/* SRQ-USE-02 */
static void poll__shared_receives__slow_path_takes_them(void **state)
{
	struct core_ep *ep;
	int handled = 0;

	(void)state;
	begin_shared();
	begin_fast(0);
	post_shared(SIZE);
	ep = lock_flow();
	peer_send(flow.region, SIZE);
	await_bytes(send_size);
	assert_false(iw_poll_fast(conn_of_flow(), ep, &handled));
	assert_int_equal(handled, 0);
	(void)iw_pass(conn_of_flow(), ep);
	unlock_flow();
	expect_dto(0, DAT_DTO_SUCCESS, SIZE);
	end_fast();
	end_shared();
}

/* Polls as drive() does. */
static int poll_flow(struct core_ep *ep, bool is_slow)
{
	int handled = 0;

	if (is_slow || !iw_poll_fast(conn_of_flow(), ep, &handled))
		handled = iw_pass_behind(conn_of_flow(), ep, handled);
	return handled;
}

/* IWCM-30: epoll has reported the end of both directions; the end of the stream is seen */
static void poll__hung_up__end_of_stream_is_seen(void **state)
{
	const struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};

	(void)state;
	for (int is_slow = 1; is_slow >= 0; is_slow--) {
		struct pollfd ready = {.events = POLLRDHUP};
		struct core_ep *ep;
		struct fpdu fpdu;

		begin_fast(0);
		post_recv_at(0, SIZE);
		ep = lock_flow();
		conn_of_flow()->is_hung_up = true;
		make_fpdu(&fpdu, &ddp, NULL, 0);
		put_fpdu(&fpdu);
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		ready.fd = conn_of_flow()->fd;
		assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
		(void)poll_flow(ep, is_slow);
		unlock_flow();
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		fill_memory();
		end_flow();
	}
}

/* A poll that has delivered a message is not idle, though the next message is not all there. */
static void poll__part_behind_a_message__not_idle(void **state)
{
	(void)state;
	for (int is_slow = 1; is_slow >= 0; is_slow--) {
		struct core_ep *ep;

		begin_fast(0);
		post_recv_at(0, SIZE);
		ep = lock_flow();
		iw_hold_begin(&conn_of_flow()->stream.tx.hold);
		peer_send(flow.region, SIZE);
		put(flow.fd, "", 1);
		await_bytes(send_size + 1);
		assert_int_equal(poll_flow(ep, is_slow), 1);
		assert_false(iw_hold_is_broken(&conn_of_flow()->stream.tx.hold));
		unlock_flow();
		expect_dto(0, DAT_DTO_SUCCESS, SIZE);
		assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		fill_memory();
		end_flow();
	}
}

/* What a peer has announced about one message says nothing about the next. */
static void poll__announced_message_is_cut__forgotten(void **state)
{
	(void)state;
	for (int is_slow = 1; is_slow >= 0; is_slow--) {
		const struct iw_ddp ddp = {.is_tagged = true,
					   .opcode = IW_OP_WRITE,
					   .stag = flow.rkey,
					   .offset = address_of(flow.region)};
		struct core_ep *ep;

		begin_fast(0);
		post_recv_at(0, SIZE);
		ep = lock_flow();
		peer_write(4, 3, NULL, 0);
		put_segment(&ddp, flow.region, SIZE);
		await_bytes(2 * (IW_FPDU_HEAD + IW_TAGGED_HEAD + IW_FPDU_CRC) + SIZE);
		(void)iw_pass(conn_of_flow(), ep);
		assert_int_not_equal(conn_of_flow()->stream.rx.known_end, 0);
		peer_send(flow.region, SIZE);
		await_bytes(send_size);
		assert_int_equal(poll_flow(ep, is_slow), 1);
		assert_int_equal(conn_of_flow()->stream.rx.known_end, 0);
		unlock_flow();
		expect_dto(0, DAT_DTO_SUCCESS, SIZE);
		end_fast();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fast, close_fast)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(post__small_send__fast_and_right),
		TEST(post__foreign_peer__slow),
		TEST(post__follows_another__slow),
		TEST(post__fence_behind_a_read__waits),
		TEST(post__tcp_takes_a_part__rest_follows),
		TEST(post__region_is_gone__declined),
		TEST(post__connection_ends__declined),
		TEST(post__may_not_send_yet__declined),
		TEST(post__response_has_begun__declined),
		TEST(post__rdma_write__declined),
		TEST(post__many__buffer_is_used_again),
		TEST(post__tcp_takes_a_part__goes_on_by_itself),
		TEST(post__connection_is_lost__fails_as_on_the_slow_path),
		TEST(post__kernel_lacks_memory__sent_later),
		TEST(poll__whole_messages__fast),
		TEST(poll__solicited__so_is_the_receive),
		TEST(poll__nothing__fast_and_idle),
		TEST(poll__read_fails__left_to_a_pass),
		TEST(poll__end_of_stream__left_to_a_pass),
		TEST(poll__other_work__socket_is_not_read),
		TEST(poll__wrong_header__terminate),
		TEST(poll__wrong_crc__terminate),
		TEST(poll__longer_than_its_receive__length_error),
		TEST(poll__second_segment__not_taken_for_a_message),
		TEST(poll__what_needs_the_slow_path__delivered),
		TEST(poll__no_receive__message_waits),
		TEST(poll__part_of_an_fpdu__rest_follows),
		TEST(poll__shared_receives__slow_path_takes_them),
		TEST(poll__hung_up__end_of_stream_is_seen),
		TEST(poll__part_behind_a_message__not_idle),
		TEST(poll__announced_message_is_cut__forgotten),
	};

	return cmocka_run_group_tests_name("the fast path over TCP", tests, provide, NULL);
}
