// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the tools that need no connection: text for codes, numbers and addresses, option
 * values, the monotonic clock, and signals.
 */
#ifndef TOOLS_COMMON_H
#define TOOLS_COMMON_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <dat/udat.h>

/* Exit codes of all tools; the manual pages list them. */
enum tool_exit {
	TOOL_EXIT_OK = 0,
	TOOL_EXIT_MISMATCH = 1, /* data were wrong */
	TOOL_EXIT_USAGE = 2,
	TOOL_EXIT_FAILED = 3, /* a call or a connection failed */
	TOOL_EXIT_STOPPED = 130,
};

/* The name of the program, which starts each message. */
extern const char *tool_name;

/* Set by SIGINT and SIGTERM after tool_catch_signals(). A second signal ends the process. */
extern volatile sig_atomic_t tool_is_stopped;
void tool_catch_signals(void);

/* Discards what is printed on stdout from now on, for --quiet. */
void tool_drop_output(void);

/* Prints "name: text" on stderr. */
void tool_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the name of a failed call and its return code. Returns -EIO. */
int tool_call_failed(const char *call, DAT_RETURN code);

/* "DAT_INVALID_HANDLE DAT_INVALID_HANDLE_EP (0x8005000c)" */
const char *tool_return_text(DAT_RETURN code, char *text, size_t size);
const char *tool_event_text(DAT_EVENT_NUMBER number);
const char *tool_dto_status_text(DAT_DTO_COMPLETION_STATUS status);
/* The numeric address; "?" if it is no IP address. */
const char *tool_address_text(const struct sockaddr *address, char *text, size_t size);

/* Resolves a host name or numeric address. -EINVAL: failed, and a message was printed. */
int tool_resolve(const char *host, struct sockaddr_storage *address_out);

/* Parses "4k", "1m", "0x10" or "17". Returns 0 or -EINVAL. */
int tool_parse_number(const char *text, uint64_t *number_out);

uint64_t tool_now_ns(void);

/* "2026-11-24T09:30:00.125Z": the time in UTC. */
#define TOOL_TIME_TEXT 32u
const char *tool_time_text(char text[TOOL_TIME_TEXT]);

/* Binds the calling thread, and those that it will create, to one processor: 0, or -1 and errno. */
int tool_bind_to(uint64_t cpu);

/* Opens an adapter with the thread safety under which it is registered. */
DAT_RETURN tool_ia_open(const char *adapter, DAT_EVD_HANDLE *async_evd_out, DAT_IA_HANDLE *ia_out);

/* Prints a JSON string with its quotes. */
void tool_json_string(FILE *out, const char *text);

#endif
