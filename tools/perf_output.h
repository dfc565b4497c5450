// SPDX-License-Identifier: BSD-2-Clause
/* The results of dat_perf: tables, JSON, CSV, histograms and a picture. */
#ifndef TOOLS_PERF_OUTPUT_H
#define TOOLS_PERF_OUTPUT_H

#include "common.h"
#include "perf_options.h"

/* The figures of one test. */
struct perf_result {
	enum perf_test test;
	uint64_t size;
	uint64_t count; /* over all endpoints */
	uint64_t wrong;
	double elapsed_s;
	uint64_t reverse_count; /* from the server, in a bidirectional test */
	double reverse_s;
	double client_cpu; /* percent of one processor; -1: not measured */
	double server_cpu;
	const struct stats *stats; /* in ticks; NULL: none */
	double client;		   /* bytes per endpoint, or us of processor time per s */
	double server;
	double client_shared;
	double server_shared;
	double client_space; /* per endpoint */
	double server_space;
};

/* What a run without an end has done since the last report. */
struct perf_interval {
	enum perf_test test;
	uint64_t size;
	double at_s; /* since the start */
	double elapsed_s;
	char time[TOOL_TIME_TEXT];
	uint64_t count;	   /* transfers in one direction */
	uint32_t in_turns; /* of them at a time: the time of one follows */
};

/* Percentiles in the order of the columns. */
struct perf_percentile {
	const char *name; /* in JSON and CSV */
	const char *text;
	unsigned permille;
	uint64_t samples; /* fewer are too few for it */
};

#define PERF_PERCENTILES 4u
/* fewer transfers are too few for a bandwidth */
#define PERF_BANDWIDTH_SAMPLES 10u
extern const struct perf_percentile perf_percentiles[PERF_PERCENTILES];

/* The times of one result, in microseconds of one way. */
struct perf_times {
	double min;
	double avg;
	double max;
	double percentiles[PERF_PERCENTILES];
};

/* perf_figures.c: figures that follow from others. */
void perf_times_of(const struct perf_result *result, struct perf_times *times_out);
/* The factor from ticks to microseconds of one way. */
double perf_result_us(enum perf_test test);
/* Transfers per second in all directions: a round trip counts twice. */
double perf_result_rate(const struct perf_result *result);
double perf_result_mb_per_s(const struct perf_result *result);
double perf_result_bandwidth(const struct perf_result *result, const struct perf_unit *unit);
/* The first percentile that has too few samples, or NULL. */
const struct perf_percentile *perf_result_doubt(const struct perf_result *result);
/* Are there too few samples or transfers for the figures? */
bool perf_result_is_few(const struct perf_result *result);
bool perf_kind_is_timed(enum perf_kind kind);
const char *perf_mode_text(const struct perf_plan *plan);
const char *perf_buffer_text(const struct perf_plan *plan);
const char *perf_target_text(const struct perf_plan *plan);

/* perf_output.c: the table for people, and all formats together. */
void perf_output_begin(const struct perf_options *options, struct perf_peer *peer);
void perf_output_result(const struct perf_options *options, const struct perf_result *result);
void perf_output_interval(const struct perf_options *options, const struct perf_interval *interval);
void perf_output_end(const struct perf_options *options, uint64_t wrong, bool is_complete);
/* Between the first and the last run of a batch. */
void perf_output_batch_begin(const struct perf_options *options);
void perf_output_batch_next(const struct perf_options *options, bool is_first);
void perf_output_batch_end(const struct perf_options *options);

/* perf_json.c, perf_csv.c */
void perf_json_begin(const struct perf_options *options, struct perf_peer *peer);
void perf_json_result(const struct perf_options *options, const struct perf_result *result,
		      bool is_first);
void perf_json_interval(const struct perf_interval *interval, bool is_first);
/* Keeps an interval for the result of its run. */
void perf_json_keep_interval(const struct perf_interval *interval);
void perf_json_end(uint64_t wrong, bool is_complete);
void perf_csv_head(const struct perf_options *options);
void perf_csv_result(const struct perf_options *options, const struct perf_result *result);

/* perf_histogram.c: how often which time was measured. */
void perf_histogram_print(const struct perf_result *result);
void perf_histogram_print_json(const struct perf_result *result);

/* perf_about.c: where and with what the measurement was made, as members of a JSON object. */
void perf_about_print_json(const struct perf_peer *peer);

/* perf_samples.c: the file of all times. 0, or -errno after a message. */
int perf_samples_open(const char *path);
/* Has the workers keep the times of the next run, if the file is open; writes them. */
void perf_samples_begin(struct perf_peer *peer);
void perf_samples_end(struct perf_peer *peer, const struct perf_run *run);
int perf_samples_close(void);

/* perf_plot.c: the picture. Returns 0, or -errno after a message. */
int perf_plot_open(const char *path);
/* Says what the results are of: before the first result of a run. */
void perf_plot_begin(const struct perf_options *options, struct perf_peer *peer);
void perf_plot_add(const struct perf_result *result);
int perf_plot_close(void);

#endif
