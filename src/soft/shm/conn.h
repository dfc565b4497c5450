// SPDX-License-Identifier: BSD-2-Clause
/*
 * One connection to an endpoint on the same host: its socket, its shared segment, its rings, and
 * how far each stream of work has come. See engine.h for who guards it.
 */
#ifndef SHM_CONN_H
#define SHM_CONN_H

#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "core/event/evd.h"
#include "core/transport.h"
#include "soft/copy.h"
#include "soft/key.h"
#include "soft/region.h"
#include "soft/shm/engine.h"
#include "soft/shm/pool.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/wire.h"

#define SHM_IOV_MAX 32u		     /* segments of one request or Receive */
#define SHM_BUDGET (1024u * 1024u)   /* bytes that one pass moves at most */
#define SHM_BATCH 32u		     /* entries of each kind that one pass takes at most */
#define SHM_CMA_PIECE (256u * 1024u) /* bytes between two looks at the key */
#define SHM_MAP_PIECE (64u * 1024u)
#define SHM_PULL_PIECE SHM_BUDGET /* of a Send that is fetched: 80 us on a machine of 2024 */
#define SHM_MAP_SEND                                                                               \
	1024u /* a Send of that length is fetched from memory that the peer has mapped */
/* bytes that each part of a pass may move, whatever those before it have */
#define SHM_BUDGET_LEAST (SHM_BUDGET / 8)
#define SHM_IDLE_POLLS 20000u /* polls without news after which it is armed and let go */

enum shm_state {
	SHM_CALLING,	 /* active: waits for room in the listener's backlog */
	SHM_REQUESTED,	 /* active: waits for the answer */
	SHM_ARRIVING,	 /* passive: waits for the request; the service thread's */
	SHM_OFFERED,	 /* passive: the core has it, as a connection request */
	SHM_ACCEPTED,	 /* passive: waits for READY */
	SHM_ESTABLISHED, /* data flow */
	SHM_CLOSING,	 /* revoked; waits until the peer touches our memory no more */
	SHM_ENDED,	 /* the endpoint has let it go */
};

/* What a poll has to look for beside the next message: shm_conn.watch. */
enum shm_watch {
	SHM_WATCH_STUCK = 1, /* not even that: the one at the head waits for something else */
	SHM_WATCH_RESPONSES = 1 << 1, /* RDMA Reads are answered through the ring */
	SHM_WATCH_SPACE = 1 << 2,     /* a ring was full */
	SHM_WATCH_OWES = 1 << 3,      /* `told` lags behind `done` */
};

/* What became of a request: core_req.transport.word[0]; word[1] is the bytes already moved. */
enum shm_req_state {
	SHM_REQ_NEW,
	SHM_REQ_WAIT_DONE, /* wholly in the ring; the peer's `done` completes it */
	SHM_REQ_WAIT_DATA, /* an RDMA Read through the ring */
	SHM_REQ_FINISHED,
};

/* Memory of the peer that is mapped here, or was asked for (map.c). */
enum shm_map_state {
	SHM_MAP_FREE,
	SHM_MAP_SEEN, /* used before, not worth a question yet */
	SHM_MAP_ASKED,
	SHM_MAP_REFUSED,
	SHM_MAP_READY,
};
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

/* Where our side of the copying stands towards the peer's memory. */
struct shm_remote {
	struct soft_view *view;	       /* the peer's keys */
	uint32_t pz;		       /* zone of the peer's endpoint */
	uint8_t token[SHM_TOKEN_SIZE]; /* of the peer's engine, as it says */
	pid_t pid;
	uid_t own_uid; /* ours, when we asked who the peer is */
	bool is_same_user;
	bool has_cma;		  /* we may read and write the peer's memory by pid */
	bool has_pull;		  /* we told the peer that we fetch its large Sends */
	bool is_pulling;	  /* the peer fetches large Sends itself */
	uint64_t alive_ns;	  /* when we last asked the socket whether the peer lives */
	struct shm_map *maps;	  /* SHM_MAPS, or NULL: this connection never maps */
	struct shm_map *last_map; /* the one of them that was used last, or NULL */
};

/* A message that arrives. */
struct shm_arrival {
	bool is_begun;	 /* the Receive at the head is being filled */
	bool is_pull;	 /* its bytes are fetched, from: */
	bool is_blocked; /* no Receive: wait for post_recv */
	bool is_solicited;
	uint32_t source_count;
	uint64_t length;
	uint64_t offset;
	uint64_t blocked_ns; /* since when, if there is a limit */
	struct shm_source sources[SHM_IOV_MAX];
};

/* An RDMA Write of the peer through the ring, and an RDMA Read that we answer. */
struct shm_inbound {
	bool is_begun;
	uint32_t key;
	uint64_t address;
	uint64_t length;
	uint64_t offset;
};

/* What polls of a thread with many connections look at lies together in front. */
struct shm_conn {
	alignas(SHM_LINE) struct shm_consumer request_in; /* the peer's requests */
	struct shm_side *theirs;
	/* what a poll compares with, without the lock; relaxed, hints only */
	_Atomic uint32_t watch; /* enum shm_watch */
	_Atomic uint32_t acked; /* of our messages and ring writes, carried out by the peer */
	_Atomic uint32_t seen_waits;
	uint16_t idle_polls;   /* engine lock */
	_Atomic bool has_more; /* a pass ended for its budget */

	_Atomic uint32_t seen_request_space; /* the same, for what is rare */
	_Atomic uint32_t seen_response_space;
	struct shm_engine *engine;
	_Atomic uint32_t refs;
	_Atomic uint32_t state;	  /* written with the endpoint locked, where it has one */
	_Atomic bool has_ep;	  /* release after ep_ref is set */
	_Atomic bool has_sleeper; /* a thread of ours sleeps on our bell */
	uint64_t id;
	int fd;
	uint8_t self; /* enum shm_index: our side of the segment */
	_Atomic bool is_in_epoll;
	struct core_ref ep_ref;

	struct shm_segment *segment;
	struct shm_side *mine;
	struct shm_remote remote;

	/* set-up */
	struct shm_listener *listener; /* passive: where it arrived, with a reference */
	bool is_silent;		       /* on the listener's list (engine lock) */
	struct shm_conn *next_silent;  /* engine lock */
	struct shm_conn *prev_silent;
	union shm_wire *request; /* CALLING, or kept and REQUESTED: what is asked */
	socklen_t peer_name_len;
	void *peer_name;	      /* active: struct sockaddr_un of the service point */
	uint64_t give_up_ns;	      /* set-up: when it has lasted too long */
	uint64_t retry_ns;	      /* CALLING: when to try again */
	DAT_EVENT_NUMBER failure;     /* to be told by the service thread; 0: none */
	uint32_t peer_read_in;	      /* RDMA Reads at once: what the peer serves, */
	uint32_t peer_read_out;	      /* what it wants, */
	uint32_t read_limit;	      /* and what we may have in flight through the ring */
	int segment_fd;		      /* CALLING: to be sent with the request; else -1 */
	uint64_t port;		      /* local port qualifier */
	_Atomic uint64_t deadline_ns; /* when the service thread should look; 0: no need */
	bool is_todo;		      /* on the engine's list (engine lock) */
	struct shm_conn *next_todo;   /* engine lock */

	/* our requests */
	struct shm_producer request_out;
	struct shm_consumer response_in;
	uint64_t tx_next;     /* sequence of the first request not wholly handed out */
	uint64_t tx_ack;      /* no request before it waits for `done` */
	uint64_t tx_data;     /* no request before it waits for data */
	uint32_t sent;	      /* messages and ring writes handed out; see `acked` */
	uint32_t ring_writes; /* ring writes among those in flight */
	uint32_t reads;	      /* RDMA Reads through the ring in flight */
	uint32_t peer_waits;  /* enum shm_waits of the peer, as last seen */
	bool is_space_wanted; /* the ring was full */
	bool is_draining;     /* graceful disconnect */
	bool is_failing;      /* a request has failed; the end waits for those before it */
	uint64_t failing_ns;  /* ... but not longer than this */

	/* the peer's requests */
	bool is_stuck; /* the entry at the head waits for something else than the peer */
	struct shm_producer response_out;
	uint32_t done;		 /* messages and ring writes that are carried out */
	uint32_t told;		 /* ... of which the peer can know, by an entry or the word, */
	uint32_t stored;	 /* and of which it knows by the word */
	bool is_telling;	 /* a long one is among them: the peer waits for its memory */
	bool is_response_wanted; /* the response ring was full */
	uint8_t fast_polls;	 /* in a row (fast.c) */
	struct shm_arrival arrival;
	struct shm_inbound write;
	struct shm_inbound read;
	_Atomic uint32_t local_announce; /* key of our own table that we work on for the peer */

	struct shm_bulk bulk; /* large pieces, both ways */

	/* direct copies */
	bool is_light;	    /* our side's `is_light` */
	uint32_t announced; /* announcements since that was decided */

	/* waking */
	bool can_be_light; /* the kernel runs fences on us for the peer, so that we may go without
			    */
	uint32_t taken;	   /* entries since it was armed last, no more than matter */
	uint32_t woken;	   /* the value of the peer's `armed` that was answered by a WAKE */
	bool is_wake_owed; /* the WAKE could not be sent: try again */
	_Atomic bool
		is_disarmed; /* counted in engine->disarmed; written with the endpoint locked */

	/* end */
	DAT_EVENT_NUMBER end; /* what core_ep_ended gets */
	uint64_t force_ns;    /* CLOSING: when not to wait for the peer any longer */
	bool is_peer_gone;    /* end of file: it touches nothing any more */
	bool has_peer_closed; /* its CLOSE came */
	bool was_established;
	bool is_end_told;	    /* each side knows that the other takes it for over */
	_Atomic bool is_distrusted; /* a wait for its announcement ran out */

	_Atomic uint64_t counters[SHM_COUNT_END]; /* written with the endpoint locked */

	/* engine lock */
	_Atomic bool is_active;	    /* read without it as a hint */
	_Atomic uint32_t active_at; /* its place among engine->active; a hint likewise */

	/* keep.c: socket and segment are those of a connection before */
	bool is_kept;
	/* passive, and kept for a request: in engine->kept_count. Whoever clears it decides what
	 * becomes of the socket */
	_Atomic bool is_offered;
	bool is_peer_idle;	    /* active: IDLE came; whoever reads the socket writes it */
	struct shm_conn *next_kept; /* engine lock */

	/* a dead key that the peer was found to be copying through, since when (engine lock) */
	uint32_t blamed_key;
	uint64_t blamed_ns;

	/* keys of ours whose memory file the peer was given (engine lock; read without as a hint)
	 */
	_Atomic uint32_t given[SHM_MAPS];
};
static_assert(offsetof(struct shm_conn, has_more) < SHM_LINE, "one look, one line");

/* The transport's side of an endpoint (core_ep.transport). */
struct shm_ep {
	struct shm_conn *conn; /* with a reference; NULL: not connected */
	bool is_detached;
};

static inline enum shm_state shm_conn_state(const struct shm_conn *conn)
{
	/* acquire: pairs with the release in shm_conn_set_state */
	return (enum shm_state)atomic_load_explicit(&conn->state, memory_order_acquire);
}

static inline void shm_count(struct shm_conn *conn, enum shm_counter counter)
{
	/* relaxed, and not one atomic operation: there is one writer, and nothing is ordered by it
	 */
	uint64_t count = atomic_load_explicit(&conn->counters[counter], memory_order_relaxed);

	atomic_store_explicit(&conn->counters[counter], count + 1, memory_order_relaxed);
}

/* Requests that the peer has carried out. */
static inline uint32_t shm_conn_acked(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->acked, memory_order_relaxed);
}

static inline void shm_conn_set_acked(struct shm_conn *conn, uint32_t acked)
{
	atomic_store_explicit(&conn->acked, acked, memory_order_relaxed);
}

/* Changes one bit of `watch`; EP locked. */
static inline void shm_conn_watch_bit(struct shm_conn *conn, enum shm_watch bit, bool is_set)
{
	uint32_t watch = atomic_load_explicit(&conn->watch, memory_order_relaxed);

	watch = is_set ? watch | bit : watch & ~(uint32_t)bit;
	atomic_store_explicit(&conn->watch, watch, memory_order_relaxed);
}

/* An entry that goes out acknowledges what is done. */
static inline void shm_conn_tell(struct shm_conn *conn, struct shm_entry *entry)
{
	entry->done = conn->done;
	conn->told = conn->done;
	shm_conn_watch_bit(conn, SHM_WATCH_OWES, false);
}

/* Completes the entry that was reserved last. */
static inline void shm_conn_commit(struct shm_conn *conn, struct shm_producer *ring,
				   struct shm_entry *entry)
{
	shm_conn_tell(conn, entry);
	shm_producer_commit(ring, entry);
}

static inline void shm_conn_set_state(struct shm_conn *conn, enum shm_state state)
{
	atomic_store_explicit(&conn->state, (uint32_t)state, memory_order_release);
}

/*
 * The key of ours that the peer is copying through, else 0. A process of another user cannot copy,
 * whatever it writes there, and nobody waits for it.
 */
static inline uint32_t shm_conn_announced(const struct shm_conn *conn)
{
	if (!conn->remote.is_same_user)
		return 0;
	/* acquire: its copy is over when we see the announcement gone */
	return atomic_load_explicit(&conn->theirs->announce, memory_order_acquire);
}

/* --- conn.c: life --- */

/* A connection with one reference and a number, around a socket (taken over on success). */
int shm_conn_create(struct shm_engine *engine, int fd, enum shm_index self,
		    struct shm_conn **conn_out);
void shm_conn_get(struct shm_conn *conn);
bool shm_conn_get_unless_dead(struct shm_conn *conn);
void shm_conn_put(struct shm_conn *conn);
/* Maps the segment (new when fd_out is given, else that of the active side) and makes the rings. */
int shm_conn_make_segment(struct shm_conn *conn, int *fd_out);
int shm_conn_map_segment(struct shm_conn *conn, int fd);
/* The rings of the segment, which is empty, or as a peer that breaks the rules has left it. */
void shm_conn_make_rings(struct shm_conn *conn);
/* Watches the socket in the service thread. */
int shm_conn_watch(struct shm_conn *conn);
void shm_conn_unwatch(struct shm_conn *conn);
/* Gives the connection to the endpoint (locked); it takes over the caller's reference. */
void shm_conn_attach(struct shm_conn *conn, struct core_ep *ep);
/* Locks the endpoint of the connection; NULL when it has let go of it. */
struct core_ep *shm_conn_enter(struct shm_conn *conn);
/* The endpoint that it was given to; cell NULL: none yet. */
static inline struct core_ref shm_conn_ep(const struct shm_conn *conn)
{
	/* acquire: pairs with the release in shm_conn_attach */
	if (!atomic_load_explicit(&conn->has_ep, memory_order_acquire))
		return (struct core_ref){NULL, 0};
	return conn->ep_ref;
}
/* Does the locked endpoint still own this connection, which may be freed otherwise? */
static inline bool shm_conn_is_of(const struct shm_conn *conn, const struct core_ep *ep)
{
	const struct shm_ep *mine = ep->transport;

	return mine && !mine->is_detached && mine->conn == conn;
}
/* Has the peer's end of the socket been closed? The kernel does so after the last copy of a process
 * that dies. */
bool shm_conn_has_hung_up(const struct shm_conn *conn);
/* Who is at the other end of the socket; fills remote.pid and is_same_user. */
void shm_conn_identify(struct shm_conn *conn);
/*
 * Takes what is left in a socket that was shut down: descriptors that a stranger has put there must
 * not be closed by closing the socket, which could wait for them (service.c).
 */
void shm_conn_discard(struct shm_conn *conn);
/* Reads up to the peer's IDLE: 1, 0 it has not come yet, -EPROTO (or the end of the socket). */
int shm_conn_read_idle(struct shm_conn *conn);
/* Sends one packet without waiting, with descriptors; 0 or -errno. */
int shm_conn_send(struct shm_conn *conn, const union shm_wire *wire, const int *fds,
		  unsigned count);
int shm_conn_send_word(struct shm_conn *conn, enum shm_wire_type type, uint32_t word);
/* Asks the service thread to look at the connection. */
void shm_conn_later(struct shm_conn *conn);
void shm_conn_at(struct shm_conn *conn, uint64_t deadline_ns);
/* The same, unless it will look earlier anyway. */
void shm_conn_by(struct shm_conn *conn, uint64_t deadline_ns);

/* --- close.c: all of these with the endpoint locked --- */

/*
 * Ends the access of the peer and tells it why. Never calls up; shm_conn_finish follows, now or
 * in the service thread (shm_conn_later).
 */
void shm_conn_close(struct shm_conn *conn, DAT_EVENT_NUMBER end);
/* CLOSING: tells the core that it is over if nothing touches memory any more. */
void shm_conn_finish(struct shm_conn *conn, struct core_ep *ep);
/* A set-up failed: tells the core, forgets the connection. */
void shm_conn_fail_setup(struct shm_conn *conn, struct core_ep *ep, DAT_EVENT_NUMBER number);
/* Does the peer pass no fence behind its announcements? */
bool shm_conn_is_light(const struct shm_conn *conn);
/* Is the peer copying from or to our memory? (for shm_wait_untouched) */
bool shm_conn_is_touched(const struct shm_conn *conn, uint64_t unused);
/* Lets go of the endpoint's connection. */
void shm_conn_drop(struct shm_conn *conn, struct core_ep *ep);

/* --- progress.c --- */

/* Is there anything to do beside the next message and acknowledgements? */
bool shm_conn_has_rare_work(const struct shm_conn *conn, uint32_t watch);
/* Is there anything to do? No lock needed: a hint that is never wrong for long. */
static inline bool shm_conn_has_work(const struct shm_conn *conn)
{
	uint32_t watch = atomic_load_explicit(&conn->watch, memory_order_relaxed);
	const struct shm_side *theirs = conn->theirs;

	/* relaxed throughout: only a hint whether to take the lock and look properly */
#define WORD(word) atomic_load_explicit(&(word), memory_order_relaxed)
	if (!(watch & SHM_WATCH_STUCK) && shm_consumer_has_entry(&conn->request_in))
		return true;
	if ((int32_t)(WORD(theirs->done) - shm_conn_acked(conn)) > 0 ||
	    WORD(theirs->waits) != WORD(conn->seen_waits) || WORD(theirs->failed) != 0 ||
	    WORD(conn->has_more))
		return true;
#undef WORD
	return watch && shm_conn_has_rare_work(conn, watch);
}
/* One pass over everything that can move; EP locked, ESTABLISHED. Returns what happened. */
int shm_conn_pass(struct shm_conn *conn, struct core_ep *ep);
/* After a pass that ended for its budget: makes sure that another one follows. */
void shm_conn_go_on(struct shm_conn *conn);
/* Everything that is complete in the rings of a peer that has gone; EP locked. */
void shm_conn_drain(struct shm_conn *conn, struct core_ep *ep);
/*
 * Publishes what this side has taken and made, and wakes the peer if it sleeps. is_lazy: what is
 * done may be told by the next entry that goes out, or by the next pass.
 */
void shm_conn_flush(struct shm_conn *conn, bool is_lazy);
/* Goes to sleep: false when there is something to do first. EP locked. */
bool shm_conn_arm(struct shm_conn *conn);
/* Arms it, with passes before as long as there is news. False: there still is; others come first.
 */
bool shm_conn_settle(struct shm_conn *conn, struct core_ep *ep);
void shm_conn_disarm(struct shm_conn *conn);
/* After a change outside the fast path: what polls look for, and whether the endpoint may take its
 * fast path. */
void shm_conn_review(struct shm_conn *conn, struct core_ep *ep);
/* Entries were taken without a sleep between them. */
void shm_conn_was_polled(struct shm_conn *conn, int entries);
/* Must what is done be acknowledged now, or space given back? */
bool shm_conn_is_flush_due(const struct shm_conn *conn);

/* Something was published: wakes the peer if it sleeps (progress.c). */
void shm_conn_wake_asleep(struct shm_conn *conn);
static inline void shm_conn_wake(struct shm_conn *conn)
{
	/* first in the order of the program: see the top of progress.c */
	atomic_signal_fence(memory_order_seq_cst);
	if (conn->can_be_light &&
	    atomic_load_explicit(&conn->theirs->is_polled, memory_order_relaxed))
		conn->is_wake_owed = false;
	else
		shm_conn_wake_asleep(conn);
}

/* --- fast.c: the fast path (core/ep/data_path.h); EP entered without slow_reasons --- */

bool shm_post_fast(struct core_ep *ep, struct core_req *req);
/* Takes acknowledgements and at most that many messages; false: there is work for a pass. */
bool shm_poll_fast(struct shm_conn *conn, struct core_ep *ep, unsigned most,
		   struct core_dequeue *dequeue);

/* --- tx.c, rx.c: parts of a pass; > 0 something happened, 0, or -EPROTO --- */
/* The peer's word of what is done, and the same from an entry of a ring. */
int shm_tx_acks(struct shm_conn *conn, struct core_ep *ep);
int shm_tx_told(struct shm_conn *conn, struct core_ep *ep, uint32_t done);
int shm_tx_responses(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);
/* The peer could not carry out what `failed` names. */
int shm_tx_failed(struct shm_conn *conn, struct core_ep *ep, uint32_t failed);
int shm_tx_run(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);
int shm_rx_run(struct shm_conn *conn, struct core_ep *ep, uint64_t *budget);
/* Is a Send better fetched by the receiver than put into the ring? */
bool shm_is_worth_fetching(struct shm_conn *conn, struct core_ep *ep, const struct core_req *req);

/* --- direct.c: copies between the peer's memory and ours --- */

/* Segments of the consumer's memory, pinned for one piece of copying. */
struct shm_pins {
	uint32_t count;
	struct core_lmr *lmr[SHM_IOV_MAX];
	struct iovec iov[SHM_IOV_MAX];
};
/* Pins bytes [offset, offset+len) of the list. -EACCES: one of them is no longer good. */
int shm_pin(struct core_ep *ep, const DAT_LMR_TRIPLET *list, uint32_t segments, uint64_t offset,
	    uint64_t len, enum core_mem_use use, struct shm_pins *pins);
/* The same for the Receive at the head, whose zone may be that of an SRQ. */
int shm_pin_receive(struct core_ep *ep, const struct core_wqe *receive, uint64_t offset,
		    uint64_t len, struct shm_pins *pins);
void shm_unpin(struct shm_pins *pins);
/* Between pinned segments of the consumer and memory of ours (copy.h). */
int shm_gather(uint8_t *to, const struct shm_pins *pins);
int shm_scatter(const struct shm_pins *pins, const uint8_t *from);

/* Announces the key, then checks it: 0, -EACCES, or -EAGAIN (the peer is about to end it all).
 * After 0 the copy may be made; shm_announce_end() in every case but then too. map: of that key,
 * NULL if there is none. */
int shm_announce(struct shm_conn *conn, const struct shm_map *map, uint32_t key,
		 enum soft_right right, uint64_t address, uint64_t length);
void shm_announce_end(struct shm_conn *conn);
/* Is the process that we know by its number still the peer? */
bool shm_is_peer_alive(struct shm_conn *conn);

enum shm_path {
	SHM_PATH_MAP,
	SHM_PATH_CMA,
	SHM_PATH_RING,
};
enum shm_path shm_path_choose(struct shm_conn *conn, const struct core_req *req,
			      struct shm_map **map_out);
/*
 * Moves the next bytes of an RDMA request directly: > 0 finished, 0 the budget ended,
 * -EAGAIN (wait for the peer's end), -ENOLINK (take the ring instead), or -status, where status
 * is that of the completion.
 */
int shm_direct_run(struct shm_conn *conn, struct core_ep *ep, struct core_req *req,
		   struct shm_map *map, uint64_t *budget);

/* --- map.c --- */
/* Uses of a region before a mapping of it is worth asking for. */
unsigned shm_map_uses(const struct shm_conn *conn);
/* Was the peer given the memory behind a key of ours? */
bool shm_map_is_given(const struct shm_conn *conn, uint64_t key);
/* Where that byte of the peer is mapped here, with all `length` bytes behind it; NULL. */
static inline uint8_t *shm_map_at(const struct shm_map *map, uint64_t address, uint64_t length)
{
	uint64_t offset = address - map->address;

	if (offset > map->region.length || length > map->region.length - offset)
		return NULL;
	return map->region.base + offset;
}
struct shm_map *shm_map_find(struct shm_conn *conn, uint32_t key);
/* Packets of the service thread; EP locked for GIVE, REFUSE and GONE. */
void shm_map_asked(struct shm_conn *conn, uint32_t key);
void shm_map_given(struct shm_conn *conn, const struct shm_wire_give *give, int fd);
void shm_map_refused(struct shm_conn *conn, uint32_t key);
void shm_map_gone(struct shm_conn *conn, uint32_t key);
void shm_map_drop_all(struct shm_conn *conn);
/* A key of ours is dead: tells the peers that were given the memory. */
void shm_map_key_dead(struct shm_engine *engine, uint32_t key);

/* --- setup.c --- */
int shm_connect(struct shm_engine *engine, struct core_ep *ep, const union core_sockaddr *address,
		DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
		const struct transport_conn_param *param);
int shm_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param);
void shm_reject(void *request, enum transport_reject why);
/*
 * The rest runs in the service thread. Descriptors stay the caller's.
 * ARRIVING: a packet, or the end of the socket (wire NULL).
 */
void shm_setup_arrived(struct shm_conn *conn, const union shm_wire *wire, const int *fds);
/* REQUESTED, ACCEPTED: the answer; EP locked. -errno: the set-up cannot go on. */
int shm_setup_answer(struct shm_conn *conn, struct core_ep *ep, const union shm_wire *wire,
		     const int *fds);
/* CALLING: tries again if it is time; EP locked. */
void shm_setup_retry(struct shm_conn *conn, uint64_t now);
/* ARRIVING: forgets it. */
void shm_setup_drop_silent(struct shm_conn *conn);
/* REQUESTED on a kept socket, which has ended: calls on a new one; EP locked. */
void shm_setup_anew(struct shm_conn *conn, struct core_ep *ep);

/* --- keep.c --- */
/* A connection that dies leaves its socket and segment to the next one, if it ended in order. */
void shm_keep(struct shm_conn *conn);
/* Active side: a connection object around such a socket to that service point, or NULL. */
struct shm_conn *shm_keep_take(struct shm_engine *engine, const struct sockaddr_un *name,
			       socklen_t name_len);
/* Passive side, a request has come: makes it fit for use. -EAGAIN: the peer shall ask anew. */
int shm_keep_resume(struct shm_conn *conn);
/* Passive side: it waits for a request no more; false: somebody else has said so already. */
bool shm_keep_claim(struct shm_conn *conn);
/* Passive side: ends those of a service point that goes away (NULL: all). */
void shm_keep_forget(struct shm_engine *engine, const struct shm_listener *listener);
/* Drops what nobody has asked for until `now` (UINT64_MAX: all). */
void shm_keep_expire(struct shm_engine *engine, uint64_t now);

/* --- ep.c: the endpoint slots of the transport table --- */
int shm_ep_create(struct core_ep *ep);
void shm_ep_detach(struct core_ep *ep);
void shm_ep_destroy(struct core_ep *ep);
void shm_ep_disconnect(struct core_ep *ep, bool is_graceful);
void shm_ep_reset(struct core_ep *ep);
void shm_ep_post_request(struct core_ep *ep, struct core_req *req);
void shm_ep_post_recv(struct core_ep *ep);
void shm_ep_abort(struct core_ep *ep);

#endif
