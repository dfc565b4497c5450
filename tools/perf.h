// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of dat_perf, and what its two sides agree on. All numbers on the wire are big-endian.
 *
 * The client leads and brings the whole plan; the server takes it from the hello. There is one
 * control connection, over which one side asks and the other answers, and beside it the
 * connections that are measured, which carry nothing else. Client, per test and size:
 *
 *   RUN       -> the server posts its Receives -> ANSWER
 *   (both sides transfer warm_up + count times per endpoint)
 *   END       -> ANSWER with the number of wrong transfers that the server found
 *
 * IDLE and CYCLES announce connection requests to come; USAGE and SLEEP ask for figures. In the
 * tests reg and reg-kept the client tells the peer where to write by a struct perf_fragment, sent
 * over the connection that is measured.
 */
#ifndef TOOLS_PERF_H
#define TOOLS_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"
#include "stats.h"

#define PERF_MAGIC 0x44505246u /* "DPRF" */
#define PERF_VERSION 2u
#define PERF_SIZE_LIMIT (UINT64_C(64) << 20)
#define PERF_COUNT_LIMIT UINT64_C(1000000000000)
#define PERF_WINDOW_LIMIT 8192u
#define PERF_ENDPOINTS_LIMIT 4096u
#define PERF_THREADS_LIMIT 256u
#define PERF_IDLE_LIMIT 16000u
#define PERF_MAPPINGS_LIMIT 1000000u
#define PERF_BYTES_LIMIT (UINT64_C(4) << 30) /* of all buffers of one side */
#define PERF_SIZES_MAX 64u

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
	bool is_halved;	   /* the time of one way is half of what is measured */
	bool is_one_sided; /* the server posts nothing while it runs */
	bool is_apart;	   /* neither of `lat` nor of `bw` */
};

extern const struct perf_test_info perf_tests[PERF_TESTS];

/* The tests in which the client registers memory for the peer to write to. */
static inline bool perf_is_fragment(enum perf_test test)
{
	return test == PERF_REG || test == PERF_REG_KEPT;
}

/* What the client wants and the server has to know. */
struct perf_plan {
	uint64_t nonce;	   /* tells the connections of this client from those of others */
	uint64_t size_max; /* of all transfers to come */
	uint32_t window;   /* requests in flight per endpoint */
	uint32_t signal;   /* every that many requests one completion is raised */
	uint32_t endpoints;
	uint32_t threads;
	uint32_t idle;
	bool is_waiting; /* dat_evd_wait instead of dat_evd_dequeue */
	bool is_shared;	 /* buffers in a sealed memory file */
	bool is_checked;
	bool is_target_polling; /* the target of RDMA looks at an event dispatcher meanwhile */
};

enum perf_format {
	PERF_TEXT,
	PERF_JSON,
	PERF_CSV,
};

struct perf_options {
	const char *adapter;
	const char *host; /* client: NULL is the adapter's own address */
	const char *cpus; /* NULL: not bound */
	uint64_t qualifier;
	uint32_t timeout_ms;
	bool is_server;
	bool is_once;
	enum perf_format format;
	bool is_test[PERF_TESTS];
	uint64_t sizes[PERF_SIZES_MAX];
	unsigned size_count;
	uint64_t count; /* per endpoint; 0: as many as fit into the duration */
	double duration_s;
	uint64_t warm_up;
	bool has_warm_up;  /* given, not the default */
	uint32_t idle;	   /* beside transfers; plan.idle is the most of all tests */
	uint32_t mappings; /* that the client has besides its own */
	struct perf_plan plan;
};

/* --- on the wire --- */

/* What a connection is for. */
enum perf_role {
	PERF_ROLE_CONTROL = 1,
	PERF_ROLE_DATA = 2,
	PERF_ROLE_IDLE = 3,
	PERF_ROLE_CYCLE = 4,
};

enum perf_flag {
	PERF_FLAG_WAITING = 1,
	PERF_FLAG_SHARED = 2,
	PERF_FLAG_CHECKED = 4,
	PERF_FLAG_TARGET_POLLS = 8,
};

/* Private data of a request: the plan for the control connection, an address for the others. */
struct perf_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t role;
	uint32_t index; /* of the endpoint */
	uint64_t nonce;
	union {
		struct {
			uint64_t size_max;
			uint32_t window;
			uint32_t signal;
			uint32_t endpoints;
			uint32_t threads;
			uint32_t idle;
			uint32_t flags;
		} plan;
		struct {
			uint64_t address;
			uint32_t rmr_context;
		} target;
	};
};

/* Private data of the answer. */
struct perf_welcome {
	uint32_t magic;
	uint32_t version;
	uint64_t address;
	uint32_t rmr_context;
	uint32_t reserved;
};

enum perf_control_type {
	PERF_CONTROL_RUN = 1,
	PERF_CONTROL_END = 2,
	PERF_CONTROL_IDLE = 3,	 /* count connections follow; 0: close them all */
	PERF_CONTROL_CYCLES = 4, /* count connections follow, each ended by the client */
	PERF_CONTROL_USAGE = 5,	 /* answer: what the server holds, as struct perf_usage */
	PERF_CONTROL_SLEEP = 6,	 /* two answers: now; then processor time used in count us */
	PERF_CONTROL_ANSWER = 7,
};

struct perf_control {
	uint32_t magic;
	uint32_t type;
	uint32_t test;
	uint32_t reserved;
	uint64_t size;
	uint64_t count;	  /* per endpoint */
	uint64_t warm_up; /* per endpoint */
	uint64_t values[3];
};

/* Where the peer is to write: a message of the tests reg and reg-kept. */
struct perf_fragment {
	uint64_t address;
	uint32_t rmr_context;
	uint32_t reserved;
};

_Static_assert(sizeof(struct perf_hello) == 56, "layout on the wire");
_Static_assert(sizeof(struct perf_welcome) == 24, "layout on the wire");
_Static_assert(sizeof(struct perf_control) == 64, "layout on the wire");
_Static_assert(sizeof(struct perf_fragment) == 16, "layout on the wire");

/* --- one side --- */

struct perf_endpoint {
	DAT_EP_HANDLE handle;
	uint32_t index;		/* in its worker */
	unsigned char *out;	/* source of Sends and Writes, sink of Reads */
	unsigned char *in;	/* where Receives and the peer's Writes go */
	DAT_RMR_TRIPLET remote; /* the peer's `in` */
	/* Receives: posted and completed since the connection began; modulo in_slots the slot */
	uint64_t recv_posted;
	uint64_t recv_done;
	uint64_t sent;	  /* numbers the patterns of Sends, as recv_done does over there */
	uint64_t written; /* numbers those of Writes; advanced on both sides after a run */
	/* within a run */
	uint64_t posted;
	uint64_t retired;
	uint32_t unsignalled; /* requests since the last that was signalled */
};

/*
 * One thread with event dispatchers and endpoints of its own; nothing in it is touched by another
 * thread while it runs, except `progress`.
 */
struct perf_worker {
	struct session session; /* the peer's, with the worker's own event dispatchers */
	const struct perf_plan *plan;
	struct session_buffer out;
	struct session_buffer in;
	struct perf_endpoint *endpoints;
	uint32_t endpoint_count;
	/* slots of an endpoint; all of them are the same bytes unless data are checked */
	uint64_t slot_len;
	uint32_t out_slots;
	uint32_t in_slots;
	bool is_waiting; /* in this run */
	uint64_t wrong;
	uint64_t start_ticks;
	uint64_t end_ticks;
	/* for perf_look() */
	uint64_t look_progress;
	uint64_t look_ns;
	struct stats stats;
	_Alignas(64) _Atomic uint64_t progress; /* rounds or completions so far */
};

struct perf_run {
	enum perf_test test;
	uint64_t size;
	uint64_t count;
	uint64_t warm_up;
	bool is_leader; /* the client */
};

struct perf_peer {
	struct session session;	    /* with the control connection's event dispatchers */
	DAT_EVD_HANDLE connect_evd; /* of all other connections */
	DAT_EP_HANDLE control;
	struct session_buffer control_buffer; /* two Receives, one Send */
	uint64_t space_before;		      /* address space, before the adapter was opened */
	struct perf_plan plan;
	struct perf_worker *workers; /* plan.threads of them */
	struct session idle_session; /* event dispatchers of the idle endpoints */
	DAT_EP_HANDLE *idle;
	uint32_t idle_count;
};

struct perf_server_address {
	struct sockaddr_storage address;
	DAT_CONN_QUAL qualifier;
};

/* What one side holds. */
struct perf_usage {
	uint64_t pss_bytes;   /* its share of all pages */
	uint64_t shmem_bytes; /* of them in shared memory */
	uint64_t space_bytes; /* address space */
};

/* Everything that is printed about one test. */
struct perf_result {
	enum perf_test test;
	uint64_t size;
	uint64_t count; /* over all endpoints */
	uint64_t wrong;
	double elapsed_s;
	const struct stats *stats; /* in ticks; NULL: none were taken */
	double client;		   /* bytes per endpoint, or us of processor time per s */
	double server;
	double client_shared;
	double server_shared;
	double client_space; /* per endpoint */
	double server_space;
};

/* perf_options.c */
int perf_options_parse(int argc, char **argv, struct perf_options *options);

/* perf_peer.c: the control connection and what belongs to both sides. */
int perf_peer_open(struct perf_peer *peer, const struct perf_options *options);
void perf_peer_close(struct perf_peer *peer);
/* Frees all that belongs to one client; the adapter stays open. */
void perf_peer_reset(struct perf_peer *peer);
int perf_control_prepare(struct perf_peer *peer);
int perf_control_send(struct perf_peer *peer, const struct perf_control *control);
int perf_control_receive(struct perf_peer *peer, uint32_t type, struct perf_control *control_out);
/*
 * Server: takes the next connection request, which must be of that role and of our client; others
 * are turned away meanwhile. Says so on -ETIMEDOUT.
 */
int perf_request_take(struct perf_peer *peer, enum perf_role role, DAT_CR_HANDLE *request_out,
		      struct perf_hello *hello_out);
/* Client: one question and its answer, which replaces it. */
int perf_control_ask(struct perf_peer *peer, struct perf_control *control);

/* perf_worker.c: workers, their endpoints and buffers, and running them. */
int perf_workers_create(struct perf_peer *peer);
void perf_workers_destroy(struct perf_peer *peer);
/* The endpoint with that number over all workers, which share them out round robin. */
struct perf_endpoint *perf_endpoint_at(struct perf_peer *peer, uint32_t index,
				       struct perf_worker **worker_out);
/* Brings each endpoint's posted Receives up to what the test needs, and clears target memory. */
int perf_workers_prepare(struct perf_peer *peer, const struct perf_run *run);
/* Runs all workers to their end, each in a thread of its own when there are several. */
int perf_workers_run(struct perf_peer *peer, const struct perf_run *run);
/* Server: verifies what one-sided operations have left in memory. */
void perf_workers_verify(struct perf_peer *peer, const struct perf_run *run);

/* perf_latency.c, perf_register.c, perf_bandwidth.c: the loops that are timed. */
int perf_latency_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count);
int perf_register_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count);
int perf_bandwidth_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count);

/* perf_idle.c: connections that only exist, cycles of connections, and what a process uses. */
int perf_idle_prepare(struct perf_peer *peer);
void perf_idle_release(struct perf_peer *peer);
int perf_idle_accept(struct perf_peer *peer, uint32_t count);
int perf_idle_connect(struct perf_peer *peer, const struct perf_server_address *server,
		      uint32_t count);
void perf_idle_close(struct perf_peer *peer);
int perf_cycles_accept(struct perf_peer *peer, uint64_t count);
int perf_cycles_connect(struct perf_peer *peer, const struct perf_server_address *server,
			uint64_t count, struct stats *stats);
int perf_usage_memory(struct perf_usage *usage_out);
int perf_usage_space(uint64_t *bytes_out);
/* The address space that came since the adapter was opened, without what is kept for handles. */
int perf_usage_adapter(const struct perf_peer *peer, uint64_t *bytes_out);
/* That many mappings which no call of the library is about; they stay until the process ends. */
int perf_mappings_make(uint32_t count);
/* Sleeps; the processor time that the whole process has used meanwhile. */
uint64_t perf_usage_sleep(uint64_t sleep_us);

/* perf_hello.c: private data. */
void perf_hello_plan(struct perf_hello *hello_out, const struct perf_plan *plan);
void perf_hello_target(struct perf_hello *hello_out, enum perf_role role,
		       const struct perf_peer *peer, uint32_t index, uint64_t address,
		       DAT_RMR_CONTEXT context);
/* Checks and converts to host order: 0, or -EPROTO without a word. */
int perf_hello_read(const struct session_private *data, struct perf_hello *hello_out);
/* Every number of a plan is within its limits. */
bool perf_plan_is_good(const struct perf_plan *plan);
void perf_plan_read(const struct perf_hello *hello, struct perf_plan *plan_out);
void perf_welcome_make(struct perf_welcome *welcome_out, uint64_t address, DAT_RMR_CONTEXT context);
int perf_welcome_read(const struct session_private *data, DAT_RMR_TRIPLET *remote_out);

/* perf_output.c */
void perf_output_begin(const struct perf_options *options, const struct perf_peer *peer);
void perf_output_result(const struct perf_options *options, const struct perf_result *result);
void perf_output_end(const struct perf_options *options, uint64_t wrong, bool is_complete);

/* perf_progress.c: the line on a terminal while a run takes long. */
struct perf_progress;
struct perf_progress *perf_progress_start(struct perf_peer *peer, const struct perf_run *run);
void perf_progress_stop(struct perf_progress *progress);

int perf_client_run(const struct perf_options *options);
int perf_server_run(const struct perf_options *options);

#endif
