// SPDX-License-Identifier: BSD-2-Clause
/*
 * Brings an endpoint into any of the nine states and keeps it there, for endpoint tests.
 */
#ifndef TESTS_EP_LAB_H
#define TESTS_EP_LAB_H

#include "ep_util.h"

struct ep_lab {
	bool is_open;
	struct dt_ia ia;
	struct dt_buf buf; /* 64 KiB, all privileges, the adapter's zone */
	struct dt_ep ep;   /* under test; TENTATIVE: its EVDs are made but not attached */
	struct dt_ep peer; /* the other end, or the one that requested the connection */
	DAT_EVD_HANDLE sp_evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;	/* PASSIVE, TENTATIVE: of ep; ACTIVE: the one that ep waits for */
	struct dt_peer process; /* COMPLETION: the stopped process that requested the connection */
};

#define EP_STATES 9

/* all of them */
extern const DAT_EP_STATE ep_states[EP_STATES];

/*
 * Can an endpoint stay in that state? A message that waits for a Receive keeps one in
 * DISCONNECT_PENDING, but iWARP ends the connection instead (DTO-104). Call it after an adapter was
 * opened.
 */
bool ep_lasts(DAT_EP_STATE state);
/*
 * The second process for COMPLETION_PENDING. It receives a qualifier, connects to it and reports
 * that. Then it receives one letter: 'e': expect ESTABLISHED and then DISCONNECTED, 'd':
 * disconnect.
 */
void ep_lab_connector(struct dt_peer *peer, void *arg);
void ep_lab_listen(struct ep_lab *lab);
void ep_lab_completion(struct ep_lab *lab);
void ep_lab_drive(struct ep_lab *lab, DAT_EP_STATE state);
/* Makes the adapter, the memory and two unconnected endpoints. */
void ep_lab_prepare(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr);
void ep_lab_open_with(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr);
/* ep_lab_open with one EVD for all three kinds of events of the endpoint under test. */
void ep_lab_open_shared(struct ep_lab *lab, DAT_EP_STATE state);
void ep_lab_open(struct ep_lab *lab, DAT_EP_STATE state);
/* The endpoint may be in any state. */
void ep_lab_close(struct ep_lab *lab);
/* Sets the zone and the EVDs of an endpoint that the provider made. */
void ep_lab_equip(struct ep_lab *lab);
/* Nothing is queued on any EVD of the endpoint, nor on the asynchronous one. */
void ep_lab_no_events(struct ep_lab *lab);
int ep_lab_setup(void **state);
int ep_lab_teardown(void **state);

/* A test whose state is an ep_lab that is not open; the teardown closes it. */
#define ep_test(name) cmocka_unit_test_setup_teardown(name, ep_lab_setup, ep_lab_teardown)

#endif
