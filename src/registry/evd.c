// SPDX-License-Identifier: BSD-2-Clause
/*
 * Event dispatchers. Each call checks its handle and forwards to the provider (forward.h). An
 * asynchronous event may carry the provider's handle of an instance, which is translated to the
 * consumer's handle here. OpenDAT's own providers have translated it already.
 */
#include "forward.h"

__attribute__((cold)) static void async_event_translate(DAT_EVENT *event)
{
	DAT_HANDLE *handle = &event->event_data.asynch_error_event_data.dat_handle;
	DAT_IA_HANDLE consumer = registry_ia_consumer_handle(*handle);

	/* Only handles of instances are translated; the event may carry one of another object. */
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
	return REGISTRY_FORWARD_IA(evd_create, ia_handle, evd_min_qlen, cno_handle, evd_flags,
				   evd_handle);
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param)
{
	DAT_RETURN ret = REGISTRY_FORWARD(evd_query, DAT_INVALID_HANDLE1, evd_handle,
					  evd_param_mask, evd_param);

	if (ret == DAT_SUCCESS && evd_param && (evd_param_mask & DAT_EVD_FIELD_IA_HANDLE))
		evd_param->ia_handle = registry_ia_consumer_handle(evd_param->ia_handle);
	return ret;
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle)
{
	return REGISTRY_FORWARD(evd_modify_cno, DAT_INVALID_HANDLE1, evd_handle, cno_handle);
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle)
{
	return REGISTRY_FORWARD(evd_enable, DAT_INVALID_HANDLE1, evd_handle);
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle)
{
	return REGISTRY_FORWARD(evd_disable, DAT_INVALID_HANDLE1, evd_handle);
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	return REGISTRY_FORWARD(evd_set_unwaitable, DAT_INVALID_HANDLE1, evd_handle);
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle)
{
	return REGISTRY_FORWARD(evd_clear_unwaitable, DAT_INVALID_HANDLE1, evd_handle);
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	return REGISTRY_FORWARD(evd_resize, DAT_INVALID_HANDLE1, evd_handle, evd_min_qlen);
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	return REGISTRY_FORWARD(evd_post_se, DAT_INVALID_HANDLE1, evd_handle, event);
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *n_more_events)
{
	DAT_RETURN ret = REGISTRY_FORWARD(evd_wait, DAT_INVALID_HANDLE1, evd_handle, timeout,
					  threshold, event, n_more_events);

	if (ret == DAT_SUCCESS)
		event_translate(event);
	return ret;
}

/* Translates the result of evd_dequeue_func for the consumer. */
static inline DAT_RETURN dequeue_translate(DAT_RETURN ret, DAT_EVENT *event)
{
	if (ret == DAT_SUCCESS) {
		event_translate(event);
		return DAT_SUCCESS;
	}
	/* Consumers compare the whole code: an empty queue has no class bit (GEN-07). */
	return DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY ? (DAT_RETURN)DAT_QUEUE_EMPTY : ret;
}

__attribute__((noinline)) static DAT_RETURN evd_dequeue_slow(DAT_EVD_HANDLE evd_handle,
							     DAT_EVENT *event)
{
	return dequeue_translate(
		REGISTRY_FORWARD(evd_dequeue, DAT_INVALID_HANDLE1, evd_handle, event), event);
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	const DAT_PROVIDER *provider = registry_handle_provider_fast(evd_handle);

	if (!provider)
		return evd_dequeue_slow(evd_handle, event);
	/* an OpenDAT provider, whose events already carry the consumer's handles */
	return provider->evd_dequeue_func(evd_handle, event);
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle)
{
	return REGISTRY_FORWARD(evd_free, DAT_INVALID_HANDLE1, evd_handle);
}
