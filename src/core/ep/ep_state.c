// SPDX-License-Identifier: BSD-2-Clause
/* The endpoint's state machine. */
#include "core/ep/ep_state.h"

#include <stdio.h>

#include "core/base/log.h"
#include "core/base/status.h"
#include "shared/names.h"

#define STATES (DAT_EP_STATE_COMPLETION_PENDING + 1)
#define BIT(state) (1u << DAT_EP_STATE_##state)
#define PENDING (BIT(ACTIVE_CONNECTION_PENDING) | BIT(COMPLETION_PENDING) | BIT(DISCONNECT_PENDING))

/* `change` moves an endpoint from any state in `from` to `to` and raises `event`; 0: no event. */
static const struct transition {
	enum core_ep_change change;
	uint32_t from;
	DAT_EP_STATE to;
	DAT_EVENT_NUMBER event;
	const char *name;
} transitions[] = {
	{CORE_EP_CONNECT, BIT(UNCONNECTED), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, 0, "connect"},
	{CORE_EP_RESERVE, BIT(UNCONNECTED), DAT_EP_STATE_RESERVED, 0, "rsp_create"},
	{CORE_EP_UNRESERVE, BIT(RESERVED), DAT_EP_STATE_UNCONNECTED, 0, "rsp_free"},
	{CORE_EP_REQUEST, BIT(RESERVED), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, 0, "request"},
	{CORE_EP_ACCEPT,
	 BIT(UNCONNECTED) | BIT(PASSIVE_CONNECTION_PENDING) | BIT(TENTATIVE_CONNECTION_PENDING),
	 DAT_EP_STATE_COMPLETION_PENDING, 0, "cr_accept"},
	{CORE_EP_RELEASE, BIT(PASSIVE_CONNECTION_PENDING), DAT_EP_STATE_UNCONNECTED, 0,
	 "cr_reject"},
	/* cr_reject destroys a provider-made endpoint, which therefore needs no transition */
	{CORE_EP_ESTABLISH, BIT(ACTIVE_CONNECTION_PENDING) | BIT(COMPLETION_PENDING),
	 DAT_EP_STATE_CONNECTED, DAT_CONNECTION_EVENT_ESTABLISHED, "established"},
	{CORE_EP_PEER_REJECT, BIT(ACTIVE_CONNECTION_PENDING), DAT_EP_STATE_DISCONNECTED,
	 DAT_CONNECTION_EVENT_PEER_REJECTED, "peer_rejected"},
	{CORE_EP_NON_PEER_REJECT, BIT(ACTIVE_CONNECTION_PENDING), DAT_EP_STATE_DISCONNECTED,
	 DAT_CONNECTION_EVENT_NON_PEER_REJECTED, "non_peer_rejected"},
	{CORE_EP_UNREACHABLE, BIT(ACTIVE_CONNECTION_PENDING), DAT_EP_STATE_DISCONNECTED,
	 DAT_CONNECTION_EVENT_UNREACHABLE, "unreachable"},
	{CORE_EP_TIME_OUT, BIT(ACTIVE_CONNECTION_PENDING), DAT_EP_STATE_DISCONNECTED,
	 DAT_CONNECTION_EVENT_TIMED_OUT, "timed_out"},
	{CORE_EP_ACCEPT_FAIL, BIT(COMPLETION_PENDING), DAT_EP_STATE_DISCONNECTED,
	 DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, "accept_failed"},
	{CORE_EP_DISCONNECT_GRACEFUL, BIT(CONNECTED), DAT_EP_STATE_DISCONNECT_PENDING, 0,
	 "disconnect_graceful"},
	{CORE_EP_DISCONNECT_ABRUPT, BIT(CONNECTED), DAT_EP_STATE_DISCONNECT_PENDING, 0,
	 "disconnect_abrupt"},
	{CORE_EP_END, BIT(CONNECTED) | PENDING, DAT_EP_STATE_DISCONNECTED,
	 DAT_CONNECTION_EVENT_DISCONNECTED, "ended"},
	/* EP-STATE-80: an error during a disconnect still raises DISCONNECTED */
	{CORE_EP_BREAK, PENDING, DAT_EP_STATE_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED,
	 "broken"},
	{CORE_EP_BREAK, BIT(CONNECTED), DAT_EP_STATE_DISCONNECTED, DAT_CONNECTION_EVENT_BROKEN,
	 "broken"},
	{CORE_EP_RESET, BIT(DISCONNECTED), DAT_EP_STATE_UNCONNECTED, 0, "reset"},
};

/* The column of each state in the matrix below, from 1. 0: not a state of an endpoint. */
static const uint8_t columns[STATES] = {
	[DAT_EP_STATE_UNCONNECTED] = 1,
	[DAT_EP_STATE_RESERVED] = 2,
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = 3,
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = 4,
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = 5,
	[DAT_EP_STATE_COMPLETION_PENDING] = 6,
	[DAT_EP_STATE_CONNECTED] = 7,
	[DAT_EP_STATE_DISCONNECT_PENDING] = 8,
	[DAT_EP_STATE_DISCONNECTED] = 9,
};

/* The legal calls of each state. o: legal, n: no effect, f: flushed, -: refused */
static const struct {
	const char *verdicts; /* one letter per column */
	const char *name;
} matrix[CORE_CALLS] = {
	/*                                  URPTACXGD */
	[CORE_CALL_CONNECT] = {"o--------", "connect"},
	[CORE_CALL_RESERVE] = {"o--------", "rsp_create"},
	[CORE_CALL_DUP_SOURCE] = {"------o--", "dup_connect source"},
	[CORE_CALL_ACCEPT_NAMED] = {"o--------", "cr_accept naming it"},
	[CORE_CALL_ACCEPT_OWN] = {"--oo-----", "cr_accept by the CR"},
	[CORE_CALL_DISCONNECT_ABRUPT] = {"----oooon", "disconnect abrupt"},
	[CORE_CALL_DISCONNECT_GRACEFUL] = {"----ooonn", "disconnect graceful"},
	[CORE_CALL_RESET] = {"n-------o", "reset"},
	[CORE_CALL_FREE] = {"o---ooooo", "free"},
	[CORE_CALL_POST_RECV] = {"oooooooof", "post_recv"},
	[CORE_CALL_POST_REQUEST] = {"------o-f", "post request"},
	[CORE_CALL_MODIFY_PZ] = {"o--o-----", "modify PZ"},
	[CORE_CALL_MODIFY] = {"oooo-----", "modify EVDs, attributes"},
	[CORE_CALL_MODIFY_NAMED] = {"o--------", "modify named attributes"},
};

static const DAT_RETURN_SUBTYPE state_subtypes[STATES] = {
	[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
	[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
	[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
	[DAT_EP_STATE_DISCONNECT_PENDING] = DAT_INVALID_STATE_EP_DISCPENDING,
	[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
	[DAT_EP_STATE_COMPLETION_PENDING] = DAT_INVALID_STATE_EP_COMPLPENDING,
};

enum core_ep_verdict core_ep_check_call(const struct core_ep *ep, enum core_ep_call call)
{
	unsigned int column = columns[ep->state];

	switch (column ? matrix[call].verdicts[column - 1] : '-') {
	case 'o':
		return CORE_EP_OK;
	case 'n':
		return CORE_EP_NOP;
	case 'f':
		return CORE_EP_FLUSH;
	default:
		return CORE_EP_NO;
	}
}

DAT_RETURN core_ep_bad_state(const struct core_ep *ep)
{
	core_log(CORE_LOG_ERROR, "%s: the call is not possible in the state %s",
		 core_object_name(ep->cell, DAT_HANDLE_TYPE_EP).text,
		 opendat_ep_state_name(ep->state));
	return core_error(DAT_INVALID_STATE, state_subtypes[ep->state]);
}

static const struct transition *transition_find(DAT_EP_STATE from, enum core_ep_change change)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].change == change && (transitions[i].from & (1u << from)))
			return &transitions[i];
	return NULL;
}

void core_ep_start(struct core_ep *ep)
{
	ep->state = ep->is_provider_made ? DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING
					 : DAT_EP_STATE_UNCONNECTED;
}

bool core_ep_can_move(const struct core_ep *ep, enum core_ep_change change)
{
	return transition_find(ep->state, change);
}

void core_ep_update_slow_reasons(struct core_ep *ep)
{
	const DAT_EP_ATTR *attr = &ep->attr;
	uint16_t reasons = 0;

	if (ep->state != DAT_EP_STATE_CONNECTED || ep->is_breaking)
		reasons |= CORE_EP_SLOW_STATE;
	if (!ep->request_evd || (ep->recv.capacity && !ep->recv_evd))
		reasons |= CORE_EP_SLOW_EVD;
	if (attr->max_request_iov < 1 || attr->max_rdma_write_iov < 1 ||
	    attr->max_rdma_read_iov < 1 || (ep->recv.capacity && attr->max_recv_iov < 1))
		reasons |= CORE_EP_SLOW_LIMIT;
	if (ep->is_soft_armed || ep->hard_watermark != DAT_WATERMARK_INFINITE)
		reasons |= CORE_EP_SLOW_WATERMARK;
	core_handle_put_slow(ep->cell, CORE_EP_SLOW_CORE, reasons);
}

DAT_EVENT_NUMBER core_ep_move(struct core_ep *ep, enum core_ep_change change)
{
	const struct transition *transition = transition_find(ep->state, change);

	assert(transition);
	ep->state = transition->to;
	core_ep_update_slow_reasons(ep);
	return transition->event;
}

void core_ep_restore_state(struct core_ep *ep, DAT_EP_STATE before)
{
	ep->state = before;
	core_ep_update_slow_reasons(ep);
}

size_t core_ep_state_print(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		for (unsigned int from = 0; from < STATES; from++) {
			if (!(transitions[i].from & (1u << from)) || used >= size)
				continue;
			used += (size_t)snprintf(text + used, size - used, "%s: %s -> %s 0x%05x\n",
						 transitions[i].name,
						 opendat_ep_state_name((DAT_EP_STATE)from),
						 opendat_ep_state_name(transitions[i].to),
						 (unsigned int)transitions[i].event);
		}
	}
	for (size_t i = 0; i < CORE_CALLS && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s %s\n", matrix[i].verdicts,
					 matrix[i].name);
	return used;
}
