// SPDX-License-Identifier: BSD-2-Clause
/* Figures of dat_perf that follow from others. */
#include "perf_clock.h"
#include "perf_output.h"

/* With fewer samples a percentile would be the maximum, or little else. */
const struct perf_percentile perf_percentiles[PERF_PERCENTILES] = {{"p50", "p50", 500, 10},
								   {"p90", "p90", 900, 30},
								   {"p99", "p99", 990, 100},
								   {"p99_9", "p99.9", 999, 1000}};

double perf_result_us(enum perf_test test)
{
	double us = perf_clock_period_ns() / 1000.0;

	return perf_tests[test].is_halved ? us / 2 : us;
}

void perf_times_of(const struct perf_result *result, struct perf_times *times_out)
{
	double us = perf_result_us(result->test);

	times_out->min = (double)result->stats->min * us;
	times_out->avg = stats_average(result->stats) * us;
	times_out->max = (double)result->stats->max * us;
	for (unsigned i = 0; i < PERF_PERCENTILES; i++)
		times_out->percentiles[i] =
			(double)stats_percentile(result->stats, perf_percentiles[i].permille) * us;
}

double perf_result_rate(const struct perf_result *result)
{
	double count = (double)result->count * (perf_tests[result->test].is_halved ? 2 : 1);
	double rate = result->elapsed_s > 0 ? count / result->elapsed_s : 0;

	if (result->reverse_s > 0)
		rate += (double)result->reverse_count / result->reverse_s;
	return rate;
}

double perf_result_mb_per_s(const struct perf_result *result)
{
	return perf_result_rate(result) * (double)result->size / 1e6;
}

double perf_result_bandwidth(const struct perf_result *result, const struct perf_unit *unit)
{
	return perf_result_rate(result) * (double)result->size / unit->bytes;
}

const struct perf_percentile *perf_result_doubt(const struct perf_result *result)
{
	for (unsigned i = 0; result->stats && i < PERF_PERCENTILES; i++)
		if (result->stats->count < perf_percentiles[i].samples)
			return &perf_percentiles[i];
	return NULL;
}

bool perf_result_is_few(const struct perf_result *result)
{
	if (perf_tests[result->test].kind == PERF_BANDWIDTH && !result->stats)
		return result->count < PERF_BANDWIDTH_SAMPLES;
	return perf_result_doubt(result) != NULL;
}

bool perf_kind_is_timed(enum perf_kind kind)
{
	return kind == PERF_LATENCY || kind == PERF_BANDWIDTH || kind == PERF_CYCLE;
}

const char *perf_mode_text(const struct perf_plan *plan)
{
	return plan->is_waiting ? "wait" : "poll";
}

const char *perf_buffer_text(const struct perf_plan *plan)
{
	if (plan->is_huge)
		return "huge";
	return plan->is_shared ? "shared" : "private";
}

const char *perf_target_text(const struct perf_plan *plan)
{
	return plan->is_target_polling ? "poll" : "sleep";
}
