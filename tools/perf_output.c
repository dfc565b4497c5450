// SPDX-License-Identifier: BSD-2-Clause
/*
 * The output of dat_perf: tables for people, one JSON object, or one CSV table with a column for
 * every figure of any test.
 */
#include <inttypes.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"

/* Percentiles in the order of the columns. */
static const struct {
	const char *name;
	unsigned permille;
} output_percentiles[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p99_9", 999}};

#define OUTPUT_PERCENTILES (sizeof(output_percentiles) / sizeof(output_percentiles[0]))

/* The times of one result, in microseconds of one way. */
struct output_times {
	double min;
	double avg;
	double max;
	double percentiles[OUTPUT_PERCENTILES];
};

static bool output_has_row;
static enum perf_kind output_kind; /* of the previous row: a change starts a new table */

static void output_times(const struct perf_result *result, struct output_times *times_out)
{
	double us = perf_clock_period_ns() / 1000.0;

	if (perf_tests[result->test].is_halved)
		us /= 2;
	times_out->min = (double)result->stats->min * us;
	times_out->avg = stats_average(result->stats) * us;
	times_out->max = (double)result->stats->max * us;
	for (size_t i = 0; i < OUTPUT_PERCENTILES; i++)
		times_out->percentiles[i] =
			(double)stats_percentile(result->stats, output_percentiles[i].permille) *
			us;
}

/* Transfers per second in one direction: a round trip counts twice. */
static double output_rate(const struct perf_result *result)
{
	double count = (double)result->count * (perf_tests[result->test].is_halved ? 2 : 1);

	return result->elapsed_s > 0 ? count / result->elapsed_s : 0;
}

static double output_mb_per_s(const struct perf_result *result)
{
	return output_rate(result) * (double)result->size / 1e6;
}

static bool output_is_timed(enum perf_kind kind)
{
	return kind == PERF_LATENCY || kind == PERF_BANDWIDTH || kind == PERF_CYCLE;
}

/* --- text --- */

static const char *output_mode(const struct perf_plan *plan)
{
	return plan->is_waiting ? "wait" : "poll";
}

static const char *output_buffer(const struct perf_plan *plan)
{
	return plan->is_shared ? "shared" : "private";
}

static const char *output_target(const struct perf_plan *plan)
{
	return plan->is_target_polling ? "poll" : "sleep";
}

static void output_text_head(enum perf_kind kind)
{
	switch (kind) {
	case PERF_LATENCY:
	case PERF_CYCLE:
		printf("%-14s %9s %10s %9s %9s %9s %9s %9s %9s %9s %9s\n", "us", "bytes", "count",
		       "min", "avg", "p50", "p90", "p99", "p99.9", "max", "per s");
		break;
	case PERF_BANDWIDTH:
		printf("%-14s %9s %10s %12s %14s\n", "", "bytes", "count", "MB/s", "transfers/s");
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

static void output_text(const struct perf_result *result)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	struct output_times times;

	if (!output_has_row || output_kind != info->kind)
		output_text_head(info->kind);
	printf("%-14s ", info->name);
	if (result->stats) {
		output_times(result, &times);
		printf("%9" PRIu64 " %10" PRIu64 " %9.3f %9.3f", result->size, result->count,
		       times.min, times.avg);
		for (size_t i = 0; i < OUTPUT_PERCENTILES; i++)
			printf(" %9.3f", times.percentiles[i]);
		printf(" %9.3f %9.0f", times.max, output_rate(result));
	} else if (info->kind == PERF_BANDWIDTH) {
		printf("%9" PRIu64 " %10" PRIu64 " %12.1f %14.0f", result->size, result->count,
		       output_mb_per_s(result), output_rate(result));
	} else if (info->kind == PERF_USED_SPACE) {
		printf("%20" PRIu64 " %14.0f", result->count, result->client);
	} else {
		printf("%20" PRIu64 " %14.0f %14.0f %14.0f", result->count,
		       result->client + result->server, result->client, result->server);
	}
	if (info->kind == PERF_USED_MEMORY)
		printf(" %14.0f", result->client_space + result->server_space);
	printf("%s\n", result->wrong ? "  WRONG DATA" : "");
}

/* --- JSON --- */

static void output_json(const struct perf_result *result)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	struct output_times times;

	printf("%s\n  {\"test\": \"%s\", \"count\": %" PRIu64, output_has_row ? "," : "",
	       info->name, result->count);
	if (info->kind == PERF_LATENCY || info->kind == PERF_BANDWIDTH)
		printf(", \"bytes\": %" PRIu64 ", \"mb_per_s\": %.3f, \"wrong\": %" PRIu64,
		       result->size, output_mb_per_s(result), result->wrong);
	if (output_is_timed(info->kind))
		printf(", \"per_s\": %.3f, \"elapsed_s\": %.6f", output_rate(result),
		       result->elapsed_s);
	if (result->stats) {
		output_times(result, &times);
		printf(", \"min\": %.4f, \"avg\": %.4f", times.min, times.avg);
		for (size_t i = 0; i < OUTPUT_PERCENTILES; i++)
			printf(", \"%s\": %.4f", output_percentiles[i].name, times.percentiles[i]);
		printf(", \"max\": %.4f", times.max);
	}
	if (info->kind == PERF_USED_MEMORY)
		printf(", \"client_bytes\": %.1f, \"server_bytes\": %.1f"
		       ", \"client_shared_bytes\": %.1f, \"server_shared_bytes\": %.1f"
		       ", \"client_space_bytes\": %.1f, \"server_space_bytes\": %.1f",
		       result->client, result->server, result->client_shared, result->server_shared,
		       result->client_space, result->server_space);
	if (info->kind == PERF_USED_SPACE)
		printf(", \"client_bytes\": %.1f", result->client);
	if (info->kind == PERF_USED_CPU)
		printf(", \"client_us_per_s\": %.1f, \"server_us_per_s\": %.1f", result->client,
		       result->server);
	printf("}");
}

/* --- CSV --- */

static void output_csv_head(void)
{
	printf("test,bytes,count,endpoints,threads,idle,window,signal,mode,target,buffer,min_us,"
	       "avg_us");
	for (size_t i = 0; i < OUTPUT_PERCENTILES; i++)
		printf(",%s_us", output_percentiles[i].name);
	printf(",max_us,per_s,mb_per_s,wrong,client,server\n");
}

static void output_csv(const struct perf_options *options, const struct perf_result *result)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	const struct perf_plan *plan = &options->plan;
	struct output_times times;

	printf("%s,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,%u,%s,%s,%s", info->name, result->size,
	       result->count, plan->endpoints, plan->threads, options->idle, plan->window,
	       plan->signal, output_mode(plan), output_target(plan), output_buffer(plan));
	if (result->stats) {
		output_times(result, &times);
		printf(",%.4f,%.4f", times.min, times.avg);
		for (size_t i = 0; i < OUTPUT_PERCENTILES; i++)
			printf(",%.4f", times.percentiles[i]);
		printf(",%.4f", times.max);
	} else {
		printf(",,,,,,,");
	}
	if (info->kind == PERF_USED_SPACE)
		printf(",,,,%.1f,\n", result->client);
	else if (!output_is_timed(info->kind))
		printf(",,,,%.1f,%.1f\n", result->client, result->server);
	else
		printf(",%.3f,%.3f,%" PRIu64 ",,\n", output_rate(result), output_mb_per_s(result),
		       result->wrong);
}

/* --- all formats --- */

void perf_output_begin(const struct perf_options *options, const struct perf_peer *peer)
{
	const struct perf_plan *plan = &options->plan;
	char text[64];

	tool_address_text((const struct sockaddr *)&peer->session.address, text, sizeof(text));
	switch (options->format) {
	case PERF_TEXT:
		printf("adapter %s, address %s, %s%s, %s buffers, %u endpoint%s, %u thread%s, "
		       "window %u, one completion in %u%s\n",
		       options->adapter, text, plan->is_waiting ? "waiting" : "polling",
		       plan->is_target_polling ? ", target polling" : "", output_buffer(plan),
		       plan->endpoints, plan->endpoints == 1 ? "" : "s", plan->threads,
		       plan->threads == 1 ? "" : "s", plan->window, plan->signal,
		       plan->is_checked ? ", data verified" : "");
		break;
	case PERF_JSON:
		printf("{\"adapter\": ");
		tool_json_string(stdout, options->adapter);
		printf(", \"address\": \"%s\", \"mode\": \"%s\", \"target\": \"%s\", \"buffer\": "
		       "\"%s\""
		       ", \"endpoints\": %u, \"threads\": %u, \"idle\": %u, \"window\": %u"
		       ", \"signal\": %u, \"is_checked\": %s, \"unit\": \"us\", \"results\": [",
		       text, output_mode(plan), output_target(plan), output_buffer(plan),
		       plan->endpoints, plan->threads, options->idle, plan->window, plan->signal,
		       plan->is_checked ? "true" : "false");
		break;
	case PERF_CSV:
		output_csv_head();
		break;
	}
	fflush(stdout);
}

void perf_output_result(const struct perf_options *options, const struct perf_result *result)
{
	switch (options->format) {
	case PERF_TEXT:
		output_text(result);
		break;
	case PERF_JSON:
		output_json(result);
		break;
	case PERF_CSV:
		output_csv(options, result);
		break;
	}
	output_has_row = true;
	output_kind = perf_tests[result->test].kind;
	fflush(stdout);
}

void perf_output_end(const struct perf_options *options, uint64_t wrong, bool is_complete)
{
	if (options->format == PERF_JSON)
		printf("\n], \"wrong\": %" PRIu64 ", \"is_complete\": %s}\n", wrong,
		       is_complete ? "true" : "false");
	fflush(stdout);
}
