// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA Reads whose data arrive late, and requests that a fence holds back meanwhile. The program
 * runs on two devices: one that honours fences and the limit of RDMA Reads itself, and one that
 * poses as siw, where the provider does both (FAKE_LINK=iwarp).
 */
#include "rig.h"

#include <stdlib.h>

#define QUARTER (RIG_LEN / 4)
#define HALF (RIG_LEN / 2)
#define OLD 0x11
#define NEW 0x22
#define FENCE DAT_COMPLETION_BARRIER_FENCE_FLAG
#define VENDOR_SIW 0x626d74u
#define READ 1u /* cookies */
#define FENCED 2u
#define RECV 3u
#define MESSAGE 4u

static struct rig rig;
static bool is_siw;

/* The first three lengths are inline, unless the request is fenced. */
static const size_t lengths[] = {1, 64, 220, 221, 4000};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static int setup_bare(void **state)
{
	(void)state;
	rig.qual = 0;
	fake_be_vendor(is_siw ? VENDOR_SIW : 0);
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
	return 0;
}

static void join(void)
{
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
	if (is_siw)
		rig_answer(&rig); /* so that only requests of the tests are posted from now on */
}

static int fence_setup(void **state)
{
	setup_bare(state);
	join();
	return 0;
}

static int fence_teardown(void **state)
{
	(void)state;
	fake_hold_reads(false);
	fake_hold(false);
	rig_close(&rig);
	fake_be_vendor(0);
	return 0;
}

/* --- fences --- */

enum kind { SEND, WRITE, READ_BACK };

/* From the memory's first bytes into its second half. */
static void post(enum kind kind, size_t len, DAT_COMPLETION_FLAGS flags)
{
	switch (kind) {
	case SEND:
		assert_int_equal(rig_send(&rig, &rig.a, len, FENCED, flags), DAT_SUCCESS);
		break;
	case WRITE:
		assert_int_equal(rig_write(&rig, &rig.a, len, FENCED, flags), DAT_SUCCESS);
		break;
	case READ_BACK:
		assert_int_equal(rig_read(&rig, &rig.a, HALF, 0, len, FENCED, flags), DAT_SUCCESS);
		break;
	}
}

static void fill(size_t len)
{
	memset(rig.memory, OLD, len);
	memset(rig.memory + QUARTER, NEW, len);
	memset(rig.memory + HALF, 0, len);
}

static void post_first_read(size_t len)
{
	assert_int_equal(rig_read(&rig, &rig.a, 0, QUARTER, len, READ, 0), DAT_SUCCESS);
}

static void check_bytes(size_t offset, size_t len, unsigned char value)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(rig.memory[offset + i], value);
}

/*
 * A Read into the memory's first bytes, held back, and behind it a fenced request that copies them
 * elsewhere.
 */
static void read_and_move_on(enum kind kind, size_t len)
{
	const unsigned fences = fake_fences();
	unsigned posts;

	fill(len);
	if (kind == SEND)
		assert_int_equal(rig_recv(&rig, &rig.b, len, RECV), DAT_SUCCESS);
	fake_hold_reads(true);
	post_first_read(len);
	posts = fake_posts();
	post(kind, len, FENCE);
	rig_no_event(rig.b.dto);
	rig_no_event(rig.a.dto);
	assert_int_equal(fake_reads(), 1);
	check_bytes(HALF, len, 0);
	/* siw answers none of its peer's Reads while it waits, and breaks at a fenced Read */
	assert_int_equal(fake_posts() - posts, !is_siw);

	fake_hold_reads(false);
	rig_expect_dto(&rig.a, READ, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, FENCED, DAT_DTO_SUCCESS);
	if (kind == SEND)
		rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
	check_bytes(HALF, len, NEW);
	assert_int_equal(fake_fences() - fences, !is_siw);
}

/* EP-SEND-25 DTO-30 */
static void post_send__fenced_behind_read__sends_what_it_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTHS; i++)
		read_and_move_on(SEND, lengths[i]);
}

/* EP-RDMAW-26 DTO-30 */
static void post_rdma_write__fenced_behind_read__writes_what_it_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTHS; i++)
		read_and_move_on(WRITE, lengths[i]);
}

/* EP-RDMAR-24 DTO-30 */
static void post_rdma_read__fenced_behind_read__starts_after_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTHS; i++)
		read_and_move_on(READ_BACK, lengths[i]);
}

/* DTO-30: a message that waits for its Receive prevents the Read from starting */
static void post_send__fenced_behind_waiting_read__sends_what_it_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTHS; i++) {
		fill(lengths[i]);
		assert_int_equal(rig_send(&rig, &rig.a, 8, MESSAGE, 0), DAT_SUCCESS);
		post_first_read(lengths[i]);
		post(SEND, lengths[i], FENCE);
		check_bytes(0, lengths[i], OLD);
		assert_int_equal(rig_recv(&rig, &rig.b, 8, RECV), DAT_SUCCESS);
		assert_int_equal(rig_recv(&rig, &rig.b, lengths[i], RECV), DAT_SUCCESS);
		rig_expect_dto(&rig.a, MESSAGE, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.a, READ, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.a, FENCED, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
		check_bytes(HALF, lengths[i], NEW);
	}
}

static void bind_at(const struct rig_ep *ep, DAT_RMR_HANDLE rmr, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);
	DAT_RMR_CONTEXT context;

	assert_int_equal(core_rmr_bind(rmr, &seg, DAT_MEM_PRIV_REMOTE_READ_FLAG, ep->ep,
				       (DAT_RMR_COOKIE){.as_64 = MESSAGE}, flags, &context),
			 DAT_SUCCESS);
}

static void expect_bound(const struct rig_ep *ep)
{
	const DAT_EVENT event = rig_event(ep->dto);

	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_int_equal(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
}

/* A Send of 8 bytes from that region waits behind a bind, which waits for a message. */
static void send_behind_bind(DAT_RMR_HANDLE rmr, DAT_LMR_CONTEXT lkey, unsigned char *from)
{
	DAT_LMR_TRIPLET seg = {
		.lmr_context = lkey, .virtual_address = (uintptr_t)from, .segment_length = 8};

	fill(8);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, RECV), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, RECV), DAT_SUCCESS);
	fake_hold(true);
	assert_int_equal(rig_send(&rig, &rig.a, 8, MESSAGE, 0), DAT_SUCCESS);
	bind_at(&rig.a, rmr, 0);
	assert_int_equal(core_ep_post_send(rig.a.ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = FENCED}, 0),
			 DAT_SUCCESS);
}

static void finish_behind_bind(DAT_DTO_COMPLETION_STATUS status)
{
	rig_expect_dto(&rig.a, MESSAGE, DAT_DTO_SUCCESS);
	expect_bound(&rig.a);
	fake_hold(false);
	rig_expect_dto(&rig.a, FENCED, status);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
}

static unsigned char own[64] = {7, 7, 7, 7, 7, 7, 7, 7};

static DAT_LMR_HANDLE make_own(DAT_LMR_CONTEXT *lkey)
{
	DAT_REGION_DESCRIPTION region = {.for_va = own};
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;

	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(own), rig.pz,
					 DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, lkey, &rkey, NULL,
					 NULL),
			 DAT_SUCCESS);
	return lmr;
}

/* LMR-FREE-06 LMR-FREE-17 DTO-96: the region of a request that waits in the provider is freed */
static void lmr_free__send_waits_behind_bind__local_protection(void **state)
{
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE lmr;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	lmr = make_own(&lkey);
	send_behind_bind(rmr, lkey, own);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	finish_behind_bind(DAT_DTO_ERR_LOCAL_PROTECTION);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_ERR_FLUSHED);
}

/* LMR-FREE-06: the device checks the region of such a request, so its data are not inline */
static void post_send__waits_behind_bind__not_inline(void **state)
{
	const unsigned before = fake_inlines();
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_HANDLE rmr;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	(void)make_own(&lkey);
	send_behind_bind(rmr, lkey, own);
	finish_behind_bind(DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
	check_bytes(HALF, 8, 7);
	assert_int_equal(fake_inlines() - before, 1); /* the message */
}

/*
 * DTO-30: a bind waits for the message in front of it, both other requests wait for the bind, and
 * one call of the device posts them. Only this thread polls between the message and the bind.
 */
static void move_on_behind_bind(enum kind kind, size_t len, DAT_RMR_HANDLE rmr)
{
	unsigned posts;

	fill(len);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, RECV), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, len, RECV), DAT_SUCCESS);
	fake_hold(true);
	assert_int_equal(rig_send(&rig, &rig.a, 8, MESSAGE, 0), DAT_SUCCESS);
	bind_at(&rig.a, rmr, 0);
	posts = fake_posts();
	fake_hold_reads(true);
	post_first_read(len);
	post(kind, len, FENCE);
	assert_int_equal(fake_posts(), posts);
	rig_expect_dto(&rig.a, MESSAGE, DAT_DTO_SUCCESS);
	expect_bound(&rig.a);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
	fake_hold(false);
	rig_no_event(rig.a.dto);
	rig_no_event(rig.b.dto);
	assert_int_equal(fake_reads(), 1);
	check_bytes(HALF + 8, len > 8 ? len - 8 : 0, 0);
	fake_hold_reads(false);
	rig_expect_dto(&rig.a, READ, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, FENCED, DAT_DTO_SUCCESS);
	check_bytes(HALF, len, NEW);
	if (kind != SEND) {
		assert_int_equal(rig_send(&rig, &rig.a, len, MESSAGE, 0), DAT_SUCCESS);
		rig_expect_dto(&rig.a, MESSAGE, DAT_DTO_SUCCESS);
	}
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
}

static void post__fenced_and_read_wait_for_bind__carries_what_it_read(void **state)
{
	DAT_RMR_HANDLE rmr;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	for (size_t i = 0; i < LENGTHS; i++) {
		move_on_behind_bind(SEND, lengths[i], rmr);
		move_on_behind_bind(WRITE, lengths[i], rmr);
		move_on_behind_bind(READ_BACK, lengths[i], rmr);
	}
}

/* RMR-BIND-46 DTO-30: the peer does not reach the range before the Read is complete */
static void rmr_bind__fenced_behind_read__binds_after_it(void **state)
{
	DAT_RMR_HANDLE rmr;

	(void)state;
	assert_int_equal(core_rmr_create(rig.pz, &rmr), DAT_SUCCESS);
	fake_hold_reads(true);
	post_first_read(64);
	bind_at(&rig.a, rmr, FENCE);
	assert_int_equal(fake_mws(), 1);
	assert_int_equal(fake_reads(), 1);
	assert_int_equal(fake_bound(), 0);
	rig_no_event(rig.a.dto);
	fake_hold_reads(false);
	rig_expect_dto(&rig.a, READ, DAT_DTO_SUCCESS);
	expect_bound(&rig.a);
	assert_int_equal(fake_bound(), 1);
}

/* DTO-42: an overtaking message arrives, and is complete after the Read */
static void post_send__not_fenced__overtakes_read(void **state)
{
	(void)state;
	fill(64);
	assert_int_equal(rig_recv(&rig, &rig.b, 64, RECV), DAT_SUCCESS);
	fake_hold_reads(true);
	post_first_read(64);
	post(SEND, 64, 0);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
	check_bytes(HALF, 64, OLD);
	rig_no_event(rig.a.dto);
	assert_int_equal(fake_reads(), 1);
	fake_hold_reads(false);
	rig_expect_dto(&rig.a, READ, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, FENCED, DAT_DTO_SUCCESS);
	check_bytes(0, 64, NEW);
}

/* DTO-31: neither what was posted before nor the other direction waits for a fence */
static void post_send__fenced_behind_read__others_go_on(void **state)
{
	(void)state;
	fill(8);
	assert_int_equal(rig_recv(&rig, &rig.a, 8, RECV), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, RECV), DAT_SUCCESS);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, RECV), DAT_SUCCESS);
	fake_hold_reads(true);
	post_first_read(8);
	post(SEND, 8, 0);
	post(SEND, 8, FENCE);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
	assert_int_equal(rig_send(&rig, &rig.b, 8, MESSAGE, 0), DAT_SUCCESS);
	rig_expect_dto(&rig.b, MESSAGE, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, RECV, DAT_DTO_SUCCESS);
	rig_no_event(rig.b.dto);
	fake_hold_reads(false);
	rig_expect_dto(&rig.b, RECV, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, READ, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, FENCED, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.a, FENCED, DAT_DTO_SUCCESS);
}

/* --- the limit of RDMA Reads --- */

static void limit_reads(DAT_COUNT a_out, DAT_COUNT b_in)
{
	assert_int_equal(rig_limit_reads(&rig.a, 8, a_out), DAT_SUCCESS);
	assert_int_equal(rig_limit_reads(&rig.b, b_in, 8), DAT_SUCCESS);
	join();
}

#define READS 6u

/* Posts twice as many as may be in flight, and counts those in flight. */
static void check_limit(unsigned limit)
{
	for (unsigned round = 0; round < 2; round++) {
		fill(READS);
		fake_hold_reads(true);
		for (size_t i = 0; i < READS; i++)
			assert_int_equal(rig_read(&rig, &rig.a, i, QUARTER + i, 1, i, 0),
					 DAT_SUCCESS);
		rig_no_event(rig.a.dto);
		assert_int_equal(fake_reads(), limit);
		check_bytes(0, READS, OLD);
		fake_hold_reads(false);
		for (size_t i = 0; i < READS; i++)
			rig_expect_dto(&rig.a, i, DAT_DTO_SUCCESS);
		check_bytes(0, READS, NEW);
	}
}

/* DTO-108 EP-RDMAR-37 */
static void post_rdma_read__peer_serves_fewer__never_more_in_flight(void **state)
{
	(void)state;
	limit_reads(4, 2);
	check_limit(2);
}

/* DTO-108 EP-RDMAR-36 */
static void post_rdma_read__own_limit_is_smaller__never_more_in_flight(void **state)
{
	(void)state;
	limit_reads(3, 5);
	check_limit(3);
}

/* DTO-108 */
static void post_rdma_read__one_at_a_time__never_more_in_flight(void **state)
{
	(void)state;
	limit_reads(1, 1);
	check_limit(1);
}

/* DTO-108: the Reads that verify RDMA Writes count too (docs/verbs.md) */
static void post_rdma_write__siw_verified_writes_and_reads__never_more_in_flight(void **state)
{
	const unsigned limit = 2;

	(void)state;
	limit_reads(4, (DAT_COUNT)limit);
	for (unsigned first = 0; first < 3; first++) {
		fill(64);
		fake_hold_reads(true);
		for (unsigned i = 0; i < READS; i++) {
			if (i % 3 == first)
				post_first_read(64);
			else
				assert_int_equal(rig_write(&rig, &rig.a, 64, i, 0), DAT_SUCCESS);
		}
		assert_int_equal(fake_reads(), limit);
		rig_no_event(rig.a.dto);
		fake_hold_reads(false);
		for (unsigned i = 0; i < READS; i++)
			rig_expect_dto(&rig.a, i % 3 == first ? READ : i, DAT_DTO_SUCCESS);
	}
}

/* DTO-108 COMPAT-41: an endpoint that starts no RDMA Reads verifies its Writes one at a time */
static void post_rdma_write__siw_no_reads_allowed__one_verified_in_flight(void **state)
{
	(void)state;
	limit_reads(0, 4);
	fake_hold_reads(true);
	for (unsigned i = 0; i < READS; i++)
		assert_int_equal(rig_write(&rig, &rig.a, 64, i, 0), DAT_SUCCESS);
	assert_int_equal(fake_reads(), 1);
	rig_no_event(rig.a.dto);
	fake_hold_reads(false);
	for (unsigned i = 0; i < READS; i++)
		rig_expect_dto(&rig.a, i, DAT_DTO_SUCCESS);
}

#define joined(f) cmocka_unit_test_setup_teardown(f, fence_setup, fence_teardown)
#define bare(f) cmocka_unit_test_setup_teardown(f, setup_bare, fence_teardown)

/* The tests of both devices. */
#define BOTH                                                                                       \
	joined(post_send__fenced_behind_read__sends_what_it_read),                                 \
		joined(post_rdma_write__fenced_behind_read__writes_what_it_read),                  \
		joined(post_rdma_read__fenced_behind_read__starts_after_it),                       \
		joined(post__fenced_and_read_wait_for_bind__carries_what_it_read),                 \
		joined(lmr_free__send_waits_behind_bind__local_protection),                        \
		joined(post_send__waits_behind_bind__not_inline),                                  \
		joined(post_send__not_fenced__overtakes_read),                                     \
		joined(post_send__fenced_behind_read__others_go_on),                               \
		bare(post_rdma_read__peer_serves_fewer__never_more_in_flight),                     \
		bare(post_rdma_read__own_limit_is_smaller__never_more_in_flight),                  \
		bare(post_rdma_read__one_at_a_time__never_more_in_flight)

int main(void)
{
	const struct CMUnitTest plain[] = {
		BOTH,
		joined(post_send__fenced_behind_waiting_read__sends_what_it_read),
		joined(rmr_bind__fenced_behind_read__binds_after_it),
	};
	const struct CMUnitTest siw[] = {
		BOTH,
		bare(post_rdma_write__siw_verified_writes_and_reads__never_more_in_flight),
		bare(post_rdma_write__siw_no_reads_allowed__one_verified_in_flight),
	};
	const char *link = getenv("FAKE_LINK");

	is_siw = link && !strcmp(link, "iwarp");
	fake_windows(!is_siw, false);
	return is_siw ? cmocka_run_group_tests(siw, NULL, NULL)
		      : cmocka_run_group_tests(plain, NULL, NULL);
}
