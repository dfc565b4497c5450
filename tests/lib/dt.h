// SPDX-License-Identifier: BSD-2-Clause
/*
 * The test harness: what every conformance and system test needs around the public API. All
 * functions assert (cmocka) that they succeed, so that the code of a test is about its requirement
 * only. Waits are bounded by DT_WAIT_US; nothing sleeps to synchronise.
 *
 * The adapter is soft-lo, or what DAT_TEST_ADAPTER names. Buffers come from a sealed memory file
 * when DAT_COPY is "map" (so that the mapped copy path is taken), else from private memory.
 */
#ifndef TESTS_DT_H
#define TESTS_DT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>
#include <dat/udat.h>

#ifdef __has_feature
#define DT_HAS(feature) __has_feature(feature)
#else
#define DT_HAS(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || DT_HAS(thread_sanitizer)
#define DT_TSAN 1
#else
#define DT_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || DT_HAS(address_sanitizer)
#define DT_ASAN 1
#else
#define DT_ASAN 0
#endif
#define DT_SLOW (DT_ASAN || DT_TSAN) /* a build with a sanitizer, several times slower */

/*
 * For functions that read memory while the library may write it, as consumers of one-sided
 * transfers do. That is no race, but the thread sanitizer cannot know.
 */
#if defined(__clang__)
#define DT_UNORDERED __attribute__((no_sanitize("thread")))
#else
#define DT_UNORDERED __attribute__((no_sanitize_thread))
#endif

/*
 * For the function of a thread that is cancelled: pthread_cleanup_push(dt_stack_left, NULL). The
 * address sanitizer does not see that the thread leaves its functions, and would take the end of
 * the thread for an access to their variables.
 */
void dt_stack_left(void *unused);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A handle value that no provider ever issued: aligned, but not the address of an object. */
#define DT_NEVER_A_HANDLE ((DAT_HANDLE)(uintptr_t)0x7f0000000040)

#define DT_WAIT_US 20000000u /* longest wait for an event that must arrive */
#define DT_QUIET_US 20000u   /* how long an EVD is watched for an event that must not arrive */

/* --- return codes --- */

/* The call must return DAT_SUCCESS; prints the decoded code and the call otherwise. */
#define dt_ok(call) dt_check_ok((call), #call, __FILE__, __LINE__)
/* A whole return code. */
#define DT_ERROR(type, subtype)                                                                    \
	((DAT_RETURN)DAT_CLASS_ERROR | (DAT_RETURN)(type) | (DAT_RETURN)(subtype))
/* The call must return exactly this code. */
#define dt_returns(call, code) dt_check_code((call), (code), #call, __FILE__, __LINE__)
/* The call must fail with this type and this subtype (GEN-09). */
#define dt_fails_with(call, type, subtype)                                                         \
	dt_check_code((call), DT_ERROR(type, subtype), #call, __FILE__, __LINE__)
/*
 * The same where no row states a subtype: any will do. DAT_QUEUE_EMPTY comes without the class.
 */
#define dt_fails(call, type) dt_check_fails((call), (type), #call, __FILE__, __LINE__)

void dt_check_ok(DAT_RETURN ret, const char *call, const char *file, int line);
void dt_check_code(DAT_RETURN ret, DAT_RETURN code, const char *call, const char *file, int line);
void dt_check_fails(DAT_RETURN ret, DAT_RETURN type, const char *call, const char *file, int line);
const char *dt_strerror(DAT_RETURN ret); /* "DAT_INVALID_STATE / DAT_INVALID_STATE_EP_CONNECTED" */

/* --- adapter --- */

struct dt_ia {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
};

const char *dt_adapter(void);
/*
 * Of dt_adapter(): a device behind rdma-core, and one that speaks iWARP. dt_expect_conn and
 * dt_expect_dto then accept what the specification allows such a device: DISCONNECTED in place of
 * BROKEN where no completion shows the error (CONN-EVT-40, EP-STATE-44); over iWARP any error in
 * place of REMOTE_ACCESS (LMR-USE-13), and success or a flush in place of REMOTE_RESPONDER
 * (DTO-116).
 */
bool dt_is_verbs(void);
bool dt_is_iwarp(void);
void dt_ia_open(struct dt_ia *ia);  /* opens, queries, makes one protection zone */
void dt_ia_close(struct dt_ia *ia); /* frees the zone, closes gracefully (must succeed) */
void dt_ia_abort(struct dt_ia *ia); /* closes abruptly */
int dt_ia_setup(void **state);
int dt_ia_teardown(void **state);
/* A test whose state is an open struct dt_ia. */
#define dt_ia_test(f) cmocka_unit_test_setup_teardown(f, dt_ia_setup, dt_ia_teardown)

/* --- memory --- */

struct dt_buf {
	unsigned char *p;
	size_t len;
	size_t mapped; /* bytes behind p that were allocated */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

void *dt_mem_alloc(size_t len); /* zeroed, page aligned; shared and sealed when DAT_COPY=map */
void dt_mem_free(void *p, size_t len);
/* Allocates and registers; dt_buf_free undoes both. */
void dt_buf_create(struct dt_ia *ia, DAT_PZ_HANDLE pz, struct dt_buf *buf, size_t len,
		   DAT_MEM_PRIV_FLAGS priv);
void dt_buf_free(struct dt_buf *buf);
/* Registers memory of the caller. */
void dt_lmr_create(struct dt_ia *ia, DAT_PZ_HANDLE pz, void *p, size_t len, DAT_MEM_PRIV_FLAGS priv,
		   struct dt_buf *buf_out);
void dt_fill(void *p, size_t len, uint32_t seed);		 /* a pattern of that seed */
void dt_check_pattern(const void *p, size_t len, uint32_t seed); /* asserts that pattern */
void dt_check_bytes(const void *p, size_t len, unsigned char value);

DAT_LMR_TRIPLET dt_seg(const struct dt_buf *buf, size_t offset, size_t len);
DAT_RMR_TRIPLET dt_rseg(const struct dt_buf *buf, size_t offset, size_t len);
DAT_DTO_COOKIE dt_cookie(uint64_t value);

/* --- EVDs --- */

DAT_EVD_HANDLE dt_evd_create(struct dt_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags);
/* The next event, waiting up to DT_WAIT_US (dat_evd_wait; falls back to polling when refused). */
DAT_EVENT dt_event(DAT_EVD_HANDLE evd);
/* dt_event by polling dat_evd_dequeue only. */
DAT_EVENT dt_event_poll(DAT_EVD_HANDLE evd);
void dt_no_event(DAT_EVD_HANDLE evd);	 /* empty now (dequeue) */
void dt_stays_empty(DAT_EVD_HANDLE evd); /* empty for DT_QUIET_US */
void dt_drain(DAT_EVD_HANDLE evd);

/* --- endpoints and connections --- */

struct dt_ep {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv, request, conn;
};

/* Makes three EVDs of 256 (or attr's queue sizes + 16) and an endpoint; attr NULL: the defaults. */
void dt_ep_create(struct dt_ia *ia, DAT_PZ_HANDLE pz, const DAT_EP_ATTR *attr,
		  struct dt_ep *ep_out);
void dt_ep_free(struct dt_ep *ep); /* endpoint and EVDs; any state that permits it */
void dt_ep_attr(struct dt_ia *ia, DAT_EP_ATTR *attr_out); /* valid attributes to start from */
DAT_EP_STATE dt_ep_state(DAT_EP_HANDLE ep);
/* The code of a call that an endpoint in that state refuses for its state. */
DAT_RETURN dt_state_error(DAT_EP_STATE state);

struct dt_listener {
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL qual;
};
/*
 * A qualifier that no process uses or will choose, even after its release: a port that the kernel
 * has chosen once may be given to another test at any time.
 */
DAT_CONN_QUAL dt_unused_qual(void);
void dt_listen(struct dt_ia *ia, struct dt_listener *listener_out);
void dt_unlisten(struct dt_listener *listener);
DAT_CR_HANDLE dt_request(struct dt_listener *listener); /* the next connection request */
/* Starts an attempt without private data and with an infinite timeout. */
void dt_connect(struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_CONN_QUAL qual);

/* Waits for that connection event of that endpoint; returns it. */
DAT_EVENT dt_expect_conn(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number);
/* Waits for a DTO completion and checks endpoint, cookie, status; with success also the length
 * unless it is DT_ANY_LEN. Returns the event. */
#define DT_ANY_LEN UINT64_MAX
DAT_EVENT dt_expect_dto(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
			DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len);

/* Two connected endpoints of one adapter instance (a is active, b passive), in one process. */
struct dt_pair {
	struct dt_ia ia;
	struct dt_ep a, b;
};
void dt_pair_open(struct dt_pair *pair); /* default attributes */
/* attributes and zone per side; NULL: defaults, the adapter's zone */
void dt_pair_open_with(struct dt_pair *pair, const DAT_EP_ATTR *a, const DAT_EP_ATTR *b);
void dt_pair_close(struct dt_pair *pair); /* disconnects, frees, closes gracefully */
int dt_pair_setup(void **state);
int dt_pair_teardown(void **state);
/* A test whose state is an open struct dt_pair. */
#define dt_pair_test(f) cmocka_unit_test_setup_teardown(f, dt_pair_setup, dt_pair_teardown)
/* Connects two unconnected endpoints of one instance (own listener). */
void dt_ep_link(struct dt_ia *ia, struct dt_ep *a, struct dt_ep *b);
/*
 * With DAT_COPY=map: reads `from` to `to`, one byte each, until the region of `from` is mapped, and
 * restores the byte. So the RDMA after it uses the mapping, however busy the machine is. Else
 * nothing. The limit is that of copy_path_awaits_mapping.
 */
void dt_map(const struct dt_ep *ep, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from);

/* --- a second process --- */

/*
 * A child process that runs fn(peer, arg) with a fresh libdat state, and a channel of fixed-size
 * messages. A failing assertion in the child makes dt_peer_join() fail in the parent. The child is
 * killed when the parent dies. Start it before the parent opens an adapter: the thread sanitizer
 * may crash if the child of a process that has threads creates threads.
 */
struct dt_peer {
	pid_t pid; /* of the child; 0 in the child */
	int fd;
};
void dt_peer_start(struct dt_peer *peer, void (*fn)(struct dt_peer *peer, void *arg), void *arg);
void dt_peer_send(struct dt_peer *peer, const void *data, size_t len);
void dt_peer_recv(struct dt_peer *peer, void *data, size_t len); /* asserts within DT_WAIT_US */
void dt_peer_sync(struct dt_peer *peer); /* both sides call it; returns when both did */
void dt_peer_kill(struct dt_peer *peer); /* SIGKILL, and reap */
void dt_peer_stop(struct dt_peer *peer); /* SIGSTOP; returns when it is stopped */
void dt_peer_continue(struct dt_peer *peer);
void dt_peer_join(struct dt_peer *peer); /* must end by itself with success */

/* --- threads and time --- */

/*
 * PTHREAD_CANCEL_ASYNCHRONOUS, where a thread can be ended at any instruction: in the thread
 * sanitizer it would be ended inside the sanitizer's own runtime, with the locks of that held.
 */
#define DT_CANCEL_ANYWHERE (DT_TSAN ? PTHREAD_CANCEL_DEFERRED : PTHREAD_CANCEL_ASYNCHRONOUS)

uint64_t dt_now_us(void); /* monotonic */
/* Has the thread of this process slept in several samples? They exclude a short wait for a lock. */
bool dt_thread_is_blocked(int tid);
/* Polls cond(arg) until true; asserts within DT_WAIT_US. */
void dt_until(bool (*cond)(void *arg), void *arg);

#endif
