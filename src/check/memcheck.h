// SPDX-License-Identifier: BSD-2-Clause
/*
 * What valgrind's memcheck is to report, when the program runs under it: use of memory whose content
 * is unknown. Without valgrind's header at build time these functions do nothing. Each is a few
 * instructions when valgrind does not run.
 */
#ifndef CHECK_MEMCHECK_H
#define CHECK_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __has_include
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

/* Does the program run under valgrind? */
static inline bool check_memcheck_runs(void)
{
#ifdef RUNNING_ON_VALGRIND
	return RUNNING_ON_VALGRIND;
#else
	return false;
#endif
}

/* The content of these bytes is undefined from now on. They must be mapped. */
static inline void check_memcheck_unknown(uint64_t address, uint64_t length)
{
#ifdef VALGRIND_MAKE_MEM_UNDEFINED
	(void)VALGRIND_MAKE_MEM_UNDEFINED((void *)(uintptr_t)address, (size_t)length);
#else
	(void)address;
	(void)length;
#endif
}

/* They were written. Those that the program has freed meanwhile stay so. */
static inline void check_memcheck_known(uint64_t address, uint64_t length)
{
#ifdef VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE
	(void)VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE((void *)(uintptr_t)address, (size_t)length);
#else
	(void)address;
	(void)length;
#endif
}

#endif
