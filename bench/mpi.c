// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traffic of an MPI library over uDAPL, and the same without a library.
 *
 *   mpi [OPTION...]
 *
 *   -t LIST  tests: pingpong, stream, alltoall, compute
 *            (default pingpong, stream and compute; with more than two processes alltoall)
 *   -o LIST  what the messages travel over: auto, map, cma, ring, tcp, memory, sockets (default all)
 *   -b LIST  bytes (default 1,8,64,512,4k,16k,64k,256k,1m,4m; compute: those up to MPI_EAGER_MAX)
 *   -p N     processes (default 2, at most 16)
 *   -w LIST  microseconds of a computation (default 0,10,1000,10000)
 *   -r N     rounds (default 3)
 *   -m MS    milliseconds of a measurement (default 10)
 *   -c       verify every byte; the times then include this
 *   -j       print each result as a JSON object
 *
 * Up to 8 KiB a message is an RDMA Write of header, data and flag into private memory of the
 * target, which polls the flag by reading memory, and calls dat_evd_dequeue now and then. A larger
 * one is written in fragments of 128 KiB; both sides register each fragment and free it afterwards.
 * Credits are returned by Sends. `map` has memory that peers can map. `memory` is plain shared
 * memory: a copy and a flag, and large messages are copied once. `sockets` are TCP sockets over the
 * loopback interface. Each has processes of its own; all are measured in turn, and those that are
 * not measured sleep.
 *
 * pingpong: half of a round trip. stream: messages in one direction, with an answer after each 64,
 * or 8 large ones. alltoall: each process sends to each other. compute: the target computes, calls
 * nothing but looks at its memory, and serves its peer after each computation; the time from the
 * post until it sees a message.
 *
 * Ends after MPI_LIMIT_S seconds at the latest; results that were left out count as failed. Exit
 * status as for the tools.
 */
#include "mpi.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common.h"
#include "list.h"
#include "perf_clock.h"
#include "tcp_pair.h"

#define MPI_LIMIT_S 85u
#define MPI_COUNT_MAX 20000u
#define MPI_COMPUTE_MIN 10u
#define MPI_COMPUTE_MAX 1000u

enum { OVER_AUTO, OVER_MAP, OVER_CMA, OVER_RING, OVER_TCP, OVER_MEMORY, OVER_SOCKETS, OVERS };

static const char *const over_names[] = {"auto", "map",	   "cma",     "ring",
					 "tcp",	 "memory", "sockets", NULL};
static const char *const over_variables[OVERS] = {"DAT_COPY=auto", "DAT_COPY=map", "DAT_COPY=cma",
						  "DAT_COPY=ring", "DAT_TRANSPORT=tcp"};
static const char *const test_names[] = {"pingpong", "stream", "alltoall", "compute", NULL};

struct options {
	unsigned tests, overs; /* sets of bits */
	struct list_numbers sizes, pauses_us;
	uint64_t processes;
	uint64_t rounds;
	uint64_t slice_ns;
	bool is_checked;
	bool is_json;
};

/* What was measured over one of them. */
struct result {
	uint64_t count;
	double rounds[CREW_VALUES_MAX]; /* us, or messages per second */
	struct stats stats;		/* of all rounds */
};

static struct crew crews[OVERS];
static struct mpi_setup setups[OVERS];
static struct result results[OVERS];
static double period_us;
static uint64_t deadline_ns;

/* --- measuring --- */

static bool is_rate(const struct crew_job *job)
{
	return job->kind == MPI_STREAM || job->kind == MPI_ALLTOALL;
}

/* Microseconds of one way, or messages per second. */
static double value_of(const struct crew *crew, const struct crew_job *job)
{
	uint64_t pairs = crew->processes * (crew->processes - 1);
	double messages = (double)job->count;

	if (!is_rate(job))
		return (double)stats_percentile(&crew->board->stats, 500) * period_us /
		       (job->kind == MPI_PINGPONG ? 2 : 1);
	messages *= (double)(job->kind == MPI_STREAM ? mpi_window(job->size)
						     : pairs * mpi_burst(job->size));
	return messages * 1e9 / (double)crew_elapsed_ns(crew);
}

static int choose_count(const struct options *options, struct crew *crew,
			const struct crew_job *job, uint64_t *count_out)
{
	if (job->kind != MPI_COMPUTE)
		return crew_calibrate(crew, job, options->slice_ns, MPI_COUNT_MAX, count_out);
	*count_out = job->pause_ns > 0 ? options->slice_ns * 10 / job->pause_ns : MPI_COMPUTE_MAX;
	if (*count_out < MPI_COMPUTE_MIN)
		*count_out = MPI_COMPUTE_MIN;
	if (*count_out > MPI_COMPUTE_MAX)
		*count_out = MPI_COMPUTE_MAX;
	return 0;
}

static int measure_round(struct crew *crew, struct result *result, struct crew_job *job,
			 unsigned round)
{
	int rc;

	job->count = result->count;
	rc = crew_run(crew, job);
	if (rc != 0)
		return rc;
	result->rounds[round] = value_of(crew, job);
	stats_merge(&result->stats, &crew->board->stats);
	return 0;
}

static bool is_measured(const struct options *options, const struct crew_job *job, unsigned over)
{
	return options->overs >> over & 1 && (job->kind != MPI_COMPUTE || over != OVER_SOCKETS);
}

static int measure(const struct options *options, struct crew_job *job)
{
	int rc = 0;

	for (unsigned over = 0; over < OVERS && rc == 0; over++) {
		if (!is_measured(options, job, over))
			continue;
		stats_reset(&results[over].stats);
		rc = choose_count(options, &crews[over], job, &results[over].count);
	}
	for (unsigned i = 0; i < options->rounds && rc == 0; i++)
		for (unsigned k = 0; k < OVERS && rc == 0; k++) {
			unsigned over = i % 2 ? OVERS - 1 - k : k;

			if (is_measured(options, job, over))
				rc = measure_round(&crews[over], &results[over], job, i);
		}
	return rc;
}

/* --- printing --- */

static uint64_t wrong_of(const struct crew *crew)
{
	uint64_t wrong = 0;

	for (unsigned i = 0; i < crew->processes; i++)
		wrong += crew->board->wrong[i];
	return wrong;
}

static double p99_of(const struct crew_job *job, const struct result *result)
{
	return (double)stats_percentile(&result->stats, 990) * period_us /
	       (job->kind == MPI_PINGPONG ? 2 : 1);
}

static void print_json(const struct options *options, const struct crew_job *job, unsigned over)
{
	const struct result *result = &results[over];
	double value = crew_median(result->rounds, (unsigned)options->rounds);

	printf("{\"test\": \"%s\", \"over\": \"%s\", \"processes\": %" PRIu64
	       ", \"bytes\": %" PRIu64 ", \"pause_us\": %" PRIu64,
	       test_names[job->kind], over_names[over], options->processes, job->size,
	       job->pause_ns / 1000);
	if (is_rate(job))
		printf(", \"per_s\": %.6g, \"mb_per_s\": %.6g", value,
		       value * (double)job->size / 1e6);
	else
		printf(", \"samples\": %" PRIu64 ", \"p50\": %.6g, \"p99\": %.6g",
		       result->stats.count, value, p99_of(job, result));
	printf(", \"rounds\": [");
	for (unsigned i = 0; i < options->rounds; i++)
		printf("%s%.6g", i > 0 ? ", " : "", result->rounds[i]);
	printf("], \"wrong\": %" PRIu64 "}\n", wrong_of(&crews[over]));
}

static void print_line(const struct options *options, const struct crew_job *job, unsigned over)
{
	const struct result *result = &results[over];
	double value = crew_median(result->rounds, (unsigned)options->rounds);

	printf("%-8s %8" PRIu64 " B  %-7s ", test_names[job->kind], job->size, over_names[over]);
	if (is_rate(job))
		printf("%14.0f messages/s %10.1f MB/s\n", value, value * (double)job->size / 1e6);
	else if (job->kind == MPI_PINGPONG)
		printf("%12.3f us, p99 %10.3f us\n", value, p99_of(job, result));
	else
		printf("%12.3f us, p99 %10.3f us, computing %" PRIu64 " us\n", value,
		       p99_of(job, result), job->pause_ns / 1000);
}

/* --- all tests --- */

static int measure_one(const struct options *options, struct crew_job *job)
{
	int rc;

	if (tool_now_ns() > deadline_ns) {
		tool_complain("not done in %u s: the other results are left out", MPI_LIMIT_S);
		return -ETIME;
	}
	rc = measure(options, job);
	for (unsigned over = 0; over < OVERS && rc == 0; over++) {
		if (!is_measured(options, job, over))
			continue;
		if (options->is_json)
			print_json(options, job, over);
		else
			print_line(options, job, over);
	}
	fflush(stdout);
	return rc;
}

static int measure_size(const struct options *options, unsigned test, uint64_t size)
{
	struct crew_job job = {.kind = test, .size = size};
	int rc = 0;

	if (test != MPI_COMPUTE)
		return measure_one(options, &job);
	for (unsigned i = 0; i < options->pauses_us.count && rc == 0 && size <= MPI_EAGER_MAX;
	     i++) {
		job.pause_ns = options->pauses_us.values[i] * 1000;
		rc = measure_one(options, &job);
	}
	return rc;
}

static int measure_all(const struct options *options)
{
	int rc = 0;

	for (unsigned test = 0; test < MPI_TESTS; test++)
		for (unsigned i = 0; i < options->sizes.count && rc == 0; i++)
			if (options->tests >> test & 1)
				rc = measure_size(options, test, options->sizes.values[i]);
	return rc;
}

/* --- the crews --- */

static int connect_sockets(struct mpi_setup *setup, unsigned processes)
{
	for (unsigned i = 0; i < processes; i++)
		for (unsigned k = i + 1; k < processes; k++) {
			int pair[2];

			if (tcp_pair(pair) != 0) {
				tool_complain("TCP: %s", strerror(errno));
				return -errno;
			}
			setup->sockets[i][k] = pair[0];
			setup->sockets[k][i] = pair[1];
		}
	return 0;
}

static int start(const struct options *options, unsigned over)
{
	struct mpi_setup *setup = &setups[over];
	unsigned processes = (unsigned)options->processes;

	setup->wire = over == OVER_SOCKETS  ? &mpi_sockets
		      : over == OVER_MEMORY ? &mpi_memory
					    : &mpi_dat;
	setup->is_shared = over == OVER_MAP;
	setup->is_checked = options->is_checked;
	for (unsigned i = 0; i < options->sizes.count; i++)
		if (options->sizes.values[i] > setup->size_max)
			setup->size_max = options->sizes.values[i];
	setup->size_max = (setup->size_max + 4095) / 4096 * 4096;
	if (over == OVER_SOCKETS && connect_sockets(setup, processes) != 0)
		return -EIO;
	if (over == OVER_MEMORY) {
		setup->memory = crew_share(mpi_memory_len(processes, setup->size_max));
		if (!setup->memory)
			return -ENOMEM;
	}
	crews[over].name = over_names[over];
	return crew_start(&crews[over], processes, over_variables[over], mpi_member, setup);
}

static int run(const struct options *options)
{
	uint64_t wrong = 0;
	int rc = 0;

	for (unsigned over = 0; over < OVERS && rc == 0; over++)
		if (options->overs >> over & 1)
			rc = start(options, over);
	if (rc == 0)
		rc = measure_all(options);
	for (unsigned over = 0; over < OVERS; over++) {
		if (!crews[over].board)
			continue;
		wrong += wrong_of(&crews[over]);
		if (crew_end(&crews[over]) != 0)
			rc = -EIO;
	}
	if (wrong > 0)
		tool_complain("%" PRIu64 " messages were wrong", wrong);
	if (rc != 0)
		return TOOL_EXIT_FAILED;
	return wrong > 0 ? TOOL_EXIT_MISMATCH : TOOL_EXIT_OK;
}

static int parse_option(int option, struct options *options)
{
	uint64_t number = 0;
	int rc;

	switch (option) {
	case 't':
		return list_names(optarg, test_names, &options->tests);
	case 'o':
		return list_names(optarg, over_names, &options->overs);
	case 'b':
		return list_numbers(optarg, 1, MPI_SIZE_MAX, &options->sizes);
	case 'w':
		return list_numbers(optarg, 0, 1000000, &options->pauses_us);
	case 'p':
		return tool_parse_number(optarg, &options->processes);
	case 'r':
		return tool_parse_number(optarg, &options->rounds);
	case 'm':
		rc = tool_parse_number(optarg, &number);
		options->slice_ns = number * 1000000;
		return rc;
	case 'c':
		options->is_checked = true;
		return 0;
	case 'j':
		options->is_json = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse(int argc, char **argv, struct options *options)
{
	int rc = 0;
	int option;

	*options =
		(struct options){.overs = ~0u, .processes = 2, .rounds = 3, .slice_ns = 10000000};
	list_numbers("1,8,64,512,4k,16k,64k,256k,1m,4m", 1, MPI_SIZE_MAX, &options->sizes);
	list_numbers("0,10,1000,10000", 0, 1000000, &options->pauses_us);
	while (rc == 0 && (option = getopt(argc, argv, "t:o:b:w:p:r:m:cj")) != -1)
		rc = parse_option(option, options);
	if (options->tests == 0)
		options->tests = options->processes > 2 ? 1u << MPI_ALLTOALL
							: 1u << MPI_PINGPONG | 1u << MPI_STREAM |
								  1u << MPI_COMPUTE;
	if (optind != argc || options->processes < 2 || options->processes > CREW_MAX ||
	    options->rounds == 0 || options->rounds > CREW_VALUES_MAX || options->slice_ns == 0 ||
	    options->slice_ns > 1000000000)
		rc = -EINVAL;
	return rc;
}

int main(int argc, char **argv)
{
	struct options options;

	tool_name = "mpi";
	if (parse(argc, argv, &options) != 0) {
		fputs("usage: mpi [-t TESTS] [-o OVER] [-b BYTES] [-p PROCESSES] [-w US] [-r "
		      "ROUNDS]\n"
		      "           [-m MS] [-c] [-j]\n",
		      stderr);
		return TOOL_EXIT_USAGE;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process remains if bench/compare is killed */
	perf_clock_start();
	period_us = perf_clock_period_ns() / 1000;
	deadline_ns = tool_now_ns() + UINT64_C(1000000000) * MPI_LIMIT_S;
	return run(&options);
}
