// SPDX-License-Identifier: BSD-2-Clause
/* Protection zones, regions, memory windows, and scatter lists. */
#ifndef VERBS_MEM_H
#define VERBS_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "core/base/instance.h"
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "verbs/device/adapter.h"

#define VRB_SEGMENT_MAX 0x7fffffffu

struct core_wqe;

/*
 * core_pz.transport. A device refuses to free a protection domain while a queue pair or an SRQ of
 * its own exists. A queue pair may exist longer than the core's objects (engine/poll.c), so each
 * holds a reference.
 */
struct vrb_pz {
	_Atomic uint32_t refs;
	struct ibv_pd *pd;
	struct vrb_window *windows; /* unbound windows, for the next binds; adapter->lock */
};

/*
 * The key of an RMR: a memory window of the device, or a registration. The states are those of the
 * endpoint that binds it (transfer/bind.c).
 */
enum vrb_window_state {
	VRB_WINDOW_NEW,	     /* its bind is under way */
	VRB_WINDOW_LIVE,     /* bound */
	VRB_WINDOW_RETIRING, /* the work request that unbinds it is under way */
	VRB_WINDOW_STALE,    /* unbound */
	VRB_WINDOW_LOST,     /* a work request was dropped: bound or not, it is destroyed */
};

struct vrb_window {
	struct ibv_mr *mr;     /* a registration, until it is revoked; NULL: a window */
	struct ibv_mw *mw;     /* a window, until it is destroyed; NULL: a registration */
	struct ibv_mr *region; /* the region that the window is bound to */
	struct vrb_pz *pz;
	struct vrb_window *next; /* in the zone's list */
	uint64_t end;		 /* the position behind its bind */
	uint32_t binds;
	_Atomic enum vrb_window_state state; /* of a window */
};

static inline struct vrb_pz *vrb_pz_of(const struct core_pz *pz)
{
	return pz->transport;
}

/* core_lmr.transport */
struct vrb_lmr {
	struct ibv_mr *mr;
	struct ibv_mr *sink; /* the target of RDMA Reads (LMR-USE-15); may be `mr` */
};

/* Index into core_lmr.local_keys. */
enum vrb_local_key {
	VRB_KEY_SOURCE,
	VRB_KEY_SINK,
};

int vrb_pz_create(struct core_ia *ia, struct core_pz *pz);
void vrb_pz_destroy(struct core_ia *ia, struct core_pz *pz);
/* Returns its argument, with another reference. */
struct vrb_pz *vrb_pz_get(struct vrb_pz *pz);
/* Drops a reference; with the last one the protection domain is freed. */
void vrb_pz_put(struct vrb_pz *pz);
int vrb_lmr_create(struct core_ia *ia, struct core_lmr *lmr);
void vrb_lmr_destroy(struct core_ia *ia, struct core_lmr *lmr);
/*
 * Ends the access of peers to the region of that zone and remote key, for a peer; not for iWARP.
 * Local use goes on. False: there is none, or the device refuses.
 */
bool vrb_lmr_kill(struct core_ia *ia, const struct core_pz *pz, uint32_t key);
/* Can memory windows be bound to it? */
bool vrb_lmr_takes_windows(const struct vrb_adapter *adapter, const struct core_lmr *lmr);
/* Takes an unbound window from the zone, or makes one. NULL: not possible. */
struct vrb_window *vrb_window_take(struct vrb_adapter *adapter, struct vrb_pz *pz);
/* Returns it to its zone, for the next bind. */
void vrb_window_give_back(struct vrb_adapter *adapter, struct vrb_window *window);
/* Destroys the device's window, which may be bound. */
void vrb_window_destroy(struct vrb_window *window);
/* Registers a range separately from its region. */
int vrb_mr_create(struct core_pz *pz, DAT_VADDR address, DAT_VLEN length, DAT_MEM_PRIV_FLAGS priv,
		  struct ibv_mr **mr_out);
void vrb_mr_destroy(struct ibv_mr *mr);

/* The length of a segment for the device, which counts in 31 bits. A Receive may be larger than any
 * message; then its length is reduced. */
static inline uint32_t vrb_length(DAT_VLEN length)
{
	return length < VRB_SEGMENT_MAX ? (uint32_t)length : VRB_SEGMENT_MAX;
}

/* Fills one entry of a scatter list. False: the segment's region is gone. */
CORE_INLINE bool vrb_segment(struct core_ia *ia, const DAT_LMR_TRIPLET *segment, bool is_sink,
			     struct ibv_sge *sge)
{
	enum vrb_local_key key = is_sink ? VRB_KEY_SINK : VRB_KEY_SOURCE;

	sge->addr = segment->virtual_address;
	sge->length = vrb_length(segment->segment_length);
	sge->lkey = 0;
	/* the posting call has checked the bounds, which do not change */
	return core_mem_local_key(ia->mem, segment->lmr_context, key, &sge->lkey);
}

/* Fills a scatter list. False: one of the regions is gone. */
bool vrb_segments(struct core_ia *ia, const DAT_LMR_TRIPLET *iov, uint32_t count, bool is_sink,
		  struct ibv_sge *sge);
/* Fills the scatter list of a Receive, and returns its length. A region that is gone matters only
 * when a message arrives. */
int vrb_recv_segments(struct core_ia *ia, const struct core_wqe *wqe, struct ibv_sge *sge);

#endif
