// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_perf measures latency, bandwidth, connection rate and the cost of connections between two
 * processes. It uses the public API only. perf_wire.h describes the protocol.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "options.h"
#include "perf_client.h"
#include "perf_clock.h"
#include "perf_crowd.h"
#include "perf_output.h"

const struct perf_test_info perf_tests[PERF_TESTS] = {
	[PERF_SEND_LAT] = {.name = "send-lat", .kind = PERF_LATENCY, .is_halved = true},
	[PERF_WRITE_LAT] = {.name = "write-lat", .kind = PERF_LATENCY, .is_halved = true},
	[PERF_WRITE_COMP_LAT] = {.name = "write-comp-lat",
				 .kind = PERF_LATENCY,
				 .is_one_sided = true},
	[PERF_READ_LAT] = {.name = "read-lat", .kind = PERF_LATENCY, .is_one_sided = true},
	[PERF_WAKE_LAT] = {.name = "wake-lat",
			   .kind = PERF_LATENCY,
			   .is_halved = true,
			   .is_apart = true},
	[PERF_POLL_LAT] = {.name = "poll-lat",
			   .kind = PERF_LATENCY,
			   .is_halved = true,
			   .is_apart = true},
	[PERF_REG] = {.name = "reg", .kind = PERF_LATENCY, .is_apart = true},
	[PERF_REG_KEPT] = {.name = "reg-kept", .kind = PERF_LATENCY, .is_apart = true},
	[PERF_REG_FREE] = {.name = "reg-free",
			   .kind = PERF_LATENCY,
			   .is_one_sided = true,
			   .is_apart = true},
	[PERF_SEND_BW] = {.name = "send-bw", .kind = PERF_BANDWIDTH},
	[PERF_WRITE_BW] = {.name = "write-bw", .kind = PERF_BANDWIDTH, .is_one_sided = true},
	[PERF_READ_BW] = {.name = "read-bw", .kind = PERF_BANDWIDTH, .is_one_sided = true},
	[PERF_CONNECT] = {.name = "connect", .kind = PERF_CYCLE},
	[PERF_MEMORY] = {.name = "memory", .kind = PERF_USED_MEMORY},
	[PERF_CPU_IDLE] = {.name = "cpu-idle", .kind = PERF_USED_CPU},
	[PERF_SPACE] = {.name = "space", .kind = PERF_USED_SPACE},
};

/* Binds the process with the library's threads to processors: "0", "0,2", "0-3". */
static int perf_bind(const char *cpus)
{
	const char *text = cpus;
	cpu_set_t set;

	CPU_ZERO(&set);
	for (;;) {
		char *end;
		unsigned long first = strtoul(text, &end, 10);
		unsigned long last = first;

		if (end == text)
			return -EINVAL;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return -EINVAL;
		}
		if (last < first || last >= CPU_SETSIZE)
			return -EINVAL;
		for (; first <= last; first++)
			CPU_SET(first, &set);
		if (*end == '\0')
			break;
		if (*end != ',')
			return -EINVAL;
		text = end + 1;
	}
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

/* The first Ctrl-C ends a run without an end, and its result is printed. The second ends at once.
 */
static void perf_end(int number)
{
	perf_is_enough = 1;
	signal(number, SIG_DFL);
}

static int perf_run_client(const struct perf_options *options)
{
	int result;

	if (options->plot && perf_plot_open(options->plot) != 0)
		return TOOL_EXIT_FAILED;
	if (options->samples && perf_samples_open(options->samples) != 0)
		return TOOL_EXIT_FAILED;
	result = options->batch ? perf_batch_run(options) : perf_client_run(options);
	if (options->plot && perf_plot_close() != 0 && result == TOOL_EXIT_OK)
		result = TOOL_EXIT_FAILED;
	if (options->samples && perf_samples_close() != 0 && result == TOOL_EXIT_OK)
		result = TOOL_EXIT_FAILED;
	return result;
}

int main(int argc, char **argv)
{
	struct perf_options options;
	int rc;

	tool_name = "dat_perf";
	rc = perf_options_parse(argc, argv, &options);
	if (rc == 0 && options.cpus) {
		rc = perf_bind(options.cpus);
		if (rc != 0)
			tool_complain("--cpu %s: %s", options.cpus, strerror(-rc));
	}
	if (rc != 0) {
		tool_options_hint();
		return TOOL_EXIT_USAGE;
	}
	if (tool_side_detach(&options.side) != 0)
		return TOOL_EXIT_FAILED;
	perf_clock_start();
	if (tool_is_quiet && !options.side.is_server)
		tool_drop_output();
	tool_catch_signals();
	if (options.is_infinite)
		signal(SIGINT, perf_end);
	if (options.side.is_server)
		return options.clients > 1 ? perf_crowd_run(&options)
					   : perf_server_run(&options, NULL);
	return perf_run_client(&options);
}
