// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data path in one process, for counting instructions: connects two endpoints of one adapter,
 * so that the polls of one thread drive both, and makes COUNT operations of one kind.
 *
 *   paths TEST COUNT [ADAPTER]
 *
 *   send    post a Send of 8 bytes, dequeue its Receive, post the next, dequeue its completion
 *   write   post an RDMA Write of 8 bytes into a sealed memory file, dequeue its completion
 *   read    the same with an RDMA Read
 *   poll    poll an empty EVD
 *
 * bench/compare runs this under callgrind, which counts in paths_measure only. Prints the number of
 * polls that found nothing: those of `poll`, and mostly one before the completion of a Send.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "session.h"

#define PATHS_LEN 8u
#define PATHS_ROOM 4096u
#define PATHS_RECVS 4u
#define PATHS_EVD_LEN 64
#define PATHS_TIMEOUT_MS 60000u
#define PATHS_NS_PER_S 1000000000u
/* enough for the adapter to have chosen its copy path */
#define PATHS_WARM_UP 2000u
#define PATHS_PAUSE_EACH 64u /* operations of its first half */
/* Between two of them, as a program that polls: else the service thread would be woken. */
#define PATHS_POLLS 64u

struct paths {
	struct session from;
	struct session to;
	DAT_EP_HANDLE from_ep;
	DAT_EP_HANDLE to_ep;
	struct session_buffer source;
	struct session_buffer target;
	DAT_RMR_TRIPLET remote;
	uint64_t empty_polls;
};

/* Polls for the next completion. */
static int paths_take(struct paths *paths, DAT_EVD_HANDLE evd)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;
	DAT_RETURN code;

	while ((code = dat_evd_dequeue(evd, &event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(code) != DAT_QUEUE_EMPTY)
			return tool_call_failed("dat_evd_dequeue", code);
		if (tool_is_stopped)
			return -EINTR;
		paths->empty_polls++;
	}
	data = &event.event_data.dto_completion_event_data;
	if (event.event_number == DAT_DTO_COMPLETION_EVENT && data->status == DAT_DTO_SUCCESS)
		return 0;
	tool_complain("transfer failed: %s", tool_dto_status_text(data->status));
	return -ECONNRESET;
}

static int paths_send(struct paths *paths)
{
	int rc = session_post_send(&paths->source, 0, PATHS_LEN, paths->from_ep);

	if (rc == 0)
		rc = paths_take(paths, paths->to.recv_evd);
	if (rc == 0)
		rc = session_post_recv(&paths->target, 0, PATHS_LEN, paths->to_ep, 0);
	if (rc == 0)
		rc = paths_take(paths, paths->from.request_evd);
	return rc;
}

static int paths_write(struct paths *paths)
{
	int rc =
		session_post_rdma(&paths->source, PATHS_LEN, paths->from_ep, &paths->remote, false);

	return rc == 0 ? paths_take(paths, paths->from.request_evd) : rc;
}

static int paths_read(struct paths *paths)
{
	int rc = session_post_rdma(&paths->source, PATHS_LEN, paths->from_ep, &paths->remote, true);

	return rc == 0 ? paths_take(paths, paths->from.request_evd) : rc;
}

static int paths_poll(struct paths *paths)
{
	DAT_EVENT event;
	DAT_RETURN code = dat_evd_dequeue(paths->to.recv_evd, &event);

	paths->empty_polls++;
	return DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY ? 0 : -EPROTO;
}

/* --- the clock --- */

/*
 * The library takes a thread for one that polls if it polls often enough in a millisecond. Under
 * valgrind no thread does, so the clock is as slow as valgrind, from the warm-up on.
 */
#define PATHS_SLOWNESS 64u

static _Atomic uint64_t paths_slow_from; /* ns; 0: it is not slow yet */

static uint64_t paths_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * PATHS_NS_PER_S + (uint64_t)time->tv_nsec;
}

/* Replaces that of the C library, also in the libraries that are loaded later. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now_out)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now_out);
	uint64_t from = atomic_load(&paths_slow_from);
	uint64_t now;

	if (rc != 0 || clock != CLOCK_MONOTONIC || !from)
		return rc;
	now = from + (paths_ns(now_out) - from) / PATHS_SLOWNESS;
	now_out->tv_sec = (time_t)(now / PATHS_NS_PER_S);
	now_out->tv_nsec = (long)(now % PATHS_NS_PER_S);
	return 0;
}

static void paths_slow_down(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&paths_slow_from, paths_ns(&now));
}

/* --- set-up --- */

/* The second endpoint: the same adapter, its own EVDs. */
static int paths_second(struct paths *paths)
{
	DAT_EVD_HANDLE *const evds[] = {&paths->to.recv_evd, &paths->to.request_evd};

	paths->to = paths->from;
	for (size_t i = 0; i < sizeof(evds) / sizeof(evds[0]); i++) {
		DAT_RETURN code = dat_evd_create(paths->to.ia, PATHS_EVD_LEN, DAT_HANDLE_NULL,
						 DAT_EVD_DTO_FLAG, evds[i]);

		if (code != DAT_SUCCESS)
			return tool_call_failed("dat_evd_create", code);
	}
	return 0;
}

static int paths_established(struct session *session)
{
	DAT_EVENT event;
	int rc = session_wait(session, session->connect_evd, PATHS_TIMEOUT_MS, &event);

	if (rc != 0)
		return rc;
	return event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED ? 0 : -ECONNREFUSED;
}

static int paths_connect(struct paths *paths)
{
	struct session_private hello;
	DAT_CONN_QUAL qualifier = 0;
	DAT_CR_HANDLE request;
	DAT_PSP_HANDLE psp;
	DAT_RETURN code;
	int rc = session_listen(&paths->to, &qualifier, &psp);

	if (rc != 0)
		return rc;
	code = dat_ep_connect(paths->from_ep, (DAT_IA_ADDRESS_PTR)&paths->to.address, qualifier,
			      PATHS_TIMEOUT_MS * 1000u, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_ep_connect", code);
	rc = session_request_wait(&paths->to, PATHS_TIMEOUT_MS, &request, &hello);
	if (rc != 0)
		return rc;
	code = dat_cr_accept(request, paths->to_ep, 0, NULL);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_cr_accept", code);
	rc = paths_established(&paths->from);
	return rc == 0 ? paths_established(&paths->to) : rc;
}

static int paths_prepare(struct paths *paths, const char *adapter)
{
	int rc = session_open(&paths->from, adapter, false, PATHS_TIMEOUT_MS);

	if (rc == 0)
		rc = paths_second(paths);
	if (rc == 0)
		rc = session_endpoint_create(&paths->from, &paths->from_ep);
	if (rc == 0)
		rc = session_endpoint_create(&paths->to, &paths->to_ep);
	if (rc == 0)
		rc = session_buffer_create_shared(&paths->from, PATHS_ROOM, &paths->source);
	if (rc == 0)
		rc = session_buffer_create_shared(&paths->to, PATHS_ROOM, &paths->target);
	if (rc != 0)
		return rc;
	paths->remote = (DAT_RMR_TRIPLET){.rmr_context = paths->target.rmr_context,
					  .target_address = (uintptr_t)paths->target.data,
					  .segment_length = PATHS_LEN};
	for (unsigned i = 0; i < PATHS_RECVS && rc == 0; i++)
		rc = session_post_recv(&paths->target, 0, PATHS_LEN, paths->to_ep, 0);
	return rc == 0 ? paths_connect(paths) : rc;
}

static int paths_warm_up(struct paths *paths, int (*operation)(struct paths *))
{
	int rc = 0;

	paths_slow_down();
	for (unsigned i = 0; i < PATHS_WARM_UP && rc == 0; i++) {
		rc = operation(paths);
		for (unsigned k = 0; k < PATHS_POLLS && rc == 0; k++)
			rc = paths_poll(paths);
		/* valgrind runs one thread at a time: lets the service thread run */
		if (i % PATHS_PAUSE_EACH == 0 && i < PATHS_WARM_UP / 2)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	paths->empty_polls = 0;
	return rc;
}

/* Callgrind counts in here only. */
__attribute__((noinline, used)) static int
paths_measure(struct paths *paths, int (*operation)(struct paths *), uint64_t count)
{
	int rc = 0;

	for (uint64_t i = 0; i < count && rc == 0; i++)
		rc = operation(paths);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*operation)(struct paths *);
	} tests[] = {{"send", paths_send},
		     {"write", paths_write},
		     {"read", paths_read},
		     {"poll", paths_poll}};
	struct paths paths = {.from_ep = DAT_HANDLE_NULL};
	int (*operation)(struct paths *) = NULL;
	uint64_t count = 0;
	int rc;

	tool_name = "paths";
	for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(argv[1], tests[i].name) == 0)
			operation = tests[i].operation;
	if (!operation || argc < 3 || argc > 4 || tool_parse_number(argv[2], &count) != 0) {
		fputs("usage: paths send|write|read|poll COUNT [ADAPTER]\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	tool_catch_signals();
	rc = paths_prepare(&paths, argc > 3 ? argv[3] : "soft-lo");
	if (rc == 0)
		rc = paths_warm_up(&paths, operation);
	if (rc == 0)
		rc = paths_measure(&paths, operation, count);
	if (rc == 0)
		printf("{\"test\": \"%s\", \"count\": %" PRIu64 ", \"empty_polls\": %" PRIu64 "}\n",
		       argv[1], count, paths.empty_polls);
	session_close(&paths.from);
	session_buffer_destroy(&paths.source);
	session_buffer_destroy(&paths.target);
	return rc == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED;
}
