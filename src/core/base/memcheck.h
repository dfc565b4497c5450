// SPDX-License-Identifier: BSD-2-Clause
/*
 * What valgrind's memcheck has to be told: it does not see what the kernel writes into this process
 * for a peer, or a device does. Without its header at build time these functions do nothing. A
 * request costs a few instructions when valgrind does not run, so none is on a data path.
 */
#ifndef CORE_BASE_MEMCHECK_H
#define CORE_BASE_MEMCHECK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __has_include
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

/* Others may have written there, or will. */
static inline void core_memcheck_written(uint64_t address, uint64_t len)
{
#ifdef VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE
	(void)VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE((void *)(uintptr_t)address, (size_t)len);
#else
	(void)address;
	(void)len;
#endif
}

/* Around a system call of this thread whose arguments memcheck misunderstands. */
static inline void core_memcheck_pause(void)
{
#ifdef VALGRIND_DISABLE_ERROR_REPORTING
	VALGRIND_DISABLE_ERROR_REPORTING;
#endif
}

static inline void core_memcheck_resume(void)
{
#ifdef VALGRIND_ENABLE_ERROR_REPORTING
	VALGRIND_ENABLE_ERROR_REPORTING;
#endif
}

#endif
