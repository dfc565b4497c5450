// SPDX-License-Identifier: BSD-2-Clause
/*
 * The byte ring alone: a ring that is replaced by a larger one.
 */
#include <errno.h>

#include "ring_rig.h"

#define LARGE SHM_LARGE_RING

/* Whatever an earlier use has left there. */
static alignas(SHM_LINE) uint8_t large[LARGE];

static int setup_large(void **state)
{
	memset(large, 0xa5, sizeof(large));
	return setup(state);
}

/* The consumer gets the larger ring, then the producer goes over to it. */
static void grow(struct rig *rig)
{
	rig->in.large = large;
	assert_true(shm_producer_grow(&rig->out, large));
}

static void put_visibly(struct rig *rig, uint64_t number, uint32_t payload)
{
	assert_int_equal(put(rig, number, payload), 1);
	(void)shm_producer_publish(&rig->out);
}

static void grow__entries_on_both_sides__taken_in_order(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 3; i++)
		put_visibly(rig, i, 100);
	grow(rig);
	for (uint64_t i = 3; i < 8; i++)
		put_visibly(rig, i, 200);
	for (uint64_t i = 0; i < 8; i++) {
		assert_true(shm_consumer_has_entry(&rig->in));
		take(rig, i, i < 3 ? 100 : 200);
	}
	assert_false(shm_consumer_has_entry(&rig->in));
	assert_int_equal(peek(rig), 0);
	assert_int_equal(shm_consumer_index(&rig->in), rig->out.produced);
	/* nothing is written to the first ring any more */
	memset(rig->bytes, 0, sizeof(rig->bytes));
	put_visibly(rig, 8, 100);
	take(rig, 8, 100);
	for (size_t i = 0; i < sizeof(rig->bytes); i++)
		assert_int_equal(rig->bytes[i], 0);
}

/* Several laps, with fillers; space is given back in quarters of the larger ring. */
static void grow__laps_of_the_larger_ring__nothing_lost(void **state)
{
	struct rig *rig = *state;
	uint64_t sent = 0, taken = 0;
	uint32_t given_back = 0;

	grow(rig);
	while (taken < 1000) {
		const uint32_t before = rig->in.released;

		while (put(rig, sent, (uint32_t)(sent * 97 % PAYLOAD)) == 1)
			sent++;
		(void)shm_producer_publish(&rig->out);
		take(rig, taken, (uint32_t)(taken * 97 % PAYLOAD));
		taken++;
		if (shm_consumer_release(&rig->in))
			given_back = rig->in.released - before;
	}
	assert_true(given_back >= SHM_RELEASE_AT(LARGE));
	for (; taken < sent; taken++)
		take(rig, taken, (uint32_t)(taken * 97 % PAYLOAD));
	assert_int_equal(peek(rig), 0);
}

/* What waits in the first ring counts, too, until it is given back. */
static void grow__first_ring_nearly_full__holds_as_much_as_the_larger_one(void **state)
{
	struct rig *rig = *state;
	uint64_t count = 0;

	while (count < SIZE / SHM_ENTRY_ALIGN - 2)
		put_visibly(rig, count++, 0);
	grow(rig);
	while (put(rig, count, 0) == 1)
		count++;
	(void)shm_producer_publish(&rig->out);
	/* one place for GROW, and the next header's */
	assert_int_equal(count, LARGE / SHM_ENTRY_ALIGN - 2);
	for (uint64_t i = 0; i < count; i++)
		take(rig, i, 0);
	assert_int_equal(peek(rig), 0);
}

static void grow__no_room_for_the_entry__unchanged(void **state)
{
	struct rig *rig = *state;
	uint64_t count = 0;

	rig->in.large = large;
	assert_int_equal(put(rig, count++, 0), 1); /* not published */
	assert_false(shm_producer_grow(&rig->out, large));
	while (put(rig, count, 0) == 1)
		count++;
	(void)shm_producer_publish(&rig->out);
	assert_false(shm_producer_grow(&rig->out, large));
	assert_ptr_equal(rig->out.bytes, rig->bytes);
	for (uint64_t i = 0; i < count; i++)
		take(rig, i, 0);
	assert_int_equal(peek(rig), 0);
	shm_consumer_give_back(&rig->in);
	assert_int_equal(shm_producer_refresh(&rig->out), 0);
	assert_true(shm_producer_grow(&rig->out, large));
	put_visibly(rig, count, 8);
	take(rig, count, 8);
}

/* What is left there may look like the next entry. */
static void grow__old_stamp_in_the_larger_ring__no_entry(void **state)
{
	struct rig *rig = *state;
	const uint32_t next = rig->out.produced + SHM_ENTRY_ALIGN;
	uint32_t *stamp = (void *)(large + (next & (LARGE - 1)));

	*stamp = SHM_STAMP(next);
	grow(rig);
	assert_int_equal(peek(rig), 0);
	assert_false(shm_consumer_has_entry(&rig->in));
	put_visibly(rig, 1, 8);
	take(rig, 1, 8);
}

/* --- entries of a liar --- */

static void put_grow(struct rig *rig, uint16_t payload)
{
	const struct shm_entry entry = {.type = SHM_ENTRY_GROW, .payload = payload};
	uint8_t *room;

	assert_int_equal(shm_producer_reserve(&rig->out, payload, &room), 1);
	shm_producer_commit(&rig->out, &entry);
	assert_true(shm_producer_publish(&rig->out));
}

static void grow_entry__consumer_has_no_larger_ring__invalid(void **state)
{
	struct rig *rig = *state;

	put_grow(rig, 0);
	assert_int_equal(peek(rig), -EPROTO);
}

static void grow_entry__with_payload__invalid(void **state)
{
	struct rig *rig = *state;

	rig->in.large = large;
	put_grow(rig, 8);
	assert_int_equal(peek(rig), -EPROTO);
}

static void grow_entry__second_one__invalid(void **state)
{
	struct rig *rig = *state;

	grow(rig);
	put_grow(rig, 0);
	assert_int_equal(peek(rig), -EPROTO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_large, teardown)
	const struct CMUnitTest tests[] = {
		TEST(grow__entries_on_both_sides__taken_in_order),
		TEST(grow__laps_of_the_larger_ring__nothing_lost),
		TEST(grow__first_ring_nearly_full__holds_as_much_as_the_larger_one),
		TEST(grow__no_room_for_the_entry__unchanged),
		TEST(grow__old_stamp_in_the_larger_ring__no_entry),
		TEST(grow_entry__consumer_has_no_larger_ring__invalid),
		TEST(grow_entry__with_payload__invalid),
		TEST(grow_entry__second_one__invalid),
	};

	return cmocka_run_group_tests_name("shm ring grow", tests, NULL, NULL);
}
