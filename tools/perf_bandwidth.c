// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bandwidth loops of dat_perf. Each endpoint has up to a window of requests in flight. Requests
 * complete in order, so a completion retires its request and all before it.
 */
#include <errno.h>

#include "common.h"
#include "perf.h"
#include "perf_loop.h"
#include "perf_pattern.h"

static inline int bandwidth_post(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 const struct perf_run *run, bool is_last)
{
	DAT_COMPLETION_FLAGS flags = perf_signal(worker, endpoint, is_last);
	unsigned char *out = perf_out_at(worker, endpoint, endpoint->posted);
	bool is_checked = worker->plan->is_checked;
	uint64_t number = run->test == PERF_READ_BW ? endpoint->posted : endpoint->written;
	uint64_t slot = is_checked ? number % worker->in_slots : 0;
	uint64_t cookie = (uint64_t)endpoint->index << PERF_COOKIE_SHIFT | ++endpoint->posted;

	if (run->test == PERF_SEND_BW) {
		if (is_checked)
			perf_pattern_fill(out, run->size, endpoint->sent);
		endpoint->sent++;
		return perf_post_send(worker, endpoint, out, run->size, cookie, flags);
	}
	if (run->test == PERF_WRITE_BW) {
		if (is_checked)
			perf_pattern_fill(out, run->size, number);
		endpoint->written++;
	}
	return perf_post_rdma(worker, endpoint, out, run->size, slot, run->test == PERF_READ_BW,
			      cookie, flags);
}

static inline int bandwidth_fill(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 const struct perf_run *run, uint64_t count)
{
	uint32_t window = worker->plan->window;

	while (endpoint->posted < count && endpoint->posted - endpoint->retired < window) {
		int rc = bandwidth_post(worker, endpoint, run, endpoint->posted + 1 == count);

		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Verifies the Reads numbered first to last - 1, which have arrived. */
static void bandwidth_check_reads(struct perf_worker *worker, struct perf_endpoint *endpoint,
				  uint64_t size, uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number < last; number++)
		if (!perf_pattern_is(perf_out_at(worker, endpoint, number), size,
				     number % worker->in_slots))
			worker->wrong++;
}

static int bandwidth_lead(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	bool is_checked_read = worker->plan->is_checked && run->test == PERF_READ_BW;
	uint64_t total = count * worker->endpoint_count;
	uint64_t retired = 0;
	DAT_EVENT event;
	int rc = 0;

	for (uint32_t e = 0; e < worker->endpoint_count && rc == 0; e++) {
		worker->endpoints[e].posted = 0;
		worker->endpoints[e].retired = 0;
		rc = bandwidth_fill(worker, &worker->endpoints[e], run, count);
	}
	while (rc == 0 && retired < total) {
		struct perf_endpoint *endpoint;
		uint64_t cookie, last;

		rc = perf_take(worker, worker->session.request_evd, &event);
		if (rc != 0)
			break;
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		endpoint = &worker->endpoints[cookie >> PERF_COOKIE_SHIFT];
		last = cookie & PERF_COOKIE_MASK;
		if (is_checked_read)
			bandwidth_check_reads(worker, endpoint, run->size, endpoint->retired, last);
		retired += last - endpoint->retired;
		endpoint->retired = last;
		perf_advance(worker, retired);
		if (tool_is_stopped)
			return -EINTR;
		rc = bandwidth_fill(worker, endpoint, run, count);
	}
	return rc;
}

static int bandwidth_follow(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	bool is_checked = worker->plan->is_checked;
	uint64_t total = count * worker->endpoint_count;
	DAT_EVENT event;
	int rc;

	for (uint64_t received = 0; received < total;) {
		const DAT_DTO_COMPLETION_EVENT_DATA *data =
			&event.event_data.dto_completion_event_data;
		struct perf_endpoint *endpoint;

		rc = perf_take(worker, worker->session.recv_evd, &event);
		if (rc != 0)
			return rc;
		endpoint = &worker->endpoints[data->user_cookie.as_64];
		if (is_checked &&
		    (data->transfered_length != run->size ||
		     !perf_pattern_is(endpoint->in + endpoint->recv_done % worker->in_slots *
							     worker->slot_len,
				      run->size, endpoint->recv_done)))
			worker->wrong++;
		endpoint->recv_done++;
		rc = perf_post_recv(worker, endpoint);
		if (rc != 0)
			return rc;
		perf_advance(worker, ++received);
	}
	return 0;
}

int perf_bandwidth_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	if (run->is_leader)
		return bandwidth_lead(worker, run, count);
	return bandwidth_follow(worker, run, count);
}
