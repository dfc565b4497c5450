// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a post of any of the four kinds refuses, with which code, and that a refusal has no effect.
 * Each test goes through all kinds that its rule holds for; the last IDs of a row of four are those
 * of Send, Receive, RDMA Read and RDMA Write.
 */
#include <sys/mman.h>

#include "dto_util.h"

#define MAX_IOV 4

static const DAT_COUNT iov_limit = MAX_IOV;

static void use_iov_limit(struct rig *rig)
{
	DAT_EP_ATTR *attr = &rig->attr_a;

	attr->max_request_iov = attr->max_recv_iov = MAX_IOV;
	attr->max_rdma_read_iov = attr->max_rdma_write_iov = MAX_IOV;
}

/* A valid remote triplet of that length. */
static DAT_RMR_TRIPLET target(struct rig *rig, size_t len)
{
	return dt_rseg(&rig->y, 0, len);
}

static void y_is_untouched(struct rig *rig)
{
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
	dt_check_pattern(rig->x.p, RIG_LEN, RIG_SEED);
	expect_quiet(&rig->b);
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
	y_is_untouched(rig);
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
	y_is_untouched(rig);
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

/* EP-RDMAR-10 EP-RDMAW-11: the endpoint's max_rdma_size is what the consumer expects, no limit */
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
	for (uint64_t i = 0; i < 2; i++) { /* the second Write knows the region of the first */
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

/* EP-RDMAR-10 EP-RDMAW-11 DTO-81: the limit is the adapter's */
static void post_rdma__above_max_rdma_size_of_the_adapter__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	const size_t len = rig->ia.attr.max_rdma_size + 1;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	struct dt_buf huge;
	void *p;

	if (dt_is_verbs() || DT_SLOW)
		skip(); /* a device would pin it, and sanitizers would shadow it */
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
	y_is_untouched(rig);
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
	y_is_untouched(rig);
	rig_works(rig);
}

/* EP-RECV-21 EP-SEND-24: the queue's own attribute counts, not that of the other one */
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

/* EP-RECV-22 EP-RECV-23 EP-RECV-24 */
static void post_recv__flag_of_requests__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	static const DAT_COMPLETION_FLAGS bad[] = {DAT_COMPLETION_SUPPRESS_FLAG,
						   DAT_COMPLETION_BARRIER_FENCE_FLAG,
						   DAT_COMPLETION_SOLICITED_WAIT_FLAG};
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		dto_refused(rig, DTO_RECV, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5), 1,
			    &seg, NULL, bad[i]);
	rig_works(rig);
}

/* EP-RECV-22 EP-RECV-23 EP-RECV-24 EP-SEND-26 EP-RDMAR-27 EP-RDMAW-28: UNSIGNALLED opens no door */
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
	y_is_untouched(rig);
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
	y_is_untouched(rig);
	expect_quiet(&rig->a);
}

/* --- local memory --- */

/* EP-SEND-28 EP-RECV-25 EP-RDMAR-28 EP-RDMAW-33 LMR-USE-01 */
static void post__segment_outside_its_region__invalid_parameter(void **state)
{
	struct rig *rig = *state;
	struct dt_buf part;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 1000, 1000, DAT_MEM_PRIV_ALL_FLAG, &part);
	const DAT_VADDR start = (uintptr_t)part.p;
	const struct {
		DAT_VADDR address;
		DAT_VLEN len;
	} bad[] = {
		{start - 1, 1},
		{start - 1, 10},
		{start + 1000, 1},
		{start + 999, 2},
		{start, 1001},
		{start - 1, 1002},
		{0, 1},
		{UINT64_MAX, 1},
		{start + 10, UINT64_MAX},
		{start, INT64_MAX},
		{start, UINT64_MAX - start + 1},
		{start + 500, UINT64_MAX - 499},
	};
	const DAT_RMR_TRIPLET remote = target(rig, RIG_LEN);

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		for (size_t i = 0; i < COUNT_OF(bad); i++) {
			DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 1), dt_seg(&part, 0, 1)};
			DAT_RMR_TRIPLET small = remote;

			/* an RDMA Read must not be refused for its amount */
			small.segment_length = kind == DTO_READ ? 1 : UINT64_MAX;
			iov[1].virtual_address = bad[i].address;
			iov[1].segment_length = bad[i].len;
			dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 2,
				    iov, &small, 0);
			dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1,
				    iov + 1, &small, 0);
		}
	}
	y_is_untouched(rig);
	rig_works(rig);
}

/* EP-SEND-28 DTO-84: the first and the last byte belong to the region */
static void post__segment_at_the_borders__moves_data(void **state)
{
	struct rig *rig = *state;
	struct dt_buf part;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 1001, 999, DAT_MEM_PRIV_ALL_FLAG, &part);
	DAT_LMR_TRIPLET iov[3] = {dt_seg(&part, 0, 1), dt_seg(&part, 998, 1),
				  dt_seg(&part, 0, 999)};

	post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 1);
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 3, iov, 2, NULL, 0));
	expect_received(&rig->b, 1, 1001);
	expect_sent(&rig->a, 2, 1001);
	assert_memory_equal(rig->y.p, rig->x.p + 1001, 1);
	assert_memory_equal(rig->y.p + 1, rig->x.p + 1999, 1);
	assert_memory_equal(rig->y.p + 2, rig->x.p + 1001, 999);
}

/* EP-SEND-29 EP-RECV-26 EP-RDMAR-29 EP-RDMAW-37 DTO-85 LMR-USE-02 */
static void post__region_of_another_zone__protection_violation(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 16);
	DAT_PZ_HANDLE pz;
	struct dt_buf other;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_lmr_create(&rig->ia, pz, rig->x.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &other);
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 8), dt_seg(&other, 8, 8)};

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		dto_refused(rig, kind, dto_bad_zone(kind), 2, iov, &remote, 0);
		dto_refused(rig, kind, dto_bad_zone(kind), 1, iov + 1, &remote, 0);
	}
	y_is_untouched(rig);
	rig_works(rig);
}

/* EP-RECV-27: a Receive may be posted before the endpoint has a zone */
static void post_recv__endpoint_without_zone__accepted(void **state)
{
	struct rig *rig = *state;
	DAT_EP_PARAM param = {.pz_handle = rig->ia.pz};

	dt_ep_create(&rig->ia, DAT_HANDLE_NULL, &rig->attr_b, &rig->b);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	dt_no_event(rig->b.recv);
	dt_ok(dat_ep_modify(rig->b.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0);
	expect_received(&rig->b, 1, 8);
	assert_memory_equal(rig->y.p, rig->x.p, 8);
}

/* EP-SEND-30 EP-RECV-28 EP-RDMAR-30 EP-RDMAW-39 DTO-95 LMR-FREE-06 */
static void post__dead_context__privileges_violation(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 16);
	struct dt_buf gone;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &gone);
	dt_ok(dat_lmr_free(gone.lmr));
	const DAT_LMR_CONTEXT bad[] = {gone.lkey, 0, UINT32_MAX, 0x7fffffff,
				       rig->x.lkey ^ 0x80000000};

	for (int kind = 0; kind < DTO_KINDS; kind++) {
		for (size_t i = 0; i < COUNT_OF(bad); i++) {
			DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 8), dt_seg(&rig->x, 8, 8)};

			if (bad[i] == rig->x.lkey || bad[i] == rig->y.lkey)
				continue;
			iov[1].lmr_context = bad[i];
			dto_refused(rig, kind, dto_bad_privilege(kind), 2, iov, &remote, 0);
			dto_refused(rig, kind, dto_bad_privilege(kind), 1, iov + 1, &remote, 0);
		}
	}
	y_is_untouched(rig);
	rig_works(rig);
}

/* EP-SEND-31 EP-RECV-29 EP-RDMAR-31 EP-RDMAW-40 DTO-86 DTO-87 LMR-USE-04 LMR-USE-05 */
static void post__privilege_missing__privileges_violation(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_TRIPLET remote = target(rig, 16);
	struct dt_buf no_read, no_write, none;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096,
		      DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &no_read);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096,
		      DAT_MEM_PRIV_ALL_FLAG & ~DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &no_write);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096, DAT_MEM_PRIV_NONE_FLAG, &none);
	for (int kind = 0; kind < DTO_KINDS; kind++) {
		DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 8),
					  dt_seg(dto_is_source(kind) ? &no_read : &no_write, 8, 8)};
		DAT_LMR_TRIPLET without = dt_seg(&none, 8, 8);

		dto_refused(rig, kind, dto_bad_privilege(kind), 2, iov, &remote, 0);
		dto_refused(rig, kind, dto_bad_privilege(kind), 1, iov + 1, &remote, 0);
		dto_refused(rig, kind, dto_bad_privilege(kind), 1, &without, &remote, 0);
	}
	y_is_untouched(rig);
	rig_works(rig);
}

/* EP-RDMAR-32 EP-RECV-29 DTO-86 DTO-87: no more than the one local privilege is asked for */
static void post__only_the_needed_privilege__moves_data(void **state)
{
	struct rig *rig = *state;
	struct dt_buf read_only, write_only;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, 4096, DAT_MEM_PRIV_LOCAL_READ_FLAG,
		      &read_only);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p + 8192, 4096, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		      &write_only);
	post_recv(&rig->a, dt_seg(&write_only, 0, 50), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 50), 2);
	post_send(&rig->b, dt_seg(&rig->y, 1000, 50), 3, 0);
	post_send(&rig->a, dt_seg(&read_only, 0, 50), 4, 0);
	post_write(&rig->a, dt_seg(&read_only, 50, 50), dt_rseg(&rig->y, 50, 50), 5, 0);
	post_read(&rig->a, dt_seg(&write_only, 50, 50), dt_rseg(&rig->y, 50, 50), 6, 0);
	expect_received(&rig->a, 1, 50);
	expect_received(&rig->b, 2, 50);
	for (uint64_t cookie = 4; cookie <= 6; cookie++)
		expect_sent(&rig->a, cookie, 50);
	dt_check_bytes(rig->x.p + 8192, 50, RIG_FILL);
	assert_memory_equal(rig->y.p, rig->x.p, 100);
	assert_memory_equal(rig->x.p + 8192 + 50, rig->x.p + 50, 50);
	assert_int_equal(rig->ia.provider.rdma_write_for_rdma_read_req, DAT_FALSE);
}

/* --- empty segments --- */

/* EP-SEND-04 EP-RECV-04 EP-RDMAR-06 EP-RDMAW-07 LMR-USE-09 */
static void post__empty_segments_of_garbage__ignored(void **state)
{
	struct rig *rig = *state;
	const DAT_LMR_TRIPLET garbage = {.lmr_context = 0xdeadbeef,
					 .pad = 0xffffffff,
					 .virtual_address = 0xdeadbeefdeadbeef,
					 .segment_length = 0};
	DAT_LMR_TRIPLET from[4] = {garbage, dt_seg(&rig->x, 0, 10), garbage,
				   dt_seg(&rig->x, 10, 5)};
	DAT_LMR_TRIPLET into[4] = {dt_seg(&rig->y, 0, 7), garbage, dt_seg(&rig->y, 7, 8), garbage};
	DAT_LMR_TRIPLET back[4] = {garbage, garbage, dt_seg(&rig->x, 1000, 15), garbage};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 100, 15);

	dt_ok(dto_post(DTO_RECV, rig->b.ep, 4, into, 1, NULL, 0));
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 4, from, 2, NULL, 0));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 4, from, 3, &remote, 0));
	dt_ok(dto_post(DTO_READ, rig->a.ep, 4, back, 4, &remote, 0));
	expect_received(&rig->b, 1, 15);
	for (uint64_t cookie = 2; cookie <= 4; cookie++)
		expect_sent(&rig->a, cookie, 15);
	assert_memory_equal(rig->y.p, rig->x.p, 15);
	assert_memory_equal(rig->y.p + 100, rig->x.p, 15);
	assert_memory_equal(rig->x.p + 1000, rig->x.p, 15);
	dt_check_bytes(rig->y.p + 15, 85, RIG_FILL);
}

/* EP-RDMAW-05: what is behind the array is not looked at (nor with the other kinds) */
static void post__garbage_behind_the_array__ignored(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 10)};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 10);

	memset(&iov[1], 0xff, sizeof(iov[1]));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 1, iov, 1, &remote, 0));
	expect_sent(&rig->a, 1, 10);
	assert_memory_equal(rig->y.p, rig->x.p, 10);
	dt_check_bytes(rig->y.p + 10, RIG_LEN - 10, RIG_FILL);
}

/* --- resources --- */

#define SLOTS 5 /* not a power of two, which a queue could round up to */

static void use_slots(struct rig *rig)
{
	rig->attr_a.max_request_dtos = rig->attr_a.max_recv_dtos = SLOTS;
	rig_link(rig);
}

/* Fills the queue while refused posts of all sorts come between; then it is full. */
static void fill_queue(struct rig *rig, enum dto_kind kind)
{
	DAT_LMR_TRIPLET outside = dt_seg(&rig->x, RIG_LEN, 1);
	DAT_LMR_TRIPLET dead = {.lmr_context = 0, .virtual_address = 1, .segment_length = 1};
	const DAT_RMR_TRIPLET remote = target(rig, 1);
	uint64_t cookie = 0;

	if (kind != DTO_RECV) /* waits for a Receive, and all completions behind it wait */
		dt_ok(dto_post_byte(rig, DTO_SEND, cookie++, 0));
	while (cookie < SLOTS) {
		for (int i = 0; i < 3; i++) {
			dt_fails_with(dto_post(kind, rig->a.ep, 1, &outside, 0xBAD, &remote, 0),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
			dt_returns(dto_post(kind, rig->a.ep, 1, &dead, 0xBAD, &remote, 0),
				   dto_bad_privilege(kind));
			dt_fails_with(dto_post(kind, rig->a.ep, -1, &dead, 0xBAD, &remote, 0),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		}
		dt_ok(dto_post_byte(rig, kind, cookie++, 0));
	}
	for (int i = 0; i < 3; i++)
		dt_fails_with(dto_post_byte(rig, kind, 0xBAD, 0), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_TEP);
}

static void check_full_queue(struct rig *rig, enum dto_kind kind)
{
	use_slots(rig);
	fill_queue(rig, kind);
	dt_stays_empty(dto_evd(&rig->a, kind));
	for (uint64_t i = 0; i < SLOTS; i++) {
		if (kind == DTO_RECV)
			post_send(&rig->b, dt_seg(&rig->y, 0, 1), i, 0);
		else if (i == 0 || kind == DTO_SEND)
			post_recv(&rig->b, dt_seg(&rig->y, 0, 1), i);
		dt_expect_dto(dto_evd(&rig->a, kind), rig->a.ep, i, DAT_DTO_SUCCESS, 1);
	}
	dt_no_event(dto_evd(&rig->a, kind));
	/* the queue is as large as before */
	fill_queue(rig, kind);
}

/* EP-SEND-32 EP-SEND-34 DTO-06 DTO-111 DTO-113 DTO-114 COMPAT-34 */
static void post_send__queue_full__insufficient_resources(void **state)
{
	check_full_queue(*state, DTO_SEND);
}

/* EP-RECV-30 EP-RECV-34 DTO-06 DTO-112 DTO-113 DTO-114 COMPAT-34 */
static void post_recv__queue_full__insufficient_resources(void **state)
{
	check_full_queue(*state, DTO_RECV);
}

/* EP-RDMAR-35 EP-RDMAR-39 DTO-111 DTO-113 DTO-114 */
static void post_rdma_read__queue_full__insufficient_resources(void **state)
{
	check_full_queue(*state, DTO_READ);
}

/* EP-RDMAW-32 EP-RDMAW-47 DTO-111 DTO-113 DTO-114 */
static void post_rdma_write__queue_full__insufficient_resources(void **state)
{
	check_full_queue(*state, DTO_WRITE);
}

/* EP-SEND-32 EP-RECV-30 EP-RDMAR-35 EP-RDMAW-32 */
static void post__queue_without_evd__insufficient_resources(void **state)
{
	struct rig *rig = *state;
	DAT_EP_ATTR *attr = &rig->attr_a;

	rig->a.conn = dt_evd_create(&rig->ia, 8, DAT_EVD_CONNECTION_FLAG);
	attr->max_recv_dtos = attr->max_request_dtos = 0;
	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, rig->a.conn,
			    attr, &rig->a.ep));
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	dt_fails_with(dto_post_byte(rig, DTO_RECV, 1, 0), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEP);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	for (int kind = 0; kind < DTO_KINDS; kind++)
		dt_fails_with(dto_post_byte(rig, kind, 1, 0), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_TEP);
	assert_int_equal(dt_ep_state(rig->a.ep), DAT_EP_STATE_CONNECTED);
	y_is_untouched(rig);
}

/* DTO-109 */
static void post_rdma_read__no_reads_out__insufficient_resources(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	rig->attr_a.max_rdma_read_out = 0;
	rig_link(rig);
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS), 1,
		    &seg, &remote, 0);
	post_read(&rig->b, dt_seg(&rig->y, 0, 8), dt_rseg(&rig->x, 0, 8), 1, 0);
	expect_sent(&rig->b, 1, 8);
	post_write(&rig->a, seg, remote, 2, 0);
	expect_sent(&rig->a, 2, 8);
}

/* DTO-110 */
static void post_rdma_read__peer_serves_no_reads__insufficient_resources(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	rig->attr_b.max_rdma_read_in = 0;
	rig_link(rig);
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS), 1,
		    &seg, &remote, 0);
	post_read(&rig->b, dt_seg(&rig->y, 0, 8), dt_rseg(&rig->x, 0, 8), 1, 0);
	expect_sent(&rig->b, 1, 8);
	post_write(&rig->a, seg, remote, 2, 0);
	expect_sent(&rig->a, 2, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post__segments_without_array__invalid_parameter),
		rig_test(post_rdma__no_remote_triplet__invalid_parameter),
		rig_test_bare(post__segment_count_out_of_range__invalid_parameter),
		rig_test_bare(post__segment_count_at_limit__moves_all_segments),
		rig_test_bare(post_send__above_max_message_size__invalid_parameter),
		rig_test_bare(post_rdma__above_max_rdma_size_of_the_endpoint__carried_out),
		rig_test_bare(post_rdma__above_max_rdma_size_of_the_adapter__invalid_parameter),
		rig_test(post__threshold_or_undefined_flag__invalid_parameter),
		rig_test(post__unsignalled_on_plain_endpoint__invalid_parameter),
		rig_test_bare(post__unsignalled_on_the_other_queue__invalid_parameter),
		rig_test(post_recv__flag_of_requests__invalid_parameter),
		rig_test_bare(post__bad_flag_on_unsignalled_endpoint__invalid_parameter),
		rig_test(post_rdma__destination_too_small__length_error),
		rig_test(post__not_an_endpoint__invalid_handle),
		rig_test(post__segment_outside_its_region__invalid_parameter),
		rig_test(post__segment_at_the_borders__moves_data),
		rig_test(post__region_of_another_zone__protection_violation),
		rig_test_bare(post_recv__endpoint_without_zone__accepted),
		rig_test(post__dead_context__privileges_violation),
		rig_test(post__privilege_missing__privileges_violation),
		rig_test(post__only_the_needed_privilege__moves_data),
		rig_test(post__empty_segments_of_garbage__ignored),
		rig_test(post__garbage_behind_the_array__ignored),
		rig_test_bare(post_send__queue_full__insufficient_resources),
		rig_test_bare(post_recv__queue_full__insufficient_resources),
		rig_test_bare(post_rdma_read__queue_full__insufficient_resources),
		rig_test_bare(post_rdma_write__queue_full__insufficient_resources),
		rig_test_bare(post__queue_without_evd__insufficient_resources),
		rig_test_bare(post_rdma_read__no_reads_out__insufficient_resources),
		rig_test_bare(post_rdma_read__peer_serves_no_reads__insufficient_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
