// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces calls, as shared/trace.h says. An adapter whose calls are traced has trace_<name> in the slots
 * of its table, which calls check_<name> and describes the call. Other adapters do not come here.
 */
#ifndef CHECK_TRACE_H
#define CHECK_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "check/calls.h"
#include "check/object.h"

struct check_request;

enum trace_kind {
	TRACE_HANDLE,
	TRACE_NUMBER,
	TRACE_HEX,
	TRACE_TIMEOUT,
	TRACE_FLAGS,
	TRACE_TEXT,
	TRACE_ADDRESS,
	TRACE_BYTES,
	TRACE_SEGMENTS,
	TRACE_TARGET,
	TRACE_OUT, /* from here on: written by the call, if it succeeds */
	TRACE_NEW = TRACE_OUT,
	TRACE_COUNT,
	TRACE_KEY,
	TRACE_LONG,
	TRACE_STATE,
	TRACE_TRUTH,
	TRACE_TYPE,
	TRACE_EVENT,
};

struct trace_flag {
	unsigned value;
	const char *name;
};

/* One argument of a call. `at` points to it, or is the pointer that was passed. */
struct trace_arg {
	enum trace_kind kind;
	const char *name;
	uint64_t value;
	const void *at;
	const struct trace_flag
		*flags; /* the last one has no name; zero has the first name, if any */
};

/* A call that is being made. */
struct trace_call {
	enum check_call_number number;
	const struct trace_arg *args;
	unsigned arg_count;
	uint64_t begun_ns; /* on the monotonic clock */
	struct timespec time;
};

/* A line: text, or JSON. */
struct trace_line {
	bool is_json;
	size_t len;
	char bytes[8192];
};

/* Reads the environment, once. */
void trace_init(void);
bool trace_is_on(const char *adapter);
/* Does somebody want to know what is transferred? */
bool trace_has_transfers(void);

void trace_begin(struct trace_call *call);
/* Returns the result. */
DAT_RETURN trace_end(const struct trace_call *call, DAT_RETURN result);

/* A request was posted. Locked. */
void trace_posted_locked(struct check_object *ep, const struct check_post *post);
/* A Receive or a request has completed, and its event was taken. Locked. */
void trace_completed_locked(struct check_object *ep, const struct check_request *request,
			    DAT_DTO_COMPLETION_STATUS status, uint64_t length);

/* ---- lines ---- */

__attribute__((format(printf, 2, 3))) void trace_add(struct trace_line *line, const char *format,
						     ...);
void trace_add_string(struct trace_line *line, const char *text, size_t len);
void trace_add_arg(struct trace_line *line, const struct trace_arg *arg);

/* ---- counts ---- */

void trace_count_init(const char *path);
void trace_count_call(enum check_call_number number, DAT_RETURN result, uint64_t ns);
/* A request was posted. */
void trace_count_posted(const struct check_object *ep, enum check_kind kind, uint64_t length);
void trace_count_completed(const struct check_object *ep, const struct check_request *request,
			   DAT_DTO_COMPLETION_STATUS status, uint64_t length);

/* ---- the file of transfers ---- */

void trace_wire_init(const char *path);
bool trace_wire_is_on(void);
/* The connection of the endpoint begins, and ends. Locked. */
void trace_wire_open_locked(struct check_object *ep);
void trace_wire_close_locked(struct check_object *ep);
void trace_wire_posted_locked(struct check_object *ep, const struct check_post *post);
void trace_wire_completed_locked(struct check_object *ep, const struct check_request *request,
				 uint64_t length);

/* ---- the table ---- */

#define TRACE_DECLARE(name, level) __typeof__(check_##name) trace_##name;
CHECK_CALLS(TRACE_DECLARE)
#undef TRACE_DECLARE
__typeof__(check_ia_open_safe) trace_ia_open_safe, trace_ia_open_unsafe;

#endif
