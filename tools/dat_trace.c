// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_trace runs a program and shows its calls. libdat-check.so.1, which stands between libdat and the
 * provider, writes them; the environment tells it what is wanted (shared/trace.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/calls.h"
#include "common.h"
#include "options.h"
#include "shared/trace.h"
#include "trace.h"

#define NOT_FOUND 127 /* as shells do */

struct trace_options {
	bool is_json, is_count;
	const char *adapter, *calls, *eps;
	const char *output, *transfers; /* files */
	char **program;
};

#define CALL_NAME(name, level) "dat_" #name,
const char *const trace_call_names[] = {CHECK_CALLS(CALL_NAME) "dat_ia_open", NULL};

/* --- the command line --- */

static const struct tool_option trace_table[] = {
	{'c', "count", .help = "print a summary by call and endpoint when the program has ended"},
	{'e', "calls", "LIST",
	 .help = "these calls only: names or patterns, such as post_*,evd_wait"},
	{'E', "ep", "LIST", .help = "calls and events of these endpoints only, by their numbers"},
	{'a', "adapter", "NAME", "@adapter", .help = "calls on this adapter only"},
	{'j', "json", .help = "a JSON object for each call"},
	{'o', "output", "FILE", "@file", .help = "write there, not to standard error"},
	{'w', "write", "FILE", "@file",
	 .help = "write what is transferred, for Wireshark (pcapng)"},
	TOOL_OPTIONS_COMMON,
};

/* Is each word of the list the name of a call, or a pattern of some? */
static bool are_calls(const char *list)
{
	char pattern[64];
	bool is_found = true;

	for (; is_found && *list; list += strcspn(list, ","), list += *list == ',') {
		snprintf(pattern, sizeof(pattern), "%.*s", (int)strcspn(list, ","), list);
		is_found = false;
		for (unsigned i = 0; trace_call_names[i] && !is_found; i++)
			is_found = fnmatch(pattern, trace_call_names[i], 0) == 0 ||
				   fnmatch(pattern, trace_call_names[i] + strlen("dat_"), 0) == 0;
	}
	return is_found;
}

static bool are_numbers(const char *list)
{
	return *list >= '0' && *list <= '9' && list[strspn(list, "0123456789,")] == '\0';
}

static int trace_parse_option(int letter, const char *value, void *context)
{
	struct trace_options *options = context;

	switch (letter) {
	case 'c':
		options->is_count = true;
		return 0;
	case 'e':
		options->calls = value;
		return *value && are_calls(value) ? 0 : -1;
	case 'E':
		options->eps = value;
		return are_numbers(value) ? 0 : -1;
	case 'a':
		options->adapter = value;
		return 0;
	case 'j':
		options->is_json = true;
		return 0;
	case 'o':
		options->output = value;
		return 0;
	default: /* 'w' */
		options->transfers = value;
		return 0;
	}
}

static int trace_take_program(char **argv, void *context)
{
	((struct trace_options *)context)->program = argv;
	return 0;
}

static const struct tool_command trace_command = {
	.usage =
		"usage: dat_trace [OPTION...] PROGRAM [ARGUMENT...]\n"
		"\n"
		"Runs a program and prints its DAT calls, with arguments, results and durations.\n",
	.status = "Exit status: that of the program, 128 and the number of the signal that ended "
		  "it,\n"
		  "2 usage error, 3 a file cannot be written, 127 there is no such program.\n",
	.options = trace_table,
	.option = trace_parse_option,
	.program = trace_take_program,
};

static int trace_parse(int argc, char **argv, struct trace_options *options)
{
	if (tool_options_parse(&trace_command, argc, argv, options) != 0)
		return -1;
	if (!options->program) {
		tool_complain("no program is given");
		return -1;
	}
	if (options->is_json && options->is_count) {
		tool_complain("--json and --count exclude each other");
		return -1;
	}
	return 0;
}

/* --- the environment of the program --- */

/* An absolute path of an empty file: the program may go to another folder. NULL: a message was printed. */
static char *empty_file(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	char *path = fd >= 0 ? realpath(name, NULL) : NULL;

	if (!path)
		tool_complain("%s: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return path;
}

static int set_variable(const char *name, const char *value)
{
	return value && *value ? setenv(name, value, 1) : unsetenv(name);
}

static int set_file(const char *variable, const char *name)
{
	char *path = name ? empty_file(name) : NULL;
	int rc = name && !path ? -1 : set_variable(variable, path);

	free(path);
	return rc;
}

static int set_environment(const struct trace_options *options)
{
	const char *form = options->is_count || tool_is_quiet ? "count"
			   : options->is_json		      ? "json"
							      : "text";

	return set_variable("DAT_TRACE", form) || set_variable("DAT_TRACE_CALLS", options->calls) ||
			       set_variable("DAT_TRACE_EPS", options->eps) ||
			       set_variable("DAT_TRACE_ADAPTER", options->adapter) ||
			       set_variable("DAT_TRACE_COUNTS", NULL) ||
			       set_file("DAT_TRACE_FILE", options->output) ||
			       set_file("DAT_TRACE_WIRE", options->transfers)
		       ? -1
		       : 0;
}

static int run(char **program)
{
	execvp(program[0], program);
	tool_complain("%s: %s", program[0], strerror(errno));
	return NOT_FOUND;
}

/* --- with a summary --- */

/* The counts, which the program finds by our descriptor. NULL: a message was printed. */
static struct opendat_trace_counts *make_counts(void)
{
	struct opendat_trace_counts *counts = MAP_FAILED;
	int fd = memfd_create("dat_trace", MFD_CLOEXEC);
	char path[64];

	if (fd >= 0 && ftruncate(fd, sizeof(*counts)) == 0)
		counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	if (counts == MAP_FAILED || setenv("DAT_TRACE_COUNTS", path, 1)) {
		tool_complain("memory for the counts: %s", strerror(errno));
		return NULL;
	}
	counts->magic = OPENDAT_TRACE_MAGIC;
	return counts;
}

static volatile pid_t child;

static void pass_on(int number)
{
	kill(child, number);
}

/* Waits for the program. Returns its exit status, as shells write it. */
static int await(void)
{
	/* the terminal gives these to the program, too */
	const int shared[] = {SIGINT, SIGQUIT};
	const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
	int status;

	for (unsigned i = 0; i < 2; i++)
		(void)signal(shared[i], SIG_IGN);
	for (unsigned i = 0; i < 4; i++)
		(void)signal(passed[i], pass_on);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return TOOL_EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int print_summary(const struct trace_options *options,
			 const struct opendat_trace_counts *counts)
{
	FILE *out = options->output ? fopen(options->output, "we") : stderr;
	bool is_bad = !out;

	if (out) {
		trace_print_calls(out, counts);
		trace_print_eps(out, counts);
		is_bad = ferror(out) || (out != stderr && fclose(out) != 0);
	}
	if (is_bad)
		tool_complain("%s: %s", options->output ? options->output : "standard error",
			      strerror(errno));
	return is_bad ? -1 : 0;
}

static int run_counted(const struct trace_options *options)
{
	struct opendat_trace_counts *counts = make_counts();
	int status;

	if (!counts)
		return TOOL_EXIT_FAILED;
	child = fork();
	if (child < 0) {
		tool_complain("fork: %s", strerror(errno));
		return TOOL_EXIT_FAILED;
	}
	if (child == 0)
		_exit(run(options->program));
	status = await();
	return print_summary(options, counts) ? TOOL_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	struct trace_options options = {.adapter = NULL};

	tool_name = "dat_trace";
	if (trace_parse(argc, argv, &options) != 0) {
		tool_options_hint();
		return TOOL_EXIT_USAGE;
	}
	if (set_environment(&options))
		return TOOL_EXIT_FAILED;
	return options.is_count ? run_counted(&options) : run(options.program);
}
