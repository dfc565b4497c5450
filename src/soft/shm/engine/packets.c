// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the service thread does when the socket of a connection is readable.
 */
#include "soft/shm/engine/service.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

#define PACKETS_MAX 16u /* of one connection in a row */

void shm_service_give_up(struct shm_conn *conn, struct core_ep *ep)
{
	switch (shm_conn_state(conn)) {
	case SHM_CALLING:
	case SHM_REQUESTED:
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case SHM_ACCEPTED:
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		break;
	case SHM_ESTABLISHED:
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		/* fall through */
	default:
		shm_conn_finish(conn, ep);
	}
}

/* The peer sent CLOSE; EP locked. */
static void peer_closed(struct shm_conn *conn, struct core_ep *ep, uint32_t why)
{
	conn->has_peer_closed = true;
	if (shm_conn_state(conn) == SHM_ESTABLISHED) {
		shm_conn_drain(conn, ep);
		shm_conn_close(conn, why == SHM_WHY_DISCONNECT ? DAT_CONNECTION_EVENT_DISCONNECTED
							       : DAT_CONNECTION_EVENT_BROKEN);
	}
	shm_service_give_up(conn, ep);
}

/* The socket ended: the peer is dead, or had closed before; EP locked. */
static void peer_gone(struct shm_conn *conn, struct core_ep *ep)
{
	conn->is_peer_gone = true;
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_conn_drain(conn, ep);
	shm_service_give_up(conn, ep);
}

/* The peer has published something: makes a pass. */
static void serve_published(struct shm_conn *conn, struct core_ep *ep)
{
	shm_conn_disarm(conn);
	shm_conn_pass(conn, ep);
}

static void established_packet(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const union shm_wire *wire = &packet->wire;

	switch (wire->head.type) {
	case SHM_WIRE_WAKE:
	case SHM_WIRE_MAP_ASK: /* one_packet has answered it */
		break;
	case SHM_WIRE_MAP_GIVE:
		shm_map_given(conn, &wire->give, packet->fds[0]);
		break;
	case SHM_WIRE_MAP_REFUSE:
		shm_map_refused(conn, wire->word.word);
		break;
	case SHM_WIRE_KEY_GONE:
		shm_map_gone(conn, wire->word.word);
		break;
	case SHM_WIRE_POOL_NAME:
		shm_pool_named(conn, &wire->pool);
		break;
	case SHM_WIRE_POOL_GIVE:
		shm_pool_given(conn, &wire->pool, packet->fds[0]);
		break;
	case SHM_WIRE_POOL_HAVE:
		shm_pool_answered(conn, &wire->pool);
		break;
	default:
		shm_service_give_up(conn, ep);
		return;
	}
	/*
	 * After any packet: the peer sends no WAKE into a socket that is full of other packets. A
	 * WAKE itself needs no pass, because shm_service_conn has made one, unless the connection
	 * was armed meanwhile.
	 */
	if (packet->wire.head.type != SHM_WIRE_WAKE ||
	    !atomic_load_explicit(&conn->is_disarmed, memory_order_relaxed))
		serve_published(conn, ep);
}

/* The peer may have given up its user after the set-up. */
static void answer_ask(struct shm_conn *conn, const struct shm_packet *packet)
{
	uint32_t key = packet->wire.word.word;

	if (shm_identity_is_same(conn, &packet->sender))
		shm_map_asked(conn, key);
	else
		shm_conn_send_word(conn, SHM_WIRE_MAP_REFUSE, key);
}

static void dispatch_locked(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	switch (shm_conn_state(conn)) {
	case SHM_REQUESTED:
	case SHM_ACCEPTED:
		/* CLOSE and other packets may come instead of an answer; what has failed already
		 * stays so (shm_setup_fail_later) */
		if (conn->failure || shm_setup_answer(conn, ep, packet) < 0)
			shm_service_give_up(conn, ep);
		break;
	case SHM_ESTABLISHED:
		if (packet->wire.head.type == SHM_WIRE_CLOSE)
			peer_closed(conn, ep, packet->wire.word.word);
		else
			established_packet(conn, ep, packet);
		break;
	default: /* CLOSING: only the end of the socket matters */
		break;
	}
}

/*
 * Takes one packet. False if no further packet is expected now, as after most WAKE packets. If one
 * arrives all the same, epoll reports it.
 */
static bool one_packet(struct shm_conn *conn)
{
	struct shm_packet packet;
	struct core_ep *ep;
	int rc = shm_packet_receive(conn, &packet);

	if (rc == -EAGAIN)
		return false;
	if (shm_conn_state(conn) == SHM_ARRIVING) {
		shm_setup_arrived(conn, rc > 0 ? &packet : NULL);
		shm_packet_close_fds(&packet);
		return false;
	}
	/* needs no lock, and is slow */
	if (rc > 0 && packet.wire.head.type == SHM_WIRE_MAP_ASK)
		answer_ask(conn, &packet);
	if (rc == 0)
		shm_conn_epoll_remove(conn);
	ep = shm_conn_enter(conn);
	if (!ep) {
		shm_conn_epoll_remove(conn);
	} else {
		if (rc > 0)
			dispatch_locked(conn, ep, &packet);
		else if (rc == 0)
			peer_gone(conn, ep);
		else
			shm_service_give_up(conn, ep);
		core_ep_leave(ep);
	}
	shm_packet_close_fds(&packet);
	return ep && rc > 0 && packet.wire.head.type != SHM_WIRE_WAKE;
}

/* Locks the endpoint of an established connection; NULL: it is not established. */
static struct core_ep *enter_established(struct shm_conn *conn)
{
	struct core_ep *ep = shm_conn_ep(conn).cell ? shm_conn_enter(conn) : NULL;

	if (ep && shm_conn_state(conn) != SHM_ESTABLISHED) {
		core_ep_leave(ep);
		return NULL;
	}
	return ep;
}

/*
 * The socket of a connection is readable. Most often it holds a WAKE for entries in the rings. The
 * rings are served first, because the peer may be waiting, then the packet is read. If no thread
 * polls here, the connection is armed again at once, so that a packet causes the next wake-up.
 * models/wake.pml models this.
 */
void shm_service_conn(struct shm_conn *conn)
{
	struct core_ep *ep = enter_established(conn);
	unsigned i;

	if (ep) {
		serve_published(conn, ep);
		core_ep_leave(ep);
	}
	for (i = 0; i < PACKETS_MAX && one_packet(conn); i++)
		;
	if (shm_service_is_driven(conn->engine))
		return;
	ep = enter_established(conn);
	if (ep) {
		shm_conn_settle(conn, ep);
		core_ep_leave(ep);
	}
}
