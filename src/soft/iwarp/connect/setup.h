// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a connection needs until it is established, what both sides of a set-up do alike, and the
 * passive side. The active side is in request.c, the places of a qualifier in place.c, service
 * points in listen.c.
 */
#ifndef IWARP_SETUP_H
#define IWARP_SETUP_H

#include <assert.h>
#include <errno.h>

#include "core/transport.h"
#include "shared/cm.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/wire/formats.h"

#define IW_NEVER UINT64_MAX
#define IW_NS_PER_MS UINT64_C(1000000)
/* RDMA Reads that are sent to a peer at a time if the set-up tells no number (MPA-44) */
#define IW_UNKNOWN_READS 1u

/* One of the TCP ports at which the listener of a qualifier may be (IWCM-05, IWCM-07). */
struct iw_place {
	/*
	 * An unanswered socket, while another place is tried; else -1. It is not in epoll. It stays
	 * open because its listener may wait for a consumer that takes long to accept.
	 */
	int fd;
	enum iw_place_state {
		IW_PLACE_UNTRIED,
		IW_PLACE_TRIED, /* it is the current one, or has a socket */
		IW_PLACE_OVER,	/* it does not serve the qualifier */
	} state;
	uint8_t revision;  /* of the request that it gets: 2, or 1 (MPA-45) */
	bool is_requested; /* the request was sent on `fd` */
};

struct iw_active {
	union core_sockaddr address; /* of the peer, without port */
	struct cm_request request;
	uint8_t *plain; /* header=off: the private data, which `request` may be too small for */
	uint16_t plain_size;
	uint32_t read_in; /* of the endpoint */
	uint32_t read_out;
	struct iw_place places[CM_PORTS];
	unsigned index;		/* of the current place, whose socket the connection has */
	bool is_out_of_ports;	/* the current place is tried again: no local port was free */
	uint64_t place_end_ns;	/* when the next place is tried, or this one again */
	uint64_t answer_end_ns; /* when a reply that has begun must be there */
	int error;		/* of the first socket: the service thread handles it */
};

struct iw_passive {
	struct iw_mpa request; /* without its private data */
	bool has_header;       /* the peer is an OpenDAT; then also: */
	uint8_t flags;
	uint32_t nonce;
	union core_sockaddr from; /* without port */
	uint32_t peer_reads;	  /* RDMA Reads that the peer serves at a time */
	bool has_failed;	  /* the service thread reports it */
};

struct iw_setup {
	uint8_t frame[IW_MPA_FRAME_MAX]; /* that is sent, or then received */
	uint16_t size;			 /* bytes of it */
	uint16_t sent;
	bool is_sending;
	union {
		struct iw_active active;
		struct iw_passive passive;
	};
};
static_assert(sizeof(struct iw_conn) + sizeof(struct iw_setup) <= 2048,
	      "a silent peer takes little memory (IWCM-39)");

int iw_setup_create(struct iw_conn *conn);
/* The set-up is over, or the connection is destroyed. */
void iw_setup_free(struct iw_conn *conn);
int iw_setup_socket_options(int fd, const struct core_settings *settings);
/*
 * The loopback interface loses nothing and has no queue, so that a congestion control that paces or
 * probes only delays. On an adapter with a loopback address this chooses Reno. It must come before
 * connect or listen: a socket that has begun to pace goes on.
 */
void iw_setup_congestion_control(int fd, const struct iw_engine *engine);
/* Our side's C bit, for a peer at that address (MPA-23). */
bool iw_setup_wants_crc(const struct iw_engine *engine, const union core_sockaddr *peer);

/* Begins to send the frame. */
void iw_setup_put(struct iw_setup *setup, const struct iw_mpa *mpa);
/* Sends what is left of the frame. 1: all is sent; 0: the socket is full; or -errno. */
int iw_setup_send(struct iw_conn *conn);
/*
 * Reads a frame and nothing behind it. 1: it is there, and its private data is in the frame buffer;
 * 0: more has to come; -ENODATA: the peer has ended its direction; -EPROTO, -EMSGSIZE: iw_mpa_get;
 * or another -errno of TCP.
 */
int iw_setup_receive(struct iw_conn *conn, bool is_reply, struct iw_mpa *mpa_out);
/* Is there anything behind the frame? 0: no; 1: bytes; -ENODATA: the end; or another -errno. */
int iw_setup_peek(const struct iw_conn *conn);

/* Releases the endpoint, then reports the failure. EP locked; service thread. */
void iw_setup_fail(struct iw_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);
/* Reports the connection. False: that has ended it again. EP locked; service thread. */
bool iw_setup_report(struct iw_conn *conn, struct core_ep *ep,
		     const struct transport_conn_param *peer);

/* IWCM-20: without our header a listener is found by its port alone. */
static inline bool iw_has_header(const struct iw_engine *engine)
{
	return engine->settings.header == CORE_HEADER_ON;
}

/* Did a call fail because descriptors or memory are short? */
static inline bool iw_setup_is_shortage(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOBUFS;
}

static inline uint32_t iw_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* An RDMA Read count of the endpoint as frames carry it (MPA-39, MPA-40). */
static inline uint16_t iw_depth(uint32_t count)
{
	return (uint16_t)(count < IW_MPA_DEPTH_MAX ? count + 1 : IW_MPA_DEPTH_MAX);
}

/* The same as the header carries it (IWCM-11). */
static inline uint8_t iw_count(uint32_t count)
{
	return (uint8_t)iw_min(count, UINT8_MAX);
}

void iw_set_port(union core_sockaddr *address, uint16_t port);
uint16_t iw_get_port(const union core_sockaddr *address);

/* ==== the passive side ==== */

/* transport_ops.accept, with the endpoint locked, and reject. */
int iw_accept(struct iw_conn *conn, struct core_ep *ep, const struct transport_conn_param *param);
void iw_reject(struct iw_conn *conn, enum transport_reject why, const void *private_data,
	       uint32_t size);

/* Service thread: a caller has sent something. No lock held. */
void iw_arriving_event(struct iw_conn *conn);
/* Service thread: the socket has events; a deadline has passed. EP locked. */
void iw_accepted_event(struct iw_conn *conn, struct core_ep *ep);
void iw_accepted_due(struct iw_conn *conn, struct core_ep *ep, uint64_t now_ns);

#endif
