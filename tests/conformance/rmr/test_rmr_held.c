// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a window while the process that writes through it is stopped by a signal, held in the
 * middle of a copy, or killed there.
 */
#include "window_owner.h"

#include <stdlib.h>

#define WARM_UP_US 20000u /* the peer's memory is mapped some time after its first use */

/* Returns false if the copy did not go through a mapping, as only such a copy can be held. */
static bool hold_writer(struct stage *stage, unsigned warm_up_us)
{
	char answer;

	send_order_with(stage, WRITE_HELD, warm_up_us);
	dt_peer_recv(&stage->peer, &answer, 1);
	return answer == 'h';
}

static void release_writer(struct stage *stage)
{
	dt_peer_send(&stage->peer, "g", 1);
}

/* Opens a stage with the writer held; skips the test on the other paths. */
static struct stage *stage_open_held(void)
{
	const char *path = getenv("DAT_COPY");

	if (!path || strcmp(path, "map") != 0) {
		print_message("skipped: only a copy between mappings can be held\n");
		skip();
	}
	for (unsigned tries = 0; tries < 8; tries++) {
		struct stage *stage = stage_open();

		if (hold_writer(stage, WARM_UP_US << tries))
			return stage;
		(void)await_status(stage); /* the region was not mapped yet */
		writer_broken(stage);
		stage_close(stage);
	}
	fail();
	return NULL;
}

/* A thread that calls dat_rmr_free. */
struct freer {
	pthread_t thread;
	DAT_RMR_HANDLE rmr;
	DAT_RETURN ret;
	_Atomic bool has_returned;
};

static void *freer_run(void *arg)
{
	struct freer *freer = arg;

	freer->ret = dat_rmr_free(freer->rmr);
	freer->has_returned = true;
	return NULL;
}

static void freer_start(struct freer *freer, DAT_RMR_HANDLE rmr)
{
	memset(freer, 0, sizeof(*freer));
	freer->rmr = rmr;
	assert_int_equal(pthread_create(&freer->thread, NULL, freer_run, freer), 0);
}

static void freer_join(struct freer *freer)
{
	assert_int_equal(pthread_join(freer->thread, NULL), 0);
	dt_ok(freer->ret);
}

/* Calls on other objects return while the end of the window waits. */
static void make_other_calls(struct stage *stage)
{
	DAT_RMR_HANDLE other = rmr_create(&stage->rig);
	DAT_LMR_TRIPLET seg = dt_seg(&stage->rig.x, 0, 8);
	DAT_PZ_HANDLE pz;

	dt_ok(dat_rmr_free(other));
	dt_ok(dat_pz_create(stage->rig.ia.ia, &pz));
	dt_ok(dat_pz_free(pz));
	dt_ok(dat_ep_post_recv(stage->rig.b.ep, 1, &seg, dt_cookie(5), 0));
	dt_ok(dat_ep_post_send(stage->mate.ep, 1, &seg, dt_cookie(6), 0));
	expect_received(&stage->rig.b, 5, 8);
	expect_sent(&stage->mate, 6, 8);
}

/* RMR-FREE-14: the signal stops the process at any point of a copy. */
static void window_ended__process_stopped_while_writing__ends_in_time(void **state)
{
	(void)state;
	for (int round = 0; round < 2 * WAYS; round++) {
		struct stage *stage = stage_open();
		uint64_t begin, took_us;

		start_writing(stage);
		dt_peer_stop(&stage->peer);
		begin = dt_now_us();
		end_window(stage, round % WAYS);
		took_us = dt_now_us() - begin;
		assert_true(took_us < PEER_TIMEOUT_MS * 1000 + SLACK_US);
		snapshot(stage);
		check_after(stage);
		memcpy(stage->snapshot, stage->rig.y.p, WINDOW);
		dt_peer_continue(&stage->peer);
		assert_int_not_equal(await_status(stage), DAT_DTO_SUCCESS);
		writer_broken(stage);
		assert_int_equal(changed_since(stage), 0);
		stage_close(stage);
	}
}

/* RMR-FREE-14 RMR-BIND-02: the bind returns at once; its event waits until the copy ends. */
static void rmr_bind__copy_under_way__event_waits_for_it(void **state)
{
	(void)state;
	for (int way = REBIND; way < WAYS; way++) {
		struct stage *stage = stage_open_held();

		start_end(stage, way);
		dt_stays_empty(stage->rig.b.request);
		make_other_calls(stage);
		dt_fails_with(dat_lmr_free(stage->old.lmr), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_LMR_IN_USE);
		release_writer(stage);
		expect_bind(&stage->rig.b, stage->rmr, 7, DAT_DTO_SUCCESS);
		dt_check_bytes(stage->rig.y.p, HELD_LEN, 3); /* the copy is complete */
		assert_int_equal(await_status(stage), DAT_DTO_SUCCESS);
		send_order(stage, WRITE_ONCE);
		assert_int_equal(await_status(stage), DAT_DTO_ERR_REMOTE_ACCESS);
		writer_broken(stage);
		check_after(stage);
		stage_close(stage);
	}
}

/* RMR-FREE-14 */
static void rmr_free__copy_under_way__waits_for_it(void **state)
{
	struct stage *stage = stage_open_held();
	const uint64_t end = dt_now_us() + DT_QUIET_US;
	struct freer freer;

	(void)state;
	freer_start(&freer, stage->rmr);
	do {
		assert_false(freer.has_returned);
		sched_yield();
	} while (dt_now_us() < end);
	make_other_calls(stage);
	release_writer(stage);
	freer_join(&freer);
	dt_check_bytes(stage->rig.y.p, HELD_LEN, 3);
	assert_int_equal(await_status(stage), DAT_DTO_SUCCESS);
	send_order(stage, WRITE_ONCE);
	assert_int_equal(await_status(stage), DAT_DTO_ERR_REMOTE_ACCESS);
	writer_broken(stage);
	check_after(stage);
	stage_close(stage);
}

/* RMR-FREE-14: the copy does not end: after the time-out the connection of the writer breaks. */
static void window_ended__copy_never_ends__time_out(void **state)
{
	(void)state;
	for (int way = FREE; way < WAYS; way++) {
		struct stage *stage = stage_open_held();
		const uint64_t begin = dt_now_us();
		uint64_t took_us;

		end_window(stage, way);
		took_us = dt_now_us() - begin;
		assert_true(took_us >= PEER_TIMEOUT_MS * 900);
		assert_true(took_us < PEER_TIMEOUT_MS * 1000 + SLACK_US);
		writer_broken(stage);
		check_after(stage);
		snapshot(stage);
		release_writer(stage);
		assert_int_not_equal(await_status(stage), DAT_DTO_SUCCESS);
		assert_int_equal(changed_since(stage), 0);
		send_order(stage, WRITE_ONCE);
		assert_int_not_equal(await_status(stage), DAT_DTO_SUCCESS);
		assert_int_equal(changed_since(stage), 0);
		stage_close(stage);
	}
}

/* RMR-BIND-39 RMR-FREE-14: a bind flushed while it waits for the copy: the old context works. */
static void rmr_bind__flushed_while_it_waits_for_a_copy__no_effect(void **state)
{
	(void)state;
	for (int way = REBIND; way < WAYS; way++) {
		struct stage *stage = stage_open_held();
		const DAT_LMR_TRIPLET range = dt_seg(&stage->old, 0, WINDOW);

		start_end(stage, way);
		dt_no_event(stage->rig.b.request);
		dt_ok(dat_ep_disconnect(stage->rig.b.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_ended(&stage->rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_bind(&stage->rig.b, stage->rmr, 7, DAT_DTO_ERR_FLUSHED);
		rmr_check_bound(stage->rmr, &range, BIND_REMOTE, stage->context);
		dt_ok(dat_lmr_free(stage->next.lmr));
		dt_fails_with(dat_lmr_free(stage->old.lmr), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_LMR_IN_USE);
		release_writer(stage);
		assert_int_equal(await_status(stage), DAT_DTO_SUCCESS);
		send_order(stage, WRITE_ONCE);
		assert_int_equal(await_status(stage), DAT_DTO_SUCCESS);
		dt_check_bytes(stage->rig.y.p, WINDOW, 0x11);
		stage_close(stage);
	}
}

/* RMR-FREE-14 RMR-FREE-02 */
static void window_ended__process_killed_in_a_copy__ends(void **state)
{
	(void)state;
	for (int way = FREE; way < WAYS; way++) {
		struct stage *stage = stage_open_held();

		dt_peer_kill(&stage->peer);
		end_window(stage, way);
		writer_broken(stage);
		check_after(stage);
		rig_end(&stage->rig);
	}
}

int main(void)
{
	/* before the first open: with the default of 5 s the tests would take long */
	setenv("DAT_PEER_TIMEOUT_MS", "700", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_ended__process_stopped_while_writing__ends_in_time),
		cmocka_unit_test(rmr_bind__copy_under_way__event_waits_for_it),
		cmocka_unit_test(rmr_free__copy_under_way__waits_for_it),
		cmocka_unit_test(window_ended__copy_never_ends__time_out),
		cmocka_unit_test(rmr_bind__flushed_while_it_waits_for_a_copy__no_effect),
		cmocka_unit_test(window_ended__process_killed_in_a_copy__ends),
	};

	return cmocka_run_group_tests_name("rmr held", tests, NULL, NULL);
}
