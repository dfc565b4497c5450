// SPDX-License-Identifier: BSD-2-Clause
/* The tables of dat_perf for people, and the choice of the format. */
#include "perf_output.h"

#include <inttypes.h>

#include "common.h"
#include "options.h"

/* A rate counts as reached from this part of it on: a short run ends in the middle of a period. */
#define OUTPUT_RATE_REACHED 0.98

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

/* The time of a line, or room for it in a head. */
static void output_stamp(const struct perf_options *options, bool is_head)
{
	char time[TOOL_TIME_TEXT];

	if (options->is_stamped)
		printf("%-24s  ", is_head ? "UTC" : tool_time_text(time));
}

/* "Gbit/s" */
static const char *output_unit(const struct perf_options *options, char text[16])
{
	snprintf(text, 16, "%s/s", options->unit->name);
	return text;
}

/* Digits behind the point: a thousandth of a unit of 10^9 or more is worth showing. */
static int output_digits(const struct perf_options *options)
{
	return options->unit->bytes < 1e8 ? 1 : 3;
}

static void output_text_head(const struct perf_options *options, enum perf_kind kind)
{
	char unit[16];

	output_stamp(options, true);
	switch (kind) {
	case PERF_LATENCY:
	case PERF_CYCLE:
		printf("%-14s %9s %10s %9s %9s %9s %9s %9s %9s %9s %9s %8s %9s\n", "us", "bytes",
		       "count", "min", "avg", "p50", "p90", "p99", "p99.9", "max", "per s",
		       "seconds", "cpu %");
		break;
	case PERF_BANDWIDTH:
		printf("%-14s %9s %10s %12s %14s %8s %9s", "", "bytes", "count",
		       output_unit(options, unit), "transfers/s", "seconds", "cpu %");
		if (options->rate > 0)
			printf(" %9s %9s %9s %9s %9s %9s %9s", "min us", "avg", "p50", "p90", "p99",
			       "p99.9", "max");
		printf("\n");
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

/* The times under a given load: from when a request was due to its completion. */
static void output_text_loaded(const struct perf_result *result)
{
	struct perf_times times;

	perf_times_of(result, &times);
	printf(" %9.3f %9.3f", times.min, times.avg);
	for (unsigned i = 0; i < PERF_PERCENTILES; i++)
		printf(" %9.3f", times.percentiles[i]);
	printf(" %9.3f", times.max);
}

static void output_text(const struct perf_options *options, const struct perf_result *result)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	struct perf_times times;

	if (!output_has_row || output_kind != info->kind || output_has_interval)
		output_text_head(options, info->kind);
	output_has_interval = false;
	output_stamp(options, false);
	printf("%-14s ", info->name);
	if (result->stats && info->kind != PERF_BANDWIDTH) {
		perf_times_of(result, &times);
		printf("%9" PRIu64 " %10" PRIu64 " %9.3f %9.3f", result->size, result->count,
		       times.min, times.avg);
		for (unsigned i = 0; i < PERF_PERCENTILES; i++)
			printf(" %9.3f", times.percentiles[i]);
		printf(" %9.3f %9.0f", times.max, perf_result_rate(result));
	} else if (info->kind == PERF_BANDWIDTH) {
		printf("%9" PRIu64 " %10" PRIu64 " %12.*f %14.0f", result->size,
		       result->count + result->reverse_count, output_digits(options),
		       perf_result_bandwidth(result, options->unit), perf_result_rate(result));
	} else if (info->kind == PERF_USED_SPACE) {
		printf("%20" PRIu64 " %14.0f", result->count, result->client);
	} else {
		printf("%20" PRIu64 " %14.0f %14.0f %14.0f", result->count,
		       result->client + result->server, result->client, result->server);
	}
	if (perf_kind_is_timed(info->kind))
		output_text_cost(result);
	if (info->kind == PERF_BANDWIDTH && result->stats)
		output_text_loaded(result);
	if (info->kind == PERF_USED_MEMORY)
		printf(" %14.0f", result->client_space + result->server_space);
	printf("%s%s\n", perf_result_is_few(result) ? "  few samples" : "",
	       result->wrong ? "  WRONG DATA" : "");
}

static void output_text_begin(const struct perf_options *options, struct perf_peer *peer)
{
	const struct perf_plan *plan = &options->plan;
	char text[64];

	tool_address_text((const struct sockaddr *)&peer->session.address, text, sizeof(text));
	printf("adapter %s, address %s, path %s, %s%s, %s buffers, %u endpoint%s, %u thread%s, "
	       "window %u, one completion in %u, %u segment%s%s%s%s\n",
	       options->side.adapter, text, session_path_text(&peer->session, peer->control),
	       plan->is_waiting ? "waiting" : "polling",
	       plan->is_target_polling ? ", target polling" : "", perf_buffer_text(plan),
	       plan->endpoints, plan->endpoints == 1 ? "" : "s", plan->threads,
	       plan->threads == 1 ? "" : "s", plan->window, plan->signal, plan->segments,
	       plan->segments == 1 ? "" : "s", plan->is_srq ? ", shared receive queue" : "",
	       plan->is_bidirectional ? ", bandwidth in both directions" : "",
	       plan->is_checked ? ", data verified" : "");
}

void perf_output_begin(const struct perf_options *options, struct perf_peer *peer)
{
	output_has_row = false;
	output_has_interval = false;
	output_few_count = 0;
	if (options->plot)
		perf_plot_begin(options, peer);
	switch (options->format) {
	case PERF_TEXT:
		output_text_begin(options, peer);
		break;
	case PERF_JSON:
		perf_json_begin(options, peer);
		break;
	case PERF_CSV:
		if (!options->batch)
			perf_csv_head(options);
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

/* A rate that was not reached makes the times those of a queue that grows. */
static void output_missed_rate(const struct perf_options *options, const struct perf_result *result)
{
	if (options->rate > 0 && perf_tests[result->test].kind == PERF_BANDWIDTH &&
	    !tool_is_quiet && perf_result_rate(result) < options->rate * OUTPUT_RATE_REACHED)
		tool_complain("%s of %" PRIu64 " bytes: %.0f requests per second instead of %.0f",
			      perf_tests[result->test].name, result->size, perf_result_rate(result),
			      options->rate);
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
		output_text(options, result);
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
	output_missed_rate(options, result);
	output_count_few(result);
}

static void output_text_interval(const struct perf_options *options,
				 const struct perf_interval *interval)
{
	double rate = (double)interval->count / interval->elapsed_s;
	char unit[16];

	if (!output_has_interval) {
		output_stamp(options, true);
		printf("%-14s %9s %10s %10s %12s %14s %10s\n", "", "bytes", "seconds", "count",
		       output_unit(options, unit), "transfers/s", "avg us");
	}
	output_stamp(options, false);
	printf("%-14s %9" PRIu64 " %10.3f %10" PRIu64 " %12.*f %14.0f %10.3f\n",
	       perf_tests[interval->test].name, interval->size, interval->at_s, interval->count,
	       output_digits(options), rate * (double)interval->size / options->unit->bytes, rate,
	       interval->count ? 1e6 * interval->in_turns / rate : 0);
}

void perf_output_interval(const struct perf_options *options, const struct perf_interval *interval)
{
	if (options->format == PERF_TEXT) {
		output_text_interval(options, interval);
		output_has_interval = true;
	} else if (options->is_infinite) {
		if (!output_has_interval)
			printf("\"intervals\": [");
		perf_json_interval(interval, !output_has_interval);
		output_has_interval = true;
	} else {
		perf_json_keep_interval(interval);
	}
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
		perf_csv_head(options);
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
