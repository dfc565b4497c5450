// SPDX-License-Identifier: BSD-2-Clause
/*
 * Registering memory of each type of range.
 */
#ifndef TESTS_LMR_CREATE_H
#define TESTS_LMR_CREATE_H

#include "conf.h"

#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096u

static const DAT_MEM_TYPE range_types[] = {DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_SO_VIRTUAL,
					   DAT_MEM_TYPE_SHARED_VIRTUAL};

static inline void *map_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* A range of one of the three types; the cookie is the same for all. */
static inline DAT_REGION_DESCRIPTION describe(DAT_MEM_TYPE type, void *p)
{
	static char cookie[DAT_LMR_COOKIE_SIZE] = "test_lmr";
	DAT_REGION_DESCRIPTION region = {.for_va = p};

	if (type == DAT_MEM_TYPE_SHARED_VIRTUAL)
		region.for_shared_memory =
			(DAT_SHARED_MEMORY){.virtual_address = p, .shared_memory_id = &cookie};
	return region;
}

static inline DAT_RETURN create(struct dt_ia *ia, DAT_MEM_TYPE type, void *p, DAT_VLEN len,
				DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr_out)
{
	return dat_lmr_create(ia->ia, type, describe(type, p), len, ia->pz, priv, lmr_out, NULL,
			      NULL, NULL, NULL);
}

/* Calls the kernel directly, so that sanitizers do not allocate shadow memory for the range. */
static inline void *map_huge(size_t len, int prot, int flags, int fd)
{
	return (void *)syscall(SYS_mmap, NULL, len, prot, flags, fd, 0);
}

#endif
