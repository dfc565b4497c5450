// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that the fast path (src/verbs/engine/fast.c) declines: they return the same codes and cause
 * the same events in the same order as on the slow path. The provider's own thread is held, so that
 * only the test's calls do anything.
 */
#include "fast_lab.h"

#include "core/ep/dto.h"

/* --- calls --- */

static DAT_RETURN send_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	return send_iov(&rig.a, 1, &seg, ODD_COOKIE, flags);
}

static DAT_RETURN recv_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	return recv_iov(&rig.a, 1, &seg, ODD_COOKIE, flags);
}

static DAT_RETURN post_none(int call)
{
	DAT_RMR_TRIPLET to = remote_seg(HALF, 0);

	if (call == 0)
		return send_iov(&rig.a, 0, NULL, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 0, NULL, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 0, NULL, ODD_COOKIE, 0);
}

static DAT_RETURN post_null(int call)
{
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);

	if (call == 0)
		return send_iov(&rig.a, 1, NULL, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 1, NULL, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 1, NULL, ODD_COOKIE, 0);
}

static DAT_RETURN write_no_remote(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	(void)arg;
	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, NULL, 0);
}

static DAT_RETURN write_remote_len(int len)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, (size_t)len);

	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, &to, 0);
}

static DAT_RETURN post_read(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET from = remote_seg(HALF, 8);

	(void)arg;
	return CALLS(rig.a.ep)->ep_post_rdma_read_func(rig.a.ep, 1, &seg, cookie_of(ODD_COOKIE),
						       &from, 0);
}

static DAT_RETURN set_watermarks(int hard)
{
	return core_ep_set_watermark(rig.a.ep, hard ? DAT_WATERMARK_INFINITE : 4,
				     hard ? 4 : DAT_WATERMARK_INFINITE);
}

static DAT_RETURN send_with(int flags)
{
	return send_flags((DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN write_with(int flags)
{
	return write_flags((DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN recv_with(int flags)
{
	return recv_flags((DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN post_unknown(int call)
{
	return post_seg(call, rig.lkey + 0x40000000u, (uintptr_t)rig.memory, 8);
}

static DAT_RETURN post_no_key(int call)
{
	return post_seg(call, 0, (uintptr_t)rig.memory, 8);
}

static DAT_RETURN post_freed(int call)
{
	return post_seg(call, odd.freed_key, (uintptr_t)rig.memory, 8);
}

static DAT_RETURN post_little(int call)
{
	return post_seg(call, odd.little_key, (uintptr_t)rig.memory, 65);
}

static DAT_RETURN post_below(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory - 1, 8);
}

static DAT_RETURN post_behind(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory + RIG_LEN - 7, 8);
}

static DAT_RETURN post_up_to_the_end(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory + RIG_LEN - 8, 8);
}

static DAT_RETURN post_empty(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, 0);
}

static DAT_RETURN post_huge(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, UINT64_MAX);
}

static DAT_RETURN post_larger_than_region(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, (DAT_VLEN)RIG_LEN + 1);
}

static DAT_RETURN post_longest(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, call ? RDMA_MAX : MESSAGE_MAX);
}

static DAT_RETURN post_too_long(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, (call ? RDMA_MAX : MESSAGE_MAX) + 1);
}

/* is_slow: it sets a slow reason. events: how many events it causes. */
static const struct odd_call {
	const char *name;
	DAT_RETURN (*call)(int arg);
	int arg;
	DAT_RETURN ret;
	bool is_slow;
	unsigned events;
} odd_calls[] = {
	{"Send suppressed", send_with, DAT_COMPLETION_SUPPRESS_FLAG, 0, false, 0},
	{"Send solicited", send_with, DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, false, 1},
	{"Send fenced", send_with, DAT_COMPLETION_BARRIER_FENCE_FLAG, 0, false, 1},
	{"Send unsignalled", send_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(5), false, 0},
	{"Write suppressed", write_with, DAT_COMPLETION_SUPPRESS_FLAG, 0, false, 0},
	{"Write solicited", write_with, DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, false, 1},
	{"Write fenced", write_with, DAT_COMPLETION_BARRIER_FENCE_FLAG, 0, false, 1},
	{"Write unsignalled", write_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(6), false, 0},
	{"Receive suppressed", recv_with, DAT_COMPLETION_SUPPRESS_FLAG, BAD_ARG(5), false, 0},
	{"Receive unsignalled", recv_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(5), false, 0},
	{"Send of none", post_none, 0, 0, false, 1},
	{"Write of none", post_none, 1, 0, false, 1},
	{"Receive of none", post_none, 2, 0, false, 0},
	{"Send of two", post_two, 0, 0, false, 1},
	{"Write of two", post_two, 1, 0, false, 1},
	{"Receive of two", post_two, 2, 0, false, 0},
	{"Send from NULL", post_null, 0, BAD_ARG(3), false, 0},
	{"Write from NULL", post_null, 1, BAD_ARG(3), false, 0},
	{"Receive into NULL", post_null, 2, BAD_ARG(3), false, 0},
	{"Send from another region", post_other, 0, 0, false, 1},
	{"Write from another region", post_other, 1, 0, false, 1},
	{"Receive into another region", post_other, 2, 0, false, 0},
	{"Send of an unknown key", post_unknown, 0, NO_KEY(READ), false, 0},
	{"Write of an unknown key", post_unknown, 1, NO_KEY(READ), false, 0},
	{"Receive of an unknown key", post_unknown, 2, NO_KEY(WRITE), false, 0},
	{"Send of no key", post_no_key, 0, NO_KEY(READ), false, 0},
	{"Send of a freed key", post_freed, 0, NO_KEY(READ), false, 0},
	{"Write of a freed key", post_freed, 1, NO_KEY(READ), false, 0},
	{"Receive of a freed key", post_freed, 2, NO_KEY(WRITE), false, 0},
	{"Send beyond a little region", post_little, 0, BAD_ARG(3), false, 0},
	{"Send from below", post_below, 0, BAD_ARG(3), false, 0},
	{"Write from below", post_below, 1, BAD_ARG(3), false, 0},
	{"Receive below", post_below, 2, BAD_ARG(3), false, 0},
	{"Send from behind", post_behind, 0, BAD_ARG(3), false, 0},
	{"Write from behind", post_behind, 1, BAD_ARG(3), false, 0},
	{"Receive behind", post_behind, 2, BAD_ARG(3), false, 0},
	{"Send up to the end", post_up_to_the_end, 0, 0, false, 1},
	{"Write up to the end", post_up_to_the_end, 1, 0, false, 1},
	{"Receive up to the end", post_up_to_the_end, 2, 0, false, 0},
	{"Send of 0 bytes", post_empty, 0, 0, false, 1},
	{"Write of 0 bytes", post_empty, 1, 0, false, 1},
	{"Receive of 0 bytes", post_empty, 2, 0, false, 0},
	{"Send of all memory", post_huge, 0, BAD_ARG(3), false, 0},
	{"Write of all memory", post_huge, 1, BAD_ARG(3), false, 0},
	{"Receive of all memory", post_huge, 2, BAD_ARG(3), false, 0},
	{"Send of more than the region", post_larger_than_region, 0, BAD_ARG(3), false, 0},
	{"Receive of more than the region", post_larger_than_region, 2, BAD_ARG(3), false, 0},
	{"Send as long as may be", post_longest, 0, 0, false, 1},
	{"Write as long as may be", post_longest, 1, 0, false, 1},
	{"Send too long", post_too_long, 0, BAD_ARG(3), false, 0},
	{"Write beyond its attribute", post_too_long, 1, 0, false, 1}, /* EP-RDMAW-11 */
	{"Write to nowhere", write_no_remote, 0, BAD_ARG(5), false, 0},
	{"Write to too little", write_remote_len, 7, DAT_LENGTH_ERROR, false, 0},
	{"Write to as much", write_remote_len, 8, 0, false, 1},
	{"Write to more", write_remote_len, 9, 0, false, 1},
	{"RDMA Read", post_read, 0, 0, false, 1},
	{"bind", post_bind, 0, 0, true, 1},
	{"soft watermark", set_watermarks, 0, 0, true, 0},
	{"hard watermark", set_watermarks, 1, 0, true, 0},
};

struct record {
	uint64_t cookie, status, len;
	DAT_EVENT_NUMBER number;
};

/* What has happened, on the fast path or the slow path. */
struct outcome {
	DAT_RETURN rets[3];
	struct record a[16], b[16];
	unsigned a_count, b_count;
	unsigned posts;
};

static void record_event(struct record *record, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;

	record->number = event->event_number;
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT) {
		record->cookie = bind->user_cookie.as_64;
		record->status = bind->status;
		return;
	}
	record->cookie = data->user_cookie.as_64;
	record->status = data->status;
	record->len = data->transfered_length;
}

static unsigned take_all(DAT_EVD_HANDLE evd, struct record *record, unsigned count)
{
	DAT_EVENT event;

	while (take(evd, &event)) {
		assert_in_range(count, 0, 15);
		record_event(&record[count++], &event);
	}
	return count;
}

static void take_both(struct outcome *outcome)
{
	outcome->a_count = take_all(rig.a.dto, outcome->a, outcome->a_count);
	outcome->b_count = take_all(rig.b.dto, outcome->b, outcome->b_count);
	outcome->a_count = take_all(rig.a.dto, outcome->a, outcome->a_count);
}

/*
 * Two Receives and three requests of a are outstanding when the call is made. Then one more of each
 * is posted, and all are carried out.
 */
static void run(struct outcome *outcome, const struct odd_call *call, bool with_fast)
{
	unsigned before;

	memset(outcome, 0, sizeof(*outcome));
	before = fake_posts();
	assert_int_equal(recv_len(&rig.a, 64, 101), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.a, 65, 102), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 20, 201), DAT_SUCCESS);
	expect(&rig.a, 201, 20);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.a, 30 + i, 202 + i), DAT_SUCCESS);
	assert_int_equal(is_fast(rig.a.ep), with_fast);
	outcome->rets[0] = call->call(call->arg);
	assert_int_equal(is_fast(rig.a.ep), with_fast && !call->is_slow);
	assert_int_equal(outcome->rets[0] & ~DAT_CLASS_ERROR, call->ret);
	outcome->rets[1] = write_len(&rig.a, 40, 205);
	outcome->rets[2] = recv_len(&rig.a, 66, 103);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(recv_len(&rig.b, MESSAGE_MAX, 301 + i), DAT_SUCCESS);
	take_both(outcome);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.b, i == 2 ? 0 : 5, 401 + i), DAT_SUCCESS);
	take_both(outcome);
	outcome->posts = fake_posts() - before;
}

static void compare_records(const struct record *one, unsigned one_count,
			    const struct record *other, unsigned other_count)
{
	assert_int_equal(one_count, other_count);
	for (unsigned i = 0; i < one_count; i++) {
		assert_int_equal(one[i].number, other[i].number);
		assert_int_equal(one[i].cookie, other[i].cookie);
		assert_int_equal(one[i].status, other[i].status);
		assert_int_equal(one[i].len, other[i].len);
	}
}

/* No slow reason is left when the endpoint is idle and has no watermarks. */
static void begin_again(void)
{
	assert_int_equal(
		core_ep_set_watermark(rig.a.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE),
		DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
	expect_at_once(&rig.a, 2, 9);
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(write_len(&rig.a, 9, i), DAT_SUCCESS);
	for (uint64_t i = 0; i < ROOM; i++)
		expect_at_once(&rig.a, i, 9);
}

static void outcome_of(struct outcome *outcome, const struct odd_call *call, bool with_fast)
{
	setup(NULL);
	make_odd();
	if (!with_fast) {
		go_slow(&rig.a);
		go_slow(&rig.b);
	}
	run(outcome, call, with_fast);
	if (with_fast)
		begin_again();
	teardown(NULL);
}

/*
 * DTO-37 DTO-86 DTO-87: between other calls, each returns the same code and causes the same events
 * in the same order as on the slow path
 */
static void post__not_plain__as_on_the_slow_path(void **state)
{
	static struct outcome with, without;

	(void)state;
	for (size_t i = 0; i < sizeof(odd_calls) / sizeof(odd_calls[0]); i++) {
		const struct odd_call *call = &odd_calls[i];

		print_message("%s\n", call->name);
		outcome_of(&with, call, true);
		outcome_of(&without, call, false);
		for (size_t j = 0; j < 3; j++)
			assert_int_equal(with.rets[j], without.rets[j]);
		assert_int_equal(with.posts, without.posts);
		compare_records(with.a, with.a_count, without.a, without.a_count);
		compare_records(with.b, with.b_count, without.b, without.b_count);
		assert_int_equal(with.a_count, 7 + call->events);
	}
}

/* --- a message that kills a key --- */

/* D2-INV-01 D2-VRB-08: where the region gets another registration, its key is not remembered */
static void kill__region_in_use__later_posts_have_the_new_key(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	uint32_t old;

	(void)state;
	assert_int_equal(recv_len(&rig.b, 64, 1), DAT_SUCCESS);
	old = device.recv_sge.lkey;
	fake_fail_next("ibv_rereg_mr");
	assert_int_equal(core_ep_post_send_invalidate(rig.a.ep, 1, &seg, cookie_of(2), 0, rig.rkey),
			 DAT_SUCCESS);
	expect(&rig.b, 1, 8);
	expect(&rig.a, 2, 8);
	assert_string_equal(fake_failed(), "ibv_rereg_mr");
	own_all();
	for (uint64_t i = 0; i < 2; i++) {
		assert_true(is_fast(rig.a.ep) && is_fast(rig.b.ep));
		assert_int_equal(recv_len(&rig.b, 64, 3), DAT_SUCCESS);
		assert_int_not_equal(device.recv_sge.lkey, old);
		assert_int_equal(send_len(&rig.a, 8, 4), DAT_SUCCESS);
		assert_int_equal(device.send_sge.lkey, device.recv_sge.lkey);
		expect(&rig.b, 3, 8);
		expect(&rig.a, 4, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(post__not_plain__as_on_the_slow_path),
		cmocka_unit_test_setup_teardown(kill__region_in_use__later_posts_have_the_new_key,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
