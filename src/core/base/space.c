// SPDX-License-Identifier: BSD-2-Clause
/* Address space for large tables (space.h). */
#include "core/base/space.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int core_space_map(struct core_space *space, size_t size, int prot, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *first = mmap(NULL, page, prot, flags, fd, 0);
	void *all;
	int rc;

	if (first == MAP_FAILED)
		return -errno;
	/* frees nothing that is in use; fails if the page is locked */
	space->is_locked = madvise(first, page, MADV_DONTNEED) < 0 && errno == EINVAL;
	if (space->is_locked)
		munlock(first, page);
	/* a mapping that grows is not locked unless it was */
	all = mremap(first, page, size, MREMAP_MAYMOVE);
	if (all == MAP_FAILED) {
		rc = -errno;
		munmap(first, page);
		return rc;
	}
	space->at = all;
	space->size = size;
	return 0;
}

void core_space_cut(struct core_space *space, size_t size)
{
	if (munmap(space->at + size, space->size - size) == 0)
		space->size = size;
}

void core_space_unmap(struct core_space *space)
{
	munmap(space->at, space->size);
	*space = (struct core_space){0};
}

void core_space_use(const struct core_space *space, size_t offset)
{
	if (space->is_locked)
		(void)mlock(space->at + offset, CORE_SPACE_CHUNK);
}
