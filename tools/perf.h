// SPDX-License-Identifier: BSD-2-Clause
/* The parts of dat_perf: options, workers and results. perf_wire.h describes the protocol. */
#ifndef TOOLS_PERF_H
#define TOOLS_PERF_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perf_wire.h"
#include "session.h"
#include "stats.h"

#define PERF_SIZE_LIMIT (UINT64_C(64) << 20)
#define PERF_DURATION_MIN_NS UINT64_C(1000000)
#define PERF_COUNT_LIMIT UINT64_C(1000000000000)
#define PERF_STOP_LIMIT (2 * PERF_COUNT_LIMIT) /* warm-up and run */
#define PERF_WINDOW_LIMIT 8192u
#define PERF_ENDPOINTS_LIMIT 4096u
#define PERF_THREADS_LIMIT 256u
#define PERF_IDLE_LIMIT 16000u
#define PERF_SEGMENTS_LIMIT 16u
#define PERF_MAPPINGS_LIMIT 1000000u
#define PERF_BYTES_LIMIT (UINT64_C(4) << 30) /* of all buffers of one side */

enum perf_test {
	PERF_SEND_LAT,
	PERF_WRITE_LAT,
	PERF_WRITE_COMP_LAT,
	PERF_READ_LAT,
	PERF_WAKE_LAT,
	PERF_POLL_LAT,
	PERF_REG,
	PERF_REG_KEPT,
	PERF_REG_FREE,
	PERF_SEND_BW,
	PERF_WRITE_BW,
	PERF_READ_BW,
	PERF_CONNECT,
	PERF_MEMORY,
	PERF_CPU_IDLE,
	PERF_SPACE,
	PERF_TESTS,
};

enum perf_kind {
	PERF_LATENCY,
	PERF_BANDWIDTH,
	PERF_CYCLE,
	PERF_USED_MEMORY,
	PERF_USED_CPU,
	PERF_USED_SPACE,
};

struct perf_test_info {
	const char *name;
	enum perf_kind kind;
	bool is_halved;	   /* measures round trips, prints half of their time */
	bool is_one_sided; /* the server posts nothing during the run */
	bool is_apart;	   /* not one of the tests that `lat` and `bw` select */
};

extern const struct perf_test_info perf_tests[PERF_TESTS];

/* The tests in which the client sends the server the target of each Write. */
static inline bool perf_is_fragment(enum perf_test test)
{
	return test == PERF_REG || test == PERF_REG_KEPT;
}

/* Can it receive into any buffer of a shared receive queue? */
static inline bool perf_test_shares(enum perf_test test)
{
	return !perf_is_fragment(test) && test != PERF_POLL_LAT;
}

/* The parameters of a client that the server needs. */
struct perf_plan {
	uint64_t nonce;	   /* identifies the connections of this client */
	uint64_t size_max; /* of all transfers */
	uint32_t window;   /* requests in flight per endpoint */
	uint32_t signal;   /* one request in this number is signalled */
	uint32_t endpoints;
	uint32_t threads;
	uint32_t idle;
	bool is_waiting;   /* dat_evd_wait instead of dat_evd_dequeue */
	bool is_shared;	   /* buffers in a sealed memory file */
	bool is_huge;	   /* private buffers in huge pages */
	bool is_srq;	   /* a shared receive queue for each thread */
	uint32_t segments; /* of each transfer and Receive */
	bool is_checked;
	bool is_target_polling; /* the target of RDMA polls an EVD */
	bool is_bidirectional;	/* the bandwidth tests */
};

/* --- one side --- */

struct perf_endpoint {
	DAT_EP_HANDLE handle;
	uint32_t index;		/* within its worker */
	unsigned char *out;	/* source of Sends and Writes, sink of Reads */
	unsigned char *in;	/* target of Receives and of the peer's Writes */
	DAT_RMR_TRIPLET remote; /* the peer's `in` */
	/* Receives since the connection was made; the slot is this modulo in_slots */
	uint64_t recv_posted;
	uint64_t recv_done;
	uint64_t sent;		 /* number of the next Send's pattern; recv_done at the peer */
	uint64_t written;	 /* number of the next Write's pattern */
	uint64_t target_written; /* the same of the peer's Writes */
	uint64_t fragments;	 /* the same in the tests of registration, on both sides */
	uint32_t ends;		 /* received, and not yet counted by an exchange */
	/* of this run */
	uint64_t posted;
	uint64_t retired;
	uint32_t unsignalled; /* requests since the last signalled one */
};

/*
 * A thread with its own EVDs and endpoints. While it runs, the thread of the control connection
 * reads `progress` and members that a run does not change, and writes `limit` and `peer_done`; the
 * worker does not use the latter. No other thread accesses any member but `progress`.
 */
struct perf_worker {
	struct session session; /* the peer's, with the worker's own EVDs */
	const struct perf_plan *plan;
	struct session_buffer out;
	struct session_buffer in;
	struct perf_endpoint *endpoints;
	uint32_t endpoint_count;
	/* per endpoint; one slot only unless data are checked */
	uint64_t slot_len;
	uint32_t out_slots;
	uint32_t in_slots;
	bool is_waiting;      /* in this run */
	bool is_message_rate; /* in this run: progress counts the messages of all endpoints */
	bool is_following;    /* in this run: it ends by `limit` */
	uint64_t wrong;
	uint64_t deadline_ticks;   /* our own transfers end then; UINT64_MAX: by their count */
	uint64_t done;		   /* our own transfers per endpoint, with the warm-up */
	uint64_t counted;	   /* without it */
	uint64_t peer_done;	   /* those of the peer */
	struct perf_peer *control; /* polled for STOP; NULL: it is not */
	DAT_SRQ_HANDLE srq;	   /* of all its endpoints, or DAT_HANDLE_NULL */
	/* with srq: a slot for each of its Receives, and those that no Receive has */
	struct session_buffer shared;
	uint32_t *free_slots;
	uint32_t free_count;
	struct perf_samples *samples; /* where each time is kept; NULL: nowhere */
	_Atomic uint64_t limit;	      /* of progress: the peer has stopped there */
	uint64_t start_ticks;
	uint64_t end_ticks;
	/* of perf_spin_check() */
	uint64_t checked_progress;
	uint64_t checked_ns;
	uint64_t looked_ns;
	struct stats stats;
	_Alignas(64) _Atomic uint64_t progress; /* complete rounds, or completions */
};

struct perf_run {
	enum perf_test test;
	uint64_t size;
	uint64_t count; /* 0: by the clock */
	uint64_t warm_up;
	uint64_t duration_ns; /* UINT64_MAX: until perf_is_enough */
	double rate;	      /* requests per second of all threads; 0: as many as can be */
	bool is_leader;	      /* the client */
};

/* Do both sides transfer at their own pace? */
static inline bool perf_is_mutual(const struct perf_plan *plan, const struct perf_run *run)
{
	return plan->is_bidirectional && perf_tests[run->test].kind == PERF_BANDWIDTH;
}

/* Does the server only answer what the client does, until STOP? */
static inline bool perf_is_following(const struct perf_plan *plan, const struct perf_run *run)
{
	return !run->is_leader && run->count == 0 && !perf_is_mutual(plan, run);
}

struct perf_peer {
	struct session session;	    /* with the control connection's EVDs */
	DAT_EVD_HANDLE connect_evd; /* of all other connections */
	DAT_EP_HANDLE control;
	struct session_buffer control_buffer; /* two Receives, one Send */
	uint32_t stops;			      /* workers of the client that have ended this run */
	uint64_t space_before;		      /* address space, before the adapter was opened */
	struct perf_plan plan;
	struct perf_worker *workers; /* plan.threads of them */
	struct session idle_session; /* EVDs of the idle endpoints */
	DAT_EP_HANDLE *idle;
	uint32_t idle_count;
};

struct perf_server_address {
	struct sockaddr_storage address;
	DAT_CONN_QUAL qualifier;
};

/* perf_peer.c: the adapter and the control connection of either side. */
struct perf_options;
int perf_peer_open(struct perf_peer *peer, const struct perf_options *options);
void perf_peer_close(struct perf_peer *peer);
/* Frees everything of one client; the adapter stays open. */
void perf_peer_reset(struct perf_peer *peer);
int perf_control_prepare(struct perf_peer *peer);
int perf_control_send(struct perf_peer *peer, const struct perf_control *control);
int perf_control_receive(struct perf_peer *peer, uint32_t type, struct perf_control *control_out);
/*
 * Server: takes the client's next connection request with that role, and rejects all others. Prints
 * a message on -ETIMEDOUT.
 */
int perf_request_take(struct perf_peer *peer, enum perf_role role, DAT_CR_HANDLE *request_out,
		      struct perf_hello *hello_out);
/* Client: sends a request and overwrites it with the answer. */
int perf_control_ask(struct perf_peer *peer, struct perf_control *control);
/* Server: takes the next STOP, if there is one or after waiting for it, and answers it. */
int perf_stop_take(struct perf_peer *peer, bool is_waiting);

/* perf_worker.c: workers with their endpoints and buffers. */
int perf_workers_create(struct perf_peer *peer);
void perf_workers_destroy(struct perf_peer *peer);
/* The endpoint with that number. Endpoints are assigned to the workers in turn. */
struct perf_endpoint *perf_endpoint_at(struct perf_peer *peer, uint32_t index,
				       struct perf_worker **worker_out);
/* Posts the Receives that the test needs, and clears target memory. */
int perf_workers_prepare(struct perf_peer *peer, const struct perf_run *run);
/* Runs all workers to the end; several workers have a thread each. */
int perf_workers_run(struct perf_peer *peer, const struct perf_run *run);
/* Server: verifies the memory that one-sided operations have written. */
void perf_workers_verify(struct perf_peer *peer, const struct perf_run *run);

/* perf_samples.c: every time of a run, in the order of measurement. */
struct perf_samples {
	uint64_t *ticks;
	size_t count;
	size_t room;
};
void perf_samples_grow(struct perf_samples *samples);

/* Set by the user: a run without an end is over. */
extern volatile sig_atomic_t perf_is_enough;

/* perf_latency.c, perf_register.c, perf_bandwidth.c: the timed loops. They add to worker->done. */
int perf_latency_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count);
int perf_register_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count);
int perf_bandwidth_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count);

struct perf_seat;
/* Serves one client after another; `seat`: perf_crowd.h. Returns the exit status. */
int perf_server_run(const struct perf_options *options, struct perf_seat *seat);

#endif
