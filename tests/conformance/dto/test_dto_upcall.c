// SPDX-License-Identifier: BSD-2-Clause
/*
 * DTOs posted from an upcall, the agent function of a CNO: a server that works only there answers
 * each message by an RDMA Read, an RDMA Write, a new Receive and a Send.
 */
#include "dto_util.h"

#define ROUNDS 200u
#define PART 1000u

struct server {
	struct rig *rig;
	DAT_CNO_HANDLE cno;
	_Atomic unsigned served;
};

/* The message of the client is at y[0]; x[PART] is read to y[PART], and written to x[2 * PART]. */
static void serve_one(struct server *server)
{
	struct rig *rig = server->rig;

	post_recv(&rig->b, dt_seg(&rig->y, 0, PART), 1);
	post_read(&rig->b, dt_seg(&rig->y, PART, PART), dt_rseg(&rig->x, PART, PART), 2, 0);
	post_write(&rig->b, dt_seg(&rig->y, PART, PART), dt_rseg(&rig->x, 2 * PART, PART), 3,
		   DAT_COMPLETION_BARRIER_FENCE_FLAG);
	server->served++; /* before the answer, which the other thread waits for */
	post_send(&rig->b, dt_seg(&rig->y, PART, PART), 4, 0);
}

static void server_agent(DAT_PVOID instance, DAT_EVD_HANDLE evd)
{
	struct server *server = instance;
	const DAT_OS_WAIT_PROXY_AGENT again = {server, server_agent};
	DAT_EVENT event;
	DAT_RETURN ret;

	if (!evd)
		return; /* the CNO or the adapter is being closed */
	ret = dat_cno_modify_agent(server->cno, again);
	/* a call whose event the previous call has taken, when all is done and the CNO is freed */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE && server->served == ROUNDS)
		return;
	dt_ok(ret);
	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
			serve_one(server);
}

/* EP-SEND-14 EP-RECV-11 EP-RDMAR-15 EP-RDMAW-20 */
static void post__in_an_upcall__works_without_deadlock(void **state)
{
	struct rig *rig = *state;
	struct server server = {.rig = rig};
	const DAT_OS_WAIT_PROXY_AGENT agent = {&server, server_agent};

	dt_ok(dat_cno_create(rig->ia.ia, agent, &server.cno));
	dt_ok(dat_evd_modify_cno(rig->b.recv, server.cno));
	post_recv(&rig->b, dt_seg(&rig->y, 0, PART), 1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		dt_fill(rig->x.p + PART, PART, round);
		post_recv(&rig->a, dt_seg(&rig->x, 3 * PART, PART), round);
		post_send(&rig->a, dt_seg(&rig->x, 0, PART), round, 0);
		expect_received(&rig->a, round, PART);
		expect_sent(&rig->a, round, PART);
		dt_check_pattern(rig->x.p + 2 * PART, PART, round);
		dt_check_pattern(rig->x.p + 3 * PART, PART, round);
		for (uint64_t cookie = 2; cookie <= 4; cookie++)
			expect_sent(&rig->b, cookie, PART);
	}
	assert_int_equal(server.served, ROUNDS);
	dt_no_event(rig->b.recv);
	dt_ok(dat_evd_modify_cno(rig->b.recv, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(server.cno));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post__in_an_upcall__works_without_deadlock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
