// SPDX-License-Identifier: BSD-2-Clause
/* The operations of <dat/opendat.h>, and what their completions tell. */
#include "dto_util.h"

#include <dat/opendat.h>

#define IMMEDIATE 0x11223344u

/* A completion of that EVD, as the library has filled it in. */
static void take(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_COUNT more;

	dt_ok(dat_evd_wait(evd, DT_WAIT_US, 1, event, &more));
	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
}

/* The next completion is a success with these data. */
static void expect_op(DAT_EVD_HANDLE evd, uint64_t cookie, DAT_OPENDAT_OP operation, uint32_t value,
		      DAT_VLEN length)
{
	DAT_OPENDAT_DTO_DATA data = {.size = sizeof(data)};
	DAT_DTO_COMPLETION_EVENT_DATA *done;
	DAT_EVENT event;

	take(evd, &event);
	done = &event.event_data.dto_completion_event_data;
	assert_int_equal(done->user_cookie.as_64, cookie);
	assert_int_equal(done->status, DAT_DTO_SUCCESS);
	assert_int_equal(done->transfered_length, length);
	dt_ok(dat_opendat_dto_data(&event, &data));
	assert_int_equal(data.operation, operation);
	assert_int_equal(data.value, value);
}

static void link_taking_immediate(struct rig *rig)
{
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	dt_ok(dat_opendat_ep_take_immediate(rig->a.ep));
	dt_ok(dat_opendat_ep_take_immediate(rig->b.ep));
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
}

/* EP-EXTRA-01 EP-EXTRA-02 EP-EXTRA-08 EP-EXTRA-09 */
static void write_immed__peer_takes_it__value_in_its_event(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 64);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 64);

	if (dt_is_verbs() && dt_is_iwarp())
		skip();
	link_taking_immediate(rig);
	for (uint64_t i = 0; i < 3; i++)
		dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(i), 0));
	dt_ok(dat_opendat_ep_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(10), &remote,
						   IMMEDIATE, 0));
	dt_ok(dat_opendat_ep_post_rdma_write_immed(rig->a.ep, 0, NULL, dt_cookie(11), &remote, 0,
						   0));
	post_send(&rig->a, dt_seg(&rig->x, 0, 0), 12, 0);
	expect_op(rig->b.recv, 0, DAT_OPENDAT_OP_RECEIVE_IMMED, IMMEDIATE, 64);
	expect_op(rig->b.recv, 1, DAT_OPENDAT_OP_RECEIVE_IMMED, 0, 0);
	expect_op(rig->b.recv, 2, DAT_OPENDAT_OP_RECEIVE, 0, 0);
	assert_memory_equal(rig->y.p, rig->x.p, 64);
	expect_op(rig->a.request, 10, DAT_OPENDAT_OP_RDMA_WRITE_IMMED, 0, 64);
	expect_op(rig->a.request, 11, DAT_OPENDAT_OP_RDMA_WRITE_IMMED, 0, 0);
	expect_op(rig->a.request, 12, DAT_OPENDAT_OP_SEND, 0, 0);
}

/* EP-EXTRA-03 */
static void write_immed__peer_does_not_take_it__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	rig_link(rig);
	dt_fails_with(dat_opendat_ep_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(1),
							   &remote, 1, 0),
		      DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	rig_works(rig);
}

/* EP-EXTRA-04 */
static void take_immediate__connected_or_no_endpoint__refused(void **state)
{
	struct rig *rig = *state;

	rig_link(rig);
	dt_fails_with(dat_opendat_ep_take_immediate(rig->a.ep), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_CONNECTED);
	dt_fails_with(dat_opendat_ep_take_immediate(rig->a.recv), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_opendat_ep_take_immediate(DAT_HANDLE_NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
}

/* EP-EXTRA-05 EP-EXTRA-06 EP-EXTRA-08 */
static void atomics__region_with_the_privilege__done(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote;
	struct dt_buf target;
	uint64_t *counter;

	if (dt_is_verbs())
		skip();
	dt_buf_create(&rig->ia, rig->ia.pz, &target, 64,
		      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC);
	counter = (uint64_t *)target.p;
	*counter = 40;
	remote = dt_rseg(&target, 0, 8);
	rig_link(rig);
	dt_ok(dat_opendat_ep_post_fetch_and_add(rig->a.ep, 2, &seg, dt_cookie(1), &remote, 0));
	expect_op(rig->a.request, 1, DAT_OPENDAT_OP_FETCH_AND_ADD, 0, 8);
	assert_int_equal(*counter, 42);
	assert_int_equal(*(uint64_t *)rig->x.p, 40);
	dt_ok(dat_opendat_ep_post_cmp_and_swap(rig->a.ep, 41, 7, &seg, dt_cookie(2), &remote, 0));
	expect_op(rig->a.request, 2, DAT_OPENDAT_OP_CMP_AND_SWAP, 0, 8);
	assert_int_equal(*counter, 42);
	dt_ok(dat_opendat_ep_post_cmp_and_swap(rig->a.ep, 42, 7, &seg, dt_cookie(3), &remote, 0));
	expect_op(rig->a.request, 3, DAT_OPENDAT_OP_CMP_AND_SWAP, 0, 8);
	assert_int_equal(*counter, 7);
	assert_int_equal(*(uint64_t *)rig->x.p, 42);
	dt_buf_free(&target);
}

/* EP-EXTRA-05: all privileges of DAT 1.2 do not permit it */
static void fetch_and_add__region_without_the_privilege__connection_breaks(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	DAT_EVENT event;

	if (dt_is_verbs())
		skip();
	rig_link(rig);
	dt_ok(dat_opendat_ep_post_fetch_and_add(rig->a.ep, 2, &seg, dt_cookie(1), &remote, 0));
	take(rig->a.request, &event);
	assert_int_equal(event.event_data.dto_completion_event_data.status,
			 DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
	dt_check_bytes(rig->y.p, 8, RIG_FILL);
}

/* EP-EXTRA-07 EP-EXTRA-08 EP-EXTRA-09 */
static void send_invalidate__context_of_a_region__dead_at_the_receive(void **state)
{
	struct rig *rig = *state;
	struct dt_buf target;

	if (dt_is_verbs() && dt_is_iwarp())
		skip();
	dt_buf_create(&rig->ia, rig->ia.pz, &target, 64, DAT_MEM_PRIV_ALL_FLAG);
	rig_link(rig);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(1), 0));
	dt_ok(dat_opendat_ep_post_send_invalidate(rig->a.ep, 0, NULL, dt_cookie(2), 0,
						  target.rkey));
	expect_op(rig->b.recv, 1, DAT_OPENDAT_OP_RECEIVE_INVALIDATE, target.rkey, 0);
	expect_op(rig->a.request, 2, DAT_OPENDAT_OP_SEND_INVALIDATE, 0, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&target, 0, 8), 3, 0);
	expect_request(&rig->a, 3, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
	dt_buf_free(&target);
}

/* EP-EXTRA-10 */
static void extra_posts__bad_arguments__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8), brief = dt_seg(&rig->x, 0, 4);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8), odd = dt_rseg(&rig->y, 1, 8);
	DAT_DTO_COOKIE cookie = dt_cookie(1);

	if (dt_is_verbs())
		skip();
	link_taking_immediate(rig);
	dt_fails_with(
		dat_opendat_ep_post_rdma_write_immed(rig->a.recv, 1, &seg, cookie, &remote, 1, 0),
		DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_opendat_ep_post_rdma_write_immed(DAT_HANDLE_NULL, 1, &seg, cookie,
							   &remote, 1, 0),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_opendat_ep_post_rdma_write_immed(rig->a.ep, 1, &seg, cookie, &remote, 1,
							   (DAT_COMPLETION_FLAGS)0x100),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	dt_fails_with(dat_opendat_ep_post_fetch_and_add(rig->a.ep, 1, &brief, cookie, &remote, 0),
		      DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	dt_fails_with(dat_opendat_ep_post_fetch_and_add(rig->a.ep, 1, &seg, cookie, &odd, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	dt_fails_with(dat_opendat_ep_post_cmp_and_swap(rig->a.ep, 1, 2, NULL, cookie, &remote, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	dt_fails_with(dat_opendat_ep_post_cmp_and_swap(rig->a.ep, 1, 2, &seg, cookie, &odd, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(dat_opendat_ep_post_send_invalidate(rig->a.ep, -1, &seg, cookie, 0, 1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	expect_quiet(&rig->a);
	rig_works(rig);
}

/* EP-EXTRA-11 */
static void dto_data__bad_arguments__refused(void **state)
{
	DAT_OPENDAT_DTO_DATA data = {.size = sizeof(data)};
	struct rig *rig = *state;
	DAT_EVENT event;

	rig_link(rig);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(1), 0));
	post_send(&rig->a, dt_seg(&rig->x, 0, 0), 2, 0);
	take(rig->b.recv, &event);
	dt_fails_with(dat_opendat_dto_data(NULL, &data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	dt_fails_with(dat_opendat_dto_data(&event, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	data.size--;
	dt_fails_with(dat_opendat_dto_data(&event, &data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	data.size++;
	event.event_number = DAT_SOFTWARE_EVENT;
	dt_fails_with(dat_opendat_dto_data(&event, &data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	event.evd_handle = DAT_HANDLE_NULL;
	dt_fails_with(dat_opendat_dto_data(&event, &data), DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
	expect_sent(&rig->a, 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(write_immed__peer_takes_it__value_in_its_event),
		rig_test_bare(write_immed__peer_does_not_take_it__refused),
		rig_test_bare(take_immediate__connected_or_no_endpoint__refused),
		rig_test_bare(atomics__region_with_the_privilege__done),
		rig_test_bare(fetch_and_add__region_without_the_privilege__connection_breaks),
		rig_test_bare(send_invalidate__context_of_a_region__dead_at_the_receive),
		rig_test_bare(extra_posts__bad_arguments__refused),
		rig_test_bare(dto_data__bad_arguments__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
