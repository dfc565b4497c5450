// SPDX-License-Identifier: BSD-2-Clause
/* Actions that change the way in which RDMA of ours reaches the memory of the peer. */
#ifndef FUZZ_PEER_CHANGE_H
#define FUZZ_PEER_CHANGE_H

#include "peer_input.h"

/* The kernel refuses to copy, memory is mapped, a region is freed, the peer polls, or it dies. */
void peer_change(struct lab *lab, struct peer_input *in);
/* The peer lives again: all labs share the guard of its table. */
void peer_change_end(struct lab *lab);
/* A memory file; the caller closes it. */
int peer_file(size_t size, int seals);

#endif
