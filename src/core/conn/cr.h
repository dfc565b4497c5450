// SPDX-License-Identifier: BSD-2-Clause
/* The connection request (CR). It exists from the arrival of the request until its answer. */
#ifndef CORE_CR_H
#define CORE_CR_H

#include "core/base/transport_ops.h"
#include "core/ep/ep.h"

struct core_cr {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	DAT_CONN_QUAL conn_qual;
	union core_sockaddr remote_address;
	DAT_PORT_QUAL remote_port;
	uint32_t peer_read_in;	 /* concurrent RDMA Reads that the requester serves */
	uint32_t peer_read_out;	 /* concurrent RDMA Reads that it may issue */
	DAT_EP_HANDLE ep_handle; /* the endpoint of this CR, or DAT_HANDLE_NULL */
	struct core_ref ep;
	void *transport; /* the transport's request object */
	uint8_t *private_data;
	DAT_COUNT private_data_size;
};

/*
 * Makes a CR without endpoint, and copies the private data. The handle is not valid yet. Returns
 * NULL if there is no memory. No endpoint may be locked, because the CR's lock has the smaller
 * rank.
 */
struct core_cr *core_cr_new(struct core_ia *ia, const struct transport_request *request);
/* Makes the handle valid. False, without effect: the IA is closing or has too many CRs. */
bool core_cr_publish(struct core_cr *cr, DAT_EP_HANDLE ep_handle, struct core_ref ep);
/* Destroys a CR that was not published. */
void core_cr_discard(struct core_cr *cr);
/* Refuses and destroys the CR, if it still exists, and releases its endpoint (EP-STATE-82). */
void core_cr_abandon(DAT_CR_HANDLE handle);
/* Refuses and destroys the CR. Its lock is held at entry and not at return. */
void core_cr_refuse_locked(struct core_cr *cr, enum transport_reject why);
/* dat_cr_reject of a generation in which the consumer may send private data. They may be those of
 * the CR. */
DAT_RETURN core_cr_reject_with(DAT_CR_HANDLE cr_handle, DAT_COUNT size, const void *private_data);
/* Destroys a published CR whose handle is dead or was never given to the consumer. */
void core_cr_delete(struct core_cr *cr);

#endif
