// SPDX-License-Identifier: BSD-2-Clause
/* Takes the events that must have come, and writes them in an order that does not depend on time.
 */
#include "side.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define SLICE_US 100000u

/* --- one event as a line --- */

static void add_line(struct side *side, int ep, enum stream stream, const char *text)
{
	static const char *const names[STREAMS] = {"conn", "recv", "request"};
	struct line *line = &side->line[side->lines++];

	if (side->lines == EVENTS)
		side_stop(side);
	line->stream = ep * STREAMS + (int)stream;
	snprintf(line->text, sizeof(line->text), "ep%d %s %s", ep, names[stream], text);
}

static int find_ep(const struct side *side, DAT_EP_HANDLE handle)
{
	int ep = 0;

	while (ep < EPS && side->ep[ep].ep != handle)
		ep++;
	return ep;
}

static const char *status_name(DAT_DTO_COMPLETION_STATUS status)
{
	static const char *const names[] = {
		"SUCCESS",	    "FLUSHED",
		"LOCAL_LENGTH",	    "LOCAL_EP",
		"LOCAL_PROTECTION", "BAD_RESPONSE",
		"REMOTE_ACCESS",    "REMOTE_RESPONDER",
		"TRANSPORT",	    "RECEIVER_NOT_READY",
		"PARTIAL_PACKET",   "OPERATION_FAILED",
	};

	return (unsigned)status < COUNT_OF(names) ? names[status] : "?";
}

static bool is_srq_cookie(uint64_t cookie)
{
	return cookie >= COOKIE_SRQ && cookie < COOKIE_SRQ + SRQ_QUEUE;
}

/* What a Receive or Read has put into its buffer, and left there. */
static uint64_t hash_of(const struct side *side, uint64_t cookie)
{
	const struct step *step;

	if (is_srq_cookie(cookie))
		return memory_hash(memory_srq_slot(side, (int)(cookie - COOKIE_SRQ)), SRQ_LEN, 0);
	step = &side->sequence->step[cookie];
	return step->op == OP_RECV || step->op == OP_READ ? memory_hash_step(side, step) : 0;
}

/* A completion of a connection that ended with requests under way, by either side. */
static void note_racy(struct side *side, int ep, uint64_t cookie, bool is_done)
{
	const struct step *step = &side->sequence->step[cookie];

	if (is_done && step->op == OP_SEND)
		side->shared->sent[side->me][ep]++;
	if (is_done && step->op == OP_RECV)
		side->shared->received[side->me][ep]++;
}

static void add_completion(struct side *side, int ep, uint64_t cookie,
			   DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len, bool is_late)
{
	const bool is_done = status == DAT_DTO_SUCCESS, is_srq = is_srq_cookie(cookie);
	const bool is_recv = is_srq || side->sequence->step[cookie].op == OP_RECV;
	const enum stream stream = is_recv ? STREAM_RECV : STREAM_REQUEST;
	struct side_ep *owner = &side->ep[ep];
	/* DTO-48, DTO-49; EP-STATE-53 */
	const char *fault = is_done && owner->has_failed[stream] ? ", after a failure"
			    : is_late				 ? ", late"
								 : "";
	char number[24], text[80];

	owner->has_failed[stream] |= !is_done;
	snprintf(number, sizeof(number), is_srq ? "shared" : "%" PRIu64, cookie);
	if (owner->is_racy && !is_srq && (is_done || status == DAT_DTO_ERR_FLUSHED)) {
		note_racy(side, ep, cookie, is_done);
		snprintf(text, sizeof(text), "%s done or flushed%s", number, fault);
	} else if (is_done) {
		snprintf(text, sizeof(text), "%s %" PRIu64 " bytes %016" PRIx64 "%s", number, len,
			 hash_of(side, cookie), fault);
	} else {
		snprintf(text, sizeof(text), "%s %s%s", number, status_name(status), fault);
	}
	if (is_srq)
		side->is_srq_slot_used[cookie - COOKIE_SRQ] = false;
	add_line(side, ep, stream, text);
}

static void add_connection(struct side *side, int ep, DAT_EVENT_NUMBER number)
{
	char text[60];
	int before = 0;

	/*
	 * EP-DISC-21, EP-DISC-22: all other events of the endpoint come first, if one EVD has all.
	 * But what is posted behind a request that fails may be flushed after BROKEN.
	 */
	if (side->sequence->shape[side->me].layout == LAYOUT_ONE &&
	    number == DAT_CONNECTION_EVENT_DISCONNECTED)
		for (int i = 0; i < side->lines; i++)
			before += side->line[i].stream / STREAMS == ep;
	snprintf(text, sizeof(text), "%s after %d",
		 number == DAT_CONNECTION_EVENT_ESTABLISHED    ? "ESTABLISHED"
		 : number == DAT_CONNECTION_EVENT_DISCONNECTED ? "DISCONNECTED"
		 : number == DAT_CONNECTION_EVENT_BROKEN       ? "BROKEN"
							       : "another event",
		 before);
	if (number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		side->ep[ep].is_over = true;
		memset(side->was_empty, 0, sizeof(side->was_empty));
	}
	add_line(side, ep, STREAM_CONN, text);
}

static void add_event(struct side *side, int evd, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;
	int ep = 0;

	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		ep = find_ep(side, dto->ep_handle);
		if (ep < EPS &&
		    (dto->user_cookie.as_64 < STEPS || is_srq_cookie(dto->user_cookie.as_64))) {
			add_completion(side, ep, dto->user_cookie.as_64, dto->status,
				       dto->transfered_length,
				       side->ep[ep].is_over && side->was_empty[evd]);
			return;
		}
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		while (ep < EPS && side->ep[ep].rmr != bind->rmr_handle)
			ep++;
		if (ep < EPS && bind->user_cookie.as_64 < STEPS) {
			add_completion(side, ep, bind->user_cookie.as_64, bind->status, 0,
				       side->ep[ep].is_over && side->was_empty[evd]);
			return;
		}
		break;
	default:
		ep = find_ep(side, event->event_data.connect_event_data.ep_handle);
		if (ep < EPS) {
			add_connection(side, ep, event->event_number);
			return;
		}
		break;
	}
	side_trace(side, "event 0x%05x of an unknown endpoint or request",
		   (unsigned)event->event_number);
}

/* --- taking --- */

/* Waits for the next event of the EVD. False: none comes. */
static bool next_event(struct side *side, int evd, DAT_EVENT *event)
{
	const bool waits = side->sequence->shape[side->me].waits;
	const uint64_t end = dt_now_us() + side->wait_us;
	DAT_COUNT more;

	if (dat_evd_dequeue(side->evd[evd], event) == DAT_SUCCESS)
		return true;
	side->was_empty[evd] = true;
	while (dt_now_us() < end && !side->shared->is_stopped) {
		if ((waits ? dat_evd_wait(side->evd[evd], SLICE_US, 1, event, &more)
			   : dat_evd_dequeue(side->evd[evd], event)) == DAT_SUCCESS)
			return true;
		if (!waits)
			sched_yield();
	}
	return false;
}

static void collect(struct side *side, int evd, int count)
{
	DAT_EVENT event;

	for (int i = 0; i < count; i++) {
		if (!next_event(side, evd, &event)) {
			side_trace(side, "%d of %d events of EVD %d do not come", count - i, count,
				   evd);
			side_stop(side);
		}
		add_event(side, evd, &event);
	}
}

static void write_lines(struct side *side, bool has_order)
{
	for (int stream = 0; stream < EPS * STREAMS && !has_order; stream++)
		for (int i = 0; i < side->lines; i++)
			if (side->line[i].stream == stream)
				side_trace(side, "  %s", side->line[i].text);
	for (int i = 0; i < side->lines && has_order; i++)
		side_trace(side, "  %s", side->line[i].text);
	side->lines = 0;
}

void events_take(struct side *side, int evd, int count)
{
	collect(side, evd, count);
	write_lines(side, false);
}

void events_settle(struct side *side, const struct settle *settle)
{
	DAT_EVENT event;

	memset(side->was_empty, 0, sizeof(side->was_empty));
	/* those of connections first: what else belongs to one that has ended is there then */
	for (int evd = 0; evd < EVDS; evd++)
		collect(side, evd, settle->take[side->me][evd]);
	for (int evd = 0; evd < EVDS; evd++) {
		if (!side->evd[evd] || dat_evd_dequeue(side->evd[evd], &event) != DAT_SUCCESS)
			continue;
		side_trace(side, "one event too many, on EVD %d:", evd);
		add_event(side, evd, &event);
	}
	write_lines(side, settle->has_order[side->me]);
}
