// SPDX-License-Identifier: BSD-2-Clause
/* The calls of a sequence, one function each. */
#include "side.h"

#define UNDEFINED_FLAG 0x40u

static const struct step *step_at(const struct side *side, int number)
{
	return &side->sequence->step[number];
}

static DAT_COMPLETION_FLAGS flags_of(const struct step *step)
{
	return (DAT_COMPLETION_FLAGS)((unsigned)step->flags |
				      (step->mistake == MISTAKE_FLAGS ? UNDEFINED_FLAG : 0));
}

/* --- requests --- */

static DAT_RETURN send_message(struct side *side, int number)
{
	const struct step *step = step_at(side, number);
	DAT_LMR_TRIPLET iov[BAD_SEGMENTS];
	const DAT_COUNT segments = memory_segments(side, step, iov);

	if (step->source < 0)
		memory_fill_step(side, step, (uint64_t)number + 1);
	return dat_ep_post_send(side->ep[step->ep].ep, segments, segments ? iov : NULL,
				dt_cookie((uint64_t)number), flags_of(step));
}

static DAT_RMR_TRIPLET remote_of(const struct side *side, const struct step *step)
{
	const struct shared *shared = side->shared;
	DAT_RMR_TRIPLET remote = {
		.target_address = shared->area[!side->me][step->area] + step->offset +
				  (DAT_VADDR)step->ep * AREA,
		.segment_length = step->range,
	};

	if (step->key >= 0)
		remote.rmr_context = shared->key[step->key];
	else if (step->key == KEY_FIRST)
		remote.rmr_context = shared->first_key[!side->me];
	else if (step->key == KEY_UNKNOWN)
		remote.rmr_context = 0x7ffff;
	return remote;
}

static DAT_RETURN rdma_write(struct side *side, int number)
{
	const struct step *step = step_at(side, number);
	const DAT_RMR_TRIPLET remote = remote_of(side, step);
	DAT_LMR_TRIPLET iov[BAD_SEGMENTS];
	const DAT_COUNT segments = memory_segments(side, step, iov);

	if (step->source < 0)
		memory_fill_step(side, step, (uint64_t)number + 1);
	return dat_ep_post_rdma_write(side->ep[step->ep].ep, segments, segments ? iov : NULL,
				      dt_cookie((uint64_t)number), &remote, flags_of(step));
}

static DAT_RETURN rdma_read(struct side *side, int number)
{
	const struct step *step = step_at(side, number);
	const DAT_RMR_TRIPLET remote = remote_of(side, step);
	DAT_LMR_TRIPLET iov[BAD_SEGMENTS];
	const DAT_COUNT segments = memory_segments(side, step, iov);

	memory_fill_step(side, step, 0);
	return dat_ep_post_rdma_read(side->ep[step->ep].ep, segments, segments ? iov : NULL,
				     dt_cookie((uint64_t)number), &remote, flags_of(step));
}

static DAT_RETURN bind_window(struct side *side, int number)
{
	const struct step *step = step_at(side, number);
	const struct memory *memory = &side->region[REGION_WINDOW];
	const DAT_RMR_COOKIE cookie = {.as_64 = (uint64_t)number};
	DAT_LMR_TRIPLET range = {
		.lmr_context = memory->lkey,
		.virtual_address = (uintptr_t)memory->p + (size_t)step->ep * AREA + step->offset,
		.segment_length = step->range,
	};

	if (step->mistake == MISTAKE_BOUNDS)
		range.virtual_address = (uintptr_t)memory->p + memory->len - step->range + 1;
	return dat_rmr_bind(side->ep[step->ep].rmr, &range, step->privileges, side->ep[step->ep].ep,
			    cookie, flags_of(step), &side->shared->key[number]);
}

/* --- Receives --- */

static DAT_RETURN recv_message(struct side *side, int number)
{
	const struct step *step = step_at(side, number);
	DAT_LMR_TRIPLET iov[BAD_SEGMENTS];
	const DAT_COUNT segments = memory_segments(side, step, iov);

	memory_fill_step(side, step, 0);
	return dat_ep_post_recv(side->ep[step->ep].ep, segments, segments ? iov : NULL,
				dt_cookie((uint64_t)number), flags_of(step));
}

static DAT_RETURN srq_recv(struct side *side, int number)
{
	DAT_LMR_TRIPLET segment = {.lmr_context = side->region[REGION_SINK].lkey,
				   .segment_length = SRQ_LEN};
	DAT_RETURN ret;
	int slot = 0;

	(void)number;
	while (slot < SRQ_QUEUE && side->is_srq_slot_used[slot])
		slot++;
	memset(memory_srq_slot(side, slot), 0xee, SRQ_LEN);
	segment.virtual_address = (uintptr_t)memory_srq_slot(side, slot);
	ret = dat_srq_post_recv(side->srq, 1, &segment, dt_cookie(COOKIE_SRQ + (uint64_t)slot));
	if (ret == DAT_SUCCESS)
		side->is_srq_slot_used[slot] = true;
	return ret;
}

/* --- endpoints --- */

static DAT_RETURN disconnect(struct side *side, int number)
{
	const struct step *step = step_at(side, number);

	return dat_ep_disconnect(side->ep[step->ep].ep, step->is_graceful ? DAT_CLOSE_GRACEFUL_FLAG
									  : DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN ep_create(struct side *side, int number)
{
	const int ep = step_at(side, number)->ep;
	const struct shape_side *shape = &side->sequence->shape[side->me];
	DAT_EVD_HANDLE evd[STREAMS];
	DAT_EP_ATTR attr;

	for (int i = 0; i < STREAMS; i++)
		evd[i] = side->evd[sequence_evd(side->sequence, side->me, ep, (enum stream)i)];
	dt_ep_attr(&side->ia, &attr);
	attr.max_request_dtos = side->sequence->requests;
	attr.max_recv_dtos = shape->has_srq ? 0 : side->sequence->recvs;
	attr.max_recv_iov = attr.max_request_iov = SEGMENTS;
	attr.max_rdma_read_iov = attr.max_rdma_write_iov = SEGMENTS;
	attr.request_completion_flags = shape->is_unsignalled ? DAT_COMPLETION_UNSIGNALLED_FLAG
							      : DAT_COMPLETION_DEFAULT_FLAG;
	attr.recv_completion_flags = shape->is_solicited ? DAT_COMPLETION_SOLICITED_WAIT_FLAG
							 : DAT_COMPLETION_DEFAULT_FLAG;
	if (shape->has_srq)
		return dat_ep_create_with_srq(side->ia.ia, side->ia.pz, evd[STREAM_RECV],
					      evd[STREAM_REQUEST], evd[STREAM_CONN], side->srq,
					      &attr, &side->ep[ep].ep);
	return dat_ep_create(side->ia.ia, side->ia.pz, evd[STREAM_RECV], evd[STREAM_REQUEST],
			     evd[STREAM_CONN], &attr, &side->ep[ep].ep);
}

static DAT_RETURN ep_free(struct side *side, int number)
{
	struct side_ep *ep = &side->ep[step_at(side, number)->ep];
	const DAT_RETURN ret = dat_ep_free(ep->ep);

	ep->ep = DAT_HANDLE_NULL;
	return ret;
}

static DAT_RETURN ep_reset(struct side *side, int number)
{
	return dat_ep_reset(side->ep[step_at(side, number)->ep].ep);
}

/* --- regions --- */

static DAT_RETURN region_free(struct side *side, int number)
{
	return dat_lmr_free(side->region[step_at(side, number)->region].lmr);
}

static DAT_RETURN region_create(struct side *side, int number)
{
	memory_create(side, step_at(side, number)->region, &side->shared->key[number]);
	return DAT_SUCCESS;
}

/* --- all of them --- */

static DAT_RETURN take(struct side *side, int number)
{
	const struct step *step = step_at(side, number);

	events_take(side, sequence_evd(side->sequence, side->me, step->ep, STREAM_REQUEST),
		    step->count);
	return DAT_SUCCESS;
}

DAT_RETURN call_run(struct side *side, int number)
{
	static DAT_RETURN (*const calls[])(struct side * side, int number) = {
		[OP_SEND] = send_message,
		[OP_WRITE] = rdma_write,
		[OP_READ] = rdma_read,
		[OP_BIND] = bind_window,
		[OP_RECV] = recv_message,
		[OP_SRQ_RECV] = srq_recv,
		[OP_DISCONNECT] = disconnect,
		[OP_EP_CREATE] = ep_create,
		[OP_EP_FREE] = ep_free,
		[OP_EP_RESET] = ep_reset,
		[OP_LMR_FREE] = region_free,
		[OP_LMR_CREATE] = region_create,
		[OP_TAKE] = take,
	};

	return calls[step_at(side, number)->op](side, number);
}

void call_connect(struct side *side, int number)
{
	const struct step *step = step_at(side, number);
	struct side_ep *ep = &side->ep[step->ep];
	DAT_RETURN ret;

	*ep = (struct side_ep){.ep = ep->ep, .rmr = ep->rmr};
	side->shared->sent[side->me][step->ep] = side->shared->received[side->me][step->ep] = 0;
	side_meet(side); /* posted early: before there is a connection */
	if (step->side == side->me)
		ret = dat_ep_connect(ep->ep, side->ia.attr.ia_address_ptr,
				     side->shared->qual[!side->me], DAT_TIMEOUT_INFINITE, 0, NULL,
				     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	else
		ret = dat_cr_accept(dt_request(&side->listener), ep->ep, 0, NULL);
	side_trace(side, "%d connect: %s", number, side_code(ret));
}
