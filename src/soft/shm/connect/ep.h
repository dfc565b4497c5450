// SPDX-License-Identifier: BSD-2-Clause
/* The endpoint slots of the transport table (soft/path.h), for a connection over shared memory. */
#ifndef SHM_EP_H
#define SHM_EP_H

#include <stdbool.h>

struct core_ep;
struct core_req;
struct transport_peer;

void shm_ep_detach(struct core_ep *ep);
void shm_ep_destroy(struct core_ep *ep);
void shm_ep_disconnect(struct core_ep *ep, bool is_graceful);
int shm_ep_peer(struct core_ep *ep, void *request, struct transport_peer *peer_out);
void shm_ep_post_request(struct core_ep *ep, struct core_req *req);
void shm_ep_post_recv(struct core_ep *ep);
void shm_ep_progress(struct core_ep *ep);
void shm_ep_abort(struct core_ep *ep);

#endif
