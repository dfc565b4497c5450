// SPDX-License-Identifier: BSD-2-Clause
/*
 * Protection domains and shared receive queues that the consumer has freed while a reaper thread
 * (teardown.c) still had a queue pair of theirs. The device refuses to free them until that queue
 * pair is destroyed, so they are kept until then.
 */
#ifndef VERBS_ORPHAN_H
#define VERBS_ORPHAN_H

#include <infiniband/verbs.h>

#include "verbs/adapter.h"

/* Frees the object now, or later if the device refuses. */
void vrb_pd_free(struct vrb_adapter *adapter, struct ibv_pd *pd);
void vrb_srq_free(struct vrb_adapter *adapter, struct ibv_srq *srq);
/* Frees those that were kept and that the device frees by now. */
void vrb_orphans_free(struct vrb_adapter *adapter);

#endif
