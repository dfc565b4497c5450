// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of a connection: RDMA Writes through the ring, where neither process can access the
 * memory of the other.
 */
#include <signal.h>
#include <sys/mman.h>

#include "fast_entry.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/segment.h"

static int setup_without_map(void **state)
{
	*state = open_without_map(false);
	return 0;
}

/* --- posts --- */

static void expect_write(const struct lab *lab, uint32_t len, uint32_t offset, uint32_t seed)
{
	const uint8_t *payload;
	struct shm_entry entry;

	assert_int_equal(shm_consumer_peek(&peer_in, &entry, &payload), 1);
	assert_int_equal(entry.type, SHM_ENTRY_WRITE);
	assert_int_equal(entry.flags, SHM_FLAG_FIRST | SHM_FLAG_LAST);
	assert_int_equal(entry.key, lab->peer_rkey);
	assert_int_equal(entry.address, (uintptr_t)lab->peer_memory + offset);
	assert_int_equal(entry.length, len);
	assert_int_equal(entry.payload, len);
	expect_bytes(payload, len, seed);
	shm_consumer_pop(&peer_in);
	(void)shm_consumer_release(&peer_in);
}

/* COMPAT-41: it completes when the peer has placed it. */
static void write__up_to_one_entry__completes_when_placed(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 256, 257, 1024, SHM_REQUEST_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 8; i++) {
		fill(lab->memory, lengths[i], i);
		post_write(lab, lengths[i], lab->peer_rkey, i);
		assert_int_equal(lab->fast_posts, i + 1);
		assert_int_equal(lab->ep.path, OPENDAT_PATH_RING);
		assert_int_equal(counted(lab, SHM_COUNT_RING), i + 1);
		expect_write(lab, lengths[i], i, i);
		assert_int_equal(lab->conn->ring_writes, 1);
		lab_pass(lab);
		assert_int_equal(lab->done, i);
		atomic_store(&lab->peer->done, i + 1);
		lab_pass(lab);
		assert_int_equal(lab->done, i + 1);
		assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
		assert_int_equal(lab->conn->ring_writes, 0);
	}
	assert_int_equal(lab->lookups, 0);
	expect_no_entry();
	expect_untouched(lab->peer_memory, LAB_MEMORY);
}

static void write__longer_than_an_entry__by_the_slow_path(void **state)
{
	struct lab *lab = *state;

	post_write(lab, SHM_REQUEST_PAYLOAD + 1, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 0);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 1);
}

/* The ring is full: the Write waits, and is not lost. */
static void write__ring_full__by_the_slow_path_later(void **state)
{
	struct lab *lab = *state;
	uint32_t count = 0;

	fill(lab->memory, SHM_REQUEST_PAYLOAD, 1);
	while (!lab->cell.slow_reasons) {
		post_write(lab, SHM_REQUEST_PAYLOAD, lab->peer_rkey, 0);
		count++;
	}
	assert_int_equal(lab->fast_posts, count - 1);
	for (uint32_t i = 0; i < count; i++) {
		expect_write(lab, SHM_REQUEST_PAYLOAD, 0, 1);
		shm_consumer_give_back(&peer_in);
		atomic_store(&lab->peer->done, i + 1);
		lab_pass(lab);
	}
	assert_int_equal(lab->done, count);
	assert_int_equal(lab->conn->ring_writes, 0);
}

/* The kernel can copy: the Write does not wait for the peer. */
static void write__kernel_copies_allowed__not_through_the_ring(void **state)
{
	struct lab *lab;

	(void)state;
	ABILITY_NEED_VM_CALLS();
	lab = open_without_map(true);
	fill(lab->memory, 8, 1);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 1);
	assert_int_equal(lab->done, 1);
	expect_bytes(lab->peer_memory, 8, 1);
	close_lab(lab);
}

/* The setting forbids every access of one process to the memory of the other. */
static void write__setting_is_ring__through_the_ring(void **state)
{
	struct lab *lab = lab_open(CORE_COPY_RING, true);

	(void)state;
	lab_go_fast(lab);
	lab->conn->remote.last_map = NULL;
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 1);
	assert_int_equal(lab->done, 0);
	expect_untouched(lab->peer_memory, LAB_MEMORY);
	lab_close(lab);
}

static void write__suppressed__no_completion(void **state)
{
	struct lab *lab = *state;

	lab->next_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 1);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->ep.req.head, 1);
	assert_int_equal(lab->done, 0); /* DTO-13 */
}

/* DTO-30 */
static void write__fenced__behind_the_read(void **state)
{
	struct shm_entry data = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 8};
	struct lab *lab = *state;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 8, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	peer_skips_entry();
	lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	post_write(lab, 8, lab->peer_rkey, 8);
	expect_no_entry();
	assert_true(lab_peer_entry(&lab->peer_answers, &data, "the data"));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	peer_skips_entry();
	assert_int_equal(lab->conn->ring_writes, 1);
}

/* The region that the endpoint has cached is freed between the check of the post and the copy. */
static void write__memory_gone__protection_error_and_no_entry(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->lmr->key, 0);
	post_write(lab, 8, lab->peer_rkey, 0);
	assert_int_equal(lab->fast_posts, 0);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_no_entry();
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, BROKEN);
}

/* --- entries of the peer --- */

static void peer_writes(struct lab *lab, uint32_t key, uint64_t address, uint32_t len,
			uint32_t seed)
{
	peer_sends(lab,
		   (struct shm_entry){
			   .type = SHM_ENTRY_WRITE,
			   .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			   .payload = (uint16_t)len,
			   .key = key,
			   .address = address,
			   .length = len,
		   },
		   seed);
}

/* It is reported at once, so that the peer's request completes. */
static void peer_write__one_entry__placed_and_reported(void **state)
{
	static const uint32_t lengths[] = {1, 7, 8, 9, 256, 257, 1024, SHM_REQUEST_PAYLOAD};
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 8; i++) {
		memset(lab->memory, UNTOUCHED, LAB_MEMORY);
		peer_writes(lab, lab->rkey, (uintptr_t)lab->memory + 100 + i, lengths[i], i);
		lab_pass(lab);
		assert_int_equal(lab->fast_polls, i + 1);
		expect_untouched(lab->memory, 100 + i);
		expect_bytes(lab->memory + 100 + i, lengths[i], i);
		expect_untouched(lab->memory + 100 + i + lengths[i], 1024);
		assert_int_equal(done_word(lab), i + 1);
		assert_int_equal(atomic_load(&lab->conn->local_announce), 0);
	}
	assert_int_equal(lab->received, 0);
}

/* DTO-39 */
static void peer_write__before_a_message__placed_first(void **state)
{
	struct lab *lab = *state;

	assert_true(lab_post_receive(lab, 100, 8));
	peer_writes(lab, lab->rkey, (uintptr_t)lab->memory, 8, 1);
	peer_sends(lab, lab_send_entry(8), 2);
	for (uint32_t i = 0; i < 2 && !lab->received; i++)
		lab_pass(lab);
	assert_int_equal(lab->received, 1);
	expect_bytes(lab->memory, 8, 1);
	expect_bytes(lab->memory + 100, 8, 2);
	lab_pass(lab);
	assert_int_equal(done_word(lab), 2);
	assert_int_equal(lab->lookups, 0);
}

/* The poll returns an event, so no pass follows; the report is still due. */
static void peer_write__behind_an_acknowledgement__reported_by_the_next_poll(void **state)
{
	struct lab *lab = *state;

	post_send(lab, 0, 8, DAT_COMPLETION_DEFAULT_FLAG);
	peer_writes(lab, lab->rkey, (uintptr_t)lab->memory + 100, 8, 1);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_true(done_word(lab) == 1 || shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(done_word(lab), 1);
	expect_bytes(lab->memory + 100, 8, 1);
}

/* In a stream a poll takes all that has arrived. */
static void peer_writes__several__all_placed_and_counted(void **state)
{
	struct lab *lab = *state;

	for (uint32_t i = 0; i < 40; i++) {
		peer_writes(lab, lab->rkey, (uintptr_t)lab->memory + i * 64, 8, i);
		if (i % 3 == 2)
			lab_pass(lab);
	}
	for (uint32_t i = 0; i < 40 && done_word(lab) < 40; i++)
		lab_pass(lab);
	assert_int_equal(done_word(lab), 40);
	for (uint32_t i = 0; i < 40; i++) {
		expect_bytes(lab->memory + i * 64, 8, i);
		expect_untouched(lab->memory + i * 64 + 8, 56);
	}
}

/* No entry may come between the parts of a message, nor between those of a Write. */
static void peer_write__within_another_message__connection_broken(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct lab *lab = open_without_map(false);
		struct shm_entry begun = {
			.type = i ? SHM_ENTRY_WRITE : SHM_ENTRY_SEND,
			.flags = SHM_FLAG_FIRST,
			.payload = 8,
			.key = i ? lab->rkey : 0,
			.address = i ? (uintptr_t)lab->memory : 0,
			.length = 16,
		};

		assert_true(lab_post_receive(lab, 100, 16));
		peer_sends(lab, begun, 1);
		lab_pass(lab);
		peer_writes(lab, lab->rkey, (uintptr_t)lab->memory + 200, 8, 2);
		lab_pass(lab);
		assert_int_equal(lab->end, BROKEN);
		expect_untouched(lab->memory + 200, LAB_MEMORY - 200);
		close_lab(lab);
	}
}

/* The lengths disagree, or the first or last part is missing. */
static void peer_write__odd__nothing_placed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct lab *lab = open_without_map(false);
		struct shm_entry entry = {
			.type = SHM_ENTRY_WRITE,
			.flags = i == 0 ? SHM_FLAG_LAST : SHM_FLAG_FIRST | SHM_FLAG_LAST,
			.payload = 8,
			.key = lab->rkey,
			.address = (uintptr_t)lab->memory,
			.length = i == 1   ? 7
				  : i == 2 ? 9
					   : 8,
		};

		peer_sends(lab, entry, 1);
		lab_pass(lab);
		assert_int_equal(lab->end, BROKEN);
		assert_int_equal(done_word(lab), 0);
		expect_untouched(lab->memory, LAB_MEMORY);
		close_lab(lab);
	}
}

/* DTO-90 DTO-91 DTO-92 DTO-93 DTO-94 DTO-97: no byte changes. */
static void peer_write__key_not_good__refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BAD_KEYS; i++) {
		struct lab *lab = open_without_map(false);
		uint64_t address;
		uint32_t key = bad_key(lab, i, lab->read_only, &address);

		peer_writes(lab, key, address, 8, 1);
		lab_pass(lab);
		expect_refused(lab, SHM_FAILED_MESSAGE);
		assert_int_equal(done_word(lab), 0);
		expect_untouched(lab->memory - LAB_GUARD, LAB_MEMORY + 2 * LAB_GUARD);
		close_lab(lab);
	}
}

/* --- as faults show it --- */

#define PAGE 4096u
#define SEED 3u

/*
 * A Write whose target is in two pages, of which one is closed, and what the handler has found in
 * the middle of the copy.
 */
static struct closed_page {
	struct lab *lab;
	uint8_t *second;	 /* the begin of the second page */
	uint32_t before, behind; /* bytes of the target in each */
	volatile sig_atomic_t faults;
	volatile sig_atomic_t is_in_order;
	volatile sig_atomic_t is_announced;
} closed;

/* The part of the target in the first page is complete. */
static bool is_front_new(void)
{
	const uint8_t *target = closed.second - closed.before;

	for (uint32_t i = 0; i < closed.before; i++)
		if (target[i] != (uint8_t)(i * 31 + SEED * 7 + 1)) /* as fill() */
			return false;
	return true;
}

/* The part in the second page, which belongs to the last 8 bytes, has not changed. */
static bool is_tail_old(void)
{
	for (uint32_t i = 0; i < closed.behind; i++)
		if (closed.second[i] != UNTOUCHED)
			return false;
	return true;
}

static void on_store(int number, siginfo_t *info, void *context)
{
	const uint8_t *address = info->si_addr;

	(void)context;
	if (address < closed.second - PAGE || address >= closed.second + PAGE || closed.faults++) {
		signal(number, SIG_DFL); /* another fault */
		return;
	}
	mprotect(closed.second - PAGE, (size_t)PAGE * 2, PROT_READ | PROT_WRITE);
	closed.is_in_order = address >= closed.second ? is_front_new() : is_tail_old();
	closed.is_announced = atomic_load(&closed.lab->conn->local_announce) == closed.lab->rkey;
}

/* The peer writes; the store into the page that is closed tells what was there before. */
static void check_stores(struct lab *lab, uint32_t before, uint32_t behind, bool is_second_closed)
{
	uint8_t *target;

	closed = (struct closed_page){.lab = lab,
				      .second = lab->memory + (size_t)PAGE * 2,
				      .before = before,
				      .behind = behind};
	target = closed.second - before;
	memset(lab->memory, UNTOUCHED, LAB_MEMORY);
	peer_writes(lab, lab->rkey, (uintptr_t)target, before + behind, SEED);
	assert_int_equal(
		mprotect(is_second_closed ? closed.second : closed.second - PAGE, PAGE, PROT_READ),
		0);
	lab_pass(lab);
	assert_int_equal(closed.faults, 1);
	assert_true(closed.is_in_order);
	assert_true(closed.is_announced);
	assert_int_equal(atomic_load(&lab->conn->local_announce), 0);
	expect_bytes(target, before + behind, SEED);
	expect_untouched(target + before + behind, 64);
}

static void check_all_stores(struct lab *lab)
{
	static const uint32_t fronts[] = {1, 2, 7, 8, 9, 16, 57, 64, 100, 1000};

	for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		for (uint32_t behind = 1; behind <= 8; behind++) {
			check_stores(lab, fronts[i], behind, false);
			check_stores(lab, fronts[i], behind, true);
		}
	}
}

/*
 * EP-RDMAW-44 COMPAT-46 DTO-97 LMR-FREE-21: the last bytes become visible last, and while bytes are
 * stored the key is announced, for which dat_lmr_free waits
 */
static void peer_write__page_of_target_closed__ordered_and_announced(void **state)
{
	struct sigaction action = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO}, old, old_bus;
	struct lab *lab = *state;
	uint32_t fast_polls;

	ABILITY_NEED(sysconf(_SC_PAGESIZE) == PAGE, "pages are larger than the guard");
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	assert_int_equal(sigaction(SIGBUS, &action, &old_bus), 0);
	check_all_stores(lab);
	fast_polls = lab->fast_polls;
	assert_int_not_equal(fast_polls, 0);
	core_handle_set_slow(&lab->cell, CORE_EP_SLOW_STATE);
	check_all_stores(lab);
	assert_int_equal(lab->fast_polls, fast_polls);
	core_handle_clear_slow(&lab->cell, CORE_EP_SLOW_STATE);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, &old_bus, NULL), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_without_map, teardown)
	const struct CMUnitTest tests[] = {
		TEST(write__up_to_one_entry__completes_when_placed),
		TEST(write__longer_than_an_entry__by_the_slow_path),
		TEST(write__ring_full__by_the_slow_path_later),
		cmocka_unit_test(write__kernel_copies_allowed__not_through_the_ring),
		cmocka_unit_test(write__setting_is_ring__through_the_ring),
		TEST(write__suppressed__no_completion),
		TEST(write__fenced__behind_the_read),
		TEST(write__memory_gone__protection_error_and_no_entry),
		TEST(peer_write__one_entry__placed_and_reported),
		TEST(peer_write__before_a_message__placed_first),
		TEST(peer_write__behind_an_acknowledgement__reported_by_the_next_poll),
		TEST(peer_writes__several__all_placed_and_counted),
		cmocka_unit_test(peer_write__within_another_message__connection_broken),
		cmocka_unit_test(peer_write__odd__nothing_placed),
		cmocka_unit_test(peer_write__key_not_good__refused),
		TEST(peer_write__page_of_target_closed__ordered_and_announced),
	};

	return cmocka_run_group_tests_name("shm fast ring", tests, NULL, NULL);
}
