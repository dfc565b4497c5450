// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mapping the registered memory of a peer: what is found, what is mapped, and what a peer cannot
 * do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "main_ended.h"
#include "peer.h"
#include "soft/region.h"

static size_t page;

#define HUGE_2MB (21u << 26) /* MFD_HUGE_2MB of linux/memfd.h */

/* --- real mappings --- */

static int memory_file(size_t size, unsigned int flags, int seals)
{
	int fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static uint8_t *map_file(int fd, size_t size, int prot, size_t offset)
{
	uint8_t *map = mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)offset);

	assert_ptr_not_equal(map, MAP_FAILED);
	return map;
}

static int find(const void *address, size_t length, int *fd_out, uint64_t *offset_out)
{
	*fd_out = -1;
	*offset_out = 0;
	return soft_region_find((uintptr_t)address, length, fd_out, offset_out);
}

static void check_not_found(const void *address, size_t length)
{
	uint64_t offset;
	int fd;

	assert_int_equal(find(address, length, &fd, &offset), -ENOENT);
	assert_int_equal(fd, -1);
}

static void find__sealed_file__descriptor_and_offset(void **state)
{
	int file = memory_file(8 * page, 0, F_SEAL_SHRINK);
	uint8_t *map = map_file(file, 4 * page, PROT_READ | PROT_WRITE, 2 * page);
	struct soft_region region;
	uint64_t offset;
	int fd;

	(void)state;
	strcpy((char *)map + 100, "hello");
	assert_int_equal(find(map + 100, 2 * page, &fd, &offset), 0);
	assert_int_equal(offset, 2 * page + 100);
	assert_int_not_equal(fd, file);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(soft_region_map(fd, offset, 2 * page, true, &region), 0);
	close(fd);
	assert_string_equal((char *)region.base, "hello");
	strcpy((char *)region.base, "world");
	assert_string_equal((char *)map + 100, "world");
	soft_region_unmap(&region);
	assert_null(region.base);
	soft_region_unmap(&region);

	assert_int_equal(find(map, 4 * page, &fd, &offset), 0);
	close(fd);
	check_not_found(map, 4 * page + 1);
	check_not_found(map - 1, 2);
	munmap(map, 4 * page);
	close(file);
}

static uint8_t *sealed_map;

static bool is_sealed_map_found(void)
{
	uint64_t offset;
	int fd;

	return find(sealed_map, page, &fd, &offset) == 0 && soft_region_read_only(fd) >= 0;
}

static void find__main_thread_has_ended__still_found(void **state)
{
	int file = memory_file(page, 0, F_SEAL_SHRINK);

	(void)state;
	sealed_map = map_file(file, page, PROT_READ | PROT_WRITE, 0);
	assert_true(main_ended_check(is_sealed_map_found));
	munmap(sealed_map, page);
	close(file);
}

static void find__split_mapping__still_found(void **state)
{
	int file = memory_file(4 * page, 0, F_SEAL_SHRINK);
	uint8_t *map = map_file(file, 4 * page, PROT_READ | PROT_WRITE, 0);
	struct soft_region region;
	uint64_t offset;
	int fd;

	(void)state;
	/* now three lines in maps */
	assert_int_equal(mprotect(map + page, page, PROT_READ), 0);
	assert_int_equal(find(map + 8, 4 * page - 8, &fd, &offset), 0);
	assert_int_equal(offset, 8);
	/* a part is read-only here, so the whole range is */
	assert_int_equal(soft_region_map(fd, offset, 4 * page - 8, true, &region), -EACCES);
	assert_int_equal(soft_region_map(fd, offset, 4 * page - 8, false, &region), 0);
	soft_region_unmap(&region);
	close(fd);
	assert_int_equal(munmap(map + 2 * page, page), 0);
	check_not_found(map, 4 * page);
	assert_int_equal(find(map + 3 * page, page, &fd, &offset), 0);
	assert_int_equal(offset, 3 * page);
	close(fd);
	munmap(map, 4 * page);
	close(file);
}

static void find__read_only_descriptor__another_is_preferred(void **state)
{
	int file = memory_file(page, 0, F_SEAL_SHRINK);
	uint8_t *map = map_file(file, page, PROT_READ | PROT_WRITE, 0);
	char path[40];
	uint64_t offset;
	int fd, read_only;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read_only >= 0);
	/* the read-only descriptor has the lower number, and is found first */
	fd = dup(file);
	assert_int_equal(dup2(read_only, file), file);
	close(read_only);
	assert_int_equal(find(map, page, &read_only, &offset), 0);
	assert_int_equal(fcntl(read_only, F_GETFL) & O_ACCMODE, O_RDWR);
	close(read_only);
	close(fd);
	close(file);
	munmap(map, page);
}

static void find__file_can_shrink__not_found(void **state)
{
	int file = memory_file(page, 0, F_SEAL_GROW);
	uint8_t *map = map_file(file, page, PROT_READ | PROT_WRITE, 0);

	(void)state;
	check_not_found(map, page);
	munmap(map, page);
	close(file);
}

static void find__other_memory__not_found(void **state)
{
	int sealed = memory_file(page, 0, F_SEAL_SHRINK);
	char path[] = "/tmp/soft-region-XXXXXX";
	uint8_t *private_map = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, sealed, 0);
	uint8_t *anonymous =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int file = mkstemp(path);
	int segment = shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
	uint8_t on_stack[16];
	uint8_t *map, *attached;

	(void)state;
	assert_true(file >= 0);
	unlink(path);
	assert_int_equal(ftruncate(file, (off_t)page), 0);
	map = map_file(file, page, PROT_READ | PROT_WRITE, 0);
	check_not_found(map, page);
	check_not_found(private_map, page);
	check_not_found(anonymous, page);
	check_not_found(on_stack, sizeof(on_stack));
	check_not_found(path, 1);
	check_not_found(NULL, 1);
	check_not_found((void *)UINTPTR_MAX, 1);
	assert_true(segment >= 0);
	attached = shmat(segment, NULL, 0);
	shmctl(segment, IPC_RMID, NULL);
	assert_ptr_not_equal(attached, (void *)-1);
	check_not_found(attached, page);
	shmdt(attached);
	munmap(map, page);
	munmap(private_map, page);
	munmap(anonymous, page);
	close(file);
	close(sealed);
}

/* The consumer closed the file after it had mapped it: found only where the kernel allows that. */
static void find__file_closed__found_or_not(void **state)
{
	int file = memory_file(page, 0, F_SEAL_SHRINK);
	uint8_t *map = map_file(file, page, PROT_READ | PROT_WRITE, 0);
	struct soft_region region;
	uint64_t offset;
	int fd, rc;

	(void)state;
	close(file);
	rc = find(map + 5, 10, &fd, &offset);
	if (rc == 0) {
		assert_int_equal(soft_region_map(fd, offset, 10, true, &region), 0);
		region.base[0] = 77;
		assert_int_equal(map[5], 77);
		soft_region_unmap(&region);
		close(fd);
	} else {
		assert_int_equal(rc, -ENOENT);
	}
	munmap(map, page);
}

static void map__untrusted_numbers__einval(void **state)
{
	int file = memory_file(2 * page + 100, 0, F_SEAL_SHRINK);
	int unsealed = memory_file(page, 0, 0);
	uint64_t size = 2 * page + 100;
	struct soft_region region;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(soft_region_map(file, 0, size + 1, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, size, 1, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, size - 1, 2, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, 0, 0, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, UINT64_MAX, 2, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, 2, UINT64_MAX, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(unsealed, 0, page, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(null, 0, page, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(-1, 0, page, false, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, size - 1, 1, true, &region), 0);
	region.base[0] = 1;
	soft_region_unmap(&region);
	close(file);
	close(unsealed);
	close(null);
}

static void map__write_sealed__only_for_reading(void **state)
{
	int file = memory_file(page, 0, F_SEAL_SHRINK | F_SEAL_WRITE);
	struct soft_region region;

	(void)state;
	assert_int_equal(soft_region_map(file, 0, page, true, &region), -EACCES);
	assert_int_equal(soft_region_map(file, 0, page, false, &region), 0);
	assert_int_equal(region.base[page - 1], 0);
	soft_region_unmap(&region);
	close(file);
}

/* LMR-USE-14: the owner could punch a hole, and nothing guarantees another huge page for it. */
static void map__huge_pages__neither_found_nor_mapped(void **state)
{
	const size_t huge = 2u << 20;
	int file = memory_file(huge, MFD_HUGETLB | HUGE_2MB, F_SEAL_SHRINK);
	struct soft_region region;
	uint8_t *map;

	(void)state;
	ABILITY_NEED(file >= 0, "this kernel has no huge pages");
	/* without a reservation, so that none has to be free */
	map = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	ABILITY_NEED(map != MAP_FAILED, "an emulator of the processor maps no huge pages");
	check_not_found(map, huge);
	assert_int_equal(soft_region_map(file, 0, 5000, true, &region), -EINVAL);
	assert_int_equal(soft_region_map(file, 0, 5000, false, &region), -EINVAL);
	munmap(map, huge);
	close(file);
}

/* --- two processes --- */

struct offer {
	int fd;
	uint64_t offset;
};

/* The initiator: maps, writes, and continues while the owner does its worst. */
static int initiator_body(int channel, void *argument)
{
	struct offer *offer = argument;
	struct soft_region region;

	PEER_CHECK(soft_region_map(offer->fd, offer->offset, page, true, &region) == 0);
	close(offer->fd);
	memset(region.base, 0x55, page);
	PEER_CHECK(peer_signal(channel) == 0 && peer_await(channel) == 0);
	memset(region.base, 0x66, page);
	soft_region_unmap(&region);
	return 0;
}

/* LMR-USE-14: the owner truncates and unmaps the file, and the peer's copy continues */
static void map__owner_truncates_and_unmaps__peer_unharmed(void **state)
{
	int file = memory_file(3 * page, 0, F_SEAL_SHRINK);
	uint8_t *map = map_file(file, 3 * page, PROT_READ | PROT_WRITE, 0);
	struct offer offer;
	struct peer peer;

	(void)state;
	assert_int_equal(find(map + 100, page, &offer.fd, &offer.offset), 0);
	peer = peer_start(initiator_body, &offer);
	close(offer.fd);
	assert_int_equal(peer_await(peer.channel), 0);
	assert_int_equal(map[99], 0);
	assert_int_equal(map[100], 0x55);
	assert_int_equal(map[100 + page - 1], 0x55);
	assert_int_equal(map[100 + page], 0);
	assert_int_equal(ftruncate(file, 0), -1);
	munmap(map, 3 * page);
	close(file);
	assert_int_equal(peer_signal(peer.channel), 0);
	peer_finish(&peer);
}

static int fork_body(int channel, void *argument)
{
	unsigned char resident;

	(void)channel;
	/* not inherited: nothing is mapped at that address */
	PEER_CHECK(mincore(argument, page, &resident) == -1 && errno == ENOMEM);
	return 0;
}

static void map__fork__not_inherited(void **state)
{
	int file = memory_file(page, 0, F_SEAL_SHRINK);
	struct soft_region region;
	struct peer peer;

	(void)state;
	ABILITY_NEED(ability_dontfork(), "MADV_DONTFORK has no effect");
	assert_int_equal(soft_region_map(file, 0, page, true, &region), 0);
	peer = peer_start(fork_body, region.base);
	peer_finish(&peer);
	soft_region_unmap(&region);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__sealed_file__descriptor_and_offset),
		cmocka_unit_test(find__main_thread_has_ended__still_found),
		cmocka_unit_test(find__split_mapping__still_found),
		cmocka_unit_test(find__read_only_descriptor__another_is_preferred),
		cmocka_unit_test(find__file_can_shrink__not_found),
		cmocka_unit_test(find__other_memory__not_found),
		cmocka_unit_test(find__file_closed__found_or_not),
		cmocka_unit_test(map__untrusted_numbers__einval),
		cmocka_unit_test(map__write_sealed__only_for_reading),
		cmocka_unit_test(map__huge_pages__neither_found_nor_mapped),
		cmocka_unit_test(map__owner_truncates_and_unmaps__peer_unharmed),
		cmocka_unit_test(map__fork__not_inherited),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests_name("soft region", tests, NULL, NULL);
}
