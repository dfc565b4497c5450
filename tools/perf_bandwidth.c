// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bandwidth loops of dat_perf. Each endpoint has up to a window of requests in flight. Requests
 * complete in order, so a completion retires its request and all before it.
 */
#include <errno.h>

#include "common.h"
#include "perf.h"
#include "perf_clock.h"
#include "perf_loop.h"
#include "perf_pattern.h"

#define BANDWIDTH_CHECK_BYTES 65536u
#define BANDWIDTH_CHECK_COUNT 64u
#define BANDWIDTH_END PERF_COOKIE_MASK /* number of the empty message, which no request has */

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

/* Posts as many requests as the window and the limit of the endpoint allow. */
static inline int bandwidth_fill(struct perf_worker *worker, struct perf_endpoint *endpoint,
				 const struct perf_run *run, uint64_t limit)
{
	uint32_t window = worker->plan->window;

	while (endpoint->posted < limit && endpoint->posted - endpoint->retired < window) {
		int rc = bandwidth_post(worker, endpoint, run, endpoint->posted + 1 == limit);

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int bandwidth_fill_all(struct perf_worker *worker, const struct perf_run *run,
			      uint64_t limit)
{
	int rc = 0;

	for (uint32_t e = 0; e < worker->endpoint_count && rc == 0; e++)
		rc = bandwidth_fill(worker, &worker->endpoints[e], run, limit);
	return rc;
}

/*
 * The limit of all endpoints once the time is over. All get as far as the first one, and the last
 * request of each is signalled.
 */
static uint64_t bandwidth_limit(const struct perf_worker *worker, uint64_t count)
{
	uint64_t limit = 0;

	for (uint32_t e = 0; e < worker->endpoint_count; e++) {
		const struct perf_endpoint *endpoint = &worker->endpoints[e];
		uint64_t end = endpoint->posted + (endpoint->unsignalled > 0);

		limit = end > limit ? end : limit;
	}
	return limit < count ? limit : count;
}

/* What the side that posts does for one completion, and how far it is. */
struct bandwidth_lead {
	uint64_t limit;	     /* per endpoint */
	uint64_t retired;    /* on all endpoints */
	uint64_t next_check; /* the clock is read when this many are retired */
	bool is_over;
};

static struct bandwidth_lead bandwidth_start(struct perf_worker *worker, uint64_t count)
{
	for (uint32_t e = 0; e < worker->endpoint_count; e++) {
		worker->endpoints[e].posted = 0;
		worker->endpoints[e].retired = 0;
	}
	return (struct bandwidth_lead){.limit = count};
}

static inline bool bandwidth_is_done(const struct perf_worker *worker,
				     const struct bandwidth_lead *lead)
{
	return lead->limit != UINT64_MAX && lead->retired >= lead->limit * worker->endpoint_count;
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

/* Reads the clock once per 64 transfers or 64 KiB: more often would cost time of small ones. */
static inline int bandwidth_check(struct perf_worker *worker, const struct perf_run *run,
				  struct bandwidth_lead *lead)
{
	uint64_t step = BANDWIDTH_CHECK_BYTES / run->size;

	if (lead->is_over || lead->retired < lead->next_check)
		return 0;
	lead->next_check =
		lead->retired + (step < BANDWIDTH_CHECK_COUNT ? step + 1 : BANDWIDTH_CHECK_COUNT);
	if (!perf_is_over(worker, perf_clock_ticks()))
		return 0;
	lead->is_over = true;
	lead->limit = bandwidth_limit(worker, lead->limit);
	return bandwidth_fill_all(worker, run, lead->limit);
}

/* Takes one completion into account and posts what it makes room for. */
static inline int bandwidth_retire(struct perf_worker *worker, const struct perf_run *run,
				   struct bandwidth_lead *lead, const DAT_EVENT *event)
{
	uint64_t cookie = event->event_data.dto_completion_event_data.user_cookie.as_64;
	struct perf_endpoint *endpoint = &worker->endpoints[cookie >> PERF_COOKIE_SHIFT];
	uint64_t last = cookie & PERF_COOKIE_MASK;
	int rc;

	if (worker->plan->is_checked && run->test == PERF_READ_BW)
		bandwidth_check_reads(worker, endpoint, run->size, endpoint->retired, last);
	lead->retired += last - endpoint->retired;
	endpoint->retired = last;
	perf_advance(worker, lead->retired);
	if (tool_is_stopped)
		return -EINTR;
	rc = bandwidth_check(worker, run, lead);
	return rc == 0 ? bandwidth_fill(worker, endpoint, run, lead->limit) : rc;
}

static int bandwidth_lead(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	struct bandwidth_lead lead = bandwidth_start(worker, count);
	int rc = bandwidth_fill_all(worker, run, count);
	DAT_EVENT event;

	while (rc == 0 && !bandwidth_is_done(worker, &lead)) {
		rc = perf_take(worker, worker->session.request_evd, &event);
		if (rc == 0)
			rc = bandwidth_retire(worker, run, &lead, &event);
	}
	worker->done += lead.limit;
	return rc;
}

/* --- a given rate --- */

/*
 * Request number n is due at the start plus n periods, whether those before it are complete or not.
 * So its time counts from then: a transfer that holds up the next ones is not counted once only.
 */
struct bandwidth_pace {
	struct bandwidth_lead lead;
	uint64_t start;
	double period;	 /* ticks */
	uint64_t posted; /* on all endpoints, which take turns */
	uint64_t limit;	 /* of them; a multiple of the endpoints */
};

static inline uint64_t pace_due(const struct bandwidth_pace *pace, uint64_t number)
{
	return pace->start + (uint64_t)((double)number * pace->period);
}

/* Posts all requests that are due and that the window allows. */
static int pace_post(struct perf_worker *worker, const struct perf_run *run,
		     struct bandwidth_pace *pace, uint64_t now)
{
	int rc = 0;

	while (rc == 0 && pace->posted < pace->limit && pace_due(pace, pace->posted) <= now) {
		struct perf_endpoint *endpoint =
			&worker->endpoints[pace->posted % worker->endpoint_count];

		if (endpoint->posted - endpoint->retired >= worker->plan->window)
			break;
		rc = bandwidth_post(worker, endpoint, run, true);
		pace->posted++;
	}
	return rc;
}

/* Takes one completion, if there is one: 1, otherwise 0 or an error. */
static int pace_take(struct perf_worker *worker, const struct perf_run *run,
		     struct bandwidth_pace *pace)
{
	struct perf_endpoint *endpoint;
	DAT_EVENT event;
	uint64_t cookie, number;
	int rc;

	if (dat_evd_dequeue(worker->session.request_evd, &event) != DAT_SUCCESS)
		return 0;
	rc = perf_event_check(&event);
	if (rc != 0)
		return rc;
	cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
	endpoint = &worker->endpoints[cookie >> PERF_COOKIE_SHIFT];
	number = endpoint->retired * worker->endpoint_count + endpoint->index;
	perf_record(worker, perf_clock_ticks() - pace_due(pace, number));
	if (worker->plan->is_checked && run->test == PERF_READ_BW)
		bandwidth_check_reads(worker, endpoint, run->size, endpoint->retired,
				      cookie & PERF_COOKIE_MASK);
	endpoint->retired = cookie & PERF_COOKIE_MASK;
	perf_advance(worker, ++pace->lead.retired);
	return 1;
}

static int bandwidth_pace(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	uint32_t share = worker->endpoint_count;
	struct bandwidth_pace pace = {.lead = bandwidth_start(worker, count),
				      .start = perf_clock_ticks(),
				      .period = 1e9 * worker->plan->threads / run->rate /
						perf_clock_period_ns(),
				      .limit = count == UINT64_MAX ? count : count * share};
	unsigned spins = 0;
	int rc = 0;

	while (rc >= 0 && pace.lead.retired < pace.limit) {
		uint64_t now = perf_clock_ticks();

		/* all endpoints make the same number of transfers */
		if (pace.limit == UINT64_MAX && perf_is_over(worker, now))
			pace.limit = (pace.posted + share - 1) / share * share;
		rc = pace_post(worker, run, &pace, now);
		if (rc == 0)
			rc = pace_take(worker, run, &pace);
		if (rc == 0 && ++spins % PERF_SPINS_PER_CHECK == 0)
			rc = perf_spin_check(worker);
		if (rc >= 0 && tool_is_stopped)
			rc = -EINTR;
	}
	worker->done += pace.limit == UINT64_MAX ? 0 : pace.limit / share;
	return rc < 0 ? rc : 0;
}

/* Verifies a received message, and posts the Receive again. */
static inline int bandwidth_receive(struct perf_worker *worker, const struct perf_run *run,
				    const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	struct perf_endpoint *endpoint = perf_received(worker, data);
	uint64_t slot = endpoint->recv_done % worker->in_slots;

	if (worker->plan->is_checked && (data->transfered_length != run->size ||
					 !perf_pattern_is(endpoint->in + slot * worker->slot_len,
							  run->size, endpoint->recv_done)))
		worker->wrong++;
	endpoint->recv_done++;
	return perf_post_recv(worker, endpoint);
}

static int bandwidth_follow(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	uint64_t total = count == UINT64_MAX ? count : count * worker->endpoint_count;
	DAT_EVENT event;
	int rc = 0;

	for (uint64_t received = 0; rc == 0 && received < total;) {
		rc = perf_take(worker, worker->session.recv_evd, &event);
		if (rc == 0)
			rc = bandwidth_receive(worker, run, &event);
		if (rc == 0)
			perf_advance(worker, ++received);
	}
	return rc;
}

/* --- Sends in both directions --- */

/* An empty message says that the sender has sent all of its messages on that endpoint. */
static int bandwidth_send_end(struct perf_worker *worker, struct perf_endpoint *endpoint)
{
	uint64_t cookie = (uint64_t)endpoint->index << PERF_COOKIE_SHIFT | BANDWIDTH_END;

	endpoint->sent++;
	endpoint->unsignalled = 0;
	return perf_post_send(worker, endpoint, endpoint->out, 0, cookie,
			      DAT_COMPLETION_DEFAULT_FLAG);
}

/* How far an exchange is. */
struct bandwidth_exchange {
	struct bandwidth_lead lead;
	uint32_t sent_ends;	/* complete ones */
	uint32_t received_ends; /* endpoints whose peer has sent all of its messages */
};

/* One completion of our own Sends. */
static int exchange_sent(struct perf_worker *worker, const struct perf_run *run,
			 struct bandwidth_exchange *exchange, const DAT_EVENT *event)
{
	uint64_t cookie = event->event_data.dto_completion_event_data.user_cookie.as_64;
	int rc;

	if ((cookie & PERF_COOKIE_MASK) == BANDWIDTH_END) {
		exchange->sent_ends++;
		return 0;
	}
	rc = bandwidth_retire(worker, run, &exchange->lead, event);
	if (rc != 0 || !bandwidth_is_done(worker, &exchange->lead))
		return rc;
	worker->end_ticks = perf_clock_ticks();
	for (uint32_t e = 0; e < worker->endpoint_count && rc == 0; e++)
		rc = bandwidth_send_end(worker, &worker->endpoints[e]);
	return rc;
}

static int exchange_received(struct perf_worker *worker, const struct perf_run *run,
			     struct bandwidth_exchange *exchange, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	struct perf_endpoint *endpoint = &worker->endpoints[data->user_cookie.as_64];

	if (data->transfered_length != 0)
		return bandwidth_receive(worker, run, event);
	if (endpoint->ends++ == 0)
		exchange->received_ends++;
	endpoint->recv_done++;
	return perf_post_recv(worker, endpoint);
}

/*
 * The peer goes on to the next exchange when it has all of our messages, while we may still wait
 * for a completion, or for the end on another endpoint. So ends are counted for each endpoint, and
 * an early one is kept for the next exchange.
 */
static uint32_t exchange_early_ends(const struct perf_worker *worker)
{
	uint32_t count = 0;

	for (uint32_t e = 0; e < worker->endpoint_count; e++)
		count += worker->endpoints[e].ends > 0;
	return count;
}

static void exchange_take_ends(struct perf_worker *worker)
{
	for (uint32_t e = 0; e < worker->endpoint_count; e++)
		worker->endpoints[e].ends--;
}

static int bandwidth_exchange(struct perf_worker *worker, const struct perf_run *run,
			      uint64_t count)
{
	struct bandwidth_exchange exchange = {.lead = bandwidth_start(worker, count),
					      .received_ends = exchange_early_ends(worker)};
	int rc = bandwidth_fill_all(worker, run, count);
	unsigned spins = 0;
	DAT_EVENT event;

	while (rc == 0 && (exchange.sent_ends < worker->endpoint_count ||
			   exchange.received_ends < worker->endpoint_count)) {
		bool has_event = false;

		if (dat_evd_dequeue(worker->session.recv_evd, &event) == DAT_SUCCESS) {
			has_event = true;
			rc = perf_event_check(&event);
			if (rc == 0)
				rc = exchange_received(worker, run, &exchange, &event);
		}
		if (rc == 0 &&
		    dat_evd_dequeue(worker->session.request_evd, &event) == DAT_SUCCESS) {
			has_event = true;
			rc = perf_event_check(&event);
			if (rc == 0)
				rc = exchange_sent(worker, run, &exchange, &event);
		}
		if (!has_event && ++spins % PERF_SPINS_PER_CHECK == 0)
			rc = perf_spin_check(worker);
	}
	if (rc == 0)
		exchange_take_ends(worker);
	worker->done += exchange.lead.limit;
	return rc;
}

int perf_bandwidth_run(struct perf_worker *worker, const struct perf_run *run, uint64_t count)
{
	bool is_mutual = perf_is_mutual(worker->plan, run);

	if (is_mutual && run->test == PERF_SEND_BW)
		return bandwidth_exchange(worker, run, count);
	if (run->is_leader && run->rate > 0)
		return bandwidth_pace(worker, run, count);
	if (run->is_leader || is_mutual)
		return bandwidth_lead(worker, run, count);
	return bandwidth_follow(worker, run, count);
}
