// SPDX-License-Identifier: BSD-2-Clause
/*
 * The byte ring alone: order, space, wrap-around, and ends that do not follow the rules.
 */
#include <errno.h>
#include <pthread.h>

#include "ring_rig.h"

static void ring__many_entries_of_all_sizes__come_in_order(void **state)
{
	struct rig *rig = *state;
	uint64_t written = 0, taken = 0;
	uint32_t sizes[64];

	while (taken < 100000) {
		uint32_t payload = (uint32_t)(written * 2654435761u >> 7) % (PAYLOAD + 1);

		if (written - taken < 64 && put(rig, written, payload) == 1) {
			sizes[written++ % 64] = payload;
			continue;
		}
		assert_true(written > taken);
		do {
			take(rig, taken, sizes[taken % 64]);
			taken++;
		} while (taken < written && taken % 5 != 0);
		shm_consumer_release(&rig->in);
	}
}

/* The place of the next header is kept free; space is given back in quarters. */
static void reserve__ring_full__refused_until_space_is_released(void **state)
{
	const uint64_t quarter = SIZE / 4 / SHM_ENTRY_ALIGN;
	struct rig *rig = *state;
	uint64_t count = 0;

	while (put(rig, count, 0) == 1)
		count++;
	assert_int_equal(count, SIZE / SHM_ENTRY_ALIGN - 1);
	for (uint64_t i = 0; i < quarter; i++) {
		assert_false(shm_consumer_release(&rig->in));
		if (i % 8 == 0) /* not so often that the large ring follows */
			assert_int_equal(put(rig, count, 0), 0);
		take(rig, i, 0);
	}
	assert_int_equal(put(rig, count, 0), 0);
	assert_true(shm_consumer_release(&rig->in));
	assert_false(shm_consumer_release(&rig->in));
	for (uint64_t i = 0; i < quarter; i++)
		assert_int_equal(put(rig, count + i, 0), 1);
	assert_int_equal(put(rig, 0, 0), 0);
}

/*
 * The side that creates the segment can put any index there before the other side starts from it.
 */
static void init__index_within_an_entry_unit__stays_inside_the_ring(void **state)
{
	struct {
		_Atomic uint32_t consumed;
		alignas(SHM_LINE) uint8_t bytes[SIZE];
		uint8_t guard[2 * PAYLOAD];
	} *ring = aligned_alloc(SHM_LINE, sizeof(*ring));
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .payload = PAYLOAD};
	struct shm_producer out;
	struct shm_consumer in;
	uint8_t *room;
	unsigned i;

	(void)state;
	assert_non_null(ring);
	memset(ring, 0, sizeof(*ring));
	atomic_init(&ring->consumed, SIZE - 1);
	shm_consumer_init(&in, ring->bytes, SIZE, &ring->consumed);
	assert_int_equal(in.consumed % SHM_ENTRY_ALIGN, 0);
	shm_producer_init(&out, ring->bytes, SIZE, &ring->consumed);
	while (shm_producer_reserve(&out, PAYLOAD, &room) == 1) {
		assert_in_range(room - ring->bytes, 0, SIZE - PAYLOAD);
		memset(room, 1, PAYLOAD);
		shm_producer_commit(&out, &entry);
	}
	for (i = 0; i < sizeof(ring->guard); i++)
		assert_int_equal(ring->guard[i], 0);
	free(ring);
}

/* Bytes of an earlier lap, or of a payload, are not taken for an entry. */
static void peek__old_bytes_that_look_like_an_entry__not_seen(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 3 * SIZE / SHM_ENTRY_ALIGN; i++) {
		uint32_t *words = (uint32_t *)(void *)rig->bytes;

		/* whatever may be the place behind the entry claims to be the next one */
		for (uint32_t at = rig->out.produced + SHM_ENTRY_ALIGN;
		     at != rig->out.produced + SIZE; at += SHM_ENTRY_ALIGN)
			words[(at & (SIZE - 1)) / 4] = SHM_STAMP(at);
		assert_int_equal(put(rig, i, (uint32_t)(i * 7 % 200)), 1);
		take(rig, i, (uint32_t)(i * 7 % 200));
		assert_int_equal(peek(rig), 0);
		shm_consumer_release(&rig->in);
	}
}

/* An empty ring takes the largest entry at any index. */
static void reserve__empty_ring__largest_entry_fits_everywhere(void **state)
{
	struct rig *rig = *state;
	uint64_t i;

	for (i = 0; i < 2 * SIZE / SHM_ENTRY_ALIGN; i++) {
		assert_int_equal(put(rig, i, PAYLOAD), 1);
		take(rig, i, PAYLOAD);
		shm_consumer_release(&rig->in);
		assert_int_equal(put(rig, i, 0), 1);
		take(rig, i, 0);
		shm_consumer_release(&rig->in);
	}
}

/* --- a consumer that breaks the rules --- */

static void reserve__consumed_ahead_of_produced__protocol_error(void **state)
{
	struct rig *rig = *state;

	while (put(rig, 0, PAYLOAD) == 1)
		;
	atomic_store(&rig->consumed, rig->out.produced + SHM_ENTRY_ALIGN);
	assert_int_equal(put(rig, 1, PAYLOAD), -EPROTO);
}

static void reserve__consumed_goes_back__protocol_error(void **state)
{
	struct rig *rig = *state;
	uint32_t start = atomic_load(&rig->consumed);

	while (put(rig, 0, PAYLOAD) == 1)
		;
	atomic_store(&rig->consumed, start - SHM_ENTRY_ALIGN);
	assert_int_equal(put(rig, 1, PAYLOAD), -EPROTO);
}

static void reserve__consumed_within_an_entry_unit__protocol_error(void **state)
{
	struct rig *rig = *state;

	while (put(rig, 0, PAYLOAD) == 1)
		;
	atomic_store(&rig->consumed, atomic_load(&rig->consumed) + 1);
	assert_int_equal(put(rig, 1, PAYLOAD), -EPROTO);
}

/* --- a producer that breaks the rules --- */

/* One forged header where the next entry is expected. */
static int peek_forged(struct rig *rig, struct shm_entry entry)
{
	uint32_t at = rig->in.consumed;

	entry.stamp += SHM_STAMP(at);
	memcpy(rig->bytes + (at & (SIZE - 1)), &entry, sizeof(entry));
	return peek(rig);
}

static void peek__stamp_of_another_place__not_seen(void **state)
{
	const uint32_t wrong[] = {1, 32, (uint32_t)-32, SIZE, (uint32_t)-SIZE, 1u << 31};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(peek_forged(rig, (struct shm_entry){.stamp = wrong[i],
								     .type = SHM_ENTRY_DATA}),
				 0);
}

static void peek__forged_header__protocol_error(void **state)
{
	const struct shm_entry forged[] = {
		{.type = SHM_ENTRY_FILLER},		       /* not up to the end */
		{.type = SHM_ENTRY_FILLER, .payload = 96},     /* over it */
		{.type = SHM_ENTRY_FILLER, .payload = 0xffff}, /* the largest */
		{.type = SHM_ENTRY_DATA, .payload = PAYLOAD + 1},
		{.type = SHM_ENTRY_DATA, .payload = 0xffff},
		{.type = SHM_ENTRY_DATA, .payload = 96}, /* over the end */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		void *fresh;

		setup(&fresh);
		assert_int_equal(peek_forged(fresh, forged[i]), -EPROTO);
		teardown(&fresh);
	}
}

/* Fillers that follow each other could keep the consumer busy for ever. */
static void peek__filler_upon_filler__protocol_error(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(peek_forged(rig, (struct shm_entry){.type = SHM_ENTRY_FILLER,
							     .payload = 96 - SHM_ENTRY_ALIGN}),
			 0);
	assert_int_equal(rig->in.consumed % SIZE, 0);
	assert_int_equal(peek_forged(rig, (struct shm_entry){.type = SHM_ENTRY_FILLER,
							     .payload = SIZE - SHM_ENTRY_ALIGN}),
			 -EPROTO);
}

/* --- two threads --- */

#define MESSAGES 50000u

static void *produce(void *arg)
{
	struct rig *rig = arg;
	uint64_t i;

	for (i = 0; i < MESSAGES;)
		i += put(rig, i, (uint32_t)(i % 97)) == 1;
	return NULL;
}

static void ring__two_threads__nothing_lost_or_torn(void **state)
{
	struct rig *rig = *state;
	pthread_t thread;
	uint64_t i;

	assert_int_equal(pthread_create(&thread, NULL, produce, rig), 0);
	for (i = 0; i < MESSAGES;) {
		if (peek(rig) != 1)
			continue;
		take(rig, i, (uint32_t)(i % 97));
		i++;
		shm_consumer_release(&rig->in);
	}
	pthread_join(thread, NULL);
	assert_int_equal(peek(rig), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ring__many_entries_of_all_sizes__come_in_order),
		TEST(reserve__ring_full__refused_until_space_is_released),
		TEST(reserve__empty_ring__largest_entry_fits_everywhere),
		TEST(reserve__consumed_ahead_of_produced__protocol_error),
		TEST(reserve__consumed_goes_back__protocol_error),
		TEST(reserve__consumed_within_an_entry_unit__protocol_error),
		TEST(init__index_within_an_entry_unit__stays_inside_the_ring),
		TEST(peek__old_bytes_that_look_like_an_entry__not_seen),
		TEST(peek__stamp_of_another_place__not_seen),
		TEST(peek__forged_header__protocol_error),
		TEST(peek__filler_upon_filler__protocol_error),
		TEST(ring__two_threads__nothing_lost_or_torn),
	};

	return cmocka_run_group_tests_name("shm ring", tests, NULL, NULL);
}
