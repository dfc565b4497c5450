// SPDX-License-Identifier: BSD-2-Clause
/*
 * What leaves the express way (src/verbs/express.c), and when it begins again: calls that are not
 * usual have the codes, the events and the order that they have where there is no such way, and the
 * books are the same; regions that the way knows, and does not know any more. The provider's own
 * thread is held, so that whatever happens is done by the calls of the test.
 */
#include "express_lab.h"

/* --- what is not usual --- */

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

/* `ends`: it leaves the express way. `events`: how many more come of it. */
static const struct odd_call {
	const char *name;
	DAT_RETURN (*call)(int arg);
	int arg;
	DAT_RETURN ret;
	bool ends;
	unsigned events;
} odd_calls[] = {
	{"Send suppressed", send_with, DAT_COMPLETION_SUPPRESS_FLAG, 0, true, 0},
	{"Send solicited", send_with, DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, true, 1},
	{"Send fenced", send_with, DAT_COMPLETION_BARRIER_FENCE_FLAG, 0, true, 1},
	{"Send unsignalled", send_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(5), false, 0},
	{"Write suppressed", write_with, DAT_COMPLETION_SUPPRESS_FLAG, 0, true, 0},
	{"Write solicited", write_with, DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, true, 1},
	{"Write fenced", write_with, DAT_COMPLETION_BARRIER_FENCE_FLAG, 0, true, 1},
	{"Write unsignalled", write_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(6), false, 0},
	{"Receive suppressed", recv_with, DAT_COMPLETION_SUPPRESS_FLAG, BAD_ARG(5), false, 0},
	{"Receive unsignalled", recv_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(5), false, 0},
	{"Send of none", post_none, 0, 0, true, 1},
	{"Write of none", post_none, 1, 0, true, 1},
	{"Receive of none", post_none, 2, 0, true, 0},
	{"Send of two", post_two, 0, 0, true, 1},
	{"Write of two", post_two, 1, 0, true, 1},
	{"Receive of two", post_two, 2, 0, true, 0},
	{"Send from NULL", post_null, 0, BAD_ARG(3), false, 0},
	{"Write from NULL", post_null, 1, BAD_ARG(3), false, 0},
	{"Receive into NULL", post_null, 2, BAD_ARG(3), false, 0},
	{"Send from another region", post_other, 0, 0, true, 1},
	{"Write from another region", post_other, 1, 0, true, 1},
	{"Receive into another region", post_other, 2, 0, true, 0},
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
	{"Send of 0 bytes", post_empty, 0, 0, true, 1},
	{"Write of 0 bytes", post_empty, 1, 0, true, 1},
	{"Receive of 0 bytes", post_empty, 2, 0, true, 0},
	{"Send of all memory", post_huge, 0, BAD_ARG(3), false, 0},
	{"Write of all memory", post_huge, 1, BAD_ARG(3), false, 0},
	{"Receive of all memory", post_huge, 2, BAD_ARG(3), false, 0},
	{"Send of more than the region", post_larger_than_region, 0, BAD_ARG(3), false, 0},
	{"Receive of more than the region", post_larger_than_region, 2, BAD_ARG(3), false, 0},
	{"Send as long as may be", post_longest, 0, 0, false, 1},
	{"Write as long as may be", post_longest, 1, 0, false, 1},
	{"Send too long", post_too_long, 0, BAD_ARG(3), false, 0},
	{"Write too long", post_too_long, 1, BAD_ARG(3), false, 0},
	{"Write to nowhere", write_no_remote, 0, BAD_ARG(5), false, 0},
	{"Write to too little", write_remote_len, 7, DAT_LENGTH_ERROR, false, 0},
	{"Write to as much", write_remote_len, 8, 0, false, 1},
	{"Write to more", write_remote_len, 9, 0, false, 1},
	{"RDMA Read", post_read, 0, 0, true, 1},
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
	struct books before, after, end;
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
static void run(struct course *course, const struct odd_call *call, bool is_express)
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
	assert_int_equal(is_on(rig.a.ep), is_express);
	course->rets[0] = call->call(call->arg);
	assert_int_equal(is_on(rig.a.ep), is_express && !call->ends);
	assert_int_equal(course->rets[0] & ~DAT_CLASS_ERROR, call->ret);
	course->rets[1] = write_len(&rig.a, 40, 205);
	course->rets[2] = recv_len(&rig.a, 66, 103);
	read_books(&course->before);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(recv_len(&rig.b, MESSAGE_MOST, 301 + i), DAT_SUCCESS);
	take_both(course);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.b, i == 2 ? 0 : 5, 401 + i), DAT_SUCCESS);
	take_both(course);
	course->posts = fake_posts() - before;
	read_books(&course->after);
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

/* Up to here; it may begin again when the endpoint is idle, watermarks being no reason any more. */
static void begin_again(void)
{
	assert_int_equal(
		core_ep_set_watermark(rig.a.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE),
		DAT_SUCCESS);
	assert_false(is_on(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
	expect_at_once(&rig.a, 2, 9);
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(write_len(&rig.a, 9, i), DAT_SUCCESS);
	for (uint64_t i = 0; i < ROOM; i++)
		expect_at_once(&rig.a, i, 9);
}

static void course_of(struct course *course, const struct odd_call *call, bool is_express)
{
	setup(NULL);
	make_odd();
	spoil_slots();
	if (!is_express) {
		end_way(&rig.a);
		end_way(&rig.b);
		conn_of(&rig.a)->is_direct = false;
		conn_of(&rig.b)->is_direct = false;
	}
	run(course, call, is_express);
	if (is_express)
		begin_again();
	read_books(&course->end);
	teardown(NULL);
}

/*
 * DTO-37 DTO-86 DTO-87: in the middle of others each has the code, the events and their order, and
 * leaves the books as it does where there is no express way.
 */
static void post__not_usual__as_without_the_way(void **state)
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
		assert_memory_equal(&with.before, &without.before, sizeof(with.before));
		assert_memory_equal(&with.after, &without.after, sizeof(with.after));
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
		assert_true(is_on(rig.a.ep));
		assert_int_equal(post_other(call), DAT_SUCCESS);
		assert_int_equal(is_on(rig.a.ep), call == 2);
		assert_int_equal(
			(call == 2 ? device.recv_sge : device.send_sge).lkey,
			core_mem_slot(&inner(&rig.a)->ia->mem, odd.other_key)->local_keys[0]);
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
		assert_true(is_on(rig.a.ep));
	}
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (int call = 0; call <= 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 8),
				 DAT_CLASS_ERROR | (call == 2 ? NO_KEY(WRITE) : NO_KEY(READ)));
	assert_int_equal(write_len(&rig.a, 8, 3), DAT_SUCCESS);
	expect(&rig.a, 3, 8);
}

/* Requests from one region, Receives into another, which is little: no byte behind it is good. */
static void post__regions_of_their_own__each_with_its_key_and_end(void **state)
{
	struct core_mem *mem = &inner(&rig.a)->ia->mem;

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
			assert_int_equal(is_on(rig.a.ep), i || call);
			assert_int_equal((call == 2 ? device.recv_sge : device.send_sge).lkey,
					 core_mem_slot(mem, little)->local_keys[0]);
			expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 64);
			assert_true(is_on(rig.a.ep));
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
	assert_true(is_on(rig.a.ep));
	for (int call = 0; call < 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 65),
				 DAT_CLASS_ERROR | BAD_ARG(3));
	assert_true(is_on(rig.a.ep));
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

/* The core knows the region of a Receive that was refused for want of room; the way does not. */
static void post_recv__known_to_the_core_alone__in_order(void **state)
{
	struct books books;

	(void)state;
	make_odd();
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(recv_len(&rig.a, 64, 10 + i), DAT_SUCCESS);
	assert_int_equal(post_other(2),
			 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 10, 8);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(post_other(2), DAT_SUCCESS);
	read_books(&books);
	assert_int_equal(books.recv_out, ROOM);
	assert_int_equal(books.recv_next, inner(&rig.a)->recv.tail);
	assert_int_equal(device.recv_sge.length, 32);
	for (uint64_t i = 1; i <= ROOM; i++)
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
	for (uint64_t i = 1; i < ROOM; i++)
		expect(&rig.a, 10 + i, 8);
	expect(&rig.a, ODD_COOKIE, 8);
}

/* It is on again when all that was suppressed is done; on another connection for the thread that
 * has the endpoint for its own. */
static void vrb_express_begin__nothing_to_complete__on_all_the_same(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_flags(DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
		assert_false(is_on(rig.a.ep));
		expect(&rig.a, 1, 8);
		assert_false(is_on(rig.a.ep));
		expect_none(rig.a.dto); /* and finds that it is done */
		assert_true(is_on(rig.a.ep));
	}
	let_go();
	rig_part(&rig);
	rig_reset(&rig);
	join();
	fake_hold(true);
	own_all();
	assert_false(CORE_LOCK_IS_OWNED && is_on(rig.a.ep)); /* the provider's thread made it */
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	assert_true(is_on(rig.a.ep));
}

/* A Receive with more segments that was posted before the way began stays what it is. */
static void post_recv__behind_one_of_two_segments__both_in_order(void **state)
{
	struct core_ep *ep = inner(&rig.a);
	struct books books;

	(void)state;
	spoil_slots();
	end_way(&rig.a);
	assert_int_equal(post_two(2), DAT_SUCCESS);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
	assert_true(is_on(rig.a.ep));
	read_books(&books);
	assert_int_equal(books.recv[0].segments, 2);
	assert_int_equal(books.recv[0].iov[0].segment_length, 8);
	assert_int_equal(books.recv[0].iov[1].segment_length, 16);
	assert_int_equal(books.recv[1].segments, 1);
	assert_int_equal(books.recv[1].flags, 0);
	assert_int_equal(books.recv[1].iov[0].segment_length, 64);
	assert_int_equal(books.recv_next, ep->recv.tail);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(send_len(&rig.b, 20, i), DAT_SUCCESS);
	expect(&rig.a, ODD_COOKIE, 20);
	expect(&rig.a, 5, 20);
}

/* What is next is complete when it is asked for, by whoever tells a waiter of it. */
static void vrb_express_settle_recv__posted_on_the_way__complete(void **state)
{
	struct core_recv_queue *queue = &inner(&rig.a)->recv;
	const struct core_wqe *wqe = &queue->slots[queue->head & queue->mask];

	(void)state;
	spoil_slots();
	assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
	vrb_express_settle_recv(inner(&rig.a));
	assert_int_equal(wqe->flags, 0);
	assert_int_equal(wqe->segments, 1);
	assert_int_equal(wqe->iov[0].segment_length, 64);
	assert_int_equal(wqe->cookie.as_64, 5);
}

/* --- it begins only when nothing else is to be known --- */

static void expect_no_begin(bool begins)
{
	struct core_handle *handle = cell(rig.a.ep);

	core_lock_acquire(&handle->lock);
	vrb_express_begin(inner(&rig.a));
	assert_int_equal(handle->express != 0, begins);
	core_ep_express_end(inner(&rig.a));
	core_lock_release(&handle->lock);
}

#define WITH(member, value)                                                                        \
	do {                                                                                       \
		__typeof__(member) before_ = (member);                                             \
                                                                                                   \
		expect_no_begin(true);                                                             \
		(member) = (value);                                                                \
		expect_no_begin(false);                                                            \
		(member) = before_;                                                                \
	} while (0)

static void vrb_express_begin__queues_not_calm__does_not(void **state)
{
	struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	end_way(&rig.a);
	WITH(ep->req.head, ep->req.tail - 1);
	WITH(conn->post_next, ep->req.tail - 1);
	WITH(conn->reap_next, ep->req.tail - 1);
	WITH(conn->sq_done, conn->sq_posted - 1);
	WITH(conn->sq_seen, conn->sq_posted - 1);
	WITH(conn->signalled, 1);
	WITH(conn->has_marker, true);
	WITH(conn->is_binding, true);
	WITH(conn->retiring, (struct vrb_window *)conn);
	WITH(conn->is_receiving, false);
	WITH(conn->recv_next, ep->recv.tail - 1);
	WITH(conn->recv_out, 1);
	WITH(conn->is_direct, false);
	WITH(conn->state, VRB_CLOSING);
	WITH(conn->is_graceful, true);
	WITH(conn->sq_size, ep->req.capacity);
}

static void core_ep_express_begin__endpoint_not_usual__does_not(void **state)
{
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	end_way(&rig.a);
	WITH(ep->state, DAT_EP_STATE_DISCONNECT_PENDING);
	WITH(ep->is_breaking, true);
	WITH(ep->request_evd, NULL);
	WITH(ep->attr.max_request_iov, 0);
	WITH(ep->attr.max_rdma_write_iov, 0);
	WITH(ep->attr.max_recv_iov, 0);
	WITH(ep->is_soft_armed, true);
	WITH(ep->hard_watermark, 3);
}

/* Asked for again while it is on, it goes on. */
static void vrb_express_begin__on_already__goes_on(void **state)
{
	struct core_handle *handle = cell(rig.a.ep);

	(void)state;
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	core_lock_acquire(&handle->lock);
	vrb_express_begin(inner(&rig.a));
	core_lock_release(&handle->lock);
	assert_true(is_on(rig.a.ep));
	expect_at_once(&rig.a, 1, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(post__not_usual__as_without_the_way),
		RIG_TEST(post__another_region__known_from_then_on),
		RIG_TEST(post__known_region_freed__refused),
		RIG_TEST(post__regions_of_their_own__each_with_its_key_and_end),
		RIG_TEST(post__place_of_the_known_region_used_again__its_own_bounds),
		RIG_TEST(ep_modify__another_zone__known_region_refused),
		RIG_TEST(post_recv__known_to_the_core_alone__in_order),
		RIG_TEST(vrb_express_begin__nothing_to_complete__on_all_the_same),
		RIG_TEST(post_recv__behind_one_of_two_segments__both_in_order),
		RIG_TEST(vrb_express_settle_recv__posted_on_the_way__complete),
		RIG_TEST(vrb_express_begin__queues_not_calm__does_not),
		RIG_TEST(core_ep_express_begin__endpoint_not_usual__does_not),
		RIG_TEST(vrb_express_begin__on_already__goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
