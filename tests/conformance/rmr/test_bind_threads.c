// SPDX-License-Identifier: BSD-2-Clause
/* Several threads bind one window at the same time. test_rmr.c frees it meanwhile, too. */
#include "bind_util.h"
#include "conf.h"

#define ROUNDS (DT_SLOW ? 60 : 300)
#define PEER_ROUNDS 10 /* the peer tries the window in each so many rounds */
#define RANGE 64u
#define UNBINDER 3 /* the thread that unbinds in every other round */

struct crowd {
	struct rig *rig;
	struct dt_buf region; /* another registration of y */
	DAT_RMR_HANDLE rmr;
	bool has_unbind;
	_Atomic int number;
	DAT_RMR_CONTEXT context[CONF_THREADS]; /* 0: unbound */
};

/* Each thread has a range of its own, and shares its endpoint with another one. */
static DAT_LMR_TRIPLET range_of(const struct crowd *crowd, int thread)
{
	return dt_seg(&crowd->region, (size_t)thread * RANGE, RANGE);
}

static struct dt_ep *ep_of(const struct crowd *crowd, int thread)
{
	return thread % 2 ? &crowd->rig->a : &crowd->rig->b;
}

static void *bind_once(void *arg)
{
	struct crowd *crowd = arg;
	const int me = atomic_fetch_add(&crowd->number, 1);
	DAT_LMR_TRIPLET range = range_of(crowd, me);

	crowd->context[me] = 0;
	if (crowd->has_unbind && me == UNBINDER)
		range.segment_length = 0;
	conf_try(dat_rmr_bind(crowd->rmr, &range, BIND_REMOTE, ep_of(crowd, me)->ep,
			      rmr_cookie((uint64_t)me), DAT_COMPLETION_DEFAULT_FLAG,
			      range.segment_length ? &crowd->context[me] : NULL));
	return NULL;
}

/* Each bind completes once, on its endpoint. */
static void expect_completions(const struct crowd *crowd)
{
	unsigned seen = 0;

	for (int i = 0; i < CONF_THREADS; i++) {
		struct dt_ep *ep = ep_of(crowd, i);
		const DAT_EVENT event = dt_event(ep->request);
		const uint64_t cookie =
			event.event_data.rmr_completion_event_data.user_cookie.as_64;

		assert_true(cookie < CONF_THREADS && ep_of(crowd, (int)cookie) == ep);
		bind_check_event(&event, crowd->rmr, cookie, DAT_DTO_SUCCESS);
		assert_false(seen & 1u << cookie);
		seen |= 1u << cookie;
	}
	expect_quiet(&crowd->rig->a);
	expect_quiet(&crowd->rig->b);
}

/* The thread whose bind was the last to take effect. */
static int find_last(const struct crowd *crowd)
{
	DAT_RMR_PARAM param;
	int last = -1;

	dt_ok(dat_rmr_query(crowd->rmr, DAT_RMR_FIELD_RMR_CONTEXT, &param));
	for (int i = 0; i < CONF_THREADS; i++) {
		for (int j = 0; j < i; j++)
			assert_int_not_equal(crowd->context[i], crowd->context[j]);
		if (crowd->context[i] == param.rmr_context)
			last = i;
	}
	assert_true(last >= 0);
	return last;
}

/* The peer has exactly that access to the range of a thread through the context of its bind. */
static void check_access(const struct crowd *crowd, int thread, bool has_access)
{
	peer_check(crowd->rig,
		   y_seg(crowd->rig, crowd->context[thread], (size_t)thread * RANGE, RANGE),
		   has_access, has_access);
}

/* The window is all that the last bind says, and the other binds have left nothing. */
static void check_window(const struct crowd *crowd, int round)
{
	const int last = find_last(crowd);
	const DAT_LMR_TRIPLET range = range_of(crowd, last);
	const bool is_bound = crowd->context[last];

	if (is_bound)
		rmr_check_bound(crowd->rmr, &range, BIND_REMOTE, crowd->context[last]);
	else
		rmr_check_unbound(crowd->rmr);
	if (round % PEER_ROUNDS == 0 || round % PEER_ROUNDS == 1) {
		check_access(crowd, last, is_bound);
		check_access(crowd,
			     (last + 1 + round / PEER_ROUNDS % (CONF_THREADS - 1)) % CONF_THREADS,
			     false);
	}
}

/* RMR-BIND-54 GEN-26 */
static void rmr_bind__by_several_threads__one_binding_is_left(void **state)
{
	struct crowd crowd = {.rig = *state};
	struct rig *rig = crowd.rig;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG,
		      &crowd.region);
	crowd.rmr = rmr_create(rig);
	for (int round = 0; round < ROUNDS; round++) {
		crowd.has_unbind = round % 2;
		atomic_store(&crowd.number, 0);
		conf_parallel(bind_once, &crowd);
		expect_completions(&crowd);
		check_window(&crowd, round);
	}
	dt_ok(dat_rmr_free(crowd.rmr));
	/* no binding uses the region any more */
	dt_ok(dat_lmr_free(crowd.region.lmr));
	rig_works(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(rmr_bind__by_several_threads__one_binding_is_left),
	};

	return cmocka_run_group_tests_name("bind threads", tests, NULL, NULL);
}
