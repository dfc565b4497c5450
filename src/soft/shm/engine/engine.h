// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine of one adapter instance: its connections, its service points, its service thread. This
 * folder holds what drives connections; the connections themselves are in connect/ and transfer/.
 *
 * Locks. The lock of an endpoint guards the data of its connection. An arriving connection that the
 * core does not know yet belongs to the service thread. The engine's own lock guards the tables and
 * lists below and is a leaf (rank 9): nothing is called with it held. Connections, listeners and
 * processes of peers are found by numbers in one table, so an epoll event or a list entry of a
 * destroyed object finds nothing.
 *
 * Progress. Every established connection is either armed or disarmed. If it is armed, the peer
 * sends one packet when it publishes something, which wakes the service thread. If it is disarmed,
 * it is on the list of active connections: threads that poll check it, and the service thread
 * checks every few milliseconds that they do. docs/shm.md describes the whole protocol.
 */
#ifndef SHM_ENGINE_H
#define SHM_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/transport.h"
#include "core/event/evd.h"
#include "soft/callers.h"
#include "soft/driven.h"
#include "soft/soft.h"
#include "soft/thread.h"
#include "soft/shm/wire.h"

struct shm_conn;
struct shm_listener;
struct shm_pool;
struct shm_process;

/* How often each way of moving bytes was taken; for tests and diagnostics. */
enum shm_counter {
	SHM_COUNT_MAP,	       /* RDMA by memory that is mapped here */
	SHM_COUNT_CMA,	       /* RDMA by process_vm_readv and process_vm_writev */
	SHM_COUNT_RING,	       /* RDMA through the ring */
	SHM_COUNT_SEND_INLINE, /* Sends of one entry */
	SHM_COUNT_SEND_PULL,   /* Sends that the receiver fetches */
	SHM_COUNT_SEND_PIECES, /* Sends of several entries */
	SHM_COUNT_WAKE,	       /* times that a peer was woken */
	SHM_COUNT_END,
};

enum shm_slot_kind {
	SHM_SLOT_FREE,
	SHM_SLOT_CONN,
	SHM_SLOT_LISTENER,
	SHM_SLOT_PROCESS,
};

struct shm_slot {
	void *object;
	uint32_t generation;
	uint8_t kind; /* enum shm_slot_kind */
	uint32_t next_free;
};

/* The number of the event descriptor in epoll; no slot has it. */
#define SHM_ID_KICK UINT64_MAX

/* Polls in a millisecond by a thread that polls in a loop: it makes thousands. */
#define SHM_DRIVEN_POLLS 512u

struct shm_engine {
	/* constant after creation */
	struct core_ia *ia; /* must not be dereferenced once `is_stopping` is set */
	struct soft_adapter *adapter;
	struct core_settings settings;
	uint32_t private_max; /* longest private data of the adapter */
	int dir; /* the folder where other containers look for us (connect/dir.h); -1: nowhere */
	uint8_t token[SHM_TOKEN_SIZE]; /* a peer that can read it can read this process */
	struct soft_thread service;

	_Atomic uint32_t refs;	      /* adapter, thread, connections */
	_Atomic bool is_stopping;     /* ia_close was called */
	_Atomic bool is_serving;      /* core_srq_serve_all was requested */
	_Atomic bool has_more;	      /* a pass ended because its budget was used up */
	_Atomic uint64_t deadline_ns; /* earliest deadline of any connection; UINT64_MAX: none */
	struct soft_driven driven;    /* by polls of threads of the consumer */
	struct soft_callers callers;
	struct shm_listener *paused_first; /* with a reference each; service thread only */
	_Atomic uint64_t resume_ns;	   /* when these continue; UINT64_MAX: there are none */
	_Atomic uint64_t armed_last;   /* number of the connection that was armed last; a hint */
	_Atomic bool is_unattended;    /* the last poller has armed everything and sleeps */
	_Atomic uint32_t active_count; /* written with the engine locked; else a hint */
	_Atomic uint32_t posted_at;    /* index of the connection posted to last; a hint */
	_Atomic uint32_t given_count;  /* memory files that peers got and whose key lives */
	_Atomic int32_t disarmed;      /* connections that are not armed */
	_Atomic uint64_t counters[SHM_COUNT_END]; /* of connections that are destroyed */
	_Atomic uint32_t grown_count; /* those whose larger rings are mapped (transfer/grow.h) */

	struct core_lock lock; /* leaf; guards the rest */
	struct shm_slot *slots;
	uint32_t slot_count;
	uint32_t slot_used;
	uint32_t free_first; /* oldest free slot + 1, 0: none */
	uint32_t free_last;
	struct shm_conn **active; /* in the order of their turns, with gaps; as long as `slots` */
	uint32_t active_end;
	uint32_t active_next;	       /* whose turn it is */
	uint32_t checked;	       /* checks of connections by polls */
	uint32_t likely_next;	       /* the index after the connection that last had work */
	bool is_answer;		       /* checks out of turn are of posted_at, not of likely_next */
	bool is_likely;		       /* a check out of turn has found the last work */
	struct shm_process *processes; /* at the other ends (connect/process.h) */
	struct shm_pool *pools;	       /* ours and those of peers (pool.h) */
	uint32_t pool_count;
	/* connections that the service thread shall serve, with a reference each; also read without
	 * the lock, as a hint */
	struct shm_conn *_Atomic pending_first;
};

/* --- engine.c --- */

int shm_engine_create(struct soft_adapter *adapter, struct shm_engine **engine_out);
/* Ends the service thread and drops the adapter; see transport_ops.ia_close. */
void shm_engine_close(struct shm_engine *engine);
void shm_engine_get(struct shm_engine *engine);
void shm_engine_put(struct shm_engine *engine);

/* Wakes the service thread. */
void shm_engine_kick(struct shm_engine *engine);
/* Has the service thread call core_srq_serve_all. */
void shm_engine_serve_srqs(struct shm_engine *engine);
/* Has the service thread check the deadlines at that time (core_now_ns) or earlier. */
void shm_engine_lower_deadline(struct shm_engine *engine, uint64_t deadline_ns);

/* --- table.c: connections, listeners and processes of peers by number --- */

/* The engine is destroyed. */
void shm_engine_free_slots(struct shm_engine *engine);

/* Takes no reference; the object removes its number before it is freed. */
int shm_engine_add(struct shm_engine *engine, enum shm_slot_kind kind, void *object,
		   uint64_t *id_out);
void shm_engine_remove(struct shm_engine *engine, uint64_t id);
/* The object of that number with a reference, or NULL. */
void *shm_engine_find(struct shm_engine *engine, uint64_t id, enum shm_slot_kind *kind_out);
/*
 * The next connection at or behind *index for which `wanted` returns true, with a reference; NULL
 * at the end. `wanted` runs with the engine locked.
 */
struct shm_conn *shm_engine_next_conn(struct shm_engine *engine, uint32_t *index,
				      bool (*wanted)(const struct shm_conn *, uint64_t),
				      uint64_t argument);
/* The next connection on the list of shm_conn_serve_later, with a reference; NULL: none. */
struct shm_conn *shm_engine_next_pending(struct shm_engine *engine);
/* Computes the earliest deadline of all connections again. */
void shm_engine_update_deadline(struct shm_engine *engine);
/* How often that way was taken, by all connections that ever existed. */
uint64_t shm_engine_count(struct shm_engine *engine, enum shm_counter counter);

/* --- poll.c --- */

/* The transport's slots progress and arm. */
int shm_engine_progress(struct shm_engine *engine);
int shm_engine_arm(struct shm_engine *engine);
/*
 * A poll on the fast path (core/ep/data_path.h), of the connection that the last completion of the
 * EVD came from. SLOW: call shm_poll_any with the endpoint, which is locked, or NULL.
 */
enum transport_poll shm_poll_last(struct core_handle *cell, DAT_EVENT *event,
				  struct core_ep **ep_out);
/* The rest of such a poll. */
__attribute__((noinline)) enum transport_poll shm_poll_any(struct shm_engine *engine,
							   struct core_handle *cell,
							   DAT_EVENT *event, struct core_ep *ep);
/* Arms one connection of the list. False: it has work. */
bool shm_engine_arm_one(struct shm_engine *engine, struct shm_conn *conn);
/* Polls every active connection once; returns how much was done. */
int shm_engine_poll_all(struct shm_engine *engine);

/* --- keys.c: waiting for copies of peers --- */

/*
 * Does any peer copy through the key, which is dead already? Never blocks. A peer that is found
 * copying by one call after the other for longer than the peer time-out loses its connection.
 */
bool shm_engine_is_key_in_use(struct shm_engine *engine, uint32_t key);
/* Waits until no peer copies through the key any more; see transport_ops.lmr_destroy. */
void shm_engine_wait_key(struct shm_engine *engine, uint32_t key);
/* Waits until `is_copying` returns false or the peer is dead (true), or until that time (false). */
bool shm_wait_copies(struct shm_conn *conn, bool (*is_copying)(const struct shm_conn *, uint64_t),
		     uint64_t argument, uint64_t limit_ns);

#endif
