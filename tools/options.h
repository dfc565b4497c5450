// SPDX-License-Identifier: BSD-2-Clause
/*
 * The command line of a tool, described by one table. Parsing, --help and the shell completion
 * follow from the table, and a test compares the manual page with it. These mean the same in every
 * tool: -a --adapter, -q --quiet, -j --json, -V --version, -h --help.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>

struct tool_option {
	char letter;
	const char *name;
	/*
	 * The placeholder of its value; NULL: none. "[SECONDS]": it may be left out, and a word
	 * that follows and is no option is the value.
	 */
	const char *value;
	/*
	 * What the shell offers for the value: words, separated by spaces, or @adapter, @file or
	 * @host. NULL: nothing.
	 */
	const char *words;
	/* The text of --help; a line break continues it in the same column. */
	const char *help;
	/*
	 * Begins a group of options: "NAME: what they are". --help NAME shows a group, which has to
	 * fit on a screen. NULL: the option belongs to the group of the one before it.
	 */
	const char *heading;
};

/* --quiet and --version. Before the last entry of every table. */
#define TOOL_OPTIONS_QUIET                                                                         \
	{.letter = 'q', .name = "quiet", .help = "print errors only"},                             \
	{                                                                                          \
		.letter = 'V', .name = "version", .help = "the version of this program"            \
	}

/* The last entries: of a table without groups, and of one with those. */
#define TOOL_OPTIONS_COMMON                                                                        \
	TOOL_OPTIONS_QUIET, {.letter = 'h', .name = "help", .help = "this text"},                  \
	{                                                                                          \
		.letter = '\0'                                                                     \
	}
#define TOOL_OPTIONS_COMMON_GROUPS(groups)                                                         \
	TOOL_OPTIONS_QUIET,                                                                        \
		{.letter = 'h',                                                                    \
		 .name = "help",                                                                   \
		 .value = "[GROUP]",                                                               \
		 .words = groups " all",                                                           \
		 .help = "the groups of options, one of them, or all"},                            \
	{                                                                                          \
		.letter = '\0'                                                                     \
	}

struct tool_command {
	const char *usage;		   /* the lines above the options in --help */
	const char *status;		   /* the lines below them */
	const struct tool_option *options; /* the last one has no letter */
	const char *argument;		   /* what the shell offers for an argument, as `words` */
	int argument_limit;
	/*
	 * Takes an option that is not common: 0, or -1 for a bad value. `value` is NULL if the
	 * option has none, or it was left out.
	 */
	int (*option)(int letter, const char *value, void *context);
	/* Takes an argument. NULL: there is none. */
	int (*take)(const char *argument, void *context);
	/* Takes a program with its arguments, with which the options end. NULL: there is none. */
	int (*program)(char **argv, void *context);
};

/* --quiet was given: only errors are printed. */
extern bool tool_is_quiet;

/*
 * Parses the command line of main(). Ends the process after --help and --version. -1: it is wrong,
 * and a message was printed.
 */
int tool_options_parse(const struct tool_command *command, int argc, char **argv, void *context);

/* Prints where the usage of this tool is described. */
void tool_options_hint(void);

#endif
