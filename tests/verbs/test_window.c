// SPDX-License-Identifier: BSD-2-Clause
/*
 * RMRs by memory windows of the device: which binds use one, what is left when a work request or a
 * call of theirs fails, and that nothing of it is seen by the consumer.
 */
#include "rig.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HALF (RIG_LEN / 2)
#define BIND_REMOTE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

static struct rig rig;
static DAT_RMR_HANDLE rmr;

static int setup(void **state)
{
	(void)state;
	rig.qual = 0;
	rig_begin(&rig);
	assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* Of that RMR, on b. */
static DAT_RETURN bind_seg(DAT_RMR_HANDLE handle, DAT_LMR_TRIPLET seg, uint64_t cookie,
			   DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	return core_rmr_bind(handle, &seg, BIND_REMOTE, rig.b.ep, (DAT_RMR_COOKIE){.as_64 = cookie},
			     flags, context);
}

static DAT_RMR_CONTEXT bind_range(size_t offset, size_t len, uint64_t cookie)
{
	DAT_RMR_CONTEXT context = 0;

	assert_int_equal(bind_seg(rmr, rig_seg(&rig, offset, len), cookie, 0, &context),
			 DAT_SUCCESS);
	return context;
}

static void expect_bind(uint64_t cookie, DAT_RMR_BIND_COMPLETION_STATUS status)
{
	const DAT_EVENT event = rig_event(rig.b.dto);
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data =
		&event.event_data.rmr_completion_event_data;

	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(data->user_cookie.as_64, cookie);
	assert_int_equal(data->status, status);
}

/* Bound, and told so. */
static DAT_RMR_CONTEXT bound(size_t offset, size_t len)
{
	const DAT_RMR_CONTEXT context = bind_range(offset, len, 77);

	expect_bind(77, DAT_RMR_BIND_SUCCESS);
	return context;
}

static void unbound(void)
{
	const DAT_LMR_TRIPLET nothing = {.segment_length = 0};

	assert_int_equal(bind_seg(rmr, nothing, 78, 0, NULL), DAT_SUCCESS);
	expect_bind(78, DAT_RMR_BIND_SUCCESS);
}

/* a writes 8 bytes there with that context; a refusal ends the connection, which is made again. */
static void check_write(DAT_RMR_CONTEXT context, size_t offset, bool is_good)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = {.rmr_context = context,
			      .target_address = (uintptr_t)rig.memory + offset,
			      .segment_length = 8};
	DAT_EVENT event;

	memset(rig.memory, is_good ? 0x5a : 0xa5, 8);
	memset(rig.memory + offset, 0, 8);
	assert_int_equal(core_ep_post_rdma_write(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = 5},
						 &to, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	rig_expect_dto(&rig.a, 5, is_good ? DAT_DTO_SUCCESS : DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(memcmp(rig.memory, rig.memory + offset, 8) == 0, is_good);
	if (is_good)
		return;
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	event = rig_event(rig.b.conn);
	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/* What dat_ia_query says of a named attribute. */
static const char *attribute(const char *name)
{
	static DAT_IA_ATTR attr;

	assert_int_equal(
		core_ia_query(rig.ia, NULL,
			      DAT_IA_FIELD_IA_TRANSPORT_ATTR | DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR,
			      &attr, 0, NULL),
		DAT_SUCCESS);
	for (DAT_COUNT i = 0; i < attr.num_transport_attr; i++)
		if (!strcmp(attr.transport_attr[i].name, name))
			return attr.transport_attr[i].value;
	return "";
}

/* RMR-BIND-55: which of the two a bind makes, by device and setting; what it is for is the same. */
static void rmr_bind__device_and_setting__window_or_registration(void **state)
{
	static const struct {
		const char *setting;
		bool has_windows, is_rxe, uses_windows;
		const char *text;
	} cases[] = {
		{"", true, false, true, "type 1"},
		{"auto", true, false, true, "type 1"},
		{"auto", true, true, false, "type 1, bounds unchecked"},
		{"auto", false, false, false, "none"},
		{"window", true, true, true, "type 1, bounds unchecked"},
		{"window", false, false, false, "none"},
		{"registration", true, false, false, "type 1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool uses = cases[i].uses_windows;
		unsigned before = fake_binds();
		DAT_RMR_CONTEXT context;

		assert_int_equal(setenv("DAT_RMR_BIND", cases[i].setting, 1), 0);
		fake_windows(cases[i].has_windows, cases[i].is_rxe);
		setup(state);
		assert_string_equal(attribute("rmr_bind"), uses ? "window" : "registration");
		assert_string_equal(attribute("memory_windows"), cases[i].text);
		context = bound(HALF, 64);
		assert_int_equal(fake_binds() - before, uses);
		assert_int_equal(fake_mws(), uses);
		check_write(context, HALF, true);
		check_write(context, HALF + 57, false);
		teardown(state);
	}
	assert_int_equal(unsetenv("DAT_RMR_BIND"), 0);
	fake_windows(true, false);
}

/* RMR-BIND-55: a library without windows, whatever its device says */
static void ia_open__no_window_can_be_made__registration(void **state)
{
	rig.qual = 0;
	fake_fail_next("ibv_alloc_mw");
	setup(state);
	assert_string_equal(fake_failed(), "ibv_alloc_mw");
	fake_fail_at(0);
	assert_string_equal(attribute("rmr_bind"), "registration");
	check_write(bound(HALF, 64), HALF, true);
	assert_int_equal(fake_mws(), 0);
	teardown(state);
}

/* RMR-BIND-10 RMR-BIND-27: two work requests each, and no more windows than are bound at a time */
static void rmr_bind__again_and_again__windows_used_again(void **state)
{
	const unsigned before = fake_binds();
	DAT_RMR_CONTEXT context = 0, old = bound(HALF, 64);

	(void)state;
	for (unsigned i = 1; i <= 30; i++) {
		context = bound(HALF + 64 * i, 64);
		assert_int_equal(fake_binds() - before, 1 + 2 * i);
		assert_int_equal(fake_mws(), 2);
		check_write(context, HALF + 64 * i, true);
		if (i % 10 == 0)
			check_write(old, HALF + 64 * (i - 1), false);
		old = context;
	}
	unbound();
	assert_int_equal(fake_binds() - before, 62);
	assert_int_equal(fake_mws(), 2);
	check_write(context, HALF + 64 * 30, false);
	check_write(bound(HALF, 8), HALF, true);
}

/* RMR-BIND-08: although a window's keys are counted in 8 bits */
static void rmr_bind__more_often_than_a_window_has_keys__no_key_twice(void **state)
{
	static DAT_RMR_CONTEXT contexts[600];

	(void)state;
	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		contexts[i] = bound(HALF, 64);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(contexts[i], contexts[j]);
		assert_in_range(fake_mws(), 1, 2);
	}
}

/* RMR-BIND-12 RMR-BIND-13: what is posted behind a bind needs nobody who takes its completions */
static void rmr_bind__request_behind_it__posted_at_once(void **state)
{
	unsigned before;

	(void)state;
	(void)bound(HALF, 64);
	assert_int_equal(rig_recv(&rig, &rig.a, 64, 1), DAT_SUCCESS);
	before = fake_posts();
	(void)bind_range(HALF + 64, 64, 2);
	assert_int_equal(rig_send(&rig, &rig.b, 64, 3, 0), DAT_SUCCESS);
	assert_int_equal(fake_posts() - before, 3); /* bind, unbind, Send */
	expect_bind(2, DAT_RMR_BIND_SUCCESS);
	rig_expect_dto(&rig.b, 3, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
}

/* RMR-BIND-20 RMR-BIND-22: memory that cannot be written takes no windows, and is bound all the
 * same */
static void rmr_bind__region_not_writable__registration(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	const unsigned before = fake_binds();
	DAT_LMR_TRIPLET seg, into = rig_seg(&rig, HALF, 8);
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_TRIPLET from = {.target_address = (uintptr_t)rig.memory + 512, .segment_length = 8};

	(void)state;
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, rig.pz,
					 DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	seg = rig_seg(&rig, 512, 8);
	seg.lmr_context = context;
	assert_int_equal(core_rmr_bind(rmr, &seg, DAT_MEM_PRIV_REMOTE_READ_FLAG, rig.b.ep,
				       (DAT_RMR_COOKIE){.as_64 = 1}, 0, &from.rmr_context),
			 DAT_SUCCESS);
	expect_bind(1, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(fake_binds(), before);
	memset(rig.memory + 512, 0x3c, 8);
	assert_int_equal(
		core_ep_post_rdma_read(rig.a.ep, 1, &into, (DAT_DTO_COOKIE){.as_64 = 2}, &from, 0),
		DAT_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	assert_memory_equal(rig.memory + 512, rig.memory + HALF, 8);
	/* then by a window, and back */
	check_write(bound(HALF, 64), HALF, true);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	check_write(from.rmr_context, 512, false);
}

/* --- calls that fail --- */

/* RMR-BIND-55 GEN-20: each call of a rebind fails in turn; it succeeds by other means */
static void rmr_bind__a_call_fails__other_means(void **state)
{
	static const char *const names[] = {"ibv_alloc_mw", "ibv_bind_mw",
					    "ibv_bind_mw of nothing"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		DAT_RMR_CONTEXT old, context;
		DAT_RMR_HANDLE spare;

		old = bound(HALF, 64);
		if (i == 0) { /* the zone has no window left */
			assert_int_equal(core_rmr_create(rig.pz, &spare), DAT_SUCCESS);
			assert_int_equal(bind_seg(spare, rig_seg(&rig, 0, 8), 3, 0, &context),
					 DAT_SUCCESS);
			expect_bind(3, DAT_RMR_BIND_SUCCESS);
		}
		fake_fail_next(names[i]);
		context = bound(HALF + 512, 64);
		assert_string_equal(fake_failed(), names[i]);
		fake_fail_at(0);
		check_write(context, HALF + 512, true);
		check_write(old, HALF, false);
		rig_no_event(rig.b.dto);
	}
}

/* RMR-FREE-02 RMR-FREE-06 RMR-FREE-03: whatever the RMR was bound by */
static void rmr_free__bound_by_either__context_refused(void **state)
{
	for (int i = 0; i < 2; i++) {
		DAT_RMR_CONTEXT context;

		(void)state;
		if (i == 1)
			fake_fail_next("ibv_bind_mw");
		context = bound(HALF, 64);
		fake_fail_at(0);
		check_write(context, HALF, true);
		assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
		check_write(context, HALF, false);
		assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	}
	assert_int_equal(core_lmr_free(rig.lmr), DAT_SUCCESS);
}

/* RMR-BIND-55: a window of such a device is no longer than 2 GiB */
static void rmr_bind__longer_than_a_window__registration(void **state)
{
	const size_t length = ((size_t)1 << 31) + 4096;
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_LMR_TRIPLET seg = {.virtual_address = (uintptr_t)memory, .segment_length = length};
	DAT_LMR_TRIPLET from = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = {.target_address = (uintptr_t)memory + length - 8,
			      .segment_length = 8};
	const unsigned before = fake_binds();
	DAT_LMR_HANDLE lmr;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, length, rig.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &lmr, &seg.lmr_context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	assert_int_equal(bind_seg(rmr, seg, 1, 0, &to.rmr_context), DAT_SUCCESS);
	expect_bind(1, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(fake_binds(), before);
	memset(rig.memory, 0x42, 8);
	assert_int_equal(
		core_ep_post_rdma_write(rig.a.ep, 1, &from, (DAT_DTO_COOKIE){.as_64 = 2}, &to, 0),
		DAT_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	assert_memory_equal((unsigned char *)memory + length - 8, rig.memory, 8);
	assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	assert_int_equal(munmap(memory, length), 0);
}

/* --- work requests that fail --- */

/* What comes when a work request of b's has failed. */
static void expect_broken(void)
{
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/* RMR-BIND-14 RMR-BIND-39 RMR-BIND-43: the device refuses the bind */
static void rmr_bind__fails_in_the_device__broken_and_as_it_was(void **state)
{
	DAT_RMR_CONTEXT old, never;

	(void)state;
	old = bound(HALF, 64);
	fake_status(IBV_WC_MW_BIND_ERR);
	assert_int_equal(bind_seg(rmr, rig_seg(&rig, HALF + 512, 64), 9,
				  DAT_COMPLETION_SUPPRESS_FLAG, &never),
			 DAT_SUCCESS);
	expect_bind(9, DAT_RMR_OPERATION_FAILED);
	expect_broken();
	check_write(never, HALF + 512, false);
	check_write(old, HALF, true);
	check_write(bound(HALF + 512, 64), HALF + 512, true);
	check_write(old, HALF, false);
}

/* RMR-BIND-07 RMR-BIND-10: the bind is done, and what unbinds the window before it is refused */
static void rmr_bind__unbind_fails_in_the_device__old_context_ends(void **state)
{
	static const enum ibv_wc_status statuses[] = {IBV_WC_MW_BIND_ERR, IBV_WC_WR_FLUSH_ERR};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		DAT_RMR_CONTEXT old, context;

		old = bound(HALF, 64);
		fake_unbind_status(statuses[i]);
		context = bind_range(HALF + 512, 64, 4);
		expect_bind(4, DAT_RMR_BIND_SUCCESS);
		expect_broken();
		check_write(old, HALF, false);
		check_write(context, HALF + 512, true);
	}
}

/* --- binds that wait --- */

/* A Send of b's that finds no Receive. */
static void hold_up(void)
{
	assert_int_equal(rig_send(&rig, &rig.b, 64, 1, 0), DAT_SUCCESS);
}

static void let_go(void)
{
	assert_int_equal(rig_recv(&rig, &rig.a, 64, 2), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
}

/* RMR-BIND-39 RMR-BIND-38: flushed, although the device was ahead of what it waits for */
static void rmr_bind__waiting_at_the_end__as_it_was(void **state)
{
	DAT_RMR_CONTEXT old, never;

	(void)state;
	old = bound(HALF, 64);
	hold_up();
	never = bind_range(HALF + 512, 64, 6);
	rig_part(&rig);
	rig_expect_dto(&rig.b, 1, DAT_DTO_ERR_FLUSHED);
	expect_bind(6, DAT_DTO_ERR_FLUSHED);
	rig_reset(&rig);
	rig_again(&rig);
	check_write(old, HALF, true);
	check_write(never, HALF + 512, false);
	check_write(bound(HALF + 512, 64), HALF + 512, true);
	check_write(old, HALF, false);
}

/* RMR-BIND-01 RMR-BIND-52 RMR-BIND-12: several, of two RMRs, with requests between them */
static void rmr_bind__several_waiting__in_order(void **state)
{
	DAT_RMR_CONTEXT first, second, other, context;
	DAT_RMR_HANDLE more;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &more), DAT_SUCCESS);
	context = bound(HALF, 64);
	hold_up();
	first = bind_range(HALF + 512, 64, 11);
	assert_int_equal(bind_seg(more, rig_seg(&rig, HALF + 2048, 64), 12, 0, &other),
			 DAT_SUCCESS);
	assert_int_equal(rig_write(&rig, &rig.b, 64, 13, 0), DAT_SUCCESS);
	second = bind_range(HALF + 1024, 64, 14);
	assert_int_equal(rig_write(&rig, &rig.b, 64, 15, DAT_COMPLETION_SUPPRESS_FLAG),
			 DAT_SUCCESS);
	rig_no_event(rig.b.dto);
	let_go();
	expect_bind(11, DAT_RMR_BIND_SUCCESS);
	expect_bind(12, DAT_RMR_BIND_SUCCESS);
	rig_expect_dto(&rig.b, 13, DAT_DTO_SUCCESS);
	expect_bind(14, DAT_RMR_BIND_SUCCESS);
	assert_int_equal(rig_write(&rig, &rig.b, 64, 16, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 16, DAT_DTO_SUCCESS);
	check_write(second, HALF + 1024, true);
	check_write(other, HALF + 2048, true);
	check_write(first, HALF + 512, false);
	check_write(context, HALF, false);
}

/* RMR-FREE-12 RMR-FREE-06 RMR-FREE-03: behind a request, and with its work requests under way */
static void rmr_free__bind_under_way__both_contexts_end(void **state)
{
	(void)state;
	for (int is_held = 0; is_held < 2; is_held++) {
		DAT_RMR_CONTEXT old, never;

		old = bound(HALF, 64);
		if (is_held)
			hold_up();
		never = bind_range(HALF + 512, 64, 6);
		assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
		check_write(old, HALF, false); /* which flushes what waits */
		while (rig_event(rig.b.dto).event_number == DAT_RMR_BIND_COMPLETION_EVENT)
			;
		check_write(never, HALF + 512, false);
		assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	}
	assert_int_equal(core_lmr_free(rig.lmr), DAT_SUCCESS);
}

/* RMR-BIND-28 RMR-BIND-29: until the device has let go of the region, which it would refuse */
static void lmr_free__window_bound_elsewhere__after_the_event(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	int before;

	(void)state;
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, RIG_LEN, rig.pz,
					 DAT_MEM_PRIV_ALL_FLAG, &lmr, &seg.lmr_context, NULL, NULL,
					 NULL),
			 DAT_SUCCESS);
	assert_int_equal(bind_seg(rmr, seg, 1, 0, &context), DAT_SUCCESS);
	expect_bind(1, DAT_RMR_BIND_SUCCESS);
	hold_up();
	(void)bind_range(HALF, 64, 2);
	assert_int_equal(DAT_GET_TYPE(core_lmr_free(lmr)), DAT_INVALID_STATE);
	let_go();
	expect_bind(2, DAT_RMR_BIND_SUCCESS);
	before = fake_live();
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	assert_int_equal(fake_live(), before - 1);
}

/* RMR-BIND-39 RMR-BIND-53 EP-FREE-10: the endpoint goes with its bind under way */
static void ep_free__bind_under_way__as_it_was(void **state)
{
	DAT_RMR_CONTEXT old;

	(void)state;
	old = bound(HALF, 64);
	hold_up();
	(void)bind_range(HALF + 512, 64, 6);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(
		core_ep_create(rig.ia, rig.pz, rig.b.dto, rig.b.dto, rig.b.conn, NULL, &rig.b.ep),
		DAT_SUCCESS);
	rig_again(&rig);
	check_write(old, HALF, true);
	assert_int_equal(core_rmr_free(rmr), DAT_SUCCESS);
	check_write(old, HALF, false);
}

/* RMR-BIND-53 RMR-BIND-10: over two endpoints at once, in either order; the later one is left */
static void rmr_bind__over_two_endpoints__one_binding_left(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF + 512, 64);
	DAT_RMR_CONTEXT old, on_b, on_a;
	DAT_EVENT event;

	(void)state;
	old = bound(HALF, 64);
	hold_up();
	on_b = bind_range(HALF + 1024, 64, 3);
	assert_int_equal(core_rmr_bind(rmr, &seg, BIND_REMOTE, rig.a.ep,
				       (DAT_RMR_COOKIE){.as_64 = 4}, 0, &on_a),
			 DAT_SUCCESS);
	event = rig_event(rig.a.dto);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
	let_go();
	expect_bind(3, DAT_RMR_BIND_SUCCESS);
	check_write(on_b, HALF + 1024, true);
	check_write(on_a, HALF + 512, false);
	check_write(old, HALF, false);
}

/* RMR-BIND-42 RMR-BIND-49 DTO-16: places come back, those of the second work requests too */
static void rmr_bind__many_suppressed__places_come_back(void **state)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);
	DAT_RMR_CONTEXT context = 0;
	unsigned posted = 0;

	(void)state;
	while (posted < 1000) {
		DAT_RETURN ret = bind_seg(rmr, seg, posted, DAT_COMPLETION_SUPPRESS_FLAG, &context);

		if (ret == DAT_SUCCESS)
			posted++;
		else
			assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
		rig_no_event(rig.b.dto);
	}
	assert_int_equal(rig_write(&rig, &rig.b, 8, 5, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, 5, DAT_DTO_SUCCESS);
	check_write(context, HALF, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rmr_bind__device_and_setting__window_or_registration),
		cmocka_unit_test(ia_open__no_window_can_be_made__registration),
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(rmr_bind__again_and_again__windows_used_again),
		RIG_TEST(rmr_bind__more_often_than_a_window_has_keys__no_key_twice),
		RIG_TEST(rmr_bind__request_behind_it__posted_at_once),
		RIG_TEST(rmr_bind__region_not_writable__registration),
		RIG_TEST(rmr_bind__a_call_fails__other_means),
		RIG_TEST(rmr_free__bound_by_either__context_refused),
		RIG_TEST(rmr_bind__longer_than_a_window__registration),
		RIG_TEST(rmr_bind__fails_in_the_device__broken_and_as_it_was),
		RIG_TEST(rmr_bind__unbind_fails_in_the_device__old_context_ends),
		RIG_TEST(rmr_bind__waiting_at_the_end__as_it_was),
		RIG_TEST(rmr_bind__several_waiting__in_order),
		RIG_TEST(rmr_free__bind_under_way__both_contexts_end),
		RIG_TEST(lmr_free__window_bound_elsewhere__after_the_event),
		RIG_TEST(ep_free__bind_under_way__as_it_was),
		RIG_TEST(rmr_bind__over_two_endpoints__one_binding_left),
		RIG_TEST(rmr_bind__many_suppressed__places_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
