// SPDX-License-Identifier: BSD-2-Clause
/*
 * The passive side of a set-up: a request arrives, the core decides, the reply goes out. A peer
 * that asks for the peer-to-peer model (RFC 6581) sends the first FPDU; until then the connection
 * is ACCEPTED only. Without that model it is established when TCP has taken the reply.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "soft/iwarp/connect/attempt.h"
#include "soft/iwarp/connect/close.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/transfer/pass.h"
#include "soft/endpoint.h"

#define NO_REASON ((enum cm_reason)0)

/* --- replies --- */

/* What every reply to that request has in common (MPA-11, MPA-14, MPA-24, MPA-29). */
static void begin_reply(const struct iw_conn *conn, struct iw_mpa *reply)
{
	const struct iw_mpa *request = &conn->setup->passive.request;

	memset(reply, 0, sizeof(*reply));
	reply->is_reply = true;
	reply->has_crc = request->has_crc;
	reply->revision = request->revision;
	reply->is_enhanced = request->is_enhanced;
	if (request->is_enhanced && request->is_peer_to_peer) {
		reply->is_peer_to_peer = true;
		reply->rtr = (uint8_t)iw_mpa_choose_rtr(request->rtr);
	}
}

/* Sends a reply with R: it fits into the empty socket, or the peer has gone. */
static void send_reject(struct iw_conn *conn, enum cm_reason reason)
{
	uint8_t bytes[CM_REJECT_SIZE];
	struct iw_mpa reply;

	begin_reply(conn, &reply);
	reply.is_rejected = true;
	if (conn->setup->passive.has_header) {
		reply.private_size = (uint16_t)cm_put_reject(reason, bytes);
		reply.private_data = bytes;
	}
	iw_setup_put(conn->setup, &reply);
	(void)iw_setup_send(conn);
}

void iw_reject(struct iw_conn *conn, enum transport_reject why)
{
	iw_listener_remove_offered(conn);
	send_reject(conn,
		    why == TRANSPORT_REJECT_CONSUMER ? CM_REASON_CONSUMER : CM_REASON_PROVIDER);
	iw_conn_linger(conn);
}

/*
 * Refuses a request in place of the core. The socket is closed at once, so that peers cannot use up
 * descriptors. They read the reply all the same: they have sent nothing that we have not read.
 */
static void refuse_request(struct iw_conn *conn, enum cm_reason reason, const char *why)
{
	core_log(CORE_LOG_CONN, "request over TCP refused: %s", why);
	send_reject(conn, reason);
	iw_setup_drop(conn);
}

/* --- requests --- */

static void fill_address(struct iw_conn *conn, struct transport_request *request)
{
	socklen_t size = sizeof(request->remote_address);

	memset(&request->remote_address, 0, sizeof(request->remote_address));
	if (getpeername(conn->fd, &request->remote_address.sa, &size) < 0)
		return; /* it has gone: accepting it will fail */
	request->remote_port = iw_get_port(&request->remote_address);
	iw_set_port(&request->remote_address, 0);
	conn->setup->passive.from = request->remote_address;
}

/* A request without our header: the frame has its parameters (IWCM-17). */
static void read_foreign(struct iw_conn *conn, const struct iw_mpa *mpa,
			 struct transport_request *request)
{
	bool is_known = mpa->is_enhanced && mpa->ird != IW_MPA_DEPTH_UNKNOWN;

	request->conn_qual = iw_listener_port(conn->listener);
	request->param.read_in = is_known ? mpa->ird : IW_UNKNOWN_READS;
	is_known = mpa->is_enhanced && mpa->ord != IW_MPA_DEPTH_UNKNOWN;
	request->param.read_out = is_known ? mpa->ord : IW_UNKNOWN_READS;
	request->param.private_data = mpa->private_data;
	request->param.private_data_size = mpa->private_size;
}

static void read_own(const struct cm_request *cm, struct transport_request *request)
{
	request->remote_port = cm->port;
	request->conn_qual = cm->qual;
	request->param.read_in = cm->read_in;
	request->param.read_out = cm->read_out;
	request->param.private_data = cm->data;
	request->param.private_data_size = cm->size;
}

/* Returns 0, or the reason to refuse the request. */
static enum cm_reason read_request(struct iw_conn *conn, const struct iw_mpa *mpa,
				   struct cm_request *cm, struct transport_request *request)
{
	struct iw_passive *passive = &conn->setup->passive;
	int rc = cm_get_request(mpa->private_data, mpa->private_size, IW_MPA_PRIVATE_MAX, cm);

	passive->request = *mpa;
	passive->request.private_data = NULL;
	passive->has_header = rc != 0;
	if (rc < 0 || mpa->has_markers) /* IWCM-13, MPA-22 */
		return CM_REASON_PROVIDER;
	fill_address(conn, request);
	if (rc) {
		read_own(cm, request);
		passive->flags = cm->flags;
		passive->nonce = cm->nonce;
	} else {
		read_foreign(conn, mpa, request);
	}
	passive->peer_reads = request->param.read_in;
	return request->conn_qual == iw_listener_qual(conn->listener) ? NO_REASON
								      : CM_REASON_NOT_HERE;
}

/* Hands a whole request to the core. From then on the connection belongs to the core. */
static void offer(struct iw_conn *conn, const struct transport_request *request)
{
	iw_conn_set_deadline(conn, 0);
	iw_conn_unwatch(conn);
	iw_conn_set_state(conn, IW_OFFERED);
	iw_listener_add_offered(conn);
	if (!core_sp_request(iw_listener_sp(conn->listener), request))
		return;
	iw_listener_remove_offered(conn);
	iw_conn_set_state(conn, IW_ARRIVING);
	refuse_request(conn, CM_REASON_PROVIDER, "by the service point"); /* IWCM-22 */
}

static void take_request(struct iw_conn *conn, const struct iw_mpa *mpa)
{
	struct transport_request request = {.transport = soft_request_of_tcp(conn)};
	struct cm_request cm;
	enum cm_reason reason = read_request(conn, mpa, &cm, &request);

	if (reason) {
		refuse_request(conn, reason,
			       reason == CM_REASON_NOT_HERE ? "another qualifier" : "invalid");
		return;
	}
	if (conn->setup->passive.has_header && iw_listener_take_over(conn)) {
		core_log(CORE_LOG_CONN, "a request over TCP was repeated");
		iw_setup_drop(conn);
		return;
	}
	offer(conn, &request);
}

void iw_arriving_event(struct iw_conn *conn)
{
	struct iw_mpa mpa = {0};
	int rc;

	if (conn->fd < 0)
		return;
	rc = iw_setup_receive(conn, false, &mpa);
	if (!rc)
		return;
	if (rc == -EMSGSIZE) { /* MPA-13 */
		conn->setup->passive.request =
			(struct iw_mpa){.revision = 2, .is_enhanced = true, .has_crc = mpa.has_crc};
		refuse_request(conn, CM_REASON_PROVIDER, "no room for the enhanced data");
	} else if (rc < 0 || iw_setup_peek(conn)) { /* MPA-08 to MPA-10, MPA-17 */
		iw_setup_drop(conn);
	} else {
		take_request(conn, &mpa);
	}
}

/* --- the core accepts --- */

/* Sets what request and reply agree on. */
static void agree_reply(struct iw_conn *conn, const struct transport_conn_param *param,
			struct iw_mpa *reply)
{
	const struct iw_passive *passive = &conn->setup->passive;
	const struct iw_mpa *request = &passive->request;
	bool is_known = request->is_enhanced && request->ird != IW_MPA_DEPTH_UNKNOWN;

	begin_reply(conn, reply);
	if (!reply->has_crc)
		reply->has_crc = iw_setup_wants_crc(conn->engine, &passive->from);
	reply->ird = iw_depth(param->read_in);
	reply->ord = (uint16_t)iw_min(iw_depth(param->read_out),
				      is_known ? request->ird : IW_UNKNOWN_READS); /* MPA-41 */
	conn->has_crc = reply->has_crc;
	conn->rtr = reply->rtr;
	conn->ord = reply->ord;
	conn->ird = reply->ird;
	if (!request->is_enhanced || request->ord == IW_MPA_DEPTH_UNKNOWN)
		conn->ird = IW_READS; /* MPA-44 */
	conn->read_max = iw_min(param->read_out, passive->peer_reads);
	conn->is_own_peer = passive->has_header && (passive->flags & CM_COUNTS);
}

static void put_reply(struct iw_conn *conn, struct iw_mpa *reply,
		      const struct transport_conn_param *param)
{
	uint8_t bytes[CM_MAX];
	struct cm_accept accept = {
		.read_in = iw_count(param->read_in),
		.size = (uint8_t)param->private_data_size,
		.flags = conn->is_own_peer ? CM_COUNTS : 0,
	};

	reply->private_data = param->private_data;
	reply->private_size = (uint16_t)param->private_data_size;
	if (conn->setup->passive.has_header) {
		if (param->private_data_size)
			memcpy(accept.data, param->private_data, param->private_data_size);
		reply->private_data = bytes;
		reply->private_size = (uint16_t)cm_put_accept(&accept, bytes);
	}
	iw_setup_put(conn->setup, reply);
}

/* Waits for the peer, or has the service thread report the end of the set-up. */
static void wait_for_peer(struct iw_conn *conn, int rc)
{
	struct iw_passive *passive = &conn->setup->passive;

	if (rc >= 0)
		rc = iw_conn_watch(conn, conn->setup->is_sending ? EPOLLOUT : EPOLLIN);
	if (rc < 0)
		passive->has_failed = true;
	if (rc < 0 || (!conn->setup->is_sending && !passive->request.is_peer_to_peer))
		iw_conn_serve_later(conn);
	else
		iw_conn_set_deadline(conn, conn->give_up_ns);
}

int iw_accept(struct iw_conn *conn, struct core_ep *ep, const struct transport_conn_param *param)
{
	/* with header=off ours may be longer than the peer's adapter takes (CONN-GEN-11) */
	bool is_too_long =
		conn->setup->passive.has_header && param->private_data_size > CM_PRIVATE_MAX;
	struct iw_mpa reply;
	int rc;

	if (param->private_data_size > IW_PRIVATE_MAX)
		return -EINVAL;
	iw_listener_remove_offered(conn); /* the socket is constant from now on */
	agree_reply(conn, param, &reply);
	rc = iw_stream_begin(conn);
	if (rc < 0) {
		iw_listener_add_offered(conn);
		return rc;
	}
	if (!is_too_long)
		put_reply(conn, &reply, param);
	conn->give_up_ns = core_now_ns() + conn->engine->settings.setup_timeout_ms * IW_NS_PER_MS;
	iw_conn_attach(conn, ep);
	iw_conn_set_state(conn, IW_ACCEPTED);
	rc = iw_setup_peek(conn);
	if (rc > 0) /* MPA-17 */
		rc = -EPROTO;
	if (is_too_long) {
		send_reject(conn, CM_REASON_PROVIDER);
		rc = -EMSGSIZE;
	}
	if (!rc)
		rc = iw_setup_send(conn);
	/* the service thread waits for the endpoint's lock, which the caller holds */
	wait_for_peer(conn, rc);
	return 0;
}

/* --- until it is established --- */

static bool report(struct iw_conn *conn, struct core_ep *ep)
{
	const struct transport_conn_param peer = {.read_in = conn->setup->passive.peer_reads};

	return iw_setup_report(conn, ep, &peer);
}

void iw_setup_first_fpdu(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) == IW_ACCEPTED)
		(void)report(conn, ep);
}

void iw_setup_failed(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) != IW_ACCEPTED)
		return;
	/* an end in order would make the peer try again (MPA-46): a second request (IWCM-26) */
	if (conn->setup->is_sending)
		conn->is_lost = true;
	iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

/* The reply is sent. Without the peer-to-peer model that is the result, whatever has come since. */
static void go_on(struct iw_conn *conn, struct core_ep *ep)
{
	if (conn->setup->passive.request.is_peer_to_peer || report(conn, ep)) /* MPA-38 */
		iw_pass(conn, ep);
}

void iw_accepted_event(struct iw_conn *conn, struct core_ep *ep)
{
	int rc = 1;

	if (conn->setup->is_sending) {
		rc = iw_setup_send(conn);
		if (rc > 0)
			rc = iw_conn_watch(conn, EPOLLIN) < 0 ? -1 : 1;
	}
	if (rc < 0)
		iw_setup_failed(conn, ep);
	else if (rc)
		go_on(conn, ep);
}

void iw_accepted_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now)
{
	const struct iw_setup *setup = conn->setup;
	bool is_waiting = setup->is_sending || setup->passive.request.is_peer_to_peer;

	if (setup->passive.has_failed ||
	    (is_waiting && now >= conn->give_up_ns)) { /* CR-ACCEPT-30 */
		iw_setup_failed(conn, ep);
		return;
	}
	iw_conn_set_deadline(conn, conn->give_up_ns);
	/* the reply is sent, or the kernel lacked memory for the first FPDU */
	if (!setup->is_sending)
		go_on(conn, ep);
}
