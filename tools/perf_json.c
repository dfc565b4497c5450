// SPDX-License-Identifier: BSD-2-Clause
/* The results of dat_perf as JSON; dat_perf(1) lists the members. */
#include <inttypes.h>
#include <stdlib.h>

#include "common.h"
#include "perf_output.h"

/* With --interval: those of the run that has no result yet. */
static struct perf_interval *json_intervals;
static size_t json_interval_count;

void perf_json_begin(const struct perf_options *options, struct perf_peer *peer)
{
	const struct perf_plan *plan = &options->plan;
	char text[64];

	tool_address_text((const struct sockaddr *)&peer->session.address, text, sizeof(text));
	printf("{\"adapter\": ");
	tool_json_string(stdout, options->side.adapter);
	printf(", \"address\": \"%s\", \"path\": \"%s\", ", text,
	       session_path_text(&peer->session, peer->control));
	perf_about_print_json(peer);
	printf(",\n\"mode\": \"%s\", \"target\": \"%s\", \"buffer\": \"%s\", \"endpoints\": %u"
	       ", \"threads\": %u, \"idle\": %u, \"window\": %u, \"signal\": %u"
	       ", \"rate\": %.3f, \"segments\": %u, \"is_srq\": %s, \"is_bidirectional\": %s, "
	       "\"is_checked\": %s, "
	       "\"unit\": \"us\",\n",
	       perf_mode_text(plan), perf_target_text(plan), perf_buffer_text(plan),
	       plan->endpoints, plan->threads, options->idle, plan->window, plan->signal,
	       options->rate, plan->segments, plan->is_srq ? "true" : "false",
	       plan->is_bidirectional ? "true" : "false", plan->is_checked ? "true" : "false");
}

static void json_times(const struct perf_result *result)
{
	struct perf_times times;

	perf_times_of(result, &times);
	printf(", \"samples\": %" PRIu64 ", \"min\": %.4f, \"avg\": %.4f", result->stats->count,
	       times.min, times.avg);
	for (unsigned i = 0; i < PERF_PERCENTILES; i++)
		printf(", \"%s\": %.4f", perf_percentiles[i].name, times.percentiles[i]);
	printf(", \"max\": %.4f", times.max);
}

void perf_json_interval(const struct perf_interval *interval, bool is_first)
{
	double rate = (double)interval->count / interval->elapsed_s;

	printf("%s\n  {\"time\": \"%s\", \"at_s\": %.6f, \"elapsed_s\": %.9f, \"count\": %" PRIu64
	       ", \"per_s\": %.3f, \"mb_per_s\": %.3f, \"gbit_per_s\": %.6f}",
	       is_first ? "" : ",", interval->time, interval->at_s, interval->elapsed_s,
	       interval->count, rate, rate * (double)interval->size / 1e6,
	       rate * (double)interval->size * 8 / 1e9);
}

void perf_json_keep_interval(const struct perf_interval *interval)
{
	struct perf_interval *kept =
		reallocarray(json_intervals, json_interval_count + 1, sizeof(*kept));

	if (!kept)
		return;
	json_intervals = kept;
	kept[json_interval_count++] = *interval;
}

/* Those of the run whose result is printed. */
static void json_kept_intervals(void)
{
	printf(", \"intervals\": [");
	for (size_t i = 0; i < json_interval_count; i++)
		perf_json_interval(&json_intervals[i], i == 0);
	printf("]");
	free(json_intervals);
	json_intervals = NULL;
	json_interval_count = 0;
}

static void json_timed(const struct perf_options *options, const struct perf_result *result)
{
	enum perf_kind kind = perf_tests[result->test].kind;

	if (kind != PERF_CYCLE)
		printf(", \"bytes\": %" PRIu64
		       ", \"mb_per_s\": %.3f, \"gbit_per_s\": %.6f, \"wrong\": %" PRIu64,
		       result->size, perf_result_mb_per_s(result),
		       perf_result_mb_per_s(result) * 8 / 1000, result->wrong);
	printf(", \"per_s\": %.3f, \"elapsed_s\": %.9f, \"client_cpu_percent\": %.2f",
	       perf_result_rate(result), result->elapsed_s, result->client_cpu);
	if (result->server_cpu >= 0)
		printf(", \"server_cpu_percent\": %.2f", result->server_cpu);
	if (options->plan.is_bidirectional && kind == PERF_BANDWIDTH)
		printf(", \"reverse_count\": %" PRIu64 ", \"reverse_elapsed_s\": %.9f",
		       result->reverse_count, result->reverse_s);
	if (result->stats)
		json_times(result);
	printf(", \"is_too_few\": %s", perf_result_is_few(result) ? "true" : "false");
	if (options->is_histogram && result->stats)
		perf_histogram_print_json(result);
	if (options->interval_s > 0 && !options->is_infinite)
		json_kept_intervals();
}

void perf_json_result(const struct perf_options *options, const struct perf_result *result,
		      bool is_first)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	char time[TOOL_TIME_TEXT];

	printf("%s\n  {\"test\": \"%s\", \"time\": \"%s\", \"count\": %" PRIu64,
	       is_first ? "" : ",", info->name, tool_time_text(time), result->count);
	if (perf_kind_is_timed(info->kind))
		json_timed(options, result);
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

void perf_json_end(uint64_t wrong, bool is_complete)
{
	printf("\n], \"wrong\": %" PRIu64 ", \"is_complete\": %s}\n", wrong,
	       is_complete ? "true" : "false");
}
