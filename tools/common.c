// SPDX-License-Identifier: BSD-2-Clause
/* Text, numbers, addresses and signals for the tools; see common.h. */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dat/opendat.h>

const char *tool_name = "tool";
volatile sig_atomic_t tool_is_stopped;

static void stop(int number)
{
	(void)number;
	tool_is_stopped = 1;
}

void tool_catch_signals(void)
{
	/* no SA_RESTART: a waiting call returns; SA_RESETHAND: a second Ctrl-C ends the process */
	struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

#ifdef __SANITIZE_THREAD__
	/*
	 * The runtime of gcc 12 loses a signal that arrives during the first blocking call of a
	 * thread. So the thread makes that call before it can be interrupted.
	 */
	nanosleep(&(struct timespec){0}, NULL);
#endif
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* write() reports a broken pipe; this also saves system calls on siw (docs/verbs.md) */
	signal(SIGPIPE, SIG_IGN);
}

void tool_drop_output(void)
{
	fflush(stdout);
	if (!freopen("/dev/null", "w", stdout))
		abort();
}

void tool_complain(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", tool_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

int tool_call_failed(const char *call, DAT_RETURN code)
{
	char text[160];

	tool_complain("%s: %s", call, tool_return_text(code, text, sizeof(text)));
	return -EIO;
}

const char *tool_return_text(DAT_RETURN code, char *text, size_t size)
{
	const char *major = NULL;
	const char *minor = NULL;

	dat_strerror(code, &major, &minor);
	snprintf(text, size, "%s%s%s (0x%08x)", major ? major : "unknown code",
		 minor && *minor ? " " : "", minor ? minor : "", (unsigned)code);
	return text;
}

const char *tool_event_text(DAT_EVENT_NUMBER number)
{
	switch (number) {
	case DAT_DTO_COMPLETION_EVENT:
		return "completion";
	case DAT_RMR_BIND_COMPLETION_EVENT:
		return "bind completion";
	case DAT_CONNECTION_REQUEST_EVENT:
		return "connection request";
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		return "established";
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		return "rejected by the peer";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		return "refused, no listener";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
		return "the accepted connection failed";
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		return "disconnected";
	case DAT_CONNECTION_EVENT_BROKEN:
		return "connection broken";
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return "timed out";
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return "unreachable";
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:
		return "event queue overflow";
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		return "adapter failed";
	case DAT_ASYNC_ERROR_EP_BROKEN:
		return "endpoint broken";
	case DAT_ASYNC_ERROR_TIMED_OUT:
		return "connection lost to a time-out";
	case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR:
		return "internal error of the provider";
	case DAT_SOFTWARE_EVENT:
		return "software event";
	}
	return dat_opendat_event_name(number);
}

const char *tool_dto_status_text(DAT_DTO_COMPLETION_STATUS status)
{
	if (status == DAT_DTO_ERR_FLUSHED)
		return "DAT_DTO_ERR_FLUSHED (the connection ended)";
	return dat_opendat_dto_status_name(status);
}

const char *tool_address_text(const struct sockaddr *address, char *text, size_t size)
{
	const void *bytes = NULL;

	if (address && address->sa_family == AF_INET)
		bytes = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
	else if (address && address->sa_family == AF_INET6)
		bytes = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	if (!bytes || !inet_ntop(address->sa_family, bytes, text, (socklen_t)size))
		snprintf(text, size, "?");
	return text;
}

int tool_resolve(const char *host, struct sockaddr_storage *address_out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(host, NULL, &hints, &found);

	if (rc != 0) {
		tool_complain("%s: %s", host, gai_strerror(rc));
		if (rc == EAI_NONAME || rc == EAI_AGAIN)
			tool_complain("this host does not know the name: correct it, or give the "
				      "address (`getent hosts %s` asks the same)",
				      host);
		return -EINVAL;
	}
	memset(address_out, 0, sizeof(*address_out));
	memcpy(address_out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

int tool_parse_number(const char *text, uint64_t *number_out)
{
	unsigned shift = 0;
	uint64_t number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno != 0 || end == text || text[0] == '-')
		return -EINVAL;
	switch (*end) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	default:
		break;
	}
	if (shift != 0)
		end++;
	if (*end != '\0' || number > UINT64_MAX >> shift)
		return -EINVAL;
	*number_out = number << shift;
	return 0;
}

uint64_t tool_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *tool_time_text(char text[TOOL_TIME_TEXT])
{
	struct timespec now;
	struct tm utc;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	len = strftime(text, TOOL_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
	snprintf(text + len, TOOL_TIME_TEXT - len, ".%03ldZ", now.tv_nsec / 1000000);
	return text;
}

int tool_bind_to(uint64_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

DAT_RETURN tool_ia_open(const char *adapter, DAT_EVD_HANDLE *async_evd_out, DAT_IA_HANDLE *ia_out)
{
	static const DAT_BOOLEAN safeties[] = {DAT_TRUE, DAT_FALSE};
	DAT_RETURN code = DAT_SUCCESS;

	/* a line of dat.conf serves one thread safety only; either will do */
	for (size_t i = 0; i < sizeof(safeties) / sizeof(safeties[0]); i++) {
		*async_evd_out = DAT_HANDLE_NULL;
		code = dat_ia_openv((DAT_NAME_PTR)(uintptr_t)adapter, 8, async_evd_out, ia_out,
				    DAT_VERSION_MAJOR, DAT_VERSION_MINOR, safeties[i]);
		if (DAT_GET_TYPE(code) != DAT_PROVIDER_NOT_FOUND ||
		    DAT_GET_SUBTYPE(code) != DAT_THREAD_SAFETY_NOT_FOUND)
			break;
	}
	return code;
}

void tool_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}
