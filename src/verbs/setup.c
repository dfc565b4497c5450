// SPDX-License-Identifier: BSD-2-Clause
/* Set-up: what is common to both sides, and the events of the connection manager afterwards. */
#include "verbs/setup.h"

#include <stdatomic.h>

#include <rdma/rdma_cma.h>

#include "core/base/log.h"
#include "core/ep/ep.h"
#include "verbs/adapter.h"
#include "verbs/completion.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/iwarp.h"
#include "verbs/post.h"
#include "verbs/qp.h"

void vrb_conn_established(struct vrb_conn *conn, struct core_ep *ep)
{
	struct transport_conn_param peer = {
		.read_in = conn->peer_read_in,
		.private_data = conn->answer.data,
		.private_data_size = conn->answer.size,
	};

	bool is_passive = conn->state == VRB_ACCEPTED;

	conn->state = VRB_ESTABLISHED;
	vrb_conn_set_deadline(conn, VRB_NEVER);
	core_ep_set_path(ep, OPENDAT_PATH_VERBS);
	core_ep_established(ep, &peer);
	if (conn->answer.wants_confirmation && !is_passive)
		vrb_confirm(conn, ep);
	vrb_completions_early(conn, ep);
	vrb_post_requests(conn, ep);
}

void vrb_conn_fail(struct vrb_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	vrb_conn_detach(conn, ep);
	vrb_conn_destroy(conn);
	if (number == DAT_CONNECTION_EVENT_DISCONNECTED)
		core_ep_ended(ep, number);
	else
		core_ep_connect_failed(ep, number);
}

/* --- events --- */

static void event_locked(struct vrb_conn *conn, struct core_ep *ep,
			 const struct vrb_cm_event *event)
{
	switch (conn->state) {
	case VRB_RESOLVING:
	case VRB_CONNECTING:
		vrb_active_event(conn, ep, event);
		break;
	case VRB_ACCEPTED:
		vrb_passive_event(conn, ep, event);
		break;
	case VRB_ESTABLISHED:
		/* a reject may come, too, if the passive side was destroyed before it saw that we
		 * are established */
		if (event->type != RDMA_CM_EVENT_DISCONNECTED &&
		    event->type != RDMA_CM_EVENT_REJECTED)
			break;
		vrb_conn_close(conn, ep,
			       vrb_conn_is_broken(conn) ? DAT_CONNECTION_EVENT_BROKEN
							: DAT_CONNECTION_EVENT_DISCONNECTED);
		vrb_conn_try_finish(conn, ep, false);
		break;
	default:
		break;
	}
}

/* An event of a request that the consumer has not answered. If the peer is gone, accepting it will
 * fail. */
static void request_event(struct vrb_conn *conn, const struct vrb_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		atomic_store(&conn->is_peer_gone, true);
		break;
	default:
		break;
	}
}

void vrb_setup_event(struct vrb_conn *conn, const struct vrb_cm_event *event)
{
	struct core_ep *ep;

	core_log(CORE_LOG_CONN, "connection %u: %s, status %d", conn->key,
		 rdma_event_str(event->type), event->status);
	if (event->type == RDMA_CM_EVENT_DISCONNECTED) {
		/* an earlier event of the device may explain the end */
		vrb_device_read_events(conn->adapter);
		/* the confirmation may have arrived before it */
		if (conn->adapter->is_iwarp)
			(void)vrb_cq_take_arrived(conn->adapter);
	}
	request_event(conn, event);
	ep = vrb_conn_enter(conn);
	if (!ep)
		return;
	if (conn->id == event->id)
		event_locked(conn, ep, event);
	vrb_conn_leave(ep);
}

/* --- deadlines --- */

static void due_active(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns)
{
	if (conn->failure)
		vrb_conn_fail(conn, ep, conn->failure);
	else if (atomic_load(&conn->adapter->is_dead))
		vrb_conn_fail(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	else if (now_ns >= conn->give_up_ns)
		vrb_conn_fail(conn, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	else
		vrb_conn_set_deadline(conn, conn->give_up_ns);
}

static void due_passive(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns)
{
	if (atomic_load(&conn->is_peer_gone) || conn->failure || now_ns >= conn->give_up_ns ||
	    atomic_load(&conn->adapter->is_dead))
		vrb_conn_fail(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	else
		vrb_conn_set_deadline(conn, conn->give_up_ns);
}

static void due_established(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns)
{
	bool is_dead = atomic_load(&conn->adapter->is_dead);
	bool is_timed_out = conn->is_flushed && now_ns >= conn->give_up_ns;

	if (is_dead || is_timed_out || conn->has_failed) {
		vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
		vrb_conn_try_finish(conn, ep, is_dead);
	} else if (conn->is_flushed) {
		/* the deadline was set for another reason, which the flush has made obsolete */
		vrb_conn_set_deadline(conn, conn->give_up_ns);
	} else {
		vrb_confirm_retry(conn, ep);
		vrb_post_requests(conn, ep);
	}
}

void vrb_setup_due(struct vrb_conn *conn, struct core_ep *ep, uint64_t now_ns)
{
	switch (conn->state) {
	case VRB_RESOLVING:
	case VRB_CONNECTING:
		due_active(conn, ep, now_ns);
		break;
	case VRB_ACCEPTED:
		due_passive(conn, ep, now_ns);
		break;
	case VRB_ESTABLISHED:
		due_established(conn, ep, now_ns);
		break;
	case VRB_CLOSING:
		vrb_conn_try_finish(conn, ep, true);
		break;
	default:
		break;
	}
}
