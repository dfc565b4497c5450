// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which way RDMA takes, and what is seen of it on the way: through the ring while the peer polls,
 * by the kernel, or through a mapping; large rings; announced keys.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "play.h"
#include "soft/shm/connect/revoke.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/transfer/direct.h"

/* --- the ring or the kernel --- */

/* The peer takes all entries of Writes, and places their bytes; how many entries there were. */
static unsigned place_writes(struct lab *lab)
{
	struct shm_entry entry;
	const uint8_t *bytes;
	unsigned count = 0;

	for (; lab_peer_takes(&lab->peer_in, &entry, &bytes); count++) {
		uint64_t offset = entry.address - (uintptr_t)lab->peer_memory;

		assert_int_equal(entry.type, SHM_ENTRY_WRITE);
		assert_int_equal(entry.key, lab->peer_rkey);
		assert_in_range(offset + entry.payload, 1, LAB_MEMORY);
		memcpy(lab->peer_memory + offset, bytes, entry.payload);
	}
	return count;
}

/* COMPAT-01: what the peer's polls place soonest goes through the ring, the rest by the kernel. */
static void rdma__peer_polls_or_not__through_the_ring_or_by_the_kernel(void **state)
{
	static const enum core_op ops[] = {CORE_OP_RDMA_WRITE, CORE_OP_RDMA_READ};

	(void)state;
	ABILITY_NEED_VM_CALLS();
	for (unsigned i = 0; i < 12; i++) {
		const enum core_op op = ops[i % 2];
		const bool is_polled = i / 4 == 0;
		struct lab *lab = open_cma();

		if (i / 2 % 2)
			lab_go_fast(lab);
		if (is_polled)
			lab_peer_polls(lab);
		else
			lab_peer_polled_at(lab, i / 4 == 1 ? 0 : core_now_ns() - SHM_POLLED_NS);
		fill(op == CORE_OP_RDMA_WRITE ? lab->memory : lab->peer_memory, 8, 1);
		post_rdma(lab, op, 0, 8);
		assert_int_equal(lab->done, !is_polled);
		if (is_polled)
			expect_untouched(lab->peer_memory + 8, 8);
		else
			assert_memory_equal(lab->memory, lab->peer_memory, 8);
		assert_int_equal(counted(lab, SHM_COUNT_RING), is_polled);
		assert_int_equal(counted(lab, SHM_COUNT_CMA), !is_polled);
		lab_close(lab);
	}
}

/* Another setting of the copy path is followed, whether the peer polls or not. */
static void write__copy_path_set__as_set(void **state)
{
	static const enum core_copy_path paths[] = {CORE_COPY_CMA, CORE_COPY_RING};

	(void)state;
	ABILITY_NEED_VM_CALLS();
	for (unsigned i = 0; i < 4; i++) {
		struct lab *lab =
			lab_open(&(struct lab_form){.copy = paths[i / 2], .has_cma = true});

		if (i % 2)
			lab_peer_polls(lab);
		post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 8);
		assert_int_equal(counted(lab, SHM_COUNT_CMA), i < 2);
		assert_int_equal(counted(lab, SHM_COUNT_RING), i >= 2);
		lab_close(lab);
	}
}

/*
 * DTO-40 DTO-41: Writes behind one in the ring follow it, also when the peer's last poll becomes
 * old. Once the peer sleeps, the kernel copies, but not before the Writes in the ring are placed.
 */
static void rdma__behind_writes_in_the_ring__not_before_them(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	fill(lab->memory, 24, 1);
	lab_peer_polls(lab);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 16);
	lab_peer_polled_at(lab, 0);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 16, 8);
	atomic_store(&lab->peer->armed, 1);
	memset(lab->memory + 8, 'b', 8);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 8, 8);
	post_rdma(lab, CORE_OP_RDMA_READ, 4, 8);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	expect_untouched(lab->peer_memory, 64);
	assert_int_equal(place_writes(lab), 2);
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(lab->done, 4);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_memory_equal(lab->memory + 4, lab->peer_memory + 4, 8);
	assert_memory_equal(lab->peer_memory + 8, "bbbbbbbb", 8);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 2);
}

/*
 * DTO-40: large RDMA follows while the peer may be placing what is in the ring. After that it waits,
 * and is copied by the kernel: the service thread of a peer that sleeps always has work then.
 */
static void rdma__large_behind_a_write_in_the_ring__follows_for_some_time(void **state)
{
	const uint32_t len = SHM_LARGE_PAYLOAD + 1;
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	fill(lab->memory, len, 3);
	lab_peer_polls(lab);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 8);
	lab_peer_polled_at(lab, core_now_ns() - SHM_PLACING_NS);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, len);
	assert_int_equal(place_writes(lab), 1);
	expect_untouched(lab->peer_memory + 8, len - 8);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	expect_bytes(lab->peer_memory, len, 3);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 1);

	lab_peer_polls(lab);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 8);
	lab_peer_polled_at(lab, core_now_ns() - SHM_POLLED_NS);
	post_rdma(lab, CORE_OP_RDMA_READ, 0, len);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 3);
}

/*
 * COMPAT-02: a Write of many entries that has begun in the ring ends there, so that its bytes are
 * placed in order.
 */
static void write__peer_stops_polling_in_the_middle__rest_follows_in_the_ring(void **state)
{
	const uint32_t len = 10 * SHM_REQUEST_PAYLOAD + 1;
	struct lab *lab = *state;
	unsigned count = 0;

	fill(lab->memory, len, 3);
	lab_peer_polls(lab);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, len);
	assert_int_equal(lab->peer_memory[0], UNTOUCHED);
	lab_peer_polled_at(lab, 0);
	atomic_store(&lab->peer->armed, 1);
	for (unsigned taken = 1; taken; count += taken) {
		taken = place_writes(lab);
		lab_pass(lab);
	}
	assert_int_equal(count, 11);
	expect_bytes(lab->peer_memory, len, 3);
	expect_untouched(lab->peer_memory + len, 8);
	assert_int_equal(lab->done, 0);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(counted(lab, SHM_COUNT_CMA), 0);
}

/* DTO-108: the peer serves two at a time. DTO-30: a fenced request waits for all of them. */
static void read__more_than_the_peer_serves__the_rest_waits(void **state)
{
	struct lab *lab = *state;

	for (unsigned i = 0; i < 3; i++)
		post_rdma(lab, CORE_OP_RDMA_READ, 8 * i, 4);
	lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	post_send(lab, 0, 4);
	assert_int_equal(lab_peer_takes_all(lab), 2);
	ask(lab, data_entry(4), 1);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab_peer_takes_all(lab), 1);
	ask(lab, data_entry(4), 1);
	assert_int_equal(lab_peer_takes_all(lab), 0);
	ask(lab, data_entry(4), 1);
	assert_int_equal(lab_peer_takes_all(lab), 1);
}

/* --- the peer ends the connection, or is in the middle of a copy --- */

/* Nothing is written to a peer that has revoked, whatever its table says. */
static void write__peer_has_revoked__touches_nothing(void **state)
{
	(void)state;
	for (unsigned is_mapped = 0; is_mapped < 2; is_mapped++) {
		struct lab *lab = open_cma();

		lab_go_fast(lab);
		if (is_mapped)
			lab_map_peer(lab);
		atomic_store(&lab->peer->revoked, 1);
		post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 8);
		post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 100);
		assert_int_equal(lab->done, 0);
		expect_untouched(lab->peer_memory, 100);
		assert_int_equal(atomic_load(&lab->own->announce), 0);
		lab_close(lab);
	}
}

/* DTO-120 EP-DISC-40: the end is reported when the peer's copy is over, or at the time-out */
static void disconnect__peer_in_the_middle_of_a_copy__reported_afterwards(void **state)
{
	(void)state;
	for (unsigned is_over = 0; is_over < 2; is_over++) {
		struct lab *lab = open_cma();
		uint64_t start = core_now_ns();

		atomic_store(&lab->peer->announce, lab->rkey);
		shm_ep_disconnect(&lab->ep, false);
		assert_int_equal(lab->end, 0);
		assert_int_equal(atomic_load(&lab->own->revoked), 1);
		if (is_over)
			atomic_store(&lab->peer->announce, 0);
		while (lab->end == 0)
			lab_serve_pending(lab);
		assert_true(is_over || core_now_ns() - start >= 50u * 1000000u);
		assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
		lab_close(lab);
	}
}

/* --- deadlines: another one of the connection fires first --- */

static void expect_end_in_time(struct lab *lab)
{
	shm_conn_lower_deadline(lab->conn, 1);
	while (!lab->end) /* the test has a time limit */
		lab_serve_pending(lab);
	assert_int_equal(lab->end, BROKEN);
	lab_close(lab);
}

/* DTO-106 */
static void message__without_receive_and_another_deadline__broken_in_time(void **state)
{
	struct lab *lab = lab_open(&(struct lab_form){.rnr_timeout_ms = 20});

	(void)state;
	peer_puts(lab, lab_send_entry(4), 0);
	lab_library_pass(lab);
	expect_end_in_time(lab);
}

/* A request fails while the one before it is never carried out. */
static void send__own_memory_gone_and_another_deadline__broken_in_time(void **state)
{
	struct lab *lab = open_slow();

	(void)state;
	post_send(lab, 0, 4);
	atomic_store(&lab->lmr->key, 0);
	post_send(lab, 0, 4);
	assert_int_equal(lab->end, 0);
	expect_end_in_time(lab);
}

/* --- mapped memory --- */

/* Small Writes take the fast path: whole, at their addresses. */
static void write__mapped__at_its_address(void **state)
{
	static const uint32_t writes[][2] = {{8, 0},   {8, 3},	 {1, 0},   {7, 0},
					     {9, 1},   {64, 0},	 {100, 1}, {256, LAB_MEMORY - 256},
					     {257, 0}, {4096, 5}};
	struct lab *lab = open_cma();

	(void)state;
	lab_go_fast(lab);
	lab_map_peer(lab);
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t len = writes[i][0], offset = writes[i][1];

		memset(lab->peer_memory, UNTOUCHED, LAB_MEMORY);
		fill(lab->memory + offset, len, i);
		post_rdma(lab, CORE_OP_RDMA_WRITE, offset, len);
		assert_int_equal(lab->done, i + 1);
		assert_int_equal(lab->done_len, len);
		expect_untouched(lab->peer_memory, offset);
		expect_bytes(lab->peer_memory + offset, len, i);
		expect_untouched(lab->peer_memory + offset + len, LAB_MEMORY - offset - len);
	}
	assert_int_equal(lab->fast_posts, 8);
	assert_int_equal(counted(lab, SHM_COUNT_MAP), 11);
	lab_close(lab);
}

/* DTO-91 DTO-92 DTO-93 DTO-97: the key decides, not the mapping, and no byte changes. */
static void write__mapped_and_key_not_good__access_error_and_nothing_stored(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct lab *lab = open_cma();
		uint64_t address = (uintptr_t)lab->peer_memory;

		lab_go_fast(lab);
		lab_map_peer(lab);
		if (i == 0)
			soft_keys_invalidate(lab->peer_keys, lab->peer_rkey);
		else if (i == 1)
			soft_keys_end_remote(lab->peer_keys, lab->peer_rkey);
		else
			address += LAB_MEMORY - 7;
		assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 8, lab->peer_rkey, address));
		assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
		lab_serve_pending(lab);
		assert_int_equal(lab->end, BROKEN);
		expect_untouched(lab->peer_memory, LAB_MEMORY);
		lab_close(lab);
	}
}

/* LMR-CREATE-23 LMR-USE-14: Writes into memory that only the peer may write are up to the peer */
static void rdma__file_read_only__only_reads_use_the_mapping(void **state)
{
	struct lab *lab = lab_open(&(struct lab_form){.copy = CORE_COPY_MAP});
	const struct shm_wire_give give = {.key = lab->peer_rkey,
					   .address = (uintptr_t)lab->peer_memory,
					   .length = LAB_MEMORY,
					   .offset = LAB_GUARD};
	union shm_wire wire;
	char path[64];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", lab_peer_file());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 8); /* asks for the memory */
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_MAP_ASK);
	shm_map_given(lab->conn, &give, fd);
	close(fd);
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, 8);
	lab_peer_done(lab, 2);
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 2);
	fill(lab->peer_memory, 8, 1);
	post_rdma(lab, CORE_OP_RDMA_READ, 0, 8);
	assert_int_equal(lab->done, 3);
	assert_int_equal(counted(lab, SHM_COUNT_MAP), 1);
	expect_bytes(lab->memory, 8, 1);
	lab_close(lab);
}

/* Four uses are one question, but a request that is tried again is one use. */
static void write__waits_for_room__is_one_use_of_its_key(void **state)
{
	struct lab *lab = lab_open(&(struct lab_form){.copy = CORE_COPY_AUTO});
	union shm_wire wire;

	(void)state;
	post_rdma(lab, CORE_OP_RDMA_WRITE, 0, LAB_MEMORY);
	for (unsigned i = 0; i < 10; i++)
		lab_pass(lab);
	assert_int_equal(lab->cell.slow_reasons & CORE_EP_SLOW_QUEUE, CORE_EP_SLOW_QUEUE);
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	lab_close(lab);
}

static void use_key(struct lab *lab, uint32_t key, unsigned times)
{
	while (times--) {
		assert_null(shm_map_find(lab->conn, key));
		shm_map_count_use(lab->conn, key);
	}
}

/* COMPAT-47: keys of fragments are used once, beside one that is used for all packets. */
static void key__refused_before_many_others__not_asked_for_again(void **state)
{
	struct lab *lab = lab_open(&(struct lab_form){.copy = CORE_COPY_AUTO});
	union shm_wire wire;

	(void)state;
	use_key(lab, 5, 4);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_MAP_ASK);
	shm_map_refused(lab->conn, 5);
	for (uint32_t other = 6; other < 6 + 16 * SHM_MAPS; other++) {
		use_key(lab, other, 1);
		use_key(lab, 5, 1);
	}
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	lab_close(lab);
}

/* --- large rings --- */

#define LONG 20000u /* more than a small ring has room for, and than an entry of a large one */
#define OFTEN (2 * SHM_GROW_AFTER)

/* The peer sends or writes LONG bytes, and waits for space where it must; the longest entry. */
static uint32_t peer_puts_long(struct lab *lab, struct shm_entry entry, uint32_t seed)
{
	uint8_t bytes[LONG];
	uint32_t longest = 0;

	fill(bytes, LONG, seed);
	entry.flags = SHM_FLAG_FIRST;
	for (uint32_t offset = 0; offset < LONG; entry.flags = 0) {
		uint32_t left = LONG - offset, most = shm_payload_max(lab->peer_out.mask);

		entry.payload = (uint16_t)(left < most ? left : most);
		entry.length = left;
		entry.flags |= entry.payload == left ? SHM_FLAG_LAST : 0;
		if (!lab_peer_entry(&lab->peer_out, &entry, bytes + offset)) {
			lab_pass(lab);
			assert_true(lab_peer_entry(&lab->peer_out, &entry, bytes + offset));
		}
		offset += entry.payload;
		entry.address += entry.payload;
		if (entry.payload > longest)
			longest = entry.payload;
	}
	while (has_work(lab))
		lab_pass(lab);
	return longest;
}

/* EP-SEND-01 EP-RDMAW-01: the peer continues in its large ring, and no byte is lost on the way. */
static void peer__ring_full_often__goes_on_in_the_large_one(void **state)
{
	(void)state;
	for (unsigned is_write = 0; is_write < 2; is_write++) {
		struct lab *lab = open_slow();
		uint32_t longest = 0;

		for (uint32_t n = 0; n < OFTEN; n++) {
			assert_true(is_write || lab_post_receive(lab, 100, LONG));
			longest = peer_puts_long(
				lab, is_write ? write_entry(lab, 100, 0) : lab_send_entry(0), n);
			assert_int_equal(done_word(lab), n + 1);
			expect_bytes(lab->memory + 100, LONG, n);
			expect_untouched(lab->memory, 100);
			expect_untouched(lab->memory + 100 + LONG, 100);
		}
		assert_int_equal(longest, SHM_LARGE_PAYLOAD);
		/* there is no larger one */
		ask(lab, (struct shm_entry){.type = SHM_ENTRY_GROW}, 0);
		assert_int_equal(lab->end, BROKEN);
		lab_close(lab);
	}
}

/* The peer takes what is LONG bytes of that pattern together; the longest entry. */
static uint32_t take_long(struct lab *lab, struct shm_consumer *ring, uint32_t seed)
{
	struct shm_entry entry = {.flags = 0};
	uint32_t offset = 0, longest = 0;
	const uint8_t *bytes;

	while (!(entry.flags & SHM_FLAG_LAST)) {
		if (!lab_peer_takes(ring, &entry, &bytes)) {
			lab_pass(lab);
			assert_true(lab_peer_takes(ring, &entry, &bytes));
		}
		assert_in_range(entry.payload, 1, LONG - offset);
		for (uint32_t i = 0; i < entry.payload; i++)
			assert_int_equal(bytes[i], pattern(seed, offset + i));
		offset += entry.payload;
		if (entry.payload > longest)
			longest = entry.payload;
	}
	assert_int_equal(offset, LONG);
	return longest;
}

/* EP-SEND-01 EP-RDMAR-01: the same for our Sends, and for our answers to the peer's Reads. */
static void ours__ring_full_often__goes_on_in_the_large_one(void **state)
{
	(void)state;
	for (unsigned is_read = 0; is_read < 2; is_read++) {
		struct lab *lab = open_slow();
		uint32_t longest = 0;

		for (uint32_t n = 0; n < OFTEN; n++) {
			fill(lab->memory, LONG, n);
			if (is_read)
				ask(lab, read_entry(lab, 0, LONG), 0);
			else
				post_send(lab, 0, LONG);
			longest =
				take_long(lab, is_read ? &lab->peer_answers_in : &lab->peer_in, n);
			if (!is_read)
				atomic_store(&lab->peer->done, n + 1);
			lab_pass(lab);
			assert_int_equal(lab->done, is_read ? 0 : n + 1);
		}
		assert_int_equal(longest, SHM_LARGE_PAYLOAD);
		lab_close(lab);
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

/* The part in the first page is complete if the store is in the second, whose bytes are the last. */
static bool is_in_order(bool is_second)
{
	const uint8_t *target = closed.second - closed.before;

	for (uint32_t i = 0; is_second && i < closed.before; i++)
		if (target[i] != pattern(SEED, i))
			return false;
	for (uint32_t i = 0; !is_second && i < closed.behind; i++)
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
	closed.is_in_order = is_in_order(address >= closed.second);
	closed.is_announced = shm_engine_is_key_in_use(closed.lab->engine, closed.lab->rkey);
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
	peer_puts(lab, write_entry(lab, (uint32_t)(target - lab->memory), before + behind), SEED);
	assert_int_equal(
		mprotect(is_second_closed ? closed.second : closed.second - PAGE, PAGE, PROT_READ),
		0);
	lab_pass(lab);
	assert_int_equal(closed.faults, 1);
	assert_true(closed.is_in_order);
	assert_true(closed.is_announced);
	assert_false(shm_engine_is_key_in_use(lab->engine, lab->rkey));
	expect_bytes(target, before + behind, SEED);
	expect_untouched(target + before + behind, 64);
}

/*
 * EP-RDMAW-44 COMPAT-46 DTO-97 LMR-FREE-21: the last bytes become visible last, and while bytes are
 * stored the key is announced, for which dat_lmr_free waits
 */
static void peer_write__page_of_target_closed__ordered_and_announced(void **state)
{
	static const uint32_t fronts[] = {1, 2, 7, 8, 9, 16, 57, 64, 100, 1000};
	struct sigaction action = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO}, old, old_bus;

	(void)state;
	ABILITY_NEED(sysconf(_SC_PAGESIZE) == PAGE, "pages are larger than the guard");
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	assert_int_equal(sigaction(SIGBUS, &action, &old_bus), 0);
	for (unsigned is_fast = 0; is_fast < 2; is_fast++) {
		/* the peer does not become overdue, however long all copies of the key take */
		struct lab *lab = lab_open(&(struct lab_form){
			.copy = CORE_COPY_RING, .reads = 8, .peer_timeout_ms = 60000});

		if (is_fast)
			lab_go_fast(lab);
		for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
			for (uint32_t behind = 1; behind <= 8; behind++) {
				check_stores(lab, fronts[i], behind, false);
				check_stores(lab, fronts[i], behind, true);
			}
		}
		assert_int_equal(lab->fast_polls > 0, is_fast);
		lab_close(lab);
	}
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, &old_bus, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rdma__peer_polls_or_not__through_the_ring_or_by_the_kernel),
		cmocka_unit_test(write__copy_path_set__as_set),
		CMA(rdma__behind_writes_in_the_ring__not_before_them),
		CMA(rdma__large_behind_a_write_in_the_ring__follows_for_some_time),
		CMA(write__peer_stops_polling_in_the_middle__rest_follows_in_the_ring),
		SLOW(read__more_than_the_peer_serves__the_rest_waits),
		cmocka_unit_test(write__peer_has_revoked__touches_nothing),
		cmocka_unit_test(disconnect__peer_in_the_middle_of_a_copy__reported_afterwards),
		cmocka_unit_test(message__without_receive_and_another_deadline__broken_in_time),
		cmocka_unit_test(send__own_memory_gone_and_another_deadline__broken_in_time),
		cmocka_unit_test(write__mapped__at_its_address),
		cmocka_unit_test(write__mapped_and_key_not_good__access_error_and_nothing_stored),
		cmocka_unit_test(rdma__file_read_only__only_reads_use_the_mapping),
		cmocka_unit_test(write__waits_for_room__is_one_use_of_its_key),
		cmocka_unit_test(key__refused_before_many_others__not_asked_for_again),
		cmocka_unit_test(peer__ring_full_often__goes_on_in_the_large_one),
		cmocka_unit_test(ours__ring_full_often__goes_on_in_the_large_one),
		cmocka_unit_test(peer_write__page_of_target_closed__ordered_and_announced),
	};

	return cmocka_run_group_tests_name("shm copies", tests, NULL, NULL);
}
