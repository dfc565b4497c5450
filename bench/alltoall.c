// SPDX-License-Identifier: BSD-2-Clause
/*
 * All to all: several processes of this host, each connected to each, exchange messages in rounds
 * as an MPI library would. Uses the public API only.
 *
 *   alltoall [-p PROCESSES] [-s] [-c] [-a ADAPTER] SIZE ROUNDS
 *
 *   -p  number of processes (default 8, at most 16)
 *   -s  buffers in sealed memory files, which peers may map; else private memory
 *   -c  verify every byte; the times then include this
 *   -a  interface adapter (default soft-lo)
 *
 * In a round each process sends each other ALL_BURST messages of up to ALL_EAGER_MAX bytes, or one
 * larger message in fragments that are registered for it. Prints one JSON object. The processes are
 * distributed over the processors that the program may use. They are killed after ALL_LIMIT_S
 * seconds. Exit status as for the tools.
 */
#include "alltoall.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define ALL_MAGIC 0x616c6c32u
#define ALL_LIMIT_S 100u
#define ALL_TIMEOUT_MS 20000u
#define ALL_SIZE_LIMIT (UINT64_C(16) << 20)
#define ALL_ROUNDS_LIMIT 10000000u

/* In memory that all processes share: their qualifiers, and when they began and ended. */
struct all_board {
	_Atomic uint64_t qualifier[ALL_PROCESSES_MAX];
	uint64_t start_ns[ALL_PROCESSES_MAX];
	uint64_t end_ns[ALL_PROCESSES_MAX];
	uint64_t wrong[ALL_PROCESSES_MAX];
	atomic_uint arrived; /* arrivals at barriers so far, of all processes */
};

struct all_options {
	const char *adapter;
	unsigned processes;
	uint64_t size;
	uint64_t rounds;
	bool is_shared;
	bool is_checked;
};

/* Private data of both directions: the rank of the sender, and its box for the receiver. */
struct all_hello {
	uint32_t magic;
	uint32_t rank;
	uint64_t address;
	uint32_t rmr_context;
	uint32_t reserved;
};

/* --- one process --- */

/* Returns when all processes have arrived; `step` counts from 1. */
static void all_barrier(const struct all *all, struct all_board *board, unsigned step)
{
	atomic_fetch_add(&board->arrived, 1);
	while (atomic_load(&board->arrived) < step * all->processes)
		sched_yield();
}

static int all_buffer(struct all *all, uint64_t len, struct session_buffer *buffer_out)
{
	if (all->is_shared)
		return session_buffer_create_shared(&all->session, len, buffer_out);
	return session_buffer_create(&all->session, len, buffer_out);
}

static int all_prepare(struct all *all)
{
	bool is_large = all->size > ALL_EAGER_MAX;
	uint64_t large_len = is_large ? (all->size + 4095) / 4096 * 4096 : 0;
	uint64_t box_len;
	int rc;

	all->slot_len = is_large ? 0 : (all->size + 63) / 64 * 64;
	box_len = ALL_NOTES + 2 * ALL_BURST * all->slot_len;
	rc = all_buffer(all, box_len * all->processes, &all->in);
	if (rc == 0)
		rc = all_buffer(all, box_len * all->processes, &all->out);
	if (rc == 0 && is_large)
		rc = all_buffer(all, large_len * all->processes, &all->large_in);
	if (rc == 0 && is_large)
		rc = all_buffer(all, large_len * all->processes, &all->large_out);
	for (unsigned i = 0; i < all->processes && rc == 0; i++) {
		struct all_peer *peer = &all->peers[i];

		peer->in = all->in.data + i * box_len;
		peer->out = all->out.data + i * box_len;
		peer->large_in = is_large ? all->large_in.data + i * large_len : NULL;
		peer->large_out = is_large ? all->large_out.data + i * large_len : NULL;
		if (i != all->rank)
			rc = session_endpoint_create(&all->session, &peer->endpoint);
	}
	return rc;
}

static struct all_hello all_hello_to(const struct all *all, unsigned rank)
{
	return (struct all_hello){.magic = ALL_MAGIC,
				  .rank = all->rank,
				  .address = (uintptr_t)all->peers[rank].in,
				  .rmr_context = all->in.rmr_context};
}

/* Stores the box of the peer that sent this private data. Returns its rank, or -EPROTO. */
static int all_hello_read(struct all *all, const struct session_private *data)
{
	struct all_hello hello;

	if (data->len < sizeof(hello))
		return -EPROTO;
	memcpy(&hello, data->data, sizeof(hello));
	if (hello.magic != ALL_MAGIC || hello.rank >= all->processes || hello.rank == all->rank)
		return -EPROTO;
	all->peers[hello.rank].remote = (DAT_RMR_TRIPLET){.rmr_context = hello.rmr_context,
							  .target_address = hello.address};
	return (int)hello.rank;
}

static int all_connect(struct all *all, struct all_board *board, unsigned rank)
{
	struct all_hello hello = all_hello_to(all, rank);
	struct session_private answer;
	int rc = session_connect(
		&all->session, all->peers[rank].endpoint, (struct sockaddr *)&all->session.address,
		atomic_load(&board->qualifier[rank]), &hello, sizeof(hello), &answer);

	if (rc == 0 && all_hello_read(all, &answer) != (int)rank)
		rc = -EPROTO;
	return rc;
}

static int all_accept(struct all *all)
{
	struct session_private data;
	struct all_hello hello;
	DAT_CR_HANDLE request;
	int rc = session_request_wait(&all->session, ALL_TIMEOUT_MS, &request, &data);
	int rank;

	if (rc != 0)
		return rc;
	rank = all_hello_read(all, &data);
	if (rank < 0) {
		dat_cr_reject(request);
		return 0; /* not one of our processes: not counted, see all_mesh() */
	}
	hello = all_hello_to(all, (unsigned)rank);
	rc = session_accept(&all->session, request, all->peers[rank].endpoint, &hello,
			    sizeof(hello));
	return rc == 0 ? 1 : rc;
}

/* Connects to all processes of lower rank, then accepts all of higher rank, so that no two wait for
 * each other. */
static int all_mesh(struct all *all, struct all_board *board)
{
	DAT_CONN_QUAL qualifier = 0;
	DAT_PSP_HANDLE psp;
	unsigned accepted = 0;
	int rc = session_listen(&all->session, &qualifier, &psp);

	if (rc != 0)
		return rc;
	atomic_store(&board->qualifier[all->rank], qualifier);
	all_barrier(all, board, 1);
	for (unsigned rank = 0; rank < all->rank && rc == 0; rank++)
		rc = all_connect(all, board, rank);
	while (rc >= 0 && accepted < all->processes - 1 - all->rank) {
		rc = all_accept(all);
		accepted += rc > 0;
	}
	dat_psp_free(psp);
	return rc < 0 ? rc : 0;
}

static int all_run(struct all *all, struct all_board *board, const char *adapter)
{
	int rc = session_open(&all->session, adapter, false, ALL_TIMEOUT_MS);

	if (rc != 0)
		return rc;
	rc = all_prepare(all);
	if (rc == 0)
		rc = all_mesh(all, board);
	if (rc == 0) {
		uint64_t warm_up = all->rounds / 10;

		all_barrier(all, board, 2);
		for (uint64_t i = 0; i < warm_up + all->rounds && rc == 0; i++) {
			if (i == warm_up)
				board->start_ns[all->rank] = tool_now_ns();
			rc = all_round(all, i);
		}
		board->end_ns[all->rank] = tool_now_ns();
		board->wrong[all->rank] = all->wrong;
	}
	/* when a process fails, the parent kills those that wait here */
	if (rc == 0)
		all_barrier(all, board, 3);
	session_close(&all->session);
	return rc;
}

/* Binds each process to one of the processors that the program may use, in turn. */
static void all_bind(unsigned rank)
{
	cpu_set_t may, own;
	unsigned place;

	if (sched_getaffinity(0, sizeof(may), &may) != 0)
		return;
	place = rank % (unsigned)CPU_COUNT(&may);
	CPU_ZERO(&own);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && place-- == 0)
			CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof(own), &own);
}

static _Noreturn void all_process(const struct all_options *options, struct all_board *board,
				  unsigned rank)
{
	struct all *all = calloc(1, sizeof(*all));
	int rc = -ENOMEM;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(ALL_LIMIT_S);
	all_bind(rank);
	if (all) {
		*all = (struct all){.processes = options->processes,
				    .rank = rank,
				    .size = options->size,
				    .rounds = options->rounds,
				    .is_shared = options->is_shared,
				    .is_checked = options->is_checked};
		rc = all_run(all, board, options->adapter);
	}
	if (rc != 0)
		tool_complain("process %u: %s", rank, strerror(-rc));
	_exit(rc == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED);
}

/* --- the parent --- */

/* Waits for all; when one fails, kills the others. */
static int all_wait(pid_t *pids, unsigned started, bool is_failed)
{
	for (unsigned left = started; left > 0; left--) {
		pid_t ended;
		int status;

		for (unsigned i = 0; i < started && is_failed; i++)
			if (pids[i] > 0)
				kill(pids[i], SIGKILL);
		ended = wait(&status);
		if (ended < 0)
			return -errno;
		/* its process number may be used again from now on */
		for (unsigned i = 0; i < started; i++)
			if (pids[i] == ended)
				pids[i] = 0;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			tool_complain("not done in %u s", ALL_LIMIT_S);
		is_failed |= status != 0;
	}
	return is_failed ? -EIO : 0;
}

static int all_start(const struct all_options *options, struct all_board *board)
{
	pid_t pids[ALL_PROCESSES_MAX];
	unsigned started = 0;

	for (; started < options->processes; started++) {
		pids[started] = fork();
		if (pids[started] == 0)
			all_process(options, board, started);
		if (pids[started] < 0) {
			tool_complain("fork: %s", strerror(errno));
			break;
		}
	}
	return all_wait(pids, started, started < options->processes);
}

static int all_print(const struct all_options *options, const struct all_board *board)
{
	uint64_t start = UINT64_MAX, end = 0, wrong = 0;
	uint64_t pairs = (uint64_t)options->processes * (options->processes - 1);
	uint64_t messages =
		pairs * options->rounds * (options->size > ALL_EAGER_MAX ? 1 : ALL_BURST);
	double per_s;

	for (unsigned i = 0; i < options->processes; i++) {
		start = board->start_ns[i] < start ? board->start_ns[i] : start;
		end = board->end_ns[i] > end ? board->end_ns[i] : end;
		wrong += board->wrong[i];
	}
	per_s = (double)messages * 1e9 / (double)(end - start);
	printf("{\"test\": \"alltoall\", \"processes\": %u, \"bytes\": %" PRIu64
	       ", \"rounds\": %" PRIu64 ", \"messages\": %" PRIu64 ", \"per_s\": %.3f"
	       ", \"mb_per_s\": %.3f, \"is_checked\": %s, \"wrong\": %" PRIu64 "}\n",
	       options->processes, options->size, options->rounds, messages, per_s,
	       per_s * (double)options->size / 1e6, options->is_checked ? "true" : "false", wrong);
	if (wrong == 0)
		return TOOL_EXIT_OK;
	tool_complain("%" PRIu64 " messages were wrong", wrong);
	return TOOL_EXIT_MISMATCH;
}

static int all_parse(int argc, char **argv, struct all_options *options)
{
	uint64_t number;
	int option;

	*options = (struct all_options){.adapter = "soft-lo", .processes = 8};
	while ((option = getopt(argc, argv, "p:a:sc")) != -1) {
		switch (option) {
		case 'p':
			if (tool_parse_number(optarg, &number) != 0 || number < 2 ||
			    number > ALL_PROCESSES_MAX)
				return -EINVAL;
			options->processes = (unsigned)number;
			break;
		case 'a':
			options->adapter = optarg;
			break;
		case 's':
			options->is_shared = true;
			break;
		case 'c':
			options->is_checked = true;
			break;
		default:
			return -EINVAL;
		}
	}
	if (argc - optind != 2 || tool_parse_number(argv[optind], &options->size) != 0 ||
	    tool_parse_number(argv[optind + 1], &options->rounds) != 0)
		return -EINVAL;
	if (options->size == 0 || options->size > ALL_SIZE_LIMIT || options->rounds == 0 ||
	    options->rounds > ALL_ROUNDS_LIMIT)
		return -EINVAL;
	return 0;
}

int main(int argc, char **argv)
{
	struct all_options options;
	struct all_board *board;

	tool_name = "alltoall";
	if (all_parse(argc, argv, &options) != 0) {
		fputs("usage: alltoall [-p PROCESSES] [-s] [-c] [-a ADAPTER] SIZE ROUNDS\n",
		      stderr);
		return TOOL_EXIT_USAGE;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process remains if bench/compare is killed */
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED) {
		tool_complain("mmap: %s", strerror(errno));
		return TOOL_EXIT_FAILED;
	}
	if (all_start(&options, board) != 0)
		return TOOL_EXIT_FAILED;
	return all_print(&options, board);
}
