// SPDX-License-Identifier: BSD-2-Clause
/*
 * The client of dat_perf: connects, runs the tests in order, and passes the figures to
 * perf_output.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"
#include "perf_client.h"
#include "perf_idle.h"
#include "perf_output.h"

#define PERF_SLEEP_US 1000000u
/* pause before the measurement: work left from connecting and freeing would count as idle time */
#define PERF_SETTLE_US 100000u

static int client_ask(struct perf_client *client, struct session_private *answer_out)
{
	struct perf_peer *peer = &client->peer;
	struct perf_hello hello;
	DAT_RMR_TRIPLET unused;
	int rc;

	perf_hello_plan(&hello, &peer->plan);
	rc = session_connect(&peer->session, peer->control,
			     (struct sockaddr *)&client->server.address, client->server.qualifier,
			     &hello, sizeof(hello), answer_out);
	if (rc == 0 && perf_welcome_read(answer_out, &unused) != 0) {
		tool_complain("the peer is not a dat_perf server of version %u", PERF_VERSION);
		return -EPROTO;
	}
	return rc;
}

/* Ends the control connection, and makes an endpoint for another one. */
static int client_renew_control(struct perf_peer *peer)
{
	int rc = session_disconnect(&peer->session, peer->control, true);

	if (rc != 0)
		return rc;
	dat_ep_free(peer->control);
	peer->control = DAT_HANDLE_NULL;
	session_buffer_destroy(&peer->control_buffer);
	return perf_control_prepare(peer);
}

static int client_connect_control(struct perf_client *client)
{
	struct session_private answer;
	DAT_CONN_QUAL qualifier;
	int rc = client_ask(client, &answer);

	if (rc != 0 || !perf_welcome_is_redirect(&answer, &qualifier))
		return rc;
	client->server.qualifier = qualifier;
	rc = client_renew_control(&client->peer);
	return rc == 0 ? client_ask(client, &answer) : rc;
}

static int client_connect_data(struct perf_client *client, uint32_t index)
{
	struct perf_peer *peer = &client->peer;
	struct session_private answer;
	struct perf_endpoint *endpoint;
	struct perf_worker *worker;
	struct perf_hello hello;
	int rc;

	endpoint = perf_endpoint_at(peer, index, &worker);
	perf_hello_target(&hello, PERF_ROLE_DATA, peer, index, (uintptr_t)endpoint->in,
			  worker->in.rmr_context);
	rc = session_connect(&worker->session, endpoint->handle,
			     (struct sockaddr *)&client->server.address, client->server.qualifier,
			     &hello, sizeof(hello), &answer);
	if (rc == 0)
		rc = perf_welcome_read(&answer, &endpoint->remote);
	return rc;
}

static int client_connect(struct perf_client *client)
{
	struct perf_peer *peer = &client->peer;
	int rc = 0;

	client->server = (struct perf_server_address){.address = peer->session.address,
						      .qualifier = client->options->side.qualifier};
	if (client->options->side.host)
		rc = tool_resolve(client->options->side.host, &client->server.address);
	if (rc == 0)
		rc = perf_workers_create(peer);
	if (rc == 0)
		rc = perf_idle_prepare(peer);
	if (rc == 0)
		rc = perf_control_prepare(peer);
	if (rc == 0)
		rc = client_connect_control(client);
	for (uint32_t i = 0; i < peer->plan.endpoints && rc == 0; i++)
		rc = client_connect_data(client, i);
	return rc;
}

/* --- connections --- */

/* Connects by count, or without one for that time. */
static int client_cycles_run(struct perf_client *client, uint64_t count, double duration_s,
			     double *elapsed_s_out)
{
	struct perf_control control = {.type = PERF_CONTROL_CYCLES};
	uint64_t start, end;
	int rc = perf_control_ask(&client->peer, &control);

	if (rc != 0)
		return rc;
	stats_reset(&client->stats);
	start = perf_clock_ticks();
	end = start + (uint64_t)(duration_s * 1e9 / perf_clock_period_ns());
	rc = perf_cycles_connect(&client->peer, &client->server, count, end, &client->stats);
	*elapsed_s_out = (double)(perf_clock_ticks() - start) * perf_clock_period_ns() / 1e9;
	return rc;
}

static int client_cycles(struct perf_client *client)
{
	const struct perf_options *options = client->options;
	struct perf_result result = {.test = PERF_CONNECT};
	uint64_t warm_up = options->warm_up < 20 ? options->warm_up : 20;
	struct perf_cpu cpu;
	int rc = 0;

	if (warm_up > 0)
		rc = client_cycles_run(client, warm_up, 0, &result.elapsed_s);
	perf_cpu_start(&cpu);
	if (rc == 0)
		rc = client_cycles_run(client, options->count, options->duration_s,
				       &result.elapsed_s);
	perf_cpu_stop(&cpu);
	if (rc != 0)
		return rc;
	result.count = client->stats.count;
	result.stats = &client->stats;
	result.client_cpu = (double)perf_cpu_permyriad(&cpu) / 100;
	result.server_cpu = -1;
	perf_output_result(options, &result);
	return 0;
}

static int client_usage(struct perf_client *client, struct perf_usage *ours,
			struct perf_usage *theirs)
{
	struct perf_control control = {.type = PERF_CONTROL_USAGE};
	int rc = perf_control_ask(&client->peer, &control);

	*theirs = (struct perf_usage){.pss_bytes = control.values[0],
				      .shmem_bytes = control.values[1],
				      .space_bytes = control.values[2]};
	return rc == 0 ? perf_usage_memory(ours) : rc;
}

static double client_growth(uint64_t before, uint64_t after, uint64_t count)
{
	return ((double)after - (double)before) / (double)count;
}

/* Both sides sleep. Stores the processor time that each has used. */
static int client_sleep(struct perf_client *client, uint64_t sleep_us, struct perf_result *result)
{
	struct perf_control control = {.type = PERF_CONTROL_SLEEP, .count = sleep_us};
	int rc = perf_control_ask(&client->peer, &control);

	if (rc != 0)
		return rc;
	result->client = (double)perf_usage_sleep(sleep_us) * 1e6 / (double)sleep_us;
	rc = perf_control_receive(&client->peer, PERF_CONTROL_ANSWER, &control);
	result->server = (double)control.values[0] * 1e6 / (double)sleep_us;
	return rc;
}

/*
 * The memory of connections: that of both sides with them, minus that before. Memory of earlier
 * connections must have been released.
 */
static int client_memory(struct perf_client *client)
{
	uint32_t count = client->peer.plan.idle;
	struct perf_usage ours, theirs, ours_after, theirs_after;
	struct perf_result result = {.test = PERF_MEMORY, .count = count};
	int rc = client_sleep(client, PERF_SETTLE_US, &result);

	if (rc == 0)
		rc = client_usage(client, &ours, &theirs);
	if (rc == 0)
		rc = perf_client_idle(client, count);
	if (rc == 0)
		rc = client_usage(client, &ours_after, &theirs_after);
	if (rc == 0)
		rc = perf_client_idle(client, 0);
	if (rc != 0)
		return rc;
	result.client = client_growth(ours.pss_bytes, ours_after.pss_bytes, count);
	result.server = client_growth(theirs.pss_bytes, theirs_after.pss_bytes, count);
	result.client_shared = client_growth(ours.shmem_bytes, ours_after.shmem_bytes, count);
	result.server_shared = client_growth(theirs.shmem_bytes, theirs_after.shmem_bytes, count);
	result.client_space = client_growth(ours.space_bytes, ours_after.space_bytes, count);
	result.server_space = client_growth(theirs.space_bytes, theirs_after.space_bytes, count);
	perf_output_result(client->options, &result);
	return 0;
}

/*
 * The address space of the opened adapter. It is measured after all connections, because a thread
 * of the library reserves some when it first has work. The connections may have left some behind.
 */
static int client_space(struct perf_client *client)
{
	struct perf_result result = {.test = PERF_SPACE, .count = 1};
	uint64_t bytes;
	int rc;

	perf_peer_reset(&client->peer);
	perf_usage_sleep(PERF_SETTLE_US);
	rc = perf_usage_adapter(&client->peer, &bytes);
	if (rc != 0)
		return rc;
	result.client = (double)bytes;
	perf_output_result(client->options, &result);
	return 0;
}

static int client_cpu_idle(struct perf_client *client)
{
	struct perf_result result = {.test = PERF_CPU_IDLE, .count = client->peer.plan.idle};
	int rc = perf_client_idle(client, client->peer.plan.idle);

	if (rc == 0)
		rc = client_sleep(client, PERF_SETTLE_US, &result);
	if (rc == 0)
		rc = client_sleep(client, PERF_SLEEP_US, &result);
	if (rc == 0)
		rc = perf_client_idle(client, 0);
	if (rc != 0)
		return rc;
	perf_output_result(client->options, &result);
	return 0;
}

static int client_tests(struct perf_client *client)
{
	int rc = 0;

	for (int test = 0; test < PERF_TESTS && rc == 0; test++) {
		if (!client->options->is_test[test])
			continue;
		switch (perf_tests[test].kind) {
		case PERF_LATENCY:
		case PERF_BANDWIDTH:
			rc = perf_client_transfers(client, (enum perf_test)test);
			break;
		case PERF_CYCLE:
			rc = client_cycles(client);
			break;
		case PERF_USED_MEMORY:
			rc = client_memory(client);
			break;
		case PERF_USED_CPU:
			rc = client_cpu_idle(client);
			break;
		case PERF_USED_SPACE:
			break; /* measured last, see perf_client_run() */
		}
	}
	return rc;
}

static int client_exit(const struct perf_client *client, int rc)
{
	if (rc == -EINTR) {
		tool_complain("stopped");
		return TOOL_EXIT_STOPPED;
	}
	if (rc == -ENOTCONN)
		tool_complain("the server ended the connection");
	if (rc != 0)
		return TOOL_EXIT_FAILED;
	if (client->wrong == 0)
		return TOOL_EXIT_OK;
	tool_complain("%" PRIu64 " transfers were wrong", client->wrong);
	return TOOL_EXIT_MISMATCH;
}

int perf_client_run(const struct perf_options *options)
{
	struct perf_client *client = calloc(1, sizeof(*client));
	int result;
	int rc;

	if (!client)
		return TOOL_EXIT_FAILED;
	client->options = options;
	rc = perf_mappings_make(options->mappings);
	if (rc == 0)
		rc = perf_peer_open(&client->peer, options);
	if (rc != 0)
		goto out;
	client->peer.plan.nonce = tool_now_ns() ^ (uint64_t)getpid() << 32;
	rc = client_connect(client);
	if (rc == 0) {
		perf_output_begin(options, &client->peer);
		rc = client_tests(client);
		if (rc == 0)
			rc = session_disconnect(&client->peer.session, client->peer.control, true);
		if (rc == 0 && options->is_test[PERF_SPACE])
			rc = client_space(client);
		perf_output_end(options, client->wrong, rc == 0);
	}
	perf_peer_close(&client->peer);
out:
	result = client_exit(client, rc);
	free(client);
	return result;
}
