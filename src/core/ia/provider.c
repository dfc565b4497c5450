// SPDX-License-Identifier: BSD-2-Clause
/*
 * The exports of a provider library: dat_provider_init, dat_provider_fini, and the provider table
 * that libdat and compiled consumers call. Each registered adapter name has one table. Tables are
 * never freed, because consumers may keep handles that point to them.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/calls.h"
#include "core/base/hooks.h"
#include "core/base/log.h"
#include "core/base/transport_ops.h"
#include "core/conn/cr.h"
#include "core/conn/peer.h"
#include "core/ep/dto.h"
#include "core/ep/ep.h"
#include "core/ep/ep_attr.h"
#include "core/ep/extra.h"
#include "core/event/cno.h"
#include "core/ia/ia.h"
#include "core/ia/registry.h"
#include "core/srq/srq.h"
#include "shared/opendat.h"

/* The provider tables of all adapters point to it. */
static const struct opendat_extension extension = {
	.magic = OPENDAT_EXTENSION_MAGIC,
	.size = sizeof(struct opendat_extension),
	.cno_fd_func = core_cno_fd,
	.ia_name_func = core_ia_set_consumer_handle,
	.peer_func = core_peer,
	.ep_attr_default_func = core_ep_attr_default,
	.take_immediate_func = core_ep_take_immediate,
	.write_immediate_func = core_ep_post_write_immediate,
	.fetch_add_func = core_ep_post_fetch_add,
	.compare_swap_func = core_ep_post_compare_swap,
	.send_invalidate_func = core_ep_post_send_invalidate,
	.dto_data_func = core_dto_data,
};

#define SLOT(name) .name##_func = core_##name,
#define COUNT(name) +1

const struct core_front core_front_1 = {
	.major = DAT_VERSION_MAJOR,
	.table.provider = {.extension = (DAT_PVOID)(uintptr_t)&extension,
			   CORE_CONTROL_CALLS(SLOT) CORE_DATA_CALLS(SLOT)},
	.open_unsafe = core_ia_open_unsafe,
	.open_safe = core_ia_open_safe,
	.mem_priv =
		(DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC),
	/* of an endpoint that core_ep_take_immediate was not called for (D2-MIX-07) */
	.takes = TRANSPORT_TAKES_ATOMICS | TRANSPORT_TAKES_INVALIDATE,
};

/* device_name, extension and ia_open_func are set for each adapter. */
_Static_assert(3 + CORE_CONTROL_CALLS(COUNT) + CORE_DATA_CALLS(COUNT) ==
		       sizeof(DAT_PROVIDER) / sizeof(void (*)(void)),
	       "every slot is set");

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
	core_hooks = (struct core_hooks){
		.cr_abandon = core_cr_abandon,
		.srq_return = core_srq_return,
		.srq_offer = core_ep_offer,
	};
	(void)pthread_atfork(adapter_fork_prepare, adapter_fork_done, adapter_fork_done);
}

/* The generation that serves that version of DAT, or NULL. */
static const struct core_front *front_of(DAT_UINT32 major)
{
	const struct core_front *const *front = core_fronts;

	while (*front && (*front)->major != major)
		front++;
	return *front;
}

static struct core_adapter *adapter_find_locked(const struct core_front *front, const char *name,
						DAT_BOOLEAN is_thread_safe)
{
	struct core_adapter *adapter = adapter_list;

	while (adapter && (adapter->front != front || strcmp(adapter->info.ia_name, name) ||
			   !adapter->info.is_thread_safe != !is_thread_safe))
		adapter = adapter->next;
	return adapter;
}

static struct core_adapter *adapter_make_locked(const struct core_front *front,
						const DAT_PROVIDER_INFO *info)
{
	struct core_adapter *adapter =
		adapter_find_locked(front, info->ia_name, info->is_thread_safe);

	if (adapter)
		return adapter;
	adapter = calloc(1, sizeof(*adapter));
	if (!adapter)
		return NULL;
	adapter->info = *info;
	adapter->front = front;
	adapter->table = front->table;
	adapter->provider.device_name = adapter->info.ia_name;
	/* ia_open_func gets only the name, so it depends on the thread safety */
	adapter->provider.ia_open_func =
		info->is_thread_safe ? front->open_safe : front->open_unsafe;
	adapter->next = adapter_list;
	adapter_list = adapter;
	return adapter;
}

struct core_adapter *core_adapter_find(const struct core_front *front, const char *name,
				       DAT_BOOLEAN is_thread_safe, char **instance_data_out)
{
	struct core_adapter *adapter;

	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(front, name, is_thread_safe);
	if (adapter && !adapter->registrations)
		adapter = NULL;
	*instance_data_out = adapter ? strdup(adapter->instance_data) : NULL;
	pthread_mutex_unlock(&adapter_lock);
	return adapter;
}

__attribute__((visibility("default"))) void dat_provider_init(const DAT_PROVIDER_INFO *info,
							      const char *instance_data);
__attribute__((visibility("default"))) void dat_provider_fini(const DAT_PROVIDER_INFO *info);

/*
 * Counts a registration before libdat knows of it, because libdat may open the adapter at once. The
 * first one sets the instance data. All versions of a name share them, because ia_open_func does
 * not get the version; so another version with other instance data is refused.
 */
static struct core_adapter *adapter_get(const struct core_front *front,
					const DAT_PROVIDER_INFO *info, const char *instance_data,
					const struct core_registry *registry)
{
	char *copy = strdup(instance_data);
	struct core_adapter *adapter;
	bool is_refused;

	pthread_mutex_lock(&adapter_lock);
	adapter = copy ? adapter_make_locked(front, info) : NULL;
	is_refused = adapter && adapter->registrations &&
		     strcmp(adapter->instance_data, instance_data) != 0;
	if (adapter && !adapter->registrations) {
		free(adapter->instance_data);
		adapter->instance_data = copy;
		adapter->registry_ia_handle = registry->ia_handle;
		copy = NULL;
	}
	if (adapter && !is_refused)
		adapter->registrations++;
	pthread_mutex_unlock(&adapter_lock);
	free(copy);
	if (!is_refused)
		return adapter;
	core_log(CORE_LOG_ERROR, "adapter %s: registered already, with other instance data than %s",
		 info->ia_name, instance_data);
	return NULL;
}

static void adapter_put(struct core_adapter *adapter)
{
	pthread_mutex_lock(&adapter_lock);
	if (adapter->registrations)
		adapter->registrations--;
	pthread_mutex_unlock(&adapter_lock);
}

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data)
{
	const struct core_front *front = info ? front_of(info->dapl_version_major) : NULL;
	struct core_registry registry;
	struct core_adapter *adapter;

	if (!front)
		return;
	core_registry_find(__builtin_return_address(0), info->dapl_version_major, &registry);
	if (!registry.add)
		return;
	pthread_once(&adapter_once, adapter_setup);
	adapter = adapter_get(front, info, instance_data ? instance_data : "", &registry);
	if (adapter && registry.add(&adapter->provider, info) != DAT_SUCCESS)
		adapter_put(adapter); /* PROV-INIT-10: a failure leaves nothing behind */
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	const struct core_front *front = info ? front_of(info->dapl_version_major) : NULL;
	struct core_registry registry;
	struct core_adapter *adapter;

	if (!front)
		return;
	core_registry_find(__builtin_return_address(0), info->dapl_version_major, &registry);
	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(front, info->ia_name, info->is_thread_safe);
	pthread_mutex_unlock(&adapter_lock);
	if (adapter && registry.remove && registry.remove(&adapter->provider, info) == DAT_SUCCESS)
		adapter_put(adapter);
}
