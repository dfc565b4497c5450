// SPDX-License-Identifier: BSD-2-Clause
/*
 * What only iWARP needs.
 *
 * Confirmation. Over iWARP the passive side must send nothing before the active side has sent
 * something (RFC 5044, 7.1.2): what arrives together with the answer is lost, or breaks the set-up.
 * Its connection manager also reports "established" at once, whatever has become of the active
 * side. So an OpenDAT that accepts asks for a confirmation: a message of length 0 in front of all
 * others, for which the provider posts a Receive of its own. The connection is established when the
 * message arrives. The manager of InfiniBand has a third message for this.
 *
 * An endpoint with an SRQ cannot post such a Receive, and a foreign peer does not send the message.
 * There the event of the connection manager decides.
 */
#include "verbs/iwarp.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "verbs/adapter.h"
#include "verbs/post.h"
#include "verbs/service.h"
#include "verbs/setup.h"
#include "verbs/work.h"

/*
 * siw does not read what arrives between its answer and the end of its set-up until more bytes
 * arrive. So the active side sends a Write of length 0 after each of these pauses, until the peer
 * has sent something.
 */
static const uint32_t pauses_ms[] = {10, 100, 1000};
#define PAUSES (sizeof(pauses_ms) / sizeof(pauses_ms[0]))

#define PIPE_CHECK_AFTER 64u /* posts until the action of SIGPIPE is read again */

/* Is a SIGPIPE pending that the consumer has blocked? Then it belongs to the consumer. */
static bool has_pipe_waiting(const sigset_t *blocked)
{
	sigset_t pending;

	return sigismember(blocked, SIGPIPE) && !sigpending(&pending) &&
	       sigismember(&pending, SIGPIPE);
}

/*
 * Does the program ignore SIGPIPE, so that it need not be blocked? Finding out takes a system call.
 */
static bool is_pipe_ignored(struct vrb_conn *conn)
{
	struct sigaction now;

	if (conn->pipe_posts) {
		conn->pipe_posts--; /* it was not ignored a few posts ago */
		return false;
	}
	if (!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_IGN)
		return true;
	conn->pipe_posts = PIPE_CHECK_AFTER;
	return false;
}

/* siw sends within the call. A send to a peer that has closed the stream raises SIGPIPE in the
 * thread, so the signal is blocked and discarded. */
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
	core_log(CORE_LOG_CONN, "queue pair %u: Receive refused: %s", conn->qp->qp_num,
		 strerror(rc));
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
	} else {
		/*
		 * The active side is gone. The service thread reports it, after the call that
		 * posted this Receive has returned.
		 */
		conn->failure = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
		vrb_conn_set_deadline(conn, 0);
	}
}

void vrb_confirm(struct vrb_conn *conn, struct core_ep *ep)
{
	vrb_post_marker(conn, ep, IBV_WR_SEND);
	conn->confirm_retries = PAUSES;
	vrb_conn_set_deadline(conn, core_now_ns() + pauses_ms[0] * VRB_NS_PER_MS);
}

void vrb_confirm_retry(struct vrb_conn *conn, struct core_ep *ep)
{
	if (!conn->confirm_retries)
		return;
	if (!conn->has_marker) /* otherwise the last one has not completed yet */
		vrb_post_marker(conn, ep, IBV_WR_RDMA_WRITE);
	if (--conn->confirm_retries)
		vrb_conn_set_deadline(conn,
				      core_now_ns() + pauses_ms[PAUSES - conn->confirm_retries] *
							      VRB_NS_PER_MS);
}
