// SPDX-License-Identifier: BSD-2-Clause
/*
 * The active side of a set-up: the request, and what the reply means. The consumer's call only
 * starts to connect; the service thread does the rest, and reports the result.
 */
#include "soft/iwarp/connect/request.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "soft/iwarp/connect/ep.h"
#include "soft/iwarp/connect/place.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/transfer/pass.h"

#define OFFERED_RTR (IW_RTR_WRITE | IW_RTR_READ) /* MPA-28 */
#define ERROR_DEPTH IW_ERROR(2, 0, 0x06)	 /* IRD too small for the peer's ORD */
#define ERROR_RTR IW_ERROR(2, 0, 0x07)		 /* no form of RTR in common */

/* --- the request --- */

/* IWCM-56: the interface of the adapter; 0: unknown. */
static uint32_t own_scope(const struct core_ia *ia)
{
	uint32_t scope = ia->address.in6.sin6_scope_id;

	return scope ? scope : if_nametoindex(ia->device);
}

/* Copies an address that this adapter can reach. -EAFNOSUPPORT, -EADDRNOTAVAIL. */
static int copy_address(const struct core_ia *ia, const union core_sockaddr *address,
			union core_sockaddr *copy)
{
	uint32_t scope = 0;

	if (address->sa.sa_family != ia->address.sa.sa_family)
		return -EAFNOSUPPORT;
	memset(copy, 0, sizeof(*copy));
	copy->sa.sa_family = address->sa.sa_family;
	if (address->sa.sa_family == AF_INET) {
		copy->in.sin_addr = address->in.sin_addr;
		return core_address_is_unusable(address) ? -EADDRNOTAVAIL : 0;
	}
	if (IN6_IS_ADDR_V4MAPPED(&address->in6.sin6_addr))
		return -EAFNOSUPPORT;
	copy->in6.sin6_addr = address->in6.sin6_addr;
	copy->in6.sin6_scope_id = address->in6.sin6_scope_id;
	if (IN6_IS_ADDR_LINKLOCAL(&address->in6.sin6_addr)) {
		scope = own_scope(ia);
		if (!copy->in6.sin6_scope_id)
			copy->in6.sin6_scope_id = scope;
		else if (scope && scope != copy->in6.sin6_scope_id)
			return -EADDRNOTAVAIL;
	}
	return core_address_is_unusable(address) ? -EADDRNOTAVAIL : 0;
}

/* Copies the private data: behind our header, or without one. -ENOMEM. */
static int fill_private(struct iw_active *active, bool has_header,
			const struct transport_conn_param *param)
{
	struct cm_request *request = &active->request;
	uint32_t size = param->private_data_size;
	uint8_t *to = request->data;

	if (!size)
		return 0;
	if (has_header) {
		request->size = request->data_size = (uint8_t)size;
	} else {
		to = active->plain = malloc(size);
		active->plain_size = (uint16_t)size;
	}
	if (!to)
		return -ENOMEM;
	memcpy(to, param->private_data, size);
	return 0;
}

static void fill(struct iw_active *active, DAT_CONN_QUAL qual,
		 const struct transport_conn_param *param)
{
	struct cm_request *request = &active->request;

	active->read_in = param->read_in;
	active->read_out = param->read_out;
	request->flags = CM_COUNTS | cm_flags_of(param->takes & IW_AGREED);
	request->qual = qual;
	request->read_in = iw_count(param->read_in);
	request->read_out = iw_count(param->read_out);
	if (getrandom(&request->nonce, sizeof(request->nonce), GRND_NONBLOCK) < 0)
		request->nonce = (uint32_t)core_now_ns();
}

/* Is the qualifier the TCP port itself? */
static bool is_port(DAT_CONN_QUAL qual)
{
	if (qual && qual == cm_port(qual, 0))
		return true;
	core_log(CORE_LOG_ERROR,
		 "connect: header=off: remote_conn_qual %" PRIu64 " is not a TCP port", qual);
	return false;
}

int iw_connect(struct iw_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
	       DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us, const struct transport_conn_param *param)
{
	struct iw_active *active;
	struct iw_conn *conn;
	int rc;

	if (param->private_data_size > (iw_has_header(engine) ? CM_PRIVATE_MAX : IW_PRIVATE_MAX))
		return -EINVAL;
	if (!iw_has_header(engine) && !is_port(qual))
		return -EDOM;
	rc = iw_conn_create(engine, -1, &conn);
	if (rc < 0)
		return rc;
	conn->is_active = true;
	rc = iw_setup_create(conn);
	if (rc < 0)
		goto err;
	active = &conn->setup->active;
	rc = copy_address(ep->ia, address, &active->address);
	if (rc < 0)
		goto err;
	conn->has_crc = iw_setup_wants_crc(engine, &active->address);
	fill(active, qual, param);
	conn->takes = param->takes & IW_AGREED;
	rc = fill_private(active, iw_has_header(engine), param);
	if (rc < 0)
		goto err;
	if (timeout_us != DAT_TIMEOUT_INFINITE)
		conn->give_up_ns = core_now_ns() + (uint64_t)timeout_us * 1000;
	/* the service thread waits for the endpoint's lock, which the caller holds */
	iw_conn_attach(conn, ep);
	rc = iw_place_first(conn, ep);
	if (rc < 0) {
		iw_conn_detach(conn, ep);
		goto err;
	}
	if (!active->request.port)
		active->request.port = 1;
	ep->local_port = active->request.port;
	if (active->error)
		iw_conn_serve_later(conn);
	return 0;
err:
	iw_conn_put(conn);
	return rc;
}

static void put_request(struct iw_conn *conn)
{
	struct iw_setup *setup = conn->setup;
	const struct iw_active *active = &setup->active;
	uint8_t bytes[CM_MAX];
	struct iw_mpa mpa = {
		.has_crc = conn->has_crc,
		.revision = iw_place_of(setup)->revision,
		.private_data = active->plain,
		.private_size = active->plain_size,
	};

	if (iw_has_header(conn->engine)) {
		mpa.private_data = bytes;
		mpa.private_size = (uint16_t)cm_put_request(&active->request, bytes);
	}
	if (mpa.revision == 2) {
		mpa.is_enhanced = true;
		mpa.is_peer_to_peer = true;
		mpa.rtr = OFFERED_RTR;
		mpa.ird = iw_depth(active->read_in);
		mpa.ord = iw_depth(active->read_out);
	}
	iw_setup_put(setup, &mpa);
}

/* --- the reply --- */

static void refuse_reply(struct iw_conn *conn, struct core_ep *ep, const char *why)
{
	core_log(CORE_LOG_CONN, "connect: reply not usable: %s", why);
	iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void rejected(struct iw_conn *conn, struct core_ep *ep, const struct iw_mpa *mpa)
{
	const void *data = NULL;
	uint32_t size;

	switch (cm_get_reject(mpa->private_data, mpa->private_size)) {
	case CM_REASON_CONSUMER:
		size = cm_reject_data(mpa->private_data, mpa->private_size, &data);
		core_ep_keep_rejection(ep, data, size);
		iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		break;
	case CM_REASON_NOT_HERE:
		iw_place_failed(conn, ep, 0);
		break;
	case 0:
		/*
		 * IWCM-23; but what another library serves at a derived port is not the qualifier
		 */
		if (conn->setup->active.index) {
			iw_place_failed(conn, ep, 0);
			break;
		}
		core_ep_keep_rejection(ep, mpa->private_data, mpa->private_size);
		iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		break;
	default:
		iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	}
}

/* Sends a Terminate; the service thread closes the connection when it is gone. */
static void terminate(struct iw_conn *conn, struct core_ep *ep, iw_error error)
{
	core_log(CORE_LOG_CONN, "connect: reply not usable: Terminate: %s (0x%04x)",
		 iw_error_text(error), (unsigned int)error);
	if (!iw_stream_begin(conn)) {
		/* a connection that is not lost ends in order */
		iw_conn_set_state(conn, IW_CLOSING);
		iw_stream_send_error(conn, error);
	}
	iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

/* Agrees on the depths of RDMA Reads with a reply of RFC 6581. */
static iw_error agree_enhanced(struct iw_conn *conn, const struct iw_mpa *mpa)
{
	const struct iw_active *active = &conn->setup->active;

	if (!mpa->is_peer_to_peer || !(mpa->rtr & OFFERED_RTR))
		return ERROR_RTR;
	conn->ird = iw_depth(active->read_in);
	if (mpa->ord == IW_MPA_DEPTH_UNKNOWN)
		conn->ird = IW_READS;
	else if (mpa->ord > conn->ird && mpa->ord > IW_READS)
		return ERROR_DEPTH;
	else if (mpa->ord > conn->ird)
		conn->ird = mpa->ord; /* MPA-43 */
	conn->ord = iw_depth(active->read_out);
	conn->ord =
		iw_min(conn->ord, mpa->ird == IW_MPA_DEPTH_UNKNOWN ? IW_UNKNOWN_READS : mpa->ird);
	return IW_NO_ERROR;
}

static iw_error agree(struct iw_conn *conn, const struct iw_mpa *mpa)
{
	conn->has_crc |= mpa->has_crc;
	if (mpa->is_enhanced)
		return agree_enhanced(conn, mpa);
	/* MPA-44 */
	conn->ird = IW_READS;
	conn->ord = iw_min(iw_depth(conn->setup->active.read_out), IW_UNKNOWN_READS);
	return IW_NO_ERROR;
}

/* What the acceptor's private data say. False: they are not usable. */
static bool read_private(struct iw_conn *conn, const struct iw_mpa *mpa, struct cm_accept *accept,
			 struct transport_conn_param *peer)
{
	int rc = cm_get_accept(mpa->private_data, mpa->private_size, accept);

	if (rc < 0)
		return false;
	conn->is_own_peer = rc && (accept->flags & CM_COUNTS);
	conn->peer_takes = conn->is_own_peer ? (uint8_t)cm_takes_of(accept->flags) : 0;
	peer->takes = conn->peer_takes | TRANSPORT_TAKES_INVALIDATE; /* D2-TCP-04 */
	if (rc) {
		peer->read_in = accept->read_in;
		peer->private_data = accept->data;
		peer->private_data_size = accept->size;
	} else {
		accept->wants_confirmation = false;
		peer->read_in = mpa->is_enhanced && mpa->ird != IW_MPA_DEPTH_UNKNOWN
					? mpa->ird
					: IW_UNKNOWN_READS;
		peer->private_data = mpa->private_data;
		peer->private_data_size = mpa->private_size;
	}
	return true;
}

static void established(struct iw_conn *conn, struct core_ep *ep, const struct iw_mpa *mpa,
			const struct cm_accept *accept, const struct transport_conn_param *peer)
{
	enum iw_rtr form =
		mpa->is_enhanced ? iw_mpa_choose_rtr(mpa->rtr & OFFERED_RTR) : IW_RTR_NONE;

	conn->rtr = (uint8_t)form;
	conn->read_max = iw_min(conn->setup->active.read_out, peer->read_in);
	if (iw_stream_begin(conn) < 0) {
		refuse_reply(conn, ep, "no memory");
		return;
	}
	if (!iw_setup_report(conn, ep, peer))
		return;
	if (form) {
		iw_stream_send_rtr(conn, form);
		if (!conn->is_own_peer)
			iw_stream_begin_repeats(conn);
	}
	if (accept->wants_confirmation) /* IWCM-15 */
		iw_stream_send_rtr(conn, IW_RTR_SEND);
	(void)iw_conn_run(conn, ep, 0);
}

static void accepted(struct iw_conn *conn, struct core_ep *ep, const struct iw_mpa *mpa)
{
	struct transport_conn_param peer = {0};
	struct cm_accept accept;
	iw_error error = agree(conn, mpa);

	if (error != IW_NO_ERROR) {
		terminate(conn, ep, error);
		return;
	}
	if (!read_private(conn, mpa, &accept, &peer))
		refuse_reply(conn, ep, "private data");
	else
		established(conn, ep, mpa, &accept, &peer);
}

/* Does another library answer at a port that is not the number of the qualifier? */
static bool is_elsewhere(const struct iw_conn *conn, const struct iw_mpa *mpa)
{
	struct cm_accept accept;

	return conn->setup->active.index &&
	       !cm_get_accept(mpa->private_data, mpa->private_size, &accept);
}

static void answered(struct iw_conn *conn, struct core_ep *ep, const struct iw_mpa *mpa)
{
	uint8_t revision = iw_place_of(conn->setup)->revision;

	if (mpa->has_markers)
		refuse_reply(conn, ep, "markers"); /* MPA-22 */
	else if (mpa->is_rejected)
		rejected(conn, ep, mpa);
	else if (iw_setup_peek(conn) > 0)
		refuse_reply(conn, ep, "bytes behind it"); /* MPA-19 */
	else if (revision == 2 && !mpa->is_enhanced)
		iw_place_again(conn, ep); /* MPA-45 */
	else if (mpa->revision != revision)
		refuse_reply(conn, ep, "revision");
	else if (is_elsewhere(conn, mpa))
		iw_place_failed(conn, ep, 0);
	else
		accepted(conn, ep, mpa);
}

/* --- events --- */

/* Is that the beginning of a reply, if not of a valid one? */
static bool is_reply(const struct iw_setup *setup)
{
	static const char key[] = "MPA ID Rep Frame";
	size_t size = setup->size < sizeof(key) - 1 ? setup->size : sizeof(key) - 1;

	return !memcmp(setup->frame, key, size);
}

/* There will be no reply. */
static void unanswered(struct iw_conn *conn, struct core_ep *ep, int error)
{
	const struct iw_setup *setup = conn->setup;

	if (error == -ENODATA && !setup->size && iw_place_of(conn->setup)->revision == 2)
		iw_place_again(conn, ep); /* MPA-46 */
	else if ((error == -ENODATA && !setup->size) || (error == -EPROTO && !is_reply(setup)))
		iw_place_failed(conn, ep, 0); /* an alien server */
	else if (error == -ENODATA || error == -EPROTO || error == -EMSGSIZE)
		refuse_reply(conn, ep, "invalid"); /* MPA-20 */
	else
		iw_place_failed(conn, ep, error);
}

static void reply_event(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_setup *setup = conn->setup;
	uint16_t before = setup->size;
	struct iw_mpa mpa;
	int rc = iw_setup_receive(conn, true, &mpa);

	if (rc < 0) {
		unanswered(conn, ep, rc);
	} else if (rc) {
		answered(conn, ep, &mpa);
	} else if (!before && setup->size) { /* IWCM-25 */
		setup->active.answer_end_ns =
			core_now_ns() + conn->engine->settings.setup_timeout_ms * IW_NS_PER_MS;
		iw_conn_lower_deadline(conn, setup->active.answer_end_ns);
	}
}

void iw_request_event(struct iw_conn *conn, struct core_ep *ep)
{
	struct iw_setup *setup = conn->setup;
	int rc;

	if (conn->fd < 0)
		return;
	if (iw_conn_state(conn) == IW_CONNECTING) {
		rc = iw_place_connected(conn);
		if (rc < 0)
			iw_place_failed(conn, ep, rc);
		if (rc <= 0)
			return;
		put_request(conn);
		iw_conn_set_state(conn, IW_REQUESTED);
	}
	if (setup->is_sending) {
		rc = iw_setup_send(conn);
		if (rc > 0)
			rc = iw_conn_watch(conn, EPOLLIN);
		if (rc < 0)
			iw_place_failed(conn, ep, rc);
		return;
	}
	reply_event(conn, ep);
}

void iw_request_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now)
{
	struct iw_active *active = &conn->setup->active;
	int error = active->error;

	if (error) { /* it was known before the time was over */
		active->error = 0;
		iw_place_failed(conn, ep, error);
	} else if (now >= conn->give_up_ns) {
		iw_setup_fail(conn, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	} else if (now >= active->answer_end_ns) {
		refuse_reply(conn, ep, "late");
	} else {
		iw_place_due(conn, ep, now);
	}
}
