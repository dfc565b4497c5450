// SPDX-License-Identifier: BSD-2-Clause
/* The connection request: made when a request arrives, gone when it is answered. */
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
	uint32_t peer_read_in;	 /* what the asking side serves */
	uint32_t peer_read_out;	 /* what it wants in flight */
	DAT_EP_HANDLE ep_handle; /* the endpoint that comes with it, or DAT_HANDLE_NULL */
	struct core_ref ep;
	void *transport; /* the transport's request object */
	uint8_t *private_data;
	DAT_COUNT private_data_size;
};

/*
 * Makes a CR without endpoint that nobody can see yet; private data is copied. NULL: no memory. To
 * be made before an endpoint is locked, because its own lock ranks below that.
 */
struct core_cr *core_cr_new(struct core_ia *ia, const struct transport_request *request);
/* Lets its handle live. False, and unchanged: the IA is closing, or has too many. */
bool core_cr_publish(struct core_cr *cr, DAT_EP_HANDLE ep_handle, struct core_ref ep);
/* Destroys a CR that was not published. */
void core_cr_discard(struct core_cr *cr);
/* Refuses and destroys the CR if it is still there; its endpoint is released (EP-STATE-82). */
void core_cr_abandon(DAT_CR_HANDLE handle);
/* Answers no and destroys the CR; its lock is held, and released. */
void core_cr_refuse_locked(struct core_cr *cr, enum transport_reject why);
/* Destroys a CR that was never shown to the consumer, or whose handle is dead. */
void core_cr_delete(struct core_cr *cr);

#endif
