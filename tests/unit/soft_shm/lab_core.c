// SPDX-License-Identifier: BSD-2-Clause
/* Stand-ins for the functions of the core that the engine calls (lab.h). */
#include "lab.h"

#include <stdlib.h>
#include <string.h>

#include "core/ep/ep_fast.h"
#include "core/base/slab.h"
#include "core/base/thread.h"

struct core_lmr core_mem_none;

struct core_name core_object_name(const struct core_handle *cell, DAT_HANDLE_TYPE type)
{
	(void)cell;
	(void)type;
	return (struct core_name){"ep"};
}

/* The service thread does not run: the test does its work. */
int core_thread_create(pthread_t *thread_out, const struct core_thread_form *form,
		       void *(*run)(void *), void *argument)
{
	(void)thread_out;
	(void)form;
	(void)run;
	(void)argument;
	return 0;
}

void core_evd_notify_locked(struct core_evd *evd)
{
	struct lab_evd *mine = (struct lab_evd *)evd;

	mine->notified++;
}

void core_evd_overflow_locked(struct core_evd *evd, struct core_ref srq)
{
	(void)evd;
	(void)srq;
	abort();
}

/* As in evd.c. */
bool core_evd_deliver_dto_queued(struct core_evd *evd, const struct core_handle *locked,
				 DAT_EP_HANDLE ep_handle, struct core_done done,
				 DAT_DTO_COOKIE cookie, DAT_VLEN len)
{
	bool has_room;

	if (evd->cell != locked && !core_handle_enter_fast(evd->cell, DAT_HANDLE_TYPE_EVD))
		return false;
	has_room = core_evd_count_locked(evd) < evd->capacity;
	if (has_room) {
		struct core_event *slot = core_evd_slot_locked(evd);

		core_event_fill_dto(&slot->event, evd->cell, ep_handle, done, cookie,
				    DAT_DTO_SUCCESS, len);
		slot->srq = (struct core_ref){NULL, 0};
	}
	if (evd->cell != locked)
		core_lock_leave(&evd->cell->lock);
	return has_room;
}

static void raise_done(struct core_ep *ep)
{
	for (; ep->req.head < ep->req.tail; ep->req.head++) {
		struct core_req *req = core_req_at(&ep->req, ep->req.head);

		if (!req->is_done)
			return;
		req->is_done = false;
		ep->req.done--;
		if (ep->request_evd && (req->status != DAT_DTO_SUCCESS ||
					!(req->flags & DAT_COMPLETION_SUPPRESS_FLAG)))
			core_evd_post_dto(ep->request_evd, ep->cell, CORE_DONE(req->op),
					  req->cookie, req->status, req->done_len, true,
					  (struct core_ref){NULL, 0});
	}
}

struct core_ep *core_ep_enter(struct core_ref ref)
{
	void (*entering)(struct lab *) = lab_current->entering;

	lab_current->entering = NULL;
	if (entering)
		entering(lab_current);
	return ref.cell == &lab_current->cell ? &lab_current->ep : NULL;
}

void core_ep_leave(struct core_ep *ep)
{
	(void)ep;
}

void core_ep_established(struct core_ep *ep, const struct transport_conn_param *peer)
{
	LAB_MUST(peer->private_data_size <= LAB_PRIVATE_MAX);
	ep->state = DAT_EP_STATE_CONNECTED;
}

void core_ep_keep_rejection(struct core_ep *ep, const void *private_data, uint32_t size)
{
	(void)ep;
	(void)private_data;
	(void)size;
}

void core_ep_connect_failed(struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	core_ep_ended(ep, number);
}

void core_ep_ended(struct core_ep *ep, DAT_EVENT_NUMBER number)
{
	LAB_MUST(lab_current->end == 0);
	lab_current->end = number;
	ep->state = DAT_EP_STATE_DISCONNECTED;
}

void core_req_done(struct core_ep *ep, struct core_req *req, DAT_DTO_COMPLETION_STATUS status,
		   DAT_VLEN len)
{
	LAB_MUST(lab_current->end == 0);
	LAB_MUST(req->sequence >= ep->req.head && req->sequence < ep->req.tail && !req->is_done);
	req->is_done = true;
	ep->req.done++;
	req->status = status;
	req->done_len = len;
	if (!ep->request_evd) {
		lab_current->done++;
		lab_current->done_status = status;
	}
	raise_done(ep);
}

const struct core_wqe *core_recv_next(struct core_ep *ep)
{
	return core_recv_is_posted(ep) ? core_recv_oldest(ep) : NULL;
}

static void recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
		      bool is_solicited)
{
	const struct core_wqe *receive = core_recv_next(ep);

	LAB_MUST(lab_current->end == 0 && receive);
	ep->recv.head++;
	lab_current->receive_solicited = is_solicited;
	if (ep->recv_evd) {
		core_evd_post_dto(ep->recv_evd, ep->cell, CORE_DONE(CORE_RECEIVED), receive->cookie,
				  status, len, true, (struct core_ref){NULL, 0});
		return;
	}
	lab_current->received++;
	lab_current->receive_status = status;
	lab_current->receive_len = len;
}

void core_recv_done(struct core_ep *ep, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len,
		    bool is_solicited)
{
	const struct core_wqe *receive = core_recv_next(ep);

	LAB_MUST(status != DAT_DTO_SUCCESS || (receive && len <= receive->len));
	recv_done(ep, status, len, is_solicited);
}

/* The length is that of the Write, whose bytes are elsewhere; lab_take_event compares that of a
 * queued event with the Receive. */
void core_recv_done_immediate(struct core_ep *ep, uint32_t value, DAT_VLEN len, bool is_solicited)
{
	(void)value;
	recv_done(ep, DAT_DTO_SUCCESS, ep->recv_evd ? 0 : len, is_solicited);
}

void core_recv_done_invalidate(struct core_ep *ep, uint32_t key, DAT_VLEN len, bool is_solicited)
{
	(void)key;
	core_recv_done(ep, DAT_DTO_SUCCESS, len, is_solicited);
}

struct core_lmr *core_mem_get_registered(struct core_mem *mem, const DAT_LMR_TRIPLET *segment)
{
	(void)mem;
	(void)segment;
	return NULL; /* freed meanwhile, as the service thread sees it */
}

struct core_pz *core_recv_pz(const struct core_ep *ep)
{
	return ep->pz;
}

void core_srq_serve_all(struct core_ia *ia)
{
	(void)ia;
}

int core_sp_request(struct core_ref sp, const struct transport_request *request)
{
	(void)sp;
	return lab_current->requested ? lab_current->requested(lab_current, request) : -1;
}

struct core_lmr *core_mem_get(struct core_mem *mem, const DAT_LMR_TRIPLET *segment,
			      const struct core_pz *pz, enum core_mem_use use)
{
	struct core_lmr *lmr;

	lab_current->lookups++;
	lmr = core_mem_pin(mem, segment->lmr_context);
	if (!lmr)
		return NULL;
	if (lmr->pz == pz && core_mem_is_inside(lmr->address, lmr->length, segment) &&
	    core_mem_is_allowed(lmr->priv, use))
		return lmr;
	core_mem_put(lmr);
	return NULL;
}

enum core_kill core_bind_kill(struct core_ep *ep, DAT_RMR_CONTEXT rkey)
{
	(void)ep;
	(void)rkey;
	return CORE_KILL_NONE;
}

enum core_bind core_bind_run(struct core_ep *ep, struct core_req *req, bool is_ready)
{
	(void)ep;
	(void)req;
	(void)is_ready;
	abort();
}
