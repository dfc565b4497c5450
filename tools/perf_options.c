// SPDX-License-Identifier: BSD-2-Clause
/* The command line of dat_perf. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "perf.h"
#include "perf_idle.h"

#define PERF_IDLE_DEFAULT 1000u
#define PERF_WARM_UP_SHARE 10u

static const char perf_usage[] =
	"usage: dat_perf -s [OPTION...]                     serve\n"
	"       dat_perf [-c] [OPTION...] -q N [ADDRESS]    connect to a server and measure\n"
	"\n"
	"  -s, --server           wait for clients; prints the qualifier it listens on\n"
	"  -c, --client           connect (default); ADDRESS is a number or a host name,\n"
	"                         default: the adapter's own address\n"
	"  -a, --adapter NAME     interface adapter (default soft-lo; `dat_info -l` lists them)\n"
	"  -q, --qual N           connection qualifier (server: default chosen by the provider)\n"
	"  -1, --once             server: serve one client, then exit\n"
	"  -C, --cpu LIST         run on these processors only: 0 or 0,2 or 0-3\n"
	"  -t, --timeout SECONDS  give up when the peer is silent for this long (default 10)\n"
	"  -h, --help             this text\n"
	"\n"
	"Options of the client, which sends them to the server:\n"
	"  -T, --test LIST        some of send-lat write-lat write-comp-lat read-lat, wake-lat\n"
	"                         poll-lat, reg reg-kept reg-free, send-bw write-bw read-bw,\n"
	"                         connect, memory, cpu-idle, space; or lat (the first four),\n"
	"                         bw (the three names in -bw), all (default lat,bw)\n"
	"  -M, --memory           the test memory alone: bytes per connected endpoint\n"
	"  -I, --cpu-idle         the test cpu-idle alone: processor time of idle endpoints\n"
	"  -S, --size LIST        bytes, each N or MIN:MAX, a range in powers of two\n"
	"                         (default 8,4k,1m; at most 64m)\n"
	"  -n, --count N          transfers (round trips, connections) per endpoint and size\n"
	"  -d, --duration SECONDS instead of a count (default 0.5)\n"
	"  -u, --warmup N         transfers before the measurement (default 1000, or a tenth\n"
	"                         of the count if that is less)\n"
	"  -w, --window N         requests in flight per endpoint (default 64)\n"
	"  -g, --signal N         signal one request in N (default 1, at most the\n"
	"                         window)\n"
	"  -e, --endpoints N      busy connections (default 1)\n"
	"  -x, --threads N        threads, each with its own event queues (default 1)\n"
	"  -i, --idle N           idle connections in addition (default 0; for memory\n"
	"                         and cpu-idle 1000)\n"
	"  -W, --wait             wait for events instead of polling the event queues\n"
	"  -p, --target KIND      what the target of RDMA does: poll its event queue,\n"
	"                         or sleep: call nothing (default)\n"
	"  -b, --buffer KIND      private, or shared: in a sealed memory file (default private)\n"
	"  -m, --mappings N       additional mappings in the client's process (default 0)\n"
	"  -v, --check            verify data; the times then include it\n"
	"  -j, --json             results as JSON\n"
	"  -k, --csv              results as comma separated values\n"
	"\n"
	"Exit status: 0 done, 1 wrong data, 2 usage error, 3 a call or connection failed,\n"
	"130 stopped by a signal.\n";

static const struct option perf_longs[] = {
	{"server", no_argument, NULL, 's'},	   {"client", no_argument, NULL, 'c'},
	{"adapter", required_argument, NULL, 'a'}, {"qual", required_argument, NULL, 'q'},
	{"once", no_argument, NULL, '1'},	   {"cpu", required_argument, NULL, 'C'},
	{"timeout", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
	{"test", required_argument, NULL, 'T'},	   {"memory", no_argument, NULL, 'M'},
	{"cpu-idle", no_argument, NULL, 'I'},	   {"size", required_argument, NULL, 'S'},
	{"count", required_argument, NULL, 'n'},   {"duration", required_argument, NULL, 'd'},
	{"warmup", required_argument, NULL, 'u'},  {"window", required_argument, NULL, 'w'},
	{"signal", required_argument, NULL, 'g'},  {"endpoints", required_argument, NULL, 'e'},
	{"threads", required_argument, NULL, 'x'}, {"idle", required_argument, NULL, 'i'},
	{"wait", no_argument, NULL, 'W'},	   {"target", required_argument, NULL, 'p'},
	{"check", no_argument, NULL, 'v'},	   {"buffer", required_argument, NULL, 'b'},
	{"json", no_argument, NULL, 'j'},	   {"mappings", required_argument, NULL, 'm'},
	{"csv", no_argument, NULL, 'k'},	   {NULL, 0, NULL, 0},
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

static int parse_buffer(const char *text, struct perf_plan *plan)
{
	plan->is_shared = strcmp(text, "shared") == 0;
	return plan->is_shared || strcmp(text, "private") == 0 ? 0 : -1;
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
	case 'W':
		plan->is_waiting = true;
		return 0;
	case 'p':
		return parse_target(value, plan);
	case 'b':
		return parse_buffer(value, plan);
	case 'v':
		plan->is_checked = true;
		return 0;
	default:
		return 1;
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
	case 'j':
		options->format = PERF_JSON;
		return 0;
	case 'k':
		options->format = PERF_CSV;
		return 0;
	default:
		return parse_plan_option(option, value, options);
	}
}

/* Any option: 0, or -1 for a bad value. */
static int parse_option(int option, const char *value, struct perf_options *options)
{
	uint32_t seconds;

	switch (option) {
	case 's':
		options->is_server = true;
		return 0;
	case 'c':
		options->is_server = false;
		return 0;
	case 'a':
		options->adapter = value;
		return 0;
	case 'q':
		return tool_parse_number(value, &options->qualifier);
	case '1':
		options->is_once = true;
		return 0;
	case 'C':
		options->cpus = value;
		return 0;
	case 't':
		if (parse_limited(value, 1, 4000, &seconds) != 0)
			return -1;
		options->timeout_ms = seconds * 1000;
		return 0;
	default:
		return parse_client_option(option, value, options);
	}
}

/* Sets defaults that depend on other options, and checks combinations. */
static int finish_client(struct perf_options *options)
{
	struct perf_plan *plan = &options->plan;
	bool has_test = false;

	for (int test = 0; test < PERF_TESTS; test++)
		has_test |= options->is_test[test];
	if (!has_test)
		parse_list("lat,bw", options, parse_test);
	if (options->size_count == 0)
		parse_list("8,4k,1m", options, parse_size);
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
	if (options->qualifier == 0) {
		tool_complain("a client needs --qual, the number that the server prints");
		return -1;
	}
	if (plan->signal > plan->window) {
		tool_complain("--signal must not exceed --window, or no request would complete");
		return -1;
	}
	if (plan->threads > plan->endpoints)
		plan->endpoints = plan->threads;
	if (!perf_plan_is_good(plan)) {
		tool_complain("the buffers exceed 4 GiB: use a smaller --size, --endpoints or "
			      "(for --check) --window");
		return -1;
	}
	return 0;
}

int perf_options_parse(int argc, char **argv, struct perf_options *options)
{
	int option;

	*options = (struct perf_options){
		.adapter = "soft-lo",
		.timeout_ms = 10000,
		.duration_s = 0.5,
		.warm_up = 1000,
		.plan = {.window = 64, .signal = 1, .endpoints = 1, .threads = 1},
	};
	while ((option = getopt_long(argc, argv, "sca:q:1C:t:hT:MIS:n:d:u:w:g:e:x:i:Wp:b:vm:jk",
				     perf_longs, NULL)) != -1) {
		if (option == 'h') {
			fputs(perf_usage, stdout);
			exit(TOOL_EXIT_OK);
		}
		if (option == '?')
			return -1;
		if (parse_option(option, optarg, options) != 0) {
			tool_complain("-%c %s: invalid value", option, optarg ? optarg : "");
			return -1;
		}
	}
	if (optind < argc && !options->is_server)
		options->host = argv[optind++];
	if (optind < argc) {
		tool_complain("%s: too many arguments", argv[optind]);
		return -1;
	}
	return options->is_server ? 0 : finish_client(options);
}
