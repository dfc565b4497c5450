// SPDX-License-Identifier: BSD-2-Clause
/*
 * The copies of soft/copy.h: the order in which the bytes become visible.
 */
#include <sys/mman.h>

#include "copies.h"

/* --- order --- */

#define ORDER_LEN 256u
#define ORDER_ROUNDS 300u

/* In memory that both processes share. */
struct order {
	_Alignas(64) uint8_t target[ORDER_LEN + 64];
	_Alignas(64) _Atomic unsigned int round; /* the round that the watcher is ready for */
	size_t offset;
	size_t len;
	size_t watched; /* the byte that the watcher polls */
};

/*
 * The peer: polls the last byte, then all others must be there; or polls one of the last 8, then
 * all but those.
 */
static int order_watch(int channel, void *argument)
{
	struct order *order = argument;
	const uint8_t *target = order->target + order->offset;
	const uint8_t *watched = target + order->watched;
	const uint8_t *end = order->watched == order->len - 1 ? watched : target + order->len - 8;

	(void)channel;
	for (unsigned int round = 1; round <= ORDER_ROUNDS; round++) {
		uint8_t value = (uint8_t)(round % 255 + 1);

		atomic_store(&order->round, round);
		for (unsigned int i = 0; __atomic_load_n(watched, __ATOMIC_ACQUIRE) != value; i++)
			peer_pause(i);
		for (const uint8_t *byte = end - 1; byte >= target; byte--)
			PEER_CHECK(__atomic_load_n(byte, __ATOMIC_RELAXED) == value);
	}
	return 0;
}

static void check_order_at(copy_fn copy, size_t offset, size_t len, size_t watched)
{
	struct order *order = mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t source[ORDER_LEN];
	struct peer peer;

	assert_ptr_not_equal(order, MAP_FAILED);
	order->offset = offset;
	order->len = len;
	order->watched = watched;
	peer = peer_start(order_watch, order);
	for (unsigned int round = 1; round <= ORDER_ROUNDS; round++) {
		for (unsigned int i = 0; atomic_load(&order->round) < round; i++) {
			if (i % 1000 == 999 && !peer_is_running(&peer))
				break;
			peer_pause(i);
		}
		memset(source, (int)(round % 255 + 1), len);
		assert_int_equal(copy(order->target + offset, source, len), 0);
	}
	peer_finish(&peer);
	munmap(order, sizeof(*order));
}

static void check_order(copy_fn copy, size_t offset, size_t len)
{
	check_order_at(copy, offset, len, len - 1);
}

/* COMPAT-02 COMPAT-46 EP-RDMAW-44 */
static void copy__last_byte_polled__rest_is_complete(void **state)
{
	static const size_t cases[][2] = {{0, 256}, {0, 200}, {3, 61}, {5, 24}, {0, 33}, {63, 100}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_order(copy_tail_last, cases[i][0], cases[i][1]);
		check_order(soft_copy_to_consumer, cases[i][0], cases[i][1]);
	}
	ABILITY_NEED_VM_CALLS();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_order(copy_safe, cases[i][0], cases[i][1]);
		check_order(copy_to_self, cases[i][0], cases[i][1]);
		check_order(copy_from_self, cases[i][0], cases[i][1]);
		check_order(copy_to_segments, cases[i][0], cases[i][1]);
		check_order(copy_to_short_segments, cases[i][0], cases[i][1]);
		check_order(place_by_library, cases[i][0], cases[i][1]);
	}
}

/* COMPAT-46: the last 8 bytes after all others, whichever of them the consumer polls. */
static void copy__one_of_the_last_bytes_polled__those_before_are_complete(void **state)
{
	static const copy_fn copies[] = {copy_tail_last, copy_ordered, place_by_library,
					 copy_from_self, copy_to_segments};

	(void)state;
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		if (copies[i] == copy_from_self)
			ABILITY_NEED_VM_CALLS();
		check_order_at(copies[i], 0, 256, 248);
		check_order_at(copies[i], 3, 61, 53);
		check_order_at(copies[i], 5, 100, 97);
	}
}

/* --- order, as faults show it --- */

#define ENDS_MAX 72u /* bytes of the target in its second page */

static uint8_t *two_pages; /* the target of the copies below */
static size_t target_at, target_len;
static volatile sig_atomic_t faults, is_in_order;

/* The bytes in the second page, which belong to the last 8, have not changed. */
static bool is_tail_old(void)
{
	size_t end = target_at + target_len;
	size_t i = end - (target_len < 8 ? target_len : 8);

	for (i = i < page ? page : i; i < end; i++) {
		if (two_pages[i] != 0xEE)
			return false;
	}
	return true;
}

/* The part of the target in the first page is complete. */
static bool is_front_new(void)
{
	for (size_t i = target_at; i < page; i++) {
		if (two_pages[i] != 0x11)
			return false;
	}
	return true;
}

static void begin_target(size_t before, size_t behind)
{
	assert_int_equal(mprotect(two_pages, 2 * page, PROT_READ | PROT_WRITE), 0);
	memset(two_pages, 0xEE, 2 * page);
	target_at = page - before;
	target_len = before + behind;
}

/* The first page cannot be written: the second one must not have changed before. */
static bool is_front_first(copy_fn copy, size_t before, size_t behind)
{
	static uint8_t from[SPAN + ENDS_MAX];

	begin_target(before, behind);
	memset(from, 0x11, sizeof(from));
	if (mprotect(two_pages, page, PROT_READ) ||
	    copy(two_pages + target_at, from, target_len) != -EFAULT)
		return false;
	return is_tail_old();
}

/* Copies with that many bytes of the target in its first page and in the second. */
static const size_t front_lens[] = {1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 63, 64, 100, 300, 2500, 4096};

#define FRONT_LENS (sizeof(front_lens) / sizeof(front_lens[0]))

static bool are_fronts_first(copy_fn copy)
{
	for (size_t i = 0; i < FRONT_LENS; i++) {
		for (size_t behind = 1; behind <= ENDS_MAX; behind++) {
			if (!is_front_first(copy, front_lens[i], behind))
				return false;
		}
	}
	return true;
}

static void map_two_pages(void)
{
	two_pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(two_pages, MAP_FAILED);
}

static int fronts_without_process_vm(int channel, void *argument)
{
	(void)channel;
	(void)argument;
	PEER_CHECK(refuse_process_vm() == 0);
	PEER_CHECK(are_fronts_first(copy_safe));
	return 0;
}

/* EP-RDMAW-44 COMPAT-02: by the kernel, and through a pipe */
static void copy__front_of_target_gone__last_bytes_untouched(void **state)
{
	struct peer peer;

	(void)state;
	map_two_pages();
	assert_true(are_fronts_first(copy_safe));
	peer = peer_start(fronts_without_process_vm, NULL);
	peer_finish(&peer);
	ABILITY_NEED_VM_CALLS();
	assert_true(are_fronts_first(copy_to_self));
	munmap(two_pages, 2 * page);
}

/* A store into a closed page: checks the other page and opens this one. */
static void on_store(int number, siginfo_t *info, void *context)
{
	uint8_t *address = info->si_addr;
	bool is_second = address >= two_pages + page;

	(void)context;
	if (address < two_pages || address >= two_pages + 2 * page || faults++) {
		signal(number, SIG_DFL); /* another fault */
		return;
	}
	mprotect(two_pages, 2 * page, PROT_READ | PROT_WRITE);
	is_in_order = is_second ? is_front_new() : is_tail_old();
}

/* Copies with one of the pages closed, to see in which order they are written. */
static void check_stores(copy_fn copy, size_t before, size_t behind, bool is_second_closed)
{
	static uint8_t from[SPAN + ENDS_MAX];

	begin_target(before, behind);
	memset(from, 0x11, sizeof(from));
	faults = 0;
	is_in_order = 0;
	assert_int_equal(mprotect(two_pages + (is_second_closed ? page : 0), page, PROT_READ), 0);
	assert_int_equal(copy(two_pages + target_at, from, target_len), 0);
	assert_int_equal(faults, 1);
	if (!is_in_order)
		print_error("%zu bytes, then %zu, %s page closed\n", before, behind,
			    is_second_closed ? "second" : "first");
	assert_true(is_in_order);
	assert_memory_equal(two_pages + target_at, from, target_len);
}

static void check_all_stores(copy_fn copy)
{
	for (size_t i = 0; i < FRONT_LENS; i++) {
		for (size_t behind = 1; behind <= ENDS_MAX; behind++)
			check_stores(copy, front_lens[i], behind, false);
		/* only the last 8 bytes, or fewer, are in the second page */
		for (size_t behind = 1; behind <= 8; behind++)
			check_stores(copy, front_lens[i], behind, true);
	}
}

/*
 * EP-RDMAW-44 EP-RDMAW-45 COMPAT-02 COMPAT-46: by the processor; a handler checks the memory
 * between two stores
 */
static void copy__page_of_target_closed__last_bytes_last(void **state)
{
	static const copy_fn copies[] = {copy_tail_last, copy_ordered, soft_copy_to_consumer};
	struct sigaction action = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO}, old, old_bus;

	(void)state;
	map_two_pages();
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	assert_int_equal(sigaction(SIGBUS, &action, &old_bus), 0);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		check_all_stores(copies[i]);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, &old_bus, NULL), 0);
	munmap(two_pages, 2 * page);
}

/* --- order, as the kernel is asked for it --- */

/* The parts of the last copy: the remote vector of a call, or the reads from a pipe. */
static struct iovec noted[8];
static unsigned long noted_count;

/* Replace those of the C library (meson.build). */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
				const struct iovec *remote, unsigned long remotes,
				unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals,
				 const struct iovec *remote, unsigned long remotes,
				 unsigned long flags);
ssize_t __wrap_read(int fd, void *buffer, size_t size);

static void note_vector(const struct iovec *remote, unsigned long count)
{
	noted_count = count < 8 ? count : 8;
	memcpy(noted, remote, noted_count * sizeof(*remote));
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
				const struct iovec *remote, unsigned long remotes,
				unsigned long flags)
{
	note_vector(remote, remotes);
	return syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals,
				 const struct iovec *remote, unsigned long remotes,
				 unsigned long flags)
{
	note_vector(remote, remotes);
	return syscall(SYS_process_vm_writev, pid, local, locals, remote, remotes, flags);
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	if (noted_count < 8)
		noted[noted_count++] = (struct iovec){buffer, size};
	return syscall(SYS_read, fd, buffer, size);
}

/*
 * Pieces are copied one after the other, the bytes of one in any order. So the last word of the
 * target must be a piece of its own, of a size that is stored at once, and the rest of the last 8
 * bytes must be separate from what comes before them.
 */
static bool is_well_cut(const void *remote, const void *target, size_t len)
{
	size_t tail = len < 8 ? len : 8;
	size_t done = 0, last = 0;

	for (unsigned long i = 0; i < noted_count; i++) {
		if (noted[i].iov_base != (const uint8_t *)remote + done)
			return false;
		last = noted[i].iov_len;
		if (done < len - tail && done + last > len - tail)
			return false;
		done += last;
	}
	return done == len && (last == 1 || last == 2 || last == 4 || last == 8) &&
	       ((uintptr_t)target + len - last) % last == 0;
}

static _Alignas(64) uint8_t cut_from[SPAN], cut_to[SPAN];

static bool is_cut_right(size_t offset, size_t len)
{
	struct iovec iov = {cut_from, len};

	if (soft_copy_safe(NULL, cut_to + offset, cut_from + 3, len) ||
	    !is_well_cut(cut_from + 3, cut_to + offset, len))
		return false;
	return !soft_copy_to_process(NULL, getpid(), (uintptr_t)cut_to + offset, &iov, 1, len) &&
	       is_well_cut(cut_to + offset, cut_to + offset, len);
}

static int pieces_without_process_vm(int channel, void *argument)
{
	(void)channel;
	(void)argument;
	PEER_CHECK(refuse_process_vm() == 0);
	/* from now on that call is not tried first */
	PEER_CHECK(copy_safe(cut_to, cut_from, 1) == 0);
	for (size_t offset = 0; offset < 9; offset++) {
		for (size_t len = 1; len < 100; len++) {
			noted_count = 0;
			PEER_CHECK(copy_safe(cut_to + offset, cut_from, len) == 0);
			PEER_CHECK(is_well_cut(cut_to + offset, cut_to + offset, len));
		}
	}
	return 0;
}

/* EP-RDMAW-44 COMPAT-02: by the kernel, and through a pipe */
static void copy__any_length__last_word_of_the_target_by_itself(void **state)
{
	struct peer peer;

	(void)state;
	peer = peer_start(pieces_without_process_vm, NULL);
	peer_finish(&peer);
	ABILITY_NEED_VM_CALLS();
	for (size_t offset = 0; offset < 9; offset++) {
		for (size_t len = 1; len < 100; len++)
			assert_true(is_cut_right(offset, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__last_byte_polled__rest_is_complete),
		cmocka_unit_test(copy__front_of_target_gone__last_bytes_untouched),
		cmocka_unit_test(copy__page_of_target_closed__last_bytes_last),
		cmocka_unit_test(copy__any_length__last_word_of_the_target_by_itself),
		cmocka_unit_test(copy__one_of_the_last_bytes_polled__those_before_are_complete),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests_name("soft copy", tests, NULL, NULL);
}
