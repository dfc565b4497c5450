// SPDX-License-Identifier: BSD-2-Clause
/*
 * Small copies into memory of the consumer that may be gone, by the cheapest system call that says
 * so: the bytes are put into a memory file of ours, and pread(2) has the kernel copy them to their
 * place. It costs half of process_vm_readv(2), which finds the process and pins the pages first.
 */
#ifndef SOFT_BOUNCE_H
#define SOFT_BOUNCE_H

#include <stddef.h>

#define SOFT_BOUNCE_MAX 4096u /* bytes of one copy */

struct soft_bounce;

/* NULL when there is no memory or descriptor for it: it is only a faster way. Any thread may use it
 * at any time. */
struct soft_bounce *soft_bounce_create(void);
void soft_bounce_destroy(struct soft_bounce *bounce);

/* 0; -EFAULT: a byte of dst is not accessible; -EAGAIN: take another way (bounce may be NULL). */
int soft_bounce_copy(struct soft_bounce *bounce, void *dst, const void *src, size_t len);

#endif
