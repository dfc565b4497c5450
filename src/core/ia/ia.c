// SPDX-License-Identifier: BSD-2-Clause
/* The interface adapter: dat_ia_open and dat_ia_query. */
#include "core/ia/ia.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/calls.h"
#include "core/base/cancel.h"
#include "core/base/fence.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/transport_ops.h"
#include "core/event/evd.h"
#include "core/mem/mem.h"

/* --- open --- */

/* The defaults for all transports; the transport's ia_open changes what differs. */
static void ia_default_attr(struct core_ia *ia)
{
	DAT_PROVIDER_ATTR *attr = &ia->provider_attr;

	strcpy(attr->provider_name, "OpenDAT");
	attr->provider_version_major = 1;
	attr->provider_version_minor = 0;
	attr->dapl_version_major = DAT_VERSION_MAJOR;
	attr->dapl_version_minor = DAT_VERSION_MINOR;
	attr->lmr_mem_types_supported = (DAT_MEM_TYPE)(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR |
						       DAT_MEM_TYPE_SHARED_VIRTUAL);
	attr->iov_ownership_on_return = DAT_IOV_CONSUMER;
	attr->dat_qos_supported = DAT_QOS_BEST_EFFORT;
	attr->completion_flags_supported =
		(DAT_COMPLETION_FLAGS)(DAT_COMPLETION_SUPPRESS_FLAG |
				       DAT_COMPLETION_SOLICITED_WAIT_FLAG |
				       DAT_COMPLETION_UNSIGNALLED_FLAG |
				       DAT_COMPLETION_BARRIER_FENCE_FLAG);
	attr->is_thread_safe = ia->adapter->info.is_thread_safe;
	attr->supports_multipath = DAT_FALSE;
	attr->ep_creator = DAT_PSP_CREATES_EP_IFASKED;
	attr->pz_support = DAT_PZ_UNIQUE;
	attr->optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT;
	/* all streams may share an EVD; the cast is needed because the member is const */
	memset((void *)(uintptr_t)attr->evd_stream_merging_supported, 0,
	       sizeof(attr->evd_stream_merging_supported));
	for (size_t i = 0; i < sizeof(attr->evd_stream_merging_supported) / sizeof(DAT_BOOLEAN);
	     i++)
		((DAT_BOOLEAN *)(uintptr_t)attr->evd_stream_merging_supported)[i] = DAT_TRUE;
	attr->srq_supported = DAT_TRUE;
	attr->srq_watermarks_supported = 0x111; /* low, soft high, hard high */
	attr->srq_ep_pz_difference_supported = DAT_TRUE;
	attr->srq_info_supported = 0x11;     /* both counts of dat_srq_query */
	attr->ep_recv_info_supported = 0x11; /* both values of dat_ep_recv_query */
	attr->lmr_sync_req = DAT_FALSE;
	attr->dto_async_return_guaranteed = DAT_FALSE;
	attr->rdma_write_for_rdma_read_req = DAT_FALSE;
}

static void log_unknown_setting(const char *name, int len)
{
	core_log(CORE_LOG_ERROR | CORE_LOG_WARNING, "environment: %.*s: no setting has that name",
		 len, name);
}

static void check_environment(void)
{
	core_settings_unknown(log_unknown_setting);
}

static struct core_ia *ia_new(struct core_adapter *adapter, const char *instance_data)
{
	struct core_ia *ia = calloc(1, sizeof(*ia));
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *why = NULL;

	if (!ia)
		return NULL;
	pthread_once(&once, check_environment);
	ia->adapter = adapter;
	if (core_settings_parse(instance_data, ia->device, &ia->settings, &why)) {
		core_log(CORE_LOG_ERROR, "adapter %s, instance data \"%s\": %s",
			 adapter->info.ia_name, instance_data, why ? why : "not understood");
		goto free_ia;
	}
	ia->port = core_settings_port(instance_data);
	ia->sched = core_sched_above_caller();
	ia->mem = core_mem_new();
	if (!ia->mem)
		goto free_ia;
	pthread_cond_init(&ia->idle, NULL);
	strcpy(ia->attr.adapter_name, adapter->info.ia_name);
	ia_default_attr(ia);
	ia->cell = core_handle_alloc(&adapter->provider, ia, ia);
	if (ia->cell)
		return ia;
	core_mem_delete(ia->mem);
free_ia:
	free(ia);
	return NULL;
}

void core_ia_delete(struct core_ia *ia)
{
	if (ia->adapter->front->close)
		ia->adapter->front->close(ia);
	core_handle_release(ia->cell);
	pthread_cond_destroy(&ia->idle);
	core_mem_delete(ia->mem);
	free(ia->counted_before);
	free(ia);
}

static DAT_RETURN ia_queue_too_long(DAT_COUNT qlen, DAT_COUNT max)
{
	(void)core_bad_range(CORE_ARG(ia_openv, 2, asynch_evd_min_qlen), qlen, 1, max);
	return core_no_resources(DAT_RESOURCE_TEVD);
}

/* Creates the asynchronous EVD, or shares that of another instance, or uses none. */
static DAT_RETURN ia_take_async_evd(struct core_ia *ia, DAT_COUNT qlen, DAT_EVD_HANDLE handle)
{
	struct core_evd *evd = NULL;
	DAT_RETURN ret;

	if (handle == DAT_EVD_ASYNC_EXISTS) {
		ia->async_evd = DAT_EVD_OUT_OF_SCOPE;
		return DAT_SUCCESS;
	}
	if (handle != DAT_HANDLE_NULL)
		return core_evd_borrow(handle, ia);
	if (qlen > ia->attr.max_evd_qlen)
		return ia_queue_too_long(qlen, ia->attr.max_evd_qlen);
	if (ia->adapter->front->tells_srq_end && qlen < ia->attr.max_eps)
		qlen = ia->attr.max_eps; /* no end is lost that somebody waits for */
	ret = core_evd_new(ia, qlen, DAT_EVD_ASYNC_FLAG, NULL, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	core_evd_reattach(evd, CORE_STREAM_PLAIN); /* counts our use against dat_evd_free */
	ia->async_evd = evd->cell;
	ia->async_ref = core_handle_ref(evd->cell);
	ia->async_is_ours = true;
	return DAT_SUCCESS;
}

/* Logs why the transport did not open the device. */
static void ia_explain(const struct core_ia *ia, int error)
{
	struct rlimit limit = {0};

	if (!core_log_has(CORE_LOG_ERROR))
		return;
	core_log(CORE_LOG_ERROR, "adapter %s, device %s: cannot be opened: %s",
		 ia->adapter->info.ia_name, ia->device, strerror(error));
	if (error == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		core_log(CORE_LOG_ERROR, "adapter %s: the limit is %llu descriptors (ulimit -n)",
			 ia->adapter->info.ia_name, (unsigned long long)limit.rlim_cur);
}

static void ia_limit_objects(struct core_ia *ia)
{
	const DAT_IA_ATTR *attr = &ia->attr;

	ia->objects[DAT_HANDLE_TYPE_EP].max = (uint32_t)attr->max_eps;
	ia->objects[DAT_HANDLE_TYPE_EVD].max = (uint32_t)attr->max_evds;
	ia->objects[DAT_HANDLE_TYPE_PZ].max = (uint32_t)attr->max_pzs;
	ia->objects[DAT_HANDLE_TYPE_LMR].max = (uint32_t)attr->max_lmrs;
	ia->objects[DAT_HANDLE_TYPE_RMR].max = (uint32_t)attr->max_rmrs;
	ia->objects[DAT_HANDLE_TYPE_SRQ].max = (uint32_t)attr->max_srqs;
}

/* Opens the device and fills the attributes. Deletes the instance if that fails. */
static DAT_RETURN ia_open_device(struct core_ia *ia)
{
	int rc = transport_this->ia_open(ia);
	DAT_RETURN ret = core_status_from_errno(rc);

	if (rc) {
		ia_explain(ia, -rc);
	} else if (ia->adapter->front->open && !ia->adapter->front->open(ia)) {
		transport_this->ia_close(ia);
		ret = core_no_resources(DAT_RESOURCE_MEMORY);
	}
	if (ret != DAT_SUCCESS)
		core_ia_delete(ia);
	return ret;
}

static DAT_RETURN ia_start(struct core_ia *ia, DAT_COUNT qlen, DAT_EVD_HANDLE async_evd)
{
	DAT_RETURN ret;

	/*
	 * Once the process has a second thread, the kernel takes some 20 ms to register it. So do
	 * that before the transport makes one, and not in the middle of a transfer.
	 */
	(void)core_fence_is_supported(CORE_FENCE_PROCESS);
	ret = ia_open_device(ia);
	if (ret != DAT_SUCCESS)
		return ret;
	ia_limit_objects(ia);
	ret = ia_take_async_evd(ia, qlen, async_evd);
	if (ret != DAT_SUCCESS) {
		transport_this->ia_close(ia);
		core_ia_delete(ia);
		return ret;
	}
	core_handle_publish(ia->cell, DAT_HANDLE_TYPE_IA);
	return DAT_SUCCESS;
}

static DAT_RETURN ia_open(const struct core_front *front, const char *name,
			  DAT_BOOLEAN is_thread_safe, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			  struct core_ia **ia_out)
{
	struct core_adapter *adapter;
	char *instance_data = NULL;
	struct core_ia *ia;
	DAT_RETURN ret;

	adapter = core_adapter_find(front, name, is_thread_safe, &instance_data);
	if (!adapter)
		return core_error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (*async_evd == DAT_EVD_OUT_OF_SCOPE) {
		ret = core_bad_handle(CORE_ARG(ia_openv, 3, asynch_evd_handle),
				      DAT_INVALID_HANDLE_EVD_ASYNC, *async_evd);
	} else if (*async_evd == DAT_HANDLE_NULL && qlen <= 0) {
		ret = core_bad_arg(CORE_ARG(ia_openv, 2, asynch_evd_min_qlen), "%d is not positive",
				   (int)qlen);
	} else {
		ia = ia_new(adapter, instance_data);
		ret = ia ? ia_start(ia, qlen, *async_evd) : core_no_resources(DAT_RESOURCE_DEVICE);
		if (ret == DAT_SUCCESS)
			*ia_out = ia;
	}
	free(instance_data);
	return ret;
}

DAT_RETURN core_ia_open(const struct core_front *front, const DAT_NAME_PTR name,
			DAT_BOOLEAN is_thread_safe, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *ia_handle)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = NULL;
	DAT_RETURN ret;

	if (!name)
		ret = core_bad_null(CORE_ARG(ia_openv, 1, provider));
	else if (!async_evd)
		ret = core_bad_null(CORE_ARG(ia_openv, 3, asynch_evd_handle));
	else if (!ia_handle)
		return core_bad_null(CORE_ARG(ia_openv, 4, ia_handle));
	else
		ret = ia_open(front, name, is_thread_safe, qlen, async_evd, &ia);
	if (ia_handle)
		*ia_handle = ia ? ia->cell : DAT_HANDLE_NULL;
	if (ia)
		*async_evd = ia->async_evd;
	return ret;
}

DAT_RETURN core_ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen,
			     DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle)
{
	return core_ia_open(&core_front_1, name, DAT_TRUE, async_evd_qlen, async_evd_handle,
			    ia_handle);
}

DAT_RETURN core_ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen,
			       DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle)
{
	return core_ia_open(&core_front_1, name, DAT_FALSE, async_evd_qlen, async_evd_handle,
			    ia_handle);
}

/* --- attributes without an open instance --- */

DAT_RETURN core_ia_open_query(const struct core_front *front, const char *name,
			      struct core_ia **ia_out)
{
	char *instance_data = NULL;
	struct core_adapter *adapter = core_adapter_find(front, name, DAT_TRUE, &instance_data);
	DAT_RETURN ret = core_no_resources(DAT_RESOURCE_DEVICE);
	struct core_ia *ia;

	if (!adapter)
		adapter = core_adapter_find(front, name, DAT_FALSE, &instance_data);
	if (!adapter)
		return core_error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	ia = ia_new(adapter, instance_data);
	free(instance_data);
	if (ia) {
		ia->is_query = true;
		ret = ia_open_device(ia);
	}
	if (ret == DAT_SUCCESS)
		*ia_out = ia;
	return ret;
}

/* Takes the instance of a query from its cell, so that no later call finds it there. */
static struct core_ia *query_take(DAT_HANDLE handle)
{
	struct core_handle *cell = (struct core_handle *)handle;
	struct core_ia *ia;

	/* relaxed: a hint, so that no cell is locked that was never used */
	if (!core_handle_is_cell(handle) || !__atomic_load_n(&cell->object, __ATOMIC_RELAXED))
		return NULL;
	core_lock_acquire(&cell->lock);
	ia = cell->object;
	/* the cell of an instance: its object is that instance until it is freed */
	if (ia && ia == cell->ia && ia->is_query)
		cell->object = NULL;
	else
		ia = NULL;
	core_lock_release(&cell->lock);
	return ia;
}

bool core_ia_close_query(DAT_HANDLE handle)
{
	struct core_ia *ia = query_take(handle);

	if (!ia)
		return false;
	transport_this->ia_close(ia);
	core_ia_delete(ia);
	return true;
}

/* --- query --- */

/* IA-CLOSE-24: an EVD of another instance that was freed is reported as DAT_HANDLE_NULL. */
static DAT_EVD_HANDLE ia_async_handle(struct core_ia *ia)
{
	struct core_evd *evd;

	if (ia->async_evd == DAT_EVD_OUT_OF_SCOPE)
		return DAT_EVD_OUT_OF_SCOPE;
	evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);
	if (!evd)
		return DAT_HANDLE_NULL;
	core_handle_unlock(evd->cell);
	return ia->async_evd;
}

DAT_RETURN core_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			 DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			 DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr)
{
	CORE_NO_CANCELLATION;
	struct core_ia *ia = core_ia_enter(ia_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return core_bad_handle(CORE_ARG(ia_query, 1, ia_handle), DAT_INVALID_HANDLE_IA,
				       ia_handle);
	if (ia_mask & ~DAT_IA_FIELD_ALL)
		ret = core_bad_bits(CORE_ARG(ia_query, 3, ia_attr_mask), ia_mask, DAT_IA_FIELD_ALL);
	else if (ia_mask && !ia_attr)
		ret = core_bad_null(CORE_ARG(ia_query, 4, ia_attr));
	else if (provider_mask & ~DAT_PROVIDER_FIELD_ALL)
		ret = core_bad_bits(CORE_ARG(ia_query, 5, provider_attr_mask), provider_mask,
				    DAT_PROVIDER_FIELD_ALL);
	else if (provider_mask && !provider_attr)
		ret = core_bad_null(CORE_ARG(ia_query, 6, provider_attr));
	if (ret == DAT_SUCCESS) {
		if (async_evd_handle)
			*async_evd_handle = ia_async_handle(ia);
		if (ia_mask)
			memcpy(ia_attr, &ia->attr, sizeof(*ia_attr));
		if (provider_mask) /* memcpy: a member is declared const */
			memcpy((void *)provider_attr, &ia->provider_attr, sizeof(*provider_attr));
	}
	core_ia_leave(ia);
	return ret;
}
