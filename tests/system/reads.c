// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads of memory that the library fills, for valgrind and the provider that checks. memcheck must
 * report those in the tests whose names end with "reported", and no other (test_reads.py).
 */
#include "dto_util.h"
#include "srq_util.h"

#define LEN 64u
#define SENT 8u
#define FLAG DAT_COMPLETION_DEFAULT_FLAG
#define TRIES 5 /* an RDMA Read may be over at once; then its target has been written */

/* Branches on a byte, which memcheck reports if nothing was written there. */
__attribute__((noinline)) static void look(const unsigned char *byte)
{
	static volatile unsigned seen;

	if (*(const volatile unsigned char *)byte == RIG_SEED)
		seen++;
}

/* Two messages of 8 bytes, into buffers of 64. */
static void receive_two(struct rig *rig)
{
	post_recv(&rig->b, dt_seg(&rig->y, 0, LEN), 1);
	post_recv(&rig->b, dt_seg(&rig->y, LEN, LEN), 2);
	for (uint64_t cookie = 1; cookie <= 2; cookie++) {
		post_send(&rig->a, dt_seg(&rig->x, 0, SENT), cookie, FLAG);
		expect_received(&rig->b, cookie, SENT);
		expect_sent(&rig->a, cookie, SENT);
	}
}

/* CHECK-READ-01 */
static void recv__before_its_completion__reported(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, LEN), 1);
	look(rig->y.p);
	post_send(&rig->a, dt_seg(&rig->x, 0, LEN), 2, FLAG);
	expect_received(&rig->b, 1, LEN);
	expect_sent(&rig->a, 2, LEN);
}

/* CHECK-READ-01 */
static void recv__after_its_completion__silent(void **state)
{
	struct rig *rig = *state;

	receive_two(rig);
	look(rig->y.p);
	look(rig->y.p + SENT - 1);
	look(rig->y.p + LEN + SENT - 1);
	look(rig->y.p + 2 * LEN); /* behind the buffers */
}

/* CHECK-READ-01: segments of one Receive, one of them empty. */
static void recv__segments__silent(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET segments[] = {dt_seg(&rig->y, 100, 4), dt_seg(&rig->y, 0, 0),
				      dt_seg(&rig->y, 0, 4)};

	dt_ok(dat_ep_post_recv(rig->b.ep, 3, segments, dt_cookie(1), FLAG));
	post_send(&rig->a, dt_seg(&rig->x, 0, 6), 2, FLAG);
	expect_received(&rig->b, 1, 6);
	expect_sent(&rig->a, 2, 6);
	look(rig->y.p + 103);
	look(rig->y.p + 1);
	look(rig->y.p + 4);
}

/* CHECK-READ-02 */
static void recv__behind_the_message__reported(void **state)
{
	struct rig *rig = *state;

	receive_two(rig);
	look(rig->y.p + SENT);
}

/* CHECK-READ-02 */
static void recv__behind_the_message_written_before__silent(void **state)
{
	struct rig *rig = *state;

	receive_two(rig);
	memset(rig->y.p + SENT, 0, LEN - SENT);
	look(rig->y.p + SENT);
	look(rig->y.p + LEN - 1);
}

/* CHECK-READ-03 */
static void rdma_read__before_its_completion__reported(void **state)
{
	struct rig *rig = *state;

	for (uint64_t cookie = 1; cookie <= TRIES; cookie++) {
		post_read(&rig->a, dt_seg(&rig->x, 0, LEN), dt_rseg(&rig->y, 0, LEN), cookie, FLAG);
		look(rig->x.p + LEN - 1);
		expect_sent(&rig->a, cookie, LEN);
	}
}

/* CHECK-READ-03: with an event, and without one before a later completion. */
static void rdma_read__after_its_completion__silent(void **state)
{
	struct rig *rig = *state;

	post_read(&rig->a, dt_seg(&rig->x, LEN, LEN), dt_rseg(&rig->y, 0, LEN), 1,
		  DAT_COMPLETION_SUPPRESS_FLAG);
	post_read(&rig->a, dt_seg(&rig->x, 0, LEN), dt_rseg(&rig->y, 0, LEN), 2, FLAG);
	expect_sent(&rig->a, 2, LEN);
	look(rig->x.p);
	look(rig->x.p + 2 * LEN - 1);
}

/* CHECK-READ-04 */
static void recv__flushed__reported(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, LEN), 1);
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	expect_recv_flushed(&rig->b, 1);
	look(rig->y.p);
}

/* CHECK-READ-04: its memory is used for something else, also before the event is taken. */
static void recv__flushed_and_written__silent(void **state)
{
	struct rig *rig = *state;
	struct dt_buf other;

	dt_buf_create(&rig->ia, rig->ia.pz, &other, LEN, DAT_MEM_PRIV_ALL_FLAG);
	post_recv(&rig->b, dt_seg(&rig->y, 0, LEN), 1);
	post_recv(&rig->b, dt_seg(&other, 0, LEN), 2);
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	dt_ok(dat_lmr_free(other.lmr));
	memset(other.p, 0, LEN);
	expect_recv_flushed(&rig->b, 1);
	expect_recv_flushed(&rig->b, 2);
	memset(rig->y.p, 0, LEN);
	look(rig->y.p);
	look(other.p);
	dt_mem_free(other.p, other.mapped);
}

/* CHECK-READ-05: a refused post leaves the buffer alone. */
static void recv__refused__silent(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET segment = dt_seg(&rig->y, 0, LEN);

	dt_fails(dat_ep_post_recv(rig->b.ep, 1, &segment, dt_cookie(1),
				  DAT_COMPLETION_SOLICITED_WAIT_FLAG),
		 DAT_INVALID_PARAMETER);
	look(rig->y.p);
}

/* An endpoint of an SRQ, with a buffer in it, receives 8 bytes. */
static void receive_by_srq(struct rig *rig, bool is_early)
{
	DAT_SRQ_HANDLE srq = srq_make(&rig->ia, 4, 1);
	struct dt_ep a, b;
	DAT_EP_ATTR attr;

	srq_ep_attr(&rig->ia, &attr);
	srq_ep_make(&rig->ia, rig->ia.pz, srq, &attr, &b);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &a);
	dt_ep_link(&rig->ia, &a, &b);
	dt_ok(srq_post(srq, dt_seg(&rig->y, 0, LEN), 1));
	if (is_early)
		look(rig->y.p);
	post_send(&a, dt_seg(&rig->x, 0, SENT), 2, FLAG);
	expect_received(&b, 1, SENT);
	expect_sent(&a, 2, SENT);
}

/* CHECK-READ-01 */
static void srq__before_its_completion__reported(void **state)
{
	receive_by_srq(*state, true);
}

/* CHECK-READ-01 */
static void srq__after_its_completion__silent(void **state)
{
	struct rig *rig = *state;

	receive_by_srq(rig, false);
	look(rig->y.p + SENT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(recv__before_its_completion__reported),
		rig_test(recv__after_its_completion__silent),
		rig_test(recv__segments__silent),
		rig_test(recv__behind_the_message__reported),
		rig_test(recv__behind_the_message_written_before__silent),
		rig_test(rdma_read__before_its_completion__reported),
		rig_test(rdma_read__after_its_completion__silent),
		rig_test(recv__flushed__reported),
		rig_test(recv__flushed_and_written__silent),
		rig_test(recv__refused__silent),
		rig_test_bare(srq__before_its_completion__reported),
		rig_test_bare(srq__after_its_completion__silent),
	};

	return cmocka_run_group_tests_name("reads", tests, NULL, NULL);
}
