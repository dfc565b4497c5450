// SPDX-License-Identifier: BSD-2-Clause
/* Parses command lines and prints help by the table of options.h. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define OPTIONS_MAX 64u
#define LIST_OPTIONS 1 /* the value of --list-options, which no letter has */

bool tool_is_quiet;

/* The table in the form of getopt_long(). */
struct options_getopt {
	struct option longs[OPTIONS_MAX];
	char shorts[3 * OPTIONS_MAX];
};

static bool options_is_optional(const struct tool_option *option)
{
	return option->value && option->value[0] == '[';
}

static int options_has_arg(const struct tool_option *option)
{
	if (!option->value)
		return no_argument;
	return options_is_optional(option) ? optional_argument : required_argument;
}

static void options_getopt(const struct tool_command *command, struct options_getopt *out)
{
	const struct tool_option *option = command->options;
	char *letter = out->shorts;
	unsigned count = 0;

	memset(out, 0, sizeof(*out));
	if (command->program)
		*letter++ = '+'; /* the options of the program are its own */
	for (; option->letter; option++) {
		if (count + 2 >= OPTIONS_MAX)
			abort();
		out->longs[count++] = (struct option){.name = option->name,
						      .has_arg = options_has_arg(option),
						      .val = option->letter};
		*letter++ = option->letter;
		if (option->value)
			*letter++ = ':';
		if (options_is_optional(option))
			*letter++ = ':';
	}
	out->longs[count] = (struct option){.name = "list-options", .val = LIST_OPTIONS};
}

/* The help of an option; what follows a line break stands below its first line. */
static void options_help_text(const char *help, int column)
{
	for (; *help; help++) {
		putchar(*help);
		if (*help == '\n')
			printf("%*s", column, "");
	}
	putchar('\n');
}

static int options_width(const struct tool_option *option)
{
	int width = 0;

	for (; option->letter; option++) {
		int len = (int)strlen(option->name);

		if (option->value)
			len += 1 + (int)strlen(option->value);
		width = len > width ? len : width;
	}
	return width;
}

static void options_help_option(const struct tool_option *option, int width)
{
	const char *value = option->value ? option->value : "";
	int left = width - (int)strlen(option->name) - (option->value ? 1 : 0);

	printf("  -%c, --%s%s%-*s  ", option->letter, option->name, option->value ? " " : "", left,
	       value);
	options_help_text(option->help, width + 10);
}

/* Does the heading begin with that name? */
static bool options_is_group(const char *heading, const char *name)
{
	size_t len = strcspn(heading, ":");

	return strlen(name) == len && strncmp(heading, name, len) == 0;
}

/* The names of all groups, and how to see one. */
static void options_help_groups(const struct tool_command *command)
{
	printf("%s\nGroups of options, which `%s --help GROUP` lists:\n\n", command->usage,
	       tool_name);
	for (const struct tool_option *option = command->options; option->letter; option++)
		if (option->heading)
			printf("  %s\n", option->heading);
	printf("  all\n\n%s", command->status);
}

/* One group, or all with usage and status (`group` is NULL). False: there is no such group. */
static bool options_help(const struct tool_command *command, const char *group)
{
	int width = options_width(command->options);
	bool is_shown = !group, is_found = !group;

	if (!group)
		printf("%s\n", command->usage);
	for (const struct tool_option *option = command->options; option->letter; option++) {
		if (option->heading && group)
			is_shown = options_is_group(option->heading, group);
		if (option->heading && is_shown)
			printf("%s%s\n", group || option == command->options ? "" : "\n",
			       option->heading);
		if (is_shown)
			options_help_option(option, width);
		is_found |= is_shown;
	}
	if (!group)
		printf("\n%s", command->status);
	return is_found;
}

/* --help. Does not return if the value is right. */
static int options_help_take(const struct tool_command *command, const char *group)
{
	bool has_groups = command->options->heading;

	if (group && strcmp(group, "all") == 0)
		group = NULL;
	else if (has_groups && !group) {
		options_help_groups(command);
		exit(TOOL_EXIT_OK);
	}
	if (options_help(command, group))
		exit(TOOL_EXIT_OK);
	tool_complain("--help %s: there is no such group of options", group);
	return -1;
}

/*
 * For scripts/make-completion: a line for each option with its letter, name, placeholder, words and
 * the first line of its help, and one for the argument, if any. Tabulators separate them.
 */
static void options_list(const struct tool_command *command)
{
	for (const struct tool_option *option = command->options; option->letter; option++)
		printf("%c\t%s\t%s\t%s\t%.*s\n", option->letter, option->name,
		       option->value ? option->value : "", option->words ? option->words : "",
		       (int)strcspn(option->help, "\n"), option->help);
	if (command->take)
		printf("-\t\t\t%s\t\n", command->argument);
	if (command->program)
		printf("-\t\t\t@program\t\n");
}

/* The option that has the letter. */
static const struct tool_option *options_find(const struct tool_option *option, int letter)
{
	while (option->letter && option->letter != letter)
		option++;
	return option;
}

/* The value of an option: getopt_long() takes the next word only if there has to be a value. */
static const char *options_value(const struct tool_option *option, char **argv)
{
	if (!optarg && options_is_optional(option) && argv[optind] && argv[optind][0] != '-')
		return argv[optind++];
	return optarg;
}

/* 0, or -1 after a message. */
static int options_take(const struct tool_command *command, int letter, char **argv, void *context)
{
	const struct tool_option *option = options_find(command->options, letter);
	const char *value;

	switch (letter) {
	case LIST_OPTIONS:
		options_list(command);
		exit(TOOL_EXIT_OK);
	case 'h':
		return options_help_take(command, options_value(option, argv));
	case 'V':
		printf("%s (OpenDAT) %s\n", tool_name, OPENDAT_VERSION);
		exit(TOOL_EXIT_OK);
	case 'q':
		tool_is_quiet = true;
		return 0;
	case '?':
		return -1;
	default:
		break;
	}

	value = options_value(option, argv);
	if (command->option(letter, value, context) == 0)
		return 0;
	tool_complain("--%s%s%s: invalid value", option->name, value ? " " : "",
		      value ? value : "");
	return -1;
}

int tool_options_parse(const struct tool_command *command, int argc, char **argv, void *context)
{
	struct options_getopt table;
	int letter;

	options_getopt(command, &table);
	optind = 0; /* the command line may be another one than last time */
	while ((letter = getopt_long(argc, argv, table.shorts, table.longs, NULL)) != -1)
		if (options_take(command, letter, argv, context) != 0)
			return -1;
	if (command->program && optind < argc)
		return command->program(argv + optind, context);
	for (int count = 0; optind < argc; optind++, count++) {
		if (!command->take || count >= command->argument_limit) {
			tool_complain("%s: too many arguments", argv[optind]);
			return -1;
		}
		if (command->take(argv[optind], context) != 0)
			return -1;
	}
	return 0;
}

void tool_options_hint(void)
{
	fprintf(stderr, "try `%s --help`\n", tool_name);
}
