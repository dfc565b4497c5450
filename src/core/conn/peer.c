// SPDX-License-Identifier: BSD-2-Clause
/* dat_opendat_peer: the transport knows the process. */
#include "core/conn/peer.h"

#include <errno.h>

#include "core/base/cancel.h"
#include "core/base/handle.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/conn/cr.h"
#include "core/ep/ep_state.h"

static DAT_RETURN peer_of_ep(struct core_ep *ep, struct transport_peer *peer)
{
	int rc;

	if (ep->state != DAT_EP_STATE_CONNECTED && ep->state != DAT_EP_STATE_DISCONNECT_PENDING)
		return core_ep_bad_state(ep);
	rc = transport_this->peer(ep, NULL, peer);
	return rc == -ENOTCONN ? core_ep_bad_state(ep) : core_status_from_errno(rc);
}

DAT_RETURN core_peer(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer)
{
	CORE_NO_CANCELLATION;
	struct transport_peer found = {0};
	DAT_HANDLE_TYPE type;
	struct core_handle *cell = core_handle_lock_any(handle, &type);
	DAT_RETURN ret;

	if (!cell)
		return core_bad_handle(CORE_ARG(opendat_peer, 1, handle), DAT_INVALID_HANDLE1,
				       handle);
	if (type != DAT_HANDLE_TYPE_EP && type != DAT_HANDLE_TYPE_CR) {
		ret = core_bad_handle(CORE_ARG(opendat_peer, 1, handle), DAT_INVALID_HANDLE1,
				      handle);
	} else if (!peer) {
		ret = core_bad_null(CORE_ARG(opendat_peer, 2, peer));
	} else if (peer->size < sizeof(*peer)) {
		ret = core_bad_arg(CORE_ARG(opendat_peer, 2, peer), "size %u is less than %zu",
				   peer->size, sizeof(*peer));
	} else if (type == DAT_HANDLE_TYPE_EP) {
		ret = peer_of_ep(cell->object, &found);
	} else {
		struct core_cr *cr = cell->object;

		ret = core_status_from_errno(transport_this->peer(NULL, cr->transport, &found));
	}
	core_handle_unlock(cell);
	if (ret != DAT_SUCCESS)
		return ret;
	peer->flags = found.flags;
	peer->uid = found.uid;
	peer->gid = found.gid;
	peer->pid = found.pid;
	return DAT_SUCCESS;
}
