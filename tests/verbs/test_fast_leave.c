// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the fast path (src/verbs/fast.c) declines, and its reasons (vrb_update_slow_reasons): calls
 * that are not plain have the codes, the events and the order that they have on the general path;
 * regions that are known, and not any more; each reason is set and cleared where it arises. The
 * provider's own thread is held, so that whatever happens is done by the calls of the test.
 */
#include "fast_lab.h"

/* --- what is not plain --- */

static DAT_RETURN send_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	return send_iov(&rig.a, 1, &seg, ODD_COOKIE, flags);
}

static DAT_RETURN write_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);

	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, &to, flags);
}

static DAT_RETURN recv_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	return recv_iov(&rig.a, 1, &seg, ODD_COOKIE, flags);
}

static DAT_RETURN post_two(int call)
{
	DAT_LMR_TRIPLET iov[2] = {rig_seg(&rig, 0, 8), rig_seg(&rig, 64, 16)};
	DAT_RMR_TRIPLET to = remote_seg(HALF, 24);

	if (call == 0)
		return send_iov(&rig.a, 2, iov, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 2, iov, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 2, iov, ODD_COOKIE, 0);
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

static DAT_RETURN post_bind(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	(void)arg;
	return core_rmr_bind(odd.rmr, &seg, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, rig.a.ep,
			     (DAT_RMR_COOKIE){.as_64 = ODD_COOKIE}, 0, &odd.bound);
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

static DAT_RETURN post_other(int call)
{
	return post_seg(call, odd.other_key, (uintptr_t)rig.memory + 16, 32);
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
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, call ? RDMA_MOST : MESSAGE_MOST);
}

static DAT_RETURN post_too_long(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory,
			(call ? RDMA_MOST : MESSAGE_MOST) + 1);
}

/* `is_slow`: it is a reason against the fast path. `events`: how many more come of it. */
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

struct told {
	uint64_t cookie, status, len;
	DAT_EVENT_NUMBER number;
};

/* All that happened, one way and the other. */
struct course {
	DAT_RETURN rets[3];
	struct told a[16], b[16];
	unsigned a_count, b_count;
	unsigned posts;
};

static void tell_event(struct told *told, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;

	told->number = event->event_number;
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT) {
		told->cookie = bind->user_cookie.as_64;
		told->status = bind->status;
		return;
	}
	told->cookie = data->user_cookie.as_64;
	told->status = data->status;
	told->len = data->transfered_length;
}

static unsigned take_all(DAT_EVD_HANDLE evd, struct told *told, unsigned count)
{
	DAT_EVENT event;

	while (take(evd, &event)) {
		assert_in_range(count, 0, 15);
		tell_event(&told[count++], &event);
	}
	return count;
}

static void take_both(struct course *course)
{
	course->a_count = take_all(rig.a.dto, course->a, course->a_count);
	course->b_count = take_all(rig.b.dto, course->b, course->b_count);
	course->a_count = take_all(rig.a.dto, course->a, course->a_count);
}

/* Two Receives and three requests are outstanding on a when the call comes; then one more is
 * posted, and all are carried out. */
static void run(struct course *course, const struct odd_call *call, bool with_fast)
{
	unsigned before;

	memset(course, 0, sizeof(*course));
	before = fake_posts();
	assert_int_equal(recv_len(&rig.a, 64, 101), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.a, 65, 102), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 20, 201), DAT_SUCCESS);
	expect(&rig.a, 201, 20);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.a, 30 + i, 202 + i), DAT_SUCCESS);
	assert_int_equal(is_fast(rig.a.ep), with_fast);
	course->rets[0] = call->call(call->arg);
	assert_int_equal(is_fast(rig.a.ep), with_fast && !call->is_slow);
	assert_int_equal(course->rets[0] & ~DAT_CLASS_ERROR, call->ret);
	course->rets[1] = write_len(&rig.a, 40, 205);
	course->rets[2] = recv_len(&rig.a, 66, 103);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(recv_len(&rig.b, MESSAGE_MOST, 301 + i), DAT_SUCCESS);
	take_both(course);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.b, i == 2 ? 0 : 5, 401 + i), DAT_SUCCESS);
	take_both(course);
	course->posts = fake_posts() - before;
}

static void compare_told(const struct told *one, unsigned one_count, const struct told *other,
			 unsigned other_count)
{
	assert_int_equal(one_count, other_count);
	for (unsigned i = 0; i < one_count; i++) {
		assert_int_equal(one[i].number, other[i].number);
		assert_int_equal(one[i].cookie, other[i].cookie);
		assert_int_equal(one[i].status, other[i].status);
		assert_int_equal(one[i].len, other[i].len);
	}
}

/* No reason is left when the endpoint is idle and has no watermarks. */
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

static void course_of(struct course *course, const struct odd_call *call, bool with_fast)
{
	setup(NULL);
	make_odd();
	if (!with_fast) {
		go_slow(&rig.a);
		go_slow(&rig.b);
	}
	run(course, call, with_fast);
	if (with_fast)
		begin_again();
	teardown(NULL);
}

/*
 * DTO-37 DTO-86 DTO-87: in the middle of others each has the code, the events and their order as on
 * the general path.
 */
static void post__not_plain__as_on_the_general_path(void **state)
{
	static struct course with, without;

	(void)state;
	for (size_t i = 0; i < sizeof(odd_calls) / sizeof(odd_calls[0]); i++) {
		const struct odd_call *call = &odd_calls[i];

		print_message("%s\n", call->name);
		course_of(&with, call, true);
		course_of(&without, call, false);
		for (size_t j = 0; j < 3; j++)
			assert_int_equal(with.rets[j], without.rets[j]);
		assert_int_equal(with.posts, without.posts);
		compare_told(with.a, with.a_count, without.a, without.a_count);
		compare_told(with.b, with.b_count, without.b, without.b_count);
		assert_int_equal(with.a_count, 7 + call->events);
	}
}

/* When another region was posted from, that one is known from then on. */
static void post__another_region__known_from_then_on(void **state)
{
	(void)state;
	make_odd();
	for (int call = 1; call <= 2; call++) {
		assert_int_equal(post_other(call), DAT_SUCCESS);
		if (call == 2)
			assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 32);
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(post_other(call), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(
			(call == 2 ? device.recv_sge : device.send_sge).lkey,
			core_mem_slot(inner(&rig.a)->ia->mem, odd.other_key)->local_keys[0]);
		if (call == 2) {
			expect(&rig.b, 1, 8);
			assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		}
		expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 32);
	}
}

/* LMR-FREE-06: the region of the last posts is gone */
static void post__known_region_freed__refused(void **state)
{
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_seg(1, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		expect(&rig.b, 1, 8);
		assert_true(is_fast(rig.a.ep));
	}
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (int call = 0; call <= 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 8),
				 DAT_CLASS_ERROR | (call == 2 ? NO_KEY(WRITE) : NO_KEY(READ)));
	assert_int_equal(write_len(&rig.a, 8, 3), DAT_SUCCESS);
	expect(&rig.a, 3, 8);
}

/*
 * A slot has so many keys; then the first one names another region, be it where the last posts
 * were: not the device key of that goes down, and its end does not count.
 */
static void post__known_key_issued_again__other_region_counts(void **state)
{
	struct core_mem *mem = inner(&rig.a)->ia->mem;
	DAT_LMR_CONTEXT first, key;
	uint32_t old_key;
	DAT_LMR_HANDLE lmr;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &first);
	for (int call = 1; call <= 2; call++)
		assert_int_equal(post_seg(call, first, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	for (int i = 0; i < 2; i++)
		expect(&rig.a, ODD_COOKIE, 8);
	expect(&rig.b, 1, 8);
	assert_ptr_equal(inner(&rig.a)->known_source.lmr, core_mem_slot(mem, first));
	assert_ptr_equal(inner(&rig.a)->known_target.lmr, core_mem_slot(mem, first));
	old_key = core_mem_slot(mem, first)->local_keys[0];
	core_mem_slot(mem, first)->generation--;
	do {
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		lmr = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &key);
	} while (core_mem_slot(mem, key) != core_mem_slot(mem, first));
	assert_int_equal(key, first);
	for (int call = 0; call <= 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 65),
				 DAT_CLASS_ERROR | BAD_ARG(3));
	for (int call = 1; call <= 2; call++) {
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_not_equal((call == 2 ? device.recv_sge : device.send_sge).lkey, old_key);
	}
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	for (int i = 0; i < 2; i++)
		expect(&rig.a, ODD_COOKIE, 8);
	expect(&rig.b, 1, 8);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
}

/* Requests from one region, Receives into another, which is little: no byte behind it is good. */
static void post__regions_of_their_own__each_with_its_key_and_end(void **state)
{
	struct core_mem *mem = inner(&rig.a)->ia->mem;

	(void)state;
	make_odd();
	for (int call = 0; call <= 2; call++) {
		DAT_LMR_CONTEXT other = call == 2 ? rig.lkey : odd.other_key;
		DAT_LMR_CONTEXT little = odd.little_key;

		for (int i = 0; i < 3; i++) {
			/* the other queue's last post is in another region */
			assert_int_equal(
				post_seg(call == 2 ? 1 : 2, other, (uintptr_t)rig.memory, 8),
				DAT_SUCCESS);
			if (call != 2)
				assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
			expect(&rig.a, ODD_COOKIE, 8);
			if (call != 1)
				assert_int_equal(call ? send_len(&rig.b, 8, 2)
						      : recv_len(&rig.b, 64, 2),
						 DAT_SUCCESS);
			assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory, 64),
					 DAT_SUCCESS);
			assert_true(is_fast(rig.a.ep));
			assert_int_equal((call == 2 ? device.recv_sge : device.send_sge).lkey,
					 core_mem_slot(mem, little)->local_keys[0]);
			expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 64);
			assert_true(is_fast(rig.a.ep));
			for (DAT_VLEN len = 65; len < MESSAGE_MOST; len *= 2)
				assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory, len),
						 DAT_CLASS_ERROR | BAD_ARG(3));
			assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory + 1, 64),
					 DAT_CLASS_ERROR | BAD_ARG(3));
			expect_none(rig.a.dto);
			take_all(rig.b.dto, (struct told[16]){{0}}, 0);
		}
	}
}

/* Another region in the place of the known one: it counts, and not what was there before. */
static void post__place_of_the_known_region_used_again__its_own_bounds(void **state)
{
	const uint32_t mask = CORE_MEM_MAX - 1;
	DAT_LMR_CONTEXT known, key = 0;
	DAT_LMR_HANDLE lmr;
	unsigned tries = 0;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &known);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_seg(1, known, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
	}
	do {
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		lmr = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &key);
	} while ((key & mask) != (known & mask) && ++tries < 1000);
	assert_int_equal(key & mask, known & mask);
	assert_true(is_fast(rig.a.ep));
	for (int call = 0; call < 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 65),
				 DAT_CLASS_ERROR | BAD_ARG(3));
	assert_true(is_fast(rig.a.ep));
}

/* DTO-85: what was good for the zone before is asked for again. */
static void ep_modify__another_zone__known_region_refused(void **state)
{
	DAT_EP_PARAM param;

	(void)state;
	let_go();
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(core_pz_create(rig.ia, &param.pz_handle), DAT_SUCCESS);
	assert_int_equal(core_ep_modify(rig.a.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
	join();
	fake_hold(true);
	own_all();
	assert_int_equal(send_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_READ);
	assert_int_equal(write_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_READ);
	assert_int_equal(recv_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_WRITE);
}

/* The region of a Receive that was refused for want of room is known from then on. */
static void post_recv__region_of_a_refused_one__in_order(void **state)
{
	const struct vrb_conn *conn = conn_of(&rig.a);

	(void)state;
	make_odd();
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(recv_len(&rig.a, 64, 10 + i), DAT_SUCCESS);
	assert_int_equal(post_other(2),
			 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 10, 8);
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(post_other(2), DAT_SUCCESS);
	assert_int_equal(vrb_recv_out(conn, inner(&rig.a)), ROOM);
	assert_int_equal(conn->recv_next, inner(&rig.a)->recv.tail);
	assert_int_equal(device.recv_sge.length, 32);
	for (uint64_t i = 1; i <= ROOM; i++)
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
	for (uint64_t i = 1; i < ROOM; i++)
		expect(&rig.a, 10 + i, 8);
	expect(&rig.a, ODD_COOKIE, 8);
}

/* The reason goes when all that was suppressed is done; and with another connection. */
static void vrb_review__suppressed__until_it_is_done(void **state)
{
	unsigned posts;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_flags(DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
		assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_QUEUE);
		posts = fake_posts();
		expect(&rig.a, 1, 8); /* and a marker finds out about the other one */
		assert_int_equal(fake_posts(), posts + 1);
		expect_none(rig.a.dto);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(vrb_sq_done(conn_of(&rig.a), inner(&rig.a)),
				 vrb_sq_posted(conn_of(&rig.a)));
	}
	/* alone it asks for a completion, which is taken on the fast path and is no event */
	assert_int_equal(write_flags(DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	assert_true(is_fast(rig.a.ep));
	expect_none(rig.a.dto);
	assert_int_equal(inner(&rig.a)->req.head, inner(&rig.a)->req.tail);
	let_go();
	rig_part(&rig);
	assert_true(slow(rig.a.ep) & CORE_EP_SLOW_CONN);
	rig_reset(&rig);
	join();
	fake_hold(true);
	own_all();
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
}

/* A Receive of two segments takes the general path, and its completion the fast one. */
static void post_recv__behind_one_of_two_segments__both_in_order(void **state)
{
	(void)state;
	assert_int_equal(post_two(2), DAT_SUCCESS);
	assert_int_equal(device.recv.num_sge, 2);
	assert_true(is_fast(rig.a.ep));
	assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
	assert_int_equal(device.recv.num_sge, 1);
	assert_int_equal(conn_of(&rig.a)->recv_next, inner(&rig.a)->recv.tail);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(send_len(&rig.b, 20, i), DAT_SUCCESS);
	expect_at_once(&rig.a, ODD_COOKIE, 20);
	expect_at_once(&rig.b, 0, 20);
	expect_at_once(&rig.a, 5, 20);
	expect_at_once(&rig.b, 1, 20);
}

/* --- the reasons --- */

static void expect_review(uint16_t reasons)
{
	struct core_handle *handle = cell(rig.a.ep);

	core_lock_acquire(&handle->lock);
	vrb_update_slow_reasons(inner(&rig.a));
	assert_int_equal(handle->slow_reasons, reasons);
	core_lock_release(&handle->lock);
}

#define WITH(member, value, reason)                                                                \
	do {                                                                                       \
		__typeof__(member) before_ = (member);                                             \
                                                                                                   \
		expect_review(0);                                                                  \
		(member) = (value);                                                                \
		expect_review(reason);                                                             \
		(member) = before_;                                                                \
		expect_review(0);                                                                  \
	} while (0)

static void vrb_review__each_reason__set_and_cleared(void **state)
{
	struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	WITH(conn->state, VRB_CLOSING, CORE_EP_SLOW_CONN);
	WITH(conn->state, VRB_ACCEPTED, CORE_EP_SLOW_CONN);
	WITH(conn->is_graceful, true, CORE_EP_SLOW_CONN);
	WITH(conn->has_fast_path, false, CORE_EP_SLOW_CONN);
	WITH(((struct vrb_ep *)ep->transport)->conn, NULL, CORE_EP_SLOW_CONN);
	WITH(conn->post_next, ep->req.tail - 1, CORE_EP_SLOW_QUEUE);
	WITH(conn->unsignalled, 1, CORE_EP_SLOW_QUEUE);
	WITH(ep->req.done, 1, CORE_EP_SLOW_QUEUE);
	WITH(conn->binds_out, 1, CORE_EP_SLOW_QUEUE);
	WITH(conn->has_marker, true, CORE_EP_SLOW_QUEUE);
	WITH(conn->is_binding, true, CORE_EP_SLOW_QUEUE);
	WITH(conn->retiring, (struct vrb_window *)conn, CORE_EP_SLOW_QUEUE);
	WITH(conn->sq_size, ep->req.capacity, CORE_EP_SLOW_QUEUE);
	WITH(conn->is_receiving, false, CORE_EP_SLOW_RECV);
	WITH(conn->is_unconfirmed, true, CORE_EP_SLOW_RECV);
	WITH(conn->recv_next, ep->recv.tail - 1, CORE_EP_SLOW_RECV);
	WITH(conn->is_flushed, true, CORE_EP_SLOW_PEER);
	WITH(conn->confirm_retries, 1, CORE_EP_SLOW_PEER);
}

/* With a reason set the same is done on the general path, and the counters are the same. */
static void calls__with_a_reason__same_on_the_general_path(void **state)
{
	static const uint16_t reasons[] = {CORE_EP_SLOW_CONN, CORE_EP_SLOW_QUEUE, CORE_EP_SLOW_RECV,
					   CORE_EP_SLOW_PEER};
	struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	for (uint64_t i = 0; i < 4 * SLOTS; i++) {
		uint64_t posted = vrb_sq_posted(conn);

		/* the general path reviews them: so before each call */
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		assert_int_equal(write_len(&rig.a, 8, 100 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(write_len(&rig.a, 9, 200 + i), DAT_SUCCESS);
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		assert_int_equal(recv_len(&rig.a, 64, 300 + i), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(vrb_sq_posted(conn) - posted, 2);
		assert_int_equal(vrb_sq_done(conn, ep), posted);
		assert_int_equal(vrb_recv_out(conn, ep), 1);
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		expect(&rig.a, 100 + i, 8);
		assert_true(is_fast(rig.a.ep));
		expect(&rig.a, 200 + i, 9);
		assert_int_equal(vrb_sq_done(conn, ep), posted + 2);
		assert_int_equal(send_len(&rig.b, 5, i), DAT_SUCCESS);
		core_handle_set_slow(rig.a.ep, reasons[i % 4]);
		expect(&rig.a, 300 + i, 5);
		expect(&rig.b, i, 5);
		assert_int_equal(vrb_recv_out(conn, ep), 0);
	}
}

/* RMR-BIND-39: while a bind is under way, and when it is done. */
static void vrb_review__bind__until_it_is_done(void **state)
{
	const struct vrb_conn *conn = conn_of(&rig.a);

	(void)state;
	make_odd();
	for (unsigned i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(post_bind(0), DAT_SUCCESS);
		assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_QUEUE);
		assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
		assert_int_equal(slow(rig.a.ep), CORE_EP_SLOW_QUEUE);
		assert_int_equal(take_all(rig.a.dto, (struct told[16]){{0}}, 0), 3);
		assert_true(is_fast(rig.a.ep));
		assert_int_equal(vrb_sq_done(conn, inner(&rig.a)), vrb_sq_posted(conn));
		assert_int_equal(write_len(&rig.a, 10, 3), DAT_SUCCESS);
		expect_at_once(&rig.a, 3, 10);
	}
}

/* EP-DISC-13: the reason is set as soon as the call returns. */
static void vrb_review__graceful_disconnect__set_at_once(void **state)
{
	(void)state;
	assert_int_equal(send_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	assert_true(slow(rig.a.ep) & CORE_EP_SLOW_CONN);
	assert_int_equal(recv_len(&rig.b, 64, 2), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	let_go();
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(slow(rig.a.ep) & CORE_EP_SLOW_CONN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(&rig.b, 2, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(post__not_plain__as_on_the_general_path),
		RIG_TEST(post__another_region__known_from_then_on),
		RIG_TEST(post__known_region_freed__refused),
		RIG_TEST(post__known_key_issued_again__other_region_counts),
		RIG_TEST(post__regions_of_their_own__each_with_its_key_and_end),
		RIG_TEST(post__place_of_the_known_region_used_again__its_own_bounds),
		RIG_TEST(ep_modify__another_zone__known_region_refused),
		RIG_TEST(post_recv__region_of_a_refused_one__in_order),
		RIG_TEST(vrb_review__suppressed__until_it_is_done),
		RIG_TEST(post_recv__behind_one_of_two_segments__both_in_order),
		RIG_TEST(vrb_review__each_reason__set_and_cleared),
		RIG_TEST(calls__with_a_reason__same_on_the_general_path),
		RIG_TEST(vrb_review__bind__until_it_is_done),
		RIG_TEST(vrb_review__graceful_disconnect__set_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
