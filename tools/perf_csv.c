// SPDX-License-Identifier: BSD-2-Clause
/* The results of dat_perf as one CSV table, with a column for every figure of any test. */
#include <inttypes.h>
#include <stdio.h>

#include "perf_output.h"

void perf_csv_head(const struct perf_options *options)
{
	if (options->is_stamped)
		printf("time,");
	printf("test,bytes,count,endpoints,threads,idle,window,signal,mode,target,buffer,min_us,"
	       "avg_us");
	for (unsigned i = 0; i < PERF_PERCENTILES; i++)
		printf(",%s_us", perf_percentiles[i].name);
	printf(",max_us,per_s,mb_per_s,wrong,client,server,elapsed_s,client_cpu_percent,"
	       "server_cpu_percent\n");
}

void perf_csv_result(const struct perf_options *options, const struct perf_result *result)
{
	const struct perf_test_info *info = &perf_tests[result->test];
	const struct perf_plan *plan = &options->plan;
	struct perf_times times;
	char time[TOOL_TIME_TEXT];

	if (options->is_stamped)
		printf("%s,", tool_time_text(time));
	printf("%s,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,%u,%s,%s,%s", info->name, result->size,
	       result->count, plan->endpoints, plan->threads, options->idle, plan->window,
	       plan->signal, perf_mode_text(plan), perf_target_text(plan), perf_buffer_text(plan));
	if (result->stats) {
		perf_times_of(result, &times);
		printf(",%.4f,%.4f", times.min, times.avg);
		for (unsigned i = 0; i < PERF_PERCENTILES; i++)
			printf(",%.4f", times.percentiles[i]);
		printf(",%.4f", times.max);
	} else {
		printf(",,,,,,,");
	}
	if (info->kind == PERF_USED_SPACE)
		printf(",,,,%.1f,,,,\n", result->client);
	else if (!perf_kind_is_timed(info->kind))
		printf(",,,,%.1f,%.1f,,,\n", result->client, result->server);
	else
		printf(",%.3f,%.3f,%" PRIu64 ",,,%.6f,%.2f,", perf_result_rate(result),
		       perf_result_mb_per_s(result), result->wrong, result->elapsed_s,
		       result->client_cpu);
	if (perf_kind_is_timed(info->kind) && result->server_cpu >= 0)
		printf("%.2f", result->server_cpu);
	if (perf_kind_is_timed(info->kind))
		printf("\n");
}
