// SPDX-License-Identifier: BSD-2-Clause
/*
 * Event dispatchers: the calls check the handle that they are dispatched by, and hand over to its
 * provider, which checks everything else. An adapter's handle in an asynchronous event is the
 * provider's own and is translated on its way out; our own providers do that themselves.
 */
#include "ia.h"

__attribute__((cold)) static void async_event_translate(DAT_EVENT *event)
{
	DAT_HANDLE *handle = &event->event_data.asynch_error_event_data.dat_handle;
	DAT_IA_HANDLE consumer = registry_ia_consumer_handle(*handle);

	/* The event may as well name an endpoint or another object: those stay as they are. */
	if (consumer)
		*handle = consumer;
}

static inline void event_translate(DAT_EVENT *event)
{
	if (event && opendat_event_is_async(event->event_number))
		async_event_translate(event);
}

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			  DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
			  DAT_EVD_HANDLE *evd_handle)
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE ia = registry_ia_handle(ia_handle, &provider);

	if (!ia)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return provider->evd_create_func(ia, evd_min_qlen, cno_handle, evd_flags, evd_handle);
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	ret = provider->evd_query_func(evd_handle, evd_param_mask, evd_param);
	if (ret == DAT_SUCCESS && evd_param && (evd_param_mask & DAT_EVD_FIELD_IA_HANDLE))
		evd_param->ia_handle = registry_ia_consumer_handle(evd_param->ia_handle);
	return ret;
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_modify_cno_func(evd_handle, cno_handle);
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_enable_func(evd_handle);
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_disable_func(evd_handle);
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_set_unwaitable_func(evd_handle);
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_clear_unwaitable_func(evd_handle);
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_resize_func(evd_handle, evd_min_qlen);
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_post_se_func(evd_handle, event);
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *n_more_events)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);
	DAT_RETURN ret;

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	ret = provider->evd_wait_func(evd_handle, timeout, threshold, event, n_more_events);
	if (ret == DAT_SUCCESS)
		event_translate(event);
	return ret;
}

/* What a provider says about taking an event, as consumers see it. */
static inline DAT_RETURN dequeued(DAT_RETURN ret, DAT_EVENT *event)
{
	if (ret == DAT_SUCCESS) {
		event_translate(event);
		return DAT_SUCCESS;
	}
	/* Consumers compare the whole code: an empty queue has no class bit (GEN-07). */
	return DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY ? (DAT_RETURN)DAT_QUEUE_EMPTY : ret;
}

__attribute__((noinline)) static DAT_RETURN evd_dequeue_any(DAT_EVD_HANDLE evd_handle,
							    DAT_EVENT *event)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return dequeued(provider->evd_dequeue_func(evd_handle, event), event);
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	const DAT_PROVIDER *provider = registry_handle_usual(evd_handle);

	if (!provider)
		return evd_dequeue_any(evd_handle, event);
	/* one of ours: it names instances as the consumer does (opendat_extension.ia_name_func) */
	return provider->evd_dequeue_func(evd_handle, event);
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle)
{
	const DAT_PROVIDER *provider = registry_handle_provider(evd_handle);

	if (!provider)
		return registry_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	return provider->evd_free_func(evd_handle);
}
