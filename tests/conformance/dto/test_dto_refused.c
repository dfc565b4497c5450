// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a post of each of the four kinds refuses for its parameters, with which code, and that a
 * refusal has no effect. Each test tries all kinds that its rule applies to; the last IDs of a row
 * of four are those of Send, Receive, RDMA Read and RDMA Write. Local memory is in
 * test_dto_segments.c, full queues are in test_dto_resources.c.
 */
#include <sys/mman.h>

#include "refused.h"

#define MAX_IOV 4

static const DAT_COUNT iov_limit = MAX_IOV;

static void use_iov_limit(struct rig *rig)
{
	DAT_EP_ATTR *attr = &rig->attr_a;

	attr->max_request_iov = attr->max_recv_iov = MAX_IOV;
	attr->max_rdma_read_iov = attr->max_rdma_write_iov = MAX_IOV;
}

/* --- parameters --- */

/* EP-SEND-05 EP-RECV-06 EP-RDMAR-08 EP-RDMAW-09 DTO-08 */
static void post__segments_without_array__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1, NULL,
			    &remote, 0);
		dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, NULL,
			    &remote, 0);
	}
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-RDMAR-08 EP-RDMAW-09 */
static void post_rdma__no_remote_triplet__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);

	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 1, &seg, NULL,
		    0);
	dto_refused(rig, DTO_WRITE, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 1, &seg,
		    NULL, 0);
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 0, NULL, NULL,
		    0);
	dto_refused(rig, DTO_WRITE, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 0, NULL,
		    NULL, 0);
	rig_works(rig);
}

/* EP-SEND-06 EP-SEND-07 EP-RECV-07 EP-RDMAR-09 EP-RDMAW-10 */
static void post__segment_count_out_of_range__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	static const DAT_COUNT counts[] = {-1, INT32_MIN, MAX_IOV + 1, 1000};
	DAT_LMR_TRIPLET iov[1000];
	const DAT_RMR_TRIPLET remote = target(rig, RIG_LEN);

	assert_true(rig->ia.attr.max_iov_segments_per_dto >= iov_limit);
	use_iov_limit(rig);
	rig_link(rig);
	for (size_t i = 0; i < COUNT_OF(iov); i++)
		iov[i] = dt_seg(&rig->x, i, 1);
	for (int kind = 0; kind < DTO_KINDS; kind++)
		for (size_t i = 0; i < COUNT_OF(counts); i++)
			dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
				    counts[i], iov, &remote, 0);
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-SEND-08 EP-RECV-01 EP-RDMAR-01 EP-RDMAW-02 */
static void post__segment_count_at_limit__moves_all_segments(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[MAX_IOV];
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 4096, 3 * MAX_IOV);

	use_iov_limit(rig);
	rig->attr_b.max_recv_iov = MAX_IOV;
	rig_link(rig);
	for (size_t i = 0; i < MAX_IOV; i++)
		iov[i] = dt_seg(&rig->y, 16 * i, 3);
	dt_ok(dat_ep_post_recv(rig->b.ep, MAX_IOV, iov, dt_cookie(1), 0));
	for (size_t i = 0; i < MAX_IOV; i++)
		iov[i] = dt_seg(&rig->x, 16 * i, 3);
	dt_ok(dto_post(DTO_SEND, rig->a.ep, MAX_IOV, iov, 2, NULL, 0));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, MAX_IOV, iov, 3, &remote, 0));
	expect_sent(&rig->a, 2, 3 * MAX_IOV);
	expect_sent(&rig->a, 3, 3 * MAX_IOV);
	expect_received(&rig->b, 1, 3 * MAX_IOV);
	for (size_t i = 0; i < MAX_IOV; i++) {
		assert_memory_equal(rig->y.p + 16 * i, rig->x.p + 16 * i, 3);
		assert_memory_equal(rig->y.p + 4096 + 3 * i, rig->x.p + 16 * i, 3);
		iov[i] = dt_seg(&rig->x, 8192 + 16 * i, 3);
	}
	dt_ok(dto_post(DTO_READ, rig->a.ep, MAX_IOV, iov, 4, &remote, 0));
	expect_sent(&rig->a, 4, 3 * MAX_IOV);
	for (size_t i = 0; i < MAX_IOV; i++)
		assert_memory_equal(rig->x.p + 8192 + 16 * i, rig->x.p + 16 * i, 3);
}

static DAT_COUNT at_most(DAT_COUNT wanted, DAT_COUNT limit)
{
	return wanted < limit ? wanted : limit;
}

/* A different limit for each kind of request, as far as the adapter allows. */
static void use_three_limits(struct rig *rig)
{
	DAT_EP_ATTR *attr = &rig->attr_a;

	attr->max_request_iov = 2;
	attr->max_rdma_read_iov = at_most(3, rig->ia.attr.max_iov_segments_per_rdma_read);
	attr->max_rdma_write_iov = at_most(8, rig->ia.attr.max_iov_segments_per_rdma_write);
	rig_link(rig);
}

/* EP-SEND-07 EP-RDMAR-09 EP-RDMAW-10: each kind of request has the limit of its own attribute */
static void post__limits_differ__each_kind_by_its_own(void **state)
{
	struct rig *rig = *state;
	const DAT_EP_ATTR *attr = &rig->attr_a;
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 4096, 100);
	DAT_LMR_TRIPLET iov[9];
	DAT_COUNT writes;

	use_three_limits(rig);
	writes = attr->max_rdma_write_iov;
	for (size_t i = 0; i < COUNT_OF(iov); i++)
		iov[i] = dt_seg(&rig->x, 16 * i, 3);
	dto_refused(rig, DTO_SEND, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), 3, iov, NULL,
		    0);
	dto_refused(rig, DTO_WRITE, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), writes + 1,
		    iov, &remote, 0);
	remote.segment_length = 3;
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
		    attr->max_rdma_read_iov + 1, iov, &remote, 0);
	check_y_unchanged(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 100), 1);
	remote.segment_length = 100;
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 2, iov, 2, NULL, 0));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, writes, iov, 3, &remote, 0));
	expect_sent(&rig->a, 2, 6);
	expect_sent(&rig->a, 3, 3 * (DAT_VLEN)writes);
	expect_received(&rig->b, 1, 6);
	for (DAT_COUNT i = 0; i < writes; i++)
		assert_memory_equal(rig->y.p + 4096 + 3 * i, rig->x.p + 16 * i, 3);
	assert_memory_equal(rig->y.p, rig->y.p + 4096, 6);
	dt_check_bytes(rig->y.p + 6, 94, RIG_FILL);
	dt_check_bytes(rig->y.p + 4096 + 3 * writes, 100, RIG_FILL);
}

/* EP-SEND-09 DTO-81 */
static void post_send__above_max_message_size__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 500), dt_seg(&rig->x, 500, 501)};

	rig->attr_a.max_message_size = 1000;
	rig_link(rig);
	dto_refused(rig, DTO_SEND, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2, iov, NULL,
		    0);
	iov[0].segment_length = 1001;
	dto_refused(rig, DTO_SEND, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1, iov, NULL,
		    0);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 2000), 1);
	iov[0].segment_length = 499;
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 2, iov, 2, NULL, 0));
	expect_sent(&rig->a, 2, 1000);
	expect_received(&rig->b, 1, 1000);
}

/*
 * EP-RDMAR-10 EP-RDMAW-11: max_rdma_size of the endpoint is what the consumer expects, not a limit
 */
static void post_rdma__above_max_rdma_size_of_the_endpoint__carried_out(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 1000), dt_seg(&rig->x, 1000, 1)};
	DAT_LMR_TRIPLET whole = dt_seg(&rig->x, 0, 20000);
	DAT_RMR_TRIPLET remote = target(rig, 1001);

	rig->attr_a.max_rdma_size = rig->attr_b.max_rdma_size = 1000;
	rig_link(rig);
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 2, iov, 1, &remote, 0));
	expect_sent(&rig->a, 1, 1001);
	dt_check_pattern(rig->y.p, 1001, RIG_SEED);
	dt_check_bytes(rig->y.p + 1001, 1, RIG_FILL);
	remote.segment_length = 20000;
	for (uint64_t i = 0; i < 2; i++) { /* the second Write finds the region cached */
		memset(rig->y.p, RIG_FILL, RIG_LEN);
		dt_ok(dto_post(DTO_WRITE, rig->a.ep, 1, &whole, 2, &remote, 0));
		expect_sent(&rig->a, 2, 20000);
		dt_check_pattern(rig->y.p, 20000, RIG_SEED);
	}
	dt_fill(rig->y.p, 20000, 9);
	dt_ok(dto_post(DTO_READ, rig->a.ep, 1, &whole, 3, &remote, 0));
	expect_sent(&rig->a, 3, 20000);
	dt_check_pattern(rig->x.p, 20000, 9);
	expect_quiet(&rig->a);
}

/* EP-RDMAR-10 EP-RDMAW-11 DTO-81: the limit is that of the adapter */
static void post_rdma__above_max_rdma_size_of_the_adapter__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	const size_t len = rig->ia.attr.max_rdma_size + 1;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	struct dt_buf huge;
	void *p;

	if (dt_is_verbs() || DT_SLOW)
		skip(); /* a device would pin it, and sanitizers would add shadow memory */
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	rig_link(rig);
	dt_lmr_create(&rig->ia, rig->ia.pz, p, len, DAT_MEM_PRIV_ALL_FLAG, &huge);
	seg = dt_seg(&huge, 0, len);
	remote = dt_rseg(&huge, 0, len);
	assert_int_equal(dto_post(DTO_READ, rig->a.ep, 1, &seg, 1, &remote, 0),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
	assert_int_equal(dto_post(DTO_WRITE, rig->a.ep, 1, &seg, 1, &remote, 0),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 1, &seg,
		    &remote, 0);
	dto_refused(rig, DTO_WRITE, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1, &seg,
		    &remote, 0);
	rig_works(rig);
	dt_ok(dat_lmr_free(huge.lmr));
	munmap(p, len);
}

/* EP-SEND-26 EP-RECV-24 EP-RDMAR-27 EP-RDMAW-28 */
static void post__threshold_or_undefined_flag__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	static const unsigned bad[] = {0x10, 0x11, 0x20, 0x40, 0x80, 0x100, 0x4000, 0x80000000u};
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	for (int kind = 0; kind < DTO_KINDS; kind++)
		for (size_t i = 0; i < COUNT_OF(bad); i++)
			dto_refused(rig, kind, dto_bad_flags(kind), 1, &seg, &remote,
				    (DAT_COMPLETION_FLAGS)bad[i]);
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-SEND-24 EP-RECV-21 EP-RDMAR-25 EP-RDMAW-25 */
static void post__unsignalled_on_plain_endpoint__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		dto_refused(rig, kind, dto_bad_flags(kind), 1, &seg, &remote,
			    DAT_COMPLETION_UNSIGNALLED_FLAG);
		dto_refused(rig, kind, dto_bad_flags(kind), 1, &seg, &remote,
			    DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SUPPRESS_FLAG);
	}
	check_y_unchanged(rig);
	rig_works(rig);
}

/* EP-RECV-21 EP-SEND-24: the attribute of the queue itself counts, not that of the other queue */
static void post__unsignalled_on_the_other_queue__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	rig->attr_a.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig->attr_b.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_link(rig);
	dto_refused(rig, DTO_RECV, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 1, &seg,
		    &remote, DAT_COMPLETION_UNSIGNALLED_FLAG);
	dt_fails_with(
		dto_post(DTO_SEND, rig->b.ep, 1, &seg, 1, NULL, DAT_COMPLETION_UNSIGNALLED_FLAG),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	rig_works(rig);
}

/*
 * EP-RECV-22 EP-RECV-23 EP-RECV-24 EP-SEND-26 EP-RDMAR-27 EP-RDMAW-28: UNSIGNALLED allows no other
 * flag
 */
static void post__bad_flag_on_unsignalled_endpoint__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	static const unsigned bad[] = {0x01, 0x02, 0x08, 0x10, 0x20, 0x80000000u};
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	rig->attr_a.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig->attr_a.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_link(rig);
	for (int kind = 0; kind < DTO_KINDS; kind++)
		for (size_t i = kind == DTO_RECV ? 0 : 3; i < COUNT_OF(bad); i++) {
			dto_refused(rig, kind, dto_bad_flags(kind), 1, &seg, &remote,
				    (DAT_COMPLETION_FLAGS)bad[i]);
			dto_refused(rig, kind, dto_bad_flags(kind), 1, &seg, &remote,
				    (DAT_COMPLETION_FLAGS)(bad[i] | 0x04));
		}
	rig_works(rig);
}

/* EP-RDMAR-04 EP-RDMAW-35 LMR-USE-08 */
static void post_rdma__destination_too_small__length_error(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 100), dt_seg(&rig->x, 100, 100)};
	DAT_RMR_TRIPLET remote = target(rig, 201);

	dto_refused(rig, DTO_READ, DT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), 2, iov, &remote, 0);
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), 0, NULL, &remote, 0);
	remote.segment_length = 199;
	dto_refused(rig, DTO_WRITE, DT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), 2, iov, &remote, 0);
	remote.segment_length = 0;
	dto_refused(rig, DTO_WRITE, DT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), 1, iov, &remote, 0);
	dt_stays_empty(rig->b.conn);
	check_y_unchanged(rig);
	rig_works(rig);
}

/* --- handles --- */

/* EP-SEND-33 EP-RECV-33 EP-RDMAR-38 EP-RDMAW-34 */
static void post__not_an_endpoint__invalid_handle(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);
	struct dt_ep gone;

	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &gone);
	dt_ok(dat_ep_free(gone.ep));
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, rig->ia.pz, rig->a.request,
				  rig->x.lmr,	   gone.ep,    rig->ia.ia};

	for (int kind = 0; kind < DTO_KINDS; kind++)
		for (size_t i = 0; i < COUNT_OF(bad); i++)
			dt_fails_with(dto_post(kind, bad[i], 1, &seg, 1, &remote, 0),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	check_y_unchanged(rig);
	expect_quiet(&rig->a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post__segments_without_array__invalid_parameter),
		rig_test(post_rdma__no_remote_triplet__invalid_parameter),
		rig_test_bare(post__segment_count_out_of_range__invalid_parameter),
		rig_test_bare(post__segment_count_at_limit__moves_all_segments),
		rig_test_bare(post__limits_differ__each_kind_by_its_own),
		rig_test_bare(post_send__above_max_message_size__invalid_parameter),
		rig_test_bare(post_rdma__above_max_rdma_size_of_the_endpoint__carried_out),
		rig_test_bare(post_rdma__above_max_rdma_size_of_the_adapter__invalid_parameter),
		rig_test(post__threshold_or_undefined_flag__invalid_parameter),
		rig_test(post__unsignalled_on_plain_endpoint__invalid_parameter),
		rig_test_bare(post__unsignalled_on_the_other_queue__invalid_parameter),
		rig_test_bare(post__bad_flag_on_unsignalled_endpoint__invalid_parameter),
		rig_test(post_rdma__destination_too_small__length_error),
		rig_test(post__not_an_endpoint__invalid_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
