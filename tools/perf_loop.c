// SPDX-License-Identifier: BSD-2-Clause
/* The slow paths of perf_loop.h. */
#include "perf_loop.h"

#include <errno.h>

/* A wait is cut into slices, so that a signal just before it is noticed. */
#define PERF_SLICE_US 500000u
/* A shorter slice while a message on another queue may end the run. */
#define PERF_FOLLOW_SLICE_US 10000u

volatile sig_atomic_t perf_is_enough;

int perf_call_failed(const char *call, DAT_RETURN code)
{
	/* a post may find the end of the connection before its event is taken */
	if (DAT_GET_TYPE(code) == DAT_INVALID_STATE)
		return -ENOTCONN;
	return tool_call_failed(call, code);
}

int perf_event_is_bad(const DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_STATUS status = event->event_data.dto_completion_event_data.status;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT) {
		tool_complain("unexpected event: %s", tool_event_text(event->event_number));
		return -ECONNRESET;
	}
	if (status == DAT_DTO_ERR_FLUSHED)
		return -ENOTCONN;
	tool_complain("transfer failed: %s", tool_dto_status_text(status));
	return -ECONNRESET;
}

int perf_spin_check(struct perf_worker *worker)
{
	uint64_t progress = atomic_load_explicit(&worker->progress, memory_order_relaxed);
	uint64_t timeout_ns = (uint64_t)worker->session.timeout_ms * 1000000u;
	uint64_t now = tool_now_ns();
	DAT_EP_STATE state;

	if (tool_is_stopped)
		return -EINTR;
	/* what comes after STOP is not for the worker, which may still have transfers to take */
	if (worker->control &&
	    atomic_load_explicit(&worker->limit, memory_order_relaxed) == UINT64_MAX) {
		int rc = perf_stop_take(worker->control, false);

		if (rc != 0)
			return rc;
	}
	if (progress >= atomic_load_explicit(&worker->limit, memory_order_relaxed))
		return PERF_OVER;
	for (uint32_t i = 0; i < worker->endpoint_count; i++) {
		DAT_RETURN code =
			dat_ep_get_status(worker->endpoints[i].handle, &state, NULL, NULL);

		if (code != DAT_SUCCESS)
			return tool_call_failed("dat_ep_get_status", code);
		if (state != DAT_EP_STATE_CONNECTED)
			return -ENOTCONN;
	}
	/* a process that did not run for so long, because it or the machine was stopped, has not
	 * waited in vain */
	if (worker->checked_ns == 0 || progress != worker->checked_progress ||
	    now - worker->looked_ns >= timeout_ns) {
		worker->checked_progress = progress;
		worker->checked_ns = now;
	}
	worker->looked_ns = now;
	if (now - worker->checked_ns < timeout_ns)
		return 0;
	tool_complain("no progress for %u ms", worker->session.timeout_ms);
	return -ETIMEDOUT;
}

int perf_take_waiting(struct perf_worker *worker, DAT_EVD_HANDLE evd, DAT_EVENT *event_out)
{
	DAT_TIMEOUT slice_us = worker->is_following ? PERF_FOLLOW_SLICE_US : PERF_SLICE_US;
	DAT_COUNT more;

	for (;;) {
		DAT_RETURN code = dat_evd_wait(evd, slice_us, 1, event_out, &more);
		int rc;

		/* a signal may arrive between two waits that both find an event */
		if (code == DAT_SUCCESS)
			return tool_is_stopped ? -EINTR : 0;
		if (DAT_GET_TYPE(code) != DAT_TIMEOUT_EXPIRED &&
		    DAT_GET_TYPE(code) != DAT_INTERRUPTED_CALL)
			return perf_call_failed("dat_evd_wait", code);
		rc = perf_spin_check(worker);
		if (rc != 0)
			return rc;
	}
}
