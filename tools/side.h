// SPDX-License-Identifier: BSD-2-Clause
/*
 * What dat_ping and dat_perf share: the part of the command line that says which side of a
 * connection the process is, and where the other one is; and how a server begins.
 */
#ifndef TOOLS_SIDE_H
#define TOOLS_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "session.h"

struct tool_side {
	const char *adapter;
	const char *host; /* client; NULL: the adapter's own address */
	uint64_t qualifier;
	uint32_t timeout_ms;
	bool has_timeout; /* given, not the default */
	bool is_server;
	bool is_once;
	bool is_daemon;	      /* the server goes on in the background when it listens */
	const char *pid_file; /* of the server; NULL: none */
	int starter;	      /* daemon: what tells the process that was started; -1: none */
};

#define TOOL_SIDE_DEFAULT                                                                          \
	{                                                                                          \
		.adapter = "soft-lo", .timeout_ms = 10000, .starter = -1                           \
	}

/* The first entries of the table of options. */
#define TOOL_OPTIONS_SIDE TOOL_OPTIONS_SIDE_IN(NULL)
/* The same in a group. */
#define TOOL_OPTIONS_SIDE_IN(group)                                                                \
	{.letter = 's',                                                                            \
	 .name = "server",                                                                         \
	 .heading = (group),                                                                       \
	 .help = "wait for clients; prints the qualifier it listens on"},                          \
		{.letter = 'c',                                                                    \
		 .name = "client",                                                                 \
		 .help = "connect (default); ADDRESS is a number or a host name,\n"                \
			 "default: the adapter's own address"},                                    \
		{.letter = 'a',                                                                    \
		 .name = "adapter",                                                                \
		 .value = "NAME",                                                                  \
		 .words = "@adapter",                                                              \
		 .help = "interface adapter (default soft-lo; `dat_info -l` lists them)"},         \
		{.letter = 'Q',                                                                    \
		 .name = "qual",                                                                   \
		 .value = "N",                                                                     \
		 .help = "connection qualifier (server: default chosen by the provider)"},         \
		{.letter = '1', .name = "once", .help = "server: serve one client, then exit"},    \
		{.letter = 'D',                                                                    \
		 .name = "daemon",                                                                 \
		 .help = "server: go on in the background when it listens"},                       \
		{.letter = 'F',                                                                    \
		 .name = "pid-file",                                                               \
		 .value = "FILE",                                                                  \
		 .words = "@file",                                                                 \
		 .help = "server: a file with its process number, while it listens"},              \
	{                                                                                          \
		.letter = 't', .name = "timeout", .value = "SECONDS",                              \
		.help = "give up when the peer is silent for this long (default 10);\n"            \
			"a server also when no client comes, if the option is given"               \
	}

/* Takes one of these options. 0, -1 for a bad value, or 1: it is another one. */
int tool_side_option(int letter, const char *value, struct tool_side *side);
/* Takes the argument. The first member of the context is a struct tool_side. */
int tool_side_host(const char *host, void *context);
/* -1: these options and the argument do not fit together, and a message was printed. */
int tool_side_check(const struct tool_side *side);

/*
 * With --daemon: divides the process before anything is opened. The one that was started waits
 * until the other listens, and ends with its status; the other returns. 0, or -errno after a message.
 */
int tool_side_detach(struct tool_side *side);

/*
 * Listens, writes the process number to its file, and prints the address and the qualifier, for
 * scripts. A daemon then leaves the terminal. 0, or -errno after a message.
 */
int tool_side_listen(const struct tool_side *side, struct session *session,
		     DAT_PSP_HANDLE *psp_out);

/*
 * Waits for the next client; if the option --timeout was given, so long. `served`: how many have
 * come before. -ENODATA: no more came, after a message if none has come at all.
 */
int tool_side_accept(const struct tool_side *side, struct session *session, uint64_t served,
		     DAT_CR_HANDLE *request_out, struct session_private *hello_out);

/* Removes the file with the process number. */
void tool_side_end(const struct tool_side *side);

#endif
