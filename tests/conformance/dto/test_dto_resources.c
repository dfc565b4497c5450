// SPDX-License-Identifier: BSD-2-Clause
/* What a post refuses for lack of resources: full queues, missing queues, and RDMA Read limits. */
#include "refused.h"

#define SLOTS 5 /* not a power of two, which a queue could round up to */

static void use_slots(struct rig *rig)
{
	rig->attr_a.max_request_dtos = rig->attr_a.max_recv_dtos = SLOTS;
	rig_link(rig);
}

/* Fills the queue, with refused posts of all sorts in between; then the queue is full. */
static void fill_queue(struct rig *rig, enum dto_kind kind)
{
	DAT_LMR_TRIPLET outside = dt_seg(&rig->x, RIG_LEN, 1);
	DAT_LMR_TRIPLET dead = {.lmr_context = 0, .virtual_address = 1, .segment_length = 1};
	const DAT_RMR_TRIPLET remote = target(rig, 1);
	uint64_t cookie = 0;

	if (kind != DTO_RECV) /* waits for a Receive; all completions after it wait too */
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
	/* the queue has the same size as before */
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
	check_y_unchanged(rig);
}

/* One of the two limits on Reads from a to b is 0: a cannot read, but everything else works. */
static void check_reads_refused(struct rig *rig)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = target(rig, 8);

	rig_link(rig);
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_CREDITS), 1,
		    &seg, &remote, 0);
	post_read(&rig->b, dt_seg(&rig->y, 0, 8), dt_rseg(&rig->x, 0, 8), 1, 0);
	expect_sent(&rig->b, 1, 8);
	post_write(&rig->a, seg, remote, 2, 0);
	expect_sent(&rig->a, 2, 8);
}

/* DTO-109 */
static void post_rdma_read__zero_outgoing_reads__insufficient_resources(void **state)
{
	struct rig *rig = *state;

	rig->attr_a.max_rdma_read_out = 0;
	check_reads_refused(rig);
}

/* DTO-110 */
static void post_rdma_read__peer_serves_no_reads__insufficient_resources(void **state)
{
	struct rig *rig = *state;

	rig->attr_b.max_rdma_read_in = 0;
	check_reads_refused(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(post_send__queue_full__insufficient_resources),
		rig_test_bare(post_recv__queue_full__insufficient_resources),
		rig_test_bare(post_rdma_read__queue_full__insufficient_resources),
		rig_test_bare(post_rdma_write__queue_full__insufficient_resources),
		rig_test_bare(post__queue_without_evd__insufficient_resources),
		rig_test_bare(post_rdma_read__zero_outgoing_reads__insufficient_resources),
		rig_test_bare(post_rdma_read__peer_serves_no_reads__insufficient_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
