// SPDX-License-Identifier: BSD-2-Clause
/*
 * Binds: the event, the context, the access that a bind grants and ends, and the use of the region.
 */
#include "bind_util.h"

/* --- the event --- */

/* RMR-BIND-01 RMR-BIND-03 RMR-BIND-04 RMR-BIND-05 RMR-BIND-07 DTO-05 EP-CREATE-11 */
static void rmr_bind__range__event_on_the_request_evd(void **state)
{
	static const uint64_t cookies[] = {0xfedcba9876543210ull, UINT64_MAX, 1ull << 63, 1};
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);

	assert_int_equal(DAT_RMR_BIND_COMPLETION_EVENT, 0x01001);
	assert_int_equal(DAT_RMR_BIND_SUCCESS, 0);
	for (size_t i = 0; i < COUNT_OF(cookies); i++) {
		const DAT_RMR_CONTEXT context =
			bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 4096), BIND_REMOTE, cookies[i],
				  DAT_COMPLETION_DEFAULT_FLAG);
		const DAT_EVENT event = dt_event(rig->b.request);

		assert_ptr_equal(event.evd_handle, rig->b.request);
		bind_check_event(&event, rmr, cookies[i], DAT_RMR_BIND_SUCCESS);
		expect_quiet(&rig->a);
		expect_quiet(&rig->b);
		peer_check(rig, y_seg(rig, context, 0, 4096), true, true);
	}
}

/* RMR-BIND-06 */
static void rmr_bind__same_and_empty_cookies__an_event_for_each(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr[] = {rmr_create(rig), rmr_create(rig)};
	static const uint64_t cookies[] = {7, 7, 0, 0};

	for (size_t i = 0; i < COUNT_OF(cookies); i++)
		(void)bind_post(&rig->b, rmr[i % 2], dt_seg(&rig->y, 0, 8), BIND_REMOTE, cookies[i],
				DAT_COMPLETION_DEFAULT_FLAG);
	for (size_t i = 0; i < COUNT_OF(cookies); i++)
		expect_bind(&rig->b, rmr[i % 2], cookies[i], DAT_DTO_SUCCESS);
	dt_stays_empty(rig->b.request);
}

/* RMR-BIND-25 RMR-BIND-26 RMR-BIND-24: With garbage in the other fields, and no output pointer. */
static void rmr_bind__length_0__unbind_with_its_event(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_LMR_TRIPLET nothing;
	DAT_RMR_CONTEXT context;

	memset(&nothing, 0xa5, sizeof(nothing));
	nothing.segment_length = 0;
	for (int round = 0; round < 3; round++) { /* round 2: it is unbound already */
		if (round < 2)
			(void)bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE);
		dt_ok(dat_rmr_bind(rmr, &nothing, BIND_REMOTE, rig->b.ep, rmr_cookie(0x123456789),
				   DAT_COMPLETION_DEFAULT_FLAG, round == 1 ? &context : NULL));
		expect_bind(&rig->b, rmr, 0x123456789, DAT_DTO_SUCCESS);
		rmr_check_unbound(rmr);
	}
	expect_quiet(&rig->b);
}

/* --- the context --- */

#define REBINDS 300

/* RMR-BIND-08: None of the last contexts is issued again soon. */
static void rmr_bind__again_and_again__another_context_each_time(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	static DAT_RMR_CONTEXT context[REBINDS];

	for (int i = 0; i < REBINDS; i++) {
		context[i] = bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE);
		assert_int_not_equal(context[i], 0);
		assert_int_not_equal(context[i], rig->y.rkey);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(context[i], context[j]);
		if (i % 3 == 0)
			unbind_now(&rig->b, rmr);
	}
}

/* RMR-BIND-10 RMR-BIND-27 RMR-BIND-23 DTO-99: After enough use that the memory is mapped. */
static void rmr_bind__bound_again__old_context_refused(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_RMR_CONTEXT old, context;
	struct dt_buf region;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, BIND_LOCAL, &region);
	for (int round = 0; round < 3; round++) {
		old = bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 30000), BIND_REMOTE);
		for (int i = 0; i < 10; i++)
			peer_check(rig, y_seg(rig, old, 0, 30000), true, true);
		context = old;
		if (round == 0) /* the same range of the same region */
			context = bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 30000), BIND_REMOTE);
		else if (round == 1) /* another region over the same memory */
			context = bind_now(&rig->b, rmr, dt_seg(&region, 0, 30000), BIND_REMOTE);
		else
			unbind_now(&rig->b, rmr);
		peer_locked_out(rig, old);
		if (round < 2)
			peer_check(rig, y_seg(rig, context, 0, 30000), true, true);
	}
}

/* RMR-BIND-09 DTO-91 DTO-90 */
static void rmr_bind__one_byte_outside__remote_access(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const size_t at = 1003, len = 517;
	const DAT_RMR_CONTEXT context =
		bind_now(&rig->b, rmr, dt_seg(&rig->y, at, len), BIND_REMOTE);
	static const struct {
		int before, after;
	} out[] = {{1, 0}, {0, 1}, {1, 1}, {-517, 1}, {1, -517}};

	peer_check(rig, y_seg(rig, context, at, len), true, true);
	peer_check(rig, y_seg(rig, context, at, 1), true, true);
	peer_check(rig, y_seg(rig, context, at + len - 1, 1), true, true);
	for (size_t i = 0; i < COUNT_OF(out); i++) {
		const size_t from = (size_t)((int)at - out[i].before);
		const size_t to = (size_t)((int)(at + len) + out[i].after);

		peer_check(rig, y_seg(rig, context, from, to - from), false, false);
	}
	peer_locked_out(rig, context ^ 1u << 31); /* an invalid context */
}

/* RMR-BIND-15 RMR-BIND-16 RMR-BIND-17 RMR-BIND-18 DTO-88 DTO-92 */
static void rmr_bind__privileges__as_granted(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	static const DAT_MEM_PRIV_FLAGS privs[] = {0x00, 0x02, 0x20, 0x22, 0x33, 0x03, 0x30, 0x11};

	assert_int_equal(DAT_MEM_PRIV_NONE_FLAG, 0x00);
	assert_int_equal(DAT_MEM_PRIV_REMOTE_READ_FLAG, 0x02);
	assert_int_equal(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0x20);
	assert_int_equal(DAT_MEM_PRIV_ALL_FLAG, 0x33);
	for (size_t i = 0; i < COUNT_OF(privs); i++) {
		const DAT_RMR_CONTEXT context =
			bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), privs[i]);

		peer_check(rig, y_seg(rig, context, 0, 64), privs[i] & 0x02, privs[i] & 0x20);
	}
}

/* RMR-BIND-20 RMR-BIND-21 RMR-BIND-22 LMR-CREATE-39 LMR-CREATE-45: The context selects one of
 * two regions over the same memory. */
static void rmr_bind__region_with_fewer_privileges__local_ones_decide(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	static const DAT_MEM_PRIV_FLAGS of_region[] = {0x00, 0x01, 0x10, 0x11,
						       0x02, 0x20, 0x22, 0x33};
	static const DAT_MEM_PRIV_FLAGS of_bind[] = {0x00, 0x02, 0x20, 0x22, 0x11};

	for (size_t i = 0; i < COUNT_OF(of_region); i++) {
		const bool local_write = of_region[i] & 0x10;
		const bool local_read = of_region[i] & 0x11;
		struct dt_buf region;

		dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 4096, of_region[i], &region);
		for (size_t j = 0; j < COUNT_OF(of_bind); j++) {
			const DAT_LMR_TRIPLET range = dt_seg(&region, 0, 64);
			const bool read = of_bind[j] & 0x02, write = of_bind[j] & 0x20;
			DAT_RMR_CONTEXT context;
			const DAT_RETURN ret =
				dat_rmr_bind(rmr, &range, of_bind[j], rig->b.ep, rmr_cookie(1),
					     DAT_COMPLETION_DEFAULT_FLAG, &context);

			if ((read && !local_read) || (write && !local_write)) {
				dt_fails_with(ret, DAT_PRIVILEGES_VIOLATION,
					      read && !local_read ? DAT_PRIVILEGES_READ
								  : DAT_PRIVILEGES_WRITE);
				dt_no_event(rig->b.request);
				continue;
			}
			dt_ok(ret);
			expect_bind(&rig->b, rmr, 1, DAT_DTO_SUCCESS);
			peer_check(rig, y_seg(rig, context, 0, 64), read, write);
		}
		unbind_now(&rig->b, rmr);
		dt_ok(dat_lmr_free(region.lmr)); /* a refused bind does not use it */
	}
}

/* --- the zone, the endpoint --- */

/* RMR-CREATE-03 PZ-CREATE-04 DTO-93: A window of one zone and an endpoint of another. */
static void rmr_bind__peer_of_another_zone__remote_access(void **state)
{
	struct rig *rig = *state;
	struct rig other = *rig;
	struct dt_buf region;
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	dt_ok(dat_pz_create(rig->ia.ia, &other.ia.pz));
	dt_lmr_create(&rig->ia, other.ia.pz, rig->y.p, RIG_LEN, BIND_LOCAL, &region);
	dt_ok(dat_rmr_create(other.ia.pz, &rmr));
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &other.a); /* only the owner's zone counts */
	dt_ep_create(&rig->ia, other.ia.pz, NULL, &other.b);
	dt_ep_link(&rig->ia, &other.a, &other.b);
	context = bind_now(&other.b, rmr, dt_seg(&region, 0, 64), BIND_REMOTE);
	peer_check(&other, y_seg(rig, context, 0, 64), true, true);
	peer_locked_out(rig, context);
	peer_check(&other, y_seg(rig, context, 0, 64), true, true);
}

/* RMR-BIND-53: Bound over one connection, and used over another, which is then the only one. */
static void rmr_bind__endpoint_disconnected_and_freed__context_still_good(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	struct rig other = *rig;
	DAT_RMR_CONTEXT context;

	rig_link(&other);
	context = bind_now(&other.b, rmr, dt_seg(&rig->y, 0, 5000), BIND_REMOTE);
	peer_check(rig, y_seg(rig, context, 0, 5000), true, true);
	rig_disconnect(&other, DAT_CLOSE_ABRUPT_FLAG);
	peer_check(rig, y_seg(rig, context, 0, 5000), true, true);
	dt_ok(dat_ep_reset(other.b.ep));
	peer_check(rig, y_seg(rig, context, 0, 5000), true, true);
	dt_ep_free(&other.a);
	dt_ep_free(&other.b);
	peer_check(rig, y_seg(rig, context, 0, 5000), true, true);
	rig_disconnect(rig, DAT_CLOSE_GRACEFUL_FLAG);
	rig_relink(rig);
	peer_check(rig, y_seg(rig, context, 0, 5000), true, true);
	assert_int_equal(rmr_query(rmr).rmr_context, context);
}

/* LMR-CREATE-43 RMR-FREE-09: a window over it, moved and removed, does not touch the region's own
 */
static void rmr_bind__region_has_a_context_of_its_own__that_one_stays(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const DAT_RMR_TRIPLET whole = dt_rseg(&rig->y, 0, RIG_LEN);

	(void)bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), DAT_MEM_PRIV_NONE_FLAG);
	peer_check(rig, whole, true, true);
	(void)bind_now(&rig->b, rmr, dt_seg(&rig->y, 64, 64), BIND_REMOTE);
	peer_check(rig, whole, true, true);
	unbind_now(&rig->b, rmr);
	peer_check(rig, whole, true, true);
	(void)bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE);
	dt_ok(dat_rmr_free(rmr));
	peer_check(rig, whole, true, true);
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	rig_relink(rig);
	peer_check(rig, whole, true, true);
	rig_works(rig);
}

/* RMR-BIND-09 RMR-BIND-10 LMR-CREATE-52: windows over the same bytes are independent */
static void rmr_bind__overlapping_windows__independent(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE one = rmr_create(rig), two = rmr_create(rig);
	const DAT_RMR_CONTEXT first = bind_now(&rig->b, one, dt_seg(&rig->y, 0, 1000), 0x02);
	const DAT_RMR_CONTEXT second = bind_now(&rig->b, two, dt_seg(&rig->y, 500, 1000), 0x20);

	peer_check(rig, y_seg(rig, first, 500, 500), true, false);
	peer_check(rig, y_seg(rig, second, 500, 500), false, true);
	unbind_now(&rig->b, one);
	peer_locked_out(rig, first);
	peer_check(rig, y_seg(rig, second, 500, 1000), false, true);
}

/* --- the region is in use --- */

static void region_create(struct rig *rig, struct dt_buf *region)
{
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, BIND_LOCAL, region);
}

/* LMR-FREE-02 LMR-FREE-03 LMR-FREE-04 RMR-BIND-28 RMR-BIND-29 RMR-BIND-27 */
static void lmr_free__window_bound__refused_until_it_is_bound_elsewhere(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig), other = rmr_create(rig);
	struct dt_buf region, next;
	DAT_RMR_CONTEXT context;

	region_create(rig, &region);
	region_create(rig, &next);
	context = bind_now(&rig->b, rmr, dt_seg(&region, 0, 64), BIND_REMOTE);
	(void)bind_now(&rig->b, other, dt_seg(&region, 0, 64), BIND_REMOTE);
	dt_fails_with(dat_lmr_free(region.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	peer_check(rig, y_seg(rig, context, 0, 64), true, true);
	post_recv(&rig->b, dt_seg(&region, 0, 8), 1); /* refused: all of it works as before */
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, DAT_COMPLETION_DEFAULT_FLAG);
	expect_received(&rig->b, 1, 8);
	expect_sent(&rig->a, 2, 8);
	(void)bind_now(&rig->b, rmr, dt_seg(&next, 0, 64), BIND_REMOTE);
	dt_fails_with(dat_lmr_free(region.lmr), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE); /* the other window */
	(void)bind_now(&rig->b, other, dt_seg(&next, 0, 64), BIND_REMOTE);
	dt_ok(dat_lmr_free(region.lmr));
	dt_fails_with(dat_lmr_free(next.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	unbind_now(&rig->b, rmr);
	dt_fails_with(dat_lmr_free(next.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	unbind_now(&rig->b, other);
	dt_ok(dat_lmr_free(next.lmr));
}

/* RMR-FREE-02 RMR-FREE-03 LMR-FREE-04: No event. */
static void lmr_free__bound_window_freed__succeeds(void **state)
{
	struct rig *rig = *state;
	struct dt_buf region;
	DAT_RMR_HANDLE rmr;

	for (int round = 0; round < 3; round++) {
		region_create(rig, &region);
		rmr = rmr_create(rig);
		(void)bind_now(&rig->b, rmr, dt_seg(&region, 0, 64), BIND_REMOTE);
		dt_fails_with(dat_lmr_free(region.lmr), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_LMR_IN_USE);
		dt_ok(dat_rmr_free(rmr));
		dt_ok(dat_lmr_free(region.lmr));
	}
	dt_stays_empty(rig->b.request);
	rig_works(rig);
}

/* RMR-BIND-28 RMR-BIND-29: a bind that waits in the queue; both regions until it completes */
static void lmr_free__bind_waiting__both_regions_in_use(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	struct dt_buf old, next;

	region_create(rig, &old);
	region_create(rig, &next);
	(void)bind_now(&rig->b, rmr, dt_seg(&old, 0, 64), BIND_REMOTE);
	hold_queue(rig);
	(void)bind_post(&rig->b, rmr, dt_seg(&next, 0, 64), BIND_REMOTE, 1, 0);
	dt_fails_with(dat_lmr_free(next.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	release_queue(rig);
	expect_bind(&rig->b, rmr, 1, DAT_DTO_SUCCESS);
	dt_fails_with(dat_lmr_free(next.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	dt_ok(dat_lmr_free(old.lmr));
	hold_queue(rig);
	unbind_post(&rig->b, rmr, 2);
	release_queue(rig);
	expect_bind(&rig->b, rmr, 2, DAT_DTO_SUCCESS);
	dt_ok(dat_lmr_free(next.lmr));
}

/* --- free --- */

/* RMR-FREE-02 RMR-FREE-06 RMR-FREE-08 DTO-99 */
static void rmr_free__bound__context_refused(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	for (int round = 0; round < 3; round++) {
		rmr = rmr_create(rig);
		context = bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 30000), BIND_REMOTE);
		for (int i = 0; i < 10; i++)
			peer_check(rig, y_seg(rig, context, 0, 30000), true, true);
		dt_ok(dat_rmr_free(rmr));
		dt_no_event(rig->b.request);
		peer_locked_out(rig, context);
		dt_no_event(rig->b.request);
	}
}

/* RMR-FREE-12 RMR-FREE-06: The earlier binding ends; the one that waits never takes effect. */
static void rmr_free__bind_waiting__no_harm(void **state)
{
	struct rig *rig = *state;
	struct dt_buf region;
	DAT_RMR_CONTEXT context[3];
	DAT_RMR_HANDLE rmr;

	region_create(rig, &region);
	for (int round = 0; round < 3; round++) {
		DAT_EVENT event;

		rmr = rmr_create(rig);
		context[0] = bind_now(&rig->b, rmr, dt_seg(&region, 0, 64), BIND_REMOTE);
		hold_queue(rig);
		context[1] = bind_post(&rig->b, rmr, dt_seg(&region, 0, 64), BIND_REMOTE, 1, 0);
		if (round == 1)
			unbind_post(&rig->b, rmr, 2);
		context[2] = bind_post(&rig->b, rmr, dt_seg(&region, 0, 64), BIND_REMOTE, 3, 0);
		dt_ok(dat_rmr_free(rmr));
		release_queue(rig);
		post_write(&rig->b, dt_seg(&rig->y, 0, 8), dt_rseg(&rig->x, 0, 8), 4, 0);
		do /* completions of the binds may come or not */
			event = dt_event(rig->b.request);
		while (event.event_number == DAT_RMR_BIND_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
		dt_no_event(rig->b.request);
		for (size_t i = 0; i < COUNT_OF(context); i++)
			peer_locked_out(rig, context[i]);
	}
	dt_ok(dat_lmr_free(region.lmr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(rmr_bind__range__event_on_the_request_evd),
		rig_test(rmr_bind__same_and_empty_cookies__an_event_for_each),
		rig_test(rmr_bind__length_0__unbind_with_its_event),
		rig_test(rmr_bind__again_and_again__another_context_each_time),
		rig_test(rmr_bind__bound_again__old_context_refused),
		rig_test(rmr_bind__one_byte_outside__remote_access),
		rig_test(rmr_bind__privileges__as_granted),
		rig_test(rmr_bind__region_with_fewer_privileges__local_ones_decide),
		rig_test(rmr_bind__peer_of_another_zone__remote_access),
		rig_test(rmr_bind__endpoint_disconnected_and_freed__context_still_good),
		rig_test(rmr_bind__region_has_a_context_of_its_own__that_one_stays),
		rig_test(rmr_bind__overlapping_windows__independent),
		rig_test(lmr_free__window_bound__refused_until_it_is_bound_elsewhere),
		rig_test(lmr_free__bound_window_freed__succeeds),
		rig_test(lmr_free__bind_waiting__both_regions_in_use),
		rig_test(rmr_free__bound__context_refused),
		rig_test(rmr_free__bind_waiting__no_harm),
	};

	return cmocka_run_group_tests_name("bind", tests, NULL, NULL);
}
