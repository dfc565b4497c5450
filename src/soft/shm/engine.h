// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine of one adapter instance: its connections, its service points, its service thread.
 *
 * Who guards what. The data of a connection that belongs to an endpoint are guarded by that
 * endpoint's lock; those of an arriving one that the core does not know yet belong to the service
 * thread. The engine's own lock guards the lists below and is a leaf (rank 9): nothing is
 * called with it held. Connections and listeners are found by numbers in one table, so that an
 * epoll event or a list entry of something that is gone finds nothing.
 *
 * Who moves bytes. Every connection of which news may come is either armed (the peer sends one
 * packet when it publishes something, and the service thread wakes) or disarmed and on the list of
 * active connections (whoever polls looks at it, and the service thread ticks to make sure that
 * somebody does). docs/shm.md tells the whole protocol.
 */
#ifndef SHM_ENGINE_H
#define SHM_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/transport.h"
#include "soft/soft.h"
#include "soft/shm/wire.h"

struct shm_conn;
struct shm_listener;
struct shm_pool;

/* How often each way of moving bytes was taken; for tests and people. */
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
};

struct shm_slot {
	void *object;
	uint32_t generation;
	uint8_t kind; /* enum shm_slot_kind */
	uint32_t next_free;
};

/* The number of the event descriptor in epoll; no slot has it. */
#define SHM_ID_KICK UINT64_MAX

struct shm_engine {
	/* constant after creation */
	struct core_ia *ia; /* not to be followed once `is_stopping` */
	struct soft_adapter *adapter;
	int epoll_fd;
	int kick_fd;
	struct core_settings settings;
	uint8_t token[SHM_TOKEN_SIZE]; /* what a peer reads to prove that it can read this process
					*/
	pthread_t thread;

	_Atomic uint32_t refs;	       /* adapter, thread, connections */
	_Atomic bool is_stopping;      /* ia_close was called */
	_Atomic bool is_serving;       /* core_srq_serve_all was asked for */
	_Atomic bool is_kicked;	       /* the event descriptor is set already */
	_Atomic bool has_more;	       /* a pass ended for its budget, not for lack of work */
	_Atomic uint64_t deadline_ns;  /* earliest deadline of any connection; UINT64_MAX: none */
	_Atomic uint64_t polls;	       /* calls of progress by threads of the consumer */
	_Atomic uint64_t armed_last;   /* number of the connection that was armed last; a hint */
	_Atomic bool is_left;	       /* the last of them has armed everything and sleeps */
	_Atomic uint32_t active_count; /* written with the engine locked; else a hint */
	_Atomic uint32_t posted_at;    /* place of the one that was posted to last; a hint */
	_Atomic uint32_t given_count;  /* memory files that peers were given and whose key lives */
	_Atomic int32_t disarmed; /* connections that are not armed: while there are some, tick */
	_Atomic uint64_t counters[SHM_COUNT_END]; /* of connections that are gone */
	_Atomic uint32_t kept_count;		  /* arriving ones that are kept (keep.c) */

	struct core_lock lock; /* leaf; guards the rest */
	struct shm_slot *slots;
	uint32_t slot_count;
	uint32_t slot_used;
	uint32_t free_first; /* oldest free slot + 1, 0: none */
	uint32_t free_last;
	struct shm_conn **active; /* in the order of their turns, with gaps; as long as `slots` */
	uint32_t active_end;
	uint32_t active_next;	     /* whose turn it is */
	uint32_t looks;		     /* by polls */
	uint32_t likely_next;	     /* the place behind the one that had work last */
	struct shm_conn *kept_first; /* of the active side, with a reference each (keep.c) */
	struct shm_pool *pools;	     /* ours and those of peers (pool.h) */
	uint32_t pool_count;
	/* what the service thread shall look at, with a reference each; read without the lock as a
	 * hint */
	struct shm_conn *_Atomic todo_first;
};

int shm_engine_create(struct soft_adapter *adapter, struct shm_engine **engine_out);
/* Ends the service thread and forgets the adapter; see transport_ops.ia_close. */
void shm_engine_close(struct shm_engine *engine);
void shm_engine_get(struct shm_engine *engine);
void shm_engine_put(struct shm_engine *engine);

/* The transport's slots progress and arm, and its poll on the fast path (core/ep/data_path.h). */
int shm_engine_progress(struct shm_engine *engine);
enum transport_poll shm_poll(struct shm_engine *engine, struct core_handle *cell, DAT_EVENT *event);
int shm_engine_arm(struct shm_engine *engine);

/* Makes the service thread look around soon. */
void shm_engine_kick(struct shm_engine *engine);
/* Has the service thread call core_srq_serve_all. */
void shm_engine_serve_soon(struct shm_engine *engine);
/* Makes it look not later than that (shm_now_ns). */
void shm_engine_at(struct shm_engine *engine, uint64_t deadline_ns);

/* Numbers: add takes no reference; the object removes its number before it dies. */
int shm_engine_add(struct shm_engine *engine, enum shm_slot_kind kind, void *object,
		   uint64_t *id_out);
void shm_engine_remove(struct shm_engine *engine, uint64_t id);
/* The object of that number with a reference, or NULL. */
void *shm_engine_find(struct shm_engine *engine, uint64_t id, enum shm_slot_kind *kind_out);
/*
 * The next connection at or behind *index that `wanted` says yes to, with a reference; NULL at the
 * end. `wanted` runs with the engine locked.
 */
struct shm_conn *shm_engine_next_conn(struct shm_engine *engine, uint32_t *index,
				      bool (*wanted)(const struct shm_conn *, uint64_t),
				      uint64_t argument);

void shm_engine_activate(struct shm_engine *engine, struct shm_conn *conn);
void shm_engine_deactivate(struct shm_engine *engine, struct shm_conn *conn);
/* The active connection whose turn it is, with a reference; it goes to the end of the list. */
struct shm_conn *shm_engine_rotate(struct shm_engine *engine);
/* The next connection that asked for attention (shm_conn_later), with a reference; NULL: none. */
struct shm_conn *shm_engine_take_todo(struct shm_engine *engine);
/* Finds the earliest deadline of all connections again. */
void shm_engine_earliest(struct shm_engine *engine);
/* How often that way was taken, by all connections there were. */
uint64_t shm_engine_count(struct shm_engine *engine, enum shm_counter counter);
/* One look at every active connection; returns what happened. */
int shm_engine_look(struct shm_engine *engine);

/*
 * Does anybody copy through the key, which is dead already? Never blocks. A peer that is found at
 * it in one call after the other for longer than the peer time-out loses its connection.
 */
bool shm_engine_is_key_touched(struct shm_engine *engine, uint32_t key);
/* No peer touches memory through the key any more when it returns; see transport_ops.lmr_destroy.
 */
void shm_engine_wait_key(struct shm_engine *engine, uint32_t key);
/* Waits until the peer touches nothing (`touched`), lives no more (true), or until that time
 * (false). */
bool shm_wait_untouched(struct shm_conn *conn, bool (*touched)(const struct shm_conn *, uint64_t),
			uint64_t argument, uint64_t limit_ns);

/* service.c */
void *shm_service_run(void *engine);

/* sleep.c: the transport's slots, and waking such a sleeper of the peer: was there one? */
void shm_sleep_begin(struct shm_engine *engine, struct core_sleep *sleep);
void shm_sleep_end(struct core_sleep *sleep);
bool shm_sleep_wake(struct shm_conn *conn);

/* listen.c */
int shm_listen(struct shm_engine *engine, struct core_ref sp, DAT_CONN_QUAL *qual,
	       void **listener_out);
void shm_unlisten(struct shm_engine *engine, void *listener);
/* A listening socket is readable; runs in the service thread. */
void shm_listener_event(struct shm_listener *listener);
struct core_ref shm_listener_sp(const struct shm_listener *listener);
DAT_CONN_QUAL shm_listener_qual(const struct shm_listener *listener);
/* Does it still listen? */
bool shm_listener_is_open(struct shm_listener *listener);
/* Takes an arriving connection off the list of silent ones. */
void shm_listener_forget(struct shm_conn *conn);
void shm_listener_get(struct shm_listener *listener);
void shm_listener_put(struct shm_listener *listener);
/* The local name of a service: abstract address and its length. */
struct sockaddr_un;
socklen_t shm_listen_name(const union core_sockaddr *address, DAT_CONN_QUAL qual,
			  struct sockaddr_un *name_out);

uint64_t shm_now_ns(void);

#endif
