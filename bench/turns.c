// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ping-pongs of a cache line, of OpenDAT and of UCX in turn, a few hundred microseconds each,
 * between the same two processes. So they are measured in the same state of the processors, also in
 * one that lasts for milliseconds only (README.md): close together, where a cache line passes in
 * less than TURNS_CLOSE_US.
 *
 *   turns SECONDS ROUNDS SERVER-CPU CLIENT-CPU
 *
 * While the processors are far apart, both processes mostly sleep: a hypervisor rather moves the
 * processors of a machine that wakes up. While they are close together, measures without a pause.
 * Prints one JSON object: for OpenDAT and UCX the microseconds of one way of a message of 8 bytes,
 * one number for each turn that the processors were close together before and after.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "common.h"
#include "perf_clock.h"
#include "session.h"

#define TURNS_CLOSE_US 0.08
#define TURNS_MAX 4096u /* numbers that are kept */
#define TURNS_PAUSE_NS 80000000
#define TURNS_BUSY_NS 2000000u /* the leader runs for so long before it wakes the other */
#define TURNS_SPINS 1000000u   /* before the follower sleeps */
#define TURNS_LEN 8u
#define TURNS_ROOM 4096u
#define TURNS_RECVS 4u
#define TURNS_SIGNAL 16u /* one Send of so many reports its completion, as in bench/compare */
#define TURNS_POLLS 64u	 /* that find nothing: then what was taken is reported */
#define TURNS_TIMEOUT_MS 60000u
#define TURNS_TAG 7u
#define TURNS_ADDRESS_MAX 4096u
#define TURNS_LINE 128

enum turn { TURN_LINE, TURN_DAT, TURN_UCX, TURN_END, TURN_KINDS };

/* In memory that both processes share. The arrays have one member for each side. */
struct turns_shared {
	struct {
		_Alignas(TURNS_LINE) _Atomic uint32_t value;
	} line[2]; /* written by the other side */
	/* the turn, an enum turn in the lower two bits; written by the leader */
	_Alignas(TURNS_LINE) _Atomic uint32_t turn;
	_Alignas(TURNS_LINE) _Atomic uint64_t qualifier;
	_Atomic size_t address_len[2];
	unsigned char address[2][TURNS_ADDRESS_MAX];
};

struct turns {
	struct turns_shared *shared;
	unsigned side;	 /* 0 leads */
	uint64_t rounds; /* of one turn */
	uint32_t line_value;

	struct session session;
	DAT_EP_HANDLE ep;
	struct session_buffer out;
	struct session_buffer in;
	uint64_t sent;

	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ucx_ep;
	unsigned ucx_pending;
	bool has_ucx_failed;
	uint64_t ucx_out;
	uint64_t ucx_in;
};

/* One message there and back, of the side that leads and of the other. */
struct turns_rounds {
	int (*lead)(struct turns *turns);
	int (*follow)(struct turns *turns);
};

static int turns_failed(const char *what)
{
	tool_complain("%s failed", what);
	return -EIO;
}

/* --- a cache line --- */

static void line_signal(struct turns *turns)
{
	atomic_store_explicit(&turns->shared->line[!turns->side].value, ++turns->line_value,
			      memory_order_release);
}

static void line_wait(struct turns *turns)
{
	uint32_t value = turns->line_value + (turns->side == 1);

	while (atomic_load_explicit(&turns->shared->line[turns->side].value,
				    memory_order_acquire) != value)
		continue;
}

static int line_lead(struct turns *turns)
{
	line_signal(turns);
	line_wait(turns);
	return 0;
}

static int line_follow(struct turns *turns)
{
	line_wait(turns);
	line_signal(turns);
	return 0;
}

/* --- OpenDAT, as dat_perf --test send-lat --- */

static int dat_take(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_RETURN code;

	while ((code = dat_evd_dequeue(evd, &event)) != DAT_SUCCESS)
		if (DAT_GET_TYPE(code) != DAT_QUEUE_EMPTY)
			return tool_call_failed("dat_evd_dequeue", code);
	if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return turns_failed("a transfer");
	return 0;
}

static bool dat_is_signalled(const struct turns *turns)
{
	return turns->sent % TURNS_SIGNAL == 0;
}

static int dat_send(struct turns *turns)
{
	DAT_LMR_TRIPLET segment = {.lmr_context = turns->out.lmr_context,
				   .virtual_address = (uintptr_t)turns->out.data,
				   .segment_length = TURNS_LEN};
	DAT_DTO_COOKIE cookie = {.as_64 = ++turns->sent};
	DAT_RETURN code = dat_ep_post_send(turns->ep, 1, &segment, cookie,
					   dat_is_signalled(turns) ? DAT_COMPLETION_DEFAULT_FLAG
								   : DAT_COMPLETION_SUPPRESS_FLAG);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_ep_post_send", code);
}

static int dat_post_recv(struct turns *turns)
{
	return session_post_recv(&turns->in, 0, TURNS_LEN, turns->ep, 0);
}

static int dat_send_finish(struct turns *turns)
{
	return dat_is_signalled(turns) ? dat_take(turns->session.request_evd) : 0;
}

static int dat_lead(struct turns *turns)
{
	int rc = dat_send(turns);

	if (rc == 0)
		rc = dat_post_recv(turns);
	if (rc == 0)
		rc = dat_take(turns->session.recv_evd);
	return rc == 0 ? dat_send_finish(turns) : rc;
}

static int dat_follow(struct turns *turns)
{
	int rc = dat_take(turns->session.recv_evd);

	if (rc == 0)
		rc = dat_send(turns);
	if (rc == 0)
		rc = dat_post_recv(turns);
	return rc == 0 ? dat_send_finish(turns) : rc;
}

/* The peer waits for the completion of its last Send. */
static void dat_report(const struct turns *turns)
{
	DAT_EVENT event;

	for (unsigned i = 0; i < TURNS_POLLS; i++)
		(void)dat_evd_dequeue(turns->session.recv_evd, &event);
}

static int dat_accept(struct turns *turns)
{
	struct session_private hello;
	DAT_CONN_QUAL qualifier = 0;
	DAT_CR_HANDLE request;
	DAT_PSP_HANDLE psp;
	int rc = session_listen(&turns->session, &qualifier, &psp);

	if (rc != 0)
		return rc;
	atomic_store(&turns->shared->qualifier, qualifier);
	rc = session_request_wait(&turns->session, TURNS_TIMEOUT_MS, &request, &hello);
	return rc == 0 ? session_accept(&turns->session, request, turns->ep, NULL, 0) : rc;
}

static int dat_connect(struct turns *turns)
{
	struct session *session = &turns->session;
	DAT_CONN_QUAL qualifier;
	int rc = session_open(session, "soft-lo", true, TURNS_TIMEOUT_MS);

	if (rc == 0)
		rc = session_endpoint_create(session, &turns->ep);
	if (rc == 0)
		rc = session_buffer_create_shared(session, TURNS_ROOM, &turns->out);
	if (rc == 0)
		rc = session_buffer_create_shared(session, TURNS_ROOM, &turns->in);
	for (unsigned i = 0; i < TURNS_RECVS && rc == 0; i++)
		rc = dat_post_recv(turns);
	if (rc != 0 || turns->side == 1)
		return rc == 0 ? dat_accept(turns) : rc;
	while (!(qualifier = atomic_load(&turns->shared->qualifier)))
		sched_yield();
	return session_connect(session, turns->ep, (struct sockaddr *)&session->address, qualifier,
			       NULL, 0, NULL);
}

/* --- UCX, as ucx_perftest -t tag_lat --- */

static void ucx_done(struct turns *turns, void *request, ucs_status_t status)
{
	turns->ucx_pending--;
	turns->has_ucx_failed |= status != UCS_OK;
	ucp_request_free(request);
}

static void ucx_sent(void *request, ucs_status_t status, void *data)
{
	ucx_done(data, request, status);
}

static void ucx_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
			 void *data)
{
	(void)info;
	ucx_done(data, request, status);
}

#define UCX_PARAM                                                                                  \
	(UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA)

static int ucx_send(struct turns *turns)
{
	ucp_request_param_t param = {.op_attr_mask = UCX_PARAM,
				     .datatype = ucp_dt_make_contig(1),
				     .cb.send = ucx_sent,
				     .user_data = turns};
	void *request =
		ucp_tag_send_nbx(turns->ucx_ep, &turns->ucx_out, TURNS_LEN, TURNS_TAG, &param);

	if (UCS_PTR_IS_ERR(request))
		return turns_failed("ucp_tag_send_nbx");
	turns->ucx_pending += request != NULL;
	return 0;
}

static int ucx_finish(struct turns *turns)
{
	while (turns->ucx_pending)
		ucp_worker_progress(turns->worker);
	return turns->has_ucx_failed ? turns_failed("a message of UCX") : 0;
}

static int ucx_recv(struct turns *turns)
{
	ucp_request_param_t param = {.op_attr_mask = UCX_PARAM,
				     .datatype = ucp_dt_make_contig(1),
				     .cb.recv = ucx_received,
				     .user_data = turns};
	void *request = ucp_tag_recv_nbx(turns->worker, &turns->ucx_in, TURNS_LEN, TURNS_TAG,
					 (ucp_tag_t)-1, &param);

	if (UCS_PTR_IS_ERR(request))
		return turns_failed("ucp_tag_recv_nbx");
	turns->ucx_pending += request != NULL;
	return ucx_finish(turns);
}

static int ucx_lead(struct turns *turns)
{
	int rc = ucx_send(turns);

	return rc == 0 ? ucx_recv(turns) : rc;
}

static int ucx_follow(struct turns *turns)
{
	int rc = ucx_recv(turns);

	if (rc == 0)
		rc = ucx_send(turns);
	return rc == 0 ? ucx_finish(turns) : rc;
}

static int ucx_connect(struct turns *turns)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				      .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	struct turns_shared *shared = turns->shared;
	ucp_address_t *address;
	size_t len;

	if (ucp_init(&params, NULL, &turns->context) != UCS_OK ||
	    ucp_worker_create(turns->context, &worker, &turns->worker) != UCS_OK ||
	    ucp_worker_get_address(turns->worker, &address, &len) != UCS_OK ||
	    len > TURNS_ADDRESS_MAX)
		return turns_failed("ucp_worker_create");
	memcpy(shared->address[turns->side], address, len);
	ucp_worker_release_address(turns->worker, address);
	atomic_store(&shared->address_len[turns->side], len);
	while (!atomic_load(&shared->address_len[!turns->side]))
		sched_yield();
	ep.address = (const ucp_address_t *)shared->address[!turns->side];
	if (ucp_ep_create(turns->worker, &ep, &turns->ucx_ep) != UCS_OK)
		return turns_failed("ucp_ep_create");
	return 0;
}

/* --- turns --- */

static const struct turns_rounds turns_rounds[TURN_END] = {
	[TURN_LINE] = {line_lead, line_follow},
	[TURN_DAT] = {dat_lead, dat_follow},
	[TURN_UCX] = {ucx_lead, ucx_follow},
};

/* Waits for the turn after the one that was `seen`. */
static uint32_t turns_next(struct turns *turns, uint32_t seen)
{
	_Atomic uint32_t *turn = &turns->shared->turn;

	for (unsigned i = 0; i < TURNS_SPINS; i++)
		if (atomic_load(turn) != seen)
			return atomic_load(turn);
	while (atomic_load(turn) == seen)
		syscall(SYS_futex, turn, FUTEX_WAIT, seen, NULL, NULL, 0);
	return atomic_load(turn);
}

static int turns_follow(struct turns *turns)
{
	uint32_t turn = 0;
	int rc = 0;

	while (rc == 0 && (turn = turns_next(turns, turn)) % TURN_KINDS != TURN_END)
		for (uint64_t i = 0; i < turns->rounds && rc == 0; i++)
			rc = turns_rounds[turn % TURN_KINDS].follow(turns);
	return rc;
}

static void turns_begin(struct turns *turns, enum turn kind)
{
	_Atomic uint32_t *turn = &turns->shared->turn;

	atomic_store(turn, (atomic_load(turn) / TURN_KINDS + 1) * TURN_KINDS + kind);
	syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Microseconds of one way; less than 0: it failed. */
static double turns_take(struct turns *turns, enum turn kind)
{
	uint64_t since;

	turns_begin(turns, kind);
	since = perf_clock_ticks();
	for (uint64_t i = 0; i < turns->rounds; i++)
		if (turns_rounds[kind].lead(turns) != 0)
			return -1;
	since = perf_clock_ticks() - since;
	if (kind == TURN_DAT)
		dat_report(turns);
	return (double)since * perf_clock_period_ns() / 1e3 / (2.0 * (double)turns->rounds);
}

static void turns_pause(void)
{
	uint64_t since;

	nanosleep(&(struct timespec){.tv_nsec = TURNS_PAUSE_NS}, NULL);
	since = tool_now_ns();
	while (tool_now_ns() - since < TURNS_BUSY_NS)
		continue;
}

static void turns_print(const char *name, const double *us, unsigned count, const char *end)
{
	printf("\"%s\": [", name);
	for (unsigned i = 0; i < count; i++)
		printf("%s%.4f", i ? ", " : "", us[i]);
	printf("]%s", end);
}

static int turns_lead(struct turns *turns, uint64_t seconds)
{
	static double found[TURN_KINDS][TURNS_MAX];
	uint64_t end = tool_now_ns() + seconds * 1000000000u;
	unsigned count = 0;
	bool is_first = true; /* of those without a pause: caches are cold, and the peer slept */

	while (count < TURNS_MAX && tool_now_ns() < end) {
		double line, dat, between, ucx, after;

		line = turns_take(turns, TURN_LINE);
		dat = turns_take(turns, TURN_DAT);
		if (dat < 0)
			return -EIO;
		between = turns_take(turns, TURN_LINE);
		ucx = turns_take(turns, TURN_UCX);
		if (ucx < 0)
			return -EIO;
		after = turns_take(turns, TURN_LINE);
		if (line < TURNS_CLOSE_US && between < TURNS_CLOSE_US && after < TURNS_CLOSE_US &&
		    !is_first) {
			found[TURN_DAT][count] = dat;
			found[TURN_UCX][count++] = ucx;
		}
		is_first = after >= TURNS_CLOSE_US;
		if (is_first)
			turns_pause();
	}
	signal(SIGCHLD, SIG_DFL);
	turns_begin(turns, TURN_END);
	printf("{");
	turns_print("dat", found[TURN_DAT], count, ", ");
	turns_print("ucx", found[TURN_UCX], count, "}\n");
	return 0;
}

static int turns_run(struct turns *turns, uint64_t seconds)
{
	int rc = dat_connect(turns);

	if (rc == 0)
		rc = ucx_connect(turns);
	if (rc != 0)
		return rc;
	return turns->side == 0 ? turns_lead(turns, seconds) : turns_follow(turns);
}

/* The child must not end before the last turn: no loop that waits for it would end. */
static void turns_child_ended(int number)
{
	(void)number;
	_exit(TOOL_EXIT_FAILED);
}

/* Forks: side 1 is the child. Each side ends with the other. Returns on both sides. */
static int turns_start(struct turns *turns, const uint64_t cpus[2], pid_t *child_out)
{
	pid_t parent = getpid();

	turns->shared = mmap(NULL, sizeof(*turns->shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turns->shared == MAP_FAILED)
		return turns_failed("mmap");
	setenv("UCX_TLS", "posix", 1);
	signal(SIGCHLD, turns_child_ended);
	*child_out = fork();
	if (*child_out < 0)
		return turns_failed("fork");
	turns->side = *child_out == 0;
	if (turns->side == 1) {
		signal(SIGCHLD, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(TOOL_EXIT_FAILED);
	}
	return tool_bind_to(cpus[!turns->side]) == 0 ? 0 : turns_failed("sched_setaffinity");
}

int main(int argc, char **argv)
{
	static struct turns turns;
	uint64_t seconds, cpus[2];
	pid_t child = 0;
	int status = 0;
	int rc;

	tool_name = "turns";
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process remains if bench/compare is killed */
	if (argc != 5 || tool_parse_number(argv[1], &seconds) != 0 ||
	    tool_parse_number(argv[2], &turns.rounds) != 0 || turns.rounds == 0 ||
	    tool_parse_number(argv[3], &cpus[0]) != 0 ||
	    tool_parse_number(argv[4], &cpus[1]) != 0 || cpus[0] == cpus[1]) {
		fputs("usage: turns SECONDS ROUNDS SERVER-CPU CLIENT-CPU\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	perf_clock_start();
	rc = turns_start(&turns, cpus, &child);
	if (rc == 0)
		rc = turns_run(&turns, seconds);
	if (child > 0 && rc != 0)
		kill(child, SIGKILL);
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
		rc = -EIO;
	if (fflush(stdout) != 0)
		rc = -EIO;
	/* the connections end with the processes */
	_exit(rc == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED);
}
