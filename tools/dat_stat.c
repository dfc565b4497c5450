// SPDX-License-Identifier: BSD-2-Clause
/* dat_stat shows the state of running processes that use OpenDAT. It reads them from outside. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "live.h"

static const char stat_usage[] =
	"usage: dat_stat [-j | -m] [-p PID] [-a NAME] [-w [SECONDS]]\n"
	"\n"
	"Shows the adapters of running processes, with their endpoints, queues and counters.\n"
	"Without -p, lists the processes of this user (as root: of all users).\n"
	"\n"
	"  -p, --pid PID            this process\n"
	"  -a, --adapter NAME       this adapter only\n"
	"  -w, --watch[=SECONDS]    again and again (default: each second)\n"
	"  -j, --json               everything, as JSON\n"
	"  -m, --openmetrics        everything, as OpenMetrics text\n"
	"  -h, --help               this text\n"
	"  -V, --version            the version\n"
	"\n"
	"Exit status: 0 shown, 2 usage error, 3 a process cannot be read, or -p names one without\n"
	"such an adapter, 130 interrupted.\n";

enum stat_format {
	STAT_TEXT,
	STAT_JSON,
	STAT_METRICS,
};

struct stat_options {
	enum stat_format format;
	pid_t pid; /* 0: all */
	const char *adapter;
	double watch_s; /* 0: once */
};

static int parse_pid(const char *text, pid_t *pid_out)
{
	uint64_t number = 0;

	if (tool_parse_number(text, &number) || !number || number > INT32_MAX) {
		tool_complain("--pid: \"%s\" is not the number of a process", text);
		return -EINVAL;
	}
	*pid_out = (pid_t)number;
	return 0;
}

static int parse_seconds(const char *text, double *seconds_out)
{
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 1;

	if (text && (end == text || *end || !(seconds >= 0.01 && seconds <= 86400))) {
		tool_complain("--watch: \"%s\" is not a time from 0.01 to 86400 s", text);
		return -EINVAL;
	}
	*seconds_out = seconds;
	return 0;
}

/* Takes one option. -1: a message was printed; 1: the program is done. */
static int take_option(int option, struct stat_options *options)
{
	switch (option) {
	case 'p':
		return parse_pid(optarg, &options->pid) ? -1 : 0;
	case 'a':
		options->adapter = optarg;
		return 0;
	case 'w':
		return parse_seconds(optarg, &options->watch_s) ? -1 : 0;
	case 'j':
	case 'm':
		if (options->format != STAT_TEXT) {
			tool_complain("--json and --openmetrics exclude each other");
			return -1;
		}
		options->format = option == 'j' ? STAT_JSON : STAT_METRICS;
		return 0;
	case 'h':
		fputs(stat_usage, stdout);
		return 1;
	case 'V':
		puts("dat_stat (OpenDAT) " TOOL_RELEASE);
		return 1;
	default:
		fputs(stat_usage, stderr);
		return -1;
	}
}

static int parse(int argc, char **argv, struct stat_options *options)
{
	static const struct option longs[] = {
		{"pid", required_argument, NULL, 'p'},	 {"adapter", required_argument, NULL, 'a'},
		{"watch", optional_argument, NULL, 'w'}, {"json", no_argument, NULL, 'j'},
		{"openmetrics", no_argument, NULL, 'm'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	 {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "p:a:w::jmhV", longs, NULL)) != -1) {
		int done = take_option(option, options);

		if (done)
			return done;
	}
	/* "--watch 5": the value of an option that may have none is a word of its own */
	if (optind == argc - 1 && options->watch_s > 0)
		return parse_seconds(argv[optind], &options->watch_s) ? -1 : 0;
	if (optind < argc) {
		fputs(stat_usage, stderr);
		return -1;
	}
	return 0;
}

/* --- one look --- */

static void list_free(struct live_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		live_process_free(list->processes[i]);
	free(list->processes);
	*list = (struct live_list){.processes = NULL};
}

/* A process of the list may have ended meanwhile, or use a version that cannot be read. */
static bool is_failure(const struct stat_options *options, pid_t pid, int rc)
{
	if (!options->pid && (rc == -ESRCH || rc == -ENOENT))
		return false;
	live_complain(pid, rc);
	return true;
}

/* Reads the processes that the options select. Returns an exit status. */
static int list_read(const struct stat_options *options, struct live_list *list)
{
	static pid_t pids[LIVE_PROCESSES];
	size_t count = 1;
	int status = TOOL_EXIT_OK;

	pids[0] = options->pid;
	if (!options->pid)
		count = live_pids(pids, LIVE_PROCESSES);
	list->count = 0;
	list->processes = calloc(count + 1, sizeof(struct live_process *));
	if (!list->processes)
		abort();
	for (size_t i = 0; i < count; i++) {
		struct live_process *process;
		int rc = live_process_read(pids[i], options->adapter, &process);

		if (!rc && (process->instance_count || options->pid))
			list->processes[list->count++] = process;
		else if (!rc)
			live_process_free(process);
		else if (is_failure(options, pids[i], rc))
			status = TOOL_EXIT_FAILED;
	}
	return status;
}

static void list_print(const struct stat_options *options, const struct live_list *list,
		       const struct live_list *before)
{
	switch (options->format) {
	case STAT_JSON:
		live_print_json(stdout, list);
		break;
	case STAT_METRICS:
		live_print_metrics(stdout, list);
		break;
	default:
		if (!options->pid)
			live_print_list(list);
		else if (list->count)
			live_print_text(list->processes[0],
					before->count ? before->processes[0] : NULL);
	}
	fflush(stdout);
}

static int look(const struct stat_options *options, struct live_list *before)
{
	struct live_list list;
	int status = list_read(options, &list);

	if (!status && options->pid && !list.processes[0]->instance_count) {
		if (options->adapter)
			tool_complain("process %d: has not opened %s", (int)options->pid,
				      options->adapter);
		else
			tool_complain("process %d: has no adapter open", (int)options->pid);
		status = TOOL_EXIT_FAILED;
	} else {
		list_print(options, &list, before);
	}
	list_free(before);
	*before = list;
	return status;
}

static void pause_s(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds};

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL); /* a signal ends it */
}

int main(int argc, char **argv)
{
	struct stat_options options = {.format = STAT_TEXT};
	struct live_list before = {.processes = NULL};
	int status;

	tool_name = "dat_stat";
	status = parse(argc, argv, &options);
	if (status)
		return status > 0 ? TOOL_EXIT_OK : TOOL_EXIT_USAGE;
	tool_catch_signals();
	do {
		status = look(&options, &before);
		/* one process that has ended is the end; the list may become longer again */
		if (ferror(stdout) || options.watch_s <= 0 || (status && options.pid))
			break;
		pause_s(options.watch_s);
	} while (!tool_is_stopped);
	list_free(&before);
	if (tool_is_stopped)
		return TOOL_EXIT_STOPPED;
	return ferror(stdout) ? TOOL_EXIT_FAILED : status;
}
