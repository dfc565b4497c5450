// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ping measures and verifies Send/Receive, RDMA Write and RDMA Read between two processes. It
 * uses the public API only. This file is its command line; ping.h describes the protocol.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "ping.h"

static const char ping_usage[] =
	"usage: dat_ping -s [OPTION...]                     serve\n"
	"       dat_ping [-c] [OPTION...] -q N [ADDRESS]    connect to a server\n"
	"\n"
	"  -s, --server           wait for clients; prints the qualifier it listens on\n"
	"  -c, --client           connect (default); ADDRESS is a number or a host name,\n"
	"                         default: the adapter's own address\n"
	"  -a, --adapter NAME     interface adapter (default soft-lo; `dat_info -l` lists them)\n"
	"  -q, --qual N           connection qualifier (server: default chosen by the provider)\n"
	"  -o, --op OP            send, write, read or all (default all)\n"
	"  -S, --size N|MIN:MAX   bytes; a range goes in powers of four (default 1:4m)\n"
	"  -n, --count N          transfers per size (default 1000, fewer for large sizes)\n"
	"  -p, --poll             poll event queues instead of waiting for events\n"
	"  -1, --once             server: serve one client, then exit\n"
	"  -t, --timeout SECONDS  give up when the peer is silent for this long (default 10)\n"
	"  -j, --json             results as JSON\n"
	"  -h, --help             this text\n"
	"\n"
	"Exit status: 0 all verified, 1 wrong data, 2 usage error, 3 a call or connection failed,\n"
	"130 stopped by a signal.\n";

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
static int ping_parse_option(int option, const char *value, struct ping_options *options)
{
	uint64_t number;

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
	case '1':
		options->is_once = true;
		return 0;
	case 't':
		if (tool_parse_number(value, &number) != 0 || number == 0 || number > 4000)
			return -1;
		options->timeout_ms = (uint32_t)number * 1000;
		return 0;
	default: /* 'j' */
		options->is_json = true;
		return 0;
	}
}

static int ping_parse(int argc, char **argv, struct ping_options *options)
{
	static const struct option longs[] = {
		{"server", no_argument, NULL, 's'},
		{"client", no_argument, NULL, 'c'},
		{"adapter", required_argument, NULL, 'a'},
		{"qual", required_argument, NULL, 'q'},
		{"op", required_argument, NULL, 'o'},
		{"size", required_argument, NULL, 'S'},
		{"count", required_argument, NULL, 'n'},
		{"poll", no_argument, NULL, 'p'},
		{"once", no_argument, NULL, '1'},
		{"timeout", required_argument, NULL, 't'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "sca:q:o:S:n:p1t:jh", longs, NULL)) != -1) {
		if (option == 'h') {
			fputs(ping_usage, stdout);
			exit(TOOL_EXIT_OK);
		}
		if (option == '?')
			return -1;
		if (ping_parse_option(option, optarg, options) != 0) {
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
	if (!options->is_server && options->qualifier == 0) {
		tool_complain("a client needs --qual, the number that the server prints");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct ping_options options = {
		.adapter = "soft-lo",
		.size_min = 1,
		.size_max = UINT64_C(4) << 20,
		.timeout_ms = 10000,
		.is_op = {true, true, true},
	};

	tool_name = "dat_ping";
	if (ping_parse(argc, argv, &options) != 0) {
		fputs("try `dat_ping --help`\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	tool_catch_signals();
	return options.is_server ? ping_server_run(&options) : ping_client_run(&options);
}
