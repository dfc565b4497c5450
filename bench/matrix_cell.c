// SPDX-License-Identifier: BSD-2-Clause
/*
 * One cell of matrix: process 0 posts, process 1 is the target. They agree about the steps by words
 * of the board, without a call of the library.
 *
 * A latency ends when the data can be used: a Send when the target has the event of its Receive, or
 * if it computes, when it sees the last byte in memory; an RDMA Write when the target sees the last
 * byte, or if it sleeps, with its completion; an RDMA Read with its completion. A rate counts
 * completions.
 *
 * A target that computes looks at its memory all the time, and calls nothing. After each
 * MATRIX_WINDOW Sends it takes the events and posts Receives again.
 */
#include "matrix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dat/opendat.h>

#include "common.h"
#include "perf_clock.h"
#include "perf_pattern.h"

#define MATRIX_SETTLE_NS 4000000u /* until the library knows who polls and who does not */
#define MATRIX_PAUSE_NS 100000u	  /* before a post, until a target that waits has gone to sleep */
#define MATRIX_EVD_LEN 256
#define MATRIX_WAIT_US 20000000u
#define MATRIX_LOOKS 4096u /* between two looks at the clock */

/* The words of the board. */
enum { WORD_TICKS, WORD_READY, WORD_OVER };

struct matrix {
	struct crew_member *member;
	struct session session;
	DAT_EP_HANDLE endpoints[2];
	unsigned char *data; /* ours: source, or target */
	DAT_LMR_CONTEXT lmr_context;
	struct crew_hello theirs[2];
	const struct crew_job *job;
	uint64_t slots;	 /* of this job */
	uint64_t busy;	 /* requests that have not completed */
	uint64_t posted; /* Receives of this job */
	uint64_t taken;	 /* their events */
};

static _Atomic uint64_t *word_at(const struct matrix *matrix, unsigned index)
{
	return &matrix->member->board->words[index].value;
}

static uint64_t word(const struct matrix *matrix, unsigned index)
{
	return atomic_load_explicit(word_at(matrix, index), memory_order_acquire);
}

static void set_word(struct matrix *matrix, unsigned index, uint64_t value)
{
	atomic_store_explicit(word_at(matrix, index), value, memory_order_release);
}

static DAT_EP_HANDLE endpoint_of(const struct matrix *matrix)
{
	return matrix->endpoints[!matrix->member->rank];
}

static uint64_t offset_of(const struct matrix *matrix, uint64_t number)
{
	return number % matrix->slots * matrix->job->size;
}

static unsigned char *last_of(const struct matrix *matrix, uint64_t number)
{
	return matrix->data + offset_of(matrix, number) + matrix->job->size - 1;
}

/* A thread of the library may have written it before. */
PERF_NO_TSAN static void clear_last(const struct matrix *matrix, uint64_t number)
{
	*(volatile unsigned char *)last_of(matrix, number) = 0;
}

static unsigned char flag_of(uint64_t number)
{
	return (unsigned char)(number % 255 + 1);
}

/* --- events --- */

/* 1: an event was taken; 0: there is none; or a negative errno. */
static int take(DAT_EVD_HANDLE evd, bool may_sleep)
{
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN code = may_sleep ? dat_evd_wait(evd, MATRIX_WAIT_US, 1, &event, &more)
				    : dat_evd_dequeue(evd, &event);

	if (DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY)
		return 0;
	if (code != DAT_SUCCESS)
		return tool_call_failed(may_sleep ? "dat_evd_wait" : "dat_evd_dequeue", code);
	if (event.event_number == DAT_DTO_COMPLETION_EVENT &&
	    event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		return 1;
	tool_complain("transfer failed: %s", tool_event_text(event.event_number));
	return -ECONNRESET;
}

/* Polls an EVD without events for some time, or calls nothing. */
static int spend(DAT_EVD_HANDLE evd, bool is_polling, uint64_t ns)
{
	uint64_t end = tool_now_ns() + ns;
	int rc = 0;

	while (rc == 0 && tool_now_ns() < end) {
		if (is_polling)
			rc = take(evd, false);
		crew_pause();
	}
	return rc < 0 ? rc : 0;
}

/* Takes completions until at most so many requests are busy. */
static int settle_requests(struct matrix *matrix, uint64_t busy)
{
	while (matrix->busy > busy) {
		int rc = take(matrix->session.request_evd, false);

		if (rc < 0)
			return rc;
		matrix->busy -= (uint64_t)rc;
		if (rc == 0)
			crew_pause();
	}
	return 0;
}

/* Waits until the target is ready for message `number`, and polls meanwhile. */
static int await_ready(struct matrix *matrix, uint64_t number)
{
	while (word(matrix, WORD_READY) < number) {
		int rc = take(matrix->session.request_evd, false);

		if (rc < 0)
			return rc;
		matrix->busy -= (uint64_t)rc;
	}
	return 0;
}

/* --- posts --- */

static int post(struct matrix *matrix, enum matrix_op op, uint64_t number, uint64_t size)
{
	uint64_t offset = offset_of(matrix, number);
	DAT_LMR_TRIPLET own = {.lmr_context = matrix->lmr_context,
			       .virtual_address = (uintptr_t)(matrix->data + offset),
			       .segment_length = size};
	const struct crew_hello *theirs = &matrix->theirs[!matrix->member->rank];
	DAT_RMR_TRIPLET remote = {.rmr_context = theirs->rmr_context,
				  .target_address = theirs->address + offset,
				  .segment_length = size};
	DAT_DTO_COOKIE cookie = {.as_64 = number};
	DAT_EP_HANDLE endpoint = endpoint_of(matrix);
	DAT_RETURN code;

	switch (op) {
	case MATRIX_SEND:
		code = dat_ep_post_send(endpoint, 1, &own, cookie, DAT_COMPLETION_DEFAULT_FLAG);
		break;
	case MATRIX_WRITE:
		code = dat_ep_post_rdma_write(endpoint, 1, &own, cookie, &remote,
					      DAT_COMPLETION_DEFAULT_FLAG);
		break;
	default:
		code = dat_ep_post_rdma_read(endpoint, 1, &own, cookie, &remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
		break;
	}
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_ep_post", code);
	matrix->busy++;
	return 0;
}

/* Posts Receives until as many are posted as there is room for, or as the job needs: one wakes a
 * target that sleeps at the end. */
static int post_recvs(struct matrix *matrix)
{
	const struct crew_job *job = matrix->job;
	uint64_t all = (job->op == MATRIX_SEND ? job->count : 0) + (job->state == MATRIX_SLEEPS);

	while (matrix->posted < all && matrix->posted - matrix->taken < MATRIX_RECVS) {
		DAT_LMR_TRIPLET own = {.lmr_context = matrix->lmr_context,
				       .segment_length = matrix->job->size};
		DAT_DTO_COOKIE cookie = {.as_64 = matrix->posted};
		DAT_RETURN code;

		own.virtual_address = (uintptr_t)(matrix->data + offset_of(matrix, matrix->posted));
		code = dat_ep_post_recv(endpoint_of(matrix), 1, &own, cookie,
					DAT_COMPLETION_DEFAULT_FLAG);
		if (code != DAT_SUCCESS)
			return tool_call_failed("dat_ep_post_recv", code);
		matrix->posted++;
	}
	return 0;
}

/* --- the initiator --- */

/* Does the target report each message? Else the completion ends a latency. */
static bool is_reported(const struct crew_job *job)
{
	if (job->op == MATRIX_WRITE)
		return job->state != MATRIX_SLEEPS;
	return job->op == MATRIX_SEND;
}

static int measure_latency(struct matrix *matrix)
{
	const struct crew_job *job = matrix->job;
	struct stats *stats = &matrix->member->board->stats;
	int rc = 0;

	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		uint64_t since, until;

		*last_of(matrix, i) = flag_of(i);
		if (job->state != MATRIX_POLLS)
			rc = spend(matrix->session.request_evd, true, MATRIX_PAUSE_NS);
		since = perf_clock_ticks();
		if (rc == 0)
			rc = post(matrix, job->op, i, job->size);
		if (rc == 0 && is_reported(job))
			rc = await_ready(matrix, i + 1);
		if (rc == 0)
			rc = settle_requests(matrix, 0);
		until = is_reported(job) ? word(matrix, WORD_TICKS) : perf_clock_ticks();
		if (until > since)
			stats_add(stats, until - since);
	}
	return rc;
}

/* The nanoseconds in which all requests complete. A target that computes takes Sends in groups. */
static int measure_rate(struct matrix *matrix, uint64_t *elapsed_out)
{
	const struct crew_job *job = matrix->job;
	bool has_groups = job->op == MATRIX_SEND && job->state == MATRIX_COMPUTES;
	uint64_t since = tool_now_ns();
	int rc = 0;

	*elapsed_out = 0;
	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		*last_of(matrix, i) = flag_of(i);
		rc = settle_requests(matrix, MATRIX_WINDOW - 1);
		if (rc == 0)
			rc = post(matrix, job->op, i, job->size);
		if (rc != 0 || !has_groups || (i + 1) % MATRIX_WINDOW != 0)
			continue;
		rc = settle_requests(matrix, 0);
		*elapsed_out += tool_now_ns() - since;
		if (rc == 0)
			rc = await_ready(matrix, i + 1);
		since = tool_now_ns();
	}
	if (rc == 0)
		rc = settle_requests(matrix, 0);
	*elapsed_out += tool_now_ns() - since;
	return rc;
}

/* A target that sleeps is woken by a Send at the end. */
static int lead(struct matrix *matrix)
{
	const struct crew_job *job = matrix->job;
	struct crew_board *board = matrix->member->board;
	uint64_t since = tool_now_ns();
	uint64_t elapsed;
	int rc;

	stats_reset(&board->stats);
	if (job->kind == MATRIX_LATENCY) {
		rc = measure_latency(matrix);
		elapsed = tool_now_ns() - since;
	} else {
		rc = measure_rate(matrix, &elapsed);
	}
	board->elapsed_ns[0] = elapsed;
	set_word(matrix, WORD_OVER, 1);
	if (rc == 0 && job->state == MATRIX_SLEEPS) {
		rc = post(matrix, MATRIX_SEND, 0, 1);
		if (rc == 0)
			rc = settle_requests(matrix, 0);
	}
	return rc;
}

/* --- the target --- */

/* Waits for a Send's event, or an RDMA Write's last byte, as the state of the target says. */
static int await_message(struct matrix *matrix, uint64_t number)
{
	const struct crew_job *job = matrix->job;
	bool has_event = job->op == MATRIX_SEND && job->state != MATRIX_COMPUTES;
	unsigned char *last = last_of(matrix, number);
	int rc = 0;

	while (has_event ? rc == 0 : !perf_last_is(last, flag_of(number))) {
		if (job->state != MATRIX_COMPUTES)
			rc = take(matrix->session.recv_evd, job->state == MATRIX_SLEEPS);
		if (rc < 0)
			return rc;
		crew_pause();
	}
	matrix->taken += has_event;
	return 0;
}

/* Takes the events of the Sends up to `number`, and posts Receives. */
static int serve_recvs(struct matrix *matrix, uint64_t number)
{
	while (matrix->taken < number) {
		int rc = take(matrix->session.recv_evd, false);

		if (rc < 0)
			return rc;
		matrix->taken += (uint64_t)rc;
	}
	return post_recvs(matrix);
}

/* The steps after a message was seen, and before the next one may come. */
static int after_message(struct matrix *matrix, uint64_t number, bool is_group_over)
{
	const struct crew_job *job = matrix->job;
	int rc = 0;

	if (job->op == MATRIX_SEND && (job->state != MATRIX_COMPUTES || is_group_over))
		rc = serve_recvs(matrix, number + 1);
	clear_last(matrix, number + 1);
	set_word(matrix, WORD_READY, number + 1);
	return rc;
}

/* Reports each message. */
static int follow_each(struct matrix *matrix)
{
	const struct crew_job *job = matrix->job;
	int rc = 0;

	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		rc = await_message(matrix, i);
		set_word(matrix, WORD_TICKS, perf_clock_ticks());
		if (rc == 0)
			rc = after_message(matrix, i,
					   (i + 1) % MATRIX_WINDOW == 0 || i + 1 == job->count);
	}
	return rc;
}

/* Takes Sends as they come; if the target computes, when the last of a group is in memory. */
static int follow_sends(struct matrix *matrix)
{
	const struct crew_job *job = matrix->job;
	uint64_t step = job->state == MATRIX_COMPUTES ? MATRIX_WINDOW : 1;
	int rc = 0;

	for (uint64_t i = 0; i < job->count && rc == 0; i += step) {
		uint64_t last = i + step <= job->count ? i + step - 1 : job->count - 1;

		rc = await_message(matrix, last);
		if (rc == 0 && job->state == MATRIX_COMPUTES)
			rc = after_message(matrix, last, true);
		else if (rc == 0)
			rc = post_recvs(matrix);
	}
	return rc;
}

/* Polls, computes or sleeps until the initiator is done. What the target has taken may be
 * acknowledged by its next poll only. */
static int follow_end(struct matrix *matrix)
{
	enum matrix_state state = matrix->job->state;

	if (state == MATRIX_SLEEPS) {
		int rc = take(matrix->session.recv_evd, true);

		return rc < 0 ? rc : 0;
	}
	while (!word(matrix, WORD_OVER)) {
		int rc = state == MATRIX_POLLS ? take(matrix->session.recv_evd, false) : 0;

		if (rc < 0)
			return rc;
		crew_pause();
	}
	return 0;
}

static int follow(struct matrix *matrix)
{
	int rc = 0;

	if (matrix->job->kind == MATRIX_LATENCY && is_reported(matrix->job))
		rc = follow_each(matrix);
	else if (matrix->job->op == MATRIX_SEND)
		rc = follow_sends(matrix);
	return rc == 0 ? follow_end(matrix) : rc;
}

/* --- a member --- */

static int do_job(struct matrix *matrix)
{
	const struct crew_job *job = matrix->job;
	bool is_target = matrix->member->rank == 1;
	int rc = 0;

	matrix->slots =
		MATRIX_ROOM / job->size < MATRIX_SLOTS ? MATRIX_ROOM / job->size : MATRIX_SLOTS;
	matrix->busy = matrix->posted = matrix->taken = 0;
	if (is_target) {
		set_word(matrix, WORD_READY, 0);
		set_word(matrix, WORD_OVER, 0);
		for (uint64_t i = 0; i < matrix->slots; i++)
			clear_last(matrix, i);
		rc = post_recvs(matrix);
	}
	if (rc == 0)
		rc = spend(is_target ? matrix->session.recv_evd : matrix->session.request_evd,
			   !is_target || job->state == MATRIX_POLLS, MATRIX_SETTLE_NS);
	crew_barrier(matrix->member);
	if (rc == 0)
		rc = is_target ? follow(matrix) : lead(matrix);
	return rc;
}

static int allocate(struct matrix *matrix, bool is_shared, struct crew_hello *ours)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN code;
	void *data = NULL;

	if (is_shared) {
		code = dat_opendat_mem_alloc(MATRIX_ROOM, DAT_OPENDAT_MEM_DEFAULT, &data);
		if (code != DAT_SUCCESS)
			return tool_call_failed("dat_opendat_mem_alloc", code);
	} else if (posix_memalign(&data, 4096, MATRIX_ROOM) != 0) {
		return -ENOMEM;
	}
	matrix->data = data;
	memset(data, 'm', MATRIX_ROOM);
	region.for_va = data;
	code = dat_lmr_create(matrix->session.ia, DAT_MEM_TYPE_VIRTUAL, region, MATRIX_ROOM,
			      matrix->session.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &matrix->lmr_context,
			      &ours->rmr_context, NULL, NULL);
	ours->address = (uintptr_t)data;
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_lmr_create", code);
}

static int prepare(struct matrix *matrix)
{
	struct crew_member *member = matrix->member;
	struct crew_hello ours[2] = {{.magic = 0}};
	int rc = session_open(&matrix->session, "soft-lo", false, CREW_TIMEOUT_MS);

	if (rc != 0)
		return rc;
	if (dat_evd_resize(matrix->session.request_evd, MATRIX_EVD_LEN) != DAT_SUCCESS ||
	    dat_evd_resize(matrix->session.recv_evd, MATRIX_EVD_LEN) != DAT_SUCCESS)
		return -EIO;
	rc = allocate(matrix, *(const bool *)member->context, &ours[!member->rank]);
	if (rc == 0)
		rc = crew_endpoint(&matrix->session, 2 * MATRIX_WINDOW, MATRIX_RECVS,
				   &matrix->endpoints[!member->rank]);
	return rc == 0 ? crew_connect(member, &matrix->session, matrix->endpoints, ours,
				      matrix->theirs)
		       : rc;
}

int matrix_member(struct crew_member *member)
{
	struct matrix matrix = {.member = member};
	int rc = prepare(&matrix);

	while (rc == 0 && (matrix.job = crew_next(member)) != NULL) {
		rc = do_job(&matrix);
		if (rc == 0)
			crew_done(member);
	}
	session_close(&matrix.session);
	return rc;
}
