// SPDX-License-Identifier: BSD-2-Clause
/* The engine of a connection (path.h). */
#include "soft/path.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <dat/opendat.h>

#include "core/base/slab.h"
#include "soft/address.h"
#include "soft/claim.h"
#include "soft/endpoint.h"
#include "soft/iwarp/connect/setup.h"
#include "soft/iwarp/connect/ep.h"
#include "soft/iwarp/connect/listen.h"
#include "soft/iwarp/connect/request.h"
#include "soft/iwarp/engine/service.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/drive.h"
#include "soft/soft.h"

/* A service point: what listens for it in either engine, or NULL. */
struct soft_listener {
	struct shm_listener *shm;
	struct iw_listener *tcp;
	int claim_fd; /* tells other users of peers=user; -errno: it does not */
};

static enum core_transport transport_of(const struct core_ia *ia)
{
	return (enum core_transport)ia->settings.transport;
}

/* --- endpoints --- */

int soft_ep_create(struct core_ep *ep)
{
	ep->transport = calloc(1, sizeof(struct soft_ep));
	return ep->transport ? 0 : -ENOMEM;
}

void soft_ep_detach(struct core_ep *ep)
{
	struct soft_ep *mine = ep->transport;

	shm_ep_detach(ep);
	if (mine->tcp)
		iw_conn_drop(mine->tcp, ep);
}

void soft_ep_destroy(struct core_ep *ep)
{
	shm_ep_destroy(ep);
	free(ep->transport);
	ep->transport = NULL;
}

/* --- service points --- */

static int listen_tcp(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual,
		      struct soft_listener *listener)
{
	struct iw_engine *engine = soft_adapter_of(ia)->tcp;
	int rc = iw_engine_start(engine);

	return rc < 0 ? rc : iw_listen(engine, sp, qual, &listener->tcp);
}

/*
 * One listener serves both paths (IWCM-03). A qualifier that TCP has chosen may be in use in the
 * other one: -EBUSY. Without a folder for names all peers come over TCP.
 */
static int listen_both(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual,
		       struct soft_listener *listener)
{
	bool is_ours = !*qual;
	int rc = listen_tcp(ia, sp, qual, listener);

	if (rc < 0)
		return rc;
	rc = shm_listen(soft_adapter_of(ia)->shm, sp, qual, &listener->shm);
	if (rc == -EACCES)
		return 0;
	if (rc < 0 && is_ours)
		*qual = 0;
	return rc == -EADDRINUSE && is_ours ? -EBUSY : rc;
}

int soft_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener_out)
{
	struct soft_listener *listener = core_slab_alloc(sizeof(*listener));
	int rc;

	if (!listener)
		return -ENOMEM;
	listener->claim_fd = -ENOENT;
	switch (transport_of(ia)) {
	case CORE_TRANSPORT_SHM:
		rc = shm_listen(soft_adapter_of(ia)->shm, sp, qual, &listener->shm);
		if (!rc && ia->settings.peers == CORE_PEERS_USER)
			listener->claim_fd = soft_claim_take(SOFT_CLAIM_USER, &ia->address, *qual);
		break;
	case CORE_TRANSPORT_TCP:
		rc = listen_tcp(ia, sp, qual, listener);
		break;
	default:
		rc = listen_both(ia, sp, qual, listener);
	}
	if (rc < 0) {
		soft_unlisten(ia, listener);
		return rc;
	}
	*listener_out = listener;
	return 0;
}

void soft_unlisten(struct core_ia *ia, void *object)
{
	struct soft_listener *listener = object;

	if (listener->shm)
		shm_unlisten(soft_adapter_of(ia)->shm, listener->shm);
	if (listener->tcp)
		iw_unlisten(soft_adapter_of(ia)->tcp, listener->tcp);
	soft_claim_give(listener->claim_fd);
	core_slab_free(listener, sizeof(*listener));
}

/* --- connections --- */

/* A link-local address without a scope is one of the adapter's link (IWCM-56). */
static union core_sockaddr with_scope(const struct core_ia *ia, const union core_sockaddr *address)
{
	union core_sockaddr copy;

	memset(&copy, 0, sizeof(copy));
	if (address->sa.sa_family != AF_INET6) {
		copy.in = address->in;
		return copy;
	}
	copy.in6 = address->in6;
	if (IN6_IS_ADDR_LINKLOCAL(&copy.in6.sin6_addr) && !copy.in6.sin6_scope_id &&
	    ia->address.sa.sa_family == AF_INET6)
		copy.in6.sin6_scope_id = ia->address.in6.sin6_scope_id;
	return copy;
}

static int connect_tcp(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		       DAT_TIMEOUT timeout_us, const struct transport_conn_param *param)
{
	struct iw_engine *engine = soft_adapter_of(ep->ia)->tcp;
	int rc = soft_address_find(address);

	if (rc < 0 && rc != -EHOSTUNREACH)
		return rc;
	rc = iw_engine_start(engine);
	return rc < 0 ? rc : iw_connect(engine, ep, address, qual, timeout_us, param);
}

int soft_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		 DAT_TIMEOUT timeout_us, const struct transport_conn_param *param)
{
	const union core_sockaddr scoped = with_scope(ep->ia, address);
	int rc = -EHOSTUNREACH;

	/* IWCM-01 IWCM-60: processes of our user that have a name here */
	if (transport_of(ep->ia) != CORE_TRANSPORT_TCP)
		rc = shm_connect(soft_adapter_of(ep->ia)->shm, ep, &scoped, qual, timeout_us, param,
				 transport_of(ep->ia) == CORE_TRANSPORT_SHM ? NULL : connect_tcp);
	if (rc == -EHOSTUNREACH)
		rc = connect_tcp(ep, &scoped, qual, timeout_us, param);
	return rc;
}

/* The connection of a request over TCP, or NULL. */
static struct iw_conn *tcp_request(void *request)
{
	uintptr_t address = (uintptr_t)request;

	return address & 1 ? (struct iw_conn *)(address & ~(uintptr_t)1) : NULL;
}

int soft_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	struct iw_conn *tcp = tcp_request(request);

	return tcp ? iw_accept(tcp, ep, param) : shm_accept(request, ep, param);
}

void soft_reject(void *request, enum transport_reject why, const void *private_data, uint32_t size)
{
	struct iw_conn *tcp = tcp_request(request);

	if (tcp)
		iw_reject(tcp, why, private_data, size);
	else
		shm_reject(request, why, private_data, size);
}

void soft_disconnect(struct core_ep *ep, bool is_graceful)
{
	struct soft_ep *mine = ep->transport;

	if (mine->tcp)
		iw_ep_disconnect(mine->tcp, ep, is_graceful);
	else
		shm_ep_disconnect(ep, is_graceful);
}

/* IWCM-04: a peer over TCP may be on another host; nothing else is known of it. */
int soft_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out)
{
	const struct soft_ep *mine = ep ? ep->transport : NULL;

	if (ep ? mine->tcp != NULL : tcp_request(request) != NULL)
		*peer_out = (struct transport_peer){
			.flags = DAT_OPENDAT_PEER_TCP, .uid = UINT32_MAX, .gid = UINT32_MAX};
	else
		return shm_ep_peer(ep, request, peer_out);
	return 0;
}

/* --- data --- */

void soft_post_request(struct core_ep *ep, struct core_req *req)
{
	struct soft_ep *mine = ep->transport;

	if (mine->tcp)
		iw_ep_post_request(mine->tcp, ep, req);
	else
		shm_ep_post_request(ep, req);
}

void soft_post_recv(struct core_ep *ep)
{
	struct soft_ep *mine = ep->transport;

	if (mine->tcp)
		iw_ep_post_recv(mine->tcp, ep);
	else
		shm_ep_post_recv(ep);
}

void soft_progress_ep(struct core_ep *ep)
{
	struct soft_ep *mine = ep->transport;

	if (mine->tcp)
		iw_ep_progress(mine->tcp, ep);
	else
		shm_ep_progress(ep);
}

void soft_abort(struct core_ep *ep)
{
	struct soft_ep *mine = ep->transport;

	if (mine->tcp)
		iw_ep_abort(mine->tcp);
	else
		shm_ep_abort(ep);
}
