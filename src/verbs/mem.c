// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory: a protection zone is a protection domain, a region a memory region of the device. The
 * device gets the privileges that it needs, which can be more than the consumer's; those are the
 * core's to check, and a key without remote privileges is never told to the consumer.
 *
 * A window is a registration of its own (docs/transports.md, "RMR binds and memory windows").
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/pz.h"
#include "verbs/verbs.h"

#define REMOTE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* core_lmr.transport */
struct vrb_lmr {
	struct ibv_mr *mr;
	struct ibv_mr *sink; /* for the data of RDMA Reads: LMR-USE-15; may be `mr` */
};

static int failed(void)
{
	return errno ? -errno : -ENOMEM;
}

int vrb_pz_create(struct core_ia *ia, struct core_pz *pz)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);

	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	errno = 0;
	pz->transport = ibv_alloc_pd(adapter->context);
	return pz->transport ? 0 : failed();
}

void vrb_pz_destroy(struct core_ia *ia, struct core_pz *pz)
{
	(void)ia;
	if (ibv_dealloc_pd(pz->transport))
		core_log(CORE_LOG_ERROR, "protection domain: not freed: %m");
}

/* The device allows no remote write without local write, and always allows local read. */
static int device_access(DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	if (priv & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IBV_ACCESS_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IBV_ACCESS_REMOTE_WRITE;
	return access;
}

static struct ibv_mr *reg(struct core_pz *pz, DAT_VADDR address, DAT_VLEN length, int access)
{
	errno = 0;
	return ibv_reg_mr(pz->transport, (void *)(uintptr_t)address, length, access);
}

static void dereg(struct ibv_mr *mr)
{
	int rc = ibv_dereg_mr(mr);

	if (rc)
		core_log(CORE_LOG_ERROR, "memory region: not freed: error %d", rc);
}

int vrb_lmr_create(struct core_ia *ia, struct core_lmr *lmr)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);
	int access = device_access(lmr->priv);
	struct vrb_lmr *region;
	int rc;

	if (atomic_load(&adapter->is_dead))
		return -ENODEV;
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	region->mr = reg(lmr->pz, lmr->address, lmr->length, access);
	if (!region->mr)
		goto fail;
	region->sink = region->mr;
	if (adapter->is_iwarp && (access & IBV_ACCESS_LOCAL_WRITE) &&
	    !(access & IBV_ACCESS_REMOTE_WRITE))
		region->sink = reg(lmr->pz, lmr->address, lmr->length,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!region->sink)
		goto fail;
	lmr->transport = region;
	lmr->rkey = region->mr->rkey;
	core_mem_set_local_key(lmr, VRB_KEY_SOURCE, region->mr->lkey);
	core_mem_set_local_key(lmr, VRB_KEY_SINK, region->sink->lkey);
	return 0;
fail:
	rc = failed();
	if (region->mr)
		dereg(region->mr);
	free(region);
	return rc;
}

void vrb_lmr_destroy(struct core_ia *ia, struct core_lmr *lmr)
{
	struct vrb_lmr *region = lmr->transport;

	(void)ia;
	if (region->sink != region->mr)
		dereg(region->sink);
	dereg(region->mr);
	lmr->transport = NULL;
	free(region);
}

bool vrb_segments(struct core_ia *ia, const DAT_LMR_TRIPLET *iov, uint32_t count, bool is_sink,
		  struct ibv_sge *sge)
{
	bool is_good = true;

	for (uint32_t i = 0; i < count; i++)
		is_good &= vrb_segment(ia, &iov[i], is_sink, &sge[i]);
	return is_good;
}

int vrb_recv_segments(struct core_ia *ia, const struct core_wqe *wqe, struct ibv_sge *sge)
{
	/* one that is no longer good fails when a message comes: DTO-96 */
	(void)vrb_segments(ia, wqe->iov, wqe->segments, false, sge);
	if (wqe->segments || !vrb_adapter_of(ia)->is_iwarp)
		return (int)wqe->segments;
	memset(sge, 0, sizeof(*sge)); /* siw refuses a Receive without any, be it empty */
	return 1;
}

/* --- windows --- */

struct vrb_window {
	struct ibv_mr *mr; /* NULL when it was revoked */
};

int vrb_rmr_key_create(struct core_ia *ia, struct core_lmr *lmr, DAT_VADDR address, DAT_VLEN length,
		       DAT_MEM_PRIV_FLAGS priv, void **key_out, uint32_t *rkey_out)
{
	struct vrb_window *window;
	int rc;

	if (atomic_load(&vrb_adapter_of(ia)->is_dead))
		return -ENODEV;
	window = calloc(1, sizeof(*window));
	if (!window)
		return -ENOMEM;
	window->mr = reg(lmr->pz, address, length, device_access(priv & REMOTE));
	if (!window->mr) {
		rc = failed();
		free(window);
		return rc;
	}
	*key_out = window;
	*rkey_out = window->mr->rkey;
	return 0;
}

/*
 * It is live from the start: nobody was told the key before the bind was posted. After a revoke,
 * which always succeeds at once, the core has no reason to ask for it.
 */
void vrb_rmr_key_activate(struct core_ia *ia, void *key)
{
	(void)ia;
	(void)key;
}

bool vrb_rmr_key_revoke(struct core_ia *ia, void *key)
{
	struct vrb_window *window = key;

	(void)ia;
	if (window->mr)
		dereg(window->mr);
	window->mr = NULL;
	return true;
}

void vrb_rmr_key_destroy(struct core_ia *ia, void *key)
{
	(void)vrb_rmr_key_revoke(ia, key);
	free(key);
}
