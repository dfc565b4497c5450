// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_post_recv: how a message fills the buffer of a Receive, and how the Receive completes.
 * Refusals are in test_dto_refused.c, states in test_dto_states.c, flags in test_dto_flags.c.
 */
#include "dto_util.h"

/* EP-RECV-01 EP-RECV-03 EP-RECV-05 EP-RECV-15 DTO-78 */
static void post_recv__segments__filled_in_order(void **state)
{
	struct rig *rig = *state;
	/* the first is filled, the second partly, the third and fourth not at all */
	static const size_t sizes[] = {0, 1, 9, 10, 11, 29, 30, 31, 59, 60, 100};
	DAT_LMR_TRIPLET into[4] = {dt_seg(&rig->y, 500, 10), dt_seg(&rig->y, 100, 20),
				   dt_seg(&rig->y, 300, 30), dt_seg(&rig->y, 200, 40)};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		const size_t len = sizes[i];
		size_t at = 0;

		memset(rig->y.p, RIG_FILL, 1000);
		dt_ok(dat_ep_post_recv(rig->b.ep, 4, into, dt_cookie(i), 0));
		post_send(&rig->a, dt_seg(&rig->x, 0, len), i, 0);
		expect_received(&rig->b, i, len);
		expect_sent(&rig->a, i, len);
		for (int s = 0; s < 4; s++) {
			const size_t off = into[s].virtual_address - (uintptr_t)rig->y.p;
			const size_t all = into[s].segment_length;
			const size_t part = len - at < all ? len - at : all;

			assert_memory_equal(rig->y.p + off, rig->x.p + at, part);
			dt_check_bytes(rig->y.p + off + part, 100 - part, RIG_FILL);
			at += part;
		}
		dt_check_bytes(rig->y.p, 100, RIG_FILL);
	}
}

/*
 * EP-RECV-13 EP-RECV-14 EP-RECV-19: a Receive completes only when a message arrives, then on the
 * recv EVD
 */
static void post_recv__no_message__stays_posted(void **state)
{
	struct rig *rig = *state;
	DAT_BOOLEAN idle;

	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	dt_stays_empty(rig->b.recv);
	dt_ok(dat_ep_get_status(rig->b.ep, NULL, &idle, NULL));
	assert_int_equal(idle, DAT_FALSE);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0);
	expect_received(&rig->b, 1, 8);
	dt_no_event(rig->b.request);
	dt_ok(dat_ep_get_status(rig->b.ep, NULL, &idle, NULL));
	assert_int_equal(idle, DAT_TRUE);
}

/* DTO-09: after its completion the buffer of a Receive does not change and may be freed */
static void post_recv__completion_taken__buffer_is_free(void **state)
{
	struct rig *rig = *state;
	struct dt_buf own;

	for (unsigned i = 0; i < 50; i++) {
		dt_buf_create(&rig->ia, rig->ia.pz, &own, 9000, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
		post_recv(&rig->b, dt_seg(&own, 0, 9000), i);
		post_send(&rig->a, dt_seg(&rig->x, 0, 9000), i, 0);
		expect_received(&rig->b, i, 9000);
		dt_check_pattern(own.p, 9000, RIG_SEED);
		memset(own.p, 0x11, 9000);
		expect_sent(&rig->a, i, 9000);
		dt_check_bytes(own.p, 9000, 0x11);
		dt_buf_free(&own);
	}
}

/* Sends a message that is longer than its Receive, on new endpoints. */
static void check_too_long(struct rig *rig, size_t buffer, size_t message)
{
	DAT_LMR_TRIPLET into[2] = {dt_seg(&rig->y, 1000, buffer / 2),
				   dt_seg(&rig->y, 1000 + buffer / 2, buffer - buffer / 2)};

	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	memset(rig->y.p, RIG_FILL, RIG_LEN);
	dt_ok(dat_ep_post_recv(rig->b.ep, buffer ? 2 : 0, into, dt_cookie(1), 0));
	post_recv(&rig->b, dt_seg(&rig->y, 40000, 10000), 2);
	post_send(&rig->a, dt_seg(&rig->x, 0, message), 3, 0);
	dt_expect_dto(rig->b.recv, rig->b.ep, 1, DAT_DTO_ERR_LOCAL_LENGTH, DT_ANY_LEN);
	expect_recv_flushed(&rig->b, 2);
	expect_request(&rig->a, 3, DAT_DTO_ERR_REMOTE_RESPONDER);
	expect_broken(rig);
	dt_check_bytes(rig->y.p, 1000, RIG_FILL);
	dt_check_bytes(rig->y.p + 1000 + buffer, RIG_LEN - 1000 - buffer, RIG_FILL);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

/*
 * EP-RECV-16 DTO-54 DTO-59 DTO-65 DTO-66 DTO-77 DTO-79 DTO-80 CONN-EVT-36 CONN-EVT-40 CONN-EVT-50
 */
static void post_recv__message_too_long__length_error_breaks(void **state)
{
	struct rig *rig = *state;

	check_too_long(rig, 100, 101);
	check_too_long(rig, 0, 1);
	check_too_long(rig, 1, 2);
	check_too_long(rig, 64, 4096);
	check_too_long(rig, 4096, 4097);
	check_too_long(rig, 20000, 20001);
	check_too_long(rig, 10, 60000);
	check_too_long(rig, 0, 60000);
}

/* DTO-79 DTO-104: the message arrives before the Receive is posted */
static void post_recv__too_short_for_waiting_message__length_error_breaks(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {101, 5000, 60000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
		dt_ep_link(&rig->ia, &rig->a, &rig->b);
		post_send(&rig->a, dt_seg(&rig->x, 0, sizes[i]), 3, 0);
		dt_stays_empty(rig->a.request);
		post_recv(&rig->b, dt_seg(&rig->y, 1000, 100), 1);
		dt_expect_dto(rig->b.recv, rig->b.ep, 1, DAT_DTO_ERR_LOCAL_LENGTH, DT_ANY_LEN);
		expect_request(&rig->a, 3, DAT_DTO_ERR_REMOTE_RESPONDER);
		expect_broken(rig);
		dt_check_bytes(rig->y.p, 1000, RIG_FILL);
		dt_check_bytes(rig->y.p + 1100, RIG_LEN - 1100, RIG_FILL);
	}
}

/* DTO-82: the sender's limit counts, not the receiver's */
static void post_recv__message_above_own_limit__received(void **state)
{
	struct rig *rig = *state;

	rig->attr_b.max_message_size = 100;
	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 5000), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 60000), 2);
	post_send(&rig->a, dt_seg(&rig->x, 0, 5000), 3, 0);
	post_send(&rig->a, dt_seg(&rig->x, 0, 60000), 4, 0);
	expect_received(&rig->b, 1, 5000);
	expect_received(&rig->b, 2, 60000);
	assert_memory_equal(rig->y.p, rig->x.p, 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(post_recv__segments__filled_in_order),
		rig_test(post_recv__no_message__stays_posted),
		rig_test(post_recv__completion_taken__buffer_is_free),
		rig_test_bare(post_recv__message_too_long__length_error_breaks),
		rig_test_bare(post_recv__too_short_for_waiting_message__length_error_breaks),
		rig_test_bare(post_recv__message_above_own_limit__received),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
