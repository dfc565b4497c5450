// SPDX-License-Identifier: BSD-2-Clause
/* Drives an endpoint into any of the nine states; see the header. */
#include "ep_lab.h"

const DAT_EP_STATE ep_states[EP_STATES] = {
	DAT_EP_STATE_UNCONNECTED,
	DAT_EP_STATE_RESERVED,
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
	DAT_EP_STATE_COMPLETION_PENDING,
	DAT_EP_STATE_CONNECTED,
	DAT_EP_STATE_DISCONNECT_PENDING,
	DAT_EP_STATE_DISCONNECTED,
};

#define EP_LAB_BUF 65536

bool ep_lasts(DAT_EP_STATE state)
{
	return state != DAT_EP_STATE_DISCONNECT_PENDING || !dt_is_iwarp();
}

void ep_lab_connector(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_CONN_QUAL qual;
	char command;

	(void)arg;
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_connect(&ia, ep.ep, qual);
	dt_peer_sync(peer);
	dt_peer_recv(peer, &command, 1);
	if (command == 'e') {
		dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else {
		dt_ok(dat_ep_disconnect(ep.ep, DAT_CLOSE_ABRUPT_FLAG));
	}
	dt_ia_abort(&ia);
}

static void ep_lab_tentative(struct ep_lab *lab)
{
	DAT_CR_PARAM param;
	DAT_EVD_HANDLE recv, request, conn;

	dt_ok(dat_psp_create_any(lab->ia.ia, &lab->qual, lab->sp_evd, DAT_PSP_PROVIDER_FLAG,
				 &lab->psp));
	dt_connect(&lab->ia, lab->peer.ep, lab->qual);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_ok(dat_cr_query(lab->cr, DAT_CR_FIELD_ALL, &param));
	/* the endpoint in ep is not needed, but its EVDs are */
	recv = lab->ep.recv;
	request = lab->ep.request;
	conn = lab->ep.conn;
	dt_ok(dat_ep_free(lab->ep.ep));
	lab->ep = (struct dt_ep){param.local_ep_handle, recv, request, conn};
}

void ep_lab_listen(struct ep_lab *lab)
{
	dt_ok(dat_psp_create_any(lab->ia.ia, &lab->qual, lab->sp_evd, DAT_PSP_CONSUMER_FLAG,
				 &lab->psp));
}

void ep_lab_completion(struct ep_lab *lab)
{
	ep_lab_listen(lab);
	dt_peer_send(&lab->process, &lab->qual, sizeof(lab->qual));
	dt_peer_sync(&lab->process);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_peer_stop(&lab->process);
	dt_ok(dat_cr_accept(lab->cr, lab->ep.ep, 0, NULL));
}

/* Both ends connected; the peer has no Receive posted. */
static void ep_lab_connect(struct ep_lab *lab)
{
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
}

void ep_lab_drive(struct ep_lab *lab, DAT_EP_STATE state)
{
	switch (state) {
	case DAT_EP_STATE_RESERVED:
		lab->qual = ep_reserve(&lab->ia, lab->ep.ep, lab->sp_evd, &lab->rsp);
		break;
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
		lab->qual = ep_reserve(&lab->ia, lab->ep.ep, lab->sp_evd, &lab->rsp);
		dt_connect(&lab->ia, lab->peer.ep, lab->qual);
		lab->cr = ep_next_request(lab->sp_evd);
		break;
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING:
		ep_lab_tentative(lab);
		break;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		ep_lab_listen(lab);
		dt_connect(&lab->ia, lab->ep.ep, lab->qual);
		lab->cr = ep_next_request(lab->sp_evd);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		ep_lab_completion(lab);
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		/* the peer has no Receive for this message, so the disconnect cannot end */
		ep_lab_connect(lab);
		dt_ok(ep_send(lab->ep.ep, &lab->buf, 0, 64, 0xd15c));
		dt_ok(dat_ep_disconnect(lab->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
		break;
	case DAT_EP_STATE_DISCONNECTED:
		ep_lab_connect(lab);
		ep_unlink(&lab->ep, &lab->peer);
		break;
	case DAT_EP_STATE_CONNECTED:
		ep_lab_connect(lab);
		break;
	default:
		break;
	}
}

void ep_lab_prepare(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr)
{
	memset(lab, 0, sizeof(*lab));
	/* while nothing is open here that a child would inherit */
	if (state == DAT_EP_STATE_COMPLETION_PENDING)
		dt_peer_start(&lab->process, ep_lab_connector, NULL);
	lab->is_open = true;
	dt_ia_open(&lab->ia);
	dt_buf_create(&lab->ia, lab->ia.pz, &lab->buf, EP_LAB_BUF, DAT_MEM_PRIV_ALL_FLAG);
	lab->sp_evd = dt_evd_create(&lab->ia, 16, DAT_EVD_CR_FLAG);
	dt_ep_create(&lab->ia, lab->ia.pz, attr, &lab->ep);
	dt_ep_create(&lab->ia, lab->ia.pz, NULL, &lab->peer);
}

void ep_lab_open_with(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr)
{
	ep_lab_prepare(lab, state, attr);
	ep_lab_drive(lab, state);
	assert_int_equal(dt_ep_state(lab->ep.ep), state);
}

void ep_lab_open_shared(struct ep_lab *lab, DAT_EP_STATE state)
{
	DAT_EVD_HANDLE evd;

	ep_lab_prepare(lab, state, NULL);
	dt_ep_free(&lab->ep);
	evd = dt_evd_create(&lab->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	lab->ep = (struct dt_ep){.recv = evd, .request = evd, .conn = evd};
	dt_ok(dat_ep_create(lab->ia.ia, lab->ia.pz, evd, evd, evd, NULL, &lab->ep.ep));
	ep_lab_drive(lab, state);
	assert_int_equal(dt_ep_state(lab->ep.ep), state);
}

void ep_lab_open(struct ep_lab *lab, DAT_EP_STATE state)
{
	ep_lab_open_with(lab, state, NULL);
}

void ep_lab_close(struct ep_lab *lab)
{
	if (!lab->is_open)
		return;
	lab->is_open = false;
	if (lab->process.pid > 0)
		dt_peer_kill(&lab->process);
	if (lab->ia.ia)
		dt_ia_abort(&lab->ia);
	if (lab->buf.mapped)
		dt_mem_free(lab->buf.p, lab->buf.mapped);
}

void ep_lab_equip(struct ep_lab *lab)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.pz_handle = lab->ia.pz;
	param.recv_evd_handle = lab->ep.recv;
	param.request_evd_handle = lab->ep.request;
	param.connect_evd_handle = lab->ep.conn;
	dt_ok(dat_ep_modify(lab->ep.ep,
			    DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				    DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				    DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			    &param));
}

void ep_lab_no_events(struct ep_lab *lab)
{
	dt_no_event(lab->ep.recv);
	dt_no_event(lab->ep.request);
	dt_no_event(lab->ep.conn);
	dt_no_event(lab->ia.async);
}

int ep_lab_setup(void **state)
{
	static struct ep_lab lab;

	memset(&lab, 0, sizeof(lab));
	*state = &lab;
	return 0;
}

int ep_lab_teardown(void **state)
{
	ep_lab_close(*state);
	return 0;
}
