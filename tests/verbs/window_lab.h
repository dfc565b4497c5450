// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the tests of memory windows share: two connected endpoints, and an RMR that b binds.
 * window_teardown closes the instance with everything that was made of it.
 */
#ifndef TESTS_VERBS_WINDOW_LAB_H
#define TESTS_VERBS_WINDOW_LAB_H

#include "rig.h"

#define HALF (RIG_LEN / 2)
#define BIND_REMOTE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

extern struct rig rig;
extern DAT_RMR_HANDLE rmr;

int window_setup(void **state);
int window_teardown(void **state);

/* Binds that RMR on b, to be read and written. */
DAT_RETURN bind_seg(DAT_RMR_HANDLE handle, DAT_LMR_TRIPLET seg, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);
/* Binds `rmr` to a range of the memory. */
DAT_RMR_CONTEXT bind_range(size_t offset, size_t len, uint64_t cookie);
void expect_bind(uint64_t cookie, DAT_RMR_BIND_COMPLETION_STATUS status);
/* Binds it and takes the event. */
DAT_RMR_CONTEXT bound(size_t offset, size_t len);
void unbound(void);
/* a writes 8 bytes there with that context. If the Write is refused, the connection breaks and is
 * made again. */
void check_write(DAT_RMR_CONTEXT context, size_t offset, bool is_good);

#endif
