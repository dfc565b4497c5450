// SPDX-License-Identifier: BSD-2-Clause
/* Objects that the device did not free yet (orphan.h). */
#include "verbs/orphan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

struct vrb_orphan {
	struct ibv_pd *pd; /* or */
	struct ibv_srq *srq;
	struct vrb_orphan *next;
};

static int destroy(struct ibv_pd *pd, struct ibv_srq *srq)
{
	return pd ? ibv_dealloc_pd(pd) : ibv_destroy_srq(srq);
}

/* In the order in which they were freed: an SRQ before its protection domain. */
static void keep(struct vrb_adapter *adapter, struct vrb_orphan *orphan)
{
	struct vrb_orphan **link = &adapter->orphans;

	pthread_mutex_lock(&adapter->lock);
	while (*link)
		link = &(*link)->next;
	orphan->next = NULL;
	*link = orphan;
	pthread_mutex_unlock(&adapter->lock);
}

static void free_or_keep(struct vrb_adapter *adapter, struct ibv_pd *pd, struct ibv_srq *srq)
{
	int rc = destroy(pd, srq);
	struct vrb_orphan *orphan = rc == EBUSY ? calloc(1, sizeof(*orphan)) : NULL;

	if (orphan) {
		orphan->pd = pd;
		orphan->srq = srq;
		keep(adapter, orphan);
	} else if (rc) {
		core_log(CORE_LOG_ERROR, "%s: not freed: %s",
			 pd ? "protection domain" : "shared receive queue", strerror(rc));
	}
}

void vrb_pd_free(struct vrb_adapter *adapter, struct ibv_pd *pd)
{
	free_or_keep(adapter, pd, NULL);
}

void vrb_srq_free(struct vrb_adapter *adapter, struct ibv_srq *srq)
{
	free_or_keep(adapter, NULL, srq);
}

void vrb_orphans_free(struct vrb_adapter *adapter)
{
	struct vrb_orphan *orphan;

	pthread_mutex_lock(&adapter->lock);
	orphan = adapter->orphans;
	adapter->orphans = NULL;
	pthread_mutex_unlock(&adapter->lock);
	while (orphan) {
		struct vrb_orphan *next = orphan->next;

		free_or_keep(adapter, orphan->pd, orphan->srq);
		free(orphan);
		orphan = next;
	}
}
