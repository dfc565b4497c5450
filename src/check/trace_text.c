// SPDX-License-Identifier: BSD-2-Clause
/* The text of an argument, as strace would write it, or as a member of a JSON object. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check/memory.h"
#include "check/report.h"
#include "check/trace.h"
#include "shared/names.h"
#include "shared/opendat.h"

#define ROOM 16u /* at the end of a line, for what closes it */
#define SEGMENTS_SHOWN 8u
#define BYTES_SHOWN 32u

void trace_add(struct trace_line *line, const char *format, ...)
{
	size_t room = sizeof(line->bytes) - 1 - line->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->bytes + line->len, room, format, args);
	va_end(args);
	if (len > 0)
		line->len += (size_t)len < room ? (size_t)len : room - 1;
}

void trace_add_string(struct trace_line *line, const char *text, size_t len)
{
	trace_add(line, "\"");
	for (size_t i = 0; i < len && sizeof(line->bytes) - line->len > ROOM; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '"' || byte == '\\')
			trace_add(line, "\\%c", byte);
		else if (byte >= ' ' && byte < 0x7f)
			trace_add(line, "%c", byte);
		else
			trace_add(line, "\\u%04x", byte);
	}
	trace_add(line, "\"");
}

static void add_handle(struct trace_line *line, DAT_HANDLE handle)
{
	const struct check_object *object = check_find(handle);
	const char *quote = line->is_json ? "\"" : "";

	if (object)
		trace_add(line, "%s%s%s", quote, check_name(object).text, quote);
	else if (!handle)
		trace_add(line, line->is_json ? "null" : "NULL");
	else
		trace_add(line, "%s%p%s", quote, handle, quote);
}

static void add_flags(struct trace_line *line, unsigned value, const struct trace_flag *flags)
{
	const char *quote = line->is_json ? "\"" : "", *bar = "";
	const struct trace_flag *flag = flags;

	trace_add(line, "%s", quote);
	for (; flag->name && value; flag++)
		if (flag->value && (value & flag->value) == flag->value) {
			trace_add(line, "%s%s", bar, flag->name);
			value &= ~flag->value;
			bar = "|";
		}
	if (value || (!*bar && flags->value))
		trace_add(line, "%s0x%x", bar, value);
	else if (!*bar)
		trace_add(line, "%s", flags->name);
	trace_add(line, "%s", quote);
}

/* ---- what calls point to ---- */

/* A segment, or the target of RDMA. */
static void add_triplet(struct trace_line *line, uint32_t key, uint64_t address, uint64_t length)
{
	trace_add(line,
		  line->is_json ? "{\"key\":%u,\"address\":%llu,\"length\":%llu}"
				: "{0x%x, 0x%llx, %llu}",
		  key, (unsigned long long)address, (unsigned long long)length);
}

static void add_segments(struct trace_line *line, const DAT_LMR_TRIPLET *segments, uint64_t count)
{
	DAT_LMR_TRIPLET segment;

	trace_add(line, "[");
	for (uint64_t i = 0; i < count && i < SEGMENTS_SHOWN; i++) {
		if (!check_read(&segment, &segments[i], sizeof(segment)))
			break;
		trace_add(line, "%s", !i ? "" : line->is_json ? "," : ", ");
		add_triplet(line, segment.lmr_context, segment.virtual_address,
			    segment.segment_length);
	}
	if (count > SEGMENTS_SHOWN && !line->is_json)
		trace_add(line, ", ... %llu in all", (unsigned long long)count);
	trace_add(line, "]");
}

static void add_target(struct trace_line *line, const DAT_RMR_TRIPLET *pointer)
{
	DAT_RMR_TRIPLET target;

	if (!check_read(&target, pointer, sizeof(target)))
		trace_add(line, line->is_json ? "null" : "NULL");
	else
		add_triplet(line, target.rmr_context, target.target_address, target.segment_length);
}

static void add_bytes(struct trace_line *line, const void *at, uint64_t size)
{
	uint64_t shown = size < BYTES_SHOWN ? size : BYTES_SHOWN;
	char bytes[BYTES_SHOWN];

	if (!at || !check_read(bytes, at, shown)) {
		trace_add(line, line->is_json ? "null" : "NULL");
		return;
	}
	trace_add_string(line, bytes, shown);
	if (size > shown && !line->is_json)
		trace_add(line, "... %llu bytes", (unsigned long long)size);
}

static void add_address(struct trace_line *line, const void *at)
{
	const char *quote = line->is_json ? "\"" : "";
	char text[INET6_ADDRSTRLEN] = "unknown";
	struct sockaddr_in6 address = {0};

	if (!check_read(&address, at, sizeof(struct sockaddr_in))) {
		trace_add(line, line->is_json ? "null" : "NULL");
		return;
	}
	if (address.sin6_family == AF_INET)
		(void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(void *)&address)->sin_addr,
				text, sizeof(text));
	else if (address.sin6_family == AF_INET6 && check_read(&address, at, sizeof(address)))
		(void)inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
	trace_add(line, "%s%s%s", quote, text, quote);
}

/* ---- events ---- */

static void add_named(struct trace_line *line, const char *name)
{
	trace_add(line, line->is_json ? ",\"%s\":" : ", %s ", name);
}

static void add_completion(struct trace_line *line, const DAT_EVENT_DATA *data, bool is_bind)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &data->dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind = &data->rmr_completion_event_data;
	DAT_DTO_COMPLETION_STATUS status = is_bind ? bind->status : dto->status;
	DAT_HANDLE handle = is_bind ? bind->rmr_handle : dto->ep_handle;
	uint64_t cookie = is_bind ? bind->user_cookie.as_64 : dto->user_cookie.as_64;

	trace_add(line, line->is_json ? ",\"%s\":" : " ", is_bind ? "rmr" : "ep");
	add_handle(line, handle);
	add_named(line, "cookie");
	trace_add(line, line->is_json ? "%llu" : "0x%llx", (unsigned long long)cookie);
	trace_add(line, line->is_json ? ",\"status\":\"%s\"" : ", %s",
		  opendat_dto_status_name(status));
	if (!is_bind && status == DAT_DTO_SUCCESS)
		trace_add(line, line->is_json ? ",\"length\":%llu" : ", %llu bytes",
			  (unsigned long long)dto->transfered_length);
}

static void add_event(struct trace_line *line, const DAT_EVENT *event)
{
	const DAT_EVENT_DATA *data = &event->event_data;

	trace_add(line, line->is_json ? "{\"event\":\"%s\"" : "{%s",
		  opendat_event_name(event->event_number));
	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		add_completion(line, data, false);
	else if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		add_completion(line, data, true);
	else if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		trace_add(line, line->is_json ? ",\"cr\":" : " ");
		add_handle(line, data->cr_arrival_event_data.cr_handle);
		add_named(line, "qualifier");
		trace_add(line, "%llu", (unsigned long long)data->cr_arrival_event_data.conn_qual);
	} else if (event->event_number == DAT_SOFTWARE_EVENT) {
		trace_add(line, line->is_json ? ",\"pointer\":\"%p\"" : " %p",
			  data->software_event_data.pointer);
	} else if (opendat_event_is_async(event->event_number)) {
		trace_add(line, line->is_json ? ",\"object\":" : " ");
		add_handle(line, data->asynch_error_event_data.dat_handle);
		add_named(line, "reason");
		trace_add(line, "%d", data->asynch_error_event_data.reason);
	} else {
		trace_add(line, line->is_json ? ",\"ep\":" : " ");
		add_handle(line, data->connect_event_data.ep_handle);
		if (data->connect_event_data.private_data_size > 0) {
			add_named(line, "private_data");
			add_bytes(line, data->connect_event_data.private_data,
				  (uint64_t)data->connect_event_data.private_data_size);
		}
	}
	trace_add(line, "}");
}

/* ---- arguments ---- */

/* In JSON it has quotes. */
static void add_word(struct trace_line *line, const char *word)
{
	trace_add(line, line->is_json ? "\"%s\"" : "%s", word);
}

static void add_input(struct trace_line *line, const struct trace_arg *arg)
{
	switch (arg->kind) {
	case TRACE_HANDLE:
		add_handle(line, (DAT_HANDLE)arg->at);
		break;
	case TRACE_HEX:
		trace_add(line, line->is_json ? "%llu" : "0x%llx", (unsigned long long)arg->value);
		break;
	case TRACE_FLAGS:
		add_flags(line, (unsigned)arg->value, arg->flags);
		break;
	case TRACE_TEXT:
		trace_add_string(line, arg->at ? arg->at : "", arg->at ? strlen(arg->at) : 0);
		break;
	case TRACE_ADDRESS:
		add_address(line, arg->at);
		break;
	case TRACE_BYTES:
		add_bytes(line, arg->at, arg->value);
		break;
	case TRACE_SEGMENTS:
		add_segments(line, arg->at, arg->at ? arg->value : 0);
		break;
	case TRACE_TARGET:
		add_target(line, arg->at);
		break;
	case TRACE_TIMEOUT:
		if (arg->value == DAT_TIMEOUT_INFINITE) {
			add_word(line, "DAT_TIMEOUT_INFINITE");
			break;
		} /* fall through */
	default:
		trace_add(line, "%lld", (long long)arg->value);
	}
}

static void add_output(struct trace_line *line, const struct trace_arg *arg)
{
	switch (arg->kind) {
	case TRACE_NEW:
		add_handle(line, *(const DAT_HANDLE *)arg->at);
		break;
	case TRACE_COUNT:
		trace_add(line, "%d", *(const DAT_COUNT *)arg->at);
		break;
	case TRACE_KEY:
		trace_add(line, line->is_json ? "%u" : "0x%x", *(const DAT_LMR_CONTEXT *)arg->at);
		break;
	case TRACE_LONG:
		trace_add(line, line->is_json ? "%llu" : "0x%llx",
			  (unsigned long long)*(const DAT_VLEN *)arg->at);
		break;
	case TRACE_STATE:
		add_word(line, opendat_ep_state_name(*(const DAT_EP_STATE *)arg->at));
		break;
	case TRACE_TRUTH:
		add_word(line, *(const DAT_BOOLEAN *)arg->at ? "DAT_TRUE" : "DAT_FALSE");
		break;
	case TRACE_TYPE:
		add_word(line, opendat_object_name(*(const DAT_HANDLE_TYPE *)arg->at));
		break;
	default:
		add_event(line, arg->at);
	}
}

/* Numbers have their names in the text, and what shows what it is has none. */
static bool is_named(enum trace_kind kind)
{
	return kind == TRACE_NUMBER || kind == TRACE_HEX || kind == TRACE_TIMEOUT ||
	       kind == TRACE_BYTES || kind == TRACE_COUNT || kind == TRACE_KEY ||
	       kind == TRACE_LONG || kind == TRACE_TRUTH;
}

void trace_add_arg(struct trace_line *line, const struct trace_arg *arg)
{
	if (line->is_json)
		trace_add(line, "\"%s\":", arg->name);
	else if (is_named(arg->kind))
		trace_add(line, "%s=", arg->name);
	if (arg->kind < TRACE_OUT)
		add_input(line, arg);
	else
		add_output(line, arg);
}
