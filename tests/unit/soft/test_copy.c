// SPDX-License-Identifier: BSD-2-Clause
/*
 * The copies of the software RNIC: every alignment, memory that is not there, a kernel that
 * refuses, another process, and the order in which the bytes become visible.
 */
#include "soft/copy.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "peer.h"

#define SPAN 4096u

typedef int (*copy_fn)(void *dst, const void *src, size_t len);

static size_t page;
static _Atomic uint32_t open_gate;

static int copy_tail_last(void *dst, const void *src, size_t len)
{
	return soft_copy_gated(&open_gate, dst, src, len);
}

static int copy_safe(void *dst, const void *src, size_t len)
{
	return soft_copy_safe(NULL, dst, src, len);
}

static int copy_to_self(void *dst, const void *src, size_t len)
{
	struct iovec iov = {(void *)(uintptr_t)src, len};

	return soft_copy_to_process(&open_gate, getpid(), (uintptr_t)dst, &iov, 1, len);
}

static int copy_from_self(void *dst, const void *src, size_t len)
{
	struct iovec iov = {dst, len};

	return soft_copy_from_process(getpid(), (uintptr_t)src, &iov, 1, len);
}

static int copy_ordered(void *dst, const void *src, size_t len)
{
	soft_copy_ordered(dst, src, len);
	return 0;
}

/* Into a vector of several segments, the first of them empty; the last two are not used up. */
static int copy_to_segments(void *dst, const void *src, size_t len)
{
	uint8_t *to = dst, beyond[8] = {0};
	size_t third = len / 3;
	struct iovec iov[] = {
		{to, 0},     {to, third},    {to + third, third}, {to + 2 * third, len - 2 * third},
		{beyond, 4}, {beyond + 4, 4}};
	int rc = soft_copy_from_process(getpid(), (uintptr_t)src, iov, 6, len);

	return memcmp(beyond, "\0\0\0\0\0\0\0", 8) == 0 ? rc : -EIO;
}

/* Ends in the middle of a segment, the last bytes in three of them. */
static int copy_to_short_segments(void *dst, const void *src, size_t len)
{
	uint8_t *to = dst;
	struct iovec iov[3];

	if (len <= 5)
		return copy_from_self(dst, src, len);
	iov[0] = (struct iovec){to, len - 5};
	iov[1] = (struct iovec){to + len - 5, 3};
	iov[2] = (struct iovec){to + len - 2, 16};
	return soft_copy_from_process(getpid(), (uintptr_t)src, iov, 3, len);
}

/* The same copy as a thread of the library makes it. */
static int place_by_library(void *dst, const void *src, size_t len)
{
	int rc;

	soft_is_library_thread = true;
	rc = soft_copy_to_consumer(dst, src, len);
	soft_is_library_thread = false;
	return rc;
}

static int fetch_by_library(void *dst, const void *src, size_t len)
{
	int rc;

	soft_is_library_thread = true;
	rc = soft_copy_from_consumer(dst, src, len);
	soft_is_library_thread = false;
	return rc;
}

/* Two accessible pages with an inaccessible one behind them. */
static uint8_t *guarded_pages(void)
{
	uint8_t *map =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(munmap(map + 2 * page, page), 0);
	return map;
}

static void fill(uint8_t *bytes, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* Copies and compares; the bytes around the target must stay as they were. */
static bool is_exact(copy_fn copy, size_t dst_offset, size_t src_offset, size_t len)
{
	static uint8_t from[SPAN], to[SPAN];

	fill(from, sizeof(from), (unsigned int)(len + src_offset));
	memset(to, 0xEE, sizeof(to));
	if (copy(to + 64 + dst_offset, from + src_offset, len))
		return false;
	if (memcmp(to + 64 + dst_offset, from + src_offset, len) != 0)
		return false;
	for (size_t i = 0; i < sizeof(to); i++) {
		bool is_target = i >= 64 + dst_offset && i < 64 + dst_offset + len;

		if (!is_target && to[i] != 0xEE)
			return false;
	}
	return true;
}

static void check_alignments(copy_fn copy)
{
	static const size_t lengths[] = {0,  1,	 2,  3,	 4,  5,	  6,   7,   8,	  9,   10, 11,
					 12, 13, 15, 16, 17, 23,  24,  31,  32,	  33,  63, 64,
					 65, 71, 72, 79, 99, 127, 128, 129, 1000, 3000};

	for (size_t dst = 0; dst < 9; dst++) {
		for (size_t src = 0; src < 9; src++) {
			for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
				assert_true(is_exact(copy, dst, src, lengths[i]));
		}
	}
}

static void copy__every_alignment_and_length__exact(void **state)
{
	(void)state;
	check_alignments(copy_safe);
	check_alignments(soft_copy_safe_unordered);
	check_alignments(copy_tail_last);
	check_alignments(copy_to_self);
	check_alignments(copy_from_self);
	check_alignments(copy_to_segments);
	check_alignments(copy_to_short_segments);
	check_alignments(copy_ordered);
	check_alignments(soft_copy_to_consumer);
	check_alignments(soft_copy_from_consumer);
	check_alignments(place_by_library);
	check_alignments(fetch_by_library);
}

static void check_faults(copy_fn copy)
{
	uint8_t *good = guarded_pages();
	uint8_t *bad = guarded_pages();
	uint8_t *gone = bad + 2 * page;

	memset(bad, 1, 2 * page);
	/* nothing of it is there, a part of it is, all of it is, up to the last byte */
	assert_int_equal(copy(gone, good, 100), -EFAULT);
	assert_int_equal(copy(good, gone, 100), -EFAULT);
	assert_int_equal(copy(gone - 50, good, 100), -EFAULT);
	assert_int_equal(copy(good, gone - 50, 100), -EFAULT);
	assert_int_equal(copy(gone - page - 1, good, page + 2), -EFAULT);
	assert_int_equal(copy(gone - 8, good, 9), -EFAULT);
	assert_int_equal(copy(gone - 8, good, 8), 0);
	assert_int_equal(copy(good, gone - 8, 8), 0);
	assert_int_equal(copy(NULL, good, 1), -EFAULT);
	assert_int_equal(copy(good, NULL, 1), -EFAULT);
	/* before the part that was to be written nothing changed */
	for (size_t i = 0; i < page - 1; i++)
		assert_int_equal(bad[i], 1);

	assert_int_equal(mprotect(bad, 2 * page, PROT_READ), 0);
	assert_int_equal(copy(bad, good, 64), -EFAULT);
	assert_int_equal(copy(good, bad, 64), 0);
	munmap(good, 2 * page);
	munmap(bad, 2 * page);
}

/* LMR-USE-14 */
static void copy__memory_gone__efault(void **state)
{
	(void)state;
	check_faults(copy_safe);
	check_faults(soft_copy_safe_unordered);
	check_faults(copy_to_self);
	check_faults(copy_from_self);
}

static void *check_library_thread(void *argument)
{
	(void)argument;
	soft_is_library_thread = true;
	check_faults(soft_copy_to_consumer);
	check_faults(soft_copy_from_consumer);
	return NULL;
}

/* LMR-USE-14: a thread of the library must not fault; what is set in it is set there alone. */
static void place_and_fetch__thread_of_the_library__efault(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, check_library_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_false(soft_is_library_thread);
}

/* A file that was cut short below a mapping, what would raise SIGBUS: LMR-USE-14 */
static void copy_safe__file_truncated__efault(void **state)
{
	int fd = memfd_create("cut", MFD_CLOEXEC);
	uint8_t bytes[64] = {0};
	uint8_t *map;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(copy_safe(map, bytes, 64), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(copy_safe(map, bytes, 64), -EFAULT);
	assert_int_equal(copy_safe(bytes, map, 64), -EFAULT);
	assert_int_equal(soft_copy_safe_unordered(bytes, map, 64), -EFAULT);
	munmap(map, page);
	close(fd);
}

static void copy__length_that_wraps__efault(void **state)
{
	uint8_t bytes[16] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};

	(void)state;
	assert_int_equal(soft_copy_to_process(&open_gate, getpid(), UINT64_MAX - 7, &iov, 1, 16),
			 -EFAULT);
	assert_int_equal(soft_copy_from_process(getpid(), UINT64_MAX - 7, &iov, 1, 16), -EFAULT);
}

/* --- a kernel that refuses --- */

static int refuse_process_vm(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int sandboxed_body(int channel, void *argument)
{
	static const size_t lengths[] = {1, 7, 8, 9, 4095, 65536, 70001, 300000};
	uint8_t *from = malloc(300000);
	uint8_t *to = calloc(1, 300001);
	struct iovec iov = {to, 16};
	uint8_t *pages = guarded_pages();

	(void)channel;
	(void)argument;
	PEER_CHECK(from && to && refuse_process_vm() == 0);
	fill(from, 300000, 3);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(to, 0, 300001);
		PEER_CHECK(copy_safe(to, from, lengths[i]) == 0);
		PEER_CHECK(memcmp(to, from, lengths[i]) == 0 && to[lengths[i]] == 0);
	}
	PEER_CHECK(soft_copy_safe_unordered(to, from + 1, 1000) == 0);
	PEER_CHECK(memcmp(to, from + 1, 1000) == 0);
	PEER_CHECK(copy_safe(pages + 2 * page - 8, from, 9) == -EFAULT);
	PEER_CHECK(copy_safe(pages + page, from, 2 * page) == -EFAULT);
	PEER_CHECK(copy_safe(to, pages + page, 2 * page) == -EFAULT);
	PEER_CHECK(copy_safe(NULL, from, 1) == -EFAULT);
	PEER_CHECK(soft_copy_to_process(&open_gate, getpid(), (uintptr_t)from, &iov, 1, 16) ==
		   -EPERM);
	PEER_CHECK(soft_copy_from_process(getpid(), (uintptr_t)from, &iov, 1, 16) == -EPERM);
	PEER_CHECK(!soft_copy_probe(getpid(), (uintptr_t)from, from));
	free(from);
	free(to);
	munmap(pages, 2 * page);
	return 0;
}

static void copy_safe__kernel_refuses__works_and_reports_faults(void **state)
{
	struct peer peer = peer_start(sandboxed_body, NULL);

	(void)state;
	peer_finish(&peer);
}

/* --- another process --- */

struct remote {
	uint8_t *pages; /* guarded_pages(); each process has its own after the fork */
	uint8_t token[16];
};

static int remote_body(int channel, void *argument)
{
	struct remote *remote = argument;

	fill(remote->pages, 2 * page, 99);
	for (size_t i = 0; i < sizeof(remote->token); i++)
		remote->token[i] = (uint8_t)(0xA0 + i);
	PEER_CHECK(peer_tell(channel) == 0 && peer_await(channel) == 0);
	/* the parent has written its pattern to [5, 2005) */
	for (size_t i = 0; i < 2000; i++)
		PEER_CHECK(remote->pages[5 + i] == (uint8_t)(1 + i * 7 + (i >> 8)));
	PEER_CHECK(remote->pages[4] == (uint8_t)(99 + 4 * 7));
	PEER_CHECK(remote->pages[2005] == (uint8_t)(99 + 2005 * 7 + (2005 >> 8)));
	return 0;
}

/* Cuts bytes into SOFT_COPY_IOV_MAX parts of unequal length, some of them empty. */
static void slice(uint8_t *bytes, size_t len, struct iovec iov[SOFT_COPY_IOV_MAX])
{
	size_t start = 0;

	for (size_t i = 0; i < SOFT_COPY_IOV_MAX; i++) {
		size_t part = i % 5 == 2 ? 0 : i;

		if (part > len - start || i == SOFT_COPY_IOV_MAX - 1)
			part = len - start;
		iov[i].iov_base = bytes + start;
		iov[i].iov_len = part;
		start += part;
	}
}

static void copy_process__second_process__scatter_and_gather(void **state)
{
	struct remote remote = {.pages = guarded_pages()};
	struct iovec iov[SOFT_COPY_IOV_MAX];
	static const uint8_t wrong[16];
	uint8_t token[16];
	uint8_t bytes[2000];
	struct peer peer;

	(void)state;
	peer = peer_start(remote_body, &remote);
	assert_int_equal(peer_await(peer.channel), 0);

	memset(bytes, 0, sizeof(bytes));
	slice(bytes, sizeof(bytes), iov);
	assert_int_equal(soft_copy_from_process(peer.pid, (uintptr_t)remote.pages, iov,
						SOFT_COPY_IOV_MAX, sizeof(bytes)),
			 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], (uint8_t)(99 + i * 7 + (i >> 8)));

	fill(bytes, sizeof(bytes), 1);
	assert_int_equal(soft_copy_to_process(&open_gate, peer.pid, (uintptr_t)remote.pages + 5,
					      iov, SOFT_COPY_IOV_MAX, sizeof(bytes)),
			 0);
	/* ours is another page, at the same address */
	assert_int_equal(remote.pages[5], 0);

	for (size_t i = 0; i < sizeof(token); i++)
		token[i] = (uint8_t)(0xA0 + i);
	assert_true(soft_copy_probe(peer.pid, (uintptr_t)remote.token, token));
	assert_false(soft_copy_probe(peer.pid, (uintptr_t)remote.token, wrong));
	assert_false(soft_copy_probe(getpid(), (uintptr_t)remote.token, token));
	assert_false(soft_copy_probe(peer.pid, 8, token));

	/* longer than what is there: the leading part may have come, and nothing crashes */
	assert_int_equal(soft_copy_from_process(peer.pid, (uintptr_t)remote.pages + 2 * page - 100,
						iov, SOFT_COPY_IOV_MAX, 2000),
			 -EFAULT);
	assert_int_equal(soft_copy_to_process(&open_gate, peer.pid,
					      (uintptr_t)remote.pages + 2 * page - 100, iov,
					      SOFT_COPY_IOV_MAX, 2000),
			 -EFAULT);
	assert_int_equal(peer_tell(peer.channel), 0);
	peer_finish(&peer);
	munmap(remote.pages, 2 * page);
}

static int exit_body(int channel, void *argument)
{
	(void)channel;
	(void)argument;
	return 0;
}

static void copy_process__process_gone__esrch(void **state)
{
	struct peer peer = peer_start(exit_body, NULL);
	uint8_t bytes[16] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};

	(void)state;
	peer_finish(&peer);
	assert_int_equal(soft_copy_to_process(&open_gate, peer.pid, (uintptr_t)bytes, &iov, 1, 16),
			 -ESRCH);
	assert_int_equal(soft_copy_from_process(peer.pid, (uintptr_t)bytes, &iov, 1, 16), -ESRCH);
	assert_false(soft_copy_probe(peer.pid, (uintptr_t)bytes, bytes));
}

/* Becomes another user, then reaches for its parent. */
static int stranger_body(int channel, void *argument)
{
	struct iovec iov = {argument, 16};

	(void)channel;
	PEER_CHECK(setresuid(65534, 65534, 65534) == 0);
	PEER_CHECK(soft_copy_to_process(&open_gate, getppid(), (uintptr_t)argument, &iov, 1, 16) ==
		   -EPERM);
	PEER_CHECK(soft_copy_from_process(getppid(), (uintptr_t)argument, &iov, 1, 16) == -EPERM);
	return 0;
}

static void copy_process__other_user__eperm(void **state)
{
	uint8_t bytes[16] = {0};
	struct peer peer;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: only root can become another user\n");
		skip();
	}
	peer = peer_start(stranger_body, bytes);
	peer_finish(&peer);
}

/* --- order --- */

#define ORDER_LEN 256u
#define ORDER_ROUNDS 300u

/* In memory that both processes share. */
struct order {
	_Alignas(64) uint8_t target[ORDER_LEN + 64];
	_Alignas(64) _Atomic unsigned int round; /* the round that the watcher is ready for */
	size_t offset;
	size_t len;
	size_t watched; /* the byte of them that the watcher polls */
};

/*
 * The peer: polls the last byte, then all the others must be there; or one of the last 8, then all
 * but those.
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
		check_order(copy_safe, cases[i][0], cases[i][1]);
		check_order(copy_to_self, cases[i][0], cases[i][1]);
		check_order(copy_from_self, cases[i][0], cases[i][1]);
		check_order(copy_to_segments, cases[i][0], cases[i][1]);
		check_order(copy_to_short_segments, cases[i][0], cases[i][1]);
		check_order(soft_copy_to_consumer, cases[i][0], cases[i][1]);
		check_order(place_by_library, cases[i][0], cases[i][1]);
	}
}

/* COMPAT-46: the last 8 bytes behind all others, wherever the consumer polls among them. */
static void copy__one_of_the_last_bytes_polled__those_before_are_complete(void **state)
{
	static const copy_fn copies[] = {copy_tail_last, copy_ordered, place_by_library,
					 copy_from_self, copy_to_segments};

	(void)state;
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		check_order_at(copies[i], 0, 256, 248);
		check_order_at(copies[i], 3, 61, 53);
		check_order_at(copies[i], 5, 100, 97);
	}
}

/* --- order, as faults show it --- */

#define ENDS_MAX 72u /* bytes of the target in its second page */

static uint8_t *two_pages; /* that the copies below go into */
static size_t target_at, target_len;
static volatile sig_atomic_t faults, is_in_order;

/* Those of the last 8 bytes of the target that are in the second page are as they were. */
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

/* All of the target that is in the first page has come. */
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

/* The first page cannot be written: what is in the second one has not come before. */
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

/* With how many bytes of the target in its first page, and in the second. */
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
	assert_true(are_fronts_first(copy_to_self));
	peer = peer_start(fronts_without_process_vm, NULL);
	peer_finish(&peer);
	munmap(two_pages, 2 * page);
}

/* A store into a page that is closed: checks the other one, and opens it. */
static void on_store(int number, siginfo_t *info, void *context)
{
	uint8_t *address = info->si_addr;
	bool is_second = address >= two_pages + page;

	(void)context;
	if (address < two_pages || address >= two_pages + 2 * page || faults++) {
		signal(number, SIG_DFL); /* it is something else */
		return;
	}
	mprotect(two_pages, 2 * page, PROT_READ | PROT_WRITE);
	is_in_order = is_second ? is_front_new() : is_tail_old();
}

/* Copies with one of the pages closed; it is the order that counts in which both are written. */
static void check_stores(size_t before, size_t behind, bool is_second_closed)
{
	static uint8_t from[SPAN + ENDS_MAX];

	begin_target(before, behind);
	memset(from, 0x11, sizeof(from));
	faults = 0;
	is_in_order = 0;
	assert_int_equal(mprotect(two_pages + (is_second_closed ? page : 0), page, PROT_READ), 0);
	assert_int_equal(copy_tail_last(two_pages + target_at, from, target_len), 0);
	assert_int_equal(faults, 1);
	if (!is_in_order)
		print_error("%zu bytes, then %zu, %s page closed\n", before, behind,
			    is_second_closed ? "second" : "first");
	assert_true(is_in_order);
	assert_memory_equal(two_pages + target_at, from, target_len);
}

/* EP-RDMAW-44 COMPAT-02: by the processor; a handler checks the memory between two stores */
static void copy_tail_last__page_of_target_closed__last_bytes_last(void **state)
{
	struct sigaction action = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO}, old, old_bus;

	(void)state;
	map_two_pages();
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	assert_int_equal(sigaction(SIGBUS, &action, &old_bus), 0);
	for (size_t i = 0; i < FRONT_LENS; i++) {
		for (size_t behind = 1; behind <= ENDS_MAX; behind++)
			check_stores(front_lens[i], behind, false);
		/* no more than the last 8 bytes are in the second page, down to the very last */
		for (size_t behind = 1; behind <= 8; behind++)
			check_stores(front_lens[i], behind, true);
	}
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, &old_bus, NULL), 0);
	munmap(two_pages, 2 * page);
}

/* --- order, as the kernel is asked for it --- */

/* What the last copy consisted of: the remote vector of a call, or the reads from a pipe. */
static struct iovec noted[8];
static unsigned long noted_count;

static void note_vector(const struct iovec *remote, unsigned long count)
{
	noted_count = count < 8 ? count : 8;
	memcpy(noted, remote, noted_count * sizeof(*remote));
}

/* In place of the C library's (meson.build). */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals,
				const struct iovec *remote, unsigned long remotes,
				unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long locals,
				 const struct iovec *remote, unsigned long remotes,
				 unsigned long flags);
ssize_t __wrap_read(int fd, void *buffer, size_t size);

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
 * target is a piece of its own, of a size that is stored at once, and what comes before it within
 * the last 8 bytes is not together with what comes before those.
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
	/* from now on it is not asked first */
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
	for (size_t offset = 0; offset < 9; offset++) {
		for (size_t len = 1; len < 100; len++)
			assert_true(is_cut_right(offset, len));
	}
	peer = peer_start(pieces_without_process_vm, NULL);
	peer_finish(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copy__every_alignment_and_length__exact),
		cmocka_unit_test(copy__memory_gone__efault),
		cmocka_unit_test(place_and_fetch__thread_of_the_library__efault),
		cmocka_unit_test(copy_safe__file_truncated__efault),
		cmocka_unit_test(copy__length_that_wraps__efault),
		cmocka_unit_test(copy_safe__kernel_refuses__works_and_reports_faults),
		cmocka_unit_test(copy_process__second_process__scatter_and_gather),
		cmocka_unit_test(copy_process__process_gone__esrch),
		cmocka_unit_test(copy_process__other_user__eperm),
		cmocka_unit_test(copy__last_byte_polled__rest_is_complete),
		cmocka_unit_test(copy__front_of_target_gone__last_bytes_untouched),
		cmocka_unit_test(copy_tail_last__page_of_target_closed__last_bytes_last),
		cmocka_unit_test(copy__any_length__last_word_of_the_target_by_itself),
		cmocka_unit_test(copy__one_of_the_last_bytes_polled__those_before_are_complete),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests_name("soft copy", tests, NULL, NULL);
}
