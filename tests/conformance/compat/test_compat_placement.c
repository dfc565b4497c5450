// SPDX-License-Identifier: BSD-2-Clause
/*
 * What existing consumers expect of data that arrive while they do not call the library: the data
 * are placed, the last bytes of a Write arrive last, and a completed Write is visible to everybody.
 * The target is a second process that only polls its memory.
 */
#include "dto_peer.h"

static int only_state(void **state)
{
	*state = &rig_of_test;
	return 0;
}

#define peer_test(f) cmocka_unit_test_setup(f, only_state)

/* --- one-sided placement --- */

/*
 * The child's buffer: parts to be written, read and received into, and the byte that releases it.
 */
#define PART 16384u

static void polling_target(struct dt_peer *peer, void *arg)
{
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, 4 * PART);
	dt_fill(far.buf.p + PART, PART, 5);
	post_recv(&far.ep, dt_seg(&far.buf, 2 * PART, PART), 1);
	dt_peer_sync(peer);
	/* no call into the library from here on */
	far_spin(far.buf.p + PART - 1, 0x11);
	far_check(far.buf.p, PART, 0x11);
	far_spin(far.buf.p + 3 * PART - 1, 0x22);
	far_check(far.buf.p + 2 * PART, PART, 0x22);
	far_spin(far.buf.p + 3 * PART, 0x33);
	expect_received(&far.ep, 1, PART);
	dt_peer_sync(peer);
	dt_ia_abort(&far.ia);
}

/* COMPAT-01 DTO-10: neither side calls the library after the posts */
static void rdma_and_message__both_only_poll_memory__placed(void **state)
{
	struct rig *rig = *state;
	struct far_info info;
	struct dt_peer peer;

	dt_peer_start(&peer, polling_target, NULL);
	rig_begin(rig);
	info = far_connect(rig, &peer);
	memset(rig->x.p, 0x11, PART);
	memset(rig->x.p + PART, 0x22, PART);
	rig->x.p[2 * PART] = 0x33;
	dt_peer_sync(&peer);
	post_write(&rig->a, dt_seg(&rig->x, 0, PART), far_seg(&info, 0, PART), 1, 0);
	post_read(&rig->a, dt_seg(&rig->y, 0, PART), far_seg(&info, PART, PART), 2, 0);
	post_send(&rig->a, dt_seg(&rig->x, PART, PART), 3, 0);
	post_write(&rig->a, dt_seg(&rig->x, 2 * PART, 1), far_seg(&info, 3 * PART, 1), 4,
		   DAT_COMPLETION_BARRIER_FENCE_FLAG);
	dt_peer_sync(&peer); /* the child has received everything */
	for (uint64_t i = 1; i <= 3; i++)
		expect_sent(&rig->a, i, PART);
	expect_sent(&rig->a, 4, 1);
	dt_check_pattern(rig->y.p, PART, 5);
	dt_peer_join(&peer);
	rig_end(rig);
}

#define FITFUL_ROUNDS (DT_SLOW ? 50u : 300u)

/* Polls in vain for a while, then makes no call until everything is there. */
static void fitful_target(struct dt_peer *peer, void *arg)
{
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, 2 * PART);
	dt_fill(far.buf.p + PART, PART, 5);
	for (unsigned round = 1; round <= FITFUL_ROUNDS; round++) {
		const unsigned char value = (unsigned char)(round % 250 + 1);
		DAT_EVENT event;
		uint64_t end;

		far_order(&far);
		dt_peer_sync(peer);
		end = dt_now_us() + round * 37 % 900;
		do
			assert_int_equal(DAT_GET_TYPE(dat_evd_dequeue(far.ep.request, &event)),
					 DAT_QUEUE_EMPTY);
		while (dt_now_us() < end);
		far_spin(far.buf.p + PART - 1, value);
		far_check(far.buf.p, PART, value);
		far_order(&far);
		dt_peer_sync(peer);
	}
	dt_ia_abort(&far.ia);
}

/* Waits for a request, asleep or by polls. */
static void expect_in_some_way(struct rig *rig, uint64_t cookie, bool polls)
{
	DAT_EVENT event;

	if (!polls) {
		expect_sent(&rig->a, cookie, PART);
		return;
	}
	event = dt_event_poll(rig->a.request);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
}

/* COMPAT-01 DTO-10: a target that has polled is not expected to poll again */
static void rdma__target_stops_polling__placed(void **state)
{
	struct rig *rig = *state;
	struct far_info info;
	struct dt_peer peer;

	dt_peer_start(&peer, fitful_target, NULL);
	rig_begin(rig);
	info = far_connect(rig, &peer);
	for (unsigned round = 1; round <= FITFUL_ROUNDS; round++) {
		uint64_t end;

		memset(rig->x.p, (int)(round % 250 + 1), PART);
		memset(rig->y.p, 0, PART);
		dt_peer_sync(&peer);
		end = dt_now_us() + round * 13 % 400;
		while (dt_now_us() < end)
			continue;
		post_read(&rig->a, dt_seg(&rig->y, 0, PART), far_seg(&info, PART, PART), 1, 0);
		post_write(&rig->a, dt_seg(&rig->x, 0, PART), far_seg(&info, 0, PART), 2, 0);
		expect_in_some_way(rig, 1, round & 1);
		expect_in_some_way(rig, 2, round & 2);
		dt_check_pattern(rig->y.p, PART, 5);
		dt_peer_sync(&peer);
	}
	dt_peer_join(&peer);
	rig_end(rig);
}

/* --- the last byte arrives last --- */

#define LAST_MAX (1024u * 1024u)
#define LAST_ROUNDS 15u
#define LAST_CHECK 2000u /* bytes at the end that are checked first */

/* All lengths up to this one are tried, then those of the table. */
#define LAST_SMALL 64u

static const size_t last_sizes[] = {
	65,    127,   128,   129,    255,    256,    257,    1000,	   4095,
	4096,  4097,  8191,  8192,   8193,   12345,  16384,  16385,	   32768,
	65535, 65536, 65537, 262143, 262144, 262145, 300000, LAST_MAX - 1, LAST_MAX - 100,
};

#define LAST_SIZES (LAST_SMALL + COUNT_OF(last_sizes))

static size_t last_size(size_t i)
{
	return i < LAST_SMALL ? i + 1 : last_sizes[i - LAST_SMALL];
}

static size_t last_offset(unsigned round)
{
	static const size_t offsets[] = {0, 1, 3, 8, 13};

	return offsets[round % COUNT_OF(offsets)];
}

/*
 * The watcher must run at the same time as the writer to see late bytes: each is bound to a
 * processor of its own if there are two.
 */
static void stay_on(int nth)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all) && nth-- == 0)
			CPU_SET(cpu, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Spins on the last byte. Yields the processor only when the byte takes long to arrive. */
static DT_UNORDERED void watch(const unsigned char *byte, unsigned char value)
{
	for (unsigned i = 0; i < 200000; i++) {
		if (__atomic_load_n(byte, __ATOMIC_ACQUIRE) == value)
			return;
	}
	far_spin(byte, value);
}

/*
 * Counts the bytes that are still old now that the last byte has arrived. The check goes backwards:
 * bytes at the start would have arrived by the time it reached them.
 */
static DT_UNORDERED size_t late_bytes(const unsigned char *start, size_t len, unsigned char value)
{
	const size_t first = len > LAST_CHECK ? len - LAST_CHECK : 0;
	size_t late = 0;

	for (size_t i = len - 1; i-- > first;)
		late += __atomic_load_n(start + i, __ATOMIC_RELAXED) != value;
	return late;
}

/* Watches the last byte; then all other bytes must be new. */
static void watching_child(struct dt_peer *peer, void *arg)
{
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, LAST_MAX);
	stay_on(0);
	for (unsigned round = 0; round < LAST_ROUNDS; round++) {
		for (size_t i = 0; i < LAST_SIZES; i++) {
			const size_t len = last_size(i);
			const unsigned char value = (unsigned char)(1 + (round + i) % 200);
			unsigned char *start = far.buf.p + last_offset(round);
			size_t late;

			if (len > 70000 && round % 10)
				continue;
			memset(start, 0, len);
			far_order(&far);
			/* then spins: the watcher already polls when the writer gets this */
			dt_peer_send(peer, &value, 1);
			watch(start + len - 1, value);
			late = late_bytes(start, len, value);
			far_order(&far);
			if (late)
				print_error("%zu bytes of %zu came later\n", late, len);
			assert_int_equal(late, 0);
			dt_check_bytes(start, len, value);
		}
	}
	dt_peer_sync(peer);
	dt_ia_abort(&far.ia);
}

/* Posts a Write of len bytes in n segments, the last of them short. */
static void write_segments(struct rig *rig, const struct dt_buf *from, DAT_RMR_TRIPLET remote,
			   size_t len, size_t n)
{
	DAT_LMR_TRIPLET iov[4];
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t part = i + 1 < n ? (len - at) / 2 : len - at;

		iov[i] = dt_seg(from, at, part);
		at += part;
	}
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, (DAT_COUNT)n, iov, dt_cookie(len), &remote, 0));
}

/* EP-RDMAW-43 EP-RDMAW-44 COMPAT-02 LMR-CREATE-19 */
static void rdma_write__target_watches_last_byte__rest_is_complete(void **state)
{
	struct rig *rig = *state;
	struct far_info info;
	struct dt_peer peer;
	struct dt_buf from;
	unsigned char ready;
	cpu_set_t before;

	dt_peer_start(&peer, watching_child, NULL);
	rig_begin(rig);
	info = far_connect(rig, &peer);
	dt_map(&rig->a, dt_seg(&rig->y, 0, 1), far_seg(&info, 0, 1));
	dt_buf_create(&rig->ia, rig->ia.pz, &from, LAST_MAX, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	stay_on(1);
	for (unsigned round = 0; round < LAST_ROUNDS; round++) {
		for (size_t i = 0; i < LAST_SIZES; i++) {
			const size_t len = last_size(i);

			if (len > 70000 && round % 10)
				continue;
			memset(from.p, (int)(1 + (round + i) % 200), len);
			dt_peer_recv(&peer, &ready, 1);
			assert_int_equal(ready, 1 + (round + i) % 200);
			write_segments(rig, &from, far_seg(&info, last_offset(round), len), len,
				       1 + round % 4);
			expect_sent(&rig->a, len, len);
		}
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	rig_end(rig);
	dt_mem_free(from.p, from.mapped);
}

/* --- completed means visible --- */

#define DONE_ROUNDS 100u

/* Is notified by other channels that a Write is complete: by a pipe, and by a second connection. */
static void notified_child(struct dt_peer *peer, void *arg)
{
	struct far_end far, second;

	(void)arg;
	far_end_open(peer, &far, PART);
	far_end_open(peer, &second, 4096);
	for (unsigned round = 0; round < DONE_ROUNDS; round++) {
		post_recv(&second.ep, dt_seg(&second.buf, 0, 8), round);
		dt_peer_sync(peer); /* "the Write is complete" */
		far_order(&far);
		dt_check_bytes(far.buf.p, PART, (unsigned char)round);
		far_order(&far);
		dt_peer_sync(peer);
		expect_received(&second.ep, round, 8);
		far_order(&far);
		dt_check_bytes(far.buf.p, PART, (unsigned char)(round + 1));
		far_order(&far);
		dt_peer_sync(peer);
	}
	dt_peer_sync(peer);
	dt_ia_abort(&far.ia);
	dt_ia_abort(&second.ia);
}

/* COMPAT-03 EP-RDMAW-43 */
static void rdma_write__completed__visible_to_notified_process(void **state)
{
	struct rig *rig = *state;
	struct far_info info;
	struct dt_peer peer;
	struct dt_ep first;

	dt_peer_start(&peer, notified_child, NULL);
	rig_begin(rig);
	info = far_connect(rig, &peer);
	first = rig->a;
	dt_map(&first, dt_seg(&rig->y, 0, 1), far_seg(&info, 0, 1));
	far_connect(rig, &peer);
	for (unsigned round = 0; round < DONE_ROUNDS; round++) {
		memset(rig->x.p, (int)round, PART);
		post_write(&first, dt_seg(&rig->x, 0, PART), far_seg(&info, 0, PART), 1, 0);
		expect_sent(&first, 1, PART);
		dt_peer_sync(&peer);
		dt_peer_sync(&peer);
		memset(rig->x.p, (int)round + 1, PART);
		post_write(&first, dt_seg(&rig->x, 0, PART), far_seg(&info, 0, PART), 2, 0);
		expect_sent(&first, 2, PART);
		post_send(&rig->a, dt_seg(&rig->x, 0, 8), 3, 0);
		expect_sent(&rig->a, 3, 8);
		dt_peer_sync(&peer); /* the child has checked it */
	}
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	rig_end(rig);
}

/* --- early messages --- */

#define EARLY 12u

/*
 * COMPAT-04 DTO-104 DTO-106: no limit on the wait by default; two seconds stand for an unlimited
 * time
 */
static void post_send__receive_comes_two_seconds_later__nothing_lost(void **state)
{
	struct rig *rig = *state;
	const uint64_t start = dt_now_us();

	rig_begin(rig);
	rig_link(rig);
	for (uint64_t i = 0; i < EARLY; i++)
		post_send(&rig->a, dt_seg(&rig->x, 10 * i, 1 + 700 * i), i, 0);
	while (dt_now_us() - start < 2000000)
		dt_stays_empty(rig->a.request);
	expect_quiet(&rig->b);
	dt_no_event(rig->a.conn);
	for (uint64_t i = 0; i < EARLY; i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 0, 10000), i);
		expect_received(&rig->b, i, 1 + 700 * i);
		assert_memory_equal(rig->y.p, rig->x.p + 10 * i, 1 + 700 * i);
		expect_sent(&rig->a, i, 1 + 700 * i);
	}
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		peer_test(rdma_and_message__both_only_poll_memory__placed),
		peer_test(rdma__target_stops_polling__placed),
		peer_test(rdma_write__target_watches_last_byte__rest_is_complete),
		peer_test(rdma_write__completed__visible_to_notified_process),
		peer_test(post_send__receive_comes_two_seconds_later__nothing_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
