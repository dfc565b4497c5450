// SPDX-License-Identifier: BSD-2-Clause
/* The exchange of set-up frames, and what both sides do with events, deadlines and results. */
#include "soft/iwarp/connect/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/log.h"
#include "core/base/slab.h"
#include "shared/names.h"
#include "soft/address.h"
#include "soft/iwarp/connect/attempt.h"
#include "soft/iwarp/transfer/alive.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/iwarp/transfer/tx.h"

int iw_setup_create(struct iw_conn *conn)
{
	conn->setup = core_slab_alloc(sizeof(*conn->setup));
	if (!conn->setup)
		return -ENOMEM;
	if (conn->is_active)
		for (unsigned i = 0; i < CM_PORTS; i++)
			conn->setup->active.places[i].fd = -1;
	return 0;
}

void iw_setup_free(struct iw_conn *conn)
{
	if (!conn->setup)
		return;
	if (conn->is_active) {
		iw_place_close_all(conn->setup);
		free(conn->setup->active.plain);
	}
	core_slab_free(conn->setup, sizeof(*conn->setup));
	conn->setup = NULL;
}

void iw_setup_congestion_control(int fd, const struct iw_engine *engine)
{
	/* fails if the administrator does not allow it */
	if (engine->is_loopback)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

int iw_setup_socket_options(int fd, const struct core_settings *settings)
{
	const int yes = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
		return -errno;
	return iw_alive_set_options(fd, settings);
}

bool iw_setup_wants_crc(const struct iw_engine *engine, const union core_sockaddr *peer)
{
	if (engine->settings.crc != CORE_CRC_AUTO)
		return engine->settings.crc == CORE_CRC_ON;
	/* what does not leave this host is not damaged; asking the system takes two sockets */
	return !engine->is_loopback && !soft_address_is_same(peer, &engine->ia->address) &&
	       soft_address_find(peer) != 0;
}

void iw_set_port(union core_sockaddr *address, uint16_t port)
{
	if (address->sa.sa_family == AF_INET6)
		address->in6.sin6_port = htons(port);
	else
		address->in.sin_port = htons(port);
}

uint16_t iw_get_port(const union core_sockaddr *address)
{
	return ntohs(address->sa.sa_family == AF_INET6 ? address->in6.sin6_port
						       : address->in.sin_port);
}

/* --- frames --- */

void iw_setup_put(struct iw_setup *setup, const struct iw_mpa *mpa)
{
	setup->size = (uint16_t)iw_mpa_put(mpa, setup->frame);
	setup->sent = 0;
	setup->is_sending = true;
}

int iw_setup_send(struct iw_conn *conn)
{
	struct iw_setup *setup = conn->setup;

	while (setup->sent < setup->size) {
		ssize_t count =
			send(conn->fd, setup->frame + setup->sent,
			     (size_t)(setup->size - setup->sent), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count < 0 && errno == EAGAIN)
			return 0;
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count > 0)
			setup->sent = (uint16_t)(setup->sent + count);
	}
	setup->is_sending = false;
	setup->size = 0;
	return 1;
}

/* Reads up to that many bytes; the result is that of iw_setup_receive, 1: some have come. */
static int receive_some(struct iw_conn *conn, uint32_t most)
{
	struct iw_setup *setup = conn->setup;
	ssize_t count;

	do
		count = recv(conn->fd, setup->frame + setup->size, most, MSG_DONTWAIT);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (!count)
		return -ENODATA;
	setup->size = (uint16_t)(setup->size + count);
	return 1;
}

int iw_setup_receive(struct iw_conn *conn, bool is_reply, struct iw_mpa *mpa)
{
	const struct iw_setup *setup = conn->setup;
	uint32_t whole;
	int rc = 1;

	while (rc > 0) {
		rc = setup->size ? iw_mpa_get(setup->frame, setup->size, is_reply, mpa) : 0;
		if (rc < 0)
			break;
		whole = IW_MPA_HEAD;
		if (setup->size >= IW_MPA_HEAD) /* iw_mpa_get has checked the length */
			whole += (uint32_t)setup->frame[18] << 8 | setup->frame[19];
		assert(whole <= sizeof(setup->frame));
		if (setup->size == whole)
			return 1;
		rc = receive_some(conn, whole - setup->size);
	}
	return rc;
}

int iw_setup_peek(const struct iw_conn *conn)
{
	uint8_t byte;
	ssize_t count;

	do
		count = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return errno == EAGAIN ? 0 : -errno;
	return count ? 1 : -ENODATA;
}

/* --- results --- */

void iw_setup_fail(struct iw_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	core_log(CORE_LOG_CONN, "set-up over TCP ends: %s", opendat_event_name(number));
	iw_conn_set_deadline(conn, 0);
	iw_conn_drop(conn, ep);
	core_ep_connect_failed(ep, number);
}

bool iw_setup_report(struct iw_conn *conn, struct core_ep *ep,
		     const struct transport_conn_param *peer)
{
	core_log(CORE_LOG_CONN,
		 "connection over TCP: peer %s, CRC %s, RDMA Reads %u in, %u out, RDMA Writes %s",
		 conn->is_own_peer ? "OpenDAT" : "other", conn->has_crc ? "on" : "off",
		 (unsigned int)conn->ird, (unsigned int)conn->ord,
		 iw_has_proofs(conn) ? "proven" : "not proven"); /* RDMAP-38 */
	iw_conn_set_deadline(conn, 0);
	iw_conn_set_state(conn, IW_ESTABLISHED);
	iw_stream_start(conn, ep);
	core_ep_set_path(ep, OPENDAT_PATH_TCP);
	core_ep_established(ep, peer);
	iw_setup_free(conn); /* `peer` may have pointed into it */
	/* a watermark may have broken the connection */
	return iw_conn_of(ep) == conn && iw_conn_state(conn) == IW_ESTABLISHED;
}

void iw_setup_drop(struct iw_conn *conn)
{
	iw_conn_set_deadline(conn, 0);
	iw_conn_close_socket(conn);
	iw_listener_resume(conn->listener);
	/* nobody serves it any more; it is no longer ARRIVING, so that it is not dropped twice */
	iw_conn_set_state(conn, IW_CLOSING);
	iw_engine_put_later(conn->engine, conn);
}

/* --- service thread --- */

void iw_setup_event(struct iw_conn *conn, uint32_t events)
{
	struct core_ep *ep;

	/* each step finds out itself what there is to do */
	if (iw_conn_state(conn) == IW_ARRIVING) {
		iw_arriving_event(conn);
		return;
	}
	ep = iw_conn_enter(conn);
	if (!ep)
		return;
	switch (iw_conn_state(conn)) { /* another thread may have ended it before */
	case IW_CONNECTING:
	case IW_REQUESTED:
		iw_request_event(conn, ep);
		break;
	case IW_ACCEPTED:
		if (events & (EPOLLERR | EPOLLHUP))
			conn->is_hung_up = true; /* for iw_pass */
		iw_accepted_event(conn, ep);
		break;
	default:
		break;
	}
	core_ep_leave(ep);
}

void iw_setup_due(struct iw_conn *conn, uint64_t now)
{
	struct core_ep *ep;

	if (iw_conn_state(conn) == IW_ARRIVING) {
		if (!conn->setup)
			iw_listener_due(conn->listener);
		else if (now >= conn->give_up_ns) /* IWCM-25 */
			iw_setup_drop(conn);
		else
			iw_conn_set_deadline(conn, conn->give_up_ns);
		return;
	}
	ep = iw_conn_enter(conn);
	if (!ep)
		return;
	switch (iw_conn_state(conn)) {
	case IW_CONNECTING:
	case IW_REQUESTED:
		iw_request_due(conn, ep, now);
		break;
	case IW_ACCEPTED:
		iw_accepted_due(conn, ep, now);
		break;
	default:
		break;
	}
	core_ep_leave(ep);
}

void iw_setup_drop_all(struct iw_engine *engine, const struct iw_listener *listener)
{
	struct iw_conn *conn;

	do {
		core_lock_acquire(&engine->lock);
		/* the service thread, which is the caller, holds a reference to each of these */
		for (conn = engine->first; conn; conn = conn->next)
			if (iw_conn_state(conn) == IW_ARRIVING &&
			    (!listener || conn->listener == listener))
				break;
		core_lock_release(&engine->lock);
		if (conn)
			iw_setup_drop(conn);
	} while (conn);
}
