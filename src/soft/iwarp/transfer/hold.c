// SPDX-License-Identifier: BSD-2-Clause
/* Small messages that wait for each other (hold.h). */
#include "soft/iwarp/transfer/hold.h"

#include "core/base/clock.h"
#include "core/transport.h"
#include "soft/iwarp/conn.h"

/* Does the request begin or continue a stream? */
static bool is_stream(struct iw_hold *hold, uint64_t now)
{
	bool is_soon = now - hold->post_ns <= IW_HOLD_GAP_NS;

	hold->post_ns = now;
	hold->run = is_soon ? hold->run + 1 : 0;
	return hold->run >= IW_HOLD_AFTER && now >= hold->pause_end_ns;
}

/* Two system calls, so not each time. */
static void store_poster(struct iw_hold *hold, uint64_t now)
{
	if (now - hold->stored_ns < IW_HOLD_STORE_NS)
		return;
	hold->stored_ns = now;
	soft_poller_store(&hold->poster);
}

bool iw_hold_may(struct iw_conn *conn, struct core_ep *ep, uint64_t now)
{
	struct iw_hold *hold = &conn->stream.tx.hold;

	if (!is_stream(hold, now))
		return false;
	if (!hold->count) {
		hold->first_ns = now;
		return !core_req_is_full(&ep->req) && !core_ep_is_watched(ep);
	}
	if (hold->count + 1 < IW_HOLD_POSTS && now - hold->first_ns < IW_HOLD_POSTS_NS &&
	    !core_req_is_full(&ep->req))
		return true;
	store_poster(hold, now);
	return false;
}

void iw_hold_due(struct iw_hold *hold)
{
	uint64_t now = core_now_ns();

	if (!hold->count || now - hold->first_ns < IW_HOLD_NS)
		return;
	if (soft_poller_is_preempted(&hold->poster, IW_HOLD_NS)) {
		hold->pause_ns = 0;
		return;
	}
	hold->pause_ns = hold->pause_ns ? 2 * hold->pause_ns : IW_HOLD_PAUSE_LEAST_NS;
	if (hold->pause_ns > IW_HOLD_PAUSE_MOST_NS)
		hold->pause_ns = IW_HOLD_PAUSE_MOST_NS;
	hold->pause_end_ns = now + hold->pause_ns;
}
