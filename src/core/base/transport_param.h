// SPDX-License-Identifier: BSD-2-Clause
/* What the core and a transport hand each other as parameters. */
#ifndef CORE_TRANSPORT_PARAM_H
#define CORE_TRANSPORT_PARAM_H

#include <stdint.h>

#include <dat/udat.h>

#include "core/base/netaddr.h"

struct core_lmr;

/* What the two ends tell each other in the set-up, beside the private data. */
struct transport_conn_param {
	uint32_t read_in;  /* RDMA Reads that this side serves at once */
	uint32_t read_out; /* RDMA Reads that this side wants in flight at once */
	const void *private_data;
	uint32_t private_data_size;
};

/* An arriving connection request, as the transport tells it to the core. */
struct transport_request {
	union core_sockaddr remote_address; /* of the asking adapter */
	DAT_PORT_QUAL remote_port;	    /* local_port of the asking endpoint */
	DAT_CONN_QUAL conn_qual;	    /* the full qualifier that was asked for */
	struct transport_conn_param param;  /* private data: valid during the call only */
	void *transport;		    /* the transport's object, for accept and reject */
};

/* What a bind asks of the transport. */
struct transport_window {
	struct core_lmr *lmr;
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_MEM_PRIV_FLAGS priv;    /* remote bits only */
	DAT_COMPLETION_FLAGS flags; /* of the bind; a transport obeys BARRIER_FENCE */
};

enum transport_reject {
	TRANSPORT_REJECT_CONSUMER, /* dat_cr_reject: PEER_REJECTED at the other side */
	TRANSPORT_REJECT_PROVIDER, /* any other reason: NON_PEER_REJECTED there */
};

#endif
