// SPDX-License-Identifier: BSD-2-Clause
/*
 * The structure of a connection to an endpoint on the same host: its socket, its shared segment,
 * its rings, and the progress of each stream of work. engine/engine.h describes the locks, state.h
 * has the accessors. The folders next to this file:
 *
 *   engine/    the engine of an instance, its service thread, and the threads that poll it
 *   connect/   service points, set-up, the end of a connection, its socket
 *   transfer/  requests, messages and the copies that they make
 */
#ifndef SHM_CONN_H
#define SHM_CONN_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/transport.h"
#include "soft/endpoint.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/transfer/grow.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/piece.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/wire.h"
#include "soft/stream.h"

struct shm_listener;
struct shm_process;
struct soft_view;

enum shm_state {
	SHM_CALLING,	 /* active: waits for room in the listener's backlog */
	SHM_REQUESTED,	 /* active: waits for the answer */
	SHM_ARRIVING,	 /* passive: waits for the request; owned by the service thread */
	SHM_OFFERED,	 /* passive: the core has it, as a connection request */
	SHM_ACCEPTED,	 /* passive: waits for READY */
	SHM_ESTABLISHED, /* data flow */
	SHM_CLOSING,	 /* revoked; waits until the peer has finished its copies */
	SHM_ENDED,	 /* the endpoint has released it */
};

/* What a poll has to check beside the next message: shm_conn.watch. */
enum shm_watch {
	SHM_WATCH_BLOCKED = 1,		  /* the message at the head waits for a Receive: skip it */
	SHM_WATCH_RESPONSES = 1 << 1,	  /* RDMA Reads are answered through the ring */
	SHM_WATCH_REQUEST_SPACE = 1 << 2, /* the ring was full, or pieces are lent to it */
	SHM_WATCH_RESPONSE_SPACE = 1 << 3,
	SHM_WATCH_UNREPORTED = 1 << 4, /* `reported` lags behind `done` */
};

/* The peer's process and its memory, as far as this side knows them. */
struct shm_remote {
	struct soft_view *view;	       /* the peer's keys */
	uint32_t pz;		       /* zone of the peer's endpoint */
	uint8_t token[SHM_TOKEN_SIZE]; /* of the peer's engine, as the peer claims */
	uint64_t token_address;
	struct shm_process *_Atomic process; /* with a reference, or NULL */
	struct ucred peer;		     /* when it called connect or listen */
	struct ucred sender;	  /* of REQUEST or ACCEPT, by the kernel; pid 0: unknown */
	pid_t pid;		  /* of `peer`; 0: unknown here */
	pid_t thread;		  /* the kernel copies by its number; 0: by `pid` */
	bool is_proven;		  /* it is of our user (connect/identity.h) */
	_Atomic bool is_trusted;  /* it is, and has direct access */
	bool has_cma;		  /* we may read and write the peer's memory by pid */
	bool has_pull;		  /* we offered to fetch the peer's large Sends */
	bool is_pulling;	  /* the peer offered to fetch our large Sends */
	bool cannot_pull;	  /* the kernel has refused to fetch one of its Sends */
	bool is_refusal_logged;	  /* of a copy by the kernel */
	uint64_t alive_ns;	  /* when the socket last showed that the peer lives */
	struct shm_map *maps;	  /* SHM_MAPS, or NULL: this connection never maps */
	struct shm_map *last_map; /* the one of them that was used last, or NULL */
};

/*
 * What every poll reads is in the first cache line. The next lines are what the fast path uses
 * beside it.
 */
struct shm_conn {
	alignas(SHM_LINE) struct shm_consumer request_in; /* the peer's requests */
	struct shm_side *theirs;
	/* what a poll compares with the peer's words, without the lock; relaxed, hints only */
	_Atomic uint32_t watch; /* enum shm_watch */
	_Atomic uint32_t acked; /* our messages and ring writes that the peer has carried out */
	_Atomic uint32_t seen_waits;
	_Atomic uint16_t idle_polls; /* checks in vain; a hint, and some may be lost */
	_Atomic bool has_more;	     /* a pass ended because its budget was used up */
	/* with the endpoint's lock: a poll returned an event and left work (transfer/fast.c) */
	bool has_declined;

	/* --- the second line --- */
	alignas(SHM_LINE) _Atomic bool has_ep; /* release after ep_ref is set */
	/* engine lock; also read without it, as hints */
	_Atomic bool is_active;
	_Atomic uint32_t active_at; /* its place in engine->active */
	struct core_ref ep_ref;
	struct shm_producer request_out;

	/* --- the third line --- */
	struct shm_side *mine;
	struct shm_engine *engine;
	uint64_t tx_next;      /* sequence of the first request not yet started completely */
	uint32_t sent;	       /* messages and ring writes handed out; see `acked` */
	uint32_t ring_writes;  /* ring writes among those in flight */
	uint32_t reads;	       /* RDMA Reads through the ring in flight */
	uint32_t done;	       /* the peer's messages and ring writes that are carried out */
	uint32_t reported;     /* those of `done` that an entry or the word has reported */
	uint32_t stored;       /* those of `done` that the word has reported */
	bool is_report_urgent; /* a large message or a ring Write is among them */
	uint8_t fast_polls;    /* that had work, since the last check (transfer/fast.c) */
	bool is_unfenced;      /* our side's `is_unfenced` */
	bool can_skip_fence;   /* the kernel can run fences for us (core/base/fence.h) */
	bool is_wake_pending;  /* sending the WAKE failed: try again */
	_Atomic bool
		is_disarmed; /* counted in engine->disarmed; written with the endpoint locked */
	_Atomic uint32_t seen_response_space; /* also a hint, read less often */
	uint32_t read_limit; /* RDMA Reads that we may have in flight through the ring */

	/* --- the fourth line: written with the endpoint locked --- */
	_Atomic uint64_t counters[SHM_COUNT_END];
	uint32_t taken; /* entries taken since it was armed last; stops at a limit */
	_Atomic uint32_t seen_request_space; /* as seen_response_space */

	struct shm_consumer response_in;
	struct shm_producer response_out;

	_Atomic uint32_t refs;
	_Atomic uint32_t state;	  /* written with the endpoint locked, where it has one */
	_Atomic bool has_sleeper; /* a thread of this process sleeps on our bell */
	uint64_t id;
	int fd;
	uint8_t self; /* enum shm_index: our side of the segment */
	_Atomic bool is_in_epoll;

	struct shm_segment *segment; /* NULL until the request is accepted */
	_Atomic bool has_segment;    /* release after `mine`, `theirs` and `remote` are set */
	struct shm_remote remote;

	/* set-up */
	struct shm_listener *listener; /* passive: where it arrived, with a reference */
	struct soft_caller caller;     /* passive */
	/* CALLING: the request packet; ACCEPTED: the answer, until sent */
	union shm_wire *request;
	bool is_refusing; /* the kernel refuses descriptors that the peer sends */
	socklen_t peer_name_len;
	void *peer_name;	       /* active: struct sockaddr_un of the service point */
	uint64_t give_up_ns;	       /* set-up fails at this time */
	uint64_t retry_ns;	       /* CALLING, ACCEPTED: when to try again */
	DAT_EVENT_NUMBER failure;      /* the service thread reports it; 0: none */
	uint32_t peer_read_in;	       /* concurrent RDMA Reads that the peer serves, */
	uint32_t peer_read_out;	       /* and that it wants to issue */
	int segment_fd;		       /* ACCEPTED: to be sent with the answer; else -1 */
	uint64_t port;		       /* local port qualifier */
	uint32_t pz;		       /* zone of our endpoint: the peer may use keys of it */
	_Atomic uint64_t deadline_ns;  /* when the service thread serves it; 0: never */
	bool is_pending;	       /* on the engine's list (engine lock) */
	struct shm_conn *next_pending; /* engine lock */

	/* our requests */
	uint64_t tx_ack;      /* no request before it waits for `done` */
	uint64_t tx_data;     /* no request before it waits for data */
	uint32_t peer_waits;  /* enum shm_waits of the peer, as last read */
	bool is_space_wanted; /* a request waits for space in the ring, or for a piece */
	bool is_draining;     /* graceful disconnect */
	bool is_failing;      /* a request has failed; earlier ones may still finish */
	uint64_t failing_ns;  /* time at which the connection breaks anyway */

	/* the peer's requests */
	bool is_head_blocked;	 /* the entry at the head waits for something other than the peer */
	bool is_response_wanted; /* the response ring was full */
	bool is_supply_waiting;	 /* likewise, for bytes of a message of ours */
	struct shm_arrival arrival;
	struct shm_inbound write;
	struct shm_inbound read;
	_Atomic uint32_t local_announce; /* key of our own table that we use for the peer */

	struct shm_grow grow;	   /* larger rings */
	struct shm_bulk bulk;	   /* large pieces, both ways */
	struct soft_stream stream; /* how large copies to the peer are made */

	/* direct copies */
	uint32_t announced; /* announcements so far, until is_unfenced is set */

	/* wake-ups */
	uint32_t woken; /* the value of the peer's `armed` that a WAKE has answered */

	/* end */
	DAT_EVENT_NUMBER end;	    /* the event number for core_ep_ended */
	uint64_t force_ns;	    /* CLOSING: no longer waits for the peer after this time */
	bool is_peer_gone;	    /* end of file: the peer accesses nothing any more */
	bool has_peer_closed;	    /* its CLOSE arrived */
	_Atomic bool is_distrusted; /* the wait for its announcement timed out */
	_Atomic bool is_shut;	    /* its gate was closed during such a wait: it has to end */

	/* a dead key that the peer was still copying through when it was checked last, and since
	 * when (engine lock) */
	uint32_t stalled_key;
	uint64_t stalled_since_ns;
	uint64_t gate_closed_ns; /* when the gate was closed because of that; 0: it was not */

	/* keys of ours whose memory file the peer got (engine lock; also read without, as a hint)
	 */
	_Atomic uint32_t given[SHM_MAPS];
};
static_assert(offsetof(struct shm_conn, has_ep) == SHM_LINE, "one poll, one line");
static_assert(offsetof(struct shm_conn, mine) == 2 * SHM_LINE, "a post");
static_assert(offsetof(struct shm_conn, counters) == 3 * SHM_LINE, "and the rest of it");
static_assert(offsetof(struct shm_conn, read_limit) < 3 * SHM_LINE, "a Read, too");
static_assert(sizeof(struct shm_conn) <= 33 * SHM_LINE, "the budget of a connection");

#endif
