// SPDX-License-Identifier: BSD-2-Clause
/*
 * Soak test: connects, transfers and disconnects repeatedly between two processes. Then compares
 * the resources of each with those after a warm-up: descriptors, mappings, names in /dev/shm, heap
 * and resident memory. The test fails if any of them grows with the number of connections.
 *
 *   soak [COUNT [ADAPTER]]
 *
 * The program starts itself again as the server. Through a pipe the server reports its qualifier
 * and, at each checkpoint, its resources. Exit status as for the tools.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "session.h"

#define SOAK_COUNT 100000u
#define SOAK_WARM_UP 500u
#define SOAK_LEN 4096u
#define SOAK_TIMEOUT_MS 20000u

/* Tolerated growth: freed blocks that the allocator kept, and pages touched for the first time. */
#define SOAK_HEAP_SLACK (64 * 1024)
#define SOAK_RSS_SLACK (2048 * 1024)
#define SOAK_MAPPING_SLACK 2

/* A sanitizer keeps freed memory and maps shadows of it; its own leak check is used there. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SOAK_IS_SANITIZED true
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SOAK_IS_SANITIZED true
#endif
#ifndef SOAK_IS_SANITIZED
#define SOAK_IS_SANITIZED false
#endif

struct soak_figures {
	int64_t descriptors;
	int64_t mappings;
	int64_t shared_names; /* in /dev/shm, of all processes */
	int64_t heap_bytes;
	int64_t rss_bytes;
};

struct soak {
	struct session session;
	struct session_buffer buffer;
	FILE *reports; /* client: from the server; server: to the client */
	uint64_t count;
	uint64_t warm_up;
	struct sockaddr_storage address;
	DAT_CONN_QUAL qualifier;
	pid_t server;
};

static int64_t soak_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int64_t count = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int64_t soak_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	int64_t count = 0;
	int c;

	if (!file)
		return 0;
	while ((c = fgetc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

/* 0 where the C library does not say. */
static int64_t soak_heap(void)
{
#ifdef HAVE_MALLINFO2
	return (int64_t)mallinfo2().uordblks;
#else
	return 0;
#endif
}

static void soak_count(struct soak_figures *figures_out)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long long resident = 0;

	if (file) {
		if (fscanf(file, "%*d %lld", &resident) != 1)
			resident = 0;
		fclose(file);
	}
	*figures_out = (struct soak_figures){
		.descriptors = soak_entries("/proc/self/fd"),
		.mappings = soak_lines("/proc/self/maps"),
		.shared_names = soak_entries("/dev/shm"),
		.heap_bytes = soak_heap(),
		.rss_bytes = (int64_t)resident * sysconf(_SC_PAGESIZE),
	};
}

/*
 * The service thread may still be closing the last connection after dat_ep_free. So this waits a
 * short time until there are no more than `expected` descriptors (0: any number).
 */
static void soak_measure(int64_t expected, struct soak_figures *figures_out)
{
	const uint64_t give_up = tool_now_ns() + (uint64_t)SOAK_TIMEOUT_MS * 1000000u;

	while (expected && soak_entries("/proc/self/fd") > expected && tool_now_ns() < give_up)
		sched_yield();
	soak_count(figures_out);
}

/* One connection, on the accepting side. */
static int soak_serve(struct soak *soak)
{
	struct session *session = &soak->session;
	struct session_private hello;
	struct {
		uint64_t address;
		uint32_t context;
	} where = {(uintptr_t)soak->buffer.data + SOAK_LEN, soak->buffer.rmr_context};
	DAT_EP_HANDLE endpoint;
	DAT_CR_HANDLE request;
	int rc = session_request_wait(session, 0, &request, &hello);

	if (rc != 0)
		return rc;
	rc = session_endpoint_create(session, &endpoint);
	if (rc != 0)
		return rc;
	rc = session_post_recv(&soak->buffer, 0, SOAK_LEN, endpoint, 0);
	if (rc == 0)
		rc = session_accept(session, request, endpoint, &where, sizeof(where));
	if (rc == 0)
		rc = session_complete(session, session->recv_evd, NULL, NULL);
	if (rc == 0)
		rc = session_post_send(&soak->buffer, 0, SOAK_LEN, endpoint);
	if (rc == 0)
		rc = session_complete(session, session->request_evd, NULL, NULL);
	if (rc == 0)
		rc = session_disconnect(session, endpoint, false);
	dat_ep_free(endpoint);
	return rc;
}

/* RDMA Write, RDMA Read, Send, Receive; the received bytes must be those that were sent. */
static int soak_transfer(struct soak *soak, DAT_EP_HANDLE endpoint, DAT_RMR_TRIPLET *remote,
			 uint64_t index)
{
	struct session *session = &soak->session;
	struct session_buffer *buffer = &soak->buffer;
	uint64_t found;
	int rc;

	for (size_t i = 0; i + 8 <= SOAK_LEN; i += 8)
		memcpy(buffer->data + i, &index, 8);
	rc = session_post_rdma(buffer, SOAK_LEN, endpoint, remote, false);
	if (rc == 0)
		rc = session_complete(session, session->request_evd, NULL, NULL);
	memset(buffer->data, 0, SOAK_LEN);
	if (rc == 0)
		rc = session_post_rdma(buffer, SOAK_LEN, endpoint, remote, true);
	if (rc == 0)
		rc = session_complete(session, session->request_evd, NULL, NULL);
	if (rc == 0)
		rc = session_post_send(buffer, 0, SOAK_LEN, endpoint);
	if (rc == 0)
		rc = session_complete(session, session->request_evd, NULL, NULL);
	if (rc == 0)
		rc = session_complete(session, session->recv_evd, NULL, NULL);
	for (size_t i = 0; rc == 0 && i + 8 <= SOAK_LEN; i += 8) {
		memcpy(&found, buffer->data + SOAK_LEN + i, 8);
		if (found != index) {
			tool_complain("cycle %" PRIu64 ": wrong byte near %zu", index, i);
			rc = -EBADMSG;
		}
	}
	return rc;
}

static int soak_cycle(struct soak *soak, uint64_t index)
{
	struct session *session = &soak->session;
	DAT_RMR_TRIPLET remote = {.segment_length = SOAK_LEN};
	struct session_private answer;
	DAT_EP_HANDLE endpoint;
	int rc = session_endpoint_create(session, &endpoint);

	if (rc != 0)
		return rc;
	memset(soak->buffer.data, 0xff, soak->buffer.len);
	rc = session_post_recv(&soak->buffer, SOAK_LEN, SOAK_LEN, endpoint, 0);
	if (rc == 0)
		rc = session_connect(session, endpoint, (struct sockaddr *)&soak->address,
				     soak->qualifier, NULL, 0, &answer);
	if (rc == 0) {
		memcpy(&remote.target_address, answer.data, 8);
		memcpy(&remote.rmr_context, answer.data + 8, 4);
		rc = soak_transfer(soak, endpoint, &remote, index);
	}
	if (rc == 0)
		rc = session_disconnect(session, endpoint, true);
	dat_ep_free(endpoint);
	return rc;
}

static bool soak_grew(const char *what, int64_t before, int64_t after, int64_t slack)
{
	bool has_grown = after > before + slack;

	printf("  %-14s %12" PRId64 " %12" PRId64 " %+10" PRId64 "%s\n", what, before, after,
	       after - before, has_grown ? "  GREW" : "");
	return has_grown;
}

static bool soak_compare(const char *side, const struct soak_figures *before,
			 const struct soak_figures *after)
{
	bool has_grown = false;

	printf("%-16s %12s %12s %10s\n", side, "warmed up", "at the end", "change");
	has_grown |= soak_grew("descriptors", before->descriptors, after->descriptors, 0);
	has_grown |= soak_grew("/dev/shm names", before->shared_names, after->shared_names, 0);
	if (SOAK_IS_SANITIZED)
		return has_grown;
	has_grown |= soak_grew("mappings", before->mappings, after->mappings, SOAK_MAPPING_SLACK);
	has_grown |=
		soak_grew("heap bytes", before->heap_bytes, after->heap_bytes, SOAK_HEAP_SLACK);
	has_grown |=
		soak_grew("resident bytes", before->rss_bytes, after->rss_bytes, SOAK_RSS_SLACK);
	return has_grown;
}

static int64_t soak_figures_send(FILE *out, int64_t expected)
{
	struct soak_figures figures;

	soak_measure(expected, &figures);
	fprintf(out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		figures.descriptors, figures.mappings, figures.shared_names, figures.heap_bytes,
		figures.rss_bytes);
	fflush(out);
	return figures.descriptors;
}

static int soak_figures_receive(FILE *in, struct soak_figures *figures_out)
{
	if (fscanf(in, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
		   &figures_out->descriptors, &figures_out->mappings, &figures_out->shared_names,
		   &figures_out->heap_bytes, &figures_out->rss_bytes) == 5)
		return 0;
	tool_complain("the server is gone");
	return -EIO;
}

static int soak_server(struct soak *soak)
{
	DAT_PSP_HANDLE psp;
	int64_t expected = 0;
	int rc = session_listen(&soak->session, &soak->qualifier, &psp);

	if (rc != 0)
		return rc;
	fprintf(soak->reports, "%" PRIu64 "\n", soak->qualifier);
	fflush(soak->reports);
	for (uint64_t i = 0; i < soak->warm_up + soak->count && rc == 0; i++) {
		rc = soak_serve(soak);
		if (i + 1 == soak->warm_up)
			expected = soak_figures_send(soak->reports, 0);
	}
	if (rc == 0)
		soak_figures_send(soak->reports, expected);
	return rc;
}

/* Starts this program again with its reports on a pipe; it ends when this process does. */
static int soak_server_start(struct soak *soak, const char *adapter)
{
	char count[32], fd[16], path[] = "/proc/self/exe";
	pid_t parent = getpid();
	int ends[2];

	if (pipe(ends) != 0)
		return -errno;
	snprintf(count, sizeof(count), "%" PRIu64, soak->count);
	snprintf(fd, sizeof(fd), "%d", ends[1]);
	soak->server = fork();
	if (soak->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ends[0]);
		execl(path, "soak", "--server", fd, count, adapter, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (soak->server < 0)
		return -errno;
	soak->reports = fdopen(ends[0], "r");
	if (!soak->reports || fscanf(soak->reports, "%" SCNu64, &soak->qualifier) != 1) {
		tool_complain("the server did not start");
		return -EIO;
	}
	return 0;
}

static int soak_client(struct soak *soak)
{
	struct soak_figures before, after, server_before, server_after;
	uint64_t start = 0;
	bool has_grown;
	int rc = 0;

	soak->address = soak->session.address;
	for (uint64_t i = 0; i < soak->warm_up + soak->count; i++) {
		rc = soak_cycle(soak, i);
		if (rc != 0) {
			tool_complain("cycle %" PRIu64 " of %" PRIu64 " failed", i,
				      soak->warm_up + soak->count);
			return rc;
		}
		if (i + 1 == soak->warm_up) {
			soak_measure(0, &before);
			rc = soak_figures_receive(soak->reports, &server_before);
			if (rc != 0)
				return rc;
			start = tool_now_ns();
		}
	}
	soak_measure(before.descriptors, &after);
	rc = soak_figures_receive(soak->reports, &server_after);
	if (rc != 0)
		return rc;
	printf("%" PRIu64 " connections, %.1f us each\n", soak->count,
	       (double)(tool_now_ns() - start) / 1000.0 / (double)soak->count);
	has_grown = soak_compare("client", &before, &after);
	has_grown |= soak_compare("server", &server_before, &server_after);
	return has_grown ? -EBADMSG : 0;
}

static int soak_run(struct soak *soak, const char *adapter)
{
	bool is_server = soak->reports != NULL;
	int status = 0;
	int rc = session_open(&soak->session, adapter, false, SOAK_TIMEOUT_MS);

	if (rc != 0)
		return rc;
	rc = session_buffer_create(&soak->session, (size_t)2 * SOAK_LEN, &soak->buffer);
	if (rc != 0)
		goto out;
	if (is_server) {
		rc = soak_server(soak);
		goto out;
	}
	rc = soak_server_start(soak, adapter);
	if (rc == 0)
		rc = soak_client(soak);
	if (soak->server > 0) {
		if (rc != 0 && rc != -EBADMSG)
			kill(soak->server, SIGKILL);
		waitpid(soak->server, &status, 0);
		if (rc == 0 && status != 0) {
			tool_complain("the server failed");
			rc = -EIO;
		}
	}
out:
	session_buffer_destroy(&soak->buffer);
	session_close(&soak->session);
	if (soak->reports)
		fclose(soak->reports);
	return rc;
}

int main(int argc, char **argv)
{
	struct soak soak = {.count = SOAK_COUNT};
	const char *adapter = "soft-lo";
	bool is_server = argc == 5 && strcmp(argv[1], "--server") == 0;
	int rc;

	tool_name = is_server ? "soak (server)" : "soak";
	if (is_server) {
		soak.reports = fdopen(atoi(argv[2]), "w");
		argc -= 2;
		argv += 2;
	}
	if (argc > 3 ||
	    (argc > 1 && (tool_parse_number(argv[1], &soak.count) != 0 || soak.count == 0))) {
		fputs("usage: soak [COUNT [ADAPTER]]\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	if (argc > 2)
		adapter = argv[2];
	soak.warm_up = soak.count < SOAK_WARM_UP ? soak.count : SOAK_WARM_UP;
	if (!is_server)
		tool_catch_signals();
	rc = soak_run(&soak, adapter);
	if (rc == -EINTR)
		return TOOL_EXIT_STOPPED;
	if (rc == -EBADMSG)
		return TOOL_EXIT_MISMATCH;
	return rc == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED;
}
