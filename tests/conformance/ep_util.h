// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the endpoint tests share: short posts, qualifiers on which nobody listens, and a laboratory
 * that drives an endpoint into any of the nine states and keeps it there.
 */
#ifndef TESTS_EP_UTIL_H
#define TESTS_EP_UTIL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "dt.h"

/* A handle value that no provider ever issued (aligned, but no address of anything). */
#define EP_NEVER_A_HANDLE ((DAT_HANDLE)(uintptr_t)0x7f0000000040)

#define EP_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- posts --- */

static inline DAT_RETURN ep_recv_empty(DAT_EP_HANDLE ep, uint64_t cookie)
{
	return dat_ep_post_recv(ep, 0, NULL, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN ep_send_empty(DAT_EP_HANDLE ep, uint64_t cookie)
{
	return dat_ep_post_send(ep, 0, NULL, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN ep_recv(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t offset,
				 size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, offset, len);

	return dat_ep_post_recv(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN ep_send(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t offset,
				 size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, offset, len);

	return dat_ep_post_send(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN ep_write(DAT_EP_HANDLE ep, const struct dt_buf *from, size_t offset,
				  const struct dt_buf *to, size_t target, size_t len,
				  uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(from, offset, len);
	DAT_RMR_TRIPLET remote = dt_rseg(to, target, len);

	return dat_ep_post_rdma_write(ep, 1, &seg, dt_cookie(cookie), &remote,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN ep_read(DAT_EP_HANDLE ep, const struct dt_buf *to, size_t offset,
				 const struct dt_buf *from, size_t source, size_t len,
				 uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(to, offset, len);
	DAT_RMR_TRIPLET remote = dt_rseg(from, source, len);

	return dat_ep_post_rdma_read(ep, 1, &seg, dt_cookie(cookie), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG);
}

/* One message of one byte from a to b, both completions taken: the connection works. */
static inline void ep_check_traffic(struct dt_ep *a, struct dt_ep *b, const struct dt_buf *buf)
{
	buf->p[0] = 0x5a;
	buf->p[1] = 0;
	dt_ok(ep_recv(b->ep, buf, 1, 1, 0xbeef));
	dt_ok(ep_send(a->ep, buf, 0, 1, 0xfeed));
	dt_expect_dto(b->recv, b->ep, 0xbeef, DAT_DTO_SUCCESS, 1);
	dt_expect_dto(a->request, a->ep, 0xfeed, DAT_DTO_SUCCESS, 1);
	assert_int_equal(buf->p[1], 0x5a);
}

/* --- queries --- */

static inline DAT_EP_PARAM ep_query(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param;
}

static inline bool ep_is_recv_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN idle;

	dt_ok(dat_ep_get_status(ep, NULL, &idle, NULL));
	return idle != DAT_FALSE;
}

static inline bool ep_is_request_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN idle;

	dt_ok(dat_ep_get_status(ep, NULL, NULL, &idle));
	return idle != DAT_FALSE;
}

/* Everything that a query tells except addresses, ports and state. */
static inline void ep_check_same_config(const DAT_EP_PARAM *a, const DAT_EP_PARAM *b)
{
	assert_ptr_equal(a->ia_handle, b->ia_handle);
	assert_ptr_equal(a->pz_handle, b->pz_handle);
	assert_ptr_equal(a->recv_evd_handle, b->recv_evd_handle);
	assert_ptr_equal(a->request_evd_handle, b->request_evd_handle);
	assert_ptr_equal(a->connect_evd_handle, b->connect_evd_handle);
	assert_ptr_equal(a->srq_handle, b->srq_handle);
	assert_int_equal(a->ep_attr.service_type, b->ep_attr.service_type);
	assert_int_equal(a->ep_attr.max_message_size, b->ep_attr.max_message_size);
	assert_int_equal(a->ep_attr.max_rdma_size, b->ep_attr.max_rdma_size);
	assert_int_equal(a->ep_attr.qos, b->ep_attr.qos);
	assert_int_equal(a->ep_attr.recv_completion_flags, b->ep_attr.recv_completion_flags);
	assert_int_equal(a->ep_attr.request_completion_flags, b->ep_attr.request_completion_flags);
	assert_int_equal(a->ep_attr.max_recv_dtos, b->ep_attr.max_recv_dtos);
	assert_int_equal(a->ep_attr.max_request_dtos, b->ep_attr.max_request_dtos);
	assert_int_equal(a->ep_attr.max_recv_iov, b->ep_attr.max_recv_iov);
	assert_int_equal(a->ep_attr.max_request_iov, b->ep_attr.max_request_iov);
	assert_int_equal(a->ep_attr.max_rdma_read_in, b->ep_attr.max_rdma_read_in);
	assert_int_equal(a->ep_attr.max_rdma_read_out, b->ep_attr.max_rdma_read_out);
	assert_int_equal(a->ep_attr.srq_soft_hw, b->ep_attr.srq_soft_hw);
	assert_int_equal(a->ep_attr.max_rdma_read_iov, b->ep_attr.max_rdma_read_iov);
	assert_int_equal(a->ep_attr.max_rdma_write_iov, b->ep_attr.max_rdma_write_iov);
	assert_int_equal(a->ep_attr.ep_transport_specific_count,
			 b->ep_attr.ep_transport_specific_count);
	assert_int_equal(a->ep_attr.ep_provider_specific_count,
			 b->ep_attr.ep_provider_specific_count);
}

static inline bool ep_is_disconnected(void *arg)
{
	return dt_ep_state(arg) == DAT_EP_STATE_DISCONNECTED;
}

/* --- service points --- */

/* A qualifier on which nobody listens (any more). */
static inline DAT_CONN_QUAL ep_free_qual(struct dt_ia *ia)
{
	struct dt_listener listener;
	DAT_CONN_QUAL qual;

	dt_listen(ia, &listener);
	qual = listener.qual;
	dt_unlisten(&listener);
	return qual;
}

/* Reserves the endpoint on a qualifier that was free a moment ago; returns the qualifier. */
static inline DAT_CONN_QUAL ep_reserve(struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
				       DAT_RSP_HANDLE *rsp)
{
	for (int tries = 0; tries < 100; tries++) {
		DAT_CONN_QUAL qual = ep_free_qual(ia);
		DAT_RETURN ret = dat_rsp_create(ia->ia, qual, ep, evd, rsp);

		if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
			continue; /* somebody else was faster */
		dt_ok(ret);
		return qual;
	}
	fail();
	return 0;
}

static inline DAT_CR_HANDLE ep_next_request(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = dt_event(evd);

	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

/* Connects and is turned away: the endpoint is DISCONNECTED, its Receives are flushed. */
static inline void ep_fail(struct dt_ia *ia, struct dt_ep *ep)
{
	struct dt_listener listener;

	dt_listen(ia, &listener);
	dt_connect(ia, ep->ep, listener.qual);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_unlisten(&listener);
}

/* Ends a connection between two endpoints of this process and takes both events. */
static inline void ep_unlink(struct dt_ep *a, struct dt_ep *b)
{
	dt_ok(dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(a->conn, a->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(b->conn, b->ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* --- the laboratory --- */

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

#define EP_LAB_BUF 65536

static const DAT_EP_STATE ep_states[] = {
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

#define EP_STATES EP_COUNT(ep_states)

/*
 * Can an endpoint stay in that state? What holds one in DISCONNECT_PENDING is a message that waits
 * for a Receive; iWARP ends the connection instead (DTO-104). Known once an adapter was opened.
 */
static inline bool ep_lasts(DAT_EP_STATE state)
{
	return state != DAT_EP_STATE_DISCONNECT_PENDING || !dt_is_iwarp();
}

/*
 * The other process of COMPLETION_PENDING: connects to the qualifier it is told, says so, and does
 * as it is told by one letter: 'e' expect ESTABLISHED and then DISCONNECTED, 'd' disconnect.
 */
static inline void ep_lab_connector(struct dt_peer *peer, void *arg)
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

static inline void ep_lab_tentative(struct ep_lab *lab)
{
	DAT_CR_PARAM param;
	DAT_EVD_HANDLE recv, request, conn;

	dt_ok(dat_psp_create_any(lab->ia.ia, &lab->qual, lab->sp_evd, DAT_PSP_PROVIDER_FLAG,
				 &lab->psp));
	dt_connect(&lab->ia, lab->peer.ep, lab->qual);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_ok(dat_cr_query(lab->cr, DAT_CR_FIELD_ALL, &param));
	/* the endpoint that ep was is not needed, its EVDs are */
	recv = lab->ep.recv;
	request = lab->ep.request;
	conn = lab->ep.conn;
	dt_ok(dat_ep_free(lab->ep.ep));
	lab->ep = (struct dt_ep){param.local_ep_handle, recv, request, conn};
}

static inline void ep_lab_listen(struct ep_lab *lab)
{
	dt_ok(dat_psp_create_any(lab->ia.ia, &lab->qual, lab->sp_evd, DAT_PSP_CONSUMER_FLAG,
				 &lab->psp));
}

static inline void ep_lab_completion(struct ep_lab *lab)
{
	ep_lab_listen(lab);
	dt_peer_send(&lab->process, &lab->qual, sizeof(lab->qual));
	dt_peer_sync(&lab->process);
	lab->cr = ep_next_request(lab->sp_evd);
	dt_peer_stop(&lab->process);
	dt_ok(dat_cr_accept(lab->cr, lab->ep.ep, 0, NULL));
}

/* Both ends connected; the peer has no Receive posted. */
static inline void ep_lab_connect(struct ep_lab *lab)
{
	dt_ep_link(&lab->ia, &lab->ep, &lab->peer);
}

static inline void ep_lab_drive(struct ep_lab *lab, DAT_EP_STATE state)
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

/* Everything but the state: adapter, memory, two unconnected endpoints. */
static inline void ep_lab_prepare(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr)
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

static inline void ep_lab_open_with(struct ep_lab *lab, DAT_EP_STATE state, const DAT_EP_ATTR *attr)
{
	ep_lab_prepare(lab, state, attr);
	ep_lab_drive(lab, state);
	assert_int_equal(dt_ep_state(lab->ep.ep), state);
}

/* The same with one EVD for all three kinds of events of the endpoint under test. */
static inline void ep_lab_open_shared(struct ep_lab *lab, DAT_EP_STATE state)
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

static inline void ep_lab_open(struct ep_lab *lab, DAT_EP_STATE state)
{
	ep_lab_open_with(lab, state, NULL);
}

/* Whatever state the endpoint is in by now. */
static inline void ep_lab_close(struct ep_lab *lab)
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

/* A Provider-made endpoint gets its zone and EVDs. */
static inline void ep_lab_equip(struct ep_lab *lab)
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

/* Nothing is queued on any EVD of the endpoint, nor on the asynchronous one. */
static inline void ep_lab_no_events(struct ep_lab *lab)
{
	dt_no_event(lab->ep.recv);
	dt_no_event(lab->ep.request);
	dt_no_event(lab->ep.conn);
	dt_no_event(lab->ia.async);
}

static inline int ep_lab_setup(void **state)
{
	static struct ep_lab lab;

	memset(&lab, 0, sizeof(lab));
	*state = &lab;
	return 0;
}

static inline int ep_lab_teardown(void **state)
{
	ep_lab_close(*state);
	return 0;
}

/* A test whose state is a closed laboratory; it is closed afterwards. */
#define ep_test(name) cmocka_unit_test_setup_teardown(name, ep_lab_setup, ep_lab_teardown)

#endif
