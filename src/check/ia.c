// SPDX-License-Identifier: BSD-2-Clause
/* Instances: each has one of the adapter below. */
#include "check/adapter.h"
#include "check/evd.h"
#include "check/object.h"
#include "check/report.h"

#include <pthread.h>

/* The EVD for the program: its own, or the one that the provider has made. */
static DAT_EVD_HANDLE wrap_async(struct check_object *ia, DAT_EVD_HANDLE before,
				 DAT_EVD_HANDLE inner)
{
	struct check_object *evd;

	if (check_inner(before) == inner && before)
		return before;
	if (inner == DAT_HANDLE_NULL || inner == DAT_EVD_OUT_OF_SCOPE)
		return inner;
	evd = check_evd_make("dat_ia_open", ia, inner);
	check_lock();
	ia->life->ia.async_evd = evd;
	check_unlock();
	return evd ? (DAT_EVD_HANDLE)evd : inner;
}

static DAT_RETURN open_below(const char *name, bool is_thread_safe, DAT_COUNT qlen,
			     DAT_EVD_HANDLE *evd_handle, DAT_IA_HANDLE *ia_handle)
{
	DAT_EVD_HANDLE evd = check_inner(*evd_handle);
	const struct check_adapter *adapter = check_adapter_find(name, is_thread_safe);
	struct check_object *ia;
	DAT_IA_HANDLE inner;
	DAT_RETURN ret;

	if (!adapter)
		return DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED;
	ret = dat_ia_openv((DAT_NAME_PTR)adapter->below, qlen, &evd, &inner, DAT_VERSION_MAJOR,
			   DAT_VERSION_MINOR, is_thread_safe ? DAT_TRUE : DAT_FALSE);
	if (ret != DAT_SUCCESS)
		return ret;
	ia = check_object_make_ia(&adapter->provider, inner);
	if (!ia) {
		(void)dat_ia_close(inner, DAT_CLOSE_ABRUPT_FLAG);
		return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY;
	}
	*evd_handle = wrap_async(ia, *evd_handle, evd);
	*ia_handle = ia;
	return DAT_SUCCESS;
}

static DAT_RETURN open_uncancelled(const char *name, bool is_thread_safe, DAT_COUNT qlen,
				   DAT_EVD_HANDLE *evd_handle, DAT_IA_HANDLE *ia_handle)
{
	DAT_RETURN ret;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = open_below(name, is_thread_safe, qlen, evd_handle, ia_handle);
	pthread_setcancelstate(state, NULL);
	return ret;
}

DAT_RETURN check_ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd_handle,
			      DAT_IA_HANDLE *ia_handle)
{
	return open_uncancelled(name, true, qlen, evd_handle, ia_handle);
}

DAT_RETURN check_ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd_handle,
				DAT_IA_HANDLE *ia_handle)
{
	return open_uncancelled(name, false, qlen, evd_handle, ia_handle);
}

void check_ia_set_consumer_handle(DAT_IA_HANDLE ia_handle, DAT_IA_HANDLE consumer)
{
	struct check_object *ia = check_find(ia_handle);

	check_lock();
	ia->life->ia.consumer = consumer;
	check_unlock();
}

DAT_RETURN check_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			  DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			  DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			  DAT_PROVIDER_ATTR *provider_attr)
{
	struct check_call call;
	DAT_RETURN ret;

	check_begin(&call, CHECK_CALL_ia_query, ia_handle, DAT_HANDLE_TYPE_IA);
	ret = dat_ia_query(check_inner(ia_handle), async_evd_handle, ia_attr_mask, ia_attr,
			   provider_attr_mask, provider_attr);
	if (ret == DAT_SUCCESS && async_evd_handle)
		*async_evd_handle = check_outer(*async_evd_handle);
	return check_end(&call, ret);
}

/* ---- close ---- */

#define LEFT_MAX 64u

/* Objects that are reported when the instance is closed; at most LEFT_MAX. */
static unsigned list_left(struct check_object *ia, struct check_object *left[LEFT_MAX])
{
	struct check_object *object;
	unsigned count = 0;

	check_lock();
	for (unsigned list = 0; list < 2; list++)
		for (object = ia->life->ia.objects[list]; object && count < LEFT_MAX;
		     object = object->next)
			if (object != ia->life->ia.async_evd)
				left[count++] = object;
	check_unlock();
	return count;
}

static void report_left(struct check_call *call, enum check_rule rule, struct check_object *left[],
			unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (left[i]->type == DAT_HANDLE_TYPE_CR)
			check_report(call, CHECK_CR_UNANSWERED, left[i], "%s has no answer",
				     check_name(left[i]).text);
		else
			check_report(call, rule, left[i], "%s was not freed",
				     check_name(left[i]).text);
	}
}

static void kill_all_locked(struct check_object *ia)
{
	struct check_object *object;

	while ((object = ia->life->ia.objects[CHECK_POSTERS]) != NULL) {
		if (object->type == DAT_HANDLE_TYPE_EP) {
			check_requests_drop_locked(&object->life->ep.requests);
			check_requests_drop_locked(&object->life->ep.receives);
		} else
			check_requests_drop_locked(&object->life->srq.receives);
		check_object_kill_locked(object);
	}
	while ((object = ia->life->ia.objects[CHECK_OTHERS]) != NULL) {
		if (object->type == DAT_HANDLE_TYPE_EVD)
			check_requests_drop_locked(&object->life->evd.orphans);
		check_object_kill_locked(object);
	}
	check_requests_drop_locked(&ia->life->ia.srq_orphans);
}

DAT_RETURN check_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct check_object *left[LEFT_MAX];
	struct check_call call;
	struct check_object *ia;
	unsigned count = 0;
	DAT_RETURN ret;

	ia = check_begin(&call, CHECK_CALL_ia_close, ia_handle, DAT_HANDLE_TYPE_IA);
	if (ia)
		count = list_left(ia, left);
	ret = dat_ia_close(check_inner(ia_handle), close_flags);
	if (ret == DAT_SUCCESS && ia) {
		report_left(&call, CHECK_CLOSED_OVER, left, count);
		check_lock();
		kill_all_locked(ia);
		check_unlock();
	} else if (DAT_GET_TYPE(ret) == DAT_INVALID_STATE)
		report_left(&call, CHECK_LEFT_OPEN, left, count);
	return check_end_free(&call, ret);
}
