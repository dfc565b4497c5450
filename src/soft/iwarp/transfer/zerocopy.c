// SPDX-License-Identifier: BSD-2-Clause
/* Sending large payloads without a copy (zerocopy.h). */
#include "soft/iwarp/transfer/zerocopy.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/transport.h"
#include "soft/iwarp/connect/close.h"
#include "soft/iwarp/transfer/socket.h"
#include "soft/iwarp/transfer/tx.h"

#define LOOPBACK_MSS 32768u /* only the loopback interface has packets so large */

void iw_zerocopy_init(struct iw_conn *conn, struct iw_zerocopy_call *calls)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;

	zerocopy->calls = calls;
	zerocopy->limit_ns = iw_zerocopy_limit_ns(conn->engine);
	zerocopy->is_off = conn->engine->settings.zerocopy == CORE_ZEROCOPY_OFF;
}

/* --- sending --- */

/* Has the socket the option? Not asked where it is off. */
static bool turn_on(struct iw_conn *conn)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;
	const int yes = 1;

	if (zerocopy->is_on)
		return true;
	if (conn->engine->settings.zerocopy == CORE_ZEROCOPY_AUTO &&
	    iw_socket_mss(conn->fd) >= LOOPBACK_MSS) {
		zerocopy->is_off = true;
		return false;
	}
	zerocopy->is_on = !setsockopt(conn->fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes));
	zerocopy->is_off = !zerocopy->is_on;
	core_log(CORE_LOG_CONN, "TCP connection on descriptor %d: MSG_ZEROCOPY is %s", conn->fd,
		 zerocopy->is_on ? "used" : "not available");
	return zerocopy->is_on;
}

/* A list that the kernel does not use; 0, the one for copies: there is none. */
static uint8_t free_list(const struct iw_zerocopy *zerocopy)
{
	uint8_t list;

	for (list = IW_FRAME_LISTS - 1; list && zerocopy->in_use[list]; list--)
		;
	return list;
}

void iw_zerocopy_begin(struct iw_conn *conn, uint64_t left)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;
	struct iw_direct *direct = &conn->stream.tx.direct;

	direct->list = 0;
	if (left >= IW_ZEROCOPY_LEAST && !zerocopy->is_off &&
	    core_now_ns() >= zerocopy->refused_until_ns && turn_on(conn))
		direct->list = free_list(zerocopy);
	direct->frame = direct->lists[direct->list];
	direct->is_zerocopy = direct->list != 0;
}

bool iw_zerocopy_may_send(struct iw_conn *conn)
{
	const struct iw_tx *tx = &conn->stream.tx;

	return tx->direct.is_zerocopy && tx->zerocopy.next - tx->zerocopy.first < IW_ZEROCOPY_CALLS;
}

void iw_zerocopy_sent(struct iw_conn *conn, uint64_t begin)
{
	struct iw_tx *tx = &conn->stream.tx;
	struct iw_zerocopy *zerocopy = &tx->zerocopy;

	if (!iw_zerocopy_is_pending(tx)) {
		atomic_store(&conn->is_sending, true);
		atomic_fetch_add(&conn->engine->sending_count, 1);
	}
	zerocopy->calls[zerocopy->next++ % IW_ZEROCOPY_CALLS] =
		(struct iw_zerocopy_call){.begin = begin, .list = tx->direct.list};
	zerocopy->in_use[tx->direct.list]++;
}

void iw_zerocopy_refused(struct iw_conn *conn)
{
	struct iw_tx *tx = &conn->stream.tx;

	tx->direct.is_zerocopy = false;
	tx->zerocopy.refused_until_ns = core_now_ns() + IW_ZEROCOPY_REFUSED_NS;
}

/* --- notices --- */

/* The kernel does not use any more what calls `from` to `to` have sent. */
static void end_calls(struct iw_conn *conn, uint32_t from, uint32_t to)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;
	int32_t pending = (int32_t)(zerocopy->next - zerocopy->first);
	int32_t i = (int32_t)(from - zerocopy->first);
	int32_t last = (int32_t)(to - zerocopy->first);

	/* the numbers wrap; those that are not pending have no place in the list */
	for (i = i < 0 ? 0 : i; i <= last && i < pending; i++) {
		struct iw_zerocopy_call *call =
			&zerocopy->calls[(zerocopy->first + (uint32_t)i) % IW_ZEROCOPY_CALLS];

		if (!call->is_done)
			zerocopy->in_use[call->list]--;
		call->is_done = true;
	}
	while (zerocopy->first != zerocopy->next &&
	       zerocopy->calls[zerocopy->first % IW_ZEROCOPY_CALLS].is_done)
		zerocopy->first++;
	if (pending && zerocopy->first == zerocopy->next) {
		atomic_fetch_sub(&conn->engine->sending_count, 1);
		atomic_store(&conn->is_sending, false);
	}
}

static void take_notice(struct iw_conn *conn, const struct sock_extended_err *notice)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;

	if (notice->ee_origin != SO_EE_ORIGIN_ZEROCOPY || notice->ee_errno)
		return;
	if ((notice->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) && !zerocopy->is_off &&
	    conn->engine->settings.zerocopy == CORE_ZEROCOPY_AUTO) {
		core_log(CORE_LOG_CONN,
			 "TCP connection on descriptor %d: the kernel copies in spite of "
			 "MSG_ZEROCOPY",
			 conn->fd);
		zerocopy->is_off = true;
	}
	end_calls(conn, notice->ee_info, notice->ee_data);
}

static void take_control(struct iw_conn *conn, struct msghdr *message)
{
	struct cmsghdr *part;

	for (part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		struct sock_extended_err notice;

		if ((part->cmsg_level != SOL_IP || part->cmsg_type != IP_RECVERR) &&
		    (part->cmsg_level != SOL_IPV6 || part->cmsg_type != IPV6_RECVERR))
			continue;
		memcpy(&notice, CMSG_DATA(part), sizeof(notice));
		take_notice(conn, &notice);
	}
}

void iw_zerocopy_read(struct iw_conn *conn)
{
	while (iw_zerocopy_is_pending(&conn->stream.tx)) {
		union {
			struct cmsghdr header;
			uint8_t bytes[256];
		} control;
		struct msghdr message = {.msg_control = &control,
					 .msg_controllen = sizeof(control)};

		if (iw_socket_recvmsg(conn->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		take_control(conn, &message);
	}
}

/* A socket that is closed shows POLLHUP, and does not wake a thread for notices. */
static void pause_until(struct iw_conn *conn, uint64_t now, uint64_t end, short events)
{
	/* POLLERR shows always */
	struct pollfd ready = {.fd = conn->is_lost ? -1 : conn->fd, .events = events};
	struct timespec time;

	if (conn->is_lost && end - now > IW_ZEROCOPY_LOOK_NS)
		end = now + IW_ZEROCOPY_LOOK_NS;
	time = core_timespec(end - now);
	(void)ppoll(&ready, 1, &time, NULL);
	if (ready.revents & POLLHUP)
		iw_conn_lose(conn, -ECONNRESET);
}

void iw_zerocopy_wait(struct iw_conn *conn, uint64_t end_ns, bool is_end)
{
	uint64_t now;

	for (iw_zerocopy_read(conn); iw_zerocopy_is_pending(&conn->stream.tx);
	     iw_zerocopy_read(conn)) {
		now = core_now_ns();
		if (now >= end_ns)
			return;
		/* the peer may end at the same time, and have to send before it reads */
		if (is_end)
			iw_conn_discard(conn);
		pause_until(conn, now, end_ns, is_end && !conn->has_fin_come ? POLLIN : 0);
	}
}

/* --- the end --- */

static void reset(struct iw_conn *conn)
{
	const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;

	if (zerocopy->is_reset)
		return;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "TCP connection on descriptor %d is reset: the kernel still sends from memory of "
		 "the program",
		 conn->fd);
	(void)connect(conn->fd, &nowhere, sizeof(nowhere));
	iw_conn_lose(conn, -ECONNABORTED);
	zerocopy->is_reset = true;
	zerocopy->end_ns = core_now_ns() + zerocopy->limit_ns;
}

void iw_zerocopy_end(struct iw_conn *conn)
{
	iw_zerocopy_read(conn);
	if (!iw_zerocopy_is_pending(&conn->stream.tx))
		return;
	reset(conn);
	iw_zerocopy_wait(conn, core_now_ns() + IW_ZEROCOPY_LOOK_NS, false);
}

void iw_zerocopy_hurry(struct iw_conn *conn)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;
	uint64_t end = core_now_ns() + IW_ZEROCOPY_ABRUPT_NS;

	if (zerocopy->limit_ns > IW_ZEROCOPY_ABRUPT_NS)
		zerocopy->limit_ns = IW_ZEROCOPY_ABRUPT_NS;
	if (zerocopy->end_ns > end)
		zerocopy->end_ns = end;
}

bool iw_zerocopy_must_wait(struct iw_conn *conn, uint32_t events)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;
	uint64_t now = core_now_ns();

	if (!iw_zerocopy_is_pending(&conn->stream.tx))
		return false;
	if (!zerocopy->end_ns)
		zerocopy->end_ns = now + zerocopy->limit_ns;
	if (conn->is_lost || conn->is_hung_up || now >= zerocopy->end_ns)
		reset(conn);
	if (now >= zerocopy->end_ns)
		return false;
	iw_engine_remove_polled(conn->engine, conn);
	/* EPOLLHUP would show all the time */
	if (zerocopy->is_reset)
		(void)iw_conn_pause_watch(conn);
	if (zerocopy->is_reset || iw_conn_watch(conn, events) < 0)
		iw_conn_lower_deadline(conn, now + IW_ZEROCOPY_LOOK_NS);
	iw_conn_lower_deadline(conn, zerocopy->end_ns);
	return true;
}

/*
 * When the waits of a call that releases an endpoint begin: after one that was in vain, at the same
 * time as that one, for as long as two of them may take. So peers that answer nothing do not hold
 * up a program that ends many connections.
 */
static uint64_t release_begin(struct iw_engine *engine)
{
	uint64_t most = 2 * (IW_ZEROCOPY_RELEASE_NS + iw_zerocopy_limit_ns(engine));
	uint64_t vain = atomic_load(&engine->vain_ns);
	uint64_t now = core_now_ns();

	return vain && now - vain < most ? vain : now;
}

void iw_zerocopy_release(struct iw_conn *conn)
{
	struct iw_engine *engine = conn->engine;
	uint64_t begin, end;

	if (!iw_zerocopy_is_pending(&conn->stream.tx))
		return;
	begin = release_begin(engine);
	end = begin + IW_ZEROCOPY_RELEASE_NS;
	/* the service thread can do nothing for it now */
	(void)iw_conn_pause_watch(conn);
	iw_zerocopy_wait(conn, end, true);
	if (!iw_zerocopy_is_pending(&conn->stream.tx))
		return;
	atomic_store(&engine->vain_ns, begin);
	iw_zerocopy_end(conn);
	iw_zerocopy_wait(conn, end + iw_zerocopy_limit_ns(engine), true);
}

void iw_zerocopy_forget(struct iw_conn *conn)
{
	struct iw_zerocopy *zerocopy = &conn->stream.tx.zerocopy;

	if (!iw_zerocopy_is_pending(&conn->stream.tx))
		return;
	core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
		 "TCP connection on descriptor %d: a device still has packets with memory of the "
		 "program",
		 conn->fd);
	end_calls(conn, zerocopy->first, zerocopy->next - 1);
}

/* --- dat_lmr_free --- */

/* Has TCP nothing of it yet? */
static bool is_unsent(const struct iw_direct *direct, const struct core_req *req)
{
	return direct->first < direct->count && direct->sequence == req->sequence &&
	       !direct->offset && !direct->done;
}

/* May the kernel send from memory of the request? */
static bool is_in_use(const struct iw_tx *tx, const struct core_req *req)
{
	if ((req->op != CORE_OP_SEND && req->op != CORE_OP_RDMA_WRITE) ||
	    is_unsent(&tx->direct, req))
		return false;
	return req->sequence == tx->next || req->transport.word[1] > iw_zerocopy_released(tx);
}

static bool has_key(const struct core_req *req, uint32_t key)
{
	uint32_t i;

	for (i = 0; i < req->segments; i++)
		if (req->iov[i].lmr_context == key)
			return true;
	return false;
}

struct core_req *iw_zerocopy_find(const struct iw_conn *conn, struct core_ep *ep, uint32_t key)
{
	const struct iw_tx *tx = &conn->stream.tx;
	uint64_t end = tx->next + (tx->offset > 0);
	uint64_t sequence;

	if (!iw_zerocopy_is_pending(tx))
		return NULL;
	for (sequence = ep->req.head; sequence < end; sequence++) {
		struct core_req *req = core_req_at(&ep->req, sequence);

		if (is_in_use(tx, req) && has_key(req, key))
			return req;
	}
	return NULL;
}
