// SPDX-License-Identifier: BSD-2-Clause
/*
 * Small copies into memory of the consumer that may be gone, by the cheapest system call that says
 * so: the bytes are put into a memory file of ours, and pread(2) has the kernel copy them to their
 * place. It costs half of process_vm_readv(2), which finds the process and pins the pages first.
 */
#ifndef SOFT_BOUNCE_H
#define SOFT_BOUNCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SOFT_BOUNCE_MAX 4096u /* bytes of one copy */

struct soft_bounce;

/* NULL when there is no memory or descriptor for it: it is only a faster way. Any thread may use it
 * at any time. */
struct soft_bounce *soft_bounce_create(void);
void soft_bounce_destroy(struct soft_bounce *bounce);

/* 0; -EFAULT: a byte of dst is not accessible; -EAGAIN: take another way (bounce may be NULL). */
int soft_bounce_copy(struct soft_bounce *bounce, void *dst, const void *src, size_t len);

/*
 * Several at once. begin: where SOFT_BOUNCE_MAX bytes may be put, until end; NULL: take another
 * way. place copies what was put there to the places in turn, and returns how many bytes have got
 * there; less than all: the next one is not accessible. -EAGAIN: take another way.
 */
uint8_t *soft_bounce_begin(struct soft_bounce *bounce);
ssize_t soft_bounce_place(struct soft_bounce *bounce, const struct iovec *places, unsigned count);
void soft_bounce_end(struct soft_bounce *bounce);

#endif
