// SPDX-License-Identifier: BSD-2-Clause
/*
 * Data integrity: all three ways of moving data, at sizes around each threshold that an
 * implementation may have, from and to odd addresses, in one and in several segments, with guard
 * bytes around the destination; and traffic in both directions at once.
 */
#include "dto_util.h"

#define SIZE_MAX_TESTED (4u * 1024 * 1024)
#define GUARD 64u
#define BUF_LEN (SIZE_MAX_TESTED + 4096 + 2 * GUARD)

static const size_t sizes[] = {
	0,     1,      7,      8,      9,      63,     64,	65,	 255,	  256,
	257,   1023,   1024,   1025,   4032,   4095,   4096,	4097,	 8191,	  8192,
	8193,  12288,  16383,  16384,  16385,  32767,  32768,	32769,	 65535,	  65536,
	65537, 131072, 262143, 262144, 262145, 524289, 1048575, 1048576, 1048577, SIZE_MAX_TESTED,
};

/* where the source and the destination start, relative to a page */
static const struct {
	size_t from, to;
} places[] = {{0, 0}, {1, 0}, {0, 1}, {3, 5}, {63, 4095}, {4095, 63}, {4, 4090}};

struct buffers {
	struct dt_buf from, to;
};

static struct buffers buffers;

static int setup(void **state)
{
	struct rig *rig = &rig_of_test;

	rig_setup(state);
	dt_buf_create(&rig->ia, rig->ia.pz, &buffers.from, BUF_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &buffers.to, BUF_LEN, DAT_MEM_PRIV_ALL_FLAG);
	return 0;
}

static int teardown(void **state)
{
	rig_teardown(state);
	dt_mem_free(buffers.from.p, buffers.from.mapped);
	dt_mem_free(buffers.to.p, buffers.to.mapped);
	return 0;
}

/* Divides [at, at + len) of buf into n segments of uneven sizes, some of them empty. */
static void cut(const struct dt_buf *buf, size_t at, size_t len, size_t n, unsigned how,
		DAT_LMR_TRIPLET *iov_out)
{
	const size_t wanted[] = {len / 7, (how % 5) * 13 + 1, len / 3 + 1, how % 2 ? 0 : len / 5};

	for (size_t i = 0; i < n; i++) {
		size_t part = len;

		if (i + 1 < n)
			part = wanted[(i + how) % COUNT_OF(wanted)] < len
				       ? wanted[(i + how) % COUNT_OF(wanted)]
				       : len;
		iov_out[i] = dt_seg(buf, at, part);
		at += part;
		len -= part;
	}
}

/*
 * Moves len bytes in up to 4 segments at the side that allows several, and waits for the
 * completion.
 */
static void move(struct rig *rig, enum dto_kind kind, size_t from, size_t to, size_t len,
		 unsigned how)
{
	const size_t n = 1 + how % 4;
	const DAT_RMR_TRIPLET source = dt_rseg(&buffers.from, from, len);
	const DAT_RMR_TRIPLET target = dt_rseg(&buffers.to, to, len);
	DAT_LMR_TRIPLET out[4], in[4];

	cut(&buffers.from, from, len, n, how, out);
	cut(&buffers.to, to, len, 1 + (how + 1) % 4, how + 1, in);
	if (kind == DTO_SEND)
		dt_ok(dto_post(DTO_RECV, rig->b.ep, (DAT_COUNT)(1 + (how + 1) % 4), in, len, NULL,
			       0));
	if (kind == DTO_READ)
		dt_ok(dto_post(kind, rig->a.ep, (DAT_COUNT)(1 + (how + 1) % 4), in, len, &source,
			       0));
	else
		dt_ok(dto_post(kind, rig->a.ep, (DAT_COUNT)n, out, len, &target, 0));
	expect_sent(&rig->a, len, len);
	if (kind == DTO_SEND)
		expect_received(&rig->b, len, len);
}

static void check_all_sizes(struct rig *rig, enum dto_kind kind)
{
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		const size_t len = sizes[i];

		for (size_t p = 0; p < COUNT_OF(places); p++) {
			const unsigned how = (unsigned)(i + 3 * p);
			unsigned char *to = buffers.to.p + GUARD + places[p].to;

			if (len > 300000 && p != 0 && p != 3)
				continue;
			dt_fill(buffers.from.p + places[p].from, len, how);
			memset(to - GUARD, 0xA5, len + 2 * GUARD);
			move(rig, kind, places[p].from, GUARD + places[p].to, len, how);
			dt_check_pattern(to, len, how);
			dt_check_bytes(to - GUARD, GUARD, 0xA5);
			dt_check_bytes(to + len, GUARD, 0xA5);
		}
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/* EP-SEND-02 EP-SEND-35 EP-RECV-03 EP-RECV-05 EP-RECV-15 EP-RECV-35 DTO-50 DTO-75 LMR-USE-10 */
static void post_send__every_size_and_alignment__intact(void **state)
{
	check_all_sizes(*state, DTO_SEND);
}

/* EP-RDMAW-03 EP-RDMAW-04 EP-RDMAW-43 EP-RDMAW-45 LMR-USE-10 LMR-USE-11 */
static void post_rdma_write__every_size_and_alignment__intact(void **state)
{
	check_all_sizes(*state, DTO_WRITE);
}

/* EP-RDMAR-02 EP-RDMAR-03 EP-RDMAR-19 EP-RDMAR-40 LMR-USE-11 */
static void post_rdma_read__every_size_and_alignment__intact(void **state)
{
	check_all_sizes(*state, DTO_READ);
}

#define PART_LEN 10007u

/* EP-SEND-02 EP-RECV-03: each segment is in another region */
static void post_send__segments_of_different_regions__joined(void **state)
{
	struct rig *rig = *state;
	static unsigned char sent[4 * PART_LEN], got[4 * PART_LEN];
	DAT_LMR_TRIPLET out[4], in[4];
	size_t len = 0, room = 0;
	struct dt_buf part[8];

	for (size_t i = 0; i < 8; i++) {
		dt_buf_create(&rig->ia, rig->ia.pz, &part[i], PART_LEN, DAT_MEM_PRIV_ALL_FLAG);
		dt_fill(part[i].p, PART_LEN, i < 4 ? (unsigned)i : 1000);
	}
	for (size_t i = 0; i < 4; i++) {
		out[i] = dt_seg(&part[i], 3 * i, PART_LEN - 3 * i);
		in[i] = dt_seg(&part[4 + i], i, PART_LEN - i);
		memcpy(sent + len, part[i].p + 3 * i, PART_LEN - 3 * i);
		len += PART_LEN - 3 * i;
	}
	memset(part[7].p, 0xA5, PART_LEN);
	dt_ok(dto_post(DTO_RECV, rig->b.ep, 4, in, 1, NULL, 0));
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 4, out, 2, NULL, 0));
	expect_sent(&rig->a, 2, len);
	expect_received(&rig->b, 1, len);
	for (size_t i = 0; i < 4; i++) {
		memcpy(got + room, part[4 + i].p + i, PART_LEN - i);
		room += PART_LEN - i;
	}
	assert_memory_equal(got, sent, len);
	dt_check_bytes(got + len, room - len, 0xA5);
	for (size_t i = 0; i < 8; i++)
		dt_buf_free(&part[i]);
}

/* --- both directions at once --- */

#define BOTH_LEN 8192u
#define BOTH_DEPTH 4u
#define BOTH_MESSAGES (DT_SLOW ? 500u : 4000u)

static uint64_t checksum(const unsigned char *p, size_t len)
{
	uint64_t sum = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * 1099511628211u;
	return sum;
}

struct side {
	struct dt_ep *ep;
	struct dt_buf *buf; /* BOTH_DEPTH slots to send, as many to receive, of BOTH_LEN each */
	uint64_t sent, done, received;
};

static size_t message_len(uint64_t number)
{
	return 8 + (size_t)(number * 2654435761u % (BOTH_LEN - 8));
}

static void side_send(struct side *side)
{
	unsigned char *p = side->buf->p + side->sent % BOTH_DEPTH * BOTH_LEN;
	const size_t len = message_len(side->sent);
	uint64_t sum;

	dt_fill(p + 8, len - 8, (uint32_t)side->sent);
	sum = checksum(p + 8, len - 8) + side->sent;
	memcpy(p, &sum, sizeof(sum));
	post_send(side->ep, dt_seg(side->buf, (size_t)(p - side->buf->p), len), side->sent, 0);
	side->sent++;
}

static void side_post_recv(struct side *side, uint64_t number)
{
	post_recv(side->ep,
		  dt_seg(side->buf, (BOTH_DEPTH + number % BOTH_DEPTH) * BOTH_LEN, BOTH_LEN),
		  number);
}

/* Takes one event from either queue if there is one. */
static void side_progress(struct side *side)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	uint64_t sum;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	if (dat_evd_dequeue(side->ep->request, &event) == DAT_SUCCESS) {
		assert_int_equal(dto->status, DAT_DTO_SUCCESS);
		assert_true(dto->user_cookie.as_64 == side->done);
		assert_true(dto->transfered_length == message_len(side->done));
		side->done++;
	}
	if (dat_evd_dequeue(side->ep->recv, &event) == DAT_SUCCESS) {
		const uint64_t number = side->received++;
		const unsigned char *p =
			side->buf->p + (BOTH_DEPTH + number % BOTH_DEPTH) * BOTH_LEN;

		assert_int_equal(dto->status, DAT_DTO_SUCCESS);
		assert_true(dto->user_cookie.as_64 == number);
		assert_true(dto->transfered_length == message_len(number));
		memcpy(&sum, p, sizeof(sum));
		assert_true(sum == checksum(p + 8, message_len(number) - 8) + number);
		side_post_recv(side, number + BOTH_DEPTH);
	}
}

/* DTO-06 DTO-07 DTO-34 DTO-37 DTO-50 COMPAT-27 COMPAT-28 */
static void post_send__both_directions_sustained__intact(void **state)
{
	struct rig *rig = *state;
	struct side sides[2] = {{.ep = &rig->a, .buf = &rig->x}, {.ep = &rig->b, .buf = &rig->y}};
	const uint64_t end = dt_now_us() + 3 * (uint64_t)DT_WAIT_US;

	for (uint64_t i = 0; i < BOTH_DEPTH; i++)
		for (int s = 0; s < 2; s++)
			side_post_recv(&sides[s], i);
	while (sides[0].received < BOTH_MESSAGES || sides[1].received < BOTH_MESSAGES ||
	       sides[0].done < BOTH_MESSAGES || sides[1].done < BOTH_MESSAGES) {
		assert_true(dt_now_us() < end);
		for (int s = 0; s < 2; s++) {
			if (sides[s].sent < BOTH_MESSAGES &&
			    sides[s].sent - sides[s].done < BOTH_DEPTH)
				side_send(&sides[s]);
			side_progress(&sides[s]);
		}
	}
	dt_stays_empty(rig->a.request);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

#define MIX_LEN 30000u

/* DTO-37 DTO-41 COMPAT-28: Writes and Reads in both directions at once; all bytes are checked */
static void post_rdma__both_directions_sustained__intact(void **state)
{
	struct rig *rig = *state;
	const unsigned rounds = DT_SLOW ? 50 : 400;

	for (unsigned round = 0; round < rounds; round++) {
		const size_t len = 1 + round * 7919u % 15000;

		/* a: x[0] -> y[30000] -> x[15000]; b: y[0] -> x[30000] -> y[15000] */
		dt_fill(rig->x.p, len, round);
		dt_fill(rig->y.p, len, ~round);
		post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, MIX_LEN, len), 1, 0);
		post_write(&rig->b, dt_seg(&rig->y, 0, len), dt_rseg(&rig->x, MIX_LEN, len), 1, 0);
		post_read(&rig->a, dt_seg(&rig->x, 15000, len), dt_rseg(&rig->y, MIX_LEN, len), 2,
			  0);
		post_read(&rig->b, dt_seg(&rig->y, 15000, len), dt_rseg(&rig->x, MIX_LEN, len), 2,
			  0);
		for (uint64_t i = 1; i <= 2; i++) {
			expect_sent(&rig->a, i, len);
			expect_sent(&rig->b, i, len);
		}
		dt_check_pattern(rig->y.p + MIX_LEN, len, round);
		dt_check_pattern(rig->x.p + 15000, len, round);
		dt_check_pattern(rig->x.p + MIX_LEN, len, ~round);
		dt_check_pattern(rig->y.p + 15000, len, ~round);
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

#define sizes_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sizes_test(post_send__every_size_and_alignment__intact),
		sizes_test(post_rdma_write__every_size_and_alignment__intact),
		sizes_test(post_rdma_read__every_size_and_alignment__intact),
		rig_test(post_send__segments_of_different_regions__joined),
		rig_test(post_send__both_directions_sustained__intact),
		rig_test(post_rdma__both_directions_sustained__intact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
