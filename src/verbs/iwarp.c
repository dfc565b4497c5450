// SPDX-License-Identifier: BSD-2-Clause
/*
 * What only iWARP needs.
 *
 * The third step of a set-up. The accepting side has to stay silent until the asking side has sent
 * something (RFC 5044, 7.1.2): what comes with the answer is lost, or breaks the set-up. And its
 * connection manager says "connected" at once, whatever became of the asking side. So an OpenDAT
 * that accepts asks for a message of length 0, in front of all others, which takes a Receive of the
 * provider's own; with it the connection stands, as with the third message of InfiniBand's manager.
 *
 * An endpoint with an SRQ has no Receive of its own, and a peer of another kind knows nothing of
 * this: there the connection manager's word counts.
 */
#include "verbs/iwarp.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "core/base/log.h"
#include "verbs/adapter.h"
#include "verbs/post.h"
#include "verbs/service.h"
#include "verbs/setup.h"
#include "verbs/work.h"

/*
 * siw overlooks what comes before it has set the stream up after the answer, until more comes. So
 * the asking side, as long as it has heard nothing, sends a Write of length 0 after each of these.
 */
static const uint32_t pauses_ms[] = {10, 100, 1000};
#define PAUSES (sizeof(pauses_ms) / sizeof(pauses_ms[0]))

#define PIPE_LOOK_AFTER 64u /* posts before SIGPIPE is found to be ignored by now */

/* Is there a SIGPIPE that waits for the consumer to let it in? It is not ours to take. */
static bool has_pipe_waiting(const sigset_t *blocked)
{
	sigset_t pending;

	return sigismember(blocked, SIGPIPE) && !sigpending(&pending) &&
	       sigismember(&pending, SIGPIPE);
}

/* Does the program ignore SIGPIPE, so that there is nothing to keep away? A look is a system call.
 */
static bool is_pipe_ignored(struct vrb_conn *conn)
{
	struct sigaction now;

	if (conn->pipe_posts) {
		conn->pipe_posts--; /* a moment ago it did not */
		return false;
	}
	if (!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_IGN)
		return true;
	conn->pipe_posts = PIPE_LOOK_AFTER;
	return false;
}

/* siw sends within the call, and a stream that the peer has ended raises SIGPIPE in the caller. */
int vrb_siw_post(struct vrb_conn *conn, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct timespec at_once = {0};
	sigset_t pipe, before;
	bool was_waiting;
	int rc;

	if (is_pipe_ignored(conn))
		return ibv_post_send(conn->qp, wr, bad);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	was_waiting = has_pipe_waiting(&before);
	rc = ibv_post_send(conn->qp, wr, bad);
	if (!was_waiting)
		(void)sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

bool vrb_confirm_is_needed(const struct vrb_conn *conn, const struct core_ep *ep)
{
	return conn->adapter->is_iwarp && conn->is_opendat && !ep->srq;
}

int vrb_confirm_expect(struct vrb_conn *conn)
{
	struct ibv_sge nothing = {0};
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = vrb_work_id(VRB_WORK_RECV, conn->key, 0),
					 .sg_list = &nothing,
					 .num_sge = 1,
				 };
	int rc;

	conn->recv_extra++;
	conn->is_unconfirmed = true;
	rc = ibv_post_recv(conn->qp, &wr, &bad);
	if (!rc)
		return 0;
	core_log(CORE_LOG_CONN, "queue pair %u: Receive refused: error %d", conn->qp->qp_num, rc);
	conn->recv_extra--;
	conn->is_unconfirmed = false;
	return -rc;
}

void vrb_confirm_received(struct vrb_conn *conn, struct core_ep *ep, const struct ibv_wc *wc)
{
	if (conn->state != VRB_ACCEPTED)
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		conn->is_unconfirmed = false;
		vrb_conn_established(conn, ep);
	} else { /* the asking side is gone; not before the call that posted this has returned */
		conn->failure = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
		vrb_conn_set_deadline(conn, 0);
	}
}

void vrb_confirm(struct vrb_conn *conn, struct core_ep *ep)
{
	vrb_post_marker(conn, ep, IBV_WR_SEND);
	conn->confirm_retries = PAUSES;
	vrb_conn_set_deadline(conn, vrb_now_ns() + pauses_ms[0] * VRB_NS_PER_MS);
}

void vrb_confirm_retry(struct vrb_conn *conn, struct core_ep *ep)
{
	if (!conn->confirm_retries)
		return;
	if (!conn->has_marker) /* else it is on its way, with something behind the message */
		vrb_post_marker(conn, ep, IBV_WR_RDMA_WRITE);
	if (--conn->confirm_retries)
		vrb_conn_set_deadline(conn,
				      vrb_now_ns() + pauses_ms[PAUSES - conn->confirm_retries] *
							     VRB_NS_PER_MS);
}
