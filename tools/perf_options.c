// SPDX-License-Identifier: BSD-2-Clause
/* The command line of dat_perf. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "options.h"
#include "perf_crowd.h"
#include "perf_options.h"
#include "perf_idle.h"

#define PERF_IDLE_DEFAULT 1000u
#define PERF_WARM_UP_SHARE 10u
#define PERF_INTERVAL_MIN_S 0.1
#define PERF_WORDS_MAX 64 /* of a line of a batch */

static const struct tool_option perf_table[] = {
	TOOL_OPTIONS_SIDE_IN("side: server or client, and where the other side is"),
	{'K', "clients", "N", .help = "server: serve N clients at once, whose runs begin together"},
	{'C', "cpu", "LIST", .help = "run on these processors only: 0 or 0,2 or 0-3"},
	{'T', "test", "LIST",
	 "lat bw all send-lat write-lat write-comp-lat read-lat wake-lat poll-lat reg reg-kept "
	 "reg-free send-bw write-bw read-bw connect memory cpu-idle space",
	 .help = "some of send-lat write-lat write-comp-lat read-lat, wake-lat\n"
		 "poll-lat, reg reg-kept reg-free, send-bw write-bw read-bw,\n"
		 "connect, memory, cpu-idle, space; or lat (the first four),\n"
		 "bw (the three names in -bw), all (default lat,bw)",
	 .heading = "tests: which tests, with which sizes, how long"},
	{'M', "memory", .help = "the test memory alone: bytes per connected endpoint"},
	{'I', "cpu-idle", .help = "the test cpu-idle alone: processor time of idle endpoints"},
	{'S', "size", "LIST",
	 .help = "bytes, each N or MIN:MAX, a range in powers of two\n"
		 "(default 8,4k,1m; at most 64m)"},
	{'n', "count", "N", .help = "transfers (round trips, connections) per endpoint and size"},
	{'d', "duration", "SECONDS", .help = "by the clock instead of a count (default 0.5)"},
	{'l', "infinite", .help = "one test of one size until Ctrl-C; a line every second"},
	{'y', "interval", "[SECONDS]",
	 .help = "a line so often during each run (default: each second)"},
	{'u', "warmup", "N",
	 .help = "transfers before the measurement (default 1000, or a tenth\n"
		 "of the count or a quarter of the duration if that is less)"},
	{'w', "window", "N", .heading = "load: what is in flight, and how",
	 .help = "requests in flight per endpoint (default 64)"},
	{'r', "rate", "N",
	 .help = "requests per second in the bandwidth tests (k: 10^3, m: 10^6),\n"
		 "with their times from when each is due to its completion"},
	{'g', "signal", "N", .help = "signal one request in N (default 1, at most the window)"},
	{'e', "endpoints", "N", .help = "busy connections (default 1)"},
	{'x', "threads", "N", .help = "threads, each with its own event queues (default 1)"},
	{'i', "idle", "N",
	 .help = "idle connections in addition (default 0; for memory\n"
		 "and cpu-idle 1000)"},
	{'W', "wait", .help = "wait for events instead of polling the event queues"},
	{'B', "bidirectional", .help = "bandwidth in both directions at the same time"},
	{'p', "target", "KIND", "poll sleep",
	 .help = "what the target of RDMA does: poll its event queue,\n"
		 "or sleep: call nothing (default)"},
	{'b', "buffer", "KIND", "private shared huge",
	 .help = "private, shared: in a sealed memory file, or huge: private\n"
		 "in huge pages (default private)"},
	{'N', "segments", "N",
	 .help = "segments of each transfer and Receive (default 1, at most 16)"},
	{'R', "srq", .help = "a shared receive queue for each thread"},
	{'m', "mappings", "N", .help = "additional mappings in the client's process (default 0)"},
	{'v', "check", .help = "verify data; the times then include it"},
	{'U', "unit", "UNIT", "MB GB MiB GiB Mbit Gbit",
	 .heading = "output: the form of the results",
	 .help = "of bandwidths, per second: MB GB MiB GiB Mbit Gbit\n(default MB; JSON and CSV "
		 "have MB)"},
	{'z', "timestamps", .help = "the time in UTC before each line"},
	{'j', "json", .help = "results as JSON"},
	{'k', "csv", .help = "results as comma separated values"},
	{'H', "histogram", .help = "how often which time was measured"},
	{'P', "plot", "FILE", "@file", .help = "the results over the size as a picture (SVG)"},
	{'O', "samples", "FILE", "@file", .help = "every measured time, as comma separated values"},
	{'f', "batch", "FILE", "@file",
	 .help = "one run for each line of FILE, which has options of the client"},
	TOOL_OPTIONS_COMMON_GROUPS("side tests load output"),
};

/* Calls `parse` for each part between commas. */
static int parse_list(const char *text, struct perf_options *options,
		      int (*parse)(const char *part, struct perf_options *options))
{
	char *copy = strdup(text);
	char *rest = copy;
	char *part;
	int rc = copy && *copy ? 0 : -1;

	while (rc == 0 && (part = strsep(&rest, ",")))
		rc = parse(part, options);
	free(copy);
	return rc;
}

static int parse_test(const char *text, struct perf_options *options)
{
	bool is_all = strcmp(text, "all") == 0;
	bool is_lat = strcmp(text, "lat") == 0;
	bool is_bw = strcmp(text, "bw") == 0;
	int rc = -1;

	for (int test = 0; test < PERF_TESTS; test++) {
		enum perf_kind kind = perf_tests[test].kind;
		bool is_apart = perf_tests[test].is_apart;

		if (is_all || (is_lat && kind == PERF_LATENCY && !is_apart) ||
		    (is_bw && kind == PERF_BANDWIDTH) || strcmp(text, perf_tests[test].name) == 0) {
			options->is_test[test] = true;
			rc = 0;
		}
	}
	return rc;
}

static int parse_size(const char *text, struct perf_options *options)
{
	char *copy = strdup(text);
	char *colon = copy ? strchr(copy, ':') : NULL;
	uint64_t min = 0, max = 0;
	int rc = -1;

	if (colon)
		*colon = '\0';
	if (copy && tool_parse_number(copy, &min) == 0) {
		max = min;
		rc = colon ? tool_parse_number(colon + 1, &max) : 0;
	}
	free(copy);
	if (rc != 0 || min == 0 || max < min || max > PERF_SIZE_LIMIT)
		return -1;
	for (;;) {
		if (options->size_count == PERF_SIZES_MAX)
			return -1;
		options->sizes[options->size_count++] = min;
		if (min == max)
			return 0;
		min = min > max / 2 ? max : min * 2;
	}
}

/* Parses a number from min to max. */
static int parse_limited(const char *text, uint64_t min, uint64_t max, uint32_t *number_out)
{
	uint64_t number;

	if (tool_parse_number(text, &number) != 0 || number < min || number > max)
		return -1;
	*number_out = (uint32_t)number;
	return 0;
}

static int parse_count(const char *text, uint64_t min, uint64_t *count_out)
{
	if (tool_parse_number(text, count_out) != 0 || *count_out < min)
		return -1;
	return *count_out > PERF_COUNT_LIMIT ? -1 : 0;
}

static int parse_seconds(const char *text, double *seconds_out)
{
	char *end;

	*seconds_out = strtod(text, &end);
	if (end == text || *end != '\0')
		return -1;
	/* this form of the comparison also refuses NaN */
	return *seconds_out >= 0.001 && *seconds_out <= 3600 ? 0 : -1;
}

static const struct perf_unit perf_units[] = {
	{"MB", 1e6},	  {"GB", 1e9},	     {"MiB", 1048576},
	{"GiB", 1 << 30}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8},
};

static int parse_unit(const char *text, const struct perf_unit **unit_out)
{
	for (size_t i = 0; i < sizeof(perf_units) / sizeof(perf_units[0]); i++) {
		*unit_out = &perf_units[i];
		if (strcmp(text, perf_units[i].name) == 0)
			return 0;
	}
	return -1;
}

static int parse_interval(const char *text, double *seconds_out)
{
	*seconds_out = 1;
	if (text && parse_seconds(text, seconds_out) != 0)
		return -1;
	return *seconds_out >= PERF_INTERVAL_MIN_S ? 0 : -1;
}

/* "5000", "1.5m" */
static int parse_rate(const char *text, double *rate_out)
{
	char *end;
	double rate = strtod(text, &end);

	if (end == text)
		return -1;
	if (*end == 'k' || *end == 'm') {
		rate *= *end == 'k' ? 1e3 : 1e6;
		end++;
	}
	*rate_out = rate;
	/* this form of the comparison also refuses NaN */
	return *end == '\0' && rate >= 1 && rate <= 1e9 ? 0 : -1;
}

static int parse_buffer(const char *text, struct perf_plan *plan)
{
	plan->is_shared = strcmp(text, "shared") == 0;
	plan->is_huge = strcmp(text, "huge") == 0;
	return plan->is_shared || plan->is_huge || strcmp(text, "private") == 0 ? 0 : -1;
}

static int parse_target(const char *text, struct perf_plan *plan)
{
	plan->is_target_polling = strcmp(text, "poll") == 0;
	return plan->is_target_polling || strcmp(text, "sleep") == 0 ? 0 : -1;
}

/* An option that goes into the plan: 0, -1 for a bad value, 1 for another option. */
static int parse_plan_option(int option, const char *value, struct perf_options *options)
{
	struct perf_plan *plan = &options->plan;

	switch (option) {
	case 'w':
		return parse_limited(value, 1, PERF_WINDOW_LIMIT, &plan->window);
	case 'g':
		return parse_limited(value, 1, PERF_WINDOW_LIMIT, &plan->signal);
	case 'e':
		return parse_limited(value, 1, PERF_ENDPOINTS_LIMIT, &plan->endpoints);
	case 'x':
		return parse_limited(value, 1, PERF_THREADS_LIMIT, &plan->threads);
	case 'i':
		return parse_limited(value, 0, PERF_IDLE_LIMIT, &options->idle);
	case 'r':
		return parse_rate(value, &options->rate);
	case 'N':
		return parse_limited(value, 1, PERF_SEGMENTS_LIMIT, &plan->segments);
	case 'R':
		plan->is_srq = true;
		return 0;
	case 'W':
		plan->is_waiting = true;
		return 0;
	case 'p':
		return parse_target(value, plan);
	case 'b':
		return parse_buffer(value, plan);
	case 'B':
		plan->is_bidirectional = true;
		return 0;
	case 'v':
		plan->is_checked = true;
		return 0;
	default:
		return 1;
	}
}

/* An option for the results, with the same results. */
static int parse_output_option(int option, const char *value, struct perf_options *options)
{
	switch (option) {
	case 'U':
		return parse_unit(value, &options->unit);
	case 'z':
		options->is_stamped = true;
		return 0;
	case 'j':
		options->format = PERF_JSON;
		return 0;
	case 'k':
		options->format = PERF_CSV;
		return 0;
	case 'H':
		options->is_histogram = true;
		return 0;
	case 'P':
		options->plot = value;
		return 0;
	case 'O':
		options->samples = value;
		return 0;
	case 'f':
		options->batch = value;
		return 0;
	default:
		return parse_plan_option(option, value, options);
	}
}

/* Any option of the client, with the same results. */
static int parse_client_option(int option, const char *value, struct perf_options *options)
{
	switch (option) {
	case 'T':
		return parse_list(value, options, parse_test);
	case 'M':
		return parse_test("memory", options);
	case 'I':
		return parse_test("cpu-idle", options);
	case 'S':
		options->size_count = 0;
		return parse_list(value, options, parse_size);
	case 'n':
		return parse_count(value, 1, &options->count);
	case 'd':
		return parse_seconds(value, &options->duration_s);
	case 'u':
		options->has_warm_up = true;
		return parse_count(value, 0, &options->warm_up);
	case 'm':
		return parse_limited(value, 0, PERF_MAPPINGS_LIMIT, &options->mappings);
	case 'y':
		return parse_interval(value, &options->interval_s);
	case 'l':
		options->is_infinite = true;
		return 0;
	default:
		return parse_output_option(option, value, options);
	}
}

/* Any option: 0, or -1 for a bad value. */
static int parse_option(int option, const char *value, void *context)
{
	struct perf_options *options = context;
	int rc = tool_side_option(option, value, &options->side);

	if (rc <= 0)
		return rc;
	if (option == 'K')
		return parse_limited(value, 1, PERF_CLIENTS_LIMIT, &options->clients);
	if (option != 'C')
		return parse_client_option(option, value, options);
	options->cpus = value;
	return 0;
}

/* The number of selected tests, and one of them. */
static unsigned selected_tests(const struct perf_options *options, enum perf_test *test_out)
{
	unsigned count = 0;

	for (int test = 0; test < PERF_TESTS; test++) {
		if (!options->is_test[test])
			continue;
		count++;
		*test_out = (enum perf_test)test;
	}
	return count;
}

/* Sets defaults that depend on other options. */
static void finish_defaults(struct perf_options *options)
{
	struct perf_plan *plan = &options->plan;
	enum perf_test unused;

	if (selected_tests(options, &unused) == 0)
		parse_list("lat,bw", options, parse_test);
	if (options->size_count == 0)
		parse_list("8,4k,1m", options, parse_size);
	plan->size_max = 0;
	for (unsigned i = 0; i < options->size_count; i++)
		if (options->sizes[i] > plan->size_max)
			plan->size_max = options->sizes[i];
	/* room for the message with the target of the Write */
	if ((options->is_test[PERF_REG] || options->is_test[PERF_REG_KEPT]) &&
	    plan->size_max < sizeof(struct perf_fragment))
		plan->size_max = sizeof(struct perf_fragment);
	if (!options->has_warm_up && options->count != 0 &&
	    options->warm_up > options->count / PERF_WARM_UP_SHARE)
		options->warm_up = options->count / PERF_WARM_UP_SHARE;
	plan->idle = options->idle;
	if (plan->idle == 0 && (options->is_test[PERF_MEMORY] || options->is_test[PERF_CPU_IDLE]))
		plan->idle = PERF_IDLE_DEFAULT;
	if (plan->threads > plan->endpoints)
		plan->endpoints = plan->threads;
}

/* A run without an end has one table of intervals. */
static const char *finish_infinite(const struct perf_options *options)
{
	enum perf_test test = PERF_SEND_LAT;

	if (selected_tests(options, &test) != 1 || options->size_count != 1)
		return "--infinite needs one --test and one --size";
	if (perf_tests[test].kind > PERF_BANDWIDTH)
		return "--infinite is for tests of latency and bandwidth";
	if (options->count != 0)
		return "--infinite and --count exclude each other";
	if (options->plan.is_bidirectional)
		return "--infinite and --bidirectional exclude each other";
	return NULL;
}

/* The first combination of options that is wrong, or NULL. */
static const char *finish_check(const struct perf_options *options)
{
	const struct perf_plan *plan = &options->plan;

	if (plan->signal > plan->window)
		return "--signal must not exceed --window, or no request would complete";
	if (plan->is_bidirectional && plan->is_waiting)
		return "--bidirectional polls two queues, so --wait cannot be used";
	if (plan->is_srq && (plan->is_bidirectional || plan->is_checked))
		return "--srq excludes --bidirectional and --check: a message may arrive in the "
		       "buffer of any endpoint";
	if (options->rate > 0 && (plan->is_bidirectional || plan->is_waiting || plan->signal != 1))
		return "--rate polls and signals each request, so it excludes --bidirectional, "
		       "--wait and --signal";
	for (int test = 0; plan->is_srq && test < PERF_TESTS; test++)
		if (options->is_test[test] && !perf_test_shares((enum perf_test)test))
			return "--srq cannot be used with the tests poll-lat, reg and reg-kept";
	if (!perf_plan_is_good(plan))
		return "the buffers exceed 4 GiB: use a smaller --size, --endpoints or (for "
		       "--check and --srq) --window";
	if (options->interval_s > 0 && options->format == PERF_CSV)
		return options->is_infinite ? "--infinite and --csv exclude each other"
					    : "--interval and --csv exclude each other";
	return options->is_infinite ? finish_infinite(options) : NULL;
}

/* Sets defaults that depend on other options, and checks combinations. */
static int finish_client(struct perf_options *options)
{
	const char *fault;

	if (tool_side_check(&options->side) != 0)
		return -1;
	if (options->clients > 1) {
		tool_complain("--clients is for a server");
		return -1;
	}
	if (options->is_infinite && options->interval_s <= 0)
		options->interval_s = 1;
	finish_defaults(options);
	fault = finish_check(options);
	if (fault)
		tool_complain("%s", fault);
	return fault ? -1 : 0;
}

static const struct tool_command perf_command = {
	.usage = "usage: dat_perf -s [OPTION...]                     serve\n"
		 "       dat_perf [-c] [OPTION...] -Q N [ADDRESS]    connect to a server and "
		 "measure\n"
		 "The client sends the options of the groups tests and load to the server.\n",
	.status =
		"Exit status: 0 done, 1 wrong data, 2 usage error, 3 a call or connection failed,\n"
		"130 stopped by a signal.\n",
	.options = perf_table,
	.argument = "@host",
	.argument_limit = 1,
	.option = parse_option,
	.take = tool_side_host,
};

int perf_options_parse(int argc, char **argv, struct perf_options *options)
{
	*options = (struct perf_options){
		.side = TOOL_SIDE_DEFAULT,
		.duration_s = 0.5,
		.warm_up = 1000,
		.unit = &perf_units[0],
		.clients = 1,
		.plan = {.window = 64, .signal = 1, .endpoints = 1, .threads = 1, .segments = 1},
	};
	if (tool_options_parse(&perf_command, argc, argv, options) != 0)
		return -1;
	if (options->side.is_server)
		return tool_side_check(&options->side);
	/* the lines of a batch are complete only with their own options */
	return options->batch ? 0 : finish_client(options);
}

/* Splits a line at spaces. Returns the number of words, which is at most `max`, or -1. */
static int split_words(char *line, char **words, int max)
{
	char *rest = line;
	int count = 0;
	char *word;

	while ((word = strsep(&rest, " \t\n"))) {
		if (*word == '\0')
			continue;
		if (*word == '#')
			break;
		if (count == max)
			return -1;
		words[count++] = word;
	}
	return count;
}

/* Options that concern the whole process, or that have no place in a run of a batch. */
static bool is_of_run(const struct perf_options *options, const struct perf_options *command)
{
	return !options->side.is_server && !options->side.is_once && !options->side.is_daemon &&
	       !options->side.pid_file && options->clients == 1 && options->cpus == command->cpus &&
	       options->format == command->format && options->plot == command->plot &&
	       options->samples == command->samples && options->batch == command->batch &&
	       options->mappings == command->mappings && !options->is_infinite;
}

int perf_options_parse_line(char *line, const char *where, const struct perf_options *command,
			    struct perf_options *options)
{
	char *words[PERF_WORDS_MAX + 2];
	const char *name = tool_name;
	int count = split_words(line, words + 1, PERF_WORDS_MAX);
	int rc = -1;

	*options = *command;
	if (count == 0)
		return 0;
	/* messages begin with the place of the fault */
	tool_name = where;
	words[0] = (char *)(uintptr_t)where;
	words[(count < 0 ? 0 : count) + 1] = NULL;
	if (count < 0)
		tool_complain("more than %d words", PERF_WORDS_MAX);
	else if (tool_options_parse(&perf_command, count + 1, words, options) == 0) {
		if (is_of_run(options, command))
			rc = finish_client(options);
		else
			tool_complain("only options of a single run can be in a batch");
	}
	tool_name = name;
	return rc == 0 ? 1 : rc;
}
