// SPDX-License-Identifier: BSD-2-Clause
/*
 * The copy paths in comparison: is the one that the library chooses the best?
 *
 *   matrix [OPTION...]
 *
 *   -o LIST  operations: send, write, read (default all)
 *   -b LIST  bytes (default 8,256,4k,16k,64k,1m; at most 1m)
 *   -t LIST  what the target does: polls, computes, sleeps (default all)
 *   -f LIST  figures: latency, rate (default all)
 *   -r N     rounds (default 5; three times as many for latencies of a target that polls)
 *   -m MS    milliseconds of a measurement (default 10)
 *   -s       all buffers are memory that peers can map
 *   -j       print each cell as a JSON object
 *
 * Measures each cell with DAT_COPY=auto, map, cma and ring in turn, round after round, each in a
 * pair of processes of its own. The pairs that are not measured sleep. The buffers are private
 * memory, which map leaves to the kernel's copy. So the column map has memory that peers can map,
 * for comparison. The best is chosen from cma and ring, with -s from map, too. A ratio above 1 means
 * that the best was better than auto. It is the median of the ratios of the rounds. Where a latency
 * is 0.1 us, the addresses that a pair got may make a third of it, in all rounds of a run.
 *
 * Ends after MATRIX_LIMIT_S seconds at the latest; cells that were left out count as failed. Exit
 * status as for the tools.
 */
#include "matrix.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common.h"
#include "list.h"
#include "perf_clock.h"

#define MATRIX_LIMIT_S 85u
#define MATRIX_ROUNDS_MAX (CREW_VALUES_MAX / MATRIX_SHORT_ROUNDS)
#define MATRIX_COUNT_MAX 1000000u
#define MATRIX_WARM_UP 5000u
#define MATRIX_SHORT_ROUNDS 3u
#define MATRIX_UNSTEADY 4u /* times as long is measured where the scheduler decides */

enum { MODE_AUTO, MODE_MAP, MODE_CMA, MODE_RING, MODES };

static const char *const mode_names[MODES] = {"auto", "map", "cma", "ring"};
static const char *const mode_variables[MODES] = {"DAT_COPY=auto", "DAT_COPY=map", "DAT_COPY=cma",
						  "DAT_COPY=ring"};
static const char *const op_names[] = {"send", "write", "read", NULL};
static const char *const state_names[] = {"polls", "computes", "sleeps", NULL};
static const char *const figure_names[] = {"latency", "rate", NULL};

struct options {
	unsigned ops, states, figures; /* sets of bits */
	struct list_numbers sizes;
	uint64_t rounds;
	uint64_t slice_ns;
	bool is_shared;
	bool is_json;
};

struct cell {
	struct crew_job job;
	uint64_t counts[MODES];
	double values[MODES][CREW_VALUES_MAX]; /* us, or transfers per second */
	unsigned rounds;
};

static uint64_t deadline_ns;

static double period_us;

/* --- measuring --- */

static double value_of(const struct crew *crew, const struct crew_job *job)
{
	if (job->kind == MATRIX_LATENCY)
		return (double)stats_percentile(&crew->board->stats, 500) * period_us;
	return (double)job->count * 1e9 / (double)(crew_elapsed_ns(crew) + 1);
}

/* Passing a cache line between polling threads takes longer or less from one measurement to the
 * next on a virtual machine: so there are more of them, and shorter ones. */
static bool is_short(const struct crew_job *job)
{
	return job->kind == MATRIX_LATENCY && job->state == MATRIX_POLLS;
}

static unsigned rounds_of(const struct options *options, const struct crew_job *job)
{
	return (unsigned)options->rounds * (is_short(job) ? MATRIX_SHORT_ROUNDS : 1);
}

/* The rate of Sends depends on when the threads of the target run. */
static uint64_t slice_of(const struct options *options, const struct crew_job *job)
{
	if (is_short(job))
		return options->slice_ns / 2;
	if (job->kind == MATRIX_RATE && job->op == MATRIX_SEND)
		return options->slice_ns * MATRIX_UNSTEADY;
	return options->slice_ns;
}

static int measure(struct crew *crews, const struct options *options, struct cell *cell)
{
	uint64_t slice_ns = slice_of(options, &cell->job);
	unsigned rounds = rounds_of(options, &cell->job);
	int rc = 0;

	for (unsigned mode = 0; mode < MODES && rc == 0; mode++)
		rc = crew_calibrate(&crews[mode], &cell->job, slice_ns, MATRIX_COUNT_MAX,
				    &cell->counts[mode]);
	for (unsigned i = 0; i < rounds && rc == 0; i++) {
		for (unsigned k = 0; k < MODES && rc == 0; k++) {
			unsigned mode = i % 2 ? MODES - 1 - k : k;

			cell->job.count = cell->counts[mode];
			rc = crew_run(&crews[mode], &cell->job);
			cell->values[mode][i] = value_of(&crews[mode], &cell->job);
		}
		cell->rounds++;
	}
	return rc;
}

/* --- printing --- */

/* How much worse auto is than that mode: the median of the rounds. */
static double ratio_to(const struct cell *cell, unsigned mode)
{
	double ratios[CREW_VALUES_MAX];

	for (unsigned i = 0; i < cell->rounds; i++) {
		double own = cell->values[MODE_AUTO][i], other = cell->values[mode][i];

		ratios[i] = cell->job.kind == MATRIX_LATENCY ? own / other : other / own;
	}
	return crew_median(ratios, cell->rounds);
}

static unsigned best_of(const struct cell *cell, bool has_map)
{
	unsigned best = has_map ? MODE_MAP : MODE_CMA;

	for (unsigned mode = best + 1; mode < MODES; mode++)
		if (ratio_to(cell, mode) > ratio_to(cell, best))
			best = mode;
	return best;
}

static void print_json(const struct cell *cell, unsigned best)
{
	printf("{\"op\": \"%s\", \"bytes\": %" PRIu64 ", \"target\": \"%s\", \"figure\": \"%s\"",
	       op_names[cell->job.op], cell->job.size, state_names[cell->job.state],
	       figure_names[cell->job.kind]);
	for (unsigned mode = 0; mode < MODES; mode++)
		printf(", \"%s\": %.6g", mode_names[mode],
		       crew_median(cell->values[mode], cell->rounds));
	printf(", \"ratios\": {\"map\": %.4f, \"cma\": %.4f, \"ring\": %.4f}",
	       ratio_to(cell, MODE_MAP), ratio_to(cell, MODE_CMA), ratio_to(cell, MODE_RING));
	printf(", \"best\": \"%s\", \"ratio\": %.4f}\n", mode_names[best], ratio_to(cell, best));
}

static void print_line(const struct cell *cell, unsigned best)
{
	bool is_rate = cell->job.kind == MATRIX_RATE;

	printf("%-5s %8" PRIu64 "  %-8s %-7s ", op_names[cell->job.op], cell->job.size,
	       state_names[cell->job.state], figure_names[cell->job.kind]);
	for (unsigned mode = 0; mode < MODES; mode++) {
		double value = crew_median(cell->values[mode], cell->rounds);

		printf(" %9.3f", is_rate ? value / 1e6 : value);
	}
	printf("  %-7s %5.2f  %s\n", is_rate ? "M/s" : "us", ratio_to(cell, best),
	       mode_names[best]);
}

static void print_head(void)
{
	printf("%-5s %8s  %-8s %-7s ", "what", "bytes", "target", "figure");
	for (unsigned mode = 0; mode < MODES; mode++)
		printf(" %9s", mode_names[mode]);
	printf("  %-7s %5s  %s\n", "unit", "ratio", "best");
}

/* --- all cells --- */

static int measure_cell(struct crew *crews, const struct options *options,
			const struct crew_job *job)
{
	static struct cell cell;
	unsigned best;
	int rc;

	if (tool_now_ns() > deadline_ns) {
		tool_complain("not done in %u s: the other cells are left out", MATRIX_LIMIT_S);
		return -ETIME;
	}
	cell = (struct cell){.job = *job};
	rc = measure(crews, options, &cell);
	if (rc != 0)
		return rc;
	best = best_of(&cell, options->is_shared);
	if (options->is_json)
		print_json(&cell, best);
	else
		print_line(&cell, best);
	fflush(stdout);
	return 0;
}

static int measure_all(struct crew *crews, const struct options *options)
{
	unsigned kinds = MATRIX_OPS * MATRIX_STATES * MATRIX_FIGURES;
	int rc = 0;

	for (unsigned i = 0; i < kinds && rc == 0; i++) {
		struct crew_job job = {.op = i / (MATRIX_STATES * MATRIX_FIGURES),
				       .state = i / MATRIX_FIGURES % MATRIX_STATES,
				       .kind = i % MATRIX_FIGURES};

		if (!(options->ops >> job.op & 1) || !(options->states >> job.state & 1) ||
		    !(options->figures >> job.kind & 1))
			continue;
		for (unsigned k = 0; k < options->sizes.count && rc == 0; k++) {
			job.size = options->sizes.values[k];
			rc = measure_cell(crews, options, &job);
		}
	}
	return rc;
}

/* The first messages of a connection cost more, until both sides know that the other polls. */
static int warm_up(struct crew *crew)
{
	const struct crew_job job = {.op = MATRIX_SEND,
				     .state = MATRIX_POLLS,
				     .kind = MATRIX_LATENCY,
				     .size = 8,
				     .count = MATRIX_WARM_UP};

	return crew_run(crew, &job);
}

static int run(const struct options *options)
{
	struct crew crews[MODES] = {{.name = NULL}};
	bool is_shared[MODES];
	int rc = 0;

	for (unsigned mode = 0; mode < MODES && rc == 0; mode++) {
		is_shared[mode] = options->is_shared || mode == MODE_MAP;
		crews[mode].name = mode_names[mode];
		rc = crew_start(&crews[mode], 2, mode_variables[mode], matrix_member,
				&is_shared[mode]);
	}
	for (unsigned mode = 0; mode < MODES && rc == 0; mode++)
		rc = warm_up(&crews[mode]);
	if (rc == 0 && !options->is_json)
		print_head();
	if (rc == 0)
		rc = measure_all(crews, options);
	for (unsigned mode = 0; mode < MODES; mode++)
		if (crew_end(&crews[mode]) != 0)
			rc = -EIO;
	return rc;
}

static int parse(int argc, char **argv, struct options *options)
{
	uint64_t number = 0;
	int rc = 0;
	int option;

	*options = (struct options){
		.ops = ~0u, .states = ~0u, .figures = ~0u, .rounds = 5, .slice_ns = 10000000};
	list_numbers("8,256,4k,16k,64k,1m", 1, MATRIX_SIZE_MAX, &options->sizes);
	while (rc == 0 && (option = getopt(argc, argv, "o:b:t:f:r:m:sj")) != -1) {
		switch (option) {
		case 'o':
			rc = list_names(optarg, op_names, &options->ops);
			break;
		case 'b':
			rc = list_numbers(optarg, 1, MATRIX_SIZE_MAX, &options->sizes);
			break;
		case 't':
			rc = list_names(optarg, state_names, &options->states);
			break;
		case 'f':
			rc = list_names(optarg, figure_names, &options->figures);
			break;
		case 'r':
			rc = tool_parse_number(optarg, &options->rounds);
			break;
		case 'm':
			rc = tool_parse_number(optarg, &number);
			options->slice_ns = number * 1000000;
			break;
		case 's':
			options->is_shared = true;
			break;
		case 'j':
			options->is_json = true;
			break;
		default:
			rc = -EINVAL;
		}
	}
	if (optind != argc || options->rounds == 0 || options->rounds > MATRIX_ROUNDS_MAX ||
	    options->slice_ns == 0 || options->slice_ns > 1000000000)
		rc = -EINVAL;
	return rc;
}

int main(int argc, char **argv)
{
	struct options options;

	tool_name = "matrix";
	if (parse(argc, argv, &options) != 0) {
		fputs("usage: matrix [-o OPERATIONS] [-b BYTES] [-t TARGETS] [-f FIGURES]\n"
		      "              [-r ROUNDS] [-m MS] [-s] [-j]\n",
		      stderr);
		return TOOL_EXIT_USAGE;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process remains if bench/compare is killed */
	perf_clock_start();
	period_us = perf_clock_period_ns() / 1000;
	deadline_ns = tool_now_ns() + UINT64_C(1000000000) * MATRIX_LIMIT_S;
	return run(&options) == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED;
}
