// SPDX-License-Identifier: BSD-2-Clause
/*
 * One end of a connection whose rings become larger (transfer/grow.h), and a peer that the test
 * plays.
 */
#include "fast.h"

#include <errno.h>
#include <sys/mman.h>

#include "soft/shm/transfer/grow.h"

#define LEN SHM_REQUEST_PAYLOAD
#define NO_SECOND "memory cannot be mapped a second time"
#define IN_RING 3u /* messages of that length that the first ring holds */

/* Messages go through the ring, and none is placed by a copy of the kernel. */
static int setup_grow(void **state)
{
	*state = open_without_map(false);
	return 0;
}

int __real_madvise(void *memory, size_t size, int advice);
int __wrap_madvise(void *memory, size_t size, int advice);

static int populate_error;

int __wrap_madvise(void *memory, size_t size, int advice)
{
	if (advice != MADV_POPULATE_WRITE || !populate_error)
		return __real_madvise(memory, size, advice);
	errno = populate_error;
	return -1;
}

void *__real_mremap(void *old, size_t old_size, size_t new_size, int flags);
void *__wrap_mremap(void *old, size_t old_size, size_t new_size, int flags);

static bool is_remap_refused;
static unsigned remaps;

void *__wrap_mremap(void *old, size_t old_size, size_t new_size, int flags)
{
	remaps++;
	return is_remap_refused ? MAP_FAILED : __real_mremap(old, old_size, new_size, flags);
}

static uint32_t our_word(const struct lab *lab)
{
	return atomic_load(&lab->conn->mine->large);
}

/* Posts messages until one waits for space. */
static uint32_t fill_ring(struct lab *lab)
{
	for (uint32_t i = 0; i <= IN_RING; i++) {
		fill(lab->memory + i * LEN, LEN, i);
		post_send(lab, i * LEN, LEN, DAT_COMPLETION_DEFAULT_FLAG);
	}
	assert_true(lab->conn->is_space_wanted);
	return IN_RING + 1;
}

/* Passes that find the ring full. */
static void pass(struct lab *lab, unsigned count)
{
	while (count--)
		lab_pass(lab);
}

static void want_larger(struct lab *lab)
{
	pass(lab, SHM_GROW_AFTER);
	assert_int_equal(our_word(lab), SHM_LARGE_WANTED);
}

/* The peer takes the next message. */
static void take_message(uint32_t seed)
{
	const uint8_t *bytes;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &bytes), 1);
	assert_int_equal(entry.type, SHM_ENTRY_SEND);
	assert_int_equal(entry.payload, LEN);
	expect_bytes(bytes, LEN, seed);
	shm_consumer_pop(&peer_in);
}

/* The peer can read the larger ring. */
static void peer_maps(struct lab *lab)
{
	uint8_t *mapping;

	ABILITY_NEED(ability_second_mapping(), NO_SECOND);
	mapping = mremap(lab->conn->segment, 0, sizeof(struct shm_file), MREMAP_MAYMOVE);
	assert_ptr_not_equal(mapping, MAP_FAILED);
	peer_in.large = ((struct shm_file *)(void *)mapping)->large[SHM_PASSIVE];
	atomic_store(&lab->peer->large, SHM_LARGE_MAPPED);
}

static void peer_unmaps(void)
{
	const size_t offset = offsetof(struct shm_file, large[SHM_PASSIVE]);
	const uint8_t *ring = peer_in.large ? peer_in.large : peer_in.bytes;

	munmap((void *)(uintptr_t)(ring - offset), sizeof(struct shm_file));
}

/* So much that space is given back. */
static void exchange_quarter(struct lab *lab)
{
	const uint32_t before = atomic_load(&lab->conn->mine->request_consumed);

	while (atomic_load(&lab->conn->mine->request_consumed) == before)
		exchange(lab, 1000, 0);
}

/* --- our requests --- */

static void ring_full__several_passes__larger_one_wanted(void **state)
{
	struct lab *lab = *state;

	assert_int_equal(our_word(lab), 0);
	fill_ring(lab);
	pass(lab, SHM_GROW_AFTER - 1);
	assert_int_equal(our_word(lab), 0);
	want_larger(lab);
	pass(lab, 3);
	assert_int_equal(our_word(lab), SHM_LARGE_WANTED);
	assert_null(lab->conn->grow.file); /* the peer has not mapped it */
}

/* DTO-34: in order, whole, and with the space of the larger ring */
static void ring_full__peer_has_mapped_the_larger_one__requests_continue_there(void **state)
{
	struct lab *lab = *state;
	uint32_t posted = fill_ring(lab);

	want_larger(lab);
	peer_maps(lab);
	lab_pass(lab); /* no room for GROW yet */
	assert_int_equal(lab->done, 0);
	take_message(0);
	shm_consumer_give_back(&peer_in);
	lab_pass(lab);
	assert_true(lab->conn->grow.is_out);
	assert_false(lab->conn->is_space_wanted);
	for (; posted < LAB_REQUESTS; posted++) { /* more than the first one holds */
		fill(lab->memory + posted * LEN, LEN, posted);
		post_send(lab, posted * LEN, LEN, DAT_COMPLETION_DEFAULT_FLAG);
		assert_false(lab->conn->is_space_wanted);
	}
	for (uint32_t i = 1; i < posted; i++)
		take_message(i);
	atomic_store(&lab->peer->done, posted);
	lab_pass(lab);
	assert_int_equal(lab->done, posted);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	peer_unmaps();
}

static void larger_ring__peer_offers_it_unasked__used_only_when_full(void **state)
{
	struct lab *lab = *state;

	peer_maps(lab);
	post_send(lab, 0, LEN, DAT_COMPLETION_DEFAULT_FLAG);
	pass(lab, 2 * SHM_GROW_AFTER);
	assert_null(lab->conn->grow.file);
	assert_int_equal(our_word(lab), 0);
	peer_unmaps();
}

/* The ring was full, the peer has mapped the larger one, and takes so many messages. */
static void make_space(struct lab *lab, uint32_t messages)
{
	fill_ring(lab);
	want_larger(lab);
	peer_maps(lab);
	for (uint32_t i = 0; i < messages; i++)
		take_message(i);
	shm_consumer_give_back(&peer_in);
}

/* There is space for GROW. */
static void grow_at_once(struct lab *lab)
{
	make_space(lab, 1);
	lab_pass(lab);
}

#define FITTING 2u /* so many are taken before the next one fits: it needs a filler, too */

static void larger_ring__too_many_of_the_engine__first_one_stays(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->engine.grown_count, SHM_GROWN_MAX);
	make_space(lab, FITTING);
	lab_pass(lab);
	assert_false(lab->conn->grow.is_out);
	assert_null(lab->conn->grow.file);
	assert_false(lab->conn->is_space_wanted);
	for (uint32_t i = FITTING; i <= IN_RING; i++)
		take_message(i);
	peer_unmaps();
	assert_int_equal(atomic_load(&lab->engine.grown_count), SHM_GROWN_MAX);
}

/* A process that may make small files only; behind the end of the file is nothing to map. */
static void larger_ring__not_in_the_file__first_one_stays(void **state)
{
	struct lab *lab = *state;

	lab->conn->grow.is_small = true;
	peer_maps(lab);
	atomic_store(&lab->peer->large, SHM_LARGE_WANTED | SHM_LARGE_MAPPED);
	fill_ring(lab);
	pass(lab, 2 * SHM_GROW_AFTER);
	take_message(0);
	shm_consumer_give_back(&peer_in);
	lab_pass(lab);
	assert_null(lab->conn->grow.file);
	assert_int_equal(our_word(lab), 0);
	peer_unmaps();
}

/* Memory that is short when the ring is first written would end the process. */
static void larger_ring__no_memory__first_one_stays(void **state)
{
	struct lab *lab = *state;

	make_space(lab, FITTING);
	populate_error = ENOMEM;
	lab_pass(lab);
	populate_error = 0;
	assert_false(lab->conn->grow.is_out);
	assert_false(lab->conn->is_space_wanted);
	for (uint32_t i = FITTING; i <= IN_RING; i++)
		take_message(i);
	assert_int_equal(atomic_load(&lab->engine.grown_count), 1); /* until the end */
	peer_unmaps();
}

/* Neither direction tries again. */
static void larger_ring__mapping_refused__first_one_stays(void **state)
{
	struct lab *lab = *state;

	make_space(lab, 1);
	remaps = 0;
	is_remap_refused = true;
	pass(lab, 3);
	atomic_store(&lab->peer->large, SHM_LARGE_WANTED | SHM_LARGE_MAPPED);
	exchange_quarter(lab);
	is_remap_refused = false;
	assert_int_equal(remaps, 1);
	assert_null(lab->conn->grow.file);
	assert_int_equal(our_word(lab), SHM_LARGE_WANTED);
	assert_int_equal(atomic_load(&lab->engine.grown_count), 0);
	peer_unmaps();
}

/* A kernel that cannot tell beforehand. */
static void larger_ring__kernel_cannot_populate__used(void **state)
{
	struct lab *lab = *state;

	populate_error = EINVAL;
	grow_at_once(lab);
	populate_error = 0;
	assert_true(lab->conn->grow.is_out);
	peer_unmaps();
}

static void larger_ring__others_end__used(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->engine.grown_count, SHM_GROWN_MAX);
	grow_at_once(lab);
	assert_false(lab->conn->grow.is_out);
	atomic_store(&lab->engine.grown_count, SHM_GROWN_MAX - 1);
	lab->conn->is_space_wanted = true;
	lab_pass(lab);
	assert_true(lab->conn->grow.is_out);
	assert_int_equal(atomic_load(&lab->engine.grown_count), SHM_GROWN_MAX);
	peer_unmaps();
}

/* Strangers leave most places to the others. */
static void larger_ring__peer_is_not_trusted__only_if_few_are_used(void **state)
{
	struct lab *lab = *state;

	lab->conn->remote.is_trusted = false;
	atomic_store(&lab->engine.grown_count, SHM_GROWN_STRANGERS);
	grow_at_once(lab);
	assert_false(lab->conn->grow.is_out);
	lab->conn->remote.is_trusted = true;
	lab->conn->is_space_wanted = true;
	lab_pass(lab);
	assert_true(lab->conn->grow.is_out);
	peer_unmaps();
}

/* So waits a request for a piece of the pool. */
static void ring_not_full__request_waits__no_larger_one_wanted(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, LEN, DAT_COMPLETION_DEFAULT_FLAG);
	for (unsigned i = 0; i < 2 * SHM_GROW_AFTER; i++) {
		lab->conn->is_space_wanted = true;
		lab_pass(lab);
	}
	assert_int_equal(our_word(lab), 0);
}

static void larger_ring__connection_ends__unmapped_and_not_counted(void **state)
{
	struct lab *lab = *state;

	grow_at_once(lab);
	assert_int_equal(atomic_load(&lab->engine.grown_count), 1);
	shm_grow_end(lab->conn);
	assert_int_equal(msync(lab->conn->grow.file, SHM_PAGE, MS_ASYNC), -1);
	assert_int_equal(atomic_load(&lab->engine.grown_count), 0);
	lab->conn->grow.file = NULL;
	peer_unmaps();
}

/* --- the peer's requests --- */

static void larger_ring__peer_wants_it__mapped_when_space_is_given_back(void **state)
{
	struct lab *lab = *state;

	exchange_quarter(lab);
	assert_int_equal(our_word(lab), 0);
	assert_null(lab->conn->grow.file);
	ABILITY_NEED(ability_second_mapping(), NO_SECOND);
	atomic_store(&lab->peer->large, SHM_LARGE_WANTED);
	lab_pass(lab);
	assert_int_equal(our_word(lab), 0);
	exchange_quarter(lab);
	assert_int_equal(our_word(lab), SHM_LARGE_MAPPED);
	assert_non_null(lab->conn->request_in.large);
	/* nothing changes until the peer goes over to it */
	exchange_quarter(lab);
	assert_int_equal(shm_producer_refresh(&lab->peer_out), 0);
	assert_true(shm_producer_grow(&lab->peer_out, lab->conn->grow.file->large[SHM_ACTIVE]));
	for (unsigned i = 0; i < 1000; i++)
		exchange(lab, 700, 0);
	assert_true(lab_is_open(lab));
	assert_int_equal(our_word(lab), SHM_LARGE_MAPPED);
	assert_null(lab->conn->request_in.large);
}

/* A poll finds the message behind GROW at once, whichever way it takes. */
static void larger_ring__message_behind_the_change__found(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED(ability_second_mapping(), NO_SECOND);
	atomic_store(&lab->peer->large, SHM_LARGE_WANTED);
	exchange_quarter(lab);
	assert_int_equal(shm_producer_refresh(&lab->peer_out), 0);
	assert_true(shm_producer_grow(&lab->peer_out, lab->conn->grow.file->large[SHM_ACTIVE]));
	assert_true(shm_conn_has_work(lab->conn));
	exchange(lab, 8, 0);
	lab_pass(lab); /* what is done is reported */
	assert_false(shm_conn_has_work(lab->conn));
}

static void larger_ring__too_many_of_the_engine__not_offered(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->engine.grown_count, SHM_GROWN_MAX);
	atomic_store(&lab->peer->large, SHM_LARGE_WANTED);
	exchange_quarter(lab);
	assert_int_equal(our_word(lab), 0);
	assert_null(lab->conn->request_in.large);
	assert_int_equal(atomic_load(&lab->engine.grown_count), SHM_GROWN_MAX);
	atomic_store(&lab->engine.grown_count, 0);
}

/* A peer that goes over to a ring that was never offered. */
static void larger_ring__change_without_an_offer__broken(void **state)
{
	struct lab *lab = *state;
	static uint8_t large[SHM_LARGE_RING];

	assert_true(shm_producer_grow(&lab->peer_out, large));
	lab_pass(lab);
	assert_int_equal(lab->end, BROKEN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_grow, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ring_full__several_passes__larger_one_wanted),
		TEST(ring_full__peer_has_mapped_the_larger_one__requests_continue_there),
		TEST(larger_ring__peer_offers_it_unasked__used_only_when_full),
		TEST(larger_ring__too_many_of_the_engine__first_one_stays),
		TEST(larger_ring__not_in_the_file__first_one_stays),
		TEST(larger_ring__no_memory__first_one_stays),
		TEST(larger_ring__mapping_refused__first_one_stays),
		TEST(larger_ring__kernel_cannot_populate__used),
		TEST(larger_ring__others_end__used),
		TEST(larger_ring__peer_is_not_trusted__only_if_few_are_used),
		TEST(ring_not_full__request_waits__no_larger_one_wanted),
		TEST(larger_ring__connection_ends__unmapped_and_not_counted),
		TEST(larger_ring__peer_wants_it__mapped_when_space_is_given_back),
		TEST(larger_ring__message_behind_the_change__found),
		TEST(larger_ring__too_many_of_the_engine__not_offered),
		TEST(larger_ring__change_without_an_offer__broken),
	};

	return cmocka_run_group_tests_name("shm grow", tests, NULL, NULL);
}
