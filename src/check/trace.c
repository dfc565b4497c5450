// SPDX-License-Identifier: BSD-2-Clause
/* What is traced, and the lines of calls. */
#include "check/trace.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check/memory.h"
#include "check/report.h"

#define EPS_MAX 64u

/* Set once, by read_variables. */
static struct {
	bool is_on, is_json, has_lines, has_counts;
	bool is_call_wanted[CHECK_CALL_COUNT];
	unsigned eps[EPS_MAX]; /* numbers; none: all */
	unsigned ep_count;
	char *adapter; /* NULL: all */
	char *path;    /* NULL: standard error */
} settings;

/* The last line of this thread was an EVD that is empty, and how often it was since. */
static __thread struct {
	DAT_HANDLE evd;
	unsigned long times;
} again;

/* ---- the environment ---- */

/* Does one of the patterns match, with or without "dat_"? */
static bool is_listed(const char *list, const char *name)
{
	char pattern[64];

	for (; *list; list += strcspn(list, ","), list += *list == ',') {
		snprintf(pattern, sizeof(pattern), "%.*s", (int)strcspn(list, ","), list);
		if (fnmatch(pattern, name, 0) == 0 ||
		    fnmatch(pattern, name + strlen("dat_"), 0) == 0)
			return true;
	}
	return false;
}

static void read_eps(const char *list)
{
	char *end;

	for (; *list && settings.ep_count < EPS_MAX; list = *end == ',' ? end + 1 : end) {
		settings.eps[settings.ep_count] = (unsigned)strtoul(list, &end, 10);
		if (end == list)
			return;
		settings.ep_count++;
	}
}

static char *copy_of(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && *value ? strdup(value) : NULL;
}

static void read_variables(void)
{
	const char *form = secure_getenv("DAT_TRACE"), *calls = secure_getenv("DAT_TRACE_CALLS");
	const char *eps = secure_getenv("DAT_TRACE_EPS");
	char *counts = copy_of("DAT_TRACE_COUNTS"), *wire = copy_of("DAT_TRACE_WIRE");

	settings.is_on = form && *form && strcmp(form, "0") != 0;
	check_is_traced = settings.is_on;
	settings.is_json = settings.is_on && strcmp(form, "json") == 0;
	settings.has_counts = settings.is_on && strcmp(form, "count") == 0 && counts;
	settings.has_lines = settings.is_on && strcmp(form, "count") != 0;
	settings.adapter = copy_of("DAT_TRACE_ADAPTER");
	settings.path = copy_of("DAT_TRACE_FILE");
	for (unsigned i = 0; i < CHECK_CALL_COUNT; i++)
		settings.is_call_wanted[i] =
			!calls || !*calls ||
			is_listed(calls, check_call_name((enum check_call_number)i));
	if (eps)
		read_eps(eps);
	if (settings.has_counts)
		trace_count_init(counts);
	if (settings.is_on && wire)
		trace_wire_init(wire);
	free(counts);
	free(wire);
}

void trace_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_variables);
}

bool trace_is_on(const char *adapter)
{
	return settings.is_on && (!settings.adapter || strcmp(settings.adapter, adapter) == 0);
}

bool trace_has_transfers(void)
{
	return settings.has_counts || trace_wire_is_on();
}

/* ---- which calls ---- */

static bool is_ep_wanted(DAT_HANDLE handle)
{
	const struct check_object *object = check_find(handle);
	unsigned number;

	if (!settings.ep_count)
		return true;
	if (!object || object->type != DAT_HANDLE_TYPE_EP)
		return false;
	number = check_number(object);
	for (unsigned i = 0; i < settings.ep_count; i++)
		if (settings.eps[i] == number)
			return true;
	return false;
}

static DAT_HANDLE ep_of_event(const DAT_EVENT *event)
{
	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		return event->event_data.dto_completion_event_data.ep_handle;
	if (event->event_number >= DAT_CONNECTION_EVENT_ESTABLISHED &&
	    event->event_number <= DAT_CONNECTION_EVENT_UNREACHABLE)
		return event->event_data.connect_event_data.ep_handle;
	return DAT_HANDLE_NULL;
}

/* Does one of the arguments name an endpoint that is wanted? */
static bool is_wanted(const struct trace_call *call, bool is_over)
{
	if (!settings.is_call_wanted[call->number])
		return false;
	for (unsigned i = 0; i < call->arg_count && settings.ep_count; i++) {
		const struct trace_arg *arg = &call->args[i];

		if ((arg->kind == TRACE_HANDLE && is_ep_wanted((DAT_HANDLE)arg->at)) ||
		    (arg->kind == TRACE_NEW && is_over && arg->at &&
		     is_ep_wanted(*(const DAT_HANDLE *)arg->at)) ||
		    (arg->kind == TRACE_EVENT && is_over && arg->at &&
		     is_ep_wanted(ep_of_event(arg->at))))
			return true;
	}
	return settings.ep_count == 0;
}

/* ---- lines ---- */

static void write_line(struct trace_line *line)
{
	int state, fd = STDERR_FILENO;
	ssize_t count;

	/* a line that is too long was cut */
	line->bytes[line->len++] = '\n';
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	/* opened for one line, as the log is: a program may close descriptors that it does not know */
	if (settings.path)
		fd = open(settings.path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
	count = fd >= 0 ? write(fd, line->bytes, line->len) : 0;
	(void)count; /* there is nobody to tell */
	if (settings.path && fd >= 0)
		close(fd);
	pthread_setcancelstate(state, NULL);
}

static void add_head(struct trace_line *line, const struct trace_call *call)
{
	struct tm utc;

	line->is_json = settings.is_json;
	line->len = 0;
	gmtime_r(&call->time.tv_sec, &utc);
	if (line->is_json)
		trace_add(line,
			  "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ\",\"process\":%d,"
			  "\"thread\":%d,\"call\":\"%s\"",
			  utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
			  utc.tm_sec, call->time.tv_nsec / 1000, (int)getpid(), check_thread(),
			  check_call_name(call->number));
	else
		trace_add(line, "%02d:%02d:%02d.%06ld [%d] %s", utc.tm_hour, utc.tm_min, utc.tm_sec,
			  call->time.tv_nsec / 1000, check_thread(), check_call_name(call->number));
}

/* The arguments before the call, or what the call has written. */
static void add_args(struct trace_line *line, const struct trace_call *call, bool is_out)
{
	bool is_first = true;

	for (unsigned i = 0; i < call->arg_count; i++) {
		if ((call->args[i].kind >= TRACE_OUT) != is_out || (is_out && !call->args[i].at))
			continue;
		if (line->is_json)
			trace_add(line, is_first ? "" : ",");
		else
			trace_add(line, is_first && !is_out ? "" : ", ");
		trace_add_arg(line, &call->args[i]);
		is_first = false;
	}
}

static void add_result(struct trace_line *line, DAT_RETURN result)
{
	const char *major = "unknown", *minor = "";

	(void)dat_strerror(result, &major, &minor);
	trace_add(line, line->is_json ? "\"result\":\"%s\"" : "%s", major);
	if (DAT_GET_SUBTYPE(result))
		trace_add(line, line->is_json ? ",\"subtype\":\"%s\"" : " %s", minor);
}

static void add_json(struct trace_line *line, const struct trace_call *call, DAT_RETURN result,
		     uint64_t ns)
{
	trace_add(line, ",\"arguments\":{");
	add_args(line, call, false);
	trace_add(line, "},");
	add_result(line, result);
	if (result == DAT_SUCCESS) {
		trace_add(line, ",\"results\":{");
		add_args(line, call, true);
		trace_add(line, "}");
	}
	trace_add(line, ",\"ns\":%llu}", (unsigned long long)ns);
}

static void write_call(const struct trace_call *call, DAT_RETURN result, uint64_t ns)
{
	struct trace_line line;

	add_head(&line, call);
	if (line.is_json)
		add_json(&line, call, result, ns);
	else {
		trace_add(&line, "(");
		add_args(&line, call, false);
		trace_add(&line, ") = ");
		add_result(&line, result);
		if (result == DAT_SUCCESS)
			add_args(&line, call, true);
		trace_add(&line, " <%llu.%06llu>", (unsigned long long)(ns / 1000000000),
			  (unsigned long long)(ns / 1000 % 1000000));
	}
	write_line(&line);
}

/* A program that polls would fill the trace with an EVD that is empty. */
static void write_again(const struct trace_call *call)
{
	const struct trace_arg arg = {.kind = TRACE_HANDLE, .name = "evd_handle", .at = again.evd};
	struct trace_call poll = *call;
	struct trace_line line;

	poll.number = CHECK_CALL_evd_dequeue;
	add_head(&line, &poll);
	trace_add(&line, line.is_json ? ",\"arguments\":{" : "(");
	trace_add_arg(&line, &arg);
	trace_add(&line,
		  line.is_json ? "},\"result\":\"DAT_QUEUE_EMPTY\",\"times\":%lu}"
			       : ") = DAT_QUEUE_EMPTY, %lu times more",
		  again.times);
	write_line(&line);
}

static bool is_again(const struct trace_call *call, DAT_RETURN result)
{
	bool is_empty =
		call->number == CHECK_CALL_evd_dequeue && DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY;
	DAT_HANDLE evd = is_empty ? (DAT_HANDLE)call->args[0].at : DAT_HANDLE_NULL;

	if (is_empty && again.evd == evd) {
		again.times++;
		return true;
	}
	if (again.times)
		write_again(call);
	again.evd = evd;
	again.times = 0;
	return false;
}

/* ---- calls ---- */

/* A wait that does not end is seen by its beginning. */
static void write_wait(const struct trace_call *call)
{
	struct trace_line line;

	add_head(&line, call);
	trace_add(&line, "(");
	add_args(&line, call, false);
	trace_add(&line, " <unfinished ...>");
	write_line(&line);
}

static bool can_block(const struct trace_call *call)
{
	for (unsigned i = 0; i < call->arg_count; i++)
		if (call->args[i].kind == TRACE_TIMEOUT && call->args[i].value)
			return call->number == CHECK_CALL_evd_wait ||
			       call->number == CHECK_CALL_cno_wait;
	return false;
}

void trace_begin(struct trace_call *call)
{
	clock_gettime(CLOCK_REALTIME, &call->time);
	if (settings.has_lines && !settings.is_json && can_block(call) && is_wanted(call, false))
		write_wait(call);
	call->begun_ns = check_now_ns();
}

DAT_RETURN trace_end(const struct trace_call *call, DAT_RETURN result)
{
	uint64_t ns = check_now_ns() - call->begun_ns;

	if (!is_wanted(call, result == DAT_SUCCESS))
		return result;
	if (settings.has_counts)
		trace_count_call(call->number, result, ns);
	if (settings.has_lines && !is_again(call, result))
		write_call(call, result, ns);
	return result;
}

/* ---- transfers ---- */

void trace_posted_locked(struct check_object *ep, const struct check_post *post)
{
	if (!is_ep_wanted(ep))
		return;
	if (settings.has_counts)
		trace_count_posted(ep, post->kind,
				   check_length(post->segments, (unsigned)post->segment_count));
	if (trace_wire_is_on())
		trace_wire_posted_locked(ep, post);
}

void trace_completed_locked(struct check_object *ep, const struct check_request *request,
			    DAT_DTO_COMPLETION_STATUS status, uint64_t length)
{
	if (!is_ep_wanted(ep))
		return;
	if (settings.has_counts)
		trace_count_completed(ep, request, status, length);
	if (trace_wire_is_on() && status == DAT_DTO_SUCCESS)
		trace_wire_completed_locked(ep, request, length);
}
