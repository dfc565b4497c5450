// SPDX-License-Identifier: BSD-2-Clause
/* The exchange of set-up frames, what both sides do alike, and the passive side (setup.h). */
#include "soft/iwarp/connect/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/slab.h"
#include "shared/names.h"
#include "soft/address.h"
#include "soft/endpoint.h"
#include "soft/fds.h"
#include "soft/iwarp/connect/ep.h"
#include "soft/iwarp/connect/listen.h"
#include "soft/iwarp/transfer/access.h"
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

static void close_places(struct iw_setup *setup)
{
	for (unsigned i = 0; i < CM_PORTS; i++) {
		soft_fd_close(setup->active.places[i].fd);
		setup->active.places[i].fd = -1;
	}
}

void iw_setup_free(struct iw_conn *conn)
{
	if (!conn->setup)
		return;
	if (conn->is_active) {
		close_places(conn->setup);
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
	iw_conn_set_deadline(conn, 0);
	iw_conn_drop(conn, ep);
	core_ep_connect_failed(ep, number);
}

bool iw_setup_report(struct iw_conn *conn, struct core_ep *ep,
		     const struct transport_conn_param *peer)
{
	core_log(CORE_LOG_CONN,
		 "%s: over TCP: peer %s, CRC %s, RDMA Reads %u in, %u out, RDMA Writes %s",
		 iw_conn_name(conn).text, conn->is_own_peer ? "OpenDAT" : "other",
		 conn->has_crc ? "on" : "off", (unsigned int)conn->ird, (unsigned int)conn->ord,
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

/*
 * ==== the passive side ====
 *
 * A request arrives, the core decides, the reply goes out. A peer that asks for the peer-to-peer
 * model (RFC 6581) sends the first FPDU; until then the connection is ACCEPTED only. Without that
 * model it is established when TCP has taken the reply.
 */

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

/* Sends a reply with R and data: it fits into the empty socket, or the peer has gone. */
static void send_reject_with(struct iw_conn *conn, enum cm_reason reason, const void *data,
			     uint32_t size)
{
	uint8_t bytes[CM_REJECT_MAX];
	struct iw_mpa reply;

	begin_reply(conn, &reply);
	reply.is_rejected = true;
	reply.private_data = data;
	reply.private_size = (uint16_t)size;
	if (conn->setup->passive.has_header) {
		reply.private_size = (uint16_t)cm_put_reject(reason, data, size, bytes);
		reply.private_data = bytes;
	}
	iw_setup_put(conn->setup, &reply);
	(void)iw_setup_send(conn);
}

static void send_reject(struct iw_conn *conn, enum cm_reason reason)
{
	send_reject_with(conn, reason, NULL, 0);
}

void iw_reject(struct iw_conn *conn, enum transport_reject why, const void *private_data,
	       uint32_t size)
{
	iw_listener_remove_offered(conn);
	send_reject_with(conn,
			 why == TRANSPORT_REJECT_CONSUMER ? CM_REASON_CONSUMER : CM_REASON_PROVIDER,
			 private_data, size);
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
	conn->takes = param->takes & IW_AGREED;
	conn->peer_takes = conn->is_own_peer ? (uint8_t)cm_takes_of(passive->flags) : 0;
}

static void put_reply(struct iw_conn *conn, struct iw_mpa *reply,
		      const struct transport_conn_param *param)
{
	uint8_t bytes[CM_MAX];
	struct cm_accept accept = {
		.read_in = iw_count(param->read_in),
		.size = (uint8_t)param->private_data_size,
		.flags = conn->is_own_peer ? CM_COUNTS | cm_flags_of(conn->takes) : 0,
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
	const struct transport_conn_param peer = {.read_in = conn->setup->passive.peer_reads,
						  .takes = conn->peer_takes |
							   TRANSPORT_TAKES_INVALIDATE};

	return iw_setup_report(conn, ep, &peer);
}

/* The stream has ended or broken before it is established, or it took too long. */
static void fail(struct iw_conn *conn, struct core_ep *ep)
{
	if (iw_conn_state(conn) != IW_ACCEPTED)
		return;
	/* an end in order would make the peer try again (MPA-46): a second request (IWCM-26) */
	if (conn->setup->is_sending)
		conn->is_lost = true;
	iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

/* The reply is sent. Without the peer-to-peer model that is the result, whatever has come since;
 * else the first valid FPDU is (MPA-37, MPA-38). */
static void go_on(struct iw_conn *conn, struct core_ep *ep)
{
	enum iw_accepted found = IW_ACCEPTED_FPDU;

	if (conn->setup->passive.request.is_peer_to_peer)
		found = iw_pass_accepted(conn, ep);
	if (found == IW_ACCEPTED_FAILED)
		fail(conn, ep);
	else if (found == IW_ACCEPTED_FPDU && report(conn, ep))
		(void)iw_conn_run(conn, ep, 0);
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
		fail(conn, ep);
	else if (rc)
		go_on(conn, ep);
}

void iw_accepted_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now)
{
	const struct iw_setup *setup = conn->setup;
	bool is_waiting = setup->is_sending || setup->passive.request.is_peer_to_peer;

	if (setup->passive.has_failed ||
	    (is_waiting && now >= conn->give_up_ns)) { /* CR-ACCEPT-30 */
		fail(conn, ep);
		return;
	}
	iw_conn_set_deadline(conn, conn->give_up_ns);
	/* the reply is sent, or the kernel lacked memory for the first FPDU */
	if (!setup->is_sending)
		go_on(conn, ep);
}
