// SPDX-License-Identifier: BSD-2-Clause
/* The causes of refused connections; see refused.h. */
#include "refused.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "common.h"

/* Fewer descriptors than this left when a connection fails: they are the likely cause. */
#define REFUSED_DESCRIPTORS 16u

/* How many descriptors this process has left. -1: not known. */
static long refused_descriptors_left(rlim_t limit)
{
	DIR *folder = opendir("/proc/self/fd");
	rlim_t count = 0;

	if (!folder)
		return errno == EMFILE || errno == ENFILE ? 0 : -1;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count < limit ? (long)(limit - count) : 0;
}

/*
 * Prints the limit of descriptors if this process has almost none left. What needed one may have
 * freed others since, so a few that are left do not exclude it.
 */
static bool refused_descriptors(const char *what)
{
	struct rlimit limit;
	long left;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return false;
	left = refused_descriptors_left(limit.rlim_cur);
	if (left < 0 || left >= (long)REFUSED_DESCRIPTORS)
		return false;
	tool_complain("%s: descriptors exhausted: this process may open %llu; raise the limit with "
		      "`ulimit -n`, or use fewer connections",
		      what, (unsigned long long)limit.rlim_cur);
	return true;
}

static void refused_no_listener(const char *address, DAT_CONN_QUAL qualifier)
{
	/* without a descriptor the library cannot take the answer of a listener */
	if (refused_descriptors("cannot connect"))
		return;
	tool_complain("cannot connect: refused, no listener on qualifier %" PRIu64 " at %s",
		      (uint64_t)qualifier, address);
	tool_complain("start `%s --server` there, and use the qualifier that it prints", tool_name);
}

void refused_event(const struct sockaddr *address, DAT_CONN_QUAL qualifier, DAT_EVENT_NUMBER number)
{
	char text[64];

	tool_address_text(address, text, sizeof(text));
	switch (number) {
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		refused_no_listener(text, qualifier);
		break;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		tool_complain("cannot connect: rejected by the peer, the program that listens on "
			      "qualifier %" PRIu64 " at %s",
			      (uint64_t)qualifier, text);
		tool_complain("its messages say why; it must be a `%s --server` of the same "
			      "version",
			      tool_name);
		break;
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		tool_complain("cannot connect: unreachable, the adapter has no way to %s", text);
		tool_complain("an adapter of a loopback address, such as soft-lo, reaches this "
			      "host only; `dat_info` lists the others");
		break;
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		tool_complain("cannot connect: timed out, no answer from qualifier %" PRIu64
			      " at %s",
			      (uint64_t)qualifier, text);
		tool_complain("the host may be off, a firewall may be in between, or the server "
			      "may be stopped or have no descriptors left");
		break;
	default:
		tool_complain("cannot connect: %s", tool_event_text(number));
		break;
	}
}

void refused_silence(const struct sockaddr *address, DAT_CONN_QUAL qualifier, unsigned timeout_ms)
{
	char text[64];

	tool_complain(
		"no answer to the connection request from qualifier %" PRIu64 " at %s in %u ms",
		(uint64_t)qualifier, tool_address_text(address, text, sizeof(text)), timeout_ms);
	tool_complain("the server may be busy, stopped, or have no descriptors left");
}

int refused_call(const char *call, DAT_RETURN code)
{
	tool_call_failed(call, code);
	if (DAT_GET_TYPE(code) == DAT_INSUFFICIENT_RESOURCES)
		refused_descriptors(call);
	return -EIO;
}

int refused_listen(const char *call, DAT_RETURN code, DAT_CONN_QUAL qualifier)
{
	refused_call(call, code);
	if (DAT_GET_TYPE(code) == DAT_CONN_QUAL_IN_USE)
		tool_complain("another program has the qualifier %" PRIu64
			      " at this address: choose another one, or leave --qual out%s",
			      (uint64_t)qualifier,
			      qualifier <= UINT16_MAX ? "; `ss -lntp` shows who has a TCP port"
						      : "");
	return -EIO;
}
