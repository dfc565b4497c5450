// SPDX-License-Identifier: BSD-2-Clause
/*
 * The life and the events of a device. librdmacm opens a device once in a process and keeps it
 * open, in a child of the process too. Each instance opens the device once more, so that its file
 * and its events are its own.
 */
#include "verbs/device.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "core/base/log.h"
#include "core/ep/ep.h"
#include "core/event/evd_queue.h"
#include "core/base/instance.h"
#include "verbs/conn.h"
#include "verbs/srq.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static struct vrb_adapter *list_first;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_prepare(void)
{
	pthread_mutex_lock(&list_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&list_lock);
}

/*
 * A child cannot use the parent's instances, and must not hide the parent's death from its peers.
 * So the descriptors that it inherits are closed (GEN-34).
 */
static void fork_child(void)
{
	for (const struct vrb_adapter *i = list_first; i; i = i->next) {
		close(i->channel->fd);
		close(i->completions->fd);
		close(i->context->async_fd);
		close(i->context->cmd_fd);
	}
	list_first = NULL;
	pthread_mutex_unlock(&list_lock);
}

static void fork_watch(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* --- opening --- */

/* Logs which call failed, with errno, and returns what dat_ia_open reports. */
static int open_failed(const struct vrb_adapter *adapter, const char *call)
{
	int error = errno;

	core_log(CORE_LOG_ERROR, "%s: %s: %s", adapter->ia->device, call, strerror(error));
	return error == ENOMEM || error == EMFILE ? -error : -ENODEV;
}

int vrb_device_open(struct vrb_adapter *adapter)
{
	union core_sockaddr address = adapter->ia->address;
	int rc;

	pthread_once(&fork_once, fork_watch);
	adapter->channel = rdma_create_event_channel();
	if (!adapter->channel)
		return open_failed(adapter, "rdma_create_event_channel");
	if (rdma_create_id(adapter->channel, &adapter->anchor, NULL, RDMA_PS_TCP)) {
		adapter->anchor = NULL;
		rc = open_failed(adapter, "rdma_create_id");
		goto fail;
	}
	if (rdma_bind_addr(adapter->anchor, &address.sa)) {
		(void)open_failed(adapter, "rdma_bind_addr");
		rc = -ENODEV;
		goto fail;
	}
	if (!adapter->anchor->verbs) {
		core_log(CORE_LOG_ERROR, "%s: the address belongs to no single RDMA device",
			 adapter->ia->device);
		rc = -ENODEV;
		goto fail;
	}
	errno = 0;
	adapter->context = ibv_open_device(adapter->anchor->verbs->device);
	if (!adapter->context) {
		rc = open_failed(adapter, "ibv_open_device");
		goto fail;
	}
	adapter->is_iwarp = adapter->context->device->transport_type == IBV_TRANSPORT_IWARP;
	adapter->completions = ibv_create_comp_channel(adapter->context);
	if (!adapter->completions) {
		rc = -ENOMEM;
		goto fail;
	}
	pthread_mutex_lock(&list_lock);
	adapter->next = list_first;
	list_first = adapter;
	pthread_mutex_unlock(&list_lock);
	return 0;
fail:
	if (adapter->context)
		(void)ibv_close_device(adapter->context);
	if (adapter->anchor)
		(void)rdma_destroy_id(adapter->anchor);
	rdma_destroy_event_channel(adapter->channel);
	return rc;
}

void vrb_device_close(struct vrb_adapter *adapter)
{
	struct vrb_adapter **link = &list_first;

	pthread_mutex_lock(&list_lock);
	while (*link != adapter)
		link = &(*link)->next;
	*link = adapter->next;
	pthread_mutex_unlock(&list_lock);
	(void)ibv_destroy_comp_channel(adapter->completions);
	(void)ibv_close_device(adapter->context);
	(void)rdma_destroy_id(adapter->anchor);
	rdma_destroy_event_channel(adapter->channel);
}

bool vrb_device_is_up(struct vrb_adapter *adapter)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof(port));
	return !ibv_query_port(adapter->context, adapter->anchor->port_num, &port) &&
	       port.state == IBV_PORT_ACTIVE;
}

/* --- events --- */

/* Handles an event of one queue pair. The caller holds a reference to the connection. */
static void qp_event(struct vrb_conn *conn, enum ibv_event_type type)
{
	struct core_ep *ep;

	if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
		vrb_conn_left_srq(conn);
		return;
	}
	ep = vrb_conn_enter(conn);
	if (!ep)
		return;
	core_log(CORE_LOG_CONN, "connection %u: %s", conn->key, ibv_event_type_str(type));
	if (type == IBV_EVENT_COMM_EST) {
		if (conn->state == VRB_ACCEPTED)
			(void)rdma_notify(conn->id, type);
	} else if (conn->adapter->is_siw && type != IBV_EVENT_QP_ACCESS_ERR) {
		/* the device could not send: the peer may have closed the stream in order
		 * (status.c) */
		vrb_conn_flushed(conn, ep);
	} else {
		conn->has_failed = true;
		if (conn->state == VRB_ESTABLISHED) {
			vrb_conn_close(conn, ep, DAT_CONNECTION_EVENT_BROKEN);
			vrb_conn_try_finish(conn, ep, false);
		} else if (conn->state == VRB_CLOSING) {
			conn->why = DAT_CONNECTION_EVENT_BROKEN;
		}
	}
	vrb_conn_leave(ep);
}

static void srq_failed(struct vrb_adapter *adapter, uint32_t key)
{
	struct core_ref srq;

	if (vrb_srq_by_key(adapter, key, &srq))
		core_srq_failed(srq);
}

static bool is_qp_event(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

void vrb_device_read_events(struct vrb_adapter *adapter)
{
	struct ibv_async_event event;
	struct vrb_conn *conn;

	while (!ibv_get_async_event(adapter->context, &event)) {
		enum ibv_event_type type = event.event_type;
		uint32_t srq_key = 0;

		conn = NULL;
		if (is_qp_event(type)) {
			/* exists until the event is acknowledged */
			conn = event.element.qp->qp_context;
			if (conn)
				vrb_conn_get(conn);
		} else if (type == IBV_EVENT_SRQ_ERR) {
			srq_key = (uint32_t)(uintptr_t)event.element.srq->srq_context;
		}
		ibv_ack_async_event(&event);
		if (conn) {
			qp_event(conn, type);
			vrb_conn_put(conn);
		} else if (type == IBV_EVENT_SRQ_ERR) {
			srq_failed(adapter, srq_key);
		} else if (type < 32) {
			atomic_fetch_or(&adapter->device_events, 1u << type);
		}
	}
}

void vrb_device_handle_events(struct vrb_adapter *adapter)
{
	uint32_t device_events = atomic_exchange(&adapter->device_events, 0);
	struct core_ia *ia = adapter->ia;

	if (device_events & 1u << IBV_EVENT_PORT_ERR)
		core_log(CORE_LOG_CONN, "%s: the port is down", ia->device);
	if (device_events & 1u << IBV_EVENT_PORT_ACTIVE)
		vrb_conn_end_lingering(adapter);
	if (device_events & 1u << IBV_EVENT_CQ_ERR)
		core_ia_async_event(ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ia->cell,
				    DAT_IA_OTHER_ERROR);
	if (!(device_events & (1u << IBV_EVENT_DEVICE_FATAL | 1u << IBV_EVENT_CQ_ERR)))
		return;
	if (atomic_exchange(&adapter->is_dead, true))
		return;
	core_log(CORE_LOG_ERROR, "%s: the device has failed", ia->device);
	core_ia_async_event(ia, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia->cell,
			    DAT_IA_CATASTROPHIC_ERROR);
	vrb_conn_all_due(adapter);
}
