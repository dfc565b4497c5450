// SPDX-License-Identifier: BSD-2-Clause
/* The tables of dat_perf for people, and the choice of the format. */
#include "perf_output.h"

#include <inttypes.h>

#include "common.h"
#include "options.h"

static bool output_has_row;
static bool output_has_interval;
static unsigned output_few_count;
static struct {
	const char *test;
	const char *figure;
	uint64_t count;
	uint64_t needed;
} output_few_first;		   /* of the results with too few samples */
static enum perf_kind output_kind; /* of the previous row: a change starts a new table */

static void output_text_head(enum perf_kind kind)
{
	switch (kind) {
	case PERF_LATENCY:
	case PERF_CYCLE:
		printf("%-14s %9s %10s %9s %9s %9s %9s %9s %9s %9s %9s %8s %9s\n", "us", "bytes",
		       "count", "min", "avg", "p50", "p90", "p99", "p99.9", "max", "per s",
		       "seconds", "cpu %");
		break;
	case PERF_BANDWIDTH:
		printf("%-14s %9s %10s %12s %14s %8s %9s\n", "", "bytes", "count", "MB/s",
		       "transfers/s", "seconds", "cpu %");
		break;
	case PERF_USED_MEMORY:
		printf("%-14s %20s %14s %14s %14s %14s\n", "bytes/endpoint", "endpoints", "both",
		       "client", "server", "address space");
		break;
	case PERF_USED_SPACE:
		printf("%-14s %20s %14s\n", "bytes", "adapters", "client");
		break;
	case PERF_USED_CPU:
		printf("%-14s %20s %14s %14s %14s\n", "us per second", "endpoints", "both",
		       "client", "server");
		break;
	}
}

/* The time that was measured, and the processor time of client and server. */
static void output_text_cost(const struct perf_result *result)
{
	printf(" %8.3f", result->elapsed_s);
	if (result->server_cpu >= 0)
		printf(" %4.0f+%-4.0f", result->client_cpu, result->server_cpu);
	else
		printf(" %9.0f", result->client_cpu);
}

static void output_text(const struct perf_result *result)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	struct perf_times times;

	if (!output_has_row || output_kind != info->kind)
		output_text_head(info->kind);
	printf("%-14s ", info->name);
	if (result->stats) {
		perf_times_of(result, &times);
		printf("%9" PRIu64 " %10" PRIu64 " %9.3f %9.3f", result->size, result->count,
		       times.min, times.avg);
		for (unsigned i = 0; i < PERF_PERCENTILES; i++)
			printf(" %9.3f", times.percentiles[i]);
		printf(" %9.3f %9.0f", times.max, perf_result_rate(result));
	} else if (info->kind == PERF_BANDWIDTH) {
		printf("%9" PRIu64 " %10" PRIu64 " %12.1f %14.0f", result->size,
		       result->count + result->reverse_count, perf_result_mb_per_s(result),
		       perf_result_rate(result));
	} else if (info->kind == PERF_USED_SPACE) {
		printf("%20" PRIu64 " %14.0f", result->count, result->client);
	} else {
		printf("%20" PRIu64 " %14.0f %14.0f %14.0f", result->count,
		       result->client + result->server, result->client, result->server);
	}
	if (perf_kind_is_timed(info->kind))
		output_text_cost(result);
	if (info->kind == PERF_USED_MEMORY)
		printf(" %14.0f", result->client_space + result->server_space);
	printf("%s%s\n", perf_result_is_few(result) ? "  few samples" : "",
	       result->wrong ? "  WRONG DATA" : "");
}

static void output_text_begin(const struct perf_options *options, const struct perf_peer *peer)
{
	const struct perf_plan *plan = &options->plan;
	char text[64];

	tool_address_text((const struct sockaddr *)&peer->session.address, text, sizeof(text));
	printf("adapter %s, address %s, path %s, %s%s, %s buffers, %u endpoint%s, %u thread%s, "
	       "window %u, one completion in %u%s%s\n",
	       options->side.adapter, text, perf_path_text(peer),
	       plan->is_waiting ? "waiting" : "polling",
	       plan->is_target_polling ? ", target polling" : "", perf_buffer_text(plan),
	       plan->endpoints, plan->endpoints == 1 ? "" : "s", plan->threads,
	       plan->threads == 1 ? "" : "s", plan->window, plan->signal,
	       plan->is_bidirectional ? ", bandwidth in both directions" : "",
	       plan->is_checked ? ", data verified" : "");
}

void perf_output_begin(const struct perf_options *options, const struct perf_peer *peer)
{
	output_has_row = false;
	output_has_interval = false;
	output_few_count = 0;
	switch (options->format) {
	case PERF_TEXT:
		output_text_begin(options, peer);
		break;
	case PERF_JSON:
		perf_json_begin(options, peer);
		break;
	case PERF_CSV:
		if (!options->batch)
			perf_csv_head();
		break;
	}
	fflush(stdout);
}

/* Says on stderr how many results have too little behind them, and what the first one lacks. */
static void output_few(void)
{

	if (output_few_count == 0 || tool_is_quiet)
		return;
	tool_complain("too few samples in %u result%s: %s has %" PRIu64 ", but %s needs %" PRIu64
		      "; use a longer --duration or a larger --count",
		      output_few_count, output_few_count == 1 ? "" : "s", output_few_first.test,
		      output_few_first.count, output_few_first.figure, output_few_first.needed);
}

static void output_count_few(const struct perf_result *result)
{
	const struct perf_percentile *doubt = perf_result_doubt(result);

	if (!perf_result_is_few(result) || output_few_count++ > 0)
		return;
	output_few_first.test = perf_tests[result->test].name;
	output_few_first.figure = doubt ? doubt->text : "a bandwidth";
	output_few_first.count = result->count;
	output_few_first.needed = doubt ? doubt->samples : PERF_BANDWIDTH_SAMPLES;
}

void perf_output_result(const struct perf_options *options, const struct perf_result *result)
{
	switch (options->format) {
	case PERF_TEXT:
		output_text(result);
		if (options->is_histogram && result->stats)
			perf_histogram_print(result);
		break;
	case PERF_JSON:
		if (!output_has_row)
			printf("%s\"results\": [", output_has_interval ? "\n], " : "");
		perf_json_result(options, result, !output_has_row);
		break;
	case PERF_CSV:
		perf_csv_result(options, result);
		break;
	}
	if (options->plot)
		perf_plot_add(result);
	output_has_row = true;
	output_kind = perf_tests[result->test].kind;
	fflush(stdout);
	output_count_few(result);
}

void perf_output_interval(const struct perf_options *options, const struct perf_interval *interval)
{
	double rate = (double)interval->count / interval->elapsed_s;

	if (options->format == PERF_JSON) {
		if (!output_has_interval)
			printf("\"intervals\": [");
		perf_json_interval(interval, !output_has_interval);
	} else {
		if (!output_has_interval)
			printf("%-14s %9s %10s %10s %12s %14s %10s\n", "", "bytes", "seconds",
			       "count", "MB/s", "transfers/s", "avg us");
		printf("%-14s %9" PRIu64 " %10.3f %10" PRIu64 " %12.1f %14.0f %10.3f\n",
		       perf_tests[interval->test].name, interval->size, interval->at_s,
		       interval->count, rate * (double)interval->size / 1e6, rate,
		       interval->count ? 1e6 * interval->in_turns / rate : 0);
	}
	output_has_interval = true;
	fflush(stdout);
}

void perf_output_end(const struct perf_options *options, uint64_t wrong, bool is_complete)
{
	if (options->format == PERF_JSON) {
		if (!output_has_row)
			printf("%s\"results\": [", output_has_interval ? "\n], " : "");
		perf_json_end(wrong, is_complete);
	}
	fflush(stdout);
	output_few();
}

void perf_output_batch_begin(const struct perf_options *options)
{
	if (options->format == PERF_JSON)
		printf("{\"runs\": [\n");
	if (options->format == PERF_CSV)
		perf_csv_head();
}

void perf_output_batch_next(const struct perf_options *options, bool is_first)
{
	if (!is_first && options->format == PERF_JSON)
		printf(",\n");
	if (!is_first && options->format == PERF_TEXT)
		printf("\n");
}

void perf_output_batch_end(const struct perf_options *options)
{
	if (options->format == PERF_JSON)
		printf("]}\n");
	fflush(stdout);
}
