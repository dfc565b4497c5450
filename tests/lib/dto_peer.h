// SPDX-License-Identifier: BSD-2-Clause
/*
 * A second process for the tests of data transfer. It listens, sends the address and key of its
 * buffer, and is connected to endpoint a of the rig. The test decides what it does then.
 */
#ifndef TESTS_DTO_PEER_H
#define TESTS_DTO_PEER_H

#include "dto_util.h"

struct far_info {
	DAT_CONN_QUAL qual;
	DAT_RMR_TRIPLET buf;
};

/* In the child. */
struct far_end {
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
};

/* Opens, listens, accepts; buf_len bytes of RIG_FILL. */
void far_end_open(struct dt_peer *peer, struct far_end *far, size_t buf_len);
/* In the parent: a bare rig gets endpoint a, connected to the child. */
struct far_info far_connect(struct rig *rig, struct dt_peer *peer);
/* far_connect for an endpoint of the test. */
struct far_info far_connect_ep(struct dt_ia *ia, const struct dt_ep *ep, struct dt_peer *peer);
DAT_RMR_TRIPLET far_seg(const struct far_info *info, size_t offset, size_t len);
/* Spins on one byte, without any call into the library, until it has that value. */
DT_UNORDERED void far_spin(const unsigned char *byte, unsigned char value);
/* dt_check_bytes for memory that is polled without a call into the library since it was written. */
DT_UNORDERED void far_check(const unsigned char *bytes, size_t len, unsigned char value);
/* For the thread sanitizer: orders this thread with those of the library. */
void far_order(struct far_end *far);

#endif
