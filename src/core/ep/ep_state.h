// SPDX-License-Identifier: BSD-2-Clause
/*
 * The endpoint's state machine: a table of transitions and a table of legal calls (ep_state.c).
 * Both follow the EP-STATE chapter of docs/spec/endpoints.md. No other file assigns ep->state.
 */
#ifndef CORE_EP_STATE_H
#define CORE_EP_STATE_H

#include "core/ep/ep.h"

/* The causes of a transition. */
enum core_ep_change {
	CORE_EP_CONNECT,	 /* dat_ep_connect, dat_ep_dup_connect */
	CORE_EP_RESERVE,	 /* dat_rsp_create */
	CORE_EP_UNRESERVE,	 /* dat_rsp_free */
	CORE_EP_REQUEST,	 /* a connection request arrived on the RSP */
	CORE_EP_ACCEPT,		 /* dat_cr_accept */
	CORE_EP_RELEASE,	 /* dat_cr_reject, dat_cr_handoff, EVD freed with the CR's event */
	CORE_EP_ESTABLISH,	 /* connection set-up is complete */
	CORE_EP_PEER_REJECT,	 /* the peer's consumer rejected */
	CORE_EP_NON_PEER_REJECT, /* rejected, but not by the peer's consumer */
	CORE_EP_UNREACHABLE,
	CORE_EP_TIME_OUT,
	CORE_EP_ACCEPT_FAIL, /* the accepted connection cannot be completed */
	CORE_EP_DISCONNECT_GRACEFUL,
	CORE_EP_DISCONNECT_ABRUPT, /* pending until the transport has ended the connection */
	CORE_EP_END,		   /* ended by a disconnect of either side */
	CORE_EP_BREAK,		   /* ended by an error or the loss of the peer */
	CORE_EP_RESET,
};

/* The calls whose legality depends on the state. */
enum core_ep_call {
	CORE_CALL_CONNECT,
	CORE_CALL_RESERVE,
	CORE_CALL_DUP_SOURCE,
	CORE_CALL_ACCEPT_NAMED,
	CORE_CALL_ACCEPT_OWN,
	CORE_CALL_DISCONNECT_ABRUPT,
	CORE_CALL_DISCONNECT_GRACEFUL,
	CORE_CALL_RESET,
	CORE_CALL_FREE,
	CORE_CALL_POST_RECV,
	CORE_CALL_POST_REQUEST,
	CORE_CALL_MODIFY_PZ,
	CORE_CALL_MODIFY,
	CORE_CALL_MODIFY_NAMED,
	CORE_CALLS,
};

enum core_ep_verdict {
	CORE_EP_NO,    /* DAT_INVALID_STATE with the state's subtype */
	CORE_EP_OK,    /* legal */
	CORE_EP_NOP,   /* succeeds without effect */
	CORE_EP_FLUSH, /* succeeds and is flushed */
};

/* Whether the call is legal in the current state. EP locked. */
enum core_ep_verdict core_ep_check_call(const struct core_ep *ep, enum core_ep_call call);
/* DAT_INVALID_STATE with the subtype of the state (EP-STATE-67). */
CORE_COLD DAT_RETURN core_ep_bad_state(const struct core_ep *ep);
/* Sets the state of a new endpoint. */
void core_ep_start(struct core_ep *ep);
/* Makes the transition. Returns the number of the event to raise, or 0 for none. EP locked. */
DAT_EVENT_NUMBER core_ep_move(struct core_ep *ep, enum core_ep_change change);
/* Undoes a transition, because the operation failed. EP locked. */
void core_ep_restore_state(struct core_ep *ep, DAT_EP_STATE before);
/* Does the current state have such a transition? EP locked. */
bool core_ep_can_move(const struct core_ep *ep, enum core_ep_change change);

/* Updates the core's bits of slow_reasons. To be called after each change of a member that they
 * depend on. EP locked, or not yet published. */
void core_ep_update_slow_reasons(struct core_ep *ep);

/* Prints both tables as text, for the test that compares them with the specification. */
size_t core_ep_state_print(char *text, size_t size);

#endif
