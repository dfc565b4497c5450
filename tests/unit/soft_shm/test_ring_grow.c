// SPDX-License-Identifier: BSD-2-Clause
/*
 * The byte ring alone: a ring that was full often is replaced by the large one.
 */
#include <errno.h>
#include <sys/mman.h>

#include "ring_rig.h"

#define LARGE SHM_LARGE_RING

static int populate_errno; /* of madvise; 0: it works */

int __real_madvise(void *address, size_t length, int advice);
int __wrap_madvise(void *address, size_t length, int advice);
int __wrap_madvise(void *address, size_t length, int advice)
{
	if (!populate_errno)
		return __real_madvise(address, length, advice);
	errno = populate_errno;
	return -1;
}

static int setup_full(void **state)
{
	populate_errno = EINVAL; /* an old kernel: no more than private memory can */
	return setup(state);
}

/* Fills the ring with entries without payload: the number of entries in it. */
static uint64_t fill(struct rig *rig, uint64_t from)
{
	while (rig->out.mask == SIZE - 1 && put(rig, from, 0) == 1)
		from++;
	return from;
}

/* The producer finds no room so often, and goes on in the large ring. Takes nothing. */
static uint64_t grow(struct rig *rig)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < 2 * SHM_GROW_AFTER && rig->out.mask == SIZE - 1; i++)
		count = fill(rig, count);
	assert_int_equal(rig->out.mask, LARGE - 1);
	assert_int_equal(put(rig, count, 0), 1);
	return count + 1;
}

static void take_all(struct rig *rig, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		assert_true(shm_consumer_has_entry(&rig->in));
		take(rig, from, 0);
	}
}

static void reserve__full_often__continues_in_the_large_ring(void **state)
{
	struct rig *rig = *state;
	uint64_t count = grow(rig);

	take_all(rig, 0, count);
	assert_false(shm_consumer_has_entry(&rig->in));
	assert_int_equal(peek(rig), 0);
	assert_int_equal(shm_consumer_index(&rig->in), rig->out.produced);
	/* nothing is written to the first ring any more, and an entry may be larger */
	memset(rig->bytes, 0, sizeof(rig->bytes));
	assert_int_equal(put(rig, 8, SHM_LARGE_PAYLOAD), 1);
	take(rig, 8, SHM_LARGE_PAYLOAD);
	for (size_t i = 0; i < sizeof(rig->bytes); i++)
		assert_int_equal(rig->bytes[i], 0);
}

/* Once is not often: the consumer only was late. */
static void reserve__full_some_times__the_same_ring(void **state)
{
	struct rig *rig = *state;
	uint64_t count = fill(rig, 0);

	for (unsigned i = 1; i < SHM_GROW_AFTER - 1; i++)
		assert_int_equal(put(rig, count, 0), 0);
	assert_int_equal(rig->out.mask, SIZE - 1);
	assert_int_equal(count, SIZE / SHM_ENTRY_ALIGN - 1);
}

/* Several laps, with fillers; space is given back in quarters of the large ring. */
static void grow__laps_of_the_large_ring__nothing_lost(void **state)
{
	struct rig *rig = *state;
	uint64_t sent, taken = 0;
	uint32_t given_back = 0;

	take_all(rig, 0, grow(rig));
	sent = taken;
	while (taken < 1000) {
		const uint32_t before = *rig->in.consumed_word;

		while (put(rig, sent, (uint32_t)(sent * 97 % SHM_LARGE_PAYLOAD)) == 1)
			sent++;
		take(rig, taken, (uint32_t)(taken * 97 % SHM_LARGE_PAYLOAD));
		taken++;
		if (shm_consumer_release(&rig->in))
			given_back = *rig->in.consumed_word - before;
	}
	assert_true(given_back >= SHM_RELEASE_AT(LARGE));
	for (; taken < sent; taken++)
		take(rig, taken, (uint32_t)(taken * 97 % SHM_LARGE_PAYLOAD));
	assert_int_equal(peek(rig), 0);
}

/* What waits in the first ring counts, too, until it is given back. */
static void grow__first_ring_full__holds_as_much_as_the_large_one(void **state)
{
	struct rig *rig = *state;
	uint64_t count = grow(rig);

	while (put(rig, count, 0) == 1)
		count++;
	/* one place for GROW, and the next header's */
	assert_int_equal(count, LARGE / SHM_ENTRY_ALIGN - 2);
	take_all(rig, 0, count);
	assert_int_equal(peek(rig), 0);
}

/* A shortage would end the process when the ring is written. */
static void grow__no_memory__the_same_ring_for_good(void **state)
{
	struct rig *rig = *state;
	uint64_t count = fill(rig, 0);

	populate_errno = ENOMEM;
	for (unsigned i = 0; i < 3 * SHM_GROW_AFTER; i++)
		assert_int_equal(put(rig, count, 0), 0);
	populate_errno = EINVAL;
	assert_int_equal(put(rig, count, 0), 0);
	assert_int_equal(rig->out.mask, SIZE - 1);
	take_all(rig, 0, count);
	shm_consumer_give_back(&rig->in);
	assert_int_equal(put(rig, count, 8), 1);
	take(rig, count, 8);
}

/* --- entries of a liar --- */

static void put_grow(struct rig *rig, uint16_t payload)
{
	const struct shm_entry entry = {.type = SHM_ENTRY_GROW, .payload = payload};
	uint8_t *room;

	assert_int_equal(shm_producer_reserve(&rig->out, payload, &room), 1);
	shm_producer_commit(&rig->out, &entry);
}

static void grow_entry__with_payload__invalid(void **state)
{
	struct rig *rig = *state;

	put_grow(rig, 8);
	assert_int_equal(peek(rig), -EPROTO);
}

static void grow_entry__second_one__invalid(void **state)
{
	struct rig *rig = *state;

	take_all(rig, 0, grow(rig));
	put_grow(rig, 0);
	assert_int_equal(peek(rig), -EPROTO);
}

/* An entry that only the large ring may have. */
static void first_ring__entry_of_the_large_one__invalid(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(put(rig, 1, PAYLOAD + 1), 1);
	assert_int_equal(peek(rig), -EPROTO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_full, teardown)
	const struct CMUnitTest tests[] = {
		TEST(reserve__full_often__continues_in_the_large_ring),
		TEST(reserve__full_some_times__the_same_ring),
		TEST(grow__laps_of_the_large_ring__nothing_lost),
		TEST(grow__first_ring_full__holds_as_much_as_the_large_one),
		TEST(grow__no_memory__the_same_ring_for_good),
		TEST(grow_entry__with_payload__invalid),
		TEST(grow_entry__second_one__invalid),
		TEST(first_ring__entry_of_the_large_one__invalid),
	};

	return cmocka_run_group_tests_name("shm ring grow", tests, NULL, NULL);
}
