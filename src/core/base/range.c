// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queries about mappings. Since Linux 6.11 an ioctl on the file of mappings answers them in time
 * that does not depend on their number. On older kernels the file is parsed. It is opened for each
 * query: a descriptor kept across a fork would show the mappings of the parent. It is that of the
 * calling thread: /proc/self is the main thread, which may have ended and then has no mappings.
 */
#include "core/base/range.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/memcheck.h"
#include "shared/fd.h"

enum {
	RANGE_WRITABLE = 0x02, /* as PROCMAP_QUERY reports them */
	RANGE_SHARED = 0x08,
};

/* struct procmap_query of linux/fs.h, which the headers of Debian 12 lack. */
struct range_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};
_Static_assert(sizeof(struct range_query) == 104, "the layout of struct procmap_query");
#define RANGE_QUERY _IOWR('f', 17, struct range_query)

/* 1: every mapping of the range has the flags; 0: not all; -1: the kernel lacks this ioctl. */
static int range_check_ioctl(int fd, uint64_t start, uint64_t end, uint64_t flags)
{
	while (start < end) {
		struct range_query query = {.size = sizeof(query), .query_addr = start};

		if (ioctl(fd, RANGE_QUERY, &query))
			return errno == ENOENT ? 0 : -1;
		if ((query.vma_flags & flags) != flags || query.vma_end <= start)
			return 0;
		start = query.vma_end;
	}
	return 1;
}

/* Checks a range by parsing the file, which it closes. -1: it cannot be read. */
static int range_check_maps(int fd, uint64_t start, uint64_t end, uint64_t flags)
{
	FILE *maps = fdopen(fd, "r");
	char line[512];
	bool is_line_start = true, is_empty = true;

	if (!maps) {
		close(fd);
		return -1;
	}
	while (start < end && fgets(line, sizeof(line), maps)) {
		uint64_t low, high;
		char perms[5];
		bool was_line_start = is_line_start;

		is_empty = false;
		is_line_start = strchr(line, '\n');
		if (!was_line_start ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &low, &high, perms) != 3)
			continue;
		if (high <= start)
			continue;
		if (low > start || ((flags & RANGE_WRITABLE) && perms[1] != 'w') ||
		    ((flags & RANGE_SHARED) && perms[3] != 's'))
			break;
		start = high;
	}
	fclose(maps);
	return is_empty ? -1 : start >= end;
}

static bool range_has(const void *start, uint64_t len, uint64_t flags)
{
	uint64_t low = (uint64_t)(uintptr_t)start;
	int fd = opendat_fd_move(open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
	int answer;

	if (fd < 0)
		return true; /* no /proc: an error shows when the memory is used */
	answer = range_check_ioctl(fd, low, low + len, flags);
	if (answer < 0)
		answer = range_check_maps(fd, low, low + len, flags);
	else
		close(fd);
	return answer != 0;
}

bool core_range_is_mapped(const void *start, uint64_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t low = (uintptr_t)start & ~(page - 1);
	uint64_t size = (uintptr_t)start + len - low;

	bool is_mapped;

	/* memcheck takes it for a read of all the bytes */
	core_memcheck_pause();
	/* MS_ASYNC writes nothing, but fails for a hole; the cost grows with the mappings only */
	is_mapped = !msync((void *)low, size, MS_ASYNC) || errno != ENOMEM;
	core_memcheck_resume();
	return is_mapped;
}

bool core_range_is_writable(const void *start, uint64_t len)
{
	return range_has(start, len, RANGE_WRITABLE);
}

bool core_range_is_shared(const void *start, uint64_t len)
{
	return range_has(start, len, RANGE_SHARED);
}
