// SPDX-License-Identifier: BSD-2-Clause
/* Several threads post to one endpoint: each post completes once, in the order of its thread. */
#include "dto_util.h"

#define POSTERS 4
#define POSTS 300u

struct poster {
	struct rig *rig;
	uint64_t id;
	pthread_t thread;
	_Atomic uint64_t taken; /* completions that the main thread took */
};

static void *poster_run(void *arg)
{
	struct poster *poster = arg;
	DAT_LMR_TRIPLET seg = dt_seg(&poster->rig->x, 0, 8);

	for (uint64_t i = 0; i < POSTS; i++) {
		const uint64_t end = dt_now_us() + DT_WAIT_US;
		const DAT_DTO_COOKIE cookie = dt_cookie(poster->id << 32 | i);
		DAT_RETURN ret;

		/* a transport that completes Sends early must not fill the queue of events */
		for (;;) {
			if (poster->taken + 8 > i) {
				ret = dat_ep_post_send(poster->rig->a.ep, 1, &seg, cookie, 0);
				if (ret == DAT_SUCCESS)
					break;
				dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
			}
			if (dt_now_us() > end)
				return NULL; /* the main thread reports it */
			sched_yield();
		}
	}
	return NULL;
}

/* EP-SEND-36 DTO-122 GEN-26 COMPAT-23 */
static void post_send__several_threads__each_completes_once_in_order(void **state)
{
	struct rig *rig = *state;
	struct poster posters[POSTERS];

	for (uint64_t i = 0; i < 16; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
	for (uint64_t i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){.rig = rig, .id = i};
		assert_int_equal(pthread_create(&posters[i].thread, NULL, poster_run, &posters[i]),
				 0);
	}
	for (uint64_t n = 0; n < POSTERS * POSTS; n++) {
		const DAT_EVENT event = dt_event(rig->a.request);
		const uint64_t cookie =
			event.event_data.dto_completion_event_data.user_cookie.as_64;

		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
		assert_true(cookie >> 32 < POSTERS);
		assert_true((cookie & 0xffffffff) == posters[cookie >> 32].taken);
		posters[cookie >> 32].taken++;
		expect_received(&rig->b, n, 8);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), n + 16);
	}
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/* Even threads write, odd ones read. */
static void *rdma_poster_run(void *arg)
{
	struct poster *poster = arg;
	const enum dto_kind kind = poster->id % 2 ? DTO_READ : DTO_WRITE;

	for (uint64_t i = 0; i < POSTS; i++) {
		const uint64_t end = dt_now_us() + DT_WAIT_US;

		while (poster->taken + 8 <= i ||
		       dto_post_byte(poster->rig, kind, poster->id << 32 | i, 0) != DAT_SUCCESS) {
			if (dt_now_us() > end)
				return NULL; /* the main thread reports it */
			sched_yield();
		}
	}
	return NULL;
}

/* EP-RDMAR-41 EP-RDMAW-48 DTO-122 GEN-26 */
static void post_rdma__several_threads__each_completes_once_in_order(void **state)
{
	struct rig *rig = *state;
	struct poster posters[POSTERS];

	for (uint64_t i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){.rig = rig, .id = i};
		assert_int_equal(
			pthread_create(&posters[i].thread, NULL, rdma_poster_run, &posters[i]), 0);
	}
	for (uint64_t n = 0; n < POSTERS * POSTS; n++) {
		const DAT_EVENT event = dt_event(rig->a.request);
		const uint64_t cookie =
			event.event_data.dto_completion_event_data.user_cookie.as_64;

		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
		assert_true(cookie >> 32 < POSTERS);
		assert_true((cookie & 0xffffffff) == posters[cookie >> 32].taken);
		posters[cookie >> 32].taken++;
	}
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

static void *recv_poster_run(void *arg)
{
	struct poster *poster = arg;
	DAT_LMR_TRIPLET seg = dt_seg(&poster->rig->x, 0, 8);

	for (uint64_t i = 0; i < POSTS; i++)
		if (dat_ep_post_recv(poster->rig->a.ep, 1, &seg, dt_cookie(poster->id << 32 | i),
				     0) != DAT_SUCCESS)
			return (void *)(uintptr_t)i;
	return (void *)(uintptr_t)POSTS;
}

/* EP-RECV-36 DTO-122 DTO-112: threads fill the receive queue; exactly its size is accepted */
static void post_recv__several_threads__accepted_to_the_limit(void **state)
{
	struct rig *rig = *state;
	struct poster posters[POSTERS];
	uint64_t next[POSTERS] = {0}, accepted[POSTERS], total = 0;
	void *count;

	rig->attr_a.max_recv_dtos = POSTS + 7;
	rig_link(rig);
	for (uint64_t i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){.rig = rig, .id = i};
		assert_int_equal(
			pthread_create(&posters[i].thread, NULL, recv_poster_run, &posters[i]), 0);
	}
	for (int i = 0; i < POSTERS; i++) {
		assert_int_equal(pthread_join(posters[i].thread, &count), 0);
		accepted[i] = (uintptr_t)count;
		total += accepted[i];
	}
	assert_int_equal(total, POSTS + 7);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (uint64_t n = 0; n < total; n++) {
		const DAT_EVENT event = dt_event_poll(rig->a.recv);
		const uint64_t cookie =
			event.event_data.dto_completion_event_data.user_cookie.as_64;

		assert_true(cookie >> 32 < POSTERS);
		assert_true((cookie & 0xffffffff) == next[cookie >> 32]++);
	}
	for (int i = 0; i < POSTERS; i++)
		assert_true(next[i] == accepted[i]);
	dt_no_event(rig->a.recv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post_send__several_threads__each_completes_once_in_order),
		rig_test(post_rdma__several_threads__each_completes_once_in_order),
		rig_test_bare(post_recv__several_threads__accepted_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
