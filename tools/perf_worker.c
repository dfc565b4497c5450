// SPDX-License-Identifier: BSD-2-Clause
/*
 * The workers of dat_perf. A worker has one EVD for Receives and one for requests, two registered
 * buffers, and its share of the endpoints. All workers start a run together.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"
#include "perf_loop.h"
#include "perf_pattern.h"

/* Without a count the warm-up takes at most this part of the duration. */
#define PERF_WARM_UP_PART 4u

/* More Receives than the window, so that the peer never waits for one to be reposted. */
static uint32_t perf_recvs_max(const struct perf_plan *plan)
{
	return 2 * plan->window + PERF_LATENCY_RECVS;
}

static uint64_t perf_round_up(uint64_t len)
{
	/* two cache lines, which are prefetched as a pair; whole pages for large slots */
	uint64_t unit = len > 2048 ? 4096 : 128;

	return (len + unit - 1) / unit * unit;
}

static int perf_evd_create(struct perf_worker *worker, uint64_t len, DAT_EVD_HANDLE *evd_out)
{
	DAT_RETURN code = dat_evd_create(worker->session.ia, (DAT_COUNT)len, DAT_HANDLE_NULL,
					 DAT_EVD_DTO_FLAG, evd_out);

	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_evd_create", code);
}

static int perf_buffer_create(struct perf_worker *worker, uint64_t len,
			      struct session_buffer *buffer_out)
{
	if (worker->plan->is_huge)
		return session_buffer_create_huge(&worker->session, len, buffer_out);
	if (worker->plan->is_shared)
		return session_buffer_create_shared(&worker->session, len, buffer_out);
	return session_buffer_create(&worker->session, len, buffer_out);
}

/* Makes room for that many segments in each kind of transfer. */
static void perf_endpoint_segments(DAT_EP_ATTR *attr, DAT_COUNT segments)
{
	DAT_COUNT *const limits[] = {&attr->max_recv_iov, &attr->max_request_iov,
				     &attr->max_rdma_read_iov, &attr->max_rdma_write_iov};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (*limits[i] < segments)
			*limits[i] = segments;
}

/* Creates an endpoint with the queue lengths of the plan and otherwise default attributes. */
static int perf_endpoint_create(struct perf_worker *worker, struct perf_endpoint *endpoint)
{
	struct session *session = &worker->session;
	DAT_EP_PARAM param;
	DAT_RETURN code;
	int rc = session_endpoint_create(session, &endpoint->handle);

	if (rc != 0)
		return rc;
	code = dat_ep_query(endpoint->handle, DAT_EP_FIELD_EP_ATTR_ALL, &param);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_ep_query", code);
	dat_ep_free(endpoint->handle);
	endpoint->handle = DAT_HANDLE_NULL;
	/* with a shared queue it would be a watermark */
	param.ep_attr.max_recv_dtos = worker->srq ? 0 : (DAT_COUNT)perf_recvs_max(worker->plan);
	perf_endpoint_segments(&param.ep_attr, (DAT_COUNT)worker->plan->segments);
	/* Sends of the last run that were not signalled may still have their places */
	param.ep_attr.max_request_dtos =
		(DAT_COUNT)(worker->plan->window + worker->plan->signal) + 1;
	if (worker->srq)
		code = dat_ep_create_with_srq(session->ia, session->pz, session->recv_evd,
					      session->request_evd, session->connect_evd,
					      worker->srq, &param.ep_attr, &endpoint->handle);
	else
		code = dat_ep_create(session->ia, session->pz, session->recv_evd,
				     session->request_evd, session->connect_evd, &param.ep_attr,
				     &endpoint->handle);
	if (code == DAT_SUCCESS)
		return 0;
	return tool_call_failed(worker->srq ? "dat_ep_create_with_srq" : "dat_ep_create", code);
}

/* The shared receive queue of the worker, with a slot for each Receive of all its endpoints. */
static int perf_srq_create(struct perf_worker *worker, uint32_t share)
{
	uint32_t slots = perf_recvs_max(worker->plan) * share;
	DAT_SRQ_ATTR attr = {.max_recv_dtos = (DAT_COUNT)slots,
			     .max_recv_iov = (DAT_COUNT)worker->plan->segments,
			     .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_RETURN code;
	int rc = perf_buffer_create(worker, worker->slot_len * slots, &worker->shared);

	if (rc != 0)
		return rc;
	worker->free_slots = calloc(slots, sizeof(worker->free_slots[0]));
	if (!worker->free_slots)
		return -ENOMEM;
	while (worker->free_count < slots) {
		worker->free_slots[worker->free_count] = slots - 1 - worker->free_count;
		worker->free_count++;
	}
	code = dat_srq_create(worker->session.ia, worker->session.pz, &attr, &worker->srq);
	return code == DAT_SUCCESS ? 0 : tool_call_failed("dat_srq_create", code);
}

static int perf_worker_create(struct perf_peer *peer, struct perf_worker *worker, uint32_t share)
{
	const struct perf_plan *plan = &peer->plan;
	uint64_t recvs = perf_recvs_max(plan);
	uint64_t out_len, in_len;
	int rc;

	worker->plan = plan;
	worker->session = peer->session;
	worker->session.connect_evd = peer->connect_evd;
	worker->session.is_polling = !plan->is_waiting;
	worker->session.recv_evd = DAT_HANDLE_NULL;
	worker->session.request_evd = DAT_HANDLE_NULL;
	worker->slot_len = perf_round_up(plan->size_max);
	worker->out_slots = plan->is_checked ? plan->window : 1;
	worker->in_slots = plan->is_checked ? (uint32_t)recvs : 1;
	out_len = worker->slot_len * worker->out_slots;
	in_len = worker->slot_len * worker->in_slots;
	worker->endpoints = calloc(share, sizeof(worker->endpoints[0]));
	if (!worker->endpoints)
		return -ENOMEM;
	worker->endpoint_count = share;
	rc = perf_evd_create(worker, recvs * share, &worker->session.recv_evd);
	if (rc == 0)
		rc = perf_evd_create(worker, (uint64_t)(plan->window + 2) * share,
				     &worker->session.request_evd);
	if (rc == 0)
		rc = perf_buffer_create(worker, out_len * share, &worker->out);
	if (rc == 0)
		rc = perf_buffer_create(worker, in_len * share, &worker->in);
	if (rc == 0 && plan->is_srq)
		rc = perf_srq_create(worker, share);
	for (uint32_t i = 0; i < share && rc == 0; i++) {
		struct perf_endpoint *endpoint = &worker->endpoints[i];

		endpoint->index = i;
		endpoint->out = worker->out.data + i * out_len;
		endpoint->in = worker->in.data + i * in_len;
		rc = perf_endpoint_create(worker, endpoint);
	}
	return rc;
}

int perf_workers_create(struct perf_peer *peer)
{
	const struct perf_plan *plan = &peer->plan;
	DAT_RETURN code;
	int rc = 0;

	code = dat_evd_create(peer->session.ia, (DAT_COUNT)(plan->endpoints + plan->idle + 64),
			      DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &peer->connect_evd);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_evd_create", code);
	peer->workers = aligned_alloc(64, plan->threads * sizeof(peer->workers[0]));
	if (!peer->workers)
		return -ENOMEM;
	memset(peer->workers, 0, plan->threads * sizeof(peer->workers[0]));
	for (uint32_t i = 0; i < plan->threads && rc == 0; i++)
		rc = perf_worker_create(peer, &peer->workers[i],
					(plan->endpoints - i + plan->threads - 1) / plan->threads);
	return rc;
}

static void perf_worker_destroy(struct perf_worker *worker)
{
	for (uint32_t i = 0; i < worker->endpoint_count; i++)
		if (worker->endpoints[i].handle)
			dat_ep_free(worker->endpoints[i].handle);
	if (worker->srq)
		dat_srq_free(worker->srq);
	session_buffer_destroy(&worker->out);
	session_buffer_destroy(&worker->in);
	session_buffer_destroy(&worker->shared);
	free(worker->free_slots);
	if (worker->session.recv_evd)
		dat_evd_free(worker->session.recv_evd);
	if (worker->session.request_evd)
		dat_evd_free(worker->session.request_evd);
	free(worker->endpoints);
}

void perf_workers_destroy(struct perf_peer *peer)
{
	for (uint32_t i = 0; peer->workers && i < peer->plan.threads; i++)
		perf_worker_destroy(&peer->workers[i]);
	free(peer->workers);
	peer->workers = NULL;
}

struct perf_endpoint *perf_endpoint_at(struct perf_peer *peer, uint32_t index,
				       struct perf_worker **worker_out)
{
	struct perf_worker *worker = &peer->workers[index % peer->plan.threads];

	*worker_out = worker;
	return &worker->endpoints[index / peer->plan.threads];
}

static int perf_worker_prepare(struct perf_peer *peer, struct perf_worker *worker,
			       const struct perf_run *run)
{
	bool is_message = run->test == PERF_SEND_LAT || run->test == PERF_WAKE_LAT ||
			  run->test == PERF_POLL_LAT || run->test == PERF_SEND_BW ||
			  perf_is_fragment(run->test);
	uint64_t recvs =
		run->test == PERF_SEND_BW ? perf_recvs_max(worker->plan) : PERF_LATENCY_RECVS;

	worker->wrong = 0;
	worker->done = 0;
	worker->counted = 0;
	worker->peer_done = 0;
	worker->is_message_rate = perf_tests[run->test].kind == PERF_BANDWIDTH;
	worker->is_following = perf_is_following(worker->plan, run);
	/* its only worker runs in the thread that owns the control connection */
	worker->control = worker->is_following && peer->plan.threads == 1 ? peer : NULL;
	atomic_store_explicit(&worker->limit, UINT64_MAX, memory_order_relaxed);
	worker->is_waiting = worker->plan->is_waiting || run->test == PERF_WAKE_LAT;
	for (uint32_t i = 0; i < worker->endpoint_count; i++) {
		struct perf_endpoint *endpoint = &worker->endpoints[i];

		endpoint->posted = 0;
		endpoint->retired = 0;
		while (is_message && endpoint->recv_posted - endpoint->recv_done < recvs) {
			int rc = perf_post_recv(worker, endpoint);

			if (rc != 0)
				return rc;
		}
		if (run->test == PERF_WRITE_LAT)
			perf_flag_at(endpoint->in, run->size)[0] = 0;
		for (uint32_t slot = 0; run->test == PERF_POLL_LAT && slot < worker->in_slots;
		     slot++)
			*perf_flag_at(endpoint->in + slot * worker->slot_len, run->size) = 0;
		for (uint32_t slot = 0; run->test == PERF_READ_LAT || run->test == PERF_READ_BW;
		     slot++) {
			if ((run->is_leader && !perf_is_mutual(worker->plan, run)) ||
			    !worker->plan->is_checked || slot == worker->in_slots)
				break;
			perf_pattern_fill(endpoint->in + slot * worker->slot_len, run->size, slot);
		}
	}
	return 0;
}

int perf_workers_prepare(struct perf_peer *peer, const struct perf_run *run)
{
	int rc = 0;

	peer->stops = 0;
	for (uint32_t i = 0; i < peer->plan.threads && rc == 0; i++)
		rc = perf_worker_prepare(peer, &peer->workers[i], run);
	return rc;
}

static bool perf_run_writes_memory(const struct perf_run *run)
{
	return run->test == PERF_WRITE_COMP_LAT || run->test == PERF_WRITE_BW;
}

void perf_workers_verify(struct perf_peer *peer, const struct perf_run *run)
{
	if (!peer->plan.is_checked || !perf_run_writes_memory(run))
		return;
	for (uint32_t i = 0; i < peer->plan.endpoints; i++) {
		struct perf_worker *worker;
		struct perf_endpoint *endpoint = perf_endpoint_at(peer, i, &worker);
		uint64_t start = endpoint->target_written;
		uint64_t end = start + worker->peer_done;
		uint64_t slots =
			worker->peer_done < worker->in_slots ? worker->peer_done : worker->in_slots;

		/* the last Write into each slot */
		for (uint64_t number = end - slots; number < end; number++)
			if (!perf_pattern_is(endpoint->in +
						     number % worker->in_slots * worker->slot_len,
					     run->size, number))
				worker->wrong++;
		endpoint->target_written = end;
	}
}

/* --- the run --- */

struct perf_thread {
	pthread_t id;
	struct perf_worker *worker;
	const struct perf_run *run;
	pthread_barrier_t *barrier; /* NULL: alone */
	int rc;
};

static int perf_worker_loop(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	if (count == 0)
		return 0;
	if (perf_is_fragment(run->test) || run->test == PERF_REG_FREE)
		return perf_register_run(worker, run, count);
	if (perf_tests[run->test].kind == PERF_LATENCY)
		return perf_latency_run(worker, run, count);
	return perf_bandwidth_run(worker, run, count);
}

/* Sets the end of the next loop, which starts now. */
static void perf_worker_limit(struct perf_worker *worker, const struct perf_run *run,
			      uint64_t duration_ns)
{
	bool is_timed = run->count == 0 && duration_ns != UINT64_MAX && !worker->is_following;

	worker->start_ticks = perf_clock_ticks();
	worker->deadline_ticks = UINT64_MAX;
	if (is_timed)
		worker->deadline_ticks = worker->start_ticks +
					 (uint64_t)((double)duration_ns / perf_clock_period_ns());
}

/* The loop that is measured. */
static int perf_worker_measure(struct perf_worker *worker, const struct perf_run *run,
			       bool is_deciding)
{
	uint64_t count = is_deciding ? run->count : run->warm_up + run->count;
	int rc;

	perf_worker_limit(worker, run, run->duration_ns);
	worker->end_ticks = 0;
	rc = perf_worker_loop(worker, run, run->count == 0 ? UINT64_MAX : count);
	if (worker->end_ticks == 0)
		worker->end_ticks = perf_clock_ticks();
	return rc;
}

static void *perf_thread_main(void *arg)
{
	struct perf_thread *thread = arg;
	struct perf_worker *worker = thread->worker;
	const struct perf_run *run = thread->run;
	bool is_deciding = run->is_leader || perf_is_mutual(worker->plan, run);
	int rc = 0;

	worker->checked_ns = 0;
	worker->checked_progress = 0;
	atomic_store_explicit(&worker->progress, 0, memory_order_relaxed);
	/* only a side that decides measures, so the other one makes the warm-up part of the run */
	if (is_deciding) {
		perf_worker_limit(worker, run, run->duration_ns / PERF_WARM_UP_PART);
		rc = perf_worker_loop(worker, run, run->warm_up);
	}
	worker->counted = worker->done;
	stats_reset(&worker->stats);
	if (worker->samples)
		worker->samples->count = 0;
	if (thread->barrier)
		pthread_barrier_wait(thread->barrier);
	if (rc == 0)
		rc = perf_worker_measure(worker, run, is_deciding);
	worker->counted = worker->done - worker->counted;
	thread->rc = rc == PERF_OVER ? 0 : rc;
	return NULL;
}

static int perf_threads_run(struct perf_peer *peer, struct perf_thread *threads,
			    const struct perf_run *run)
{
	uint32_t count = peer->plan.threads;
	pthread_barrier_t barrier;
	uint32_t started = 0;
	int rc = 0;

	pthread_barrier_init(&barrier, NULL, count);
	for (; started < count; started++) {
		struct perf_thread *thread = &threads[started];

		*thread = (struct perf_thread){
			.worker = &peer->workers[started], .run = run, .barrier = &barrier};
		if (pthread_create(&thread->id, NULL, perf_thread_main, thread) != 0)
			break;
	}
	if (started < count) {
		/* the threads that run wait at the barrier for ever */
		tool_complain("cannot start %u threads", count);
		exit(TOOL_EXIT_FAILED);
	}
	/* the workers follow until this thread, which owns the control connection, tells them */
	while (rc == 0 && peer->workers[0].is_following && peer->stops < count)
		rc = perf_stop_take(peer, true);
	for (uint32_t i = 0; i < count; i++) {
		pthread_join(threads[i].id, NULL);
		if (rc == 0)
			rc = threads[i].rc;
	}
	pthread_barrier_destroy(&barrier);
	return rc;
}

int perf_workers_run(struct perf_peer *peer, const struct perf_run *run)
{
	struct perf_thread single = {.worker = &peer->workers[0], .run = run};
	struct perf_thread *threads;
	int rc;

	if (peer->plan.threads == 1) {
		perf_thread_main(&single);
		return single.rc;
	}
	threads = calloc(peer->plan.threads, sizeof(threads[0]));
	if (!threads)
		return -ENOMEM;
	rc = perf_threads_run(peer, threads, run);
	free(threads);
	return rc;
}
