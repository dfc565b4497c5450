// SPDX-License-Identifier: BSD-2-Clause
/* Compares an atomic variable with a value by a relaxed load, and what inline functions need. */
#ifndef CORE_SAME_H
#define CORE_SAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* For functions of the data path that the compiler finds too long to inline on its own. */
#define CORE_INLINE static inline __attribute__((always_inline))

/*
 * Between two looks at memory that another thread is about to write. That thread may run on the
 * same core, and needs its units and the line. This waits for some 15 to 45 ns, depending on the
 * processor.
 */
CORE_INLINE void core_spin_pause(void)
{
#ifdef __x86_64__
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

CORE_INLINE bool core_is_same_32(const _Atomic uint32_t *variable, uint32_t value)
{
	return atomic_load_explicit(variable, memory_order_relaxed) == value;
}

CORE_INLINE bool core_is_same_64(const _Atomic uint64_t *variable, uint64_t value)
{
	return atomic_load_explicit(variable, memory_order_relaxed) == value;
}

#endif
