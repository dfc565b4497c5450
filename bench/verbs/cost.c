// SPDX-License-Identifier: BSD-2-Clause
/*
 * What OpenDAT adds to the calls of rdma-core that it makes, for counting instructions: COUNT
 * operations of one kind, each posted and its completion taken, over a device that costs next to
 * nothing (quick.c).
 *
 *   verbs_cost direct|dat TEST COUNT
 *
 *   direct  by ibv_post_send or ibv_post_recv, and ibv_poll_cq
 *   dat     by the calls of dat/udat.h and dat_evd_dequeue, on the adapter verbs-quick
 *
 *   send    a Send of 8 bytes
 *   write   an RDMA Write of 8 bytes
 *   recv    a Receive, which a message fills at once
 *
 * The cost of the set-up does not depend on COUNT, so one operation takes (total(2 * COUNT) -
 * total(COUNT)) / COUNT instructions; bench/verbs-cost runs this under callgrind. Prints the number
 * of polls that found nothing, which should be 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "fake_inner.h"
#include "session.h"

#define COST_LEN 8u
#define COST_ROOM 4096u
#define COST_TIMEOUT_MS 60000u
/* enough for the locks to be the thread's own (core/base/lock.h) */
#define COST_WARM_UP 2000u

enum cost_test {
	COST_SEND,
	COST_WRITE,
	COST_RECV,
};

static uint64_t cost_empty_polls;

/* --- by rdma-core --- */

struct direct {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char data[COST_ROOM];
};

static int direct_take(struct direct *direct, uint64_t cookie)
{
	struct ibv_wc wc;
	int found;

	while ((found = ibv_poll_cq(direct->cq, 1, &wc)) == 0)
		cost_empty_polls++;
	if (found == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == cookie)
		return 0;
	tool_complain("transfer failed: status %d", (int)wc.status);
	return -ECONNRESET;
}

static int direct_request(struct direct *direct, enum cost_test test, uint64_t cookie)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)direct->data, .length = COST_LEN, .lkey = direct->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = cookie,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = test == COST_SEND ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};
	struct ibv_send_wr *bad;
	int rc;

	if (test == COST_WRITE) {
		wr.wr.rdma.remote_addr = (uintptr_t)direct->data + COST_ROOM / 2;
		wr.wr.rdma.rkey = direct->mr->rkey;
	}
	rc = ibv_post_send(direct->qp, &wr, &bad);
	return rc == 0 ? direct_take(direct, cookie) : -rc;
}

static int direct_recv(struct direct *direct, uint64_t cookie)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)direct->data, .length = COST_LEN, .lkey = direct->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = cookie, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int rc = ibv_post_recv(direct->qp, &wr, &bad);

	return rc == 0 ? direct_take(direct, cookie) : -rc;
}

static int direct_run(enum cost_test test, uint64_t count)
{
	static struct direct direct;
	struct ibv_context *context = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	int rc = 0;

	direct.cq = ibv_create_cq(context, 8192, NULL, NULL, 0);
	init.send_cq = direct.cq;
	init.recv_cq = direct.cq;
	direct.qp = ibv_create_qp(pd, &init);
	direct.mr = ibv_reg_mr(pd, direct.data, sizeof(direct.data), IBV_ACCESS_LOCAL_WRITE);
	for (uint64_t i = 0; i < COST_WARM_UP + count && rc == 0; i++) {
		if (i == COST_WARM_UP)
			cost_empty_polls = 0;
		rc = test == COST_RECV ? direct_recv(&direct, i) : direct_request(&direct, test, i);
	}
	ibv_dereg_mr(direct.mr);
	ibv_destroy_qp(direct.qp);
	ibv_destroy_cq(direct.cq);
	ibv_dealloc_pd(pd);
	return rc;
}

/* --- by OpenDAT --- */

struct dat {
	struct session session;
	DAT_EP_HANDLE from;
	DAT_EP_HANDLE to;
	struct session_buffer buffer;
	DAT_RMR_TRIPLET remote;
};

static int dat_take(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;
	DAT_RETURN code;

	while ((code = dat_evd_dequeue(evd, &event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(code) != DAT_QUEUE_EMPTY)
			return tool_call_failed("dat_evd_dequeue", code);
		cost_empty_polls++;
	}
	data = &event.event_data.dto_completion_event_data;
	if (data->status == DAT_DTO_SUCCESS && data->user_cookie.as_64 == cookie)
		return 0;
	tool_complain("transfer failed: %s", tool_dto_status_text(data->status));
	return -ECONNRESET;
}

static int dat_operation(struct dat *dat, enum cost_test test, uint64_t number)
{
	DAT_LMR_TRIPLET segment = {.lmr_context = dat->buffer.lmr_context,
				   .virtual_address = (uintptr_t)dat->buffer.data,
				   .segment_length = COST_LEN};
	DAT_DTO_COOKIE cookie = {.as_64 = number};
	DAT_RETURN code;

	if (test == COST_SEND)
		code = dat_ep_post_send(dat->from, 1, &segment, cookie,
					DAT_COMPLETION_DEFAULT_FLAG);
	else if (test == COST_WRITE)
		code = dat_ep_post_rdma_write(dat->from, 1, &segment, cookie, &dat->remote,
					      DAT_COMPLETION_DEFAULT_FLAG);
	else
		code = dat_ep_post_recv(dat->from, 1, &segment, cookie,
					DAT_COMPLETION_DEFAULT_FLAG);
	if (code != DAT_SUCCESS)
		return tool_call_failed("post", code);
	return dat_take(test == COST_RECV ? dat->session.recv_evd : dat->session.request_evd,
			number);
}

static int dat_established(struct session *session)
{
	DAT_EVENT event;
	int rc = session_wait(session, session->connect_evd, COST_TIMEOUT_MS, &event);

	if (rc != 0)
		return rc;
	return event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED ? 0 : -ECONNREFUSED;
}

static int dat_connect(struct dat *dat)
{
	struct session *session = &dat->session;
	struct session_private hello;
	DAT_CONN_QUAL qualifier = 0;
	DAT_CR_HANDLE request;
	DAT_PSP_HANDLE psp;
	DAT_RETURN code;
	int rc = session_listen(session, &qualifier, &psp);

	if (rc != 0)
		return rc;
	code = dat_ep_connect(dat->from, (DAT_IA_ADDRESS_PTR)&session->address, qualifier,
			      COST_TIMEOUT_MS * 1000u, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_ep_connect", code);
	rc = session_request_wait(session, COST_TIMEOUT_MS, &request, &hello);
	if (rc != 0)
		return rc;
	code = dat_cr_accept(request, dat->to, 0, NULL);
	if (code != DAT_SUCCESS)
		return tool_call_failed("dat_cr_accept", code);
	rc = dat_established(session);
	return rc == 0 ? dat_established(session) : rc;
}

static int dat_prepare(struct dat *dat)
{
	int rc = session_open(&dat->session, "verbs-quick", false, COST_TIMEOUT_MS);

	if (rc == 0)
		rc = session_endpoint_create(&dat->session, &dat->from);
	if (rc == 0)
		rc = session_endpoint_create(&dat->session, &dat->to);
	if (rc == 0)
		rc = session_buffer_create(&dat->session, COST_ROOM, &dat->buffer);
	if (rc != 0)
		return rc;
	dat->remote =
		(DAT_RMR_TRIPLET){.rmr_context = dat->buffer.rmr_context,
				  .target_address = (uintptr_t)dat->buffer.data + COST_ROOM / 2,
				  .segment_length = COST_LEN};
	return dat_connect(dat);
}

static int dat_run(enum cost_test test, uint64_t count)
{
	static struct dat dat;
	int rc = dat_prepare(&dat);

	for (uint64_t i = 0; i < COST_WARM_UP + count && rc == 0; i++) {
		if (i == COST_WARM_UP)
			cost_empty_polls = 0;
		rc = dat_operation(&dat, test, i);
	}
	session_close(&dat.session);
	session_buffer_destroy(&dat.buffer);
	return rc;
}

static int cost_find(const char *const names[], int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (name && strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"direct", "dat"};
	static const char *const tests[] = {
		[COST_SEND] = "send", [COST_WRITE] = "write", [COST_RECV] = "recv"};
	int way = argc > 1 ? cost_find(ways, 2, argv[1]) : -1;
	int test = argc > 2 ? cost_find(tests, 3, argv[2]) : -1;
	uint64_t count = 0;
	int rc;

	tool_name = "verbs_cost";
	if (way < 0 || test < 0 || argc != 4 || tool_parse_number(argv[3], &count) != 0) {
		fputs("usage: verbs_cost direct|dat send|write|recv COUNT\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	rc = way == 0 ? direct_run((enum cost_test)test, count)
		      : dat_run((enum cost_test)test, count);
	if (rc == 0)
		printf("{\"way\": \"%s\", \"test\": \"%s\", \"count\": %" PRIu64
		       ", \"empty_polls\": %" PRIu64 "}\n",
		       argv[1], argv[2], count, cost_empty_polls);
	return rc == 0 ? TOOL_EXIT_OK : TOOL_EXIT_FAILED;
}
