// SPDX-License-Identifier: BSD-2-Clause
/*
 * The steps of the timed loops: posting, taking completions, polling memory. They are inline and
 * call nothing but the provider. The clock, signals and the state of the connection are checked
 * only after some thousand polls without an event.
 */
#ifndef TOOLS_PERF_LOOP_H
#define TOOLS_PERF_LOOP_H

#include <errno.h>

#include "common.h"
#include "perf.h"
#include "perf_pattern.h"

#define PERF_LATENCY_RECVS 4u
#define PERF_SPINS_PER_CHECK 8192u
/* cookie of a request: its endpoint, and how many requests its completion retires */
#define PERF_COOKIE_SHIFT 44u
#define PERF_COOKIE_MASK ((UINT64_C(1) << PERF_COOKIE_SHIFT) - 1)

/* A loop returns this when the peer has stopped: no error. */
#define PERF_OVER 1

/* Called while polling. 0: continue; PERF_OVER; -EINTR: stopped; -ETIMEDOUT; -ENOTCONN. */
int perf_spin_check(struct perf_worker *worker);
/* Blocks until the next event; otherwise as perf_take(). */
int perf_take_waiting(struct perf_worker *worker, DAT_EVD_HANDLE evd, DAT_EVENT *event_out);
int perf_event_is_bad(const DAT_EVENT *event);
int perf_call_failed(const char *call, DAT_RETURN code);

/* The byte that shows that a polled Write has arrived: the last one. */
static inline volatile unsigned char *perf_flag_at(unsigned char *data, uint64_t size)
{
	return data + size - 1;
}

/* Called between two polls: leaves execution units to the core's other hardware thread. */
static inline void perf_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* 0: a successful completion. */
static inline int perf_event_check(const DAT_EVENT *event)
{
	if (event->event_number != DAT_DTO_COMPLETION_EVENT ||
	    event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return perf_event_is_bad(event);
	return 0;
}

/* Takes the next event, which must be a successful completion. */
static inline int perf_take(struct perf_worker *worker, DAT_EVD_HANDLE evd, DAT_EVENT *event_out)
{
	if (worker->is_waiting) {
		int rc = perf_take_waiting(worker, evd, event_out);

		if (rc != 0)
			return rc;
	} else {
		unsigned spins = 0;
		DAT_RETURN code;

		while ((code = dat_evd_dequeue(evd, event_out)) != DAT_SUCCESS) {
			int rc;

			if (DAT_GET_TYPE(code) != DAT_QUEUE_EMPTY)
				return perf_call_failed("dat_evd_dequeue", code);
			perf_pause();
			if (++spins % PERF_SPINS_PER_CHECK != 0)
				continue;
			rc = perf_spin_check(worker);
			if (rc != 0)
				return rc;
		}
	}
	return perf_event_check(event_out);
}

/*
 * Polls a byte until it has that value. Polls `evd` too, on which no event is expected. With
 * DAT_HANDLE_NULL it calls nothing of the library.
 */
static inline int perf_watch(struct perf_worker *worker, const volatile unsigned char *byte,
			     unsigned char value, DAT_EVD_HANDLE evd)
{
	unsigned spins = 0;

	while (!perf_last_is(byte, value)) {
		DAT_EVENT event;
		int rc;

		if (evd && dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
			return perf_event_is_bad(&event);
		perf_pause();
		if (++spins % PERF_SPINS_PER_CHECK != 0)
			continue;
		rc = perf_spin_check(worker);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Divides bytes into the segments of the plan. Returns their number: 1 if there are too few. */
static inline DAT_COUNT perf_segments(const struct perf_worker *worker, DAT_LMR_CONTEXT context,
				      const unsigned char *data, uint64_t size,
				      DAT_LMR_TRIPLET triplets[PERF_SEGMENTS_LIMIT])
{
	uint32_t count = worker->plan->segments;
	uint64_t part = size;

	if (count > 1)
		part = size / count;
	if (part == 0 || count == 1) {
		triplets[0] = (DAT_LMR_TRIPLET){.lmr_context = context,
						.virtual_address = (uintptr_t)data,
						.segment_length = size};
		return 1;
	}
	for (uint32_t i = 0; i < count; i++)
		triplets[i] = (DAT_LMR_TRIPLET){.lmr_context = context,
						.virtual_address = (uintptr_t)data + i * part,
						.segment_length = part};
	triplets[count - 1].segment_length += size % count;
	return (DAT_COUNT)count;
}

/*
 * A Receive of the shared queue counts for the endpoint that posts it, whichever takes it. Each has
 * its own slot, since messages of several connections may arrive at the same time.
 */
static inline int perf_post_shared(struct perf_worker *worker, struct perf_endpoint *endpoint)
{
	DAT_LMR_TRIPLET triplets[PERF_SEGMENTS_LIMIT];
	DAT_DTO_COOKIE cookie;
	DAT_COUNT count;
	DAT_RETURN code;
	uint64_t slot;

	if (worker->free_count == 0)
		return -ENOBUFS;
	slot = worker->free_slots[--worker->free_count];
	count = perf_segments(worker, worker->shared.lmr_context,
			      worker->shared.data + slot * worker->slot_len, worker->plan->size_max,
			      triplets);
	cookie.as_64 = slot << PERF_COOKIE_SHIFT | endpoint->index;
	code = dat_srq_post_recv(worker->srq, count, triplets, cookie);
	if (code != DAT_SUCCESS)
		return perf_call_failed("dat_srq_post_recv", code);
	endpoint->recv_posted++;
	return 0;
}

static inline int perf_post_recv(struct perf_worker *worker, struct perf_endpoint *endpoint)
{
	uint64_t slot = worker->in_slots > 1 ? endpoint->recv_posted % worker->in_slots : 0;
	DAT_LMR_TRIPLET triplets[PERF_SEGMENTS_LIMIT];
	DAT_DTO_COOKIE cookie = {.as_64 = endpoint->index};
	DAT_COUNT count;
	DAT_RETURN code;

	if (worker->srq)
		return perf_post_shared(worker, endpoint);
	count = perf_segments(worker, worker->in.lmr_context,
			      endpoint->in + slot * worker->slot_len, worker->plan->size_max,
			      triplets);
	code = dat_ep_post_recv(endpoint->handle, count, triplets, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
	if (code != DAT_SUCCESS)
		return perf_call_failed("dat_ep_post_recv", code);
	endpoint->recv_posted++;
	return 0;
}

/* The endpoint that has posted a Receive which is complete. Its slot is free again. */
static inline struct perf_endpoint *perf_received(struct perf_worker *worker,
						  const DAT_DTO_COMPLETION_EVENT_DATA *data)
{
	uint64_t cookie = data->user_cookie.as_64;

	if (worker->srq)
		worker->free_slots[worker->free_count++] = (uint32_t)(cookie >> PERF_COOKIE_SHIFT);
	return &worker->endpoints[cookie & PERF_COOKIE_MASK];
}

/* The local buffer of request `number` of an endpoint. */
static inline unsigned char *perf_out_at(const struct perf_worker *worker,
					 const struct perf_endpoint *endpoint, uint64_t number)
{
	if (worker->out_slots == 1)
		return endpoint->out;
	return endpoint->out + number % worker->out_slots * worker->slot_len;
}

static inline int perf_post_send(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 unsigned char *data, uint64_t size, uint64_t cookie,
				 DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET triplets[PERF_SEGMENTS_LIMIT];
	DAT_COUNT count = perf_segments(worker, worker->out.lmr_context, data, size, triplets);
	DAT_RETURN code = dat_ep_post_send(endpoint->handle, count, triplets,
					   (DAT_DTO_COOKIE){.as_64 = cookie}, flags);

	return code == DAT_SUCCESS ? 0 : perf_call_failed("dat_ep_post_send", code);
}

static inline int perf_post_rdma_at(struct perf_worker *worker, struct perf_endpoint *endpoint,
				    unsigned char *data, DAT_RMR_TRIPLET remote, bool is_read,
				    uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET triplets[PERF_SEGMENTS_LIMIT];
	DAT_COUNT count = perf_segments(worker, worker->out.lmr_context, data,
					remote.segment_length, triplets);
	DAT_DTO_COOKIE number = {.as_64 = cookie};
	DAT_RETURN code;

	if (is_read)
		code = dat_ep_post_rdma_read(endpoint->handle, count, triplets, number, &remote,
					     flags);
	else
		code = dat_ep_post_rdma_write(endpoint->handle, count, triplets, number, &remote,
					      flags);
	if (code == DAT_SUCCESS)
		return 0;
	return perf_call_failed(is_read ? "dat_ep_post_rdma_read" : "dat_ep_post_rdma_write", code);
}

/* `slot` is the slot at the target; both sides use the same slot size. */
static inline int perf_post_rdma(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 unsigned char *data, uint64_t size, uint64_t slot, bool is_read,
				 uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = endpoint->remote;

	remote.target_address += slot * worker->slot_len;
	remote.segment_length = size;
	return perf_post_rdma_at(worker, endpoint, data, remote, is_read, cookie, flags);
}

/*
 * Signals one request in plan->signal, and the last one. Requests that were not signalled at the
 * end of a run count for the next one.
 */
static inline DAT_COMPLETION_FLAGS perf_signal(const struct perf_worker *worker,
					       struct perf_endpoint *endpoint, bool is_last)
{
	if (++endpoint->unsignalled < worker->plan->signal && !is_last)
		return DAT_COMPLETION_SUPPRESS_FLAG;
	endpoint->unsignalled = 0;
	return DAT_COMPLETION_DEFAULT_FLAG;
}

/* Is the time over? Only for the side that decides, with a reading of perf_clock_ticks(). */
static inline bool perf_is_over(const struct perf_worker *worker, uint64_t ticks)
{
	return ticks >= worker->deadline_ticks || perf_is_enough;
}

/* Counts a time, and keeps it if all are wanted. */
static inline void perf_record(struct perf_worker *worker, uint64_t ticks)
{
	struct perf_samples *samples = worker->samples;

	stats_add(&worker->stats, ticks);
	if (!samples)
		return;
	if (samples->count == samples->room)
		perf_samples_grow(samples);
	samples->ticks[samples->count++] = ticks;
}

static inline void perf_advance(struct perf_worker *worker, uint64_t progress)
{
	atomic_store_explicit(&worker->progress, progress, memory_order_relaxed);
}

#endif
