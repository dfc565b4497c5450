// SPDX-License-Identifier: BSD-2-Clause
/*
 * libdat-check.so.1: a provider that is a consumer of the provider below it. The instance data of its
 * line in dat.conf names that adapter; with DAT_CHECK libdat makes such a line by itself. Adapters are
 * never freed, because programs may keep handles that point to their tables.
 */
#include "check/adapter.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/object.h"
#include "check/report.h"
#include "check/trace.h"
#include "shared/opendat.h"

static DAT_RETURN cno_fd(DAT_CNO_HANDLE cno_handle, int *fd)
{
	return dat_opendat_cno_fd(check_inner(cno_handle), fd);
}

static DAT_RETURN peer(DAT_HANDLE handle, DAT_OPENDAT_PEER *peer_out)
{
	return dat_opendat_peer(check_inner(handle), peer_out);
}

static DAT_RETURN ep_attr_default(DAT_IA_HANDLE ia_handle, DAT_EP_ATTR *ep_attr)
{
	return dat_opendat_ep_attr_default(check_inner(ia_handle), ep_attr);
}

/* The copy keeps the parts of the event that have no name: memcpy, not an assignment. */
static DAT_RETURN dto_data(const DAT_EVENT *event, DAT_OPENDAT_DTO_DATA *data)
{
	DAT_EVENT inner;

	memcpy(&inner, event, sizeof(inner));
	inner.evd_handle = check_inner(event->evd_handle);
	return dat_opendat_dto_data(&inner, data);
}

static const struct opendat_extension extension = {
	.magic = OPENDAT_EXTENSION_MAGIC,
	.size = sizeof(struct opendat_extension),
	.cno_fd_func = cno_fd,
	.ia_name_func = check_ia_set_consumer_handle,
	.peer_func = peer,
	.ep_attr_default_func = ep_attr_default,
	.take_immediate_func = check_take_immediate,
	.write_immediate_func = check_write_immediate,
	.fetch_add_func = check_fetch_add,
	.compare_swap_func = check_compare_swap,
	.send_invalidate_func = check_send_invalidate,
	.dto_data_func = dto_data,
};

#define SLOT(name, level) .name##_func = check_##name,
#define TRACED_SLOT(name, level) .name##_func = trace_##name,
#define COUNT(name, level) +1

static const DAT_PROVIDER provider_template = {CHECK_CALLS(SLOT)};
static const DAT_PROVIDER traced_template = {CHECK_CALLS(TRACED_SLOT)};

/* device_name, extension and ia_open_func are set for each adapter. */
_Static_assert(3 + CHECK_CALLS(COUNT) == sizeof(DAT_PROVIDER) / sizeof(void (*)(void)),
	       "every slot is set");

/* Guards the list. */
static pthread_mutex_t adapter_lock = PTHREAD_MUTEX_INITIALIZER;
static struct check_adapter *adapters;

static struct check_adapter *adapter_find_locked(const char *name, bool is_thread_safe)
{
	struct check_adapter *adapter = adapters;

	while (adapter && (strcmp(adapter->info.ia_name, name) != 0 ||
			   !adapter->info.is_thread_safe != !is_thread_safe))
		adapter = adapter->next;
	return adapter;
}

const struct check_adapter *check_adapter_find(const char *name, bool is_thread_safe)
{
	struct check_adapter *adapter;

	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(name, is_thread_safe);
	pthread_mutex_unlock(&adapter_lock);
	return adapter;
}

static DAT_IA_OPEN_FUNC open_of(bool is_thread_safe, bool is_traced)
{
	if (is_traced)
		return is_thread_safe ? trace_ia_open_safe : trace_ia_open_unsafe;
	return is_thread_safe ? check_ia_open_safe : check_ia_open_unsafe;
}

/* The adapter of that entry. NULL: memory is exhausted, or it stands in front of another one. */
static struct check_adapter *adapter_get(const DAT_PROVIDER_INFO *info, const char *below)
{
	struct check_adapter *adapter;

	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(info->ia_name, info->is_thread_safe);
	if (adapter && strcmp(adapter->below, below) != 0)
		adapter = NULL;
	else if (!adapter && (adapter = calloc(1, sizeof(*adapter))) != NULL) {
		adapter->info = *info;
		snprintf(adapter->below, sizeof(adapter->below), "%s", below);
		adapter->provider = trace_is_on(below) ? traced_template : provider_template;
		adapter->provider.extension = (DAT_PVOID)(uintptr_t)&extension;
		adapter->provider.device_name = adapter->info.ia_name;
		adapter->provider.ia_open_func = open_of(info->is_thread_safe, trace_is_on(below));
		adapter->next = adapters;
		adapters = adapter;
	}
	pthread_mutex_unlock(&adapter_lock);
	return adapter;
}

__attribute__((visibility("default"))) void dat_provider_init(const DAT_PROVIDER_INFO *info,
							      const char *instance_data);
__attribute__((visibility("default"))) void dat_provider_fini(const DAT_PROVIDER_INFO *info);

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data)
{
	struct check_adapter *adapter;

	if (!info || !instance_data || !*instance_data)
		return;
	check_report_init();
	trace_init();
	adapter = adapter_get(info, instance_data);
	if (adapter)
		(void)dat_registry_add_provider(&adapter->provider, info);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct check_adapter *adapter;

	if (!info)
		return;
	pthread_mutex_lock(&adapter_lock);
	adapter = adapter_find_locked(info->ia_name, info->is_thread_safe);
	pthread_mutex_unlock(&adapter_lock);
	if (adapter)
		(void)dat_registry_remove_provider(&adapter->provider, info);
}
