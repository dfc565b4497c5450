// SPDX-License-Identifier: BSD-2-Clause
/* Service points: PSPs and RSPs listen on a connection qualifier and raise connection requests. */
#ifndef CORE_SP_H
#define CORE_SP_H

#include "core/ep/ep.h"
#include "core/event/evd.h"

struct transport_request;

struct core_sp {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	struct core_evd *evd;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_FLAGS flags; /* PSP */
	bool is_rsp;
	DAT_EP_HANDLE ep_handle; /* RSP: the reserved endpoint, or DAT_HANDLE_NULL */
	struct core_ref ep;	 /* RSP: the same */

	/* guarded by the cell's lock (rank 1) */
	void *listener; /* the transport's listener; NULL: it does not listen any more */
};

/* The arguments of a new service point. is_any: choose a free qualifier. */
struct core_sp_args {
	const struct core_arg *evd_name; /* the parameter that has the EVD */
	DAT_CONN_QUAL qual;
	bool is_any;
	DAT_PSP_FLAGS flags;
	bool is_rsp;
	DAT_EP_HANDLE ep_handle;
	struct core_ref ep;
};
/* Makes a service point that listens. */
DAT_RETURN core_sp_new(struct core_ia *ia, DAT_EVD_HANDLE evd_handle,
		       const struct core_sp_args *args, struct core_sp **sp_out);
/* Releases the endpoint of an RSP that has got no request; no cell: it has none. */
void core_sp_unreserve(struct core_ref ref);
/* Destroys a service point whose handle is dead. */
void core_sp_destroy(struct core_sp *sp);
/* The common part of dat_psp_free and dat_rsp_free. */
DAT_RETURN core_sp_free(const struct core_arg *name, DAT_HANDLE handle, DAT_HANDLE_TYPE type,
			DAT_RETURN_SUBTYPE subtype);
/* Locks the service point of the instance that listens on that qualifier. NULL: there is none. */
struct core_sp *core_sp_lock_by_qual(struct core_ia *ia, DAT_CONN_QUAL qual);
/* Makes a CR for the request and queues its event. Returns false, without effect, if it cannot. */
bool core_sp_take_request_locked(struct core_sp *sp, const struct transport_request *request);

static inline DAT_HANDLE_TYPE core_sp_type(const struct core_sp *sp)
{
	return sp->is_rsp ? DAT_HANDLE_TYPE_RSP : DAT_HANDLE_TYPE_PSP;
}

/*
 * A connection request arrived for the service point. Returns 0 if the core has made a CR and
 * queued its event; the core then owns the transport's request object until it calls accept or
 * reject. Returns -ECONNREFUSED if the service point does not listen any more, or if the CR, its
 * endpoint or its event cannot be made. The transport then refuses the request, and the peer gets
 * NON_PEER_REJECTED. No lock held.
 */
int core_sp_request(struct core_ref sp, const struct transport_request *request);

#endif
