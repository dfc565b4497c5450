// SPDX-License-Identifier: BSD-2-Clause
/*
 * The server of dat_perf. It serves one client after another, by the plan in the client's hello. It
 * checks every number from a client against the limits and the plan.
 */
#include <errno.h>
#include <string.h>

#include "common.h"
#include "perf.h"
#include "perf_crowd.h"
#include "perf_idle.h"
#include "perf_options.h"

#define PERF_SLEEP_LIMIT_US 600000000u

struct perf_server {
	const struct perf_options *options;
	struct perf_seat *seat; /* NULL: it serves alone */
	struct perf_peer peer;
	uint64_t served;
};

static int server_answer(struct perf_server *server, uint64_t first, uint64_t second)
{
	struct perf_control answer = {.type = PERF_CONTROL_ANSWER, .values = {first, second}};

	return perf_control_send(&server->peer, &answer);
}

static int server_usage(struct perf_server *server, const struct perf_usage *usage)
{
	struct perf_control answer = {
		.type = PERF_CONTROL_ANSWER,
		.values = {usage->pss_bytes, usage->shmem_bytes, usage->space_bytes}};

	return perf_control_send(&server->peer, &answer);
}

/* Accepts one of the measured connections. */
static int server_accept_data(struct perf_server *server)
{
	struct perf_peer *peer = &server->peer;
	struct perf_endpoint *endpoint;
	struct perf_worker *worker;
	struct perf_welcome welcome;
	struct perf_hello hello;
	DAT_CR_HANDLE request;
	int rc = perf_request_take(peer, PERF_ROLE_DATA, &request, &hello);

	if (rc != 0)
		return rc;
	if (hello.index >= peer->plan.endpoints) {
		tool_complain("the client requested an endpoint that is not in its plan");
		dat_cr_reject(request);
		return -EPROTO;
	}
	endpoint = perf_endpoint_at(peer, hello.index, &worker);
	endpoint->remote = (DAT_RMR_TRIPLET){.rmr_context = hello.target.rmr_context,
					     .target_address = hello.target.address};
	perf_welcome_make(&welcome, (uintptr_t)endpoint->in, worker->in.rmr_context);
	return session_accept(&worker->session, request, endpoint->handle, &welcome,
			      sizeof(welcome));
}

static int server_run(struct perf_server *server, const struct perf_control *begin)
{
	struct perf_peer *peer = &server->peer;
	struct perf_run run = {.test = (enum perf_test)begin->test,
			       .size = begin->size,
			       .count = begin->count,
			       .warm_up = begin->warm_up,
			       .duration_ns = begin->values[0]};
	struct perf_control control;
	struct perf_cpu cpu;
	uint64_t wrong = 0, count = 0;
	int rc = perf_workers_prepare(peer, &run);

	if (rc == 0)
		rc = perf_seat_wait(server->seat, peer->session.timeout_ms);
	if (rc == 0)
		rc = server_answer(server, 0, 0);
	perf_cpu_start(&cpu);
	if (rc == 0 && (!perf_tests[run.test].is_one_sided || perf_is_mutual(&peer->plan, &run)))
		rc = perf_workers_run(peer, &run);
	/* polling for the end of the test also drives the library, see --target */
	peer->session.is_polling =
		perf_tests[run.test].is_one_sided && peer->plan.is_target_polling;
	while (rc == 0 && peer->stops < peer->plan.threads)
		rc = perf_stop_take(peer, true);
	peer->session.is_polling = false;
	perf_cpu_stop(&cpu);
	if (rc == 0)
		rc = perf_control_receive(peer, 0, &control);
	if (rc != 0)
		return rc;
	if (control.type != PERF_CONTROL_END) {
		tool_complain("the client did not end its run");
		return -EPROTO;
	}
	perf_workers_verify(peer, &run);
	for (uint32_t i = 0; i < peer->plan.threads; i++) {
		wrong += peer->workers[i].wrong;
		count += peer->workers[i].peer_done * peer->workers[i].endpoint_count;
	}
	perf_seat_report(server->seat, &run, count);
	return server_answer(server, wrong, perf_cpu_permyriad(&cpu));
}

static int server_idle(struct perf_server *server, uint64_t count)
{
	int rc;

	if (count == 0)
		perf_idle_close(&server->peer);
	rc = server_answer(server, 0, 0);
	if (rc == 0)
		rc = perf_idle_accept(&server->peer, (uint32_t)count);
	return rc;
}

static int server_sleep(struct perf_server *server, uint64_t sleep_us)
{
	int rc = server_answer(server, 0, 0);

	if (rc != 0)
		return rc;
	return server_answer(server, perf_usage_sleep(sleep_us), 0);
}

static bool server_run_is_good(const struct perf_server *server, const struct perf_control *control)
{
	if (control->test >= PERF_TESTS || perf_tests[control->test].kind > PERF_BANDWIDTH)
		return false;
	if (control->size == 0 || control->size > server->peer.plan.size_max)
		return false;
	if (perf_is_fragment((enum perf_test)control->test) &&
	    server->peer.plan.size_max < sizeof(struct perf_fragment))
		return false;
	if (server->peer.plan.is_srq && !perf_test_shares((enum perf_test)control->test))
		return false;
	if (control->count == 0 && control->values[0] < PERF_DURATION_MIN_NS)
		return false;
	return control->count <= PERF_COUNT_LIMIT && control->warm_up <= PERF_COUNT_LIMIT;
}

/* Serves one request of the client. -EPROTO: the request is invalid. */
static int server_dispatch(struct perf_server *server, const struct perf_control *control)
{
	struct perf_usage usage;
	int rc;

	switch (control->type) {
	case PERF_CONTROL_RUN:
		if (server_run_is_good(server, control))
			return server_run(server, control);
		break;
	case PERF_CONTROL_IDLE:
		if (control->count <= server->peer.plan.idle)
			return server_idle(server, control->count);
		break;
	case PERF_CONTROL_CYCLES:
		rc = server_answer(server, 0, 0);
		return rc == 0 ? perf_cycles_accept(&server->peer) : rc;
	case PERF_CONTROL_USAGE:
		rc = perf_usage_memory(&usage);
		return rc == 0 ? server_usage(server, &usage) : rc;
	case PERF_CONTROL_SLEEP:
		if (control->count <= PERF_SLEEP_LIMIT_US)
			return server_sleep(server, control->count);
		break;
	default:
		break;
	}
	tool_complain("the client sent an invalid control message");
	return -EPROTO;
}

/* Serves requests until the client disconnects, which flushes a Receive. */
static int server_requests(struct perf_server *server)
{
	struct perf_control control;
	int rc;

	for (;;) {
		rc = perf_control_receive(&server->peer, 0, &control);
		if (rc == -ENOTCONN)
			return 0;
		if (rc == 0)
			rc = server_dispatch(server, &control);
		if (rc == -ENOTCONN)
			tool_complain("the client disconnected during a test");
		if (rc != 0)
			return rc;
	}
}

/* Serves one client from its control connection to its end. */
static int server_serve(struct perf_server *server, DAT_CR_HANDLE request)
{
	struct perf_peer *peer = &server->peer;
	struct perf_welcome welcome;
	int rc = perf_workers_create(peer);

	if (rc == 0)
		rc = perf_idle_prepare(peer);
	if (rc == 0)
		rc = perf_control_prepare(peer);
	if (rc != 0) {
		dat_cr_reject(request);
		goto out;
	}
	perf_welcome_make(&welcome, 0, 0);
	rc = session_accept(&peer->session, request, peer->control, &welcome, sizeof(welcome));
	for (uint32_t i = 0; i < peer->plan.endpoints && rc == 0; i++)
		rc = server_accept_data(server);
	if (rc == 0)
		rc = server_requests(server);
	server->served++;
out:
	perf_peer_reset(peer);
	return rc;
}

/* Reads the plan from a connection request, which it rejects if the plan is invalid. */
static int server_plan(struct perf_server *server, const struct session_private *data,
		       DAT_CR_HANDLE request)
{
	struct perf_hello hello;

	if (perf_hello_read(data, &hello) != 0) {
		tool_complain("rejected a client that is not dat_perf version %u", PERF_VERSION);
	} else if (hello.role == PERF_ROLE_CONTROL) {
		perf_plan_read(&hello, &server->peer.plan);
		if (perf_plan_is_good(&server->peer.plan))
			return 0;
		tool_complain("rejected a client whose plan exceeds a limit");
	}
	/* any other role: a late connection of a client that was given up */
	dat_cr_reject(request);
	return -EPROTO;
}

/* Serves the clients that come, until the user or a failure ends it. */
static int server_clients(struct perf_server *server)
{
	const struct perf_options *options = server->options;
	struct session *session = &server->peer.session;
	struct session_private hello;
	DAT_CR_HANDLE request;
	int result = TOOL_EXIT_OK;
	int rc = 0;

	while (!tool_is_stopped && (!options->side.is_once || server->served == 0)) {
		if (server->seat) /* another process decides how long to wait for clients */
			rc = session_request_wait(session, 0, &request, &hello);
		else
			rc = tool_side_accept(&options->side, session, server->served, &request,
					      &hello);
		if (rc != 0)
			break;
		if (server_plan(server, &hello, request) != 0)
			continue;
		perf_seat_take(server->seat);
		rc = server_serve(server, request);
		perf_seat_leave(server->seat);
		/* a failed client does not end the server, but is the result of --once */
		if (rc != 0 && rc != -EINTR && options->side.is_once)
			result = TOOL_EXIT_FAILED;
	}
	if (rc == -EIO || (rc == -ENODATA && server->served == 0))
		result = TOOL_EXIT_FAILED;
	return result;
}

/* A seat tells its qualifier to the process that sends clients to it, and nobody else. */
static int server_listen(struct perf_server *server, DAT_PSP_HANDLE *psp_out)
{
	DAT_CONN_QUAL qualifier = 0;
	int rc;

	if (!server->seat)
		return tool_side_listen(&server->options->side, &server->peer.session, psp_out);
	rc = session_listen(&server->peer.session, &qualifier, psp_out);
	if (rc == 0)
		perf_seat_open(server->seat, qualifier);
	return rc;
}

int perf_server_run(const struct perf_options *options, struct perf_seat *seat)
{
	struct perf_server server = {.options = options, .seat = seat};
	int result = TOOL_EXIT_FAILED;
	DAT_PSP_HANDLE psp;

	if (perf_peer_open(&server.peer, options) != 0)
		return TOOL_EXIT_FAILED;
	if (server_listen(&server, &psp) == 0) {
		result = server_clients(&server);
		dat_psp_free(psp);
		if (!seat)
			tool_side_end(&options->side);
	}
	perf_peer_close(&server.peer);
	return result;
}
