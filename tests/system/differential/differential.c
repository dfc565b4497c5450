// SPDX-License-Identifier: BSD-2-Clause
/*
 * A differential test: random sequences of calls give the same return codes, events and memory on
 * two paths.
 *
 *   differential [--seed S] FIRST SECOND COUNT         the sequences 0 to COUNT - 1
 *   differential [--seed S] FIRST SECOND --only N      one, which a failure has named
 *   differential [--seed S] --print N                  prints one
 *
 * A path is map, cma or ring (shared memory with this copy path) or tcp. DIFFERENTIAL_WAIT_S is the
 * longest wait for an event that must come.
 *
 * What may differ by the rows of docs/spec is not in the sequences, or not compared:
 *
 *   DTO-94          which bytes a Write that leaves its window has changed (iWARP)
 *   DTO-96          requests whose region is freed while they are outstanding
 *   DTO-117         what waits for Receives is at most 48 KiB, so nothing else has to wait
 *   DTO-118         whether RDMA behind a message that waits is carried out before it
 *   DTO-42          whether what follows an RDMA Read, unfenced, changes its source before
 *   TERM-11         whether an RDMA Read fails with an unfenced request behind it
 *   EP-DISC-11      which requests are done when an abrupt disconnect follows at once
 *   DTO-45, DTO-46  the order of events of different streams, except COMPAT-48
 *   SRQ-RECV-28     which shared Receive takes a message
 *   DTO-66          lengths and buffers of requests and Receives that fail
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side.h"

#define WAIT_S 20u
#define JOBS 4u

static struct sequence sequence;

/* The two processes of a path, which carry out one sequence after the other. */
struct pair {
	const char *path;
	struct shared *shared;
	pid_t child[SIDES]; /* 0: not started */
	int command[SIDES]; /* sockets */
};

/* --- processes --- */

static void set_path(const char *path)
{
	const bool is_tcp = strcmp(path, "tcp") == 0;

	setenv("DAT_TRANSPORT", is_tcp ? "tcp" : "shm", 1);
	setenv("DAT_COPY", is_tcp ? "auto" : path, 1);
}

static void make_sockets(int sockets[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		abort();
}

static void start_side(struct pair *pair, int me, uint64_t seed, const int sockets[SIDES])
{
	static struct side side;
	const char *wait_s = getenv("DIFFERENTIAL_WAIT_S");
	int command[2];

	make_sockets(command);
	pair->command[me] = command[0];
	pair->child[me] = fork();
	if (pair->child[me] < 0)
		abort();
	if (pair->child[me]) {
		close(command[1]);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("CMOCKA_TEST_ABORT", "1", 1); /* a check that fails ends the process */
	set_path(pair->path);
	for (int i = 0; i <= me; i++)
		close(pair->command[i]);
	close(sockets[!me]);
	side.sequence = &sequence;
	side.shared = pair->shared;
	side.me = me;
	side.socket = sockets[me];
	side.wait_us = (wait_s ? strtoul(wait_s, NULL, 0) : WAIT_S) * UINT64_C(1000000);
	side_serve(&side, command[1], seed);
	_exit(0);
}

static void start_pair(struct pair *pair, uint64_t seed)
{
	int sockets[SIDES];

	make_sockets(sockets);
	fflush(NULL);
	for (int me = 0; me < SIDES; me++)
		start_side(pair, me, seed, sockets);
	close(sockets[0]);
	close(sockets[1]);
}

/* What ends a process becomes a line of its trace. */
static bool end_pair(struct pair *pair)
{
	bool is_well = true;
	int status;

	for (int me = 0; me < SIDES; me++) {
		(void)shutdown(pair->command[me], SHUT_RDWR); /* the other pair has copies */
		close(pair->command[me]);
	}
	for (int me = 0; me < SIDES; me++) {
		size_t *len = &pair->shared->trace_len[me];

		while (waitpid(pair->child[me], &status, 0) == -1 && errno == EINTR)
			;
		pair->child[me] = 0;
		if (!status)
			continue;
		is_well = false;
		*len += (size_t)snprintf(pair->shared->trace[me] + *len, TRACE_LEN - *len,
					 "the process has ended with status 0x%x\n",
					 (unsigned)status);
	}
	return is_well;
}

/* False: a process has ended, which its trace says. */
static bool run(struct pair *pair, uint64_t seed, unsigned number)
{
	bool has_ended = false;
	char byte;

	pair->shared->is_stopped = false;
	for (int me = 0; me < SIDES; me++) {
		pair->shared->trace_len[me] = 0;
		pair->shared->trace[me][0] = 0;
	}
	if (!pair->child[0])
		start_pair(pair, seed);
	for (int me = 0; me < SIDES; me++)
		has_ended |= send(pair->command[me], &number, sizeof(number), MSG_NOSIGNAL) < 0;
	for (int me = 0; me < SIDES; me++)
		has_ended |= read(pair->command[me], &byte, 1) != 1;
	if (has_ended)
		(void)end_pair(pair);
	return !has_ended;
}

/* --- the comparison --- */

static size_t line_len(const char *text)
{
	return strcspn(text, "\n");
}

/* Prints the first lines that differ, and what came before them. */
static bool is_same(const struct pair pair[2], int side)
{
	const char *line[2] = {pair[0].shared->trace[side], pair[1].shared->trace[side]};
	const char *before = line[0];
	size_t len;

	while (*line[0] || *line[1]) {
		len = line_len(line[0]);
		if (len != line_len(line[1]) || strncmp(line[0], line[1], len) != 0)
			break;
		if (*line[0] != ' ')
			before = line[0];
		line[0] += len + (line[0][len] == '\n');
		line[1] += len + (line[1][len] == '\n');
	}
	if (!*line[0] && !*line[1])
		return true;
	printf("side %c differs after\n", 'A' + side);
	printf("%.*s", (int)(line[0] - before), before);
	for (int i = 0; i < 2; i++)
		printf("%4s: %.*s\n", pair[i].path, (int)line_len(line[i]), line[i]);
	return false;
}

static bool try_sequence(struct pair pair[2], uint64_t seed, unsigned number)
{
	bool is_equal = true;

	sequence_generate(&sequence, seed, number);
	for (int i = 0; i < 2; i++)
		is_equal &= run(&pair[i], seed, number);
	for (int side = 0; side < SIDES; side++)
		is_equal &= is_same(pair, side);
	if (is_equal)
		return true;
	sequence_print(stdout, &sequence);
	printf("seed %llu, sequence %u: %s and %s differ, or a process has ended\n",
	       (unsigned long long)seed, number, pair[0].path, pair[1].path);
	for (int i = 0; i < 2; i++)
		if (pair[i].child[0])
			(void)end_pair(&pair[i]);
	return false;
}

static struct shared *map_shared(void)
{
	void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* Every JOBS-th sequence: most of a run is waiting for processes to be scheduled. */
static void run_job(const char *const path[2], uint64_t seed, unsigned first, unsigned end)
{
	struct pair pair[2] = {{.path = path[0], .shared = map_shared()},
			       {.path = path[1], .shared = map_shared()}};
	bool is_well = true;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* what one prints stays together */
	setvbuf(stdout, NULL, _IOFBF, TRACE_LEN);
	for (unsigned number = first; number < end; number += JOBS) {
		is_well &= try_sequence(pair, seed, number);
		fflush(stdout);
	}
	for (int i = 0; i < 2; i++) {
		if (!pair[i].child[0] || end_pair(&pair[i]))
			continue;
		printf("%s: a process did not close its adapter\n", path[i]);
		fflush(stdout);
		is_well = false;
	}
	_exit(!is_well);
}

static int try_all(const char *const path[2], uint64_t seed, unsigned first, unsigned count)
{
	unsigned failures = 0;
	pid_t job[JOBS];
	int status;

	printf("seed %llu, sequences %u to %u on %s and %s\n", (unsigned long long)seed, first,
	       first + count - 1, path[0], path[1]);
	fflush(stdout);
	for (unsigned i = 0; i < JOBS; i++) {
		job[i] = fork();
		if (job[i] < 0)
			abort();
		if (!job[i])
			run_job(path, seed, first + i, first + count);
	}
	for (unsigned i = 0; i < JOBS; i++)
		failures += waitpid(job[i], &status, 0) != job[i] || status;
	printf(failures ? "there are differences\n" : "all are equal\n");
	return failures != 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	unsigned number;

	if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
		seed = strtoull(argv[2], NULL, 0);
		argv += 2;
		argc -= 2;
	}
	number = (unsigned)strtoul(argv[argc - 1], NULL, 0);
	if (argc == 3 && strcmp(argv[1], "--print") == 0) {
		sequence_generate(&sequence, seed, number);
		sequence_print(stdout, &sequence);
		return 0;
	}
	if (argc == 5 && strcmp(argv[3], "--only") == 0)
		return try_all((const char *const *)&argv[1], seed, number, 1);
	if (argc != 4)
		return 2;
	return try_all((const char *const *)&argv[1], seed, 0, DT_SLOW ? number / 10 : number);
}
