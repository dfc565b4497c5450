// SPDX-License-Identifier: BSD-2-Clause
/*
 * malloc and its relatives of the whole process, the C library's own calls included. The memory
 * comes from the C library under its internal names.
 */
#include "sweep.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *p);

static atomic_long blocks;
static long blocks_at_start; /* of the driver, before the fork */
static unsigned fail_at;     /* 0: never */
static bool fails_always;

void alloc_forked(void)
{
	blocks_at_start = blocks;
}

void alloc_begin(const struct sweep_point *point)
{
	fail_at = point->call->number == SWEEP_MALLOC ? point->n : 0;
	fails_always = point->is_always;
}

long alloc_blocks(void)
{
	return blocks - blocks_at_start;
}

static bool is_failing(void)
{
	unsigned n;

	if (!fail_at || !sweep->is_armed)
		return false;
	n = atomic_fetch_add(&sweep->calls, 1) + 1;
	if (n < fail_at || (n > fail_at && !fails_always))
		return false;
	atomic_fetch_add(&sweep->fired, 1);
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	if (p)
		atomic_fetch_add(&blocks, 1);
	return p;
}

EXPORT void *malloc(size_t size)
{
	return is_failing() ? NULL : counted(__libc_malloc(size));
}

EXPORT void *calloc(size_t count, size_t size)
{
	return is_failing() ? NULL : counted(__libc_calloc(count, size));
}

EXPORT void *realloc(void *old, size_t size)
{
	void *p;

	if (is_failing())
		return NULL;
	p = __libc_realloc(old, size);
	return old ? p : counted(p);
}

EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *memalign(size_t alignment, size_t size)
{
	return is_failing() ? NULL : counted(__libc_memalign(alignment, size));
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

EXPORT void free(void *p)
{
	if (p)
		atomic_fetch_sub(&blocks, 1);
	__libc_free(p);
}

/*
 * dat_ia_open cannot distinguish a system call that failed inside dlopen from a library that does
 * not exist: dlopen reports a text only.
 */
EXPORT void *dlopen(const char *path, int flags)
{
	static void *(*next)(const char *path, int flags);
	bool loads = sweep && !(flags & RTLD_NOLOAD);
	void *library;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "dlopen");
	if (loads)
		sweep->is_in_loader = true;
	library = next(path, flags);
	if (loads)
		sweep->is_in_loader = false;
	return library;
}
