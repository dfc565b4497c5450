// SPDX-License-Identifier: BSD-2-Clause
#include "perf_crowd.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "perf_options.h"

#define CROWD_PAUSE_NS 1000000 /* between two looks at what another process has to do */

enum seat_state {
	SEAT_CLOSED, /* does not listen yet */
	SEAT_FREE,
	SEAT_OFFERED, /* a client was sent to it */
	SEAT_TAKEN,
};

struct perf_seat {
	struct crowd *crowd;
	_Atomic uint32_t state; /* release after `qualifier` is set */
	DAT_CONN_QUAL qualifier;
	/* written by the process that sends clients */
	uint64_t offered_ns;
	pid_t pid; /* 0: it has ended */
};

/* Shared by all processes of the server. */
struct crowd {
	atomic_flag lock; /* of the members below */
	uint32_t expected;
	uint32_t waiting;
	uint32_t generation; /* of runs */
	uint32_t running;    /* clients of this run that have not reported */
	uint32_t together;   /* clients of this run */
	uint64_t count;	     /* transfers of those that have reported */
	uint64_t start_ns;

	uint32_t seat_count;
	struct perf_seat seats[PERF_CLIENTS_LIMIT];
};

static void crowd_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = CROWD_PAUSE_NS}, NULL);
}

static void crowd_lock(struct crowd *crowd)
{
	while (atomic_flag_test_and_set_explicit(&crowd->lock, memory_order_acquire))
		sched_yield();
}

static void crowd_unlock(struct crowd *crowd)
{
	atomic_flag_clear_explicit(&crowd->lock, memory_order_release);
}

/* --- a seat --- */

void perf_seat_open(struct perf_seat *seat, DAT_CONN_QUAL qualifier)
{
	seat->qualifier = qualifier;
	atomic_store_explicit(&seat->state, SEAT_FREE, memory_order_release);
}

void perf_seat_take(struct perf_seat *seat)
{
	if (seat)
		atomic_store_explicit(&seat->state, SEAT_TAKEN, memory_order_relaxed);
}

/* Begins the run if all have asked for it. */
static void crowd_begin_locked(struct crowd *crowd)
{
	if (crowd->waiting == 0 || crowd->waiting < crowd->expected)
		return;
	crowd->together = crowd->running = crowd->waiting;
	crowd->waiting = 0;
	crowd->count = 0;
	crowd->start_ns = tool_now_ns();
	crowd->generation++;
}

void perf_seat_leave(struct perf_seat *seat)
{
	struct crowd *crowd;

	if (!seat)
		return;
	crowd = seat->crowd;
	crowd_lock(crowd);
	/* the next clients are as many as the first ones were */
	if (--crowd->expected == 0)
		crowd->expected = crowd->seat_count;
	else
		crowd_begin_locked(crowd);
	crowd_unlock(crowd);
	atomic_store_explicit(&seat->state, SEAT_FREE, memory_order_release);
}

static uint32_t crowd_generation(struct crowd *crowd)
{
	uint32_t generation;

	crowd_lock(crowd);
	generation = crowd->generation;
	crowd_unlock(crowd);
	return generation;
}

/* Takes back the wish of a client. False: the run has begun meanwhile. */
static bool crowd_withdraw(struct crowd *crowd, uint32_t generation)
{
	bool is_over;

	crowd_lock(crowd);
	is_over = crowd->generation == generation;
	crowd->waiting -= is_over;
	crowd_unlock(crowd);
	return is_over;
}

int perf_seat_wait(struct perf_seat *seat, uint32_t timeout_ms)
{
	uint64_t end_ns = tool_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct crowd *crowd;
	uint32_t generation;

	if (!seat)
		return 0;
	crowd = seat->crowd;
	crowd_lock(crowd);
	generation = crowd->generation;
	crowd->waiting++;
	crowd_begin_locked(crowd);
	crowd_unlock(crowd);
	while (crowd_generation(crowd) == generation) {
		bool is_late = tool_now_ns() >= end_ns;

		if ((is_late || tool_is_stopped) && crowd_withdraw(crowd, generation)) {
			if (tool_is_stopped)
				return -EINTR;
			tool_complain("not all of the clients asked for the run in %u ms",
				      timeout_ms);
			return -ETIMEDOUT;
		}
		crowd_pause();
	}
	return 0;
}

void perf_seat_report(struct perf_seat *seat, const struct perf_run *run, uint64_t count)
{
	const struct perf_test_info *info = &perf_tests[run->test];
	struct crowd *crowd;
	double seconds;

	if (!seat)
		return;
	crowd = seat->crowd;
	crowd_lock(crowd);
	crowd->count += count * (info->is_halved ? 2 : 1);
	if (--crowd->running == 0) {
		seconds = (double)(tool_now_ns() - crowd->start_ns) / 1e9;
		printf("%s: %" PRIu32 " clients together: %s of %" PRIu64
		       " bytes: %.1f MB/s, %.0f transfers/s in %.3f s\n",
		       tool_name, crowd->together, info->name, run->size,
		       (double)crowd->count * (double)run->size / 1e6 / seconds,
		       (double)crowd->count / seconds, seconds);
		fflush(stdout);
	}
	crowd_unlock(crowd);
}

/* --- the process that sends clients to seats --- */

/* A seat without a client. One whose client has not come is offered again. NULL: there is none. */
static struct perf_seat *crowd_find(struct crowd *crowd, uint32_t timeout_ms)
{
	uint64_t now = tool_now_ns();

	for (uint32_t i = 0; i < crowd->seat_count; i++) {
		struct perf_seat *seat = &crowd->seats[i];
		uint32_t state = atomic_load_explicit(&seat->state, memory_order_acquire);
		bool is_stale = state == SEAT_OFFERED &&
				now - seat->offered_ns > (uint64_t)timeout_ms * 1000000u;

		if ((state != SEAT_FREE && !is_stale) ||
		    !atomic_compare_exchange_strong(&seat->state, &state, SEAT_OFFERED))
			continue;
		seat->offered_ns = now;
		return seat;
	}
	return NULL;
}

/* Tells the client the qualifier of its seat; the client then ends this connection. */
static int crowd_send(struct session *session, DAT_CR_HANDLE request, const struct perf_seat *seat)
{
	struct perf_welcome welcome;
	DAT_EP_HANDLE endpoint;
	int rc = session_endpoint_create(session, &endpoint);

	if (rc != 0) {
		dat_cr_reject(request);
		return rc;
	}
	perf_welcome_redirect(&welcome, seat->qualifier);
	rc = session_accept(session, request, endpoint, &welcome, sizeof(welcome));
	if (rc == 0)
		rc = session_disconnect(session, endpoint, false);
	dat_ep_free(endpoint);
	return rc;
}

static bool is_client(const struct session_private *data)
{
	struct perf_hello hello;

	if (perf_hello_read(data, &hello) == 0 && hello.role == PERF_ROLE_CONTROL)
		return true;
	tool_complain("rejected a client that is not dat_perf version %u", PERF_VERSION);
	return false;
}

static void crowd_welcome(struct crowd *crowd, struct session *session, DAT_CR_HANDLE request,
			  const struct session_private *hello)
{
	struct perf_seat *seat = is_client(hello) ? crowd_find(crowd, session->timeout_ms) : NULL;

	if (seat) {
		(void)crowd_send(session, request, seat);
		return;
	}
	if (is_client(hello))
		tool_complain("rejected a client: %" PRIu32 " are served", crowd->seat_count);
	dat_cr_reject(request);
}

/* Has each seat ended? Then the exit status of all is known: the first that is not 0. */
static bool crowd_is_over(struct crowd *crowd, int *result)
{
	bool is_over = true;

	for (uint32_t i = 0; i < crowd->seat_count; i++) {
		struct perf_seat *seat = &crowd->seats[i];
		int status = 0;

		if (seat->pid > 0 && waitpid(seat->pid, &status, WNOHANG) == seat->pid) {
			seat->pid = 0;
			if (*result == TOOL_EXIT_OK)
				*result =
					WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_EXIT_FAILED;
		}
		is_over &= seat->pid == 0;
	}
	return is_over;
}

static bool crowd_is_busy(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->seat_count; i++)
		if (atomic_load_explicit(&crowd->seats[i].state, memory_order_relaxed) != SEAT_FREE)
			return true;
	return false;
}

/* Waits for clients until the user or all seats have ended, or no client has come for long. */
static int crowd_receive(const struct perf_options *options, struct crowd *crowd,
			 struct session *session)
{
	uint64_t since_ns = tool_now_ns(), served = 0;
	struct session_private hello;
	DAT_CR_HANDLE request;
	int result = TOOL_EXIT_OK;

	while (!tool_is_stopped && !crowd_is_over(crowd, &result) && result == TOOL_EXIT_OK) {
		int rc = session_request_wait(session, 100, &request, &hello);

		if (rc == -ETIMEDOUT && crowd_is_busy(crowd))
			since_ns = tool_now_ns();
		if (rc == -ETIMEDOUT && options->side.has_timeout &&
		    tool_now_ns() - since_ns > (uint64_t)options->side.timeout_ms * 1000000u) {
			if (served == 0)
				tool_complain("no client in %u s", options->side.timeout_ms / 1000);
			return served ? TOOL_EXIT_OK : TOOL_EXIT_FAILED;
		}
		if (rc == -EIO)
			return TOOL_EXIT_FAILED;
		if (rc != 0)
			continue;
		served++;
		crowd_welcome(crowd, session, request, &hello);
	}
	return result;
}

/* Waits until all seats listen. -EIO: one could not, and has printed why. */
static int crowd_await_seats(struct crowd *crowd)
{
	int result = TOOL_EXIT_OK;

	for (uint32_t i = 0; i < crowd->seat_count; i++) {
		while (atomic_load_explicit(&crowd->seats[i].state, memory_order_acquire) ==
		       SEAT_CLOSED) {
			(void)crowd_is_over(crowd, &result);
			if (result != TOOL_EXIT_OK || tool_is_stopped)
				return -EIO;
			crowd_pause();
		}
	}
	return 0;
}

static int crowd_serve(const struct perf_options *options, struct crowd *crowd)
{
	struct session session;
	int result = TOOL_EXIT_FAILED;
	DAT_PSP_HANDLE psp;

	if (crowd_await_seats(crowd) != 0 ||
	    session_open(&session, options->side.adapter, false, options->side.timeout_ms) != 0)
		return TOOL_EXIT_FAILED;
	if (tool_side_listen(&options->side, &session, &psp) == 0) {
		result = crowd_receive(options, crowd, &session);
		dat_psp_free(psp);
		tool_side_end(&options->side);
	}
	session_close(&session);
	return result;
}

/* Ends the seats that are left. */
static void crowd_end(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->seat_count; i++) {
		struct perf_seat *seat = &crowd->seats[i];

		if (seat->pid <= 0)
			continue;
		kill(seat->pid, SIGTERM);
		while (waitpid(seat->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
}

int perf_crowd_run(const struct perf_options *options)
{
	struct crowd *crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int result = TOOL_EXIT_FAILED;

	if (crowd == MAP_FAILED) {
		tool_complain("--clients: %s", strerror(errno));
		return TOOL_EXIT_FAILED;
	}
	crowd->expected = crowd->seat_count = options->clients;
	fflush(stdout);
	for (uint32_t i = 0; i < crowd->seat_count; i++) {
		struct perf_seat *seat = &crowd->seats[i];

		pid_t pid;

		seat->crowd = crowd;
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			exit(perf_server_run(options, seat));
		}
		if (pid < 0) {
			tool_complain("--clients: %s", strerror(errno));
			goto out;
		}
		seat->pid = pid; /* the memory is that of the other process, too */
	}
	result = crowd_serve(options, crowd);
out:
	crowd_end(crowd);
	munmap(crowd, sizeof(*crowd));
	return result;
}
