// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ping measures and verifies Send/Receive, RDMA Write and RDMA Read between two processes. It
 * uses the public API only. This file is its command line; ping.h describes the protocol.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "options.h"
#include "ping.h"

static const struct tool_option ping_table[] = {
	TOOL_OPTIONS_SIDE,
	{'o', "op", "OP", "send write read all", .help = "the operation (default all)"},
	{'S', "size", "N|MIN:MAX", .help = "bytes; a range goes in powers of four (default 1:4m)"},
	{'n', "count", "N", .help = "transfers per size (default 1000, fewer for large sizes)"},
	{'p', "poll", .help = "poll event queues instead of waiting for events"},
	{'j', "json", .help = "results as JSON"},
	TOOL_OPTIONS_COMMON,
};

static int ping_parse_size(const char *text, struct ping_options *options)
{
	char copy[64];
	char *colon;

	if (strlen(text) >= sizeof(copy))
		return -1;
	strcpy(copy, text);
	colon = strchr(copy, ':');
	if (colon)
		*colon = '\0';
	if (tool_parse_number(copy, &options->size_min) != 0)
		return -1;
	options->size_max = options->size_min;
	if (colon && tool_parse_number(colon + 1, &options->size_max) != 0)
		return -1;
	if (options->size_min == 0 || options->size_max < options->size_min ||
	    options->size_max > PING_SIZE_LIMIT)
		return -1;
	return 0;
}

static int ping_parse_op(const char *text, struct ping_options *options)
{
	bool is_all = strcmp(text, "all") == 0;
	int rc = is_all ? 0 : -1;

	for (int op = 0; op < PING_OPS; op++) {
		options->is_op[op] = is_all || strcmp(text, ping_op_names[op]) == 0;
		if (options->is_op[op])
			rc = 0;
	}
	return rc;
}

/* One option: 0, or -1 for a bad value. */
static int ping_parse_option(int option, const char *value, void *context)
{
	struct ping_options *options = context;

	switch (option) {
	case 'o':
		return ping_parse_op(value, options);
	case 'S':
		return ping_parse_size(value, options);
	case 'n':
		if (tool_parse_number(value, &options->count) != 0 || options->count == 0)
			return -1;
		return options->count > PING_COUNT_LIMIT ? -1 : 0;
	case 'p':
		options->is_polling = true;
		return 0;
	case 'j':
		options->is_json = true;
		return 0;
	default:
		return tool_side_option(option, value, &options->side);
	}
}

static const struct tool_command ping_command = {
	.usage = "usage: dat_ping -s [OPTION...]                     serve\n"
		 "       dat_ping [-c] [OPTION...] -Q N [ADDRESS]    connect to a server\n",
	.status =
		"Exit status: 0 all verified, 1 wrong data, 2 usage error, 3 a call or connection "
		"failed,\n130 stopped by a signal.\n",
	.options = ping_table,
	.argument = "@host",
	.argument_limit = 1,
	.option = ping_parse_option,
	.take = tool_side_host,
};

static int ping_parse(int argc, char **argv, struct ping_options *options)
{
	if (tool_options_parse(&ping_command, argc, argv, options) != 0)
		return -1;
	return tool_side_check(&options->side);
}

int main(int argc, char **argv)
{
	struct ping_options options = {
		.side = TOOL_SIDE_DEFAULT,
		.size_min = 1,
		.size_max = UINT64_C(4) << 20,
		.is_op = {true, true, true},
	};

	tool_name = "dat_ping";
	if (ping_parse(argc, argv, &options) != 0) {
		tool_options_hint();
		return TOOL_EXIT_USAGE;
	}
	if (tool_is_quiet && !options.side.is_server)
		tool_drop_output();
	tool_catch_signals();
	if (tool_side_detach(&options.side) != 0)
		return TOOL_EXIT_FAILED;
	return options.side.is_server ? ping_server_run(&options) : ping_client_run(&options);
}
