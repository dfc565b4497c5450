// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies that report a fault instead of raising a signal, and copies to and from another process.
 * All return 0, -EFAULT (a byte range is not accessible: nothing, or a leading part, was copied),
 * -EPERM (the kernel does not allow the path at all; try another one), -ESRCH (the process is
 * gone), -EAGAIN (the gate of the target is closed, gate.h) or rarely -ENOMEM. Bytes are copied
 * towards ascending addresses. Of what is written by soft_copy_safe, soft_copy_tail_last and
 * soft_copy_to_process the last 8 bytes become visible after all others, and of these the very last
 * byte last (COMPAT-02, EP-RDMAW-44). No length limit. A gate may be NULL, except for
 * soft_copy_tail_last: the target is ours.
 */
#ifndef SOFT_COPY_H
#define SOFT_COPY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "soft/gate.h"

#define SOFT_COPY_IOV_MAX 64

/* Within this process; src or dst (or both) may be memory of the consumer that is gone. */
int soft_copy_safe(soft_gate *gate, void *dst, const void *src, size_t len);
/* The same without promise of order, a little faster: for what nobody polls (Receives, gathering).
 */
int soft_copy_safe_unordered(void *dst, const void *src, size_t len);

/* memcpy into memory that a peer polls; both sides must be accessible. */
int soft_copy_tail_last_any(soft_gate *gate, void *dst, const void *src, size_t len);
static inline int soft_copy_tail_last(soft_gate *gate, void *dst, const void *src, size_t len)
{
	/* most are one word */
	if (len == sizeof(uint64_t) && !((uintptr_t)dst & (sizeof(uint64_t) - 1)))
		return soft_gate_store_word(gate, dst, src) ? 0 : -EAGAIN;
	return soft_copy_tail_last_any(gate, dst, src, len);
}

/*
 * Scatter and gather between iovecs here (at most SOFT_COPY_IOV_MAX, together at least len bytes,
 * of which the first len are used) and one contiguous range of process `pid`. pid may be our own.
 */
int soft_copy_to_process(soft_gate *gate, pid_t pid, uint64_t address, const struct iovec *iov,
			 int count, size_t len);
int soft_copy_from_process(pid_t pid, uint64_t address, const struct iovec *iov, int count,
			   size_t len);

/* 1 if we may read 16 bytes at `address` of `pid` and they equal `token`, else 0. */
int soft_copy_probe(pid_t pid, uint64_t address, const uint8_t token[16]);

#endif
