// SPDX-License-Identifier: BSD-2-Clause
/* Parameter structures of the calls between the core and a transport. */
#ifndef CORE_TRANSPORT_PARAM_H
#define CORE_TRANSPORT_PARAM_H

#include <stdint.h>

#include <dat/udat.h>

#include "core/base/netaddr.h"

struct core_lmr;

/* Exchanged by the two sides during connection set-up. */
#define CORE_PRIVATE_MAX 512u /* no peer of any transport sends more private data */

/* What a side takes on a connection beside Sends and RDMA. A transport tells the peer, and reports
 * what the peer takes and it carries itself. The values go over the wire (shared/cm.h). */
enum transport_takes {
	TRANSPORT_TAKES_IMMEDIATE = 1, /* Writes with immediate data */
	TRANSPORT_TAKES_ATOMICS = 2,
	TRANSPORT_TAKES_INVALIDATE = 4, /* Sends that invalidate a key of this side */
};

struct transport_conn_param {
	uint32_t read_in;  /* concurrent RDMA Reads that this side can serve */
	uint32_t read_out; /* concurrent RDMA Reads that this side wants to issue */
	const void *private_data;
	uint32_t private_data_size;
	uint32_t takes; /* enum transport_takes */
};

/* An incoming connection request, as the transport reports it to the core. */
struct transport_request {
	union core_sockaddr remote_address; /* of the requesting adapter */
	DAT_PORT_QUAL remote_port;	    /* local_port of the requesting endpoint */
	DAT_CONN_QUAL conn_qual;	    /* the full qualifier that was requested */
	struct transport_conn_param param;  /* its private data is valid during the call only */
	void *transport;		    /* the transport's object, for accept and reject */
};

/* The window that a bind requests of the transport. */
struct transport_window {
	struct core_lmr *lmr;
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv;    /* remote bits only */
	DAT_COMPLETION_FLAGS flags; /* of the bind; a transport honors BARRIER_FENCE */
};

/* The process at the other end, as in DAT_OPENDAT_PEER. */
struct transport_peer {
	uint32_t flags;
	uint32_t uid;
	uint32_t gid;
	uint32_t pid;
};

enum transport_reject {
	TRANSPORT_REJECT_CONSUMER, /* dat_cr_reject: PEER_REJECTED at the other side */
	TRANSPORT_REJECT_PROVIDER, /* any other reason: NON_PEER_REJECTED there */
};

#endif
