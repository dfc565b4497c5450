// SPDX-License-Identifier: BSD-2-Clause
/* The state of a sequence that is being written; see the header. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

void model_start(struct model *model, struct sequence *sequence)
{
	*model = (struct model){
		.sequence = sequence,
		.random = sequence->seed * UINT64_C(0x9e3779b97f4a7c15) + sequence->number,
	};
	for (int side = 0; side < SIDES; side++) {
		model->target[side] = KEY_FIRST;
		model->old_target[side] = KEY_ZERO;
		for (int ep = 0; ep < EPS; ep++) {
			model->end[side][ep].bound = -1;
			model->end[side][ep].old_bind = KEY_ZERO;
		}
	}
}

uint32_t model_random(struct model *model, uint32_t n)
{
	uint64_t x = model->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % n);
}

struct step *model_step(struct model *model, enum op op, int side, int ep)
{
	struct sequence *sequence = model->sequence;
	struct step *step = &sequence->step[sequence->steps++];

	if (sequence->steps > STEPS)
		abort();
	*step = (struct step){.op = op, .side = side, .ep = ep, .source = -1};
	return step;
}

int model_number(const struct model *model, const struct step *step)
{
	return (int)(step - model->sequence->step);
}

struct settle *model_now(struct model *model)
{
	return &model->sequence->settle[model->sequence->settles];
}

void model_count(struct model *model, int side, int ep, enum stream stream)
{
	model_now(model)->take[side][sequence_evd(model->sequence, side, ep, stream)]++;
}

/* --- questions --- */

bool model_is_connected(const struct model *model, int ep)
{
	return model->end[0][ep].state == END_CONNECTED &&
	       model->end[1][ep].state == END_CONNECTED && !model->is_ending[ep];
}

bool model_has_room(const struct model *model, int side, int ep)
{
	return model->end[side][ep].requests < model->sequence->requests;
}

bool model_has_recv_room(const struct model *model, int side, int ep)
{
	const struct end *end = &model->end[side][ep];

	if (model->sequence->shape[side].has_srq)
		return model->srq[side] + model->srq_busy[side] < SRQ_QUEUE;
	return end->recvs + end->busy < model->sequence->recvs;
}

static const struct step *step_of(const struct model *model, const struct request *request)
{
	return &model->sequence->step[request->step];
}

static bool is_waiting(const struct model *model, const struct request *request)
{
	return step_of(model, request)->op == OP_SEND && !request->is_matched;
}

const struct step *model_first_waiting(const struct model *model, int side, int ep)
{
	const struct end *end = &model->end[side][ep];

	for (int i = 0; i < end->requests; i++)
		if (is_waiting(model, &end->request[i]))
			return step_of(model, &end->request[i]);
	return NULL;
}

uint32_t model_waiting(const struct model *model, int side, int ep)
{
	const struct end *end = &model->end[side][ep];
	uint32_t len = 0;

	for (int i = 0; i < end->requests; i++)
		if (is_waiting(model, &end->request[i]))
			len += step_len(step_of(model, &end->request[i]));
	return len;
}

const struct posted_recv *model_next_recv(const struct model *model, int side, int ep)
{
	static const struct posted_recv shared = {.len = SRQ_LEN};

	if (model->sequence->shape[!side].has_srq)
		return model->srq[!side] ? &shared : NULL;
	return model->end[!side][ep].recvs ? &model->end[!side][ep].recv[0] : NULL;
}

/* --- messages and Receives --- */

static void take_recv(struct model *model, int side, int ep)
{
	struct end *end = &model->end[side][ep];

	model_count(model, side, ep, STREAM_RECV);
	if (model->sequence->shape[side].has_srq) {
		model->srq[side]--;
		model->srq_busy[side]++;
		return;
	}
	end->recvs--;
	end->busy++;
	memmove(end->recv, end->recv + 1, sizeof(end->recv[0]) * (size_t)end->recvs);
}

/* Gives the oldest message that waits the oldest Receive, if there are both. */
static bool match(struct model *model, int side, int ep)
{
	struct end *end = &model->end[side][ep];
	const struct posted_recv *recv = model_next_recv(model, side, ep);

	if (!recv || model->is_racy[ep])
		return false;
	for (int i = 0; i < end->requests; i++) {
		struct request *request = &end->request[i];

		if (!is_waiting(model, request))
			continue;
		request->is_matched = true;
		request->fails = recv->is_doomed || step_len(step_of(model, request)) > recv->len;
		take_recv(model, !side, ep);
		return true;
	}
	return false;
}

static void unhide(struct model *model, struct request *request)
{
	request->is_silent = false;
	model->sequence->step[request->step].flags &= ~DAT_COMPLETION_SUPPRESS_FLAG;
}

/*
 * Whether a suppressed request is done shows in the success of a later one. So the last one that
 * completes before others must wait is not suppressed.
 */
static void settle_flags(struct model *model, struct end *end)
{
	struct request *last = &end->request[end->requests - 1];
	bool is_stuck = false;

	for (int i = 0; i + 1 < end->requests; i++)
		is_stuck |= is_waiting(model, &end->request[i]);
	if (is_stuck || is_waiting(model, last)) {
		if (!model->may_hide)
			unhide(model, last);
		if (!is_stuck && end->requests > 1)
			unhide(model, last - 1);
	}
}

void model_request(struct model *model, struct step *step, bool fails)
{
	struct end *end = &model->end[step->side][step->ep];

	step->slot = end->request_posts++ % (model->sequence->requests + 1);
	if (end->state == END_OVER) {
		model_count(model, step->side, step->ep, STREAM_REQUEST);
		return;
	}
	if (step->op == OP_SEND)
		model->senders[!step->side] |= 1u << step->ep;
	end->request[end->requests++] = (struct request){
		.step = model_number(model, step),
		.is_silent = step->flags & DAT_COMPLETION_SUPPRESS_FLAG,
		.fails = fails,
	};
	match(model, step->side, step->ep);
	settle_flags(model, end);
}

void model_recv(struct model *model, struct step *step)
{
	struct end *end = &model->end[step->side][step->ep];

	if (step->op == OP_SRQ_RECV) {
		model->srq[step->side]++;
		for (int ep = 0; ep < model->sequence->eps; ep++)
			if (match(model, !step->side, ep))
				break;
		return;
	}
	step->slot = end->recv_posts++ % model->sequence->recvs;
	if (end->state == END_OVER) {
		model_count(model, step->side, step->ep, STREAM_RECV);
		return;
	}
	end->recv[end->recvs++] = (struct posted_recv){.len = step_len(step)};
	match(model, !step->side, step->ep);
}

/* --- completions --- */

static void carry_out(struct model *model, int side, int ep, const struct request *request)
{
	const struct step *step = step_of(model, request);
	struct end *end = &model->end[side][ep];

	if (step->op == OP_WRITE && step_len(step))
		model->end[!side][ep].is_dirty[step->area] = true;
	if (step->op == OP_BIND) {
		if (end->bound >= 0)
			end->old_bind = end->bound;
		end->bound = step->range ? request->step : -1;
	}
}

/* Completes what can complete; returns the number of events. */
static int complete(struct model *model, int side, int ep, bool *has_failed_out)
{
	struct end *end = &model->end[side][ep];
	int done = 0, events = 0;

	while (done < end->requests && !is_waiting(model, &end->request[done]) &&
	       !end->request[done].fails)
		done++;
	*has_failed_out = done < end->requests && end->request[done].fails;
	if (done && !*has_failed_out)
		unhide(model, &end->request[done - 1]);
	for (int i = 0; i < done; i++) {
		events += !end->request[i].is_silent;
		carry_out(model, side, ep, &end->request[i]);
	}
	end->requests -= done;
	memmove(end->request, end->request + done, sizeof(end->request[0]) * (size_t)end->requests);
	return events;
}

void model_take(struct model *model, int side, int ep)
{
	bool has_failed;
	const int events = complete(model, side, ep, &has_failed);

	if (events)
		model_step(model, OP_TAKE, side, ep)->count = events;
}

/* All that is outstanding is flushed: events, and Writes that may have been carried out. */
static void flush(struct model *model, int side, int ep, bool has_events)
{
	struct end *end = &model->end[side][ep];

	for (int i = 0; i < end->requests; i++) {
		const struct step *step = step_of(model, &end->request[i]);

		if (step->op == OP_WRITE && step_len(step))
			model->end[!side][ep].is_unknown[step->area] = true;
		if (has_events)
			model_count(model, side, ep, STREAM_REQUEST);
	}
	for (int i = 0; i < end->recvs && has_events; i++)
		model_count(model, side, ep, STREAM_RECV);
	if (has_events)
		model_count(model, side, ep, STREAM_CONN);
	end->requests = end->recvs = 0;
}

void model_free(struct model *model, int side, int ep)
{
	struct end *end = &model->end[side][ep];

	model_step(model, OP_EP_FREE, side, ep);
	model->is_ending[ep] |= end->state == END_CONNECTED || end->state == END_DRAINING;
	flush(model, side, ep, false);
	end->state = END_NONE;
}

static void end_connection(struct model *model, int ep)
{
	for (int side = 0; side < SIDES; side++) {
		struct end *end = &model->end[side][ep];

		if (end->state != END_CONNECTED && end->state != END_DRAINING)
			continue;
		flush(model, side, ep, true);
		end->state = END_OVER;
	}
	model->is_ending[ep] = model->is_racy[ep] = false;
}

static void settle_connection(struct model *model, int ep)
{
	bool is_ending = model->is_ending[ep];

	for (int side = 0; side < SIDES && !model->is_racy[ep]; side++) {
		struct end *end = &model->end[side][ep];
		bool has_failed;
		const int events = complete(model, side, ep, &has_failed);

		for (int i = 0; i < events; i++)
			model_count(model, side, ep, STREAM_REQUEST);
		is_ending |= has_failed || (end->state == END_DRAINING && !end->requests);
	}
	if (is_ending)
		end_connection(model, ep);
}

/* Which areas of the end are known, and changed since they were last compared? */
static unsigned to_observe(struct model *model, int side, int ep)
{
	struct end *end = &model->end[side][ep];
	const struct end *peer = &model->end[!side][ep];
	unsigned areas = 0;

	for (int area = 0; area < AREAS; area++) {
		bool is_pending = false;

		for (int i = 0; i < peer->requests; i++) {
			const struct step *step = step_of(model, &peer->request[i]);

			is_pending |= step->op == OP_WRITE && (int)step->area == area;
		}
		if (!end->is_dirty[area] || end->is_unknown[area] || is_pending)
			continue;
		end->is_dirty[area] = false;
		areas |= 1u << area;
	}
	return areas;
}

void model_settle(struct model *model)
{
	struct settle *now = model_now(model);

	for (int ep = 0; ep < model->sequence->eps; ep++)
		settle_connection(model, ep);
	for (int side = 0; side < SIDES; side++) {
		unsigned senders = 0;

		for (int ep = 0; ep < model->sequence->eps; ep++) {
			now->observe[side][ep] = to_observe(model, side, ep);
			model->end[side][ep].busy = 0;
			if (model_first_waiting(model, !side, ep))
				senders |= 1u << ep;
		}
		model->srq_busy[side] = 0;
		model->senders[side] = senders;
	}
	model->may_hide = false;
	model_step(model, OP_SETTLE, 0, 0)->count = model->sequence->settles++;
	if (model->sequence->settles == SETTLES)
		abort();
}
