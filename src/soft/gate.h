// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stores into memory of a peer that the peer can forbid even to a thread that does not run. A gate
 * is a word in shared memory; while it is 0 it is open. The look at it and the copy are one
 * restartable sequence (rseq(2)): a thread that is preempted, stopped or interrupted between the
 * two, or in the middle of the copy, does not go on there but looks at the gate again. Whoever
 * closes a gate while its user is stopped has therefore seen the last byte change; a user that
 * runs at this moment finishes the piece that it is at.
 *
 * Where there are no restartable sequences (a C library or a kernel without them, valgrind, another
 * machine than x86-64 and aarch64) the look comes once before the copy.
 */
#ifndef SOFT_GATE_H
#define SOFT_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef const _Atomic uint32_t soft_gate;

static inline bool soft_gate_is_open(soft_gate *gate)
{
	/* acquire: what is stored behind the look is not stored before it */
	return atomic_load_explicit(gate, memory_order_acquire) == 0;
}

/* Is a copy that has been interrupted given up when the gate is closed (in this thread)? */
bool soft_gate_is_restartable(void);

/* All of these: false when the gate is closed; maybe a part was stored then. */
bool soft_gate_copy(soft_gate *gate, void *dst, const void *src, size_t len);
/* 1, 2, 4 or 8 bytes at once, after all that was stored before. dst is aligned. */
bool soft_gate_store(soft_gate *gate, void *dst, const void *src, size_t size);
/* The same for 8, which many a peer polls for. */
bool soft_gate_store_word(soft_gate *gate, void *dst, const void *src);
/* What process_vm_readv(2) or process_vm_writev(2) returns, or -errno. */
bool soft_gate_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
		  unsigned long locals, const struct iovec *remote, unsigned long remotes,
		  ssize_t *rc_out);

#endif
