// SPDX-License-Identifier: BSD-2-Clause
/* The transport table of the provider over rdma-core, the life of an instance, and short slots. */
#include <errno.h>

#include "core/base/log.h"
#include "core/base/transport_stubs.h"
#include "core/ep/ep.h"
#include "core/transport.h"
#include "verbs/connect/active.h"
#include "verbs/connect/passive.h"
#include "verbs/device/adapter.h"
#include "verbs/device/cq.h"
#include "verbs/device/device.h"
#include "verbs/device/mem.h"
#include "verbs/device/srq.h"
#include "verbs/engine/poll.h"
#include "verbs/engine/service.h"
#include "verbs/transfer/bind.h"
#include "verbs/transfer/conn.h"
#include "verbs/transfer/post.h"

/* --- instance --- */

static int adapter_open(struct core_ia *ia)
{
	struct vrb_adapter *adapter;
	int rc;

	if (ia->settings.peers == CORE_PEERS_USER) {
		core_log(CORE_LOG_ERROR, "%s: peers=user: a device does not know users",
			 ia->device);
		return -EOPNOTSUPP;
	}
	rc = vrb_address_of_device(ia->device, ia->port, &ia->address);
	if (rc)
		return rc;
	rc = vrb_adapter_create(ia, &adapter);
	if (rc)
		return rc;
	rc = vrb_device_open(adapter);
	if (rc)
		goto put_adapter;
	rc = vrb_device_limits(adapter);
	if (rc)
		goto close_device;
	ia->transport = adapter; /* before the thread runs */
	if (ia->is_query)
		return 0;
	rc = vrb_cq_create(adapter);
	if (rc)
		goto close_device;
	rc = vrb_service_start(adapter);
	if (rc)
		goto destroy_queues;
	return 0;

destroy_queues:
	vrb_cq_destroy_all(adapter);
close_device:
	vrb_device_close(adapter);
put_adapter:
	vrb_adapter_put(adapter);
	ia->transport = NULL;
	return rc;
}

static int vrb_ia_open(struct core_ia *ia)
{
	int rc;

	vrb_fds_fill();
	rc = adapter_open(ia);
	vrb_fds_unfill();
	return rc;
}

static void vrb_ia_close(struct core_ia *ia)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);

	if (!ia->is_query) {
		/* this waits for events that the service thread takes */
		vrb_conn_end_lingering(adapter);
		vrb_service_stop(adapter);
		vrb_cq_destroy_all(adapter);
	}
	vrb_device_close(adapter);
	ia->transport = NULL;
	vrb_adapter_put(adapter);
}

static int vrb_arm(struct core_ia *ia)
{
	return vrb_poll_arm(vrb_adapter_of(ia));
}

/* --- endpoint --- */

static int vrb_ep_create(struct core_ep *ep)
{
	/* EP-CRSRQ-31: a device does not show which buffers an endpoint holds */
	if (ep->srq && (ep->soft_watermark != DAT_WATERMARK_INFINITE ||
			ep->hard_watermark != DAT_WATERMARK_INFINITE))
		return -EOPNOTSUPP;
	ep->transport = ep + 1;
	return 0;
}

static void vrb_ep_detach(struct core_ep *ep)
{
	struct vrb_ep *side = ep->transport;
	struct vrb_conn *conn = side->conn;

	if (!conn)
		return;
	vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	vrb_conn_detach(conn, ep);
	side->dying = conn;
	vrb_update_slow_reasons(ep);
}

static void vrb_ep_destroy(struct core_ep *ep)
{
	struct vrb_ep *side = ep->transport;

	/* while the instance is being closed, nobody asks for the counts of an SRQ */
	if (side->dying && atomic_load(&ep->ia->is_closing))
		vrb_conn_destroy(side->dying);
	else if (side->dying)
		vrb_conn_destroy_freed(side->dying);
	ep->transport = NULL;
}

/* --- connection --- */

static void vrb_disconnect(struct core_ep *ep, bool is_graceful)
{
	struct vrb_conn *conn = vrb_conn_of(ep);

	if (!conn)
		return;
	if (conn->state < VRB_ESTABLISHED) {
		vrb_conn_fail(conn, ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else if (is_graceful) {
		conn->end.is_graceful = true;
		vrb_post_requests(conn, ep); /* it closes the connection when no request is left */
	} else {
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		vrb_conn_try_finish(conn, ep, false);
	}
	vrb_update_slow_reasons(ep);
}

static void vrb_abort(struct core_ep *ep)
{
	if (vrb_conn_of(ep))
		vrb_conn_close(vrb_conn_of(ep), ep, DAT_CONNECTION_EVENT_BROKEN);
	vrb_update_slow_reasons(ep);
}

static void vrb_serve_soon(struct core_ia *ia)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);

	atomic_store(&adapter->is_serving, true);
	core_service_kick(&adapter->service);
}

static const struct transport_ops vrb_ops = {
	.name = "verbs",

	.ia_open = vrb_ia_open,
	.ia_close = vrb_ia_close,
	.progress = vrb_progress,
	.arm = vrb_arm,
	.sleep_begin = transport_no_sleep_begin,
	.sleep_end = transport_no_sleep_end,

	.pz_create = vrb_pz_create,
	.pz_destroy = vrb_pz_destroy,
	.lmr_create = vrb_lmr_create,
	.lmr_destroy = vrb_lmr_destroy,

	.ep_size = sizeof(struct vrb_ep),
	.ep_create = vrb_ep_create,
	.ep_detach = vrb_ep_detach,
	.ep_destroy = vrb_ep_destroy,

	.listen = vrb_listen,
	.unlisten = vrb_unlisten,

	.connect = vrb_connect,
	.accept = vrb_accept,
	.reject = vrb_reject,
	.disconnect = vrb_disconnect,
	.peer = transport_no_peer,

	.post_request = vrb_post_request,
	.post_recv = vrb_post_recv,
	.progress_ep = transport_no_progress_ep,

	.abort = vrb_abort,
	.kick = vrb_serve_soon,
	.srq_create = vrb_srq_create,
	.srq_destroy = vrb_srq_destroy,
	.srq_post = vrb_srq_post,
	.rmr_key_create = vrb_rmr_key_create,
	.rmr_key_retire = vrb_rmr_key_retire,
	.rmr_key_activate = vrb_rmr_key_activate,
	.rmr_key_revoke = vrb_rmr_key_revoke,
	.rmr_key_destroy = vrb_rmr_key_destroy,
};

const struct transport_ops *const transport_this = &vrb_ops;
