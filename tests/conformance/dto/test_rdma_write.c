// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_post_rdma_write: it changes its target and nothing else. Refusals are in
 * test_dto_refused.c, protection in test_dto_protect.c, order in test_dto_order.c.
 */
#include "copy_path.h"
#include "dto_util.h"
#include "quiet.h"

#define LONG (3u << 20)	 /* more than a post or a poll moves at once */
#define ASLEEP_US 20000u /* a thread that polls from time to time does so within this time */

/* EP-RDMAW-01: the exported function has this prototype */
static DAT_RETURN (*const write_call)(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET *, DAT_DTO_COOKIE,
				      const DAT_RMR_TRIPLET *,
				      DAT_COMPLETION_FLAGS) = dat_ep_post_rdma_write;

/* EP-RDMAW-01 EP-RDMAW-02 EP-RDMAW-03 EP-RDMAW-04 EP-RDMAW-06 EP-RDMAW-21 EP-RDMAW-36 DTO-04 */
static void post_rdma_write__several_segments__placed_in_order(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[4] = {dt_seg(&rig->x, 700, 33), dt_seg(&rig->x, 1, 7),
				  dt_seg(&rig->x, 700, 33), dt_seg(&rig->x, 333, 100)};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 101, 1000); /* larger than the data */
	DAT_EVENT event;

	dt_ok(write_call(rig->a.ep, 4, iov, dt_cookie(0xABCDEF0123456789), &remote, 0));
	event = dt_event(rig->a.request);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, rig->a.ep);
	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 ==
		    0xABCDEF0123456789);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	assert_true(event.event_data.dto_completion_event_data.transfered_length == 173);
	assert_memory_equal(rig->y.p + 101, rig->x.p + 700, 33);
	assert_memory_equal(rig->y.p + 134, rig->x.p + 1, 7);
	assert_memory_equal(rig->y.p + 141, rig->x.p + 700, 33);
	assert_memory_equal(rig->y.p + 174, rig->x.p + 333, 100);
	dt_check_bytes(rig->y.p, 101, RIG_FILL);
	dt_check_bytes(rig->y.p + 274, RIG_LEN - 274, RIG_FILL);
	dt_no_event(rig->a.recv);
}

/* EP-RDMAW-42 */
static void post_rdma_write__done__no_event_at_peer(void **state)
{
	struct rig *rig = *state;
	DAT_BOOLEAN idle;

	post_recv(&rig->b, dt_seg(&rig->y, 40000, 8), 1);
	post_write(&rig->a, dt_seg(&rig->x, 0, 30000), dt_rseg(&rig->y, 0, 30000), 2,
		   DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	expect_sent(&rig->a, 2, 30000);
	dt_stays_empty(rig->b.recv);
	expect_quiet(&rig->b);
	dt_ok(dat_ep_get_status(rig->b.ep, NULL, &idle, NULL));
	assert_int_equal(idle, DAT_FALSE); /* the Receive is still posted */
	dt_check_bytes(rig->y.p + 40000, 8, RIG_FILL);
}

/* EP-RDMAW-08 DTO-119 */
static void post_rdma_write__zero_length__completes_unchecked(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_TRIPLET remote = {.rmr_context = 0xdeadbeef, .target_address = 1};
	DAT_LMR_TRIPLET empty[2] = {{.lmr_context = 0xdeadbeef}, {.virtual_address = 7}};

	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 0, NULL, dt_cookie(1), &remote, 0));
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 2, empty, dt_cookie(2), &remote, 0));
	remote.segment_length = 100;
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 0, NULL, dt_cookie(3), &remote, 0));
	for (uint64_t i = 1; i <= 3; i++)
		expect_sent(&rig->a, i, 0);
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
	dt_stays_empty(rig->a.conn);
	rig_works(rig);
}

/* EP-RDMAW-12 EP-RDMAW-13 */
static void post_rdma_write__any_cookie__comes_back(void **state)
{
	struct rig *rig = *state;
	static const uint64_t cookies[] = {
		0, 5, 5, UINT64_MAX, 0x8000000000000000, 0xffffffff00000000};

	for (size_t i = 0; i < COUNT_OF(cookies); i++)
		post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), cookies[i], 0);
	for (size_t i = 0; i < COUNT_OF(cookies); i++)
		expect_sent(&rig->a, cookies[i], 8);
	dt_stays_empty(rig->a.request);
}

/*
 * EP-RDMAW-15: both arrays may be reused when the call returns, however late the operation starts
 */
static void post_rdma_write__arrays_overwritten__no_effect(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 50), dt_seg(&rig->x, 500, 50)};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 7, 100);

	assert_int_equal(rig->ia.provider.iov_ownership_on_return, DAT_IOV_CONSUMER);
	/* after a waiting Send and fenced after a Read: not done when the post returns */
	post_send(&rig->a, dt_seg(&rig->x, 0, 1), 1, 0);
	post_read(&rig->a, dt_seg(&rig->x, 10000, 30000), dt_rseg(&rig->y, 10000, 30000), 2, 0);
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 2, iov, dt_cookie(3), &remote,
				     DAT_COMPLETION_BARRIER_FENCE_FLAG));
	memset(iov, 0xff, sizeof(iov));
	memset(&remote, 0xff, sizeof(remote));
	post_recv(&rig->b, dt_seg(&rig->y, 50000, 1), 4);
	expect_sent(&rig->a, 1, 1);
	expect_sent(&rig->a, 2, 30000);
	expect_sent(&rig->a, 3, 100);
	assert_memory_equal(rig->y.p + 7, rig->x.p, 50);
	assert_memory_equal(rig->y.p + 57, rig->x.p + 500, 50);
	dt_check_bytes(rig->y.p, 7, RIG_FILL);
	dt_check_bytes(rig->y.p + 107, 9000, RIG_FILL);
}

/* EP-RDMAW-16 */
static void post_rdma_write__done__arrays_and_buffer_unchanged(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 4000), dt_seg(&rig->x, 4100, 30000)};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 50000);
	DAT_LMR_TRIPLET iov_before[2];
	DAT_RMR_TRIPLET remote_before;

	iov[0].pad = remote.pad = 0x12345678;
	memcpy(iov_before, iov, sizeof(iov));
	remote_before = remote;
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 2, iov, dt_cookie(1), &remote, 0));
	expect_sent(&rig->a, 1, 34000);
	assert_memory_equal(iov, iov_before, sizeof(iov));
	assert_memory_equal(&remote, &remote_before, sizeof(remote));
	dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
}

/* EP-RDMAW-43 EP-RDMAW-02 EP-RDMAW-06 COMPAT-03: a consumer that is notified of the completion
 * finds the data at once */
static void post_rdma_write__completed__data_are_there(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {1, 8, 100, 4096, 5000, 20000, RIG_LEN};

	for (unsigned round = 0; round < 20; round++) {
		for (size_t i = 0; i < COUNT_OF(sizes); i++) {
			dt_fill(rig->x.p, sizes[i], round);
			post_write(&rig->a, dt_seg(&rig->x, 0, sizes[i]),
				   dt_rseg(&rig->y, 0, sizes[i]), i, 0);
			expect_sent(&rig->a, i, sizes[i]);
			dt_check_pattern(rig->y.p, sizes[i], round);
		}
	}
}

/* EP-RDMAW-46 */
static void ia_query__optimal_alignment__divides_256(void **state)
{
	struct rig *rig = *state;
	const DAT_UINT32 alignment = rig->ia.provider.optimal_buffer_alignment;

	assert_int_equal(DAT_OPTIMAL_ALIGNMENT, 256);
	assert_true(alignment >= 1 && alignment <= 256);
	assert_int_equal(256 % alignment, 0);
}

/* EP-RDMAW-17 DTO-10: the poster makes no other call */
static void post_rdma_write__no_further_call__carried_out(void **state)
{
	struct rig *rig = *state;

	memset(rig->x.p, 0x42, 20000);
	post_write(&rig->a, dt_seg(&rig->x, 0, 20000), dt_rseg(&rig->y, 0, 20000), 1, 0);
	dt_until(dto_is_written, rig->y.p + 19999);
	expect_sent(&rig->a, 1, 20000);
	dt_check_bytes(rig->y.p, 20000, 0x42);
}

/*
 * EP-RDMAW-17 DTO-10: the call moves a part, and the threads of the library sleep until then; they
 * carry out the rest
 */
static void post_rdma_write__long_and_no_further_call__carried_out(void **state)
{
	struct rig *rig = *state;
	struct dt_buf from, to;

	dt_buf_create(&rig->ia, rig->ia.pz, &from, LONG, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &to, LONG, DAT_MEM_PRIV_ALL_FLAG);
	post_read(&rig->a, dt_seg(&from, 0, 1), dt_rseg(&to, 0, 1), 1, 0);
	expect_sent(&rig->a, 1, 1);
	dt_fill(from.p, LONG, RIG_SEED);
	memset(to.p, RIG_FILL, LONG);
	from.p[LONG - 1] = RIG_FILL ^ 1;
	/* also until a peer that maps on first use has mapped the target */
	quiet_await(ASLEEP_US);
	post_write(&rig->a, dt_seg(&from, 0, LONG), dt_rseg(&to, 0, LONG), 1, 0);
	dt_until(dto_is_written, to.p + LONG - 1);
	expect_sent(&rig->a, 1, LONG);
	assert_memory_equal(to.p, from.p, LONG);
	dt_buf_free(&from);
	dt_buf_free(&to);
}

/* DTO-121: source and target in one buffer */
static void post_rdma__within_one_buffer__moves_data(void **state)
{
	struct rig *rig = *state;

	post_write(&rig->a, dt_seg(&rig->x, 0, 10000), dt_rseg(&rig->x, 20000, 10000), 1, 0);
	expect_sent(&rig->a, 1, 10000);
	assert_memory_equal(rig->x.p + 20000, rig->x.p, 10000);
	dt_fill(rig->x.p, RIG_LEN, RIG_SEED);
	post_read(&rig->a, dt_seg(&rig->x, 40000, 10000), dt_rseg(&rig->x, 0, 10000), 2, 0);
	expect_sent(&rig->a, 2, 10000);
	assert_memory_equal(rig->x.p + 40000, rig->x.p, 10000);
}

/* DTO-121: of an overlap only the bytes in it are undefined */
static void post_rdma__overlapping__bytes_outside_are_right(void **state)
{
	struct rig *rig = *state;
	unsigned char before[RIG_LEN];

	if (DT_TSAN) /* one thread reads the overlap while another one writes it */
		skip();
	memcpy(before, rig->x.p, RIG_LEN);
	/* source [0, 10000), target [6000, 16000): undefined are [6000, 10000) and its copy */
	post_write(&rig->a, dt_seg(&rig->x, 0, 10000), dt_rseg(&rig->x, 6000, 10000), 1, 0);
	expect_sent(&rig->a, 1, 10000);
	assert_memory_equal(rig->x.p, before, 6000);
	assert_memory_equal(rig->x.p + 16000, before + 16000, RIG_LEN - 16000);
	dt_fill(rig->x.p, RIG_LEN, RIG_SEED);
	post_read(&rig->a, dt_seg(&rig->x, 0, 10000), dt_rseg(&rig->x, 6000, 10000), 2, 0);
	expect_sent(&rig->a, 2, 10000);
	assert_memory_equal(rig->x.p + 10000, before + 10000, RIG_LEN - 10000);
	dt_fill(rig->x.p, RIG_LEN, RIG_SEED);
	/* onto itself */
	post_write(&rig->a, dt_seg(&rig->x, 0, 10000), dt_rseg(&rig->x, 0, 10000), 3, 0);
	expect_sent(&rig->a, 3, 10000);
	assert_memory_equal(rig->x.p + 10000, before + 10000, RIG_LEN - 10000);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post_rdma_write__several_segments__placed_in_order),
		rig_test(post_rdma_write__done__no_event_at_peer),
		rig_test(post_rdma_write__zero_length__completes_unchecked),
		rig_test(post_rdma_write__any_cookie__comes_back),
		rig_test(post_rdma_write__arrays_overwritten__no_effect),
		rig_test(post_rdma_write__done__arrays_and_buffer_unchanged),
		rig_test(post_rdma_write__completed__data_are_there),
		rig_test(ia_query__optimal_alignment__divides_256),
		rig_test(post_rdma_write__no_further_call__carried_out),
		rig_test(post_rdma_write__long_and_no_further_call__carried_out),
		rig_test(post_rdma__within_one_buffer__moves_data),
		rig_test(post_rdma__overlapping__bytes_outside_are_right),
	};

	quiet_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
