// SPDX-License-Identifier: BSD-2-Clause
/* The tests of dat_perf that transfer no data; see perf_idle.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "perf.h"
#include "perf_idle.h"
#include "perf_clock.h"

/* --- idle connections --- */

int perf_idle_prepare(struct perf_peer *peer)
{
	struct session *session = &peer->idle_session;
	DAT_RETURN code;

	*session = peer->session;
	session->connect_evd = peer->connect_evd;
	session->recv_evd = DAT_HANDLE_NULL;
	session->request_evd = DAT_HANDLE_NULL;
	peer->idle = calloc((size_t)peer->plan.idle + 1, sizeof(peer->idle[0]));
	if (!peer->idle)
		return -ENOMEM;
	code = dat_evd_create(session->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			      &session->recv_evd);
	if (code == DAT_SUCCESS)
		code = dat_evd_create(session->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
				      &session->request_evd);
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_evd_create", code);
}

/* Accepts the next connection request on its own endpoint. */
static int perf_accept_one(struct perf_peer *peer, enum perf_role role, DAT_EP_HANDLE *endpoint,
			   struct perf_hello *hello_out)
{
	DAT_CR_HANDLE request;
	int rc = perf_request_take(peer, role, &request, hello_out);

	if (rc != 0)
		return rc;
	if (!*endpoint)
		rc = session_endpoint_create(&peer->idle_session, endpoint);
	if (rc != 0) {
		dat_cr_reject(request);
		return rc;
	}
	return session_accept(&peer->idle_session, request, *endpoint, NULL, 0);
}

int perf_idle_accept(struct perf_peer *peer, uint32_t count)
{
	struct perf_hello unused;
	int rc = 0;

	while (rc == 0 && peer->idle_count < count)
		rc = perf_accept_one(peer, PERF_ROLE_IDLE, &peer->idle[peer->idle_count++],
				     &unused);
	return rc;
}

int perf_idle_connect(struct perf_peer *peer, const struct perf_server_address *server,
		      uint32_t count)
{
	struct sockaddr_storage address = server->address;
	struct perf_hello hello;
	int rc = 0;

	perf_hello_target(&hello, PERF_ROLE_IDLE, peer, 0, 0, 0);
	while (rc == 0 && peer->idle_count < count) {
		DAT_EP_HANDLE *endpoint = &peer->idle[peer->idle_count++];

		rc = session_endpoint_create(&peer->idle_session, endpoint);
		if (rc == 0)
			rc = session_connect(&peer->idle_session, *endpoint,
					     (struct sockaddr *)&address, server->qualifier, &hello,
					     sizeof(hello), NULL);
	}
	return rc;
}

void perf_idle_close(struct perf_peer *peer)
{
	DAT_EVENT event;

	while (peer->idle_count > 0) {
		DAT_EP_HANDLE *endpoint = &peer->idle[--peer->idle_count];

		if (*endpoint)
			dat_ep_free(*endpoint);
		*endpoint = DAT_HANDLE_NULL;
	}
	/* discard the events of connections that the peer ended first */
	while (peer->connect_evd && dat_evd_dequeue(peer->connect_evd, &event) == DAT_SUCCESS)
		continue;
}

void perf_idle_release(struct perf_peer *peer)
{
	perf_idle_close(peer);
	if (peer->idle_session.recv_evd)
		dat_evd_free(peer->idle_session.recv_evd);
	if (peer->idle_session.request_evd)
		dat_evd_free(peer->idle_session.request_evd);
	peer->idle_session = (struct session){.ia = DAT_HANDLE_NULL};
	free(peer->idle);
	peer->idle = NULL;
}

/* --- cycles --- */

/* Makes a disconnected endpoint ready for the next connection. */
static int perf_cycle_reset(DAT_EP_HANDLE endpoint)
{
	DAT_RETURN code = dat_ep_reset(endpoint);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_reset", code);
}

int perf_cycles_accept(struct perf_peer *peer)
{
	DAT_EP_HANDLE endpoint = DAT_HANDLE_NULL;
	struct perf_hello hello = {.index = 0};
	int rc = 0;

	while (rc == 0 && hello.index == 0) {
		rc = perf_accept_one(peer, PERF_ROLE_CYCLE, &endpoint, &hello);
		if (rc == 0)
			rc = session_disconnect(&peer->idle_session, endpoint, false);
		if (rc == 0)
			rc = perf_cycle_reset(endpoint);
	}
	if (endpoint)
		dat_ep_free(endpoint);
	return rc;
}

int perf_cycles_connect(struct perf_peer *peer, const struct perf_server_address *server,
			uint64_t count, uint64_t end_ticks, struct stats *stats)
{
	struct session *session = &peer->idle_session;
	struct sockaddr_storage address = server->address;
	struct perf_hello hello;
	DAT_EP_HANDLE endpoint;
	bool is_last = false;
	uint64_t since;
	int rc = session_endpoint_create(session, &endpoint);

	if (rc != 0)
		return rc;
	since = perf_clock_ticks();
	for (uint64_t i = 1; rc == 0 && !is_last; i++) {
		uint64_t now;

		is_last = count != 0 ? i == count : since >= end_ticks || perf_is_enough;
		perf_hello_target(&hello, PERF_ROLE_CYCLE, peer, is_last, 0, 0);
		rc = session_connect(session, endpoint, (struct sockaddr *)&address,
				     server->qualifier, &hello, sizeof(hello), NULL);
		if (rc == 0)
			rc = session_disconnect(session, endpoint, true);
		if (rc == 0)
			rc = perf_cycle_reset(endpoint);
		now = perf_clock_ticks();
		stats_add(stats, now - since);
		since = now;
	}
	dat_ep_free(endpoint);
	return rc;
}

/* --- memory and processor time of the process --- */

int perf_usage_space(uint64_t *bytes_out)
{
	static const char path[] = "/proc/self/statm";
	FILE *file = fopen(path, "r");
	unsigned long long pages;
	bool is_read = file && fscanf(file, "%llu", &pages) == 1;

	if (file)
		fclose(file);
	if (!is_read) {
		tool_complain("%s cannot be read", path);
		return -EIO;
	}
	*bytes_out = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

/* The size of the range of handles: the mapping that contains a handle, and the one without access
 * behind it, which is kept for further ones. */
static int usage_handles(DAT_HANDLE handle, uint64_t *bytes_out)
{
	static const char path[] = "/proc/self/maps";
	FILE *file = fopen(path, "r");
	unsigned long long start, end, last = 0;
	char line[4096 + 128], access[5];

	if (!file) {
		tool_complain("%s: %s", path, strerror(errno));
		return -EIO;
	}
	/* 0 if there is none: a handle of another provider need not be an address */
	*bytes_out = 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx-%llx %4s", &start, &end, access) != 3)
			continue;
		if (((uintptr_t)handle >= start && (uintptr_t)handle < end) ||
		    (start == last && strcmp(access, "---p") == 0)) {
			*bytes_out += end - start;
			last = end;
		}
	}
	fclose(file);
	return 0;
}

int perf_usage_adapter(const struct perf_peer *peer, uint64_t *bytes_out)
{
	uint64_t space, handles;
	int rc = perf_usage_space(&space);

	if (rc == 0)
		rc = usage_handles(peer->session.pz, &handles);
	if (rc == 0)
		*bytes_out = space - peer->space_before - handles;
	return rc;
}

/* Leaves out the pages of files: the share of them that counts for this process changes whenever
 * another process that uses the same libraries begins or ends. */
int perf_usage_memory(struct perf_usage *usage_out)
{
	static const char path[] = "/proc/self/smaps_rollup";
	FILE *file = fopen(path, "r");
	unsigned long long value, private = 0, shmem = 0;
	char line[256];

	if (!file) {
		tool_complain("%s: %s", path, strerror(errno));
		return -EIO;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Pss_Anon: %llu kB", &value) == 1)
		private = value;
		else if (sscanf(line, "Pss_Shmem: %llu kB", &value) == 1) shmem = value;
	}
	fclose(file);
	*usage_out = (struct perf_usage){.pss_bytes = (private + shmem) * 1024,
					 .shmem_bytes = shmem * 1024};
	return perf_usage_space(&usage_out->space_bytes);
}

int perf_mappings_make(uint32_t count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *range;
	bool is_made;

	if (count == 0)
		return 0;
	range = mmap(NULL, page * count, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	is_made = range != MAP_FAILED;
	/* neighbouring pages with different protection are separate mappings */
	for (uint32_t i = 0; is_made && i < count; i += 2)
		is_made = mprotect(range + i * page, page, PROT_READ) == 0;
	if (is_made)
		return 0;
	tool_complain("cannot make %u mappings: %s", count, strerror(errno));
	return -ENOMEM;
}

static uint64_t usage_cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void perf_cpu_start(struct perf_cpu *cpu_out)
{
	cpu_out->used_us = usage_cpu_us();
	cpu_out->elapsed_ns = tool_now_ns();
}

void perf_cpu_stop(struct perf_cpu *cpu)
{
	cpu->used_us = usage_cpu_us() - cpu->used_us;
	cpu->elapsed_ns = tool_now_ns() - cpu->elapsed_ns;
}

uint64_t perf_cpu_permyriad(const struct perf_cpu *cpu)
{
	if (cpu->elapsed_ns == 0)
		return 0;
	return (uint64_t)((double)cpu->used_us * 1e7 / (double)cpu->elapsed_ns);
}

uint64_t perf_usage_sleep(uint64_t sleep_us)
{
	struct timespec left = {.tv_sec = (time_t)(sleep_us / 1000000u),
				.tv_nsec = (long)(sleep_us % 1000000u) * 1000};
	uint64_t before = usage_cpu_us();

	while (!tool_is_stopped && nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
	return usage_cpu_us() - before;
}
