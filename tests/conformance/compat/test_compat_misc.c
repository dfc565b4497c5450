// SPDX-License-Identifier: BSD-2-Clause
/* Other habits of existing consumers: attributes, endless suppressed requests, small stacks. */
#include "dto_util.h"

/* --- attributes --- */

/* COMPAT-10 EP-CREATE-38 EP-CREATE-82 */
static void ep_create__zero_sizes__defaults_apply(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 10), dt_seg(&rig->x, 100, 10)};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 20);

	rig->attr_a.max_message_size = rig->attr_a.max_rdma_size = 0;
	rig->attr_a.max_rdma_read_iov = rig->attr_a.max_rdma_write_iov = 0;
	rig_link(rig);
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 2, iov, 1, &remote, 0));
	expect_sent(&rig->a, 1, 20);
	assert_memory_equal(rig->y.p, rig->x.p, 10);
	assert_memory_equal(rig->y.p + 10, rig->x.p + 100, 10);
	rig_works(rig);
}

/* COMPAT-11 LMR-USE-12 */
static void post__garbage_in_pad__ignored(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET from = dt_seg(&rig->x, 0, 100), into = dt_seg(&rig->y, 0, 100);
	DAT_LMR_TRIPLET back = dt_seg(&rig->x, 1000, 100);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 200, 100);

	assert_int_equal(sizeof(DAT_LMR_TRIPLET), 24);
	assert_int_equal(sizeof(DAT_RMR_TRIPLET), 24);
	from.pad = into.pad = back.pad = remote.pad = 0xDEADBEEF;
	dt_ok(dto_post(DTO_RECV, rig->b.ep, 1, &into, 1, NULL, 0));
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 1, &from, 2, NULL, 0));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 1, &from, 3, &remote, 0));
	dt_ok(dto_post(DTO_READ, rig->a.ep, 1, &back, 4, &remote, 0));
	expect_received(&rig->b, 1, 100);
	for (uint64_t i = 2; i <= 4; i++)
		expect_sent(&rig->a, i, 100);
	assert_memory_equal(rig->y.p, rig->x.p, 100);
	assert_memory_equal(rig->x.p + 1000, rig->x.p, 100);
}

/* --- suppressed work --- */

/* COMPAT-12 DTO-16 */
static void post_rdma_write__100000_suppressed__slots_are_reused(void **state)
{
	struct rig *rig = *state;
	const uint32_t n = DT_SLOW ? 5000 : 100000;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	const uint64_t end = dt_now_us() + 2 * (uint64_t)DT_WAIT_US;
	DAT_RETURN ret;

	rig->attr_a.max_request_dtos = 8;
	rig_link(rig);
	for (uint32_t i = 1; i <= n; i++) {
		while ((ret = dat_ep_post_rdma_write(rig->a.ep, 1, &seg, dt_cookie(i), &remote,
						     DAT_COMPLETION_SUPPRESS_FLAG)) !=
		       DAT_SUCCESS) {
			dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
			assert_true(dt_now_us() < end);
			sched_yield();
		}
	}
	memset(rig->x.p + 8, 0x44, 8);
	while ((ret = dat_ep_post_rdma_write(
			rig->a.ep, 1,
			&(DAT_LMR_TRIPLET){rig->x.lkey, 0, (uintptr_t)rig->x.p + 8, 8},
			dt_cookie(n + 1), &remote, 0)) != DAT_SUCCESS)
		assert_true(dt_now_us() < end);
	expect_sent(&rig->a, n + 1, 8); /* the first event of all */
	dt_check_bytes(rig->y.p, 8, 0x44);
	dt_no_event(rig->a.request);
}

/* --- threads --- */

static void use_calls(struct rig *rig)
{
	struct dt_ia ia;
	struct dt_buf buf;
	DAT_EP_PARAM ep_param;

	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, 30000, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_free(&buf);
	dt_ia_close(&ia);
	rig_link(rig);
	dt_ok(dat_ep_query(rig->a.ep, DAT_EP_FIELD_ALL, &ep_param));
	for (int i = 0; i < 20; i++)
		rig_works(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, RIG_LEN), 2, 0);
	expect_sent(&rig->a, 2, RIG_LEN);
	expect_received(&rig->b, 1, RIG_LEN);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), 3);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_recv_flushed(&rig->a, 3);
	dt_ok(dat_ep_reset(rig->a.ep));
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

static void *small_stack_run(void *arg)
{
	use_calls(arg);
	return arg;
}

/* COMPAT-38: a guard page below the stack catches an overflow */
static void calls__thread_with_64_kib_stack__work(void **state)
{
	struct rig *rig = *state;
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, DT_SLOW ? 1u << 20 : 65536), 0);
	assert_int_equal(pthread_create(&thread, &attr, small_stack_run, rig), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, rig);
	pthread_attr_destroy(&attr);
}

/*
 * COMPAT-23: a consumer requests an adapter without thread safety and calls it from several threads
 */
static void ia_open__thread_safety_not_requested__adapter_opened(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)state;
	dt_ok(dat_ia_openv((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia, DAT_VERSION_MAJOR,
			   DAT_VERSION_MINOR, DAT_FALSE));
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* --- both sides begin --- */

/*
 * COMPAT-27: each side posts a Send and a Receive as soon as it is connected; repeated many times
 */
static void post_send__both_sides_at_once_after_established__no_loss(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 50; round++) {
		struct dt_listener listener;

		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
		dt_listen(&rig->ia, &listener);
		dt_connect(&rig->ia, rig->a.ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), rig->b.ep, 0, NULL));
		/* the side that is notified first sends first */
		dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		post_send(&rig->a, dt_seg(&rig->x, 0, 3000), 1, 0);
		post_recv(&rig->a, dt_seg(&rig->x, 10000, 3000), 2);
		dt_expect_conn(rig->b.conn, rig->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		post_send(&rig->b, dt_seg(&rig->y, 0, 3000), 3, 0);
		post_recv(&rig->b, dt_seg(&rig->y, 10000, 3000), 4);
		expect_sent(&rig->a, 1, 3000);
		expect_sent(&rig->b, 3, 3000);
		expect_received(&rig->a, 2, 3000);
		expect_received(&rig->b, 4, 3000);
		expect_quiet(&rig->a);
		expect_quiet(&rig->b);
		dt_unlisten(&listener);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(ep_create__zero_sizes__defaults_apply),
		rig_test(post__garbage_in_pad__ignored),
		rig_test_bare(post_rdma_write__100000_suppressed__slots_are_reused),
		rig_test_bare(calls__thread_with_64_kib_stack__work),
		cmocka_unit_test(ia_open__thread_safety_not_requested__adapter_opened),
		rig_test_bare(post_send__both_sides_at_once_after_established__no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
