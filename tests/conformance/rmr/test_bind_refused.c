// SPDX-License-Identifier: BSD-2-Clause
/*
 * Binds that dat_rmr_bind refuses: wrong handles, parameters, zones, states, and a full queue. A
 * refused bind changes nothing.
 */
#include <dat/opendat.h>

#include "bind_util.h"
#include "conf.h"
#include "ep_lab.h"

/* A valid bind; tests change single arguments of it. */
struct bind_call {
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET range;
	bool has_no_range;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_EP_HANDLE ep;
	DAT_COMPLETION_FLAGS flags;
	bool has_no_context;
};

static struct bind_call good_call(struct rig *rig, DAT_RMR_HANDLE rmr)
{
	return (struct bind_call){.rmr = rmr,
				  .range = dt_seg(&rig->y, 128, 64),
				  .priv = BIND_REMOTE,
				  .ep = rig->b.ep};
}

static DAT_RETURN make(const struct bind_call *call, DAT_RMR_CONTEXT *context)
{
	return dat_rmr_bind(call->rmr, call->has_no_range ? NULL : &call->range, call->priv,
			    call->ep, rmr_cookie(0xBAD), call->flags,
			    call->has_no_context ? NULL : context);
}

/* The bound window, which no refused bind may change. */
struct witness {
	struct rig *rig;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET range;
	DAT_RMR_CONTEXT context;
	struct dt_buf other; /* a region that no refused bind may use */
};

static void witness_make(struct rig *rig, struct witness *witness)
{
	witness->rig = rig;
	witness->rmr = rmr_create(rig);
	witness->range = dt_seg(&rig->y, 0, 64);
	witness->context = bind_now(&rig->b, witness->rmr, witness->range, BIND_REMOTE);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &witness->other);
}

static void refused(struct witness *witness, const struct bind_call *call, DAT_RETURN code)
{
	const DAT_RMR_CONTEXT before = 0x5a5a5a5a;
	DAT_RMR_CONTEXT context = before;

	dt_returns(make(call, &context), code);
	assert_int_equal(context, before);
	dt_no_event(witness->rig->b.request);
	assert_true(ep_is_request_idle(witness->rig->b.ep));
	rmr_check_bound(witness->rmr, &witness->range, BIND_REMOTE, witness->context);
}

/* Checks that the refused binds left nothing behind. */
static void witness_end(struct witness *witness)
{
	struct rig *rig = witness->rig;

	peer_check(rig, y_seg(rig, witness->context, 0, 64), true, true);
	dt_ok(dat_lmr_free(witness->other.lmr));
	rig_works(rig);
}

/* --- handles --- */

/* RMR-BIND-35 RMR-BIND-36 GEN-14 GEN-15 GEN-19 */
static void rmr_bind__wrong_handles__invalid_handle(void **state)
{
	struct rig *rig = *state;
	struct witness witness;
	struct bind_call call;
	struct conf_bad bad;

	witness_make(rig, &witness);
	conf_bad_make(&rig->ia, &bad);
	for (size_t i = 0; i < CONF_BAD_COUNT + 4; i++) {
		const DAT_HANDLE more[] = {rig->b.ep, rig->ia.pz, rig->y.lmr, rig->b.request};
		const DAT_HANDLE wrong =
			i < CONF_BAD_COUNT ? bad.handle[i] : more[i - CONF_BAD_COUNT];

		call = good_call(rig, witness.rmr);
		call.rmr = wrong;
		refused(&witness, &call, DT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR));
		call.has_no_range = true; /* handles are checked first */
		refused(&witness, &call, DT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR));
		if (wrong == rig->b.ep)
			continue;
		call = good_call(rig, witness.rmr);
		call.ep = wrong;
		refused(&witness, &call, DT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
		call.priv = (DAT_MEM_PRIV_FLAGS)0x80;
		refused(&witness, &call, DT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
	}
	call = good_call(rig, witness.rmr);
	call.ep = witness.rmr;
	refused(&witness, &call, DT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
	witness_end(&witness);
}

/* --- parameters --- */

/* RMR-BIND-33 RMR-BIND-34 */
static void rmr_bind__missing_pointers__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	struct witness witness;
	struct bind_call call;

	witness_make(rig, &witness);
	call = good_call(rig, witness.rmr);
	call.has_no_range = true;
	refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	call = good_call(rig, witness.rmr);
	call.has_no_context = true;
	refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
	witness_end(&witness);
}

/* RMR-BIND-19 */
static void rmr_bind__undefined_privilege__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	struct witness witness;
	struct bind_call call;

	witness_make(rig, &witness);
	for (unsigned bit = 0; bit < 31; bit++) {
		if ((DAT_MEM_PRIV_ALL_FLAG | DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC) & 1u << bit)
			continue;
		call = good_call(rig, witness.rmr);
		call.priv = (DAT_MEM_PRIV_FLAGS)(1u << bit);
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
		call.priv = (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | 1u << bit);
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
		call.range.segment_length = 0;
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	}
	witness_end(&witness);
}

/* RMR-BIND-48 RMR-BIND-45: SOLICITED_WAIT is invalid for binds; UNSIGNALLED was not requested. */
static void rmr_bind__wrong_flag__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	struct witness witness;
	struct bind_call call;

	witness_make(rig, &witness);
	assert_int_equal(DAT_COMPLETION_SUPPRESS_FLAG, 0x01);
	assert_int_equal(DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0x02);
	assert_int_equal(DAT_COMPLETION_UNSIGNALLED_FLAG, 0x04);
	assert_int_equal(DAT_COMPLETION_BARRIER_FENCE_FLAG, 0x08);
	for (unsigned bit = 0; bit < 31; bit++) {
		if (bit == 0 || bit == 3)
			continue;
		call = good_call(rig, witness.rmr);
		call.flags = (DAT_COMPLETION_FLAGS)(1u << bit);
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
		call.flags = (DAT_COMPLETION_FLAGS)(0x09 | 1u << bit);
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
	}
	witness_end(&witness);
}

/* RMR-BIND-47: on an endpoint whose request completion flags are 0 */
static void rmr_bind__suppress_and_fence__need_no_configuration(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_RMR_CONTEXT context;

	assert_int_equal(rig->attr_b.request_completion_flags, DAT_COMPLETION_DEFAULT_FLAG);
	context = bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, 1,
			    DAT_COMPLETION_BARRIER_FENCE_FLAG);
	expect_bind(&rig->b, rmr, 1, DAT_DTO_SUCCESS);
	peer_check(rig, y_seg(rig, context, 0, 64), true, true);
	(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, 2,
			DAT_COMPLETION_SUPPRESS_FLAG);
	context = bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, 3,
			    DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG);
	(void)bind_now(&rig->b, rmr_create(rig), dt_seg(&rig->y, 0, 8), BIND_REMOTE);
	peer_check(rig, y_seg(rig, context, 0, 64), true, true);
	dt_no_event(rig->b.request);
}

/* RMR-BIND-31 RMR-BIND-32: by one byte, by far, around the end of the address space */
static void rmr_bind__range_not_in_a_region__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	struct witness witness;
	struct bind_call call;
	struct dt_buf gone;
	const DAT_LMR_TRIPLET whole = dt_seg(&rig->y, 0, RIG_LEN);
	static const struct {
		int64_t address, length;
	} off[] = {{-1, 0},
		   {0, 1},
		   {1, 0},
		   {-1, 1},
		   {-(1 << 20), 0},
		   {1 << 20, 0},
		   {0, INT64_MAX},
		   {0, -1 - (int64_t)RIG_LEN},
		   {RIG_LEN, 1 - (int64_t)RIG_LEN},
		   {-1, 1 - (int64_t)RIG_LEN}};

	witness_make(rig, &witness);
	for (size_t i = 0; i < COUNT_OF(off); i++) {
		call = good_call(rig, witness.rmr);
		call.range = whole;
		call.range.virtual_address += (DAT_VADDR)off[i].address;
		call.range.segment_length += (DAT_VLEN)off[i].length;
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	}
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &gone);
	dt_ok(dat_lmr_free(gone.lmr));
	const DAT_LMR_CONTEXT unknown[] = {0, gone.lkey, rig->y.rkey ^ 0x5a5a5a5a, UINT32_MAX,
					   rig->y.lkey ^ 1u << 31};

	for (size_t i = 0; i < COUNT_OF(unknown); i++) {
		call = good_call(rig, witness.rmr);
		call.range.lmr_context = unknown[i];
		refused(&witness, &call, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	}
	witness_end(&witness);
}

/* RMR-BIND-30: each of the three in another zone */
static void rmr_bind__zones_differ__protection_violation(void **state)
{
	struct rig *rig = *state;
	struct rig other = *rig;
	struct witness witness;
	struct bind_call call;
	struct dt_buf region;
	DAT_RMR_HANDLE rmr;

	witness_make(rig, &witness);
	dt_ok(dat_pz_create(rig->ia.ia, &other.ia.pz));
	rig_link(&other);
	dt_lmr_create(&rig->ia, other.ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &region);
	dt_ok(dat_rmr_create(other.ia.pz, &rmr));
	for (unsigned foreign = 1; foreign < 7; foreign++) {
		call = good_call(rig, foreign & 1 ? rmr : witness.rmr);
		if (foreign & 2)
			call.range = dt_seg(&region, 0, 64);
		if (foreign & 4)
			call.ep = other.b.ep;
		refused(&witness, &call, DT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE));
		dt_no_event(other.b.request);
	}
	call = good_call(rig, witness.rmr); /* an unbind has two of them */
	call.range.segment_length = 0;
	call.ep = other.b.ep;
	refused(&witness, &call, DT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE));
	dt_no_event(other.b.request);
	rmr_check_unbound(rmr);
	dt_ok(dat_lmr_free(region.lmr));
	witness_end(&witness);
}

/* RMR-BIND-20 RMR-BIND-21 GEN-20: refused for its privileges, a rebind leaves the old binding */
static void rmr_bind__privileges_lack__binding_stays(void **state)
{
	struct rig *rig = *state;
	struct witness witness;
	struct bind_call call;
	struct dt_buf region;

	witness_make(rig, &witness);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG, &region);
	call = good_call(rig, witness.rmr);
	call.range = dt_seg(&region, 0, 64);
	refused(&witness, &call, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE));
	call.priv = DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	refused(&witness, &call, DT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE));
	dt_ok(dat_lmr_free(region.lmr));
	witness_end(&witness);
}

/* --- resources --- */

/* RMR-BIND-49 IA-QUERY-19 DTO-111 GEN-19: binds alone, and beside other requests */
static void rmr_bind__queue_full__insufficient_resources(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const DAT_COUNT max = rig->attr_b.max_request_dtos;
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 0, 64);
	struct dt_buf region;
	DAT_RMR_CONTEXT context;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 64, DAT_MEM_PRIV_ALL_FLAG, &region);
	const DAT_LMR_TRIPLET surplus = dt_seg(&region, 0, 64);

	for (int round = 0; round < 3; round++) {
		hold_queue(rig);
		for (DAT_COUNT i = 1; i < max; i++) {
			if (round == 2 && i % 2)
				post_write(&rig->b, range, dt_rseg(&rig->x, 0, 64), (uint64_t)i, 0);
			else
				(void)bind_post(&rig->b, rmr, range, BIND_REMOTE, (uint64_t)i, 0);
		}
		dt_fails_with(dat_rmr_bind(rmr, &surplus, BIND_REMOTE, rig->b.ep, rmr_cookie(0), 0,
					   &context),
			      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
		dt_fails_with(dat_rmr_bind(rmr, &surplus, BIND_REMOTE, rig->b.ep, rmr_cookie(0),
					   DAT_COMPLETION_SUPPRESS_FLAG, &context),
			      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
		dt_fails_with(dat_rmr_bind(rmr, &surplus, (DAT_MEM_PRIV_FLAGS)0x80, rig->b.ep,
					   rmr_cookie(0), 0, &context),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		dt_fails_with(dat_ep_post_send(rig->b.ep, 0, NULL, dt_cookie(0), 0),
			      DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_TEP); /* a bind takes a slot as others do */
		dt_no_event(rig->b.request);
		release_queue(rig);
		for (DAT_COUNT i = 1; i < max; i++) {
			if (round == 2 && i % 2)
				expect_sent(&rig->b, (uint64_t)i, 64);
			else
				expect_bind(&rig->b, rmr, (uint64_t)i, DAT_DTO_SUCCESS);
		}
	}
	dt_ok(dat_lmr_free(region.lmr));
	rig_works(rig);
}

/* RMR-BIND-51 EP-CREATE-18: The endpoint works for all other requests. */
static void rmr_bind__request_evd_not_for_binds__invalid_state(void **state)
{
	struct rig *rig = *state;
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 0, 64);
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	struct dt_ep *const b = &rig->b;

	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &rig->a);
	b->recv = dt_evd_create(&rig->ia, 64, DAT_EVD_DTO_FLAG);
	b->request = dt_evd_create(&rig->ia, 64, DAT_EVD_DTO_FLAG);
	b->conn = dt_evd_create(&rig->ia, 64, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, b->recv, b->request, b->conn, NULL, &b->ep));
	dt_ep_link(&rig->ia, &rig->a, b);
	rmr = rmr_create(rig);
	dt_fails_with(dat_rmr_bind(rmr, &range, BIND_REMOTE, b->ep, rmr_cookie(1), 0, &context),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST);
	dt_no_event(b->request);
	rmr_check_unbound(rmr);
	rig_works(rig);
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	dt_fails_with(dat_rmr_bind(rmr, &range, BIND_REMOTE, b->ep, rmr_cookie(1), 0, &context),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST);
	dt_no_event(b->request);
	dt_ok(dat_lmr_free(rig->y.lmr));
}

/* --- states --- */

/* RMR-BIND-40 RMR-BIND-37 RMR-BIND-38 EP-STATE-65 EP-DISC-17: every state; GEN-19 in each */
static void rmr_bind__every_state__connected_and_disconnected_only(void **state)
{
	struct ep_lab *lab = *state;

	for (size_t i = 0; i < EP_STATES; i++) {
		DAT_LMR_TRIPLET range;
		DAT_RMR_CONTEXT context;
		DAT_RMR_HANDLE rmr;
		DAT_EVENT event;

		if (!ep_lasts(ep_states[i]))
			continue;
		ep_lab_open(lab, ep_states[i]);
		if (ep_states[i] == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			ep_lab_equip(lab);
		dt_ok(dat_rmr_create(lab->ia.pz, &rmr));
		range = dt_seg(&lab->buf, 0, 64);
		dt_fails_with(dat_rmr_bind(rmr, &range, (DAT_MEM_PRIV_FLAGS)0x80, lab->ep.ep,
					   rmr_cookie(1), 0, &context),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		const DAT_RETURN ret = dat_rmr_bind(rmr, &range, BIND_REMOTE, lab->ep.ep,
						    rmr_cookie(1), 0, &context);

		if (ep_states[i] == DAT_EP_STATE_CONNECTED) {
			dt_ok(ret);
			event = dt_event(lab->ep.request);
			bind_check_event(&event, rmr, 1, DAT_DTO_SUCCESS);
		} else if (ep_states[i] == DAT_EP_STATE_DISCONNECTED) {
			dt_ok(ret);
			event = dt_event(lab->ep.request);
			bind_check_event(&event, rmr, 1, DAT_DTO_ERR_FLUSHED);
		} else {
			dt_returns(ret, dt_state_error(ep_states[i]));
			rmr_check_unbound(rmr);
		}
		ep_lab_no_events(lab);
		assert_int_equal(dt_ep_state(lab->ep.ep), ep_states[i]);
		dt_ok(dat_rmr_free(rmr));
		dt_ok(dat_lmr_free(lab->buf.lmr)); /* no refused bind uses it */
		ep_lab_close(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(rmr_bind__wrong_handles__invalid_handle),
		rig_test(rmr_bind__missing_pointers__invalid_parameter),
		rig_test(rmr_bind__undefined_privilege__invalid_parameter),
		rig_test(rmr_bind__wrong_flag__invalid_parameter),
		rig_test(rmr_bind__suppress_and_fence__need_no_configuration),
		rig_test(rmr_bind__range_not_in_a_region__invalid_parameter),
		rig_test(rmr_bind__zones_differ__protection_violation),
		rig_test(rmr_bind__privileges_lack__binding_stays),
		rig_test(rmr_bind__queue_full__insufficient_resources),
		rig_test_bare(rmr_bind__request_evd_not_for_binds__invalid_state),
		ep_test(rmr_bind__every_state__connected_and_disconnected_only),
	};

	return cmocka_run_group_tests_name("bind refused", tests, NULL, NULL);
}
