// SPDX-License-Identifier: BSD-2-Clause
/*
 * Remote memory regions: windows over part of an LMR, for the peers of a zone. Each bind makes a
 * new key, which stays inactive until the bind is the oldest outstanding request of its endpoint.
 * Then the previous key becomes stale. Once no peer accesses memory through it, the new key becomes
 * live and the bind completes. So a bind that is flushed has changed nothing.
 */
#ifndef CORE_RMR_H
#define CORE_RMR_H

#include "core/base/instance.h"
#include "core/mem/mem.h"

/* A bind of an RMR. Counts as a use of the LMR as soon as it is posted (RMR-BIND-28). */
struct core_binding {
	struct core_lmr *lmr; /* NULL: an unbind */
	struct core_ref rmr;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	void *key; /* of the transport; NULL: an unbind */
	DAT_RMR_CONTEXT rkey;
	bool is_begun; /* it is the oldest request, and the previous key is stale. EP locked */
};

struct core_rmr {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	struct core_pz *pz;

	/* guarded by the cell's lock (rank 6) */
	struct core_binding *current; /* NULL: not bound */
};

/* Frees a binding whose key was never live, or that no peer uses any more. Never blocks. */
void core_binding_free(struct core_ia *ia, struct core_binding *binding);
/* Destroys an RMR. Called with its lock held, which it releases. */
void core_rmr_destroy_locked(struct core_rmr *rmr);

#endif
