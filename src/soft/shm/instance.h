// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data of the engine of one adapter instance: its connections, its service points, its service
 * thread. engine/ drives it; the lower folders find and mark things here.
 *
 * Locks. The lock of an endpoint guards the data of its connection. An arriving connection that the
 * core does not know yet belongs to the service thread. The engine's own lock guards the
 * list below and is a leaf (rank 9): nothing is called with it held. The attention has all
 * connections and listeners (soft/attention.h).
 *
 * Progress. Every established connection is either armed or disarmed. If it is armed, the peer
 * sends one packet when it publishes something, which wakes the service thread. If it is disarmed,
 * it is on the list of active connections: threads that poll check it, and the service thread
 * checks every few milliseconds that they do. docs/shm.md describes the whole protocol.
 */
#ifndef SHM_INSTANCE_H
#define SHM_INSTANCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/transport.h"
#include "core/event/evd_queue.h"
#include "soft/attention.h"
#include "soft/driven.h"
#include "soft/soft.h"
#include "soft/thread.h"
#include "soft/shm/bytes/wire.h"

struct shm_conn;

/* How often each way of RDMA was taken, which tests look at. */
enum shm_counter {
	SHM_COUNT_MAP,	/* RDMA by memory that is mapped here */
	SHM_COUNT_CMA,	/* RDMA by process_vm_readv and process_vm_writev */
	SHM_COUNT_RING, /* RDMA through the ring */
	SHM_COUNT_END,
};

#define SHM_DIR_NAME_MAX 96u /* including the terminating null */

/* The folder that holds the names of an adapter. */
struct shm_dir {
	int fd;		   /* listed; -1: there is none */
	uint64_t netns;	   /* number of the network namespace, if it is part of the names; else 0 */
	const char *given; /* the directory that it is in; "": the default one */
};

/* The name of a listening socket. */
struct shm_dir_file {
	char name[SHM_DIR_NAME_MAX];
	dev_t device;
	ino_t inode;
};

/* A service point: connect/listen.c drives it. */
struct shm_listener {
	struct soft_attended attended; /* references, events, deadline */
	struct shm_engine *engine;
	struct core_ref sp;
	DAT_CONN_QUAL qual;
	pthread_mutex_t lock; /* leaf; guards fd */
	int fd;
	struct shm_dir_file file; /* its name */
	int port_fd;		  /* holds the port that is the qualifier; -1: it was given */
};

/* Polls in a millisecond by a thread that polls in a loop: it makes thousands. */
#define SHM_DRIVEN_POLLS 512u

/* Polls in vain between two stores of the pulse. */
#define SHM_PULSE_POLLS 4u

struct shm_engine {
	/* constant after creation */
	struct core_ia *ia; /* must not be dereferenced once `is_stopping` is set */
	struct soft_adapter *adapter;
	struct core_settings settings;
	uint32_t private_max;	       /* longest private data of the adapter */
	struct shm_dir dir;	       /* where service points have their names */
	uint8_t token[SHM_TOKEN_SIZE]; /* a peer that can read it can read this process */
	struct core_service service;

	_Atomic uint32_t refs;	  /* adapter, thread, connections */
	_Atomic bool is_stopping; /* ia_close was called */
	_Atomic bool is_serving;  /* core_srq_serve_all was requested */
	_Atomic bool has_more;	  /* a pass ended because its budget was used up */
	struct soft_attention attention;
	struct soft_driven driven; /* by polls of threads of the consumer */
	_Atomic uint64_t *pulse;   /* see soft_keys_pulse */
	_Atomic uint32_t vain_polls;
	struct shm_conn *_Atomic armed_last; /* the connection that was armed last, if it lives */
	_Atomic bool is_unattended;	     /* the last poller has armed everything and sleeps */
	_Atomic uint32_t active_count;	     /* written with the engine locked; else a hint */
	_Atomic int32_t disarmed;	     /* connections that are not armed */
	_Atomic uint64_t counters[SHM_COUNT_END]; /* relaxed: some may be lost */

	struct core_lock lock; /* leaf; guards the rest */
	uint32_t conn_count;
	uint32_t active_room;	  /* at least `conn_count` */
	struct shm_conn **active; /* in the order of their turns, with gaps */
	uint32_t active_end;
	uint32_t active_next; /* whose turn it is */
};

/* --- its life and its thread (engine/engine.h makes and closes it) --- */

void shm_engine_get(struct shm_engine *engine);
void shm_engine_put(struct shm_engine *engine);

/* Has the service thread call core_srq_serve_all. */
void shm_engine_serve_srqs(struct shm_engine *engine);

/* --- its connections and listeners --- */

/* Makes room for one more connection on the list of active ones, and has it attended: 0 or -ENOMEM.
 */
int shm_engine_add(struct shm_engine *engine, struct shm_conn *conn);
void shm_engine_remove(struct shm_engine *engine, struct shm_conn *conn);
/* The connection that was armed last, with a reference; NULL: it is gone. A hint. */
struct shm_conn *shm_engine_armed_last(struct shm_engine *engine);
/*
 * The next connection after that one (NULL: the first) for which `wanted` returns true, with a
 * reference; NULL at the end. Drops the caller's reference to `after`. `wanted` runs with the
 * attention locked.
 */
struct shm_conn *shm_engine_next_conn(struct shm_engine *engine, struct shm_conn *after,
				      bool (*wanted)(const struct shm_conn *, uint64_t),
				      uint64_t argument);
void shm_listener_put(struct shm_listener *listener);
static inline struct shm_listener *shm_listener_of(struct soft_attended *attended)
{
	return (struct shm_listener *)((char *)attended - offsetof(struct shm_listener, attended));
}

#endif
