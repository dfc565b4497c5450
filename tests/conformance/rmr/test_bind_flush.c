// SPDX-License-Identifier: BSD-2-Clause
/*
 * Binds that are not carried out: a flushed bind leaves the window and the regions unchanged. Also
 * binds at a graceful disconnect, reset, dat_ep_free and dat_ia_close.
 */
#include "bind_util.h"

/* A window that is bound to one region, and another region for the binds that fail. */
struct scene {
	struct rig *rig;
	DAT_RMR_HANDLE rmr;
	struct dt_buf old, next;
	DAT_LMR_TRIPLET range;
	DAT_RMR_CONTEXT context;
};

static struct scene scene_make(struct rig *rig)
{
	struct scene scene = {.rig = rig, .rmr = rmr_create(rig)};

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, BIND_LOCAL, &scene.old);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, BIND_LOCAL, &scene.next);
	scene.range = dt_seg(&scene.old, 0, 4096);
	scene.context = bind_now(&rig->b, scene.rmr, scene.range, BIND_REMOTE);
	return scene;
}

/* Posts a bind to the other region that is not carried out. Returns its context. */
static DAT_RMR_CONTEXT scene_rebind(struct scene *scene, uint64_t cookie,
				    DAT_COMPLETION_FLAGS flags)
{
	return bind_post(&scene->rig->b, scene->rmr, dt_seg(&scene->next, 0, 4096), BIND_REMOTE,
			 cookie, flags);
}

/* Checks that nothing has changed: the query, the use of both regions, and the old context on a
 * new connection. */
static void scene_unchanged(struct scene *scene, DAT_RMR_CONTEXT never)
{
	struct rig *rig = scene->rig;

	rmr_check_bound(scene->rmr, &scene->range, BIND_REMOTE, scene->context);
	dt_ok(dat_lmr_free(scene->next.lmr));
	dt_fails_with(dat_lmr_free(scene->old.lmr), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	rig_relink(rig);
	peer_check(rig, y_seg(rig, scene->context, 0, 4096), true, true);
	peer_locked_out(rig, never);
	peer_check(rig, y_seg(rig, scene->context, 0, 4096), true, true);
}

/* --- flushed --- */

/* RMR-BIND-38 RMR-BIND-39 RMR-BIND-43 DTO-69 DTO-68 DTO-14: in the disconnected state, at once */
static void rmr_bind__disconnected__flushed_without_effect(void **state)
{
	struct rig *rig = *state;
	struct scene scene = scene_make(rig);
	DAT_RMR_CONTEXT never;

	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	never = scene_rebind(&scene, 1, DAT_COMPLETION_DEFAULT_FLAG);
	const DAT_EVENT event = dt_event(rig->b.request);

	assert_ptr_equal(event.evd_handle, rig->b.request);
	bind_check_event(&event, scene.rmr, 1, DAT_DTO_ERR_FLUSHED);
	(void)scene_rebind(&scene, 2, DAT_COMPLETION_SUPPRESS_FLAG);
	expect_bind(&rig->b, scene.rmr, 2, DAT_DTO_ERR_FLUSHED);
	unbind_post(&rig->b, scene.rmr, 3);
	expect_bind(&rig->b, scene.rmr, 3, DAT_DTO_ERR_FLUSHED);
	expect_quiet(&rig->b);
	scene_unchanged(&scene, never);
}

/* Binds after a Send without a Receive; then the connection ends. */
static void flush_waiting(struct rig *rig, void (*end)(struct rig *rig))
{
	struct scene scene = scene_make(rig);
	DAT_RMR_CONTEXT never;

	hold_queue(rig);
	never = scene_rebind(&scene, 1, DAT_COMPLETION_DEFAULT_FLAG);
	post_write(&rig->b, dt_seg(&rig->y, 0, 8), dt_rseg(&rig->x, 0, 8), 2, 0);
	(void)scene_rebind(&scene, 3, DAT_COMPLETION_SUPPRESS_FLAG);
	unbind_post(&rig->b, scene.rmr, 4);
	(void)scene_rebind(&scene, 5, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	end(rig);
	expect_request(&rig->b, 0x801D, DAT_DTO_ERR_FLUSHED);
	expect_bind(&rig->b, scene.rmr, 1, DAT_DTO_ERR_FLUSHED);
	expect_request(&rig->b, 2, DAT_DTO_ERR_FLUSHED);
	expect_bind(&rig->b, scene.rmr, 3, DAT_DTO_ERR_FLUSHED);
	expect_bind(&rig->b, scene.rmr, 4, DAT_DTO_ERR_FLUSHED);
	expect_bind(&rig->b, scene.rmr, 5, DAT_DTO_ERR_FLUSHED);
	dt_no_event(rig->b.request);
	dt_no_event(rig->b.recv);
	scene_unchanged(&scene, never);
}

static void end_here(struct rig *rig)
{
	dt_ok(dat_ep_disconnect(rig->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void end_there(struct rig *rig)
{
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* The peer's request fails here, and breaks the connection. */
static void end_by_error(struct rig *rig)
{
	DAT_RMR_TRIPLET outside = dt_rseg(&rig->y, RIG_LEN - 8, 9);

	post_write(&rig->a, dt_seg(&rig->x, 0, 9), outside, 9, 0);
	expect_request(&rig->a, 9, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
}

/* RMR-BIND-39 RMR-BIND-43 DTO-14 DTO-68 DTO-69 DTO-37 EP-DISC-10 EP-STATE-73 */
static void rmr_bind__waiting_at_a_disconnect__flushed_without_effect(void **state)
{
	flush_waiting(*state, end_here);
}

/* RMR-BIND-39 DTO-69 EP-STATE-73 */
static void rmr_bind__waiting_when_the_peer_disconnects__flushed_without_effect(void **state)
{
	flush_waiting(*state, end_there);
}

/* RMR-BIND-39 DTO-69 EP-STATE-73 */
static void rmr_bind__waiting_when_the_connection_breaks__flushed_without_effect(void **state)
{
	flush_waiting(*state, end_by_error);
}

/* DTO-48 RMR-BIND-39 RMR-BIND-43: behind a request that fails */
static void rmr_bind__behind_a_failure__flushed_without_effect(void **state)
{
	struct rig *rig = *state;
	struct scene scene = scene_make(rig);
	const DAT_RMR_TRIPLET outside = dt_rseg(&rig->x, RIG_LEN - 8, 9);
	DAT_RMR_CONTEXT never;

	/* the failure may be known, and the connection have ended, by the time of the bind */
	post_write(&rig->b, dt_seg(&rig->y, 0, 9), outside, 1, 0);
	never = scene_rebind(&scene, 2, DAT_COMPLETION_SUPPRESS_FLAG);
	expect_request(&rig->b, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_bind(&rig->b, scene.rmr, 2, DAT_DTO_ERR_FLUSHED);
	expect_broken(rig);
	scene_unchanged(&scene, never);
}

/* --- graceful, reset --- */

/* EP-DISC-13: Earlier binds are carried out. */
static void ep_disconnect__graceful_with_binds_waiting__they_succeed(void **state)
{
	struct rig *rig = *state;
	struct scene scene = scene_make(rig);
	DAT_RMR_CONTEXT context;
	const DAT_LMR_TRIPLET range = dt_seg(&scene.next, 0, 4096);

	hold_queue(rig);
	(void)scene_rebind(&scene, 1, DAT_COMPLETION_DEFAULT_FLAG);
	unbind_post(&rig->b, scene.rmr, 2);
	context = scene_rebind(&scene, 3, DAT_COMPLETION_DEFAULT_FLAG);
	dt_ok(dat_ep_disconnect(rig->b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_no_event(rig->b.request);
	release_queue(rig);
	for (uint64_t i = 1; i < 4; i++)
		expect_bind(&rig->b, scene.rmr, i, DAT_DTO_SUCCESS);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rmr_check_bound(scene.rmr, &range, BIND_REMOTE, context);
	dt_ok(dat_lmr_free(scene.old.lmr));
	rig_relink(rig);
	peer_check(rig, y_seg(rig, context, 0, 4096), true, true);
}

/* EP-RESET-07: a bind as marker behind all that was outstanding */
static void rmr_bind__posted_when_disconnected__marks_the_end(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);

	for (int round = 0; round < 20; round++) {
		hold_queue(rig);
		for (uint64_t i = 0; i < 10; i++)
			(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE, i,
					DAT_COMPLETION_SUPPRESS_FLAG);
		dt_ok(dat_ep_disconnect(rig->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE, 99, 0);
		expect_request(&rig->b, 0x801D, DAT_DTO_ERR_FLUSHED);
		for (uint64_t i = 0; i < 10; i++)
			expect_bind(&rig->b, rmr, i, DAT_DTO_ERR_FLUSHED);
		expect_bind(&rig->b, rmr, 99, DAT_DTO_ERR_FLUSHED);
		dt_no_event(rig->b.request);
		expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
		rig_relink(rig);
	}
}

/* EP-RESET-08: After the return the EVD gets no more events. */
static void ep_reset__binds_flushed__no_event_is_added(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_EVENT event;
	unsigned found = 0;

	hold_queue(rig);
	for (uint64_t i = 0; i < 10; i++)
		(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE, i, 0);
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE, 10, 0);
	dt_ok(dat_ep_reset(rig->b.ep));
	while (dat_evd_dequeue(rig->b.request, &event) == DAT_SUCCESS)
		found++;
	assert_int_equal(found, 12);
	dt_ok(dat_ep_reset(rig->a.ep));
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	dt_stays_empty(rig->b.request);
	(void)bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 8), BIND_REMOTE);
}

/* --- the endpoint, the instance --- */

/* RMR-BIND-39 RMR-BIND-53: The binds that waited no longer use their region. */
static void ep_free__binds_waiting__window_as_it_was(void **state)
{
	struct rig *rig = *state;
	struct scene scene = scene_make(rig);
	DAT_RMR_CONTEXT never;

	hold_queue(rig);
	never = scene_rebind(&scene, 1, DAT_COMPLETION_DEFAULT_FLAG);
	unbind_post(&rig->b, scene.rmr, 2);
	dt_ep_free(&rig->b);
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	rmr_check_bound(scene.rmr, &scene.range, BIND_REMOTE, scene.context);
	dt_ok(dat_lmr_free(scene.next.lmr));
	dt_fails_with(dat_lmr_free(scene.old.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	dt_ok(dat_ep_reset(rig->a.ep));
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	peer_check(rig, y_seg(rig, scene.context, 0, 4096), true, true);
	peer_locked_out(rig, never);
}

/* IA-CLOSE-07 IA-CLOSE-08: Bound windows, waiting binds and queued events. */
static void ia_close__abrupt_with_windows__all_gone(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr[5];
	DAT_RMR_PARAM param;

	for (int round = 0; round < 5; round++) {
		rig_begin(rig);
		rig_link(rig);
		for (size_t i = 0; i < COUNT_OF(rmr); i++)
			rmr[i] = rmr_create(rig);
		(void)bind_now(&rig->b, rmr[0], dt_seg(&rig->y, 0, 64), BIND_REMOTE);
		(void)bind_post(&rig->b, rmr[1], dt_seg(&rig->y, 0, 64), BIND_REMOTE, 1, 0);
		hold_queue(rig);
		for (size_t i = 0; i < 4; i++)
			(void)bind_post(&rig->b, rmr[i], dt_seg(&rig->y, 0, 64), BIND_REMOTE, 2, 0);
		unbind_post(&rig->b, rmr[0], 3);
		dt_ia_abort(&rig->ia);
		for (size_t i = 0; i < COUNT_OF(rmr); i++) {
			dt_fails_with(dat_rmr_query(rmr[i], DAT_RMR_FIELD_PZ_HANDLE, &param),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
			dt_fails_with(dat_rmr_free(rmr[i]), DAT_INVALID_HANDLE,
				      DAT_INVALID_HANDLE_RMR);
		}
		memset(rig->y.p, 0x77, RIG_LEN);
		dt_mem_free(rig->x.p, rig->x.mapped);
		dt_mem_free(rig->y.p, rig->y.mapped);
	}
}

static int bare(void **state)
{
	*state = &rig_of_test;
	return 0;
}

/* --- constants --- */

/* DTO-63 DTO-64 */
static void rmr_completion__status__values(void **state)
{
	(void)state;
	assert_int_equal(DAT_RMR_OPERATION_FAILED, 11);
	assert_int_equal(DAT_RMR_BIND_SUCCESS, DAT_DTO_SUCCESS);
	assert_int_equal(DAT_RMR_BIND_FAILURE, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(DAT_DTO_LENGTH_ERROR, DAT_DTO_ERR_LOCAL_LENGTH);
	assert_int_equal(DAT_DTO_FAILURE, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(DAT_RMR_BIND_SUCCESS, 0);
	assert_int_equal(DAT_RMR_BIND_FAILURE, 1);
}

/* RMR-BIND-07: The result of earlier binds does not affect the next one. */
static void rmr_bind__after_flushed_ones__success(void **state)
{
	struct rig *rig = *state;
	struct scene scene = scene_make(rig);
	DAT_EP_PARAM param;

	dt_ok(dat_ep_query(rig->b.ep, DAT_EP_FIELD_ALL, &param));
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	for (DAT_COUNT i = 0; i < 2 * param.ep_attr.max_request_dtos; i++) {
		(void)scene_rebind(&scene, 1, DAT_COMPLETION_DEFAULT_FLAG);
		expect_bind(&rig->b, scene.rmr, 1, DAT_DTO_ERR_FLUSHED);
	}
	rig_relink(rig);
	(void)bind_post(&rig->b, scene.rmr, scene.range, BIND_REMOTE, 7,
			DAT_COMPLETION_DEFAULT_FLAG);
	expect_bind(&rig->b, scene.rmr, 7, DAT_RMR_BIND_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(rmr_bind__disconnected__flushed_without_effect),
		rig_test(rmr_bind__after_flushed_ones__success),
		rig_test(rmr_bind__waiting_at_a_disconnect__flushed_without_effect),
		rig_test(rmr_bind__waiting_when_the_peer_disconnects__flushed_without_effect),
		rig_test(rmr_bind__waiting_when_the_connection_breaks__flushed_without_effect),
		rig_test(rmr_bind__behind_a_failure__flushed_without_effect),
		rig_test(ep_disconnect__graceful_with_binds_waiting__they_succeed),
		rig_test(rmr_bind__posted_when_disconnected__marks_the_end),
		rig_test(ep_reset__binds_flushed__no_event_is_added),
		rig_test(ep_free__binds_waiting__window_as_it_was),
		cmocka_unit_test_setup(ia_close__abrupt_with_windows__all_gone, bare),
		cmocka_unit_test(rmr_completion__status__values),
	};

	return cmocka_run_group_tests_name("bind flush", tests, NULL, NULL);
}
