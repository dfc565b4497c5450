// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory: a protection zone is a protection domain, a region is a memory region of the device. The
 * device may get more privileges than the consumer has. The core checks those of the consumer, and
 * a key without remote privileges is never given to it.
 */
#include "verbs/device/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/range.h"
#include "core/ep/ep.h"
#include "core/mem/mem.h"
#include "core/mem/pz.h"

/* --- memory windows --- */

void vrb_window_destroy(struct vrb_window *window)
{
	int rc = ibv_dealloc_mw(window->mw);

	if (rc)
		core_log(CORE_LOG_ERROR, "memory window: not freed: %s", strerror(rc));
	window->mw = NULL;
}

/* Destroys the unbound windows of a zone, which is about to be destroyed. */
static void windows_free(struct vrb_pz *pz)
{
	while (pz->windows) {
		struct vrb_window *window = pz->windows;

		pz->windows = window->next;
		vrb_window_destroy(window);
		free(window);
	}
}

struct vrb_window *vrb_window_take(struct vrb_adapter *adapter, struct vrb_pz *pz)
{
	struct vrb_window *window;

	pthread_mutex_lock(&adapter->lock);
	window = pz->windows;
	if (window)
		pz->windows = window->next;
	pthread_mutex_unlock(&adapter->lock);
	if (window)
		return window;
	window = calloc(1, sizeof(*window));
	if (!window)
		return NULL;
	window->pz = pz;
	window->mw = ibv_alloc_mw(pz->pd, IBV_MW_TYPE_1);
	atomic_init(&window->state, VRB_WINDOW_STALE);
	if (window->mw)
		return window;
	free(window);
	return NULL;
}

void vrb_window_give_back(struct vrb_adapter *adapter, struct vrb_window *window)
{
	pthread_mutex_lock(&adapter->lock);
	window->next = window->pz->windows;
	window->pz->windows = window;
	pthread_mutex_unlock(&adapter->lock);
}

/* --- protection zones and regions --- */

static int device_error(void)
{
	/* the core has checked that the memory is mapped, so the device requires more
	 * (docs/verbs.md) */
	if (errno == EFAULT)
		return -EOPNOTSUPP;
	return errno ? -errno : -ENOMEM;
}

int vrb_pz_create(struct core_ia *ia, struct core_pz *pz)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);
	struct vrb_pz *side;
	int rc = vrb_object_create(adapter, sizeof(*side), (void **)&side);

	if (rc)
		return rc;
	atomic_init(&side->refs, 1);
	errno = 0;
	side->pd = ibv_alloc_pd(adapter->context);
	if (!side->pd) {
		rc = device_error();
		free(side);
		return rc;
	}
	pz->transport = side;
	return 0;
}

struct vrb_pz *vrb_pz_get(struct vrb_pz *pz)
{
	/* relaxed: the caller holds a reference */
	atomic_fetch_add_explicit(&pz->refs, 1, memory_order_relaxed);
	return pz;
}

void vrb_pz_put(struct vrb_pz *pz)
{
	int rc;

	if (atomic_fetch_sub_explicit(&pz->refs, 1, memory_order_acq_rel) != 1)
		return;
	rc = ibv_dealloc_pd(pz->pd);
	if (rc)
		core_log(CORE_LOG_ERROR, "protection domain: not freed: %s", strerror(rc));
	free(pz);
}

void vrb_pz_destroy(struct core_ia *ia, struct core_pz *pz)
{
	(void)ia;
	windows_free(pz->transport);
	vrb_pz_put(pz->transport);
}

/*
 * Devices require local write for remote write and atomic operations, and always allow local read.
 * Where there are no atomic operations the privilege has no effect (D2-VRB-04).
 */
static int device_access(const struct vrb_adapter *adapter, DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	if (!(adapter->takes & TRANSPORT_TAKES_ATOMICS))
		priv &= ~CORE_MEM_PRIV_REMOTE_ATOMIC;
	if (priv & CORE_MEM_PRIV_REMOTE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	if (priv & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IBV_ACCESS_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IBV_ACCESS_REMOTE_WRITE;
	return access;
}

static struct ibv_mr *reg_mr(struct core_pz *pz, DAT_VADDR address, DAT_VLEN length, int access)
{
	errno = 0;
	return ibv_reg_mr(vrb_pz_of(pz)->pd, (void *)(uintptr_t)address, length, access);
}

int vrb_mr_create(struct core_pz *pz, DAT_VADDR address, DAT_VLEN length, DAT_MEM_PRIV_FLAGS priv,
		  struct ibv_mr **mr_out)
{
	*mr_out = reg_mr(pz, address, length, device_access(vrb_adapter_of(pz->ia), priv));
	return *mr_out ? 0 : device_error();
}

void vrb_mr_destroy(struct ibv_mr *mr)
{
	int rc = ibv_dereg_mr(mr);

	if (rc)
		core_log(CORE_LOG_ERROR, "memory region: not freed: %s", strerror(rc));
}

/*
 * A window with remote write needs a region with local write. The kernel also pins the pages of
 * every region with windows for writing, which read-only memory does not allow.
 */
bool vrb_lmr_takes_windows(const struct vrb_adapter *adapter, const struct core_lmr *lmr)
{
	return adapter->has_windows && (lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
}

/* The error of a registration. The core has not checked whether the memory is writable. */
static int region_error(const struct core_lmr *lmr, int access)
{
	int rc = device_error();

	if (rc == -EOPNOTSUPP && (access & IBV_ACCESS_LOCAL_WRITE) &&
	    !core_range_is_writable((const void *)(uintptr_t)lmr->address, lmr->length))
		return -EFAULT;
	return rc;
}

static int region_access(const struct vrb_adapter *adapter, const struct core_lmr *lmr)
{
	return device_access(adapter, lmr->priv) |
	       (vrb_lmr_takes_windows(adapter, lmr) ? IBV_ACCESS_MW_BIND : 0);
}

int vrb_lmr_create(struct core_ia *ia, struct core_lmr *lmr)
{
	struct vrb_adapter *adapter = vrb_adapter_of(ia);
	int access = region_access(adapter, lmr);
	struct vrb_lmr *region;
	int rc = vrb_object_create(adapter, sizeof(*region), (void **)&region);

	if (rc)
		return rc;
	region->mr = reg_mr(lmr->pz, lmr->address, lmr->length, access);
	if (!region->mr)
		goto fail;
	region->sink = region->mr;
	if (adapter->is_iwarp && (access & IBV_ACCESS_LOCAL_WRITE) &&
	    !(access & IBV_ACCESS_REMOTE_WRITE))
		region->sink = reg_mr(lmr->pz, lmr->address, lmr->length,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!region->sink)
		goto fail;
	lmr->transport = region;
	lmr->rkey = region->mr->rkey;
	core_mem_set_local_key(lmr, VRB_KEY_SOURCE, region->mr->lkey);
	core_mem_set_local_key(lmr, VRB_KEY_SINK, region->sink->lkey);
	return 0;
fail:
	rc = region_error(lmr, access);
	if (region->mr)
		vrb_mr_destroy(region->mr);
	free(region);
	return rc;
}

void vrb_lmr_destroy(struct core_ia *ia, struct core_lmr *lmr)
{
	struct vrb_lmr *region = lmr->transport;

	(void)ia;
	if (region->sink != region->mr)
		vrb_mr_destroy(region->sink);
	vrb_mr_destroy(region->mr);
	lmr->transport = NULL;
	free(region);
}

/* --- a region whose key a peer kills --- */

/*
 * A device that cannot change the access of a registration gets another one instead. What was
 * posted with the old one fails then. Neither is possible while windows are bound to it. False:
 * peers still have access. LMR locked: no bind of it begins.
 */
static bool end_remote(struct core_lmr *lmr)
{
	const struct vrb_adapter *adapter = vrb_adapter_of(lmr->pz->ia);
	struct vrb_lmr *region = lmr->transport;
	int access = region_access(adapter, lmr) & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mr *local = region->mr;

	if (adapter->has_windows && atomic_load(&lmr->bound))
		return false;
	if (ibv_rereg_mr(local, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access)) {
		local = reg_mr(lmr->pz, lmr->address, lmr->length, access);
		if (!local)
			return false;
		if (ibv_dereg_mr(region->mr)) {
			vrb_mr_destroy(local);
			return false;
		}
	}
	region->mr = region->sink = local;
	core_mem_set_local_key(lmr, VRB_KEY_SOURCE, local->lkey);
	core_mem_set_local_key(lmr, VRB_KEY_SINK, local->lkey);
	core_mem_renew(lmr);
	lmr->rkey = 0; /* the device may give the key to another region */
	return true;
}

struct region_kill {
	const struct core_pz *pz;
	uint32_t key;
	bool is_dead;
};

static bool region_kill(void *object, void *arg)
{
	struct core_lmr *lmr = object;
	struct region_kill *kill = arg;

	if (lmr->rkey != kill->key || lmr->pz != kill->pz || !lmr->rmr_context)
		return false;
	kill->is_dead = end_remote(lmr);
	return true;
}

bool vrb_lmr_kill(struct core_ia *ia, const struct core_pz *pz, uint32_t key)
{
	struct region_kill kill = {pz, key, false};

	if (key)
		(void)core_ia_find(ia, DAT_HANDLE_TYPE_LMR, region_kill, &kill);
	return kill.is_dead;
}

/* --- scatter lists --- */

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
	/* a region that is gone causes an error when a message arrives: DTO-96 */
	(void)vrb_segments(ia, wqe->iov, wqe->segments, false, sge);
	if (wqe->segments || !vrb_adapter_of(ia)->is_iwarp)
		return (int)wqe->segments;
	/* siw refuses a Receive without a segment, so it gets an empty one */
	memset(sge, 0, sizeof(*sge));
	return 1;
}
