// SPDX-License-Identifier: BSD-2-Clause
/* Noticing peers that have vanished (alive.h). */
#include "soft/iwarp/transfer/alive.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"

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
		core_log(CORE_LOG_CONN | CORE_LOG_ERROR,
			 "TCP connection on descriptor %d: no answer for %u ms", conn->fd,
			 (unsigned int)((now - alive->since_ns) / NS_PER_MS));
		iw_conn_lose(conn, -ETIMEDOUT);
		return;
	}
	set_look(conn, now);
}
