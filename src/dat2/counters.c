// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counters of dat_ib_extensions.h (rows D2-CNT). They are made from what the core counts anyway.
 * A reset changes nothing there, so that dat_stat and other readers go on: the object remembers what
 * it had counted at the last reset, and that is subtracted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/cancel.h"
#include "core/ep/ep.h"
#include "dat2/convert.h"
#include "dat2/front.h"

static const char *const ia_names[DAT2_IA_ALL_COUNTERS] = {
	"DCNT_IA_PZ_CREATE",
	"DCNT_IA_PZ_FREE",
	"DCNT_IA_LMR_CREATE",
	"DCNT_IA_LMR_FREE",
	"DCNT_IA_RMR_CREATE",
	"DCNT_IA_RMR_FREE",
	"DCNT_IA_PSP_CREATE",
	"DCNT_IA_PSP_CREATE_ANY",
	"DCNT_IA_PSP_FREE",
	"DCNT_IA_RSP_CREATE",
	"DCNT_IA_RSP_FREE",
	"DCNT_IA_EVD_CREATE",
	"DCNT_IA_EVD_FREE",
	"DCNT_IA_EP_CREATE",
	"DCNT_IA_EP_FREE",
	"DCNT_IA_SRQ_CREATE",
	"DCNT_IA_SRQ_FREE",
	"DCNT_IA_SP_CR",
	"DCNT_IA_SP_CR_ACCEPTED",
	"DCNT_IA_SP_CR_REJECTED",
	"DCNT_IA_MEM_ALLOC",
	"DCNT_IA_MEM_ALLOC_DATA",
	"DCNT_IA_MEM_FREE",
	"DCNT_IA_ASYNC_ERROR",
	"DCNT_IA_ASYNC_QP_ERROR",
	"DCNT_IA_ASYNC_CQ_ERROR",
	"DCNT_IA_CM_LISTEN",
	"DCNT_IA_CM_REQ_TX",
	"DCNT_IA_CM_REQ_RX",
	"DCNT_IA_CM_REP_TX",
	"DCNT_IA_CM_REP_RX",
	"DCNT_IA_CM_RTU_TX",
	"DCNT_IA_CM_RTU_RX",
	"DCNT_IA_CM_USER_REJ_TX",
	"DCNT_IA_CM_USER_REJ_RX",
	"DCNT_IA_CM_ACTIVE_EST",
	"DCNT_IA_CM_PASSIVE_EST",
	"DCNT_IA_CM_AH_REQ_TX",
	"DCNT_IA_CM_AH_REQ_RX",
	"DCNT_IA_CM_AH_RESOLVED",
	"DCNT_IA_CM_DREQ_TX",
	"DCNT_IA_CM_DREQ_RX",
	"DCNT_IA_CM_DREP_TX",
	"DCNT_IA_CM_DREP_RX",
	"DCNT_IA_CM_MRA_TX",
	"DCNT_IA_CM_MRA_RX",
	"DCNT_IA_CM_REQ_FULLQ_POLL",
	"DCNT_IA_CM_ERR",
	"DCNT_IA_CM_ERR_REQ_FULLQ",
	"DCNT_IA_CM_ERR_REQ_DUP",
	"DCNT_IA_CM_ERR_REQ_RETRY",
	"DCNT_IA_CM_ERR_REP_DUP",
	"DCNT_IA_CM_ERR_REP_RETRY",
	"DCNT_IA_CM_ERR_RTU_DUP",
	"DCNT_IA_CM_ERR_RTU_RETRY",
	"DCNT_IA_CM_ERR_REFUSED",
	"DCNT_IA_CM_ERR_RESET",
	"DCNT_IA_CM_ERR_TIMEOUT",
	"DCNT_IA_CM_ERR_REJ_TX",
	"DCNT_IA_CM_ERR_REJ_RX",
	"DCNT_IA_CM_ERR_DREQ_DUP",
	"DCNT_IA_CM_ERR_DREQ_RETRY",
	"DCNT_IA_CM_ERR_DREP_DUP",
	"DCNT_IA_CM_ERR_DREP_RETRY",
	"DCNT_IA_CM_ERR_MRA_DUP",
	"DCNT_IA_CM_ERR_MRA_RETRY",
	"DCNT_IA_CM_ERR_UNEXPECTED",
	"DCNT_IA_LNK_ERR_RCV",
	"DCNT_IA_LNK_ERR_RCV_REM_PHYS",
	"DCNT_IA_LNK_ERR_RCV_CONSTRAINT",
	"DCNT_IA_LNK_ERR_XMT_DISCARDS",
	"DCNT_IA_LNK_ERR_XMT_CONTRAINT",
	"DCNT_IA_LNK_ERR_INTEGRITY",
	"DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN",
	"DCNT_IA_LNK_WARN_RCV_SW_RELAY",
	"DCNT_IA_LNK_WARN_XMT_WAIT",
	"DCNT_IA_DIAG_ERR_RQ_RAE",
	"DCNT_IA_DIAG_ERR_RQ_OOS",
	"DCNT_IA_DIAG_ERR_RQ_RIRE",
	"DCNT_IA_DIAG_ERR_RQ_UDSDPRD",
	"DCNT_IA_DIAG_ERR_SQ_RAE",
	"DCNT_IA_DIAG_ERR_SQ_OOS",
	"DCNT_IA_DIAG_ERR_SQ_RIRE",
	"DCNT_IA_DIAG_ERR_SQ_RREE",
	"DCNT_IA_DIAG_ERR_SQ_TREE",
};

static const char *const ep_names[DAT2_EP_ALL_COUNTERS] = {
	"DCNT_EP_CONNECT",	   "DCNT_EP_DISCONNECT",     "DCNT_EP_POST_SEND",
	"DCNT_EP_POST_SEND_DATA",  "DCNT_EP_POST_SEND_UD",   "DCNT_EP_POST_SEND_UD_DATA",
	"DCNT_EP_POST_RECV",	   "DCNT_EP_POST_RECV_DATA", "DCNT_EP_POST_WRITE",
	"DCNT_EP_POST_WRITE_DATA", "DCNT_EP_POST_WRITE_IMM", "DCNT_EP_POST_WRITE_IMM_DATA",
	"DCNT_EP_POST_READ",	   "DCNT_EP_POST_READ_DATA", "DCNT_EP_POST_CMP_SWAP",
	"DCNT_EP_POST_FETCH_ADD",  "DCNT_EP_RECV",	     "DCNT_EP_RECV_DATA",
	"DCNT_EP_RECV_UD",	   "DCNT_EP_RECV_UD_DATA",   "DCNT_EP_RECV_IMM",
	"DCNT_EP_RECV_IMM_DATA",   "DCNT_EP_RECV_RDMA_IMM",  "DCNT_EP_RECV_RDMA_IMM_DATA",
};

static const char *const evd_names[DAT2_EVD_ALL_COUNTERS] = {
	"DCNT_EVD_WAIT",	 "DCNT_EVD_WAIT_BLOCKED",	"DCNT_EVD_WAIT_NOTIFY",
	"DCNT_EVD_DEQUEUE",	 "DCNT_EVD_DEQUEUE_FOUND",	"DCNT_EVD_DEQUEUE_NOT_FOUND",
	"DCNT_EVD_DEQUEUE_POLL", "DCNT_EVD_DEQUEUE_POLL_FOUND", "DCNT_EVD_CONN_CALLBACK",
	"DCNT_EVD_DTO_CALLBACK",
};

/* --- what an object has counted; all others are 0 --- */

static void read_objects(const struct core_ia *ia, DAT_HANDLE_TYPE type, uint64_t *values)
{
	const struct core_object_list *list = &ia->objects[type];

	values[0] = list->count + list->removed;
	values[1] = list->removed;
}

static uint64_t ia_count(const struct core_ia *ia, enum core_ia_count count)
{
	return atomic_load_explicit(&ia->counts[count], memory_order_relaxed);
}

static void ia_read(const void *object, uint64_t *values)
{
	const struct core_ia *ia = object;
	const struct core_object_list *crs = &ia->objects[DAT_HANDLE_TYPE_CR];

	read_objects(ia, DAT_HANDLE_TYPE_PZ, &values[DAT2_IA_PZ_CREATE]);
	read_objects(ia, DAT_HANDLE_TYPE_LMR, &values[DAT2_IA_LMR_CREATE]);
	read_objects(ia, DAT_HANDLE_TYPE_RMR, &values[DAT2_IA_RMR_CREATE]);
	read_objects(ia, DAT_HANDLE_TYPE_EVD, &values[DAT2_IA_EVD_CREATE]);
	read_objects(ia, DAT_HANDLE_TYPE_EP, &values[DAT2_IA_EP_CREATE]);
	read_objects(ia, DAT_HANDLE_TYPE_SRQ, &values[DAT2_IA_SRQ_CREATE]);
	values[DAT2_IA_PSP_CREATE] = ia_count(ia, CORE_COUNT_PSP);
	values[DAT2_IA_PSP_CREATE_ANY] = ia_count(ia, CORE_COUNT_PSP_ANY);
	values[DAT2_IA_PSP_FREE] = ia->objects[DAT_HANDLE_TYPE_PSP].removed;
	values[DAT2_IA_RSP_CREATE] = ia_count(ia, CORE_COUNT_RSP);
	values[DAT2_IA_RSP_FREE] = ia->objects[DAT_HANDLE_TYPE_RSP].removed;
	values[DAT2_IA_SP_CR] = crs->count + crs->removed;
	values[DAT2_IA_SP_CR_ACCEPTED] = ia_count(ia, CORE_COUNT_ACCEPT);
	values[DAT2_IA_SP_CR_REJECTED] = ia_count(ia, CORE_COUNT_REJECT);
	values[DAT2_IA_ASYNC_ERROR] = ia_count(ia, CORE_COUNT_ASYNC_ERROR);
	values[DAT2_IA_CM_ACTIVE_EST] = ia_count(ia, CORE_COUNT_ACTIVE);
	values[DAT2_IA_CM_PASSIVE_EST] = ia_count(ia, CORE_COUNT_PASSIVE);
}

static void ep_read_posts(const struct core_ep *ep, uint64_t *values)
{
	const struct core_ep_counts *counts = &ep->counts;
	const uint64_t *posted = counts->posted, *bytes = counts->bytes;
	const uint64_t *apart = counts->apart;
	uint64_t immediates = apart[0];
	uint64_t adds = apart[CORE_OP_FETCH_ADD - CORE_OP_WRITE_IMMEDIATE];
	uint64_t swaps = apart[CORE_OP_COMPARE_SWAP - CORE_OP_WRITE_IMMEDIATE];

	values[DAT2_EP_POST_SEND] = counts->old_requests + ep->req.tail -
				    posted[CORE_OP_RDMA_WRITE] - posted[CORE_OP_RDMA_READ] -
				    posted[CORE_OP_BIND];
	values[DAT2_EP_POST_SEND_DATA] = bytes[CORE_OP_SEND];
	values[DAT2_EP_POST_RECV] = counts->old_recvs + ep->recv.tail;
	values[DAT2_EP_POST_RECV_DATA] = counts->recv_room;
	values[DAT2_EP_POST_WRITE] = posted[CORE_OP_RDMA_WRITE] - immediates;
	values[DAT2_EP_POST_WRITE_DATA] = bytes[CORE_OP_RDMA_WRITE] - counts->immediate_bytes;
	values[DAT2_EP_POST_WRITE_IMM] = immediates;
	values[DAT2_EP_POST_WRITE_IMM_DATA] = counts->immediate_bytes;
	values[DAT2_EP_POST_READ] = posted[CORE_OP_RDMA_READ] - adds - swaps;
	values[DAT2_EP_POST_READ_DATA] =
		bytes[CORE_OP_RDMA_READ] - (adds + swaps) * sizeof(uint64_t);
	values[DAT2_EP_POST_CMP_SWAP] = swaps;
	values[DAT2_EP_POST_FETCH_ADD] = adds;
}

static void ep_read(const void *object, uint64_t *values)
{
	const struct core_ep *ep = object;
	const struct core_ep_counts *counts = &ep->counts;
	uint64_t done = counts->old_recvs + ep->recv.head + counts->srq_recvs;

	values[DAT2_EP_CONNECT] = counts->connects;
	values[DAT2_EP_DISCONNECT] = counts->disconnects;
	ep_read_posts(ep, values);
	values[DAT2_EP_RECV] = done - counts->recv_failures - counts->recv_immediates;
	values[DAT2_EP_RECV_DATA] = counts->recv_bytes - counts->recv_immediate_bytes;
	values[DAT2_EP_RECV_RDMA_IMM] = counts->recv_immediates;
	values[DAT2_EP_RECV_RDMA_IMM_DATA] = counts->recv_immediate_bytes;
}

static void evd_read(const void *object, uint64_t *values)
{
	const struct core_evd *evd = object;

	values[DAT2_EVD_WAIT] = evd->waits;
	values[DAT2_EVD_WAIT_BLOCKED] = evd->blocked;
	values[DAT2_EVD_WAIT_NOTIFY] = evd->wakeups;
	values[DAT2_EVD_DEQUEUE_FOUND] = evd->dequeues[TRANSPORT_POLL_FOUND];
	values[DAT2_EVD_DEQUEUE_NOT_FOUND] = evd->dequeues[TRANSPORT_POLL_EMPTY];
	values[DAT2_EVD_DEQUEUE] =
		values[DAT2_EVD_DEQUEUE_FOUND] + values[DAT2_EVD_DEQUEUE_NOT_FOUND];
}

/* --- reading a set --- */

struct set {
	int count;
	const char *const *names;
	void (*read)(const void *object, uint64_t *values);
	size_t before; /* where the object has counted_before */
};

static const struct set sets[CORE_TYPE_COUNT] = {
	[DAT_HANDLE_TYPE_IA] = {DAT2_IA_ALL_COUNTERS, ia_names, ia_read,
				offsetof(struct core_ia, counted_before)},
	[DAT_HANDLE_TYPE_EP] = {DAT2_EP_ALL_COUNTERS, ep_names, ep_read,
				offsetof(struct core_ep, counted_before)},
	[DAT_HANDLE_TYPE_EVD] = {DAT2_EVD_ALL_COUNTERS, evd_names, evd_read,
				 offsetof(struct core_evd, counted_before)},
};

/* One call, and what it read. */
struct reading {
	const char *call;
	int counter;
	bool is_reset;
	uint64_t values[DAT2_IA_ALL_COUNTERS];
	const struct set *set;
};

/* Locks the object of a handle that has counters. */
static struct core_handle *lock_counted(const char *call, DAT_HANDLE handle,
					const struct set **set_out, DAT_RETURN *ret)
{
	const struct core_arg arg = {call, "handle", 1};
	DAT_HANDLE_TYPE type;
	struct core_handle *cell = core_handle_lock_any(handle, &type);

	if (cell && sets[type].count) {
		*set_out = &sets[type];
		return cell;
	}
	if (cell)
		core_handle_unlock(cell);
	*ret = core_bad_handle(&arg, DAT_INVALID_HANDLE1, handle);
	return NULL;
}

static bool is_wanted(const struct reading *reading, int counter)
{
	return counter == reading->counter || reading->counter == reading->set->count;
}

/* D2-CNT-05: the lock of the object is held, so nothing is counted between the two steps. */
static DAT_RETURN read_locked(void *object, struct reading *reading)
{
	uint64_t **place = (uint64_t **)((char *)object + reading->set->before);
	uint64_t *before = *place;

	if (reading->is_reset && !before) {
		before = calloc((size_t)reading->set->count, sizeof(*before));
		if (!before)
			return core_no_resources(DAT_RESOURCE_MEMORY);
		*place = before;
	}
	reading->set->read(object, reading->values);
	for (int i = 0; before && i < reading->set->count; i++) {
		uint64_t now = reading->values[i];

		reading->values[i] -= before[i];
		if (reading->is_reset && is_wanted(reading, i))
			before[i] = now;
	}
	return DAT_SUCCESS;
}

/* `out`: where the caller wants the values, if it must name a place. */
static DAT_RETURN take(DAT_HANDLE handle, struct reading *reading, const uint64_t *out)
{
	const struct core_arg counter_arg = {reading->call, "counter", 2};
	const struct core_arg out_arg = {reading->call, "counters_out", 3};
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell = lock_counted(reading->call, handle, &reading->set, &ret);

	if (!cell)
		return ret;
	if (reading->counter < 0 || reading->counter > reading->set->count)
		ret = core_bad_range(&counter_arg, reading->counter, 0, reading->set->count);
	else if (!out)
		ret = core_bad_null(&out_arg);
	else
		ret = read_locked(cell->object, reading);
	core_handle_unlock(cell);
	return ret;
}

/* --- the operations --- */

DAT_RETURN dat2_query_counters(DAT_HANDLE handle, int counter, uint64_t *values_out, int is_reset)
{
	CORE_NO_CANCELLATION;
	struct reading reading = {
		.call = "dat_ib_query_counters", .counter = counter, .is_reset = is_reset};
	DAT_RETURN ret = take(handle, &reading, values_out);

	for (int i = 0; ret == DAT_SUCCESS && i < reading.set->count; i++)
		if (is_wanted(&reading, i))
			*values_out++ = reading.values[i];
	return dat2_status(ret);
}

DAT_RETURN dat2_print_counters(DAT_HANDLE handle, int counter, int is_reset)
{
	CORE_NO_CANCELLATION;
	struct reading reading = {
		.call = "dat_ib_print_counters", .counter = counter, .is_reset = is_reset};
	DAT_RETURN ret = take(handle, &reading, reading.values);

	for (int i = 0; ret == DAT_SUCCESS && i < reading.set->count; i++)
		if (reading.values[i] && is_wanted(&reading, i))
			printf("%s %" PRIu64 "\n", reading.set->names[i], reading.values[i]);
	return dat2_status(ret);
}

DAT_RETURN dat2_switch_counters(const char *call, DAT_HANDLE handle, int type)
{
	CORE_NO_CANCELLATION;
	const struct core_arg arg = {call, "type", 2};
	DAT_RETURN ret = DAT_SUCCESS;
	const struct set *set;
	struct core_handle *cell = lock_counted(call, handle, &set, &ret);

	if (!cell)
		return dat2_status(ret);
	core_handle_unlock(cell);
	if (type == DAT2_COUNTERS_LNK || type == DAT2_COUNTERS_DIAG)
		ret = core_unsupported(&arg, "nothing counts what the port or the device does");
	else if (type != DAT2_COUNTERS_CM)
		ret = core_bad_range(&arg, type, DAT2_COUNTERS_CM, DAT2_COUNTERS_DIAG);
	return dat2_status(ret);
}
