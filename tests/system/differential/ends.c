// SPDX-License-Identifier: BSD-2-Clause
/* Ends of connections; see the header. */
#include "ends.h"

#include "posts.h"

static void disconnect(struct model *model, int side, int ep, bool is_graceful)
{
	model_step(model, OP_DISCONNECT, side, ep)->is_graceful = is_graceful;
	if (is_graceful && model->end[side][ep].state == END_CONNECTED)
		model->end[side][ep].state = END_DRAINING;
	if (!is_graceful)
		model->is_ending[ep] = true;
}

/* Some requests that wait for Receives, of every kind and with every flag: EP-DISC-10, DTO-14. */
static void post_waiting(struct model *model, int side, int ep)
{
	if (model_next_recv(model, side, ep))
		return;
	model->may_hide = true;
	if (!post_send(model, side, ep, 2000)) {
		model->may_hide = false;
		return;
	}
	for (uint32_t n = model_random(model, 5); n; n--)
		post_request(model, side, ep);
	model_settle(model);
	model->may_hide = true;
}

/* EP-DISC-13, EP-DISC-16: what was posted before is carried out and received. */
static void post_and_disconnect(struct model *model, int side, int ep)
{
	for (uint32_t n = model_random(model, 6); n; n--)
		if (model_random(model, 2))
			post_request(model, side, ep);
		else
			post_willing(model, side, ep);
	disconnect(model, side, ep, true);
}

/* One request; a message that fits into any of the Receives. */
static bool post_one(struct model *model, int side, int ep)
{
	const struct end *peer = &model->end[!side][ep];
	uint32_t limit = MESSAGE;

	switch (model_random(model, 4)) {
	case 0:
		return post_write(model, side, ep);
	case 1:
		return post_read(model, side, ep);
	case 2:
		return !model->is_racy[ep] && post_bind(model, side, ep);
	default:
		for (int i = 0; i < peer->recvs; i++) {
			if (peer->recv[i].is_doomed)
				return false;
			if (limit > peer->recv[i].len)
				limit = peer->recv[i].len;
		}
		return post_send(model, side, ep, limit);
	}
}

/* EP-DISC-11: it may be carried out or not, but nothing succeeds behind what did not. */
static void post_and_abort(struct model *model, int side, int ep)
{
	struct step *step;

	if (model->sequence->shape[!side].has_srq) { /* how many of its Receives are left? */
		disconnect(model, side, ep, false);
		return;
	}
	model->is_racy[ep] = true;
	for (uint32_t n = 1 + model_random(model, 5); n; n--) {
		if (!post_one(model, side, ep))
			continue;
		step = &model->sequence->step[model->sequence->steps - 1];
		step->flags = DAT_COMPLETION_DEFAULT_FLAG;
	}
	step = model_step(model, OP_DISCONNECT, side, ep);
	step->is_racy = true;
	model->is_ending[ep] = true;
}

/* DTO-52: what has completed is received, although the sender disconnects at once. */
static void complete_and_abort(struct model *model, int side, int ep)
{
	while (model_next_recv(model, side, ep) && post_send(model, side, ep, MESSAGE))
		;
	model_take(model, side, ep);
	if (model_random(model, 3))
		disconnect(model, side, ep, false);
	else
		model_free(model, side, ep);
}

static void both_disconnect(struct model *model, int ep)
{
	const bool is_graceful = model_random(model, 2);

	disconnect(model, 0, ep, is_graceful);
	disconnect(model, 1, ep, model_random(model, 2));
	model->is_ending[ep] = true;
}

void end_connected(struct model *model, int side, int ep)
{
	bool is_idle;

	if (model_random(model, 2))
		post_waiting(model, model_random(model, 2) ? side : !side, ep);
	is_idle = !model->end[side][ep].requests;
	switch (model_random(model, 8)) {
	case 0:
		disconnect(model, side, ep, false);
		break;
	case 1:
		model_free(model, side, ep);
		break;
	case 2:
		both_disconnect(model, ep);
		break;
	case 3:
		if (is_idle && !model->may_hide)
			post_and_abort(model, side, ep);
		else
			disconnect(model, side, ep, false);
		break;
	case 4:
		if (is_idle && !model->may_hide)
			complete_and_abort(model, side, ep);
		else
			disconnect(model, side, ep, false);
		break;
	case 5:
		if (is_idle && !model->may_hide)
			post_and_disconnect(model, side, ep);
		else
			disconnect(model, side, ep, false);
		break;
	default:
		disconnect(model, side, ep, is_idle || !model->may_hide);
		break;
	}
	model_settle(model);
}

void end_draining(struct model *model, int ep)
{
	static const enum op requests[] = {OP_SEND, OP_WRITE, OP_READ, OP_BIND};
	const int side = model->end[0][ep].state == END_DRAINING ? 0 : 1;

	switch (model_random(model, 8)) {
	case 0:
		disconnect(model, side, ep, false);
		break;
	case 1:
		disconnect(model, !side, ep, model_random(model, 2));
		model->is_ending[ep] = true; /* EP-STATE-40 */
		break;
	case 2: /* EP-DISC-17, EP-DISC-19 */
		post_refused(model, side, ep, MISTAKE_STATE, requests[model_random(model, 4)]);
		disconnect(model, side, ep, true);
		break;
	case 3: /* messages to an endpoint that disconnects */
		post_recv(model, side, ep);
		if (model_next_recv(model, !side, ep) && !model->end[!side][ep].requests)
			post_send(model, !side, ep, MESSAGE);
		break;
	case 4:
		model_free(model, !side, ep);
		break;
	default: /* DTO-104: the Receives for what waits; some, or all */
		do
			post_recv(model, !side, ep);
		while (model_random(model, 3) && model_first_waiting(model, side, ep));
		break;
	}
	model_settle(model);
}

void end_abrupt(struct model *model, int ep)
{
	const int side = (int)model_random(model, SIDES);
	const enum end_state state = model->end[side][ep].state;

	if (state == END_CONNECTED || state == END_DRAINING)
		disconnect(model, side, ep, false);
	model_settle(model);
}

/* DTO-71, EP-DISC-23, and fresh endpoints or those of before. */
void end_over(struct model *model, int ep)
{
	for (int side = 0; side < SIDES; side++) {
		struct end *end = &model->end[side][ep];

		if (end->state != END_OVER)
			continue;
		for (uint32_t n = model_random(model, 4); n; n--) {
			if (!model_random(model, 4))
				post_mistake(model, side, ep);
			else if (model_random(model, 3) || model->sequence->shape[side].has_srq)
				post_one(model, side, ep);
			else
				post_recv(model, side, ep);
		}
		if (!model_random(model, 4))
			disconnect(model, side, ep, model_random(model, 2));
		model->is_ending[ep] = false;
	}
	model_settle(model);
	for (int side = 0; side < SIDES; side++) {
		struct end *end = &model->end[side][ep];

		if (end->state == END_OVER && model_random(model, 2)) {
			model_step(model, OP_EP_RESET, side, ep);
			end->state = END_FRESH;
		} else if (end->state == END_OVER) {
			model_free(model, side, ep);
		}
	}
}
