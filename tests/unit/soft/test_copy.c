// SPDX-License-Identifier: BSD-2-Clause
/*
 * The copies of soft/copy.h: exact bytes, faults, refusals of the kernel, and other processes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "copies.h"

static int fetch(void *dst, const void *src, size_t len)
{
	return soft_copy_from_consumer(dst, src, len);
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

/* Copies and compares; the bytes around the target must not change. */
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
	check_alignments(copy_ordered);
	check_alignments(soft_copy_to_consumer);
	check_alignments(fetch);
	check_alignments(place_by_library);
	check_alignments(fetch_by_library);
	ABILITY_NEED_VM_CALLS();
	check_alignments(copy_to_self);
	check_alignments(copy_from_self);
	check_alignments(copy_to_segments);
	check_alignments(copy_to_short_segments);
}

static void check_faults(copy_fn copy)
{
	uint8_t *good = guarded_pages();
	uint8_t *bad = guarded_pages();
	uint8_t *gone = bad + 2 * page;

	memset(bad, 1, 2 * page);
	/* none of the source is accessible, a part, or all of it up to the last byte */
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
	/* no byte before the target changed */
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
	ABILITY_NEED_VM_CALLS();
	check_faults(copy_to_self);
	check_faults(copy_from_self);
}

static void *check_library_thread(void *argument)
{
	(void)argument;
	soft_is_library_thread = true;
	check_faults(soft_copy_to_consumer);
	check_faults(fetch);
	return NULL;
}

/* LMR-USE-14: a thread of the library must not fault; the flag is set in that thread only. */
static void place_and_fetch__thread_of_the_library__efault(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, check_library_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_false(soft_is_library_thread);
}

/* LMR-USE-14: a file that was truncated below a mapping, which would raise SIGBUS */
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
	/* LMR-FREE-21: nothing but one system call is stopped as a whole by a closed gate */
	memset(to, 0, 16);
	PEER_CHECK(soft_copy_safe(&open_gate, to, from, 16) == -EPERM && !to[0]);
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

static int remote_body(int channel, void *argument)
{
	struct remote *remote = argument;

	fill(remote->pages, 2 * page, 99);
	for (size_t i = 0; i < sizeof(remote->token); i++)
		remote->token[i] = (uint8_t)(0xA0 + i);
	PEER_CHECK(peer_signal(channel) == 0 && peer_await(channel) == 0);
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
	ABILITY_NEED_VM_CALLS();
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
	/* our own page at that address is a different one */
	assert_int_equal(remote.pages[5], 0);

	for (size_t i = 0; i < sizeof(token); i++)
		token[i] = (uint8_t)(0xA0 + i);
	assert_true(soft_copy_probe(peer.pid, (uintptr_t)remote.token, token));
	assert_false(soft_copy_probe(peer.pid, (uintptr_t)remote.token, wrong));
	assert_false(soft_copy_probe(getpid(), (uintptr_t)remote.token, token));
	assert_false(soft_copy_probe(peer.pid, 8, token));

	/* longer than the source: the leading part may have been copied, and nothing crashes */
	assert_int_equal(soft_copy_from_process(peer.pid, (uintptr_t)remote.pages + 2 * page - 100,
						iov, SOFT_COPY_IOV_MAX, 2000),
			 -EFAULT);
	assert_int_equal(soft_copy_to_process(&open_gate, peer.pid,
					      (uintptr_t)remote.pages + 2 * page - 100, iov,
					      SOFT_COPY_IOV_MAX, 2000),
			 -EFAULT);
	assert_int_equal(peer_signal(peer.channel), 0);
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
	uint8_t bytes[16] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};
	struct peer peer;

	(void)state;
	ABILITY_NEED_VM_CALLS();
	peer = peer_start(exit_body, NULL);
	peer_finish(&peer);
	assert_int_equal(soft_copy_to_process(&open_gate, peer.pid, (uintptr_t)bytes, &iov, 1, 16),
			 -ESRCH);
	assert_int_equal(soft_copy_from_process(peer.pid, (uintptr_t)bytes, &iov, 1, 16), -ESRCH);
	assert_false(soft_copy_probe(peer.pid, (uintptr_t)bytes, bytes));
}

/* Becomes another user, then reads its parent. */
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
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests_name("soft copy", tests, NULL, NULL);
}
