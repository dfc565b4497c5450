// SPDX-License-Identifier: BSD-2-Clause
/* dat_stat shows the state of running processes that use OpenDAT. It reads them from outside. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common.h"
#include "live.h"
#include "options.h"

struct stat_options {
	bool is_json;
	bool is_metrics;
	pid_t pid; /* 0: all */
	const char *adapter;
	double watch_s; /* 0: once */
};

/* --- the command line --- */

static const struct tool_option stat_table[] = {
	{'p', "pid", "PID", .help = "this process"},
	{'a', "adapter", "NAME", "@adapter", .help = "this adapter only"},
	{'w', "watch", "[SECONDS]", .help = "again and again (default: each second)"},
	{'j', "json", .help = "everything, as JSON"},
	{'m', "metrics", .help = "everything, in the text format of Prometheus"},
	TOOL_OPTIONS_COMMON,
};

static int stat_parse_pid(const char *text, pid_t *pid_out)
{
	uint64_t number = 0;

	if (tool_parse_number(text, &number) || !number || number > INT32_MAX)
		return -1;
	*pid_out = (pid_t)number;
	return 0;
}

static int stat_parse_seconds(const char *text, double *seconds_out)
{
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 1;

	if (text && (end == text || *end || !(seconds >= 0.01 && seconds <= 86400)))
		return -1;
	*seconds_out = seconds;
	return 0;
}

/* One option: 0, or -1 for a bad value. */
static int stat_parse_option(int letter, const char *value, void *context)
{
	struct stat_options *options = context;

	switch (letter) {
	case 'p':
		return stat_parse_pid(value, &options->pid);
	case 'a':
		options->adapter = value;
		return 0;
	case 'w':
		return stat_parse_seconds(value, &options->watch_s);
	case 'j':
		options->is_json = true;
		return 0;
	default: /* 'm' */
		options->is_metrics = true;
		return 0;
	}
}

static const struct tool_command stat_command = {
	.usage = "usage: dat_stat [-j | -m] [-q] [-p PID] [-a NAME] [-w [SECONDS]]\n"
		 "\n"
		 "Shows the adapters of running processes, with their endpoints, queues and "
		 "counters.\n"
		 "Without -p, lists the processes of this user (as root: of all users).\n",
	.status = "Exit status: 0 shown, 2 usage error, 3 a process cannot be read, or -p names "
		  "one without\n"
		  "such an adapter, 130 interrupted.\n",
	.options = stat_table,
	.option = stat_parse_option,
};

static int stat_parse(int argc, char **argv, struct stat_options *options)
{
	if (tool_options_parse(&stat_command, argc, argv, options) != 0)
		return -1;
	if (options->is_json && options->is_metrics) {
		tool_complain("--json and --metrics exclude each other");
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

/* A process of the list may be none of ours, have ended, or use a version that cannot be read. */
static bool is_failure(const struct stat_options *options, const struct live_answer *answer)
{
	if (!options->pid &&
	    (!answer->has_library || answer->rc == -ESRCH || answer->rc == -ENOENT))
		return false;
	live_complain(answer->pid, answer->rc);
	return true;
}

/* Takes the processes that were read. Returns an exit status. */
static int list_take(const struct stat_options *options, const struct live_answer *answers,
		     size_t count, struct live_list *list)
{
	int status = TOOL_EXIT_OK;

	list->count = 0;
	list->processes = calloc(count + 1, sizeof(struct live_process *));
	if (!list->processes)
		abort();
	for (size_t i = 0; i < count; i++) {
		struct live_process *process = answers[i].process;

		if (!process && is_failure(options, &answers[i]))
			status = TOOL_EXIT_FAILED;
		else if (process && (process->instance_count || options->pid))
			list->processes[list->count++] = process;
		else
			live_process_free(process);
	}
	return status;
}

/* Reads the processes that the options select. Returns an exit status. */
static int list_read(const struct stat_options *options, struct live_list *list)
{
	struct live_answer one = {.pid = options->pid};
	struct live_answer *answers = NULL;
	size_t count = 1;
	int status;

	if (!options->pid)
		answers = live_candidates(&count);
	live_read_processes(answers ? answers : &one, count, options->adapter);
	status = list_take(options, answers ? answers : &one, count, list);
	free(answers);
	return status;
}

static void list_print(const struct stat_options *options, const struct live_list *list,
		       const struct live_list *before)
{
	char time[TOOL_TIME_TEXT];

	if (options->watch_s > 0 && !options->is_json && !options->is_metrics)
		printf("%s\n", tool_time_text(time));
	if (options->is_json)
		live_print_json(stdout, list);
	else if (options->is_metrics)
		live_print_metrics(stdout, list);
	else if (!options->pid)
		live_print_list(stdout, list);
	else if (list->count)
		live_print_text(stdout, list->processes[0],
				before->count ? before->processes[0] : NULL);
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
	struct stat_options options = {.pid = 0};
	struct live_list before = {.processes = NULL};
	int status;

	tool_name = "dat_stat";
	if (stat_parse(argc, argv, &options) != 0) {
		tool_options_hint();
		return TOOL_EXIT_USAGE;
	}
	if (tool_is_quiet)
		tool_drop_output();
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
