// SPDX-License-Identifier: BSD-2-Clause
/*
 * The byte ring alone: entries that are put as on the fast path.
 */
#include <errno.h>

#include "ring_rig.h"

/* --- entries that go out at once --- */

/* 1: visible to the consumer; 0: not possible at once. */
static int put_at_once(struct rig *rig, uint64_t number, uint32_t payload)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_DATA, .payload = payload, .address = number, .length = ~number};
	uint8_t *room = shm_producer_at_once(&rig->out, payload);

	if (!room && shm_producer_reserve(&rig->out, payload, &room) != 1)
		return 0;
	memset(room, (int)(number & 0xff), payload);
	shm_producer_put(&rig->out, room, &entry);
	return 1;
}

/* The place of the next header is kept free here, too. */
static void at_once__ring_full__refused(void **state)
{
	struct rig *rig = *state;
	uint64_t count = 0;

	while (put_at_once(rig, count, 0))
		count++;
	assert_int_equal(count, SIZE / SHM_ENTRY_ALIGN - 1);
	assert_int_equal(put(rig, count, 0), 0);
	for (uint64_t i = 0; i < count; i++)
		take(rig, i, 0);
	assert_int_equal(peek(rig), 0);
}

/* An entry may end at the end of the ring, but not behind it. */
static void at_once__at_the_end_of_the_ring__not_over_it(void **state)
{
	struct rig *rig = *state;
	uint32_t left;

	while ((left = SIZE - (rig->out.produced & (SIZE - 1))) > PAYLOAD || left < 256) {
		assert_int_equal(put(rig, 7, 32), 1);
		take(rig, 7, 32);
		shm_consumer_release(&rig->in);
	}
	assert_int_equal(shm_producer_refresh(&rig->out), 0); /* enough room */
	assert_null(shm_producer_at_once(&rig->out, left - SHM_ENTRY_ALIGN + 1));
	assert_non_null(shm_producer_at_once(&rig->out, left - SHM_ENTRY_ALIGN));
	assert_int_equal(put_at_once(rig, 8, left - SHM_ENTRY_ALIGN), 1);
	take(rig, 8, left - SHM_ENTRY_ALIGN);
	assert_int_equal(peek(rig), 0);
	assert_int_equal(put(rig, 9, 32), 1);
	take(rig, 9, 32);
}

/* Puts and takes entries until less than that is left before the end of the ring. */
static void go_near_the_end(struct rig *rig, uint32_t left)
{
	while (SIZE - (rig->out.produced & (SIZE - 1)) >= left) {
		assert_int_equal(put(rig, 7, 32), 1);
		take(rig, 7, 32);
		shm_consumer_release(&rig->in);
	}
}

/* Adds a filler and puts the entry behind it; both are visible at once. */
static void reserve__at_the_end_of_the_ring__filler_first(void **state)
{
	struct rig *rig = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_SEND, .payload = 200};
	uint8_t *payload;

	go_near_the_end(rig, 200);
	assert_null(shm_producer_at_once(&rig->out, 200));
	assert_int_equal(shm_producer_reserve(&rig->out, 200, &payload), 1);
	assert_ptr_equal(payload, rig->bytes + SHM_ENTRY_ALIGN);
	memset(payload, 9, 200);
	entry.address = 9;
	entry.length = ~9ull;
	shm_producer_put(&rig->out, payload, &entry);
	take(rig, 9, 200);
	assert_int_equal(peek(rig), 0);
}

/* Space that the consumer has given back meanwhile is found; other space is not used. */
static void reserve__ring_full__only_what_was_given_back(void **state)
{
	struct rig *rig = *state;
	uint32_t count = 0;

	while (put_at_once(rig, count, PAYLOAD))
		count++;
	for (uint32_t i = 0; i < count; i++)
		take(rig, i, PAYLOAD);
	assert_null(shm_producer_at_once(&rig->out, PAYLOAD));
	shm_consumer_give_back(&rig->in);
	assert_int_equal(put_at_once(rig, count, PAYLOAD), 1);
}

/* Mixed with reserve and commit, over bytes of earlier laps that look like entries. */
static void put__mixed_with_reserve_and_commit__in_order(void **state)
{
	struct rig *rig = *state;
	uint64_t at_once = 0;

	memset(rig->bytes, 0xff, sizeof(rig->bytes));
	shm_producer_init(&rig->out, rig->bytes, SIZE, &rig->consumed);
	for (uint64_t i = 0; i < 10000; i++) {
		uint32_t payload = (uint32_t)(i * 2654435761u >> 7) % 300;

		if (i % 3 && put_at_once(rig, i, payload)) {
			at_once++;
		} else {
			assert_int_equal(put(rig, i, payload), 1);
		}
		take(rig, i, payload);
		assert_int_equal(peek(rig), 0);
		shm_consumer_release(&rig->in);
	}
	assert_true(at_once > 5000);
}

/* Forges an entry with a valid stamp where the next one will stand. */
static void forge_behind(struct rig *rig, uint32_t stamp)
{
	struct shm_entry forged = {.stamp = stamp, .type = SHM_ENTRY_DATA};
	uint32_t behind = (rig->out.produced + SHM_ENTRY_ALIGN) & (SIZE - 1);

	memcpy(rig->bytes + behind, &forged, sizeof(forged));
}

/* Bytes of an earlier lap that look like the entry behind are cleared. */
static void put__old_bytes_behind_that_look_like_an_entry__not_seen(void **state)
{
	struct rig *rig = *state;
	struct shm_message message;

	forge_behind(rig, SHM_STAMP(rig->out.produced + SHM_ENTRY_ALIGN));
	assert_int_equal(put_at_once(rig, 1, 0), 1);
	take(rig, 1, 0);
	assert_int_equal(shm_consumer_peek_message(&rig->in, &message), SHM_HEAD_EMPTY);
	assert_int_equal(peek(rig), 0);

	assert_int_equal(put_at_once(rig, 2, 0), 1);
	take(rig, 2, 0);
	rig->out.produced -= SHM_ENTRY_ALIGN; /* as if it was not put yet */
	forge_behind(rig, SHM_STAMP(rig->in.consumed - SIZE));
	assert_int_equal(shm_consumer_peek_message(&rig->in, &message), SHM_HEAD_EMPTY);
}

/* A whole message of 40 bytes. */
static const struct shm_entry whole = {
	.type = SHM_ENTRY_SEND,
	.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
	.payload = 40,
	.done = 5,
	.key = 7,
	.length = 40,
};

static enum shm_head put_and_peek(struct rig *rig, const struct shm_entry *entry,
				  struct shm_message *message_out)
{
	uint8_t *room = shm_producer_at_once(&rig->out, entry->payload);

	if (!room)
		assert_int_equal(shm_producer_reserve(&rig->out, entry->payload, &room), 1);
	memset(room, 3, entry->payload);
	shm_producer_put(&rig->out, room, entry);
	return shm_consumer_peek_message(&rig->in, message_out);
}

/* Returns what peek returns, and takes nothing. */
static void peek_message__whole_message__found_and_taken(void **state)
{
	struct rig *rig = *state;
	uint32_t before = rig->in.consumed;
	struct shm_message message;
	struct shm_entry entry = whole;

	assert_int_equal(shm_consumer_peek_message(&rig->in, &message), SHM_HEAD_EMPTY);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(put_and_peek(rig, &entry, &message), SHM_HEAD_MESSAGE);
		assert_int_equal(message.len, 40);
		assert_int_equal(message.done, 5);
		assert_int_equal(message.bytes[39], 3);
		assert_int_equal(rig->in.consumed, before);
		shm_consumer_take(&rig->in, message.len);
		assert_int_equal(rig->in.consumed, rig->out.produced);
		assert_int_equal(shm_consumer_peek_message(&rig->in, &message), SHM_HEAD_EMPTY);
		before = rig->in.consumed;
		entry.flags |= SHM_FLAG_SOLICITED;
	}
}

/* DTO-79: Anything else, valid or not, is left to peek. */
static void peek_message__anything_else__left_to_peek(void **state)
{
	struct rig *rig = *state;
	struct shm_entry others[7];
	struct shm_message message;

	for (unsigned i = 0; i < 7; i++)
		others[i] = whole;
	others[0].type = SHM_ENTRY_WRITE;
	others[1].flags = SHM_FLAG_FIRST;
	others[2].flags = SHM_FLAG_LAST;
	others[3].flags |= 0x80;
	others[4].length = 41;
	others[5].payload = 0;
	others[5].length = 0;
	others[6].length += UINT64_C(1) << 32;
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(put_and_peek(rig, &others[i], &message), SHM_HEAD_OTHER);
		assert_int_equal(peek(rig), 1);
		shm_consumer_take(&rig->in, others[i].payload);
	}
}

static void peek_message__over_the_end_of_the_ring__left_to_peek(void **state)
{
	struct rig *rig = *state;
	struct shm_entry entry = whole;
	struct shm_message message;
	struct shm_entry *there;

	go_near_the_end(rig, 256);
	there = (void *)(rig->bytes + (rig->out.produced & (SIZE - 1)));
	entry.payload = (uint16_t)(SIZE - (rig->out.produced & (SIZE - 1)) - SHM_ENTRY_ALIGN);
	entry.length = entry.payload;
	assert_int_equal(shm_producer_refresh(&rig->out), 0); /* enough room */
	assert_int_equal(put_and_peek(rig, &entry, &message), SHM_HEAD_MESSAGE);
	/* one byte more, as a liar stores it */
	there->payload++;
	there->length++;
	assert_int_equal(shm_consumer_peek_message(&rig->in, &message), SHM_HEAD_OTHER);
	assert_int_equal(peek(rig), -EPROTO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(at_once__ring_full__refused),
		TEST(at_once__at_the_end_of_the_ring__not_over_it),
		TEST(reserve__at_the_end_of_the_ring__filler_first),
		TEST(reserve__ring_full__only_what_was_given_back),
		TEST(put__mixed_with_reserve_and_commit__in_order),
		TEST(put__old_bytes_behind_that_look_like_an_entry__not_seen),
		TEST(peek_message__whole_message__found_and_taken),
		TEST(peek_message__anything_else__left_to_peek),
		TEST(peek_message__over_the_end_of_the_ring__left_to_peek),
	};

	return cmocka_run_group_tests_name("shm ring", tests, NULL, NULL);
}
