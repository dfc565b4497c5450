// SPDX-License-Identifier: BSD-2-Clause
/* Processes that do one job after another; see crew.h. */
#include "crew.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "common.h"

#define CREW_MAGIC 0x63726577u
#define CREW_FIRST 4u /* of the first trial */
#define CREW_LIMIT_S 100u
#define CREW_LOOK_NS 100000000 /* between two looks whether a member has ended */
#define CREW_SPINS 256u	       /* before it yields to others that share the processor */

static void futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, CREW_MAX, NULL, NULL, 0);
}

/* --- the parent --- */

void *crew_share(uint64_t len)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	tool_complain("mmap: %s", strerror(errno));
	return NULL;
}

/* Binds each process to one of the processors that the program may use, in turn. */
static void crew_bind(unsigned rank)
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

static _Noreturn void crew_member_main(const struct crew *crew, unsigned rank, const char *variable,
				       crew_body *body, const void *context)
{
	struct crew_member member = {.board = crew->board,
				     .processes = crew->processes,
				     .rank = rank,
				     .context = context};
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CREW_LIMIT_S);
	crew_bind(rank);
	if (variable)
		putenv((char *)(uintptr_t)variable);
	rc = body(&member);
	if (rc != 0)
		tool_complain("%s, process %u: %s", crew->name, rank, strerror(-rc));
	_exit(rc == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED);
}

int crew_start(struct crew *crew, unsigned processes, const char *variable, crew_body *body,
	       const void *context)
{
	crew->processes = processes;
	crew->board = crew_share(sizeof(*crew->board));
	if (!crew->board)
		return -ENOMEM;
	stats_reset(&crew->board->stats);
	for (unsigned i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid == 0)
			crew_member_main(crew, i, variable, body, context);
		if (pid < 0) {
			int rc = -errno;

			tool_complain("fork: %s", strerror(errno));
			crew_end(crew);
			return rc;
		}
		crew->pids[i] = pid;
	}
	return 0;
}

/* Takes note of the members that have ended. Has one of them failed? */
static bool crew_reap(struct crew *crew, int options)
{
	bool has_failed = false;
	int status;

	for (unsigned i = 0; i < crew->processes; i++) {
		if (crew->pids[i] == 0 || waitpid(crew->pids[i], &status, options) <= 0)
			continue;
		/* its process number may be used again from now on */
		crew->pids[i] = 0;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			tool_complain("%s: not done in %u s", crew->name, CREW_LIMIT_S);
		has_failed |= status != 0;
	}
	return has_failed;
}

static void crew_kill(struct crew *crew)
{
	for (unsigned i = 0; i < crew->processes; i++)
		if (crew->pids[i] > 0)
			kill(crew->pids[i], SIGKILL);
}

int crew_run(struct crew *crew, const struct crew_job *job)
{
	const struct timespec look = {.tv_nsec = CREW_LOOK_NS};
	struct crew_board *board = crew->board;
	uint32_t done;

	board->job = *job;
	atomic_store(&board->done, 0);
	atomic_fetch_add(&board->turn, 1);
	futex_wake(&board->turn);
	while ((done = atomic_load(&board->done)) < crew->processes) {
		futex_wait(&board->done, done, &look);
		if (!crew_reap(crew, WNOHANG))
			continue;
		crew_kill(crew);
		crew_reap(crew, 0);
		return -EIO;
	}
	return 0;
}

int crew_calibrate(struct crew *crew, const struct crew_job *job, uint64_t slice_ns, uint64_t max,
		   uint64_t *count_out)
{
	struct crew_job trial = *job;
	uint64_t elapsed;
	int rc;

	trial.count = CREW_FIRST;
	/* the first messages of all may take milliseconds, which say nothing about the others */
	rc = crew_run(crew, &trial);
	for (;;) {
		if (rc == 0)
			rc = crew_run(crew, &trial);
		if (rc != 0)
			return rc;
		elapsed = crew_elapsed_ns(crew) + 1;
		if (elapsed >= slice_ns / 4 || trial.count >= max)
			break;
		trial.count *= elapsed < slice_ns / 32 ? 8 : 4;
	}
	*count_out = trial.count * slice_ns / elapsed;
	if (*count_out > max)
		*count_out = max;
	if (*count_out < CREW_FIRST)
		*count_out = CREW_FIRST;
	return 0;
}

int crew_end(struct crew *crew)
{
	const struct crew_job end = {.is_end = true};

	if (crew->pids[0] == 0)
		return -EIO;
	crew->board->job = end;
	atomic_fetch_add(&crew->board->turn, 1);
	futex_wake(&crew->board->turn);
	return crew_reap(crew, 0) ? -EIO : 0;
}

uint64_t crew_elapsed_ns(const struct crew *crew)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < crew->processes; i++)
		if (crew->board->elapsed_ns[i] > longest)
			longest = crew->board->elapsed_ns[i];
	return longest;
}

static int compare_doubles(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

double crew_median(const double *values, unsigned count)
{
	double sorted[CREW_VALUES_MAX];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* --- a member --- */

const struct crew_job *crew_next(struct crew_member *member)
{
	struct crew_board *board = member->board;

	while (atomic_load(&board->turn) == member->turn)
		futex_wait(&board->turn, member->turn, NULL);
	member->turn++;
	return board->job.is_end ? NULL : &board->job;
}

void crew_done(struct crew_member *member)
{
	struct crew_board *board = member->board;

	if (atomic_fetch_add(&board->done, 1) + 1 == member->processes)
		futex_wake(&board->done);
}

void crew_barrier(struct crew_member *member)
{
	atomic_uint *arrived = &member->board->arrived;
	unsigned target = ++member->barriers * member->processes;
	unsigned spins = 0;

	atomic_fetch_add(arrived, 1);
	while ((int)(atomic_load(arrived) - target) < 0) {
		crew_pause();
		if (++spins % CREW_SPINS == 0)
			sched_yield();
	}
}

/* Stores what the peer sent. Returns its rank, or -EPROTO. */
static int crew_hello_read(const struct crew_member *member, const struct session_private *data,
			   struct crew_hello *theirs)
{
	struct crew_hello hello;

	if (data->len < sizeof(hello))
		return -EPROTO;
	memcpy(&hello, data->data, sizeof(hello));
	if (hello.magic != CREW_MAGIC || hello.rank >= member->processes ||
	    hello.rank == member->rank)
		return -EPROTO;
	theirs[hello.rank] = hello;
	return (int)hello.rank;
}

static int crew_call(struct crew_member *member, struct session *session, DAT_EP_HANDLE endpoint,
		     unsigned rank, const struct crew_hello *ours, struct crew_hello *theirs)
{
	struct session_private answer;
	int rc = session_connect(session, endpoint, (struct sockaddr *)&session->address,
				 atomic_load(&member->board->qualifier[rank]), ours, sizeof(*ours),
				 &answer);

	if (rc == 0 && crew_hello_read(member, &answer, theirs) != (int)rank)
		rc = -EPROTO;
	return rc;
}

/* 1: accepted; 0: not one of our processes. */
static int crew_accept(struct crew_member *member, struct session *session,
		       const DAT_EP_HANDLE *endpoints, const struct crew_hello *ours,
		       struct crew_hello *theirs)
{
	struct session_private data;
	DAT_CR_HANDLE request;
	int rc = session_request_wait(session, CREW_TIMEOUT_MS, &request, &data);
	int rank;

	if (rc != 0)
		return rc;
	rank = crew_hello_read(member, &data, theirs);
	if (rank < 0) {
		dat_cr_reject(request);
		return 0;
	}
	rc = session_accept(session, request, endpoints[rank], &ours[rank], sizeof(ours[rank]));
	return rc == 0 ? 1 : rc;
}

/* Connects to all processes of lower rank, then accepts all of higher rank, so that no two wait for
 * each other. */
int crew_connect(struct crew_member *member, struct session *session,
		 const DAT_EP_HANDLE *endpoints, struct crew_hello *ours, struct crew_hello *theirs)
{
	DAT_CONN_QUAL qualifier = 0;
	DAT_PSP_HANDLE psp;
	unsigned accepted = 0;
	int rc = session_listen(session, &qualifier, &psp);

	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < member->processes; i++) {
		ours[i].magic = CREW_MAGIC;
		ours[i].rank = member->rank;
	}
	atomic_store(&member->board->qualifier[member->rank], qualifier);
	crew_barrier(member);
	for (unsigned i = 0; i < member->rank && rc == 0; i++)
		rc = crew_call(member, session, endpoints[i], i, &ours[i], theirs);
	while (rc >= 0 && accepted < member->processes - 1 - member->rank) {
		rc = crew_accept(member, session, endpoints, ours, theirs);
		accepted += rc > 0;
	}
	dat_psp_free(psp);
	return rc < 0 ? rc : 0;
}

int crew_endpoint(struct session *session, DAT_COUNT requests, DAT_COUNT recvs,
		  DAT_EP_HANDLE *endpoint_out)
{
	DAT_EP_ATTR attr;
	DAT_RETURN code = dat_opendat_ep_attr_default(session->ia, &attr);

	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_opendat_ep_attr_default", code);
	attr.max_request_dtos = requests;
	attr.max_recv_dtos = recvs;
	code = dat_ep_create(session->ia, session->pz, session->recv_evd, session->request_evd,
			     session->connect_evd, &attr, endpoint_out);
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_create", code);
}
