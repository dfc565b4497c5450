// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls on endpoints, service points, requests and shared receive queues from inside agents.
 */
#include "cno_util.h"
#include "ep_util.h"
#include "srq_util.h"

#define QUAL_BASE (UINT64_C(1) << 59)

/* --- transfers from inside an agent --- */

struct transfer {
	struct dt_pair pair;
	struct dt_buf a, b;
};

#define PIECE 3000u /* larger than an inline Send */

static void transfer_open(struct transfer *t)
{
	dt_pair_open(&t->pair);
	dt_buf_create(&t->pair.ia, t->pair.ia.pz, &t->a, 8 * PIECE, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&t->pair.ia, t->pair.ia.pz, &t->b, 8 * PIECE, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(t->a.p, PIECE, 1);
	dt_fill(t->a.p + PIECE, PIECE, 2);
	dt_fill(t->b.p + 4 * PIECE, PIECE, 3);
}

static void transfer_close(struct transfer *t)
{
	dt_buf_free(&t->a);
	dt_buf_free(&t->b);
	dt_pair_close(&t->pair);
}

static void post_all(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct transfer *t = agent->arg;

	(void)evd;
	dt_ok(ep_recv(t->pair.b.ep, &t->b, 0, PIECE, 10));
	dt_ok(ep_send(t->pair.a.ep, &t->a, 0, PIECE, 11));
	dt_ok(ep_write(t->pair.a.ep, &t->a, PIECE, &t->b, PIECE, PIECE, 12));
	dt_ok(ep_read(t->pair.a.ep, &t->a, 2 * PIECE, &t->b, 4 * PIECE, PIECE, 13));
}

/* EP-SEND-14 EP-RECV-11 EP-RDMAR-15 EP-RDMAW-20 */
static void agent__posts_each_kind__all_complete(void **state)
{
	struct transfer t;

	(void)state;
	transfer_open(&t);
	cno_agent_do(&t.pair.ia, post_all, &t);
	dt_expect_dto(t.pair.b.recv, t.pair.b.ep, 10, DAT_DTO_SUCCESS, PIECE);
	for (uint64_t cookie = 11; cookie <= 13; cookie++)
		dt_expect_dto(t.pair.a.request, t.pair.a.ep, cookie, DAT_DTO_SUCCESS, PIECE);
	dt_check_pattern(t.b.p, PIECE, 1);
	dt_check_pattern(t.b.p + PIECE, PIECE, 2);
	dt_check_pattern(t.a.p + 2 * PIECE, PIECE, 3);
	transfer_close(&t);
}

/* Called by Receives of b: answers each from inside, with a Send, a Write and a Read. */
static void answer_message(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct transfer *t = agent->arg;
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	cno_agent_arm(agent);
	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		dto = &event.event_data.dto_completion_event_data;
		cno_check(dto->status == DAT_DTO_SUCCESS && dto->ep_handle == t->pair.b.ep);
		dt_ok(ep_recv(dto->ep_handle, &t->b, 0, PIECE, dto->user_cookie.as_64 + 1));
		dt_ok(ep_read(dto->ep_handle, &t->b, PIECE, &t->a, 0, PIECE, 1));
		dt_ok(ep_write(dto->ep_handle, &t->b, 0, &t->a, 3 * PIECE, PIECE, 2));
		dt_ok(ep_send(dto->ep_handle, &t->b, 0, PIECE, 3));
	}
}

/* EP-SEND-14 EP-RECV-11 EP-RDMAR-15 EP-RDMAW-20 EP-GEN-13: on the endpoint that made it run */
static void agent__answers_messages__all_complete(void **state)
{
	struct transfer t;
	struct cno_agent agent = {.body = answer_message, .arg = &t};

	(void)state;
	transfer_open(&t);
	dt_map(&t.pair.b, dt_seg(&t.b, 0, 1), dt_rseg(&t.a, 0, 1));
	dt_ok(ep_recv(t.pair.b.ep, &t.b, 0, PIECE, 100));
	dt_ok(dat_evd_modify_cno(t.pair.b.recv, cno_agent_create(&t.pair.ia, &agent)));
	for (uint32_t i = 0; i < 50; i++) {
		dt_fill(t.a.p, PIECE, i);
		dt_ok(ep_recv(t.pair.a.ep, &t.a, 2 * PIECE, PIECE, 5));
		dt_ok(ep_send(t.pair.a.ep, &t.a, 0, PIECE, 4));
		dt_expect_dto(t.pair.a.request, t.pair.a.ep, 4, DAT_DTO_SUCCESS, PIECE);
		dt_expect_dto(t.pair.a.recv, t.pair.a.ep, 5, DAT_DTO_SUCCESS, PIECE);
		for (uint64_t cookie = 1; cookie <= 3; cookie++)
			dt_expect_dto(t.pair.b.request, t.pair.b.ep, cookie, DAT_DTO_SUCCESS,
				      PIECE);
		dt_check_pattern(t.a.p + 2 * PIECE, PIECE, i);
		dt_check_pattern(t.a.p + 3 * PIECE, PIECE, i);
		dt_check_pattern(t.b.p + PIECE, PIECE, i);
	}
	cno_agent_disarm(&agent);
	dt_ok(dat_evd_modify_cno(t.pair.b.recv, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(agent.cno));
	transfer_close(&t);
}

static void free_endpoint(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	DAT_EP_HANDLE *ep = agent->arg;
	DAT_EVENT event;

	dt_ok(dat_evd_dequeue(evd, &event));
	dt_ok(dat_ep_free(*ep));
	dt_fails_with(dat_ep_free(*ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

/* EP-GEN-13: the completion's endpoint, connected, is freed */
static void agent__frees_the_connected_endpoint__peer_notified(void **state)
{
	struct dt_pair pair;
	struct cno_agent agent = {.body = free_endpoint, .arg = &pair.b.ep};

	(void)state;
	dt_pair_open(&pair);
	dt_ok(dat_evd_modify_cno(pair.b.recv, cno_agent_create(&pair.ia, &agent)));
	cno_send(&pair, 1, DAT_COMPLETION_DEFAULT_FLAG);
	cno_agent_called(&agent, 1, pair.b.recv);
	dt_expect_dto(pair.a.request, pair.a.ep, 1, DAT_DTO_SUCCESS, 0);
	dt_expect_conn(pair.a.conn, pair.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_evd_free(pair.b.recv));
	dt_ok(dat_evd_free(pair.b.request));
	dt_ok(dat_evd_free(pair.b.conn));
	dt_ok(dat_cno_free(agent.cno));
	dt_ep_free(&pair.a);
	dt_ia_close(&pair.ia);
}

/* --- requests, answered from inside --- */

struct server {
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL elsewhere;
	int requests;
};

static void serve_request(struct server *server, DAT_CR_HANDLE cr)
{
	DAT_PSP_PARAM psp_param;
	DAT_CR_PARAM param;

	dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	dt_ok(dat_psp_query(server->psp, DAT_PSP_FIELD_ALL, &psp_param));
	switch (server->requests++) {
	case 0:
		dt_ok(dat_cr_reject(cr));
		break;
	case 1:
		dt_ok(dat_cr_handoff(cr, server->elsewhere));
		break;
	default:
		dt_ok(dat_cr_accept(cr, server->ep, 0, NULL));
		dt_ok(dat_psp_free(server->psp));
		dt_fails_with(dat_psp_free(server->psp), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_PSP);
	}
	dt_fails_with(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
}

static void serve(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	cno_agent_arm(agent);
	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		serve_request(agent->arg, event.event_data.cr_arrival_event_data.cr_handle);
}

/* EP-GEN-13: Every call on the request and the service point that triggered the agent. */
static void agent__answers_requests__as_elsewhere(void **state)
{
	struct dt_listener listener, other;
	struct dt_ep active, passive;
	struct server server = {0};
	struct cno_agent agent = {.body = serve, .arg = &server};
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &active);
	dt_ep_create(&ia, ia.pz, NULL, &passive);
	dt_listen(&ia, &listener);
	dt_listen(&ia, &other);
	server = (struct server){passive.ep, listener.psp, other.qual, 0};
	dt_ok(dat_evd_modify_cno(listener.evd, cno_agent_create(&ia, &agent)));
	for (int i = 0; i < 2; i++) {
		dt_connect(&ia, active.ep, listener.qual);
		if (i == 1)
			dt_ok(dat_cr_reject(dt_request(&other)));
		dt_expect_conn(active.conn, active.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(active.ep));
		/* a request that comes while the agent runs may be answered by the same call */
		cno_agent_called(&agent, i + 1, listener.evd);
	}
	dt_connect(&ia, active.ep, listener.qual);
	dt_expect_conn(active.conn, active.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(passive.conn, passive.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	cno_agent_called(&agent, 3, listener.evd);
	cno_agent_disarm(&agent);
	dt_ok(dat_evd_free(listener.evd));
	dt_ok(dat_cno_free(agent.cno));
	dt_ep_free(&active);
	dt_ep_free(&passive);
	dt_unlisten(&other);
	dt_ia_close(&ia);
}

/* --- the life of an endpoint, driven by its connection events --- */

struct life {
	struct dt_ia *ia;
	DAT_EP_HANDLE ep;
	DAT_CONN_QUAL to;
	int connections;
	atomic_bool is_over;
};

static void on_established(struct life *life)
{
	DAT_BOOLEAN is_idle;
	DAT_EP_STATE ep_state;

	cno_check(ep_query(life->ep).ep_state == DAT_EP_STATE_CONNECTED);
	dt_ok(dat_ep_get_status(life->ep, &ep_state, &is_idle, &is_idle));
	dt_ok(ep_recv_empty(life->ep, 7));
	dt_ok(dat_ep_disconnect(life->ep, life->connections++ % 2 ? DAT_CLOSE_GRACEFUL_FLAG
								  : DAT_CLOSE_ABRUPT_FLAG));
}

static void on_disconnected(struct life *life)
{
	DAT_EP_PARAM param;

	if (life->connections == 4) {
		dt_ok(dat_ep_free(life->ep));
		atomic_store(&life->is_over, true);
		return;
	}
	dt_ok(dat_ep_reset(life->ep));
	param = ep_query(life->ep);
	param.pz_handle = life->ia->pz;
	dt_ok(dat_ep_modify(life->ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	dt_ok(dat_ep_connect(life->ep, life->ia->attr.ia_address_ptr, life->to,
			     DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG));
}

static void on_conn_event(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	struct life *life = agent->arg;
	DAT_EVENT event;

	cno_agent_arm(agent);
	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		cno_check(event.event_data.connect_event_data.ep_handle == life->ep);
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			on_established(life);
		else
			on_disconnected(life);
	}
}

static bool is_finished(void *arg)
{
	return atomic_load(&((struct life *)arg)->is_over);
}

/* EP-GEN-13: Connect, disconnect, reset, modify, free and more on the endpoint that triggered
 * the agent. */
static void agent__drives_an_endpoint__as_elsewhere(void **state)
{
	struct dt_listener listener;
	struct dt_ep active, passive;
	struct dt_ia ia;
	struct life life = {.ia = &ia};
	struct cno_agent agent = {.body = on_conn_event, .arg = &life};

	(void)state;
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &active);
	dt_ep_create(&ia, ia.pz, NULL, &passive);
	dt_listen(&ia, &listener);
	life.ep = active.ep;
	life.to = listener.qual;
	dt_ok(dat_evd_modify_cno(active.conn, cno_agent_create(&ia, &agent)));
	dt_connect(&ia, active.ep, listener.qual);
	for (int i = 0; i < 4; i++) {
		dt_ok(dat_cr_accept(dt_request(&listener), passive.ep, 0, NULL));
		dt_expect_conn(passive.conn, passive.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(passive.conn, passive.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_reset(passive.ep));
	}
	dt_until(is_finished, &life);
	cno_agent_fence(&ia);
	cno_agent_disarm(&agent);
	dt_ok(dat_evd_free(active.conn));
	dt_ok(dat_evd_free(active.recv));
	dt_ok(dat_evd_free(active.request));
	dt_ok(dat_cno_free(agent.cno));
	dt_ep_free(&passive);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

/* --- create and free --- */

static void call_points(struct dt_ia *ia, DAT_EVD_HANDLE evd)
{
	static uint64_t serial;
	DAT_CONN_QUAL qual = QUAL_BASE | (uint64_t)getpid() << 20 | ++serial;
	DAT_RSP_PARAM rsp_param;
	DAT_RSP_HANDLE rsp;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;

	dt_ok(dat_psp_create(ia->ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_psp_create_any(ia->ia, &qual, evd, DAT_PSP_PROVIDER_FLAG, &psp));
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_ep_create(ia->ia, ia->pz, evd, evd, evd, NULL, &ep));
	dt_ok(dat_rsp_create(ia->ia, qual, ep, evd, &rsp));
	dt_ok(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &rsp_param));
	dt_ok(dat_rsp_free(rsp));
	dt_ok(dat_ep_free(ep));
}

static void call_queues(struct dt_ia *ia, DAT_EVD_HANDLE evd)
{
	DAT_SRQ_ATTR attr = {8, 1, DAT_SRQ_LW_DEFAULT};
	DAT_SRQ_PARAM param;
	DAT_EP_ATTR ep_attr;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
	DAT_COUNT count;

	srq_ep_attr(ia, &ep_attr); /* no watermarks: a device refuses them (EP-CRSRQ-31) */
	dt_ok(dat_srq_create(ia->ia, ia->pz, &attr, &srq));
	dt_ok(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	dt_ok(dat_srq_resize(srq, 16));
	dt_ok(dat_srq_set_lw(srq, 1));
	dt_ok(dat_srq_post_recv(srq, 0, NULL, dt_cookie(1)));
	dt_ok(dat_ep_create_with_srq(ia->ia, ia->pz, evd, evd, evd, srq, &ep_attr, &ep));
	dt_ok(dat_ep_recv_query(ep, &count, &count));
	/* EP-WMARK-19: a device has no high watermarks */
	dt_returns(dat_ep_set_watermark(ep, 2, DAT_HW_DEFAULT),
		   srq_shows_held(ia) ? DAT_SUCCESS
				      : DT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE));
	dt_ok(dat_ep_free(ep));
	dt_ok(dat_srq_free(srq));
}

static void call_makers(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	call_points(agent->arg, evd);
	call_queues(agent->arg, evd);
}

/* EP-GEN-13 CNO-CREATE-15 EP-WMARK-19: service points and shared receive queues */
static void agent__makes_points_and_queues__as_elsewhere(void **state)
{
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	for (int i = 0; i < 5; i++)
		cno_agent_do(&ia, call_makers, &ia);
	dt_ia_close(&ia);
}

static void call_dup(struct cno_agent *agent, DAT_EVD_HANDLE evd)
{
	DAT_EP_HANDLE *ep = agent->arg;

	(void)evd;
	dt_ok(dat_ep_dup_connect(ep[0], ep[1], DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT));
}

/* EP-GEN-13 */
static void agent__dup_connects__established(void **state)
{
	struct dt_listener listener;
	struct dt_ep ep[4];
	DAT_EP_HANDLE dup[2];
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	for (int i = 0; i < 4; i++)
		dt_ep_create(&ia, ia.pz, NULL, &ep[i]);
	for (int i = 0; i < 4; i += 2) {
		dup[0] = ep[i].ep;
		dup[1] = ep[0].ep;
		if (i)
			cno_agent_do(&ia, call_dup, dup);
		else
			dt_connect(&ia, ep[0].ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), ep[i + 1].ep, 0, NULL));
		dt_expect_conn(ep[i].conn, ep[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_expect_conn(ep[i + 1].conn, ep[i + 1].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	for (int i = 0; i < 4; i++)
		dt_ep_free(&ep[i]);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agent__posts_each_kind__all_complete),
		cmocka_unit_test(agent__answers_messages__all_complete),
		cmocka_unit_test(agent__frees_the_connected_endpoint__peer_notified),
		cmocka_unit_test(agent__answers_requests__as_elsewhere),
		cmocka_unit_test(agent__drives_an_endpoint__as_elsewhere),
		cmocka_unit_test(agent__makes_points_and_queues__as_elsewhere),
		cmocka_unit_test(agent__dup_connects__established),
	};

	return cmocka_run_group_tests_name("agent_ep", tests, NULL, NULL);
}
