// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a provider library exports: dat_provider_init and dat_provider_fini, and the provider table
 * that libdat and compiled consumers dispatch through. There is one table per registered adapter
 * name; tables are never freed, because handles that consumers keep point to them.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/transport_ops.h"
#include "core/event/cno.h"
#include "core/ia/ia.h"
#include "core/ia/shield.h"
#include "shared/opendat.h"

static const struct opendat_extension provider_extension = {
	.magic = OPENDAT_EXTENSION_MAGIC,
	.size = sizeof(struct opendat_extension),
	.cno_fd_func = core_cno_fd,
	.ia_name_func = core_ia_name,
};

/* clang-format off */
static const DAT_PROVIDER provider_template = {
	.ia_query_func = shield_ia_query,
	.ia_close_func = shield_ia_close,
	.set_consumer_context_func = core_set_consumer_context,
	.get_consumer_context_func = core_get_consumer_context,
	.get_handle_type_func = core_get_handle_type,
	.cno_create_func = shield_cno_create,
	.cno_modify_agent_func = shield_cno_modify_agent,
	.cno_query_func = shield_cno_query,
	.cno_free_func = shield_cno_free,
	.cno_wait_func = core_cno_wait,
	.cr_query_func = shield_cr_query,
	.cr_accept_func = shield_cr_accept,
	.cr_reject_func = shield_cr_reject,
	.cr_handoff_func = shield_cr_handoff,
	.evd_create_func = shield_evd_create,
	.evd_query_func = shield_evd_query,
	.evd_modify_cno_func = shield_evd_modify_cno,
	.evd_enable_func = shield_evd_enable,
	.evd_disable_func = shield_evd_disable,
	.evd_wait_func = core_evd_wait,
	.evd_resize_func = shield_evd_resize,
	.evd_post_se_func = shield_evd_post_se,
	.evd_dequeue_func = core_evd_dequeue,
	.evd_free_func = shield_evd_free,
	.ep_create_func = shield_ep_create,
	.ep_query_func = shield_ep_query,
	.ep_modify_func = shield_ep_modify,
	.ep_connect_func = shield_ep_connect,
	.ep_dup_connect_func = shield_ep_dup_connect,
	.ep_disconnect_func = shield_ep_disconnect,
	.ep_post_send_func = core_ep_post_send,
	.ep_post_recv_func = core_ep_post_recv,
	.ep_post_rdma_read_func = core_ep_post_rdma_read,
	.ep_post_rdma_write_func = core_ep_post_rdma_write,
	.ep_get_status_func = shield_ep_get_status,
	.ep_free_func = shield_ep_free,
	.lmr_create_func = shield_lmr_create,
	.lmr_query_func = shield_lmr_query,
	.lmr_free_func = shield_lmr_free,
	.rmr_create_func = shield_rmr_create,
	.rmr_query_func = shield_rmr_query,
	.rmr_bind_func = shield_rmr_bind,
	.rmr_free_func = shield_rmr_free,
	.psp_create_func = shield_psp_create,
	.psp_query_func = shield_psp_query,
	.psp_free_func = shield_psp_free,
	.rsp_create_func = shield_rsp_create,
	.rsp_query_func = shield_rsp_query,
	.rsp_free_func = shield_rsp_free,
	.pz_create_func = shield_pz_create,
	.pz_query_func = shield_pz_query,
	.pz_free_func = shield_pz_free,
	.psp_create_any_func = shield_psp_create_any,
	.ep_reset_func = shield_ep_reset,
	.evd_set_unwaitable_func = shield_evd_set_unwaitable,
	.evd_clear_unwaitable_func = shield_evd_clear_unwaitable,
	.lmr_sync_rdma_read_func = shield_lmr_sync_rdma_read,
	.lmr_sync_rdma_write_func = shield_lmr_sync_rdma_write,
	.ep_create_with_srq_func = shield_ep_create_with_srq,
	.ep_recv_query_func = shield_ep_recv_query,
	.ep_set_watermark_func = shield_ep_set_watermark,
	.srq_create_func = shield_srq_create,
	.srq_free_func = shield_srq_free,
	.srq_post_recv_func = core_srq_post_recv,
	.srq_query_func = shield_srq_query,
	.srq_resize_func = shield_srq_resize,
	.srq_set_lw_func = shield_srq_set_lw,
};
/* clang-format on */

/* Guards the list of names and every member of struct core_adapter that is not constant. Rank 9. */
static pthread_mutex_t adapter_lock = PTHREAD_MUTEX_INITIALIZER;
static struct core_adapter *adapter_list;
static pthread_once_t adapter_once = PTHREAD_ONCE_INIT;

static void adapter_fork_prepare(void)
{
	pthread_mutex_lock(&adapter_lock);
}

static void adapter_fork_done(void)
{
	pthread_mutex_unlock(&adapter_lock);
}

static void adapter_setup(void)
{
	(void)pthread_atfork(adapter_fork_prepare, adapter_fork_done, adapter_fork_done);
}

static struct core_adapter *adapter_find_locked(const char *name, DAT_BOOLEAN is_thread_safe)
{
	struct core_adapter *adapter = adapter_list;

	while (adapter && (strcmp(adapter->info.ia_name, name) ||
			   !adapter->info.is_thread_safe != !is_thread_safe))
		adapter = adapter->next;
	return adapter;
}

static struct core_adapter *adapter_make_locked(const DAT_PROVIDER_INFO *info)
{
	struct core_adapter *adapter = adapter_find_locked(info->ia_name, info->is_thread_safe);

	if (adapter)
		return adapter;
	adapter = calloc(1, sizeof(*adapter));
	if (!adapter)
		return NULL;
	adapter->info = *info;
	adapter->ops = transport_this;
	adapter->provider = provider_template;
	adapter->provider.extension = (DAT_PVOID)(uintptr_t)&provider_extension;
	adapter->provider.device_name = adapter->info.ia_name;
	/* the open entry is told the name only; the thread safety is in the function */
	adapter->provider.ia_open_func =
		info->is_thread_safe ? shield_ia_open_safe : shield_ia_open_unsafe;
	adapter->next = adapter_list;
	adapter_list = adapter;
	return adapter;
}

struct core_adapter *core_adapter_find(const char *name, DAT_BOOLEAN is_thread_safe,
				       char **instance_data_out)
{
	struct core_adapter *adapter;

	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(name, is_thread_safe);
	if (adapter && !adapter->is_registered)
		adapter = NULL;
	*instance_data_out = adapter ? strdup(adapter->instance_data) : NULL;
	pthread_mutex_unlock(&adapter_lock);
	return adapter;
}

__attribute__((visibility("default"))) void dat_provider_init(const DAT_PROVIDER_INFO *info,
							      const char *instance_data);
__attribute__((visibility("default"))) void dat_provider_fini(const DAT_PROVIDER_INFO *info);

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data)
{
	struct core_adapter *adapter;
	char *copy;

	if (!info)
		return;
	pthread_once(&adapter_once, adapter_setup);
	copy = strdup(instance_data ? instance_data : "");
	pthread_mutex_lock(&adapter_lock);
	adapter = copy ? adapter_make_locked(info) : NULL;
	if (adapter) {
		free(adapter->instance_data);
		adapter->instance_data = copy;
		adapter->is_registered = true;
		copy = NULL;
	}
	pthread_mutex_unlock(&adapter_lock);
	free(copy);
	if (!adapter || dat_registry_add_provider(&adapter->provider, info) == DAT_SUCCESS)
		return;
	pthread_mutex_lock(&adapter_lock); /* PROV-INIT-10: a failure leaves nothing behind */
	adapter->is_registered = false;
	pthread_mutex_unlock(&adapter_lock);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct core_adapter *adapter;

	if (!info)
		return;
	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(info->ia_name, info->is_thread_safe);
	if (adapter)
		adapter->is_registered = false;
	pthread_mutex_unlock(&adapter_lock);
	if (adapter)
		(void)dat_registry_remove_provider(&adapter->provider, info);
}
