// SPDX-License-Identifier: BSD-2-Clause
/* Event dispatchers, and the events that are taken from them. */
#include "check/evd.h"

#include <pthread.h>

#include "check/ep.h"
#include "check/limits.h"
#include "check/object.h"
#include "check/report.h"
#include "check/trace.h"
#include "shared/names.h"
#include "shared/opendat.h"

#define COMPLETIONS (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

/* Notes how many events the EVD holds, and returns which. */
static DAT_EVD_FLAGS learn_queue(struct check_object *evd)
{
	DAT_EVD_PARAM param;

	if (dat_evd_query(evd->inner, DAT_EVD_FIELD_EVD_QLEN | DAT_EVD_FIELD_EVD_FLAGS, &param) !=
	    DAT_SUCCESS)
		return 0;
	check_lock();
	evd->life->evd.length = param.evd_qlen;
	check_unlock();
	return param.evd_flags;
}

struct check_object *check_evd_make(const char *maker, struct check_object *ia,
				    DAT_EVD_HANDLE inner)
{
	struct check_object *evd = check_object_make(maker, ia, DAT_HANDLE_TYPE_EVD, inner);

	if (evd)
		(void)learn_queue(evd);
	return evd;
}

static void advise(struct check_call *call, struct check_object *evd, DAT_EVD_FLAGS flags,
		   DAT_COUNT qlen)
{
	if (flags & COMPLETIONS)
		check_limit(call, evd, CHECK_LIMIT_EVENTS, "evd_min_qlen", qlen);
}

DAT_RETURN check_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			    DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
			    DAT_EVD_HANDLE *evd_handle)
{
	struct check_object *ia, *evd = NULL;
	struct check_call call;
	DAT_RETURN ret;

	ia = check_begin(&call, CHECK_CALL_evd_create, ia_handle, DAT_HANDLE_TYPE_IA);
	ret = dat_evd_create(check_inner(ia_handle), evd_min_qlen, check_inner(cno_handle),
			     evd_flags, evd_handle);
	if (ret == DAT_SUCCESS && ia)
		evd = check_evd_make(call.name, ia, *evd_handle);
	if (evd) {
		*evd_handle = evd;
		advise(&call, evd, evd_flags, evd_min_qlen);
	}
	if (evd && (evd_flags & COMPLETIONS) && (evd_flags & ~COMPLETIONS & ~DAT_EVD_SOFTWARE_FLAG))
		check_report(&call, CHECK_MIXED_EVD, evd,
			     "%s takes completions and other events (flags 0x%x); some providers "
			     "refuse that",
			     check_name(evd).text, (unsigned)evd_flags);
	return check_end(&call, ret);
}

DAT_RETURN check_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			   DAT_EVD_PARAM *evd_param)
{
	struct check_call call;
	struct check_object *evd =
		check_begin(&call, CHECK_CALL_evd_query, evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = dat_evd_query(check_inner(evd_handle), evd_param_mask, evd_param);

	if (ret == DAT_SUCCESS && evd && (evd_param_mask & DAT_EVD_FIELD_IA_HANDLE))
		evd_param->ia_handle = evd->ia;
	if (ret == DAT_SUCCESS && evd && (evd_param_mask & DAT_EVD_FIELD_CNO))
		evd_param->cno_handle = check_outer(evd_param->cno_handle);
	return check_end(&call, ret);
}

DAT_RETURN check_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_evd_modify_cno, evd_handle, DAT_HANDLE_TYPE_EVD);
	return check_end(&call,
			 dat_evd_modify_cno(check_inner(evd_handle), check_inner(cno_handle)));
}

DAT_RETURN check_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_evd_enable, evd_handle, DAT_HANDLE_TYPE_EVD);
	return check_end(&call, dat_evd_enable(check_inner(evd_handle)));
}

DAT_RETURN check_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_evd_disable, evd_handle, DAT_HANDLE_TYPE_EVD);
	return check_end(&call, dat_evd_disable(check_inner(evd_handle)));
}

DAT_RETURN check_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_evd_set_unwaitable, evd_handle, DAT_HANDLE_TYPE_EVD);
	return check_end(&call, dat_evd_set_unwaitable(check_inner(evd_handle)));
}

DAT_RETURN check_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_evd_clear_unwaitable, evd_handle, DAT_HANDLE_TYPE_EVD);
	return check_end(&call, dat_evd_clear_unwaitable(check_inner(evd_handle)));
}

DAT_RETURN check_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	struct check_call call;
	struct check_object *evd =
		check_begin(&call, CHECK_CALL_evd_resize, evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = dat_evd_resize(check_inner(evd_handle), evd_min_qlen);

	if (ret == DAT_SUCCESS && evd)
		advise(&call, evd, learn_queue(evd), evd_min_qlen);
	return check_end(&call, ret);
}

DAT_RETURN check_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	struct check_call call;

	check_begin(&call, CHECK_CALL_evd_post_se, evd_handle, DAT_HANDLE_TYPE_EVD);
	return check_end(&call, dat_evd_post_se(check_inner(evd_handle), event));
}

/* ---- events ---- */

static void connection_event(struct check_object *evd, DAT_EVENT_NUMBER number,
			     DAT_CONNECTION_EVENT_DATA *data)
{
	struct check_object *ep = check_outer_object(data->ep_handle);

	if (!ep) /* the provider has made it, and the program has not asked for it yet */
		ep = check_ep_make(opendat_event_name(number), evd->ia, data->ep_handle);
	if (!ep)
		return;
	data->ep_handle = ep;
	check_lock();
	check_step_locked(ep, opendat_event_name(number), DAT_SUCCESS);
	if (number == DAT_CONNECTION_EVENT_ESTABLISHED)
		trace_wire_open_locked(ep);
	ep->life->ep.has_ended = number != DAT_CONNECTION_EVENT_ESTABLISHED;
	check_unlock();
}

static void request_event(struct check_object *evd, DAT_CR_ARRIVAL_EVENT_DATA *data)
{
	data->sp_handle.psp_handle = check_outer(data->sp_handle.psp_handle);
	data->cr_handle = check_wrap("DAT_CONNECTION_REQUEST_EVENT", evd->ia, DAT_HANDLE_TYPE_CR,
				     data->cr_handle);
}

/* The inner provider names an instance by the integer that it has for its consumer, which is us. */
static void async_event(struct check_object *evd, DAT_ASYNCH_ERROR_EVENT_DATA *data)
{
	if (data->dat_handle == evd->ia->inner)
		data->dat_handle = evd->ia->life->ia.consumer;
	else
		data->dat_handle = check_outer(data->dat_handle);
}

static void translate(struct check_call *call, struct check_object *evd, DAT_EVENT *event)
{
	event->evd_handle = evd;
	if (opendat_event_is_async(event->event_number))
		async_event(evd, &event->event_data.asynch_error_event_data);
	else if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		request_event(evd, &event->event_data.cr_arrival_event_data);
	else if ((event->event_number & ~0xfffu) == (DAT_CONNECTION_EVENT_ESTABLISHED & ~0xfffu))
		connection_event(evd, event->event_number, &event->event_data.connect_event_data);
	else
		check_request_event(call, evd, event);
}

/* Returns the number of the newest orphan. */
static uint64_t begin_taking(struct check_object *evd)
{
	evd->life->evd.takers++;
	return evd->life->evd.orphaned;
}

/* An EVD that was empty holds no event of earlier orphans, unless another thread has just taken it. */
static void end_taking(struct check_object *evd, uint64_t orphaned, bool is_empty)
{
	if (--evd->life->evd.takers || !is_empty || !orphaned)
		return;
	check_lock();
	check_orphans_drop_locked(&evd->life->evd.orphans, orphaned);
	check_unlock();
}

DAT_RETURN check_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct check_call call;
	struct check_object *evd =
		check_begin(&call, CHECK_CALL_evd_dequeue, evd_handle, DAT_HANDLE_TYPE_EVD);
	uint64_t orphaned;
	DAT_RETURN ret;

	if (!evd)
		return check_end(&call, dat_evd_dequeue(check_inner(evd_handle), event));
	orphaned = begin_taking(evd);
	ret = dat_evd_dequeue(evd->inner, event);
	if (ret == DAT_SUCCESS)
		translate(&call, evd, event);
	end_taking(evd, orphaned, ret == DAT_QUEUE_EMPTY);
	return check_end(&call, ret);
}

/* The thread was cancelled while it waited. */
static void wait_cancelled(void *evd)
{
	check_lock();
	((struct check_object *)evd)->life->evd.waiters--;
	((struct check_object *)evd)->life->evd.takers--;
	check_unlock();
}

static DAT_RETURN wait_below(const struct check_call *call, struct check_object *evd,
			     DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT *event,
			     DAT_COUNT *n_more_events)
{
	DAT_RETURN ret;

	pthread_cleanup_push(wait_cancelled, evd);
	pthread_setcancelstate(call->cancel_state, NULL);
	ret = dat_evd_wait(evd->inner, timeout, threshold, event, n_more_events);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	check_lock();
	evd->life->evd.waiters--;
	check_unlock();
	return ret;
}

DAT_RETURN check_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			  DAT_EVENT *event, DAT_COUNT *n_more_events)
{
	struct check_call call;
	struct check_object *evd =
		check_begin(&call, CHECK_CALL_evd_wait, evd_handle, DAT_HANDLE_TYPE_EVD);
	uint64_t orphaned;
	bool is_second;
	DAT_RETURN ret;

	if (!evd)
		return check_end(&call, dat_evd_wait(check_inner(evd_handle), timeout, threshold,
						     event, n_more_events));
	orphaned = begin_taking(evd);
	check_lock();
	is_second = evd->life->evd.waiters++ > 0;
	check_unlock();
	if (is_second)
		check_report(&call, CHECK_TWO_WAITERS, evd, "another thread waits on %s",
			     check_name(evd).text);
	ret = wait_below(&call, evd, timeout, threshold, event, n_more_events);
	if (ret == DAT_SUCCESS)
		translate(&call, evd, event);
	end_taking(evd, orphaned, false);
	return check_end(&call, ret);
}

/* How many events are in the EVD: a wait for more than it holds says so when it times out. */
static DAT_COUNT count_events(struct check_object *evd)
{
	DAT_COUNT count = 0, length = evd->life->evd.length;
	DAT_EVENT event;

	if (length < 2 || dat_evd_wait(evd->inner, 0, length, &event, &count) == DAT_SUCCESS ||
	    count < 0)
		return 0;
	return count;
}

DAT_RETURN check_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct check_call call;
	struct check_object *evd =
		check_begin(&call, CHECK_CALL_evd_free, evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_COUNT left = 0;
	DAT_RETURN ret;

	if (evd && evd->life->evd.orphans.count && check_rule_is_on(CHECK_EVENTS_LEFT))
		left = count_events(evd);
	ret = dat_evd_free(check_inner(evd_handle));
	if (ret == DAT_SUCCESS && evd) {
		check_lock();
		check_requests_drop_locked(&evd->life->evd.orphans);
		check_unlock();
		if (left)
			check_report(&call, CHECK_EVENTS_LEFT, evd, "%d events were in %s", left,
				     check_name(evd).text);
	}
	return check_end_free(&call, ret);
}
