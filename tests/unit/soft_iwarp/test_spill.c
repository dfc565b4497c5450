// SPDX-License-Identifier: BSD-2-Clause
/* The ring of messages that wait for a Receive: order, room, and what is moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../lib/random.h"
#include "soft/iwarp/transfer/spill.h"

#define RING 4096u
#define RECORDS RING

static struct ring {
	uint8_t bytes[RING + 64]; /* with a guard */
	struct iw_spill spill;
	struct {
		uint32_t size;
		uint8_t fill;
		const uint8_t *at;
	} waits[RECORDS]; /* the oldest is the first */
	uint32_t first, count, used;
} ring;

static int begin(void **state)
{
	(void)state;
	memset(&ring, 0, sizeof(ring));
	memset(ring.bytes + RING, 0xa5, 64);
	ring.spill = (struct iw_spill){.data = ring.bytes, .size = RING};
	return 0;
}

static bool add(uint32_t size)
{
	uint8_t *at = iw_spill_add(&ring.spill, size);
	uint32_t i = (ring.first + ring.count) % RECORDS;

	assert_int_equal(at != NULL, ring.used + size <= RING); /* DTO-117 */
	if (!at)
		return false;
	assert_true(at >= ring.bytes && at + size <= ring.bytes + RING);
	ring.waits[i].size = size;
	ring.waits[i].fill = (uint8_t)next_random();
	ring.waits[i].at = at;
	memset(at, ring.waits[i].fill, size);
	ring.count++;
	ring.used += size;
	return true;
}

/* The oldest record is whole; returns whether it is where it was put. */
static bool take(void)
{
	const uint8_t *at = iw_spill_first(&ring.spill);
	uint32_t size = ring.waits[ring.first].size;
	bool is_there = at == ring.waits[ring.first].at;

	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(at[i], ring.waits[ring.first].fill);
	iw_spill_remove(&ring.spill, size);
	ring.first = (ring.first + 1) % RECORDS;
	ring.count--;
	ring.used -= size;
	assert_int_equal(ring.spill.records, ring.count);
	return is_there;
}

static void expect_guard(void)
{
	for (int i = 0; i < 64; i++)
		assert_int_equal(ring.bytes[RING + i], 0xa5);
}

/* DDP-17 DTO-117: any order of records of any size; all of the ring is room */
static void spill__random_records__first_in_first_out(void **state)
{
	(void)state;
	for (int round = 0; round < 200000; round++) {
		uint32_t most = round / 1000 % 3 ? 64 : RING;

		if (next_random() & 1)
			(void)add(8 + next_random() % most / 8 * 8);
		else if (ring.count)
			(void)take();
	}
	while (ring.count)
		(void)take();
	expect_guard();
}

/* DTO-117: an empty ring takes as many bytes as it has, whatever was there before */
static void spill__empty__all_of_it_is_room(void **state)
{
	(void)state;
	for (uint32_t before = 8; before <= RING; before += 8) {
		assert_true(add(before));
		(void)take();
		assert_true(add(RING / 2));
		assert_true(add(RING / 2));
		assert_false(add(8));
		(void)take();
		(void)take();
	}
	expect_guard();
}

/* Messages of one size, in a ring that stays full, are not moved while they wait. */
static void spill__full_all_the_time__nothing_is_moved(void **state)
{
	static const uint32_t sizes[] = {8, 88, 184, 1000};

	(void)state;
	for (int i = 0; i < 4; i++) {
		while (add(sizes[i]))
			;
		assert_true(ring.used > RING - 2 * sizes[i]);
		for (int round = 0; round < 10000; round++) {
			assert_true(take());
			assert_true(add(sizes[i]));
			assert_false(add(sizes[i]));
		}
		while (ring.count)
			assert_true(take());
	}
	expect_guard();
}

/* DTO-117: a long message finds the room at both ends */
static void spill__long_behind_short__older_ones_are_moved(void **state)
{
	(void)state;
	/* wrapped, with half of the ring free behind the oldest one */
	assert_true(add(2048));
	assert_true(add(8));
	(void)take();
	assert_true(add(2048));
	assert_true(add(2040));
	assert_false(add(8));
	while (ring.count)
		(void)take();
	assert_true(add(1000));
	assert_true(add(2000));
	(void)take();
	assert_true(add(2096));
	assert_false(take());
	(void)take();
	assert_int_equal(ring.count, 0);
	expect_guard();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(spill__random_records__first_in_first_out, begin),
		cmocka_unit_test_setup(spill__empty__all_of_it_is_room, begin),
		cmocka_unit_test_setup(spill__full_all_the_time__nothing_is_moved, begin),
		cmocka_unit_test_setup(spill__long_behind_short__older_ones_are_moved, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
