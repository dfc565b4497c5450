// SPDX-License-Identifier: BSD-2-Clause
/*
 * One scenario, run whole each time; the phase says where faults are injected. Both ends are in
 * this process. A step that a fault makes fail ends the phase; what was made until then is freed,
 * and each call that frees must succeed even while the fault persists.
 */
#include "step.h"

#include <time.h>

#define CONNECT_US 5000000u	   /* of dat_ep_connect; longer than a loaded machine needs */
#define STALLED_CONNECT_US 300000u /* the same if the peer may not answer */
#define END_US 10000000u	   /* longest wait for the end of a connection */

const struct sweep_scenario sweep_scenarios[] = {
	{"open", "map", "shm", SWEEP_OPEN, false},
	{"conf", "map", "shm", SWEEP_OPEN, false, true},
	{"objects", "map", "shm", SWEEP_OBJECTS, false},
	{"connect", "map", "shm", SWEEP_CONNECT, false},
	{"map", "map", "shm", SWEEP_TRANSFER, false},
	{"cma", "cma", "shm", SWEEP_TRANSFER, false},
	{"ring", "ring", "shm", SWEEP_TRANSFER, false},
	{"end", "map", "shm", SWEEP_END, false},
	{"reopen", "map", "shm", SWEEP_OPEN, true},
	{"reconnect", "ring", "shm", SWEEP_CONNECT, true},
	{"end-ring", "ring", "shm", SWEEP_END, true},
	{"tcp-open", "auto", "tcp", SWEEP_OPEN, false},
	{"tcp-connect", "auto", "tcp", SWEEP_CONNECT, false},
	{"tcp", "auto", "tcp", SWEEP_TRANSFER, false},
	{"tcp-end", "auto", "tcp", SWEEP_END, false},
	{"tcp-reconnect", "auto", "tcp", SWEEP_CONNECT, true},
	/* last: the driver enters another network for them */
	{"dir-open", "map", "shm", SWEEP_OPEN, false, .has_dir = true},
	{"dir-connect", "map", "shm", SWEEP_CONNECT, false, .has_dir = true},
	{"dir-end", "map", "shm", SWEEP_END, false, .has_dir = true},
};
const unsigned sweep_scenario_count = sizeof(sweep_scenarios) / sizeof(sweep_scenarios[0]);

static void phase_begin(const struct run *run, enum sweep_phase phase)
{
	sweep->is_armed = run->has_fault && run->scenario->phase == phase;
}

/* --- objects --- */

static bool open_ia(struct run *run)
{
	char plain[] = "soft-lo", other[] = "soft-" SWEEP_NETDEV;
	char *name = run->scenario->has_dir ? other : plain;

	if (!STEP(dat_ia_open(name, 8, &run->async, &run->ia))) {
		run->ia = DAT_HANDLE_NULL;
		return false;
	}
	return STEP(dat_ia_query(run->ia, NULL, DAT_IA_FIELD_ALL, &run->attr,
				 DAT_PROVIDER_FIELD_NONE, NULL));
}

static bool make_end(struct run *run, enum side side)
{
	const DAT_REGION_DESCRIPTION region = {.for_va = step_memory[side]};
	struct end *end = &run->ends[side];
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	if (!STEP(dat_lmr_create(run->ia, DAT_MEM_TYPE_VIRTUAL, region, SWEEP_LEN, run->pz,
				 DAT_MEM_PRIV_ALL_FLAG, &lmr, &end->lkey, &end->rkey, NULL, NULL)))
		return false;
	end->lmr = lmr;
	if (!STEP(dat_ep_create(run->ia, run->pz, run->dto, run->dto, run->conn, NULL, &ep)))
		return false;
	end->ep = ep;
	return true;
}

static bool make_evds(struct run *run)
{
	DAT_HANDLE made = DAT_HANDLE_NULL;

	if (!STEP(dat_cno_create(run->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &made)))
		return false;
	run->cno = made;
	if (!STEP(dat_evd_create(run->ia, 64, run->cno, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
				 &made)))
		return false;
	run->dto = made;
	if (!STEP(dat_evd_modify_cno(run->dto, DAT_HANDLE_NULL)))
		return false;
	if (!STEP(dat_evd_create(run->ia, 16, DAT_HANDLE_NULL,
				 DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &made)))
		return false;
	run->conn = made;
	return STEP(dat_evd_resize(run->conn, 4096));
}

static bool make_objects(struct run *run)
{
	DAT_SRQ_ATTR srq = {16, 1, DAT_SRQ_LW_DEFAULT};
	DAT_HANDLE made = DAT_HANDLE_NULL;

	if (!STEP(dat_pz_create(run->ia, &made)))
		return false;
	run->pz = made;
	if (!make_evds(run))
		return false;
	if (!STEP(dat_srq_create(run->ia, run->pz, &srq, &made)))
		return false;
	run->srq = made;
	if (!STEP(dat_rmr_create(run->pz, &made)))
		return false;
	run->rmr = made;
	return make_end(run, A) && make_end(run, B);
}

/* --- connection --- */

static struct end *end_of(struct run *run, DAT_EP_HANDLE ep)
{
	return run->ends[A].ep == ep ? &run->ends[A] : &run->ends[B];
}

static void answer_request(struct run *run, DAT_CR_HANDLE cr)
{
	if (STEP(dat_cr_accept(cr, run->ends[B].ep, 0, NULL)))
		return;
	MUST(dat_cr_reject(cr));
	run->ends[B].has_ended = true;
}

static void take_conn_event(struct run *run, const DAT_EVENT *event)
{
	struct end *end;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		answer_request(run, event->event_data.cr_arrival_event_data.cr_handle);
		return;
	}
	end = end_of(run, event->event_data.connect_event_data.ep_handle);
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		end->is_established = true;
	else
		end->has_ended = true;
	if (end->has_ended && (!run->has_fault || !sweep->fired))
		step_wrong("connection event", (DAT_RETURN)event->event_number);
}

static bool is_idle(const struct run *run, enum side side)
{
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;

	MUST(dat_ep_get_status(run->ends[side].ep, &state, NULL, NULL));
	return state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_DISCONNECTED;
}

static bool link_ends(struct run *run)
{
	const DAT_TIMEOUT timeout =
		sweep->is_stall && sweep->is_armed ? STALLED_CONNECT_US : CONNECT_US;
	const struct end *a = &run->ends[A], *b = &run->ends[B];
	DAT_CONN_QUAL qual = 0;
	DAT_HANDLE psp = DAT_HANDLE_NULL;
	DAT_EVENT event;

	if (!STEP(dat_psp_create_any(run->ia, &qual, run->conn, DAT_PSP_CONSUMER_FLAG, &psp)))
		return false;
	run->psp = psp;
	if (!STEP(dat_ep_connect(a->ep, run->attr.ia_address_ptr, qual, timeout, 0, NULL,
				 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)))
		return false;
	while (!a->is_established || !b->is_established) {
		if (a->has_ended && is_idle(run, B))
			return false;
		if (!EVENT(run->conn, &event))
			return false;
		take_conn_event(run, &event);
	}
	return !a->has_ended && !b->has_ended;
}

/* --- the end --- */

static void unlink_ends(struct run *run)
{
	const struct timespec pause = {.tv_nsec = 100000};
	const uint64_t end = step_now_us() + END_US;

	for (int side = A; side < SIDES; side++) {
		DAT_EP_HANDLE ep = run->ends[side].ep;

		if (ep && !is_idle(run, side))
			(void)dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	for (int side = A; side < SIDES; side++)
		while (run->ends[side].ep && !is_idle(run, side)) {
			if (step_now_us() > end) {
				step_wrong("the connection does not end", DAT_SUCCESS);
				break;
			}
			nanosleep(&pause, NULL);
		}
}

static void free_objects(struct run *run)
{
	if (run->psp)
		MUST(dat_psp_free(run->psp));
	if (run->rmr)
		MUST(dat_rmr_free(run->rmr));
	for (int side = A; side < SIDES; side++) {
		if (run->ends[side].ep)
			MUST(dat_ep_free(run->ends[side].ep));
		if (run->ends[side].lmr)
			MUST(dat_lmr_free(run->ends[side].lmr));
	}
	if (run->srq)
		MUST(dat_srq_free(run->srq));
	if (run->dto)
		MUST(dat_evd_free(run->dto));
	if (run->conn)
		MUST(dat_evd_free(run->conn));
	if (run->cno)
		MUST(dat_cno_free(run->cno));
	if (run->pz)
		MUST(dat_pz_free(run->pz));
}

static bool run_phases(struct run *run)
{
	phase_begin(run, SWEEP_OPEN);
	if (!open_ia(run))
		return false;
	phase_begin(run, SWEEP_OBJECTS);
	if (!make_objects(run))
		return false;
	phase_begin(run, SWEEP_CONNECT);
	if (!link_ends(run))
		return false;
	phase_begin(run, SWEEP_TRANSFER);
	if (!step_transfer(run))
		return false;
	phase_begin(run, SWEEP_END);
	return true;
}

void scenario_run(const struct sweep_scenario *scenario, bool has_fault)
{
	struct run run = {.scenario = scenario, .has_fault = has_fault};

	run_phases(&run);
	unlink_ends(&run);
	free_objects(&run);
	if (run.ia) {
		step_at(__func__, __LINE__);
		step_must(dat_ia_close(run.ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
	}
	sweep->is_armed = false;
}
