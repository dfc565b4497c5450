// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stores into memory of a peer that the peer can forbid even to a thread that is stopped. A gate is
 * a word in shared memory; while it is 0 it is open. The check of the gate and the copy are one
 * restartable sequence (rseq(2)): a thread that is preempted, stopped or interrupted between the
 * two, or in the middle of the copy, does not continue there but checks the gate again. So after a
 * gate was closed, a stopped thread changes no byte any more; a thread that runs at that moment
 * finishes its current piece.
 *
 * Without restartable sequences (a C library or a kernel that lacks them, valgrind, a machine other
 * than x86-64 and aarch64) the gate is checked once before the copy.
 *
 * models/close.pml models the restart.
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
	/* acquire: stores that follow the check are not made before it */
	return atomic_load_explicit(gate, memory_order_acquire) == 0;
}

/* Does this thread use restartable sequences, so that an interrupted copy checks the gate again? */
bool soft_gate_is_restartable(void);

/* All of these return false if the gate is closed; a part may have been stored then. */
bool soft_gate_copy(soft_gate *gate, void *dst, const void *src, size_t len);
/* Stores 1, 2, 4 or 8 bytes at once, after everything that was stored before. dst is aligned. */
bool soft_gate_store(soft_gate *gate, void *dst, const void *src, size_t size);
/* soft_gate_store for 8 bytes, the most frequent size. */
bool soft_gate_store_word(soft_gate *gate, void *dst, const void *src);
/* Calls process_vm_readv(2) or process_vm_writev(2); *rc_out is the result, or -errno. */
bool soft_gate_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
		  unsigned long locals, const struct iovec *remote, unsigned long remotes,
		  ssize_t *rc_out);

#endif
