// SPDX-License-Identifier: BSD-2-Clause
/* The passive side answers a request, and handles the events until the connection is established or
 * has failed. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/transport.h"
#include "core/ep/ep.h"
#include "shared/cm.h"
#include "verbs/adapter.h"
#include "verbs/conn.h"
#include "verbs/iwarp.h"
#include "verbs/qp.h"
#include "verbs/service.h"
#include "verbs/setup.h"

static int accept_now(struct vrb_conn *conn, struct core_ep *ep)
{
	bool is_iwarp = conn->adapter->is_iwarp;
	struct rdma_conn_param param;
	uint8_t bytes[CM_MAX];
	int rc;

	rc = vrb_qp_to_init(conn, ep);
	if (!rc)
		rc = vrb_qp_to_send(conn, conn->read_in, conn->read_out);
	if (rc)
		return rc;
	memset(&param, 0, sizeof(param));
	param.private_data = bytes;
	if (conn->is_opendat) {
		param.private_data_len = (uint8_t)cm_put_accept(&conn->answer, bytes);
	} else {
		memcpy(bytes, conn->answer.data, conn->answer.size);
		param.private_data_len = conn->answer.size;
	}
	param.responder_resources = vrb_at_least_one(conn->read_in, is_iwarp);
	param.initiator_depth = vrb_at_least_one(conn->read_out, is_iwarp);
	param.rnr_retry_count = VRB_RNR_FOR_EVER;
	param.srq = ep->srq != NULL;
	param.qp_num = conn->qp->qp_num;
	return rdma_accept(conn->id, &param) ? -errno : 0;
}

int vrb_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	struct vrb_conn *conn = request;
	struct vrb_adapter *adapter = conn->adapter;
	int rc;

	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	vrb_request_answered(conn);
	rc = vrb_qp_create(conn, ep);
	if (rc)
		return rc;
	conn->read_in = vrb_at_most(param->read_in, adapter->limits.reads_in);
	conn->read_out = vrb_at_most(vrb_at_most(param->read_out, adapter->limits.reads_out),
				     conn->peer_read_in);
	conn->answer.read_in = conn->read_in;
	conn->answer.wants_confirmation = vrb_confirm_is_needed(conn, ep);
	conn->answer.size = (uint8_t)param->private_data_size;
	if (param->private_data_size)
		memcpy(conn->answer.data, param->private_data, param->private_data_size);
	conn->give_up_ns = core_now_ns() + adapter->ia->settings.setup_timeout_ms * VRB_NS_PER_MS;
	conn->state = VRB_ACCEPTED;
	vrb_conn_attach(conn, ep);
	rc = atomic_load(&conn->is_peer_gone) ? -ECONNRESET : accept_now(conn, ep);
	if (rc) {
		core_log(CORE_LOG_CONN, "accept: %s", strerror(-rc));
		conn->failure = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	}
	/* a thread that saw the peer go before the connection was attached found no endpoint, so
	 * the deadline reports that */
	vrb_conn_set_deadline(conn, rc || atomic_load(&conn->is_peer_gone) ? 0 : conn->give_up_ns);
	return 0;
}

void vrb_passive_event(struct vrb_conn *conn, struct core_ep *ep, const struct vrb_cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!conn->is_unconfirmed)
			vrb_conn_established(conn, ep);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		vrb_conn_fail(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		break;
	default:
		break;
	}
}
