// SPDX-License-Identifier: BSD-2-Clause
/*
 * The structure of a connection to an endpoint on the same host: its socket, its shared segment,
 * its rings, and the progress of each stream of work. instance.h describes the locks, state.h has
 * the accessors. The folders next to this file, each of which calls those below it alone:
 *
 *   engine/    drives connections: the service thread, threads that poll, the endpoint slots
 *   connect/   service points, their names, set-up; the end of a connection and of a key
 *   transfer/  passes: requests, messages and the copies that they make
 *   bytes/     rings, packets, and the layout of the memory that both sides share
 */
#ifndef SHM_CONN_H
#define SHM_CONN_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/transport.h"
#include "soft/endpoint.h"
#include "soft/region.h"
#include "soft/shm/instance.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"
#include "soft/shm/bytes/wire.h"

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
	SHM_WATCH_REQUEST_SPACE = 1 << 2, /* a request waits for space in the ring */
	SHM_WATCH_RESPONSE_SPACE = 1 << 3,
	SHM_WATCH_UNREPORTED = 1 << 4, /* not all that is done is reported */
	SHM_WATCH_MORE = 1 << 5,       /* a pass has used up its budget, or a poll has left work */
};

enum shm_map_state {
	SHM_MAP_FREE,
	SHM_MAP_SEEN, /* used, but not often enough to ask for it */
	SHM_MAP_ASKED,
	SHM_MAP_REFUSED,
	SHM_MAP_READY,
};
/* A region of the peer that is mapped here, or may be. */
struct shm_map {
	uint32_t key;
	uint8_t state; /* enum shm_map_state */
	uint8_t uses;
	bool is_writable;
	uint64_t address;	   /* of the region at the owner */
	struct soft_region region; /* the same bytes here */
};
#define SHM_MAPS 64u
#define SHM_MAP_WAYS 4u

/* What is under way at the head of the peer's request ring; no other entry may come between. */
enum shm_inbound_state {
	SHM_IN_NONE,	   /* the next entry begins something */
	SHM_IN_NO_RECEIVE, /* a message waits for post_recv */
	SHM_IN_MESSAGE,	   /* the Receive at the head is being filled */
	SHM_IN_KILLING,	   /* the same; a peer still copies through the key that it kills */
	SHM_IN_READ,	   /* an RDMA Read that we answer */
	SHM_IN_READ_FULL,  /* an RDMA Read whose answer waits for room in the response ring */
};
/* A request of the peer that its ring brings (transfer/rx.c). */
struct shm_inbound {
	enum shm_inbound_state state;
	uint64_t offset;     /* bytes of the message or Read that are done */
	uint64_t blocked_ns; /* no Receive: since when, if there is a time limit */
};

/* How each side comes to the memory of the other. */
enum shm_reach {
	SHM_REACH_RING, /* the owner's engine places all bytes */
	SHM_REACH_DIRECT, /* we access each other's memory, as far as it is mapped (connect/setup.h) */
	SHM_REACH_KERNEL, /* and the kernel reads and writes the peer's memory for us */
};

/* The peer's process and its memory, as far as this side knows them. */
struct shm_remote {
	struct soft_view *view;	  /* the peer's keys */
	uint32_t pz;		  /* zone of the peer's endpoint */
	struct ucred sender;	  /* of REQUEST or ACCEPT, by the kernel; pid 0: unknown here */
	pid_t thread;		  /* of the peer: the kernel finds the peer's memory by it */
	_Atomic uint8_t reach;	  /* enum shm_reach */
	bool is_refusal_logged;	  /* of a copy by the kernel */
	struct shm_map *maps;	  /* SHM_MAPS, or NULL: this connection never maps */
	struct shm_map *last_map; /* that of the key that was used last, or NULL */
};

/* Another way to that service point; the endpoint is locked. 0, or -errno: no attempt is made. */
typedef int shm_otherwise(struct core_ep *ep, const union core_sockaddr *address,
			  DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
			  const struct transport_conn_param *param);

/* What the set-up of a connection needs; freed when it is established. */
struct shm_setup {
	struct shm_listener *listener; /* passive: where it arrived, with a reference */
	char name[SHM_DIR_NAME_MAX];   /* active: of the service point, */
	union core_sockaddr address;   /* and the rest of whom it calls */
	shm_otherwise *otherwise;  /* if no process of our user answers; NULL: the attempt fails */
	union shm_wire wire;	   /* active: REQUEST. Passive: ACCEPT, */
	bool is_answering;	   /* which has still to be sent, with: */
	int segment_fd;		   /* else -1 */
	uint64_t give_up_ns;	   /* set-up fails at this time */
	uint64_t retry_ns;	   /* CALLING, ACCEPTED: when to try again */
	DAT_EVENT_NUMBER failure;  /* the service thread reports it; 0: none */
	struct shm_wire_side peer; /* its endpoint and process, as the peer claims */
};

/* Why an established connection is about to end by itself. */
enum shm_ending {
	SHM_ENDING_NONE,
	SHM_ENDING_DRAINED, /* graceful disconnect: when all requests are done */
	SHM_ENDING_FAILED,  /* a request has failed; earlier ones may still finish */
};

/* What is known of the peer's end. */
enum shm_peer_end {
	SHM_PEER_HERE,
	SHM_PEER_CLOSED, /* its CLOSE arrived */
	SHM_PEER_GONE,	 /* end of file: the peer accesses nothing any more */
};

/* A peer that stays in the middle of a copy through a dead key (connect/revoke.c). */
enum shm_trust {
	SHM_TRUSTED,
	SHM_SHUT,	/* its gate was closed during the wait: the connection has to end */
	SHM_DISTRUSTED, /* the wait for its announcement timed out */
};

/* What the end of a connection needs. */
struct shm_end {
	enum shm_ending ending;
	DAT_EVENT_NUMBER event; /* the event number for core_ep_ended */
	uint64_t limit_ns;	/* FAILED, CLOSING: no longer waits for the peer after this time */
	enum shm_peer_end peer;
	_Atomic uint8_t trust; /* enum shm_trust; only rises */
};

/*
 * A dead key that the peer was still copying through when it was checked last, and since when
 * (engine lock).
 */
struct shm_stall {
	uint32_t key;
	uint64_t since_ns;
	uint64_t gate_closed_ns; /* when the gate was closed because of that; 0: it was not */
};

/* Our requests (transfer/tx.c, transfer/fast.h). */
struct shm_tx {
	uint64_t next;	      /* sequence of the first request not yet started completely */
	uint32_t sent;	      /* messages and ring writes handed out; see `acked` */
	uint32_t ring_writes; /* ring writes among those in flight */
	uint32_t reads;	      /* RDMA Reads through the ring in flight */
	uint32_t read_limit;  /* so many may be */
	uint64_t ack_from;    /* no request before it waits for `done` */
	uint64_t data_from;   /* no request before it waits for data */
};

/* What is reported to the peer as carried out (transfer/publish.h). */
struct shm_report {
	uint32_t done;	   /* the peer's messages and ring writes that are carried out */
	uint32_t reported; /* those that an entry or the word has reported */
	bool is_urgent;	   /* a large message or a ring Write is among them */
};

/* Sleeping and waking (transfer/publish.h, engine/drive.c). */
struct shm_wake {
	uint32_t woken;	     /* the value of the peer's `armed` that a WAKE has answered */
	uint32_t taken;	     /* entries taken since it was armed last; stops at a limit */
	bool can_skip_fence; /* the kernel can run fences for us (core/base/fence.h) */
	bool is_due;	     /* something was published, and the peer not woken yet */
	_Atomic bool
		is_disarmed; /* counted in engine->disarmed; written with the endpoint locked */
	/* progress: of requests through the ring, when it was last checked; is_hurried: HURRY was
	 * sent since then (transfer/direct.c) */
	bool is_hurried;
	uint32_t progress;
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
	_Atomic uint32_t seen_waits; /* enum shm_waits of the peer, as a pass has last read it */
	_Atomic uint16_t idle_polls; /* checks in vain; a hint, and some may be lost */
	uint8_t fast_polls;	     /* that had work, since the last check (transfer/fast.c) */

	/* --- the second line --- */
	alignas(SHM_LINE) struct core_ref ep_ref; /* the cell is stored last, by a release */
	/* 1 + its place in engine->active, 0: none; engine lock, also read without it, as a hint */
	_Atomic uint32_t active_at;
	struct shm_producer request_out;

	/* --- the third line --- */
	alignas(SHM_LINE) struct shm_side *mine;
	struct shm_engine *engine;
	struct shm_tx tx;

	/* --- the fourth line --- */
	alignas(SHM_LINE) struct shm_report report;
	struct shm_wake wake;

	struct shm_consumer response_in;
	struct shm_producer response_out;
	struct shm_inbound in;
	_Atomic uint32_t local_announce; /* key of our own table that we use for the peer */

	struct soft_attended attended; /* references, events, deadline */
	_Atomic uint32_t state;	       /* written with the endpoint locked, where it has one */
	int fd;
	uint8_t takes; /* enum transport_takes of our endpoint */
	uint32_t pz;   /* zone of our endpoint: the peer may use keys of it */
	/* NULL until the request is accepted; release after `mine`, `theirs` and `remote` are set */
	struct shm_segment *_Atomic segment;
	struct shm_remote remote;

	struct shm_setup *setup; /* NULL: it was established */
	struct shm_end end;
	struct shm_stall stall;
	/*
	 * keys of ours whose memory file the peer got (engine lock; also read without, as a hint)
	 */
	_Atomic uint32_t given[SHM_MAPS];
};
static_assert(offsetof(struct shm_conn, ep_ref) == SHM_LINE, "one poll, one line");
static_assert(offsetof(struct shm_conn, mine) == 2 * SHM_LINE, "a post");
static_assert(offsetof(struct shm_conn, report) == 3 * SHM_LINE, "and the rest of it");
static_assert(sizeof(struct shm_conn) <= 13 * SHM_LINE, "the budget of a connection");

#endif
