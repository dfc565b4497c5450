// SPDX-License-Identifier: BSD-2-Clause
/* Random posts; see the header. */
#include "posts.h"

#define WINDOW_LEN 40000u

uint32_t pick_len(struct model *model, uint32_t limit)
{
	static const uint32_t lens[] = {
		0,    1,    7,	  64,	64,   64,   200,  500,	 1000,	1023,  1024,  2000,
		4000, 4064, 4095, 4096, 4097, 8191, 8192, 12000, 20000, 32768, 65536, 100000,
	};
	const uint32_t len = lens[model_random(model, sizeof(lens) / sizeof(lens[0]))];

	return len <= limit ? len : model_random(model, limit + 1);
}

DAT_COMPLETION_FLAGS pick_flags(struct model *model, int side)
{
	unsigned flags = 0;

	if (!model_random(model, 4))
		flags |= DAT_COMPLETION_SUPPRESS_FLAG;
	if (!model_random(model, 4))
		flags |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	if (!model_random(model, 6))
		flags |= DAT_COMPLETION_BARRIER_FENCE_FLAG;
	if (model->sequence->shape[side].is_unsignalled && model_random(model, 2))
		flags |= DAT_COMPLETION_UNSIGNALLED_FLAG;
	return (DAT_COMPLETION_FLAGS)flags;
}

void pick_segments(struct model *model, struct step *step, uint32_t len)
{
	uint32_t rest = len;

	step->segments = model_random(model, 3) ? 1 : 1 + (int)model_random(model, SEGMENTS);
	if (!len && !model_random(model, 3))
		step->segments = 0;
	for (int i = 0; i < step->segments; i++) {
		const uint32_t most = rest < SEGMENT ? rest : SEGMENT;

		step->len[i] = i + 1 < step->segments ? model_random(model, most + 1) : rest;
		rest -= step->len[i];
	}
	if (step->segments > 1 && step->len[step->segments - 1] > SEGMENT) {
		step->segments = 1;
		step->len[0] = len;
	}
}

/* --- messages --- */

/* The longest message that may be posted now. False: none. */
static bool message_limit(struct model *model, int side, int ep, uint32_t *limit)
{
	const struct posted_recv *recv = model_next_recv(model, side, ep);
	const uint32_t waiting = model_waiting(model, side, ep);

	if (recv) {
		*limit = *limit < recv->len ? *limit : recv->len;
		return !recv->is_doomed;
	}
	*limit = *limit < WAITING - waiting ? *limit : WAITING - waiting;
	if (!model->sequence->shape[!side].has_srq)
		return true;
	/* which endpoint gets the next shared Receive must not depend on time */
	*limit = *limit < SRQ_LEN ? *limit : SRQ_LEN;
	for (int other = 0; other < model->sequence->eps; other++)
		if (other != ep && model_first_waiting(model, side, other))
			return false;
	return !(model->senders[!side] & ~(1u << ep));
}

bool post_send(struct model *model, int side, int ep, uint32_t limit)
{
	struct step *step;

	if (!model_has_room(model, side, ep) || !message_limit(model, side, ep, &limit))
		return false;
	step = model_step(model, OP_SEND, side, ep);
	step->flags = pick_flags(model, side);
	pick_segments(model, step, pick_len(model, limit));
	model_request(model, step, false);
	return true;
}

bool post_recv(struct model *model, int side, int ep)
{
	const struct step *waiting = model_first_waiting(model, !side, ep);
	uint32_t len = pick_len(model, MESSAGE);
	struct step *step;

	if (!model_has_recv_room(model, side, ep))
		return false;
	if (model->sequence->shape[side].has_srq) {
		step = model_step(model, OP_SRQ_RECV, side, ep);
		step->segments = 1;
		step->len[0] = SRQ_LEN;
	} else {
		if (waiting && len < step_len(waiting))
			len = step_len(waiting);
		step = model_step(model, OP_RECV, side, ep);
		pick_segments(model, step, len);
	}
	model_recv(model, step);
	return true;
}

/* --- RDMA and binds --- */

static bool has_posted(const struct model *model, int side, int ep, enum op op, enum area area)
{
	const struct end *end = &model->end[side][ep];

	for (int i = 0; i < end->requests; i++) {
		const struct step *step = &model->sequence->step[end->request[i].step];

		if (op == OP_BIND
			    ? step->op == OP_BIND
			    : (step->op == OP_WRITE || step->op == OP_READ) && step->area == area)
			return true;
	}
	return false;
}

static void fence(struct step *step)
{
	step->flags =
		(DAT_COMPLETION_FLAGS)((unsigned)step->flags | DAT_COMPLETION_BARRIER_FENCE_FLAG);
}

/* DTO-42: what follows a Read may start before that has its bytes. */
static void fence_if_overlapping(const struct model *model, struct step *step)
{
	const struct end *end = &model->end[step->side][step->ep];

	for (int i = 0; i < end->requests; i++) {
		const struct step *read = &model->sequence->step[end->request[i].step];

		if (read->op == OP_READ && read->area == step->area &&
		    read->offset < step->offset + step->range &&
		    step->offset < read->offset + read->range)
			fence(step);
	}
}

/* Chooses the remote range of a Read or Write. */
static bool pick_remote(struct model *model, struct step *step)
{
	const struct end *peer = &model->end[!step->side][step->ep];
	const unsigned needed = step->op == OP_READ ? DAT_MEM_PRIV_REMOTE_READ_FLAG
						    : DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	const struct step *bind = peer->bound >= 0 ? &model->sequence->step[peer->bound] : NULL;

	if (bind && ((unsigned)bind->privileges & needed) && model_random(model, 2) &&
	    !has_posted(model, !step->side, step->ep, OP_BIND, AREA_WINDOW)) {
		step->area = AREA_WINDOW;
		step->key = peer->bound;
		step->range = pick_len(model, bind->range);
		step->offset = bind->offset + model_random(model, bind->range - step->range + 1);
	} else {
		step->area = AREA_TARGET;
		step->key = model->target[!step->side];
		step->range = pick_len(model, MESSAGE);
		step->offset = model_random(model, AREA - step->range + 1);
	}
	if (!step->range && model_random(model, 2))
		step->key = KEY_UNKNOWN; /* is not looked at: EP-RDMAW-08, EP-RDMAR-07 */
	return step->op == OP_WRITE || !peer->is_unknown[step->area];
}

static bool post_rdma(struct model *model, enum op op, int side, int ep)
{
	struct step wanted = {.op = op, .side = side, .ep = ep, .source = -1};
	struct step *step;

	if (!model_has_room(model, side, ep) || !pick_remote(model, &wanted))
		return false;
	step = model_step(model, op, side, ep);
	*step = wanted;
	step->flags = pick_flags(model, side);
	pick_segments(model, step, step->range);
	if (op == OP_READ && step->segments && step->len[0] + 3 <= SEGMENT &&
	    !model_random(model, 4))
		step->len[0] += 3; /* the local side may be longer */
	if (op == OP_WRITE)
		fence_if_overlapping(model, step);
	model_request(model, step, false);
	return true;
}

bool post_write(struct model *model, int side, int ep)
{
	return post_rdma(model, OP_WRITE, side, ep);
}

bool post_read(struct model *model, int side, int ep)
{
	return post_rdma(model, OP_READ, side, ep);
}

/* DTO-30 */
bool post_fenced(struct model *model, int side, int ep)
{
	uint32_t limit = MESSAGE;
	struct step *read, *step;
	bool may_send;

	if (model->end[side][ep].requests + 2 > model->sequence->requests ||
	    !post_read(model, side, ep))
		return false;
	read = &model->sequence->step[model->sequence->steps - 1];
	read->segments = 1;
	read->len[0] = read->range;
	may_send = message_limit(model, side, ep, &limit) && limit >= read->range;
	step = model_step(model, may_send ? OP_SEND : OP_WRITE, side, ep);
	step->source = model_number(model, read);
	step->segments = 1;
	step->len[0] = step->range = read->range;
	step->key = model->target[!side];
	step->offset = model_random(model, AREA - step->range + 1);
	step->flags = pick_flags(model, side);
	fence(step);
	model_request(model, step, false);
	return true;
}

bool post_bind(struct model *model, int side, int ep)
{
	static const unsigned privileges[] = {0x02, 0x20, 0x22, 0x33};
	struct step *step;

	if (!model_has_room(model, side, ep) || has_posted(model, !side, ep, OP_WRITE, AREA_WINDOW))
		return false;
	step = model_step(model, OP_BIND, side, ep);
	step->flags = (DAT_COMPLETION_FLAGS)((unsigned)pick_flags(model, side) &
					     ~(unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	step->privileges = (DAT_MEM_PRIV_FLAGS)privileges[model_random(model, 4)];
	if (model_random(model, 6)) {
		step->range = 1 + model_random(model, WINDOW_LEN);
		step->offset = model_random(model, AREA - step->range + 1);
	}
	model_request(model, step, false);
	return true;
}

bool post_willing(struct model *model, int side, int ep)
{
	switch (model_random(model, 6)) {
	case 0:
	case 1:
		return post_write(model, side, ep);
	case 2:
		return post_read(model, side, ep);
	case 3:
		return post_bind(model, side, ep);
	default:
		return model_next_recv(model, side, ep) && post_send(model, side, ep, MESSAGE);
	}
}

bool post_request(struct model *model, int side, int ep)
{
	switch (model_random(model, 12)) {
	case 0:
	case 1:
	case 2:
		return post_write(model, side, ep);
	case 3:
	case 4:
		return post_read(model, side, ep);
	case 5:
		return post_fenced(model, side, ep);
	case 6:
		return post_bind(model, side, ep);
	default:
		return post_send(model, side, ep, MESSAGE);
	}
}

/* --- refused posts --- */

void post_refused(struct model *model, int side, int ep, enum mistake mistake, enum op op)
{
	struct step *step = model_step(model, op, side, ep);

	step->mistake = mistake;
	step->slot = QUEUE + 1; /* which no outstanding request uses */
	step->key = model->target[!side];
	step->segments = 1;
	step->len[0] = step->range = 1 + model_random(model, 5000);
	step->privileges = DAT_MEM_PRIV_ALL_FLAG;
	if (mistake == MISTAKE_LENGTH)
		step->range += op == OP_READ ? 1 : -1;
}

void post_mistake(struct model *model, int side, int ep)
{
	static const enum op ops[] = {OP_SEND, OP_WRITE, OP_READ, OP_BIND, OP_RECV};
	enum op op = ops[model_random(model, 5)];
	enum mistake mistake = (enum mistake)(1 + model_random(model, 4));

	if (op == OP_BIND && mistake != MISTAKE_FLAGS)
		mistake = MISTAKE_BOUNDS;
	if ((op == OP_SEND || op == OP_RECV) && mistake == MISTAKE_LENGTH)
		mistake = MISTAKE_SEGMENTS;
	post_refused(model, side, ep, mistake, op);
}

/* --- requests that fail --- */

/*
 * DTO-42, TERM-11: the Reads before a request that fails may fail, too, unless it waits for them.
 */
static void fence_if_reading(const struct model *model, struct step *step)
{
	const struct end *end = &model->end[step->side][step->ep];

	for (int i = 0; i < end->requests; i++)
		if (model->sequence->step[end->request[i].step].op == OP_READ)
			fence(step);
}

/* A Read or Write that the peer must refuse: DTO-90 to DTO-97, RMR-BIND-09, RMR-BIND-10. */
static void bad_remote(struct model *model, struct step *step)
{
	struct end *peer = &model->end[!step->side][step->ep];
	const unsigned kind = model_random(model, 4);

	step->area = AREA_TARGET;
	step->offset = model_random(model, AREA - step->range);
	if (kind == 0 && peer->bound >= 0) { /* one byte beyond its window */
		const struct step *bind = &model->sequence->step[peer->bound];

		step->area = AREA_WINDOW;
		step->key = peer->bound;
		step->offset = bind->offset + bind->range + 1 - step->range;
		if (step->range > bind->range + 1)
			step->offset = bind->offset + bind->range;
		peer->is_unknown[AREA_WINDOW] |= step->op == OP_WRITE; /* on iWARP: DTO-94 */
	} else if (kind == 1 && peer->old_bind >= 0) {
		step->area = AREA_WINDOW;
		step->key = peer->old_bind;
	} else if (kind == 2) {
		step->key = model->old_target[!step->side];
	} else {
		step->key = model_random(model, 2) ? KEY_UNKNOWN : KEY_ZERO;
	}
}

static void post_bad_rdma(struct model *model, enum op op, int side, int ep)
{
	struct step *step = model_step(model, op, side, ep);

	step->range = 1 + model_random(model, model_random(model, 2) ? 200 : 20000);
	step->flags = pick_flags(model, side);
	bad_remote(model, step);
	fence_if_reading(model, step);
	pick_segments(model, step, step->range);
	model_request(model, step, true);
	/* What is posted behind is flushed. Behind a Read only Reads: others may start earlier. */
	for (uint32_t n = model_random(model, 3); n && model_has_room(model, side, ep); n--) {
		if (op == OP_READ || !model_random(model, 3))
			post_read(model, side, ep);
		else
			post_write(model, side, ep);
	}
}

/* DTO-79: longer than its Receive; or the Receive is in a region that is freed, DTO-96. */
static void post_bad_send(struct model *model, int side, int ep)
{
	const struct posted_recv *recv;
	struct step *step;

	if (!model_next_recv(model, side, ep))
		post_recv(model, !side, ep);
	recv = model_next_recv(model, side, ep);
	if (!recv || recv->len >= MESSAGE)
		return;
	step = model_step(model, OP_SEND, side, ep);
	step->flags = pick_flags(model, side);
	pick_segments(model, step, recv->len + 1 + model_random(model, MESSAGE - recv->len));
	if (recv->is_doomed)
		pick_segments(model, step, 1 + model_random(model, 10000));
	fence_if_reading(model, step);
	model_request(model, step, true);
}

void post_bad(struct model *model, int side, int ep)
{
	const struct posted_recv *recv;

	for (uint32_t n = model_random(model, 4); n; n--) {
		recv = model_next_recv(model, side, ep);
		if (model->end[side][ep].requests + 1 < model->sequence->requests &&
		    !(recv && recv->is_doomed))
			post_willing(model, side, ep);
	}
	if (!model_random(model, 3))
		post_bad_send(model, side, ep);
	else
		post_bad_rdma(model, model_random(model, 2) ? OP_READ : OP_WRITE, side, ep);
}
