// SPDX-License-Identifier: BSD-2-Clause
/*
 * What both sides of a set-up do (setup.h).
 */
#include "soft/shm/connect/setup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/slab.h"
#include "core/transport.h"
#include "core/mem/pz.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/identity.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

/* A number that no other endpoint on the host uses: the process, and a count within it. */
static uint64_t new_port(void)
{
	static _Atomic uint32_t count;

	/* relaxed: the numbers only have to differ */
	return UINT64_C(1) << 63 | (uint64_t)(uint32_t)getpid() << 32 |
	       atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

uint64_t shm_setup_token_address(const struct shm_conn *conn)
{
	return shm_conn_is_direct(conn) ? (uintptr_t)conn->engine->token : 0;
}

void shm_setup_fill_side(struct shm_conn *conn, struct core_ep *ep,
			 const struct transport_conn_param *param, struct shm_wire_side *side)
{
	struct shm_engine *engine = conn->engine;

	/* on the passive side it is the requested qualifier, which the core has set */
	conn->port = conn->self == SHM_ACTIVE ? new_port() : ep->local_port;
	conn->read_limit = param->read_out;
	ep->local_port = conn->port;
	side->port = conn->port;
	side->token_address = shm_setup_token_address(conn);
	memcpy(side->token, engine->token, sizeof(side->token));
	side->read_in = param->read_in;
	side->read_out = param->read_out;
	conn->pz = ep->pz->id;
	side->pz = conn->pz;
	side->ability = shm_setup_ability(conn);
}

int shm_setup_keys_fd(const struct shm_conn *conn)
{
	return shm_conn_is_direct(conn) ? soft_keys_fd(conn->engine->adapter->keys) : -1;
}

void shm_setup_learn_process(struct shm_conn *conn, const struct shm_wire_side *side)
{
	memcpy(conn->remote.token, side->token, sizeof(conn->remote.token));
	conn->remote.token_address = side->token_address;
}

void shm_setup_probe_process(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;

	if (!shm_conn_is_direct(conn))
		return;
	remote->has_cma = soft_copy_probe(remote->pid, remote->token_address, remote->token);
	remote->has_pull = remote->has_cma;
}

uint32_t shm_setup_ability(const struct shm_conn *conn)
{
	const struct shm_remote *remote = &conn->remote;

	return (remote->is_trusted ? SHM_ABLE_TRUST : 0) | (remote->has_pull ? SHM_ABLE_PULL : 0);
}

int shm_setup_take_trust(struct shm_conn *conn, uint32_t ability, int keys_fd)
{
	struct shm_remote *remote = &conn->remote;
	int rc = -EINVAL;

	if (!remote->is_trusted || !(ability & SHM_ABLE_TRUST)) {
		shm_identity_distrust(conn);
		conn->is_refusing = shm_socket_refuse_fds(conn->fd, true);
		return 0;
	}
	if (shm_conn_is_direct(conn) && keys_fd >= 0)
		rc = soft_view_get(keys_fd, &remote->view);
	if (remote->view)
		return 0;
	remote->has_cma = false;
	remote->has_pull = false;
	return rc == -EINVAL ? 0 : rc;
}

void shm_setup_learn_endpoint(struct shm_conn *conn, const struct shm_wire_side *side)
{
	conn->remote.pz = side->pz;
	conn->peer_read_in = side->read_in;
	conn->peer_read_out = side->read_out;
	conn->remote.alive_ns = core_now_ns();
}

static void make_maps(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;
	uint64_t copy = conn->engine->settings.copy;

	if (remote->view && (copy == CORE_COPY_AUTO || copy == CORE_COPY_MAP))
		remote->maps =
			core_slab_alloc(SHM_MAPS * sizeof(*remote->maps)); /* NULL: no mapping */
}

void shm_setup_established(struct shm_conn *conn, struct core_ep *ep,
			   const struct transport_conn_param *peer)
{
	make_maps(conn);
	shm_conn_set_deadline(conn, 0);
	if (conn->read_limit > conn->peer_read_in)
		conn->read_limit = conn->peer_read_in;
	conn->tx_next = ep->req.tail;
	conn->tx_ack = ep->req.tail;
	conn->tx_data = ep->req.tail;
	shm_conn_set_state(conn, SHM_ESTABLISHED);
	core_ep_set_path(ep, OPENDAT_PATH_RING);
	core_ep_established(ep, peer);
	if (shm_conn_state(conn) != SHM_ESTABLISHED)
		return; /* a watermark has broken it: the service thread reports the end */
	shm_engine_activate(conn->engine, conn);
	shm_conn_pass(conn, ep);
}

void shm_setup_fail_later(struct shm_conn *conn, DAT_EVENT_NUMBER number)
{
	conn->failure = number;
	shm_conn_serve_later(conn);
}

/* Takes the key table that came with READY. */
static int take_ready(struct shm_conn *conn, struct shm_packet *packet)
{
	bool is_same = shm_identity_is_same(conn, &packet->sender);

	return shm_setup_take_trust(conn, is_same ? packet->wire.word.word : 0, packet->fds[0]);
}

int shm_setup_answer(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const union shm_wire *wire = &packet->wire;
	const struct transport_conn_param peer = {.read_in = conn->peer_read_in,
						  .read_out = conn->peer_read_out};
	enum shm_state state = shm_conn_state(conn);
	int rc;

	if (wire->head.type == SHM_WIRE_READY && state == SHM_ACCEPTED && !conn->request) {
		rc = take_ready(conn, packet);
		if (rc < 0)
			return rc;
		shm_packet_close_fds(packet);
		conn->remote.is_pulling =
			conn->remote.is_trusted && (wire->word.word & SHM_ABLE_PULL);
		shm_setup_established(conn, ep, &peer);
		return 0;
	}
	if (state != SHM_REQUESTED)
		return -EPROTO;
	if (wire->head.type == SHM_WIRE_ACCEPT)
		return shm_setup_accepted(conn, ep, packet);
	if (wire->head.type != SHM_WIRE_REJECT)
		return -EPROTO;
	shm_conn_fail_setup(conn, ep,
			    wire->word.word == SHM_WHY_CONSUMER
				    ? DAT_CONNECTION_EVENT_PEER_REJECTED
				    : DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	return 0;
}
