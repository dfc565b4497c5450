// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which engine carries an endpoint's connection: shared memory (shm/) or TCP (iwarp/). The setting
 * `transport` and the address decide when it connects; the request decides when it accepts. These
 * are the slots of the transport table for endpoints, service points and connections.
 */
#ifndef SOFT_PATH_H
#define SOFT_PATH_H

#include "core/transport.h"

int soft_ep_create(struct core_ep *ep);
void soft_ep_detach(struct core_ep *ep);
void soft_ep_destroy(struct core_ep *ep);

int soft_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener_out);
void soft_unlisten(struct core_ia *ia, void *listener);

int soft_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
		 DAT_TIMEOUT timeout_us, const struct transport_conn_param *param);
int soft_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void soft_reject(void *request, enum transport_reject why, const void *private_data, uint32_t size);
void soft_disconnect(struct core_ep *ep, bool is_graceful);
int soft_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out);

void soft_post_request(struct core_ep *ep, struct core_req *req);
void soft_post_recv(struct core_ep *ep);
void soft_progress_ep(struct core_ep *ep);
void soft_abort(struct core_ep *ep);

#endif
