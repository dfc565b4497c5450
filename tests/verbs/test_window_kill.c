// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends with Invalidate between endpoints of DAT 1.2, which complete as plain messages there
 * (D2-MIX-09): what the provider does on devices that can and cannot change a registration.
 */
#include "window_lab.h"

#include "core/ep/dto.h"

#define FOREIGN_ASKED 56
#define FOREIGN_ANSWERED 196

static DAT_RETURN send_kill(DAT_RMR_CONTEXT key, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	return core_ep_post_send_invalidate(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie},
					    DAT_COMPLETION_DEFAULT_FLAG, key);
}

/* A message that is an order to kill arrives at b, which has posted the Receive `recv`. */
static void killed(DAT_RMR_CONTEXT key, uint64_t recv)
{
	assert_int_equal(send_kill(key, 1), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, recv, DAT_DTO_SUCCESS);
}

/* The same with a key that cannot be killed. */
static void refused(DAT_RMR_CONTEXT key)
{
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	assert_int_equal(send_kill(key, 1), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, 2, DAT_DTO_ERR_LOCAL_PROTECTION);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_not_equal(rig_event(rig.a.conn).event_number, 0);
}

/* A message from a arrives in the Receive of b. */
static void arrives(uint64_t recv)
{
	assert_int_equal(rig_send(&rig, &rig.a, 8, 3, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, recv, DAT_DTO_SUCCESS);
	assert_memory_equal(rig.memory, rig.memory + HALF, 8);
}

/* D2-VRB-08 D2-INV-07: the device changes the registration, so what was posted before goes on */
static void kill__region__receives_posted_before_go_on(void **state)
{
	const int before = fake_live();

	(void)state;
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 4), DAT_SUCCESS);
	killed(rig.rkey, 2);
	arrives(4);
	assert_int_equal(fake_live(), before);
	check_write(rig.rkey, HALF, false);
	refused(rig.rkey); /* it is dead already */
}

/* D2-VRB-08 D2-INV-07: it cannot, so what is posted later uses another registration */
static void kill__region_on_a_device_without_changes__later_posts_go_on(void **state)
{
	const int before = fake_live();

	(void)state;
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	fake_fail_next("ibv_rereg_mr");
	killed(rig.rkey, 2);
	assert_string_equal(fake_failed(), "ibv_rereg_mr");
	assert_int_equal(fake_live(), before);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 4), DAT_SUCCESS);
	memset(rig.memory, 0x77, 8);
	arrives(4);
	check_write(rig.rkey, HALF, false);
	check_write(bound(HALF, 64), HALF, true);
}

/* D2-VRB-08 D2-INV-08: while a window is bound to it, it stays as it is */
static void kill__region_with_a_window__connection_breaks(void **state)
{
	DAT_RMR_CONTEXT window = bound(HALF, 64);

	(void)state;
	refused(rig.rkey);
	rig_again(&rig);
	check_write(window, HALF, true);
	check_write(rig.rkey, HALF, true);
	unbound();
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	killed(rig.rkey, 2);
	check_write(rig.rkey, HALF, false);
}

/* D2-INV-06 D2-INV-07 */
static void kill__window__others_live(void **state)
{
	DAT_RMR_CONTEXT dead = bound(HALF, 64), other;
	DAT_RMR_HANDLE more;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &more), DAT_SUCCESS);
	assert_int_equal(bind_seg(more, rig_seg(&rig, HALF + 512, 64), 9, 0, &other), DAT_SUCCESS);
	expect_bind(9, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	killed(dead, 2);
	check_write(other, HALF + 512, true);
	check_write(rig.rkey, HALF, true);
	check_write(dead, HALF, false);
	check_write(bound(HALF, 64), HALF, true);
}

/* D2-INV-08: a bind has begun to unbind it, and the message finds it stale */
static void kill__window_being_unbound__connection_breaks(void **state)
{
	DAT_RMR_CONTEXT old = bound(HALF, 64);

	(void)state;
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	fake_hold(true); /* no other thread takes the message */
	assert_int_equal(send_kill(old, 1), DAT_SUCCESS);
	(void)bind_range(HALF + 512, 64, 6);
	rig_expect_dto(&rig.b, 2, DAT_DTO_ERR_LOCAL_PROTECTION);
	fake_hold(false);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_not_equal(rig_event(rig.a.conn).event_number, 0);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	assert_int_not_equal(rig_event(rig.b.dto).event_number, 0); /* of the bind */
	rig_again(&rig);
	check_write(old, HALF, false);
}

/* D2-TCP-02: a foreign peer kills no key for us */
static void kill__foreign_peer__refused(void **state)
{
	(void)state;
	rig_expect_foreign(&rig, FOREIGN_ASKED, FOREIGN_ANSWERED);
	assert_int_equal(DAT_GET_TYPE(send_kill(rig.rkey, 1)), DAT_MODEL_NOT_SUPPORTED);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	arrives(2);
}

#define KILL_TEST(function) cmocka_unit_test_setup_teardown(function, window_setup, window_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		KILL_TEST(kill__region__receives_posted_before_go_on),
		KILL_TEST(kill__region_on_a_device_without_changes__later_posts_go_on),
		KILL_TEST(kill__region_with_a_window__connection_breaks),
		KILL_TEST(kill__window__others_live),
		KILL_TEST(kill__window_being_unbound__connection_breaks),
		KILL_TEST(kill__foreign_peer__refused),
	};

	return cmocka_run_group_tests_name("Send with Invalidate on a device", tests, NULL, NULL);
}
