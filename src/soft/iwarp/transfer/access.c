// SPDX-License-Identifier: BSD-2-Clause
/*
 * The socket of a connection, and memory that the peer reads and writes (access.h). The thread
 * sanitizer does not see the system calls of the data path. It has to see recv and sendmsg, because
 * what is sent and received orders the threads of a process that talks to itself. So it gets those
 * of the C library, with cancellation disabled. It must not see recvmsg, which places bytes that the
 * consumer may look at at any time (COMPAT-46).
 */
#include "soft/iwarp/transfer/access.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/tsan.h"
#include "core/mem/pz.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/iwarp/wire/crc.h"
#include "soft/key.h"
#include "soft/soft.h"

ssize_t iw_socket_recv(int fd, void *buffer, size_t size, int flags)
{
#ifdef CORE_HAS_TSAN
	CORE_NO_CANCELLATION;

	return recv(fd, buffer, size, flags);
#else
	return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
#endif
}

ssize_t iw_socket_recvmsg(int fd, struct msghdr *message, int flags)
{
	return syscall(SYS_recvmsg, fd, message, flags);
}

ssize_t iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
#ifdef CORE_HAS_TSAN
	CORE_NO_CANCELLATION;

	return sendmsg(fd, message, flags);
#else
	return syscall(SYS_sendmsg, fd, message, flags);
#endif
}

uint32_t iw_socket_mss(int fd)
{
	int mss = 0;
	socklen_t size = sizeof(mss);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &size) < 0 || mss < 0)
		return 0;
	return (uint32_t)mss;
}

/* --- is the peer still there? --- */

#define NS_PER_MS UINT64_C(1000000)
#define LOOKS 10u     /* at the connection, within the time limit */
#define PROBES_MIN 3u /* unanswered ones of a closed window, since one may get lost */
#define RESENDS 8u    /* at least, within the time limit; TCP has a limit for their number, too */
#define RTO_LEAST_MS 1000
#define RTO_MOST_MS 120000

/* The longest time between two tries of TCP; since Linux 6.15. */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

/* The kernel counts in seconds, and the sum is the time limit. */
static int set_keepalive(int fd, uint64_t limit_ms)
{
	int limit = (int)(limit_ms / 1000);
	int idle = limit * 2 / 5 > 0 ? limit * 2 / 5 : 1;
	int interval = limit / 5 > 0 ? limit / 5 : 1;
	int count = (limit - idle) / interval;
	const int yes = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)) < 0)
		return -errno;
	return 0;
}

int iw_alive_set_options(int fd, const struct core_settings *settings)
{
	int most = (int)(settings->link_timeout_ms / RESENDS);

	if (most < RTO_LEAST_MS)
		most = RTO_LEAST_MS;
	if (most > RTO_MOST_MS)
		most = RTO_MOST_MS;
	/* TCP doubles the time from one try to the next. Without the option, on older kernels, a
	 * link has to come back earlier to be noticed in time */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most, sizeof(most));
	return set_keepalive(fd, settings->link_timeout_ms);
}

static uint64_t limit_ns(const struct iw_conn *conn)
{
	return conn->engine->settings.link_timeout_ms * NS_PER_MS;
}

/* A silence is noticed one look late at most, so that the limit holds. */
static void set_look(struct iw_conn *conn, uint64_t now)
{
	struct iw_alive *alive = &conn->alive;
	uint64_t end = alive->since_ns + limit_ns(conn) - limit_ns(conn) / LOOKS;

	alive->look_ns = now + limit_ns(conn) / LOOKS;
	if (end > now && end < alive->look_ns)
		alive->look_ns = end;
	iw_conn_lower_deadline(conn, alive->look_ns);
}

void iw_alive_begin(struct iw_conn *conn)
{
	uint64_t now = core_now_ns();

	conn->alive.since_ns = now;
	set_look(conn, now);
}

/*
 * Has the peer answered what was sent to it last? Times of `info` are in milliseconds, so that both
 * may be equal, and without a route nothing is sent any more. But the kernel counts the tries that
 * have no answer, also those that it could not send.
 */
static bool has_answered(const struct tcp_info *info)
{
	uint32_t heard = info->tcpi_last_ack_recv < info->tcpi_last_data_recv
				 ? info->tcpi_last_ack_recv
				 : info->tcpi_last_data_recv;

	return !info->tcpi_probes && !info->tcpi_retransmits && heard <= info->tcpi_last_data_sent;
}

/* Has anything come from the peer in the last `ms`? */
static bool has_heard(const struct tcp_info *info, uint64_t ms)
{
	return info->tcpi_last_ack_recv < ms || info->tcpi_last_data_recv < ms;
}

bool iw_alive_is_all_answered(const struct iw_conn *conn)
{
	int left;

	return ioctl(conn->fd, SIOCOUTQ, &left) < 0 || !left;
}

/* Is the peer gone? Measures the silence from the look that notices it, not from the last sign. */
static bool is_gone(struct iw_conn *conn, const struct tcp_info *info, uint64_t now)
{
	struct iw_alive *alive = &conn->alive;
	uint64_t look_ns = limit_ns(conn) / LOOKS;

	if (has_answered(info) || has_heard(info, look_ns / NS_PER_MS)) {
		alive->since_ns = now;
		return false;
	}
	/* the window is closed: nothing is sent but probes, and these less and less often */
	if (!info->tcpi_unacked && info->tcpi_probes < PROBES_MIN)
		return false;
	return now - alive->since_ns >= limit_ns(conn) - look_ns;
}

void iw_alive_due(struct iw_conn *conn)
{
	struct iw_alive *alive = &conn->alive;
	struct tcp_info info = {.tcpi_state = 0};
	socklen_t size = sizeof(info);
	uint64_t now = core_now_ns();

	if (!alive->look_ns)
		return;
	if (now < alive->look_ns) {
		iw_conn_lower_deadline(conn, alive->look_ns);
		return;
	}
	if (iw_alive_is_all_answered(conn)) {
		alive->look_ns = 0;
		return;
	}
	if (!getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &size) &&
	    is_gone(conn, &info, now)) {
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR, "%s: no answer over TCP for %u ms",
			 iw_conn_name(conn).text,
			 (unsigned int)((now - alive->since_ns) / NS_PER_MS));
		iw_conn_lose(conn, -ETIMEDOUT);
		return;
	}
	set_look(conn, now);
}

/* ==== memory that the peer reads and writes ==== */

/* --- keys --- */

/* What is wrong with an access; soft_key_check() has refused it. */
static iw_error explain(const struct soft_key_entry *entries, const struct core_ep *ep,
			uint32_t key, bool is_write, uint64_t address, uint64_t length)
{
	static const struct {
		iw_error write, read;
	} codes[] = {
		{IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)}, /* no such STag */
		{IW_ERROR(1, 1, 2), IW_ERROR(0, 1, 3)}, /* another zone */
		{IW_ERROR(1, 1, 3), IW_ERROR(0, 1, 4)}, /* the range wraps */
		{IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)}, /* out of range */
		{IW_ERROR(0, 1, 2), IW_ERROR(0, 1, 2)}, /* no such right */
	};
	/* cast, because atomic loads of older compilers refuse const */
	struct soft_key_entry *entry =
		(struct soft_key_entry *)(uintptr_t)&entries[soft_key_index(key)];
	unsigned which;

	/* the entry may change meanwhile, which at worst names another cause */
	if (!key || atomic_load(&entry->key) != key || !soft_key_is_remote(entry))
		which = 0;
	else if (entry->pz != ep->pz->id)
		which = 1;
	else if (address + (length - 1) < address) /* the end may be 2^64 itself */
		which = 2;
	else if (address < entry->address || length > entry->length ||
		 address - entry->address > entry->length - length)
		which = 3;
	else
		which = 4;
	return is_write ? codes[which].write : codes[which].read;
}

void iw_key_announce(struct iw_conn *conn, uint32_t key)
{
	atomic_store_explicit(&conn->announced, key, memory_order_relaxed);
	/* full fence: pairs with the one in soft_keys_invalidate */
	atomic_thread_fence(memory_order_seq_cst);
}

iw_error iw_key_begin(struct iw_conn *conn, struct core_ep *ep, uint32_t key, enum soft_right right,
		      uint64_t address, uint64_t length)
{
	const struct soft_key_entry *entries = soft_keys_entries(conn->engine->adapter->keys);

	iw_key_announce(conn, key);
	if (!soft_key_check(entries, key, right, ep->pz->id, address, length))
		return IW_NO_ERROR;
	return explain(entries, ep, key, right == SOFT_RIGHT_REMOTE_WRITE, address, length);
}

void iw_key_end(struct iw_conn *conn)
{
	/* release: the bytes are placed before dat_lmr_free continues */
	atomic_store_explicit(&conn->announced, 0, memory_order_release);
}

/* --- targets --- */

iw_error iw_target_begin(struct iw_conn *conn, struct core_ep *ep, const struct iw_segment *segment,
			 uint32_t count, struct iw_target *target)
{
	const struct iw_read *read;
	const struct core_req *req;
	uint64_t address;

	target->has_key = segment->ddp.opcode == IW_OP_WRITE;
	target->pins.count = 0;
	if (target->has_key) {
		address = segment->ddp.offset + segment->placed;
		target->pins.iov[0] = (struct iovec){(void *)(uintptr_t)address, count};
		return iw_key_begin(conn, ep, segment->ddp.stag, SOFT_RIGHT_REMOTE_WRITE, address,
				    count);
	}
	if (iw_segment_is_send(segment))
		return soft_pin_receive(ep, core_recv_next(ep), conn->stream.rx.filling.offset,
					count, &target->pins) < 0
			       ? IW_ERROR(1, 0, 0)
			       : IW_NO_ERROR;
	read = iw_oldest_read(conn);
	req = core_req_at(&ep->req, read->sequence);
	return soft_pin(ep, req->iov, req->segments, read->offset + read->taken, count,
			CORE_MEM_TARGET, &target->pins) < 0
		       ? IW_ERROR(1, 1, 0)
		       : IW_NO_ERROR;
}

void iw_target_end(struct iw_conn *conn, struct iw_target *target)
{
	if (target->has_key)
		iw_key_end(conn);
	else
		soft_unpin(&target->pins);
}

void iw_target_advance(struct iw_conn *conn, struct iw_segment *segment, uint32_t count)
{
	segment->placed += count;
	if (iw_segment_is_send(segment))
		conn->stream.rx.filling.offset += count;
	else if (segment->ddp.opcode == IW_OP_READ_RESPONSE)
		iw_oldest_read(conn)->taken += count;
}

/* --- the CRC over memory of the consumer --- */

#define PIECE 32768u /* two system calls for most payloads; on the stack of a service thread */

/* A thread of the library must not fault: the kernel copies the bytes. */
static __attribute__((noinline)) int checksum_copy(const uint8_t *at, size_t left, uint32_t *crc)
{
	uint8_t piece[PIECE];

	while (left) {
		size_t part = left < sizeof(piece) ? left : sizeof(piece);

		if (soft_copy_from_consumer(piece, at, part) < 0)
			return -EFAULT;
		*crc = iw_crc32c(*crc, piece, part);
		at += part;
		left -= part;
	}
	return 0;
}

static int checksum(const void *at, size_t len, uint32_t *crc)
{
	if (soft_is_library_thread)
		return checksum_copy(at, len, crc);
	*crc = iw_crc32c(*crc, at, len);
	return 0;
}

int iw_checksum_pins(const struct soft_pins *pins, size_t len, uint32_t *crc)
{
	int rc = 0;
	uint32_t i;

	for (i = 0; len && !rc; i++) {
		size_t part = pins->iov[i].iov_len < len ? pins->iov[i].iov_len : len;

		rc = checksum(pins->iov[i].iov_base, part, crc);
		len -= part;
	}
	return rc;
}
