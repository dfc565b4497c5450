// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rules about what is used before it is complete, and those of portability: each misuse is
 * reported, once and with the right object, and its correct twin is silent.
 */
#include "rules_util.h"

/* ---- windows ---- */

/* CHECK-RULE-27 */
static void rmr_early(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_RMR_CONTEXT key;

	/* after a Send of the same endpoint, and after the completion over another one */
	key = bind_post(&rig->a, rmr, dt_seg(&rig->x, 64, 64), BIND_LOCAL | BIND_REMOTE, 1, FLAG);
	memcpy(rig->x.p + 4, &key, sizeof(key));
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 2);
	POST_SEND(rig, 8, 3);
	expect_received(&rig->b, 2, 8);
	expect_bind(&rig->a, rmr, 1, DAT_DTO_SUCCESS);
	expect_sent(&rig->a, 3, 8);
	key = bind_now(&rig->b, rmr, dt_seg(&rig->y, 64, 64), BIND_LOCAL | BIND_REMOTE);
	memcpy(rig->x.p + 4, &key, sizeof(key));
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 4);
	POST_SEND(rig, 8, 5);
	expect_received(&rig->b, 4, 8);
	expect_sent(&rig->a, 5, 8);
	expect_silence();

	key = bind_post(&rig->b, rmr, dt_seg(&rig->y, 64, 64), BIND_LOCAL | BIND_REMOTE, 6, FLAG);
	key = __builtin_bswap32(key);
	memcpy(rig->x.p + 3, &key, sizeof(key));
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 7);
	POST_SEND(rig, 8, 8);
	assert_ptr_equal(reports.handles[0], rmr);
	expect_report("rmr-early", "posted to another endpoint");
	expect_received(&rig->b, 7, 8);
	expect_sent(&rig->a, 8, 8);
	expect_bind(&rig->b, rmr, 6, DAT_DTO_SUCCESS);
	dt_ok(dat_rmr_free(rmr));
}

/* CHECK-RULE-04: a bind uses its region. */
static void lmr_freed_before_bind(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr = rmr_create(rig);

	bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_LOCAL);
	unbind_now(&rig->b, rmr);
	expect_silence();
	bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_LOCAL, 1, FLAG);
	dt_fails(dat_lmr_free(rig->y.lmr), DAT_INVALID_STATE);
	expect_report("bad-state", "was made by dat_lmr_create");
	expect_bind(&rig->b, rmr, 1, DAT_DTO_SUCCESS);
	dt_ok(dat_rmr_free(rmr));
}

/* ---- suppressed completions ---- */

/* CHECK-RULE-28: the buffer changes before a later completion. */
static void suppressed_changed(void **state)
{
	struct rig *rig = *state;

	for (unsigned change = 0; change < 2; change++) {
		expect_silence();
		POST_WRITE(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 0, 64), 1,
			   DAT_COMPLETION_SUPPRESS_FLAG);
		rig->x.p[9] ^= (unsigned char)change;
		post_write(&rig->a, dt_seg(&rig->x, 64, 8), dt_rseg(&rig->y, 64, 8), 2, FLAG);
		expect_sent(&rig->a, 2, 8);
	}
	assert_ptr_equal(reports.handles[0], rig->a.ep);
	expect_report("suppressed-used", "64 bytes");
}

/* CHECK-RULE-28: the region is freed before a later completion. */
static void suppressed_freed(void **state)
{
	struct rig *rig = *state;
	struct dt_buf done, used;

	dt_buf_create(&rig->ia, rig->ia.pz, &done, 4096, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &used, 4096, DAT_MEM_PRIV_ALL_FLAG);
	post_write(&rig->a, dt_seg(&done, 0, 64), dt_rseg(&rig->y, 0, 64), 1,
		   DAT_COMPLETION_SUPPRESS_FLAG);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), 2, FLAG);
	expect_sent(&rig->a, 2, 8);
	dt_buf_free(&done);
	expect_silence();
	post_write(&rig->a, dt_seg(&used, 0, 64), dt_rseg(&rig->y, 0, 64), 3,
		   DAT_COMPLETION_SUPPRESS_FLAG);
	dt_ok(dat_lmr_free(used.lmr));
	assert_ptr_equal(reports.handles[0], used.lmr);
	expect_report("suppressed-used", "gives no event");
	dt_mem_free(used.p, used.mapped);
}

/* CHECK-RULE-28: the window is freed before a later completion. */
static void suppressed_bind(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE done = rmr_create(rig), used = rmr_create(rig);

	bind_post(&rig->b, done, dt_seg(&rig->y, 0, 64), BIND_LOCAL, 1,
		  DAT_COMPLETION_SUPPRESS_FLAG);
	post_write(&rig->b, dt_seg(&rig->y, 0, 8), dt_rseg(&rig->x, 0, 8), 2, FLAG);
	expect_sent(&rig->b, 2, 8);
	dt_ok(dat_rmr_free(done));
	expect_silence();
	bind_post(&rig->b, used, dt_seg(&rig->y, 0, 64), BIND_LOCAL, 3,
		  DAT_COMPLETION_SUPPRESS_FLAG);
	(void)dat_rmr_free(used);
	assert_ptr_equal(reports.handles[0], used);
	expect_report("suppressed-used", "gives no event");
}

/* ---- RDMA Reads ---- */

/* CHECK-RULE-22: an RDMA Write to what an RDMA Read reads. */
static void write_to_what_is_read(void **state)
{
	struct rig *rig = *state;

	post_read(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 0, 64), 1, FLAG);
	POST_WRITE(&rig->a, dt_seg(&rig->x, 128, 64), dt_rseg(&rig->y, 0, 64), 2,
		   DAT_COMPLETION_BARRIER_FENCE_FLAG);
	POST_WRITE(&rig->a, dt_seg(&rig->x, 128, 64), dt_rseg(&rig->y, 64, 64), 3, FLAG);
	expect_silence();
	POST_WRITE(&rig->a, dt_seg(&rig->x, 128, 64), dt_rseg(&rig->y, 63, 64), 4, FLAG);
	assert_ptr_equal(reports.handles[0], rig->a.ep);
	expect_report("write-after-read", "reads bytes that it writes");
	for (uint64_t cookie = 1; cookie <= 4; cookie++)
		expect_sent(&rig->a, cookie, 64);
}

/* CHECK-RULE-01: what an RDMA Read fills before it is sent was not changed by the program. */
static void send_of_what_is_read(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < 20; i++) { /* the Read ends before or after the post behind it */
		memset(rig->x.p, 0, 64);
		memset(rig->y.p, 1, 64);
		post_send(&rig->a, dt_seg(&rig->x, 64, 8), 1, FLAG);
		post_read(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 0, 64), 2, FLAG);
		post_write(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 64, 64), 3,
			   DAT_COMPLETION_BARRIER_FENCE_FLAG);
		post_recv(&rig->b, dt_seg(&rig->y, 256, 8), 4);
		expect_received(&rig->b, 4, 8);
		expect_sent(&rig->a, 1, 8);
		expect_sent(&rig->a, 2, 64);
		expect_sent(&rig->a, 3, 64);
		dt_check_bytes(rig->y.p + 64, 64, 1);
	}
	assert_int_equal(count_reports("send-changed", ""), 0);
}

/* ---- portability ---- */

/* CHECK-RULE-29 */
static void zero_length(void **state)
{
	struct rig *rig = *state;
	DAT_REGION_DESCRIPTION region = {.for_va = rig->x.p};
	DAT_RMR_CONTEXT rmr_key;
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR address;
	DAT_VLEN length;

	dt_ok(dat_lmr_create(rig->ia.ia, DAT_MEM_TYPE_VIRTUAL, region, 1, rig->ia.pz,
			     DAT_MEM_PRIV_ALL_FLAG, &lmr, &key, &rmr_key, &length, &address));
	dt_ok(dat_lmr_free(lmr));
	expect_silence();
	dt_fails(dat_lmr_create(rig->ia.ia, DAT_MEM_TYPE_VIRTUAL, region, 0, rig->ia.pz,
				DAT_MEM_PRIV_ALL_FLAG, &lmr, &key, &rmr_key, &length, &address),
		 DAT_INVALID_PARAMETER);
	expect_report("zero-length", "0 bytes");
}

/* CHECK-RULE-26: a shared receive queue. */
static void recv_none_srq(void **state)
{
	struct rig *rig = *state;
	DAT_SRQ_HANDLE srq = srq_make(&rig->ia, 4, 1);
	struct dt_ep a = rig->a, b;
	DAT_EP_ATTR attr;

	srq_ep_attr(&rig->ia, &attr);
	srq_ep_make(&rig->ia, rig->ia.pz, srq, &attr, &b);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &a);
	dt_ep_link(&rig->ia, &a, &b);
	reports.has_recv_none = true;
	dt_ok(srq_post(srq, dt_seg(&rig->y, 0, 8), 1));
	dt_ok(srq_post(srq, dt_seg(&rig->y, 8, 8), 2));
	for (uint64_t cookie = 1; cookie <= 3; cookie++) {
		post_send(&a, dt_seg(&rig->x, 0, 8), cookie, FLAG);
		expect_received(&b, cookie, 8);
		expect_sent(&a, cookie, 8);
		if (cookie == 1) /* there is another one */
			dt_ok(srq_post(srq, dt_seg(&rig->y, 16, 8), 3));
	}
	expect_silence();
	dt_ok(srq_post(srq, dt_seg(&rig->y, 0, 8), 4));
	assert_ptr_equal(reports.handles[0], srq);
	expect_report("recv-none", "had no Receive for ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		check_test(rmr_early),
		check_test(lmr_freed_before_bind),
		check_test(suppressed_changed),
		check_test(suppressed_freed),
		check_test(suppressed_bind),
		check_test(write_to_what_is_read),
		check_test(send_of_what_is_read),
		check_test_bare(zero_length),
		check_test_bare(recv_none_srq),
	};

	check_rules_on();
	return cmocka_run_group_tests_name("check order", tests, NULL, NULL);
}
