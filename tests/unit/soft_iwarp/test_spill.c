// SPDX-License-Identifier: BSD-2-Clause
/* The space of messages that wait for a Receive: order, room, and what is moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../lib/random.h"
#include "soft/iwarp/transfer/segment.h"

#define SPACE 4096u
#define LONGEST (SPACE / 4)
#define GONE (SPACE / IW_SPILL_MOVES) /* so much of the oldest, and the others are moved */
#define RECORDS SPACE

static struct space {
	uint8_t bytes[SPACE + 64]; /* with a guard */
	struct iw_spill spill;
	struct {
		uint32_t size;
		uint8_t fill;
		const uint8_t *at;
	} waits[RECORDS]; /* the oldest is the first */
	uint32_t first, count, used;
} space;

static int begin(void **state)
{
	(void)state;
	memset(&space, 0, sizeof(space));
	memset(space.bytes + SPACE, 0xa5, 64);
	space.spill = (struct iw_spill){.data = space.bytes, .size = SPACE};
	return 0;
}

static bool add(uint32_t size)
{
	uint8_t *at = iw_spill_add(&space.spill, size);
	uint32_t i = (space.first + space.count) % RECORDS;

	assert_true(at || space.used + size + GONE > SPACE); /* DTO-117 */
	if (!at)
		return false;
	assert_true(at >= space.bytes && at + size <= space.bytes + SPACE);
	space.waits[i].size = size;
	space.waits[i].fill = (uint8_t)next_random();
	space.waits[i].at = at;
	memset(at, space.waits[i].fill, size);
	space.count++;
	space.used += size;
	return true;
}

/* The oldest record is whole; returns whether it is where it was put. */
static bool take(void)
{
	const uint8_t *at = iw_spill_first(&space.spill);
	uint32_t size = space.waits[space.first].size;
	bool is_there = at == space.waits[space.first].at;

	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(at[i], space.waits[space.first].fill);
	iw_spill_remove(&space.spill, size);
	space.first = (space.first + 1) % RECORDS;
	space.count--;
	space.used -= size;
	assert_int_equal(space.spill.first < space.spill.end, space.count != 0);
	return is_there;
}

static void expect_guard(void)
{
	for (int i = 0; i < 64; i++)
		assert_int_equal(space.bytes[SPACE + i], 0xa5);
}

/* DDP-17 DTO-117: any order of records of any size */
static void spill__random_records__first_in_first_out(void **state)
{
	(void)state;
	for (int round = 0; round < 200000; round++) {
		uint32_t most = round / 1000 % 3 ? 64 : LONGEST;

		if (next_random() & 1)
			(void)add(8 + next_random() % (most - 7) / 8 * 8);
		else if (space.count)
			(void)take();
	}
	while (space.count)
		(void)take();
	expect_guard();
}

/* DTO-117: the room of those that are gone is used again, but not for each of them */
static void spill__full__moved_when_enough_are_gone(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SPACE / 32; i++)
		assert_true(add(32));
	for (uint32_t i = 0; i < GONE / 32; i++) {
		assert_false(add(8));
		assert_true(take());
	}
	assert_false(add(GONE + 8));
	assert_true(add(GONE));
	assert_false(add(8));
	assert_false(take()); /* it was moved */
	while (space.count)
		(void)take();
	assert_true(add(SPACE));
	expect_guard();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(spill__random_records__first_in_first_out, begin),
		cmocka_unit_test_setup(spill__full__moved_when_enough_are_gone, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
