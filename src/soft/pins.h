// SPDX-License-Identifier: BSD-2-Clause
/*
 * Segments of the consumer's memory, pinned for one piece of copying: dat_lmr_free waits until they
 * are unpinned. Both engines use them.
 */
#ifndef SOFT_PINS_H
#define SOFT_PINS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/transport.h"
#include "soft/stream.h"

#define SOFT_IOV_MAX 32u /* segments of one request or Receive */

struct soft_pins {
	uint32_t count;
	struct core_lmr *lmr[SOFT_IOV_MAX];
	struct iovec iov[SOFT_IOV_MAX];
};
/* Pins bytes [offset, offset+len) of the list. -EACCES: a region is not valid any more. */
int soft_pin(struct core_ep *ep, const DAT_LMR_TRIPLET *list, uint32_t segments, uint64_t offset,
	     uint64_t len, enum core_mem_use use, struct soft_pins *pins);
/* The same for the Receive at the head, whose zone may be that of an SRQ. */
int soft_pin_receive(struct core_ep *ep, const struct core_wqe *receive, uint64_t offset,
		     uint64_t len, struct soft_pins *pins);
void soft_unpin(struct soft_pins *pins);
/* Copies between pinned segments of the consumer and memory of ours (copy.h). */
int soft_gather(uint8_t *to, const struct soft_pins *pins, struct soft_stream *stream);
int soft_scatter(const struct soft_pins *pins, const uint8_t *from);

/*
 * Can a page of it not be accessed in that way any more? After a copy that has failed: the kernel
 * does not say whose memory it was.
 */
bool soft_is_gone(const struct soft_pins *pins, enum core_mem_use use);

#endif
