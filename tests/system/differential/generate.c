// SPDX-License-Identifier: BSD-2-Clause
/* Writes a sequence: its shape, then one part after the other, each of which ends by a settle. */
#include "ends.h"
#include "posts.h"

#define STEPS_LIMIT (STEPS - 140) /* room for the last parts */
#define SETTLES_LIMIT (SETTLES - 24)

static void choose_shape(struct model *model)
{
	struct sequence *sequence = model->sequence;

	sequence->eps = 1 + (int)model_random(model, EPS);
	sequence->requests = 3 + (int)model_random(model, QUEUE - 2);
	sequence->recvs = 3 + (int)model_random(model, QUEUE - 2);
	for (int side = 0; side < SIDES; side++) {
		struct shape_side *shape = &sequence->shape[side];

		shape->layout = (enum layout)model_random(model, 3);
		shape->has_srq = !model_random(model, 4);
		shape->is_unsignalled = !model_random(model, 4);
		shape->is_solicited = shape->layout != LAYOUT_ONE && !model_random(model, 4);
		shape->waits =
			!shape->is_unsignalled && !shape->is_solicited && model_random(model, 2);
	}
}

/* Endpoints that are connected, with Receives that are posted before that. */
static void connect_ends(struct model *model, int ep)
{
	for (int side = 0; side < SIDES; side++) {
		struct end *end = &model->end[side][ep];

		if (end->state == END_NONE)
			model_step(model, OP_EP_CREATE, side, ep);
		end->state = END_FRESH;
		for (uint32_t n = model_random(model, 4); n; n--)
			if (!model_first_waiting(model, !side, ep))
				post_recv(model, side, ep);
	}
	model_step(model, OP_CONNECT, (int)model_random(model, SIDES), ep);
	for (int side = 0; side < SIDES; side++) {
		model_count(model, side, ep, STREAM_CONN);
		model->end[side][ep].state = END_CONNECTED;
	}
	model_settle(model);
}

static void traffic(struct model *model)
{
	const bool is_one_sided = !model_random(model, 4);
	int side = (int)model_random(model, SIDES);

	for (uint32_t n = 1 + model_random(model, 14); n; n--) {
		const int ep = (int)model_random(model, (uint32_t)model->sequence->eps);

		if (!is_one_sided)
			side = (int)model_random(model, SIDES);
		if (!model_is_connected(model, ep))
			continue;
		if (!model_random(model, 12))
			post_mistake(model, side, ep);
		else if (!model_random(model, 3))
			post_recv(model, side, ep);
		else
			post_request(model, side, ep);
	}
	model_settle(model);
}

/*
 * COMPAT-48: each Send is posted when the one before has completed, on whatever endpoint, and the
 * peer takes its events at the end.
 */
static void stream(struct model *model, int side)
{
	const int eps = model->sequence->eps;

	for (int ep = 0; ep < eps; ep++)
		for (int n = 0; n < 4 && model_is_connected(model, ep); n++)
			post_recv(model, !side, ep);
	model_settle(model);
	for (uint32_t n = 2 + model_random(model, 10); n; n--) {
		const int ep = (int)model_random(model, (uint32_t)eps);

		if (!model_is_connected(model, ep) || model->end[side][ep].requests ||
		    !model_next_recv(model, side, ep))
			continue;
		if (post_send(model, side, ep, MESSAGE))
			model_take(model, side, ep);
	}
	model_now(model)->has_order[!side] =
		model->sequence->shape[!side].layout != LAYOUT_SEPARATE;
	model_settle(model);
}

/* DTO-111: as many requests as the queue has room for, and one more. */
static void fill_requests(struct model *model, int side, int ep)
{
	static const enum op requests[] = {OP_SEND, OP_WRITE, OP_READ, OP_BIND};

	if (model_next_recv(model, side, ep) || !post_send(model, side, ep, 1500))
		return;
	while (model_has_room(model, side, ep))
		if (model_random(model, 4) || !post_write(model, side, ep))
			if (!post_send(model, side, ep, 1500))
				break;
	if (!model_has_room(model, side, ep))
		post_refused(model, side, ep, MISTAKE_FULL, requests[model_random(model, 4)]);
	model_settle(model);
}

/* DTO-112 */
static void fill_recvs(struct model *model, int side, int ep)
{
	for (int other = 0; other < model->sequence->eps; other++)
		if (model_first_waiting(model, !side, other))
			return;
	while (model_has_recv_room(model, side, ep))
		post_recv(model, side, ep);
	post_refused(model, side, ep, MISTAKE_FULL,
		     model->sequence->shape[side].has_srq ? OP_SRQ_RECV : OP_RECV);
	model_settle(model);
}

/* --- regions --- */

static bool may_free(const struct model *model, int side, enum region region)
{
	for (int ep = 0; ep < model->sequence->eps; ep++) {
		const struct end *end = &model->end[side][ep];
		const struct end *peer = &model->end[!side][ep];

		if (end->requests || (region == REGION_TARGET && peer->requests))
			return false;
		if (region == REGION_SINK && model->srq[side])
			return false;
	}
	return true;
}

static bool is_window_bound(const struct model *model, int side)
{
	for (int ep = 0; ep < EPS; ep++)
		if (model->end[side][ep].bound >= 0)
			return true;
	return false;
}

/* Frees a region that no request uses, tries to use it, and makes it again. */
static void renew_region(struct model *model, int side, int ep)
{
	static const enum op users[REGIONS] = {OP_SEND, OP_RECV, OP_SETTLE, OP_SETTLE};
	const enum region region = (enum region)model_random(model, REGIONS);
	struct step *step;

	if (!may_free(model, side, region))
		return;
	model_step(model, OP_LMR_FREE, side, ep)->region = region;
	if (users[region] != OP_SETTLE && model->end[side][ep].state == END_CONNECTED)
		post_refused(model, side, ep, MISTAKE_FREED, users[region]);
	if (region != REGION_WINDOW || !is_window_bound(model, side)) { /* LMR-FREE-02 */
		step = model_step(model, OP_LMR_CREATE, side, ep);
		step->region = region;
		if (region == REGION_TARGET) {
			model->old_target[side] = model->target[side];
			model->target[side] = model_number(model, step);
		}
	}
	for (int other = 0; region == REGION_SINK && other < EPS; other++)
		for (int i = 0; i < model->end[side][other].recvs; i++)
			model->end[side][other].recv[i].is_doomed = true;
	model_settle(model);
}

/* --- the sequence --- */

static void connected_part(struct model *model, int side, int ep)
{
	switch (model_random(model, 20)) {
	case 0:
	case 1:
		stream(model, side);
		break;
	case 2:
		fill_requests(model, side, ep);
		break;
	case 3:
		fill_recvs(model, side, ep);
		break;
	case 4:
	case 5:
		renew_region(model, side, ep);
		break;
	case 6:
	case 7:
		if (!model->end[side][ep].requests)
			post_bad(model, side, ep);
		model_settle(model);
		break;
	case 8:
	case 9:
		end_connected(model, side, ep);
		break;
	default:
		traffic(model);
		break;
	}
}

static bool is_draining(const struct model *model, int ep)
{
	return model->end[0][ep].state == END_DRAINING || model->end[1][ep].state == END_DRAINING;
}

void sequence_generate(struct sequence *sequence, uint64_t seed, unsigned number)
{
	struct model model;

	*sequence = (struct sequence){.seed = seed, .number = number};
	model_start(&model, sequence);
	choose_shape(&model);
	for (int ep = 0; ep < sequence->eps; ep++)
		connect_ends(&model, ep);
	for (uint32_t parts = 4 + model_random(&model, 14); parts; parts--) {
		const int ep = (int)model_random(&model, (uint32_t)sequence->eps);

		if (sequence->steps > STEPS_LIMIT || sequence->settles > SETTLES_LIMIT)
			break;
		if (model_is_connected(&model, ep)) {
			connected_part(&model, (int)model_random(&model, SIDES), ep);
		} else if (is_draining(&model, ep)) {
			end_draining(&model, ep);
		} else {
			end_over(&model, ep);
			connect_ends(&model, ep);
		}
	}
	for (int ep = 0; ep < sequence->eps; ep++) {
		if (model_is_connected(&model, ep))
			end_connected(&model, (int)model_random(&model, SIDES), ep);
		end_abrupt(&model, ep);
	}
}
