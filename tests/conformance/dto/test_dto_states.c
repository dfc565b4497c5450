// SPDX-License-Identifier: BSD-2-Clause
/*
 * The endpoint states in which each kind of DTO can be posted, where more than the code of the call
 * matters. test_ep_state_matrix.c has every state.
 */
#include "dto_util.h"

/* EP-SEND-18 EP-RECV-18 EP-RDMAR-21 EP-RDMAW-29 EP-STATE-65 */
static void post__connected__accepted(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 5);
	for (int kind = 0; kind < DTO_KINDS; kind++)
		dt_ok(dto_post_byte(rig, kind, (uint64_t)kind, 0));
	expect_sent(&rig->a, DTO_SEND, 1);
	expect_sent(&rig->a, DTO_READ, 1);
	expect_sent(&rig->a, DTO_WRITE, 1);
	dt_no_event(rig->a.recv);
}

/*
 * EP-SEND-20 EP-RDMAR-23 EP-RDMAW-31 EP-RECV-18 EP-RECV-19 EP-STATE-65: a Receive still takes data
 */
static void post__disconnect_pending__only_receives(void **state)
{
	struct rig *rig = *state;

	post_send(&rig->a, dt_seg(&rig->x, 8, 1), 1, 0); /* waits for a Receive */
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	assert_int_equal(dt_ep_state(rig->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	for (int kind = 0; kind < DTO_KINDS; kind++)
		if (kind != DTO_RECV)
			dt_fails_with(dto_post_byte(rig, kind, 0xBAD, 0), DAT_INVALID_STATE,
				      DAT_INVALID_STATE_EP_DISCPENDING);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), 2);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), 3);
	post_send(&rig->b, dt_seg(&rig->y, 0, 8), 4, 0);
	expect_received(&rig->a, 2, 8);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 5);
	expect_received(&rig->b, 5, 1);
	expect_sent(&rig->a, 1, 1);
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_recv_flushed(&rig->a, 3);
	dt_no_event(rig->a.request);
}

/* EP-SEND-19 EP-RECV-18 EP-RECV-20 EP-RDMAR-22 EP-RDMAW-30 DTO-53 DTO-71 EP-STATE-77 */
static void post__disconnected__flushed_at_once(void **state)
{
	struct rig *rig = *state;
	const DAT_COMPLETION_FLAGS flags[] = {DAT_COMPLETION_DEFAULT_FLAG,
					      DAT_COMPLETION_SUPPRESS_FLAG};

	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	for (int kind = 0; kind < DTO_KINDS; kind++) {
		for (size_t i = 0; i < COUNT_OF(flags); i++) {
			const DAT_EVD_HANDLE evd = dto_evd(&rig->a, kind);
			const DAT_DTO_COMPLETION_EVENT_DATA *dto;
			DAT_EVENT event;

			if (kind == DTO_RECV && flags[i])
				continue;
			dt_ok(dto_post_byte(rig, kind, 77, flags[i]));
			dt_ok(dat_evd_dequeue(evd, &event));
			dto = &event.event_data.dto_completion_event_data;
			assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
			assert_int_equal(dto->status, DAT_DTO_ERR_FLUSHED);
			assert_true(dto->user_cookie.as_64 == 77);
			assert_ptr_equal(dto->ep_handle, rig->a.ep);
			expect_quiet(&rig->a);
		}
	}
	assert_int_equal(dt_ep_state(rig->a.ep), DAT_EP_STATE_DISCONNECTED);
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
}

/* DTO-72 */
static void post__disconnected_with_bad_parameters__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET outside = dt_seg(&rig->x, RIG_LEN - 7, 8);
	DAT_LMR_TRIPLET dead = {.lmr_context = 0, .virtual_address = 1, .segment_length = 1};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	for (int kind = 0; kind < DTO_KINDS; kind++) {
		dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1, NULL,
			    &remote, 0);
		dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), -1,
			    &outside, &remote, 0);
		dto_refused(rig, kind, DT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 1,
			    &outside, &remote, 0);
		dto_refused(rig, kind, dto_bad_privilege(kind), 1, &dead, &remote, 0);
		dto_refused(rig, kind, dto_bad_flags(kind), 0, NULL, &remote,
			    DAT_COMPLETION_UNSIGNALLED_FLAG);
	}
	dto_refused(rig, DTO_READ, DT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), 0, NULL, &remote, 0);
}

/* EP-RECV-31 EP-RECV-19 DTO-112 EP-STATE-68 */
static void post_recv__full_queue_before_connecting__all_used(void **state)
{
	struct rig *rig = *state;
	const DAT_COUNT n = rig->attr_b.max_recv_dtos;

	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	for (DAT_COUNT i = 0; i < n; i++)
		post_recv(&rig->b, dt_seg(&rig->y, 16 * (size_t)i, 16), (uint64_t)i);
	dt_no_event(rig->b.recv);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	dt_no_event(rig->b.recv);
	for (DAT_COUNT i = 0; i < n; i++) {
		post_send(&rig->a, dt_seg(&rig->x, 16 * (size_t)i, 16), (uint64_t)i, 0);
		expect_received(&rig->b, (uint64_t)i, 16);
		expect_sent(&rig->a, (uint64_t)i, 16);
	}
	assert_memory_equal(rig->y.p, rig->x.p, 16 * (size_t)n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post__connected__accepted),
		rig_test(post__disconnect_pending__only_receives),
		rig_test(post__disconnected__flushed_at_once),
		rig_test(post__disconnected_with_bad_parameters__refused),
		rig_test_bare(post_recv__full_queue_before_connecting__all_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
