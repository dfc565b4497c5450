// SPDX-License-Identifier: BSD-2-Clause
/* See patience.h. */
#include "soft/shm/transfer/patience.h"

#include "core/base/clock.h"
#include "soft/copy.h"
#include "soft/shm/engine/active.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/progress.h"

/* A shorter time would make the kernel set a timer before the next tick for each message. */
#define PATIENCE_NS 20000000u

/* Does something wait for the end of a request, or for space, other than a thread that polls? */
static bool is_over(const struct shm_conn *conn, const struct core_ep *ep)
{
	return shm_conn_is_pass_awaited(conn, ep) || shm_conn_is_lending(conn) ||
	       conn->is_space_wanted || conn->is_response_wanted || core_ep_is_watched(ep) ||
	       /* a post will soon need the slots of requests whose end was reported quietly */
	       (ep->req.tail != ep->req.head &&
		ep->req.tail - ep->req.head + SHM_QUIET_MAX >= ep->req.capacity);
}

bool shm_patience_is_possible(const struct shm_conn *conn, const struct core_ep *ep)
{
	/* a thread of the consumer goes to sleep to wait for an event, maybe for a completion */
	return soft_is_library_thread && shm_active_count(conn->engine) <= SHM_LISTED_MAX &&
	       !is_over(conn, ep);
}

void shm_patience_check_patient(struct shm_conn *conn, const struct core_ep *ep)
{
	/* full fence: see the header */
	atomic_thread_fence(memory_order_seq_cst);
	if (!is_over(conn, ep))
		return;
	shm_patience_set(conn, false);
	/* full fence: see the header */
	atomic_thread_fence(memory_order_seq_cst);
	if (shm_conn_has_work(conn))
		shm_conn_serve_later(conn);
}

bool shm_patience_needs_packet(struct shm_conn *conn, bool has_reported)
{
	uint64_t now;

	if (!has_reported && !conn->is_report_quiet)
		return false;
	/* a thread of the consumer would have to wake the service thread for the end of the time */
	if (has_reported && !soft_is_library_thread)
		return true;
	/* full fence: see the header */
	atomic_thread_fence(memory_order_seq_cst);
	if (!shm_patience_is_peer_patient(conn))
		return true;
	now = core_now_ns();
	if (!conn->is_report_quiet) {
		conn->is_report_quiet = true;
		conn->quiet_end_ns = now + PATIENCE_NS;
	}
	if (now >= conn->quiet_end_ns || conn->reported - conn->reported_at_wake > SHM_QUIET_MAX)
		return true;
	/* each time: an earlier deadline may have taken the place of this one */
	shm_conn_lower_deadline(conn, conn->quiet_end_ns);
	return false;
}
