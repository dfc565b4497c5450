// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_opendat_mem_alloc and dat_opendat_mem_free: memory files that a peer may map. Each one keeps
 * its descriptor, from which the provider duplicates the one that it gives to peers.
 */
#include "log.h"
#include "refuse.h"
#include "sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/fd.h"
#include "shared/file_size.h"

struct memory {
	void *address;
	size_t length;
	int fd;
	struct memory *next;
};

/* Guarded by the registry's lock. */
static struct memory *memories;

/* Makes the file, sealed at its size. Returns the descriptor or -errno. */
static int file_make(size_t length, bool is_huge)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (is_huge ? MFD_HUGETLB : 0);
	int fd = opendat_fd_move(memfd_create("opendat-memory", flags));
	int rc;

	if (fd < 0)
		return -errno;
	rc = opendat_file_set_size(fd, length);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* The size of a page of the file system that a file is in; for huge pages, that of one. */
static size_t file_page(bool is_huge)
{
	struct stat status;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd;

	if (!is_huge)
		return page;
	fd = opendat_fd_move(memfd_create("opendat-memory", MFD_CLOEXEC | MFD_HUGETLB));
	if (fd < 0)
		return page; /* file_make will report it */
	if (fstat(fd, &status) == 0)
		page = (size_t)status.st_blksize;
	close(fd);
	return page;
}

/* Fills in all members. Returns 0 or -errno. */
static int memory_make(struct memory *memory, size_t length, bool is_huge)
{
	int error;

	memory->length = length;
	memory->fd = file_make(length, is_huge);
	if (memory->fd < 0)
		return memory->fd;
	memory->address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (memory->address != MAP_FAILED)
		return 0;
	error = errno;
	close(memory->fd);
	return -error;
}

static void memory_list(struct memory *memory)
{
	registry_lock();
	memory->next = memories;
	memories = memory;
	registry_unlock();
}

static DAT_RETURN alloc_check(DAT_VLEN length, DAT_OPENDAT_MEM_FLAGS flags, DAT_PVOID *memory)
{
	static const char call[] = "dat_opendat_mem_alloc";

	if (!length || length > SIZE_MAX / 4)
		return registry_bad_arg(call, 1, "length", "%llu is 0, or beyond the address space",
					(unsigned long long)length);
	if (flags & ~DAT_OPENDAT_MEM_HUGE)
		return registry_bad_arg(call, 2, "flags", "0x%x has bits other than 0x%x",
					(unsigned int)flags, (unsigned int)DAT_OPENDAT_MEM_HUGE);
	if (!memory)
		return registry_bad_arg(call, 3, "memory", "NULL");
	return DAT_SUCCESS;
}

DAT_RETURN dat_opendat_mem_alloc(DAT_VLEN length, DAT_OPENDAT_MEM_FLAGS flags, DAT_PVOID *memory)
{
	bool is_huge = flags & DAT_OPENDAT_MEM_HUGE;
	DAT_RETURN ret = alloc_check(length, flags, memory);
	struct memory *made;
	size_t page;
	int rc;

	if (ret != DAT_SUCCESS)
		return ret;
	page = file_page(is_huge);
	made = calloc(1, sizeof(*made));
	rc = made ? memory_make(made, ((size_t)length + page - 1) / page * page, is_huge) : -ENOMEM;
	if (rc) {
		registry_log(REGISTRY_LOG_ERROR, "dat_opendat_mem_alloc: %llu bytes%s: %s",
			     (unsigned long long)length, is_huge ? " in huge pages" : "",
			     strerror(-rc));
		free(made);
		return registry_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	memory_list(made);
	*memory = made->address;
	return DAT_SUCCESS;
}

DAT_RETURN dat_opendat_mem_free(DAT_PVOID memory)
{
	struct memory **link = &memories, *found;

	registry_lock();
	while (*link && (*link)->address != memory)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	registry_unlock();
	if (!found)
		return registry_bad_arg("dat_opendat_mem_free", 1, "memory",
					"%p is no memory of dat_opendat_mem_alloc", memory);
	munmap(found->address, found->length);
	close(found->fd);
	free(found);
	return DAT_SUCCESS;
}
