// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bind among the other requests of its endpoint: order, fences, flags and notification. The
 * requests behind a bind go to memory of this process through the connection, so that they can use
 * the context that the bind in front of them makes.
 */
#include "bind_util.h"

#define ROUNDS 100

/* --- order --- */

/* RMR-BIND-02 EP-STATUS-03: a Read and a Send in front that cannot complete */
static void rmr_bind__requests_outstanding__returns_at_once(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_BOOLEAN idle = DAT_FALSE;

	dt_ok(dat_ep_get_status(rig->b.ep, NULL, NULL, &idle));
	assert_int_equal(idle, DAT_TRUE);
	hold_queue(rig);
	post_read(&rig->b, dt_seg(&rig->y, 0, 30000), dt_rseg(&rig->x, 0, 30000), 1, 0);
	(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, 2, 0);
	dt_stays_empty(rig->b.request);
	release_queue(rig);
	expect_sent(&rig->b, 1, 30000);
	expect_bind(&rig->b, rmr, 2, DAT_DTO_SUCCESS);
	dt_ok(dat_ep_get_status(rig->b.ep, NULL, NULL, &idle));
	assert_int_equal(idle, DAT_TRUE);
}

/* RMR-BIND-52 DTO-37 EP-CREATE-11: All four kinds, first blocked, then released. */
static void rmr_bind__among_other_requests__events_in_posting_order(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const uint64_t n = (uint64_t)rig->attr_b.max_request_dtos - 1;

	for (unsigned round = 0; round < 20; round++) {
		if (round % 2)
			hold_queue(rig);
		for (uint64_t i = 0; i < n; i++) {
			if (i % 4 == 0)
				(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE,
						i, 0);
			else if (i % 4 == 1)
				post_read(&rig->b, dt_seg(&rig->y, 20000, 300 * i),
					  dt_rseg(&rig->x, 0, 300 * i), i, 0);
			else if (i % 4 == 2)
				post_write(&rig->b, dt_seg(&rig->y, 0, 300 * i),
					   dt_rseg(&rig->x, 0, 300 * i), i, 0);
			else
				unbind_post(&rig->b, rmr, i);
		}
		if (round % 2)
			release_queue(rig);
		for (uint64_t i = 0; i < n; i++) {
			if (i % 4 == 0 || i % 4 == 3)
				expect_bind(&rig->b, rmr, i, DAT_DTO_SUCCESS);
			else
				expect_sent(&rig->b, i, 300 * i);
		}
		expect_quiet(&rig->b);
	}
}

/* RMR-BIND-12 RMR-BIND-13 DTO-44: The next Send carries the context, which is used at once. */
static void rmr_bind__context_sent_behind_it__good_at_the_peer(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_RMR_CONTEXT context;

	for (unsigned round = 0; round < ROUNDS; round++) {
		post_recv(&rig->a, dt_seg(&rig->x, 60000, sizeof(context)), 1);
		context = bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 512), BIND_REMOTE, 2,
				    round % 2 ? DAT_COMPLETION_SUPPRESS_FLAG : 0);
		memcpy(rig->y.p + 60000, &context, sizeof(context));
		post_send(&rig->b, dt_seg(&rig->y, 60000, sizeof(context)), 3, 0);
		expect_received(&rig->a, 1, sizeof(context));
		context = 0;
		memcpy(&context, rig->x.p + 60000, sizeof(context));
		peer_writes(rig, y_seg(rig, context, 0, 512));
		if (round % 2 == 0)
			expect_bind(&rig->b, rmr, 2, DAT_DTO_SUCCESS);
		expect_sent(&rig->b, 3, sizeof(context));
	}
	expect_quiet(&rig->b);
}

/* RMR-BIND-12 DTO-44: Reads, Writes and binds behind a bind, through what that bind makes */
static void rmr_bind__used_by_the_next_requests__they_start_behind_it(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	static const size_t sizes[] = {8, 512, 20000};

	for (unsigned round = 0; round < ROUNDS; round++) {
		const size_t len = sizes[round % COUNT_OF(sizes)];
		const bool is_held = round % 5 == 0;
		DAT_RMR_CONTEXT first, second;

		dt_fill(rig->y.p, len, round);
		memset(rig->y.p + 40000, 0, len);
		if (is_held)
			hold_queue(rig);
		dt_fill(rig->y.p, len, round);
		first = bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, len), BIND_REMOTE, 1, 0);
		post_read(&rig->b, dt_seg(&rig->y, 40000, len), y_seg(rig, first, 0, len), 2,
			  DAT_COMPLETION_DEFAULT_FLAG);
		second = bind_post(&rig->b, rmr, dt_seg(&rig->y, 20000, len), BIND_REMOTE, 3,
				   DAT_COMPLETION_BARRIER_FENCE_FLAG);
		post_write(&rig->b, dt_seg(&rig->y, 40000, len), y_seg(rig, second, 20000, len), 4,
			   DAT_COMPLETION_BARRIER_FENCE_FLAG);
		if (is_held)
			release_queue(rig);
		expect_bind(&rig->b, rmr, 1, DAT_DTO_SUCCESS);
		expect_sent(&rig->b, 2, len);
		expect_bind(&rig->b, rmr, 3, DAT_DTO_SUCCESS);
		expect_sent(&rig->b, 4, len);
		dt_check_pattern(rig->y.p + 20000, len, round);
		assert_int_equal(rmr_query(rmr).rmr_context, second);
	}
}

/* RMR-BIND-46: Reads through the old context, and a fenced bind that takes it away behind them */
static void rmr_bind__fenced_behind_reads__they_still_read(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const size_t len = 6000;
	DAT_RMR_CONTEXT context = bind_now(&rig->b, rmr, dt_seg(&rig->x, 0, RIG_LEN), BIND_REMOTE);

	for (unsigned round = 0; round < ROUNDS; round++) {
		DAT_RMR_TRIPLET from = dt_rseg(&rig->x, 0, len);

		memset(rig->y.p, 0, RIG_LEN);
		from.rmr_context = context;
		for (uint64_t i = 0; i < 8; i++)
			post_read(&rig->b, dt_seg(&rig->y, i * len, len), from, i, 0);
		context = bind_post(&rig->b, rmr, dt_seg(&rig->x, 0, RIG_LEN), BIND_REMOTE, 8,
				    DAT_COMPLETION_BARRIER_FENCE_FLAG);
		for (uint64_t i = 0; i < 8; i++) {
			expect_sent(&rig->b, i, len);
			assert_memory_equal(rig->y.p + i * len, rig->x.p, len);
		}
		expect_bind(&rig->b, rmr, 8, DAT_DTO_SUCCESS);
	}
	expect_quiet(&rig->b);
}

/* DTO-32 RMR-BIND-46: with nothing to wait for */
static void rmr_bind__fenced_without_reads__completes(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);

	for (uint64_t i = 0; i < 20; i++) {
		(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, i,
				DAT_COMPLETION_BARRIER_FENCE_FLAG);
		expect_bind(&rig->b, rmr, i, DAT_DTO_SUCCESS);
	}
}

/* --- events and notification --- */

/* RMR-BIND-42 DTO-13 */
static void rmr_bind__suppressed__no_event(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 0, 64), nothing = {.segment_length = 0};
	DAT_RMR_CONTEXT context = 0;

	for (int i = 0; i < 5; i++)
		context = bind_post(&rig->b, rmr, range, BIND_REMOTE, 1,
				    DAT_COMPLETION_SUPPRESS_FLAG);
	dt_stays_empty(rig->b.request);
	(void)bind_now(&rig->b, rmr_create(rig), range, BIND_REMOTE); /* all before it are done */
	rmr_check_bound(rmr, &range, BIND_REMOTE, context);
	peer_check(rig, y_seg(rig, context, 0, 64), true, true);
	dt_ok(dat_rmr_bind(rmr, &nothing, 0, rig->b.ep, rmr_cookie(1), DAT_COMPLETION_SUPPRESS_FLAG,
			   NULL));
	dt_stays_empty(rig->b.request);
	rmr_check_unbound(rmr);
}

/* A thread waits for the event of a bind that is posted now. */
static void waiter_joins(struct dto_waiter *waiter, DAT_RMR_HANDLE rmr, uint64_t cookie,
			 DAT_DTO_COMPLETION_STATUS status)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	dt_ok(waiter->ret);
	bind_check_event(&waiter->event, rmr, cookie, status);
}

/* RMR-BIND-41 */
static void rmr_bind__default_flags__waiter_wakes(void **state)
{
	struct rig *rig = *state;
	const DAT_RMR_HANDLE rmr = rmr_create(rig);
	struct dto_waiter waiter;

	assert_int_equal(DAT_COMPLETION_DEFAULT_FLAG, 0);
	for (uint64_t i = 0; i < 10; i++) {
		dto_waiter_start(&waiter, rig->b.request, 1);
		if (i % 2)
			unbind_post(&rig->b, rmr, i);
		else
			(void)bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_REMOTE, i,
					DAT_COMPLETION_DEFAULT_FLAG);
		waiter_joins(&waiter, rmr, i, DAT_DTO_SUCCESS);
	}
}

static void link_unsignalled(struct rig *rig)
{
	rig->attr_b.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_link(rig);
}

/* RMR-BIND-44: with the waiter asleep; it is woken by what is signalled, and finds both */
static void rmr_bind__unsignalled__waiter_sleeps(void **state)
{
	struct rig *rig = *state;
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 0, 64);
	struct dto_waiter waiter;
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	link_unsignalled(rig);
	rmr = rmr_create(rig);
	(void)bind_post(&rig->b, rmr, range, BIND_REMOTE, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	const DAT_EVENT event = dt_event_poll(rig->b.request); /* it is still queued */

	bind_check_event(&event, rmr, 1, DAT_DTO_SUCCESS);
	dto_waiter_start(&waiter, rig->b.request, 1);
	context = bind_post(&rig->b, rmr, range, BIND_REMOTE, 2, DAT_COMPLETION_UNSIGNALLED_FLAG);
	peer_check(rig, y_seg(rig, context, 0, 64), true, true);
	dto_waiter_sleeps(&waiter);
	(void)bind_post(&rig->b, rmr, range, BIND_REMOTE, 3, DAT_COMPLETION_DEFAULT_FLAG);
	waiter_joins(&waiter, rmr, 2, DAT_DTO_SUCCESS);
	expect_bind(&rig->b, rmr, 3, DAT_DTO_SUCCESS);
}

static bool cno_fires(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout_us, DAT_EVD_HANDLE evd)
{
	DAT_EVD_HANDLE fired = DAT_HANDLE_NULL;
	const DAT_RETURN ret = dat_cno_wait(cno, timeout_us, &fired);

	if (ret == DAT_QUEUE_EMPTY)
		return false;
	dt_ok(ret);
	assert_ptr_equal(fired, evd);
	return true;
}

/* RMR-BIND-41 RMR-BIND-44: An EVD with a CNO. */
static void rmr_bind__cno_behind_the_evd__fires_for_signalled_ones(void **state)
{
	struct rig *rig = *state;
	const DAT_LMR_TRIPLET range = dt_seg(&rig->y, 0, 64);
	DAT_CNO_HANDLE cno;
	DAT_RMR_HANDLE rmr;

	link_unsignalled(rig);
	rmr = rmr_create(rig);
	dt_ok(dat_cno_create(rig->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(rig->b.request, cno));
	(void)bind_post(&rig->b, rmr, range, BIND_REMOTE, 1, DAT_COMPLETION_UNSIGNALLED_FLAG);
	assert_false(cno_fires(cno, DT_QUIET_US, rig->b.request));
	(void)bind_post(&rig->b, rmr, range, BIND_REMOTE, 2, DAT_COMPLETION_DEFAULT_FLAG);
	assert_true(cno_fires(cno, DT_WAIT_US, rig->b.request));
	expect_bind(&rig->b, rmr, 1, DAT_DTO_SUCCESS);
	expect_bind(&rig->b, rmr, 2, DAT_DTO_SUCCESS);
}

/* --- one EVD for everything --- */

/* COMPAT-08 EP-CREATE-11: requests, connections, messages and binds of two endpoints */
static void evd__one_for_everything_with_binds__serves_all(void **state)
{
	const DAT_EVD_FLAGS all = DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG |
				  DAT_EVD_RMR_BIND_FLAG;
	struct rig *rig = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&rig->ia, 64, all);
	unsigned binds = 0, messages = 0, established = 0, which;
	uint64_t next[2] = {0xB, 0xC};
	const DAT_RMR_HANDLE rmr[2] = {rmr_create(rig), rmr_create(rig)};
	struct dt_ep *const eps[2] = {&rig->a, &rig->b};
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	for (int i = 0; i < 2; i++) {
		*eps[i] = (struct dt_ep){.recv = evd, .request = evd, .conn = evd};
		dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, evd, evd, evd, NULL, &eps[i]->ep));
		post_recv(eps[i], dt_seg(&rig->y, 100 + 8 * (size_t)i, 8), 1);
	}
	dt_ok(dat_psp_create_any(rig->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_connect(&rig->ia, rig->a.ep, qual);
	while (binds < 6 || messages < 4) {
		const DAT_EVENT event = dt_event(evd);

		switch (event.event_number) {
		case DAT_CONNECTION_REQUEST_EVENT:
			dt_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					    rig->b.ep, 0, NULL));
			break;
		case DAT_CONNECTION_EVENT_ESTABLISHED:
			if (++established < 2)
				break;
			for (int i = 0; i < 6; i++)
				(void)bind_post(eps[i % 2], rmr[i % 2], dt_seg(&rig->y, 0, 8),
						BIND_REMOTE, 0xB + (uint64_t)i, 0);
			for (int i = 0; i < 2; i++)
				post_send(eps[i], dt_seg(&rig->x, 0, 8), 2, 0);
			break;
		case DAT_RMR_BIND_COMPLETION_EVENT:
			which = event.event_data.rmr_completion_event_data.rmr_handle == rmr[1];
			bind_check_event(&event, rmr[which], next[which], DAT_DTO_SUCCESS);
			next[which] += 2;
			binds++;
			break;
		default:
			assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
			assert_int_equal(event.event_data.dto_completion_event_data.status,
					 DAT_DTO_SUCCESS);
			messages++;
		}
	}
	dt_stays_empty(evd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(rmr_bind__requests_outstanding__returns_at_once),
		rig_test(rmr_bind__among_other_requests__events_in_posting_order),
		rig_test(rmr_bind__context_sent_behind_it__good_at_the_peer),
		rig_test(rmr_bind__used_by_the_next_requests__they_start_behind_it),
		rig_test(rmr_bind__fenced_behind_reads__they_still_read),
		rig_test(rmr_bind__fenced_without_reads__completes),
		rig_test(rmr_bind__suppressed__no_event),
		rig_test(rmr_bind__default_flags__waiter_wakes),
		rig_test_bare(rmr_bind__unsignalled__waiter_sleeps),
		rig_test_bare(rmr_bind__cno_behind_the_evd__fires_for_signalled_ones),
		rig_test_bare(evd__one_for_everything_with_binds__serves_all),
	};

	return cmocka_run_group_tests_name("bind order", tests, NULL, NULL);
}
