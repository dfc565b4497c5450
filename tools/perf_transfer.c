// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tests of latency and bandwidth, as the client runs them: by a count, by the clock, or until
 * the user ends them.
 */
#include <errno.h>

#include "common.h"
#include "perf_client.h"
#include "perf_clock.h"
#include "perf_idle.h"
#include "perf_output.h"

int perf_client_idle(struct perf_client *client, uint32_t count)
{
	struct perf_control control = {.type = PERF_CONTROL_IDLE, .count = count};
	int rc = perf_control_ask(&client->peer, &control);

	if (rc == 0 && count > 0)
		return perf_idle_connect(&client->peer, &client->server, count);
	perf_idle_close(&client->peer);
	return rc;
}

/*
 * Says which worker has ended after how many transfers, and learns how many the server has made
 * with it, if it makes any.
 */
static int transfer_stop(struct perf_client *client, uint32_t index, struct perf_result *result)
{
	struct perf_worker *worker = &client->peer.workers[index];
	struct perf_control control = {
		.type = PERF_CONTROL_STOP, .test = index, .count = worker->done};
	int rc = perf_control_ask(&client->peer, &control);

	if (rc != 0)
		return rc;
	worker->peer_done = control.values[0];
	result->reverse_count += control.values[1] * worker->endpoint_count;
	if (control.values[1] > 0 && (double)control.values[2] / 1e9 > result->reverse_s)
		result->reverse_s = (double)control.values[2] / 1e9;
	return 0;
}

/* Ends the run on both sides. */
static int transfer_end(struct perf_client *client, const struct perf_run *run,
			struct perf_result *result)
{
	struct perf_control control = {.type = PERF_CONTROL_END};
	struct perf_peer *peer = &client->peer;
	int rc = 0;

	for (uint32_t i = 0; i < peer->plan.threads && rc == 0; i++)
		rc = transfer_stop(client, i, result);
	if (rc == 0)
		rc = perf_control_ask(peer, &control);
	if (rc != 0)
		return rc;
	result->wrong = control.values[0];
	result->server_cpu = (double)control.values[1] / 100;
	if (perf_is_mutual(&peer->plan, run))
		perf_workers_verify(peer, run);
	return 0;
}

/* Adds up the figures of all workers. */
static void transfer_collect(struct perf_client *client, struct perf_result *result)
{
	struct perf_peer *peer = &client->peer;
	uint64_t start = UINT64_MAX, end = 0;

	stats_reset(&client->stats);
	for (uint32_t i = 0; i < peer->plan.threads; i++) {
		struct perf_worker *worker = &peer->workers[i];

		result->wrong += worker->wrong;
		result->count += worker->counted * worker->endpoint_count;
		stats_merge(&client->stats, &worker->stats);
		start = worker->start_ticks < start ? worker->start_ticks : start;
		end = worker->end_ticks > end ? worker->end_ticks : end;
	}
	result->elapsed_s = (double)(end - start) * perf_clock_period_ns() / 1e9;
}

/* One run of both sides. */
static int transfer_run(struct perf_client *client, const struct perf_run *run,
			struct perf_result *result)
{
	struct perf_peer *peer = &client->peer;
	struct perf_control control = {.type = PERF_CONTROL_RUN,
				       .test = run->test,
				       .size = run->size,
				       .count = run->count,
				       .warm_up = run->warm_up,
				       .values = {run->duration_ns}};
	struct perf_progress *progress;
	struct perf_cpu cpu;
	int rc = perf_workers_prepare(peer, run);

	if (rc == 0)
		rc = perf_control_ask(peer, &control);
	if (rc != 0)
		return rc;
	perf_samples_begin(peer);
	progress = perf_progress_start(peer, run, client->options);
	perf_cpu_start(&cpu);
	rc = perf_workers_run(peer, run);
	perf_cpu_stop(&cpu);
	perf_progress_stop(progress);
	perf_samples_end(peer, run);
	if (rc == 0)
		rc = transfer_end(client, run, result);
	if (rc != 0)
		return rc;
	result->client_cpu = (double)perf_cpu_permyriad(&cpu) / 100;
	transfer_collect(client, result);
	client->wrong += result->wrong;
	return 0;
}

static int transfer_size(struct perf_client *client, enum perf_test test, uint64_t size)
{
	const struct perf_options *options = client->options;
	struct perf_run run = {.test = test,
			       .size = size,
			       .count = options->count,
			       .warm_up = options->warm_up,
			       .duration_ns = (uint64_t)(options->duration_s * 1e9),
			       .rate = options->rate,
			       .is_leader = true};
	struct perf_result result = {.test = test, .size = size};
	int rc;

	if (options->is_infinite)
		run.duration_ns = UINT64_MAX;
	rc = transfer_run(client, &run, &result);
	if (rc != 0)
		return rc;
	if (perf_tests[test].kind == PERF_LATENCY || options->rate > 0)
		result.stats = &client->stats;
	perf_output_result(options, &result);
	return 0;
}

int perf_client_transfers(struct perf_client *client, enum perf_test test)
{
	const struct perf_options *options = client->options;
	int rc = 0;

	if (options->idle > 0)
		rc = perf_client_idle(client, options->idle);
	for (unsigned i = 0; i < options->size_count && rc == 0; i++)
		rc = transfer_size(client, test, options->sizes[i]);
	if (options->idle > 0 && rc == 0)
		rc = perf_client_idle(client, 0);
	return rc;
}
