// SPDX-License-Identifier: BSD-2-Clause
/*
 * The latency loops of dat_perf. One transfer is in flight at a time; several endpoints take turns.
 * The clock is read once per round, and the time is recorded while the next transfer is in flight.
 */
#include <errno.h>
#include <string.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"
#include "perf_loop.h"
#include "perf_pattern.h"

/* The bytes of a polled Write may arrive this much after its last byte. */
#define PERF_LATE_NS 1000000000u

/* The last completed round, whose time is recorded after the next message was sent. */
struct latency_timer {
	uint64_t begin;
	uint64_t end; /* also the begin of the next round */
};

static inline void latency_record(struct perf_worker *worker, struct latency_timer *timer)
{
	if (timer->begin == timer->end)
		return;
	perf_record(worker, timer->end - timer->begin);
	timer->begin = timer->end;
}

static inline struct latency_timer latency_start(void)
{
	uint64_t now = perf_clock_ticks();

	return (struct latency_timer){.begin = now, .end = now};
}

static void latency_fill(struct perf_worker *worker, unsigned char *data, uint64_t size,
			 uint64_t number)
{
	if (worker->plan->is_checked)
		perf_pattern_fill(data, size, number);
}

/* --- Send --- */

/* Sends one message. latency_send_finish() takes its completion. */
static inline int latency_send(struct perf_worker *worker, struct perf_endpoint *endpoint,
			       uint64_t size, DAT_COMPLETION_FLAGS flags)
{
	unsigned char *out = perf_out_at(worker, endpoint, endpoint->sent);

	latency_fill(worker, out, size, endpoint->sent++);
	return perf_post_send(worker, endpoint, out, size, endpoint->index, flags);
}

static inline int latency_recv(struct perf_worker *worker, uint64_t size,
			       struct perf_endpoint *endpoint)
{
	DAT_EVENT event;
	int rc = perf_take(worker, worker->session.recv_evd, &event);

	if (rc != 0)
		return rc;
	perf_received(worker, &event.event_data.dto_completion_event_data);
	if (worker->plan->is_checked &&
	    (event.event_data.dto_completion_event_data.transfered_length != size ||
	     !perf_pattern_is(endpoint->in +
				      endpoint->recv_done % worker->in_slots * worker->slot_len,
			      size, endpoint->recv_done)))
		worker->wrong++;
	endpoint->recv_done++;
	return 0;
}

/* Takes the completion of the Send, which must come soon, because the answer has arrived. */
static inline int latency_send_finish(struct perf_worker *worker, DAT_COMPLETION_FLAGS flags)
{
	DAT_EVENT event;

	if (flags & DAT_COMPLETION_SUPPRESS_FLAG)
		return 0;
	return perf_take(worker, worker->session.request_evd, &event);
}

static int latency_send_lead(struct perf_worker *worker, uint64_t size, uint64_t count)
{
	struct latency_timer timer = latency_start();
	uint64_t i;
	int rc;

	for (i = 0; i < count && !perf_is_over(worker, timer.end); i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			DAT_COMPLETION_FLAGS flags = perf_signal(worker, endpoint, false);

			rc = latency_send(worker, endpoint, size, flags);
			latency_record(worker, &timer);
			if (rc == 0 &&
			    endpoint->recv_posted - endpoint->recv_done < PERF_LATENCY_RECVS)
				rc = perf_post_recv(worker, endpoint);
			if (rc == 0)
				rc = latency_recv(worker, size, endpoint);
			if (rc == 0)
				rc = latency_send_finish(worker, flags);
			if (rc != 0)
				return rc;
			timer.end = perf_clock_ticks();
		}
		perf_advance(worker, i + 1);
	}
	latency_record(worker, &timer);
	worker->done += i;
	return 0;
}

static int latency_send_follow(struct perf_worker *worker, uint64_t size, uint64_t count)
{
	int rc;

	for (uint64_t i = 0; i < count; i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			DAT_COMPLETION_FLAGS flags = perf_signal(worker, endpoint, false);

			rc = latency_recv(worker, size, endpoint);
			if (rc == 0)
				rc = latency_send(worker, endpoint, size, flags);
			if (rc == 0)
				rc = perf_post_recv(worker, endpoint);
			if (rc == 0)
				rc = latency_send_finish(worker, flags);
			if (rc != 0)
				return rc;
		}
		perf_advance(worker, i + 1);
	}
	return 0;
}

/* --- RDMA Writes, detected in memory --- */

/* The next value of the last byte: never the previous one, and never 0. */
static inline unsigned char latency_flag(struct perf_endpoint *endpoint)
{
	return (unsigned char)(endpoint->posted++ % 255 + 1);
}

static inline int latency_write(struct perf_worker *worker, struct perf_endpoint *endpoint,
				uint64_t size, unsigned char flag, DAT_COMPLETION_FLAGS flags)
{
	latency_fill(worker, endpoint->out, size - 1, flag);
	*perf_flag_at(endpoint->out, size) = flag;
	return perf_post_rdma(worker, endpoint, endpoint->out, size, 0, false, endpoint->index,
			      flags);
}

static int latency_written(struct perf_worker *worker, struct perf_endpoint *endpoint,
			   uint64_t size, unsigned char flag)
{
	DAT_EVD_HANDLE evd =
		worker->plan->is_target_polling ? worker->session.recv_evd : DAT_HANDLE_NULL;
	int rc = perf_watch(worker, perf_flag_at(endpoint->in, size), flag, evd);
	uint64_t start;

	if (rc != 0 || !worker->plan->is_checked)
		return rc;
	/* uDAPL does not define the order of the bytes of a Write */
	start = tool_now_ns();
	while (!perf_pattern_is(endpoint->in, size - 1, flag)) {
		if (tool_now_ns() - start > PERF_LATE_NS) {
			worker->wrong++;
			return 0;
		}
	}
	return 0;
}

static int latency_write_lead(struct perf_worker *worker, uint64_t size, uint64_t count)
{
	struct latency_timer timer = latency_start();
	uint64_t i;
	int rc;

	for (i = 0; i < count && !perf_is_over(worker, timer.end); i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			DAT_COMPLETION_FLAGS flags = perf_signal(worker, endpoint, false);
			unsigned char flag = latency_flag(endpoint);

			rc = latency_write(worker, endpoint, size, flag, flags);
			latency_record(worker, &timer);
			if (rc == 0)
				rc = latency_written(worker, endpoint, size, flag);
			if (rc == 0)
				rc = latency_send_finish(worker, flags);
			if (rc != 0)
				return rc;
			timer.end = perf_clock_ticks();
		}
		perf_advance(worker, i + 1);
	}
	latency_record(worker, &timer);
	worker->done += i;
	return 0;
}

static int latency_write_follow(struct perf_worker *worker, uint64_t size, uint64_t count)
{
	int rc;

	for (uint64_t i = 0; i < count; i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			DAT_COMPLETION_FLAGS flags = perf_signal(worker, endpoint, false);
			unsigned char flag = latency_flag(endpoint);

			rc = latency_written(worker, endpoint, size, flag);
			if (rc == 0)
				rc = latency_write(worker, endpoint, size, flag, flags);
			if (rc == 0)
				rc = latency_send_finish(worker, flags);
			if (rc != 0)
				return rc;
		}
		perf_advance(worker, i + 1);
	}
	return 0;
}

/* --- Sends, detected in memory (COMPAT-46) --- */

static inline int latency_poll_send(struct perf_worker *worker, struct perf_endpoint *endpoint,
				    uint64_t size, unsigned char flag, DAT_COMPLETION_FLAGS flags)
{
	latency_fill(worker, endpoint->out, size - 1, flag);
	*perf_flag_at(endpoint->out, size) = flag;
	endpoint->sent++;
	return perf_post_send(worker, endpoint, endpoint->out, size, endpoint->index, flags);
}

/*
 * Takes the event of the message whose last byte has arrived: one of the next few polls finds it.
 */
static inline int latency_poll_recv(struct perf_worker *worker, struct perf_endpoint *endpoint,
				    uint64_t size, unsigned char flag)
{
	uint64_t slot = worker->in_slots > 1 ? endpoint->recv_done % worker->in_slots : 0;
	unsigned char *data = endpoint->in + slot * worker->slot_len;
	DAT_EVENT event;
	int rc = perf_watch(worker, perf_flag_at(data, size), flag, DAT_HANDLE_NULL);

	/* all other bytes arrive before the last one */
	if (rc == 0 && worker->plan->is_checked && !perf_pattern_is(data, size - 1, flag))
		worker->wrong++;
	if (rc == 0)
		rc = perf_take(worker, worker->session.recv_evd, &event);
	if (rc != 0)
		return rc;
	endpoint->recv_done++;
	*perf_flag_at(data, size) = 0;
	return perf_post_recv(worker, endpoint);
}

static int latency_poll(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	struct latency_timer timer = latency_start();
	uint64_t i;
	int rc = 0;

	for (i = 0; i < count && !perf_is_over(worker, timer.end); i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			DAT_COMPLETION_FLAGS flags = perf_signal(worker, endpoint, false);
			unsigned char flag = latency_flag(endpoint);

			if (run->is_leader) {
				rc = latency_poll_send(worker, endpoint, run->size, flag, flags);
				latency_record(worker, &timer);
			}
			if (rc == 0)
				rc = latency_poll_recv(worker, endpoint, run->size, flag);
			if (rc == 0 && !run->is_leader)
				rc = latency_poll_send(worker, endpoint, run->size, flag, flags);
			if (rc == 0)
				rc = latency_send_finish(worker, flags);
			if (rc != 0)
				return rc;
			timer.end = perf_clock_ticks();
		}
		perf_advance(worker, i + 1);
		if (tool_is_stopped)
			return -EINTR;
	}
	if (run->is_leader)
		latency_record(worker, &timer);
	worker->done += i;
	return 0;
}

/* --- RDMA Write and Read, from posting to completion --- */

static int latency_rdma(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	bool is_read = run->test == PERF_READ_LAT;
	struct latency_timer timer = latency_start();
	DAT_EVENT event;
	uint64_t i;
	int rc;

	for (i = 0; i < count && !perf_is_over(worker, timer.end); i++) {
		for (uint32_t e = 0; e < worker->endpoint_count; e++) {
			struct perf_endpoint *endpoint = &worker->endpoints[e];
			uint64_t number = is_read ? i : endpoint->written++;
			uint64_t slot = worker->in_slots > 1 ? number % worker->in_slots : 0;

			if (!is_read)
				latency_fill(worker, endpoint->out, run->size, number);
			rc = perf_post_rdma(worker, endpoint, endpoint->out, run->size, slot,
					    is_read, endpoint->index, DAT_COMPLETION_DEFAULT_FLAG);
			if (rc == 0)
				rc = perf_take(worker, worker->session.request_evd, &event);
			if (rc != 0)
				return rc;
			if (is_read && worker->plan->is_checked &&
			    !perf_pattern_is(endpoint->out, run->size, slot))
				worker->wrong++;
			timer.end = perf_clock_ticks();
			latency_record(worker, &timer);
		}
		perf_advance(worker, i + 1);
		if (tool_is_stopped)
			return -EINTR;
	}
	worker->done += i;
	return 0;
}

int perf_latency_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	switch (run->test) {
	case PERF_WRITE_LAT:
		if (run->is_leader)
			return latency_write_lead(worker, run->size, count);
		return latency_write_follow(worker, run->size, count);
	case PERF_POLL_LAT:
		return latency_poll(worker, run, count);
	case PERF_WRITE_COMP_LAT:
	case PERF_READ_LAT:
		return latency_rdma(worker, run, count);
	default:
		if (run->is_leader)
			return latency_send_lead(worker, run->size, count);
		return latency_send_follow(worker, run->size, count);
	}
}
