// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies that report a fault instead of raising a signal, and copies to and from another process.
 * All return 0, -EFAULT (a byte range is not accessible: nothing, or a leading part, was copied),
 * -EPERM (the kernel does not allow this way of copying; use another one), -ESRCH (the process does
 * not exist any more), -EAGAIN (the gate of the target is closed, gate.h) or rarely -ENOMEM. Bytes
 * are copied towards ascending addresses. Unless a function says otherwise, the last 8 bytes of
 * what it writes become visible after all others, and of these the very last byte last (COMPAT-02,
 * COMPAT-46, EP-RDMAW-44). The length is not limited. A gate may be NULL if the target is ours,
 * except for soft_copy_gated.
 *
 * Memory of the consumer may be unmapped while it is registered (LMR-USE-14). A thread of the
 * consumer copies to and from it like any code of the consumer and may fault there. A thread of the
 * library must not fault, and has the kernel copy. soft_copy_to_consumer and
 * soft_copy_from_consumer check which thread calls.
 */
#ifndef SOFT_COPY_H
#define SOFT_COPY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/base/same.h"
#include "core/base/tls.h"
#include "soft/gate.h"

#define SOFT_COPY_IOV_MAX 64

/* Set in the threads of the library itself: they must not fault on memory of the consumer. */
extern __thread bool soft_is_library_thread CORE_TLS_FAST;

/*
 * Within this process; src or dst (or both) may be memory of the consumer that is unmapped. With a
 * gate also -EPERM where the kernel forbids process_vm_readv, and -EFAULT for memory that only the
 * consumer can access (of a device, secret memory).
 */
int soft_copy_safe(soft_gate *gate, void *dst, const void *src, size_t len);
/* soft_copy_safe without the guarantee of order, a little faster: into memory of ours. */
int soft_copy_safe_unordered(void *dst, const void *src, size_t len);

/* Copies into memory that a peer polls; both sides must be accessible. */
int soft_copy_gated_any(soft_gate *gate, void *dst, const void *src, size_t len);
static inline int soft_copy_gated(soft_gate *gate, void *dst, const void *src, size_t len)
{
	/* most copies are one word */
	if (len == sizeof(uint64_t) && !((uintptr_t)dst & (sizeof(uint64_t) - 1)))
		return soft_gate_store_word(gate, dst, src) ? 0 : -EAGAIN;
	return soft_copy_gated_any(gate, dst, src, len);
}

/* soft_copy_ordered for all but one aligned word. */
void soft_copy_ordered_any(uint8_t *dst, const uint8_t *src, size_t len);
/* Copies in the guaranteed order; both sides must be accessible. */
CORE_INLINE void soft_copy_ordered(void *dst, const void *src, size_t len)
{
	uint64_t word;

	if (len != sizeof(word) || ((uintptr_t)dst & (sizeof(word) - 1))) {
		soft_copy_ordered_any(dst, src, len);
		return;
	}
	memcpy(&word, src, sizeof(word));
	/* relaxed: there is nothing before it */
	__atomic_store_n((uint64_t *)dst, word, __ATOMIC_RELAXED);
}

/*
 * From memory of ours into the consumer's, and from the consumer's into ours (in no order): 0; in
 * threads of the library also -EFAULT or -EPERM.
 */
static inline int soft_copy_to_consumer(void *dst, const void *src, size_t len)
{
	if (soft_is_library_thread)
		return soft_copy_safe(NULL, dst, src, len);
	soft_copy_ordered(dst, src, len);
	return 0;
}
static inline int soft_copy_from_consumer(void *dst, const void *src, size_t len)
{
	if (soft_is_library_thread)
		return soft_copy_safe_unordered(dst, src, len);
	memcpy(dst, src, len);
	return 0;
}

/*
 * An atomic operation on the aligned 8 bytes at `at`, which is memory of the consumer: adds the
 * operand, or stores it if the bytes equal *compare. Stores the value before. -EFAULT in threads of
 * the library: they cannot be written to.
 */
int soft_atomic(uint64_t *at, const uint64_t *compare, uint64_t operand, uint64_t *before_out);

/*
 * Copies between iovecs here (at most SOFT_COPY_IOV_MAX, together at least len bytes, of which the
 * first len are used) and one contiguous range of process `pid`, which may be our own.
 */
int soft_copy_to_process(soft_gate *gate, pid_t pid, uint64_t address, const struct iovec *iov,
			 int count, size_t len);
int soft_copy_from_process(pid_t pid, uint64_t address, const struct iovec *iov, int count,
			   size_t len);

/* 1 if we may read 16 bytes at `address` of `pid` and they equal `token`, else 0. */
int soft_copy_probe(pid_t pid, uint64_t address, const uint8_t token[16]);

#endif
