// SPDX-License-Identifier: BSD-2-Clause
/*
 * A laboratory for endpoint tests: it drives an endpoint into any of the nine states and keeps it
 * there.
 */
#ifndef TESTS_EP_LAB_H
#define TESTS_EP_LAB_H

#include "ep_util.h"

struct ep_lab {
	bool is_open;
	struct dt_ia ia;
	struct dt_buf buf; /* 64 KiB, all privileges, the adapter's zone */
	struct dt_ep ep;   /* under test; TENTATIVE: its EVDs are made but not attached */
	struct dt_ep peer; /* the other end, or the one that asked */
	DAT_EVD_HANDLE sp_evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;	/* PASSIVE, TENTATIVE: of ep; ACTIVE: the one that ep waits for */
	struct dt_peer process; /* COMPLETION: the stopped process that asked */
};

#define EP_STATES 9

/* all of them */
extern const DAT_EP_STATE ep_states[EP_STATES];

/*
 * Can an endpoint stay in that state? What holds one in DISCONNECT_PENDING is a message that waits
 * for a Receive; iWARP ends the connection instead (DTO-104). Known once an adapter was opened.
 */
bool ep_lasts(DAT_EP_STATE state);
/*
 * The other process of COMPLETION_PENDING: connects to the qualifier it is told, says so, and does
 * as it is told by one letter: 'e' expect ESTABLISHED and then DISCONNECTED, 'd' disconnect.
 */
void ep_lab_connector(struct dt_peer *peer, void *arg);
void ep_lab_listen(struct ep_lab *lab);
void ep_lab_completion(struct ep_lab *lab);
void ep_lab_drive(struct ep_lab *lab, DAT_EP_STATE state);
/* Everything but the state: adapter, memory, two unconnected endpoints. */
void ep_lab_prepare(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr);
void ep_lab_open_with(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr);
/* The same with one EVD for all three kinds of events of the endpoint under test. */
void ep_lab_open_shared(struct ep_lab *lab, DAT_EP_STATE state);
void ep_lab_open(struct ep_lab *lab, DAT_EP_STATE state);
/* Whatever state the endpoint is in by now. */
void ep_lab_close(struct ep_lab *lab);
/* A Provider-made endpoint gets its zone and EVDs. */
void ep_lab_equip(struct ep_lab *lab);
/* Nothing is queued on any EVD of the endpoint, nor on the asynchronous one. */
void ep_lab_no_events(struct ep_lab *lab);
int ep_lab_setup(void **state);
int ep_lab_teardown(void **state);

/* A test whose state is a closed laboratory; it is closed afterwards. */
#define ep_test(name) cmocka_unit_test_setup_teardown(name, ep_lab_setup, ep_lab_teardown)

#endif
