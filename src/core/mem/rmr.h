// SPDX-License-Identifier: BSD-2-Clause
/*
 * Remote memory regions: a window over part of an LMR, for the peers of a zone. Each bind makes a
 * new key, which nobody relies on until the bind is the oldest outstanding request of its endpoint;
 * then the key before it becomes stale, and when no peer touches memory through that one any more
 * the new key becomes live and the bind completes. So a bind that is flushed has changed nothing.
 */
#ifndef CORE_RMR_H
#define CORE_RMR_H

#include "core/base/instance.h"
#include "core/mem/mem.h"

/* What a bind ties together; counts as a use of the LMR from the post on (RMR-BIND-28). */
struct core_binding {
	struct core_lmr *lmr; /* NULL: an unbind */
	struct core_ref rmr;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	void *key; /* the transport's; NULL: an unbind */
	DAT_RMR_CONTEXT rkey;
	bool is_begun; /* its turn has come: the binding before it was made stale. EP locked */
};

struct core_rmr {
	/* set at creation */
	struct core_handle *cell;
	struct core_ia *ia;
	struct core_pz *pz;

	/* guarded by the cell's lock (rank 6) */
	struct core_binding *current; /* NULL: not bound */
};

/* Frees a binding whose key was never live, or is used by no peer any more. Never blocks. */
void core_binding_free(struct core_ia *ia, struct core_binding *binding);
/* Destroys a window, its lock held; no lock is held at return. */
void core_rmr_destroy_locked(struct core_rmr *rmr);

#endif
